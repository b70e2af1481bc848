//! Limits of memory and of counts: those that are set when a container is opened reach everything in it, and what was
//! written is read with the default limits.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use blosc2::{
    CParams, ErrorKind, Limit, Limits, NDArray, OpenOptions, Result, SChunk, SaveOptions, Special,
    Target, Value,
};
use blosc2_store::{
    BatchArray, CTable, Data, EmbedStore, ItemKind, ItemType, ListArray, Object, ObjectArray,
    Schema, Tensor, TreeStore,
};
use proptest::prelude::*;

use crate::common::{Rng, repeats};

/// More chunks than an embedded store of the objects below has, and fewer than each of these objects.
const CHUNKS: u64 = 50;
/// More bytes than the frame of an object below, and fewer than reading its data takes.
const MAX_READ: u64 = 20_000;

/// An object of each kind with at least 100 chunks, except that of a tensor, whose chunks are large.
fn objects() -> Vec<(&'static str, SChunk)> {
    let numbers = vec![7; 1000];
    let array =
        NDArray::builder().chunk_shape([400]).block_shape([400]).zeros::<u8>([40_000]).unwrap();
    let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
    schunk.fill(Special::Zeros, 40_000, 400).unwrap();
    let mut objects = ObjectArray::in_memory().unwrap();
    let mut batches = BatchArray::in_memory().unwrap();
    let list = ListArray::in_memory(ItemKind::Int32, false).unwrap().list_type().clone();
    let options = OpenOptions::new();
    let mut lists =
        ListArray::new_in(options.open(Target::memory()).unwrap(), list.with("batch_rows", 1))
            .unwrap();
    for _ in 0..100 {
        objects.append(&numbers).unwrap();
        batches.append(&[&numbers]).unwrap();
        lists.append(Some(&numbers)).unwrap();
    }
    let mut store = EmbedStore::in_memory().unwrap();
    store.insert("/inner", array.schunk()).unwrap();
    vec![
        ("array", array.into_schunk()),
        ("super-chunk", schunk),
        ("object array", objects.into_schunk()),
        ("batch array", batches.into_schunk()),
        ("list array", lists.into_schunk().unwrap()),
        ("tensor", Tensor::from_slice(&[0u8; 40_000], &[40_000]).unwrap().into_schunk()),
        ("embedded store", store.into_schunk()),
    ]
}

fn schema() -> Schema {
    let kind = ItemKind::NDArray { shape: vec![400], dtype: blosc2::Dtype::parse("|u1").unwrap() };
    Schema::new().column("a", kind).expected_rows(1)
}

fn fill(table: &mut CTable) {
    let dtype = blosc2::Dtype::parse("|u1").unwrap();
    table.append([("a", Data::bytes(dtype, vec![5; 40_000]))]).unwrap();
    table.finish().unwrap();
}

/// Reads all data of an object, in one read if it is not larger than a chunk.
fn read(object: Object) -> Result<()> {
    match object {
        Object::NDArray(array) => array.read::<Vec<u8>>(..).map(drop),
        Object::SChunk(schunk) => schunk.read::<u8>(..).map(drop),
        Object::Tensor(tensor) => tensor.read::<u8>().map(drop),
        Object::ObjectArray(array) => array.get(99).map(drop),
        Object::BatchArray(array) => array.batch(99).map(drop),
        Object::ListArray(array) => array.get(99).map(drop),
        Object::CTable(table) => table.values("a", ..).map(drop),
        Object::EmbedStore(store) => read(store.get("/inner")?),
        other => panic!("a {}", other.kind()),
    }
}

/// Checks that `reach`, which opens a container with limits and reads an object in it, is limited by each of them.
fn check(what: &str, reach: impl Fn(Limits, Option<u64>) -> Result<()>) {
    let limits = Limits::default();
    reach(limits, None).unwrap_or_else(|error| panic!("{what}: {error}"));
    let error = reach(limits, Some(MAX_READ)).expect_err(what);
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{what}: {error}");
    if what.contains("tensor") {
        return;
    }
    let error = reach(Limits { chunks: CHUNKS, ..limits }, None).expect_err(what);
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{what}: {error}");
    let exceeded = error.exceeded().unwrap_or_else(|| panic!("{what}: {error}"));
    assert_eq!(exceeded.limit, Limit::Opening(blosc2_format::Limit::Chunks), "{what}");
}

fn get(store: Object, key: &str) -> Result<Object> {
    match store {
        Object::TreeStore(store) => store.get(key),
        Object::EmbedStore(store) => store.get(key),
        other => panic!("a {}", other.kind()),
    }
}

