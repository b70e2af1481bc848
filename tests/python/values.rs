//! Values in metalayers: what Python writes is read here, and what is written here is read by Python.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::common::{hex, run_python};
use blosc2::{ArrayValue, CParams, Dtype, ErrorKind, NDArray, OpenOptions, SChunk, Target, Value};
use blosc2_format::value::ValueErrorKind;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Metalayers in a file; there are 16 at most.
const PER_FILE: usize = 16;

/// What the scripts share: how the texts of the cases make objects, and when two are the same.
const START: &str = r#"
import ast, json, math, struct, sys
import msgpack
import numpy as np
import blosc2
from blosc2.msgpack_utils import msgpack_packb, msgpack_unpackb

def A(dtype, *shape):
    """An array whose bytes are a pattern."""
    dtype = np.dtype(ast.literal_eval(dtype) if dtype[0] in "[{" else dtype)
    nbytes = math.prod(shape) * dtype.itemsize
    data = bytes((7 * i + 1) % 251 for i in range(nbytes))
    return np.frombuffer(data, dtype, math.prod(shape)).reshape(shape)

def O(shape, *values):
    """An array of objects."""
    array = np.empty(shape, dtype=object)
    for index, value in enumerate(values):
        array.reshape(-1)[index] = value
    return array

def same(a, b):
    if type(a) is not type(b):
        return False
    if isinstance(a, float):
        return struct.pack("d", a) == struct.pack("d", b)
    if isinstance(a, complex):
        return struct.pack("dd", a.real, a.imag) == struct.pack("dd", b.real, b.imag)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return same(list(a.items()), list(b.items()))
    if isinstance(a, set):
        return a == b and set(map(type, a)) == set(map(type, b))
    if isinstance(a, np.ndarray):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if a.dtype == object:
            return same(a.ravel().tolist(), b.ravel().tolist())
        return a.tobytes() == b.tobytes()
    return a == b

cases = json.load(open("cases.json"))
"#;

fn list(items: impl IntoIterator<Item = Value>) -> Value {
    Value::List(items.into_iter().collect())
}

fn tuple(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Tuple(items.into_iter().collect())
}

fn set(items: impl IntoIterator<Item = Value>) -> Value {
    Value::Set(items.into_iter().collect())
}

fn complex(re: f64, im: f64) -> Value {
    Value::Complex { re, im }
}

fn objects(shape: &[u64], values: impl IntoIterator<Item = Value>) -> Value {
    Value::Objects { shape: shape.to_vec(), values: values.into_iter().collect() }
}

/// Python's `A`.
fn pattern(dtype: &str, shape: &[u64]) -> Value {
    let dtype = Dtype::parse(dtype).unwrap();
    let len = shape.iter().product::<u64>() as usize * dtype.size();
    let data = (0..len).map(|index| ((7 * index + 1) % 251) as u8).collect();
    ArrayValue::new(dtype, shape.to_vec(), data).unwrap().into()
}

const SCALARS: [&str; 33] = [
    "|b1", "|i1", "|u1", "<i2", ">i2", "<i4", ">i4", "<i8", ">i8", "<u2", ">u2", "<u4", "<u8",
    "<f2", ">f2", "<f4", ">f4", "<f8", ">f8", "<f16", "<c8", ">c8", "<c16", "<c32", "|S1", "|S10",
    "<U1", ">U3", "<M8", "<M8[D]", ">M8[25s]", "<m8[us]", "|V5",
];

const STRUCTURES: [&str; 8] = [
    "[('a', '<i4'), ('b', '>f8')]",
    "[('a', '<i4'), ('b', '<f8', (2, 3)), ('c', 'S3')]",
    "[(('A title', 'a'), 'i1'), ('it\\'s \"é\"', '<U2')]",
    "[('p', [('x', '<f4'), ('y', '>i2', (3,))]), ('ok', '?')]",
    "[('a', [('x', '<M8[ns]')], (2, 2))]",
    "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 16}",
    "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [3, 8], 'titles': ['T', None], 'itemsize': 20}",
    "{'names': ['a'], 'formats': [{'names': ['b'], 'formats': ['<u2'], 'offsets': [1], 'itemsize': 4}], \
     'offsets': [1], 'itemsize': 6}",
];

