//! Ranges of numbers, functions of indices, and appenders.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use blosc2::user_defined::{BoxError, ChunkBlock};
use blosc2::{ErrorKind, NDArray};

/// What NumPy's `arange` and `linspace` return, to the bit.
#[test]
fn ranges_are_numpys() {
    let floats = |start: f64, end: f64, step: f64| {
        NDArray::builder().arange(start, end, step).unwrap().read_all::<f64>().unwrap()
    };
    assert_eq!(floats(0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75]);
    // The step is (1.0 + 0.1) - 1.0.
    assert_eq!(floats(1.0, 1.3, 0.1), [1.0, 1.1, 1.2000000000000002, 1.3000000000000003]);
    assert!(floats(1.0, 0.0, 0.5).is_empty());
    assert_eq!(floats(-f64::MAX, f64::MAX, f64::MAX), [-f64::MAX, 0.0]);
    let items = NDArray::builder().arange(0.0f32, 0.3, 0.1).unwrap();
    assert_eq!(items.shape(), [3]);
    let ints = NDArray::builder().arange(i8::MIN, i8::MAX, 100).unwrap();
    assert_eq!(ints.read_all::<i8>().unwrap(), [-128, -28, 72]);
    let ints = NDArray::builder().arange(u64::MAX - 2, u64::MAX, 1).unwrap();
    assert_eq!(ints.read_all::<u64>().unwrap(), [u64::MAX - 2, u64::MAX - 1]);
    let down = NDArray::builder().arange(5i64, i64::MIN, i64::MIN).unwrap();
    assert_eq!(down.read_all::<i64>().unwrap(), [5, i64::MIN + 5]);
    for (start, end, step) in [
        (0.0, 1.0, 0.0),
        (0.0, f64::INFINITY, 1.0),
        (0.0, 1.0, f64::INFINITY),
        (f64::NAN, 1.0, 1.0),
    ] {
        let error = NDArray::builder().arange(start, end, step).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }

    let spaced = |start: f64, end: f64, len: u64| {
        NDArray::builder().linspace(start, end, len).unwrap().read_all::<f64>().unwrap()
    };
    assert_eq!(spaced(1.0, 2.0, 3), [1.0, 1.5, 2.0]);
    assert_eq!(spaced(1.0, 2.0, 1), [1.0]);
    assert!(spaced(1.0, 2.0, 0).is_empty());
    assert_eq!(spaced(-f64::MAX, f64::MAX, 3), [-f64::MAX, 0.0, f64::MAX]);
    let ints = NDArray::builder().linspace(-1i32, 1, 4).unwrap();
    assert_eq!(ints.read_all::<i32>().unwrap(), [-1, -1, 0, 1]);
    let ints = NDArray::builder().linspace(i64::MIN, i64::MAX, 3).unwrap();
    assert_eq!(ints.read_all::<i64>().unwrap(), [i64::MIN, -1, i64::MAX]);
    assert!(NDArray::builder().linspace(0.0, f64::NAN, 3).is_err());

    let eye = NDArray::builder().eye::<u8>(2, 3).unwrap();
    assert_eq!(eye.read_all::<u8>().unwrap(), [1, 0, 0, 0, 1, 0]);
}

/// An array of two columns, whose writes fail while the flag is set.
fn failing(flag: &Arc<AtomicBool>) -> NDArray {
    let flag = Arc::clone(flag);
    let builder = NDArray::builder().chunks([10, 2]).blocks([10, 2]);
    let mut array = builder.zeros::<u32>(&[0, 2]).unwrap();
    let prefilter = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        let input = block.input();
        block.output().copy_from_slice(input);
        if flag.load(Ordering::Relaxed) { Err("on purpose".into()) } else { Ok(()) }
    };
    array.set_prefilter(prefilter).unwrap();
    array
}

fn rows(range: std::ops::Range<u32>) -> Vec<u32> {
    range.flat_map(|row| [row, !row]).collect()
}

