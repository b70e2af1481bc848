//! Items of a chunk, decompressed without the rest of their block, compared with C, which decompresses whole blocks: by
//! codec, filter, and split of the blocks, for parts of several lengths at random positions. One thread, measured
//! alternately in one run. `cargo xtask bench parts` runs it.
//!
//! The table shows the minima over the rounds in µs: C, this crate, and a decoding in parts regardless of the length
//! of the part.

use std::hint::black_box;
use std::ptr;
use std::time::Instant;

use blosc2::{CParams, ChunkRef, Codec, DParams, Decompressor, Filter, SplitMode, Threads};
use blosc2_format::chunk::{PartialChunk, PartialDecoder};
use blosc2_sys as sys;
use blosc2_testing::Rng;

/// The items of a block and of a chunk, in `f32`.
const BLOCK: usize = 1 << 16;
const CHUNK: usize = BLOCK * 8;
const ROUNDS: usize = 30;
const CALLS: usize = 100;
const LENGTHS: [usize; 5] = [1, 1 << 12, 1 << 13, 1 << 14, 1 << 15];

fn main() {
    println!("codec    filter      split   items      C   ours  parts   C / ours  C / parts");
    for codec in [Codec::BloscLz, Codec::Lz4, Codec::Zstd] {
        let shuffle: &[Filter] = &[Filter::Shuffle];
        let filters =
            [shuffle, &[Filter::Shuffle, Filter::Bytedelta(4)], &[Filter::Bitshuffle], &[]];
        for filters in filters {
            for split in [SplitMode::Always, SplitMode::Never] {
                if split == SplitMode::Never || filters.first() == Some(&Filter::Shuffle) {
                    compare(codec, filters, split);
                }
            }
        }
    }
}

fn compare(codec: Codec, filters: &[Filter], split: SplitMode) {
    let params = CParams::new().codec(codec).filters(filters).typesize(4).split(split);
    let params = params.blocksize(4 * BLOCK).threads(Threads::ONE);
    let items: Vec<f32> = (0..CHUNK as u32)
        .map(|at| (f64::from(at / 8192) / 8192.0, f64::from(at % 8192) / 8192.0 + 0.1))
        .map(|(u, v)| ((u * u * (3.0 - 2.0 * u)) * (1.0 + v * v) + 0.25 * v) as f32)
        .collect();
    let bytes: Vec<u8> = blosc2::compress(&items, &params).unwrap();
    let chunk = ChunkRef::new(&bytes).unwrap();
    if chunk.is_stored() {
        return;
    }
    let mut ours = Decompressor::new(DParams::new().threads(Threads::ONE)).unwrap();
    let mut parts = PartialDecoder::default();
    let header = blosc2_format::chunk::Header::parse(&bytes).unwrap();
    // SAFETY: the parameters are complete; the context is freed below.
    let context = unsafe { sys::blosc2_create_dctx(sys::blosc2_dparams_defaults()) };
    let name = filters.iter().map(|filter| format!("{filter} ")).collect::<String>();
    for len in LENGTHS {
        let mut rng = Rng(1);
        let starts: Vec<usize> = (0..CALLS)
            .map(|_| rng.index(CHUNK / BLOCK) * BLOCK + rng.index(BLOCK - len + 1))
            .collect();
        let mut found = vec![0f32; len];
        let mut times = [(); 3].map(|()| Vec::new());
        for round in 0..=ROUNDS {
            let mut each = |kind: usize, work: &mut dyn FnMut(usize, &mut [f32])| {
                let clock = Instant::now();
                for &start in &starts {
                    work(start, &mut found);
                    black_box(&found);
                }
                assert!(found == items[starts[CALLS - 1]..][..len], "other items");
                if round > 0 {
                    times[kind].push(clock.elapsed().as_secs_f64() * 1e6 / CALLS as f64);
                }
            };
            each(0, &mut |start, found| {
                let (start, count, size) = (start as i32, len as i32, 4 * len as i32);
                let (from, to) = (bytes.as_ptr().cast(), ptr::from_mut(found).cast());
                // SAFETY: the chunk is valid, and the target has `size` bytes.
                let code = unsafe {
                    sys::blosc2_getitem_ctx(
                        context,
                        from,
                        bytes.len() as i32,
                        start,
                        count,
                        to,
                        size,
                    )
                };
                assert_eq!(code, size);
            });
            each(1, &mut |start, found| ours.items_into(&chunk, start, found).unwrap());
            each(2, &mut |start, found| {
                let (block, at) = (start / BLOCK, start % BLOCK * 4);
                let chunk = PartialChunk::new(&header, &bytes).unwrap();
                let block = parts.decode(&chunk, block, at..at + 4 * len).unwrap();
                // SAFETY: each value of the bytes is a value of `f32`.
                let found =
                    unsafe { std::slice::from_raw_parts_mut(found.as_mut_ptr().cast(), 4 * len) };
                block.copy(at, found);
            });
        }
        let [c, ours, parts] = times.map(|times| times.into_iter().fold(f64::INFINITY, f64::min));
        println!(
            "{:<8} {name:<11} {:<7} {len:>5} {c:>6.1} {ours:>6.1} {parts:>6.1} {:>10.2} {:>10.2}",
            codec.to_string(),
            split == SplitMode::Always,
            c / ours,
            c / parts
        );
    }
    // SAFETY: nothing uses the context any more.
    unsafe { sys::blosc2_free_ctx(context) };
}
