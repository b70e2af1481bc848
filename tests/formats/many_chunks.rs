//! Frames with more chunks than a block of the index holds.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use blosc2::{Chunk, ErrorKind, SChunk, Target};
use blosc2_format::chunk::{Encoder, Params};
use blosc2_format::frame::{self, Frame, Offset};
use blosc2_format::{Limits, Options};

use super::frames::CSchunk;
use crate::common::{Rng, assert_same};

const PARAMS: Params = Params {
    codec: 1,
    codec_meta: 0,
    level: 5,
    typesize: 4,
    blocksize: None,
    filters: [0, 0, 0, 0, 0, 1],
    filters_meta: [0; 6],
    split: blosc2_format::chunk::SplitMode::ForwardCompat,
};
/// Bytes of a chunk's data.
const LEN: usize = 128;

/// A chunk whose compressed length varies.
fn chunk(rng: &mut Rng) -> Vec<u8> {
    let len = 40 + rng.below(80) as usize;
    let mut data = vec![7; LEN];
    data[..len].copy_from_slice(&rng.bytes(len));
    Encoder::new(PARAMS).unwrap().encode(&data).unwrap()
}

fn write(path: &Path, count: usize) {
    let mut rng = Rng(3);
    let pool: Vec<Vec<u8>> = (0..100).map(|_| chunk(&mut rng)).collect();
    let mut writer = frame::Writer::new(Cursor::new(Vec::new()), PARAMS, &[]).unwrap();
    for _ in 0..count {
        writer.push_chunk(&pool[rng.index(pool.len())]).unwrap();
    }
    fs::write(path, writer.finish().unwrap().into_inner()).unwrap();
}

