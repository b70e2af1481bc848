//! Memory with items: sinks, to which a read writes, and sources, from which a write copies. Both own the plan of the
//! items, and know where each item is in memory. All access to this memory through raw pointers is in this file.

use std::marker::PhantomData;
use std::ops::Range;

use smallvec::smallvec;

use super::plan::{BlockPlan, ChunkPlan, InBlock, Plan, Point, Run};
use super::selection::AxisVec;
use crate::support::memory::Target;
#[cfg(feature = "ndarray")]
use crate::{
    ErrorKind, Result,
    error::Reason,
    ndarray::ranges::{next_index, whole},
    support::memory::reserve,
};

/// Returns the size in bytes of items of this shape, if each item has `unit` bytes. With a `unit` of 1, this is the
/// number of items. The result is at most `u64::MAX`.
pub(crate) fn len_of(shape: &[u64], unit: usize) -> u64 {
    shape.iter().fold(unit as u64, |all, &size| all.saturating_mul(size))
}

/// Returns the size in bytes of items of this shape, if it fits in the address space.
pub(crate) fn len_in_memory(shape: &[u64], unit: usize) -> Option<usize> {
    isize::try_from(len_of(shape, unit)).ok().map(isize::unsigned_abs)
}

/// The part of each item that is in memory, such as the bytes of a field.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ItemPart {
    pub(crate) offset: usize,
    pub(crate) len: usize,
    pub(super) typesize: usize,
}

impl ItemPart {
    pub(super) fn whole(typesize: usize) -> Self {
        Self { offset: 0, len: typesize, typesize }
    }

    pub(super) fn is_whole(&self) -> bool {
        self.len == self.typesize
    }
}

/// The items of a plan, and their places in memory: the distance of an item from the first item is the sum of its
/// indices in the selection, multiplied by the strides.
#[derive(Debug)]
struct Places<'p> {
    plan: Plan<'p>,
    part: ItemPart,
    /// One for each axis of the array, or for a list of points.
    axes: AxisVec<Strides>,
    /// The range of the memory, relative to the first item, in bytes.
    memory: Range<isize>,
}

/// The distances between items on an axis, in bytes.
#[derive(Debug, Clone, Copy)]
struct Strides {
    /// Between neighbors in a block.
    block: isize,
    /// Between consecutive selected items, in memory.
    memory: isize,
    /// The size of a block on this axis, and the distance between consecutive items of a run, in items.
    side: usize,
    by: isize,
}

impl<'p> Places<'p> {
    /// `strides` are those of the axes of the selected items in memory.
    fn new(plan: Plan<'p>, part: ItemPart, strides: &[isize], memory: Range<isize>) -> Self {
        let geometry = plan.geometry();
        assert_eq!(part.typesize, geometry.typesize(), "the items have another size");
        assert!(part.len <= part.typesize && part.offset <= part.typesize - part.len);
        // A block is in memory, so the products do not overflow.
        let mut block = part.typesize as isize;
        let Some(region) = plan.region() else {
            let side = geometry.block_shape().iter().product::<u64>() as usize;
            let axes = smallvec![Strides { block, memory: strides[0], side, by: 1 }];
            return Self { plan, part, axes, memory };
        };
        let mut axes: AxisVec<Strides> = AxisVec::new();
        for (number, &side) in geometry.block_shape().iter().enumerate().rev() {
            let dim = region.dims.iter().position(|dim| *dim == Some(number));
            let by = region.positions[number].step() as isize;
            let (memory, side) = (dim.map_or(0, |dim| strides[dim]), side as usize);
            axes.push(Strides { block, memory, side, by });
            block *= side as isize;
        }
        axes.reverse();
        Self { plan, part, axes, memory }
    }

