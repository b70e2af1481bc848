//! The command on every kind of file: checked, read without C, and copied to current frames.

use std::fs;
use std::path::Path;

use blosc2::{CParams, Chunk, Codec, Compressor, Filter, NDArray};
use serde_json::{Value, json};

use crate::common::{Folder, PROGRAM, golden, golden_files, old_files, upstream_files};

fn check(folder: &Folder, files: &[&str]) -> (Option<i32>, Value) {
    let output = folder.run(&[&["check", "--json"], files].concat());
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap())
}

#[test]
fn old_files_are_read() {
    let folder = Folder::new();
    let files = old_files();
    assert!(files.len() > 90, "{}", files.len());
    for (path, raw) in &files {
        let output = folder.run(&["cat", path]);
        assert!(output.status.success() && output.stdout == *raw, "{path}");
        let warned = !output.stderr.is_empty();
        assert_eq!(warned, path.contains("delta_noise"), "{path}");

        let info = folder.info(path);
        assert_eq!(info["note"] != Value::Null, warned, "{path}");
        assert_eq!(info["nbytes"], raw.len(), "{path}");
        let kind = match path {
            path if path.contains("packed/") => "packed",
            path if path.contains("early-frame/") => "early-frame",
            _ => "frame-version-1",
        };
        assert_eq!(info["kind"], kind, "{path}");
        if raw.len() > 100 {
            let typesize = info["typesize"].as_u64().unwrap() as usize;
            let part = folder.run(&["cat", path, "--slice", "3:20"]).stdout;
            assert_eq!(part, raw[3 * typesize..20 * typesize], "{path}");
        }
    }
}

#[test]
fn what_an_old_file_says() {
    let folder = Folder::new();
    let path = golden().join("early-frame/e87dd0af_fileappend_zlib_bitshuf_ts8_n3_ml3.b2frame");
    let mut info = folder.info(path.to_str().unwrap());
    for key in ["path", "ratio", "cbytes"] {
        assert_ne!(info[key].take(), Value::Null, "{key}");
    }
    let meta = info["meta"].take();
    assert_eq!(meta.as_array().unwrap().len(), 3);
    let expected = json!({
        "path": null,
        "kind": "early-frame",
        "note": null,
        "shape": null,
        "chunks": null,
        "blocks": null,
        "dtype": null,
        "typesize": 8,
        "nbytes": 24576,
        "cbytes": null,
        "ratio": null,
        "nchunks": 3,
        "chunksize": 8192,
        "codec": "zlib",
        "clevel": 5,
        "filters": ["bitshuffle"],
        "meta": null,
        "vlmeta": [],
        "checksums": null,
        "contiguous": true,
        "format_version": null,
    });
    assert_eq!(info, expected);
}

#[test]
fn old_files_become_frames_of_today() {
    let folder = Folder::new();
    for (path, raw) in &old_files() {
        let output = folder.run(&["copy", path, "copy"]);
        assert!(output.status.success(), "{path}: {output:?}");
        assert!(folder.good(&["cat", "copy", "--engine", "c"]) == *raw, "{path}");
        assert!(folder.good(&["cat", "copy", "--engine", "rust"]) == *raw, "{path}");
        let (status, report) = check(&folder, &["copy"]);
        assert_eq!((status, &report[0]["notes"]), (Some(0), &json!(1)), "{path}");
        assert_eq!(report[0]["findings"][0]["rule"], "file.unverified", "{path}");
        let (info, before) = (folder.info("copy"), folder.info(path));
        // Variable-length chunks need a newer version.
        let version = if path.contains("last_bigger") { 3 } else { 2 };
        assert_eq!(info["kind"], "schunk", "{path}");
        assert_eq!(info["format_version"], version, "{path}");
        for key in ["typesize", "nbytes", "clevel", "filters", "meta", "vlmeta", "codec"] {
            assert_eq!(info[key], before[key], "{key} of {path}");
        }
        fs::remove_file(folder.path("copy")).unwrap();
    }
    let (path, raw) = &golden_files("packed/a2_lz4_shuf_ts8_n3_meta_user")[0];
    let options = ["--codec", "zstd", "--level", "9", "--filters", "bitshuffle"];
    folder.good(&[&["copy", path, "copy"], &options[..]].concat());
    assert_eq!(folder.good(&["cat", "copy"]), *raw);
    let info = folder.info("copy");
    assert_eq!((&info["codec"], &info["filters"]), (&json!("zstd"), &json!(["bitshuffle"])));
    assert_eq!(info["vlmeta"], json!(["metadata", "userdata"]));
    folder.bad(1, &["copy", path, "copy"]);
    let line = folder.bad(2, &["copy", path, "o", "--chunks", "10"]);
    assert!(line.contains("is a packed super-chunk"), "{line}");
}

