//! Tables that Python wrote, compared with what Python reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::common::{Rng, run_python};
use blosc2::{ErrorKind, NDArray, Value};
use blosc2_store::{CTable, Column, ItemKind, Object, TimeUnit, TreeStore};
use serde_json::{Value as Json, json};

/// Python code that records the content of a table.
pub(crate) const PRELUDE: &str = r#"
import dataclasses, json, struct
import blosc2 as b2
import blosc2.schema as S
import numpy as np

expected = {}

def encoded(value):
    """A value as JSON, to the bit."""
    if isinstance(value, np.ndarray):
        return ["array", value.dtype.str, list(value.shape), value.tobytes().hex()]
    if isinstance(value, np.datetime64):
        return int(value.astype("int64"))
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return ["float", struct.pack("<d", value).hex()]
    if isinstance(value, complex):
        return ["complex", struct.pack("<dd", value.real, value.imag).hex()]
    if isinstance(value, bytes):
        return ["bytes", value.hex()]
    if isinstance(value, dict):
        return ["map", [[encoded(key), encoded(each)] for key, each in value.items()]]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [encoded(each) for each in value]]
    assert value is None or isinstance(value, (bool, int, str)), type(value)
    return value

def expect(name, table):
    """Keeps what Python reads of a table."""
    columns = []
    for column in table.col_names:
        if column in table.computed_columns:
            columns.append(dict(name=column, computed=True))
            continue
        try:
            values = table[column][:]
        except ValueError as error:
            assert "stale" in str(error)
            columns.append(dict(name=column, stale=True))
            continue
        nulls = [bool(null) for null in table[column].is_null()]
        values = list(np.ma.getdata(values) if isinstance(values, np.ma.MaskedArray) else values)
        assert len(values) == len(nulls) == len(table)
        spec = table.column_schema(column).spec.to_metadata_dict()
        # Python says of lists that they are never null, and gives bools with a sentinel as numbers.
        nulls = [null or value is None for null, value in zip(nulls, values)]
        if spec["kind"] == "bool":
            values = [bool(value) for value in values]
        values = [None if null else encoded(value) for null, value in zip(nulls, values)]
        columns.append(dict(name=column, kind=spec["kind"], nulls=nulls, values=values))
    attributes = {key: encoded(table.vlmeta[key]) for key in table.vlmeta}
    expected[name] = dict(nrows=len(table), columns=columns, attributes=attributes)
def delete(table, which):
    table.delete([k for k in range(len(table)) if which(k)])

def finished(name, table):
    table.close()
    with b2.CTable.open(name, mode="r") as table:
        expect(name, table)

"#;

/// Rows of every kind of column, with nulls marked beside them.
const ROWS: &str = r#"
@dataclasses.dataclass
class Row:
    i8: int = b2.field(S.int8(nullable=True), default=0)
    i16: int = b2.field(S.int16(), default=0)
    i32: int = b2.field(S.int32(nullable=True), default=0)
    i64: int = b2.field(S.int64(ge=-5), default=0)
    u8: int = b2.field(S.uint8(), default=0)
    u16: int = b2.field(S.uint16(), default=0)
    u32: int = b2.field(S.uint32(), default=0)
    u64: int = b2.field(S.uint64(nullable=True), default=0)
    f32: float = b2.field(S.float32(nullable=True), default=0.0)
    f64: float = b2.field(S.float64(), default=float("inf"))
    c64: complex = b2.field(S.complex64(), default=0j)
    c128: complex = b2.field(S.complex128(nullable=True), default=0j)
    flag: bool = b2.field(S.bool(nullable=True), default=False)
    moment: object = b2.field(S.timestamp(unit="ms", timezone="UTC", nullable=True), default=0)
    text: str = b2.field(S.string(max_length=9, nullable=True), default="")
    raw: bytes = b2.field(S.bytes(max_length=9, nullable=True), default=b"")
    utf8: str = b2.field(S.utf8(nullable=True), default="")
    vltext: str = b2.field(S.vlstring(nullable=True), default="")
    vlraw: bytes = b2.field(S.vlbytes(nullable=True), default=b"")
    word: str = b2.field(S.dictionary(nullable=True), default="")
    numbers: list[int] = b2.field(S.list(S.int64(), nullable=True, batch_rows=100), default=None)
    texts: list[str] = b2.field(S.list(S.utf8(), nullable=True, storage="vl"), default=None)
    nested: list[list[float]] = b2.field(S.list(S.list(S.float64())), default=None)
    points: list[dict] = b2.field(S.list(S.struct({"x": S.int32(), "name": S.vlstring()}), batch_rows=100), default=None)
    point: dict = b2.field(S.struct({"x": S.int32(), "tags": S.list(S.vlstring())}, nullable=True), default=None)
    thing: object = b2.field(S.object(nullable=True), default=None)
    box: np.ndarray = b2.field(S.ndarray((2, 3), dtype=np.float32, nullable=True), default=None)
    bits: np.ndarray = b2.field(S.ndarray((2,), dtype=np.bool_), default=None)

