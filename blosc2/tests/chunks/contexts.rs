//! Compressors and decompressors: what their parameters do to a chunk and its header; used repeatedly, with
//! targets of any length, and on threads.
//!
//! The tests of C-Blosc2 for chunks and contexts (`c-blosc2/tests/test_*.c`), and the tests here that check the
//! same behavior:
//!
//! | upstream | here |
//! |---|---|
//! | `api` | `a_header_says_what_was_asked_for`; names of codecs: `info`, `codec` (`blosc2/src`) |
//! | `bitshuffle_leftovers` | `bitshuffle_takes_items_that_are_no_multiple_of_eight` |
//! | `bitshuffle_roundtrip`, `shuffle_roundtrip*` | `raw_filters.rs` |
//! | `blosc1_compat` | `chunks_of_blosc1_have_its_header_and_its_parts` |
//! | `compress_roundtrip` | `buffers.rs`; `upstreams_sizes_come_back_whole_and_in_parts` (`parts.rs`) |
//! | `compressor` | `processes`; `each_parameter_changes_what_comes_out`, `buffers_of_a_few_bytes` |
//! | `contexts` | `contexts_tell_their_parameters`, `other_versions_of_the_format...` |
//! | `delta` | `delta_of_every_typesize_that_upstream_tries` |
//! | `dict_schunk` | `dictionaries.rs`, `super_chunks` |
//! | `empty_buffer` | `an_empty_buffer_is_a_chunk_too` |
//! | `filters` | `bitshuffle_and_then_shuffle` |
//! | `getitem*` | `parts.rs`; of special chunks: `special.rs` |
//! | `lazychunk_memcpyed` | `stored_chunks_are_read_from_a_file` |
//! | `maskout` | `parts.rs` |
//! | `maxout` | `a_target_of_any_length...`, `hostile_input` (too much data) |
//! | `noinit` | `any_call_may_be_the_first_one` |
//! | `nolock` | `processes` (a variable that changes nothing, and forks) |
//! | `nthreads` | `any_number_of_threads_gives_the_same`, `processes`, `params` (`blosc2/src`) |
//! | `prefilter`, `postfilter`, `urcodecs`, `urfilters`, `urfilter_delta` | `user_defined.rs` |
//! | `race` | `compressors_side_by_side_keep_their_codecs` |
//! | `shared_pool`, `shared_thread_pool` | `contexts_...`, `processes` |
//! | `special_zero_nonmultiple`, `zero_runlen` | `special.rs` |
//! | `vlblocks`, `vl_block_overflow` | `variable_blocks.rs` |

use std::env;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;

use blosc2::user_defined::{BoxError, ChunkBlock};
use blosc2::{
    CParams, Check, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    SChunk, SplitMode, Threads, compress_bound,
};
use rayon::prelude::*;

use crate::common::{
    KINDS, Kind, Rng, assert_same, codecs, data, dictionary_codecs, lossless, own_process, records,
    repeats, run_alone,
};

fn compressor(params: &CParams) -> Compressor {
    Compressor::new(params).unwrap()
}

fn decompressor(threads: usize) -> Decompressor {
    Decompressor::new(&DParams::new().threads(Threads::new(threads))).unwrap()
}

#[test]
fn a_header_says_what_was_asked_for() {
    let items: Vec<i32> = (0..50_000).collect();
    for codec in codecs() {
        for (filters, threads) in [
            (&[][..], 1),
            (&[Filter::Shuffle], 1),
            (&[Filter::Delta, Filter::Bitshuffle, Filter::Bytedelta(4)], 2),
        ] {
            let params = CParams::new()
                .codec(codec)
                .level(9)
                .filters(filters)
                .blocksize(4096)
                .threads(Threads::new(threads));
            let what = format!("{params:?}");
            let chunk = compressor(&params).compress(&items).unwrap();
            assert_eq!((chunk.nbytes(), chunk.typesize()), (200_000, 4), "{what}");
            assert_eq!((chunk.blocksize(), chunk.nblocks()), (Some(4096), 49), "{what}");
            assert_eq!(chunk.filters(), filters, "{what}");
            let written = if codec == Codec::Lz4Hc { Codec::Lz4 } else { codec };
            assert_eq!((chunk.codec(), chunk.codec_meta()), (written, 0), "{what}");
            assert_eq!(chunk.cbytes(), chunk.as_bytes().len(), "{what}");
            assert_eq!(chunk.special(), None, "{what}");
            assert_eq!((chunk.is_blosc1(), chunk.format_version()), (false, 5), "{what}");
            assert!(!chunk.has_dictionary() && !chunk.has_variable_blocks(), "{what}");
            assert_eq!(chunk.is_big_endian(), cfg!(target_endian = "big"), "{what}");
            // Only the length shows whether compression gained anything; these numbers need a filter for it.
            assert_eq!(chunk.is_stored(), chunk.cbytes() == compress_bound(200_000), "{what}");
            assert!(filters.is_empty() || !chunk.is_stored(), "{what}");

            // The same properties, read from every form of a chunk.
            let borrowed = ChunkRef::new(chunk.as_bytes()).unwrap();
            assert_eq!(borrowed, chunk.borrowed(), "{what}");
            let owned = Chunk::from(borrowed);
            assert_eq!(owned, chunk, "{what}");
            assert_eq!(Chunk::new(owned.into_bytes()).unwrap(), chunk, "{what}");
        }
    }
}

