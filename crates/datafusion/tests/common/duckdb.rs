//! SQL over tables of Python, tables of this project and arrays, compared with DuckDB over the same rows.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use blosc2_store::{CTable, Schema, TreeStore};

use datafusion::arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit, UInt64Type};
use datafusion::arrow::ipc::reader::FileReader;
use datafusion::datasource::MemTable;
use datafusion::prelude::SessionContext;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::Deserialize;
use serde_json::Value;

use super::common::{add, context, query, run_python};

/// A query and the rows of DuckDB.
#[derive(Debug, Deserialize)]
struct Query {
    sql: String,
    /// Whether the order of the rows is part of the result.
    ordered: bool,
    /// Which columns are sums of floats, which depend on the order of the items.
    approx: Vec<bool>,
    rows: Vec<Vec<Value>>,
}

/// What the script has written.
#[derive(Debug, Deserialize)]
struct Plan {
    arrays: Vec<String>,
    seen: Seen,
}

/// The numbers of rows and of unusual items of all tables.
#[derive(Debug, Deserialize)]
struct Seen {
    rows: u64,
    deleted: u64,
    nan: u64,
    null: u64,
}

/// An item of a result. The types of integers may differ, but not integers and floats.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    Null,
    Bool(bool),
    Int(i128),
    /// The bits of a float.
    Float(u64),
    Text(String),
    /// Nanoseconds.
    Time(i128),
}

impl Cell {
    fn float(value: f64) -> Self {
        Self::Float(if value.is_nan() { f64::NAN } else { value }.to_bits())
    }

    /// A cell of the script.
    fn expected(value: &Value) -> Self {
        match value {
            Value::Null => Self::Null,
            Value::Bool(value) => Self::Bool(*value),
            Value::Number(number) => Self::Int(number.to_string().parse().unwrap()),
            Value::Array(items) => Self::float(items[0].as_str().unwrap().parse().unwrap()),
            Value::String(text) => match text.strip_suffix(" ns").map(str::parse) {
                Some(Ok(time)) => Self::Time(time),
                _ => Self::Text(text.clone()),
            },
            Value::Object(_) => panic!("{value} is no cell"),
        }
    }

    fn is_close(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Float(one), Self::Float(other)) => {
                let [one, other] = [*one, *other].map(f64::from_bits);
                (one - other).abs() <= 1e-9 * one.abs().max(1.0)
            }
            _ => self == other,
        }
    }
}

fn cells(column: &ArrayRef) -> Vec<Cell> {
    let as_type = |data_type| cast(column, &data_type).unwrap();
    fn all<T>(items: impl Iterator<Item = Option<T>>, cell: impl Fn(T) -> Cell) -> Vec<Cell> {
        items.map(|item| item.map_or(Cell::Null, &cell)).collect()
    }
    match column.data_type() {
        DataType::Boolean => all(column.as_boolean().iter(), Cell::Bool),
        DataType::Dictionary(_, values) => cells(&as_type((**values).clone())),
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => {
            let texts = as_type(DataType::Utf8);
            all(texts.as_string::<i32>().iter(), |text| Cell::Text(text.to_owned()))
        }
        DataType::Float32 | DataType::Float64 => {
            let numbers = as_type(DataType::Float64);
            all(numbers.as_primitive::<Float64Type>().iter(), Cell::float)
        }
        DataType::UInt64 => {
            all(column.as_primitive::<UInt64Type>().iter(), |item| Cell::Int(item.into()))
        }
        DataType::Timestamp(unit, _) => {
            let scale = match unit {
                TimeUnit::Second => 1_000_000_000,
                TimeUnit::Millisecond => 1_000_000,
                TimeUnit::Microsecond => 1000,
                TimeUnit::Nanosecond => 1,
            };
            let items = as_type(DataType::Int64);
            all(items.as_primitive::<Int64Type>().iter(), |item| {
                Cell::Time(i128::from(item) * scale)
            })
        }
        found if found.is_integer() => {
            let items = as_type(DataType::Int64);
            all(items.as_primitive::<Int64Type>().iter(), |item| Cell::Int(item.into()))
        }
        DataType::Null => vec![Cell::Null; column.len()],
        other => panic!("a column of a result has the type {other}"),
    }
}

