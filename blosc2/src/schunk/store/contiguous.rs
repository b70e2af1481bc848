//! A contiguous frame in a storage.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use blosc2_format::frame::{self, Layout, Outline, Stores, journal};
use blosc2_format::{Limits, Options, ReadAt};
use parking_lot::Mutex;

use super::{
    Located, Metadata, Opened, Source, Stamp, Stamped, Store, Verify, changed, metadata_of,
    missing, outdated, read_outline,
};
use crate::bytes::{Change, Recovery, Safety, Storage, commit, recover};
use crate::{Advice, ErrorKind, Reason, Result};

/// Adjacent writes are copied to one write of up to this number of bytes.
const SMALL: usize = 16 << 10;

/// A frame at the start of a storage.
#[derive(Debug)]
pub(in crate::schunk) struct Contiguous {
    bytes: Stamped,
    safety: Safety,
    /// The metadata that this handle has written last, so that it need not be read.
    written: Option<Metadata>,
    /// The place of the index that was last read or written.
    index_at: u64,
    /// Whether the storage can set its length; `None` if this is not known yet.
    can_cut: Option<bool>,
    /// The newest state that was found while the outline of the handle was outdated.
    newest: Mutex<Option<(Stamp, Outline)>>,
    /// Whether the file was unchanged for [`SETTLED`] when it was last compared with the stamp.
    is_settled: AtomicBool,
}

/// A change of a file has another modification time than a change that is older than this. It is more than the
/// resolution of the times of all file systems.
const SETTLED: Duration = Duration::from_secs(4);

impl Contiguous {
    pub(in crate::schunk) fn new(storage: impl Storage + 'static, safety: Safety) -> Self {
        Self {
            bytes: Stamped::new(storage),
            safety,
            written: None,
            index_at: 0,
            can_cut: None,
            newest: Mutex::new(None),
            is_settled: AtomicBool::new(false),
        }
    }

    pub(in crate::schunk) fn storage(&self) -> &dyn Storage {
        &*self.bytes.storage
    }

    /// The length of the frame in its header.
    fn stored_len(&self) -> io::Result<u64> {
        let mut len = [0; 8];
        self.storage().read_exact_at(journal::MARK_AT, &mut len)?;
        Ok(u64::from_be_bytes(len))
    }
}

impl Store for Contiguous {
    fn layout(&self) -> Layout {
        Layout::Contiguous
    }

    fn is_contiguous(&self) -> Option<bool> {
        Some(true)
    }

