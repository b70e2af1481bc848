//! This crate and the codec `blosc` of zarrs, which is C-Blosc, in one program.

mod common;

use std::sync::Arc;

use blosc2::{CParams, ChunkRef, Codec};
use blosc2_zarrs::{Blosc2Codec, BloscCodec};
use common::{CODECS, FILTERS, Kind, data, options, params};
use zarrs::array::codec::BloscCodec as Theirs;
use zarrs::array::codec::api::{BytesRepresentation, BytesToBytesCodecTraits};
use zarrs::array::{Array, ArrayMetadata};
use zarrs::metadata_ext::codec::blosc::{BloscCompressor, BloscShuffleMode};
use zarrs::storage::store::MemoryStore;

fn theirs(params: &CParams) -> Theirs {
    let compressor = match params.codec {
        Codec::BloscLz => BloscCompressor::BloscLZ,
        Codec::Lz4 => BloscCompressor::LZ4,
        Codec::Lz4Hc => BloscCompressor::LZ4HC,
        Codec::Zlib => BloscCompressor::Zlib,
        _ => BloscCompressor::Zstd,
    };
    let shuffles =
        [BloscShuffleMode::NoShuffle, BloscShuffleMode::Shuffle, BloscShuffleMode::BitShuffle];
    let shuffle = FILTERS.iter().position(|filters| params.filters == *filters).unwrap();
    let level = params.level.try_into().unwrap();
    Theirs::new(compressor, level, None, shuffles[shuffle], params.typesize).unwrap()
}

#[test]
fn each_codec_reads_the_chunks_of_the_other() {
    let data = data(300_000);
    let size = BytesRepresentation::FixedSize(data.len() as u64);
    for codec in CODECS {
        for filters in FILTERS {
            for typesize in [1, 4, 7, 16, 20] {
                let params = params(codec, filters, typesize);
                let (theirs, ours) = (theirs(&params), Kind::Blosc.codec(params.clone()));
                let chunk = theirs.encode((&data).into(), &options()).unwrap();
                assert!(ours.decode(chunk, &size, &options()).unwrap() == data, "{params:?}");
                let chunk = ours.encode((&data).into(), &options()).unwrap();
                assert!(theirs.decode(chunk, &size, &options()).unwrap() == data, "{params:?}");
            }
        }
    }
}

#[test]
fn blocks_have_the_sizes_and_the_splits_of_c_blosc() {
    // Every codec compresses it.
    let mut data = data(3_000_000);
    data[..2_900_000].fill(5);
    for codec in CODECS {
        for level in 1..=9 {
            for typesize in [1, 2, 4, 8, 16, 17] {
                let params = params(codec, FILTERS[1], typesize).level(level);
                let chunks = [
                    theirs(&params).encode((&data).into(), &options()).unwrap(),
                    BloscCodec::new(params.clone())
                        .unwrap()
                        .encode((&data).into(), &options())
                        .unwrap(),
                ];
                let [theirs, ours] = chunks.each_ref().map(|chunk| {
                    let chunk = ChunkRef::new(chunk).unwrap();
                    (chunk.blocksize(), chunk.is_split())
                });
                assert_eq!(ours, theirs, "{params:?}");
            }
        }
    }
}

/// For `blosc` in Zarr V2, `zarrs` does not use its registries.
#[test]
fn arrays_of_version_2_use_the_codec_of_zarrs() {
    blosc2_zarrs::register();
    let codec_of = |compressor: serde_json::Value| {
        let metadata = serde_json::json!({
            "zarr_format": 2, "shape": [1000], "chunks": [600], "dtype": "<i4", "fill_value": 0,
            "order": "C", "filters": null, "compressor": compressor
        });
        let metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
        let store = Arc::new(MemoryStore::new());
        let array = Array::new_with_metadata(store, "/a", metadata).unwrap();
        array.codecs().bytes_to_bytes_codecs()[0].clone()
    };
    let blosc =
        codec_of(serde_json::json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1}));
    assert!(blosc.as_any().is::<Theirs>());
    let blosc2 = codec_of(serde_json::json!({"id": "imagecodecs_blosc2"}));
    assert!(blosc2.as_any().is::<Blosc2Codec>());
}
