//! Making arrays of other arrays, and of functions.

use std::ops::Range;
use std::ptr;

use super::builder::{MAKE, Sources};
use super::gather::Sink;
use super::plan::{Items, Plan, c_order};
use super::region::Region;
use super::view::NDArrayView;
use super::{NDArray, NDArrayBuilder};
use crate::dtype::Kind;
use crate::element::{Element, bytes_of, make_items};
use crate::memory::resize;
use crate::schunk::Reading;
use crate::{Dtype, Error, ErrorKind, Result, Threads};

/// How many items the function of a map makes in what counts as one call.
const ITEMS_OF_A_CALL: usize = 1024;

impl NDArrayBuilder {
    /// Makes an array whose items are those of a function of their indices.
    ///
    /// It is called on several threads ([`CParams::threads`](crate::CParams::threads)), block by block, once for each
    /// item. A panic of it goes on at this call.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    pub fn from_fn<T: Element>(
        self,
        shape: &[u64],
        item: impl Fn(&[u64]) -> T + Sync,
    ) -> Result<NDArray> {
        let fill = |ranges: &[Range<u64>], bytes: &mut [u8]| {
            let mut index: Vec<u64> = ranges.iter().map(|range| range.start).collect();
            // A row at a time.
            let (len, first) =
                ranges.last().map_or((1, 0), |range| (range.end - range.start, range.start));
            let mut row = Vec::new();
            for to in bytes.chunks_exact_mut(len as usize * size_of::<T>()) {
                row.clear();
                for at in first..first + len {
                    if let Some(last) = index.last_mut() {
                        *last = at;
                    }
                    row.push(item(&index));
                }
                to.copy_from_slice(&bytes_of(&row));
                for axis in (0..index.len().saturating_sub(1)).rev() {
                    index[axis] += 1;
                    if index[axis] < ranges[axis].end {
                        break;
                    }
                    index[axis] = ranges[axis].start;
                }
            }
            Ok(())
        };
        let dtype = (&*T::dtype().to_string(), size_of::<T>());
        self.by_chunks(shape, dtype, Sources::default(), |team, scratch, number| {
            team.by_blocks(scratch, number, fill)
        })
    }

    /// Copies an array or a view of one; of an array its metalayers too.
    ///
    /// Chunk and block shapes that are not set are those of the array, where both are not set and it has the same shape; an
    /// automatic one is found where only the other is. C's `b2nd_copy`, Python's `copy`; of a
    /// [transposed](NDArrayView::permute) view, Python's `permute_dims`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice) and for reading `source`.
    pub fn copy<'a>(self, source: impl Into<NDArrayView<'a>>) -> Result<NDArray> {
        let view = source.into();
        let (array, shape) = (view.array, view.shape());
        let (dtype, typesize) = (dtype_of(array), array.typesize());
        let builder = self.cut_like(array, &view)?;
        let reading = array.schunk.reading()?;
        let sources = Sources { arrays: &[array], vlmeta: view.is_whole() };
        builder.by_boxes(&shape, (&dtype, typesize), sources, |ranges, bytes| {
            gather(&view, &reading, ranges.to_vec(), &c_order(&extent(ranges), typesize), 0, bytes)
        })
    }

    /// Copies an array or a view of one, with each item made another by a function; see [`copy`](Self::copy).
    ///
    /// The function is called on several threads. A change of the array's file that it tries fails with
    /// [`ErrorKind::Busy`].
    ///
    /// # Errors
    /// As for [`copy`](Self::copy), and [`ErrorKind::TypeMismatch`] where the items are not `A`.
    pub fn map<'a, A: Element, B: Element>(
        self,
        source: impl Into<NDArrayView<'a>>,
        item: impl Fn(A) -> B + Sync,
    ) -> Result<NDArray> {
        let view = source.into();
        let swapped = view.array.check_dtype::<A>(MAKE)?;
        let (array, shape) = (view.array, view.shape());
        let builder = self.cut_like(array, &view)?;
        let reading = array.schunk.reading()?;
        let dtype = (&*B::dtype().to_string(), size_of::<B>());
        let sources = Sources { arrays: &[array], vlmeta: view.is_whole() };
        builder.by_boxes(&shape, dtype, sources, |ranges, bytes| {
            let count = bytes.len() / size_of::<B>();
            let items = make_items::<A>(count, MAKE, |bytes| {
                let strides = c_order(&extent(ranges), size_of::<A>());
                gather(&view, &reading, ranges.to_vec(), &strides, 0, bytes)?;
                if let Some(swapped) = &swapped {
                    swapped.apply(bytes);
                }
                Ok(())
            })?;
            let mut made = Vec::with_capacity(count);
            for part in items.chunks(ITEMS_OF_A_CALL) {
                let _calling = array.schunk.calling();
                made.extend(part.iter().map(|from| item(*from)));
            }
            bytes.copy_from_slice(&bytes_of(&made));
            Ok(())
        })
    }

    /// Copies an array or a view of one, with its numbers made numbers of another type, as Rust's `as` does it; see
    /// [`copy`](Self::copy). Python's `astype`.
    ///
    /// What is not 0 is true. Either byte order is taken.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1.5f64, -2.0, 300.0], &[3])?;
    /// assert_eq!(NDArray::builder().cast::<u8>(&array)?.read_all::<u8>()?, [1, 0, 255]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`copy`](Self::copy), and [`ErrorKind::TypeMismatch`] where the items are no numbers of Rust's.
    pub fn cast<'a, T: Number>(self, source: impl Into<NDArrayView<'a>>) -> Result<NDArray> {
        let view = source.into();
        let (array, shape) = (view.array, view.shape());
        let wrong = || {
            let dtype = array.dtype().unwrap_or("of no dtype");
            let detail = format!("the items are {dtype}, not numbers that Rust has");
            view.error(ErrorKind::TypeMismatch, MAKE, detail)
        };
        let dtype = array.parsed_dtype().filter(|dtype| dtype.size() == array.typesize());
        let dtype = dtype.ok_or_else(wrong)?;
        let number = number_of::<T>(dtype).ok_or_else(wrong)?;
        let swapped = dtype.swap_plan().map_err(|_| wrong())?;
        let builder = self.cut_like(array, &view)?;
        let reading = array.schunk.reading()?;
        let (name, size) = (T::dtype().to_string(), size_of::<T>());
        let sources = Sources { arrays: &[array], vlmeta: view.is_whole() };
        builder.by_boxes(&shape, (&name, size), sources, |ranges, bytes| {
            let mut from = Vec::new();
            resize(&mut from, bytes.len() / size * dtype.size(), MAKE)?;
            let strides = c_order(&extent(ranges), dtype.size());
            gather(&view, &reading, ranges.to_vec(), &strides, 0, &mut from)?;
            swapped.apply(&mut from);
            let items: Vec<T> = from.chunks_exact(dtype.size()).map(number).collect();
            bytes.copy_from_slice(&bytes_of(&items));
            Ok(())
        })
    }

    /// Makes an array of several, one behind the other along a dimension. C's `b2nd_concatenate`, Python's `concat`.
    ///
    /// They have the same dtype, and the same shape but for that dimension. The metalayers are not copied.
    ///
    /// # Errors
    /// As for [`copy`](Self::copy); [`ErrorKind::InvalidArgument`] where there is none, or where shapes do not fit;
    /// [`ErrorKind::TypeMismatch`] where dtypes differ.
    pub fn concatenate<'a>(
        self,
        sources: impl IntoIterator<Item = impl Into<NDArrayView<'a>>>,
        axis: usize,
    ) -> Result<NDArray> {
        let views: Vec<NDArrayView<'a>> = sources.into_iter().map(Into::into).collect();
        self.join(&views, axis)
    }

    /// Makes an array of several of the same shape, one behind the other along a new dimension. Python's `stack`.
    ///
    /// # Errors
    /// As for [`concatenate`](Self::concatenate).
    pub fn stack<'a>(
        self,
        sources: impl IntoIterator<Item = impl Into<NDArrayView<'a>>>,
        axis: usize,
    ) -> Result<NDArray> {
        let views = sources.into_iter().map(|view| view.into().expand_dims(axis));
        let views: Vec<NDArrayView<'a>> = views.collect::<Result<_>>()?;
        self.join(&views, axis)
    }

    fn join(self, views: &[NDArrayView<'_>], axis: usize) -> Result<NDArray> {
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, MAKE, detail);
        let first = views.first().ok_or_else(|| invalid("there is no array to join".to_owned()))?;
        let mut shape = first.shape();
        if axis >= shape.len() {
            let detail = format!("there are {} dimensions, got number {axis}", shape.len());
            return Err(invalid(detail));
        }
        let (dtype, typesize) = (dtype_of(first.array), first.array.typesize());
        // Where each starts.
        let mut starts = Vec::with_capacity(views.len());
        let mut end = 0u64;
        for view in views {
            let mut found = view.shape();
            if found.len() == shape.len() {
                starts.push(end);
                end = end.saturating_add(found[axis]);
                found[axis] = shape[axis];
            }
            if found != shape {
                let (shape, found) = (first.shape(), view.shape());
                let detail = format!("shapes {shape:?} and {found:?} along dimension {axis}");
                return Err(invalid(detail));
            }
            let (other, size) = (dtype_of(view.array), view.array.typesize());
            let parsed = view.array.parsed_dtype();
            let same = dtype == other || parsed.is_some() && parsed == first.array.parsed_dtype();
            if !same || size != typesize {
                let detail = format!("items of {dtype} and of {other}");
                return Err(Error::new(ErrorKind::TypeMismatch, MAKE, detail));
            }
        }
        shape[axis] = end;
        // Of an array that is named several times there is one.
        let mut arrays: Vec<(&NDArray, Reading<'_>)> = Vec::new();
        let mut readings = Vec::with_capacity(views.len());
        for view in views {
            let found = arrays.iter().position(|(array, _)| ptr::eq(*array, view.array));
            if found.is_none() {
                arrays.push((view.array, view.array.schunk.reading()?));
            }
            readings.push(found.unwrap_or(arrays.len() - 1));
        }
        let named: Vec<&NDArray> = arrays.iter().map(|(array, _)| *array).collect();
        let sources = Sources { arrays: &named, vlmeta: false };
        self.by_boxes(&shape, (&dtype, typesize), sources, |ranges, bytes| {
            let strides = c_order(&extent(ranges), typesize);
            for (index, view) in views.iter().enumerate() {
                let (start, len) = (starts[index], view.shape()[axis]);
                let low = ranges[axis].start.max(start);
                let high = ranges[axis].end.min(start + len);
                if low >= high {
                    continue;
                }
                let mut part = ranges.to_vec();
                part[axis] = low - start..high - start;
                let at = (low - ranges[axis].start) as isize * strides[axis];
                gather(view, &arrays[readings[index]].1, part, &strides, at, bytes)?;
            }
            Ok(())
        })
    }

    /// Takes the metalayers of an array, and its chunk and block shapes unless there are some, if the view is all of it.
    fn cut_like(mut self, array: &NDArray, view: &NDArrayView<'_>) -> Result<Self> {
        if view.is_whole() {
            self = self.meta_from(array)?;
            self = self.cut_as(array);
        }
        Ok(self)
    }
}

