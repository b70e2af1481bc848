//! Messages about files that cannot be used: what they are, and what to do instead.

use std::fs;

use blosc2::limits::USER_CODES;
use blosc2::user_defined::CodecInfo;
use blosc2::{CParams, Codec, NDArray};

use crate::common::{Folder, golden_files};

/// The commands that take a Blosc2 file, without and with an output file.
const COMMANDS: [(&str, &[&str]); 15] = [
    ("info", &[]),
    ("ls", &[]),
    ("cat", &[]),
    ("cat", &["--engine", "rust"]),
    ("cat", &["--text"]),
    ("view", &[]),
    ("bench", &[]),
    ("diff", &["."]),
    ("check", &[]),
    ("checksums", &[]),
    ("copy", &["o"]),
    ("export", &["o"]),
    ("meta", &[]),
    ("repair", &[]),
    ("repair", &["-o", "o"]),
];

/// The arguments of a command on a file.
fn args<'a>(command: &'a str, file: &'a str, rest: &'a [&'a str]) -> Vec<&'a str> {
    let rest = rest.iter().copied();
    [command, file].into_iter().chain(rest).collect()
}

#[test]
fn other_formats_are_named() {
    let folder = Folder::new();
    let files: [(&str, &[u8], &str); 12] = [
        ("a.png", b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "a PNG image"),
        ("a.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", "a JPEG image"),
        ("a.h5", b"\x89HDF\r\n\x1a\n\0\0\0\0\0\x08\x08\0", "an HDF5 file"),
        ("a.gz", b"\x1f\x8b\x08\x00\0\0\0\0\0\x03", "a gzip file"),
        ("a.parquet", b"PAR1\x15\x04\x15\x10PAR1", "a Parquet file"),
        ("a.zst", b"\x28\xb5\x2f\xfd\x04\x00\x01\x00\x00", "a Zstandard file"),
        ("a.nc", b"CDF\x01\0\0\0\0", "a netCDF file"),
        ("a.txt", b"some text, with an \xc3\xa9 in it\n", "a text file"),
        ("a.json", b"{\n \"a\": 1}", "a text file"),
        ("empty", b"", "an empty file"),
        ("other", b"\x89\x00\x01\xff\xfe\x90\x91\x92\x93\x94\x95", "of an unknown format"),
        // A zip file without members.
        (
            "a.zip",
            b"PK\x05\x06\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "a zip file with neither `embed.b2e` nor frames, not a store",
        ),
    ];
    for (file, bytes, format) in files {
        folder.write(file, bytes);
        for (command, rest) in COMMANDS {
            let line = folder.bad(1, &args(command, file, rest));
            let expected = format!(" ({file}): not a Blosc2 file: it is {format}");
            assert!(
                line.starts_with("blosc2: cannot ") && line.contains(&expected),
                "{command}: {line}"
            );
            assert!(!line.contains("`blosc2 repair`"), "{command}: {line}");
        }
        let line = folder.bad(1, &["import", file, "o"]);
        assert!(
            line.starts_with("blosc2: cannot ") && line.contains(&format!(" ({file}): ")),
            "{line}"
        );
        // These become tables.
        let is_read = matches!(format, "a Parquet file" | "an Arrow file");
        if format != "of an unknown format" && file != "a.zip" && !is_read {
            assert!(line.contains(&format!("not an npy file, but {format}")), "{line}");
        }
    }
}

#[test]
fn missing_files_are_not_stores() {
    let folder = Folder::new();
    for (command, rest) in COMMANDS.into_iter().chain([("import", &["o"][..])]) {
        for (file, more) in
            [("x.b2nd", &[][..]), ("x.b2z", &[]), ("no/x.b2nd", &[]), ("x", &["--key", "/a"])]
        {
            if !more.is_empty()
                && matches!(command, "check" | "checksums" | "meta" | "repair" | "import")
                || rest.contains(&"rust") && !more.is_empty()
            {
                continue;
            }
            let line = folder.bad(1, &[args(command, file, rest), more.to_vec()].concat());
            assert_eq!(line, format!("blosc2: cannot open ({file}): no such file\n"), "{command}");
        }
    }
}

#[test]
fn directories_without_blosc2_files_are_named() {
    let folder = Folder::new();
    fs::create_dir_all(folder.path("folder/inside")).unwrap();
    folder.write("folder/text", b"text");
    let reason = "a directory with neither a sparse frame (`chunks.b2frame`) nor a store (`embed.b2e`, or frames)";
    for (command, rest) in COMMANDS {
        let line = folder.bad(1, &args(command, "folder", rest));
        assert!(line.contains(&format!(" (folder): {reason}\n")), "{command}: {line}");
    }
    let line = folder.bad(1, &["import", "folder", "o"]);
    assert_eq!(line, "blosc2: cannot import (folder): not an npy file, but a directory\n");
}

#[test]
fn npy_files_are_imported_and_frames_are_copied() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[10, 3], &[5, 3], &[2, 3]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    // These commands also read npy files.
    let readers = ["cat", "diff", "export", "view"];
    for (command, rest) in COMMANDS.into_iter().filter(|(command, _)| !readers.contains(command)) {
        let line = folder.bad(1, &args(command, "a.npy", rest));
        let hint = "not a Blosc2 file: it is an npy file; `blosc2 import` converts it to an array";
        assert!(line.contains(hint), "{command}: {line}");
    }
    folder.schunk("a.b2frame", &CParams::new());
    for file in ["a.b2nd", "a.b2frame"] {
        let line = folder.bad(1, &["import", file, "o"]);
        let expected = format!(
            "blosc2: cannot import ({file}): not an npy file, but a contiguous frame; `blosc2 copy` copies and \
             recompresses it\n"
        );
        assert_eq!(line, expected);
    }
    let mut store = blosc2_store::TreeStore::create(folder.path("a.b2z")).unwrap();
    store.insert("/a", NDArray::from_slice(&[1u8, 2], &[2]).unwrap().schunk()).unwrap();
    store.finish().unwrap();
    let line = folder.bad(1, &["import", "a.b2z", "o"]);
    assert!(line.contains("not an npy file, but a store; `blosc2 copy --key KEY`"), "{line}");
    // From stdin, too.
    let import = |file: &str, args: &[&str]| {
        let output = folder.piped(&[&["import", "-"], args].concat(), &folder.read(file));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let expected = "blosc2: cannot import (-): not an npy file, but a contiguous frame; `blosc2 copy` copies and \
                    recompresses it\n";
    assert_eq!(import("a.b2nd", &["o"]), (Some(1), expected.to_owned()));
    assert_eq!(import("a.npy", &["b.b2nd"]), (Some(0), String::new()));
    folder.good(&["diff", "a.b2nd", "b.b2nd"]);
    assert_eq!(import("a.b2nd", &["c.b2nd", "--dtype", "u1"]), (Some(0), String::new()));
    // An npz file: an empty member.
    let header = [&b"PK\x03\x04\x14\0"[..], &[0; 20], b"\x05\0\0\0a.npy"].concat();
    let entry = [&b"PK\x01\x02\x14\0\x14\0"[..], &[0; 20], b"\x05\0", &[0; 16], b"a.npy"].concat();
    let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
    end.extend((entry.len() as u32).to_le_bytes());
    end.extend((header.len() as u32).to_le_bytes());
    end.extend([0, 0]);
    folder.write("a.npz", &[header, entry, end].concat());
    let line = folder.bad(1, &["import", "a.npz", "o"]);
    assert!(line.contains("not an npy file, but an npz file; unpack it"), "{line}");
    // Raw items can have any bytes.
    folder.write("raw", b"text, not items");
    let line = folder.bad(1, &["import", "raw", "o", "--dtype", "f4"]);
    assert!(!line.contains("npy"), "{line}");
    // A damaged npy file is still an npy file.
    let bytes = folder.read("a.npy");
    folder.write("a.npy", &bytes[..bytes.len() - 1]);
    let line = folder.bad(1, &["import", "a.npy", "o"]);
    assert!(line.contains("the file is truncated"), "{line}");
}

#[test]
fn stdin_is_not_repaired() {
    let folder = Folder::new();
    for rest in [&[][..], &["-o", "o"]] {
        let line = folder.bad(2, &args("repair", "-", rest));
        assert_eq!(line, "blosc2: stdin cannot be changed; name a file\n");
    }
}

#[test]
fn the_member_at_fault_is_named() {
    let folder = Folder::new();
    let mut store = blosc2_store::TreeStore::create(folder.path("a.b2z")).unwrap();
    store.insert("/a", NDArray::from_slice(&[1u8, 2], &[2]).unwrap().schunk()).unwrap();
    store.finish().unwrap();
    let mut bytes = folder.read("a.b2z");
    let frames = |at: &usize| bytes[*at..].starts_with(b"b2frame\0");
    let last = (0..bytes.len()).rfind(frames).unwrap();
    bytes[last..last + 8].fill(0);
    folder.write("a.b2z", &bytes);
    for command in ["ls", "info"] {
        let line = folder.bad(1, &[command, "a.b2z"]);
        let path = std::path::Path::new("a.b2z").join("embed.b2e");
        assert!(line.contains(&format!(" ({}): ", path.display())), "{line}");
    }
}

#[test]
fn a_failed_repair_does_not_suggest_a_repair() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[1000], &[100], &[50]);
    let good = folder.read("a.b2nd");
    // Nothing is left after the start of the header.
    folder.write("a.b2nd", &good[..60]);
    for rest in [&[][..], &["-o", "o"]] {
        let line = folder.bad(1, &args("repair", "a.b2nd", rest));
        assert!(line.contains("a.b2nd") && !line.contains("`blosc2 repair`"), "{line}");
    }
    let line = folder.bad(1, &["cat", "a.b2nd"]);
    assert!(line.contains("`blosc2 repair` recovers the intact chunks"), "{line}");
}

