//! Objects as sources of bytes.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use blosc2::storage::ReadAt;
use bytes::Bytes;
use futures::StreamExt;
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectMeta};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;

use crate::cache::PAGE;
use crate::disk::{Entries, Known, PIECE, VersionEntries};
use crate::fault::{Fault, failed, may_be_empty};
use crate::{Remote, runtime};

/// The number of bytes at the start and at the end that opening an object reads. They include the header, the index and
/// the trailer of most files.
const END: u64 = PIECE;
/// The minimum size of the requests into which a large read is divided, in bytes.
const LEAST_REQUEST: u64 = 1 << 20;
/// The time after a change in which another change can leave the ETag as it is: some servers derive it from the
/// modification time in seconds.
const UNSETTLED: Duration = Duration::from_secs(2);

/// An object in an object store, open for reading. Its bytes can be read through [`ReadAt`].
///
/// Opening an object takes one request, or two requests if the object has more than 64 KiB. Reads request only bytes
/// that are neither in the [cache](Remote::cache) nor in the [disk cache](Remote::disk_cache).
///
/// If the object changes after it was opened, reads that need a request fail with
/// [`ErrorKind::Busy`](blosc2::ErrorKind::Busy), so that the data of two versions is not mixed. The server determines
/// which changes are detected:
///
/// | the server sends | detected changes |
/// |---|---|
/// | ETags | all changes: the ETag differs. Some servers derive it from the size and the modification time in seconds, such as nginx: then not a second change within the same second that keeps the size |
/// | modification times, without ETags | the size or the modification time differs; modification times have a resolution of one second |
/// | sizes only | the size differs |
///
/// ```
/// # use std::sync::Arc;
/// use blosc2::storage::{ReadAt, ReadOnly};
/// use blosc2::{NDArray, OpenOptions, Target};
/// use blosc2_object_store::Remote;
/// # let remote = Remote::new(Arc::new(object_store::memory::InMemory::new()));
/// # remote.save("a.b2nd", NDArray::builder().arange(0i32, 100, 1)?.schunk(), false)?;
///
/// let object = remote.object("a.b2nd")?;
/// assert_eq!(object.read_vec_at(2, 7)?, b"b2frame");
/// // With other options than those of `Remote::array`.
/// let options = OpenOptions::new().max_read(1 << 30);
/// let array = NDArray::open_with(Target::storage(ReadOnly::new(object)), &options)?;
/// assert_eq!(array.item::<i32>(42)?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Object(Arc<Inner>);

struct Inner {
    remote: Remote,
    path: Path,
    size: u64,
    version: Arc<Version>,
    /// The first bytes.
    head: Bytes,
    /// The last bytes.
    tail: Bytes,
    /// All bytes, if the server has sent them in response to the request of a range.
    whole: OnceLock<Bytes>,
    /// The cache on disk, if it can contain this version.
    disk: Option<VersionEntries>,
}

/// The version of an object that was opened.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Version {
    path: Path,
    e_tag: Option<String>,
    size: u64,
    modified: i64,
    /// Distinguishes versions without ETags, because these can be different.
    number: u64,
}

impl Version {
    fn of(path: &Path, meta: &ObjectMeta) -> Self {
        Self::new(path, meta.e_tag.clone(), meta.size, meta.last_modified.timestamp_millis())
    }

    fn new(path: &Path, e_tag: Option<String>, size: u64, modified: i64) -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(1);
        let number = match e_tag {
            Some(_) => 0,
            None => NUMBER.fetch_add(1, Ordering::Relaxed),
        };
        Self { path: path.clone(), e_tag, size, modified, number }
    }

    /// Whether a response is about this version.
    fn is(&self, meta: &ObjectMeta) -> bool {
        let is_same_time = || self.modified == meta.last_modified.timestamp_millis();
        self.size == meta.size
            && match (&self.e_tag, &meta.e_tag) {
                (Some(own), Some(other)) => own == other,
                (None, None) => is_same_time(),
                _ => false,
            }
    }

    /// The ETag that a request demands. A weak ETag never matches.
    fn condition(&self) -> Option<String> {
        self.e_tag.clone().filter(|e_tag| !e_tag.starts_with("W/"))
    }
}

