//! Tables that are written: random changes in every place, compared with a model, and the errors of wrong use.

use std::path::Path;

use crate::common::Rng;
use crate::common::repeats;
use crate::table_model::Model;
use blosc2::{Element, ErrorKind, NDArray, OpenOptions, RawItems, Value};
use blosc2_store::{CTable, Data, EmbedStore, ItemKind, ItemType, Object, Row, Schema, TreeStore};

fn table_of(object: Object) -> CTable {
    match object {
        Object::CTable(table) => table,
        other => panic!("a {}", other.kind()),
    }
}

#[test]
fn changes_of_tables_do_what_a_model_does() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..repeats(300) {
        let mut rng = Rng(seed as u64);
        let (mut model, schema) = Model::new(&mut rng);
        let what = format!("seed {seed}");
        let path =
            folder.path().join(format!("{seed}.b2{}", if seed % 2 == 0 { 'd' } else { 'z' }));
        match seed % 4 {
            0 | 1 => {
                let mut table = CTable::create(&path, &schema).unwrap();
                for _ in 0..12 {
                    model.change(&mut table, &mut rng);
                    model.check(&table, &what);
                    if rng.below(4) == 0 {
                        table.finish().unwrap();
                        drop(table);
                        model.check(&CTable::open(&path).unwrap(), &what);
                        table = CTable::open_rw(&path).unwrap();
                    }
                }
                table.finish().unwrap();
                model.check(&CTable::open(&path).unwrap(), &what);
                let mut copy = CTable::from_cframe(table.to_cframe().unwrap()).unwrap();
                model.check(&copy, &what);
                model.change(&mut copy, &mut rng);
                model.check(&copy, &what);
            }
            2 => {
                let mut table = CTable::in_memory(&schema).unwrap();
                for _ in 0..12 {
                    model.change(&mut table, &mut rng);
                    model.check(&table, &what);
                    if rng.below(4) == 0 {
                        table = CTable::from_cframe(table.to_cframe().unwrap()).unwrap();
                        model.check(&table, &what);
                    }
                }
            }
            _ => in_a_tree(&path, &mut model, &schema, &mut rng, &what),
        }
    }
}

fn in_a_tree(path: &Path, model: &mut Model, schema: &Schema, rng: &mut Rng, what: &str) {
    let mut store = TreeStore::create(path).unwrap();
    let mut table = store.create_table("/a/table", schema).unwrap();
    for _ in 0..6 {
        model.change(&mut table, rng);
    }
    model.check(&table, what);
    assert!(store.finish().is_err(), "the table is open");
    table.finish().unwrap();
    drop(table);
    store.finish().unwrap();
    drop(store);
    model.check(&table_of(TreeStore::open(path).unwrap().get("/a/table").unwrap()), what);

    let mut store = TreeStore::open_rw(path).unwrap();
    assert!(store.keys().eq(["/a/table"]), "{what}");
    let mut table = table_of(store.edit("/a/table").unwrap());
    for _ in 0..6 {
        model.change(&mut table, rng);
    }
    table.finish().unwrap();
    drop(table);
    model.check(&table_of(store.get("/a/table").unwrap()), what);
    store.finish().unwrap();
    model.check(&table_of(TreeStore::open(path).unwrap().get("/a/table").unwrap()), what);
    store.remove("/a/table").unwrap();
    assert!(store.is_empty() && store.groups().next().is_none(), "{what}");
}

