//! Copies of the items at positions on an axis.

use std::mem;
use std::ops::Range;

use parking_lot::Mutex;

use super::boxes::{Readings, each_part, extent, own_ranges};
use super::copy::number_of;
use super::places::len_of;
use super::view::{Grid, NDArrayView};
use super::{NDArray, NDArrayBuilder, parallel};
use crate::dtype::Kind;
use crate::support::memory::{reserve, resize};
use crate::{Doing, ErrorKind, Result, Threads};

const TAKE: &str = "take items of an array";

impl NDArrayBuilder {
    /// Creates an array of items of a source. `indices` is an array of integers, which are the positions of the items on
    /// `axis`; negative positions count from the end of the axis. All other indices are those of the item of the result.
    /// NumPy and Python: `take_along_axis`.
    ///
    /// The result of [`argsort`](Self::argsort) can be used as `indices`. The source and the indices have the same
    /// number of dimensions; on the other axes, a size of 1 is broadcast.
    ///
    /// As many items of the result as fit in [`max_memory`](Self::max_memory) are taken together. For them, each chunk of
    /// the source to which they refer is read. For indices in random order, these are all chunks on the axis: then more
    /// memory makes this method faster, and to sort a large array, use [`sort`](Self::sort).
    /// [`CParams::threads`](crate::CParams::threads) sets the number of threads. The settings of the builder determine all
    /// properties of the result except the dtype.
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
        let (memory, threads) = (self.memory() as u64, self.threads().max(1));
        let ((text, format), typesize) = (view.dtype_text(), view.part().len);
        let readings = Readings::new([view.array, indices.array])?;
        // The chunks of the source on the axis, and the size in bytes of the items of the source for one index.
        let Grid { offset, chunk, .. } = view.grid(axis);
        let row = |ranges: &[Range<u64>]| {
            let mut from = own_ranges(&own, ranges);
            from[axis] = 0..1;
            len_of(&extent(&from), typesize).max(1)
        };
        let builder = self.dtype_format(format);
        builder.create_from(&shape, (&text, typesize), readings, |readings, new| {
            // Determines the positions of the items of a piece.
            let locate = |piece: &mut Piece<'_>| -> Result<()> {
                let mut from = own_ranges(&asked, &piece.ranges);
                from[axis] = piece.ranges[axis].clone();
                let mut found = Vec::new();
                indices.read_to(Threads::ONE, readings.of(indices.array), &from, &mut found)?;
                swapped.apply(&mut found);
                let (extents, steps) = (extent(&piece.ranges), strides(&from));
                let count = piece.bytes.len() / typesize;
                reserve(&mut piece.items, count).doing(TAKE)?;
                for to in 0..count {
                    let at = place(to, &extents, &steps, None) * dtype.size();
                    piece.items.push((position(number(&found[at..at + dtype.size()]))?, to));
                }
                piece.items.sort_unstable();
                Ok(())
            };
            // Half of the memory is for the items of the result, a quarter is for items of the source.
            let most = memory / 2 / (LOCATED + dtype.size() + typesize) as u64;
            let fits = |sides: &[u64]| {
                let ranges: Vec<Range<u64>> = sides.iter().map(|side| 0..*side).collect();
                let read = row(&ranges).saturating_mul(chunk.min(size));
                len_of(sides, 1) <= most && read <= memory / 4
            };
            let sides = part_of(new.geometry.chunk_shape(), &shape, axis, &fits);
            each_part(&shape, &sides, &mut |ranges| {
                let mut bytes = Vec::new();
                resize(&mut bytes, len_of(&extent(ranges), typesize) as usize).doing(TAKE)?;
                let mut pieces =
                    pieces(ranges, (most / threads as u64).max(LEAST), typesize, &mut bytes)?;
                for pieces in pieces.chunks_mut(threads) {
                    let pieces: Vec<_> = pieces.iter_mut().map(Mutex::new).collect();
                    let each = |work: &(dyn Fn(&mut Piece<'_>) -> Result<()> + Sync)| {
                        let work = |(): &mut (), number: usize| work(&mut pieces[number].lock());
                        parallel::each(threads, pieces.len(), || Ok(()), work)
                    };
                    each(&locate)?;
                    let hull = hull(pieces.iter().map(|piece| piece.lock().ranges.clone()));
                    let mut from = own_ranges(&own, &hull);
                    let side = memory / 4 / row(&hull);
                    let mut taken = Vec::new();
                    let next = |piece: &Mutex<&mut Piece<'_>>| piece.lock().next();
                    while let Some(start) = pieces.iter().filter_map(next).min() {
                        // Only items that are in one chunk on the axis.
                        let end = start + (chunk - (start + offset) % chunk).min(side.max(1));
                        let last = pieces.iter().filter_map(|piece| piece.lock().last(end)).max();
                        from[axis] = start..last.unwrap_or(start) + 1;
                        let reading = readings.of(view.array);
                        view.read_to(Threads::new(threads), reading, &from, &mut taken)?;
                        let steps = strides(&from);
                        each(&|piece| {
                            piece.put(&taken, (&from, &steps), (&hull, axis), end);
                            Ok(())
                        })?;
                    }
                    // The memory is for the next pieces.
                    pieces.iter().for_each(|piece| piece.lock().items = Vec::new());
                }
                new.put(ranges, &bytes)
            })
        })
    }
}

