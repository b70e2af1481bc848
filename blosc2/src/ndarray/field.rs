//! One field of an array of structures.

use super::NDArray;
use super::gather::{ItemPart, READ, Sink};
use super::plan::{Items, c_order};
use super::region::Region;
use super::scatter::{Source, WRITE};
use super::selection::Selection;
use super::view::NDArrayView;
use crate::dtype::SwapPlan;
use crate::element::{Element, bytes_of, make_items, with_bytes_mut, zeroed};
use crate::{Dtype, ErrorKind, Result};

impl NDArray {
    /// A view of one field of an array of structures. NumPy's and Python's `array["name"]`.
    ///
    /// Reading it decompresses the blocks that hold the selected items, and copies the bytes of the field only.
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
    /// - [`ErrorKind::InvalidArgument`]: there is no field of this name; the error names those that there are;
    /// - [`ErrorKind::TypeMismatch`]: the items are no structures, or the dtype is not known.
    pub fn field(&self, name: &str) -> Result<NDArrayField<'_>> {
        self.view().field(name)
    }
}

impl<'a> NDArrayView<'a> {
    /// One field of these items; see [`NDArray::field`].
    ///
    /// # Errors
    /// Those of [`NDArray::field`].
    pub fn field(&self, name: &str) -> Result<NDArrayField<'a>> {
        let array = self.array;
        let Some(dtype) = array.dtype().filter(|dtype| dtype.size() == array.typesize()) else {
            let found = array.dtype_str().unwrap_or("of no dtype");
            let detail = format!("the items are {found}, no structures that are understood");
            return Err(self.error(ErrorKind::TypeMismatch, FIELD, detail));
        };
        let whole = NDArrayField { view: self.clone(), offset: 0, dtype: dtype.clone() };
        whole.field(name)
    }
}

impl NDArray {
    /// One field of an array of structures, to be written.
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
    /// Those of [`field`](Self::field).
    pub fn field_mut(&mut self, name: &str) -> Result<NDArrayFieldMut<'_>> {
        let NDArrayField { offset, dtype, .. } = self.field(name)?;
        Ok(NDArrayFieldMut { array: self, offset, dtype })
    }
}

impl NDArray {
    /// Checks that a field is a `T`, and returns how it is converted where its byte order is not native.
    fn check_field<T: Element>(&self, dtype: &Dtype, doing: &str) -> Result<Option<SwapPlan>> {
        self.check_items::<T>(Some(dtype), Some(&dtype.to_string()), dtype.size(), doing)
    }
}

const FIELD: &str = "select a field";

/// A view of one field of an array of structures, which is read when it is asked for. Made by [`NDArray::field`] and
/// [`NDArrayView::field`].
#[derive(Debug, Clone)]
pub struct NDArrayField<'a> {
    view: NDArrayView<'a>,
    offset: usize,
    dtype: Dtype,
}

/// One field of an array of structures, to be written. Made by [`NDArray::field_mut`].
#[derive(Debug)]
pub struct NDArrayFieldMut<'a> {
    array: &'a mut NDArray,
    offset: usize,
    dtype: Dtype,
}

impl NDArrayFieldMut<'_> {
    /// A field of this field, which is a structure.
    ///
    /// # Errors
    /// Those of [`NDArray::field`].
    pub fn field(self, name: &str) -> Result<Self> {
        let Self { array, offset, dtype } = self;
        let NDArrayField { offset, dtype, .. } =
            NDArrayField { view: array.view(), offset, dtype }.field(name)?;
        Ok(Self { array, offset, dtype })
    }

    /// The dtype of the field.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// Writes the field of the selected items, in C order; their other fields stay.
    ///
    /// Each chunk that the selection touches is decompressed and compressed once.
    ///
    /// # Errors
    /// Those of [`NDArray::write`]; [`ErrorKind::TypeMismatch`] if the dtype of the field is not that of `T`.
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
            let detail = format!("items of the shape {shape:?} are selected, got {found}");
            return Err(self.array.schunk.error(ErrorKind::InvalidArgument, WRITE, detail));
        }
        let strides = c_order(&region.shape(), len);
        // SAFETY: the bytes are borrowed, and as many as the parts of the items in C order have.
        unsafe { self.write_from(&region, &strides, &bytes) }
    }

    /// Writes the same value to the field of all selected items.
    ///
    /// # Errors
    /// Those of [`write`](Self::write).
    pub fn fill<T: Element>(&mut self, selection: impl Into<Selection>, item: T) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?;
        let items = [item];
        let mut bytes = bytes_of(&items);
        if let Some(swapped) = self.array.check_field::<T>(&self.dtype, WRITE)? {
            swapped.apply(bytes.to_mut());
        }
        // All are in the same place.
        let strides = vec![0; region.dims.len()];
        // SAFETY: the bytes are borrowed, and are those of one part, the place of all.
        unsafe { self.write_from(&region, &strides, &bytes) }
    }

    /// # Safety
    /// The bytes are memory for the field of the items of the region at the places that the strides give.
    unsafe fn write_from(
        &mut self,
        region: &Region,
        strides: &[isize],
        bytes: &[u8],
    ) -> Result<()> {
        let len = self.dtype.size();
        if len == 0 {
            return Ok(());
        }
        let part = ItemPart { offset: self.offset, len, typesize: self.array.typesize() };
        // SAFETY: the caller's promise; the bytes are borrowed until all is written.
        unsafe {
            let source = Source::of_part(bytes.as_ptr(), part);
            self.array.scatter(Items::Region(region, strides), source)
        }
    }
}

