//! Chunks of variable-length blocks: written, read whole, in parts and one at a time, and broken.

use blosc2::{
    CParams, Check, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    Threads,
};

use crate::common::{
    KINDS, Kind, Rng, assert_same, codecs, data, dictionary_codecs, records, repeats,
};

fn compress(blocks: &[&[u8]], params: &CParams) -> Chunk {
    Compressor::new(params).unwrap().compress_blocks(blocks).unwrap()
}

fn decompressor(threads: usize) -> Decompressor {
    Decompressor::new(&DParams::new().threads(Threads::new(threads))).unwrap()
}

const COLOURS: [&[u8]; 3] = [b"red\0", b"green-green\0", b"blue-blue-blue-blue\0"];

#[test]
fn the_header_says_that_blocks_have_their_own_lengths() {
    for codec in codecs() {
        let params = CParams::new().codec(codec).typesize(1);
        let chunk = compress(&COLOURS, &params);
        assert!(chunk.has_variable_blocks());
        assert_eq!((chunk.format_version(), chunk.nblocks()), (6, 3));
        assert_eq!((chunk.nbytes(), chunk.blocksize()), (36, None));
        assert_eq!((chunk.special(), chunk.is_stored()), (None, false));
        assert_eq!(chunk.cbytes(), chunk.as_bytes().len());
        assert_eq!(chunk.block_range(0).unwrap(), Some(0..4));
        assert_eq!(chunk.block_range(2).unwrap(), Some(16..36));
        assert_eq!(chunk.block_range(3).unwrap(), None);
        assert!(chunk.blocks().unwrap().iter().eq(COLOURS));
        assert_eq!(chunk.decompress::<u8>().unwrap(), COLOURS.concat());
        assert_eq!(chunk.decompress::<u32>().unwrap().len(), 9);
        // Upstream does not support ranges of them.
        assert_eq!(chunk.items::<u8>(2..7).unwrap(), b"d\0gre");
        // An ordinary chunk has blocks too, but of equal length.
        let plain = blosc2::compress(COLOURS[2], &params).unwrap();
        let plain = ChunkRef::new(&plain).unwrap();
        assert!(!plain.has_variable_blocks());
        assert!(plain.blocks().unwrap().iter().eq([COLOURS[2]]));
    }
}

/// Reads a chunk in every way and compares the results.
fn check(
    decompressor: &mut Decompressor,
    chunk: &Chunk,
    blocks: &[&[u8]],
    rng: &mut Rng,
    what: &str,
) {
    let source = blocks.concat();
    assert_eq!((chunk.nblocks(), chunk.nbytes()), (blocks.len(), source.len()), "{what}");
    assert_same(&decompressor.decompress::<u8>(chunk).unwrap(), &source, what);
    let found = decompressor.blocks(chunk).unwrap();
    assert_eq!(found.len(), blocks.len(), "{what}");
    assert!(found.iter().eq(blocks.iter().copied()), "{what}: blocks differ");
    for _ in 0..10 {
        let number = rng.below(blocks.len() as u64) as usize;
        let found = decompressor.block(chunk, number).unwrap();
        assert_same(&found, blocks[number], &format!("block {number} of {what}"));
        let (one, other) = (rng.below(source.len() as u64 + 1), rng.below(source.len() as u64 + 1));
        let range = one.min(other) as usize..one.max(other) as usize;
        let found: Vec<u8> = decompressor.items(chunk, range.clone()).unwrap();
        assert_same(&found, &source[range.clone()], &format!("{range:?} of {what}"));
    }
    let wanted: Vec<bool> = blocks.iter().map(|_| rng.below(2) == 0).collect();
    let mut target = vec![0xee; source.len()];
    decompressor.decompress_masked(chunk, &wanted, &mut target).unwrap();
    let parts = blocks.iter().zip(&wanted);
    let expected = parts.flat_map(|(block, &wanted)| {
        block.iter().map(move |&byte| if wanted { byte } else { 0xee })
    });
    assert_same(&target, &expected.collect::<Vec<u8>>(), &format!("masked {what}"));
    let format =
        blosc2_format::chunk::Chunk::new(chunk.as_bytes(), &blosc2_format::Limits::default());
    assert_same(&format.unwrap().decode().unwrap(), &source, &format!("{what}, by Rust"));
    assert!(ChunkRef::validated(chunk.as_bytes(), Check::Content).is_ok(), "{what}");
}

