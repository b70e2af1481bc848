//! Stores: Python's stores are read here, stores written here are read by Python, and each continues to change the
//! stores of the other.

use std::collections::BTreeMap;
use std::path::Path;

use crate::common::run_python;
use blosc2::{CParams, NDArray, SChunk, Value};
use blosc2_store::{EmbedStore, Object, Tensor, TreeStore};

fn array(items: &[i32]) -> NDArray {
    NDArray::from_slice(items, items.len()).unwrap()
}

fn read(object: Object) -> Vec<i32> {
    object.into_ndarray().unwrap().read(..).unwrap()
}

/// A tree with every form, threshold and kind of leaf, of a thousand nodes.
#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn stores_that_python_wrote_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import numpy as np
import blosc2

for make, name in [(blosc2.TreeStore, "tree"), (blosc2.DictStore, "dict")]:
    for threshold in [0, 1000, None]:
        for ending in ["b2d", "b2z"]:
            with make(f"{name}_{threshold}.{ending}", mode="w", threshold=threshold) as store:
                for i in range(60):
                    store[f"/g{i % 3}/n{i}"] = np.arange(i * 7, dtype="i4")
                store["/text"] = blosc2.SChunk(data=b"some text")
                # Where things are embedded, Python does not keep attributes of trees that it has closed.
                if make is blosc2.TreeStore and threshold == 0:
                    store.vlmeta["title"] = "é"
                    store["/g1"].vlmeta["pair"] = (1, [2.5])
                del store["/g0/n57"]
with blosc2.TreeStore("many.b2z", mode="w") as store:
    one = blosc2.arange(5, dtype="i4")
    for i in range(1000):
        store[f"/a{i // 100}/b{i // 10}/n{i}"] = one
with blosc2.TreeStore("none.b2z", mode="w") as store:
    pass
with blosc2.TreeStore("odd.b2d", mode="w") as store:
    store["/with space/ü"] = np.arange(3, dtype="i4")
    store["no slash"] = np.arange(4, dtype="i4")
    store["/a.b/c.d"] = np.arange(5, dtype="i4")
