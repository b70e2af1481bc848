//! Bytes read from the storage: only the needed blocks, each of them once.

use blosc2::{AxisSelection, CParams, Codec, NDArray, Threads};

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
