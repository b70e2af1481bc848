//! Tests of whole frames: small ones that are written, read, checked and damaged.

use std::io::Cursor;

use super::*;
use crate::chunk::{self, Params, SplitMode};
use crate::{Error, Limits, Options, Part, Report, Severity};

const PARAMS: Params = Params {
    codec: 1,
    codec_meta: 0,
    level: 5,
    typesize: 4,
    blocksize: Some(400),
    filters: [0, 0, 0, 0, 3, 1],
    filters_meta: [0; 6],
    split: SplitMode::ForwardCompat,
};

fn ramp(len: u32) -> Vec<u8> {
    (0..len / 4).flat_map(|item| (item * item).to_le_bytes()).collect()
}

fn metalayer(name: &str, content: &[u8]) -> Metalayer {
    Metalayer { name: name.into(), content: content.into() }
}

/// Three chunks with data, one of zeros and a shorter one; metalayers of both kinds.
fn sample() -> Vec<u8> {
    let metalayers = [metalayer("one", b"first"), metalayer("two", b"")];
    let mut writer = Writer::new(Cursor::new(Vec::new()), PARAMS, &metalayers).unwrap();
    for chunk in [ramp(800), vec![1; 800], vec![0; 800], ramp(800), ramp(600)] {
        writer.push(&chunk).unwrap();
    }
    writer.add_vlmetalayer("author", &[7; 100]).unwrap();
    writer.add_vlmetalayer("empty", b"").unwrap();
    writer.finish().unwrap().into_inner()
}

fn checked(frame: &[u8]) -> Report {
    check(frame, &Options { content: true, map: true, ..Options::default() }).unwrap()
}

fn ids(frame: &[u8]) -> Vec<(&'static str, u64)> {
    checked(frame).findings.iter().map(|finding| (finding.rule.id, finding.offset)).collect()
}

fn trailer_at(frame: &[u8]) -> usize {
    let at = frame.len() - 22;
    frame.len() - u32::from_be_bytes(frame[at..at + 4].try_into().unwrap()) as usize
}

fn index_at(frame: &[u8]) -> usize {
    let header = Header::parse(frame).unwrap();
    header.header_len as usize + header.cbytes as usize
}

#[test]
fn nothing_is_wrong_with_what_is_written() {
    let frame = sample();
    assert_eq!(ids(&frame), []);
    let mut frame = Frame::open(frame, &Limits::default()).unwrap();
    assert_eq!((frame.nchunks(), frame.header().nbytes), (5, 3800));
    assert_eq!(frame.metalayer("one"), Some(&b"first"[..]));
    assert_eq!(frame.metalayer("three"), None);
    assert!(frame.vlmetalayers().eq(["author", "empty"]));
    assert_eq!(frame.vlmetalayer("author").unwrap(), Some(vec![7; 100]));
    assert_eq!(frame.vlmetalayer("empty").unwrap(), Some(Vec::new()));
    assert_eq!(frame.vlmetalayer("one").unwrap(), None);
    let mut data = Vec::new();
    for (number, expected) in [(0, ramp(800)), (2, vec![0; 800]), (4, ramp(600))] {
        frame.decode_chunk(number, &mut data).unwrap();
        assert_eq!(data, expected);
        assert_eq!(frame.chunk_nbytes(number).unwrap(), expected.len() as u64);
    }
    assert!(matches!(frame.offset(2), Ok(Offset::Special(chunk::Special::Zeros))));
    assert!(matches!(frame.chunk(5), Err(Error::Argument(_))));
}

