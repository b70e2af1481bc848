//! SQL over tables and data sets of Python.

mod common;

use std::path::Path;

use common::{add, context, number, query, run, run_python};
use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type};
use serde_json::Value;

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
    run_python(SORTED, folder.path(), &[]);
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
    run_python(XARRAY, folder.path(), &[]);
    let results = std::fs::read(folder.path().join("results.json")).unwrap();
    let results: Value = serde_json::from_slice(&results).unwrap();
    for location in ["x.b2z", "x.b2/dataset.json"] {
        check_data_set(&folder.path().join(location), &results).await;
    }
}

async fn check_data_set(location: &Path, results: &Value) {
    let context = context(2);
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

/// Writes a store of a table and of arrays.
const STORE: &str = r#"
import dataclasses
import blosc2 as b2
import blosc2.schema as S
import numpy as np

@dataclasses.dataclass
class Row:
    n: int = b2.field(S.int64(), default=0)

table = b2.CTable(Row)
table.extend({"n": np.arange(10)})
store = b2.TreeStore("store.b2z", mode="w")
store["/runs/speed"] = np.arange(6.0).reshape(2, 3)
store["/runs/one"] = np.arange(4)
store["/group/table"] = table
store.close()
"#;

#[tokio::test(flavor = "multi_thread")]
async fn members_of_stores_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    run_python(STORE, folder.path(), &[]);
    let path = folder.path().join("store.b2z");
    let context = context(2);
    let create = async |name: &str, kind: &str, key: &str| {
        let location = path.display();
        let options = match key {
            "" => String::new(),
            key => format!("OPTIONS ('key' '{key}')"),
        };
        let sql = format!(
            "CREATE EXTERNAL TABLE {name} STORED AS {kind} LOCATION '{location}' {options}"
        );
        context.sql(&sql).await.map(drop).map_err(|error| error.to_string())
    };
    create("t", "CTABLE", "/group/table").await.unwrap();
    assert_eq!(number(&context, "SELECT sum(n) FROM t WHERE n > 2").await, 42);
    create("speed", "B2ND", "/runs/speed").await.unwrap();
    assert_eq!(number(&context, "SELECT CAST(sum(value) AS BIGINT) FROM speed").await, 15);
    create("runs", "B2ND", "/runs").await.unwrap();
    assert_eq!(number(&context, "SELECT CAST(sum(speed) AS BIGINT) FROM runs").await, 15);
    for (kind, key, expected) in [
        ("CTABLE", "", "the keys `/group/table`, `/runs/one`, `/runs/speed`, expected a table"),
        ("CTABLE", "/group/none", "the store has no `/group/none`: it has `/group/table`"),
        ("CTABLE", "/runs/one", "expected a table"),
        ("B2ND", "/group/table", "expected an array"),
    ] {
        let error = create("x", kind, key).await.unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
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
