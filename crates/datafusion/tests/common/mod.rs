//! Tables, sessions, and object stores that count requests.
#![allow(dead_code, reason = "each test program uses a part")]

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    LargeStringArray, ListBuilder, PrimitiveBuilder, RecordBatch, TimestampMicrosecondArray,
};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Int32Type, Int64Type};
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::metrics::MetricValue;
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path as Key;
use object_store::{
    Attributes, CopyOptions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload,
    PutResult, Result,
};

/// A row of the test tables.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    id: i64,
    price: Option<f64>,
    count: Option<i32>,
    word: Option<String>,
    text: Option<String>,
    when: i64,
    flag: bool,
    tags: Option<Vec<i64>>,
}

impl Row {
    pub(crate) fn id(&self) -> i64 {
        self.id
    }

    /// Whether the row is deleted in tables with deleted rows: single rows, and all rows of some chunks.
    pub(crate) fn is_deleted(&self) -> bool {
        self.id % 13 == 5 || (9000..18_000).contains(&self.id)
    }
}

/// The rows of the test tables. A row has null values, NaN, repeated words and distinct texts.
pub(crate) fn rows(count: usize) -> Vec<Row> {
    let row = |k: usize| {
        let id = k as i64;
        let mixed = id.wrapping_mul(0x2545_f491_4f6c_dd1d) as u64 >> 40;
        Row {
            id,
            price: match k % 7 {
                3 => None,
                5 if k.is_multiple_of(3) => Some(f64::NAN),
                _ => Some(mixed as f64 / 8.0 - 1000.0),
            },
            count: (k % 5 != 4).then_some((mixed % 1000) as i32 - 500),
            word: (!k.is_multiple_of(11))
                .then(|| ["red", "grün", "blue", ""][mixed as usize % 4].to_owned()),
            text: (k % 6 != 2).then(|| format!("näme {}", mixed % 5000)),
            when: 1_700_000_000_000_000 + id * 60_000_123,
            flag: mixed.is_multiple_of(3),
            tags: (k % 4 != 1).then(|| (0..id % 4).collect()),
        }
    };
    (0..count).map(row).collect()
}

/// The schema of the test tables, with chunks for `expected` rows.
pub(crate) fn schema(expected: u64) -> Schema {
    Schema::new()
        .column("id", ItemKind::Int64)
        .column("price", ItemType::from(ItemKind::Float64).nullable())
        .column("count", ItemType::from(ItemKind::Int32).nullable())
        .column("word", ItemType::from(ItemKind::Dictionary { ordered: false }).nullable())
        .column("text", ItemType::from(ItemKind::Utf8).nullable())
        .column("when", ItemKind::Timestamp { unit: TimeUnit::Microseconds, timezone: None })
        .column("flag", ItemKind::Bool)
        .column("tags", ItemType::from(ItemKind::List(ItemKind::Int64.into())).nullable())
        .expected_rows(expected)
}

/// Creates a table of these rows, and deletes those for which `deleted` is true.
pub(crate) fn create(path: &Path, rows: &[Row], expected: u64, deleted: impl Fn(&Row) -> bool) {
    let mut table = CTable::create(path, &schema(expected)).unwrap();
    if !rows.is_empty() {
        append(&mut table, rows);
        let deleted: Vec<u64> =
            rows.iter().zip(0..).filter(|(row, _)| deleted(row)).map(|(_, at)| at).collect();
        table.delete_rows(&deleted[..]).unwrap();
    }
    table.finish().unwrap();
}