/// Bits that can be changed without making the frame invalid: their positions from the start of a
/// part, their mask, and the reason.
const UNSEEN: [(Part, std::ops::Range<usize>, u8, &str); 15] = [
    (Part::Header, 0x1b..0x1c, 0x70, "the level, which chunks do not tell"),
    (Part::Header, 0x1c..0x1d, 0x01, "split modes 3 and 4, which do the same"),
    (Part::Header, 0x38..0x39, 0x03, "a block size between two items is rounded down"),
    (Part::Header, 0x3f..0x40, 0x7f, "threads for compression, any number"),
    (Part::Header, 0x40..0x41, 0xff, "threads for compression, any number"),
    (Part::Header, 0x42..0x43, 0x7f, "threads for decompression, any number"),
    (Part::Header, 0x43..0x44, 0xff, "threads for decompression, any number"),
    (Part::Header, 0x4d..0x4e, 0x01, "the codec again: versions before 2.0 had 0 there"),
    (Part::Header, 0x4e..0x4f, 0x01, "the codec's parameter: 2.0.0-rc.1 had the codec there"),
    (Part::Header, 0x5f..0x62, 0x7f, "the name of a metalayer, another one"),
    (Part::Header, 0x68..0x6b, 0x7f, "the name of a metalayer, another one"),
    (Part::Index, 0..1, 0x01, "chunk versions 4 and 5, which are the same"),
    (Part::Index, 2..3, 0x18, "delta and split blocks, which stored data has not"),
    (Part::Trailer, 10..16, 0x7f, "the name of a metalayer, another one"),
    (Part::Trailer, 22..27, 0x7f, "the name of a metalayer, another one"),
];

#[test]
fn every_changed_byte_is_found() {
    let frame = sample();
    let starts =
        [(Part::Header, 0), (Part::Index, index_at(&frame)), (Part::Trailer, trailer_at(&frame))];
    let regions = checked(&frame).regions;
    let mut used = [false; UNSEEN.len()];
    for (part, start) in starts {
        for region in regions.iter().filter(|region| region.part == part) {
            for at in region.offset as usize..(region.offset + region.len) as usize {
                for change in (0..8).map(|bit| 1 << bit).chain([0xff]) {
                    let mut broken = frame.clone();
                    broken[at] ^= change;
                    if !checked(&broken).findings.is_empty() {
                        continue;
                    }
                    let known = UNSEEN.iter().position(|(unseen, bytes, bits, _)| {
                        *unseen == part && bytes.contains(&(at - start)) && change & !bits == 0
                    });
                    let Some(known) = known else {
                        panic!("{part}, byte {:#x} with {change:#04x}", at - start);
                    };
                    used[known] = true;
                }
            }
        }
    }
    for (used, unseen) in used.iter().zip(&UNSEEN) {
        assert!(used, "found by now: {unseen:?}");
    }
}

/// Many chunks at one position are one finding each up to a limit, and are checked once.
#[test]
fn a_small_index_of_many_chunks_costs_little() {
    let mut writer = Writer::new(Cursor::new(Vec::new()), PARAMS, &[]).unwrap();
    let count = 300_000u64;
    for _ in 0..2 {
        writer.push(&ramp(800)).unwrap();
    }
    let frame = writer.finish().unwrap().into_inner();
    let (index, trailer) = (index_at(&frame), trailer_at(&frame));
    let offsets = |offset: fn(u64) -> u64| (0..count).flat_map(move |at| offset(at).to_le_bytes());
    let params = Params { blocksize: Some(16 * 1024), ..Params::default() };
    for offset in [|at| at % 2, |at| u64::MAX - at % 2, |at| (0x81 << 56) + at % 2] {
        let data: Vec<u8> = offsets(offset).collect();
        let chunk = chunk::Encoder::new(params).unwrap().encode(&data).unwrap();
        let mut bytes = [&frame[..index], &chunk, &frame[trailer..]].concat();
        let len = bytes.len() as u64;
        bytes[0x10..0x18].copy_from_slice(&len.to_be_bytes());
        bytes[0x1e..0x26].copy_from_slice(&(count * 800).to_be_bytes());
        let report = checked(&bytes);
        assert_eq!(report.findings.len(), Report::MAX_FINDINGS);
        assert!(report.omitted > 50_000, "{}", report.omitted);
    }
}

