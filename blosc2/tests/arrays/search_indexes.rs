//! Python's search indexes of an array: every change of items marks them as stale, and copies do not have them.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;

use blosc2::super_chunk::VariableBlocks;
use blosc2::{
    Appender, CParams, Chunk, Element, NDArray, OpenOptions, RawItems, Result, SChunk,
    SChunkWriter, SaveOptions, Selection, Special, Target, Value,
};
use blosc2_format::directory::Disk;
use serde_json::{Value as Json, json};

use crate::common::Rng;

const INDEXES: &str = "blosc2_indexes";
const QUERIES: &str = "_blosc2_query_cache";

#[derive(Debug, Clone, Copy, PartialEq, Element)]
#[repr(C)]
struct Row {
    a: u32,
    b: u32,
}

const ROW: Row = Row { a: 1, b: 2 };
const BYTES: &[u8; 8] = &[1, 2, 3, 4, 5, 6, 7, 8];

/// Descriptions like those of Python 4.14.1, of all kinds of indexes.
fn descriptions(stale: bool) -> Json {
    let kinds = ["summary", "bucket", "partial", "full", "opsi"];
    let mut indexes = serde_json::Map::new();
    for (number, kind) in kinds.into_iter().enumerate() {
        let token = ["__self__", "a", "b", "__expr__0123456789ab", "é"][number];
        let path = format!("/data/a.__index__.{kind}.values.b2nd");
        let mut index = json!({
            "name": token, "token": token, "kind": kind, "version": 1, "persistent": true, "ooc": number > 2,
            "target": {"source": "field", "field": null}, "stale": stale, "dtype": "<i8", "shape": [40],
            "levels": {"chunk": {"segment_len": 70_000, "path": path, "dtype": [["min", "<i8"], ["stale", -1.5]]}},
            "cparams": null,
        });
        index[kind] = json!({"values_path": path, "runs": [{"id": 0, "stale": false}], "wide": (0..20).collect::<Vec<_>>()});
        indexes.insert(token.into(), index);
    }
    json!({"version": 1, "indexes": indexes, "stale": false})
}

fn add_indexes(schunk: &mut SChunk) {
    let mut vlmeta = schunk.vlmeta_mut();
    vlmeta.set_value(INDEXES, &descriptions(false)).unwrap();
    vlmeta.set_value(QUERIES, &json!({"entries": {}})).unwrap();
    vlmeta.set("other", b"kept").unwrap();
}

fn check(schunk: &SChunk, stale: bool, what: &str) {
    let found = schunk.vlmeta().get_value::<Json>(INDEXES).unwrap();
    assert_eq!(found, Some(descriptions(stale)), "{what}");
    assert_eq!(schunk.vlmeta().contains(QUERIES), !stale, "{what}");
    assert_eq!(schunk.vlmeta().get("other").unwrap().unwrap(), b"kept", "{what}");
}

/// A change, by the object that it changes.
enum Change {
    /// 40 rows in chunks of 10.
    Array(fn(&mut NDArray) -> Result<()>),
    /// The super-chunk of this array.
    OfArray(fn(&mut SChunk) -> Result<()>),
    /// 4 chunks of 10 numbers.
    Chunks(fn(&mut SChunk) -> Result<()>),
    /// 2 chunks with variable-length blocks.
    Blocks(fn(&mut SChunk) -> Result<()>),
    /// No chunks.
    Empty(fn(&mut SChunk) -> Result<()>),
}

