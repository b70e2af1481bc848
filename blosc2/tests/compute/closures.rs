//! Closures that fail, panic, or use the arrays of their expression, and wrong arguments.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use blosc2::compute::{InMemory, zip};
use blosc2::{ErrorKind, NDArray, OpenOptions, Target};

use crate::common::kind;

/// Runs a test in a thread. Panics if it does not end: the test of a deadlock.
fn must_end(test: impl FnOnce() + Send + 'static) {
    let (sender, receiver) = mpsc::channel::<()>();
    let thread = thread::spawn(move || {
        let _ends = sender;
        test();
    });
    // The sender is dropped when the test ends.
    let ended = receiver.recv_timeout(Duration::from_secs(120));
    assert_eq!(ended, Err(mpsc::RecvTimeoutError::Disconnected), "deadlock");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}

fn counted(count: i64, chunk: u64) -> NDArray {
    NDArray::builder().chunk_shape(chunk).block_shape(chunk.min(8)).arange(0i64, count, 1).unwrap()
}

fn opened(path: &Path, locking: bool) -> NDArray {
    let schunk = OpenOptions::new().locking(locking).open(path).unwrap();
    NDArray::from_schunk(schunk).unwrap()
}

/// The text of an error that a closure causes.
fn callback<T: std::fmt::Debug>(result: blosc2::Result<T>) -> String {
    let error = result.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
    format!(
        "{error}: {}",
        std::error::Error::source(&error).map_or(String::new(), ToString::to_string)
    )
}

#[test]
fn errors_and_panics_of_closures_are_returned() {
    let array = counted(1000, 30);
    let fails = |item: i64| if item == 777 { Err("seven") } else { Ok(item) };
    let panics = |item: i64| if item == 777 { panic!("seven") } else { item };
    let bad = |item: i64| panics(item) > 0;
    for threads in [1, 4] {
        let lazy = || array.lazy::<i64>().threads(threads);
        for text in [
            callback(lazy().try_map(fails).sum()),
            callback(lazy().try_map(fails).axes(0).max()),
            callback(lazy().try_map(fails).axes(()).builder(NDArray::builder()).max()),
            callback(lazy().try_map(fails).read()),
            callback(lazy().try_map(fails).create(NDArray::builder())),
            callback(lazy().try_map(fails).describe(&[])),
            callback(zip((&array, 1i64)).try_map(|(item, _): (i64, i64)| fails(item)).sum()),
            callback(lazy().map(panics).sum()),
            callback(lazy().map(panics).read()),
            callback(lazy().map(panics).create(NDArray::builder())),
            callback(zip((&array, 1i64)).map(|(item, _): (i64, i64)| panics(item)).prod()),
            callback(lazy().select(bad).items()),
            callback(lazy().select(bad).count()),
            callback(lazy().select(bad).mask().read()),
            callback(lazy().fold(0, |all, item| all + panics(item), |one, other| one + other)),
            callback(lazy().fold(0, |all, item| all + item, |_, _| panic!("seven"))),
        ] {
            assert!(text.contains("seven"), "{text}");
        }
        // The array can be used afterwards.
        assert_eq!(lazy().sum().unwrap(), 499_500);
    }
}

#[test]
fn nothing_is_computed_after_an_error() {
    // Each call after the error takes a millisecond: all of them would take minutes.
    let array = counted(400_000, 64);
    for threads in [1, 4] {
        let (calls, after) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let call = |item: i64| {
            if calls.fetch_add(1, Ordering::SeqCst) == 1000 {
                return Err("the first error");
            }
            if calls.load(Ordering::SeqCst) > 1000 {
                after.fetch_add(1, Ordering::SeqCst);
                thread::sleep(Duration::from_millis(1));
            }
            Ok(item)
        };
        let error = array.lazy::<i64>().threads(threads).try_map(call).sum();
        assert!(callback(error).contains("the first error"));
        let after = after.into_inner();
        // A thread ends its chunks.
        assert!(after <= if threads == 1 { 0 } else { 20_000 }, "{after} calls");
    }
}

/// Calls a test with an array in memory, in a file, and in a file that is locked.
fn each_array(count: i64, test: impl Fn(&NDArray, Option<&Path>) + Send + Sync + 'static) {
    must_end(move || {
        test(&counted(count, 16), None);
        for locking in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            for path in [folder.path().join("file.b2nd"), folder.path().join("folder.b2nd")] {
                let builder = NDArray::builder()
                    .chunk_shape(16)
                    .block_shape(8)
                    .options(OpenOptions::new().locking(locking));
                let is_file = path.ends_with("file.b2nd");
                let builder = builder.target(Target::from(&path).directory(!is_file));
                drop(builder.arange(0i64, count, 1).unwrap());
                let array = opened(&path, locking);
                test(&array, Some(&path));
            }
        }
    });
}

#[test]
fn closures_read_the_array_of_their_expression() {
    each_array(300, |array, path| {
        let other = path.map(|path| NDArray::open(path).unwrap());
        for threads in [1, 4] {
            let lazy = || array.lazy::<i64>().threads(threads);
            let next = |item: i64| array.item::<i64>(299 - item);
            assert_eq!(lazy().try_map(next).sum().unwrap(), 44_850);
            let items = lazy().try_map(next).read().unwrap();
            assert!(items.into_iter().eq((0..300).rev()));
            assert_eq!(lazy().select(|item| next(item).unwrap() < 10).count().unwrap(), 10);
            let sum =
                lazy().fold(0, |all, item| all + next(item).unwrap(), |one, other| one + other);
            assert_eq!(sum.unwrap(), 44_850);
            if let Some(other) = &other {
                let next = |item: i64| other.item::<i64>(299 - item);
                assert_eq!(lazy().try_map(next).sum().unwrap(), 44_850);
            }
        }
    });
}

