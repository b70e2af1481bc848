//! The plan of a read or a write: the chunks, the blocks of each chunk, and the place of each item in memory.

use std::ops::Range;

use blosc2_format::b2nd::Geometry;

use smallvec::smallvec;

use super::places::Places;
use super::region::{Positions, Region};
use super::selection::Few;
use crate::memory::reserve;
use crate::{Error, ErrorKind, Result};

/// Items of an array.
#[derive(Clone, Copy)]
pub(super) enum Items<'a> {
    Region(&'a Region),
    /// Single items. In memory they have one axis.
    Points(&'a dyn Indices),
}

impl Items<'_> {
    /// Returns the shape of the items in memory.
    pub(super) fn shape(&self) -> Few<u64> {
        match self {
            Items::Region(region) => region.shape(),
            Items::Points(points) => smallvec![points.count() as u64],
        }
    }

    /// Returns a plan for the items at these places. Fails if another handle has shrunk the array, so that it does not
    /// contain all items.
    pub(super) fn plan<'p>(
        &'p self,
        geometry: &'p Geometry,
        places: &'p Places,
        doing: &str,
    ) -> Result<Plan<'p>> {
        match *self {
            Items::Region(region) => {
                region.check_inside(geometry.shape(), doing)?;
                Ok(Plan::new(geometry, region, places))
            }
            Items::Points(points) => Plan::of_points(geometry, points, places, doing),
        }
    }
}

/// A plan of a read or a write, which is divided into chunks.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    geometry: &'a Geometry,
    pub(super) places: &'a Places,
    what: What<'a>,
}

// A `Box` would need an allocation for each read.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum What<'a> {
    Region(Few<Axis<'a>>),
    /// Single items in the order of chunks and blocks, and the range of the items of each chunk.
    Points(Vec<Point>, Few<Range<usize>>),
}

/// The indices of single items.
pub(super) trait Indices {
    fn count(&self) -> usize;

    /// Writes the index of one item, one integer for each axis of the array.
    fn index(&self, number: usize, index: &mut [u64]);
}

/// The size of a plan in bytes for each single item.
pub(super) const POINT: u64 = size_of::<Point>() as u64;

/// A single item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Point {
    chunk: usize,
    block: usize,
    /// The index in the list of points. It is part of the order, so that the last of several equal points is written
    /// last.
    number: usize,
    /// The offset in the block, in bytes.
    at: usize,
}

/// One axis of the array.
#[derive(Debug)]
struct Axis<'a> {
    positions: &'a Positions,
    /// For a list: the positions in ascending order, each with its index in the list.
    sorted: Vec<(u64, u64)>,
    /// The distance in bytes between neighbors in memory.
    stride: isize,
    /// The coordinates on this axis of the chunks that contain positions.
    chunks: Few<u64>,
}

/// Positions that are consecutive in a block and in memory.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The first position in the block.
    at: usize,
    /// The offset of the first position in memory, in bytes.
    memory: isize,
    len: usize,
}

impl<'a> Plan<'a> {
    /// Creates a plan for a region inside the array, whose items are at these places in memory.
    pub(super) fn new(geometry: &'a Geometry, region: &'a Region, places: &'a Places) -> Self {
        check_places(places, &region.shape(), geometry);
        let stride_of = |axis: usize| {
            let dim = region.dims.iter().position(|dim| *dim == Some(axis));
            dim.map_or(0, |dim| places.strides[dim])
        };
        if region.positions.iter().any(|positions| positions.len() == 0) {
            // The plan is empty, even if other axes are large.
            return Self { geometry, places, what: What::Points(Vec::new(), Few::new()) };
        }
        let axes = region.positions.iter().enumerate();
        let axes = axes.map(|(axis, positions)| {
            Axis::new(positions, geometry.chunks()[axis].max(1), stride_of(axis))
        });
        Self { geometry, places, what: What::Region(axes.collect()) }
    }