/// The public methods that change items, each with at least one change.
const CHANGES: &[(&str, Change)] = &[
    ("NDArray::append", Change::Array(|a| a.append(0, &[ROW]))),
    ("NDArray::append", Change::Array(|a| a.append(0, &NDArray::from_slice(&[ROW; 3], [3])?))),
    ("NDArray::delete", Change::Array(|a| a.delete(0, 3..5))),
    (
        "NDArray::delete",
        Change::Array(|a| a.delete(0, 35..40).and_then(|()| a.append(0, &[ROW; 5]))),
    ),
    ("NDArray::insert", Change::Array(|a| a.insert(0, 3, &[ROW]))),
    ("NDArray::resize", Change::Array(|a| a.resize([39]))),
    ("NDArray::resize", Change::Array(|a| a.resize([41]))),
    ("NDArray::resize", Change::Array(|a| a.resize([0]))),
    ("NDArray::resize", Change::Array(|a| a.resize([30]).and_then(|()| a.resize([40])))),
    ("NDArray::resize_at", Change::Array(|a| a.resize_at([50], [10]))),
    ("NDArray::assign", Change::Array(|a| a.assign(3..7, &[ROW; 4][..]))),
    ("NDArray::write", Change::Array(|a| a.write(3..7, ROW))),
    ("NDArray::write", Change::Array(|a| a.write(.., Row { a: 0, b: 0 }))),
    ("NDArray::write", Change::Array(|a| a.write([39], ROW))),
    ("NDArray::write", Change::Array(|a| a.write(2..4, &[ROW; 2]))),
    ("NDArray::write", Change::Array(|a| a.write(10..20, &[ROW; 10]))),
    ("NDArray::write", Change::Array(|a| a.write(([5, 30, 0],), &[ROW; 3]))),
    ("NDArray::write", Change::Array(|a| a.write(2..4, ndarray::arr1(&[ROW; 2]).view()))),
    ("NDArray::write", Change::Array(|a| a.write(Selection::mask(&[true; 40]), &[ROW; 40]))),
    ("NDArray::write", Change::Array(|a| a.write(Selection::points(&[[3], [17]]), &[ROW; 2]))),
    ("NDArray::locked", Change::Array(|a| a.locked(|a| a.write([0], ROW)))),
    (
        "NDArray::transaction",
        Change::Array(|a| a.transaction(|a| a.write([0], ROW).and_then(|()| a.resize([20])))),
    ),
    ("Appender::append", Change::Array(|a| Appender::new(a, 0)?.append(&[ROW; 12]))),
    ("NDArray::write", Change::Array(|a| a.write(0..1, RawItems(BYTES)))),
    ("NDArray::write", Change::Array(|a| a.write(Selection::from(0..1).field("b"), &[7u32]))),
    ("NDArray::append", Change::Array(|a| a.append(0, RawItems(BYTES)))),
    ("NDArray::write", Change::Array(|a| a.write(2..33, RawItems(BYTES)))),
    ("NDArray::insert", Change::Array(|a| a.insert(0, 9, RawItems(BYTES)))),
    ("NDArray::write", Change::Array(|a| a.write(0..1, RawItems(BYTES)))),
    (
        "NDArray::write",
        Change::Array(|a| {
            a.write(Selection::mask(&[&[true][..], &[false; 39]].concat()), RawItems(BYTES))
        }),
    ),
    ("NDArray::write", Change::Array(|a| a.write(Selection::points(&[[3]]), RawItems(BYTES)))),
    ("NDArray::write", Change::Array(|a| a.write(Selection::all().field("a"), 9u32))),
    ("NDArray::write", Change::Array(|a| a.write(Selection::from(0..1).field("b"), &[7u32]))),
    ("Appender::append", Change::Array(|a| Appender::new(a, 0)?.append(&[ROW; 25]))),
    ("Appender::append", Change::Array(|a| Appender::new(a, 0)?.append(RawItems(BYTES)))),
    (
        "Appender::flush",
        Change::Array(|a| {
            let mut appender = Appender::new(a, 0)?;
            appender.append(&[ROW])?;
            appender.flush()
        }),
    ),
    (
        "Appender::sync",
        Change::Array(|a| {
            let mut appender = Appender::new(a, 0)?;
            appender.append(&[ROW])?;
            appender.sync()
        }),
    ),
    (
        "Appender::finish",
        Change::Array(|a| {
            let mut appender = Appender::new(a, 0)?;
            appender.append(&[ROW])?;
            appender.finish().map(drop)
        }),
    ),
    ("Appender::drop", Change::Array(|a| Appender::new(a, 0)?.append(&[ROW]))),
    // The metalayer of the array: the items get another meaning.
    (
        "MetalayersMut::set",
        Change::OfArray(|s| {
            let meta = s.meta().get("b2nd")?.unwrap();
            s.meta_mut().with_reserved().set("b2nd", meta)
        }),
    ),
    ("SChunk::replace", Change::OfArray(|s| s.replace(1, &[9u8; 80]))),
    ("SChunk::replace", Change::OfArray(|s| s.replace(1, &s.chunk(0)?))),
    ("SChunk::write", Change::OfArray(|s| s.write(3, &[9u8; 8]))),
    ("SChunk::append", Change::Chunks(|s| s.append(&[5u32; 10]))),
    ("SChunk::append", Change::Chunks(|s| s.append(&s.chunk(1)?))),
    ("SChunk::append", Change::Chunks(|s| s.append(&Chunk::zeros::<u32>(10, &CParams::new())?))),
    ("SChunk::remove", Change::Chunks(|s| s.remove(1))),
    ("SChunk::insert", Change::Chunks(|s| s.insert(0, &[5u32; 10]))),
    ("SChunk::insert", Change::Chunks(|s| s.insert(0, &s.chunk(1)?))),
    ("SChunk::reorder", Change::Chunks(|s| s.reorder(&[3, 2, 1, 0]))),
    ("SChunk::remove", Change::Chunks(|s| s.remove(1..))),
    ("SChunk::replace", Change::Chunks(|s| s.replace(0, &[5u32; 10]))),
    ("SChunk::replace", Change::Chunks(|s| s.replace(0, &s.chunk(1)?))),
    ("SChunk::write", Change::Chunks(|s| s.write(8, &[5u32; 4]))),
    ("SChunk::locked", Change::Chunks(|s| s.locked(|s| s.remove(1..)))),
    ("SChunk::transaction", Change::Chunks(|s| s.transaction(|s| s.remove(0)))),
    (
        "SChunkWriter::write",
        Change::Chunks(|s| {
            SChunkWriter::new(s, 10)?.write_all(&[7; 80]).unwrap();
            Ok(())
        }),
    ),
    (
        "SChunkWriter::flush",
        Change::Chunks(|s| {
            let mut writer = SChunkWriter::new(s, 10)?;
            writer.write_all(&[7; 40]).unwrap();
            writer.flush().unwrap();
            Ok(())
        }),
    ),
    (
        "SChunkWriter::finish",
        Change::Chunks(|s| {
            let mut writer = SChunkWriter::new(s, 10)?;
            writer.write_all(&[7; 8]).unwrap();
            writer.finish().map(drop)
        }),
    ),
    (
        "SChunkWriter::drop",
        Change::Chunks(|s| {
            SChunkWriter::new(s, 10)?.write_all(&[7; 8]).unwrap();
            Ok(())
        }),
    ),
    ("SChunk::append", Change::Blocks(|s| s.append(VariableBlocks(&[b"new"])))),
    ("SChunk::insert", Change::Blocks(|s| s.insert(0, VariableBlocks(&[b"new"])))),
    ("SChunk::replace", Change::Blocks(|s| s.replace(0, VariableBlocks(&[b"new"])))),
    ("SChunk::fill", Change::Empty(|s| s.fill(Special::Zeros, 100, 10))),
];

