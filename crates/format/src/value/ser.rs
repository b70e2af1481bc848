//! Serialization: of any type to a value, and of a value to other formats.

use std::cell::Cell;

use rmp_serde::MSGPACK_EXT_STRUCT_NAME as EXT;
use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};

use super::error::{Fault, ValueError};
use super::plain::{Node, Plain};
use super::read::{below, read};
use super::write::{Rules, check_first, marked};
use super::{MAX_DEPTH, TUPLE, Value};

thread_local! {
    /// The number of tuples that this thread has serialized. In msgpack, a tuple is a list whose first item is
    /// `__tuple__`.
    static TUPLES: Cell<usize> = const { Cell::new(0) };
    /// The number of nested values that this thread is serializing.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A level of nested values that are being serialized.
struct Level;

impl Level {
    /// Enters the next level, unless the stack might overflow in the levels below.
    fn enter() -> Result<Self, Fault> {
        // At the maximum depth, the value may contain no other values.
        below(MAX_DEPTH + 1 - DEPTH.get())?;
        DEPTH.set(DEPTH.get() + 1);
        Ok(Self)
    }
}

impl Drop for Level {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

impl Value {
    /// Converts a value of any serializable type to a `Value`. Structs become maps, tuples become lists, and 128-bit
    /// integers become 16 bytes in big-endian byte order.
    ///
    /// A [`Value`] inside `value` is copied unchanged. To write a Python tuple, use a [`Value::Tuple`].
    ///
    /// ```
    /// use blosc2_format::value::Value;
    ///
    /// let value = Value::from_type(&("a", vec![1.5f32]))?;
    /// assert_eq!(value, Value::List(vec!["a".into(), Value::List(vec![1.5.into()])]));
    /// assert_eq!(value.into_type::<(String, [f64; 1])>()?, ("a".to_owned(), [1.5]));
    /// # Ok::<(), blosc2_format::value::ValueError>(())
    /// ```
    ///
    /// # Errors
    /// - [`ValueErrorKind::InvalidArgument`](super::ValueErrorKind::InvalidArgument), in these cases:
    ///   - the value cannot be serialized;
    ///   - the value contains a `Value` that msgpack cannot represent;
    ///   - the value contains a list whose first item is the string `__tuple__` (only a [`Value::Tuple`] is encoded
    ///     in this way);
    ///   - the value has more than 128 nested levels.
    pub fn from_type<T: Serialize + ?Sized>(value: &T) -> Result<Self, ValueError> {
        Self::serialized(value).map_err(|fault| fault.of_write("convert to a value"))
    }

    fn serialized<T: Serialize + ?Sized>(value: &T) -> Result<Self, Fault> {
        let mut bytes = Vec::new();
        let mut serializer = rmp_serde::Serializer::new(&mut bytes).with_struct_map();
        let before = TUPLES.get();
        let written = value.serialize(&mut serializer);
        let tuples = TUPLES.replace(before) - before;
        written.map_err(|error| Fault::wrong(error.to_string()))?;
        let value = read(&bytes, u64::MAX)?;
        if value.tuples() > tuples { Err(marked()) } else { Ok(value) }
    }

    /// The number of tuples in the value. Tuples inside extensions are not counted: they are written without serde.
    fn tuples(&self) -> usize {
        let of_all = |items: &[Self]| items.iter().map(Self::tuples).sum();
        match self {
            Self::List(items) => of_all(items),
            Self::Tuple(items) => 1 + of_all(items),
            Self::Map(pairs) => pairs.iter().map(|(key, item)| key.tuples() + item.tuples()).sum(),
            _ => 0,
        }
    }
}

/// Serializes the value. In binary formats, complex numbers, sets, arrays, frames and references are msgpack
/// extensions. In human-readable formats, such as JSON, they have the form that [`Value::into_type`] describes, with
/// these exceptions:
/// - Bytes are a map with the key `bytes` and a string of hexadecimal digits.
/// - Other extensions are maps with the key `ext` for the type number, and the key `bytes` as above.
/// - NaN and infinite floats are strings.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let failed = |fault: Fault| S::Error::custom(format!("the value would be {fault}"));
        if serializer.is_human_readable() {
            self.check_plain().map_err(failed)?;
            return Node::Value(self).serialize(serializer);
        }
        let _level = Level::enter().map_err(failed)?;
        match self {
            Self::List(items) => {
                check_first(items).map_err(failed)?;
                serializer.collect_seq(items)
            }
            Self::Tuple(items) => {
                TUPLES.set(TUPLES.get() + 1);
                let mut list = serializer.serialize_seq(Some(items.len() + 1))?;
                list.serialize_element(TUPLE)?;
                items.iter().try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Map(pairs) => {
                serializer.collect_map(pairs.iter().map(|(key, value)| (key, value)))
            }
            value => match value.to_extension(Rules::Pythons, MAX_DEPTH).map_err(failed)? {
                Some((kind, content)) => {
                    serializer.serialize_newtype_struct(EXT, &(kind, Bytes(&content)))
                }
                None => Node::Value(value).serialize(serializer),
            },
        }
    }
}

struct Bytes<'a>(&'a [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// Serializes the plain form of a node.
impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let for_people = serializer.is_human_readable();
        let failed = |fault: Fault| S::Error::custom(format!("the value is {fault}"));
        match self.plain().map_err(failed)? {
            Plain::None => serializer.serialize_unit(),
            Plain::Bool(value) => serializer.serialize_bool(value),
            Plain::Int(number) => match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => serializer.serialize_u64(number),
                (_, Ok(number)) => serializer.serialize_i64(number),
                _ => Err(S::Error::custom("an integer that does not fit in 64 bits")),
            },
            Plain::Float(number) if for_people && !number.is_finite() => {
                serializer.collect_str(&number)
            }
            Plain::Float(number) => serializer.serialize_f64(number),
            Plain::Str(text) => serializer.serialize_str(&text),
            Plain::Bytes(bytes) if for_people => serializer.collect_map([("bytes", hex(bytes))]),
            Plain::Bytes(bytes) => serializer.serialize_bytes(bytes),
            Plain::List(items) => serializer.collect_seq(items),
            Plain::Map(pairs) => {
                serializer.collect_map(pairs.map(|(key, value)| (Key(key), value)))
            }
            Plain::Ext(kind, bytes) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("ext", &kind)?;
                map.serialize_entry("bytes", &hex(bytes))?;
                map.end()
            }
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A key of a map in a human-readable format, where most formats allow only strings.
struct Key<'a>(Node<'a>);

impl Serialize for Key<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Node::Str(text) => serializer.serialize_str(text),
            Node::Value(Value::Str(text)) => serializer.serialize_str(text),
            Node::Value(key) => serializer.collect_str(key),
            key => key.serialize(serializer),
        }
    }
}
