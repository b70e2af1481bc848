//! Arrays of every dtype, from Python to Rust and back, and from Rust to Python and back.

use std::fs;
use std::path::Path;

use crate::common::{OTHER_ORDER, assert_same, run_python};
use blosc2::{Dtype, Element, ErrorKind, NDArray, RawItems, Selection};
use half::f16;
use num_complex::Complex;
use serde_json::{Value, json};

/// What dtypes are written as, and bytes for their items.
const DTYPES: &str = r#"
import ast, json, sys
import blosc2
import numpy as np

dtypes = "|b1 |i1 |u1 |S1 |S10 |S300 <U1 <U10 >U3 |V5 |V300".split()
for kind in "i2 i4 i8 u2 u4 u8 f2 f4 f8 f16 c8 c16 c32".split():
    dtypes += ["<" + kind, ">" + kind]
for unit in "Y M W D h m s ms us ns ps fs as".split():
    dtypes += [f"<M8[{unit}]", f">m8[{unit}]", f"<M8[25{unit}]"]
dtypes += ["<M8", "<m8"]
dtypes += [
    [("a", "<i4"), ("b", "<f8")],
    [("a", ">i4"), ("b", "<f8"), ("c", "S3"), ("d", "<U2")],
    [("p", [("x", "<f4"), ("y", "<f4", (3,))]), ("ok", "?")],
    [(("Title A", "a"), "<i4"), (("Title B", "b"), "u1")],
    [("größe", "<f4"), ("it's", "<i2"), ('say "x"', "i1")],
    [("when", "<M8[ns]"), ("z", "<c16"), ("raw", "V7")],
    [("name", "S290"), ("n", "<i2")],
    dict(names=["a", "b"], formats=["i1", "<f8"], offsets=[0, 8], itemsize=16),
    dict(names=["b", "a"], formats=["<f8", "i1"], offsets=[8, 2], itemsize=20),
    dict(names=["a"], formats=["<i4"], offsets=[4], itemsize=12, titles=["T"]),
]
dtypes = [np.dtype(each) for each in dtypes]
dtypes += [np.dtype([("a", "i1"), ("b", "<f8"), ("c", [("d", "u1"), ("e", "<i4")], (2,))], align=True)]

def text(dtype):
    return str(dtype) if dtype.kind == "V" else dtype.str

