//! Metadata of both versions of Zarr: names, configurations, and arrays that are opened from JSON.
#![allow(clippy::single_range_in_vec_init, reason = "a subset has one range for each dimension")]

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
    // The defaults of numcodecs, and of Zarr V3, in which zarr-python writes all fields.
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
        let mut v2 = metadata.clone();
        v2["id"] = json!("blosc");
        let error = v3("blosc", metadata).unwrap_err();
        assert_eq!(from_v2(v2).unwrap_err(), error);
        error
    };
    let error = wrong("cname", json!("snappy"));
    let expected = "codec blosc: expected cname to be blosclz (0), lz4 (1), lz4hc (2), zlib (4), \
        zstd (5), found \"snappy\"";
    assert_eq!(error, expected);
    for level in [json!(10), json!(-1), json!(266), json!("x"), json!(1.5), json!([])] {
        let error = wrong("clevel", level.clone());
        assert_eq!(
            error,
            format!("codec blosc: expected clevel to be an integer from 0 to 9, found {level}")
        );
    }
    assert!(wrong("shuffle", json!("x")).ends_with("found \"x\""));
    assert!(wrong("shuffle", json!(3)).ends_with("found 3"));
    assert!(wrong("shuffle", json!({})).contains("expected shuffle to be noshuffle (0), shuffle"));
    assert!(
        wrong("typesize", json!("i4"))
            .ends_with("expected typesize to be an integer, found \"i4\"")
    );
    assert!(wrong("blocksize", json!(0.5)).ends_with("found 0.5"));
}

/// The fields of a configuration in the forms of other writers, and the standard form of the field in Zarr V3 for items
/// of 4 bytes. `null` for a missing field means the default.
fn forms() -> Vec<(&'static str, Value, Value)> {
    let mut forms = vec![
        // n5-zarr and n5-blosc (Fiji), and other fields.
        ("nthreads", json!(1), Value::Null),
        ("numthreads", json!(0), Value::Null),
        ("id", json!("blosc"), Value::Null),
        ("x", json!({"y": [null]}), Value::Null),
        // Numbers of writers that have only one type of numbers, and text.
        ("clevel", json!(3.0), json!(3)),
        ("clevel", json!("3"), json!(3)),
        ("clevel", json!(null), json!(5)),
        ("blocksize", json!(8192.0), json!(8192)),
        ("cname", json!("ZSTD"), json!("zstd")),
        ("cname", json!("BloscLZ"), json!("blosclz")),
        ("cname", json!(1), json!("lz4")),
        ("typesize", json!(4.0), json!(4)),
        ("typesize", json!(2), json!(2)),
    ];
    for unknown in [json!(null), json!(0), json!(-1), json!(0.0)] {
        forms.push(("typesize", unknown.clone(), json!(4)));
        forms.push(("blocksize", unknown, json!(0)));
    }
    let shuffles: [(&[Value], &str); 4] = [
        (&[json!(0), json!(0.0), json!("0"), json!("none"), json!("NoShuffle")], "noshuffle"),
        (&[json!(1), json!("1"), json!("byte"), json!("SHUFFLE")], "shuffle"),
        (&[json!(2), json!("2"), json!("bit"), json!("BitShuffle")], "bitshuffle"),
        // With items of 4 bytes.
        (&[json!(-1), json!("autoshuffle")], "shuffle"),
    ];
    for (values, name) in shuffles {
        forms.extend(values.iter().map(|value| ("shuffle", value.clone(), json!(name))));
    }
    forms
}