fn append(table: &mut CTable, rows: &[Row]) {
    let nulls = |null: fn(&Row) -> bool| rows.iter().map(null).collect::<Vec<_>>();
    let ids: Vec<i64> = rows.iter().map(|row| row.id).collect();
    let prices: Vec<f64> = rows.iter().map(|row| row.price.unwrap_or(0.0)).collect();
    let counts: Vec<i32> = rows.iter().map(|row| row.count.unwrap_or(0)).collect();
    let whens: Vec<i64> = rows.iter().map(|row| row.when).collect();
    let flags: Vec<bool> = rows.iter().map(|row| row.flag).collect();
    let tags = rows.iter().map(|row| match &row.tags {
        Some(tags) => tags.iter().copied().collect(),
        None => blosc2::Value::None,
    });
    let cells = [
        ("id", Data::items(&ids)),
        ("price", Data::items(&prices).nulls(nulls(|row| row.price.is_none()))),
        ("count", Data::items(&counts).nulls(nulls(|row| row.count.is_none()))),
        ("word", Data::texts(rows.iter().map(|row| row.word.clone()))),
        ("text", Data::texts(rows.iter().map(|row| row.text.clone()))),
        ("when", Data::items(&whens)),
        ("flag", Data::items(&flags)),
        ("tags", Data::values(tags.collect::<Vec<_>>())),
    ];
    table.append(cells).unwrap();
}

/// The same rows as a record batch, without the crates of this project.
pub(crate) fn batch<'a>(rows: impl Iterator<Item = &'a Row>) -> RecordBatch {
    let rows: Vec<&Row> = rows.collect();
    let words: DictionaryArray<Int32Type> = rows.iter().map(|row| row.word.as_deref()).collect();
    let mut tags = ListBuilder::new(PrimitiveBuilder::<Int64Type>::new());
    for row in &rows {
        if let Some(list) = &row.tags {
            tags.values().append_slice(list);
        }
        tags.append(row.tags.is_some());
    }
    let columns: [(&str, ArrayRef, bool); 8] = [
        ("id", Arc::new(rows.iter().map(|row| row.id).collect::<Int64Array>()), false),
        ("price", Arc::new(rows.iter().map(|row| row.price).collect::<Float64Array>()), true),
        ("count", Arc::new(rows.iter().map(|row| row.count).collect::<Int32Array>()), true),
        ("word", Arc::new(words), true),
        (
            "text",
            Arc::new(rows.iter().map(|row| row.text.as_deref()).collect::<LargeStringArray>()),
            true,
        ),
        (
            "when",
            Arc::new(rows.iter().map(|row| Some(row.when)).collect::<TimestampMicrosecondArray>()),
            false,
        ),
        ("flag", Arc::new(rows.iter().map(|row| Some(row.flag)).collect::<BooleanArray>()), false),
        ("tags", Arc::new(tags.finish()), true),
    ];
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

/// Runs a script of Python in a folder.
pub(crate) fn run_python(script: &str, folder: &Path, arguments: &[u64]) {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON").expect(
        "BLOSC2_TEST_PYTHON is the path of a Python with blosc2, pyarrow and duckdb; \
         `cargo xtask integrations datafusion` sets it",
    );
    let file = folder.join("script_of_this_test.py");
    std::fs::write(&file, script).unwrap();
    let arguments = arguments.iter().map(u64::to_string);
    let output =
        Command::new(python).arg("-I").arg(&file).args(arguments).current_dir(folder).output();
    let output = output.unwrap();
    let printed =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "Python failed ({}):\n{}", output.status, printed.join("\n"));
}

/// A session that divides small files too.
pub(crate) fn context(partitions: usize) -> SessionContext {
    let config = SessionConfig::new()
        .with_target_partitions(partitions)
        .set_u64("datafusion.optimizer.repartition_file_min_size", 1);
    let context = SessionContext::new_with_config(config);
    blosc2_datafusion::register(&context).unwrap();
    context
}

/// Adds the table in a file, a directory or another location to a session.
pub(crate) async fn add(context: &SessionContext, name: &str, location: impl fmt::Display) {
    let sql = format!("CREATE EXTERNAL TABLE {name} STORED AS CTABLE LOCATION '{location}'");
    context.sql(&sql).await.unwrap();
}

