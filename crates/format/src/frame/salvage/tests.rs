//! Tests of truncated and overwritten frames: intact parts are found, and nothing is invented.

use std::io::Cursor;

use blosc2_testing::{Rng, repeats};

use super::*;
use crate::chunk::Encoder;
use crate::directory::{self, INDEX, Memory};
use crate::frame::{Frame, Writer, journal};

/// A frame, and its chunks as stored with their positions.
#[derive(Clone)]
struct Sample {
    bytes: Vec<u8>,
    header_len: usize,
    index: std::ops::Range<usize>,
    chunks: Vec<Option<(usize, Vec<u8>)>>,
    vlmetalayers: Vec<Metalayer>,
    /// Whether any byte can be changed, including those of metalayers.
    is_changed: bool,
}

impl Sample {
    fn new(bytes: Vec<u8>) -> Self {
        let frame = Frame::open(bytes.clone(), &Limits::default()).unwrap();
        let header = frame.header().clone();
        let header_len = header.header_len as usize;
        let index = header_len + header.cbytes as usize;
        let chunk = |number| match frame.offset(number).unwrap() {
            Offset::At(place) => Some((header_len + place as usize, frame.chunk(number).unwrap())),
            Offset::Special(_) => None,
        };
        let layer = |name: &str| {
            let content = frame.vlmetalayer_chunk(name).unwrap().to_vec();
            Metalayer { name: name.into(), content }
        };
        Self {
            header_len,
            index: index..index + chunk::Header::parse(&bytes[index..]).unwrap().cbytes as usize,
            chunks: (0..frame.nchunks()).map(chunk).collect(),
            vlmetalayers: frame.vlmetalayers().map(layer).collect(),
            bytes,
            is_changed: false,
        }
    }

    /// Salvages these bytes: nothing is invented, and every chunk that is still at its position is found.
    /// A changed chunk can still be valid, because there are no checksums.
    #[track_caller]
    fn salvage(&self, bytes: &[u8], what: &str) -> Salvaged {
        let found = salvage(bytes, &Limits::default()).unwrap();
        let pieces = found.chunks.iter().filter_map(|piece| match piece {
            Piece::Intact(whole) => Some(*whole),
            _ => None,
        });
        let mut places: Vec<usize> = Vec::new();
        for whole in pieces.chain(found.unnamed.iter().copied()) {
            let (at, len) = (whole.at as usize, whole.len as usize);
            let written = self.chunks.iter().flatten().find(|(place, _)| *place == at);
            let (_, written) = written.unwrap_or_else(|| panic!("{what}: a chunk at {at}"));
            let is_changed = bytes.get(at..at + written.len()) != Some(written);
            assert!(is_changed || len == written.len(), "{what}: chunk at {at}");
            places.push(at);
        }
        for (at, written) in self.chunks.iter().flatten() {
            let is_whole = bytes.get(*at..at + written.len()) == Some(written);
            assert!(!is_whole || places.contains(at), "{what}: no chunk at {at}, {found:#?}");
        }
        if found.order == Order::Index {
            assert_eq!(found.chunks.len(), self.chunks.len(), "{what}");
            for (piece, chunk) in found.chunks.iter().zip(&self.chunks) {
                match (piece, chunk) {
                    (Piece::Intact(whole), Some((at, _))) => assert_eq!(whole.at, *at as u64),
                    (Piece::Lost, _) | (Piece::Special { .. }, None) => {}
                    (piece, _) => panic!("{what}: {piece:?}"),
                }
            }
        } else {
            assert!(found.chunks.iter().all(|piece| matches!(piece, Piece::Intact(_))));
            assert!(places.is_sorted(), "{what}");
        }
        for layer in found.vlmetalayers.iter().flatten().filter(|_| !self.is_changed) {
            assert!(self.vlmetalayers.contains(layer), "{what}: {layer:?}");
        }
        assert!(found.is_complete, "{what}");
        found
    }
}

fn layer(name: &str, content: &[u8]) -> Metalayer {
    Metalayer { name: name.into(), content: content.into() }
}

/// A frame with metalayers of both kinds; some contain chunks.
fn frame(params: Params, data: &[Vec<u8>]) -> Sample {
    let nested =
        Encoder::new(params).unwrap().encode(&noise(params.typesize as usize * 40)).unwrap();
    let layers = [layer("one", b"first"), layer("chunk", &nested)];
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &layers).unwrap();
    for data in data {
        writer.push(data).unwrap();
    }
    writer.add_vlmetalayer("text", &noise(80)).unwrap();
    writer.add_vlmetalayer_chunk("chunk", &nested).unwrap();
    writer.add_vlmetalayer("empty", b"").unwrap();
    Sample::new(writer.finish().unwrap().into_inner())
}

