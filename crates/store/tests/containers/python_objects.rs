//! Arrays of objects, of batches and of lists: Python's are read here, and those written here are read by Python.
//!
//! Beside each file, Python writes the expected values as msgpack. The values are compared through this file, which
//! has no container.

use std::path::Path;

use crate::common::{Rng, assert_same, run_python};
use blosc2::{CParams, Codec, OpenOptions, SChunk, Target, Value};
use blosc2_store::{BatchArray, ItemKind, ItemType, ListArray, ObjectArray, TimeUnit};
use serde_json::json;

/// The common part of the Python scripts.
const HEAD: &str = r#"
import json, os, sys
import numpy as np
import blosc2
from blosc2.msgpack_utils import msgpack_packb, msgpack_unpackb

def equal(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and a.shape == b.shape and (
            all(map(equal, a.ravel(), b.ravel())) if a.dtype.hasobject else a.tobytes() == b.tobytes())
    if hasattr(a, "to_cframe"):
        return type(a) is type(b) and a.to_cframe() == b.to_cframe()
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    return type(a) is type(b) and (a == b or a != a and b != b)

def metas(array):
    return [(name, array.schunk.meta[name]) for name in array.schunk.meta]

def params(array):
    c = array.schunk.cparams
    return c.codec, c.clevel, c.use_dict, c.typesize, c.splitmode, c.filters, c.filters_meta
"#;

fn python(script: &str, folder: &Path, arguments: &[&str]) {
    run_python(&[HEAD, script].concat(), folder, arguments);
}

/// The value beside a file.
fn beside(folder: &Path, file: &str) -> Value {
    let bytes = std::fs::read(folder.join([file, ".msgpack"].concat())).unwrap();
    Value::from_msgpack(&bytes).unwrap()
}

fn put_beside(folder: &Path, file: &str, value: &Value) {
    let bytes = value.to_msgpack().unwrap();
    std::fs::write(folder.join([file, ".msgpack"].concat()), bytes).unwrap();
}

/// Asserts that the bytes of the values are equal. This includes NaN.
#[track_caller]
fn assert_equal(found: &[Value], expected: &[Value], what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let same = found.to_msgpack().unwrap() == expected.to_msgpack().unwrap();
        assert!(same, "{what}: {index}: {found:?}, expected {expected:?}");
    }
}

fn list(value: Value) -> Vec<Value> {
    match value {
        Value::List(items) => items,
        other => panic!("{other:?}"),
    }
}

