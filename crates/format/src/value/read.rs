//! Decoding of values from msgpack.

use rmp::Marker;

use super::error::Fault;
use super::{ArrayValue, MAX_DEPTH, TUPLE, Value, array, ext};

/// Reads one value, which may contain at most `max_values` values.
pub(super) fn read(bytes: &[u8], max_values: u64) -> Result<Value, Fault> {
    // Each value takes at least one byte, so that a false length does not cause an allocation.
    let len = bytes.len() as u64;
    whole(bytes, &mut len.min(max_values), MAX_DEPTH).map_err(|fault| match fault {
        Fault::TooMany if len <= max_values => cut(),
        fault => fault,
    })
}

/// Reads the start of one value: at most `most` values, and `most` bytes of the last string. What follows is neither read
/// nor checked.
pub(super) fn read_start(bytes: &[u8], most: usize) -> Result<Value, Fault> {
    let mut left = bytes.len() as u64;
    let mut reader =
        Reader { rest: bytes, left: &mut left, start: Some(Start { most, room: most }) };
    let value = reader.value(MAX_DEPTH)?;
    match (reader.rest, reader.is_cut()) {
        ([], _) | (_, true) => Ok(value),
        _ => Err(follows()),
    }
}

/// Reads the extension of this type and content.
pub(super) fn read_extension(kind: i8, content: &[u8]) -> Result<Value, Fault> {
    let mut left = content.len() as u64;
    extension(kind, content, &mut left, MAX_DEPTH)
}

fn cut() -> Fault {
    Fault::wrong("not msgpack: it is truncated")
}

fn follows() -> Fault {
    Fault::wrong("not msgpack: bytes follow the value")
}

/// Reads one value. No bytes may follow it.
fn whole(bytes: &[u8], left: &mut u64, depth: usize) -> Result<Value, Fault> {
    let mut reader = Reader { rest: bytes, left, start: None };
    reader.claim(1)?;
    let value = reader.value(depth)?;
    match reader.rest {
        [] => Ok(value),
        _ => Err(follows()),
    }
}

struct Reader<'a, 'n> {
    rest: &'a [u8],
    /// The number of values that may still be claimed. A list claims all its items before they are read.
    left: &'n mut u64,
    /// If only the start of the value is read.
    start: Option<Start>,
}

/// The limits of the start of a value.
struct Start {
    /// The maximum number of bytes of a string.
    most: usize,
    /// The number of values that are still read. If it is 0, the value ends here.
    room: usize,
}

