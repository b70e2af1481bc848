//! Several handles of one file: what each reads after the others' changes.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use blosc2::{
    CParams, Chunk, DParams, ErrorKind, OpenOptions, SChunk, SaveOptions, Target, Threads,
};

use super::{CHUNK, PLACES, Place, assert_holds, filled, folder, kind, model, numbers};

const IN_FILES: [Place; 2] = [Place::File, Place::Directory];

fn locking(path: &Path) -> SChunk {
    OpenOptions::new().write(true).locking(true).open(path).unwrap()
}

fn nothing() -> Chunk {
    Chunk::uninit::<i32>(CHUNK, &CParams::new()).unwrap()
}

#[test]
fn handles_follow_changes() {
    for place in IN_FILES {
        let (_folder, path) = folder();
        let mut model = model(10);
        let mut writer = filled(place, &path, &CParams::new(), &model);
        let mut reader = SChunk::open(&path).unwrap();
        assert_holds(&reader, &model, "at first");

        // Another handle empties, fills, moves, removes and adds chunks.
        writer.replace(0, &nothing()).unwrap();
        model[0].fill(0);
        assert!(reader.decompress_chunk::<i32>(0).unwrap() == model[0], "{place:?}");
        assert_eq!(reader.chunk(0).unwrap().cbytes(), 32, "{place:?}");
        assert_eq!(reader.chunk_info(0).unwrap().cbytes, 0, "{place:?}");
        assert!(reader.decompress_chunk::<i32>(1).unwrap() == model[1], "{place:?}");
        model[0] = numbers(77);
        writer.replace(0, &model[0]).unwrap();
        assert!(reader.decompress_chunk::<i32>(0).unwrap() == model[0], "{place:?}");
        writer.remove(3).unwrap();
        model.remove(3);
        assert!(reader.decompress_chunk::<i32>(3).unwrap() == model[3], "{place:?}");
        assert_eq!(kind(reader.decompress_chunk::<i32>(9)), ErrorKind::OutOfBounds, "{place:?}");
        let order: Vec<usize> = (0..9).rev().collect();
        writer.reorder(&order).unwrap();
        model.reverse();
        assert_holds(&reader, &model, &format!("{place:?}: turned round"));
        writer.append(&numbers(10)).unwrap();
        model.push(numbers(10));
        assert!(reader.decompress_chunk::<i32>(9).unwrap() == model[9], "{place:?}");
        assert_holds(&reader, &model, &format!("{place:?}: one more"));

        // Metalayers of another length, after they were read.
        writer.vlmeta_mut().set("text", b"old").unwrap();
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.vlmeta().get("text").unwrap().unwrap(), b"old", "{place:?}");
        writer.vlmeta_mut().set("text", b"brand-new").unwrap();
        assert!(reader.refresh().unwrap());
        assert_eq!(reader.vlmeta().get("text").unwrap().unwrap(), b"brand-new", "{place:?}");
        assert!(!reader.refresh().unwrap(), "{place:?}: nothing has changed");
    }
}

#[cfg_attr(windows, ignore = "not every Windows replaces a file that is open")]
#[test]
fn a_reader_stays_with_its_file() {
    let (folder, path) = folder();
    let model = model(3);
    drop(filled(Place::File, &path, &CParams::new(), &model));
    let reader = SChunk::open(&path).unwrap();
    let other = SChunk::in_memory::<u8>(&CParams::new()).unwrap();
    SaveOptions::new().replace(true).save(&other, &path).unwrap();
    assert_holds(&reader, &model, "another file has its name");
    assert_eq!(SChunk::open(&path).unwrap().nchunks(), 0);
    fs::remove_file(&path).unwrap();
    assert_holds(&reader, &model, "no file has its name");
    drop(folder);
}

#[test]
fn threads_share_a_reader_of_each_storage() {
    for place in PLACES {
        let (_folder, path) = folder();
        let model = model(16);
        let schunk = filled(place, &path, &CParams::new(), &model);
        let mut schunk = place.reopened(schunk, &path);
        schunk.set_dparams(DParams::new().threads(Threads::new(2)));
        thread::scope(|scope| {
            for start in 0..6 {
                let (schunk, model) = (&schunk, &model);
                scope.spawn(move || {
                    for step in 0..100 {
                        let index = (start * 3 + step * 7) % 16;
                        assert!(
                            schunk.decompress_chunk::<i32>(index).unwrap() == model[index],
                            "{place:?}"
                        );
                        let at = (index * CHUNK + 10) as u64;
                        assert_eq!(schunk.read::<i32>(at..at + 1).unwrap(), [at as i32]);
                    }
                });
            }
        });
    }
}