/// Opens a file, a directory, or a copy of a file in memory.
fn schunk(folder: &Path, file: &str) -> SChunk {
    let path = folder.join(file);
    match file.ends_with("cframe") {
        true => SChunk::open(std::fs::read(path).unwrap()).unwrap(),
        false => SChunk::open(path).unwrap(),
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn what_python_wrote_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let script = r#"
frame = blosc2.asarray(np.arange(10))
inner = blosc2.ObjectArray(); inner.append("in"); inner.append((1,))
values = [None, True, False, 0, -1, 127, 128, -33, 2**31, 2**63 - 1, -2**63, 2**64 - 1, 1.5, -0.0,
    float("inf"), "", "é" * 40, "x" * 70000, b"", b"\x00ab", b"y" * 300, [], [1, [2, ["x"]]], (), (1, (2.5,)),
    tuple(range(20)), {}, {"a": 1, "é": {"b": None}, b"c": [1, 2]}, 1 - 2j, {1, "two"}, frozenset([3]),
    np.arange(6, dtype="<f4").reshape(2, 3), np.array([("a", 1)], dtype=[("s", "S3"), ("i", ">i4")]),
    np.array([1, "x", None], dtype=object), np.float32(1.5), np.int64(7), frame, frame.schunk, inner,
    list(range(5000)), "text with many words, " * 5000]
lists = {
    "i4": (blosc2.int32(), [[1, 2, 3], [], [-5], list(range(1000))] * 30),
    "nulls": (blosc2.int64(nullable=True), [[1, None, 3], None, [], [None]] * 700),
    "text": (blosc2.vlstring(), [["a", "é" * 50], [], ["x" * 10000]] * 10),
    "short": (blosc2.string(max_length=5, nullable=True), [["abc", None], None, ["", "12345"]]),
    "bytes": (blosc2.bytes(), [[b"a", b""], None]),
    "bools": (blosc2.bool(), [[True, False], []]),
    "f4": (blosc2.float32(ge=-1, lt=10.5), [[0.1, -1.0], None, [float("nan")]]),
    "times": (blosc2.timestamp(unit="ms", timezone="UTC"), [["2020-01-01T00:00:00"], [5]]),
    "complex": (blosc2.complex64(), [[1 - 0.1j]]),
    "dict": (blosc2.dictionary(), [["a", "b"]]),
    "lists": (blosc2.list(blosc2.list(blosc2.uint8(le=200), nullable=True)), [[[[1, 2], None], []], []]),
    "structs": (blosc2.struct({"name": blosc2.utf8(), "at": blosc2.list(blosc2.float64())}, nullable=True),
        [[{"name": "x", "at": [1.5, 2.5]}, None], None, [{"at": [], "name": ""}]]),
}
made = []

def store(kind, name, make, fill):
    for where, contiguous in [("file", True), ("directory", False), ("cframe", None)]:
        path = f"{kind}-{name}.{where}"
        args = dict(contiguous=True) if contiguous is None else dict(urlpath=path, mode="w", contiguous=contiguous)
        array = make(args)
        content = fill(array)
        array.vlmeta["own"] = ("by", name)
        if contiguous is None:
            open(path, "wb").write(array.to_cframe())
        if kind == "l":
            extra = array.items_per_block, array.meta["listarray"]
        else:
            extra = array.meta["batcharray"]["items_per_block"] if kind == "b" else None, None
        open(path + ".msgpack", "wb").write(msgpack_packb([content, *extra]))
        made.append(path)

def fill_objects(array):
    array.extend(values[:5])
    for value in values[6:]:
        array.append(value)
    array.insert(5, values[5])
    array.insert(0, "gone"); del array[0]
    array[3] = values[3]
    return values

def fill_batches(array):
    batches = [values[:3], values, list(range(100)), [None]]
    for batch in batches:
        array.append(batch)
    array.insert(1, [1, 2]); array[1] = ["other", "length", 3]; del array[0]
    array.append(values[:3])
    return [["other", "length", 3], *batches[1:], values[:3]]

def fill_lists(rows):
    def fill(array):
        array.extend(rows); array.flush()
        array.append(rows[0]); array.append(rows[-1]); array.close()
        cells = array[:]
        assert len(cells) == len(rows) + 2 and array.schunk.nchunks == -(-len(rows) // 2048) + 1
        return cells
    return fill

cparams = {
    "default": None,
    "lz4": dict(codec=blosc2.Codec.LZ4, clevel=9),
    "stored": dict(clevel=0),
    "dict": dict(use_dict=True, clevel=7),
    "plain": dict(use_dict=False, filters=[blosc2.Filter.NOFILTER], codec=blosc2.Codec.BLOSCLZ),
    "zlib": blosc2.CParams(codec=blosc2.Codec.ZLIB, filters=[blosc2.Filter.BITSHUFFLE], typesize=8),
}
for name, c in cparams.items():
    given = {} if c is None else dict(cparams=c)
    store("o", name, lambda args: blosc2.ObjectArray(**args, **given), fill_objects)
    store("b", name, lambda args: blosc2.BatchArray(**args, **given), fill_batches)
    store("b", name + "-3", lambda args: blosc2.BatchArray(items_per_block=3, **args, **given), fill_batches)
for name, (item, rows) in lists.items():
    rows = [row for row in rows]
    store("l", name, lambda args: blosc2.ListArray(item_spec=item, nullable=True, **args), fill_lists(rows))
    item = blosc2.list(item, nullable=True, items_per_block=7)
    store("l", name + "-7", lambda args: blosc2.ListArray(item, **args), fill_lists(rows))
def fill_rows(array):
    for row in [[1], None, []]:
        array.append(row)
    array.close()
    return [[1], None, []]
# Rows that are chunks of their own.
for where, contiguous in [("file", True), ("directory", False)]:
    path = f"l-vl.{where}"
    array = blosc2.ListArray(item_spec=blosc2.int8(), nullable=True, storage="vl", urlpath=path, mode="w",
        contiguous=contiguous)
    content = fill_rows(array)
    array.vlmeta["own"] = ("by", "vl")
    open(path + ".msgpack", "wb").write(msgpack_packb([content, None, array.meta["listarray"]]))
    made.append(path)
# Nothing in them.
for path, array in [("o-empty.file", blosc2.ObjectArray), ("b-empty.file", blosc2.BatchArray)]:
    array = array(urlpath=path, mode="w")
    array.vlmeta["own"] = ("by", "empty")
    open(path + ".msgpack", "wb").write(msgpack_packb([[], None, None]))
    made.append(path)
json.dump(made, open("made.json", "w"))
"#;
    python(script, folder, &[]);
    let made = std::fs::read_to_string(folder.join("made.json")).unwrap();
    let made: Vec<String> = serde_json::from_str(&made).unwrap();
    assert_eq!(made.len(), 18 * 3 + 24 * 3 + 4);
    for file in &made {
        let mut expected = list(beside(folder, file)).into_iter();
        let content = list(expected.next().unwrap());
        let (per_block, meta) = (expected.next().unwrap(), expected.next().unwrap());
        let schunk = schunk(folder, file);
        let (kind, name) = file.split_once('.').unwrap().0.split_once('-').unwrap();
        let name = name.trim_end_matches("-3").trim_end_matches("-7");
        let own: (String, String) = schunk.vlmeta().get_value("own").unwrap().unwrap();
        assert_eq!(own.0, "by", "{file}");
        assert!(own.1.starts_with(name), "{file}");
        match kind {
            "o" => {
                let array = ObjectArray::from_schunk(schunk).unwrap();
                let found: Vec<Value> = array.iter().map(Result::unwrap).collect();
                assert_equal(&found, &content, file);
            }
            "b" => {
                let array = BatchArray::from_schunk(schunk).unwrap();
                let lens: Vec<u64> =
                    (0..array.len()).map(|batch| array.batch_len(batch).unwrap()).collect();
                assert_eq!(array.items_per_block(), per_block.as_u64(), "{file}");
                let batches: Vec<Value> =
                    array.batches().map(|batch| batch.unwrap().into()).collect();
                assert_equal(&batches, &content, file);
                let items: Vec<Value> = content.into_iter().flat_map(list).collect();
                assert_eq!(lens.iter().sum::<u64>(), array.nitems().unwrap());
                for (index, item) in (0..).zip(items.chunks(1)).step_by(3) {
                    assert_equal(&[array.item(index).unwrap()], item, file);
                }
                let found: Vec<Value> = array.items().map(Result::unwrap).collect();
                assert_equal(&found, &items, file);
            }
            _ => {
                let array = ListArray::from_schunk(schunk).unwrap();
                assert_eq!(array.len(), content.len() as u64, "{file}");
                assert!(array.is_nullable(), "{file}");
                assert_eq!(array.item_type().metadata(), *meta.get("item").unwrap(), "{file}");
                let row = |row: Option<Vec<Value>>| row.map_or(Value::None, Value::List);
                for index in (0..content.len()).step_by(41).chain([1]) {
                    let found = row(array.get(index as u64).unwrap());
                    assert_equal(&[found], &content[index..=index], file);
                }
                let found: Vec<Value> = array.iter().map(|found| row(found.unwrap())).collect();
                assert_equal(&found, &content, file);
            }
        }
    }
}

/// Values of all kinds that are written here.
fn values() -> Vec<Value> {
    let frame = SChunk::in_memory::<u8>(&CParams::default()).unwrap().to_cframe().unwrap();
    let dtype = blosc2::Dtype::parse("<f4").unwrap();
    vec![
        Value::None,
        true.into(),
        0.into(),
        (-33).into(),
        u64::MAX.into(),
        i64::MIN.into(),
        1.5.into(),
        f64::NAN.into(),
        "".into(),
        "é".repeat(40).into(),
        "text with many words, ".repeat(5000).into(),
        Value::Bytes(b"\0ab".to_vec()),
        Value::List((0..5000).map(Value::from).collect()),
        Value::List(vec![]),
        Value::Tuple(vec![1.into(), Value::Tuple(vec![])]),
        Value::from([("a", 1.into()), ("b", Value::List(vec![Value::None]))]),
        Value::Complex { re: 1.0, im: -2.0 },
        Value::Set(vec![1.into(), "two".into()]),
        blosc2::ArrayValue::new(dtype, vec![2, 1], vec![0, 0, 128, 63, 0, 0, 0, 64])
            .unwrap()
            .into(),
        Value::Objects { shape: vec![3], values: vec![1.into(), "x".into(), Value::None] },
        Value::Frame(frame),
    ]
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn what_rust_wrote_is_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let values = values();
    let batches =
        || vec![values[..3].to_vec(), values.clone(), (0..100).map(Value::from).collect()];
    let params = [
        ("default", None),
        ("blosclz", Some(CParams::new().codec(Codec::BloscLz).level(9))),
        ("stored", Some(CParams::new().level(0))),
        ("dict", Some(CParams::new().dictionary(true))),
    ];
    let mut made = Vec::new();
    for (name, params) in params {
        for where_ in ["file", "directory", "cframe"] {
            let options = |default: &CParams| {
                let options = OpenOptions::new().create_new(true);
                options.cparams(params.as_ref().unwrap_or(default))
            };
            let new = |file: &str, default: &CParams| match where_ {
                "cframe" => options(default).open(Target::memory()).unwrap(),
                _ => {
                    let target = Target::from(folder.join(file)).directory(where_ == "directory");
                    options(default).open(target).unwrap()
                }
            };
            let keep = |file: &str, schunk: SChunk| {
                if where_ == "cframe" {
                    std::fs::write(folder.join(file), schunk.to_cframe().unwrap()).unwrap();
                }
            };
            let file = format!("o-{name}.{where_}");
            let mut array =
                ObjectArray::new_in(new(&file, &ObjectArray::default_cparams())).unwrap();
            array.append("in front of all").unwrap();
            values.iter().for_each(|value| array.append(value).unwrap());
            array.insert(4, "between").unwrap();
            array.set(4, &("of another", "length")).unwrap();
            array.remove(4).unwrap();
            array.remove(0).unwrap();
            array.vlmeta_mut().set_value("own", &Value::Tuple(vec![name.into()])).unwrap();
            keep(&file, array.into_schunk());
            put_beside(folder, &file, &values.clone().into());
            made.push(json!([file, null]));

            for per_block in [None, Some(3)] {
                let file = format!("b-{name}-{}.{where_}", per_block.unwrap_or(0));
                let schunk = new(&file, &CParams::default());
                let mut array = BatchArray::new_in(schunk, per_block).unwrap();
                array.vlmeta_mut().set_value("own", &Value::Tuple(vec![name.into()])).unwrap();
                batches().iter().for_each(|batch| array.append(batch).unwrap());
                array.insert(1, &["a", "b"]).unwrap();
                array.set(1, &values[..7]).unwrap();
                array.insert(4, &[1.5]).unwrap();
                array.remove(4).unwrap();
                array.remove(0).unwrap();
                keep(&file, array.into_schunk());
                let mut expected = batches();
                expected[0] = values[..7].to_vec();
                let expected: Vec<Value> = expected.into_iter().map(Value::from).collect();
                put_beside(folder, &file, &expected.into());
                made.push(json!([file, per_block]));
            }
        }
    }
    let text = |name: &str, kind: ItemKind| (name.to_owned(), ItemType::from(kind));
    let vec_of = |items: &[i64]| Value::List(items.iter().map(|&item| item.into()).collect());
    let lists: Vec<(&str, ItemType, &str, Vec<Value>)> = vec![
        ("i4", ItemKind::Int32.into(), "blosc2.int32()", vec![vec_of(&[1, -2]), vec_of(&[])]),
        (
            "nulls",
            ItemType::from(ItemKind::UInt64).nullable().with("gt", 0),
            "blosc2.uint64(nullable=True, gt=0)",
            vec![Value::List(vec![1.into(), Value::None, u64::MAX.into()]), Value::None],
        ),
        (
            "text",
            ItemType::from(ItemKind::String { max_length: 5 }).with("min_length", 1),
            "blosc2.string(min_length=1, max_length=5)",
            vec![Value::List(vec!["ééééé".into()])],
        ),
        ("short", ItemKind::String { max_length: 32 }.into(), "blosc2.string()", vec![]),
        (
            "bytes",
            ItemType::from(ItemKind::Bytes { max_length: 32 }).nullable(),
            "blosc2.bytes(nullable=True)",
            vec![Value::List(vec![Value::Bytes(b"a".to_vec()), Value::None])],
        ),
        (
            "f4",
            ItemType::from(ItemKind::Float32).with("le", 1.5).with("ge", -1),
            "blosc2.float32(le=1.5, ge=-1)",
            vec![Value::List(vec![0.1.into(), 1.into()])],
        ),
        ("vl", ItemKind::VlString.into(), "blosc2.vlstring()", vec![Value::None]),
        (
            "vlb",
            ItemType::from(ItemKind::VlBytes).nullable(),
            "blosc2.vlbytes(nullable=True)",
            vec![],
        ),
        ("utf8", ItemType::from(ItemKind::Utf8), "blosc2.utf8()", vec![]),
        ("bool", ItemKind::Bool.into(), "blosc2.bool()", vec![Value::List(vec![true.into()])]),
        (
            "c8",
            ItemType::from(ItemKind::Complex64).nullable(),
            "blosc2.complex64(nullable=True)",
            vec![Value::List(vec![Value::Complex { re: 0.1, im: 1.0 }, Value::None])],
        ),
        (
            "time",
            ItemKind::Timestamp { unit: TimeUnit::Nanoseconds, timezone: Some("UTC".to_owned()) }
                .into(),
            "blosc2.timestamp(unit='ns', timezone='UTC')",
            vec![vec_of(&[i64::MIN])],
        ),
        (
            "lists",
            ItemKind::List(ItemKind::Int8.into()).into(),
            "blosc2.list(blosc2.int8())",
            vec![Value::List(vec![vec_of(&[1]), vec_of(&[])])],
        ),
        (
            "structs",
            ItemType::from(ItemKind::Struct(vec![
                text("name", ItemKind::VlString),
                text("at", ItemKind::Float64),
            ]))
            .nullable(),
            "blosc2.struct({'name': blosc2.vlstring(), 'at': blosc2.float64()}, nullable=True)",
            vec![Value::List(vec![
                Value::from([("other", true.into()), ("at", 1.into()), ("name", "x".into())]),
                Value::None,
            ])],
        ),
    ];
    let mut specs = Vec::new();
    for (name, item, spec, rows) in lists {
        for (file, more) in
            [(format!("l-{name}.file"), ""), (format!("l-{name}-more.file"), "more")]
        {
            let mut array = match more {
                "" => ListArray::create(folder.join(&file), item.clone(), true).unwrap(),
                _ => {
                    let list = ItemType::from(ItemKind::List(item.clone().into())).nullable();
                    let list = list.with("items_per_block", 2).with("batch_rows", 3);
                    let options = OpenOptions::new().create_new(true);
                    let target = Target::from(folder.join(&file)).directory(true);
                    ListArray::new_in(options.open(target).unwrap(), list).unwrap()
                }
            };
            let mut expected = Vec::new();
            for turn in 0..8 {
                for row in &rows {
                    array.append(row.as_list()).unwrap();
                }
                if turn == 4 {
                    array.flush().unwrap();
                }
                array.append::<u8>(None).unwrap();
                expected.extend(rows.iter().cloned().chain([Value::None]));
            }
            array.set::<u8>(7, Some(&[])).unwrap();
            expected[7] = Value::List(vec![]);
            array.vlmeta_mut().set_value("own", &Value::Tuple(vec![name.into()])).unwrap();
            assert_eq!(array.len(), expected.len() as u64);
            drop(array);
            put_beside(folder, &file, &expected.into());
            specs.push(json!([file, spec, more]));
        }
    }
    let arguments = json!([made, specs]).to_string();
    let script = r#"
made, specs = json.loads(sys.argv[1])
kinds = {"o": blosc2.ObjectArray, "b": blosc2.BatchArray}
codecs = {"default": {}, "blosclz": dict(codec=blosc2.Codec.BLOSCLZ, clevel=9), "stored": dict(clevel=0),
    "dict": dict(use_dict=True)}
for path, per_block in made:
    kind, name = path.split(".")[0].split("-")[:2]
    if path.endswith("cframe"):
        array = blosc2.from_cframe(open(path, "rb").read(), deserialize="full")
    else:
        array = blosc2.open(path, mode="r", deserialize="full")
    assert type(array) is kinds[kind], (path, array)
    expected = msgpack_unpackb(open(path + ".msgpack", "rb").read())
    found = [value for value in array] if kind == "o" else [batch[:] for batch in array]
    assert len(found) == len(expected), path
    for i, (f, e) in enumerate(zip(found, expected)):
        assert equal(f, e), (path, i, f, e)
    assert array.vlmeta["own"] == (name,), path
    c = codecs[name] | ({"use_dict": False} if name == "blosclz" else {})
    like = kinds[kind](cparams=c or None, **({"items_per_block": per_block} if kind == "b" else {}))
    if kind == "b":
        like.append(expected[0] if per_block else list(range(3)))
        items = [item for batch in expected for item in batch]
        assert len(array.items) == len(items), path
        assert all(equal(array.items[i], items[i]) for i in range(0, len(items), 7)), path
        assert array.vlmeta["_batch_array_metadata"] == {"batch_lengths": [len(e) for e in expected]}
    if name != "stored" or kind == "o":
        assert metas(array) == metas(like), (path, metas(array), metas(like))
    if name != "dict":
        found, wanted = params(array), params(like)
        assert found == wanted or name in ("blosclz", "stored") and found[:2] + found[3:] == wanted[:2] + wanted[3:], path
for path, spec, more in specs:
    args = dict(items_per_block=2, batch_rows=3) if more else {}
    like = blosc2.ListArray(item_spec=eval(spec), nullable=True, **args)
    like.append(None); like.append(None); like.append(None); like.flush()
    array = blosc2.open(path, mode="r")
    assert type(array) is blosc2.ListArray
    assert metas(array)[0] == metas(like)[0], (path, metas(array), metas(like))
    assert list(array.meta["listarray"]) == list(like.meta["listarray"]), path
    assert list(array.meta["listarray"]["item"]) == list(like.meta["listarray"]["item"]), path
    expected = []
    for row in msgpack_unpackb(open(path + ".msgpack", "rb").read()):
        like.append(row)
        expected.append(like[len(like) - 1])
    assert array[:] == expected, (path, array[:], expected)
    assert array.vlmeta["own"] == (path.split(".")[0].split("-")[1],)
    assert params(array) == params(like)
"#;
    python(script, folder, &[&arguments]);
}

/// With one thread, the files have the same bytes as Python's. With more threads, blocks are stored in the order in
/// which they finish, and the header has the number of threads. Variable-length blocks at level 0 are left out: this
/// crate stores them, while Python's library still compresses them.
#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn files_are_those_of_python_to_the_byte() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let numbers: Vec<u64> = (0..40_000).map(|n: u64| n.wrapping_mul(0x9e37_79b9) >> 7).collect();
    let texts: Vec<String> = (0..3000).map(|n| format!("item {n} of many, {}", n * n)).collect();
    let objects = json!([
        0, null, true, -7, 1.5, "", "text", [1, "two", [null]], {"a": 1, "b": {"c": []}},
        "x".repeat(100), vec![1.5; 3000], vec![0; 50_000], texts, numbers,
    ]);
    let small = json!([[1, 2, "x"], [0], [null, null, null, null], texts[..50], texts, numbers]);
    let large: Vec<String> = ["a", "b", "c", "d", "e"].map(|text| text.repeat(300_000)).into();
    let large = json!([vec![large; 12].concat(), [1, 2, 3]]);
    let rows: Vec<serde_json::Value> = (0..5000u64)
        .map(|row| match row % 7 {
            0 => json!(null),
            len => json!(numbers[row as usize..(row + len) as usize]),
        })
        .collect();
    // The file, its kind, the parameters except threads, the arguments, the content.
    let params = |text: &str| text.to_owned();
    let cases = json!([
        ["o1", "o", params("{}"), {}, objects],
        ["o2", "o", params("{'clevel': 9}"), {}, objects],
        ["o3", "o", params("{'use_dict': False, 'clevel': 1}"), {}, objects],
        ["o4", "o", params("{'codec': blosc2.Codec.BLOSCLZ}"), {}, objects],
        ["o5", "o", params("{'clevel': 0}"), {}, objects],
        ["b1", "b", params("{}"), {}, small],
        ["b2", "b", params("{}"), {"items_per_block": 10}, small],
        ["b3", "b", params("{}"), {}, large],
        ["b4", "b", params("{'clevel': 1}"), {}, large],
        ["b5", "b", params("{'clevel': 9}"), {}, large],
        ["b6", "b", params("{'use_dict': True, 'clevel': 8}"), {"items_per_block": 100}, small],
        ["b7", "b", params("{'codec': blosc2.Codec.BLOSCLZ}"), {"items_per_block": 1}, small],
        ["b8", "b", params("{'clevel': 7}"), {}, large],
        ["l1", "l", params("{}"), {}, rows],
        ["l2", "l", params("{'clevel': 9}"), {"items_per_block": 100, "batch_rows": 700}, rows],
        ["l3", "l", params("{}"), {"batch_rows": null}, rows],
        ["l4", "l", params("{}"), {"storage": "vl"}, rows[..100]],
    ]);
    std::fs::write(folder.join("cases.json"), cases.to_string()).unwrap();
    let script = r#"
for path, kind, c, args, content in json.load(open("cases.json")):
    c = {"nthreads": 1} | eval(c)
    args |= dict(urlpath=path + ".py", mode="w", cparams=c, dparams=dict(nthreads=1))
    array = {
        "o": blosc2.ObjectArray,
        "b": blosc2.BatchArray,
        "l": lambda **args: blosc2.ListArray(item_spec=blosc2.uint64(), nullable=True, **args),
    }[kind](**args)
    for each in content:
        array.append(each)
    if kind == "l":
        array.close()
"#;
    python(script, folder, &[]);
    let level = |level| CParams::default().level(level);
    for case in cases.as_array().unwrap() {
        let (file, args) = (case[0].as_str().unwrap(), &case[3]);
        let content = case[4].as_array().unwrap();
        let params = match file {
            "o1" | "l4" => ObjectArray::default_cparams(),
            "o2" => ObjectArray::default_cparams().level(9),
            "o3" | "b4" => level(1),
            "o4" | "b7" => CParams::default().codec(Codec::BloscLz),
            "o5" => level(0),
            "b5" | "l2" => level(9),
            "b6" => level(8).dictionary(true),
            "b8" => level(7),
            _ => CParams::default(),
        };
        let path = folder.join(file);
        let new = || OpenOptions::new().create_new(true).cparams(&params).open(&path).unwrap();
        match case[1].as_str().unwrap() {
            "o" => {
                let mut array = match file {
                    "o1" => ObjectArray::create(&path).unwrap(),
                    _ => ObjectArray::new_in(new()).unwrap(),
                };
                content.iter().for_each(|value| array.append(value).unwrap());
            }
            "b" => {
                let mut array = match file {
                    "b1" | "b3" => BatchArray::create(&path).unwrap(),
                    _ => BatchArray::new_in(new(), args["items_per_block"].as_u64()).unwrap(),
                };
                let batches = content.iter().map(|batch| batch.as_array().unwrap());
                batches.for_each(|batch| array.append(batch).unwrap());
                // The number of these items in 8, 1 and 16 MiB, or all of them.
                let per_block = match file {
                    "b3" => 27,
                    "b4" => 3,
                    "b5" => 60,
                    "b8" => 55,
                    _ => array.items_per_block().unwrap(),
                };
                assert_eq!(array.items_per_block(), Some(per_block), "{file}");
            }
            _ => {
                let mut list = ItemType::from(ItemKind::List(ItemKind::UInt64.into())).nullable();
                for (name, value) in args.as_object().unwrap() {
                    list = list.with(name, Value::from_type(value).unwrap());
                }
                let mut array = match file {
                    "l1" => ListArray::create(&path, ItemKind::UInt64, true).unwrap(),
                    _ => ListArray::new_in(new(), list).unwrap(),
                };
                for row in content {
                    array.append(row.as_array().map(Vec::as_slice)).unwrap();
                }
            }
        }
        let read = |path: &Path| std::fs::read(path).unwrap();
        assert_same(&read(&path), &read(&folder.join([file, ".py"].concat())), file);
    }
}

/// The files that both sides change in turns, and whether each is a directory.
const TURNS: [(&str, bool); 7] = [
    ("o-file", false),
    ("o-directory", true),
    ("b-file", false),
    ("b-directory", true),
    ("l-file", false),
    ("l-directory", true),
    ("l-vl", false),
];

/// A value that JSON can hold.
fn random_value(rng: &mut Rng) -> serde_json::Value {
    match rng.below(9) {
        0 => json!(null),
        1 => json!(rng.below(2) == 0),
        2 => json!(rng.next()),
        3 => json!(rng.below(1000) as f64 / 8.0),
        4 => json!("word ".repeat(rng.below(500) as usize)),
        5 => json!((0..rng.below(3000)).collect::<Vec<_>>()),
        6 => json!({"a": [rng.below(7), null], "b": {"c": "d"}}),
        _ => json!(-(rng.below(1 << 40) as i64)),
    }
}

fn random_batch(rng: &mut Rng) -> serde_json::Value {
    (0..1 + rng.below(20)).map(|_| random_value(rng)).collect()
}

fn random_row(rng: &mut Rng) -> serde_json::Value {
    match rng.below(5) {
        0 => json!(null),
        _ => (0..rng.below(30)).map(|_| json!(rng.next() as u32)).collect(),
    }
}

/// Random changes, which are also applied to the content. Lists are only appended to, replaced and flushed.
fn random_changes(
    kind: &str,
    content: &mut Vec<serde_json::Value>,
    rng: &mut Rng,
) -> Vec<serde_json::Value> {
    let mut changes = Vec::new();
    for _ in 0..6 + rng.below(20) {
        let value = match kind {
            "o" => random_value(rng),
            "b" => random_batch(rng),
            _ => random_row(rng),
        };
        let at = rng.below(content.len() as u64 + 1) as usize;
        let change = match rng.below(if kind == "l" { 6 } else { 8 }) {
            1 if at < content.len() => "set",
            2 if kind == "l" => "flush",
            6 => "insert",
            7 if at < content.len() => "remove",
            _ => "append",
        };
        match change {
            "append" => content.push(value.clone()),
            "set" => content[at] = value.clone(),
            "insert" => content.insert(at, value.clone()),
            "remove" => drop(content.remove(at)),
            _ => {}
        }
        changes.push(json!([change, at, value]));
    }
    changes
}

fn rust_turn(path: &Path, kind: &str, changes: &[serde_json::Value]) {
    enum Array {
        Objects(ObjectArray),
        Batches(BatchArray),
        Lists(ListArray),
    }
    let mut array = match kind {
        "o" => Array::Objects(ObjectArray::open_rw(path).unwrap()),
        "b" => Array::Batches(BatchArray::open_rw(path).unwrap()),
        _ => Array::Lists(ListArray::open_rw(path).unwrap()),
    };
    for change in changes {
        let (at, value) = (change[1].as_u64().unwrap(), &change[2]);
        let (index, items) = (at as usize, value.as_array().map(Vec::as_slice));
        let batch = items.unwrap_or_default();
        match (&mut array, change[0].as_str().unwrap()) {
            (Array::Objects(array), "append") => array.append(value),
            (Array::Objects(array), "set") => array.set(index, value),
            (Array::Objects(array), "insert") => array.insert(index, value),
            (Array::Objects(array), _) => array.remove(index),
            (Array::Batches(array), "append") => array.append(batch),
            (Array::Batches(array), "set") => array.set(index, batch),
            (Array::Batches(array), "insert") => array.insert(index, batch),
            (Array::Batches(array), _) => array.remove(index),
            (Array::Lists(array), "append") => array.append(items),
            (Array::Lists(array), "set") => array.set(at, items),
            (Array::Lists(array), _) => array.flush(),
        }
        .unwrap();
    }
}

fn rust_reads(path: &Path, kind: &str, content: &[serde_json::Value]) {
    let found: Vec<Value> = match kind {
        "o" => ObjectArray::open(path).unwrap().iter().map(Result::unwrap).collect(),
        "b" => {
            let array = BatchArray::open(path).unwrap();
            let items: Vec<Value> =
                (0..array.nitems().unwrap()).map(|item| array.item(item).unwrap()).collect();
            let batches: Vec<_> = array.batches().map(Result::unwrap).collect();
            assert_eq!(items, batches.concat(), "{}", path.display());
            batches.into_iter().map(Value::from).collect()
        }
        _ => {
            let array = ListArray::open(path).unwrap();
            let row = |row: Option<Vec<Value>>| row.map_or(Value::None, Value::from);
            array.iter().map(|found| row(found.unwrap())).collect()
        }
    };
    let expected: Vec<Value> =
        content.iter().map(|value| Value::from_type(value).unwrap()).collect();
    assert_equal(&found, &expected, &path.display().to_string());
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn turns_about() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Python writes the first half of the files, Rust the other half.
    let script = r#"
for name, directory in [("o-file", False), ("b-directory", True), ("l-file", False)]:
    args = dict(urlpath=name, mode="w", contiguous=not directory)
    if name[0] == "o":
        blosc2.ObjectArray(**args)
    elif name[0] == "b":
        blosc2.BatchArray(**args)
    else:
        blosc2.ListArray(item_spec=blosc2.uint32(), nullable=True, batch_rows=7, **args)
"#;
    python(script, folder, &[]);
    for (name, directory) in TURNS {
        let path = folder.join(name);
        if path.exists() {
            continue;
        }
        let options = OpenOptions::new().create_new(true);
        let path = Target::from(path).directory(directory);
        let list = ItemType::from(ItemKind::List(ItemKind::UInt32.into())).nullable();
        let list = list.with("batch_rows", 7);
        match name {
            "l-vl" => drop(
                ListArray::new_in(options.open(path).unwrap(), list.with("storage", "vl")).unwrap(),
            ),
            _ if name.starts_with('o') => {
                let options = options.cparams(ObjectArray::default_cparams());
                drop(ObjectArray::new_in(options.open(path).unwrap()).unwrap());
            }
            _ if name.starts_with('b') => {
                drop(BatchArray::new_in(options.open(path).unwrap(), None).unwrap());
            }
            _ => drop(ListArray::new_in(options.open(path).unwrap(), list).unwrap()),
        }
    }
    let script = r#"
def check(array, content, path):
    found = [cell[:] if isinstance(array, blosc2.BatchArray) else cell for cell in array]
    assert found == content, (path, found, content)
    if isinstance(array, blosc2.BatchArray):
        flat = [item for batch in content for item in batch]
        assert array.items[:] == flat, path
        # Not those that were counted.
        lengths = [len(batch) for batch in content]
        assert array.vlmeta.getall() == ({"_batch_array_metadata": {"batch_lengths": lengths}} if lengths else {}), path

for path, before, changes, after in json.load(open("turn.json")):
    check(blosc2.open(path, mode="r"), before, path)
    array = blosc2.open(path, mode="a")
    for change, at, value in changes:
        if change == "append": array.append(value)
        elif change == "set": array[at] = value
        elif change == "insert": array.insert(at, value)
        elif change == "remove": del array[at]
        else: array.flush()
    if path[0] == "l":
        array.close()
    check(array, after, path)
    del array
    check(blosc2.open(path, mode="r"), after, path)
"#;
    let mut rng = Rng(7);
    let mut contents = vec![Vec::new(); TURNS.len()];
    for turn in 0..10 {
        let mut turns = Vec::new();
        for ((name, _), content) in TURNS.iter().zip(&mut contents) {
            let (path, kind) = (folder.join(name), &name[..1]);
            let before = content.clone();
            // Once all is removed.
            let changes = match (kind, turn) {
                ("l", _) | (_, 0..4 | 6..) => random_changes(kind, content, &mut rng),
                _ => content.drain(..).map(|_| json!(["remove", 0, null])).collect(),
            };
            if turn % 2 == 0 {
                turns.push(json!([name, before, changes, content]));
            } else {
                rust_reads(&path, kind, &before);
                rust_turn(&path, kind, &changes);
                rust_reads(&path, kind, content);
            }
        }
        if turn % 2 == 0 {
            std::fs::write(folder.join("turn.json"), json!(turns).to_string()).unwrap();
            python(script, folder, &[]);
        }
    }
    for ((name, _), content) in TURNS.iter().zip(&contents) {
        rust_reads(&folder.join(name), &name[..1], content);
    }
}

/// C-Blosc2 cannot append a chunk after a single one that is shorter than the chunk size of the frame.
#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_appends_after_a_single_short_value() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let long = "x".repeat(500);
    for contiguous in [true, false] {
        let create = |name: String| {
            let options = OpenOptions::new().create_new(true);
            let target = Target::from(path(&name)).directory(!contiguous);
            options.cparams(ObjectArray::default_cparams()).open(target).unwrap()
        };
        let mut set = ObjectArray::new_in(create(format!("set{contiguous}.b2frame"))).unwrap();
        set.append(&long).unwrap();
        set.set(0, "a").unwrap();
        let mut removed =
            ObjectArray::new_in(create(format!("removed{contiguous}.b2frame"))).unwrap();
        removed.append(&long).unwrap();
        removed.append("a").unwrap();
        removed.remove(0).unwrap();
        let mut batches =
            BatchArray::new_in(create(format!("batches{contiguous}.b2b")), None).unwrap();
        batches.append(&[&long]).unwrap();
        batches.append(&["a"]).unwrap();
        batches.remove(0).unwrap();
    }
    let script = r#"
for contiguous in ["true", "false"]:
    for name in ["set", "removed"]:
        array = blosc2.open(f"{name}{contiguous}.b2frame", mode="a")
        array.append("b")
        array.append("c" * 1000)
        array = blosc2.open(f"{name}{contiguous}.b2frame", mode="r")
        assert list(array) == ["a", "b", "c" * 1000], list(array)
    array = blosc2.open(f"batches{contiguous}.b2b", mode="a")
    array.append(["b"])
    array.append(["c" * 1000, "d"])
    array = blosc2.open(f"batches{contiguous}.b2b", mode="r")
    found = [list(batch) for batch in array]
    assert found == [["a"], ["b"], ["c" * 1000, "d"]], found
"#;
    python(script, folder.path(), &[]);
}
