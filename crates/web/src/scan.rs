//! Statistics of all items of a slice. A picture has those of its pixels, which can be a sample.

use std::ops::Range;

use blosc2_format::Error;
use serde_json::Value;

use crate::data::{Data, Part, advance, numbers, parts, strides};
use crate::item::Number;
use crate::stats::Statistics;

/// Statistics of a slice, which are computed block by block.
#[derive(Debug)]
pub struct Scan {
    number: Number,
    ranges: Vec<Range<u64>>,
    /// For each axis, its parts that are within one block.
    parts: Vec<Vec<Part>>,
    /// The next block: the index of its part on each axis; `None` at the end.
    next: Option<Vec<usize>>,
    done: u64,
    failed: u64,
    statistics: Statistics,
}

impl Scan {
    /// Starts with the first block of the slice. `field` is the index of the number of the items.
    ///
    /// # Errors
    /// [`Error::Argument`]: the slice is out of bounds, or `field` is not a number of the items.
    pub fn new(data: &Data, field: usize, ranges: &[Range<u64>]) -> Result<Self, Error> {
        let geometry = data.geometry();
        // Checks the ranges.
        drop(geometry.chunks_of(ranges)?);
        let parts: Vec<_> =
            geometry.axes().zip(ranges).map(|(axis, range)| parts(axis, range)).collect();
        Ok(Self {
            number: data.number(field)?,
            ranges: ranges.to_vec(),
            next: parts.iter().all(|parts| !parts.is_empty()).then(|| vec![0; parts.len()]),
            parts,
            done: 0,
            failed: 0,
            statistics: Statistics::default(),
        })
    }

    /// Reads the next block. Returns whether there are more blocks.
    ///
    /// # Errors
    /// Fails with the errors of [`File::read_ranges`](blosc2_format::file::File::read_ranges). The next call continues
    /// with the next block.
    pub fn step(&mut self, data: &mut Data) -> Result<bool, Error> {
        let Some(at) = self.next.take() else { return Ok(false) };
        let place: Vec<Part> =
            at.iter().zip(&self.parts).map(|(&k, parts)| parts[k].clone()).collect();
        self.next = advance(at, &self.parts);
        self.done += 1;
        let (chunk, block) = numbers(data.geometry(), &place);
        let steps = strides(data.geometry().block_shape(), data.geometry().typesize());
        let distances = self.distances();
        let (number, statistics) = (&self.number, &mut self.statistics);
        let count: usize = place.iter().rev().skip(1).map(|part| part.count).product();
        let mut line = Vec::new();
        let read = data.block(chunk, block, |bytes| {
            for row in 0..count {
                let (mut rest, mut start, mut position) = (row, 0, 0);
                for (axis, part) in place.iter().enumerate().rev() {
                    let mut k = 0;
                    if axis + 1 < place.len() {
                        k = rest % part.count;
                        rest /= part.count;
                    }
                    start += (part.from + k) * steps[axis];
                    position += (part.before + k as u64) * distances[axis];
                }
                line.clear();
                let (len, step) = place
                    .last()
                    .zip(steps.last())
                    .map_or((1, 1), |(part, &step)| (part.count, step));
                number.decode(bytes, start, step, len, &mut line);
                statistics.add(&line, position);
            }
        });
        self.failed += u64::from(read.is_err());
        read.map(|()| self.next.is_some())
    }

    /// The distances of the items of the slice on each axis, in C order.
    fn distances(&self) -> Vec<u64> {
        let mut distances = vec![1; self.ranges.len()];
        for axis in (1..distances.len()).rev() {
            let Range { start, end } = self.ranges[axis];
            distances[axis - 1] = distances[axis] * (end - start);
        }
        distances
    }

    /// Returns the next `count` blocks that [`step`](Self::step) reads: their chunks, and their indices.
    pub fn next_blocks(&self, data: &Data, count: usize) -> Vec<(u64, u64)> {
        let places =
            std::iter::successors(self.next.clone(), |at| advance(at.clone(), &self.parts));
        let parts = |at: Vec<usize>| -> Vec<Part> {
            at.iter().zip(&self.parts).map(|(&k, parts)| parts[k].clone()).collect()
        };
        places.take(count).map(|at| numbers(data.geometry(), &parts(at))).collect()
    }

    /// Returns the part that was read, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let count: f64 = self.parts.iter().map(|parts| parts.len() as f64).product();
        if count == 0.0 { 1.0 } else { self.done as f64 / count }
    }

    /// Returns the statistics of what was read.
    pub fn statistics(&self) -> Value {
        let distances = self.distances();
        let index = |position: u64| {
            let axes = self.ranges.iter().zip(&distances);
            axes.map(|(range, distance)| {
                range.start + position / distance % (range.end - range.start).max(1)
            })
            .collect()
        };
        self.statistics.to_json(self.next.is_none() && self.failed == 0, &index)
    }
}
