//! Rules of super-chunks with several handles, failing storages, limits and sizes. A review once found each of them
//! violated.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::{fs, io, mem, thread};

use blosc2::storage::{ReadAt, Storage};
use blosc2::super_chunk::VariableBlocks;
use blosc2::{
    CParams, Chunk, ErrorKind, Limits, NDArray, OpenOptions, SChunk, SChunkWriter, Special, Target,
    compress,
};
use tempfile::TempDir;

use crate::common::measure::measure;
use crate::common::{Kind, Rng, data, name, upstream_files};

fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("frame");
    (folder, path)
}

fn locking(path: &Path) -> SChunk {
    OpenOptions::new().write(true).create(true).locking(true).typesize(4).open(path).unwrap()
}

fn kind<T>(result: blosc2::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

/// Shared memory with injected faults.
#[derive(Clone, Default)]
struct Failing(Arc<Mutex<Vec<u8>>>, Arc<Faults>);

/// Which read and which write from now on fail, counted from 1; 0 for none.
#[derive(Default)]
struct Faults {
    read: AtomicUsize,
    write: AtomicUsize,
}

fn count(left: &AtomicUsize) -> io::Result<()> {
    let before = left.load(Relaxed);
    left.store(before.saturating_sub(1), Relaxed);
    if before == 1 { Err(io::Error::other("told to fail")) } else { Ok(()) }
}

impl ReadAt for Failing {
    fn size(&self) -> io::Result<u64> {
        self.0.lock().unwrap().size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        count(&self.1.read)?;
        self.0.lock().unwrap().read_exact_at(offset, buffer)
    }
}

impl Storage for Failing {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        count(&self.1.write)?;
        self.0.lock().unwrap().write_all_at(offset, bytes)
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.0.lock().unwrap().set_size(size)
    }
}

#[test]
fn a_writer_of_items_and_a_reader_let_each_other_go_on() {
    let (_folder, path) = folder();
    let (mut a, b) = (locking(&path), locking(&path));
    a.append(&[0i32; 100]).unwrap();
    a.append(&[0i32; 100]).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| (1..=100).for_each(|count| a.write(50, &[count; 100]).unwrap()));
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let items = b.read::<i32>(..).unwrap();
                    assert!(items[50..150].iter().all(|&item| item == items[50]));
                }
            });
        }
    });
    assert_eq!(b.read::<i32>(149..150).unwrap(), [100]);
}

#[test]
fn bytes_of_others_come_back_as_they_were() {
    let root = blosc2_testing::root();
    let golden = root.join("crates/format/tests/golden/files/old-frames");
    let golden = golden.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let golden = golden.filter(|path| path.is_file() && name(path).starts_with("2."));
    let files: Vec<PathBuf> = golden.chain(upstream_files("compat", ".b2frame")).collect();
    assert!(files.len() > 10, "{files:?}");
    for path in files {
        let bytes = fs::read(&path).unwrap();
        let schunk = SChunk::open(bytes.clone()).unwrap();
        assert_eq!(schunk.frame_len().unwrap(), bytes.len() as u64, "{path:?}");
        assert!(schunk.into_cframe().unwrap() == bytes, "{path:?}");
    }
}

#[test]
fn copies_have_each_chunk_once_while_another_handle_reorders() {
    for locks in [true, false] {
        let (folder, path) = folder();
        let options = OpenOptions::new().locking(locks);
        let mut writer = options.clone().write(true).create(true).typesize(4).open(&path).unwrap();
        for chunk in 0..12 {
            writer.append(&[chunk; 50]).unwrap();
        }
        let reader = options.open(&path).unwrap();
        let assert_whole = |copy: SChunk| {
            let mut first: Vec<i32> =
                copy.iter_chunks::<i32>().map(|chunk| chunk.unwrap()[0]).collect();
            first.sort();
            assert!(first.into_iter().eq(0..12), "locking: {locks}");
        };
        thread::scope(|scope| {
            scope.spawn(|| {
                for step in 1..=60 {
                    let order: Vec<usize> = (0..12).map(|at| (at + step) % 12).collect();
                    writer.reorder(&order).unwrap();
                }
            });
            for _ in 0..20 {
                assert_whole(SChunk::open(reader.to_cframe().unwrap()).unwrap());
                assert_whole(reader.try_clone().unwrap());
            }
            for copy in 0..3 {
                let target = folder.path().join(copy.to_string());
                reader.save(&target).unwrap();
                assert_whole(SChunk::open(&target).unwrap());
            }
        });
    }
}

