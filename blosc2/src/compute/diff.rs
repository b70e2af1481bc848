//! Differences of neighboring items.

use std::ops::Range;

use super::number::Numeric;
use super::source::Items;
use crate::item::element::bytes_of;
use crate::ndarray::boxes::{BoxReader, Readings};
use crate::ndarray::ranges::extent;
use crate::ndarray::view::{ItemType, NDArrayView};
use crate::ndarray::{NDArray, NDArrayBuilder};
use crate::{Doing, Result};

const DIFF: &str = "compute differences";

impl NDArrayBuilder {
    /// Creates an array of the differences of neighboring items on an axis: each item of the source minus the item before
    /// it. With `n` greater than 1, the differences of the differences, and so on; with 0, a copy. The result has `n`
    /// fewer items on the axis. NumPy: `diff(source, n, axis)`.
    ///
    /// The items of the result have the type of the items. As in NumPy, integers wrap around, and the difference of two
    /// `bool` is whether they differ. Each thread holds a chunk of the result and the needed items of the source in
    /// memory: these are the indices of the chunk and the next `n` indices on the axis. If neighboring chunks need the same
    /// blocks, the needed items of several chunks, of up to [`max_memory`](Self::max_memory), are held too.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1i32, 4, 9, 2, 2, 7], (2, 3))?;
    /// let steps = NDArray::builder().diff::<i32>(&array, 1, 1)?;
    /// assert_eq!(steps.read::<Vec<i32>>(..)?, [3, 5, 0, 5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): the source does not have the axis;
    /// - [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch): the dtype of the source is not the dtype of `T`;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    pub fn diff<'a, T: Numeric>(
        self,
        source: impl Into<NDArrayView<'a>>,
        n: usize,
        axis: usize,
    ) -> Result<NDArray> {
        let view = source.into();
        let items = Items::<T>::of(view.clone()).doing(DIFF)?;
        let mut shape = view.shape();
        view.check_axis(axis).doing(DIFF)?;
        shape[axis] = shape[axis].saturating_sub(n as u64);
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T>())?;
        let readings = Readings::new([view.array()])?;
        self.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
            // The result has items, so that the axis is longer than `n`.
            let needed = |ranges: &[Range<u64>]| {
                let mut from = ranges.to_vec();
                from[axis].end += n as u64;
                from
            };
            let reader = BoxReader::new(&view, readings.of(view.array()), needed);
            let fill = |readers: &[BoxReader<'_>], ranges: &[Range<u64>], bytes: &mut [u8]| {
                let from = needed(ranges);
                let mut items = items.read(&from, |bytes| readers[0].read(&from, None, bytes))?;
                let sizes = extent(&from);
                let inner = sizes[axis + 1..].iter().product::<u64>() as usize;
                let size = sizes[axis] as usize;
                let results = bytes.chunks_exact_mut((size - n) * inner * size_of::<T>());
                for (rows, to) in items.chunks_exact_mut(size * inner).zip(results) {
                    for left in (size - n..size).rev() {
                        for at in 0..left * inner {
                            rows[at] = rows[at + inner].subtract(rows[at]);
                        }
                    }
                    to.copy_from_slice(&bytes_of(&rows[..(size - n) * inner]));
                }
                Ok(())
            };
            // Whole chunks: the differences of a block need those of `n` more indices.
            new.by_slabs(vec![reader], |new, readers| {
                new.by_chunks(&|team, scratch, number| {
                    team.by_boxes(scratch, number, false, &|ranges, bytes| {
                        fill(readers, ranges, bytes)
                    })
                })
            })
        })
    }
}
