//! The numbers of the files of a directory, of which new ones get the lowest that are free.

use super::offsets::Offsets;
use crate::Error;

/// Numbers for new files.
///
/// The library takes them for positions in a frame, and opens none where one is too large for its chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// Above all numbers that there are; `None` where that has to be looked up.
    next: Option<u64>,
    /// Free numbers below, the lowest one last.
    free: Vec<u64>,
    /// Whether there may be others.
    holes: bool,
}

impl Files {
    /// Those of a directory that has chunks already.
    pub(super) fn unknown() -> Self {
        Self { next: None, free: Vec::new(), holes: true }
    }

    /// Says that a file may have lost its chunk.
    pub(super) fn vacated(&mut self) {
        self.holes = true;
    }

    /// Looks up the numbers that [`number`](Self::number) chooses from, for `count` new files. The offsets have to be decoded.
    ///
    /// # Errors
    /// [`Error::Argument`] where there may be no more numbers.
    pub(super) fn find(&mut self, offsets: &Offsets, count: usize) -> Result<(), Error> {
        let next =
            *self.next.get_or_insert_with(|| offsets.places().max().map_or(0, |last| last + 1));
        if next + count as u64 > u32::MAX.into() {
            return Err(Error::Argument("file numbers of a directory end at FFFFFFFF".into()));
        }
        if self.free.len() < count && std::mem::take(&mut self.holes) {
            // So many are free among the first of these, or among all.
            let stored = offsets.places().count() as u64;
            let mut is_used = vec![false; next.min(stored + count as u64) as usize];
            for number in offsets.places() {
                if let Some(is_used) =
                    usize::try_from(number).ok().and_then(|at| is_used.get_mut(at))
                {
                    *is_used = true;
                }
            }
            self.holes = next > is_used.len() as u64;
            let free = |number: &u64| !is_used[*number as usize];
            self.free = (0..is_used.len() as u64).rev().filter(free).collect();
        }
        Ok(())
    }

    /// A number that no other file has.
    pub(super) fn number(&mut self) -> u64 {
        self.free.pop().unwrap_or_else(|| {
            let next = self.next.get_or_insert(0);
            *next += 1;
            *next - 1
        })
    }
}
