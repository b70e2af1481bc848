//! Handles that other handles and programs make outdated: current data, or an error that names `refresh`.

use std::path::Path;

use blosc2::{Error, ErrorKind, NDArray, OpenOptions, Result, SChunk, Target, Value};
use blosc2_store::{
    BatchArray, CTable, Data, EmbedStore, ItemKind, ItemType, ListArray, ObjectArray, Schema,
    TreeStore,
};

use crate::common::run_python;

fn assert_outdated<T: std::fmt::Debug>(result: Result<T>, what: &str) {
    let error: Error = result.expect_err(what);
    assert_eq!(error.kind(), ErrorKind::Busy, "{what}: {error}");
    assert!(error.to_string().contains("`refresh`"), "{what}: {error}");
}

fn columns() -> Vec<(&'static str, ItemType)> {
    vec![
        ("n", ItemKind::Int64.into()),
        ("text", ItemKind::Utf8.into()),
        ("word", ItemKind::Dictionary { ordered: false }.into()),
        ("long", ItemKind::VlString.into()),
        ("list", ItemType::from(ItemKind::List(ItemKind::Int64.into())).with("storage", "vl")),
    ]
}

fn cells(numbers: &[i64]) -> Vec<(&'static str, Data<'static>)> {
    let texts = || Data::texts(numbers.iter().map(|n| Some(format!("text {n}"))));
    let numbers: Vec<Value> = numbers.iter().map(|&n| n.into()).collect();
    let lists = numbers.iter().map(|n| Value::List(vec![n.clone()])).collect::<Vec<_>>();
    let numbers = Data::values(numbers);
    let lists = Data::values(lists);
    vec![("n", numbers), ("text", texts()), ("word", texts()), ("long", texts()), ("list", lists)]
}

fn make(path: &Path) -> CTable {
    let schema =
        columns().into_iter().fold(Schema::new(), |schema, (name, spec)| schema.column(name, spec));
    let mut table = CTable::create(path, &schema).unwrap();
    table.append(cells(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9])).unwrap();
    table.finish().unwrap();
    table
}

fn check(table: &CTable, numbers: &[i64]) {
    assert_eq!(table.nrows(), numbers.len() as u64);
    let texts: Vec<_> = numbers.iter().map(|n| Some(format!("text {n}"))).collect();
    assert_eq!(table.read::<i64>("n", ..).unwrap(), numbers);
    for name in ["text", "word", "long"] {
        assert_eq!(table.texts(name, ..).unwrap(), texts, "{name}");
    }
    let lists: Vec<Value> = numbers.iter().map(|&n| Value::List(vec![n.into()])).collect();
    assert_eq!(table.values("list", ..).unwrap(), lists);
}

/// All methods that read rows.
fn assert_table_outdated(table: &CTable, what: &str) {
    for (name, _) in columns() {
        assert_outdated(table.values(name, ..), &format!("{what}: values of {name}"));
        assert_outdated(table.nulls(name, ..), &format!("{what}: nulls of {name}"));
    }
    for name in ["text", "word", "long"] {
        assert_outdated(table.texts(name, ..), &format!("{what}: texts of {name}"));
    }
    assert_outdated(table.read::<i64>("n", ..), what);
    assert_outdated(table.find::<i64>("n", |n| *n > 3), what);
    assert_outdated(table.valid_rows(..), what);
    assert_outdated(table.cells::<i64>("n", ..), what);
}

/// NaN, Python's null value of floats, is not equal to itself.
#[test]
fn schemas_with_nan_stay_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let float = ItemType::from(ItemKind::Float64).with("null_value", f64::NAN);
    let schema = Schema::new().column("n", ItemKind::Int64).column("f", float);
    let mut writer = CTable::create(&path, &schema).unwrap();
    writer.append([("n", Data::items(&[1i64])), ("f", Data::items(&[f64::NAN]))]).unwrap();
    // The next change removes the number of rows from the schema.
    writer.finish().unwrap();
    let reader = CTable::open(&path).unwrap();
    writer.update("n", [0], Data::items(&[7i64])).unwrap();
    assert_eq!(reader.read::<i64>("n", ..).unwrap(), [7]);
    assert_eq!(reader.nulls("f", ..).unwrap(), [true]);
}