    /// Creates the places of the items in a larger box. The first item is at the index `to` of the box, whose items are
    /// in C order in memory of `len` bytes.
    fn in_box(plan: Plan<'p>, part: ItemPart, larger: &[u64], to: &[u64], len: usize) -> Self {
        let shape = plan.shape();
        let is_inside = |(axis, &size): (usize, &u64)| {
            let start = to.get(axis).copied().unwrap_or(0);
            start.saturating_add(size) <= larger[axis]
        };
        assert!(larger.len() == shape.len() && shape.iter().enumerate().all(is_inside));
        let mut strides: AxisVec<isize> = smallvec![0; larger.len()];
        let (mut stride, mut first) = (part.len as isize, 0isize);
        for (axis, &size) in larger.iter().enumerate().rev() {
            strides[axis] = stride;
            let to = to.get(axis).copied().unwrap_or(0);
            first = first.saturating_add(stride.saturating_mul(to as isize));
            stride = stride.saturating_mul(size.max(1) as isize);
        }
        // A `Vec` or slice has at most `isize::MAX` bytes. Without items, `first` may be after the end.
        let first = first.min(len as isize);
        Self::new(plan, part, &strides, -first..len as isize - first)
    }

    /// Creates the places of items with any strides, in bytes.
    #[cfg(feature = "ndarray")]
    fn strided(plan: Plan<'p>, part: ItemPart, strides: &[isize]) -> Self {
        let shape = plan.shape();
        assert_eq!(shape.len(), strides.len());
        let mut memory = 0..part.len as isize;
        if shape.contains(&0) {
            memory.end = 0;
        }
        for (&size, &stride) in shape.iter().zip(strides).filter(|_| !shape.contains(&0)) {
            // All items are in one allocation, so this does not overflow.
            let far = stride * (size - 1) as isize;
            memory = memory.start + far.min(0)..memory.end + far.max(0);
        }
        Self::new(plan, part, strides, memory)
    }

    /// Returns the pieces of a block of the plan.
    ///
    /// This is the proof that accesses are inside the memory: panics if a planned item is outside the block, or if its
    /// place is outside the memory.
    fn pieces<'b>(&'b self, block: &'b BlockPlan<'_>) -> Pieces<'b> {
        let Self { part, axes, memory, .. } = self;
        let (runs, points): (&[&[Run]], &[Point]) = match &block.what {
            InBlock::Region(runs) => (runs, &[]),
            InBlock::Points(points) => (&[], points),
        };
        let ItemPart { offset, len: unit, .. } = *part;
        let mut pieces = Pieces { runs, points, axes, unit, offset, start: 0 };
        let inside = pieces.are_inside(memory);
        assert!(inside == Some(true), "{block:?} is outside of a block or of {memory:?}: {self:?}");
        // The last axes are one unit if they are selected in full and have no gaps in the block and in memory.
        while let ([outer_runs @ .., [run]], [outer @ .., strides]) = (pieces.runs, pieces.axes)
            && part.is_whole()
            && run.len == strides.side
            && (run.len == 1 || strides.by == 1 && strides.memory == pieces.unit as isize)
        {
            pieces.unit *= run.len;
            pieces.start += strides.memory * run.index as isize;
            (pieces.runs, pieces.axes) = (outer_runs, outer);
        }
        pieces
    }

    /// Returns the offset of an entire chunk in memory, if its items have the same layout in memory as in the chunk.
    fn chunk(&self, chunk: &ChunkPlan<'_>) -> Option<isize> {
        let len = self.plan.geometry().block_len();
        let place = |index: usize| self.pieces(&chunk.block(index)).in_one_piece(len);
        let first = if chunk.has_all_blocks() { place(0)? } else { return None };
        let follows = |index: usize| place(index) == Some(first + (index * len) as isize);
        (1..chunk.nblocks()).all(follows).then_some(first)
    }
}

/// The pieces of a block: each is contiguous in the block and in memory. All of them are inside the block, and inside the
/// memory of the [`Places`] that returned the pieces.
#[derive(Debug)]
struct Pieces<'b> {
    /// The runs on the axes, from the outermost one. Empty for points.
    runs: &'b [&'b [Run]],
    points: &'b [Point],
    axes: &'b [Strides],
    /// The size in bytes of a unit of items. A unit is contiguous in the block and in memory.
    unit: usize,
    /// The offset in the block and in memory to which the offsets of the runs are added.
    offset: usize,
    start: isize,
}