#[test]
fn any_number_of_blocks_of_any_length_comes_back() {
    let mut rng = Rng(1);
    for round in 0..repeats(1500) as u64 {
        let count = *rng.pick(&[1, 1, 2, 3, 16, 100, 1000]);
        let most = *rng.pick(&[1, 5, 40, 300, 5000]).min(&(200_000 / count));
        let typesize = *rng.pick(&[1, 2, 4, 8, 24, 255, 300]);
        let blocks: Vec<Vec<u8>> = (0..count)
            .map(|block| {
                let len = 1 + rng.below(most as u64) as usize;
                data(*rng.pick(&KINDS), len, round * 1000 + block as u64)
            })
            .collect();
        let blocks: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
        let pipelines = [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle, Filter::Bytedelta(1)]];
        let filters = rng.pick(&pipelines);
        let threads = Threads::new(*rng.pick(&[1, 2, 5]));
        let params = CParams::new()
            .codec(*rng.pick(&codecs()))
            .level(1 + rng.below(9) as u8)
            .typesize(typesize)
            .filters(filters)
            .threads(threads);
        let what = format!("{count} blocks of up to {most} bytes, {params:?}");
        let chunk = compress(&blocks, &params);
        let mut decompressor = decompressor(*rng.pick(&[1, 2, 5]));
        check(&mut decompressor, &chunk, &blocks, &mut rng, &what);
    }
}

#[test]
fn blocks_of_a_megabyte_go_with_blocks_of_a_byte() {
    let mut rng = Rng(2);
    let large = data(Kind::Random, 1 << 20, 1);
    let smooth = data(Kind::Ramp, (1 << 20) + 3, 2);
    let blocks: [&[u8]; 7] =
        [&large, b"1", &smooth, &large[..1000], b"2", &smooth[..5], &large[7..]];
    for codec in [Codec::BloscLz, Codec::Lz4] {
        for threads in [1, 4] {
            let params = CParams::new().codec(codec).typesize(4).threads(Threads::new(threads));
            let chunk = compress(&blocks, &params);
            // Incompressible data takes its own length and a small overhead.
            assert!(chunk.cbytes() < 2 * (1 << 20) + (1 << 19));
            check(&mut decompressor(threads), &chunk, &blocks, &mut rng, &format!("{params:?}"));
        }
    }
}

/// Threads that finish out of order must not change the order of the blocks.
#[test]
fn words_compressed_on_threads_stay_in_their_order() {
    let words = "alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike";
    let blocks: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
    let mut rng = Rng(3);
    for round in 0..200 {
        let params = CParams::new().codec(Codec::Lz4).threads(Threads::new(4));
        let chunk = compress(&blocks, &params);
        let mut decompressor = decompressor(4);
        check(&mut decompressor, &chunk, &blocks, &mut rng, &format!("round {round}"));
    }
}

#[test]
fn dictionaries_serve_all_blocks_of_a_chunk() {
    let source = records(40_000);
    let lines: Vec<&[u8]> = source.split_inclusive(|&byte| byte == b'\n').collect();
    let mut rng = Rng(4);
    for codec in dictionary_codecs() {
        for threads in [1, 4] {
            let params = CParams::new().codec(codec).filters(&[]).threads(Threads::new(threads));
            let plain = compress(&lines, &params);
            assert!(!plain.has_dictionary());
            let params = params.dictionary(true);
            let mut compressor = Compressor::new(&params).unwrap();
            // Such short data gets no dictionary, which does not affect the next chunk.
            for few in [&lines[..1], &[b"x"], &[&b"x"[..]; 20]] {
                let chunk = compressor.compress_blocks(few).unwrap();
                assert!(!chunk.has_dictionary());
                check(&mut decompressor(threads), &chunk, few, &mut rng, "few");
            }
            let chunk = compressor.compress_blocks(&lines).unwrap();
            assert!(chunk.has_dictionary(), "{codec}");
            assert!(chunk.cbytes() < plain.cbytes(), "{codec}");
            let mut decompressor = decompressor(threads);
            check(&mut decompressor, &chunk, &lines, &mut rng, &format!("{params:?}"));
            check(&mut decompressor, &plain, &lines, &mut rng, "without dictionary");
        }
    }
}