#[test]
fn wrong_use_is_an_error_and_changes_nothing() {
    let schema = Schema::new()
        .column("n", ItemType::from(ItemKind::Int8).with("ge", -5).with("le", 50))
        .column("text", ItemKind::Utf8)
        .column("short", ItemType::from(ItemKind::String { max_length: 3 }).with("min_length", 1))
        .column("word", ItemType::from(ItemKind::Dictionary { ordered: false }).nullable())
        .column("list", ItemKind::List(blosc2_store::ItemKind::Int8.into()))
        .column("defaulted", ItemType::from(ItemKind::Float32).with("default", 1.5));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let mut table = CTable::create(&path, &schema).unwrap();
    let lists = |count| Data::values(vec![Value::List(vec![1.into()]); count]);
    let good = || {
        vec![
            ("n", Data::items(&[1i8, 2])),
            ("text", Data::texts([Some("a"), Some("b")])),
            ("short", Data::texts([Some("abc"), Some("é")])),
            ("word", Data::texts([Some("w"), None])),
            ("list", lists(2)),
        ]
    };
    table.append(good()).unwrap();
    let before = table.to_cframe().unwrap();
    let nulls = [false, true];
    let with = |name: &'static str, data: Data<'static>| {
        let mut columns: Vec<_> = good().into_iter().filter(|(each, _)| *each != name).collect();
        columns.push((name, data));
        columns
    };
    let without =
        |name: &str| -> Vec<_> { good().into_iter().filter(|(each, _)| *each != name).collect() };
    use ErrorKind::{InvalidArgument, NotFound, TypeMismatch};
    let cases = [
        ("a length", InvalidArgument, with("n", Data::items(&[1i8]))),
        ("below ge", InvalidArgument, with("n", Data::items(&[1i8, -6]))),
        ("above le", InvalidArgument, with("n", Data::values(vec![51.into(), 1.into()]))),
        ("out of range", TypeMismatch, with("n", Data::values(vec![300.into(), 1.into()]))),
        ("another dtype", TypeMismatch, with("n", Data::items(&[1i16, 2]))),
        ("text for a number", TypeMismatch, with("n", Data::texts([Some("1"), Some("2")]))),
        ("null", InvalidArgument, with("n", Data::items(&[1i8, 2]).nulls(nulls.to_vec()))),
        ("null text", InvalidArgument, with("text", Data::texts([Some("a"), None]))),
        ("a number for text", TypeMismatch, with("text", Data::values(vec![1.into(), 2.into()]))),
        ("no UTF-8", InvalidArgument, with("text", Data::offsets(vec![0, 1, 2], vec![255, 65]))),
        (
            "a part of a character",
            InvalidArgument,
            with("text", Data::offsets(vec![0, 1, 2], "é".as_bytes())),
        ),
        (
            "descending offsets",
            InvalidArgument,
            with("text", Data::offsets(vec![0, 2, 1], vec![65, 65])),
        ),
        (
            "offsets beyond",
            InvalidArgument,
            with("text", Data::offsets(vec![0, 1, 3], vec![65, 65])),
        ),
        ("too long", InvalidArgument, with("short", Data::texts([Some("abcd"), Some("a")]))),
        ("too short", InvalidArgument, with("short", Data::texts([Some(""), Some("a")]))),
        ("NUL", InvalidArgument, with("short", Data::texts([Some("a\0"), Some("a")]))),
        (
            "a wrong code",
            InvalidArgument,
            with("word", Data::codes(vec![0, 7], vec!["x".to_owned()])),
        ),
        (
            "a wrong item",
            TypeMismatch,
            with("list", Data::values(vec![Value::List(vec!["x".into()]); 2])),
        ),
        ("marks", InvalidArgument, with("n", Data::items(&[1i8, 2]).nulls(vec![false]))),
        ("no data", InvalidArgument, without("text")),
        ("no column", NotFound, with("other", Data::items(&[1i8, 2]))),
        (
            "twice",
            InvalidArgument,
            good().into_iter().chain([("n", Data::items(&[1i8, 2]))]).collect(),
        ),
    ];
    for (what, kind, columns) in cases {
        let error = table.append(columns).unwrap_err();
        assert_eq!(error.kind(), kind, "{what}: {error}");
        assert_eq!(table.nrows(), 2, "{what}");
    }
    assert_eq!(table.update("n", ..1, Data::items(&[1i8, 2])).unwrap_err().kind(), InvalidArgument);
    assert_eq!(
        table.update("n", 1..3, Data::items(&[1i8, 2])).unwrap_err().kind(),
        ErrorKind::OutOfBounds
    );
    assert_eq!(table.update("x", .., Data::items(&[1i8, 2])).unwrap_err().kind(), NotFound);
    assert_eq!(table.update("n", .., Data::items(&[1i8, 99])).unwrap_err().kind(), InvalidArgument);
    assert_eq!(table.delete_rows([2]).unwrap_err().kind(), ErrorKind::OutOfBounds);
    assert_eq!(table.delete_rows(vec![true]).unwrap_err().kind(), ErrorKind::OutOfBounds);
    let add = |table: &mut CTable, name: &str, spec: ItemType, data| {
        table.add_column(name, spec, data).unwrap_err().kind()
    };
    let int = || ItemType::from(ItemKind::Int8);
    assert_eq!(add(&mut table, "n", int(), Some(Data::items(&[1i8, 2]))), ErrorKind::AlreadyExists);
    assert_eq!(add(&mut table, "_x", int(), None), InvalidArgument);
    assert_eq!(add(&mut table, "x..y", int(), None), InvalidArgument);
    assert_eq!(add(&mut table, "word_dict", int().nullable(), None), InvalidArgument);
    assert_eq!(add(&mut table, "x", int(), None), InvalidArgument);
    assert_eq!(add(&mut table, "x", int().with("max_length", 3), None), InvalidArgument);
    assert_eq!(add(&mut table, "x", int(), Some(Data::items(&[1i8]))), InvalidArgument);
    assert_eq!(table.rename_column("n", "text").unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(table.rename_column("x", "y").unwrap_err().kind(), NotFound);
    assert_eq!(table.rename_column("n", "").unwrap_err().kind(), InvalidArgument);
    assert_eq!(table.drop_column("x").unwrap_err().kind(), NotFound);
    assert_eq!(table.to_cframe().unwrap(), before);

    let error = CTable::create(&path, &schema).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    drop(table);
    let mut table = CTable::open(&path).unwrap();
    assert!(!table.is_writable());
    assert_eq!(table.append(good()).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(table.delete_rows(..).unwrap_err().kind(), ErrorKind::ReadOnly);
    assert_eq!(table.finish().unwrap_err().kind(), ErrorKind::ReadOnly);

    let bad = |schema: Schema| CTable::in_memory(&schema).unwrap_err().kind();
    let one = |spec: ItemType| Schema::new().column("a", spec);
    assert_eq!(bad(Schema::new()), InvalidArgument);
    assert_eq!(bad(one(int()).column("a", int())), InvalidArgument);
    assert_eq!(bad(one(int().with("null_value", 1000))), InvalidArgument);
    assert_eq!(bad(one(int().with("default", "x"))), TypeMismatch);
    assert_eq!(bad(one(ItemKind::Computed("1".into()).into())), InvalidArgument);
    assert_eq!(bad(one(ItemKind::Bytes { max_length: 0 }.into())), InvalidArgument);
    // A schema that cannot be created leaves nothing.
    let path = folder.path().join("none.b2d");
    CTable::create(&path, &Schema::new()).unwrap_err();
    assert!(!path.exists());
}

/// As on a platform with another byte order.
#[test]
fn dictionaries_and_texts_of_both_byte_orders_are_read_and_changed() {
    let folder = tempfile::tempdir().unwrap();
    for order in ['<', '>'] {
        let path = folder.path().join("a.b2d");
        let schema = Schema::new()
            .column("word", ItemKind::Dictionary { ordered: false })
            .column("text", ItemKind::Utf8);
        let mut table = CTable::create(&path, &schema).unwrap();
        let words = |words: [&str; 2]| {
            let data = || Data::texts(words.map(Some));
            [("word", data()), ("text", data())]
        };
        table.append(words(["one", "two"])).unwrap();
        table.finish().unwrap();
        drop(table);
        let store = |name: &str| path.join("_cols").join(name);
        let codes = NDArray::open(store("word.b2nd")).unwrap().read::<Vec<i32>>(..).unwrap();
        let offsets = NDArray::open(store("text.b2nd")).unwrap().read::<Vec<i64>>(..).unwrap();
        let zeros = |name: &str, size: usize, rows: usize| {
            let builder = NDArray::builder()
                .chunk_shape([1 << 10])
                .target(store(name))
                .options(OpenOptions::new().replace(true));
            let dtype = format!("{order}i{size}");
            let mut array = builder
                .dtype(&dtype, vec![0; size].len())
                .full(RawItems(&vec![0; size]), rows as u64)
                .unwrap();
            array.set_dparams(array.info().dparams.convert_byte_order(true));
            array
        };
        zeros("word.b2nd", 4, codes.len()).write(.., &codes).unwrap();
        zeros("text.b2nd", 8, offsets.len()).write(.., &offsets).unwrap();

        let mut table = CTable::open_rw(&path).unwrap();
        table.append(words(["two", "three"])).unwrap();
        table.update("word", [1], Data::texts([Some("four")])).unwrap();
        table.update("text", [1], Data::texts([Some("four")])).unwrap();
        table.finish().unwrap();
        drop(table);
        let table = CTable::open(&path).unwrap();
        let expected = ["one", "four", "two", "three"].map(|text| Some(text.to_owned()));
        for column in ["word", "text"] {
            assert_eq!(table.texts(column, ..).unwrap(), expected, "{column}, {order}");
        }
        for (name, size) in [("word.b2nd", 4), ("text.b2nd", 8)] {
            let array = NDArray::open(store(name)).unwrap();
            assert_eq!(array.dtype_str().unwrap(), format!("{order}i{size}"));
        }
        std::fs::remove_dir_all(&path).unwrap();
    }
}

#[test]
fn cells_are_passed_in_every_form() {
    let texts = [
        ItemKind::Utf8,
        ItemKind::VlString,
        ItemKind::String { max_length: 5 },
        ItemKind::Dictionary { ordered: false },
    ];
    let mut schema = Schema::new().column(
        "when",
        ItemKind::Timestamp { unit: blosc2_store::TimeUnit::Seconds, timezone: None },
    );
    for (number, kind) in texts.iter().enumerate() {
        schema = schema.column(format!("t{number}"), ItemType::from(kind.clone()).nullable());
    }
    let boxes = ItemKind::NDArray { shape: vec![2], dtype: f32::dtype() };
    let schema = schema.column("box", ItemType::from(boxes).nullable());
    let mut table = CTable::in_memory(&schema).unwrap();
    let words = vec!["né".to_owned(), "x".to_owned()];
    let forms = [
        Data::texts([Some("né"), None, Some("x")]),
        Data::offsets(vec![0, 3, 3, 4], "néx".as_bytes().to_vec()).nulls(vec![false, true, false]),
        Data::codes(vec![0, -1, 1], words.clone()),
        Data::values(vec!["né".into(), Value::None, "x".into()]),
    ];
    for form in forms {
        let mut columns = vec![("when".to_owned(), Data::items(&[1i64, 2, 3]))];
        columns.extend((0..4).map(|number| (format!("t{number}"), form.clone())));
        let items = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
        let nulls = [false, false, true];
        let boxes = Data::items(&items).nulls(&nulls[..]);
        columns.push(("box".to_owned(), boxes));
        table.append(columns).unwrap();
    }
    let expected = [Some("né"), None, Some("x")].repeat(4);
    let expected: Vec<_> = expected.into_iter().map(|text| text.map(str::to_owned)).collect();
    for number in 0..4 {
        assert_eq!(table.texts(&format!("t{number}"), ..).unwrap(), expected, "column {number}");
    }
    assert_eq!(table.read::<f32>("box", [1, 4]).unwrap(), [3.0, 4.0, 3.0, 4.0]);
    assert_eq!(table.nulls("box", 0..4).unwrap(), [false, false, true, false]);
    assert_eq!(table.find("when", |when: &i64| *when == 3).unwrap(), [2, 5, 8, 11]);
    assert_eq!(
        table.values("t0", vec![11, 0, 11]).unwrap(),
        ["x".into(), "né".into(), Value::from("x")]
    );
    assert_eq!(table.read::<i64>("when", [5, 5, 0]).unwrap(), [3, 3, 1]);
    // The form must fit also if all rows are null.
    let nothing = Data::texts([None::<&str>]);
    let error = table.update("when", ..1, nothing.clone()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    let error = table.update("box", ..1, nothing).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{error}");
    for name in ["t0", "t1", "t3"] {
        let error = table.update(name, ..1, Data::items(&[7i32]).nulls(vec![true])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{name}: {error}");
    }
    // Words are stored once.
    assert_eq!(table.read::<i32>("t3", ..3).unwrap(), [0, -1, 1]);
    table.set_attribute("author", "me").unwrap();
    let table = CTable::from_cframe(table.to_cframe().unwrap()).unwrap();
    assert_eq!(table.attributes().unwrap(), [("author".to_owned(), "me".into())]);
}

#[test]
fn rows_of_an_unfinished_append_are_removed() {
    let schema = Schema::new()
        .column("n", ItemKind::Int32)
        .column("t", ItemKind::Utf8)
        .column("v", ItemKind::VlString)
        .column(
            "l",
            ItemType::from(ItemKind::List(blosc2_store::ItemKind::Int8.into()))
                .with("storage", "vl"),
        );
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2d");
    let rows = |table: &mut CTable, start: i32| {
        let numbers: Vec<i32> = (start..start + 10).collect();
        let texts: Vec<_> = numbers.iter().map(|n| Some(n.to_string())).collect();
        let lists = vec![Value::List(vec![(start % 100).into()]); 10];
        let columns = [
            ("n", Data::items(&numbers)),
            ("t", Data::texts(texts.clone())),
            ("v", Data::texts(texts)),
            ("l", Data::values(lists)),
        ];
        table.append(columns).unwrap();
    };
    let mut table = CTable::create(&path, &schema).unwrap();
    rows(&mut table, 0);
    let before = std::fs::read(path.join("_valid_rows.b2nd")).unwrap();
    rows(&mut table, 10);
    drop(table);
    // As if the program had died before the last step.
    std::fs::write(path.join("_valid_rows.b2nd"), before).unwrap();
    assert_eq!(CTable::open(&path).unwrap().nrows(), 10);
    let mut table = CTable::open_rw(&path).unwrap();
    rows(&mut table, 20);
    let expected: Vec<i32> = (0..10).chain(20..30).collect();
    assert_eq!(table.read::<i32>("n", ..).unwrap(), expected);
    let texts: Vec<_> = expected.iter().map(|n| Some(n.to_string())).collect();
    assert_eq!(table.texts("t", ..).unwrap(), texts);
    assert_eq!(table.texts("v", ..).unwrap(), texts);
    assert_eq!(table.values("l", 19..).unwrap(), [Value::List(vec![20.into()])]);
    table.finish().unwrap();
    drop(table);
    let schunk = OpenOptions::new().open(path.join("_cols/v.b2b")).unwrap();
    assert_eq!(blosc2_store::BatchArray::from_schunk(schunk).unwrap().nitems().unwrap(), 20);
}

#[test]
fn compact_moves_more_rows_than_it_holds() {
    // 5,000 rows of 8 KiB, with a deleted row after every second one.
    let (rows, len) = (5000, 1024);
    let kind = ItemKind::NDArray { shape: vec![len], dtype: i64::dtype() };
    let schema = Schema::new().column("a", kind);
    let mut table = CTable::in_memory(&schema).unwrap();
    let items: Vec<i64> = (0..rows * len as i64).collect();
    table.append([("a", Data::items(&items))]).unwrap();
    table.delete_rows((0..rows as u64).filter(|row| row % 3 == 2).collect::<Vec<_>>()).unwrap();
    table.compact().unwrap();
    let kept = items.chunks(len as usize).enumerate().filter(|(row, _)| row % 3 != 2);
    let kept: Vec<i64> = kept.flat_map(|(_, row)| row).copied().collect();
    assert_eq!(table.nrows() * len, kept.len() as u64);
    assert_eq!(table.valid_rows(..).unwrap(), (0..table.nrows()).collect::<Vec<_>>());
    assert!(table.read::<i64>("a", ..).unwrap() == kept);
}

#[test]
fn structs_are_rows() {
    #[derive(Debug, Clone, PartialEq, Row)]
    struct Reading {
        id: u64,
        small: i8,
        #[row(name = "°C", spec = ItemType::from(ItemKind::Float32).with("ge", -273.15))]
        celsius: f32,
        exact: Option<f64>,
        is_valid: Option<bool>,
        name: Option<String>,
        #[row(spec = ItemKind::String { max_length: 4 })]
        short: String,
        #[row(spec = ItemKind::Dictionary { ordered: false })]
        r#type: String,
        raw: Vec<u8>,
        codes: Option<Vec<u16>>,
        words: Vec<String>,
        any: Value,
        #[row(spec = ItemKind::Timestamp { unit: blosc2_store::TimeUnit::Seconds, timezone: None })]
        time: i64,
    }
    let reading = |id: u64| Reading {
        id,
        small: -7,
        celsius: 0.5,
        exact: id.is_multiple_of(2).then_some(0.1),
        is_valid: id.is_multiple_of(3).then_some(true),
        name: (id % 2 == 1).then(|| "né".repeat(id as usize % 4)),
        short: "é".to_owned(),
        r#type: format!("type {}", id % 3),
        raw: vec![0, 255],
        codes: id.is_multiple_of(2).then(|| vec![1, u16::MAX]),
        words: vec!["a".to_owned(); id as usize % 3],
        any: Value::List(vec![id.into(), Value::None]),
        time: i64::MAX,
    };
    let rows: Vec<Reading> = (0..50).map(reading).collect();
    let mut table = CTable::in_memory(&Reading::schema()).unwrap();
    table.append_rows(&rows[..20]).unwrap();
    table.append_rows(&rows[20..]).unwrap();
    table.append_rows::<Reading>(&[]).unwrap();
    assert_eq!(table.rows::<Reading>(..).unwrap(), rows);
    assert_eq!(table.rows::<Reading>([49, 3]).unwrap(), [reading(49), reading(3)]);
    assert_eq!(table.column("°C").unwrap().kind(), &ItemKind::Float32);
    assert!(table.column("type").is_some());

    let mut cold = reading(1);
    cold.celsius = -300.0;
    assert_eq!(table.append_rows(&[cold]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(table.nrows(), 50);

    #[derive(Debug, Row)]
    struct Part {
        id: u64,
        exact: f64,
    }
    let error = table.rows::<Part>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch, "a row is null: {error}");
    assert_eq!(table.rows::<Part>([0, 2]).unwrap().len(), 2);
    #[derive(Debug, Row)]
    struct Other {
        other: u64,
    }
    assert_eq!(table.rows::<Other>(..).unwrap_err().kind(), ErrorKind::NotFound);
}

/// Reads never panic for damaged offsets and batches; neither do changes.
#[test]
fn damaged_columns_are_not_changed() {
    let schema = Schema::new()
        .column("text", ItemKind::Utf8)
        .column("list", ItemKind::List(blosc2_store::ItemKind::Int8.into()));
    let mut table = CTable::in_memory(&schema).unwrap();
    let lists = vec![Value::List(vec![1.into()]); 4];
    let texts = [Some("a"), Some("bcd"), Some("ef"), Some("g")];
    table.append([("text", Data::texts(texts)), ("list", Data::values(lists))]).unwrap();
    table.delete_rows(1..2).unwrap();
    let frame = table.to_cframe().unwrap();
    let key = "/_cols/text";
    for offsets in [
        [0, 1, 9, 6, 7],
        [0, 1, i64::MIN, 6, 7],
        [0, 1, i64::MAX, 6, 7],
        [-1, 1, 4, 6, 7],
        [0, 1, 4, 6, 700],
        [3, 1, 4, 6, 7],
    ] {
        let schunk = OpenOptions::new().write(true).open(frame.clone()).unwrap();
        let mut store = EmbedStore::from_schunk(schunk).unwrap();
        let offsets = NDArray::from_slice(&offsets, [5]).unwrap();
        assert!(store.contains(key));
        store.insert(key, offsets.schunk()).unwrap();
        let bytes = store.into_schunk().into_cframe().unwrap();
        let open = || CTable::from_cframe(bytes.clone()).unwrap();
        let kind = |result: blosc2::Result<()>| result.unwrap_err().kind();
        let text = || Data::texts([Some("long enough")]);
        assert_eq!(kind(open().update("text", 0..1, text())), ErrorKind::InvalidData);
        assert_eq!(kind(open().compact()), ErrorKind::InvalidData);
    }
}
