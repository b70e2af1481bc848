//! Reads of chunks and items: whole, in ranges and one at a time.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::{fs, io};

use blosc2::storage::{ReadAt, Storage};
use blosc2::{
    CParams, Codec, DParams, ErrorKind, Filter, OpenOptions, SChunk, Special, SplitMode, Target,
    Threads,
};

use super::common::{Rng, codecs};
use super::{CHUNK, PLACES, Place, assert_keeps, filled, folder, kind, model};

#[test]
fn every_parameter_on_every_storage() {
    let filters = [&[][..], &[Filter::Delta], &[Filter::Delta, Filter::Bitshuffle]];
    for place in PLACES {
        for codec in codecs() {
            for (filters, threads) in filters.into_iter().zip([1, 2, 4]) {
                for count in [0, 1, 10] {
                    let (_folder, path) = folder();
                    let params = CParams::new()
                        .codec(codec)
                        .filters(filters)
                        .threads(Threads::new(threads))
                        .blocksize(1024);
                    let model = model(count);
                    let schunk = filled(place, &path, &params, &model);
                    assert_keeps(place, schunk, &path, &model, &format!("{params:?}"));
                }
            }
        }
    }
}

#[test]
fn items_of_more_than_255_bytes() {
    let mut rng = Rng(3);
    for place in PLACES {
        for (typesize, blocksize) in [(255, None), (256, None), (256, Some(2560)), (300, None)] {
            for count in [1, 7, 500] {
                let (_folder, path) = folder();
                let data: Vec<u8> = (0..3 * count * typesize).map(|at| (at / 7) as u8).collect();
                let mut params = CParams::new().typesize(typesize).filters(&[Filter::Shuffle]);
                params.blocksize = blocksize;
                let mut schunk = place.make(&path, &OpenOptions::new().cparams(&params));
                for chunk in data.chunks(count * typesize) {
                    schunk.append(chunk).unwrap();
                }
                let schunk = place.reopened(schunk, &path);
                let what = format!("{place:?}, {count} items of {typesize} bytes");
                assert_eq!(
                    (schunk.typesize(), schunk.len()),
                    (typesize, 3 * count as u64),
                    "{what}"
                );
                assert!(schunk.read::<u8>(..).unwrap() == data, "{what}");
                for _ in 0..20 {
                    let item = rng.below(3 * count as u64);
                    let bytes = item * typesize as u64..(item + 1) * typesize as u64;
                    let expected = &data[bytes.start as usize..bytes.end as usize];
                    assert!(schunk.read::<u8>(bytes.clone()).unwrap() == expected, "{what}");
                    let numbers: Vec<u64> = bytes.rev().collect();
                    let reversed: Vec<u8> = expected.iter().rev().copied().collect();
                    assert!(schunk.read::<u8>(&numbers).unwrap() == reversed, "{what}");
                }
            }
        }
    }
}

#[test]
fn ranges_across_chunks() {
    let mut rng = Rng(4);
    for place in PLACES {
        for (count, rest) in [(0, 0), (1, 0), (10, 0), (4, 7), (0, 1)] {
            let (_folder, path) = folder();
            let mut chunks = model(count + usize::from(rest > 0));
            if rest > 0 {
                chunks[count].truncate(rest);
            }
            let params = CParams::new().blocksize(800);
            let schunk = filled(place, &path, &params, &chunks);
            let schunk = assert_keeps(place, schunk, &path, &chunks, "to be read in ranges");
            let all = chunks.concat();
            let len = all.len();
            let mut ranges =
                vec![0..len, 0..0, len..len, 0..len.min(1), len.saturating_sub(1)..len];
            ranges.push(len.min(CHUNK - 1)..len.min(CHUNK + 1));
            for _ in 0..30 {
                let start = rng.below(len as u64 + 1) as usize;
                ranges.push(start..start + rng.below((len - start) as u64 + 1) as usize);
            }
            for range in ranges {
                let items = schunk.read::<i32>(range.clone()).unwrap();
                assert!(items == all[range.clone()], "{place:?}, {range:?}");
                let mut target = vec![-1; range.len()];
                schunk.read_into(range.clone(), &mut target).unwrap();
                assert!(target == all[range.clone()], "{place:?}, {range:?}");
            }
            let len = len as u64;
            for range in [0..len + 1, len + 1..len + 1, len..u64::MAX, u64::MAX..u64::MAX] {
                let outside = schunk.read::<i32>(range.clone());
                assert_eq!(kind(outside), ErrorKind::OutOfBounds, "{place:?}, {range:?}");
            }
            let (from, to) = (len + 1, len);
            assert!(schunk.read::<i32>(from..to).is_err(), "{place:?}");
        }
    }
}

