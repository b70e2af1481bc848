//! Bytes read from the storage: only the needed blocks, each of them once.

use std::io;
use std::sync::{Arc, Mutex};

use blosc2::compute::zip;
use blosc2::storage::{Folder, FolderMut, ReadAt, ReadOnly};
use blosc2::{
    AxisSelection, CParams, Codec, DParams, ErrorKind, NDArray, OpenOptions, Selection, Target,
    Threads,
};
use blosc2_format::directory::Memory;

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
        .target(Target::storage(storage.clone()))
        .chunk_shape([1024, 256])
        .block_shape([64, 64])
        .cparams(CParams::new().codec(Codec::Lz4))
        .options(OpenOptions::new().dparams(blosc2::DParams::new().threads(Threads::new(threads))))
        .from_slice(&items, [1024, 256]);
    (array.unwrap(), items)
}

#[test]
fn a_box_fetches_its_blocks_and_no_others() {
    let storage = Shared::default();
    let (array, items) = array(&storage, 1);
    assert!(storage.bytes().len() as u64 > 64 * BLOCK, "it takes its room");
    // The rest is the first bytes of the chunk, with its header and the places of its blocks.
    let rest = 4097;
    storage.fetched();

    assert_eq!(array.item::<u32>(&[700, 100]).unwrap(), items[700 * 256 + 100]);
    let found = storage.fetched();
    assert!((BLOCK..BLOCK + rest).contains(&found), "an item: {found} bytes");

    assert_eq!(array.read::<Vec<u32>>(&[130..133, 70..72]).unwrap().len(), 6);
    let found = storage.fetched();
    assert!((BLOCK..BLOCK + rest).contains(&found), "a box in a block: {found} bytes");

    assert_eq!(array.read::<Vec<u32>>(&[60..70, 0..256]).unwrap(), items[60 * 256..70 * 256]);
    let found = storage.fetched();
    assert!((8 * BLOCK..8 * BLOCK + rest).contains(&found), "rows of two blocks: {found} bytes");

    // One block of each row of four.
    let column: Vec<u32> = items.iter().skip(70).step_by(256).copied().collect();
    assert_eq!(array.read::<Vec<u32>>((.., 70)).unwrap(), column);
    let found = storage.fetched();
    assert!((16 * BLOCK..16 * BLOCK + rest).contains(&found), "a column: {found} bytes");

    let corners = [[0, 0], [1023, 255], [0, 255]];
    let expected = [items[0], items[1024 * 256 - 1], items[255]];
    assert_eq!(array.read::<Vec<u32>>(Selection::points(&corners)).unwrap(), expected);
    let found = storage.fetched();
    assert!((3 * BLOCK..3 * BLOCK + rest).contains(&found), "three points: {found} bytes");

    assert!(array.read::<Vec<u32>>(&[5..5, 0..256]).unwrap().is_empty());
    let found = storage.fetched();
    assert!(found < rest, "no items: {found} bytes");
}

/// The number of ranges of a call, and of their bytes.
type Calls = Arc<Mutex<Vec<(usize, u64)>>>;

/// A source with a high latency that records its calls.
#[derive(Debug)]
struct Remote {
    bytes: Vec<u8>,
    request_cost: u64,
    calls: Calls,
}

impl ReadAt for Remote {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.read_ranges_at(&mut [(offset, buffer)])
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let len = ranges.iter().map(|(_, buffer)| buffer.len() as u64).sum();
        self.calls.lock().unwrap().push((ranges.len(), len));
        self.bytes.read_ranges_at(ranges)
    }

    fn request_cost(&self) -> u64 {
        self.request_cost
    }
}

/// The calls since the last time.
fn taken(calls: &Calls) -> Vec<(usize, u64)> {
    std::mem::take(&mut *calls.lock().unwrap())
}

const CHUNK: u64 = 512 << 10;
const NCHUNKS: u64 = 100;

