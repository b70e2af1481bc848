//! A picture of a plane of an array: one number for each pixel, refined as blocks are read.

use std::ops::Range;

use blosc2_format::Error;
use blosc2_format::b2nd::Geometry;
use serde_json::{Value, json};

use crate::data::{Data, Part, numbers, strides};
use crate::item::Number;
use crate::plane::{Order, Plane, Samples};
use crate::stats::Statistics;

/// The maximum number of pixels on each side.
const MAX_SIDE: u64 = 2048;

/// A picture that is being read.
#[derive(Debug)]
pub struct Picture {
    plane: Plane,
    number: Number,
    rows: Samples,
    cols: Samples,
    row_parts: Vec<Part>,
    col_parts: Vec<Part>,
    /// The pixels in rows; NaN if nothing is known.
    values: Vec<f64>,
    /// For each block whether its pixels are those of its items. Other pixels have the mean of a block close to them.
    exact: Vec<bool>,
    done: usize,
    /// The blocks that cannot be read: the parts of the rows and of the columns, and the chunk.
    unreadable: Vec<(usize, usize, u64)>,
    order: Order,
}

impl Picture {
    /// Starts a picture of the items in `ranges`: of rows, and of columns. A pixel stands for `steps` items
    /// of rows and of columns. Blocks in the cache are painted at once.
    ///
    /// # Errors
    /// [`Error::Argument`]: the plane is not one of the array, or `field` is not a number of the items.
    pub fn new(
        data: &mut Data,
        plane: Plane,
        field: usize,
        ranges: &[Range<u64>; 2],
        steps: [u64; 2],
    ) -> Result<Self, Error> {
        let geometry = data.geometry().clone();
        plane.check(&geometry)?;
        let &[row_axis, col_axis] = &plane.axes[..] else {
            return Err(Error::Argument("a picture needs two axes".to_owned()));
        };
        let number = data.number(field)?;
        let samples = |k: usize, axis: usize| {
            Samples::new(&ranges[k], steps[k], MAX_SIDE, geometry.shape()[axis])
        };
        let (rows, cols) = (samples(0, row_axis), samples(1, col_axis));
        let axes: Vec<_> = geometry.axes().collect();
        let (row_parts, col_parts) = (rows.parts(axes[row_axis]), cols.parts(axes[col_axis]));
        let mut picture = Self {
            values: vec![f64::NAN; rows.count() * cols.count()],
            exact: vec![false; row_parts.len() * col_parts.len()],
            order: Order::new([row_parts.len(), col_parts.len()]),
            done: 0,
            unreadable: Vec::new(),
            plane,
            number,
            rows,
            cols,
            row_parts,
            col_parts,
        };
        for row in 0..picture.row_parts.len() {
            for col in 0..picture.col_parts.len() {
                let (chunk, block) = picture.place(data, row, col);
                if data.is_cached(chunk, block) {
                    let geometry = &geometry;
                    // The step that reads this block returns its error.
                    let _ = data.block(chunk, block, |bytes| {
                        picture.paint_block(geometry, row, col, bytes)
                    });
                }
            }
        }
        Ok(picture)
    }

    /// Reads and paints the next block. Returns whether there are more blocks.
    ///
    /// # Errors
    /// Fails with the errors of [`File::read_ranges`](blosc2_format::file::File::read_ranges). The block is not painted, and the next
    /// call continues with the next one.
    pub fn step(&mut self, data: &mut Data) -> Result<bool, Error> {
        loop {
            let Some((row, col, side)) = self.order.next() else { return Ok(false) };
            if self.exact[row * self.col_parts.len() + col] && side == 1 {
                continue;
            }
            let (chunk, block) = self.place(data, row, col);
            let geometry = data.geometry().clone();
            let mean =
                data.block(chunk, block, |bytes| self.paint_block(&geometry, row, col, bytes));
            let mean = mean.inspect_err(|_| self.unreadable.push((row, col, chunk)))?;
            if side > 1 {
                self.fill(row, col, side, mean);
            }
            return Ok(true);
        }
    }

    /// Returns the next `count` blocks that [`step`](Self::step) reads: their chunks, and their indices.
    pub fn next_blocks(&self, data: &Data, count: usize) -> Vec<(u64, u64)> {
        let is_new = |&(row, col, side): &(usize, usize, usize)| {
            side > 1 || !self.exact[row * self.col_parts.len() + col]
        };
        let cells = self.order.clone().filter(is_new).take(count);
        cells.map(|(row, col, _)| self.place(data, row, col)).collect()
    }

    /// Returns whether the first, coarse blocks are still being read.
    pub fn is_coarse(&self) -> bool {
        self.order.is_coarse()
    }

