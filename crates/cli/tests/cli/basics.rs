//! `info`, `cat`, `copy`, `import` and `export`: output, files and exit status.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};

use blosc2::{CParams, Codec, Filter, NDArray};
use serde_json::{Value, json};

use crate::common::{Folder, PROGRAM, native, upstream_files};

#[test]
fn info_of_an_array() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 7], &[4, 7], &[2, 3]);
    let mut info = folder.info("a.b2nd");
    let cbytes = info["cbytes"].take().as_u64().unwrap();
    let ratio = info["ratio"].take().as_f64().unwrap();
    assert!(cbytes > 0 && (ratio - 280.0 / cbytes as f64).abs() < 1e-9, "{cbytes} {ratio}");
    let expected = json!({
        "path": "a.b2nd",
        "kind": "ndarray",
        "note": null,
        "shape": [10, 7],
        "chunks": [4, 7],
        "blocks": [2, 3],
        "dtype": native("<u4"),
        "typesize": 4,
        "nbytes": 280,
        "cbytes": null,
        "ratio": null,
        "nchunks": 3,
        "chunksize": 144,
        "codec": "zstd",
        "clevel": 5,
        "filters": ["shuffle"],
        "meta": ["b2nd"],
        "vlmeta": [],
        "checksums": false,
        "contiguous": true,
        "format_version": 2,
    });
    assert_eq!(info, expected);

    let text = String::from_utf8(folder.good(&["info", "a.b2nd"])).unwrap();
    for line in ["kind           ndarray", "shape          10, 7", "vlmeta         -"] {
        assert!(text.lines().any(|each| each == line), "{line:?} is not in {text}");
    }
}

#[test]
fn info_of_a_super_chunk() {
    let folder = Folder::new();
    let params = CParams::new().codec(Codec::Lz4).level(9).filters(&[
        Filter::Delta,
        Filter::Bitshuffle,
        Filter::Bytedelta(2),
    ]);
    folder.schunk("a.b2frame", &params);
    let info = folder.info("a.b2frame");
    for key in ["shape", "chunks", "blocks", "dtype"] {
        assert_eq!(info[key], Value::Null, "{key}");
    }
    for (key, expected) in [
        ("kind", json!("schunk")),
        ("typesize", json!(2)),
        ("nbytes", json!(700)),
        ("nchunks", json!(4)),
        ("chunksize", json!(200)),
        ("codec", json!("lz4")),
        ("clevel", json!(9)),
        ("filters", json!(["delta", "bitshuffle", "bytedelta:2"])),
        ("meta", json!([])),
    ] {
        assert_eq!(info[key], expected, "{key}");
    }
}

#[test]
fn info_and_cat_of_upstreams_files() {
    let folder = Folder::new();
    let frames = upstream_files("b2frame", &["compat", "tests/fuzz/corpus"]);
    let arrays = upstream_files("b2nd", &["plugins/test_data"]);
    assert_eq!((frames.len(), arrays.len()), (8, 2));
    for file in frames.iter().chain(&arrays) {
        let path = file.to_str().unwrap();
        let info = folder.info(path);
        let bytes = folder.good(&["cat", path]);
        assert_eq!(info["nbytes"], json!(bytes.len()), "{path}");
        assert!(folder.good(&["cat", path, "--engine", "rust"]) == bytes, "{path}");
        folder.good(&["check", path]);
        let kind = if arrays.contains(file) { "ndarray" } else { "schunk" };
        assert_eq!(info["kind"], kind, "{path}");

        let typesize = info["typesize"].as_u64().unwrap() as usize;
        let row = info["shape"].as_array().map_or(1, |shape| {
            shape[1..].iter().map(|size| size.as_u64().unwrap() as usize).product()
        });
        let part = folder.good(&["cat", path, "--slice", "2:9"]);
        assert_eq!(part, bytes[2 * row * typesize..9 * row * typesize], "{path}");

        folder.good(&["copy", path, "copy"]);
        assert_eq!(folder.good(&["cat", "copy"]), bytes, "{path}");
        for key in ["codec", "filters", "vlmeta", "nchunks", "cbytes"] {
            assert_eq!(folder.info("copy")[key], info[key], "{key} of {path}");
        }
        fs::remove_file(folder.path("copy")).unwrap();
    }
    let corpus: Vec<_> =
        frames.iter().filter(|file| file.to_str().unwrap().contains("simple")).collect();
    assert_eq!(corpus.len(), 5);
    for file in corpus {
        let info = folder.info(file.to_str().unwrap());
        let codec = info["codec"].as_str().unwrap();
        assert!(file.to_str().unwrap().ends_with(&format!("-{codec}.b2frame")), "{info}");
        assert_eq!(info["vlmeta"], json!(["vlmetalayer"]));
    }
    // Their dtype differs from that of their items.
    for file in arrays {
        let line = folder.bad(1, &["export", file.to_str().unwrap(), "a.npy"]);
        assert!(line.contains("`|u1` has 1 bytes, but its typesize is 4; `cat` reads"), "{line}");
    }
}