impl Pieces<'_> {
    /// Returns whether all items are inside the block and the memory; `None` if one of their offsets overflows.
    fn are_inside(&self, memory: &Range<isize>) -> Option<bool> {
        // The range of the bytes of all items in memory.
        let mut extent = 0..isize::try_from(self.unit).ok()?;
        let mut extend = |strides: &Strides, low: u64, high: u64| {
            let at = |index: u64| strides.memory.checked_mul(isize::try_from(index).ok()?);
            let (one, other) = (at(low)?, at(high)?);
            extent.start = extent.start.checked_add(one.min(other))?;
            extent.end = extent.end.checked_add(one.max(other))?;
            Some(())
        };
        if !self.points.is_empty() {
            let strides = self.axes.first()?;
            let (mut low, mut high) = (u64::MAX, 0);
            for point in self.points {
                if point.at as usize >= strides.side {
                    return None;
                }
                (low, high) = (low.min(point.index as u64), high.max(point.index as u64));
            }
            extend(strides, low, high)?;
        } else if self.runs.len() != self.axes.len() {
            return None;
        }
        for (runs, strides) in self.runs.iter().zip(self.axes) {
            let (mut low, mut high) = (u64::MAX, 0);
            for run in *runs {
                let more = isize::try_from(run.len.checked_sub(1)?).ok()?;
                let last = run.at.checked_add_signed(more.checked_mul(strides.by)?)?;
                if run.at.max(last) >= strides.side {
                    return None;
                }
                (low, high) = (low.min(run.index), high.max(run.index.checked_add(more as u64)?));
            }
            extend(strides, low, high)?;
        }
        Some(memory.start <= extent.start && extent.end <= memory.end)
    }

    /// Returns the offset of the entire block in memory, if the block of `len` bytes is contiguous in memory.
    fn in_one_piece(&self, len: usize) -> Option<isize> {
        (self.axes.is_empty() && self.unit == len).then_some(self.start)
    }

    /// Calls `visit` for each piece with three numbers in bytes: the offset in the block, the offset in memory, and the
    /// length.
    #[inline]
    fn each(&self, mut visit: impl FnMut(isize, isize, usize)) {
        let Self { runs, points, axes, unit, start, .. } = *self;
        let offset = self.offset as isize;
        for point in points {
            let (at, index) = (point.at as isize, point.index as isize);
            visit(offset + at * axes[0].block, start + index * axes[0].memory, unit);
        }
        if points.is_empty() {
            each_run(runs, axes, unit, (offset, start), &mut visit);
        }
    }
}

fn each_run(
    runs: &[&[Run]],
    axes: &[Strides],
    unit: usize,
    (block, memory): (isize, isize),
    visit: &mut impl FnMut(isize, isize, usize),
) {
    let ([runs, inner @ ..], [strides, axes @ ..]) = (runs, axes) else {
        return visit(block, memory, unit);
    };
    // A step may overflow if all runs have one item. In this case, it is not used.
    let step = strides.by.wrapping_mul(strides.block);
    let together = axes.is_empty() && step == unit as isize && strides.memory == unit as isize;
    for run in *runs {
        let mut block = block + run.at as isize * strides.block;
        let mut memory = memory + run.index as isize * strides.memory;
        if together {
            visit(block, memory, run.len * unit);
            continue;
        }
        for _ in 0..run.len {
            match axes.is_empty() {
                true => visit(block, memory, unit),
                false => each_run(inner, axes, unit, (block, memory), visit),
            }
            block = block.wrapping_add(step);
            memory = memory.wrapping_add(strides.memory);
        }
    }
}

/// Copies bytes.
///
/// # Safety
/// `from` is readable and `to` is writable for `len` bytes, and these do not overlap.
#[inline]
unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match len {
            // Single items, without a call.
            1 => *to = *from,
            2 => to.cast::<[u8; 2]>().write_unaligned(from.cast::<[u8; 2]>().read_unaligned()),
            4 => to.cast::<[u8; 4]>().write_unaligned(from.cast::<[u8; 4]>().read_unaligned()),
            8 => to.cast::<[u8; 8]>().write_unaligned(from.cast::<[u8; 8]>().read_unaligned()),
            len => to.copy_from_nonoverlapping(from, len),
        }
    }
}

