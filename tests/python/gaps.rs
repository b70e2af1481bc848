//! Files with gaps that Rust and Python change alternately: Rust uses and closes gaps, Python makes others.

use std::fs;

use blosc2::{CParams, NDArray, OpenOptions, SChunk};
use blosc2_format::{Options, Severity, frame};

use crate::common::{Rng, assert_same, run_python};

const TURNS: u64 = 5;
/// The side of the array, and of its chunks.
const SIDE: usize = 120;
const CHUNK: usize = 20;
/// The number of bytes of a chunk of the super-chunk.
const LEN: usize = 4000;

/// Compares the content of both files, changes them, and writes the new content.
const SCRIPT: &str = r#"
import sys
import blosc2
import numpy as np
folder, seed = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(seed)
def noise(count, dtype):
    values = rng.integers(0, 256, count * np.dtype(dtype).itemsize, dtype="u1").view(dtype)
    values[rng.integers(0, count + 1):] = seed
    return values
array = blosc2.open(folder + "/a.b2nd", mode="a")
expected = np.fromfile(folder + "/a.bin", "<i8").reshape(array.shape)
assert np.array_equal(array[:], expected)
for _ in range(60):
    low = rng.integers(0, array.shape[0] - 20, 2)
    high = low + rng.integers(1, 20, 2)
    box = tuple(slice(a, b) for a, b in zip(low, high))
    new = noise(int(np.prod(high - low)), "<i8").reshape(high - low)
    array[box] = new
    expected[box] = new
assert np.array_equal(array[:], expected)
expected.tofile(folder + "/a.bin")
schunk = blosc2.open(folder + "/s.b2frame", mode="a")
size = schunk.chunksize
chunks = [bytes(each) for each in np.fromfile(folder + "/s.bin", "u1").reshape(-1, size)]
def check():
    assert schunk.nchunks == len(chunks)
    for number, chunk in enumerate(chunks):
        assert schunk.decompress_chunk(number) == chunk, number
check()
for _ in range(40):
    at, new = int(rng.integers(0, len(chunks))), noise(size, "u1").tobytes()
    step = rng.integers(0, 6)
    if step == 0:
        schunk.append_data(new)
        chunks.append(new)
    elif step == 1:
        schunk.insert_data(at, new, True)
        chunks.insert(at, new)
    elif step == 2:
        schunk.delete_chunk(at)
        del chunks[at]
    else:
        schunk.update_data(at, new, True)
        chunks[at] = new
check()
open(folder + "/s.bin", "wb").write(b"".join(chunks))
print("good")
"#;

/// Bytes. A part of them can be compressed.
fn noise(rng: &mut Rng, len: usize) -> Vec<u8> {
    let mut bytes = rng.bytes(len);
    let from = rng.index(len + 1);
    bytes[from..].fill(3);
    bytes
}