/// Writes the rows that the script hands over to a table, and returns its location.
async fn write_table(folder: &Path, at: usize) -> String {
    let file = File::open(folder.join(format!("r{at}.arrow"))).unwrap();
    let reader = FileReader::try_new(file, None).unwrap();
    let empty = RecordBatch::new_empty(reader.schema());
    let mut rows: Vec<RecordBatch> = reader.map(Result::unwrap).collect();
    if rows.is_empty() {
        rows.push(empty);
    }
    let path = folder.join(format!("r{at}.b2z"));
    let location = path.display().to_string();
    let kind = at / 2;
    if at.is_multiple_of(2) {
        write_with_store(&path, &rows, kind);
        return location;
    }
    // By SQL: to one file, or to the files of a directory.
    let context = context(2);
    let columns: Vec<_> = rows[0].schema().fields().iter().map(|f| f.name().clone()).collect();
    let columns: Vec<_> = columns.iter().filter(|name| *name != "gone").collect();
    let columns = columns.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>().join(", ");
    let table = MemTable::try_new(rows[0].schema(), vec![rows]).unwrap();
    context.register_table("rows", Arc::new(table)).unwrap();
    let select = |condition: &str| format!("SELECT {columns} FROM rows WHERE NOT gone{condition}");
    if kind.is_multiple_of(2) {
        query(&context, &format!("COPY ({}) TO '{location}'", select(""))).await;
        return location;
    }
    let parts = folder.join(format!("r{at}"));
    std::fs::create_dir(&parts).unwrap();
    let first = parts.join("first.b2z");
    query(&context, &format!("COPY ({}) TO '{}'", select(" AND id % 3 = 0"), first.display()))
        .await;
    let location = format!("{}/", parts.display());
    add(&context, "t", &location).await;
    for rest in [1, 2] {
        let rest = select(&format!(" AND id % 3 = {rest}"));
        query(&context, &format!("INSERT INTO t {rest}")).await;
    }
    location
}

fn write_with_store(path: &Path, rows: &[RecordBatch], kind: usize) {
    let gone = rows[0].schema().index_of("gone").unwrap();
    let kept: Vec<usize> = (0..rows[0].num_columns()).filter(|at| *at != gone).collect();
    let batches: Vec<_> = rows.iter().map(|batch| batch.project(&kept).unwrap()).collect();
    let expected = [16, 1 << 11, 1 << 13][kind / 3 % 3];
    let schema = Schema::try_from(&*batches[0].schema()).unwrap().expected_rows(expected);
    let is_gone = |batch: &RecordBatch| -> Vec<bool> {
        batch.column(gone).as_boolean().iter().map(Option::unwrap).collect()
    };
    let delete = |table: &mut CTable, start: u64, gone: Vec<bool>| {
        let at = (start..).zip(gone).filter(|(_, gone)| *gone).map(|(at, _)| at);
        table.delete_rows(&at.collect::<Vec<u64>>()[..]).unwrap();
    };
    match kind % 3 {
        0 => {
            let mut table = CTable::create(path, &schema).unwrap();
            table.append_record_batches(batches.into_iter().map(Ok)).unwrap();
            delete(&mut table, 0, rows.iter().flat_map(is_gone).collect());
            table.finish().unwrap();
        }
        // Deletions between appends, and a table that is opened again.
        1 => {
            CTable::create(path, &schema).unwrap().finish().unwrap();
            for (batch, rows) in batches.iter().zip(rows) {
                let mut table = CTable::open_rw(path).unwrap();
                let start = table.nrows();
                table.append_record_batch(batch).unwrap();
                delete(&mut table, start, is_gone(rows));
                table.finish().unwrap();
            }
        }
        // A table in a directory is complete without `finish`.
        _ => {
            let directory = path.with_extension("b2d");
            let mut table = CTable::create(&directory, &schema).unwrap();
            table.append_record_batches(batches.into_iter().map(Ok)).unwrap();
            delete(&mut table, 0, rows.iter().flat_map(is_gone).collect());
            drop(table);
            TreeStore::open(&directory).unwrap().pack(path).unwrap();
        }
    }
}

