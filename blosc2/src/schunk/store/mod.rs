//! Stores: they contain the chunks and the metadata of a super-chunk. Each module below has one kind of store.

mod contiguous;
mod directory;
mod memory;
mod transaction;

use std::borrow::Cow;
use std::fmt::{self, Debug};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::slice;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use blosc2_format::chunk::{EXTENDED_HEADER_LEN, Header};
use blosc2_format::frame::{Layout, Move, Offset, Outline, Sizes, Stores};
use blosc2_format::read_at::DEFAULT_REQUEST_COST;
use blosc2_format::{Limits, ReadAt};

use crate::bytes::Storage;
use crate::chunk::partial;
use crate::gate::Version;
use crate::{ChunkRef, Doing, Error, ErrorKind, Reason, Result};

pub(in crate::schunk) use contiguous::Contiguous;
pub(in crate::schunk) use directory::{Directory, Files};
pub(crate) use memory::Memory;
pub(in crate::schunk) use transaction::Transaction;

/// A store of the chunks and the metadata of a super-chunk.
///
/// The *outline* is the decoded metadata: header, index and trailer. A *place* is the position of a chunk according to
/// the index: a byte offset in a contiguous frame, the number of a file in a directory.
pub(crate) trait Store: Debug + Send + Sync {
    /// Returns the layout, which determines the meaning of the places in the outline.
    fn layout(&self) -> Layout;

    /// Returns whether the frame is contiguous; `None` for chunks in memory that are not a frame.
    fn is_contiguous(&self) -> Option<bool>;

    /// Returns the opened file or directory of the file system.
    fn opened(&self) -> Opened<'_> {
        Opened::Nothing
    }

    /// Reads the outline, and verifies its checksum as far as `verify` requires. `typesize` is the expected typesize, if it is
    /// known. Returns `None` if no other handle can change the outline.
    ///
    /// # Errors
    /// The errors of [`Outline::read`], and [`ErrorKind::InvalidData`] if the typesize differs. After an error the
    /// store is unchanged.
    fn read(
        &mut self,
        limits: &Limits,
        typesize: Option<u32>,
        verify: Verify,
    ) -> Result<Option<Outline>, Reason>;

    /// Rolls back or completes the change of a stopped writer; see [`recover`](crate::bytes::recover). No other handle
    /// may use the frame.
    ///
    /// # Errors
    /// The errors of the storage, and [`ErrorKind::Unfinished`]: recovery is not possible, and nothing was done.
    fn recover(&mut self) -> Result<(), Reason> {
        let detail = "its index has the mark of an unfinished change, which directories never have";
        Err(Reason::new(ErrorKind::Unfinished, detail))
    }

    /// Returns the source for the unread rest of the outline. Reading from the source fails if the frame has changed
    /// since the last [`read`](Self::read).
    fn source(&self) -> &dyn ReadAt;

    /// Releases the source, which is no longer needed.
    fn release(&mut self) {}

    /// Returns the chunk at a place, if it is in memory without a frame.
    fn chunk_in_memory(&self, _place: u64) -> Option<&[u8]> {
        None
    }

    /// Finds the chunk at a place.
    fn chunk(&self, outline: &Outline, place: u64) -> Result<Located<'_>, Reason>;

    /// Returns the cost of a request to the storage; see [`ReadAt::request_cost`].
    fn request_cost(&self) -> u64 {
        DEFAULT_REQUEST_COST
    }

    /// Checks that the bytes of the chunks with these numbers, which were read before this call, are the bytes of these
    /// chunks. Another program that does not lock the frame can have stored another chunk there. Returns `false` if this
    /// is not certain: the chunks have to be read again.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`]: another program has moved a chunk; and the errors of [`read`](Self::read).
    fn confirm(&self, _: &Outline, _: &[usize], _: &Limits) -> Result<bool, Reason> {
        Ok(true)
    }

    /// Returns whether the storage can become shorter, as far as this is known.
    fn shrinks(&self) -> bool {
        false
    }

    /// Returns the bytes of a contiguous frame.
    fn frame(&self) -> &dyn ReadAt {
        &NOTHING
    }

    /// Stores a change atomically: chunks at their places, and the metadata. The chunks at the places `freed` are
    /// removed.
    fn commit(
        &mut self,
        outline: &mut Outline,
        stores: Stores<'_>,
        freed: &[u64],
    ) -> Result<(), Reason>;

    /// Stores chunks of a new frame. The frame is incomplete until [`finish`](Self::finish).
    fn add(&mut self, outline: &Outline, stores: Stores<'_>) -> Result<(), Reason>;

    /// Writes the metadata of a new frame, which is then complete.
    fn finish(&mut self, outline: &mut Outline) -> Result<(), Reason>;

    /// Returns the length of the frame, or of the index file for a directory; `None` for chunks that are not a frame.
    fn frame_len(&self) -> io::Result<Option<u64>>;

    /// Returns the number of stored bytes.
    fn stored_bytes(&self) -> u64;

    /// Syncs all data to disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Takes the bytes of the frame, if they are a vector.
    fn take_vec(&mut self) -> Option<Vec<u8>> {
        None
    }
}