#[test]
fn what_cannot_be_decoded_any_more_is_told() {
    let folder = Folder::new();
    for (name, told) in [
        ("early-frame/e87dd0af_mem_lizard_shuf_ts4_n1.b2frame", "not supported: Lizard"),
        ("packed/a3_zstd_shuf_ts4_n3.bin", "not supported"),
        ("packed/NEGATIVE_a5_lz4_shuf_ts4_n3.bin", "2.0.0-a5, which no version could read"),
    ] {
        let path = golden().join(name);
        let path = path.to_str().unwrap();
        for args in [&["cat", path][..], &["copy", path, "o"]] {
            let line = folder.bad(1, args);
            assert!(line.contains(told) && line.contains(&format!("({path})")), "{line}");
        }
    }
    let (path, _) = &golden_files("early-frame/beta1_mem_zstd")[0];
    let line = folder.bad(1, &["cat", path, "--engine", "c"]);
    assert!(line.contains("an early frame") && line.contains("`--engine rust` reads"), "{line}");
    let line = folder.bad(1, &["export", path, "o"]);
    assert!(line.contains("without shape and dtype; `cat` reads it"), "{line}");
}

#[test]
fn bare_chunks_are_read_by_both() {
    let folder = Folder::new();
    let items: Vec<u8> = (0..4000u32).flat_map(|item| (item * 3).to_le_bytes()).collect();
    let params = CParams::new().codec(Codec::Lz4).typesize(4).filters(&[Filter::Shuffle]);
    folder.write("a.chunk", &blosc2::compress(&items, &params).unwrap());
    for args in [&["cat", "a.chunk"][..], &["cat", "a.chunk", "--engine", "c"]] {
        assert_eq!(folder.good(args), items, "{args:?}");
        let part = folder.good(&[args, &["--slice", "7:11"]].concat());
        assert_eq!(part, items[28..44], "{args:?}");
    }
    let info = folder.info("a.chunk");
    assert_eq!((&info["kind"], &info["codec"]), (&json!("chunk"), &json!("lz4")));
    assert_eq!((&info["nbytes"], &info["typesize"]), (&json!(16000), &json!(4)));
    folder.good(&["copy", "a.chunk", "a.b2frame"]);
    assert_eq!(folder.good(&["cat", "a.b2frame"]), items);
    let (status, report) = check(&folder, &["a.chunk"]);
    assert_eq!((status, &report[0]["kind"]), (Some(0), &json!("chunk")));

    let chunks = upstream_files("cdata", &["compat"]);
    let name = |path: &Path| path.file_name().unwrap().to_str().unwrap().to_owned();
    // The others are the output of filters.
    let chunks = chunks.iter().filter(|path| name(path).starts_with("blosc-"));
    let chunks: Vec<_> = chunks.map(|path| path.to_str().unwrap()).collect();
    assert_eq!(chunks.len(), 27);
    for path in chunks {
        let bytes = folder.good(&["cat", path, "--engine", "c"]);
        assert!(folder.good(&["cat", path]) == bytes, "{path}");
        folder.good(&["check", path]);
    }
}

