//! Recovery of frames whose writer was stopped in the middle of a change.

use std::io;

use blosc2_format::ReadAt;
use blosc2_format::frame::journal::{Journal, MARK_AT, UNFINISHED, UNFINISHED_WITHOUT_JOURNAL};

use super::Storage;
use super::commit::write_marked;

/// The number of bytes that one write restores.
const PIECE: u64 = 64 << 10;

/// The result of a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// The frame is not marked: no writer was stopped, and nothing was done.
    Unmarked,
    /// The frame is in the state before the change.
    RolledBack,
    /// The change was complete except for the removal of the mark. The mark was removed.
    Completed,
    /// The overwritten bytes are lost; nothing was done.
    Lost,
}

/// Recovers the contiguous frame at the start of `storage` from an unfinished [`commit`](super::commit).
///
/// If the call is interrupted, it can be repeated. No other handle may use the frame during the call. `is_sound` checks
/// whether a frame is valid, including the content of its chunks.
///
/// # Errors
/// The errors of the storage and of `is_sound`.
pub(crate) fn recover(
    storage: &mut dyn Storage,
    is_sound: impl FnOnce(&dyn ReadAt) -> io::Result<bool>,
) -> io::Result<Recovery> {
    let mut head = [0; MARK_AT as usize + 8];
    let size = storage.size()?;
    if size < head.len() as u64 {
        return Ok(Recovery::Unmarked);
    }
    storage.read_exact_at(0, &mut head)?;
    let (name, len) = head.split_at(MARK_AT as usize);
    if !name[1..].starts_with(b"\xa8b2frame\0") {
        return Ok(Recovery::Unmarked);
    }
    match len[0] {
        UNFINISHED => {}
        UNFINISHED_WITHOUT_JOURNAL => return Ok(Recovery::Lost),
        _ => return Ok(Recovery::Unmarked),
    }
    let recovery = if let Some(journal) = Journal::find(storage)? {
        roll_back(storage, &journal)?;
        Recovery::RolledBack
    } else {
        let len = len[1..].iter().fold(0, |len, &byte| len << 8 | u64::from(byte));
        // After a power failure or a system crash, the file may contain any bytes.
        if len != size || !is_sound(&WithoutMark(storage))? {
            return Ok(Recovery::Lost);
        }
        Recovery::Completed
    };
    storage.write_all_at(MARK_AT, &[0])?;
    storage.sync()?;
    Ok(recovery)
}

/// Restores all bytes in the journal. The mark is not removed.
fn roll_back(storage: &mut dyn Storage, journal: &Journal) -> io::Result<()> {
    let records = journal.records(&*storage).collect::<io::Result<Vec<_>>>()?;
    for record in records {
        let mut done = 0;
        while done < record.len {
            let piece = storage.read_vec_at(record.at + done, PIECE.min(record.len - done))?;
            write_marked(storage, record.offset + done, &piece, UNFINISHED)?;
            done += piece.len() as u64;
        }
    }
    storage.sync()?;
    // The journal is removed before the mark: a marked frame without a journal is complete.
    storage.set_size(journal.frame_len)?;
    storage.sync()
}

/// The bytes of a storage, with 0 at the offset of the mark.
pub(crate) struct WithoutMark<'a>(pub(crate) &'a dyn Storage);

impl ReadAt for WithoutMark<'_> {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)?;
        let at = MARK_AT.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
        if let Some(mark) = at.and_then(|at| buffer.get_mut(at)) {
            *mark = 0;
        }
        Ok(())
    }
}