#[test]
fn slices_of_an_array() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[10, 7, 6], &[4, 5, 6], &[2, 5, 4]);
    assert_eq!(folder.good(&["cat", "a.b2nd"]), bytes);
    assert_eq!(folder.good(&["cat", "a.b2nd", "--engine", "c"]), bytes);
    assert_eq!(folder.good(&["cat", "a.b2nd", "--engine", "rust"]), bytes);

    let all = |size: i64| (0..size).collect::<Vec<_>>();
    for (slice, along) in [
        ("2:5", [vec![2, 3, 4], all(7), all(6)]),
        ("4", [vec![4], all(7), all(6)]),
        ("-1,-2", [vec![9], vec![5], all(6)]),
        (":,3:,-4:-1", [all(10), vec![3, 4, 5, 6], vec![2, 3, 4]]),
        ("::3", [vec![0, 3, 6, 9], all(7), all(6)]),
        ("1::5,::2,1:6:2", [vec![1, 6], vec![0, 2, 4, 6], vec![1, 3, 5]]),
        ("::-4,6:2:-3,::-1", [vec![9, 5, 1], vec![6, 3], vec![5, 4, 3, 2, 1, 0]]),
        ("0:10, 0:7, 0:6", [all(10), all(7), all(6)]),
        ("5:2", [vec![], all(7), all(6)]),
        (":,:,6:", [all(10), all(7), vec![]]),
        (":11,:,-7:", [all(10), all(7), all(6)]),
        ("8:99", [vec![8, 9], all(7), all(6)]),
        ("...,2", [all(10), all(7), vec![2]]),
        ("1,...,-1", [vec![1], all(7), vec![5]]),
    ] {
        let mut expected = Vec::new();
        for i in &along[0] {
            for j in &along[1] {
                for k in &along[2] {
                    let at = ((i * 7 + j) * 6 + k) as usize * 4;
                    expected.extend_from_slice(&bytes[at..at + 4]);
                }
            }
        }
        for engine in ["c", "rust"] {
            let args = ["cat", "a.b2nd", "--slice", slice, "--engine", engine];
            assert_eq!(folder.good(&args), expected, "{slice} {engine}");
        }
    }
    for slice in ["10", "-11", ":,7", ":,:,-7"] {
        let line = folder.bad(1, &["cat", "a.b2nd", "--slice", slice]);
        assert!(line.contains("items, asked for") && line.contains("--slice of"), "{line}");
    }
    let line = folder.bad(1, &["cat", "a.b2nd", "--slice", ":,:,:,:"]);
    assert!(line.contains("the data has 3 dimensions, got 4 slices"), "{line}");
    for slice in ["", "a", "1:2:0", "1:2:3:4", "1,,2", "1.5", "...,1,..."] {
        folder.bad(2, &["cat", "a.b2nd", "--slice", slice]);
    }
}

