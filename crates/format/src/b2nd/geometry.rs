//! The layout of the items of an array in chunks and blocks.

use std::ops::Range;

use super::{MAX_NDIM, Meta, rules};
use crate::report::Rule;
use crate::{Error, FormatError, Limit, Limits};

/// The maximum size of a chunk when decompressed, in bytes.
const MAX_CHUNK_LEN: u64 = i32::MAX as u64 - 32;

/// One value per axis; the values after the last axis are unused.
type Index = [u64; MAX_NDIM];

/// The maximum number of blocks that [`Geometry::gather`] requests at once.
const MAX_GATHERED: usize = 4096;

/// The layout of the items of an array in chunks and blocks.
///
/// The chunks of an array form a grid, and the blocks of a chunk form a grid. Both grids are
/// numbered in C order. A chunk contains its blocks one after the other. Each block contains its
/// items in C order.
///
/// All chunks and blocks have their full size. Positions in a block that are outside of the chunk
/// or of the array contain padding. An array without axes has one chunk with one item. An array
/// with an axis of size 0 has no chunks.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::b2nd::{Geometry, Meta};
///
/// let (shape, chunks, blocks) = (vec![3, 5], vec![2, 4], vec![2, 2]);
/// let meta = Meta { shape, chunks, blocks, dtype: None, dtype_format: 0 };
/// let geometry = Geometry::new(&meta, 4, &Limits::default())?;
/// assert_eq!((geometry.nchunks(), geometry.nblocks()), (4, 2));
/// assert_eq!(geometry.chunk_items(3)?, [2..3, 4..5]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Geometry {
    shape: Vec<u64>,
    chunks: Vec<u64>,
    blocks: Vec<u64>,
    /// The number of chunks on each axis.
    chunk_grid: Vec<u64>,
    /// The number of blocks of a chunk on each axis.
    block_grid: Vec<u64>,
    typesize: usize,
    block_len: usize,
    chunk_len: usize,
    nchunks: u64,
    len: u64,
}

impl Geometry {
    /// Computes the layout of an array from its metalayer and the size of an item in bytes.
    ///
    /// # Errors
    /// - [`Error::Format`]: [`Meta::parse`] rejects such shapes, or the array has more items or more
    ///   bytes per chunk than the format supports;
    /// - [`Error::Limit`]: the array has more dimensions, items or chunks than `limits` allow;
    /// - [`Error::Argument`]: `typesize` exceeds the address space of this machine.
    pub fn new(meta: &Meta, typesize: u32, limits: &Limits) -> Result<Self, Error> {
        meta.check()?;
        let Meta { shape, chunks, blocks, .. } = meta;
        let ndim = shape.len();
        Limits::allow(
            Limit::Dimensions,
            "number of dimensions",
            ndim as u64,
            limits.dimensions as u64,
        )?;
        let shape: Vec<u64> = shape.iter().map(|size| size.unsigned_abs()).collect();
        let sizes = |sizes: &[i32]| sizes.iter().map(|&size| size.unsigned_abs().into()).collect();
        let (chunks, blocks): (Vec<u64>, Vec<u64>) = (sizes(chunks), sizes(blocks));
        let grid = |outer: &[u64], inner: &[u64]| -> Vec<u64> {
            outer.iter().zip(inner).map(|(outer, inner)| outer.div_ceil((*inner).max(1))).collect()
        };
        let (chunk_grid, block_grid) = (grid(&shape, &chunks), grid(&chunks, &blocks));

        // The positions of the three shapes.
        let places = [3, 4 + 9 * ndim as u64, 5 + 14 * ndim as u64];
        let refused = |rule: &Rule, level: usize, expected: String| {
            let found = [&shape, &chunks, &blocks][level];
            FormatError::of(rule, places[level], expected, format_args!("{found:?}"))
        };
        let most_items = || format!("at most {} items, with chunks at the edges padded", i64::MAX);
        let too_many = || refused(&rules::ITEMS, 0, most_items());
        let whole = |grid: &[u64], part: &[u64]| product(grid)?.checked_mul(product(part)?);
        let fits = |items: Option<u64>| items.filter(|&items| i64::try_from(items).is_ok());
        let len = fits(product(&shape)).ok_or_else(too_many)?;
        fits(whole(&chunk_grid, &chunks)).ok_or_else(too_many)?;
        let nchunks = product(&chunk_grid).ok_or_else(too_many)?;

        let typesize_wide = u64::from(typesize);
        let bytes = |level, items: Option<u64>| {
            let bytes = items.and_then(|items| items.checked_mul(typesize_wide));
            let bytes = bytes.filter(|&bytes| bytes <= MAX_CHUNK_LEN);
            bytes.and_then(|bytes| usize::try_from(bytes).ok()).ok_or_else(|| {
                let expected =
                    format!("at most {MAX_CHUNK_LEN} bytes with padding, items of {typesize}");
                refused(&rules::CHUNK_LEN, level, expected)
            })
        };
        let block_len = bytes(2, product(&blocks))?;
        let chunk_len = bytes(1, whole(&block_grid, &blocks))?;
        Limits::allow(Limit::Items, "number of items", len, limits.items)?;
        Limits::allow(Limit::Chunks, "number of chunks", nchunks, limits.chunks)?;
        let typesize = usize::try_from(typesize).map_err(|_| {
            Error::Argument(format!("items of {typesize} bytes do not fit into memory"))
        })?;
        Ok(Self {
            shape,
            chunks,
            blocks,
            chunk_grid,
            block_grid,
            typesize,
            block_len,
            chunk_len,
            nchunks,
            len,
        })
    }