    /// Creates a plan for single items at these places.
    fn of_points(
        geometry: &'a Geometry,
        points: &dyn Indices,
        places: &'a Places,
        doing: &str,
    ) -> Result<Self> {
        check_places(places, &[points.count() as u64], geometry);
        let (shape, chunks, blocks) = (geometry.shape(), geometry.chunks(), geometry.blocks());
        let (chunk_grid, block_grid) = (geometry.chunk_grid(), geometry.block_grid());
        let mut index: Few<u64> = smallvec![0; shape.len()];
        let mut point = |number| {
            points.index(number, &mut index);
            let (mut chunk, mut block, mut at) = (0, 0, 0);
            for (axis, &index) in index.iter().enumerate() {
                if index >= shape[axis] {
                    let detail =
                        format!("another handle or process has shrunk the array to {shape:?}");
                    return Err(Error::new(ErrorKind::OutOfBounds, doing, detail));
                }
                // None of these products overflows: the results are below the sizes of the array, of a chunk and of a
                // block.
                let in_chunk = index % chunks[axis];
                chunk = chunk * chunk_grid[axis] + index / chunks[axis];
                block = block * block_grid[axis] + in_chunk / blocks[axis];
                at = at * blocks[axis] + in_chunk % blocks[axis];
            }
            let at = at as usize * geometry.typesize();
            Ok(Point { chunk: chunk as usize, block: block as usize, number, at })
        };
        let mut all: Vec<Point> = Vec::new();
        reserve(&mut all, points.count(), doing)?;
        for number in 0..points.count() {
            all.push(point(number)?);
        }
        let mut points = all;
        points.sort_unstable();
        let mut ranges: Few<Range<usize>> = Few::new();
        for (number, point) in points.iter().enumerate() {
            match ranges.last_mut() {
                Some(range) if points[range.start].chunk == point.chunk => range.end += 1,
                _ => ranges.push(number..number + 1),
            }
        }
        Ok(Self { geometry, places, what: What::Points(points, ranges) })
    }

    pub(super) fn geometry(&self) -> &'a Geometry {
        self.geometry
    }

    /// Returns the maximum number of blocks of one chunk that contain planned items.
    pub(super) fn most_blocks(&self) -> u64 {
        let count = match &self.what {
            What::Region(axes) => {
                axes.iter().fold(1, |all: u64, axis| all.saturating_mul(axis.positions.len()))
            }
            What::Points(points, _) => points.len() as u64,
        };
        count.min(self.geometry.nblocks())
    }

    /// Returns the number of chunks that contain planned items.
    pub(super) fn nchunks(&self) -> usize {
        match &self.what {
            // The product is at most the number of chunks of the array.
            What::Region(axes) => axes.iter().map(|axis| axis.chunks.len()).product(),
            What::Points(_, ranges) => ranges.len(),
        }
    }

    /// Returns the coordinates of one of these chunks.
    fn place(&self, axes: &[Axis<'_>], mut number: usize) -> Few<u64> {
        let mut place: Few<u64> = smallvec![0; axes.len()];
        for (place, axis) in place.iter_mut().zip(axes).rev() {
            *place = axis.chunks[number % axis.chunks.len()];
            number /= axis.chunks.len();
        }
        place
    }

    /// Returns the parts of the plan in all of these chunks.
    pub(super) fn all_chunks(&self) -> impl Iterator<Item = ChunkPlan<'_>> {
        (0..self.nchunks()).map(|number| self.chunk(number))
    }

    /// Returns the part of the plan in one of these chunks.
    pub(super) fn chunk(&self, number: usize) -> ChunkPlan<'_> {
        let (number, covers, what) = match &self.what {
            What::Region(axes) => self.region_in_chunk(axes, number),
            What::Points(points, ranges) => {
                let points = &points[ranges[number].clone()];
                let blocks = points.chunk_by(|one, other| one.block == other.block).collect();
                (points[0].chunk, false, InChunk::Points(blocks))
            }
        };
        let (places, block_len) = (self.places, self.geometry.block_len());
        ChunkPlan { number, what, places, block_len, covers }
    }

    fn region_in_chunk(&self, axes: &[Axis<'_>], number: usize) -> (usize, bool, InChunk<'_>) {
        let (geometry, place) = (self.geometry, self.place(axes, number));
        let (chunks, blocks) = (geometry.chunks(), geometry.blocks());
        let mut covers = true;
        let mut along = Few::new();
        for (at, axis) in axes.iter().enumerate() {
            let start = place[at] * chunks[at];
            let end = geometry.shape()[at].min(start + chunks[at]);
            let part = axis.in_chunk(start, end, blocks[at].max(1));
            covers &= part.distinct == end - start;
            along.push(AxisInChunk {
                blocks: part.blocks,
                runs: part.runs,
                stride: axis.stride,
                side: blocks[at] as usize,
                grid: geometry.block_grid()[at] as usize,
            });
        }
        (position(&place, geometry.chunk_grid()), covers, InChunk::Region(along))
    }
}