#[test]
fn a_flush_that_failed_is_done_by_the_next() {
    let mut failed = 0;
    for write in 1..8 {
        let storage = Failing::default();
        let options = OpenOptions::new().write(true).create(true);
        let stored =
            || OpenOptions::new().open(Target::storage(storage.clone())).unwrap().read::<u8>(..);
        let mut schunk = options.open(Target::storage(storage.clone())).unwrap();
        let mut writer = SChunkWriter::new(&mut schunk, 100).unwrap();
        writer.write_all(&[1; 130]).unwrap();
        storage.1.write.store(write, Relaxed);
        failed += usize::from(writer.flush().is_err());
        storage.1.write.store(0, Relaxed);
        writer.flush().unwrap();
        assert!(stored().unwrap() == [1; 130], "{write}");
    }
    assert!(failed > 1, "{failed}");
}

#[test]
fn what_writers_of_two_handles_write_is_all_there() {
    let (_folder, path) = folder();
    let (mut a, mut b) = (locking(&path), locking(&path));
    let ones: Vec<i32> = vec![1; 35];
    a.append(&ones[..25]).unwrap();
    a.append(&ones[..10]).unwrap();
    let mut writer = SChunkWriter::new(&mut a, 100).unwrap();
    writer.write_all(&[3; 7 * 4]).unwrap();
    let mut other = SChunkWriter::new(&mut b, 100).unwrap();
    other.write_all(&[2; 15 * 4]).unwrap();
    other.write_all(&[2; 30 * 4]).unwrap();
    other.finish().unwrap();
    writer.write_all(&[3; 40 * 4]).unwrap();
    writer.finish().unwrap();
    let bytes: Vec<u8> = ones.iter().flat_map(|one| one.to_ne_bytes()).collect();
    let expected = [&bytes[..], &[2; 45 * 4], &[3; 47 * 4]].concat();
    for schunk in [a, b, SChunk::open(&path).unwrap()] {
        assert!(schunk.read::<u8>(..).unwrap() == expected);
    }
}

#[test]
fn chunks_of_other_lengths_in_the_same_places_are_found() {
    for locks in [true, false] {
        let (_folder, path) = folder();
        let options = OpenOptions::new().locking(locks);
        let mut writer = options.clone().create_new(true).open(&path).unwrap();
        for (value, len) in [(7u8, 100), (8, 200), (9, 50)] {
            writer.append(&vec![value; len]).unwrap();
        }
        let mut reader = options.open(&path).unwrap();
        assert!(reader.info().has_variable_chunks);
        assert_eq!(reader.read::<u8>(150..151).unwrap(), [8]);
        // A chunk of one value has the same length, however often it has the value.
        let len = fs::metadata(&path).unwrap().len();
        writer.replace(0, &[1u8; 200]).unwrap();
        writer.replace(1, &[2u8; 100]).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().len(), len);
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.read::<u8>(199..201).unwrap(), [1, 2]);
        assert!(!reader.refresh().unwrap());
        writer.replace(2, &[5u8; 50]).unwrap();
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.read::<u8>(299..301).unwrap(), [2, 5]);
    }
}

#[test]
fn chunks_of_an_array_keep_the_size_of_its_blocks() {
    let (_folder, path) = folder();
    let items: Vec<i32> = (0..3000).map(|item| item * item).collect();
    let builder = NDArray::builder().chunk_shape([1000]).block_shape([100]).target(&path);
    drop(builder.from_slice(&items, [3000]).unwrap());
    let mut schunk = SChunk::open_rw(&path).unwrap();
    schunk.set_cparams(CParams::new().level(9)).unwrap();
    schunk.replace(0, &items[..1000]).unwrap();
    assert_eq!(schunk.chunk(0).unwrap().blocksize(), Some(400));
    for (blocksize, fits) in [(400, true), (800, false)] {
        let params = CParams::new().blocksize(blocksize);
        let chunk = Chunk::new(compress(&items[1000..2000], &params).unwrap()).unwrap();
        assert_eq!(chunk.blocksize(), Some(blocksize));
        let updated = schunk.replace(1, &chunk).map_err(|error| error.kind());
        assert_eq!(updated, if fits { Ok(()) } else { Err(ErrorKind::InvalidArgument) });
    }
    drop(schunk);
    assert!(NDArray::open(&path).unwrap().read::<Vec<i32>>(..).unwrap() == items);
}

