//! Damaged frames in memory and in a file, with the faults of upstream's tests.

use std::fs;

use blosc2::{CParams, Check, ErrorKind, OpenOptions, SChunk, Target};

use crate::common::kind;

/// Items of a chunk.
const CHUNK: usize = 1500;

/// The offsets of the fields in a header, and the distance of the trailer length from the end.
const HEADER_LEN: usize = 11;
const FLAGS: usize = 25;
const CBYTES: usize = 39;
const TRAILER_LEN: usize = 22;

/// The items of this many chunks.
fn model(count: usize) -> Vec<Vec<i32>> {
    let items: Vec<i32> = (0..).take(count * CHUNK).collect();
    items.chunks(CHUNK).map(<[i32]>::to_vec).collect()
}

fn big(bytes: &[u8], at: usize) -> usize {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize
}

/// Where the index is.
fn index_at(frame: &[u8]) -> usize {
    big(frame, HEADER_LEN) + big(frame, CBYTES + 4)
}

fn trailer_at(frame: &[u8]) -> usize {
    frame.len() - big(frame, frame.len() - TRAILER_LEN)
}

/// A frame with `count` chunks and a metalayer of each kind.
fn good(count: usize) -> Vec<u8> {
    let options = OpenOptions::new().typesize(4).meta("fixed", b"some content");
    let mut schunk = options.create_new(true).open(Vec::new()).unwrap();
    schunk.vlmeta_mut().set("variable", b"some other content").unwrap();
    append(&mut schunk, count);
    schunk.into_cframe().unwrap()
}

fn append(schunk: &mut SChunk, count: usize) {
    for chunk in model(count) {
        schunk.append(&chunk).unwrap();
    }
}

/// Opens the bytes in all ways, and passes each result to `look`.
fn open(bytes: &[u8], mut look: impl FnMut(&str, blosc2::Result<SChunk>)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame");
    fs::write(&path, bytes).unwrap();
    for check in [Check::Header, Check::Structure, Check::Content] {
        let options = OpenOptions::new().check(check);
        look(&format!("{check:?} of a file"), options.open(&path));
        look(&format!("{check:?} of a file to change"), options.clone().write(true).open(&path));
        look(&format!("{check:?} of bytes"), options.open(bytes.to_vec()));
    }
}

fn assert_refused(bytes: &[u8], what: &str) {
    open(bytes, |way, opened| {
        assert_eq!(kind(opened), ErrorKind::InvalidData, "{what}, {way}");
    });
}

#[test]
fn bytes_that_are_no_frame() {
    let frame = good(1);
    for at in 0..8 {
        let mut other = frame.clone();
        other[2 + at] ^= 1;
        assert_refused(&other, &format!("byte {at} of the name of the format"));
    }
    for len in [0, 1, 10, 86, 87, frame.len() - 1] {
        assert_refused(&frame[..len], &format!("{len} bytes"));
    }
    // The whole of it is one.
    open(&frame, |way, opened| {
        assert_eq!(opened.unwrap().read::<i32>(..).unwrap(), model(1)[0], "{way}");
    });
}

#[test]
fn later_versions_are_refused() {
    let frame = good(2);
    for version in [0, 1, 4, 5, 15] {
        let mut other = frame.clone();
        other[FLAGS] = other[FLAGS] & 0xf0 | version;
        open(&other, |way, opened| {
            let error = opened.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{way}: {error}");
            assert!(error.to_string().contains("version"), "{way}: {error}");
        });
    }
}

#[test]
fn a_trailer_of_a_wrong_length() {
    let frame = good(1);
    let len = frame.len();
    let right = big(&frame, len - TRAILER_LEN);
    let behind_header = len - big(&frame, HEADER_LEN);
    for wrong in [0, 1, 22, right - 1, right + 1, behind_header, behind_header + 1, len, len + 1] {
        let mut other = frame.clone();
        other[len - TRAILER_LEN..][..4].copy_from_slice(&(wrong as u32).to_be_bytes());
        assert_refused(&other, &format!("{wrong} bytes of trailer"));
    }
    let mut other = frame;
    other[len - TRAILER_LEN..][..4].fill(0xff);
    assert_refused(&other, "4 GiB of trailer");
}

#[test]
fn a_number_of_metalayers_that_cannot_be() {
    let frame = good(2);
    // Two lists begin, the index has a length, and then comes the number.
    let at = trailer_at(&frame) + 7;
    assert_eq!((frame[at - 1], &frame[at..at + 2]), (0xde, &[0, 1][..]));
    for number in [0xffffu16, 0x8000, 8193, 17, 2, 0] {
        let mut other = frame.clone();
        other[at..at + 2].copy_from_slice(&number.to_be_bytes());
        assert_refused(&other, &format!("{number} metalayers"));
    }
}

