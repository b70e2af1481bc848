//! Three builds of Blosc in one program: each compresses and decompresses, and reads the chunks of the others.

use std::thread;

use blosc2::CompressAlgo;
use blosc2::chunk::{Decoder, Encoder};
use ours::{CParams, Codec};
use zarrs::array::CodecOptions;
use zarrs::array::codec::BloscCodec;
use zarrs::array::codec::api::{BytesRepresentation, BytesToBytesCodecTraits};
use zarrs::metadata_ext::codec::blosc::{BloscCompressor, BloscShuffleMode};

/// The names of a codec in each library.
const CODECS: [(Codec, CompressAlgo, BloscCompressor); 5] = [
    (Codec::BloscLz, CompressAlgo::Blosclz, BloscCompressor::BloscLZ),
    (Codec::Lz4, CompressAlgo::Lz4, BloscCompressor::LZ4),
    (Codec::Lz4Hc, CompressAlgo::Lz4hc, BloscCompressor::LZ4HC),
    (Codec::Zlib, CompressAlgo::Zlib, BloscCompressor::Zlib),
    (Codec::Zstd, CompressAlgo::Zstd, BloscCompressor::Zstd),
];

fn main() {
    let items: Vec<u32> = (0..300_000u32).map(|item| item / 7 * 11 + item % 5).collect();
    let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
    // In parallel, so that state that two libraries share would be noticed.
    thread::scope(|scope| {
        for (codec, algorithm, compressor) in CODECS {
            let (items, bytes) = (&items, &bytes);
            scope.spawn(move || round_trips(items, bytes, codec, &algorithm, compressor));
        }
    });
    println!("three builds of Blosc work in one program");
}

fn round_trips(
    items: &[u32],
    bytes: &[u8],
    codec: Codec,
    algorithm: &CompressAlgo,
    compressor: BloscCompressor,
) {
    let ours = ours::compress(items, &CParams::new().codec(codec)).unwrap();
    let mut params = blosc2::CParams::default();
    params.compressor(algorithm.clone()).typesize(4).unwrap().nthreads(2);
    let theirs = Encoder::new(params).unwrap().compress(bytes).unwrap();
    let zarr = BloscCodec::new(
        compressor,
        5.try_into().unwrap(),
        None,
        BloscShuffleMode::BitShuffle,
        Some(4),
    )
    .unwrap();
    let (options, size) =
        (CodecOptions::default(), BytesRepresentation::FixedSize(bytes.len() as u64));
    let old = zarr.encode(bytes.into(), &options).unwrap();
    assert_eq!(zarr.decode(old.clone(), &size, &options).unwrap(), bytes, "{codec}");

    let mut decoder = Decoder::new(blosc2::DParams::default()).unwrap();
    for chunk in [ours.as_ref(), theirs.as_bytes(), &old] {
        assert!(chunk.len() < bytes.len() / 2, "{codec}: {} bytes", chunk.len());
        assert!(ours::decompress::<u32>(chunk).unwrap() == items, "{codec}");
        assert!(decoder.decompress(chunk).unwrap() == bytes, "{codec}");
    }
}
