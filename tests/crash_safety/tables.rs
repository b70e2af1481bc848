//! Appends to tables: the number of commits, and what a crash leaves.

use std::collections::BTreeMap;
use std::fs;

use blosc2::{ErrorKind, Result, Value};
use blosc2_format::frame::journal::MARK_AT;
use blosc2_store::{CTable, Data, ItemKind, ItemType, Object, Schema, TreeStore};

use crate::calls::{Fault, Recorded, record};
use crate::model::{Op, deaths};
use crate::promises::copy;

/// The number of commits and of syncs of each file.
fn counted(recorded: &Recorded) -> (BTreeMap<usize, usize>, BTreeMap<usize, usize>) {
    let (mut commits, mut syncs) = (BTreeMap::new(), BTreeMap::new());
    for op in &recorded.ops {
        match op {
            // The end of a commit removes the mark.
            Op::Write { node, at: MARK_AT, bytes } if bytes == &[0] => {
                *commits.entry(*node).or_default() += 1;
            }
            Op::Sync { node } => *syncs.entry(*node).or_default() += 1,
            _ => {}
        }
    }
    (commits, syncs)
}

const COLUMNS: usize = 20;

fn numbers(table: &mut CTable, rows: usize) {
    let items = vec![7i64; rows];
    let columns = (0..COLUMNS).map(|column| (format!("c{column}"), Data::items(&items)));
    table.append(columns).unwrap();
}

#[test]
fn an_append_commits_once_for_each_file() {
    let folder = tempfile::tempdir().unwrap();
    let schema = (0..COLUMNS)
        .fold(Schema::new(), |schema, column| schema.column(format!("c{column}"), ItemKind::Int64));
    let path = folder.path().join("t.b2d");
    let mut table = CTable::create(&path, &schema.expected_rows(100)).unwrap();
    table.finish().unwrap();
    // The first one removes the number of rows from the schema, and all make room for more rows.
    for rows in [1000, 1000, 3000] {
        let ((), recorded) = record(folder.path(), Fault::None, || numbers(&mut table, rows));
        let (commits, syncs) = counted(&recorded);
        let total = commits.values().sum::<usize>();
        assert!(total <= COLUMNS + 2, "{total} commits: {commits:?}");
        assert!(commits.values().all(|count| *count == 1), "{commits:?}");
        assert!(syncs.values().all(|count| *count <= 2), "{syncs:?}");
    }
}

/// A column of each storage.
fn every_storage() -> Schema {
    let list = |storage: &str| {
        ItemType::from(ItemKind::List(ItemKind::Int8.into())).with("storage", storage)
    };
    Schema::new()
        .column("items", ItemKind::Int32)
        .column("masked", ItemType::from(ItemKind::Float64).nullable())
        .column("texts", ItemKind::Utf8)
        .column("codes", ItemType::from(ItemKind::Dictionary { ordered: false }).nullable())
        .column("batches", ItemKind::VlString)
        .column("lists", list("batch"))
        .column("cells", list("vl"))
        .expected_rows(8)
}

/// Appends the rows of these numbers. Each third one is null where that is possible.
fn append(table: &mut CTable, rows: std::ops::Range<i32>) -> Result<()> {
    let text = |row: i32| format!("text {}", row % 7);
    let unless_null = |row: i32, value: Value| if row % 3 == 2 { Value::None } else { value };
    let values =
        |value: &dyn Fn(i32) -> Value| Data::values(rows.clone().map(value).collect::<Vec<_>>());
    let lists = || values(&|row| Value::List(vec![(row % 100).into(); (row % 4) as usize]));
    table.append([
        ("items", values(&|row| row.into())),
        ("masked", values(&|row| unless_null(row, (f64::from(row) / 2.0).into()))),
        ("texts", values(&|row| text(row).into())),
        ("codes", values(&|row| unless_null(row, text(row).into()))),
        ("batches", values(&|row| text(row).into())),
        ("lists", lists()),
        ("cells", lists()),
    ])
}

/// All cells of a table.
fn cells(table: &CTable) -> Result<Vec<Vec<Value>>> {
    table.columns().iter().map(|column| table.values(column.name(), ..)).collect()
}

