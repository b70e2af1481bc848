//! Random access to small records. Each record is a variable-length block. A dictionary stores common parts once.

use blosc2::{CParams, Codec, Compressor};

fn main() -> blosc2::Result<()> {
    let records: Vec<String> = (0..2000)
        .map(|id| {
            let (price, stock) = (id * 7 % 500, id % 3 > 0);
            format!("{{\"id\": \"item-{id:04}\", \"price\": {price}, \"in_stock\": {stock}}}")
        })
        .collect();
    let blocks: Vec<&[u8]> = records.iter().map(|record| record.as_bytes()).collect();

    let plain = CParams::new().codec(Codec::Lz4).filters(&[]);
    let without = Compressor::new(&plain)?.compress_blocks(&blocks)?;
    let with = Compressor::new(&plain.dictionary(true))?.compress_blocks(&blocks)?;
    assert!(with.has_dictionary() && !without.has_dictionary());
    assert!(with.cbytes() < without.cbytes());

    // Decompresses only one record.
    assert_eq!(with.block(1234)?, blocks[1234]);
    assert_eq!(with.nblocks(), 2000);

    println!(
        "{} bytes: {} without a dictionary, {} with one",
        with.nbytes(),
        without.cbytes(),
        with.cbytes()
    );
    Ok(())
}