/// A frame with other bytes at a position violates this rule, among others.
fn assert_found(id: &str, change: impl FnOnce(&mut Vec<u8>)) {
    let mut frame = sample();
    change(&mut frame);
    let report = checked(&frame);
    let found = report.findings.iter().find(|finding| finding.rule.id == id);
    let Some(finding) = found else { panic!("{id}: {:#?}", report.findings) };
    // Opening fails for an error outside of the chunks; their lengths are not checked then.
    let of_a_chunk = matches!(finding.part, Part::Chunk(_) | Part::VlMetalayer(_))
        || id == "frame.chunk.unknown_size";
    if finding.rule.severity == Severity::Error && !of_a_chunk {
        let error = Frame::open(frame, &Limits::default()).unwrap_err();
        assert!(matches!(error, Error::Format(_)), "{id}: {error}");
    }
}

/// As plain C and `to_cframe` write it.
#[test]
fn a_frame_without_numbers_of_threads_is_good() {
    let mut frame = sample();
    frame[0x3f..0x41].fill(0);
    frame[0x42..0x44].fill(0);
    let before = checked(&sample()).findings.len();
    assert_eq!(checked(&frame).findings.len(), before, "{:#?}", checked(&frame).findings);
}

#[test]
fn every_rule_is_found() {
    let put = |at: usize, bytes: &'static [u8]| {
        move |frame: &mut Vec<u8>| frame[at..at + bytes.len()].copy_from_slice(bytes)
    };
    let (index, trailer, end) = (index_at(&sample()), trailer_at(&sample()), sample().len());
    assert_found("frame.magic", put(2, b"c"));
    assert_found("frame.short", |frame| frame.truncate(86));
    for at in [0, 0x0a, 0x0f, 0x18, 0x1d, 0x26, 0x2f, 0x34, 0x39, 0x3e, 0x41, 0x45] {
        assert_found("frame.marker", put(at, b"\xc0"));
    }
    for at in [0x57, 0x58, 0x5b, 0x5e, 0x62] {
        assert_found("frame.marker", put(at, b"\xc0"));
    }
    for at in [0, 2, 3, 6, 16, end - trailer - 18] {
        assert_found("frame.marker", put(trailer + at, b"\xc0"));
    }
    assert_found("frame.version", put(0x19, b"\x11"));
    assert_found("frame.header_len", put(0x0b, b"\0\0\0\x56"));
    assert_found("frame.frame_len", |frame| frame.truncate(end - 1));
    assert_found("frame.unfinished", put(0x10, b"\x7f"));
    assert_found("frame.unfinished", put(0x10, b"\x7e"));
    assert_found("frame.trailing", |frame| frame.push(0));
    assert_found("frame.offset_size", put(0x19, b"\x02"));
    assert_found("frame.flags", put(0x19, b"\x52"));
    assert_found("frame.flags", put(0x19, b"\x92"));
    assert_found("frame.type", put(0x1a, b"\x01"));
    assert_found("frame.type", put(0x1a, b"\x02"));
    assert_found("frame.codec", put(0x1b, b"\x57"));
    assert_found("frame.codec", put(0x4d, b"\x02"));
    assert_found("frame.level", put(0x1b, b"\xa1"));
    for at in [0x1c, 0x55, 0x56] {
        assert_found("frame.reserved", put(at, b"\x80"));
    }
    assert_found("frame.nbytes", put(0x1e, b"\x80"));
    assert_found("frame.cbytes", put(0x27, b"\x80"));
    assert_found("frame.cbytes", put(0x2d, b"\x20"));
    assert_found("frame.typesize", put(0x30, b"\0\0\0\0"));
    assert_found("frame.blocksize", put(0x35, b"\x80"));
    assert_found("frame.chunksize", put(0x3a, b"\x80"));
    assert_found("frame.threads", put(0x3f, b"\xff\xff"));
    assert_found("frame.threads", put(0x42, b"\x80"));
    assert_found("frame.has_vlmeta", put(0x44, b"\xc2"));
    assert_found("frame.has_vlmeta", put(0x44, b"\xc0"));
    assert_found("frame.nfilters", put(0x46, b"\x07"));
    assert_found("frame.filter_slots", put(0x46, b"\x05"));
    assert_found("frame.meta", put(0x78 - 5 + 1, b"\x01"));
    assert_found("frame.meta.count", put(0x5c, b"\0\x11"));
    assert_found("frame.meta.index_size", put(0x59, b"\0\x18"));
    assert_found("frame.meta.name", put(0x5f, b"\0"));
    assert_found("frame.meta.twice", put(0x5f, b"two"));
    assert_found("frame.meta.offset", put(0x63, b"\0\0\0\x01"));
    assert_found("frame.meta.end", |frame| {
        frame[0x0e] += 1;
    });
    assert_found("frame.trailer.marker", put(end - 23, b"\0"));
    assert_found("frame.trailer.len", put(end - 22, b"\0\0\0\x22"));
    assert_found("frame.trailer.version", put(trailer + 1, b"\x02"));
    assert_found("frame.fingerprint", put(end - 17, b"\x01"));
    assert_found("frame.fingerprint", put(end - 1, b"\x01"));
    let regions = checked(&sample()).regions;
    let author = Part::VlMetalayer("author".into());
    let author = regions.iter().find(|region| region.part == author).unwrap().offset as usize;
    assert_found("frame.vlmeta.chunk", |frame| frame[author + 12] -= 1);
    assert_found("frame.index.place", |frame| {
        frame[index + 2] = 0b101;
        frame[index + 13] = 0x10;
    });
    assert_found("frame.index.chunk", put(index + 3, b"\x04"));
    assert_found("frame.index.chunk", put(index, b"\0"));
    assert_found("frame.index.params", put(index + 22, b"\x01"));
    assert_found("frame.index.count", put(0x3a, b"\0\0\x04\0"));
    assert_found("frame.offset", put(index + 32 + 4, b"\x01"));
    assert_found("frame.offset.special", put(index + 32 + 16 + 7, b"\x83"));
    assert_found("frame.offset.reserved", put(index + 32 + 16, b"\x01"));
    let first = Header::parse(&sample()).unwrap().header_len as usize;
    assert_found("frame.chunk.place", put(first + 12, b"\0\x10"));
    assert_found("frame.chunk.lazy", put(first + 31, b"\x08"));
    assert_found("frame.chunk.overlap", put(index + 32 + 8, b"\0\0"));
    assert_found("frame.chunk.nbytes", put(first + 4, b"\x10"));
    assert_found("frame.chunk.empty", put(first + 4, b"\0\0"));
    assert_found("frame.chunk.unknown_size", put(0x3a, b"\0\0\0\0"));
    assert_found("frame.chunk.typesize", put(first + 3, b"\x02"));
    assert_found("frame.chunk.blocks", put(first + 30, b"\x01"));
    assert_found("frame.chunk.params", put(first + 24, b"\x01"));
    assert_found(
        "frame.chunk.short",
        put(first, &[2, 1, 0x02, 4, 4, 0, 0, 0, 4, 0, 0, 0, 20, 0, 0, 0]),
    );
    assert_found("frame.chunk.special", put(first + 31, b"\x10"));
    assert_found("frame.chunk.value", |frame| {
        frame[first + 12..first + 16].copy_from_slice(&[34, 0, 0, 0]);
        frame[first + 31] = 0x30;
    });
    assert_found("frame.dictionary", put(0x55, b"\x01"));
    assert_found("frame.gap", put(index + 32 + 8, &[0, 0, 0, 0, 0, 0, 0, 0x81]));
}

