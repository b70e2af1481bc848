//! Frames whose writer was stopped in the middle of a change.

use std::io;

use blosc2_format::ReadAt;
use blosc2_format::frame::journal::{Journal, MARK_AT, UNFINISHED, UNFINISHED_WITHOUT_JOURNAL};

use super::Storage;
use super::commit::write_marked;

/// Bytes that are put back at once.
const PIECE: u64 = 64 << 10;

/// What became of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// It is not marked, so nobody was stopped: nothing was done.
    Unmarked,
    /// It is as it was before the change.
    RolledBack,
    /// The change was there but for the mark, which has been taken away.
    Completed,
    /// What the change overwrote is lost; nothing was done.
    Lost,
}

/// Puts the contiguous frame at the start of `storage` in order, as [`commit`](super::commit) promises.
///
/// May itself be stopped anywhere and called again. Nothing else may use the frame meanwhile. `is_sound` decides whether
/// a frame is a good one, its chunks' content included.
///
/// # Errors
/// The storage's own, and those of `is_sound`.
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
        // Whoever was stopped by more than the death of the program may have left anything.
        if len != size || !is_sound(&WithoutMark(storage))? {
            return Ok(Recovery::Lost);
        }
        Recovery::Completed
    };
    storage.write_all_at(MARK_AT, &[0])?;
    storage.sync()?;
    Ok(recovery)
}

/// Everything but the mark is as the journal says.
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
    // The journal goes before the mark does: a marked frame without one is complete.
    storage.set_size(journal.frame_len)?;
    storage.sync()
}

/// The bytes as they will be without the mark.
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
