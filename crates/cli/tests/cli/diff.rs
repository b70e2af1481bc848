//! `diff`: what differs between two files.

use std::path::Path;

use blosc2::{CParams, Chunk, Codec, NDArray, RawItems, SChunk, SaveOptions, Special, Target};
use serde_json::{Value, json};

use crate::common::{Folder, old_files};

/// Runs `diff` on different files, and returns its lines.
fn lines(folder: &Folder, args: &[&str]) -> Vec<String> {
    let output = folder.run(&[&["diff"], args].concat());
    assert_eq!((output.status.code(), &*output.stderr), (Some(1), &b""[..]), "{args:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// The differences as JSON.
fn differences(folder: &Folder, args: &[&str]) -> Value {
    let output = folder.run(&[&["diff", "--json"], args].concat());
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let equal = report["differences"].as_array().unwrap().is_empty();
    assert_eq!(
        (report["equal"].as_bool(), output.status.code()),
        (Some(equal), Some(i32::from(!equal)))
    );
    report["differences"].clone()
}

fn equal(folder: &Folder, args: &[&str]) {
    assert_eq!(folder.good(&[&["diff"], args].concat()), b"equal\n", "{args:?}");
    assert_eq!(differences(folder, args), json!([]));
}

fn array(folder: &Folder, name: &str, items: &[f32], shape: &[u64]) {
    NDArray::builder().target(folder.path(name)).from_slice(items, shape).unwrap();
}

/// Creates a super-chunk of these chunks, which need not be whole items.
fn super_chunk(folder: &Folder, name: &str, chunks: &[&[u8]], typesize: usize) {
    let params = CParams::new().typesize(typesize);
    let mut schunk = SChunk::create::<u8>(folder.path(name), &params).unwrap();
    for chunk in chunks {
        let chunk = Chunk::new(blosc2::compress(chunk, &params).unwrap()).unwrap();
        schunk.append(&chunk).unwrap();
    }
}

#[test]
fn chunks_codecs_and_storage_are_no_differences() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 7, 5], &[4, 7, 2], &[2, 3, 1]);
    folder.good(&["copy", "a.b2nd", "b.b2nd", "--codec", "lz4", "--chunks", "3,4,5"]);
    folder.good(&["copy", "b.b2nd", "c.b2nd", "--directory", "--chunks", "1,1,5"]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    for other in ["a.b2nd", "b.b2nd", "c.b2nd", "a.npy"] {
        equal(&folder, &["a.b2nd", other]);
        equal(&folder, &[other, "a.b2nd"]);
    }
    // Chunks of other lengths.
    folder.schunk("a.b2frame", &CParams::new());
    let items: Vec<u16> = (0..350).collect();
    let mut schunk =
        SChunk::create::<u16>(folder.path("b.b2frame"), CParams::new().codec(Codec::Lz4)).unwrap();
    schunk.append(&items).unwrap();
    SaveOptions::new()
        .save(&schunk, Target::from(folder.path("c.b2frame")).directory(true))
        .unwrap();
    drop(schunk);
    for other in ["b.b2frame", "c.b2frame"] {
        equal(&folder, &["a.b2frame", other]);
    }
}

#[test]
fn empty_files_and_single_items() {
    let folder = Folder::new();
    for (name, shape) in [("a", &[0, 3][..]), ("b", &[0, 3]), ("c", &[3, 0])] {
        array(&folder, name, &[], shape);
    }
    equal(&folder, &["a", "b"]);
    let expected = ["shape    0, 3 != 3, 0", "items    not compared: the shapes differ"];
    assert_eq!(lines(&folder, &["a", "c"]), expected);
    for (name, item) in [("d", 1.5), ("e", 1.5), ("f", -2.0)] {
        array(&folder, name, &[item], &[]);
    }
    equal(&folder, &["d", "e"]);
    assert_eq!(lines(&folder, &["d", "f"]), ["items    1 of 1 differ, first at []: 1.5 != -2.0"]);
    for name in ["g", "h"] {
        SChunk::create::<u8>(folder.path(name), CParams::new()).unwrap();
    }
    equal(&folder, &["g", "h"]);
}

