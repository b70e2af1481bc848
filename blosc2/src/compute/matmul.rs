//! Products of matrices and tensors, block by block.

use std::ops::Range;

use super::source::Items;
use crate::item::element::{bytes_of, zeroed};
use crate::ndarray::boxes::Readings;
use crate::ndarray::places::len_of;
use crate::ndarray::ranges::{
    each_part, grown, len_of_box, next_index, own_ranges, sides_of, whole,
};
use crate::ndarray::view::{Grid, ItemType, NDArrayView};
use crate::ndarray::{Arithmetic, NDArray, NDArrayBuilder, parallel};
use crate::{Doing, Error, ErrorKind, Result, Threads};

const MULTIPLY: &str = "multiply arrays";
/// The minimum number of summed items that are multiplied at once, if the arrays have as many. With fewer items, most of
/// the time is spent on loading and storing the result.
const LEAST: u64 = 256;

impl NDArrayBuilder {
    /// Creates the matrix product of two arrays, whose items have the same type. NumPy and Python: `matmul`, `a @ b`.
    ///
    /// The rules for the shapes are those of NumPy: the last two axes are the rows and columns of matrices, and the other
    /// axes are broadcast. A one-dimensional array is a row on the left side and a column on the right side; this axis is
    /// not part of the result.
    ///
    /// The result has the type of the items. Integers wrap around. Floating-point items are added in an order that
    /// depends on the chunk shape of the result, on the chunk and block shapes of both arrays, on
    /// [`max_memory`](Self::max_memory) and on the instruction set of the processor. The result does not depend on the
    /// number of threads.
    ///
    /// The product is computed in parts of [`max_memory`](Self::max_memory), each with the corresponding parts of both
    /// arrays. [`CParams::threads`](crate::CParams::threads) sets the number of threads.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let a = NDArray::from_slice(&[1.0f64, 2.0, 3.0, 4.0], (2, 2))?;
    /// let b = NDArray::from_slice(&[10.0f64, 1.0], 2)?;
    /// let product = NDArray::builder().matmul::<f64>(&a, &b)?;
    /// assert_eq!(product.read::<Vec<f64>>(..)?, [12.0, 34.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: an array has no axes, or the shapes do not match;
    /// - [`ErrorKind::TypeMismatch`]: the dtype of an array is not the dtype of `T`;
    /// - the [errors of reads](NDArray#errors-of-reads) of both arrays, and of [creation](Self#errors-of-creation).
    #[doc(alias("__matmul__", "dot"))]
    pub fn matmul<'a, 'b, T: Arithmetic>(
        self,
        a: impl Into<NDArrayView<'a>>,
        b: impl Into<NDArrayView<'b>>,
    ) -> Result<NDArray> {
        let (a, mut b) = (a.into(), b.into());
        let shapes = (a.shape(), b.shape());
        let invalid = || {
            let (a, b) = &shapes;
            let detail = format!("arrays of the shapes {a:?} and {b:?} have no matrix product");
            Err(Error::new(ErrorKind::InvalidArgument, MULTIPLY, detail))
        };
        let (ndim, free) = ((a.ndim(), b.ndim()), (a.ndim().min(2), b.ndim().min(2)));
        if ndim.0 == 0 || ndim.1 == 0 || shapes.0[ndim.0 - 1] != shapes.1[ndim.1 - free.1] {
            return invalid();
        }
        let (outer, other) = (&shapes.0[..ndim.0 - free.0], &shapes.1[..ndim.1 - free.1]);
        let count = outer.len().max(other.len());
        let along = |axis: usize| {
            let size = |outer: &[u64]| {
                (axis + outer.len()).checked_sub(count).map_or(1, |axis| outer[axis])
            };
            match (size(outer), size(other)) {
                (1, size) | (size, 1) => Some(size),
                (one, two) => (one == two).then_some(one),
            }
        };
        let Some(batch) = (0..count).map(along).collect::<Option<Vec<u64>>>() else {
            return invalid();
        };
        let added = (count - outer.len(), count - other.len());
        let a = (0..added.0).try_fold(a, |view, _| view.expand_dims(0))?;
        b = (0..added.1).try_fold(b, |view, _| view.expand_dims(0))?;
        multiply::<T>(self, &a, &b, batch, 1)
    }

