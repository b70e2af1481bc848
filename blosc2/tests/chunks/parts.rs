//! Parts of a chunk: ranges of items and of bytes, single blocks, masks.

use std::fs;
use std::ops::Bound;

use blosc2::{
    CParams, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    SplitMode, Threads,
};

use crate::common::{KINDS, Kind, Rng, assert_same, codecs, data, dictionary_codecs, upstream};

fn compress(source: &[u8], params: &CParams) -> Chunk {
    Compressor::new(params).unwrap().compress(source).unwrap()
}

fn decompressor(threads: usize) -> Decompressor {
    Decompressor::new(&DParams::new().threads(Threads::new(threads))).unwrap()
}

/// Upstream's tables of sizes, for round trips and for ranges.
#[test]
fn upstreams_sizes_come_back_whole_and_in_parts() {
    let bytes = data(Kind::Mixed, 1_000_003, 1).repeat(57);
    let mut rng = Rng(1);
    for name in ["getitem", "compress_roundtrip"] {
        let table = fs::read_to_string(upstream(&format!("tests/test_{name}.csv"))).unwrap();
        let cases: Vec<Vec<usize>> = table
            .lines()
            .skip(1)
            .map(|line| line.split(',').map(|word| word.trim().parse().unwrap()).collect())
            .collect();
        assert!(cases.len() > 200, "{}", cases.len());
        for case in cases {
            let (typesize, items, level) = (case[0], case[1], case[3] as u8);
            // The largest ones take long and differ only in the number of blocks.
            let items = items.min(500_000 / typesize);
            let source = &bytes[rng.below(1000) as usize..][..typesize * items];
            let filters = [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle]][case[4]];
            let params = CParams::new().codec(Codec::BloscLz).level(level).typesize(typesize);
            let params = params.filters(filters);
            let what = format!("{name}: {case:?}");
            let chunk = compress(source, &params);
            assert_same(&chunk.decompress::<u8>().unwrap(), source, &what);
            for range in [0..1, 0..items, items - 1..items, items / 3..items / 2, items..items] {
                let range = range.start * typesize..range.end * typesize;
                let found = chunk.items::<u8>(range.clone()).unwrap();
                assert_same(&found, &source[range.clone()], &format!("{what}: {range:?}"));
            }
        }
    }
}

/// Small chunks of every kind, with what they hold.
fn small_chunks() -> Vec<(String, Chunk, Vec<u8>)> {
    let mut chunks = Vec::new();
    let mut add = |what: String, chunk: Chunk, source: Vec<u8>| chunks.push((what, chunk, source));
    for (typesize, len, blocksize) in [
        (1, 50, 16),
        (4, 64, 16),
        (4, 67, 16), // The last item is cut.
        (8, 63, 24), // So is the last one of the last block.
        (7, 65, 14),
        (16, 15, 16), // Less than one item.
        (131, 131, 131),
        (300, 900, 300),
        (256, 700, 512),
    ] {
        for kind in [Kind::Runs, Kind::Random, Kind::Zeros] {
            let source = data(kind, len, 5);
            for filters in
                [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle, Filter::Bytedelta(1)]]
            {
                for codec in codecs() {
                    let params = CParams::new().codec(codec).typesize(typesize);
                    let params = params.blocksize(blocksize).filters(filters);
                    add(format!("{params:?}"), compress(&source, &params), source.clone());
                }
            }
            let params = CParams::new().codec(Codec::Lz4).typesize(typesize).blocksize(blocksize);
            let stored = params.clone().level(0);
            add("stored".to_owned(), compress(&source, &stored), source.clone());
            if typesize < 256 {
                let blosc1 = params.clone().blosc1(true);
                add(format!("{blosc1:?}"), compress(&source, &blosc1), source.clone());
            }
            let whole = source[..len / typesize * typesize].to_vec();
            for filters in [&[Filter::Delta][..], &[Filter::Delta, Filter::Shuffle]] {
                let delta = params.clone().filters(filters);
                add(format!("{delta:?}"), compress(&whole, &delta), whole.clone());
            }
            let blocks: Vec<&[u8]> = source.chunks(blocksize + 3).collect();
            let chunk = Compressor::new(&params).unwrap().compress_blocks(&blocks).unwrap();
            add("variable blocks".to_owned(), chunk, source.clone());
        }
        let (count, none) = (len / typesize, CParams::new());
        let value = data(Kind::Random, typesize, 1);
        let chunk = Chunk::repeat(&value, count, &none).unwrap();
        add(format!("{count} values of {typesize}"), chunk, value.repeat(count));
        let sized = none.clone().blocksize(20);
        let chunk = Chunk::zeros::<u8>(len, &sized).unwrap();
        add("zeros".to_owned(), chunk, vec![0; len]);
        let chunk = Chunk::uninit::<u8>(len, &sized).unwrap();
        add("uninit".to_owned(), chunk, vec![0; len]);
    }
    let nan = f64::NAN.to_ne_bytes();
    add("nan".to_owned(), Chunk::nans::<f64>(7, &CParams::new()).unwrap(), nan.repeat(7));
    chunks
}

