//! The engine in pure Rust reads what the C library reads: the same keys, kinds, rows, values and kinds of errors.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{CParams, Codec, Filter, NDArray, OpenOptions, SChunk, Value};
use blosc2_store::{
    BatchArray, CTable, Data, EmbedStore, ItemKind, ItemType, ListArray, ObjectArray, Schema,
    Tensor, TimeUnit, TreeStore,
};

mod c {
    use std::fmt::Debug;
    use std::path::Path;

    use blosc2_store as store;

    include!("dump.rs");
}

mod rust {
    use std::fmt::Debug;
    use std::path::Path;

    use blosc2_pure_store as store;

    include!("dump.rs");
}

/// Compares what both engines read of a container. Returns the number of compared lines.
#[track_caller]
pub(crate) fn assert_same(path: &Path) -> usize {
    let found = compared(path, &c::of_path(path), &rust::of_path(path));
    if path.is_file() {
        let bytes = fs::read(path).unwrap();
        compared(path, &c::of_bytes(bytes.clone()), &rust::of_bytes(bytes));
    }
    found
}

#[track_caller]
fn compared(path: &Path, expected: &[String], found: &[String]) -> usize {
    let short = |line: &str| line.chars().take(400).collect::<String>();
    for (line, (expected, found)) in expected.iter().zip(found).enumerate() {
        if expected != found {
            let (expected, found) = (short(expected), short(found));
            panic!("{path:?}, line {line}:\n C:    {expected}\n Rust: {found}");
        }
    }
    assert_eq!(expected.len(), found.len(), "{path:?}");
    expected.len()
}

/// The files of Python in this repository: arrays, super-chunks, tensors, stores, tables, carriers.
fn of_python() -> Vec<PathBuf> {
    let root = blosc2_testing::root().join("tests/python_files");
    let folders = ["2.7.1", "4.14.1", "upstream/legacy_lazyexpr_v1", "upstream/legacy_lazyudf_v1"];
    let entries = folders.iter().flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|ending| ending != "json")).collect()
}

#[test]
fn files_of_python_are_read_alike() {
    let paths = of_python();
    assert!(paths.len() > 100, "{} files", paths.len());
    let lines: usize = paths.iter().map(|path| assert_same(path)).sum();
    assert!(lines > 3000, "{lines} lines");
}

/// The value of a column in a row.
type ValueOf = fn(i64) -> Value;

/// All kinds of columns that are not made of other columns, with a value for a row.
fn columns() -> Vec<(&'static str, ItemType, ValueOf)> {
    let list = |item: ItemKind| ItemKind::List(Box::new(item.into()));
    let fields = vec![("x".to_owned(), ItemKind::Int32.into())];
    let moment = ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: None };
    let int: fn(i64) -> Value = |row| (row % 100).into();
    let float: fn(i64) -> Value = |row| (row as f64 / 4.0).into();
    let text: fn(i64) -> Value = |row| format!("é{}", row % 37).into();
    let bytes: fn(i64) -> Value = |row| Value::Bytes(vec![(row % 200) as u8 + 1; 3]);
    vec![
        ("i1", ItemKind::Int8.into(), int),
        ("i2", ItemKind::Int16.into(), int),
        ("i4", ItemKind::Int32.into(), int),
        ("i8", ItemKind::Int64.into(), |row| row.into()),
        ("u1", ItemKind::UInt8.into(), int),
        ("u2", ItemKind::UInt16.into(), int),
        ("u4", ItemKind::UInt32.into(), int),
        ("u8", ItemKind::UInt64.into(), int),
        ("f4", ItemKind::Float32.into(), float),
        ("f8", ItemKind::Float64.into(), float),
        ("c16", ItemKind::Complex128.into(), |row| Value::Complex { re: row as f64, im: 0.5 }),
        ("flag", ItemKind::Bool.into(), |row| (row % 3 == 0).into()),
        ("moment", moment.into(), |row| (row * 1000).into()),
        ("string", ItemKind::String { max_length: 8 }.into(), text),
        ("bytes", ItemKind::Bytes { max_length: 8 }.into(), bytes),
        ("utf8", ItemKind::Utf8.into(), text),
        ("word", ItemKind::Dictionary { ordered: false }.into(), text),
        ("vltext", ItemKind::VlString.into(), text),
        ("vlbytes", ItemKind::VlBytes.into(), bytes),
        ("list", list(ItemKind::Int64).into(), |row| {
            Value::List(vec![row.into(); row as usize % 4])
        }),
        ("struct", ItemKind::Struct(fields).into(), |row| {
            Value::from([("x", (row % 1000).into())])
        }),
        ("object", ItemKind::Object.into(), |row| Value::List(vec![row.into(), "x".into()])),
    ]
}