/// An array of items with four random bytes, with blocks of 16 KiB, in a source with a high latency.
fn remote(codec: Codec, request_cost: u64, threads: usize) -> (NDArray, Vec<u64>, Calls) {
    let mut rng = Rng(3);
    let items: Vec<u64> = (0..NCHUNKS * CHUNK / 8).map(|_| rng.next() >> 32).collect();
    let builder = NDArray::builder().chunk_shape(CHUNK / 8).block_shape(2048);
    let builder = builder.cparams(CParams::new().codec(codec).level(1));
    let bytes = builder.from_slice(&items, items.len()).unwrap().schunk().to_cframe().unwrap();
    let calls = Calls::default();
    let source = Remote { bytes, request_cost, calls: calls.clone() };
    let mut array =
        NDArray::open_with(Target::storage(ReadOnly::new(source)), &OpenOptions::new()).unwrap();
    array.set_dparams(DParams::new().threads(Threads::new(threads)));
    // The first read also reads the index.
    assert_eq!(array.item::<u64>(0).unwrap(), items[0]);
    taken(&calls);
    (array, items, calls)
}

#[test]
fn reductions_send_as_few_requests_as_reads() {
    for threads in [1, 4] {
        let (array, items, calls) = remote(Codec::Lz4, 100_000, threads);
        let (other, _, other_calls) = remote(Codec::Lz4, 100_000, threads);
        array.read::<Vec<u64>>(..).unwrap();
        let read = taken(&calls);
        let requests = read.len();
        assert!((3..20).contains(&requests), "{read:?}");
        let check_most = |name: &str, calls: &Calls, most: usize| {
            let seen = taken(calls);
            assert!((1..=most).contains(&seen.len()), "{name}: {seen:?}, a read: {read:?}");
            seen.len()
        };
        let check = |name: &str, calls: &Calls| check_most(name, calls, requests);
        let lazy = array.lazy::<u64>();
        assert_eq!(lazy.sum().unwrap(), items.iter().sum::<u64>());
        check("sum", &calls);
        assert_eq!(lazy.max().unwrap(), *items.iter().max().unwrap());
        check("max", &calls);
        let least = items.iter().min().unwrap();
        let place = items.iter().position(|item| item == least).unwrap();
        assert_eq!(lazy.argmin().unwrap(), place as u64);
        check("argmin", &calls);
        // The first window has an item that is not 0.
        assert!(lazy.any().unwrap());
        assert!(check("any", &calls) < requests);
        // Both operands are fetched ahead. They share the size of a window.
        let same = zip((&array, &other)).map(|(one, other): (u64, u64)| u8::from(one == other));
        assert_eq!(same.count_nonzero().unwrap(), items.len() as u64);
        check_most("zip", &calls, 2 * requests);
        check_most("zip", &other_calls, 2 * requests);
    }
}

/// Each chunk with a checksum is fetched once, although several threads reduce parts of it.
#[test]
fn reductions_fetch_chunks_with_checksums_once() {
    let mut rng = Rng(5);
    let items: Vec<u64> = (0..3 << 20).map(|_| rng.next()).collect();
    for nchunks in [1, 3] {
        let builder =
            NDArray::builder().chunk_shape(items.len() as u64 / nchunks).block_shape(8192);
        let array = builder
            .options(OpenOptions::new().checksums(true))
            .from_slice(&items, items.len())
            .unwrap();
        let bytes = array.schunk().to_cframe().unwrap();
        let calls = Calls::default();
        let source = Remote { bytes, request_cost: 100_000, calls: calls.clone() };
        let array = NDArray::open_with(Target::storage(ReadOnly::new(source)), &OpenOptions::new())
            .unwrap();
        taken(&calls);
        let sum = items.iter().fold(0, |sum: u64, item| sum.wrapping_add(*item));
        assert_eq!(array.lazy::<u64>().sum().unwrap(), sum);
        let seen = taken(&calls);
        let found: u64 = seen.iter().map(|call| call.1).sum();
        let size = size_of_val(&items[..]) as u64;
        assert!((size..size + size / 20).contains(&found), "{nchunks} chunks: {seen:?}");
    }
}

/// Special chunks are processed without requests for their headers.
#[test]
fn reductions_of_special_chunks_send_few_requests() {
    let mut array = NDArray::builder().chunk_shape(1000).zeros::<u64>(300_000).unwrap();
    array.write(150_500..150_502, &[7u64, 9]).unwrap();
    let calls = Calls::default();
    let source = Remote {
        bytes: array.schunk().to_cframe().unwrap(),
        request_cost: 5000,
        calls: calls.clone(),
    };
    let array =
        NDArray::open_with(Target::storage(ReadOnly::new(source)), &OpenOptions::new()).unwrap();
    assert_eq!(array.item::<u64>(0).unwrap(), 0);
    taken(&calls);
    assert_eq!(array.lazy::<u64>().sum().unwrap(), 16);
    assert_eq!(array.lazy::<u64>().argmax().unwrap(), 150_501);
    let seen = taken(&calls);
    assert!(seen.len() <= 4, "{seen:?}");
}

