//! The seeds of all targets, made of files in this repository.

use std::path::{Path, PathBuf};
use std::{fs, io};

use blosc2_format::directory::INDEX;
use blosc2_format::dtype::Dtype;
use blosc2_format::file::File;
use blosc2_format::{Limits, b2nd};

use crate::folder;

/// A seed: its name, which starts with its origin (`python`, `golden`, `hostile`, `upstream` or `text`), and its bytes.
pub type Seed = (String, Vec<u8>);

/// The largest seed in bytes: longer ones make mutation slow.
const LARGEST: usize = 16 << 10;

/// What a file of the repository is.
enum Form {
    Frame,
    Chunk,
    Zip,
    FolderOfChunks,
    Store,
}

/// Returns the seeds of a target. `root` is the root of the repository, `c_sources` the folder of C-Blosc2.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn seeds(target: &str, root: &Path, c_sources: &Path) -> io::Result<Vec<Seed>> {
    let mut seeds = Vec::new();
    match target {
        "dtype" => seeds.extend(dtypes(root)?),
        "slices" => seeds.extend(SLICES.iter().enumerate().map(text)),
        "store_metadata" => {
            seeds.extend(METADATA.iter().enumerate().map(|(number, (kind, content))| {
                (format!("text-{number}"), [&[*kind], *content].concat())
            }));
            for (name, path, form) in all_files(root, c_sources)? {
                of_file(target, &name, &path, form, &mut seeds)?;
            }
        }
        "round_trip" => {
            // Any bytes are parameters and data.
            for number in 0..32u8 {
                let bytes = (0..400u16).map(|at| (at as u8).wrapping_mul(number) ^ number);
                seeds.push((format!("text-{number}"), bytes.collect()));
            }
        }
        _ => {
            if target == "partial" {
                // Any bytes are parameters, data and changes.
                for number in 0..64u8 {
                    let bytes = (0..600u16).map(|at| (at as u8).wrapping_mul(number | 1) ^ number);
                    seeds.push((format!("text-{number}"), bytes.collect()));
                }
            }
            for (name, path, form) in all_files(root, c_sources)? {
                of_file(target, &name, &path, form, &mut seeds)?;
            }
        }
    }
    seeds.retain(|(_, bytes)| bytes.len() <= LARGEST);
    assert!(!seeds.is_empty(), "there is no target {target}");
    Ok(seeds)
}

fn text((number, text): (usize, &&str)) -> Seed {
    (format!("text-{number}"), text.as_bytes().to_vec())
}

const SLICES: [&str; 12] = [
    ":",
    "1:3",
    "-2:",
    "::-1",
    "3:0:-2",
    "0,1",
    "...,2",
    "1, ... , 2:4",
    "5",
    "-1",
    "::9223372036854775807",
    "-9223372036854775808:9223372036854775807:2",
];

/// Metadata of containers, after the number that says what it is to `store_metadata`. The columns and keys are those of
/// its containers.
const METADATA: [(u8, &[u8]); 12] = [
    (0, br#"{"version": 1, "columns": [{"name": "a", "kind": "int32"}, {"name": "b.c", "kind": "float64"}]}"#),
    (
        0,
        br#"{"version": 3, "columns": [{"name": "a", "kind": "int32", "null_value": 3}, {"name": "b.c",
        "kind": "float64", "null_value": NaN}, {"name": "d", "kind": "bytes", "max_length": 4}, {"name": "e", "kind":
        "vlstring", "nullable": true}, {"name": "f", "kind": "list", "item": {"kind": "int32"}}]}"#,
    ),
    (
        0,
        br#"{"version": 2, "columns": [{"name": "a", "kind": "timestamp", "unit": "us", "null_storage": "mask"}],
        "computed_columns": [{"name": "x", "expression": "a + 1"}], "materialized_columns": [{"name": "a", "stale":
        true}], "z": {"__bytes__": true, "base64": "AP8="}, "c": {"__complex__": true, "real": 1, "imag": -Infinity}}"#,
    ),
    (1, b"\x81\xa9embed_map\x81\xa2/x\x82\xa6offset\x00\xa6length\x18"),
    (1, b"\x81\xa9embed_map\x82\xa2/x\x81\xa7urlbase\xa1u\xa2/y\x81\xa4path\xa1p"),
    (3, b"/a\n/group/b\n/group\n/new/key\n/a/below\n/"),
    (3, b"a\n//\n/.\n/../x\n/a\\b\n/c:d\n/\0\n/\xc3\xa9"),
    (3, b"/_meta\n/group/__vlmeta__\n/embed\n/a.b2nd\n/group/b/_cols/x\n/.blosc2-x"),
    (4, b"\x82\xa7version\x01\xa4item\x81\xa4kind\xa5int32"),
    (4, b"\x81\xa4item\x82\xa4kind\xa6struct\xa6fields\x91\x82\xa4name\xa1a\xa4kind\xa5int32"),
    (5, b"\x81\xadbatch_lengths\x93\x03\x01\x04"),
    (6, b"\x94\xa9__tuple__\xa5numpy\x93\xa9__tuple__\x02\x03\xa3<i4"),
];

