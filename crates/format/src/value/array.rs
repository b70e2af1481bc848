//! NumPy arrays as values.

use crate::dtype::{Dtype, MAX_SUBARRAY_NDIM};

use super::{MAX_DEPTH, Value, ValueError, ValueErrorKind};

/// A NumPy array inside a [`Value`], uncompressed and in memory.
///
/// ```
/// use blosc2_format::Dtype;
/// use blosc2_format::value::{ArrayValue, Value};
///
/// let array = ArrayValue::new(Dtype::parse("<u2")?, vec![2, 1], vec![1, 0, 2, 0])?;
/// assert_eq!(array.shape(), [2, 1]);
/// let value = Value::from(array);
/// assert_eq!(value.into_type::<Vec<[u16; 1]>>()?, [[1u16], [2]]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
// Boxed to keep `Value` small, since there can be very many values.
pub struct ArrayValue(Box<Parts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    dtype: Dtype,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl ArrayValue {
    /// Creates an array from the bytes of its items. The items are in C order, and have the byte order of the dtype.
    ///
    /// # Errors
    /// - [`ValueErrorKind::InvalidArgument`], in these cases:
    ///   - the length of `data` is not the number of items times the size of the dtype;
    ///   - `shape` has more than 64 dimensions;
    ///   - the number of dimensions plus the nesting depth of the dtype exceeds 128 (each structure and each axis of
    ///     a sub-array adds one level);
    ///   - the items have a size of 0, contain pointers (the dtype `object`), or are sub-arrays: NumPy cannot read
    ///     such an array.
    pub fn new(dtype: Dtype, shape: Vec<u64>, data: Vec<u8>) -> Result<Self, ValueError> {
        let (kind, doing) = (ValueErrorKind::InvalidArgument, "create an array value");
        Self::checked(dtype, shape, data).map_err(|detail| ValueError { kind, doing, detail })
    }

    /// Creates an array. The error completes "it is ...".
    pub(super) fn checked(dtype: Dtype, shape: Vec<u64>, data: Vec<u8>) -> Result<Self, String> {
        if dtype.has_pointers() {
            return Err(format!("an array of {dtype}, which contains pointers instead of data"));
        }
        if dtype.size() == 0 || dtype.subarray().is_some() {
            return Err(format!("an array of {dtype}, which NumPy does not read"));
        }
        check_shape(&shape)?;
        let depth = shape.len() + levels(&dtype);
        if depth > MAX_DEPTH {
            return Err(format!("an array of {depth} levels of dimensions and structures"));
        }
        let nbytes = items_of(&shape).and_then(|items| items.checked_mul(dtype.size() as u64));
        if nbytes != Some(data.len() as u64) {
            let len = data.len();
            return Err(format!("an array of {dtype} and shape {shape:?} with {len} bytes"));
        }
        Ok(Self(Box::new(Parts { dtype, shape, data })))
    }

    /// Returns the dtype of the items.
    pub fn dtype(&self) -> &Dtype {
        &self.0.dtype
    }

    /// Returns the shape.
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    /// Returns the bytes of the items, in C order and in the byte order of the dtype.
    pub fn data(&self) -> &[u8] {
        &self.0.data
    }

    /// Returns the dtype, the shape and the bytes of the items.
    pub fn into_parts(self) -> (Dtype, Vec<u64>, Vec<u8>) {
        let Parts { dtype, shape, data } = *self.0;
        (dtype, shape, data)
    }
}

/// Checks that NumPy supports the number of dimensions. The error completes "it is ...".
pub(super) fn check_shape(shape: &[u64]) -> Result<(), String> {
    match shape.len() <= MAX_SUBARRAY_NDIM {
        true => Ok(()),
        false => Err(format!("an array of {} dimensions", shape.len())),
    }
}

/// The number of items of an array of this shape.
pub(super) fn items_of(shape: &[u64]) -> Option<u64> {
    match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1, |items: u64, &side| items.checked_mul(side)),
    }
}

