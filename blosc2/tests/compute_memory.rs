//! Expressions are evaluated in little memory, whatever the size of their arrays.
//!
//! A separate program with one test at a time, because it measures the memory of all threads.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::path::Path;

use blosc2::compute::zip;
use blosc2::{
    AxisSelection, CParams, Codec, DParams, NDArray, NDArrayBuilder, OpenOptions, Threads,
};

use common::measure::peak_of_all_threads;

/// The memory in bytes that an evaluation with two threads may take beyond its results.
const LIMIT: usize = 32 << 20;

const COLUMNS: u64 = 8192;
const CHUNKS: [u64; 2] = [64, COLUMNS];
const BLOCKS: [u64; 2] = [4, COLUMNS];

fn builder(path: &Path) -> NDArrayBuilder {
    let threads = Threads::new(2);
    NDArray::builder()
        .chunk_shape(CHUNKS)
        .block_shape(BLOCKS)
        .cparams(CParams::new().codec(Codec::Lz4).level(1).threads(threads))
        .options(OpenOptions::new().dparams(DParams::new().threads(threads)))
        .target(path)
}

/// Creates an array of `len` bytes in a file. Its items are 0 to 127, again and again.
fn array(path: &Path, len: u64) -> NDArray {
    let item = |at: u64| ((at % 128) as f64).to_ne_bytes();
    let items: Vec<u8> = (0..CHUNKS[0] * COLUMNS).flat_map(item).collect();
    let shape = [len / 8 / COLUMNS, COLUMNS];
    let array = builder(path).dtype(common::native("<f8"), 8).from_chunk_fn(shape, |_, bytes| {
        bytes.copy_from_slice(&items[..bytes.len()]);
        Ok::<(), blosc2::Error>(())
    });
    array.unwrap()
}

/// Returns the result of an evaluation, whose memory without its results is limited.
fn measured<T>(what: &str, evaluate: impl FnOnce() -> T, results: impl Fn(&T) -> usize) -> T {
    let (result, peak) = peak_of_all_threads(evaluate);
    let peak = peak - results(&result);
    println!("{what}: {:.1} MiB", peak as f64 / f64::from(1 << 20));
    assert!(peak <= LIMIT, "{what} took {peak} bytes");
    result
}

/// Evaluates expressions of arrays of `len` bytes.
fn check(len: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (a, b) = (array(&path("a"), len), array(&path("b"), len));
    let count = (len / 8) as f64;

    let sum = measured("sum", || a.lazy::<f64>().sum().unwrap(), |_| 0);
    assert_eq!(sum, 63.5 * count);

    let means = measured("mean over axis 0", || a.lazy::<f64>().axes(0).mean().unwrap(), |_| 0);
    assert!(means.items().iter().zip(0..).all(|(mean, at)| *mean == f64::from(at % 128)));

    let stds = measured("std over axis 1", || a.lazy::<f64>().axes(1).std(0).unwrap(), |_| 0);
    assert!(stds.items().iter().all(|std| *std == 1365.25f64.sqrt()));

    let both = || zip((&a, &b)).map(|(x, y): (f64, f64)| x * y + 1.0);
    assert_eq!(measured("sum of a product", || both().sum().unwrap(), |_| 0), 5398.5 * count);

    let select = || a.lazy::<f64>().select(|item| item == 127.0).indices().unwrap();
    let found = measured("select", select, |found| found.capacity() * size_of::<u64>());
    assert!(
        found.len() as f64 == count / 128.0
            && found.iter().zip(0..).all(|(at, n)| *at == 127 + 128 * n)
    );

    let create = || a.lazy::<f64>().map(|item| item + 1.0).create(builder(&path("new"))).unwrap();
    let new = measured("create", create, |_| 0);
    assert_eq!(new.read::<Vec<f64>>((-1, -3..)).unwrap(), [126.0, 127.0, 128.0]);
}

