//! SQL over tables of Python, compared with DuckDB over the same rows.

mod common;

use std::path::Path;
use std::process::Command;

use common::{add, context, query, run};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use serde_json::Value;

/// Writes tables with deleted rows, and the results of DuckDB for queries on the remaining rows, which it gets from
/// lists and not from the tables.
const SCRIPT: &str = r#"
import dataclasses, datetime, json, math, random
import blosc2 as b2
import blosc2.schema as S
import duckdb
import numpy as np
import pyarrow as pa

@dataclasses.dataclass
class Row:
    id: int = b2.field(S.int64(), default=0)
    price: float = b2.field(S.float64(nullable=True, null_storage="mask"), default=0.0)
    amount: int = b2.field(S.int32(nullable=True), default=0)
    word: str = b2.field(S.dictionary(nullable=True), default="")
    city: str = b2.field(S.utf8(nullable=True), default="")
    code: str = b2.field(S.string(max_length=5), default="")
    moment: object = b2.field(S.timestamp(unit="us"), default=0)
    flag: bool = b2.field(S.bool(nullable=True), default=False)

rng = random.Random(52)
TYPES = [pa.int64(), pa.float64(), pa.int32(), pa.string(), pa.string(), pa.string(), pa.timestamp("us"), pa.bool_()]
NAMES = [field.name for field in dataclasses.fields(Row)]

def rows(count):
    maybe = lambda value: None if rng.random() < 0.1 else value
    for k in range(count):
        yield [k, maybe(rng.choice([math.nan, 0.5, -1e300, rng.uniform(-100, 100), rng.uniform(-100, 100)])),
               maybe(rng.randrange(-500, 500)), maybe(rng.choice(["a", "ß", "ccc", ""])),
               maybe(f"city {rng.randrange(300)}"), rng.choice(["x", "yy", "zzzzz"]),
               np.datetime64(1_700_000_000_000_000 + rng.randrange(10**13), "us"), maybe(rng.random() < 0.3)]

database = duckdb.connect()
for name, count, deleted in [("t", 20_000, 0.2), ("u", 700, 0.0), ("e", 0, 0.0), ("d", 50, 1.0)]:
    all = list(rows(count))
    table = b2.CTable(Row, urlpath=name + ".b2z", mode="w", expected_size=1 << 11)
    if all:
        table.extend({column: [row[at] for row in all] for at, column in enumerate(NAMES)})
    gone = [k for k in range(count) if rng.random() < deleted]
    if gone:
        table.delete(gone)
    table.close()
    gone = set(gone)
    kept = [row for k, row in enumerate(all) if k not in gone]
    columns = [pa.array([row[at] for row in kept], type) for at, type in enumerate(TYPES)]
    source = pa.table(dict(zip(NAMES, columns)))
    database.execute(f"CREATE TABLE {name} AS SELECT * FROM source")

WORDS = ["'a'", "'ß'", "'zz'"]

def condition(table):
    column = lambda name: f"{table}.{name}"
    kinds = [
        lambda: f"{column('id')} % {rng.randrange(2, 9)} = {rng.randrange(2)}",
        lambda: f"{column('price')} {rng.choice(['<', '>', '<=', '>=', '='])} {rng.choice(['0.5', '-3.25', '40'])}",
        lambda: f"{column('amount')} BETWEEN {rng.randrange(-500, 0)} AND {rng.randrange(500)}",
        lambda: f"{column('word')} {rng.choice(['=', '<>', '<', '>='])} {rng.choice(WORDS)}",
        lambda: f"{column('city')} LIKE '%{rng.randrange(10)}'",
        lambda: f"{column(rng.choice(NAMES[1:]))} IS {rng.choice(['', 'NOT '])}NULL",
        lambda: f"{column('moment')} < CAST('2023-12-{rng.randrange(10, 31)} 12:30:00' AS TIMESTAMP)",
        lambda: f"{column('flag')}",
        lambda: f"{column('code')} IN ('x', 'zzzzz')",
    ]
    parts = [rng.choice(kinds)() for _ in range(rng.randrange(1, 4))]
    text = parts[0]
    for part in parts[1:]:
        text = f"({text}) {rng.choice(['AND', 'OR'])} {rng.choice(['', 'NOT '])}({part})"
    return text

