use std::cell::Cell;
use std::io::{self, Cursor};

use blosc2_testing::{Rng, repeats};

use super::*;
use crate::Options;
use crate::chunk::Special;
use crate::frame::{Frame, Writer, check};

/// Offsets as in frames: mostly a little higher than the previous one, some special.
fn random(rng: &mut Rng, count: usize) -> Vec<i64> {
    let mut place = 0;
    let mut next = || {
        place += 40 + rng.below(200);
        match rng.below(20) {
            0 => Offset::Special(Special::Zeros),
            1 => Offset::Special(Special::Uninit),
            2 => Offset::At(rng.below(1 << 40)),
            _ => Offset::At(place),
        }
    };
    (0..count).map(|_| next().number()).collect()
}

/// The index chunk of the C library for all of them.
fn whole(numbers: &[i64]) -> Vec<u8> {
    Encoder::new(PARAMS).unwrap().encode(&bytes_of(numbers)).unwrap()
}

/// The offsets of an index chunk that was found in a source.
fn read(chunk: &[u8], count: usize, max: u64) -> Offsets {
    let header = chunk::Header::parse(chunk).unwrap();
    let ranges = ranges(&header, &chunk[EXTENDED_HEADER_LEN..]).unwrap();
    let place = Place { at: 0, header: array(chunk), max: Some(max) };
    Offsets::Each(Blocks::stored(count, place, None, ranges, None))
}

/// Random changes of indexes around the borders of blocks have the same effect as on a vector, and the written index
/// equals an encoding of all offsets.
#[test]
fn changes_are_those_of_a_vector() {
    for seed in 0..repeats(60) as u64 {
        let mut rng = Rng(seed);
        let count = PER_BLOCK * (1 + rng.below(3) as usize) + rng.below(5) as usize - 2;
        let mut model = random(&mut rng, count);
        let stored = whole(&model);
        let mut offsets = match count > PER_BLOCK {
            true => read(&stored, count, 1 << 40),
            false => Offsets::of_entries(&model, None),
        };
        offsets.load(&stored).unwrap();
        for _ in 0..12 {
            let number = rng.below(model.len() as u64 + 1);
            let at = number as usize;
            let offset = Offset::of(random(&mut rng, 1)[0]).unwrap();
            offsets.decode(number.min(model.len() as u64 - 1)).unwrap();
            match rng.below(6) {
                0 => {
                    offsets.insert(number, offset);
                    model.insert(at, offset.number());
                }
                1 | 2 => {
                    offsets.decode(model.len() as u64 - 1).unwrap();
                    offsets.push(offset);
                    model.push(offset.number());
                }
                3 if at < model.len() => {
                    offsets.remove(number);
                    model.remove(at);
                }
                4 if at < model.len() => {
                    offsets.set(number, offset);
                    model[at] = offset.number();
                }
                _ => {
                    let chunk = offsets.encode(None).unwrap();
                    assert!(chunk[..] == whole(&model), "seed {seed}");
                    let patch = offsets.patch(0, None).unwrap().unwrap();
                    assert_eq!((patch.len, patch.writes.len()), (chunk.len(), 0), "seed {seed}");
                }
            }
        }
        let chunk = offsets.encode(None).unwrap();
        assert!(chunk[..] == whole(&model), "seed {seed}");
        let all = |offsets: &Offsets| -> Vec<i64> {
            let get = |number| offsets.get(number, &[][..]).unwrap().unwrap().number();
            (0..offsets.len()).map(get).collect()
        };
        assert_eq!(all(&offsets), model, "seed {seed}");
        offsets.decode(0).unwrap();
        let mut order: Vec<usize> = (0..model.len()).collect();
        order.sort_by_key(|&number| number.wrapping_mul(7919) % 1009);
        offsets.reorder(&order);
        let model: Vec<i64> = order.iter().map(|&number| model[number]).collect();
        assert!(offsets.encode(None).unwrap()[..] == whole(&model), "seed {seed}");
    }
}

