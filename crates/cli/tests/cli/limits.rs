//! Limits, the options that raise them, and the names in messages.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{CParams, NDArray, OpenOptions, SChunk};
use blosc2_format::b2nd::Meta;
use blosc2_format::chunk::{Params, Special};
use blosc2_format::frame::{Metalayer, Writer};
use blosc2_store::{CTable, Data, ItemKind, Schema, TreeStore};

use crate::common::*;

/// Creates an array of `count` zeros, in chunks of one item.
fn many_chunks(path: &Path, count: u64) {
    let params = Params { typesize: 4, ..Params::default() };
    let (shape, dtype) = (vec![count as i64], Some("<i4".to_owned()));
    let meta = Meta { shape, chunks: vec![1], blocks: vec![1], dtype, dtype_format: 0 };
    let meta = Metalayer { name: "b2nd".into(), content: meta.to_bytes().unwrap() };
    let mut writer = Writer::new(fs::File::create(path).unwrap(), params, &[meta]).unwrap();
    writer.set_max_chunks(count);
    writer.fill(Special::Zeros, 4 * count, 4).unwrap();
    writer.finish().unwrap();
}

/// Python opens such files.
#[test]
fn an_array_of_very_many_chunks_is_read_with_an_option() {
    const COUNT: u64 = 200_000_000;
    let option = ["--max-chunks", "200000000"];
    let folder = Folder::new();
    many_chunks(&folder.path("a.b2nd"), COUNT);
    let with = |args: &[&str]| folder.good(&[args, &option].concat());
    let nchunks = |name: &str| {
        let json: serde_json::Value =
            serde_json::from_slice(&with(&["info", name, "--json"])).unwrap();
        json["nchunks"].as_u64()
    };
    assert_eq!(nchunks("a.b2nd"), Some(COUNT));
    let range = ["cat", "a.b2nd", "--slice", "199999998:", "--text"];
    for engine in ["c", "rust"] {
        assert_eq!(with(&[&range[..], &["--engine", engine]].concat()), b"[0 0]\n");
        let line = folder.bad(1, &[&range[..], &["--engine", engine]].concat());
        let expected = "200000000, over the limit of 16777216; raise it with --max-chunks";
        assert!(line.contains(expected), "{line}");
    }
    let checked = String::from_utf8(with(&["check", "a.b2nd"])).unwrap();
    assert!(checked.contains("0 warnings"), "{checked}");
    let checked = String::from_utf8(folder.good(&["check", "a.b2nd"])).unwrap();
    assert!(checked.contains("--max-chunks"), "{checked}");
    with(&["copy", "a.b2nd", "b.b2nd"]);
    assert_eq!(nchunks("b.b2nd"), Some(COUNT));
    assert_eq!(with(&["export", "a.b2nd", "-", "--format", "csv", "--slice", "5:7"]), b"0\n0\n");
    let line = folder.bad(1, &[&["info", "--chunks", "a.b2nd"], &option[..]].concat());
    assert!(line.contains("200000000 chunks") && line.contains("--max-memory"), "{line}");
    // One less than the number of chunks.
    let line = folder.bad(1, &["info", "a.b2nd", "--max-chunks", "199999999"]);
    assert!(line.contains("over the limit of 199999999"), "{line}");
    // Messages of commands without these options do not name them.
    let line = folder.bad(1, &["repair", "a.b2nd"]);
    assert!(line.contains("at most 16777216 chunks, found 200000000"), "{line}");
    assert!(!line.contains("--max") && !line.contains("::"), "{line}");
}

/// Runs a command that exceeds a limit, and asserts that its message names an option that makes it succeed.
fn raised_by(folder: &Folder, args: &[&str], option: &str, low: &str, high: &str) {
    let with = |value| [args, &[option, value]].concat();
    let line = folder.bad(1, &with(low));
    assert!(line.contains(option), "{args:?}: {line}");
    assert!(!line.contains("::"), "{args:?}: {line}");
    folder.good(&with(high));
}

