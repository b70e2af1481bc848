//! Partial decompression against whole decompression.

use arbitrary::{Arbitrary, Result, Unstructured};
use blosc2::{CParams, ChunkRef, Codec, DParams, Decompressor, Filter, SplitMode, Threads};
use blosc2_format::chunk::{Chunk, Header, PartialChunk, PartialDecoder};

use crate::LIMITS;

/// Reads parts of a chunk that the input describes, or that the input is. If Rust and C decompress the whole chunk, the
/// parts are the same; parts of other chunks are read without a fault.
pub fn partial(input: &[u8]) {
    let mut rest = Unstructured::new(input);
    if Header::parse(input).is_ok() {
        return check(input, &mut Unstructured::new(&input[input.len() / 2..]));
    }
    if let Ok(mut chunk) = compressed(&mut rest) {
        check(&chunk, &mut rest);
        // The input also states which bytes of the chunk are changed.
        let changes = rest.int_in_range(0..=6).unwrap_or_default();
        for _ in 0..changes {
            let at = rest.int_in_range(32..=chunk.len().max(33) - 1).unwrap_or(32);
            if let (Some(byte), Ok(new)) = (chunk.get_mut(at), u8::arbitrary(&mut rest)) {
                *byte = new;
            }
        }
        check(&chunk, &mut rest);
    }
}

/// A chunk with parameters and data that the input describes.
fn compressed(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let codecs = [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zstd, Codec::Zlib];
    let typesize = *input.choose(&[1, 2, 3, 4, 7, 8, 16, 17, 255, 256, 300])?;
    let width = input.int_in_range(1..=20u8)?;
    let own = u8::try_from(typesize).unwrap_or(9);
    let pipelines: [&[Filter]; 10] = [
        &[Filter::Shuffle],
        &[Filter::Bitshuffle],
        &[Filter::Shuffle, Filter::Bytedelta(own)],
        &[],
        &[Filter::ShuffleBytes(width)],
        &[Filter::ShuffleBytes(width), Filter::Bytedelta(width)],
        &[Filter::Bytedelta(width)],
        &[Filter::Shuffle, Filter::Bitshuffle],
        &[Filter::Delta, Filter::Shuffle],
        &[Filter::Delta],
    ];
    let filters = *input.choose(&pipelines)?;
    let splits = [SplitMode::Always, SplitMode::Never, SplitMode::Auto];
    let params = CParams::new()
        .codec(*input.choose(&codecs)?)
        .level(input.int_in_range(1..=9)?)
        .typesize(typesize)
        .filters(filters)
        .split(*input.choose(&splits)?)
        .blocksize(input.int_in_range(300..=9000)?.max(typesize))
        .threads(Threads::ONE);
    let mut len = input.int_in_range(1..=20_000)?;
    if filters.first() == Some(&Filter::Delta) {
        len -= len % typesize;
    }
    // Runs, ramps, and copies of the bytes of the input.
    let mut data = Vec::with_capacity(len);
    while data.len() < len {
        let left = len - data.len();
        match input.int_in_range(0..=2)? {
            0 => data
                .resize(data.len() + input.int_in_range(1..=3000)?.min(left), input.arbitrary()?),
            1 => {
                let (start, step) = (u32::arbitrary(input)?, u8::arbitrary(input)?);
                let numbers = (0..).map(|at: u32| start.wrapping_add(at.wrapping_mul(step.into())));
                let count = input.int_in_range(1..=6000)?.min(left);
                data.extend(numbers.flat_map(u32::to_le_bytes).take(count));
            }
            _ => {
                let count = input.int_in_range(1..=100)?.min(left).min(input.len());
                data.extend(input.bytes(count)?);
            }
        }
        if input.is_empty() {
            data.resize(len, 0x5a);
        }
    }
    Ok(blosc2::compress(&data, &params).unwrap_or_else(|error| panic!("{params:?}: {error}")))
}

fn check(bytes: &[u8], input: &mut Unstructured<'_>) {
    let Ok(chunk) = ChunkRef::new(bytes) else { return };
    if chunk.nbytes() as u64 > LIMITS.memory || chunk.nbytes() == 0 {
        return;
    }
    let rust = Chunk::new(bytes, &LIMITS).and_then(|chunk| chunk.decode());
    let mut decompressor =
        Decompressor::new(DParams::new().threads(Threads::ONE)).expect("a decompressor");
    let c = decompressor.decompress::<u8>(&chunk);
    // A part of a chunk that only one decoder accepts can have any value.
    let whole = match (rust, c) {
        (Ok(rust), Ok(c)) if rust == c => Some(c),
        _ => None,
    };
    for _ in 0..4 {
        let start = input.int_in_range(0..=chunk.nbytes() - 1).unwrap_or_default();
        let most = *input.choose(&[1, 8, 100, 1000]).unwrap_or(&1);
        let len = input.int_in_range(1..=most).unwrap_or(1).min(chunk.nbytes() - start);
        let part = decompressor.items::<u8>(&chunk, start..start + len);
        if let Some(whole) = &whole {
            let part = part.unwrap_or_else(|error| panic!("{start}, {len}: {error}"));
            assert!(part == whole[start..start + len], "{len} bytes at {start}");
        }
        in_rust(&chunk, bytes, start, len, whole.as_deref());
    }
}

/// The same with the codecs of Rust.
fn in_rust(chunk: &ChunkRef<'_>, bytes: &[u8], start: usize, len: usize, whole: Option<&[u8]>) {
    let header = Header::parse(bytes).expect("the chunk is valid");
    let Some(partial) = PartialChunk::new(&header, bytes) else { return };
    let block = start / header.block_len() as usize;
    let Ok(Some(range)) = chunk.block_range(block) else { return };
    let stop = range.end.min(start + len);
    let mut decoder = PartialDecoder::default();
    let part = decoder.decode(&partial, block, start - range.start..stop - range.start);
    let mut found = vec![0; stop - start];
    if let Ok(part) = &part {
        part.copy(start - range.start, &mut found);
    }
    if let Some(whole) = whole {
        part.unwrap_or_else(|error| panic!("{start}, {len}: {error}"));
        assert!(found == whole[start..stop], "{len} bytes at {start} in Rust");
    }
}
