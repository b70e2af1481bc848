//! Creates a super-chunk in memory, changes it, sends it as bytes, and reads it at the receiver.

use blosc2::{CParams, OpenOptions, SChunk};

fn main() -> blosc2::Result<()> {
    // Each chunk has a separate allocation, so that changes are fast.
    let mut schunk = SChunk::in_memory::<u32>(&CParams::default())?;
    for start in [0, 1000, 2000] {
        schunk.append(&(start..start + 1000).collect::<Vec<u32>>())?;
    }
    schunk.replace(1, &[7u32; 1000])?;
    schunk.reorder(&[2, 0, 1])?;
    schunk.write(0, &[1u32, 2, 3])?;

    // Converts the super-chunk to a contiguous frame. Python opens these bytes with blosc2.schunk_from_cframe.
    let bytes = schunk.to_cframe()?;
    println!("{} bytes of data in a frame of {} bytes", schunk.nbytes(), bytes.len());

    // `open` checks the structure of the frame. `open` and `into_cframe` do not copy the bytes.
    let received = SChunk::open(bytes)?;
    assert_eq!(received.read::<u32>(..5)?, [1, 2, 3, 2003, 2004]);
    assert_eq!(received.read::<u32>(2999..)?, [7]);
    let bytes = received.into_cframe()?;

    // Opens the frame for changes in the same buffer.
    let mut changed = OpenOptions::new().write(true).open(bytes)?;
    changed.remove(0)?;
    assert_eq!((changed.nchunks(), changed.len()), (2, 2000));
    Ok(())
}