def rows(count, start=0):
    for k in range(start, start + count):
        n = lambda of, value: None if k % of == of - 1 else value
        yield dict(
            i8=n(5, k % 256 - 128), i16=k % 65536 - 32768, i32=n(7, k * 1000 - 2**31), i64=k - 5,
            u8=k % 256, u16=65535 - k, u32=2**32 - 1 - k, u64=n(3, 2**64 - 1 - k),
            f32=n(6, float("nan") if k % 10 == 0 else k / 3), f64=[0.0, -0.0, float("nan"), -float("inf"), k / 7][k % 5],
            c64=complex(k, -k), c128=n(4, complex(k / 3, float("nan"))), flag=n(3, k % 2 == 0),
            moment=n(8, np.datetime64(k * 86400_000_123 - 10**12, "ms")), text=n(9, "é" * (k % 9) + "x"), raw=n(9, bytes([k % 256, 0, 1 + k % 9])),
            utf8=n(10, "ü\0" * (k % 4) + str(k)), vltext=n(11, "ñ" * (k % 50)), vlraw=n(12, bytes(k % 60)),
            word=n(13, f"wörd {k * k % 37}"), numbers=n(7, list(range(k % 5))), texts=n(9, [str(k), "ß" * (k % 3)]),
            nested=[[k / 2], []] * (k % 3), points=[{"x": k, "name": "p"}] * (k % 3),
            point=n(5, {"x": k, "tags": ["a"] * (k % 4)}),
            thing=n(6, [1, "one", 2.5, b"\0", {"k": k, "t": [1, 2]}, (k, (1,))][k % 6]),
            box=n(5, np.full((2, 3), k, np.float32) + np.arange(6, dtype=np.float32).reshape(2, 3)),
            bits=np.array([k % 2, k % 3]).astype(bool))

def extend(table, count, start=0):
    columns = {name: [] for name in table.col_names}
    for row in rows(count, start):
        for name, value in row.items():
            columns[name].append(value)
    if count:
        table.extend(columns)

def make(path, count, **more):
    # Room for a million rows is the default; each read would decompress as many marks.
    more.setdefault("expected_size", 1 << 14)
    table = b2.CTable(Row, urlpath=path, mode="w", **more) if path else b2.CTable(Row, **more)
    extend(table, count)
    return table
"#;

const KINDS: &str = r#"
# Every kind, in batches and chunks, with rows deleted here and there.
table = make("kinds.b2d", 2600)
delete(table, lambda k: k % 10 == 3 or 100 < k < 1500 or k > 2500)
table.vlmeta["author"] = ("me", 1.5)
table.vlmeta["note"] = {"é": [1, None]}
finished("kinds.b2d", table)

# Opened again and added to, in a zip file.
make("appended.b2z", 50).close()
table = b2.CTable.open("appended.b2z", mode="a")
extend(table, 70, 50)
delete(table, lambda k: k % 7 == 0)
finished("appended.b2z", table)