#[test]
fn bare_chunks_are_copied_to_chunks() {
    let folder = Folder::new();
    let items: Vec<u8> = (0..4000u32).flat_map(|item| (item * 3).to_le_bytes()).collect();
    let params = CParams::new().codec(Codec::Lz4).typesize(4).filters(&[Filter::Shuffle]);
    let chunk = blosc2::compress(&items, &params).unwrap();
    folder.write("a.chunk", &[&chunk[..], b"what follows"].concat());
    folder.good(&["copy", "a.chunk", "same"]);
    assert_eq!(folder.read("same"), chunk);

    let copied = |from: &str, to: &str, options: &[&str]| {
        folder.good(&[&["copy", from, to], options].concat());
        Chunk::new(folder.read(to)).unwrap()
    };
    let made = copied("a.chunk", "b", &["--codec", "blosclz", "--filters", "bitshuffle"]);
    assert_eq!((made.codec(), made.filters()), (Codec::BloscLz, vec![Filter::Bitshuffle]));
    assert_eq!((made.typesize(), made.is_blosc1()), (4, false));
    assert_eq!(folder.good(&["cat", "b"]), items);
    let info = folder.info("b");
    assert_eq!((&info["kind"], &info["codec"]), (&json!("chunk"), &json!("blosclz")));
    let stored = copied("a.chunk", "stored", &["--level", "0"]);
    assert!(stored.is_stored() && stored.decompress::<u8>().unwrap() == items);
    let meta = copied("a.chunk", "meta", &["--codec-meta", "7"]);
    assert_eq!((meta.codec(), meta.codec_meta()), (Codec::Lz4, 7));

    // As a frame.
    folder.good(&["copy", "a.chunk", "a.b2frame", "--level", "9", "--codec-meta", "3"]);
    assert_eq!(folder.good(&["cat", "a.b2frame"]), items);
    let info = folder.info("a.b2frame");
    assert_eq!((&info["kind"], &info["clevel"]), (&json!("schunk"), &json!(9)));
    let params = blosc2::SChunk::open(folder.path("a.b2frame")).unwrap().info().cparams;
    assert_eq!((params.codec, params.codec_meta), (Codec::Lz4, 3));

    let line = folder.bad(2, &["copy", "a.chunk", "o", "--chunks", "10"]);
    assert!(line.contains("is a chunk"), "{line}");
    let line = folder.bad(1, &["copy", "a.chunk", "b"]);
    assert!(line.contains("it already exists"), "{line}");
    let line = folder.bad(1, &["copy", "a.chunk", "o", "--codec", "ndlz"]);
    assert!(line.contains("(a.chunk)") && line.contains("in arrays only"), "{line}");
    folder.write("short", &chunk[..chunk.len() - 1]);
    for args in [&["copy", "short", "o"][..], &["cat", "short", "--engine", "c"]] {
        let line = folder.bad(1, args);
        assert!(line.contains("(short)") && line.contains("its header declares"), "{line}");
    }
}

#[test]
fn what_is_special_about_a_chunk_stays() {
    let folder = Folder::new();
    let copied = |name: &str, chunk: &[u8], options: &[&str]| {
        folder.write(name, chunk);
        let out = format!("{name}.copy");
        folder.good(&[&["copy", name, &out], options].concat());
        Chunk::new(folder.read(&out)).unwrap()
    };
    let blocks = [&b"one"[..], &[7; 1000], b"three"];
    let params = CParams::new().codec(Codec::Lz4);
    let chunk = Compressor::new(&params).unwrap().compress_blocks(&blocks).unwrap();
    let copy = copied("blocks", chunk.as_bytes(), &["--codec", "blosclz"]);
    assert_eq!(copy.codec(), Codec::BloscLz);
    assert!(copy.blocks().unwrap().iter().eq(blocks));

    let words: Vec<u8> =
        (0..60_000u32).flat_map(|word| (word * word % 997).to_le_bytes()).collect();
    let chunk = blosc2::compress(&words, &params.clone().typesize(4).dictionary(true)).unwrap();
    assert!(Chunk::new(&chunk[..]).unwrap().has_dictionary());
    let copy = copied("dictionary", &chunk, &["--filters", "none"]);
    assert!(copy.has_dictionary() && copy.filters().is_empty());
    assert!(copy.decompress::<u8>().unwrap() == words);
    assert!(!copied("without", &chunk, &["--codec", "blosclz"]).has_dictionary());

    for (len, blocksize) in [(words.len(), 4000), (3998, 4000), (3, 4), (0, 4000)] {
        let params = params.clone().typesize(4).blocksize(blocksize);
        let chunk = blosc2::compress(&words[..len], &params).unwrap();
        let blocksize = Chunk::new(&chunk[..]).unwrap().blocksize();
        let copy = copied(&format!("blocks of {len}"), &chunk, &["--level", "9"]);
        assert_eq!((copy.blocksize(), copy.nbytes()), (blocksize, len));
        assert!(copy.decompress::<u8>().unwrap() == words[..len]);
    }

    let chunk = blosc2::compress(&words, &params.typesize(4).blosc1(true)).unwrap();
    let copy = copied("blosc1", &chunk, &["--codec", "blosclz", "--level", "9"]);
    assert!(copy.is_blosc1() && copy.codec() == Codec::BloscLz && copy.typesize() == 4);
    assert!(copy.decompress::<u8>().unwrap() == words);
    let line = folder.bad(1, &["copy", "blosc1", "o", "--filters", "delta"]);
    assert!(line.contains("chunks of Blosc1") && line.contains("got delta"), "{line}");
}