#[test]
fn an_append_that_dies_leaves_the_old_rows_or_also_all_new_ones() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let path = folder.path().join("t.b2d");
    let mut table = CTable::create(&path, &every_storage()).unwrap();
    append(&mut table, 0..2).unwrap();
    // The first call adds a mask of nulls and words, and both make room for more rows.
    for rows in [2..30, 30..70] {
        table.finish().unwrap();
        let old = cells(&table).unwrap();
        let (result, recorded) =
            record(folder.path(), Fault::None, || append(&mut table, rows.clone()));
        result.unwrap();
        let (commits, syncs) = counted(&recorded);
        // The mask gets room before the strings if all its rows are live: otherwise Python reads strings of rows that are
        // not live.
        assert!(commits.values().all(|count| *count <= 2), "{commits:?}");
        assert!(commits.values().filter(|count| **count == 2).count() <= 1, "{commits:?}");
        // New files are synced. The others are not, but the folders of new files are.
        assert!(syncs.values().all(|count| *count <= 2), "{syncs:?}");
        let new = cells(&table).unwrap();
        assert_ne!(old, new);
        let mut count = 0;
        deaths(&recorded.before, &recorded.ops, &mut |left| {
            let place = scratch.path().join("died");
            fs::create_dir(&place).unwrap();
            left.tree.write(&place);
            let path = place.join("t.b2d");
            let is_complete = left.after == recorded.ops.len();
            let check = |found: Vec<Vec<Value>>| {
                let expected = if is_complete || found == new { &new } else { &old };
                assert_eq!(&found, expected, "{}", left.what);
            };
            match CTable::open(&path).and_then(|table| cells(&table)) {
                Ok(found) => check(found),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Unfinished, "{}: {error}", left.what)
                }
            }
            let mut table = CTable::open_rw(&path).unwrap();
            check(cells(&table).unwrap());
            // The next change removes the remains.
            if count % 4 == 0 {
                let nrows = table.nrows() as usize;
                append(&mut table, rows.clone()).unwrap();
                for (column, new) in cells(&table).unwrap().iter().zip(&new) {
                    assert_eq!(column[nrows..], new[rows.start as usize..], "{}", left.what);
                }
            }
            drop(table);
            fs::remove_dir_all(&place).unwrap();
            count += 1;
        });
        assert!(count > 100, "{count} states");
    }
}

/// The first change of an append is that of the schema.
#[test]
fn a_table_of_a_store_whose_writer_has_died_is_changed() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mut store = TreeStore::create(folder.path().join("s.b2d")).unwrap();
    let mut table = store.create_table("/a/t", &every_storage()).unwrap();
    append(&mut table, 0..2).unwrap();
    table.finish().unwrap();
    let (result, recorded) = record(folder.path(), Fault::None, || append(&mut table, 2..3));
    result.unwrap();
    deaths(&recorded.before, &recorded.ops[..10], &mut |left| {
        let place = scratch.path().join("died");
        fs::create_dir(&place).unwrap();
        left.tree.write(&place);
        let mut store = TreeStore::open_rw(place.join("s.b2d")).unwrap();
        let Object::CTable(mut table) = store.edit("/a/t").unwrap() else { panic!("no table") };
        assert_eq!(table.nrows(), 2, "{}", left.what);
        append(&mut table, 2..3).unwrap();
        assert_eq!(table.nrows(), 3, "{}", left.what);
        drop((table, store));
        fs::remove_dir_all(&place).unwrap();
    });
}

#[test]
fn an_append_that_fails_leaves_the_old_rows() {
    let (folder, scratch) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let prepared = folder.path().join("t.b2d");
    let mut table = CTable::create(&prepared, &every_storage()).unwrap();
    append(&mut table, 0..2).unwrap();
    table.finish().unwrap();
    let old = cells(&table).unwrap();
    drop(table);
    for change in 0.. {
        let place = scratch.path().join(change.to_string());
        fs::create_dir(&place).unwrap();
        copy(folder.path(), &place);
        let path = place.join("t.b2d");
        let mut table = CTable::open_rw(&path).unwrap();
        let fault = Fault::Once(change, libc::EIO);
        let (result, recorded) = record(&place, fault, || append(&mut table, 2..30));
        let Some(_) = recorded.failed else {
            result.unwrap();
            assert!(change > 50, "{change} changes");
            return;
        };
        // A failure to remove what is not needed any more is no error.
        if result.is_err() {
            assert_eq!(cells(&table).unwrap(), old, "change {change}");
            append(&mut table, 2..30).unwrap();
        }
        let new = cells(&table).unwrap();
        assert_eq!(new[0].len(), 30, "change {change}");
        table.finish().unwrap();
        drop(table);
        assert_eq!(cells(&CTable::open(&path).unwrap()).unwrap(), new, "change {change}");
        fs::remove_dir_all(&place).unwrap();
    }
}