impl<'a> Reader<'a, '_> {
    /// Whether the start of the value is read, and the rest is left out.
    fn is_cut(&self) -> bool {
        self.start.as_ref().is_some_and(|start| start.room == 0)
    }

    /// Returns the length of a string or of bytes that is read.
    fn cut_len(&mut self, len: usize) -> usize {
        match &mut self.start {
            Some(start) if len > start.most => {
                start.room = 0;
                start.most
            }
            _ => len,
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, Fault> {
        if let Some(start) = &mut self.start {
            start.room = start.room.saturating_sub(1);
        }
        Ok(match Marker::from_u8(self.number::<1>()?[0]) {
            Marker::Null => Value::None,
            Marker::True => Value::Bool(true),
            Marker::False => Value::Bool(false),
            Marker::FixPos(number) => Value::Int(number.into()),
            Marker::FixNeg(number) => Value::Int(number.into()),
            Marker::U8 => Value::Int(u8::from_be_bytes(self.number()?).into()),
            Marker::U16 => Value::Int(u16::from_be_bytes(self.number()?).into()),
            Marker::U32 => Value::Int(u32::from_be_bytes(self.number()?).into()),
            Marker::U64 => Value::Int(u64::from_be_bytes(self.number()?).into()),
            Marker::I8 => Value::Int(i8::from_be_bytes(self.number()?).into()),
            Marker::I16 => Value::Int(i16::from_be_bytes(self.number()?).into()),
            Marker::I32 => Value::Int(i32::from_be_bytes(self.number()?).into()),
            Marker::I64 => Value::Int(i64::from_be_bytes(self.number()?).into()),
            Marker::F32 => Value::Float(f32::from_be_bytes(self.number()?).into()),
            Marker::F64 => Value::Float(f64::from_be_bytes(self.number()?)),
            Marker::FixStr(len) => self.text(len.into())?,
            Marker::Str8 => self.len8().and_then(|len| self.text(len))?,
            Marker::Str16 => self.len16().and_then(|len| self.text(len))?,
            Marker::Str32 => self.len32().and_then(|len| self.text(len))?,
            Marker::Bin8 => self.len8().and_then(|len| self.bytes(len))?,
            Marker::Bin16 => self.len16().and_then(|len| self.bytes(len))?,
            Marker::Bin32 => self.len32().and_then(|len| self.bytes(len))?,
            Marker::FixArray(len) => self.list(len.into(), depth)?,
            Marker::Array16 => self.len16().and_then(|len| self.list(len, depth))?,
            Marker::Array32 => self.len32().and_then(|len| self.list(len, depth))?,
            Marker::FixMap(len) => self.map(len.into(), depth)?,
            Marker::Map16 => self.len16().and_then(|len| self.map(len, depth))?,
            Marker::Map32 => self.len32().and_then(|len| self.map(len, depth))?,
            Marker::FixExt1 => self.ext(1, depth)?,
            Marker::FixExt2 => self.ext(2, depth)?,
            Marker::FixExt4 => self.ext(4, depth)?,
            Marker::FixExt8 => self.ext(8, depth)?,
            Marker::FixExt16 => self.ext(16, depth)?,
            Marker::Ext8 => self.len8().and_then(|len| self.ext(len, depth))?,
            Marker::Ext16 => self.len16().and_then(|len| self.ext(len, depth))?,
            Marker::Ext32 => self.len32().and_then(|len| self.ext(len, depth))?,
            Marker::Reserved => return Err(Fault::wrong("not msgpack: it contains the byte 0xc1")),
        })
    }

    fn claim(&mut self, values: usize) -> Result<(), Fault> {
        *self.left = self.left.checked_sub(values as u64).ok_or(Fault::TooMany)?;
        Ok(())
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Fault> {
        let (taken, rest) = self.rest.split_at_checked(len).ok_or_else(cut)?;
        self.rest = rest;
        Ok(taken)
    }

    /// Returns the maximum number of the next `len` values that are read.
    fn max_values(&self, len: usize) -> usize {
        self.start.as_ref().map_or(len, |start| len.min(start.room))
    }

    fn number<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let mut number = [0; N];
        number.copy_from_slice(self.take(N)?);
        Ok(number)
    }

    fn len8(&mut self) -> Result<usize, Fault> {
        Ok(u8::from_be_bytes(self.number()?).into())
    }

    fn len16(&mut self) -> Result<usize, Fault> {
        Ok(u16::from_be_bytes(self.number()?).into())
    }

    fn len32(&mut self) -> Result<usize, Fault> {
        Ok(u32::from_be_bytes(self.number()?) as usize)
    }

    fn text(&mut self, len: usize) -> Result<Value, Fault> {
        let taken = self.cut_len(len);
        let bytes = self.take(taken)?;
        let text = match str::from_utf8(bytes) {
            // The last character is incomplete.
            Err(error) if taken < len && error.error_len().is_none() => {
                str::from_utf8(&bytes[..error.valid_up_to()])
            }
            text => text,
        };
        let text = text.map_err(|_| Fault::wrong("not msgpack: a string in it is not UTF-8"))?;
        Ok(Value::Str(text.to_owned()))
    }

    fn bytes(&mut self, len: usize) -> Result<Value, Fault> {
        let len = self.cut_len(len);
        Ok(Value::Bytes(self.take(len)?.to_vec()))
    }

    fn list(&mut self, len: usize, depth: usize) -> Result<Value, Fault> {
        let below = below(depth)?;
        self.claim(len)?;
        let mut items = Vec::with_capacity(self.max_values(len));
        for _ in 0..len {
            if self.is_cut() {
                break;
            }
            items.push(self.value(below)?);
        }
        if items.first().and_then(Value::as_str) == Some(TUPLE) {
            items.remove(0);
            return Ok(Value::Tuple(items));
        }
        Ok(Value::List(items))
    }

    fn map(&mut self, len: usize, depth: usize) -> Result<Value, Fault> {
        let below = below(depth)?;
        self.claim(len.saturating_mul(2))?;
        let mut pairs = Vec::with_capacity(self.max_values(len));
        for _ in 0..len {
            if self.is_cut() {
                break;
            }
            let key = self.value(below)?;
            pairs.push((key, if self.is_cut() { Value::None } else { self.value(below)? }));
        }
        Ok(Value::Map(pairs))
    }

    fn ext(&mut self, len: usize, depth: usize) -> Result<Value, Fault> {
        let kind = i8::from_be_bytes(self.number()?);
        let len = match kind {
            ext::REFERENCE | ext::COMPLEX | ext::SET | ext::ARRAY => len,
            _ => self.cut_len(len),
        };
        extension(kind, self.take(len)?, self.left, depth)
    }
}

fn extension(kind: i8, bytes: &[u8], left: &mut u64, depth: usize) -> Result<Value, Fault> {
    let mut inner = || whole(bytes, left, below(depth)?);
    match kind {
        ext::FRAME => Ok(Value::Frame(bytes.to_vec())),
        ext::REFERENCE => Ok(Value::Reference(Box::new(inner()?))),
        ext::COMPLEX => complex(bytes),
        ext::SET => {
            let items = into_list(inner()?);
            items.map(Value::Set).ok_or_else(|| Fault::wrong("a set that is not a list"))
        }
        ext::ARRAY => array_of(inner()?),
        _ => Ok(Value::Ext(kind, bytes.to_vec())),
    }
}

/// The items of a value that was written as a list. A list whose first item is `__tuple__` was read as a tuple.
fn into_list(value: Value) -> Option<Vec<Value>> {
    match value {
        Value::List(items) => Some(items),
        Value::Tuple(mut items) => {
            items.insert(0, TUPLE.into());
            Some(items)
        }
        _ => None,
    }
}

/// The number of nested levels that are allowed inside a value, if `depth` levels are allowed including the value.
pub(super) fn below(depth: usize) -> Result<usize, Fault> {
    depth
        .checked_sub(1)
        .ok_or_else(|| Fault::wrong(format!("nested deeper than {MAX_DEPTH} levels")))
}

fn complex(bytes: &[u8]) -> Result<Value, Fault> {
    let numbers: Result<&[u8; 16], _> = bytes.try_into();
    let numbers =
        numbers.map_err(|_| Fault::wrong("a complex number of a size other than 16 bytes"))?;
    let number = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&numbers[at..at + 8]);
        f64::from_be_bytes(bytes)
    };
    Ok(Value::Complex { re: number(0), im: number(8) })
}

