//! The committed files that Python wrote are read correctly; see `python_files/README.md`.

use std::fs;
use std::path::PathBuf;

use blosc2::{Dtype, ErrorKind, NDArray, RawItems, SChunk, Value};
use blosc2_store::{CTable, Carrier, CarrierKind, Object, TreeStore};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

fn folder() -> PathBuf {
    blosc2_testing::root().join("tests").join("python_files")
}

/// The expected content of the files, as recorded by Python.
fn expected(version: &str) -> Vec<(PathBuf, Json)> {
    let text = fs::read_to_string(folder().join(version).join("expected.json")).unwrap();
    let json: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(json["blosc2"], version);
    let files = json["files"].as_object().unwrap().iter();
    files.map(|(name, what)| (folder().join(version).join(name), what.clone())).collect()
}

#[test]
fn files_of_today() {
    let files = expected("4.14.1");
    assert_eq!(files.len(), 70);
    for (path, what) in files {
        if let Some(kind) = what["refused"].as_str() {
            let error = Object::open(&path).unwrap_err();
            assert_eq!(format!("{:?}", error.kind()), kind, "{error}");
            continue;
        }
        check(Object::open(&path).unwrap(), &what, &path.display().to_string());
    }
}

#[test]
fn files_of_2023() {
    let files = expected("2.7.1");
    assert_eq!(files.len(), 47);
    for (path, what) in files {
        check(Object::open(&path).unwrap(), &what, &path.display().to_string());
    }
}

fn check(object: Object, what: &Json, name: &str) {
    assert_eq!(object.kind(), what["kind"], "{name}");
    if let (Some(schunk), true) = (object.schunk(), what["vlmeta"].is_object()) {
        check_metalayers(schunk, what, name);
    }
    match object {
        Object::NDArray(array) => check_array(&array, what, name),
        Object::SChunk(schunk) => {
            assert_eq!(digest(&schunk.read::<u8>(..).unwrap()), what["sha256"], "{name}");
        }
        Object::Tensor(tensor) => {
            assert_eq!(numbers(tensor.shape()), what["shape"], "{name}");
            let dtype = Dtype::parse(what["dtype"].as_str().unwrap()).unwrap();
            assert_eq!(tensor.dtype(), &dtype, "{name}");
            assert_eq!(digest(&tensor.read_bytes().unwrap()), what["sha256"], "{name}");
        }
        Object::ObjectArray(array) => {
            let values: Result<Vec<_>, _> = array.iter().collect();
            assert_eq!(Value::List(values.unwrap()), value(&what["values"]), "{name}");
        }
        Object::BatchArray(array) => {
            let batches = (0..array.len()).map(|batch| array.batch(batch).unwrap().into());
            assert_eq!(Value::List(batches.collect()), value(&what["values"]), "{name}");
        }
        Object::ListArray(array) => {
            let rows = array.iter().map(|row| row.unwrap().map_or(Value::None, Value::List));
            assert_eq!(Value::List(rows.collect()), value(&what["values"]), "{name}");
        }
        Object::EmbedStore(store) => {
            let keys = what["keys"].as_object().unwrap();
            assert!(store.keys().eq(keys.keys()), "{name}");
            for (key, what) in keys {
                check(store.get(key).unwrap(), what, &format!("{name}:{key}"));
            }
        }
        Object::TreeStore(store) => check_store(&store, what, name),
        Object::CTable(table) => check_table(&table, what, name),
        Object::Carrier(carrier) => check_carrier(&carrier, what, name),
        other => panic!("{name} is {other:?}"),
    }
}

fn check_array(array: &NDArray, what: &Json, name: &str) {
    assert_eq!(numbers(array.shape()), what["shape"], "{name}");
    assert_eq!(numbers(array.chunk_shape()), what["chunks"], "{name}");
    assert_eq!(numbers(array.block_shape()), what["blocks"], "{name}");
    // Python writes structures into arrays of less than 16 MiB with fields of void for the gaps.
    assert_eq!(array.dtype_str().unwrap(), what["dtype"], "{name}");
    assert_eq!(u64::from(array.info().cparams.codec.code()), what["codec"], "{name}");
    assert_eq!(digest(&array.read::<RawItems>(..).unwrap().0), what["sha256"], "{name}");
}

fn check_metalayers(schunk: &SChunk, what: &Json, name: &str) {
    for (meta, what) in [(schunk.meta(), &what["meta"]), (schunk.vlmeta(), &what["vlmeta"])] {
        let what = what.as_object().unwrap();
        let names = meta.names().into_iter().filter(|name| name != "b2nd");
        assert!(names.eq(what.keys().cloned()), "{name}: {:?}", meta.names());
        for (each, content) in what {
            let content = bytes(content);
            assert_eq!(meta.get(each).unwrap().unwrap(), content, "{name}, {each}");
            let value = meta.value(each).unwrap().unwrap();
            assert_eq!(value.to_msgpack().unwrap(), content, "{name}, {each}");
        }
    }
}

