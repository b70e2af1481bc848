//! `blosc2 check` on stores: healthy ones, and damaged ones.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use blosc2::{CParams, Codec, NDArray, SChunk, Target};
use blosc2_store::{EmbedStore, TreeStore};
use serde_json::{Value, json};

use crate::common::Folder;

/// The objects of the JSON output, and the exit status.
fn check(folder: &Folder, args: &[&str]) -> (i32, Value) {
    let output = folder.run(&[&["check", "--json"], args].concat());
    let json = serde_json::from_slice(&output.stdout).unwrap();
    (output.status.code().unwrap(), json)
}

/// The lines on stdout.
fn lines(folder: &Folder, args: &[&str]) -> Vec<String> {
    let output = folder.run(&[&["check"], args].concat());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

/// A store with two arrays in files, attributes, and a super-chunk in its embedded store.
fn store(path: &Path) {
    let mut store = TreeStore::create(path).unwrap();
    let items: Vec<u32> = (0..1000).collect();
    let params = CParams::new().codec(Codec::Lz4);
    let builder = NDArray::builder().chunk_shape([100]).block_shape([50]).cparams(params);
    let array = builder.from_slice(&items, [1000]).unwrap();
    store.insert("/a", array.schunk()).unwrap();
    store.insert("/group/b", array.schunk()).unwrap();
    store.set_attribute("/group", "author", "me").unwrap();
    store.finish().unwrap();
}

/// The position of a member in a zip file: the frame begins at the start of the range.
fn member(bytes: &[u8], name: &str) -> Range<usize> {
    let header = bytes
        .windows(4)
        .enumerate()
        .find(|(at, each)| *each == b"PK\x03\x04" && bytes[at + 30..].starts_with(name.as_bytes()));
    let at = header.unwrap().0;
    let number = |at: usize, len: usize| {
        bytes[at..at + len].iter().rev().fold(0, |number, &byte| number << 8 | usize::from(byte))
    };
    let start = at + 30 + number(at + 26, 2) + number(at + 28, 2);
    start..start + frame_len(&bytes[start..])
}

/// The length of a frame, from its header.
fn frame_len(frame: &[u8]) -> usize {
    u64::from_be_bytes(frame[16..24].try_into().unwrap()) as usize
}

/// The position of the entry of a member in the list of members.
fn entry(bytes: &[u8], name: &str) -> usize {
    let entry = bytes
        .windows(4)
        .enumerate()
        .find(|(at, each)| *each == b"PK\x01\x02" && bytes[at + 46..].starts_with(name.as_bytes()));
    entry.unwrap().0
}

/// The file and the rule of each finding, without those that only suggest a cause, and without that about missing
/// checksums.
fn rules(report: &Value) -> Vec<(String, String)> {
    let findings = report[0]["findings"].as_array().unwrap().iter();
    let is_about_all = |rule: &Value| *rule == "frame.suspect" || *rule == "file.unverified";
    let findings = findings.filter(|finding| !is_about_all(&finding["rule"]));
    let text = |value: &Value| value.as_str().unwrap_or("").to_owned();
    findings.map(|finding| (text(&finding["file"]), text(&finding["rule"]))).collect()
}

fn named(file: &str, rule: &str) -> (String, String) {
    (file.to_owned(), rule.to_owned())
}

/// The stores that Python wrote, of each version.
fn stores_of_python() -> Vec<PathBuf> {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files");
    let mut found = Vec::new();
    for folder in fs::read_dir(files).unwrap().map(|entry| entry.unwrap().path()) {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        found.extend(entries.map(|entry| entry.unwrap().path()));
    }
    found.retain(|path| {
        path.extension()
            .is_some_and(|ending| ["b2d", "b2z", "b2e", "b2b"].iter().any(|each| ending == *each))
    });
    found.sort();
    found
}

#[test]
fn stores_of_python_are_good() {
    let folder = Folder::new();
    let stores = stores_of_python();
    assert!(stores.len() >= 11, "{stores:?}");
    for path in &stores {
        let path = path.to_str().unwrap();
        let (status, report) = check(&folder, &[path]);
        assert_eq!((status, &report[0]["good"]), (0, &json!(true)), "{report:#}");
        assert_eq!(report[0]["complete"], true, "{report:#}");
        folder.good(&["check", path, "--no-content"]);
        folder.good(&["info", path]);
    }
    let tree = stores.iter().find(|path| path.ends_with("4.14.1/tree.b2z")).unwrap();
    let (_, report) = check(&folder, &[tree.to_str().unwrap()]);
    assert_eq!(report[0]["kind"], "zip-store");
    let members = report[0]["members"].as_array().unwrap();
    let files: Vec<_> = members.iter().map(|member| member["file"].as_str().unwrap()).collect();
    let expected = [
        "__vlmeta__.b2f",
        "array.b2nd",
        "batches.b2b",
        "embed.b2e",
        "group/__vlmeta__.b2f",
        "group/chunks.b2f",
        "group/deep/one.b2nd",
        "objects.b2f",
    ];
    assert_eq!(files, expected);
    let good = json!({
        "file": "array.b2nd",
        "kind": "frame",
        "good": true,
        "errors": 0,
        "warnings": 0,
        "notes": 0,
    });
    assert_eq!(members[1], good);
}

#[test]
fn each_form_of_a_store_has_a_verdict() {
    let folder = Folder::new();
    for (file, form, kind) in
        [("a.b2z", "zip store", "zip-store"), ("a.b2d", "folder store", "folder-store")]
    {
        store(&folder.path(file));
        // The zip file has checksums of its members.
        let is_zip = file == "a.b2z";
        let found = lines(&folder, &[file]);
        let notes = if is_zip { "0 notes" } else { "1 note" };
        let expected = format!("{file}: {form}, good: 4 members, 0 errors, 0 warnings, {notes}");
        assert_eq!((found.len(), found.last()), (2 - usize::from(is_zip), Some(&expected)));
        let is_noted = found[0].contains("[file.unverified]") && found[0].contains("found 4 files");
        assert_eq!(is_noted, !is_zip, "{found:?}");
        let (status, _) = check(&folder, &[file, "--require-checksums"]);
        assert_eq!(status, i32::from(!is_zip));
        let (status, report) = check(&folder, &[file]);
        assert_eq!((status, &report[0]["kind"]), (0, &json!(kind)));
    }
    let mut embedded = EmbedStore::create(folder.path("a.b2e")).unwrap();
    embedded.insert("/one", NDArray::from_slice(&[1u8, 2], &[2]).unwrap().schunk()).unwrap();
    let expected = "a.b2e: embedded store, good: 1 member, 0 errors, 0 warnings, 1 note";
    let found = lines(&folder, &["a.b2e"]);
    assert_eq!((found.len(), &found[1][..]), (2, expected));
    assert!(found[0].contains("found 1 file without checksums"), "{found:?}");
    // The checksums of the store cover the embedded frames.
    drop(embedded);
    folder.good(&["checksums", "a.b2e"]);
    let expected = "a.b2e: embedded store, good: 1 member, 0 errors, 0 warnings, 0 notes";
    assert_eq!(lines(&folder, &["a.b2e", "--require-checksums"]), [expected]);
    // Empty stores.
    for file in ["empty.b2z", "empty.b2d"] {
        TreeStore::create(folder.path(file)).unwrap().finish().unwrap();
        let line = lines(&folder, &[file]).pop().unwrap();
        let notes = if file == "empty.b2z" { "0 notes" } else { "1 note" };
        let end = format!(", good: 1 member, 0 errors, 0 warnings, {notes}");
        assert!(line.ends_with(&end), "{line}");
    }
    EmbedStore::create(folder.path("empty.b2e")).unwrap();
    let expected = "empty.b2e: embedded store, good: 0 members, 0 errors, 0 warnings, 1 note";
    assert_eq!(lines(&folder, &["empty.b2e"])[1], expected);
}

#[test]
fn damaged_members_are_named() {
    let folder = Folder::new();
    store(&folder.path("a.b2z"));
    let good = folder.read("a.b2z");
    let place = member(&good, "group/b.b2nd");
    // The codec and the flags in the header of a chunk.
    let (_, map) = check(&folder, &["a.b2z", "--map"]);
    let map = map[0]["map"].as_array().unwrap();
    let chunk =
        map.iter().find(|region| region["file"] == "group/b.b2nd" && region["part"] == "chunk 3");
    let offset = chunk.unwrap()["offset"].as_u64().unwrap() as usize;
    let mut bytes = good.clone();
    bytes[place.start + offset] = 0;
    folder.write("a.b2z", &bytes);
    let (status, report) = check(&folder, &["a.b2z"]);
    assert_eq!(status, 1);
    let expected =
        [named("group/b.b2nd", "chunk.version"), named("group/b.b2nd", "store.checksum")];
    assert_eq!(rules(&report), expected);
    assert_eq!(report[0]["findings"][0]["offset"], offset);
    let members = report[0]["members"].as_array().unwrap();
    let bad: Vec<_> = members.iter().filter(|member| member["good"] == false).collect();
    assert_eq!((bad.len(), &bad[0]["file"]), (1, &json!("group/b.b2nd")));
    assert_eq!((&bad[0]["errors"], &bad[0]["notes"]), (&json!(2), &json!(1)));
    let lines = lines(&folder, &["a.b2z"]);
    let start = format!("a.b2z: group/b.b2nd: error [chunk.version] byte {offset} (+1), chunk 3: ");
    assert!(lines[0].starts_with(&start), "{lines:?}");
    let verdict = "a.b2z: zip store, bad: 4 members, 2 errors, 0 warnings, 1 note";
    assert_eq!(lines.last().unwrap(), verdict);
    assert_eq!(folder.bad(1, &["check", "a.b2z"]), "blosc2: found errors (a.b2z)\n");
    // The checksum shows a byte of the data that no rule of the format is about.
    let mut bytes = good.clone();
    bytes[place.start + 50] ^= 1;
    folder.write("a.b2z", &bytes);
    let (_, report) = check(&folder, &["a.b2z"]);
    assert!(rules(&report).contains(&named("group/b.b2nd", "store.checksum")), "{report:#}");
    // Only the checksum in the list of members.
    let mut bytes = good.clone();
    bytes[entry(&good, "a.b2nd") + 16] ^= 1;
    folder.write("a.b2z", &bytes);
    let (_, report) = check(&folder, &["a.b2z"]);
    assert_eq!(rules(&report), [named("a.b2nd", "store.checksum")]);
    let member = &report[0]["members"][0];
    let found = (&member["file"], &member["good"], &member["errors"]);
    assert_eq!(found, (&json!("a.b2nd"), &json!(false), &json!(1)));

    store(&folder.path("a.b2d"));
    let file = "a.b2d/group/b.b2nd";
    let mut bytes = folder.read(file);
    bytes[offset] = 0;
    folder.write(file, &bytes);
    let (_, report) = check(&folder, &["a.b2d"]);
    assert_eq!(rules(&report), [named("group/b.b2nd", "chunk.version")]);
}

#[test]
fn damaged_zip_files_are_bad() {
    let folder = Folder::new();
    store(&folder.path("a.b2z"));
    let good = folder.read("a.b2z");
    for len in [good.len() - 1, good.len() / 2, 100, 30, 4] {
        folder.write("cut.b2z", &good[..len]);
        let (status, report) = check(&folder, &["cut.b2z"]);
        assert_eq!((status, &report[0]["good"]), (1, &json!(false)), "{len}: {report:#}");
        if len > 22 {
            assert_eq!(rules(&report), [named("", "store.zip")], "{len}");
        }
    }
    // Compressed by zip: the method in the list and before the member.
    let mut bytes = good.clone();
    let (listed, place) = (entry(&good, "a.b2nd"), member(&good, "a.b2nd"));
    bytes[listed + 10] = 8;
    bytes[place.start - 30 - "a.b2nd".len() + 8] = 8;
    folder.write("a.b2z", &bytes);
    let (status, report) = check(&folder, &["a.b2z"]);
    assert_eq!((status, rules(&report)), (1, vec![named("a.b2nd", "store.member")]));
    let found = report[0]["findings"][0]["found"].as_str().unwrap();
    assert!(found.contains("`a.b2nd` is compressed"), "{found}");
    // It cannot be opened, but it is a member.
    let unopened = &report[0]["members"][0];
    let expected = json!({
        "file": "a.b2nd",
        "kind": null,
        "good": false,
        "errors": 1,
        "warnings": 0,
        "notes": 0,
    });
    assert_eq!(unopened, &expected);
    assert_eq!(report[0]["members"].as_array().unwrap().len(), 4);
    // Two members at one place.
    let mut bytes = good.clone();
    let other = entry(&good, "group/b.b2nd");
    bytes.copy_within(other + 42..other + 46, listed + 42);
    folder.write("a.b2z", &bytes);
    let (status, report) = check(&folder, &["a.b2z"]);
    assert_eq!(status, 1);
    let found = report[0]["findings"].as_array().unwrap();
    let overlaps = |finding: &&Value| finding["found"].as_str().unwrap().contains(" overlaps `");
    assert_eq!(found.iter().find(overlaps).unwrap()["rule"], "store.member", "{report:#}");
    // Beyond the end of the file.
    let mut bytes = good.clone();
    bytes[listed + 20..listed + 28].fill(0x70);
    folder.write("a.b2z", &bytes);
    let (status, report) = check(&folder, &["a.b2z"]);
    assert_eq!((status, rules(&report)), (1, vec![named("a.b2nd", "store.member")]));
    // Any byte of the list.
    let list = entry(&good, "a.b2nd").min(other).min(entry(&good, "embed.b2e"));
    for at in (list..good.len()).step_by(3) {
        let mut bytes = good.clone();
        bytes[at] ^= 0xff;
        folder.write("a.b2z", &bytes);
        let output = folder.run(&["check", "a.b2z"]);
        assert!(matches!(output.status.code(), Some(0 | 1)), "byte {at}: {output:?}");
        assert!(!output.stderr.windows(5).any(|part| part == b"panic"), "byte {at}: {output:?}");
    }
}

#[test]
fn missing_files_are_errors() {
    let folder = Folder::new();
    store(&folder.path("a.b2d"));
    fs::remove_file(folder.path("a.b2d/embed.b2e")).unwrap();
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!((status, rules(&report)), (1, vec![named("", "store.no_index")]));
    // A column of a table.
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files/4.14.1");
    copy_folder(&files.join("table.b2d"), &folder.path("table.b2d"));
    folder.good(&["check", "table.b2d"]);
    fs::remove_file(folder.path("table.b2d/_cols/ratio.b2nd")).unwrap();
    let (status, report) = check(&folder, &["table.b2d"]);
    assert_eq!((status, rules(&report)), (1, vec![named("", "store.content")]));
    let found = report[0]["findings"][0]["found"].as_str().unwrap();
    assert!(found.contains("there is no `/_cols/ratio`"), "{found}");
    // `info` and `ls` still read the schema.
    folder.good(&["info", "table.b2d"]);
    // Without its schema it is no table: its parts are listed, with the reason.
    fs::remove_file(folder.path("table.b2d/_valid_rows.b2nd")).unwrap();
    let info = folder.info("table.b2d");
    assert_eq!(info["kind"], "broken");
    assert!(info["note"].as_str().unwrap().contains("there is no `/_valid_rows`"), "{info}");
    let output = folder.run(&["ls", "table.b2d"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(String::from_utf8(output.stdout).unwrap().contains("/_cols/number\n"));
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("only the stored parts are listed: "), "{warning}");
    assert!(warning.contains("there is no `/_valid_rows`"), "{warning}");
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_folder(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}

#[test]
fn files_of_others_are_notes() {
    let folder = Folder::new();
    store(&folder.path("a.b2d"));
    folder.write("a.b2d/README.txt", b"not Blosc2");
    folder.write("a.b2d/group/data.bin", &[0; 100]);
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!((status, &report[0]["good"], &report[0]["notes"]), (0, &json!(true), &json!(3)));
    let expected =
        [named("README.txt", "store.stranger"), named("group/data.bin", "store.stranger")];
    assert_eq!(rules(&report), expected);
    // The extension of a frame on another file is an error.
    folder.write("a.b2d/c.b2nd", b"not Blosc2");
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!(status, 1);
    assert!(rules(&report).contains(&named("c.b2nd", "file.kind")), "{report:#}");
}

#[test]
fn sparse_frames_in_a_folder_store_are_checked() {
    let folder = Folder::new();
    store(&folder.path("a.b2d"));
    let items: Vec<u32> = (0..1000).collect();
    let builder = NDArray::builder().chunk_shape([100]).block_shape([50]);
    builder
        .target(Target::from(folder.path("a.b2d/group/sparse.b2nd")).directory(true))
        .from_slice(&items, [1000])
        .unwrap();
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!(status, 0, "{report:#}");
    let members = report[0]["members"].as_array().unwrap();
    assert!(
        members.iter().any(|member| {
            member["file"] == "group/sparse.b2nd" && member["kind"] == "directory"
        })
    );
    assert_eq!(members.len(), 5);
    let list = folder.good(&["ls", "a.b2d", "--long", "--json"]);
    let list: Value = serde_json::from_slice(&list).unwrap();
    let entry = list.as_array().unwrap().iter().find(|entry| entry["key"] == "/group/sparse");
    assert_eq!(entry.unwrap()["kind"], "ndarray", "{list:#}");
    let slice = ["--key", "/group/sparse", "--slice", "999"];
    let item = folder.good(&[&["cat", "a.b2d"], &slice[..]].concat());
    assert_eq!(item, 999u32.to_ne_bytes());
    fs::remove_file(folder.path("a.b2d/group/sparse.b2nd/00000003.chunk")).unwrap();
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!(status, 1);
    let (file, rule) = &rules(&report)[0];
    assert!(file.starts_with("group/sparse.b2nd/") && rule == "directory.missing", "{report:#}");
}

#[test]
fn embedded_frames_are_checked() {
    let folder = Folder::new();
    let mut inner = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    inner.append(&[1u8; 100]).unwrap();
    let mut store = EmbedStore::create(folder.path("a.b2e")).unwrap();
    store.insert("/good", &inner).unwrap();
    store.insert("/bad", &inner).unwrap();
    // The version of the chunk in the second frame.
    let range = store.frame_ranges().nth(1).unwrap().1.unwrap();
    let frame = store.schunk().read::<u8>(range.clone()).unwrap();
    let header_len = u32::from_be_bytes(frame[11..15].try_into().unwrap());
    let at = range.start + u64::from(header_len);
    let mut schunk = store.into_schunk();
    let chunksize = schunk.chunksize() as u64;
    let index = (at / chunksize) as usize;
    let mut data = schunk.decompress_chunk::<u8>(index).unwrap();
    data[(at % chunksize) as usize] = 0;
    schunk.replace(index, &data).unwrap();
    drop(schunk);
    let (status, report) = check(&folder, &["a.b2e"]);
    assert_eq!((status, rules(&report)), (1, vec![named("/bad", "chunk.version")]), "{report:#}");
    assert_eq!(report[0]["kind"], "embedded-store");
    // Entries that share their bytes.
    let mut schunk = SChunk::open_rw(folder.path("a.b2e")).unwrap();
    let name = "estore_metadata";
    let map = schunk.vlmeta().value(name).unwrap().unwrap();
    let entry = map.get("embed_map").unwrap().get("/good").unwrap().clone();
    let entries =
        [("/good", entry.clone()), ("/again", entry)].map(|(key, entry)| (key.into(), entry));
    let entries = blosc2::Value::Map(entries.to_vec());
    let end = map.get("current_offset").unwrap().clone();
    let map = blosc2::Value::from([("embed_map", entries), ("current_offset", end)]);
    schunk.vlmeta_mut().set_value(name, &map).unwrap();
    drop(schunk);
    let (status, report) = check(&folder, &["a.b2e"]);
    assert_eq!((status, rules(&report)), (1, vec![named("/again", "store.overlap")]), "{report:#}");
}

#[test]
fn bad_maps_of_embedded_stores_are_errors() {
    let folder = Folder::new();
    let mut store = EmbedStore::create(folder.path("a.b2e")).unwrap();
    store.insert("/a", NDArray::from_slice(&[1u8, 2], &[2]).unwrap().schunk()).unwrap();
    let mut schunk = store.into_schunk();
    let end = schunk.nbytes();
    let place = blosc2::Value::from([("offset", end.into()), ("length", 1.into())]);
    let entries = blosc2::Value::from([("/a", place)]);
    let map = blosc2::Value::from([("embed_map", entries), ("current_offset", end.into())]);
    schunk.vlmeta_mut().set_value("estore_metadata", &map).unwrap();
    drop(schunk);
    let (status, report) = check(&folder, &["a.b2e"]);
    assert_eq!((status, rules(&report)), (1, vec![named("", "store.content")]), "{report:#}");
    assert_eq!(report[0]["kind"], "embedded-store");
    let found = report[0]["findings"][0]["found"].as_str().unwrap();
    assert!(found.contains("its entry `/a` has 1 bytes at offset"), "{found}");
}

#[test]
fn an_index_that_is_no_store_is_an_error() {
    let folder = Folder::new();
    for damaged in [false, true] {
        fs::remove_dir_all(folder.path("a.b2d")).unwrap_or_default();
        store(&folder.path("a.b2d"));
        fs::copy(folder.path("a.b2d/a.b2nd"), folder.path("a.b2d/embed.b2e")).unwrap();
        let mut expected = vec![named("embed.b2e", "store.content")];
        if damaged {
            folder.write("a.b2d/a.b2nd", b"");
            expected.insert(0, named("a.b2nd", "file.kind"));
        }
        let (status, report) = check(&folder, &["a.b2d"]);
        assert_eq!((status, rules(&report)), (1, expected), "{report:#}");
    }
}

#[test]
fn an_unreadable_file_is_named_beside_the_json() {
    let folder = Folder::new();
    let output = folder.run(&["check", "none", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let line = String::from_utf8(output.stderr).unwrap();
    assert_eq!(line, "blosc2: cannot open (none): no such file\n");
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report[0]["unreadable"], "cannot open (none): no such file");
}

#[test]
fn the_map_has_a_table_for_each_member() {
    let folder = Folder::new();
    store(&folder.path("a.b2z"));
    let text = lines(&folder, &["a.b2z", "--map"]).join("\n");
    for name in ["a.b2nd", "embed.b2e", "group/b.b2nd"] {
        assert!(text.contains(&format!("\na.b2z/{name}:\n")), "{text}");
    }
    folder.good(&["check", "a.b2z", "--svg", "map.svg"]);
    let svg = String::from_utf8(folder.read("map.svg")).unwrap();
    assert!(svg.contains(">a.b2z/group/b.b2nd, "), "{svg}");
}

#[test]
#[cfg(unix)]
fn links_do_not_lead_out_of_bounds() {
    let folder = Folder::new();
    store(&folder.path("a.b2d"));
    std::os::unix::fs::symlink("..", folder.path("a.b2d/group/up")).unwrap();
    std::os::unix::fs::symlink("loop", folder.path("a.b2d/loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", folder.path("a.b2d/zeros.b2nd")).unwrap();
    std::os::unix::fs::symlink("a.b2nd", folder.path("a.b2d/link.b2nd")).unwrap();
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!(status, 0, "{report:#}");
    assert_eq!(report[0]["members"].as_array().unwrap().len(), 4);
}

/// The warning of `ls`, whose exit status is 0, and its lines.
fn list(folder: &Folder, args: &[&str]) -> (String, Vec<String>) {
    let output = folder.run(&[&["ls"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let lines = String::from_utf8(output.stdout).unwrap();
    (String::from_utf8(output.stderr).unwrap(), lines.lines().map(str::to_owned).collect())
}

#[test]
fn caches_of_remote_stores_are_listed_and_described() {
    let folder = Folder::new();
    store(&folder.path("a.b2d"));
    let source = blosc2::Value::from([("urlpath", "https://example.org/a.b2z".into())]);
    let manifest = blosc2::Value::from([("version", 1.into()), ("source", source)]);
    let mut schunk = SChunk::open_rw(folder.path("a.b2d/embed.b2e")).unwrap();
    schunk.vlmeta_mut().set_value("b2remote_manifest", &manifest).unwrap();
    drop(schunk);
    let reason = "the cache of a Python remote store, of https://example.org/a.b2z; it holds only the parts that were \
                  fetched";
    let info = folder.info("a.b2d");
    assert_eq!((&info["kind"], &info["note"]), (&json!("remotestore"), &json!(reason)));
    assert_eq!(info["keys"], json!(["/a", "/group/b"]));
    let (warning, lines) = list(&folder, &["a.b2d"]);
    assert_eq!(lines, ["/a", "/group/", "/group/b"]);
    let expected = format!("blosc2: warning (a.b2d): only the stored parts are listed: {reason}\n");
    assert_eq!(warning, expected);
    folder.good(&["check", "a.b2d"]);
    assert_eq!(folder.good(&["cat", "a.b2d", "--key", "/a", "--slice", "1"]), 1i32.to_ne_bytes());
}

#[test]
fn info_and_ls_do_not_refer_to_each_other() {
    let folder = Folder::new();
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/python_files/4.14.1");
    let mut refused = 0;
    for entry in fs::read_dir(files).unwrap() {
        let path = entry.unwrap().path();
        let path = path.to_str().unwrap();
        let of = |command: &str| {
            let output = folder.run(&[command, path]);
            let errors = String::from_utf8(output.stderr).unwrap();
            (output.status.success(), errors)
        };
        let ((info, info_error), (ls, ls_error)) = (of("info"), of("ls"));
        assert!(info || !info_error.contains("`ls`"), "{info_error}");
        assert!(ls || info || !ls_error.contains("`info`"), "{ls_error}");
        refused += usize::from(!info);
    }
    // `expected.json`.
    assert_eq!(refused, 1);
    // A reference in a store.
    let path = "../../tests/python_files/4.14.1/tree_reference.b2z";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    let path = path.to_str().unwrap();
    let info = folder.good(&["info", path, "--key", "/far", "--json"]);
    let info: Value = serde_json::from_slice(&info).unwrap();
    assert_eq!(info["kind"], "remotestore");
    assert!(info["note"].as_str().unwrap().contains("https://example.org/a.b2z"), "{info}");
    let line = folder.bad(1, &["ls", path, "--key", "/far"]);
    assert!(
        line.contains("a Python reference to a remote store") && !line.contains("`info`"),
        "{line}"
    );
}

#[test]
fn the_list_of_a_small_store_with_large_frames_ends() {
    let folder = Folder::new();
    let (frame, count) = (64u64 << 20, 40);
    let version = blosc2::Value::from([("version", 1.into())]).to_msgpack().unwrap();
    let entries = (0..count).map(|at| {
        let place =
            blosc2::Value::from([("offset", (at * frame).into()), ("length", frame.into())]);
        (format!("/a{at}").as_str().into(), place)
    });
    let entries = blosc2::Value::Map(entries.collect());
    let end = count * frame;
    let map = blosc2::Value::from([("embed_map", entries), ("current_offset", end.into())]);
    let make = |path: &Path, name: &str| {
        let options = blosc2::OpenOptions::new().meta(name, &version).create_new(true);
        let mut schunk = options.open(path).unwrap();
        schunk.fill(blosc2::Special::Zeros, end, 64 << 20).unwrap();
        schunk.vlmeta_mut().set_value("estore_metadata", &map).unwrap();
    };
    make(&folder.path("a.b2e"), "b2embed");
    fs::create_dir(folder.path("a.b2d")).unwrap();
    make(&folder.path("a.b2d/embed.b2e"), "b2tree");
    assert!(folder.read("a.b2e").len() < 10_000);
    for file in ["a.b2e", "a.b2d"] {
        let list = folder.good(&["ls", file, "--long", "--json"]);
        let list: Value = serde_json::from_slice(&list).unwrap();
        let list = list.as_array().unwrap();
        let unread = list.iter().filter(|entry| entry["kind"] == "unread");
        // At most 1 GiB is decompressed.
        assert_eq!((list.len(), unread.count()), (40, 24));
    }
}

#[test]
fn names_of_members_are_checked() {
    let folder = Folder::new();
    store(&folder.path("a.b2z"));
    let good = folder.read("a.b2z");
    let listed = entry(&good, "a.b2nd") + 46;
    let header = member(&good, "a.b2nd").start - "a.b2nd".len();
    // Only in the header before the bytes.
    let mut bytes = good.clone();
    bytes[header] = b'x';
    folder.write("a.b2z", &bytes);
    let (status, report) = check(&folder, &["a.b2z"]);
    assert_eq!((status, rules(&report)), (1, vec![named("a.b2nd", "store.member")]), "{report:#}");
    let found = report[0]["findings"][0]["found"].as_str().unwrap();
    assert!(found.contains("has the name `x.b2nd` in the header"), "{found}");
    // A name that no key selects.
    let mut bytes = good.clone();
    for at in [listed, header] {
        bytes[at] = b'/';
    }
    folder.write("a.b2z", &bytes);
    let (status, report) = check(&folder, &["a.b2z"]);
    assert_eq!((status, rules(&report)), (0, vec![named("/.b2nd", "store.no_key")]), "{report:#}");
    // Two members of one name.
    let mut store = TreeStore::create(folder.path("b.b2z")).unwrap();
    for (key, item) in [("/a", 1u8), ("/b", 2)] {
        store.insert(key, NDArray::from_slice(&[item], &[1]).unwrap().schunk()).unwrap();
    }
    store.finish().unwrap();
    let mut bytes = folder.read("b.b2z");
    let (listed, header) = (entry(&bytes, "b.b2nd") + 46, member(&bytes, "b.b2nd").start - 6);
    for at in [listed, header] {
        bytes[at] = b'a';
    }
    folder.write("b.b2z", &bytes);
    let (status, report) = check(&folder, &["b.b2z"]);
    let expected = vec![named("a.b2nd", "store.duplicate")];
    assert_eq!((status, rules(&report)), (1, expected), "{report:#}");
    // Two files of one key.
    self::store(&folder.path("a.b2d"));
    fs::copy(folder.path("a.b2d/a.b2nd"), folder.path("a.b2d/a.b2f")).unwrap();
    let (status, report) = check(&folder, &["a.b2d"]);
    assert_eq!((status, rules(&report)), (0, vec![named("a.b2nd", "store.key")]), "{report:#}");
}
