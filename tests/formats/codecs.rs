//! The codecs of `blosc2-format` against those of the C library: one stream in a chunk of one block.

use blosc2::{CParams, Codec, SplitMode, Threads};
use blosc2_format::chunk::{self, Chunk, Encoder, Params};
use blosc2_format::{Error, Limits};

use crate::common::{KINDS, Rng, assert_same, codecs, data, repeats};
use crate::{IDENTICAL, assert_chunk};

/// Where the stream of the only block begins: after the header, the block's start and its size.
const STREAM: usize = 32 + 4 + 4;

/// Lengths below, between and above the thresholds of the encoders.
const LENGTHS: [usize; 24] = [
    1, 12, 13, 15, 16, 31, 32, 65, 66, 67, 127, 128, 255, 1000, 4096, 8191, 10_000, 32_768, 65_535,
    65_546, 65_547, 70_000, 131_073, 300_000,
];

fn c_encode(codec: Codec, level: u8, data: &[u8]) -> Vec<u8> {
    let params = CParams::new()
        .codec(codec)
        .level(level)
        .typesize(1)
        .filters(&[])
        .split(SplitMode::Never)
        .blocksize(data.len())
        .threads(Threads::ONE);
    blosc2::compress(data, &params).unwrap()
}

fn encode(codec: u8, level: u8, data: &[u8]) -> Vec<u8> {
    let params = Params {
        codec,
        level,
        typesize: 1,
        filters: [0; 6],
        split: chunk::SplitMode::Never,
        blocksize: Some(data.len() as u32),
        ..Params::default()
    };
    Encoder::new(params).unwrap().encode(data).unwrap()
}

fn decode(chunk: &[u8]) -> Result<Vec<u8>, Error> {
    Chunk::new(chunk, &Limits::default())?.decode()
}

#[test]
fn blosclz_and_lz4_write_the_streams_of_c() {
    let all = [(Codec::BloscLz, 0), (Codec::Lz4, 1)];
    for (codec, code) in all.into_iter().filter(|(_, code)| IDENTICAL.contains(code)) {
        for kind in KINDS {
            for len in LENGTHS {
                let source = data(kind, len, len as u64);
                for level in 1..=9 {
                    let what = format!("{codec}, level {level}, {kind:?}, {len} bytes");
                    let found = encode(code, level, &source);
                    assert_chunk(&found, &c_encode(codec, level, &source), &what);
                }
            }
        }
    }
}

#[test]
fn either_decodes_what_the_other_writes() {
    for codec in codecs() {
        let code = match codec {
            Codec::Zlib => Some(4),
            Codec::Zstd => Some(5),
            _ => None,
        };
        for kind in KINDS {
            for len in LENGTHS {
                let source = data(kind, len, len as u64);
                for level in [1, 5, 9] {
                    let what = format!("{codec}, level {level}, {kind:?}, {len} bytes");
                    let chunk = c_encode(codec, level, &source);
                    assert_same(&decode(&chunk).unwrap(), &source, &what);
                    if let Some(code) = code {
                        let chunk = encode(code, level, &source);
                        assert_same(&blosc2::decompress::<u8>(&chunk).unwrap(), &source, &what);
                    }
                }
            }
        }
    }
}

#[test]
fn dictionaries_of_c_are_understood() {
    for codec in codecs() {
        if matches!(codec, Codec::BloscLz | Codec::Zlib) {
            continue;
        }
        let mut used = 0;
        for kind in KINDS {
            for blocksize in [512, 2048, 16_384] {
                let source = data(kind, 200_000, blocksize as u64);
                let params = CParams::new()
                    .codec(codec)
                    .typesize(4)
                    .blocksize(blocksize)
                    .dictionary(true)
                    .threads(Threads::ONE);
                let chunk = blosc2::compress(&source, &params).unwrap();
                let read = Chunk::new(&chunk, &Limits::default()).unwrap();
                used += usize::from(read.dictionary().is_some());
                let what = format!("{codec}, {kind:?}, blocks of {blocksize} bytes");
                assert_same(&read.decode().unwrap(), &source, &what);
            }
        }
        assert!(used >= 6, "{codec}: {used} chunks have a dictionary");
    }
}

#[test]
fn c_decodes_whatever_is_decoded_here() {
    let rng = &mut Rng(11);
    let rounds = repeats(6000);
    for codec in codecs() {
        let mut accepted = 0;
        for round in 0..rounds {
            let len = 1 + rng.below(if round % 8 == 0 { 5000 } else { 400 }) as usize;
            let source = data(*rng.pick(&KINDS), len, rng.next());
            let mut chunk = c_encode(codec, 1 + rng.below(9) as u8, &source);
            if chunk.len() <= STREAM {
                continue;
            }
            for _ in 0..1 + rng.below(3) {
                // The first bytes matter most.
                let most = (chunk.len() - STREAM).min(if rng.below(2) == 0 { 12 } else { 1 << 20 });
                let at = STREAM + rng.below(most as u64) as usize;
                chunk[at] = match rng.below(3) {
                    0 => chunk[at] ^ (1 << rng.below(8)),
                    1 => *rng.pick(&[0, 1, 15, 31, 32, 224, 240, 255]),
                    _ => rng.next() as u8,
                };
            }
            if let Ok(found) = decode(&chunk) {
                let what = format!("{codec}, round {round}");
                assert_same(&blosc2::decompress::<u8>(&chunk).unwrap(), &found, &what);
                accepted += 1;
            }
        }
        assert!(accepted > rounds / 30, "{codec}: only {accepted} mutants are decoded");
    }
}