#[test]
fn messages_about_limits_name_the_option_that_raises_them() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[1000, 100], &[50, 50], &[10, 50]);
    let params = CParams::default();
    folder.schunk("s.b2frame", &params);
    let options = OpenOptions::new().create_new(true);
    let mut schunk = options.open(folder.path("m.b2frame")).unwrap();
    schunk.vlmeta_mut().set("long", vec![7; 100_000]).unwrap();
    // An index that is not one repeated value.
    let mut many = SChunk::create::<u8>(folder.path("i.b2frame"), &params).unwrap();
    for chunk in 0..200u8 {
        many.append(&[chunk, 1]).unwrap();
    }
    let mut store = TreeStore::create(folder.path("t.b2z")).unwrap();
    let array = NDArray::from_slice(&(0..100_000u32).collect::<Vec<_>>(), &[100_000]).unwrap();
    store.insert("/a", array.schunk()).unwrap();
    store.finish().unwrap();

    let cases: [&[&str]; 7] = [
        &["cat", "a.b2nd"],
        &["cat", "a.b2nd", "--engine", "rust"],
        &["cat", "s.b2frame"],
        &["cat", "i.b2frame"],
        &["info", "i.b2frame"],
        &["meta", "m.b2frame", "get", "long", "--raw"],
        &["cat", "t.b2z", "--key", "/a"],
    ];
    for args in cases {
        raised_by(&folder, args, "--max-memory", "40", "1G");
    }
    raised_by(&folder, &["info", "--chunks", "i.b2frame"], "--max-memory", "20000", "1G");

    // A check reports limits as findings.
    let found = |args: &[&str]| String::from_utf8(folder.good(args)).unwrap();
    for (option, low) in [("--max-memory", "1000"), ("--max-decoded", "1K")] {
        let text = found(&["check", "a.b2nd", option, low]);
        assert!(text.contains(option) && !text.contains("::"), "{text}");
        let json = found(&["check", "a.b2nd", option, low, "--json"]);
        assert!(json.contains(option) && !json.contains("Limits::"), "{json}");
        let text = found(&["check", "a.b2nd", option, "1G"]);
        assert!(text.contains("0 warnings"), "{text}");
    }
    for wrong in ["1.5G", "G", "", "99999P"] {
        let line = folder.bad(2, &["cat", "a.b2nd", "--max-memory", wrong]);
        assert!(line.contains("powers of 1024"), "{line}");
    }
}

/// The limits apply to everything in a store: also to the columns of a table in a single file.
#[test]
fn limits_apply_to_the_columns_of_tables() {
    let folder = Folder::new();
    let schema = Schema::new().column("n", ItemKind::Int64).expected_rows(1);
    let numbers: Vec<i64> = (0..100).collect();
    let fill = |table: &mut CTable| {
        table.append([("n", Data::items(&numbers))]).unwrap();
        table.finish().unwrap();
    };
    fill(&mut CTable::create(folder.path("t.b2d"), &schema).unwrap());
    let mut table = CTable::in_memory(&schema).unwrap();
    fill(&mut table);
    folder.write("t.b2e", &table.to_cframe().unwrap());
    let mut store = TreeStore::create(folder.path("s.b2z")).unwrap();
    fill(&mut store.create_table("/t", &schema).unwrap());
    store.finish().unwrap();
    let files: [(&[&str], &str); 3] =
        [(&["t.b2d"], ""), (&["t.b2e"], ""), (&["s.b2z", "--key", "/t"], "/t")];
    for (file, root) in files {
        // The mask of the rows and the column have 100 chunks each.
        let info = |max| {
            let args = [&["info"], file, &["--max-chunks", max]].concat();
            String::from_utf8(folder.good(&args)).unwrap()
        };
        assert!(info("100").contains("columns        n (int64)"), "{}", info("100"));
        assert!(info("99").contains("raise it with --max-chunks"), "{}", info("99"));
        let column = format!("{root}/_cols/n");
        let cat = ["cat", file[0], "--text", "--key", &column];
        raised_by(&folder, &cat, "--max-chunks", "99", "100");
        raised_by(&folder, &cat, "--max-memory", "600", "1G");
    }
}

#[test]
fn advice_names_commands_and_options() {
    let folder = Folder::new();
    folder.schunk("a.b2frame", &CParams::default());
    let mut marked = folder.read("a.b2frame");
    marked[0x10] = 0x7f;
    folder.write("marked.b2frame", &marked);
    let line = folder.bad(1, &["cat", "marked.b2frame"]);
    assert!(line.contains("`blosc2 repair` rolls the change back"), "{line}");
    assert!(!line.contains("::"), "{line}");
    // With a lock file, another program may be changing the file.
    let mut bad = folder.read("a.b2frame");
    bad.truncate(bad.len() - 1);
    folder.write("cut.b2frame", &bad);
    folder.write("cut.b2frame.b2lock", b"");
    let line = folder.bad(1, &["cat", "cut.b2frame"]);
    assert!(line.contains("--locking") && !line.contains("::"), "{line}");
}

