//! The division of the items of an expression into units and tiles.
//!
//! A unit contains the items of one or several chunks of one array of the expression. A tile contains the items of some
//! blocks of a unit. A piece is a part of a unit and consists of tiles. A span is a box of pieces: one thread processes
//! a span, at once if all its items are equal. The division depends only on the arrays, and not on the number of threads.

use std::ops::Range;

use crate::Result;
use crate::ndarray::ranges::next_index;
use crate::ndarray::view::Grid;

/// The size in bytes up to which small tiles are enlarged, so that the overhead of each tile is small.
const LEAST: u64 = 128 << 10;
/// The maximum size of a tile in bytes that covers the blocks of all arrays.
const MOST: u64 = 4 << 20;
/// The size of a tile in bytes, if the expression has no array.
const WITHOUT_ARRAYS: u64 = 256 << 10;
/// If there are fewer units than this number, units are divided into about this number of pieces.
const PIECES: u64 = 64;
/// The number of spans from which on a span has several pieces.
const SPANS: u64 = 1024;
/// The maximum number of pieces in a span.
const PIECES_OF_A_SPAN: u64 = 1024;

/// The chunks and blocks of an array on the axes of an expression.
#[derive(Debug)]
pub(super) struct Layout {
    /// The size of the items of the array in bytes, and of one item in memory.
    pub(super) size: u64,
    pub(super) itemsize: usize,
    pub(super) axes: Vec<Grid>,
}

#[derive(Debug)]
pub(super) struct Space {
    shape: Vec<u64>,
    axes: Vec<Axis>,
    itemsize: u64,
}

#[derive(Debug, Clone, Copy)]
struct Axis {
    size: u64,
    offset: u64,
    chunk: u64,
    tile: u64,
}

impl Space {
    /// Divides the items of an expression. It has this shape and items of `itemsize` bytes, and is computed from arrays
    /// with these layouts.
    pub(super) fn new(shape: &[u64], itemsize: usize, layouts: &[Layout]) -> Self {
        // The items of the arrays and the items of the expression are in memory together, so the largest item size is
        // used.
        let itemsizes = layouts.iter().map(|layout| layout.itemsize);
        let itemsize = itemsizes.fold(itemsize, usize::max);
        let spaces = layouts.iter().map(|layout| Self::along(shape, itemsize, layout, layouts));
        let cost = |space: &Self| {
            cost(&space.axes.iter().map(|axis| axis.tile).collect::<Vec<_>>(), layouts)
        };
        let best = spaces.min_by(|one, other| cost(one).total_cmp(&cost(other)));
        let mut space = best.unwrap_or_else(|| Self::without_arrays(shape, itemsize));
        let least = if layouts.is_empty() { WITHOUT_ARRAYS } else { LEAST };
        let all: Vec<usize> = (0..shape.len()).collect();
        space.grow(&all, least);
        space
    }

    fn without_arrays(shape: &[u64], itemsize: usize) -> Self {
        let axes = shape.iter().map(|&size| Axis { size, offset: 0, chunk: size.max(1), tile: 1 });
        let itemsize = itemsize.max(1) as u64;
        Self { shape: shape.to_vec(), axes: axes.collect(), itemsize }
    }

