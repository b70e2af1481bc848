//! Copies of arrays with another shape.

use std::mem;
use std::ops::Range;

use super::boxes::{can_broadcast, extent, next_index, own_ranges};
use super::builder::{MAKE, Sources};
use super::index::{PerAxis, sizes};
use super::places::len_of;
use super::view::{Grid, NDArrayView};
use super::{NDArray, NDArrayBuilder};
use crate::schunk::{NOTHING_FETCHED, Reading};
use crate::support::memory::resize;
use crate::{Doing, ErrorKind, Result};

const RESHAPE: &str = "reshape an array";
const BROADCAST: &str = "broadcast an array";

/// The number of pieces that are collected before they are read. It limits their memory.
const PIECES: usize = 1 << 16;

impl NDArrayBuilder {
    /// Creates a copy of an array or a view with another shape, which has the same number of items. The items have the
    /// same C order. NumPy and Python: `reshape`.
    ///
    /// One size can be -1: it is computed from the others. The settings of the builder determine all properties of the
    /// copy except the dtype. Each thread holds one chunk of the copy and a part of one chunk of the source in memory.
    /// To change the shape of an existing array, use [`NDArray::resize`].
    ///
    /// For each new chunk, and for each chunk of the source that it needs, the box of the source that contains all needed
    /// items is decompressed. The copy is fastest if few new chunks need the same block, for example if both arrays have
    /// chunks of entire rows.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().arange(0u8, 12, 1)?;
    /// let table = NDArray::builder().reshape(&array, (3, -1))?;
    /// assert_eq!(table.shape(), [3, 4]);
    /// assert_eq!(table.read::<Vec<u8>>((.., 1))?, [1, 5, 9]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the shape has another number of items, a size below -1, or several sizes of -1;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    pub fn reshape<'a>(
        self,
        source: impl Into<NDArrayView<'a>>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        let view = source.into();
        let len = len_of(&view.shape(), 1);
        let shape = shape_for(&shape, &view)?;
        let ((dtype, format), typesize) = (view.dtype_text(), view.part().len);
        let reading = view.array.schunk.reading()?;
        let sources = Sources { arrays: &[view.array], vlmeta: false };
        let boxes = Boxes::new(&view);
        self.dtype_format(format).by_boxes(&shape, (&dtype, typesize), sources, &|ranges, bytes| {
            if typesize == 0 || len == 0 {
                return Ok(());
            }
            let mut gather =
                Gather { view: &view, boxes: &boxes, reading: &reading, pieces: Vec::new() };
            each_run(&shape, ranges, &mut |from, to, len| gather.add(from, to, len, bytes))?;
            gather.read(bytes)
        })
    }

    /// Creates a copy of an array or a view that is broadcast to a shape: the shapes are aligned at the last axis, and an
    /// axis of size 1 is repeated. NumPy and Python: `broadcast_to`.
    ///
    /// The settings of the builder determine all properties of the copy except the dtype. Operands of
    /// [`compute::zip`](crate::compute::zip) and [`NDArray::assign`] are broadcast without a copy.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let column = NDArray::from_slice(&[1u8, 2], (2, 1))?;
    /// let table = NDArray::builder().broadcast_to(&column, (2, 3))?;
    /// assert_eq!(table.read::<Vec<u8>>(..)?, [1, 1, 1, 2, 2, 2]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the source cannot be broadcast to the shape;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    pub fn broadcast_to<'a>(
        self,
        source: impl Into<NDArrayView<'a>>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        let (view, shape) = (source.into(), sizes(&shape, "shape").doing(BROADCAST)?);
        let own = view.shape();
        if !can_broadcast(&own, &shape) {
            let detail = format!("the shape {own:?} cannot be broadcast to {shape:?}");
            return Err(view.error(ErrorKind::InvalidArgument, detail).doing(BROADCAST));
        }
        let skipped = shape.len() - own.len();
        let ((dtype, format), typesize) = (view.dtype_text(), view.part().len);
        let reading = view.array.schunk.reading()?;
        let sources = Sources { arrays: &[view.array], vlmeta: false };
        self.dtype_format(format).by_boxes(&shape, (&dtype, typesize), sources, &|ranges, bytes| {
            if typesize == 0 {
                return Ok(());
            }
            let from = own_ranges(&own, ranges);
            let mut items = Vec::new();
            let len = len_of(&extent(&from), typesize);
            view.array.schunk.allow_scratch(len).doing(BROADCAST)?;
            resize(&mut items, len as usize).doing(BROADCAST)?;
            view.read_tile((&reading, &NOTHING_FETCHED), &from, &mut items)?;
            let sizes: Vec<usize> = extent(ranges).iter().map(|size| *size as usize).collect();
            let mut strides = vec![0; sizes.len()];
            let mut stride = typesize;
            for axis in (skipped..sizes.len()).rev() {
                let size = (from[axis - skipped].end - from[axis - skipped].start) as usize;
                strides[axis] = if size == 1 { 0 } else { stride };
                stride *= size;
            }
            expand(&items, &sizes, &strides, typesize, bytes);
            Ok(())
        })
    }
}

