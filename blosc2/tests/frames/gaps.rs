//! Gaps of contiguous frames: changes use them, so that a file does not grow without bound.

use std::fs;
use std::path::Path;

use blosc2::repair::{Repaired, repair};
use blosc2::storage::Storage;
use blosc2::{
    CParams, Check, Chunk, Codec, ErrorKind, NDArray, OpenOptions, Result, SChunk, Special, Target,
};
use blosc2_format::{Options, ReadAt, Severity, frame};

use super::common::{Rng, repeats};
use super::{folder, kind};

/// A file has at most twice the size of a copy without gaps, or 64 KiB more.
fn assert_small(len: u64, copy: u64, what: &str) {
    let most = (2 * copy).max(copy + (64 << 10));
    assert!(len <= most, "{what}: {len} bytes, a copy has {copy}");
}

fn assert_good(source: &impl ReadAt, what: &str) {
    let options = Options { content: true, ..Options::default() };
    let report = frame::check(source, &options).unwrap();
    let bad = report.findings.iter().find(|finding| finding.rule.severity > Severity::Note);
    assert!(bad.is_none() && report.is_complete(), "{what}: {bad:?}");
}

/// Random bytes, up to `most`.
fn any(rng: &mut Rng, most: usize) -> Vec<u8> {
    let len = 1 + rng.index(most);
    rng.bytes(len)
}

/// Bytes of any length. A part of them can be compressed.
fn random(rng: &mut Rng, most: usize) -> Vec<u8> {
    let mut bytes = any(rng, most);
    let from = rng.index(bytes.len() + 1);
    bytes[from..].fill(rng.next() as u8);
    bytes
}

/// A change of a super-chunk with chunks of any length.
fn change(schunk: &mut SChunk, model: &mut Vec<Vec<u8>>, most: usize, rng: &mut Rng) -> Result<()> {
    let count = model.len();
    let index = rng.index(count.max(1));
    match rng.below(if count < 60 { 20 } else { 40 }) {
        0..8 => {
            let at = if rng.below(3) == 0 { rng.index(count + 1) } else { count };
            let bytes = random(rng, most);
            schunk.insert(at, &bytes)?;
            model.insert(at, bytes);
        }
        8..15 if count > 0 => {
            model[index] = random(rng, most);
            schunk.replace(index, &model[index])?;
        }
        15 if count > 0 => {
            model[index] = vec![0; 1 + rng.index(most)];
            let zeros = Chunk::zeros::<u8>(model[index].len(), schunk.info().cparams)?;
            schunk.replace(index, &zeros)?;
        }
        16 => {
            let name = *rng.pick(&["one", "two"]);
            schunk.vlmeta_mut().set(name, random(rng, 5000))?;
        }
        17 if rng.below(20) == 0 => {
            let kept = rng.index(count + 1);
            schunk.remove(kept..)?;
            model.truncate(kept);
        }
        18 if rng.below(10) == 0 => {
            let mut order: Vec<usize> = (0..count).collect();
            (1..count).for_each(|at| order.swap(at, rng.index(at + 1)));
            schunk.reorder(&order)?;
            *model = order.iter().map(|&at| model[at].clone()).collect();
        }
        20.. => {
            schunk.remove(index)?;
            model.remove(index);
        }
        _ => {}
    }
    Ok(())
}

