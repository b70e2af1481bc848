//! What opening a table costs: a few bytes of a file must not take much time or memory.

use std::time::Duration;

use crate::common::measure::measure;
use blosc2::{CParams, Element, ErrorKind, NDArray, SChunk, Value};
use blosc2_store::{BatchArray, CTable, Data, EmbedStore, ItemKind, ItemType, Schema};

/// Far above the cost on a slow machine without optimization, and far below that of the faults.
const MAX_TIME: Duration = Duration::from_secs(20);
const MAX_MEMORY: usize = 256 << 20;

fn table(schema: &str, parts: &[(&str, &SChunk)]) -> Vec<u8> {
    let mut meta = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    meta.vlmeta_mut().set_value("kind", "ctable").unwrap();
    meta.vlmeta_mut().set_value("schema", schema).unwrap();
    let mut store = EmbedStore::in_memory().unwrap();
    store.insert("/_meta", &meta).unwrap();
    for (key, schunk) in parts {
        store.insert(key, schunk).unwrap();
    }
    store.into_schunk().into_cframe().unwrap()
}

/// Long strings next to each other, which the average of all rows does not show.
#[test]
fn statistics_take_little_memory() {
    let word = ItemKind::Dictionary { ordered: false };
    let schema = Schema::new().column("word", word).column("text", ItemKind::Utf8);
    let mut table = CTable::in_memory(&schema).unwrap();
    let long = "y".repeat(1 << 20);
    let text = |row| if row < 150 { Some(long.as_str()) } else { Some("short") };
    let texts = || Data::texts((0..100_000).map(text));
    table.append([("word", texts()), ("text", texts())]).unwrap();
    for (name, max) in [("word", 40 << 20), ("text", 80 << 20)] {
        let (described, _, held) = measure(|| table.describe(name).unwrap());
        assert_eq!(described.unwrap().distinct, Some(2), "{name}");
        assert!(held < max, "{name} held {held} bytes");
    }
}

/// Opens a table, and checks the cost.
fn open(what: &str, bytes: Vec<u8>) -> blosc2::Result<CTable> {
    assert!(bytes.len() < 1_000_000, "{what}: {} bytes", bytes.len());
    let (result, time, held) = measure(|| CTable::from_cframe(bytes));
    assert!(time < MAX_TIME, "{what} took {time:?}");
    assert!(held < MAX_MEMORY, "{what} held {held} bytes");
    result.unwrap()
}

