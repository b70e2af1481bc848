//! The Arrow types of the columns of tables, in both directions.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, TimeUnit as ArrowUnit};
use blosc2::Dtype;
use blosc2::dtype::Kind;

use super::dtypes::{fixed_dtype, items_field};
use super::metadata::{ITEM, KIND, complex_size, list_shape, max_length, named_kind, with};
use crate::{Column, ColumnKind, ItemKind, ItemType, TimeUnit};

/// The Arrow field of a column of a table. `stored` is the dtype of the items of a column of arrays. The error
/// describes why there is none.
pub(super) fn column_field(column: &Column, stored: Option<&Dtype>) -> Result<Field, String> {
    let name = column.name();
    // These kinds store null as `None`, also if the schema does not mention it.
    let nullable = column.is_nullable()
        || matches!(
            column.kind(),
            ColumnKind::VlString
                | ColumnKind::VlBytes
                | ColumnKind::List(_)
                | ColumnKind::Struct(_)
        );
    let plain = |data_type| Field::new(name, data_type, nullable);
    let scalar = |kind, size| {
        let dtype = Dtype::scalar(kind, size).map_err(|error| error.to_string())?;
        items_field(name, &dtype, &[], nullable)
    };
    match column.kind() {
        ColumnKind::Int8 => scalar(Kind::Int, 1),
        ColumnKind::Int16 => scalar(Kind::Int, 2),
        ColumnKind::Int32 => scalar(Kind::Int, 4),
        ColumnKind::Int64 => scalar(Kind::Int, 8),
        ColumnKind::UInt8 => scalar(Kind::UInt, 1),
        ColumnKind::UInt16 => scalar(Kind::UInt, 2),
        ColumnKind::UInt32 => scalar(Kind::UInt, 4),
        ColumnKind::UInt64 => scalar(Kind::UInt, 8),
        ColumnKind::Float32 => scalar(Kind::Float, 4),
        ColumnKind::Float64 => scalar(Kind::Float, 8),
        ColumnKind::Complex64 => scalar(Kind::Complex, 8),
        ColumnKind::Complex128 => scalar(Kind::Complex, 16),
        ColumnKind::Bool => Ok(plain(DataType::Boolean)),
        ColumnKind::Timestamp { unit, timezone } => {
            let timezone = timezone.as_deref().map(Arc::from);
            Ok(plain(DataType::Timestamp(arrow_unit(*unit), timezone)))
        }
        ColumnKind::String { .. } | ColumnKind::VlString => {
            Ok(with(plain(DataType::Utf8), [(KIND, column.kind().to_string())]))
        }
        ColumnKind::Utf8 => Ok(plain(DataType::LargeUtf8)),
        ColumnKind::Bytes { .. } => {
            Ok(with(plain(DataType::LargeBinary), [(KIND, column.kind().to_string())]))
        }
        ColumnKind::VlBytes => Ok(plain(DataType::LargeBinary)),
        ColumnKind::Dictionary { ordered } => {
            let (codes, texts) = (Box::new(DataType::Int32), Box::new(DataType::Utf8));
            Ok(plain(DataType::Dictionary(codes, texts)).with_dict_is_ordered(*ordered))
        }
        ColumnKind::List(item) => Ok(plain(DataType::List(Arc::new(item_field(ITEM, item)?)))),
        ColumnKind::Struct(fields) => Ok(plain(DataType::Struct(fields_of(fields)?))),
        ColumnKind::NDArray { shape, dtype } => {
            items_field(name, stored.unwrap_or(dtype), shape, nullable)
        }
        ColumnKind::Computed(_) => Err("it is computed, and code in a file is not run".to_owned()),
        kind @ (ColumnKind::Object | ColumnKind::Other(_)) => {
            Err(format!("the kind {kind} has no Arrow type"))
        }
    }
}

