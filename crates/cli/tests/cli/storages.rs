//! The storages of a file: one frame, a directory, a frame inside a larger file. Also the reports on damaged
//! ones.

use blosc2::{CParams, Chunk, Codec, SChunk};
use blosc2_testing::Rng;
use serde_json::{Value, json};

use crate::common::{Folder, golden_files, old_files};

/// Creates a file that contains the bytes of another one, with other bytes before and after them.
fn inside(folder: &Folder, name: &str, bytes: &[u8]) {
    folder.write(name, &[&[b'z'; 1000], bytes, &[b'z'; 77]].concat());
}

#[test]
fn frames_inside_larger_files() {
    let folder = Folder::new();
    let array = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    let items = folder.schunk("a.b2frame", &CParams::new());
    folder.good(&["meta", "a.b2frame", "set", "text", "\"inside\""]);
    for (name, bytes) in [("a.b2nd", &array), ("a.b2frame", &items)] {
        inside(&folder, "large", &folder.read(name));
        let at = ["large", "--offset", "1000"];
        let whole = folder.info(name);
        let info: Value =
            serde_json::from_slice(&folder.good(&[&["info"], &at[..], &["--json"]].concat()))
                .unwrap();
        for key in ["kind", "shape", "typesize", "nbytes", "cbytes", "nchunks", "meta", "vlmeta"] {
            assert_eq!(info[key], whole[key], "{key}");
        }
        let row = if name == "a.b2nd" { 28 } else { 2 };
        for engine in ["c", "rust"] {
            let cat = [&["cat", "--engine", engine], &at[..]].concat();
            assert_eq!(folder.good(&cat), *bytes, "{engine}");
            let sliced = [&cat[..], &["--slice", "3:9"]].concat();
            assert_eq!(folder.good(&sliced), bytes[3 * row..9 * row], "{engine}");
        }
        folder.good(&[&["check"], &at[..]].concat());
        folder.good(&[&["copy"], &at[..], &["out"]].concat());
        assert_eq!(folder.good(&["cat", "out"]), *bytes);
        assert_eq!(folder.info("out")["vlmeta"], whole["vlmeta"]);
        std::fs::remove_file(folder.path("out")).unwrap();
        for args in
            [&["info", "large"][..], &["cat", "large", "--offset", "999"], &["check", "large"]]
        {
            folder.bad(1, args);
        }
        folder.bad(1, &["cat", "large", "--offset", "99999"]);
        folder.bad(2, &["cat", "large", "--offset=-1"]);
    }
    let value = folder.good(&["meta", "large", "--offset", "1000", "get", "text"]);
    assert_eq!(value, b"\"inside\"\n");
    // A frame inside a larger file is read-only.
    let line = folder.bad(1, &["meta", "large", "--offset", "1000", "set", "text", "1"]);
    assert!(line.contains("can only be read"), "{line}");
}

#[test]
fn old_files_and_chunks_inside_larger_files() {
    let folder = Folder::new();
    let files = [golden_files("early-frame/"), old_files()].concat();
    let (path, raw) = files.iter().find(|(path, _)| path.contains("early-frame")).unwrap();
    inside(&folder, "large", &std::fs::read(path).unwrap());
    assert_eq!(folder.good(&["cat", "large", "--offset", "1000"]), *raw);
    let chunk = blosc2::compress(&[7u32; 1000], &CParams::new()).unwrap();
    inside(&folder, "chunk", &chunk);
    for engine in ["c", "rust"] {
        let args = ["cat", "chunk", "--offset", "1000", "--slice", "2:5", "--engine", engine];
        assert_eq!(folder.good(&args), 7u32.to_ne_bytes().repeat(3));
    }
}

#[test]
fn directories_are_copied_from_and_to() {
    let folder = Folder::new();
    let array = folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    let items = folder.schunk("a.b2frame", &CParams::new());
    for (name, bytes) in [("a.b2nd", &array), ("a.b2frame", &items)] {
        for (number, options) in
            [&[][..], &["--codec", "lz4"], &["--codec", "lz4", "--threads", "2"]]
                .into_iter()
                .enumerate()
        {
            let directory = format!("{number}_{name}");
            folder.good(&[&["copy", name, &directory, "--directory"], options].concat());
            assert!(folder.path(&directory).join("chunks.b2frame").is_file());
            let (info, before) = (folder.info(&directory), folder.info(name));
            assert_eq!(info["contiguous"], false);
            assert_eq!(info["codec"], if number == 0 { "zstd" } else { "lz4" });
            for key in ["kind", "shape", "chunks", "blocks", "dtype", "typesize", "nchunks"] {
                assert_eq!(info[key], before[key], "{key} of {name}");
            }
            for engine in ["c", "rust"] {
                assert_eq!(folder.good(&["cat", &directory, "--engine", engine]), *bytes);
            }
            folder.good(&["check", &directory]);
            let back = format!("back_{directory}");
            folder.good(&["copy", &directory, &back]);
            assert_eq!(folder.info(&back)["contiguous"], true);
            assert_eq!(folder.good(&["cat", &back]), *bytes);
        }
    }
    let line = folder.bad(1, &["copy", "a.b2nd", "0_a.b2nd", "--directory"]);
    assert!(line.contains("already"), "{line}");
    for command in ["info", "cat", "check", "meta"] {
        let line = folder.bad(1, &[command, "0_a.b2nd", "--offset", "8"]);
        assert!(line.contains("--offset requires a file"), "{line}");
    }
    folder.write("chunk", &blosc2::compress(&[7u32; 1000], &CParams::new()).unwrap());
    let line = folder.bad(2, &["copy", "chunk", "out", "--directory"]);
    assert!(
        line.contains("--directory requires a frame of the current format, and chunk is a"),
        "{line}"
    );
}

