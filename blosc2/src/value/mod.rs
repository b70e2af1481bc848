//! Values in metalayers and in arrays of objects: msgpack with the extensions of python-blosc2.

mod array;
mod de;
mod plain;
mod read;
mod ser;
mod text;
mod write;

pub use array::ArrayValue;
pub(crate) use read::{Fault, read, read_next};

use crate::{Error, ErrorKind, Result};

/// The deepest nesting of values.
const MAX_DEPTH: usize = 128;
/// The memory that a value takes in addition to its content, in bytes.
pub(crate) const VALUE_SIZE: u64 = 64;
const _: () = assert!(size_of::<Value>() as u64 <= VALUE_SIZE);
/// The item that Python writes before the items of a tuple.
const TUPLE: &str = "__tuple__";

/// The msgpack extension types that python-blosc2 defines.
mod ext {
    pub(super) const FRAME: i8 = 42;
    pub(super) const REFERENCE: i8 = 43;
    pub(super) const COMPLEX: i8 = 44;
    pub(super) const SET: i8 = 45;
    pub(super) const ARRAY: i8 = 46;
}

/// A Python value, as python-blosc2 encodes it in msgpack for metalayers and for arrays of objects. Needs the feature
/// `msgpack`.
///
/// There is a variant for each kind of value that python-blosc2 writes and reads. For a value that python-blosc2 can
/// write and read back, this crate writes the same bytes as python-blosc2.
///
/// [`Metalayers::value`](crate::super_chunk::Metalayers::value) reads a `Value`, and
/// [`Metalayers::get_value`](crate::super_chunk::Metalayers::get_value) any deserializable type.
/// [`MetalayersMut::set_value`](crate::super_chunk::MetalayersMut::set_value) writes a `Value` or any other
/// serializable type, such as a struct with a field of type `Value`.
///
/// [`collect`](Iterator::collect) creates a list from items of one type, and a map from pairs of a key and a value. To
/// create a list of items of several types, convert each to a `Value` and use [`Value::List`].
/// ```
/// use blosc2::Value;
///
/// let list = Value::from_iter([1, 2]);
/// assert_eq!(list, Value::List(vec![Value::Int(1), Value::Int(2)]));
/// let map: Value = ["lat", "lon"].into_iter().zip([46.5, 8.0]).collect();
/// assert_eq!(map.get("lon"), Some(&Value::Float(8.0)));
/// let mixed = Value::List(vec![1.into(), "two".into(), list]);
/// assert_eq!(mixed.as_list().unwrap()[1].as_str(), Some("two"));
/// ```
///
/// ```
/// use blosc2::{CParams, SChunk, Value};
///
/// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
/// let place = Value::Tuple(vec!["here".into(), 1.5.into(), Value::Complex { re: 0.0, im: 1.0 }]);
/// schunk.vlmeta_mut().set_value("place", &place)?; // Python: schunk.vlmeta["place"] = ("here", 1.5, 1j)
/// assert_eq!(schunk.vlmeta().value("place")?, Some(place));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// `None` in Python, nil in msgpack.
    None,
    /// A boolean.
    Bool(bool),
    /// An integer from -2^63 to 2^64 - 1. Writing an integer outside this range is an error.
    Int(i128),
    /// A 64-bit float. 32-bit floats are converted when they are read.
    Float(f64),
    /// A string.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// A tuple. python-blosc2 encodes it as a msgpack array whose first item is the string `__tuple__`.
    Tuple(Vec<Self>),
    /// A dictionary; the pairs keep their order. If a key occurs more than once, its last value applies. A map that is
    /// read can have keys of any kind. A map that is written can only have strings or bytes as keys, since
    /// python-blosc2 reads no others.
    Map(Vec<(Self, Self)>),
    /// A complex number.
    Complex {
        /// The real part.
        re: f64,
        /// The imaginary part.
        im: f64,
    },
    /// A set; the items keep the order in which they are stored.
    Set(Vec<Self>),
    /// A NumPy array.
    Array(ArrayValue),
    /// A NumPy array of the dtype `object`.
    Objects {
        /// The shape of the array.
        shape: Vec<u64>,
        /// The items, in C order.
        values: Vec<Self>,
    },
    /// The frame of an array, a super-chunk or another container of python-blosc2. Open it with
    /// [`NDArray::from_cframe`](crate::NDArray::from_cframe) or [`SChunk::from_cframe`](crate::SChunk::from_cframe).
    Frame(Vec<u8>),
    /// A description of an object that is stored elsewhere, or of a computation. This crate neither opens the object
    /// nor runs the computation.
    Reference(Box<Self>),
    /// Any other msgpack extension: its type and its bytes.
    Ext(i8, Vec<u8>),
}

impl Value {
    /// Parses one value in msgpack.
    ///
    /// The value takes at most 64 times the length of `bytes` of memory, in addition to the content of strings and
    /// bytes.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the bytes are not msgpack, contain less or more than one value, or are nested
    ///   deeper than 128 levels, or the content of an extension of python-blosc2 is invalid.
    pub fn from_msgpack(bytes: &[u8]) -> Result<Self> {
        let failed = |fault: Fault| {
            Error::new(ErrorKind::InvalidData, "read a value", format!("it is {fault}"))
        };
        read(bytes, u64::MAX).map_err(failed)
    }

