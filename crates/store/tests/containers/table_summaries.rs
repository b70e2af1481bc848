//! Summaries of columns (Python: SUMMARY indexes): they are true, are used, and are never used when they are outdated.

use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::common::{Rng, repeats, run_python};
use crate::python_tables::PRELUDE;
use crate::table_model::Model;
use blosc2::storage::ReadAt;
use blosc2::{Dtype, NDArray, OpenOptions, RawItems, SChunk, Value};
use blosc2_store::{CTable, Column, Data, ItemKind, ItemType, Object, Schema, TimeUnit, TreeStore};

/// Rows of many blocks of the default size.
const MANY: u64 = 4_000_000;

/// Whether Python writes a summary of a column.
fn is_summarized(column: &Column) -> bool {
    use ItemKind::*;
    matches!(
        column.kind(),
        Int8 | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Float32
            | Float64
            | Bool
            | Timestamp { .. }
    )
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value).filter(|value| !value.is_nan()),
        _ => None,
    }
}

/// Checks the summary of a column against its rows. Returns whether there is one.
fn check_summary(table: &CTable, name: &str, what: &str) -> bool {
    let Some(summary) = table.summary(name).unwrap() else { return false };
    let values = table.values(name, ..).unwrap();
    let (mut row, mut place) = (0, 0);
    for segment in summary.segments() {
        assert_eq!((segment.rows().start, segment.places().start), (row, place), "{what}, {name}");
        (row, place) = (segment.rows().end, segment.places().end);
        for value in &values[segment.rows().start as usize..segment.rows().end as usize] {
            let what = format!("{what}, {name}, {value:?} in {segment:?}");
            if *value == Value::None {
                continue;
            }
            assert!(!segment.is_null(), "{what}");
            let Some(value) = number(value) else {
                assert!(segment.has_nan(), "{what}");
                continue;
            };
            let (least, greatest) = segment.bounds().unwrap_or_else(|| panic!("{what}"));
            let bounds = number(least).unwrap()..=number(greatest).unwrap();
            assert!(bounds.contains(&value), "{what}");
        }
    }
    assert_eq!(row, table.nrows(), "{what}, {name}");
    true
}

/// Checks that filters find the same rows with and without summaries.
fn check_filters(table: &CTable, name: &str, rng: &mut Rng, what: &str) {
    macro_rules! check {
        ($type:ty) => {{
            let items = table.read::<$type>(name, ..).unwrap();
            for _ in 0..2 {
                let mut item = || match items.len() as u64 {
                    0 => <$type>::default(),
                    len => items[rng.below(len) as usize],
                };
                let (one, other) = (item(), item());
                let ranges = [
                    table.find_in::<$type>(name, one..other).unwrap(),
                    table.find_in::<$type>(name, one..=other).unwrap(),
                    table.find_in::<$type>(name, one..).unwrap(),
                    table.find_in::<$type>(name, ..one).unwrap(),
                    table.find_in::<$type>(name, ..).unwrap(),
                ];
                let all = [
                    table.find(name, |item: &$type| (one..other).contains(item)).unwrap(),
                    table.find(name, |item: &$type| (one..=other).contains(item)).unwrap(),
                    table.find(name, |item: &$type| (one..).contains(item)).unwrap(),
                    table.find(name, |item: &$type| (..one).contains(item)).unwrap(),
                    table.find(name, |_: &$type| true).unwrap(),
                ];
                assert_eq!(ranges, all, "{what}, {name}, {one:?} and {other:?}");
                let nulls = table.nulls(name, ..).unwrap();
                let live: Vec<u64> =
                    (0..).zip(nulls).filter(|(_, null)| !null).map(|(row, _)| row).collect();
                assert_eq!(all[4], live, "{what}, {name}");
            }
        }};
    }
    let column = table.column(name).unwrap();
    match table.array(name).unwrap().dtype_str().unwrap() {
        "|i1" | "i1" | "int8" => check!(i8),
        "<i2" => check!(i16),
        "<i4" => check!(i32),
        "<i8" => check!(i64),
        "|u1" | "u1" | "uint8" => check!(u8),
        "<u2" => check!(u16),
        "<u4" => check!(u32),
        "<u8" => check!(u64),
        "<f4" => check!(f32),
        "<f8" => check!(f64),
        "|b1" | "?" | "bool" => check!(bool),
        other => panic!("{other}, {column:?}"),
    }
}

/// Checks all columns of a table. If `finished`, each column of numbers must have a summary.
fn check_table(table: &CTable, rng: &mut Rng, finished: bool, what: &str) {
    for column in table.columns().iter().filter(|column| is_summarized(column)) {
        let name = column.name();
        check_filters(table, name, rng, what);
        let found = check_summary(table, name, what);
        // Python cannot store the index of such a name in a zip file.
        let expected = finished && table.nrows() > 0 && !name.contains('\\');
        assert!(found || !expected, "{what}: the column `{name}` has no summary");
    }
}

#[test]
fn summaries_are_true_after_any_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut changes = 0;
    for seed in 0.. {
        let mut rng = Rng(7000 + seed);
        let (mut model, schema) = Model::new(&mut rng);
        let path =
            folder.path().join(format!("t{seed}.b2{}", if seed % 3 == 0 { 'z' } else { 'd' }));
        let mut table = CTable::create(&path, &schema).unwrap();
        for step in 0..15 {
            model.change(&mut table, &mut rng);
            let what = format!("table {seed}, change {step}");
            check_table(&table, &mut rng, false, &what);
            changes += 1;
            if rng.below(3) > 0 {
                continue;
            }
            table.finish().unwrap();
            check_table(&table, &mut rng, true, &what);
            let mut reader = CTable::open(&path).unwrap();
            check_table(&reader, &mut rng, true, &what);
            model.change(&mut table, &mut rng);
            changes += 1;
            if path.extension() == Some("b2d".as_ref()) {
                // Never the summary of the old rows.
                reader.refresh().unwrap();
                check_table(&reader, &mut rng, false, &what);
            }
            if rng.below(2) == 0 {
                table.finish().unwrap();
                drop((table, reader));
                table = CTable::open_rw(&path).unwrap();
            }
        }
        model.check(&table, &format!("table {seed}"));
        if changes >= repeats(120) {
            break;
        }
    }
}

