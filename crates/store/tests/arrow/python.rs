//! Tables and batches that Python wrote, compared with what pyarrow reads of them.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_ipc::reader::FileReader;
use arrow_select::concat::concat_batches;

use arrow_ipc::writer::FileWriter;
use blosc2::{NDArray, OpenOptions, Value};
use blosc2_store::arrow::ReadOptions;
use blosc2_store::{BatchArray, CTable, ListArray, Schema, arrow};

use crate::common::{assert_same, run_python};

/// Python code that writes tables of all kinds of columns that Python exports, each with an Arrow file.
const TABLES: &str = r#"
import dataclasses
import blosc2 as b2
import blosc2.schema as S
import numpy as np
import pyarrow as pa

@dataclasses.dataclass
class Row:
    i8: int = b2.field(S.int8(nullable=True), default=0)
    i16: int = b2.field(S.int16(), default=0)
    i32: int = b2.field(S.int32(nullable=True, null_storage="mask"), default=0)
    i64: int = b2.field(S.int64(ge=-5), default=0)
    u8: int = b2.field(S.uint8(), default=0)
    u16: int = b2.field(S.uint16(), default=0)
    u32: int = b2.field(S.uint32(), default=0)
    u64: int = b2.field(S.uint64(nullable=True), default=0)
    f32: float = b2.field(S.float32(nullable=True), default=0.0)
    f64: float = b2.field(S.float64(), default=0.0)
    flag: bool = b2.field(S.bool(nullable=True), default=False)
    sure: bool = b2.field(S.bool(), default=False)
    moment: object = b2.field(S.timestamp(unit="ms", timezone="UTC", nullable=True), default=0)
    when: object = b2.field(S.timestamp(unit="ns"), default=0)
    text: str = b2.field(S.string(max_length=9, nullable=True), default="")
    raw: bytes = b2.field(S.bytes(max_length=9, nullable=True), default=b"")
    utf8: str = b2.field(S.utf8(nullable=True), default="")
    vltext: str = b2.field(S.vlstring(nullable=True), default="")
    vlraw: bytes = b2.field(S.vlbytes(nullable=True), default=b"")
    word: str = b2.field(S.dictionary(nullable=True), default="")
    numbers: list[int] = b2.field(S.list(S.int64(), nullable=True), default=None)
    texts: list[str] = b2.field(S.list(S.utf8(), nullable=True, storage="vl"), default=None)
    arrow: list[int] = b2.field(S.list(S.int32(), nullable=True, serializer="arrow"), default=None)
    nested: list[list[float]] = b2.field(S.list(S.list(S.float64())), default=None)
    points: list[dict] = b2.field(S.list(S.struct({"x": S.int32(), "name": S.vlstring()})), default=None)
    point: dict = b2.field(S.struct({"x": S.int32(), "tags": S.list(S.vlstring())}, nullable=True), default=None)
    box: np.ndarray = b2.field(S.ndarray((2, 3), dtype=np.float32, nullable=True), default=None)
    bits: np.ndarray = b2.field(S.ndarray((2,), dtype=np.bool_), default=None)

def rows(count):
    for k in range(count):
        n = lambda of, value: None if k % of == of - 1 else value
        yield dict(
            i8=n(5, k % 256 - 128), i16=k % 65536 - 32768, i32=n(7, k * 1000 - 2**31), i64=k - 5,
            u8=k % 256, u16=65535 - k, u32=2**32 - 1 - k, u64=n(3, 2**64 - 2 - k),
            f32=n(6, k / 3), f64=[0.0, -0.0, 1e300, -float("inf"), k / 7][k % 5],
            flag=n(3, k % 2 == 0), sure=k % 3 == 0,
            moment=n(8, np.datetime64(k * 86400_000_123 - 10**12, "ms")), when=np.datetime64(k, "ns"),
            text=n(9, "é" * (k % 9) + "x"), raw=n(9, bytes([k % 256, 0, 1 + k % 9])),
            utf8=n(10, "ü\0" * (k % 4) + str(k)), vltext=n(11, "ñ" * (k % 50)), vlraw=n(12, bytes(k % 60)),
            word=n(13, f"wörd {k * k % 37}"), numbers=n(7, list(range(k % 5))), texts=n(9, [str(k), "ß" * (k % 3)]),
            arrow=n(5, list(range(k % 4))), nested=[[k / 2], []] * (k % 3),
            points=[{"x": k, "name": "p"}] * (k % 3), point=n(5, {"x": k, "tags": ["a"] * (k % 4)}),
            box=n(5, np.full((2, 3), k, np.float32) + np.arange(6, dtype=np.float32).reshape(2, 3)),
            bits=np.array([k % 2, k % 3]).astype(bool))

