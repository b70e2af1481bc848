//! Items with a dtype as Arrow arrays, and back.

use std::borrow::Cow;
use std::sync::Arc;

use crate::blosc2::dtype::{Field as DtypeField, Kind};
use crate::blosc2::{Dtype, ErrorKind, Value};
use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, FixedSizeListArray, LargeBinaryArray,
    OffsetSizeTrait, StringArray, StructArray, downcast_primitive_array, make_array,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field};

use super::dtypes::fixed_dtype;
use super::metadata::{complex_size, list_shape};
use crate::ctable::scalar::{push_scalar, scalar, without_zeros};
use crate::tag::{Fault, invalid_data as invalid, mismatch, reserve_rows};

/// The array of `len` rows of a field of [`items_field`](super::dtypes::items_field): items of a dtype in native byte
/// order, with the given shape in each row. Numbers are not copied. The error describes the fault.
pub(super) fn array_of(
    field: &Field,
    dtype: &Dtype,
    shape: &[u64],
    len: usize,
    bytes: Vec<u8>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    if let (false, DataType::FixedSizeList(item, size)) = (shape.is_empty(), field.data_type()) {
        let values = array_of(item, dtype, &[], len * *size as usize, bytes, None)?;
        return list(field, len, values, nulls);
    }
    if let Some((item, shape)) = dtype.subarray() {
        return array_of(field, item, shape, len, bytes, nulls);
    }
    if let (Some(members), DataType::Struct(fields)) = (dtype.fields(), field.data_type()) {
        let members = members.iter().zip(fields);
        let arrays = members.map(|(member, field)| {
            let (start, size) = (member.offset(), member.dtype().size());
            let mut part = Vec::with_capacity(len * size);
            for item in bytes.chunks_exact(dtype.size().max(1)) {
                part.extend_from_slice(&item[start..start + size]);
            }
            array_of(field, member.dtype(), &[], len, part, None)
        });
        let arrays = arrays.collect::<Result<Vec<_>, _>>()?;
        let array = StructArray::try_new_with_length(fields.clone(), arrays, nulls, len);
        return Ok(Arc::new(array.map_err(invalid)?));
    }
    let size = dtype.size();
    match dtype.kind() {
        Some(Kind::Bool) => {
            let items = BooleanBuffer::collect_bool(len, |index| bytes[index] != 0);
            Ok(Arc::new(BooleanArray::new(items, nulls)))
        }
        Some(Kind::Complex) => {
            let DataType::FixedSizeList(part, _) = field.data_type() else {
                return Err(invalid(format!("the field {field} is not one of complex numbers")));
            };
            let parts = plain(part.data_type(), 2 * len, bytes, None)?;
            list(field, len, parts, nulls)
        }
        Some(Kind::DateTime | Kind::TimeDelta) => {
            let number = |item: &[u8]| i64::from_ne_bytes(item.try_into().unwrap_or_default());
            let moments = || bytes.chunks_exact(8).map(number);
            let is_given = |moment: i64| moment != i64::MIN;
            let known = moments().any(|moment| !is_given(moment)).then(|| {
                let known: Vec<bool> = moments().map(is_given).collect();
                NullBuffer::from(known)
            });
            let nulls = NullBuffer::union(nulls.as_ref(), known.as_ref());
            if *field.data_type() == DataType::Date32 {
                let days = moments().map(|day| match is_given(day) {
                    true => i32::try_from(day)
                        .map_err(|_| invalid(format!("{day} days are out of range"))),
                    false => Ok(0),
                });
                let days: Vec<i32> = days.collect::<Result<_, _>>()?;
                return plain(field.data_type(), len, days, nulls);
            }
            plain(field.data_type(), len, without_nat(bytes, &nulls), nulls)
        }
        Some(Kind::Bytes) => {
            if *field.data_type() != DataType::LargeBinary {
                fits::<i32>([bytes.len()].into_iter())?;
            }
            let items = bytes
                .chunks_exact(size.max(1))
                .enumerate()
                .map(|(index, item)| is_valid(&nulls, index).then(|| without_zeros(item)));
            Ok(match field.data_type() {
                DataType::LargeBinary => Arc::new(LargeBinaryArray::from_iter(items)),
                _ => Arc::new(BinaryArray::from_iter(items)),
            })
        }
        Some(Kind::Unicode) => {
            let items = bytes.chunks_exact(size.max(1)).enumerate();
            let items = items.map(|(index, item)| match is_valid(&nulls, index) {
                true => scalar(dtype, item).map(Some),
                false => Ok(None),
            });
            let items = items.collect::<Result<Vec<_>, _>>().map_err(invalid)?;
            let items = || items.iter().map(|text| text.as_ref().and_then(Value::as_str));
            fits::<i32>(items().flatten().map(str::len))?;
            Ok(Arc::new(StringArray::from_iter(items())))
        }
        _ if matches!(field.data_type(), DataType::Timestamp(..)) => {
            plain(field.data_type(), len, without_nat(bytes, &nulls), nulls)
        }
        _ => plain(field.data_type(), len, bytes, nulls),
    }
}