/// The metadata of an array of 4-byte items with this codec: in Zarr V3, in a shard, and in Zarr V2.
fn arrays(configuration: &Value) -> [ArrayMetadata; 3] {
    let codec = json!({"name": "blosc", "configuration": configuration});
    let bytes = json!({"name": "bytes", "configuration": {"endian": "little"}});
    let shard = json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [100],
        "codecs": [bytes.clone(), codec.clone()],
        "index_codecs": [bytes.clone(), {"name": "crc32c"}],
        "index_location": "end"
    }});
    let v3 = |codecs: Value| {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": [1000], "data_type": "int32",
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [600]}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0, "codecs": codecs
        })
    };
    let mut compressor = configuration.clone();
    compressor["id"] = json!("blosc");
    let v2 = json!({
        "zarr_format": 2, "shape": [1000], "chunks": [600], "dtype": "<i4", "fill_value": 0,
        "order": "C", "filters": null, "compressor": compressor
    });
    [v3(json!([bytes, codec])), v3(json!([shard])), v2]
        .map(|metadata| serde_json::from_value(metadata).unwrap())
}

/// The configuration of the codec in metadata of [`arrays`].
fn configuration_in(metadata: &ArrayMetadata) -> Value {
    let metadata = serde_json::to_value(metadata).unwrap();
    let codecs = &metadata["codecs"];
    if metadata["zarr_format"] == 2 {
        metadata["compressor"].clone()
    } else if codecs.as_array().unwrap().len() == 1 {
        codecs[0]["configuration"]["codecs"][1]["configuration"].clone()
    } else {
        codecs[1]["configuration"].clone()
    }
}

/// Arrays are opened with each form of each field, in Zarr V3, in shards and in Zarr V2.
#[test]
fn metadata_of_other_writers() {
    blosc2_zarrs::register();
    let items: Vec<i32> = (0..1000).map(|i| i * i).collect();
    let standard =
        json!({"cname": "lz4", "clevel": 5, "shuffle": "shuffle", "typesize": 4, "blocksize": 0});
    let mut cases = Vec::new();
    for (field, form, expected) in forms() {
        let mut found = standard.clone();
        found[field] = form;
        let mut wanted = standard.clone();
        if !expected.is_null() {
            wanted[field] = expected;
        }
        cases.push((found, wanted));
    }
    // Without each field, and without all fields. The defaults differ between the versions of Zarr.
    for field in ["clevel", "typesize", "blocksize"] {
        let mut found = standard.clone();
        found.as_object_mut().unwrap().remove(field);
        cases.push((found, standard.clone()));
    }
    cases.push((json!({"shuffle": 1, "cname": "lz4"}), standard.clone()));
    assert_eq!(cases.len(), 40);
    for (found, wanted) in cases {
        // These were written with standard metadata; the chunks do not depend on the metadata.
        for (written, opened) in arrays(&standard).into_iter().zip(arrays(&found)) {
            let store = Arc::new(MemoryStore::new());
            let array = match (&written, cfg!(feature = "zarrs-blosc")) {
                // The codec of `zarrs` has no names for shuffles in Zarr V2.
                (ArrayMetadata::V2(_), true) => {
                    let mut written = written.clone();
                    blosc2_zarrs::standardize(&mut written).unwrap();
                    Array::new_with_metadata(store.clone(), "/a", written).unwrap()
                }
                _ => Array::new_with_metadata(store.clone(), "/a", written).unwrap(),
            };
            array.store_array_subset(&array.subset_all(), &items).unwrap();

            let mut standardized = opened.clone();
            blosc2_zarrs::standardize(&mut standardized).unwrap();
            let mut wanted = wanted.clone();
            if let ArrayMetadata::V2(_) = opened {
                let code = ["noshuffle", "shuffle", "bitshuffle"].map(Value::from);
                let code = code.iter().position(|name| *name == wanted["shuffle"]).unwrap();
                wanted["shuffle"] = json!(code);
                wanted["id"] = json!("blosc");
                let typesize = found.get("typesize").and_then(Value::as_f64).unwrap_or(0.0);
                if typesize <= 0.0 {
                    wanted.as_object_mut().unwrap().remove("typesize");
                }
            }
            assert_eq!(configuration_in(&standardized), wanted, "{found}");
            // The standard form is unchanged.
            let mut again = standardized.clone();
            blosc2_zarrs::standardize(&mut again).unwrap();
            assert_eq!(again, standardized);

            let mut ways = vec![standardized];
            // The codec `blosc` of `zarrs` refuses most forms in Zarr V2.
            if !(cfg!(feature = "zarrs-blosc") && matches!(opened, ArrayMetadata::V2(_))) {
                ways.push(opened);
            }
            for metadata in ways {
                let array = Array::new_with_metadata(store.clone(), "/a", metadata).unwrap();
                let read: Vec<i32> = array.retrieve_array_subset(&array.subset_all()).unwrap();
                assert_eq!(read, items, "{found}");
                assert_eq!(array.retrieve_array_subset::<Vec<i32>>(&[7..9]).unwrap(), [49, 64]);
                // The codec of the metadata also writes.
                array.store_array_subset(&[0..700], &items[..700]).unwrap();
                let read: Vec<i32> = array.retrieve_array_subset(&array.subset_all()).unwrap();
                assert_eq!(read, items, "{found}");
            }
        }
    }
}