/// All bytes of an object, in the extensions of a response: the server has ignored the requested range.
#[derive(Debug, Clone)]
#[cfg_attr(
    not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")),
    allow(dead_code, reason = "only the client for servers creates it")
)]
pub(crate) struct Whole(pub(crate) Bytes);

/// When the server has sent a response, by its own clock, in the extensions of the response.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(
    not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")),
    allow(dead_code, reason = "only the client for servers creates it")
)]
pub(crate) struct Sent(pub(crate) SystemTime);

/// Whether a later change of the object certainly leads to another ETag.
fn is_settled(response: &GetResult) -> bool {
    let sent = response.extensions.get().map_or_else(SystemTime::now, |Sent(time)| *time);
    let modified = response.meta.last_modified.timestamp_millis();
    // 1970 if the server sends no time.
    let modified = UNIX_EPOCH.checked_add(Duration::from_millis(modified.max(0).cast_unsigned()));
    modified
        .and_then(|modified| sent.duration_since(modified).ok())
        .is_some_and(|age| age >= UNSETTLED)
}

/// What a request sends to the reading thread.
enum Message {
    /// The bytes at an offset of the object.
    Data(u64, Bytes),
    /// With the permit of the request: the next request starts when the reading thread has processed the data of this
    /// one, which limits the data that waits.
    Done(Option<OwnedSemaphorePermit>),
    Failed(io::Error),
}

impl Object {
    /// Reads both ends of an object.
    pub(crate) fn open(remote: Remote, path: Path) -> io::Result<Self> {
        let entries = remote.entries(&path);
        let known = entries.as_ref().and_then(Entries::known);
        // The end of the version that is known, if the cache on disk has it.
        let tail = known.as_ref().and_then(|known| {
            let version = entries.as_ref()?.version(Some(&known.e_tag), known.size)?;
            let range = tail_of(known.size, true);
            let pieces = range.start / PIECE..range.end.div_ceil(PIECE);
            let parts: Option<Vec<Bytes>> = pieces.map(|piece| version.get(piece)).collect();
            parts.map(|parts| parts.concat().into())
        });
        let opened = Inner::open(remote, path, known.map(|known| (known, tail)));
        let (inner, received) = runtime::wait(opened)?.map_err(failed)?;
        received.into_iter().for_each(|range| inner.keep(range));
        Ok(Self(Arc::new(inner)))
    }

    /// Returns the path of the object in its store.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the ETag of the version that was opened. Returns `None` if the server does not send ETags.
    pub fn e_tag(&self) -> Option<&str> {
        self.0.version.e_tag.as_deref()
    }
}

impl Inner {
    /// `is_settled`: see [`is_settled`].
    fn new(remote: Remote, path: Path, version: Version, head: Bytes, is_settled: bool) -> Self {
        let (size, version) = (version.size, Arc::new(version));
        let entries = remote.entries(&path).filter(|_| size > 0);
        let e_tag = version.e_tag.as_deref().filter(|_| is_settled);
        let disk = entries.and_then(|entries| entries.version(e_tag, size));
        let (tail, whole) = (Bytes::new(), OnceLock::new());
        Self { remote, path, size, version, head, tail, whole, disk }
    }