/// Memory to which a read writes the items of a plan. Each item has its own place, and several threads write at the same
/// time.
#[derive(Debug)]
pub(super) struct Sink<'m, 'p> {
    places: Places<'p>,
    /// The place of the first item. The range `memory` of the places is writable, relative to this place, and nothing
    /// else uses it during `'m`.
    start: *mut u8,
    /// Whether all bytes of the memory are zero.
    pub(super) zeros: bool,
    memory: PhantomData<&'m mut [u8]>,
}

// SAFETY: a sink is a mutable borrow of bytes, which can be sent to other threads. All access is by `unsafe` methods,
// whose callers guarantee that threads write to different places.
unsafe impl Send for Sink<'_, '_> {}
// SAFETY: the same reason as for `Send`.
unsafe impl Sync for Sink<'_, '_> {}

impl<'m, 'p> Sink<'m, 'p> {
    /// Creates a sink that stores items in C order. `zeros` states that all bytes of `memory` are zero.
    pub(super) fn new(plan: Plan<'p>, part: ItemPart, memory: &'m mut [u8], zeros: bool) -> Self {
        let shape = plan.shape();
        Self::in_box(plan, part, (&shape, &[]), memory, zeros)
    }

    /// Creates a sink that stores items in a larger box with the shape `larger`, in C order. The first item is stored at
    /// the index `to` of the box.
    pub(super) fn in_box(
        plan: Plan<'p>,
        part: ItemPart,
        (larger, to): (&[u64], &[u64]),
        memory: &'m mut [u8],
        zeros: bool,
    ) -> Self {
        let places = Places::in_box(plan, part, larger, to, memory.len());
        let start = memory.as_mut_ptr().wrapping_offset(-places.memory.start);
        Self { places, start, zeros, memory: PhantomData }
    }

    /// Creates a sink of items with any strides, in bytes. The first item is stored at `start`.
    ///
    /// # Safety
    /// During `'m`, the memory at the places of items with these strides is writable, and nothing else uses it. The
    /// places do not overlap.
    #[cfg(feature = "ndarray")]
    pub(super) unsafe fn strided(
        plan: Plan<'p>,
        part: ItemPart,
        start: *mut u8,
        strides: &[isize],
    ) -> Self {
        let places = Places::strided(plan, part, strides);
        Self { places, start, zeros: false, memory: PhantomData }
    }

    pub(super) fn plan(&self) -> &Plan<'p> {
        &self.places.plan
    }

    /// Returns the memory for the items of a block of the plan. Panics if it is outside the memory of the sink.
    ///
    /// # Safety
    /// As long as the result exists, nothing else accesses the places of these items.
    pub(super) unsafe fn block<'s>(&'s self, block: &'s BlockPlan<'_>) -> BlockSink<'s> {
        BlockSink { sink: self, pieces: self.places.pieces(block) }
    }

    /// Returns the memory for an entire chunk, if its items have the same layout in memory as in the chunk.
    ///
    /// # Safety
    /// As long as the result exists, nothing else accesses the places of the items of the chunk.
    pub(super) unsafe fn chunk(&self, chunk: &ChunkPlan<'_>) -> Option<Target<'_>> {
        let at = self.places.chunk(chunk)?;
        // SAFETY: all blocks of the chunk are inside the memory, one after the other.
        Some(unsafe { self.target(at, self.places.plan.geometry().chunk_len()) })
    }

    /// # Safety
    /// The `len` bytes are inside the memory. Nothing else accesses them as long as the result exists.
    unsafe fn target(&self, at: isize, len: usize) -> Target<'_> {
        // SAFETY: guaranteed by the caller, and by the field `start`; `MaybeUninit` bytes can have any value.
        Target::new(unsafe { std::slice::from_raw_parts_mut(self.start.offset(at).cast(), len) })
    }
}

#[derive(Debug)]
pub(super) struct BlockSink<'s> {
    sink: &'s Sink<'s, 's>,
    pieces: Pieces<'s>,
}

impl<'s> BlockSink<'s> {
    fn block_len(&self) -> usize {
        self.sink.plan().geometry().block_len()
    }

