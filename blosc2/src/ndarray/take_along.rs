//! Copies of the items at positions on an axis.

use std::collections::BTreeMap;
use std::ops::Range;
use std::{iter, mem};

use super::boxes::Readings;
use super::copy::numbers_of;
use super::index::position_of;
use super::places::len_of;
use super::ranges::{copy_part, each_part, extent, grown, own_ranges, strides_of, whole};
use super::view::{Grid, NDArrayView};
use super::{NDArray, NDArrayBuilder, parallel};
use crate::dtype::Kind;
use crate::support::memory::{reserve, resize};
use crate::{Doing, ErrorKind, Result, Threads};

const TAKE: &str = "take items of an array";
/// The maximum number of chunks on the axis for which all items are scanned.
const SCANS: u64 = 8;

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
        view.check_axis(axis).doing(TAKE)?;
        let along = |(number, (&own, &asked))| match number == axis || own == 1 || own == asked {
            true => Some(asked),
            false => (asked == 1).then_some(own),
        };
        let shape = own.iter().zip(&asked).enumerate().map(along).collect::<Option<Vec<u64>>>();
        let Some(shape) = shape.filter(|_| own.len() == asked.len()) else {
            let detail =
                format!("the shapes {own:?} and {asked:?} differ on an axis other than {axis}");
            return Err(view.error(ErrorKind::InvalidArgument, detail).doing(TAKE));
        };
        let integer = indices.dtype().filter(|dtype| {
            matches!(dtype.kind(), Some(Kind::Int | Kind::UInt))
                && dtype.size() == indices.part().len
        });
        let conversion = integer
            .and_then(|dtype| Some((dtype, numbers_of::<i64>(dtype)?, dtype.swap_plan().ok()?)));
        let Some((dtype, numbers, swapped)) = conversion else {
            let detail = format!("the indices are {}, expected integers", indices.dtype_text().0);
            return Err(indices.error(ErrorKind::TypeMismatch, detail).doing(TAKE));
        };
        let is_large = (dtype.kind(), dtype.size()) == (Some(Kind::UInt), 8);
        let size = own[axis];
        // The position of an index on the axis.
        let position = |at: i64| {
            let at = if is_large { i128::from(at as u64) } else { at.into() };
            position_of(at, (axis, size)).map_err(|error| view.array.schunk.at(error)).doing(TAKE)
        };
        let (memory, threads) = (self.memory() as u64, self.threads().max(1));
        let all_threads = Threads::new(threads);
        let ((text, format), typesize) = (view.dtype_text(), view.part().len);
        let readings = Readings::new([view.array, indices.array])?;
        let Grid { offset, chunk, block } = view.grid(axis);
        // The size in bytes of the items of the source for one index on the axis.
        let row = |ranges: &[Range<u64>]| {
            let mut from = own_ranges(&own, ranges);
            from[axis] = 0..1;
            len_of(&extent(&from), typesize).max(1)
        };
        let builder = self.dtype_format(format);
        builder.create_from(&shape, (&text, typesize), readings, |readings, new| {
            // Half of the memory is for the items of the result, a quarter is for items of the source.
            let located = size_of::<u64>() + size_of::<(u64, usize)>();
            let most = memory / 2 / (located + dtype.size() + typesize) as u64;
            // The axis first, so that each part of the source is read for few parts of the result.
            let next = |sides: &[u64]| {
                let mut axes = iter::once(axis).chain((0..shape.len()).rev());
                axes.find(|&axis| sides[axis] < shape[axis])
            };
            let fits = |sides: &[u64]| {
                let read = row(&whole(sides)).saturating_mul(block.min(size));
                len_of(sides, 1) <= most && read <= memory / 4
            };
            let sides = grown(new.geometry.chunk_shape(), next, fits);
            // A part that does not fit is a chunk. It is taken in parts that have entire blocks of the source on the other
            // axes. The axis itself is not divided.
            let parts = if fits(&sides) {
                sides.clone()
            } else {
                let blocks = (0..shape.len()).map(|at| match at == axis {
                    true => sides[at],
                    false => view.grid(at).block.max(indices.grid(at).block).min(sides[at]),
                });
                let blocks: Vec<u64> = blocks.collect();
                let next = |parts: &[u64]| (0..shape.len()).rev().find(|&at| parts[at] < sides[at]);
                grown(&blocks, next, fits)
            };
            let take = |ranges: &[Range<u64>]| -> Result<Vec<u8>> {
                let mut from = own_ranges(&asked, ranges);
                from[axis] = ranges[axis].clone();
                let mut found = Vec::new();
                indices.read_to(all_threads, readings.of(indices.array), &from, &mut found)?;
                swapped.apply(&mut found);
                let positions = numbers(&found).into_iter().map(position);
                let positions = positions.collect::<Result<Vec<u64>>>()?;
                drop(found);
                let mut bytes = Vec::new();
                resize(&mut bytes, len_of(&extent(ranges), typesize) as usize).doing(TAKE)?;
                let (sizes, last) = (extent(ranges), shape.len() - 1);
                let (len, position_steps) = (sizes[last] as usize, strides_of(&extent(&from)));
                // Copies the items of the result from the item `number` on whose positions are in a box of the source, one
                // row, or a part of it, at a time.
                let copy =
                    |items: &[u8], from: &[Range<u64>], mut number: usize, mut to: &mut [u8]| {
                        let (range, steps) = (&from[axis], strides_of(&extent(from)));
                        while !to.is_empty() {
                            let (mut outer, column) = (number / len, number % len);
                            let (mut position, mut place) = (0, 0);
                            for other in (0..last).rev() {
                                let index = outer % sizes[other] as usize;
                                outer /= sizes[other] as usize;
                                position += index * position_steps[other];
                                place += if other == axis { 0 } else { index * steps[other] };
                            }
                            let step = if last == axis { 0 } else { steps[last] };
                            let count = (len - column).min(to.len() / typesize);
                            let (row, rest) = mem::take(&mut to).split_at_mut(count * typesize);
                            for (to, column) in row.chunks_exact_mut(typesize).zip(column..) {
                                let at = positions[position + column * position_steps[last]];
                                if range.contains(&at) {
                                    let along = (at - range.start) as usize * steps[axis];
                                    let from = (place + column * step + along) * typesize;
                                    to.copy_from_slice(&items[from..from + typesize]);
                                }
                            }
                            (number, to) = (number + count, rest);
                        }
                    };
                // Entire blocks.
                let side = (memory / 4 / row(ranges) / block).max(1) * block;
                let part = bytes.len().div_ceil(threads * typesize);
                // For each chunk of the source on the axis, the range of the positions in it.
                let mut needed: BTreeMap<u64, Range<u64>> = BTreeMap::new();
                let mut need = |low: u64, high: u64| {
                    let range = needed.entry((low + offset) / chunk).or_insert(low..high + 1);
                    *range = range.start.min(low)..range.end.max(high + 1);
                };
                // With many chunks, the items of each part by their positions: a scan of all items for each chunk would
                // take longer.
                let mut sorted: Vec<Vec<(u64, usize)>> = Vec::new();
                if size / chunk > SCANS {
                    let count = bytes.len() / typesize;
                    sorted.resize_with(count.div_ceil(part), Vec::new);
                    parallel::each_item(
                        threads,
                        &mut sorted,
                        || Ok(()),
                        |(), at, order| {
                            let numbers = at * part..count.min((at + 1) * part);
                            reserve(order, numbers.len()).doing(TAKE)?;
                            order.extend(numbers.map(|number| {
                                (positions[place_of(number, &sizes, &position_steps, None)], number)
                            }));
                            order.sort_unstable();
                            Ok(())
                        },
                    )?;
                    for order in &sorted {
                        let is_same = |one: &(u64, usize), other: &(u64, usize)| {
                            (one.0 + offset) / chunk == (other.0 + offset) / chunk
                        };
                        for run in order.chunk_by(is_same) {
                            need(run[0].0, run[run.len() - 1].0);
                        }
                    }
                } else {
                    positions.iter().for_each(|&at| need(at, at));
                }
                let pick =
                    |items: &[u8], from: &[Range<u64>], order: &[(u64, usize)], to: &mut [u8]| {
                        let (range, steps) = (&from[axis], strides_of(&extent(from)));
                        let start = order.partition_point(|(at, _)| *at < range.start);
                        for &(at, number) in
                            order[start..].iter().take_while(|(at, _)| *at < range.end)
                        {
                            let along = (at - range.start) as usize * steps[axis];
                            let from = place_of(number, &sizes, &steps, Some(axis)) + along;
                            let to_at = number % part * typesize;
                            to[to_at..to_at + typesize]
                                .copy_from_slice(&items[from * typesize..][..typesize]);
                        }
                    };
                let (mut from, mut items) = (own_ranges(&own, ranges), Vec::new());
                for Range { mut start, end } in needed.into_values() {
                    while start < end {
                        let stop = start + side - (start + offset) % chunk % side;
                        from[axis] = start..end.min(stop);
                        view.read_to(all_threads, readings.of(view.array), &from, &mut items)?;
                        parallel::each_item(
                            threads,
                            bytes.chunks_mut(part * typesize),
                            || Ok(()),
                            |(), number, to| {
                                match sorted.get(number) {
                                    Some(order) => pick(&items, &from, order, to),
                                    None => copy(&items, &from, number * part, to),
                                }
                                Ok(())
                            },
                        )?;
                        start = from[axis].end;
                    }
                }
                Ok(bytes)
            };
            each_part(&whole(&shape), &sides, &mut |ranges| {
                if sides == parts {
                    return new.put(ranges, &take(ranges)?);
                }
                let mut bytes = Vec::new();
                resize(&mut bytes, len_of(&extent(ranges), typesize) as usize).doing(TAKE)?;
                each_part(ranges, &parts, &mut |part| {
                    copy_part(&take(part)?, typesize, (part, ranges), &mut bytes);
                    Ok(())
                })?;
                new.put(ranges, &bytes)
            })
        })
    }
}

/// Returns the place of an item of a box of these sizes in a box with these strides, without the axis `except`.
fn place_of(mut number: usize, sizes: &[u64], steps: &[usize], except: Option<usize>) -> usize {
    // Without divisions.
    if let [step] = steps {
        return if except == Some(0) { 0 } else { number * step };
    }
    let mut place = 0;
    for (axis, (&size, step)) in sizes.iter().zip(steps).enumerate().rev() {
        let index = number % size as usize;
        number /= size as usize;
        place += if Some(axis) == except { 0 } else { index * step };
    }
    place
}
