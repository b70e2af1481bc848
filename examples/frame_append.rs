//! Appends to a file in each run of a program. After an append has returned, a crash of the program does not lose it.

use blosc2::{CParams, Codec, OpenOptions, SChunk};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("readings.b2frame");

    // Opens or creates the file for appending. In this mode, existing chunks cannot be changed.
    let params = CParams::new().codec(Codec::Zstd).level(5);
    let options =
        OpenOptions::new().append(true).create(true).cparams(&params).typesize(size_of::<f64>());
    for day in 0..3 {
        let mut file = options.open(&path)?;
        let readings: Vec<f64> = (0..24).map(|hour| f64::from(day * 24 + hour)).collect();
        file.append(&readings)?; // After each call, the file is a complete frame.
        println!("day {day}: {} chunks in {} bytes", file.nchunks(), file.frame_len()?);
    }

    let file = SChunk::open(&path)?;
    assert_eq!((file.nchunks(), file.len()), (3, 72));
    // Reads from 22 h of the first day to 2 h of the second day, from two chunks.
    assert_eq!(file.read::<f64>(22..26)?, [22.0, 23.0, 24.0, 25.0]);
    Ok(())
}
