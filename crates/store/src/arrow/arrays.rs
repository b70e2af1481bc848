//! Arrays of items as Arrow arrays, and back.

use std::ops::{Range, RangeBounds};

use crate::blosc2::{
    Dtype, Error, ErrorKind, NDArray, NDArrayBuilder, RawItems, Result, Selection,
};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use arrow_schema::Field;

use super::dtypes::items_field;
use super::items::{Items, array_of, items_of};
use crate::ranges::range_of;
use crate::tag::error;

const TO: &str = "convert an array to Arrow";
const FROM: &str = "convert from Arrow to an array";

/// Returns an Arrow field with the type of the rows of an array. A row consists of all items with the same index on the
/// first axis.
///
/// The metadata of the field describe two properties that the Arrow type cannot express: complex numbers; and the shape
/// of rows with several axes, as the extension type `arrow.fixed_shape_tensor`.
///
/// # Errors
/// - [`ErrorKind::Unsupported`]: the dtype of the array is unknown, or has no Arrow type;
/// - [`ErrorKind::InvalidArgument`]: the array has no axes;
/// - [`ErrorKind::InvalidData`]: the typesize of the array differs from the size of its dtype.
///
/// ```
/// use arrow_schema::DataType;
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1.5f32, 2.5, 3.5, 4.5, 5.5, 6.5], &[3, 2])?;
/// let field = blosc2_store::arrow::field("point", &array)?;
/// assert!(matches!(field.data_type(), DataType::FixedSizeList(item, 2) if *item.data_type() == DataType::Float32));
/// assert_eq!(field.extension_type_name(), Some("arrow.fixed_shape_tensor"));
/// assert_eq!(field.extension_type_metadata(), Some(r#"{"shape":[2]}"#));
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn field(name: &str, array: &NDArray) -> Result<Field> {
    let dtype = dtype_of(array)?;
    let [_, inner @ ..] = array.shape() else {
        return Err(failed(array, ErrorKind::InvalidArgument, "it has no axes, expected rows"));
    };
    items_field(name, dtype, inner, false)
        .map_err(|detail| failed(array, ErrorKind::Unsupported, detail))
}

/// Reads rows of an array (a range of the first axis) as an Arrow array. [`field`] returns the Arrow type.
///
/// Numbers are converted to native byte order. Numbers that are stored in native byte order are decompressed directly
/// into the Arrow array, without a copy. The value NaT (not a time) of dates and durations becomes null.
///
/// # Errors
/// - The errors of [`field`];
/// - [`ErrorKind::OutOfBounds`]: the range extends beyond the number of rows;
/// - [`ErrorKind::InvalidData`]: a chunk is damaged, or a string contains an invalid character;
/// - [`ErrorKind::TooLarge`]: the rows take more memory than
///   [`OpenOptions::max_read`](blosc2::OpenOptions::max_read) allows;
/// - [`ErrorKind::Io`]: the file cannot be read.
///
/// ```
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Int32Type;
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[3, 1, 4, 1, 5], &[5])?;
/// let items = blosc2_store::arrow::to_arrow(&array, 1..4)?;
/// assert_eq!(items.as_primitive::<Int32Type>().values()[..], [1, 4, 1]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn to_arrow(array: &NDArray, rows: impl RangeBounds<u64>) -> Result<ArrayRef> {
    let field = field("item", array)?;
    let nrows = array.shape()[0];
    let Range { start, end } = range_of(&rows, nrows);
    if start > end || end > nrows {
        let detail = format!("there are {nrows} rows, asked for {start}..{end}");
        return Err(failed(array, ErrorKind::OutOfBounds, detail));
    }
    let bytes = array.read::<RawItems>(start..end)?.0;
    array_from_bytes(array, &field, &array.shape()[1..], (end - start) as usize, bytes)
}

/// Reads the selected items of an array as an Arrow array, in C order. The Arrow type is that of single items, without the
/// axes of the array. Points and masks are selections, too; fields are not.
///
/// # Errors
/// - [`ErrorKind::Unsupported`]: the dtype of the array is unknown, or has no Arrow type;
/// - the errors of [`NDArray::read`] and [`to_arrow`].
///
/// ```
/// use arrow_array::cast::AsArray;
/// use arrow_array::types::Int32Type;
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1, 2, 3, 4, 5, 6], &[2, 3])?;
/// let items = blosc2_store::arrow::items_to_arrow(&array, (.., 1..3))?;
/// assert_eq!(items.as_primitive::<Int32Type>().values()[..], [2, 3, 5, 6]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn items_to_arrow(array: &NDArray, selection: impl Into<Selection>) -> Result<ArrayRef> {
    let field = item_field("item", array)?;
    let bytes = array.read::<RawItems>(selection)?.0;
    let len = bytes.len() / array.typesize().max(1);
    array_from_bytes(array, &field, &[], len, bytes)
}

/// Returns an Arrow field with the type of single items of an array, as [`items_to_arrow`] returns them.
///
/// # Errors
/// Fails with the errors of [`field`](fn@field), except those about axes.
pub fn item_field(name: &str, array: &NDArray) -> Result<Field> {
    let dtype = dtype_of(array)?;
    items_field(name, dtype, &[], false)
        .map_err(|detail| failed(array, ErrorKind::Unsupported, detail))
}

fn failed(array: &NDArray, kind: ErrorKind, detail: impl ToString) -> Error {
    error(array.schunk(), kind, TO, detail)
}