/// Replaces null times, which are stored as the smallest integer, by 0. DataFusion also computes with the items of null
/// rows, and the smallest integer overflows.
fn without_nat(mut bytes: Vec<u8>, nulls: &Option<NullBuffer>) -> Vec<u8> {
    if let Some(nulls) = nulls {
        let items = bytes.chunks_exact_mut(8).zip(nulls);
        items.filter(|(_, valid)| !valid).for_each(|(item, _)| item.fill(0));
    }
    bytes
}

fn is_valid(nulls: &Option<NullBuffer>, index: usize) -> bool {
    nulls.as_ref().is_none_or(|nulls| nulls.is_valid(index))
}

/// A list array of the type of a field, with a list of the same size in each row.
fn list(
    field: &Field,
    len: usize,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    let DataType::FixedSizeList(item, size) = field.data_type() else {
        return Err(invalid(format!("the field {field} is not one of lists of one size")));
    };
    let array = FixedSizeListArray::try_new_with_length(item.clone(), *size, values, nulls, len);
    Ok(Arc::new(array.map_err(invalid)?))
}

/// Checks that parts of these lengths fit into one array with these offsets.
pub(super) fn fits<O: OffsetSizeTrait>(lengths: impl Iterator<Item = usize>) -> Result<(), Fault> {
    let len = lengths.fold(0, usize::saturating_add);
    if O::from_usize(len).is_some() {
        return Ok(());
    }
    let detail =
        format!("{len} items or bytes do not fit into one array: read fewer rows at a time");
    Err((ErrorKind::TooLarge, detail))
}

/// An array of numbers or of bytes of one size. The bytes are copied only if they are not aligned.
fn plain(
    data_type: &DataType,
    len: usize,
    bytes: impl Into<Buffer>,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef, Fault> {
    let data = ArrayData::builder(data_type.clone()).len(len).add_buffer(bytes.into()).nulls(nulls);
    Ok(make_array(data.align_buffers(true).build().map_err(invalid)?))
}

/// Items with a dtype: those of all rows of an array, one after the other, in native byte order.
#[derive(Debug)]
pub(super) struct Items<'a> {
    pub(super) dtype: Dtype,
    /// The shape of the items of a row.
    pub(super) shape: Vec<u64>,
    pub(super) bytes: Cow<'a, [u8]>,
}

/// The items of an array. Nulls are an error except in arrays of dates, where they become NaT, and if `null_rows` are
/// allowed; their items are then unspecified. The error describes why there are none.
pub(super) fn items_of<'a>(
    field: &Field,
    array: &'a dyn Array,
    null_rows: bool,
) -> Result<Items<'a>, Fault> {
    let len = array.len();
    let data_type = array.data_type();
    let is_date =
        matches!(data_type, DataType::Timestamp(..) | DataType::Duration(_) | DataType::Date32);
    let nulls = array.null_count();
    if nulls > 0 && !null_rows && !is_date {
        let name = field.name();
        return Err(mismatch(format!(
            "`{name}` has {nulls} nulls, which items with a dtype cannot represent"
        )));
    }
    let of = |dtype: Dtype, bytes| Ok(Items { dtype, shape: Vec::new(), bytes });
    let none =
        || mismatch(format!("the Arrow type {data_type} of `{}` has no dtype", field.name()));
    match data_type {
        DataType::Boolean => {
            let items: Vec<u8> = array.as_boolean().values().iter().map(u8::from).collect();
            of(fixed_dtype(field).ok_or_else(none)?, items.into())
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = texts_of(array).unwrap_or_default();
            let max = texts.iter().flatten().map(|text| text.chars().count()).max();
            let size = max.unwrap_or(0).max(1).checked_mul(4);
            strings(
                field,
                array,
                Kind::Unicode,
                size,
                texts.iter().map(|text| text.map(Value::from)),
            )
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let parts = bytes_of(array).unwrap_or_default();
            let max = parts.iter().flatten().map(|part| part.len()).max();
            let values = parts.iter().map(|part| part.map(|part| part.to_vec().into()));
            strings(field, array, Kind::Bytes, Some(max.unwrap_or(0).max(1)), values)
        }
        DataType::FixedSizeList(item, size) => {
            let lists = array.as_fixed_size_list();
            let inner = items_of(item, lists.values(), false)?;
            if let Some(size) = complex_size(field) {
                return of(Dtype::scalar(Kind::Complex, size).map_err(|_| none())?, inner.bytes);
            }
            let shape = [list_shape(field, *size).map_err(mismatch)?, inner.shape].concat();
            Ok(Items { shape, ..inner })
        }
        DataType::Struct(fields) => {
            let members = fields.iter().zip(array.as_struct().columns());
            let parts = members.map(|(field, member)| items_of(field, member, false));
            let parts: Vec<Items<'_>> = parts.collect::<Result<_, _>>()?;
            let mut at = 0;
            let mut members = Vec::new();
            for (field, part) in fields.iter().zip(&parts) {
                let dtype = Dtype::array(part.dtype.clone(), &part.shape);
                let dtype = dtype.map_err(mismatch)?;
                members.push(DtypeField::new(field.name(), at, dtype));
                at += members[members.len() - 1].dtype().size();
            }
            let mut bytes = reserve_rows(len, Some(at), array.get_array_memory_size() as u64)?;
            bytes.resize(len * at, 0);
            for (member, part) in members.iter().zip(&parts) {
                let size = member.dtype().size();
                let items = bytes.chunks_exact_mut(at.max(1));
                for (item, from) in items.zip(part.bytes.chunks_exact(size.max(1))) {
                    item[member.offset()..][..size].copy_from_slice(from);
                }
            }
            of(Dtype::structure(at, members).map_err(mismatch)?, bytes.into())
        }
        _ => {
            let dtype = fixed_dtype(field).ok_or_else(none)?;
            let bytes = fixed_bytes(array).ok_or_else(none)?;
            if !is_date || (nulls == 0 && *data_type != DataType::Date32) {
                return of(dtype, bytes.into());
            }
            let width = if *data_type == DataType::Date32 { 4 } else { 8 };
            let moments = bytes.chunks_exact(width).enumerate();
            let moments = moments.flat_map(|(index, item)| {
                let moment = match (array.is_null(index), item.len()) {
                    (true, _) => i64::MIN,
                    (_, 4) => i32::from_ne_bytes(item.try_into().unwrap_or_default()).into(),
                    _ => i64::from_ne_bytes(item.try_into().unwrap_or_default()),
                };
                moment.to_ne_bytes()
            });
            of(dtype, moments.collect())
        }
    }
}