#[test]
fn a_range_reads_its_chunks_only() {
    // Reading a chunk that is not needed would fail.
    let (_folder, path) = folder();
    let model = model(10);
    drop(filled(Place::File, &path, &CParams::new(), &model));
    let good = fs::read(&path).unwrap();
    let header = u32::from_be_bytes(good[11..15].try_into().unwrap()) as usize;
    let places: Vec<usize> = SChunk::open(&path)
        .unwrap()
        .offsets()
        .unwrap()
        .into_iter()
        .map(|at| at.unwrap() as usize)
        .collect();
    let len = 10 * CHUNK as u64;
    let size = CHUNK as u64;
    let all = model.concat();
    for (range, chunks) in [
        (0..size, 0..1),
        (0..size + 1, 0..2),
        (size - 1..size, 0..1),
        (size..3 * size, 1..3),
        (5 * size + 3..7 * size + 1, 5..8),
        (9 * size..len, 9..10),
        (0..len, 0..10),
    ] {
        let with_broken = |index: usize| {
            let mut bytes = good.clone();
            bytes[header + places[index]..][..32].fill(0xff);
            let options = OpenOptions::new().check(blosc2::Check::Header);
            options.open(bytes).unwrap().read::<i32>(range.clone())
        };
        let touched: BTreeSet<usize> = (0..10).filter(|&at| with_broken(at).is_err()).collect();
        assert_eq!(touched, chunks.collect(), "{range:?}");
        if let Some(other) = (0..10).find(|at| !touched.contains(at)) {
            let found = with_broken(other).unwrap();
            assert!(found == all[range.start as usize..range.end as usize], "{range:?}");
        }
    }
}

#[test]
fn single_items_in_any_order() {
    let coords = [
        0u64, 1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 130, 191, 192, 255, 256, 257, 300, 383,
        384, 511, 512, 513, 700, 701, 702, 895, 896, 897, 1022, 1023,
    ];
    let reversed: Vec<u64> = coords.iter().rev().flat_map(|&at| [at, at]).collect();
    let filters = [
        &[][..],
        &[Filter::Shuffle],
        &[Filter::Bitshuffle],
        &[Filter::Delta],
        &[Filter::Delta, Filter::Bitshuffle],
    ];
    for place in PLACES {
        for typesize in [2, 4, 8] {
            for filters in filters {
                for (threads, items) in [(1, 1024u64), (4, 1024), (4, 1025)] {
                    let (_folder, path) = folder();
                    let data: Vec<u8> = (0..items)
                        .flat_map(|at| {
                            let item = at.wrapping_mul(1_315_423_911).wrapping_add(0x1234_5678);
                            item.to_le_bytes().into_iter().take(typesize)
                        })
                        .collect();
                    let params = CParams::new()
                        .typesize(typesize)
                        .filters(filters)
                        .blocksize(32 * typesize)
                        .threads(Threads::new(threads));
                    let options = OpenOptions::new().cparams(&params);
                    let mut schunk = place.make(&path, &options);
                    for chunk in data.chunks(128 * typesize) {
                        schunk.append(chunk).unwrap();
                    }
                    let mut schunk = place.reopened(schunk, &path);
                    schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
                    let what = format!("{place:?}, {params:?}");
                    for numbers in [&coords[..], &reversed, &[items - 1], &[]] {
                        let expected: Vec<u8> = numbers
                            .iter()
                            .flat_map(|&at| &data[at as usize * typesize..][..typesize])
                            .copied()
                            .collect();
                        let found = match typesize {
                            2 => bytes(schunk.read::<u16>(numbers).unwrap(), u16::to_ne_bytes),
                            4 => bytes(schunk.read::<i32>(numbers).unwrap(), i32::to_ne_bytes),
                            _ => bytes(schunk.read::<u64>(numbers).unwrap(), u64::to_ne_bytes),
                        };
                        assert_eq!(found, expected, "{what}");
                    }
                    for outside in [items * typesize as u64, u64::MAX] {
                        let found = schunk.read::<u8>(&[0, outside]);
                        assert_eq!(kind(found), ErrorKind::OutOfBounds, "{what}");
                    }
                }
            }
        }
        let (_folder, path) = folder();
        let mut schunk = place.make(&path, &OpenOptions::new().typesize(4));
        schunk.fill(Special::Zeros, 1024, 128).unwrap();
        assert_eq!(schunk.read::<f32>(&coords).unwrap(), [0.0; 32], "{place:?}");
    }
}

