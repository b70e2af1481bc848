//! Access to one field of an array of structures.

use super::NDArray;
use super::gather::READ;
use super::places::{ItemPart, Source};
use super::plan::Items;
use super::scatter::WRITE;
use super::selection::Selection;
use super::view::NDArrayView;
use crate::dtype::SwapPlan;
use crate::element::{Element, bytes_of, make_items, with_bytes_mut, zeroed};
use crate::{Dtype, ErrorKind, Result};

impl NDArray {
    /// Returns a view of one field of an array of structures. NumPy and Python: `array["name"]`.
    ///
    /// A read of a field decompresses entire blocks, but copies only the bytes of the field.
    ///
    /// ```
    /// # #[cfg(feature = "derive")] {
    /// use blosc2::{Element, NDArray};
    ///
    /// #[derive(Clone, Copy, Element)]
    /// #[repr(C)]
    /// struct Reading {
    ///     sensor: u16,
    ///     celsius: f32,
    /// }
    ///
    /// let rows: Vec<Reading> =
    ///     (0..100).map(|row| Reading { sensor: row, celsius: f32::from(row) / 2.0 }).collect();
    /// let array = NDArray::from_slice(&rows, &[100])?;
    /// assert_eq!(array.field("celsius")?.read::<f32>(-2..)?, [49.0, 49.5]);
    /// # }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: there is no field with this name; the error message lists all fields;
    /// - [`ErrorKind::TypeMismatch`]: the items are not structures, or the dtype is not known ([`NDArray::dtype`]
    ///   returns `None`).
    pub fn field(&self, name: &str) -> Result<NDArrayField<'_>> {
        self.view().field(name)
    }
}

impl<'a> NDArrayView<'a> {
    /// Returns a view of one field of the items; see [`NDArray::field`].
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field(&self, name: &str) -> Result<NDArrayField<'a>> {
        let array = self.array;
        let Some(dtype) = array.dtype().filter(|dtype| dtype.size() == array.typesize()) else {
            let found = array.dtype_str().unwrap_or("of unknown dtype");
            let detail = format!("the items are {found}, expected structures of a known dtype");
            return Err(self.error(ErrorKind::TypeMismatch, FIELD, detail));
        };
        let whole = NDArrayField { view: self.clone(), offset: 0, dtype: dtype.clone() };
        whole.field(name)
    }
}

impl NDArray {
    /// Returns a mutable view that writes one field of an array of structures. NumPy and Python: `array["name"][...] =
    /// items`.
    ///
    /// ```
    /// # #[cfg(feature = "derive")] {
    /// use blosc2::{Element, NDArray};
    ///
    /// #[derive(Clone, Copy, Element)]
    /// #[repr(C)]
    /// struct Reading {
    ///     sensor: u16,
    ///     celsius: f32,
    /// }
    ///
    /// let mut array = NDArray::from_slice(&[Reading { sensor: 7, celsius: 20.0 }; 3], &[3])?;
    /// array.field_mut("celsius")?.write(1.., &[21.5f32, 22.0])?;
    /// assert_eq!(array.field("celsius")?.read_all::<f32>()?, [20.0, 21.5, 22.0]);
    /// assert_eq!(array.field("sensor")?.read_all::<u16>()?, [7, 7, 7]);
    /// # }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field_mut(&mut self, name: &str) -> Result<NDArrayFieldMut<'_>> {
        let NDArrayField { offset, dtype, .. } = self.field(name)?;
        Ok(NDArrayFieldMut { array: self, offset, dtype })
    }
}

impl NDArray {
    /// Checks that `T` is the type of a field, and returns the byte order conversion if one is needed.
    fn check_field<T: Element>(&self, dtype: &Dtype, doing: &str) -> Result<Option<SwapPlan>> {
        self.check_items::<T>(Some(dtype), Some(&dtype.to_string()), dtype.size(), doing)
    }
}

const FIELD: &str = "select a field";

