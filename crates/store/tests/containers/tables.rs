//! Tables: deleted rows, parts of columns, and the errors of damaged ones.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex};

use crate::common::Rng;
use crate::common::measure::measure;
use blosc2::storage::ReadAt;
use blosc2::{CParams, Dtype, Element, ErrorKind, NDArray, RawItems, SChunk, Value};
use blosc2_store::{BatchArray, CTable, Data, EmbedStore, ItemKind, Object, TreeStore};
use serde_json::json;

/// A table that is created part by part.
struct Parts {
    columns: Vec<serde_json::Value>,
    leaves: Vec<(String, SChunk)>,
}

impl Parts {
    /// Creates the marks of live rows, in chunks of `chunk` marks.
    fn new(marks: &[bool], chunk: u64) -> Self {
        let mut parts = Self { columns: Vec::new(), leaves: Vec::new() };
        parts.put("/_valid_rows", array(marks, chunk));
        parts
    }

    fn put(&mut self, key: &str, array: NDArray) {
        self.put_schunk(key, array.into_schunk());
    }

    fn put_schunk(&mut self, key: &str, schunk: SChunk) {
        self.leaves.retain(|(other, _)| other != key);
        self.leaves.push((key.to_owned(), schunk));
    }

    fn column(&mut self, entry: serde_json::Value) {
        self.columns.push(entry);
    }

    fn meta(&self) -> SChunk {
        let schema = json!({"version": 3, "columns": self.columns}).to_string();
        meta(&schema)
    }

    fn bytes(&self) -> Vec<u8> {
        let mut store = EmbedStore::in_memory().unwrap();
        store.insert("/_meta", &self.meta()).unwrap();
        for (key, schunk) in &self.leaves {
            store.insert(key, schunk).unwrap();
        }
        store.into_schunk().into_cframe().unwrap()
    }

    fn table(&self) -> CTable {
        CTable::from_cframe(self.bytes()).unwrap()
    }
}

fn meta(schema: &str) -> SChunk {
    let mut meta = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    meta.vlmeta_mut().set_value("kind", "ctable").unwrap();
    meta.vlmeta_mut().set_value("schema", schema).unwrap();
    meta
}

fn array<T: Element>(items: &[T], chunk: u64) -> NDArray {
    let builder = NDArray::builder().chunk_shape([chunk]).block_shape([chunk.div_ceil(2)]);
    builder.from_slice(items, items.len()).unwrap()
}

fn batches(values: &[Value], len: usize) -> SChunk {
    let mut array = BatchArray::in_memory().unwrap();
    for batch in values.chunks(len) {
        array.append(batch).unwrap();
    }
    array.into_schunk()
}

/// Adds texts as a `utf8` column.
fn put_texts(parts: &mut Parts, name: &str, texts: &[String], chunk: u64) {
    let mut ends = vec![0i64];
    for text in texts {
        ends.push(ends[ends.len() - 1] + text.len() as i64);
    }
    parts.column(json!({"name": name, "kind": "utf8"}));
    parts.put(&format!("/_cols/{name}"), array(&ends, chunk));
    let mut bytes = texts.concat().into_bytes();
    // As in Python, which stores one byte even without texts.
    bytes.push(0);
    parts.put(&format!("/_cols/{name}.utf8"), array(&bytes, chunk));
}