fn bytes<T, const N: usize>(items: Vec<T>, to: fn(T) -> [u8; N]) -> Vec<u8> {
    items.into_iter().flat_map(to).collect()
}

#[test]
fn lazy_chunks_read_what_is_asked_for() {
    for place in PLACES {
        for codec in [Codec::BloscLz, Codec::Lz4] {
            for (split, threads) in [(SplitMode::Always, 1), (SplitMode::Never, 2)] {
                let (_folder, path) = folder();
                let params = CParams::new()
                    .codec(codec)
                    .split(split)
                    .blocksize(1000)
                    .filters(&[Filter::Shuffle]);
                let model = model(4);
                let schunk = filled(place, &path, &params, &model);
                let mut schunk = place.reopened(schunk, &path);
                schunk.set_dparams(DParams::new().threads(Threads::new(threads)));
                for (index, chunk) in model.iter().enumerate() {
                    let what = format!("{place:?}, {params:?}, chunk {index}");
                    let info = schunk.chunk_info(index).unwrap();
                    assert_eq!((info.nbytes, info.blocksize), (4 * CHUNK, Some(1000)));
                    for range in [0..CHUNK, 0..1, 249..251, 250..500, CHUNK - 1..CHUNK, 7..7] {
                        let start = index * CHUNK;
                        let found = schunk.read::<i32>(start + range.start..start + range.end);
                        assert!(found.unwrap() == chunk[range], "{what}");
                    }
                    let block: Vec<u8> = bytes(chunk[250..500].to_vec(), i32::to_ne_bytes);
                    assert!(schunk.block(index, 1).unwrap() == block, "{what}");
                    let whole = schunk.chunk(index).unwrap();
                    assert!(whole.decompress::<i32>().unwrap() == *chunk, "{what}");
                    assert_eq!(kind(schunk.block(index, 6)), ErrorKind::OutOfBounds, "{what}");
                }
            }
        }
    }
}

/// Bytes that record the calls.
#[derive(Debug, Clone, Default)]
struct Noted {
    bytes: Arc<Mutex<Vec<u8>>>,
    calls: Arc<Mutex<BTreeSet<&'static str>>>,
    /// The call that fails.
    fails: Arc<Mutex<&'static str>>,
}

impl Noted {
    fn call(&self, name: &'static str) -> io::Result<()> {
        self.calls.lock().unwrap().insert(name);
        match *self.fails.lock().unwrap() == name {
            true => Err(io::Error::other("the disk is on fire")),
            false => Ok(()),
        }
    }

    fn take(&self) -> BTreeSet<&'static str> {
        std::mem::take(&mut *self.calls.lock().unwrap())
    }
}

impl ReadAt for Noted {
    fn size(&self) -> io::Result<u64> {
        self.bytes.lock().unwrap().size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.call("read")?;
        self.bytes.lock().unwrap().read_exact_at(offset, buffer)
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        self.call("read ranges")?;
        self.bytes.lock().unwrap().read_ranges_at(ranges)
    }
}

impl Storage for Noted {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.call("write")?;
        self.bytes.lock().unwrap().write_all_at(offset, bytes)
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.call("cut")?;
        self.bytes.lock().unwrap().set_size(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.call("sync")
    }
}

