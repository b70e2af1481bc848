//! Appenders of tables, compared with single appends; and what is left after errors, drops and deaths of the program.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use blosc2::user_defined::FilterBlock;
use blosc2::{CParams, ErrorKind, Filter, Threads, Value};
use blosc2_store::{CTable, Data, ItemKind, ItemType, Row, Schema, TableAppender, TreeStore};

use crate::common::{Rng, repeats};
use crate::table_model::Model;

/// Batches of any size, over the chunks at which rows are written.
#[test]
fn batches_of_any_size_are_appended() {
    let nullable = |kind| ItemType::from(kind).nullable();
    let word = || ItemKind::Dictionary { ordered: false };
    let schema = Schema::new()
        .column("n", ItemKind::Int64)
        .column("f", nullable(ItemKind::Float32))
        .column("word", nullable(word()))
        .column("coded", ItemType::from(word()).with("nullable", true).with("null_code", 1 << 20))
        .column("text", nullable(ItemKind::Utf8))
        .column("plain", ItemKind::Utf8)
        .column("default", ItemType::from(ItemKind::Int8).with("default", 7));
    let plain = |n: &i64| "é".repeat((n % 5) as usize) + &n.to_string();
    // Chunks of fewer rows than are written at once, and of more.
    for (seed, expected) in [1000u64, 100_000].into_iter().enumerate() {
        let mut rng = Rng(seed as u64);
        let mut table = CTable::in_memory(&schema.clone().expected_rows(expected)).unwrap();
        let mut rows = table.appender().unwrap();
        let (mut at, mut most_pending) = (0i64, 0);
        let sizes = [0, 1, 999, 70_000, 65_536, 3, 101_000, 1];
        for len in sizes {
            let part: Vec<i64> = (at..at + len).collect();
            at += len;
            let text = |n: &i64| (n % 7 != 3).then(|| format!("é{}", n % 1009));
            let nulls: Vec<bool> = part.iter().map(|n| n % 5 == 0).collect();
            let floats: Vec<f32> = part.iter().map(|n| *n as f32).collect();
            let has_nulls = rng.below(2) == 0;
            // Strings in the middle of other bytes.
            let (mut bytes, mut offsets) = (b"\xff".repeat(rng.below(3) as usize), Vec::new());
            offsets.push(bytes.len() as i64);
            for n in &part {
                bytes.extend_from_slice(plain(n).as_bytes());
                offsets.push(bytes.len() as i64);
            }
            bytes.extend_from_slice(&b"\xff".repeat(rng.below(3) as usize));
            let floats = Data::items(&floats);
            let cells = [
                ("n", Data::items(&part)),
                ("f", if has_nulls { floats.nulls(nulls) } else { floats }),
                ("word", Data::texts(part.iter().map(text))),
                ("coded", Data::texts(part.iter().map(text))),
                ("text", Data::texts(part.iter().map(text))),
                ("plain", Data::offsets(offsets, bytes)),
            ];
            rows.append(cells).unwrap();
            most_pending = most_pending.max(rows.pending());
            assert_eq!(rows.table().nrows() + rows.pending(), at as u64);
            if len == 65_536 {
                // Marks of nulls are stored if they are needed.
                rows.flush().unwrap();
                assert_eq!((rows.pending(), rows.table().nrows()), (0, at as u64));
            }
        }
        assert!(most_pending < (expected.max(65_536) + 65_536), "{most_pending}");
        rows.finish().unwrap();
        assert_eq!(table.nrows(), at as u64);
        let all: Vec<i64> = (0..at).collect();
        let texts: Vec<_> =
            all.iter().map(|n| (n % 7 != 3).then(|| format!("é{}", n % 1009))).collect();
        assert_eq!(table.read::<i64>("n", ..).unwrap(), all);
        for name in ["word", "coded", "text"] {
            assert_eq!(table.texts(name, ..).unwrap(), texts, "{name}");
        }
        let plains: Vec<_> = all.iter().map(plain).map(Some).collect();
        assert_eq!(table.texts("plain", ..).unwrap(), plains);
        assert_eq!(table.read::<i8>("default", ..).unwrap(), vec![7; all.len()]);
        let floats = table.values("f", ..).unwrap();
        let is_number = |(n, value): (&i64, &Value)| match value {
            Value::None => n % 5 == 0,
            value => *value == (*n as f32).into(),
        };
        assert!(all.iter().zip(&floats).all(is_number));
    }
}

/// All kinds of columns.
#[test]
fn appenders_do_what_appends_do() {
    for seed in 0..repeats(60) {
        let mut rng = Rng(seed as u64);
        let (mut model, schema) = Model::new(&mut rng);
        let mut table = CTable::in_memory(&schema).unwrap();
        model.change(&mut table, &mut rng);
        let mut rows = table.into_appender().unwrap();
        for _ in 0..5 {
            model.append_to(&mut rows, &mut rng);
        }
        if seed % 2 == 0 {
            rows.flush().unwrap();
            model.append_to(&mut rows, &mut rng);
        }
        let mut table = rows.finish().unwrap();
        model.check(&table, &format!("seed {seed}"));
        model.change(&mut table, &mut rng);
        model.check(&table, &format!("seed {seed}"));
    }
}

