//! Several handles of one array: what each reads after the others' changes, with and without locking.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use blosc2::{Appender, ErrorKind, NDArray, OpenOptions, Result, Selection};

use super::{IN_FILES, Place, folder, kind};

fn locking(path: &Path) -> NDArray {
    let schunk = OpenOptions::new().write(true).locking(true).open(path).unwrap();
    NDArray::from_schunk(schunk).unwrap()
}

fn reading(path: &Path, lock: bool) -> NDArray {
    let schunk = OpenOptions::new().locking(lock).open(path).unwrap();
    NDArray::from_schunk(schunk).unwrap()
}

/// The item at an index, for arrays of any shape.
fn item(row: u64, column: u64) -> i32 {
    (row * 1000 + column + 1) as i32
}

/// The items of a box.
fn items(rows: std::ops::Range<u64>, columns: std::ops::Range<u64>) -> Vec<i32> {
    rows.flat_map(|row| columns.clone().map(move |column| item(row, column))).collect()
}

/// Ten rows of ten.
fn square(place: Place, path: &Path) {
    let builder = NDArray::builder().chunk_shape([5, 5]).block_shape([5, 5]);
    let items = items(0..10, 0..10);
    drop(place.of(builder, path).from_slice(&items, [10, 10]).unwrap());
}

/// Runs `work` for a file and a directory, each with and without locking.
fn each_way(work: impl Fn(Place, bool, &Path)) {
    for place in IN_FILES {
        for lock in [false, true] {
            let (_folder, path) = folder();
            square(place, &path);
            work(place, lock, &path);
        }
    }
}

fn writer(path: &Path, lock: bool) -> NDArray {
    if lock { locking(path) } else { NDArray::open_rw(path).unwrap() }
}

#[test]
fn readers_follow_growth_when_they_ask() {
    each_way(|place, lock, path| {
        let what = format!("{place:?}, lock {lock}");
        let (mut writer, mut reader) = (writer(path, lock), reading(path, lock));
        assert!(!reader.refresh().unwrap(), "{what}: nothing has changed");
        assert_eq!(reader.read::<Vec<i32>>(&[0..1, 0..10]).unwrap(), items(0..1, 0..10), "{what}");

        writer.resize([20, 10]).unwrap();
        writer.write(&[10..20, 0..10], &items(10..20, 0..10)).unwrap();
        // The reader keeps its shape, and the items in it are right.
        assert_eq!(reader.shape(), [10, 10], "{what}");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..10, 0..10), "{what}");
        let outside = reader.read::<Vec<i32>>(&[10..20, 0..10]);
        assert_eq!(kind(outside), ErrorKind::OutOfBounds, "{what}");
        assert!(reader.refresh().unwrap(), "{what}: it has grown");
        assert_eq!(reader.shape(), [20, 10], "{what}");
        assert!(!reader.refresh().unwrap(), "{what}: it knows that");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..20, 0..10), "{what}");

        // Appending along the other axis changes the index of each chunk.
        writer.append(1, &items(0..20, 10..17)).unwrap();
        assert_eq!(reader.shape(), [20, 10], "{what}");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..20, 0..10), "{what}");
        assert_eq!(reader.item::<i32>(&[19, 9]).unwrap(), item(19, 9), "{what}");
        assert_eq!(
            reader.read::<Vec<i32>>(Selection::points(&[[19, 9], [0, 7]])).unwrap(),
            [19010, 8],
            "{what}"
        );
        assert!(reader.refresh().unwrap(), "{what}");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..20, 0..17), "{what}");
        // After an insertion at the start, reads return the current items.
        writer.insert(0, 0, &[-1; 5 * 17]).unwrap();
        assert_eq!(reader.read::<Vec<i32>>(&[0..5, 0..17]).unwrap(), [-1; 5 * 17], "{what}");
        assert_eq!(
            reader.read::<Vec<i32>>(&[5..20, 0..17]).unwrap(),
            items(0..15, 0..17),
            "{what}"
        );
    });
}