#[test]
fn a_custom_storage_backend_is_called() {
    let storage = Noted::default();
    let mut model = model(20);
    // It is not read with its header, because it cannot be compressed.
    let mut rng = Rng(1);
    model[3].fill_with(|| rng.next() as i32);
    let options = OpenOptions::new().typesize(4).create_new(true);
    let mut schunk = options.open(Target::storage(storage.clone())).unwrap();
    for chunk in &model {
        schunk.append(chunk).unwrap();
    }
    assert!(storage.take().contains("write"));
    schunk.remove(19).unwrap();
    assert!(storage.take().contains("cut"), "the frame has become shorter");
    schunk.sync().unwrap();
    assert!(storage.take().contains("sync"));
    drop(schunk);

    let schunk = OpenOptions::new().open(Target::storage(storage.clone())).unwrap();
    for (index, chunk) in model[..19].iter().enumerate() {
        assert!(schunk.decompress_chunk::<i32>(index).unwrap() == *chunk);
    }
    assert_eq!(storage.take(), BTreeSet::from(["read", "read ranges"]));
    // Faults in reading the header of a chunk, and in reading its data.
    for call in ["read", "read ranges"] {
        *storage.fails.lock().unwrap() = call;
        let error = schunk.decompress_chunk::<i32>(3).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert_eq!(error.to_string(), "cannot read chunk 3: the disk is on fire");
    }
    *storage.fails.lock().unwrap() = "read";
    assert_eq!(kind(OpenOptions::new().open(Target::storage(storage))), ErrorKind::Io);
}

#[test]
fn a_fault_reads_the_same_in_bytes_and_in_a_file() {
    let (_folder, path) = folder();
    let mut schunk = OpenOptions::new().typesize(4).create_new(true).open(Vec::new()).unwrap();
    for chunk in model(3) {
        schunk.append(&chunk).unwrap();
    }
    let good = schunk.into_cframe().unwrap();
    let header_len = u32::from_be_bytes(good[0x0b..0x0f].try_into().unwrap());
    for (at, byte) in [(3, b'x'), (0x10, 0x7f), (0x16, 0x55), (0x25, 0xff), (good.len() - 30, 1)] {
        let mut bytes = good.clone();
        bytes[at] = byte;
        fs::write(&path, &bytes).unwrap();
        let in_bytes = SChunk::open(bytes).unwrap_err();
        let in_file = SChunk::open(&path).unwrap_err();
        let place = format!(" ({})", path.display());
        assert_eq!(in_bytes.to_string(), in_file.to_string().replace(&place, ""), "byte {at}");
        assert_eq!(in_bytes.kind(), in_file.kind());
    }
    // The errors of later checks of a file name the chunk.
    let mut bytes = good;
    bytes[header_len as usize + 12..][..4].fill(0x7f);
    let text = SChunk::open(bytes).unwrap_err().to_string();
    let at = header_len + 12;
    let expected =
        format!("cannot open a frame: chunk 0: position of a chunk at byte {at}: expected");
    assert!(text.starts_with(&expected), "{text}");
}

#[test]
fn positions_that_cannot_be() {
    let (_folder, path) = folder();
    let all: Vec<u8> = (0..32).collect();
    fs::write(&path, &all).unwrap();
    let file = fs::File::options().read(true).write(true).open(&path).unwrap();
    let storages: [Box<dyn Storage>; 2] = [Box::new(file), Box::new(super::map(&path))];
    for mut storage in storages {
        storage.write_all_at(8, &[1, 2, 3, 4]).unwrap();
        let mut four = [0; 4];
        storage.read_exact_at(8, &mut four).unwrap();
        assert_eq!(four, [1, 2, 3, 4]);
        for offset in [29, 32, 33, 1 << 40, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX] {
            assert!(storage.read_exact_at(offset, &mut four).is_err(), "{offset}");
        }
        for offset in [i64::MAX as u64 - 1, u64::MAX - 1, u64::MAX] {
            assert!(storage.write_all_at(offset, &four).is_err(), "{offset}");
        }
        assert_eq!(storage.size().unwrap(), 32);
        storage.write_all_at(8, &all[8..12]).unwrap();
    }
    assert_eq!(fs::read(&path).unwrap(), all);
}