#[test]
fn directories_are_read_and_checked() {
    let folder = Folder::new();
    let files = golden_files("old-frames/").into_iter().filter(|(path, _)| path.contains("sparse"));
    let files: Vec<_> = files.collect();
    assert!(files.len() > 5);
    for (path, raw) in files {
        assert!(folder.good(&["cat", &path, "--engine", "rust"]) == raw, "{path}");
        let text = String::from_utf8(folder.good(&["check", &path, "--map"])).unwrap();
        assert!(text.contains("directory of chunks, good"), "{text}");
        assert!(text.contains("chunks.b2frame:\n"), "{text}");
    }
}

/// The note about files without checksums.
fn unverified(count: usize) -> Value {
    let files = if count == 1 { "1 file".to_owned() } else { format!("{count} files") };
    json!({
        "severity": "note",
        "rule": "file.unverified",
        "section": "Frame: checksums",
        "file": null,
        "part": "file",
        "offset": 0,
        "length": 0,
        "what": "checksums",
        "expected": "checksums of all data",
        "found": format!(
            "{files} without checksums, in which a changed byte can decode to other data without a finding"
        ),
    })
}

#[test]
fn files_without_checksums_are_noted_or_refused() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10], &[10], &[10]);
    let old = old_files().into_iter().next().unwrap().0;
    for name in ["a.b2nd", &old] {
        let (status, report) = check(&folder, &[name]);
        assert_eq!((status, &report[0]["good"]), (Some(0), &json!(true)), "{name}");
        assert!(report[0]["findings"].as_array().unwrap().contains(&unverified(1)), "{report:#}");
        let (status, report) = check(&folder, &[name, "--require-checksums"]);
        assert_eq!((status, &report[0]["errors"]), (Some(1), &json!(1)), "{name}");
        let findings = report[0]["findings"].as_array().unwrap();
        let is_missing = |finding: &Value| finding["rule"] == "frame.checksums.missing";
        assert!(findings.iter().any(is_missing), "{report:#}");
    }
    folder.good(&["checksums", "a.b2nd"]);
    for options in [&["a.b2nd"][..], &["a.b2nd", "--require-checksums"]] {
        let (status, report) = check(&folder, options);
        assert_eq!((status, &report[0]["findings"]), (Some(0), &json!([])), "{options:?}");
    }
    let text = String::from_utf8(folder.good(&["check", "a.b2nd"])).unwrap();
    assert_eq!(text, "a.b2nd: contiguous frame, good: 0 errors, 0 warnings, 0 notes\n");
    // A program that does not know the checksums has changed the file.
    let mut bytes = folder.read("a.b2nd");
    let at = bytes.windows(13).rposition(|bytes| bytes == b"blosc2.crc32c").unwrap() + 13 + 2;
    bytes[at + 7] ^= 1;
    folder.write("a.b2nd", &bytes);
    folder.good(&["check", "a.b2nd"]);
    folder.bad(1, &["check", "a.b2nd", "--require-checksums"]);
}

