//! The mean of each month over an array with coordinates, and the same means by lazy evaluation. Each runs in its own
//! process, so that the peak memory is its own. Run it with `cargo bench --features bench --bench array`; the arguments
//! are the size in MiB, 4096 by default, and `lz4` for that codec instead of Zstandard.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use blosc2::{CParams, Codec, NDArray, RawItems, Threads};
use blosc2_store::{Object, TreeStore};
use datafusion::arrow::array::AsArray;
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::prelude::SessionContext;

type Error = Box<dyn std::error::Error + Send + Sync>;

const MIB: u64 = 4096;
/// Latitudes and longitudes.
const GRID: [u64; 2] = [512, 512];
const DAY: i64 = 86_400_000_000_000;
/// 2010-01-01.
const FIRST: i64 = 14_610;
/// Each query is run as many times; the fastest run counts.
const RUNS: usize = 3;
const SQL: &str =
    "SELECT date_trunc('month', time) AS month, avg(temperature) FROM c GROUP BY month";

/// A pseudo-random number that depends on an index.
fn mixed(index: u64) -> u64 {
    let mut mixed = index;
    for shift in [31, 29, 32] {
        mixed = (mixed ^ mixed >> shift).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
    mixed
}

/// Writes the store chunk by chunk.
fn create(path: &Path, mib: u64, codec: Codec, threads: Threads) -> blosc2::Result<()> {
    let [lats, lons] = GRID;
    let days = (mib << 20) / (4 * lats * lons);
    let mut store = TreeStore::create(path)?;
    let times: Vec<i64> = (0..days as i64).map(|day| (FIRST + day) * DAY).collect();
    let times = blosc2::elements::bytes_of(&times);
    let degrees = |of: &dyn Fn(u64) -> f64, len: u64| (0..len).map(of).collect::<Vec<f64>>();
    let lat = degrees(&|at| 90.0 - 180.0 * at as f64 / (lats - 1) as f64, lats);
    let lon = degrees(&|at| 360.0 * at as f64 / lons as f64, lons);
    let arrays = [
        ("time", NDArray::builder().dtype("<M8[ns]", 8).from_slice(RawItems(&times[..]), [days])?),
        ("lat", NDArray::from_slice(&lat, [lats])?),
        ("lon", NDArray::from_slice(&lon, [lons])?),
    ];
    for (name, mut array) in arrays {
        array.vlmeta_mut().set_value("dims", &[name])?;
        store.insert(&format!("/{name}"), array.schunk())?;
    }
    let params = CParams::new().codec(codec).level(5).threads(threads);
    let mut array = store.create_array("/temperature", |builder| {
        builder.cparams(params).from_fn([days, lats, lons], |[day, y, x]| {
            let season = 10.0 * (day as f64 * (std::f64::consts::TAU / 365.25)).sin();
            let noise = mixed((day * lats + y) * lons + x) % 64;
            (15.0 + season - 0.3 * lat[y as usize].abs()) as f32 + noise as f32 / 16.0
        })
    })?;
    array.vlmeta_mut().set_value("dims", &["time", "lat", "lon"])?;
    drop(array);
    store.finish()
}

/// The means of the months, by the number of nanoseconds since 1970 of their first day.
type Means = BTreeMap<i64, f64>;

async fn by_sql(path: &Path) -> Result<Means, Error> {
    let context = SessionContext::new();
    blosc2_datafusion::register(&context)?;
    let location = path.display();
    let sql = format!("CREATE EXTERNAL TABLE c STORED AS B2ND LOCATION '{location}'");
    context.sql(&sql).await?;
    let mut means = Means::new();
    for batch in context.sql(SQL).await?.collect().await? {
        let months = cast(batch.column(0), &DataType::Int64)?;
        let of_months = batch.column(1).as_primitive::<Float64Type>();
        let months = months.as_primitive::<Int64Type>().values().iter().copied();
        means.extend(months.zip(of_months.values().iter().copied()));
    }
    Ok(means)
}

/// The means over the grid for each day, and then over the days of each month: all days have as many items.
fn by_lazy(path: &Path, threads: Threads) -> Result<Means, Error> {
    let store = TreeStore::open(path)?;
    let array = |key: &str| match store.get(key)? {
        Object::NDArray(array) => Ok(array),
        other => Err(Error::from(format!("{key} is a {}", other.kind()))),
    };
    let temperatures = array("/temperature")?;
    let of_days = temperatures.lazy::<f32>().axes((1, 2)).threads(threads).mean()?;
    let RawItems(times) = array("/time")?.read::<RawItems<Vec<u8>>>(..)?;
    let mut sums: BTreeMap<i64, (f64, f64)> = BTreeMap::new();
    for (time, mean) in times.chunks_exact(8).zip(of_days.items()) {
        let day = i64::from_le_bytes(time.try_into()?) / DAY;
        let (sum, count) = sums.entry(first_of_month(day) * DAY).or_default();
        *sum += f64::from(*mean);
        *count += 1.0;
    }
    Ok(sums.into_iter().map(|(month, (sum, count))| (month, sum / count)).collect())
}

/// The first day of the month of a day, both as numbers of days since 1970.
fn first_of_month(day: i64) -> i64 {
    let (mut year, mut first) = (1970, 0);
    loop {
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        for month in [31, 28 + i64::from(is_leap), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
            if day < first + month {
                return first;
            }
            first += month;
        }
        year += 1;
    }
}

/// The peak memory of this process in MiB, if the system tells it.
fn peak() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? / 1024.0)
}