#[test]
fn limits_of_reading() {
    const LEN: u64 = 1 << 30;
    let params = CParams::new().blocksize(1 << 28);
    let mut schunk = OpenOptions::new().cparams(&params).create_new(true).open(Vec::new()).unwrap();
    schunk.fill(Special::Zeros, LEN, LEN as usize).unwrap();
    let bytes = schunk.into_cframe().unwrap();
    let schunk = OpenOptions::new().max_read(1 << 20).open(bytes).unwrap();
    let gather = || schunk.read::<u8>(&[LEN - 1, 0, LEN / 2]).unwrap();
    let (found, _, peak) = measure(gather);
    assert_eq!(found.unwrap(), [0; 3]);
    assert!(peak <= 1 << 20, "{peak} bytes");
    assert_eq!(kind(schunk.read::<u8>(..2 << 20)), Some(ErrorKind::TooLarge));
    let copy = schunk.try_clone().unwrap();
    assert_eq!(kind(copy.read::<u8>(..2 << 20)), Some(ErrorKind::TooLarge));
    assert_eq!(kind(copy.decompress_chunk::<u8>(0)), Some(ErrorKind::TooLarge));
}

/// A super-chunk has at most as many chunks as a reader with the same limits allows.
#[test]
fn the_number_of_chunks_is_that_of_readers() {
    let (_folder, path) = folder();
    let limits = Limits::default();
    let mut schunk = OpenOptions::new().create_new(true).open(&path).unwrap();
    schunk.fill(Special::Zeros, limits.chunks, 1).unwrap();
    let chunk = compress(&[1u8], &CParams::new()).unwrap();
    let chunk = Chunk::new(chunk).unwrap();
    let refused = |changed: blosc2::Result<()>| {
        let error = changed.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        let exceeded = error.exceeded().unwrap();
        assert_eq!((exceeded.amount, exceeded.max), (limits.chunks + 1, limits.chunks));
    };
    refused(schunk.append(&[1u8]));
    refused(schunk.insert(5, &[1u8]));
    refused(schunk.append(&chunk));
    refused(schunk.write(limits.chunks - 1, &[1u8, 2]));
    schunk.replace(5, &[1u8]).unwrap();
    drop(schunk);
    assert_eq!(SChunk::open(&path).unwrap().read::<u8>(4..7).unwrap(), [0, 1, 0]);
    // With higher limits, more chunks are written and read.
    let options = OpenOptions::new().limits(Limits { chunks: limits.chunks + 1, ..limits });
    options.clone().write(true).open(&path).unwrap().append(&[1u8]).unwrap();
    refused(SChunk::open(&path).map(drop));
    assert_eq!(options.open(&path).unwrap().nchunks() as u64, limits.chunks + 1);
}

#[test]
fn a_handle_goes_on_after_a_read_that_failed() {
    let storage = Failing::default();
    let options = OpenOptions::new().write(true).create(true);
    let mut schunk = options.open(Target::storage(storage.clone())).unwrap();
    schunk.append(&[1u8; 100]).unwrap();
    storage.1.read.store(1, Relaxed);
    assert!(schunk.remove(5).is_err());
    storage.1.read.store(0, Relaxed);
    let _ = schunk.refresh();
    assert!(schunk.read::<u8>(..).unwrap() == [1; 100]);
    schunk.append(&[2u8; 100]).unwrap();
    assert_eq!(schunk.read::<u8>(99..101).unwrap(), [1, 2]);
}

#[test]
fn writing_items_stores_nothing_of_a_postfilter() {
    let items: Vec<u8> = (0..200).collect();
    let mut schunk = OpenOptions::new().create_new(true).open(Vec::new()).unwrap();
    schunk.append(&items[..100]).unwrap();
    schunk.append(&items[100..]).unwrap();
    schunk.set_dparams(schunk.info().dparams.postfilter(|block| {
        let input = block.input();
        let output = block.output();
        output.iter_mut().zip(input).for_each(|(new, old)| *new = old.wrapping_add(1));
        Ok::<(), blosc2::Error>(())
    }));
    assert_eq!(schunk.read::<u8>(..2).unwrap(), [1, 2]);
    assert_eq!(kind(schunk.write(98, &[77u8; 4])), Some(ErrorKind::Unsupported));
    let stored = SChunk::open(schunk.into_cframe().unwrap()).unwrap();
    assert!(stored.read::<u8>(..).unwrap() == items);
}

#[test]
fn a_file_of_other_items_is_an_error() {
    let (_folder, path) = folder();
    let frame = |typesize| {
        let mut schunk =
            OpenOptions::new().typesize(typesize).create_new(true).open(Vec::new()).unwrap();
        schunk.append(&data(Kind::Ramp, 4000, 1)).unwrap();
        schunk.into_cframe().unwrap()
    };
    fs::write(&path, frame(4)).unwrap();
    let mut schunk = SChunk::open(&path).unwrap();
    schunk.decompress_chunk::<i32>(0).unwrap();
    fs::write(&path, frame(8)).unwrap();
    assert!(schunk.refresh().is_err());
    fs::write(&path, frame(4)).unwrap();
    schunk.refresh().unwrap();
    assert!(schunk.decompress_chunk::<u8>(0).unwrap() == data(Kind::Ramp, 4000, 1));
}