    /// Returns the shape of the array.
    pub fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Returns the shape of a chunk.
    pub fn chunk_shape(&self) -> &[u64] {
        &self.chunks
    }

    /// Returns the shape of a block.
    pub fn block_shape(&self) -> &[u64] {
        &self.blocks
    }

    /// Returns the number of chunks on each axis.
    pub fn chunk_grid(&self) -> &[u64] {
        &self.chunk_grid
    }

    /// Returns the number of blocks of a chunk on each axis.
    pub fn block_grid(&self) -> &[u64] {
        &self.block_grid
    }

    /// Returns the size of an item, in bytes.
    pub fn typesize(&self) -> usize {
        self.typesize
    }

    /// Returns the number of items of the array.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether the array has no items.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of chunks of the array.
    pub fn nchunks(&self) -> u64 {
        self.nchunks
    }

    /// Returns the number of blocks in a chunk.
    pub fn nblocks(&self) -> u64 {
        // The product does not overflow: it is at most the size of a chunk, or 0.
        self.block_grid.iter().product()
    }

    /// Returns the uncompressed size of a chunk in bytes, including padding.
    pub fn chunk_len(&self) -> usize {
        self.chunk_len
    }

    /// Returns the uncompressed size of a block in bytes, including padding.
    pub fn block_len(&self) -> usize {
        self.block_len
    }

    /// Returns the range of a block in the bytes of its decoded chunk, without a check: for a `block` that does not exist,
    /// the result is not inside the chunk.
    pub fn block_range(&self, block: u64) -> Range<usize> {
        let start = usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(self.block_len);
        start..start.saturating_add(self.block_len)
    }

    /// Returns the range of indices of a chunk on each axis of the array, without padding.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no chunk at this index.
    pub fn chunk_items(&self, chunk: u64) -> Result<Vec<Range<u64>>, Error> {
        self.check_chunk(chunk)?;
        Ok(self.chunk_box(chunk))
    }

    /// Returns the range of indices of a block of a chunk on each axis of the array, without
    /// padding. A range is empty if the block contains only padding on that axis.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no chunk or no block at this index.
    pub fn block_items(&self, chunk: u64, block: u64) -> Result<Vec<Range<u64>>, Error> {
        let items = self.chunk_items(chunk)?;
        if block >= self.nblocks() {
            let there = self.nblocks();
            return Err(Error::Argument(format!(
                "no block at index {block}: a chunk has {there} blocks"
            )));
        }
        Ok(self.block_box(&items, block))
    }

