//! Creation of arrays from other arrays, from ranges of numbers and from functions.

use std::ops::Range;

use super::boxes::{BoxReader, Readings};
use super::builder::MAKE;
use super::index::{IndexedShape, sizes};
use super::ranges::{Ranges, next_index, part_of, whole};
use super::transfer::{Given, ItemSource};
use super::view::{ItemType, NDArrayView};
use super::{NDArray, NDArrayBuilder};
use crate::dtype::Kind;
use crate::item::element::{Element, bytes_of};
use crate::{Doing, Dtype, Error, ErrorKind, Result};

impl NDArrayBuilder {
    /// Creates an array by calling a function with the index of each item. NumPy: `fromfunction`.
    ///
    /// If the shape is an array of constant length, the index is an array too, as in the example. If the shape is a
    /// slice or a vector, the index is a slice.
    ///
    /// The function is called once for each item, block by block. [`CParams::threads`](crate::CParams::threads) sets
    /// the number of threads that call the function. If the function panics, the panic propagates to the caller.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let volume = NDArray::builder().from_fn(&[4, 5, 6], |[z, y, x]| (100 * z + 10 * y + x) as u16)?;
    /// assert_eq!(volume.item::<u16>(&[3, 4, 5])?, 345);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "fromfunction")]
    pub fn from_fn<T: Element, S: IndexedShape>(
        self,
        shape: S,
        item: impl Fn(S::Index<'_>) -> T + Sync,
    ) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape").doing(MAKE)?[..];
        let fill = |ranges: &[Range<u64>], bytes: &mut [u8]| {
            let mut index: Vec<u64> = ranges.iter().map(|range| range.start).collect();
            let mut items = Vec::with_capacity(bytes.len() / size_of::<T>());
            let (last, outer) = (ranges.last().cloned(), index.len().saturating_sub(1));
            loop {
                for at in last.clone().unwrap_or(0..1) {
                    if let Some(last) = index.last_mut() {
                        *last = at;
                    }
                    items.push(item(S::index(&index)));
                }
                if !next_index(&mut index[..outer], &ranges[..outer]) {
                    break;
                }
            }
            bytes.copy_from_slice(&bytes_of(&items));
            Ok(())
        };
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T>())?;
        self.create_from(shape, (&dtype, typesize), Readings::default(), |_, new| {
            new.by_chunks(&|team, scratch, number| team.by_blocks(scratch, number, &fill))
        })
    }

    /// Creates a one-dimensional array of the numbers from `start` (inclusive) to `end` (exclusive), spaced by `step`.
    /// NumPy and Python: `arange`.
    ///
    /// The array has `ceil((end - start) / step)` items, or no items if this number is negative. Item `i` is `start +
    /// i * step`. For floating-point numbers, the rounded step `(start + step) - start` is used, as in NumPy.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().arange(10i32, 0, -3)?;
    /// assert_eq!(array.read::<Vec<i32>>(..)?, [10, 7, 4, 1]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `step` is 0; or `start`, `end`, `step` or the number of items is not finite.
    pub fn arange<T: Arithmetic>(self, start: T, end: T, step: T) -> Result<NDArray> {
        let len = T::count(start, end, step).ok_or_else(|| {
            let detail =
                "expected finite bounds, a finite number of items, and a step other than 0";
            Error::new(ErrorKind::InvalidArgument, MAKE, detail)
        })?;
        self.from_fn(&[len], |[index]| T::nth(start, step, index))
    }

    /// Creates a one-dimensional array of `len` evenly spaced numbers from `start` to `end`, both inclusive. NumPy and
    /// Python: `linspace`.
    ///
    /// Integers are rounded down. An array of one item contains `start`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder().linspace(0.0f32, 1.0, 5)?;
    /// assert_eq!(array.read::<Vec<f32>>(..)?, [0.0, 0.25, 0.5, 0.75, 1.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `start` or `end` is not finite.
    pub fn linspace<T: Arithmetic>(self, start: T, end: T, len: u64) -> Result<NDArray> {
        if !start.is_number() || !end.is_number() {
            let detail = "expected finite bounds";
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        self.from_fn(&[len], |[index]| T::between(start, end, index, len - 1))
    }

    /// Creates a copy of an array or a view. C: `b2nd_copy`. Python: `copy`; for a [transposed](NDArrayView::permute)
    /// view `permute_dims`.
    ///
    /// A copy of an entire array has these properties of the source:
    /// - the metalayers;
    /// - the compression parameters, if the builder sets none;
    /// - the chunk and block shapes, if the builder sets none of them. If the builder sets only one of the shapes, the
    ///   other shape is automatic.
    ///
    /// A copy of any other view does not have these properties of the source; the settings of the builder apply.
    ///
    /// A compressed chunk is copied unchanged if all of these conditions are true:
    /// - the builder does not set [`cparams`](Self::cparams);
    /// - the source has no prefilter and no postfilter;
    /// - the copy has the chunk and block shapes of the source;
    /// - a chunk of the copy contains exactly the items of this chunk, at the same positions in the chunk;
    /// - the chunk uses no user-defined codecs and filters, because they may depend on the index of the chunk.
    ///
    /// All other chunks are recompressed. Recompression with a lossy codec or filter can reduce the precision again.
    ///
    /// The source can also be an array or a view of the crate `ndarray` with any memory layout (feature `ndarray`). The
    /// copy of a slice has one dimension.
    ///
    /// ```
    /// # #[cfg(feature = "ndarray")] {
    /// use blosc2::NDArray;
    ///
    /// let matrix = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    /// let transposed = NDArray::builder().copy(matrix.t())?;
    /// assert_eq!(transposed.read::<Vec<f32>>(..)?, [1.0, 3.0, 2.0, 4.0]);
    /// # }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias("b2nd_copy", "from_ndarray"))]
    pub fn copy<'a>(mut self, source: impl ItemSource<'a>) -> Result<NDArray> {
        let view = match source.into_items() {
            Given::View(view) => view,
            items => {
                let (_, typesize) = self.dtype_of(&items)?;
                let shape = items.shape_of_all(typesize);
                return self.create_of(items, &shape);
            }
        };
        let (as_is, shape) = (!self.has_cparams(), view.shape());
        let mut builder = self.cut_like(&view)?;
        if view.is_array() {
            builder = builder.compressed_as(view.array);
        }
        builder.join(&shape, &[(view, whole(&shape))], as_is)
    }

    /// Creates a copy of an array or a view, with each number converted to `T` by the rules of the operator `as`; see
    /// [`copy`](Self::copy). Python: `astype`.
    ///
    /// If `T` is `bool`, 0 becomes `false`, and any other number becomes `true`. The source can be in any byte order.
    /// The compression parameters of the source are not used.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1.5f64, -2.0, 300.0], &[3])?;
    /// assert_eq!(NDArray::builder().cast::<u8>(&array)?.read::<Vec<u8>>(..)?, [1, 0, 255]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the items of the source are not integers of up to 64 bits, `f32`, `f64` or
    ///   `bool`.
    #[doc(alias = "astype")]
    pub fn cast<'a, T: Number>(self, source: impl Into<NDArrayView<'a>>) -> Result<NDArray> {
        let view = source.into();
        let (array, shape) = (view.array, view.shape());
        let wrong = || {
            let dtype = match view.dtype() {
                Some(dtype) => dtype.to_string(),
                None => array.dtype_str().unwrap_or("of unknown dtype").to_owned(),
            };
            let detail = format!("the items are {dtype}, expected integers, f32, f64 or bool");
            view.error(ErrorKind::TypeMismatch, detail).doing(MAKE)
        };
        let dtype = view.dtype().filter(|dtype| dtype.size() == view.part().len);
        let dtype = dtype.ok_or_else(wrong)?;
        let numbers = numbers_of::<T>(dtype).ok_or_else(wrong)?;
        let swapped = dtype.swap_plan().map_err(|_| wrong())?;
        let (builder, readings) = (self.cut_like(&view)?, Readings::new([array])?);
        let (name, size) = (T::dtype().to_string(), size_of::<T>());
        builder.create_from(&shape, (&name, size), readings, |readings, new| {
            new.copy_vlmeta(&view)?;
            let reader = BoxReader::new(&view, readings.of(array), <[_]>::to_vec);
            new.by_boxes(vec![reader], &|readers, ranges, bytes| {
                let mut from = Vec::new();
                readers[0].read_to(ranges, &mut from)?;
                swapped.apply(&mut from);
                bytes.copy_from_slice(&bytes_of(&numbers(&from)));
                Ok(())
            })
        })
    }

    /// Creates an array by joining several arrays or views on an existing axis. C: `b2nd_concatenate`. Python:
    /// `concat`.
    ///
    /// All sources must have the same dtype, and the same size on each axis except the axis `axis`.
    ///
    /// If the first source is an entire array, the result has these properties of that array:
    /// - the metalayers;
    /// - the compression parameters, if the builder sets none;
    /// - the chunk and block shapes, if the builder sets none of them; see [`copy`](Self::copy). If the first array has
    ///   small chunks, set [`chunk_shape`](Self::chunk_shape), so that the result has larger chunks.
    ///
    /// Compressed chunks are copied unchanged if the conditions of [`copy`](Self::copy) are true. For the second and
    /// later sources, one more condition applies: the sizes of the preceding sources on the axis must add up to a
    /// multiple of the chunk size.
    ///
    /// To append to an existing array, use [`NDArray::append`].
    ///
    /// ```
    /// use blosc2::{CParams, Codec, Filter, NDArray};
    ///
    /// let lossy = CParams::new().codec(Codec::Lz4).filters(&[Filter::TruncPrec(10), Filter::Shuffle]);
    /// let day = NDArray::builder().chunk_shape(&[24]).cparams(lossy).linspace(10.0f32, 20.0, 24)?;
    /// let two = NDArray::builder().concatenate([&day, &day], 0)?;
    /// assert_eq!(two.shape(), [48]);
    /// let chunk = |array: &NDArray, index| array.schunk().chunk(index).map(|chunk| chunk.into_bytes());
    /// assert_eq!(chunk(&two, 1)?, chunk(&day, 0)?);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// To join arrays of the same shape on a new axis, as Python's `stack`, add the axis to a view of each:
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let [one, two] = [[1u8, 2], [3, 4]].map(|items| NDArray::from_slice(&items, 2));
    /// let (one, two) = (one?, two?);
    /// let rows = [one.view().expand_dims(0)?, two.view().expand_dims(0)?];
    /// assert_eq!(NDArray::builder().concatenate(rows, 0)?.shape(), [2, 2]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: there are no sources, the axis does not exist, or the shapes do not match;
    /// - [`ErrorKind::TypeMismatch`]: the dtypes differ.
    #[doc(alias("concat", "b2nd_concatenate", "stack"))]
    pub fn concatenate<'a>(
        mut self,
        sources: impl IntoIterator<Item = impl Into<NDArrayView<'a>>>,
        axis: usize,
    ) -> Result<NDArray> {
        let mut placed: Vec<(NDArrayView<'a>, Ranges)> = Vec::new();
        let mut shape = Vec::new();
        for view in sources.into_iter().map(Into::into) {
            let own: NDArrayView<'a> = view;
            let mut ranges = whole(&own.shape());
            match placed.first() {
                Some((first, _)) => {
                    own.check_joins((first, &first.shape()), Some(axis)).doing(MAKE)?;
                }
                None => {
                    own.check_axis(axis).doing(MAKE)?;
                    (shape, shape[axis]) = (own.shape(), 0);
                }
            }
            let end = shape[axis].saturating_add(ranges[axis].end);
            ranges[axis] = shape[axis]..end;
            shape[axis] = end;
            placed.push((own, ranges));
        }
        let Some((first, _)) = placed.first() else {
            let detail = "there is no array to join";
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        };
        let as_is = !self.has_cparams();
        if first.is_array() {
            self = self.meta_from(first.array)?.compressed_as(first.array);
            // The chunks of an array without items may have size 0 on the axis.
            if first.array.chunk_shape()[axis] > 0 {
                self = self.cut_as(first.array);
            }
        }
        self.join(&shape, &placed, as_is)
    }

    /// Creates an array of views, which are at these boxes of the array. With `as_is`, compressed chunks are copied
    /// unchanged if possible.
    fn join<'a>(
        self,
        shape: &[u64],
        placed: &'a [(NDArrayView<'a>, Ranges)],
        as_is: bool,
    ) -> Result<NDArray> {
        let Some((first, _)) = placed.first() else { unreachable!("there is a view") };
        let ((dtype, format), typesize) = (first.dtype_text(), first.part().len);
        let readings = Readings::new(placed.iter().map(|(view, _)| view.array))?;
        self.dtype_format(format).create_from(
            shape,
            (&dtype, typesize),
            readings,
            |readings, new| {
                new.copy_vlmeta(first)?;
                let reader = |(view, at): &'a (NDArrayView<'a>, Ranges)| {
                    BoxReader::new(view, readings.of(view.array), |ranges| part_of(at, ranges).0)
                };
                new.by_slabs(placed.iter().map(reader).collect(), |new, readers| {
                    let placed = readers.iter().zip(placed.iter().map(|(_, at)| &at[..]));
                    let placed: Vec<_> = placed.collect();
                    new.by_chunks(&|team, scratch, number| {
                        // The views follow each other on one axis.
                        let chunk = team.geometry.chunk_box(number as u64);
                        let ends_before =
                            |(one, other): (&Range<u64>, &Range<u64>)| one.end <= other.start;
                        let start = placed
                            .partition_point(|(_, at)| at.iter().zip(&chunk).any(ends_before));
                        let count = placed[start..]
                            .partition_point(|(_, at)| !chunk.iter().zip(*at).any(ends_before));
                        let placed = &placed[start..start + count];
                        team.placed(scratch, number, placed, as_is, &|_, _| Ok(()))
                    })
                })
            },
        )
    }

    /// If the view is the entire array, uses its metalayers. Also uses its chunk and block shapes, if the builder sets
    /// none of them.
    pub(crate) fn cut_like(self, view: &NDArrayView<'_>) -> Result<Self> {
        if !view.is_array() {
            return Ok(self);
        }
        Ok(self.meta_from(view.array)?.cut_as(view.array))
    }
}

