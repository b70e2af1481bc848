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

/// A value in the msgpack encoding of python-blosc2, which it uses for metalayers and for arrays of objects. Needs
/// the feature `msgpack`.
///
/// There is a variant for each kind of value that Python writes and reads. Reading what Python wrote and writing
/// it again yields the same bytes.
///
/// [`Metalayers::value`](crate::super_chunk::Metalayers::value) reads a `Value`, and
/// [`Metalayers::get_value`](crate::super_chunk::Metalayers::get_value) any deserializable type.
/// [`MetalayersMut::set_value`](crate::super_chunk::MetalayersMut::set_value) writes a `Value` or any other serializable
/// type. Such types can contain a `Value`.
///
/// [`FromIterator`] creates a list from items of one type, and a map from pairs. A list of items of several types
/// is a [`Value::List`].
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
    /// An integer from -2^63 to 2^64 - 1. Writing another one is an error.
    Int(i128),
    /// A float of 64 bits. Floats of 32 bits are converted when they are read.
    Float(f64),
    /// A string.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// A tuple. In msgpack it is an array whose first item is the string `__tuple__`.
    Tuple(Vec<Self>),
    /// A dictionary, in its order. If a key occurs more than once, the last one counts. Keys can be of any kind
    /// when read; only strings and bytes can be written, since Python reads no others.
    Map(Vec<(Self, Self)>),
    /// A complex number.
    Complex {
        /// The real part.
        re: f64,
        /// The imaginary part.
        im: f64,
    },
    /// A set, in the order of the file.
    Set(Vec<Self>),
    /// A NumPy array.
    Array(ArrayValue),
    /// A NumPy array of the dtype `object`, whose items are values in C order.
    Objects {
        /// The shape of the array.
        shape: Vec<u64>,
        /// The items.
        values: Vec<Self>,
    },
    /// The frame of an array or a super-chunk, for [`NDArray::from_cframe`](crate::NDArray::from_cframe) or
    /// [`SChunk::from_cframe`](crate::SChunk::from_cframe).
    Frame(Vec<u8>),
    /// A description of an object stored elsewhere, or of a computation. It is never followed.
    Reference(Box<Self>),
    /// An extension of another type, and its bytes.
    Ext(i8, Vec<u8>),
}

impl Value {
    /// Parses one value from msgpack.
    ///
    /// The value takes at most 64 times as much memory as `bytes`, in addition to the content of strings and bytes.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the bytes are not msgpack, hold less or more than one value, or are nested
    ///   deeper than 128 levels, or the content of an extension of python-blosc2 is invalid.
    pub fn from_msgpack(bytes: &[u8]) -> Result<Self> {
        let failed = |fault: Fault| {
            Error::new(ErrorKind::InvalidData, "read a value", format!("it is {fault}"))
        };
        read(bytes, u64::MAX).map_err(failed)
    }

    /// Converts a value of any serializable type. Structs become maps, tuples become lists, and integers of 128
    /// bits become their bytes.
    ///
    /// A [`Value`] inside `value` is kept as it is, so that a [`Value::Tuple`] in it becomes a Python tuple.
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
    ///   hold, contains a list that starts with the string `__tuple__` and is not a [`Value::Tuple`], or is nested
    ///   deeper than 128 levels.
    pub fn from_type<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self> {
        Self::of(value).map_err(|fault| {
            let detail = format!("it would be {fault}");
            Error::new(ErrorKind::InvalidArgument, "convert to a value", detail)
        })
    }

    /// Converts a dtype to the description that NumPy uses in msgpack: its string, or for a structure its `descr`,
    /// the list of its fields.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: NumPy has no `descr` for the dtype: it is a sub-array, or a structure
    ///   whose fields overlap or are out of order.
    pub fn from_dtype(dtype: &blosc2_format::Dtype) -> Result<Self> {
        array::descr(dtype).map_err(|what| {
            let detail = format!("it would be {what}");
            Error::new(ErrorKind::InvalidArgument, "describe a dtype", detail)
        })
    }

    /// Writes the value as msgpack, with the same bytes as Python.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: msgpack cannot hold the value, or Python would not read it as the same
    ///   value:
    ///   - an integer is out of range;
    ///   - a string, a list or a map has a length of more than 2^32 - 1;
    ///   - a key of a map is neither a string nor bytes;
    ///   - a set contains an item that is not hashable in Python;
    ///   - a list starts with the string `__tuple__`;
    ///   - an array has a dtype whose fields overlap or are out of order;
    ///   - an extension has the type of another variant, or a type that Python does not accept;
    ///   - the nesting is deeper than 128 levels.
    pub fn to_msgpack(&self) -> Result<Vec<u8>> {
        self.write().map_err(|fault| {
            let detail = format!("it would be {fault}");
            Error::new(ErrorKind::InvalidArgument, "write a value", detail)
        })
    }

    /// Converts the value to any deserializable type.
    ///
    /// Tuples and sets become sequences, complex numbers pairs, NumPy arrays nested sequences, structures in them
    /// maps, dates integers, and frames bytes. Bytes can become a sequence. A [`Value`] inside `T` can be of any
    /// kind.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the value does not have the form of a `T`, contains an array of numbers of
    ///   more than 64 bits, or contains an array with far more items and nested lists than bytes.
    pub fn into_type<T: serde::de::DeserializeOwned>(self) -> Result<T> {
        let failed = |detail: String| Error::new(ErrorKind::TypeMismatch, "read a value", detail);
        self.make_type().map_err(|fault| failed(format!("it is {fault}")))?.map_err(failed)
    }

    /// Converts the description that NumPy uses in msgpack to a dtype; see [`from_dtype`](Self::from_dtype).
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the value does not describe a dtype.
    pub fn to_dtype(&self) -> Result<blosc2_format::Dtype> {
        let failed = |what: String| Error::new(ErrorKind::InvalidData, "read a dtype", what);
        array::from_descr(self).map_err(failed)
    }

    /// Returns the value of a string key, if this is a map that contains it.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        pairs.iter().rfind(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// Returns the string, if the value is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }

    /// Returns the integer, if the value is one from 0 to 2^64 - 1.
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Int(number) = self { (*number).try_into().ok() } else { None }
    }

    /// Returns the items, if the value is a list or a tuple.
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
