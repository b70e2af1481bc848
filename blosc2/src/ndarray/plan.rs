//! The plan of a read or a write: the chunks, the blocks of each chunk, and the items in each block. A plan does not
//! know where items are in memory; a sink or a source owns a plan and knows it.

use std::ops::Range;

use blosc2_format::b2nd::{self, Geometry};
use smallvec::smallvec;

use super::region::{Positions, Region};
use super::selection::AxisVec;
use crate::support::memory::reserve;
use crate::{ErrorKind, Reason, Result};

#[derive(Clone, Copy)]
pub(super) enum Items<'a> {
    Region(&'a Region),
    /// Single items of a region. In memory they have one axis.
    Points(&'a Region, &'a Points),
}

impl Items<'_> {
    pub(super) fn shape(&self) -> AxisVec<u64> {
        match self {
            Self::Region(region) => region.shape(),
            Self::Points(_, points) => smallvec![points.count as u64],
        }
    }
}

#[derive(Debug)]
pub(super) struct Points {
    /// The positions of points in C order of the first axes of the region.
    pub(super) numbers: Vec<u64>,
    /// The number of the first axes on which the points have an index.
    pub(super) ndim: usize,
    /// The number of items of each point: the items on the other axes.
    pub(super) each: usize,
    pub(super) count: usize,
}

/// A plan of a read or a write, which is divided into chunks.
#[derive(Debug)]
pub(super) struct Plan<'a> {
    geometry: &'a Geometry,
    what: What<'a>,
}

// A `Box` would need an allocation for each read.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum What<'a> {
    /// A region, and the coordinates on each axis of the chunks that contain its positions.
    Region(&'a Region, AxisVec<AxisVec<u64>>),
    /// Single items in the order of chunks and blocks, and the range of the items of each chunk.
    Points(Vec<Point>, AxisVec<Range<usize>>),
}

/// The memory in bytes for each single item: its number, and its part of the plan.
pub(super) const POINT: u64 = (size_of::<u64>() + size_of::<Point>()) as u64;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Point {
    /// The index of the chunk, of the block in the chunk, and below the position in the block, in items. They fit in 32
    /// bits: a chunk has less than 2 GiB, and the index of all chunks too.
    chunk: u32,
    block: u32,
    /// The index in the list of points. It is part of the order, so that the last of several equal points is written
    /// last.
    pub(super) index: usize,
    pub(super) at: u32,
}

/// Consecutive items of a selection on one axis, in one block.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    /// The position in the block of the first item. The step of the axis is the distance to the next item.
    pub(super) at: usize,
    /// The index in the selection of the first item.
    pub(super) index: u64,
    pub(super) len: usize,
}

impl<'a> Plan<'a> {
    /// Creates a plan. Fails if another handle has shrunk the array, so that it does not contain all items.
    pub(super) fn new(geometry: &'a Geometry, items: Items<'a>) -> Result<Self, Reason> {
        match items {
            Items::Region(region) => {
                region.check_inside(geometry.shape())?;
                Ok(Self::of_region(geometry, region))
            }
            Items::Points(region, points) => Self::of_points(geometry, region, points),
        }
    }

    pub(super) fn of_region(geometry: &'a Geometry, region: &'a Region) -> Self {
        let chunks = match region.positions.iter().any(|positions| positions.len() == 0) {
            // The plan is empty, even if other axes are large.
            true => region.positions.iter().map(|_| AxisVec::new()).collect(),
            false => region.positions.iter().zip(geometry.axes()).map(chunks_of).collect(),
        };
        Self { geometry, what: What::Region(region, chunks) }
    }