#[test]
fn an_automatic_block_has_a_sensible_size() {
    for codec in codecs() {
        for level in 1..=9 {
            let params = CParams::new().codec(codec).level(level);
            let chunk = compressor(&params).compress(&[1.5f64; 200_000]).unwrap();
            let blocksize = chunk.blocksize().unwrap();
            assert!((128..=1_600_000).contains(&blocksize), "{codec}:{level}: {blocksize}");
            assert!(blocksize.is_multiple_of(8), "{codec}:{level}: {blocksize}");
        }
    }
}

#[test]
fn contexts_tell_their_parameters() {
    let params = CParams::new().codec(Codec::Lz4).level(7).threads(Threads::new(2)).typesize(9);
    assert_eq!(compressor(&params).params(), &params);
    let mut used = compressor(&params);
    used.compress(&[1u8; 900]).unwrap();
    assert_eq!(used.params(), &params);
}

/// A parameter without an effect was not passed on.
#[test]
fn each_parameter_changes_what_comes_out() {
    let items: Vec<u64> = (0..100_000).collect();
    let len = |params: &CParams| compressor(params).compress(&items).unwrap().cbytes();
    let params = || CParams::new().codec(Codec::BloscLz).level(1);
    let plain = len(&params());
    assert!(len(&params().level(9)) < plain);
    assert!(len(&params().filters(&[])) > plain);
    assert_eq!(len(&params().filters(&[Filter::Shuffle])), plain);
    assert!(len(&params().filters(&[Filter::Delta, Filter::Shuffle])) < 3 * plain / 4);
    assert!(len(&params().typesize(9)) > plain);
    assert_ne!(len(&params().blocksize(512)), plain);
    assert_ne!(len(&params().split(SplitMode::Never)), plain);
    for codec in codecs() {
        let same = codec == Codec::BloscLz;
        assert_eq!(len(&params().codec(codec)) == plain, same, "{codec}");
        let bits = params().codec(codec).filters(&[Filter::Bitshuffle]);
        assert_ne!(len(&bits), len(&params().codec(codec)), "{codec}");
    }
}

#[test]
fn buffers_of_a_few_bytes() {
    for codec in codecs() {
        for len in 0..40 {
            for blocksize in [None, Some(1), Some(2), Some(7), Some(32), Some(1000)] {
                for threads in [1, 3] {
                    let source: Vec<u8> = (0..len).map(|at| at as u8 / 3).collect();
                    let mut params = CParams::new().codec(codec).threads(Threads::new(threads));
                    params.blocksize = blocksize;
                    let chunk = compressor(&params).compress(&source).unwrap();
                    let what = format!("{codec}, {len} bytes, {blocksize:?}, {threads} threads");
                    let found: Vec<u8> = decompressor(threads).decompress(&chunk).unwrap();
                    assert_eq!(found, source, "{what}");
                }
            }
        }
    }
}

#[test]
fn an_empty_buffer_is_a_chunk_too() {
    for codec in codecs() {
        for level in [0, 3, 9] {
            for blosc1 in [false, true] {
                for (filters, threads) in [(&[][..], 1), (&[Filter::Bitshuffle], 4)] {
                    let params = CParams::new()
                        .codec(codec)
                        .level(level)
                        .filters(filters)
                        .threads(Threads::new(threads))
                        .blosc1(blosc1);
                    let what = format!("{params:?}");
                    let chunk = compressor(&params).compress::<u32>(&[]).unwrap();
                    assert_eq!(chunk.cbytes(), if blosc1 { 16 } else { 32 }, "{what}");
                    assert_eq!((chunk.nbytes(), chunk.nblocks()), (0, 0), "{what}");
                    let mut decompressor = decompressor(threads);
                    assert!(decompressor.decompress::<f64>(&chunk).unwrap().is_empty(), "{what}");
                    decompressor.decompress_into::<u8>(&chunk, &mut []).unwrap();
                    decompressor.decompress_masked(&chunk, &[], &mut []).unwrap();
                    assert!(decompressor.items::<u64>(&chunk, ..).unwrap().is_empty(), "{what}");
                    assert!(decompressor.blocks(&chunk).unwrap().is_empty(), "{what}");
                    let error = decompressor.block(&chunk, 0).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{what}: {error}");
                    let error = decompressor.items::<u8>(&chunk, 0..1).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{what}: {error}");
                    let mut rest = [1u8];
                    assert_eq!(decompressor.decompress_into(&chunk, &mut rest).unwrap(), 0);
                    assert_eq!(rest, [1], "{what}");
                }
            }
        }
    }
}

#[test]
fn bitshuffle_takes_items_that_are_no_multiple_of_eight() {
    // Neither the bytes nor the items are a multiple of 8.
    let all: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    for len in [641_092, 641_093, 641_095, 641_099] {
        let source = &all[..len];
        for typesize in [4, 8] {
            for blosc1 in [false, true] {
                let params = CParams::new()
                    .codec(Codec::Lz4)
                    .level(9)
                    .filters(&[Filter::Bitshuffle])
                    .typesize(typesize)
                    .blosc1(blosc1);
                let chunk = compressor(&params).compress(source).unwrap();
                assert!(!chunk.is_stored(), "{params:?}");
                let what = format!("{len} bytes, {params:?}");
                assert_same(&chunk.decompress::<u8>().unwrap(), source, &what);
                let format = blosc2_format::chunk::Chunk::new(
                    chunk.as_bytes(),
                    &blosc2_format::Limits::default(),
                );
                assert_same(&format.unwrap().decode().unwrap(), source, &what);
            }
        }
    }
}