/// A sequence of changes of a super-chunk: `None` for one in memory.
fn of_schunk(path: Option<&Path>, seed: u64) {
    let mut rng = Rng(seed);
    let most = *rng.pick(&[100, 2_000, 20_000]);
    let what = format!("seed {seed}, chunks of up to {most} bytes");
    let options = OpenOptions::new().checksums(rng.below(3) == 0);
    let options = options.cparams(CParams::new().codec(Codec::Lz4));
    let mut schunk = match path {
        Some(path) => options.create_new(true).open(path).unwrap(),
        None => options.create_new(true).open(Vec::new()).unwrap(),
    };
    let reopens = rng.below(3) == 0;
    let mut model = Vec::new();
    let mut number = 0;
    while number < 2000 {
        if rng.below(20) == 0 {
            let count = rng.below(20);
            number += count;
            let (before, fails) = (model.clone(), rng.below(4) == 0);
            let result = schunk.transaction(|schunk| {
                for _ in 0..count {
                    change(schunk, &mut model, most, &mut rng)?;
                }
                if fails { schunk.remove(usize::MAX) } else { Ok(()) }
            });
            assert_eq!(result.is_err(), fails, "{what}");
            if fails {
                model = before;
            }
        } else {
            change(&mut schunk, &mut model, most, &mut rng).unwrap();
            number += 1;
        }
        if let Some(path) = path.filter(|_| reopens && rng.below(10) == 0) {
            drop(schunk);
            schunk = OpenOptions::new().write(true).open(path).unwrap();
        }
        if rng.below(40) == 0 || number >= 2000 {
            let what = format!("{what}, change {number}");
            let copy = schunk.to_cframe().unwrap();
            assert_small(schunk.frame_len().unwrap(), copy.len() as u64, &what);
            for (index, bytes) in model.iter().enumerate() {
                assert!(schunk.decompress_chunk::<u8>(index).unwrap() == *bytes, "{what}");
            }
        }
    }
    let bytes = match path {
        Some(path) => {
            drop(schunk);
            fs::read(path).unwrap()
        }
        None => schunk.into_cframe().unwrap(),
    };
    assert_good(&bytes, &what);
    let mut schunk = OpenOptions::new().write(true).open(bytes).unwrap();
    assert_eq!(schunk.nchunks(), model.len(), "{what}");
    schunk.compact().unwrap();
    for (index, bytes) in model.iter().enumerate() {
        assert!(schunk.decompress_chunk::<u8>(index).unwrap() == *bytes, "{what}, compact");
    }
    let copy = schunk.to_cframe().unwrap().len() as u64;
    let len = schunk.frame_len().unwrap();
    assert!(len <= copy + 1024 + 9 * model.len() as u64, "{what}, compact: {len}, {copy}");
}

/// A sequence of writes to an array, of changes of its shape, and of transactions.
fn of_array(path: &Path, seed: u64) {
    let mut rng = Rng(seed);
    let what = format!("seed {seed}");
    let columns = 1 + rng.below(80);
    let builder = NDArray::builder().chunk_shape([1 + rng.below(60), 1 + rng.below(60)]);
    let params = CParams::new().codec(Codec::BloscLz);
    let mut array = builder.cparams(params).target(path).zeros::<i64>([100, columns]).unwrap();
    let mut model: Vec<i64> = vec![0; 100 * columns as usize];
    let reopens = rng.below(3) == 0;
    for number in 0..2000 {
        let rows = model.len() as u64 / columns;
        match rng.below(60) {
            0 if rows < 200 => {
                let count = rng.below(30);
                let new: Vec<i64> = (0..count * columns).map(|_| rng.next() as i64 >> 40).collect();
                array.append(0, &new).unwrap();
                model.extend(new);
            }
            1 if rows > 20 => {
                let first = rng.below(rows - 10);
                array.delete(0, first..first + 10).unwrap();
                model.drain((first * columns) as usize..((first + 10) * columns) as usize);
            }
            2..10 => {
                let (row, value) = (rng.below(rows), *rng.pick(&[0, 7]));
                array.write((row..row + 1, ..), value).unwrap();
                model[(row * columns) as usize..][..columns as usize].fill(value);
            }
            _ => {
                let (row, column, value) = (rng.below(rows), rng.below(columns), rng.next() as i64);
                array.write([row, column], value).unwrap();
                model[(row * columns + column) as usize] = value;
            }
        }
        if reopens && rng.below(10) == 0 {
            drop(array);
            array = NDArray::open_with(path, &OpenOptions::new().write(true)).unwrap();
        }
        if rng.below(50) == 0 || number == 1999 {
            let copy = array.schunk().to_cframe().unwrap().len() as u64;
            assert_small(fs::metadata(path).unwrap().len(), copy, &format!("{what}, {number}"));
            assert!(array.read::<Vec<i64>>(..).unwrap() == model, "{what}, change {number}");
        }
    }
    drop(array);
    assert_good(&fs::read(path).unwrap(), &what);
    assert!(NDArray::open(path).unwrap().read::<Vec<i64>>(..).unwrap() == model, "{what}");
}

