//! The metadata of Arrow fields.

use arrow_schema::{DataType, Field};

/// The key of the metadata of a field for the name of a kind that the Arrow type alone does not determine.
pub(super) const KIND: &str = "blosc2:kind";
/// The key of the metadata with which Python describes the shape of the arrays of a column.
const SHAPE: &str = "blosc2:ndarray_shape";
/// Arrow's extension type for arrays of one shape.
pub(super) const TENSOR: &str = "arrow.fixed_shape_tensor";
/// The name of the only field of a list, as in all Arrow libraries.
pub(super) const ITEM: &str = "item";

/// The size of a complex number, if the field contains complex numbers.
pub(super) fn complex_size(field: &Field) -> Option<usize> {
    let DataType::FixedSizeList(part, 2) = field.data_type() else { return None };
    match (part.data_type(), named_kind(field)?) {
        (DataType::Float32, "complex64") => Some(8),
        (DataType::Float64, "complex128") => Some(16),
        _ => None,
    }
}

/// The shape of the arrays of a field of lists of this size: that of the extension type for tensors, that which Python
/// adds, or one axis. The error describes what is wrong with it.
pub(super) fn list_shape(field: &Field, size: i32) -> Result<Vec<u64>, String> {
    let metadata = field.metadata();
    let is_tensor = field.extension_type_name() == Some(TENSOR);
    let text = match is_tensor {
        true => field.extension_type_metadata(),
        false => metadata.get(SHAPE).map(String::as_str),
    };
    let Some(text) = text else { return Ok(vec![size.max(0) as u64]) };
    let invalid = || format!("the field `{}` has an invalid shape: {text}", field.name());
    let parsed: serde_json::Value = serde_json::from_str(text).map_err(|_| invalid())?;
    let axes = |axes: &serde_json::Value| -> Option<Vec<u64>> {
        axes.as_array()?.iter().map(serde_json::Value::as_u64).collect()
    };
    let shape = axes(if is_tensor { &parsed["shape"] } else { &parsed }).ok_or_else(invalid)?;
    let permutation = axes(&parsed["permutation"]).unwrap_or_default();
    if is_tensor
        && !permutation.is_empty()
        && !permutation.iter().copied().eq(0..shape.len() as u64)
    {
        return Err(format!("the arrays of the field `{}` are not in C order", field.name()));
    }
    let len = shape.iter().try_fold(1u64, |len, &side| len.checked_mul(side));
    if len != u64::try_from(size).ok() {
        return Err(format!("{}, expected one of {size} items", invalid()));
    }
    Ok(shape)
}

/// The name of the kind that the metadata of a field states.
pub(super) fn named_kind(field: &Field) -> Option<&str> {
    field.metadata().get(KIND).map(String::as_str)
}

/// The number in `name[number]`.
pub(super) fn max_length(kind: &str, name: &str) -> Option<u64> {
    kind.strip_prefix(name)?.strip_prefix('[')?.strip_suffix(']')?.parse().ok()
}

pub(super) fn with<const N: usize>(field: Field, pairs: [(&str, String); N]) -> Field {
    field.with_metadata(pairs.map(|(key, value)| (key.to_owned(), value)).into())
}
