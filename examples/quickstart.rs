//! The program of the README: writes an array to a file, and reads a part of it.

use blosc2::{CParams, Codec, NDArray};

fn main() -> blosc2::Result<()> {
    let temperatures: Vec<f32> = (0..365 * 1000).map(|i| (i % 365) as f32 / 10.0).collect();
    NDArray::builder()
        .cparams(CParams::new().codec(Codec::Zstd).level(5))
        .target("temperatures.b2nd")
        .from_slice(&temperatures, [1000, 365])?;

    let array = NDArray::open("temperatures.b2nd")?;
    let january: Vec<f32> = array.read((.., 0..31))?;
    assert_eq!(january[..3], [0.0, 0.1, 0.2]);
    println!("{:?} items in {} bytes", array.shape(), array.schunk().cbytes());
    Ok(())
}