blosc2.DictStore("odd.b2d", mode="r").to_b2z(filename="odd.b2z")
"#;
    run_python(script, folder.path(), &[]);
    for name in ["tree", "dict"] {
        for threshold in ["0", "1000", "None"] {
            for ending in ["b2d", "b2z"] {
                let path = folder.path().join(format!("{name}_{threshold}.{ending}"));
                let Object::TreeStore(store) = Object::open(&path).unwrap() else { panic!() };
                assert_eq!(store.is_dict(), name == "dict");
                assert_eq!(store.keys().count(), 60, "{path:?}");
                for i in (0..60).filter(|&i| i != 57) {
                    let items = read(store.get(&format!("/g{}/n{i}", i % 3)).unwrap());
                    assert!(items.into_iter().eq(0..i * 7), "{path:?}");
                }
                let text = store.schunk("/text").unwrap().read::<u8>(..).unwrap();
                assert_eq!(text, b"some text");
                if name == "tree" {
                    assert!(store.groups().eq(["/g0", "/g1", "/g2"]));
                }
                if name == "tree" && threshold == "0" {
                    assert_eq!(store.attributes("/").unwrap(), [("title".into(), "é".into())]);
                    let pair = Value::Tuple(vec![1.into(), Value::List(vec![2.5.into()])]);
                    assert_eq!(store.attributes("/g1").unwrap(), [("pair".into(), pair)]);
                }
            }
        }
    }
    let store = TreeStore::open(folder.path().join("many.b2z")).unwrap();
    assert_eq!((store.keys().count(), store.groups().count()), (1000, 110));
    assert_eq!(read(store.get("/a9/b99/n999").unwrap()), [0, 1, 2, 3, 4]);
    let store = TreeStore::open(folder.path().join("none.b2z")).unwrap();
    assert_eq!((store.keys().count(), store.groups().count()), (0, 0));
    for odd in ["odd.b2d", "odd.b2z"] {
        let store = TreeStore::open(folder.path().join(odd)).unwrap();
        assert!(store.keys().eq(["/a.b/c.d", "/no slash", "/with space/ü"]), "{odd}");
        assert_eq!(read(store.get("/with space/ü").unwrap()), [0, 1, 2]);
        assert_eq!(read(store.get("/a.b/c.d").unwrap()), [0, 1, 2, 3, 4]);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn stores_that_rust_wrote_are_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["tree.b2d", "tree.b2z"] {
        let mut store = TreeStore::create(folder.path().join(name)).unwrap();
        for i in 0..100 {
            let items: Vec<i32> = (0..i * 7).collect();
            store.insert(&format!("/g{}/n{i}", i % 3), array(&items).schunk()).unwrap();
        }
        let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        schunk.append(b"some text").unwrap();
        schunk.vlmeta_mut().set_value("who", &("me", 1)).unwrap();
        store.insert("/with space/ü.x", &schunk).unwrap();
        store.create_array("/new/zeros", |make| make.zeros::<f64>(&[30, 40])).unwrap();
        let pair = Value::Tuple(vec![1.into(), Value::List(vec![2.5.into()])]);
        store.set_attribute("/g1", "pair", &pair).unwrap();
        store.set_attribute("/", "title", "é").unwrap();
        store.set_attribute("/alone", "x", &1).unwrap();
        store.finish().unwrap();
    }
    TreeStore::create(folder.path().join("none.b2z")).unwrap().finish().unwrap();
    let mut store = EmbedStore::create(folder.path().join("e.b2e")).unwrap();
    let items: Vec<i32> = (0..10_000).collect();
    store.insert("/long", array(&items).schunk()).unwrap();
    store.insert("/a/b", array(&[1]).schunk()).unwrap();
    store.insert("/a/b", array(&[2, 3]).schunk()).unwrap();
    store.insert("/gone", array(&[4]).schunk()).unwrap();
    store.remove("/gone").unwrap();
    EmbedStore::create(folder.path().join("none.b2e")).unwrap();
    let items: Vec<f32> = (0..600).map(|item| item as f32).collect();
    Tensor::from_slice(&items, &[20, 30]).unwrap().save(folder.path().join("t.bl2")).unwrap();
    Tensor::from_slice::<i16>(&[], &[0, 3]).unwrap().save(folder.path().join("none.bl2")).unwrap();
    let script = r#"
import numpy as np
import blosc2

for name in ["tree.b2d", "tree.b2z"]:
    store = blosc2.open(name, mode="r")
    assert type(store) is blosc2.TreeStore, type(store)
    leaves = {f"/g{i % 3}/n{i}" for i in range(100)} | {"/with space/ü.x", "/new/zeros"}
    groups = {"/g0", "/g1", "/g2", "/with space", "/new", "/alone"}
    assert set(store.keys()) == leaves | groups, set(store.keys()) ^ (leaves | groups)
    for i in range(100):
        assert np.array_equal(store[f"/g{i % 3}/n{i}"][:], np.arange(i * 7, dtype="i4"))
    text = store["/with space/ü.x"]
    assert text[:] == b"some text" and text.vlmeta["who"] == ["me", 1]
    zeros = store["/new/zeros"]
    assert zeros.shape == (30, 40) and zeros.dtype == np.float64 and not zeros[:].any()
    assert store.vlmeta[:] == {"title": "é"}
    assert store["/g1"].vlmeta[:] == {"pair": (1, [2.5])}
    assert store["/alone"].vlmeta[:] == {"x": 1}
assert list(blosc2.open("none.b2z", mode="r").keys()) == []

store = blosc2.EmbedStore("e.b2e", mode="r")
assert list(store.keys()) == ["/long", "/a/b"]
assert np.array_equal(store["/long"][:], np.arange(10_000, dtype="i4"))
assert np.array_equal(store["/a/b"][:], [2, 3])
# It goes on with what it finds.
with blosc2.EmbedStore("none.b2e", mode="a") as store:
    store["/x"] = np.arange(5000, dtype="i4")
    store["/y"] = np.arange(3, dtype="i4")
t = blosc2.load_array("t.bl2")
assert t.dtype == np.float32 and np.array_equal(t, np.arange(600, dtype="f4").reshape(20, 30))
none = blosc2.load_array("none.bl2")
assert none.dtype == np.int16 and none.shape == (0, 3)
"#;
    run_python(script, folder.path(), &[]);
    let store = EmbedStore::open(folder.path().join("none.b2e")).unwrap();
    assert!(read(store.get("/x").unwrap()).into_iter().eq(0..5000));
    assert_eq!(read(store.get("/y").unwrap()), [0, 1, 2]);
}

