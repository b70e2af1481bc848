//! Arrow arrays as values, and values as Arrow arrays.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, BinaryType, ByteArrayType, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, LargeBinaryType, LargeUtf8Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type, Utf8Type,
};
use arrow_array::{
    Array, ArrayRef, BooleanArray, FixedSizeListArray, GenericByteArray, GenericListArray,
    OffsetSizeTrait, PrimitiveArray, StructArray, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{ArrowError, DataType, Field, FieldRef};
use blosc2::{ErrorKind, Value};

use super::items::{bytes_of, texts_of};
use super::metadata::complex_size;
use crate::tag::{Fault, weight, what};

/// The items of an array as values, which may take `left` bytes of memory. Points in time, times and durations are
/// integers. The error describes why they cannot be read.
pub(crate) fn values_of(
    field: &Field,
    array: &dyn Array,
    left: &mut u64,
) -> Result<Vec<Value>, Fault> {
    take(left, (array.len() as u64).saturating_mul(size_of::<Value>() as u64))?;
    match array.data_type() {
        DataType::Null => Ok(vec![Value::None; array.len()]),
        DataType::Boolean => Ok(all(array.as_boolean().iter(), Value::Bool)),
        DataType::Int8 => Ok(ints::<Int8Type>(array)),
        DataType::Int16 => Ok(ints::<Int16Type>(array)),
        DataType::Int32 => Ok(ints::<Int32Type>(array)),
        DataType::Int64 => Ok(ints::<Int64Type>(array)),
        DataType::UInt8 => Ok(ints::<UInt8Type>(array)),
        DataType::UInt16 => Ok(ints::<UInt16Type>(array)),
        DataType::UInt32 => Ok(ints::<UInt32Type>(array)),
        DataType::UInt64 => Ok(ints::<UInt64Type>(array)),
        DataType::Float16 => {
            Ok(all(array.as_primitive::<Float16Type>().iter(), |item| item.to_f64().into()))
        }
        DataType::Float32 => Ok(all(array.as_primitive::<Float32Type>().iter(), Value::from)),
        DataType::Float64 => Ok(all(array.as_primitive::<Float64Type>().iter(), Value::from)),
        DataType::Date32 | DataType::Time32(_) => {
            Ok(ints::<Int32Type>(&*as_type(array, DataType::Int32)?))
        }
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => Ok(ints::<Int64Type>(&*as_type(array, DataType::Int64)?)),
        DataType::List(item) => lists::<i32>(item, array, left),
        DataType::LargeList(item) => lists::<i64>(item, array, left),
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let size = *size as usize;
            let items = values_of(item, &lists.values().slice(0, size * array.len()), left)?;
            let mut items = items.into_iter();
            let rows = (0..array.len()).map(|row| {
                let list: Vec<Value> = items.by_ref().take(size).collect();
                match (array.is_null(row), complex_size(field), &list[..]) {
                    (true, ..) => Value::None,
                    (_, Some(_), [Value::Float(re), Value::Float(im)]) => {
                        Value::Complex { re: *re, im: *im }
                    }
                    _ => Value::List(list),
                }
            });
            Ok(rows.collect())
        }
        DataType::Map(entries, _) => {
            let map = array.as_map();
            let pairs = map.entries().clone();
            let lists = GenericListArray::<i32>::try_new(
                entries.clone(),
                map.offsets().clone(),
                Arc::new(pairs),
                map.nulls().cloned(),
            );
            let lists = lists.map_err(text)?;
            let mut rows = values_of(field, &lists, left)?;
            for row in &mut rows {
                let Value::List(pairs) = row else { continue };
                for pair in pairs {
                    if let Value::Map(members) = pair {
                        *pair = Value::Tuple(members.drain(..).map(|(_, value)| value).collect());
                    }
                }
            }
            Ok(rows)
        }
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let columns = members.map(|(field, member)| {
                Ok((field.name(), values_of(field, member, left)?.into_iter()))
            });
            let mut columns: Vec<_> = columns.collect::<Result<_, Fault>>()?;
            let names: usize = fields.iter().map(|field| field.name().len()).sum();
            let key = fields.len() * size_of::<Value>() + names;
            take(left, (array.len() as u64).saturating_mul(key as u64))?;
            let rows = (0..array.len()).map(|row| {
                let pairs = columns.iter_mut().map(|(name, column)| {
                    (name.as_str().into(), column.next().unwrap_or(Value::None))
                });
                let pairs = pairs.collect();
                if array.is_null(row) { Value::None } else { Value::Map(pairs) }
            });
            Ok(rows.collect())
        }
        DataType::Dictionary(_, data_type) => {
            let dictionary = array.as_any_dictionary();
            let field = Field::new(field.name(), (**data_type).clone(), true);
            let values = values_of(&field, dictionary.values(), left)?;
            let keys = match values.is_empty() {
                // Only nulls: there is nothing to which keys could be normalized.
                true => vec![0; array.len()],
                false => dictionary.normalized_keys(),
            };
            let rows = keys.into_iter().enumerate().map(|(row, key)| {
                let value = match (array.is_null(row), values.get(key)) {
                    (false, Some(value)) => value,
                    _ => &Value::None,
                };
                take(left, weight(value))?;
                Ok(value.clone())
            });
            rows.collect()
        }
        other => {
            if let Some(texts) = texts_of(array) {
                let nbytes = texts.iter().flatten().map(|text| text.len() as u64).sum();
                take(left, nbytes)?;
                return Ok(all(texts.into_iter(), Value::from));
            }
            if let Some(parts) = bytes_of(array) {
                take(left, parts.iter().flatten().map(|part| part.len() as u64).sum())?;
                return Ok(all(parts.into_iter(), |part| part.to_vec().into()));
            }
            let detail = format!("items of the Arrow type {other} have no corresponding value");
            Err((ErrorKind::Unsupported, detail))
        }
    }
}

