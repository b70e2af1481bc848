//! Fetching: reading the compressed parts of many chunks before decompression.
//!
//! From a storage with a high latency, a read requests the parts of many chunks at once (a *window*). While these
//! chunks are decompressed, it requests the parts of the next chunks.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Range;
use std::sync::mpsc;
use std::{fmt, thread};

use blosc2_format::chunk::{EXTENDED_HEADER_LEN, Header};
use blosc2_format::frame::{Layout, Offset};

use super::store::{Located, State};
use super::{Reading, SChunk};
use crate::chunk::partial::{self, FRONT, Steps};
use crate::item::element::zeroed;
use crate::{Doing, Error, Reason, Result};

const READ: &str = "read chunks";
/// The size of the first window in stored bytes. A window is the set of parts that are fetched at once.
const FIRST_WINDOW: u64 = 4 << 20;
/// The maximum size of a window in stored bytes. A window of one chunk may be larger.
const WINDOW: u64 = 32 << 20;
/// The maximum number of parts of the work in a window, such as chunks.
const WINDOW_NUMBERS: usize = 4096;
/// The number of files of a directory that are read at the same time.
const FILES: usize = 16;
/// The maximum memory in bytes for the parts of a window. A window of one chunk may need more.
pub(super) const MOST: usize = 64 << 20;
/// The number of chunks before and after a chunk whose offsets are compared with the offset of the chunk.
const NEAR: u64 = 8;

/// A chunk and the needed parts of its data.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) index: usize,
    /// `None` for all data.
    pub(crate) ranges: Option<Vec<Range<usize>>>,
}

impl Wanted {
    /// Returns the number of bytes of the ranges.
    fn data_len(&self) -> u64 {
        self.ranges.iter().flatten().map(|range| range.len() as u64).sum()
    }
}

/// Adds the index of the chunk to an error.
fn in_chunk(error: Error, index: usize) -> Error {
    error.with_doing(format!("read chunk {index}")).in_chunk(index)
}

/// Compressed parts of chunks that were read before decompression.
#[derive(Debug, Default)]
pub struct Fetched {
    /// In ascending order of the indices.
    chunks: Vec<Chunk>,
    /// Buffers that are used again.
    spare: Vec<Vec<u8>>,
}

#[derive(Debug)]
struct Chunk {
    index: usize,
    header: Header,
    bytes: Vec<u8>,
}

/// For reads without a fetch before.
pub(crate) static NOTHING_FETCHED: Fetched = Fetched { chunks: Vec::new(), spare: Vec::new() };

impl Fetched {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Removes the chunks. Their buffers are used again.
    pub(super) fn clear(&mut self) {
        self.spare.extend(self.chunks.drain(..).map(|chunk| chunk.bytes));
    }

    /// Returns the header of a chunk and the chunk, in which only the fetched parts are valid.
    pub(crate) fn get(&self, index: usize) -> Option<(&Header, &[u8])> {
        let at = self.chunks.binary_search_by_key(&index, |chunk| chunk.index).ok()?;
        let Chunk { header, bytes, .. } = &self.chunks[at];
        Some((header, bytes))
    }
}

/// The chunks of several super-chunks that are fetched at once.
pub(crate) struct Window<'a> {
    sources: &'a [(&'a SChunk, &'a Reading<'a>)],
    chunks: Vec<BTreeMap<usize, Wanted>>,
    /// An estimate of the number of bytes that are fetched.
    size: u64,
    /// Whether further chunks are refused, and whether one was refused.
    is_full: bool,
    has_refused: bool,
}

impl fmt::Debug for Window<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Window").field("chunks", &self.chunks).finish_non_exhaustive()
    }
}

