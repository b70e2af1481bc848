//! Changes the chunk shape of an array: `rechunk IN OUT 1,256,256`. Prints the throughput and the peak memory. Without
//! arguments, creates and converts a small array.

use std::path::Path;
use std::time::Instant;

use blosc2::{NDArray, Threads};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn rechunk(from: &Path, to: &Path, chunk_shape: &[u64]) -> Result<()> {
    let start = Instant::now();
    let array = NDArray::open(from)?;
    let params = array.info().cparams.threads(Threads::auto());
    // Each chunk of the source is decompressed once, if the chunks of the copy that need it fit in memory.
    let builder = NDArray::builder().chunk_shape(chunk_shape).cparams(params);
    builder.target(to).copy(&array)?;
    let seconds = start.elapsed().as_secs_f64();
    let megabytes = array.len() as f64 * array.typesize() as f64 / 1e6;
    println!(
        "{:?} to {chunk_shape:?}: {megabytes:.0} MB, {:.0} MB/s",
        array.chunk_shape(),
        megabytes / seconds
    );
    if let Some(peak) = peak_memory() {
        println!("peak memory: {peak}");
    }
    Ok(())
}

/// The peak memory of this process, on Linux.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_owned())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [from, to, chunk_shape] = &arguments[..] {
        let chunk_shape: std::result::Result<Vec<u64>, _> =
            chunk_shape.split(',').map(str::parse).collect();
        return rechunk(from.as_ref(), to.as_ref(), &chunk_shape?);
    }
    if !arguments.is_empty() {
        return Err("usage: rechunk IN OUT CHUNK_SHAPE, such as 100,16,16".into());
    }
    // Days of a grid, written day by day, and then converted for reads of the entire series of a point.
    let folder = tempfile::tempdir()?;
    let (days, series) = (folder.path().join("days.b2nd"), folder.path().join("series.b2nd"));
    let item = |[day, y, x]: [u64; 3]| (day + y * x) as f32;
    NDArray::builder().chunk_shape([1, 128, 128]).target(&days).from_fn([100, 128, 128], item)?;
    rechunk(&days, &series, &[100, 16, 16])?;
    let series = NDArray::open(&series)?;
    assert_eq!(series.chunk_shape(), [100, 16, 16]);
    assert_eq!(series.read::<Vec<f32>>((98.., 2, 3))?, [104.0, 105.0]);
    Ok(())
}