/// Texts that Python makes objects of, and what those are here.
fn cases() -> Vec<(String, Value)> {
    let mut cases = Vec::new();
    let mut case = |text: &str, value: Value| cases.push((text.to_owned(), value));
    for (text, value) in [
        ("None", Value::None),
        ("True", true.into()),
        ("np.bool_(False)", false.into()),
        ("-0.0", (-0.0).into()),
        ("1.5", 1.5.into()),
        ("math.nan", f64::NAN.into()),
        ("5e-324", 5e-324.into()),
        ("1.7976931348623157e308", f64::MAX.into()),
        ("-math.inf", f64::NEG_INFINITY.into()),
        ("np.float16(1.5)", 1.5.into()),
        ("np.float32(0.1)", 0.1f32.into()),
        ("np.longdouble(0.25)", 0.25.into()),
        ("np.int8(-1)", (-1).into()),
        ("np.uint64(2**64 - 1)", u64::MAX.into()),
        ("np.str_('é')", "é".into()),
        ("np.bytes_(b'a')", Value::Bytes(b"a".to_vec())),
        ("np.complex64(1 - 2j)", complex(1.0, -2.0)),
        ("'é日本😀\\0\\n'", "é日本😀\0\n".into()),
        ("bytearray(b'\\x00\\xff')", Value::Bytes(b"\0\xff".to_vec())),
        ("memoryview(b'ab')", Value::Bytes(b"ab".to_vec())),
        ("1j", complex(0.0, 1.0)),
        ("complex(-0.0, -math.inf)", complex(-0.0, f64::NEG_INFINITY)),
        ("[[], [[None]], [1, [2.5, 'x']]]", {
            list([
                list([]),
                list([list([Value::None])]),
                list([1.into(), list([2.5.into(), "x".into()])]),
            ])
        }),
        ("((), ((),), (1, ('x', [()])))", {
            let inner = tuple([1.into(), tuple(["x".into(), list([tuple([])])])]);
            tuple([tuple([]), tuple([tuple([])]), inner])
        }),
        ("('__tuple__', 1)", tuple(["__tuple__".into(), 1.into()])),
        ("['__tuple', '__tuple__']", list(["__tuple".into(), "__tuple__".into()])),
        ("{}", Value::Map(vec![])),
        ("{'a': 1, 'b': {'é': None}, '': [True]}", {
            let inner = Value::from([("é", Value::None)]);
            Value::from([("a", 1.into()), ("b", inner), ("", list([true.into()]))])
        }),
        ("{b'\\xff': 1, 'a': b''}", {
            let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
            Value::Map(vec![(bytes(b"\xff"), 1.into()), ("a".into(), bytes(b""))])
        }),
        ("{'__tuple__': 1}", Value::from([("__tuple__", 1.into())])),
        ("set()", set([])),
        ("{1, 2, 3}", set([1.into(), 2.into(), 3.into()])),
        ("{(1, ('x', None))}", set([tuple([1.into(), tuple(["x".into(), Value::None])])])),
        ("{1j}", set([complex(0.0, 1.0)])),
        ("frozenset({b'a'})", set([Value::Bytes(b"a".to_vec())])),
        ("{'a': ({1}, [{2.5}], np.int16(3))}", {
            let items = [set([1.into()]), list([set([2.5.into()])]), 3.into()];
            Value::from([("a", tuple(items))])
        }),
        ("np.array(7, dtype='<i8')[()]", 7.into()),
        ("np.arange(6, dtype='u1').reshape(2, 3)[:, ::2]", {
            let dtype = Dtype::parse("|u1").unwrap();
            ArrayValue::new(dtype, vec![2, 2], vec![0, 2, 3, 5]).unwrap().into()
        }),
        ("np.asfortranarray(A('<i4', 2, 3))", pattern("<i4", &[2, 3])),
        ("O((3,), 1, None, 'x')", objects(&[3], [1.into(), Value::None, "x".into()])),
        ("O((), {1})", objects(&[], [set([1.into()])])),
        ("O((0, 2))", objects(&[0, 2], [])),
        ("O((2, 1), (1, 2), A('<i2', 3))", {
            objects(&[2, 1], [tuple([1.into(), 2.into()]), pattern("<i2", &[3])])
        }),
        ("O((1,), O((2,), 'a', [O((1,), 1j)]))", {
            let inner = list([objects(&[1], [complex(0.0, 1.0)])]);
            objects(&[1], [objects(&[2], ["a".into(), inner])])
        }),
        ("np.array(['a', 'bé'], dtype=np.dtypes.StringDType())", {
            objects(&[2], ["a".into(), "bé".into()])
        }),
        ("np.zeros(1, dtype=[('a', '<i4'), ('b', 'O')])", {
            objects(&[1], [tuple([0.into(), 0.into()])])
        }),
        ("msgpack.ExtType(5, b'ab')", Value::Ext(5, b"ab".to_vec())),
        ("msgpack.ExtType(127, b'')", Value::Ext(127, vec![])),
        ("msgpack.Timestamp(1, 0)", Value::Ext(-1, vec![0, 0, 0, 1])),
    ] {
        case(text, value);
    }
    for power in [5, 7, 8, 15, 16, 31, 32, 63, 64] {
        for number in [-(1i128 << power) - 1, -(1 << power), (1 << power) - 1, 1 << power] {
            if (-(1 << 63)..1 << 64).contains(&number) {
                case(&number.to_string(), Value::Int(number));
            }
        }
    }
    // Every length that msgpack marks differently.
    for len in [0usize, 1, 2, 3, 4, 8, 14, 15, 16, 17, 31, 32, 255, 256, 65534, 65535, 65536] {
        let items = || (0..len).map(|item| (item as u64).into());
        case(&format!("'x' * {len}"), "x".repeat(len).into());
        case(&format!("b'x' * {len}"), vec![b'x'; len].into());
        case(&format!("list(range({len}))"), list(items()));
        case(&format!("tuple(range({len}))"), tuple(items()));
        let pairs = (0..len).map(|item| (item.to_string().into(), (item as u64).into()));
        case(&format!("{{str(i): i for i in range({len})}}"), Value::Map(pairs.collect()));
        case(&format!("set(range({len}))"), set(items()));
        case(&format!("msgpack.ExtType(0, b'x' * {len})"), Value::Ext(0, vec![b'x'; len]));
    }
    for dtype in SCALARS.into_iter().chain(STRUCTURES) {
        for shape in [&[][..], &[0], &[2, 0], &[3], &[2, 1, 3]] {
            let sides: Vec<String> = shape.iter().map(u64::to_string).collect();
            let text = format!("A({}, {})", json!(dtype), sides.join(", ")).replace(", )", ")");
            case(&text, pattern(dtype, shape));
        }
    }
    case("A('|u1', *([1] * 64))", pattern("|u1", &[1; 64]));
    let wide: Vec<String> = (0..300).map(|field| format!("('f{field}', '<f4')")).collect();
    let wide = format!("[{}]", wide.join(", "));
    case(&format!("A({}, 2)", json!(wide)), pattern(&wide, &[2]));
    case("(lambda f, v: f(f, v, 64))(lambda f, v, n: [f(f, (v,), n - 1)] if n else v, None)", {
        let inner = (0..64).fold(Value::None, |value, _| tuple([value]));
        (0..64).fold(inner, |value, _| list([value]))
    });
    cases
}