const DTYPES: [&str; 14] = [
    "<i4",
    ">f8",
    "|u1",
    "|b1",
    "<c16",
    "<U7",
    "|S3",
    "<M8[25s]",
    "<m8[ns]",
    "|V5",
    "('<f4', (3, 4))",
    "[('a', '<u2'), ('b', '>i4'), ('c', '<f4', (3,)), ('d', 'S3')]",
    "{'names': ['a', 'b'], 'formats': ['i1', '<f8'], 'offsets': [0, 8], 'itemsize': 16, 'aligned': True}",
    "[(('title', 'a'), [('x', 'S3'), ('y', '?')], (2, 2)), ('', '|V2')]",
];

/// Texts, metalayers of arrays, and headers of `.npy` files.
fn dtypes(root: &Path) -> io::Result<Vec<Seed>> {
    let mut seeds: Vec<Seed> = DTYPES.iter().enumerate().map(text).collect();
    for (name, path, _) in all_files(root, root)? {
        let Ok(file) = File::open(&path, &Limits::default()) else { continue };
        for layer in &file.info().metalayers {
            if layer.name == b2nd::NAME {
                seeds.push((name.clone(), layer.content.clone()));
            }
        }
    }
    for (number, dtype) in DTYPES.iter().enumerate() {
        let dtype = Dtype::parse(dtype).expect("one of the list");
        let descr = dtype.to_descr().unwrap_or_default();
        let mut text = format!("{{'descr': {descr}, 'fortran_order': False, 'shape': (3, 4), }}\n");
        text.insert_str(text.len() - 1, &" ".repeat(64 - (text.len() + 10) % 64));
        let mut bytes = b"\x93NUMPY\x01\0".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        seeds.push((format!("text-npy-{number}"), bytes));
    }
    Ok(seeds)
}

/// Adds the seeds that a target gets from a file or folder.
fn of_file(
    target: &str,
    name: &str,
    path: &Path,
    form: Form,
    seeds: &mut Vec<Seed>,
) -> io::Result<()> {
    let content = || if path.is_dir() { folder::pack(path) } else { fs::read(path) };
    let mut add = |bytes: Vec<u8>| seeds.push((name.to_owned(), bytes));
    match (target, form) {
        ("decode", Form::Chunk) => add([vec![1], content()?].concat()),
        ("decode" | "differential_chunk" | "partial", Form::Frame | Form::FolderOfChunks) => {
            if let Some(chunk) = first_chunk(path) {
                add(if target == "decode" { [vec![1], chunk].concat() } else { chunk });
            }
        }
        ("differential_chunk" | "partial", Form::Chunk) => add(content()?),
        ("check" | "differential", Form::Chunk | Form::Frame | Form::FolderOfChunks) => {
            add(content()?)
        }
        ("open_and_walk", Form::Frame | Form::FolderOfChunks) => add(content()?),
        ("change" | "remote", Form::Frame | Form::FolderOfChunks) => {
            // The first bytes are the changes, or the faults of responses.
            let number = seeds_number(name);
            let changes: Vec<u8> = (0..12).map(|at| (number >> (at % 8 * 8)) as u8 ^ at).collect();
            add([vec![changes.len() as u8 / 4], changes, content()?].concat());
        }
        ("msgpack", Form::Frame) => {
            if let Ok(file) = File::open(path, &Limits::default()) {
                seeds.extend(metalayers(name, file));
            }
        }
        ("store_metadata", Form::Zip) => add([vec![2], content()?].concat()),
        ("store_metadata", Form::Frame) => {
            if let Ok(file) = File::open(path, &Limits::default()) {
                seeds.extend(metalayers(name, file).into_iter().filter_map(metadata));
            }
        }
        ("store_zip", Form::Zip) => add(content()?),
        ("store_zip", Form::Frame) if is_container(name) => add(content()?),
        ("store_folder", Form::Store | Form::FolderOfChunks) => add(content()?),
        _ => {}
    }
    Ok(())
}