#[test]
fn items_are_compared_by_their_bytes() {
    let folder = Folder::new();
    let nans = [f32::from_bits(0x7fc0_0000), f32::from_bits(0x7fc0_0001)];
    array(&folder, "a", &[0.0, 1.0, nans[0], nans[0], 7.0, 8.0], &[2, 3]);
    array(&folder, "b", &[-0.0, 1.0, nans[0], nans[1], 7.0, 9.0], &[2, 3]);
    assert_eq!(
        lines(&folder, &["a", "b"]),
        ["items    3 of 6 differ, first at [0,0]: 0.0 != -0.0"]
    );
    let expected = json!([{
        "what": "items", "different": 3, "total": 6, "first": [0, 0], "a": "0.0", "b": "-0.0",
    }]);
    assert_eq!(differences(&folder, &["a", "b"]), expected);
    // Values with the same text.
    for (name, nan) in [("c", nans[0]), ("d", nans[1])] {
        NDArray::builder()
            .target(folder.path(name))
            .dtype(">f4", 4)
            .from_slice(RawItems(&nan.to_be_bytes()), 1)
            .unwrap();
    }
    let line = r#"items    1 of 1 differ, first at [0]: byte 3: b"\x00" != byte 3: b"\x01""#;
    assert_eq!(lines(&folder, &["c", "d"]), [line]);
    // Large items.
    for (name, last) in [("e", b'x'), ("f", b'y')] {
        let mut item = vec![b'x'; 5000];
        item[4999] = last;
        NDArray::builder()
            .target(folder.path(name))
            .dtype("|S5000", 5000)
            .from_slice(RawItems(&item), 1)
            .unwrap();
    }
    let line = r#"items    1 of 1 differ, first at [0]: byte 4999: b"x" != byte 4999: b"y""#;
    assert_eq!(lines(&folder, &["e", "f"]), [line]);
}

#[test]
fn zeros_are_not_decompressed() {
    let folder = Folder::new();
    let zeros = |name: &str, shape: &[u64], chunks: &[u64]| {
        let builder = NDArray::builder().chunk_shape(chunks).target(folder.path(name));
        builder.dtype("<f8", 8).special(Special::Zeros, shape).unwrap()
    };
    // 1 TiB, in chunks of different shapes.
    zeros("a", &[1 << 17, 1 << 20], &[1 << 13, 1 << 10]);
    let mut b = zeros("b", &[1 << 17, 1 << 20], &[1 << 10, 1 << 13]);
    equal(&folder, &["a", "b"]);
    drop(b);
    // One other item in the last chunk of a smaller array.
    zeros("c", &[100, 30], &[10, 10]);
    b = zeros("d", &[100, 30], &[10, 30]);
    equal(&folder, &["c", "d"]);
    b.set_dparams(b.info().dparams.convert_byte_order(true));
    b.write([99, 29], 1.0f64).unwrap();
    drop(b);
    for files in [["c", "d"], ["d", "c"]] {
        let found = differences(&folder, &files);
        assert_eq!((&found[0]["different"], &found[0]["first"]), (&json!(1), &json!([99, 29])));
    }
    zeros("e", &[30, 100], &[10, 10]);
    assert_eq!(differences(&folder, &["c", "e"])[0]["what"], "shape");
}

#[test]
fn the_first_of_many_pieces_is_found() {
    let folder = Folder::new();
    // Rows of 40 MiB, so that several pieces of each are read.
    let len = 10 << 20;
    let shape = [2, len];
    for (name, chunks) in [("a", [1, 1 << 20]), ("b", [2, 1 << 18])] {
        NDArray::builder()
            .target(folder.path(name))
            .chunk_shape(chunks)
            .zeros::<u32>(shape)
            .unwrap();
    }
    equal(&folder, &["a", "b"]);
    let mut array = NDArray::open_rw(folder.path("b")).unwrap();
    array.write((1..2, len - 2..len), &[1u32, 2]).unwrap();
    array.write((1..2, 77..78), &[5u32]).unwrap();
    drop(array);
    let line = "items    3 of 20971520 differ, first at [1,77]: 0 != 5";
    assert_eq!(lines(&folder, &["a", "b"]), [line]);
    folder.good(&["export", "b", "b.npy"]);
    assert_eq!(lines(&folder, &["a", "b.npy"]), [line]);
    equal(&folder, &["b", "b.npy"]);
}

#[test]
fn dtypes_and_byte_orders() {
    let folder = Folder::new();
    let write = |name: &str, bytes: &[u8], dtype: &str| {
        let size = bytes.len() / 2;
        NDArray::builder()
            .target(folder.path(name))
            .dtype(dtype, size)
            .from_slice(RawItems(bytes), 2)
            .unwrap();
    };
    write("little", &[1, 0, 2, 0], "<i2");
    write("big", &[0, 1, 0, 2], ">i2");
    write("other", &[0, 1, 0, 3], ">i2");
    write("unsigned", &[1, 0, 2, 0], "<u2");
    write("wide", &[1, 0, 0, 0, 2, 0, 0, 0], "<i4");
    assert_eq!(lines(&folder, &["little", "big"]), ["dtype    <i2 != >i2"]);
    let expected = ["dtype    <i2 != >i2", "items    1 of 2 differ, first at [1]: 2 != 3"];
    assert_eq!(lines(&folder, &["little", "other"]), expected);
    let expected = ["dtype    <i2 != <u2", "items    not compared: the dtypes differ"];
    assert_eq!(lines(&folder, &["little", "unsigned"]), expected);
    let expected = ["dtype    <i2 != <i4", "items    not compared: the sizes of the items differ"];
    assert_eq!(lines(&folder, &["little", "wide"]), expected);
    let expected = json!([
        { "what": "dtype", "a": "<i2", "b": "<u2" },
        { "what": "items", "not_compared": "the dtypes differ" },
    ]);
    assert_eq!(differences(&folder, &["little", "unsigned"]), expected);
    // Notations of the same dtype.
    write("one", &[1, 2], "|u1");
    write("same", &[1, 2], "u1");
    equal(&folder, &["one", "same"]);
    let record = "[('a', '>u2'), ('b', 'S1')]";
    write("record", b"\0\x01x\0\x02y", record);
    write("swapped", b"\x01\0x\x02\0z", &record.replace('>', "<"));
    let found = lines(&folder, &["record", "swapped"]);
    assert_eq!(found[1], "items    1 of 2 differ, first at [1]: (2, b'y') != (2, b'z')");
}