/// The other public methods with `&mut self` of the types that change items.
const UNCHANGED: &[&str] = &[
    "MetalayersMut::remove",
    "MetalayersMut::set_value",
    "NDArray::compact",
    "NDArray::meta_mut",
    "NDArray::refresh",
    "NDArray::set_cparams",
    "NDArray::set_dparams",
    "NDArray::sync",
    "NDArray::vlmeta_mut",
    "SChunk::compact",
    "SChunk::meta_mut",
    "SChunk::refresh",
    "SChunk::set_checksums",
    "SChunk::set_cparams",
    "SChunk::set_dparams",
    "SChunk::sync",
    "SChunk::vlmeta_mut",
];

/// The types with public methods with `&mut self` that change no stored items.
const OTHER_TYPES: &[&str] = &[
    "Box",
    "ChunkBlock",
    "Chunks",
    "Compressor",
    "Decompressor",
    "File",
    "FilterBlock",
    "MappedFile",
    "PartialRead",
    "ReadOnly",
    "Rows",
    "SChunkReader",
    "Seekable",
    "Storage",
    "UserTuner",
    "Vec",
];

/// The types whose methods change items, also those with `self`.
const CHANGING_TYPES: [&str; 5] =
    ["Appender", "MetalayersMut", "NDArray", "SChunk", "SChunkWriter"];