def generated():
    table = rng.choice(["t", "t", "t", "u", "e", "d"])
    where = f"WHERE {condition(table)}" if rng.random() < 0.8 else ""
    some = rng.sample(NAMES[1:], 3)
    columns = ", ".join(["id"] + [c if c != "moment" else "CAST(moment AS VARCHAR) < '2023-12-01' AS early" for c in some])
    key = rng.choice(["word", "code", "flag", "id % 5", "city"])
    sums = "count(*), count(price), sum(amount), avg(amount), min(city), max(id), count(DISTINCT word), sum(CASE WHEN abs(price) < 1000 THEN price END)"
    kind = rng.randrange(6)
    if kind == 0:
        return f"SELECT {columns} FROM {table} {where} ORDER BY id"
    if kind == 1:
        return f"SELECT {columns} FROM {table} {where} ORDER BY id DESC LIMIT {rng.randrange(40)} OFFSET {rng.randrange(5)}"
    if kind == 2:
        return f"SELECT {key} AS k, {sums} FROM {table} {where} GROUP BY 1 ORDER BY 1 NULLS LAST"
    if kind == 3:
        return f"SELECT {sums} FROM {table} {where}"
    if kind == 4:
        join = rng.choice(["JOIN", "LEFT JOIN"])
        return f"SELECT {table}.id, o.city, o.amount FROM {table} {join} u AS o ON {table}.id = o.id * 3 {where} ORDER BY 1, 2 NULLS LAST"
    return (f"SELECT id, row_number() OVER (PARTITION BY code ORDER BY id) AS n, "
            f"sum(amount) OVER (ORDER BY id ROWS BETWEEN 3 PRECEDING AND CURRENT ROW) AS s FROM {table} {where} ORDER BY id LIMIT 300")

def cell(value):
    if value is None or isinstance(value, (bool, str)):
        return value
    number = float(value)
    return "NaN" if math.isnan(number) else number

queries = [generated() for _ in range(200)]
with open("queries.json", "w") as file:
    results = ((sql, [[cell(v) for v in row] for row in database.execute(sql).fetchall()]) for sql in queries)
    json.dump(list(results), file)
"#;

fn run_python(script: &str, folder: &Path) {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON").expect(
        "BLOSC2_TEST_PYTHON is the path of a Python with blosc2, pyarrow and duckdb; \
         `cargo xtask integrations datafusion` sets it",
    );
    let file = folder.join("script_of_this_test.py");
    std::fs::write(&file, script).unwrap();
    let output = Command::new(python).arg("-I").arg(&file).current_dir(folder).output().unwrap();
    let printed =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "Python failed ({}):\n{}", output.status, printed.join("\n"));
}

/// Writes a sorted table, whose summaries Python writes when it closes the table.
const SORTED: &str = r#"
import dataclasses
import blosc2 as b2
import blosc2.schema as S
import numpy as np

@dataclasses.dataclass
class Row:
    id: int = b2.field(S.int64(), default=0)
    price: float = b2.field(S.float64(nullable=True), default=0.0)

count = 4_000_000
table = b2.CTable(Row, urlpath="sorted.b2z", mode="w", expected_size=count)
table.extend({"id": np.arange(count), "price": np.arange(count) / 2})
table.close()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn summaries_of_python_skip_blocks() {
    let folder = tempfile::tempdir().unwrap();
    run_python(SORTED, folder.path());
    let context = context(2);
    add(&context, "t", folder.path().join("sorted.b2z").display()).await;
    for condition in ["id BETWEEN 1000000 AND 1039999", "price >= 1000000 AND price < 1020000"] {
        let (rows, matched, pruned) =
            run(&context, &format!("SELECT * FROM t WHERE {condition}")).await;
        assert_eq!(rows, 40_000, "{condition}");
        let all = matched + pruned;
        assert!(matched * 100 <= all * 3, "{condition}: {matched} of {all} segments");
    }
}

/// Writes a data set of xarray, and the results of xarray.
const XARRAY: &str = r#"
import json
import numpy as np
import xarray as xr
import xarray_blosc2 as xb

rng = np.random.default_rng(52)
time = np.datetime64("2020-01-15", "ns") + np.arange(100) * np.timedelta64(1, "D")
temperature = rng.normal(280, 10, (100, 6, 8)).astype("f4")
temperature[rng.random(temperature.shape) < 0.1] = np.nan
data = xr.Dataset(
    {"temperature": (("time", "lat", "lon"), temperature),
     "rain": (("time", "lat", "lon"), rng.random((100, 6, 8))),
     "mask": (("lat", "lon"), np.ones((6, 8), bool))},
    coords={"time": time, "lat": np.linspace(-50, 50, 6), "lon": np.arange(8) * 10.0})
