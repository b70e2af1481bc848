//! Values in metalayers: what is written and read, and what is refused.

use std::collections::BTreeMap;

use proptest::prelude::*;

use blosc2::super_chunk::VariableBlocks;
use blosc2::{ArrayValue, CParams, Dtype, ErrorKind, OpenOptions, SChunk, Value};
use blosc2_format::file::{self, File};
use blosc2_format::{Limits, Options};
use serde::de::DeserializeOwned;

use crate::common::{Rng, repeats};

fn schunk() -> SChunk {
    SChunk::in_memory::<u8>(&CParams::default()).unwrap()
}

fn with(content: &[u8]) -> SChunk {
    let mut schunk = schunk();
    schunk.vlmeta_mut().set("value", content).unwrap();
    schunk
}

fn kind<T: DeserializeOwned + std::fmt::Debug>(schunk: &SChunk) -> ErrorKind {
    schunk.vlmeta().get_value::<T>("value").unwrap_err().kind()
}

#[test]
fn values_are_written_as_python_writes_them() {
    #[derive(serde::Serialize)]
    struct Place {
        name: &'static str,
        at: (f64, bool),
        none: Option<u8>,
    }
    let mut schunk = schunk();
    schunk.vlmeta_mut().set_value("n", &-5i64).unwrap();
    schunk.vlmeta_mut().set_value("b", serde_bytes::Bytes::new(b"ab")).unwrap();
    let place = Place { name: "here", at: (1.5, true), none: None };
    schunk.meta_mut().set_value("place", &place).unwrap();
    assert_eq!(schunk.vlmeta().get("n").unwrap().unwrap(), [0xfb]);
    assert_eq!(schunk.vlmeta().get("b").unwrap().unwrap(), b"\xc4\x02ab");
    let expected = b"\x83\xa4name\xa4here\xa2at\x92\xcb\x3f\xf8\0\0\0\0\0\0\xc3\xa4none\xc0";
    assert_eq!(schunk.meta().get("place").unwrap().unwrap(), expected);
    assert_eq!(schunk.vlmeta().get_value::<i8>("n").unwrap(), Some(-5));
    assert_eq!(schunk.vlmeta().get_value::<i8>("m").unwrap(), None);
}

/// Lengths of all magnitudes up to 64 MiB.
fn lengths() -> impl Strategy<Value = usize> {
    (0..=26u32).prop_flat_map(|bits| 0..=1usize << bits)
}

/// A value with values of all kinds in it.
fn values() -> impl Strategy<Value = Value> {
    let simple = prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(|number| Value::from(if number.is_nan() { 0.5 } else { number })),
        "[a-z]{0,40}".prop_map(Value::from),
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Value::Bytes),
        (any::<i32>(), any::<i32>())
            .prop_map(|(re, im)| Value::Complex { re: re.into(), im: im.into() }),
        prop::collection::vec(0..3u64, 0..4).prop_map(|shape| {
            let len = 4 * shape.iter().product::<u64>() as usize;
            let dtype = Dtype::parse("[('a', '<u2'), ('b', '<i1', (2,))]").unwrap();
            ArrayValue::new(dtype, shape, vec![1; len]).unwrap().into()
        }),
        prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::Ext(7, bytes)),
    ];
    simple.prop_recursive(4, 60, 8, |inner| {
        let items = || prop::collection::vec(inner.clone(), 0..8);
        prop_oneof![
            items().prop_map(Value::List),
            items().prop_map(Value::Tuple),
            items().prop_map(|values| {
                Value::Objects { shape: vec![1, values.len() as u64], values }
            }),
            prop::collection::vec(any::<i64>(), 0..8)
                .prop_map(|items| Value::Set(items.into_iter().map(Value::from).collect())),
            prop::collection::vec(("[a-z]{1,9}", inner.clone()), 0..8)
                .prop_map(|pairs| pairs.into_iter().collect::<Value>()),
            inner.prop_map(|value| Value::Reference(Box::new(value))),
        ]
    })
}