    /// Creates the product of two arrays, whose items have the same type: the sum of the products over the axes `axes.0`
    /// of the first array and `axes.1` of the second one. The result has the other axes of the first array, then those of
    /// the second one. NumPy and Python: `tensordot(a, b, axes)`; `axes=n` are the last `n` axes of the first array and the
    /// first `n` axes of the second one.
    ///
    /// The computation is that of [`matmul`](Self::matmul).
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let a = NDArray::from_slice(&[1i64, 2, 3, 4, 5, 6], (1, 2, 3))?;
    /// let b = NDArray::from_slice(&[1i64, 0, 0, 10, 0, 100], (3, 2))?;
    /// let product = NDArray::builder().tensordot::<i64>(&a, &b, (&[1, 2], &[1, 0]))?;
    /// assert_eq!(product.read::<Vec<i64>>(..)?, [1 + 50 + 600]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`matmul`](Self::matmul), and with:
    /// - [`ErrorKind::InvalidArgument`]: an axis does not exist or occurs twice, or the sizes of two axes differ.
    pub fn tensordot<'a, 'b, T: Arithmetic>(
        self,
        a: impl Into<NDArrayView<'a>>,
        b: impl Into<NDArrayView<'b>>,
        axes: (&[usize], &[usize]),
    ) -> Result<NDArray> {
        let (a, b) = (a.into(), b.into());
        let shapes = (a.shape(), b.shape());
        let sizes = |shape: &[u64], axes: &[usize]| -> Option<Vec<u64>> {
            axes.iter().map(|axis| shape.get(*axis).copied()).collect()
        };
        let (one, two) = (sizes(&shapes.0, axes.0), sizes(&shapes.1, axes.1));
        if one.is_none() || one != two {
            let detail = format!(
                "the axes {:?} of the shape {:?} do not match the axes {:?} of the shape {:?}",
                axes.0, shapes.0, axes.1, shapes.1
            );
            return Err(Error::new(ErrorKind::InvalidArgument, MULTIPLY, detail));
        }
        let others = |ndim: usize, axes: &[usize]| -> Vec<usize> {
            (0..ndim).filter(|axis| !axes.contains(axis)).collect()
        };
        // `permute` checks that no axis occurs twice.
        let order = [others(a.ndim(), axes.0), axes.0.to_vec()].concat();
        let a = a.permute(&order)?;
        let order = [axes.1.to_vec(), others(b.ndim(), axes.1)].concat();
        let b = b.permute(&order)?;
        multiply::<T>(self, &a, &b, Vec::new(), axes.0.len())
    }
}

