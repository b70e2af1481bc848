//! Structs as items: the fields of the struct are the fields of a NumPy structured dtype.

use blosc2::{Element, NDArray};

/// A measurement. Three bytes between `valid` and `position` are padding, which is stored as zeros.
#[derive(Clone, Copy, Debug, PartialEq, Element)]
#[repr(C)]
struct Reading {
    sensor: u32,
    valid: bool,
    #[element(name = "xy")]
    position: [f32; 2],
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("readings.b2nd");
    NDArray::builder().target(&path).from_fn(&[100, 10], |at| Reading {
        sensor: at[1] as u32,
        valid: at[0] % 3 > 0,
        position: [at[0] as f32, 0.5],
    })?;

    // In Python, the dtype of this array is {'names': ['sensor', 'valid', 'xy'], ...}. array["xy"] returns a field.
    let readings = NDArray::open(&path)?;
    println!("{}", readings.dtype_str().unwrap_or_default());
    let row = readings.read::<Vec<Reading>>(&[7..8, 0..10])?;
    assert_eq!(row[9], Reading { sensor: 9, valid: true, position: [7.0, 0.5] });

    // Reading the array as another type is an error.
    let error = readings.read::<Vec<u64>>(..).unwrap_err();
    println!("{error}");
    Ok(())
}
