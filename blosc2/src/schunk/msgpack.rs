//! Values in metalayers, as Python keeps them there: msgpack.

use rmp::Marker;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::metalayers::{Metalayers, MetalayersMut};
use crate::{ErrorKind, Result};

const READ: &str = "read a value from a metalayer";
const WRITE: &str = "write a value to a metalayer";
/// How deep arrays and maps may lie in each other.
const MAX_DEPTH: usize = 128;
/// Bytes that a value of any kind may take in memory, beside its content.
const VALUE_SIZE: u64 = 64;
/// What Python puts before the items of a tuple.
const TUPLE: &[u8] = b"__tuple__";

impl Metalayers<'_> {
    /// The content of a metalayer as a value; `None` if there is none of this name.
    ///
    /// The content is msgpack, as Python's `meta[name] = value` and `vlmeta[name] = value` leave it. Tuples are
    /// read as arrays, without the mark that Python gives them. What has no kind of its own in msgpack, such as
    /// complex numbers and arrays, is one of its extension types. For values of any kind there are types such as
    /// `rmpv::Value`. Needs the feature `msgpack`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the content is not msgpack, or deeper than 128 levels;
    /// - [`ErrorKind::TypeMismatch`]: it is not a `T`;
    /// - [`ErrorKind::TooLarge`]: its values, at 64 bytes each, take more memory than
    ///   [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows;
    /// - as for [`get`](Self::get).
    pub fn get_value<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        let Some(content) = self.get(name)? else { return Ok(None) };
        let failed = |kind, detail: String| {
            let detail = format!("metalayer `{name}`: {detail}");
            self.schunk.error(kind, READ, detail)
        };
        let invalid =
            |what: Fault| failed(ErrorKind::InvalidData, format!("its content is {}", what.0));
        let walked = walk(&content, Keys::Any).map_err(invalid)?;
        self.schunk.allow_values(READ, walked.values.saturating_mul(VALUE_SIZE))?;
        let value = rmp_serde::from_slice(&walked.plain);
        let value = value.map_err(|error| failed(ErrorKind::TypeMismatch, error.to_string()))?;
        Ok(Some(value))
    }
}

impl MetalayersMut<'_> {
    /// Adds a metalayer with a value, or replaces the value of the one of this name.
    ///
    /// It is written as msgpack: structs are maps, tuples arrays, which Python reads as lists; bytes are bytes
    /// where they serialise as such, with `serde_bytes` for example. Needs the feature `msgpack`.
    ///
    /// ```
    /// # use std::collections::BTreeMap;
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// let place = BTreeMap::from([("lat", 46.5), ("lon", 8.0)]);
    /// schunk.vlmeta_mut().set_value("place", &place)?;
    /// let place: Option<BTreeMap<String, f64>> = schunk.vlmeta().get_value("place")?;
    /// assert_eq!(place.unwrap()["lat"], 46.5); // Python: schunk.vlmeta["place"]["lat"]
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a value that msgpack cannot hold or that Python could not read: a map
    ///   whose keys are no strings, more than 128 levels; also a fixed metalayer whose value had another length;
    /// - as for [`set`](Self::set).
    pub fn set_value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        let mut content = Vec::new();
        let mut serializer = rmp_serde::Serializer::new(&mut content).with_struct_map();
        let written = value.serialize(&mut serializer).map_err(|error| error.to_string());
        let checked = written.and_then(|()| {
            let walked = walk(&content, Keys::Strings);
            walked.map_err(|what| format!("it would be {}", what.0))
        });
        checked.map_err(|detail| {
            let detail = format!("metalayer `{name}`: {detail}");
            self.schunk.error(ErrorKind::InvalidArgument, WRITE, detail)
        })?;
        self.set(name, &content)
    }
}

/// Which keys maps may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keys {
    Any,
    /// Python reads no others.
    Strings,
}