/// Creates a table in a directory with blocks of 10 rows.
fn table(path: &Path, schema: Schema) -> CTable {
    CTable::create(path, &schema.expected_rows(10)).unwrap()
}

type Found = (Range<u64>, Option<(Value, Value)>, bool, bool);

/// The bounds of the segments of a column, and whether they have NaN, and nulls only.
fn segments(table: &CTable, name: &str) -> Vec<Found> {
    let summary = table.summary(name).unwrap().unwrap();
    let segments = summary.segments().map(|segment| {
        let bounds = segment.bounds().map(|(least, greatest)| (least.clone(), greatest.clone()));
        (segment.rows(), bounds, segment.has_nan(), segment.is_null())
    });
    segments.collect()
}

#[test]
fn summaries_describe_items_of_all_types() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let nullable = |kind: ItemKind| ItemType::from(kind).nullable();
    let moment = ItemKind::Timestamp { unit: TimeUnit::Seconds, timezone: None };
    let schema = Schema::new()
        .column("i", ItemKind::Int64)
        .column("u", ItemKind::UInt64)
        .column("f", ItemKind::Float32)
        .column("b", ItemKind::Bool)
        .column("m", moment)
        .column("mask", nullable(ItemKind::Float64))
        .column("code", nullable(ItemKind::Int16).with("null_value", -1));
    let mut new = table(&path, schema);
    new.finish().unwrap();
    assert!(new.summary("i").unwrap().is_none(), "an empty table");
    assert!(new.find_in("i", 0i64..).unwrap().is_empty());

    let (nan, rows) = (f32::NAN, 25usize);
    let i: Vec<i64> = (0..25).map(|row| [i64::MIN, i64::MAX, row][row as usize % 3]).collect();
    let u: Vec<u64> = (0..25).map(|row| [u64::MAX, row, 1 << 63][row as usize % 3]).collect();
    let f: Vec<f32> =
        (0..25).map(|row| if row < 10 || row == 12 { nan } else { row as f32 }).collect();
    let b: Vec<bool> = (0..25).map(|row| row > 12).collect();
    let m: Vec<i64> = (0..25).map(|row| -row * 1000).collect();
    let mask: Vec<f64> = (0..25).map(|row| if row == 11 { f64::NAN } else { row.into() }).collect();
    let nulls: Vec<bool> = (0..25).map(|row| row < 10 || row == 19).collect();
    let code: Vec<i16> = (0..25).map(|row| if row < 20 { -1 } else { row }).collect();
    let rows_from = |start: usize, end: usize| {
        [
            ("i", Data::items(&i[start..end])),
            ("u", Data::items(&u[start..end])),
            ("f", Data::items(&f[start..end])),
            ("b", Data::items(&b[start..end])),
            ("m", Data::items(&m[start..end])),
            ("mask", Data::items(&mask[start..end]).nulls(&nulls[start..end])),
            ("code", Data::items(&code[start..end])),
        ]
    };
    new.append(rows_from(0, 1)).unwrap();
    new.finish().unwrap();
    let one = (Value::from(i64::MIN), Value::from(i64::MIN));
    assert_eq!(segments(&new, "i"), [(0..1, Some(one), false, false)]);
    new.append(rows_from(1, 25)).unwrap();
    assert!(new.summary("i").unwrap().is_none(), "stale until the next `finish`");
    new.finish().unwrap();
    for table in [new, CTable::open(&path).unwrap()] {
        let bounds = |name: &str| -> Vec<_> {
            segments(&table, name).into_iter().map(|(rows, bounds, ..)| (rows, bounds)).collect()
        };
        let some = |one: Value, other: Value| Some((one, other));
        let ints = || some(i64::MIN.into(), i64::MAX.into());
        assert_eq!(bounds("i"), [(0..10, ints()), (10..20, ints()), (20..25, ints())]);
        assert_eq!(bounds("u")[1], (10..20, some(10.into(), u64::MAX.into())));
        let f = segments(&table, "f");
        assert_eq!(f[0], (0..10, None, true, false));
        assert_eq!(f[1], (10..20, some(10.0.into(), 19.0.into()), true, false));
        assert_eq!(f[2], (20..25, some(20.0.into(), 24.0.into()), false, false));
        let no = || Value::Bool(false);
        let b = [(0..10, some(no(), no())), (10..20, some(no(), true.into()))];
        assert_eq!(bounds("b")[..2], b);
        assert_eq!(bounds("m")[2], (20..25, some((-24_000).into(), (-20_000).into())));
        let found = segments(&table, "mask");
        assert_eq!(found[0], (0..10, None, false, true));
        assert_eq!(found[1], (10..20, some(10.0.into(), 18.0.into()), true, false));
        let found = segments(&table, "code");
        assert_eq!([found[0].3, found[1].3, found[2].3], [true, true, false]);
        assert_eq!(found[2].1, some(20.into(), 24.into()));

        assert_eq!(table.find_in("u", 1u64 << 63..u64::MAX).unwrap().len(), 8);
        assert_eq!(table.find_in("f", 18.5f32..=20.0).unwrap(), [19, 20]);
        assert!(table.find_in("f", f32::NAN..).unwrap().is_empty());
        assert_eq!(table.find_in::<f32>("f", ..).unwrap().len(), rows);
        assert_eq!(table.find_in("mask", ..12.0f64).unwrap(), [10]);
        assert_eq!(table.find_in("code", -5i16..21).unwrap(), [20]);
        assert_eq!(table.find("code", |_: &i16| true).unwrap(), [20, 21, 22, 23, 24]);
        assert!(table.find_in("i", 0i32..).is_err() && table.find("code", |_: &u16| true).is_err());
    }
}

