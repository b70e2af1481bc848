//! Integration of the crate `ndarray`: selections by `s![...]`, and reads and writes of arrays and views of that crate.

use std::borrow::Cow;

use ::ndarray::{Array, ArrayD, ArrayView, ArrayViewMut, Dimension, SliceInfoElem};

use super::gather::READ;
use super::places::{Sink, Strided};
use super::selection::{AxisSelection, Selection};
use super::transfer::{FillItems, FromItems, Given, IntoItems, ItemBuffer, ItemSource, ReadItems};
use super::view::{ItemType, Selected};
use crate::item::element::{Element, bytes_of};
use crate::{Doing, ErrorKind, Result};

impl From<SliceInfoElem> for AxisSelection {
    fn from(elem: SliceInfoElem) -> Self {
        // An `isize` fits in an `i64`.
        match elem {
            SliceInfoElem::Index(at) => Self::Index(at as i64),
            SliceInfoElem::Slice { start, end, step } => Self::Slice {
                start: start as i64,
                end: end.map(|end| end as i64),
                step: step as i64,
            },
            SliceInfoElem::NewAxis => Self::NewAxis,
        }
    }
}

impl<T, In, Out> From<::ndarray::SliceInfo<T, In, Out>> for Selection
where
    T: AsRef<[SliceInfoElem]>,
    In: Dimension,
    Out: Dimension,
{
    fn from(slice: ::ndarray::SliceInfo<T, In, Out>) -> Self {
        let elems: &[SliceInfoElem] = (*slice).as_ref();
        elems.iter().copied().collect()
    }
}

impl<T: Element, D: Dimension> FromItems for Array<T, D> {}
impl<T: Element, D: Dimension> ReadItems for Array<T, D> {
    fn read_items(selected: &Selected<'_>) -> Result<Self> {
        // The items fit in memory, so each size fits in a `usize`.
        let shape: Vec<usize> = selected.shape().iter().map(|&size| size as usize).collect();
        let invalid = |detail| selected.view.error(ErrorKind::InvalidArgument, detail).doing(READ);
        if D::NDIM.is_some_and(|ndim| ndim != shape.len()) {
            let (ndim, asked) = (shape.len(), D::NDIM.unwrap_or(0));
            let detail = format!("the selection has {ndim} dimensions, the array type {asked}");
            return Err(invalid(detail));
        }
        let items = Vec::<T>::read_items(selected)?;
        let array = ArrayD::from_shape_vec(shape, items).and_then(ArrayD::into_dimensionality);
        array.map_err(|error| invalid(error.to_string()))
    }
}

impl<T: Element, D: Dimension> ItemBuffer for ArrayViewMut<'_, T, D> {}
impl<T: Element, D: Dimension> FillItems for ArrayViewMut<'_, T, D> {
    fn fill_from(mut self, selected: &Selected<'_>) -> Result<()> {
        let (view, part) = (&selected.view, selected.view.part());
        let swap = view.check_type(ItemType::of::<T>()).doing(READ)?;
        let (expected, found) = (selected.shape(), self.shape());
        if !expected.iter().copied().eq(found.iter().map(|&size| size as u64)) {
            let detail =
                format!("the selected items have the shape {expected:?}, the view {found:?}");
            return Err(view.error(ErrorKind::InvalidArgument, detail).doing(READ));
        }
        if part.len == 0 {
            return Ok(());
        }
        if T::LAYOUT.is_plain() && swap.is_none() && selected.points.is_none() {
            let (start, strides) =
                (self.as_mut_ptr().cast(), in_bytes::<T>(self.shape(), self.strides()));
            // SAFETY: the view is mutably borrowed and has the shape of the region. Its pointer and strides locate its
            // items, and different items have different places. Any bytes are a valid plain item.
            return view.array.gather(selected.items(), |plan| unsafe {
                Sink::strided(plan, part, start, &strides)
            });
        }
        let read = Vec::<T>::read_items(selected)?;
        self.iter_mut().zip(read).for_each(|(to, from)| *to = from);
        Ok(())
    }
}

impl<T: Element, D: Dimension> ItemBuffer for &mut Array<T, D> {}
impl<T: Element, D: Dimension> FillItems for &mut Array<T, D> {
    fn fill_from(self, selected: &Selected<'_>) -> Result<()> {
        self.view_mut().fill_from(selected)
    }
}

impl<'a, T: Element, D: Dimension> ItemSource<'a> for ArrayView<'a, T, D> {}
impl<'a, T: Element, D: Dimension> IntoItems<'a> for ArrayView<'a, T, D> {
    fn into_items(self) -> Given<'a> {
        let shape = self.shape().iter().map(|&size| size as u64).collect();
        let item = ItemType::of::<T>();
        if T::LAYOUT.has_padding() {
            let mut items: Vec<T> = Vec::new();
            // A broadcast view can have more items than fit in memory. Without its items, its length is wrong: the
            // write fails, as it does if the shape is wrong.
            if items.try_reserve_exact(self.len()).is_ok() {
                items.extend(self.iter());
            }
            let bytes = Cow::Owned(bytes_of(&items).into_owned());
            return Given::Typed { bytes, item, shape: Some(shape) };
        }
        let (start, strides) = (self.as_ptr().cast(), in_bytes::<T>(self.shape(), self.strides()));
        // SAFETY: the items are borrowed during `'a`. The pointer and the strides locate items of this shape. All bytes
        // of the items are initialized, because the items have no padding.
        let strided = unsafe { Strided::new(start, size_of::<T>(), shape, strides) };
        Given::Strided(strided, item)
    }
}

impl<'a, T: Element, D: Dimension> ItemSource<'a> for &'a Array<T, D> {}
impl<'a, T: Element, D: Dimension> IntoItems<'a> for &'a Array<T, D> {
    fn into_items(self) -> Given<'a> {
        self.view().into_items()
    }
}

/// Returns strides in bytes. The items are in one allocation, so the product does not overflow on an axis with several
/// indices. An axis with one index or none may have any stride, which is not used.
fn in_bytes<T>(shape: &[usize], strides: &[isize]) -> Vec<isize> {
    let size = size_of::<T>().cast_signed();
    let axes = shape.iter().zip(strides);
    axes.map(|(&len, stride)| if len > 1 { stride * size } else { 0 }).collect()
}
