//! Encoding of values as msgpack, as in Python.

use rmp::encode;

use super::array::dtype_value;
use super::error::{Fault, ValueError};
use super::read::{below, check_objects};
use super::{MAX_DEPTH, TUPLE, Value, ext};

/// Which values can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rules {
    Any,
    /// Only values that Python reads as the same value.
    Pythons,
}

impl Value {
    /// Encodes the value as msgpack, with the same bytes as python-blosc2.
    ///
    /// # Errors
    /// - [`ValueErrorKind::InvalidArgument`](super::ValueErrorKind::InvalidArgument): msgpack cannot represent the value,
    ///   or python-blosc2 would read a different value, in these cases:
    ///   - an integer is less than -2^63 or greater than 2^64 - 1;
    ///   - a string, bytes, a list, a map or an extension has more than 2^32 - 1 bytes or items;
    ///   - a key of a map is not a string or bytes;
    ///   - a set contains an item that is not hashable in Python;
    ///   - the first item of a list, a set or a [`Value::Objects`] is the string `__tuple__`;
    ///   - an array has a dtype for which [`from_dtype`](Self::from_dtype) fails;
    ///   - a [`Value::Objects`] has more than 64 dimensions, or its number of values does not match its shape;
    ///   - a [`Value::Ext`] has a type from 42 to 46, which other variants use;
    ///   - a [`Value::Ext`] has a negative type, and is not a timestamp (type -1, with 4, 8 or 12 bytes);
    ///   - the value has more than 128 nested levels.
    pub fn to_msgpack(&self) -> Result<Vec<u8>, ValueError> {
        let mut writer = ValueWriter { out: Vec::new(), rules: Rules::Pythons };
        writer.value(self, MAX_DEPTH).map_err(|fault| fault.of_write("write a value"))?;
        Ok(writer.out)
    }

    /// The type number and the content of a value that is an extension in msgpack; `None` for other kinds of values.
    pub(super) fn to_extension(
        &self,
        rules: Rules,
        depth: usize,
    ) -> Result<Option<(i8, Vec<u8>)>, Fault> {
        let mut writer = ValueWriter { out: Vec::new(), rules };
        let kind = match self {
            Self::Frame(frame) => {
                writer.out.extend_from_slice(frame);
                ext::FRAME
            }
            Self::Reference(value) => {
                writer.value(value, below(depth)?)?;
                ext::REFERENCE
            }
            Self::Complex { re, im } => {
                writer.out.extend([re, im].into_iter().flat_map(|number| number.to_be_bytes()));
                ext::COMPLEX
            }
            Self::Set(items) => {
                if rules == Rules::Pythons && !items.iter().all(is_hashable) {
                    return Err(Fault::wrong("a set with items that a Python set cannot contain"));
                }
                writer.list(None, items, below(depth)?)?;
                ext::SET
            }
            Self::Array(array) => {
                let inner = below(depth)?;
                let dtype = dtype_value(array.dtype()).map_err(Fault::Wrong)?;
                done(encode::write_map_len(&mut writer.out, 3))?;
                writer.text("dtype")?;
                writer.value(&dtype, below(inner)?)?;
                writer.shape(array.shape(), below(inner)?)?;
                writer.text("data")?;
                writer.bytes(array.data())?;
                ext::ARRAY
            }
            Self::Objects { shape, values } => {
                let inner = below(depth)?;
                check_objects(shape, values)?;
                done(encode::write_map_len(&mut writer.out, 2))?;
                writer.text("values")?;
                writer.list(None, values, below(inner)?)?;
                writer.shape(shape, below(inner)?)?;
                ext::ARRAY
            }
            Self::Ext(kind, bytes) => {
                if rules == Rules::Pythons {
                    check_kind(*kind, bytes.len())?;
                }
                writer.out.extend_from_slice(bytes);
                *kind
            }
            _ => return Ok(None),
        };
        Ok(Some((kind, writer.out)))
    }
}

struct ValueWriter {
    out: Vec<u8>,
    rules: Rules,
}

