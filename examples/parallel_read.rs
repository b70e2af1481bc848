//! Reads an array on several threads in three ways: one call, a rayon iterator, and threads of the program.

use blosc2::{CParams, Codec, DParams, NDArray, Threads};
use rayon::iter::{IntoParallelIterator, ParallelIterator};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("table.b2nd");
    let params = CParams::new().codec(Codec::Lz4).threads(Threads::auto());
    let builder = NDArray::builder().chunk_shape([100, 1000]).block_shape([10, 1000]);
    let mut table = builder
        .cparams(params)
        .target(&path)
        .from_fn(&[1000, 1000], |[row, column]| row * column)?;

    // One call distributes the chunks over all cores.
    table.set_dparams(DParams::new().threads(Threads::auto()));
    let whole: u64 = table.read::<Vec<u64>>(..)?.into_iter().sum();

    // A parallel iterator over the chunks. The thread that uses a chunk also reads it.
    table.set_dparams(DParams::new());
    let chunks: Vec<_> = table.chunks(..)?.collect();
    let sums: blosc2::Result<Vec<u64>> = chunks
        .into_par_iter()
        .map(|chunk| Ok(chunk.read::<Vec<u64>>()?.into_iter().sum()))
        .collect();
    assert_eq!(sums?.into_iter().sum::<u64>(), whole);

    // Threads of the program share a cache of decoded blocks.
    table.set_dparams(DParams::new().cache(16 << 20));
    let row = |row: u64| table.read::<Vec<u64>>(&[row..row + 1, 0..1000]);
    std::thread::scope(|scope| -> blosc2::Result<()> {
        let readers: Vec<_> = (0..8u64).map(|first| scope.spawn(move || row(first * 7))).collect();
        for (first, reader) in (0..8u64).zip(readers) {
            let row = reader.join().expect("a reader panicked")?;
            assert_eq!(row[999], first * 7 * 999);
        }
        Ok(())
    })?;
    println!("the sum is {whole}");
    Ok(())
}
