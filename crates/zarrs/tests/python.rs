//! Arrays of zarr-python are read equal, and arrays of this crate are read equal by zarr-python.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use common::all;
use zarrs::array::{Array, ArrayBuilder, ArrayBytes, ArrayMetadata};
use zarrs::filesystem::FilesystemStore;

const COMMON: &str = include_str!("scripts/common.py");
const WRITE: &str = include_str!("scripts/write.py");
const READ: &str = include_str!("scripts/read.py");

/// Runs a script in a folder, and returns its output.
fn run(script: &str, folder: &Path) -> String {
    let python = std::env::var_os("BLOSC2_TEST_PYTHON").expect(
        "BLOSC2_TEST_PYTHON has to be the path of a Python with the packages zarr 3.1.6, \
        numcodecs 0.16.6 and imagecodecs 2026.3.6",
    );
    std::fs::write(folder.join("common.py"), COMMON).unwrap();
    std::fs::write(folder.join("script.py"), script).unwrap();
    let output = Command::new(python).arg("script.py").current_dir(folder).output();
    let output = output.expect("Python does not start");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "Python failed ({}):\n{printed}\n{errors}", output.status);
    printed
}

/// Opens an array of Python.
fn open(folder: &Path, store: Arc<FilesystemStore>, name: &str) -> Array<FilesystemStore> {
    let path = format!("/{name}");
    let v2 = folder.join("theirs").join(name).join(".zarray");
    if cfg!(feature = "zarrs-blosc") && name.starts_with("other") && v2.exists() {
        // The codec `blosc` of `zarrs` refuses the metadata of other writers in Zarr V2.
        let mut metadata = serde_json::from_slice(&std::fs::read(v2).unwrap()).unwrap();
        blosc2_zarrs::standardize(&mut metadata).unwrap();
        return Array::new_with_metadata(store, &path, metadata).unwrap();
    }
    Array::open(store, &path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn arrays_are_equal_in_python() {
    blosc2_zarrs::register();
    let folder = tempfile::tempdir().unwrap();
    run(WRITE, folder.path());
    let names = std::fs::read_to_string(folder.path().join("names.json")).unwrap();
    let names: Vec<String> = serde_json::from_str(&names).unwrap();
    let theirs = Arc::new(FilesystemStore::new(folder.path().join("theirs")).unwrap());
    let ours = Arc::new(FilesystemStore::new(folder.path().join("ours")).unwrap());
    let mut groups: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &names {
        let group = name.split('-').next().unwrap();
        *groups.entry(group).or_default() += 1;
        let path = format!("/{name}");
        let array = open(folder.path(), theirs.clone(), name);
        let expected = std::fs::read(folder.path().join(format!("{name}.raw"))).unwrap();
        let metadata = array.metadata().to_string_pretty();
        let found = all(&array);
        assert!(found == expected, "{name}: {metadata}");
        if group == "large" || group == "shard" {
            let found: ArrayBytes<'static> =
                array.retrieve_array_subset(&[58..61, 0..1000]).unwrap();
            let found = found.into_fixed().unwrap();
            assert!(found == &expected[58 * 4000..61 * 4000], "{name}: {metadata}");
        }

        // The same array, written by this crate.
        let copy = match array.metadata() {
            ArrayMetadata::V2(metadata) => {
                let mut metadata = metadata.clone().into();
                if group == "other" {
                    blosc2_zarrs::standardize(&mut metadata).unwrap();
                }
                Array::new_with_metadata(ours.clone(), &path, metadata).unwrap()
            }
            // With the configuration that the codec writes.
            ArrayMetadata::V3(_) => {
                ArrayBuilder::from_array(&array).build(ours.clone(), &path).unwrap()
            }
        };
        copy.store_metadata().unwrap();
        if !found.is_empty() {
            copy.store_array_subset(&copy.subset_all(), ArrayBytes::new_flen(found)).unwrap();
        }
    }
    // Two versions of Zarr, two codecs, five compressors, three shuffles; eight data types, sixteen typesizes.
    let combinations = 2 * 2 * 5 * 3;
    let expected = BTreeMap::from([
        ("dtype", combinations * 8),
        ("typesize", combinations * 16),
        ("large", combinations),
        ("numcodecs", 5 * 3),
        ("shape", 2 * 2 * 5),
        ("order", 1),
        ("shard", 2),
        // Three versions (Zarr V2, Zarr V3, a shard), three data types, sixteen edits of the metadata.
        ("other", 3 * 3 * 16),
    ]);
    assert_eq!(groups, expected);
    assert_eq!(run(READ, folder.path()).trim(), names.len().to_string());
}