fn fill(table: &mut CTable, nullable: bool, rows: i64) {
    let data = columns().into_iter().map(|(name, _, value)| {
        let is_null = |row: i64| nullable && row % 11 == 5;
        let values: Vec<Value> =
            (0..rows).map(|row| if is_null(row) { Value::None } else { value(row) }).collect();
        (name, Data::values(values))
    });
    table.append(data.collect::<Vec<_>>()).unwrap();
}

fn schema(nullable: bool) -> Schema {
    let columns = columns().into_iter();
    columns.fold(Schema::new().expected_rows(20_000), |schema, (name, spec, _)| {
        schema.column(name, if nullable { spec.nullable() } else { spec })
    })
}

#[test]
fn tables_with_columns_of_all_kinds_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    for nullable in [false, true] {
        for ending in ["b2d", "b2z"] {
            let path = folder.path().join(format!("table_{nullable}.{ending}"));
            let mut table = CTable::create(&path, &schema(nullable)).unwrap();
            fill(&mut table, nullable, 5000);
            table.delete_rows((0..5000).filter(|row| row % 7 == 2).collect::<Vec<u64>>()).unwrap();
            table.finish().unwrap();
            assert_same(&path);
        }
    }
    let mut table = CTable::in_memory(&schema(true)).unwrap();
    fill(&mut table, true, 300);
    let path = folder.path().join("table.b2e");
    fs::write(&path, table.to_cframe().unwrap()).unwrap();
    assert_same(&path);
    // A table beside other entries.
    let path = folder.path().join("tree.b2z");
    let mut store = TreeStore::create(&path).unwrap();
    let mut table = store.create_table("/group/table", &schema(false)).unwrap();
    fill(&mut table, false, 100);
    table.finish().unwrap();
    drop(table);
    store.insert("/array", NDArray::from_slice(&[1.5f32, 2.5], &[2]).unwrap().schunk()).unwrap();
    store.set_attribute("/group", "author", "me").unwrap();
    store.finish().unwrap();
    assert_same(&path);
}

#[test]
fn other_containers_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut objects = ObjectArray::create(path("objects.b2f")).unwrap();
    let mut batches = BatchArray::create(path("batches.b2b")).unwrap();
    let mut lists = ListArray::create(path("lists.b2b"), ItemKind::Int32, true).unwrap();
    for number in 0..300i32 {
        objects.append(&(number, "text")).unwrap();
        batches.append(&vec![number; 1 + number as usize % 5]).unwrap();
        lists
            .append(
                Some(&vec![number; number as usize % 6]).filter(|_| number % 9 > 0).map(|x| &x[..]),
            )
            .unwrap();
    }
    lists.flush().unwrap();
    let few = OpenOptions::new().create_new(true).open(path("few.b2b")).unwrap();
    let mut few = BatchArray::new_in(few, Some(3)).unwrap();
    few.append(&(0..1000).collect::<Vec<i32>>()).unwrap();
    Tensor::from_slice(&[1.5f64; 60], &[3, 20]).unwrap().save(path("tensor.bl2")).unwrap();
    let mut store = EmbedStore::create(path("store.b2e")).unwrap();
    store.insert("/a/objects", objects.schunk()).unwrap();
    store.insert("/batches", batches.schunk()).unwrap();
    let empty = SChunk::in_memory::<u16>(CParams::default()).unwrap();
    store.insert("/empty", &empty).unwrap();
    for name in ["objects.b2f", "batches.b2b", "lists.b2b", "few.b2b", "tensor.bl2", "store.b2e"] {
        assert_same(&path(name));
    }
}

/// Blocks are decoded with and without the rest of the chunk, which is read in parts if it is long.
#[test]
fn arrays_with_long_chunks_are_read_alike() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = blosc2_testing::Rng(7);
    let items: Vec<u32> = (0..240_000u32).map(|at| at / 3 + (rng.next() as u32 & 0xff00)).collect();
    for codec in [Codec::BloscLz, Codec::Lz4, Codec::Zstd, Codec::Zlib] {
        for filters in
            [vec![], vec![Filter::Shuffle], vec![Filter::Bitshuffle], vec![Filter::Delta]]
        {
            for level in [0, 5] {
                let params = CParams::new().codec(codec).level(level).filters(&filters);
                let name = format!("{codec:?}_{filters:?}_{level}.b2nd");
                let path = folder.path().join(name);
                let builder = NDArray::builder().cparams(&params);
                let builder = builder.chunk_shape([300, 400]).block_shape([30, 70]);
                builder.from_slice(&items, [400, 600]).unwrap().save(&path).unwrap();
                assert_same(&path);
            }
        }
    }
    let checked = OpenOptions::new().checksums(true);
    let builder = NDArray::builder().options(&checked).chunk_shape([300, 400]);
    let path = folder.path().join("checksums.b2nd");
    builder.from_slice(&items, [400, 600]).unwrap().save(&path).unwrap();
    assert_same(&path);
}
