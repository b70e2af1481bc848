//! Values in metalayers and in arrays of objects, encoded as msgpack with the extensions of python-blosc2.

mod array;
mod de;
mod error;
mod plain;
mod read;
mod ser;
mod text;
mod write;

pub use array::ArrayValue;
pub use error::{ValueError, ValueErrorKind};

use crate::Dtype;
use error::Fault;

/// The maximum number of nested levels of values.
const MAX_DEPTH: usize = 128;
const _: () = assert!(size_of::<Value>() as u64 <= Value::MEMORY);
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

/// A Python value that python-blosc2 encodes as msgpack, in a metalayer or in an array of objects.
///
/// There is a variant for each kind of value that python-blosc2 writes and reads. If python-blosc2 can write a value
/// and read it back, this crate writes the same bytes as python-blosc2.
///
/// [`collect`](Iterator::collect) creates a list from items of one type, or a map from pairs of a key and a value. To
/// create a list of items of several types, convert each item to a `Value` and use [`Value::List`].
/// ```
/// use blosc2_format::value::Value;
///
/// let list = Value::from_iter([1, 2]);
/// assert_eq!(list, Value::List(vec![Value::Int(1), Value::Int(2)]));
/// let map: Value = ["lat", "lon"].into_iter().zip([46.5, 8.0]).collect();
/// assert_eq!(map.get("lon"), Some(&Value::Float(8.0)));
/// let mixed = Value::List(vec![1.into(), "two".into(), list]);
/// assert_eq!(mixed.as_list().unwrap()[1].as_str(), Some("two"));
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
    /// A dictionary, as pairs of a key and a value. The order of the pairs does not change. If a key occurs more than
    /// once, the last value applies. Reading accepts keys of any kind. Writing accepts only strings and bytes as keys,
    /// because python-blosc2 cannot read other keys.
    Map(Vec<(Self, Self)>),
    /// A complex number.
    Complex {
        /// The real part.
        re: f64,
        /// The imaginary part.
        im: f64,
    },
    /// A set. The items are in the order in which they are stored.
    Set(Vec<Self>),
    /// A NumPy array.
    Array(ArrayValue),
    /// A NumPy array with the dtype `object`.
    Objects {
        /// The shape of the array.
        shape: Vec<u64>,
        /// The items, in C order.
        values: Vec<Self>,
    },
    /// A contiguous frame: the bytes of an array, a super-chunk or another container of python-blosc2.
    Frame(Vec<u8>),
    /// A description of a computation, or of an object that is stored elsewhere. This crate does not run the
    /// computation or open the object.
    Reference(Box<Self>),
    /// Any other msgpack extension: its type number and its bytes.
    Ext(i8, Vec<u8>),
}

impl Value {
    /// The memory in bytes that limits count for each value, without the content of strings and bytes.
    pub const MEMORY: u64 = 64;

    /// Decodes one value from msgpack.
    ///
    /// The value takes up to 64 bytes of memory for each byte of `bytes`, in addition to the memory for the content of
    /// strings and bytes.
    ///
    /// # Errors
    /// - [`ValueErrorKind::InvalidData`], in these cases:
    ///   - the bytes are not msgpack;
    ///   - the bytes do not contain exactly one value;
    ///   - the value has more than 128 nested levels;
    ///   - the content of an extension of python-blosc2 is invalid.
    pub fn from_msgpack(bytes: &[u8]) -> Result<Self, ValueError> {
        Self::from_msgpack_within(bytes, u64::MAX)
    }