/// Why the result of a query is not that of DuckDB.
async fn difference(context: &SessionContext, query: &Query) -> Option<String> {
    let frame = match context.sql(&query.sql).await {
        Ok(frame) => frame,
        Err(error) => return Some(error.to_string()),
    };
    let batches = match frame.collect().await {
        Ok(batches) => batches,
        Err(error) => return Some(error.to_string()),
    };
    let mut found: Vec<Vec<Cell>> = Vec::new();
    for batch in batches {
        let columns: Vec<_> = batch.columns().iter().map(cells).collect();
        let row = |row: usize| columns.iter().map(|column| column[row].clone()).collect();
        found.extend((0..batch.num_rows()).map(row));
    }
    let mut expected: Vec<Vec<Cell>> =
        query.rows.iter().map(|row| row.iter().map(Cell::expected).collect()).collect();
    if found.len() != expected.len() {
        return Some(format!("{} rows, expected {}", found.len(), expected.len()));
    }
    if !query.ordered {
        // Without the inexact cells, the rows of groups differ.
        let exact = |row: &Vec<Cell>| -> Vec<Cell> {
            let cells = row.iter().zip(&query.approx);
            cells.filter(|(_, approx)| !**approx).map(|(cell, _)| cell.clone()).collect()
        };
        found.sort_by_cached_key(exact);
        expected.sort_by_cached_key(exact);
    }
    let is_same = |found: &[Cell], expected: &[Cell]| {
        let cells = found.iter().zip(expected).zip(&query.approx);
        found.len() == expected.len()
            && cells.into_iter().all(|((one, other), approx)| match approx {
                true => one.is_close(other),
                false => one == other,
            })
    };
    let mut rows = found.iter().zip(&expected).enumerate();
    let (at, (found, expected)) = rows.find(|(_, (one, other))| !is_same(one, other))?;
    Some(format!("row {at} is {found:?}, expected {expected:?}"))
}

fn variable(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name}={text}: expected a number")),
        Err(_) => default,
    }
}

/// An object store for the files, and its URL without `/` at the end.
pub(crate) type Bucket = (Arc<dyn ObjectStore>, &'static str);

/// Puts a file, or the files of a directory, into a bucket. Returns the URL.
async fn put((store, url): &Bucket, location: &str) -> String {
    let path = Path::new(location);
    let name = path.file_name().unwrap().to_str().unwrap();
    let mut files = vec![(path.to_owned(), name.to_owned())];
    if path.is_dir() {
        let entries = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        let key = |path: &Path| format!("{name}/{}", path.file_name().unwrap().to_str().unwrap());
        files = entries.map(|path| (path.clone(), key(&path))).collect();
    }
    for (path, key) in files {
        store.put(&key.into(), std::fs::read(path).unwrap().into()).await.unwrap();
    }
    let end = if location.ends_with('/') { "/" } else { "" };
    format!("{url}/{name}{end}")
}

/// Makes tables, arrays and queries, and compares the results of these sessions with those of DuckDB. `tests/queries.py`
/// makes the rows and the queries, and runs DuckDB. The sessions read the files from `bucket`; `None` means local files.
pub(crate) async fn compare(sessions: &[(&str, SessionContext)], bucket: Option<Bucket>) {
    let seed = variable("BLOSC2_TEST_SEED", 52);
    let count = variable("BLOSC2_TEST_QUERIES", 500);
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    run_python(include_str!("../queries.py"), folder, &[seed, count]);
    let plan: Plan =
        serde_json::from_slice(&std::fs::read(folder.join("plan.json")).unwrap()).unwrap();
    let results = std::fs::read_to_string(folder.join("results.json")).unwrap();
    let queries: Vec<Query> =
        results.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(queries.len() as u64, count);
    let with_rows = queries.iter().filter(|query| !query.rows.is_empty()).count() as u64;
    assert!(with_rows * 3 > count * 2, "only {with_rows} of {count} queries have rows");
    let Seen { rows, deleted, nan, null } = plan.seen;
    assert!(rows > 100_000 && deleted > 10_000 && nan > 1000 && null > 10_000, "{:?}", plan.seen);

    let mut tables: Vec<(String, String, &str)> = Vec::new();
    for at in 0..50 {
        let path = folder.join(format!("p{at}.b2z")).display().to_string();
        tables.push((format!("p{at}"), path, "CTABLE"));
        tables.push((format!("r{at}"), write_table(folder, at).await, "CTABLE"));
    }
    for file in &plan.arrays {
        let (name, _) = file.split_once('.').unwrap();
        tables.push((name.to_owned(), folder.join(file).display().to_string(), "B2ND"));
    }
    if let Some(bucket) = &bucket {
        for (_, location, _) in &mut tables {
            *location = put(bucket, location).await;
        }
    }
    let mut differences = Vec::new();
    for (session, context) in sessions {
        for (name, location, format) in &tables {
            let sql =
                format!("CREATE EXTERNAL TABLE {name} STORED AS {format} LOCATION '{location}'");
            context.sql(&sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
        }
        for query in &queries {
            if let Some(what) = difference(context, query).await {
                differences.push(format!("{session}: {}\n  {what}", query.sql));
            }
        }
    }
    let some = differences.iter().take(20).map(String::as_str).collect::<Vec<_>>().join("\n");
    let differing = differences.len();
    assert!(differing == 0, "seed {seed}: {differing} results differ, the first are\n{some}");
}
