//! Stores: reads, changes, and the errors of damaged ones.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex};

use blosc2::storage::ReadAt;
use blosc2::{
    CParams, DParams, ErrorKind, Limits, NDArray, OpenOptions, RawItems, SChunk, Threads, Value,
};
use blosc2_store::{CTable, EmbedStore, ItemKind, Object, Schema, TreeStore};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::common::Rng;

fn array(items: &[i32]) -> NDArray {
    NDArray::from_slice(items, items.len()).unwrap()
}

/// Bytes that count their reads.
struct Counted {
    bytes: Vec<u8>,
    reads: Arc<Mutex<Vec<(u64, u64)>>>,
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.reads.lock().unwrap().push((offset, buffer.len() as u64));
        self.bytes.read_exact_at(offset, buffer)
    }
}

/// Frames do not store the number of threads.
#[test]
fn entries_keep_the_number_of_threads() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.b2d", "a.b2z"] {
        let mut store = TreeStore::create(folder.path().join(name)).unwrap();
        let array = store.create_array("/a", |builder| {
            let options = OpenOptions::new().dparams(DParams::new().threads(3).cache(100));
            let params = CParams::new().threads(2).level(4);
            builder.options(options).cparams(params).zeros::<u16>(&[3, 4])
        });
        let info = array.unwrap().info();
        assert_eq!((info.cparams.threads, info.cparams.level), (Threads::new(2), 4), "{name}");
        assert_eq!((info.dparams.threads, info.dparams.cache), (Threads::new(3), 100), "{name}");
    }

    let open = |store: EmbedStore| {
        let options = OpenOptions::new().dparams(DParams::new().threads(3));
        Object::from_schunk(options.open(store.into_schunk().into_cframe().unwrap()).unwrap())
    };
    let mut store = EmbedStore::in_memory().unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    let Object::EmbedStore(store) = open(store).unwrap() else { panic!("a store") };
    assert_eq!(store.frame("/a").unwrap().info().dparams.threads, Threads::new(3));
    let mut table = CTable::in_memory(&Schema::new().column("n", ItemKind::Int32)).unwrap();
    let frame = table.to_cframe().unwrap();
    let Object::CTable(table) = open(EmbedStore::from_cframe(frame).unwrap()).unwrap() else {
        panic!("a table")
    };
    assert_eq!(table.array("n").unwrap().info().dparams.threads, Threads::new(3));
}

/// The range of a member in a zip file, from its header to its end.
fn place(path: &Path, name: &str) -> (u64, u64) {
    let mut archive = zip::ZipArchive::new(File::open(path).unwrap()).unwrap();
    let member = archive.by_name(name).unwrap();
    (member.header_start(), member.data_start().unwrap() + member.size())
}

#[test]
fn a_node_is_read_without_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.b2z");
    let mut store = TreeStore::create(&path).unwrap();
    // Random items, so that the directory at the end is only a part of the file.
    let mut rng = Rng(1);
    let items: Vec<i32> = (0..1000).map(|_| rng.next() as i32).collect();
    for node in 0..1000 {
        store.insert(&format!("/group{}/node{node}", node % 10), array(&items).schunk()).unwrap();
    }
    store.finish().unwrap();

    let reads = Arc::new(Mutex::new(Vec::new()));
    let bytes = fs::read(&path).unwrap();
    let size = bytes.len() as u64;
    let store = TreeStore::open_source(Counted { bytes, reads: Arc::clone(&reads) }).unwrap();
    assert_eq!(store.keys().count(), 1000);
    assert_eq!(store.groups().count(), 10);
    let listing = std::mem::take(&mut *reads.lock().unwrap());
    // The end of the file, and the store's own small member, which is there too.
    assert!(listing.len() < 20, "{} reads", listing.len());
    let start = size - (1 << 20);
    assert!(listing.iter().all(|&(offset, _)| offset >= start), "{listing:?}");

    let node = store.array("/group0/node0").unwrap();
    assert_eq!(node.read::<Vec<i32>>(..).unwrap(), items);
    let (start, end) = place(&path, "group0/node0.b2nd");
    assert!(end < size - (1 << 20), "the node lies in what listing reads");
    let reads = std::mem::take(&mut *reads.lock().unwrap());
    assert!(!reads.is_empty());
    for (offset, len) in reads {
        assert!(offset >= start && offset + len <= end, "{offset} + {len} of {start}..{end}");
    }
}