def make(path, count, delete=None):
    table = b2.CTable(Row, urlpath=path, mode="w", expected_size=1 << 12)
    columns = {name: [] for name in table.col_names}
    for row in rows(count):
        for name, value in row.items():
            columns[name].append(value)
    if count:
        table.extend(columns)
    if delete:
        table.delete([k for k in range(count) if delete(k)])
    table.close()
    with b2.CTable.open(path, mode="r") as table:
        arrow = table.to_arrow()
        with pa.ipc.new_file(path + ".arrow", arrow.schema) as file:
            file.write_table(arrow)

make("empty.b2d", 0)
make("one.b2d", 1)
make("dense.b2z", 3000)
make("holes.b2d", 3000, lambda k: k % 7 == 3 or 900 < k < 1300)
make("few.b2z", 500, lambda k: k % 100 != 0)
"#;

/// All batches of an Arrow file as one.
fn arrow_file(path: &Path) -> RecordBatch {
    let reader = FileReader::try_new(File::open(path).unwrap(), None).unwrap();
    let schema = reader.schema();
    let batches: Vec<_> = reader.map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

#[test]
#[ignore = "needs Python: cargo xtask integrations arrow"]
fn tables_of_python_are_those_of_pyarrow() {
    let folder = tempfile::tempdir().unwrap();
    run_python(TABLES, folder.path());
    for name in ["empty.b2d", "one.b2d", "dense.b2z", "holes.b2d", "few.b2z"] {
        let expected = arrow_file(&folder.path().join(format!("{name}.arrow")));
        let table = CTable::open(folder.path().join(name)).unwrap();
        assert_eq!(expected.num_rows() as u64, table.nrows());
        // Each batch decompresses a block of each column.
        let small = if expected.num_rows() > 100 { 400 } else { 7 };
        for batch_rows in [small, 1000, 1 << 16] {
            let batches = ReadOptions::new().batch_rows(batch_rows).read(&table).unwrap();
            let schema = batches.schema();
            let batches: Vec<RecordBatch> = batches.map(Result::unwrap).collect();
            let sizes: Vec<usize> = batches.iter().map(RecordBatch::num_rows).collect();
            let [full @ .., _] = &sizes[..] else {
                assert_eq!(expected.num_rows(), 0);
                continue;
            };
            assert!(full.iter().all(|&rows| rows == batch_rows));
            let all = concat_batches(&schema, &batches).unwrap();
            assert_same(&all, &expected, name);
        }
    }
}

#[test]
#[ignore = "needs Python: cargo xtask integrations arrow"]
fn tables_from_record_batches_are_read_by_python() {
    let folder = tempfile::tempdir().unwrap();
    run_python(TABLES, folder.path());
    for name in ["empty.b2d", "one.b2d", "dense.b2z", "holes.b2d"] {
        let table = CTable::open(folder.path().join(name)).unwrap();
        let batches = ReadOptions::new().batch_rows(700).read(&table).unwrap();
        let path = folder.path().join(format!("copy_{name}"));
        let mut copy =
            CTable::create(path, &Schema::try_from(&*batches.schema()).unwrap()).unwrap();
        for batch in batches {
            copy.append_record_batch(&batch.unwrap()).unwrap();
        }
        copy.finish().unwrap();
    }
    // More rows for a table of Python, which has a column that is serialized with Arrow.
    let source = CTable::open(folder.path().join("dense.b2z")).unwrap();
    let mut table = CTable::open_rw(folder.path().join("one.b2d")).unwrap();
    for batch in ReadOptions::new().rows(5..15).batch_rows(4).read(&source).unwrap() {
        table.append_record_batch(&batch.unwrap()).unwrap();
    }
    table.finish().unwrap();
    // What Python reads of the copies is what it read of its own tables.
    let script = r#"
import blosc2 as b2
import pyarrow as pa

of = lambda name: pa.ipc.open_file(name + ".arrow").read_all()
copies = [("copy_" + name, of(name)) for name in ["empty.b2d", "one.b2d", "dense.b2z", "holes.b2d"]]
copies.append(("one.b2d", pa.concat_tables([of("one.b2d"), of("dense.b2z")[5:15]]).unify_dictionaries()))
for name, expected in copies:
    with b2.CTable.open(name, mode="r") as table:
        found = table.to_arrow()
        assert found.schema.equals(expected.schema), (name, found.schema, expected.schema)
        for column in expected.column_names:
            one, other = (arrow.column(column).combine_chunks() for arrow in (found, expected))
            if column == "word":
                # The order of the distinct strings is that of the valid rows.
                one, other = one.dictionary_decode(), other.dictionary_decode()
            assert one.equals(other), (name, column, one, other)
"#;
    run_python(script, folder.path());
}

#[test]
#[ignore = "needs Python: cargo xtask integrations arrow"]
fn batches_are_exchanged_with_python() {
    let script = r#"
import datetime
import blosc2 as b2
import pyarrow as pa

lists = [[1, 2], None, [], [3]]
points = [{"x": 1, "name": "a"}, None, {"x": None, "name": "é"}]
arrays = dict(
    ints=pa.array([1, None, 3], pa.int16()),
    texts=pa.array(["one", None, "ü"]),
    views=pa.array(["a text of more than twelve bytes", None, "b"], pa.string_view()),
    lists=pa.array(lists, pa.list_(pa.int64())),
    large=pa.array(lists, pa.large_list(pa.int32())),
    points=pa.array(points, pa.struct([("x", pa.int64()), ("name", pa.string())])),
    words=pa.array(["a", None, "b", "a"]).dictionary_encode(),
    pairs=pa.array([[1.5, 2.5], None], pa.list_(pa.float32(), 2)),
    maps=pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int32())),
    decimals=pa.array([1, None, 3], pa.decimal128(9, 2)),
    flags=pa.array([True, None, False]),
    none=pa.array([None, None], pa.null()),
    moments=pa.array([1, None], pa.timestamp("us", tz="UTC")),
)
for name, array in arrays.items():
    batches = b2.BatchArray(serializer="arrow", items_per_block=2, urlpath=name + ".b2b", mode="w")
    batches.append(array)
    batches.append(array[1:])
    with pa.ipc.new_file(name + ".arrow", pa.schema([("values", array.type)])) as file:
        file.write_batch(pa.record_batch([array], names=["values"]))