/// Checks that the places have the shape and the typesize of the planned items.
fn check_places(places: &Places, shape: &[u64], geometry: &Geometry) {
    let found = (&places.shape[..], places.part.typesize);
    assert_eq!(found, (shape, geometry.typesize()), "the places do not match the items");
}

impl<'a> Axis<'a> {
    fn new(positions: &'a Positions, side: u64, stride: isize) -> Self {
        let mut sorted = Vec::new();
        let mut chunks = Few::new();
        match positions {
            Positions::Slice { count: 0, .. } => {}
            Positions::Slice { start, step, count } => {
                let last = positions.get(count - 1);
                let (low, high) = ((*start).min(last), (*start).max(last));
                if step.unsigned_abs() <= side {
                    chunks.extend(low / side..=high / side);
                } else {
                    chunks.extend((0..*count).map(|index| positions.get(index) / side));
                    chunks.sort_unstable();
                    chunks.dedup();
                }
            }
            Positions::List(list) => {
                sorted = list.iter().copied().zip(0..).collect();
                // Equal positions stay in the order of the list, so that the last of them is written last.
                sorted.sort();
                chunks.extend(sorted.iter().map(|(at, _)| at / side));
                chunks.dedup();
            }
        }
        Self { positions, sorted, stride, chunks }
    }

    /// Returns the positions from `start` to `end`, the range of a chunk.
    fn in_chunk(&self, start: u64, end: u64, side: u64) -> Part {
        let mut part = Part { blocks: Few::new(), runs: Few::new(), distinct: 0 };
        match *self.positions {
            Positions::Slice { start: first, step, count } => {
                // The positions in the chunk have consecutive indices in the selection.
                let by = step.unsigned_abs();
                let reach =
                    |to: u64| if to > first { (to - first).div_ceil(by).min(count) } else { 0 };
                let numbers = match step > 0 {
                    true => reach(start)..reach(end),
                    false => {
                        let from = if first >= end { (first - end) / by + 1 } else { 0 };
                        let to = if first >= start { (first - start) / by + 1 } else { 0 };
                        from.min(count)..to.min(count)
                    }
                };
                part.distinct = numbers.end - numbers.start;
                if step == 1 {
                    // One run for each block.
                    let mut number = numbers.start;
                    while number < numbers.end {
                        let at = first + number - start;
                        let len = (side - at % side).min(numbers.end - number);
                        part.push(at, side, self.memory(number), len as usize, None);
                        number += len;
                    }
                } else {
                    let mut push = |number: u64| {
                        let at = self.positions.get(number) - start;
                        part.push(at, side, self.memory(number), 1, None);
                    };
                    match step > 0 {
                        true => numbers.for_each(&mut push),
                        false => numbers.rev().for_each(&mut push),
                    }
                }
            }
            Positions::List(_) => {
                let from = self.sorted.partition_point(|&(at, _)| at < start);
                let mut before = None;
                for &(at, number) in &self.sorted[from..] {
                    if at >= end {
                        break;
                    }
                    part.distinct += u64::from(before != Some(at));
                    before = Some(at);
                    part.push(at - start, side, self.memory(number), 1, Some(self.stride));
                }
            }
        }
        part
    }

    /// Returns the offset in memory of the item with an index.
    fn memory(&self, number: u64) -> isize {
        self.stride * number as isize
    }
}

/// The positions on an axis in a chunk, grouped by blocks.
#[derive(Debug)]
struct Part {
    /// The coordinates of blocks in the chunk, each with its runs.
    blocks: Few<(usize, Range<usize>)>,
    runs: Few<Run>,
    /// The number of distinct positions.
    distinct: u64,
}