    pub(super) fn target(&mut self) -> Option<Target<'_>> {
        let len = self.block_len();
        let at = self.pieces.in_one_piece(len)?;
        // SAFETY: the only piece of the block is inside the memory; the guarantee of `Sink::block`.
        Some(unsafe { self.sink.target(at, len) })
    }

    /// Calls `visit` with the range of bytes in the block of each piece that [`put`](Self::put) copies.
    pub(super) fn each_range(&self, visit: &mut dyn FnMut(Range<usize>)) {
        self.pieces.each(|at, _, len| visit(at as usize..at as usize + len));
    }

    pub(super) fn put(&mut self, block: &[u8]) {
        assert_eq!(block.len(), self.block_len(), "the size of a block");
        let (from, to) = (block.as_ptr(), self.sink.start);
        // SAFETY: all pieces are inside the block and the memory; the guarantee of `Sink::block`. The bytes do not
        // overlap the memory, which is borrowed by the sink only.
        self.pieces.each(|at, place, len| unsafe { copy(from.offset(at), to.offset(place), len) });
    }

    pub(super) fn fill(&mut self, item: &[u8]) {
        let ItemPart { offset, len: part, .. } = self.sink.places.part;
        let item = &item[offset..offset + part];
        self.pieces.each(|_, place, len| {
            // SAFETY: as in `put`.
            let place = unsafe { self.sink.target(place, len) };
            match len == part {
                true => place.write(item),
                false => place.repeat(item, 0),
            };
        });
    }
}

/// Memory from which a write copies the items of a plan; several threads read it at the same time.
#[derive(Debug)]
pub(super) struct Source<'m, 'p> {
    places: Places<'p>,
    /// The place of the first item. The range `memory` of the places, relative to this place, is initialized, and
    /// nothing writes to it during `'m`.
    start: *const u8,
    memory: PhantomData<&'m [u8]>,
}

// SAFETY: a source is a shared borrow of bytes, which other threads can receive and use.
unsafe impl Send for Source<'_, '_> {}
// SAFETY: the same reason as for `Send`.
unsafe impl Sync for Source<'_, '_> {}

impl<'m, 'p> Source<'m, 'p> {
    pub(super) fn new(plan: Plan<'p>, part: ItemPart, memory: &'m [u8]) -> Self {
        let shape = plan.shape();
        let places = Places::in_box(plan, part, &shape, &[], memory.len());
        Self { places, start: memory.as_ptr(), memory: PhantomData }
    }

    pub(super) fn repeated(plan: Plan<'p>, part: ItemPart, item: &'m [u8]) -> Self {
        let strides: AxisVec<isize> = smallvec![0; plan.shape().len()];
        let places = Places::new(plan, part, &strides, 0..item.len() as isize);
        Self { places, start: item.as_ptr(), memory: PhantomData }
    }

    pub(super) fn plan(&self) -> &Plan<'p> {
        &self.places.plan
    }

    pub(super) fn has_whole_items(&self) -> bool {
        self.places.part.is_whole()
    }

    /// Returns the items of an entire chunk, if they have the same layout in memory as in the chunk.
    pub(super) fn chunk(&self, chunk: &ChunkPlan<'_>) -> Option<&'m [u8]> {
        let (at, len) = (self.places.chunk(chunk)?, self.places.plan.geometry().chunk_len());
        // SAFETY: all blocks of the chunk are inside the memory, one after the other; the field `start`.
        Some(unsafe { std::slice::from_raw_parts(self.start.offset(at), len) })
    }

    pub(super) fn get_all(&self, plan: &ChunkPlan<'_>, chunk: &mut [u8]) {
        let len = self.places.plan.geometry().block_len();
        for block in plan.blocks() {
            self.get(&block, &mut chunk[block.number * len..][..len]);
        }
    }

    pub(super) fn get(&self, block: &BlockPlan<'_>, bytes: &mut [u8]) {
        assert_eq!(bytes.len(), self.places.plan.geometry().block_len(), "the size of a block");
        let (from, to) = (self.start, bytes.as_mut_ptr());
        let pieces = self.places.pieces(block);
        // SAFETY: all pieces are inside the block and the memory; the field `start`. The bytes are mutably borrowed, so
        // that they do not overlap the memory.
        pieces.each(|at, place, len| unsafe { copy(from.offset(place), to.offset(at), len) });
    }
}