#[derive(Row, Debug, Clone, PartialEq)]
struct Point {
    x: i64,
    name: String,
}

fn point(x: i64) -> Point {
    Point { x, name: format!("point {x}") }
}

#[test]
fn errors_keep_the_rows_that_were_collected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let table = CTable::create(&path, &Point::schema()).unwrap();
    let mut rows = table.into_appender().unwrap();
    rows.append_rows(&[point(1), point(2)]).unwrap();
    // A cell, a length, and a missing column.
    let name = || ("name", Data::texts([Some("a")]));
    let error = rows.append([("x", Data::items(&[1i32])), name()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    let error = rows.append([("x", Data::items(&[1i64, 2])), name()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = rows.append([name()]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(rows.pending(), 2);

    // A write fails: the file was removed.
    rows.flush().unwrap();
    rows.append_rows(&[point(3)]).unwrap();
    std::fs::remove_file(path.join("_cols/x.b2nd")).unwrap();
    let error = rows.flush().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let many: Vec<Point> = (0..1 << 20).map(|x| Point { x, name: String::new() }).collect();
    let error = rows.append_rows(&many).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert_eq!((rows.pending(), rows.table().nrows()), (1, 2));
    assert_eq!(rows.finish().unwrap_err().kind(), ErrorKind::NotFound);

    let path = folder.path().join("other.b2d");
    CTable::create(&path, &Point::schema()).unwrap().finish().unwrap();
    let table = CTable::open(&path).unwrap();
    let error = table.into_appender().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
}

/// A code that stands for null cannot be that of a string. This is an error of the call that passes the string.
#[test]
fn strings_with_the_null_code_are_refused_when_they_are_appended() {
    let word = ItemType::from(ItemKind::Dictionary { ordered: false });
    let schema = Schema::new().column("word", word.with("nullable", true).with("null_code", 3));
    let mut table = CTable::in_memory(&schema).unwrap();
    let mut rows = table.appender().unwrap();
    let texts =
        |texts: &[&'static str]| [("word", Data::texts(texts.iter().map(|text| Some(*text))))];
    for text in ["a", "b", "a", "b", "c", "a"] {
        rows.append(texts(&[text])).unwrap();
    }
    for more in [&["d"][..], &["c", "d"], &["e"]] {
        let error = rows.append(texts(more)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    rows.append([("word", Data::texts([None::<&str>]))]).unwrap();
    rows.append(texts(&["c"])).unwrap();
    rows.finish().unwrap();
    let expected = ["a", "b", "a", "b", "c", "a"].map(|text| Some(text.to_owned()));
    let expected = [&expected[..], &[None, Some("c".to_owned())]].concat();
    assert_eq!(table.texts("word", ..).unwrap(), expected);
}

#[test]
fn a_drop_writes_the_rows_and_a_death_loses_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let open = || CTable::open_rw(&path).unwrap();
    let stored = || CTable::open(&path).unwrap().rows::<Point>(..).unwrap();
    let mut rows: TableAppender =
        CTable::create(&path, &Point::schema()).unwrap().into_appender().unwrap();
    rows.append_rows(&[point(1)]).unwrap();
    assert!(stored().is_empty());
    drop(rows);
    assert_eq!(stored(), [point(1)]);

    let mut rows = open().into_appender().unwrap();
    rows.append_rows(&[point(2)]).unwrap();
    drop(rows.into_inner());
    assert_eq!(stored(), [point(1)]);

    // As if the program died: nothing is dropped.
    let copy = folder.path().join("copy.b2d");
    let mut rows = open().into_appender().unwrap();
    rows.append_rows(&[point(2)]).unwrap();
    rows.flush().unwrap();
    rows.append_rows(&[point(3)]).unwrap();
    std::fs::create_dir_all(copy.join("_cols")).unwrap();
    for name in [
        "embed.b2e",
        "_meta.b2f",
        "_valid_rows.b2nd",
        "_cols/x.b2nd",
        "_cols/name.b2nd",
        "_cols/name.utf8.b2nd",
    ] {
        std::fs::copy(path.join(name), copy.join(name)).unwrap();
    }
    assert_eq!(CTable::open(&copy).unwrap().rows::<Point>(..).unwrap(), [1, 2].map(point));
    drop(rows);
    assert_eq!(stored(), [1, 2, 3].map(point));

    // A table in a store.
    let path = folder.path().join("s.b2z");
    let mut store = TreeStore::create(&path).unwrap();
    let mut table = store.create_table("/t", &Point::schema()).unwrap();
    let mut rows = table.appender().unwrap();
    rows.append_rows(&[point(5)]).unwrap();
    rows.finish().unwrap();
    table.finish().unwrap();
    drop(table);
    store.finish().unwrap();
    let blosc2_store::Object::CTable(table) = TreeStore::open(&path).unwrap().get("/t").unwrap()
    else {
        panic!("it is a table")
    };
    assert_eq!(table.rows::<Point>(..).unwrap(), [point(5)]);
}

/// Several threads write the same cells as one thread. If the write of a column fails, no row is appended, and the call can
/// be repeated.
#[test]
fn columns_are_written_on_several_threads() {
    let fails = Arc::new(AtomicU64::new(0));
    let forward = {
        let fails = Arc::clone(&fails);
        move |block: &mut FilterBlock<'_>| {
            let input = block.input();
            block.output().copy_from_slice(input);
            match fails.load(Ordering::Relaxed) {
                0 => Ok(()),
                _ => Err("told to fail".into()),
            }
        }
    };
    let backward = |block: &mut FilterBlock<'_>| {
        let input = block.input();
        block.output().copy_from_slice(input);
        Ok(())
    };
    let filter = Filter::register(232, "fails", (forward, backward)).unwrap();
    let kind = |name: &str| match name {
        "text" => ItemKind::Utf8,
        "word" => ItemKind::Dictionary { ordered: false },
        "long" => ItemKind::VlString,
        _ => ItemKind::Int64,
    };
    let names = ["a", "b", "text", "c", "word", "long"];
    let schema = names.iter().fold(Schema::new(), |schema, name| match *name {
        "b" | "c" => {
            let cparams = CParams::new().filters(&[filter]);
            schema.column(*name, ItemType::from(kind(name)).cparams(cparams).nullable())
        }
        _ => schema.column(*name, kind(name)),
    });
    let numbers: Vec<i64> = (0..70_000).map(|row| row * 7919 % 1009).collect();
    let texts: Vec<String> = numbers.iter().map(|number| format!("text {number}")).collect();
    let columns = || {
        names.map(|name| match kind(name) {
            ItemKind::Int64 => (name, Data::items(&numbers)),
            _ => (name, Data::texts(texts.iter().map(Some))),
        })
    };
    for threads in [1, 2, 16] {
        let mut table = CTable::in_memory(&schema).unwrap();
        table.set_threads(threads).unwrap();
        table.append(columns()).unwrap();
        fails.store(1, Ordering::Relaxed);
        let error = table.append(columns()).unwrap_err();
        fails.store(0, Ordering::Relaxed);
        assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
        assert_eq!(table.nrows(), numbers.len() as u64);
        table.append(columns()).unwrap();
        let mut rows = table.appender().unwrap();
        (0..3).for_each(|_| rows.append(columns()).unwrap());
        rows.finish().unwrap();
        let table = CTable::from_cframe(table.to_cframe().unwrap()).unwrap();
        for name in names {
            match kind(name) {
                ItemKind::Int64 => {
                    assert!(table.read::<i64>(name, ..).unwrap() == numbers.repeat(5), "{name}");
                }
                _ => {
                    let found = table.texts(name, ..).unwrap();
                    let expected = texts.iter().cycle().take(5 * texts.len());
                    assert!(found.iter().flatten().eq(expected), "{name}");
                }
            }
        }
    }
}

/// A filter that appends to a table uses one thread, so that the limit on nested calls holds.
#[test]
fn nested_appends_are_limited() {
    fn append(filter: Filter) -> blosc2::Result<()> {
        let column = || ItemType::from(ItemKind::Int64).cparams(CParams::new().filters(&[filter]));
        let schema = Schema::new().column("a", column()).column("b", column());
        let mut table = CTable::in_memory(&schema)?;
        table.set_threads(2)?;
        let numbers = vec![1i64; 70_000];
        table.append(["a", "b"].map(|name| (name, Data::items(&numbers))))
    }
    static CALLS: AtomicU64 = AtomicU64::new(0);
    static FILTER: OnceLock<Filter> = OnceLock::new();
    let forward = |block: &mut FilterBlock<'_>| {
        CALLS.fetch_add(1, Ordering::Relaxed);
        assert_eq!(Threads::new(2).available(), 1);
        let input = block.input();
        block.output().copy_from_slice(input);
        append(*FILTER.get().unwrap()).map_err(Into::into)
    };
    let backward = |_: &mut FilterBlock<'_>| Ok(());
    let filter = Filter::register(233, "nested", (forward, backward)).unwrap();
    FILTER.set(filter).unwrap();
    let error = append(filter).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
    // The first append has two columns, each with two threads.
    assert!(CALLS.load(Ordering::Relaxed) <= 4 * 33, "{CALLS:?}");
}