#[test]
fn no_sequence_of_changes_leaves_many_gaps() {
    for seed in 0..repeats(200) as u64 {
        let (_folder, path) = folder();
        match seed % 3 {
            0 => of_array(&path, seed),
            1 => of_schunk(Some(&path), seed),
            _ => of_schunk(None, seed),
        }
    }
}

/// A long index keeps its place while chunks are appended: unused bytes precede it. Other changes move it.
#[test]
fn a_long_index_keeps_its_place() {
    let mut kept = 0;
    for seed in 0..repeats(30) as u64 {
        let (_folder, path) = folder();
        let mut rng = Rng(seed);
        let most = *rng.pick(&[40, 300, 3000]);
        let what = format!("seed {seed}, chunks of up to {most} bytes");
        let mut model: Vec<Vec<u8>> =
            (0..2000 + rng.index(4500)).map(|_| random(&mut rng, most)).collect();
        let options = OpenOptions::new().cparams(CParams::new().codec(Codec::Lz4));
        let options = options.checksums(rng.below(4) == 0);
        let mut schunk = options.create_new(true).open(&path).unwrap();
        let append = |schunk: &mut SChunk, model: &mut Vec<Vec<u8>>, rng: &mut Rng| {
            let bytes = random(rng, most);
            model.push(bytes);
            schunk.append(&model[model.len() - 1])
        };
        let created =
            schunk.transaction(|schunk| model.iter().try_for_each(|bytes| schunk.append(bytes)));
        created.unwrap();
        for step in 0..300 {
            let before = schunk.cbytes();
            match rng.below(60) {
                0..50 => append(&mut schunk, &mut model, &mut rng).unwrap(),
                50 => {
                    let result = schunk.transaction(|schunk| {
                        for _ in 0..rng.below(4) {
                            append(schunk, &mut model, &mut rng)?;
                        }
                        change(schunk, &mut model, most, &mut rng)
                    });
                    result.unwrap();
                }
                51 if rng.below(3) == 0 => {
                    schunk.compact().unwrap();
                    let copy = SChunk::open(schunk.to_cframe().unwrap()).unwrap();
                    let (len, least) = (schunk.cbytes(), copy.cbytes());
                    assert!(len < least + 1024, "{what}, step {step}: {len}, {least}");
                }
                52 => {
                    schunk.remove(model.len() - 1).unwrap();
                    model.pop();
                }
                53 => schunk.vlmeta_mut().set("note", random(&mut rng, 100)).unwrap(),
                54..57 => {
                    drop(schunk);
                    schunk = OpenOptions::new().write(true).open(&path).unwrap();
                }
                _ => change(&mut schunk, &mut model, most, &mut rng).unwrap(),
            }
            kept += usize::from(schunk.cbytes() == before);
            if rng.below(50) == 0 || step == 299 {
                let what = format!("{what}, step {step}");
                let other = SChunk::open(&path).unwrap();
                assert_eq!(other.nchunks(), model.len(), "{what}");
                for (index, bytes) in model.iter().enumerate() {
                    assert!(other.decompress_chunk::<u8>(index).unwrap() == *bytes, "{what}");
                }
                assert_good(&fs::read(&path).unwrap(), &what);
            }
        }
    }
    assert!(kept > repeats(30) * 50, "{kept}");
}

/// Creates a super-chunk whose index has several blocks, with unused bytes before it. Chunk 0 is only in the index.
fn make_long_index(path: &Path, count: u32) {
    let mut schunk = SChunk::create::<u32>(path, CParams::new()).unwrap();
    let append = |schunk: &mut SChunk, number| schunk.append(&[number; 10]);
    schunk.transaction(|schunk| (0..count - 1).try_for_each(|each| append(schunk, each))).unwrap();
    append(&mut schunk, count - 1).unwrap();
}

