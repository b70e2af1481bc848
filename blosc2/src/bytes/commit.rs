//! Atomic changes of a contiguous frame.
//!
//! A change has these steps:
//! 1. Write a journal after the end of the old or the new frame, whichever is later. It contains the bytes that will be
//!    overwritten.
//! 2. Write the mark, one byte in the header. Every reader rejects a frame with the mark.
//! 3. Write the new chunks, index and trailer.
//! 4. Write the new header, still with the mark.
//! 5. Set the length of the storage to the new length. This removes the journal.
//! 6. Remove the mark, one byte.
//!
//! The writer may be stopped at any point, even in the middle of a write. A first part of the bytes is then new, and
//! the rest is old.
//! - During step 1 the frame is complete, and readers ignore the data after it.
//! - From step 2 to step 6 the frame contains the mark, so that every reader rejects it. The mark is a single byte,
//!   which is either written or not. Each write between these steps that includes this byte writes the mark.
//! - The journal is complete before step 2, and is removed in step 5, after the complete change is stored. Therefore
//!   [`recover`](super::recover) rolls back a marked frame with a journal. A marked frame without a journal lacks only
//!   step 6, and `recover` removes the mark. While `recover` restores the old bytes, the frame contains the same mark.
//!
//! A change may write to gaps of the old frame. Their bytes are not part of the journal, because the old frame does not
//! use them.
//!
//! For a new frame, and for a storage that cannot set its length, steps 1 and 5 are omitted. A different mark then
//! means that the change cannot be rolled back.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind};

use blosc2_format::frame::MIN_HEADER_LEN;
use blosc2_format::frame::journal::{self, MARK_AT, UNFINISHED, UNFINISHED_WITHOUT_JOURNAL};

use super::Storage;
use crate::{Advice, Error, Reason};

const CHANGE: &str = "change a frame";

/// The events after which a frame is complete or can be recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Safety {
    /// Errors of the storage. For storages in memory: their content is lost if the program dies.
    Errors,
    /// Also the death of the program. A journal is written.
    Death,
    /// Also a power failure. Each step is synced to disk before the next step.
    PowerLoss,
}

/// A change of a frame that starts at the first byte of its storage.
#[derive(Debug)]
pub(crate) struct Change<'a> {
    /// The length of the old frame; 0 for a new frame. Only a journal of a stopped writer may follow the old frame.
    pub(crate) old_len: u64,
    /// The length of the new frame.
    pub(crate) new_len: u64,
    /// The new header, from the first byte of the frame, with `new_len` in it.
    pub(crate) header: &'a [u8],
    /// The other writes, with their offsets. They contain all bytes between the old and the new length.
    pub(crate) writes: &'a [(u64, &'a [u8])],
    /// Ranges of the old frame whose bytes are known and need not be read.
    pub(crate) known: &'a [(u64, &'a [u8])],
    /// Ranges of the old frame that it does not use: start and end. Their bytes are not restored.
    pub(crate) unused: &'a [(u64, u64)],
    /// Whether the storage can set its length; `None` if this is not known yet.
    pub(crate) can_cut: Option<bool>,
    /// The events after which the frame is complete or can be recovered.
    pub(crate) safety: Safety,
}

#[derive(Debug)]
pub(crate) struct Failed {
    /// The cause.
    pub(super) error: io::Error,
    /// Whether the frame was restored. If not, it contains the mark and must be [recovered](super::recover).
    pub(super) restored: bool,
}

impl Failed {
    /// Converts the failure into an error of the operation.
    pub(crate) fn into_error(self) -> Reason {
        let detail = self.to_string();
        Reason::from(self.error).with_detail(detail)
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.restored {
            true => write!(f, "{}; the change was rolled back", self.error),
            false => {
                let advice = Advice::RecoverFailed;
                write!(f, "{}; the change could not be rolled back: {advice}", self.error)
            }
        }
    }
}

/// Changes a frame in the steps that the module describes. Returns whether the storage can set its length.
///
/// # Errors
/// The first error of the storage. The change is rolled back if possible.
pub(crate) fn commit(storage: &mut dyn Storage, change: &Change<'_>) -> Result<bool, Failed> {
    let untouched = |error| Failed { error, restored: true };
    let mut undo = Undo::new(storage, change).map_err(untouched)?;
    if let Err(error) = undo.write_journal(storage, change) {
        // The journal is after the frame. If this call cannot remove it, the next change does.
        let _ = undo.set_size(storage, change.old_len);
        return Err(untouched(error));
    }
    if let Err(error) = write(storage, change, &undo) {
        // After step 5 the complete change is stored, and the removed bytes cannot be restored. The change is then
        // completed instead.
        let cuts = undo.has_journal || change.new_len < change.old_len;
        let is_cut = cuts && storage.size().is_ok_and(|size| size == change.new_len);
        if !is_cut {
            return Err(Failed { error, restored: undo.run(storage, change).is_ok() });
        }
        return match unmark(storage, change) {
            Ok(()) => Ok(undo.can_cut),
            Err(_) => Err(Failed { error, restored: false }),
        };
    }
    Ok(undo.can_cut)
}

