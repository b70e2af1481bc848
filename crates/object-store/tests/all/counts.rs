//! The number of requests.

use std::time::{Duration, Instant};

use blosc2::storage::{ReadAt, ReadOnly};
use blosc2::{AxisSelection, CParams, Codec, NDArray, OpenOptions, Target};
use blosc2_object_store::Remote;

use crate::data;
use crate::server::{Faults, Server, bytes};

/// 64 chunks of 4 MiB, which is the array of the documentation.
const SHAPE: [u64; 2] = [8192, 8192];
const CHUNKS: [u64; 2] = [128, 8192];
const BLOCKS: [u64; 2] = [8, 8192];

fn remote(server: &Server) -> Remote {
    Remote::from_url(&server.url(""), [("timeout", "20s")]).unwrap().0
}

#[test]
fn opening_and_reading_a_box_takes_few_requests() {
    let server = Server::start();
    let (frame, items) = data::array(SHAPE, CHUNKS, BLOCKS);
    assert!(frame.len() > 32 << 20, "it is large: {}", frame.len());
    server.put("a.b2nd", frame);
    let array = remote(&server).array("a.b2nd").unwrap();
    let (log, _) = server.taken();
    assert_eq!(log.len(), 2, "opening: {log:?}");

    let expected = &items[5000 * 8192 + 100..][..64];
    assert_eq!(array.read::<Vec<f32>>((5000..5001, 100..164)).unwrap(), expected);
    let (log, _) = server.taken();
    assert_eq!(log.len(), 2, "the table of blocks, and the block: {log:?}");
    assert!(bytes(&log) < 300 << 10, "{log:?}");

    // The same again, and another block of the same chunk.
    assert_eq!(array.read::<Vec<f32>>((5000..5001, 100..164)).unwrap(), expected);
    let (log, _) = server.taken();
    assert!(log.is_empty(), "{log:?}");
    let expected = &items[4999 * 8192 + 100..][..64];
    assert_eq!(array.read::<Vec<f32>>((4999..5000, 100..164)).unwrap(), expected);
    let (log, _) = server.taken();
    assert!(log.len() <= 1, "{log:?}");

    // All chunks. The delay makes requests overlap.
    server.set(Faults { delay: Duration::from_millis(5), ..Faults::default() });
    assert!(array.read::<Vec<f32>>(..).unwrap() == items);
    let (log, most) = server.taken();
    assert!(most >= 4, "{most} requests at the same time");
    assert!(log.len() < 100, "{} requests", log.len());
    let mut ranges: Vec<_> = log.into_iter().map(|(_, range)| range.unwrap()).collect();
    ranges.sort_by_key(|range| range.start);
    // The first part goes through the cache, in whole pages.
    let is_once = |two: &[std::ops::Range<u64>]| two[0].end <= two[1].start + (16 << 10);
    assert!(ranges.windows(2).all(is_once), "parts are sent twice: {ranges:?}");
}

/// Rows of chunks, so that the boxes are in 32 chunks.
#[test]
fn the_boxes_of_a_selection_are_requested_together() {
    let server = Server::start();
    let (frame, items) = data::array([4096, 4096], [128, 4096], [8, 4096]);
    server.put("a.b2nd", frame);
    let array = remote(&server).array("a.b2nd").unwrap();
    array.item::<f32>(&[0, 0]).unwrap();
    server.set(Faults { delay: Duration::from_millis(20), ..Faults::default() });
    server.taken();
    // Two blocks of each chunk.
    let rows: Vec<u64> = (0..64).map(|number| number * 64 + 8 * (number % 2) + 3).collect();
    let start = Instant::now();
    let found = array.read::<Vec<f32>>((AxisSelection::from(rows.clone()), 10..20)).unwrap();
    let time = start.elapsed();
    let expected = rows.iter().flat_map(|&row| &items[row as usize * 4096 + 10..][..10]);
    assert!(found.iter().eq(expected));
    let (log, most) = server.taken();
    println!("64 boxes of 32 chunks: {} requests, {most} at the same time, {time:?}", log.len());
    // At most one for each table, and one for each block.
    assert!(log.len() <= 96 && most > 8, "{} requests, {most} at the same time", log.len());
}

#[test]
fn a_small_file_takes_one_request() {
    let server = Server::start();
    let array = NDArray::builder().arange(0i16, 10_000, 1).unwrap();
    server.put("a.b2nd", array.schunk().to_cframe().unwrap());
    let found = remote(&server).array("a.b2nd").unwrap();
    assert_eq!(found.read::<Vec<i16>>(..).unwrap(), array.read::<Vec<i16>>(..).unwrap());
    let (log, _) = server.taken();
    assert_eq!(log.len(), 1, "{log:?}");
}

/// 200,000 chunks, whose index is larger than what opening reads.
#[test]
fn a_large_index_takes_one_request_more() {
    let server = Server::start();
    let params = CParams::new().codec(Codec::Lz4);
    let builder = NDArray::builder().chunk_shape(8).block_shape(8).cparams(params);
    let array =
        builder.from_iter((0..1_600_000u32).map(|at| at.wrapping_mul(2_654_435_761)), 1_600_000);
    server.put("a.b2nd", array.unwrap().schunk().to_cframe().unwrap());
    let array = remote(&server).array("a.b2nd").unwrap();
    assert_eq!(array.item::<u32>(777_777).unwrap(), 777_777u32.wrapping_mul(2_654_435_761));
    let (log, _) = server.taken();
    assert!(log.len() <= 5, "{log:?}");
}

