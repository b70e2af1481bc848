//! Values: written as Python writes them, read, refused, and converted to user-defined types.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use serde::{Deserialize, Serialize};
use serde_json::json;

use blosc2_format::dtype::{Dtype, Field};
use blosc2_format::value::{ArrayValue, Value, ValueError, ValueErrorKind};

/// The maximum depth of nested values.
const MAX_DEPTH: usize = 128;
/// The mark that Python writes before the items of a tuple.
const TUPLE: &str = "__tuple__";

fn dtype(text: &str) -> Dtype {
    Dtype::parse(text).unwrap()
}

fn array(text: &str, shape: &[u64], data: &[u8]) -> Value {
    ArrayValue::new(dtype(text), shape.to_vec(), data.to_vec()).unwrap().into()
}

fn objects(shape: &[u64], values: Vec<Value>) -> Value {
    Value::Objects { shape: shape.to_vec(), values }
}

/// A msgpack extension of fewer than 256 bytes.
fn extension(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[0xc7, content.len() as u8, kind], content].concat()
}

fn fault(bytes: &[u8]) -> String {
    let error = Value::from_msgpack(bytes).unwrap_err();
    assert_eq!(error.kind, ValueErrorKind::InvalidData);
    error.to_string()
}

fn refusal(value: &Value) -> String {
    let error = value.to_msgpack().unwrap_err();
    assert_eq!(error.kind, ValueErrorKind::InvalidArgument);
    // The same for a value inside another type.
    assert_eq!(
        Value::from_type(value).and_then(|value| value.to_msgpack()).unwrap_err().kind,
        error.kind
    );
    error.to_string()
}

const SCALARS: [&str; 22] = [
    "|b1", "|i1", "|u1", "<i2", ">i4", "<i8", ">u2", "<u4", "<u8", "<f2", ">f4", "<f8", "<c8",
    ">c16", "<f16", "<M8", "<M8[ns]", ">m8[25s]", "|S3", "<U2", ">U1", "|V5",
];

fn any_dtype() -> impl Strategy<Value = Dtype> {
    prop::sample::select(&SCALARS[..]).prop_map(dtype).prop_recursive(3, 12, 3, |inner| {
        let field = (inner, 0usize..3, prop::collection::vec(1u64..3, 0..3), any::<bool>());
        (prop::collection::vec(field, 1..4), 0usize..3).prop_map(|(parts, end)| {
            let mut size = 0;
            let mut fields = Vec::new();
            for (index, (item, gap, shape, titled)) in parts.into_iter().enumerate() {
                let item = Dtype::array(item, &shape).unwrap();
                let field = Field::new(format!("it's\t\"{index}\"é"), size + gap, item);
                size = field.offset() + field.dtype().size();
                fields.push(if titled { field.with_title(format!("T{index}")) } else { field });
            }
            Dtype::structure(size + end, fields).unwrap()
        })
    })
}

fn any_array() -> impl Strategy<Value = Value> {
    (any_dtype(), prop::collection::vec(0u64..4, 0..4), any::<u8>()).prop_map(
        |(dtype, shape, start)| {
            let len = shape.iter().product::<u64>() as usize * dtype.size();
            let data = (0..len).map(|index| start.wrapping_add(index as u8)).collect();
            Value::Array(ArrayValue::new(dtype, shape, data).unwrap())
        },
    )
}

fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), Just(0.0), Just(-0.0), Just(f64::INFINITY), -1e3..1e3]
}

fn any_hashable() -> impl Strategy<Value = Value> {
    let text = prop_oneof![".*", "[a-z]{30,34}", Just("x".repeat(300))];
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    prop_oneof![
        Just(Value::None),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-200i64..300).prop_map(Value::from),
        any_float().prop_map(Value::Float),
        text.prop_map(Value::Str),
        bytes.clone().prop_map(Value::Bytes),
        (any_float(), any_float()).prop_map(|(re, im)| Value::Complex { re, im }),
        (prop_oneof![0i8..42, 47i8..=127], bytes).prop_map(|(kind, bytes)| Value::Ext(kind, bytes)),
        prop::sample::select(vec![4, 8, 12]).prop_map(|len| Value::Ext(-1, vec![0; len])),
    ]
}

