//! Arrow arrays as values, and values as Arrow arrays.

use std::sync::Arc;

use crate::blosc2::{ErrorKind, Value};
use arrow_array::cast::AsArray;
use arrow_array::types::{BinaryType, ByteArrayType, LargeBinaryType, LargeUtf8Type, Utf8Type};
use arrow_array::{
    Array, ArrayRef, GenericByteArray, GenericListArray, OffsetSizeTrait, StructArray, make_array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef};

use super::dtypes::fixed_dtype;
use super::items::{array_of, bytes_of, fits, items_of, keys_of, texts_of};
use super::metadata::{ITEM, complex_size};
use crate::ctable::scalar::{push_scalar, scalar};
use crate::tag::{Fault, invalid_data as invalid, weight, what};

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
        DataType::Date32 | DataType::Time32(_) => as_numbers(DataType::Int32, array, left),
        DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => as_numbers(DataType::Int64, array, left),
        data_type if is_number(data_type) => {
            let items = items_of(field, array, true)?;
            let rows = items.bytes.chunks_exact(items.dtype.size()).enumerate();
            let mut values = Vec::with_capacity(array.len());
            for (row, item) in rows {
                values.push(match array.is_null(row) {
                    true => Value::None,
                    false => scalar(&items.dtype, item).map_err(invalid)?,
                });
            }
            Ok(values)
        }
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
            let lists = lists.map_err(invalid)?;
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
            let field = Field::new(field.name(), (**data_type).clone(), true);
            let values = values_of(&field, array.as_any_dictionary().values(), left)?;
            let rows = keys_of(array).map(|key| {
                let value = key.map_or(&Value::None, |key| &values[key]);
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

/// Whether items of a type are numbers or booleans that have a dtype.
fn is_number(data_type: &DataType) -> bool {
    data_type.is_integer() || data_type.is_floating() || *data_type == DataType::Boolean
}

/// The values of an array whose items are stored like those of another type.
fn as_numbers(data_type: DataType, array: &dyn Array, left: &mut u64) -> Result<Vec<Value>, Fault> {
    let field = Field::new(ITEM, data_type.clone(), true);
    values_of(&field, &*as_type(array, data_type)?, left)
}

/// The same items with another type of the same layout.
fn as_type(array: &dyn Array, data_type: DataType) -> Result<ArrayRef, Fault> {
    let data = array.to_data().into_builder().data_type(data_type).build();
    data.map(make_array).map_err(invalid)
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
        data_type if is_number(data_type) || complex_size(field).is_some() => {
            let none = || invalid(format!("the Arrow type {data_type} has no dtype"));
            let dtype = fixed_dtype(field).ok_or_else(none)?;
            let is_bool = *data_type == DataType::Boolean;
            let mut bytes = Vec::with_capacity(values.len() * dtype.size());
            for value in values {
                match value {
                    Value::None => bytes.resize(bytes.len() + dtype.size(), 0),
                    Value::Int(item @ 0..=1) if is_bool => bytes.push(u8::from(*item == 1)),
                    Value::Bool(_) if !is_bool => return Err(wrong(value)),
                    value => push_scalar(&dtype, value, &mut bytes).map_err(|_| wrong(value))?,
                }
            }
            array_of(field, &dtype, &[], values.len(), bytes, nulls)?
        }
        data_type @ (DataType::Timestamp(..) | DataType::Duration(_)) => {
            let items = array_from(&Field::new(field.name(), DataType::Int64, true), values)?;
            as_type(&items, data_type.clone())?
        }
        DataType::Utf8 => strings::<Utf8Type>(values, Value::as_str, wrong)?,
        DataType::LargeUtf8 => strings::<LargeUtf8Type>(values, Value::as_str, wrong)?,
        DataType::Binary => strings::<BinaryType>(values, byte_string, wrong)?,
        DataType::LargeBinary => strings::<LargeBinaryType>(values, byte_string, wrong)?,
        DataType::List(item) => lists_from::<i32>(item, values, nulls, wrong)?,
        DataType::LargeList(item) => lists_from::<i64>(item, values, nulls, wrong)?,
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
            Arc::new(array.map_err(invalid)?)
        }
        other => {
            let detail = format!("values cannot be converted to the Arrow type {other}");
            return Err((ErrorKind::Unsupported, detail));
        }
    })
}

/// An array of strings; `item` returns the string in a value.
fn strings<T: ByteArrayType>(
    values: &[&Value],
    item: impl for<'a> Fn(&'a Value) -> Option<&'a T::Native>,
    wrong: impl Fn(&Value) -> Fault,
) -> Result<ArrayRef, Fault> {
    fits::<T::Offset>(values.iter().map(|value| match value {
        Value::Str(item) => item.len(),
        Value::Bytes(item) => item.len(),
        _ => 0,
    }))?;
    let items = values.iter().map(|value| match value {
        Value::None => Ok(None),
        value => item(value).map(Some).ok_or_else(|| wrong(value)),
    });
    Ok(Arc::new(items.collect::<Result<GenericByteArray<T>, _>>()?))
}

fn byte_string(value: &Value) -> Option<&[u8]> {
    if let Value::Bytes(bytes) = value { Some(bytes) } else { None }
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
    fits::<O>([all.len()].into_iter())?;
    let offsets = OffsetBuffer::<O>::from_lengths(lengths);
    let array = GenericListArray::try_new(item.clone(), offsets, array_from(item, &all)?, nulls);
    Ok(Arc::new(array.map_err(invalid)?))
}