    /// Reads both ends of an object, and returns it with the ranges that were transferred. If it is still the known
    /// version, its start is not transferred, and its end neither if it is given.
    async fn open(
        remote: Remote,
        path: Path,
        known: Option<(Known, Option<Bytes>)>,
    ) -> Result<(Self, Vec<Range<u64>>), object_store::Error> {
        let _permit = remote.permits.clone().acquire_owned().await;
        let options = GetOptions {
            range: Some(GetRange::Bounded(0..END)),
            if_none_match: known.as_ref().map(|(known, _)| known.e_tag.clone()),
            ..Default::default()
        };
        let mut received = Vec::new();
        let (mut inner, tail) = match (remote.get(&path, options).await, known) {
            (Ok(first), known) => {
                let (size, version) = (first.meta.size, Version::of(&path, &first.meta));
                let whole = first.extensions.get::<Whole>().cloned();
                let is_settled = is_settled(&first);
                let head = collect(first, 0..size.min(END)).await?;
                let mut inner = Self::new(remote, path, version, head, is_settled);
                if let Some(Whole(bytes)) = whole {
                    inner.whole = bytes.into();
                    received.push(0..size);
                    return Ok((inner, received));
                }
                received.push(0..size.min(END));
                // The server can ignore the condition.
                let is_known = |known: &Known| {
                    known.size == size && Some(&known.e_tag) == inner.version.e_tag.as_ref()
                };
                let known = known.filter(|(known, _)| is_known(known));
                (inner, known.and_then(|(_, tail)| tail))
            }
            (Err(object_store::Error::NotModified { .. }), Some((known, tail))) => {
                let version = Version::new(&path, Some(known.e_tag), known.size, known.modified);
                (Self::new(remote, path, version, known.head, true), tail)
            }
            (Err(error), _) => {
                let e_tag = match Fault::of(&error) {
                    Some(Fault::Empty(e_tag)) => e_tag.clone(),
                    _ if may_be_empty(&error) => match remote.head(&path).await {
                        Ok(meta) if meta.size == 0 => meta.e_tag,
                        _ => return Err(error),
                    },
                    _ => return Err(error),
                };
                let version = Version::new(&path, e_tag, 0, 0);
                return Ok((Self::new(remote, path, version, Bytes::new(), true), received));
            }
        };
        let range = tail_of(inner.size, inner.disk.is_some());
        if let Some(tail) = tail {
            inner.tail = tail;
        } else if !range.is_empty() {
            inner.tail = collect(inner.get(range.clone()).await?, range.clone()).await?;
            received.push(range);
        }
        Ok((inner, received))
    }

    /// Writes a range that is in memory, and starts where a piece does, to the cache on disk.
    fn keep(&self, range: Range<u64>) {
        let Some(disk) = self.disk.as_ref().filter(|disk| disk.takes(range.end - range.start))
        else {
            return;
        };
        for number in range.start / PIECE..range.end.div_ceil(PIECE) {
            let piece = disk.piece(number);
            let bytes = self.in_memory(piece.start, (piece.end - piece.start) as usize);
            match (number, bytes) {
                (0, Some(_)) => self.keep_first(disk),
                (_, Some(bytes)) => disk.put(number, bytes),
                (_, None) => {}
            }
        }
    }

    /// Writes the first bytes to the cache on disk, with the version.
    fn keep_first(&self, disk: &VersionEntries) {
        let Version { e_tag: Some(e_tag), modified, .. } = &*self.version else { return };
        let (e_tag, head) = (e_tag.clone(), self.head.clone());
        disk.put_first(&Known { e_tag, size: self.size, modified: *modified, head });
    }