#[test]
fn kinds_sizes_and_bytes_after_the_last_item() {
    let folder = Folder::new();
    array(&folder, "a.b2nd", &[1.0, 2.0], &[2]);
    folder.schunk("a.b2frame", &CParams::new());
    let found = lines(&folder, &["a.b2nd", "a.b2frame"]);
    assert_eq!(found[0], "kind     ndarray != schunk");
    assert_eq!(
        found.last().unwrap(),
        "items    not compared: one file is an array, and the other is not"
    );

    let write = |name: &str, bytes: &[u8], typesize| {
        let params = CParams::new().typesize(typesize);
        folder.write(name, &blosc2::compress(bytes, &params).unwrap());
    };
    write("a", b"abcdefgh", 4);
    write("b", b"abcdefgh", 2);
    write("c", b"abcdefghi", 4);
    write("d", b"abcdefghj", 4);
    write("e", b"abcdefXhj", 4);
    let expected = ["typesize 4 != 2", "items    not compared: the sizes of the items differ"];
    assert_eq!(lines(&folder, &["a", "b"]), expected);
    let expected = ["nbytes   8 != 9", "items    not compared: the numbers of bytes differ"];
    assert_eq!(lines(&folder, &["a", "c"]), expected);
    let tail = r#"tail     bytes after the last whole item: b"i" != b"j""#;
    assert_eq!(lines(&folder, &["c", "d"]), [tail]);
    let [c, e] = [b"efgh", b"efXh"].map(|item| u32::from_ne_bytes(*item));
    let items = format!("items    1 of 2 differ, first at [1]: {c} != {e}");
    assert_eq!(lines(&folder, &["c", "e"]), [&items, tail]);

    super_chunk(&folder, "f", &[b"1234", b"abc"], 2);
    super_chunk(&folder, "g", &[b"1234", b"abd"], 2);
    let tail = r#"tail     bytes after the last whole item: b"c" != b"d""#;
    assert_eq!(lines(&folder, &["f", "g"]), [tail]);
    equal(&folder, &["f", "f"]);
}

