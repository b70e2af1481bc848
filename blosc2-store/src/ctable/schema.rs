//! Schemas of tables: JSON, as Python writes it.

use std::sync::OnceLock;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use blosc2::{Dtype, ErrorKind, Value};
use serde_json::{Map, Number, Value as Json};

use super::column::{Column, ColumnKind, Nulls, TimeUnit};
use crate::{ItemKind, ItemType};

/// The supported versions: later ones may store nulls differently.
const VERSIONS: std::ops::RangeInclusive<u64> = 1..=3;
/// The key that marks numbers that JSON cannot represent.
const FLOAT: &str = "__float__";

/// Parses the columns of a schema: the stored ones, in order, and then the computed ones. The error describes the
/// fault.
pub(super) fn columns(text: &str) -> Result<Vec<Column>, (ErrorKind, String)> {
    let invalid = |detail: String| (ErrorKind::InvalidData, detail);
    let json = serde_json::from_str(&with_marked_numbers(text));
    let schema =
        value_of(json.map_err(|error| invalid(format!("its schema is not JSON: {error}")))?);
    let version = schema.get("version").map_or(Some(1), Value::as_u64);
    if !version.is_some_and(|version| VERSIONS.contains(&version)) {
        let detail = format!("its schema has version {:?}, expected 1 to 3", schema.get("version"));
        return Err((ErrorKind::Unsupported, detail));
    }
    let list = |name: &str| schema.get(name).and_then(Value::as_list);
    let entries = list("columns").ok_or_else(|| invalid("its schema lists no columns".into()))?;
    let stale: Vec<&str> = list("materialized_columns")
        .unwrap_or_default()
        .iter()
        .filter(|entry| entry.get("stale") == Some(&Value::Bool(true)))
        .filter_map(|entry| entry.get("name")?.as_str())
        .collect();
    let computed = list("computed_columns").unwrap_or_default().iter();
    let entries = entries.iter().map(|entry| (entry, false));
    let columns = entries.chain(computed.map(|entry| (entry, true))).map(|(entry, computed)| {
        let mut column = column(entry, computed)?;
        column.stale = stale.contains(&column.name.as_str());
        Some(column)
    });
    let columns: Option<Vec<Column>> = columns.collect();
    columns.ok_or_else(|| invalid("its schema has a column without a name or a kind".into()))
}

fn column(entry: &Value, computed: bool) -> Option<Column> {
    let name = entry.get("name")?.as_str()?;
    let kind = match computed {
        true => {
            let source = ["expression", "dsl_source"].into_iter();
            let mut source = source.filter_map(|part| entry.get(part)?.as_str());
            ColumnKind::Computed(source.next().unwrap_or_default().to_owned())
        }
        false => {
            let name = entry.get("kind")?.as_str()?;
            known_kind(name, entry).unwrap_or_else(|| ColumnKind::Other(name.to_owned()))
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
        name: name.to_owned(),
        kind,
        nullable,
        metadata: entry.clone(),
        nulls,
        key: format!("/_cols/{}", path(name)),
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

/// Replaces each number that Python writes but JSON cannot represent (`NaN`, `Infinity`) by a map.
fn with_marked_numbers(text: &str) -> String {
    const NUMBERS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];
    let mut marked = String::with_capacity(text.len());
    let (mut rest, mut in_text) = (text, false);
    while let Some(char) = rest.chars().next() {
        let number = NUMBERS.into_iter().find(|number| !in_text && rest.starts_with(number));
        let len = match (number, char) {
            (Some(number), _) => {
                marked.push_str(&format!("{{\"{FLOAT}\":\"{number}\"}}"));
                rest = &rest[number.len()..];
                continue;
            }
            (None, '\\') => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            (None, char) => {
                in_text ^= char == '"';
                char.len_utf8()
            }
        };
        marked.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    marked
}

/// Converts JSON to a value, including values that Python marks because JSON cannot represent them.
fn value_of(json: Json) -> Value {
    match json {
        Json::Null => Value::None,
        Json::Bool(value) => Value::Bool(value),
        Json::Number(number) => number_of(&number),
        Json::String(text) => Value::Str(text),
        Json::Array(items) => Value::List(items.into_iter().map(value_of).collect()),
        Json::Object(map) => marked_value(&map).unwrap_or_else(|| {
            Value::Map(map.into_iter().map(|(key, item)| (key.into(), value_of(item))).collect())
        }),
    }
}

fn number_of(number: &Number) -> Value {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => number.into(),
        (_, Some(number)) => number.into(),
        // Python reads numbers out of range as infinity.
        _ => number.as_f64().unwrap_or(f64::INFINITY).into(),
    }
}

fn marked_value(map: &Map<String, Json>) -> Option<Value> {
    let is_marked = |mark| map.get(mark) == Some(&Json::Bool(true));
    if is_marked("__bytes__") {
        let text = map.get("base64")?.as_str()?;
        return BASE64_STANDARD.decode(text).ok().map(Value::Bytes);
    }
    if is_marked("__complex__") {
        let part = |name| match value_of(map.get(name)?.clone()) {
            Value::Float(number) => Some(number),
            Value::Int(number) => Some(number as f64),
            _ => None,
        };
        return Some(Value::Complex { re: part("real")?, im: part("imag")? });
    }
    Some(Value::Float(match map.get(FLOAT)?.as_str()? {
        "NaN" => f64::NAN,
        "Infinity" => f64::INFINITY,
        "-Infinity" => f64::NEG_INFINITY,
        _ => return None,
    }))
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
    fn numbers_that_json_does_not_have_are_read() {
        let text = r#"{"NaN": NaN, "a\"NaN\\": [Infinity, -Infinity, 1, -2, 18446744073709551615, 1.5],
            "é": {"__bytes__": true, "base64": "AP8="}, "c": {"__complex__": true, "real": 1, "imag": NaN},
            "none": null, "text": "-Infinity \\"}"#;
        let value = value_of(serde_json::from_str(&with_marked_numbers(text)).unwrap());
        assert!(matches!(value.get("NaN"), Some(Value::Float(number)) if number.is_nan()));
        let infinite = [f64::INFINITY.into(), f64::NEG_INFINITY.into()];
        let others = [1.into(), (-2).into(), u64::MAX.into(), 1.5.into()];
        assert_eq!(value.get("a\"NaN\\"), Some(&Value::List([&infinite[..], &others].concat())));
        assert_eq!(value.get("é"), Some(&Value::Bytes(vec![0, 255])));
        let complex = value.get("c").unwrap();
        assert!(matches!(complex, Value::Complex { re: 1.0, im } if im.is_nan()), "{complex:?}");
        assert_eq!(value.get("text").and_then(Value::as_str), Some("-Infinity \\"));
        assert_eq!(value.get("none"), Some(&Value::None));
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
            assert_eq!(columns(text).unwrap_err().0, kind, "{text}");
        }
        let deep = format!("{{\"columns\": {}", "[".repeat(100_000));
        assert_eq!(columns(&deep).unwrap_err().0, ErrorKind::InvalidData);
    }

    #[test]
    fn kinds_that_are_not_known_are_named() {
        let kinds = |text: &str| {
            let columns = columns(&format!("{{\"columns\": [{text}]}}")).unwrap();
            columns.into_iter().map(|column| column.kind.to_string()).collect::<Vec<_>>()
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
