//! Changes of a contiguous frame that are whole or not there.
//!
//! In order:
//! 1. behind the frame, old or new, whichever is longer: a journal of what will be overwritten;
//! 2. the mark, one byte: the frame is being changed, and no reader takes it;
//! 3. what the change writes;
//! 4. the header, with the mark still in it;
//! 5. the new length, which cuts the journal off;
//! 6. the mark is taken away, one byte.
//!
//! The writer may be stopped anywhere, also in the middle of a write, whose first bytes are the new ones then
//! and the others the old ones. During 1 the frame is whole and something follows it, which readers leave
//! out. From 2 to 6 the mark is there in every mixture: one byte is written or not, and all that is written
//! over it in between has it, too. So no reader takes any of them. The journal is whole before the mark
//! comes and is where it was until 5; that cuts it off when all of the change is there. So a frame that
//! is marked and has a journal goes back by it, and one that is marked and has none lacks step 6 only.
//! [`recover`](super::recover) does both, and it puts the old bytes back under the same mark.
//!
//! A storage that cannot set its length has no step 1 and 5, nor has a frame that there was not before. Their
//! mark is another one, which says that nothing can be put back.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind};

use blosc2_format::frame::MIN_HEADER_LEN;
use blosc2_format::frame::journal::{self, MARK_AT, UNFINISHED, UNFINISHED_WITHOUT_JOURNAL};

use super::Storage;
use crate::Error;

const CHANGE: &str = "change a frame";

/// What a change is safe from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    /// Errors of the storage: for memory, which dies with the program.
    Errors,
    /// The death of the program as well, by a journal.
    Death,
    /// That of the machine as well: each step is on the device before the next one.
    PowerLoss,
}

/// A change of a frame that starts at the first byte of its storage.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// Bytes of the frame now; 0 where there is none yet. Only what a stopped writer left may follow.
    pub(crate) old_len: u64,
    /// Bytes of the frame then.
    pub(crate) new_len: u64,
    /// The header then, from the first byte of the frame, with `new_len` in it.
    pub(crate) header: &'a [u8],
    /// What is written after that, at which places; all that is new between the two lengths is among it.
    pub(crate) writes: &'a [(u64, &'a [u8])],
    /// Runs of bytes of the frame as it is now, so that they need not be read.
    pub(crate) known: &'a [(u64, &'a [u8])],
    /// Whether the storage can set its length; `None` where that has to be tried.
    pub(crate) can_cut: Option<bool>,
    /// What it is safe from.
    pub(crate) safety: Safety,
}

/// A change that did not come about.
#[derive(Debug)]
pub(crate) struct Failed {
    /// Why.
    pub(crate) error: io::Error,
    /// Whether the frame is as it was; otherwise it is marked and has to be [recovered](super::recover).
    pub(crate) restored: bool,
}

impl Failed {
    /// The error of what was being done.
    pub(crate) fn into_error(self, doing: &str) -> Error {
        let detail = self.to_string();
        Error::of_io(doing, self.error).with_detail(detail)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.restored {
            true => "the frame is as it was",
            false => "the frame could not be put back, and has to be repaired",
        };
        write!(f, "{}; {state}", self.error)
    }
}

/// Changes a frame, as the module says. Returns whether the storage can set its length.
///
/// # Errors
/// The first one of the storage, after everything was put back where that was possible.
pub(crate) fn commit(storage: &mut dyn Storage, change: &Change<'_>) -> Result<bool, Failed> {
    let untouched = |error| Failed { error, restored: true };
    let mut undo = Undo::new(storage, change).map_err(untouched)?;
    if let Err(error) = undo.write_journal(storage, change) {
        // It is behind the frame, where the next change cuts it off if this cannot.
        let _ = undo.set_size(storage, change.old_len);
        return Err(untouched(error));
    }
    let Err(error) = write(storage, change, &undo) else { return Ok(undo.can_cut) };
    if storage.size().is_ok_and(|size| size < change.old_len) {
        // It was cut, after all of the change was written: only the mark has to be taken away.
        let unmarked = storage.write_all_at(MARK_AT, &[0]).and_then(|()| sync(storage, change));
        return match unmarked {
            Ok(()) => Ok(undo.can_cut),
            Err(_) => Err(Failed { error, restored: false }),
        };
    }
    Err(Failed { error, restored: undo.run(storage).is_ok() })
}

/// Steps 2 to 6.
fn write(storage: &mut dyn Storage, change: &Change<'_>, undo: &Undo<'_>) -> io::Result<()> {
    let mark = mark(undo.journal_end.is_some());
    storage.write_all_at(MARK_AT, &[mark])?;
    sync(storage, change)?;
    for &(offset, bytes) in change.writes {
        write_marked(storage, offset, bytes, mark)?;
    }
    write_marked(storage, 0, change.header, mark)?;
    sync(storage, change)?;
    undo.set_size(storage, change.new_len)?;
    sync(storage, change)?;
    storage.write_all_at(MARK_AT, &[0])?;
    sync(storage, change)
}

/// Sees that what was written is on the device, where that is wanted.
fn sync(storage: &mut dyn Storage, change: &Change<'_>) -> io::Result<()> {
    if change.safety == Safety::PowerLoss { storage.sync() } else { Ok(()) }
}