/// Returns the position of the statement about unused bytes in the index.
fn statement_at(frame: &[u8]) -> Option<usize> {
    frame.windows(4).rposition(|part| part == b"b2sp")
}

/// Repair keeps the order of the chunks, and those that only the index records.
#[test]
fn repair_finds_a_long_index() {
    let count = 5000;
    let (_folder, whole) = folder();
    make_long_index(&whole, count);
    let bytes = fs::read(whole).unwrap();
    assert!(statement_at(&bytes).is_some());
    type Damage = fn(&mut [u8]);
    let damages: [(&str, Damage, &[usize]); 2] = [
        ("trailer", |bytes| *bytes.last_chunk_mut().unwrap() = [9; 20], &[]),
        ("chunk", |bytes| bytes[130..140].fill(0xff), &[1]),
    ];
    for (what, damage, expected) in damages {
        let (_folder, path) = folder();
        let mut bytes = bytes.clone();
        damage(&mut bytes);
        fs::write(&path, &bytes).unwrap();
        let Repaired::Rebuilt(rebuilt) = repair(&path).unwrap() else { panic!("{what}") };
        assert_eq!(rebuilt.lost.as_deref(), Some(expected), "{what}");
        let schunk = SChunk::open(&path).unwrap();
        let kept = (0..count).filter(|number| !expected.contains(&(*number as usize)));
        for (index, number) in kept.enumerate() {
            assert_eq!(schunk.decompress_chunk::<u32>(index).unwrap(), [number; 10], "{what}");
        }
    }
}

/// If the end of the chunks that the index states is damaged, the unused bytes are an ordinary gap.
#[test]
fn a_damaged_statement_about_unused_bytes_is_ignored() {
    let count = 5000;
    let (_folder, whole) = folder();
    make_long_index(&whole, count);
    let bytes = fs::read(whole).unwrap();
    let at = statement_at(&bytes).unwrap();
    for damaged in at..at + 16 {
        let (_folder, path) = folder();
        let mut bytes = bytes.clone();
        bytes[damaged] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let mut schunk = SChunk::open_rw(&path).unwrap();
        schunk.append(&[count; 10]).unwrap();
        drop(schunk);
        assert_good(&fs::read(&path).unwrap(), &format!("byte {damaged}"));
        let schunk = SChunk::open(&path).unwrap();
        for number in 0..=count {
            assert_eq!(schunk.decompress_chunk::<u32>(number as usize).unwrap(), [number; 10]);
        }
    }
}

/// The index of many special chunks is short. So are the unused bytes before it.
#[test]
fn a_short_index_of_many_chunks_gets_few_unused_bytes() {
    let (_folder, path) = folder();
    let mut schunk = SChunk::create::<u32>(&path, CParams::new()).unwrap();
    schunk.fill(Special::Zeros, 2_000_000, 10).unwrap();
    let mut kept = 0;
    for number in 0..60u32 {
        let before = schunk.cbytes();
        schunk.append(&[number; 10]).unwrap();
        kept += usize::from(schunk.cbytes() == before);
        if number % 20 == 1 {
            let copy = schunk.to_cframe().unwrap().len() as u64;
            assert_small(schunk.frame_len().unwrap(), copy, &format!("append {number}"));
        }
    }
    assert!(kept > 50, "{kept}");
}