/// Asserts that two files have the same chunks, and that the index of the first equals the one that C writes.
fn compare(ours: &Path, c: &Path, what: &str) {
    let bytes = fs::read(ours).unwrap();
    let report = frame::check(&bytes, &Options { content: true, ..Options::default() }).unwrap();
    assert!(report.is_good(), "{what}: {:?}", report.findings.first());
    let open = |bytes| Frame::open(bytes, &Limits::default()).unwrap();
    let (ours, c) = (open(bytes), open(fs::read(c).unwrap()));
    assert_eq!((ours.nchunks(), ours.header().nbytes), (c.nchunks(), c.header().nbytes), "{what}");
    let mut numbers = Vec::new();
    for number in 0..ours.nchunks() {
        assert_same(&ours.chunk(number).unwrap(), &c.chunk(number).unwrap(), what);
        let Offset::At(place) = ours.offset(number).unwrap() else { panic!("{what}: special") };
        numbers.extend(place.to_le_bytes());
    }
    let header = ours.header();
    let index = header.header_len as usize + header.cbytes as usize;
    let params = Params { codec: 0, typesize: 8, blocksize: Some(16 << 10), ..Params::default() };
    let params = Params { split: blosc2_format::chunk::SplitMode::Never, ..params };
    let expected = Encoder::new(params).unwrap().encode(&numbers).unwrap();
    let bytes = ours.into_inner();
    // An index that states unused bytes before it is longer by this statement.
    let table = 32 + 4 * numbers.len().div_ceil(16 << 10);
    let mut found = bytes[index..].to_vec();
    if let Some(at) = found[..table + 16].windows(4).position(|part| part == b"b2sp") {
        assert_eq!(at, table, "{what}");
        found.drain(at..at + 16);
        for at in (32..table).step_by(4).chain([12]) {
            let number = u32::from_le_bytes(found[at..at + 4].try_into().unwrap()) - 16;
            found[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
    }
    assert_same(&found[..expected.len()], &expected, &format!("{what}: index"));
}

/// Changes of a long index, each through a handle that stays open and one that is opened for it, against C's.
#[test]
fn changes_of_a_long_index_are_those_of_c() {
    let folder = tempfile::tempdir().unwrap();
    for (seed, count) in [(1, 2048), (2, 2049), (3, 4096), (4, 5000)] {
        let (ours, c) = (folder.path().join("ours.b2frame"), folder.path().join("c.b2frame"));
        write(&ours, count);
        fs::copy(&ours, &c).unwrap();
        let mut rng = Rng(seed);
        let mut kept = SChunk::open_rw(&ours).unwrap();
        let by_c = CSchunk::open(&c).unwrap();
        for turn in 0..24 {
            if turn % 3 == 0 {
                drop(kept);
                kept = SChunk::open_rw(&ours).unwrap();
            }
            let nchunks = kept.nchunks() as u64;
            let new = chunk(&mut rng);
            let new_chunk = Chunk::new(new.as_slice()).unwrap();
            let number = match rng.below(4) {
                0 => nchunks - 1,
                1 => rng.below(3),
                _ => rng.below(nchunks),
            };
            let what = match rng.below(6) {
                0 => {
                    kept.insert(number as usize, &new_chunk).unwrap();
                    by_c.insert_chunk(number as i64, &new);
                    format!("insert {number}")
                }
                1 => {
                    kept.remove(number as usize).unwrap();
                    by_c.delete_chunk(number as i64);
                    format!("delete {number}")
                }
                2 | 3 => {
                    kept.replace(number as usize, &new_chunk).unwrap();
                    by_c.update_chunk(number as i64, &new);
                    format!("update {number}")
                }
                _ => {
                    kept.append(&new_chunk).unwrap();
                    by_c.append_chunk(&new);
                    "append".to_owned()
                }
            };
            compare(&ours, &c, &format!("{count} chunks, turn {turn}, {what}"));
        }
        drop(kept);
        // C reads what was written.
        let (again, frame) = (CSchunk::open(&ours).unwrap(), SChunk::open(&ours).unwrap());
        for _ in 0..50 {
            let number = rng.below(frame.nchunks() as u64);
            let expected = frame.decompress_chunk::<u8>(number as usize).unwrap();
            assert_same(&again.chunk(number as i64, LEN).unwrap(), &expected, "by C");
        }
    }
}

/// Changes a file as another program would: the handles of this program are not informed.
fn change_elsewhere(path: &Path, work: impl FnOnce(&mut SChunk)) {
    let other = path.with_extension("other");
    fs::copy(path, &other).unwrap();
    work(&mut SChunk::open_rw(&other).unwrap());
    fs::write(path, fs::read(&other).unwrap()).unwrap();
}

/// An index of up to 64 KiB is read when a file is opened. The blocks of a longer one are read on demand. If such a
/// block is no longer there, no other data is used in its place.
#[test]
fn a_reader_notices_that_another_program_has_changed_a_long_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("read.b2frame");
    for (count, is_long) in [(6000, false), (300_000, true)] {
        write(&path, count);
        let last = count - 1;
        let mut reader = SChunk::open(&path).unwrap();
        let first = reader.decompress_chunk::<u8>(0).unwrap();
        let expected = SChunk::open(&path).unwrap().decompress_chunk::<u8>(last).unwrap();
        let new = Chunk::new(chunk(&mut Rng(9))).unwrap();
        change_elsewhere(&path, |other| {
            other.append(&new).unwrap();
        });
        assert_eq!(reader.decompress_chunk::<u8>(0).unwrap(), first);
        match reader.decompress_chunk::<u8>(last) {
            Ok(found) => assert!(!is_long && found == expected),
            Err(error) => {
                assert!(is_long && error.kind() == ErrorKind::Busy, "{error}");
                assert!(error.to_string().contains("refresh"), "{error}");
            }
        }
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.decompress_chunk::<u8>(last).unwrap(), expected);
        assert_eq!(reader.nchunks(), count + 1);
        assert!(!reader.refresh().unwrap());

        // A reordering keeps all sizes.
        let mut order: Vec<usize> = (0..=count).collect();
        order.swap(1, last);
        change_elsewhere(&path, |other| other.reorder(&order).unwrap());
        let moved = reader.decompress_chunk::<u8>(1);
        if let Err(error) = &moved {
            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
        }
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.decompress_chunk::<u8>(1).unwrap(), expected);
        // A failed refresh leaves the handle unchanged, and it detects the next change too.
        if is_long {
            change_elsewhere(&path, |other| {
                order.iter().take(1).for_each(|_| drop(other.remove(0)))
            });
            let whole = fs::read(&path).unwrap();
            fs::write(&path, &whole[..whole.len() - 1]).unwrap();
            assert_eq!(reader.refresh().unwrap_err().kind(), ErrorKind::InvalidData);
            fs::write(&path, &whole).unwrap();
            assert_eq!(
                reader.decompress_chunk::<u8>(count / 2).unwrap_err().kind(),
                ErrorKind::Busy
            );
        }
    }
}