#[test]
fn a_compressor_goes_from_buffers_to_blocks_and_back() {
    let mut rng = Rng(5);
    for threads in [1, 3] {
        let params = CParams::new().codec(Codec::Lz4).threads(Threads::new(threads));
        let mut compressor = Compressor::new(&params).unwrap();
        let mut decompressor = decompressor(threads);
        for round in 0..60 {
            let len = rng.below(5000) as usize;
            let source = data(*rng.pick(&KINDS), 1 + len, round);
            if rng.below(2) == 0 {
                let chunk = compressor.compress(&source).unwrap();
                assert!(!chunk.has_variable_blocks());
                assert_same(&decompressor.decompress::<u8>(&chunk).unwrap(), &source, "buffer");
            } else {
                let blocks: Vec<&[u8]> = source.chunks(1 + rng.below(900) as usize).collect();
                let chunk = compressor.compress_blocks(&blocks).unwrap();
                check(&mut decompressor, &chunk, &blocks, &mut rng, "blocks");
            }
        }
    }
}

#[test]
fn blocks_of_items_are_blocks_of_bytes() {
    let blocks: [&[u32]; 3] = [&[1, 2, 3], &[4], &[5; 100]];
    let mut compressor = Compressor::new(&CParams::new().codec(Codec::Lz4)).unwrap();
    let chunk = compressor.compress_blocks(&blocks).unwrap();
    assert_eq!(chunk.typesize(), 4);
    assert_eq!(chunk.decompress::<u32>().unwrap(), blocks.concat());
    assert_eq!(chunk.items::<u32>(2..5).unwrap(), [3, 4, 5]);
    assert_eq!(chunk.block(1).unwrap(), 4u32.to_ne_bytes());
}

#[test]
fn level_0_stores_the_blocks() {
    let blocks: [&[u8]; 3] = [&[7; 1000], b"a", &[0; 100]];
    for threads in [1, 3] {
        let params = CParams::new().codec(Codec::Lz4).level(0).threads(Threads::new(threads));
        let chunk = Compressor::new(&params).unwrap().compress_blocks(&blocks).unwrap();
        assert!(chunk.blocks().unwrap().iter().eq(blocks));
    }
}

#[test]
fn what_cannot_be_such_a_chunk_is_refused() {
    let refused = |params: &CParams, blocks: &[&[u8]]| {
        let error = Compressor::new(params).unwrap().compress_blocks(blocks).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    };
    let params = || CParams::new().codec(Codec::Lz4);
    refused(&params(), &[]);
    assert!(refused(&params(), &[b"a", b"", b"c"]).contains("block 1"));
    refused(&params().blosc1(true), &[b"a"]);
    refused(&params().filters(&[Filter::Delta]), &[b"a"]);
    let numbers = params().typesize(4).filters(&[Filter::TruncPrec(10)]);
    refused(&numbers, &[b"four", b"three"]);
    assert!(Compressor::new(&numbers).unwrap().compress_blocks(&[b"four"]).is_ok());
}

#[test]
fn blocks_that_are_not_there_are_refused() {
    let chunk = compress(&COLOURS, &CParams::new().codec(Codec::Lz4));
    for block in [3, 4, 1 << 31, usize::MAX] {
        let error = chunk.block(block).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds, "{error}");
        assert!(error.to_string().contains("3 blocks"), "{error}");
    }
    for range in [0..37, 36..37, 37..37] {
        assert_eq!(chunk.items::<u8>(range).unwrap_err().kind(), ErrorKind::OutOfBounds);
    }
    let error = decompressor(1).decompress_masked(&chunk, &[true; 2], &mut [0; 36]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
}

fn put(chunk: &mut [u8], at: usize, number: u32) {
    chunk[at..at + 4].copy_from_slice(&number.to_le_bytes());
}

/// Asserts that opening a chunk or reading it in any way fails.
fn assert_broken(bytes: &[u8], what: &str) {
    let Ok(chunk) = ChunkRef::new(bytes) else { return };
    for threads in [1, 3] {
        let mut decompressor = decompressor(threads);
        assert!(decompressor.decompress::<u8>(&chunk).is_err(), "{what}");
        assert!(decompressor.blocks(&chunk).is_err(), "{what}");
        // One of the blocks may be good; reading it by its index then returns the same bytes.
        for block in 0..chunk.nblocks().min(9) {
            let Ok(found) = decompressor.block(&chunk, block) else { continue };
            let range = chunk.block_range(block).unwrap().unwrap();
            assert!(decompressor.items::<u8>(&chunk, range).unwrap() == found, "{what}: {block}");
        }
    }
    assert!(ChunkRef::validated(bytes, Check::Content).is_err(), "{what}");
}

