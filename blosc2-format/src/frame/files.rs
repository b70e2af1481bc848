//! The numbers of the files of a directory. New files get the lowest free numbers.

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
    /// Numbers that the stored index still names: their files must not be written before the next index is there.
    vacated: Vec<u64>,
}

impl Files {
    /// Those of a directory that has chunks already.
    pub(super) fn unknown() -> Self {
        Self { holes: true, ..Self::default() }
    }

    /// Says that the file of this number has lost its chunk.
    pub(super) fn vacate(&mut self, number: u64) {
        self.vacated.push(number);
    }

    /// Says that the index has been stored.
    pub(super) fn committed(&mut self) {
        self.holes |= !self.vacated.is_empty();
        self.vacated.clear();
    }

    /// Looks up the numbers that [`number`](Self::number) chooses from, for `count` new files. The offsets have to be
    /// decoded.
    ///
    /// # Errors
    /// [`Error::Argument`] where there are no more numbers.
    pub(super) fn find(&mut self, offsets: &Offsets, count: usize) -> Result<(), Error> {
        let used = || offsets.places().chain(self.vacated.iter().copied());
        let next = self.next.unwrap_or_else(|| used().max().map_or(0, |last| last + 1));
        if self.free.len() < count && self.holes {
            // The first `used + count` numbers have at least `count` free ones, if there are as many numbers.
            let mut is_used = vec![false; next.min((used().count() + count) as u64) as usize];
            for number in used() {
                let is_used = usize::try_from(number).ok().and_then(|at| is_used.get_mut(at));
                is_used.into_iter().for_each(|is_used| *is_used = true);
            }
            let free = |number: &u64| !is_used[*number as usize];
            self.free = (0..is_used.len() as u64).rev().filter(free).collect();
            self.holes = next > is_used.len() as u64;
        }
        self.next = Some(next);
        if next + count.saturating_sub(self.free.len()) as u64 > u64::from(u32::MAX) + 1 {
            return Err(Error::Argument("file numbers of a directory end at FFFFFFFF".into()));
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