#[test]
fn a_chunk_file_that_was_cut() {
    let (_folder, path) = folder();
    let model = model(4);
    drop(filled(Place::Directory, &path, &CParams::new(), &model));
    let reader = SChunk::open(&path).unwrap();
    let file = path.join("00000002.chunk");
    let whole = fs::read(&file).unwrap();
    for len in [0, 1, 16, 31, 32, whole.len() - 1] {
        fs::write(&file, &whole[..len]).unwrap();
        for schunk in [&reader, &SChunk::open(&path).unwrap()] {
            assert_eq!(kind(schunk.decompress_chunk::<i32>(2)), ErrorKind::InvalidData, "{len}");
            assert_eq!(kind(schunk.chunk(2)), ErrorKind::InvalidData, "{len}");
            let inside = schunk.read::<i32>(2 * CHUNK as u64..2 * CHUNK as u64 + 1);
            assert_eq!(kind(inside), ErrorKind::InvalidData, "{len}");
            assert!(schunk.decompress_chunk::<i32>(1).unwrap() == model[1], "{len}");
        }
    }
    fs::remove_file(&file).unwrap();
    assert_eq!(kind(reader.decompress_chunk::<i32>(2)), ErrorKind::InvalidData);
    fs::write(&file, &whole).unwrap();
    assert_holds(&reader, &model, "whole again");
}

#[test]
fn the_lock_is_a_file_beside_the_frame() {
    for place in IN_FILES {
        let (folder, path) = folder();
        drop(filled(place, &path, &CParams::new(), &model(2)));
        let lock = match place {
            Place::Directory => path.join(".b2lock"),
            _ => folder.path().join("frame.b2lock"),
        };
        drop(SChunk::open_rw(&path).unwrap());
        assert!(!lock.exists(), "{place:?}: nobody asked for it");
        let mut one = locking(&path);
        one.append(&numbers(2)).unwrap();
        assert!(lock.exists(), "{place:?}");
        // It is not part of the frame, and has no effect without locking.
        drop(one);
        assert_holds(&SChunk::open(&path).unwrap(), &model(3), &format!("{place:?}"));
    }
    // Without a file, locking has no effect.
    let mut schunk = OpenOptions::new().locking(true).typesize(4).open(Target::memory()).unwrap();
    schunk.append(&numbers(0)).unwrap();
    assert_holds(&schunk, &model(1), "in memory");
}

#[test]
fn locked_handles_follow_each_other() {
    for place in IN_FILES {
        let (_folder, path) = folder();
        let mut model = model(4);
        drop(filled(place, &path, &CParams::new(), &model));
        let (mut one, mut two) = (locking(&path), locking(&path));
        let reader = OpenOptions::new().locking(true).open(&path).unwrap();
        for (step, number) in (20..32).enumerate() {
            // The handles alternate, so that each has an old view of the file when it changes it.
            let handle = if step % 2 == 0 { &mut one } else { &mut two };
            match step % 6 {
                0 | 1 => {
                    model.push(numbers(number));
                    handle.append(&numbers(number)).unwrap();
                    assert_eq!(handle.nchunks(), model.len());
                }
                2 | 3 => {
                    model.insert(1, numbers(number));
                    handle.insert(1, &numbers(number)).unwrap();
                    assert_eq!(handle.nchunks(), model.len());
                }
                4 => {
                    model[2] = numbers(number);
                    handle.replace(2, &numbers(number)).unwrap();
                }
                _ => {
                    model.remove(0);
                    handle.remove(0).unwrap();
                    assert_eq!(handle.nchunks(), model.len());
                }
            }
            let name = format!("name{step}");
            handle.vlmeta_mut().set(&name, b"text").unwrap();
            let what = format!("{place:?}, step {step}");
            for (index, chunk) in model.iter().enumerate() {
                assert!(
                    reader.decompress_chunk::<i32>(index).unwrap() == *chunk,
                    "{what}, chunk {index}"
                );
            }
            assert_holds(&SChunk::open(&path).unwrap(), &model, &what);
        }
        // One handle reads a metalayer that the other one wrote.
        one.refresh().unwrap();
        assert_eq!(one.vlmeta().names().len(), 12, "{place:?}");
        assert!(two.vlmeta_mut().remove("name0").unwrap(), "{place:?}");
        one.refresh().unwrap();
        assert!(!one.vlmeta().contains("name0"), "{place:?}");
    }
}