/// Copies items at the positions that the strides in bytes determine, in C order.
fn expand(from: &[u8], sizes: &[usize], strides: &[usize], typesize: usize, to: &mut [u8]) {
    let ([size, sizes @ ..], [stride, strides @ ..]) = (sizes, strides) else {
        return to.copy_from_slice(&from[..typesize]);
    };
    if sizes.is_empty() && *stride == typesize {
        return to.copy_from_slice(&from[..to.len()]);
    }
    let part = to.len() / size;
    let (first, rest) = to.split_at_mut(part);
    expand(from, sizes, strides, typesize, first);
    for (at, to) in rest.chunks_exact_mut(part).enumerate() {
        match stride {
            0 => to.copy_from_slice(first),
            _ => expand(&from[(at + 1) * stride..], sizes, strides, typesize, to),
        }
    }
}

/// Returns the new shape of a view. A size of -1 is computed.
fn shape_for(shape: &impl PerAxis, view: &NDArrayView<'_>) -> Result<Vec<u64>> {
    let found: Vec<i128> = (0..shape.ndim()).map(|axis| shape.along(axis)).collect();
    let old = view.shape();
    let len = len_of(&old, 1);
    let known = found.iter().filter(|size| **size != -1);
    let known = known.map(|size| u64::try_from(*size).ok()).collect::<Option<Vec<u64>>>();
    let unknown = found.len() - known.as_ref().map_or(0, Vec::len);
    let product = known.as_ref().map(|known| len_of(known, 1));
    let missing = match product {
        Some(product) if unknown == 0 && product == len => Some(0),
        Some(product) if unknown == 1 && product > 0 && len.is_multiple_of(product) => {
            Some(len / product)
        }
        _ => None,
    };
    let Some(missing) = missing else {
        let detail = format!("expected a shape of {len} items, as {old:?}, got {found:?}");
        return Err(view.error(ErrorKind::InvalidArgument, detail).doing(RESHAPE));
    };
    Ok(found.iter().map(|size| u64::try_from(*size).unwrap_or(missing)).collect())
}

/// Calls `visit` for each run of consecutive items of a box of an array: with the position of its first item in the
/// array and in the box, in C order, and with its length.
fn each_run(
    shape: &[u64],
    ranges: &[Range<u64>],
    visit: &mut dyn FnMut(u64, u64, u64) -> Result<()>,
) -> Result<()> {
    let extent = extent(ranges);
    // The last axes whose indices are all in the box, and the axis before them.
    let whole = extent.iter().zip(shape).rev().take_while(|(part, size)| part == size).count();
    let outer = shape.len().saturating_sub(whole + 1);
    let len = len_of(&extent[outer..], 1);
    let mut index: Vec<u64> = ranges.iter().map(|range| range.start).collect();
    let mut to = 0;
    loop {
        let from = index.iter().zip(shape).fold(0, |from, (at, size)| from * size + at);
        visit(from, to, len)?;
        to += len;
        if !next_index(&mut index[..outer], &ranges[..outer]) {
            return Ok(());
        }
    }
}