#[test]
fn both_forms_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let (directory, archive) = (folder.path().join("a.b2d"), folder.path().join("a.b2z"));
    for path in [&directory, &archive] {
        let mut store = TreeStore::create(path).unwrap();
        store.insert("/one", array(&[1]).schunk()).unwrap();
        store.insert("/a/b/two", array(&[1, 2]).schunk()).unwrap();
        let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
        schunk.append(b"some bytes").unwrap();
        schunk.vlmeta_mut().set_value("who", "me").unwrap();
        store.insert("/a/bytes", &schunk).unwrap();
        let mut made = store.create_array("/a/made", |make| make.zeros::<u16>(&[3, 4])).unwrap();
        made.write([1..2, 0..4], 5u16).unwrap();
        drop(made);
        store.set_attribute("/", "title", &(1, "x")).unwrap();
        store.set_attribute("/a", "empty", &()).unwrap();
        store.set_attribute("/alone", "here", &true).unwrap();
        assert!(!store.remove_attribute("/a/b", "none").unwrap());
        store.finish().unwrap();
    }
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.collect();
    names.sort();
    assert_eq!(names, ["a.b2d", "a.b2z"], "something was left behind");
    for path in [&directory, &archive] {
        let Object::TreeStore(store) = Object::open(path).unwrap() else { panic!("{path:?}") };
        assert!(store.keys().eq(["/a/b/two", "/a/bytes", "/a/made", "/one"]));
        assert!(store.groups().eq(["/a", "/a/b", "/alone"]));
        assert_eq!(store.children("/").unwrap(), ["/a", "/alone", "/one"]);
        assert_eq!(store.children("/a").unwrap(), ["/a/b", "/a/bytes", "/a/made"]);
        assert!(store.children("/alone").unwrap().is_empty());
        assert_eq!(store.children("/none").unwrap_err().kind(), ErrorKind::NotFound);
        assert_eq!(store.array("/a/b/two").unwrap().read::<Vec<i32>>(..).unwrap(), [1, 2]);
        let made = store.array("/a/made").unwrap().read::<Vec<u16>>(..).unwrap();
        assert_eq!(made, [0, 0, 0, 0, 5, 5, 5, 5, 0, 0, 0, 0]);
        let bytes = store.schunk("/a/bytes").unwrap();
        assert_eq!(bytes.vlmeta().get_value::<String>("who").unwrap().unwrap(), "me");
        assert_eq!(store.attributes("/").unwrap()[0].0, "title");
        assert_eq!(store.attributes("/alone").unwrap(), [("here".to_owned(), true.into())]);
        assert_eq!(store.attributes("/one").unwrap_err().kind(), ErrorKind::NotFound);
        let error = store.array("/a/bytes").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TypeMismatch);
        assert_eq!(store.get("/a").unwrap_err().kind(), ErrorKind::NotFound);
    }
    // From one form to the other and back.
    let (packed, unpacked) = (folder.path().join("p.b2z"), folder.path().join("u.b2d"));
    TreeStore::open(&directory).unwrap().pack(&packed).unwrap();
    TreeStore::open(&archive).unwrap().unpack(&unpacked).unwrap();
    let (packed, unpacked) = (TreeStore::open(packed).unwrap(), TreeStore::open(unpacked).unwrap());
    for store in [&packed, &unpacked] {
        assert!(store.keys().eq(["/a/b/two", "/a/bytes", "/a/made", "/one"]));
        assert_eq!(store.array("/one").unwrap().read::<Vec<i32>>(..).unwrap(), [1]);
    }
}