    /// Returns the same ranges as [`chunk_items`](Self::chunk_items), without a check. `chunk` must
    /// be less than [`nchunks`](Self::nchunks). Otherwise this method may panic, or the result is
    /// wrong.
    pub fn chunk_box(&self, chunk: u64) -> Vec<Range<u64>> {
        let place = unravel(chunk, &self.chunk_grid);
        self.axes().zip(place).map(|(axis, place)| axis.chunk(place)).collect()
    }

    /// Returns the same ranges as [`block_items`](Self::block_items), without a check. `chunk`
    /// contains the ranges of the chunk. `block` must be less than [`nblocks`](Self::nblocks).
    /// Otherwise this method may panic, or the result is wrong.
    pub fn block_box(&self, chunk: &[Range<u64>], block: u64) -> Vec<Range<u64>> {
        let axes = self.axes().zip(chunk).zip(unravel(block, &self.block_grid));
        axes.map(|((axis, chunk), place)| axis.block(chunk, place)).collect()
    }

    /// Returns the index of the chunk at these coordinates in the grid of chunks, without a check.
    pub fn chunk_at(&self, place: impl IntoIterator<Item = u64>) -> u64 {
        ravel(place, &self.chunk_grid)
    }

    /// Returns the division of each axis into chunks and blocks.
    pub fn axes(&self) -> impl DoubleEndedIterator<Item = Axis> + ExactSizeIterator + '_ {
        (0..self.shape.len()).map(|axis| Axis {
            size: self.shape[axis],
            chunk: self.chunks[axis].max(1),
            block: self.blocks[axis].max(1),
        })
    }

    /// Returns the indices of the chunks that contain items of a slice, in ascending order.
    /// `ranges` contains one range of indices for each axis.
    ///
    /// # Errors
    /// [`Error::Argument`]: the slice is out of bounds, or the number of ranges differs from the
    /// number of axes.
    pub fn chunks_of(&self, ranges: &[Range<u64>]) -> Result<impl Iterator<Item = u64>, Error> {
        self.check_box(ranges)?;
        let (mut first, mut count) = ([0; MAX_NDIM], [1; MAX_NDIM]);
        for (number, (axis, range)) in self.axes().zip(ranges).enumerate() {
            let chunks = axis.chunks(range);
            (first[number], count[number]) = (chunks.start, chunks.end - chunks.start);
        }
        Ok(grid_part(first, count, &self.chunk_grid))
    }

    /// Copies items of a decoded chunk to the buffer of a slice.
    ///
    /// `bytes` is the decoded chunk at index `chunk`. `ranges` defines the slice, with one range of
    /// indices for each axis. `out` is a buffer for all items of the slice in C order. The method
    /// copies those items of the slice that are in the chunk, and does not change the other items
    /// of `out`.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no chunk at this index, the slice is out of bounds, or `bytes`
    /// or `out` has the wrong length.
    pub fn assemble(
        &self,
        chunk: u64,
        bytes: &[u8],
        ranges: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<(), Error> {
        self.check_lengths("chunk", [bytes.len(), self.chunk_len], ranges, out.len())?;
        let items = self.chunk_items(chunk)?;
        self.for_each_run(chunk, &items, ranges, |in_chunk, in_box, len| {
            copy_run(bytes, in_chunk, out, in_box, len);
        })
    }

    /// Returns the indices of the blocks of a chunk that contain items of a slice, in ascending order. `ranges` contains
    /// one range of indices for each axis.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no chunk at this index, the slice is out of bounds, or the number of ranges differs
    /// from the number of axes.
    pub fn blocks_of(
        &self,
        chunk: u64,
        ranges: &[Range<u64>],
    ) -> Result<impl Iterator<Item = u64>, Error> {
        let items = self.chunk_items(chunk)?;
        self.check_box(ranges)?;
        let (mut first, mut count) = ([0; MAX_NDIM], [1; MAX_NDIM]);
        for (number, (axis, range)) in self.axes().zip(ranges).enumerate() {
            let items = &items[number];
            let (start, end) = (range.start.max(items.start), range.end.min(items.end));
            let [start, end] = [start, end.max(start)].map(|index| index - items.start);
            first[number] = start / axis.block;
            count[number] = if start == end { 0 } else { end.div_ceil(axis.block) - first[number] };
        }
        Ok(grid_part(first, count, &self.block_grid))
    }

    /// Copies items of a decoded block to the buffer of a slice, like [`assemble`](Self::assemble) those of a chunk.
    /// `bytes` is the block at index `block` of the chunk at index `chunk`.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no chunk or no block at this index, the slice is out of bounds, or `bytes` or `out`
    /// has the wrong length.
    pub fn assemble_block(
        &self,
        chunk: u64,
        block: u64,
        bytes: &[u8],
        ranges: &[Range<u64>],
        out: &mut [u8],
    ) -> Result<(), Error> {
        self.check_lengths("block", [bytes.len(), self.block_len], ranges, out.len())?;
        let items = self.block_items(chunk, block)?;
        // At most the length of the chunk, which is in memory.
        let start = block as usize * self.block_len;
        self.for_each_run(chunk, &items, ranges, |in_chunk, in_box, len| {
            copy_run(bytes, in_chunk - start, out, in_box, len);
        })
    }

    /// Fills `out` with the items of a slice, in C order. `ranges` contains one range of indices for each axis.
    ///
    /// `read` is called for each chunk with items of the slice, several times if the chunk has many blocks. It receives the index of the chunk, the ranges of the
    /// needed blocks in the decoded chunk, and a function. It calls this function with the index of each range, and the
    /// bytes in the range.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the slice is out of bounds, or `out` or a block has the wrong length;
    /// - the errors of `read`.
    pub fn gather<E: From<Error>>(
        &self,
        ranges: &[Range<u64>],
        out: &mut [u8],
        mut read: impl FnMut(u64, &[Range<usize>], &mut dyn FnMut(usize, &[u8])) -> Result<(), E>,
    ) -> Result<(), E> {
        for chunk in self.chunks_of(ranges)? {
            let mut rest = self.blocks_of(chunk, ranges)?.peekable();
            while rest.peek().is_some() {
                let blocks: Vec<_> = rest.by_ref().take(MAX_GATHERED).collect();
                let places: Vec<_> = blocks.iter().map(|&block| self.block_range(block)).collect();
                let mut outcome = Ok(());
                read(chunk, &places, &mut |at, bytes| {
                    if outcome.is_ok() {
                        outcome = self.assemble_block(chunk, blocks[at], bytes, ranges, out);
                    }
                })?;
                outcome?;
            }
        }
        Ok(())
    }

    /// Copies the items of the chunk at index `chunk` from `array` to `out`. `array` contains all
    /// items of the array in C order. The method writes the blocks of the chunk to `out`, with
    /// zeros as padding.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no chunk at this index, or `array` or `out` has the wrong
    /// length.
    pub fn cut(&self, chunk: u64, array: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let ranges: Vec<_> = self.shape.iter().map(|&size| 0..size).collect();
        self.check_lengths("chunk", [out.len(), self.chunk_len], &ranges, array.len())?;
        let items = self.chunk_items(chunk)?;
        out.fill(0);
        self.for_each_run(chunk, &items, &ranges, |in_chunk, in_array, len| {
            copy_run(array, in_array, out, in_chunk, len);
        })
    }

    fn check_chunk(&self, chunk: u64) -> Result<(), Error> {
        if chunk < self.nchunks {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "no chunk at index {chunk}: the array has {} chunks",
            self.nchunks
        )))
    }

    pub(crate) fn check_box(&self, ranges: &[Range<u64>]) -> Result<(), Error> {
        let fits =
            |(range, &size): (&Range<u64>, &u64)| range.start <= range.end && range.end <= size;
        if ranges.len() == self.shape.len() && ranges.iter().zip(&self.shape).all(fits) {
            return Ok(());
        }
        Err(Error::Argument(format!(
            "the slice {ranges:?} is out of bounds of an array of shape {:?}",
            self.shape
        )))
    }

    /// `whole` contains the found and the expected length of a chunk or a block.
    fn check_lengths(
        &self,
        what: &str,
        whole: [usize; 2],
        ranges: &[Range<u64>],
        part: usize,
    ) -> Result<(), Error> {
        self.check_box(ranges)?;
        let sides: Vec<u64> = ranges.iter().map(|range| range.end - range.start).collect();
        let expected = product(&sides).and_then(|items| items.checked_mul(self.typesize as u64));
        let [found, whole] = whole;
        if found == whole && expected == Some(part as u64) {
            return Ok(());
        }
        let expected = expected.map_or("too many".to_owned(), |len| len.to_string());
        Err(Error::Argument(format!(
            "a {what} of {found} bytes and items of {part} bytes: expected {whole} and {expected} bytes"
        )))
    }

    /// Calls `visit` for each range of bytes that is contiguous both in the chunk and in the box.
    /// The arguments are the offset of the range in the chunk, its offset in the box, and its
    /// length. The box is within the bounds of the array. `items` contains the indices of a part of the
    /// chunk: only its items are visited.
    fn for_each_run(
        &self,
        chunk: u64,
        items: &[Range<u64>],
        ranges: &[Range<u64>],
        mut visit: impl FnMut(usize, usize, usize),
    ) -> Result<(), Error> {
        let place = unravel(chunk, &self.chunk_grid);
        let mut sides = Vec::with_capacity(ranges.len());
        // The offsets are less than the sizes of the chunk and of the box, which are in memory, so
        // they do not overflow.
        let (mut block, mut item) = (self.block_len as u64, self.typesize as u64);
        let mut in_box = item;
        for (number, axis) in self.axes().enumerate().rev() {
            let (chunk, range) = (axis.chunk(place[number]), &ranges[number]);
            let part = items[number].start.max(range.start)..items[number].end.min(range.end);
            if part.is_empty() {
                return Ok(());
            }
            sides.push(Side { axis, chunk, part, first: range.start, block, item, in_box });
            block *= self.block_grid[number];
            item *= axis.block;
            in_box *= range.end - range.start;
        }
        // If a block and the box contain the last axes completely, these axes are copied as one
        // range.
        let (mut sides, mut run, mut in_chunk, mut at) = (&sides[..], self.typesize as u64, 0, 0);
        while let [Side { axis, part, chunk, first, block, in_box, .. }, outer @ ..] = sides
            && let len = part.end - part.start
            && (len, run) == (axis.block, *in_box)
            && (part.start - chunk.start).is_multiple_of(axis.block)
            && outer.first().is_none_or(|outer| outer.in_box == run * len)
        {
            in_chunk += (part.start - chunk.start) / axis.block * block;
            at += (part.start - first) * in_box;
            (sides, run) = (outer, run * len);
        }
        each_run(sides, run, in_chunk, at, &mut visit);
        Ok(())
    }
}