#[test]
fn locked_writers_insert_side_by_side() {
    for place in IN_FILES {
        let (_folder, path) = folder();
        let before = model(3);
        drop(filled(place, &path, &CParams::new(), &before));
        thread::scope(|scope| {
            for thread in 0..3 {
                let path = &path;
                scope.spawn(move || {
                    let mut handle = locking(path);
                    for step in 0..15 {
                        let tag = vec![-(thread * 100 + step + 1); CHUNK];
                        match thread {
                            0 => handle.insert(0, &tag),
                            _ => handle.append(&tag),
                        }
                        .unwrap();
                    }
                });
            }
        });
        let schunk = SChunk::open(&path).unwrap();
        let found: Vec<Vec<i32>> = schunk.iter_chunks().collect::<blosc2::Result<_>>().unwrap();
        let of = |range: std::ops::Range<i32>| -> Vec<i32> {
            let tags = found.iter().map(|chunk| chunk[0]);
            tags.filter(|tag| range.contains(&-tag)).collect()
        };
        assert_eq!(found.len(), 48, "{place:?}");
        assert_eq!(of(1..100), (1..=15).rev().map(|tag| -tag).collect::<Vec<_>>(), "{place:?}");
        assert_eq!(of(101..200), (101..=115).map(|tag| -tag).collect::<Vec<_>>(), "{place:?}");
        assert_eq!(of(201..300), (201..=215).map(|tag| -tag).collect::<Vec<_>>(), "{place:?}");
        assert!(found[15..18] == before, "{place:?}: what was there");
        for chunk in found.iter().filter(|chunk| chunk[0] < 0) {
            assert!(chunk.iter().all(|item| *item == chunk[0]), "{place:?}: of one writer");
        }
    }
}

#[test]
fn writers_of_items_do_not_undo_each_other() {
    for place in IN_FILES {
        // Both handles write items of the same chunk alternately.
        let (_folder, path) = folder();
        drop(filled(place, &path, &CParams::new(), &model(2)));
        thread::scope(|scope| {
            for thread in 0..2u64 {
                let path = &path;
                scope.spawn(move || {
                    let mut handle = locking(path);
                    for step in 0..60 {
                        let at = CHUNK as u64 - 60 + 2 * step + thread;
                        handle.write(at, &[-(at as i32)]).unwrap();
                    }
                });
            }
        });
        let found = SChunk::open(&path).unwrap().read::<i32>(..).unwrap();
        let written = CHUNK - 60..CHUNK + 60;
        for (at, item) in found.into_iter().enumerate() {
            let expected = if written.contains(&at) { -(at as i32) } else { at as i32 };
            assert_eq!(item, expected, "{place:?}, item {at}");
        }

        // Both write the same items of several chunks: the result is from one writer or the other.
        let (_folder, path) = folder();
        drop(filled(place, &path, &CParams::new(), &vec![vec![0; CHUNK]; 4]));
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let writers = [1, 2].map(|tag| {
                let path = &path;
                scope.spawn(move || {
                    let mut handle = locking(path);
                    for step in 0..30 {
                        handle.write(0, &vec![step * 10 + tag; 4 * CHUNK]).unwrap();
                    }
                })
            });
            let readers = [0, 1].map(|_| {
                let (path, done) = (&path, &done);
                scope.spawn(move || {
                    let reader = OpenOptions::new().locking(true).open(path).unwrap();
                    while !done.load(Ordering::Relaxed) {
                        let items = reader.read::<i32>(..).unwrap();
                        let first = items[0];
                        let other = items.iter().find(|item| **item != first);
                        assert_eq!(other, None, "{place:?}: half of a change, with {first}");
                    }
                })
            });
            let written = writers.map(|writer| writer.join());
            done.store(true, Ordering::Relaxed);
            let read = readers.map(|reader| reader.join());
            assert!(written.into_iter().chain(read).all(|each| each.is_ok()), "{place:?}");
        });
    }
}
