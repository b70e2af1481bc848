//! C reads the chunks that `blosc2-format` writes with random parameters.

use blosc2_format::Limits;
use blosc2_format::chunk::{Chunk, Encoder, Params, Special, SplitMode, special};

use crate::common::{KINDS, Kind, Rng, assert_same, data, repeats};

/// Lossless filters, and lossy ones.
const LOSSLESS: [u8; 5] = [0, 1, 2, DELTA, BYTEDELTA];
const DELTA: u8 = 3;
const BYTEDELTA: u8 = 35;
const TRUNC_PREC: u8 = 4;
const INT_TRUNC: u8 = 36;

/// Random parameters, and whether they are lossless.
fn params(rng: &mut Rng) -> (Params, bool) {
    let typesize = match rng.below(10) {
        0..=4 => *rng.pick(&[1, 2, 4, 8, 16]),
        5 => *rng.pick(&[254, 255, 256, 257]),
        _ => 1 + rng.below(300) as u32,
    };
    let mut params = Params {
        codec: *rng.pick(&[0, 1, 4, 5]),
        level: rng.below(10) as u8,
        typesize,
        split: *rng.pick(&[
            SplitMode::Always,
            SplitMode::Never,
            SplitMode::Auto,
            SplitMode::ForwardCompat,
        ]),
        ..Params::default()
    };
    if rng.below(2) == 0 {
        let size = *rng.pick(&[16, 128, 1000, 4096, 5000, 65_536]);
        params.blocksize = Some(size.max(typesize));
    }
    params.filters = [0; 6];
    for slot in 0..6 {
        if rng.below(2) == 0 {
            params.filters[slot] = *rng.pick(&LOSSLESS);
        }
        // Delta is undone with the final first block, so it has to be the first filter.
        if params.filters[slot] == DELTA && params.filters[..slot] != [0; 6][..slot] {
            params.filters[slot] = 0;
        }
        let meta = 1 + rng.below(40) as u8;
        match params.filters[slot] {
            1 if meta < 20 => params.filters_meta[slot] = meta,
            // Python does not accept items of more than 127 bytes for this parameter, which is then the
            // size of the items.
            BYTEDELTA if meta < 20 || typesize > 127 => params.filters_meta[slot] = meta,
            _ => {}
        }
    }
    let lossy = rng.below(6) == 0;
    let slot = rng.below(6) as usize;
    match typesize {
        4 | 8 if lossy && rng.below(2) == 0 => {
            (params.filters[slot], params.filters_meta[slot]) =
                (TRUNC_PREC, 1 + rng.below(20) as u8);
        }
        1 | 2 | 4 | 8 if lossy => {
            (params.filters[slot], params.filters_meta[slot]) = (INT_TRUNC, 1 + rng.below(6) as u8);
        }
        _ => return (params, true),
    }
    (params, false)
}

/// A length in bytes that is a multiple of the typesize.
fn length(typesize: u32, rng: &mut Rng) -> usize {
    let bytes = match rng.below(6) {
        0 => rng.below(40),
        1 => rng.below(3000),
        2 => 70_000 + rng.below(50_000),
        _ => rng.below(20_000),
    };
    let typesize = typesize as usize;
    (bytes as usize).div_ceil(typesize) * typesize
}

fn decode(chunk: &[u8], typesize: u32) -> Vec<u8> {
    let chunk = Chunk::new(chunk, &Limits::default()).unwrap();
    chunk.with_typesize(typesize as usize).decode().unwrap()
}

#[test]
fn chunks_are_read_by_c() {
    for seed in 0..repeats(2000) as u64 {
        let rng = &mut Rng(seed);
        let (mut params, lossless) = params(rng);
        let typesize = params.typesize;
        for (filter, meta) in params.filters.iter().zip(&mut params.filters_meta) {
            // The meaning of 0 depends on the super-chunk.
            if *filter == BYTEDELTA && *meta == 0 {
                *meta = typesize.min(255) as u8;
            }
        }
        let kind = *rng.pick(&KINDS);
        let what = format!("case {seed}: {kind:?}, {params:?}");
        let source = data(kind, length(typesize, rng), seed);
        let mut encoder = Encoder::new(params).unwrap();
        let mut blocks: Vec<&[u8]> = source.chunks(1 + rng.below(9000) as usize).collect();
        let chunk = if seed % 7 == 0 && !source.is_empty() {
            // Different lengths.
            let (first, last) = blocks[0].split_at(blocks[0].len() / 3);
            blocks.splice(0..1, [first, last]);
            blocks.retain(|block| !block.is_empty());
            encoder.encode_blocks(&blocks)
        } else {
            encoder.encode(&source)
        };
        let chunk = chunk.unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = decode(&chunk, typesize);
        if lossless {
            assert_same(&found, &source, &what);
        }
        match blosc2::decompress::<u8>(&chunk) {
            Ok(in_c) => assert_same(&in_c, &found, &what),
            Err(error) => panic!("{what}: {error}"),
        }
    }
}

#[test]
fn chunks_of_one_value_are_read_by_c() {
    for seed in 0..repeats(300) as u64 {
        let rng = &mut Rng(seed);
        let (params, _) = params(rng);
        let typesize = params.typesize;
        let kind = *rng.pick(&[Special::Zeros, Special::Nan, Special::Value, Special::Uninit]);
        if kind == Special::Nan && ![4, 8].contains(&typesize) {
            continue;
        }
        let value = data(Kind::Random, typesize as usize, seed);
        let len = length(typesize, rng).max(typesize as usize);
        let chunk = special(&params, kind, len, &value).unwrap();
        let what = format!("case {seed}: {kind:?}, {len} bytes, {params:?}");
        let found = decode(&chunk, typesize);
        match kind {
            Special::Value => assert_same(&found, &value.repeat(len / value.len()), &what),
            Special::Nan if typesize == 4 => {
                let floats = found.chunks_exact(4).map(|item| item.try_into().unwrap());
                assert!(floats.map(f32::from_le_bytes).all(f32::is_nan), "{what}");
            }
            Special::Nan => {
                let floats = found.chunks_exact(8).map(|item| item.try_into().unwrap());
                assert!(floats.map(f64::from_le_bytes).all(f64::is_nan), "{what}");
            }
            _ => assert_same(&found, &vec![0; len], &what),
        }
        let in_c = blosc2::decompress::<u8>(&chunk);
        let in_c = in_c.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_same(&in_c, &found, &what);
    }
}