/// The methods with `self` that only convert a handle.
const CONVERSIONS: &[&str] = &[
    "Appender::into_inner",
    "MetalayersMut::with_cparams",
    "MetalayersMut::with_reserved",
    "NDArray::into_schunk",
    "NDArray::into_source",
    "SChunk::into_cframe",
];

/// Returns the public methods of `blosc2` as `Type::method`, with the start of their parameters.
fn public_methods() -> Vec<(String, String)> {
    let list = blosc2_testing::root().join("blosc2/api.txt");
    let list = fs::read_to_string(list).unwrap();
    let methods = list.lines().filter_map(|line| {
        let (path, parameters) = line.strip_prefix("pub fn ")?.split_once('(')?;
        let mut depth = 0;
        let path: String = path
            .chars()
            .filter(|&char| {
                depth += i32::from(char == '<');
                let is_kept = depth == 0;
                depth -= i32::from(char == '>');
                is_kept
            })
            .collect();
        let mut parts = path.rsplit("::");
        let (method, of) = (parts.next()?, parts.next()?);
        Some((format!("{of}::{method}"), parameters.to_owned()))
    });
    methods.collect()
}

#[test]
fn the_list_of_changes_is_complete() {
    let mut found = BTreeSet::new();
    for (name, parameters) in public_methods() {
        let of = name.split("::").next().unwrap();
        let changes = CHANGING_TYPES.contains(&of);
        if !(parameters.starts_with("&mut self") || changes && parameters.starts_with("self")) {
            continue;
        }
        let lists = usize::from(CHANGES.iter().any(|(change, _)| *change == name))
            + usize::from(UNCHANGED.contains(&&*name))
            + usize::from(CONVERSIONS.contains(&&*name))
            + usize::from(OTHER_TYPES.contains(&of));
        assert_eq!(lists, 1, "`{name}` belongs to one list of this file");
        found.insert(name);
    }
    let names = CHANGES.iter().map(|(name, _)| name).chain(UNCHANGED).chain(CONVERSIONS);
    for name in names {
        assert!(found.contains(*name), "`{name}` is not a public method");
    }
}

/// Where an object is stored.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Place {
    File,
    Checksums,
    Directory,
    Frame,
    Memory,
}

const PLACES: [Place; 5] =
    [Place::File, Place::Checksums, Place::Directory, Place::Frame, Place::Memory];

fn options(place: Place) -> OpenOptions {
    OpenOptions::new().typesize(4).checksums(place == Place::Checksums)
}

fn new_schunk(place: Place, path: &Path) -> SChunk {
    match place {
        Place::File | Place::Checksums => options(place).create(true).open(path),
        Place::Directory => options(place).create(true).open(Target::from(path).directory(true)),
        Place::Frame => options(place).create_new(true).open(Vec::new()),
        Place::Memory => options(place).open(Target::memory()),
    }
    .unwrap()
}

fn new_array(place: Place, path: &Path) -> NDArray {
    let builder = NDArray::builder()
        .chunk_shape([10])
        .block_shape([5])
        .options(OpenOptions::new().checksums(place == Place::Checksums));
    let builder = match place {
        Place::File | Place::Checksums => builder.target(path),
        Place::Directory => builder.target(Target::from(path).directory(true)),
        Place::Frame | Place::Memory => builder,
    };
    let rows: Vec<Row> = (0..40).map(|n| Row { a: n * 7, b: n }).collect();
    let array = builder.from_slice(&rows, [40]).unwrap();
    match place {
        Place::Frame => {
            let frame = OpenOptions::new().write(true).open(array.schunk().to_cframe().unwrap());
            NDArray::from_schunk(frame.unwrap()).unwrap()
        }
        _ => array,
    }
}

fn new_object(change: &Change, place: Place, path: &Path) -> SChunk {
    if let Change::Array(_) | Change::OfArray(_) = change {
        return new_array(place, path).into_schunk();
    }
    let mut schunk = new_schunk(place, path);
    for number in 0..4u32 {
        match change {
            Change::Chunks(_) => schunk.append(&[number; 10]).unwrap(),
            Change::Blocks(_) if number < 2 => {
                schunk.append(VariableBlocks(&[b"some", b"blocks"])).unwrap();
            }
            _ => {}
        }
    }
    schunk
}