/// An axis of a chunk that contains a part of a box. Distances are in bytes.
struct Side {
    axis: Axis,
    /// The indices in the chunk, those also in the box, and the first index of the box.
    chunk: Range<u64>,
    part: Range<u64>,
    first: u64,
    /// The distances between blocks, between items of a block, and between items of the box.
    block: u64,
    item: u64,
    in_box: u64,
}

/// Calls `visit` for each range of the axes. The first axis is the innermost one.
fn each_run(
    sides: &[Side],
    run: u64,
    in_chunk: u64,
    in_box: u64,
    visit: &mut impl FnMut(usize, usize, usize),
) {
    let Some((side, inner)) = sides.split_last() else {
        return visit(in_chunk as usize, in_box as usize, run as usize);
    };
    let mut start = side.part.start;
    while start < side.part.end {
        let block = (start - side.chunk.start) / side.axis.block;
        let items = side.axis.block(&side.chunk, block);
        let end = side.part.end.min(items.end);
        let mut from = in_chunk + block * side.block + (start - items.start) * side.item;
        let mut to = in_box + (start - side.first) * side.in_box;
        // Neighbors on the innermost axis are contiguous.
        let (count, run) = match inner.is_empty() && (side.item, side.in_box) == (run, run) {
            true => (1, run * (end - start)),
            false => (end - start, run),
        };
        for _ in 0..count {
            each_run(inner, run, from, to, visit);
            (from, to) = (from + side.item, to + side.in_box);
        }
        start = end;
    }
}