#[test]
fn slices_of_a_super_chunk() {
    let folder = Folder::new();
    let bytes = folder.schunk("a.b2frame", &CParams::new());
    assert_eq!(folder.good(&["cat", "a.b2frame"]), bytes);
    let items: Vec<&[u8]> = bytes.chunks(2).collect();
    for (slice, expected) in [
        (":", items.clone()),
        ("90:310", items[90..310].to_vec()),
        ("-1", items[349..].to_vec()),
        ("7::50", items[7..].iter().step_by(50).copied().collect()),
        ("::-1", items.iter().rev().copied().collect()),
        ("300:20:-170", vec![items[300], items[130]]),
        ("350:", vec![]),
        ("351:", vec![]),
        ("-999:2", items[..2].to_vec()),
    ] {
        for engine in ["c", "rust"] {
            let args = ["cat", "a.b2frame", "--slice", slice, "--engine", engine];
            assert_eq!(folder.good(&args), expected.concat(), "{slice} {engine}");
        }
    }
    folder.bad(1, &["cat", "a.b2frame", "--slice", "350"]);
    folder.bad(1, &["cat", "a.b2frame", "--slice", "1,1"]);

    // Variable-length chunks.
    let varied = upstream_files("b2frame", &["compat"]);
    let varied = varied.iter().find(|file| file.ends_with("varchunks-lz4-3.0.0.b2frame"));
    let path = varied.unwrap().to_str().unwrap();
    let bytes = folder.good(&["cat", path]);
    let every: Vec<u8> = bytes.iter().rev().step_by(3).copied().collect();
    for engine in ["c", "rust"] {
        let args = ["cat", path, "--slice", "::-3", "--engine", engine];
        assert_eq!(folder.good(&args), every, "{engine}");
    }
}

#[test]
fn output_that_nobody_reads_is_no_error() {
    let folder = Folder::new();
    let items = vec![7u8; 1 << 20];
    NDArray::builder().target(folder.path("a.b2nd")).from_slice(&items, [1 << 20]).unwrap();
    let mut child = Command::new(PROGRAM)
        .arg("cat")
        .arg(folder.path("a.b2nd"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 10]).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr), (Some(0), vec![]));
}

#[test]
fn copies_have_the_same_items() {
    let folder = Folder::new();
    let bytes = folder.array("a.b2nd", &[40, 30], &[16, 30], &[4, 15]);
    let frame_bytes = folder.schunk("a.b2frame", &CParams::new());
    for codec in ["blosclz", "lz4", "lz4hc", "zlib", "ZSTD"] {
        for (filters, expected) in [
            ("none", json!([])),
            ("", json!([])),
            ("bitshuffle", json!(["bitshuffle"])),
            ("delta,shuffle", json!(["delta", "shuffle"])),
        ] {
            for (source, bytes) in [("a.b2nd", &bytes), ("a.b2frame", &frame_bytes)] {
                let options = ["--codec", codec, "--filters", filters, "--level", "7"];
                folder.good(&[&["copy", source, "copy"], &options[..]].concat());
                assert_eq!(folder.good(&["cat", "copy"]), *bytes, "{codec} {filters} {source}");
                let (info, before) = (folder.info("copy"), folder.info(source));
                assert_eq!(info["codec"], codec.to_lowercase());
                assert_eq!(info["filters"], expected);
                assert_eq!(info["clevel"], 7);
                for key in ["kind", "shape", "chunks", "blocks", "dtype", "typesize", "meta"] {
                    assert_eq!(info[key], before[key], "{key} of {source}");
                }
                fs::remove_file(folder.path("copy")).unwrap();
            }
        }
    }
    folder.bad(2, &["copy", "a.b2frame", "copy", "--chunks", "10"]);
    folder.bad(2, &["copy", "a.b2frame", "copy", "--blocks", "10"]);
}

