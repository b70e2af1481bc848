//! A program that names nothing of the crate finds the codecs: linking it registers them.
#![allow(clippy::single_range_in_vec_init, reason = "a subset has one range for each dimension")]

use std::sync::Arc;

use blosc2_zarrs as _;
use serde_json::json;
use zarrs::array::codec::api::Codec;
use zarrs::array::{Array, ArrayMetadata};
use zarrs::metadata::v3::MetadataV3;
use zarrs::storage::store::MemoryStore;

#[test]
fn the_codecs_are_found_by_their_names() {
    let codecs = [
        json!({"name": "imagecodecs_blosc2", "configuration": {"compressor": "lz4"}}),
        json!({"name": "blosc", "configuration": {"cname": "lz4", "clevel": 5, "blocksize": 0}}),
    ];
    for codec in codecs {
        let metadata = json!({
            "zarr_format": 3, "node_type": "array", "shape": [100], "data_type": "uint8",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [50]}},
            "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
            "codecs": [{"name": "bytes"}, codec]
        });
        let metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
        let store = Arc::new(MemoryStore::new());
        let array = Array::new_with_metadata(store, "/a", metadata).unwrap();
        array.store_chunk(&[1], vec![7u8; 50]).unwrap();
        let found: Vec<u8> = array.retrieve_array_subset(&[48..52]).unwrap();
        assert_eq!(found, [0, 0, 7, 7], "{codec}");
    }
}

/// Without the feature `blosc` of `zarrs`, there is no other codec of this name.
#[cfg(not(feature = "zarrs-blosc"))]
#[test]
fn blosc_is_the_codec_of_this_crate() {
    assert!(is_ours());
}

/// With it, either one may be found, until ours is registered.
#[cfg(feature = "zarrs-blosc")]
#[test]
fn registered_blosc_is_the_codec_of_this_crate() {
    blosc2_zarrs::register();
    blosc2_zarrs::register();
    assert!(is_ours());
}

fn is_ours() -> bool {
    let configuration = json!({"cname": "lz4", "clevel": 5, "blocksize": 0});
    let metadata = json!({"name": "blosc", "configuration": configuration});
    let metadata: MetadataV3 = serde_json::from_value(metadata).unwrap();
    let Codec::BytesToBytes(codec) = Codec::from_metadata(&metadata).unwrap() else {
        panic!("another kind of codec");
    };
    codec.as_any().is::<blosc2_zarrs::BloscCodec>()
}
