//! Metadata of both versions of Zarr: names, configurations, and arrays that are opened from JSON.

mod common;

use std::sync::Arc;

use blosc2::{CParams, Codec, Filter, SplitMode};
use blosc2_zarrs::{Blosc2Codec, BloscCodec};
use common::all;
use serde_json::{Value, json};
use zarrs::array::codec::api::{self, CodecTraits};
use zarrs::array::{Array, ArrayMetadata};
use zarrs::metadata::v2::MetadataV2;
use zarrs::metadata::v3::MetadataV3;
use zarrs::storage::store::MemoryStore;
use zarrs::storage::{ReadableStorageTraits, StoreKey};

/// The configurations for V3 and V2 of the codec that is created from metadata.
fn configurations(codec: api::Codec) -> (Value, Value) {
    let options = Default::default();
    let value = |found: Option<_>| serde_json::to_value(found.unwrap()).unwrap();
    (value(codec.configuration_v3(&options)), value(codec.configuration_v2(&options)))
}

fn from_v3(metadata: Value) -> Result<(Value, Value), String> {
    let metadata: MetadataV3 = serde_json::from_value(metadata).unwrap();
    api::Codec::from_metadata(&metadata).map(configurations).map_err(|error| error.to_string())
}

fn from_v2(metadata: Value) -> Result<(Value, Value), String> {
    let metadata: MetadataV2 = serde_json::from_value(metadata).unwrap();
    api::Codec::from_metadata(&metadata).map(configurations).map_err(|error| error.to_string())
}

fn v3(name: &str, configuration: Value) -> Result<(Value, Value), String> {
    from_v3(json!({"name": name, "configuration": configuration}))
}

fn blosc(shuffle: impl Into<Value>, typesize: usize) -> Value {
    let shuffle: Value = shuffle.into();
    json!({"cname": "zstd", "clevel": 3, "shuffle": shuffle, "typesize": typesize, "blocksize": 0})
}

#[test]
fn blosc_is_converted_between_the_versions() {
    blosc2_zarrs::register();
    for (name, code) in [("noshuffle", 0), ("shuffle", 1), ("bitshuffle", 2)] {
        let expected = (blosc(name, 4), blosc(code, 4));
        assert_eq!(v3("blosc", blosc(name, 4)).as_ref(), Ok(&expected));
        let mut numcodecs = blosc(code, 4);
        assert_eq!(v3("numcodecs.blosc", numcodecs.clone()).as_ref(), Ok(&expected));
        numcodecs["id"] = json!("blosc");
        assert_eq!(from_v2(numcodecs).as_ref(), Ok(&expected));
    }
    // Without a typesize, and with the shuffle that depends on it.
    let found = |metadata| from_v2(metadata).map(|found| found.0);
    let old = json!({"id": "blosc", "cname": "zstd", "clevel": 3, "shuffle": 1, "blocksize": 0});
    assert_eq!(found(old), Ok(blosc("shuffle", 1)));
    for (typesize, shuffle) in [(1, "bitshuffle"), (2, "shuffle")] {
        let mut auto = blosc(-1, typesize);
        auto["id"] = json!("blosc");
        assert_eq!(found(auto), Ok(blosc(shuffle, typesize)));
    }
    // The defaults of numcodecs, and of Zarr V3.
    let defaults = json!({
        "cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 1, "blocksize": 0
    });
    assert_eq!(found(json!({"id": "blosc"})), Ok(defaults));
    let found = v3("blosc", json!({"cname": "zstd", "clevel": 3})).map(|found| found.0);
    assert_eq!(found, Ok(blosc("noshuffle", 1)));
}

#[test]
fn all_compressors_of_blosc_are_known() {
    blosc2_zarrs::register();
    for name in ["blosclz", "lz4", "lz4hc", "zlib", "zstd"] {
        let mut metadata = blosc("shuffle", 4);
        metadata["cname"] = json!(name);
        assert_eq!(v3("blosc", metadata.clone()).map(|found| found.0), Ok(metadata));
    }
}

#[test]
fn wrong_metadata_of_blosc_are_errors() {
    blosc2_zarrs::register();
    let wrong = |key: &str, value: Value| {
        let mut metadata = blosc("shuffle", 4);
        metadata[key] = value;
        v3("blosc", metadata).unwrap_err()
    };
    assert!(wrong("cname", json!("snappy")).contains("unknown variant `snappy`"));
    assert!(wrong("clevel", json!(10)).contains("the level has to be from 0 to 9, got 10"));
    assert!(wrong("shuffle", json!(1)).contains("invalid type"));
    assert!(wrong("shuffle", json!("x")).contains("shuffle, bitshuffle, found x"));
    assert!(wrong("typesize", json!(0)).contains("expected a typesize of at least 1"));
    assert!(wrong("typesize", json!(null)).contains("shuffle shuffle, found none"));
    assert!(wrong("blocksize", json!(-1)).contains("invalid value"));
    assert!(wrong("extra", json!(1)).contains("unknown field `extra`"));
    let error = from_v2(json!({"id": "blosc", "shuffle": 3})).unwrap_err();
    assert!(error.contains("expected a shuffle from -1 to 2, found 3"), "{error}");
}

fn blosc2() -> Value {
    json!({
        "level": 3, "compressor": "lz4", "shuffle": "bitshuffle", "splitmode": "never",
        "typesize": 4, "blocksize": 4096
    })
}