/// What is wrong with a value.
#[derive(Debug, PartialEq, Eq)]
struct Fault(&'static str);

const CUT: Fault = Fault("no msgpack: it was cut short");

/// One value, looked at from end to end.
struct Walked {
    /// The value without the marks of tuples.
    plain: Vec<u8>,
    /// How many values there are in it.
    values: u64,
}

/// An array or a map that is being walked through.
struct Open {
    /// Values still to come.
    left: u64,
    is_map: bool,
}

/// Sees that `content` is one value, whole and not too deep, so that all that it says of lengths is true.
fn walk(content: &[u8], keys: Keys) -> Result<Walked, Fault> {
    let mut walked = Walked { plain: Vec::with_capacity(content.len()), values: 0 };
    let mut rest = content;
    let mut open = vec![Open { left: 1, is_map: false }];
    while let Some(last) = open.last_mut() {
        if last.left == 0 {
            open.pop();
            continue;
        }
        let is_key = last.is_map && last.left % 2 == 0;
        last.left -= 1;
        walked.values += 1;
        let token = Token::read(rest)?;
        if keys == Keys::Strings && is_key && token.shape != Shape::Text {
            return Err(Fault("a map with keys that are no strings"));
        }
        let (this, behind) = rest.split_at_checked(token.len).ok_or(CUT)?;
        rest = behind;
        let (mut left, is_map) = match token.shape {
            Shape::Array(len) => (u64::from(len), false),
            Shape::Map(len) => (2 * u64::from(len), true),
            Shape::Text | Shape::Other => {
                walked.plain.extend_from_slice(this);
                continue;
            }
        };
        if open.len() > MAX_DEPTH {
            return Err(Fault("deeper than 128 levels"));
        }
        match after_tuple_mark(rest).filter(|_| !is_map && left > 0) {
            Some(items) => {
                rest = items;
                left -= 1;
                // No array is longer than a u32 says.
                let len = u32::try_from(left).map_err(|_| CUT)?;
                rmp::encode::write_array_len(&mut walked.plain, len).map_err(|_| CUT)?;
            }
            None => walked.plain.extend_from_slice(this),
        }
        open.push(Open { left, is_map });
    }
    if rest.is_empty() { Ok(walked) } else { Err(Fault("no msgpack: bytes follow the value")) }
}

/// What follows the mark of a tuple, where it is one.
fn after_tuple_mark(rest: &[u8]) -> Option<&[u8]> {
    let token = Token::read(rest).ok()?;
    let (text, behind) = rest.split_at_checked(token.len)?;
    (token.shape == Shape::Text && text.ends_with(TUPLE) && token.text_len == TUPLE.len())
        .then_some(behind)
}

/// The start of a value: all of it, but for the values in an array or a map.
struct Token {
    len: usize,
    shape: Shape,
    text_len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Text,
    Array(u32),
    Map(u32),
    Other,
}

impl Token {
    fn read(bytes: &[u8]) -> Result<Self, Fault> {
        let (&first, rest) = bytes.split_first().ok_or(CUT)?;
        // A length behind the marker.
        let number = |width: usize| -> Result<u32, Fault> {
            let bytes = rest.get(..width).ok_or(CUT)?;
            Ok(bytes.iter().fold(0, |number, &byte| number << 8 | u32::from(byte)))
        };
        let other =
            |len: usize| Ok(Self { len: len.saturating_add(1), shape: Shape::Other, text_len: 0 });
        let sized = |width: usize, more: usize| {
            other((width + more).saturating_add(number(width)? as usize))
        };
        let text = |width: usize, len: u32| {
            let text_len = len as usize;
            Ok(Self { len: text_len.saturating_add(1 + width), shape: Shape::Text, text_len })
        };
        let nested = |width: usize, shape| Ok(Self { len: 1 + width, shape, text_len: 0 });
        match Marker::from_u8(first) {
            Marker::Null | Marker::True | Marker::False => other(0),
            Marker::FixPos(_) | Marker::FixNeg(_) => other(0),
            Marker::U8 | Marker::I8 => other(1),
            Marker::U16 | Marker::I16 => other(2),
            Marker::U32 | Marker::I32 | Marker::F32 => other(4),
            Marker::U64 | Marker::I64 | Marker::F64 => other(8),
            Marker::FixStr(len) => text(0, len.into()),
            Marker::Str8 => text(1, number(1)?),
            Marker::Str16 => text(2, number(2)?),
            Marker::Str32 => text(4, number(4)?),
            Marker::Bin8 => sized(1, 0),
            Marker::Bin16 => sized(2, 0),
            Marker::Bin32 => sized(4, 0),
            Marker::FixExt1 => other(2),
            Marker::FixExt2 => other(3),
            Marker::FixExt4 => other(5),
            Marker::FixExt8 => other(9),
            Marker::FixExt16 => other(17),
            Marker::Ext8 => sized(1, 1),
            Marker::Ext16 => sized(2, 1),
            Marker::Ext32 => sized(4, 1),
            Marker::FixArray(len) => nested(0, Shape::Array(len.into())),
            Marker::Array16 => nested(2, Shape::Array(number(2)?)),
            Marker::Array32 => nested(4, Shape::Array(number(4)?)),
            Marker::FixMap(len) => nested(0, Shape::Map(len.into())),
            Marker::Map16 => nested(2, Shape::Map(number(2)?)),
            Marker::Map32 => nested(4, Shape::Map(number(4)?)),
            Marker::Reserved => Err(Fault("no msgpack: it has a byte 0xc1")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::{CParams, OpenOptions, SChunk};

    fn schunk() -> SChunk {
        SChunk::in_memory::<u8>(&CParams::default()).unwrap()
    }

    fn with(content: &[u8]) -> SChunk {
        let mut schunk = schunk();
        schunk.vlmeta_mut().set("value", content).unwrap();
        schunk
    }

    fn kind<T: DeserializeOwned + std::fmt::Debug>(schunk: &SChunk) -> ErrorKind {
        schunk.vlmeta().get_value::<T>("value").unwrap_err().kind()
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        #[derive(serde::Serialize)]
        struct Place {
            name: &'static str,
            at: (f64, bool),
            none: Option<u8>,
        }
        let mut schunk = schunk();
        schunk.vlmeta_mut().set_value("n", &-5i64).unwrap();
        schunk.vlmeta_mut().set_value("b", serde_bytes::Bytes::new(b"ab")).unwrap();
        let place = Place { name: "here", at: (1.5, true), none: None };
        schunk.meta_mut().set_value("place", &place).unwrap();
        assert_eq!(schunk.vlmeta().get("n").unwrap().unwrap(), [0xfb]);
        assert_eq!(schunk.vlmeta().get("b").unwrap().unwrap(), b"\xc4\x02ab");
        let expected = b"\x83\xa4name\xa4here\xa2at\x92\xcb\x3f\xf8\0\0\0\0\0\0\xc3\xa4none\xc0";
        assert_eq!(schunk.meta().get("place").unwrap().unwrap(), expected);
        assert_eq!(schunk.vlmeta().get_value::<i8>("n").unwrap(), Some(-5));
        assert_eq!(schunk.vlmeta().get_value::<i8>("m").unwrap(), None);
    }

    #[test]
    fn marks_of_tuples_are_not_read() {
        // ("numpy", (10, 100), [("__tuple__",), ()]) and a list that only starts so.
        let tuple = b"\xa9__tuple__";
        let content = [
            b"\x95",
            &tuple[..],
            b"\xa5numpy\x93",
            tuple,
            b"\x0a\x64\x92\x92",
            tuple,
            tuple,
            b"\x91",
            tuple,
            b"\x92\xaa__tuple__!\xc0",
        ];
        type Value = (String, (u8, u8), (Vec<String>, Vec<u8>), (String, Option<u8>));
        let value = with(&content.concat()).vlmeta().get_value::<Value>("value").unwrap().unwrap();
        let inner = (vec!["__tuple__".to_owned()], vec![]);
        let last = ("__tuple__!".to_owned(), None);
        assert_eq!(value, ("numpy".to_owned(), (10, 100), inner, last));
        // One of 16 items has a longer header than one of 15.
        let long = [&b"\xdc\x00\x10"[..], tuple, &[7; 15]].concat();
        let value = with(&long).vlmeta().get_value::<Vec<u8>>("value").unwrap();
        assert_eq!(value.unwrap(), [7; 15]);
        // A map's first key is no mark.
        let map = with(b"\x81\xa9__tuple__\x01");
        let map = map.vlmeta().get_value::<BTreeMap<String, u8>>("value").unwrap();
        assert_eq!(map.unwrap()["__tuple__"], 1);
    }

    #[test]
    fn what_is_no_value_is_refused() {
        for content in [
            &b""[..],
            b"\xa3ab",
            b"\x92\x01",
            b"\x01\x02",
            b"\xc1",
            b"\xdd\xff\xff\xff\xff\x01",
            b"\xdf\xff\xff\xff\xff",
            b"\xc6\xff\xff\xff\xff",
            b"\xc9\xff\xff\xff\xff\x01",
            b"\xdb\x00",
            b"\x81\x01",
        ] {
            assert_eq!(kind::<Vec<u8>>(&with(content)), ErrorKind::InvalidData, "{content:x?}");
        }
        assert_eq!(kind::<String>(&with(b"\x01")), ErrorKind::TypeMismatch);
        assert_eq!(kind::<(u8, u8)>(&with(b"\x93\x01\x01\x01")), ErrorKind::TypeMismatch);
    }

    #[test]
    fn depth_is_limited() {
        let nested = |depth: usize| [vec![0x91; depth], vec![1]].concat();
        assert!(walk(&nested(MAX_DEPTH), Keys::Any).is_ok());
        assert_eq!(kind::<rmpv::Value>(&with(&nested(MAX_DEPTH + 1))), ErrorKind::InvalidData);
        assert_eq!(kind::<rmpv::Value>(&with(&nested(1 << 20))), ErrorKind::InvalidData);
        let deep = (0..129).fold(rmpv::Value::Nil, |value, _| rmpv::Value::Array(vec![value]));
        let error = schunk().vlmeta_mut().set_value("value", &deep).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }

    #[test]
    fn keys_of_maps_are_strings() {
        let mut schunk = schunk();
        let error = schunk.vlmeta_mut().set_value("value", &BTreeMap::from([(1, 2)])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(schunk.vlmeta().is_empty());
        // Others may have written some.
        let value = with(b"\x81\x01\x02").vlmeta().get_value::<BTreeMap<u8, u8>>("value");
        assert_eq!(value.unwrap().unwrap(), BTreeMap::from([(1, 2)]));
    }

    #[test]
    fn memory_of_many_values_is_limited() {
        // A million nothings.
        let content = [&b"\xdd\x00\x0f\x42\x40"[..], &vec![0xc0; 1_000_000]].concat();
        let bytes = with(&content).into_bytes().unwrap();
        let schunk = OpenOptions::new().max_read(10 << 20).from_bytes(bytes).unwrap();
        assert_eq!(schunk.vlmeta().get("value").unwrap().unwrap(), content);
        assert_eq!(kind::<rmpv::Value>(&schunk), ErrorKind::TooLarge);
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_value_or_an_error(content in prop::collection::vec(any::<u8>(), 0..60)) {
            let by_library = rmpv::decode::read_value(&mut &content[..]);
            match walk(&content, Keys::Any) {
                Ok(walked) => {
                    by_library.unwrap();
                    prop_assert!(rmpv::decode::read_value(&mut &walked.plain[..]).is_ok());
                    let _ = with(&content).vlmeta().get_value::<rmpv::Value>("value");
                }
                Err(Fault("no msgpack: bytes follow the value")) => prop_assert!(by_library.is_ok()),
                Err(Fault("no msgpack: it has a byte 0xc1")) => {}
                Err(_) => prop_assert!(by_library.is_err()),
            }
        }
    }
}
