//! Transactions of arrays.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use blosc2::storage::{ReadAt, Storage};
use blosc2::{ErrorKind, NDArray, OpenOptions, Target, compute};

use crate::common::Rng;

/// Arrays of zeros in memory, in a file, in a directory and in a locked file, with and without a cache.
fn each(test: impl Fn(NDArray, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let builder = || NDArray::builder().chunk_shape([2, 4]).block_shape([2, 2]);
    for cache in [0, 1 << 20] {
        for kind in ["memory", "file", "directory", "locked"] {
            let path = folder.path().join(format!("{kind} {cache}"));
            let mut array = match kind {
                "memory" => builder().zeros::<i32>([6, 8]),
                "directory" => {
                    builder().target(Target::from(&path).directory(true)).zeros::<i32>([6, 8])
                }
                _ => builder().target(&path).zeros::<i32>([6, 8]),
            }
            .unwrap();
            if kind == "locked" {
                drop(array);
                let options = OpenOptions::new().write(true).locking(true);
                array = NDArray::open_with(&path, &options).unwrap();
            }
            array.set_dparams(array.info().dparams.cache(cache));
            test(array, &format!("{kind}, cache {cache}"));
        }
    }
}

fn all(array: &NDArray) -> Vec<i32> {
    array.read(..).unwrap()
}

#[test]
fn writes_of_an_array_are_committed_together() {
    each(|mut array, what| {
        let done = array.transaction(|array| {
            let mut model = vec![0; 48];
            for row in 0..6 {
                array.write((row, 1..7), &[row as i32 + 1; 6])?;
                model[row * 8 + 1..row * 8 + 7].fill(row as i32 + 1);
                assert_eq!(all(array), model, "{what}");
            }
            array.append(0, &[9; 8])?;
            array.resize([7, 10])?;
            assert_eq!(array.shape(), [7, 10], "{what}");
            array.delete(0, 0..3)
        });
        done.unwrap();
        assert_eq!(array.shape(), [4, 10], "{what}");
        let row = |item| [0, item, item, item, item, item, item, 0, 0, 0];
        let last = [9, 9, 9, 9, 9, 9, 9, 9, 0, 0];
        let expected = [row(4), row(5), row(6), last].concat();
        assert_eq!(all(&array), expected, "{what}");
        if let Some(path) = array.schunk().path() {
            assert_eq!(all(&NDArray::open(path).unwrap()), expected, "{what}");
        }
    });
}

#[test]
fn a_transaction_of_an_array_is_rolled_back() {
    each(|mut array, what| {
        array.write(1, &[5; 8]).unwrap();
        let before = all(&array);
        for panics in [false, true] {
            let failed = catch_unwind(AssertUnwindSafe(|| {
                array.transaction(|array| {
                    array.write((1..4, ..), 7)?;
                    array.append(1, &[8; 12])?;
                    assert_eq!(array.item::<i32>([2, 9])?, 8, "{what}");
                    assert!(!panics, "as requested");
                    array.write([100, 0], 1)
                })
            }));
            assert_eq!(failed.is_err(), panics, "{what}");
            if let Ok(failed) = failed {
                assert_eq!(failed.unwrap_err().kind(), ErrorKind::OutOfBounds, "{what}");
            }
            assert_eq!(array.shape(), [6, 8], "{what}");
            assert_eq!(all(&array), before, "{what}");
        }
        array.write([0, 0], 3).unwrap();
        assert_eq!(array.item::<i32>([0, 0]).unwrap(), 3, "{what}");
        if let Some(path) = array.schunk().path() {
            assert_eq!(all(&NDArray::open(path).unwrap())[1..], before[1..], "{what}");
        }
    });
}

/// A file whose requests are expensive, so that the parts of many chunks are read at once.
#[derive(Debug)]
struct Slow(std::fs::File);

impl ReadAt for Slow {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        ReadAt::read_exact_at(&self.0, offset, buffer)
    }

    fn request_cost(&self) -> u64 {
        1 << 20
    }
}

impl Storage for Slow {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.0.set_size(len)
    }
}

#[test]
fn all_reads_in_a_transaction_return_the_new_content() {
    const ROWS: usize = 200;
    let noise = |seed| -> Vec<i32> {
        let mut rng = Rng(seed);
        (0..ROWS * 25).map(|_| rng.next() as i32).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let builder = || NDArray::builder().chunk_shape([5, 25]).block_shape([2, 25]);
    for kind in ["memory", "frame in memory", "file", "slow file", "directory"] {
        let path = folder.path().join(kind);
        // These chunks are short. The changes replace some of them with longer ones, which are stored elsewhere.
        let mut items: Vec<i32> = (0..ROWS as i32 * 25).map(|i| i / 50).collect();
        let builder = match kind {
            "memory" => builder(),
            "frame in memory" => builder().target(Vec::new()),
            "directory" => builder().target(Target::from(&path).directory(true)),
            _ => builder().target(&path),
        };
        let mut array = builder.from_slice(&items, [ROWS as u64, 25]).unwrap();
        if kind == "slow file" {
            drop(array);
            let file = std::fs::File::options().read(true).write(true).open(&path).unwrap();
            let options = OpenOptions::new().write(true);
            array =
                NDArray::from_schunk(options.open(Target::storage(Slow(file))).unwrap()).unwrap();
        }
        let done = array.transaction(|array| {
            for (seed, row) in [(1, 0), (2, 17), (3, 120), (4, 0)] {
                let row = row as usize;
                let new = &noise(seed)[..6 * 25];
                array.write((row as u64..row as u64 + 6, ..), new)?;
                items[row * 25..][..6 * 25].copy_from_slice(new);
                check(array, &items, kind);
            }
            Ok(())
        });
        done.unwrap();
        check(&array, &items, kind);
    }
}

/// Checks reads that read ahead, and those of expressions.
fn check(array: &NDArray, items: &[i32], what: &str) {
    let lazy = || array.lazy::<i32>();
    assert_eq!(all(array), items, "{what}");
    let sum: i64 = items.iter().map(|&item| i64::from(item)).sum();
    assert_eq!(lazy().sum().unwrap(), sum, "{what}");
    assert_eq!(lazy().read().unwrap(), items, "{what}");
    let positive: Vec<i32> = items.iter().copied().filter(|&item| item > 0).collect();
    assert_eq!(lazy().select(|item| item > 0).items().unwrap(), positive, "{what}");
    let doubled: Vec<i32> = items.iter().map(|item| item.wrapping_mul(2)).collect();
    let created = lazy().map(|item| item.wrapping_mul(2)).create(NDArray::builder()).unwrap();
    assert_eq!(all(&created), doubled, "{what}");
    let zipped = compute::zip((array, array)).map(|(a, b): (i32, i32)| a.wrapping_add(b));
    assert_eq!(zipped.read().unwrap(), doubled, "{what}");
    let mapped = NDArray::builder().map(array, |item: i32| item.wrapping_mul(2)).unwrap();
    assert_eq!(all(&mapped), doubled, "{what}");
    let view = array.view().slice((3.., 1..)).unwrap();
    let part: Vec<i32> = items.chunks(25).skip(3).flat_map(|row| &row[1..]).copied().collect();
    assert_eq!(view.read::<Vec<i32>>(..).unwrap(), part, "{what}");
    let most = part.iter().max().copied();
    assert_eq!(view.lazy::<i32>().max().unwrap(), most.unwrap(), "{what}");
}