/// The items of an array of strings or byte strings, each of this size.
fn strings(
    field: &Field,
    array: &dyn Array,
    kind: Kind,
    size: Option<usize>,
    values: impl Iterator<Item = Option<Value>>,
) -> Result<Items<'static>, Fault> {
    let mut bytes = reserve_rows(array.len(), size, array.get_array_memory_size() as u64)?;
    let dtype = Dtype::scalar(kind, size.unwrap_or(0)).map_err(mismatch)?;
    for value in values {
        match value {
            Some(value) => push_scalar(&dtype, &value, &mut bytes)
                .map_err(|detail| mismatch(format!("`{}` has {detail}", field.name())))?,
            None => bytes.resize(bytes.len() + dtype.size(), 0),
        }
    }
    Ok(Items { dtype, shape: Vec::new(), bytes: bytes.into() })
}

/// The bytes of an array of numbers, or of bytes of one size; `None` if it has other items.
pub(super) fn fixed_bytes(array: &dyn Array) -> Option<&[u8]> {
    downcast_primitive_array!(
        array => Some(array.values().inner().as_slice()),
        DataType::FixedSizeBinary(_) => Some(array.as_fixed_size_binary().value_data()),
        _ => None,
    )
}

/// The indices of the strings or values of a dictionary-encoded array; `None` for null.
pub(super) fn keys_of(array: &dyn Array) -> impl Iterator<Item = Option<usize>> {
    let dictionary = array.as_any_dictionary();
    let keys = match dictionary.values().is_empty() {
        // Only nulls: there is nothing to which keys could be normalized.
        true => vec![0; array.len()],
        false => dictionary.normalized_keys(),
    };
    keys.into_iter().enumerate().map(|(row, key)| (!array.is_null(row)).then_some(key))
}

/// The strings of an array; `None` if it contains no strings.
pub(super) fn texts_of(array: &dyn Array) -> Option<Vec<Option<&str>>> {
    Some(match array.data_type() {
        DataType::Utf8 => array.as_string::<i32>().iter().collect(),
        DataType::LargeUtf8 => array.as_string::<i64>().iter().collect(),
        DataType::Utf8View => array.as_string_view().iter().collect(),
        _ => return None,
    })
}

/// The byte strings of an array; `None` if it contains no byte strings.
pub(super) fn bytes_of(array: &dyn Array) -> Option<Vec<Option<&[u8]>>> {
    Some(match array.data_type() {
        DataType::Binary => array.as_binary::<i32>().iter().collect(),
        DataType::LargeBinary => array.as_binary::<i64>().iter().collect(),
        DataType::BinaryView => array.as_binary_view().iter().collect(),
        DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().iter().collect(),
        _ => return None,
    })
}
