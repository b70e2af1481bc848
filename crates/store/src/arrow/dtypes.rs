//! The Arrow types of items with a dtype, in both directions.

use std::sync::Arc;

use crate::blosc2::Dtype;
use crate::blosc2::dtype::{Field as DtypeField, Kind};
use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field, TimeUnit as ArrowUnit};
use serde_json::json;

use super::metadata::{ITEM, KIND, TENSOR, complex_size, list_shape, with};
use crate::TimeUnit;

/// The Arrow types of numbers and booleans, and their dtypes.
static NUMBERS: [(DataType, Kind, usize); 12] = [
    (DataType::Boolean, Kind::Bool, 1),
    (DataType::Int8, Kind::Int, 1),
    (DataType::Int16, Kind::Int, 2),
    (DataType::Int32, Kind::Int, 4),
    (DataType::Int64, Kind::Int, 8),
    (DataType::UInt8, Kind::UInt, 1),
    (DataType::UInt16, Kind::UInt, 2),
    (DataType::UInt32, Kind::UInt, 4),
    (DataType::UInt64, Kind::UInt, 8),
    (DataType::Float16, Kind::Float, 2),
    (DataType::Float32, Kind::Float, 4),
    (DataType::Float64, Kind::Float, 8),
];

/// The Arrow field of arrays of this shape with items of a dtype. The error describes why there is none.
pub(super) fn items_field(
    name: &str,
    dtype: &Dtype,
    shape: &[u64],
    nullable: bool,
) -> Result<Field, String> {
    let none = || format!("items of the dtype {dtype} have no Arrow type");
    if !shape.is_empty() {
        let size = shape.iter().try_fold(1u64, |size, &side| size.checked_mul(side));
        let size = size.and_then(|size| i32::try_from(size).ok());
        let size =
            size.ok_or_else(|| format!("the shape {shape:?} has too many items for Arrow"))?;
        // Nullable, as in the storage of the extension type: other libraries compare it.
        let item = Arc::new(items_field(ITEM, dtype, &[], true)?);
        let field = Field::new(name, DataType::FixedSizeList(item, size), nullable);
        let extension = json!({ "shape": shape }).to_string();
        let names = [
            (EXTENSION_TYPE_NAME_KEY, TENSOR.to_owned()),
            (EXTENSION_TYPE_METADATA_KEY, extension),
        ];
        return Ok(with(field, names));
    }
    if let Some((item, shape)) = dtype.subarray() {
        return items_field(name, item, shape, nullable);
    }
    if let Some(fields) = dtype.fields() {
        let fields = fields.iter().map(|each| items_field(each.name(), each.dtype(), &[], false));
        let data_type = DataType::Struct(fields.collect::<Result<_, _>>()?);
        return Ok(Field::new(name, data_type, nullable));
    }
    let kind = dtype.kind().ok_or_else(none)?;
    let data_type = match (kind, dtype.size()) {
        (Kind::Complex, 8 | 16) => {
            let (part, kind) = match dtype.size() {
                8 => (DataType::Float32, "complex64"),
                _ => (DataType::Float64, "complex128"),
            };
            let parts = Arc::new(Field::new(ITEM, part, false));
            let field = Field::new(name, DataType::FixedSizeList(parts, 2), nullable);
            return Ok(with(field, [(KIND, kind.to_owned())]));
        }
        (Kind::DateTime | Kind::TimeDelta, _) => match (kind, dtype.unit().ok_or_else(none)?) {
            (Kind::DateTime, (1, "D")) => DataType::Date32,
            (kind, (1, unit)) => {
                let unit = TimeUnit::of_name(unit).map(arrow_unit).ok_or_else(none)?;
                if kind == Kind::DateTime {
                    DataType::Timestamp(unit, None)
                } else {
                    DataType::Duration(unit)
                }
            }
            _ => return Err(none()),
        },
        (Kind::Bytes, _) => DataType::Binary,
        (Kind::Unicode, _) => DataType::Utf8,
        (Kind::Void, size) => DataType::FixedSizeBinary(size.try_into().map_err(|_| none())?),
        known => {
            let found = NUMBERS.iter().find(|(_, kind, size)| (*kind, *size) == known);
            found.ok_or_else(none)?.0.clone()
        }
    };
    // The values of dates can be NaT, which is null in Arrow.
    let nullable = nullable || matches!(kind, Kind::DateTime | Kind::TimeDelta);
    Ok(Field::new(name, data_type, nullable))
}

/// The dtype of items of this field, if all items have the same size, without nulls.
pub(super) fn fixed_dtype(field: &Field) -> Option<Dtype> {
    let scalar = |kind, size| Dtype::scalar(kind, size).ok();
    let date = |letter: char, unit: &str| Dtype::parse(&format!("{letter}8[{unit}]")).ok();
    match field.data_type() {
        DataType::Timestamp(unit, None) => date('M', time_unit(*unit).name()),
        DataType::Duration(unit) => date('m', time_unit(*unit).name()),
        DataType::Date32 => date('M', "D"),
        DataType::FixedSizeBinary(size) => scalar(Kind::Void, usize::try_from(*size).ok()?),
        DataType::FixedSizeList(..) => scalar(Kind::Complex, complex_size(field)?),
        DataType::Struct(fields) => {
            let mut at = 0;
            let fields = fields.iter().map(|each| {
                let dtype = match each.data_type() {
                    DataType::FixedSizeList(item, size) if complex_size(each).is_none() => {
                        Dtype::array(fixed_dtype(item)?, &list_shape(each, *size).ok()?).ok()?
                    }
                    _ => fixed_dtype(each)?,
                };
                let offset = at;
                at += dtype.size();
                Some(DtypeField::new(each.name(), offset, dtype))
            });
            let fields: Vec<_> = fields.collect::<Option<_>>()?;
            Dtype::structure(at, fields).ok()
        }
        data_type => {
            let (_, kind, size) = NUMBERS.iter().find(|(known, ..)| known == data_type)?;
            scalar(*kind, *size)
        }
    }
}

/// The units in the order of [`TimeUnit`].
const UNITS: [ArrowUnit; 4] =
    [ArrowUnit::Second, ArrowUnit::Millisecond, ArrowUnit::Microsecond, ArrowUnit::Nanosecond];

pub(super) fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    UNITS[unit as usize]
}

pub(super) fn time_unit(unit: ArrowUnit) -> TimeUnit {
    TimeUnit::ALL.into_iter().find(|known| arrow_unit(*known) == unit).expect("one of four units")
}