/// The file or directory that a store has opened.
#[derive(Debug)]
pub(crate) enum Opened<'a> {
    Nothing,
    File(&'a File),
    Directory(&'a Path),
}

/// The state of a super-chunk that a handle has read, and its store.
#[derive(Debug)]
pub(super) struct State {
    pub(super) outline: Outline,
    pub(super) store: Box<dyn Store>,
    /// The version of the file that this handle has read.
    pub(in crate::schunk) version: Version,
    /// Whether the frame is being created. It is incomplete until [`finish`](Self::finish).
    pub(super) unfinished: bool,
    pub(super) limits: Limits,
    pub(super) verify: Verify,
    pub(super) transaction: Option<Transaction>,
    /// The stored search indexes that were marked as stale last.
    pub(super) outdated: Vec<u8>,
}

/// Whether the content of a frame is compared with its checksums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verify {
    Never,
    IfAny,
    /// A frame without checksums of its current state is refused.
    Required,
}

/// The bytes of a chunk.
#[derive(Debug)]
pub(crate) enum Located<'a> {
    Memory(Cow<'a, [u8]>),
    /// A source, the offset of the chunk in the source, and the maximum length of the chunk.
    Stored(Source<'a>, u64, u64),
}

pub(crate) enum Source<'a> {
    Storage(&'a dyn Storage),
    /// A file of a directory.
    File(Box<dyn ReadAt + Send + Sync>),
}

impl Source<'_> {
    pub(super) fn as_dyn(&self) -> &dyn ReadAt {
        match self {
            Self::Storage(storage) => *storage,
            Self::File(file) => file,
        }
    }
}

impl fmt::Debug for Source<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Source")
    }
}

const READ: &str = "read a chunk";
/// The number of bytes that one commit moves to close gaps.
const MOVED: u64 = 4 << 20;
/// How often chunks are read if another program changes the frame at the same time, and the time between two attempts
/// during one change.
const ATTEMPTS: usize = 100;
const PAUSE: Duration = Duration::from_millis(1);

impl State {
    pub(in crate::schunk) fn new(
        outline: Outline,
        store: Box<dyn Store>,
        version: Version,
        unfinished: bool,
        limits: Limits,
    ) -> Self {
        let (verify, transaction, outdated) = (Verify::IfAny, None, Vec::new());
        Self { outline, store, version, unfinished, limits, verify, transaction, outdated }
    }

    pub(in crate::schunk) fn nchunks(&self) -> usize {
        // A frame with more chunks than `usize` can count was rejected.
        usize::try_from(self.outline.nchunks()).unwrap_or(usize::MAX)
    }

    /// Returns the place of a chunk.
    pub(in crate::schunk) fn offset(&self, index: usize) -> Result<Offset, Reason> {
        if let Some(offset) = self.outline.decoded(index as u64) {
            return Ok(offset);
        }
        let offset = self.outline.offset(index as u64, self.store.source());
        offset?.ok_or_else(|| {
            let nchunks = self.outline.nchunks();
            let detail = format!("there are {nchunks} chunks, got the index {index}");
            Reason::new(ErrorKind::OutOfBounds, detail)
        })
    }