#[test]
fn bitshuffle_and_then_shuffle() {
    let items: Vec<u16> = (0..39).map(|item| item * 37 % 118).collect();
    let filters = [Filter::Bitshuffle, Filter::Shuffle];
    for codec in codecs() {
        let params = CParams::new().codec(codec).filters(&filters);
        let mut schunk = SChunk::in_memory::<u16>(&params).unwrap();
        schunk.append(&items).unwrap();
        assert_eq!(schunk.decompress_chunk::<u16>(0).unwrap(), items, "{codec}");
        let chunk = compressor(&params).compress(&items).unwrap();
        assert_eq!(chunk.items::<u16>(37..).unwrap(), items[37..], "{codec}");
    }
}

#[test]
fn delta_of_every_typesize_that_upstream_tries() {
    for typesize in [1, 2, 4, 7, 8, 12, 13, 15, 16, 24, 255, 256, 300] {
        let source: Vec<u8> = (0..400_000 / typesize as u64)
            .flat_map(|item| item.to_le_bytes().into_iter().cycle().take(typesize))
            .collect();
        let params = |filters: &[Filter]| {
            CParams::new().codec(Codec::BloscLz).level(1).typesize(typesize).filters(filters)
        };
        for threads in [1, 2, 5] {
            let with = params(&[Filter::Delta, Filter::Shuffle]).threads(Threads::new(threads));
            let chunk = compressor(&with).compress(&source).unwrap();
            let found: Vec<u8> = decompressor(threads).decompress(&chunk).unwrap();
            assert_same(&found, &source, &format!("typesize {typesize}, {threads} threads"));
            if [1, 2, 4, 8].contains(&typesize) {
                let without = compressor(&params(&[Filter::Shuffle])).compress(&source).unwrap();
                assert!(chunk.cbytes() < without.cbytes(), "typesize {typesize}");
            }
        }
    }
}

#[test]
fn chunks_of_blosc1_have_its_header_and_its_parts() {
    let items: Vec<i32> = (0..100_000).collect();
    for codec in codecs() {
        for filters in [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle]] {
            for (level, threads) in [(0, 1), (1, 1), (5, 2), (6, 5)] {
                let params = CParams::new()
                    .codec(codec)
                    .filters(filters)
                    .level(level)
                    .threads(Threads::new(threads))
                    .blosc1(true);
                let what = format!("{params:?}");
                let chunk = compressor(&params).compress(&items).unwrap();
                assert!(chunk.is_blosc1() && chunk.format_version() == 2, "{what}");
                assert!(chunk.cbytes() <= 400_016, "{what}");
                assert_eq!(chunk.is_stored(), chunk.cbytes() == 400_016, "{what}");
                assert_eq!((chunk.nbytes(), chunk.typesize()), (400_000, 4), "{what}");
                if !chunk.is_stored() {
                    assert_eq!(chunk.filters(), filters, "{what}");
                }
                assert_eq!(chunk.decompress::<i32>().unwrap(), items, "{what}");
                assert_eq!(chunk.items::<i32>(1..11).unwrap(), items[1..11], "{what}");
                assert_eq!(chunk.items::<i32>(99_990..).unwrap(), items[99_990..], "{what}");
                // Zeros have no short form there, but compress well.
                let zeros = compressor(&params).compress(&[0i32; 100_000]).unwrap();
                assert!(zeros.is_blosc1() && zeros.special().is_none(), "{what}");
                assert!(level == 0 || zeros.cbytes() < 40_000, "{what}: {}", zeros.cbytes());
                assert_eq!(zeros.decompress::<i32>().unwrap(), [0; 100_000], "{what}");
            }
        }
    }
}

#[test]
fn other_versions_of_the_format_are_refused_by_name() {
    let items: Vec<i32> = (0..50_000).collect();
    let params = CParams::new().codec(Codec::BloscLz);
    let good = blosc2::compress(&items, &params).unwrap();
    let chunk = ChunkRef::new(&good).unwrap();
    assert_eq!(chunk.items::<i32>(5..10).unwrap(), [5, 6, 7, 8, 9]);
    assert_eq!(chunk.decompress::<i32>().unwrap(), items);
    // A later version that sets no new flag is read. There is none yet.
    let mut later = good.clone();
    later[0] = 7;
    assert_eq!(blosc2::decompress::<i32>(&later).unwrap(), items);
    for (version, flags) in [(0, 0), (7, 2), (255, 0x80)] {
        let mut other = good.clone();
        (other[0], other[30]) = (version, flags);
        let error = ChunkRef::new(&other).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
        assert!(error.to_string().contains("version"), "{error}");
        assert!(error.to_string().contains(&version.to_string()), "{error}");
    }
}

#[test]
fn stored_chunks_are_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let one = folder.path().join("one.b2frame");
    let params = CParams::new().codec(Codec::BloscLz).typesize(1);
    SChunk::create::<u8>(&one, &params).unwrap().append(&[1u8]).unwrap();
    let schunk = SChunk::open(&one).unwrap();
    assert_eq!(schunk.decompress_chunk::<u8>(0).unwrap(), [1]);
    assert_eq!(compressor(&params).compress(&[1u8]).unwrap().cbytes(), 33);

    // Without a filter compression gains nothing, and the blocks do not divide the chunk.
    let items: Vec<i32> = (0..2000).collect();
    let params = CParams::new().codec(Codec::BloscLz).filters(&[]).blocksize(1984);
    let chunk = compressor(&params).compress(&items).unwrap();
    assert!(chunk.is_stored() && chunk.cbytes() == 8032);
    assert_eq!(chunk.items::<i32>(1999..).unwrap(), [1999]);
    assert_eq!(chunk.block(4).unwrap().len(), 8000 - 4 * 1984);
    let path = folder.path().join("stored.b2frame");
    SChunk::create::<i32>(&path, &params).unwrap().append(&items).unwrap();
    assert_eq!(SChunk::open(&path).unwrap().decompress_chunk::<i32>(0).unwrap(), items);
}