/// The expected content of a store.
#[derive(Debug, Default, Clone)]
struct Model {
    arrays: BTreeMap<String, Vec<i32>>,
    title: Option<i32>,
}

fn check(path: &Path, model: &Model) {
    let store = TreeStore::open(path).unwrap();
    assert!(store.keys().eq(model.arrays.keys()), "{path:?}");
    for (key, items) in &model.arrays {
        assert_eq!(&read(store.get(key).unwrap()), items, "{path:?}, {key}");
    }
    let title: Vec<_> =
        model.title.iter().map(|&title| ("title".to_owned(), Value::from(title))).collect();
    assert_eq!(store.attributes("/").unwrap(), title, "{path:?}");
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn both_change_a_store_in_turns() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["tree.b2d", "tree.b2z"];
    for name in names {
        TreeStore::create(folder.path().join(name)).unwrap().finish().unwrap();
    }
    let mut model = Model::default();
    for turn in 0..5 {
        for name in names {
            let path = folder.path().join(name);
            let mut store = TreeStore::open_rw(&path).unwrap();
            store.insert(&format!("/rust/n{turn}"), array(&[turn, 1]).schunk()).unwrap();
            store.insert("/both", array(&[turn]).schunk()).unwrap();
            store.set_attribute("/", "title", &turn).unwrap();
            if turn > 0 {
                store.remove(&format!("/python/n{}", turn - 1)).unwrap();
                let Object::NDArray(mut first) = store.edit("/rust/n0").unwrap() else { panic!() };
                first.append(0, &[turn]).unwrap();
            }
            store.finish().unwrap();
        }
        model.arrays.insert(format!("/rust/n{turn}"), vec![turn, 1]);
        model.arrays.insert("/both".to_owned(), vec![turn]);
        model.title = Some(turn);
        if turn > 0 {
            model.arrays.remove(&format!("/python/n{}", turn - 1));
            model.arrays.get_mut("/rust/n0").unwrap().push(turn);
        }
        let expected = serde_json::to_string(&model.arrays).unwrap();
        for name in names {
            check(&folder.path().join(name), &model);
        }
        let script = r#"
import json
import sys

import numpy as np
import blosc2

turn, expected = int(sys.argv[1]), json.loads(sys.argv[2])
for name in ["tree.b2d", "tree.b2z"]:
    with blosc2.TreeStore(name, mode="a") as store:
        leaves = {key for key in store.keys() if not isinstance(store[key], blosc2.TreeStore)}
        assert leaves == set(expected), leaves ^ set(expected)
        for key, items in expected.items():
            assert store[key][:].tolist() == items, (name, key, store[key][:])
        assert store.vlmeta["title"] == turn
        store[f"/python/n{turn}"] = np.arange(turn, dtype="i4")
        store["/both"] = np.array([-turn], dtype="i4")
        store.vlmeta["title"] = turn + 100
        first = store["/rust/n0"]
        first.resize((first.shape[0] + 1,))
        first[-1:] = np.array([-turn], dtype="i4")
        if turn % 2:
            del store[f"/rust/n{turn}"]
"#;
        run_python(script, folder.path(), &[&turn.to_string(), &expected]);
        model.arrays.insert(format!("/python/n{turn}"), (0..turn).collect());
        model.arrays.insert("/both".to_owned(), vec![-turn]);
        model.title = Some(turn + 100);
        model.arrays.get_mut("/rust/n0").unwrap().push(-turn);
        if turn % 2 == 1 {
            model.arrays.remove(&format!("/rust/n{turn}"));
        }
        for name in names {
            check(&folder.path().join(name), &model);
        }
    }
}
