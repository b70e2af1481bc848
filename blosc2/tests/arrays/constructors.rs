//! Ranges of numbers, functions of indices, and appenders.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use blosc2::user_defined::{BoxError, ChunkBlock};
use blosc2::{Appender, CParams, ErrorKind, NDArray, OpenOptions, Threads};

/// What NumPy's `arange` and `linspace` return, to the bit.
#[test]
fn ranges_are_numpys() {
    let floats = |start: f64, end: f64, step: f64| {
        NDArray::builder().arange(start, end, step).unwrap().read::<Vec<f64>>(..).unwrap()
    };
    assert_eq!(floats(0.0, 1.0, 0.25), [0.0, 0.25, 0.5, 0.75]);
    // The step is (1.0 + 0.1) - 1.0.
    assert_eq!(floats(1.0, 1.3, 0.1), [1.0, 1.1, 1.2000000000000002, 1.3000000000000003]);
    assert!(floats(1.0, 0.0, 0.5).is_empty());
    assert_eq!(floats(-f64::MAX, f64::MAX, f64::MAX), [-f64::MAX, 0.0]);
    let items = NDArray::builder().arange(0.0f32, 0.3, 0.1).unwrap();
    assert_eq!(items.shape(), [3]);
    let ints = NDArray::builder().arange(i8::MIN, i8::MAX, 100).unwrap();
    assert_eq!(ints.read::<Vec<i8>>(..).unwrap(), [-128, -28, 72]);
    let ints = NDArray::builder().arange(u64::MAX - 2, u64::MAX, 1).unwrap();
    assert_eq!(ints.read::<Vec<u64>>(..).unwrap(), [u64::MAX - 2, u64::MAX - 1]);
    let down = NDArray::builder().arange(5i64, i64::MIN, i64::MIN).unwrap();
    assert_eq!(down.read::<Vec<i64>>(..).unwrap(), [5, i64::MIN + 5]);
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
        NDArray::builder().linspace(start, end, len).unwrap().read::<Vec<f64>>(..).unwrap()
    };
    assert_eq!(spaced(1.0, 2.0, 3), [1.0, 1.5, 2.0]);
    assert_eq!(spaced(1.0, 2.0, 1), [1.0]);
    assert!(spaced(1.0, 2.0, 0).is_empty());
    assert_eq!(spaced(-f64::MAX, f64::MAX, 3), [-f64::MAX, 0.0, f64::MAX]);
    let ints = NDArray::builder().linspace(-1i32, 1, 4).unwrap();
    assert_eq!(ints.read::<Vec<i32>>(..).unwrap(), [-1, -1, 0, 1]);
    let ints = NDArray::builder().linspace(i64::MIN, i64::MAX, 3).unwrap();
    assert_eq!(ints.read::<Vec<i64>>(..).unwrap(), [i64::MIN, -1, i64::MAX]);
    assert!(NDArray::builder().linspace(0.0, f64::NAN, 3).is_err());

    let eye = NDArray::builder().from_fn([2, 3], |[row, column]| u8::from(row == column)).unwrap();
    assert_eq!(eye.read::<Vec<u8>>(..).unwrap(), [1, 0, 0, 0, 1, 0]);
}

#[test]
fn chunks_are_filled_once_each() {
    for (shape, chunks) in [
        (&[10u64, 7, 6][..], &[4u64, 5, 6][..]),
        (&[10, 7, 6], &[1, 2, 3]),
        (&[5], &[5]),
        (&[0, 3], &[1, 2]),
        (&[], &[]),
    ] {
        for threads in [1, 4] {
            let place = |ranges: &[Range<u64>]| {
                let mut numbers = vec![0u64];
                for (range, size) in ranges.iter().zip(shape) {
                    let next = |base: &u64| {
                        let base = base * size;
                        range.clone().map(move |at| base + at)
                    };
                    numbers = numbers.iter().flat_map(next).collect();
                }
                numbers.into_iter().flat_map(u64::to_be_bytes).collect::<Vec<u8>>()
            };
            let filled = Mutex::new(Vec::new());
            let builder = NDArray::builder()
                .chunk_shape(chunks)
                .cparams(CParams::new().threads(Threads::new(threads)));
            let mut array = builder
                .dtype(">u8", 8)
                .from_chunk_fn(shape, |ranges, bytes| {
                    if bytes.iter().any(|&byte| byte != 0) {
                        return Err("the buffer is not zeroed");
                    }
                    bytes.copy_from_slice(&place(ranges));
                    filled.lock().unwrap().push(ranges.to_vec());
                    Ok(())
                })
                .unwrap();
            array.set_dparams(array.info().dparams.convert_byte_order(true));
            let len: u64 = shape.iter().product();
            let expected: Vec<u64> = (0..len).collect();
            assert_eq!(array.read::<Vec<u64>>(..).unwrap(), expected, "{shape:?} {chunks:?}");
            let mut filled = filled.into_inner().unwrap();
            if threads == 4 {
                filled.sort_by_key(|ranges| {
                    ranges.iter().map(|range| range.start).collect::<Vec<_>>()
                });
            }
            let all: Vec<_> =
                array.chunks(..).unwrap().map(|chunk| chunk.ranges().to_vec()).collect();
            assert_eq!(filled, all, "{shape:?} {chunks:?}");
        }
    }
}

