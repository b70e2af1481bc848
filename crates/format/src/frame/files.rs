//! The file numbers of a directory. New files get the lowest free numbers.

use super::offsets::Offsets;
use crate::Error;

/// The allocator of numbers for new files.
///
/// The C library treats the numbers as positions in a frame, and does not open a frame with a
/// number that is too large for its chunks.
#[derive(Debug, Clone, Default)]
pub(super) struct Files {
    /// The number above all used numbers; `None` if it is not known yet.
    next: Option<u64>,
    /// The free numbers below `next`, in descending order.
    free: Vec<u64>,
    /// Whether there can be other free numbers.
    holes: bool,
    /// The numbers that the stored index still refers to: their files must not be overwritten
    /// before the next index is stored.
    vacated: Vec<u64>,
    /// The numbers that were returned since the index was stored. The stored index does not refer
    /// to these numbers. In ascending order.
    new: Vec<u64>,
}

impl Files {
    /// Creates the allocator of a directory that already contains chunks.
    pub(super) fn unknown() -> Self {
        Self { holes: true, ..Self::default() }
    }

    /// Records that the file with this number no longer contains a chunk.
    pub(super) fn vacate(&mut self, number: u64) {
        if let Ok(at) = self.new.binary_search(&number) {
            self.new.remove(at);
            let place = self.free.partition_point(|&other| other > number);
            self.free.insert(place, number);
        } else {
            self.vacated.push(number);
        }
    }

    /// Records that the index has been stored.
    pub(super) fn committed(&mut self) {
        self.holes |= !self.vacated.is_empty();
        self.vacated.clear();
        self.new.clear();
    }

    /// Finds `count` free numbers for new files, which [`number`](Self::number) then returns. The
    /// offsets must be decoded.
    ///
    /// # Errors
    /// [`Error::Argument`]: there are no free numbers.
    pub(super) fn find(&mut self, offsets: &Offsets, count: usize) -> Result<(), Error> {
        let used = || offsets.places().chain(self.vacated.iter().copied());
        let next = self.next.unwrap_or_else(|| used().max().map_or(0, |last| last + 1));
        if self.free.len() < count && self.holes {
            // At least `count` of the first `used + count` numbers are free, if `next` is not
            // smaller.
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

    /// Returns an unused number.
    pub(super) fn number(&mut self) -> u64 {
        let number = self.free.pop().unwrap_or_else(|| {
            let next = self.next.get_or_insert(0);
            *next += 1;
            *next - 1
        });
        self.new.insert(self.new.partition_point(|&other| other < number), number);
        number
    }
}