    /// Requests a range of the version that was opened.
    async fn get(&self, range: Range<u64>) -> Result<GetResult, object_store::Error> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.version.condition(),
            ..Default::default()
        };
        let response = self.remote.get(&self.path, options).await?;
        if self.version.is(&response.meta) {
            if let Some(Whole(bytes)) = response.extensions.get() {
                // Another request can have set it.
                let _ = self.whole.set(bytes.clone());
            }
            return Ok(response);
        }
        let path = self.path.to_string();
        let source = "the server returned another version".into();
        Err(object_store::Error::Precondition { path, source })
    }

    /// Returns the bytes of a range that are in memory, outside of the cache.
    fn in_memory(&self, start: u64, len: usize) -> Option<&[u8]> {
        let tail_start = self.size.saturating_sub(self.tail.len() as u64);
        let parts = [(0, &self.head), (tail_start, &self.tail)];
        let whole = self.whole.get().map(|bytes| (0, bytes));
        parts.into_iter().chain(whole).find_map(|(from, bytes)| {
            let from = usize::try_from(start.checked_sub(from)?).ok()?;
            bytes.get(from..from.checked_add(len)?)
        })
    }

    /// Calls `take` with the bytes of ascending ranges, in parts: from the cache on disk, and by requests.
    fn fetch(
        self: &Arc<Self>,
        ranges: &[Range<u64>],
        mut take: impl FnMut(u64, &Bytes),
    ) -> io::Result<()> {
        // What is written if nothing is on disk: many short ranges are in many pieces.
        let whole = ranges.iter().map(|range| whole_pieces(range, self.size));
        let total = self.merge(whole).iter().map(|range| range.end - range.start).sum();
        let Some(disk) = self.disk.as_ref().filter(|disk| disk.takes(total)) else {
            return self.request(ranges, take);
        };
        // The part of each range.
        let mut give = |offset: u64, bytes: &Bytes| {
            let end = offset + bytes.len() as u64;
            let first = ranges.partition_point(|range| range.end <= offset);
            for range in ranges[first..].iter().take_while(|range| range.start < end) {
                let (from, to) = (offset.max(range.start), end.min(range.end));
                take(from, &bytes.slice((from - offset) as usize..(to - offset) as usize));
            }
        };
        let (mut next, mut missing) = (0, Vec::new());
        for range in ranges {
            let end = range.end.div_ceil(PIECE);
            for number in next.max(range.start / PIECE)..end {
                let piece = disk.piece(number);
                let len = (piece.end - piece.start) as usize;
                match self.in_memory(piece.start, len) {
                    Some(bytes) => give(piece.start, &Bytes::copy_from_slice(bytes)),
                    None => match disk.get(number) {
                        Some(bytes) => give(piece.start, &bytes),
                        None => missing.push(piece),
                    },
                }
            }
            next = end;
        }
        // The pieces that have arrived in part, with the number of their bytes that have arrived.
        let mut partial: HashMap<u64, (Vec<u8>, usize)> = HashMap::new();
        self.request(&self.merge(missing.into_iter()), |mut offset, bytes| {
            give(offset, bytes);
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                let number = offset / PIECE;
                let piece = disk.piece(number);
                let (part, after) = rest.split_at(rest.len().min((piece.end - offset) as usize));
                let (content, filled) = partial.entry(number).or_default();
                content.resize((piece.end - piece.start) as usize, 0);
                content[(offset - piece.start) as usize..][..part.len()].copy_from_slice(part);
                *filled += part.len();
                if *filled == content.len() {
                    disk.put(number, content);
                    partial.remove(&number);
                }
                offset += part.len() as u64;
                rest = after;
            }
        })
    }

    /// Sends the requests for ascending ranges, and calls `take` with the bytes of each response, in parts.
    fn request(
        self: &Arc<Self>,
        ranges: &[Range<u64>],
        mut take: impl FnMut(u64, &Bytes),
    ) -> io::Result<()> {
        let total: u64 = ranges.iter().map(|range| range.end - range.start).sum();
        let most = self.remote.request_size;
        let each = total.div_ceil(self.remote.concurrency as u64);
        let each = each.clamp(LEAST_REQUEST.min(most), most);
        let handle = runtime::handle()?;
        let (send, receive) = mpsc::channel();
        // Dropping the set stops the requests that are still running.
        let mut tasks = JoinSet::new();
        for range in ranges {
            // Parts of equal size.
            let len = range.end - range.start;
            let part = len.div_ceil(len.div_ceil(each));
            let mut start = range.start;
            while start < range.end {
                let end = range.end.min(start.saturating_add(part));
                let (inner, send) = (Arc::clone(self), send.clone());
                tasks.spawn_on(async move { inner.send(start..end, &send).await }, handle);
                start = end;
            }
        }
        drop(send);
        let mut running = tasks.len();
        while running > 0 {
            match receive.recv() {
                Ok(Message::Data(offset, bytes)) => take(offset, &bytes),
                Ok(Message::Done(permit)) => {
                    drop(permit);
                    running -= 1;
                }
                Ok(Message::Failed(error)) => return Err(error),
                Err(_) => return Err(io::Error::other("a request has panicked")),
            }
        }
        Ok(())
    }

    /// Requests a range, and sends the response.
    async fn send(&self, range: Range<u64>, send: &mpsc::Sender<Message>) {
        // It is never closed.
        let permit = Arc::clone(&self.remote.permits).acquire_owned().await.ok();
        let transfer = async {
            let response = self.get(range.clone()).await?;
            // After an error nobody receives.
            let take = |at, bytes| send.send(Message::Data(at, bytes)).unwrap_or_default();
            body(response, range, take).await
        };
        let done = match transfer.await {
            Ok(()) => Message::Done(permit),
            Err(error) => Message::Failed(failed(error)),
        };
        // See above.
        let _ = send.send(done);
    }

    /// Reads ranges in ascending order of their starts.
    fn read(self: &Arc<Self>, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let pages = ranges.iter().map(|(start, buffer)| pages(*start, buffer.len() as u64));
        let count = pages.clone().map(|pages| pages.end - pages.start).sum();
        if self.remote.cache.takes(count)
            && let Some(pages) = self.pages(pages.flatten())?
        {
            let copy = |(start, buffer): &mut (u64, &mut [u8])| {
                let mut done = 0;
                while done < buffer.len() {
                    let at = *start + done as u64;
                    let bytes = pages.get(&(at / PAGE)).ok_or(io::ErrorKind::UnexpectedEof)?;
                    let from = &bytes[(at % PAGE) as usize..];
                    let len = from.len().min(buffer.len() - done);
                    buffer[done..done + len].copy_from_slice(&from[..len]);
                    done += len;
                }
                Ok(())
            };
            return ranges.iter_mut().try_for_each(copy);
        }
        let spans = ranges.iter().map(|(start, buffer)| *start..*start + buffer.len() as u64);
        let spans = self.merge(spans);
        let longest = ranges.iter().map(|(_, buffer)| buffer.len() as u64).max().unwrap_or(0);
        self.fetch(&spans, |offset, bytes| {
            let end = offset + bytes.len() as u64;
            // Ranges can overlap.
            let first =
                ranges.partition_point(|(start, _)| start.saturating_add(longest) <= offset);
            for (start, buffer) in &mut ranges[first..] {
                if *start >= end {
                    break;
                }
                let (from, to) = (offset.max(*start), end.min(*start + buffer.len() as u64));
                if from >= to {
                    continue;
                }
                // Both differences are within a buffer.
                let len = (to - from) as usize;
                let (source, target) = ((from - offset) as usize, (from - *start) as usize);
                buffer[target..target + len].copy_from_slice(&bytes[source..source + len]);
            }
        })
    }

    /// Returns pages, which are in ascending order, from the cache or by requests. Returns `None` if the requests would
    /// transfer more than fits in the cache.
    fn pages(
        self: &Arc<Self>,
        wanted: impl Iterator<Item = u64>,
    ) -> io::Result<Option<HashMap<u64, Bytes>>> {
        let (mut found, mut missing) = (HashMap::new(), Vec::new());
        for page in wanted {
            match self.remote.cache.get(&self.version, page) {
                Some(bytes) => drop(found.insert(page, bytes)),
                None => missing.push(page * PAGE..self.size.min((page + 1).saturating_mul(PAGE))),
            }
        }
        // Whole pages only.
        let spans = self.merge(missing.into_iter());
        let total: u64 = spans.iter().map(|span| span.end - span.start).sum();
        if !self.remote.cache.takes(total.div_ceil(PAGE)) {
            return Ok(None);
        }
        let mut buffers: Vec<Vec<u8>> = Vec::new();
        for span in &spans {
            // At most a quarter of the size of the cache.
            buffers.push(vec![0; (span.end - span.start) as usize]);
        }
        self.fetch(&spans, |offset, bytes| {
            let number = spans.partition_point(|span| span.end <= offset);
            let start = (offset - spans[number].start) as usize;
            buffers[number][start..start + bytes.len()].copy_from_slice(bytes);
        })?;
        for (span, buffer) in spans.iter().zip(&buffers) {
            for (page, bytes) in (span.start / PAGE..).zip(buffer.chunks(PAGE as usize)) {
                let bytes = Bytes::copy_from_slice(bytes);
                self.remote.cache.put(&self.version, page, bytes.clone());
                found.insert(page, bytes);
            }
        }
        Ok(Some(found))
    }

    /// Merges ascending ranges with small gaps.
    fn merge(&self, ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
        let mut merged: Vec<Range<u64>> = Vec::new();
        for range in ranges.filter(|range| !range.is_empty()) {
            match merged.last_mut() {
                Some(last) if range.start <= last.end.saturating_add(self.remote.gap) => {
                    last.end = last.end.max(range.end);
                }
                _ => merged.push(range),
            }
        }
        merged
    }
}