/// The rule of numcodecs: bitshuffle for items of 1 byte, else shuffle. In Zarr V2, the items are those of the array.
#[test]
fn the_size_of_an_item_decides_on_autoshuffle() {
    blosc2_zarrs::register();
    let standardized = |dtype: Value, filters: Value, compressor: Value| {
        let metadata = json!({
            "zarr_format": 2, "shape": [1000], "chunks": [600], "dtype": dtype, "fill_value": 0,
            "order": "C", "filters": filters, "compressor": compressor
        });
        let mut metadata: ArrayMetadata = serde_json::from_value(metadata).unwrap();
        blosc2_zarrs::standardize(&mut metadata).unwrap();
        let once = metadata.clone();
        blosc2_zarrs::standardize(&mut metadata).unwrap();
        assert_eq!(metadata, once);
        serde_json::to_value(metadata).unwrap()
    };
    let blosc = |shuffle: Value| json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": shuffle, "blocksize": 0});
    let (bytes, bits, auto) = (1, 2, -1);
    for (dtype, expected) in [
        (json!("|u1"), bits),
        (json!("|b1"), bits),
        (json!("|S1"), bits),
        (json!("|V1"), bits),
        (json!("<i2"), bytes),
        (json!(">f8"), bytes),
        (json!("<U1"), bytes),
        (json!("|S7"), bytes),
        (json!("<M8[ns]"), bytes),
        (json!([["a", "|u1", null]]), bits),
        (json!([["a", "|u1", null], ["b", "|u1", null]]), bytes),
        (json!([["a", "|u1", [2, 3]]]), bytes),
        // Its size is unknown.
        (json!("|O"), auto),
        (json!([["a", "|O", null]]), auto),
        (json!([["a", "|u1", [u64::MAX, 2]]]), auto),
        (json!("unknown"), auto),
    ] {
        for found in [json!(-1), json!("AutoShuffle")] {
            let metadata = standardized(dtype.clone(), Value::Null, blosc(found));
            assert_eq!(metadata["compressor"], blosc(json!(expected)), "{dtype}");
        }
        // A stated typesize decides.
        for (typesize, expected) in [(1, bits), (4, bytes)] {
            let (mut found, mut wanted) = (blosc(json!(-1)), blosc(json!(expected)));
            (found["typesize"], wanted["typesize"]) = (json!(typesize), json!(typesize));
            let metadata = standardized(dtype.clone(), Value::Null, found);
            assert_eq!(metadata["compressor"], wanted, "{dtype}");
        }
    }
    // Filters change the items. The first of them encodes those of the array.
    let delta = json!({"id": "delta", "dtype": "<i4"});
    let filtered = standardized(json!("<i4"), json!([delta]), blosc(json!(-1)));
    assert_eq!(filtered["compressor"], blosc(json!(auto)));
    let filtered = standardized(json!("<i4"), json!([blosc(json!(-1))]), blosc(json!(-1)));
    assert_eq!(filtered["filters"][0], blosc(json!(bytes)));
    assert_eq!(filtered["compressor"], blosc(json!(auto)));
    let filtered = standardized(json!("<i4"), json!([]), blosc(json!(-1)));
    assert_eq!(filtered["compressor"], blosc(json!(bytes)));

    // Zarr V3 has no such shuffle.
    let [v3, ..] = arrays(&json!({"shuffle": -1}));
    let mut v3 = serde_json::to_value(v3).unwrap();
    (v3["data_type"], v3["fill_value"]) = (json!("string"), json!(""));
    let mut metadata: ArrayMetadata = serde_json::from_value(v3.clone()).unwrap();
    let before = metadata.clone();
    let error = blosc2_zarrs::standardize(&mut metadata).unwrap_err().to_string();
    assert!(error.contains("expected a typesize or items of a fixed size"), "{error}");
    assert_eq!(metadata, before);
    v3["codecs"][1]["configuration"]["typesize"] = json!(1);
    let mut metadata: ArrayMetadata = serde_json::from_value(v3).unwrap();
    blosc2_zarrs::standardize(&mut metadata).unwrap();
    assert_eq!(configuration_in(&metadata)["shuffle"], "bitshuffle");
}

