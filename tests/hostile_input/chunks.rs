//! Bytes that are not a valid chunk: every call returns an error or data. `cargo xtask sanitize` runs these tests under
//! the address sanitizer.

use blosc2::{Check, Chunk, ChunkRef, DParams, Decompressor, ErrorKind, Threads};
use blosc2_testing::mutants::mutant;

use crate::common::mutants::samples;
use crate::common::{Kind, Rng, data, repeats};

/// The number of byte strings in a long run; see `repeats`.
const STRINGS: usize = 100_000;
/// The maximum size of the data: larger data takes long.
const LARGEST: usize = 1 << 20;

/// The outcomes of the strings.
#[derive(Debug, Default)]
struct Outcomes {
    no_chunk: usize,
    data: usize,
    error: usize,
    large: usize,
}

/// Calls every function on bytes that may be a chunk.
fn try_all(bytes: &[u8], decompressor: &mut Decompressor, rng: &mut Rng, outcomes: &mut Outcomes) {
    let Ok(chunk) = ChunkRef::validated(bytes, Check::Header) else {
        assert!(Chunk::new(bytes.to_vec()).is_err(), "less was looked at, and more was found");
        outcomes.no_chunk += 1;
        return;
    };
    if chunk.nbytes() > LARGEST {
        outcomes.large += 1;
        return;
    }
    let looked_at = Chunk::new(bytes.to_vec());
    let sound = ChunkRef::validated(bytes, Check::Content);
    assert!(looked_at.is_ok() || sound.is_err(), "its blocks are broken, its content is not");
    let whole = decompressor.decompress::<u8>(&chunk);
    match &whole {
        Ok(data) => {
            assert_eq!(data.len(), chunk.nbytes());
            outcomes.data += 1;
        }
        Err(error) => {
            let kind = error.kind();
            use ErrorKind::{InvalidData, Library, OutOfMemory, Unsupported};
            let expected = [InvalidData, Library, OutOfMemory, Unsupported].contains(&kind);
            assert!(expected, "{error}");
            // A sound chunk may still need a filter that only arrays have.
            assert!(sound.is_err() || kind == Unsupported || kind == Library, "{error}");
            outcomes.error += 1;
        }
    }

    // Parts return the same data as the whole, or an error.
    let same = |found: blosc2::Result<Vec<u8>>, start: usize| {
        if let (Ok(found), Ok(whole)) = (found, &whole) {
            assert!(found == whole[start..start + found.len()], "at {start}");
        }
    };
    let (from, to) = (rng.below(chunk.nbytes() as u64 + 1), rng.below(chunk.nbytes() as u64 + 1));
    let (from, to) = (from.min(to) as usize, from.max(to) as usize);
    same(decompressor.items(&chunk, from..to), from);
    let block = rng.below(chunk.nblocks() as u64 + 1) as usize;
    if let Ok(Some(range)) = chunk.block_range(block) {
        same(decompressor.block(&chunk, block), range.start);
    }
    if chunk.nblocks() <= LARGEST {
        let wanted: Vec<bool> = (0..chunk.nblocks()).map(|_| rng.below(2) == 0).collect();
        let mut target = vec![0; chunk.nbytes()];
        let some = decompressor.decompress_masked(&chunk, &wanted, &mut target);
        let broken = whole.is_err() || looked_at.is_err();
        assert!(some.is_ok() || broken, "some blocks fail, all do not: {some:?}");
        if let Ok(blocks) = decompressor.blocks(&chunk) {
            same(Ok(blocks.into_bytes()), 0);
        }
    }
}

#[test]
fn bytes_give_an_error_or_data() {
    let strings = repeats(STRINGS);
    let samples = samples();
    let mut rng = Rng(77);
    let mut outcomes = Outcomes::default();
    // One decompressor for all: a damaged chunk must not affect the next one.
    let threads = |count| DParams::new().threads(Threads::new(count));
    let mut decompressors = [1, 1, 1, 3].map(|count| Decompressor::new(&threads(count)).unwrap());
    for number in 0..strings {
        let decompressor = &mut decompressors[number % 4];
        let bytes = match rng.below(10) {
            0 => data(Kind::Random, rng.below(100) as usize, rng.next()),
            _ => mutant(&rng.pick(&samples).1, &mut rng),
        };
        try_all(&bytes, decompressor, &mut rng, &mut outcomes);
    }
    // Valid chunks still decompress afterwards.
    for (what, chunk) in &samples {
        let chunk = ChunkRef::new(chunk).unwrap_or_else(|error| panic!("{what}: {error}"));
        for decompressor in &mut decompressors {
            decompressor.decompress::<u8>(&chunk).unwrap_or_else(|e| panic!("{what}: {e}"));
        }
    }
    let Outcomes { no_chunk, data, error, .. } = outcomes;
    let enough = strings / 20;
    assert!(no_chunk > enough && data > enough && error > enough, "{outcomes:?}");
}
