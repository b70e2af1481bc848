//! SQL over tables of this project, compared with DataFusion's own tables in memory of the same rows.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use blosc2_store::{CTable, Data, ItemKind, Schema};
use common::{Counting, Row, add, batch, bytes, context, create, number, query, rows, text};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::DataType;
use datafusion::datasource::MemTable;
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::memory_pool::{FairSpillPool, GreedyMemoryPool, MemoryPool};
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::physical_plan::{ExecutionPlan, collect, displayable};
use datafusion::prelude::{SessionConfig, SessionContext};
use futures::StreamExt;
use object_store::ObjectStoreExt;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;

const ROWS: usize = 40_000;
/// Rows for which the chunks are sized: the table has several chunks.
const EXPECTED: u64 = 4096;

fn deleted(row: &Row) -> bool {
    row.is_deleted()
}

/// A table with deleted rows, a small one and an empty one.
fn create_all(folder: &Path) {
    let all = rows(ROWS);
    create(&folder.join("t.b2z"), &all, EXPECTED, deleted);
    create(&folder.join("small.b2d"), &all[..100], 1 << 20, |_| false);
    create(&folder.join("empty.b2z"), &[], EXPECTED, |_| false);
    assert!(CTable::open(folder.join("t.b2z")).unwrap().row_chunks().count() > 5);
}

async fn add_all(context: &SessionContext, folder: &Path) {
    for name in ["t.b2z", "small.b2d", "empty.b2z"] {
        add(context, &name[..name.len() - 4], folder.join(name).display()).await;
    }
}