fn check_store(store: &TreeStore, what: &Json, name: &str) {
    let keys = what["keys"].as_object().unwrap();
    let mut sorted: Vec<&str> = keys.keys().map(String::as_str).collect();
    sorted.sort_unstable();
    assert!(store.keys().eq(sorted), "{name}");
    for (key, what) in keys {
        check(store.get(key).unwrap(), what, &format!("{name}:{key}"));
    }
    if let Some(attributes) = what["attributes"].as_object() {
        for (group, what) in attributes {
            let what = what.as_object().unwrap().iter();
            let what: Vec<_> = what.map(|(name, content)| (name.clone(), value(content))).collect();
            assert_eq!(store.attributes(group).unwrap(), what, "{name}:{group}");
        }
        assert!(store.groups().eq(what["groups"].as_array().unwrap()), "{name}");
    }
}

fn check_table(table: &CTable, what: &Json, name: &str) {
    assert_eq!(table.nrows(), what["nrows"], "{name}");
    let columns = what["columns"].as_object().unwrap();
    assert!(table.columns().iter().map(|column| column.name()).eq(columns.keys()), "{name}");
    for (column, values) in columns {
        let read = Value::List(table.values(column, ..).unwrap());
        assert_eq!(read, value(values), "{name}, {column}");
    }
}

fn check_carrier(carrier: &Carrier, what: &Json, name: &str) {
    if let Some(expression) = what["expression"].as_str() {
        assert_eq!(carrier.expression(), Some(expression), "{name}");
    }
    let operands = carrier.operands().into_iter().map(|(name, place)| (name, place.into()));
    let operands: serde_json::Map<String, Json> = operands.collect();
    match what["source"].as_str() {
        Some(source) => assert_eq!(carrier.source().unwrap(), source, "{name}"),
        None => assert_eq!(Json::Object(operands), what["operands"], "{name}"),
    }
}

/// Lazy expressions as old versions of Python kept them: the operands are data, the expression is described.
#[test]
fn test_data_of_python_blosc2() {
    let upstream = folder().join("upstream");
    let array = |name: &str| {
        let mut array = NDArray::open(upstream.join(name)).unwrap();
        // The items are little-endian.
        array.set_dparams(array.info().dparams.convert_byte_order(cfg!(target_endian = "big")));
        array
    };
    let carrier = |name: &str| match Object::open(upstream.join(name)).unwrap() {
        Object::Carrier(carrier) => carrier,
        other => panic!("{name} is {other:?}"),
    };
    let read = |name: &str| array(name).read::<Vec<i64>>(..).unwrap();
    assert_eq!(read("legacy_lazyexpr_v1/a.b2nd"), [0, 1, 2, 3, 4]);
    assert_eq!(read("legacy_lazyexpr_v1/b.b2nd"), [0, 2, 4, 6, 8]);
    let read = |name: &str| array(name).read::<Vec<f64>>(..).unwrap();
    assert_eq!(read("legacy_lazyudf_v1/a.b2nd"), [0.0, 1.0, 2.0, 3.0, 4.0]);
    assert_eq!(read("legacy_lazyudf_v1/b.b2nd"), [0.0, 2.0, 4.0, 6.0, 8.0]);

    let expression = carrier("legacy_lazyexpr_v1/expr.b2nd");
    assert_eq!(
        (expression.kind(), expression.expression()),
        (CarrierKind::LazyExpr, Some("a + b"))
    );
    let place = |name: &str, path: &str| (name.to_owned(), path.to_owned());
    assert_eq!(expression.operands(), [place("a", "a.b2nd"), place("b", "b.b2nd")]);
    let function = carrier("legacy_lazyudf_v1/expr.b2nd");
    assert_eq!(function.kind(), CarrierKind::LazyUdf);
    assert!(function.expression().unwrap().starts_with("def kernel_add_square(x, y):\n"));
    assert_eq!(function.operands(), [place("o0", "a.b2nd"), place("o1", "b.b2nd")]);
    let text = "a Python lazy function, `kernel_add_square`, of o0: a.b2nd, o1: b.b2nd; its items hold no data";
    assert_eq!(function.to_string(), text);
    for name in ["legacy_lazyexpr_v1/expr.b2nd", "legacy_lazyudf_v1/expr.b2nd"] {
        let error = NDArray::open(upstream.join(name)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        // On request, the existing items are returned.
        let items =
            blosc2::array::from_python_object(SChunk::open(upstream.join(name)).unwrap()).unwrap();
        assert!(items.read::<RawItems>(..).unwrap().0.iter().all(|&byte| byte == 0));
    }
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn numbers(numbers: &[u64]) -> Json {
    numbers.into()
}

/// Converts hexadecimal digits to bytes.
fn bytes(digits: &Json) -> Vec<u8> {
    let digits = digits.as_str().unwrap();
    let pairs = (0..digits.len()).step_by(2);
    pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect()
}

fn value(digits: &Json) -> Value {
    Value::from_msgpack(&bytes(digits)).unwrap()
}