/// Creates the product of two arrays. The axes of `a` are the axes `batch`, which are broadcast, the rows, and `summed`
/// axes; those of `b` are the axes `batch`, the `summed` axes, and the columns.
fn multiply<T: Arithmetic>(
    builder: NDArrayBuilder,
    a: &NDArrayView<'_>,
    b: &NDArrayView<'_>,
    batch: Vec<u64>,
    summed: usize,
) -> Result<NDArray> {
    let [own_a, own_b] = [a, b].map(|view| Items::<T>::of(view.clone()).doing(MULTIPLY));
    let (own_a, own_b) = (own_a?, own_b?);
    let (outer, shapes) = (batch.len(), (a.shape(), b.shape()));
    let rows = shapes.0.len() - outer - summed;
    let (rows, sums) = (&shapes.0[outer..outer + rows], &shapes.0[outer + rows..]);
    let shape = [&batch, rows, &shapes.1[outer + summed..]].concat();
    let (memory, threads) = (builder.memory() / size_of::<T>(), builder.threads().max(1));
    let all_threads = Threads::new(threads);
    let groups = [0..outer, outer..outer + rows.len(), outer + rows.len()..shape.len()];
    // Three quarters of the memory are for a part of the result and for the corresponding parts of both arrays.
    let room = (memory as u64 / 4 * 3).max(1);
    let (dtype, typesize) = builder.dtype_of_type(ItemType::of::<T>())?;
    let readings = Readings::new([a.array(), b.array()])?;
    builder.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
        let grids = [(a, outer + rows.len()), (b, outer)].map(|(view, first)| -> Vec<Grid> {
            (0..summed).map(|at| view.grid(first + at)).collect()
        });
        // The items of the summed axes in the blocks of each array.
        let blocks = grids
            .each_ref()
            .map(|grids| len_of(&units(sums, &[grids], |grid| grid.block), 1).max(1));
        // Of the array with the longer blocks, more items are read together: those for several parts of the other array.
        let long = usize::from(blocks[1] > blocks[0]);
        let short = 1 - long;
        // The rows and columns get similar numbers of items, so that few items are read.
        let next = |sides: &[u64]| {
            // The last axis of a group that is not complete.
            let axis =
                |group: &Range<usize>| group.clone().rev().find(|at| sides[*at] < shape[*at]);
            let size = |group: &Range<usize>| len_of(&sides[group.clone()], 1);
            let [batch, rows, columns] = &groups;
            let (one, other) =
                if size(rows) <= size(columns) { (rows, columns) } else { (columns, rows) };
            axis(one).or(axis(other)).or(axis(batch))
        };
        // The summed items of a part of each array, if the memory allows it. If the memory is small, each part has
        // about as many summed items as rows and columns.
        let least = LEAST.min((room / 3).isqrt());
        let least = blocks.map(|block| block.max(least).min(len_of(sums, 1)));
        let sides = grown(new.geometry.chunk_shape(), next, |sides| {
            let lines = lines(sides, &groups);
            let operands = [0, 1].map(|at| lines[at].saturating_mul(least[at]));
            operands.iter().fold(len_of(sides, 1), |all, len| all.saturating_add(*len)) <= room
        });
        let (len, lines) = (len_of(&sides, 1), lines(&sides, &groups));
        let left = room.saturating_sub(len);
        let divided = divided_steps(sums, &grids, long, lines, least, left);
        let (steps, short_steps) = divided.unwrap_or_else(|| {
            // Both arrays have the same steps. They take no more memory than the result does, unless more is free.
            let both = lines[0].saturating_add(lines[1]);
            let most = (left / both).max(least[long].min(len / both));
            let steps = steps(sums, &grids, long, most);
            (steps.clone(), steps)
        });
        each_part(&whole(&shape), &sides, &mut |ranges| {
            let [batch, rows, columns] = groups.each_ref().map(|group| &ranges[group.clone()]);
            let count = |ranges: &[Range<u64>]| len_of_box(ranges) as usize;
            let (m, n) = (count(rows), count(columns));
            let mut items = zeroed::<T>(count(ranges)).doing(MULTIPLY)?;
            let own = [a, b].map(|view| own_ranges(&view.shape()[..outer], batch));
            let read = |at: usize, summed: &[Range<u64>]| {
                let (items, ranges) = match at {
                    0 => (&own_a, [&own[0], rows, summed].concat()),
                    _ => (&own_b, [&own[1], summed, columns].concat()),
                };
                let reading = readings.of(items.view().array());
                items.read_box(all_threads, reading, &ranges)
            };
            each_part(&whole(sums), &steps, &mut |summed| {
                let (all, read_long) = (count(summed), read(long, summed)?);
                let mut done = 0;
                each_part(summed, &short_steps, &mut |summed| {
                    let (k, read_short) = (count(summed), read(short, summed)?);
                    // For each array: its items, the first one of a matrix, and the summed items of a matrix.
                    let mut operands = [(&read_long, done, all), (&read_short, 0, k)];
                    if long == 1 {
                        operands.reverse();
                    }
                    let [(a, a_from, a_k), (b, b_from, b_k)] = operands;
                    // The matrices of the batch, each in parts of some rows.
                    let part = m.div_ceil(threads);
                    let mut parts = Vec::new();
                    let mut index: Vec<u64> = batch.iter().map(|range| range.start).collect();
                    for items in items.chunks_exact_mut(m * n) {
                        let [at, other] = own.each_ref().map(|own| {
                            own.iter().zip(&index).fold(0, |all, (range, at)| {
                                let size = range.end - range.start;
                                all * size
                                    + at.checked_sub(range.start)
                                        .filter(|at| *at < size)
                                        .unwrap_or(0)
                            })
                        });
                        for (number, items) in items.chunks_mut(part * n).enumerate() {
                            let row = at as usize * m + number * part;
                            let other = (other as usize * b_k + b_from) * n;
                            parts.push((items, row * a_k + a_from, other));
                        }
                        next_index(&mut index, batch);
                    }
                    done += k;
                    parallel::each_item(
                        threads,
                        parts,
                        || Ok(()),
                        |(), _, (items, at, other)| {
                            let rows = items.len() / n;
                            T::multiply(items, (&a[at..], a_k), &b[other..][..k * n], [rows, k, n]);
                            Ok(())
                        },
                    )
                })
            })?;
            new.put(ranges, &bytes_of(&items))
        })
    })
}

