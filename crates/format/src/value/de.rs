//! Deserialization: from a value to any type, and from other formats to a value.

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{
    Deserialize, DeserializeOwned, Deserializer, Error, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};

use super::error::{Fault, ValueError, ValueErrorKind};
use super::plain::{Node, Plain};
use super::write::Rules;
use super::{MAX_DEPTH, TUPLE, Value, read};

type Unfit = serde::de::value::Error;

impl Value {
    /// Converts the value to any deserializable type.
    ///
    /// Some kinds of values have no counterpart in Rust. They are deserialized as follows:
    /// - tuples and sets: sequences;
    /// - complex numbers: pairs of the real and the imaginary part;
    /// - NumPy arrays: nested sequences; items with fields are maps, dates and times are integers;
    /// - frames: bytes;
    /// - references: the value inside the reference;
    /// - other extensions: pairs of the type number and the bytes.
    ///
    /// Bytes can also be deserialized as a sequence. If a field or an item of `T` has the type [`Value`], it receives
    /// the corresponding part of this value unchanged.
    ///
    /// # Errors
    /// - [`ValueErrorKind::TypeMismatch`], in these cases:
    ///   - the value does not have the structure of a `T`;
    ///   - the value contains an array of floats of more than 64 bits, or of strings that are not Unicode;
    ///   - the value contains an array that would become far more sequences and items than it has bytes, such as an
    ///     array of the shape `[2^40, 0]` (2^40 empty sequences, and no bytes).
    pub fn into_type<T: DeserializeOwned>(self) -> Result<T, ValueError> {
        self.check_plain().map_err(Fault::of_type)?;
        T::deserialize(Node::Value(&self)).map_err(|error| ValueError {
            kind: ValueErrorKind::TypeMismatch,
            doing: "read a value",
            detail: error.to_string(),
        })
    }
}

/// The name with which a `Value` requests a part of a value unchanged.
const WHOLE: &str = "blosc2::Value";

impl<'a> Node<'a> {
    fn plainly(self) -> Result<Plain<'a>, Unfit> {
        self.plain().map_err(|fault| Unfit::custom(format!("it is {fault}")))
    }

    /// Deserializes a sequence; bytes are a sequence too.
    fn sequence<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self.plainly()? {
            Plain::Bytes(bytes) => visit_seq(bytes.iter().copied(), visitor),
            _ => self.deserialize_any(visitor),
        }
    }

    /// Deserializes an integer of 128 bits from the representation of `rmp_serde`, because msgpack has no such
    /// integers.
    fn long_integer<'de, V: Visitor<'de>>(
        self,
        visitor: V,
        visit: impl FnOnce(V, [u8; 16]) -> Result<V::Value, Unfit>,
    ) -> Result<V::Value, Unfit> {
        match self.plainly()? {
            Plain::Bytes(bytes) => match bytes.try_into() {
                Ok(bytes) => visit(visitor, bytes),
                Err(_) => self.deserialize_any(visitor),
            },
            _ => self.deserialize_any(visitor),
        }
    }
}