/// Incompressible bytes.
fn noise(len: usize) -> Vec<u8> {
    Rng(1).bytes(len)
}

fn ramp(start: u64, step: u64, len: usize) -> Vec<u8> {
    (0..len as u64 / 8).flat_map(|item| (start + item * step).to_le_bytes()).collect()
}

/// Frames of several kinds: data that looks like offsets, chunks of one value, chunks of many sizes.
fn samples() -> Vec<(&'static str, Sample)> {
    let lz4 = Params { codec: 1, typesize: 4, blocksize: Some(400), ..Params::default() };
    let many = (0..6).map(|number| ramp(number * number, 7, 400)).collect::<Vec<_>>();
    let few = [noise(800), vec![1; 800], vec![0; 800], ramp(3, 5, 800), ramp(0, 1, 600)];
    let offsets = [ramp(0, 33, 160), ramp(0, 192, 160), vec![0; 160], ramp(0, 64, 160)];
    let sizes = [noise(80), vec![0; 8], ramp(0, 100, 160), vec![0; 40], vec![9; 8], noise(400)];
    vec![
        ("few", frame(lz4, &few)),
        ("many", frame(Params { codec: 5, ..lz4 }, &many)),
        ("offsets", frame(Params::default(), &offsets)),
        ("sizes", frame(Params::default(), &sizes)),
        ("zeros", frame(lz4, &[vec![0; 800], vec![0; 800], vec![0; 400]])),
        ("one", frame(Params { typesize: 1, ..lz4 }, &[noise(100)])),
        ("large items", frame(Params { typesize: 300, blocksize: None, ..lz4 }, &[noise(3000)])),
    ]
}

#[test]
fn all_of_an_intact_frame_is_found() {
    for (name, sample) in samples() {
        let found = sample.salvage(&sample.bytes, name);
        let frame = Frame::open(sample.bytes.clone(), &Limits::default()).unwrap();
        assert_eq!((found.order, found.damaged), (Order::Index, 0), "{name}");
        assert_eq!(found.header.as_ref(), Some(frame.header()), "{name}");
        assert_eq!(found.metalayers.as_deref(), Some(frame.metalayers()), "{name}");
        assert_eq!(found.vlmetalayers.as_ref(), Some(&sample.vlmetalayers), "{name}");
        assert!(found.unnamed.is_empty(), "{name}");
        for (piece, number) in found.chunks.iter().zip(0..) {
            let nbytes = match piece {
                Piece::Intact(whole) => whole.nbytes,
                Piece::Special { nbytes, .. } => *nbytes,
                Piece::Lost => panic!("{name}: chunk {number}"),
            };
            assert_eq!(u64::from(nbytes), frame.chunk_nbytes(number).unwrap(), "{name}");
        }
    }
}

#[test]
fn a_frame_that_is_cut_has_what_was_before() {
    let step = 100usize.div_ceil(repeats(100));
    for (number, (name, sample)) in samples().into_iter().enumerate() {
        // In a long run at every byte, otherwise at every tenth, with another byte of each sample.
        for len in (number % step..sample.bytes.len()).step_by(step) {
            let found = sample.salvage(&sample.bytes[..len], &format!("{name}, {len} bytes"));
            let is_there = len >= sample.index.end;
            assert_eq!(found.order == Order::Index, is_there, "{name}, {len} bytes");
            assert_eq!(found.metalayers.is_some(), len >= sample.header_len, "{name}, {len}");
            assert!(found.vlmetalayers.is_none(), "{name}, {len} bytes");
        }
    }
}

#[test]
fn every_byte_can_be_wrong() {
    for (name, sample) in samples() {
        for at in 0..sample.bytes.len() {
            let change = [1, 0x80, 0xff][at % 3];
            let mut bytes = sample.bytes.clone();
            bytes[at] ^= change;
            // A changed offset or name cannot be detected.
            if sample.index.contains(&at) {
                salvage(&bytes, &Limits::default()).unwrap();
                continue;
            }
            let sample = Sample { is_changed: true, ..sample.clone() };
            sample.salvage(&bytes, &format!("{name}, {at:#x} ^ {change:#x}"));
        }
    }
}