    /// Converts a value of any serializable type to a `Value`. Structs become maps, tuples become lists, and 128-bit
    /// integers become 16 bytes in big-endian order.
    ///
    /// A [`Value`] inside `value` is not changed. To write a Python tuple, use a [`Value::Tuple`].
    ///
    /// ```
    /// use blosc2::Value;
    ///
    /// let value = Value::from_type(&("a", vec![1.5f32]))?;
    /// assert_eq!(value, Value::List(vec!["a".into(), Value::List(vec![1.5.into()])]));
    /// assert_eq!(value.into_type::<(String, [f64; 1])>()?, ("a".to_owned(), [1.5]));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the value cannot be serialized, contains a `Value` that msgpack cannot
    ///   represent, contains a list that starts with the string `__tuple__` and is not a [`Value::Tuple`], or is nested
    ///   deeper than 128 levels.
    pub fn from_type<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self> {
        Self::of(value).map_err(|fault| {
            let detail = format!("it would be {fault}");
            Error::new(ErrorKind::InvalidArgument, "convert to a value", detail)
        })
    }

    /// Converts a dtype to the value that describes it in msgpack: its string, or its list of fields (NumPy's `descr`)
    /// if it is a structured dtype.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: NumPy has no `descr` for the dtype: it is a sub-array, or a structured dtype
    ///   whose fields overlap, are not in the order of their offsets, or have an empty name.
    pub fn from_dtype(dtype: &blosc2_format::Dtype) -> Result<Self> {
        array::descr(dtype).map_err(|what| {
            let detail = format!("it would be {what}");
            Error::new(ErrorKind::InvalidArgument, "describe a dtype", detail)
        })
    }

    /// Writes the value as msgpack, as the same bytes that python-blosc2 writes.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: msgpack cannot represent the value, or python-blosc2 would not read it as the
    ///   same value:
    ///   - an integer is out of range;
    ///   - a string, bytes, a list, a map or an extension has a length of more than 2^32 - 1;
    ///   - a key of a map is neither a string nor bytes;
    ///   - a set contains an item that is not hashable in Python;
    ///   - a list, a set or the values of a [`Value::Objects`] start with the string `__tuple__`;
    ///   - an array has a dtype for which [`from_dtype`](Self::from_dtype) fails;
    ///   - a [`Value::Objects`] has more than 64 dimensions, or a number of values that does not match its shape;
    ///   - a [`Value::Ext`] has the type of another variant (42 to 46), or a negative type, except -1 (a timestamp)
    ///     with 4, 8 or 12 bytes;
    ///   - the nesting is deeper than 128 levels.
    pub fn to_msgpack(&self) -> Result<Vec<u8>> {
        self.write().map_err(|fault| {
            let detail = format!("it would be {fault}");
            Error::new(ErrorKind::InvalidArgument, "write a value", detail)
        })
    }

    /// Converts the value to any deserializable type.
    ///
    /// Values of these kinds are deserialized as other types:
    /// - tuples and sets: sequences;
    /// - complex numbers: pairs;
    /// - NumPy arrays: nested sequences, with structured items as maps, and dates and times as integers;
    /// - frames: bytes;
    /// - references: the value that they contain;
    /// - other extensions: pairs of their type and their bytes.
    ///
    /// Bytes can also be deserialized as a sequence. A [`Value`] inside `T` receives its part of the value unchanged.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the value does not have the structure of a `T`; it contains an array of floats of
    ///   more than 64 bits, or of strings that are not Unicode; or it contains an array with far more nested sequences
    ///   and items than bytes of data, such as an array of the shape `[2^40, 0]`.
    pub fn into_type<T: serde::de::DeserializeOwned>(self) -> Result<T> {
        let failed = |detail: String| Error::new(ErrorKind::TypeMismatch, "read a value", detail);
        self.make_type().map_err(|fault| failed(format!("it is {fault}")))?.map_err(failed)
    }

    /// Converts the description of a dtype in msgpack to the dtype; see [`from_dtype`](Self::from_dtype).
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the value does not describe a dtype.
    pub fn to_dtype(&self) -> Result<blosc2_format::Dtype> {
        let failed = |what: String| Error::new(ErrorKind::InvalidData, "read a dtype", what);
        array::from_descr(self).map_err(failed)
    }

    /// Returns the value of a string key; `None` if the value is not a map or does not contain the key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        pairs.iter().rfind(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// Returns the string; `None` if the value is not a string.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }

    /// Returns the integer; `None` if the value is not an integer from 0 to 2^64 - 1.
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Int(number) = self { (*number).try_into().ok() } else { None }
    }

    /// Returns the items of a list or a tuple; `None` if the value is neither.
    pub fn as_list(&self) -> Option<&[Self]> {
        if let Self::List(items) | Self::Tuple(items) = self { Some(items) } else { None }
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident),+) => {
        $(impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        })+
    };
}

from!(bool => Bool, i32 => Int, i64 => Int, u32 => Int, u64 => Int, f32 => Float, f64 => Float);
from!(&str => Str, String => Str, Vec<u8> => Bytes, Vec<Value> => List, ArrayValue => Array);

impl<const N: usize, K: Into<Value>> From<[(K, Value); N]> for Value {
    fn from(pairs: [(K, Value); N]) -> Self {
        Self::Map(pairs.into_iter().map(|(key, value)| (key.into(), value)).collect())
    }
}

/// Creates a [`Value::List`].
impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// Creates a [`Value::Map`] from pairs of a key and a value.
impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::Map(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}
