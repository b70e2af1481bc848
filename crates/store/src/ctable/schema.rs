//! Schemas of tables: JSON, as Python writes it.

use std::collections::HashSet;
use std::sync::OnceLock;

use crate::blosc2::{ErrorKind, Value};

use super::column::{Column, Nulls};
use super::json::{self, Allowance};
use crate::tag::{Fault, invalid_data as invalid, weight};
use crate::{ItemKind, ItemType};

/// The supported versions: later ones may store nulls differently.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=3;

#[derive(Debug)]
pub(super) struct Manifest {
    /// The stored columns, in order, and then the computed ones.
    pub(super) columns: Vec<Column>,
    /// A map of the entries of the schema except the version and the stored columns.
    pub(super) others: Value,
}

/// Parses a schema. The error describes the fault.
pub(super) fn parse(text: &str) -> Result<Manifest, Fault> {
    let mut allowance = Allowance::of_schema();
    let schema = json::parse(text, &mut allowance)?;
    let version = schema.get("version").map_or(Some(1), Value::as_u64);
    if !version.is_some_and(|version| VERSIONS.contains(&version)) {
        let detail = format!("its schema has version {:?}, expected 1 to 3", schema.get("version"));
        return Err((ErrorKind::Unsupported, detail));
    }
    let Value::Map(mut others) = schema else { return Err(invalid("its schema is not a map")) };
    let named = |key: &Value| key.as_str() == Some("columns");
    let stored = match others.iter().rposition(|(key, _)| named(key)).map(|at| others.remove(at)) {
        Some((_, Value::List(stored))) => stored,
        _ => return Err(invalid("its schema lists no columns")),
    };
    others.retain(|(key, _)| !named(key) && key.as_str() != Some("version"));
    let others = Value::Map(others);
    let list = |name: &str| others.get(name).and_then(Value::as_list).unwrap_or_default();
    let stale: HashSet<&str> = list("materialized_columns")
        .iter()
        .filter(|entry| entry.get("stale") == Some(&Value::Bool(true)))
        .filter_map(|entry| entry.get("name")?.as_str())
        .collect();
    let mut columns = Vec::new();
    let computed = list("computed_columns").iter().map(|entry| (entry.clone(), true));
    for (entry, computed) in stored.into_iter().map(|entry| (entry, false)).chain(computed) {
        let mut column = column(entry, computed, &mut allowance)?;
        column.stale = stale.contains(column.name.as_str());
        columns.push(column);
    }
    let mut names = HashSet::new();
    if let Some(column) = columns.iter().find(|column| !names.insert(column.name.as_str())) {
        return Err(invalid(format!("its schema has two columns `{}`", column.name)));
    }
    Ok(Manifest { columns, others })
}

fn column(entry: Value, computed: bool, allowance: &mut Allowance) -> Result<Column, Fault> {
    // The entry is kept beside the type that is parsed from it.
    let nbytes = (weight(&entry) as usize).saturating_mul(2);
    allowance.take(nbytes.saturating_add(2 * size_of::<Column>()))?;
    let column = ItemType::column(&entry, computed);
    let (name, spec) =
        column.ok_or_else(|| invalid("its schema has a column without a name or a kind"))?;
    Ok(Column::new(name, spec, entry))
}

impl Column {
    pub(super) fn new(name: String, spec: ItemType, entry: Value) -> Self {
        let sentinel = spec.given("null_value");
        let uses_mask = spec.get("null_storage").and_then(Value::as_str) == Some("mask");
        let nulls = match (spec.kind(), sentinel) {
            (ItemKind::Dictionary { .. }, _) => {
                let code = match spec.get("null_code") {
                    Some(Value::Int(code)) => i64::try_from(*code).ok(),
                    _ => None,
                };
                Nulls::Code(code.unwrap_or(-1))
            }
            _ if uses_mask => Nulls::Mask,
            (kind, _) if kind.has_batches() => Nulls::Native,
            (_, Some(sentinel)) => Nulls::Sentinel(sentinel.clone()),
            (_, None) => Nulls::Never,
        };
        let nullable = match spec.get("nullable") {
            Some(Value::Bool(nullable)) => *nullable,
            _ => matches!(nulls, Nulls::Mask | Nulls::Sentinel(_) | Nulls::Code(_)),
        };
        Self {
            key: format!("/_cols/{}", path(&name)),
            name,
            spec,
            entry,
            nullable,
            nulls,
            stale: false,
            stored: OnceLock::new(),
            #[cfg(feature = "c")]
            cparams: None,
        }
    }
}