#[test]
fn limits_reach_the_objects_in_a_container() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut tree = TreeStore::create(path("a.b2d")).unwrap();
    let mut embedded = EmbedStore::create(path("a.b2e")).unwrap();
    for (kind, schunk) in objects() {
        tree.insert(&format!("/{kind}"), &schunk).unwrap();
        embedded.insert(&format!("/{kind}"), &schunk).unwrap();
    }
    fill(&mut tree.create_table("/group/table", &schema()).unwrap());
    let mut table = CTable::in_memory(&schema()).unwrap();
    fill(&mut table);
    let frame = EmbedStore::from_cframe(table.to_cframe().unwrap()).unwrap();
    embedded.insert("/table", frame.schunk()).unwrap();
    tree.insert("/embedded table", frame.schunk()).unwrap();
    tree.pack(path("a.b2z")).unwrap();
    drop(tree);
    drop(embedded);
    fill(&mut CTable::create(path("table.b2d"), &schema()).unwrap());
    fill(&mut CTable::create(path("table.b2z"), &schema()).unwrap());
    fs::write(path("table.b2e"), table.to_cframe().unwrap()).unwrap();

    let tables = ["group/table", "embedded table"];
    let kinds: Vec<_> = objects().into_iter().map(|(kind, _)| kind).collect();
    for (name, extra) in [("a.b2d", &tables[..]), ("a.b2z", &tables), ("a.b2e", &["table"])] {
        for kind in kinds.iter().chain(extra) {
            let key = format!("/{kind}");
            check(&format!("{name}{key}"), |limits, max_read| {
                read(get(Object::open_with_limits(path(name), limits, max_read)?, &key)?)
            });
            if name == "a.b2e" {
                continue;
            }
            check(&format!("{name}{key}, for changing"), |limits, max_read| {
                let mut store = TreeStore::open_rw_with_limits(path(name), limits, max_read)?;
                read(store.edit(&key)?)
            });
        }
    }
    for name in ["table.b2d", "table.b2z", "table.b2e"] {
        check(name, |limits, max_read| {
            read(Object::open_with_limits(path(name), limits, max_read)?)
        });
    }
    for name in ["table.b2d", "table.b2z"] {
        check(&format!("{name}, for changing"), |limits, max_read| {
            let table = CTable::open_rw_with_limits(path(name), limits, max_read)?;
            // A copy of the array, because the table can change it.
            table.array("a")?.read::<Vec<u8>>(..).map(drop)
        });
    }
    for name in ["a.b2z", "a.b2e"] {
        for kind in kinds.iter().filter(|kind| **kind != "tensor") {
            let bytes = fs::read(path(name)).unwrap();
            check(&format!("{name}/{kind}, from a source"), |limits, max_read| {
                let source = bytes.clone();
                let store = Object::open_source_with_limits(source, limits, max_read)?;
                read(get(store, &format!("/{kind}"))?)
            });
        }
    }
}

/// A frame with one chunk more than readers allow by default.
fn over_the_limit() -> (SChunk, Limits) {
    let limits = Limits { chunks: (1 << 24) + 1, ..Limits::default() };
    let mut schunk = OpenOptions::new().limits(limits).create_new(true).open(Vec::new()).unwrap();
    schunk.fill(Special::Zeros, limits.chunks, 1).unwrap();
    (schunk, limits)
}

#[test]
fn raised_limits_reach_the_objects_in_a_container() {
    let (schunk, limits) = over_the_limit();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut tree = TreeStore::create(path("a.b2d")).unwrap();
    tree.insert("/a", &schunk).unwrap();
    let mut embedded = EmbedStore::in_memory().unwrap();
    embedded.insert("/a", &schunk).unwrap();
    tree.insert("/e", embedded.schunk()).unwrap();
    tree.pack(path("a.b2z")).unwrap();
    drop(tree);
    let opened = |name: &str, limits, key: &str| -> Result<u64> {
        let Object::TreeStore(store) = Object::open_with_limits(path(name), limits, None)? else {
            panic!("a store");
        };
        match store.get(key)? {
            Object::SChunk(schunk) => Ok(schunk.nchunks() as u64),
            Object::EmbedStore(store) => Ok(store.frame("/a")?.nchunks() as u64),
            other => panic!("a {}", other.kind()),
        }
    };
    for name in ["a.b2d", "a.b2z"] {
        for key in ["/a", "/e"] {
            let error = opened(name, Limits::default(), key).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TooLarge, "{name}{key}");
            assert_eq!(opened(name, limits, key).unwrap(), limits.chunks, "{name}{key}");
        }
    }
}

