//! Bytes read from the storage: only the needed blocks, each of them once.

use std::io;
use std::sync::{Arc, Mutex};

use blosc2::storage::{ReadAt, ReadOnly};
use blosc2::{AxisSelection, CParams, Codec, DParams, NDArray, OpenOptions, Threads};

use super::cases::Shared;
use crate::common::Rng;
use crate::common::measure::largest_allocation;

/// Bytes of a block.
const BLOCK: u64 = 64 * 64 * 4;

/// A chunk of 16 x 4 blocks, which cannot be compressed.
fn array(storage: &Shared, threads: usize) -> (NDArray, Vec<u32>) {
    let mut rng = Rng(1);
    let items: Vec<u32> = (0..1024 * 256).map(|_| rng.next() as u32).collect();
    let array = NDArray::builder()
        .storage(storage.clone())
        .chunks([1024, 256])
        .blocks([64, 64])
        .cparams(CParams::new().codec(Codec::Lz4))
        .dparams(blosc2::DParams::new().threads(Threads::new(threads)))
        .from_slice(&items, [1024, 256]);
    (array.unwrap(), items)
}

#[test]
fn a_box_fetches_its_blocks_and_no_others() {
    let storage = Shared::default();
    let (array, items) = array(&storage, 1);
    assert!(storage.bytes().len() as u64 > 64 * BLOCK, "it takes its room");
    // The rest is the chunk's header and the places of its blocks.
    let rest = 1000;
    storage.fetched();

    assert_eq!(array.item::<u32>(&[700, 100]).unwrap(), items[700 * 256 + 100]);
    let found = storage.fetched();
    assert!((BLOCK..BLOCK + rest).contains(&found), "an item: {found} bytes");

    assert_eq!(array.read::<u32>(&[130..133, 70..72]).unwrap().len(), 6);
    let found = storage.fetched();
    assert!((BLOCK..BLOCK + rest).contains(&found), "a box in a block: {found} bytes");

    assert_eq!(array.read::<u32>(&[60..70, 0..256]).unwrap(), items[60 * 256..70 * 256]);
    let found = storage.fetched();
    assert!((8 * BLOCK..8 * BLOCK + rest).contains(&found), "rows of two blocks: {found} bytes");

    // One block of each row of four.
    let column: Vec<u32> = items.iter().skip(70).step_by(256).copied().collect();
    assert_eq!(array.read::<u32>((.., 70)).unwrap(), column);
    let found = storage.fetched();
    assert!((16 * BLOCK..16 * BLOCK + rest).contains(&found), "a column: {found} bytes");

    let corners = [[0, 0], [1023, 255], [0, 255]];
    let expected = [items[0], items[1024 * 256 - 1], items[255]];
    assert_eq!(array.read_points::<u32>(&corners).unwrap(), expected);
    let found = storage.fetched();
    assert!((3 * BLOCK..3 * BLOCK + rest).contains(&found), "three points: {found} bytes");

    assert!(array.read::<u32>(&[5..5, 0..256]).unwrap().is_empty());
    let found = storage.fetched();
    assert!(found < rest, "no items: {found} bytes");
}

/// A source that records what is read and announced: `true` for a read, the offset and the length.
struct Recorded {
    bytes: Vec<u8>,
    calls: Arc<Mutex<Vec<(bool, u64, u64)>>>,
}

impl ReadAt for Recorded {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.calls.lock().unwrap().push((true, offset, buffer.len() as u64));
        self.bytes.read_exact_at(offset, buffer)
    }

    fn prefetch(&self, offset: u64, len: u64) {
        self.calls.lock().unwrap().push((false, offset, len));
    }
}

#[test]
fn the_next_chunks_are_announced() {
    const CHUNKS: u64 = 6;
    const CHUNK: u64 = 64 << 10;
    let mut rng = Rng(3);
    let items: Vec<u64> = (0..CHUNKS * CHUNK / 8).map(|_| rng.next()).collect();
    let builder = NDArray::builder().chunks(CHUNK / 8).blocks(1024);
    let bytes = builder.from_slice(&items, items.len()).unwrap().to_cframe().unwrap();
    for threads in [1, 2] {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let source = Recorded { bytes: bytes.clone(), calls: calls.clone() };
        let options = OpenOptions::new();
        let mut array = NDArray::open_storage(ReadOnly::new(source), &options).unwrap();
        array.set_dparams(DParams::new().threads(Threads::new(threads)));
        // The first read also reads the index.
        assert_eq!(array.item::<u64>(0).unwrap(), items[0]);
        let seen = std::mem::take(&mut *calls.lock().unwrap());
        assert!(seen.iter().all(|(is_read, ..)| *is_read), "nothing is announced for one item");

        assert!(array.read_all::<u64>().unwrap() == items);
        let seen = std::mem::take(&mut *calls.lock().unwrap());
        let announced: Vec<_> = seen.iter().filter(|(is_read, ..)| !is_read).collect();
        assert_eq!(announced.len() as u64, CHUNKS - threads as u64);
        for (_, start, len) in announced {
            assert!((CHUNK..CHUNK + 100).contains(len), "{len} bytes");
            let read = seen.iter().position(|call| call.0 && call.1 == *start);
            let before = seen.iter().position(|call| *call == (false, *start, *len));
            assert!(read.is_some() && (threads > 1 || before < read), "the chunk at {start}");
        }
    }
}

