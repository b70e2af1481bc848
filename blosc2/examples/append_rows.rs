//! Rows that come one by one: an appender compresses each chunk once.

use blosc2::NDArray;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("sensors.b2nd");

    // Nothing yet, and room for any number of rows of eight sensors.
    let builder = NDArray::builder().chunks([4096, 8]).blocks([512, 8]);
    let mut sensors = builder.file(&path).zeros::<i32>(&[0, 8])?;
    let mut appender = sensors.appender(0)?;
    for second in 0..10_000 {
        let row: Vec<i32> = (0..8).map(|sensor| second * 10 + sensor).collect();
        appender.append(&row)?;
    }
    println!("{} rows are in the file, {} wait", appender.array().shape()[0], appender.pending());
    appender.flush()?; // Dropping it does the same, but cannot say that it failed.
    drop(appender);
    drop(sensors);

    let sensors = NDArray::open(&path)?;
    assert_eq!(sensors.shape(), [10_000, 8]);
    assert_eq!(sensors.read::<i32>(&[9999..10_000, 6..8])?, [99_996, 99_997]);
    Ok(())
}