/// All values that can be written.
fn any_value() -> impl Strategy<Value = Value> {
    let frame = prop::collection::vec(any::<u8>(), 0..300).prop_map(Value::Frame);
    let leaf = prop_oneof![8 => any_hashable(), 2 => any_array(), 1 => frame];
    leaf.prop_recursive(4, 40, 20, |inner| {
        let items = prop::collection::vec(inner.clone(), 0..20);
        let hashable = || prop::collection::vec(any_hashable(), 0..5);
        let set = (hashable(), hashable()).prop_map(|(mut items, tuple)| {
            items.push(Value::Tuple(tuple));
            Value::Set(items)
        });
        let key = any_hashable()
            .prop_filter("a text", |key| matches!(key, Value::Str(_) | Value::Bytes(_)));
        let matrix =
            prop::collection::vec(inner.clone(), 6).prop_map(|values| objects(&[2, 3, 1], values));
        prop_oneof![
            items.clone().prop_map(Value::List),
            items.prop_map(Value::Tuple),
            prop::collection::vec((key, inner.clone()), 0..20).prop_map(Value::Map),
            inner.prop_map(|value| Value::Reference(Box::new(value))),
            set,
            matrix,
        ]
    })
}

/// The memory of the lists in it, in bytes.
fn held(value: &Value) -> usize {
    let size = size_of::<Value>();
    match value {
        Value::List(items) | Value::Tuple(items) | Value::Set(items) => {
            items.capacity() * size + items.iter().map(held).sum::<usize>()
        }
        Value::Objects { values, .. } => {
            values.capacity() * size + values.iter().map(held).sum::<usize>()
        }
        Value::Map(pairs) => {
            let inner = pairs.iter().map(|(key, value)| held(key) + held(value));
            pairs.capacity() * 2 * size + inner.sum::<usize>()
        }
        Value::Reference(value) => size + held(value),
        _ => 0,
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read(value in any_value()) {
        let bytes = value.to_msgpack().unwrap();
        let read = Value::from_msgpack(&bytes).unwrap();
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(read.to_msgpack().unwrap(), &bytes[..]);
        // Through serde, in msgpack and inside another type.
        prop_assert_eq!(&Value::from_type(&value).unwrap(), &value);
        let by_serde = rmp_serde::to_vec(&value).unwrap();
        prop_assert_eq!(&by_serde, &bytes);
        prop_assert_eq!(&rmp_serde::from_slice::<Value>(&by_serde).unwrap(), &value);
        prop_assert_eq!(&value.clone().into_type::<Value>().unwrap(), &value);
        let whole = Value::from([("all", Value::Tuple(vec![value.clone(), Value::None]))]);
        let parts = whole.into_type::<BTreeMap<String, (Value, Option<Value>)>>().unwrap();
        prop_assert_eq!(&parts["all"], &(value, None));
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        value in any_value(),
        changes in prop::collection::vec(any::<(prop::sample::Index, u8)>(), 0..4),
    ) {
        let mut bytes = value.to_msgpack().unwrap();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Ok(value) = Value::from_msgpack(&bytes) {
            prop_assert!(held(&value) <= 64 * bytes.len());
            let _ = (value.to_string(), serde_json::to_string(&value));
            let _ = value.clone().into_type::<serde_json::Value>();
            if let Ok(written) = value.to_msgpack() {
                let read = Value::from_msgpack(&written).unwrap();
                prop_assert_eq!(read.to_msgpack().unwrap(), written);
            }
        }
    }
}

#[test]
fn lists_have_room_for_what_they_hold() {
    // The longest lists of one item and maps of one pair that fit in the bytes.
    for part in [&b"\x91\xc0"[..], b"\x81\xc0\xc0", b"\x91\x91\x91\x90"] {
        let bytes = [&[0xdc, 0x03, 0xe8], &part.repeat(1000)[..]].concat();
        let value = Value::from_msgpack(&bytes).unwrap();
        assert!(held(&value) <= 64 * bytes.len() && held(&value) >= 64_000);
    }
    // Nested lists. Each of them declares all bytes as its items.
    let bytes = b"\xdd\x00\x0f\x00\x00".repeat(200_000);
    assert!(fault(&bytes).ends_with("it is truncated"));
}

#[test]
fn what_python_does_not_read_is_not_written() {
    let list = |text: &str| Value::List(vec![text.into()]);
    let ext = |kind, len| Value::Ext(kind, vec![0; len]);
    for (value, told) in [
        (Value::Int(1 << 64), "64 bits"),
        (Value::Int(-(1 << 63) - 1), "64 bits"),
        (Value::Map(vec![(Value::Int(1), Value::None)]), "keys"),
        (Value::Map(vec![(Value::Tuple(vec![]), Value::None)]), "keys"),
        (list("__tuple__"), "a tuple"),
        (objects(&[1], vec!["__tuple__".into()]), "a tuple"),
        (Value::Set(vec!["__tuple__".into()]), "a tuple"),
        (Value::Set(vec![list("a")]), "a set"),
        (Value::Set(vec![Value::Tuple(vec![Value::Set(vec![])])]), "a set"),
        (Value::Set(vec![array("|u1", &[1], &[1])]), "a set"),
        (ext(-2, 1), "type -2"),
        (ext(-1, 1), "type -1"),
        (ext(44, 16), "a separate kind of value"),
        (objects(&[2, 2], vec![Value::None; 3]), "shape [2, 2] with 3 values"),
        (objects(&[1; 65], vec![Value::None]), "65 dimensions"),
    ] {
        let told_of = refusal(&value);
        assert!(told_of.contains(told), "{told_of}");
        let inside = refusal(&Value::Tuple(vec![Value::Reference(Box::new(value))]));
        assert!(inside.contains(told), "{inside}");
    }
    // NumPy cannot describe these as a list of fields.
    let field = |name, offset| Field::new(name, offset, dtype("<u2"));
    for fields in [
        vec![field("a", 0), field("b", 1)],
        vec![field("a", 2), field("b", 0)],
        vec![Field::new("", 0, dtype("|V2")), field("b", 2)],
    ] {
        let dtype = Dtype::structure(4, fields).unwrap();
        let array = ArrayValue::new(dtype, vec![1], vec![0; 4]).unwrap();
        let told = refusal(&array.into());
        assert!(told.contains("out of order") || told.contains("a list of fields"), "{told}");
    }
}

#[test]
fn arrays_are_checked() {
    let deep = format!("[('a', [('b', '|u1', ({}))])]", "1,".repeat(64));
    for (text, shape, len, told) in [
        ("<i4", &[2, 3][..], 23, "shape [2, 3] with 23 bytes"),
        ("<i4", &[], 0, "shape [] with 0 bytes"),
        ("<i4", &[1 << 32, 1 << 32], 0, "with 0 bytes"),
        ("|V0", &[1 << 40], 0, "which NumPy does not read"),
        ("('<i4', (2,))", &[1], 8, "which NumPy does not read"),
        ("[('a', '<i4'), ('b', '|O')]", &[1], 12, "pointers"),
        ("|u1", &[1; 65], 1, "65 dimensions"),
        (&deep, &[1; 64], 1, "130 levels"),
    ] {
        let error = ArrayValue::new(dtype(text), shape.to_vec(), vec![0; len]).unwrap_err();
        assert_eq!(error.kind, ValueErrorKind::InvalidArgument);
        assert!(error.to_string().contains(told), "{error}");
    }
    let told = |pairs: Vec<(&str, Value)>| {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value));
        let map = Value::Map(pairs.collect()).to_msgpack().unwrap();
        fault(&extension(46, &map))
    };
    let list = |items: &[u64]| Value::List(items.iter().map(|&item| item.into()).collect());
    let of_text = |text: &str| Value::from([("str", text.into())]);
    let of_list = |fields: Vec<Value>| Value::from([("descr", Value::List(fields))]);
    let data = || ("data", Value::Bytes(vec![0; 4]));
    for (dtype, expected) in [
        (of_text("<i5"), "an unknown type"),
        (of_text("[('a', '<i4')]"), "not in the notation of NumPy"),
        (
            of_text("{'names': ['a'], 'formats': ['<i4'], 'offsets': [0], 'itemsize': 4}"),
            "not in the notation",
        ),
        (of_text("('|u1', (4,))"), "not in the notation"),
        (of_list(vec![1.into()]), "an unknown type"),
        (of_list(vec![Value::Tuple(vec!["a".into()])]), "an unknown type"),
        (of_list(vec![Value::Complex { re: 0.0, im: 1.0 }]), "nor a list of fields"),
        (of_list(vec![]), "does not read"),
        (Value::None, "without a dtype"),
    ] {
        let told = told(vec![("dtype", dtype), ("shape", list(&[1])), data()]);
        assert!(told.contains(expected), "{told}");
    }
    let i4 = || ("dtype", of_text("<i4"));
    assert!(told(vec![i4(), data()]).contains("without a shape"));
    assert!(told(vec![i4(), ("shape", list(&[2])), data()]).contains("with 4 bytes"));
    assert!(
        told(vec![i4(), ("shape", Value::List(vec![Value::Int(-1)])), data()])
            .contains("without a shape")
    );
    assert!(
        told(vec![i4(), ("shape", list(&[1])), ("data", "text".into())]).contains("without data")
    );
    assert!(told(vec![("shape", list(&[2])), ("values", list(&[1]))]).contains("with 1 values"));
    assert!(told(vec![("shape", list(&[2])), ("values", 1.into())]).contains("without values"));
    assert!(fault(&extension(46, b"\xc0")).contains("without a shape"));
    assert!(fault(&extension(44, &[0; 15])).contains("16 bytes"));
    assert!(fault(&extension(45, b"\x80")).contains("a set that is not a list"));
}