#[test]
fn a_schema_is_parsed_in_proportion_to_its_length() {
    let marks = NDArray::from_slice(&[true], [1]).unwrap();
    let open_schema =
        |what: &str, schema: &str| open(what, table(schema, &[("/_valid_rows", marks.schunk())]));
    let column = |entry: &str| {
        format!(r#"{{"columns": [{{"name": "a", "kind": "int8", "default": {entry}}}]}}"#)
    };

    // Each level has two parts; a nested number is none.
    let (mut nested, levels) = ("1".to_owned(), 100);
    for _ in 0..levels {
        nested = format!(r#"{{"__complex__": true, "real": {nested}, "imag": 1}}"#);
    }
    assert_eq!(open_schema("complex numbers", &column(&nested)).unwrap().columns().len(), 1);

    let nans = |count: usize| column(&format!("[{}NaN]", "NaN, ".repeat(count)));
    open_schema("a few NaN", &nans(100_000)).unwrap();
    let error = open_schema("many NaN", &nans(3_000_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

    let columns = |count: usize| {
        let columns = (0..count).map(|n| format!(r#"{{"name": "c{n}", "kind": "int8"}}"#));
        columns.collect::<Vec<_>>().join(",")
    };
    let schema = format!("{{\"columns\": [{}]}}", columns(10_000));
    assert_eq!(open_schema("columns", &schema).unwrap().columns().len(), 10_000);
    let error = open_schema("many columns", &format!("{{\"columns\": [{}]}}", columns(400_000)));
    assert_eq!(error.unwrap_err().kind(), ErrorKind::TooLarge);

    // Names of columns that are stale.
    let stale = (0..30_000).map(|n| format!(r#"{{"name": "s{n}", "stale": true}}"#));
    let stale = stale.collect::<Vec<_>>().join(",");
    let (columns, schema) = (columns(30_000), "materialized_columns");
    let schema = format!("{{\"columns\": [{columns}], \"{schema}\": [{stale}]}}");
    assert_eq!(open_schema("stale columns", &schema).unwrap().columns().len(), 30_000);

    // No level of a nested type has a copy of the levels below it.
    let mut nested = format!(r#"{{"kind": "int8", "x": [{}0]}}"#, "0,".repeat(200_000));
    for _ in 0..50 {
        nested = format!(r#"{{"kind": "list", "item": {nested}}}"#);
    }
    let schema = format!(r#"{{"columns": [{{"name": "a", {}]}}"#, &nested[1..]);
    assert_eq!(open_schema("nested lists", &schema).unwrap().columns().len(), 1);

    let long =
        format!(r#"{{"columns": [{{"name": "{}", "kind": "int8"}}]}}"#, "x".repeat(20 << 20));
    let error = open_schema("a long text", &long).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

    let twice = r#"{"columns": [{"name": "a", "kind": "int8"}, {"name": "a", "kind": "int8"}]}"#;
    let error = open_schema("two columns", twice).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
}

#[test]
fn a_mask_is_counted_in_proportion_to_its_bytes() {
    let open_mask = |what: &str, mask: &NDArray| {
        open(what, table(r#"{"columns": []}"#, &[("/_valid_rows", mask.schunk())]))
    };
    let empty = |rows: u64, chunk: u64| {
        let builder = NDArray::builder().chunk_shape([chunk]).block_shape([chunk.min(1 << 20)]);
        builder.zeros::<bool>([rows]).unwrap()
    };
    assert_eq!(open_mask("many rows", &empty(1 << 40, 1 << 30)).unwrap().nrows(), 0);
    let opened = open_mask("many chunks", &empty(1 << 22, 1));
    let error = opened.map(|table| table.nrows()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    let opened = open_mask("very many rows", &empty(1 << 50, 1 << 30));
    let error = opened.map(|table| table.nrows()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

    // Marks in one large chunk are read in parts.
    let (rows, live) = (100_000_000, 3);
    let mut mask = NDArray::builder()
        .chunk_shape([rows])
        .block_shape([1 << 20])
        .zeros::<bool>([rows])
        .unwrap();
    mask.write(rows - live..rows, true).unwrap();
    let table = open_mask("a large chunk", &mask).unwrap();
    assert_eq!(table.nrows(), live);
    let (found, _, held) = measure(|| table.valid_rows(..).unwrap());
    assert_eq!(found.unwrap(), [rows - 3, rows - 2, rows - 1]);
    assert!(held < 64 << 20, "reading held {held} bytes");
}

/// A table whose columns have very many rows after the last valid one, as an interrupted program leaves them.
#[test]
fn rows_after_the_last_valid_one_are_removed_at_once() {
    let list = |storage: &str| {
        let list = ItemType::from(ItemKind::List(ItemKind::Int8.into()));
        list.with("storage", storage)
    };
    let schema = Schema::new().column("batches", list("batch")).column("cells", list("vl"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let row = || Data::values(vec![Value::List(vec![7.into()])]);
    let mut table = CTable::create(&path, &schema).unwrap();
    table.append([("batches", row()), ("cells", row())]).unwrap();
    table.finish().unwrap();
    drop(table);
    let file = |name: &str| path.join("_cols").join(name).with_extension("b2b");

    let mut batches = SChunk::open_rw(file("batches")).unwrap();
    let mut cells = SChunk::open_rw(file("cells")).unwrap();
    let (batch, cell) = (batches.chunk(0).unwrap(), cells.chunk(0).unwrap());
    for (schunk, chunk) in [(&mut batches, batch), (&mut cells, cell)] {
        schunk.transaction(|schunk| (1..30_000).try_for_each(|_| schunk.append(&chunk))).unwrap();
    }
    drop((batches, cells));
    BatchArray::open_rw(file("batches")).unwrap().recount().unwrap();

    let (result, time, held) = measure(|| {
        let mut table = CTable::open_rw(&path)?;
        table.append([("batches", row()), ("cells", row())])?;
        table.finish()
    });
    result.unwrap().unwrap();
    assert!(time < MAX_TIME, "it took {time:?}");
    assert!(held < MAX_MEMORY, "it held {held} bytes");
    let table = CTable::open(&path).unwrap();
    for column in ["batches", "cells"] {
        assert_eq!(table.values(column, ..).unwrap(), vec![Value::List(vec![7.into()]); 2]);
    }
    assert_eq!(BatchArray::open(file("batches")).unwrap().nitems().unwrap(), 2);
    assert_eq!(SChunk::open(file("cells")).unwrap().nchunks(), 2);
}

#[test]
fn shapes_that_overflow_are_errors() {
    let marks = NDArray::from_slice(&[true], [1]).unwrap();
    for inner in [1u64 << 32, 1 << 31] {
        let builder = NDArray::builder().chunk_shape([1, 1, 1]).block_shape([1, 1, 1]);
        let array = builder.zeros::<u16>([0, inner, inner]).unwrap();
        let schema = format!(
            r#"{{"columns": [{{"name": "a", "kind": "ndarray", "item_shape": [{inner}, {inner}],
                "dtype_str": "<u2"}}]}}"#
        );
        let parts = [("/_valid_rows", marks.schunk()), ("/_cols/a", array.schunk())];
        let table = open("a shape", table(&schema, &parts)).unwrap();
        for result in [table.values("a", ..).map(drop), table.read::<u16>("a", ..).map(drop)] {
            let error = result.unwrap_err();
            let kind = error.kind();
            assert!(matches!(kind, ErrorKind::TooLarge | ErrorKind::InvalidData), "{error}");
        }
        assert_eq!(table.nulls("a", ..).unwrap(), [false]);
    }
}

/// Opens a table with one live row, and one column `a` of arrays that has no row yet.
fn arrays_of(shape: [u64; 2], rows: u64, live: bool) -> CTable {
    let marks = NDArray::from_slice(&[live], [1]).unwrap();
    let builder = NDArray::builder().chunk_shape([1, 1, 1]).block_shape([1, 1, 1]);
    let array = builder.zeros::<u16>([rows, shape[0], shape[1]]).unwrap();
    let [one, other] = shape;
    let schema = format!(
        r#"{{"columns": [{{"name": "a", "kind": "ndarray", "item_shape": [{one}, {other}],
            "dtype_str": "<u2", "nullable": true, "null_storage": "mask"}}]}}"#
    );
    let parts = [("/_valid_rows", marks.schunk()), ("/_cols/a", array.schunk())];
    let bytes = table(&schema, &parts);
    assert!(bytes.len() < 2000);
    open("a shape", bytes).unwrap()
}

#[test]
fn rows_of_any_size_are_refused_when_they_are_written() {
    let check = |what: &str, work: &mut dyn FnMut() -> blosc2::Result<()>| {
        let (result, time, held) = measure(work);
        assert!(time < MAX_TIME, "{what} took {time:?}");
        assert!(held < MAX_MEMORY, "{what} held {held} bytes");
        let error = result.unwrap().expect_err(what);
        let kinds = [ErrorKind::TooLarge, ErrorKind::InvalidArgument, ErrorKind::InvalidData];
        assert!(kinds.contains(&error.kind()), "{what}: {error}");
    };
    let none = || Data::values(vec![Value::None]);
    let value = || {
        let array = blosc2::ArrayValue::new(u16::dtype(), vec![1], vec![1, 0]).unwrap();
        Data::values(vec![Value::Array(array)])
    };
    for shape in [[1 << 40, 1 << 40], [1 << 32, 1 << 32], [1 << 33, 1], [u64::MAX, 2]] {
        let what = format!("{shape:?}");
        // Large shapes have no rows: an array with rows has at most 2^63 - 1 bytes.
        if shape[0] < u64::MAX {
            let mut table = arrays_of(shape, 0, false);
            for (form, data) in [("null", none()), ("items", Data::items(&[1u16]))] {
                check(&format!("{what}: append {form}"), &mut || {
                    table.append([("a", data.clone())])
                });
            }
            let wrong = table.append([("a", value())]).unwrap_err();
            assert!(wrong.kind() != ErrorKind::Io, "{wrong}");
            assert_eq!(table.nrows(), 0);
            let mut table = arrays_of(shape, 0, true);
            check(&format!("{what}: update"), &mut || table.update("a", .., none()));
            check(&format!("{what}: compact"), &mut || {
                table.append([("a", none())])?;
                table.compact()
            });
        }
        let kind = || ItemKind::NDArray { shape: shape.to_vec(), dtype: u16::dtype() };
        let specs = [
            ("a default", ItemType::from(kind()).with("default", 1)),
            ("nulls", ItemType::from(kind()).nullable()),
            ("a null value", ItemType::from(kind()).with("null_value", 7)),
        ];
        for (form, spec) in specs {
            check(&format!("{what}: create with {form}"), &mut || {
                let mut table = CTable::in_memory(&Schema::new().column("a", spec.clone()))?;
                table.append([("a", none())])
            });
            let mut table = CTable::in_memory(&Schema::new().column("n", ItemKind::Int8)).unwrap();
            table.append([("n", Data::items(&[1i8]))]).unwrap();
            check(&format!("{what}: add a column with {form}"), &mut || {
                table.add_column("a", spec.clone(), None)
            });
            assert_eq!(table.read::<i8>("n", ..).unwrap(), [1]);
            assert!(table.column("a").is_none());
        }
    }

    // Strings of a fixed length.
    for max_length in [1 << 29, 1 << 30, 1 << 62, u64::MAX] {
        let kinds = [ItemKind::String { max_length }, ItemKind::Bytes { max_length }];
        for kind in kinds {
            let (what, spec) = (format!("{kind}"), ItemType::from(kind).nullable());
            let (result, _, held) = measure(|| {
                let mut table = CTable::in_memory(&Schema::new().column("a", spec.clone()))?;
                table.append([("a", Data::values(vec![Value::None; 100]))])
            });
            let error = result.unwrap().expect_err(&what);
            let kinds = [ErrorKind::TooLarge, ErrorKind::InvalidArgument, ErrorKind::Unsupported];
            assert!(kinds.contains(&error.kind()), "{what}: {error}");
            assert!(held < MAX_MEMORY, "{what} held {held} bytes");
        }
    }

    // A long default in very many rows.
    let long = ItemType::from(ItemKind::Utf8).with("default", "x".repeat(1 << 20));
    let schema = Schema::new().column("n", ItemKind::Int8).column("a", long);
    let mut table = CTable::in_memory(&schema).unwrap();
    check("a long default", &mut || table.append([("n", Data::items(&[1i8; 10_000]))]));
    table.append([("n", Data::items(&[1i8]))]).unwrap();
    assert_eq!(table.nrows(), 1);
}