impl Window<'_> {
    /// Adds a part of a chunk of the super-chunk at the index `source`. A full window refuses further chunks. Nothing is
    /// fetched from a storage with a low latency.
    pub(crate) fn add(&mut self, source: usize, mut wanted: Wanted) -> Result<()> {
        let (schunk, reading) = self.sources[source];
        if !schunk.is_remote(reading) {
            return Ok(());
        }
        reading.state.widen(&mut wanted);
        let entry = match self.chunks[source].entry(wanted.index) {
            Entry::Vacant(_) if self.is_full => {
                self.has_refused = true;
                return Ok(());
            }
            Entry::Vacant(entry) => entry.insert(wanted),
            Entry::Occupied(entry) => {
                let entry = entry.into_mut();
                let before = reading.state.fetched_len(entry).map_err(|error| schunk.at(error))?;
                self.size = self.size.saturating_sub(before);
                entry.ranges = entry.ranges.take().zip(wanted.ranges).map(|(mut all, more)| {
                    all.extend(more);
                    all
                });
                entry
            }
        };
        self.size += reading.state.fetched_len(entry).map_err(|error| schunk.at(error))?;
        Ok(())
    }

    fn fetch(self, fetched: &mut [Fetched]) -> Result<()> {
        for ((chunks, (schunk, reading)), fetched) in
            self.chunks.into_iter().zip(self.sources).zip(fetched)
        {
            schunk.fetch(reading, chunks.into_values().collect(), fetched)?;
        }
        Ok(())
    }
}