/// One part of an index or of its entry in the catalog is changed.
#[test]
fn indexes_that_do_not_describe_the_column_are_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let mut new = table(&path, Schema::new().column("n", ItemKind::Int32));
    new.append([("n", Data::items(&(0..35).collect::<Vec<i32>>()))]).unwrap();
    new.finish().unwrap();
    drop(new);
    let meta = path.join("_meta.b2f");
    let member = path.join("_indexes/n/summary.block.b2nd");
    let (old_meta, old_member) = (fs::read(&meta).unwrap(), fs::read(&member).unwrap());
    let is_used = |what: &str| {
        let table = CTable::open(&path).unwrap();
        let summary = table.summary("n").unwrap();
        if let Some(summary) = &summary {
            assert!(summary.segments().len() == 4, "{what}");
        }
        assert_eq!(table.find_in("n", 3..=4).unwrap().len(), 2, "{what}");
        assert_eq!(table.find_in("n", 33..).unwrap(), [33, 34], "{what}");
        summary.is_some()
    };
    assert!(is_used("the original"));

    let catalog = |change: &dyn Fn(&mut Value)| {
        fs::write(&meta, &old_meta).unwrap();
        let mut meta = SChunk::open_rw(&meta).unwrap();
        let mut catalog = meta.vlmeta().value("index_catalog").unwrap().unwrap();
        change(&mut catalog);
        meta.vlmeta_mut().set_value("index_catalog", &catalog).unwrap();
    };
    fn place<'a>(value: &'a mut Value, path: &str) -> &'a mut Value {
        path.split('/').fold(value, |value, name| {
            let Value::Map(pairs) = value else { panic!("{name}") };
            &mut pairs.iter_mut().find(|(key, _)| key.as_str() == Some(name)).unwrap().1
        })
    }
    let lengths = |lengths: &[u64]| Value::Tuple(lengths.iter().map(|len| (*len).into()).collect());
    let level = "n/levels/block";
    let cases: Vec<(String, Value)> = vec![
        ("n/stale".into(), true.into()),
        ("n/stale".into(), Value::None),
        ("n/built_value_epoch".into(), 7.into()),
        ("n/built_value_epoch".into(), Value::None),
        ("n/shape".into(), lengths(&[34])),
        ("n/shape".into(), lengths(&[35, 1])),
        ("n/chunks".into(), lengths(&[20])),
        ("n/blocks".into(), lengths(&[5])),
        ("n/dtype".into(), "<u4".into()),
        ("n/dtype".into(), "<i8".into()),
        ("n/version".into(), 2.into()),
        ("n/kind".into(), "full".into()),
        ("n/field".into(), "x".into()),
        ("n/target/source".into(), "expression".into()),
        (format!("{level}/segment_len"), 9.into()),
        (format!("{level}/segment_len"), 0.into()),
        (format!("{level}/nsegments"), 3.into()),
        (format!("{level}/path"), "_indexes/m/summary.block.b2nd".into()),
        (format!("{level}/path"), "../../etc/passwd".into()),
        (level.into(), Value::None),
        ("n/levels".into(), Value::List(Vec::new())),
        ("n".into(), 3.into()),
    ];
    for (name, value) in cases {
        catalog(&|catalog| *place(catalog, &name) = value.clone());
        assert!(!is_used(&name), "{name} = {value:?}");
    }
    catalog(&|catalog| *catalog = Value::List(Vec::new()));
    assert!(!is_used("no map"));
    catalog(&|_| {});
    assert!(is_used("an unchanged catalog"));
    SChunk::open_rw(&meta).unwrap().vlmeta_mut().set_value("value_epoch", &8).unwrap();
    assert!(!is_used("the epoch of the table"));
    fs::write(&meta, &old_meta).unwrap();

    let records = |change: &dyn Fn(&mut Vec<u8>)| {
        let array =
            OpenOptions::new().open(old_member.clone()).and_then(NDArray::from_schunk).unwrap();
        let mut bytes = array.read::<RawItems>(..).unwrap().0;
        assert_eq!(bytes.len(), 4 * 9);
        change(&mut bytes);
        bytes
    };
    let write = |dtype: &str, bytes: &[u8]| {
        let size = Dtype::parse(dtype).unwrap().size();
        let builder = NDArray::builder().dtype(dtype, size);
        let array = builder.from_slice(RawItems(bytes), [(bytes.len() / size) as u64]).unwrap();
        fs::write(&member, array.schunk().to_cframe().unwrap()).unwrap();
    };
    const DTYPE: &str = "[('min', '<i4'), ('max', '<i4'), ('flags', 'u1')]";
    write(DTYPE, &records(&|_| {}));
    assert!(is_used("the same records"));
    write(DTYPE, &records(&|bytes| bytes.truncate(27)));
    assert!(!is_used("three records"));
    write(DTYPE, &records(&|bytes| bytes[0] = 20));
    assert!(!is_used("a minimum above the maximum"));
    write(DTYPE, &records(&|bytes| bytes[17] = 8));
    assert!(!is_used("an unknown flag"));
    write(DTYPE, &records(&|bytes| bytes[17] = 4));
    assert!(!is_used("null only, with extremes"));
    for dtype in [
        "[('min', '<u4'), ('max', '<i4'), ('flags', 'u1')]",
        "[('max', '<i4'), ('min', '<i4'), ('flags', 'u1')]",
        "|V9",
    ] {
        write(dtype, &records(&|_| {}));
        assert!(!is_used(dtype));
    }
    fs::write(&member, b"no frame").unwrap();
    assert!(!is_used("no frame"));
    // Very many records in a few bytes.
    let builder = NDArray::builder().dtype(DTYPE, 9).chunk_shape([1 << 20]).block_shape([1 << 10]);
    let many = builder.special(blosc2::Special::Zeros, [1u64 << 40]).unwrap();
    fs::write(&member, many.schunk().to_cframe().unwrap()).unwrap();
    assert!(!is_used("many records"));
    fs::remove_file(&member).unwrap();
    assert!(!is_used("no member"));
    // Each byte of the index is wrong once.
    let mut rng = Rng(5);
    for at in 0..old_member.len() {
        let mut bytes = old_member.clone();
        bytes[at] ^= 1 << rng.below(8);
        fs::write(&member, bytes).unwrap();
        let table = CTable::open(&path).unwrap();
        table.summary("n").unwrap();
    }
}