#[test]
fn changes_of_a_zip_file_come_with_finish() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2z");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    assert!(!path.exists());
    store.finish().unwrap();
    drop(store);
    let before = fs::read(&path).unwrap();

    let mut store = TreeStore::open_rw(&path).unwrap();
    store.insert("/b", array(&[2]).schunk()).unwrap();
    drop(store);
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    // A reader that is open meanwhile keeps the old file. Not every Windows replaces a file that is open.
    let reading = cfg!(unix).then(|| TreeStore::open(&path).unwrap());
    let mut store = TreeStore::open_rw(&path).unwrap();
    let Object::NDArray(mut a) = store.edit("/a").unwrap() else { panic!() };
    a.append(0, &[8, 9]).unwrap();
    drop(a);
    store.insert("/b", array(&[2]).schunk()).unwrap();
    store.remove("/b").unwrap();
    store.insert("/c/d", array(&[3]).schunk()).unwrap();
    store.finish().unwrap();
    if let Some(reading) = reading {
        assert_eq!(reading.array("/a").unwrap().read::<Vec<i32>>(..).unwrap(), [1]);
    }
    let store = TreeStore::open(&path).unwrap();
    assert!(store.keys().eq(["/a", "/c/d"]));
    assert_eq!(store.array("/a").unwrap().read::<Vec<i32>>(..).unwrap(), [1, 8, 9]);
}

#[test]
fn what_does_not_fit_a_tree_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    assert_eq!(TreeStore::create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let one = array(&[1]);
    store.insert("/a/b", one.schunk()).unwrap();
    store.set_attribute("/only", "x", &1).unwrap();
    for key in [
        "",
        "/",
        "a",
        "/a/",
        "//a",
        "/a//c",
        "/..",
        "/../x",
        "/a/../../x",
        "/.",
        "/a\\b",
        "/c:d",
        "/a\0",
        "/a\n",
        "/a",
        "/a/b/c",
        "/only",
        "/embed.b2e/x",
        "/...",
        "/__vlmeta__",
        "/x/__vlmeta__",
    ] {
        let error = store.insert(key, one.schunk()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{key:?}");
    }
    for group in ["", "a", "/a/", "/a/b", "/../x"] {
        let error = store.set_attribute(group, "x", &1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{group:?}");
    }
    assert_eq!(store.remove("/none").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.edit("/none").unwrap_err().kind(), ErrorKind::NotFound);
    // Another handle of this program.
    assert_eq!(TreeStore::open_rw(&path).unwrap_err().kind(), ErrorKind::Busy);
    store.remove("/a").unwrap();
    store.insert("/a", one.schunk()).unwrap();
    assert!(store.keys().eq(["/a"]));

    let mut reading = TreeStore::open(&path).unwrap();
    for error in [
        reading.insert("/x", one.schunk()).unwrap_err(),
        reading.remove("/a").unwrap_err(),
        reading.edit("/a").unwrap_err(),
        reading.set_attribute("/", "x", &1).unwrap_err(),
        reading.create_array("/x", |make| make.zeros::<u8>(&[1])).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error}");
    }
}

#[test]
fn an_array_replaces_what_the_key_held() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    let schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    store.insert("/a", &schunk).unwrap();
    assert_eq!(store.get("/a").unwrap().kind(), "schunk");
    assert!(path.join("a.b2f").is_file() && !path.join("a.b2nd").exists());
    store.create_array("/a", |make| make.zeros::<u8>(&[2])).unwrap();
    assert_eq!(store.array("/a").unwrap().shape(), [2]);
    // A builder that fails leaves the store unchanged.
    store.create_array("/a", |make| make.block_shape([1, 1]).zeros::<u8>(&[2])).unwrap_err();
    assert_eq!(TreeStore::open(&path).unwrap().array("/a").unwrap().shape(), [2]);
}

