//! Conditions on rows, statistics, first rows and categories of tables: the results are those of Python and of a plain
//! model, and do not depend on summaries.

use std::fs;
use std::path::Path;

use blosc2::{ErrorKind, Value};
use blosc2_store::{CTable, Comparison, Condition, Data, ItemKind, ItemType, Schema};
use serde_json::Value as Json;

use crate::common::{Rng, repeats, run_python};
use crate::python_tables::{PRELUDE, encoded, open};
#[cfg(feature = "arrow")]
use crate::python_tables::{check, expected};

/// Python code that writes a table, and what Python finds in it.
const QUERIES: &str = r#"
import sys
rng = np.random.default_rng(int(sys.argv[1]))

@dataclasses.dataclass
class Row:
    a: int = b2.field(S.int32(), default=0)
    b: int = b2.field(S.int64(nullable=True), default=0)
    f: float = b2.field(S.float64(), default=0.0)
    g: float = b2.field(S.float32(nullable=True), default=0.0)
    u: int = b2.field(S.uint64(), default=0)
    t: object = b2.field(S.timestamp(unit="ms", nullable=True), default=0)
    flag: bool = b2.field(S.bool(nullable=True), default=False)
    name: str = b2.field(S.string(max_length=3), default="")
    raw: bytes = b2.field(S.bytes(max_length=3), default=b"")
    text: str = b2.field(S.utf8(nullable=True), default="")
    word: str = b2.field(S.dictionary(nullable=True), default="")
    points: list[int] = b2.field(S.list(S.int64(nullable=True), nullable=True), default=None)