/// Calls `work` with the numbers below `count`, in ascending ranges, and with the fetched chunks of these numbers, one
/// value for each source. `work` returns whether to continue.
///
/// `wanted` adds the chunks that a number needs to a window. For storages with a low latency, nothing is fetched, and
/// `work` is called once.
pub(crate) fn fetch_ahead(
    sources: &[(&SChunk, &Reading<'_>)],
    count: usize,
    wanted: impl Fn(usize, &mut Window<'_>) -> Result<()> + Sync,
    mut work: impl FnMut(Range<usize>, &mut Vec<Fetched>) -> Result<bool>,
) -> Result<()> {
    let none = || sources.iter().map(|_| Fetched::default()).collect::<Vec<_>>();
    if !sources.iter().any(|(schunk, reading)| schunk.is_remote(reading)) {
        return work(0..count, &mut none()).map(drop);
    }
    let fetch = |start: usize, limit: u64, mut fetched: Vec<Fetched>| -> Result<_> {
        let chunks = sources.iter().map(|_| BTreeMap::new()).collect();
        let mut window = Window { sources, chunks, size: 0, is_full: false, has_refused: false };
        let mut end = start;
        while end < count && end - start < WINDOW_NUMBERS {
            // A window does not end inside a chunk, which the next window would fetch again.
            window.is_full = window.size >= limit;
            wanted(end, &mut window)?;
            if window.has_refused {
                break;
            }
            end += 1;
        }
        window.fetch(&mut fetched)?;
        Ok((start..end, fetched))
    };
    let fetch = &fetch;
    let (first, mut used) = fetch(0, FIRST_WINDOW, none())?;
    if first.end == count {
        return work(first, &mut used).map(drop);
    }
    thread::scope(|scope| {
        // The channel has no buffer: at most one window waits while another window is decompressed.
        let (send, receive) = mpsc::sync_channel(0);
        // Windows whose buffers are used again.
        let (give_back, returned) = mpsc::channel();
        let mut start = first.end;
        let ahead = move || {
            let mut limit = FIRST_WINDOW;
            while start < count {
                limit = (2 * limit).min(WINDOW);
                let window = fetch(start, limit, returned.try_recv().unwrap_or_else(|_| none()));
                start = window.as_ref().map_or(count, |(range, _)| range.end);
                // The receiver is dropped after an error, or if no other number is needed.
                if send.send(window).is_err() {
                    return;
                }
            }
        };
        let is_started = thread::Builder::new().spawn_scoped(scope, ahead).is_ok();
        let mut start = first.end;
        if !work(first, &mut used)? {
            return Ok(());
        }
        while start < count {
            let window = match is_started {
                true => {
                    // The other thread may have ended.
                    let _ = give_back.send(used);
                    receive.recv().unwrap_or_else(|_| Ok((start..count, none())))
                }
                // There are no threads left.
                false => fetch(start, WINDOW, used),
            };
            let range;
            (range, used) = window?;
            start = range.end;
            if !work(range, &mut used)? {
                break;
            }
        }
        Ok(())
    })
}

/// A chunk whose first bytes are being read.
struct Start<'a> {
    wanted: &'a Wanted,
    at: u64,
    room: u64,
    head: Vec<u8>,
}

/// A chunk whose parts are being read.
struct Pending {
    index: usize,
    at: u64,
    header: Header,
    steps: Steps<Vec<Range<usize>>>,
}

impl State {
    /// Includes the whole chunk if its checksum must be compared.
    pub(super) fn widen(&self, wanted: &mut Wanted) {
        if self.is_unverified(wanted.index) {
            wanted.ranges = None;
        }
    }

    /// Reads the needed parts of chunks that are not in memory.
    pub(super) fn fetch(&self, wanted: &[Wanted], fetched: &mut Fetched) -> Result<()> {
        if self.outline.layout() != Layout::Directory || wanted.len() <= 1 {
            let numbers: Vec<usize> = wanted.iter().map(|each| each.index).collect();
            let fetch = || self.fetch_together(wanted, &mut fetched.spare);
            fetched.chunks = self.confirmed(&numbers, fetch)?;
        } else {
            let parts = wanted.len().div_ceil(FILES);
            let chunks = thread::scope(|scope| {
                let read = |files: &[Wanted]| {
                    let each = |file| self.fetch_together(std::slice::from_ref(file), &mut vec![]);
                    files.iter().map(each).collect::<Result<Vec<_>>>()
                };
                let threads = wanted.chunks(parts).map(|files| {
                    let thread = thread::Builder::new().spawn_scoped(scope, move || read(files));
                    thread.map_err(|_| files)
                });
                let threads: Vec<_> = threads.collect();
                let join = |thread: Result<thread::ScopedJoinHandle<'_, _>, &[Wanted]>| match thread
                {
                    Ok(thread) => {
                        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                    }
                    // There are no threads left.
                    Err(files) => read(files),
                };
                threads.into_iter().map(join).collect::<Result<Vec<_>>>()
            })?;
            fetched.chunks = chunks.into_iter().flatten().flatten().collect();
            // Each thread has allocated its memory.
            fetched.spare.clear();
        }
        fetched.chunks.sort_unstable_by_key(|chunk| chunk.index);
        Ok(())
    }

    /// Reads the parts of chunks in one storage, or the parts of one chunk, with as few calls as possible.
    ///
    /// A file may contain a wrong length. Therefore chunks that would take much more memory than planned are omitted.
    /// They are read one by one when they are needed.
    fn fetch_together(&self, wanted: &[Wanted], spare: &mut Vec<Vec<u8>>) -> Result<Vec<Chunk>> {
        let mut stored = Vec::with_capacity(wanted.len());
        for each in wanted {
            if let Some((Located::Stored(source, at, room), place)) = self.stored(each.index)? {
                stored.push((each, source, at, room, place));
            }
        }
        let mut places: Vec<u64> = stored.iter().map(|(.., place)| *place).collect();
        places.sort_unstable();
        let (mut starts, mut source, mut total) = (Vec::new(), None, 0);
        for (each, from, at, room, place) in stored {
            let next = places.get(places.partition_point(|&other| other <= place)).copied();
            let (len, _) = self.first_len(each, place, room, next);
            total += len;
            if total > MOST && source.is_some() {
                break;
            }
            source = Some(from);
            let mut head = spare.pop().unwrap_or_default();
            if head.capacity() < len {
                // The buffer gets space for a longer chunk, because it is used again.
                head = zeroed(len.saturating_add(len / 8)).doing(READ)?;
            }
            head.resize(len, 0);
            starts.push(Start { wanted: each, at, room, head });
        }
        let Some(source) = source else { return Ok(Vec::new()) };
        let read = |parts: &mut [(u64, &mut [u8])]| {
            source.as_dyn().read_ranges_at(parts).map_err(|error| Error::of_io(READ, error))
        };
        read(
            &mut starts.iter_mut().map(|start| (start.at, &mut start.head[..])).collect::<Vec<_>>(),
        )?;
        let cost = usize::try_from(self.store.request_cost()).unwrap_or(usize::MAX);
        let mut chunks: Vec<Pending> = Vec::with_capacity(starts.len());
        let mut total = 0;
        for Start { wanted: Wanted { index, ranges }, at, room, head, .. } in starts {
            let failed = |error| in_chunk(error, *index);
            let front = &head[..head.len().min(EXTENDED_HEADER_LEN)];
            let header = self.outline.chunk_header(*index as u64, front, at, room);
            let header = header.map_err(|error| failed(Reason::from(error).doing(READ)))?;
            let known = head.len();
            let all = 0..header.nbytes as usize;
            let ranges = ranges.clone().unwrap_or_else(|| vec![all]);
            let steps = Steps::new(header.clone(), ranges, (head, known), cost).map_err(failed)?;
            total += steps.len();
            if total <= MOST || chunks.is_empty() {
                chunks.push(Pending { index: *index, at, header, steps });
            }
        }
        loop {
            let mut parts = Vec::new();
            for Pending { at, steps, .. } in &mut chunks {
                parts.extend(steps.parts().into_iter().map(|(offset, part)| (*at + offset, part)));
            }
            if parts.is_empty() {
                break;
            }
            read(&mut parts)?;
            for Pending { index, steps, .. } in &mut chunks {
                let advanced = if steps.is_complete() { Ok(()) } else { steps.advance() };
                advanced.map_err(|error| in_chunk(error, *index))?;
            }
            // The tables of blocks may require more memory than planned.
            let (mut total, first) = (0, chunks[0].index);
            chunks.retain(|chunk| {
                total += chunk.steps.len();
                total <= MOST || chunk.index == first
            });
        }
        let chunks = chunks.into_iter().map(|Pending { index, header, steps, .. }| {
            let bytes = steps.into_buffer();
            Chunk { index, header, bytes }
        });
        Ok(chunks.collect())
    }

    /// Returns the location of a stored chunk and its offset in the index; `None` if the chunk is in memory.
    fn stored(&self, index: usize) -> Result<Option<(Located<'_>, u64)>> {
        let failed = |reason: Reason| in_chunk(reason.doing(READ), index);
        let Offset::At(place) = self.offset(index).map_err(failed)? else { return Ok(None) };
        let located = self.chunk(place).map_err(failed)?;
        Ok(matches!(located, Located::Stored(..)).then_some((located, place)))
    }

    /// Returns an estimate of the number of bytes that are read to fetch a chunk.
    fn fetched_len(&self, wanted: &Wanted) -> Result<u64> {
        // Opening the files of a directory would take requests.
        if self.outline.layout() == Layout::Directory {
            let nbytes = self.outline.chunksize().fixed().map_or(FIRST_WINDOW / 4, u64::from);
            return Ok(nbytes / 3);
        }
        let Some((Located::Stored(_, _, room), place)) = self.stored(wanted.index)? else {
            return Ok(0);
        };
        let (first, is_whole) = self.first_len(wanted, place, room, None);
        Ok(if is_whole { first as u64 } else { first as u64 + wanted.data_len() })
    }

    /// Returns the number of bytes that are read first of a stored chunk, and whether they are probably the whole
    /// chunk. `next` is the offset of a later chunk.
    fn first_len(
        &self,
        wanted: &Wanted,
        place: u64,
        room: u64,
        next: Option<u64>,
    ) -> (usize, bool) {
        let fixed = self.outline.chunksize().fixed().map(u64::from);
        // A chunk is not longer than its data plus a header.
        let most = fixed.unwrap_or(i32::MAX as u64) + EXTENDED_HEADER_LEN as u64;
        let len = match self.outline.layout() {
            // Chunks are usually stored in their order, but changes move them.
            Layout::Contiguous => {
                let index = wanted.index as u64;
                let near = index.saturating_sub(NEAR)..index.saturating_add(NEAR);
                let places = near.filter_map(|index| match self.outline.decoded(index)? {
                    Offset::At(other) => Some(other),
                    Offset::Special(_) => None,
                });
                let next = places.chain(next).filter(|&other| other > place).min();
                next.map_or(room, |next| next - place)
            }
            Layout::Directory => room,
        };
        let len = len.min(room).min(most);
        let is_whole = wanted.ranges.is_none()
            || len <= self.store.request_cost().max(partial::SMALL as u64)
            || fixed.is_some_and(|chunk| wanted.data_len() > chunk / 4 * 3);
        let params = self.outline.params();
        let head = match fixed.zip(params.blocksize) {
            Some((chunk, block)) => {
                // With the length field of a dictionary.
                EXTENDED_HEADER_LEN as u64 + 4 * chunk.div_ceil(block.into()) + 4
            }
            _ => FRONT as u64,
        };
        let first = if is_whole { len } else { head.min(len) };
        (usize::try_from(first).unwrap_or(usize::MAX), is_whole)
    }
}