proptest::proptest! {
    /// For all bytes: no panic, and no error if the check finds none.
    #[test]
    fn what_the_check_lets_pass_is_read(
        changes in proptest::collection::vec((0usize..1760, proptest::prelude::any::<u8>()), 1..4),
        cut in 0usize..1760,
        cuts in proptest::prelude::any::<u8>(),
    ) {
        let mut frame = sample();
        for (at, value) in changes {
            if let Some(byte) = frame.get_mut(at) {
                *byte = value;
            }
        }
        if cuts < 10 {
            frame.truncate(cut);
        }
        let report = checked(&frame);
        let limits = Limits::default();
        match Frame::open(frame, &limits) {
            Ok(mut frame) => {
                let mut data = Vec::new();
                let mut outcomes = Vec::new();
                for number in 0..frame.nchunks() {
                    outcomes.push(frame.decode_chunk(number, &mut data));
                }
                let names: Vec<String> = frame.vlmetalayers().map(str::to_owned).collect();
                for name in names {
                    outcomes.push(frame.vlmetalayer(&name).map(drop));
                }
                let failed: Vec<_> = outcomes.iter().filter(|each| each.is_err()).collect();
                let unsupported = |each: &crate::Finding| each.rule.id.ends_with("unsupported");
                if report.is_good() && !report.findings.iter().any(unsupported) {
                    assert!(failed.is_empty(), "{failed:?}: {:?}", report.findings);
                }
            }
            Err(error) => assert!(!report.is_good(), "{error}: {:?}", report.findings),
        }
    }
}