/// Steps 2 to 6.
fn write(storage: &mut dyn Storage, change: &Change<'_>, undo: &Undo<'_>) -> io::Result<()> {
    let mark = undo.mark();
    storage.write_all_at(MARK_AT, &[mark])?;
    sync(storage, change)?;
    for &(offset, bytes) in change.writes {
        write_marked(storage, offset, bytes, mark)?;
    }
    write_marked(storage, 0, change.header, mark)?;
    sync(storage, change)?;
    undo.set_size(storage, change.new_len)?;
    sync(storage, change)?;
    unmark(storage, change)
}

/// Step 6.
fn unmark(storage: &mut dyn Storage, change: &Change<'_>) -> io::Result<()> {
    storage.write_all_at(MARK_AT, &[0])?;
    sync(storage, change)
}

/// Syncs the written data to disk, if the change must be safe after a power failure.
fn sync(storage: &mut dyn Storage, change: &Change<'_>) -> io::Result<()> {
    if change.safety == Safety::PowerLoss { storage.sync() } else { Ok(()) }
}

/// Writes bytes of the frame. If they include the byte of the mark, the mark is written there.
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

/// Restores a frame after a failed change.
struct Undo<'a> {
    old_len: u64,
    /// The overwritten ranges, sorted and disjoint.
    records: Vec<(u64, Cow<'a, [u8]>)>,
    /// Whether the storage can set its length.
    can_cut: bool,
    has_journal: bool,
}

impl<'a> Undo<'a> {
    /// Removes a journal of a stopped writer after the frame, and reads the bytes that the change will overwrite.
    fn new(storage: &mut dyn Storage, change: &Change<'a>) -> io::Result<Self> {
        let Change { old_len, new_len, header, .. } = *change;
        debug_assert!(header.len() >= MIN_HEADER_LEN && header[MARK_AT as usize] == 0, "no header");
        debug_assert!(header[MARK_AT as usize..][..8] == new_len.to_be_bytes(), "another length");
        let is_within = |(at, bytes): &(u64, &[u8])| at + bytes.len() as u64 <= new_len;
        debug_assert!(change.writes.iter().all(is_within), "the journal would be overwritten");
        let size = storage.size()?;
        if size < old_len {
            let detail = format!("the frame has {old_len} bytes, its storage has only {size} now");
            return Err(io::Error::new(ErrorKind::UnexpectedEof, detail));
        }
        // If it cannot, bytes after the frame remain from an earlier state in which the frame was longer.
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
                    "{} bytes follow the frame and would be overwritten: save the super-chunk elsewhere",
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
        Ok(Self { old_len, records, can_cut, has_journal: false })
    }

    /// Step 1.
    fn write_journal(&mut self, storage: &mut dyn Storage, change: &Change<'_>) -> io::Result<()> {
        if !self.can_cut || change.old_len == 0 || change.safety == Safety::Errors {
            return Ok(());
        }
        let start = change.old_len.max(change.new_len);
        let journal = journal::encode(start, change.old_len, &self.records);
        storage.write_all_at(start, &journal)?;
        self.has_journal = true;
        if change.safety == Safety::PowerLoss { storage.sync() } else { Ok(()) }
    }

    fn set_size(&self, storage: &mut dyn Storage, len: u64) -> io::Result<()> {
        if self.can_cut { storage.set_size(len) } else { Ok(()) }
    }

    /// Restores the old bytes. The order of the writes allows recovery if this call is interrupted.
    fn run(&self, storage: &mut dyn Storage, change: &Change<'_>) -> io::Result<()> {
        let mark = self.mark();
        if self.old_len > 0 {
            storage.write_all_at(MARK_AT, &[mark])?;
        }
        for (offset, bytes) in &self.records {
            write_marked(storage, *offset, bytes, mark)?;
        }
        sync(storage, change)?;
        self.set_size(storage, self.old_len)?;
        sync(storage, change)?;
        if self.old_len > 0 { unmark(storage, change) } else { Ok(()) }
    }

    /// Returns the mark of a frame with or without a journal after it.
    fn mark(&self) -> u8 {
        if self.has_journal { UNFINISHED } else { UNFINISHED_WITHOUT_JOURNAL }
    }
}

/// Returns the bytes from `start` to `end`, if `runs`, which are sorted, contain all of them.
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

/// Returns the ranges of the old frame that the change overwrites, sorted and disjoint.
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
    let mut unused = change.unused.to_vec();
    unused.sort_unstable();
    for (from, to) in unused {
        let rest = |&(start, end): &(u64, u64)| [(start, end.min(from)), (start.max(to), end)];
        let first = runs.partition_point(|&(_, end)| end <= from);
        let last = runs.partition_point(|&(start, _)| start < to);
        let cut: Vec<_> = runs[first..last.max(first)].iter().flat_map(rest).collect();
        let cut = cut.into_iter().filter(|(start, end)| start < end);
        runs.splice(first..last.max(first), cut);
    }
    runs
}

#[cfg(test)]
#[path = "commit_tests.rs"]
mod tests;