#[test]
fn creation_reports_progress_and_can_be_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let source = NDArray::builder().chunk_shape(10).target(folder.path().join("source"));
    let source = Arc::new(source.arange(0u32, 95, 1).unwrap());
    let reports = Arc::new(Mutex::new(Vec::new()));
    let (heard, own) = (Arc::clone(&reports), Arc::clone(&source));
    let builder = NDArray::builder().chunk_shape(20).progress(move |done, total| {
        heard.lock().unwrap().push((done, total));
        // The closure may read the array that is being read.
        own.item::<u32>(94).map(drop)
    });
    let copy = builder.copy(&*source).unwrap();
    assert_eq!(copy.read::<Vec<u32>>(..).unwrap(), source.read::<Vec<u32>>(..).unwrap());
    assert_eq!(*reports.lock().unwrap(), [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);

    let stop = |done: u64, _| if done == 3 { Err("stopped") } else { Ok(()) };
    let path = folder.path().join("new");
    let builder = || NDArray::builder().chunk_shape(20).target(&path).progress(stop);
    let stopped = [
        builder().copy(&*source),
        builder().cast::<f64>(&*source),
        builder().map(&*source, |item: u32| item),
        builder().concatenate([&*source, &*source], 0),
        builder().arange(0, 100, 1),
        builder().dtype("|u1", 1).from_chunk_fn(100, |_, _| Ok::<_, BoxError>(())),
    ];
    for result in stopped {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
        assert!(error.to_string().contains("stopped"), "{error}");
        assert_eq!(error.get_ref().unwrap().to_string(), "stopped");
    }
    let fill = |ranges: &[Range<u64>], _: &mut [u8]| {
        if ranges[0].start == 40 { Err("no data") } else { Ok(()) }
    };
    let builder = NDArray::builder().chunk_shape(20).target(&path);
    let error = builder.dtype("|u1", 1).from_chunk_fn(100, fill).unwrap_err();
    assert_eq!(
        (error.kind(), error.get_ref().unwrap().to_string()),
        (ErrorKind::Callback, "no data".to_owned())
    );
    // No file remains, not even a temporary one.
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// An array of two columns, whose writes fail while the flag is set.
fn failing(flag: &Arc<AtomicBool>) -> NDArray {
    let flag = Arc::clone(flag);
    let builder = NDArray::builder().chunk_shape([10, 2]).block_shape([10, 2]);
    let mut array = builder.zeros::<u32>(&[0, 2]).unwrap();
    let prefilter = move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
        let input = block.input();
        block.output().copy_from_slice(input);
        if flag.load(Ordering::Relaxed) { Err("on purpose".into()) } else { Ok(()) }
    };
    array.set_cparams(array.info().cparams.prefilter(prefilter)).unwrap();
    array
}

fn rows(range: std::ops::Range<u32>) -> Vec<u32> {
    range.flat_map(|row| [row, !row]).collect()
}

#[test]
fn an_append_that_fails_can_be_repeated() {
    let fails = Arc::new(AtomicBool::new(false));
    for sizes in [&[8u32, 17, 3, 40][..], &[10, 10, 5], &[25, 1, 30], &[3, 7, 20, 1]] {
        let mut appender = Appender::new(failing(&fails), 0).unwrap();
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
        assert_eq!(array.read::<Vec<u32>>(..).unwrap(), rows(0..end), "{sizes:?}");
    }
}

#[test]
fn an_array_comes_back_from_an_appender_whose_writes_fail() {
    let fails = Arc::new(AtomicBool::new(false));
    let mut appender = Appender::new(failing(&fails), 0).unwrap();
    appender.append(&rows(0..15)).unwrap();
    fails.store(true, Ordering::Relaxed);
    assert_eq!(appender.flush().unwrap_err().kind(), ErrorKind::Callback);
    assert_eq!(appender.pending(), 5);
    let array = appender.into_inner();
    assert_eq!(array.read::<Vec<u32>>(..).unwrap(), rows(0..10));
}

#[test]
fn appenders_along_other_axes_keep_the_order() {
    let array = NDArray::builder().chunk_shape([2, 4]).zeros::<u32>(&[3, 1]).unwrap();
    let mut appender = Appender::new(array, 1).unwrap();
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
    assert_eq!(appender.finish().unwrap().read::<Vec<u32>>(..).unwrap(), model.concat());
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
        NDArray::builder().chunk_shape((2, 2)).block_shape([1, 2]).from_slice(&items, [3i16, 4]),
    ] {
        let array = array.unwrap();
        assert_eq!(array.shape(), [3, 4]);
        assert_eq!(array.read::<Vec<u8>>(..).unwrap(), items);
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
    let side = NDArray::builder().chunk_shape([2, -1]).from_slice(&items, [3, 4]);
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
        assert_eq!(both.read::<Vec<f64>>(..).unwrap(), some.read::<Vec<f64>>(..).unwrap());
    }
}

#[test]
fn reserved_metalayers_are_refused_before_a_file_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    for name in ["b2nd", "caterva"] {
        let error = NDArray::builder()
            .options(OpenOptions::new().meta(name, b"x"))
            .target(&path)
            .zeros::<u8>(3)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
        assert!(!path.exists());
    }
}