impl<'a> NDArrayField<'a> {
    /// A field of this field, which is a structure.
    ///
    /// # Errors
    /// Those of [`NDArray::field`].
    pub fn field(&self, name: &str) -> Result<Self> {
        let Some(fields) = self.dtype.fields() else {
            let detail = format!("the items are {}, no structures", self.dtype);
            return Err(self.view.error(ErrorKind::TypeMismatch, FIELD, detail));
        };
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            let detail = format!("there is no field `{name}`; there are {}", names.join(", "));
            return Err(self.view.error(ErrorKind::InvalidArgument, FIELD, detail));
        };
        let offset = self.offset + field.offset();
        Ok(Self { view: self.view.clone(), offset, dtype: field.dtype().clone() })
    }

    /// The dtype of the field.
    pub fn dtype(&self) -> &Dtype {
        &self.dtype
    }

    /// The shape of the array or view; that of a sub-array in the field is a part of its dtype.
    pub fn shape(&self) -> Vec<u64> {
        self.view.shape()
    }

    /// The field of the selected items.
    ///
    /// # Errors
    /// Those of [`NDArrayView::slice`].
    pub fn slice(&self, selection: impl Into<Selection>) -> Result<Self> {
        let view = self.view.slice(selection)?;
        Ok(Self { view, offset: self.offset, dtype: self.dtype.clone() })
    }

    /// Reads the field of the selected items, in C order.
    ///
    /// # Errors
    /// Those of [`NDArray::read`]; [`ErrorKind::TypeMismatch`] where the dtype of the field is not that of `T`.
    pub fn read<T: Element>(&self, selection: impl Into<Selection>) -> Result<Vec<T>> {
        let swapped = self.check_dtype::<T>()?;
        let (array, selected) = (self.view.array, self.slice(selection)?);
        let len = selected.len()?;
        array.schunk.allow(READ, len as u64)?;
        make_items(len / size_of::<T>(), READ, |bytes| selected.read_to(bytes, true, swapped))
    }

    /// Reads the field of all items, in C order.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    pub fn read_all<T: Element>(&self) -> Result<Vec<T>> {
        self.read(..)
    }

    /// Reads the field of the selected items into `items`, whose number is theirs.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and [`ErrorKind::InvalidArgument`] where the numbers differ. `items` may be partly
    /// written then.
    pub fn read_into<T: Element>(
        &self,
        selection: impl Into<Selection>,
        items: &mut [T],
    ) -> Result<()> {
        let swapped = self.check_dtype::<T>()?;
        let selected = self.slice(selection)?;
        let (expected, found) = (selected.len()?, size_of_val(items));
        if expected != found {
            let detail = format!("the selected items have {expected} bytes, the target {found}");
            return Err(self.view.error(ErrorKind::InvalidArgument, READ, detail));
        }
        with_bytes_mut(items, |bytes| selected.read_to(bytes, false, swapped))
    }

    /// Reads the field of the selected items as it is stored, byte order included.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), the dtype apart.
    pub fn read_bytes(&self, selection: impl Into<Selection>) -> Result<Vec<u8>> {
        let selected = self.slice(selection)?;
        let len = selected.len()?;
        self.view.array.schunk.allow(READ, len as u64)?;
        let mut bytes = zeroed(len, READ)?;
        selected.read_to(&mut bytes, true, None)?;
        Ok(bytes)
    }

    fn check_dtype<T: Element>(&self) -> Result<Option<SwapPlan>> {
        self.view.array.check_field::<T>(&self.dtype, READ)
    }

    /// The bytes of the field in all items, if they fit this machine.
    fn len(&self) -> Result<usize> {
        self.view.array.len_of_items(&self.view.region, self.dtype.size(), READ)
    }

    /// Reads it into bytes, which are as many as [`len`](Self::len) says.
    fn read_to(&self, bytes: &mut [u8], zeros: bool, swapped: Option<SwapPlan>) -> Result<()> {
        let (array, region, len) = (self.view.array, &self.view.region, self.dtype.size());
        if len == 0 {
            return Ok(());
        }
        let strides = c_order(&region.shape(), len);
        let part = ItemPart { offset: self.offset, len, typesize: array.typesize() };
        // SAFETY: the bytes are borrowed, and as many as the parts of the items in C order have.
        let sink = unsafe { Sink::of_part(bytes.as_mut_ptr(), zeros, part) };
        // SAFETY: as above; the strides are those of the C order.
        unsafe { array.gather(Items::Region(region, &strides), sink) }?;
        if let Some(swapped) = swapped {
            swapped.apply(bytes);
        }
        Ok(())
    }
}