#[test]
fn how_closely_a_chunk_is_looked_at_is_up_to_the_caller() {
    let source = records(60_000);
    let depths = [Check::Header, Check::Structure, Check::Content];
    // The faults that each depth finds. A chunk that passes decompresses; a good one to the source.
    let find = |bytes: &[u8], good: bool| {
        depths.map(|depth| match ChunkRef::validated(bytes, depth) {
            Ok(chunk) => {
                let data = decompressor(3).decompress::<u8>(&chunk);
                assert_eq!(data.is_ok_and(|data| data == source), good, "{depth:?}");
                None
            }
            Err(error) => Some(error.kind()),
        })
    };
    let broken = |bytes: Vec<u8>| find(&bytes, false);
    const BAD: Option<ErrorKind> = Some(ErrorKind::InvalidData);
    for codec in dictionary_codecs() {
        let params = CParams::new().codec(codec).filters(&[]).blocksize(1000).dictionary(true);
        let good = blosc2::compress(&source, &params).unwrap();
        assert!(ChunkRef::new(&good).unwrap().has_dictionary());
        assert_eq!(find(&good, true), [None; 3], "{codec}");
        let put = |at: usize, number: u32| {
            let mut bytes = good.clone();
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
            bytes
        };
        let len = good.len() as u32;
        // The start of a block: in the header, in the table, outside.
        for start in [0, 16, 32, 271, len, len + 1, 1 << 31, u32::MAX] {
            for block in [0, 30, 59] {
                let what = format!("{codec}, block {block} at {start}");
                assert_eq!(broken(put(32 + 4 * block, start)), [None, BAD, BAD], "{what}");
            }
        }
        // A dictionary that is outside the chunk.
        for size in [len, 1 << 31, u32::MAX] {
            let what = format!("{codec}, a dictionary of {size} bytes");
            assert_eq!(broken(put(32 + 4 * 60, size)), [None, BAD, BAD], "{what}");
        }
        // A stream that is longer than the chunk.
        let last = u32::from_le_bytes(good[32 + 4 * 59..][..4].try_into().unwrap());
        for size in [len, i32::MAX as u32] {
            let what = format!("{codec}, a stream of {size} bytes");
            assert_eq!(broken(put(last as usize, size)), [None, None, BAD], "{what}");
        }
        // Inconsistent fields.
        assert_eq!(broken(put(12, len + 1)), [BAD; 3], "{codec}");
        assert_eq!(broken(put(4, 1 << 31)), [BAD; 3], "{codec}");
        assert_eq!(broken(put(8, 0)), [BAD; 3], "{codec}");
    }
}

/// Parameters of all kinds, for items of one size.
fn params(rng: &mut Rng, typesize: usize) -> CParams {
    let mut filters = Vec::new();
    for position in 0..rng.below(4) {
        filters.push(lossless(typesize, position == 0, rng));
    }
    let codec = *rng.pick(&codecs());
    let mut params = CParams::new().codec(codec).level(rng.below(10) as u8).filters(&filters);
    if rng.below(2) == 0 {
        params = params.blocksize(typesize.max(*rng.pick(&[16, 100, 1000, 5000])));
    }
    if rng.below(3) == 0 && dictionary_codecs().contains(&codec) {
        params = params.dictionary(true);
    }
    params
}

#[test]
fn a_compressor_writes_the_same_when_it_was_used_for_something_else() {
    let rng = &mut Rng(1);
    let mut dictionaries = 0;
    for _ in 0..60 {
        let params = params(rng, 8);
        let mut used = compressor(&params);
        for round in 0..6 {
            let len = *rng.pick(&[0, 1, 8, 17, 100, 4000, 4000, 20_001, 60_000]) / 8 * 8;
            let source = data(*rng.pick(&KINDS), len, rng.next());
            let what = format!("round {round}, {len} bytes, {params:?}");
            // Items of different types have different typesizes, unless the parameters say one.
            let (one, other) = match rng.below(3) {
                0 => (used.compress(&source), compressor(&params).compress(&source)),
                1 => {
                    let items: Vec<u64> = source.chunks(8).map(word).collect();
                    (used.compress(&items), compressor(&params).compress(&items))
                }
                _ => {
                    // A failed call, and then the same call as before.
                    let error = used.compress_into(&source, &mut [0; 20]).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{what}: {error}");
                    (used.compress(&source), compressor(&params).compress(&source))
                }
            };
            let (one, other) = (one.unwrap(), other.unwrap());
            assert_same(one.as_bytes(), other.as_bytes(), &what);
            assert_same(&one.decompress::<u8>().unwrap(), &source, &what);
            dictionaries += usize::from(one.has_dictionary());
        }
    }
    assert!(dictionaries > 5, "{dictionaries}");
}

fn word(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().unwrap())
}

/// A chunk of some kind, with its data, or `None` if it is broken.
type Sample = (String, Chunk, Option<Vec<u8>>);