#[test]
fn only_values_make_tuples() {
    let words = || vec!["__tuple__".to_owned(), "a".to_owned()];
    let tuple = || Value::Tuple(vec!["a".into()]);
    let refused = |made: Result<Value, ValueError>| {
        let error = made.unwrap_err();
        assert_eq!(error.kind, ValueErrorKind::InvalidArgument);
        assert!(error.to_string().contains("a tuple: it is a list that starts"), "{error}");
    };
    refused(Value::from_type(&words()));
    refused(Value::from_type(&("__tuple__", 1, "x")));
    refused(Value::from_type(&[Value::from("__tuple__")]));
    // Next to and inside values that are meant as such, also if others were created before.
    refused(Value::from_type(&(tuple(), words())));
    refused(Value::from_type(&(words(), Value::Set(vec![tuple()]))));
    refused(Value::from_type(&BTreeMap::from([("a", vec![words()])])));
    let both = (tuple(), BTreeMap::from([("b", Value::Tuple(vec!["__tuple__".into(), tuple()]))]));
    let expected = Value::List(vec![tuple(), Value::from([("b", both.1["b"].clone())])]);
    assert_eq!(Value::from_type(&both).unwrap(), expected);
}

#[test]
fn marks_of_sets_and_objects_are_items() {
    let mark = b"\x92\xa9__tuple__\x01";
    let items = vec![TUPLE.into(), 1.into()];
    let set = Value::from_msgpack(&extension(45, mark)).unwrap();
    assert_eq!(set, Value::Set(items.clone()));
    let map = [&b"\x82\xa6values"[..], mark, b"\xa5shape\x91\x02"].concat();
    let read = Value::from_msgpack(&extension(46, &map)).unwrap();
    assert_eq!(read, objects(&[2], items));
}