#[test]
fn rows_of_segments_are_valid_rows() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let mut new = table(&path, Schema::new().column("n", ItemKind::Int32));
    new.append([("n", Data::items(&(0..40).collect::<Vec<i32>>()))]).unwrap();
    new.finish().unwrap();
    // All of one segment, and some of others.
    let dead = (0..40).filter(|row| (10..20).contains(row) || row % 7 == 0);
    new.delete_rows(dead.collect::<Vec<u64>>()).unwrap();
    let summary = new.summary("n").unwrap().expect("a deletion does not change items");
    let found: Vec<_> =
        summary.segments().map(|segment| (segment.rows(), segment.places())).collect();
    assert_eq!(found, [(0..8, 0..10), (8..8, 10..20), (8..16, 20..30), (16..25, 30..40)]);
    assert_eq!(summary.segment_len(), 10);
    assert_eq!(new.find_in("n", 5..25).unwrap(), [4, 5, 6, 7, 8, 9, 10, 11]);
    let found = new.find_in("n", 5..25).unwrap();
    assert_eq!(new.read::<i32>("n", found).unwrap(), [5, 6, 8, 9, 20, 22, 23, 24]);
    // Deleted last rows do not count after `finish`.
    new.delete_rows(20..).unwrap();
    new.finish().unwrap();
    check_table(&new, &mut Rng(1), true, "without the last rows");
    let (last, bounds, ..) = segments(&new, "n").pop().unwrap();
    assert_eq!((last, bounds.unwrap().1), (16..20, 33.into()));
}

#[test]
fn rows_that_replace_deleted_ones_count() {
    let folder = tempfile::tempdir().unwrap();
    let mut new = table(&folder.path().join("t.b2d"), Schema::new().column("n", ItemKind::Int32));
    new.append([("n", Data::items(&(0..40).collect::<Vec<i32>>()))]).unwrap();
    new.finish().unwrap();
    // In the room of the deleted rows.
    new.delete_rows(35..).unwrap();
    new.append([("n", Data::items(&[100, 101, 102, 103, 104]))]).unwrap();
    new.finish().unwrap();
    assert_eq!(segments(&new, "n")[3], (30..40, Some((30.into(), 104.into())), false, false));
    assert_eq!(new.find_in("n", 34..103).unwrap(), [34, 35, 36, 37]);
}

/// Replaces a column and the mask of valid rows by arrays of one chunk value, of a few hundred bytes.
fn replace_column(path: &Path, name: &str, rows: u64, chunk: u64, block: u64, value: i64) {
    let save = |array: NDArray, file: &str| {
        let file = path.join(file);
        fs::remove_file(&file).unwrap();
        array.save(file).unwrap();
    };
    let grid = || NDArray::builder().chunk_shape([chunk]).block_shape([block]);
    save(grid().full(value, [rows]).unwrap(), &format!("_cols/{name}.b2nd"));
    save(NDArray::builder().full(true, [rows]).unwrap(), "_valid_rows.b2nd");
}

/// A column of a few bytes can represent very many rows. Its summary requires neither their memory nor their time.
#[test]
fn summaries_of_hostile_columns_take_bounded_time_and_memory() {
    let folder = tempfile::tempdir().unwrap();
    const ROWS: u64 = 1 << 31;
    for (name, block, is_summarized) in [("plain", 1 << 20, true), ("tiny", 2, false)] {
        let path = folder.path().join(format!("{name}.b2d"));
        let mut new = table(&path, Schema::new().column("n", ItemKind::Int64));
        new.append([("n", Data::items(&[1i64]))]).unwrap();
        new.finish().unwrap();
        drop(new);
        fs::remove_dir_all(path.join("_indexes")).unwrap();
        replace_column(&path, "n", ROWS, 1 << 26, block, 7);
        let mut table = CTable::open_rw(&path).unwrap();
        assert_eq!(table.nrows(), ROWS);
        assert!(table.summary("n").unwrap().is_none());
        table.rebuild_summary("n").unwrap();
        table.delete_rows([3]).unwrap();
        table.finish().unwrap();
        let summary = table.summary("n").unwrap();
        assert_eq!(summary.is_some(), is_summarized, "{name}");
        for segment in summary.iter().flat_map(|summary| summary.segments()) {
            assert_eq!(segment.bounds(), Some((&7.into(), &7.into())));
        }
        if is_summarized {
            assert_eq!(table.find_in("n", 8i64..).unwrap(), [0u64; 0]);
        }
    }
}

