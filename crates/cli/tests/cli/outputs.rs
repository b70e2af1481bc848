//! Output files: formats by their extensions; hints of errors.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use blosc2::{NDArray, RawItems};
use blosc2_store::{EmbedStore, TreeStore};

use crate::common::*;

fn csv(folder: &Folder, name: &str) -> String {
    String::from_utf8(folder.good(&["export", name, "-", "--format", "csv"])).unwrap()
}

#[test]
fn export_writes_the_format_of_the_extension() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[3, 4], &[2, 3], &[1, 2]);
    folder.good(&["export", "a.b2nd", "a.csv"]);
    assert_eq!(folder.read("a.csv"), b"0,1,2,3\n4,5,6,7\n8,9,10,11\n");
    folder.good(&["export", "a.b2nd", "a.NPY"]);
    folder.good(&["export", "a.b2nd", "a"]);
    assert!(folder.read("a.NPY").starts_with(b"\x93NUMPY"));
    assert_eq!(folder.read("a"), folder.read("a.NPY"));
    folder.good(&["export", "a.b2nd", "b.csv", "--format", "npy"]);
    assert_eq!(folder.read("b.csv"), folder.read("a.NPY"));
    folder.good(&["export", "a.b2nd", "a.dat", "--format", "csv"]);
    assert_eq!(folder.read("a.dat"), folder.read("a.csv"));
    let line = folder.bad(2, &["export", "a.b2nd", "a.h5"]);
    assert!(line.contains("cannot write `.h5` files (a.h5)"), "{line}");
    assert!(line.contains("expected `.npy`, `.csv`, `.parquet`"), "{line}");
    assert!(line.contains("--format sets the format"), "{line}");
}

#[test]
fn lines_of_csv_files() {
    let folder = Folder::new();
    let builder = |name: &str| NDArray::builder().target(folder.path(name));
    let raw = |name: &str, shape: &[u64], dtype: &str, item: usize, bytes: &[u8]| {
        builder(name).dtype(dtype, item).from_slice(RawItems(bytes), shape).unwrap();
    };
    builder("one").from_slice(&[1.5f32, f32::NAN, 1e-7], &[3]).unwrap();
    assert_eq!(csv(&folder, "one"), "1.5\nnan\n1e-07\n");
    builder("zero").from_slice(&[true], &[0u64; 0]).unwrap();
    assert_eq!(csv(&folder, "zero"), "True\n");
    builder("empty").from_slice(&[0u8; 0], &[0, 3]).unwrap();
    assert_eq!(csv(&folder, "empty"), "");
    raw("text", &[2, 2], "|S4", 4, b"a,b\0q\"q\0x\ny\0\0\0\0\0");
    assert_eq!(csv(&folder, "text"), "\"a,b\",\"q\"\"q\"\n\"x\ny\",\n");
    raw("date", &[1], "<M8[D]", 8, &19_000i64.to_le_bytes());
    assert_eq!(csv(&folder, "date"), "2022-01-08\n");
    // An array with as many items as several pieces of the stream, in chunks that are not rows.
    let items: Vec<u16> = (0..300_000u32).map(|item| item as u16).collect();
    builder("large").chunk_shape([7u64, 900]).from_slice(&items, &[300, 1000]).unwrap();
    let lines = items
        .chunks(1000)
        .map(|row| row.iter().map(ToString::to_string).collect::<Vec<_>>().join(",") + "\n");
    assert_eq!(csv(&folder, "large"), lines.collect::<String>());
    let dtype = "[('a', '<u2'), ('b', [('c', '|S2'), ('d', '|u1', (2,))])]";
    raw("fields", &[2], dtype, 6, &[1, 0, b'x', 0, 7, 8, 2, 0, b'y', b'z', 9, 10]);
    assert_eq!(csv(&folder, "fields"), "a,b.c,b.d[0],b.d[1]\n1,x,7,8\n2,yz,9,10\n");
    raw("rows", &[2], "('|u1', (3,))", 3, &[1, 2, 3, 4, 5, 6]);
    assert_eq!(csv(&folder, "rows"), "1,2,3\n4,5,6\n");

    let items: Vec<u8> = (0..8).collect();
    builder("cube").from_slice(&items, &[2, 2, 2]).unwrap();
    // An index removes an axis, as in npy files.
    for (slice, expected) in [("1", "4,5\n6,7\n"), ("1,:,1", "5\n7\n"), ("0,0,0", "0\n")] {
        folder.good(&["export", "cube", "part.csv", "--slice", slice, "--force"]);
        assert_eq!(folder.read("part.csv"), expected.as_bytes(), "{slice}");
    }
    // An npy file is a source of `export`, too.
    folder.good(&["export", "cube", "part.npy", "--slice", ":,0,1:"]);
    assert_eq!(csv(&folder, "part.npy"), "1\n5\n");
    let line = folder.bad(1, &["export", "cube", "cube.csv"]);
    assert!(line.contains("it has 3 dimensions, a CSV file"), "{line}");
    raw("table", &[1, 1], "[('a', '<u2')]", 2, &[0, 0]);
    let line = folder.bad(1, &["export", "table", "table.csv"]);
    assert!(line.contains("it has 2 dimensions"), "{line}");
}