/// The dtype of an array whose items have the size of the dtype.
fn dtype_of(array: &NDArray) -> Result<&Dtype> {
    let dtype = array.dtype().ok_or_else(|| {
        let detail = format!("its dtype {:?} is not known", array.dtype_str());
        failed(array, ErrorKind::Unsupported, detail)
    })?;
    if dtype.size() != array.typesize() {
        let (typesize, size) = (array.typesize(), dtype.size());
        let detail =
            format!("its typesize is {typesize}, but items of its dtype have {size} bytes");
        return Err(failed(array, ErrorKind::InvalidData, detail));
    }
    Ok(dtype)
}

/// Converts the bytes of rows, in the byte order of the array, to an Arrow array.
fn array_from_bytes(
    array: &NDArray,
    field: &Field,
    inner: &[u64],
    len: usize,
    mut bytes: Vec<u8>,
) -> Result<ArrayRef> {
    let dtype = dtype_of(array)?;
    if !dtype.is_native() {
        let plan = dtype.swap_plan();
        let plan = plan.map_err(|error| failed(array, ErrorKind::InvalidData, error))?;
        plan.apply(&mut bytes);
    }
    array_of(field, &dtype.to_native(), inner, len, bytes, None)
        .map_err(|(kind, detail)| failed(array, kind, detail))
}

/// Reads rows of a one-dimensional array of structures as a record batch. Each field of the structures is a column.
///
/// # Errors
/// - [`ErrorKind::TypeMismatch`]: the items are not structures, or the array has several axes;
/// - the errors of [`to_arrow`].
///
/// ```
/// use blosc2::{NDArray, RawItems};
///
/// let bytes = [1, 0, 0, 0, 7, 2, 0, 0, 0, 8];
/// let array = NDArray::builder().dtype("[('id', '<i4'), ('level', 'u1')]", 5).from_slice(RawItems(&bytes), &[2])?;
/// let batch = blosc2_store::arrow::to_record_batch(&array, ..)?;
/// assert_eq!((batch.num_rows(), batch.schema().field(1).name().as_str()), (2, "level"));
///
/// let back = blosc2_store::arrow::from_record_batch(NDArray::builder(), &batch)?;
/// assert_eq!(back.read::<RawItems>(..)?.0, bytes);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn to_record_batch(array: &NDArray, rows: impl RangeBounds<u64>) -> Result<RecordBatch> {
    let is_structure = array.dtype().is_some_and(|dtype| dtype.fields().is_some());
    if array.ndim() != 1 || !is_structure {
        let dtype = array.dtype_str().unwrap_or("unknown items");
        let detail = format!(
            "an array of {dtype} and shape {:?}, expected structures and one dimension",
            array.shape()
        );
        return Err(failed(array, ErrorKind::TypeMismatch, detail));
    }
    Ok(RecordBatch::from(to_arrow(array, rows)?.as_struct()))
}

/// Creates an array from an Arrow array. Each item of the Arrow array becomes a row. The argument `field` is the Arrow
/// field of the Arrow array. Its metadata can describe a shape or complex numbers, as explained at the function
/// [`field`](fn@field).
///
/// Strings get the dtype `<U`, and byte strings the dtype `|S`, with the length of the longest string. Nulls in arrays
/// of dates and durations become NaT (not a time).
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`], in one of these cases:
///   - no dtype exists for the Arrow type, such as variable-length lists, dictionaries and timestamps with a time zone;
///   - the Arrow array has nulls, and its items are not dates or durations;
///   - a string ends with a zero character or byte;
///   - a parameter of the builder is invalid;
/// - [`ErrorKind::TooLarge`]: the strings, each with the length of the longest one, take more than 1 GiB of memory and
///   more than 256 times the memory of the Arrow array;
/// - the errors of [`NDArrayBuilder::from_slice`].
///
/// ```
/// use arrow_array::{Array, Int16Array};
/// use arrow_schema::{DataType, Field};
/// use blosc2::NDArray;
///
/// let items = Int16Array::from(vec![3, 1, 4]);
/// let field = Field::new("item", DataType::Int16, false);
/// let array = blosc2_store::arrow::from_arrow(NDArray::builder(), &field, &items)?;
/// assert_eq!(array.read::<Vec<i16>>(..)?, [3, 1, 4]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub fn from_arrow(builder: NDArrayBuilder, field: &Field, array: &dyn Array) -> Result<NDArray> {
    let invalid = |detail| Error::new(ErrorKind::InvalidArgument, FROM, detail);
    if field.data_type() != array.data_type() {
        let (found, expected) = (array.data_type(), field.data_type());
        return Err(invalid(format!("an array of the type {found}, but a field of {expected}")));
    }
    let Items { dtype, shape, bytes } =
        items_of(field, array, false).map_err(|(kind, detail)| match kind {
            ErrorKind::TypeMismatch => invalid(detail),
            kind => Error::new(kind, FROM, detail),
        })?;
    let shape = [&[array.len() as u64][..], &shape].concat();
    builder.dtype(&dtype.to_string(), dtype.size()).from_slice(RawItems(bytes), &shape)
}

/// Creates an array of structures from a record batch. Each column becomes a field. The structures have no padding
/// between fields.
///
/// # Errors
/// Fails with the errors of [`from_arrow`].
pub fn from_record_batch(builder: NDArrayBuilder, batch: &RecordBatch) -> Result<NDArray> {
    let structures = StructArray::from(batch.clone());
    let field = Field::new("item", structures.data_type().clone(), false);
    from_arrow(builder, &field, &structures)
}