/// A frame in memory gets no unused bytes, and its changes remove those that it had in a file.
#[test]
fn frames_in_memory_have_no_unused_bytes_before_a_long_index() {
    let (_folder, path) = folder();
    make_long_index(&path, 5000);
    let bytes = fs::read(&path).unwrap();
    assert!(statement_at(&bytes).is_some());
    let changes: [fn(&mut SChunk); 6] = [
        |schunk| schunk.compact().unwrap(),
        |schunk| schunk.append(&[1u32; 10]).unwrap(),
        |schunk| schunk.append(&(0..100_000u32).collect::<Vec<_>>()).unwrap(),
        |schunk| schunk.replace(7, &[7u32; 10]).unwrap(),
        |schunk| schunk.remove(3000..).unwrap(),
        |schunk| {
            schunk.remove(..).unwrap();
            schunk.append(&[1u32; 10]).unwrap();
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        let options = OpenOptions::new().write(true);
        let mut schunk = options.open(bytes.clone()).unwrap();
        change(&mut schunk);
        let copy = schunk.to_cframe().unwrap();
        let frame = schunk.into_cframe().unwrap();
        assert_eq!(statement_at(&frame), None, "change {number}");
        // The offsets of the copy can differ, and with them the compressed size of the index.
        assert!(frame.len() < copy.len() + 200, "change {number}");
        assert_good(&frame, &format!("change {number}"));
    }
}

/// Few chunks have an index that cannot state unused bytes.
#[test]
fn an_index_that_becomes_short_releases_the_unused_bytes_before_it() {
    let (_folder, path) = folder();
    make_long_index(&path, 2060);
    let mut schunk = SChunk::open_rw(&path).unwrap();
    (0..30).for_each(|_| schunk.remove(5).unwrap());
    let stored: usize = (0..2030).map(|index| schunk.chunk_info(index).unwrap().cbytes).sum();
    // The deleted chunks have about 70 bytes each.
    assert!(schunk.cbytes() < stored as u64 + 30 * 75, "{} {stored}", schunk.cbytes());
}

/// The statement has no meaning in the index of a directory.
#[test]
fn a_directory_has_no_unused_bytes_before_its_index() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    let mut schunk =
        OpenOptions::new().create_new(true).open(Target::from(&path).directory(true)).unwrap();
    let mut append = |number: u32| schunk.append(&number.to_le_bytes());
    (0..2100).for_each(|number| append(number).unwrap());
    let cbytes = schunk.cbytes();
    drop(schunk);
    let index = path.join("chunks.b2frame");
    let mut bytes = fs::read(&index).unwrap();
    let start = u32::from_be_bytes(bytes[11..15].try_into().unwrap()) as usize;
    for at in [12, 32, 36].map(|at| start + at) {
        let number = u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) + 16;
        bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
    }
    bytes.splice(start + 40..start + 40, *b"b2sp\x8a\xb2\x28\x8c\0\0\0\0\0\0\0\0");
    let len = bytes.len() as u64;
    bytes[16..24].copy_from_slice(&len.to_be_bytes());
    fs::write(&index, &bytes).unwrap();
    let mut schunk = SChunk::open_rw(&path).unwrap();
    assert_eq!(schunk.cbytes(), cbytes);
    let deleted = schunk.chunk_info(5).unwrap().cbytes as u64;
    schunk.remove(5).unwrap();
    assert_eq!(schunk.cbytes(), cbytes - deleted);
    let schunk = SChunk::open(&path).unwrap();
    assert_eq!((schunk.nchunks(), schunk.cbytes()), (2099, cbytes - deleted));
}

/// A change of a chunk by a program that does not lock the file is never lost.
#[test]
fn writers_notice_that_a_chunk_was_stored_before_a_long_index() {
    let (_folder, path) = folder();
    // The stored sizes differ, so that the change of an offset does not always make the index longer.
    let mut rng = Rng(3);
    let mut schunk = SChunk::create::<u8>(&path, CParams::new()).unwrap();
    let items = |rng: &mut Rng, most| [any(rng, most), vec![0; 300]].concat()[..300].to_vec();
    let append = |schunk: &mut SChunk, rng: &mut Rng| schunk.append(&items(rng, 200));
    schunk.transaction(|schunk| (0..5000).try_for_each(|_| append(schunk, &mut rng))).unwrap();
    append(&mut schunk, &mut rng).unwrap();
    drop(schunk);
    let bytes = fs::read(&path).unwrap();
    assert!(statement_at(&bytes).is_some());
    let longer = rng.bytes(300);
    for index in 4900..5000 {
        fs::write(&path, &bytes).unwrap();
        let mut schunk = SChunk::open_rw(&path).unwrap();
        change_elsewhere(&path, |schunk| schunk.replace(index, &longer).unwrap());
        let updated = schunk.replace(7, &longer);
        assert!(updated.is_err_and(|error| error.kind() == ErrorKind::Busy), "chunk {index}");
        assert!(schunk.decompress_chunk::<u8>(index).unwrap() == longer, "chunk {index}");
    }
}