#[test]
fn other_outputs_have_the_extension_of_their_format() {
    let folder = Folder::new();
    folder.array("a.b2nd", &[30, 40], &[20, 30], &[10, 20]);
    folder.good(&["export", "a.b2nd", "a.npy"]);
    for (args, expected) in [
        (
            &["view", "a.b2nd", "-o", "a.jpg"][..],
            "cannot write `.jpg` files (a.jpg): expected `.png`",
        ),
        (&["bench", "a.b2nd", "--plot", "a.svg"], "expected `.png`"),
        (&["check", "a.b2nd", "--svg", "a.png"], "expected `.svg`"),
        (&["import", "a.npy", "b.csv"], "expected a name for a Blosc2 file, such as `.b2nd`"),
        (&["copy", "a.b2nd", "b.h5"], "expected a name for a Blosc2 file"),
    ] {
        let line = folder.bad(2, args);
        assert!(line.contains(expected), "{args:?}: {line}");
    }
    folder.write("t.txt", b"1,2\n3,4\n");
    let line = folder.bad(1, &["import", "t.txt", "t.b2nd"]);
    assert!(line.contains("cannot import (t.txt): not an npy file"), "{line}");
    for args in [
        &["view", "a.b2nd", "-o", "picture.PNG"][..],
        &["view", "a.b2nd", "-o", "picture"],
        &["copy", "a.b2nd", "b.bl2"],
        &["import", "a.npy", "b"],
    ] {
        folder.good(args);
    }
}

#[test]
fn unknown_options_are_not_taken_for_values() {
    let folder = Folder::new();
    let line = folder.bad(2, &["diff", "a", "b", "--slice", "0"]);
    assert!(!line.contains("-- --slice"), "{line}");
    assert!(line.contains("'--slice'") && line.contains("`blosc2 diff --help`"), "{line}");
    let line = folder.bad(2, &["cat", "a", "--slcie", "0"]);
    assert!(line.contains("a similar argument exists: '--slice'"), "{line}");
}

#[test]
fn a_key_without_a_slash_gets_a_hint() {
    let folder = Folder::new();
    let array = NDArray::from_slice(&[1u8, 2], &[2]).unwrap();
    let mut store = TreeStore::create(folder.path("t.b2z")).unwrap();
    store.insert("/exp/temp", array.schunk()).unwrap();
    store.finish().unwrap();
    let mut embedded = EmbedStore::create(folder.path("e.b2e")).unwrap();
    embedded.insert("/exp/temp", array.schunk()).unwrap();
    drop(embedded);
    for file in ["t.b2z", "e.b2e"] {
        for command in ["info", "cat", "ls"] {
            let line = folder.bad(1, &[command, file, "--key", "exp/temp"]);
            let expected = "there is no key `exp/temp`; the key is `/exp/temp`";
            assert!(line.contains(expected), "{command} {file}: {line}");
            let line = folder.bad(1, &[command, file, "--key", "exp/other"]);
            assert!(line.ends_with("there is no key `exp/other`\n"), "{command}: {line}");
        }
    }
    let line = folder.bad(1, &["cat", "t.b2z", "--key", "exp"]);
    assert!(line.contains("the key is `/exp`"), "{line}");
}

/// The message does not depend on what another program does between two steps of the command.
#[test]
fn a_key_that_another_program_removes_and_adds() {
    let folder = Folder::new();
    let array = NDArray::from_slice(&[1u8, 2], &[2]).unwrap();
    let path = folder.path("t.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/a", array.schunk()).unwrap();
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                store.remove("/a").unwrap();
                store.insert("/a", array.schunk()).unwrap();
            }
        });
        let outputs: Vec<_> =
            (0..100).map(|_| folder.run(&["cat", "t.b2d", "--key", "/a"])).collect();
        stop.store(true, Ordering::Relaxed);
        for output in outputs {
            let line = String::from_utf8_lossy(&output.stderr);
            let is_right = output.status.success() && output.stdout == [1, 2];
            let is_missing = line.contains("there is no key `/a`") || line.contains("No such file");
            assert!(is_right || is_missing, "{line}");
        }
    });
}