#[test]
fn metalayers() {
    let folder = Folder::new();
    for (name, values) in [
        ("a", &[("same", "1"), ("author", "\"me\""), ("only", "[1, 2]")][..]),
        ("b", &[("author", "\"you\""), ("same", "1")]),
    ] {
        array(&folder, name, &[1.0], &[1]);
        for (key, value) in values {
            folder.good(&["meta", name, "set", key, value]);
        }
    }
    let expected = [r#"vlmeta   `author`: "me" != "you""#, "vlmeta   `only`: [1,2] != (none)"];
    assert_eq!(lines(&folder, &["a", "b"]), expected);
    let expected = json!([
        { "what": "vlmeta", "name": "author", "a": { "length": 3, "value": "me" },
          "b": { "length": 4, "value": "you" } },
        { "what": "vlmeta", "name": "only", "a": { "length": 3, "value": [1, 2] }, "b": null },
    ]);
    assert_eq!(differences(&folder, &["a", "b"]), expected);
    let expected = [r#"vlmeta   `author`: "you" != "me""#, "vlmeta   `only`: (none) != [1,2]"];
    assert_eq!(lines(&folder, &["b", "a"]), expected);
    equal(&folder, &["a", "b", "--no-meta"]);

    // Contents that start with the same characters; and one that is not msgpack.
    for (name, end) in [("c", "x"), ("d", "y")] {
        array(&folder, name, &[1.0], &[1]);
        let long = format!("{}{end}", "0".repeat(100));
        folder.good(&["meta", name, "set", "long", &long, "--raw"]);
    }
    let line = r#"vlmeta   `long`: byte 100: b"x" != byte 100: b"y""#;
    assert_eq!(lines(&folder, &["c", "d"]), [line]);
    let content = json!({ "length": 101, "value": null });
    let expected = json!([{ "what": "vlmeta", "name": "long", "a": content, "b": content }]);
    assert_eq!(differences(&folder, &["c", "d"]), expected);

    // Long values are not shortened.
    let long = "\u{9b}".repeat(100);
    folder.good(&["meta", "c", "set", "long", &json!(long).to_string()]);
    let found = differences(&folder, &["c", "d"]);
    assert_eq!(found[0]["a"]["value"], json!(long));

    // Fixed-length metalayers; that of an array contains its chunk shape.
    for (name, value) in [("e", "1"), ("f", "2")] {
        let mut schunk = SChunk::create::<u8>(folder.path(name), CParams::new()).unwrap();
        schunk.meta_mut().set("fixed", value).unwrap();
        schunk.meta_mut().set("\x1b[2J", value).unwrap();
    }
    let found = lines(&folder, &["e", "f"]);
    assert_eq!(found, ["meta     `\u{fffd}[2J`: 49 != 50", "meta     `fixed`: 49 != 50"]);
}

#[test]
fn entries_of_stores() {
    let folder = Folder::new();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files/4.14.1");
    let [zip, tree, table, embedded] = ["tree.b2z", "tree.b2d", "table.b2z", "embedded.b2e"]
        .map(|name| files.join(name).to_str().unwrap().to_owned());
    equal(&folder, &[&zip, &tree, "--key", "/array"]);
    folder.good(&["copy", &zip, "copy", "--key", "/array"]);
    equal(&folder, &[&zip, "copy", "--key", "/array"]);
    equal(&folder, &["copy", &tree, "--other-key", "/array"]);
    let numbers = ["/_cols/number", "--other-key", "/_cols/ratio"];
    let found = lines(&folder, &[&[&*table, &table, "--key"], &numbers[..]].concat());
    assert!(found[0].starts_with("dtype ") || found[0].starts_with("shape "), "{found:?}");
    for (args, part) in [
        (&[&*zip, &zip][..], "this is a store"),
        (&[&table, &table], "this is a table"),
        (&[&embedded, &embedded], "this is a store"),
        (&["copy", &zip], "this is a store"),
        (&[&zip, &zip, "--key", "/none"], "no key `/none`"),
    ] {
        let line = folder.bad(1, &[&["diff"], args].concat());
        assert!(line.contains(part), "{args:?}: {line}");
    }
}

#[test]
fn legacy_files() {
    let folder = Folder::new();
    let mut count = 0;
    for (number, (path, raw)) in old_files().iter().enumerate() {
        let name = format!("{number}.b2frame");
        if !folder.run(&["copy", path, &name]).stderr.is_empty() {
            // It is ambiguous what the data is.
            continue;
        }
        // User metadata becomes variable-length metalayers.
        let output = folder.run(&["diff", path, &name, "--no-meta"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!((output.status.code(), &*text), (Some(0), "equal\n"), "{path}");
        count += 1;
        if raw.len() < 2 {
            continue;
        }
        let mut other = raw.clone();
        other[0] ^= 1;
        let typesize = folder.info(&name)["typesize"].as_u64().unwrap() as usize;
        super_chunk(&folder, &format!("{number}.other"), &[&other], typesize);
        let found = lines(&folder, &[path, &format!("{number}.other"), "--no-meta"]);
        assert_eq!(found.len(), 1, "{path}: {found:?}");
    }
    assert!(count > 50, "{count}");
}

#[test]
fn files_that_cannot_be_compared() {
    let folder = Folder::new();
    array(&folder, "a.b2nd", &[1.0, 2.0], &[2]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    let npy = folder.read("a.npy");
    folder.write("short.npy", &npy[..npy.len() - 1]);
    folder.write("header.npy", &npy[..20]);
    folder.write("text", b"text");
    let fortran =
        String::from_utf8_lossy(&npy[10..]).replace("False", "True ").replace("(2,)", "(2,1)");
    let mut bytes = npy[..10].to_vec();
    bytes.extend(fortran.bytes().take(118));
    bytes.extend(&npy[128..]);
    folder.write("fortran.npy", &bytes);
    for name in ["none", "short.npy", "header.npy", "fortran.npy", "text"] {
        for args in [["diff", "a.b2nd", name], ["diff", name, "a.b2nd"]] {
            let line = folder.bad(1, &args);
            assert!(line.contains(name), "{line}");
        }
    }
    folder.bad(2, &["diff", "a.b2nd"]);
    folder.bad(2, &["diff", "a.b2nd", "a.b2nd", "--offset", "1", "--key", "/a"]);
    let line = folder.bad(1, &["diff", "a.b2nd", "a.b2nd", "--other-key", "/a"]);
    assert!(line.contains("a.b2nd"), "{line}");
}
