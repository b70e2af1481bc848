//! Access to items of any dtype as their stored bytes.

use super::NDArray;
use super::gather::READ;
use super::index::PerAxis;
use super::plan::Items;
use super::region::Region;
use super::scatter::WRITE;
use super::selection::{AxisIndex, Selection};
use super::shape::{APPEND, INSERT};
use super::view::NDArrayView;
use crate::Result;

impl NDArray {
    /// Returns a view that reads items of any dtype as uncompressed bytes.
    ///
    /// The bytes are not converted: they have the byte order of the dtype. For an example, see [`NDArrayBytes`].
    pub fn bytes(&self) -> NDArrayBytes<'_> {
        NDArrayBytes { view: self.view() }
    }

    /// Returns a mutable view that writes items of any dtype from uncompressed bytes. The bytes are not converted: they
    /// must have the byte order of the dtype. For an example, see [`NDArrayBytesMut`].
    pub fn bytes_mut(&mut self) -> NDArrayBytesMut<'_> {
        NDArrayBytesMut { array: self }
    }
}

impl<'a> NDArrayView<'a> {
    /// Returns a view that reads the items of this view as uncompressed bytes; see [`NDArray::bytes`].
    pub fn bytes(&self) -> NDArrayBytes<'a> {
        NDArrayBytes { view: self.clone() }
    }
}

/// A read-only view of the items of an array as uncompressed bytes, in the byte order of the dtype. [`NDArray::bytes`]
/// and [`NDArrayView::bytes`] return this view.
///
/// Each method works like the method of [`NDArray`] with the same name, but does not check the dtype. The methods fail
/// with the [errors of reads](NDArray#errors-of-reads), except
/// [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch).
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1u16, 2, 3], 3)?;
/// let mut bytes = [0; 4];
/// array.bytes().read_into(..2, &mut bytes)?;
/// assert_eq!(bytes, *[1u16, 2].map(u16::to_ne_bytes).concat());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NDArrayBytes<'a> {
    view: NDArrayView<'a>,
}

impl NDArrayBytes<'_> {
    /// Reads the bytes of the selected items, in C order.
    pub fn read(&self, selection: impl Into<Selection>) -> Result<Vec<u8>> {
        let selected = self.view.slice(selection)?;
        selected.read_bytes(selected.items())
    }

    /// Reads the bytes of the selected items into a buffer, in C order. The length of the buffer must be the size of
    /// the selected items in bytes.
    pub fn read_into(&self, selection: impl Into<Selection>, bytes: &mut [u8]) -> Result<()> {
        let selected = self.view.slice(selection)?;
        selected.read_bytes_into(selected.items(), bytes)
    }

    /// Reads the bytes of all items, in C order.
    pub fn read_all(&self) -> Result<Vec<u8>> {
        self.view.read_bytes(self.view.items())
    }

    /// Reads the bytes of the items at a list of points; see [`NDArray::read_points`].
    pub fn read_points(&self, points: &[impl PerAxis]) -> Result<Vec<u8>> {
        let NDArrayView { array, region, .. } = &self.view;
        self.view.read_bytes(Items::Points(&array.points(points, region, READ)?))
    }

    /// Reads the bytes of the items for which the mask is `true`; see [`NDArray::read_mask`].
    pub fn read_mask(&self, mask: &[bool]) -> Result<Vec<u8>> {
        let NDArrayView { array, region, .. } = &self.view;
        self.view.read_bytes(Items::Points(&array.chosen(mask, region, READ)?))
    }
}

/// A mutable view of the items of an array as uncompressed bytes, in the byte order of the dtype.
/// [`NDArray::bytes_mut`] returns this view.
///
/// Each method works like the method of [`NDArray`] with the same name, but does not check the dtype. In
/// [`fill`](Self::fill), the length of the item must be the typesize. The methods fail with the [errors of
/// changes](NDArray#errors-of-changes), except [`ErrorKind::TypeMismatch`](crate::ErrorKind::TypeMismatch).
///
/// ```
/// use blosc2::NDArray;
///
/// let mut array = NDArray::builder().zeros::<u16>(3)?;
/// array.bytes_mut().fill(.., &5u16.to_ne_bytes())?;
/// array.bytes_mut().append(0, &6u16.to_ne_bytes())?;
/// assert_eq!(array.read_all::<u16>()?, [5, 5, 5, 6]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct NDArrayBytesMut<'a> {
    array: &'a mut NDArray,
}

impl NDArrayBytesMut<'_> {
    /// Replaces the selected items by the items in `bytes`, in C order.
    pub fn write(&mut self, selection: impl Into<Selection>, bytes: &[u8]) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?.region;
        self.array.write_items(Items::Region(&region), self.array.whole_items(), bytes)
    }

    /// Replaces each selected item by the same item. `item` contains the bytes of this item.
    pub fn fill(&mut self, selection: impl Into<Selection>, item: &[u8]) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?.region;
        self.array.fill_region(&region, self.array.whole_items(), item)
    }

    /// Replaces the items at a list of points by the items in `bytes`; see [`NDArray::write_points`].
    pub fn write_points(&mut self, points: &[impl PerAxis], bytes: &[u8]) -> Result<()> {
        let region = Region::whole(self.array.shape());
        let points = self.array.points(points, &region, WRITE)?;
        self.array.write_items(Items::Points(&points), self.array.whole_items(), bytes)
    }

    /// Replaces the items for which the mask is `true` by the items in `bytes`, in C order.
    pub fn write_mask(&mut self, mask: &[bool], bytes: &[u8]) -> Result<()> {
        let region = Region::whole(self.array.shape());
        let chosen = self.array.chosen(mask, &region, WRITE)?;
        self.array.write_items(Items::Points(&chosen), self.array.whole_items(), bytes)
    }

    /// Appends the bytes of items at the end of an axis; see [`NDArray::append`].
    pub fn append(&mut self, axis: usize, bytes: &[u8]) -> Result<()> {
        self.array.put_in(APPEND, axis, None, bytes)
    }

    /// Inserts the bytes of items before the index `at` of an axis; see [`NDArray::insert`].
    pub fn insert(&mut self, axis: usize, at: impl AxisIndex, bytes: &[u8]) -> Result<()> {
        self.array.put_in(INSERT, axis, Some(at.to_i128()), bytes)
    }
}