impl<'de> IntoDeserializer<'de, Unfit> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Unfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self.plainly()? {
            Plain::None => visitor.visit_unit(),
            Plain::Bool(value) => visitor.visit_bool(value),
            Plain::Int(number) => match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_i128(number),
            },
            Plain::Float(number) => visitor.visit_f64(number),
            Plain::Str(text) => visitor.visit_str(&text),
            Plain::Bytes(bytes) => visitor.visit_bytes(bytes),
            Plain::List(items) => visit_seq(items, visitor),
            Plain::Map(pairs) => {
                let mut pairs = MapDeserializer::new(pairs);
                let made = visitor.visit_map(&mut pairs)?;
                pairs.end().map(|()| made)
            }
            Plain::Ext(kind, bytes) => {
                visit_seq([Node::Int(kind), Node::Bytes(bytes)].into_iter(), visitor)
            }
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        match self.plainly()? {
            Plain::None => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        match self {
            Self::Value(value) if name == WHOLE => visitor.visit_newtype_struct(Whole(value)),
            _ => visitor.visit_newtype_struct(self),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        match self.plainly()? {
            Plain::Str(name) => visitor.visit_enum(name.into_deserializer()),
            Plain::Map(pairs) => {
                visitor.visit_enum(MapAccessDeserializer::new(MapDeserializer::new(pairs)))
            }
            _ => Err(Unfit::custom("expected a string or a map of one pair for an enum")),
        }
    }

    fn deserialize_unit_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        match self.plainly()? {
            Plain::List(items) if items.len() == 0 => visitor.visit_unit(),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_i128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.long_integer(visitor, |visitor, bytes| visitor.visit_i128(i128::from_be_bytes(bytes)))
    }

    fn deserialize_u128<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.long_integer(visitor, |visitor, bytes| visitor.visit_u128(u128::from_be_bytes(bytes)))
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        visitor.visit_unit()
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        self.sequence(visitor)
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Unfit> {
        self.sequence(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Unfit> {
        self.sequence(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf unit map struct
        identifier
    }
}

fn visit_seq<'de, T: IntoDeserializer<'de, Unfit>, V: Visitor<'de>>(
    items: impl Iterator<Item = T>,
    visitor: V,
) -> Result<V::Value, Unfit> {
    let mut items = SeqDeserializer::new(items);
    let made = visitor.visit_seq(&mut items)?;
    items.end().map(|()| made)
}

/// A value with all its kinds, for visitors that support them.
struct Whole<'a>(&'a Value);

impl<'de> Deserializer<'de> for Whole<'_> {
    type Error = Unfit;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Unfit> {
        if let Value::Tuple(items) = self.0 {
            let items = items.iter().map(Node::Value);
            return visit_seq(std::iter::once(Node::Str(TUPLE)).chain(items), visitor);
        }
        let extension = self.0.to_extension(Rules::Any, MAX_DEPTH);
        match extension.map_err(|fault| Unfit::custom(format!("it is {fault}")))? {
            Some((kind, content)) => {
                let parts = [Node::Int(kind), Node::Bytes(&content)];
                visitor.visit_newtype_struct(SeqDeserializer::new(parts.into_iter()))
            }
            None => Node::Value(self.0).deserialize_any(visitor),
        }
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct enum identifier
        ignored_any
    }
}

/// Deserializes a value from msgpack or another format. The result can be any variant if the format has msgpack
/// extensions, or if the value is a part of the target type of [`Value::into_type`]. Other formats, such as JSON, contain only `None`,
/// booleans, numbers, strings, bytes, lists, tuples and maps.
impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(WHOLE, ValueVisitor { is_inside: false })
    }
}

struct ValueVisitor {
    /// Whether a newtype is an extension. It is not for the outermost call.
    is_inside: bool,
}

macro_rules! visit {
    ($($method:ident: $type:ty => $made:expr),+ $(,)?) => {
        $(fn $method<E: Error>(self, value: $type) -> Result<Value, E> {
            Ok($made(value))
        })+
    };
}

impl<'de> Visitor<'de> for ValueVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a value")
    }

    visit! {
        visit_bool: bool => Value::Bool,
        visit_i64: i64 => Value::from,
        visit_u64: u64 => Value::from,
        visit_i128: i128 => Value::Int,
        visit_f64: f64 => Value::Float,
        visit_str: &str => Value::from,
        visit_string: String => Value::Str,
        visit_bytes: &[u8] => |bytes: &[u8]| Value::Bytes(bytes.to_vec()),
        visit_byte_buf: Vec<u8> => Value::Bytes,
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_none<E: Error>(self) -> Result<Value, E> {
        Ok(Value::None)
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        Value::deserialize(deserializer)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Value, D::Error> {
        if !self.is_inside {
            return inner.deserialize_any(Self { is_inside: true });
        }
        match <(i8, Value)>::deserialize(inner)? {
            (kind, Value::Bytes(content)) => {
                let failed = |fault| D::Error::custom(format!("it is {fault}"));
                read::read_extension(kind, &content).map_err(failed)
            }
            _ => Err(D::Error::custom("expected the content of an extension to be bytes")),
        }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let mut is_tuple = false;
        while let Some(item) = items.next_element::<Value>()? {
            if list.is_empty() && !is_tuple && item.as_str() == Some(TUPLE) {
                is_tuple = true;
            } else {
                list.push(item);
            }
        }
        Ok(if is_tuple { Value::Tuple(list) } else { Value::List(list) })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Vec::new();
        while let Some(pair) = pairs.next_entry()? {
            map.push(pair);
        }
        Ok(Value::Map(map))
    }
}