#[test]
fn readers_beside_an_array_that_shrinks() {
    each_way(|place, lock, path| {
        let what = format!("{place:?}, lock {lock}");
        let (mut writer, mut reader) = (writer(path, lock), reading(path, lock));
        reader.set_dparams(reader.info().dparams.cache(1 << 20));
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..10, 0..10), "{what}");
        writer.resize([5, 10]).unwrap();
        // Deleted items are out of bounds, also for a reader with the old shape.
        assert_eq!(reader.shape(), [10, 10], "{what}");
        assert_eq!(kind(reader.read::<Vec<i32>>(..)), ErrorKind::OutOfBounds, "{what}");
        assert_eq!(kind(reader.item::<i32>(&[9, 9])), ErrorKind::OutOfBounds, "{what}");
        let points = reader.read::<Vec<i32>>(Selection::points(&[[0, 0], [5, 0]]));
        assert_eq!(kind(points), ErrorKind::OutOfBounds, "{what}");
        let lists = reader.read::<Vec<i32>>([vec![0, 7], vec![0]]);
        assert_eq!(kind(lists), ErrorKind::OutOfBounds, "{what}");
        let view = reader.view().squeeze();
        assert_eq!(kind(view.read::<Vec<i32>>(&[9..10, 0..1])), ErrorKind::OutOfBounds, "{what}");
        let found = reader.read::<Vec<i32>>(&[0..5, 0..10]).unwrap();
        assert_eq!(found, items(0..5, 0..10), "{what}");
        assert!(reader.refresh().unwrap(), "{what}");
        assert_eq!(reader.shape(), [5, 10], "{what}");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..5, 0..10), "{what}");

        // Resized to no items and larger again: zeros.
        writer.resize([0, 10]).unwrap();
        assert_eq!(kind(reader.item::<i32>(&[0, 0])), ErrorKind::OutOfBounds, "{what}");
        writer.resize([7, 3]).unwrap();
        assert_eq!(reader.read::<Vec<i32>>(&[0..5, 0..3]).unwrap(), [0; 15], "{what}");
        assert!(reader.refresh().unwrap(), "{what}");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), [0; 21], "{what}");
    });
}

#[test]
fn metalayers_follow_other_handles() {
    each_way(|place, lock, path| {
        let what = format!("{place:?}, lock {lock}");
        let mut writer = writer(path, lock);
        writer.vlmeta_mut().set("text", b"old").unwrap();
        let mut reader = reading(path, lock);
        assert_eq!(reader.vlmeta().get("text").unwrap().unwrap(), b"old", "{what}");
        writer.vlmeta_mut().set("text", b"brand-new").unwrap();
        assert!(reader.refresh().unwrap(), "{what}");
        assert_eq!(reader.vlmeta().get("text").unwrap().unwrap(), b"brand-new", "{what}");
        assert!(!reader.refresh().unwrap(), "{what}");
        assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..10, 0..10), "{what}");
    });
}

#[cfg_attr(windows, ignore = "not every Windows replaces a file that is open")]
#[test]
fn a_replaced_array_has_to_be_reopened() {
    let (folder, path) = folder();
    square(Place::File, &path);
    let mut reader = reading(&path, false);
    // Another file replaces it: this handle keeps the old file.
    let other = NDArray::builder().chunk_shape([3]).from_slice(&[1u8; 9], [9]).unwrap();
    let aside = folder.path().join("other.b2nd");
    other.save(&aside).unwrap();
    std::fs::rename(&aside, &path).unwrap();
    reader.refresh().unwrap();
    assert_eq!(reader.read::<Vec<i32>>(..).unwrap(), items(0..10, 0..10));
    assert_eq!(reading(&path, false).shape(), [9]);
}

/// Runs writers, and readers until the writers are done.
fn beside(writers: &[&(dyn Fn() + Sync)], readers: &[&(dyn Fn() + Sync)]) {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers: Vec<_> = readers
            .iter()
            .map(|read| {
                let done = &done;
                scope.spawn(move || {
                    read();
                    while !done.load(Ordering::Relaxed) {
                        read();
                    }
                })
            })
            .collect();
        let writers: Vec<_> = writers.iter().map(|write| scope.spawn(write)).collect();
        let written: Vec<_> = writers.into_iter().map(|writer| writer.join()).collect();
        done.store(true, Ordering::Relaxed);
        let read = readers.into_iter().map(|reader| reader.join());
        assert!(written.into_iter().chain(read).all(|each| each.is_ok()));
    });
}