/// Special chunks have the bounds of their value, with and without null rows.
#[test]
fn special_chunks_are_summarized_without_their_items() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let schema = Schema::new()
        .column("zero", ItemKind::Int32)
        .column("nan", ItemKind::Float64)
        .column("null", ItemType::from(ItemKind::Int16).nullable())
        .column("last", ItemKind::UInt8);
    let mut new = table(&path, schema);
    let last: Vec<u8> = (0..100).map(|row| u8::from(row == 99)).collect();
    new.append([
        ("zero", Data::items(&[0i32; 100])),
        ("nan", Data::items(&[f64::NAN; 100])),
        ("null", Data::items(&[5i16; 100]).nulls(vec![true; 100])),
        ("last", Data::items(&last)),
    ])
    .unwrap();
    for name in ["zero", "nan", "null", "last"] {
        // So that `finish` reads the items.
        new.rebuild_summary(name).unwrap();
    }
    new.finish().unwrap();
    check_table(&new, &mut Rng(3), true, "special chunks");
    assert_eq!(segments(&new, "zero")[0].1, Some((0.into(), 0.into())));
    assert_eq!(segments(&new, "nan")[9], (90..100, None, true, false));
    assert_eq!(segments(&new, "null")[9], (90..100, None, false, true));
    assert_eq!(segments(&new, "last")[9].1, Some((0.into(), 1.into())));
}

/// Damages the items of a stored column: the frame remains valid.
fn damage(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let chunk = SChunk::open(path).unwrap().chunk(0).unwrap();
    let at = bytes.windows(chunk.as_bytes().len()).position(|part| part == chunk.as_bytes());
    let (start, len) = (at.unwrap(), chunk.as_bytes().len());
    // After the header: the positions of the blocks.
    bytes[start + 32..start + len].fill(0xff);
    fs::write(path, bytes).unwrap();
}

/// A damaged column prevents neither a change of another column nor its summary.
#[test]
fn a_damaged_column_gets_no_summary() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["t.b2d", "t.b2z"] {
        let path = folder.path().join(name);
        let unpacked = folder.path().join("unpacked.b2d");
        let schema = Schema::new().column("a", ItemKind::Int64).column("b", ItemKind::Int64);
        let mut new = table(&unpacked, schema);
        let items: Vec<i64> = (0..10_000).collect();
        new.append([("a", Data::items(&items)), ("b", Data::items(&items))]).unwrap();
        new.finish().unwrap();
        drop(new);
        damage(&unpacked.join("_cols/a.b2nd"));
        match name {
            "t.b2d" => fs::rename(&unpacked, &path).unwrap(),
            _ => {
                let packed = TreeStore::open(&unpacked).unwrap();
                packed.pack(&path).unwrap();
                fs::remove_dir_all(&unpacked).unwrap();
            }
        }
        let mut table = CTable::open_rw(&path).unwrap();
        table.values("a", ..).unwrap_err();
        table.rebuild_summary("a").unwrap();
        table.update("b", [3], Data::items(&[-1i64])).unwrap();
        table.finish().unwrap();
        assert!(table.summary("a").unwrap().is_none(), "{name}");
        assert_eq!(table.find_in("b", ..0i64).unwrap(), [3], "{name}");
        assert!(table.summary("b").unwrap().is_some(), "{name}");
    }
}

/// Python can create an index with a segment for each chunk (`granularity="chunk"`). It keeps its level, also if a chunk has
/// one block.
#[test]
fn summaries_of_chunks_remain_summaries_of_chunks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let mut new = table(&path, Schema::new().column("n", ItemKind::Int32));
    new.append([("n", Data::items(&(0..35).collect::<Vec<i32>>()))]).unwrap();
    new.finish().unwrap();
    drop(new);
    let index = path.join("_indexes/n");
    fs::rename(index.join("summary.block.b2nd"), index.join("summary.chunk.b2nd")).unwrap();
    let mut meta = SChunk::open_rw(path.join("_meta.b2f")).unwrap();
    let mut catalog = meta.vlmeta().value("index_catalog").unwrap().unwrap();
    {
        let Value::Map(columns) = &mut catalog else { panic!("it is a map") };
        let Value::Map(entry) = &mut columns[0].1 else { panic!("it is a map") };
        let levels = entry.iter_mut().find(|(key, _)| key.as_str() == Some("levels")).unwrap();
        let Value::Map(levels) = &mut levels.1 else { panic!("it is a map") };
        levels[0].0 = "chunk".into();
        let Value::Map(level) = &mut levels[0].1 else { panic!("it is a map") };
        let place = level.iter_mut().find(|(key, _)| key.as_str() == Some("path")).unwrap();
        place.1 = "_indexes/n/summary.chunk.b2nd".into();
    }
    meta.vlmeta_mut().set_value("index_catalog", &catalog).unwrap();
    drop(meta);
    for value in [3i32, 300] {
        let mut table = CTable::open_rw(&path).unwrap();
        assert!(table.summary("n").unwrap().is_some());
        table.update("n", [3], Data::items(&[value])).unwrap();
        table.finish().unwrap();
        assert_eq!(segments(&table, "n")[0].1.as_ref().unwrap().1, Value::from(value.max(9)));
        let files = fs::read_dir(&index).unwrap().map(|file| file.unwrap().file_name());
        assert_eq!(files.collect::<Vec<_>>(), ["summary.chunk.b2nd"]);
    }
}