    /// The chunk and the block of a part of the rows and of the columns.
    fn place(&self, data: &Data, row: usize, col: usize) -> (u64, u64) {
        numbers(data.geometry(), &self.parts(data.geometry(), row, col))
    }

    fn parts(&self, geometry: &Geometry, row: usize, col: usize) -> Vec<Part> {
        let mut parts = self.plane.fixed(geometry);
        parts[self.plane.axes[0]] = self.row_parts[row].clone();
        parts[self.plane.axes[1]] = self.col_parts[col].clone();
        parts
    }

    /// Paints the pixels of a block, and returns their mean.
    fn paint_block(&mut self, geometry: &Geometry, row: usize, col: usize, bytes: &[u8]) -> f64 {
        let steps = strides(geometry.block_shape(), geometry.typesize());
        let parts = self.parts(geometry, row, col);
        let base: usize = parts.iter().zip(&steps).map(|(part, step)| part.from * step).sum();
        let (row_step, col_step) = (steps[self.plane.axes[0]], steps[self.plane.axes[1]]);
        let (rows, cols) = (self.row_parts[row].clone(), self.col_parts[col].clone());
        let mut line = Vec::with_capacity(cols.count);
        let (mut sum, mut count) = (0.0, 0u64);
        for k in 0..rows.count {
            let row = rows.before as usize + k;
            let start = base
                + (self.rows.index(row) - self.rows.index(rows.before as usize)) as usize
                    * row_step;
            line.clear();
            // The last sample of an axis can be closer to the one before it.
            let whole = cols.count - 1;
            let step = self.cols.step as usize * col_step;
            self.number.decode(bytes, start, step, whole, &mut line);
            let last = self.cols.index(cols.before as usize + whole)
                - self.cols.index(cols.before as usize);
            self.number.decode(bytes, start + last as usize * col_step, step, 1, &mut line);
            let at = row * self.cols.count() + cols.before as usize;
            self.values[at..at + cols.count].copy_from_slice(&line);
            for value in line.iter().filter(|value| value.is_finite()) {
                sum += value;
                count += 1;
            }
        }
        let exact = &mut self.exact[row * self.col_parts.len() + col];
        self.done += usize::from(!*exact);
        *exact = true;
        sum / count as f64
    }

    /// Paints the pixels of blocks that were not read yet.
    fn fill(&mut self, row: usize, col: usize, side: usize, value: f64) {
        let width = self.cols.count();
        for (k, rows) in self.row_parts.iter().enumerate().skip(row).take(side) {
            for (l, cols) in self.col_parts.iter().enumerate().skip(col).take(side) {
                if self.exact[k * self.col_parts.len() + l] {
                    continue;
                }
                for y in rows.before as usize..rows.before as usize + rows.count {
                    let at = y * width + cols.before as usize;
                    self.values[at..at + cols.count].fill(value);
                }
            }
        }
    }

    /// Returns the pixels in rows.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the place of the picture in the plane, and how much of it was read.
    pub fn facts(&self) -> Value {
        json!({
            "row": self.rows.range.start * self.rows.step,
            "col": self.cols.range.start * self.cols.step,
            "height": self.rows.count(),
            "width": self.cols.count(),
            "rowStep": self.rows.step,
            "colStep": self.cols.step,
            "blocks": self.exact.len(),
            "done": self.done,
            "unreadable": self.unreadable.iter().map(|&(row, col, chunk)| {
                let [rows, cols] = [&self.row_parts[row], &self.col_parts[col]]
                    .map(|part| [part.before, part.count as u64]);
                json!({ "chunk": chunk, "rows": rows, "cols": cols })
            }).collect::<Vec<_>>(),
        })
    }

    /// Returns the statistics of the pixels that show items.
    pub fn statistics(&self) -> Value {
        let mut stats = Statistics::default();
        let width = self.cols.count();
        for (k, rows) in self.row_parts.iter().enumerate() {
            for (l, cols) in self.col_parts.iter().enumerate() {
                if !self.exact[k * self.col_parts.len() + l] {
                    continue;
                }
                for y in rows.before as usize..rows.before as usize + rows.count {
                    let at = y * width + cols.before as usize;
                    stats.add(&self.values[at..at + cols.count], at as u64);
                }
            }
        }
        let index = |at: u64| {
            let mut index = self.plane.at.clone();
            index[self.plane.axes[0]] = self.rows.index(at as usize / width);
            index[self.plane.axes[1]] = self.cols.index(at as usize % width);
            index
        };
        let all = self.rows.step == 1 && self.cols.step == 1 && self.done == self.exact.len();
        stats.to_json(all, &index)
    }
}
