//! Where chunks are, and how what is around them is written.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2_format::chunk::{EXTENDED_HEADER_LEN, Header};
use blosc2_format::directory::{self, chunk_name};
use blosc2_format::frame::{Layout, Offset, Outline, Sizes, Stores};
use blosc2_format::{Limits, ReadAt};

use super::files;
use crate::bytes::token::Token;
use crate::bytes::{Change, Safety, Storage, commit};
use crate::gate::Version;
use crate::{Error, ErrorKind, Result, partial};

/// What a handle knows of a super-chunk, and where it is.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) outline: Outline,
    pub(crate) store: Store,
    /// What was last seen of others who change it.
    pub(crate) version: Version,
    /// Being made: it is no frame until [`finish`](Self::finish).
    pub(crate) unfinished: bool,
    pub(crate) limits: Limits,
}

/// Where chunks are.
#[derive(Debug)]
pub(crate) enum Store {
    /// Each in memory of its own, by its place.
    Memory(BTreeMap<u64, Vec<u8>>),
    /// A frame in one run of bytes.
    Frame(FrameBytes),
    /// A directory, by its absolute path.
    Directory(PathBuf, Safety),
}

/// A frame in one run of bytes.
#[derive(Debug)]
pub(crate) struct FrameBytes {
    pub(crate) storage: Box<dyn Storage>,
    pub(crate) safety: Safety,
    /// What this handle has written around the chunks, so that it is not read again.
    around: Option<Around>,
    /// The start of the header when it was read or written last: every change of the sizes shows there.
    seen: Option<[u8; SEEN]>,
}

const SEEN: usize = 64;

#[derive(Debug)]
struct Around {
    header: Vec<u8>,
    end_at: u64,
    end: Vec<u8>,
}

impl FrameBytes {
    pub(crate) fn new(storage: impl Storage + 'static, safety: Safety) -> Self {
        Self { storage: Box::new(storage), safety, around: None, seen: None }
    }

    /// Reads what is around the chunks.
    pub(crate) fn read(&mut self, limits: &Limits) -> Result<Outline, blosc2_format::Error> {
        (self.around, self.seen) = (None, None);
        // First, so that a change in between is noticed.
        let mut seen = [0; SEEN];
        let is_there = self.storage.read_exact_at(0, &mut seen).is_ok();
        let outline = Outline::read(&*self.storage, Layout::Contiguous, limits)?;
        self.seen = is_there.then_some(seen);
        Ok(outline)
    }

    /// Checks that nobody has changed the sizes of the frame without the knowledge of this handle, so that no such
    /// change is undone. What claims and locks cover cannot be changed so.
    fn check_seen(&self, doing: &str) -> Result<()> {
        let Some(seen) = &self.seen else { return Ok(()) };
        let mut now = [0; SEEN];
        self.storage.read_exact_at(0, &mut now).map_err(|error| Error::of_io(doing, error))?;
        if now == *seen {
            return Ok(());
        }
        let detail = "another handle or program has changed it; it was read again, so that this can be repeated";
        Err(Error::new(ErrorKind::Busy, doing, detail))
    }

    /// Bytes of the frame, as its header says.
    fn stored_len(&self) -> io::Result<u64> {
        let mut len = [0; 8];
        self.storage.read_exact_at(LEN_AT, &mut len)?;
        Ok(u64::from_be_bytes(len))
    }

    /// Changes the frame, all or nothing.
    fn commit(&mut self, outline: &Outline, stores: &Stores<'_>, doing: &str) -> Result<()> {
        let failed = |error| Error::of_io(doing, error);
        self.check_seen(doing)?;
        let around = self.around.take();
        let old_len = match &around {
            Some(around) => around.end_at + around.end.len() as u64,
            None => self.stored_len().map_err(failed)?,
        };
        let (header, end) = around_of(outline, doing)?;
        let (start, end_at) = (header.len() as u64, header.len() as u64 + outline.cbytes());
        let mut writes: Vec<(u64, &[u8])> =
            stores.iter().map(|(place, bytes)| (start + place, &**bytes)).collect();
        writes.push((end_at, &end));
        let known: Vec<(u64, &[u8])> = around.iter().flat_map(Around::runs).collect();
        let change = Change {
            old_len,
            new_len: end_at + end.len() as u64,
            header: &header,
            writes: &writes,
            known: &known,
            safety: self.safety,
        };
        commit(&mut *self.storage, &change).map_err(|each| each.into_error(doing))?;
        self.seen = header.first_chunk().copied();
        self.around = Some(Around { header, end_at, end });
        Ok(())
    }
}

