//! Transactions: many changes in one commit.

use std::fs;
use std::io;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use blosc2::storage::{ReadAt, Storage};
use blosc2::{CParams, ErrorKind, OpenOptions, SChunk, Target};

use super::common::{Rng, listing};
use super::{
    CHUNK, PLACES, Place, assert_holds, assert_keeps, filled, folder, kind, model, numbers,
};

/// A change and its effect on a plain model.
fn change(schunk: &mut SChunk, model: &mut Vec<Vec<i32>>, rng: &mut Rng) -> blosc2::Result<()> {
    let count = model.len();
    let noise = rng.below(2) == 0;
    let chunk: Vec<i32> = (0..CHUNK as i32)
        .map(|at| if noise { rng.next() as i32 } else { at * count as i32 + 1 })
        .collect();
    match rng.below(6) {
        0 | 1 => {
            schunk.append(&chunk)?;
            model.push(chunk);
        }
        2 => {
            let index = rng.index(count + 1);
            schunk.insert(index, &chunk)?;
            model.insert(index, chunk);
        }
        3 | 4 if count > 0 => {
            // Mostly the last one, which can grow in its place.
            let index = if rng.below(2) == 0 { count - 1 } else { rng.index(count) };
            schunk.replace(index, &chunk)?;
            model[index] = chunk;
        }
        _ if count > 0 => {
            let index = if rng.below(2) == 0 { count - 1 } else { rng.index(count) };
            schunk.remove(index)?;
            model.remove(index);
        }
        _ => {}
    }
    Ok(())
}

#[test]
fn a_transaction_stores_what_separate_changes_store() {
    for place in PLACES {
        for seed in 0..20 {
            let what = format!("{place:?}, seed {seed}");
            let ((_one, one), (_two, two)) = (folder(), folder());
            let before = model(seed % 5);
            let mut single = filled(place, &one, &CParams::new(), &before);
            let mut together = filled(place, &two, &CParams::new(), &before);
            let (mut expected, mut found) = (before.clone(), before);
            let mut rng = Rng(seed as u64);
            for _ in 0..2 {
                let mut same = rng.clone();
                for _ in 0..25 {
                    change(&mut single, &mut expected, &mut rng).unwrap();
                }
                let done = together.transaction(|together| {
                    for _ in 0..25 {
                        change(together, &mut found, &mut same)?;
                        assert_eq!(together.nchunks(), found.len(), "{what}");
                    }
                    assert_holds(together, &found, &format!("{what}, before the commit"));
                    Ok(())
                });
                done.unwrap();
                assert_eq!(found, expected, "{what}");
                together = assert_keeps(place, together, &two, &found, &what);
                single = place.reopened(single, &one);
            }
            // The positions differ, because a transaction does not use the bytes of stored chunks that it removes.
            let both = (together.to_cframe().unwrap(), single.to_cframe().unwrap());
            assert!(both.0 == both.1, "{what}");
        }
    }
}

#[test]
fn an_error_and_a_panic_roll_a_transaction_back() {
    for place in PLACES {
        for panics in [false, true] {
            let what = format!("{place:?}, panics {panics}");
            let (folder, path) = folder();
            let before = model(6);
            let mut schunk = filled(place, &path, &CParams::new(), &before);
            schunk.vlmeta_mut().set("note", b"old").unwrap();
            let files = listing(folder.path());
            let offsets = schunk.offsets().unwrap();
            let mut rng = Rng(3);
            let failed = catch_unwind(AssertUnwindSafe(|| {
                schunk.transaction(|schunk| {
                    let mut model = before.clone();
                    for _ in 0..30 {
                        change(schunk, &mut model, &mut rng)?;
                    }
                    schunk.vlmeta_mut().set("note", b"new")?;
                    assert_holds(schunk, &model, &what);
                    assert!(!panics, "as requested");
                    // A failed change alone does not end the transaction.
                    assert_eq!(kind(schunk.remove(1000)), ErrorKind::OutOfBounds);
                    schunk.append(&numbers(7))?;
                    schunk.remove(1000)
                })
            }));
            assert_eq!(failed.is_err(), panics, "{what}");
            if let Ok(failed) = failed {
                assert_eq!(kind(failed), ErrorKind::OutOfBounds, "{what}");
            }
            assert_eq!(schunk.offsets().unwrap(), offsets, "{what}");
            assert_eq!(schunk.vlmeta().get("note").unwrap().unwrap(), b"old", "{what}");
            assert_eq!(listing(folder.path()), files, "{what}");
            let mut schunk = assert_keeps(place, schunk, &path, &before, &what);
            // The next one works.
            let done = schunk.transaction(|schunk| schunk.append(&numbers(6)));
            done.unwrap();
            assert_eq!(schunk.nchunks(), 7, "{what}");
            assert_keeps(place, schunk, &path, &model(7), &what);
        }
    }
}