#[test]
fn few_bytes_do_not_stand_for_very_many_values() {
    let zeros = "[('a', '|u1'), ('b', '|V0', (1000000, 1000))]";
    let name = format!("[('{}', '|u1')]", "n".repeat(1 << 17));
    for value in [
        array("<f8", &[1 << 60, 0], &[]),
        objects(&[1 << 60, 0], vec![]),
        array(zeros, &[1], &[0]),
        array(&name, &[100_000], &[0; 100_000]),
    ] {
        let bytes = Value::List(vec![value]).to_msgpack().unwrap();
        let value = Value::from_msgpack(&bytes).unwrap();
        assert!(value.to_string().len() < 1 << 20);
        assert!(serde_json::to_string(&value).unwrap_err().to_string().contains("too many values"));
        let error = value.into_type::<serde_json::Value>().unwrap_err();
        assert!(error.to_string().contains("too many values"), "{error}");
    }
    let wide = array("|u1", &[&[30_000][..], &[1; 63]].concat(), &[7; 30_000]);
    assert!(serde_json::to_string(&wide).unwrap().len() > 60 * 30_000);
    let none: Vec<Vec<f64>> = array("<f8", &[1000, 0], &[]).into_type().unwrap();
    assert_eq!(none, vec![vec![0.0; 0]; 1000]);
}