#[test]
fn every_finding_is_told() {
    let folder = Folder::new();
    folder.array("good.b2nd", &[100, 10], &[20, 10], &[5, 10]);
    let mut bytes = folder.read("good.b2nd");
    let (status, report) = check(&folder, &["good.b2nd"]);
    let expected = json!([{
        "path": "good.b2nd",
        "kind": "frame",
        "good": true,
        "complete": true,
        "errors": 0,
        "warnings": 0,
        "notes": 1,
        "omitted": 0,
        "unreadable": null,
        "members": null,
        "findings": [unverified(1)],
        "map": null,
    }]);
    assert_eq!((status, report), (Some(0), expected));
    let text = String::from_utf8(folder.good(&["check", "good.b2nd"])).unwrap();
    let expected = "good.b2nd: note [file.unverified] byte 0 (+0), file: checksums: expected checksums of all data, \
        found 1 file without checksums, in which a changed byte can decode to other data without a finding \
        (see \"Frame: checksums\")\n\
        good.b2nd: contiguous frame, good: 0 errors, 0 warnings, 1 note\n";
    assert_eq!(text, expected);

    // Versions of the metalayer and of the chunk are wrong.
    let meta = bytes.windows(5).position(|each| each == [0xc6, 0, 0, 0, 0x35]).unwrap() + 5;
    bytes[meta + 1] = 3;
    let header_len = u32::from_be_bytes(bytes[0x0b..0x0f].try_into().unwrap()) as usize;
    bytes[header_len] = 0;
    folder.write("bad.b2nd", &bytes);
    let (status, report) = check(&folder, &["bad.b2nd", "good.b2nd"]);
    assert_eq!(status, Some(1));
    let [bad, good] = report.as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!((&bad["good"], &good["good"]), (&json!(false), &json!(true)));
    assert_eq!((&bad["errors"], &bad["warnings"]), (&json!(1), &json!(1)));
    let version = json!({
        "severity": "error",
        "rule": "chunk.version",
        "section": "Chunk: header",
        "file": null,
        "part": "chunk 0",
        "offset": header_len,
        "length": 1,
        "what": "chunk version",
        "expected": "1 to 6",
        "found": "0",
    });
    let findings = bad["findings"].as_array().unwrap();
    assert!(findings.contains(&version), "{findings:#?}");
    let array = findings.iter().find(|each| each["rule"] == "b2nd.version").unwrap();
    assert_eq!((&array["offset"], &array["part"]), (&json!(meta + 1), &json!("metalayer `b2nd`")));

    let line = folder.bad(1, &["check", "bad.b2nd"]);
    assert_eq!(line, "blosc2: found errors (bad.b2nd)\n");
    let text = String::from_utf8(folder.run(&["check", "bad.b2nd"]).stdout).unwrap();
    let expected = format!(
        "bad.b2nd: error [chunk.version] byte {header_len} (+1), chunk 0: chunk version: expected 1 \
         to 6, found 0 (see \"Chunk: header\")\n"
    );
    assert!(text.contains(&expected), "{text}");
    assert!(text.contains("\nbad.b2nd: contiguous frame, bad: 1 error, 1 warning, "), "{text}");
}

#[test]
fn content_is_checked_unless_told_otherwise() {
    let folder = Folder::new();
    // The same bytes in both byte orders, so that the first stream is never a run.
    let items: Vec<u32> = (0..3000).map(|i| (i % 251) * 0x0101_0101).collect();
    let builder =
        NDArray::builder().chunk_shape([3000]).block_shape([3000]).target(folder.path("a.b2nd"));
    builder.from_slice(&items, 3000).unwrap();
    let mut bytes = folder.read("a.b2nd");
    let header_len = u32::from_be_bytes(bytes[0x0b..0x0f].try_into().unwrap()) as usize;
    // After the start of the only block and the length of its first stream.
    bytes[header_len + 40..header_len + 48].fill(0xff);
    folder.write("a.b2nd", &bytes);
    folder.bad(1, &["check", "a.b2nd"]);
    folder.good(&["check", "a.b2nd", "--no-content"]);
}

