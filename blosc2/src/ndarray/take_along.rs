//! Copies of the items at positions on an axis.

use std::ops::Range;

use super::boxes::{extent, own_ranges};
use super::builder::Sources;
use super::copy::number_of;
use super::places::len_of;
use super::view::NDArrayView;
use super::{NDArray, NDArrayBuilder};
use crate::dtype::Kind;
use crate::schunk::NOTHING_FETCHED;
use crate::support::memory::{reserve, resize};
use crate::{Doing, ErrorKind, Result};

const TAKE: &str = "take items of an array";

impl NDArrayBuilder {
    /// Creates an array of items of a source. `indices` is an array of integers, which are the positions of the items on
    /// `axis`; negative positions count from the end of the axis. All other indices are those of the item of the result.
    /// NumPy and Python: `take_along_axis`.
    ///
    /// The result of [`argsort`](Self::argsort) can be used as `indices`. The source and the indices have the same
    /// number of dimensions; on the other axes, a size of 1 is broadcast.
    ///
    /// Each thread holds a chunk of the result, 24 bytes for each of its items, and items of the source that are in one
    /// chunk on the axis; [`max_memory`](Self::max_memory) limits only these items. The settings of the builder determine
    /// all properties of the result except the dtype.
    ///
    /// For each chunk of the result, all chunks of the source that it refers to are read. For indices in random order,
    /// these are all chunks on the axis: to sort a large array, use [`sort`](Self::sort).
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[10u8, 20, 30, 40, 50, 60], (2, 3))?;
    /// let indices = NDArray::from_slice(&[2i64, 0, -2, -2], (2, 2))?;
    /// let taken = NDArray::builder().take_along_axis(&array, &indices, 1)?;
    /// assert_eq!(taken.read::<Vec<u8>>(..)?, [30, 10, 50, 50]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the source does not have the axis, or the shapes do not match;
    /// - [`ErrorKind::TypeMismatch`]: the indices are not integers of up to 64 bits;
    /// - [`ErrorKind::OutOfBounds`]: an index is outside the axis;
    /// - the [errors of reads](NDArray#errors-of-reads) of both arrays, and of [creation](Self#errors-of-creation).
    pub fn take_along_axis<'a, 'b>(
        self,
        source: impl Into<NDArrayView<'a>>,
        indices: impl Into<NDArrayView<'b>>,
        axis: usize,
    ) -> Result<NDArray> {
        let (view, indices) = (source.into(), indices.into());
        let (own, asked) = (view.shape(), indices.shape());
        let invalid = |detail| Err(view.error(ErrorKind::InvalidArgument, detail).doing(TAKE));
        if axis >= own.len() {
            return invalid(format!("the array has {} axes, asked for axis {axis}", own.len()));
        }
        let along = |(number, (&own, &asked))| match number == axis || own == 1 || own == asked {
            true => Some(asked),
            false => (asked == 1).then_some(own),
        };
        let shape = own.iter().zip(&asked).enumerate().map(along).collect::<Option<Vec<u64>>>();
        let Some(shape) = shape.filter(|_| own.len() == asked.len()) else {
            let detail =
                format!("the shapes {own:?} and {asked:?} differ on an axis other than {axis}");
            return invalid(detail);
        };
        let integer = indices.dtype().filter(|dtype| {
            matches!(dtype.kind(), Some(Kind::Int | Kind::UInt))
                && dtype.size() == indices.part().len
        });
        let conversion = integer
            .and_then(|dtype| Some((dtype, number_of::<i64>(dtype)?, dtype.swap_plan().ok()?)));
        let Some((dtype, number, swapped)) = conversion else {
            let detail = format!("the indices are {}, expected integers", indices.dtype_text().0);
            return Err(indices.error(ErrorKind::TypeMismatch, detail).doing(TAKE));
        };
        let is_large = (dtype.kind(), dtype.size()) == (Some(Kind::UInt), 8);
        let size = own[axis];
        // The position of an index on the axis.
        let position = |at: i64| {
            let place = match at {
                0.. => Some(at as u64),
                _ if is_large => None,
                _ => size.checked_sub(at.unsigned_abs()),
            };
            place.filter(|place| *place < size).ok_or_else(|| {
                let shown = if is_large { (at as u64).to_string() } else { at.to_string() };
                let detail = format!("axis {axis} has {size} items, asked for index {shown}");
                view.error(ErrorKind::OutOfBounds, detail).doing(TAKE)
            })
        };
        let room = self.memory() / self.threads().max(1);
        let ((text, format), typesize) = (view.dtype_text(), view.part().len);
        let chunk = view.grid(axis).chunk;
        let readings = (view.array.schunk.reading()?, indices.array.schunk.reading()?);
        let sources = Sources { arrays: &[view.array, indices.array], vlmeta: false };
        self.dtype_format(format).by_boxes(&shape, (&text, typesize), sources, &|ranges, bytes| {
            let mut from = own_ranges(&asked, ranges);
            from[axis] = ranges[axis].clone();
            let len = len_of(&extent(&from), dtype.size());
            indices.array.schunk.allow_scratch(len).doing(TAKE)?;
            let mut found = Vec::new();
            resize(&mut found, len as usize).doing(TAKE)?;
            indices.read_tile((&readings.1, &NOTHING_FETCHED), &from, &mut found)?;
            swapped.apply(&mut found);
            let extents = extent(ranges);
            let steps = strides(&from);
            // The position of each item on the axis of the source, and in the result.
            let mut items: Vec<(u64, usize)> = Vec::new();
            reserve(&mut items, len_of(&extents, 1) as usize).doing(TAKE)?;
            for to in 0..len_of(&extents, 1) as usize {
                let at = place(to, &extents, &steps, None) * dtype.size();
                items.push((position(number(&found[at..at + dtype.size()]))?, to));
            }
            if typesize == 0 {
                return Ok(());
            }
            items.sort_unstable();
            let mut from = own_ranges(&own, ranges);
            from[axis] = 0..1;
            let other = len_of(&extent(&from), typesize).max(1);
            let side = (room as u64 / other).clamp(1, chunk);
            let mut taken = Vec::new();
            for items in items.chunk_by(|one, two| one.0 / side == two.0 / side) {
                from[axis] = items[0].0..items[items.len() - 1].0 + 1;
                taken.clear();
                let len = len_of(&extent(&from), typesize);
                view.array.schunk.allow_scratch(len).doing(TAKE)?;
                resize(&mut taken, len as usize).doing(TAKE)?;
                view.read_tile((&readings.0, &NOTHING_FETCHED), &from, &mut taken)?;
                let steps = strides(&from);
                for (at, to) in items {
                    let at = place(*to, &extents, &steps, Some((axis, at - from[axis].start)));
                    let (at, to) = (at * typesize, to * typesize);
                    bytes[to..to + typesize].copy_from_slice(&taken[at..at + typesize]);
                }
            }
            Ok(())
        })
    }
}

/// Returns the strides of a box in items. An axis of one index is repeated.
fn strides(ranges: &[Range<u64>]) -> Vec<u64> {
    let mut stride = 1;
    let mut strides: Vec<u64> = extent(ranges)
        .into_iter()
        .rev()
        .map(|size| {
            let own = if size == 1 { 0 } else { stride };
            stride *= size;
            own
        })
        .collect();
    strides.reverse();
    strides
}

/// Returns the position in a box with these strides of an item of the result, whose box has the shape `extents`. The
/// index on one axis can be another one.
fn place(mut item: usize, extents: &[u64], strides: &[u64], other: Option<(usize, u64)>) -> usize {
    let mut place = 0;
    for (axis, (size, stride)) in extents.iter().zip(strides).enumerate().rev() {
        let at = match other {
            Some((other, at)) if other == axis => at,
            _ => item as u64 % size,
        };
        item /= *size as usize;
        place += at * stride;
    }
    place as usize
}