#[test]
fn readers_beside_a_writer_that_grows_along_any_dimension() {
    for place in IN_FILES {
        let (_folder, path) = folder();
        square(place, &path);
        let write = || {
            let mut writer = locking(&path);
            for step in 0..24u64 {
                let [rows, columns] = *writer.shape() else { unreachable!("two dimensions") };
                match step % 6 {
                    0 | 1 => writer.append(0, &items(rows..rows + 3, 0..columns)),
                    2 | 3 => writer.append(1, &items(0..rows, columns..columns + 3)),
                    4 => writer.write(&[0..rows, 0..columns], &items(0..rows, 0..columns)),
                    _ => writer.resize([rows - 2, columns - 4]),
                }
                .unwrap();
            }
        };
        let check = |reader: &NDArray| {
            let [rows, columns] = *reader.shape() else { unreachable!("two dimensions") };
            let whole = reader.read::<Vec<i32>>(..);
            let corner = reader.item::<i32>(&[rows - 1, columns - 1]);
            // Deleted items are out of bounds; no other error occurs.
            let is_gone = |kind| kind == ErrorKind::OutOfBounds;
            match whole {
                Ok(found) => assert!(found == items(0..rows, 0..columns), "{place:?}"),
                Err(error) => assert!(is_gone(error.kind()), "{place:?}: {error}"),
            }
            match corner {
                Ok(found) => assert_eq!(found, item(rows - 1, columns - 1), "{place:?}"),
                Err(error) => assert!(is_gone(error.kind()), "{place:?}: {error}"),
            }
            // Items that are never deleted are always read.
            let found = reader.read::<Vec<i32>>(&[0..10, 0..10]).unwrap();
            assert!(found == items(0..10, 0..10), "{place:?}");
        };
        // One reader keeps its handle and refreshes it; the other one opens the array each time.
        let stays = || {
            let mut reader = reading(&path, true);
            for _ in 0..5 {
                check(&reader);
                reader.refresh().unwrap();
                check(&reader);
            }
        };
        let opens = || check(&reading(&path, true));
        beside(&[&write], &[&stays, &opens]);
        let found = NDArray::open(&path).unwrap();
        assert_eq!(found.shape(), [10 + 4 * 4, 10 + 4 * 2], "{place:?}");
        assert!(found.read::<Vec<i32>>(..).unwrap() == items(0..26, 0..18), "{place:?}");
    }
}

/// Runs of the same number.
fn runs(items: &[i64]) -> Vec<(i64, usize)> {
    items.chunk_by(|one, other| one == other).map(|run| (run[0], run.len())).collect()
}

#[test]
fn locked_writers_insert_side_by_side() {
    const WRITERS: i64 = 3;
    const STEPS: i64 = 12;
    const ITEMS: usize = 10;
    for place in IN_FILES {
        // Inserted at the start: C supports this only if the items fill whole chunks.
        for chunk in [ITEMS as u64, 7] {
            let (_folder, path) = folder();
            let builder = NDArray::builder().chunk_shape([chunk]).block_shape([5]);
            drop(place.of(builder, &path).from_slice(&[-1i64; 16], [16]).unwrap());
            let insert = |writer: i64| {
                let mut array = locking(&path);
                for step in 0..STEPS {
                    array.insert(0, 0, &[writer * 1000 + step; ITEMS]).unwrap();
                }
            };
            // Other threads open the array repeatedly.
            let open = || {
                let items = reading(&path, true).read::<Vec<i64>>(..).unwrap();
                // The shape is slightly older than the items: a part of the last run may be beyond it.
                let mut runs = runs(&items);
                runs.pop();
                let torn = runs.iter().find(|run| run.0 >= 0 && run.1 != ITEMS);
                assert_eq!(torn, None, "{place:?}, chunks of {chunk}: {runs:?}");
            };
            beside(&[&|| insert(0), &|| insert(1), &|| insert(2)], &[&open]);

            let array = NDArray::open(&path).unwrap();
            let mut runs = runs(&array.read::<Vec<i64>>(..).unwrap());
            assert_eq!(runs.pop(), Some((-1, 16)), "{place:?}: what was there");
            assert!(runs.iter().all(|run| run.1 == ITEMS), "{place:?}: {runs:?}");
            assert_eq!(runs.len() as i64, WRITERS * STEPS, "{place:?}: {runs:?}");
            let tags: BTreeSet<i64> = runs.iter().map(|run| run.0).collect();
            let expected =
                (0..WRITERS).flat_map(|writer| (0..STEPS).map(move |s| writer * 1000 + s));
            assert_eq!(tags, expected.collect(), "{place:?}");
            // The runs of one writer are in order.
            for writer in 0..WRITERS {
                let of: Vec<i64> =
                    runs.iter().map(|run| run.0).filter(|tag| tag / 1000 == writer).collect();
                assert!(of.is_sorted_by(|one, other| one > other), "{place:?}: {of:?}");
            }
        }
    }
}