/// An axis of an array, which is divided into chunks, which are divided into blocks. See
/// [`Geometry::axes`].
///
/// ```
/// use blosc2_format::b2nd::Axis;
///
/// let axis = Axis { size: 10, chunk: 4, block: 3 };
/// assert_eq!(axis.chunk(2), 8..10);
/// assert_eq!(axis.block(&axis.chunk(1), 1), 7..8);
/// assert_eq!(axis.locate(7), [1, 1, 0]);
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Axis {
    /// The number of indices of the array.
    pub size: u64,
    /// The number of indices of a chunk, at least 1.
    pub chunk: u64,
    /// The number of indices of a block, at least 1.
    pub block: u64,
}

impl Axis {
    /// Returns the coordinates of the chunks that contain indices of a range.
    pub fn chunks(self, range: &Range<u64>) -> Range<u64> {
        let first = range.start / self.chunk;
        first..if range.is_empty() { first } else { range.end.div_ceil(self.chunk) }
    }

    /// Returns the indices of a chunk, without padding.
    pub fn chunk(self, place: u64) -> Range<u64> {
        let start = place * self.chunk;
        start..self.size.min(start + self.chunk)
    }

    /// Returns the indices of a block of a chunk, without padding. `chunk` contains the indices of
    /// the chunk.
    pub fn block(self, chunk: &Range<u64>, place: u64) -> Range<u64> {
        let start = (chunk.start + place * self.block).min(chunk.end);
        start..chunk.end.min(start + self.block)
    }