/// A storage that counts the writes.
#[derive(Debug, Default)]
struct Counting {
    bytes: Vec<u8>,
    writes: Arc<AtomicUsize>,
}

impl ReadAt for Counting {
    fn size(&self) -> io::Result<u64> {
        self.bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bytes.read_exact_at(offset, buffer)
    }
}

impl Storage for Counting {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.writes.fetch_add(1, Ordering::Relaxed);
        self.bytes.write_all_at(offset, bytes)
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.bytes.set_size(len)
    }
}

#[test]
fn a_transaction_writes_the_index_once() {
    let storage = Counting::default();
    let writes = Arc::clone(&storage.writes);
    let taken = || writes.swap(0, Ordering::Relaxed);
    let options = OpenOptions::new().create_new(true).typesize(4);
    let mut schunk = options.open(Target::storage(storage)).unwrap();
    schunk.append(&[1i32; 10]).unwrap();
    taken();
    // The journal, two for the mark, the chunk with the index, and the header.
    schunk.append(&[1i32; 10]).unwrap();
    assert_eq!(taken(), 5);
    let done = schunk.transaction(|schunk| {
        for number in 0..100 {
            schunk.append(&[number; 10])?;
        }
        assert_eq!(taken(), 0, "nothing before the commit");
        Ok(())
    });
    done.unwrap();
    assert_eq!(taken(), 5);
    // Without changes, and for changes that are rolled back, there is nothing to write.
    schunk.transaction(|_| Ok(())).unwrap();
    let failed = schunk.transaction(|schunk| {
        schunk.append(&[1i32; 10])?;
        schunk.remove(1000)
    });
    assert_eq!(kind(failed), ErrorKind::OutOfBounds);
    assert_eq!(taken(), 0);
    assert_eq!(schunk.nchunks(), 102);
}

#[test]
fn a_transaction_is_refused_where_a_change_is() {
    let (_folder, path) = folder();
    drop(filled(Place::File, &path, &CParams::new(), &model(2)));
    let mut reader = SChunk::open(&path).unwrap();
    let mut called = false;
    let refused = reader.transaction(|_| {
        called = true;
        Ok(())
    });
    assert_eq!(kind(refused), ErrorKind::ReadOnly);
    assert!(!called);
    let mut appender = OpenOptions::new().append(true).open(&path).unwrap();
    let done = appender.transaction(|appender| {
        assert_eq!(kind(appender.remove(0)), ErrorKind::ReadOnly);
        appender.append(&numbers(2))
    });
    done.unwrap();
    assert_eq!(appender.nchunks(), 3);
    // In a transaction there is no other one.
    let nested = appender.transaction(|appender| {
        appender.append(&numbers(3))?;
        let nested = appender.transaction(|appender| appender.append(&numbers(4)));
        assert_eq!(kind(nested), ErrorKind::InvalidArgument);
        Ok(())
    });
    nested.unwrap();
    drop(appender);
    assert_holds(&SChunk::open(&path).unwrap(), &model(4), "appended");
}