#[test]
fn files_that_cannot_be_checked_are_told() {
    let folder = Folder::new();
    folder.array("good.b2nd", &[10], &[10], &[10]);
    folder.write("text", b"This is no frame at all.");
    folder.write("empty", b"");
    fs::create_dir(folder.path("folder")).unwrap();
    let line = folder.bad(1, &["check", "missing"]);
    assert!(line.contains("(missing)"), "{line}");
    for name in ["text", "empty", "folder"] {
        folder.bad(1, &["check", name]);
        let (status, report) = check(&folder, &[name]);
        let rules: Vec<_> = report[0]["findings"].as_array().unwrap().iter().collect();
        assert_eq!((status, rules.len()), (Some(1), 1), "{report}");
        assert_eq!((&rules[0]["rule"], &report[0]["kind"]), (&json!("file.kind"), &Value::Null));
    }
    // The other files are still checked.
    let (status, report) = check(&folder, &["missing", "good.b2nd"]);
    assert_eq!((status, &report[1]["good"]), (Some(1), &json!(true)));
    assert!(report[0]["unreadable"].as_str().unwrap().contains("(missing)"), "{report}");
    let output = folder.run(&["check", "missing", "good.b2nd"]);
    assert_eq!(String::from_utf8(output.stderr).unwrap().lines().count(), 2);
}

#[test]
fn the_map_covers_the_file() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[100, 10], &[20, 10], &[5, 10]);
    let len = folder.read("a.b2nd").len() as u64;
    let (_, report) = check(&folder, &["a.b2nd", "--map"]);
    let map = report[0]["map"].as_array().unwrap();
    let parts: Vec<_> = map.iter().map(|each| each["part"].as_str().unwrap()).collect();
    for part in ["header", "metalayer `b2nd`", "chunk 0", "chunk 4", "index", "trailer"] {
        assert!(parts.contains(&part), "{parts:?}");
    }
    // Regions may be nested, and cover the whole file.
    let mut end = 0;
    for region in map {
        let (offset, length) = (&region["offset"], &region["length"]);
        let (offset, length) = (offset.as_u64().unwrap(), length.as_u64().unwrap());
        assert!(offset <= end, "{region}");
        end = end.max(offset + length);
    }
    assert_eq!(end, len);

    let text = String::from_utf8(folder.good(&["check", "a.b2nd", "--map"])).unwrap();
    assert_eq!(text.lines().filter(|line| line.contains('|')).count(), map.len(), "{text}");

    folder.good(&["check", "a.b2nd", "--svg", "map.svg"]);
    let svg = String::from_utf8(folder.read("map.svg")).unwrap();
    assert!(svg.starts_with("<svg xmlns=") && svg.ends_with("</svg>\n"), "{svg}");
    assert_eq!(svg.matches("<title>").count(), map.len());
    assert!(svg.contains(">a.b2nd, ") && svg.contains("<title>chunk 3: "), "{svg}");
}

#[test]
fn damaged_old_files_are_survived() {
    let folder = Folder::new();
    let starts = ["early-frame/beta1", "old-frames/beta.2", "packed/a2_lz4_delta"];
    for (path, _) in starts.map(golden_files).concat() {
        let good = fs::read(&path).unwrap();
        for at in (0..good.len().min(200)).step_by(13).chain([good.len() / 2, good.len() - 10]) {
            let mut bytes = good.clone();
            bytes[at] ^= 0xff;
            folder.write("bad", &bytes);
            folder.write("cut", &good[..at]);
            for args in [
                &["info", "bad"][..],
                &["cat", "bad"],
                &["cat", "cut"],
                &["check", "bad", "cut"],
                &["copy", "bad", "o"],
            ] {
                let output = folder.run(args);
                let text = String::from_utf8_lossy(&output.stderr);
                let good = matches!(output.status.code(), Some(0 | 1)) && !text.contains("panic");
                assert!(good, "byte {at} of {path}: {output:?}");
            }
            let _ = fs::remove_file(folder.path("o"));
        }
    }
    assert!(Path::new(PROGRAM).exists());
}
