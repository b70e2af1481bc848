use std::cell::Cell;
use std::io;

use super::*;
use crate::chunk::{Params, Special, special};
use crate::frame::Writer;

/// Counts the requests and the bytes that are read.
struct Counted {
    bytes: Vec<u8>,
    requests: Cell<usize>,
    count: Cell<usize>,
}

impl ReadAt for Counted {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.requests.set(self.requests.get() + 1);
        self.count.set(self.count.get() + buffer.len());
        self.bytes.read_exact_at(offset, buffer)
    }
}

/// A deterministic sequence of numbers, which differ in their high bytes only slowly.
fn items(count: u32) -> Vec<u8> {
    (0..count).flat_map(|at| (at / 7 + at.wrapping_mul(2_654_435_761) % 13).to_le_bytes()).collect()
}

fn frame(params: Params, chunks: &[&[u8]]) -> Frame<Counted> {
    let mut writer = Writer::new(io::Cursor::new(Vec::new()), params, &[]).unwrap();
    for chunk in chunks {
        writer.push(chunk).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let source = Counted { bytes, requests: Cell::default(), count: Cell::default() };
    Frame::open(source, &Limits::default()).unwrap()
}

#[test]
fn ranges_equal_those_of_the_whole_chunk() {
    let long = items(400_000);
    let short = items(12_345);
    let delta = [3, 0, 0, 0, 0, 1];
    for (codec, filters, typesize, level) in [
        (0, [0, 0, 0, 0, 0, 1], 4, 5),
        (1, [0, 0, 0, 0, 0, 1], 4, 5),
        (1, [0, 0, 0, 0, 0, 2], 4, 5),
        (1, delta, 4, 5),
        (4, [0; 6], 1, 1),
        (5, [0, 0, 0, 0, 0, 1], 4, 1),
        (5, [0, 0, 0, 0, 0, 1], 400, 1),
        (5, [0, 0, 0, 0, 0, 1], 4, 0),
    ] {
        let params = Params {
            codec,
            filters,
            typesize,
            level,
            blocksize: Some(40_000),
            ..Params::default()
        };
        let mut frame = frame(params, &[&long, &vec![0; long.len()], &short]);
        let mut expected = Vec::new();
        for cache in [0, 100_000, 64 << 20] {
            for number in 0..3 {
                frame.decode_chunk(number, &mut expected).unwrap();
                let mut reader = BlockReader::new(frame);
                reader.set_cache(cache);
                let len = expected.len();
                let ranges = [
                    0..0,
                    0..1,
                    39_999.min(len)..40_001.min(len),
                    len - 1..len,
                    len / 3..len / 2,
                    7..len.min(40_000),
                    0..len,
                    len..len,
                ];
                let mut seen = 0;
                let each = |at: usize, data: &[u8]| {
                    assert_eq!((at, data), (seen, &expected[ranges[at].clone()]));
                    seen += 1;
                };
                reader.read_ranges(number, &ranges, each).unwrap();
                assert_eq!(seen, ranges.len());
                for range in &ranges {
                    let cached = reader.is_cached(number, range);
                    assert!(cached || cache < 64 << 20 || len > cache as usize, "{range:?}");
                    assert_eq!(
                        reader.read(number, range.clone()).unwrap()[..],
                        expected[range.clone()]
                    );
                }
                for block in 0..reader.nblocks(number).unwrap() {
                    let start = block * 40_000;
                    let block = reader.block(number, block).unwrap();
                    assert_eq!(block[..], expected[start..start + block.len()]);
                }
                let outside = [(0, len + 1), (len + 1, len + 1), (2, 1)];
                for (start, end) in outside {
                    let found = reader.read(number, Range { start, end });
                    assert!(matches!(found, Err(Error::Argument(_))), "{start}..{end}");
                }
                assert!(matches!(reader.block(number, 1000), Err(Error::Argument(_))));
                frame = reader.frame;
            }
        }
    }
}

#[test]
fn only_the_needed_blocks_are_read() {
    let params = Params {
        typesize: 4,
        codec: 1,
        filters: [0, 0, 0, 0, 0, 2],
        blocksize: Some(40_000),
        ..Params::default()
    };
    let frame = frame(params, &[&items(2_000_000)]);
    let stored = frame.chunk(0).unwrap().len();
    assert!(stored > 4 * SHORT as usize / 2, "{stored}");
    let mut reader = BlockReader::new(frame);
    let count = |reader: &mut BlockReader<Counted>, range: Range<usize>| {
        let source = reader.frame_mut().get_mut();
        let before = (source.requests.get(), source.count.get());
        reader.read(0, range).unwrap();
        let source = reader.frame_mut().get_mut();
        (source.requests.get() - before.0, source.count.get() - before.1)
    };
    let table = 32 + 4 * 200;
    let (_, bytes) = count(&mut reader, 4_000_000..4_000_004);
    assert!(bytes < 2 * table + 2 * stored / 200, "{bytes} of {stored}");
    assert_eq!(count(&mut reader, 4_010_000..4_020_000), (0, 0));
    // Neighbors are read with one request, after the header, which is checked again.
    assert_eq!(count(&mut reader, 1_000_000..1_400_000).0, 2);
}

#[test]
fn special_chunks_take_no_memory() {
    let params = Params { typesize: 4, ..Params::default() };
    let value = special(&params, Special::Value, 1 << 30, &[1, 2, 3, 4]).unwrap();
    let mut writer = Writer::new(io::Cursor::new(Vec::new()), params, &[]).unwrap();
    writer.push_chunk(&value).unwrap();
    let frame = Frame::open(writer.finish().unwrap().into_inner(), &Limits::default()).unwrap();
    let mut reader = BlockReader::new(frame);
    let found = reader.read(0, (1 << 30) - 6..1 << 30).unwrap();
    assert_eq!(found[..], [3, 4, 1, 2, 3, 4]);
    assert!(reader.is_cached(0, &(0..1 << 30)));
}

#[test]
fn damaged_tables_of_starts_are_errors() {
    let params = Params { typesize: 4, codec: 1, blocksize: Some(40_000), ..Params::default() };
    let frame = frame(params, &[&items(1_000_000)]);
    let at = frame.with_chunk(0, |_, header, at| Ok(at + header.header_len() as u64)).unwrap();
    let source = frame.into_inner();
    for start in [0u32, 31, 200, u32::MAX, i32::MAX as u32] {
        let mut bytes = source.bytes.clone();
        let at = at.unwrap() as usize + 4 * 50;
        bytes[at..at + 4].copy_from_slice(&start.to_le_bytes());
        let mut reader = BlockReader::new(Frame::open(bytes, &Limits::default()).unwrap());
        let mut whole = Vec::new();
        let whole =
            reader.frame_mut().decode_chunk(0, &mut whole).map_err(|error| error.to_string());
        let found = reader.read(0, 50 * 40_000..51 * 40_000).map_err(|error| error.to_string());
        assert_eq!(found.map(drop), whole, "{start}");
        assert!(reader.read(0, 0..4_000_000).is_err());
    }
}

/// A chunk with a table of starts, in a frame: `change` changes its bytes.
fn changed_chunk(change: impl FnOnce(&mut [u8], &Header)) -> BlockReader<Vec<u8>> {
    let params = Params { typesize: 4, codec: 1, blocksize: Some(40_000), ..Params::default() };
    let frame = frame(params, &[&items(1_000_000)]);
    let found = frame.with_chunk(0, |_, header, at| Ok((header, at as usize))).unwrap();
    let (header, at) = found.unwrap();
    let mut bytes = frame.into_inner().bytes;
    change(&mut bytes[at..], &header);
    BlockReader::new(Frame::open(bytes, &Limits::default()).unwrap())
}

#[test]
fn blocks_that_are_stored_together_take_no_more_memory() {
    let mut reader = changed_chunk(|chunk, header| {
        let table = header.header_len()..header.header_len() + 4 * header.nblocks() as usize;
        let start: [u8; 4] = chunk[table.start..table.start + 4].try_into().unwrap();
        chunk[table].as_chunks_mut().0.fill(start);
    });
    // All blocks start at the first one: each would extend to the end of the chunk.
    let found = reader.read(0, 0..4_000_000).unwrap();
    assert!(reader.stored(0).unwrap().places.is_none());
    assert!(found.chunks(40_000).all(|block| block == &found[..40_000]));
}

#[test]
fn damaged_blocks_have_the_errors_of_the_whole_chunk() {
    let mut reader = changed_chunk(|chunk, header| {
        let at = header.header_len() + 4 * 50;
        let start = u32::from_le_bytes(chunk[at..at + 4].try_into().unwrap()) as usize;
        chunk[start..start + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    });
    let whole = reader.frame_mut().decode_chunk(0, &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(reader.read(0, 2_000_000..2_000_001).unwrap_err().to_string(), whole);
    assert_eq!(reader.read(0, 0..40_000).unwrap().len(), 40_000);
}

#[test]
fn ranges_are_limited() {
    let params = Params { typesize: 1, ..Params::default() };
    let zeros = special(&params, Special::Zeros, 1 << 30, &[]).unwrap();
    let mut writer = Writer::new(io::Cursor::new(Vec::new()), params, &[]).unwrap();
    writer.push_chunk(&zeros).unwrap();
    let bytes = writer.finish().unwrap().into_inner();
    let limits = Limits { memory: 1 << 20, ..Limits::default() };
    let mut reader = BlockReader::new(Frame::open(bytes, &limits).unwrap());
    assert_eq!(reader.read(0, 5..1 << 20).unwrap().len(), (1 << 20) - 5);
    let found = reader.read(0, 0..(1 << 20) + 1);
    assert!(matches!(found, Err(Error::Limit { .. })), "{found:?}");
}