/// 4097 blocks of 1 MiB: in 32 bits, their lengths add up to 1 MiB.
#[test]
fn lengths_of_blocks_that_overflow_are_refused() {
    let block = vec![0; 1 << 20];
    let one = compress(&[&block], &CParams::new().codec(Codec::BloscLz).level(9).typesize(1));
    let one = one.as_bytes();
    let start = u32::from_le_bytes(one[32..36].try_into().unwrap()) as usize;
    let span = &one[start..];
    for count in [4097, 8193] {
        let mut chunk = one[..32].to_vec();
        for number in 0..count {
            let at = 32 + 4 * count + number * span.len();
            chunk.extend(u32::try_from(at).unwrap().to_le_bytes());
        }
        chunk.extend(span.repeat(count));
        put(&mut chunk, 4, 1 << 20);
        put(&mut chunk, 8, count as u32);
        let len = chunk.len() as u32;
        put(&mut chunk, 12, len);
        assert_broken(&chunk, &format!("{count} blocks"));
    }
}

#[test]
fn broken_chunks_of_blocks_give_errors() {
    let params = CParams::new().codec(Codec::Lz4).filters(&[]);
    let blocks: Vec<Vec<u8>> = (1..6).map(|block| data(Kind::Runs, 300 * block, 1)).collect();
    let blocks: Vec<&[u8]> = blocks.iter().map(|block| &block[..]).collect();
    let good = compress(&blocks, &params).into_bytes();
    let broken = |what: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = good.clone();
        change(&mut bytes);
        assert_broken(&bytes, what);
    };
    let first = u32::from_le_bytes(good[32..36].try_into().unwrap()) as usize;
    broken("marked as stored", &|bytes| bytes[2] |= 0b10);
    broken("marked as zeros", &|bytes| bytes[31] |= 0x10);
    broken("marked as lazy", &|bytes| bytes[31] |= 0x08);
    broken("no data", &|bytes| put(bytes, 4, 0));
    for nblocks in [0, 4, 6, 1000, 0x3fff_ffff, 0x4000_0000, 0x7fff_ffff, 0x8000_0000, u32::MAX] {
        broken(&format!("{nblocks} blocks"), &|bytes| put(bytes, 8, nblocks));
    }
    for nbytes in [1, 4499, 4501, 1 << 30] {
        broken(&format!("{nbytes} bytes"), &|bytes| put(bytes, 4, nbytes));
    }
    for start in [0, 1, 31, 32, first as u32 - 1, good.len() as u32, u32::MAX, 1 << 31] {
        broken(&format!("first block at {start}"), &|bytes| put(bytes, 32, start));
        broken(&format!("last block at {start}"), &|bytes| put(bytes, 48, start));
    }
    for len in [0, 1, 299, 301, 1 << 20, i32::MAX as u32, 1 << 31, u32::MAX] {
        broken(&format!("a block of {len} bytes"), &|bytes| put(bytes, first, len));
    }
    for len in [0x7fff_ffff, 1 << 31, 100_000] {
        broken(&format!("a stream of {len} bytes"), &|bytes| put(bytes, first + 4, len));
    }
    for len in 0..good.len() {
        broken(&format!("{len} bytes left"), &|bytes| bytes.truncate(len));
        // Also if the header is consistent with it.
        if len >= 32 {
            broken(&format!("{len} bytes"), &|bytes| {
                bytes.truncate(len);
                put(bytes, 12, len as u32);
            });
        }
    }
}

#[test]
fn one_good_block_is_read_where_another_is_broken() {
    let params = CParams::new().codec(Codec::Lz4).filters(&[]);
    let blocks: [&[u8]; 3] = [&[1; 500], &[2; 600], &[3; 700]];
    let mut bytes = compress(&blocks, &params).into_bytes();
    let second = u32::from_le_bytes(bytes[36..40].try_into().unwrap()) as usize;
    let third = u32::from_le_bytes(bytes[40..44].try_into().unwrap()) as usize;
    bytes[second + 8..third].fill(0xff);
    let chunk = ChunkRef::new(&bytes).unwrap();
    for threads in [1, 3] {
        let mut decompressor = decompressor(threads);
        assert!(decompressor.blocks(&chunk).is_err());
        assert_eq!(decompressor.block(&chunk, 0).unwrap(), blocks[0]);
        assert!(decompressor.block(&chunk, 1).is_err());
        assert_eq!(decompressor.block(&chunk, 2).unwrap(), blocks[2]);
    }
}
