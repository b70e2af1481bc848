//! Access to one field of an array of structures.

use super::NDArray;
use super::places::ItemPart;
use super::plan::Items;
use super::scatter::WRITE;
use super::selection::Selection;
use super::view::{Field, NDArrayView};
use super::write::swapped;
use crate::element::Element;
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
        Ok(Self { field: Some(self.find_field(name)?), ..self.clone() })
    }

    fn find_field(&self, name: &str) -> Result<Field> {
        let outer = self.part();
        let Some(dtype) = self.dtype().filter(|dtype| dtype.size() == outer.len) else {
            let found = self.array.dtype_str().unwrap_or("of unknown dtype");
            let detail = format!("the items are {found}, expected structures of a known dtype");
            return Err(self.error(ErrorKind::TypeMismatch, FIELD, detail));
        };
        let Some(fields) = dtype.fields() else {
            let detail = format!("the items are {dtype}, expected structures");
            return Err(self.error(ErrorKind::TypeMismatch, FIELD, detail));
        };
        let Some(field) = fields.iter().find(|field| field.name() == name) else {
            let names: Vec<&str> = fields.iter().map(|field| field.name()).collect();
            let detail = format!("there is no field `{name}`; the fields are {}", names.join(", "));
            return Err(self.error(ErrorKind::InvalidArgument, FIELD, detail));
        };
        Ok(Field { offset: outer.offset + field.offset(), dtype: field.dtype().clone() })
    }
}

impl NDArray {
    /// Returns a mutable view that writes one field of an array of structures. NumPy and Python: `array["name"][...] =
    /// items`. For an example, see [`NDArrayFieldMut`].
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field_mut(&mut self, name: &str) -> Result<NDArrayFieldMut<'_>> {
        let field = self.view().find_field(name)?;
        Ok(NDArrayFieldMut { array: self, field })
    }
}

const FIELD: &str = "select a field";

/// A mutable view that writes one field of an array of structures. [`NDArray::field_mut`] returns this view.
///
/// The methods that write fail with the [errors of changes](NDArray#errors-of-changes). The dtype of `T` is compared
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
    field: Field,
}

impl NDArrayFieldMut<'_> {
    /// Returns a view of a nested field, if this field is a structure.
    ///
    /// # Errors
    /// Fails with the errors of [`NDArray::field`].
    pub fn field(self, name: &str) -> Result<Self> {
        let Self { array, field } = self;
        let field = NDArrayView { field: Some(field), ..array.view() }.find_field(name)?;
        Ok(Self { array, field })
    }

    /// Returns the dtype of the field.
    pub fn dtype(&self) -> &Dtype {
        &self.field.dtype
    }

    /// Writes the field of each selected item, in C order. The other fields of these items are unchanged.
    ///
    /// Each chunk with selected items is decompressed and recompressed once.
    pub fn write<T: Element>(
        &mut self,
        selection: impl Into<Selection>,
        items: &[T],
    ) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?.region;
        let bytes = swapped(items, self.field.check_dtype::<T>(self.array, WRITE)?);
        self.array.write_items(Items::Region(&region), self.part(), &bytes)
    }

    /// Writes the same value to the field of all selected items.
    pub fn fill<T: Element>(&mut self, selection: impl Into<Selection>, item: T) -> Result<()> {
        let region = self.array.select(&selection.into(), WRITE)?.region;
        let items = [item];
        let bytes = swapped(&items, self.field.check_dtype::<T>(self.array, WRITE)?);
        self.array.fill_region(&region, self.part(), &bytes)
    }

    fn part(&self) -> ItemPart {
        self.field.part(self.array.typesize())
    }
}