of = dict(item_spec=b2.int32(nullable=True), nullable=True, serializer="arrow", batch_rows=3)
b2l = b2.ListArray(**of, urlpath="rows.b2b", mode="w")
for row in [[1, 2], None, [], [None, 5]]:
    b2l.append(row)
b2l.flush()
"#;
    let folder = tempfile::tempdir().unwrap();
    run_python(script, folder.path());
    let names = [
        "ints", "texts", "views", "lists", "large", "points", "words", "pairs", "maps", "decimals",
        "flags", "none", "moments",
    ];
    for name in names {
        let expected = arrow_file(&folder.path().join(format!("{name}.arrow"))).column(0).clone();
        let path = folder.path().join(format!("{name}.b2b"));
        let mut batches = BatchArray::open_rw(&path).unwrap();
        assert_eq!(batches.arrow_type(), Some(expected.data_type()), "{name}");
        assert_eq!(&batches.arrow_batch(0).unwrap(), &expected, "{name}");
        assert_eq!(
            &batches.arrow_batch(1).unwrap(),
            &expected.slice(1, expected.len() - 1),
            "{name}"
        );
        if name != "decimals" {
            assert_eq!(batches.batch(0).unwrap().len(), expected.len());
            assert_eq!(batches.item(1).unwrap(), Value::None, "{name}");
        }
        // A batch in an array of Python, and a new array.
        batches.append_arrow(&expected).unwrap();
        let path = folder.path().join(format!("rust_{name}.b2b"));
        let schunk = OpenOptions::new().create_new(true).open(path).unwrap();
        let mut batches = BatchArray::new_arrow_in(schunk, Some(3)).unwrap();
        batches.append_arrow(&expected).unwrap();
        batches.append_arrow(&expected.slice(0, 1)).unwrap();
    }
    let mut lists = ListArray::open_rw(folder.path().join("rows.b2b")).unwrap();
    let rows: Vec<_> = lists.iter().map(Result::unwrap).collect();
    let ints = |items: &[i64]| Some(items.iter().map(|&item| Value::from(item)).collect());
    assert_eq!(rows, [ints(&[1, 2]), None, ints(&[]), Some(vec![Value::None, 5.into()])]);
    lists.append(Some(&[7, 8])).unwrap();
    lists.append::<i32>(None).unwrap();
    lists.flush().unwrap();
    drop(lists);

    let script = r#"
