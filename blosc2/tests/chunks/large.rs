//! Buffers of 2 GiB, the limit of the 32-bit sizes of the formats.
//!
//! The largest ones need more memory than some machines have: `cargo xtask test` checks whether it is available.

use blosc2::limits::MAX_CHUNK_LEN;
use blosc2::{
    CParams, ChunkRef, Codec, Compressor, DParams, Decompressor, ErrorKind, Filter, Threads,
    compress_bound,
};
use blosc2_format::chunk::Decoder;
use blosc2_format::{Limits, chunk};

use crate::common::{Kind, data};

/// Bytes that compress to about a tenth, and differ from place to place. Quick to make in a debug build too.
fn buffer() -> Vec<u8> {
    let part = [data(Kind::Random, 6_000, 1), data(Kind::Runs, 59_536, 2)].concat();
    let mut bytes = vec![0; MAX_CHUNK_LEN];
    for (number, place) in bytes.chunks_mut(part.len()).enumerate() {
        let len = place.len();
        place.copy_from_slice(&part[..len]);
        let stamp = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes();
        place[..8.min(len)].copy_from_slice(&stamp[..8.min(len)]);
    }
    bytes
}

/// Ranges in the middle, over the edges of blocks, and at the end.
fn check_ranges(chunk: &ChunkRef<'_>, expected: &[u8]) {
    let mut decompressor = Decompressor::new(&DParams::default()).unwrap();
    let block = chunk.blocksize().unwrap();
    let last = expected.len() / block * block;
    for (start, len) in [
        (0, 5),
        (block - 1, 2),
        ((1 << 30) - 3, 100),
        (last - 10, 20),
        (expected.len() - 70_000, 70_000),
        (expected.len() - 1, 1),
        (expected.len(), 0),
    ] {
        let found = decompressor.items::<u8>(chunk, start..start + len).unwrap();
        assert!(found == expected[start..start + len], "{len} bytes from {start} on");
    }
    for range in [expected.len()..expected.len() + 1, 0..usize::MAX] {
        let error = decompressor.items::<u8>(chunk, range).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    }
}

#[test]
#[ignore = "needs 7 GiB of memory; cargo xtask test runs it if 12 GiB are available, and --large always"]
fn the_largest_buffer_goes_there_and_back() {
    let source = buffer();
    let mut room = vec![0; compress_bound(MAX_CHUNK_LEN)];
    let mut target = vec![0; MAX_CHUNK_LEN];
    assert_eq!(room.len(), i32::MAX as usize);
    let threads = Threads::new(2);
    let lz4 = CParams::new().codec(Codec::Lz4).level(1).filters(&[]).threads(threads);
    let params = DParams::new().threads(threads);
    let mut decompressor = Decompressor::new(&params).unwrap();

    // Compressed.
    let len = Compressor::new(&lz4).unwrap().compress_into(&source, &mut room).unwrap();
    assert!((100 << 20..400 << 20).contains(&len), "{len} bytes");
    let chunk = ChunkRef::new(&room[..len]).unwrap();
    assert_eq!((chunk.nbytes(), chunk.cbytes()), (MAX_CHUNK_LEN, len));
    decompressor.decompress_into(&chunk, &mut target).unwrap();
    assert!(target == source);
    check_ranges(&chunk, &source);

    // By the formats in Rust.
    target[..1 << 20].fill(0);
    target[MAX_CHUNK_LEN - (1 << 20)..].fill(0);
    let formats = chunk::Chunk::new(&room[..len], &Limits::default()).unwrap();
    Decoder::default().decode(&formats, &mut target).unwrap();
    assert!(target == source);

    // Stored as it is, which is the longest chunk that there can be.
    let mut store = Compressor::new(&lz4.clone().level(0).filters(&[Filter::Shuffle])).unwrap();
    let short = room.len() - 1;
    let error = store.compress_into(&source, &mut room[..short]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BufferTooSmall, "{error}");
    let len = store.compress_into(&source, &mut room).unwrap();
    assert_eq!(len, i32::MAX as usize);
    let chunk = ChunkRef::new(&room).unwrap();
    assert!(chunk.is_stored());
    target[MAX_CHUNK_LEN - (1 << 20)..].fill(0);
    decompressor.decompress_into(&chunk, &mut target).unwrap();
    assert!(target == source);
    check_ranges(&chunk, &source);
}

/// The memory is never touched, so it does not have to be available. A 32-bit process cannot have it.
#[test]
#[cfg(target_pointer_width = "64")]
fn one_more_byte_is_refused() {
    let source = vec![0u8; MAX_CHUNK_LEN + 1];
    let mut compressor = Compressor::new(&CParams::new().codec(Codec::Lz4)).unwrap();
    let mut room = vec![0; compress_bound(source.len())];
    for error in [
        compressor.compress(&source).unwrap_err(),
        compressor.compress_into(&source, &mut room).unwrap_err(),
        compressor.compress_blocks(&[&source[..]]).unwrap_err(),
        compressor.compress_blocks(&[&source[..1 << 30], &source[1 << 30..]]).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
    }
    let error = compressor.compress(&source).unwrap_err().to_string();
    assert!(error.contains("2147483615") && error.contains("2147483616"), "{error}");
}