    /// Decodes one value from msgpack, if the value takes at most `max_memory` bytes of memory. Each [value](Self::count)
    /// counts as 64 bytes.
    ///
    /// ```
    /// use blosc2_format::value::{Value, ValueErrorKind};
    ///
    /// let bytes = Value::List(vec![Value::None; 1000]).to_msgpack()?;
    /// let error = Value::from_msgpack_within(&bytes, 64 * 1000).unwrap_err();
    /// assert_eq!(error.kind, ValueErrorKind::TooLarge);
    /// assert!(Value::from_msgpack_within(&bytes, 64 * 1001).is_ok());
    /// # Ok::<(), blosc2_format::value::ValueError>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`from_msgpack`](Self::from_msgpack), and with
    /// - [`ValueErrorKind::TooLarge`]: the value takes more memory.
    pub fn from_msgpack_within(bytes: &[u8], max_memory: u64) -> Result<Self, ValueError> {
        read::read(bytes, max_memory / Self::MEMORY).map_err(Fault::of_read)
    }

    /// Decodes the start of one value from msgpack, for a preview of a large value.
    ///
    /// The result has at most `most` values, including the values in lists and maps, and at most `most` bytes of each
    /// string. What follows is neither decoded nor checked. Arrays, sets and references are decoded completely.
    ///
    /// ```
    /// use blosc2_format::value::Value;
    ///
    /// let large = Value::List(vec![7u64.into(); 1_000_000]).to_msgpack()?;
    /// assert_eq!(Value::start_of_msgpack(&large, 4)?, Value::List(vec![7u64.into(); 3]));
    /// # Ok::<(), blosc2_format::value::ValueError>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`from_msgpack`](Self::from_msgpack) that the decoded bytes cause.
    pub fn start_of_msgpack(bytes: &[u8], most: usize) -> Result<Self, ValueError> {
        read::read_start(bytes, most).map_err(Fault::of_read)
    }

    /// Converts a dtype to its description in msgpack: its string, or for a structured dtype its list of fields
    /// (`descr` in NumPy).
    ///
    /// # Errors
    /// - [`ValueErrorKind::InvalidArgument`]: NumPy has no `descr` for the dtype, because the dtype is a sub-array, or
    ///   because fields overlap, are not in the order of their offsets, or have an empty name.
    pub fn from_dtype(dtype: &Dtype) -> Result<Self, ValueError> {
        array::descr(dtype).map_err(|what| Fault::Wrong(what).of_write("describe a dtype"))
    }

    /// Returns the number of values that decoding creates: this value and all values inside it, including those that
    /// describe a set or an array. Limits count [`MEMORY`](Self::MEMORY) bytes for each of them.
    ///
    /// ```
    /// use blosc2_format::value::Value;
    ///
    /// assert_eq!(Value::from(5).count(), 1);
    /// assert_eq!(Value::from([("a", Value::from_iter([1, 2, 3]))]).count(), 6);
    /// ```
    pub fn count(&self) -> u64 {
        let of_all = |items: &[Self]| items.iter().map(Self::count).sum::<u64>();
        1 + match self {
            Self::List(items) => of_all(items),
            // The mark of a tuple, and the list in a set.
            Self::Tuple(items) | Self::Set(items) => 1 + of_all(items),
            Self::Map(pairs) => pairs.iter().map(|(key, item)| key.count() + item.count()).sum(),
            Self::Reference(value) => value.count(),
            // Maps with a shape, and a dtype and data or a list of values.
            Self::Array(array) => {
                let dtype = array::dtype_value(array.dtype()).map_or(1, |dtype| dtype.count());
                6 + array.shape().len() as u64 + dtype
            }
            Self::Objects { shape, values } => 5 + shape.len() as u64 + of_all(values),
            _ => 0,
        }
    }

    /// Converts the description of a dtype in msgpack to a dtype; see [`from_dtype`](Self::from_dtype).
    ///
    /// # Errors
    /// - [`ValueErrorKind::InvalidData`]: the value does not describe a dtype.
    pub fn to_dtype(&self) -> Result<Dtype, ValueError> {
        array::from_descr(self).map_err(|detail| ValueError {
            kind: ValueErrorKind::InvalidData,
            doing: "read a dtype",
            detail,
        })
    }

    /// Returns the value of the key `key` in a map; `None` if this value is not a map or does not contain the key.
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

    /// Returns the items of a list or a tuple; `None` for any other kind of value.
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
