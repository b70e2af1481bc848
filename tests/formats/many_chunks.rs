//! Frames with more chunks than a block of the index holds.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use blosc2::{Chunk, ErrorKind, SChunk};
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

/// Two files have the same chunks, and the index of the first is the one that C writes.
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
    assert_same(&bytes[index..index + expected.len()], &expected, &format!("{what}: index"));
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
                    kept.insert_chunk(number as usize, &new_chunk).unwrap();
                    by_c.insert_chunk(number as i64, &new);
                    format!("insert {number}")
                }
                1 => {
                    kept.delete(number as usize).unwrap();
                    by_c.delete_chunk(number as i64);
                    format!("delete {number}")
                }
                2 | 3 => {
                    kept.update_chunk(number as usize, &new_chunk).unwrap();
                    by_c.update_chunk(number as i64, &new);
                    format!("update {number}")
                }
                _ => {
                    kept.append_chunk(&new_chunk).unwrap();
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
            let expected = frame.chunk::<u8>(number as usize).unwrap();
            assert_same(&again.chunk(number as i64, LEN).unwrap(), &expected, "by C");
        }
    }
}

/// A part of the index that was not read yet is not there any more: no other data is taken for it.
#[test]
fn a_reader_of_a_long_index_notices_the_change_of_another_program() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("read.b2frame"), folder.path().join("other.b2frame"));
    write(&path, 6000);
    fs::copy(&path, &other).unwrap();
    let mut reader = SChunk::open(&path).unwrap();
    let first = reader.chunk::<u8>(0).unwrap();
    let expected = SChunk::open(&path).unwrap().chunk::<u8>(5999).unwrap();
    // As another program would: this one knows nothing of it.
    let mut rng = Rng(9);
    SChunk::open_rw(&other).unwrap().append_chunk(&Chunk::new(chunk(&mut rng)).unwrap()).unwrap();
    fs::write(&path, fs::read(&other).unwrap()).unwrap();
    assert_eq!(reader.chunk::<u8>(0).unwrap(), first);
    let error = reader.chunk::<u8>(5999).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    assert!(error.to_string().contains("refresh"), "{error}");
    assert!(reader.refresh().unwrap());
    assert_eq!(reader.chunk::<u8>(5999).unwrap(), expected);
    assert_eq!(reader.nchunks(), 6001);
    assert!(!reader.refresh().unwrap());

    // A reader of a directory keeps the index file that it has opened.
    let folder = folder.path().join("directory");
    let mut rng = Rng(5);
    let new = chunk(&mut rng);
    let options = blosc2::OpenOptions::new().directory(true).create_new(true).typesize(4);
    let mut writer = options.open(&folder).unwrap();
    for _ in 0..2100 {
        writer.append_chunk(&Chunk::new(new.as_slice()).unwrap()).unwrap();
    }
    drop(writer);
    let reader = SChunk::open(&folder).unwrap();
    let index = folder.join("chunks.b2frame");
    fs::rename(&index, folder.join("old")).unwrap();
    fs::write(&index, b"another one").unwrap();
    assert_eq!(reader.chunk::<u8>(2099).unwrap(), reader.chunk::<u8>(0).unwrap());
}
