//! Transactions of arrays.

use std::panic::{AssertUnwindSafe, catch_unwind};

use blosc2::{ErrorKind, NDArray, OpenOptions};

/// Arrays of zeros in memory, in a file, in a directory and in a locked file, with and without a cache.
fn each(test: impl Fn(NDArray, &str)) {
    let folder = tempfile::tempdir().unwrap();
    let builder = || NDArray::builder().chunks([2, 4]).blocks([2, 2]);
    for cache in [0, 1 << 20] {
        for kind in ["memory", "file", "directory", "locked"] {
            let path = folder.path().join(format!("{kind} {cache}"));
            let mut array = match kind {
                "memory" => builder().zeros::<i32>([6, 8]),
                "directory" => builder().directory(&path).zeros::<i32>([6, 8]),
                _ => builder().file(&path).zeros::<i32>([6, 8]),
            }
            .unwrap();
            if kind == "locked" {
                drop(array);
                let options = OpenOptions::new().write(true).locking(true);
                array = NDArray::open_with(&path, &options).unwrap();
            }
            array.set_cache(cache);
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
                    array.fill((1..4, ..), 7)?;
                    array.append(1, &[8; 12])?;
                    assert_eq!(array.item::<i32>([2, 9])?, 8, "{what}");
                    assert!(!panics, "as requested");
                    array.set([100, 0], 1)
                })
            }));
            assert_eq!(failed.is_err(), panics, "{what}");
            if let Ok(failed) = failed {
                assert_eq!(failed.unwrap_err().kind(), ErrorKind::OutOfBounds, "{what}");
            }
            assert_eq!(array.shape(), [6, 8], "{what}");
            assert_eq!(all(&array), before, "{what}");
        }
        array.set([0, 0], 3).unwrap();
        assert_eq!(array.item::<i32>([0, 0]).unwrap(), 3, "{what}");
        if let Some(path) = array.schunk().path() {
            assert_eq!(all(&NDArray::open(path).unwrap())[1..], before[1..], "{what}");
        }
    });
}
