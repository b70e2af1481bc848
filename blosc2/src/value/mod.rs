//! Values as Python keeps them in metalayers and in arrays of objects: msgpack, with extensions of its own.

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

/// How deep values may lie in each other.
const MAX_DEPTH: usize = 128;
/// Bytes that a value takes in memory beside its content.
pub(crate) const VALUE_SIZE: u64 = 64;
const _: () = assert!(size_of::<Value>() as u64 <= VALUE_SIZE);
/// What Python puts before the items of a tuple.
const TUPLE: &str = "__tuple__";

/// The types of extension that Python's blosc2 gives a meaning.
mod ext {
    pub(super) const FRAME: i8 = 42;
    pub(super) const REFERENCE: i8 = 43;
    pub(super) const COMPLEX: i8 = 44;
    pub(super) const SET: i8 = 45;
    pub(super) const ARRAY: i8 = 46;
}

/// A value as Python's blosc2 writes it: what its metalayers hold, and its arrays of objects.
///
/// All that Python writes there and reads again has a variant, and is written again to the same bytes. Read by
/// [`Metalayers::value`](crate::super_chunk::Metalayers::value), written by
/// [`MetalayersMut::set_value`](crate::super_chunk::MetalayersMut::set_value), which take the program's own types too; a
/// part of those may be a value.
///
/// Values are collected from an iterator, or made with `from_iter`: a list of items of one type, a map of pairs. A list of
/// items of several types is a [`Value::List`].
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
    /// Nothing: `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer from -2^63 to 2^64 - 1; others cannot be written.
    Int(i128),
    /// A number of 64 bits; single ones are read too.
    Float(f64),
    /// A text.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A list.
    List(Vec<Self>),
    /// A tuple, which msgpack knows only as an array that starts with the text `__tuple__`.
    Tuple(Vec<Self>),
    /// A dictionary, in its order; of equal keys the last one counts. Keys other than texts and bytes are read,
    /// but Python reads no others, so they are not written.
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
    /// An array of NumPy's.
    Array(ArrayValue),
    /// An array of NumPy's whose items are values, in C order.
    Objects {
        /// Items along each dimension.
        shape: Vec<u64>,
        /// The items.
        values: Vec<Self>,
    },
    /// A frame: an array or a super-chunk, for [`NDArray::from_cframe`](crate::NDArray::from_cframe) or
    /// [`SChunk::from_cframe`](crate::SChunk::from_cframe).
    Frame(Vec<u8>),
    /// A description of something that lies elsewhere, or of a computation. It is never followed.
    Reference(Box<Self>),
    /// An extension of another type than those, with its bytes.
    Ext(i8, Vec<u8>),
}

impl Value {
    /// Reads one value from msgpack.
    ///
    /// It takes up to 64 times as much memory as its bytes, besides what texts and bytes hold.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it is not msgpack, not one value, deeper than 128 levels, or an extension of
    /// Python's that does not hold what it should.
    pub fn from_msgpack(bytes: &[u8]) -> Result<Self> {
        let failed = |fault: Fault| {
            Error::new(ErrorKind::InvalidData, "read a value", format!("it is {fault}"))
        };
        read(bytes, u64::MAX).map_err(failed)
    }

    /// The value of one of the program's types: structs are maps, tuples lists, integers of 128 bits their bytes.
    /// Of a part that is a [`Value`] comes the same, so that [`Value::Tuple`] makes a tuple of Python's.
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
    /// As for [`to_msgpack`](Self::to_msgpack).
    pub fn from_type<T: serde::Serialize + ?Sized>(value: &T) -> Result<Self> {
        Self::of(value).map_err(|fault| {
            let detail = format!("it would be {fault}");
            Error::new(ErrorKind::InvalidArgument, "make a value", detail)
        })
    }

    /// A dtype as NumPy describes it to msgpack: its text, or for a structure its `descr`, the list of its fields.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: one that NumPy has no `descr` for: sub-arrays, and structures whose fields
    /// overlap or are out of order.
    pub fn from_dtype(dtype: &blosc2_format::Dtype) -> Result<Self> {
        array::descr(dtype).map_err(|what| {
            let detail = format!("it would be {what}");
            Error::new(ErrorKind::InvalidArgument, "describe a dtype", detail)
        })
    }

    /// Writes it as Python does, to the byte.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: what msgpack cannot hold or Python would not read as what it is: an integer
    /// out of range, a map whose keys are no texts or bytes, a set with items that Python's cannot have, a list
    /// that starts with the text `__tuple__`, an array whose fields overlap or are out of order, an extension of
    /// a type that has a kind of its own, a text or list of more than 2^32 - 1, more than 128 levels.
    pub fn to_msgpack(&self) -> Result<Vec<u8>> {
        self.write().map_err(|fault| {
            let detail = format!("it would be {fault}");
            Error::new(ErrorKind::InvalidArgument, "write a value", detail)
        })
    }

    /// One of the program's types, made of this value.
    ///
    /// Tuples and sets are sequences, complex numbers pairs, arrays of NumPy's sequences of sequences,
    /// structures in them maps, dates numbers, frames bytes, and bytes sequences where such are asked for. A
    /// part that is a [`Value`] is any of them.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: it is not a `T`; an array of numbers of more than 64 bits, or one that has
    /// very many more items and lists than bytes.
    pub fn into_type<T: serde::de::DeserializeOwned>(self) -> Result<T> {
        let failed = |detail: String| Error::new(ErrorKind::TypeMismatch, "read a value", detail);
        self.make_type().map_err(|fault| failed(format!("it is {fault}")))?.map_err(failed)
    }

    /// The dtype of such a description.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it is none.
    pub fn to_dtype(&self) -> Result<blosc2_format::Dtype> {
        let failed = |what: String| Error::new(ErrorKind::InvalidData, "read a dtype", what);
        array::from_descr(self).map_err(failed)
    }

    /// The value of this key, of a map with texts for keys.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(pairs) = self else { return None };
        pairs.iter().rfind(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        if let Self::Str(text) = self { Some(text) } else { None }
    }

    /// The number, if it is an integer that is no less than 0 and below 2^64.
    pub fn as_u64(&self) -> Option<u64> {
        if let Self::Int(number) = self { (*number).try_into().ok() } else { None }
    }

    /// The items, if it is a list or a tuple.
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

/// A list.
impl<V: Into<Value>> FromIterator<V> for Value {
    fn from_iter<I: IntoIterator<Item = V>>(items: I) -> Self {
        Self::List(items.into_iter().map(Into::into).collect())
    }
}

/// A map of pairs of a key and a value.
impl<K: Into<Value>, V: Into<Value>> FromIterator<(K, V)> for Value {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        Self::Map(pairs.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }
}
