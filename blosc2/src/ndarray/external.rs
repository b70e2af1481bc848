//! Integration of the crate `ndarray`: selections by `s![...]`, and reads and writes of arrays and views of that crate.

use ::ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension, SliceInfoElem};

use super::gather::READ;
use super::places::{ItemPart, Sink, Source};
use super::plan::Items;
use super::region::Region;
use super::scatter::WRITE;
use super::selection::{AxisSelection, Selection};
use super::view::NDArrayView;
use super::{NDArray, NDArrayBuilder};
use crate::element::Element;
use crate::{ErrorKind, Result};

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

impl NDArray {
    /// Reads the selected items to a new array of the crate `ndarray`. Needs the feature `ndarray`.
    ///
    /// ```
    /// use blosc2::NDArray;
    /// use ndarray::s;
    ///
    /// let array = NDArray::from_slice(&(0..20i32).collect::<Vec<_>>(), &[4, 5])?;
    /// let part = array.read_array::<i32>(s![1..3, ..;-2])?;
    /// assert_eq!(part, ndarray::array![[9, 7, 5], [14, 12, 10]].into_dyn());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn read_array<T: Element>(&self, selection: impl Into<Selection>) -> Result<ArrayD<T>> {
        self.view().read_array(selection)
    }

    /// Reads the selected items into a view of the crate `ndarray`. The view must have the shape of the selection, and
    /// can have any memory layout. Needs the feature `ndarray`.
    ///
    /// After an error, the view may be partly written.
    pub fn read_to_view<T: Element, D: Dimension>(
        &self,
        selection: impl Into<Selection>,
        items: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        self.view().read_to_view(selection, items)
    }

    /// Replaces the selected items by the items of a view of the crate `ndarray`. The view must have the shape of the
    /// selection, and can have any memory layout. Needs the feature `ndarray`.
    pub fn write_view<T: Element, D: Dimension>(
        &mut self,
        selection: impl Into<Selection>,
        items: ArrayView<'_, T, D>,
    ) -> Result<()> {
        let region = self.select(&selection.into(), WRITE)?.region;
        let swapped = self.check_dtype::<T>(WRITE)?;
        self.check_shape(&region, items.shape(), WRITE)?;
        if T::LAYOUT.is_plain() && swapped.is_none() {
            let (start, strides) = (items.as_ptr().cast(), in_bytes::<T>(items.strides()));
            let part = self.whole_items();
            // SAFETY: the view is borrowed and has the shape of the region. Its pointer and strides locate its items.
            // All bytes of the items are initialized, because plain items have no padding.
            return self.scatter(Items::Region(&region), |plan| unsafe {
                Source::strided(plan, part, start, &strides)
            });
        }
        let items: Vec<T> = items.iter().copied().collect();
        let bytes = self.stored_bytes(&items, WRITE)?;
        self.write_items(Items::Region(&region), self.whole_items(), &bytes)
    }

    fn check_shape(&self, region: &Region, found: &[usize], doing: &str) -> Result<()> {
        let expected = region.shape();
        if expected.len() == found.len()
            && expected.iter().zip(found).all(|(&size, &found)| size == found as u64)
        {
            return Ok(());
        }
        let detail = format!("the selected items have the shape {expected:?}, the view {found:?}");
        Err(self.schunk.error(ErrorKind::InvalidArgument, doing, detail))
    }
}

impl NDArrayView<'_> {
    /// Reads the selected items to a new array of the crate `ndarray`; see [`NDArray::read_array`].
    pub fn read_array<T: Element>(&self, selection: impl Into<Selection>) -> Result<ArrayD<T>> {
        let selected = self.slice(selection)?;
        let items = selected.read_all::<T>()?;
        // The items fit in memory, so each size fits in a `usize`.
        let shape: Vec<usize> = selected.shape().iter().map(|&size| size as usize).collect();
        ArrayD::from_shape_vec(shape, items)
            .map_err(|error| self.error(ErrorKind::TooLarge, READ, error.to_string()))
    }

    /// Reads the selected items into a view of the crate `ndarray`; see [`NDArray::read_to_view`].
    pub fn read_to_view<T: Element, D: Dimension>(
        &self,
        selection: impl Into<Selection>,
        mut items: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        let (array, selected) = (self.array, self.slice(selection)?);
        let (region, part) = (&selected.region, self.part());
        let swapped = self.check_dtype::<T>(READ)?;
        array.check_shape(region, items.shape(), READ)?;
        if part.len == 0 {
            return Ok(());
        }
        if T::LAYOUT.is_plain() && swapped.is_none() {
            let (start, strides) = (items.as_mut_ptr().cast(), in_bytes::<T>(items.strides()));
            // SAFETY: the view is mutably borrowed and has the shape of the region. Its pointer and strides locate its
            // items, and different items have different places. Any bytes are a valid plain item.
            return array.gather(Items::Region(region), |plan| unsafe {
                Sink::strided(plan, part, start, &strides)
            });
        }
        let read = selected.read_all::<T>()?;
        items.iter_mut().zip(read).for_each(|(to, from)| *to = from);
        Ok(())
    }
}

impl NDArrayBuilder {
    /// Creates an array from the items of an array or a view of the crate `ndarray`. The source can have any memory
    /// layout. Needs the feature `ndarray`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let matrix = ndarray::array![[1.0f32, 2.0], [3.0, 4.0]];
    /// let transposed = NDArray::builder().from_view(matrix.t())?;
    /// assert_eq!(transposed.read_all::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn from_view<'a, T: Element, D: Dimension>(
        self,
        items: impl Into<ArrayView<'a, T, D>>,
    ) -> Result<NDArray> {
        let items = items.into();
        let shape: Vec<u64> = items.shape().iter().map(|&size| size as u64).collect();
        if !T::LAYOUT.is_plain() {
            let items: Vec<T> = items.iter().copied().collect();
            return self.from_slice(&items, &shape);
        }
        let order = self.order(&shape, &T::dtype().to_string(), size_of::<T>())?;
        let (start, strides) = (items.as_ptr().cast(), in_bytes::<T>(items.strides()));
        let part = ItemPart::whole(size_of::<T>());
        // SAFETY: the view is borrowed and has the shape of the array. Its pointer and strides locate its items. All
        // bytes of the items are initialized, because plain items have no padding.
        order.make_of(|plan| unsafe { Source::strided(plan, part, start, &strides) })
    }
}

/// Returns strides in bytes. The items are in one allocation, so the product does not overflow.
fn in_bytes<T>(strides: &[isize]) -> Vec<isize> {
    strides.iter().map(|stride| stride * size_of::<T>().cast_signed()).collect()
}