/// Chunks of every kind that a decompressor may meet in a row.
fn samples() -> Vec<Sample> {
    let rng = &mut Rng(2);
    let mut samples: Vec<Sample> = Vec::new();
    for round in 0..60 {
        let typesize = *rng.pick(&[1, 2, 4, 8, 24, 255, 300]);
        let params = params(rng, typesize).typesize(typesize);
        let len = typesize * *rng.pick(&[1, 7, 50, 300]);
        let source = data(*rng.pick(&KINDS), len, round);
        let chunk = compressor(&params).compress(&source).unwrap();
        samples.push((format!("{params:?}"), chunk, Some(source)));
    }
    for codec in dictionary_codecs() {
        let source = records(90_000);
        let params = CParams::new().codec(codec).dictionary(true).blocksize(1000);
        let chunk = compressor(&params).compress(&source).unwrap();
        assert!(chunk.has_dictionary());
        samples.push((format!("{codec} dictionary"), chunk, Some(source.clone())));
        let blocks: Vec<&[u8]> = source.chunks(700).collect();
        let chunk = compressor(&params).compress_blocks(&blocks).unwrap();
        samples.push((format!("{codec} dictionary, variable blocks"), chunk, Some(source)));
    }
    let plain = CParams::new().codec(Codec::Lz4);
    let source = data(Kind::Mixed, 20_000, 4);
    let blosc1 = plain.clone().blosc1(true).filters(&[Filter::Bitshuffle]);
    let chunk = compressor(&blosc1).compress(&source).unwrap();
    samples.push(("blosc1".to_owned(), chunk, Some(source.clone())));
    let chunk = Chunk::repeat(&[1u8, 2, 3], 1000, &CParams::new()).unwrap();
    samples.push(("repeated".to_owned(), chunk, Some([1, 2, 3].repeat(1000))));
    let chunk = Chunk::uninit::<u8>(5000, &CParams::new()).unwrap();
    samples.push(("uninit".to_owned(), chunk, Some(vec![0; 5000])));
    // Faults in the streams, which only decompression detects.
    for codec in codecs() {
        let params = plain.clone().codec(codec).filters(&[]).blocksize(1000);
        let source = data(Kind::Runs, 20_000, 5);
        let mut bytes = blosc2::compress(&source, &params).unwrap();
        // The length of the stream of the 15th block, of 20.
        let start = u32::from_le_bytes(bytes[32 + 56..32 + 60].try_into().unwrap()) as usize;
        bytes[start..start + 4].copy_from_slice(&i32::MAX.to_le_bytes());
        let chunk = Chunk::new(bytes).unwrap();
        assert!(chunk.decompress::<u8>().is_err(), "{codec}");
        samples.push((format!("broken {codec}"), chunk, None));
    }
    samples
}

#[test]
fn a_decompressor_reads_chunks_of_any_kind_in_any_order() {
    let samples = samples();
    for threads in [1, 2, 5] {
        let rng = &mut Rng(threads as u64);
        let mut decompressor = decompressor(threads);
        let mut before = String::new();
        for _ in 0..1000 {
            let (what, chunk, source) = rng.pick(&samples);
            let what = format!("{what}, {threads} threads, after {before}");
            before = read_somehow(&mut decompressor, chunk, source.as_deref(), &what, rng);
        }
    }
}

/// Reads a chunk in a random way and returns the name of that way.
fn read_somehow(
    decompressor: &mut Decompressor,
    chunk: &Chunk,
    source: Option<&[u8]>,
    what: &str,
    rng: &mut Rng,
) -> String {
    let way = rng.below(5);
    let Some(source) = source else {
        assert!(decompressor.decompress::<u8>(chunk).is_err(), "{what}");
        if way > 1 {
            assert!(decompressor.items::<u8>(chunk, 14_990..15_010).is_err(), "{what}");
            assert_eq!(decompressor.items::<u8>(chunk, 100..9000).unwrap().len(), 8900, "{what}");
        }
        return format!("{way} of broken");
    };
    let len = source.len();
    match way {
        0 => assert_same(&decompressor.decompress::<u8>(chunk).unwrap(), source, what),
        1 => {
            let mut target = vec![0xee; len];
            decompressor.decompress_into(chunk, &mut target).unwrap();
            assert_same(&target, source, what);
        }
        2 => {
            let (from, to) = (rng.below(len as u64 + 1), rng.below(len as u64 + 1));
            let range = from.min(to) as usize..from.max(to) as usize;
            let found: Vec<u8> = decompressor.items(chunk, range.clone()).unwrap();
            assert_same(&found, &source[range], what);
        }
        3 => {
            let wanted: Vec<bool> = (0..chunk.nblocks()).map(|_| rng.below(2) == 0).collect();
            let mut target = vec![0xee; len];
            decompressor.decompress_masked(chunk, &wanted, &mut target).unwrap();
            let mut expected = vec![0xee; len];
            for block in (0..wanted.len()).filter(|&block| wanted[block]) {
                let range = chunk.block_range(block).unwrap().unwrap();
                expected[range.clone()].copy_from_slice(&source[range]);
            }
            assert_same(&target, &expected, what);
        }
        _ => {
            let block = rng.below(chunk.nblocks() as u64) as usize;
            let range = chunk.block_range(block).unwrap().unwrap();
            assert_same(&decompressor.block(chunk, block).unwrap(), &source[range], what);
        }
    }
    format!("{way} of {} bytes, dictionary {}", len, chunk.has_dictionary())
}

#[test]
fn a_target_of_any_length_takes_the_chunk_or_says_that_it_is_too_small() {
    let mut rng = Rng(7);
    for _ in 0..repeats(400) {
        for len in [0, 1, 16, 31, 32, 33, 130, 600] {
            let blosc1 = rng.below(2) == 0;
            let source = data(*rng.pick(&KINDS), len, 1);
            let &(level, blocksize) = rng.pick(&[(0, 100), (1, 40), (6, 1000)]);
            let mut params = CParams::new()
                .codec(*rng.pick(&codecs()))
                .level(level)
                .typesize(*rng.pick(&[1, 4]))
                .blocksize(blocksize)
                .threads(Threads::new(1 + rng.below(2) as usize))
                .blosc1(blosc1);
            if rng.below(2) == 0 && !blosc1 {
                params = params.filters(&[Filter::Bitshuffle, Filter::Shuffle]);
            }
            check_rooms(&source, &params);
        }
    }
    // With dictionaries, which take room too.
    for codec in dictionary_codecs() {
        let source = data(Kind::Runs, 8000, 1);
        check_rooms(&source, &CParams::new().codec(codec).blocksize(1000).dictionary(true));
    }
}

