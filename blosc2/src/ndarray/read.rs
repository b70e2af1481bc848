//! Reading of items.

use super::NDArray;
use super::gather::READ;
use super::index::{PerAxis, position_of};
use super::region::Region;
use super::selection::{AxisVec, Selection};
use super::transfer::{FromItems, ItemBuffer, ReadItems};
use super::view::{NDArrayView, Selected};
use crate::item::element::Element;
use crate::{Doing, ErrorKind, Result};

impl NDArray {
    /// Reads the selected items, in C order. C: `b2nd_get_slice_cbuffer`, `b2nd_get_orthogonal_selection`,
    /// `b2nd_to_cbuffer`. Python: `array[...]`, `array.oindex[...]`.
    ///
    /// The selection can be one range for each axis, `..` for all items, or a list of points; [`Selection`] lists the
    /// possibilities. With the feature `ndarray`, the result of `s![...]` is a selection too. [`FromItems`] lists what
    /// a read can return: a vector of items, the bytes of items, or an array of the crate `ndarray`.
    ///
    /// ```
    /// use blosc2::{NDArray, RawItems};
    ///
    /// let array = NDArray::from_slice(&[1u16, 2, 3, 4, 5, 6], [2, 3])?;
    /// let all: Vec<u16> = array.read(..)?;
    /// assert_eq!(all, [1, 2, 3, 4, 5, 6]);
    /// assert_eq!(array.read::<Vec<u16>>((.., -1))?, [3, 6]); // the last column
    /// assert_eq!(array.read::<RawItems>([1, 0])?.0, 4u16.to_ne_bytes());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias(
        "get_slice",
        "b2nd_get_slice_cbuffer",
        "b2nd_get_orthogonal_selection",
        "b2nd_to_cbuffer",
        "oindex",
        "__getitem__"
    ))]
    pub fn read<O: FromItems>(&self, selection: impl Into<Selection>) -> Result<O> {
        self.view().read(selection)
    }

    /// Reads the selected items into memory of the caller, in C order. [`ItemBuffer`] lists the types of memory. After an
    /// error, the memory may be partly written.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1u16, 2, 3, 4, 5, 6], [2, 3])?;
    /// let mut row = [0u16; 3];
    /// array.read_into(1, &mut row)?;
    /// assert_eq!(row, [4, 5, 6]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn read_into(
        &self,
        selection: impl Into<Selection>,
        buffer: impl ItemBuffer,
    ) -> Result<()> {
        self.view().read_into(selection, buffer)
    }

    /// Reads the item at an index, which has one integer for each axis: `array.item::<f32>([3, -1])`. Negative integers
    /// count from the end of the axis.
    pub fn item<T: Element>(&self, index: impl PerAxis) -> Result<T> {
        let region = self.region_of_item(&index)?;
        let view = NDArrayView { array: self, region, field: None };
        Vec::read_items(&Selected { view, points: None }).map(|items| items[0])
    }

    fn region_of_item(&self, index: &impl PerAxis) -> Result<Region> {
        let (shape, found) = (self.shape(), index.ndim());
        if found != shape.len() {
            let detail = format!("an index has {} integers, got {found}", shape.len());
            return Err(self.schunk.error(ErrorKind::InvalidArgument, detail).doing(READ));
        }
        let places = shape.iter().enumerate().map(|(axis, &size)| {
            let place = position_of(index.along(axis), (axis, size));
            let place = place.map_err(|error| self.schunk.at(error)).doing(READ)?;
            Ok(place..place + 1)
        });
        Ok(Region::of_box(places.collect::<Result<AxisVec<_>>>()?))
    }
}

impl NDArrayView<'_> {
    /// Reads the selected items of the view, in C order; see [`NDArray::read`]. Indices of the selection refer to the
    /// view.
    pub fn read<O: FromItems>(&self, selection: impl Into<Selection>) -> Result<O> {
        O::read_items(&self.selected(&selection.into()).doing(READ)?)
    }

    /// Reads the selected items of the view into memory of the caller; see [`NDArray::read_into`].
    pub fn read_into(
        &self,
        selection: impl Into<Selection>,
        buffer: impl ItemBuffer,
    ) -> Result<()> {
        buffer.fill_from(&self.selected(&selection.into()).doing(READ)?)
    }
}