#[test]
fn copies_keep_what_is_not_asked_for() {
    let folder = Folder::new();
    let params = CParams::new().codec(Codec::Lz4Hc).level(3).filters(&[Filter::Bitshuffle]);
    let items: Vec<i64> = (0..600).collect();
    let builder = NDArray::builder().chunk_shape([8, 30]).block_shape([4, 10]).cparams(params);
    builder.target(folder.path("a.b2nd")).from_slice(&items, [20, 30]).unwrap();
    folder.good(&["copy", "a.b2nd", "same.b2nd"]);
    folder.good(&["copy", "a.b2nd", "level.b2nd", "--level", "8", "--threads", "2"]);
    folder.good(&["copy", "a.b2nd", "cut.b2nd", "--chunks", "10,16", "--blocks", "5,8"]);
    let before = folder.info("a.b2nd");
    for (name, changed) in
        [("same.b2nd", &[][..]), ("level.b2nd", &["clevel"]), ("cut.b2nd", &["chunks", "blocks"])]
    {
        assert_eq!(folder.good(&["cat", name]), folder.good(&["cat", "a.b2nd"]), "{name}");
        let info = folder.info(name);
        for key in ["clevel", "codec", "filters", "chunks", "blocks", "shape", "dtype"] {
            assert_eq!(info[key] != before[key], changed.contains(&key), "{key} of {name}");
        }
    }
    assert_eq!(folder.info("cut.b2nd")["chunks"], json!([10, 16]));
    assert_eq!(folder.info("cut.b2nd")["blocks"], json!([5, 8]));
    assert_eq!(folder.info("same.b2nd")["cbytes"], before["cbytes"]);
    for cut in [&["--chunks", "10"][..], &["--chunks", "0,1"], &["--blocks", "9,9,9"]] {
        folder.bad(1, &[&["copy", "a.b2nd", "copy"], cut].concat());
    }
}

/// An npy file as NumPy writes it.
fn npy(descr: &str, fortran_order: bool, shape: &str, items: &[u8]) -> Vec<u8> {
    let order = if fortran_order { "True" } else { "False" };
    let mut text = format!("{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}");
    let first = shape.trim_matches(['(', ')']).split(',').next().unwrap();
    if !first.is_empty() {
        text.push_str(&" ".repeat(21 - first.len()));
    }
    let len = (10 + text.len() + 1).next_multiple_of(64) - 10;
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((len as u16).to_le_bytes());
    // Version 1 is in Latin-1.
    bytes.extend(text.chars().map(|each| u8::try_from(each).unwrap()));
    bytes.resize(10 + len - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(items);
    bytes
}

fn some_bytes(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 37 % 251) as u8).collect()
}

#[test]
fn npy_files_come_back_as_they_were() {
    let folder = Folder::new();
    let padded =
        "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 24}";
    for (descr, typesize, dtype) in [
        ("'|b1'", 1, "|b1"),
        ("'|i1'", 1, "|i1"),
        ("'<u2'", 2, "<u2"),
        ("'>i4'", 4, ">i4"),
        ("'<i8'", 8, "<i8"),
        ("'<f2'", 2, "<f2"),
        ("'<f4'", 4, "<f4"),
        ("'>f8'", 8, ">f8"),
        ("'<f16'", 16, "<f16"),
        ("'<c8'", 8, "<c8"),
        ("'>c16'", 16, ">c16"),
        ("'|S10'", 10, "|S10"),
        ("'|S1000'", 1000, "|S1000"),
        ("'<U5'", 20, "<U5"),
        ("'>U3'", 12, ">U3"),
        ("'<M8[ns]'", 8, "<M8[ns]"),
        ("'<M8[25s]'", 8, "<M8[25s]"),
        ("'<m8'", 8, "<m8"),
        ("'|V5'", 5, "|V5"),
        ("[('a', '<i4'), ('b', '>f8')]", 12, "[('a', '<i4'), ('b', '>f8')]"),
        (
            "[('p', [('x', '<f4', (2, 3))]), ('ok', '|b1'), (('Title', 'é'), '|S3')]",
            28,
            "[('p', [('x', '<f4', (2, 3))]), ('ok', '?'), (('Title', 'é'), 'S3')]",
        ),
        ("[('a', '|i1'), ('', '|V7'), ('b', '<f8'), ('', '|V8')]", 24, padded),
    ] {
        for (shape, count) in [
            ("()", 1),
            ("(1,)", 1),
            ("(11,)", 11),
            ("(0,)", 0),
            ("(2, 0, 3)", 0),
            ("(4, 3, 5)", 60),
        ] {
            let original = npy(descr, false, shape, &some_bytes(count * typesize));
            folder.write("a.npy", &original);
            folder.good(&["import", "a.npy", "a.b2nd"]);
            folder.good(&["export", "a.b2nd", "b.npy"]);
            assert!(folder.read("b.npy") == original, "{descr} {shape}");
            assert_eq!(folder.good(&["cat", "a.b2nd"]), some_bytes(count * typesize));
            let info = folder.info("a.b2nd");
            assert_eq!((&info["dtype"], &info["typesize"]), (&json!(dtype), &json!(typesize)));
            for name in ["a.npy", "a.b2nd", "b.npy"] {
                fs::remove_file(folder.path(name)).unwrap();
            }
        }
    }
}