#[test]
fn depth_is_that_of_all_kinds() {
    let nest = |levels: usize, wrap: fn(Value) -> Value| {
        (0..levels).fold(Value::None, |value, _| wrap(value))
    };
    for (wrap, most) in [
        ((|value| Value::List(vec![value])) as fn(Value) -> Value, 128),
        (|value| Value::Tuple(vec![value]), 128),
        (|value| Value::from([("a", value)]), 128),
        (|value| Value::Reference(Box::new(value)), 128),
        (|value| objects(&[], vec![value]), 42),
    ] {
        let value = nest(most, wrap);
        let bytes = value.to_msgpack().unwrap();
        assert_eq!(Value::from_msgpack(&bytes).unwrap(), value);
        assert_eq!(value.clone().into_type::<Value>().unwrap(), value);
        assert!(value.to_string().contains("None"));
        assert!(serde_json::to_string(&value).unwrap().contains("null"));
        value.into_type::<serde_json::Value>().unwrap();
        assert!(refusal(&nest(most + 1, wrap)).contains("128 levels"));
    }
    // Inside all of these, the deepest array.
    let deep = format!("[('a', '|u1', ({}))]", "1,".repeat(63));
    let value = (0..122).fold(array(&deep, &[1; 64], &[7]), |value, _| Value::List(vec![value]));
    assert_eq!(Value::from_msgpack(&value.to_msgpack().unwrap()).unwrap(), value);
    assert!(value.to_string().contains('7') && serde_json::to_string(&value).is_ok());
    value.into_type::<serde_json::Value>().unwrap();
    // From the outside to the inside.
    let mut bytes = vec![0xc0];
    for _ in 0..129 {
        bytes =
            [&[0xc9, 0, 0, (bytes.len() >> 8) as u8, bytes.len() as u8, 43][..], &bytes].concat();
    }
    assert!(fault(&bytes).contains("128 levels"));
}