# Compacted.
table = make("compacted.b2d", 200)
delete(table, lambda k: k % 3 == 0)
table.compact()
extend(table, 20, 200)
delete(table, lambda k: k == 5)
finished("compacted.b2d", table)

# Without rows, and with none left.
finished("empty.b2d", make("empty.b2d", 0))
table = make("deleted.b2z", 30)
delete(table, lambda k: True)
finished("deleted.b2z", table)

# In memory, with places for rows that are to come.
table = make(None, 100)
delete(table, lambda k: 20 < k < 60)
expect("frame.b2e", table)
with open("frame.b2e", "wb") as file:
    file.write(table.to_cframe())

# In trees.
for path in ["tree.b2d", "tree.b2z"]:
    with b2.TreeStore(path, mode="w") as store:
        store["/array"] = np.arange(5)
        store["/group/table"] = table
        store["/group/deep/other"] = make(None, 3)
    with b2.TreeStore(path, mode="r") as store:
        expect(path + ":/group/table", store["/group/table"])
        expect(path + ":/group/deep/other", store["/group/deep/other"])

json.dump(expected, open("expected.json", "w"))
"#;

const OTHERS: &str = r##"
# Values that stand for none.
@dataclasses.dataclass
class Sentinels:
    i8: int = b2.field(S.int8(null_value=-128), default=0)
    u64: int = b2.field(S.uint64(null_value=2**64 - 1), default=0)
    f32: float = b2.field(S.float32(null_value=float("nan")), default=0.0)
    third: float = b2.field(S.float32(null_value=0.1), default=0.0)
    zero: float = b2.field(S.float64(null_value=0), default=1.0)
    inf: float = b2.field(S.float64(null_value=-float("inf")), default=0.0)
    flag: bool = b2.field(S.bool(null_value=255), default=False)
    moment: object = b2.field(S.timestamp(unit="us", null_value=-2**63), default=0)
    text: str = b2.field(S.string(max_length=5, null_value="né"), default="")
    raw: bytes = b2.field(S.bytes(max_length=3, null_value=b"\xff\0\1"), default=b"")
    utf8: str = b2.field(S.utf8(null_value="NULL"), default="")
    box: np.ndarray = b2.field(S.ndarray((2,), dtype=np.int16, null_value=7), default=None)
    nans: np.ndarray = b2.field(S.ndarray((2,), dtype=np.float16, null_value=float("nan")), default=None)
    bits: np.ndarray = b2.field(S.ndarray((2,), dtype=np.bool_, nullable=True, null_storage="sentinel"), default=None)
table = b2.CTable(Sentinels, urlpath="sentinels.b2d", mode="w")
n, nan = np.arange(60), float("nan")
table.extend(dict(
    i8=n % 4 - 128, u64=[2**64 - 1 - k % 3 for k in range(60)], f32=np.where(n % 5 == 0, nan, n / 3).astype("f4"),
    third=np.where(n % 3 == 0, 0.1, n).astype("f4"), zero=np.where(n % 4 == 0, -0.0, n % 4 - 1.0),
    inf=np.where(n % 7 == 0, -np.inf, np.inf), flag=np.array([0, 1, 255], "u1")[n % 3],
    moment=np.where(n % 2 == 0, -2**63, n), text=[["né", "né ", "ne"][k % 3] for k in range(60)],
    raw=[[b"\xff\0\1", b"\xff\0", b""][k % 3] for k in range(60)], utf8=[["NULL", "NULL\0", ""][k % 3] for k in range(60)],
    box=np.array([[7, 7], [7, 8], [0, 0]], "i2")[n % 3], nans=np.array([[nan, nan], [nan, 1], [0, 0]], "f2")[n % 3],
    bits=np.array([[255, 255], [1, 255], [0, 1]], "u1")[n % 3]))
delete(table, lambda k: k % 11 == 1)
finished("sentinels.b2d", table)

