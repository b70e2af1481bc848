//! Nothing that is read or written depends on uninitialized memory.
//!
//! glibc can fill the memory that it allocates and frees with a chosen byte, in C and in Rust. Each operation runs
//! with two such bytes and has to return the same. This file has one test, since the byte applies to the whole
//! process.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

#[path = "../../tests/common/mod.rs"]
mod common;

use std::fs;
use std::path::Path;

use blosc2::{
    CParams, Codec, ErrorKind, Filter, NDArray, RawItems, SChunk, SplitMode, compress, decompress,
};

use common::{KINDS, Rng, codecs, data, lossless};

/// The fill bytes. glibc fills allocated memory with their complement.
const PATTERNS: [i32; 2] = [0xa5, 0x3c];

/// Runs `work` with both fill bytes, asserts that the results are equal, and returns them.
fn twice<T: PartialEq>(what: &str, work: impl Fn() -> T) -> T {
    let [first, second] = PATTERNS.map(|pattern| {
        // SAFETY: no other thread runs; the call only changes how glibc fills memory.
        let set = unsafe { libc::mallopt(libc::M_PERTURB, pattern) };
        assert_eq!(set, 1, "mallopt");
        work()
    });
    assert!(first == second, "{what} depends on what memory held");
    first
}

fn parameters(rng: &mut Rng) -> (CParams, usize) {
    let typesize = *rng.pick(&[1, 2, 3, 4, 7, 8, 16, 100, 255, 256, 300]);
    let mut filters: Vec<Filter> = Vec::new();
    for at in 0..rng.below(4) {
        filters.push(lossless(typesize, at == 0, rng));
    }
    let mut params = CParams::new()
        .codec(*rng.pick(&codecs()))
        .typesize(typesize)
        .level(rng.below(10) as u8)
        .split(*rng.pick(&[SplitMode::Auto, SplitMode::Always, SplitMode::Never]))
        .filters(&filters);
    if rng.below(2) == 0 {
        params = params.blocksize(typesize * (1 + rng.below(600) as usize));
    }
    if rng.below(4) == 0 && params.codec != Codec::BloscLz && params.codec != Codec::Zlib {
        params = params.dictionary(true);
    }
    (params, typesize)
}

fn chunks(rounds: usize) {
    let mut rng = Rng(5);
    let (mut read, mut refused) = (0, 0);
    for round in 0..rounds {
        let (params, typesize) = parameters(&mut rng);
        let source = data(*rng.pick(&KINDS), rng.below(20_000) as usize, round as u64);
        let what = format!("round {round}: {} bytes with {params:?}", source.len());
        let compressed = twice(&what, || compress(&source[..], &params).ok());
        let Some(chunk) = compressed else {
            continue; // Filters that need whole items.
        };
        assert!(twice(&what, || decompress::<u8>(&chunk).unwrap()) == source, "{what}");

        for damage in 0..8 {
            let mut broken = chunk.clone();
            for _ in 0..1 + rng.below(3) {
                let end = if damage < 4 { chunk.len().min(32) } else { chunk.len() };
                // Except for the high bytes of the length, which would make it slow.
                let at = rng.below(end as u64) as usize;
                let at = if matches!(at, 6 | 7) { 5 } else { at };
                broken[at] = match rng.below(3) {
                    0 => broken[at] ^ (1 << rng.below(8)),
                    1 => rng.next() as u8,
                    _ => *rng.pick(&[0, 1, 0x7f, 0x80, 0xff]),
                };
            }
            // An error may depend on the damaged bytes, but not on memory.
            let result = twice(&format!("damage {damage} of {what} ({typesize})"), || {
                decompress::<u8>(&broken).map_err(|error| error.to_string())
            });
            if result.is_ok() { read += 1 } else { refused += 1 }
        }
    }
    assert!(read > rounds && refused > rounds, "{read} read, {refused} refused");
}

fn files(folder: &Path) {
    let mut rng = Rng(6);
    for round in 0..30 {
        let (mut params, typesize) = parameters(&mut rng);
        params.blocksize = None; // Arrays have block shapes.
        let shape = [1 + rng.below(30), 1 + rng.below(40)];
        let items = (shape[0] * shape[1]) as usize;
        let source = data(*rng.pick(&KINDS), items * typesize, round);
        let what = format!("file {round} of {shape:?} with {params:?}");
        let path = folder.join(format!("{round}.b2nd"));
        let dtype = format!("|V{typesize}");
        let file = twice(&what, || {
            let builder = NDArray::builder().chunk_shape([7, 11]).block_shape([3, 4]);
            let builder = builder.cparams(params.clone());
            let made =
                builder.target(&path).dtype(&dtype, typesize).from_slice(RawItems(&source), shape);
            assert!(made.is_ok(), "{what}: {made:?}");
            drop(made);
            let file = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            file
        });
        fs::write(&path, &file).unwrap();
        let part = [shape[0] / 2..shape[0], shape[1] / 3..shape[1]];
        twice(&what, || NDArray::open(&path).unwrap().read::<RawItems>(&part).unwrap().0);

        for damage in 0..8 {
            let mut broken = file.clone();
            let at = rng.below(file.len() as u64) as usize;
            broken[at] = rng.next() as u8;
            fs::write(&path, broken).unwrap();
            let kind = |error: blosc2::Error| error.kind();
            let _same = twice(&format!("damage {damage} of {what}"), || {
                let chunks = SChunk::open(&path).map_err(kind).map(|schunk| {
                    let chunks = schunk.iter_chunks::<u8>().map(|chunk| chunk.map_err(kind));
                    chunks.collect::<Vec<Result<Vec<u8>, ErrorKind>>>()
                });
                let array = NDArray::open(&path)
                    .and_then(|array| array.read::<RawItems>(&part).map(|items| items.0));
                (chunks, array.map_err(kind))
            });
        }
    }
}

#[test]
fn what_memory_held_is_neither_read_nor_written() {
    let folder = tempfile::tempdir().unwrap();
    chunks(500);
    files(folder.path());
}