/// The nesting depth of an item: its levels of structures and axes.
fn levels(dtype: &Dtype) -> usize {
    if let Some((item, shape)) = dtype.subarray() {
        return shape.len() + levels(item);
    }
    let fields = dtype.fields().map(|fields| fields.iter().map(|field| levels(field.dtype())));
    fields.map_or(0, |levels| 1 + levels.max().unwrap_or(0))
}

/// The map that describes a dtype inside an array in msgpack.
pub(super) fn dtype_value(dtype: &Dtype) -> Result<Value, String> {
    let key = if dtype.fields().is_some() { "descr" } else { "str" };
    Ok(Value::from([(key, descr(dtype)?)]))
}

/// The dtype that such a map describes. The error completes "it is ...".
pub(super) fn dtype_of(value: &Value) -> Result<Dtype, String> {
    match (value.get("str"), value.get("descr")) {
        (Some(text @ Value::Str(_)), _) => from_descr(text),
        (None, Some(list @ Value::List(_))) => from_descr(list),
        _ => Err("an array without a dtype".to_owned()),
    }
}

/// The dtype of a NumPy `descr`: a string, or a list of fields.
pub(super) fn from_descr(value: &Value) -> Result<Dtype, String> {
    let read = match value {
        Value::Str(text) => Dtype::parse(text),
        list if is_description(list) => Dtype::from_descr(&list.to_string()),
        _ => return Err("of a dtype that is neither a string nor a list of fields".to_owned()),
    };
    let dtype = read.map_err(|error| format!("of an unknown type: {error}"))?;
    // Rejects sub-arrays, and other notations of structures, in which fields may overlap.
    match (value, dtype.kind(), dtype.fields()) {
        (Value::Str(_), Some(_), _) | (Value::List(_), _, Some(_)) => Ok(dtype),
        _ => Err(format!("of the type {dtype}, which is not in the notation of NumPy")),
    }
}

/// Whether the value contains only lists, tuples, strings and integers, as the description of a dtype does. Its text is
/// then short.
fn is_description(value: &Value) -> bool {
    match value {
        Value::List(items) | Value::Tuple(items) => items.iter().all(is_description),
        value => matches!(value, Value::Str(_) | Value::Int(_)),
    }
}

/// The NumPy `descr` of a dtype with fields, or the string of any other dtype. The error completes "it is ...".
pub(super) fn descr(dtype: &Dtype) -> Result<Value, String> {
    let described = described(dtype)?;
    // A field without a name would be read as padding.
    match from_descr(&described) {
        Ok(read) if read == *dtype => Ok(described),
        _ => Err(format!("of the type {dtype}, which NumPy cannot describe in a list of fields")),
    }
}

/// The fields of a dtype. A gap between fields is a field with an empty name.
fn described(dtype: &Dtype) -> Result<Value, String> {
    let Some(fields) = dtype.fields() else { return Ok(dtype.to_string().into()) };
    let mut list = Vec::new();
    let mut end = 0;
    let mut gap = |list: &mut Vec<Value>, start: usize, next: usize| {
        let len = start.checked_sub(std::mem::replace(&mut end, next));
        let overlap = || format!("of the type {dtype}, whose fields overlap or are out of order");
        if let len @ 1.. = len.ok_or_else(overlap)? {
            list.push(Value::Tuple(vec!["".into(), format!("|V{len}").into()]));
        }
        Ok::<_, String>(())
    };
    for field in fields {
        gap(&mut list, field.offset(), field.offset() + field.dtype().size())?;
        let name = match field.title() {
            Some(title) => Value::Tuple(vec![title.into(), field.name().into()]),
            None => field.name().into(),
        };
        let (item, shape) = field.dtype().subarray().unwrap_or((field.dtype(), &[]));
        let mut entry = vec![name, described(item)?];
        if !shape.is_empty() {
            entry.push(Value::Tuple(shape.iter().map(|&side| side.into()).collect()));
        }
        list.push(Value::Tuple(entry));
    }
    gap(&mut list, dtype.size(), dtype.size())?;
    Ok(Value::List(list))
}