#[test]
fn settings_limit_the_requests() {
    let server = Server::start();
    let content: Vec<u8> = (0..10_000_000u32).map(|at| (at / 3) as u8).collect();
    server.put("bytes", content.clone());
    let read = |remote: Remote| {
        let object = remote.object("bytes").unwrap();
        server.taken();
        // The delay makes requests overlap.
        server.set(Faults { delay: Duration::from_millis(5), ..Faults::default() });
        assert!(object.read_vec_at(100, 9_000_000).unwrap() == content[100..9_000_100]);
        server.set(Faults::default());
        server.taken()
    };
    let (log, most) = read(remote(&server).concurrency(3).request_size(500_000).cache(0));
    assert!(log.len() == 18 && most <= 3, "{} requests, {most} at the same time", log.len());
    let (log, most) = read(remote(&server).concurrency(1).cache(0));
    assert!(log.len() == 2 && most == 1, "{} requests, {most} at the same time", log.len());

    let two = |gap: u64| {
        let object = remote(&server).gap(gap).cache(0).object("bytes").unwrap();
        server.taken();
        let (mut first, mut second) = ([0; 10], [0; 20]);
        object.read_ranges_at(&mut [(700_000, &mut first), (800_000, &mut second)]).unwrap();
        assert_eq!(
            (&first[..], &second[..]),
            (&content[700_000..700_010], &content[800_000..800_020])
        );
        server.taken().0.len()
    };
    assert_eq!((two(10_000), two(200_000)), (2, 1));
}

#[test]
fn ranges_of_any_kind_are_read() {
    let server = Server::start();
    let content: Vec<u8> =
        (0..1_000_000u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    server.put("bytes", content.clone());
    let mut state = 7u64;
    let mut random = |end: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % end
    };
    for cache in [0, 64 << 10, 32 << 20] {
        let object = remote(&server).cache(cache).gap(1000).object("bytes").unwrap();
        for _ in 0..100 {
            let count = random(20) as usize;
            let mut places = Vec::new();
            for _ in 0..count {
                let start = random(1_000_000);
                let most = if random(5) == 0 { 300_000 } else { 3000 };
                let len = random(most).min(1_000_000 - start);
                places.push((start, vec![0u8; len as usize]));
            }
            let mut ranges: Vec<(u64, &mut [u8])> =
                places.iter_mut().map(|(start, to)| (*start, &mut to[..])).collect();
            object.read_ranges_at(&mut ranges).unwrap();
            for (start, found) in places {
                let expected = &content[start as usize..][..found.len()];
                assert!(found == expected, "{} bytes at {start}", found.len());
            }
        }
        let mut byte = [0];
        assert!(object.read_exact_at(1_000_000, &mut byte).is_err());
        assert!(object.read_exact_at(u64::MAX, &mut byte).is_err());
        object.read_exact_at(1_000_000, &mut []).unwrap();
    }
}

/// An array whose chunks are small is read by few requests.
#[test]
fn neighbours_share_requests() {
    let server = Server::start();
    let items: Vec<u64> = (0..400_000).map(|at| at * at % 1_000_003).collect();
    let array =
        NDArray::builder().chunk_shape(1000).block_shape(1000).from_slice(&items, 400_000).unwrap();
    server.put("a.b2nd", array.schunk().to_cframe().unwrap());
    let options = OpenOptions::new();
    let object = remote(&server).object("a.b2nd").unwrap();
    let array = NDArray::open_with(Target::storage(ReadOnly::new(object)), &options).unwrap();
    assert!(array.read::<Vec<u64>>(..).unwrap() == items);
    let (log, _) = server.taken();
    assert!(log.len() <= 6, "{} requests for 400 chunks", log.len());
}

/// A change moves a chunk to the end of the file.
#[test]
fn moved_chunks_are_read_with_the_others() {
    let server = Server::start();
    let (frame, mut items) = data::array([2048, 2048], [64, 2048], [8, 2048]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2nd");
    std::fs::write(&path, frame).unwrap();
    let mut array = NDArray::open_rw(&path).unwrap();
    for row in [70, 71, 500, 1900, 70] {
        let new: Vec<f32> = (0..2048).map(|column| (column * row % 977) as f32).collect();
        array.write((row as u64, ..), &new).unwrap();
        items[row * 2048..][..2048].copy_from_slice(&new);
    }
    drop(array);
    let frame = std::fs::read(&path).unwrap();
    let size = frame.len() as u64;
    server.put("a.b2nd", frame);
    for gap in [0, 4096, 256 << 10] {
        let array = remote(&server).gap(gap).array("a.b2nd").unwrap();
        server.set(Faults { delay: Duration::from_millis(10), ..Faults::default() });
        server.taken();
        assert!(array.read::<Vec<f32>>(..).unwrap() == items);
        let (log, most) = server.taken();
        server.set(Faults::default());
        assert!(log.len() < 30 && most > 1, "{} requests, {most} at the same time", log.len());
        assert!(bytes(&log) < size + size / 2, "{} of {size} bytes", bytes(&log));
    }
}
