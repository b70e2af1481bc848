//! What opening a table costs: a few bytes of a file must not take much time or memory.

use std::time::Duration;

use crate::common::measure::measure;
use blosc2::{CParams, ErrorKind, NDArray, SChunk, Value};
use blosc2_store::{
    BatchArray, CTable, ColumnKind, ColumnSpec, Data, EmbedStore, ItemKind, Schema,
};

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

    // Each level of a nested type has a copy of the levels below it.
    let mut nested = format!(r#"{{"kind": "int8", "x": [{}0]}}"#, "0,".repeat(200_000));
    for _ in 0..50 {
        nested = format!(r#"{{"kind": "list", "item": {nested}}}"#);
    }
    let schema = format!(r#"{{"columns": [{{"name": "a", {}]}}"#, &nested[1..]);
    let error = open_schema("nested lists", &schema).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");

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
        let builder = NDArray::builder().chunks([chunk]).blocks([chunk.min(1 << 20)]);
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
    let mut mask =
        NDArray::builder().chunks([rows]).blocks([1 << 20]).zeros::<bool>([rows]).unwrap();
    mask.fill(rows - live..rows, true).unwrap();
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
        let list = ColumnSpec::from(ColumnKind::List(ItemKind::Int8.into()));
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
        schunk
            .transaction(|schunk| {
                (1..30_000).try_for_each(|_| schunk.append_chunk(&chunk).map(drop))
            })
            .unwrap();
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
        let builder = NDArray::builder().chunks([1, 1, 1]).blocks([1, 1, 1]);
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
