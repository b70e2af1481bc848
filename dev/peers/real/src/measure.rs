//! Bytes and times of one setting.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::library::Library;
use crate::set::{Part, Set};

/// The runs of a read or a write: at least, and at most until this time has passed. The shortest time counts.
const RUNS: u32 = 3;
const ENOUGH: Duration = Duration::from_millis(60);
/// A write that takes longer is not repeated.
const LONG: Duration = Duration::from_millis(300);
/// The time for the reads of parts. Their mean counts.
const PARTS: Duration = Duration::from_millis(60);
/// The number of parts that are compared with the items.
const CHECKED: usize = 20;
/// The number of times that a file is opened for one part.
const OPENED: usize = 50;

/// Removes a file or a folder.
pub fn remove(path: &Path) {
    let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
}

/// The bytes of a file, or of all files of a folder.
pub fn size(path: &Path) -> u64 {
    if !path.is_dir() {
        return fs::metadata(path).expect("a file").len();
    }
    fs::read_dir(path).expect("a folder").map(|entry| size(&entry.expect("a name").path())).sum()
}

/// The shortest time of several calls in seconds. What a call returns is freed later.
pub fn shortest<R>(mut call: impl FnMut() -> R, mut after: impl FnMut(R)) -> f64 {
    let (start, mut best, mut runs) = (Instant::now(), Duration::MAX, 0);
    while runs < RUNS || start.elapsed() < ENOUGH {
        let now = Instant::now();
        let result = black_box(call());
        best = best.min(now.elapsed());
        after(result);
        runs += 1;
        if runs == 1 && best > LONG {
            break;
        }
    }
    best.as_secs_f64()
}

/// The mean time of a read in seconds, after a check of the first ones.
fn mean(parts: &[Part], set: &Set, mut read: impl FnMut(&Part) -> Option<Vec<u8>>) -> Option<f64> {
    for part in &parts[..CHECKED.min(parts.len())] {
        assert!(read(part)? == set.expected(part), "other items at {part:?} of {}", set.name);
    }
    let (start, mut count) = (Instant::now(), 0);
    for part in parts {
        black_box(read(part));
        count += 1;
        if start.elapsed() > PARTS {
            break;
        }
    }
    Some(start.elapsed().as_secs_f64() / f64::from(count))
}

/// The time of opening and reading everything.
pub fn read(library: &dyn Library, set: &Set, path: &Path, threads: usize) -> f64 {
    shortest(|| library.open(set, path, threads).all(), drop)
}

pub fn measure(library: &dyn Library, set: &Set, work: &Path) -> Value {
    // Each write creates the file, and the last one is read later.
    let (path, kept) = (work.join("a"), work.join("kept"));
    let keep = |()| {
        remove(&kept);
        fs::rename(&path, &kept).expect("the file can be renamed");
    };
    let write_s = shortest(|| library.write(set, &path), keep);
    let path = kept;
    let bytes = size(&path);
    let items = library.open(set, &path, 1).all().into_bytes(set);
    assert!(items == set.items, "{} {} changes {}", library.name(), library.setting(), set.name);
    drop(items);
    let read = |threads| read(library, set, &path, threads);
    let mut open = library.open(set, &path, 1);
    let tiles = mean(&set.tiles(), set, |part| open.part(part));
    let rows = mean(&set.rows(), set, |part| open.part(part));
    drop(open);
    let again = vec![set.rows()[0].clone(); OPENED];
    let opened = mean(&again, set, |part| library.open(set, &path, 1).part(part));
    let record = json!({
        "set": set.name, "library": library.name(), "setting": library.setting(),
        "default": library.is_default(), "nbytes": set.items.len(), "bytes": bytes, "write_s": write_s,
        "read_1_s": read(1), "read_2_s": library.has_threads().then(|| read(2)), "tile_s": tiles, "row_s": rows,
        "open_s": opened,
    });
    remove(&path);
    record
}