/// Returns the steps on the summed axes for the array with the `long` blocks, and those for the other array, which divide
/// them on the first summed axis. `lines` are the items of each array for a summed item, and `left` is the memory for the
/// parts of both arrays in items. Returns `None` if this memory does not suffice for entire blocks and for the `least`
/// summed items of each array.
fn divided_steps(
    sums: &[u64],
    grids: &[Vec<Grid>; 2],
    long: usize,
    lines: [u64; 2],
    least: [u64; 2],
    left: u64,
) -> Option<(Vec<u64>, Vec<u64>)> {
    let short = 1 - long;
    let most = left.checked_sub(lines[short].saturating_mul(least[short]))? / lines[long];
    if most < least[long] {
        return None;
    }
    let steps = steps(sums, grids, long, most);
    let mut parts = steps.clone();
    let first = parts.first_mut()?;
    let inner = len_of(&steps[1..], 1).max(1);
    let most = left.checked_sub(lines[long] * len_of(&steps, 1))? / lines[short] / inner;
    if most < *first {
        let Grid { chunk, block, .. } = grids[short][0];
        let unit = if chunk <= most { chunk } else { block };
        if most < unit || most * inner < LEAST.min(least[short]) {
            return None;
        }
        *first = most / unit * unit;
    }
    Some((steps, parts))
}

/// Returns the larger side of the grids on each axis, at most the size.
fn units(sizes: &[u64], grids: &[&Vec<Grid>], side: fn(&Grid) -> u64) -> Vec<u64> {
    let along = |(axis, size): (usize, &u64)| {
        grids.iter().map(|grids| side(&grids[axis])).fold(1, u64::max).min(*size)
    };
    sizes.iter().enumerate().map(along).collect()
}

/// Returns the steps on the summed axes, of up to `left` items together: entire chunks of both arrays if they fit,
/// otherwise entire blocks of both arrays, or of the array with the `long` blocks, so that few blocks are decompressed for
/// several steps.
fn steps(sums: &[u64], grids: &[Vec<Grid>; 2], long: usize, left: u64) -> Vec<u64> {
    let both = grids.each_ref();
    let candidates = [
        units(sums, &both, |grid| grid.chunk),
        units(sums, &both, |grid| grid.block),
        units(sums, &[both[long]], |grid| grid.block),
    ];
    let Some(mut steps) = candidates.into_iter().find(|units| len_of(units, 1) <= left) else {
        return sides_of(sums, left);
    };
    for axis in (0..sums.len()).rev() {
        let unit = steps[axis].max(1);
        let others = (len_of(&steps, 1) / unit).max(1);
        steps[axis] = sums[axis].min(left / others / unit * unit);
    }
    steps
}

/// Returns the number of items of each array for each item of the summed axes. `sides` are those of a part of the result.
fn lines(sides: &[u64], groups: &[Range<usize>; 3]) -> [u64; 2] {
    let [count, m, n] = groups.each_ref().map(|group| len_of(&sides[group.clone()], 1));
    [m, n].map(|len| count.saturating_mul(len).max(1))
}