/// Changes are written to the stored index chunk, or it is replaced if that is not possible. Afterwards it contains all
/// offsets and the end of the chunks. The last blocks can change without reading the others.
#[test]
fn patches_store_all_changes() {
    let mut patched = 0;
    for seed in 0..repeats(60) as u64 {
        let mut rng = Rng(seed);
        let count = PER_BLOCK * (2 + rng.index(2)) + rng.index(PER_BLOCK) - 2;
        let mut model = random(&mut rng, count);
        let mut stored = whole(&model);
        let mut offsets = read(&stored, count, 1 << 40);
        for step in 0..12 {
            for _ in 0..rng.index(5) {
                let offset = Offset::of(random(&mut rng, 1)[0]).unwrap();
                let last = model.len() as u64 - 1;
                offsets.get(last, &stored[..]).unwrap();
                match rng.below(12) {
                    0 => {
                        offsets.load(&stored[..]).unwrap();
                        let at = rng.index(model.len());
                        offsets.decode(at as u64).unwrap();
                        offsets.set(at as u64, offset);
                        model[at] = offset.number();
                    }
                    1 => {
                        offsets.truncate(last);
                        model.pop();
                    }
                    2 => {
                        offsets.set(last, offset);
                        *model.last_mut().unwrap() = offset.number();
                    }
                    _ => {
                        offsets.push(offset);
                        model.push(offset.number());
                    }
                }
            }
            let is_stated = offsets.spare().is_some() || rng.below(2) == 0;
            let spare = is_stated.then(|| rng.below(1 << 39));
            match offsets.patch(0, spare).unwrap() {
                Some(patch) => {
                    patched += 1;
                    stored.resize(stored.len().max(patch.len), 0xff);
                    for (at, bytes) in patch.writes {
                        stored[at as usize..][..bytes.len()].copy_from_slice(&bytes);
                    }
                    stored.truncate(patch.len);
                }
                None => {
                    offsets.load(&stored[..]).unwrap();
                    stored = offsets.encode(spare).unwrap().to_vec();
                }
            }
            let chunk = Chunk::new(&stored, &Limits::default()).unwrap();
            let mut data = vec![0; 8 * model.len()];
            Decoder::default().decode(&chunk, &mut data).unwrap();
            assert!(data == bytes_of(&model), "seed {seed}, step {step}");
            let table = &stored[EXTENDED_HEADER_LEN..];
            assert_eq!(spare_of(chunk.header(), table, 1 << 40), spare, "seed {seed}, step {step}");
            let report = Chunk::check(&stored, &Options::default());
            let is_gap = |finding: &crate::Finding| finding.rule.id == "chunk.gap";
            assert!(report.findings.iter().all(|finding| is_gap(finding) && finding.len == 16));
            if rng.below(4) == 0 {
                offsets = read(&stored, model.len(), 1 << 40);
                let Offsets::Each(blocks) = &mut offsets else { unreachable!() };
                blocks.spare = spare;
            }
        }
    }
    assert!(patched > repeats(60) * 4, "{patched}");
}

#[test]
fn neighbors_are_those_of_a_search() {
    let mut rng = Rng(7);
    for count in [1, 2, 30, PER_BLOCK, PER_BLOCK + 1, 3 * PER_BLOCK] {
        let mut unordered = random(&mut rng, count);
        if count > 2 {
            unordered[2] = unordered[0];
        }
        let mut ordered = unordered.clone();
        ordered.sort_unstable();
        for mut numbers in [unordered, ordered] {
            let mut offsets = Offsets::of_entries(&numbers, None);
            check_neighbors(&offsets, &numbers, &mut rng);
            for _ in 0..5 {
                let at = rng.index(numbers.len());
                match rng.below(3) {
                    0 => {
                        offsets.set(at as u64, Offset::At(1 << 40));
                        numbers[at] = 1 << 40;
                    }
                    1 => {
                        offsets.insert(at as u64, Offset::At(0));
                        numbers.insert(at, 0);
                    }
                    _ if numbers.len() > 1 => {
                        offsets.remove(at as u64);
                        numbers.remove(at);
                    }
                    _ => {}
                }
                check_neighbors(&offsets, &numbers, &mut rng);
            }
        }
    }
}

fn check_neighbors(offsets: &Offsets, numbers: &[i64], rng: &mut Rng) {
    let places = || numbers.iter().copied().filter(|&each| each >= 0);
    let (low, high) = (places().min(), places().max());
    let some = (0..20).map(|_| *rng.pick(numbers)).filter(|&number| number >= 0);
    for number in low.into_iter().chain(high).chain(some) {
        let same = places().filter(|&each| each == number).count();
        let next = places().filter(|&each| each > number).min();
        let last = places().filter(|&each| each != number || same > 1).max();
        let found = offsets.neighbors(number as u64);
        assert_eq!(found.is_shared, same > 1);
        assert_eq!(found.next.map(|next| next as i64), next);
        assert_eq!(found.last.map(|last| last as i64), last);
    }
}

#[test]
fn many_equal_offsets_are_the_same_memory() {
    let mut offsets = Offsets::Alike(Offset::Special(Special::Zeros), 1 << 24);
    offsets.decode(0).unwrap();
    offsets.push(Offset::At(5));
    let Offsets::Each(blocks) = &offsets else { panic!("not one by one") };
    let first = blocks.blocks[0].numbers.get().unwrap();
    assert!(Arc::ptr_eq(first, blocks.blocks[8191].numbers.get().unwrap()));
    assert_eq!(offsets.decoded((1 << 24) - 1), Some(Offset::Special(Special::Zeros)));
    assert_eq!(offsets.decoded(1 << 24), Some(Offset::At(5)));
    assert_eq!(offsets.len(), (1 << 24) + 1);
}