/// A handle that was dropped without `finish` leaves stale summaries.
#[test]
fn stale_summaries_are_rebuilt_on_request() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let mut new =
        table(&path, Schema::new().column("n", ItemKind::Int32).column("s", ItemKind::Utf8));
    let texts = || Data::texts(vec![Some("a"); 40]);
    new.append([("n", Data::items(&(0..40).collect::<Vec<i32>>())), ("s", texts())]).unwrap();
    new.finish().unwrap();
    new.update("n", [7], Data::items(&[70i32])).unwrap();
    drop(new);
    let mut table = CTable::open_rw(&path).unwrap();
    table.finish().unwrap();
    table.delete_rows([3]).unwrap();
    table.finish().unwrap();
    assert!(table.summary("n").unwrap().is_none());
    table.rebuild_summary("n").unwrap();
    table.rebuild_summary("s").unwrap_err();
    table.rebuild_summary("none").unwrap_err();
    table.finish().unwrap();
    assert_eq!(segments(&table, "n")[0].1, Some((0.into(), 70.into())));
    check_table(&table, &mut Rng(4), true, "rebuilt");

    // Unused rows that `finish` removes do not make the summary stale, also if nothing else changes.
    table.append([("n", Data::items(&[1i32])), ("s", Data::texts([Some("b")]))]).unwrap();
    table.finish().unwrap();
    table.delete_rows(30..).unwrap();
    drop(table);
    let mut table = CTable::open_rw(&path).unwrap();
    table.finish().unwrap();
    check_table(&table, &mut Rng(4), true, "trimmed by `finish`");
}

#[test]
fn other_tables_have_no_summaries() {
    let folder = tempfile::tempdir().unwrap();
    let schema = Schema::new()
        .column("n", ItemKind::Int8)
        .column("text", ItemKind::Utf8)
        .column("word", ItemKind::Dictionary { ordered: false })
        .column("c", ItemKind::Complex64);
    let row = || {
        [
            ("n", Data::items(&[1i8])),
            ("text", Data::texts([Some("a")])),
            ("word", Data::texts([Some("a")])),
            ("c", Data::values(vec![Value::Complex { re: 1.0, im: 0.0 }])),
        ]
    };
    let mut memory = CTable::in_memory(&schema).unwrap();
    memory.append(row()).unwrap();
    memory.finish().unwrap();
    assert!(memory.summary("n").unwrap().is_none());
    let frame = CTable::from_cframe(memory.to_cframe().unwrap()).unwrap();
    assert!(frame.summary("n").unwrap().is_none());
    assert_eq!(frame.find_in("n", 1i8..).unwrap(), [0]);

    let mut store = TreeStore::create(folder.path().join("s.b2z")).unwrap();
    let mut table = store.create_table("/a/b", &schema).unwrap();
    table.append(row()).unwrap();
    table.finish().unwrap();
    drop(table);
    store.finish().unwrap();
    let Object::CTable(table) = store.get("/a/b").unwrap() else { panic!("it is a table") };
    assert!(table.summary("n").unwrap().is_some());
    for name in ["text", "word", "c"] {
        assert!(table.summary(name).unwrap().is_none(), "{name}");
    }
    assert!(table.summary("none").is_err());
    assert_eq!(table.find_in("word", 0i32..).unwrap(), [0]);
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

/// Opens a table in a zip file, and checks what a filter of a sorted column reads that matches 1 % of `rows` rows. The
/// column takes `column` bytes.
fn check_bytes(path: &Path, name: &str, rows: u64, column: u64) {
    let count = Arc::new(Mutex::new(0));
    let source = Counted(fs::read(path).unwrap(), count.clone());
    let Object::CTable(table) = Object::open_source(source).unwrap() else {
        panic!("it is a table")
    };
    let items = table.read::<i64>(name, [0, rows / 2, rows / 2 + rows / 100]).unwrap();
    let taken = || std::mem::take(&mut *count.lock().unwrap());
    taken();
    let found = table.find_in(name, items[1]..items[2]).unwrap();
    let read = taken();
    assert!(found.into_iter().eq(rows / 2..rows / 2 + rows / 100), "{name}");
    assert!(read <= column * 3 / 100, "{name}: read {read} bytes of {column}");
    let found = table.find(name, |item: &i64| (items[1]..items[2]).contains(item)).unwrap();
    assert_eq!(found.len() as u64, rows / 100);
    let read = taken();
    assert!(read > column / 2, "without the summary, {name}: read {read} bytes of {column}");
    assert!(table.find_in(name, ..items[0]).unwrap().is_empty());
    let read = taken();
    assert!(read < 20_000, "no block matches, {name}: read {read} bytes");
}

#[test]
fn a_selective_filter_reads_a_few_blocks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let schema = Schema::new().column("n", ItemKind::Int64).expected_rows(MANY);
    let mut rng = Rng(9);
    // Sorted, and hardly compressible.
    let items: Vec<i64> =
        (0..MANY).map(|row| (row << 40) as i64 | rng.below(1 << 40) as i64).collect();
    let mut new = CTable::create(&path, &schema).unwrap();
    for part in items.chunks(600_000) {
        new.append([("n", Data::items(part))]).unwrap();
    }
    new.finish().unwrap();
    let count = new.summary("n").unwrap().unwrap().segments().len();
    assert!(count > 100, "{count} blocks");
    check_bytes(&path, "n", MANY, fs::metadata(&path).unwrap().len());
}

/// Python code that writes tables. Its columns have several types, and nulls in each form.
const WRITE: &str = r#"
import sys
@dataclasses.dataclass
class Row:
    n: int = b2.field(S.int64(), default=0)
    f: float = b2.field(S.float32(nullable=True), default=0.0)
    m: object = b2.field(S.timestamp(unit="ms", nullable=True), default=0)
    u: int = b2.field(S.uint8(nullable=True, null_value=255), default=0)
    b: bool = b2.field(S.bool(), default=False)
    code: int = b2.field(S.int32(nullable=True, null_value=-1), default=0)
    real: float = b2.field(S.float64(nullable=True, null_storage="sentinel"), default=0.0)
