//! Appends rows to an array in a file. An appender compresses each chunk once.

use blosc2::{Appender, NDArray};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sensors.b2nd");

    // An array without rows. Each row has the values of eight sensors.
    let builder = NDArray::builder().chunk_shape([4096, 8]).block_shape([512, 8]);
    let mut sensors = builder.target(&path).zeros::<i32>(&[0, 8])?;
    let mut appender = Appender::new(&mut sensors, 0)?;
    for second in 0..10_000 {
        let row: Vec<i32> = (0..8).map(|sensor| second * 10 + sensor).collect();
        appender.append(&row)?;
    }
    println!(
        "{} rows are in the file, {} are pending",
        appender.array().shape()[0],
        appender.pending()
    );
    appender.flush()?; // Dropping the appender also stores the rows, but cannot return an error.
    drop(appender);
    drop(sensors);

    let sensors = NDArray::open(&path)?;
    assert_eq!(sensors.shape(), [10_000, 8]);
    assert_eq!(sensors.read::<Vec<i32>>(&[9999..10_000, 6..8])?, [99_996, 99_997]);
    Ok(())
}
