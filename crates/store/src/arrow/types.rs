//! The Arrow types of columns, of items of lists and of fields of structures, in both directions.

use std::sync::Arc;

use crate::blosc2::Dtype;
use arrow_schema::{DataType, Field, Fields};

use super::dtypes::{arrow_unit, fixed_dtype, items_field, time_unit};
use super::metadata::{ITEM, KIND, complex_size, list_shape, max_length, named_kind, with};
use crate::{Column, ItemKind, ItemType};

/// The Arrow field of a column of a table. `stored` is the dtype of the items of a column of arrays. The error
/// describes why there is none.
pub(super) fn column_field(column: &Column, stored: Option<&Dtype>) -> Result<Field, String> {
    let (name, kind) = (column.name(), column.kind());
    // Values in batches can be `None`, also if the schema does not mention it.
    let nullable = column.is_nullable() || kind.has_batches();
    match kind {
        ItemKind::VlString => {
            let field = Field::new(name, DataType::Utf8, nullable);
            Ok(with(field, [(KIND, kind.to_string())]))
        }
        ItemKind::Dictionary { ordered } => {
            let (codes, texts) = (Box::new(DataType::Int32), Box::new(DataType::Utf8));
            let field = Field::new(name, DataType::Dictionary(codes, texts), nullable);
            Ok(field.with_dict_is_ordered(*ordered))
        }
        ItemKind::NDArray { shape, dtype } => {
            items_field(name, stored.unwrap_or(dtype), shape, nullable)
        }
        ItemKind::Computed(_) => Err("it is computed, and code in a file is not run".to_owned()),
        kind => value_field(name, kind, nullable),
    }
}

/// The Arrow field of values of a kind that columns, lists and structures can have.
fn value_field(name: &str, kind: &ItemKind, nullable: bool) -> Result<Field, String> {
    // Python does not check that items are not null, and exports all of them as nullable.
    let item_field = |name: &str, item: &ItemType| value_field(name, item.kind(), true);
    let data_type = match kind {
        ItemKind::Timestamp { unit, timezone } => {
            DataType::Timestamp(arrow_unit(*unit), timezone.as_deref().map(Arc::from))
        }
        ItemKind::String { .. } | ItemKind::VlString => DataType::Utf8,
        ItemKind::Utf8 => DataType::LargeUtf8,
        ItemKind::Bytes { .. } | ItemKind::VlBytes => DataType::LargeBinary,
        ItemKind::List(item) => DataType::List(Arc::new(item_field(ITEM, item)?)),
        ItemKind::Struct(fields) => {
            let fields = fields.iter().map(|(name, item)| item_field(name, item));
            DataType::Struct(fields.collect::<Result<_, _>>()?)
        }
        ItemKind::NDArray { .. } => return Err(format!("the kind {kind} has no Arrow type")),
        kind => {
            let dtype = kind.dtype().ok_or_else(|| format!("the kind {kind} has no Arrow type"))?;
            return items_field(name, &dtype, &[], nullable);
        }
    };
    let field = Field::new(name, data_type, nullable);
    Ok(match kind {
        ItemKind::String { .. } | ItemKind::Bytes { .. } => with(field, [(KIND, kind.to_string())]),
        _ => field,
    })
}

/// The kind of a column for this field. The error describes why there is none.
pub(super) fn column_kind(field: &Field) -> Result<ItemKind, String> {
    let bounded = |name| named_kind(field).and_then(|kind| max_length(kind, name));
    Ok(match field.data_type() {
        DataType::Timestamp(unit, timezone) => {
            let timezone = timezone.as_deref().map(str::to_owned);
            ItemKind::Timestamp { unit: time_unit(*unit), timezone }
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => match bounded("string") {
            Some(max_length) => ItemKind::String { max_length },
            None if named_kind(field) == Some("vlstring") => ItemKind::VlString,
            None => ItemKind::Utf8,
        },
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => match bounded("bytes") {
            Some(max_length) => ItemKind::Bytes { max_length },
            None => ItemKind::VlBytes,
        },
        DataType::Dictionary(_, texts)
            if matches!(**texts, DataType::Utf8 | DataType::LargeUtf8) =>
        {
            ItemKind::Dictionary { ordered: field.dict_is_ordered().unwrap_or(false) }
        }
        DataType::List(item) | DataType::LargeList(item) => {
            ItemKind::List(Box::new(item_type(item)?))
        }
        DataType::Struct(fields) => ItemKind::Struct(item_types(fields)?),
        DataType::FixedSizeList(item, size) if complex_size(field).is_none() => {
            let dtype = fixed_dtype(item)
                .ok_or_else(|| format!("arrays of {} have no dtype", item.data_type()))?;
            ItemKind::NDArray { shape: list_shape(field, *size)?, dtype }
        }
        other => fixed_dtype(field)
            .and_then(|dtype| ItemKind::of_dtype(&dtype))
            .ok_or_else(|| format!("the Arrow type {other} has no kind of column"))?,
    })
}

/// The type of items of lists and structures for this field. The error describes why there is none.
fn item_type(field: &Field) -> Result<ItemType, String> {
    let data_type = field.data_type();
    let item = ItemType::from(match column_kind(field)? {
        ItemKind::Utf8 if *data_type == DataType::Utf8 => ItemKind::VlString,
        ItemKind::Dictionary { .. } | ItemKind::NDArray { .. } => {
            return Err(format!("items of the Arrow type {data_type} have no kind"));
        }
        kind => kind,
    });
    Ok(if field.is_nullable() { item.nullable() } else { item })
}

fn item_types(fields: &Fields) -> Result<Vec<(String, ItemType)>, String> {
    fields.iter().map(|field| Ok((field.name().clone(), item_type(field)?))).collect()
}