    fn of_points(geometry: &'a Geometry, region: &Region, points: &Points) -> Result<Self, Reason> {
        let Points { numbers, each, count, .. } = points;
        let mut points: Vec<Point> = Vec::new();
        reserve(&mut points, *count)?;
        let (shape, sizes) = (region.shape(), geometry.shape());
        // The region has one position on an axis that it does not show. If it has no items, there are no points.
        let first = |positions: &Positions| if positions.len() > 0 { positions.get(0) } else { 0 };
        let mut indices: AxisVec<u64> = region.positions.iter().map(first).collect();
        let each = *each as u64;
        for mut rest in numbers.iter().flat_map(|number| number * each..(number + 1) * each) {
            for (dim, size) in region.dims.iter().zip(&shape).rev() {
                if let Some(axis) = *dim {
                    indices[axis] = region.positions[axis].get(rest % size);
                }
                rest /= size;
            }
            if indices.iter().zip(sizes).any(|(index, size)| index >= size) {
                let detail = format!("another handle or process has shrunk the array to {sizes:?}");
                return Err(Reason::new(ErrorKind::OutOfBounds, detail));
            }
            // None of these products overflows: the results are below the sizes of the array, of a chunk and of a block.
            let (mut chunk, mut block, mut at) = (0, 0, 0);
            let grids = geometry.chunk_grid().iter().zip(geometry.block_grid());
            for ((axis, index), grids) in geometry.axes().zip(&indices).zip(grids) {
                let place = axis.locate(*index);
                chunk = chunk * grids.0 + place[0];
                block = block * grids.1 + place[1];
                at = at * axis.block + place[2];
            }
            let (chunk, block, at) = (chunk as u32, block as u32, at as u32);
            points.push(Point { chunk, block, index: points.len(), at });
        }
        points.sort_unstable();
        let mut start = 0;
        let chunks = points.chunk_by(|one, other| one.chunk == other.chunk).map(|points| {
            start += points.len();
            start - points.len()..start
        });
        let chunks = chunks.collect();
        Ok(Self { geometry, what: What::Points(points, chunks) })
    }

    pub(super) fn geometry(&self) -> &'a Geometry {
        self.geometry
    }

    pub(super) fn region(&self) -> Option<&'a Region> {
        match self.what {
            What::Region(region, _) => Some(region),
            What::Points(..) => None,
        }
    }

    pub(super) fn shape(&self) -> AxisVec<u64> {
        match &self.what {
            What::Region(region, _) => region.shape(),
            What::Points(points, _) => smallvec![points.len() as u64],
        }
    }

    /// Returns the maximum number of blocks of one chunk that contain planned items.
    pub(super) fn most_blocks(&self) -> u64 {
        let count = match &self.what {
            What::Region(region, _) => {
                region.positions.iter().fold(1, |all: u64, axis| all.saturating_mul(axis.len()))
            }
            What::Points(points, _) => points.len() as u64,
        };
        count.min(self.geometry.nblocks())
    }

    pub(super) fn nchunks(&self) -> usize {
        match &self.what {
            // The product is at most the number of chunks of the array.
            What::Region(_, chunks) => chunks.iter().map(|chunks| chunks.len()).product(),
            What::Points(_, chunks) => chunks.len(),
        }
    }

    pub(super) fn nblocks(&self) -> u64 {
        let (region, chunks) = match &self.what {
            What::Region(region, chunks) => (region, chunks),
            What::Points(..) => return self.chunks().map(|chunk| chunk.nblocks() as u64).sum(),
        };
        let axes = self.geometry.axes().zip(&region.positions).zip(chunks);
        let along = |((axis, positions), places): ((b2nd::Axis, &Positions), &AxisVec<u64>)| {
            let blocks =
                |&place| Axis::new(positions, axis, &axis.chunk(place)).blocks.len() as u64;
            places.iter().map(blocks).sum::<u64>()
        };
        axes.map(along).product()
    }

    pub(super) fn chunk_numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.nchunks()).map(|number| match &self.what {
            What::Region(_, chunks) => self.geometry.chunk_at(place(chunks, number)) as usize,
            What::Points(points, chunks) => points[chunks[number].start].chunk as usize,
        })
    }

    /// Returns the index of the chunk whose items are exactly the planned items, if there is such a chunk.
    pub(super) fn whole_chunk(&self) -> Option<usize> {
        let chunk = (self.nchunks() == 1).then(|| self.chunk(0));
        chunk.filter(|chunk| chunk.covers).map(|chunk| chunk.number)
    }

    pub(super) fn chunks(&self) -> impl Iterator<Item = ChunkPlan<'_>> {
        (0..self.nchunks()).map(|number| self.chunk(number))
    }

    pub(super) fn chunk(&self, number: usize) -> ChunkPlan<'_> {
        let geometry = self.geometry;
        let (region, chunks) = match &self.what {
            What::Region(region, chunks) => (region, chunks),
            What::Points(points, chunks) => {
                let points = &points[chunks[number].clone()];
                let blocks = points.chunk_by(|one, other| one.block == other.block).collect();
                let (number, what) = (points[0].chunk as usize, InChunk::Points(blocks));
                return ChunkPlan { number, covers: false, geometry, what };
            }
        };
        let place = place(chunks, number);
        let mut covers = true;
        let axes = geometry.axes().zip(&region.positions).zip(&place).map(
            |((axis, positions), &place)| {
                let chunk = axis.chunk(place);
                let planned = Axis::new(positions, axis, &chunk);
                covers &= planned.distinct == chunk.end - chunk.start;
                planned
            },
        );
        let axes = axes.collect();
        let number = geometry.chunk_at(place) as usize;
        ChunkPlan { number, covers, geometry, what: InChunk::Region(axes) }
    }
}