/// The Arrow field of items of lists and structures. The error describes why there is none.
fn item_field(name: &str, item: &ItemType) -> Result<Field, String> {
    let scalar = |kind, size| {
        let dtype = Dtype::scalar(kind, size).map_err(|error| error.to_string())?;
        Ok::<_, String>(items_field(ITEM, &dtype, &[], false)?.data_type().clone())
    };
    let data_type = match item.kind() {
        ItemKind::Int8 => DataType::Int8,
        ItemKind::Int16 => DataType::Int16,
        ItemKind::Int32 => DataType::Int32,
        ItemKind::Int64 => DataType::Int64,
        ItemKind::UInt8 => DataType::UInt8,
        ItemKind::UInt16 => DataType::UInt16,
        ItemKind::UInt32 => DataType::UInt32,
        ItemKind::UInt64 => DataType::UInt64,
        ItemKind::Float32 => DataType::Float32,
        ItemKind::Float64 => DataType::Float64,
        ItemKind::Complex64 => scalar(Kind::Complex, 8)?,
        ItemKind::Complex128 => scalar(Kind::Complex, 16)?,
        ItemKind::Bool => DataType::Boolean,
        ItemKind::Timestamp => {
            let option = |name| item.get(name).and_then(|value| value.as_str());
            let unit = match option("unit") {
                Some("s") => ArrowUnit::Second,
                Some("ms") => ArrowUnit::Millisecond,
                Some("ns") => ArrowUnit::Nanosecond,
                _ => ArrowUnit::Microsecond,
            };
            DataType::Timestamp(unit, option("timezone").map(Arc::from))
        }
        ItemKind::String | ItemKind::VlString => DataType::Utf8,
        ItemKind::Bytes | ItemKind::VlBytes => DataType::LargeBinary,
        ItemKind::Utf8 => DataType::LargeUtf8,
        ItemKind::List(item) => DataType::List(Arc::new(item_field(ITEM, item)?)),
        ItemKind::Struct(fields) => DataType::Struct(fields_of(fields)?),
        ItemKind::Other(kind) => {
            return Err(format!("items of the kind {kind} have no Arrow type"));
        }
    };
    // Python does not check that items are not null, and exports all of them as nullable.
    let field = Field::new(name, data_type, true);
    Ok(match item.kind() {
        ItemKind::String | ItemKind::Bytes => {
            let max_length = item.get("max_length").and_then(|length| length.as_u64());
            let kind = format!("{}[{}]", item.kind().name(), max_length.unwrap_or(32));
            with(field, [(KIND, kind)])
        }
        ItemKind::Complex64 | ItemKind::Complex128 => {
            with(field, [(KIND, item.kind().name().to_owned())])
        }
        _ => field,
    })
}

fn fields_of(fields: &[(String, ItemType)]) -> Result<Fields, String> {
    fields.iter().map(|(name, item)| item_field(name, item)).collect()
}