#[test]
fn without_an_index_chunks_are_in_the_order_of_the_file() {
    for (name, sample) in samples() {
        for byte in [0, 0x94, 0xff] {
            let mut bytes = sample.bytes.clone();
            bytes[sample.index.clone()].fill(byte);
            let found = sample.salvage(&bytes, name);
            assert_eq!(found.order, Order::File, "{name}");
            assert_eq!(found.damaged, sample.index.len() as u64, "{name}");
            assert_eq!(found.vlmetalayers.as_ref(), Some(&sample.vlmetalayers), "{name}");
            let stored = sample.chunks.iter().flatten().count();
            assert_eq!(found.chunks.len(), stored, "{name}");
        }
    }
}

#[test]
fn a_chunk_that_is_lost_keeps_its_place() {
    for (name, sample) in samples() {
        for (number, chunk) in sample.chunks.iter().enumerate() {
            let Some((at, chunk)) = chunk else { continue };
            for header_len in [16, 32, chunk.len()] {
                let mut bytes = sample.bytes.clone();
                bytes[*at..at + header_len].fill(0);
                let found = sample.salvage(&bytes, name);
                assert_eq!(found.order, Order::Index, "{name}, chunk {number}");
                assert_eq!(found.chunks[number], Piece::Lost, "{name}, chunk {number}");
                assert_eq!(found.damaged, chunk.len() as u64, "{name}, chunk {number}");
                // Without the index as well.
                bytes[sample.index.clone()].fill(0);
                let found = sample.salvage(&bytes, name);
                assert_eq!(found.order, Order::File, "{name}, chunk {number}");
            }
        }
    }
}

#[test]
fn a_header_that_is_lost_is_done_without() {
    for (name, sample) in samples() {
        for len in [10, 0x1e, MIN_HEADER_LEN, sample.header_len] {
            let mut bytes = sample.bytes.clone();
            bytes[..len].fill(0xff);
            let found = sample.salvage(&bytes, &format!("{name}, {len} bytes lost"));
            assert!(found.header.is_none(), "{name}");
            assert_eq!(found.metalayers.is_some(), len <= MIN_HEADER_LEN, "{name}");
            let frame = Frame::open(sample.bytes.clone(), &Limits::default()).unwrap();
            let typesize = frame.header().typesize;
            let typesize = if typesize > 255 { 1 } else { typesize };
            if found.chunks.iter().any(|piece| matches!(piece, Piece::Intact(_))) {
                assert_eq!(found.params.typesize, typesize, "{name}");
                assert_eq!(found.params.filters, frame.header().filters, "{name}");
                assert_eq!(found.order, Order::Index, "{name}, {len} bytes lost");
            }
        }
    }
}

#[test]
fn what_a_dead_writer_left_is_found() {
    let (_, before) = samples().swap_remove(0);
    let params = Params { codec: 1, typesize: 4, ..Params::default() };
    let new = Encoder::new(params).unwrap().encode(&noise(800)).unwrap();
    // Over the index and beyond, like C-Blosc2, interrupted at some byte.
    for torn in [8, new.len() / 2, new.len()] {
        let mut bytes = before.bytes.clone();
        let at = before.index.start;
        bytes.resize(bytes.len().max(at + torn), 0);
        bytes[at..at + torn].copy_from_slice(&new[..torn]);
        let mut after = Sample::new(before.bytes.clone());
        after.chunks.push(Some((at, new.clone())));
        let found = after.salvage(&bytes, &format!("{torn} bytes of a chunk"));
        assert_eq!(found.order, Order::File);
    }
    // A change with a journal, which contains the old index.
    let mut bytes = before.bytes.clone();
    let (start, len) = (before.bytes.len() + 200, before.bytes.len() as u64);
    let old = &before.bytes[before.index.start..];
    bytes.truncate(before.index.start);
    bytes.extend(&new);
    bytes.resize(start, 0);
    bytes[journal::MARK_AT as usize] = journal::UNFINISHED;
    bytes.extend(journal::encode(start as u64, len, &[(before.index.start as u64, old)]));
    let mut after = before.clone();
    after.chunks.push(Some((before.index.start, new.clone())));
    assert_eq!(after.salvage(&bytes, "a journal").order, Order::File);
    // After the trailer.
    let mut bytes = before.bytes.clone();
    bytes.extend(&new);
    let found = salvage(&bytes, &Limits::default()).unwrap();
    assert_eq!(found.order, Order::Index);
    assert_eq!(found.chunks.len(), before.chunks.len());
    assert_eq!(found.vlmetalayers.as_ref(), Some(&before.vlmetalayers));
    let [unnamed] = found.unnamed[..] else { panic!("{found:#?}") };
    assert_eq!((unnamed.at as usize, unnamed.nbytes), (before.bytes.len(), 800));
    // A new index and a new trailer after the chunk, and a header that still refers to the old ones.
    let (_, other) = samples().swap_remove(0);
    bytes.extend(&other.bytes[other.index.start..]);
    let found = salvage(&bytes, &Limits::default()).unwrap();
    assert_eq!((found.order, found.chunks.len()), (Order::Index, before.chunks.len()));
    assert_eq!(found.unnamed, [unnamed]);
}