/// Writes bytes of the frame, but the mark in its place.
pub(super) fn write_marked(
    storage: &mut dyn Storage,
    offset: u64,
    bytes: &[u8],
    mark: u8,
) -> io::Result<()> {
    let at = MARK_AT.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
    match at.filter(|&at| at < bytes.len()) {
        Some(at) => {
            let mut marked = bytes.to_vec();
            marked[at] = mark;
            storage.write_all_at(offset, &marked)
        }
        None => storage.write_all_at(offset, bytes),
    }
}

/// What puts a frame back in the program that failed to change it.
struct Undo<'a> {
    old_len: u64,
    /// What is overwritten, in order and apart from each other.
    records: Vec<(u64, Cow<'a, [u8]>)>,
    /// Whether the storage can set its length.
    can_cut: bool,
    /// Where the journal ends, if there is one.
    journal_end: Option<u64>,
}

impl<'a> Undo<'a> {
    /// Cuts off what a stopped writer left behind the frame, and takes down what the change will overwrite.
    fn new(storage: &mut dyn Storage, change: &Change<'a>) -> io::Result<Self> {
        let Change { old_len, new_len, header, .. } = *change;
        debug_assert!(header.len() >= MIN_HEADER_LEN && header[MARK_AT as usize] == 0, "no header");
        debug_assert!(header[MARK_AT as usize..][..8] == new_len.to_be_bytes(), "another length");
        let size = storage.size()?;
        if size < old_len {
            let detail = format!("the frame has {old_len} bytes, its storage has only {size} now");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, detail));
        }
        // Where it cannot, what follows is what the frame left when it became shorter.
        let can_cut = match change.can_cut {
            Some(can_cut) => can_cut,
            None => match storage.set_size(size) {
                Ok(()) => true,
                Err(error) if error.kind() == ErrorKind::Unsupported => false,
                Err(error) => return Err(error),
            },
        };
        if can_cut && size > old_len {
            if !journal::is_last(&*storage, old_len)? {
                let detail = format!(
                    "{} bytes follow the frame, which a change of it would destroy: save it elsewhere",
                    size - old_len
                );
                return Err(Error::new(crate::ErrorKind::InvalidArgument, CHANGE, detail).into());
            }
            storage.set_size(old_len)?;
        }
        let mut records = Vec::new();
        for (start, end) in overwritten(change) {
            let bytes = match known(change.known, start, end) {
                Some(bytes) => bytes,
                None => storage.read_vec_at(start, end - start)?.into(),
            };
            records.push((start, bytes));
        }
        Ok(Self { old_len, records, can_cut, journal_end: None })
    }

    /// Step 1.
    fn write_journal(&mut self, storage: &mut dyn Storage, change: &Change<'_>) -> io::Result<()> {
        if !self.can_cut || change.old_len == 0 || change.safety == Safety::Errors {
            return Ok(());
        }
        let start = change.old_len.max(change.new_len);
        let journal = journal::encode(start, change.old_len, &self.records);
        storage.write_all_at(start, &journal)?;
        self.journal_end = Some(start + journal.len() as u64);
        if change.safety == Safety::PowerLoss { storage.sync() } else { Ok(()) }
    }

    fn set_size(&self, storage: &mut dyn Storage, len: u64) -> io::Result<()> {
        if self.can_cut { storage.set_size(len) } else { Ok(()) }
    }

    /// Puts the old bytes back, in an order that may be stopped as well.
    fn run(&self, storage: &mut dyn Storage) -> io::Result<()> {
        // The journal may have been cut off.
        let mark = mark(self.journal_end == Some(storage.size()?));
        if self.old_len > 0 {
            storage.write_all_at(MARK_AT, &[mark])?;
        }
        for (offset, bytes) in &self.records {
            write_marked(storage, *offset, bytes, mark)?;
        }
        self.set_size(storage, self.old_len)?;
        if self.old_len > 0 { storage.write_all_at(MARK_AT, &[0]) } else { Ok(()) }
    }
}

/// The mark of a frame that has the journal behind it, or has not.
fn mark(has_journal: bool) -> u8 {
    if has_journal { UNFINISHED } else { UNFINISHED_WITHOUT_JOURNAL }
}

/// The bytes from `start` to `end`, where `runs`, which are in order, have all of them.
fn known<'a>(runs: &[(u64, &'a [u8])], start: u64, end: u64) -> Option<Cow<'a, [u8]>> {
    let len = usize::try_from(end - start).ok()?;
    let mut found = Cow::Borrowed(&[][..]);
    for &(offset, bytes) in runs {
        let at = (start + found.len() as u64).checked_sub(offset);
        let rest = at.and_then(|at| bytes.get(usize::try_from(at).ok()?..)).unwrap_or_default();
        let part = &rest[..rest.len().min(len - found.len())];
        match found.is_empty() {
            true => found = part.into(),
            false => found.to_mut().extend_from_slice(part),
        }
    }
    (found.len() == len).then_some(found)
}

/// The runs of bytes of the old frame that the change overwrites, in order and apart from each other.
fn overwritten(change: &Change<'_>) -> Vec<(u64, u64)> {
    let writes = change.writes.iter().copied().chain([(0, change.header)]);
    let mut runs: Vec<(u64, u64)> = writes
        .map(|(offset, bytes)| (offset, offset.saturating_add(bytes.len() as u64)))
        .map(|(start, end)| (start, end.min(change.old_len)))
        .filter(|(start, end)| start < end)
        .collect();
    runs.sort_unstable();
    runs.dedup_by(|next, run| {
        let touches = next.0 <= run.1;
        if touches {
            run.1 = run.1.max(next.1);
        }
        touches
    });
    runs
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