/// Whether a folder holds a sparse frame and nothing else.
fn is_sparse_frame(path: &Path) -> io::Result<bool> {
    if !path.join(INDEX).is_file() {
        return Ok(false);
    }
    let mut names = folder::files(path)?.into_keys();
    Ok(names.all(|name| name == INDEX || name.ends_with(".chunk")))
}

/// Whether a file is a container other than an array.
fn is_container(name: &str) -> bool {
    [".b2e", ".b2b", "objects", "lists", "tensor"].iter().any(|part| name.contains(part))
}

/// A number that depends on the name.
fn seeds_number(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// Returns the first chunk of a frame.
fn first_chunk(path: &Path) -> Option<Vec<u8>> {
    use blosc2_format::directory::Disk;
    use blosc2_format::frame::Frame;
    if path.is_dir() {
        return Frame::open_directory(Disk(path.into()), &Limits::default()).ok()?.chunk(0).ok();
    }
    let file = fs::File::open(path).ok()?;
    Frame::open(file, &Limits::default()).ok()?.chunk(0).ok()
}

/// Returns the metalayers of a file, and the chunks of an array of objects.
fn metalayers(name: &str, mut file: File<'_>) -> Vec<Seed> {
    let info = file.info().clone();
    let mut seeds: Vec<Seed> = Vec::new();
    for layer in info.metalayers {
        seeds.push((format!("{name}-{}", layer.name), layer.content));
    }
    for layer in info.vlmetalayers {
        if let Ok(Some(content)) = file.vlmetalayer(&layer) {
            seeds.push((format!("{name}-{layer}"), content));
        }
    }
    if is_container(name) {
        for number in 0..info.nchunks.min(20) {
            let mut data = Vec::new();
            if file.decode_chunk(number, &mut data).is_ok() {
                seeds.push((format!("{name}-{number}"), data));
            }
        }
    }
    seeds
}

/// The seed of `store_metadata` from a metalayer, if that is the metadata of a container.
fn metadata((name, content): Seed) -> Option<Seed> {
    let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
    let kind = match () {
        // The text after the header of the string.
        () if ends(&["-schema"]) => {
            let start = content.iter().position(|&byte| byte == b'{')?;
            return Some((name, [&[0], &content[start..]].concat()));
        }
        () if ends(&["-estore_metadata"]) => 1,
        () if ends(&["-listarray"]) => 4,
        () if ends(&["-_batch_array_metadata"]) => 5,
        () if ends(&["-__pack_tensor__"]) => 6,
        () if ends(&["-b2o", "-_LazyArray", "-proxy-source"]) => 7,
        () => return None,
    };
    Some((name, [&[kind], &content[..]].concat()))
}

/// Returns the files and folders of the repository that are seeds, with names that start with their origin.
fn all_files(root: &Path, c_sources: &Path) -> io::Result<Vec<(String, PathBuf, Form)>> {
    let mut found = Vec::new();
    for (origin, folder) in [
        ("golden", root.join("crates/format/tests/golden/files")),
        ("hostile", root.join("tests/hostile")),
        ("python", root.join("tests/python_files")),
        ("upstream", c_sources.join("compat")),
    ] {
        if folder.is_dir() {
            list(origin, &folder, &mut found)?;
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    Ok(found)
}

fn list(prefix: &str, folder: &Path, found: &mut Vec<(String, PathBuf, Form)>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = format!("{prefix}-{file}");
        let end = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let form = match &*end {
            _ if is_sparse_frame(&path)? => Form::FolderOfChunks,
            "b2d" if path.is_dir() => {
                // The files in a store are seeds as well.
                list(&name, &path, found)?;
                Form::Store
            }
            _ if path.is_dir() => {
                list(&name, &path, found)?;
                continue;
            }
            "b2z" => Form::Zip,
            "chunk" | "cdata" => Form::Chunk,
            "b2nd" | "b2f" | "b2b" | "b2e" | "b2frame" | "bl2" | "blp" | "sframe" => Form::Frame,
            _ if prefix.contains("golden-packed") => Form::Frame,
            _ => continue,
        };
        found.push((name, path, form));
    }
    Ok(())
}