/// The range of a chunk in a file, from the layout that `check` prints.
fn chunk(folder: &Folder, file: &str, number: usize) -> std::ops::Range<usize> {
    let json = folder.good(&["check", file, "--map", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let map = json[0]["map"].as_array().unwrap();
    let part = format!("chunk {number}");
    let region = map.iter().find(|region| region["part"] == part.as_str()).unwrap();
    let number = |name: &str| region[name].as_u64().unwrap() as usize;
    number("offset")..number("offset") + number("length")
}

#[test]
fn errors_of_decoding_name_the_chunk() {
    let folder = Folder::new();
    let params = CParams::new().codec(Codec::Lz4);
    let items: Vec<u32> = (0..1000).collect();
    let builder = NDArray::builder().chunk_shape([200]).block_shape([50]).cparams(params.clone());
    builder.target(folder.path("a.b2nd")).from_slice(&items, [1000]).unwrap();
    folder.schunk("a.b2frame", &params);
    for file in ["a.b2nd", "a.b2frame"] {
        let range = chunk(&folder, file, 2);
        let mut bytes = folder.read(file);
        // The starts of the blocks, after the header.
        bytes[range.start + 32..range.start + 36].fill(0xff);
        folder.write(file, &bytes);
        for args in [
            &["cat", file][..],
            &["cat", file, "--slice", "::2"],
            &["cat", file, "--engine", "rust"],
            &["cat", file, "--engine", "rust", "--slice", "::2"],
            &["copy", file, "o", "--level", "9"],
            &["export", file, "o"],
        ] {
            if args[0] == "export" && file == "a.b2frame" {
                continue;
            }
            let line = folder.bad(1, args);
            assert!(
                line.contains("chunk 2") && line.contains(&format!("({file})")),
                "{args:?}: {line}"
            );
        }
        // The other chunks are still read.
        folder.good(&["cat", file, "--slice", ":20"]);
        folder.good(&["cat", file, "--slice", ":20", "--engine", "rust"]);
    }
}

#[test]
fn missing_codecs_are_named() {
    // The command does not have this codec, which never decompresses here.
    let compress = |_: &[u8], output: &mut [u8], _: &CodecInfo<'_>| {
        output[0] = 1;
        Ok(Some(1))
    };
    let decompress = |_: &[u8], _: &mut [u8], _: &CodecInfo<'_>| Err("not here".into());
    let codec = Codec::register(212, "pco", (compress, decompress)).unwrap();
    let folder = Folder::new();
    let items: Vec<u32> = (0..1000).collect();
    let builder = NDArray::builder().cparams(CParams::new().codec(codec).filters(&[]));
    builder.target(folder.path("a.b2nd")).from_slice(&items, [1000]).unwrap();
    folder.good(&["info", "a.b2nd"]);
    for args in [
        &["cat", "a.b2nd"][..],
        &["cat", "a.b2nd", "--engine", "rust"],
        &["copy", "a.b2nd", "o", "--codec", "zstd"],
        &["export", "a.b2nd", "o"],
    ] {
        let line = folder.bad(1, args);
        assert!(line.contains("codec 212") && line.contains("(a.b2nd)"), "{args:?}: {line}");
    }
}

#[test]
fn errors_of_decoding_old_files_name_the_chunk() {
    let folder = Folder::new();
    let mut count = 0;
    for (path, _) in golden_files("old-frames/beta.2") {
        folder.write("old", &fs::read(&path).unwrap());
        let json = folder.run(&["check", "old", "--map", "--json"]).stdout;
        let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        let map = json[0]["map"].as_array().unwrap();
        if !map.iter().any(|region| region["part"] == "chunk 2") {
            continue;
        }
        count += 1;
        let range = chunk(&folder, "old", 2);
        let mut bytes = folder.read("old");
        // The number of decompressed bytes, in the header.
        bytes[range.start + 4..range.start + 8].fill(0x7f);
        folder.write("old", &bytes);
        for args in [&["cat", "old"][..], &["copy", "old", "o"]] {
            let line = folder.bad(1, args);
            assert!(line.contains("chunk 2"), "{path} {args:?}: {line}");
        }
    }
    assert!(count > 0);
}

#[test]
fn only_available_codecs_are_offered() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[3], &[3], &[3]);
    // Another test of this process may have registered a codec.
    let codecs = blosc2::library::codecs();
    let codecs = codecs.iter().filter(|codec| !USER_CODES.contains(&codec.code()));
    let names: Vec<_> = codecs.map(ToString::to_string).collect();
    let help = String::from_utf8(folder.good(&["copy", "--help"])).unwrap();
    let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&names.join(", ")), "{help}");
    let line = folder.bad(2, &["copy", "a.b2nd", "o", "--codec", "none"]);
    let (_, offered) = line.split_once("expected one of ").unwrap();
    let (offered, _) = offered.split_once(", got").unwrap();
    for name in offered.split(", ") {
        assert!(names.iter().any(|each| each == name), "{name} is not available: {line}");
    }
    for codec in ["zlib", "zstd"] {
        assert_eq!(offered.contains(codec), names.iter().any(|each| each == codec), "{line}");
    }
}

#[test]
fn sizes_are_readable() {
    let folder = Folder::new();
    let items = vec![0u8; 1_234_567];
    NDArray::builder().target(folder.path("a.b2nd")).from_slice(&items, [1_234_567]).unwrap();
    let text = String::from_utf8(folder.good(&["info", "a.b2nd"])).unwrap();
    assert!(text.contains("\nnbytes         1234567 (1.18 MiB)\n"), "{text}");
    assert_eq!(folder.info("a.b2nd")["nbytes"], 1_234_567);
    folder.array("b.b2nd", &[3], &[3], &[3]);
    let text = String::from_utf8(folder.good(&["info", "b.b2nd"])).unwrap();
    assert!(text.contains("\nnbytes         12\n"), "{text}");
}