/// Items with any strides, such as those of a transposed matrix.
#[cfg(feature = "ndarray")]
#[derive(Debug)]
pub struct Strided<'m> {
    /// The first item. The memory at the places of all items is initialized, and nothing writes to it during `'m`.
    start: *const u8,
    size: usize,
    shape: Vec<u64>,
    /// The distances between items on each axis, in bytes.
    strides: Vec<isize>,
    memory: PhantomData<&'m [u8]>,
}

#[cfg(feature = "ndarray")]
impl<'m> Strided<'m> {
    /// # Safety
    /// The items start at `start`, have `size` bytes, this shape, and these strides in bytes. During `'m`, all bytes of
    /// the items are initialized, and nothing writes to them.
    pub(super) unsafe fn new(
        start: *const u8,
        size: usize,
        shape: Vec<u64>,
        strides: Vec<isize>,
    ) -> Self {
        Self { start, size, shape, strides, memory: PhantomData }
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns a source of the items. Panics if the plan has another shape.
    pub(super) fn source<'p>(&self, plan: Plan<'p>, part: ItemPart) -> Source<'m, 'p> {
        assert!(plan.shape()[..] == self.shape[..] && part.len == self.size, "{self:?}");
        let places = Places::strided(plan, part, &self.strides);
        Source { places, start: self.start, memory: PhantomData }
    }