#[test]
fn readers_of_tables_report_the_changes_of_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let mut writer = make(&path);
    // One has opened all columns, the other none.
    let (mut used, mut fresh) = (CTable::open(&path).unwrap(), CTable::open(&path).unwrap());
    let mut numbers: Vec<i64> = (0..10).collect();
    check(&used, &numbers);
    let mut step = |what: &str, writer: &mut CTable, numbers: &[i64], used: &mut CTable| {
        for (reader, what) in [(&mut *used, "opened columns"), (&mut fresh, "no columns")]
            .map(|(reader, columns)| (reader, format!("{what}, {columns}")))
        {
            let before = reader.nrows();
            assert_table_outdated(reader, &what);
            assert_eq!(reader.nrows(), before);
            reader.refresh().unwrap();
            assert_eq!(reader.nrows(), numbers.len() as u64, "{what}");
        }
        check(used, numbers);
        check(writer, numbers);
    };
    // One row more and one less, so that the count stays.
    writer.delete_rows([2]).unwrap();
    writer.append(cells(&[10])).unwrap();
    numbers.remove(2);
    numbers.push(10);
    step("deletion and append", &mut writer, &numbers, &mut used);
    writer.delete_rows([0]).unwrap();
    numbers.remove(0);
    step("deletion", &mut writer, &numbers, &mut used);
    writer.compact().unwrap();
    step("compaction", &mut writer, &numbers, &mut used);
    writer.append(cells(&[11, 12])).unwrap();
    writer.finish().unwrap();
    numbers.extend([11, 12]);
    step("append", &mut writer, &numbers, &mut used);

    // Updates: new items, or an error.
    writer.update("n", [0], Data::items(&[70i64])).unwrap();
    assert_eq!(used.read::<i64>("n", 0..1).unwrap(), [70]);
    for name in ["text", "word", "long"] {
        used.texts(name, ..).unwrap();
        writer.update(name, [0], Data::texts([Some("another text")])).unwrap();
        assert_outdated(used.texts(name, ..), name);
        used.refresh().unwrap();
        assert_eq!(used.texts(name, 0..1).unwrap(), [Some("another text".to_owned())], "{name}");
    }

    // Columns.
    writer.add_column("new", ItemType::from(ItemKind::Int8).with("default", 3), None).unwrap();
    writer.drop_column("long").unwrap();
    used.refresh().unwrap();
    assert!(used.column("long").is_none());
    assert_eq!(used.read::<i8>("new", 0..2).unwrap(), [3, 3]);
    // A handle for changing is current.
    writer.refresh().unwrap();
    assert_eq!(writer.nrows(), numbers.len() as u64);
}

/// The mask of nulls does not exist before the first null.
#[test]
fn readers_of_tables_report_a_new_mask_of_nulls() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let column = || ItemType::from(ItemKind::Int64).nullable().with("null_storage", "mask");
    let schema = Schema::new().column("opened", column()).column("fresh", column());
    let mut writer = CTable::create(&path, &schema).unwrap();
    let cells = |name| (name, Data::items(&[1i64, 2, 3]));
    writer.append([cells("opened"), cells("fresh")]).unwrap();
    writer.finish().unwrap();
    let mut reader = CTable::open(&path).unwrap();
    assert_eq!(reader.nulls("opened", ..).unwrap(), [false; 3]);
    for name in ["opened", "fresh"] {
        writer.update(name, [1], Data::values(vec![Value::None])).unwrap();
        assert_outdated(reader.nulls(name, ..), name);
        assert_outdated(reader.values(name, ..), name);
        reader.refresh().unwrap();
        assert_eq!(reader.nulls(name, ..).unwrap(), [false, true, false], "{name}");
        // From now on, these are items too.
        writer.update(name, [0], Data::values(vec![Value::None])).unwrap();
        assert_eq!(reader.nulls(name, ..).unwrap(), [true, true, false], "{name}");
    }
}