/// Changes a file as another program does that locks nothing: the handles of this program do not know of it.
fn change_elsewhere(path: &Path, change: impl FnOnce(&mut SChunk)) {
    let (_folder, copy) = folder();
    fs::copy(path, &copy).unwrap();
    let mut schunk = OpenOptions::new().write(true).open(&copy).unwrap();
    change(&mut schunk);
    drop(schunk);
    fs::write(path, fs::read(copy).unwrap()).unwrap();
}

/// A reader with an old index returns the items of a chunk or an error, but never the items of another chunk.
#[test]
fn readers_notice_that_a_gap_was_used() {
    for keeps_time in [false, true] {
        for len in [1000, 3000, 20_000] {
            let (_folder, path) = folder();
            let mut rng = Rng(len as u64);
            // All chunks have the same length, so that only the position of the index shows a change.
            let options = OpenOptions::new().create_new(true).cparams(CParams::new().level(0));
            let mut schunk = options.open(&path).unwrap();
            let mut model: Vec<Vec<u8>> = (0..80).map(|_| rng.bytes(len)).collect();
            model.iter().for_each(|bytes| schunk.append(bytes).unwrap());
            drop(schunk);
            change_elsewhere(&path, |schunk| {
                let zeros = Chunk::zeros::<u8>(len, schunk.info().cparams).unwrap();
                schunk.replace(20, &zeros).unwrap();
                model[20].fill(0);
            });
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            let readers: Vec<SChunk> = (0..3).map(|_| SChunk::open(&path).unwrap()).collect();
            let old = model.clone();
            let mut errors = 0;
            for round in 0..30 {
                // Chunk 21 moves to the gap, chunk 22 to the gap that this leaves, and so on.
                change_elsewhere(&path, |schunk| {
                    schunk.compact().unwrap();
                    let index = 30 + round;
                    let zeros = Chunk::zeros::<u8>(len, schunk.info().cparams).unwrap();
                    schunk.replace(index, &zeros).unwrap();
                    model[index].fill(0);
                    let index = 20 + round;
                    model[index] = rng.bytes(len);
                    schunk.replace(index, &model[index]).unwrap();
                });
                if keeps_time {
                    // As if all of this took less time than the clock of the file system can show.
                    let file = fs::File::options().write(true).open(&path).unwrap();
                    file.set_modified(time).unwrap();
                }
                for index in 0..80 {
                    match readers[0].decompress_chunk::<u8>(index) {
                        Ok(found) => {
                            let is_known = found == old[index] || found == model[index];
                            assert!(is_known, "{len} bytes, round {round}, chunk {index}");
                        }
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                            errors += 1;
                        }
                    }
                }
                let all = readers[1].read::<u8>(..);
                assert!(all.is_err_and(|error| error.kind() == ErrorKind::Busy));
            }
            assert!(errors > 0, "{len} bytes");
            let [mut reader, ..] = <[SChunk; 3]>::try_from(readers).unwrap();
            reader.refresh().unwrap();
            for (index, bytes) in model.iter().enumerate() {
                assert!(reader.decompress_chunk::<u8>(index).unwrap() == *bytes);
            }
        }
    }
}

/// A reader of a file that another program only extends continues to read its chunks.
#[test]
fn readers_without_locking_read_what_stays() {
    let (_folder, path) = folder();
    let mut schunk = SChunk::create::<u8>(&path, CParams::new().level(0)).unwrap();
    (0..20u8).for_each(|number| schunk.append(&[number; 3000]).unwrap());
    drop(schunk);
    let reader = SChunk::open(&path).unwrap();
    for number in 20..30u8 {
        change_elsewhere(&path, |schunk| schunk.append(&[number; 3000]).unwrap());
        for index in 0..20 {
            assert_eq!(reader.decompress_chunk::<u8>(index).unwrap(), [index as u8; 3000]);
        }
    }
    assert_eq!(reader.read::<u8>(..).unwrap().len(), 60_000);
}