#[test]
fn values_are_made_into_the_programs_types() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Unit;
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Point {
        x: f32,
        y: i16,
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    enum Shape {
        Empty,
        Circle(f64),
        Line(Point, Point),
        Box { from: Point, to: Option<Point> },
    }
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct All {
        shapes: Vec<Shape>,
        unit: Unit,
        nothing: (),
        big: (i128, u128),
        letter: char,
        value: Value,
        values: BTreeMap<String, Value>,
        set: BTreeSet<u8>,
        #[serde(with = "serde_bytes")]
        bytes: Vec<u8>,
        maybe: Option<Value>,
    }
    let all = All {
        shapes: vec![
            Shape::Empty,
            Shape::Circle(1.5),
            Shape::Line(Point { x: 1.0, y: -2 }, Point { x: 0.1, y: 3 }),
            Shape::Box { from: Point { x: 1.0, y: 2 }, to: None },
        ],
        unit: Unit,
        nothing: (),
        big: (-1 << 100, u128::MAX),
        letter: 'é',
        value: Value::Set(vec![Value::Tuple(vec![1.into()]), Value::Complex { re: 1.0, im: -1.0 }]),
        values: BTreeMap::from([("a".to_owned(), array("<u2", &[1], &[1, 0]))]),
        set: BTreeSet::from([1, 2]),
        bytes: vec![1, 2],
        maybe: None,
    };
    let value = Value::from_type(&all).unwrap();
    assert_eq!(value.get("value"), Some(&all.value));
    assert_eq!(value.get("bytes"), Some(&Value::Bytes(vec![1, 2])));
    let value = Value::from_msgpack(&value.to_msgpack().unwrap()).unwrap();
    assert_eq!(value.into_type::<All>().unwrap(), all);

    let error = Value::from(300).into_type::<u8>().unwrap_err();
    assert_eq!(error.kind, ValueErrorKind::TypeMismatch);
    for (value, told) in [
        (Value::Tuple(vec![1.into()]), "tuple of size 2"),
        (Value::List(vec![1.into(); 3]), "expected 2 elements"),
        (array("<f16", &[2], &[0; 32]), "for which Rust has no number type"),
        (array("<U1", &[2], &[0xff; 8]), "not Unicode"),
    ] {
        let error = value.into_type::<(Value, Value)>().unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn arrays_are_sequences() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Row {
        id: u16,
        place: [[f32; 2]; 1],
        name: String,
    }
    fn made<T: serde::de::DeserializeOwned>(dtype: &str, shape: &[u64], data: &[u8]) -> T {
        array(dtype, shape, data).into_type().unwrap()
    }
    assert_eq!(made::<Vec<[i16; 2]>>(">i2", &[1, 2], &[0xff, 0xfe, 0, 3]), [[-2, 3]]);
    assert_eq!(made::<u64>("<u8", &[], &[0xff; 8]), u64::MAX);
    assert_eq!(made::<(i8, i64)>("|i1", &[2], &[0x80, 0x7f]), (-128, 127));
    assert_eq!(made::<Vec<bool>>("|b1", &[3], &[0, 1, 2]), [false, true, true]);
    assert_eq!(made::<Vec<f32>>("<f2", &[2], &[0x00, 0x3e, 0x00, 0xfc]), [1.5, f32::NEG_INFINITY]);
    assert_eq!(made::<Vec<f64>>(">f4", &[1], &0.1f32.to_be_bytes()), [f64::from(0.1f32)]);
    let complex = [1.5f32.to_be_bytes(), (-2f32).to_be_bytes()].concat();
    assert_eq!(made::<Vec<(f64, f64)>>(">c8", &[1], &complex), [(1.5, -2.0)]);
    assert_eq!(made::<Vec<i64>>(">m8[25s]", &[1], &(-3i64).to_be_bytes()), [-3]);
    assert_eq!(made::<Vec<String>>("<U2", &[2], b"\xe9\0\0\0\0\0\0\0a\0\0\0b\0\0\0"), ["é", "ab"]);
    assert_eq!(made::<Vec<Vec<u8>>>("|S3", &[2], b"a\0bc\0\0"), [b"a\0b".to_vec(), b"c".to_vec()]);
    assert_eq!(made::<Vec<[u8; 2]>>("|V2", &[1], &[1, 0]), [[1, 0]]);
    let row = "[('id', '>u2'), ('place', '<f4', (1, 2)), ('name', '|S3')]";
    let data = [&[1, 2][..], &1f32.to_le_bytes(), &2f32.to_le_bytes(), b"ab\0"].concat();
    let expected = Row { id: 258, place: [[1.0, 2.0]], name: "ab".to_owned() };
    assert_eq!(made::<Vec<Row>>(row, &[1], &data), [expected]);
    let rows: Vec<Value> = made(row, &[1], &data);
    assert_eq!(rows[0].get("id"), Some(&258.into()));
    let values = objects(&[2, 1], vec!["a".into(), Value::Tuple(vec![])]);
    assert_eq!(values.into_type::<Vec<(Value,)>>().unwrap()[1].0, Value::Tuple(vec![]));
}

#[test]
fn values_are_shown_as_python_shows_them() {
    let pair = |re, im| Value::Complex { re, im };
    for (value, shown) in [
        (Value::List(vec![Value::None, true.into(), false.into()]), "[None, True, False]"),
        (Value::Tuple(vec![]), "()"),
        (Value::Tuple(vec![(-1).into()]), "(-1,)"),
        (Value::Tuple(vec![1.into(), 2.0.into()]), "(1, 2.0)"),
        (f64::NAN.into(), "nan"),
        (Value::List(vec![(-0.0).into(), f64::NEG_INFINITY.into()]), "[-0.0, -inf]"),
        ("it's".into(), "\"it's\""),
        ("'\"\\\n\u{1}é".into(), "'\\'\"\\\\\\n\\x01é'"),
        (Value::Bytes(b"a'\xff".to_vec()), r"b'a\'\xff'"),
        (Value::from([("a", 1.into()), ("b", Value::Map(vec![]))]), "{'a': 1, 'b': {}}"),
        (Value::Set(vec![]), "set()"),
        (Value::Set(vec![1.into(), "x".into()]), "{1, 'x'}"),
        (pair(0.0, 1.0), "1j"),
        (pair(1.0, -2.5), "(1-2.5j)"),
        (pair(-0.0, f64::INFINITY), "(-0+infj)"),
        (array("<i4", &[], &[1, 0, 0, 0]), "array(1, dtype='<i4')"),
        (array("|u1", &[2, 1], &[1, 2]), "array([[1], [2]], dtype='|u1')"),
        (array("<f4", &[0], &[]), "array([], dtype='<f4')"),
        (array("<f4", &[2, 0], &[]), "array([], shape=(2, 0), dtype='<f4')"),
        (array("<f16", &[1], &[0; 16]), "array([?], dtype='<f16')"),
        (array("<c8", &[1], &[0; 8]), "array([0j], dtype='<c8')"),
        (
            array("[('a', '|u1'), ('b', '|S2', (2,))]", &[1], b"\x01x\0yz"),
            "array([(1, [b'x', b'yz'])], dtype=[('a', 'u1'), ('b', 'S2', (2,))])",
        ),
        (objects(&[1], vec![Value::Tuple(vec![1.into()])]), "array([(1,)], dtype=object)"),
        (Value::Frame(vec![0; 3]), "<frame of 3 bytes>"),
        (Value::Reference(Box::new(1.into())), "<reference 1>"),
        (Value::Ext(5, vec![0]), r"ExtType(code=5, data=b'\x00')"),
    ] {
        assert_eq!(value.to_string(), shown);
    }
}

#[test]
fn formats_for_people_get_plain_values() {
    let value = Value::Map(vec![
        ("tuple".into(), Value::Tuple(vec![1.into(), Value::Complex { re: 0.5, im: f64::NAN }])),
        (Value::Bytes(vec![7]), Value::Bytes(vec![0x61, 0xff])),
        (2.into(), Value::Ext(5, vec![1])),
        ("array".into(), array("[('a', '|u1'), ('b', '<U1')]", &[1, 1], b"\x07x\0\0\0")),
        ("frame".into(), Value::Frame(vec![1])),
        ("reference".into(), Value::Reference(Box::new(Value::Set(vec![Value::None])))),
        ("big".into(), u64::MAX.into()),
    ]);
    let expected = json!({
        "tuple": [1, [0.5, "NaN"]],
        "b'\\x07'": {"bytes": "61ff"},
        "2": {"ext": 5, "bytes": "01"},
        "array": [[{"a": 7, "b": "x"}]],
        "frame": {"bytes": "01"},
        "reference": [null],
        "big": u64::MAX,
    });
    assert_eq!(serde_json::to_value(&value).unwrap(), expected);
    assert!(serde_json::to_value(Value::Int(1 << 64)).is_err());
    let back: Value = serde_json::from_str(r#"{"a": [1, -1, null, 1.5, true, "x"]}"#).unwrap();
    assert_eq!(back.to_string(), "{'a': [1, -1, None, 1.5, True, 'x']}");
}

#[test]
fn the_last_of_equal_keys_counts() {
    let value = Value::from([("a", 1.into()), ("b", 2.into()), ("a", 3.into())]);
    assert_eq!(value.get("a"), Some(&3.into()));
}

#[test]
fn values_too_deep_for_the_stack_are_refused() {
    let nested = |levels: usize| {
        (0..levels).fold(Value::None, |value, level| match level % 3 {
            0 => Value::List(vec![value]),
            1 => Value::Tuple(vec![value]),
            _ => Value::Map(vec![("a".into(), value)]),
        })
    };
    let deepest = nested(MAX_DEPTH);
    assert_eq!(Value::from_type(&deepest).unwrap(), deepest);
    for levels in [MAX_DEPTH + 1, 1_000_000] {
        let value = nested(levels);
        for made in [Value::from_type(&value).map(drop), value.to_msgpack().map(drop)] {
            assert_eq!(made.unwrap_err().kind, ValueErrorKind::InvalidArgument, "{levels} levels");
        }
        // Dropped level by level from the outside, since a recursive drop would overflow the stack.
        let mut next = Some(value);
        while let Some(value) = next {
            next = match value {
                Value::List(mut items) | Value::Tuple(mut items) => items.pop(),
                Value::Map(mut pairs) => pairs.pop().map(|(_, value)| value),
                _ => None,
            };
        }
    }
}