/// Python's `json` reads the last of two entries, and this crate stores what it does not know.
#[test]
fn entries_of_columns_are_stored_as_they_were_read() {
    let long = (0..100).map(|number| format!(r#""o{number}": {number}"#)).collect::<Vec<_>>();
    let entries = [
        r#"{"name": "a", "kind": "int64", "ge": 7, "later": [1], "ge": 0, "le": null}"#.to_owned(),
        r#"{"kind": "timestamp", "timezone": null, "name": "x", "name": "b"}"#.to_owned(),
        format!(r#"{{"name": "c", {}, "kind": "int8"}}"#, long.join(", ")),
        r#"{"name": "d", "kind": "int64", "nullable": true, "le": 9, "null_value": -1, "ge": null}"#.to_owned(),
    ];
    let mut store = EmbedStore::in_memory().unwrap();
    let schema =
        format!(r#"{{"version": 1, "columns": [{}], "row_cls": "R"}}"#, entries.join(", "));
    store.insert("/_meta", &meta(&schema)).unwrap();
    store.insert("/_valid_rows", array(&[true, true], 2).schunk()).unwrap();
    for name in ["a", "b", "d"] {
        store.insert(&format!("/_cols/{name}"), array(&[1i64, 2], 2).schunk()).unwrap();
    }
    store.insert("/_cols/c", array(&[1i8, 2], 2).schunk()).unwrap();
    let mut table = CTable::from_cframe(store.into_schunk().into_cframe().unwrap()).unwrap();
    let kinds: Vec<_> = table.columns().iter().map(|column| column.kind().to_string()).collect();
    assert_eq!(kinds, ["int64", "timestamp[us]", "int8", "int64"]);
    assert_eq!(table.columns()[0].spec().get("ge"), Some(&0.into()));
    assert_eq!(table.read::<i8>("c", ..).unwrap(), [1, 2]);

    let stored = |table: &mut CTable| {
        let store = EmbedStore::from_cframe(table.to_cframe().unwrap()).unwrap();
        let Object::SChunk(meta) = store.get("/_meta").unwrap() else { panic!("no super-chunk") };
        meta.vlmeta().value("schema").unwrap().unwrap().as_str().unwrap().to_owned()
    };
    table.add_column("e", ItemKind::Int8, Some(Data::items(&[3i8, 4]))).unwrap();
    table.rename_column("d", "f").unwrap();
    let text = stored(&mut table);
    let renamed = entries[3].replace(r#""name": "d""#, r#""name": "f""#);
    let new = r#"{"name": "e", "kind": "int8"}"#;
    let columns = [&entries[..3], &[renamed, new.to_owned()]].concat().join(", ");
    let expected =
        format!(r#"{{"version": 1, "columns": [{columns}], "row_cls": "R", "n_rows": 2}}"#);
    assert_eq!(text, expected);
    table.drop_column("a").unwrap();
    assert_eq!(stored(&mut table), expected.replace(&format!("{}, ", entries[0]), ""));
}

/// A table of some thousand rows with every storage form of a column.
fn sample(rng: &mut Rng, rows: usize) -> (Parts, Vec<bool>) {
    // Runs of any lengths, also of whole chunks of marks.
    let mut marks = Vec::new();
    while marks.len() < rows {
        let run = match rng.below(3) {
            0 => 1 + rng.below(4),
            1 => 1 + rng.below(100),
            _ => 1 + rng.below(3000),
        };
        let mark = rng.below(3) > 0;
        marks.extend((0..run).map(|_| mark));
    }
    marks.truncate(rows);
    let mut parts = Parts::new(&marks, 1 + rng.below(900));
    let numbers: Vec<i64> = (0..rows as i64).collect();
    parts.column(json!({"name": "number", "kind": "int64", "null_value": 5}));
    parts.put("/_cols/number", array(&numbers, 1 + rng.below(1000)));
    let pairs: Vec<u16> = (0..2 * rows as u16).collect();
    let pairs = NDArray::builder().from_slice(&pairs, [rows as u64, 2]).unwrap();
    parts.column(json!({"name": "pair", "kind": "ndarray", "item_shape": [2], "dtype_str": "<u2",
            "nullable": true, "null_storage": "mask"}));
    parts.put("/_cols/pair", pairs);
    let there: Vec<bool> = (0..rows).map(|row| row % 3 > 0).collect();
    parts.put("/_cols/pair.notnull", array(&there, 64));
    let texts: Vec<String> = (0..rows).map(|row| "é".repeat(row % 5) + &row.to_string()).collect();
    put_texts(&mut parts, "text", &texts, 1 + rng.below(1000));
    let values: Vec<Value> = numbers
        .iter()
        .map(|&row| if row % 4 == 0 { Value::None } else { format!("v{row}").into() })
        .collect();
    parts.column(json!({"name": "value", "kind": "vlstring", "nullable": true}));
    parts.put_schunk("/_cols/value", batches(&values, 1 + rng.below(300) as usize));
    let codes: Vec<i32> = (0..rows as i32).map(|row| row % 4 - 1).collect();
    parts.column(json!({"name": "word", "kind": "dictionary", "null_code": -1}));
    parts.put("/_cols/word", array(&codes, 1 + rng.below(1000)));
    let words = ["zero", "one", "two"].map(Value::from);
    parts.put_schunk("/_cols/word_dict", batches(&words, 2));
    (parts, marks)
}

#[test]
fn any_rows_are_those_that_are_live() {
    let mut rng = Rng(7);
    for round in 0..20 {
        let rows = 1 + rng.below(6000) as usize;
        let (parts, marks) = sample(&mut rng, rows);
        let table = parts.table();
        let live: Vec<u64> = (0..rows as u64).filter(|&row| marks[row as usize]).collect();
        assert_eq!(table.nrows(), live.len() as u64, "round {round}");
        let all = 0..table.nrows();
        let mut ranges = vec![all];
        for _ in 0..12 {
            let start = rng.below(table.nrows() + 1);
            let len = 1 + *rng.pick(&[1, 20, 6000]);
            ranges.push(start..table.nrows().min(start + rng.below(len)));
        }
        for range in ranges {
            let what = format!("round {round}, {range:?}");
            let live = &live[range.start as usize..range.end as usize];
            check_rows(&table, range, live, &what);
        }
    }
}

fn check_rows(table: &CTable, range: Range<u64>, live: &[u64], what: &str) {
    assert_eq!(table.valid_rows(range.clone()).unwrap(), live, "{what}");
    let numbers: Vec<i64> = table.read("number", range.clone()).unwrap();
    assert!(numbers.into_iter().eq(live.iter().map(|&row| row as i64)), "{what}");
    let nulls = table.nulls("number", range.clone()).unwrap();
    assert!(nulls.into_iter().eq(live.iter().map(|&row| row == 5)), "{what}");
    let pairs: Vec<u16> = table.read("pair", range.clone()).unwrap();
    let both = live.iter().flat_map(|&row| [2 * row as u16, 2 * row as u16 + 1]);
    assert!(pairs.into_iter().eq(both), "{what}");
    let values = table.values("pair", range.clone()).unwrap();
    for (value, &row) in values.iter().zip(live) {
        match value {
            Value::None => assert_eq!(row % 3, 0, "{what}"),
            Value::Array(array) => {
                assert!(row % 3 > 0 && array.shape() == [2], "{what}");
                assert_eq!(array.data()[..2], (2 * row as u16).to_ne_bytes(), "{what}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    let text = |row: u64| Some("é".repeat(row as usize % 5) + &row.to_string());
    let texts = table.texts("text", range.clone()).unwrap();
    assert!(texts.into_iter().eq(live.iter().map(|&row| text(row))), "{what}");
    let value = |row: u64| (!row.is_multiple_of(4)).then(|| format!("v{row}"));
    let values = table.texts("value", range.clone()).unwrap();
    assert!(values.into_iter().eq(live.iter().map(|&row| value(row))), "{what}");
    let word = |row: u64| {
        let word = ["zero", "one", "two"].get((row % 4).checked_sub(1)? as usize)?;
        Some((*word).to_owned())
    };
    let words = table.texts("word", range.clone()).unwrap();
    assert!(words.into_iter().eq(live.iter().map(|&row| word(row))), "{what}");
    let nulls = table.nulls("word", range).unwrap();
    assert!(nulls.into_iter().eq(live.iter().map(|&row| row % 4 == 0)), "{what}");
}

/// Bytes that count their reads.
struct Counted(Vec<u8>, Arc<Mutex<u64>>);

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        *self.1.lock().unwrap() += buffer.len() as u64;
        self.0.read_exact_at(offset, buffer)
    }
}

#[test]
fn a_few_rows_take_a_few_reads() {
    const ROWS: usize = 400_000;
    let mut rng = Rng(3);
    // There are dead rows here and there, and many at once.
    let dead = 140_000..250_000;
    let marks: Vec<bool> = (0..ROWS).map(|row| row != 7 && !dead.contains(&row)).collect();
    let mut parts = Parts::new(&marks, 1 << 17);
    let numbers: Vec<u64> = (0..ROWS).map(|_| rng.next()).collect();
    parts.column(json!({"name": "number", "kind": "uint64"}));
    let builder = NDArray::builder().chunk_shape([1 << 16]).block_shape([1 << 12]);
    parts.put("/_cols/number", builder.from_slice(&numbers, [ROWS as u64]).unwrap());
    let texts: Vec<String> = numbers.iter().map(|number| format!("{number:x}")).collect();
    put_texts(&mut parts, "text", &texts, 1 << 16);
    let values: Vec<Value> = texts.iter().map(|text| text.as_str().into()).collect();
    parts.column(json!({"name": "value", "kind": "vlstring"}));
    parts.put_schunk("/_cols/value", batches(&values, 2048));

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table.b2z");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/t/_meta", &parts.meta()).unwrap();
    for (key, schunk) in &parts.leaves {
        store.insert(&format!("/t{key}"), schunk).unwrap();
    }
    store.finish().unwrap();
    let count = Arc::new(Mutex::new(0));
    let bytes = std::fs::read(&path).unwrap();
    let size = bytes.len() as u64;
    assert!(size > 9_000_000, "{size}");
    let store = TreeStore::open_source(Counted(bytes, count.clone())).unwrap();
    let taken = || std::mem::take(&mut *count.lock().unwrap());
    // The directory at the end of the file.
    taken();
    let Object::CTable(table) = store.get("/t").unwrap() else { panic!("it is a table") };
    let opened = taken();
    assert!(opened < 100_000, "opening read {opened} bytes");
    // One dead row is before these rows, and many are among them.
    let rows = 139_994..140_004;
    let at: Vec<usize> = (139_995..140_000).chain(250_000..250_005).collect();
    let found = table.read::<u64>("number", rows.clone()).unwrap();
    assert!(found.into_iter().eq(at.iter().map(|&row| numbers[row])));
    let read = taken();
    assert!(read < 200_000, "ten numbers took {read} bytes of {size}");
    let found = table.texts("text", rows.clone()).unwrap();
    assert!(found.iter().flatten().eq(at.iter().map(|&row| &texts[row])));
    let read = taken();
    assert!(read < 400_000, "ten texts took {read} bytes of {size}");
    let found = table.values("value", rows).unwrap();
    assert!(found.iter().eq(at.iter().map(|&row| &values[row])));
    let read = taken();
    assert!(read < 200_000, "ten values took {read} bytes of {size}");
}

#[test]
fn dead_rows_are_not_held() {
    const ROW: u64 = 8192;
    let held = |every: usize, rows: usize, fill: &dyn Fn(&mut Parts)| {
        let marks: Vec<bool> = (0..rows).map(|row| row % every == 0).collect();
        let mut parts = Parts::new(&marks, 1 << 17);
        fill(&mut parts);
        let table = parts.table();
        let (values, _, held) = measure(|| table.values("a", ..).unwrap());
        let values = values.unwrap();
        assert_eq!(values.len(), rows.div_ceil(every));
        (values, held)
    };
    // A few rows of 2.4 GB, and half of the rows of 160 MB.
    for (every, rows, limit) in [(900, 300_000, 60 << 20), (2, 20_000, 130 << 20)] {
        let arrays = |parts: &mut Parts| {
            parts.column(
                json!({"name": "a", "kind": "ndarray", "item_shape": [1024], "dtype_str": "<f8"}),
            );
            let builder = NDArray::builder().chunk_shape([2048, 1024]).block_shape([16, 1024]);
            let item = 1.5f64.to_le_bytes();
            let array = builder
                .dtype("<f8", item.len())
                .full(RawItems(&item), [rows as u64, ROW / 8])
                .unwrap();
            parts.put("/_cols/a", array);
        };
        let (values, held) = held(every, rows, &arrays);
        let Value::Array(last) = &values[values.len() - 1] else { panic!("arrays") };
        assert_eq!(last.data(), 1.5f64.to_le_bytes().repeat(1024));
        assert!(held < limit, "every {every}: held {held} bytes");
    }
    // 80 MB of texts and of bytes.
    let (values, held_of_texts) = held(500, 10_000, &|parts| {
        parts.column(json!({"name": "a", "kind": "utf8"}));
        let ends: Vec<i64> = (0..=10_000).map(|row| row * ROW as i64).collect();
        parts.put("/_cols/a", array(&ends, 1000));
        let builder = NDArray::builder().chunk_shape([1 << 20]).block_shape([1 << 14]);
        parts.put(
            "/_cols/a.utf8",
            builder.dtype("|u1", b"x".len()).full(RawItems(b"x"), [10_000 * ROW]).unwrap(),
        );
    });
    assert_eq!(values[19], "x".repeat(ROW as usize).as_str().into());
    assert!(held_of_texts < 10 << 20, "held {held_of_texts} bytes");
    let (values, held_of_batches) = held(500, 10_000, &|parts| {
        parts.column(json!({"name": "a", "kind": "vlbytes"}));
        let mut array = BatchArray::in_memory().unwrap();
        let batch = vec![Value::Bytes(vec![7; ROW as usize]); 100];
        (0..100).for_each(|_| array.append(&batch).unwrap());
        parts.put_schunk("/_cols/a", array.into_schunk());
    });
    assert_eq!(values[19], vec![7; ROW as usize].into());
    assert!(held_of_batches < 10 << 20, "held {held_of_batches} bytes");
}

#[test]
fn broken_parts_are_named_and_the_others_read() {
    let marks = [true, false, true, true];
    let good = || {
        let mut parts = Parts::new(&marks, 2);
        parts.column(json!({"name": "a", "kind": "int32"}));
        parts.put("/_cols/a", array(&[1, 2, 3, 4], 2));
        parts
    };
    /// A change of a valid table, and the resulting error of the column `b`.
    type Case = (&'static str, fn(&mut Parts), ErrorKind);
    let cases: [Case; 22] = [
        ("no array", |parts| b(parts, "int8"), ErrorKind::InvalidData),
        ("a kind that is not known", |parts| b(parts, "decimal"), ErrorKind::Unsupported),
        (
            "items of another type",
            |parts| {
                b(parts, "int8");
                parts.put("/_cols/b", array(&[1u8, 2, 3, 4], 2));
            },
            ErrorKind::InvalidData,
        ),
        (
            "items of another shape",
            |parts| {
                parts.column(
                    json!({"name": "b", "kind": "ndarray", "item_shape": [3], "dtype_str": "|u1"}),
                );
                parts.put("/_cols/b", NDArray::from_slice(&[0u8; 8], [4, 2]).unwrap());
            },
            ErrorKind::InvalidData,
        ),
        (
            "items of no bytes",
            |parts| {
                parts.column(
                    json!({"name": "b", "kind": "ndarray", "item_shape": [0], "dtype_str": "|u1"}),
                );
                parts.put("/_cols/b", NDArray::from_slice(&[0u8; 0], &[4, 0]).unwrap());
            },
            ErrorKind::InvalidData,
        ),
        (
            "no dimension",
            |parts| {
                b(parts, "int8");
                parts.put("/_cols/b", NDArray::from_slice(&[1i8], ()).unwrap());
            },
            ErrorKind::InvalidData,
        ),
        (
            "less rows",
            |parts| {
                b(parts, "int8");
                parts.put("/_cols/b", array(&[1i8, 2, 3], 2));
            },
            ErrorKind::InvalidData,
        ),
        (
            "no array at all",
            |parts| {
                b(parts, "int8");
                parts.put_schunk("/_cols/b", SChunk::in_memory::<i8>(&CParams::default()).unwrap());
            },
            ErrorKind::InvalidData,
        ),
        (
            "a computation",
            |parts| {
                b(parts, "int8");
                let mut schunk = array(&[0i8; 4], 2).into_schunk();
                let content = Value::from([("kind", "lazyexpr".into())]);
                schunk.vlmeta_mut().with_reserved().set_value("b2o", &content).unwrap();
                parts.put_schunk("/_cols/b", schunk);
            },
            ErrorKind::Unsupported,
        ),
        (
            "a character that there is not",
            |parts| {
                b(parts, "string");
                let codes = [65u32, 0xd800, 66, 67].map(u32::to_le_bytes).concat();
                let text =
                    NDArray::builder().dtype("<U1", 4).from_slice(RawItems(&codes), [4]).unwrap();
                parts.put("/_cols/b", text);
                // The second row is dead.
                parts.put("/_valid_rows", array(&[true; 4], 2));
            },
            ErrorKind::InvalidData,
        ),
        (
            "marks of another type",
            |parts| {
                parts.column(json!({"name": "b", "kind": "int8", "null_storage": "mask"}));
                parts.put("/_cols/b", array(&[1i8, 2, 3, 4], 2));
                parts.put("/_cols/b.notnull", array(&[1u8; 4], 2));
            },
            ErrorKind::InvalidData,
        ),
        (
            "less marks",
            |parts| {
                parts.column(json!({"name": "b", "kind": "int8", "null_storage": "mask"}));
                parts.put("/_cols/b", array(&[1i8, 2, 3, 4], 2));
                parts.put("/_cols/b.notnull", array(&[true; 3], 2));
            },
            ErrorKind::InvalidData,
        ),
        ("a code beyond the texts", |parts| words(parts, &[0, 0, 1, 2]), ErrorKind::InvalidData),
        ("a code below them", |parts| words(parts, &[0, 0, 1, -2]), ErrorKind::InvalidData),
        (
            "a number among the texts",
            |parts| {
                words(parts, &[0, 0, 1, 1]);
                parts.put_schunk("/_cols/b_dict", batches(&["a".into(), 7.into()], 2));
            },
            ErrorKind::InvalidData,
        ),
        (
            "places that fall",
            |parts| texts(parts, &[0, 1, 3, 2, 4], b"abcd"),
            ErrorKind::InvalidData,
        ),
        ("places below", |parts| texts(parts, &[-1, 1, 2, 3, 4], b"abcd"), ErrorKind::InvalidData),
        ("places beyond", |parts| texts(parts, &[0, 1, 2, 3, 5], b"abcd"), ErrorKind::InvalidData),
        ("less places", |parts| texts(parts, &[0, 1, 2, 3], b"abcd"), ErrorKind::InvalidData),
        ("not UTF-8", |parts| texts(parts, &[0, 1, 2, 3, 4], b"ab\xffd"), ErrorKind::InvalidData),
        (
            "less values",
            |parts| {
                b(parts, "object");
                parts.put_schunk("/_cols/b", batches(&[1.into(), 2.into(), 3.into()], 2));
            },
            ErrorKind::InvalidData,
        ),
        (
            "another number of values than is kept",
            |parts| {
                b(parts, "object");
                let mut values = batches(&[1.into(), 2.into(), 3.into(), 4.into()], 2);
                let lengths = Value::List(vec![3.into(), 1.into()]);
                let kept = Value::from([("batch_lengths", lengths)]);
                values.vlmeta_mut().set_value("_batch_array_metadata", &kept).unwrap();
                parts.put_schunk("/_cols/b", values);
            },
            ErrorKind::InvalidData,
        ),
    ];
    for (what, change, expected) in cases {
        let mut parts = good();
        change(&mut parts);
        let table = parts.table();
        let error = table.values("b", ..).unwrap_err();
        assert_eq!(error.kind(), expected, "{what}: {error}");
        let nrows = table.nrows();
        assert_eq!(table.read::<i32>("a", ..).unwrap().len() as u64, nrows, "{what}");
        assert!(table.nulls("a", ..).unwrap().iter().all(|null| !null), "{what}");
    }
    // Existing rows are read although others are missing.
    let mut parts = good();
    b(&mut parts, "int8");
    parts.put("/_cols/b", array(&[1i8, 2, 3], 2));
    assert_eq!(parts.table().values("b", ..2).unwrap(), [1.into(), 3.into()]);
    let mut parts = good();
    words(&mut parts, &[0, 0, 1, 2]);
    assert_eq!(parts.table().texts("b", ..2).unwrap()[1].as_deref(), Some("b"));
    assert_eq!(parts.table().nulls("b", ..).unwrap(), [false; 3]);
    // Faults in dead rows have no effect.
    let mut parts = good();
    texts(&mut parts, &[0, 1, 2, 3, 4], b"a\xffcd");
    assert_eq!(parts.table().values("b", ..).unwrap(), ["a".into(), "c".into(), "d".into()]);
    // Texts are requested from a column of other values.
    let mut parts = good();
    b(&mut parts, "vlstring");
    parts.put_schunk("/_cols/b", batches(&[1.into(), 2.into(), 3.into(), 4.into()], 2));
    assert_eq!(parts.table().values("b", 2..).unwrap(), [4.into()]);
    assert_eq!(parts.table().texts("b", 2..).unwrap_err().kind(), ErrorKind::InvalidData);
}

fn b(parts: &mut Parts, kind: &str) {
    parts.column(json!({"name": "b", "kind": kind}));
}

fn words(parts: &mut Parts, codes: &[i32]) {
    b(parts, "dictionary");
    parts.put("/_cols/b", array(codes, 2));
    parts.put_schunk("/_cols/b_dict", batches(&["a".into(), "b".into()], 2));
}

fn texts(parts: &mut Parts, ends: &[i64], bytes: &[u8]) {
    b(parts, "utf8");
    parts.put("/_cols/b", array(ends, 2));
    parts.put("/_cols/b.utf8", array(bytes, 2));
}

#[test]
fn what_is_no_table_is_not_opened() {
    let open = |leaves: &[(&str, SChunk)]| {
        let mut store = EmbedStore::in_memory().unwrap();
        for (key, schunk) in leaves {
            store.insert(key, schunk).unwrap();
        }
        let bytes = store.into_schunk().into_cframe().unwrap();
        CTable::from_cframe(bytes).map(|table| table.nrows()).map_err(|error| error.kind())
    };
    let marks = || array(&[true, false, true], 2).into_schunk();
    let good = || meta(r#"{"columns": []}"#);
    assert_eq!(open(&[("/_meta", good()), ("/_valid_rows", marks())]), Ok(2));
    let none = || SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    let cases = [
        (vec![], ErrorKind::TypeMismatch),
        (vec![("/_meta", none()), ("/_valid_rows", marks())], ErrorKind::TypeMismatch),
        (vec![("/_meta", good())], ErrorKind::InvalidData),
        (vec![("/_meta", good()), ("/_valid_rows", none())], ErrorKind::InvalidData),
        (
            vec![("/_meta", good()), ("/_valid_rows", array(&[1u8, 0], 2).into_schunk())],
            ErrorKind::InvalidData,
        ),
        (
            vec![
                ("/_meta", good()),
                ("/_valid_rows", NDArray::from_slice(&[true; 4], [2, 2]).unwrap().into_schunk()),
            ],
            ErrorKind::InvalidData,
        ),
        (vec![("/_meta", meta("{}")), ("/_valid_rows", marks())], ErrorKind::InvalidData),
        (
            vec![("/_meta", meta(r#"{"version": 4, "columns": []}"#)), ("/_valid_rows", marks())],
            ErrorKind::Unsupported,
        ),
    ];
    for (number, (leaves, kind)) in cases.into_iter().enumerate() {
        assert_eq!(open(&leaves), Err(kind), "case {number}");
    }
}

#[test]
fn rows_that_a_file_only_says_are_not_allocated() {
    const ROWS: u64 = 1 << 40;
    let special = |dtype: &str, item: &[u8]| {
        let builder = NDArray::builder().chunk_shape([1 << 30]).block_shape([1 << 20]);
        builder.dtype(dtype, item.len()).full(RawItems(item), [ROWS]).unwrap()
    };
    let mut parts = Parts::new(&[true], 1);
    parts.put("/_valid_rows", special("|b1", &[1]));
    parts.column(json!({"name": "n", "kind": "int8", "null_value": 3}));
    parts.put("/_cols/n", special("|i1", &[3]));
    parts.column(json!({"name": "m", "kind": "int8", "null_storage": "mask"}));
    parts.put("/_cols/m", special("|i1", &[3]));
    parts.put("/_cols/m.notnull", special("|b1", &[0]));
    // Each row is the same long text.
    parts.column(json!({"name": "w", "kind": "dictionary"}));
    parts.put(
        "/_cols/w",
        NDArray::builder()
            .chunk_shape([1 << 28])
            .block_shape([1 << 18])
            .dtype("<i4", [0; 4].len())
            .full(RawItems(&[0; 4]), [ROWS])
            .unwrap(),
    );
    parts.put_schunk("/_cols/w_dict", batches(&["x".repeat(1 << 20).into()], 1));
    let bytes = parts.bytes();
    assert!(bytes.len() < 1_000_000, "{}", bytes.len());

    let (table, _, held) = measure(|| CTable::from_cframe(bytes).unwrap());
    let table = table.unwrap();
    assert_eq!(table.nrows(), ROWS);
    assert!(held < 64 << 20, "opening held {held} bytes");
    let refused = |what: &str, call: &dyn Fn() -> blosc2::Result<()>| {
        let (result, _, held) = measure(call);
        let error = result.unwrap().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{what}: {error}");
        assert!(held < 1200 << 20, "{what} held {held} bytes");
    };
    refused("valid_rows", &|| table.valid_rows(..).map(drop));
    refused("read", &|| table.read::<i8>("n", ..).map(drop));
    refused("nulls by marks", &|| table.nulls("m", ..).map(drop));
    refused("nulls by a value", &|| table.nulls("n", ..).map(drop));
    refused("words", &|| table.texts("w", ..10_000).map(drop));
    let far = ROWS - 5..ROWS - 2;
    assert_eq!(table.valid_rows(far.clone()).unwrap(), [ROWS - 5, ROWS - 4, ROWS - 3]);
    assert_eq!(table.read::<i8>("n", far.clone()).unwrap(), [3; 3]);
    assert_eq!(table.nulls("n", far.clone()).unwrap(), [true; 3]);
    assert_eq!(table.nulls("m", far.clone()).unwrap(), [true; 3]);
    assert_eq!(table.texts("w", far).unwrap()[2].as_ref().map(String::len), Some(1 << 20));
}

#[test]
fn broken_bytes_are_errors_and_nothing_else() {
    let mut rng = Rng(11);
    let (parts, _) = sample(&mut rng, 300);
    let bytes = parts.bytes();
    let mut opened = 0;
    for _ in 0..400 {
        let mut broken = bytes.clone();
        for _ in 0..1 + rng.below(4) {
            let at = rng.below(broken.len() as u64) as usize;
            broken[at] = rng.next() as u8;
        }
        let Ok(table) = CTable::from_cframe(broken) else { continue };
        opened += 1;
        for column in table.columns() {
            let name = column.name();
            let values = table.values(name, ..).map(|values| values.len() as u64);
            let nulls = table.nulls(name, ..).map(|nulls| nulls.len() as u64);
            for len in [values, nulls].into_iter().flatten() {
                assert_eq!(len, table.nrows());
            }
            let _ = table.attributes();
            let _ = table.texts(name, ..);
        }
    }
    assert!(opened > 50, "{opened}");
}

#[test]
fn items_of_the_other_byte_order_have_their_values() {
    let mut parts = Parts::new(&[true; 3], 3);
    parts.column(json!({"name": "f", "kind": "float32", "null_value": 0.1}));
    let floats = [0.1f32, 2.5, -0.0].map(f32::to_be_bytes).concat();
    parts.put(
        "/_cols/f",
        NDArray::builder().dtype(">f4", 4).from_slice(RawItems(&floats), [3]).unwrap(),
    );
    parts.column(json!({"name": "i", "kind": "int16"}));
    let ints = [-2i16, 258, 0].map(i16::to_be_bytes).concat();
    parts.put(
        "/_cols/i",
        NDArray::builder().dtype(">i2", 2).from_slice(RawItems(&ints), [3]).unwrap(),
    );
    parts.column(json!({"name": "s", "kind": "string", "max_length": 2}));
    let chars = "a\0éßx\0".chars().flat_map(|char| u32::from(char).to_be_bytes());
    let chars: Vec<u8> = chars.collect();
    parts.put(
        "/_cols/s",
        NDArray::builder().dtype(">U2", 8).from_slice(RawItems(&chars), [3]).unwrap(),
    );
    let table = parts.table();
    assert_eq!(table.values("f", ..).unwrap(), [Value::None, 2.5.into(), (-0.0).into()]);
    assert_eq!(table.values("i", ..).unwrap(), [(-2).into(), 258.into(), 0.into()]);
    assert_eq!(table.values("s", ..).unwrap(), ["a".into(), "éß".into(), "x".into()]);
    assert_eq!(table.array("s").unwrap().dtype(), Some(&Dtype::parse(">U2").unwrap()));
}

#[test]
fn threads_share_a_table() {
    let (parts, _) = sample(&mut Rng(5), 2000);
    let table = parts.table();
    let alone: Vec<Vec<Value>> =
        table.columns().iter().map(|column| table.values(column.name(), ..).unwrap()).collect();
    // Another table, whose columns are not opened yet.
    let table = parts.table();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for (column, alone) in table.columns().iter().zip(&alone) {
                    assert_eq!(&table.values(column.name(), ..).unwrap(), alone);
                }
            });
        }
    });
}
