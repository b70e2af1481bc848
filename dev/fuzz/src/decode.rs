//! Decoding of chunks: each codec and filter.

use blosc2_format::chunk::{Chunk, Decoder};

use crate::{LIMITS, options, readable};

/// The codecs: those of every build, and the plugins that are decoded in Rust or refused.
const CODECS: [u8; 9] = [0, 1, 2, 4, 5, 32, 33, 34, 40];
/// The filters, with the plugins.
const FILTERS: [u8; 8] = [0, 1, 2, 3, 4, 34, 35, 36];

/// Decodes a chunk whole and block by block, with the same result.
pub fn decode(input: &[u8]) {
    let bytes = chunk_of(input);
    let is_good = Chunk::check(&bytes, &options());
    let is_good = is_good.is_good() && is_good.is_complete();
    let chunk = match Chunk::new(&bytes, &LIMITS) {
        Ok(chunk) => chunk,
        Err(error) if is_good => {
            readable::<()>(Err(error));
            return;
        }
        Err(_) => return,
    };
    let whole = chunk.decode();
    let mut decoder = Decoder::default();
    let mut start = 0;
    for number in 0..chunk.nblocks().min(1000) {
        let mut block = vec![0; chunk.block_size(number)];
        let decoded = decoder.decode_block(&chunk, number, &mut block);
        if let Ok(whole) = &whole {
            decoded.expect("the whole chunk is decoded, but not this block");
            assert!(block == whole[start..start + block.len()], "block {number}");
        }
        start += block.len();
    }
    if is_good && chunk.lazy().is_none() {
        readable(whole);
    }
}

/// Returns the chunk that an input stands for.
///
/// If the first byte is 1, the chunk is the rest. Otherwise the first 8 bytes choose codec, filters, item size and block
/// size, and the rest is the stream of the first block, so that any bytes reach a codec.
fn chunk_of(input: &[u8]) -> Vec<u8> {
    let Some((choice, stream)) = input.split_at_checked(8) else { return input.to_vec() };
    if choice[0] == 1 {
        return input[1..].to_vec();
    }
    let codec = CODECS[usize::from(choice[1]) % CODECS.len()];
    let filter = |at: usize| FILTERS[usize::from(choice[at]) % FILTERS.len()];
    let typesize = choice[4].max(1);
    let nbytes = u32::from(choice[5]) * 64 + u32::from(choice[6]);
    let blocksize = (nbytes >> (choice[7] & 3)).max(1);
    let nblocks = nbytes.div_ceil(blocksize);
    let mut chunk = vec![0; 32];
    // The flags: an extended header, unsplit blocks, and the format of the codec in the highest bits.
    let format = match codec {
        0 => 0,
        1 | 2 => 1,
        4 => 3,
        5 => 4,
        _ => 6,
    };
    chunk[..4].copy_from_slice(&[5, 1, 0b1_0101 | format << 5, typesize]);
    chunk[4..8].copy_from_slice(&nbytes.to_le_bytes());
    chunk[8..12].copy_from_slice(&blocksize.to_le_bytes());
    chunk[20] = filter(2);
    chunk[21] = filter(3);
    chunk[22] = codec;
    chunk[23] = choice[0];
    chunk[28] = choice[0] >> 1;
    chunk[29] = choice[6];
    // All blocks share one stream.
    let start = 32 + 4 * nblocks;
    for _ in 0..nblocks {
        chunk.extend(start.to_le_bytes());
    }
    chunk.extend((stream.len() as u32).to_le_bytes());
    chunk.extend(stream);
    let cbytes = chunk.len() as u32;
    chunk[12..16].copy_from_slice(&cbytes.to_le_bytes());
    chunk
}