#[test]
fn embedded_entries() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2e");
    let mut store = EmbedStore::create(&path).unwrap();
    assert_eq!(EmbedStore::create(&path).unwrap_err().kind(), ErrorKind::AlreadyExists);
    let long: Vec<i32> = (0..10_000).collect();
    store.insert("/long", array(&long).schunk()).unwrap();
    store.insert("/a/b", array(&[1]).schunk()).unwrap();
    store.insert("/a/b", array(&[2, 3]).schunk()).unwrap();
    store.insert("/c", array(&[4]).schunk()).unwrap();
    store.remove("/c").unwrap();
    assert_eq!(store.remove("/c").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(
        store.insert("x", array(&[4]).schunk()).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
    drop(store);
    let Object::EmbedStore(mut store) = Object::open(&path).unwrap() else { panic!() };
    assert!(store.keys().eq(["/long", "/a/b"]));
    let read =
        |key: &str| store.get(key).unwrap().into_ndarray().unwrap().read::<Vec<i32>>(..).unwrap();
    assert_eq!(read("/long"), long);
    assert_eq!(read("/a/b"), [2, 3]);
    assert_eq!(store.get("/c").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.remove("/a/b").unwrap_err().kind(), ErrorKind::ReadOnly);

    let mut memory = EmbedStore::in_memory().unwrap();
    memory.insert("/a", array(&[5]).schunk()).unwrap();
    let bytes = memory.into_schunk().to_cframe().unwrap();
    assert!(EmbedStore::from_cframe(bytes).unwrap().contains("/a"));
}

/// A zip file of these members.
fn zipped(members: &[(&str, &[u8], CompressionMethod)]) -> Vec<u8> {
    let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
    for (name, bytes, method) in members {
        zip.start_file(*name, SimpleFileOptions::default().compression_method(*method)).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[test]
fn zip_files_of_others() {
    let index = EmbedStore::in_memory().unwrap().into_schunk().to_cframe().unwrap();
    let node = array(&[1, 2]).schunk().to_cframe().unwrap();
    let (stored, deflated) = (CompressionMethod::Stored, CompressionMethod::Deflated);
    let open = |bytes: Vec<u8>| TreeStore::open_source(bytes);

    let error = open(zipped(&[("a.npy", &node, stored)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    // Arrays without an index, as xarray-blosc2 writes them, can be read, but not changed.
    let arrays = zipped(&[("_coord_x.b2nd", &node, stored), ("data.json", b"{}", stored)]);
    let store = open(arrays.clone()).unwrap();
    assert!(store.keys().eq(["/_coord_x"]));
    assert_eq!(store.array("/_coord_x").unwrap().read::<Vec<i32>>(..).unwrap(), [1, 2]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.b2z");
    fs::write(&path, &arrays).unwrap();
    assert!(TreeStore::open(&path).is_ok());
    let error = TreeStore::open_rw(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(fs::read(&path).unwrap() == arrays);
    // Behind other bytes, with and without a comment.
    let mut comment = arrays.clone();
    let at = comment.len() - 2;
    comment[at..].copy_from_slice(&[3, 0]);
    comment.extend(b"abc");
    for bytes in [&arrays, &comment] {
        let behind = [b"#!/bin/sh\n", &bytes[..]].concat();
        assert!(TreeStore::is_in(&behind).unwrap());
        assert!(open(behind.clone()).unwrap().keys().eq(["/_coord_x"]));
        assert!(!TreeStore::is_in(&[&behind[..], b"end"].concat()).unwrap());
    }
    // A frame that ends with a zip file is a frame.
    assert!(!TreeStore::is_in(&[&node[..], &arrays].concat()).unwrap());
    let error = open(zipped(&[("embed.b2e", &index, deflated)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.to_string().contains("`embed.b2e` is compressed"), "{error}");
    let error = open(zipped(&[("embed.b2e", b"no frame", stored)])).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);

    // A store that another program packed again: what can be read is read.
    let members =
        [("embed.b2e", &index[..], stored), ("a.b2nd", &node, deflated), ("b.b2nd", &node, stored)];
    let store = open(zipped(&members)).unwrap();
    assert!(store.keys().eq(["/a", "/b"]));
    assert_eq!(store.get("/a").unwrap_err().kind(), ErrorKind::Unsupported);
    assert_eq!(store.array("/b").unwrap().read::<Vec<i32>>(..).unwrap(), [1, 2]);

    // Members that would be written outside.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("inner").join("a.b2z");
    fs::create_dir(folder.path().join("inner")).unwrap();
    for name in ["../b.b2nd", "/b.b2nd", "x/../../../b.b2nd"] {
        fs::write(&path, zipped(&[("embed.b2e", &index, stored), (name, &node, stored)])).unwrap();
        let result = TreeStore::open_rw(&path);
        assert!(!folder.path().join("b.b2nd").exists() && !Path::new("/b.b2nd").exists(), "{name}");
        if let Err(error) = result {
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}");
        }
    }
}

#[test]
fn damaged_zip_files_are_refused() {
    let index = EmbedStore::in_memory().unwrap().into_schunk().to_cframe().unwrap();
    let node = array(&[1, 2]).schunk().to_cframe().unwrap();
    let stored = CompressionMethod::Stored;
    let good = zipped(&[("a.b2nd", &node, stored), ("embed.b2e", &index, stored)]);
    for len in 0..good.len() {
        let error = TreeStore::open_source(good[..len].to_vec()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData, "{len}: {error}");
    }
    // No change causes a panic; each read returns an array or an error.
    for at in 0..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bytes = good.clone();
            bytes[at] ^= flip;
            if let Ok(store) = TreeStore::open_source(bytes) {
                let keys: Vec<String> = store.keys().map(str::to_owned).collect();
                for key in keys {
                    let _ = store
                        .array(&key)
                        .and_then(|array| array.read::<RawItems>(..).map(|items| items.0));
                }
            }
        }
    }
}

#[test]
fn what_is_no_store_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let error = TreeStore::open(folder.path()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert_eq!(Object::open(folder.path()).unwrap_err().kind(), ErrorKind::InvalidData);
    let error = TreeStore::open(folder.path().join("none.b2z")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let path = folder.path().join("a.b2nd");
    array(&[1]).save(&path).unwrap();
    let error = TreeStore::open(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let text = error.to_string();
    assert!(text.contains("a.b2nd"), "{text}");
    fs::write(folder.path().join("short"), b"PK\x03\x04").unwrap();
    assert_eq!(
        Object::open(folder.path().join("short")).unwrap_err().kind(),
        ErrorKind::InvalidData
    );
    assert_eq!(Object::open(folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
}

/// A store with keys as Python, or a malicious program, writes them.
pub(super) fn with_embedded(path: &Path, keys: &[&str]) {
    TreeStore::create(path).unwrap();
    fs::remove_file(path.join("embed.b2e")).unwrap();
    let mut embed = EmbedStore::create(path.join("embed.b2e")).unwrap();
    embed.insert("/good", array(&[1]).schunk()).unwrap();
    let mut schunk = embed.into_schunk();
    let map = schunk.vlmeta().value("estore_metadata").unwrap().unwrap();
    let good = map.get("embed_map").unwrap().get("/good").unwrap().clone();
    let pairs = keys.iter().chain(&["/good"]).map(|&key| (Value::from(key), good.clone()));
    let content = [
        ("embed_map", Value::Map(pairs.collect())),
        ("current_offset", map.get("current_offset").unwrap().clone()),
    ];
    schunk.vlmeta_mut().set_value("estore_metadata", &Value::from(content)).unwrap();
}

#[test]
fn keys_that_are_no_paths_lead_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let victim = folder.path().join("victim");
    fs::create_dir(&victim).unwrap();
    fs::write(victim.join("file"), b"precious").unwrap();
    let long = "/a".repeat(60_000);
    with_embedded(
        &path,
        &["/../victim", "/../victim/x", "/", "/a/../../victim", "x", "/b//c", &long],
    );
    let mut store = TreeStore::open_rw(&path).unwrap();
    assert!(store.keys().eq(["/good"]));
    assert_eq!(store.groups().count(), 0);
    for key in ["/../victim", "/..", "/", "/a/..", "/a", "", "victim"] {
        assert_eq!(store.remove(key).unwrap_err().kind(), ErrorKind::NotFound, "{key}");
    }
    let registry = Value::from([("/../victim", Value::from([("kind", "ctable".into())]))]);
    drop(store);
    let mut embed = SChunk::open_rw(path.join("embed.b2e")).unwrap();
    embed.vlmeta_mut().set_value("_object_registry", &registry).unwrap();
    drop(embed);
    let mut store = TreeStore::open_rw(&path).unwrap();
    assert_eq!(store.remove("/../victim").unwrap_err().kind(), ErrorKind::NotFound);
    store.remove("/good").unwrap();
    assert_eq!(fs::read(victim.join("file")).unwrap(), b"precious");
    assert!(path.join("embed.b2e").is_file());
}

#[test]
fn an_array_that_is_not_made_leaves_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.b2d", "a.b2z"] {
        let mut store = TreeStore::create(folder.path().join(name)).unwrap();
        store.insert("/a", array(&[1]).schunk()).unwrap();
        let failed = |make: blosc2::NDArrayBuilder| {
            make.zeros::<u8>(&[10])?.write(0..10, 1u8)?;
            Err(blosc2::Error::new(ErrorKind::InvalidData, "make", "as it was meant to"))
        };
        for key in ["/a", "/new"] {
            let error = store.create_array(key, failed).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            let error = store.create_array(key, |_| Ok(array(&[2]))).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        }
        assert!(store.keys().eq(["/a"]));
        store.finish().unwrap();
        let store = TreeStore::open(folder.path().join(name)).unwrap();
        assert!(store.keys().eq(["/a"]));
        assert_eq!(store.array("/a").unwrap().read::<Vec<i32>>(..).unwrap(), [1]);
    }
}

#[test]
fn handles_do_not_outlive_what_they_change() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = TreeStore::create(folder.path().join("a.b2z")).unwrap();
    let mut made = store.create_array("/a", |make| make.zeros::<u8>(&[3])).unwrap();
    let busy = |result: blosc2::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::Busy);
    };
    busy(store.finish());
    busy(store.insert("/a", array(&[1]).schunk()));
    busy(store.remove("/a"));
    busy(store.edit("/a").map(drop));
    busy(store.create_array("/a", |make| make.zeros::<u8>(&[3])).map(drop));
    made.write(0..3, 7u8).unwrap();
    drop(made);
    store.finish().unwrap();
    // It may go on.
    let Object::NDArray(mut a) = store.edit("/a").unwrap() else { panic!() };
    a.write(0..1, 8u8).unwrap();
    drop(a);
    store.finish().unwrap();
    let store = TreeStore::open(folder.path().join("a.b2z")).unwrap();
    assert_eq!(store.array("/a").unwrap().read::<Vec<u8>>(..).unwrap(), [8, 7, 7]);
}

#[test]
fn a_zip_file_that_another_program_has_replaced_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2z");
    TreeStore::create(&path).unwrap().finish().unwrap();
    let mut store = TreeStore::open_rw(&path).unwrap();
    store.insert("/one", array(&[1]).schunk()).unwrap();
    // A program that does not know the lock, such as Python.
    let other = fs::read(&path).unwrap();
    fs::write(folder.path().join("other"), &other).unwrap();
    fs::rename(folder.path().join("other"), &path).unwrap();
    assert_eq!(store.finish().unwrap_err().kind(), ErrorKind::Busy);
    drop(store);
    assert_eq!(fs::read(&path).unwrap(), other);

    let new = folder.path().join("new.b2z");
    let mut one = TreeStore::create(&new).unwrap();
    assert_eq!(TreeStore::create(&new).unwrap_err().kind(), ErrorKind::Busy);
    fs::write(&new, b"a file").unwrap();
    assert_eq!(one.finish().unwrap_err().kind(), ErrorKind::AlreadyExists);
    assert_eq!(fs::read(&new).unwrap(), b"a file");
}

#[test]
#[cfg(unix)]
fn a_zip_file_keeps_its_permissions_and_its_links() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a.b2z"), folder.path().join("link.b2z"));
    TreeStore::create(&path).unwrap().finish().unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&path, &link).unwrap();
    let mut store = TreeStore::open_rw(&link).unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    store.finish().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(link.is_symlink());
    assert!(TreeStore::open(&path).unwrap().contains("/a"));
}

#[test]
fn a_group_is_removed_without_keys_that_start_alike() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.b2d", "a.b2z"] {
        let mut store = TreeStore::create(folder.path().join(name)).unwrap();
        for key in ["/run/a", "/run/b/c", "/runs/a", "/run2", "/run b/x"] {
            store.insert(key, array(&[1, 2]).schunk()).unwrap();
        }
        store.remove("/run").unwrap();
        store.finish().unwrap();
        drop(store);
        let store = TreeStore::open(folder.path().join(name)).unwrap();
        let keys: Vec<&str> = store.keys().collect();
        assert_eq!(keys, ["/run b/x", "/run2", "/runs/a"]);
        assert_eq!(store.array("/run2").unwrap().read::<Vec<i32>>(..).unwrap(), [1, 2]);
    }
}