#[test]
#[ignore = "needs Python"]
fn both_change_files_with_gaps() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut rng = Rng(1);
    let (side, chunk) = (SIDE as u64, CHUNK as u64);
    let made = NDArray::builder()
        .chunk_shape([chunk, chunk])
        .block_shape([chunk, chunk])
        .target(path("a.b2nd"));
    drop(made.zeros::<i64>([side, side]).unwrap());
    let mut items = vec![0i64; SIDE * SIDE];
    let mut chunks: Vec<Vec<u8>> = (0..40).map(|_| noise(&mut rng, LEN)).collect();
    let mut schunk = SChunk::create::<u8>(path("s.b2frame"), CParams::new()).unwrap();
    chunks.iter().for_each(|chunk| schunk.append(chunk).unwrap());
    drop(schunk);
    let mut most_gaps = 0;
    for turn in 0..TURNS {
        let what = format!("turn {turn}");
        let mut array =
            NDArray::from_schunk(OpenOptions::new().write(true).open(path("a.b2nd")).unwrap())
                .unwrap();
        for _ in 0..100 {
            let (row, column) = (rng.index(SIDE - CHUNK), rng.index(SIDE - CHUNK));
            let new: Vec<i64> = noise(&mut rng, 8 * CHUNK * CHUNK)
                .as_chunks()
                .0
                .iter()
                .map(|item| i64::from_le_bytes(*item))
                .collect();
            let (low, left) = (row as u64, column as u64);
            array.write((low..low + chunk, left..left + chunk), &new).unwrap();
            for (line, new) in new.chunks(CHUNK).enumerate() {
                items[(row + line) * SIDE + column..][..CHUNK].copy_from_slice(new);
            }
        }
        let copy = array.schunk().to_cframe().unwrap().len() as u64;
        let len = fs::metadata(path("a.b2nd")).unwrap().len();
        assert!(len <= (2 * copy).max(copy + (64 << 10)), "{what}: {len} bytes, a copy has {copy}");
        most_gaps = most_gaps.max(len - copy);
        drop(array);
        let mut schunk = OpenOptions::new().write(true).open(path("s.b2frame")).unwrap();
        for _ in 0..100 {
            let (at, new) = (rng.index(chunks.len()), noise(&mut rng, LEN));
            match rng.below(6) {
                0 => {
                    schunk.insert(at, &new).unwrap();
                    chunks.insert(at, new);
                }
                1 => {
                    schunk.remove(at).unwrap();
                    chunks.remove(at);
                }
                _ => {
                    schunk.replace(at, &new).unwrap();
                    chunks[at] = new;
                }
            }
        }
        if turn == TURNS - 2 {
            schunk.compact().unwrap();
        }
        drop(schunk);
        let bytes: Vec<u8> = items.iter().flat_map(|item| item.to_le_bytes()).collect();
        fs::write(path("a.bin"), bytes).unwrap();
        fs::write(path("s.bin"), chunks.concat()).unwrap();
        let arguments = [folder.path().to_str().unwrap(), &turn.to_string()];
        let printed = run_python(SCRIPT, folder.path(), &arguments);
        assert_eq!(printed.trim(), "good", "{what}");
        let new = fs::read(path("a.bin")).unwrap();
        items = new.as_chunks().0.iter().map(|item| i64::from_le_bytes(*item)).collect();
        chunks = fs::read(path("s.bin")).unwrap().chunks(LEN).map(Vec::from).collect();
        let array = NDArray::open(path("a.b2nd")).unwrap();
        let found: Vec<u8> = array
            .read::<Vec<i64>>(..)
            .unwrap()
            .iter()
            .flat_map(|item| item.to_le_bytes())
            .collect();
        assert_same(&found, &new, &what);
        let schunk = SChunk::open(path("s.b2frame")).unwrap();
        assert_eq!(schunk.nchunks(), chunks.len(), "{what}");
        for (number, chunk) in chunks.iter().enumerate() {
            let found = schunk.decompress_chunk::<u8>(number).unwrap();
            assert_same(&found, chunk, &format!("{what}, chunk {number}"));
        }
        for name in ["a.b2nd", "s.b2frame"] {
            let options = Options { content: true, ..Options::default() };
            let report = frame::check(&fs::read(path(name)).unwrap(), &options).unwrap();
            let bad = report.findings.iter().find(|each| each.rule.severity > Severity::Note);
            assert!(bad.is_none() && report.is_complete(), "{what}, {name}: {bad:?}");
        }
    }
    assert!(most_gaps > 0);
}

/// Reads all chunks, and appends others.
const APPEND: &str = r#"
import sys
import blosc2
path, first, count, more = sys.argv[1], *map(int, sys.argv[2:])
schunk = blosc2.open(path, mode="a")
assert schunk.nchunks == count, schunk.nchunks
for number in range(count):
    assert schunk.decompress_chunk(number) == (first + number).to_bytes(4, "little") * 25, number
for number in range(count, count + more):
    schunk.append_data((first + number).to_bytes(4, "little") * 25)
print("good")
"#;

/// Rust leaves unused bytes before a long index. Python reads such a file, and appends to it.
#[test]
#[ignore = "needs Python"]
fn both_append_to_a_long_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let mut schunk = SChunk::create::<u32>(&path, CParams::new()).unwrap();
    let append = |schunk: &mut SChunk, number: u32| schunk.append(&[number; 25]);
    schunk.transaction(|schunk| (0..5000).try_for_each(|each| append(schunk, each))).unwrap();
    drop(schunk);
    let mut count = 5000;
    for more in [0, 1, 30, 3000] {
        let mut schunk = SChunk::open_rw(&path).unwrap();
        (count..count + 20).for_each(|number| append(&mut schunk, number).unwrap());
        count += 20;
        let has_space = schunk.cbytes()
            > (0..count as usize)
                .map(|index| schunk.chunk_info(index).unwrap().cbytes as u64)
                .sum::<u64>();
        assert!(has_space, "after {count} chunks");
        drop(schunk);
        let arguments = [path.to_str().unwrap(), "0", &count.to_string(), &more.to_string()];
        assert_eq!(run_python(APPEND, folder.path(), &arguments).trim(), "good");
        count += more;
    }
    let schunk = SChunk::open(&path).unwrap();
    assert_eq!(schunk.nchunks(), count as usize);
    for number in 0..count {
        let found = schunk.decompress_chunk::<u32>(number as usize).unwrap();
        assert_eq!(found, [number; 25]);
    }
    let report = frame::check(&fs::read(&path).unwrap(), &Options::default()).unwrap();
    let bad = report.findings.iter().find(|each| each.rule.severity > Severity::Note);
    assert!(bad.is_none() && report.is_complete(), "{bad:?}");
}