#[test]
fn the_parts_of_many_chunks_are_requested_at_once() {
    for threads in [1, 4] {
        let (array, items, calls) = remote(Codec::Lz4, 5000, threads);
        let points: Vec<[u64; 1]> = (0..NCHUNKS).map(|at| [at * CHUNK / 8 + 5000]).collect();
        let expected: Vec<u64> = points.iter().map(|[at]| items[*at as usize]).collect();
        assert_eq!(array.read::<Vec<u64>>(Selection::points(&points)).unwrap(), expected);
        // The headers and tables; the blocks.
        let seen = taken(&calls);
        let count = NCHUNKS as usize;
        assert_eq!(seen.iter().map(|call| call.0).collect::<Vec<_>>(), [count; 2], "{seen:?}");
        assert_eq!(seen[0].1, NCHUNKS * (32 + 4 * 32 + 4));
        // The blocks are compressed to half of their 16 KiB.
        assert!(seen[1].1 < NCHUNKS * (8 << 10) * 11 / 10, "{seen:?}");

        // Chunks up to the cost of a request are read whole.
        let (array, items, calls) = remote(Codec::Lz4, 1 << 20, threads);
        let found = array.read::<Vec<u64>>(CHUNK / 8 - 1..2 * CHUNK / 8 + 1).unwrap();
        assert_eq!(found, items[CHUNK as usize / 8 - 1..2 * CHUNK as usize / 8 + 1]);
        let seen = taken(&calls);
        assert_eq!((seen.len(), seen[0].0), (1, 3), "{seen:?}");
    }
}

#[test]
fn whole_chunks_are_fetched_ahead_in_few_calls() {
    for (codec, threads) in [(Codec::Lz4, 1), (Codec::Lz4, 4), (Codec::Zstd, 2)] {
        let (array, items, calls) = remote(codec, 64 << 10, threads);
        // Windows of 4 MiB and up to 8 MiB, 16 MiB, and the rest.
        let (ranges, bytes) = (NCHUNKS as usize, NCHUNKS * CHUNK / 2..NCHUNKS * CHUNK * 11 / 20);
        let check = |what: &str| {
            let seen = taken(&calls);
            let sum = seen.iter().fold((0, 0), |sum, call| (sum.0 + call.0, sum.1 + call.1));
            assert!(
                seen.len() == 3 && sum.0 == ranges && bytes.contains(&sum.1),
                "{what}: {seen:?}"
            );
        };
        assert!(array.read::<Vec<u64>>(..).unwrap() == items);
        check("an array");
        assert!(array.schunk().read::<u64>(..).unwrap() == items);
        check("items");
        let copy = array.schunk().try_clone().unwrap();
        check("a copy");
        assert!(copy.read::<u64>(..).unwrap() == items);
        array.schunk().recompress(CParams::new().codec(Codec::BloscLz)).unwrap();
        check("a recompressed copy");
        let sum = items.iter().fold(0u64, |sum, &item| sum.wrapping_add(item));
        assert_eq!(array.lazy::<u64>().sum().unwrap(), sum);
        let seen = taken(&calls);
        assert!(seen.len() < 3 * ranges, "a sum: {seen:?}");
    }
}

#[test]
fn errors_of_a_source_with_high_latency_are_returned() {
    let (array, _, _) = remote(Codec::Lz4, 64 << 10, 2);
    let mut bytes = array.schunk().to_cframe().unwrap();
    // The table of blocks of a chunk that is not in the first window.
    let chunk = array.schunk().chunk(90).unwrap();
    let len = chunk.as_bytes().len();
    let at = bytes.windows(len).position(|found| found == chunk.as_bytes()).unwrap();
    bytes[at + 32..at + 36].fill(0xff);
    let failed = |result: blosc2::Result<Vec<u64>>| result.map(drop).unwrap_err();
    let source = Remote { bytes, request_cost: 64 << 10, calls: Calls::default() };
    let broken =
        NDArray::open_with(Target::storage(ReadOnly::new(source)), &OpenOptions::new()).unwrap();
    let error = failed(broken.read(..));
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("chunk 90"), "{error}");
    let item = broken.item::<u64>(90 * CHUNK / 8).unwrap_err();
    assert!(
        item.kind() == ErrorKind::InvalidData && item.to_string().contains("chunk 90"),
        "{item}"
    );
    assert_eq!(broken.read::<Vec<u64>>(..10).unwrap(), array.read::<Vec<u64>>(..10).unwrap());
}