#[test]
fn writes_of_one_item_do_not_make_a_file_grow() {
    let (_folder, path) = folder();
    let builder = NDArray::builder().chunk_shape([50, 100]).target(&path);
    let mut array = builder.zeros::<i64>([100, 100]).unwrap();
    let mut rng = Rng(1);
    for _ in 0..repeats(10_000) {
        array.write([rng.below(100), rng.below(100)], rng.next() as i64).unwrap();
    }
    let copy = array.schunk().to_cframe().unwrap().len() as u64;
    assert_small(fs::metadata(&path).unwrap().len(), copy, "writes of one item");
}

/// Each handle makes one change, so that none of them has made the gaps that it uses.
#[test]
fn handles_find_the_gaps_of_others() {
    for (count, len) in [(20, 5000), (3000, 100)] {
        let (_folder, path) = folder();
        let mut schunk = SChunk::create::<u8>(&path, CParams::new().level(0)).unwrap();
        let mut rng = Rng(2);
        let filled = schunk
            .transaction(|schunk| (0..count).try_for_each(|_| schunk.append(&rng.bytes(len))));
        filled.unwrap();
        // Chunks of any length, so that few of them fit in place of the last one.
        schunk
            .transaction(|schunk| {
                (0..count).try_for_each(|index| schunk.replace(index, &any(&mut rng, len)))
            })
            .unwrap();
        drop(schunk);
        for number in 0..2 * count {
            let mut schunk = OpenOptions::new().write(true).open(&path).unwrap();
            let index = rng.index(count);
            let bytes = any(&mut rng, len);
            schunk.replace(index, &bytes).unwrap();
            assert!(schunk.decompress_chunk::<u8>(index).unwrap() == bytes);
            if number % 100 == 0 {
                let copy = schunk.to_cframe().unwrap().len() as u64;
                let what = format!("{count} chunks, change {number}");
                assert_small(schunk.frame_len().unwrap(), copy, &what);
            }
        }
        assert_good(&fs::read(&path).unwrap(), "handles");
    }
}

/// Opening, reading and appending read no headers of other chunks.
/// The gaps are searched before a change. A change can make all of them, in a file that had none before.
#[test]
fn a_transaction_that_removes_most_chunks_of_a_file_leaves_few_gaps() {
    let (_folder, path) = folder();
    let mut rng = Rng(5);
    let chunks: Vec<Vec<u8>> = (0..1000).map(|_| rng.bytes(1000)).collect();
    let mut schunk = SChunk::create::<u8>(&path, CParams::new().level(0)).unwrap();
    chunks.iter().for_each(|chunk| schunk.append(chunk).unwrap());
    drop(schunk);
    let mut schunk = OpenOptions::new().write(true).open(&path).unwrap();
    let remove = |schunk: &mut SChunk| {
        (0..1000).rev().filter(|at| at % 20 != 3).try_for_each(|at| schunk.remove(at))
    };
    schunk.transaction(remove).unwrap();
    let copy = schunk.to_cframe().unwrap();
    assert_small(schunk.frame_len().unwrap(), copy.len() as u64, "after the transaction");
    for (index, chunk) in chunks.iter().skip(3).step_by(20).enumerate() {
        assert!(schunk.decompress_chunk::<u8>(index).unwrap() == *chunk);
    }
    drop(schunk);
    assert_good(&fs::read(&path).unwrap(), "after the transaction");
}