#[test]
fn a_dict_has_keys_below_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    drop(TreeStore::create(&path).unwrap());
    let options = blosc2::OpenOptions::new().replace(true).chunksize(8192);
    options.meta("b2dict", b"\x81\xa7version\x01").open(path.join("embed.b2e")).unwrap();
    let mut store = TreeStore::open_rw(&path).unwrap();
    assert!(store.is_dict());
    store.insert("/a", array(&[1]).schunk()).unwrap();
    store.insert("/a/b", array(&[2]).schunk()).unwrap();
    store.insert("/c/d", array(&[3]).schunk()).unwrap();
    store.remove("/a").unwrap();
    assert!(store.keys().eq(["/a/b", "/c/d"]));
    assert_eq!(store.remove("/c").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.set_attribute("/c", "x", &1).unwrap_err().kind(), ErrorKind::Unsupported);
}

#[test]
fn other_files_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2d");
    let mut store = TreeStore::create(&path).unwrap();
    store.insert("/a", array(&[1]).schunk()).unwrap();
    store.insert("/b", array(&[2]).schunk()).unwrap();
    drop(store);
    fs::rename(path.join("b.b2nd"), path.join("b.b2frame")).unwrap();
    fs::write(path.join("notes.txt"), b"no frame at all").unwrap();
    // An interrupted change may leave two files of a key.
    SChunk::in_memory::<u8>(&CParams::default()).unwrap().save(path.join("a.b2f")).unwrap();
    // And a directory that only looks like a table.
    fs::create_dir(path.join("t")).unwrap();
    fs::write(path.join("t").join("_meta.b2f"), b"broken").unwrap();
    let mut store = TreeStore::open_rw(&path).unwrap();
    assert!(store.keys().eq(["/a", "/b", "/t/_meta"]));
    assert_eq!(store.array("/a").unwrap().read::<Vec<i32>>(..).unwrap(), [1]);
    assert_eq!(store.array("/b").unwrap().read::<Vec<i32>>(..).unwrap(), [2]);
    store.insert("/b", array(&[4]).schunk()).unwrap();
    assert!(!path.join("b.b2frame").exists());
    store.remove("/a").unwrap();
    assert!(TreeStore::open(&path).unwrap().keys().eq(["/b", "/t/_meta"]));
}