#[test]
fn every_range_of_a_small_chunk_is_that_of_its_data() {
    let mut decompressor = decompressor(1);
    let mut count = 0;
    for (what, chunk, source) in small_chunks() {
        let len = source.len();
        let whole: Vec<u8> = decompressor.decompress(&chunk).unwrap();
        assert_same(&whole, &source, &what);
        // All of them, but of the longer ones only those at the edges.
        let ends = |at: &usize| len < 70 || at.is_multiple_of(61) || *at < 3 || len - at < 3;
        for start in (0..=len).filter(ends) {
            for stop in (start..=len).filter(ends) {
                let found: Vec<u8> = decompressor.items(&chunk, start..stop).unwrap();
                assert!(found == source[start..stop], "{start}..{stop} of {what}: {found:?}");
                count += 1;
            }
        }
        // Items of the caller's type, independent of the typesize of the chunk.
        let items = len / 4;
        for start in 0..=items.min(20) {
            for stop in start..=items.min(20) {
                let mut found = vec![0xeeee_eeee_u32; stop - start];
                decompressor.items_into(&chunk, start, &mut found).unwrap();
                let expected = source[4 * start..4 * stop].chunks(4);
                let expected = expected.map(|item| u32::from_ne_bytes(item.try_into().unwrap()));
                assert!(found.into_iter().eq(expected), "{start}..{stop} of {what}");
            }
        }
    }
    assert!(count > 200_000, "{count}");
}

#[test]
fn items_of_upstreams_sizes_are_those_of_the_data() {
    for typesize in [4, 252, 256, 1024] {
        let source: Vec<u8> = (0..200 * typesize).map(|at| (at % 251) as u8).collect();
        for level in [0, 5] {
            for filters in [&[Filter::Shuffle][..], &[Filter::Delta]] {
                let params = CParams::new().level(level).typesize(typesize).filters(filters);
                let params = params.codec(Codec::BloscLz);
                let chunk = compress(&source, &params);
                for range in [0..1, 17..18, 5..10, 199..200, 0..200, 200..200] {
                    let range = range.start * typesize..range.end * typesize;
                    let found = chunk.items::<u8>(range.clone()).unwrap();
                    assert_same(&found, &source[range], &format!("{params:?}"));
                }
                // Bytes need not be whole items.
                for range in [1..4, typesize - 1..typesize + 1, 0..typesize - 1] {
                    let found = chunk.items::<u8>(range.clone()).unwrap();
                    assert_same(&found, &source[range], &format!("{params:?}"));
                }
            }
        }
    }
}

/// A single item of 131 bytes, which fills its block.
#[test]
fn delta_of_a_single_item_is_undone_in_a_range() {
    let mut source = vec![0u8; 131];
    source[128] = 1;
    for codec in codecs() {
        for filters in [&[Filter::Delta][..], &[Filter::Delta, Filter::Bitshuffle]] {
            let params = CParams::new().codec(codec).level(1).typesize(131).filters(filters);
            let chunk = compress(&source, &params);
            // BloscLZ gains nothing with such short data.
            assert_eq!(chunk.is_stored(), codec == Codec::BloscLz, "{codec}");
            assert_eq!(chunk.items::<u8>(0..131).unwrap(), source);
            assert_eq!(chunk.items::<u8>(127..130).unwrap(), [0, 1, 0]);
            assert_eq!(chunk.block(0).unwrap(), source);
        }
    }
}

