//! Dictionaries: their gain, chunks without one, and sequences of chunks with and without them.

use blosc2::{
    CParams, Check, Chunk, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter,
    SChunk, Threads,
};

use crate::common::{Kind, Rng, assert_same, data, dictionary_codecs, records, repeats};

fn compress(source: &[u8], params: &CParams) -> Chunk {
    Compressor::new(params).unwrap().compress(source).unwrap()
}

fn decompressor(threads: usize) -> Decompressor {
    Decompressor::new(&DParams::new().threads(Threads::new(threads))).unwrap()
}

#[test]
fn small_blocks_of_records_gain_from_a_dictionary() {
    let source = records(200_000);
    for codec in dictionary_codecs() {
        for blocksize in [1 << 10, 4 << 10, 32 << 10] {
            for threads in [1, 4] {
                let params = CParams::new()
                    .codec(codec)
                    .typesize(1)
                    .filters(&[])
                    .blocksize(blocksize)
                    .threads(Threads::new(threads));
                let plain = compress(&source, &params);
                let chunk = compress(&source, &params.clone().dictionary(true));
                let what = format!("blocks of {blocksize}, {codec}, {threads} threads");
                assert!(!plain.has_dictionary() && chunk.has_dictionary(), "{what}");
                let lens = (plain.cbytes(), chunk.cbytes());
                // With larger blocks, a dictionary may gain nothing: for Zstandard from a smaller size on than for LZ4.
                let most = if codec == Codec::Zstd { 1 << 10 } else { 4 << 10 };
                assert!(blocksize > most || lens.1 < lens.0, "{what}: {lens:?}");
                let mut decompressor = decompressor(threads);
                for chunk in [&chunk, &plain] {
                    let found: Vec<u8> = decompressor.decompress(chunk).unwrap();
                    assert_same(&found, &source, &what);
                }
                assert!(ChunkRef::validated(chunk.as_bytes(), Check::Content).is_ok());
            }
        }
    }
}

/// The numbers of upstream's test: one after the other, in ten chunks of a frame.
#[test]
fn numbers_in_a_frame_keep_their_dictionaries() {
    let folder = tempfile::tempdir().unwrap();
    let items: Vec<i32> = (0..20_000).collect();
    for codec in dictionary_codecs() {
        for blocksize in [Some(1 << 10), Some(4 << 10), Some(32 << 10), Some(256 << 10), None] {
            let mut params = CParams::new().codec(codec).dictionary(true).threads(Threads::new(4));
            params.blocksize = blocksize;
            let path = folder.path().join(format!("{codec}-{blocksize:?}.b2frame"));
            let mut schunk = SChunk::create::<i32>(&path, &params).unwrap();
            for _ in 0..10 {
                schunk.append(&items).unwrap();
            }
            drop(schunk);
            let schunk = SChunk::open(&path).unwrap();
            assert!(schunk.info().cparams.dictionary, "{codec}, {blocksize:?}");
            for chunk in schunk.iter_chunks::<i32>() {
                assert_eq!(chunk.unwrap(), items, "{codec}, {blocksize:?}");
            }
        }
    }
}

/// A dictionary that cannot be trained, or is not worth it, is left out of that chunk alone.
#[test]
fn each_chunk_has_a_dictionary_of_its_own_or_none() {
    let large = records(60_000);
    let incompressible = data(Kind::Random, 60_000, 1);
    for codec in dictionary_codecs() {
        for threads in [1, 3] {
            let params = CParams::new()
                .codec(codec)
                .typesize(1)
                .filters(&[])
                .blocksize(1000)
                .dictionary(true)
                .threads(Threads::new(threads));
            let mut compressor = Compressor::new(&params).unwrap();
            let mut decompressor = decompressor(threads);
            let mut rng = Rng(threads as u64);
            // The codec decides whether zeros and noise get one; earlier chunks have no influence.
            let sources: [(&[u8], Option<bool>); 7] = [
                (&large, Some(true)),
                (b"small payload", Some(false)),
                (b"", Some(false)),
                (&large[..59_000], Some(true)),
                (&incompressible, None),
                (&[0; 60_000], None),
                (&large[7..], Some(true)),
            ];
            for _ in 0..repeats(600) {
                let &(source, expected) = rng.pick(&sources);
                let chunk = compressor.compress(source).unwrap();
                let what = format!("{} bytes, {codec}, {threads} threads", source.len());
                let expected =
                    expected.unwrap_or_else(|| compress(source, &params).has_dictionary());
                assert_eq!(chunk.has_dictionary(), expected, "{what}");
                let found: Vec<u8> = decompressor.decompress(&chunk).unwrap();
                assert_same(&found, source, &what);
                // The flag in the bytes of the chunk is right too.
                let chunk = ChunkRef::new(chunk.as_bytes()).unwrap();
                assert_eq!(chunk.has_dictionary(), expected, "{what}");
                let half = source.len() / 2;
                let found: Vec<u8> = decompressor.items(&chunk, half..).unwrap();
                assert_same(&found, &source[half..], &what);
            }
        }
    }
}