#[test]
fn what_another_handle_made_an_array_is_not_appended_to() {
    let (_folder, path) = folder();
    let (mut a, mut b) = (locking(&path), locking(&path));
    let array = NDArray::from_slice(&[0i32; 10], [10]).unwrap();
    let shape = array.schunk().meta().get("b2nd").unwrap().unwrap();
    b.meta_mut().with_reserved().set("b2nd", &shape).unwrap();
    assert_eq!(kind(a.append(&[1i32; 10])), Some(ErrorKind::InvalidArgument));
    assert_eq!(SChunk::open(&path).unwrap().nchunks(), 0);
}

#[test]
fn handles_swapped_under_the_lock_still_lock() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| folder.path().join(name));
    let [mut a, mut b] = paths.each_ref().map(|path| locking(path));
    a.locked(|a| {
        mem::swap(a, &mut b);
        Ok(())
    })
    .unwrap();
    let counts = || {
        paths.each_ref().map(|path| {
            let bytes = fs::read(format!("{}.b2lock", path.display())).unwrap();
            bytes.get(8..16).map_or(0, |count| u64::from_ne_bytes(count.try_into().unwrap()))
        })
    };
    for _ in 0..2 {
        let before = counts();
        a.append(&[1i32]).unwrap();
        b.append(&[1i32]).unwrap();
        let after = counts();
        assert!(after[0] > before[0] && after[1] > before[1], "{before:?}, {after:?}");
    }
}

#[test]
fn chunks_of_a_writer_hold_whole_items() {
    let mut schunk = SChunk::in_memory::<i32>(&CParams::new()).unwrap();
    match SChunkWriter::new(&mut schunk, 10) {
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument),
        Ok(mut writer) => writer.write_all(&[1; 40]).unwrap(),
    }
    assert_eq!(schunk.chunksize() % 4, 0);
}

#[test]
fn a_writer_that_locks_and_one_that_does_not() {
    let (_folder, path) = folder();
    let plain = || OpenOptions::new().write(true).open(&path);
    let with_lock = || OpenOptions::new().write(true).locking(true).open(&path);
    let first = locking(&path);
    assert_eq!(kind(plain()), Some(ErrorKind::Busy));
    let second = with_lock().unwrap();
    drop(first);
    assert_eq!(kind(plain()), Some(ErrorKind::Busy));
    drop(second);
    let first = plain().unwrap();
    assert_eq!(kind(with_lock()), Some(ErrorKind::Busy));
    drop(first);
    with_lock().unwrap();
}

#[test]
fn an_emptied_super_chunk_takes_chunks_of_another_size() {
    let buffer = || OpenOptions::new().typesize(4).create_new(true).open(Vec::new()).unwrap();
    for mut schunk in [SChunk::in_memory::<i32>(&CParams::new()).unwrap(), buffer()] {
        schunk.append(&[1i32; 100]).unwrap();
        schunk.append(&[1i32; 100]).unwrap();
        schunk.remove(1).unwrap();
        schunk.remove(0).unwrap();
        for _ in 0..3 {
            schunk.append(&[2i32; 50]).unwrap();
        }
        assert!(!schunk.info().has_variable_chunks);
        assert_eq!((schunk.chunksize(), schunk.nbytes()), (200, 600));
        assert_eq!(schunk.read::<i32>(..).unwrap(), [2; 150]);
    }
}

#[test]
fn a_file_that_two_chunks_share_stays_for_the_other() {
    let (_folder, path) = folder();
    let mut schunk =
        OpenOptions::new().create_new(true).open(Target::from(&path).directory(true)).unwrap();
    let noise = data(Kind::Random, 2 * 500, 3);
    for chunk in noise.chunks(500) {
        schunk.append(chunk).unwrap();
    }
    drop(schunk);
    // The index is so short that it is stored as it is.
    let index = path.join("chunks.b2frame");
    let mut bytes = fs::read(&index).unwrap();
    let numbers = [0u64, 1].map(u64::to_le_bytes).concat();
    let at = bytes.windows(16).rposition(|window| window == numbers).unwrap();
    bytes[at + 8] = 0;
    fs::write(&index, bytes).unwrap();
    let mut schunk = SChunk::open_rw(&path).unwrap();
    assert!(schunk.decompress_chunk::<u8>(1).unwrap() == noise[..500]);
    schunk.remove(1).unwrap();
    assert!(schunk.read::<u8>(..).unwrap() == noise[..500]);
    assert!(SChunk::open(&path).unwrap().decompress_chunk::<u8>(0).unwrap() == noise[..500]);
}