/// The result of a query.
pub(crate) async fn query(context: &SessionContext, sql: &str) -> Vec<RecordBatch> {
    let frame = context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    frame.collect().await.unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The result of a query as text.
pub(crate) async fn text(context: &SessionContext, sql: &str) -> String {
    let schema = context.sql(sql).await.unwrap().schema().inner().clone();
    let batches = query(context, sql).await;
    let all = concat_batches(batches.first().map_or(&schema, |batch| batch.schema_ref()), &batches);
    pretty_format_batches(&[all.unwrap()]).unwrap().to_string()
}

/// The only number of a query.
pub(crate) async fn number(context: &SessionContext, sql: &str) -> i64 {
    let batches = query(context, sql).await;
    let column = batches[0].column(0);
    column.as_any().downcast_ref::<Int64Array>().unwrap().value(0)
}

/// The numbers of segments that a filter matched and skipped, summed over all scans of a plan that was executed.
pub(crate) fn segments(plan: &Arc<dyn ExecutionPlan>) -> (usize, usize) {
    let mut sums = (0, 0);
    if plan.is::<DataSourceExec>() {
        for metric in plan.metrics().unwrap().iter() {
            if let MetricValue::PruningMetrics { name, pruning_metrics } = metric.value()
                && name == "segments_pruned"
            {
                sums.0 += pruning_metrics.matched();
                sums.1 += pruning_metrics.pruned();
            }
        }
    }
    for child in plan.children() {
        let (matched, pruned) = segments(child);
        sums = (sums.0 + matched, sums.1 + pruned);
    }
    sums
}

/// The number of rows of a query, and the numbers of segments that it matched and skipped.
pub(crate) async fn run(context: &SessionContext, sql: &str) -> (usize, usize, usize) {
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let batches = collect(Arc::clone(&plan), context.task_ctx()).await.unwrap();
    let (matched, pruned) = segments(&plan);
    (batches.iter().map(|batch| batch.num_rows()).sum(), matched, pruned)
}

/// Counts the requests for bytes to an object store.
#[derive(Debug)]
pub(crate) struct Counting {
    inner: Arc<dyn ObjectStore>,
    requests: AtomicU64,
    ranges: Mutex<Vec<Range<u64>>>,
}

impl Counting {
    pub(crate) fn new(inner: Arc<dyn ObjectStore>) -> Arc<Self> {
        Arc::new(Self { inner, requests: AtomicU64::new(0), ranges: Mutex::default() })
    }

    /// The number of requests and the requested ranges since the last call.
    pub(crate) fn take(&self) -> (u64, Vec<Range<u64>>) {
        let ranges = std::mem::take(&mut *self.ranges.lock().unwrap());
        (self.requests.swap(0, Ordering::Relaxed), ranges)
    }
}

/// The number of bytes of ranges.
pub(crate) fn bytes(ranges: &[Range<u64>]) -> u64 {
    ranges.iter().map(|range| range.end - range.start).sum()
}

impl fmt::Display for Counting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Counting({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for Counting {
    async fn put_opts(
        &self,
        key: &Key,
        data: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        self.inner.put_opts(key, data, options).await
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(key, options).await
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        if !options.head {
            self.requests.fetch_add(1, Ordering::Relaxed);
            if let Some(GetRange::Bounded(range)) = &options.range {
                self.ranges.lock().unwrap().push(range.clone());
            }
        }
        let mut result = self.inner.get_opts(key, options).await?;
        // Otherwise, local files would be read without this store.
        if let GetResultPayload::File(..) = result.payload {
            let (meta, range) = (result.meta.clone(), result.range.clone());
            let bytes = result.bytes().await?;
            let payload = GetResultPayload::Stream(stream::once(async { Ok(bytes) }).boxed());
            result = GetResult { payload, meta, range, attributes: Attributes::default() };
        }
        Ok(result)
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        self.inner.delete_stream(keys)
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