/// A copy of a store has no search indexes. An array that cannot be opened may have some.
#[test]
fn copies_of_stores_open_arrays_with_the_limits_of_the_store() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let array = NDArray::builder().chunk_shape([1]).block_shape([1]).zeros::<u8>([100]).unwrap();
    let mut schunk =
        OpenOptions::new().write(true).open(array.schunk().to_cframe().unwrap()).unwrap();
    schunk.vlmeta_mut().set_value("blosc2_indexes", &Value::Map(vec![])).unwrap();
    let mut store = TreeStore::create(path("a.b2d")).unwrap();
    store.insert("/a", &schunk).unwrap();
    drop(store);
    // An index of Python, which `insert` does not copy.
    let file = path("a.b2d").join("a.b2nd");
    fs::remove_file(&file).unwrap();
    save_with_index(&schunk, &file);
    let has_index = |path: &Path| {
        let store = TreeStore::open(path).unwrap();
        store.schunk("/a").unwrap().vlmeta().contains("blosc2_indexes")
    };
    assert!(has_index(&path("a.b2d")));
    let low = Limits { chunks: CHUNKS, ..Limits::default() };
    let store = TreeStore::open_with_limits(path("a.b2d"), low, None).unwrap();
    for error in [store.pack(path("b.b2z")).unwrap_err(), store.unpack(path("b.b2d")).unwrap_err()]
    {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
    assert!(!path("b.b2z").exists() && !path("b.b2d").exists());
    let store = TreeStore::open(path("a.b2d")).unwrap();
    store.pack(path("b.b2z")).unwrap();
    store.unpack(path("b.b2d")).unwrap();
    assert!(!has_index(&path("b.b2z")) && !has_index(&path("b.b2d")));
}

fn save_with_index(schunk: &SChunk, path: &Path) {
    SaveOptions::new().save(&schunk, path).unwrap();
    let mut copy = SChunk::open_rw(path).unwrap();
    copy.vlmeta_mut().set_value("blosc2_indexes", &Value::Map(vec![])).unwrap();
}

#[test]
fn tensors_have_as_many_dimensions_as_their_readers_allow() {
    let shape = [1; 255];
    let tensor = Tensor::from_slice(&[5u8], &shape[..254]).unwrap();
    let tensor = Tensor::from_cframe(tensor.to_cframe().unwrap()).unwrap();
    assert_eq!(tensor.read::<u8>().unwrap(), [5]);
    let error = Tensor::from_slice(&[5u8], &shape).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

/// What cannot be opened is not created.
#[test]
fn tables_that_readers_refuse_are_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let column = |default: Value| ItemType::from(ItemKind::Object).with("default", default);
    let deep = (0..126).fold(Value::None, |value, _| Value::List(vec![value]));
    let long = || Value::from("x".repeat(17 << 20));
    let wide = || Value::List(vec![1.into(); 1_000_000]);
    let cases = [
        (column(deep), 1, ErrorKind::InvalidArgument),
        (column(long()), 1, ErrorKind::TooLarge),
        (column(wide()), 1, ErrorKind::TooLarge),
        (ItemKind::Int8.into(), 1 << 44, ErrorKind::TooLarge),
    ];
    for (column, rows, kind) in cases {
        let schema = Schema::new().column("a", column).expected_rows(rows);
        let error = CTable::create(&path, &schema).unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
        assert!(!path.exists());
    }
    let mut table = CTable::create(&path, &Schema::new().column("a", ItemKind::Int8)).unwrap();
    let error = table.add_column("b", column(long()), None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    drop(table);
    assert_eq!(CTable::open(&path).unwrap().columns().len(), 1);
}

/// A store has at most 2^20 groups.
#[test]
fn stores_have_as_many_groups_as_their_readers_allow() {
    const MAX: usize = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    drop(TreeStore::create(&path).unwrap());
    // Entries of the embedded store, as of Python: each key has 250 groups, and the last key the rest.
    let mut keys: Vec<String> =
        (0..MAX / 250).map(|n| format!("/{n}{}", "/a".repeat(250))).collect();
    keys.push(format!("/rest{}", "/a".repeat(MAX % 250 - 2)));
    set_keys(&path, &keys);
    let array = NDArray::from_slice(&[1u8], &[1]).unwrap();
    let mut store = TreeStore::open_rw(&path).unwrap();
    // Two groups are left.
    store.insert("/b/c/x", array.schunk()).unwrap();
    store.insert("/b/c/y", array.schunk()).unwrap();
    let error = store.insert("/b/d/x", array.schunk()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    assert_eq!(store.set_attribute("/e", "a", &1).unwrap_err().kind(), ErrorKind::TooLarge);
    drop(store);
    let mut store = TreeStore::open_rw(&path).unwrap();
    assert_eq!(store.array("/b/c/y").unwrap().read::<Vec<u8>>(..).unwrap(), [1]);
    // Groups that are removed do not count.
    store.remove("/b").unwrap();
    store.insert("/d/e/x", array.schunk()).unwrap();
    drop(store);
    assert!(TreeStore::open(&path).unwrap().contains("/d/e/x"));
}

/// Replaces the map of the embedded store of a store: each key has the same frame.
fn set_keys(path: &Path, keys: &[String]) {
    let mut schunk = OpenOptions::new().write(true).open(path.join("embed.b2e")).unwrap();
    let frame = NDArray::from_slice(&[1u8], &[1]).unwrap().schunk().to_cframe().unwrap();
    schunk.append(&frame).unwrap();
    let place = Value::from([("offset", 0.into()), ("length", (frame.len() as u64).into())]);
    let map = keys.iter().map(|key| (Value::from(key.as_str()), place.clone()));
    let map = Value::from([
        ("embed_map", Value::Map(map.collect())),
        ("current_offset", (frame.len() as u64).into()),
    ]);
    schunk.vlmeta_mut().set_value("estore_metadata", &map).unwrap();
}

/// Bytes of all magnitudes up to 2 MiB, and of any compressibility.
fn contents() -> impl Strategy<Value = Vec<u8>> {
    let len = || (0..=21u32).prop_flat_map(|bits| 0..=1usize << bits);
    (len(), len(), any::<u64>())
        .prop_map(|(len, period, seed)| Rng(seed).repeating(len, period.min(1 << 18) + 1))
}

/// Keys of any depth and length, also beyond what is allowed.
fn keys() -> impl Strategy<Value = String> {
    // Each access to a file opens all directories above it.
    let parts = prop_oneof![6 => 1..5usize, 1 => 250..260usize];
    (parts, 1..9usize, "[a-z]")
        .prop_map(|(parts, len, char)| format!("/{}", char.repeat(len)).repeat(parts))
}

/// Names of columns, some of several levels.
fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,9}", r"[a-z.\\/]{1,30}", "[a-z]{1,300}", "(a\\.){1,300}b"]
}