    /// Returns the bytes of the items, in C order. Items with a stride of 0 may need more memory than they take.
    pub(super) fn to_bytes(&self) -> Result<Vec<u8>, Reason> {
        let len = len_in_memory(&self.shape, self.size).ok_or_else(|| {
            let detail = format!("items of the shape {:?} do not fit in memory", self.shape);
            Reason::new(ErrorKind::TooLarge, detail)
        })?;
        let mut bytes = Vec::new();
        reserve(&mut bytes, len)?;
        let (mut index, ranges) = (vec![0; self.shape.len()], whole(&self.shape));
        while bytes.len() < len {
            let distances = index.iter().zip(&self.strides);
            let at = distances.map(|(&index, stride): (&u64, _)| index as isize * stride).sum();
            // SAFETY: the field `start`: this is the place of the item at an index inside the shape.
            bytes.extend_from_slice(unsafe {
                std::slice::from_raw_parts(self.start.offset(at), self.size)
            });
            next_index(&mut index, &ranges);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::super::NDArray;
    use super::super::plan::{Items, Points};
    use super::super::region::Region;
    use super::*;
    use crate::{CParams, Codec};

    #[test]
    fn sizes_that_are_too_large_saturate() {
        assert_eq!(len_of(&[3, 5], 4), 60);
        assert_eq!(len_of(&[], 4), 4);
        assert_eq!(len_of(&[1 << 40, 1 << 40], 1), u64::MAX);
        assert_eq!(len_of(&[1 << 40, 1 << 40, 0], 1), 0);
        assert_eq!(len_in_memory(&[1 << 40, 1 << 40, 0], 4), Some(0));
        assert_eq!(len_in_memory(&[1 << 40, 1 << 40], 4), None);
    }

    /// An array of 4 x 5 items of 2 bytes in one block.
    fn array() -> NDArray {
        let items: Vec<u16> = (0..20).collect();
        // Every build has LZ4, but not every build has the default codec.
        let builder = NDArray::builder().cparams(CParams::new().codec(Codec::Lz4));
        builder.chunk_shape(&[4, 5]).block_shape(&[4, 5]).from_slice(&items, &[4, 5]).unwrap()
    }

    fn panics(work: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn memory_outside_of_the_places_is_not_accessed() {
        let mut array = array();
        let (whole, item) = (Region::whole(array.shape()), array.whole_items());
        for (axis, change) in [(0, 0), (0, 1), (0, -40), (1, 1), (1, -4), (1, isize::MAX / 2)] {
            let mut bytes = [7; 40];
            let read = panics(|| {
                let read = array.gather(Items::Region(&whole), |plan| {
                    let mut sink = Sink::new(plan, item, &mut bytes, false);
                    sink.places.axes[axis].memory += change;
                    sink
                });
                read.unwrap();
            });
            assert_eq!(read, change != 0, "axis {axis}, {change}");
            assert!(!read || bytes == [7; 40], "axis {axis}, {change}");
            let bytes: Vec<u8> = (0..20u16).flat_map(u16::to_ne_bytes).collect();
            let write = panics(|| {
                let written = array.scatter(Items::Region(&whole), |plan| {
                    let mut source = Source::new(plan, item, &bytes);
                    source.places.axes[axis].memory += change;
                    source
                });
                written.unwrap();
            });
            assert_eq!(write, change != 0, "axis {axis}, {change}");
        }
        for (change, number) in [(0, 19), (38, 19), (38, 0), (isize::MAX - 2, 3)] {
            let points = Points { numbers: vec![0, number], ndim: 2, each: 1, count: 2 };
            let mut bytes = [7; 40];
            let read = panics(|| {
                let read = array.gather(Items::Points(&whole, &points), |plan| {
                    let mut sink = Sink::new(plan, item, &mut bytes[..4], false);
                    sink.places.axes[0].memory += change;
                    sink
                });
                read.unwrap();
            });
            assert_eq!(read, change != 0, "{change}, {number}");
            assert!(!read || bytes == [7; 40], "{change}, {number}");
        }
        for len in [0, 1, 39] {
            let mut bytes = vec![7; len];
            let read = panics(|| {
                let items = Items::Region(&whole);
                array.gather(items, |plan| Sink::new(plan, item, &mut bytes, false)).unwrap();
            });
            assert!(read, "{len} bytes");
        }
        let read: Vec<u16> = array.read(..).unwrap();
        assert!(read.into_iter().eq(0..20));
    }

    #[test]
    fn wrong_runs_and_points_are_caught() {
        let array = array();
        let whole = Region::whole(array.shape());
        let plan = || Plan::of_region(&array.geometry, &whole);
        let mut bytes = [0; 40];
        let sink = Sink::new(plan(), array.whole_items(), &mut bytes, false);
        let columns = [Run { at: 0, index: 0, len: 5 }];
        let caught = |at, index, len| {
            let rows = [Run { at, index, len }];
            let what = InBlock::Region(smallvec![&rows[..], &columns[..]]);
            let block = BlockPlan { number: 0, what };
            panics(|| assert!(sink.places.pieces(&block).unit > 0))
        };
        for (at, index, len) in [(0, 0, 4), (3, 3, 1), (1, 2, 2)] {
            assert!(!caught(at, index, len), "{at} {index} {len}");
        }
        for (at, index, len) in [
            (0, 0, 0),
            (0, 0, 5),
            (4, 0, 1),
            (1, 0, 4),
            (0, 4, 1),
            (0, 3, 2),
            (usize::MAX, 0, 2),
            (0, u64::MAX, 2),
            (0, 1 << 62, 1),
            (0, 0, usize::MAX),
        ] {
            assert!(caught(at, index, len), "{at} {index} {len}");
        }
        let none = BlockPlan { number: 0, what: InBlock::Region(smallvec![&columns[..]]) };
        assert!(panics(|| assert!(sink.places.pieces(&none).unit > 0)));
    }

    #[test]
    fn a_box_is_stored_inside_a_larger_box() {
        let array = array();
        let part = Region::of_box([1..3, 2..5]);
        let read = |larger: [u64; 2], to: [u64; 2], len: usize| {
            let mut bytes = vec![0; len];
            let item = array.whole_items();
            let read = array.gather(Items::Region(&part), |plan| {
                Sink::in_box(plan, item, (&larger, &to), &mut bytes, false)
            });
            read.unwrap();
            bytes
        };
        let mut expected = [0u16; 30];
        for (to, from) in [(17, 7), (18, 8), (19, 9), (22, 12), (23, 13), (24, 14)] {
            expected[to] = from;
        }
        let expected: Vec<u8> = expected.into_iter().flat_map(u16::to_ne_bytes).collect();
        assert_eq!(read([6, 5], [3, 2], 60), expected);
        assert!(panics(|| drop(read([6, 5], [5, 2], 60))));
        assert!(panics(|| drop(read([6, 5], [3, 2], 49))));
    }
}
