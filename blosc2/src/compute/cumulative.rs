//! Cumulative sums and products.

use super::number::{Numeric, Reducible};
use super::source::Items;
use crate::item::element::bytes_of;
use crate::ndarray::boxes::Readings;
use crate::ndarray::ranges::{each_part, len_of_box, whole};
use crate::ndarray::view::{ItemType, NDArrayView};
use crate::ndarray::{NDArray, NDArrayBuilder};
use crate::support::memory::reserve;
use crate::{Doing, Result, Threads};

const COMPUTE: &str = "compute a cumulative result";

impl NDArrayBuilder {
    /// Creates an array of the cumulative sums of the items on an axis: each item is the sum of the items of the source
    /// up to the same position on `axis`. NumPy: `cumulative_sum`, `cumsum`. Python: `cumulative_sum`.
    ///
    /// The items of the result have the type of [sums](Numeric::Sum). As in NumPy, the items are added in order, in this
    /// type; integers wrap around. One chunk of the result is in memory at a time.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1i32, 2, 3, 4, 5, 6], (2, 3))?;
    /// let sums = NDArray::builder().cumulative_sum::<i32>(&array, 1)?;
    /// assert_eq!(sums.read::<Vec<i64>>(..)?, [1, 3, 6, 4, 9, 15]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): the source does not have the axis;
    /// - [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch): the dtype of the source is not the dtype of `T`;
    /// - the [errors of reads](NDArray#errors-of-reads) of the source, and of [creation](Self#errors-of-creation).
    #[doc(alias = "cumsum")]
    pub fn cumulative_sum<'a, T: Numeric>(
        self,
        source: impl Into<NDArrayView<'a>>,
        axis: usize,
    ) -> Result<NDArray> {
        self.cumulative(&source.into(), axis, <T as Reducible>::plus)
    }

    /// Creates an array of the cumulative products of the items on an axis, like
    /// [`cumulative_sum`](Self::cumulative_sum). NumPy: `cumulative_prod`, `cumprod`. Python: `cumulative_prod`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1.5f32, 2.0, -4.0], 3)?;
    /// let products = NDArray::builder().cumulative_prod::<f32>(&array, 0)?;
    /// assert_eq!(products.read::<Vec<f32>>(..)?, [1.5, 3.0, -12.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`cumulative_sum`](Self::cumulative_sum).
    #[doc(alias = "cumprod")]
    pub fn cumulative_prod<'a, T: Numeric>(
        self,
        source: impl Into<NDArrayView<'a>>,
        axis: usize,
    ) -> Result<NDArray> {
        self.cumulative(&source.into(), axis, <T as Reducible>::times)
    }

    fn cumulative<T: Numeric>(
        self,
        source: &NDArrayView<'_>,
        axis: usize,
        combine: fn(T::Sum, T) -> T::Sum,
    ) -> Result<NDArray> {
        let shape = source.shape();
        source.check_axis(axis).doing(COMPUTE)?;
        let items = Items::<T>::of(source.clone()).doing(COMPUTE)?;
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T::Sum>())?;
        let (array, threads) = (source.array(), Threads::new(self.threads().max(1)));
        let readings = Readings::new([array])?;
        self.create_from(&shape, (&dtype, typesize), readings, |readings, new| {
            let chunks = new.geometry.chunk_shape();
            // For each column of chunks, the chunks on the axis one after the other.
            let mut columns = whole(&shape);
            columns[axis].end = columns[axis].end.min(1);
            each_part(&columns, chunks, &mut |column| {
                let (mut ranges, mut carried) = (column.to_vec(), Vec::<T::Sum>::new());
                let inner = len_of_box(&ranges[axis + 1..]) as usize;
                let mut start = 0;
                while start < shape[axis] {
                    let end = start.saturating_add(chunks[axis]).min(shape[axis]);
                    ranges[axis] = start..end;
                    let items = items.read_box(threads, readings.of(array), &ranges)?;
                    let run = (end - start) as usize * inner;
                    let mut results: Vec<T::Sum> = Vec::new();
                    reserve(&mut results, items.len()).doing(COMPUTE)?;
                    for (outer, rows) in items.chunks_exact(run).enumerate() {
                        for (at, item) in rows.iter().enumerate() {
                            // The result of the item before, on the axis.
                            let before = match at.checked_sub(inner) {
                                Some(before) => Some(results[outer * run + before]),
                                None => carried.get(outer * inner + at).copied(),
                            };
                            results.push(match before {
                                Some(before) => combine(before, *item),
                                None => item.widen(),
                            });
                        }
                    }
                    carried.clear();
                    let last = results.chunks_exact(run).flat_map(|rows| &rows[run - inner..]);
                    carried.extend(last);
                    new.put(&ranges, &bytes_of(&results))?;
                    start = end;
                }
                Ok(())
            })
        })
    }
}