#[test]
fn locked_writers_append_beside_one_who_cuts() {
    const ITEMS: usize = 10;
    for place in IN_FILES {
        let (_folder, path) = folder();
        let builder = NDArray::builder().chunk_shape([80]).block_shape([10]);
        drop(place.of(builder, &path).from_slice(&[-1i64; 200], [200]).unwrap());
        let append = |writer: i64| {
            let mut array = locking(&path);
            for step in 0..20 {
                array.append(0, &[writer * 1000 + step; ITEMS]).unwrap();
            }
        };
        let cut = || {
            let mut array = locking(&path);
            for _ in 0..15 {
                array.refresh().unwrap();
                let len = array.shape()[0].saturating_sub(7);
                array.resize([len]).unwrap();
            }
        };
        beside(&[&|| append(0), &|| append(1), &cut], &[]);
        let items = NDArray::open(&path).unwrap().read::<Vec<i64>>(..).unwrap();
        assert!(!items.is_empty(), "{place:?}");
        let runs = runs(&items);
        // A run may be cut, but not longer or mixed. Only the first run may be the original one.
        for (number, (tag, len)) in runs.iter().enumerate() {
            let most = if *tag == -1 { 200 } else { ITEMS };
            assert!(*len <= most && (*tag != -1 || number == 0), "{place:?}: {runs:?}");
        }
        let tags: BTreeSet<i64> = runs.iter().map(|run| run.0).collect();
        assert_eq!(tags.len(), runs.len(), "{place:?}: one came twice: {runs:?}");
    }
}

#[test]
fn writes_across_chunks_are_seen_whole() {
    for place in IN_FILES {
        let (_folder, path) = folder();
        let builder = NDArray::builder().chunk_shape([50, 50]).block_shape([50, 50]);
        drop(place.of(builder, &path).zeros::<i32>(&[200, 50]).unwrap());
        let write = |tag: i32| {
            let mut array = locking(&path);
            for step in 0..30 {
                array.write(.., &vec![step * 10 + tag; 200 * 50]).unwrap();
                // A part of each chunk, and back.
                array.write(&[40..160, 10..20], &vec![-tag; 120 * 10]).unwrap();
                array.write(.., step * 10 + tag).unwrap();
            }
        };
        let read = || {
            let reader = reading(&path, true);
            for _ in 0..10 {
                let items = reader.read::<Vec<i32>>(..).unwrap();
                let outside = items[0];
                let inside = items[40 * 50 + 10];
                assert!(inside == outside || inside < 0, "{place:?}: {inside} in {outside}");
                for (at, &item) in items.iter().enumerate() {
                    let is_inside = (40..160).contains(&(at / 50)) && (10..20).contains(&(at % 50));
                    let expected = if is_inside { inside } else { outside };
                    assert_eq!(item, expected, "{place:?}: half of a change, at {at}");
                }
            }
        };
        beside(&[&|| write(1), &|| write(2)], &[&read]);
    }
}