/// The same tables in memory.
fn in_memory() -> SessionContext {
    let context = context(1);
    let all = rows(ROWS);
    let tables = [
        ("t", batch(all.iter().filter(|row| !deleted(row)))),
        ("small", batch(all[..100].iter())),
        ("empty", batch([].iter())),
    ];
    for (name, batch) in tables {
        let table = MemTable::try_new(batch.schema(), vec![vec![batch]]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

const QUERIES: &[&str] = &[
    "SELECT * FROM t ORDER BY id",
    "SELECT * FROM small ORDER BY id",
    "SELECT * FROM empty",
    "SELECT count(*), count(price), count(word), count(text), count(tags) FROM t",
    "SELECT id, text FROM t WHERE price > 10 AND word = 'red' ORDER BY id",
    "SELECT id FROM t WHERE price = 'NaN'::double ORDER BY id",
    "SELECT id, price FROM t WHERE price IS NULL OR count IS NULL ORDER BY id",
    "SELECT word, count(*), sum(count), min(text), max(id) FROM t GROUP BY word ORDER BY word",
    "SELECT flag, word, avg(count) FROM t GROUP BY flag, word ORDER BY flag, word",
    "SELECT upper(word) AS up, word IS NULL AS none, max(word), count(*) FROM t AS u GROUP BY up, none ORDER BY up, none",
    "SELECT word, id % 3 AS k, sum(sum(id)) OVER (PARTITION BY word) FROM t GROUP BY word, k ORDER BY word, k",
    "SELECT word, flag, count(*) FROM t GROUP BY ROLLUP (word, flag) ORDER BY word, flag",
    "SELECT DISTINCT word FROM t ORDER BY word",
    "SELECT word, count(*) FROM t WHERE id > 20000 GROUP BY word ORDER BY word",
    "SELECT concat(word, '!'), length(word), word = 'red', coalesce(word, '-') FROM t ORDER BY id",
    "SELECT text, count(*) AS n FROM t GROUP BY text HAVING count(*) > 3 ORDER BY n DESC, text LIMIT 20",
    "SELECT id + 1, count * 2 FROM t WHERE id % 1000 = 7 ORDER BY id",
    "SELECT a.id, b.text FROM t a JOIN small b ON a.id = b.id ORDER BY a.id",
    "SELECT a.word, count(*) FROM t a JOIN t b ON a.id = b.id + 1 GROUP BY a.word ORDER BY a.word",
    "SELECT a.id, b.id FROM small a LEFT JOIN empty b ON a.id = b.id ORDER BY a.id",
    "SELECT id FROM t WHERE id IN (SELECT id FROM small WHERE flag) ORDER BY id",
    "SELECT price FROM t ORDER BY price DESC NULLS LAST, id LIMIT 50",
    "SELECT text FROM t ORDER BY text, id LIMIT 10 OFFSET 30",
    "SELECT id, row_number() OVER (PARTITION BY word ORDER BY id) FROM t ORDER BY id LIMIT 500",
    "SELECT id, lag(price) OVER (ORDER BY id) FROM t ORDER BY id LIMIT 500",
    "SELECT count(DISTINCT text), count(DISTINCT word), count(DISTINCT count) FROM t",
    "SELECT min(\"when\"), max(\"when\") FROM t WHERE \"when\" < '2023-12-01T00:00:00'::timestamp",
    "SELECT sum(1) FROM t",
    "SELECT 7 FROM t LIMIT 3",
    "SELECT count(*) FROM t WHERE flag",
    "SELECT sum(id), count(*) FROM empty",
    "SELECT tags FROM t WHERE tags IS NOT NULL ORDER BY id LIMIT 9",
    "SELECT id FROM small UNION ALL SELECT id FROM empty ORDER BY id",
];

#[tokio::test(flavor = "multi_thread")]
async fn queries_return_the_same_as_over_memory() {
    let folder = tempfile::tempdir().unwrap();
    create_all(folder.path());
    let expected = in_memory();
    for partitions in [1, 7] {
        let context = context(partitions);
        add_all(&context, folder.path()).await;
        for sql in QUERIES {
            let [found, expected] = [text(&context, sql).await, text(&expected, sql).await];
            assert!(found == expected, "{partitions} partitions: {sql}\n{found}\n{expected}");
        }
    }
}

/// The scan computes the keys of groups, and the keys of the result are dictionaries.
#[tokio::test(flavor = "multi_thread")]
async fn keys_of_groups_are_computed_by_the_scan() {
    let folder = tempfile::tempdir().unwrap();
    create_all(folder.path());
    let context = context(2);
    // Again: the rule is applied once.
    blosc2_datafusion::register(&context).unwrap();
    add_all(&context, folder.path()).await;
    let expected = in_memory();
    let sql = "SELECT t.word AS w, sum(id) FROM t GROUP BY t.word ORDER BY w";
    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let plan = displayable(plan.as_ref()).indent(false).to_string();
    let scan = plan.lines().find(|line| line.contains("DataSourceExec")).unwrap();
    assert_eq!(scan.matches("CAST(word@3 AS Utf8View)").count(), 1, "{plan}");
    let (found, expected) = (query(&context, sql).await, query(&expected, sql).await);
    let types = |batch: &RecordBatch| {
        batch.columns().iter().map(|column| column.data_type().clone()).collect::<Vec<_>>()
    };
    assert_eq!(types(&found[0]), types(&expected[0]));
    assert!(matches!(found[0].column(0).data_type(), DataType::Dictionary(..)));
}

/// The types are compared, and not only the texts.
#[tokio::test]
async fn columns_have_their_arrow_types() {
    let folder = tempfile::tempdir().unwrap();
    create_all(folder.path());
    let context = context(1);
    add_all(&context, folder.path()).await;
    let found = query(&context, "SELECT * FROM t ORDER BY id").await;
    let found = concat_batches(&found[0].schema(), &found).unwrap();
    let expected = batch(rows(ROWS).iter().filter(|row| !deleted(row)));
    for (column, of) in expected.schema().fields().iter().zip(expected.columns()) {
        let found = found.column_by_name(column.name()).unwrap();
        assert_eq!(found.data_type(), of.data_type(), "{column}");
    }
}

/// The scan in a plan.
fn scan(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.is::<DataSourceExec>() {
        true => Arc::clone(plan),
        false => scan(plan.children()[0]),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn partitions_contain_each_row_once() {
    let folder = tempfile::tempdir().unwrap();
    create_all(folder.path());
    let expected: Vec<i64> = rows(ROWS).iter().filter(|row| !deleted(row)).map(Row::id).collect();
    for partitions in [1, 2, 7, 30] {
        let context = context(partitions);
        add_all(&context, folder.path()).await;
        let plan = context.sql("SELECT id FROM t WHERE id >= 0").await.unwrap();
        let plan = plan.create_physical_plan().await.unwrap();
        let plan = scan(&plan);
        let count = plan.properties().partitioning.partition_count();
        assert_eq!(count, partitions);
        let mut found = Vec::new();
        let mut with_rows = 0;
        for partition in 0..count {
            // A separate plan for each partition, as on separate machines: no work is stolen.
            let config = context
                .copied_config()
                .set_bool("datafusion.execution.enable_file_stream_work_stealing", false);
            let own = SessionContext::new_with_config(config);
            let stream = plan.execute(partition, own.task_ctx()).unwrap();
            let before = found.len();
            for batch in stream.collect::<Vec<_>>().await {
                found.extend(ids(&batch.unwrap()));
            }
            with_rows += usize::from(found.len() > before);
        }
        assert!(with_rows >= partitions.min(5), "{with_rows} of {partitions} have rows");
        assert_eq!(found, expected);
    }
}

fn ids(batch: &RecordBatch) -> Vec<i64> {
    let column = batch.column(0).as_any();
    column.downcast_ref::<datafusion::arrow::array::Int64Array>().unwrap().values().to_vec()
}

/// A session whose local files are read by a store that counts requests.
fn counting(partitions: usize) -> (SessionContext, Arc<Counting>) {
    let store = Counting::new(Arc::new(LocalFileSystem::new()));
    let context = context(partitions);
    context.register_object_store(&"file:///".parse().unwrap(), store.clone());
    (context, store)
}

/// A table that is much larger than the gaps between ranges that share a request.
fn create_large(folder: &Path) -> u64 {
    let path = folder.join("t.b2z");
    create(&path, &rows(20 * ROWS), 1 << 17, deleted);
    std::fs::metadata(path).unwrap().len()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_needed_bytes_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let size = create_large(folder.path());
    let (context, store) = counting(1);
    add(&context, "t", folder.path().join("t.b2z").display()).await;
    let rows = rows(20 * ROWS).iter().filter(|row| !deleted(row)).count() as i64;

    store.take();
    assert_eq!(number(&context, "SELECT count(*) FROM t").await, rows);
    assert_eq!(store.take(), (0, vec![]), "the number of rows is known when the table is created");

    let columns = ["id", "price", "count", "word", "text", "when", "flag", "tags"];
    let mut read = Vec::new();
    for column in ["*"].into_iter().chain(columns.map(|column| column)) {
        let column = if column == "*" { column.to_owned() } else { format!("\"{column}\"") };
        query(&context, &format!("SELECT {column} FROM t")).await;
        let (requests, ranges) = store.take();
        println!("{column}: {requests} requests, {} of {size} bytes", bytes(&ranges));
        read.push(bytes(&ranges));
    }
    let [all, columns @ ..] = &read[..] else { unreachable!() };
    // Opening the file reads its last MiB, which contains the small columns.
    const END: u64 = (1 << 20) + 10;
    assert!(size > 3 * END, "{size} bytes");
    assert!(*all < 2 * size, "all columns: {all} of {size} bytes");
    let [id, price, _, word, text, when, flag, tags] = columns else { unreachable!() };
    assert!([id, word, when, flag, tags].into_iter().all(|read| *read <= END), "{columns:?}");
    assert!(price + text < all + 2 * END, "{price}, {text}, all {all}");

    query(&context, "SELECT price FROM t LIMIT 5").await;
    let (_, limited) = store.take();
    assert!(bytes(&limited) < END + (price - END) / 2, "5 prices: {}", bytes(&limited));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_stream_stops_reading() {
    let folder = tempfile::tempdir().unwrap();
    create_large(folder.path());
    let (context, store) = counting(1);
    add(&context, "t", folder.path().join("t.b2z").display()).await;
    store.take();
    query(&context, "SELECT * FROM t").await;
    let (_, all) = store.take();
    let mut stream = context.sql("SELECT * FROM t").await.unwrap().execute_stream().await.unwrap();
    stream.next().await.unwrap().unwrap();
    drop(stream);
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    let (_, first) = store.take();
    assert!(bytes(&first) * 2 < bytes(&all), "{} of {} bytes", bytes(&first), bytes(&all));
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(store.take().0, 0);
}

/// A runtime with a single thread, which the reads must not block.
#[tokio::test(flavor = "current_thread")]
async fn a_single_thread_suffices() {
    let folder = tempfile::tempdir().unwrap();
    create_all(folder.path());
    let context = context(3);
    add_all(&context, folder.path()).await;
    let sum: i64 = rows(ROWS).iter().filter(|row| !deleted(row)).map(Row::id).sum();
    assert_eq!(number(&context, "SELECT sum(id) FROM t").await, sum);
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_files_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let all = rows(3000);
    create(&path, &all, EXPECTED, |_| false);
    let context = context(2);
    add(&context, "t", path.display()).await;
    // Each plan is executed once.
    let frame = context.sql("SELECT sum(id), max(text) FROM t").await.unwrap();
    let first = frame.clone().create_physical_plan().await.unwrap();
    let second = frame.create_physical_plan().await.unwrap();

    std::fs::remove_file(&path).unwrap();
    let run = |plan| datafusion::physical_plan::collect(plan, context.task_ctx());
    let error = run(first).await.unwrap_err().to_string();
    assert!(error.contains("t.b2z") && error.contains("was removed"), "{error}");
    create(&path, &all[..2000], EXPECTED, |_| false);
    let error = run(second).await.unwrap_err().to_string();
    assert!(error.contains("t.b2z") && error.contains("has changed"), "{error}");
    // A new plan reads the new file.
    assert_eq!(number(&context, "SELECT sum(id) FROM t").await, 1999 * 1000);
}

#[tokio::test(flavor = "multi_thread")]
async fn directories_patterns_and_other_stores_are_locations() {
    let folder = tempfile::tempdir().unwrap();
    let parts = folder.path().join("parts");
    std::fs::create_dir(&parts).unwrap();
    let all = rows(9000);
    let store = Arc::new(InMemory::new());
    for (number, part) in all.chunks(4000).enumerate() {
        let path = parts.join(format!("{number}.b2z"));
        create(&path, part, EXPECTED, |_| false);
        let bytes = std::fs::read(path).unwrap();
        let key = object_store::path::Path::from(format!("day={number}/part.b2z"));
        store.put(&key, bytes.into()).await.unwrap();
    }
    std::fs::write(parts.join("readme.txt"), "no table").unwrap();
    let context = context(4);
    let url = "test://bucket/".parse().unwrap();
    context.register_object_store(&url, store);
    let parts = parts.display();
    let some = format!("{parts}/[01].b2z");
    for (location, rows) in
        [(format!("{parts}/"), 9000), (some, 8000), ("test://bucket/".to_owned(), 9000)]
    {
        add(&context, "parts", location).await;
        assert_eq!(number(&context, "SELECT count(*) FROM parts").await, rows);
        let sum = number(&context, "SELECT sum(id) FROM parts").await;
        assert_eq!(sum, rows * (rows - 1) / 2);
        context.sql("DROP TABLE parts").await.unwrap();
    }
    // The columns of a directory structure, without reading files of other days.
    let sql = "CREATE EXTERNAL TABLE days STORED AS CTABLE PARTITIONED BY (day) LOCATION 'test://bucket/'";
    context.sql(sql).await.unwrap();
    assert_eq!(number(&context, "SELECT count(*) FROM days WHERE day = '2'").await, 1000);
    assert_eq!(number(&context, "SELECT min(id) FROM days WHERE day = '1'").await, 4000);
    let sql = "SELECT sum(CAST(day AS BIGINT)), id % 2 AS odd FROM days GROUP BY odd ORDER BY odd";
    assert_eq!(number(&context, sql).await, 2000 + 2 * 500);

    let context = context.enable_url_table();
    let sql = format!("SELECT count(*) FROM '{parts}/1.b2z'");
    assert_eq!(number(&context, &sql).await, 4000);
}

/// Files can have more columns, fewer columns and other types than the table.
#[tokio::test(flavor = "multi_thread")]
async fn given_columns_are_filled() {
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("t.b2z"), &rows(50), EXPECTED, |_| false);
    let context = context(1);
    let location = folder.path().display();
    let columns = "count BIGINT, missing VARCHAR, id DOUBLE";
    let sql =
        format!("CREATE EXTERNAL TABLE t ({columns}) STORED AS CTABLE LOCATION '{location}/'");
    context.sql(&sql).await.unwrap();
    let sql = "SELECT arrow_typeof(sum(count)), count(missing), sum(id), count(*) FROM t";
    let found = text(&context, sql).await;
    assert!(
        found.contains("| Int64") && found.contains("| 0 ") && found.contains("| 1225.0"),
        "{found}"
    );
    // Also in what the scan computes.
    let sql = "SELECT count(*) FROM (SELECT id / 4 AS k, upper(missing) AS m FROM t GROUP BY k, m)";
    assert_eq!(number(&context, sql).await, 50);
}

#[tokio::test]
async fn errors_name_the_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(1);
    let create = async |location: &str, options: &str| {
        let location = folder.path().join(location);
        let location = location.display();
        let sql =
            format!("CREATE EXTERNAL TABLE x STORED AS CTABLE LOCATION '{location}' {options}");
        context.sql(&sql).await.err().map(|error| error.to_string()).unwrap_or_default()
    };
    std::fs::write(folder.path().join("text.b2z"), "no table, but long enough to look into")
        .unwrap();
    blosc2::NDArray::from_slice([1u8], [1]).unwrap().save(folder.path().join("array.b2z")).unwrap();
    std::fs::create_dir(folder.path().join("t.b2d")).unwrap();
    for (location, expected) in [
        ("text.b2z", "text.b2z"),
        ("array.b2z", "expected a table (CTable)"),
        ("t.b2d", "embed.b2e"),
    ] {
        let error = create(location, "").await;
        assert!(error.contains(expected), "{location}: {error}");
    }
    common::create(&folder.path().join("t.b2z"), &rows(3), EXPECTED, |_| false);
    let error = create("t.b2z", "OPTIONS ('format.level' '3')").await;
    assert!(error.contains("level"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_read_in_the_planned_version() {
    let folder = tempfile::tempdir().unwrap();
    let all = rows(ROWS);
    let path = folder.path().join("a b%41é.b2d");
    create(&path, &all, EXPECTED, |_| false);
    // Several threads, and parts of files of any size.
    let context = context(3);
    add(&context, "t", path.display()).await;
    let sql = "SELECT sum(id) FROM t WHERE id >= 0";
    assert_eq!(number(&context, sql).await, all.iter().map(|row| row.id()).sum::<i64>());
    assert_eq!(number(&context, "SELECT count(id) FROM t").await, all.len() as i64);

    let plan = context.sql(sql).await.unwrap().create_physical_plan().await.unwrap();
    let index = std::fs::read(path.join("embed.b2e")).unwrap();
    let mut table = CTable::open_rw(&path).unwrap();
    table.delete_rows(&[0u64, 1, 2][..]).unwrap();
    table.finish().unwrap();
    assert_eq!(std::fs::read(path.join("embed.b2e")).unwrap(), index);
    let error = collect(plan, context.task_ctx()).await.unwrap_err().to_string();
    assert!(error.contains("has changed since the query was planned"), "{error}");
    // The next query reads the new rows.
    assert_eq!(number(&context, "SELECT count(*) FROM t").await, all.len() as i64 - 3);

    for (sql, expected) in [
        ("INSERT INTO t SELECT * FROM t".to_owned(), "expected a directory of tables"),
        (
            format!(
                "CREATE EXTERNAL TABLE x STORED AS CTABLE LOCATION '{}/*.b2d'",
                folder.path().display()
            ),
            "expected the location of each directory",
        ),
    ] {
        let error = match context.sql(&sql).await {
            Ok(frame) => frame.collect().await.unwrap_err(),
            Err(error) => error,
        };
        assert!(error.to_string().contains(expected), "{sql}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_are_reserved_in_the_memory_pool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    create(&path, &rows(30_000), 2048, |row| row.is_deleted());
    let sql = "SELECT id, text FROM t";
    for (limit, is_enough) in [(10_000, false), (100 << 20, true)] {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(limit));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(Arc::clone(&pool));
        let config = SessionConfig::new().with_target_partitions(2);
        let context = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
        blosc2_datafusion::register(&context).unwrap();
        add(&context, "t", path.display()).await;
        let mut stream = context.sql(sql).await.unwrap().execute_stream().await.unwrap();
        match stream.next().await.unwrap() {
            Ok(batch) => {
                assert!(is_enough);
                assert!(pool.reserved() >= 2 * batch.num_rows() * 8, "{}", pool.reserved());
            }
            Err(error) => {
                assert!(!is_enough && error.to_string().contains("Blosc2Source"), "{error}");
            }
        }
        drop(stream);
        // The step that reads in advance ends first.
        while pool.reserved() > 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A sort fills the pool, and writes rows to disk when the batches of the scan become larger.
#[tokio::test(flavor = "multi_thread")]
async fn a_sort_in_little_memory_uses_the_disk() {
    const ROWS: usize = 200_000;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.b2z");
    let schema = Schema::new().column("s", ItemKind::Utf8).expected_rows(4096);
    let mut table = CTable::create(&path, &schema).unwrap();
    let texts =
        (0..ROWS).map(|row| Some(format!("{:0width$}", row * 7919 % ROWS, width = 6 + row / 500)));
    table.append([("s", Data::texts(texts))]).unwrap();
    table.finish().unwrap();
    let pool: Arc<dyn MemoryPool> = Arc::new(FairSpillPool::new(150 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool);
    let config = SessionConfig::new().with_target_partitions(1).with_batch_size(1024);
    let context = SessionContext::new_with_config_rt(config, runtime.build_arc().unwrap());
    blosc2_datafusion::register(&context).unwrap();
    add(&context, "t", path.display()).await;
    let sql =
        "SELECT count(*) FROM (SELECT s, row_number() OVER (ORDER BY s) AS n FROM t) WHERE n > 0";
    assert_eq!(number(&context, sql).await, ROWS as i64);
}