/// C writes the index file of a directory in place.
#[test]
fn a_reader_of_a_directory_notices_a_change_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (path, directory) = (folder.path().join("file"), folder.path().join("directory"));
    let count = 300_000;
    write(&path, count);
    let frame = Frame::open(fs::read(&path).unwrap(), &Limits::default()).unwrap();
    let mut files = frame_of_files(&frame);
    fs::create_dir(&directory).unwrap();
    let index = directory.join("chunks.b2frame");
    fs::write(&index, &files).unwrap();
    let some = |number: u64| {
        fs::write(directory.join(format!("{number:08X}.chunk")), frame.chunk(number).unwrap())
    };
    for number in [0, 1, 2, 250_000] {
        some(number).unwrap();
    }
    let reader = SChunk::open(&directory).unwrap();
    assert_eq!(reader.chunk(1).unwrap().as_bytes(), frame.chunk(1).unwrap());
    // Not the position of the requested block.
    let last = files.len() - 100;
    files[last] ^= 1;
    fs::write(&index, &files).unwrap();
    // The file of the chunk may contain another chunk then.
    assert_eq!(reader.chunk(2).unwrap_err().kind(), ErrorKind::Busy);
    assert_eq!(reader.chunk(250_000).unwrap_err().kind(), ErrorKind::Busy);
}

/// The index file of a directory, with each chunk in the file of its number.
fn frame_of_files<R: blosc2_format::ReadAt>(frame: &Frame<R>) -> Vec<u8> {
    use blosc2_format::frame::{Layout, Outline};
    let mut outline = Outline::new(PARAMS, Layout::Directory);
    for number in 0..frame.nchunks() {
        outline.insert(number, frame.chunk(number).unwrap()).unwrap();
    }
    // Unordered numbers do not compress, so the index is long.
    let mut order: Vec<usize> = (0..frame.nchunks() as usize).collect();
    order[3..].sort_by_key(|&number| (number as u32).wrapping_mul(2_654_435_761));
    outline.reorder(&order).unwrap();
    let index = outline.index().unwrap();
    let end = [&index[..], &outline.trailer(index.len()).unwrap()].concat();
    [outline.header(outline.frame_len(end.len())), end].concat()
}

/// A change of several chunks that fails leaves every file that the index names.
#[test]
fn a_failed_change_of_a_directory_changes_no_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let items: Vec<i32> = (0..4000).collect();
    let builder =
        blosc2::NDArray::builder().chunk_shape([1000]).target(Target::from(&path).directory(true));
    drop(builder.from_slice(&items, [4000]).unwrap());
    let mut array = blosc2::NDArray::open_rw(&path).unwrap();
    // The new index cannot be written.
    fs::create_dir(path.join("chunks.b2frame.new")).unwrap();
    let new: Vec<i32> = (0..4000).map(|item| -item).collect();
    array.write(.., &new).unwrap_err();
    assert_eq!(blosc2::NDArray::open(&path).unwrap().read::<Vec<i32>>(..).unwrap(), items);
    fs::remove_dir(path.join("chunks.b2frame.new")).unwrap();
    drop(array);
    let mut array = blosc2::NDArray::open_rw(&path).unwrap();
    array.write(.., &new).unwrap();
    array.write(.., &items).unwrap();
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), items);
    // Numbers that were given up are used again: there are at most twice as many files as chunks.
    let numbers = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(numbers.filter(|name| name.to_string_lossy().ends_with(".chunk")).count() <= 8);
}