#[test]
fn blosc2_is_the_same_in_both_versions() {
    let expected = (blosc2(), blosc2());
    for name in ["imagecodecs_blosc2", "blosc2"] {
        assert_eq!(v3(name, blosc2()).as_ref(), Ok(&expected));
        let mut metadata = blosc2();
        metadata["id"] = json!(name);
        assert_eq!(from_v2(metadata).as_ref(), Ok(&expected));
    }
    // What imagecodecs writes: codes, names in any case, and null.
    let other = json!({
        "id": "imagecodecs_blosc2", "level": 3, "compressor": 1, "shuffle": "BITSHUFFLE",
        "splitmode": 2, "typesize": 4, "blocksize": 4096, "numthreads": 2
    });
    assert_eq!(from_v2(other).as_ref(), Ok(&expected));
    let defaults = json!({
        "level": 1, "compressor": "zstd", "shuffle": "shuffle", "splitmode": "auto", "typesize": 1
    });
    let nulls = json!({
        "id": "imagecodecs_blosc2", "level": null, "compressor": null, "shuffle": null,
        "splitmode": null, "typesize": null, "blocksize": null, "numthreads": null
    });
    let expected = Ok((defaults.clone(), defaults));
    assert_eq!(from_v2(nulls), expected);
    assert_eq!(from_v3(json!({"name": "imagecodecs_blosc2"})), expected);
    assert_eq!(from_v3(json!("imagecodecs_blosc2")), expected);
}

#[test]
fn wrong_metadata_of_blosc2_are_errors() {
    let wrong = |key: &str, value: Value| {
        let mut metadata = blosc2();
        metadata[key] = value;
        v3("imagecodecs_blosc2", metadata).unwrap_err()
    };
    let error = wrong("compressor", json!("snappy"));
    let expected = "codec imagecodecs_blosc2: expected a compressor of blosclz, lz4, lz4hc, zlib, \
        zstd, found snappy";
    assert_eq!(error, expected);
    assert!(wrong("compressor", json!(3)).ends_with("found 3"));
    assert!(wrong("shuffle", json!("trunc_prec")).ends_with("found trunc_prec"));
    assert!(wrong("splitmode", json!("x")).contains("expected a splitmode of always, never"));
    assert!(wrong("level", json!(10)).contains("the level has to be from 0 to 9, got 10"));
    assert!(wrong("extra", json!(1)).contains("unknown field `extra`"));
}

#[test]
fn parameters_without_metadata_are_errors() {
    let refused = |params: CParams| {
        let error = Blosc2Codec::new(params).unwrap_err().to_string();
        assert!(error.contains("its metadata cannot express"), "{error}");
    };
    refused(CParams::new().filters(&[Filter::Delta, Filter::Shuffle]));
    refused(CParams::new().filters(&[Filter::TruncPrec(5)]));
    refused(CParams::new().codec(Codec::Ndlz));
    refused(CParams::new().codec_meta(1));
    refused(CParams::new().dictionary(true));
    refused(CParams::new().blosc1(true));
    let error = BloscCodec::new(CParams::new().filters(&[Filter::Delta])).unwrap_err().to_string();
    assert!(error.contains("expected one filter, shuffle or bitshuffle, got delta"), "{error}");
}

#[test]
fn the_configuration_is_that_of_the_parameters() {
    let params = CParams::new()
        .codec(Codec::Lz4)
        .level(3)
        .filters(&[Filter::Bitshuffle])
        .split(SplitMode::Never)
        .typesize(4)
        .blocksize(4096);
    let codec = Blosc2Codec::new(params.clone()).unwrap();
    let found = codec.configuration_v3(&Default::default()).unwrap();
    assert_eq!(serde_json::to_value(found).unwrap(), blosc2());
    assert_eq!(codec.params(), &params);
    assert_eq!(BloscCodec::new(params.clone()).unwrap().params(), &params);
}

/// With a typesize in the metadata, and without.
#[test]
fn arrays_of_version_2_are_written_and_read() {
    let compressors = [
        json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}),
        json!({
            "id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0, "typesize": 4
        }),
        json!({"id": "imagecodecs_blosc2", "level": 5, "compressor": "zstd", "typesize": 4}),
    ];
    let sizes = compressors.map(|compressor| {
        let metadata = json!({
            "zarr_format": 2, "shape": [1000], "chunks": [600], "dtype": "<i4", "fill_value": 0,
            "order": "C", "filters": null, "compressor": compressor
        });
        let metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
        let store = Arc::new(MemoryStore::new());
        let array = Array::new_with_metadata(store.clone(), "/a", metadata).unwrap();
        let items: Vec<i32> = (0..1000).map(|i| i * i).collect();
        array.store_array_subset(&array.subset_all(), &items).unwrap();
        array.store_metadata().unwrap();

        let found = Array::open(store.clone(), "/a").unwrap();
        let ArrayMetadata::V2(kept) = found.metadata() else { panic!("not of version 2") };
        assert_eq!(serde_json::to_value(&kept.compressor).unwrap(), compressor);
        let expected: Vec<u8> = items.iter().flat_map(|item| item.to_ne_bytes()).collect();
        assert_eq!(all(&found), expected);
        store.size_key(&StoreKey::new("a/0").unwrap()).unwrap().unwrap()
    });
    // With the typesize, the shuffle works. The codec `blosc` of `zarrs` gets it from the data type.
    if cfg!(not(feature = "zarrs-blosc")) {
        assert!(sizes[1] < sizes[0], "{sizes:?}");
    }
}
