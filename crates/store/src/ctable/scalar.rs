//! Single items of arrays as values, and back.

use crate::blosc2::dtype::{ByteOrder, Kind, ScalarDecoder};
use crate::blosc2::{Dtype, Value};
use half::f16;

use crate::item_type::int_range;
use crate::tag::what;

/// Converts an item to a value.
pub(crate) fn scalar(dtype: &Dtype, bytes: &[u8]) -> Result<Value, String> {
    let decoder = ScalarDecoder::new(dtype);
    let unknown = || Err(format!("items of the dtype {dtype} have no corresponding value"));
    Ok(match (dtype.kind(), bytes.len()) {
        (Some(Kind::Bool), 1) => Value::Bool(bytes[0] != 0),
        (Some(Kind::Int | Kind::UInt), 1..=8) => Value::Int(decoder.int(bytes)),
        (Some(Kind::Float), 2 | 4 | 8) => decoder.float(bytes).into(),
        (Some(Kind::Complex), 8 | 16) => {
            let (re, im) = decoder.complex(bytes);
            Value::Complex { re, im }
        }
        (Some(Kind::Unicode), _) => {
            let chars = decoder.chars(bytes).map(|code| {
                char::from_u32(code)
                    .ok_or_else(|| format!("a string has the invalid character {code:#x}"))
            });
            Value::Str(chars.collect::<Result<_, _>>()?)
        }
        (Some(Kind::Bytes), _) => Value::Bytes(without_zeros(bytes).to_vec()),
        _ => return unknown(),
    })
}

/// Without trailing zeros: NumPy does not distinguish them from padding.
pub(crate) fn without_zeros(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

/// The null value, as it is read from an item.
pub(super) fn as_item(sentinel: &Value, dtype: &Dtype) -> Value {
    let float = |number: f64| match dtype.size() {
        2 => f16::from_f64(number).to_f64(),
        4 => (number as f32).into(),
        _ => number,
    };
    match (sentinel, dtype.kind()) {
        (Value::Bool(value), _) => Value::Int((*value).into()),
        (Value::Float(number), Some(Kind::Float)) => float(*number).into(),
        (Value::Int(number), Some(Kind::Float)) => float(*number as f64).into(),
        (Value::Str(text), Some(Kind::Unicode)) => text.trim_end_matches('\0').into(),
        (Value::Bytes(bytes), Some(Kind::Bytes)) => without_zeros(bytes).to_vec().into(),
        (sentinel, _) => sentinel.clone(),
    }
}

/// Whether an item is the null value; all NaNs are equal here.
pub(super) fn same(item: &Value, sentinel: &Value) -> bool {
    match (item, sentinel) {
        (Value::Float(item), Value::Float(sentinel)) if sentinel.is_nan() => item.is_nan(),
        (Value::Int(item), Value::Float(sentinel)) => *item as f64 == *sentinel,
        (Value::Bool(item), sentinel) => *sentinel == Value::Int((*item).into()),
        (item, sentinel) => item == sentinel,
    }
}

/// Appends the bytes of an item. The error describes the value and what was expected.
pub(crate) fn push_scalar(dtype: &Dtype, value: &Value, bytes: &mut Vec<u8>) -> Result<(), String> {
    let start = bytes.len();
    let size = dtype.size();
    let failed = || format!("{}, expected an item of {dtype}", what(value));
    let float = |bytes: &mut Vec<u8>, number: f64, size: usize| match size {
        2 => bytes.extend_from_slice(&f16::from_f64(number).to_le_bytes()),
        4 => bytes.extend_from_slice(&(number as f32).to_le_bytes()),
        _ => bytes.extend_from_slice(&number.to_le_bytes()),
    };
    let number = |value: &Value| match value {
        Value::Float(number) => Some(*number),
        Value::Int(number) => Some(*number as f64),
        _ => None,
    };
    // The size of the parts whose bytes have an order.
    let mut part = size;
    match (dtype.kind(), value) {
        (Some(Kind::Bool), Value::Bool(value)) if size == 1 => bytes.push((*value).into()),
        (Some(Kind::UInt), Value::Bool(value)) if size == 1 => bytes.push((*value).into()),
        (Some(kind @ (Kind::Int | Kind::UInt)), Value::Int(number)) if size <= 8 => {
            if !int_range(kind, size as u64).contains(number) {
                return Err(failed());
            }
            bytes.extend_from_slice(&number.to_le_bytes()[..size]);
        }
        (Some(Kind::Float), value) if matches!(size, 2 | 4 | 8) => {
            float(bytes, number(value).ok_or_else(failed)?, size);
        }
        (Some(Kind::Complex), value) if matches!(size, 8 | 16) => {
            part = size / 2;
            let (re, im) = match value {
                Value::Complex { re, im } => (*re, *im),
                value => (number(value).ok_or_else(failed)?, 0.0),
            };
            float(bytes, re, part);
            float(bytes, im, part);
        }
        (Some(Kind::Unicode), Value::Str(text)) => {
            part = 4;
            check_end(text.ends_with('\0'))?;
            for char in text.chars() {
                bytes.extend_from_slice(&u32::from(char).to_le_bytes());
            }
        }
        (Some(Kind::Bytes), Value::Bytes(content)) => {
            part = 1;
            check_end(content.ends_with(&[0]))?;
            bytes.extend_from_slice(content);
        }
        _ => return Err(failed()),
    }
    if bytes.len() - start > size {
        return Err(failed());
    }
    bytes.resize(start + size, 0);
    if dtype.byte_order() == Some(ByteOrder::Big) {
        bytes[start..].chunks_exact_mut(part.max(1)).for_each(<[u8]>::reverse);
    }
    Ok(())
}

fn check_end(is_zero: bool) -> Result<(), String> {
    match is_zero {
        true => {
            Err("a string that ends with NUL, which NumPy does not distinguish from padding".into())
        }
        false => Ok(()),
    }
}