# Names of several levels, and names with characters that mean something in paths.
@dataclasses.dataclass
class Names:
    d: str = b2.field(S.dictionary(), default="")
    number: int = b2.field(S.int32(), default=0)
    größe: str = b2.field(S.dictionary(ordered=True), default="")
three = dict(d=["a", "b", "a"], number=[1, 2, 3], größe=["p", None, "q"])
for path in ["names.b2d", "names.b2z"]:
    table = b2.CTable(Names, urlpath=path, mode="w")
    table.extend(three)
    table.add_column("pos.x", S.float64(), values=[1.5, 2.5, 3.5])
    table.add_column("pos.name.first", S.utf8(nullable=True), values=["á", None, ""])
    table.add_column(r"a\.b\/c%2E", S.vlstring(), values=["x", "y", "z"])
    finished(path, table)

# A column named like the texts of a dictionary, which Python takes for each other.
@dataclasses.dataclass
class Alike:
    d: str = b2.field(S.dictionary(), default="")
    d_dict: int = b2.field(S.int32(), default=0)
for path in ["alike.b2d", "alike.b2z"]:
    table = b2.CTable(Alike, urlpath=path, mode="w")
    table.extend(dict(d=["a", "b", "a"], d_dict=[1, 2, 3]))
    table.close()

# Columns that are computed, and that were.
table = b2.CTable(Names, urlpath="computed.b2d", mode="w")
table.extend(three)
table.add_computed_column("twice", "number * 2")
table.add_generated_column("half", values="number / 2", dtype=np.float64)
table.add_generated_column("old", values="number + 1", dtype=np.int64)
table["number"][0] = 10
table.refresh_generated_column("half")
finished("computed.b2d", table)

json.dump(expected, open("expected.json", "w"))
"##;

const MANY: &str = r#"
# Millions of rows, in several chunks of marks.
@dataclasses.dataclass
class Many:
    n: int = b2.field(S.int64(), default=0)
    s: str = b2.field(S.utf8(), default="")
    w: str = b2.field(S.dictionary(), default="")
    m: int = b2.field(S.int32(nullable=True), default=0)