impl ValueWriter {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Fault> {
        match value {
            Value::None => done(encode::write_nil(&mut self.out)),
            Value::Bool(value) => done(encode::write_bool(&mut self.out, *value)),
            Value::Int(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => done(encode::write_uint(&mut self.out, number)),
                (_, Ok(number)) => done(encode::write_sint(&mut self.out, number)),
                _ => Err(Fault::wrong("an integer that does not fit in 64 bits")),
            },
            Value::Float(number) => done(encode::write_f64(&mut self.out, *number)),
            Value::Str(text) => self.text(text),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::List(items) => self.list(None, items, depth),
            Value::Tuple(items) => self.list(Some(TUPLE), items, depth),
            Value::Map(pairs) => {
                let below = below(depth)?;
                done(encode::write_map_len(&mut self.out, len(pairs.len())?))?;
                for (key, value) in pairs {
                    let is_text = matches!(key, Value::Str(_) | Value::Bytes(_));
                    if self.rules == Rules::Pythons && !is_text {
                        return Err(Fault::wrong(
                            "a map with keys that are neither strings nor bytes",
                        ));
                    }
                    self.value(key, below)?;
                    self.value(value, below)?;
                }
                Ok(())
            }
            extension => {
                let written = extension.to_extension(self.rules, depth)?;
                let (kind, content) = written.ok_or_else(|| Fault::wrong("of an unknown kind"))?;
                done(encode::write_ext_meta(&mut self.out, len(content.len())?, kind))?;
                self.out.extend(content);
                Ok(())
            }
        }
    }

    fn text(&mut self, text: &str) -> Result<(), Fault> {
        len(text.len())?;
        done(encode::write_str(&mut self.out, text))
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        len(bytes.len())?;
        done(encode::write_bin(&mut self.out, bytes))
    }

    fn list(&mut self, mark: Option<&str>, items: &[Value], depth: usize) -> Result<(), Fault> {
        let below = below(depth)?;
        if self.rules == Rules::Pythons && mark.is_none() {
            check_first(items)?;
        }
        let count = items.len() + usize::from(mark.is_some());
        done(encode::write_array_len(&mut self.out, len(count)?))?;
        mark.map_or(Ok(()), |mark| self.text(mark))?;
        items.iter().try_for_each(|item| self.value(item, below))
    }

    fn shape(&mut self, shape: &[u64], depth: usize) -> Result<(), Fault> {
        let shape: Vec<Value> = shape.iter().map(|&side| side.into()).collect();
        self.text("shape")?;
        self.list(None, &shape, depth)
    }
}

/// Writing to a vector does not fail.
fn done<T, E: std::fmt::Display>(written: Result<T, E>) -> Result<(), Fault> {
    written.map(drop).map_err(|error| Fault::wrong(error.to_string()))
}

/// A length of at most 32 bits.
fn len(len: usize) -> Result<u32, Fault> {
    u32::try_from(len)
        .map_err(|_| Fault::wrong(format!("of length {len}, which does not fit in 32 bits")))
}

/// Checks that a list will not be read as a tuple.
pub(super) fn check_first(items: &[Value]) -> Result<(), Fault> {
    match items.first().and_then(Value::as_str) == Some(TUPLE) {
        true => Err(marked()),
        false => Ok(()),
    }
}

/// The error of a list that would be read as a tuple.
pub(super) fn marked() -> Fault {
    Fault::wrong(format!("a tuple: it is a list that starts with `{TUPLE}`"))
}

/// Checks that no other variant uses the type number of an extension, and that Python's msgpack accepts the number: 0
/// to 127, and -1 for timestamps.
fn check_kind(kind: i8, len: usize) -> Result<(), Fault> {
    match kind {
        ext::FRAME..=ext::ARRAY => Err(Fault::wrong(format!(
            "an extension of type {kind}, which is a separate kind of value"
        ))),
        0.. => Ok(()),
        -1 if matches!(len, 4 | 8 | 12) => Ok(()),
        _ => Err(Fault::wrong(format!("an extension of type {kind} and {len} bytes"))),
    }
}

fn is_hashable(value: &Value) -> bool {
    match value {
        Value::List(_) | Value::Map(_) | Value::Set(_) => false,
        Value::Array(_) | Value::Objects { .. } | Value::Frame(_) => false,
        Value::Tuple(items) => items.iter().all(is_hashable),
        _ => true,
    }
}
