//! A line plot of the items of one axis: the least and the greatest number for each pixel.

use std::ops::Range;

use blosc2_format::Error;
use serde_json::{Value, json};

use crate::data::{Data, Part, numbers, parts, strides};
use crate::item::Number;
use crate::plane::{Order, Plane};
use crate::stats::Statistics;

/// The maximum number of columns.
const MAX_WIDTH: usize = 8192;
/// The maximum number of blocks of a plot.
const MAX_BLOCKS: u64 = 1 << 22;

/// A plot that is being read.
#[derive(Debug)]
pub struct Plot {
    plane: Plane,
    number: Number,
    range: Range<u64>,
    parts: Vec<Part>,
    /// The least and the greatest number of each column; NaN if there is none.
    columns: Vec<[f64; 2]>,
    /// The same for columns whose items were not read yet, from a block close to them.
    coarse: Vec<[f64; 2]>,
    stats: Statistics,
    done: usize,
    /// The chunks of the blocks that cannot be read.
    unreadable: Vec<(u64, Range<u64>)>,
    order: Order,
    line: Vec<f64>,
}

const NOTHING: [f64; 2] = [f64::NAN; 2];

/// Extends the least and the greatest number. NaN is ignored.
fn extend([low, high]: [f64; 2], value: f64) -> [f64; 2] {
    [low.min(value), high.max(value)]
}

impl Plot {
    /// Starts a plot of the items in `range` on the axis of `plane`, with at most `width` columns.
    ///
    /// # Errors
    /// [`Error::Argument`]: the plane is not one of the array, `field` is not a number of the items, or there are too
    /// many blocks.
    pub fn new(
        data: &Data,
        plane: Plane,
        field: usize,
        range: &Range<u64>,
        width: usize,
    ) -> Result<Self, Error> {
        let geometry = data.geometry();
        plane.check(geometry)?;
        let &[axis] = &plane.axes[..] else {
            return Err(Error::Argument("a plot needs one axis".to_owned()));
        };
        let number = data.number(field)?;
        let size = geometry.shape()[axis];
        let range = range.start.min(size)..range.end.min(size).max(range.start.min(size));
        let len = range.end - range.start;
        let along = geometry.axes().nth(axis).expect("the plane was checked");
        if len / along.block.max(1) > MAX_BLOCKS {
            let detail = format!("a plot of {len} items in more than {MAX_BLOCKS} blocks: zoom in");
            return Err(Error::Argument(detail));
        }
        let width = width.clamp(1, MAX_WIDTH).min(usize::try_from(len).unwrap_or(MAX_WIDTH));
        let parts = parts(along, &range);
        Ok(Self {
            order: Order::new([1, parts.len()]),
            plane,
            number,
            range,
            parts,
            columns: vec![NOTHING; width],
            coarse: vec![NOTHING; width],
            stats: Statistics::default(),
            done: 0,
            unreadable: Vec::new(),
            line: Vec::new(),
        })
    }

    /// Returns the number of the column of an item, which is counted from the first one.
    fn column(&self, item: u64) -> usize {
        let len = u128::from(self.range.end - self.range.start).max(1);
        (u128::from(item) * self.columns.len() as u128 / len) as usize
    }

    /// Reads the next block. Returns whether there are more blocks.
    ///
    /// # Errors
    /// Fails with the errors of [`File::read_ranges`](blosc2_format::file::File::read_ranges). The next call continues with the next
    /// block.
    pub fn step(&mut self, data: &mut Data) -> Result<bool, Error> {
        let Some((_, index, side)) = self.order.next() else { return Ok(false) };
        let axis = self.plane.axes[0];
        let part = self.parts[index].clone();
        let place = self.place(data, index);
        let (chunk, block) = numbers(data.geometry(), &place);
        let steps = strides(data.geometry().block_shape(), data.geometry().typesize());
        let start = place.iter().zip(&steps).map(|(part, step)| part.from * step).sum();
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let number = &self.number;
        let read = data.block(chunk, block, |bytes| {
            number.decode(bytes, start, steps[axis], part.count, &mut line);
        });
        let from = self.range.start + part.before;
        read.inspect_err(|_| self.unreadable.push((chunk, from..from + part.count as u64)))?;
        self.stats.add(&line, from);
        let mut all = NOTHING;
        let mut item = 0;
        while item < part.count {
            let column = self.column(part.before + item as u64);
            // The first item of the next column.
            let len = u128::from(self.range.end - self.range.start);
            let next = (len * (column as u128 + 1)).div_ceil(self.columns.len() as u128) as u64;
            let end = usize::try_from(next - part.before).unwrap_or(usize::MAX).min(part.count);
            let extremes =
                line[item..end].iter().fold(NOTHING, |extremes, &value| extend(extremes, value));
            for value in extremes {
                self.columns[column] = extend(self.columns[column], value);
                all = extend(all, value);
            }
            item = end;
        }
        if side > 1 {
            let last = &self.parts[(index + side).min(self.parts.len()) - 1];
            let columns =
                self.column(part.before)..=self.column(last.before + last.count as u64 - 1);
            self.coarse[columns].fill(all);
        }
        self.line = line;
        self.done += 1;
        Ok(true)
    }

    /// The parts of all axes that the part at `index` of the axis of the plot is in.
    fn place(&self, data: &Data, index: usize) -> Vec<Part> {
        let mut place = self.plane.fixed(data.geometry());
        place[self.plane.axes[0]] = self.parts[index].clone();
        place
    }

    /// Returns the next `count` blocks that [`step`](Self::step) reads: their chunks, and their indices.
    pub fn next_blocks(&self, data: &Data, count: usize) -> Vec<(u64, u64)> {
        let parts = self.order.clone().take(count);
        parts.map(|(_, index, _)| numbers(data.geometry(), &self.place(data, index))).collect()
    }

    /// Returns whether the first, coarse blocks are still being read.
    pub fn is_coarse(&self) -> bool {
        self.order.is_coarse()
    }

    /// Returns the least and the greatest number of each column; NaN if there is none.
    pub fn columns(&self) -> Vec<f64> {
        let both = self.columns.iter().zip(&self.coarse);
        both.flat_map(|(&column, &coarse)| if column[0].is_nan() { coarse } else { column })
            .collect()
    }

    /// Returns the range of the plot, and how much of it was read.
    pub fn facts(&self) -> Value {
        json!({
            "start": self.range.start,
            "end": self.range.end,
            "width": self.columns.len(),
            "blocks": self.parts.len(),
            "done": self.done,
            "unreadable": self.unreadable.iter().map(|(chunk, items)| {
                json!({ "chunk": chunk, "items": [items.start, items.end] })
            }).collect::<Vec<_>>(),
        })
    }

    /// Returns the statistics of the items that were read.
    pub fn statistics(&self) -> Value {
        let index = |at: u64| {
            let mut index = self.plane.at.clone();
            index[self.plane.axes[0]] = at;
            index
        };
        self.stats.to_json(self.done == self.parts.len(), &index)
    }
}