/// Puts a value into `levels` other values.
fn nested(levels: usize, kinds: &[u8]) -> Value {
    (0..levels).fold(Value::from(1), |value, level| match kinds[level % kinds.len()] % 5 {
        0 => Value::List(vec![value]),
        1 => Value::Tuple(vec![value]),
        2 => Value::from([("key", value)]),
        3 => Value::Reference(Box::new(value)),
        _ => Value::Objects { shape: vec![1], values: vec![value] },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: repeats(600) as u32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_was_written_is_read_with_the_default_limits(
        layers in prop::collection::vec((lengths(), lengths(), any::<u64>()), 1..4),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.b2frame");
        let mut schunk = OpenOptions::new().create_new(true).open(&path).unwrap();
        let mut written: Vec<(String, Vec<u8>)> = Vec::new();
        for (number, (len, period, seed)) in layers.into_iter().enumerate() {
            let content = Rng(seed).repeating(len, period.min(1 << 20) + 1);
            let name = number.to_string();
            schunk.vlmeta_mut().set(&name, &content).unwrap();
            written.push((name, content));
        }
        drop(schunk);
        let schunk = SChunk::open(&path).unwrap();
        let mut file = File::open(&path, &Limits::default()).unwrap();
        for (name, content) in &written {
            prop_assert!(schunk.vlmeta().get(name).unwrap().as_ref() == Some(content), "{name}");
            prop_assert!(file.vlmetalayer(name).unwrap().as_ref() == Some(content), "{name}");
        }
        for (found, expected) in schunk.vlmeta().iter().zip(&written) {
            prop_assert!(found.unwrap() == *expected, "{}", expected.0);
        }
        let (_, report) = file::check_path(&path, &Options::default()).unwrap();
        prop_assert!(report.is_good() && report.is_complete(), "{report:?}");
    }
}

proptest! {
    /// Writers compare the count with the limit of readers.
    #[test]
    fn a_value_takes_64_bytes_for_each_value_that_is_counted(value in values()) {
        let bytes = value.to_msgpack().unwrap();
        let mut chunks = schunk();
        chunks.vlmeta_mut().set_value("value", &value).unwrap();
        chunks.append(&bytes).unwrap();
        let mut blocks = schunk();
        blocks.append(VariableBlocks(&[&bytes])).unwrap();
        let read = |max_read| {
            let open = |schunk: &SChunk| {
                OpenOptions::new().max_read(max_read).open(schunk.to_cframe().unwrap())
            };
            let (chunks, blocks) = (open(&chunks).unwrap(), open(&blocks).unwrap());
            let layer = chunks.vlmeta().value("value").map(Option::unwrap);
            let of = |bytes: blosc2::Result<Vec<u8>>| {
                Ok(Value::from_msgpack_within(&bytes?, max_read)?)
            };
            [layer, of(chunks.decompress_chunk(0)), of(blocks.block(0, 0))]
        };
        let memory = 64 * value.count();
        for found in read(memory.max(bytes.len() as u64)) {
            prop_assert_eq!(found.unwrap(), value.clone());
        }
        if memory - 64 >= bytes.len() as u64 {
            for found in read(memory - 64) {
                prop_assert_eq!(found.unwrap_err().kind(), ErrorKind::TooLarge);
            }
        }
    }

    /// The depth is limited. What is written is read, whatever contains the value.
    #[test]
    fn nested_values_are_read_or_not_written(
        levels in 120..135usize,
        kinds in prop::collection::vec(any::<u8>(), 1..7),
    ) {
        let value = nested(levels, &kinds);
        let mut schunk = schunk();
        match schunk.vlmeta_mut().set_value("value", &value) {
            Ok(()) => prop_assert_eq!(schunk.vlmeta().value("value").unwrap(), Some(value)),
            Err(error) => prop_assert_eq!(error.kind(), ErrorKind::InvalidArgument),
        }
    }
}

#[test]
fn what_could_not_be_read_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let zeros = vec![0u8; 300 << 20];
    let mut schunk = OpenOptions::new().create_new(true).open(&path).unwrap();
    // This layer can be removed; the other ones do not depend on it.
    schunk.vlmeta_mut().set("random", &Rng(1).repeating(1 << 20, 1 << 20)).unwrap();
    let mut names = Vec::new();
    let error = loop {
        let name = format!("layer {}", names.len());
        match schunk.vlmeta_mut().set(&name, &zeros) {
            Ok(()) => names.push(name),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!((1..4).contains(&names.len()), "{names:?}");
    // Replacing one of them frees its share.
    schunk.vlmeta_mut().set(&names[0], &zeros).unwrap();
    schunk.vlmeta_mut().remove("random").unwrap();
    drop(schunk);
    let schunk = SChunk::open(&path).unwrap();
    assert!(schunk.vlmeta().iter().all(|layer| layer.unwrap().1 == zeros));
    assert!(names.iter().all(|name| schunk.vlmeta().get(name).unwrap().unwrap() == zeros));
    let limited = OpenOptions::new().max_read(200 << 20).open(&path).unwrap();
    let error = limited.vlmeta().get(&names[0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
}

#[test]
fn marks_of_tuples_are_not_read() {
    // ("numpy", (10, 100), [("__tuple__",), ()]) and a list that only starts so.
    let tuple = b"\xa9__tuple__";
    let content = [
        b"\x95",
        &tuple[..],
        b"\xa5numpy\x93",
        tuple,
        b"\x0a\x64\x92\x92",
        tuple,
        tuple,
        b"\x91",
        tuple,
        b"\x92\xaa__tuple__!\xc0",
    ];
    type Value = (String, (u8, u8), (Vec<String>, Vec<u8>), (String, Option<u8>));
    let value = with(&content.concat()).vlmeta().get_value::<Value>("value").unwrap().unwrap();
    let inner = (vec!["__tuple__".to_owned()], vec![]);
    let last = ("__tuple__!".to_owned(), None);
    assert_eq!(value, ("numpy".to_owned(), (10, 100), inner, last));
    // One of 16 items has a longer header than one of 15.
    let long = [&b"\xdc\x00\x10"[..], tuple, &[7; 15]].concat();
    let value = with(&long).vlmeta().get_value::<Vec<u8>>("value").unwrap();
    assert_eq!(value.unwrap(), [7; 15]);
    // A map's first key is no mark.
    let map = with(b"\x81\xa9__tuple__\x01");
    let map = map.vlmeta().get_value::<BTreeMap<String, u8>>("value").unwrap();
    assert_eq!(map.unwrap()["__tuple__"], 1);
}

#[test]
fn what_is_no_value_is_refused() {
    for content in [
        &b""[..],
        b"\xa3ab",
        b"\x92\x01",
        b"\x01\x02",
        b"\xc1",
        b"\xdd\xff\xff\xff\xff\x01",
        b"\xdf\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff",
        b"\xc9\xff\xff\xff\xff\x01",
        b"\xdb\x00",
        b"\x81\x01",
    ] {
        assert_eq!(kind::<Vec<u8>>(&with(content)), ErrorKind::InvalidData, "{content:x?}");
    }
    assert_eq!(kind::<String>(&with(b"\x01")), ErrorKind::TypeMismatch);
    assert_eq!(kind::<(u8, u8)>(&with(b"\x93\x01\x01\x01")), ErrorKind::TypeMismatch);
}

#[test]
fn depth_is_limited() {
    let nested = |depth: usize| [vec![0x91; depth], vec![1]].concat();
    assert!(with(&nested(128)).vlmeta().value("value").is_ok());
    assert_eq!(kind::<rmpv::Value>(&with(&nested(129))), ErrorKind::InvalidData);
    assert_eq!(kind::<rmpv::Value>(&with(&nested(1 << 20))), ErrorKind::InvalidData);
    let deep = (0..129).fold(rmpv::Value::Nil, |value, _| rmpv::Value::Array(vec![value]));
    let error = schunk().vlmeta_mut().set_value("value", &deep).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
}

#[test]
fn keys_of_maps_are_strings() {
    let mut schunk = schunk();
    let error = schunk.vlmeta_mut().set_value("value", &BTreeMap::from([(1, 2)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(schunk.vlmeta().is_empty());
    // Others may have written some.
    let value = with(b"\x81\x01\x02").vlmeta().get_value::<BTreeMap<u8, u8>>("value");
    assert_eq!(value.unwrap().unwrap(), BTreeMap::from([(1, 2)]));
}

#[test]
fn memory_of_many_values_is_limited() {
    // A million nothings.
    let content = [&b"\xdd\x00\x0f\x42\x40"[..], &vec![0xc0; 1_000_000]].concat();
    let bytes = with(&content).into_cframe().unwrap();
    let schunk = OpenOptions::new().max_read(10 << 20).open(bytes).unwrap();
    assert_eq!(schunk.vlmeta().get("value").unwrap().unwrap(), content);
    let error = schunk.vlmeta().value("value").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TooLarge);
    assert!(error.to_string().contains("OpenOptions::max_read"), "{error}");
    // The items of an array come later.
    let dtype = Dtype::parse("|u1").unwrap();
    let array = ArrayValue::new(dtype, vec![1_000_000], vec![0; 1_000_000]).unwrap();
    let content = Value::from(array).to_msgpack().unwrap();
    let bytes = with(&content).into_cframe().unwrap();
    let schunk = OpenOptions::new().max_read(10 << 20).open(bytes).unwrap();
    assert_eq!(schunk.vlmeta().value("value").unwrap().unwrap().to_msgpack().unwrap(), content);
    assert_eq!(kind::<Vec<u8>>(&schunk), ErrorKind::TooLarge);
}

proptest! {
    #[test]
    fn any_bytes_are_a_value_or_an_error(content in prop::collection::vec(any::<u8>(), 0..60)) {
        let by_library = rmpv::decode::read_value(&mut &content[..]);
        let value = Value::from_msgpack(&content);
        match value.map_err(|error| error.to_string()) {
            Ok(_) => prop_assert!(by_library.is_ok()),
            // Bytes that follow the value in an extension are found before the end of the content.
            Err(text) if text.ends_with("bytes follow the value") => {
                prop_assert!(by_library.is_ok() || content.iter().any(|byte| (43..47).contains(byte)));
            }
            // What the library takes for a text or an extension.
            Err(text) if ["0xc1", "UTF-8", "array", "set", "complex"].iter().any(|what| text.contains(what)) => {}
            // Those of extensions that are cut short.
            Err(_) => prop_assert!(by_library.is_err() || content.iter().any(|byte| (43..47).contains(byte))),
        }
    }
}