#[test]
fn zip_files_made_to_hurt() {
    // Thousands of places where a directory might start.
    let mut bytes = [&b"PK\x03\x04"[..], &[0; 26]].concat();
    for _ in 0..50_000 {
        bytes.extend_from_slice(b"PK\x05\x06\0\0\0\0\x01\0\x01\0\x2e\0\0\0\x1e\0\0\0\xff\xff");
    }
    let reads = Arc::new(Mutex::new(Vec::new()));
    let error = TreeStore::open_source(Counted { bytes, reads: Arc::clone(&reads) }).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(reads.lock().unwrap().len() < 2_000_000);

    // Many members that share the same bytes.
    let index = EmbedStore::in_memory().unwrap().into_schunk().to_cframe().unwrap();
    let stored = CompressionMethod::Stored;
    let large = vec![7; 1 << 20];
    let names: Vec<String> = (0..50).map(|name| format!("{name:04}")).collect();
    let mut members = vec![("embed.b2e", &index[..], stored), ("data", &large, stored)];
    members.extend(names.iter().map(|name| (name.as_str(), &[][..], stored)));
    let mut bytes = zipped(&members);
    // In the directory, each member has the offset of the large one.
    let entries: Vec<usize> =
        (0..bytes.len() - 4).filter(|&at| bytes[at..at + 4] == *b"PK\x01\x02").collect();
    let of_large = bytes[entries[1] + 16..entries[1] + 46].to_vec();
    for &entry in &entries[2..] {
        bytes[entry + 16..entry + 28].copy_from_slice(&of_large[..12]);
        bytes[entry + 42..entry + 46].copy_from_slice(&of_large[26..]);
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2z");
    fs::write(&path, bytes).unwrap();
    let error = TreeStore::open_rw(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().contains("overlap"), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn folders_of_frames_are_stores_for_reading() {
    let node = NDArray::from_slice(&[1i32, 2], &[2]).unwrap().schunk().to_cframe().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data.b2");
    fs::create_dir_all(path.join("group")).unwrap();
    fs::write(path.join("dataset.json"), "{}").unwrap();
    assert!(!TreeStore::is_at(&path).unwrap());
    let error = TreeStore::open(&path).unwrap_err();
    assert!(error.to_string().contains("neither a file `embed.b2e` nor frames"), "{error}");
    fs::write(path.join("group/a.b2nd"), &node).unwrap();
    fs::write(path.join("b.b2nd"), &node).unwrap();
    assert!(TreeStore::is_at(&path).unwrap());
    let Object::TreeStore(store) = Object::open(&path).unwrap() else { panic!("a store") };
    assert!(store.keys().eq(["/b", "/group/a"]) && store.groups().eq(["/group"]));
    assert_eq!(store.array("/group/a").unwrap().read::<Vec<i32>>(..).unwrap(), [1, 2]);
    // The limits of the store are those of its frames.
    let limits = Limits { memory: 140, ..Limits::default() };
    let store = TreeStore::open_with_limits(&path, limits, None).unwrap();
    assert_eq!(store.get("/b").unwrap_err().kind(), ErrorKind::TooLarge);
    let error = TreeStore::open_rw(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().contains("can only be read"), "{error}");
    assert!(!path.join("embed.b2e.b2lock").exists());
    // A sparse frame is no store, whatever else is in its directory.
    fs::write(path.join("chunks.b2frame"), b"").unwrap();
    assert!(!TreeStore::is_at(&path).unwrap());
}
