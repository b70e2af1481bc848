//! Untrusted metadata of stores and containers whose data have no fault.

use std::fs;
use std::sync::LazyLock;

use blosc2::{CParams, Element, ErrorKind, NDArray, OpenOptions, Result, SChunk, Value};
use blosc2_store::{BatchArray, CTable, EmbedStore, ItemKind, ListArray, Object, TreeStore};

use crate::store::{columns, object, store_zip};
use crate::walk::open;

/// The maximum number of keys of an input.
const MAX_KEYS: usize = 8;
/// The maximum length of an input. `crates/store/tests/containers/hostile.rs` tests larger metadata.
const MAX_LEN: usize = 64 << 10;

/// Puts the input, without its first byte, where the first byte selects, and reads and changes the container.
pub fn store_metadata(input: &[u8]) {
    let Some((kind, content)) = input.split_first() else { return };
    if content.len() > MAX_LEN {
        return;
    }
    match kind % 8 {
        0 => table(content),
        1 => embed_map(content),
        2 => store_zip(content),
        3 => keys(content),
        4 => item_type(content),
        5 => batch_lengths(content),
        6 => read(&with_vlmeta(&PLAIN, "__pack_tensor__", content)),
        _ => read(&with_vlmeta(&CARRIER, "b2o", content)),
    }
}

/// Frames in memory without a fault, to which the metadata is added.
static PLAIN: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).expect("a new frame");
    schunk.append(&[7u8; 24]).expect("24 bytes in memory");
    schunk.into_cframe().expect("a frame in memory")
});

static CARRIER: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let options = OpenOptions::new().meta("b2o", [0xc0]);
    options.create_new(true).open(Vec::new()).and_then(SChunk::into_cframe).expect("a new frame")
});

static BATCHES: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut batches = BatchArray::in_memory().expect("a new array");
    batches.append(&[1, 2, 3]).expect("items in memory");
    batches.append(&["text"]).expect("items in memory");
    batches.append(&[4, 5, 6, 7]).expect("items in memory");
    batches.into_schunk().into_cframe().expect("a frame in memory")
});

/// A store with the columns of a table, without its schema.
static TABLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let mut store = EmbedStore::in_memory().expect("a new store");
    let mut put = |key: &str, schunk: &SChunk| store.insert(key, schunk).expect("a valid key");
    put("/_valid_rows", array(&[true, true, false, true]).schunk());
    put("/_cols/a", array(&[1, 2, 3, 4]).schunk());
    put("/_cols/b/c", array(&[1.5, 2.5, f64::NAN, 4.5]).schunk());
    put("/_cols/d", array(&[*b"one\0", *b"two\0", *b"ten\0", *b"\xff\0\0\0"]).schunk());
    let mut batches = BatchArray::in_memory().expect("a new array");
    batches.append(&["some", "texts", "of a", "column"]).expect("items in memory");
    put("/_cols/e", batches.schunk());
    let mut lists = ListArray::in_memory(ItemKind::Int32, true).expect("a new array");
    (0..4).for_each(|row| lists.append(Some(&[row; 2])).expect("a row in memory"));
    put("/_cols/f", lists.schunk().expect("rows in memory"));
    store.into_schunk().into_cframe().expect("a frame in memory")
});

fn array<T: Element>(items: &[T]) -> NDArray {
    NDArray::from_slice(items, items.len()).expect("an array in memory")
}

/// The frame with another variable-length metalayer. Its content is compressed, so that it can be larger.
fn with_vlmeta(frame: &[u8], name: &str, content: &[u8]) -> Vec<u8> {
    let mut schunk = writable(frame);
    let mut layers = schunk.vlmeta_mut().with_reserved();
    layers.set(name, content).expect("a metalayer in memory");
    schunk.into_cframe().expect("a frame in memory")
}

fn writable(frame: &[u8]) -> SChunk {
    open(frame, true).expect("a frame without a fault")
}

/// Reads whatever container a frame is.
fn read(frame: &[u8]) {
    if let Ok(container) = open(frame, false).and_then(Object::from_schunk) {
        object(container, 0);
    }
}

fn table(schema: &[u8]) {
    let Ok(schema) = str::from_utf8(schema) else { return };
    let mut meta = SChunk::in_memory::<u8>(CParams::new()).expect("a new super-chunk");
    for (name, text) in [("kind", "ctable"), ("schema", schema)] {
        meta.vlmeta_mut().set_value(name, text).expect("a metalayer in memory");
    }
    let mut store = EmbedStore::from_schunk(writable(&TABLE)).expect("a store without a fault");
    store.insert("/_meta", &meta).expect("a valid key");
    let frame = store.into_schunk().into_cframe().expect("a frame in memory");
    if let Ok(table) = CTable::from_cframe(frame) {
        columns(&table);
    }
}