rng = np.random.default_rng(3)
def rows(count):
    k = np.arange(count)
    f = (k / 7).astype(np.float32)
    f[(k // 1000) % 5 == 1] = np.nan
    null = (k // 1000) % 4 == 2
    return dict(n=(k << 40) + rng.integers(0, 1 << 40, count), f=np.ma.masked_array(f, null), m=np.ma.masked_array(k * 1000, null).astype("datetime64[ms]"),
        u=np.where(null, 255, k // 5000 % 200).astype(np.uint8), b=k // 1000 % 9 == 0, code=np.where(null, -1, k).astype(np.int32),
        real=np.where(k % 3 == 0, np.nan, k / 3))
for name, count in [("many", int(sys.argv[1])), ("few", 2500), ("one", 1), ("none", 0)]:
    for ending in ["b2d", "b2z"]:
        table = b2.CTable(Row, urlpath=f"{name}.{ending}", mode="w", expected_size=max(count, 1) if count > 9999 else 300)
        if count:
            table.extend(rows(count), validate=False)
        if name == "few":
            delete(table, lambda row: 300 <= row < 650 or row % 11 == 0 or row > 2450)
        table.close()
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn summaries_of_python_are_used() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, WRITE].concat(), folder, &[&MANY.to_string()]);
    let mut rng = Rng(4);
    for name in ["few.b2d", "few.b2z", "one.b2d", "one.b2z", "none.b2d", "none.b2z", "many.b2z"] {
        let table = CTable::open(folder.join(name)).unwrap();
        for column in table.columns() {
            // Reading all values of a large table as such takes long.
            if !name.starts_with("many") || column.name() == "n" {
                assert!(check_summary(&table, column.name(), name), "{name}, {}", column.name());
            }
        }
        if !name.starts_with("many") {
            check_table(&table, &mut rng, true, name);
        }
    }
    let column = fs::metadata(folder.join("many.b2d/_cols/n.b2nd")).unwrap().len();
    check_bytes(&folder.join("many.b2z"), "n", MANY, column);
    let table = CTable::open(folder.join("few.b2d")).unwrap();
    let f: Vec<_> = table.summary("f").unwrap().unwrap().segments().collect();
    assert!(f.iter().any(|segment| segment.is_null()) && f.iter().any(|segment| segment.has_nan()));

    // Changes by Python make them stale.
    let extend = "table = b2.CTable.open('few.b2d', mode='a'); table.extend(dict(n=[-5], f=[1.5], m=[0], u=[3], b=[True], code=[9], real=[0.5])); table.close()";
    run_python(&[PRELUDE, extend].concat(), folder, &[]);
    let mut table = CTable::open_rw(folder.join("few.b2d")).unwrap();
    let last = table.nrows() - 1;
    assert!(table.summary("n").unwrap().is_none());
    assert_eq!(table.find_in("n", ..-4i64).unwrap(), [last]);
    check_table(&table, &mut rng, false, "after a change by Python");
    // They stay so until all items are written.
    table.update("n", [0], Data::items(&[-7i64])).unwrap();
    table.finish().unwrap();
    assert!(table.summary("n").unwrap().is_none());
    assert_eq!(table.find_in("n", ..-4i64).unwrap(), [0, last]);
    table.compact().unwrap();
    table.finish().unwrap();
    check_table(&table, &mut rng, true, "after `compact`");
}

/// Python code that checks that Python accepts the summaries of tables, that they are those that Python would write, and
/// that queries use them.
const CHECK: &str = r#"
import shutil, sys
from blosc2 import indexing
asked = []
original = indexing._candidate_units_from_summary
def candidates(summaries, op, value, dtype):
    found = original(summaries, op, value, dtype)
    asked.append((int(found.sum()), len(found)))
    return found
indexing._candidate_units_from_summary = candidates

def opened(path, mode):
    if path.startswith("tree"):
        store = b2.TreeStore(path, mode=mode)
        return store["/group/table"], store
    table = b2.CTable.open(path, mode=mode)
    return table, table

def plain(value):
    return {k: plain(v) for k, v in value.items()} if isinstance(value, dict) else list(map(plain, value)) if isinstance(value, (list, tuple)) else value

for path in sys.argv[2:]:
    table, owner = opened(path, "r")
    names = [index.col_name for index in table.indexes]
    expected = [name for name in table.col_names if table.column_schema(name).spec.to_metadata_dict()["kind"] not in ("utf8", "dictionary")]
    assert sorted(names) == sorted(expected), (path, names)
    assert not any(index.stale for index in table.indexes), path
    n = table["n"][:]
    middle = int(np.sort(n)[len(n) // 2])
    del asked[:]
    found = table.where(f"n == {middle}")
    assert found["n"][:].tolist() == n[n == middle].tolist(), path
    if sys.argv[1] == "used":
        assert asked and all(count < total for count, total in asked), (path, asked)
    for low in [int(n.min()), middle, int(n.max()) - 3, int(n.max()) + 1]:
        assert sorted(table.where(f"n >= {low}")["n"][:].tolist()) == sorted(n[n >= low].tolist()), (path, low)
    assert table["n"].min() == n.min() and table["n"].max() == n.max(), path
    for name in ["f", "code"]:
        values, null = np.ma.getdata(table[name][:]), np.array([bool(each) for each in table[name].is_null()])
        for low in [-5, 3, 1000]:
            with np.errstate(all="ignore"):
                count = int((~null & (values >= low)).sum())
            assert len(table.where(f"{name} >= {low}")) == count, (path, name, low)
    owner.close()
    # What Python writes instead.
    copy = "copy" + path[-4:] if not path.startswith("tree") else "tree_copy" + path[-4:]
    (shutil.copytree if path.endswith("d") else shutil.copy)(path, copy)
    table, owner = opened(copy, "a")
    catalog = table._storage.load_index_catalog()
    for name in names:
        read = lambda: b2.open(table._storage.load_index_catalog()[name]["levels"]["block"]["path"])
        old, ours = read()[:], plain(dict(catalog[name]))
        table.rebuild_index(name)
        new, theirs = read()[:], plain(dict(table._storage.load_index_catalog()[name]))
        assert old.dtype == new.dtype, (path, name, old.dtype, new.dtype)
        for field in ["min", "max", "flags"]:
            assert old[field].tolist() == new[field].tolist(), (path, name, field, old[field], new[field])
        assert ours == theirs, (path, name, ours, theirs)
    owner.close()
    shutil.rmtree(copy) if copy.endswith("d") else __import__("os").remove(copy)
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_uses_summaries_that_this_crate_writes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let nullable = |kind: ItemKind| ItemType::from(kind).nullable();
    let moment = ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: None };
    let schema = Schema::new()
        .column("n", ItemKind::Int64)
        .column("f", nullable(ItemKind::Float32))
        .column("m", nullable(moment))
        .column("u", ItemKind::UInt8)
        .column("b", ItemKind::Bool)
        .column("code", nullable(ItemKind::Int32).with("null_value", -1))
        .column("group.real", nullable(ItemKind::Float64).with("null_value", f64::NAN))
        .column("flag", nullable(ItemKind::Bool).with("null_value", 255))
        .column("text", ItemKind::Utf8)
        .expected_rows(MANY / 20);
    let rows = |range: Range<i64>| {
        let all: Vec<i64> = range.collect();
        let nulls: Vec<bool> = all.iter().map(|row| row / 9000 % 4 == 2).collect();
        let items = |item: &dyn Fn(i64) -> Value| {
            let cells = all
                .iter()
                .zip(&nulls)
                .map(|(row, null)| if *null { Value::None } else { item(*row) });
            Data::values(cells.collect::<Vec<_>>())
        };
        let f: Vec<f32> = all
            .iter()
            .map(|row| if row / 9000 % 5 == 1 { f32::NAN } else { *row as f32 })
            .collect();
        let bytes = |bytes: Vec<u8>, dtype: &str| Data::bytes(Dtype::parse(dtype).unwrap(), bytes);
        [
            ("n", bytes(all.iter().flat_map(|row| (row * 3).to_le_bytes()).collect(), "<i8")),
            (
                "f",
                bytes(f.iter().flat_map(|item| item.to_le_bytes()).collect(), "<f4")
                    .nulls(nulls.clone()),
            ),
            ("m", items(&|row| (row * 1000).into())),
            ("u", bytes(all.iter().map(|row| (row / 5000) as u8).collect(), "|u1")),
            ("b", bytes(all.iter().map(|row| u8::from(row / 1000 % 9 == 0)).collect(), "|b1")),
            ("code", items(&|row| row.into())),
            ("group.real", items(&|row| (row as f64 / 3.0).into())),
            ("flag", items(&|row| (row % 2 == 0).into())),
            ("text", Data::texts(all.iter().map(|row| Some(row.to_string())))),
        ]
    };
    let many = MANY as i64 / 20;
    let paths = ["r.b2d", "r.b2z", "tree.b2d", "tree.b2z"];
    let each = |mode: &str, change: &dyn Fn(&mut CTable)| {
        for path in paths {
            if path.starts_with("tree") {
                let path = folder.join(path);
                let mut store = match path.exists() {
                    true => TreeStore::open_rw(path).unwrap(),
                    false => TreeStore::create(path).unwrap(),
                };
                let mut table = match store.contains("/group/table") {
                    true => match store.edit("/group/table").unwrap() {
                        Object::CTable(table) => table,
                        other => panic!("{other:?}"),
                    },
                    false => store.create_table("/group/table", &schema).unwrap(),
                };
                change(&mut table);
                table.finish().unwrap();
                drop(table);
                store.finish().unwrap();
            } else {
                let path = folder.join(path);
                let mut table = match path.exists() {
                    true => CTable::open_rw(path).unwrap(),
                    false => CTable::create(path, &schema).unwrap(),
                };
                change(&mut table);
                table.finish().unwrap();
            }
        }
        run_python(&[PRELUDE, CHECK].concat(), folder, &[&[mode], &paths[..]].concat());
    };
    each("used", &|table| {
        for start in (0..many).step_by(30_000) {
            table.append(rows(start..many.min(start + 30_000))).unwrap();
        }
    });
    // A change of a few blocks, and of the last one.
    each("used", &|table| {
        table.update("n", 70_000..70_010, Data::items(&[1i64; 10])).unwrap();
        table.append(rows(many..many + 77)).unwrap();
    });
    each("used", &|table| {
        table.delete_rows(50_000..50_100).unwrap();
        table.delete_rows(table.nrows() - 30..).unwrap();
    });
    each("used", &|table| {
        table.drop_column("b").unwrap();
        table.rename_column("u", "small").unwrap();
        let cells: Vec<i16> = (0..table.nrows()).map(|row| row as i16).collect();
        table.add_column("b", ItemKind::Int16, Some(Data::items(&cells))).unwrap();
    });
    each("used", &|table| table.compact().unwrap());
    each("any", &|table| {
        table.delete_rows(1..).unwrap();
        table.compact().unwrap();
    });
}