#[test]
fn an_append_reads_no_other_chunks() {
    #[derive(Debug)]
    struct Counted(Vec<u8>, std::sync::Arc<std::sync::atomic::AtomicUsize>);

    impl ReadAt for Counted {
        fn size(&self) -> std::io::Result<u64> {
            self.0.size()
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<()> {
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.read_exact_at(offset, buffer)
        }
    }

    impl Storage for Counted {
        fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> std::io::Result<()> {
            self.0.write_all_at(offset, bytes)
        }

        fn set_size(&mut self, size: u64) -> std::io::Result<()> {
            self.0.set_size(size)
        }
    }

    let mut schunk = SChunk::in_memory::<u8>(CParams::new().level(0)).unwrap();
    (0..1000).for_each(|number| schunk.append(&[number as u8; 100]).unwrap());
    let count = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let storage = Counted(schunk.to_cframe().unwrap(), count.clone());
    let mut schunk = OpenOptions::new().write(true).open(Target::storage(storage)).unwrap();
    let reads = || count.swap(0, std::sync::atomic::Ordering::Relaxed);
    reads();
    schunk.append(&[7u8; 100]).unwrap();
    assert!(reads() < 20);
    // A sample shows that there are no gaps.
    schunk.replace(0, &[7u8; 200]).unwrap();
    assert!((64..100).contains(&reads()));
    schunk.replace(1, &[7u8; 200]).unwrap();
    assert!(reads() < 20);
}

#[test]
fn a_frame_is_compacted_in_place() {
    for durable in [false, true] {
        let (_folder, path) = folder();
        let options = OpenOptions::new().create_new(true).durable(durable).checksums(true);
        let mut schunk = options.cparams(CParams::new().level(0)).open(&path).unwrap();
        let mut rng = Rng(3);
        let mut model: Vec<Vec<u8>> = (0..50).map(|_| rng.bytes(10_000)).collect();
        model.iter().for_each(|bytes| schunk.append(bytes).unwrap());
        for index in (0..50).step_by(2).rev().filter(|index| index % 3 > 0) {
            schunk.remove(index).unwrap();
            model.remove(index);
        }
        drop(schunk);
        let reader = SChunk::open(&path).unwrap();
        let mut schunk = OpenOptions::new().write(true).durable(durable).open(&path).unwrap();
        let before = fs::metadata(&path).unwrap().len();
        schunk.compact().unwrap();
        let len = fs::metadata(&path).unwrap().len();
        let copy = schunk.to_cframe().unwrap().len() as u64;
        assert!(before > copy + 50_000 && len <= copy + 1024, "{before}, {len}, {copy}");
        for handle in [&schunk, &reader] {
            for (index, bytes) in model.iter().enumerate() {
                assert!(handle.decompress_chunk::<u8>(index).unwrap() == *bytes);
            }
        }
        assert_good(&fs::read(&path).unwrap(), "compact");
        let failed = schunk.transaction(|schunk| {
            schunk.remove(0)?;
            schunk.compact()
        });
        assert_eq!(kind(failed), ErrorKind::InvalidArgument);
        schunk.compact().unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), len, "nothing is left to move");
    }
    let (_folder, path) = folder();
    let mut directory =
        OpenOptions::new().create_new(true).open(Target::from(&path).directory(true)).unwrap();
    directory.append(&[1u8, 2, 3]).unwrap();
    directory.compact().unwrap();
    let mut memory = SChunk::in_memory::<u8>(CParams::new()).unwrap();
    memory.append(&[1u8, 2, 3]).unwrap();
    memory.compact().unwrap();
}

/// Chunks that overlap, and damaged headers of chunks: their bytes are not taken for gaps.
#[test]
fn the_gaps_of_damaged_frames_are_not_used() {
    let mut rng = Rng(4);
    let mut schunk = OpenOptions::new()
        .cparams(CParams::new().level(0))
        .create_new(true)
        .open(Vec::new())
        .unwrap();
    let model: Vec<Vec<u8>> = (0..20).map(|_| rng.bytes(3000)).collect();
    model.iter().for_each(|bytes| schunk.append(bytes).unwrap());
    let bytes = schunk.to_cframe().unwrap();
    // The header of chunk 10 states another length.
    let start = bytes.windows(3000).position(|window| window == model[10]).unwrap() - 32;
    for len in [100u32, 4000] {
        let mut bytes = bytes.clone();
        bytes[start + 12..start + 16].copy_from_slice(&len.to_le_bytes());
        let mut schunk = OpenOptions::new().write(true).check(Check::Header).open(bytes).unwrap();
        for index in [3, 4, 5] {
            schunk.replace(index, &rng.bytes(3000)).unwrap();
        }
        for index in [0, 1, 2, 9, 11, 19] {
            assert!(schunk.decompress_chunk::<u8>(index).unwrap() == model[index], "{len}");
        }
    }
}