    /// Finds the chunk at a place: in the transaction in progress, or in the store.
    pub(in crate::schunk) fn chunk(&self, place: u64) -> Result<Located<'_>, Reason> {
        let Some(transaction) = &self.transaction else {
            return self.store.chunk(&self.outline, place);
        };
        match transaction.chunk(place) {
            Some(chunk) => Ok(Located::Memory(chunk.into())),
            // The stored frame still has the sizes from before the transaction.
            None => self.store.chunk(transaction.outline(), place),
        }
    }

    /// Returns a chunk of a super-chunk in memory that is not a frame, if the header of the chunk differs from that of an
    /// earlier chunk only in the compressed size. Costs less than [`locate`](Self::locate). This matters for small chunks:
    /// 4 KiB are decompressed in 150 ns.
    #[inline]
    pub(super) fn known_chunk(&self, index: usize) -> Option<ChunkRef<'_>> {
        let Offset::At(place) = self.outline.decoded(index as u64)? else { return None };
        if self.transaction.is_some() {
            return None;
        }
        let bytes = self.store.chunk_in_memory(place)?;
        let (header, cbytes) = self.outline.known_chunk_header(index as u64, bytes)?;
        let mut header = header.clone();
        header.cbytes = cbytes;
        Some(ChunkRef::trusted(bytes.get(..cbytes as usize)?, header))
    }

    /// Finds a chunk and reads its header.
    pub(super) fn locate(&self, index: usize) -> Result<(Located<'_>, Header)> {
        let mut front = [0; EXTENDED_HEADER_LEN];
        self.locate_with(index, &mut front).map(|(located, header, _)| (located, header))
    }

    /// Finds a chunk and reads its header. If the chunk is not in memory, fills `front` with the first bytes of the chunk.
    /// Returns their number.
    pub(super) fn locate_with(
        &self,
        index: usize,
        front: &mut [u8],
    ) -> Result<(Located<'_>, Header, usize)> {
        let mut locate = || -> Result<_, Reason> {
            let number = index as u64;
            let located = match self.offset(index)? {
                Offset::Special(special) => {
                    Located::Memory(self.outline.special_chunk(number, special)?.into())
                }
                Offset::At(place) => self.chunk(place)?,
            };
            let (head, at, room, known) = match &located {
                Located::Memory(bytes) => (&bytes[..], 0, bytes.len() as u64, 0),
                Located::Stored(source, at, room) => {
                    let len = usize::try_from(*room).unwrap_or(usize::MAX).min(front.len());
                    source.as_dyn().read_exact_at(*at, &mut front[..len])?;
                    (&front[..len], *at, *room, len)
                }
            };
            let header = self.outline.chunk_header(number, head, at, room)?;
            Ok((located, header, known))
        };
        locate().map_err(|reason| reason.doing(format!("read chunk {index}")))
    }

    /// Calls `read`, which reads bytes of the chunks with these numbers. Repeats this if another program changes the
    /// frame at the same time.
    pub(super) fn confirmed<R>(
        &self,
        numbers: &[usize],
        mut read: impl FnMut() -> Result<R>,
    ) -> Result<R> {
        for _ in 0..ATTEMPTS {
            let result = read();
            match self.store.confirm(&self.outline, numbers, &self.limits).doing(READ) {
                Ok(true) => return result,
                Ok(false) => {}
                // The other program is changing the frame.
                Err(error) if error.kind() == ErrorKind::Unfinished => thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
        let detail = "another program changes it all the time, or was interrupted during a change";
        Err(Error::new(ErrorKind::Busy, READ, detail))
    }

    /// Returns the sizes of a chunk that will be removed.
    pub(super) fn sizes(&self, index: usize) -> Result<Sizes, Reason> {
        let is_stored = matches!(self.offset(index)?, Offset::At(_));
        if let (false, Some(nbytes)) = (is_stored, self.outline.nbytes_of(index as u64)) {
            return Ok(Sizes { nbytes, cbytes: 0 });
        }
        let (_, header) = self.locate(index)?;
        Ok(Sizes { nbytes: header.nbytes, cbytes: if is_stored { header.cbytes } else { 0 } })
    }

    /// Reads the entry of the last chunk in the index, which is sufficient to append chunks and to change metadata.
    pub(super) fn load_last(&mut self) -> Result<(), Reason> {
        match (self.outline.layout(), self.nchunks().checked_sub(1)) {
            (Layout::Contiguous, Some(last)) => self.offset(last).map(drop),
            _ => self.load(),
        }
    }

    /// Reads the rest of the index. Most changes need the complete index.
    pub(super) fn load(&mut self) -> Result<(), Reason> {
        if !self.outline.is_loaded() {
            self.outline.load(self.store.source())?;
            self.store.release();
        }
        Ok(())
    }

    /// Stores a change: the new chunks and the metadata. Removes the chunks at the places `freed`. In a transaction,
    /// [`commit_transaction`](Self::commit_transaction) does this later.
    pub(in crate::schunk) fn commit(
        &mut self,
        stores: Stores<'_>,
        freed: &[u64],
    ) -> Result<(), Reason> {
        if let Some(transaction) = &mut self.transaction {
            transaction.add(&self.outline, stores, freed);
            return Ok(());
        }
        match self.unfinished {
            true => self.store.add(&self.outline, stores)?,
            false => self.store.commit(&mut self.outline, stores, freed)?,
        }
        self.outline.committed();
        Ok(())
    }

    /// Finds the gaps of a contiguous frame, before a change that makes a gap of about `bytes` bytes.
    pub(super) fn survey(&mut self, bytes: u64) -> Result<(), Reason> {
        let surveyed = self.outline.survey(self.store.frame(), bytes);
        surveyed.map_err(Reason::from)
    }

    /// Moves chunks into the gaps of a contiguous frame if the gaps are too large. Returns `false` if this failed and
    /// could not be rolled back.
    pub(super) fn reclaim(&mut self) -> bool {
        if self.unfinished || self.transaction.is_some() || !self.store.shrinks() {
            return true;
        }
        // The change may have made large gaps. If they cannot be found, the next change tries again.
        let _ = self.outline.survey(self.store.frame(), 0);
        let Some(goal) = self.outline.acceptable_gaps() else { return true };
        // The change itself is stored. Each later change tries again.
        self.close_gaps(goal, false).is_ok() || self.reload().is_ok()
    }

    /// Closes all gaps of a contiguous frame.
    pub(super) fn compact(&mut self) -> Result<(), Reason> {
        self.load()?;
        let is_known = self.outline.find_gaps(self.store.frame());
        if !is_known? {
            let detail =
                "chunks overlap, or the header of a chunk is invalid: check and repair the frame";
            return Err(Reason::new(ErrorKind::InvalidData, detail));
        }
        self.close_gaps(0, true)?;
        match self.outline.release_spare() {
            true => self.commit(Stores::new(), &[]),
            false => Ok(()),
        }
    }

    /// Moves chunks until at most `goal` bytes are in gaps, in several commits. If `in_order` is set, the chunks keep
    /// their order in the frame.
    fn close_gaps(&mut self, goal: u64, in_order: bool) -> Result<(), Reason> {
        loop {
            let mut outline = self.outline.clone();
            let moves = outline.relocate(goal, MOVED, in_order)?;
            if moves.is_empty() {
                return Ok(());
            }
            let (frame, start) = (self.store.frame(), outline.header_len());
            let read = |each: &Move| {
                let bytes = frame.read_vec_at(start + each.from, each.len);
                bytes.map(|bytes| (each.to, bytes.into())).map_err(Reason::from)
            };
            let stores = moves.iter().map(read).collect::<Result<Stores<'_>, _>>()?;
            self.outline = outline;
            self.store.commit(&mut self.outline, stores, &[])?;
            self.outline.committed();
        }
    }

    /// Ends the transaction and stores its changes.
    pub(super) fn commit_transaction(&mut self) -> Result<(), Reason> {
        let (stores, freed) =
            self.transaction.take().map(Transaction::into_stores).unwrap_or_default();
        self.commit(stores, &freed)
    }

    /// Ends the transaction and discards its changes.
    pub(super) fn roll_back(&mut self) {
        if let Some(transaction) = self.transaction.take() {
            self.outline = transaction.into_outline();
        }
    }

    /// Writes the metadata of a new frame, which is then complete.
    pub(in crate::schunk) fn finish(&mut self) -> Result<(), Reason> {
        self.unfinished = false;
        self.store.finish(&mut self.outline)
    }

    /// Reads the metadata again.
    pub(super) fn reload(&mut self) -> Result<(), Reason> {
        if self.transaction.is_some() {
            return Err(changed());
        }
        let typesize = Some(self.outline.params().typesize);
        let outline = self.store.read(&self.limits, typesize, self.verify)?;
        let Some(outline) = outline else { return Ok(()) };
        self.outline = outline;
        Ok(())
    }

    /// Re-reads the metadata. If a writer was stopped and `is_alone` is set, [recovers](Store::recover) the frame
    /// first. `is_alone` means that no other writer can be alive.
    pub(super) fn reload_or_recover(&mut self, is_alone: bool) -> Result<(), Reason> {
        match self.reload() {
            Err(error) if is_alone && error.kind() == ErrorKind::Unfinished => {
                self.store.recover()?;
                self.reload()
            }
            reloaded => reloaded,
        }
    }

    /// Returns the length of the frame, or of the index file for a directory. Returns `None` for chunks that are not a
    /// frame, and during a transaction, because the frame does not contain its changes yet.
    pub(super) fn frame_len(&self) -> Result<Option<u64>> {
        if self.transaction.is_some() {
            return Ok(None);
        }
        self.store.frame_len().map_err(|error| Error::of_io("measure a frame", error))
    }
}

impl Located<'_> {
    /// Returns the chunk, if it is in memory.
    pub(super) fn in_memory(&self, header: &Header) -> Option<&[u8]> {
        match self {
            Self::Memory(bytes) => bytes.get(..header.cbytes as usize),
            Self::Stored(..) => None,
        }
    }

    /// Reads the parts of the chunk that the `ranges` of the data need, or the whole chunk, into `buffer`, which contains
    /// the first `known` bytes of the chunk.
    pub(in crate::schunk) fn fetch(
        &self,
        header: &Header,
        ranges: Option<&[Range<usize>]>,
        known: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<()> {
        let read = |parts: &mut [(u64, &mut [u8])]| {
            let read = match self {
                Self::Memory(bytes) => bytes.read_ranges_at(parts),
                Self::Stored(source, at, _) => {
                    parts.iter_mut().for_each(|(offset, _)| *offset += at);
                    source.as_dyn().read_ranges_at(parts)
                }
            };
            read.map_err(|error| Error::of_io(READ, error))
        };
        let all = 0..header.nbytes as usize;
        partial::fetch(header, ranges.unwrap_or(slice::from_ref(&all)), known, buffer, read)
    }
}

/// Reads an outline, checks its typesize if it is known, and verifies its checksum.
fn read_outline(
    source: &dyn ReadAt,
    layout: Layout,
    limits: &Limits,
    typesize: Option<u32>,
    verify: Verify,
) -> Result<Outline, Reason> {
    let outline = Outline::read(source, layout, limits);
    let outline = outline?;
    let verified = match verify {
        Verify::Never => Ok(()),
        Verify::IfAny => outline.verify_metadata(),
        Verify::Required => outline.require_checksums(),
    };
    verified?;
    let now = outline.params().typesize;
    match typesize.filter(|&before| before != now) {
        Some(before) => {
            let detail = format!("its items had {before} bytes and have {now} now: open it again");
            Err(Reason::new(ErrorKind::InvalidData, detail))
        }
        None => Ok(outline),
    }
}

/// The source of an outline. Reading fails after another handle or program has changed the frame.
#[derive(Debug)]
struct Stamped {
    storage: Box<dyn Storage>,
    stamp: Option<Stamp>,
}

/// A fingerprint of a frame, to detect changes by other handles and programs.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    /// The start of the header, which contains all sizes.
    header: [u8; Stamp::LEN],
    /// The length and the modification time of the file, if it is a file.
    file: Option<(u64, Option<SystemTime>)>,
}

