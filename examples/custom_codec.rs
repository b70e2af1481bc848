//! A user-defined codec for runs of equal items, in a super-chunk that several threads compress and decompress.

use blosc2::user_defined::{BoxError, CodecInfo, UserCodec};
use blosc2::{CParams, Codec, DParams, SChunk, Threads};

/// Stores each run of equal items as a count, in four bytes, followed by the item.
struct Runs;

impl UserCodec for Runs {
    fn compress(
        &self,
        input: &[u8],
        output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<Option<usize>, BoxError> {
        let items: Vec<&[u8]> = input.chunks(info.typesize).collect();
        let mut len = 0;
        for run in items.chunk_by(|a, b| a == b) {
            let count = u32::try_from(run.len())?.to_le_bytes();
            for bytes in [count.as_slice(), run[0]] {
                // `None`: the block does not become smaller. C-Blosc2 stores it uncompressed.
                let Some(place) = output.get_mut(len..len + bytes.len()) else {
                    return Ok(None);
                };
                place.copy_from_slice(bytes);
                len += bytes.len();
            }
        }
        Ok(Some(len))
    }

    fn decompress(
        &self,
        mut input: &[u8],
        mut output: &mut [u8],
        info: &CodecInfo,
    ) -> Result<(), BoxError> {
        while let Some((count, rest)) = input.split_first_chunk::<4>() {
            let item = &rest[..info.typesize.min(rest.len())];
            input = &rest[item.len()..];
            for _ in 0..u32::from_le_bytes(*count) {
                let (to, rest) =
                    output.split_at_mut_checked(item.len()).ok_or("a run is too long")?;
                to.copy_from_slice(item);
                output = rest;
                if item.is_empty() {
                    return Err("a run without an item".into());
                }
            }
        }
        match output {
            [] => Ok(()),
            rest => Err(format!("{} bytes are missing", rest.len()).into()),
        }
    }
}

fn main() -> blosc2::Result<()> {
    let codec = Codec::register(160, "runs", Runs)?;
    let threads = Threads::auto();
    let params = CParams::new().codec(codec).filters(&[]).threads(threads);
    let mut schunk = SChunk::in_memory::<u16>(&params)?;
    schunk.set_dparams(DParams::new().threads(threads));

    // Runs of a thousand equal samples.
    let samples: Vec<u16> = (0..1_000_000u32).map(|i| (i / 1000) as u16).collect();
    for part in samples.chunks(250_000) {
        schunk.append(part)?;
    }
    let chunks = schunk.iter_chunks::<u16>().collect::<blosc2::Result<Vec<_>>>()?;
    assert_eq!(chunks.concat(), samples);
    println!("{} bytes, compressed to {} by the codec {codec}", schunk.nbytes(), schunk.cbytes());

    // Decompressing a corrupted chunk fails with the error message of the codec.
    let mut chunk = blosc2::compress(&samples, &params)?;
    let last = chunk.len() - 3;
    chunk[last] ^= 0xFF;
    match blosc2::decompress::<u16>(&chunk) {
        Ok(_) => println!("the changed byte was not a length"),
        Err(error) => println!("corrupted: {error}"),
    }
    Ok(())
}