#[test]
fn an_append_that_fails_can_be_repeated() {
    let fails = Arc::new(AtomicBool::new(false));
    for sizes in [&[8u32, 17, 3, 40][..], &[10, 10, 5], &[25, 1, 30], &[3, 7, 20, 1]] {
        let mut appender = failing(&fails).into_appender(0).unwrap();
        let mut end = 0;
        for &size in sizes {
            let items = rows(end..end + size);
            let before = (appender.pending(), appender.array().shape()[0]);
            fails.store(true, Ordering::Relaxed);
            let failed = appender.append(&items);
            fails.store(false, Ordering::Relaxed);
            if let Err(error) = failed {
                assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
                let after = (appender.pending(), appender.array().shape()[0]);
                assert_eq!(after, before, "{sizes:?}");
                appender.append(&items).unwrap();
            }
            end += size;
            assert_eq!(appender.array().shape()[0] + appender.pending(), u64::from(end));
            assert!(appender.pending() < 10);
        }
        let array = appender.finish().unwrap();
        assert_eq!(array.read_all::<u32>().unwrap(), rows(0..end), "{sizes:?}");
    }
}

#[test]
fn an_array_comes_back_from_an_appender_whose_writes_fail() {
    let fails = Arc::new(AtomicBool::new(false));
    let mut appender = failing(&fails).into_appender(0).unwrap();
    appender.append(&rows(0..15)).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert_eq!(appender.flush().unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(appender.pending(), 5);
    let array = appender.into_inner();
    assert_eq!(array.read_all::<u32>().unwrap(), rows(0..10));
}

#[test]
fn appenders_along_other_axes_keep_the_order() {
    let array = NDArray::builder().chunks([2, 4]).zeros::<u32>(&[3, 1]).unwrap();
    let mut appender = array.into_appender(1).unwrap();
    let mut model: Vec<Vec<u32>> = vec![vec![0]; 3];
    let mut next = 1;
    for columns in [1, 2, 5, 1, 9, 3, 4] {
        let mut items = Vec::new();
        for row in &mut model {
            let new: Vec<u32> = (next..next + columns).collect();
            next += columns;
            items.extend_from_slice(&new);
            row.extend(new);
        }
        appender.append(&items).unwrap();
    }
    assert_eq!(appender.finish().unwrap().read_all::<u32>().unwrap(), model.concat());
}

#[test]
fn shapes_are_integers_for_each_axis() {
    let items: Vec<u8> = (0..12).collect();
    let shape = vec![3usize, 4];
    for array in [
        NDArray::from_slice(&items, [3, 4]),
        NDArray::from_slice(&items, [3u64, 4]),
        NDArray::from_slice(&items, (3, 4u8)),
        NDArray::from_slice(&items, &shape),
        NDArray::from_slice(&items, shape),
        NDArray::builder().chunks((2, 2)).blocks([1, 2]).from_slice(&items, [3i16, 4]),
    ] {
        let array = array.unwrap();
        assert_eq!(array.shape(), [3, 4]);
        assert_eq!(array.read_all::<u8>().unwrap(), items);
    }
    let mut line = NDArray::from_slice(&items, items.len()).unwrap();
    assert_eq!((line.shape(), NDArray::from_slice(&[7], ()).unwrap().ndim()), (&[12][..], 0));
    line.resize(5).unwrap();
    assert_eq!(line.shape(), [5]);

    let message = |array: blosc2::Result<NDArray>| {
        let error = array.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        error.to_string()
    };
    let negative = message(NDArray::from_slice(&items, (3, -4)));
    assert!(negative.ends_with("axis 1 of the shape: -4, expected at least 0"), "{negative}");
    let side = NDArray::builder().chunks([2, -1]).from_slice(&items, [3, 4]);
    assert_eq!(side.unwrap_err().kind(), ErrorKind::TooLarge);
    assert_eq!(line.resize(-1).unwrap_err().kind(), ErrorKind::InvalidArgument);
}

#[test]
fn an_array_without_items_comes_first() {
    let none = NDArray::builder().zeros::<f64>((0, 3)).unwrap();
    let some = NDArray::from_slice(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], (2, 3)).unwrap();
    for sources in [[&none, &some], [&some, &none]] {
        let both = NDArray::builder().concatenate(sources, 0).unwrap();
        assert_eq!(both.shape(), [2, 3]);
        assert_eq!(both.read_all::<f64>().unwrap(), some.read_all::<f64>().unwrap());
    }
}
