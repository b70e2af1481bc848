//! `blosc2 repair`: its output line and its exit status.

use blosc2::super_chunk::SEARCH_INDEXES;
use blosc2::{CParams, NDArray, SChunk};
use blosc2_testing::Rng;

use crate::common::Folder;

#[test]
fn repair_says_what_it_did() {
    let folder = Folder::new();
    let mut schunk = SChunk::create::<u8>(folder.path("a.b2frame"), &CParams::default()).unwrap();
    for number in 0..4 {
        schunk.append(&Rng(number).bytes(500)).unwrap();
    }
    let first = schunk.decompress_chunk::<u8>(0).unwrap();
    drop(schunk);
    let good = folder.read("a.b2frame");
    let line = |args: &[&str]| String::from_utf8(folder.good(args)).unwrap();
    assert_eq!(line(&["repair", "a.b2frame"]), "a.b2frame: good: nothing was done\n");
    assert!(folder.read("a.b2frame") == good);
    let copied = line(&["repair", "a.b2frame", "--output", "copy.b2frame"]);
    assert_eq!(copied, "a.b2frame: good: copied to copy.b2frame\n");
    assert!(folder.read("copy.b2frame") == good);

    // The mark of a completed change.
    let mut marked = good.clone();
    marked[0x10] = 0x7f;
    folder.write("a.b2frame", &marked);
    folder.bad(1, &["cat", "a.b2frame"]);
    let expected = "a.b2frame: an unfinished change was completed\n";
    assert_eq!(line(&["repair", "a.b2frame"]), expected);
    assert!(folder.read("a.b2frame") == good);

    folder.write("a.b2frame", &good[..good.len() - 20]);
    folder.bad(1, &["repair", "a.b2frame", "-o", "copy.b2frame"]);
    let json: serde_json::Value =
        serde_json::from_str(&line(&["repair", "a.b2frame", "-o", "json.b2frame", "--json"]))
            .unwrap();
    let expected = serde_json::json!({
        "path": "a.b2frame",
        "outcome": "rebuilt",
        "nchunks": 4,
        "lost_chunks": [],
        "meta": [],
        "vlmeta": null,
    });
    assert_eq!(json, expected);
    let start = ": rebuilt from 4 intact chunks, none is lost; its vlmetalayers are lost";
    let found = line(&["repair", "a.b2frame", "-o", "new.b2frame"]);
    assert_eq!(found, format!("a.b2frame{start}\n"));
    let found = line(&["repair", "a.b2frame"]);
    assert_eq!(found, format!("a.b2frame{start}; the damaged frame is a.b2frame.damaged\n"));
    assert_eq!(folder.read("a.b2frame.damaged").len(), good.len() - 20);
    assert!(folder.read("a.b2frame") == folder.read("new.b2frame"));
    let schunk = SChunk::open(folder.path("a.b2frame")).unwrap();
    assert_eq!((schunk.nchunks(), schunk.decompress_chunk::<u8>(0).unwrap()), (4, first));
    folder.good(&["check", "a.b2frame"]);
}

#[test]
fn repair_refuses_what_is_no_frame() {
    let folder = Folder::new();
    folder.write("text", b"some text, which is no frame");
    let line = folder.bad(1, &["repair", "text"]);
    assert_eq!(line, "blosc2: cannot repair (text): not a Blosc2 file: it is a text file\n");
    let line = folder.bad(1, &["repair", "none"]);
    assert_eq!(line, "blosc2: cannot open (none): no such file\n");
    folder.bad(2, &["repair"]);
}

#[test]
fn copies_have_no_search_indexes() {
    let folder = Folder::new();
    let items: Vec<i64> = (0..1000).rev().collect();
    let builder = NDArray::builder().chunk_shape([100]).target(folder.path("a.b2nd"));
    let mut array = builder.from_slice(&items, [1000]).unwrap();
    for name in SEARCH_INDEXES {
        array.vlmeta_mut().set(name, b"\x81\xa7indexes\x80").unwrap();
    }
    array.vlmeta_mut().set("other", b"kept").unwrap();
    drop(array);
    let original = folder.read("a.b2nd");
    for (number, arguments) in [
        &["copy", "a.b2nd"][..],
        &["copy", "a.b2nd", "--level", "1"],
        &["copy", "a.b2nd", "--chunks", "70"],
        &["copy", "a.b2nd", "--directory"],
        &["repair", "a.b2nd", "--output"],
    ]
    .into_iter()
    .enumerate()
    {
        let copy = format!("{number}.b2nd");
        folder.good(&[arguments, &[&copy]].concat());
        let copied = NDArray::open(folder.path(&copy)).unwrap();
        assert_eq!(copied.vlmeta().names(), ["other"], "{arguments:?}");
        assert_eq!(copied.read::<Vec<i64>>(..).unwrap(), items, "{arguments:?}");
        folder.good(&["diff", "a.b2nd", &copy]);
    }
    assert!(folder.read("a.b2nd") == original);
    // In place, with the same items.
    for arguments in [&["checksums", "a.b2nd"][..], &["repair", "a.b2nd"]] {
        folder.good(arguments);
        let array = NDArray::open(folder.path("a.b2nd")).unwrap();
        assert_eq!(array.vlmeta().names().len(), 3, "{arguments:?}");
    }
}
