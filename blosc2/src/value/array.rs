//! NumPy's arrays as values.

use blosc2_format::dtype::{Dtype, MAX_SUBARRAY_NDIM};

use super::{MAX_DEPTH, Value};
use crate::{Error, ErrorKind, Result};

/// An array of NumPy's in a metalayer or in an array of objects: all of it in memory, not compressed by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
// In a box, as there may be very many values.
pub struct ArrayValue(Box<Parts>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Parts {
    dtype: Dtype,
    shape: Vec<u64>,
    data: Vec<u8>,
}

impl ArrayValue {
    /// An array of items of a type, with their bytes in C order.
    ///
    /// ```
    /// use blosc2::{ArrayValue, Dtype};
    ///
    /// let array = ArrayValue::new(Dtype::parse("<u2")?, vec![2, 1], vec![1, 0, 2, 0])?;
    /// assert_eq!(array.shape(), [2, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: `data` has not as many bytes as there are in items of such a shape; what
    /// NumPy does not read: items without bytes, with pointers, or whose type is a sub-array, more than 64
    /// dimensions; more than 128 levels of dimensions and structures.
    pub fn new(dtype: Dtype, shape: Vec<u64>, data: Vec<u8>) -> Result<Self> {
        let failed = |detail| Error::new(ErrorKind::InvalidArgument, "make a value", detail);
        Self::checked(dtype, shape, data).map_err(failed)
    }

    /// The error is what it is instead.
    pub(super) fn checked(dtype: Dtype, shape: Vec<u64>, data: Vec<u8>) -> Result<Self, String> {
        if dtype.has_pointers() {
            return Err(format!("an array of {dtype}, which holds pointers and no data"));
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

    /// The type of the items.
    pub fn dtype(&self) -> &Dtype {
        &self.0.dtype
    }

    /// Items along each dimension.
    pub fn shape(&self) -> &[u64] {
        &self.0.shape
    }

    /// The bytes of the items, in C order and as the dtype says.
    pub fn data(&self) -> &[u8] {
        &self.0.data
    }

    /// The type, the shape and the bytes.
    pub fn into_parts(self) -> (Dtype, Vec<u64>, Vec<u8>) {
        let Parts { dtype, shape, data } = *self.0;
        (dtype, shape, data)
    }
}

/// Sees that NumPy has arrays of so many dimensions. The error is what it is instead.
pub(super) fn check_shape(shape: &[u64]) -> Result<(), String> {
    match shape.len() <= MAX_SUBARRAY_NDIM {
        true => Ok(()),
        false => Err(format!("an array of {} dimensions", shape.len())),
    }
}

/// How many items an array of this shape has.
pub(super) fn items_of(shape: &[u64]) -> Option<u64> {
    match shape.contains(&0) {
        true => Some(0),
        false => shape.iter().try_fold(1, |items: u64, &side| items.checked_mul(side)),
    }
}

/// Levels of structures and dimensions in an item.
fn levels(dtype: &Dtype) -> usize {
    if let Some((item, shape)) = dtype.subarray() {
        return shape.len() + levels(item);
    }
    let fields = dtype.fields().map(|fields| fields.iter().map(|field| levels(field.dtype())));
    fields.map_or(0, |levels| 1 + levels.max().unwrap_or(0))
}

/// A dtype as NumPy describes it to msgpack.
pub(super) fn dtype_value(dtype: &Dtype) -> Result<Value, String> {
    let key = if dtype.fields().is_some() { "descr" } else { "str" };
    Ok(Value::from([(key, descr(dtype)?)]))
}

/// The dtype of such a description. The error is what it is instead.
pub(super) fn dtype_of(value: &Value) -> Result<Dtype, String> {
    match (value.get("str"), value.get("descr")) {
        (Some(text @ Value::Str(_)), _) => from_descr(text),
        (None, Some(list @ Value::List(_))) => from_descr(list),
        _ => Err("an array without a dtype".to_owned()),
    }
}

/// The dtype of NumPy's `descr`: a text, or a list of fields.
pub(super) fn from_descr(value: &Value) -> Result<Dtype, String> {
    let read = match value {
        Value::Str(text) => Dtype::parse(text),
        list if is_description(list) => Dtype::from_descr(&list.to_string()),
        _ => return Err("of a type that is no text and no list of fields".to_owned()),
    };
    let dtype = read.map_err(|error| format!("of an unknown type: {error}"))?;
    // Other notations of structures, whose fields may overlap, and sub-arrays.
    match (value, dtype.kind(), dtype.fields()) {
        (Value::Str(_), Some(_), _) | (Value::List(_), _, Some(_)) => Ok(dtype),
        _ => Err(format!("of the type {dtype}, which is not described as NumPy does it")),
    }
}

/// Whether it is made of nothing else than what describes a type, so that it has a short text.
fn is_description(value: &Value) -> bool {
    match value {
        Value::List(items) | Value::Tuple(items) => items.iter().all(is_description),
        value => matches!(value, Value::Str(_) | Value::Int(_)),
    }
}

/// NumPy's `descr` of a type, or the text of one without fields. The error is what it is instead.
pub(super) fn descr(dtype: &Dtype) -> Result<Value, String> {
    let described = described(dtype)?;
    // A field without a name would be read as padding.
    match from_descr(&described) {
        Ok(read) if read == *dtype => Ok(described),
        _ => Err(format!("of the type {dtype}, which NumPy cannot describe in a list of fields")),
    }
}

/// The fields, and gaps as fields without a name.
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