/// A number type or `bool`. [`NDArrayBuilder::cast`] converts items to such a type. This trait is sealed.
///
/// Implemented for the integers of up to 64 bits, `f32`, `f64` and `bool`.
///
/// ```
/// use blosc2::array::Number;
/// use blosc2::{NDArray, Result};
///
/// fn converted<T: Number>(array: &NDArray) -> Result<Vec<T>> {
///     NDArray::builder().cast::<T>(array)?.read(..)
/// }
///
/// let array = NDArray::from_slice(&[0u8, 1, 255], 3)?;
/// assert_eq!(converted::<f32>(&array)?, [0.0, 1.0, 255.0]);
/// assert_eq!(converted::<bool>(&array)?, [false, true, true]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Number: Element + sealed::Number {}

mod sealed {
    pub trait Number {
        fn from_int(number: i64) -> Self;
        fn from_uint(number: u64) -> Self;
        fn from_float(number: f64) -> Self;
    }

    pub trait Arithmetic: Copy {
        /// Returns the number of steps from `start` (inclusive) to `end` (exclusive); `None` if it is not a finite
        /// number.
        fn count(start: Self, end: Self, step: Self) -> Option<u64>;
        fn nth(start: Self, step: Self, index: u64) -> Self;
        /// Returns the number after `index` of `last` equal steps from `start` to `end`.
        fn between(start: Self, end: Self, index: u64, last: u64) -> Self;
        /// Adds the product of two matrices. All matrices are in C order. `a` has `m` rows and `k` columns, `b` has `k` rows
        /// and `n` columns; none of these numbers is 0. The second value of `a` is the number of items from the start of one
        /// row to the next. Items of `a` after the last row are ignored.
        fn multiply(to: &mut [Self], a: (&[Self], usize), b: &[Self], sizes: [usize; 3])
        where
            Self: Sized;
        fn is_number(self) -> bool {
            true
        }
    }
}