/// A lazy view of one field of an array of structures. No items are read until a method such as [`read`](Self::read) is
/// called. [`NDArray::field`] and [`NDArrayView::field`] return this view.
///
/// The methods that read items fail with the [errors of reads](NDArray#errors-of-reads). The dtype of `T` is compared
/// with the dtype of the field.
///
/// ```
/// # #[cfg(feature = "derive")] {
/// use blosc2::{Element, NDArray};
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Point {
///     x: f32,
///     y: f32,
/// }
///
/// let points = [Point { x: 1.0, y: 2.0 }, Point { x: 3.0, y: 4.0 }];
/// let array = NDArray::from_slice(&points, 2)?;
/// let y = array.field("y")?;
/// assert_eq!(y.shape(), [2]);
/// assert_eq!(y.read_all::<f32>()?, [2.0, 4.0]);
/// # }
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct NDArrayField<'a> {
    view: NDArrayView<'a>,
    offset: usize,
    dtype: Dtype,
}

/// A mutable view that writes one field of an array of structures. [`NDArray::field_mut`] returns this view.
///
/// The methods that write fail with the [errors of changes](NDArray#errors-of-changes). The dtype of `T` is compared with
/// the dtype of the field.
///
/// ```
/// # #[cfg(feature = "derive")] {
/// use blosc2::{Element, NDArray};
///
/// #[derive(Clone, Copy, Element)]
/// #[repr(C)]
/// struct Point {
///     x: f32,
///     y: f32,
/// }
///
/// let mut array = NDArray::from_slice(&[Point { x: 1.0, y: 2.0 }; 2], 2)?;
/// array.field_mut("y")?.fill(.., 0.0f32)?;
/// assert_eq!(array.field("y")?.read_all::<f32>()?, [0.0, 0.0]);
/// assert_eq!(array.field("x")?.read_all::<f32>()?, [1.0, 1.0]);
/// # }
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct NDArrayFieldMut<'a> {
    array: &'a mut NDArray,
    offset: usize,
    dtype: Dtype,
}

impl NDArrayFieldMut<'_> {
    /// Returns a view of a nested field, if this field is a structure.
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field(self, name: &str) -> Result<Self> {
        let Self { array, offset, dtype } = self;
        let NDArrayField { offset, dtype, .. } =
            NDArrayField { view: array.view(), offset, dtype }.field(name)?;
        Ok(Self { array, offset, dtype })
    }

    /// Returns the dtype of the field.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Writes the field of each selected item, in C order. The other fields of these items are unchanged.
    ///
    /// Each chunk with selected items is decompressed and recompressed once.
    pub fn write<T: Element>(
        &mut self,
        selection: impl Into<Selection>,
        items: &[T],
    ) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?;
        let mut bytes = bytes_of(items);
        if let Some(swapped) = self.array.check_field::<T>(&self.dtype, WRITE)? {
            swapped.apply(bytes.to_mut());
        }
        let len = self.dtype.size();
        let expected = self.array.len_of_items(&region, len, WRITE)?;
        if expected != bytes.len() {
            let (shape, found) = (region.shape(), items.len());
            let detail = format!("the selection has the shape {shape:?}, got {found} items");
            return Err(self.array.schunk.error(ErrorKind::InvalidArgument, WRITE, detail));
        }
        let (items, part) = (Items::Region(&region), self.part());
        match part.len {
            0 => Ok(()),
            _ => self.array.scatter(items, |plan| Source::new(plan, part, &bytes)),
        }
    }

    /// Writes the same value to the field of all selected items.
    pub fn fill<T: Element>(&mut self, selection: impl Into<Selection>, item: T) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?;
        let items = [item];
        let mut bytes = bytes_of(&items);
        if let Some(swapped) = self.array.check_field::<T>(&self.dtype, WRITE)? {
            swapped.apply(bytes.to_mut());
        }
        let (items, part) = (Items::Region(&region), self.part());
        match part.len {
            0 => Ok(()),
            _ => self.array.scatter(items, |plan| Source::repeated(plan, part, &bytes)),
        }
    }

    fn part(&self) -> ItemPart {
        let typesize = self.array.typesize();
        ItemPart { offset: self.offset, len: self.dtype.size(), typesize }
    }
}