/// Types with up to 33 levels, one more than is allowed.
fn item_types() -> impl Strategy<Value = ItemType> {
    let levels = prop_oneof![0..3usize, 30..34usize];
    (levels, any::<bool>()).prop_map(|(levels, of_structs)| {
        (0..levels).fold(ItemType::from(ItemKind::Int8), |item, level| match of_structs {
            true if level % 2 == 0 => ItemKind::Struct(vec![("a".to_owned(), item)]).into(),
            _ => ItemKind::List(item.into()).into(),
        })
    })
}

/// Lists of lists, which JSON can represent up to some depth.
fn defaults() -> impl Strategy<Value = Value> {
    prop_oneof![0..4usize, 110..130usize].prop_map(|levels| {
        (0..levels).fold(Value::from("text"), |value, _| Value::List(vec![value]))
    })
}

fn columns() -> impl Strategy<Value = ItemType> {
    prop_oneof![
        Just(ItemKind::Float64.into()),
        Just(ItemType::from(ItemKind::Utf8).nullable()),
        defaults().prop_map(|default| ItemType::from(ItemKind::Object).with("default", default)),
        item_types().prop_map(|item| ItemKind::List(item.into()).into()),
        (0..20u32).prop_map(|bits| {
            ItemType::from(ItemKind::VlString).with("default", "x".repeat(1 << bits))
        }),
    ]
}

