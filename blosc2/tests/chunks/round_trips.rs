//! Compressed data decompresses to the same data in every way: a property over all parameters at once.

use std::panic::catch_unwind;

use blosc2::{ChunkRef, Compressor, DParams, Decompressor, Filter};

use crate::common::round_trip::Case;
use crate::common::{KINDS, Rng, assert_same, data, repeats};

/// The number of cases in a long run; see `repeats`.
const CASES: usize = 10_000;
/// Threads to try them on, so that contexts of several threads meet.
const WORKERS: u64 = 2;

#[test]
fn whatever_is_compressed_comes_back() {
    let cases = repeats(CASES) as u64;
    let failed = move |worker| {
        let seeds = (0..cases).filter(move |seed| seed % WORKERS == worker);
        let fails = |seed: &u64| catch_unwind(|| Case::random(*seed).check()).is_err();
        seeds.filter(fails).map(|seed| format!("{:?}", Case::random(seed))).collect::<Vec<_>>()
    };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let workers = (0..WORKERS).map(|worker| scope.spawn(move || failed(worker)));
        let workers: Vec<_> = workers.collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{} cases fail:\n{}", failed.len(), failed.join("\n"));
}

/// Compressing and decompressing has no effect on the next buffer.
#[test]
fn contexts_do_the_same_whatever_came_before() {
    let mut decompressor = Decompressor::new(&DParams::new()).unwrap();
    for seed in 0..repeats(400) as u64 {
        let case = Case::random(seed);
        let rng = &mut Rng(seed);
        let mut compressor = Compressor::new(&case.params).unwrap();
        for step in 0..8 {
            let mut len = rng.below(20_000) as usize >> rng.below(14);
            if case.params.filters.first() == Some(&Filter::Delta) {
                len -= len % case.typesize;
            }
            let source = data(*rng.pick(&KINDS), len, seed);
            let what = format!("{case:?}, step {step}, {len} bytes");
            let mut fresh = Compressor::new(&case.params).unwrap();
            let chunk = match rng.below(3) {
                0 => {
                    let blocks: Vec<&[u8]> =
                        source.chunks(case.typesize * (1 + rng.below(60) as usize)).collect();
                    let chunk = compressor.compress_blocks(&blocks);
                    let expected = fresh.compress_blocks(&blocks);
                    assert_eq!(chunk.is_ok(), expected.is_ok(), "{what}: {chunk:?}, {expected:?}");
                    let Ok(chunk) = chunk else { continue };
                    let found = decompressor.blocks(&chunk).unwrap();
                    assert!(found.iter().eq(blocks.iter().copied()), "{what}");
                    for block in [0, blocks.len() / 2, blocks.len() - 1] {
                        assert_eq!(decompressor.block(&chunk, block).unwrap(), blocks[block]);
                    }
                    if case.params.threads.count() == 1 {
                        assert!(chunk == expected.unwrap(), "{what}: another chunk");
                    }
                    chunk
                }
                1 if len > 32 => {
                    // Too little space, for an error.
                    let mut target = vec![0; 32 + rng.below(len as u64) as usize];
                    let len = compressor.compress_into(&source, &mut target);
                    let Ok(len) = len else { continue };
                    let chunk = ChunkRef::new(&target[..len]).unwrap();
                    chunk.into()
                }
                _ => {
                    let chunk = compressor.compress(&source).unwrap();
                    if case.params.threads.count() == 1 {
                        let expected = fresh.compress(&source).unwrap();
                        assert!(chunk == expected, "{what}: another chunk: {chunk:?} {expected:?}");
                    }
                    chunk
                }
            };
            let found = decompressor.decompress::<u8>(&chunk).unwrap();
            assert_same(&found, &source, &what);
        }
    }
}
