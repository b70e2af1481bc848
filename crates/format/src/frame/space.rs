//! The positions of the gaps of a contiguous frame, as far as they are known.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;

/// Gaps of up to this number of bytes in total do not matter.
pub(super) const SMALL: u64 = 32 << 10;
/// The number of positions at which a frame is sampled.
pub(super) const SAMPLE: usize = 64;

/// Disjoint ranges of bytes, which do not touch.
#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    /// The end of each range, by its start.
    pub(super) ends: BTreeMap<u64, u64>,
    /// The length and the start of each range.
    pub(super) by_len: BTreeSet<(u64, u64)>,
    pub(super) total: u64,
}

impl Ranges {
    pub(super) fn add(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((from, to)) = self.last_before(end + 1).filter(|&(_, to)| to >= start) {
            self.drop(from, to);
            (start, end) = (start.min(from), end.max(to));
        }
        self.ends.insert(start, end);
        self.by_len.insert((end - start, start));
        self.total += end - start;
    }

    pub(super) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        while let Some((from, to)) = self.last_before(end).filter(|&(_, to)| to > start) {
            self.drop(from, to);
            self.add(from, start);
            self.add(end, to);
        }
    }

    pub(super) fn drop(&mut self, start: u64, end: u64) {
        self.ends.remove(&start);
        self.by_len.remove(&(end - start, start));
        self.total -= end - start;
    }

    /// Returns the last range that starts before `end`.
    pub(super) fn last_before(&self, end: u64) -> Option<(u64, u64)> {
        self.ends.range(..end).next_back().map(|(&start, &end)| (start, end))
    }

    /// Returns the range that ends at `end`.
    pub(super) fn ending_at(&self, end: u64) -> Option<(u64, u64)> {
        self.last_before(end).filter(|&(_, to)| to == end)
    }

    /// Returns the start of the first range after `place`.
    pub(super) fn after(&self, place: u64) -> Option<u64> {
        self.ends.range(place + 1..).next().map(|(&start, _)| start)
    }

    /// Returns the start of the shortest range of at least `len` bytes.
    pub(super) fn fitting(&self, len: u64) -> Option<u64> {
        self.by_len.range((len, 0)..).next().map(|&(_, start)| start)
    }
}

/// The gaps that are known. Positions are relative to the end of the header.
#[derive(Debug, Clone, Default)]
pub(super) struct Space {
    /// The gaps that new chunks can use; `None` while they are not known.
    pub(super) free: Option<Ranges>,
    /// The gaps whose bytes the stored frame still uses. They are free after the next commit.
    pub(super) pending: Ranges,
    /// The gaps of the stored frame that changes since then have used.
    pub(super) taken: Vec<(u64, u64)>,
    /// The end of the chunks in the stored frame.
    pub(super) stored_end: u64,
    /// Whether changes since then store bytes of another chunk where the stored frame, or an
    /// earlier state of it, can have a chunk.
    pub(super) is_reused: bool,
    /// Whether the stored frame, or an earlier state of it, has a gap between its chunks and the index.
    pub(super) is_padded: bool,
    /// Whether changes since then have replaced or removed chunks.
    pub(super) is_changed: bool,
    /// The bytes of chunks that were vacated while the gaps were not known, and their number that
    /// is accepted.
    pub(super) vacated: u64,
    pub(super) accepted: u64,
    /// Whether many headers were read to find the gaps.
    pub(super) is_costly: bool,
}

impl Space {
    /// Returns the space of a frame without gaps.
    pub(super) fn new() -> Self {
        Self { free: Some(Ranges::default()), ..Self::default() }
    }

    /// Returns the unknown space of a stored frame, whose chunks end at `end`.
    pub(super) fn unknown(end: u64) -> Self {
        Self { stored_end: end, ..Self::default() }
    }

    pub(super) fn is_known(&self) -> bool {
        self.free.is_some()
    }

    /// Records that there are no chunks, and therefore no gaps.
    pub(super) fn clear(&mut self) {
        (self.free, self.pending) = (Some(Ranges::default()), Ranges::default());
    }

    /// Records that chunks are replaced or removed.
    pub(super) fn change(&mut self) {
        self.is_changed = true;
    }

    /// Records that the position of all chunks in the source changes.
    pub(super) fn shift(&mut self) {
        self.taken.clear();
    }

    /// Records that the changes are stored, in a frame whose chunks end at `end`.
    pub(super) fn committed(&mut self, end: u64) {
        if self.pending.total > 0 {
            let pending = mem::take(&mut self.pending);
            if let Some(free) = &mut self.free {
                pending.ends.into_iter().for_each(|(start, end)| free.add(start, end));
            }
        }
        self.is_padded |= self.free.as_ref().is_some_and(|free| free.ending_at(end).is_some());
        self.taken.clear();
        (self.stored_end, self.is_reused, self.is_changed) = (end, false, false);
    }

    /// Returns the position for a new chunk of `len` bytes: in a gap, or at `end`.
    pub(super) fn place(&mut self, len: u64, end: u64) -> u64 {
        let place = self.free.as_ref().and_then(|free| free.fitting(len)).unwrap_or(end);
        self.take(place, place + len);
        place
    }

    /// Records that a chunk uses these bytes.
    pub(super) fn take(&mut self, start: u64, end: u64) {
        self.is_reused |= start < self.stored_end;
        let Some(free) = &mut self.free else { return };
        // Bytes after the stored chunks contain the index.
        let dead = free.last_before(start + 1).is_some_and(|(_, to)| to >= end);
        if dead && start < self.stored_end {
            self.taken.push((start, end.min(self.stored_end)));
        }
        free.remove(start, end);
        self.pending.remove(start, end);
    }

    /// Records that no chunk uses these bytes any more.
    pub(super) fn release(&mut self, start: u64, end: u64) {
        let within = |&(from, to): &(u64, u64)| from <= start && end <= to;
        let is_new = start >= self.stored_end || self.taken.iter().any(within);
        match &mut self.free {
            Some(free) if is_new => free.add(start, end),
            Some(_) => self.pending.add(start, end),
            None => {}
        }
    }

    /// Releases the gap before `end`, the end of the chunks. Returns the new end.
    pub(super) fn trim(&mut self, mut end: u64) -> u64 {
        let Some(free) = &mut self.free else { return end };
        loop {
            let gap = [&mut *free, &mut self.pending]
                .into_iter()
                .find_map(|gaps| gaps.ending_at(end).map(|gap| (gaps, gap)));
            let Some((gaps, (start, _))) = gap else { return end };
            gaps.drop(start, end);
            end = start;
        }
    }

    /// Returns the start of the first gap after `place`.
    pub(super) fn after(&self, place: u64) -> Option<u64> {
        let free = self.free.as_ref().and_then(|free| free.after(place));
        free.into_iter().chain(self.pending.after(place)).min()
    }

    /// Returns the number of bytes in gaps, except in a gap that ends at `end`, if it is known.
    pub(super) fn wasted(&self, end: u64) -> Option<u64> {
        let free = self.free.as_ref()?;
        let last = free.ending_at(end).map_or(0, |(start, end)| end - start);
        Some(free.total + self.pending.total - last)
    }

    /// Returns whether the gaps should be searched before a change that makes a gap of `bytes`
    /// bytes.
    pub(super) fn is_due(&mut self, bytes: u64) -> bool {
        self.vacated = self.vacated.saturating_add(bytes);
        let may_search = !self.is_known() && !self.is_changed;
        may_search && self.stored_end > SMALL && self.vacated >= self.accepted.max(1)
    }
}