/// All settings that share the space of a chunk with a dictionary.
#[test]
fn dictionaries_go_with_filters_levels_and_items_of_any_size() {
    let source = records(30_000);
    for codec in dictionary_codecs() {
        for level in [0, 1, 5, 9] {
            for typesize in [1, 4, 7, 255, 300] {
                for filters in [&[][..], &[Filter::Shuffle], &[Filter::Bitshuffle]] {
                    let params = CParams::new()
                        .codec(codec)
                        .level(level)
                        .typesize(typesize)
                        .filters(filters)
                        .blocksize(1500)
                        .dictionary(true);
                    let source = &source[..30_000 / typesize * typesize];
                    let chunk = compress(source, &params);
                    let what = format!("{params:?}");
                    assert!(level > 0 || !chunk.has_dictionary(), "{what}");
                    assert_same(&chunk.decompress::<u8>().unwrap(), source, &what);
                    let found = chunk.items::<u8>(1499..1501).unwrap();
                    assert_same(&found, &source[1499..1501], &what);
                }
            }
        }
    }
}

#[test]
fn delta_goes_with_a_dictionary() {
    let items: Vec<u32> = (0..60_000).map(|item| item * item / 7 + item % 5).collect();
    for codec in dictionary_codecs() {
        let filters = [Filter::Delta, Filter::Shuffle];
        let params = CParams::new().codec(codec).filters(&filters).blocksize(4096);
        for threads in [1, 4] {
            let params = params.clone().dictionary(true).threads(Threads::new(threads));
            let chunk = Compressor::new(&params).unwrap().compress(&items).unwrap();
            let mut decompressor = decompressor(threads);
            assert_eq!(decompressor.decompress::<u32>(&chunk).unwrap(), items, "{params:?}");
            let found: Vec<u32> = decompressor.items(&chunk, 30_000..30_005).unwrap();
            assert_eq!(found, items[30_000..30_005], "{params:?}");
        }
    }
}

#[test]
fn codecs_without_dictionaries_refuse_them() {
    for codec in [Codec::BloscLz, Codec::Zlib].into_iter().filter(|codec| codec.is_available()) {
        let params = CParams::new().codec(codec).dictionary(true).typesize(1);
        let error = Compressor::new(&params).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(error.to_string().contains(&codec.to_string()), "{error}");
    }
}

#[test]
fn a_broken_dictionary_gives_an_error_and_is_forgotten() {
    let source = records(60_000);
    let plain = compress(&source, &CParams::new().codec(Codec::Lz4));
    for codec in dictionary_codecs() {
        let params = CParams::new().codec(codec).filters(&[]).typesize(1).blocksize(1000);
        let chunk = compress(&source, &params.dictionary(true));
        assert!(chunk.has_dictionary());
        let table = 32 + 4 * chunk.nblocks();
        for threads in [1, 3] {
            let mut decompressor = decompressor(threads);
            for len in [0, u32::MAX, 1 << 31, i32::MAX as u32, 1 << 20, chunk.cbytes() as u32] {
                let mut bytes = chunk.as_bytes().to_vec();
                bytes[table..table + 4].copy_from_slice(&len.to_le_bytes());
                let what = format!("{codec}, a dictionary of {len} bytes");
                let header = ChunkRef::validated(&bytes, Check::Header).unwrap();
                assert!(decompressor.decompress::<u8>(&header).is_err(), "{what}");
                assert!(decompressor.items::<u8>(&header, 5000..5001).is_err(), "{what}");
                for good in [&plain, &chunk] {
                    let found: Vec<u8> = decompressor.items(good, 999..2001).unwrap();
                    assert_same(&found, &source[999..2001], &what);
                    let found: Vec<u8> = decompressor.decompress(good).unwrap();
                    assert_same(&found, &source, &what);
                }
            }
            // A damaged dictionary: other data or an error, and no effect on later chunks.
            let mut bytes = chunk.as_bytes().to_vec();
            bytes[table + 4..table + 300].fill(0x5a);
            let broken = ChunkRef::new(&bytes).unwrap();
            for _ in 0..3 {
                let found = decompressor.decompress::<u8>(&broken);
                assert!(found.is_err() || found.unwrap() != source, "{codec}");
                let found: Vec<u8> = decompressor.decompress(&chunk).unwrap();
                assert_same(&found, &source, &codec.to_string());
            }
        }
    }
}