#[test]
fn a_super_chunk_that_leaves_its_transaction_is_not_committed() {
    let (_folder, path) = folder();
    let mut schunk = filled(Place::File, &path, &CParams::new(), &model(2));
    let bytes = fs::read(&path).unwrap();
    let mut left = None;
    let moved = schunk.transaction(|schunk| {
        schunk.append(&numbers(2))?;
        let other = OpenOptions::new().typesize(4).open(Target::memory())?;
        left = Some(mem::replace(schunk, other));
        schunk.append(&numbers(0))
    });
    assert_eq!(kind(moved), ErrorKind::InvalidArgument);
    assert_holds(&schunk, &model(1), "the other one");
    let mut left = left.unwrap();
    assert_eq!(kind(left.append(&numbers(3))), ErrorKind::InvalidArgument);
    let again = left.transaction(|left| left.append(&numbers(3)));
    assert_eq!(kind(again), ErrorKind::InvalidArgument);
    drop(left);
    assert!(fs::read(&path).unwrap() == bytes);

    // Two that are exchanged, each in its transaction.
    let mut one = filled(Place::Memory, &path, &CParams::new(), &model(1));
    let mut two = filled(Place::Memory, &path, &CParams::new(), &model(2));
    let exchanged = one.transaction(|one| {
        one.append(&numbers(1))?;
        two.transaction(|two| {
            mem::swap(one, two);
            Ok(())
        })
    });
    assert_eq!(kind(exchanged), ErrorKind::InvalidArgument);
    for schunk in [&mut one, &mut two] {
        assert_eq!(kind(schunk.append(&numbers(3))), ErrorKind::InvalidArgument);
    }
}

#[test]
fn other_handles_see_a_transaction_when_it_is_committed() {
    for place in [Place::File, Place::Directory] {
        let (_folder, path) = folder();
        let mut schunk = filled(place, &path, &CParams::new(), &model(3));
        let mut reader = SChunk::open(&path).unwrap();
        let done = schunk.transaction(|schunk| {
            schunk.remove(0)?;
            schunk.append(&numbers(9))?;
            assert!(!reader.refresh()?);
            assert_holds(&reader, &model(3), "during the transaction");
            assert_holds(&SChunk::open(&path)?, &model(3), "opened during the transaction");
            assert!(!schunk.refresh()?);
            Ok(())
        });
        done.unwrap();
        let expected = [numbers(1), numbers(2), numbers(9)];
        assert!(reader.decompress_chunk::<i32>(0).unwrap() == expected[0], "{place:?}");
        assert_holds(&reader, &expected, "after it");
    }
}

#[test]
fn transactions_of_locked_writers_do_not_mix() {
    const ROUNDS: usize = 8;
    for place in [Place::File, Place::Directory] {
        let (_folder, path) = folder();
        drop(filled(place, &path, &CParams::new(), &[]));
        let open = || OpenOptions::new().write(true).locking(true).open(&path).unwrap();
        let writer = |thread: i32| {
            let mut handle = open();
            for round in 0..ROUNDS {
                let done = handle.transaction(|handle| {
                    for _ in 0..3 {
                        handle.append(&[thread; 10])?;
                    }
                    if round % 2 == 0 { Ok(()) } else { handle.remove(1000) }
                });
                assert_eq!(done.is_ok(), round % 2 == 0, "{done:?}");
                assert_eq!(handle.read::<u8>(..).unwrap().len() % 120, 0, "{place:?}");
            }
        };
        thread::scope(|scope| {
            for thread in 0..3 {
                scope.spawn(move || writer(thread));
            }
        });
        let found: Vec<i32> = open().read(..).unwrap();
        assert_eq!(found.len(), 3 * 30 * ROUNDS / 2, "{place:?}");
        for together in found.chunks(30) {
            assert!(together.iter().all(|&item| item == together[0]), "{place:?}: mixed");
        }
    }
}

#[test]
fn updates_in_a_directory_reuse_the_numbers_of_files() {
    let (_folder, path) = folder();
    let options =
        OpenOptions::new().create_new(true).typesize(4).open(Target::from(&path).directory(true));
    let mut schunk = options.unwrap();
    for number in 0..2 {
        schunk.append(&[number; CHUNK]).unwrap();
    }
    let updates =
        |schunk: &mut SChunk| (0..500).try_for_each(|number| schunk.replace(0, &[number; CHUNK]));
    schunk.transaction(updates).unwrap();
    // C does not open a frame whose numbers are too large.
    assert!(schunk.offsets().unwrap().iter().all(|offset| matches!(offset, Some(0..3))));
    assert_eq!(schunk.decompress_chunk::<i32>(0).unwrap(), [499; CHUNK]);
    assert_eq!(SChunk::open(&path).unwrap().decompress_chunk::<i32>(0).unwrap(), [499; CHUNK]);
}
