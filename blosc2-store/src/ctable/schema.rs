//! Schemas of tables: JSON, as Python writes it.

use std::collections::HashSet;
use std::sync::OnceLock;

use blosc2::{Dtype, ErrorKind, Value};

use super::column::{Column, ColumnKind, Nulls, TimeUnit};
use super::json::{self, Allowance, Fault, invalid};
use crate::tag::weight;
use crate::{ItemKind, ItemType};

/// The supported versions: later ones may store nulls differently.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=3;

/// A parsed schema.
#[derive(Debug)]
pub(super) struct Manifest {
    /// The stored columns, in order, and then the computed ones.
    pub(super) columns: Vec<Column>,
    /// The entries of the schema except the version and the stored columns.
    pub(super) others: Vec<(Value, Value)>,
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
    let list = |name: &str| {
        let found = others.iter().rfind(|(key, _)| key.as_str() == Some(name));
        found.and_then(|(_, value)| value.as_list()).unwrap_or_default()
    };
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

/// Makes a column of its entry in the schema.
fn column(entry: Value, computed: bool, allowance: &mut Allowance) -> Result<Column, Fault> {
    // Each level of a nested type holds a copy of its entry.
    let copies = 2 + levels(&entry);
    let nbytes = (weight(&entry) as usize).saturating_mul(copies);
    allowance.take(nbytes.saturating_add(2 * size_of::<Column>()))?;
    let column = named_column(entry, computed);
    column.ok_or_else(|| invalid("its schema has a column without a name or a kind"))
}

/// The number of levels of a nested value.
fn levels(value: &Value) -> usize {
    let below = |items: &mut dyn Iterator<Item = &Value>| 1 + items.map(levels).max().unwrap_or(0);
    match value {
        Value::List(items) => below(&mut items.iter()),
        Value::Map(pairs) => below(&mut pairs.iter().map(|(_, value)| value)),
        _ => 0,
    }
}

/// `None` without a name or a kind.
pub(super) fn named_column(entry: Value, computed: bool) -> Option<Column> {
    let name = entry.get("name")?.as_str()?.to_owned();
    let kind = match computed {
        true => {
            let source = ["expression", "dsl_source"].into_iter();
            let mut source = source.filter_map(|part| entry.get(part)?.as_str());
            ColumnKind::Computed(source.next().unwrap_or_default().to_owned())
        }
        false => {
            let name = entry.get("kind")?.as_str()?;
            known_kind(name, &entry).unwrap_or_else(|| ColumnKind::Other(name.to_owned()))
        }
    };
    let sentinel = entry.get("null_value").filter(|value| **value != Value::None);
    let uses_mask = entry.get("null_storage").and_then(Value::as_str) == Some("mask");
    let nulls = match (&kind, sentinel) {
        (ColumnKind::Dictionary { .. }, _) => {
            let code = entry.get("null_code").and_then(int);
            Nulls::Code(code.and_then(|code| code.try_into().ok()).unwrap_or(-1))
        }
        _ if uses_mask => Nulls::Mask,
        (
            ColumnKind::VlString
            | ColumnKind::VlBytes
            | ColumnKind::Struct(_)
            | ColumnKind::Object
            | ColumnKind::List(_),
            _,
        ) => Nulls::Native,
        (_, Some(sentinel)) => Nulls::Sentinel(sentinel.clone()),
        (_, None) => Nulls::Never,
    };
    let nullable = match entry.get("nullable") {
        Some(Value::Bool(nullable)) => *nullable,
        _ => matches!(nulls, Nulls::Mask | Nulls::Sentinel(_) | Nulls::Code(_)),
    };
    Some(Column {
        key: format!("/_cols/{}", path(&name)),
        name,
        kind,
        nullable,
        metadata: entry,
        nulls,
        stale: false,
        stored: OnceLock::new(),
    })
}

fn int(value: &Value) -> Option<i128> {
    if let Value::Int(number) = value { Some(*number) } else { None }
}

/// The type of a column of this kind; `None` if it is not known.
fn known_kind(name: &str, entry: &Value) -> Option<ColumnKind> {
    // Python's default.
    let max_length = || entry.get("max_length").map_or(Some(32), Value::as_u64);
    Some(match name {
        "int8" => ColumnKind::Int8,
        "int16" => ColumnKind::Int16,
        "int32" => ColumnKind::Int32,
        "int64" => ColumnKind::Int64,
        "uint8" => ColumnKind::UInt8,
        "uint16" => ColumnKind::UInt16,
        "uint32" => ColumnKind::UInt32,
        "uint64" => ColumnKind::UInt64,
        "float32" => ColumnKind::Float32,
        "float64" => ColumnKind::Float64,
        "complex64" => ColumnKind::Complex64,
        "complex128" => ColumnKind::Complex128,
        "bool" => ColumnKind::Bool,
        "timestamp" => ColumnKind::Timestamp {
            unit: match entry.get("unit")?.as_str()? {
                "s" => TimeUnit::Second,
                "ms" => TimeUnit::Millisecond,
                "us" => TimeUnit::Microsecond,
                "ns" => TimeUnit::Nanosecond,
                _ => return None,
            },
            timezone: entry.get("timezone").and_then(Value::as_str).map(str::to_owned),
        },
        "string" => ColumnKind::String { max_length: max_length()? },
        "bytes" => ColumnKind::Bytes { max_length: max_length()? },
        "utf8" => ColumnKind::Utf8,
        "vlstring" => ColumnKind::VlString,
        "vlbytes" => ColumnKind::VlBytes,
        "dictionary" => {
            ColumnKind::Dictionary { ordered: entry.get("ordered") == Some(&Value::Bool(true)) }
        }
        "list" | "struct" => match ItemType::from_metadata(entry.clone()).ok()?.kind() {
            ItemKind::List(item) => ColumnKind::List((**item).clone()),
            ItemKind::Struct(fields) => ColumnKind::Struct(fields.clone()),
            _ => return None,
        },
        "object" => ColumnKind::Object,
        "ndarray" => {
            let shape = entry.get("item_shape")?.as_list()?.iter();
            let shape: Option<Vec<u64>> = shape.map(Value::as_u64).collect();
            let dtype = Dtype::parse(entry.get("dtype_str")?.as_str()?).ok()?;
            ColumnKind::NDArray { shape: shape?, dtype }
        }
        _ => return None,
    })
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

#[cfg(test)]
mod tests {
    use super::*;

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
            schema.columns.into_iter().map(|column| column.kind.to_string()).collect::<Vec<_>>()
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
}