/// A rejected change leaves the frame unchanged; an accepted one can be read.
#[test]
fn chunks_of_one_value_are_refused_or_kept() {
    let repeated = |typesize, special, len, value: &[u8]| {
        let params = Params { typesize, blocksize: None, ..PARAMS };
        chunk::special(&params, special, len, value).unwrap()
    };
    let nan = repeated(4, chunk::Special::Nan, 24, &[]);
    for typesize in [2, 3, 4, 8, 16, 256] {
        let params = Params { typesize, blocksize: Some(3), filters: [0; 6], ..PARAMS };
        let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
        writer.push(&[1; 12]).unwrap();
        // NaN of 4 bytes is not an item, nor a multiple of items, of 3, 16 and 256 bytes.
        assert_eq!(writer.push_chunk(&nan).is_ok(), [2, 4, 8].contains(&typesize), "{typesize}");
        let short = repeated(1, chunk::Special::Value, 24, &[7]);
        assert!(matches!(writer.push_chunk(&short), Err(Error::Argument(_))));
        let odd = repeated(8, chunk::Special::Nan, 24, &[]);
        let odd = [&odd[..8], &3u32.to_le_bytes(), &odd[12..]].concat();
        assert!(matches!(writer.push_chunk(&odd), Err(Error::Format(_))));
        writer.push(&vec![0; 3 * typesize as usize]).unwrap();
        let count = writer.nchunks();
        let bytes = writer.finish().unwrap().into_inner();
        let report = checked(&bytes);
        assert!(report.is_good(), "{typesize}: {:?}", report.findings);
        let mut frame = Frame::open(bytes, &Limits::default()).unwrap();
        let mut data = Vec::new();
        frame.decode_chunk(count - 1, &mut data).unwrap();
        assert_eq!(data, vec![0; 3 * typesize as usize]);
        if count == 3 {
            frame.decode_chunk(1, &mut data).unwrap();
            assert_eq!(data, f32::NAN.to_le_bytes().repeat(6));
        }
    }
    // C reads no NaN of an unsupported size, or larger than a block.
    for (typesize, blocksize) in [(3, 12), (8, 4)] {
        let params = Params { typesize, blocksize: Some(blocksize), ..PARAMS };
        let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
        let error = writer.fill(chunk::Special::Nan, 24, 24).unwrap_err();
        assert!(matches!(error, Error::Argument(_)), "{error}");
        writer.fill(chunk::Special::Zeros, 24, 24).unwrap();
        let mut frame = writer.finish().unwrap().into_inner();
        assert!(checked(&frame).is_good());
        let value = index_at(&frame) + 32 + 7;
        frame[value] = 0x82;
        assert!(ids(&frame).iter().any(|(id, _)| *id == "frame.chunk.nan"), "{typesize}");
    }
}