    /// Divides the items at the boundaries of the chunks and blocks of one array, `own`.
    fn along(shape: &[u64], itemsize: usize, own: &Layout, layouts: &[Layout]) -> Self {
        let axes = shape.iter().enumerate().map(|(axis, &size)| {
            let grid = own.axes[axis];
            let largest = layouts.iter().map(|layout| layout.axes[axis].block).max();
            // A unit can have several chunks, so that a tile covers the blocks of all arrays.
            let chunk = largest.unwrap_or(1).next_multiple_of(grid.chunk.max(1));
            let chunk = chunk.max(grid.chunk.max(1));
            Axis { size, offset: grid.offset, chunk, tile: grid.block.clamp(1, chunk) }
        });
        let itemsize = itemsize.max(1) as u64;
        let mut space = Self { shape: shape.to_vec(), axes: axes.collect(), itemsize };
        // If a block overlaps several tiles, the block is decompressed for each of these tiles.
        for (axis, each) in space.axes.iter_mut().enumerate() {
            let block = layouts.iter().map(|layout| layout.axes[axis].block).max().unwrap_or(1);
            each.tile = block.next_multiple_of(each.tile).min(each.chunk).min(each.size.max(1));
        }
        while space.tile_len() > MOST {
            // Halves the tile on the axis on which this causes the least decompression.
            let halves = (0..shape.len()).filter_map(|axis| {
                let mut tile: Vec<u64> = space.axes.iter().map(|axis| axis.tile).collect();
                let block = own.axes[axis].block.max(1);
                tile[axis] = (tile[axis] / 2).max(1).next_multiple_of(block);
                (tile[axis] < space.axes[axis].tile).then(|| (cost(&tile, layouts), axis, tile))
            });
            let Some((_, axis, tile)) = halves.min_by(|one, other| one.0.total_cmp(&other.0))
            else {
                break;
            };
            space.axes[axis].tile = tile[axis];
        }
        space
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Reduces the size of tiles on these axes, until a tile has at most `most` items on these axes.
    pub(super) fn limit(&mut self, axes: &[usize], most: u64) {
        let most = most.max(1);
        for (number, &axis) in axes.iter().enumerate() {
            let sizes = |axes: &[usize], all: &[Axis]| {
                axes.iter().fold(1u64, |sum, &axis| sum.saturating_mul(all[axis].tile))
            };
            let (outer, inner) =
                (sizes(&axes[..number], &self.axes), sizes(&axes[number + 1..], &self.axes));
            let others = outer.saturating_mul(inner);
            let tile = &mut self.axes[axis].tile;
            *tile = (most / others.max(1)).clamp(1, *tile);
        }
    }

    /// Increases the size of tiles on these axes, up to `bytes` bytes.
    pub(super) fn grow(&mut self, axes: &[usize], bytes: u64) {
        for &axis in axes.iter().rev() {
            let now = self.tile_len();
            let Axis { chunk, tile, .. } = self.axes[axis];
            self.axes[axis].tile = (bytes / now.max(1)).max(1).saturating_mul(tile).min(chunk);
        }
    }

    fn tile_len(&self) -> u64 {
        let sizes = self.axes.iter().map(|axis| axis.tile.min(axis.size));
        sizes.fold(self.itemsize, |all, size| all.saturating_mul(size))
    }

    /// Returns the pieces on these axes: units, or parts of units if there are few units.
    pub(super) fn pieces(&self, axes: &[usize]) -> Pieces<'_> {
        let mut pieces = self.boxes(axes, |axis| axis.chunk);
        for (number, &axis) in axes.iter().enumerate() {
            let Axis { chunk, tile, .. } = self.axes[axis];
            let parts = PIECES.div_ceil(pieces.count().max(1)).min(chunk.div_ceil(tile));
            pieces.sizes[number] = chunk.div_ceil(parts).next_multiple_of(tile).min(chunk);
        }
        pieces
    }

    /// Returns spans on all axes. They contain all items on the axes after `axis`.
    pub(super) fn slabs(&self, axis: usize) -> Pieces<'_> {
        let (outer, inner): (Vec<usize>, Vec<usize>) =
            (0..self.shape.len()).partition(|&other| other <= axis);
        let (mut slabs, inner) = (self.pieces(&outer).spans(), self.pieces(&inner));
        slabs.counts.extend((0..inner.axes.len()).map(|at| inner.count_on(at)));
        slabs.sizes.extend(inner.sizes);
        slabs.axes.extend(inner.axes);
        slabs
    }

    pub(super) fn tiles(&self, axes: &[usize]) -> Pieces<'_> {
        self.boxes(axes, |axis| axis.tile)
    }

    fn boxes(&self, axes: &[usize], size: impl Fn(&Axis) -> u64) -> Pieces<'_> {
        let sizes = axes.iter().map(|&axis| size(&self.axes[axis])).collect();
        Pieces { space: self, axes: axes.to_vec(), sizes, counts: vec![1; axes.len()] }
    }
}

/// Returns an estimate of the bytes that are decompressed for tiles of this size.
fn cost(tile: &[u64], layouts: &[Layout]) -> f64 {
    let cost = |layout: &Layout| {
        let along = tile.iter().zip(&layout.axes);
        let parts = along.map(|(&tile, grid)| grid.block.max(tile) as f64 / tile as f64);
        layout.size as f64 * parts.product::<f64>()
    };
    layouts.iter().map(cost).sum()
}

/// Boxes of equal size, into which the chunks are divided, on some axes of an expression. The last boxes of a chunk can
/// be smaller. Neighboring boxes can be joined to spans; otherwise, each box is a span.
#[derive(Debug)]
pub(super) struct Pieces<'a> {
    space: &'a Space,
    axes: Vec<usize>,
    sizes: Vec<u64>,
    /// The number of pieces of a span on each axis.
    counts: Vec<u64>,
}

