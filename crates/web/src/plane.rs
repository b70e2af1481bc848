//! What a view shows of an array: the axes on the screen, and the indices of the others; the order in which blocks are
//! read.

use std::ops::Range;

use blosc2_format::Error;
use blosc2_format::b2nd::Geometry;

use crate::data::Part;

/// The number of blocks that are read first, spread over the view.
const COARSE: usize = 48;

/// A point of an array, and the axes that a view varies.
#[derive(Debug, Clone)]
pub struct Plane {
    /// An index for each axis; those of the varied axes are ignored.
    pub at: Vec<u64>,
    /// The axis of the columns, and for pictures before it the axis of the rows.
    pub axes: Vec<usize>,
}

impl Plane {
    /// Checks that the axes exist and differ, and that the indices are in bounds.
    ///
    /// # Errors
    /// [`Error::Argument`]: they do not, or are not.
    pub fn check(&self, geometry: &Geometry) -> Result<(), Error> {
        let ndim = geometry.shape().len();
        let differ = self
            .axes
            .iter()
            .enumerate()
            .all(|(k, axis)| *axis < ndim && !self.axes[..k].contains(axis));
        let inside = self.at.len() == ndim
            && geometry
                .shape()
                .iter()
                .enumerate()
                .all(|(axis, &size)| self.axes.contains(&axis) || self.at[axis] < size);
        match differ && inside {
            true => Ok(()),
            false => Err(Error::Argument(format!(
                "show the axes {:?} at {:?} of an array of the shape {:?}",
                self.axes,
                self.at,
                geometry.shape()
            ))),
        }
    }

    /// Returns the parts of all axes, those of the fixed axes of one index.
    pub(crate) fn fixed(&self, geometry: &Geometry) -> Vec<Part> {
        let each = |(axis, &at): (blosc2_format::b2nd::Axis, &u64)| {
            let [chunk, block, from] = axis.locate(at);
            Part { chunk, block, from: from as usize, count: 1, before: 0 }
        };
        geometry.axes().zip(&self.at).map(each).collect()
    }
}

/// Samples of an axis: every `step`-th index, from the middle of the first step.
#[derive(Debug, Clone)]
pub struct Samples {
    /// The numbers of the samples.
    pub range: Range<u64>,
    /// The distance of the samples.
    pub step: u64,
    size: u64,
}

impl Samples {
    /// Returns the samples of `range` on an axis with `size` indices, with a distance of `step`, which is increased if
    /// there would be more than `max` samples. The samples do not depend on where the range starts.
    pub fn new(range: &Range<u64>, step: u64, max: u64, size: u64) -> Self {
        let end = range.end.min(size);
        let start = range.start.min(end);
        // One more, because the first and the last sample may be in parts.
        let least = (end - start).div_ceil(max.max(2) - 1);
        let step = step.max(least).max(1);
        Self { range: start / step..end.div_ceil(step), step, size }
    }

    /// Returns the number of samples.
    pub fn count(&self) -> usize {
        (self.range.end - self.range.start) as usize
    }

    /// Returns the index of a sample, which is counted from the first one.
    pub fn index(&self, sample: usize) -> u64 {
        let start = (self.range.start + sample as u64) * self.step;
        start.saturating_add(self.step / 2).min(self.size.saturating_sub(1))
    }

    /// Returns the samples by block. `before` is the number of the first sample, `from` its position in the block.
    pub(crate) fn parts(&self, axis: blosc2_format::b2nd::Axis) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for sample in 0..self.count() {
            let [chunk, block, from] = axis.locate(self.index(sample));
            match parts.last_mut() {
                Some(part) if (part.chunk, part.block) == (chunk, block) => part.count += 1,
                _ => parts.push(Part {
                    chunk,
                    block,
                    from: from as usize,
                    count: 1,
                    before: sample as u64,
                }),
            }
        }
        parts
    }
}

/// The cells of a grid, coarse ones first: every 2^n-th on both axes, then those between them, and so on.
#[derive(Debug, Clone)]
pub(crate) struct Order {
    sides: [usize; 2],
    first: u32,
    level: u32,
    next: [usize; 2],
}

impl Order {
    pub(crate) fn new(sides: [usize; 2]) -> Self {
        let cells = |level: u32| {
            sides[0].div_ceil(1 << level).saturating_mul(sides[1].div_ceil(1 << level))
        };
        let level = (0..31).find(|&level| cells(level) <= COARSE).unwrap_or(30);
        Self { sides, first: level, level, next: [0, 0] }
    }

    /// Whether no coarse cells are left.
    pub(crate) fn is_coarse(&self) -> bool {
        self.level == self.first && self.first > 0
    }
}

impl Iterator for Order {
    /// The row and the column, and the side of the square that the cell stands for.
    type Item = (usize, usize, usize);

    fn next(&mut self) -> Option<Self::Item> {
        if self.sides.contains(&0) {
            return None;
        }
        loop {
            let side = 1usize << self.level;
            let [row, col] = self.next;
            if row >= self.sides[0] {
                self.level = self.level.checked_sub(1)?;
                self.next = [0, 0];
                continue;
            }
            self.next =
                if col + side < self.sides[1] { [row, col + side] } else { [row + side, 0] };
            let before = (row | col) & (2 * side - 1) == 0;
            if self.level == self.first || !before {
                return Some((row, col, side));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_cell_is_visited_once_coarse_ones_first() {
        for sides in [[1, 1], [3, 40], [100, 70], [1, 5000], [0, 4]] {
            let cells: Vec<_> = Order::new(sides).collect();
            let set: HashSet<_> = cells.iter().map(|&(row, col, _)| (row, col)).collect();
            assert_eq!((cells.len(), set.len()), (sides[0] * sides[1], sides[0] * sides[1]));
            assert!(cells.windows(2).all(|pair| pair[0].2 >= pair[1].2));
            let first = cells.first().map_or(0, |cell| cell.2);
            assert!(cells.iter().filter(|cell| cell.2 == first).count() <= COARSE);
        }
    }

    #[test]
    fn samples_do_not_move_with_the_range() {
        let samples = Samples::new(&(10..50), 8, 100, 60);
        let indices: Vec<u64> = (0..samples.count()).map(|k| samples.index(k)).collect();
        assert_eq!(indices, [12, 20, 28, 36, 44, 52]);
        let moved = Samples::new(&(20..58), 8, 100, 60);
        let indices: Vec<u64> = (0..moved.count()).map(|k| moved.index(k)).collect();
        assert_eq!(indices, [20, 28, 36, 44, 52, 59]);
        assert!(Samples::new(&(0..1 << 40), 1, 1000, 1 << 40).count() <= 1000);
        assert_eq!(Samples::new(&(5..5), 1, 1000, 9).count(), 0);
    }
}