#[test]
fn import_takes_the_options() {
    let folder = Folder::new();
    folder.write("a.npy", &npy("'<i4'", false, "(20, 30)", &some_bytes(2400)));
    let options = ["--codec", "lz4", "--level", "2", "--filters", "shuffle,bytedelta"];
    let cut = ["--chunks", "8,30", "--blocks", "4,10", "--threads", "2"];
    folder.good(&[&["import", "a.npy", "a.b2nd"], &options[..], &cut].concat());
    let info = folder.info("a.b2nd");
    for (key, expected) in [
        ("codec", json!("lz4")),
        ("clevel", json!(2)),
        ("filters", json!(["shuffle", "bytedelta:4"])),
        ("chunks", json!([8, 30])),
        ("blocks", json!([4, 10])),
        ("nchunks", json!(3)),
    ] {
        assert_eq!(info[key], expected, "{key}");
    }
    assert_eq!(folder.good(&["cat", "a.b2nd"]), some_bytes(2400));
}

#[test]
fn fortran_order_becomes_c_order() {
    let folder = Folder::new();
    // The item [i, j, k] of shape (3, 4, 5) holds i, j, k.
    let mut fortran = Vec::new();
    let mut c = Vec::new();
    for a in 0..60u8 {
        fortran.extend([a % 3, a / 3 % 4, a / 12]);
        c.extend([a / 20, a / 5 % 4, a % 5]);
    }
    folder.write("a.npy", &npy("'|V3'", true, "(3, 4, 5)", &fortran));
    folder.good(&["import", "a.npy", "a.b2nd"]);
    assert_eq!(folder.good(&["cat", "a.b2nd"]), c);
    folder.good(&["export", "a.b2nd", "b.npy"]);
    assert_eq!(folder.read("b.npy"), npy("'|V3'", false, "(3, 4, 5)", &c));
}

#[test]
fn bad_npy_files_are_refused() {
    let folder = Folder::new();
    let good = npy("'<i4'", false, "(5,)", &some_bytes(20));
    // Cut in the magic, the length, the header, the items.
    for cut in [0, 3, 7, 9, 40, good.len() - 20, good.len() - 1] {
        folder.write("a.npy", &good[..cut]);
        folder.bad(1, &["import", "a.npy", "a.b2nd"]);
    }
    let with = |descr, shape| npy(descr, false, shape, &some_bytes(20));
    let huge = "(4294967296, 4294967296, 4294967296)";
    let deep = format!("{}'<i4'", "[".repeat(9000));
    for bytes in [
        [&good[..], b"more"].concat(),
        with("'|O'", "(5,)"),
        with("'<i3'", "(5,)"),
        with("'|S0'", "(5,)"),
        with("[]", "(5,)"),
        with("('<i4', (5,))", "()"),
        with("'<i4'", "(-5,)"),
        with("'<i4'", "5"),
        with("'<i4'", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,5)"),
        with("'<i4'", huge.trim_start_matches("(4294967296, ")),
        with("'|i1'", "(9223372036854775807,)"),
        with(&deep, "()"),
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff".to_vec(),
        b"\x93NUMPY\x09\x00\x10\x00                ".to_vec(),
        b"not a npy file at all".to_vec(),
    ] {
        folder.write("a.npy", &bytes);
        folder.bad(1, &["import", "a.npy", "a.b2nd"]);
    }
    folder.bad(1, &["import", "missing.npy", "a.b2nd"]);
    fs::create_dir(folder.path("folder")).unwrap();
    folder.bad(1, &["import", "folder", "a.b2nd"]);
    folder.write("a.npy", &good);
    folder.bad(1, &["import", "a.npy", "missing/a.b2nd"]);
    folder.bad(1, &["import", "a.npy", "a.b2nd", "--chunks", "2,2"]);
    folder.bad(1, &["import", "a.npy", "a.b2nd", "--codec", "42"]);
    folder.good(&["import", "a.npy", "a.b2nd"]);
}