fn run(schunk: SChunk, change: &Change) -> Result<SChunk> {
    let mut schunk = schunk;
    match change {
        Change::Array(change) => {
            let mut array = NDArray::from_schunk(schunk)?;
            change(&mut array)?;
            return Ok(array.into_schunk());
        }
        Change::OfArray(change)
        | Change::Chunks(change)
        | Change::Blocks(change)
        | Change::Empty(change) => change(&mut schunk)?,
    }
    Ok(schunk)
}

#[test]
fn every_change_of_items_marks_search_indexes() {
    for place in PLACES {
        for (name, change) in CHANGES {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.b2nd");
            let what = format!("{name}, {place:?}");
            let is_blocks = matches!(change, Change::Blocks(_));
            let mut schunk = new_object(change, place, &path);
            assert!(!is_blocks || schunk.nchunks() == 2);
            add_indexes(&mut schunk);
            check(&schunk, false, &what);
            let schunk = run(schunk, change).unwrap_or_else(|error| panic!("{what}: {error}"));
            check(&schunk, true, &what);
            if path.exists() {
                drop(schunk);
                check(&SChunk::open(&path).unwrap(), true, &what);
            }
        }
    }
}

#[test]
fn what_changes_no_items_keeps_search_indexes() {
    for place in PLACES {
        let folder = tempfile::tempdir().unwrap();
        let mut array = new_array(place, &folder.path().join("a.b2nd"));
        array.set_cparams(CParams::new().level(1)).unwrap();
        array.sync().unwrap();
        array.vlmeta_mut().set_value("more", &1).unwrap();
        let mut schunk = array.into_schunk();
        add_indexes(&mut schunk);
        schunk.vlmeta_mut().remove("more").unwrap();
        schunk.set_checksums(place != Place::Checksums).unwrap();
        schunk.refresh().unwrap();
        schunk.compact().unwrap();
        check(&schunk, false, "metadata");
        // Errors and rolled back transactions.
        schunk.append(&[1u8; 8]).unwrap_err();
        let mut array = NDArray::from_schunk(schunk).unwrap();
        array.write(0..50, &[ROW; 50]).unwrap_err();
        array.delete(0, 50..60).unwrap_err();
        let failed = array.transaction(|array| {
            array.write([0], ROW)?;
            check(array.schunk(), true, "in the transaction");
            array.write([40], ROW)
        });
        failed.unwrap_err();
        check(array.schunk(), false, "errors");
        array.transaction(|_| Ok(())).unwrap();
        let mut schunk = array.into_schunk();
        schunk.transaction(|schunk| schunk.vlmeta_mut().set("more", b"")).unwrap();
        check(&schunk, false, "transactions");
    }
    let mut schunk = new_object(&Change::Chunks(|_| Ok(())), Place::Memory, Path::new(""));
    add_indexes(&mut schunk);
    schunk.remove(4..).unwrap();
    check(&schunk, false, "nothing is removed");
}

/// A function that copies an array: it returns the copy of an array, which it can store at a path.
type Copying = fn(&NDArray, &Path) -> Result<SChunk>;