#[test]
fn closures_evaluate_expressions_of_the_array() {
    each_array(40, |array, _| {
        for threads in [1, 4] {
            let sum = |item: i64| {
                let inner = zip((array, item)).map(|(one, other): (i64, i64)| one - other);
                inner.threads(threads).sum()
            };
            let array = array.lazy::<i64>().threads(threads);
            // The sum of 0..40 is 780, in total 40 times 780 - 40 times 780.
            assert_eq!(array.try_map(sum).sum().unwrap(), 0);
        }
    });
}

#[test]
fn closures_that_write_to_the_array_are_refused_or_succeed() {
    must_end(|| {
        for threads in [1, 4] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("array.b2nd");
            let builder = NDArray::builder()
                .chunk_shape(16)
                .block_shape(8)
                .options(OpenOptions::new().locking(true));
            let made = builder.target(&path).arange(0i64, 100, 1).unwrap();
            let reading = opened(&path, true);
            let writing = Mutex::new(made);
            let write = |item: i64| writing.lock().unwrap().write(0..1, &[item]).map(|()| item);
            let text = callback(reading.lazy::<i64>().threads(threads).try_map(write).sum());
            assert!(text.contains("closure"), "{text}");
            // Afterwards the array can be changed.
            write(5).unwrap();
            assert_eq!(reading.lazy::<i64>().sum().unwrap(), 4950 + 5);
        }
    });
}

#[test]
fn wrong_arguments_are_refused() {
    let array = NDArray::from_slice(&[1i32, 2, 3, 4, 5, 6], (2, 3)).unwrap();
    assert_eq!(kind(array.lazy::<u32>().sum()), ErrorKind::TypeMismatch);
    assert_eq!(kind(array.lazy::<i64>().shape()), ErrorKind::TypeMismatch);
    assert_eq!(kind(array.view().lazy::<f32>().read()), ErrorKind::TypeMismatch);
    let wrong = zip((&array, &array)).map(|(a, b): (i32, f32)| a as f32 + b);
    assert_eq!(kind(wrong.shape()), ErrorKind::TypeMismatch);
    assert_eq!(kind(wrong.create(NDArray::builder())), ErrorKind::TypeMismatch);

    let other = NDArray::from_slice(&[1i32, 2], 2).unwrap();
    let wrong = zip((&array, &other)).map(|(a, b): (i32, i32)| a + b);
    assert_eq!(kind(wrong.shape()), ErrorKind::InvalidArgument);
    assert_eq!(kind(wrong.read()), ErrorKind::InvalidArgument);
    assert_eq!(kind(wrong.sum()), ErrorKind::InvalidArgument);

    for shape in [&[2u64, 2][..], &[], &[u64::MAX, u64::MAX], &[0]] {
        let wrong = InMemory::new(&[1i32, 2, 3], shape);
        let wrong = zip((&array, wrong)).map(|(a, b): (i32, i32)| a + b);
        assert_eq!(kind(wrong.read()), ErrorKind::InvalidArgument, "{shape:?}");
    }

    for axes in [&[2][..], &[-3], &[0, 0], &[1, -1], &[i64::MAX], &[i64::MIN]] {
        let along = || array.lazy::<i32>().axes(axes);
        assert_eq!(kind(along().sum()), ErrorKind::InvalidArgument, "{axes:?}");
        assert_eq!(kind(along().builder(NDArray::builder()).max()), ErrorKind::InvalidArgument);
    }
    let scalar = NDArray::from_slice(&[1i32], ()).unwrap();
    assert_eq!(kind(scalar.lazy::<i32>().axes(0).sum()), ErrorKind::InvalidArgument);
}

#[test]
fn damaged_chunks_are_errors() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    let items: Vec<u64> =
        (0..4000u64).map(|item| item.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    let builder = NDArray::builder().chunk_shape(500).target(&path);
    let array = builder.from_slice(&items, 4000).unwrap();
    let start = array.schunk().chunk(5).unwrap().into_bytes();
    drop(array);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(32).position(|bytes| bytes == &start[..32]).unwrap();
    // The length of the decompressed chunk.
    bytes[at + 4..at + 8].copy_from_slice(&77u32.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let array = NDArray::open(&path).unwrap();
    assert_eq!(kind(array.read::<Vec<u64>>(..)), ErrorKind::InvalidData);
    for threads in [1, 4] {
        let lazy = || array.lazy::<u64>().threads(threads);
        assert_eq!(kind(lazy().sum()), ErrorKind::InvalidData);
        assert_eq!(kind(lazy().axes(0).max()), ErrorKind::InvalidData);
        assert_eq!(kind(lazy().read()), ErrorKind::InvalidData);
        assert_eq!(kind(lazy().create(NDArray::builder())), ErrorKind::InvalidData);
        assert_eq!(kind(lazy().select(|_| true).count()), ErrorKind::InvalidData);
        assert_eq!(kind(lazy().describe(&[])), ErrorKind::InvalidData);
        // Other chunks can be read.
        let view = array.view().slice(..2500).unwrap();
        let sum = items[..2500].iter().fold(0, |sum: u64, item| sum.wrapping_add(*item));
        assert_eq!(view.lazy::<u64>().threads(threads).sum().unwrap(), sum);
    }
}