impl Around {
    fn runs(&self) -> [(u64, &[u8]); 2] {
        [(0, &self.header), (self.end_at, &self.end)]
    }
}

/// Where a header says how long the frame is.
const LEN_AT: u64 = 0x10;

/// The bytes of a chunk.
#[derive(Debug)]
pub(crate) enum Located<'a> {
    Memory(Cow<'a, [u8]>),
    /// From a position on, with so much room.
    Stored(Source<'a>, u64, u64),
}

#[derive(Debug)]
pub(crate) enum Source<'a> {
    Storage(&'a dyn Storage),
    File(File),
}

impl Source<'_> {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Storage(storage) => storage.read_exact_at(offset, buffer),
            Self::File(file) => file.read_exact_at(offset, buffer),
        }
    }
}

const READ: &str = "read a chunk";

impl State {
    pub(crate) fn nchunks(&self) -> usize {
        // A frame with more chunks than memory could count was refused.
        usize::try_from(self.outline.nchunks()).unwrap_or(usize::MAX)
    }

    /// Finds a chunk and reads its header.
    pub(crate) fn locate(&self, index: usize) -> Result<(Located<'_>, Header)> {
        let Some(offset) = self.outline.offset(index as u64) else {
            let nchunks = self.outline.nchunks();
            let detail = format!("there are {nchunks} chunks, asked for chunk {index}");
            return Err(Error::new(ErrorKind::OutOfBounds, READ, detail));
        };
        let located = match offset {
            Offset::Special(special) => {
                let chunk = self.outline.special_chunk(index as u64, special);
                let broken = |error| Error::new(ErrorKind::InvalidData, READ, error);
                Located::Memory(chunk.map_err(broken)?.into())
            }
            Offset::At(place) => self.at(index, place)?,
        };
        let header = located.header(index)?;
        let (expected, found) = (self.outline.nbytes_of(index as u64), header.nbytes);
        if let Some(expected) = expected.filter(|&expected| expected != found) {
            let detail = format!("chunk {index} has {found} bytes, expected {expected}");
            return Err(Error::new(ErrorKind::InvalidData, READ, detail));
        }
        Ok((located, header))
    }

