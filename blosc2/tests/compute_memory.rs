//! Expressions are evaluated in little memory, whatever the size of their arrays.
//!
//! A separate program with one test at a time, because it measures the memory of all threads.

#[path = "../../tests/common/mod.rs"]
mod common;

use std::path::Path;

use blosc2::compute::zip;
use blosc2::{CParams, Codec, DParams, NDArray, NDArrayBuilder, OpenOptions, Threads};

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

#[test]
fn expressions_take_little_memory() {
    check(64 << 20);
}

#[test]
#[ignore = "takes minutes; cargo xtask test --large runs it"]
fn expressions_of_4_gib_take_little_memory() {
    check(4 << 30);
}
