//! Queries over a table, and over a Parquet file (Zstandard) of the same rows. Run it with
//! `cargo bench --features bench`; the argument is the number of rows, 20,000,000 by default.

use std::path::Path;
use std::time::Instant;

use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

const ROWS: i64 = 20_000_000;
const BATCH: i64 = 1_000_000;
const WORDS: [&str; 8] =
    ["Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Helsinki"];
/// Each query is run as many times; the fastest run counts.
const RUNS: usize = 5;

const QUERIES: [(&str, &str); 4] = [
    ("full scan with sums", "SELECT count(*), sum(id), round(sum(price)), max(time) FROM t"),
    (
        "group by the dictionary",
        "SELECT city, count(*), round(avg(price), 3) FROM t GROUP BY city ORDER BY city",
    ),
    ("top 10", "SELECT * FROM t ORDER BY price DESC NULLS LAST, id LIMIT 10"),
    (
        "selective filter (1 %)",
        "SELECT count(*), round(sum(price)) FROM t WHERE id >= {start} AND id < {end}",
    ),
];

/// A pseudo-random number that depends on a row.
fn mixed(row: i64) -> u64 {
    let mut mixed = row as u64;
    for shift in [31, 29, 32] {
        mixed = (mixed ^ mixed >> shift).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    mixed
}

fn create(path: &Path, rows: i64) -> blosc2::Result<()> {
    let time = ItemKind::Timestamp { unit: TimeUnit::Microseconds, timezone: None };
    let schema = Schema::new()
        .column("id", ItemKind::Int64)
        .column("city", ItemKind::Dictionary { ordered: false })
        .column("price", ItemType::from(ItemKind::Float64).nullable())
        .column("time", time)
        .expected_rows(rows as u64);
    let mut table = CTable::create(path, &schema)?.into_appender()?;
    for start in (0..rows).step_by(BATCH as usize) {
        let rows = start..rows.min(start + BATCH);
        let ids: Vec<i64> = rows.clone().collect();
        let cities = rows.clone().map(|row| Some(WORDS[(mixed(row) % 8) as usize]));
        let prices: Vec<f64> = rows.clone().map(|row| (mixed(row) >> 40) as f64 / 100.0).collect();
        let nulls = rows.clone().map(|row| mixed(row).is_multiple_of(20)).collect::<Vec<_>>();
        let times: Vec<i64> = rows
            .map(|row| 1_700_000_000_000_000 + row * 250_000 + (mixed(row) % 1000) as i64)
            .collect();
        table.append([
            ("id", Data::items(&ids)),
            ("city", Data::texts(cities)),
            ("price", Data::items(&prices).nulls(nulls)),
            ("time", Data::items(&times)),
        ])?;
    }
    table.finish()?.finish()
}

/// The time of the fastest run of a query in seconds, and its result.
async fn time(context: &SessionContext, sql: &str) -> Result<(f64, String)> {
    let mut best = f64::INFINITY;
    let mut text = String::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        let frame = context.sql(sql).await?;
        text = frame.to_string().await?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok((best, text))
}

#[tokio::main]
async fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(ROWS);
    let folder = tempfile::tempdir()?;
    let (table, parquet) = (folder.path().join("t.b2z"), folder.path().join("t.parquet"));
    let start = Instant::now();
    create(&table, rows)?;
    println!("written in {:.1} s", start.elapsed().as_secs_f64());

    let ours = SessionContext::new();
    blosc2_datafusion::register(&ours)?;
    let location = table.display();
    ours.sql(&format!("CREATE EXTERNAL TABLE t STORED AS CTABLE LOCATION '{location}'")).await?;
    let copy = format!(
        "COPY t TO '{}' STORED AS PARQUET OPTIONS ('format.compression' 'zstd(3)')",
        parquet.display()
    );
    let start = Instant::now();
    ours.sql(&copy).await?.collect().await?;
    println!("copied in {:.1} s", start.elapsed().as_secs_f64());
    let theirs = SessionContext::new();
    let path = parquet.to_str().ok_or("the path is no text")?;
    theirs.register_parquet("t", path, ParquetReadOptions::default()).await?;

    let size = |path: &Path| -> std::io::Result<f64> {
        Ok(std::fs::metadata(path)?.len() as f64 / f64::from(1 << 20))
    };
    println!("| {rows} rows | table | Parquet | table / Parquet |");
    println!("|---|---|---|---|");
    let (one, other) = (size(&table)?, size(&parquet)?);
    println!("| size (MiB) | {one:.1} | {other:.1} | {:.2} |", one / other);
    for (name, sql) in QUERIES {
        let start = rows / 2;
        let sql = sql.replace("{start}", &start.to_string());
        let sql = sql.replace("{end}", &(start + rows / 100).to_string());
        let (one, found) = time(&ours, &sql).await?;
        let (other, expected) = time(&theirs, &sql).await?;
        println!("| {name} (ms) | {:.1} | {:.1} | {:.2} |", one * 1e3, other * 1e3, one / other);
        if found != expected {
            println!("the results differ:\n{found}\n{expected}");
        }
    }
    Ok(())
}