/// A frame with more chunks than readers allow is not written.
#[test]
fn the_number_of_chunks_is_that_of_readers() {
    let max = Limits::default().chunks;
    let is_over = |outcome: Result<(), Error>, max: u64| {
        let limit = Some(crate::Limit::Chunks);
        matches!(outcome, Err(Error::Limit { limit: found, amount, max: most, .. })
            if found == limit && amount == max + 1 && most == max)
    };
    let params = Params { typesize: 1, blocksize: None, ..PARAMS };
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
    assert!(is_over(writer.fill(chunk::Special::Zeros, 40 * (max + 1), 40), max));
    writer.fill(chunk::Special::Zeros, 40 * max, 40).unwrap();
    assert!(is_over(writer.push(&[1; 40]), max));
    let bytes = writer.finish().unwrap().into_inner();
    assert_eq!(Frame::open(&bytes[..], &Limits::default()).unwrap().nchunks(), max);

    let mut outline = Outline::new(params, Layout::Contiguous);
    outline.set_max_chunks(2);
    outline.fill(chunk::Special::Zeros, 80, 40).unwrap();
    let chunk = chunk::Encoder::new(params).unwrap().encode(&[7; 40]).unwrap();
    assert!(is_over(outline.insert(1, &chunk).map(drop), 2));
    let slots = || vec![Slot::Kept(0), Slot::Kept(1), Slot::Zeros];
    assert!(is_over(outline.rearrange(40, slots(), &[]).map(drop), 2));
    assert!(is_over(outline.emptied(Layout::Contiguous).insert(0, &chunk).map(drop), 2));
    outline.set_max_chunks(3);
    outline.rearrange(40, slots(), &[]).unwrap();
    // That of an outline that was read is the limit of its reader.
    let limits = Limits { chunks: max, ..Limits::default() };
    let mut outline = Outline::read(&bytes, Layout::Contiguous, &limits).unwrap();
    outline.load(&bytes).unwrap();
    assert!(is_over(outline.insert(0, &chunk).map(drop), max));
}

/// A chunk whose header is valid is where the index says, whatever its blocks contain.
#[test]
fn only_a_wrong_chunk_header_makes_the_index_suspect() {
    let frame = sample();
    let start = Header::parse(&frame).unwrap().header_len as usize;
    let broken = |at: usize, value: u8| {
        let mut broken = frame.clone();
        broken[start + at] = value;
        ids(&broken).into_iter().map(|(id, _)| id).collect::<Vec<_>>()
    };
    // The version of the first chunk, its first block start, and the size of its first stream.
    assert_eq!(broken(0, 0), ["chunk.version", "frame.suspect"]);
    assert_eq!(broken(35, 0x7f), ["chunk.bstart"]);
    let stream = u32::from_le_bytes(frame[start + 32..start + 36].try_into().unwrap()) as usize;
    assert_eq!(broken(stream + 3, 0x7f), ["chunk.csize"]);
}

/// Chunks of one value are not decoded, so that they do not count.
#[test]
fn a_check_of_very_many_equal_bytes_is_complete() {
    let params = Params { typesize: 1, blocksize: None, ..PARAMS };
    let data = chunk::special(&params, chunk::Special::Value, 1 << 30, &[7]).unwrap();
    let packed = chunk::Encoder::new(params).unwrap().encode(&[1, 2, 3, 4].repeat(1000)).unwrap();
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
    for _ in 0..3 {
        writer.push_chunk(&data).unwrap();
    }
    writer.push_chunk(&packed).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let check = |total_bytes| {
        let limits = Limits { total_bytes, ..Limits::default() };
        let options = Options { content: true, limits, ..Options::default() };
        check(&bytes, &options).unwrap()
    };
    let report = check(4000);
    assert!(report.is_good() && report.is_complete(), "{:?}", report.findings);
    assert!(!check(3999).is_complete());
}