/// Without any field, decoding works, and the standard form is complete.
#[test]
fn codecs_without_fields() {
    blosc2_zarrs::register();
    let v3 = json!({"cname": "zstd", "clevel": 5, "shuffle": "noshuffle", "typesize": 4, "blocksize": 0});
    let v2 = json!({"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0});
    for (mut metadata, expected) in arrays(&json!({})).into_iter().zip([v3.clone(), v3, v2]) {
        blosc2_zarrs::standardize(&mut metadata).unwrap();
        assert_eq!(configuration_in(&metadata), expected);
    }
    assert_eq!(from_v3(json!("blosc")).unwrap().0["cname"], "zstd");
    // Other codecs are unchanged, and a wrong field is an error that changes nothing.
    for mut metadata in arrays(&json!({"cname": "snappy"})) {
        let before = metadata.clone();
        let error = blosc2_zarrs::standardize(&mut metadata).unwrap_err().to_string();
        assert!(error.contains("found \"snappy\""), "{error}");
        assert_eq!(metadata, before);
    }
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
    // Other forms of the values, and other fields.
    let other = json!({
        "clevel": "3", "cname": "LZ4", "shuffle": 2.0, "splitmode": "NEVER", "typesize": 4.0,
        "blocksize": 4096.0, "nthreads": 8, "x": null
    });
    assert_eq!(v3("blosc2", other), Ok((blosc2(), blosc2())));
    for unknown in [0, -1] {
        let other = json!({"typesize": unknown, "blocksize": unknown});
        assert_eq!(v3("blosc2", other), expected);
    }
}

#[test]
fn wrong_metadata_of_blosc2_are_errors() {
    let wrong = |key: &str, value: Value| {
        let mut metadata = blosc2();
        metadata[key] = value;
        v3("imagecodecs_blosc2", metadata).unwrap_err()
    };
    let error = wrong("compressor", json!("snappy"));
    let expected = "codec imagecodecs_blosc2: expected compressor to be blosclz (0), lz4 (1), \
        lz4hc (2), zlib (4), zstd (5), found \"snappy\"";
    assert_eq!(error, expected);
    assert!(wrong("compressor", json!(3)).ends_with("found 3"));
    assert!(wrong("shuffle", json!("trunc_prec")).ends_with("found \"trunc_prec\""));
    assert!(wrong("splitmode", json!("x")).contains("expected splitmode to be always (1), never"));
    assert!(
        wrong("level", json!(10))
            .ends_with("expected level to be an integer from 0 to 9, found 10")
    );
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