/// A source that counts the bytes read.
struct Counted<'a>(&'a [u8], Cell<u64>);

impl ReadAt for Counted<'_> {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.1.set(self.1.get() + buffer.len() as u64);
        self.0.read_exact_at(offset, buffer)
    }
}

fn frame(count: usize) -> Vec<u8> {
    let params = Params { typesize: 4, ..Params::default() };
    let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[]).unwrap();
    let mut rng = Rng(1);
    let data: Vec<u8> = (0..64).map(|_| rng.below(256) as u8).collect();
    let chunk = Encoder::new(params).unwrap().encode(&data).unwrap();
    for _ in 0..count {
        writer.push_chunk(&chunk).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

#[test]
fn one_chunk_takes_one_block_of_the_index() {
    let bytes = frame(400_000);
    let source = Counted(&bytes, Cell::default());
    let frame = Frame::open(&source, &Limits::default()).unwrap();
    let opened = source.1.replace(0);
    // The ends of the file are read at once.
    assert!(opened < 2 * 4096 + 2000, "{opened} bytes to open");
    let chunk = frame.chunk(50_000).unwrap();
    let first = source.1.replace(0);
    assert!(first < 17_000, "{first} bytes for the first chunk");
    // Another one of the same block.
    assert_eq!(frame.chunk(50_100).unwrap(), chunk);
    assert!(source.1.get() < 500, "{} bytes for another one", source.1.get());
}

#[test]
fn a_broken_block_is_found_when_it_is_read() {
    let mut bytes = frame(3 * PER_BLOCK + 1);
    let header = Frame::open(&bytes[..], &Limits::default()).unwrap().header().clone();
    let index = header.header_len as usize + header.cbytes as usize;
    let start = bytes[index + EXTENDED_HEADER_LEN + 4..].first_chunk().copied().unwrap();
    let stream = index + u32::from_le_bytes(start) as usize;
    // The size of the only stream of the second block.
    bytes[stream] ^= 0x40;
    let frame = Frame::open(&bytes[..], &Limits::default()).unwrap();
    for number in [0, PER_BLOCK - 1, 2 * PER_BLOCK, 3 * PER_BLOCK] {
        frame.chunk(number as u64).unwrap();
    }
    for number in [PER_BLOCK, 2 * PER_BLOCK - 1] {
        let error = frame.chunk(number as u64).unwrap_err();
        assert!(matches!(error, Error::Format(_)), "{error}");
    }
    assert!(!check(&bytes, &Options::default()).unwrap().is_good());
    // A position after the chunks, in a block that decodes.
    let mut numbers: Vec<i64> = (0..5000).map(|number| 96 * number).collect();
    numbers[3000] = 1 << 20;
    let chunk = whole(&numbers);
    let offsets = read(&chunk, 5000, 96 * 5000);
    assert_eq!(offsets.get(1000, &chunk).unwrap(), Some(Offset::At(96_000)));
    assert!(matches!(offsets.get(2999, &chunk), Err(Error::Format(_))));
    // Changes are rejected before the index is loaded.
    let mut offsets = read(&chunk, 5000, 1 << 21);
    assert!(matches!(offsets.decode(0), Err(Error::Argument(_))));
    assert!(matches!(offsets.encode(None), Err(Error::Argument(_))));
    assert_eq!(offsets.get(5000, &chunk).unwrap(), None);
}

#[test]
fn tables_that_no_library_writes_are_not_read_by_blocks() {
    let numbers: Vec<i64> = (0..5000).map(|number| 96 * number).collect();
    let chunk = whole(&numbers);
    let header = chunk::Header::parse(&chunk).unwrap();
    let table = |entries: [u32; 3]| entries.map(u32::to_le_bytes).concat();
    let right: [u32; 3] = std::array::from_fn(|block| {
        let at = EXTENDED_HEADER_LEN + 4 * block;
        u32::from_le_bytes(chunk[at..at + 4].try_into().unwrap())
    });
    assert_eq!(ranges(&header, &table(right)).unwrap().len(), 3);
    let [first, second, third] = right;
    for wrong in [
        [second, first, third],
        [first, first, third],
        [0, second, third],
        [first, second, header.cbytes],
        [first, second, u32::MAX],
        [first, first + BLOCKSIZE + 5, third],
        [0xffff_fff0, 0x60, third],
        [0xffff_d000, 0xffff_fff0, 0x40],
    ] {
        assert_eq!(ranges(&header, &table(wrong)), None, "{wrong:?}");
    }
    assert_eq!(ranges(&header, &table(right)[..11]), None);
}