impl NDArrayView<'_> {
    /// Whether it is all of the array as it is.
    fn is_whole(&self) -> bool {
        self.region == Region::whole(self.array.shape())
    }
}

/// The dtype of an array; where there is none, bytes of the right number, as C does.
fn dtype_of(array: &NDArray) -> String {
    array.dtype().map_or_else(|| format!("|S{}", array.typesize()), str::to_owned)
}

fn extent(ranges: &[Range<u64>]) -> Vec<u64> {
    ranges.iter().map(|range| range.end - range.start).collect()
}

/// Reads a box of a view into memory that has its items from `at` on, with these strides.
fn gather(
    view: &NDArrayView<'_>,
    reading: &Reading<'_>,
    ranges: Vec<Range<u64>>,
    strides: &[isize],
    at: isize,
    bytes: &mut [u8],
) -> Result<()> {
    let region = view.region.select(&ranges.into(), MAKE)?;
    let array = view.array;
    let now = array.geometry_now(reading)?;
    let items = Items::Region(&region, strides);
    let plan: Plan<'_> = items.plan(now.as_ref().unwrap_or(&array.geometry), MAKE)?;
    // SAFETY: the box is a part of that whose items `bytes` has in C order, and `strides` are those of that order.
    let sink = unsafe { Sink::new(bytes.as_mut_ptr().offset(at), true) };
    // SAFETY: as above.
    let read = unsafe { array.readers.gather((&array.schunk, reading), &plan, sink, Threads::ONE) };
    read.map_err(|error| array.schunk.at(error))
}