impl<'a> NDArrayField<'a> {
    /// Returns a view of a nested field, if this field is a structure.
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field(&self, name: &str) -> Result<Self> {
        let Some(fields) = self.dtype.fields() else {
            let detail = format!("the items are {}, expected structures", self.dtype);
            return Err(self.view.error(ErrorKind::TypeMismatch, FIELD, detail));
        };
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            let detail = format!("there is no field `{name}`; the fields are {}", names.join(", "));
            return Err(self.view.error(ErrorKind::InvalidArgument, FIELD, detail));
        };
        let offset = self.offset + field.offset();
        Ok(Self { view: self.view.clone(), offset, dtype: field.dtype().clone() })
    }

    /// Returns the dtype of the field.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Returns the shape of the array or view that contains the field. If the field is a sub-array,
    /// [`dtype`](Self::dtype) contains the shape of the sub-array.
    pub fn shape(&self) -> Vec<u64> {
        self.view.shape()
    }

    /// Returns a view of this field of the selected items. No items are read.
    ///
    /// # Errors
    /// Fails with the [errors of selections](NDArray#errors-of-selections).
    pub fn slice(&self, selection: impl Into<Selection>) -> Result<Self> {
        let view = self.view.slice(selection)?;
        Ok(Self { view, offset: self.offset, dtype: self.dtype.clone() })
    }

    /// Reads the field of the selected items, in C order.
    pub fn read<T: Element>(&self, selection: impl Into<Selection>) -> Result<Vec<T>> {
        let swapped = self.check_dtype::<T>()?;
        let (array, selected) = (self.view.array, self.slice(selection)?);
        let len = selected.len()?;
        array.schunk.allow(READ, len as u64)?;
        make_items(len / size_of::<T>(), READ, |bytes| selected.read_to(bytes, true, swapped))
    }

    /// Reads the field of all items, in C order.
    pub fn read_all<T: Element>(&self) -> Result<Vec<T>> {
        self.read(..)
    }

    /// Reads the field of the selected items into a buffer of the caller, in C order. The length of the buffer must be
    /// the number of selected items. After an error, the buffer may be partly written.
    pub fn read_into<T: Element>(
        &self,
        selection: impl Into<Selection>,
        items: &mut [T],
    ) -> Result<()> {
        let swapped = self.check_dtype::<T>()?;
        let selected = self.slice(selection)?;
        let (expected, found) = (selected.len()?, size_of_val(items));
        if expected != found {
            let detail =
                format!("the selected items have {expected} bytes, the buffer has {found}");
            return Err(self.view.error(ErrorKind::InvalidArgument, READ, detail));
        }
        with_bytes_mut(items, |bytes| selected.read_to(bytes, false, swapped))
    }

    /// Reads the field of the selected items as uncompressed bytes, in the byte order of the field.
    pub fn read_bytes(&self, selection: impl Into<Selection>) -> Result<Vec<u8>> {
        let selected = self.slice(selection)?;
        let len = selected.len()?;
        self.view.array.schunk.allow(READ, len as u64)?;
        let mut bytes = zeroed(len, READ)?;
        selected.read_to(&mut bytes, true, None)?;
        Ok(bytes)
    }

    pub(super) fn view(&self) -> &NDArrayView<'a> {
        &self.view
    }

    /// Returns the part of each item that contains the field.
    pub(super) fn part(&self) -> ItemPart {
        let typesize = self.view.array.typesize();
        ItemPart { offset: self.offset, len: self.dtype.size(), typesize }
    }

    pub(super) fn check_dtype<T: Element>(&self) -> Result<Option<SwapPlan>> {
        self.view.array.check_field::<T>(&self.dtype, READ)
    }

    /// Returns the size in bytes of the field of all items, if it fits in the address space.
    fn len(&self) -> Result<usize> {
        self.view.array.len_of_items(&self.view.region, self.dtype.size(), READ)
    }

    /// Reads the field into a buffer of the length that [`len`](Self::len) returns.
    fn read_to(&self, bytes: &mut [u8], zeros: bool, swapped: Option<SwapPlan>) -> Result<()> {
        let (array, region, part) = (self.view.array, &self.view.region, self.part());
        if part.len == 0 {
            return Ok(());
        }
        array.read_items(Items::Region(region), part, bytes, zeros, swapped)
    }
}