COUNT = 60_000
def make(path, size):
    n = np.arange(COUNT)
    null = lambda values, of: [None if k % of == 1 else value for k, value in enumerate(values)]
    table = b2.CTable(Row, urlpath=path, mode="w", expected_size=size)
    # Sorted and unsorted columns, so that summaries exclude many segments, some or none.
    table.extend(dict(
        a=n // 50 - 600, b=null((n // 7 - 4000).tolist(), 5), f=rng.integers(-40, 40, COUNT) / 4,
        g=null(((n // 100 - 300) / 8).tolist(), 3), u=rng.integers(0, 20, COUNT).astype("u8"),
        t=null((n * 3).tolist(), 4), flag=null((n % 3 == 0).tolist(), 6), name=[str(k % 13) for k in n],
        raw=[bytes([65 + k % 7]) for k in n], text=null([str(k % 5) for k in n], 8),
        word=null([f"w{k % 11}" for k in n], 9), points=null([[k, None][: k % 3] for k in range(COUNT)], 7)))
    table.add_computed_column("twice", "a * 2 + f")
    table.add_generated_column("half", values="a / 2", dtype=np.float64)
    table.delete([k for k in range(COUNT) if 2000 < k < 2400 or k % 97 == 3])
    table.close()

def number(value):
    return None if value is None else float(value)

found = {}
for path, size in [("queries.b2d", COUNT), ("queries.b2z", 1 << 17)]:
    make(path, size)
    table = b2.CTable.open(path, mode="r")
    statistics = {}
    for name in table.col_names:
        column, kind = table[name], getattr(table[name].dtype, "kind", None)
        entry = dict(count=len(column), nulls=int(np.sum(column.is_null())))
        if name == "points":
            entry["nulls"] = sum(value is None for value in column[:])
        if kind is not None and kind in "biuf":
            # The minimum of unsigned integers is -1 in 4.14.1 if rows are deleted.
            least = column[:].min() if kind == "u" else column.min()
            entry.update(mean=number(column.mean()), std=number(column.std()), min=number(least), max=number(column.max()))
        if kind is not None and kind in "US":
            text = lambda value: value.decode() if isinstance(value, bytes) else str(value)
            entry.update(min=text(column.min()), max=text(column.max()), distinct=len(column.unique()))
        statistics[name] = entry
    leaves = [
        lambda: f"a {op()} {rng.integers(-620, 620)}", lambda: f"b {op()} {rng.integers(-4100, 5000)}",
        lambda: f"f {op()} {rng.integers(-42, 42) / 4}", lambda: f"g {op()} {rng.integers(-310, 310) / 8}",
        lambda: f"u {op()} {rng.integers(0, 21)}", lambda: f"name {op()} '{rng.integers(0, 13)}'",
        lambda: f"twice {op()} {rng.integers(-1300, 1300)}", lambda: f"half {op()} {rng.integers(-310, 310)}",
    ]
    op = lambda: rng.choice(["==", "!=", "<", "<=", ">", ">="])
    def condition(depth):
        kind = rng.integers(0, 4) if depth else 3
        if kind == 3:
            return (leaf := leaves[rng.integers(0, len(leaves))]()), f"({leaf})"
        (one, python_one), (other, python_other) = condition(depth - 1), condition(depth - 1)
        if kind == 0:
            return f"({one}) and ({other})", f"({python_one} & {python_other})"
        if kind == 1:
            return f"({one}) or ({other})", f"({python_one} | {python_other})"
        return f"not ({one})", f"(~{python_one})"
    ids = np.arange(len(table))
    conditions = []
    places = np.flatnonzero(table._valid_rows[:])
    for _ in range(60):
        ours, theirs = condition(3)
        rows = np.flatnonzero(table.where(theirs)._valid_rows[:])
        rows = np.searchsorted(places, rows)
        conditions.append([ours, len(rows), int((rows * (rows % 1009)).sum())])
    head = {name: [encoded(value) for value in (table[name][:4].tolist() if name != "points" else table[name][:4])] for name in ["a", "f", "name", "raw", "points", "twice", "half"]}
    columns = dict(head=head, statistics=statistics, conditions=conditions)
    columns["categories"] = table._cols["word"].dictionary
    found[path] = columns
    table.close()
json.dump(found, open("found.json", "w"))
"#;

fn number(value: &Option<Value>) -> Option<f64> {
    match value {
        Some(Value::Bool(value)) => Some(f64::from(u8::from(*value))),
        Some(Value::Int(value)) => Some(*value as f64),
        Some(Value::Float(value)) => Some(*value),
        _ => None,
    }
}

fn text(value: &Option<Value>) -> Option<String> {
    match value {
        Some(Value::Str(text)) => Some(text.clone()),
        Some(Value::Bytes(bytes)) => Some(String::from_utf8(bytes.clone()).unwrap()),
        _ => None,
    }
}

/// Whether two statistics are equal except for the order in which Python adds the items: the errors of sums of 60,000
/// numbers are far smaller.
fn is_close(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-10 * one.abs().max(other.abs()).max(1.0)
}

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn queries_of_pythons_tables_have_its_results() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seed = 20_261_130;
    run_python(&[PRELUDE, QUERIES].concat(), folder, &[&seed.to_string()]);
    let found: Json =
        serde_json::from_slice(&fs::read(folder.join("found.json")).unwrap()).unwrap();
    for (name, found) in found.as_object().unwrap() {
        let table = open(folder, name);
        for (column, expected) in found["statistics"].as_object().unwrap() {
            let what = format!("{name}, {column}");
            let described = table.describe(column).unwrap();
            assert_eq!(described.count, expected["count"].as_u64().unwrap(), "{what}");
            assert_eq!(described.nulls, expected["nulls"].as_u64().unwrap(), "{what}");
            assert_eq!(described.nan_count, 0, "{what}");
            if let Some(distinct) = expected.get("distinct") {
                assert_eq!(described.distinct, distinct.as_u64(), "{what}");
                assert_eq!(text(&described.min).as_deref(), expected["min"].as_str(), "{what}");
                assert_eq!(text(&described.max).as_deref(), expected["max"].as_str(), "{what}");
            } else if let Some(mean) = expected.get("mean") {
                assert_eq!(number(&described.min), expected["min"].as_f64(), "{what}");
                assert_eq!(number(&described.max), expected["max"].as_f64(), "{what}");
                let pairs = [(described.mean, mean), (described.std, &expected["std"])];
                for (ours, theirs) in pairs {
                    let (ours, theirs) = (ours.unwrap(), theirs.as_f64().unwrap());
                    assert!(is_close(ours, theirs), "{what}: {ours}, Python: {theirs}");
                }
            } else {
                assert_eq!((described.mean, described.std), (None, None), "{what}");
            }
        }
        let categories: Vec<String> = serde_json::from_value(found["categories"].clone()).unwrap();
        assert_eq!(table.categories("word").unwrap(), categories, "{name}");
        let head = table.head(4).unwrap();
        assert_eq!(head.len(), table.columns().len());
        for (column, expected) in found["head"].as_object().unwrap() {
            let (_, values) = head.iter().find(|(name, _)| name == column).unwrap();
            let values: Vec<Json> = values.iter().map(encoded).collect();
            assert_eq!(Json::from(values), *expected, "{name}, {column}");
        }
        let mut matches = 0;
        for case in found["conditions"].as_array().unwrap() {
            let condition = case[0].as_str().unwrap();
            let rows = table.find_where(&condition.parse().unwrap()).unwrap();
            let sum: u64 = rows.iter().map(|row| row * (row % 1009)).sum();
            assert_eq!(
                (rows.len() as u64, sum),
                (case[1].as_u64().unwrap(), case[2].as_u64().unwrap()),
                "{name}: {condition}"
            );
            matches += u64::from(!rows.is_empty() && (rows.len() as u64) < table.nrows());
        }
        assert!(matches > 30, "{matches}");
    }
}

/// Lists with null items, lists of structures, lists of lists, and columns of nested structures.
#[cfg(feature = "arrow")]
const NESTED: &str = r#"
import pyarrow as pa
deep = S.int64(nullable=True)
kind = int
for _ in range(32):
    deep, kind = S.list(deep), list[kind]
Deep = dataclasses.make_dataclass("Deep", [("deep", kind, b2.field(deep, default=None))])
value = [3, None]
for _ in range(31):
    value = [value]
table = b2.CTable(Deep, urlpath="deep.b2d", mode="w")
table.extend(dict(deep=[value, [], value]))
finished("deep.b2d", table)

names = pa.struct([("z", pa.string())])
position = pa.struct([("x", pa.float64()), ("name", names)])
pair = pa.struct([("a", pa.int32()), ("b", pa.string())])
columns = {
    "pos": pa.array([{"x": 1.0, "name": {"z": "a"}}, {"x": None, "name": {"z": None}}, {"x": 2.5, "name": {"z": ""}}], position),
    "pairs": pa.array([[{"a": 1, "b": None}, {"a": None, "b": "x"}], None, []], pa.list_(pair)),
    "lists": pa.array([[[1, None], None], None, [[]]], pa.list_(pa.list_(pa.int16()))),
    "texts": pa.array([["a", None], [], None], pa.list_(pa.string())),
    "flags": pa.array([[True, None], [False], None], pa.list_(pa.bool_())),
    "times": pa.array([[1, None], [2], None], pa.list_(pa.timestamp("ms"))),
    "words": pa.array([["a", "b"], ["b"], None], pa.list_(pa.dictionary(pa.int32(), pa.string()))),
}
for name in ["nested.b2d", "nested.b2z"]:
    arrow = pa.table(columns)
    table = b2.CTable.from_arrow(arrow.schema, arrow.to_batches(), urlpath=name, mode="w")
    table.delete([1] if name.endswith("z") else [])
    finished(name, table)
json.dump(expected, open("expected.json", "w"))
"#;

// Python needs pyarrow, which the tests of Arrow install.
#[cfg(feature = "arrow")]
#[test]
#[ignore = "needs Python: cargo xtask integrations arrow"]
fn nested_columns_and_lists_with_nulls_are_read_as_python_reads_them() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(&[PRELUDE, NESTED].concat(), folder, &[]);
    let expected = expected(folder);
    assert_eq!(expected.len(), 3);
    for (name, expected) in &expected {
        check(name, &open(folder, name), expected);
    }
    let table = open(folder, "nested.b2d");
    assert_eq!(
        table.find_where(&"pos.x > 2 and not pos.name.z == 'a'".parse().unwrap()).unwrap(),
        [2]
    );
    let described = table.describe("pairs").unwrap();
    assert_eq!((described.count, described.nulls, described.min), (3, 1, None));
}

/// A table with summaries, the same table without them, and its rows as plain values: an integer, a float that can be NaN, and whether it is null.
fn sample(path: &Path, rng: &mut Rng) -> (CTable, CTable, Vec<(i64, f32, bool)>) {
    let float = ItemType::from(ItemKind::Float32).nullable();
    let schema =
        Schema::new().column("n", ItemKind::Int64).column("x", float).expected_rows(10_000);
    let mut table = CTable::create(path, &schema).unwrap();
    let mut rows: Vec<(i64, f32, bool)> = (0..120_000)
        .map(|row| {
            let x = match rng.below(20) {
                0 => f32::NAN,
                _ => (row / 1600) as f32 / 10.0,
            };
            (row / 400 - 150, x, rng.below(5) == 0)
        })
        .collect();
    let numbers: Vec<i64> = rows.iter().map(|row| row.0).collect();
    let floats: Vec<f32> = rows.iter().map(|row| row.1).collect();
    let nulls: Vec<bool> = rows.iter().map(|row| row.2).collect();
    table
        .append([("n", Data::items(&numbers)), ("x", Data::items(&floats).nulls(&nulls[..]))])
        .unwrap();
    let dead = 30_000..30_000 + rng.below(40_000);
    table.delete_rows(dead.clone()).unwrap();
    rows.drain(dead.start as usize..dead.end as usize);
    // Frames have no summaries.
    let bare = CTable::from_cframe(table.to_cframe().unwrap()).unwrap();
    table.finish().unwrap();
    (CTable::open(path).unwrap(), bare, rows)
}

/// A condition, and its result for a row of [`sample`]: `None` if a null leaves it open.
type Case = (Condition, Box<dyn Fn(&(i64, f32, bool)) -> Option<bool>>);

fn random(rng: &mut Rng, depth: u64) -> Case {
    if depth > 0 && rng.below(4) > 0 {
        let (one, of_one) = random(rng, depth - 1);
        let (other, of_other) = random(rng, depth - 1);
        return match rng.below(3) {
            0 => (!one, Box::new(move |row| of_one(row).map(|it| !it))),
            1 => (
                one.and(other),
                Box::new(move |row| match (of_one(row), of_other(row)) {
                    (Some(false), _) | (_, Some(false)) => Some(false),
                    (one, other) => Some(one? && other?),
                }),
            ),
            _ => (
                one.or(other),
                Box::new(move |row| match (of_one(row), of_other(row)) {
                    (Some(true), _) | (_, Some(true)) => Some(true),
                    (one, other) => Some(one? || other?),
                }),
            ),
        };
    }
    use Comparison::*;
    let comparison =
        [Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual][rng.below(6) as usize];
    macro_rules! holds {
        ($item:expr, $value:expr) => {
            match comparison {
                Equal => $item == $value,
                NotEqual => $item != $value,
                Less => $item < $value,
                LessOrEqual => $item <= $value,
                Greater => $item > $value,
                GreaterOrEqual => $item >= $value,
            }
        };
    }
    if rng.below(2) == 0 {
        let value = rng.below(310) as i64 - 155;
        return (
            Condition::new("n", comparison, value),
            Box::new(move |row| Some(holds!(row.0, value))),
        );
    }
    let value = match rng.below(10) {
        0 => f64::NAN,
        _ => rng.below(90) as f64 / 10.0,
    };
    let single = value as f32;
    let condition = Condition::new("x", comparison, value);
    (condition, Box::new(move |row| (!row.2).then_some(holds!(row.1, single))))
}

#[test]
fn conditions_find_the_same_rows_with_and_without_summaries() {
    let folder = tempfile::tempdir().unwrap();
    let mut rng = Rng(55);
    let (table, bare, rows) = sample(&folder.path().join("with.b2d"), &mut rng);
    for name in ["n", "x"] {
        assert!(table.summary(name).unwrap().unwrap().segments().len() > 10, "{name}");
    }
    assert!(table.summary("x").unwrap().unwrap().segments().any(|segment| segment.has_nan()));
    assert!(bare.summary("n").unwrap().is_none());
    for _ in 0..repeats(1000) {
        let (condition, holds) = random(&mut rng, 3);
        let expected: Vec<u64> = (0..)
            .zip(&rows)
            .filter(|(_, row)| holds(row) == Some(true))
            .map(|(at, _)| at)
            .collect();
        assert_eq!(table.find_where(&condition).unwrap(), expected, "{condition:?}");
        assert_eq!(bare.find_where(&condition).unwrap(), expected, "{condition:?}");
    }
}

#[test]
fn statistics_count_what_they_ignore() {
    let optional = |kind: ItemKind| ItemType::from(kind).nullable();
    let schema = Schema::new()
        .column("x", optional(ItemKind::Float64))
        .column("big", ItemKind::UInt64)
        .column("word", optional(ItemKind::Dictionary { ordered: false }));
    let mut table = CTable::in_memory(&schema).unwrap();
    let empty = table.describe("x").unwrap();
    assert_eq!((empty.count, empty.mean, empty.min, empty.distinct), (0, None, None, None));
    assert_eq!(table.describe("word").unwrap().distinct, Some(0));
    table
        .append([
            ("x", Data::items(&[f64::NAN, 1.0, 0.0, 4.0]).nulls(&[false, false, true, false][..])),
            ("big", Data::items(&[u64::MAX, u64::MAX - 1, 1 << 63, u64::MAX])),
            ("word", Data::texts([Some("é"), None, Some("z"), Some("é")])),
        ])
        .unwrap();
    let x = table.describe("x").unwrap();
    assert_eq!((x.count, x.nulls, x.nan_count), (4, 1, 1));
    assert_eq!(
        (x.mean, x.std, x.min, x.max),
        (Some(2.5), Some(1.5), Some(1.0.into()), Some(4.0.into()))
    );
    let big = table.describe("big").unwrap();
    assert_eq!((big.min, big.max), (Some(Value::Int(1 << 63)), Some(Value::Int(u64::MAX.into()))));
    let word = table.describe("word").unwrap();
    assert_eq!((word.nulls, word.distinct), (1, Some(2)));
    assert_eq!((word.min, word.max), (Some("z".into()), Some("é".into())));
    assert_eq!(table.describe("none").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(table.categories("x").unwrap_err().kind(), ErrorKind::TypeMismatch);
    assert_eq!(table.head(9).unwrap()[1].1.len(), 4);
    let infinite = Data::items(&[f64::INFINITY, 1.0]);
    let mut table = CTable::in_memory(&Schema::new().column("x", ItemKind::Float64)).unwrap();
    table.append([("x", infinite)]).unwrap();
    assert_eq!(table.describe("x").unwrap().mean, Some(f64::INFINITY));
}