/// The key of a column below `_cols`: one part per level of its name, with special characters percent-encoded.
fn path(name: &str) -> String {
    let mut path = String::new();
    let mut chars = name.chars();
    while let Some(char) = chars.next() {
        let part = match char {
            '.' => {
                path.push('/');
                continue;
            }
            '\\' => chars.next().unwrap_or('\\'),
            char => char,
        };
        match part {
            '%' => path.push_str("%25"),
            '/' => path.push_str("%2F"),
            '.' => path.push_str("%2E"),
            '\\' => path.push_str("%5C"),
            part => path.push(part),
        }
    }
    path
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;
    use crate::ctable::change::text_of;

    #[test]
    fn names_become_paths_that_stay_below() {
        assert_eq!(path("plain"), "plain");
        assert_eq!(path("outer.inner.x"), "outer/inner/x");
        assert_eq!(path(r"a\.b.c"), "a%2Eb/c");
        assert_eq!(path(r"a\\b%\/c/d\"), "a%5Cb%25%2Fc%2Fd%5C");
        assert_eq!(path("../../x"), "//%2F//%2Fx");
        assert_eq!(path(r"\.\./x"), "%2E%2E%2Fx");
    }

    #[test]
    fn what_is_no_schema_is_refused() {
        let cases = [
            ("", ErrorKind::InvalidData),
            ("{\"columns\": [NaN", ErrorKind::InvalidData),
            ("[]", ErrorKind::InvalidData),
            ("{\"columns\": 3}", ErrorKind::InvalidData),
            ("{\"columns\": [{\"kind\": \"int8\"}]}", ErrorKind::InvalidData),
            ("{\"columns\": [{\"name\": \"a\"}]}", ErrorKind::InvalidData),
            ("{\"version\": 4, \"columns\": []}", ErrorKind::Unsupported),
            ("{\"version\": null, \"columns\": []}", ErrorKind::Unsupported),
        ];
        for (text, kind) in cases {
            assert_eq!(parse(text).unwrap_err().0, kind, "{text}");
        }
        let deep = format!("{{\"columns\": {}", "[".repeat(100_000));
        assert_eq!(parse(&deep).unwrap_err().0, ErrorKind::InvalidData);
    }

    #[test]
    fn kinds_that_are_not_known_are_named() {
        let kinds = |text: &str| {
            let schema = parse(&format!("{{\"columns\": [{text}]}}")).unwrap();
            schema.columns.into_iter().map(|column| column.kind().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(kinds(r#"{"name": "a", "kind": "decimal"}"#), ["decimal"]);
        // Known kinds, but with missing attributes.
        assert_eq!(kinds(r#"{"name": "a", "kind": "ndarray"}"#), ["ndarray"]);
        assert_eq!(kinds(r#"{"name": "a", "kind": "timestamp", "unit": "h"}"#), ["timestamp"]);
        assert_eq!(kinds(r#"{"name": "a", "kind": "list", "item": {}}"#), ["list"]);
        let others = r#"{"name": "a", "kind": "list", "item": {"kind": "tensor"}},
            {"name": "b", "kind": "struct", "fields": [{"name": "x", "kind": "list", "item": {"kind": "int8"}},
                {"name": "y", "kind": "utf8"}]},
            {"name": "c", "kind": "ndarray", "item_shape": [2, 3], "dtype_str": "<f4"}"#;
        assert_eq!(kinds(others), ["list[tensor]", "struct[x, y]", "ndarray[2, 3] of <f4"]);
    }

    #[test]
    fn schemas_of_python_are_written_as_they_were_read() {
        let lines = [
            r#"{"version": 3, "columns": [{"name": "a", "kind": "int8", "ge": -5.5, "le": 1180591620717411303424,"#,
            r#""default": 3}, {"name": "b", "kind": "float32", "nullable": true, "null_value": NaN}, {"name": "c","#,
            r#""kind": "string", "min_length": 1, "max_length": 7, "pattern": "a*", "nullable": true,"#,
            r#""null_storage": "mask", "default": "\u00e9"}, {"name": "d", "kind": "bytes", "max_length": 5,"#,
            r#""nullable": true, "null_value": {"__bytes__": true, "base64": "AQ=="}}, {"name": "e","#,
            r#""kind": "timestamp", "unit": "ns", "timezone": "UTC", "nullable": true, "null_value": -5},"#,
            r#"{"name": "f", "kind": "dictionary", "index_type": {"kind": "int32"}, "value_type": {"kind": "vlstring","#,
            r#""nullable": false, "serializer": "msgpack", "batch_rows": 2048}, "ordered": false, "nullable": true,"#,
            r#""null_code": -1}, {"name": "g", "kind": "list", "item": {"kind": "struct", "fields": [{"name": "x","#,
            r#""kind": "string", "max_length": 32}, {"name": "y", "kind": "list", "item": {"kind": "timestamp","#,
            r#""unit": "us"}, "nullable": false, "storage": "batch", "serializer": "msgpack", "batch_rows": null}],"#,
            r#""nullable": false}, "nullable": false, "storage": "batch", "serializer": "msgpack", "batch_rows": 2048,"#,
            r#""items_per_block": 7}, {"name": "h", "kind": "ndarray", "item_shape": [2, 3], "dtype_str": "<f4"},"#,
            r#"{"name": "i", "kind": "ndarray", "item_shape": [2], "dtype_str": "|u1", "bool_widened_to_uint8": true,"#,
            r#""nullable": true, "null_value": 255}, {"name": "j", "kind": "vlstring", "nullable": false,"#,
            r#""serializer": "msgpack", "batch_rows": 5}, {"name": "k", "kind": "object", "nullable": false,"#,
            r#""serializer": "msgpack", "batch_rows": 2048}, {"name": "l", "kind": "utf8", "nullable": true,"#,
            r#""null_value": "x", "chunks": [1000]}, {"name": "m", "kind": "complex64", "nullable": true,"#,
            r#""null_storage": "mask", "default": {"__complex__": true, "real": 0.0, "imag": 1.0}}], "n_rows": 0,"#,
            r#""summary_indexes_built": true}"#,
        ];
        let text = lines.join(" ");
        let schema = parse(&text).unwrap();
        let written = text_of(
            schema.columns.into_iter().map(|column| column.entry).collect(),
            &schema.others,
        );
        assert_eq!(written, text);
    }
}