/// Columns with the name of another one.
#[test]
fn readers_of_tables_report_other_columns() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let schema = Schema::new()
        .column("n", ItemKind::Int64)
        .column("fresh", ItemKind::Int64)
        .column("opened", ItemKind::Int64);
    let mut writer = CTable::create(&path, &schema).unwrap();
    let cells = |name| (name, Data::items(&[1i64, 2, 3]));
    writer.append([cells("n"), cells("fresh"), cells("opened")]).unwrap();
    writer.finish().unwrap();
    let mut reader = CTable::open(&path).unwrap();
    reader.values("opened", ..).unwrap();
    for name in ["fresh", "opened"] {
        writer.drop_column(name).unwrap();
        assert_outdated(reader.values(name, ..), name);
        assert_outdated(reader.values("n", ..), name);
        // Of the same type, but 5 is null.
        let other = ItemType::from(ItemKind::Int64).nullable().with("null_value", 5);
        let cells = || vec![Value::None, 7.into(), 8.into()];
        writer.add_column(name, other, Some(Data::values(cells()))).unwrap();
        assert_outdated(reader.values(name, ..), name);
        reader.refresh().unwrap();
        assert_eq!(reader.values(name, ..).unwrap(), cells());
    }
    // Other entries of the schema: the number of rows is removed, and stored again.
    writer.finish().unwrap();
    reader.refresh().unwrap();
    for number in [5, 6] {
        writer.update("n", [0], Data::items(&[number])).unwrap();
        assert_eq!(reader.read::<i64>("n", ..).unwrap(), [number, 2, 3]);
        writer.finish().unwrap();
        assert_eq!(reader.read::<i64>("n", ..).unwrap(), [number, 2, 3]);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn readers_of_tables_report_the_changes_of_python() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    drop(make(&path));
    let mut reader = CTable::open(&path).unwrap();
    let mut numbers: Vec<i64> = (0..10).collect();
    check(&reader, &numbers);
    let open = "import blosc2\ntable = blosc2.CTable.open('t.b2d', mode='a')\n";
    run_python(&format!("{open}table.delete([1, 4])\ntable.close()\n"), folder.path(), &[]);
    numbers.retain(|n| ![1, 4].contains(n));
    assert_table_outdated(&reader, "deletion");
    reader.refresh().unwrap();
    check(&reader, &numbers);
    run_python(&format!("{open}table.compact()\ntable.close()\n"), folder.path(), &[]);
    assert_table_outdated(&reader, "compaction");
    reader.refresh().unwrap();
    // Python does not move the values of columns in batches.
    assert_eq!(reader.read::<i64>("n", ..).unwrap(), numbers);
    let texts: Vec<_> = numbers.iter().map(|n| Some(format!("text {n}"))).collect();
    assert_eq!(reader.texts("text", ..).unwrap(), texts);
}

#[test]
fn readers_of_batches_report_the_changes_of_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2b");
    let mut writer = BatchArray::create(&path).unwrap();
    writer.append(&[1, 2]).unwrap();
    writer.append(&[3, 4, 5]).unwrap();
    writer.append(&[6, 7]).unwrap();
    let mut reader = BatchArray::open(&path).unwrap();
    assert_eq!(reader.nitems().unwrap(), 7);
    // Metalayers and items of the same number.
    writer.vlmeta_mut().set_value("mine", "text").unwrap();
    writer.set(0, &[8, 9]).unwrap();
    assert_eq!(reader.item(0).unwrap(), 8.into());
    assert_eq!(reader.batch(0).unwrap(), [8.into(), 9.into()]);
    let outdated = |reader: &BatchArray, what: &str| {
        assert_outdated(reader.nitems(), what);
        assert_outdated(reader.batch_len(0), what);
        assert_outdated(reader.batch(0), what);
        assert_outdated(reader.item(0), what);
        assert!(reader.items().all(|item| item.is_err()), "{what}");
    };
    type Change = fn(&mut BatchArray) -> Result<()>;
    let changes: [(&str, Change); 4] = [
        ("append", |writer| writer.append(&[10])),
        ("set", |writer| writer.set(1, &[3])),
        // The same number of batches, some of the same length.
        ("move", |writer| writer.remove(1).and_then(|()| writer.append(&[3]))),
        ("removal", |writer| writer.remove(0)),
    ];
    for (what, change) in changes {
        change(&mut writer).unwrap();
        outdated(&reader, what);
        reader.refresh().unwrap();
        let items = |array: &BatchArray| array.items().collect::<Result<Vec<_>>>().unwrap();
        assert_eq!(items(&reader), items(&writer), "{what}");
    }
    // The array itself is current after its own changes of metalayers.
    writer.vlmeta_mut().set_value("mine", "other text").unwrap();
    assert_eq!(writer.item(0).unwrap(), reader.item(0).unwrap());
}