/// The minimum number of items of a piece. For each piece, blocks of the indices are decompressed.
const LEAST: u64 = 1024;
/// The memory in bytes for the position of an item.
const LOCATED: usize = size_of::<(u64, usize)>();

/// Consecutive items of a part of the result, in C order.
struct Piece<'a> {
    ranges: Vec<Range<u64>>,
    bytes: &'a mut [u8],
    /// The position of each item on the axis of the source, in ascending order, and the number of the item in the piece.
    items: Vec<(u64, usize)>,
    /// The number of items that are complete.
    done: usize,
}

impl Piece<'_> {
    /// Returns the position of the next item.
    fn next(&self) -> Option<u64> {
        self.items.get(self.done).map(|(at, _)| *at)
    }

    /// The number of items with positions below `end`.
    fn until(&self, end: u64) -> usize {
        self.done + self.items[self.done..].partition_point(|(at, _)| *at < end)
    }

    /// Returns the position of the last item below `end` that is not complete.
    fn last(&self, end: u64) -> Option<u64> {
        self.items[self.done..self.until(end)].last().map(|(at, _)| *at)
    }

    /// Copies the next items, whose positions are below `end`. `from` are the ranges and the strides of the box of the
    /// source that was read for these items of the box `hull` of the result.
    fn put(
        &mut self,
        taken: &[u8],
        (from, steps): (&[Range<u64>], &[u64]),
        (hull, axis): (&[Range<u64>], usize),
        end: u64,
    ) {
        let until = self.until(end);
        let items = &self.items[self.done..until];
        let extents = extent(&self.ranges);
        // The item of the box for the first index of the piece on the other axes.
        let starts = self.ranges.iter().zip(hull).zip(steps).enumerate();
        let start = starts.filter(|(number, _)| *number != axis);
        let start = start.map(|(_, ((own, hull), step))| (own.start - hull.start) * step);
        let start = start.sum::<u64>() as usize;
        let typesize = self.bytes.len() / extents.iter().product::<u64>() as usize;
        for (at, to) in items {
            let at = start + place(*to, &extents, steps, Some((axis, at - from[axis].start)));
            let (at, to) = (at * typesize, to * typesize);
            self.bytes[to..to + typesize].copy_from_slice(&taken[at..at + typesize]);
        }
        self.done = until;
    }
}

/// Returns the sides of the parts of a result, which consist of chunks. A part is extended on the axis first, so that each
/// part of the source is read for few parts, as long as it `fits`.
fn part_of(chunks: &[u64], shape: &[u64], axis: usize, fits: &dyn Fn(&[u64]) -> bool) -> Vec<u64> {
    let mut sides = chunks.to_vec();
    let others = (0..shape.len()).rev().filter(|other| *other != axis);
    for axis in [axis].into_iter().chain(others) {
        while sides[axis] < shape[axis] {
            let mut grown = sides.clone();
            grown[axis] *= 2;
            if !fits(&grown) {
                return sides;
            }
            sides = grown;
        }
    }
    sides
}

/// Divides a part of the result into pieces of up to `most` items.
fn pieces<'a>(
    ranges: &[Range<u64>],
    most: u64,
    typesize: usize,
    mut bytes: &'a mut [u8],
) -> Result<Vec<Piece<'a>>> {
    let extents = extent(ranges);
    let (mut sides, mut left) = (vec![1; extents.len()], most.max(1));
    for (side, size) in sides.iter_mut().zip(&extents).rev() {
        *side = left.min(*size);
        if *side < *size {
            break;
        }
        left = (left / *size).max(1);
    }
    let mut pieces = Vec::new();
    each_part(&extents, &sides, &mut |part| {
        let len = len_of(&extent(part), typesize) as usize;
        let (own, rest) = mem::take(&mut bytes).split_at_mut(len);
        bytes = rest;
        let moved = |(part, whole): (&Range<u64>, &Range<u64>)| {
            whole.start + part.start..whole.start + part.end
        };
        let ranges = part.iter().zip(ranges).map(moved).collect();
        pieces.push(Piece { ranges, bytes: own, items: Vec::new(), done: 0 });
        Ok(())
    })?;
    Ok(pieces)
}

/// Returns the smallest box that contains these boxes.
fn hull(boxes: impl Iterator<Item = Vec<Range<u64>>>) -> Vec<Range<u64>> {
    let join =
        |(one, two): (Range<u64>, Range<u64>)| one.start.min(two.start)..one.end.max(two.end);
    let hull = boxes.reduce(|one, two| one.into_iter().zip(two).map(join).collect());
    hull.unwrap_or_default()
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
    if let ([_], [stride]) = (extents, strides) {
        let at = other.map_or(item as u64, |(_, at)| at);
        return (at * stride) as usize;
    }
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