/// A number, or a bool, that others can be made: the target of [`NDArrayBuilder::cast`].
pub trait Number: Element + sealed::Sealed {
    #[doc(hidden)]
    fn from_int(number: i64) -> Self;
    #[doc(hidden)]
    fn from_uint(number: u64) -> Self;
    #[doc(hidden)]
    fn from_float(number: f64) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}

        impl Number for $type {
            fn from_int(number: i64) -> Self {
                number as Self
            }

            fn from_uint(number: u64) -> Self {
                number as Self
            }

            fn from_float(number: f64) -> Self {
                number as Self
            }
        }
    )*};
}

numbers! { u8 i8 u16 i16 u32 i32 u64 i64 f32 f64 }

impl sealed::Sealed for bool {}

impl Number for bool {
    fn from_int(number: i64) -> Self {
        number != 0
    }

    fn from_uint(number: u64) -> Self {
        number != 0
    }

    fn from_float(number: f64) -> Self {
        number != 0.0
    }
}

/// What makes an item of this dtype, in this machine's byte order, a number.
fn number_of<T: Number>(dtype: &Dtype) -> Option<fn(&[u8]) -> T> {
    macro_rules! from {
        ($from:ident $type:ty as $wide:ty) => {
            |bytes| {
                let bytes = bytes.first_chunk().copied().unwrap_or_default();
                T::$from(<$wide>::from(<$type>::from_ne_bytes(bytes)))
            }
        };
    }
    Some(match (dtype.kind()?, dtype.size()) {
        (Kind::Bool, 1) => |bytes| T::from_uint(u64::from(bytes[0] != 0)),
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