fn write_cases<T: Serialize>(folder: &Path, cases: &T) {
    std::fs::write(folder.join("cases.json"), serde_json::to_vec(cases).unwrap()).unwrap();
}

fn file(case: usize) -> String {
    format!("{}.b2frame", case / PER_FILE)
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn all_kinds_go_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let cases = cases();
    let texts: Vec<&str> = cases.iter().map(|(text, _)| &text[..]).collect();
    write_cases(folder.path(), &texts);
    let script = r#"
for index, case in enumerate(cases):
    if index % 16 == 0:
        s = blosc2.SChunk(chunksize=100, urlpath=f"{index // 16}.b2frame")
    s.vlmeta[f"v{index}"] = eval(case)
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
    for (start, some) in cases.chunks(PER_FILE).enumerate() {
        let theirs = SChunk::open(folder.path().join(file(start * PER_FILE))).unwrap();
        let ours = folder.path().join(format!("r{start}.b2frame"));
        let mut ours = SChunk::create::<u8>(ours, &CParams::default()).unwrap();
        for (index, (text, value)) in some.iter().enumerate() {
            let name = format!("v{}", start * PER_FILE + index);
            let stored = theirs.vlmeta().get(&name).unwrap().unwrap();
            let read = theirs.vlmeta().value(&name).unwrap().unwrap();
            // Nothing equals what is no number.
            assert!(read == *value || text == "math.nan", "{text}: {read}");
            assert!(read.to_msgpack().unwrap() == stored, "{text}: {}", hex(&stored));
            ours.vlmeta_mut().set_value(&name, value).unwrap();
            assert!(ours.vlmeta().get(&name).unwrap().unwrap() == stored, "{text}");
            // A program's type may hold it.
            let whole = theirs.vlmeta().get_value::<Value>(&name).unwrap().unwrap();
            assert!(whole == *value || text == "math.nan", "{text}: {whole}");
        }
    }
    let script = r#"
for index, case in enumerate(cases):
    if index % 16 == 0:
        s = blosc2.open(f"r{index // 16}.b2frame", deserialize="full")
    # What it makes of its own bytes: numbers of NumPy's are Python's, and padding becomes fields.
    expected = msgpack_unpackb(msgpack_packb(eval(case)))
    found = s.vlmeta[f"v{index}"]
    assert same(found, expected), (case[:100], found, expected)
assert not same(A("<i4", 2), A("<i4", 3)) and not same((1,), [1]) and not same({1}, {1.0})
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn what_python_does_not_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    // Bytes, whether they are read here (but not written), and whether Python reads something else.
    let mut cases = Vec::new();
    for (bytes, is_read, is_other) in [
        (&b"\x81\x01\x02"[..], true, false),
        (b"\x81\xc0\x02", true, false),
        (b"\x81\x92\xa9__tuple__\x01\x02", true, false),
        (b"\xd5\x2d\x91\x90", true, false),
        (b"\xc7\x05\x2d\x91\xd5\x2d\x91\x01", true, false),
        (b"\xc7\x0b\x2d\x91\xa9__tuple__", true, true),
        (b"\xc7\x1b\x2e\x82\xa6values\x91\xa9__tuple__\xa5shape\x91\x01", true, true),
        (b"\xd5\xfe\x00\x00", true, false),
        (b"\xd5\xff\x00\x00", true, false),
        (b"\xd5\x2c\x00\x00", false, false),
        (b"\xd4\x2d\x01", false, false),
        (b"\xd4\x2e\xc0", false, false),
        (b"\xd4\x2e\x80", false, false),
        (
            b"\xc7\x1f\x2e\x83\xa5dtype\x81\xa3str\xa3|V0\xa5shape\x91\x03\xa4data\xc4\x00",
            false,
            false,
        ),
        (
            b"\xc7\x1f\x2e\x83\xa5dtype\x81\xa3str\xa3<i5\xa5shape\x91\x00\xa4data\xc4\x00",
            false,
            false,
        ),
        (
            b"\xc7\x1f\x2e\x83\xa5dtype\x81\xa3str\xa3<i4\xa5shape\x91\x01\xa4data\xc4\x00",
            false,
            false,
        ),
        (b"\xc1", false, false),
        (b"\x92\x01", false, false),
        (b"\x01\x02", false, false),
        (b"\xa1\xff", false, false),
    ] {
        let read = Value::from_msgpack(bytes);
        assert_eq!(read.is_ok(), is_read, "{}: {read:?}", hex(bytes));
        if let Ok(value) = read {
            let error = value.to_msgpack().unwrap_err();
            assert_eq!(error.kind, ValueErrorKind::InvalidArgument, "{value}");
        }
        cases.push((hex(bytes), is_other));
    }
    write_cases(folder.path(), &cases);
    let script = r#"
for text, is_other in cases:
    data = bytes.fromhex(text)
    try:
        value = msgpack_unpackb(data)
        assert is_other and msgpack_packb(value) != data, (text, value)
    except AssertionError:
        raise
    except Exception:
        assert not is_other, text
for value in [2**64, -2**63 - 1, np.void(b"ab"), np.datetime64("2020"), range(3), object(), "\ud800",
              np.zeros(1, dict(names=["a", "b"], formats=["i4", "i4"], offsets=[0, 2])),
              np.zeros(1, dict(names=["a", "b"], formats=["i4", "i4"], offsets=[4, 0]))]:
    try:
        msgpack_packb(value)
    except Exception:
        continue
    assert False, value
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
    for offsets in ["[0, 2]", "[4, 0]"] {
        let text = format!(
            "{{'names': ['a', 'b'], 'formats': ['<i4', '<i4'], 'offsets': {offsets}, 'itemsize': 8}}"
        );
        let error = pattern(&text, &[1]).to_msgpack().unwrap_err();
        assert_eq!(error.kind, ValueErrorKind::InvalidArgument);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn frames_and_references_go_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    write_cases(folder.path(), &());
    let script = r#"
blosc2.asarray(np.arange(10, dtype="<i4"), urlpath="a.b2nd")
a = blosc2.open("a.b2nd")
s = blosc2.SChunk(chunksize=100, urlpath="a.b2frame")
s.vlmeta["array"] = blosc2.asarray(np.arange(5, dtype="<i8"))
s.vlmeta["file"] = [a]
s.vlmeta["schunk"] = blosc2.SChunk(data=bytes(range(10)), cparams=dict(typesize=1))
objects = blosc2.ObjectArray()
objects.extend(["x", (1, 2)])
s.vlmeta["objects"] = objects
batches = blosc2.BatchArray()
batches.append([1, 2, "three"])
s.vlmeta["batches"] = batches
store = blosc2.EmbedStore()
store["/a"] = np.arange(3)
s.vlmeta["store"] = store
s.vlmeta["ref"] = {"here": blosc2.Ref.from_object(a)}
s.vlmeta["lazy"] = a + 1
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
    let theirs = SChunk::open(folder.path().join("a.b2frame")).unwrap();
    let mut ours =
        SChunk::create::<u8>(folder.path().join("r.b2frame"), &CParams::default()).unwrap();
    for name in theirs.vlmeta().names() {
        let stored = theirs.vlmeta().get(&name).unwrap().unwrap();
        let value = theirs.vlmeta().value(&name).unwrap().unwrap();
        assert!(value.to_msgpack().unwrap() == stored, "{name}");
        ours.vlmeta_mut().set_value(&name, &value).unwrap();
        assert!(ours.vlmeta().get(&name).unwrap().unwrap() == stored, "{name}");
    }
    let frame = |name: &str| match theirs.vlmeta().value(name).unwrap().unwrap() {
        Value::Frame(bytes) => bytes,
        Value::List(mut items) => match items.remove(0) {
            Value::Frame(bytes) => bytes,
            other => panic!("{name}: {other}"),
        },
        other => panic!("{name}: {other}"),
    };
    let array = NDArray::open_rw(frame("array")).unwrap();
    assert_eq!(array.read::<Vec<i64>>(..).unwrap(), [0, 1, 2, 3, 4]);
    let array = NDArray::open_rw(frame("file")).unwrap();
    assert!(array.read::<Vec<i32>>(..).unwrap().into_iter().eq(0..10));
    for (name, meta, nchunks) in
        [("schunk", None, 1), ("objects", Some("vlarray"), 2), ("batches", Some("batcharray"), 1)]
    {
        let schunk = SChunk::open(frame(name)).unwrap();
        assert_eq!(
            (schunk.meta().names().first().map(|name| &name[..]), schunk.nchunks()),
            (meta, nchunks)
        );
    }
    let store = SChunk::open(frame("store")).unwrap();
    assert!(store.meta().contains("b2embed"));
    let place = |urlpath: &str| {
        Value::from([
            ("kind", "urlpath".into()),
            ("version", 1.into()),
            ("urlpath", urlpath.into()),
        ])
    };
    let parts = [("kind", "ref".into()), ("version", 1.into()), ("ref", place("a.b2nd"))];
    let expected = Value::Reference(Box::new(Value::from(parts)));
    assert_eq!(theirs.vlmeta().value("ref").unwrap(), Some(Value::from([("here", expected)])));
    let Some(Value::Reference(lazy)) = theirs.vlmeta().value("lazy").unwrap() else { panic!() };
    assert_eq!(lazy.get("kind"), Some(&"lazyexpr".into()));
    assert_eq!(lazy.get("expression"), Some(&"(o0 + 1)".into()));
    assert_eq!(lazy.get("operands"), Some(&Value::from([("o0", place("a.b2nd"))])));

    let array = NDArray::from_slice(&[1u16, 2, 3, 4], [2, 2]).unwrap();
    let mut vlmeta = ours.vlmeta_mut();
    vlmeta.set_value("new", &Value::Frame(array.schunk().to_cframe().unwrap())).unwrap();
    let parts = [("kind", "ref".into()), ("version", 1.into()), ("ref", place("a.b2nd"))];
    vlmeta.set_value("new ref", &Value::Reference(Box::new(Value::from(parts)))).unwrap();
    drop(ours);
    let script = r#"
s = blosc2.open("r.b2frame", deserialize="full")
v = s.vlmeta
assert np.array_equal(v["array"][:], np.arange(5)) and v["array"].dtype == np.int64
assert np.array_equal(v["file"][0][:], np.arange(10))
assert v["schunk"][:] == bytes(range(10))
assert list(v["objects"]) == ["x", (1, 2)] and type(v["objects"]) is blosc2.ObjectArray
assert list(v["batches"][0]) == [1, 2, "three"] and type(v["batches"]) is blosc2.BatchArray
assert np.array_equal(v["store"]["/a"][:], np.arange(3))
ref = blosc2.Ref.from_object(blosc2.open("a.b2nd"))
assert v["ref"] == {"here": ref} and v["new ref"] == ref
assert np.array_equal(v["lazy"][:], np.arange(1, 11))
assert np.array_equal(v["new"][:], [[1, 2], [3, 4]]) and v["new"].dtype == np.uint16
s = blosc2.open("r.b2frame")
for name in s.vlmeta:
    try:
        s.vlmeta[name]
    except blosc2.exceptions.UnsafeDeserializationError:
        continue
    assert False, name
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn values_that_python_wrote_are_made_into_the_programs_types() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Row {
        id: u16,
        place: [f32; 2],
        name: String,
        at: i64,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Config {
        text: String,
        number: Option<f64>,
        #[serde(default)]
        missing: Vec<u8>,
        phase: (f64, f64),
        tags: BTreeSet<String>,
        any: Value,
        mode: Mode,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Mode {
        Fast,
        Level(u8),
    }
    let folder = tempfile::tempdir().unwrap();
    write_cases(folder.path(), &());
    let script = r#"
meta = {"fixed": {"version": 1, "names": ["a", "b"]}, "pair": (1, "x"), "bytes": b"ab", "none": None}
s = blosc2.SChunk(chunksize=100, urlpath="a.b2frame", meta=meta, cparams=dict(typesize=4))
s.append_data(bytes(100))
v = s.vlmeta
v["dict"] = {"text": "é", "number": 1.5, "none": None, "yes": True, "list": [1, -2, 2**40]}
v["config"] = {"text": "é", "number": None, "phase": 1 - 2j, "tags": {"x"}, "any": (1, 2j), "mode": {"level": 3}}
v["mode"] = "fast"
v["tuple"] = (1, (2.5, "x"), [(), ("__tuple__",)])
v["bytes"] = b"\x00ab"
v["numbers"] = [1j, 1, np.complex64(0.5)]
v["vector"] = np.arange(3, dtype=">f4")
v["matrix"] = np.arange(6, dtype="<i2").reshape(2, 3)
v["half"] = np.array([[0.5], [-np.inf]], dtype="<f2")
v["complex"] = np.array([1 + 2j, -1j])
v["texts"] = np.array([["a", "né"]])
v["flags"] = np.array(True)
v["dates"] = np.array(["1970-01-03", "NaT"], dtype="M8[D]")
rows = [(1, (0.5, 1.5), b"one", "1970-01-02"), (2, (-1, 0), b"", "1969-12-31")]
v["rows"] = np.array(rows, dtype=[("id", ">u2"), ("place", "<f4", 2), ("name", "S5"), ("at", "M8[D]")])
v["objects"] = O((2, 1), ("a", 1), ("b", 2))
v["deep"] = {"a": [blosc2.asarray(np.arange(3))]}
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
    let schunk = SChunk::open(folder.path().join("a.b2frame")).unwrap();
    let (meta, vlmeta) = (schunk.meta(), schunk.vlmeta());

    let fixed: serde_json::Value = meta.get_value("fixed").unwrap().unwrap();
    assert_eq!(fixed, json!({"version": 1, "names": ["a", "b"]}));
    assert_eq!(meta.get_value("pair").unwrap(), Some((1, "x".to_owned())));
    assert_eq!(meta.value("bytes").unwrap(), Some(Value::Bytes(b"ab".to_vec())));
    assert_eq!(meta.get_value::<Option<u8>>("none").unwrap(), Some(None));
    for name in meta.names() {
        let stored = meta.get(&name).unwrap().unwrap();
        assert_eq!(meta.value(&name).unwrap().unwrap().to_msgpack().unwrap(), stored, "{name}");
    }

    let dict: serde_json::Value = vlmeta.get_value("dict").unwrap().unwrap();
    let list = [1, -2, 1i64 << 40];
    let expected = json!({"text": "é", "number": 1.5, "none": null, "yes": true, "list": list});
    assert_eq!(dict, expected);
    let config: Config = vlmeta.get_value("config").unwrap().unwrap();
    let expected = Config {
        text: "é".to_owned(),
        number: None,
        missing: vec![],
        phase: (1.0, -2.0),
        tags: BTreeSet::from(["x".to_owned()]),
        any: tuple([1.into(), complex(0.0, 2.0)]),
        mode: Mode::Level(3),
    };
    assert_eq!(config, expected);
    assert_eq!(vlmeta.get_value("mode").unwrap(), Some(Mode::Fast));
    type Tuple = (u8, (f32, String), (Vec<u8>, Vec<String>));
    let tuple: Option<Tuple> = vlmeta.get_value("tuple").unwrap();
    assert_eq!(tuple, Some((1, (2.5, "x".to_owned()), (vec![], vec!["__tuple__".to_owned()]))));
    assert_eq!(vlmeta.get_value::<Vec<u8>>("bytes").unwrap(), Some(b"\0ab".to_vec()));
    type Numbers = ((f64, f64), u8, [f32; 2]);
    assert_eq!(vlmeta.get_value::<Numbers>("numbers").unwrap(), Some(((0.0, 1.0), 1, [0.5, 0.0])));
    assert_eq!(vlmeta.get_value("vector").unwrap(), Some(vec![0.0f64, 1.0, 2.0]));
    let matrix: Option<Vec<Vec<i16>>> = vlmeta.get_value("matrix").unwrap();
    assert_eq!(matrix.unwrap(), [[0, 1, 2], [3, 4, 5]]);
    assert_eq!(vlmeta.get_value("half").unwrap(), Some([[0.5f32], [f32::NEG_INFINITY]]));
    assert_eq!(vlmeta.get_value("complex").unwrap(), Some(vec![(1.0, 2.0), (0.0, -1.0)]));
    let texts: Option<Vec<Vec<String>>> = vlmeta.get_value("texts").unwrap();
    assert_eq!(texts.unwrap(), [["a", "né"]]);
    assert_eq!(vlmeta.get_value("flags").unwrap(), Some(true));
    assert_eq!(vlmeta.get_value("dates").unwrap(), Some([2, i64::MIN]));
    let row = |id, place, name: &str, at| Row { id, place, name: name.to_owned(), at };
    let rows = vec![row(1, [0.5, 1.5], "one", 1), row(2, [-1.0, 0.0], "", -1)];
    assert_eq!(vlmeta.get_value("rows").unwrap(), Some(rows));
    let objects: Option<Vec<[(String, u8); 1]>> = vlmeta.get_value("objects").unwrap();
    assert_eq!(objects.unwrap(), [[("a".to_owned(), 1)], [("b".to_owned(), 2)]]);
    let deep: BTreeMap<String, Vec<Vec<u8>>> = vlmeta.get_value("deep").unwrap().unwrap();
    let array = NDArray::open_rw(deep["a"][0].clone()).unwrap();
    assert_eq!(array.read::<Vec<i64>>(..).unwrap(), [0, 1, 2]);

    assert_eq!(vlmeta.get_value::<u8>("none").unwrap(), None);
    for (name, told) in [("dict", "map"), ("matrix", "sequence"), ("dates", "-9223")] {
        let error = vlmeta.get_value::<Vec<u16>>(name).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch);
        assert!(error.to_string().contains(told), "{error}");
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn the_programs_types_are_read_by_python() {
    #[derive(Serialize)]
    struct Note<'a> {
        text: &'a str,
        value: Value,
        values: Vec<Value>,
        mode: Mode,
        none: Option<u8>,
    }
    #[derive(Serialize)]
    enum Mode {
        Level(u8),
    }
    let folder = tempfile::tempdir().unwrap();
    write_cases(folder.path(), &());
    for (file, directory) in [("c.b2frame", false), ("d.b2frame", true)] {
        let options = OpenOptions::new().create_new(true).typesize(4);
        let path = Target::from(folder.path().join(file)).directory(directory);
        let options = options.cparams(CParams::default()).meta_value("units", "kelvin").unwrap();
        let mut schunk = options.open(path).unwrap();
        schunk.meta_mut().set_value("fixed", &("version", 1)).unwrap();
        assert_eq!(schunk.meta().get_value::<String>("units").unwrap().unwrap(), "kelvin");
        schunk.append(&[1u32, 2, 3]).unwrap();
        // The same length.
        schunk.meta_mut().set_value("fixed", &("version", 2)).unwrap();
        let mut vlmeta = schunk.vlmeta_mut();
        vlmeta.set_value("map", &BTreeMap::from([("a", 1.5), ("é", -0.0)])).unwrap();
        let json =
            json!({"list": [1, -2, 1u64 << 40, u64::MAX], "none": null, "yes": true, "e": {}});
        vlmeta.set_value("json", &json).unwrap();
        vlmeta.set_value("text", &"x".repeat(70_000)).unwrap();
        vlmeta.set_value("single", &1.5f32).unwrap();
        vlmeta.set_value("tuple", &tuple([1.into(), "x".into()])).unwrap();
        let note = Note {
            text: "é",
            value: tuple([1.into(), set([complex(0.0, 1.0)])]),
            values: vec![pattern("<i4", &[2]), Value::Bytes(vec![0])],
            mode: Mode::Level(3),
            none: None,
        };
        vlmeta.set_value("note", &note).unwrap();
        let deep = (0..128).fold(Value::None, |value, _| Value::List(vec![value]));
        vlmeta.set_value("deep", &deep).unwrap();
    }
    let builder = NDArray::builder().target(folder.path().join("a.b2nd"));
    let options = OpenOptions::new().meta_value("units", "kelvin").unwrap();
    let builder = builder.options(options.vlmeta_value("tags", &["raw", "new"]).unwrap());
    builder.from_slice(&[1u8, 2], &[2]).unwrap();
    let script = r#"
array = blosc2.open("a.b2nd")
assert array.schunk.meta["units"] == "kelvin" and array.schunk.vlmeta["tags"] == ["raw", "new"]
for file in ["c.b2frame", "d.b2frame"]:
    s = blosc2.open(file, mode="a")
    assert s.meta["fixed"] == ["version", 2], s.meta["fixed"]
    assert s.meta["units"] == "kelvin"
    v = s.vlmeta
    assert v["map"] == {"a": 1.5, "é": -0.0}
    assert v["json"] == {"list": [1, -2, 2**40, 2**64 - 1], "none": None, "yes": True, "e": {}}
    assert v["text"] == "x" * 70000 and v["single"] == 1.5
    assert v["tuple"] == (1, "x")
    note = dict(text="é", value=(1, {1j}), values=[A("<i4", 2), b"\0"], mode={"Level": 3}, none=None)
    assert same(v["note"], note), v["note"]
    deep = v["deep"]
    for _ in range(128):
        [deep] = deep
    assert deep is None
    v["text"] = ("from", "Python")
"#;
    run_python(&format!("{START}{script}"), folder.path(), &[]);
    for file in ["c.b2frame", "d.b2frame"] {
        let schunk = SChunk::open(folder.path().join(file)).unwrap();
        let text: Option<(String, String)> = schunk.vlmeta().get_value("text").unwrap();
        assert_eq!(text, Some(("from".to_owned(), "Python".to_owned())));
    }
}