#[test]
fn bad_files_are_refused() {
    let folder = Folder::new();
    folder.array("good.b2nd", &[100, 10], &[20, 10], &[5, 10]);
    folder.write("empty", b"");
    folder.write(
        "text",
        b"This is no frame at all, but long enough to be taken for one. ".repeat(9).as_slice(),
    );
    fs::create_dir(folder.path("folder")).unwrap();
    let good = folder.read("good.b2nd");
    for (index, len) in [5, 40, 100, good.len() / 2, good.len() - 1].into_iter().enumerate() {
        folder.write(&format!("cut{index}"), &good[..len]);
    }
    for name in ["missing", "empty", "text", "folder", "cut0", "cut1", "cut2", "cut3", "cut4"] {
        for args in [
            &["info", name][..],
            &["cat", name],
            &["cat", name, "--engine", "rust"],
            &["copy", name, "o"],
            &["export", name, "o"],
        ] {
            let line = folder.bad(1, args);
            assert!(line.contains(&format!("({name})")), "{line}");
        }
    }
}

#[test]
fn any_broken_byte_is_survived() {
    let folder = Folder::new();
    folder.array("good.b2nd", &[9, 4], &[4, 4], &[2, 4]);
    let good = folder.read("good.b2nd");
    for at in (0..good.len()).step_by(5) {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        folder.write("bad", &bytes);
        for args in [
            &["info", "bad"][..],
            &["cat", "bad", "--slice", ":5"],
            &["cat", "bad", "--slice", ":5", "--engine", "rust"],
            &["check", "bad", "--map"],
            &["export", "bad", "o"],
        ] {
            let output = folder.run(args);
            assert!(matches!(output.status.code(), Some(0 | 1)), "byte {at}: {output:?}");
            assert!(
                !output.stderr.windows(5).any(|part| part == b"panic"),
                "byte {at}: {output:?}"
            );
        }
        let _ = fs::remove_file(folder.path("o"));
    }
}

#[test]
fn nothing_is_overwritten() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[3], &[3], &[3]);
    folder.write("a.npy", &npy("'<i4'", false, "(5,)", &some_bytes(20)));
    folder.write("taken", b"precious");
    for args in [
        &["copy", "a.b2nd", "taken"][..],
        &["copy", "a.b2nd", "taken", "--codec", "lz4"],
        &["copy", "a.b2nd", "a.b2nd"],
        &["import", "a.npy", "taken"],
        &["export", "a.b2nd", "taken"],
        &["check", "a.b2nd", "--svg", "taken"],
    ] {
        let line = folder.bad(1, args);
        assert!(line.contains("already"), "{line}");
    }
}

#[test]
fn wrong_usage_is_status_2() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[3], &[3], &[3]);
    for (args, told) in [
        (&["copy", "a.b2nd", "o", "--codec", "zstandard"][..], "blosclz, lz4"),
        (&["copy", "a.b2nd", "o", "--level", "10"], "10 is not in 0..=9"),
        (&["copy", "a.b2nd", "o", "--level=-1"], "--level"),
        (&["copy", "a.b2nd", "o", "--filters", "shufle"], "bitshuffle"),
        (&["copy", "a.b2nd", "o", "--threads", "0"], "--threads"),
        (&["copy", "a.b2nd", "o", "--chunks", "1x2"], "numbers separated by commas"),
        (&["copy", "a.b2nd"], "<OUT>"),
        (&["cat", "a.b2nd", "--engine", "python"], "c, rust"),
        (&["check"], "<FILE>"),
        (&["check", "a.b2nd", "--svg", ""], "--svg"),
        (&["check", "a.b2nd", "--svg", "a.b2nd"], "--svg would overwrite a.b2nd"),
        (&["info"], "<FILE>"),
        (&["info", "a.b2nd", "--xml"], "--xml"),
        (&["shrink"], "shrink"),
    ] {
        let line = folder.bad(2, args);
        assert!(line.contains(told), "{line}");
    }
    assert_eq!(folder.run(&[]).status.code(), Some(2));
}