const COPIES: &[(&str, Copying)] = &[
    ("NDArray::save", |a, path| a.save(path).and_then(|()| SChunk::open(path))),
    ("NDArray::save_with", |a, path| {
        SaveOptions::new()
            .save(&a, Target::from(path).directory(true))
            .and_then(|()| SChunk::open(path))
    }),
    ("NDArray::save_with", |a, path| {
        SaveOptions::new().cparams(CParams::new().level(1)).save(&a, path)?;
        SChunk::open(path)
    }),
    ("NDArray::save_in", |a, path| {
        SaveOptions::new().save(&a, Target::storage(File::create_new(path).unwrap()))?;
        SChunk::open(path)
    }),
    ("NDArray::save_in_folder", |a, path| {
        fs::create_dir(path).unwrap();
        SaveOptions::new().save(&a, Target::folder(Disk(path.to_owned())))?;
        SChunk::open(path)
    }),
    ("NDArray::to_cframe", |a, _| SChunk::open(a.schunk().to_cframe()?)),
    ("SChunk::save", |a, path| a.schunk().save(path).and_then(|()| SChunk::open(path))),
    ("SChunk::save_with", |a, path| {
        SaveOptions::new().save(&a.schunk(), path)?;
        SChunk::open(path)
    }),
    ("SChunk::save_in", |a, path| {
        SaveOptions::new().save(&a.schunk(), Target::storage(File::create_new(path).unwrap()))?;
        SChunk::open(path)
    }),
    ("SChunk::save_in_folder", |a, path| {
        fs::create_dir(path).unwrap();
        SaveOptions::new().save(&a.schunk(), Target::folder(Disk(path.to_owned())))?;
        SChunk::open(path)
    }),
    ("SChunk::append_to_file", |a, path| {
        fs::write(path, b"before").unwrap();
        let offset = SaveOptions::new().append(&a.schunk(), path)?;
        OpenOptions::new().open(Target::from(path).offset(offset))
    }),
    ("SChunk::to_cframe", |a, _| SChunk::open(a.schunk().to_cframe()?)),
    ("SChunk::into_cframe", |a, _| {
        // The buffer of this handle has the indexes.
        let mut schunk = OpenOptions::new().write(true).open(a.schunk().to_cframe()?)?;
        add_indexes(&mut schunk);
        SChunk::open(schunk.into_cframe()?)
    }),
    ("SChunk::try_clone", |a, _| a.schunk().try_clone()),
    ("SChunk::recompress", |a, _| a.schunk().recompress(CParams::new().level(1))),
    ("NDArrayBuilder::copy", |a, path| {
        Ok(NDArray::builder().chunk_shape([7]).target(path).copy(a)?.into_schunk())
    }),
];

#[test]
fn copies_have_no_search_indexes() {
    for place in PLACES {
        for (name, copy) in COPIES {
            let folder = tempfile::tempdir().unwrap();
            let array = new_array(place, &folder.path().join("a.b2nd"));
            let mut schunk = array.into_schunk();
            add_indexes(&mut schunk);
            let array = NDArray::from_schunk(schunk).unwrap();
            let copied = copy(&array, &folder.path().join("copy")).unwrap();
            let what = format!("{name}, {place:?}");
            assert_eq!(copied.vlmeta().names(), ["other"], "{what}");
            check(array.schunk(), false, &what);
            let copied = NDArray::from_schunk(copied).unwrap();
            assert_eq!(copied.read::<Vec<Row>>(..).unwrap(), array.read::<Vec<Row>>(..).unwrap());
        }
    }
    // The list is complete.
    for (name, _) in public_methods() {
        let of = name.split("::").next().unwrap();
        let method = &name[of.len() + 2..];
        let copies = ["save", "copy", "try_clone", "recompress", "append_to_file", "cframe"];
        let is_copy = copies.iter().any(|part| method.contains(part)) && !method.contains("from_");
        if ["NDArray", "SChunk", "NDArrayBuilder"].contains(&of) && is_copy {
            assert!(COPIES.iter().any(|(copy, _)| *copy == name), "`{name}` is not tested");
        }
    }
}

#[test]
fn a_repaired_file_has_no_search_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2nd");
    let mut schunk = new_array(Place::File, &path).into_schunk();
    add_indexes(&mut schunk);
    drop(schunk);
    let bytes = fs::read(&path).unwrap();
    blosc2::repair::repair(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), bytes, "a valid file stays as it is");
    for (number, place) in [Place::File, Place::Checksums, Place::Directory].into_iter().enumerate()
    {
        let original = folder.path().join(format!("{number}.b2nd"));
        let copy = folder.path().join(format!("{number}.copy.b2nd"));
        let mut schunk = new_array(place, &original).into_schunk();
        add_indexes(&mut schunk);
        drop(schunk);
        blosc2::repair::repair_to(&original, &copy).unwrap();
        assert_eq!(SChunk::open(&copy).unwrap().vlmeta().names(), ["other"], "{place:?}");
        check(&SChunk::open(&original).unwrap(), false, "the original");
    }
    // The length of the frame.
    fs::write(&path, &[&bytes[..16], &[0xff; 8], &bytes[24..]].concat()).unwrap();
    blosc2::repair::repair(&path).unwrap();
    let repaired = SChunk::open(&path).unwrap();
    assert_eq!(repaired.vlmeta().names(), ["other"]);
    assert_eq!(repaired.nchunks(), 4);
}