#[test]
fn bytes_that_are_no_frame_have_nothing() {
    for bytes in [vec![], vec![0; 5000], noise(100_000), b"\x9e\xa8b2frame\0".to_vec()] {
        let found = salvage(&bytes, &Limits::default()).unwrap();
        assert_eq!((found.order, found.chunks.len()), (Order::File, 0));
        assert_eq!((found.header, found.metalayers), (None, None));
        assert_eq!(found.damaged, (bytes.len().saturating_sub(MIN_HEADER_LEN)) as u64);
    }
}

/// The time is bounded for bytes that look like chunks everywhere.
#[test]
fn looking_for_chunks_is_given_up() {
    let mut head = vec![5, 1, 0b101, 1];
    head.resize(36, 0);
    head[22..36].fill(0);
    let size = 4 << 20;
    let mut bytes = Vec::new();
    while bytes.len() < size {
        let left = (size - bytes.len()) as u32;
        for (at, number) in [(4, left), (8, left), (12, left), (32, 36)] {
            head[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes.extend(&head);
        // A stream of nearly all remaining bytes.
        bytes.extend(left.saturating_sub(41).to_le_bytes());
    }
    let found = salvage(&bytes, &Limits::default()).unwrap();
    assert!(!found.is_complete);
    assert!(found.chunks.is_empty());
}

/// A few bytes state many chunks: this is an index that repeats a special value, with `count` entries.
fn repeated_index(count: u32) -> Vec<u8> {
    let params = Params { codec: 0, typesize: 8, ..Params::default() };
    let entry = (0x81u64 << 56).to_le_bytes();
    chunk::special(&params, chunk::Special::Value, count as usize * 8, &entry).unwrap()
}

#[test]
fn indexes_that_repeat_a_value_are_not_read_entry_by_entry() {
    let params = Params { codec: 1, typesize: 4, ..Params::default() };
    let sample = frame(params, &[vec![0; 800], vec![0; 800]]);
    let with_index = |count| {
        let mut bytes = sample.bytes.clone();
        bytes.splice(sample.index.clone(), repeated_index(count));
        bytes
    };
    let limits = Limits { chunks: 1000, ..Limits::default() };
    let found = salvage(&with_index(1000), &limits).unwrap();
    assert_eq!((found.order, found.chunks.len()), (Order::Index, 1000));
    assert!(found.chunks.iter().all(|piece| *piece == found.chunks[0]), "{:?}", found.chunks[0]);
    let error = salvage(&with_index(1001), &limits).unwrap_err();
    assert_eq!(error.to_string(), "chunks: 1001, over the limit of 1000 (see `Limits::chunks`)");

    // Entry by entry, these would take minutes.
    let many = repeated_index(268_435_000).repeat(400);
    // Nothing shows that they are indexes, so they are data. The search starts after the shortest header.
    let found = salvage(&many, &Limits::default()).unwrap();
    assert_eq!((found.order, found.chunks.len()), (Order::File, 397));
    let found = salvage(&repeated_index(1 << 20).repeat(400), &Limits::default());
    assert_eq!(found.unwrap().chunks.len(), 1 << 20);
}

/// Small integers can be positions of chunks, but more of them than chunks.
#[test]
fn data_with_more_items_than_chunks_are_allowed_is_no_index() {
    let params = Params { codec: 0, typesize: 8, filters: [0, 0, 0, 0, 0, 1], ..Params::default() };
    let mut rng = Rng(3);
    let numbers = |count: u64, below: u64| -> Vec<u8> {
        (0..count).flat_map(|at| (at * 7 % below).to_le_bytes()).collect()
    };
    let noise = rng.bytes(16_000);
    for (limit, count) in [(1000, 2000), (1000, 900), (2, 2000)] {
        let limits = Limits { chunks: limit, ..Limits::default() };
        let mut sample = frame(params, &[noise.clone(), numbers(count, 1000)]);
        Frame::open(&sample.bytes[..], &limits).unwrap();
        let found = salvage(&sample.bytes, &limits).unwrap();
        assert_eq!((found.order, found.chunks.len(), found.damaged), (Order::Index, 2, 0));
        sample.bytes.truncate(sample.index.start);
        let found = salvage(&sample.bytes, &limits).unwrap();
        assert_eq!((found.order, found.chunks.len()), (Order::File, 2), "{limit} {count}");
    }
}

/// A few bytes decode to 2^20 entries.
#[test]
fn the_entries_of_many_indexes_are_limited() {
    let params = Params {
        codec: 0,
        typesize: 8,
        filters: [0, 0, 0, 0, 0, 1],
        split: chunk::SplitMode::Always,
        blocksize: Some(8 << 20),
        ..Params::default()
    };
    let entries = (0x81u64 << 56).to_le_bytes().repeat(1 << 20);
    let index = chunk::Encoder::new(params).unwrap().encode(&entries).unwrap();
    assert!(index.len() < 200, "{}", index.len());
    let found = salvage(&index.repeat(100), &Limits::default()).unwrap();
    assert_eq!((found.chunks.len(), found.is_complete), (1 << 20, false));
}

/// Opening the frame takes no memory for these chunks, but saving them does.
#[test]
fn as_many_special_chunks_as_can_be_written_are_found() {
    const COUNT: u64 = 1 << 21;
    let params = Params { codec: 1, typesize: 4, ..Params::default() };
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
    writer.fill(Special::Zeros, 40 * COUNT, 40).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let found = salvage(&bytes[..bytes.len() - 1], &Limits::default()).unwrap();
    assert_eq!((found.chunks.len() as u64, found.is_complete), (COUNT, true));
}

fn folder() -> Memory {
    let params = Params { codec: 1, typesize: 4, ..Params::default() };
    let layers = [layer("one", b"first")];
    let mut writer = Writer::new_directory(Memory::default(), params, &layers).unwrap();
    for data in [noise(800), vec![0; 800], ramp(0, 3, 800), ramp(5, 3, 400)] {
        writer.push(&data).unwrap();
    }
    writer.add_vlmetalayer("two", b"second").unwrap();
    writer.finish().unwrap()
}

#[test]
fn the_files_of_a_directory_are_found() {
    let whole = |files: &Memory, number: u64, nbytes| {
        let len = files.0[&directory::chunk_name(number)].len() as u32;
        Piece::Intact(IntactChunk { at: number, len, nbytes })
    };
    let files = folder();
    let found = salvage_directory(&files, &Limits::default()).unwrap();
    let all = [
        whole(&files, 0, 800),
        Piece::Special { special: Special::Zeros, nbytes: 800 },
        whole(&files, 1, 800),
        whole(&files, 2, 400),
    ];
    assert_eq!((found.order, &found.chunks[..], found.damaged), (Order::Index, &all[..], 0));
    assert_eq!(found.metalayers, Some(vec![layer("one", b"first")]));
    assert_eq!(found.vlmetalayers.unwrap()[0].name, "two");
    assert_eq!(found.header.unwrap().nbytes, 2800);

    // A lost chunk, a truncated one, and one that the index does not refer to.
    let mut files = folder();
    files.0.remove(&directory::chunk_name(0));
    files.0.get_mut(&directory::chunk_name(2)).unwrap().pop();
    files.0.insert(directory::chunk_name(7), files.0[&directory::chunk_name(1)].clone());
    let found = salvage_directory(&files, &Limits::default()).unwrap();
    assert_eq!(found.chunks, [Piece::Lost, all[1], all[2], Piece::Lost]);
    assert_eq!(found.unnamed.iter().map(|whole| whole.at).collect::<Vec<_>>(), [7]);

    // A lost or truncated index file.
    let files = folder();
    let intact = files.0[INDEX].clone();
    let header_len = Header::parse(&intact).unwrap().header_len as usize;
    let index_len = chunk::Header::parse(&intact[header_len..]).unwrap().cbytes as usize;
    for len in 0..intact.len() {
        let mut files = files.clone();
        files.0.insert(INDEX.into(), intact[..len].to_vec());
        if len == 0 {
            files.0.remove(INDEX);
        }
        let found = salvage_directory(&files, &Limits::default()).unwrap();
        if len < header_len + index_len {
            assert_eq!(found.order, Order::File, "{len}");
            assert_eq!(found.chunks, [all[0], all[2], all[3]], "{len}");
        } else {
            assert_eq!((found.order, &found.chunks[..]), (Order::Index, &all[..]), "{len}");
        }
    }
}