def items(dtype, shape):
    size = int(np.prod(shape)) * dtype.itemsize
    raw = (np.arange(size) * 7 // 3 % 128).astype("u1")
    if dtype.kind == "b":
        raw = raw % 2
    elif dtype.kind == "U":
        # Characters that there are.
        raw = (raw[: size // 4].astype("u4") + 32).astype(dtype.byteorder + "u4").view("u1")
    return np.frombuffer(raw.tobytes(), dtype=dtype).reshape(shape)

def stored(array):
    """Of an array of one chunk of one block: NumPy does not copy what is between the fields."""
    assert array.schunk.nchunks == 1 and array.chunks == array.shape == array.blocks
    return array.schunk.decompress_chunk(0)
"#;

const SHAPE: [u64; 2] = [3, 5];

fn python(script: &str, folder: &Path) -> Value {
    serde_json::from_str(&run_python(&format!("{DTYPES}{script}"), folder, &[])).unwrap()
}

/// The texts of a JSON array, with their indices.
fn list(value: &Value) -> impl Iterator<Item = (usize, &str)> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).enumerate()
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_of_every_dtype_go_from_python_to_rust_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    let script = r#"
for number, dtype in enumerate(dtypes):
    data = items(dtype, (3, 5))
    array = blosc2.empty((3, 5), dtype=dtype, urlpath=f"{number}.b2nd", chunks=(3, 5), blocks=(3, 5))
    array[...] = data
    assert array.dtype == dtype
    open(f"{number}.raw", "wb").write(stored(array))
print(json.dumps([text(dtype) for dtype in dtypes]))
"#;
    let found = python(script, folder.path());
    for (number, text) in list(&found) {
        let array = NDArray::open(at(format!("{number}.b2nd"))).unwrap();
        let dtype = Dtype::parse(text).unwrap();
        assert_eq!((array.dtype_str(), array.dtype()), (Some(text), Some(&dtype)));
        assert_eq!((array.typesize(), array.shape()), (dtype.size(), &SHAPE[..]), "{text}");
        let bytes = array.read::<RawItems>(..).unwrap().0;
        assert_same(&bytes, &fs::read(at(format!("{number}.raw"))).unwrap(), text);
        // As it is, by its name, and in other words.
        NDArray::builder().target(at(format!("{number}.copied"))).copy(&array).unwrap();
        for (name, dtype) in [("named", text.to_owned()), ("parsed", dtype.to_string())] {
            let builder = NDArray::builder().chunk_shape(SHAPE).block_shape(SHAPE);
            let builder = builder.target(at(format!("{number}.{name}")));
            builder.dtype(&dtype, array.typesize()).from_slice(RawItems(&bytes), SHAPE).unwrap();
        }
    }
    let script = r#"
for number, dtype in enumerate(dtypes):
    raw = open(f"{number}.raw", "rb").read()
    for name in ["copied", "named", "parsed"]:
        array = blosc2.open(f"{number}.{name}", mode="r")
        assert array.dtype == dtype, (name, array.dtype, dtype)
        assert stored(array) == raw, (name, dtype)
        found, data = array[...], np.frombuffer(raw, dtype=dtype).reshape(3, 5)
        assert repr(found.tolist()) == repr(data.tolist()), (name, dtype)
print(len(dtypes))
"#;
    assert_eq!(python(script, folder.path()), json!(found.as_array().unwrap().len()));
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn arrays_of_every_dtype_go_from_rust_to_python_and_back() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: String| folder.path().join(name);
    let found = python("print(json.dumps([text(dtype) for dtype in dtypes]))", folder.path());
    let bytes_of = |dtype: &Dtype| -> Vec<u8> {
        (0..dtype.size() * 15)
            .map(|at| if dtype.to_string() == "|b1" { at % 2 } else { at % 100 } as u8)
            .collect()
    };
    for (number, text) in list(&found) {
        let dtype = Dtype::parse(text).unwrap();
        let builder = NDArray::builder().chunk_shape(SHAPE).block_shape(SHAPE);
        let builder = builder.target(at(format!("{number}.b2nd")));
        let text = dtype.to_string();
        builder.dtype(&text, dtype.size()).from_slice(RawItems(&bytes_of(&dtype)), SHAPE).unwrap();
    }
    let script = r#"
for number, dtype in enumerate(dtypes):
    array = blosc2.open(f"{number}.b2nd", mode="r")
    assert array.dtype == dtype, (array.dtype, dtype)
    array.copy(urlpath=f"{number}.copied", chunks=(3, 5), blocks=(3, 5))
    blosc2.ndarray_from_cframe(array.to_cframe()).save(f"{number}.saved")
print(json.dumps([text(dtype) for dtype in dtypes]))
"#;
    let again = python(script, folder.path());
    for (number, text) in list(&again) {
        let dtype = Dtype::parse(text).unwrap();
        for name in ["copied", "saved"] {
            let array = NDArray::open(at(format!("{number}.{name}"))).unwrap();
            assert_eq!(array.dtype(), Some(&dtype), "{name}");
            let what = format!("{name}, {text}");
            assert_same(&array.read::<RawItems>(..).unwrap().0, &bytes_of(&dtype), &what);
        }
    }
}

/// Reads items in the opposite byte order, changes them, and returns them to Python.
fn check_turned<T: Element + PartialEq + std::fmt::Debug>(
    folder: &Path,
    kind: &str,
    item: impl Fn(u8) -> T,
) {
    let path = folder.join(format!("{kind}.b2nd"));
    let expected: Vec<T> = (0..15).map(&item).collect();
    let mut array = NDArray::open_rw(&path).unwrap();
    let error = array.read::<Vec<T>>(..).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{kind}");
    array.set_dparams(array.info().dparams.convert_byte_order(true));
    assert_eq!(array.read::<Vec<T>>(..).unwrap(), expected, "{kind}");
    assert_eq!(array.read::<Vec<T>>(&[1..2, 2..4]).unwrap(), expected[7..9], "{kind}");
    assert_eq!(array.item::<T>(&[2, 4]).unwrap(), expected[14], "{kind}");
    assert_eq!(
        array.read::<Vec<T>>(Selection::points(&[[2, 4], [0, 1]])).unwrap()[1],
        expected[1],
        "{kind}"
    );
    array.write(&[0..1, 0..2], &[item(50), item(51)]).unwrap();
    array.write([0, 2], item(52)).unwrap();
    array.append(0, &[item(53); 5]).unwrap();
    array.write(&[1..2, 0..5], item(54)).unwrap();
    assert_eq!(array.item::<T>(&[0, 1]).unwrap(), item(51), "{kind}");
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn items_of_the_other_byte_order_have_the_values_that_numpy_sees() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
kinds = "i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16".split()
for kind in kinds:
    data = (np.arange(15).reshape(3, 5) * 2).astype(ORDER + kind)
    blosc2.asarray(data, urlpath=kind + ".b2nd", chunks=(2, 3), blocks=(2, 2))
print(len(kinds))
"#;
    python(&format!("ORDER = '{OTHER_ORDER}'\n{script}"), folder.path());
    let folder = folder.path();
    check_turned(folder, "i2", |item| i16::from(item) * 2);
    check_turned(folder, "i4", |item| i32::from(item) * 2);
    check_turned(folder, "i8", |item| i64::from(item) * 2);
    check_turned(folder, "u2", |item| u16::from(item) * 2);
    check_turned(folder, "u4", |item| u32::from(item) * 2);
    check_turned(folder, "u8", |item| u64::from(item) * 2);
    check_turned(folder, "f4", |item| f32::from(item) * 2.0);
    check_turned(folder, "f8", |item| f64::from(item) * 2.0);
    check_turned(folder, "f2", |item| f16::from_f32(f32::from(item) * 2.0));
    check_turned(folder, "c8", |item| Complex::new(f32::from(item) * 2.0, 0.0));
    check_turned(folder, "c16", |item| Complex::new(f64::from(item) * 2.0, 0.0));
    let script = r#"
expected = np.arange(15).reshape(3, 5) * 2
expected[0, :3] = [100, 102, 104]
expected[1] = 108
expected = np.vstack([expected, [[106] * 5]])
for kind in "i2 i4 i8 u2 u4 u8 f2 f4 f8 c8 c16".split():
    array = blosc2.open(kind + ".b2nd")
    assert array.dtype == np.dtype(ORDER + kind)
    assert np.array_equal(array[...], expected), (kind, array[...])
print(1)
"#;
    python(&format!("ORDER = '{OTHER_ORDER}'\n{script}"), folder);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn bools_and_text_go_both_ways() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
blosc2.asarray(np.arange(1000).reshape(10, 100) % 3 == 0, urlpath="bool.b2nd", chunks=(3, 40), blocks=(2, 7))
blosc2.asarray(np.array(["", "a", "größe", "日本語", "12345"]), urlpath="text.b2nd")
blosc2.asarray(np.array([b"", b"a", b"12345"]), urlpath="bytes.b2nd")
print(1)
"#;
    python(script, folder.path());
    let at = |name: &str| folder.path().join(name);
    let bools: Vec<bool> = (0..1000).map(|item| item % 3 == 0).collect();
    let array = NDArray::open(at("bool.b2nd")).unwrap();
    assert_eq!(array.read::<Vec<bool>>(..).unwrap(), bools);
    assert_eq!(array.read::<Vec<bool>>(&[9..10, 98..100]).unwrap(), bools[998..]);
    assert_eq!(array.read::<Vec<u8>>(..).unwrap_err().kind(), ErrorKind::TypeMismatch);
    NDArray::builder().target(at("bool.back")).from_slice(&bools, [10, 100]).unwrap();

    let array = NDArray::open(at("text.b2nd")).unwrap();
    assert_eq!((array.dtype_str(), array.typesize()), (Some("<U5"), 20));
    let bytes = array.read::<RawItems>(..).unwrap().0;
    let texts: Vec<String> = bytes
        .chunks_exact(20)
        .map(|text| {
            let characters =
                text.chunks_exact(4).map(|one| u32::from_le_bytes(one.try_into().unwrap()));
            characters.filter(|&one| one != 0).map(|one| char::from_u32(one).unwrap()).collect()
        })
        .collect();
    assert_eq!(texts, ["", "a", "größe", "日本語", "12345"]);
    let builder = NDArray::builder().target(at("text.back"));
    builder.dtype("<U5", 20).from_slice(RawItems(&bytes), [5]).unwrap();

    let array = NDArray::open(at("bytes.b2nd")).unwrap();
    assert_eq!((array.dtype_str(), array.typesize()), (Some("|S5"), 5));
    assert_eq!(array.read::<RawItems>(..).unwrap().0, b"\0\0\0\0\0a\0\0\0\x0012345");
    let builder = NDArray::builder().target(at("bytes.back"));
    builder.dtype("|S2", 2).from_slice(RawItems(b"x\0\0yz"), [2, 1]).unwrap_err();
    let builder = NDArray::builder().target(at("bytes.back"));
    builder.dtype("|S2", 2).from_slice(RawItems(b"x\0yz"), [2, 1]).unwrap();
    let script = r#"
found = blosc2.open("bool.back")
assert found.dtype == np.bool_ and np.array_equal(found[...], np.arange(1000).reshape(10, 100) % 3 == 0)
assert blosc2.open("text.back")[...].tolist() == ["", "a", "größe", "日本語", "12345"]
assert blosc2.open("bytes.back")[...].tolist() == [[b"x"], [b"yz"]]
print(1)
"#;
    python(script, folder.path());
}