impl Stamp {
    const LEN: usize = 64;

    /// Returns `None` if there is no header.
    fn of(storage: &dyn Storage) -> Result<Option<Self>, Reason> {
        if storage.size()? < Self::LEN as u64 {
            return Ok(None);
        }
        let mut header = [0; Self::LEN];
        storage.read_exact_at(0, &mut header)?;
        Ok(Some(Self { header, file: Self::file(storage) }))
    }

    fn file(storage: &dyn Storage) -> Option<(u64, Option<SystemTime>)> {
        let metadata = storage.file()?.metadata().ok()?;
        Some((metadata.len(), metadata.modified().ok()))
    }
}

impl Stamped {
    fn new(storage: impl Storage + 'static) -> Self {
        Self { storage: Box::new(storage), stamp: None }
    }

    /// Returns whether the sizes of the frame are unchanged since the last read or write of this handle. They change
    /// only if claims and locks do not protect the frame.
    fn is_same_frame(&self) -> io::Result<bool> {
        let Some(stamp) = &self.stamp else { return Ok(true) };
        let mut header = [0; Stamp::LEN];
        self.storage.read_exact_at(0, &mut header)?;
        Ok(header == stamp.header)
    }

    /// Checks that the file has not changed since the outline was read.
    fn check(&self) -> io::Result<()> {
        let file = self.stamp.as_ref().and_then(|stamp| stamp.file);
        if self.is_same_frame()? && (file.is_none() || Stamp::file(&*self.storage) == file) {
            return Ok(());
        }
        Err(outdated().doing(READ).into())
    }
}