fn take(left: &mut u64, nbytes: u64) -> Result<(), Fault> {
    let less = left.checked_sub(nbytes);
    *left = less.ok_or_else(|| {
        let detail = format!("its values exceed the memory limit by {} bytes", nbytes - *left);
        (ErrorKind::TooLarge, detail)
    })?;
    Ok(())
}

fn all<T>(items: impl Iterator<Item = Option<T>>, value: impl Fn(T) -> Value) -> Vec<Value> {
    items.map(|item| item.map_or(Value::None, &value)).collect()
}

fn ints<T: ArrowPrimitiveType<Native: Into<i128>>>(array: &dyn Array) -> Vec<Value> {
    all(array.as_primitive::<T>().iter(), |item| Value::Int(item.into()))
}

/// The same items with another type of the same layout.
pub(super) fn as_type(array: &dyn Array, data_type: DataType) -> Result<ArrayRef, Fault> {
    let data = array.to_data().into_builder().data_type(data_type).build();
    data.map(make_array).map_err(text)
}

fn lists<O: OffsetSizeTrait>(
    item: &Field,
    array: &dyn Array,
    left: &mut u64,
) -> Result<Vec<Value>, Fault> {
    let lists = array.as_list::<O>();
    let offsets = lists.offsets();
    let (first, last) = (offsets[0].as_usize(), offsets[array.len()].as_usize());
    let items = values_of(item, &lists.values().slice(first, last - first), left)?;
    let mut items = items.into_iter();
    let rows = offsets.lengths().enumerate().map(|(row, len)| {
        let list = items.by_ref().take(len).collect();
        if array.is_null(row) { Value::None } else { Value::List(list) }
    });
    Ok(rows.collect())
}

/// The array of a field with these items. The error describes what does not fit into it.
pub(crate) fn array_from(field: &Field, values: &[&Value]) -> Result<ArrayRef, Fault> {
    let any_null = values.contains(&&Value::None);
    let nulls = any_null.then(|| {
        let valid: Vec<bool> = values.iter().map(|value| **value != Value::None).collect();
        NullBuffer::from(valid)
    });
    let wrong = |value: &Value| {
        let (name, data_type) = (field.name(), field.data_type());
        let detail =
            format!("{} in `{name}`, expected an item of the type {data_type}", what(value));
        (ErrorKind::InvalidData, detail)
    };
    Ok(match field.data_type() {
        DataType::Boolean => {
            let items = values.iter().map(|value| match value {
                Value::None => Ok(None),
                Value::Bool(item) => Ok(Some(*item)),
                Value::Int(item @ 0..=1) => Ok(Some(*item == 1)),
                other => Err(wrong(other)),
            });
            Arc::new(items.collect::<Result<BooleanArray, _>>()?)
        }
        DataType::Int8 => numbers::<Int8Type>(values, int, wrong)?,
        DataType::Int16 => numbers::<Int16Type>(values, int, wrong)?,
        DataType::Int32 => numbers::<Int32Type>(values, int, wrong)?,
        DataType::Int64 => numbers::<Int64Type>(values, int, wrong)?,
        DataType::UInt8 => numbers::<UInt8Type>(values, int, wrong)?,
        DataType::UInt16 => numbers::<UInt16Type>(values, int, wrong)?,
        DataType::UInt32 => numbers::<UInt32Type>(values, int, wrong)?,
        DataType::UInt64 => numbers::<UInt64Type>(values, int, wrong)?,
        DataType::Float32 => {
            numbers::<Float32Type>(values, |value| Some(float(value)? as f32), wrong)?
        }
        DataType::Float64 => numbers::<Float64Type>(values, float, wrong)?,
        data_type @ (DataType::Timestamp(..) | DataType::Duration(_)) => {
            let items = numbers::<Int64Type>(values, int, wrong)?;
            as_type(&items, data_type.clone())?
        }
        DataType::Utf8 => strings::<Utf8Type>(values, Value::as_str, wrong)?,
        DataType::LargeUtf8 => strings::<LargeUtf8Type>(values, Value::as_str, wrong)?,
        DataType::Binary => strings::<BinaryType>(values, byte_string, wrong)?,
        DataType::LargeBinary => strings::<LargeBinaryType>(values, byte_string, wrong)?,
        DataType::List(item) => lists_from::<i32>(item, values, nulls, wrong)?,
        DataType::LargeList(item) => lists_from::<i64>(item, values, nulls, wrong)?,
        DataType::FixedSizeList(item, 2) if complex_size(field).is_some() => {
            let zero = Value::Float(0.0);
            let mut parts = Vec::with_capacity(2 * values.len());
            for value in values {
                parts.extend(match value {
                    Value::None => [zero.clone(), zero.clone()],
                    Value::Complex { re, im } => [Value::Float(*re), Value::Float(*im)],
                    other => return Err(wrong(other)),
                });
            }
            let parts: Vec<&Value> = parts.iter().collect();
            let parts = array_from(item, &parts)?;
            Arc::new(FixedSizeListArray::try_new(item.clone(), 2, parts, nulls).map_err(text)?)
        }
        DataType::Struct(fields) => {
            let columns = fields.iter().map(|field| {
                let members = values.iter().map(|value| match value {
                    Value::None => Ok(&Value::None),
                    Value::Map(_) => Ok(value.get(field.name()).unwrap_or(&Value::None)),
                    other => Err(wrong(other)),
                });
                array_from(field, &members.collect::<Result<Vec<_>, _>>()?)
            });
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            let array =
                StructArray::try_new_with_length(fields.clone(), columns, nulls, values.len());
            Arc::new(array.map_err(text)?)
        }
        other => {
            let detail = format!("values cannot be converted to the Arrow type {other}");
            return Err((ErrorKind::Unsupported, detail));
        }
    })
}

