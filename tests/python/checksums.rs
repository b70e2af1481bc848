//! Files with checksums and Python, which ignores the checksums.

use crate::common::run_python;
use blosc2::repair::{Repaired, repair};
use blosc2::{CParams, ErrorKind, NDArray, OpenOptions, SChunk};

const SCRIPT: &str = r#"
import blosc2
import numpy as np

array = blosc2.open("a.b2nd", mode="r")
assert np.array_equal(array[:], np.arange(600, dtype="<i4").reshape(20, 30))
assert array.vlmeta[:]["author"] == "me"
name, version, frame_len, metadata, sums = array.vlmeta["blosc2.crc32c"]
assert (name, version) == ("blosc2.crc32c", 2) and len(sums) == 4 * array.schunk.nchunks
import os
assert frame_len == os.path.getsize("a.b2nd")

# Changes of all kinds, each in its own copy.
def changed(name, change):
    schunk = blosc2.open(name, mode="a")
    change(schunk)

new = np.full(100, 7, dtype="<i4")
changed("appended.b2frame", lambda schunk: schunk.append_data(new))
changed("updated.b2frame", lambda schunk: schunk.update_data(1, np.random.default_rng(1).integers(0, 1 << 31, 100, dtype="<i4"), copy=True))
changed("inserted.b2frame", lambda schunk: schunk.insert_data(1, new, copy=True))
changed("deleted.b2frame", lambda schunk: schunk.delete_chunk(0))
changed("metadata.b2frame", lambda schunk: schunk.vlmeta.__setitem__("added", 1))
array.copy(urlpath="copy.b2nd", mode="w")
"#;

#[test]
#[ignore = "needs Python; cargo xtask test runs it"]
fn python_reads_frames_with_checksums_and_changes_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let items: Vec<i32> = (0..600).collect();
    let options = OpenOptions::new().checksums(true).vlmeta_value("author", "me").unwrap();
    let builder = NDArray::builder().chunk_shape([7, 11]).options(options);
    builder.target(path("a.b2nd")).from_slice(&items, [20, 30]).unwrap();
    let names = ["appended", "updated", "inserted", "deleted", "metadata"];
    for name in names {
        let options = OpenOptions::new().checksums(true).typesize(4).create_new(true);
        let options = options.cparams(CParams::new().level(5));
        let mut schunk = options.open(path(&format!("{name}.b2frame"))).unwrap();
        for chunk in items.chunks(100) {
            schunk.append(chunk).unwrap();
        }
    }
    run_python(SCRIPT, folder.path(), &[]);

    // The chunks that are reported as changed.
    let changed: [(&str, usize, &[usize]); 5] = [
        ("appended", 7, &[6]),
        ("updated", 6, &[1]),
        ("inserted", 7, &[1, 2, 3, 4, 5, 6]),
        ("deleted", 5, &[0, 1, 2, 3, 4]),
        ("metadata", 6, &[]),
    ];
    for (name, count, expected) in changed {
        let path = path(&format!("{name}.b2frame"));
        let mut schunk = SChunk::open_rw(&path).unwrap();
        assert!(schunk.info().has_checksums, "{name}");
        assert_eq!(schunk.nchunks(), count, "{name}");
        let is_changed = |index: &usize| match schunk.decompress_chunk::<i32>(*index) {
            Ok(_) => false,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidData, "{name}");
                assert!(error.to_string().contains("checksum"), "{name}: {error}");
                true
            }
        };
        let found: Vec<usize> = (0..count).filter(is_changed).collect();
        assert_eq!(found, expected, "{name}");
        // A change by this crate does not accept the other chunks.
        schunk.vlmeta_mut().set("seen", b"").unwrap();
        drop(schunk);
        let schunk = SChunk::open_rw(&path).unwrap();
        let found = (0..count).filter(|&index| schunk.decompress_chunk::<i32>(index).is_err());
        assert_eq!(found.collect::<Vec<_>>(), expected, "{name}, changed again");
        drop(schunk);
        // What another program has changed is not damaged.
        assert_eq!(repair(&path).unwrap(), Repaired::Sound, "{name}");
        let mut schunk = SChunk::open_rw(&path).unwrap();
        schunk.set_checksums(true).unwrap();
        drop(schunk);
        let schunk = SChunk::open(&path).unwrap();
        assert!(schunk.read::<i32>(..).is_ok() && schunk.info().has_checksums, "{name}");
    }
    // Python copies the metalayer, and writes another header.
    let path = path("copy.b2nd");
    assert_eq!(NDArray::open(&path).unwrap_err().kind(), ErrorKind::InvalidData);
    let options = OpenOptions::new().write(true).verify_checksums(false);
    options.open(&path).unwrap().set_checksums(true).unwrap();
    assert_eq!(NDArray::open(&path).unwrap().read::<Vec<i32>>(..).unwrap(), items);
}