impl ReadAt for Stamped {
    fn size(&self) -> io::Result<u64> {
        self.storage.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_ranges_at(&mut [(offset, buffer)])
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let read = self.storage.read_ranges_at(ranges);
        // The storage may have become shorter.
        if !matches!(&read, Err(error) if error.kind() != io::ErrorKind::UnexpectedEof) {
            self.check()?;
        }
        read
    }

    fn request_cost(&self) -> u64 {
        self.storage.request_cost()
    }
}

/// The error of a part of a frame that another handle or program has changed since the frame was opened.
fn outdated() -> Reason {
    let detail = "another handle or program has changed it since it was opened: call `refresh` to read it again";
    Reason::new(ErrorKind::Busy, detail)
}

/// The error of a frame that another handle or program has changed since the last read or write of this handle.
fn changed() -> Reason {
    let detail = "another handle or program has changed it, and it was read again: the change can be retried";
    Reason::new(ErrorKind::Busy, detail)
}

/// The error of a chunk that does not exist at its place.
fn missing(what: &str) -> Reason {
    Reason::new(ErrorKind::InvalidData, what)
}

/// An empty source, for outlines that are in memory completely.
const NOTHING: &[u8] = &[];

/// The metadata of a frame.
#[derive(Debug)]
struct Metadata {
    header: Vec<u8>,
    /// The index chunk, or those parts of it that were written last, with their offsets.
    index: Vec<(u64, Arc<[u8]>)>,
    index_len: usize,
    trailer: Vec<u8>,
}

impl Metadata {
    /// Returns the metadata for an index chunk of `index_len` bytes with these parts.
    fn with_index(
        outline: &Outline,
        index_len: usize,
        index: Vec<(u64, Arc<[u8]>)>,
    ) -> Result<Self, Reason> {
        let trailer = outline.trailer(index_len);
        let trailer = trailer?;
        let header = outline.header(outline.frame_len(index_len + trailer.len()));
        if header.len() as u64 != outline.header_len() {
            let detail = format!("its header is invalid, and would need {} bytes", header.len());
            return Err(Reason::new(ErrorKind::InvalidData, detail));
        }
        Ok(Self { header, index, index_len, trailer })
    }

    /// Returns the parts of the index and the trailer, with their offsets, for an index at `index_at`.
    fn end(&self, index_at: u64) -> impl Iterator<Item = (u64, &[u8])> {
        let index = self.index.iter().map(move |(at, bytes)| (index_at + at, &bytes[..]));
        index.chain([(index_at + self.index_len as u64, &self.trailer[..])])
    }
}

fn metadata_of(outline: &mut Outline) -> Result<Metadata, Reason> {
    let index = outline.index()?;
    Metadata::with_index(outline, index.len(), vec![(0, index)])
}
