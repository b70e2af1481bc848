//! Compresses and decompresses buffers: sets the codec and filters, reuses a compressor, writes to an existing slice.

use blosc2::{CParams, ChunkRef, Codec, Compressor, Filter, Threads, compress_bound};

fn main() -> blosc2::Result<()> {
    let readings: Vec<f64> = (0..500_000).map(|i| 20.0 + (i % 1000) as f64 / 100.0).collect();

    // A chunk is a sequence of bytes. The header of the chunk contains the codec and the filters.
    let bytes: Vec<u8> = blosc2::compress(&readings, &CParams::default())?;
    assert_eq!(blosc2::decompress::<f64>(&bytes)?, readings);

    let chunk = ChunkRef::new(&bytes)?;
    assert_eq!(chunk.nbytes(), size_of_val(&readings[..]));
    println!("{} bytes compressed to {} by {}", chunk.nbytes(), chunk.cbytes(), chunk.codec());

    // The compressor reuses its memory for each buffer. `compress_bound` returns a sufficient length for any items.
    let params =
        CParams::new().codec(Codec::Lz4).filters(&[Filter::Bitshuffle]).threads(Threads::auto());
    let mut compressor = Compressor::new(&params)?;
    let mut target = vec![0; compress_bound(size_of_val(&readings[..100_000]))];
    for part in readings.chunks(100_000) {
        let len = compressor.compress_into(part, &mut target)?;
        assert!(len < target.len() / 10);
        assert_eq!(blosc2::decompress::<f64>(&target[..len])?, part);
    }
    Ok(())
}