impl Part {
    /// Adds positions. `join` is the stride in memory, if the positions may extend the last run.
    fn push(&mut self, at: u64, side: u64, memory: isize, len: usize, join: Option<isize>) {
        // Both fit in a `usize`: they are below the number of items of a chunk.
        let (block, at) = ((at / side) as usize, (at % side) as usize);
        let new = self.blocks.last().is_none_or(|(last, _)| *last != block);
        if let (Some(stride), false, Some(last)) = (join, new, self.runs.last_mut())
            && last.at + last.len == at
            && last.memory + stride * last.len as isize == memory
        {
            last.len += len;
            return;
        }
        let number = self.runs.len();
        self.runs.push(Run { at, memory, len });
        match self.blocks.last_mut() {
            Some((_, runs)) if !new => runs.end = number + 1,
            _ => self.blocks.push((block, number..number + 1)),
        }
    }
}

/// The part of a plan in one chunk.
#[derive(Debug)]
pub(super) struct ChunkPlan<'a> {
    pub(super) number: usize,
    pub(super) places: &'a Places,
    what: InChunk<'a>,
    block_len: usize,
    /// Whether the plan covers all items of the chunk, except padding.
    pub(super) covers: bool,
}

// A `Box` would need an allocation for each chunk.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum InChunk<'a> {
    Region(Few<AxisInChunk>),
    /// Single items, grouped by blocks.
    Points(Few<&'a [Point]>),
}

#[derive(Debug)]
struct AxisInChunk {
    blocks: Few<(usize, Range<usize>)>,
    runs: Few<Run>,
    stride: isize,
    /// The number of items of a block, and the number of blocks of a chunk (`grid`), on this axis.
    side: usize,
    grid: usize,
}

/// A block, and the layout of its items in memory.
#[derive(Debug)]
pub(super) struct BlockPlan<'a> {
    pub(super) number: usize,
    pub(super) len: usize,
    pub(super) places: &'a Places,
    what: InBlock<'a>,
}

#[derive(Debug)]
enum InBlock<'a> {
    Region {
        /// The axes to iterate over, from the outermost one.
        axes: Few<AxisInBlock<'a>>,
        /// The size in bytes of a unit of items. A unit is contiguous in the block and in memory.
        unit: usize,
        /// The offset in memory to which the offsets of the runs are added.
        memory: isize,
    },
    Points(&'a [Point]),
}

#[derive(Debug, Clone, Copy)]
struct AxisInBlock<'a> {
    runs: &'a [Run],
    stride: isize,
    /// The distance in bytes between neighbors in the block.
    step: usize,
}

impl ChunkPlan<'_> {
    /// Returns whether a part of the chunk is outside the array, or is padding of blocks.
    pub(super) fn has_padding(&self, geometry: &Geometry) -> bool {
        let ranges = chunk_ranges(geometry, self.number);
        let items = ranges.iter().map(|range| range.end - range.start).product::<u64>();
        items * geometry.typesize() as u64 != geometry.chunk_len() as u64
    }

    /// Returns the number of blocks that contain planned items.
    pub(super) fn nblocks(&self) -> usize {
        match &self.what {
            InChunk::Region(axes) => axes.iter().map(|axis| axis.blocks.len()).product(),
            InChunk::Points(blocks) => blocks.len(),
        }
    }

    /// Returns the offset of the entire chunk in memory, if its items have the same layout in memory as in the chunk.
    pub(super) fn in_one_piece(&self) -> Option<isize> {
        let InChunk::Region(axes) = &self.what else { return None };
        let all = axes.iter().all(|axis| axis.blocks.len() == axis.grid);
        let place = if all { self.block(0).in_one_piece()? } else { return None };
        let follows = |index: usize| {
            self.block(index).in_one_piece() == Some(place + (index * self.block_len) as isize)
        };
        (1..self.nblocks()).all(follows).then_some(place)
    }

    /// Returns the plans of all of these blocks.
    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockPlan<'_>> {
        (0..self.nblocks()).map(|index| self.block(index))
    }

    /// Returns the plan of one of these blocks.
    pub(super) fn block(&self, index: usize) -> BlockPlan<'_> {
        let (number, what) = match &self.what {
            InChunk::Region(axes) => self.region_in_block(axes, index),
            InChunk::Points(blocks) => (blocks[index][0].block, InBlock::Points(blocks[index])),
        };
        BlockPlan { number, len: self.block_len, places: self.places, what }
    }

    fn region_in_block<'b>(
        &self,
        along: &'b [AxisInChunk],
        mut index: usize,
    ) -> (usize, InBlock<'b>) {
        let mut axes = Few::new();
        let typesize = self.places.part.typesize;
        let (mut number, mut scale, mut step) = (0, 1, typesize);
        for axis in along.iter().rev() {
            let (place, runs) = &axis.blocks[index % axis.blocks.len()];
            index /= axis.blocks.len();
            number += place * scale;
            scale *= axis.grid;
            axes.push(AxisInBlock { runs: &axis.runs[runs.clone()], stride: axis.stride, step });
            step *= axis.side;
        }
        // The last axes are one unit if they are selected in full and have no gaps in the block and in memory.
        let (mut unit, mut memory, mut done) = (typesize, 0, 0);
        for (axis, from) in axes.iter().zip(along.iter().rev()) {
            let [run] = *axis.runs else { break };
            let gapless = run.len == 1 || axis.stride == unit as isize;
            if run.len != from.side || !gapless {
                break;
            }
            unit *= run.len;
            memory += run.memory;
            done += 1;
        }
        axes.drain(..done);
        axes.reverse();
        (number, InBlock::Region { axes, unit, memory })
    }
}