macro_rules! numbers {
    ($($type:ty)*, $number:ident => $converted:expr) => {$(
        impl Number for $type {}

        impl sealed::Number for $type {
            fn from_int($number: i64) -> Self {
                $converted
            }

            fn from_uint($number: u64) -> Self {
                $converted
            }

            fn from_float($number: f64) -> Self {
                $converted
            }
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64, number => number as Self }
numbers! { bool, number => number != Default::default() }

/// A number type that [`NDArrayBuilder::arange`], [`NDArrayBuilder::linspace`], [`NDArrayBuilder::matmul`] and
/// [`NDArrayBuilder::tensordot`] accept. This trait is sealed.
///
/// Implemented for the integers of up to 64 bits, `f32` and `f64`.
///
/// ```
/// use blosc2::array::Arithmetic;
/// use blosc2::{NDArray, Result};
///
/// fn steps<T: Arithmetic>(start: T, end: T, step: T) -> Result<Vec<T>> {
///     NDArray::builder().arange(start, end, step)?.read(..)
/// }
///
/// assert_eq!(steps(0u8, 10, 4)?, [0, 4, 8]);
/// assert_eq!(steps(1.0, 0.0, -0.5)?, [1.0, 0.5]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Arithmetic: Number + sealed::Arithmetic {}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Arithmetic for $type {}

        impl sealed::Arithmetic for $type {
            fn count(start: Self, end: Self, step: Self) -> Option<u64> {
                let (start, end, step) = (i128::from(start), i128::from(end), i128::from(step));
                if step == 0 {
                    return None;
                }
                let (way, step) = if step > 0 { (end - start, step) } else { (start - end, -step) };
                // A range has at most 2^64 - 1 numbers.
                Some(u64::try_from((way + step - 1) / step).unwrap_or(0))
            }

            fn nth(start: Self, step: Self, index: u64) -> Self {
                // The result fits in this type, because it is between the bounds of the range.
                (i128::from(start) + i128::from(step) * i128::from(index)) as Self
            }

            fn between(start: Self, end: Self, index: u64, last: u64) -> Self {
                if last == 0 {
                    return start;
                }
                let (start, end) = (i128::from(start), i128::from(end));
                // Rounded down, as in NumPy. The result fits in this type, because it is between `start` and `end`.
                (start + ((end - start) * i128::from(index)).div_euclid(i128::from(last))) as Self
            }

            fn multiply(to: &mut [Self], (a, row): (&[Self], usize), b: &[Self], [_, k, n]: [usize; 3]) {
                for (to, row) in to.chunks_exact_mut(n).zip(a.chunks(row)) {
                    for (factor, row) in row[..k].iter().zip(b.chunks_exact(n)) {
                        for (to, item) in to.iter_mut().zip(row) {
                            *to = to.wrapping_add(factor.wrapping_mul(*item));
                        }
                    }
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty, $multiply:path;)*) => {$(
        impl Arithmetic for $type {}

        impl sealed::Arithmetic for $type {
            fn count(start: Self, end: Self, step: Self) -> Option<u64> {
                let mut steps = (end - start) / step;
                if (end - start).is_infinite() {
                    // The difference of the bounds overflows, but the number of steps may be small.
                    steps = end / step - start / step;
                }
                let is_range = start.is_finite() && end.is_finite() && step.is_finite();
                (is_range && steps.is_finite()).then_some(steps.ceil() as u64)
            }

            fn nth(start: Self, step: Self, index: u64) -> Self {
                // The step is rounded to the difference of the first two items, as in NumPy.
                let step = (start + step) - start;
                start + index as Self * step
            }

            fn between(start: Self, end: Self, index: u64, last: u64) -> Self {
                let far = (end - start).is_infinite();
                let step = if far { end / last as Self - start / last as Self } else { (end - start) / last as Self };
                match index {
                    0 => start,
                    // The last item is exactly `end`, even if the steps were rounded.
                    _ if index == last => end,
                    _ => start + index as Self * step,
                }
            }

            fn multiply(to: &mut [Self], (a, row): (&[Self], usize), b: &[Self], [m, k, n]: [usize; 3]) {
                assert_eq!([Some(to.len()), Some(b.len())], [m.checked_mul(n), k.checked_mul(n)]);
                let needed = m.checked_sub(1).and_then(|rows| rows.checked_mul(row)?.checked_add(k));
                assert!(needed.is_some_and(|needed| needed <= a.len()) && isize::try_from(row).is_ok());
                // `n` is the length of a part of a slice, which has at most `isize::MAX` bytes; `row` is checked above.
                let [across, down] = [row, n].map(|step| step as isize);
                // SAFETY: the slices contain the matrices with these sizes and strides, as checked above. `to` is
                // exclusive, and its items are at different places.
                unsafe {
                    $multiply(
                        m, k, n, 1.0, a.as_ptr(), across, 1, b.as_ptr(), down, 1, 1.0, to.as_mut_ptr(), down, 1,
                    );
                }
            }

            fn is_number(self) -> bool {
                self.is_finite()
            }
        }
    )*};
}

integers! { u8 i8 u16 i16 u32 i32 u64 i64 }
floats! { f32, matrixmultiply::sgemm; f64, matrixmultiply::dgemm; }

/// Converts the bytes of items, in native byte order, to numbers.
type Convert<T> = fn(&[u8]) -> Vec<T>;

/// Returns the conversion of items of this dtype.
pub(super) fn numbers_of<T: Number>(dtype: &Dtype) -> Option<Convert<T>> {
    macro_rules! from {
        ($from:ident $type:ty as $wide:ty) => {
            |bytes| {
                let items = bytes.as_chunks().0.iter().copied();
                items.map(|item| T::$from(<$wide>::from(<$type>::from_ne_bytes(item)))).collect()
            }
        };
    }
    Some(match (dtype.kind()?, dtype.size()) {
        (Kind::Bool, 1) => {
            |bytes| bytes.iter().map(|&byte| T::from_uint((byte != 0).into())).collect()
        }
        (Kind::Int, 1) => from!(from_int i8 as i64),
        (Kind::Int, 2) => from!(from_int i16 as i64),
        (Kind::Int, 4) => from!(from_int i32 as i64),
        (Kind::Int, 8) => from!(from_int i64 as i64),
        (Kind::UInt, 1) => from!(from_uint u8 as u64),
        (Kind::UInt, 2) => from!(from_uint u16 as u64),
        (Kind::UInt, 4) => from!(from_uint u32 as u64),
        (Kind::UInt, 8) => from!(from_uint u64 as u64),
        (Kind::Float, 4) => from!(from_float f32 as f64),
        (Kind::Float, 8) => from!(from_float f64 as f64),
        _ => return None,
    })
}