#[test]
fn readers_of_other_containers_see_the_changes_of_a_writer() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);

    let mut writer = ObjectArray::create(path("objects")).unwrap();
    writer.append("one").unwrap();
    writer.append("two").unwrap();
    let mut reader = ObjectArray::open(path("objects")).unwrap();
    writer.remove(0).unwrap();
    assert_eq!(reader.get(0).unwrap(), "two".into());
    assert_eq!(reader.get(1).unwrap_err().kind(), ErrorKind::OutOfBounds);
    reader.refresh().unwrap();
    assert_eq!(reader.len(), 1);

    let mut writer = ListArray::create(path("lists"), ItemKind::Int32, false).unwrap();
    for rows in [&[1][..], &[2, 3], &[4]] {
        writer.append(Some(rows)).unwrap();
    }
    writer.flush().unwrap();
    let mut reader = ListArray::open(path("lists")).unwrap();
    writer.append(Some(&[5])).unwrap();
    writer.flush().unwrap();
    assert_outdated(reader.get(0), "lists");
    assert_eq!(reader.len(), 3);
    reader.refresh().unwrap();
    assert_eq!((reader.len(), reader.get(3).unwrap()), (4, Some(vec![5.into()])));

    let array = NDArray::from_slice(&[1i32, 2, 3], [3]).unwrap();
    let mut writer = EmbedStore::create(path("store")).unwrap();
    writer.insert("/a", array.schunk()).unwrap();
    let mut reader = EmbedStore::open(path("store")).unwrap();
    writer.insert("/b", array.schunk()).unwrap();
    writer.remove("/a").unwrap();
    let items =
        |schunk: SChunk| NDArray::from_schunk(schunk).unwrap().read::<Vec<i32>>(..).unwrap();
    assert_eq!(items(reader.frame("/a").unwrap()), [1, 2, 3]);
    assert!(!reader.contains("/b"));
    reader.refresh().unwrap();
    assert_eq!(reader.keys().collect::<Vec<_>>(), ["/b"]);
    assert_eq!(items(reader.frame("/b").unwrap()), [1, 2, 3]);
}

/// The writer stores another chunk in the file of a removed chunk. A reader with the old index must not return it.
#[test]
fn readers_of_sparse_frames_in_stores_report_reused_chunk_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.b2d");
    drop(TreeStore::create(&path).unwrap());
    let sparse = path.join("sparse.b2nd");
    let builder =
        NDArray::builder().chunk_shape([100]).target(Target::from(&sparse).directory(true));
    builder.arange(0i32, 1000, 1).unwrap();
    let store = TreeStore::open(&path).unwrap();
    let mut reader = store.array("/sparse").unwrap();
    let mut writer = NDArray::open_rw(&sparse).unwrap();
    writer.write(0..100, -1i32).unwrap();
    writer.write(100..200, -2i32).unwrap();
    for start in [0, 100, 900] {
        assert_outdated(reader.read::<Vec<i32>>(start..start + 1), "a sparse frame");
    }
    assert!(reader.refresh().unwrap());
    assert_eq!(reader.read::<Vec<i32>>(99..101).unwrap(), [-1, -2]);
    assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), writer.read::<Vec<i32>>(..).unwrap());
}

#[test]
fn revisions_change_with_each_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame");
    let mut writer = OpenOptions::new().create_new(true).open(&path).unwrap();
    let reader = SChunk::open(&path).unwrap();
    let mut seen = vec![reader.revision().unwrap()];
    assert_eq!(reader.revision().unwrap(), seen[0]);
    writer.append(b"chunk").unwrap();
    seen.push(reader.revision().unwrap());
    assert_eq!(writer.revision().unwrap(), seen[1]);
    writer.replace(0, b"other").unwrap();
    seen.push(reader.revision().unwrap());
    writer.vlmeta_mut().set("name", b"value").unwrap();
    seen.push(reader.revision().unwrap());
    assert!((1..seen.len()).all(|at| !seen[..at].contains(&seen[at])), "{seen:?}");
    assert_eq!(reader.vlmeta().get("name").unwrap().as_deref(), Some(&b"value"[..]));

    // Another program, that does not lock the file.
    drop(writer);
    let before = std::fs::read(&path).unwrap();
    std::fs::write(&path, &before).unwrap();
    assert_outdated(reader.revision(), "a file that was written again");
}