/// Returns the coordinates of a chunk from its number. `chunks` contains the coordinates of all chunks on each axis.
fn place(chunks: &[AxisVec<u64>], mut number: usize) -> AxisVec<u64> {
    let mut place: AxisVec<u64> = smallvec![0; chunks.len()];
    for (place, chunks) in place.iter_mut().zip(chunks).rev() {
        *place = chunks[number % chunks.len()];
        number /= chunks.len();
    }
    place
}

fn chunks_of((positions, axis): (&Positions, b2nd::Axis)) -> AxisVec<u64> {
    let mut chunks: AxisVec<u64> = match positions {
        Positions::Slice { step, .. } if step.unsigned_abs() <= axis.chunk => {
            let (low, high) = positions.bounds().unwrap_or_default();
            return (low / axis.chunk..=high / axis.chunk).collect();
        }
        Positions::Slice { count, .. } => {
            (0..*count).map(|index| positions.get(index) / axis.chunk).collect()
        }
        Positions::List(list) => list.sorted.iter().map(|(at, _)| at / axis.chunk).collect(),
    };
    chunks.sort_unstable();
    chunks.dedup();
    chunks
}

/// The planned positions on one axis of a chunk, grouped by blocks.
#[derive(Debug)]
struct Axis {
    /// The coordinates of the blocks in the chunk, each with its runs.
    blocks: AxisVec<(u64, Range<usize>)>,
    runs: AxisVec<Run>,
    distinct: u64,
}

impl Axis {
    fn new(positions: &Positions, axis: b2nd::Axis, chunk: &Range<u64>) -> Self {
        let mut planned = Self { blocks: AxisVec::new(), runs: AxisVec::new(), distinct: 0 };
        match positions {
            Positions::Slice { step, .. } => {
                // One run for each block. The positions in a range have consecutive indices in the selection.
                let mut left = positions.within(chunk);
                planned.distinct = left.end - left.start;
                while !left.is_empty() {
                    let lowest = if *step > 0 { left.start } else { left.end - 1 };
                    let block = (positions.get(lowest) - chunk.start) / axis.block;
                    let items = axis.block(chunk, block);
                    let Range { start: index, end } = positions.within(&items);
                    match *step > 0 {
                        true => left.start = end,
                        false => left.end = index,
                    }
                    // Both fit in a `usize`: they are below the number of items of a chunk.
                    let at = (positions.get(index) - items.start) as usize;
                    planned.push(block, Run { at, index, len: (end - index) as usize }, false);
                }
            }
            Positions::List(list) => {
                let mut before = None;
                let from = list.sorted.partition_point(|&(at, _)| at < chunk.start);
                let inside = list.sorted[from..].iter().take_while(|&&(at, _)| at < chunk.end);
                for &(position, index) in inside {
                    planned.distinct += u64::from(before != Some(position));
                    before = Some(position);
                    let [_, block, at] = axis.locate(position);
                    planned.push(block, Run { at: at as usize, index, len: 1 }, true);
                }
            }
        }
        planned
    }

