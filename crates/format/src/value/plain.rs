//! The plain form of values: lists, maps, numbers, strings and bytes, without the kinds that only Python has.

use std::borrow::Cow;

use crate::dtype::{Dtype, Kind, ScalarDecoder};

use super::Value;
use super::error::Fault;

/// A value or a part of one.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'a> {
    Value(&'a Value),
    Int(i8),
    Float(f64),
    Str(&'a str),
    Bytes(&'a [u8]),
    /// Items of an array: their dtype, their shape, and their bytes.
    Items(&'a Dtype, &'a [u64], &'a [u8]),
    /// Values: the length of the first axis, the lengths of the other axes, and the values.
    Objects(u64, &'a [u64], &'a [Value]),
}

/// The plain form of a node.
pub(super) enum Plain<'a> {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Cow<'a, str>),
    Bytes(&'a [u8]),
    List(List<'a>),
    Map(Map<'a>),
    Ext(i8, &'a [u8]),
}

pub(super) type List<'a> = Box<dyn ExactSizeIterator<Item = Node<'a>> + 'a>;
pub(super) type Map<'a> = Box<dyn ExactSizeIterator<Item = (Node<'a>, Node<'a>)> + 'a>;

impl<'a> Node<'a> {
    /// Values of this shape. If the shape has no axes, the node is the only value.
    pub(super) fn objects(shape: &'a [u64], values: &'a [Value]) -> Self {
        match shape {
            [] => Self::Value(values.first().unwrap_or(&Value::None)),
            [side, inner @ ..] => Self::Objects(*side, inner, values),
        }
    }

    /// Returns the plain form. Tuples, sets, arrays and complex numbers become lists. Structures become maps, frames
    /// become bytes, and a reference becomes its content.
    pub(super) fn plain(self) -> Result<Plain<'a>, Fault> {
        let value = match self {
            Self::Int(number) => return Ok(Plain::Int(number.into())),
            Self::Float(number) => return Ok(Plain::Float(number)),
            Self::Str(text) => return Ok(Plain::Str(text.into())),
            Self::Bytes(bytes) => return Ok(Plain::Bytes(bytes)),
            Self::Items(dtype, [], bytes) => return item(dtype, bytes),
            Self::Items(dtype, [side, inner @ ..], bytes) => {
                let rows = rows(*side, bytes).map(|bytes| Node::Items(dtype, inner, bytes));
                return Ok(Plain::List(Box::new(rows)));
            }
            Self::Objects(side, inner, values) => {
                let rows = rows(side, values).map(|values| Node::objects(inner, values));
                return Ok(Plain::List(Box::new(rows)));
            }
            Self::Value(value) => value,
        };
        Ok(match value {
            Value::None => Plain::None,
            Value::Bool(value) => Plain::Bool(*value),
            Value::Int(number) => Plain::Int(*number),
            Value::Float(number) => Plain::Float(*number),
            Value::Str(text) => Plain::Str(text.into()),
            Value::Bytes(bytes) | Value::Frame(bytes) => Plain::Bytes(bytes),
            Value::List(items) | Value::Tuple(items) | Value::Set(items) => {
                Plain::List(Box::new(items.iter().map(Node::Value)))
            }
            Value::Map(pairs) => {
                let pairs = pairs.iter().map(|(key, value)| (Node::Value(key), Node::Value(value)));
                Plain::Map(Box::new(pairs))
            }
            Value::Complex { re, im } => pair(*re, *im),
            Value::Array(array) => {
                Node::Items(array.dtype(), array.shape(), array.data()).plain()?
            }
            Value::Objects { shape, values } => Node::objects(shape, values).plain()?,
            Value::Reference(value) => Node::Value(value).plain()?,
            Value::Ext(kind, bytes) => Plain::Ext(*kind, bytes),
        })
    }
}

fn pair<'a>(re: f64, im: f64) -> Plain<'a> {
    Plain::List(Box::new([re, im].map(Node::Float).into_iter()))
}

/// The rows of the first axis. The length of this axis is `side`.
fn rows<T>(side: u64, items: &[T]) -> impl ExactSizeIterator<Item = &[T]> {
    let side = usize::try_from(side).unwrap_or(usize::MAX);
    let len = items.len() / side.max(1);
    (0..side).map(move |row| items.get(row * len..(row + 1) * len).unwrap_or_default())
}

fn item<'a>(dtype: &'a Dtype, bytes: &'a [u8]) -> Result<Plain<'a>, Fault> {
    if let Some(fields) = dtype.fields() {
        let pairs = fields.iter().map(|field| {
            let end = field.offset() + field.dtype().size();
            let bytes = bytes.get(field.offset()..end).unwrap_or_default();
            (Node::Str(field.name()), Node::Items(field.dtype(), &[], bytes))
        });
        return Ok(Plain::Map(Box::new(pairs)));
    }
    if let Some((inner, shape)) = dtype.subarray() {
        return Node::Items(inner, shape, bytes).plain();
    }
    let decoder = ScalarDecoder::new(dtype);
    Ok(match (dtype.kind(), dtype.size()) {
        (Some(Kind::Bool), _) => Plain::Bool(decoder.int(bytes) != 0),
        (Some(Kind::Int | Kind::UInt), _) => Plain::Int(decoder.int(bytes)),
        (Some(Kind::DateTime | Kind::TimeDelta), _) => Plain::Int(decoder.time(bytes).into()),
        (Some(Kind::Float), 2 | 4 | 8) => Plain::Float(decoder.float(bytes)),
        (Some(Kind::Complex), 8 | 16) => {
            let (re, im) = decoder.complex(bytes);
            pair(re, im)
        }
        (Some(Kind::Float | Kind::Complex), _) => {
            let what = format!("an array of {dtype}, for which Rust has no number type");
            return Err(Fault::wrong(what));
        }
        (Some(Kind::Unicode), _) => {
            let text: Option<String> = decoder.chars(bytes).map(char::from_u32).collect();
            let text =
                text.ok_or_else(|| Fault::wrong("an array of strings that are not Unicode"))?;
            Plain::Str(text.into())
        }
        (Some(Kind::Bytes), _) => Plain::Bytes(without_zeros(bytes)),
        _ => Plain::Bytes(bytes),
    })
}

impl Value {
    /// Checks that the plain form is not too large. An array of a few bytes can contain any number of lists.
    pub(super) fn check_plain(&self) -> Result<(), Fault> {
        /// The largest number of values in arrays without bytes.
        const FREE: u64 = 1 << 20;
        /// The largest number of values per byte of an array: that of an array with 64 axes of length 1.
        const PER_BYTE: u64 = 65;
        let (values, bytes) = self.plain_len();
        if values > FREE.saturating_add(bytes.saturating_mul(PER_BYTE)) {
            return Err(Fault::TooMany);
        }
        Ok(())
    }

    /// Returns the number of sequences, maps and items that [`into_type`](Self::into_type) creates from the arrays in this
    /// value. A limit counts 64 bytes for each of them, as for a value.
    ///
    /// ```
    /// use blosc2_format::Dtype;
    /// use blosc2_format::value::{ArrayValue, Value};
    ///
    /// let array = ArrayValue::new(Dtype::parse("|u1").unwrap(), vec![2, 3], vec![0; 6])?;
    /// assert_eq!(Value::from(array).count_in_arrays(), 1 + 2 * (1 + 3));
    /// # Ok::<(), blosc2_format::value::ValueError>(())
    /// ```
    pub fn count_in_arrays(&self) -> u64 {
        self.plain_len().0
    }

    /// Returns two sums over all arrays in the value: the number of values in plain form, and the number of bytes. Long
    /// field names count as values, because each item repeats them.
    fn plain_len(&self) -> (u64, u64) {
        let (values, bytes, inner) = match self {
            Self::Array(array) => {
                let values = grid(array.shape(), item_len(array.dtype()));
                (values, array.data().len() as u64, &[][..])
            }
            Self::Objects { shape, values } => (grid(shape, 0), values.len() as u64, &values[..]),
            Self::List(items) | Self::Tuple(items) | Self::Set(items) => (0, 0, &items[..]),
            Self::Reference(value) => (0, 0, std::slice::from_ref(&**value)),
            Self::Map(pairs) => {
                let lens = pairs.iter().flat_map(|(key, value)| [key, value]).map(Self::plain_len);
                return sum(lens, (0, 0));
            }
            _ => return (0, 0),
        };
        sum(inner.iter().map(Self::plain_len), (values, bytes))
    }
}

fn sum(lens: impl Iterator<Item = (u64, u64)>, start: (u64, u64)) -> (u64, u64) {
    lens.fold(start, |sum, each| (sum.0.saturating_add(each.0), sum.1.saturating_add(each.1)))
}

/// The number of lists of a shape plus the number of values in them. One item counts as `item` values.
fn grid(shape: &[u64], item: u64) -> u64 {
    shape.iter().rfold(item, |inner, &side| side.saturating_mul(inner).saturating_add(1))
}

fn item_len(dtype: &Dtype) -> u64 {
    if let Some((item, shape)) = dtype.subarray() {
        return grid(shape, item_len(item));
    }
    dtype.fields().unwrap_or_default().iter().fold(1, |sum, field| {
        let name = 1 + field.name().len() as u64 / 64;
        sum.saturating_add(name).saturating_add(item_len(field.dtype()))
    })
}

/// The bytes of a NumPy string, without the zeros that fill its end.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}
