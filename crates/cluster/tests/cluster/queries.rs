use std::path::{Path, PathBuf};
use std::process::Command;

use blosc2::NDArray;
use blosc2_store::TreeStore;
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::util::pretty::pretty_format_batches;
use datafusion::prelude::SessionContext;
use object_store::ObjectStoreExt;
use tokio::task::JoinHandle;

use crate::common::{create, rows};
use crate::processes::{Cluster, PATIENCE, S3, SECRET, local};
use crate::proxy::Proxy;

/// The number of rows of the table `t`. The file is longer than the part that opening it reads.
const COUNT: usize = 400_000;

/// Writes a file with `write`, and puts it into the bucket.
async fn put(s3: &S3, key: &str, write: impl FnOnce(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(key.replace('/', "_"));
    write(&path);
    let bytes = std::fs::read(&path).unwrap();
    s3.store().put(&key.into(), bytes.into()).await.unwrap();
}

/// Puts tables and arrays into the bucket.
async fn put_files(s3: &S3) {
    let all = rows(COUNT);
    put(s3, "t.b2z", |path| create(path, &all, 2048, |row| row.is_deleted())).await;
    for (part, year) in all[..30_000].chunks(10_000).zip(2020..) {
        let key = format!("parts/year={year}/part.b2z");
        put(s3, &key, |path| create(path, part, 2048, |row| row.is_deleted())).await;
    }
    put(s3, "climate.b2z", create_climate).await;
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("directory.b2d");
    create(&directory, &all[..50_000], 2048, |row| row.is_deleted());
    for file in files(&directory) {
        let key = file.strip_prefix(folder.path()).unwrap().to_str().unwrap();
        let bytes = std::fs::read(&file).unwrap();
        s3.store().put(&key.into(), bytes.into()).await.unwrap();
    }
}

/// The files of a directory and of its directories.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// An array of three axes with the coordinates of one axis.
fn create_climate(path: &Path) {
    let shape = [120, 30, 40];
    let rain: Vec<f64> =
        (0..shape.iter().product()).map(|item: u64| (item * 7 % 1000) as f64).collect();
    let builder = NDArray::builder().chunk_shape([16, 30, 16]).block_shape([8, 10, 8]);
    let mut rain = builder.from_slice(&rain, shape).unwrap();
    rain.vlmeta_mut().set_value("dims", &vec!["time", "lat", "lon"]).unwrap();
    let latitudes: Vec<f64> = (0..shape[1]).map(|at| 60.0 - 4.0 * at as f64).collect();
    let mut latitudes = NDArray::from_slice(&latitudes, [shape[1]]).unwrap();
    latitudes.vlmeta_mut().set_value("dims", &vec!["lat"]).unwrap();
    let mut store = TreeStore::create(path).unwrap();
    store.insert("/rain", rain.schunk()).unwrap();
    store.insert("/lat", latitudes.schunk()).unwrap();
    store.finish().unwrap();
}

async fn add_tables(context: &SessionContext) {
    for sql in [
        "CREATE EXTERNAL TABLE t STORED AS CTABLE LOCATION 's3://bucket/t.b2z'",
        "CREATE EXTERNAL TABLE parts (id BIGINT, count INT, word VARCHAR, year INT) STORED AS CTABLE \
         PARTITIONED BY (year) LOCATION 's3://bucket/parts/'",
        "CREATE EXTERNAL TABLE inferred STORED AS CTABLE PARTITIONED BY (year) LOCATION 's3://bucket/parts/'",
        "CREATE EXTERNAL TABLE climate STORED AS B2ND LOCATION 's3://bucket/climate.b2z'",
        "CREATE EXTERNAL TABLE rain STORED AS B2ND LOCATION 's3://bucket/climate.b2z' OPTIONS ('key' '/rain')",
        "CREATE EXTERNAL TABLE directory STORED AS CTABLE LOCATION 's3://bucket/directory.b2d'",
    ] {
        context.sql(sql).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
}

/// The result of a query as text.
async fn text(context: &SessionContext, sql: &str) -> Result<String, String> {
    let frame = context.sql(sql).await.map_err(|error| error.to_string())?;
    let schema = frame.schema().inner().clone();
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    let schema = batches.first().map_or(schema, |batch| batch.schema());
    let all = concat_batches(&schema, &batches).map_err(|error| error.to_string())?;
    Ok(pretty_format_batches(&[all]).unwrap().to_string())
}

const QUERIES: &[&str] = &[
    "SELECT count(*), sum(id), min(price), max(text), count(DISTINCT word) FROM t",
    "SELECT * FROM t WHERE id BETWEEN 20000 AND 20100 ORDER BY id",
    "SELECT word, count(*), sum(count), min(\"when\") FROM t GROUP BY word ORDER BY word NULLS LAST",
    "SELECT date_trunc('day', \"when\") AS day, avg(count) FROM t WHERE flag GROUP BY 1 ORDER BY 1 LIMIT 20",
    "SELECT id, price FROM t WHERE NOT isnan(price) ORDER BY price DESC, id LIMIT 10",
    "SELECT t.id, o.text FROM t JOIN t AS o ON t.id = o.id * 3 WHERE t.count > 490 ORDER BY 1",
    "SELECT id, sum(count) OVER (PARTITION BY word ORDER BY id) FROM t WHERE id < 3000 ORDER BY 1",
    "SELECT text FROM t WHERE text LIKE '%99' GROUP BY text HAVING count(*) > 5 ORDER BY 1",
    "SELECT year, word, count(*), max(id) FROM parts GROUP BY year, word ORDER BY 1, 2 NULLS LAST",
    "SELECT sum(id) FROM parts WHERE year = 2021 AND count < 0",
    "SELECT year, count(*) FROM parts JOIN t USING (id) GROUP BY year ORDER BY year",
    "SELECT count(*) FROM t WHERE id IN (SELECT id FROM parts WHERE word = 'red')",
    "SELECT time, avg(rain), count(*) FROM climate WHERE lat > 0 AND lon < 10 GROUP BY time ORDER BY time LIMIT 30",
    "SELECT lat, max(rain) FROM climate GROUP BY lat ORDER BY lat",
    "SELECT climate.rain, t.id FROM climate JOIN t ON t.id = climate.time WHERE lat = 60 AND lon = 3 ORDER BY 2",
    "SELECT word FROM t WHERE id < 50 UNION ALL SELECT CAST(lat AS VARCHAR) FROM climate WHERE time = 1 AND lon = 1 ORDER BY 1 NULLS LAST",
    "SELECT tags FROM t WHERE id < 40 ORDER BY id",
    "SELECT min(\"count\"), avg(id) FROM t WHERE id IS NULL AND word = 'red'",
    "SELECT id, sum(t.count) FROM t JOIN parts USING (id) WHERE 1 = 2 GROUP BY id LIMIT 1",
    "SELECT id FROM t ORDER BY id LIMIT 0",
    "SELECT 'a' AS s, id FROM parts WHERE count < -400 UNION ALL SELECT 'b', id FROM files ORDER BY 2, 1",
    "SELECT count(*) FROM t WHERE id < 0",
    "SELECT year, count(*) FROM inferred GROUP BY year ORDER BY year",
    "SELECT inferred.year, count(*) FROM inferred JOIN parts USING (id) WHERE inferred.year = '2021' GROUP BY 1",
    "SELECT word, sum(id) FROM files GROUP BY word ORDER BY word NULLS LAST",
    "SELECT lat, sum(value), count(*) FROM rain WHERE time < 50 GROUP BY lat ORDER BY lat",
    "SELECT word, count(*), sum(id), max(text) FROM directory GROUP BY word ORDER BY word NULLS LAST",
    "SELECT directory.id, t.text FROM directory JOIN t USING (id) WHERE directory.count > 490 ORDER BY 1",
];

#[tokio::test(flavor = "multi_thread")]
async fn queries_return_the_same_as_in_one_process() {
    let s3 = S3::start();
    put_files(&s3).await;
    let proxies = [s3.proxy(), s3.proxy()];
    let cluster = Cluster::start(&s3, &proxies.each_ref());
    let (one, many) = (local(&s3), cluster.client(&s3));
    let folder = tempfile::tempdir().unwrap();
    create(&folder.path().join("1.b2z"), &rows(20_000), 2048, |row| row.is_deleted());
    create(&folder.path().join("2.b2z"), &rows(500), 2048, |_| false);
    for context in [&one, &many] {
        add_tables(context).await;
        let location = folder.path().display();
        let sql = format!("CREATE EXTERNAL TABLE files STORED AS CTABLE LOCATION '{location}/'");
        context.sql(&sql).await.unwrap();
    }
    // The scheduler accepts neither.
    for setting in [
        "datafusion.execution.enable_file_stream_work_stealing",
        "ballista.planner.adaptive.enabled",
    ] {
        many.sql(&format!("SET {setting} = true")).await.unwrap();
    }
    for sql in QUERIES {
        let expected = text(&one, sql).await.unwrap();
        let found = text(&many, sql).await;
        assert_eq!(found.as_ref(), Ok(&expected), "{sql}");
    }
    for sql in ["COPY t TO 's3://bucket/copy.b2z'", "INSERT INTO files SELECT * FROM files"] {
        let error = text(&many, sql).await.unwrap_err();
        assert!(error.contains("write the result of the query in this program"), "{error}");
    }
    let logs = cluster.logs();
    assert!(logs.contains("bucket"), "the logs are detailed");
    assert!(!logs.contains(SECRET), "the secret key is in a log");
}

/// The queries of the tests of `blosc2-datafusion`.
#[tokio::test(flavor = "multi_thread")]
async fn queries_return_the_same_as_duckdb() {
    let s3 = S3::start();
    let cluster = Cluster::start(&s3, &[&s3.proxy(), &s3.proxy()]);
    let bucket = (s3.store() as _, "s3://bucket");
    crate::duckdb::compare(&[("cluster", cluster.client(&s3))], Some(bucket)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn executors_read_their_own_chunks() {
    // A chunk of texts can belong to the rows of two parts.
    const SQL: &str = "SELECT sum(id), sum(\"count\"), count(price) FROM t";
    let s3 = S3::start();
    put_files(&s3).await;
    let proxies = [s3.proxy(), s3.proxy()];
    let cluster = Cluster::start(&s3, &proxies.each_ref());
    let client = cluster.client(&s3);
    add_tables(&client).await;
    let sum = text(&client, SQL).await.unwrap();
    let expected = text(&local_with_tables(&s3).await, SQL).await;
    assert_eq!(Ok(sum), expected);
    let size = s3.store().head(&"t.b2z".into()).await.unwrap().size;
    // Each executor reads the end of the file, with the list of its members.
    let end = size.checked_sub(1 << 20).expect("the file is longer");
    let [one, other] = proxies.each_ref().map(|proxy| {
        let mut is_read = vec![false; end as usize];
        for (path, range) in proxy.take() {
            assert!(path.contains("t.b2z"), "{path}");
            is_read[range.start.min(end) as usize..range.end.min(end) as usize].fill(true);
        }
        is_read
    });
    let count = |is_counted: fn(bool, bool) -> bool| {
        one.iter().zip(&other).filter(|(one, other)| is_counted(**one, **other)).count()
    };
    let (of_one, of_other) = (count(|one, _| one), count(|_, other| other));
    let of_both = count(|one, other| one && other);
    println!("{size} bytes: {of_one} and {of_other}, both {of_both}");
    // The headers of the columns are small.
    assert!(of_both * 20 < of_one.min(of_other), "{of_one} and {of_other} bytes, {of_both} twice");
}

/// Starts a query, and returns when an executor has sent this number of requests for bytes of the table `t` and waits.
async fn stopped(
    client: &SessionContext,
    sql: &'static str,
    proxy: &Proxy,
    requests: usize,
) -> JoinHandle<Result<String, String>> {
    proxy.pass(Some(("/t.b2z", requests)));
    let client = client.clone();
    let query = tokio::spawn(async move { text(&client, sql).await });
    let proxy = proxy.clone();
    tokio::task::spawn_blocking(move || proxy.wait()).await.unwrap();
    query
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_survives_an_executor_that_is_killed() {
    let s3 = S3::start();
    put_files(&s3).await;
    let proxies = [s3.proxy(), s3.proxy()];
    let mut cluster = Cluster::start(&s3, &proxies.each_ref());
    let client = cluster.client(&s3);
    add_tables(&client).await;
    let sql =
        "SELECT word, count(*), sum(length(text)) FROM t GROUP BY word ORDER BY word NULLS LAST";
    let expected = text(&local_with_tables(&s3).await, sql).await;
    // The executor has read some bytes, waits for others, and is killed.
    let query = stopped(&client, sql, &proxies[0], 3).await;
    cluster.executors[0].kill();
    let found = tokio::time::timeout(PATIENCE, query).await.expect("the query ends").unwrap();
    assert_eq!(found, expected);
    assert_eq!(text(&client, sql).await, expected);
}

/// The lines of a table of text in a fixed order.
fn sorted(table: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = table.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_lost_executor_are_computed_again() {
    let s3 = S3::start();
    put_files(&s3).await;
    let groups = "SELECT word, count(*), sum(id) FROM t GROUP BY word";
    let scan = "SELECT id, text FROM t WHERE count = 77";
    let union = "SELECT word, count(*) AS n FROM parts GROUP BY word \
                 UNION ALL SELECT text, id FROM t WHERE count = 77";
    let last = "SELECT word, sum(n) FROM (SELECT word, count(*) AS n FROM parts GROUP BY word \
                UNION ALL SELECT text, id FROM t WHERE count = 77) GROUP BY word";
    // Executor 0 waits in its first task that reads `t`. Executor 1 ends the other tasks. One of both is killed, with the
    // results of its tasks.
    for (sql, ended, killed) in [
        (groups, 3, 1), // results of a stage that is not complete
        (scan, 3, 1),   // rows of the result of the query
        (union, 10, 0), // results of a complete stage, for the last stage; tasks of the last stage have ended on executor 1
        (last, 10, 0),  // the same for another stage
        (last, 10, 1),
    ] {
        println!("{sql}, executor {killed}");
        let proxies = [s3.proxy(), s3.proxy()];
        let mut cluster = Cluster::start(&s3, &proxies.each_ref());
        let client = cluster.client(&s3);
        add_tables(&client).await;
        let expected = text(&local_with_tables(&s3).await, sql).await.unwrap();
        let expected = sorted(&expected);
        let query = stopped(&client, sql, &proxies[0], 2).await;
        cluster.wait_for_tasks(ended);
        cluster.executors[killed].kill();
        cluster.wait_for_executors(1);
        proxies[0].pass(None);
        let found = tokio::time::timeout(PATIENCE, query).await.expect("the query ends").unwrap();
        match found {
            Ok(found) => assert_eq!(sorted(&found), expected),
            Err(error) if sql != groups => {
                assert!(error.contains("run the query again"), "{error}");
            }
            Err(error) => panic!("{error}"),
        }
        assert_eq!(sorted(&text(&client, sql).await.unwrap()), expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_replaced_during_a_query_is_an_error() {
    let s3 = S3::start();
    put_files(&s3).await;
    let proxies = [s3.proxy(), s3.proxy()];
    let cluster = Cluster::start(&s3, &proxies.each_ref());
    let client = cluster.client(&s3);
    add_tables(&client).await;
    let sql = "SELECT sum(id), sum(length(text)) FROM t";
    // One executor has opened the file and waits, while the file is replaced by other rows with the same schema.
    let query = stopped(&client, sql, &proxies[0], 2).await;
    put(&s3, "t.b2z", |path| create(path, &rows(COUNT + 5000)[5000..], 2048, |_| false)).await;
    proxies[0].pass(None);
    let found = tokio::time::timeout(PATIENCE, query).await.expect("the query ends").unwrap();
    let error = found.unwrap_err();
    assert!(error.contains("t.b2z` has changed"), "{error}");
    // A new query reads the new file.
    let expected = text(&local_with_tables(&s3).await, sql).await;
    assert_eq!(text(&client, sql).await, expected);
}

async fn local_with_tables(s3: &S3) -> SessionContext {
    let context = local(s3);
    add_tables(&context).await;
    context
}

/// Runs `blosc2-sql`, and returns what it prints.
fn run_command(args: &[&str]) -> Result<String, String> {
    let path = Path::new(env!("CARGO_BIN_EXE_blosc2-cluster")).with_file_name("blosc2-sql");
    assert!(path.exists(), "{} is missing: test the workspace, or build it first", path.display());
    let output = Command::new(path).args(args).output().unwrap();
    let [printed, messages] =
        [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    if output.status.success() { Ok(printed) } else { Err(messages) }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_runs_queries_on_the_cluster() {
    let s3 = S3::start();
    let cluster = Cluster::start(&s3, &[&s3.proxy(), &s3.proxy()]);
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for year in ["2020", "2021"] {
        let parts = folder.path().join(format!("parts/year={year}"));
        std::fs::create_dir_all(&parts).unwrap();
        create(&parts.join("part.b2z"), &rows(5000), 2048, |row| row.is_deleted());
    }
    create_climate(&folder.path().join("climate.b2z"));
    std::fs::write(folder.path().join("words.csv"), "word,n\nred,1\nblue,2\n").unwrap();
    let files = [path("parts"), path("climate.b2z"), path("words.csv")];
    for sql in [
        "SELECT year, word, n, count(*) FROM parts JOIN words USING (word) GROUP BY 1, 2, 3 ORDER BY 1, 2",
        "SELECT lat, sum(rain) FROM climate WHERE lat > 0 GROUP BY lat ORDER BY lat",
    ] {
        let mut args: Vec<&str> = files.iter().map(String::as_str).collect();
        args.extend(["--format", "csv", sql]);
        let expected = run_command(&args).unwrap();
        assert!(expected.lines().count() > 3, "{expected}");
        let scheduler = cluster.address();
        args.extend(["--cluster", &scheduler]);
        assert_eq!(run_command(&args), Ok(expected), "{sql}");
    }
    let error =
        run_command(&["--cluster", "127.0.0.1:1", &files[1], "SELECT sum(rain) FROM climate"]);
    let error = error.unwrap_err();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}