#[test]
fn ranges_of_every_form_are_taken_and_wrong_ones_refused() {
    let items: Vec<u16> = (0..1000).collect();
    let chunk = Compressor::new(&CParams::new()).unwrap().compress(&items).unwrap();
    let found = |range: (Bound<usize>, Bound<usize>)| chunk.items::<u16>(range);
    assert_eq!(chunk.items::<u16>(..).unwrap(), items);
    assert_eq!(chunk.items::<u16>(990..).unwrap(), items[990..]);
    assert_eq!(chunk.items::<u16>(..3).unwrap(), items[..3]);
    assert_eq!(chunk.items::<u16>(3..=5).unwrap(), items[3..=5]);
    assert_eq!(found((Bound::Excluded(3), Bound::Included(5))).unwrap(), items[4..=5]);
    assert_eq!(chunk.items::<u64>(249..).unwrap().len(), 1);
    for range in [(1000, 1000), (0, 0), (500, 500)] {
        assert!(chunk.items::<u16>(range.0..range.1).unwrap().is_empty());
    }
    let max = usize::MAX;
    for (from, to) in [
        (0, 1001),
        (1000, 1001),
        (1001, 1001),
        (5, 4),
        (0, max),
        (max, max),
        (max / 2, max / 2 + 2),
        (1 << 31, (1 << 31) + 1),
        (max / 2 + 1, max / 2 + 2),
    ] {
        let error = chunk.items::<u16>(from..to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{from}..{to}: {error}");
        assert!(error.to_string().contains("2000 bytes"), "{error}");
    }
    for bounds in [
        (Bound::Included(0), Bound::Included(max)),
        (Bound::Excluded(max), Bound::Unbounded),
        (Bound::Included(1001), Bound::Unbounded),
    ] {
        let error = found(bounds).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{bounds:?}: {error}");
    }
    let mut target = [7u16; 3];
    for start in [998, 1000, 1001, max, max / 2] {
        let error = chunk.items_into(start, &mut target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{start}: {error}");
        assert_eq!(target, [7; 3], "{start}");
    }
    chunk.items_into(997, &mut target).unwrap();
    assert_eq!(target, items[997..]);
}

#[test]
fn a_rest_that_is_no_item_can_be_read_as_bytes() {
    let source = data(Kind::Ramp, 1003, 1);
    for blocksize in [64, 1000, 1003] {
        let params = CParams::new().codec(Codec::Lz4).typesize(4).blocksize(blocksize);
        let chunk = compress(&source, &params);
        assert_eq!(chunk.decompress::<u32>().unwrap_err().kind(), ErrorKind::TypeMismatch);
        for rest in [chunk.items::<u32>(..), chunk.items::<u32>(249..)] {
            assert_eq!(rest.unwrap_err().kind(), ErrorKind::TypeMismatch);
        }
        assert_eq!(chunk.items::<u32>(249..250).unwrap().len(), 1);
        let error = chunk.items::<u32>(250..251).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{error}");
        assert_eq!(chunk.items::<u8>(1000..).unwrap(), source[1000..]);
        assert_eq!(chunk.items::<u8>(998..1002).unwrap(), source[998..1002]);
    }
}

/// A header whose length in items overflows, without any data to copy.
#[test]
fn a_stored_chunk_without_its_data_is_refused() {
    let mut chunk = vec![2, 1, 0b11, 2];
    for number in [i32::MAX, 16, 16] {
        chunk.extend(number.to_le_bytes());
    }
    let error = ChunkRef::new(&chunk).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
}

#[test]
fn a_mask_gives_the_wanted_blocks_and_leaves_the_others() {
    let mut rng = Rng(8);
    for threads in [1, 2, 5] {
        let mut decompressor = decompressor(threads);
        for (what, chunk, source) in small_chunks() {
            for _ in 0..3 {
                let what = format!("{what}, {threads} threads");
                check_mask(&mut decompressor, &chunk, &source, &what, &mut rng);
            }
        }
        for round in 0..60 {
            let source = data(*rng.pick(&KINDS), 50_000 + rng.below(8) as usize, round);
            let pipelines = [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle]];
            let filters = rng.pick(&pipelines);
            let params = CParams::new()
                .codec(*rng.pick(&codecs()))
                .typesize(*rng.pick(&[1, 8, 256]))
                .filters(filters)
                .blocksize(*rng.pick(&[256, 1000, 4096, 50_000]));
            let chunk = compress(&source, &params);
            let what = format!("{params:?}, {threads} threads");
            check_mask(&mut decompressor, &chunk, &source, &what, &mut rng);
        }
    }
}

fn check_mask(
    decompressor: &mut Decompressor,
    chunk: &Chunk,
    source: &[u8],
    what: &str,
    rng: &mut Rng,
) {
    let share = 1 + rng.below(4);
    let wanted: Vec<bool> = (0..chunk.nblocks()).map(|_| rng.below(share) == 0).collect();
    let before = data(Kind::Random, source.len(), 77);
    let mut target = before.clone();
    decompressor.decompress_masked(chunk, &wanted, &mut target).unwrap();
    let mut expected = before;
    for block in (0..wanted.len()).filter(|&block| wanted[block]) {
        let range = chunk.block_range(block).unwrap().unwrap();
        expected[range.clone()].copy_from_slice(&source[range]);
    }
    assert_same(&target, &expected, &format!("{what}, {wanted:?}"));
    // A mask applies to one call only.
    if rng.below(2) == 0 {
        assert_same(&decompressor.decompress::<u8>(chunk).unwrap(), source, what);
    } else {
        let from = rng.below(source.len() as u64 + 1) as usize;
        let found: Vec<u8> = decompressor.items(chunk, from..).unwrap();
        assert_same(&found, &source[from..], what);
    }
}

#[test]
fn a_mask_of_another_length_is_refused_and_forgotten() {
    let source = data(Kind::Ramp, 10_000, 1);
    let chunk = compress(&source, &CParams::new().codec(Codec::Lz4).blocksize(1000));
    assert_eq!(chunk.nblocks(), 10);
    let mut decompressor = decompressor(2);
    let mut target = vec![3; 10_000];
    for len in [0, 1, 9, 11, 1000] {
        for wanted in [true, false] {
            let mask = vec![wanted; len];
            let error = decompressor.decompress_masked(&chunk, &mask, &mut target).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
            let message = error.to_string();
            assert!(message.contains("10") && message.contains(&len.to_string()), "{message}");
        }
    }
    for len in [0, 9_999, 10_001] {
        let mut target = vec![3; len];
        let error = decompressor.decompress_masked(&chunk, &[true; 10], &mut target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert!(target.iter().all(|&byte| byte == 3));
    assert_same(&decompressor.decompress::<u8>(&chunk).unwrap(), &source, "after errors");
    decompressor.decompress_masked(&chunk, &[false; 10], &mut target).unwrap();
    assert!(target.iter().all(|&byte| byte == 3));
}

#[test]
fn a_mask_over_a_broken_block_matters_where_it_is_wanted() {
    let source = data(Kind::Runs, 10_000, 1);
    for codec in codecs() {
        let params = CParams::new().codec(codec).blocksize(1000).filters(&[]);
        let mut bytes = compress(&source, &params).into_bytes();
        let last = u32::from_le_bytes(bytes[32 + 36..32 + 40].try_into().unwrap()) as usize;
        bytes[last + 4..].fill(0xff);
        let chunk = ChunkRef::new(&bytes).unwrap();
        for threads in [1, 3] {
            let mut decompressor = decompressor(threads);
            let mut target = vec![3; 10_000];
            let mut wanted = [true; 10];
            wanted[9] = false;
            decompressor.decompress_masked(&chunk, &wanted, &mut target).unwrap();
            assert_same(&target[..9000], &source[..9000], "good blocks");
            assert!(target[9000..].iter().all(|&byte| byte == 3), "{codec}");
            wanted = [false; 10];
            wanted[9] = true;
            let error = decompressor.decompress_masked(&chunk, &wanted, &mut target).unwrap_err();
            assert_ne!(error.kind(), ErrorKind::InvalidArgument, "{codec}: {error}");
            let found: Vec<u8> = decompressor.items(&chunk, 500..9000).unwrap();
            assert_same(&found, &source[500..9000], "good items");
            // A few items would be decompressed without the rest of the block.
            assert!(decompressor.items::<u8>(&chunk, 8999..10_000).is_err(), "{codec}");
        }
    }
}

#[test]
fn blocks_are_given_one_by_one_and_all_together() {
    for (what, chunk, source) in small_chunks() {
        let mut start = 0;
        let blocks = chunk.blocks().unwrap();
        assert_eq!(blocks.len(), chunk.nblocks(), "{what}");
        for (number, block) in blocks.iter().enumerate() {
            let range = chunk.block_range(number).unwrap().unwrap();
            assert_eq!(range, start..start + block.len(), "{what}");
            assert_same(block, &source[range.clone()], &what);
            assert_same(&chunk.block(number).unwrap(), block, &what);
            start = range.end;
        }
        assert_eq!(start, source.len(), "{what}");
        for block in [blocks.len(), blocks.len() + 1, usize::MAX] {
            assert_eq!(chunk.block_range(block).unwrap(), None, "{what}");
            let error = chunk.block(block).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{what}: {error}");
        }
    }
}

#[test]
fn ranges_of_chunks_with_dictionaries_are_those_of_their_data() {
    let mut rng = Rng(4);
    for codec in dictionary_codecs() {
        let source = crate::common::records(100_003);
        for (typesize, blocksize) in [(1, 1000), (4, 5000), (300, 3000)] {
            let params = CParams::new().codec(codec).typesize(typesize).blocksize(blocksize);
            let params = params.dictionary(true).filters(&[]);
            let chunk = compress(&source, &params);
            assert!(chunk.has_dictionary(), "{params:?}");
            for threads in [1, 3] {
                let mut decompressor = decompressor(threads);
                for _ in 0..60 {
                    let (one, other) = (rng.below(100_004) as usize, rng.below(100_004) as usize);
                    let range = match rng.below(3) {
                        0 => one.min(other)..one.max(other),
                        1 => one.min(100_000)..one.min(100_000) + 3,
                        _ => one..one,
                    };
                    let found: Vec<u8> = decompressor.items(&chunk, range.clone()).unwrap();
                    assert_same(&found, &source[range], &format!("{params:?}"));
                }
                check_mask(&mut decompressor, &chunk, &source, &format!("{params:?}"), &mut rng);
            }
        }
    }
}

/// Ranges that are short enough to be decompressed without the rest of their block, and longer ones.
#[test]
fn random_ranges_of_every_pipeline_are_those_of_the_whole() {
    let mut decompressor = decompressor(1);
    let mut rng = Rng(3);
    let mut count = 0;
    for typesize in [1, 2, 3, 4, 7, 8, 16, 17, 255, 256, 300] {
        let delta = Filter::Bytedelta(u8::try_from(typesize).unwrap_or(9));
        let pipelines: [&[Filter]; 9] = [
            &[],
            &[Filter::Shuffle],
            &[Filter::Shuffle, delta],
            &[Filter::ShuffleBytes(3)],
            &[Filter::ShuffleBytes(9), Filter::Bytedelta(9)],
            &[Filter::Bitshuffle],
            &[Filter::Bitshuffle, delta],
            &[Filter::Delta, Filter::Shuffle],
            &[Filter::Shuffle, Filter::Bitshuffle],
        ];
        for filters in pipelines {
            for codec in codecs() {
                for split in [SplitMode::Always, SplitMode::Never, SplitMode::Auto] {
                    for kind in [Kind::Zeros, Kind::Runs, Kind::Random, Kind::Ramp, Kind::Mixed] {
                        let block = (1500 + rng.index(3000)) / typesize * typesize;
                        // Full blocks, and a shorter one, which may end with a part of an item.
                        let mut len = block * (1 + rng.index(3)) + rng.index(block);
                        if filters.first() == Some(&Filter::Delta) {
                            len -= len % typesize;
                        }
                        let source = data(kind, len, rng.next());
                        let params = CParams::new().codec(codec).typesize(typesize).split(split);
                        let params = params.blocksize(block).filters(filters);
                        let chunk = compress(&source, &params);
                        let what = format!("{kind:?}, {len} bytes, {params:?}");
                        let whole: Vec<u8> = decompressor.decompress(&chunk).unwrap();
                        assert_same(&whole, &source, &what);
                        for most in [1, 4, 30, 30, block / 8, block / 8, len] {
                            let start = rng.index(len);
                            let stop = (start + 1 + rng.index(most)).min(len);
                            let found: Vec<u8> = decompressor.items(&chunk, start..stop).unwrap();
                            assert!(found == source[start..stop], "{start}..{stop} of {what}");
                            count += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(count > 10_000 * codecs().len(), "{count}");
}

/// Damage after an item is not found by a read of the item.
#[test]
fn only_the_start_of_a_stream_is_decompressed_for_an_item() {
    // Streams of equal data, so that all of them are compressed.
    let runs = data(Kind::Runs, 8 << 10, 1);
    let source: Vec<u8> = runs.into_iter().flat_map(|byte| [byte; 4]).collect();
    for codec in [Codec::BloscLz, Codec::Lz4] {
        let params = CParams::new().codec(codec).typesize(4).blocksize(source.len());
        let params = params.split(SplitMode::Always);
        let mut bytes = compress(&source, &params).into_bytes();
        // The length of the last of four streams, which follow the start of the only block.
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        let next = |at: usize| at + 4 + number(at) as usize;
        let last = next(next(next(number(32) as usize)));
        assert_eq!(next(last), bytes.len(), "{codec}");
        let shorter = number(last) - 30;
        bytes[last..last + 4].copy_from_slice(&shorter.to_le_bytes());
        let chunk = Chunk::new(bytes).unwrap();
        let mut decompressor = decompressor(1);
        let kind = |result: blosc2::Result<_>| result.map(|_: Vec<u8>| ()).unwrap_err().kind();
        assert_eq!(kind(decompressor.decompress(&chunk)), ErrorKind::InvalidData, "{codec}");
        let expected = &source[40..48];
        // An installed C-Blosc2 decompresses the block.
        if blosc2_sys::HARDENED {
            assert_eq!(decompressor.items::<u8>(&chunk, 40..48).unwrap(), expected, "{codec}");
        }
        let last = source.len() - 4..source.len();
        assert_eq!(kind(decompressor.items(&chunk, last)), ErrorKind::InvalidData, "{codec}");
    }
}

/// LZ4 accepts a match at the distance 0, and copies what was in its memory before.
#[test]
fn parts_never_contain_the_data_of_earlier_chunks() {
    const LEN: u32 = 4096;
    // A literal, a match at the distance 0 up to the last literals, and five literals.
    let mut stream = vec![0x1f, b'A', 0, 0];
    stream.extend([0xff; 15]);
    stream.extend([0xf6, 0x50]);
    stream.extend([b'B'; 5]);
    let mut crafted = vec![5, 1, 0b11_0101, 1];
    crafted.extend(LEN.to_le_bytes());
    crafted.extend(LEN.to_le_bytes());
    crafted.extend((32 + 4 + 4 + stream.len() as u32).to_le_bytes());
    crafted.resize(32, 0);
    crafted.extend(36u32.to_le_bytes());
    crafted.extend((stream.len() as u32).to_le_bytes());
    crafted.extend(stream);
    let crafted = ChunkRef::new(&crafted).unwrap();

    let secret: Vec<u8> = b"secret, ".iter().copied().cycle().take(LEN as usize).collect();
    let params = CParams::new().codec(Codec::Lz4).filters(&[]).blocksize(LEN as usize);
    let other = blosc2::compress(&secret, &params).unwrap();
    let other = ChunkRef::new(&other).unwrap();
    for range in [0..4096, 1..100, 2000..2100, 4000..4096, 4090..4096] {
        let mut used = decompressor(1);
        assert_eq!(used.items::<u8>(&other, range.clone()).unwrap(), secret[range.clone()]);
        let found = used.items::<u8>(&crafted, range.clone()).ok();
        // The result may be wrong, but it does not depend on what the memory contained.
        assert_eq!(found, decompressor(1).items::<u8>(&crafted, range).ok());
    }
}
