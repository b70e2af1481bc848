//! Items of any dtype, as the bytes that are stored.

use super::NDArray;
use super::gather::READ;
use super::index::PerAxis;
use super::scatter::WRITE;
use super::selection::{AxisIndex, Selection};
use super::shape::{APPEND, INSERT};
use super::view::NDArrayView;
use crate::Result;

impl NDArray {
    /// The items as bytes, to read items of any dtype as they are stored.
    ///
    /// Nothing is converted: the bytes have the byte order of the dtype.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&[1u16, 2, 3], &[3])?;
    /// assert_eq!(array.bytes().read(1..)?, [2u16, 3].map(u16::to_ne_bytes).concat());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn bytes(&self) -> NDArrayBytes<'_> {
        NDArrayBytes { view: self.view() }
    }

    /// The items as bytes, to write items of any dtype as they are stored.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::from_slice(&[1u16, 2, 3], &[3])?;
    /// array.bytes_mut().write(1..2, &7u16.to_ne_bytes())?;
    /// assert_eq!(array.read_all::<u16>()?, [1, 7, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn bytes_mut(&mut self) -> NDArrayBytesMut<'_> {
        NDArrayBytesMut { array: self }
    }
}

impl<'a> NDArrayView<'a> {
    /// The items of the view as bytes; see [`NDArray::bytes`].
    pub fn bytes(&self) -> NDArrayBytes<'a> {
        NDArrayBytes { view: self.clone() }
    }
}

/// The items of an array or a view as the bytes that are stored. Made by [`NDArray::bytes`] and [`NDArrayView::bytes`].
///
/// Each method is the one of [`NDArray`] of the same name, without a check of the dtype.
#[derive(Debug, Clone)]
pub struct NDArrayBytes<'a> {
    view: NDArrayView<'a>,
}

impl NDArrayBytes<'_> {
    /// Reads the selected items, in C order.
    ///
    /// # Errors
    /// As for [`NDArray::read`], the dtype apart.
    pub fn read(&self, selection: impl Into<Selection>) -> Result<Vec<u8>> {
        self.view.array.read_region_bytes(&self.view.slice(selection)?.region)
    }

    /// Reads the selected items into `bytes`, whose length is theirs.
    ///
    /// # Errors
    /// As for [`NDArray::read_into`], the dtype apart.
    pub fn read_into(&self, selection: impl Into<Selection>, bytes: &mut [u8]) -> Result<()> {
        self.view.array.read_region_bytes_into(&self.view.slice(selection)?.region, bytes)
    }

    /// Reads all items, in C order.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn read_all(&self) -> Result<Vec<u8>> {
        self.view.array.read_region_bytes(&self.view.region)
    }

    /// Reads items by their indices.
    ///
    /// # Errors
    /// As for [`NDArray::read_points`], the dtype apart.
    pub fn read_points(&self, points: &[impl PerAxis]) -> Result<Vec<u8>> {
        let NDArrayView { array, region } = &self.view;
        array.read_indices_bytes(&array.points(points, region, READ)?)
    }

    /// Reads the items where the mask is `true`.
    ///
    /// # Errors
    /// As for [`NDArray::read_mask`], the dtype apart.
    pub fn read_mask(&self, mask: &[bool]) -> Result<Vec<u8>> {
        let NDArrayView { array, region } = &self.view;
        array.read_indices_bytes(&array.chosen(mask, region, READ)?)
    }
}

/// The items of an array as the bytes that are stored, to be written. Made by [`NDArray::bytes_mut`].
///
/// Each method is the one of [`NDArray`] of the same name, without a check of the dtype.
#[derive(Debug)]
pub struct NDArrayBytesMut<'a> {
    array: &'a mut NDArray,
}

impl NDArrayBytesMut<'_> {
    /// Writes the bytes of items, in C order, over the selected ones.
    ///
    /// # Errors
    /// As for [`NDArray::write`], the dtype apart.
    pub fn write(&mut self, selection: impl Into<Selection>, bytes: &[u8]) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?;
        self.array.write_region(&region, bytes)
    }

    /// Writes the bytes of one item over all selected ones.
    ///
    /// # Errors
    /// As for [`NDArray::fill`], the dtype apart.
    pub fn fill(&mut self, selection: impl Into<Selection>, item: &[u8]) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?;
        self.array.fill_region(&region, item)
    }

    /// Writes the bytes of items by their indices.
    ///
    /// # Errors
    /// As for [`NDArray::write_points`], the dtype apart.
    pub fn write_points(&mut self, points: &[impl PerAxis], bytes: &[u8]) -> Result<()> {
        self.array.write_points_bytes(points, bytes)
    }

    /// Writes the bytes of items where the mask is `true`.
    ///
    /// # Errors
    /// As for [`NDArray::write_mask`], the dtype apart.
    pub fn write_mask(&mut self, mask: &[bool], bytes: &[u8]) -> Result<()> {
        self.array.write_mask_bytes(mask, bytes)
    }

    /// Appends the bytes of items along an axis.
    ///
    /// # Errors
    /// As for [`NDArray::append`], the dtype apart.
    pub fn append(&mut self, axis: usize, bytes: &[u8]) -> Result<()> {
        self.array.put_in(APPEND, axis, None, bytes)
    }

    /// Inserts the bytes of items along an axis, before the index `at`.
    ///
    /// # Errors
    /// As for [`NDArray::insert`], the dtype apart.
    pub fn insert(&mut self, axis: usize, at: impl AxisIndex, bytes: &[u8]) -> Result<()> {
        self.array.put_in(INSERT, axis, Some(at.to_i128()), bytes)
    }
}