#[test]
fn chunks_are_listed() {
    let folder = Folder::new();
    let params = CParams::new().codec(Codec::Lz4);
    let mut schunk = SChunk::create::<f64>(folder.path("a.b2frame"), &params).unwrap();
    schunk.append(&[0f64; 1000]).unwrap();
    schunk.append(&(0..1000).map(f64::from).collect::<Vec<_>>()).unwrap();
    schunk.append(&Chunk::repeat(&[1.5f64], 1000, &params).unwrap()).unwrap();
    let mut rng = Rng(0);
    let random: Vec<f64> = (0..100).map(|_| f64::from_bits(rng.next())).collect();
    schunk.append(&random).unwrap();
    let infos: Vec<_> = (0..schunk.nchunks()).map(|at| schunk.chunk_info(at).unwrap()).collect();
    drop(schunk);

    let json: Value =
        serde_json::from_slice(&folder.good(&["info", "a.b2frame", "--json", "--chunks"])).unwrap();
    let list = json["chunk_list"].as_array().unwrap();
    let data: Vec<_> = list.iter().map(|chunk| chunk["data"].as_str().unwrap()).collect();
    assert_eq!(data, ["zeros", "compressed", "repeated", "stored"]);
    assert_eq!((&list[0]["place"], &list[0]["ratio"]), (&Value::Null, &Value::Null));
    assert_eq!(list[1]["place"], 0);
    for (chunk, info) in list.iter().zip(&infos) {
        assert_eq!(
            (&chunk["nbytes"], &chunk["cbytes"]),
            (&json!(info.nbytes), &json!(info.cbytes))
        );
    }
    assert_eq!(
        list.iter().map(|chunk| chunk["cbytes"].as_u64().unwrap()).sum::<u64>(),
        json["cbytes"]
    );

    let text = String::from_utf8(folder.good(&["info", "a.b2frame", "--chunks"])).unwrap();
    let rows: Vec<&str> = text.lines().rev().take(5).collect();
    let cells = |row: &str| {
        row.split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(cells(rows[4]), ["chunk", "place", "nbytes", "cbytes", "ratio", "data"]);
    assert_eq!(cells(rows[3]), ["0", "-", "7.81 KiB", "0 B", "-", "zeros"]);
    let last = cells(rows[0]);
    assert_eq!((last[0].as_str(), last[2].as_str(), last[5].as_str()), ("3", "800 B", "stored"));
    // The columns of numbers are aligned on the right.
    let end = |row: &str, cell: &str| row.find(cell).unwrap() + cell.len();
    assert_eq!(end(rows[4], "nbytes"), end(rows[3], "7.81 KiB"));
    assert_eq!(end(rows[4], "nbytes"), end(rows[0], "800 B"));
    assert!(folder.info("a.b2frame").get("chunk_list").is_none());

    folder.write("chunk", &blosc2::compress(&[7u32; 1000], &CParams::new()).unwrap());
    let line = folder.bad(1, &["info", "chunk", "--chunks"]);
    assert!(line.contains("cannot list chunks (chunk): this is a"), "{line}");
}

#[test]
fn what_is_wrong_with_a_damaged_file_is_told() {
    let folder = Folder::new();
    folder.array("good", &[100, 10], &[20, 10], &[5, 10]);
    let good = folder.read("good");
    let hint = "`blosc2 check` lists all faults, `blosc2 repair` recovers the intact chunks";
    // Its length in the header.
    let mut bytes = good.clone();
    bytes[20] ^= 1;
    folder.write("bad", &bytes);
    let line = folder.bad(1, &["info", "bad"]);
    assert!(line.contains("(bad)") && line.contains("expected") && line.contains(hint), "{line}");
    // The length in the header of the first chunk, which is checked when the chunk is read.
    let header_len = u32::from_be_bytes(good[11..15].try_into().unwrap()) as usize;
    let mut bytes = good.clone();
    bytes[header_len + 7] = 0xff;
    folder.write("bad", &bytes);
    folder.good(&["info", "bad"]);
    let line = folder.bad(1, &["cat", "bad"]);
    assert!(line.contains("(bad)") && line.contains("expected") && line.contains(hint), "{line}");
    // A file that is not a frame has nothing to recover.
    folder.write("text", &b"This is no frame at all. ".repeat(20));
    let line = folder.bad(1, &["info", "text"]);
    assert!(!line.contains("repair"), "{line}");
}