fn embed_map(map: &[u8]) {
    let frame = with_vlmeta(&TABLE, "estore_metadata", map);
    read(&frame);
    let Ok(mut store) = EmbedStore::from_schunk(writable(&frame)) else { return };
    let first = store.keys().next().map(str::to_owned);
    if let Some(key) = first {
        store.remove(&key).expect("the store contains the key");
        assert!(!store.contains(&key));
    }
    // A reference may contain what can only be read.
    if store.insert("/new", &writable(&PLAIN)).is_ok() {
        assert_eq!(store.frame("/new").expect("it was added").nbytes(), 24);
    }
}

/// Each line is a key.
fn keys(text: &[u8]) {
    let text = String::from_utf8_lossy(text);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store.b2z");
    let mut embed = EmbedStore::in_memory().expect("a new store");
    let mut tree = TreeStore::create(&path).expect("a new store");
    let schunk = writable(&PLAIN);
    for store_key in ["/a", "/group/b"] {
        embed.insert(store_key, &schunk).expect("a valid key");
        tree.insert(store_key, &schunk).expect("a valid key");
    }
    for key in text.split('\n').take(MAX_KEYS) {
        embed_key(&mut embed, key, &schunk);
        tree_key(&mut tree, key, &schunk);
    }
    let kept: Vec<String> = tree.keys().map(str::to_owned).collect();
    tree.finish().expect("all files are in a temporary folder");
    drop(tree);
    let names: Vec<_> = fs::read_dir(folder.path()).expect("the folder").collect();
    assert_eq!(names.len(), 1, "files outside the store: {names:?}");
    let tree = TreeStore::open(&path).expect("the store was written");
    assert!(tree.keys().eq(kept.iter().map(String::as_str)), "{kept:?}");
}

fn embed_key(store: &mut EmbedStore, key: &str, schunk: &SChunk) {
    let is_there = store.contains(key);
    assert_eq!(store.get(key).is_ok(), is_there);
    assert_eq!(store.frame(key).is_ok(), is_there);
    if is_there {
        store.remove(key).expect("the store contains the key");
    } else {
        let error = store.remove(key).expect_err("the store does not contain the key");
        assert_eq!(error.kind(), ErrorKind::NotFound);
        if store.insert(key, schunk).is_ok() {
            assert_eq!(store.frame(key).expect("it was added").nbytes(), 24);
        }
    }
}

fn tree_key(store: &mut TreeStore, key: &str, schunk: &SChunk) {
    drop((store.attributes(key), store.children(key), store.array(key).is_ok()));
    drop((store.set_attribute(key, "name", "value"), store.remove_attribute(key, "name")));
    let is_there = store.contains(key);
    assert_eq!(store.get(key).is_ok(), is_there);
    if is_there {
        assert!(store.schunk(key).is_ok());
        drop(store.edit(key));
        drop(store.remove(key));
    } else if store.insert(key, schunk).is_ok() {
        assert!(store.contains(key));
        assert_eq!(store.schunk(key).expect("it was added").nbytes(), 24);
    } else {
        drop(store.create_array(key, |builder| builder.zeros::<u8>(&[3])));
    }
}

fn item_type(metadata: &[u8]) {
    let batches = BatchArray::in_memory().expect("a new array");
    let mut schunk = batches.into_schunk();
    // The metalayer is longer than that of any list array if the input is.
    if schunk.meta_mut().set("listarray", metadata).is_err() {
        return;
    }
    let frame = schunk.into_cframe().expect("a frame in memory");
    read(&frame);
    let Ok(mut lists) = ListArray::from_schunk(writable(&frame)) else { return };
    drop((lists.append(Some(&[1, 2])), lists.append(Some(&["text"])), lists.append::<i32>(None)));
    drop((lists.append(Some(&[Value::from([("a", 1.into())])])), lists.flush()));
    drop((lists.get(0), lists.set(0, Some(&[3]))));
    let list = lists.list_type().clone();
    let copy = OpenOptions::new()
        .create_new(true)
        .open(Vec::new())
        .and_then(|to| ListArray::new_in(to, list.clone()));
    if let Ok(copy) = copy {
        let frame = copy.into_schunk().and_then(SChunk::into_cframe).expect("a frame in memory");
        let again = ListArray::from_schunk(writable(&frame)).expect("it was written here");
        assert_eq!(again.list_type(), &list);
    }
}

fn batch_lengths(lengths: &[u8]) {
    let frame = with_vlmeta(&BATCHES, "_batch_array_metadata", lengths);
    read(&frame);
    let changed = |change: fn(&mut BatchArray) -> Result<()>| {
        if let Ok(mut array) = BatchArray::from_schunk(writable(&frame)) {
            drop((0..8).map(|item| array.item(item).is_ok()).collect::<Vec<_>>());
            drop((change(&mut array), array.nitems(), array.batch_len(3), array.item(u64::MAX)));
            array.recount().expect("the batches have no fault");
            let counted: usize = array.batches().map(|batch| batch.expect("no fault").len()).sum();
            assert_eq!(array.nitems().expect("they were counted"), counted as u64);
            assert!(array.item(counted as u64 - 1).is_ok());
        }
    };
    changed(|array| array.append(&[8]));
    changed(|array| array.insert(1, &[8]));
    changed(|array| array.set(2, &[8, 9]));
    changed(|array| array.remove(0));
}
