//! Values in metalayers: what Python writes is read here, and what is written here is read by Python.

mod common;

use std::collections::BTreeMap;

use blosc2::{CParams, ErrorKind, OpenOptions, SChunk};
use common::run_python;
use rmpv::Value;
use serde_json::json;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn values_that_python_wrote_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"
import numpy as np
import blosc2

meta = {"fixed": {"version": 1, "names": ["a", "b"]}, "pair": (1, "x")}
s = blosc2.SChunk(chunksize=100, urlpath="a.b2frame", meta=meta, cparams=dict(typesize=4))
s.append_data(bytes(100))
s.vlmeta["dict"] = {"text": "é", "number": 1.5, "none": None, "yes": True, "list": [1, -2, 2**40]}
s.vlmeta["tuple"] = (1, (2.5, "x"), [(), ("__tuple__",)])
s.vlmeta["bytes"] = b"\x00ab"
s.vlmeta["complex"] = 1 - 2j
s.vlmeta["array"] = np.arange(3, dtype="<i4")
s.vlmeta["long"] = list(range(10000))
s.vlmeta["tuple of 16"] = tuple(range(16))
"#;
    run_python(script, folder.path(), &[]);
    let schunk = SChunk::open(folder.path().join("a.b2frame")).unwrap();
    let (meta, vlmeta) = (schunk.meta(), schunk.vlmeta());

    let fixed: serde_json::Value = meta.get_value("fixed").unwrap().unwrap();
    assert_eq!(fixed, json!({"version": 1, "names": ["a", "b"]}));
    assert_eq!(meta.get_value("pair").unwrap(), Some((1, "x".to_owned())));

    let dict: serde_json::Value = vlmeta.get_value("dict").unwrap().unwrap();
    let list = [1, -2, 1i64 << 40];
    let expected = json!({"text": "é", "number": 1.5, "none": null, "yes": true, "list": list});
    assert_eq!(dict, expected);
    type Tuple = (u8, (f32, String), (Vec<u8>, Vec<String>));
    let tuple: Option<Tuple> = vlmeta.get_value("tuple").unwrap();
    assert_eq!(tuple, Some((1, (2.5, "x".to_owned()), (vec![], vec!["__tuple__".to_owned()]))));
    let bytes: Option<Value> = vlmeta.get_value("bytes").unwrap();
    assert_eq!(bytes, Some(Value::Binary(b"\0ab".to_vec())));
    let complex: Option<Value> = vlmeta.get_value("complex").unwrap();
    let numbers = [1f64.to_be_bytes(), (-2f64).to_be_bytes()].concat();
    assert_eq!(complex, Some(Value::Ext(44, numbers)));
    let array: Option<Value> = vlmeta.get_value("array").unwrap();
    assert!(matches!(&array, Some(Value::Ext(46, _))), "{array:?}");
    let long: Option<Vec<u32>> = vlmeta.get_value("long").unwrap();
    assert!(long.unwrap().into_iter().eq(0..10000));
    let long: Option<Vec<u32>> = vlmeta.get_value("tuple of 16").unwrap();
    assert!(long.unwrap().into_iter().eq(0..16));

    assert_eq!(vlmeta.get_value::<u8>("none").unwrap(), None);
    let error = vlmeta.get_value::<u8>("dict").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn values_that_rust_wrote_are_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    for (file, directory) in [("c.b2frame", false), ("d.b2frame", true)] {
        let options = OpenOptions::new().create_new(true).directory(directory).typesize(4);
        let path = folder.path().join(file);
        let mut schunk = options.cparams(&CParams::default()).open(path).unwrap();
        schunk.meta_mut().set_value("fixed", &("version", 1)).unwrap();
        schunk.append(&[1u32, 2, 3]).unwrap();
        // The same length.
        schunk.meta_mut().set_value("fixed", &("version", 2)).unwrap();
        let mut vlmeta = schunk.vlmeta_mut();
        vlmeta.set_value("map", &BTreeMap::from([("a", 1.5), ("é", -0.0)])).unwrap();
        let json =
            json!({"list": [1, -2, 1u64 << 40, u64::MAX], "none": null, "yes": true, "e": {}});
        vlmeta.set_value("json", &json).unwrap();
        vlmeta.set_value("text", &"x".repeat(70_000)).unwrap();
        vlmeta.set_value("bytes", &Value::Binary(b"\0ab".to_vec())).unwrap();
        let numbers = [1f64.to_be_bytes(), (-2f64).to_be_bytes()].concat();
        vlmeta.set_value("complex", &Value::Ext(44, numbers)).unwrap();
        vlmeta.set_value("single", &1.5f32).unwrap();
        vlmeta.set_value("tuple", &("__tuple__", 1, "x")).unwrap();
        let deep = (0..128).fold(Value::Nil, |value, _| Value::Array(vec![value]));
        vlmeta.set_value("deep", &deep).unwrap();
    }
    let script = r#"
import blosc2

for file in ["c.b2frame", "d.b2frame"]:
    s = blosc2.open(file, mode="a")
    assert s.meta["fixed"] == ["version", 2], s.meta["fixed"]
    v = s.vlmeta
    assert v["map"] == {"a": 1.5, "é": -0.0}
    assert v["json"] == {"list": [1, -2, 2**40, 2**64 - 1], "none": None, "yes": True, "e": {}}
    assert v["text"] == "x" * 70000 and v["bytes"] == b"\x00ab"
    assert v["complex"] == 1 - 2j and v["single"] == 1.5
    assert v["tuple"] == (1, "x")
    deep = v["deep"]
    for _ in range(128):
        [deep] = deep
    assert deep is None
    v["text"] = ("from", "Python")
"#;
    run_python(script, folder.path(), &[]);
    for file in ["c.b2frame", "d.b2frame"] {
        let schunk = SChunk::open(folder.path().join(file)).unwrap();
        let text: Option<(String, String)> = schunk.vlmeta().get_value("text").unwrap();
        assert_eq!(text, Some(("from".to_owned(), "Python".to_owned())));
    }
}