/// Passes the parts of the body of a response to `take`, with their offsets. The body must have the length of the
/// range.
async fn body(
    response: GetResult,
    range: Range<u64>,
    mut take: impl FnMut(u64, Bytes),
) -> Result<(), object_store::Error> {
    let invalid =
        |source: String| object_store::Error::Generic { store: "Object", source: source.into() };
    let (mut at, end) = (range.start, range.end);
    let mut body = response.into_stream();
    while let Some(bytes) = body.next().await {
        let bytes = bytes?;
        let len = bytes.len() as u64;
        if len > end - at {
            return Err(invalid("the response is longer than requested".to_owned()));
        }
        take(at, bytes);
        at += len;
    }
    match end - at {
        0 => Ok(()),
        missing => Err(invalid(format!("the response ends {missing} bytes early"))),
    }
}

/// Returns the body of a response. The range is small.
async fn collect(response: GetResult, range: Range<u64>) -> Result<Bytes, object_store::Error> {
    let mut all = Vec::with_capacity((range.end - range.start) as usize);
    body(response, range, |_, bytes| all.extend_from_slice(&bytes)).await?;
    Ok(all.into())
}

/// Returns the range at the end of an object that opening reads after the start, which can be empty. If `is_whole`, it
/// starts where a piece does.
fn tail_of(size: u64, is_whole: bool) -> Range<u64> {
    let start = size.saturating_sub(END);
    (if is_whole { start / PIECE * PIECE } else { start }).max(END.min(size))..size
}