/// What a process measures: the time of the fastest run in seconds, the peak memory in MiB, and the means.
struct Measured {
    seconds: f64,
    peak: Option<f64>,
    means: Means,
}

async fn measure(how: &str, path: &Path) -> Result<(), Error> {
    let (mut best, mut means) = (f64::INFINITY, Means::new());
    for _ in 0..RUNS {
        let start = Instant::now();
        means = match how {
            "sql" => by_sql(path).await?,
            threads => by_lazy(path, Threads::new(threads.parse()?))?,
        };
        best = best.min(start.elapsed().as_secs_f64());
    }
    println!("{best} {}", peak().unwrap_or(f64::NAN));
    for (month, mean) in means {
        println!("{month} {mean:e}");
    }
    Ok(())
}

/// Runs this program again to measure.
fn measured(how: &str, path: &Path) -> Result<Measured, Error> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["measure", how]).arg(path).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let mut lines = text.lines().map(|line| line.split_once(' ').ok_or("two words"));
    let (seconds, peak) = lines.next().ok_or("a line")??;
    let means = lines.map(|line| {
        let (month, mean) = line?;
        Ok((month.parse()?, mean.parse()?))
    });
    let peak = Some(peak.parse()?).filter(|peak: &f64| peak.is_finite());
    Ok(Measured { seconds: seconds.parse()?, peak, means: means.collect::<Result<_, Error>>()? })
}

#[tokio::main]
async fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [_, how, path] = &arguments[..]
        && arguments[0] == "measure"
    {
        return measure(how, Path::new(path)).await;
    }
    let mib = arguments.iter().find_map(|argument| argument.parse().ok()).unwrap_or(MIB);
    let codec = match arguments.iter().any(|argument| argument == "lz4") {
        true => Codec::Lz4,
        false => Codec::Zstd,
    };
    let threads = std::thread::available_parallelism()?.get();
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("c.b2z");
    let start = Instant::now();
    create(&path, mib, codec, Threads::new(threads))?;
    let (size, seconds) = (std::fs::metadata(&path)?.len() >> 20, start.elapsed().as_secs_f64());
    println!("{mib} MiB of float32, {codec:?}: {size} MiB written in {seconds:.1} s");

    println!("| mean of each month | time (s) | peak memory (MiB) |");
    println!("|---|---|---|");
    let row = |name: &str, measured: &Measured| {
        let peak = measured.peak.map_or("unknown".to_owned(), |peak| format!("{peak:.0}"));
        println!("| {name} | {:.2} | {peak} |", measured.seconds);
    };
    let sql = measured("sql", &path)?;
    row(&format!("SQL, {threads} threads"), &sql);
    let lazy = measured(&threads.to_string(), &path)?;
    row(&format!("`lazy().axes(..).mean()`, {threads} threads"), &lazy);
    let single = measured("1", &path)?;
    row("`lazy().axes(..).mean()`, 1 thread", &single);
    println!("SQL / lazy evaluation: {:.2}", sql.seconds / lazy.seconds);

    for (month, expected) in &lazy.means {
        let found = sql.means.get(month).ok_or(format!("there is no month {month}"))?;
        // The means of the days are below 64, and rounded to `f32`.
        if (found - expected).abs() > 64.0 * 2f64.powi(-24) {
            return Err(format!("the month {month}: {found}, expected {expected}").into());
        }
    }
    if (sql.means.len(), &lazy.means) != (lazy.means.len(), &single.means) {
        return Err(format!("{} months, expected {}", sql.means.len(), lazy.means.len()).into());
    }
    Ok(())
}