import blosc2 as b2
import pyarrow as pa

for name in "ints texts views lists large points words pairs maps decimals flags none moments".split():
    expected = pa.ipc.open_file(name + ".arrow").read_all().column(0).to_pylist()
    batches = b2.open(name + ".b2b", mode="a")
    assert [list(batch) for batch in batches] == [expected, expected[1:], expected], name
    batches = b2.open("rust_" + name + ".b2b", mode="a")
    assert [list(batch) for batch in batches] == [expected, expected[:1]], name
    # It has the schema that Python needs to append.
    batches.append(pa.ipc.open_file(name + ".arrow").read_all().column(0))
    assert list(batches[2]) == expected, name

rows = b2.open("rows.b2b", mode="a")
assert list(rows) == [[1, 2], None, [], [None, 5], [7, 8], None]
rows.append([9])
rows.flush()
assert rows[6] == [9]
"#;
    run_python(script, folder.path());
}

#[test]
#[ignore = "needs Python: cargo xtask integrations arrow"]
fn arrays_are_those_of_numpy() {
    let script = r#"
import blosc2 as b2
import numpy as np

arrays = dict(
    ints=np.arange(100, dtype=">i4"), halves=np.arange(10, dtype="<f2"), flags=np.array([True, False]),
    matrix=np.arange(24, dtype="<f8").reshape(6, 4), cube=np.arange(60, dtype=">u2").reshape(5, 3, 4),
    texts=np.array(["a", "", "ü𝄞"], dtype="<U4"), parts=np.array([b"a", b"", b"b\0c"], dtype="S5"),
    moments=np.array(["2024-05-01T01:02:03.004", "NaT"], dtype="M8[ms]"), days=np.array(["2024-05-01"], dtype="M8[D]"),
    records=np.array([(1, 2.5, "x"), (3, 4.5, "yy")], dtype=[("id", ">i8"), ("price", "<f4"), ("name", "<U3")]),
)
for name, array in arrays.items():
    b2.asarray(array, urlpath=name + ".b2nd", mode="w")
"#;
    let folder = tempfile::tempdir().unwrap();
    run_python(script, folder.path());
    let names = [
        "ints", "halves", "flags", "matrix", "cube", "texts", "parts", "moments", "days", "records",
    ];
    for name in names {
        let array = NDArray::open(folder.path().join(format!("{name}.b2nd"))).unwrap();
        let field = arrow::field(name, &array).unwrap();
        let schema = Arc::new(arrow_schema::Schema::new(vec![field.clone()]));
        let items = arrow::to_arrow(&array, ..).unwrap();
        let batch = RecordBatch::try_new(schema.clone(), vec![items.clone()]).unwrap();
        let file = File::create(folder.path().join(format!("{name}.arrow"))).unwrap();
        let mut writer = FileWriter::try_new(file, &schema).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        let copy = NDArray::builder().target(folder.path().join(format!("copy_{name}.b2nd")));
        arrow::from_arrow(copy, &field, &items).unwrap();
    }
    let script = r#"
import blosc2 as b2
import numpy as np
import pyarrow as pa

for name in "ints halves flags matrix cube texts parts moments days records".split():
    array, copy = b2.open(name + ".b2nd")[:], b2.open("copy_" + name + ".b2nd")[:]
    assert array.shape == copy.shape and array.tolist() == copy.tolist(), (name, array, copy)
    found = pa.ipc.open_file(name + ".arrow").read_all().column(0).combine_chunks()
    if array.ndim > 1:
        assert found.type.extension_name == "arrow.fixed_shape_tensor", found.type
        assert np.array_equal(found.to_numpy_ndarray(), array), name
    elif name == "records":
        assert [tuple(item.values()) for item in found.to_pylist()] == array.tolist()
    elif array.dtype.kind in "M":
        assert np.array_equal(found.to_numpy(zero_copy_only=False), array, equal_nan=True)
    else:
        assert found.to_pylist() == array.tolist(), name
"#;
    run_python(script, folder.path());
}
