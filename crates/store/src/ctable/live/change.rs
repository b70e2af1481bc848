//! Changing the mask of live rows.

use std::ops::Range;

use super::super::WRITE;
use super::super::splice::{replace, with_rows};
use super::*;
use crate::blosc2::Result;
use crate::limits::check_readable;

impl LiveRows {
    pub(in crate::ctable) fn resize(&mut self, capacity: u64) -> Result<()> {
        if capacity == self.capacity() {
            return Ok(());
        }
        let first = (capacity.min(self.capacity()) / self.unit) as usize;
        self.marks.resize([capacity])?;
        self.count(first)
    }

    /// Marks rows as live, which are dead, and makes room for `capacity` rows, in one commit.
    pub(in crate::ctable) fn add(&mut self, rows: Range<u64>, capacity: u64) -> Result<()> {
        with_rows(&mut self.marks, capacity, |marks| marks.write([rows.clone()], true))?;
        self.before.resize(capacity.div_ceil(self.unit) as usize + 1, self.len());
        let (first, unit) = ((rows.start / self.unit) as usize, self.unit);
        for (before, start) in self.before.iter_mut().zip((0..).step_by(unit as usize)).skip(first)
        {
            *before += rows.end.min(start).saturating_sub(rows.start);
        }
        Ok(())
    }

    /// Marks rows at ascending places, which are live, as dead.
    pub(in crate::ctable) fn remove(&mut self, places: &[u64]) -> Result<()> {
        let Some(first) = places.first() else { return Ok(()) };
        let (first, unit) = ((first / self.unit) as usize, self.unit);
        let mut live = self.before.clone();
        for (before, start) in live.iter_mut().zip((0..).step_by(unit as usize)).skip(first) {
            *before -= places.partition_point(|place| *place < start) as u64;
        }
        let counted = counted(&live, unit, self.capacity());
        self.marks.transaction(|marks| {
            replace(marks, places, &vec![0; places.len()])?;
            // A reader counts the rows when it opens the table. Compaction removes the deleted rows.
            check_readable(marks.schunk(), WRITE, counted, marks.schunk().cbytes())
        })?;
        self.before = live;
        Ok(())
    }

    /// Makes the first rows the live ones.
    pub(in crate::ctable) fn compact(&mut self) -> Result<()> {
        let (live, all) = (self.len(), self.capacity());
        self.marks.transaction(|marks| {
            marks.write(0..live, true)?;
            marks.write(live..all, false)
        })?;
        self.count(0)
    }

    pub(in crate::ctable) fn sync(&mut self) -> Result<()> {
        self.marks.sync()
    }
}

/// The rows of all units with both live and dead rows, whose marks are read to count them. `before` are the numbers of
/// live rows before each unit, and in total.
fn counted(before: &[u64], unit: u64, rows: u64) -> u64 {
    let starts = (0..rows).step_by(usize::try_from(unit).unwrap_or(usize::MAX));
    let units = starts.zip(before.windows(2)).map(|(start, live)| {
        let len = unit.min(rows - start);
        if (1..len).contains(&(live[1] - live[0])) { len } else { 0 }
    });
    units.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_mixed_units_are_counted() {
        // All live, none, some, and one of a shorter unit.
        assert_eq!(counted(&[0, 10, 10, 14, 15], 10, 33), 13);
        assert_eq!(counted(&[0, 10, 10, 10, 13], 10, 33), 0);
        assert_eq!(counted(&[0], 10, 0), 0);
    }

    #[test]
    fn units_are_chunks_or_parts_of_large_ones() {
        assert_eq!(unit_of(0, 0, 0), Ok(1));
        assert_eq!(unit_of(1 << 40, 1 << 20, 0), Ok(1 << 20));
        assert_eq!(unit_of(1 << 44, 1 << 30, 0), Ok(UNIT));
        assert_eq!(unit_of(1 << 20, 1, 0), Ok(1));
        assert!(unit_of((1 << 20) + 1, 1, 0).is_err());
        assert!(unit_of((1 << 44) + 1, 1 << 30, 0).is_err());
        // As many as there are stored bytes.
        assert_eq!(unit_of((1 << 20) + 1, 1, (1 << 20) + 1), Ok(1));
    }
}
