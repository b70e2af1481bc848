//! Random access to a chunk: decompresses a range of items, a single block, and the blocks of a boolean mask.

use blosc2::{CParams, Compressor, DParams, Decompressor};

fn main() -> blosc2::Result<()> {
    let items: Vec<u32> = (0..1_000_000).map(|i| i / 3).collect();
    // A block is always decompressed completely. Small blocks are faster to access, large blocks compress better.
    let params = CParams::new().blocksize(64 * 1024);
    let chunk = Compressor::new(&params)?.compress(&items)?;

    // Decompresses only the block that contains these items.
    let some: Vec<u32> = chunk.items(700_000..700_005)?;
    assert_eq!(some, items[700_000..700_005]);

    // Decompresses a block, and computes its byte range in the uncompressed data.
    let range = chunk.block_range(3)?.expect("there are 62 blocks");
    assert_eq!(range, 3 * 65_536..4 * 65_536);
    assert_eq!(chunk.block(3)?.len(), 65_536);

    // Decompresses several blocks, each to its offset in the target. The other bytes of the target do not change.
    let mut wanted = vec![false; chunk.nblocks()];
    wanted[3] = true;
    wanted[40] = true;
    let mut target = vec![0; chunk.nbytes()];
    let mut decompressor = Decompressor::new(&DParams::default())?;
    decompressor.decompress_masked(&chunk, &wanted, &mut target)?;
    assert_eq!(target[range.clone()], chunk.items::<u8>(range)?);
    assert_eq!(target[..1000], [0; 1000]);

    println!("{} of {} blocks read", wanted.iter().filter(|&&wanted| wanted).count(), wanted.len());
    Ok(())
}