    /// Adds a run. With `join`, it may extend the last run.
    fn push(&mut self, block: u64, run: Run, join: bool) {
        let number = self.runs.len();
        match (self.blocks.last_mut(), self.runs.last_mut()) {
            (Some((last, runs)), Some(before)) if *last == block => {
                if join
                    && before.at + before.len == run.at
                    && before.index + before.len as u64 == run.index
                {
                    before.len += run.len;
                    return;
                }
                runs.end = number + 1;
            }
            _ => self.blocks.push((block, number..number + 1)),
        }
        self.runs.push(run);
    }
}

#[derive(Debug)]
pub(super) struct ChunkPlan<'a> {
    pub(super) number: usize,
    /// Whether the plan covers all items of the chunk, except padding.
    pub(super) covers: bool,
    pub(super) geometry: &'a Geometry,
    what: InChunk<'a>,
}

// A `Box` would need an allocation for each chunk.
#[allow(clippy::large_enum_variant)]
#[derive(Debug)]
enum InChunk<'a> {
    Region(AxisVec<Axis>),
    /// Single items, grouped by blocks.
    Points(AxisVec<&'a [Point]>),
}

#[derive(Debug)]
pub(super) struct BlockPlan<'a> {
    pub(super) number: usize,
    pub(super) what: InBlock<'a>,
}

#[derive(Debug)]
pub(super) enum InBlock<'a> {
    /// The runs on each axis.
    Region(AxisVec<&'a [Run]>),
    Points(&'a [Point]),
}

impl ChunkPlan<'_> {
    /// Returns whether a part of the chunk is outside the array, or is padding of blocks.
    pub(super) fn has_padding(&self) -> bool {
        let ranges = self.geometry.chunk_box(self.number as u64);
        let items = ranges.iter().map(|range| range.end - range.start).product::<u64>();
        items * self.geometry.typesize() as u64 != self.geometry.chunk_len() as u64
    }

    pub(super) fn has_all_blocks(&self) -> bool {
        self.nblocks() as u64 == self.geometry.nblocks()
    }

    pub(super) fn nblocks(&self) -> usize {
        match &self.what {
            InChunk::Region(axes) => axes.iter().map(|axis| axis.blocks.len()).product(),
            InChunk::Points(blocks) => blocks.len(),
        }
    }

    pub(super) fn blocks(&self) -> impl Iterator<Item = BlockPlan<'_>> {
        (0..self.nblocks()).map(|index| self.block(index))
    }

    pub(super) fn block(&self, mut index: usize) -> BlockPlan<'_> {
        let axes = match &self.what {
            InChunk::Region(axes) => axes,
            InChunk::Points(blocks) => {
                let points = blocks[index];
                let number = points[0].block as usize;
                return BlockPlan { number, what: InBlock::Points(points) };
            }
        };
        let mut runs: AxisVec<&[Run]> = smallvec![&[][..]; axes.len()];
        let (mut number, mut scale) = (0, 1);
        for ((runs, axis), grid) in runs.iter_mut().zip(axes).zip(self.geometry.block_grid()).rev()
        {
            let (place, range) = &axis.blocks[index % axis.blocks.len()];
            index /= axis.blocks.len();
            number += place * scale;
            scale *= grid;
            *runs = &axis.runs[range.clone()];
        }
        BlockPlan { number: number as usize, what: InBlock::Region(runs) }
    }
}
