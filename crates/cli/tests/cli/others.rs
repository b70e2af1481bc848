//! Files of other programs: folders and zip files of frames, and chunks of the codecs of plugins.
//!
//! The files in `files` were written with xarray-blosc2 1.7.1 (`freeze_dataset`), blosc2-openzl 0.0.1, blosc2-j2k 0.4.0
//! and blosc2-htj2k 0.4.2. The plugin blosc2-grok 0.3.5 cannot compress with the C-Blosc2 of Python's blosc2 4.14.1.

use std::fs;
use std::io::Read;
use std::path::Path;

use serde_json::{Value, json};

use crate::common::Folder;

fn file(name: &str) -> Vec<u8> {
    fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/files").join(name)).unwrap()
}

/// Unpacks a zip file.
fn unpack(bytes: &[u8], folder: &Path) {
    fs::create_dir(folder).unwrap();
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    let mut at = 0;
    while bytes[at..].starts_with(b"PK\x03\x04") {
        let (method, len) = (number(at + 8, 2), number(at + 18, 4));
        let (name, extra) = (number(at + 26, 2), number(at + 28, 2));
        let name = std::str::from_utf8(&bytes[at + 30..at + 30 + name]).unwrap();
        let start = at + 30 + name.len() + extra;
        let stored = &bytes[start..start + len];
        let mut content = stored.to_vec();
        if method == 8 {
            content.clear();
            flate2::bufread::DeflateDecoder::new(stored).read_to_end(&mut content).unwrap();
        }
        fs::write(folder.join(name), content).unwrap();
        at = start + len;
    }
}

#[test]
fn frames_without_an_index_are_stores() {
    let folder = Folder::new();
    let zip = file("xarray.b2z");
    folder.write("data.b2z", &zip);
    folder.write("behind.b2z", &[b"#!/bin/sh\nexit\n", &zip[..]].concat());
    unpack(&zip, &folder.path("data.b2"));
    let keys = ["/_coord_time", "/_coord_x", "/name", "/t"];
    for name in ["data.b2z", "behind.b2z", "data.b2"] {
        let text = |args: &[&str]| String::from_utf8(folder.good(args)).unwrap();
        assert!(text(&["ls", name]).lines().eq(keys), "{name}");
        assert!(text(&["ls", name, "--long"]).contains("/t            ndarray  [3, 4]  <f8"));
        assert_eq!(folder.info(name)["keys"], json!(keys), "{name}");
        let t = text(&["cat", name, "--key", "/t", "--text", "--slice", "1"]);
        assert_eq!(t, "[4. 5. 6. 7.]\n", "{name}");
        let names = text(&["cat", name, "--key", "/name", "--text"]);
        assert_eq!(names, "['a' 'bb' 'ccc' 'é']\n", "{name}");
        let report: Value =
            serde_json::from_slice(&folder.good(&["check", name, "--json"])).unwrap();
        assert_eq!(report[0]["members"].as_array().unwrap().len(), 4, "{report:#}");
        let rules = report[0]["findings"].as_array().unwrap().iter();
        let rules: Vec<_> = rules.map(|finding| finding["rule"].as_str().unwrap()).collect();
        assert_eq!(&rules[..2], ["store.plain", "store.stranger"], "{name}");
        let line = folder.bad(1, &["cat", name]);
        assert!(line.contains("this is a store"), "{line}");
    }
    // A damaged frame is found in it.
    let path = folder.path("data.b2/t.b2nd");
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(300);
    fs::write(&path, bytes).unwrap();
    assert_eq!(folder.run(&["check", "data.b2"]).status.code(), Some(1));
    // Folders without frames are none.
    fs::create_dir(folder.path("empty")).unwrap();
    let line = folder.bad(1, &["ls", "empty"]);
    assert!(line.contains("(`embed.b2e`, or frames)"), "{line}");
}

#[test]
fn codecs_of_plugins_are_named() {
    let folder = Folder::new();
    for (name, codec) in [("openzl", 38), ("j2k", 39), ("htj2k", 40)] {
        let path = format!("{name}.b2nd");
        folder.write(&path, &file(&path));
        let info = folder.info(&path);
        let shown = info["codec"].as_str().unwrap().to_lowercase();
        assert_eq!(shown, format!("{name}, codec {codec}"));
        let report: Value =
            serde_json::from_slice(&folder.good(&["check", &path, "--json"])).unwrap();
        let found = report[0]["findings"][0]["found"].as_str().unwrap().to_lowercase();
        assert_eq!(found, format!("{name}, codec {codec}"));
        assert_eq!((&report[0]["good"], &report[0]["complete"]), (&true.into(), &false.into()));
        for args in
            [&["cat", &path][..], &["cat", &path, "--engine", "rust"], &["info", &path, "--stats"]]
        {
            let line = folder.bad(1, args).to_lowercase();
            assert!(line.contains(&format!("{name}, codec {codec}")), "{args:?}: {line}");
        }
    }
    // Special chunks need no codec: the first has zeros only.
    let zeros = folder.good(&["cat", "openzl.b2nd", "--slice", "0:10"]);
    assert!(zeros.len() == 8000 && zeros.iter().all(|&byte| byte == 0));
    let chunks = folder.good(&["info", "openzl.b2nd", "--chunks"]);
    assert!(String::from_utf8(chunks).unwrap().contains("zeros"));
}