count = 2_500_000
# Python chooses chunks by the caches of the machine; with these there are several wherever this runs.
b2.cpu_info.clear()
b2.cpu_info.update(l1_data_cache_size=32768, l2_cache_size=512 * 1024, l3_cache_size=32 << 20)
table = b2.CTable(Many, urlpath="many.b2d", mode="w", expected_size=count)
n = np.arange(count)
table.extend(dict(n=n, s=[str(k % 1000) for k in range(count)], w=["even", "odd"] * (count // 2), m=np.ma.MaskedArray(n, n % 1000 == 0)), validate=False)
table.delete(list(range(1_050_000, 1_060_000)) + list(range(1_060_001, 1_070_000, 3)) + [2_300_000])
table.close()
with b2.CTable.open("many.b2d", mode="r") as table:
    table["n"][:].tofile("many.n")
    np.array([int(k) for k in table["s"][:]]).tofile("many.s")
    assert table._valid_rows.schunk.nchunks > 1
"#;

/// A value as the scripts put it into JSON.
pub(crate) fn encoded(value: &Value) -> Json {
    let list =
        |name: &str, items: &[Value]| json!([name, items.iter().map(encoded).collect::<Vec<_>>()]);
    match value {
        Value::None => Json::Null,
        Value::Bool(value) => json!(value),
        Value::Int(number) => match (u64::try_from(*number), i64::try_from(*number)) {
            (Ok(number), _) => json!(number),
            (_, number) => json!(number.unwrap()),
        },
        Value::Float(number) => json!(["float", hex(&number.to_le_bytes())]),
        Value::Complex { re, im } => {
            json!(["complex", hex(&[re.to_le_bytes(), im.to_le_bytes()].concat())])
        }
        Value::Str(text) => json!(text),
        Value::Bytes(bytes) => json!(["bytes", hex(bytes)]),
        Value::List(items) => list("list", items),
        Value::Tuple(items) => list("tuple", items),
        Value::Map(pairs) => {
            let pairs = pairs.iter().map(|(key, value)| json!([encoded(key), encoded(value)]));
            json!(["map", pairs.collect::<Vec<_>>()])
        }
        Value::Array(array) => {
            json!(["array", array.dtype().to_string(), array.shape(), hex(array.data())])
        }
        other => panic!("{other:?}"),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn expected(folder: &Path) -> BTreeMap<String, Json> {
    serde_json::from_slice(&fs::read(folder.join("expected.json")).unwrap()).unwrap()
}

/// Opens a table of a file, or below a key of a file.
pub(crate) fn open(folder: &Path, name: &str) -> CTable {
    let Some((file, key)) = name.split_once(':') else {
        return CTable::open(folder.join(name)).unwrap();
    };
    match TreeStore::open(folder.join(file)).unwrap().get(key).unwrap() {
        Object::CTable(table) => table,
        other => panic!("{name} is a {}", other.kind()),
    }
}

/// Checks a table, read whole and in parts, against what Python reads.
pub(crate) fn check(name: &str, table: &CTable, expected: &Json) {
    let nrows = expected["nrows"].as_u64().unwrap();
    assert_eq!(table.nrows(), nrows, "{name}");
    let attributes = table.attributes().unwrap();
    let attributes: serde_json::Map<_, _> =
        attributes.iter().map(|(name, value)| (name.clone(), encoded(value))).collect();
    assert_eq!(Json::Object(attributes), expected["attributes"], "{name}");
    let columns = expected["columns"].as_array().unwrap();
    let names: Vec<&str> = table.columns().iter().map(Column::name).collect();
    let expected: Vec<&str> = columns.iter().map(|each| each["name"].as_str().unwrap()).collect();
    assert_eq!(names, expected, "{name}");
    let mut rng = Rng(nrows);
    for (column, expected) in table.columns().iter().zip(columns) {
        let what = format!("{name}, {}", column.name());
        if expected["values"].is_null() {
            let error = table.values(column.name(), ..).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{what}");
            let computed = matches!(column.kind(), ItemKind::Computed(_));
            assert_eq!(computed, expected["computed"] == json!(true), "{what}");
            assert_eq!(column.is_stale(), expected["stale"] == json!(true), "{what}");
            continue;
        }
        let kind = column.kind().to_string();
        let kind = kind.split('[').next().unwrap();
        assert_eq!(kind, expected["kind"].as_str().unwrap(), "{what}");
        let values = expected["values"].as_array().unwrap();
        let nulls = expected["nulls"].as_array().unwrap();
        assert!(column.is_nullable() || !nulls.contains(&json!(true)), "{what}");
        // Parts first: cached data of one read must not be used for another.
        for _ in 0..8 {
            let (one, other) = (rng.below(nrows + 1), rng.below(nrows + 1));
            check_part(&what, table, column, one.min(other)..one.max(other), values, nulls);
            if nrows > 0 {
                let row = rng.below(nrows);
                check_part(&what, table, column, row..row + 1, values, nulls);
            }
        }
        check_part(&what, table, column, 0..nrows, values, nulls);
    }
}

fn check_part(
    what: &str,
    table: &CTable,
    column: &Column,
    rows: std::ops::Range<u64>,
    values: &[Json],
    nulls: &[Json],
) {
    let (values, nulls) = (
        &values[rows.start as usize..rows.end as usize],
        &nulls[rows.start as usize..rows.end as usize],
    );
    let found = table.values(column.name(), rows.clone()).unwrap();
    let found: Vec<Json> = found.iter().map(encoded).collect();
    if let Some(at) = (0..values.len().max(found.len())).find(|&at| found.get(at) != values.get(at))
    {
        panic!("{what}, {rows:?}, row {at}: {:?}, expected {:?}", found.get(at), values.get(at));
    }
    let found = table.nulls(column.name(), rows.clone()).unwrap();
    assert_eq!(
        found,
        nulls.iter().map(|null| *null == json!(true)).collect::<Vec<_>>(),
        "{what}, {rows:?}"
    );
    let texts = table.texts(column.name(), rows.clone());
    match column.kind() {
        ItemKind::String { .. }
        | ItemKind::Utf8
        | ItemKind::VlString
        | ItemKind::Dictionary { .. } => {
            let texts: Vec<Json> = texts.unwrap().into_iter().map(Json::from).collect();
            assert_eq!(texts, values, "{what}, {rows:?}");
        }
        _ => assert_eq!(texts.unwrap_err().kind(), ErrorKind::TypeMismatch, "{what}"),
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn columns_of_every_kind_are_read_as_python_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, ROWS, KINDS].concat(), folder, &[]);
    let expected = expected(folder);
    assert_eq!(expected.len(), 10);
    for (name, expected) in &expected {
        check(name, &open(folder, name), expected);
    }

    let frame = fs::read(folder.join("frame.b2e")).unwrap();
    check("a frame", &CTable::from_cframe(frame).unwrap(), &expected["frame.b2e"]);

    let table = open(folder, "kinds.b2d");
    let kind = |name: &str| table.column(name).unwrap().kind().clone();
    let timezone = Some("UTC".to_owned());
    assert_eq!(kind("moment"), ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone });
    assert_eq!(kind("text"), ItemKind::String { max_length: 9 });
    assert_eq!(kind("raw"), ItemKind::Bytes { max_length: 9 });
    assert_eq!(kind("word"), ItemKind::Dictionary { ordered: false });
    let box_kind =
        ItemKind::NDArray { shape: vec![2, 3], dtype: blosc2::Dtype::parse("<f4").unwrap() };
    assert_eq!(kind("box"), box_kind);
    assert_eq!(kind("point").to_string(), "struct[x, tags]");
    assert_eq!(kind("points").to_string(), "list[struct]");
    assert_eq!(table.column("i64").unwrap().spec().get("ge"), Some(&(-5).into()));
    assert_eq!(table.column("f64").unwrap().spec().get("default"), Some(&f64::INFINITY.into()));
    let default = table.column("c64").unwrap().spec().get("default").cloned();
    assert_eq!(default, Some(Value::Complex { re: 0.0, im: 0.0 }));
    assert!(table.column("no").is_none());

    // As typed values, and by the indices of the rows in the array.
    let rows = table.valid_rows(..).unwrap();
    assert!(rows.is_sorted() && rows.len() as u64 == table.nrows());
    let numbers: Vec<i64> = table.read("i64", ..).unwrap();
    assert_eq!(numbers, rows.iter().map(|&row| row as i64 - 5).collect::<Vec<_>>());
    let array = table.array("i64").unwrap();
    assert_eq!(array.item::<i64>(&[rows[7]]).unwrap(), numbers[7]);
    assert_eq!(table.read::<i64>("i64", 90..120).unwrap(), numbers[90..120]);
    assert_eq!(table.valid_rows(90..=119).unwrap(), rows[90..120]);
    let boxes: Vec<f32> = table.read("box", 95..97).unwrap();
    let Value::Array(last) = &table.values("box", 96..97).unwrap()[0] else { panic!("no array") };
    assert_eq!(boxes.len(), 12);
    let last: Vec<f32> = last
        .data()
        .chunks_exact(4)
        .map(|item| f32::from_le_bytes(item.try_into().unwrap()))
        .collect();
    assert_eq!(boxes[6..], last);
    let codes: Vec<i32> = table.read("word", ..).unwrap();
    assert!(codes.contains(&-1) && codes.iter().all(|&code| code < 37));
    let moments: Vec<i64> = table.read("moment", 0..2).unwrap();
    assert_eq!(moments, [-1_000_000_000_000, -913_599_999_877]);

    for (kind, result) in [
        (ErrorKind::NotFound, table.read::<i64>("no", ..)),
        (ErrorKind::TypeMismatch, table.read("i32", ..)),
        (ErrorKind::TypeMismatch, table.read("vltext", ..)),
        (ErrorKind::OutOfBounds, table.read("i64", ..table.nrows() + 1)),
        (ErrorKind::OutOfBounds, table.read("i64", 5..=u64::MAX)),
        (ErrorKind::OutOfBounds, table.read("i64", std::ops::Range { start: 2, end: 1 })),
    ] {
        assert_eq!(result.unwrap_err().kind(), kind);
    }
    let error = table.array("thing").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
    let error = CTable::open(folder.join("tree.b2z")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch);
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn sentinels_names_and_computed_columns_are_read_as_python_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, OTHERS].concat(), folder, &[]);
    let expected = expected(folder);
    assert_eq!(expected.len(), 4);
    for (name, expected) in &expected {
        check(name, &open(folder, name), expected);
    }

    for name in ["alike.b2d", "alike.b2z"] {
        let table = open(folder, name);
        assert_eq!(table.read::<i32>("d_dict", ..).unwrap(), [1, 2, 3], "{name}");
        let texts = table.texts("d", ..).unwrap();
        assert_eq!(texts, ["a", "b", "a"].map(|text| Some(text.to_owned())), "{name}");
    }

    let table = open(folder, "computed.b2d");
    let ItemKind::Computed(expression) = table.column("twice").unwrap().kind() else {
        panic!("it is computed");
    };
    assert_eq!(expression, "(o0 * 2)");
    assert_eq!(table.array("twice").unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(table.read::<f64>("half", ..).unwrap(), [5.0, 1.0, 1.5]);
    // As it was.
    let old: NDArray = table.array("old").unwrap();
    assert_eq!(old.read::<Vec<i64>>(..).unwrap(), [2, 3, 4]);
    for result in [table.nulls("old", ..), table.nulls("twice", ..)] {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Unsupported);
    }
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn millions_of_rows_are_read_as_python_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, MANY].concat(), folder, &[]);
    let numbers = |name: &str| {
        let bytes = fs::read(folder.join(name)).unwrap();
        let numbers =
            bytes.chunks_exact(8).map(|item| i64::from_le_bytes(item.try_into().unwrap()));
        numbers.collect::<Vec<i64>>()
    };
    let (n, s) = (numbers("many.n"), numbers("many.s"));
    let table = open(folder, "many.b2d");
    assert_eq!(table.nrows(), n.len() as u64);
    assert_eq!(table.read::<i64>("n", ..).unwrap(), n);
    let rows = table.valid_rows(1_049_990..2_400_000).unwrap();
    assert!(rows.iter().map(|&row| row as i64).eq(n[1_049_990..2_400_000].iter().copied()));
    for start in
        [0, 600_000, 1_048_570, 1_049_990, 1_053_000, 1_190_000, 2_286_660, table.nrows() - 70_000]
    {
        let rows = start..start + 70_000;
        let at = rows.start as usize..rows.end as usize;
        assert_eq!(table.read::<i64>("n", rows.clone()).unwrap(), n[at.clone()], "{rows:?}");
        let texts = table.texts("s", rows.clone()).unwrap();
        assert!(
            texts
                .into_iter()
                .map(|text| text.unwrap().parse::<i64>().unwrap())
                .eq(s[at.clone()].iter().copied()),
            "{rows:?}"
        );
        let words = table.texts("w", rows.clone()).unwrap();
        let is_word =
            |(word, n): (Option<String>, &i64)| word.unwrap() == ["even", "odd"][*n as usize % 2];
        assert!(words.into_iter().zip(&n[at.clone()]).all(is_word), "{rows:?}");
        let nulls = table.nulls("m", rows.clone()).unwrap();
        assert!(nulls.into_iter().eq(n[at].iter().map(|n| n % 1000 == 0)), "{rows:?}");
    }
}