#[test]
fn what_only_looks_like_data_is_not_read() {
    // A lazy expression that Python blosc2 4.14.1 saved: `o0 + 1`, with o0 in another file.
    let hex = concat!(
        "9ea862326672616d6500d2000000b8cf00000000000001cda412005502d30000000000000018d3000000000000",
        "0000d200000004d200000018d200000018d10002d10002c3d8060000000000010500000000000000000093cd00",
        "1ade0002a462326e64d200000074a362326fd20000009bdc0002c60000002297000191d3000000000000000691",
        "d20000000691d20000000600db000000033c6934c60000001882a46b696e64a86c617a7965787072a776657273",
        "696f6e0105010508080000000800000028000000000000000000000000000000000000300000000000000081",
        "940193cd0025de0002a362326fd20000002bb05f62326f5f757365725f766c6d657461d2000000b0dc0002c600",
        "000080050187016000000060000000800000000000000000010500000000000000000084a46b696e64a86c617a",
        "7965787072a776657273696f6e01aa65787072657373696f6ea8286f30202b203129a86f706572616e647381a2",
        "6f3083a46b696e64a775726c70617468a776657273696f6e01a775726c70617468a76f702e62326e64c6000000",
        "21050107010100000001000000210000000000000000010500000000000000000080ce000000edd80000000000",
        "000000000000000000000000",
    );
    let digits: Vec<u8> = hex.chars().map(|digit| digit.to_digit(16).unwrap() as u8).collect();
    let bytes: Vec<u8> = digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect();
    let folder = Folder::new();
    folder.write("lazy.b2nd", &bytes);
    let info = folder.info("lazy.b2nd");
    assert_eq!((&info["kind"], &info["meta"]), (&json!("lazyexpr"), &json!(["b2nd", "b2o"])));
    assert_eq!(info["vlmeta"], json!(["b2o", "_b2o_user_vlmeta"]));
    assert!(info["note"].as_str().unwrap().contains("lazy expression"), "{info}");
    for args in [&["cat", "lazy.b2nd"][..], &["export", "lazy.b2nd", "o"]] {
        let line = folder.bad(1, args);
        assert!(line.contains("lazy expression"), "{line}");
    }
    folder.good(&["copy", "lazy.b2nd", "copy.b2nd"]);
    assert_eq!(folder.info("copy.b2nd")["vlmeta"], info["vlmeta"]);
}

#[test]
fn help_and_version() {
    let folder = Folder::new();
    let version = String::from_utf8(folder.good(&["--version"])).unwrap();
    let expected =
        format!("blosc2 {}\nC-Blosc2 {}", env!("CARGO_PKG_VERSION"), blosc2::library::c_version());
    assert!(version.starts_with(&expected), "{version}");
    for codec in blosc2::library::codecs() {
        assert!(version.contains(&format!("\n  {codec}")), "{version}");
    }
    assert!(version.contains("\n  lz4: LZ4 1."), "{version}");
    let help = String::from_utf8(folder.good(&["--help"])).unwrap();
    for command in ["info", "ls", "cat", "check", "copy", "meta", "import", "export"] {
        assert!(help.contains(&format!("\n  {command}")), "{help}");
        folder.good(&[command, "--help"]);
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[3000], &[3000], &[100]);
    for command in ["cat", "info", "check"] {
        let output = Command::new(PROGRAM)
            .arg(command)
            .arg(folder.path("a.b2nd"))
            .stdout(fs::OpenOptions::new().write(true).open("/dev/full").unwrap())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let line = String::from_utf8(output.stderr).unwrap();
        assert!(line.starts_with("blosc2: cannot write to stdout: "), "{line}");
    }
}