    /// Returns the coordinates of an index: of its chunk, of its block in the chunk, and its
    /// position in the block.
    pub fn locate(self, index: u64) -> [u64; 3] {
        let in_chunk = index % self.chunk;
        [index / self.chunk, in_chunk / self.block, in_chunk % self.block]
    }
}

fn copy_run(from: &[u8], start: usize, to: &mut [u8], at: usize, len: usize) {
    if let (Some(to), Some(from)) = (to.get_mut(at..at + len), from.get(start..start + len)) {
        to.copy_from_slice(from);
    }
}

fn product(sizes: &[u64]) -> Option<u64> {
    sizes.iter().try_fold(1u64, |all, &size| all.checked_mul(size))
}

/// Returns the index in C order of a position in a grid.
fn ravel(place: impl IntoIterator<Item = u64>, grid: &[u64]) -> u64 {
    grid.iter().zip(place).fold(0, |all, (size, place)| all * size + place)
}

/// Returns the indices in C order of the positions in a part of a grid, which starts at `first`.
fn grid_part(first: Index, count: Index, grid: &[u64]) -> impl Iterator<Item = u64> + use<> {
    let (ndim, grid) = (grid.len(), grid.to_vec());
    // This is at most the size of the grid.
    let total: u64 = if count.contains(&0) { 0 } else { count[..ndim].iter().product() };
    (0..total).map(move |number| {
        let place = unravel(number, &count[..ndim]);
        ravel(first.iter().zip(place).map(|(first, place)| first + place), &grid)
    })
}

/// Returns the position in a grid of an index in C order that is within the grid.
fn unravel(mut number: u64, grid: &[u64]) -> Index {
    let mut place = [0; MAX_NDIM];
    for (axis, &size) in grid.iter().enumerate().rev() {
        place[axis] = number % size;
        number /= size;
    }
    place
}

#[cfg(test)]
#[path = "geometry_tests.rs"]
mod tests;