/// Returns whether Python would use an index: the field of the last of several equal names counts.
fn is_current(content: &[u8]) -> bool {
    let field = |map: &[(Value, Value)], name: &str| {
        map.iter().rev().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value.clone())
    };
    let Ok(Value::Map(all)) = Value::from_msgpack(content) else { return false };
    let Some(Value::Map(indexes)) = field(&all, "indexes") else { return false };
    indexes.iter().any(|(_, index)| match index {
        Value::Map(index) => field(index, "stale") != Some(Value::Bool(true)),
        _ => false,
    })
}

#[test]
fn other_descriptions_do_not_prevent_a_change() {
    let mut schunk = new_object(&Change::Chunks(|_| Ok(())), Place::Frame, Path::new(""));
    schunk.vlmeta_mut().set_value(INDEXES, &descriptions(false)).unwrap();
    let good = schunk.vlmeta().get(INDEXES).unwrap().unwrap();
    let mut after = |content: &[u8]| {
        schunk.vlmeta_mut().set(INDEXES, content).unwrap();
        schunk.replace(0, &[5u32; 10]).unwrap();
        schunk.vlmeta().get(INDEXES).unwrap()
    };
    assert!(is_current(&good));
    assert!(!is_current(&after(&good).unwrap()));
    // Nothing to mark.
    for kept in [&b"\x81\xa7indexes\x80"[..], b"\x81\xa7indexes\x81\x01\x81\xa5stale\xc3"] {
        assert_eq!(after(kept).as_deref(), Some(kept));
    }
    let marked = after(b"\xde\0\x01\xd9\x07indexes\xdf\0\0\0\x01\xc0\x81\xd9\x05stale\xc2");
    assert_eq!(
        marked.unwrap(),
        b"\xde\0\x01\xd9\x07indexes\xdf\0\0\0\x01\xc0\x81\xd9\x05stale\xc3"
    );
    let deep = [&b"\x82\xa7indexes\x80\x01"[..], &[0x91; 1_000_000], &[0xc0]].concat();
    assert_eq!(after(&deep), Some(deep));
    // Not understood.
    let removed: &[&[u8]] = &[
        b"",
        b"\x80",
        b"\x90",
        b"\xc0",
        b"\xc1",
        b"\x81\xa7indexes\xc0",
        b"\x81\xa7indexes\x81\x01\x80",
        b"\x81\xa7indexes\x81\x01\xc0",
        b"\x81\xa7indexes\x81\x01\x81\xa5stale\xc0",
        b"\x81\xa7indexes\x81\x01\x81\xa5stale\x00",
        // Names that are not texts.
        b"\x81\xc4\x07indexes\x80",
        b"\x81\xa7indexes\x81\x01\x81\xc4\x05stale\xc3",
        b"\x81\xa7indexes\x81\x01\x81\xc7\x04stale\xc3",
        b"\x81\xa7indexes\x80\x80",
        b"\x81\xa7indexes\xdf\xff\xff\xff\xff",
        b"\x81\xa7indexes\x81\xc6\xff\xff\xff\xff",
        b"\x82\xa7indexes\x80\x01\xdd\xff\xff\xff\xff",
        b"\x82\xa7indexes\x80\x01\xc9\xff\xff\xff\xff\0",
    ];
    for content in removed {
        assert_eq!(after(content), None, "{content:x?}");
    }
    assert_eq!(after(&vec![0; 17 << 20]), None, "too long");
    for len in 0..good.len() {
        assert_eq!(after(&good[..len]), None, "the first {len} bytes");
    }
    let mut rng = Rng(1);
    for _ in 0..2000 {
        let mut content = good.clone();
        for _ in 0..1 + rng.below(3) {
            let at = rng.index(content.len());
            content[at] =
                *rng.pick(&[rng.clone().next() as u8, 0x80, 0x81, 0xc2, 0xc3, 0xdf, 0xa5]);
        }
        let left = after(&content);
        assert!(!left.is_some_and(|left| is_current(&left)), "{content:x?}");
    }
}
