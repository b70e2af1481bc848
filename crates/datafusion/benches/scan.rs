//! Queries over a table, over a Parquet file (Zstandard) of the same rows, and with Python's `CTable` over the same table.
//! Run it with `cargo bench --features bench --bench scan`; the argument is the number of rows, 20,000,000 by default.
//! `BLOSC2_TEST_PYTHON` is the path of a Python with blosc2.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use blosc2_store::{CTable, Data, ItemKind, ItemType, Schema, TimeUnit};
use datafusion::error::Result;
use datafusion::prelude::{ParquetReadOptions, SessionContext};

type Error = Box<dyn std::error::Error + Send + Sync>;

const ROWS: i64 = 20_000_000;
const BATCH: i64 = 1_000_000;
const WORDS: [&str; 8] =
    ["Amsterdam", "Berlin", "Copenhagen", "Dublin", "Edinburgh", "Florence", "Geneva", "Helsinki"];
/// Each query is run as many times; the fastest run counts.
const RUNS: usize = 5;

const QUERIES: [(&str, &str); 6] = [
    ("full scan with sums", "SELECT count(*), sum(id), round(sum(price)) FROM t"),
    ("sums and a maximum", "SELECT count(*), sum(id), round(sum(price)), max(time) FROM t"),
    ("maximum", "SELECT max(time) FROM t"),
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

/// The time of the fastest run in seconds, and the rows: their columns are separated by spaces.
struct Measured {
    seconds: f64,
    rows: Vec<String>,
}

impl Measured {
    fn new() -> Self {
        Self { seconds: f64::INFINITY, rows: Vec::new() }
    }

    async fn run(&mut self, context: &SessionContext, sql: &str) -> Result<()> {
        let start = Instant::now();
        let text = context.sql(sql).await?.to_string().await?;
        self.seconds = self.seconds.min(start.elapsed().as_secs_f64());
        let rows = text.lines().filter(|line| line.starts_with('|')).skip(1);
        let words = rows.map(|row| row.split_whitespace().filter(|word| *word != "|"));
        self.rows = words.map(|words| words.collect::<Vec<_>>().join(" ")).collect();
        Ok(())
    }
}

/// What Python measures for each query. `None` if no Python is given.
fn python(table: &Path, start: i64, end: i64) -> std::result::Result<Option<Vec<Measured>>, Error> {
    let Some(python) = std::env::var_os("BLOSC2_TEST_PYTHON") else { return Ok(None) };
    let mut command = Command::new(python);
    command.args(["-c", include_str!("scan.py")]).arg(table);
    let output =
        command.args([start, end, RUNS as i64].map(|number| number.to_string())).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let measured = text.lines().map(|line| {
        let mut parts = line.split('\t').map(str::to_owned);
        let seconds = parts.next().ok_or("an empty line")?.parse()?;
        Ok(Measured { seconds, rows: parts.collect() })
    });
    measured.collect::<std::result::Result<_, _>>().map(Some)
}

#[tokio::main]
async fn main() -> std::result::Result<(), Error> {
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
    let (start, end) = (rows / 2, rows / 2 + rows / 100);
    let pythons = python(&table, start, end)?;
    if pythons.is_none() {
        println!("Python is left out: BLOSC2_TEST_PYTHON is not set");
    }
    println!("| {rows} rows | table | Parquet | Python | table / Parquet | Python / table |");
    println!("|---|---|---|---|---|---|");
    let (one, other) = (size(&table)?, size(&parquet)?);
    println!("| size (MiB) | {one:.1} | {other:.1} | | {:.2} | |", one / other);
    for (at, (name, sql)) in QUERIES.into_iter().enumerate() {
        let sql = sql.replace("{start}", &start.to_string()).replace("{end}", &end.to_string());
        let (mut one, mut other) = (Measured::new(), Measured::new());
        // In turn, so that other load of the machine slows down both.
        for _ in 0..RUNS {
            one.run(&ours, &sql).await?;
            other.run(&theirs, &sql).await?;
        }
        let python = pythons.as_ref().map(|all| all.get(at).ok_or("Python measures all queries"));
        let python = python.transpose()?;
        let times = python.map(|python| (python.seconds * 1e3, python.seconds / one.seconds));
        let (time, ratio) = times.unzip();
        let text = |number: Option<f64>, digits| {
            number.map_or("left out".to_owned(), |number| format!("{number:.digits$}"))
        };
        println!(
            "| {name} (ms) | {:.1} | {:.1} | {} | {:.2} | {} |",
            one.seconds * 1e3,
            other.seconds * 1e3,
            text(time, 1),
            one.seconds / other.seconds,
            text(ratio, 1)
        );
        for rows in [&other.rows].into_iter().chain(python.map(|python| &python.rows)) {
            if *rows != one.rows {
                return Err(format!("{name}: {:?}, expected {rows:?}", one.rows).into());
            }
        }
    }
    Ok(())
}