/// Returns the range of the pieces that a range is in.
fn whole_pieces(range: &Range<u64>, size: u64) -> Range<u64> {
    range.start / PIECE * PIECE..size.min(range.end.div_ceil(PIECE).saturating_mul(PIECE))
}

/// Returns the pages of a range of bytes.
fn pages(start: u64, len: u64) -> Range<u64> {
    start / PAGE..(start + len).div_ceil(PAGE)
}

impl ReadAt for Object {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_ranges_at(&mut [(offset, buffer)])
    }

    /// Requests all ranges at once. Close ranges share a request; a large range is divided into several requests.
    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let mut rest: Vec<(u64, &mut [u8])> = Vec::new();
        for (start, buffer) in ranges {
            let end = start.checked_add(buffer.len() as u64);
            if end.is_none_or(|end| end > self.0.size) {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            match self.0.in_memory(*start, buffer.len()) {
                Some(bytes) => buffer.copy_from_slice(bytes),
                None => rest.push((*start, &mut **buffer)),
            }
        }
        rest.sort_unstable_by_key(|(start, _)| *start);
        if rest.is_empty() { Ok(()) } else { self.0.read(&mut rest) }
    }

    /// Returns the [gap](Remote::gap), but at least 4097 bytes, more than the default.
    fn request_cost(&self) -> u64 {
        self.0.remote.request_cost()
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { path, size, version, .. } = &*self.0;
        let mut debug = f.debug_struct("Object");
        debug.field("path", path).field("size", size).field("e_tag", &version.e_tag).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use object_store::ObjectStoreExt;
    use object_store::memory::InMemory;

    use super::*;

    /// The data that waits for a slow reading thread is that of as many requests as run at the same time.
    #[test]
    fn requests_wait_for_the_reading_thread() {
        const HALF: u64 = 50;
        let store = Arc::new(InMemory::new());
        let path = Path::from("a");
        let put = store.put(&path, vec![7; 200_000].into());
        futures::executor::block_on(put).unwrap();
        let remote = Remote::new(store).concurrency(2).request_size(1000);
        let Object(inner) = Object::open(remote.clone(), path).unwrap();
        let before = remote.traffic().requests;
        let mut processed = 0;
        let take = |_, bytes: &Bytes| {
            if processed < 3000 {
                // Time for requests that must not start.
                thread::sleep(Duration::from_millis(100));
            }
            // Those whose data is processed, this one, and another one.
            let started = remote.traffic().requests - before;
            assert!(started <= processed / 1000 + 2, "{started} requests after {processed} bytes");
            processed += bytes.len() as u64;
        };
        inner.request(&[0..1000 * HALF, 1000 * HALF..2000 * HALF], take).unwrap();
        assert_eq!(processed, 2000 * HALF);
        assert_eq!(remote.traffic().requests - before, 2 * HALF);
    }
}