    /// The chunk at a place.
    fn at(&self, index: usize, place: u64) -> Result<Located<'_>> {
        let missing = |what: String| Error::new(ErrorKind::InvalidData, READ, what);
        match &self.store {
            Store::Memory(chunks) => {
                let chunk = chunks.get(&place).map(|chunk| Cow::from(chunk.as_slice()));
                let chunk = chunk.ok_or_else(|| missing(format!("chunk {index} is not there")))?;
                Ok(Located::Memory(chunk))
            }
            Store::Frame(FrameBytes { storage, .. }) => {
                let (start, room) = (self.outline.header_len(), self.outline.cbytes());
                let (at, room) = (start.saturating_add(place), room.saturating_sub(place));
                let Some(bytes) = storage.stable_bytes(Token) else {
                    return Ok(Located::Stored(Source::Storage(&**storage), at, room));
                };
                let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
                let from = from.ok_or_else(|| missing(format!("chunk {index} is cut off")))?;
                let room = usize::try_from(room).unwrap_or(usize::MAX).min(from.len());
                Ok(Located::Memory(from[..room].into()))
            }
            Store::Directory(path, _) => {
                let path = path.join(chunk_name(place));
                let at = |error: io::Error| match error.kind() {
                    io::ErrorKind::NotFound => {
                        let detail = format!("the file of chunk {index} is not there");
                        missing(detail).at(&path)
                    }
                    _ => Error::from_io(READ, &path, error),
                };
                // A pipe would be waited for.
                let metadata = fs::metadata(&path).map_err(at)?;
                if !metadata.is_file() {
                    return Err(missing(format!("chunk {index} is in no file")).at(&path));
                }
                let file = File::open(&path).map_err(at)?;
                Ok(Located::Stored(Source::File(file), 0, metadata.len()))
            }
        }
    }

    /// How large a chunk is, for when it goes away.
    pub(crate) fn sizes(&self, index: usize, doing: &str) -> Result<Sizes> {
        let Some(offset) = self.outline.offset(index as u64) else {
            let nchunks = self.outline.nchunks();
            let detail = format!("there are {nchunks} chunks, asked for chunk {index}");
            return Err(Error::new(ErrorKind::OutOfBounds, doing, detail));
        };
        let stored = !matches!(offset, Offset::Special(_));
        if let (false, Some(nbytes)) = (stored, self.outline.nbytes_of(index as u64)) {
            return Ok(Sizes { nbytes, cbytes: 0 });
        }
        let (_, header) = self.locate(index)?;
        Ok(Sizes { nbytes: header.nbytes, cbytes: if stored { header.cbytes } else { 0 } })
    }

    /// Stores what a change of the outline needs to be stored, and what is around the chunks. Chunks whose
    /// places are `freed` are there no more.
    pub(crate) fn commit(&mut self, doing: &str, stores: Stores<'_>, freed: &[u64]) -> Result<()> {
        let outline = &self.outline;
        match &mut self.store {
            Store::Memory(chunks) => {
                for place in freed {
                    chunks.remove(place);
                }
                chunks.extend(stores.into_iter().map(|(place, bytes)| {
                    let mut bytes = bytes.into_owned();
                    // It may have been made for the longest chunk that could have come out.
                    bytes.shrink_to_fit();
                    (place, bytes)
                }));
                Ok(())
            }
            Store::Frame(FrameBytes { storage, .. }) if self.unfinished => {
                let start = outline.header_len();
                stores.iter().try_for_each(|(place, bytes)| {
                    let written = storage.write_all_at(start + place, bytes);
                    written.map_err(|error| Error::of_io(doing, error))
                })
            }
            Store::Frame(frame) => frame.commit(outline, &stores, doing),
            Store::Directory(path, safety) => {
                let durable = *safety == Safety::PowerLoss;
                let write = |name: &str, bytes: &[u8]| {
                    let path = path.join(name);
                    let written = File::create(&path).and_then(|mut file| {
                        file.write_all(bytes)?;
                        if durable { file.sync_all() } else { Ok(()) }
                    });
                    written.map_err(|error| Error::from_io(doing, &path, error))
                };
                for (place, bytes) in &stores {
                    write(&chunk_name(*place), bytes)?;
                }
                if self.unfinished {
                    return Ok(());
                }
                let (header, end) = around_of(outline, doing)?;
                // The old index stands until the new one takes its name.
                write(NEW_INDEX, &[header, end].concat())?;
                let sync = || match durable {
                    true => files::sync_folder(path),
                    false => Ok(()),
                };
                sync().map_err(|error| Error::from_io(doing, path, error))?;
                let renamed = fs::rename(path.join(NEW_INDEX), path.join(directory::INDEX));
                renamed.map_err(|error| Error::from_io(doing, path, error))?;
                // The new index is there now, whether or not the device has its name yet.
                sync().map_err(|error| Error::from_io(doing, path, error))?;
                // A broken index may name a file twice.
                let named: HashSet<u64> = match freed.is_empty() {
                    true => HashSet::new(),
                    false => (0..outline.nchunks())
                        .filter_map(|each| outline.offset(each)?.place())
                        .collect(),
                };
                for place in freed.iter().filter(|place| !named.contains(place)) {
                    // What stays is not part of the frame any more.
                    let _ = fs::remove_file(path.join(chunk_name(*place)));
                }
                Ok(())
            }
        }
    }

    /// Makes a frame of what was stored.
    pub(crate) fn finish(&mut self, doing: &str) -> Result<()> {
        self.unfinished = false;
        if let Store::Frame(FrameBytes { storage, .. }) = &mut self.store {
            let (header, end) = around_of(&self.outline, doing)?;
            let failed = |error| Error::of_io(doing, error);
            let at = header.len() as u64 + self.outline.cbytes();
            storage.write_all_at(at, &end).map_err(failed)?;
            return storage.write_all_at(0, &header).map_err(failed);
        }
        self.commit(doing, Vec::new(), &[])
    }

    /// Reads anew what is around the chunks.
    pub(crate) fn reload(&mut self, doing: &str) -> Result<()> {
        let outline = match &mut self.store {
            Store::Memory(_) => return Ok(()),
            Store::Frame(frame) => frame.read(&self.limits),
            Store::Directory(path, _) => read_directory(path, &self.limits),
        };
        let outline = outline.map_err(|error| Error::from_frame(doing, error))?;
        let (before, now) = (self.outline.params().typesize, outline.params().typesize);
        if before != now {
            let detail = format!("its items had {before} bytes and have {now} now: open it anew");
            return Err(Error::new(ErrorKind::InvalidData, doing, detail));
        }
        self.outline = outline;
        Ok(())
    }

    /// Bytes that are really there.
    pub(crate) fn stored_bytes(&self) -> u64 {
        match &self.store {
            Store::Memory(chunks) => chunks.values().map(|chunk| chunk.len() as u64).sum(),
            Store::Frame(frame) => frame.storage.size().unwrap_or(0),
            Store::Directory(path, _) => {
                let files = fs::read_dir(path).into_iter().flatten().flatten();
                files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
            }
        }
    }

    /// Bytes of the frame; of a directory, of its index file; 0 where there is none.
    pub(crate) fn frame_len(&self) -> Result<u64> {
        let len = match &self.store {
            Store::Memory(_) => Ok(0),
            Store::Frame(frame) => frame.stored_len(),
            Store::Directory(path, _) => {
                fs::metadata(path.join(directory::INDEX)).map(|metadata| metadata.len())
            }
        };
        len.map_err(|error| Error::of_io("measure a frame", error))
    }
}