fn check_rooms(source: &[u8], params: &CParams) {
    let mut compressor = compressor(params);
    let whole = compressor.compress(source).unwrap();
    let bound = source.len() + if params.blosc1 { 16 } else { 32 };
    assert!(whole.cbytes() <= bound && bound <= compress_bound(source.len()));
    let steps = if bound > 2000 { 13 } else { 1 };
    for room in (0..bound).step_by(steps).chain(bound..bound + 3).chain([bound + 5000]) {
        let what = format!("room for {room} of {bound}, {} bytes, {params:?}", source.len());
        let mut target = vec![0xa5; room + 64];
        let (place, after) = target.split_at_mut(room);
        match compressor.compress_into(source, place) {
            Ok(len) => {
                assert!(len <= room.min(bound), "{what}: {len}");
                let found = blosc2::decompress::<u8>(&place[..len]).unwrap();
                assert_same(&found, source, &what);
                // Threads write blocks in the order in which they finish.
                if room >= bound && params.threads == Threads::ONE {
                    assert_same(&place[..len], whole.as_bytes(), &what);
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{what}: {error}");
                assert!(room < bound, "{what}: {error}");
                assert!(error.to_string().contains(&format!("{room} bytes")), "{what}: {error}");
            }
        }
        assert!(after.iter().all(|&byte| byte == 0xa5), "{what}");
        let beyond = &target[room.min(bound)..room];
        assert!(beyond.iter().all(|&byte| byte == 0xa5), "{what}");
        // A stored chunk has the maximum length.
        if room < bound && whole.is_stored() {
            assert!(compressor.compress_into(source, &mut target[..room]).is_err(), "{what}");
        }
    }
}

#[test]
fn uninitialised_targets_are_initialised_as_far_as_they_are_given() {
    let items: Vec<u32> = (0..3000).collect();
    let mut compressor = compressor(&CParams::new().codec(Codec::Lz4));
    let mut target = Vec::with_capacity(compress_bound(12_000) + 10);
    let chunk = compressor.compress_uninit(&items, target.spare_capacity_mut()).unwrap();
    assert_eq!(blosc2::decompress::<u32>(chunk).unwrap(), items);
    let chunk = ChunkRef::new(chunk).unwrap();

    let mut decompressor = decompressor(2);
    for len in [0, 1, 11_999] {
        let mut place = Vec::with_capacity(len);
        let place = &mut place.spare_capacity_mut()[..len];
        let error = decompressor.decompress_uninit(&chunk, place).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{error}");
        let message = error.to_string();
        assert!(message.contains("12000") && message.contains(&len.to_string()), "{message}");
        let error = decompressor.decompress_into(&chunk, &mut vec![0u8; len]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{error}");
    }
    let expected: Vec<u8> = items.iter().flat_map(|item| item.to_ne_bytes()).collect();
    for len in [12_000, 12_001, 20_000] {
        let mut place = Vec::with_capacity(len);
        let found = decompressor.decompress_uninit(&chunk, place.spare_capacity_mut()).unwrap();
        assert_same(found, &expected, "bytes");
        let mut place = vec![9u8; len];
        assert_eq!(decompressor.decompress_into(&chunk, &mut place).unwrap(), 12_000);
        assert_same(&place[..12_000], &expected, "bytes");
        assert!(place[12_000..].iter().all(|&byte| byte == 9));
    }
    let error = decompressor.decompress_into(&chunk, &mut [[0u8; 7]; 2000]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{error}");
}

#[test]
fn chunks_and_their_data_go_to_the_end_of_vectors() {
    let mut compressor = compressor(&CParams::new().codec(Codec::Lz4));
    let mut decompressor = decompressor(1);
    let (mut chunks, mut bytes, mut expected) = (vec![1u8, 2], vec![3u8], vec![3u8]);
    for len in [0usize, 1, 5000, 100_000] {
        let source = data(Kind::Mixed, len, 5);
        let start = chunks.len();
        let len = compressor.compress_append(&source, &mut chunks).unwrap();
        assert_eq!(chunks.len(), start + len);
        assert_eq!(chunks[start..], blosc2::compress(&source, compressor.params()).unwrap());
        decompressor
            .decompress_append(&ChunkRef::new(&chunks[start..]).unwrap(), &mut bytes)
            .unwrap();
        expected.extend_from_slice(&source);
        assert_same(&bytes, &expected, "bytes");
    }
    assert_eq!(chunks[..2], [1, 2]);
    // A chunk that cannot be decompressed leaves the vector as it is.
    let mut broken = blosc2::compress(&expected, compressor.params()).unwrap();
    let last = broken.len() - 10;
    broken[last / 2..last].fill(0xff);
    if let Ok(chunk) = ChunkRef::validated(&broken, Check::Header) {
        let result = decompressor.decompress_append(&chunk, &mut bytes);
        assert!(result.is_err());
        assert_same(&bytes, &expected, "bytes");
    }
}

#[test]
fn items_of_any_type_go_to_the_end_of_vectors() {
    let mut decompressor = decompressor(1);
    let chunk = |bytes: &[u8]| compressor(&CParams::new()).compress(bytes).unwrap();
    let mut items = vec![[7u16; 3]];
    let bytes: Vec<u8> = (0..60).collect();
    assert_eq!(decompressor.decompress_append(&chunk(&bytes), &mut items).unwrap(), 10);
    assert_eq!(items.len(), 11);
    assert_eq!((items[0], items[10][2]), ([7; 3], u16::from_ne_bytes([58, 59])));
    // Not a whole number of items.
    let error = decompressor.decompress_append(&chunk(&bytes[1..]), &mut items).unwrap_err();
    assert_eq!((error.kind(), items.len()), (ErrorKind::TypeMismatch, 11));
    assert_eq!(decompressor.decompress_append(&chunk(&[]), &mut items).unwrap(), 0);
    // Other bytes are converted to bools.
    let mut bools = vec![false];
    assert_eq!(decompressor.decompress_append(&chunk(&[0, 1, 2]), &mut bools).unwrap(), 3);
    assert_eq!(bools, [false, false, true, true]);
}

#[test]
fn clones_work_side_by_side_with_the_same_parameters_and_closures() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = |calls: &Arc<AtomicUsize>| {
        let calls = calls.clone();
        move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
            calls.fetch_add(1, Relaxed);
            let input = block.input_as::<u32>()?;
            for (to, from) in block.output_as::<u32>()?.iter_mut().zip(input) {
                *to = from ^ 1;
            }
            Ok(())
        }
    };
    let params = CParams::new().codec(Codec::Lz4).level(9).blocksize(4000);
    let params = params.prefilter(counted(&calls));
    let mut compressor = compressor(&params);
    let source: Vec<Vec<u32>> = (0..6).map(|part| (part..part + 5000).collect()).collect();
    // Cloned after use too.
    let first = compressor.compress(&source[0]).unwrap();
    let chunks: Vec<Chunk> = source
        .par_iter()
        .map_with(compressor.clone(), |compressor, part| compressor.compress(part))
        .collect::<blosc2::Result<_>>()
        .unwrap();
    assert_eq!(compressor.clone().params(), &params);
    assert_eq!(chunks[0].as_bytes(), first.as_bytes());
    assert_eq!(calls.swap(0, Relaxed), 7 * 5);
    let decompressor = Decompressor::new(DParams::new().postfilter(counted(&calls))).unwrap();
    let parts: Vec<Vec<u32>> = chunks
        .par_iter()
        .map_with(decompressor.clone(), |decompressor, chunk| decompressor.decompress(chunk))
        .collect::<blosc2::Result<_>>()
        .unwrap();
    assert_eq!(parts, source);
    assert_eq!(calls.load(Relaxed), 6 * 5);
    // Settings of a clone do not affect the original.
    let mut other =
        self::compressor(&params.clone().prefilter(|_: &mut ChunkBlock<'_>| Err("refused")));
    assert_eq!(other.compress(&source[0]).unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(compressor.compress(&source[0]).unwrap().as_bytes(), first.as_bytes());
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let source = data(Kind::Mixed, 100_000, 9);
    for codec in codecs() {
        for filters in [&[Filter::Shuffle][..], &[Filter::Delta], &[Filter::Bitshuffle]] {
            for threads in [1, 2, 5, 256, 32_768] {
                let params = CParams::new()
                    .codec(codec)
                    .level(3)
                    .typesize(8)
                    .blocksize(8000)
                    .filters(filters)
                    .threads(Threads::new(threads));
                let chunk = compressor(&params).compress(&source).unwrap();
                for readers in [1, threads] {
                    let found: Vec<u8> = decompressor(readers).decompress(&chunk).unwrap();
                    assert_same(&found, &source, &format!("{readers} threads, {params:?}"));
                }
            }
        }
    }
}

#[test]
fn contexts_share_threads_and_end_in_any_order() {
    let source = data(Kind::Ramp, 200_000, 1);
    let rng = &mut Rng(3);
    for round in 0..30 {
        let mut contexts: Vec<(Compressor, Decompressor)> = (0..8)
            .map(|_| {
                let threads = *rng.pick(&[1, 2, 2, 3, 4, 4]);
                let filter = *rng.pick(&[Filter::Shuffle, Filter::Delta, Filter::Bitshuffle]);
                let params = CParams::new().codec(Codec::Lz4).typesize(8).filters(&[filter]);
                let params = params.blocksize(4000).threads(Threads::new(threads));
                (compressor(&params), decompressor(threads))
            })
            .collect();
        while !contexts.is_empty() {
            let at = rng.below(contexts.len() as u64) as usize;
            for (compressor, decompressor) in &mut contexts[at..] {
                let chunk = compressor.compress(&source).unwrap();
                let found: Vec<u8> = decompressor.decompress(&chunk).unwrap();
                assert_same(&found, &source, &format!("round {round}"));
            }
            contexts.swap_remove(at);
        }
    }
}

#[test]
fn contexts_on_many_threads_that_share_threads_do_not_mix_their_data() {
    thread::scope(|scope| {
        for number in 0..8u64 {
            scope.spawn(move || {
                let threads = 2 + number as usize % 3;
                let params =
                    CParams::new().codec(Codec::Lz4).blocksize(4096).threads(Threads::new(threads));
                let (mut compressor, mut decompressor) =
                    (compressor(&params), decompressor(threads));
                for round in 0..60 {
                    let items: Vec<u64> = (0..20_000).map(|at| at * (number + 1) + round).collect();
                    let chunk = compressor.compress(&items).unwrap();
                    let found: Vec<u64> = decompressor.decompress(&chunk).unwrap();
                    assert!(found == items, "thread {number}, round {round}");
                }
            });
        }
    });
}

#[test]
fn contexts_go_to_other_threads() {
    let params = CParams::new().codec(Codec::Lz4).threads(Threads::new(2));
    let (mut compressor, mut decompressor) = (compressor(&params), decompressor(2));
    let items: Vec<u32> = (0..200_000).collect();
    let chunk = compressor.compress(&items).unwrap();
    let (again, found) = thread::scope(|scope| {
        scope
            .spawn(|| (compressor.compress(&items), decompressor.decompress::<u32>(&chunk)))
            .join()
            .unwrap()
    });
    assert_eq!(again.unwrap().decompress::<u32>().unwrap(), items);
    assert_eq!(found.unwrap(), items);
    fn check<T: Send>() {}
    check::<Compressor>();
    check::<Decompressor>();
    check::<Chunk>();
}

#[test]
fn compressors_side_by_side_keep_their_codecs() {
    let source = data(Kind::Runs, 3000, 1);
    thread::scope(|scope| {
        for codec in codecs() {
            let source = &source;
            scope.spawn(move || {
                let expected = if codec == Codec::Lz4Hc { Codec::Lz4 } else { codec };
                for level in (1..=6).cycle().take(200) {
                    let params = CParams::new().codec(codec).level(level);
                    let chunk = compressor(&params).compress(source).unwrap();
                    assert_eq!(chunk.codec(), expected);
                    assert!(chunk.decompress::<u8>().unwrap() == *source, "{codec}:{level}");
                }
            });
        }
    });
}

#[test]
fn any_call_may_be_the_first_one() {
    const CALL: &str = "BLOSC2_TEST_CALL";
    const CALLS: [&str; 7] =
        ["compress", "compressor", "blocks", "decompress", "items", "special", "threads"];
    if own_process().is_none() {
        for call in CALLS {
            let folder = tempfile::tempdir().unwrap();
            run_alone("any_call_may_be_the_first_one", folder.path(), &[(CALL, call)]);
        }
        return;
    }
    // A hand-written stored chunk: no call of the library creates it.
    let items: Vec<u8> = vec![7; 40];
    let mut stored = vec![5, 1, 0b111, 1];
    for number in [40u32, 16, 72] {
        stored.extend(number.to_le_bytes());
    }
    stored.resize(32, 0);
    stored.extend(&items);
    let params = CParams::new().codec(Codec::Lz4);
    match env::var(CALL).unwrap().as_str() {
        "compress" => assert!(blocks_of(&blosc2::compress(&items, &params).unwrap()) > 0),
        "compressor" => assert_eq!(compressor(&params).compress(&items).unwrap().nbytes(), 40),
        "blocks" => {
            let chunk = compressor(&params).compress_blocks(&[&items[..], &[1]]).unwrap();
            assert_eq!(chunk.nblocks(), 2);
        }
        "decompress" => assert_eq!(blosc2::decompress::<u8>(&stored).unwrap(), items),
        "items" => {
            let chunk = ChunkRef::new(&stored).unwrap();
            assert_eq!(chunk.items::<u8>(15..18).unwrap(), [7; 3]);
        }
        "special" => assert_eq!(Chunk::zeros::<u8>(9, &params).unwrap().cbytes(), 32),
        _ => {
            let params = params.threads(Threads::new(4)).blocksize(16);
            let chunk = compressor(&params).compress(&items).unwrap();
            assert_eq!(decompressor(4).decompress::<u8>(&chunk).unwrap(), items);
        }
    }
}

fn blocks_of(chunk: &[u8]) -> usize {
    ChunkRef::new(chunk).unwrap().nblocks()
}

/// Of a single chunk and of a chunk in a super-chunk.
#[test]
fn headers_say_how_chunks_were_compressed() {
    let items: Vec<u32> = (0..30_000).map(|item| item * item).collect();
    let lz4 = CParams::new().codec(Codec::Lz4);
    let both = [Filter::Bytedelta(4), Filter::Shuffle];
    for (params, is_split) in [
        (lz4.clone().split(SplitMode::Always), true),
        (lz4.clone().split(SplitMode::Never).filters(&both), false),
        (lz4.clone(), true),
        (lz4.clone().filters(&[]), false),
        (CParams::new().codec(Codec::BloscLz).blocksize(4000).filters(&[Filter::Delta]), false),
        (lz4.dictionary(true).blocksize(8192).split(SplitMode::Never), false),
    ] {
        if !blosc2_sys::HARDENED && params.dictionary {
            continue;
        }
        let chunk = Compressor::new(&params).unwrap().compress(&items).unwrap();
        assert_eq!((chunk.codec(), chunk.codec_meta()), (params.codec, 0), "{params:?}");
        assert_eq!(chunk.filters(), params.filters);
        assert_eq!((chunk.is_split(), chunk.has_dictionary()), (is_split, params.dictionary));
        assert!(params.blocksize.is_none() || chunk.blocksize() == params.blocksize);
        let mut schunk = SChunk::in_memory::<u32>(&params).unwrap();
        schunk.append(&items).unwrap();
        let info = schunk.chunk_info(0).unwrap();
        assert_eq!((info.codec, info.codec_meta), (chunk.codec(), chunk.codec_meta()));
        assert_eq!((info.filters(), info.blocksize), (chunk.filters(), chunk.blocksize()));
        assert_eq!((info.is_split, info.has_dictionary), (is_split, params.dictionary));
    }
    // Nothing is split where nothing is compressed.
    let params = CParams::new().codec(Codec::Lz4).level(0).split(SplitMode::Always);
    let chunk = Compressor::new(&params).unwrap().compress(&items).unwrap();
    assert_eq!((chunk.is_stored(), chunk.is_split()), (true, false));
}