fn cases(long: usize) -> ProptestConfig {
    ProptestConfig { cases: repeats(long) as u32, failure_persistence: None, ..Default::default() }
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn arrays_of_values_are_read_with_the_default_limits(
        items in prop::collection::vec(contents(), 1..6),
        batch in 1..4usize,
        per_block in prop::option::of(1..4u64),
        level in 0..=9u8,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let params = CParams::new().level(level);
        let create = |name: &str| {
            OpenOptions::new().create_new(true).cparams(&params).open(path(name)).unwrap()
        };
        let values: Vec<Value> = items.into_iter().map(Value::Bytes).collect();

        let mut objects = ObjectArray::new_in(create("objects")).unwrap();
        values.iter().try_for_each(|value| objects.append(value)).unwrap();
        objects.set(0, &values[values.len() - 1]).unwrap();
        objects.set(0, &values[0]).unwrap();
        drop(objects);
        let objects = ObjectArray::open(path("objects")).unwrap();
        prop_assert!(objects.iter().map(Result::unwrap).eq(values.iter().cloned()));

        let mut batches = BatchArray::new_in(create("batches"), per_block).unwrap();
        values.chunks(batch).try_for_each(|items| batches.append(items)).unwrap();
        drop(batches);
        let batches = BatchArray::open(path("batches")).unwrap();
        prop_assert!(batches.batches().map(Result::unwrap).eq(values.chunks(batch)));
        let items = (0..values.len() as u64).map(|index| batches.item(index).unwrap());
        prop_assert!(items.eq(values.iter().cloned()));

        for storage in ["batch", "vl"] {
            let item = ItemType::from(ItemKind::VlBytes);
            let list = ListArray::in_memory(item, false).unwrap().list_type().clone();
            let list = list.with("storage", storage).with("batch_rows", batch as u64);
            let mut lists = ListArray::new_in(create(storage), list).unwrap();
            let rows = values.chunks(2);
            rows.clone().try_for_each(|row| lists.append(Some(row))).unwrap();
            drop(lists);
            let lists = ListArray::open(path(storage)).unwrap();
            prop_assert!(lists.iter().map(|row| row.unwrap().unwrap()).eq(rows));
        }
    }

    #[test]
    fn schemas_of_tables_are_read_with_the_default_limits(
        specs in prop::collection::vec((names(), columns()), 1..4),
        added in (names(), columns()),
        renamed in names(),
        rows in (0..60u32).prop_map(|bits| 1u64 << bits),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2z");
        let schema = specs.iter().fold(Schema::new(), |schema, (name, column)| {
            schema.column(name, column.clone())
        });
        let mut table = match CTable::create(&path, &schema.expected_rows(rows)) {
            Ok(table) => table,
            Err(_) => return Ok(()),
        };
        // Each change can be refused.
        let _ = table.add_column(&added.0, added.1, None);
        let _ = table.rename_column(&specs[0].0, &renamed);
        table.finish().unwrap();
        let expected: Vec<ItemType> =
            table.columns().iter().map(|column| column.spec().clone()).collect();
        drop(table);
        let table = CTable::open(&path).unwrap();
        let found = table.columns().iter().map(|column| column.spec().clone());
        prop_assert_eq!(found.collect::<Vec<_>>(), expected);
        for column in table.columns() {
            prop_assert!(table.values(column.name(), ..).unwrap().is_empty());
        }
    }
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn entries_of_stores_are_read_with_the_default_limits(
        entries in prop::collection::vec((keys(), contents()), 1..5),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        // A store in a directory syncs each directory.
        let mut tree = TreeStore::create(path("a.b2z")).unwrap();
        let mut embedded = EmbedStore::create(path("a.b2e")).unwrap();
        let mut written: [BTreeMap<String, Vec<u8>>; 2] = Default::default();
        for (key, content) in entries {
            let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
            if !content.is_empty() {
                schunk.append(&content).unwrap();
            }
            schunk.vlmeta_mut().set("content", &content).unwrap();
            if tree.insert(&key, &schunk).is_ok() {
                written[0].insert(key.clone(), content.clone());
            }
            if embedded.insert(&key, &schunk).is_ok() {
                written[1].insert(key, content);
            }
        }
        for key in written[0].keys() {
            let group = key.rsplit_once('/').unwrap().0;
            let group = if group.is_empty() { "/" } else { group };
            // The name of the file of the attributes may be too long for the system.
            if tree.set_attribute(group, "group", group).is_ok() {
                let attributes = tree.attributes(group).unwrap();
                prop_assert_eq!(attributes, [("group".to_owned(), group.into())]);
            }
        }
        tree.finish().unwrap();
        drop((tree, embedded));
        for (name, written) in [("a.b2z", &written[0]), ("a.b2e", &written[1])] {
            let store = Object::open(path(name)).unwrap();
            let keys: Vec<String> = match &store {
                Object::TreeStore(store) => store.keys().map(str::to_owned).collect(),
                Object::EmbedStore(store) => store.keys().map(str::to_owned).collect(),
                other => panic!("a {}", other.kind()),
            };
            prop_assert_eq!(BTreeSet::from_iter(&keys), written.keys().collect());
            for (key, content) in written {
                let schunk = match &store {
                    Object::TreeStore(store) => store.schunk(key).unwrap(),
                    Object::EmbedStore(store) => store.frame(key).unwrap(),
                    other => panic!("a {}", other.kind()),
                };
                prop_assert!(schunk.read::<u8>(..).unwrap() == *content, "{name}{key}");
                prop_assert!(schunk.vlmeta().get("content").unwrap().as_ref() == Some(content));
            }
        }
    }
}