/// Sorts an array of `len` bytes, which is several times as large as the memory.
fn check_sorts(len: u64) {
    const MEMORY: usize = 4 << 20;
    let folder = tempfile::tempdir().unwrap();
    let threads = Threads::new(2);
    let builder = |name: &str| {
        let params = CParams::new().codec(Codec::Lz4).level(1).threads(threads);
        let target = folder.path().join(name);
        NDArray::builder().cparams(params).chunk_shape(1 << 17).target(target).max_memory(MEMORY)
    };
    let count = len / 8;
    // Each number below `count`, which is a power of two, once.
    let number = |[at]: [u64; 1]| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) % count) as f64;
    let array = builder("array").from_fn([count], number).unwrap();

    let sort = || builder("sort").sort::<f64>(&array).unwrap();
    let sorted = measured("sort", sort, |_| 0);
    let items = sorted.read::<Vec<f64>>(AxisSelection::strided(.., 1000)).unwrap();
    assert!(items.iter().zip((0..).step_by(1000)).all(|(item, at)| *item == f64::from(at)));

    let argsort = || builder("argsort").argsort::<f64>(&array).unwrap();
    let order = measured("argsort", argsort, |_| 0);
    for at in (0..count).step_by(count as usize / 10) {
        assert_eq!(array.item::<f64>(order.item::<i64>(at).unwrap()).unwrap(), at as f64);
    }

    let unique = || builder("unique").unique::<f64>(&array).unwrap();
    assert_eq!(measured("unique", unique, |_| 0).len(), count);
}

/// Creates arrays of about `len` bytes from arrays.
fn check_arrays(len: u64) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let array = array(&path("array"), len);
    let small = |name: &str| {
        let params = CParams::new().codec(Codec::Lz4).level(1).threads(Threads::new(2));
        let builder = NDArray::builder().cparams(params).target(path(name));
        builder.max_memory(8 << 20).chunk_shape((256, 256))
    };
    let count = len / 8;
    let reshape = || small("reshaped").reshape(&array, (count / 1024, -1)).unwrap();
    let reshaped = measured("reshape", reshape, |_| 0);
    assert_eq!(reshaped.read::<Vec<f64>>((-1, 126..130)).unwrap(), [126.0, 127.0, 0.0, 1.0]);

    let column = array.view().slice((.., 5..6)).unwrap();
    let shape = array.shape().to_vec();
    let broadcast = || small("broadcast").broadcast_to(column, shape).unwrap();
    let mut broadcast = measured("broadcast_to", broadcast, |_| 0);
    let assign = || broadcast.assign::<f64>(.., array.view().slice(..1).unwrap()).unwrap();
    measured("assign", assign, |_| 0);
    assert_eq!(broadcast.read::<Vec<f64>>((-1, 1..4)).unwrap(), [1.0, 2.0, 3.0]);

    let diff = || small("differences").diff::<f64>(&array, 2, 1).unwrap();
    let differences = measured("diff", diff, |_| 0);
    assert_eq!(differences.read::<Vec<f64>>((-1, 125..128)).unwrap(), [0.0, -128.0, 128.0]);

    let last = small("last").full(-1i64, [array.shape()[0], COLUMNS]).unwrap();
    let take = || small("taken").take_along_axis(&array, &last, 1).unwrap();
    let taken = measured("take_along_axis", take, |_| 0);
    assert_eq!(taken.item::<f64>((-1, 0)).unwrap(), 127.0);

    let (a, b) = (array.view().slice((.., ..16)).unwrap(), array.view().slice((..16, ..)).unwrap());
    let matmul = || small("product").matmul::<f64>(a, b).unwrap();
    let product = measured("matmul", matmul, |_| 0);
    assert_eq!(product.item::<f64>((-1, 3)).unwrap(), 3.0 * 120.0);
}

#[test]
fn expressions_take_little_memory() {
    check(64 << 20);
    check_sorts(16 << 20);
    check_arrays(64 << 20);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --large runs it"]
fn expressions_of_4_gib_take_little_memory() {
    check(4 << 30);
    check_sorts(4 << 30);
    check_arrays(4 << 30);
}
