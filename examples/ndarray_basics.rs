//! Creates an array from a function, stores it, slices it, changes it, and copies it with another chunk shape.

use blosc2::{CParams, Codec, NDArray, Threads};
use ndarray::{Array1, Array2, s};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("waves.b2nd");

    // Computes and compresses a thousand rows on all cores, chunk by chunk.
    let params = CParams::new().codec(Codec::Zstd).level(5).threads(Threads::auto());
    let mut waves = NDArray::builder()
        .cparams(params.clone())
        .target(&path)
        .from_fn(&[1000, 2000], |[row, column]| (row as f32 / 50.0).sin() * column as f32)?;
    println!("{}", waves.info());

    // Reads a slice, every hundredth row in reverse, a column, and one item.
    let corner: Vec<f32> = waves.read(&[0..10, 0..20])?;
    assert_eq!(corner.len(), 200);
    let rows: Array2<f32> = waves.read(s![..;-100, 500..505])?;
    assert_eq!(rows.shape(), [10, 5]);
    let column = waves.view().transpose().read::<Array1<f32>>(s![1999, ..])?;
    assert_eq!(column[999], waves.item::<f32>(&[999, 1999])?);

    // A write is atomic. When it returns `Ok`, the new items are in the file.
    waves.write(&[0..1, 0..3], &[1.0f32, 2.0, 3.0])?;
    waves.write(s![.., 1000..], 0.0f32)?;
    waves.resize([1001, 2000])?;
    drop(waves);

    let waves = NDArray::open(&path)?;
    assert_eq!(waves.read::<Vec<f32>>(&[0..1, 0..4])?, [1.0, 2.0, 3.0, 0.0]);
    assert_eq!(waves.read::<Vec<f32>>(&[1000..1001, 0..1])?, [0.0]);

    // Copies the items to an array in memory, with another chunk shape, as 64-bit numbers.
    let copy = NDArray::builder()
        .chunk_shape([1001, 64])
        .block_shape([128, 64])
        .cparams(params)
        .cast::<f64>(&waves)?;
    assert_eq!(copy.item::<f64>(&[0, 2])?, 3.0);
    println!("{} bytes as f32, {} as f64", waves.schunk().cbytes(), copy.schunk().cbytes());
    Ok(())
}