xb.save_dataset(data, "x.b2")
xb.freeze_dataset("x.b2", "x.b2z")
part = data.sel(lat=slice(0, 40), lon=[20, 70])
months = data.rain.groupby("time.month").mean()
with open("results.json", "w") as file:
    json.dump(dict(months={int(m): float(v) for m, v in zip(months.month, months.mean(("lat", "lon")))},
                   part=[float(part.rain.sum()), float(np.nanmax(part.temperature)), int(part.rain.size)]), file)
"#;

#[tokio::test(flavor = "multi_thread")]
async fn data_sets_of_xarray_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    run_python(XARRAY, folder.path());
    let results = std::fs::read(folder.path().join("results.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    let context = context(2);
    let location = folder.path().join("x.b2z");
    let sql = format!("CREATE EXTERNAL TABLE x STORED AS B2ND LOCATION '{}'", location.display());
    context.sql(&sql).await.unwrap();
    let frame = context.table("x").await.unwrap();
    let names: Vec<_> = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    assert_eq!(names, ["time", "lat", "lon", "rain", "temperature"]);
    let batches = query(
        &context,
        "SELECT CAST(date_part('month', time) AS BIGINT), avg(rain) FROM x GROUP BY 1 ORDER BY 1",
    )
    .await;
    let mut months = serde_json::Map::new();
    for batch in batches {
        let [keys, means] = [0, 1].map(|at| cells(batch.column(at)));
        for (key, mean) in keys.iter().zip(means) {
            months.insert(key.as_f64().unwrap().to_string(), mean);
        }
    }
    assert_eq!(months.len(), 4);
    for (month, mean) in results["months"].as_object().unwrap() {
        assert!(is_same(mean, &months[month]), "{month}: {mean}, {months:?}");
    }
    let sql = "SELECT sum(rain), max(CASE WHEN NOT isnan(temperature) THEN temperature END), count(*) \
               FROM x WHERE lat BETWEEN 0 AND 40 AND lon IN (20, 70)";
    let batches = query(&context, sql).await;
    let found: Vec<Value> =
        batches[0].columns().iter().map(|column| cells(column)[0].clone()).collect();
    let expected = results["part"].as_array().unwrap();
    assert!(
        found.iter().zip(expected).all(|(one, other)| is_same(one, other)),
        "{found:?}, {expected:?}"
    );
}

/// The items of a column as texts, booleans and numbers.
fn cells(column: &ArrayRef) -> Vec<Value> {
    let as_type = |data_type| cast(column, &data_type).unwrap();
    match column.data_type() {
        DataType::Boolean => {
            column.as_boolean().iter().map(|item| item.map_or(Value::Null, Value::from)).collect()
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Dictionary(..) => {
            let texts = as_type(DataType::Utf8);
            texts
                .as_string::<i32>()
                .iter()
                .map(|item| item.map_or(Value::Null, Value::from))
                .collect()
        }
        _ => {
            let numbers = as_type(DataType::Float64);
            let numbers = numbers.as_primitive::<Float64Type>();
            let value = |item: Option<f64>| match item {
                Some(item) if item.is_nan() => "NaN".into(),
                Some(item) => item.into(),
                None => Value::Null,
            };
            numbers.iter().map(value).collect()
        }
    }
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        // Sums depend on the order of the items.
        (Some(one), Some(other)) => (one - other).abs() <= 1e-9 * one.abs().max(1.0),
        _ => one == other,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_over_tables_of_python_return_the_same_as_duckdb() {
    let folder = tempfile::tempdir().unwrap();
    run_python(SCRIPT, folder.path());
    let queries = std::fs::read(folder.path().join("queries.json")).unwrap();
    let queries: Vec<(String, Vec<Vec<Value>>)> = serde_json::from_slice(&queries).unwrap();
    assert_eq!(queries.len(), 200);
    let with_rows = queries.iter().filter(|(_, rows)| !rows.is_empty()).count();
    assert!(with_rows > 100, "only {with_rows} queries have rows");
    for partitions in [1, 4] {
        let context = context(partitions);
        for name in ["t", "u", "e", "d"] {
            add(&context, name, folder.path().join(format!("{name}.b2z")).display()).await;
        }
        for (sql, expected) in &queries {
            let mut found: Vec<Vec<Value>> = Vec::new();
            for batch in query(&context, sql).await {
                let columns: Vec<_> = batch.columns().iter().map(cells).collect();
                let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
                found.extend((0..batch.num_rows()).map(row));
            }
            assert_eq!(found.len(), expected.len(), "{sql}");
            for (found, expected) in found.iter().zip(expected) {
                let is_same = found.iter().zip(expected).all(|(one, other)| is_same(one, other));
                assert!(is_same && found.len() == expected.len(), "{sql}: {found:?}, {expected:?}");
            }
        }
    }
}