fn numbers<T: ArrowPrimitiveType>(
    values: &[&Value],
    item: impl Fn(&Value) -> Option<T::Native>,
    wrong: impl Fn(&Value) -> Fault,
) -> Result<ArrayRef, Fault> {
    let items = values.iter().map(|value| match value {
        Value::None => Ok(None),
        value => item(value).map(Some).ok_or_else(|| wrong(value)),
    });
    Ok(Arc::new(items.collect::<Result<PrimitiveArray<T>, _>>()?))
}

fn int<T: TryFrom<i128>>(value: &Value) -> Option<T> {
    if let Value::Int(item) = value { T::try_from(*item).ok() } else { None }
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Float(item) => Some(*item),
        Value::Int(item) => Some(*item as f64),
        _ => None,
    }
}

/// An array of strings; `item` returns the string in a value.
fn strings<T: ByteArrayType>(
    values: &[&Value],
    item: impl for<'a> Fn(&'a Value) -> Option<&'a T::Native>,
    wrong: impl Fn(&Value) -> Fault,
) -> Result<ArrayRef, Fault> {
    fits::<T::Offset>(values)?;
    let items = values.iter().map(|value| match value {
        Value::None => Ok(None),
        value => item(value).map(Some).ok_or_else(|| wrong(value)),
    });
    Ok(Arc::new(items.collect::<Result<GenericByteArray<T>, _>>()?))
}

fn byte_string(value: &Value) -> Option<&[u8]> {
    if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
}

/// Checks that the offsets of strings in one array do not overflow.
fn fits<O: OffsetSizeTrait>(values: &[&Value]) -> Result<(), Fault> {
    let lengths = values.iter().map(|value| match value {
        Value::Str(item) => item.len(),
        Value::Bytes(item) => item.len(),
        _ => 0,
    });
    let nbytes = lengths.fold(0, usize::saturating_add);
    if O::from_usize(nbytes).is_some() {
        return Ok(());
    }
    Err(too_many(&format!("strings of {nbytes} bytes")))
}

fn lists_from<O: OffsetSizeTrait>(
    item: &FieldRef,
    values: &[&Value],
    nulls: Option<NullBuffer>,
    wrong: impl Fn(&Value) -> Fault,
) -> Result<ArrayRef, Fault> {
    let mut all = Vec::new();
    let mut lengths = Vec::with_capacity(values.len());
    for value in values {
        let items: &[Value] = match value {
            Value::None => &[],
            Value::List(items) | Value::Tuple(items) | Value::Set(items) => items,
            other => return Err(wrong(other)),
        };
        all.extend(items);
        lengths.push(items.len());
    }
    if O::from_usize(all.len()).is_none() {
        return Err(too_many(&format!("{} items", all.len())));
    }
    let offsets = OffsetBuffer::<O>::from_lengths(lengths);
    let array = GenericListArray::try_new(item.clone(), offsets, array_from(item, &all)?, nulls);
    Ok(Arc::new(array.map_err(text)?))
}

fn too_many(what: &str) -> Fault {
    (ErrorKind::TooLarge, format!("{what} do not fit into one array: read fewer rows at a time"))
}

fn text(error: ArrowError) -> Fault {
    (ErrorKind::InvalidData, error.to_string())
}
