//! The time of queries with one executor and with two, and of writing tables with one writer and with two: `cargo bench`.
//!
//! Each executor has one thread. Prints ratios of times of the same run. Needs two idle cores.

#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/cluster/processes.rs"]
mod processes;
#[allow(dead_code, reason = "the tests use the rest")]
#[path = "../tests/cluster/proxy.rs"]
mod proxy;

use std::ffi::OsString;
use std::path::Path;
use std::time::{Duration, Instant};

use blosc2_store::{CTable, Data, ItemKind, Schema};
use datafusion::prelude::SessionContext;
use processes::Cluster;

const FILES: usize = 8;
/// The rows of each file.
const ROWS: usize = 2_500_000;
const REPEATS: usize = 5;

const QUERIES: [(&str, &str); 3] = [
    ("full scan with sums", "SELECT count(*), sum(id), sum(price) FROM t"),
    ("group by 1,000 keys", "SELECT id % 1000, avg(price) FROM t GROUP BY 1"),
    ("filter of 1 %", "SELECT sum(price) FROM t WHERE id BETWEEN 0 AND 199999"),
];

fn python() -> OsString {
    unreachable!("no S3 server is started")
}

fn write(path: &Path, part: usize) {
    let ids: Vec<i64> = (0..ROWS).map(|row| (part * ROWS + row) as i64).collect();
    let prices: Vec<f64> =
        ids.iter().map(|id| (id.wrapping_mul(0x9e37_79b9) >> 8) as f64 % 1e6 / 8.0).collect();
    let schema = Schema::new()
        .column("id", ItemKind::Int64)
        .column("price", ItemKind::Float64)
        .expected_rows(ROWS as u64);
    let mut table = CTable::create(path, &schema).unwrap();
    table.append([("id", Data::items(&ids)), ("price", Data::items(&prices))]).unwrap();
    table.finish().unwrap();
}

/// The shortest time of several runs.
async fn time(context: &SessionContext, sql: &str) -> Duration {
    let mut best = Duration::MAX;
    for _ in 0..REPEATS {
        let start = Instant::now();
        context.sql(sql).await.unwrap().collect().await.unwrap();
        best = best.min(start.elapsed());
    }
    best
}

#[tokio::main]
async fn main() {
    let folder = tempfile::tempdir().unwrap();
    let path = |part: usize| folder.path().join(format!("{part}.b2z"));
    let start = Instant::now();
    (0..FILES).for_each(|part| write(&path(part), part));
    let one = start.elapsed();
    (0..FILES).for_each(|part| std::fs::remove_file(path(part)).unwrap());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for first in 0..2 {
            let path = &path;
            scope
                .spawn(move || (first..FILES).step_by(2).for_each(|part| write(&path(part), part)));
        }
    });
    let two = start.elapsed();
    println!(
        "{:28} {:6.0} ms {:6.0} ms  {:.2}",
        "write 8 files: 1, 2 writers",
        ms(one),
        ms(two),
        ms(one) / ms(two)
    );

    let mut times = Vec::new();
    for executors in [1, 2] {
        let cluster = Cluster::with_endpoints("", &vec![String::new(); executors], "warn");
        let context = cluster.session();
        let location = folder.path().display();
        let create = format!("CREATE EXTERNAL TABLE t STORED AS CTABLE LOCATION '{location}/'");
        context.sql(&create).await.unwrap();
        let mut of_queries = Vec::new();
        for (_, sql) in QUERIES {
            of_queries.push(time(&context, sql).await);
        }
        times.push(of_queries);
    }
    for (at, (name, _)) in QUERIES.iter().enumerate() {
        let [one, two] = [times[0][at], times[1][at]].map(ms);
        println!("{name:28} {one:6.0} ms {two:6.0} ms  {:.2}", one / two);
    }
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
