//! What parameters do to a chunk, and what its header says of them.
//!
//! Each behaviour of chunks and contexts that the tests of C-Blosc2 pin (`c-blosc2/tests/test_*.c`) is
//! pinned here too:
//!
//! | upstream | here |
//! |---|---|
//! | `api` | `a_header_says_what_was_asked_for`; names of codecs: `info`, `codec` (`blosc2/src`) |
//! | `bitshuffle_leftovers` | `bitshuffle_takes_items_that_are_no_multiple_of_eight` |
//! | `bitshuffle_roundtrip`, `shuffle_roundtrip*` | `raw_filters.rs` |
//! | `blosc1_compat` | `chunks_of_blosc1_have_its_header_and_its_parts` |
//! | `compress_roundtrip` | `chunks.rs`; `upstreams_sizes_come_back_whole_and_in_parts` (`parts.rs`) |
//! | `compressor` | `process.rs`; `each_parameter_changes_what_comes_out`, `buffers_of_a_few_bytes` |
//! | `contexts` | `contexts_tell_their_parameters`, `other_versions_of_the_format...` |
//! | `delta` | `delta_of_every_typesize_that_upstream_tries` |
//! | `dict_schunk` | `dictionaries.rs`, `schunks.rs` |
//! | `empty_buffer` | `an_empty_buffer_is_a_chunk_too` |
//! | `filters` | `bitshuffle_and_then_shuffle` |
//! | `getitem*` | `parts.rs`; of special chunks: `special_chunks.rs` |
//! | `lazychunk_memcpyed` | `stored_chunks_are_read_from_a_file` |
//! | `maskout` | `parts.rs` |
//! | `maxout` | `a_target_of_any_length...` (`context_use.rs`), `bad_input.rs` (too much data) |
//! | `noinit` | `any_call_may_be_the_first_one` (`context_use.rs`) |
//! | `nolock` | `process.rs` (a variable that changes nothing, and forks) |
//! | `nthreads` | `any_number_of_threads_gives_the_same` (`context_use.rs`), `process.rs`, `params` (`blosc2/src`) |
//! | `prefilter`, `postfilter`, `urcodecs`, `urfilters`, `urfilter_delta` | `closures.rs` |
//! | `race` | `compressors_side_by_side_keep_their_codecs` (`context_use.rs`) |
//! | `shared_pool`, `shared_thread_pool` | `contexts_...` (`context_use.rs`), `concurrency.rs` |
//! | `special_zero_nonmultiple`, `zero_runlen` | `special_chunks.rs` |
//! | `vlblocks`, `vl_block_overflow` | `variable_blocks.rs` |

mod common;

use blosc2::{
    CParams, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter, SChunk,
    SplitMode, Threads, Validation, compress_bound,
};

use common::{assert_same, codecs, dictionary_codecs, records};

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
            (&[Filter::Delta, Filter::Bitshuffle, Filter::ByteDelta(4)], 2),
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
            // What is gained is in the length; numbers like these need a filter for that.
            assert_eq!(chunk.is_stored(), chunk.cbytes() == compress_bound(200_000), "{what}");
            assert!(filters.is_empty() || !chunk.is_stored(), "{what}");

            // The same from the outside, in all the forms that a chunk can have.
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

/// A parameter that made no difference would not have arrived.
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
                    let error = decompressor.decompress_into(&chunk, &mut [1u8]).unwrap_err();
                    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what}: {error}");
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
        assert_eq!(schunk.chunk::<u16>(0).unwrap(), items, "{codec}");
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
    assert_eq!(schunk.chunk::<u8>(0).unwrap(), [1]);
    assert_eq!(compressor(&params).compress(&[1u8]).unwrap().cbytes(), 33);

    // Nothing is gained without a filter; and the blocks do not divide the chunk.
    let items: Vec<i32> = (0..2000).collect();
    let params = CParams::new().codec(Codec::BloscLz).filters(&[]).blocksize(1984);
    let chunk = compressor(&params).compress(&items).unwrap();
    assert!(chunk.is_stored() && chunk.cbytes() == 8032);
    assert_eq!(chunk.items::<i32>(1999..).unwrap(), [1999]);
    assert_eq!(chunk.block(4).unwrap().len(), 8000 - 4 * 1984);
    let path = folder.path().join("stored.b2frame");
    SChunk::create::<i32>(&path, &params).unwrap().append(&items).unwrap();
    assert_eq!(SChunk::open(&path).unwrap().chunk::<i32>(0).unwrap(), items);
}

#[test]
fn how_closely_a_chunk_is_looked_at_is_up_to_the_caller() {
    let source = records(60_000);
    let depths = [Validation::Header, Validation::Blocks, Validation::Content];
    // What each depth finds; what it lets through comes out, as the source where that is good.
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
    assert_eq!(Validation::default(), Validation::Blocks);
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
        // Where a block starts: in the header, in the table, outside.
        for start in [0, 16, 32, 271, len, len + 1, 1 << 31, u32::MAX] {
            for block in [0, 30, 59] {
                let what = format!("{codec}, block {block} at {start}");
                assert_eq!(broken(put(32 + 4 * block, start)), [None, BAD, BAD], "{what}");
            }
        }
        // A dictionary that is not inside.
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
        // Fields that do not go together.
        assert_eq!(broken(put(12, len + 1)), [BAD; 3], "{codec}");
        assert_eq!(broken(put(4, 1 << 31)), [BAD; 3], "{codec}");
        assert_eq!(broken(put(8, 0)), [BAD; 3], "{codec}");
    }
}
