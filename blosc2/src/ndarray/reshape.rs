//! Copies of arrays with another shape.

use std::mem;
use std::ops::Range;

use super::boxes::{Readings, can_broadcast, extent, next_index, own_ranges};
use super::index::{PerAxis, sizes};
use super::places::len_of;
use super::selection::AxisVec;
use super::view::{Grid, NDArrayView};
use super::{NDArray, NDArrayBuilder};
use crate::schunk::Reading;
use crate::{Doing, ErrorKind, Result, Threads};

const RESHAPE: &str = "reshape an array";
const BROADCAST: &str = "broadcast an array";

/// The number of pieces that are collected before they are read. It limits their memory.
const PIECES: usize = 1 << 16;

/// The number of parts of a chunk to which a piece can be added, so that the search takes little time.
const OPEN: usize = 16;

impl NDArrayBuilder {
    /// Creates a copy of an array or a view with another shape, which has the same number of items. The items have the
    /// same C order. NumPy and Python: `reshape`.
    ///
    /// One size can be -1: it is computed from the others. The settings of the builder determine all properties of the
    /// copy except the dtype. Each thread holds one chunk of the copy and a part of one chunk of the source in memory.
    /// To change the shape of an existing array, use [`NDArray::resize`].
    ///
    /// For each new chunk, the blocks of the source that contain its items are decompressed. The copy is fastest if few
    /// new chunks need the same block, for example if both arrays have chunks of entire rows.
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
        let shape = shape_for(&shape, &view)?;
        let ((dtype, format), typesize) = (view.dtype_text(), view.part().len);
        let (builder, readings) = (self.dtype_format(format), Readings::new([view.array])?);
        builder.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
            let (boxes, reading) = (Boxes::new(&view), readings.of(view.array));
            new.by_boxes(&|ranges, bytes| {
                let mut gather = Gather { view: &view, boxes: &boxes, reading, pieces: Vec::new() };
                each_run(&shape, ranges, &mut |from, to, len| gather.add(from, to, len, bytes))?;
                gather.read(bytes)
            })
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
        let (builder, readings) = (self.dtype_format(format), Readings::new([view.array])?);
        builder.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
            new.by_boxes(&|ranges, bytes| {
                let from = own_ranges(&own, ranges);
                let mut items = Vec::new();
                view.read_to(Threads::ONE, readings.of(view.array), &from, &mut items)?;
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
///
/// The last axes on which a box contains all items are joined with the axis before them: a *row* of a box consists of
/// items that are consecutive in the view. The position on the joined axis is the number of the item on these axes.
struct Boxes {
    shape: Vec<u64>,
    grids: Vec<Grid>,
    /// The number of axes before the joined axis.
    outer: usize,
    /// For each axis, the number of items of the view for each index.
    strides: Vec<u64>,
}

impl Boxes {
    fn new(view: &NDArrayView<'_>) -> Self {
        let shape = view.shape();
        let grids: Vec<Grid> = (0..view.ndim()).map(|axis| view.grid(axis)).collect();
        let is_whole = |(grid, size): (&Grid, &u64)| grid.offset == 0 && grid.chunk >= *size;
        let whole = grids.iter().zip(&shape).rev().take_while(|axis| is_whole(*axis)).count();
        let strides = (0..shape.len()).map(|axis| len_of(&shape[axis + 1..], 1)).collect();
        Self { outer: shape.len().saturating_sub(whole + 1), shape, grids, strides }
    }

    /// Returns the index of an item on the outer axes, and its position on the joined axis.
    fn place(&self, mut at: u64) -> AxisVec<u64> {
        let mut index = AxisVec::new();
        for stride in &self.strides[..self.outer] {
            index.push(at / stride);
            at %= stride;
        }
        index.push(at);
        index
    }

    /// Returns the number of the box of an item, and the number of items from this one to the end of its row in the box.
    fn row(&self, place: &[u64]) -> (u64, u64) {
        let (mut number, mut rest) = (0, 1);
        for (axis, &at) in place.iter().enumerate().take(self.shape.len()) {
            let (Grid { offset, chunk, .. }, size) = (self.grids[axis], self.shape[axis]);
            let stride = if axis == self.outer { self.strides[axis] } else { 1 };
            let index = at / stride;
            number = number * (size + offset).div_ceil(chunk) + (index + offset) / chunk;
            rest = (index + (chunk - (index + offset) % chunk).min(size - index)) * stride - at;
        }
        (number, rest)
    }

    /// Returns the ranges on all axes of the smallest box that contains these ranges of the outer and the joined axes.
    fn ranges(&self, places: &[Range<u64>]) -> AxisVec<Range<u64>> {
        let mut ranges: AxisVec<Range<u64>> = places[..self.outer].iter().cloned().collect();
        let Range { mut start, mut end } = places[self.outer];
        for axis in self.outer..self.shape.len() {
            let stride = self.strides[axis];
            let (first, last) = (start / stride, (end - 1) / stride);
            ranges.push(first..last + 1);
            if first < last {
                ranges.extend(self.shape[axis + 1..].iter().map(|&size| 0..size));
                break;
            }
            (start, end) = (start - first * stride, end - first * stride);
        }
        ranges
    }

    /// Returns the number of blocks that contain the items of a box, which is in one chunk.
    fn blocks(&self, places: &[Range<u64>]) -> u64 {
        let blocks = |(range, grid): (&Range<u64>, &Grid)| {
            let block = |at: u64| (at + grid.offset) % grid.chunk / grid.block;
            block(range.end - 1) - block(range.start) + 1
        };
        self.ranges(places).iter().zip(&self.grids).map(blocks).product()
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

/// Pieces that are read together.
struct Part<'a> {
    /// The ranges on the outer axes and the joined axis.
    places: AxisVec<Range<u64>>,
    blocks: u64,
    pieces: Vec<&'a Piece>,
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
            let (number, rest) = self.boxes.row(&self.boxes.place(from));
            let part = rest.min(len);
            self.pieces.push(Piece { number, from, to, len: part });
            (from, to, len) = (from + part, to + part, len - part);
            if self.pieces.len() == PIECES {
                self.read(bytes)?;
            }
        }
        Ok(())
    }

    /// Reads the collected pieces.
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let mut pieces = mem::take(&mut self.pieces);
        pieces.sort_unstable_by_key(|piece| (piece.number, piece.from));
        let mut items = Vec::new();
        for pieces in pieces.chunk_by(|one, other| one.number == other.number) {
            for part in self.parts(pieces) {
                self.read_part(&part, &mut items, bytes)?;
            }
        }
        pieces.clear();
        self.pieces = pieces;
        Ok(())
    }

    /// Divides the pieces of a box into parts. Pieces are read together if this needs no more blocks than separate reads.
    fn parts<'p>(&self, pieces: &'p [Piece]) -> Vec<Part<'p>> {
        let mut parts: Vec<Part<'p>> = Vec::new();
        for piece in pieces {
            let mut places: AxisVec<Range<u64>> =
                self.boxes.place(piece.from).iter().map(|&at| at..at + 1).collect();
            if let Some(row) = places.last_mut() {
                row.end = row.start + piece.len;
            }
            let blocks = self.boxes.blocks(&places);
            let joined = parts.iter_mut().rev().take(OPEN).find_map(|part| {
                let ranges = part.places.iter().zip(&places);
                let both = ranges.map(|(one, two)| one.start.min(two.start)..one.end.max(two.end));
                let both: AxisVec<Range<u64>> = both.collect();
                let needed = self.boxes.blocks(&both);
                (needed <= part.blocks + blocks).then_some((part, both, needed))
            });
            match joined {
                Some((part, both, needed)) => {
                    (part.places, part.blocks) = (both, needed);
                    part.pieces.push(piece);
                }
                None => parts.push(Part { places, blocks, pieces: vec![piece] }),
            }
        }
        parts
    }

    fn read_part(&self, part: &Part<'_>, items: &mut Vec<u8>, bytes: &mut [u8]) -> Result<()> {
        let (outer, size) = (self.boxes.outer, self.view.part().len);
        let ranges = self.boxes.ranges(&part.places);
        self.view.read_to(Threads::ONE, self.reading, &ranges, items)?;
        // The number of items for each index of the outer axes, and the position of the first item on the joined axis.
        let row = len_of(&extent(&ranges[outer..]), 1);
        let strides = &self.boxes.strides[outer..];
        let start: u64 =
            ranges[outer..].iter().zip(strides).map(|(range, by)| range.start * by).sum();
        for piece in &part.pieces {
            let place = self.boxes.place(piece.from);
            let index = place[..outer]
                .iter()
                .zip(&ranges)
                .fold(0, |all, (at, range)| all * (range.end - range.start) + at - range.start);
            let at = index * row + place[outer] - start;
            let [at, to, len] = [at, piece.to, piece.len].map(|number| number as usize * size);
            bytes[to..to + len].copy_from_slice(&items[at..at + len]);
        }
        Ok(())
    }
}