#[test]
fn writers_who_do_not_lock_come_one_after_the_other() {
    let (_folder, path) = folder();
    square(Place::File, &path);
    let mut one = NDArray::open_rw(&path).unwrap();
    let other: Result<NDArray> = NDArray::open_rw(&path);
    assert_eq!(kind(other), ErrorKind::Busy);
    one.append(0, &items(10..11, 0..10)).unwrap();
    drop(one);
    let mut other = NDArray::open_rw(&path).unwrap();
    other.append(0, &items(11..12, 0..10)).unwrap();
    assert_eq!(other.read::<Vec<i32>>(..).unwrap(), items(0..12, 0..10));
}

/// Blocks that are kept do not outlive `refresh`, whether the file has another length or not.
#[test]
fn after_refresh_cached_blocks_are_those_of_the_file() {
    let (_folder, path) = folder();
    let builder = || NDArray::builder().chunk_shape([50]).block_shape([25]);
    let ramp: Vec<i32> = (0..100).collect();
    drop(builder().target(&path).from_slice(&[1i32; 100], [100]).unwrap());
    let mut array = NDArray::open(&path).unwrap();
    array.set_dparams(array.info().dparams.cache(1 << 20));
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), [1; 100]);
    for items in [&[2; 100][..], &ramp, &[3; 100]] {
        // Written as by another program: no handle of this one is informed.
        let bytes = builder().from_slice(items, [100]).unwrap().schunk().to_cframe().unwrap();
        std::fs::write(&path, bytes).unwrap();
        array.refresh().unwrap();
        assert_eq!(array.read::<Vec<i32>>(..).unwrap(), items);
    }
}

/// An appender collects items for the room that it knows in the last chunk. Appends of another handle change this room.
#[test]
fn appenders_and_appends_of_another_handle() {
    for place in IN_FILES {
        for axis in [0, 1] {
            for theirs in [0, 1, 7, 8, 9, 15, 16, 17] {
                for parts in
                    [&[14, 1][..], &[14, 1, 1, 1, 5], &[1, 1], &[8, 8], &[7, 1, 9], &[30, 2, 7]]
                {
                    let (_folder, path) = folder();
                    let (shape, chunks) =
                        if axis == 0 { ([0, 2], [8, 2]) } else { ([2, 0], [2, 8]) };
                    let builder = NDArray::builder().chunk_shape(chunks);
                    drop(place.of(builder, &path).zeros::<i32>(shape).unwrap());
                    let what = format!("{place:?}, axis {axis}, {theirs}, {parts:?}");
                    let mut other = locking(&path);
                    let mut ours = Appender::new(locking(&path), axis).unwrap();
                    // Each index on the axis has two items with its number. Other handles append negative numbers.
                    let slab = |numbers: std::ops::Range<i32>| -> Vec<i32> {
                        match axis {
                            0 => numbers.flat_map(|number| [number; 2]).collect(),
                            _ => [numbers.clone(), numbers].into_iter().flatten().collect(),
                        }
                    };
                    let mut next = 1;
                    for part in parts {
                        other.append(axis, &slab(-theirs..0)).unwrap();
                        ours.append(&slab(next..next + part)).expect(&what);
                        next += part;
                    }
                    drop(ours.finish().expect(&what));
                    drop(other);
                    let found = reading(&path, true);
                    let count = next - 1 + theirs * parts.len() as i32;
                    assert_eq!(found.shape()[axis], count as u64, "{what}");
                    let all = found.read::<Vec<i32>>(..).unwrap();
                    // On axis 1, the second row is equal.
                    let first: Vec<i32> = match axis {
                        0 => all.iter().copied().step_by(2).collect(),
                        _ => all[..count as usize].to_vec(),
                    };
                    let second: Vec<i32> = match axis {
                        0 => all.iter().copied().skip(1).step_by(2).collect(),
                        _ => all[count as usize..].to_vec(),
                    };
                    assert_eq!(first, second, "{what}");
                    let kept: Vec<i32> = first.into_iter().filter(|&number| number > 0).collect();
                    assert_eq!(kept, (1..next).collect::<Vec<_>>(), "{what}");
                }
            }
        }
    }
}