impl Pieces<'_> {
    /// Returns the number of spans; some may be empty.
    pub(super) fn count(&self) -> u64 {
        (0..self.axes.len()).fold(1, |all, at| all.saturating_mul(self.spans_on(at)))
    }

    fn spans_on(&self, at: usize) -> u64 {
        self.count_on(at).div_ceil(self.counts[at])
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Span<'_>> {
        (0..self.count()).filter_map(|number| self.get(number))
    }

    pub(super) fn get(&self, mut number: u64) -> Option<Span<'_>> {
        let ndim = self.axes.len();
        let mut span = Span { pieces: self, indices: vec![0..0; ndim], ranges: vec![0..0; ndim] };
        for at in (0..ndim).rev() {
            let (count, pieces) = (self.spans_on(at), self.counts[at]);
            let start = number % count * pieces;
            let end = (start + pieces).min(self.count_on(at));
            number /= count;
            span.indices[at] = start..end;
            span.ranges[at] = self.range(at, start).start..self.range(at, end - 1).end;
            if span.ranges[at].is_empty() {
                return None;
            }
        }
        Some(span)
    }

    fn count_on(&self, at: usize) -> u64 {
        let axis = &self.space.axes[self.axes[at]];
        axis.chunks() * axis.chunk.div_ceil(self.sizes[at])
    }

    /// Returns the range on an axis of the piece with this index on the axis.
    fn range(&self, at: usize, index: u64) -> Range<u64> {
        let (len, Axis { size, offset, chunk, .. }) =
            (self.sizes[at], self.space.axes[self.axes[at]]);
        let parts = chunk.div_ceil(len);
        let (chunk_number, part) = (index / parts, index % parts);
        let start = chunk_number * chunk + part * len;
        let end = (start + len).min((chunk_number + 1) * chunk);
        start.saturating_sub(offset)..end.saturating_sub(offset).min(size)
    }

    /// Joins neighboring pieces to spans. If there are few pieces, a span is a piece. In C order, the items of each span
    /// follow those of the span before, as those of pieces do.
    pub(super) fn spans(mut self) -> Self {
        let mut left = (self.count() / SPANS).clamp(1, PIECES_OF_A_SPAN);
        // Entire inner axes, so that the pieces of a span are consecutive in C order.
        for at in (0..self.axes.len()).rev() {
            let count = self.count_on(at).max(1);
            self.counts[at] = left.min(count);
            left = if left >= count { left / count } else { 1 };
        }
        self
    }

    /// Calls `work` with the range of each tile of a box, in C order.
    pub(super) fn each_tile(
        &self,
        piece: &[Range<u64>],
        work: &mut dyn FnMut(&[Range<u64>]) -> Result<()>,
    ) -> Result<()> {
        let first = |at: usize| {
            let (range, axis) = (&piece[at], &self.space.axes[self.axes[at]]);
            range.start..axis.tile_end(range.start, range.end)
        };
        let mut tile: Vec<Range<u64>> = (0..piece.len()).map(first).collect();
        loop {
            work(&tile)?;
            let next = (0..piece.len()).rev().find(|&at| tile[at].end < piece[at].end);
            let Some(at) = next else { return Ok(()) };
            let start = tile[at].end;
            tile[at] = start..self.space.axes[self.axes[at]].tile_end(start, piece[at].end);
            (at + 1..piece.len()).for_each(|later| tile[later] = first(later));
        }
    }
}

#[derive(Debug)]
pub(super) struct Span<'a> {
    pub(super) pieces: &'a Pieces<'a>,
    /// The indices of the pieces on each axis.
    indices: Vec<Range<u64>>,
    pub(super) ranges: Vec<Range<u64>>,
}

impl Span<'_> {
    pub(super) fn has_several(&self) -> bool {
        self.indices.iter().any(|indices| indices.end - indices.start > 1)
    }

    pub(super) fn each_piece(
        &self,
        work: &mut dyn FnMut(&[Range<u64>]) -> Result<()>,
    ) -> Result<()> {
        let range = |at: usize, index: u64| self.pieces.range(at, index);
        let mut index: Vec<u64> = self.indices.iter().map(|indices| indices.start).collect();
        loop {
            let piece: Vec<_> = index.iter().enumerate().map(|(at, &i)| range(at, i)).collect();
            if piece.iter().all(|range| !range.is_empty()) {
                work(&piece)?;
            }
            if !next_index(&mut index, &self.indices) {
                return Ok(());
            }
        }
    }
}

impl Axis {
    fn chunks(&self) -> u64 {
        if self.size == 0 { 0 } else { (self.offset + self.size - 1) / self.chunk + 1 }
    }

    /// Returns the end of the tile that starts at `start`, at most `end`.
    fn tile_end(&self, start: u64, end: u64) -> u64 {
        let in_chunk = (start + self.offset) % self.chunk;
        (start + self.tile - in_chunk % self.tile).min(start + self.chunk - in_chunk).min(end)
    }
}