impl BlockPlan<'_> {
    /// Returns the offset of the entire block in memory, if the block is contiguous in memory.
    pub(super) fn in_one_piece(&self) -> Option<isize> {
        match &self.what {
            InBlock::Region { axes, unit, memory } if axes.is_empty() && *unit == self.len => {
                Some(*memory)
            }
            _ => None,
        }
    }

    /// Calls `visit` for each contiguous piece with three numbers in bytes: the offset in the block, the offset in
    /// memory, and the length.
    #[inline]
    pub(super) fn each_piece(&self, mut visit: impl FnMut(usize, isize, usize)) {
        match &self.what {
            InBlock::Region { axes, unit, memory } => pieces(axes, *unit, 0, *memory, &mut visit),
            InBlock::Points(points) => {
                let (stride, typesize) = (self.places.strides[0], self.places.part.typesize);
                for point in *points {
                    visit(point.at, point.number as isize * stride, typesize);
                }
            }
        }
    }
}

fn pieces(
    axes: &[AxisInBlock<'_>],
    unit: usize,
    block: usize,
    memory: isize,
    visit: &mut impl FnMut(usize, isize, usize),
) {
    let Some((axis, inner)) = axes.split_first() else {
        return visit(block, memory, unit);
    };
    let together = inner.is_empty() && axis.step == unit && axis.stride == unit as isize;
    for run in axis.runs {
        let (mut block, mut memory) = (block + run.at * axis.step, memory + run.memory);
        if together {
            visit(block, memory, run.len * unit);
            continue;
        }
        for _ in 0..run.len {
            pieces(inner, unit, block, memory, visit);
            block += axis.step;
            memory += axis.stride;
        }
    }
}

/// Returns the position of an index in C order.
pub(super) fn position(index: &[u64], shape: &[u64]) -> usize {
    index.iter().zip(shape).fold(0, |all, (&index, &size)| all * size as usize + index as usize)
}

/// Returns the range of the items of a chunk on each axis, without padding.
pub(super) fn chunk_ranges(geometry: &Geometry, number: usize) -> Vec<Range<u64>> {
    let place = unravel(number, geometry.chunk_grid());
    let shapes = geometry.chunks().iter().zip(geometry.shape());
    let range = |(place, (&chunk, &size)): (u64, (&u64, &u64))| {
        place * chunk..size.min((place + 1) * chunk)
    };
    place.into_iter().zip(shapes).map(range).collect()
}

/// Returns the range of the items of a block of a chunk on each axis, without padding.
pub(super) fn block_ranges(
    geometry: &Geometry,
    chunk: &[Range<u64>],
    number: usize,
) -> Vec<Range<u64>> {
    let place = unravel(number, geometry.block_grid());
    let along = place.iter().zip(geometry.blocks()).zip(chunk);
    let range = |((place, side), chunk): ((&u64, &u64), &Range<u64>)| {
        let start = (chunk.start + place * side).min(chunk.end);
        start..chunk.end.min(start + side)
    };
    along.map(range).collect()
}

/// Returns the index of a position in C order.
pub(super) fn unravel(mut position: usize, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (at, &size) in index.iter_mut().zip(shape).rev() {
        // The position counts values in memory, or chunks, and fits in a `usize`.
        *at = (position % size as usize) as u64;
        position /= size as usize;
    }
    index
}