/// The gaps between the needed blocks can be much larger than the blocks.
#[test]
fn a_window_is_limited_with_its_gaps() {
    const CHUNK: u64 = 16 << 20;
    let mut rng = Rng(5);
    let items: Vec<u64> = (0..CHUNK).map(|_| rng.next()).collect();
    let params = CParams::new().codec(Codec::Lz4).level(1);
    let builder = NDArray::builder().chunk_shape([CHUNK / 8]).block_shape([8192]).cparams(params);
    // The same random bytes in each of 8 chunks.
    let array = builder.from_iter(items.iter().cycle().copied().take(CHUNK as usize), CHUNK);
    let calls = Calls::default();
    let bytes = array.unwrap().schunk().to_cframe().unwrap();
    let source = Remote { bytes, request_cost: 300 << 10, calls: calls.clone() };
    let array =
        NDArray::open_with(Target::storage(ReadOnly::new(source)), &OpenOptions::new()).unwrap();
    taken(&calls);
    // Every fourth block.
    let points: Vec<[u64; 1]> = (0..CHUNK).step_by(4 * 8192).map(|at| [at]).collect();
    let expected: Vec<u64> = points.iter().map(|[at]| items[*at as usize]).collect();
    assert!(array.read::<Vec<u64>>(Selection::points(&points)).unwrap() == expected);
    let most = taken(&calls).iter().map(|call| call.1).max().unwrap();
    assert!((CHUNK..5 * CHUNK).contains(&most), "{most} bytes");
}

/// A folder with a high latency that counts the files that are opened at the same time.
#[derive(Debug, Default)]
struct RemoteFolder {
    files: Memory,
    open: Arc<Mutex<(usize, usize)>>,
}

#[derive(Debug)]
struct RemoteFile(Vec<u8>, Arc<Mutex<(usize, usize)>>);

impl Folder for RemoteFolder {
    type File = RemoteFile;

    fn open(&self, name: &str) -> io::Result<RemoteFile> {
        let file = self.files.open(name)?;
        {
            let mut open = self.open.lock().unwrap();
            open.0 += 1;
            open.1 = open.1.max(open.0);
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        Ok(RemoteFile(file, Arc::clone(&self.open)))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.files.names()
    }

    fn request_cost(&self) -> u64 {
        1 << 20
    }
}

impl FolderMut for RemoteFolder {
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        self.files.put(name, content, durable)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.files.remove(name)
    }
}

impl Drop for RemoteFile {
    fn drop(&mut self) {
        self.1.lock().unwrap().0 -= 1;
    }
}

impl ReadAt for RemoteFile {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}

#[test]
fn files_of_a_folder_with_high_latency_are_opened_together() {
    let items: Vec<u32> = (0..40_000).collect();
    let folder = RemoteFolder::default();
    let open = Arc::clone(&folder.open);
    let builder =
        NDArray::builder().target(Target::folder(folder)).chunk_shape(1000).block_shape(100);
    let array = builder.from_slice(&items, items.len()).unwrap();
    *open.lock().unwrap() = (0, 0);
    assert_eq!(array.read::<Vec<u32>>(..).unwrap(), items);
    let most = open.lock().unwrap().1;
    assert!((2..=16).contains(&most), "{most} files");
}

#[test]
fn each_block_is_fetched_once() {
    for threads in [1, 4] {
        let storage = Shared::default();
        let (array, items) = array(&storage, threads);
        // Each of up to 16 parts reads the first bytes of the chunk.
        let most = 64 * BLOCK + 16 * 4097;
        storage.fetched();

        let mut rng = Rng(2);
        let points: Vec<[u64; 2]> = (0..2000).map(|_| [rng.below(1024), rng.below(256)]).collect();
        let expected: Vec<u32> =
            points.iter().map(|[row, column]| items[(row * 256 + column) as usize]).collect();
        assert_eq!(array.read::<Vec<u32>>(Selection::points(&points)).unwrap(), expected);
        let found = storage.fetched();
        assert!(found < most, "points: {found} bytes");

        let list =
            |end: u64, rng: &mut Rng| -> Vec<u64> { (0..100).map(|_| rng.below(end)).collect() };
        let lists = [list(1024, &mut rng), list(256, &mut rng)];
        array.read::<Vec<u32>>(lists.map(AxisSelection::from)).unwrap();
        let found = storage.fetched();
        assert!(found < most, "lists: {found} bytes");

        let back = AxisSelection::Slice { start: 0, end: None, step: -3 };
        array.read::<Vec<u32>>([back.clone(), back]).unwrap();
        let found = storage.fetched();
        assert!(found < most, "every third item: {found} bytes");
    }
}