/// The kind of a column for this field. The error describes why there is none.
pub(super) fn column_kind(field: &Field) -> Result<ColumnKind, String> {
    let bounded = |name| named_kind(field).and_then(|kind| max_length(kind, name));
    Ok(match field.data_type() {
        DataType::Int8 => ColumnKind::Int8,
        DataType::Int16 => ColumnKind::Int16,
        DataType::Int32 => ColumnKind::Int32,
        DataType::Int64 => ColumnKind::Int64,
        DataType::UInt8 => ColumnKind::UInt8,
        DataType::UInt16 => ColumnKind::UInt16,
        DataType::UInt32 => ColumnKind::UInt32,
        DataType::UInt64 => ColumnKind::UInt64,
        DataType::Float32 => ColumnKind::Float32,
        DataType::Float64 => ColumnKind::Float64,
        DataType::Boolean => ColumnKind::Bool,
        DataType::Timestamp(unit, timezone) => {
            let timezone = timezone.as_deref().map(str::to_owned);
            ColumnKind::Timestamp { unit: time_unit(*unit), timezone }
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match bounded("string") {
            Some(max_length) => ColumnKind::String { max_length },
            None if named_kind(field) == Some("vlstring") => ColumnKind::VlString,
            None => ColumnKind::Utf8,
        },
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => match bounded("bytes") {
            Some(max_length) => ColumnKind::Bytes { max_length },
            None => ColumnKind::VlBytes,
        },
        DataType::Dictionary(_, texts)
            if matches!(**texts, DataType::Utf8 | DataType::LargeUtf8) =>
        {
            ColumnKind::Dictionary { ordered: field.dict_is_ordered().unwrap_or(false) }
        }
        DataType::List(item) | DataType::LargeList(item) => ColumnKind::List(item_type(item)?),
        DataType::Struct(fields) => ColumnKind::Struct(item_types(fields)?),
        DataType::FixedSizeList(item, size) => match complex_size(field) {
            Some(8) => ColumnKind::Complex64,
            Some(_) => ColumnKind::Complex128,
            None => {
                let dtype = fixed_dtype(item)
                    .ok_or_else(|| format!("arrays of {} have no dtype", item.data_type()))?;
                ColumnKind::NDArray { shape: list_shape(field, *size)?, dtype }
            }
        },
        other => return Err(format!("the Arrow type {other} has no kind of column")),
    })
}

/// The type of items of lists and structures for this field. The error describes why there is none.
fn item_type(field: &Field) -> Result<ItemType, String> {
    let item = match column_kind(field)? {
        ColumnKind::Int8 => ItemKind::Int8.into(),
        ColumnKind::Int16 => ItemKind::Int16.into(),
        ColumnKind::Int32 => ItemKind::Int32.into(),
        ColumnKind::Int64 => ItemKind::Int64.into(),
        ColumnKind::UInt8 => ItemKind::UInt8.into(),
        ColumnKind::UInt16 => ItemKind::UInt16.into(),
        ColumnKind::UInt32 => ItemKind::UInt32.into(),
        ColumnKind::UInt64 => ItemKind::UInt64.into(),
        ColumnKind::Float32 => ItemKind::Float32.into(),
        ColumnKind::Float64 => ItemKind::Float64.into(),
        ColumnKind::Complex64 => ItemKind::Complex64.into(),
        ColumnKind::Complex128 => ItemKind::Complex128.into(),
        ColumnKind::Bool => ItemKind::Bool.into(),
        ColumnKind::Timestamp { unit, timezone } => {
            let item = ItemType::from(ItemKind::Timestamp).with("unit", unit.to_string().as_str());
            match timezone {
                Some(timezone) => item.with("timezone", timezone.as_str()),
                None => item,
            }
        }
        ColumnKind::String { max_length } => {
            ItemType::from(ItemKind::String).with("max_length", max_length)
        }
        ColumnKind::Bytes { max_length } => {
            ItemType::from(ItemKind::Bytes).with("max_length", max_length)
        }
        ColumnKind::Utf8 if *field.data_type() == DataType::Utf8 => ItemKind::VlString.into(),
        ColumnKind::Utf8 => ItemKind::Utf8.into(),
        ColumnKind::VlString => ItemKind::VlString.into(),
        ColumnKind::VlBytes => ItemKind::VlBytes.into(),
        ColumnKind::List(item) => ItemKind::List(Box::new(item)).into(),
        ColumnKind::Struct(fields) => ItemKind::Struct(fields).into(),
        _ => {
            let data_type = field.data_type();
            return Err(format!("items of the Arrow type {data_type} have no kind"));
        }
    };
    Ok(if field.is_nullable() { item.nullable() } else { item })
}

fn item_types(fields: &Fields) -> Result<Vec<(String, ItemType)>, String> {
    fields.iter().map(|field| Ok((field.name().clone(), item_type(field)?))).collect()
}

fn arrow_unit(unit: TimeUnit) -> ArrowUnit {
    match unit {
        TimeUnit::Second => ArrowUnit::Second,
        TimeUnit::Millisecond => ArrowUnit::Millisecond,
        TimeUnit::Microsecond => ArrowUnit::Microsecond,
        TimeUnit::Nanosecond => ArrowUnit::Nanosecond,
    }
}

fn time_unit(unit: ArrowUnit) -> TimeUnit {
    match unit {
        ArrowUnit::Second => TimeUnit::Second,
        ArrowUnit::Millisecond => TimeUnit::Millisecond,
        ArrowUnit::Microsecond => TimeUnit::Microsecond,
        ArrowUnit::Nanosecond => TimeUnit::Nanosecond,
    }
}
