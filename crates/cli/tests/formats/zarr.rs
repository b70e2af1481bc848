//! Zarr arrays that no library writes: damaged metadata, wrong fill values, and files that are none.

use std::fs::{self, File};

use serde_json::{Value, json};

use crate::common::Folder;

fn version_2(dtype: &str, fill: &Value) -> Value {
    json!({
        "zarr_format": 2, "shape": [3], "chunks": [2], "dtype": dtype, "fill_value": fill, "compressor": null,
        "filters": null, "order": "C",
    })
}

fn version_3(name: &str, len: u64, shape: u64) -> Value {
    json!({
        "zarr_format": 3, "node_type": "array", "shape": [shape], "fill_value": "",
        "data_type": { "name": name, "configuration": { "length_bytes": len } },
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [1] } },
        "chunk_key_encoding": { "name": "default" },
        "codecs": [{ "name": "bytes", "configuration": { "endian": "little" } }],
    })
}

fn write(folder: &Folder, found: &Value) {
    let _ = fs::remove_dir_all(folder.path("a.zarr"));
    fs::create_dir(folder.path("a.zarr")).unwrap();
    let name = if found["zarr_format"] == 2 { ".zarray" } else { "zarr.json" };
    fs::write(folder.path("a.zarr").join(name), found.to_string()).unwrap();
}

#[test]
fn missing_chunks_have_the_fill_value() {
    let folder = Folder::new();
    for (dtype, fill, text) in [
        ("|i1", json!(-7), "[-7 -7 -7]\n"),
        ("|b1", json!(1), "[ True  True  True]\n"),
        ("|S3", json!("YWJj"), "[b'abc' b'abc' b'abc']\n"),
        ("<f8", json!(-0.0), "[-0. -0. -0.]\n"),
    ] {
        write(&folder, &version_2(dtype, &fill));
        folder.good(&["import", "a.zarr", "a.b2nd", "--force"]);
        let found = folder.good(&["cat", "a.b2nd", "--text"]);
        assert_eq!(String::from_utf8(found).unwrap(), text, "{dtype} {fill}");
    }
    for (dtype, fill) in [("<f16", json!(1.0)), ("<c32", json!([1.0, 0.0])), ("|i1", json!(300))] {
        write(&folder, &version_2(dtype, &fill));
        let line = folder.bad(1, &["import", "a.zarr", "b.b2nd"]);
        assert!(line.contains("its fill value"), "{line}");
    }
}

#[test]
fn items_without_bytes_are_refused() {
    let folder = Folder::new();
    for (name, len, says) in [
        ("null_terminated_bytes", 0, "has no data"),
        ("fixed_length_utf32", 0, "has no data"),
        ("raw_bytes", 0, "has no data"),
        ("fixed_length_utf32", 6, "is not supported"),
    ] {
        write(&folder, &version_3(name, len, 1 << 60));
        let line = folder.bad(1, &["import", "a.zarr", "a.b2nd"]);
        assert!(line.contains(says), "{name}: {line}");
    }
}

#[test]
fn special_and_long_files_are_refused() {
    let folder = Folder::new();
    let sparse = |name: &str| {
        let file = File::create(folder.path("a.zarr").join(name)).unwrap();
        file.set_len(20 << 30).unwrap();
    };
    write(&folder, &version_2("|i1", &json!(0)));
    sparse("1");
    let line = folder.bad(1, &["import", "a.zarr", "a.b2nd"]);
    assert!(line.contains("cannot read its chunk 1: it has 21474836480 bytes"), "{line}");
    sparse("zarr.json");
    let line = folder.bad(1, &["import", "a.zarr", "a.b2nd"]);
    assert!(line.contains("it has 21474836480 bytes, expected at most 16777216"), "{line}");
    write(&folder, &version_2("|i1", &json!(0)));
    fs::create_dir(folder.path("a.zarr/0")).unwrap();
    let line = folder.bad(1, &["import", "a.zarr", "a.b2nd"]);
    assert!(line.contains("cannot read its chunk 0: it is not a regular file"), "{line}");
    #[cfg(unix)]
    for name in ["0", "zarr.json"] {
        write(&folder, &version_2("|i1", &json!(0)));
        let pipe = folder.path("a.zarr").join(name);
        let made = std::process::Command::new("mkfifo").arg(pipe).status().unwrap();
        assert!(made.success());
        let line = folder.bad(1, &["import", "a.zarr", "a.b2nd"]);
        assert!(line.contains("it is not a regular file"), "{name}: {line}");
    }
}