/// A NumPy array from the map that describes it.
fn array_of(description: Value) -> Result<Value, Fault> {
    let shape = description.get("shape").and_then(Value::as_list);
    let shape = shape.and_then(|shape| shape.iter().map(Value::as_u64).collect::<Option<Vec<_>>>());
    let shape = shape.ok_or_else(|| Fault::wrong("an array without a shape"))?;
    if description.get("values").is_some() {
        let values = take(description, "values").and_then(into_list);
        let values = values.ok_or_else(|| Fault::wrong("an array without values"))?;
        check_objects(&shape, &values)?;
        return Ok(Value::Objects { shape, values });
    }
    let dtype = description.get("dtype").ok_or_else(|| Fault::wrong("an array without a dtype"))?;
    let dtype = array::dtype_of(dtype).map_err(Fault::Wrong)?;
    let Some(Value::Bytes(data)) = take(description, "data") else {
        return Err(Fault::wrong("an array without data"));
    };
    ArrayValue::checked(dtype, shape, data).map(Value::Array).map_err(Fault::Wrong)
}

fn take(map: Value, key: &str) -> Option<Value> {
    let Value::Map(pairs) = map else { return None };
    let mut found = pairs.into_iter().rev().filter(|(name, _)| name.as_str() == Some(key));
    found.next().map(|(_, value)| value)
}

pub(super) fn check_objects(shape: &[u64], values: &[Value]) -> Result<(), Fault> {
    array::check_shape(shape).map_err(Fault::Wrong)?;
    if array::items_of(shape) != Some(values.len() as u64) {
        let len = values.len();
        return Err(Fault::wrong(format!("an array of shape {shape:?} with {len} values")));
    }
    Ok(())
}