#[test]
fn a_metalayer_longer_than_the_frame() {
    let frame = good(2);
    let fixed = frame.windows(12).position(|part| part == b"some content").unwrap();
    let name = frame.windows(8).position(|part| part == b"variable").unwrap();
    // The chunk of the content comes behind its length; the index says where.
    let variable = trailer_at(&frame) + big(&frame, name + 9) + 5;
    for content in [fixed, variable] {
        assert_eq!(frame[content - 5], 0xc6);
        let len = big(&frame, content - 4);
        for wrong in [0x7fff_ffff, 0xffff_ffff, 0x8000_0000, frame.len(), len + 1000, len + 1] {
            let mut other = frame.clone();
            other[content - 4..content].copy_from_slice(&(wrong as u32).to_be_bytes());
            assert_refused(&other, &format!("a content of {wrong} bytes at {content}"));
        }
    }
}

#[test]
fn an_index_of_wrong_places() {
    let frame = good(32);
    let (start, end) = (index_at(&frame), trailer_at(&frame));
    let params = CParams::new().typesize(8);
    for place in [i64::MAX as u64 / 4, i64::MAX as u64, 1 << 40, frame.len() as u64, u64::MAX >> 2]
    {
        let index = blosc2::compress(&[place; 32], &params).unwrap();
        // In the room of the old one, as upstream's test does, and in its own.
        let mut inside = frame.clone();
        inside[start..end].fill(0);
        inside[start..start + index.len()].copy_from_slice(&index);
        assert_refused(&inside, &format!("all chunks at {place}"));
        let mut other = [&frame[..start], &index, &frame[end..]].concat();
        let len = other.len() as u64;
        other[16..24].copy_from_slice(&len.to_be_bytes());
        assert_refused(&other, &format!("all chunks at {place}, in an index of its length"));
    }
    let mut other = frame.clone();
    other[start + 32..end].fill(0xff);
    assert_refused(&other, "an index that cannot be decompressed");
}

#[test]
fn a_chunk_that_claims_more_than_there_is() {
    let frame = good(2);
    let header = big(&frame, HEADER_LEN);
    let field = |at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
    let second = header + field(header + 12) as usize;
    assert_eq!(field(second + 4) as usize, 4 * CHUNK);
    let room = (index_at(&frame) - second) as u32;
    assert_eq!(field(second + 12), room);
    for wrong in [i32::MAX as u32, u32::MAX, 1 << 31, room + 1, frame.len() as u32] {
        let mut other = frame.clone();
        other[second + 12..second + 16].copy_from_slice(&wrong.to_le_bytes());
        open(&other, |way, opened| {
            let what = format!("{wrong} bytes, {way}");
            if !way.starts_with("Header") {
                // The check includes the chunks.
                assert_eq!(kind(opened), ErrorKind::InvalidData, "{what}");
                return;
            }
            let schunk = opened.unwrap();
            assert!(schunk.decompress_chunk::<i32>(0).unwrap() == model(1)[0], "{what}");
            assert_eq!(kind(schunk.decompress_chunk::<i32>(1)), ErrorKind::InvalidData, "{what}");
            assert_eq!(kind(schunk.chunk_info(1)), ErrorKind::InvalidData, "{what}");
            assert_eq!(kind(schunk.chunk(1)), ErrorKind::InvalidData, "{what}");
            let last = 2 * CHUNK as u64 - 1;
            assert_eq!(kind(schunk.read::<i32>(last..)), ErrorKind::InvalidData, "{what}");
            assert_eq!(kind(schunk.read::<i32>(&[last])), ErrorKind::InvalidData, "{what}");
        });
    }
    // In a directory the length of the file is what there is.
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame");
    let options = OpenOptions::new().create_new(true).typesize(4);
    append(&mut options.open(Target::from(&path).directory(true)).unwrap(), 2);
    let file = path.join("00000001.chunk");
    let mut chunk = fs::read(&file).unwrap();
    chunk[12..16].copy_from_slice(&i32::MAX.to_le_bytes());
    fs::write(&file, chunk).unwrap();
    let schunk = SChunk::open(&path).unwrap();
    assert!(schunk.decompress_chunk::<i32>(0).unwrap() == model(1)[0]);
    assert_eq!(kind(schunk.decompress_chunk::<i32>(1)), ErrorKind::InvalidData);
    assert_eq!(
        kind(OpenOptions::new().check(Check::Structure).open(&path)),
        ErrorKind::InvalidData
    );
}