#[test]
fn each_block_is_fetched_once() {
    for threads in [1, 4] {
        let storage = Shared::default();
        let (array, items) = array(&storage, threads);
        // Each thread may read the header.
        let most = 64 * BLOCK + 4000;
        storage.fetched();

        let mut rng = Rng(2);
        let points: Vec<[u64; 2]> = (0..2000).map(|_| [rng.below(1024), rng.below(256)]).collect();
        let expected: Vec<u32> =
            points.iter().map(|[row, column]| items[(row * 256 + column) as usize]).collect();
        assert_eq!(array.read_points::<u32>(&points).unwrap(), expected);
        let found = storage.fetched();
        assert!(found < most, "points: {found} bytes");

        let list =
            |end: u64, rng: &mut Rng| -> Vec<u64> { (0..100).map(|_| rng.below(end)).collect() };
        let lists = [list(1024, &mut rng), list(256, &mut rng)];
        array.read::<u32>(lists.map(AxisSelection::from)).unwrap();
        let found = storage.fetched();
        assert!(found < most, "lists: {found} bytes");

        let back = AxisSelection::Slice { start: 0, end: None, step: -3 };
        array.read::<u32>([back.clone(), back]).unwrap();
        let found = storage.fetched();
        assert!(found < most, "every third item: {found} bytes");
    }
}

#[test]
fn what_a_cache_keeps_is_not_fetched_again() {
    let storage = Shared::default();
    let (mut array, mut items) = array(&storage, 1);
    array.set_cache(4 * (BLOCK as usize + 200));
    let read = |array: &NDArray, items: &[u32], row: u64, column: u64| {
        storage.fetched();
        let expected = items[(row * 256 + column) as usize];
        assert_eq!(array.item::<u32>(&[row, column]).unwrap(), expected);
        storage.fetched() >= BLOCK
    };
    assert!(read(&array, &items, 3, 3), "the first time");
    assert!(!read(&array, &items, 3, 4) && !read(&array, &items, 63, 63), "the same block");
    for block in 1..4 {
        assert!(read(&array, &items, 64 * block, 0), "another block");
    }
    assert!(!read(&array, &items, 0, 0) && read(&array, &items, 640, 0), "one too many");
    assert!(read(&array, &items, 64, 0), "the one that was used longest ago is gone");
    // Reads return the written items.
    array.set([0, 0], 7u32).unwrap();
    items[0] = 7;
    assert!(read(&array, &items, 0, 0), "it has changed");
    assert!(!read(&array, &items, 0, 1));
    array.set_cache(0);
    assert!(read(&array, &items, 0, 1), "nothing is kept");
}

#[test]
fn small_reads_allocate_nothing() {
    let items: Vec<u32> = (0..256 * 256).collect();
    let builder = NDArray::builder().chunks([64, 128]).blocks([32, 64]);
    let mut array = builder.from_slice(&items, [256, 256]).unwrap();
    let (mut box_of_four, mut row) = ([0u32; 4], [0u32; 128]);
    let mut read = |array: &NDArray| {
        array.read_into([15..17, 127..129], &mut box_of_four[..]).unwrap();
        array.read_into((17, 128..), &mut row[..]).unwrap();
        assert_eq!(box_of_four, [15 * 256 + 127, 15 * 256 + 128, 16 * 256 + 127, 16 * 256 + 128]);
        assert_eq!((row[0], row[127]), (17 * 256 + 128, 17 * 256 + 255));
    };
    for cache in [0, 1 << 20] {
        array.set_cache(cache);
        // The first read allocates the buffers, and fills the cache.
        read(&array);
        let ((), largest) = largest_allocation(|| read(&array));
        assert_eq!(largest, 0, "with a cache of {cache} bytes");
    }
}

#[test]
fn what_others_write_is_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array");
    let builder = NDArray::builder().file(&path).chunks([4, 4]).blocks([2, 2]);
    let mut writer = builder.from_slice(&[1u16; 64], [8, 8]).unwrap();
    let mut reader = NDArray::open(&path).unwrap();
    reader.set_cache(1 << 20);
    assert_eq!(reader.read_all::<u16>().unwrap(), [1; 64]);
    for round in 2..5 {
        writer.fill(.., round).unwrap();
        assert_eq!(reader.item::<u16>(&[7, 0]).unwrap(), round);
        assert_eq!(reader.read_all::<u16>().unwrap(), [round; 64]);
    }
}

/// Other writers may choose another block size for the chunks than the block shape determines.
#[test]
fn parts_of_chunks_with_other_blocks_are_read() {
    const LEN: u32 = 2 * 65_536;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2nd");
    let items: Vec<u32> = (0..LEN).map(|at| at.wrapping_mul(2_654_435_761) >> 12).collect();
    let builder = NDArray::builder().chunks(65_536).blocks(4096);
    let builder = builder.cparams(CParams::new().codec(Codec::Lz4)).file(&path);
    drop(builder.from_slice(&items, LEN).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    // The block shape in the metalayer.
    let at = bytes.windows(5).position(|bytes| bytes == [0xd2, 0, 0, 0x10, 0]).unwrap() + 1;
    for block in [2048u32, 8192, 16_384] {
        bytes[at..at + 4].copy_from_slice(&block.to_be_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let array = NDArray::open(&path).unwrap();
        assert_eq!(array.blocks(), [u64::from(block)]);
        for range in [100..200, 60_000..61_000, 65_000..66_000, 0..LEN as usize] {
            assert_eq!(array.read::<u32>(range.clone()).unwrap(), items[range]);
        }
        let points = [[5], [65_000], [70_000]];
        let expected = points.map(|[at]: [usize; 1]| items[at]);
        assert_eq!(array.read_points::<u32>(&points).unwrap(), expected);
    }
}