/// The messages with Rust paths. Those of the first list are replaced by the command; its unit tests check this for
/// `Advice::ALL` and `Limit::ALL`. The command does not call the functions that return those of the second list.
const REPLACED: [&str; 14] = [
    "(see `Limits::memory`)",
    "(see `Limits::metadata`)",
    "(see `Limits::total_bytes`)",
    "(see `Limits::items`)",
    "(see `Limits::dimensions`)",
    "(see `Limits::chunks`)",
    "(see `Limits::metalayers`)",
    "raise it with `OpenOptions::max_read`, or read into a buffer that you provide",
    "roll the change back: open it for writing with `OpenOptions::locking` or `OpenOptions::recover`",
    "open it with `OpenOptions::recover`, or repair the file",
    "another program may be changing it: open it with `OpenOptions::locking`",
    "`blosc2::repair::repair` (the command `blosc2 repair`) saves the intact chunks",
    "`array::from_python_object` opens the stored items",
    ": call BatchArray::recount",
];
const NOT_CALLED: [(&str, &str); 6] = [
    ("NDArray::builder creates arrays", "options that create a super-chunk open an array"),
    ("copy it with a chunk shape (NDArrayBuilder::chunk_shape)", "an array is extended"),
    ("DParams::convert_byte_order converts them", "a view of items"),
    ("append chunks created by Chunk::nans", "a super-chunk is filled with NaN"),
    ("passed by `Data::values`", "cells of a table are written"),
    ("select other columns with `ReadOptions::columns`", "a table is read as Arrow arrays"),
];

#[test]
fn no_other_message_names_an_item_of_rust() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = [const { Vec::new() }; 2];
    for folder in ["../blosc2", "format", "store", "object-store", "cli"] {
        for file in sources(&crates.join(folder).join("src")) {
            for text in literals(&fs::read_to_string(&file).unwrap()) {
                if !names_rust(&text) {
                    continue;
                }
                let replaced = REPLACED.iter().position(|known| text.contains(known));
                let known = NOT_CALLED.iter().position(|(known, _)| text.contains(known));
                match (replaced, known) {
                    (Some(index), _) => found[0].push(index),
                    (_, Some(index)) => found[1].push(index),
                    _ => panic!("{}: {text:?}", file.display()),
                }
            }
        }
    }
    // The lists contain no message that does not exist.
    for (mut found, count) in found.into_iter().zip([REPLACED.len(), NOT_CALLED.len()]) {
        found.sort_unstable();
        found.dedup();
        assert_eq!(found, (0..count).collect::<Vec<_>>());
    }
}

/// The source files of a folder without tests.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.file_name().unwrap().to_str().unwrap() {
        "tests" => Vec::new(),
        _ if path.is_dir() => sources(&path),
        name if name.ends_with("tests.rs") || !name.ends_with(".rs") => Vec::new(),
        _ => vec![path],
    };
    entries.flat_map(of).collect()
}

/// The string literals of a source file, without comments and the unit tests at its end. Line continuations are joined.
fn literals(source: &str) -> Vec<String> {
    // The attribute is `cfg(test)` or `cfg(all(test, ...))`.
    let source = source.split("\nmod tests {").next().unwrap();
    let mut all = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let before = &rest[..at];
        rest = &rest[at..];
        if rest.starts_with("//") {
            rest = rest.find('\n').map_or("", |end| &rest[end..]);
        } else if rest.starts_with('"') {
            let is_raw = before.ends_with('r') || before.ends_with('#');
            let hashes = before.len() - before.trim_end_matches('#').len();
            let (mut text, mut escaped, mut skipped) = (String::new(), false, false);
            let mut end = rest.len();
            for (at, each) in rest[1..].char_indices() {
                let closes = !is_raw || rest[at + 2..].starts_with(&"#".repeat(hashes));
                skipped &= each.is_whitespace();
                match each {
                    // A line that continues.
                    '\n' if escaped => skipped = true,
                    _ if escaped || skipped => {}
                    '"' if closes => {
                        end = at + 2;
                        break;
                    }
                    '\\' if !is_raw => {
                        escaped = true;
                        continue;
                    }
                    _ => text.push(each),
                }
                escaped = false;
            }
            all.push(text);
            rest = &rest[end..];
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\") {
            // A character, not a lifetime.
            let end = rest[2..].find('\'').map_or(rest.len(), |end| end + 3);
            rest = &rest[end..];
        } else {
            rest = &rest[1..];
        }
    }
    all
}

/// Whether a text contains `Type::function` or `module::function`.
fn names_rust(text: &str) -> bool {
    text.match_indices("::").any(|(at, _)| {
        text[..at].ends_with(|each: char| each.is_ascii_alphanumeric() || each == '_')
            && text[at + 2..].starts_with(|each: char| each.is_ascii_lowercase() || each == '_')
    })
}