#[test]
fn what_a_cache_keeps_is_not_fetched_again() {
    let storage = Shared::default();
    let (mut array, mut items) = array(&storage, 1);
    array.set_dparams(array.info().dparams.cache(4 * (BLOCK as usize + 200)));
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
    array.write([0, 0], 7u32).unwrap();
    items[0] = 7;
    assert!(read(&array, &items, 0, 0), "it has changed");
    assert!(!read(&array, &items, 0, 1));
    array.set_dparams(array.info().dparams.cache(0));
    assert!(read(&array, &items, 0, 1), "nothing is kept");
}

#[test]
fn small_reads_allocate_nothing() {
    let items: Vec<u32> = (0..256 * 256).collect();
    let builder = NDArray::builder().chunk_shape([64, 128]).block_shape([32, 64]);
    let mut array = builder.from_slice(&items, [256, 256]).unwrap();
    let (mut box_of_four, mut row) = ([0u32; 4], [0u32; 128]);
    let mut read = |array: &NDArray| {
        array.read_into([15..17, 127..129], &mut box_of_four[..]).unwrap();
        array.read_into((17, 128..), &mut row[..]).unwrap();
        assert_eq!(box_of_four, [15 * 256 + 127, 15 * 256 + 128, 16 * 256 + 127, 16 * 256 + 128]);
        assert_eq!((row[0], row[127]), (17 * 256 + 128, 17 * 256 + 255));
    };
    for cache in [0, 1 << 20] {
        array.set_dparams(array.info().dparams.cache(cache));
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
    let builder = NDArray::builder().target(&path).chunk_shape([4, 4]).block_shape([2, 2]);
    let mut writer = builder.from_slice(&[1u16; 64], [8, 8]).unwrap();
    let mut reader = NDArray::open(&path).unwrap();
    reader.set_dparams(reader.info().dparams.cache(1 << 20));
    assert_eq!(reader.read::<Vec<u16>>(..).unwrap(), [1; 64]);
    for round in 2..5 {
        writer.write(.., round).unwrap();
        assert_eq!(reader.item::<u16>(&[7, 0]).unwrap(), round);
        assert_eq!(reader.read::<Vec<u16>>(..).unwrap(), [round; 64]);
    }
}

/// Other writers may choose another block size for the chunks than the block shape determines.
#[test]
fn parts_of_chunks_with_other_blocks_are_read() {
    const LEN: u32 = 2 * 65_536;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2nd");
    let items: Vec<u32> = (0..LEN).map(|at| at.wrapping_mul(2_654_435_761) >> 12).collect();
    let builder = NDArray::builder().chunk_shape(65_536).block_shape(4096);
    let builder = builder.cparams(CParams::new().codec(Codec::Lz4)).target(&path);
    drop(builder.from_slice(&items, LEN).unwrap());
    let mut bytes = std::fs::read(&path).unwrap();
    // The block shape in the metalayer.
    let at = bytes.windows(5).position(|bytes| bytes == [0xd2, 0, 0, 0x10, 0]).unwrap() + 1;
    for block in [2048u32, 8192, 16_384] {
        bytes[at..at + 4].copy_from_slice(&block.to_be_bytes());
        std::fs::write(&path, &bytes).unwrap();
        let array = NDArray::open(&path).unwrap();
        assert_eq!(array.block_shape(), [u64::from(block)]);
        for range in [100..200, 60_000..61_000, 65_000..66_000, 0..LEN as usize] {
            assert_eq!(array.read::<Vec<u32>>(range.clone()).unwrap(), items[range]);
        }
        let points = [[5], [65_000], [70_000]];
        let expected = points.map(|[at]: [usize; 1]| items[at]);
        assert_eq!(array.read::<Vec<u32>>(Selection::points(&points)).unwrap(), expected);
    }
}
