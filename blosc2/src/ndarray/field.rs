//! Access to one field of an array of structures.

use super::NDArray;
use super::view::{Field, NDArrayView};
use crate::{Doing, ErrorKind, Reason, Result};

impl NDArray {
    /// Returns a view of one field of an array of structures. NumPy and Python: `array["name"]`.
    ///
    /// A read of a field decompresses entire blocks, but copies only the bytes of the field. To write a field, use
    /// [`Selection::field`](crate::Selection::field).
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
    /// assert_eq!(array.field("celsius")?.read::<Vec<f32>>(-2..)?, [49.0, 49.5]);
    /// # }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: there is no field with this name; the error message lists all fields;
    /// - [`ErrorKind::TypeMismatch`]: the items are not structures, or the dtype is not known ([`NDArray::dtype`]
    ///   returns `None`).
    pub fn field(&self, name: &str) -> Result<NDArrayView<'_>> {
        self.view().field(name)
    }
}

impl NDArrayView<'_> {
    /// Returns a view of one field of the items; see [`NDArray::field`]. If the view contains a field that is a
    /// structure, the result contains a nested field.
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field(&self, name: &str) -> Result<Self> {
        Ok(Self { field: Some(self.find_field(name).doing(FIELD)?), ..self.clone() })
    }

    pub(super) fn find_field(&self, name: &str) -> Result<Field, Reason> {
        let outer = self.part();
        let Some(dtype) = self.dtype().filter(|dtype| dtype.size() == outer.len) else {
            let found = self.array.dtype_str().unwrap_or("of unknown dtype");
            let detail = format!("the items are {found}, expected structures of a known dtype");
            return Err(self.error(ErrorKind::TypeMismatch, detail));
        };
        let Some(fields) = dtype.fields() else {
            let detail = format!("the items are {dtype}, expected structures");
            return Err(self.error(ErrorKind::TypeMismatch, detail));
        };
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            let detail = format!("there is no field `{name}`; the fields are {}", names.join(", "));
            return Err(self.error(ErrorKind::InvalidArgument, detail));
        };
        Ok(Field { offset: outer.offset + field.offset(), dtype: field.dtype().clone() })
    }
}

const FIELD: &str = "select a field";