/// The boxes of a view that are in one chunk of the array.
struct Boxes {
    shape: Vec<u64>,
    axes: Vec<Grid>,
}

impl Boxes {
    fn new(view: &NDArrayView<'_>) -> Self {
        Self { shape: view.shape(), axes: (0..view.ndim()).map(|axis| view.grid(axis)).collect() }
    }

    /// Returns the index of an item.
    fn index(&self, mut at: u64) -> Vec<u64> {
        let mut index = self.shape.clone();
        for size in index.iter_mut().rev() {
            (at, *size) = (at / *size, at % *size);
        }
        index
    }

    /// Returns the number of the box of an item, and the number of items from this one to the end of its row in the box.
    fn place(&self, index: &[u64]) -> (u64, u64) {
        let (mut number, mut rest) = (0, 1);
        for ((at, size), grid) in index.iter().zip(&self.shape).zip(&self.axes) {
            let (side, before) = (grid.chunk, grid.offset);
            number = number * (size + before).div_ceil(side) + (at + before) / side;
            rest = (side - (at + before) % side).min(size - at);
        }
        (number, rest)
    }
}

/// Consecutive items of a row of a view, in one box.
struct Piece {
    number: u64,
    /// The position in the view, the position in the new box, and the number of items.
    from: u64,
    to: u64,
    len: u64,
}

/// Collects the items of a box of the new array.
struct Gather<'a> {
    view: &'a NDArrayView<'a>,
    boxes: &'a Boxes,
    reading: &'a Reading<'a>,
    pieces: Vec<Piece>,
}

impl Gather<'_> {
    /// Adds consecutive items.
    fn add(&mut self, mut from: u64, mut to: u64, mut len: u64, bytes: &mut [u8]) -> Result<()> {
        while len > 0 {
            let (number, rest) = self.boxes.place(&self.boxes.index(from));
            let part = rest.min(len);
            self.pieces.push(Piece { number, from, to, len: part });
            (from, to, len) = (from + part, to + part, len - part);
            if self.pieces.len() == PIECES {
                self.read(bytes)?;
            }
        }
        Ok(())
    }

    /// Reads the collected pieces. Each box is read once.
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut pieces = mem::take(&mut self.pieces);
        pieces.sort_unstable_by_key(|piece| (piece.number, piece.from));
        let size = self.view.part().len;
        let mut items = Vec::new();
        for pieces in pieces.chunk_by(|one, other| one.number == other.number) {
            let indices: Vec<Vec<u64>> =
                pieces.iter().map(|piece| self.boxes.index(piece.from)).collect();
            let mut ranges: Vec<Range<u64>> = indices[0].iter().map(|&at| at..at + 1).collect();
            for (index, piece) in indices.iter().zip(pieces) {
                for (range, &at) in ranges.iter_mut().zip(index) {
                    *range = range.start.min(at)..range.end.max(at + 1);
                }
                if let (Some(range), Some(at)) = (ranges.last_mut(), index.last()) {
                    range.end = range.end.max(at + piece.len);
                }
            }
            items.clear();
            let len = len_of(&extent(&ranges), size);
            self.view.array.schunk.allow_scratch(len).doing(MAKE)?;
            resize(&mut items, len as usize).doing(MAKE)?;
            self.view.read_tile((self.reading, &NOTHING_FETCHED), &ranges, &mut items)?;
            for (index, piece) in indices.iter().zip(pieces) {
                let axes = index.iter().zip(&ranges);
                let at = axes.fold(0, |at, (index, range)| {
                    at * (range.end - range.start) + index - range.start
                });
                let [at, to, len] = [at, piece.to, piece.len].map(|number| number as usize * size);
                bytes[to..to + len].copy_from_slice(&items[at..at + len]);
            }
        }
        pieces.clear();
        self.pieces = pieces;
        Ok(())
    }
}
