//! Computes the mean over time of an array, block by block, and writes the result to a file.

use blosc2::{CParams, Codec, NDArray, Threads};

/// The number of days. A day takes 32 KiB. The memory use is the same for 1,000,000 days (30.5 GiB).
const DAYS: u64 = 365;
const LATITUDES: u64 = 64;
const LONGITUDES: u64 = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("temperatures.b2nd");

    // The items are computed, compressed and stored chunk by chunk.
    let temperature = |[day, latitude, longitude]: [u64; 3]| {
        let season = (day % 365) as f32 / 365.0 * std::f32::consts::TAU;
        let warmth = 30.0 - (latitude as f32 - 31.5).abs();
        warmth - 10.0 * season.cos() + longitude as f32 / 128.0
    };
    NDArray::builder()
        .chunk_shape([32, LATITUDES, LONGITUDES])
        .cparams(CParams::new().codec(Codec::Lz4).threads(Threads::auto()))
        .target(&path)
        .from_fn([DAYS, LATITUDES, LONGITUDES], temperature)?;

    // Each thread decompresses a few blocks at a time, and adds their items to the sums.
    let temperatures = NDArray::open(&path)?;
    let means = temperatures
        .lazy::<f32>()
        .threads(Threads::auto())
        .axes(0)
        .builder(NDArray::builder().target(folder.path().join("means.b2nd")))
        .mean()?;
    assert_eq!(means.shape(), [LATITUDES, LONGITUDES]);
    println!("the mean at latitude 10 and longitude 20 is {}", means.item::<f32>([10, 20])?);

    let chunk: u64 = temperatures.chunk_shape().iter().product::<u64>() * size_of::<f32>() as u64;
    println!(
        "the array has {} KiB; each thread needs memory for about one chunk of {} KiB",
        temperatures.info().nbytes >> 10,
        chunk >> 10
    );
    Ok(())
}