#[test]
fn removing_no_chunks_writes_nothing() {
    let storage = Failing::default();
    let options = OpenOptions::new().write(true).create(true);
    let mut schunk = options.open(Target::storage(storage.clone())).unwrap();
    schunk.append(&[1u8; 100]).unwrap();
    storage.1.write.store(1, Relaxed);
    schunk.remove(1..).unwrap();
    schunk.transaction(|schunk| schunk.remove(0..0)).unwrap();
    schunk.remove([0usize; 0]).unwrap();
    assert!(schunk.remove(..).is_err());
}

/// The chunks lie in another order than their indices.
#[test]
fn truncating_keeps_the_first_chunks() {
    let noise = data(Kind::Random, 5000 * 500, 3);
    let mut rng = Rng(5);
    for checksums in [false, true] {
        let (_folder, path) = folder();
        let options = OpenOptions::new().create_new(true).checksums(checksums);
        let mut schunk = options.open(&path).unwrap();
        let mut chunks: Vec<&[u8]> = noise.chunks(500).collect();
        schunk
            .transaction(|schunk| chunks.iter().try_for_each(|&chunk| schunk.append(chunk)))
            .unwrap();
        // The index has blocks of 2,048 chunks.
        for count in [5000, 4096, 2049, 2047, 3, 1] {
            let mut order: Vec<usize> = (0..chunks.len()).collect();
            for last in (1..chunks.len()).rev() {
                order.swap(last, rng.below(last as u64 + 1) as usize);
            }
            schunk.reorder(&order).unwrap();
            schunk.remove(count..).unwrap();
            chunks = order.iter().take(count).map(|&index| chunks[index]).collect();
            let expected = chunks.concat();
            for schunk in [&schunk, &SChunk::open(&path).unwrap()] {
                assert_eq!(
                    (schunk.nchunks(), schunk.nbytes()),
                    (chunks.len(), chunks.len() as u64 * 500)
                );
                assert!(schunk.read::<u8>(..).unwrap() == expected, "{count}");
            }
        }
        schunk.remove(..).unwrap();
        assert_eq!((schunk.cbytes(), schunk.chunksize()), (0, 0));
        schunk.append(&[1u8; 7]).unwrap();
        assert_eq!(SChunk::open(&path).unwrap().read::<u8>(..).unwrap(), [1; 7]);
    }
}

/// The item size is that of the parameters, if they name one.
#[test]
fn the_declared_size_is_a_multiple_of_the_item_size() {
    let create = |typesize, size| {
        let params = CParams::new().typesize(typesize);
        blosc2::OpenOptions::new().cparams(params).chunksize(size).open(Target::memory())
    };
    assert_eq!(create(8, 16).unwrap().chunksize(), 16);
    assert_eq!(create(3, 3000).unwrap().chunksize(), 3000);
    assert_eq!(create(8, 12).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

/// C and Python refuse it too.
#[test]
fn a_first_chunk_is_not_longer_than_the_declared_size() {
    let mut schunk = blosc2::OpenOptions::new().chunksize(100).open(Target::memory()).unwrap();
    let error = schunk.append(&[1u8; 101]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert!(error.to_string().contains("101"), "{error}");
    schunk.append(&[1u8; 100]).unwrap();
    schunk.append(&[1u8; 50]).unwrap();
    assert_eq!(schunk.nchunks(), 2);
    assert_eq!((schunk.chunksize(), schunk.len()), (100, 150));
}

#[test]
fn variable_length_blocks_are_inserted_and_replaced() {
    let mut schunk = SChunk::in_memory::<u8>(&CParams::new()).unwrap();
    schunk.append(VariableBlocks(&[b"one", b"three"])).unwrap();
    schunk.insert(0, VariableBlocks(&[b"zero"])).unwrap();
    schunk.replace(1, VariableBlocks(&[b"1", b"3", b"5"])).unwrap();
    assert!(schunk.blocks(0).unwrap().iter().eq([b"zero"]));
    assert!(schunk.blocks(1).unwrap().iter().eq([b"1", b"3", b"5"]));
    for error in [
        schunk.insert(3, VariableBlocks(&[b"x"])).unwrap_err(),
        schunk.replace(2, VariableBlocks(&[b"x"])).unwrap_err(),
    ] {
        assert_eq!(error.kind(), ErrorKind::OutOfBounds);
    }
    assert_eq!(schunk.append(b"items").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(schunk.nchunks(), 2);
}