/// The index file of a directory until it takes the place of the old one.
const NEW_INDEX: &str = "chunks.b2frame.new";

/// The outline of a directory.
pub(crate) fn read_directory(
    path: &Path,
    limits: &Limits,
) -> Result<Outline, blosc2_format::Error> {
    Outline::read(&File::open(path.join(directory::INDEX))?, Layout::Directory, limits)
}

/// What is in front of the chunks and behind them.
pub(crate) fn around_of(outline: &Outline, doing: &str) -> Result<(Vec<u8>, Vec<u8>)> {
    let mut end = outline.index().map_err(|error| Error::from_frame(doing, error))?;
    end.extend(outline.trailer());
    let len = outline.header_len() + outline.frame_len(end.len());
    let header = outline.header(len);
    if header.len() as u64 != outline.header_len() {
        let detail = format!("its header is broken, and would need {} bytes", header.len());
        return Err(Error::new(ErrorKind::InvalidData, doing, detail));
    }
    Ok((header, end))
}

impl Located<'_> {
    /// Reads the header, and sees that there is all of the chunk.
    fn header(&self, index: usize) -> Result<Header> {
        let invalid = |detail: String| Error::new(ErrorKind::InvalidData, READ, detail);
        let (header, room) = match self {
            Self::Memory(bytes) => (Header::parse(bytes), bytes.len() as u64),
            Self::Stored(source, at, room) => {
                let mut head = [0; EXTENDED_HEADER_LEN];
                let len = usize::try_from(*room).unwrap_or(usize::MAX).min(head.len());
                let read = source.read(*at, &mut head[..len]);
                read.map_err(|error| Error::of_io(READ, error))?;
                (Header::parse(&head[..len]), *room)
            }
        };
        let header = header
            .map_err(|error| Error::from_format(format!("{READ} (number {index})"), error))?;
        if u64::from(header.cbytes) > room {
            let cbytes = header.cbytes;
            return Err(invalid(format!(
                "chunk {index} has {cbytes} bytes, of which {room} are there"
            )));
        }
        if header.lazy {
            return Err(invalid(format!(
                "chunk {index} is a lazy one, whose blocks are elsewhere"
            )));
        }
        Ok(header)
    }

    /// The chunk, where it is in memory.
    pub(crate) fn in_memory(&self, header: &Header) -> Option<&[u8]> {
        match self {
            Self::Memory(bytes) => bytes.get(..header.cbytes as usize),
            Self::Stored(..) => None,
        }
    }

    /// Reads to `buffer` what `range` of its data needs, or all of it.
    pub(crate) fn fetch(
        &self,
        header: &Header,
        range: Option<Range<usize>>,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let read = |offset: usize, part: &mut [u8]| match self {
            Self::Memory(bytes) => {
                part.copy_from_slice(&bytes[offset..offset + part.len()]);
                Ok(())
            }
            Self::Stored(source, at, _) => {
                let read = source.read(at + offset as u64, part);
                read.map_err(|error| Error::of_io(READ, error))
            }
        };
        partial::fetch(header, range.unwrap_or(0..header.nbytes as usize), buffer, read)
    }
}