    fn opened(&self) -> Opened<'_> {
        self.storage().file().map_or(Opened::Nothing, Opened::File)
    }

    fn read(
        &mut self,
        limits: &Limits,
        typesize: Option<u32>,
        verify: Verify,
    ) -> Result<Option<Outline>, Reason> {
        // The stamp is read first, so that a later change during this call is detected.
        let stamp = Stamp::of(self.storage())?;
        let outline = read_outline(self.storage(), self.layout(), limits, typesize, verify)?;
        (self.written, self.bytes.stamp) = (None, stamp);
        (*self.newest.get_mut(), *self.is_settled.get_mut()) = (None, false);
        self.index_at = outline.header_len() + outline.cbytes();
        Ok(Some(outline))
    }

    fn recover(&mut self) -> Result<(), Reason> {
        let content = Options { content: true, ..Options::default() };
        let is_sound = |source: &dyn ReadAt| match frame::check(source, &content) {
            Ok(mut report) => {
                report.accept_changed_chunks();
                Ok(report.is_good())
            }
            Err(error) => Err(Reason::from(error).doing("check a frame").into()),
        };
        if recover(&mut *self.bytes.storage, is_sound)? == Recovery::Lost {
            let advice = Advice::Repair;
            let detail = format!(
                "a writer was interrupted while it changed this frame, and the overwritten bytes are lost: {advice}"
            );
            return Err(Reason::new(ErrorKind::Unfinished, detail));
        }
        Ok(())
    }

    fn source(&self) -> &dyn ReadAt {
        &self.bytes
    }

    fn chunk(&self, outline: &Outline, place: u64) -> Result<Located<'_>, Reason> {
        let storage = self.storage();
        let at = outline.header_len().saturating_add(place);
        let room = outline.chunks_end().saturating_sub(place);
        let Some(bytes) = storage.as_bytes() else {
            return Ok(Located::Stored(Source::Storage(storage), at, room));
        };
        let from = usize::try_from(at).ok().and_then(|at| bytes.get(at..));
        let from = from.ok_or_else(|| missing("it is truncated"))?;
        let room = usize::try_from(room).unwrap_or(usize::MAX).min(from.len());
        Ok(Located::Memory(from[..room].into()))
    }

    fn request_cost(&self) -> u64 {
        self.bytes.request_cost()
    }

    fn confirm(
        &self,
        outline: &Outline,
        numbers: &[usize],
        limits: &Limits,
    ) -> Result<bool, Reason> {
        // Only other programs that do not lock the file can have changed it since then.
        let Some(read @ Stamp { file: Some(file), .. }) = &self.bytes.stamp else {
            return Ok(true);
        };
        // The time of the file suffices then, which takes one system call.
        if self.is_settled.load(Relaxed) && Stamp::file(self.storage()).as_ref() == Some(file) {
            return Ok(true);
        }
        let now = SystemTime::now();
        if Stamp::of(self.storage())?.as_ref() == Some(read) {
            let age = file.1.and_then(|changed| now.duration_since(changed).ok());
            self.is_settled.store(age.is_some_and(|age| age > SETTLED), Relaxed);
            return Ok(true);
        }
        let mut newest = self.newest.lock();
        if let Some((stamp, current)) = &*newest {
            let is_same = |&number: &usize| {
                let offset = current.offset(number as u64, self.storage());
                offset.is_ok_and(|offset| offset == outline.decoded(number as u64))
            };
            let are_same =
                current.header_len() == outline.header_len() && numbers.iter().all(is_same);
            if Stamp::of(self.storage())?.as_ref() == Some(stamp) {
                return if are_same { Ok(true) } else { Err(outdated()) };
            }
        }
        let stamp = Stamp::of(self.storage())?.ok_or_else(outdated)?;
        let read = read_outline(self.storage(), self.layout(), limits, None, Verify::Never)?;
        *newest = Some((stamp, read));
        Ok(false)
    }

    fn shrinks(&self) -> bool {
        self.can_cut != Some(false)
    }

    fn frame(&self) -> &dyn ReadAt {
        self.storage()
    }

    fn commit(
        &mut self,
        outline: &mut Outline,
        stores: Stores<'_>,
        _: &[u64],
    ) -> Result<(), Reason> {
        if !self.bytes.is_same_frame()? {
            return Err(changed());
        }
        let written = self.written.take();
        let old_len = match &written {
            Some(written) => self.index_at + (written.index_len + written.trailer.len()) as u64,
            None => self.stored_len()?,
        };
        let start = outline.header_len();
        let spare = outline.spare();
        let mut unused: Vec<_> =
            outline.reused().iter().map(|&(from, to)| (start + from, start + to)).collect();
        unused.push((start + spare.start, start + spare.end));
        // No other handle or program reads a frame in memory, and its index can move fast.
        let moved = if self.safety == Safety::Errors {
            outline.release_spare();
            0..0
        } else {
            outline.seal(true)
        };
        let zeros = vec![0; (moved.end - moved.start) as usize];
        let index_at = start + outline.cbytes();
        let patch = match index_at == self.index_at {
            true => outline.index_patch(index_at)?,
            false => None,
        };
        let new = match patch {
            Some(patch) => {
                let index = patch.writes.into_iter().map(|(at, bytes)| (at.into(), bytes.into()));
                Metadata::with_index(outline, patch.len, index.collect())?
            }
            None => {
                outline.load(&self.bytes)?;
                metadata_of(outline)?
            }
        };
        let end = [(start + moved.start, &zeros[..])].into_iter().chain(new.end(index_at));
        let mut writes: Vec<(u64, Cow<'_, [u8]>)> = Vec::with_capacity(stores.len() + 2);
        let chunks = stores.iter().map(|(place, bytes)| (start + place, &**bytes));
        for (at, bytes) in chunks.chain(end).filter(|(_, bytes)| !bytes.is_empty()) {
            match writes.last_mut() {
                // A copy takes less time than a system call.
                Some((last, run))
                    if *last + run.len() as u64 == at && run.len() + bytes.len() <= SMALL =>
                {
                    run.to_mut().extend_from_slice(bytes);
                }
                _ => writes.push((at, bytes.into())),
            }
        }
        let writes: Vec<_> = writes.iter().map(|(at, bytes)| (*at, &**bytes)).collect();
        let known = written.iter().flat_map(|written| {
            [(0, &written.header[..])].into_iter().chain(written.end(self.index_at))
        });
        let known: Vec<(u64, &[u8])> = known.collect();
        let change = Change {
            old_len,
            new_len: index_at + (new.index_len + new.trailer.len()) as u64,
            header: &new.header,
            writes: &writes,
            known: &known,
            unused: &unused,
            can_cut: self.can_cut,
            safety: self.safety,
        };
        let committed = commit(&mut *self.bytes.storage, &change);
        self.can_cut = Some(committed.map_err(|each| each.into_error())?);
        let header = new.header.first_chunk();
        self.bytes.stamp = header.map(|header| Stamp { header: *header, file: None });
        self.index_at = index_at;
        self.written = Some(new);
        Ok(())
    }

    fn add(&mut self, outline: &Outline, stores: Stores<'_>) -> Result<(), Reason> {
        let start = outline.header_len();
        stores.iter().try_for_each(|(place, bytes)| {
            let written = self.bytes.storage.write_all_at(start + place, bytes);
            written.map_err(Reason::from)
        })
    }

    fn finish(&mut self, outline: &mut Outline) -> Result<(), Reason> {
        let new = metadata_of(outline)?;
        let at = new.header.len() as u64 + outline.cbytes();
        let storage = &mut self.bytes.storage;
        let mut writes = new.end(at).chain([(0, &new.header[..])]);
        let written = writes.try_for_each(|(at, bytes)| storage.write_all_at(at, bytes));
        written.map_err(Reason::from)
    }

    fn frame_len(&self) -> io::Result<Option<u64>> {
        self.stored_len().map(Some)
    }

    fn stored_bytes(&self) -> u64 {
        self.storage().size().unwrap_or(0)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.bytes.storage.sync()
    }

    fn take_vec(&mut self) -> Option<Vec<u8>> {
        self.bytes.storage.take_vec()
    }
}
