//! Changes of frames: chunks are added, removed, replaced and reordered.

use std::fs;

use blosc2::{
    CParams, Chunk, Codec, Compressor, DParams, ErrorKind, Filter, OpenOptions, SChunk,
    SaveOptions, Special, Target, Threads,
};

use blosc2_format::Limits;
use blosc2_format::chunk::Header;
use blosc2_format::frame::Frame;

use super::common::{Rng, listing};
use super::{
    CHUNK, PLACES, Place, assert_holds, assert_keeps, filled, folder, kind, model, numbers,
};

#[test]
fn chunks_are_deleted_anywhere() {
    for place in PLACES {
        for seed in 0..3 {
            let (_folder, path) = folder();
            let mut rng = Rng(seed);
            let mut model = model(10);
            let mut schunk = filled(place, &path, &CParams::new(), &model);
            // The ends and the middle first, and then all that is left.
            for first in [0, 8, 4] {
                model.remove(first);
                schunk.remove(first).unwrap();
                assert_eq!(schunk.nchunks(), model.len());
            }
            schunk = assert_keeps(place, schunk, &path, &model, "after three");
            while !model.is_empty() {
                let index = rng.below(model.len() as u64) as usize;
                model.remove(index);
                schunk.remove(index).unwrap();
                assert_eq!(schunk.nchunks(), model.len());
                assert_holds(&schunk, &model, &format!("{place:?}, without {index}"));
            }
            // Chunks can be added again.
            model.push(numbers(3));
            schunk.append(&model[0]).unwrap();
            let schunk = assert_keeps(place, schunk, &path, &model, "filled again");
            drop(schunk);
            if place == Place::Directory {
                // The index, and one chunk.
                assert_eq!(fs::read_dir(&path).unwrap().count(), 2);
            }
        }
    }
}

#[test]
fn chunks_are_inserted_anywhere() {
    for place in PLACES {
        let (_folder, path) = folder();
        let mut rng = Rng(7);
        let mut model = model(2);
        let mut schunk = filled(place, &path, &CParams::new(), &model);
        for number in 2..12 {
            let index = match number {
                2 => 0,
                3 => 3,
                _ => rng.below(model.len() as u64 + 1) as usize,
            };
            // Both ways alternate.
            let chunk = numbers(number);
            if number % 2 == 0 {
                schunk.insert(index, &chunk).unwrap();
            } else {
                let compressed = Compressor::new(&CParams::new()).unwrap().compress(&chunk);
                schunk.insert(index, &compressed.unwrap()).unwrap();
            }
            model.insert(index, chunk);
            assert_eq!(schunk.nchunks(), model.len());
            if number % 3 == 0 {
                schunk = assert_keeps(place, schunk, &path, &model, &format!("with {number}"));
            }
        }
        assert_eq!(schunk.chunksize(), 4 * CHUNK, "{place:?}");
        assert_keeps(place, schunk, &path, &model, "inserted");
    }
}

#[test]
fn chunks_are_replaced_anywhere() {
    let zeros = vec![0; CHUNK];
    let mut rng = Rng(5);
    let noise: Vec<i32> = (0..CHUNK).map(|_| rng.next() as i32).collect();
    for place in PLACES {
        let (_folder, path) = folder();
        let mut model = model(8);
        let mut schunk = filled(place, &path, &CParams::new(), &model);
        // Replaced by a chunk that takes more space, the same, less, none; and by noise after a special chunk.
        for (index, chunk) in
            [(0, &noise), (7, &numbers(50)), (3, &zeros), (0, &zeros), (3, &noise), (7, &zeros)]
        {
            schunk.replace(index, chunk).unwrap();
            model[index].clone_from(chunk);
            let what = format!("chunk {index} replaced");
            schunk = assert_keeps(place, schunk, &path, &model, &what);
        }
        assert_eq!(schunk.chunk_info(0).unwrap().cbytes, 0, "{place:?}");
        let nothing = Chunk::uninit::<i32>(CHUNK, &CParams::new()).unwrap();
        for (index, chunk) in model.iter_mut().enumerate() {
            schunk.replace(index, &nothing).unwrap();
            chunk.clone_from(&zeros);
        }
        assert_keeps(place, schunk, &path, &model, "all replaced by nothing");
        if place == Place::Directory {
            assert_eq!(fs::read_dir(&path).unwrap().count(), 1);
        }
    }
}

#[test]
fn chunks_are_put_into_any_order() {
    for place in PLACES {
        for count in [1, 5, 20] {
            let (_folder, path) = folder();
            let mut model = model(count);
            let mut schunk = filled(place, &path, &CParams::new(), &model);
            let mut rng = Rng(count as u64);
            for _ in 0..2 {
                let mut order: Vec<usize> = (0..count).collect();
                for at in (1..count).rev() {
                    order.swap(at, rng.below(at as u64 + 1) as usize);
                }
                schunk.reorder(&order).unwrap();
                model = order.iter().map(|&index| model[index].clone()).collect();
                schunk = assert_keeps(place, schunk, &path, &model, &format!("{order:?}"));
            }
            // Invalid orders: too short, too long, duplicate, out of range; and C's -1, which is out of range too.
            let mut wrong = vec![vec![0; count - 1], (0..=count).collect(), vec![count; count]];
            wrong.push((0..count).map(|at| if at == 0 { usize::MAX } else { at }).collect());
            wrong.extend((count > 1).then(|| vec![0; count]));
            for order in wrong {
                assert_eq!(kind(schunk.reorder(&order)), ErrorKind::InvalidArgument, "{order:?}");
            }
            // A short last chunk stays the last one, or the chunks become variable-length.
            assert_keeps(place, schunk, &path, &model, "nothing changed");
        }
    }
}

#[test]
fn special_values_of_gigabytes_take_no_room() {
    const ITEMS: u64 = 1_000_000;
    // Special chunks of NaN are little-endian.
    let specials = match cfg!(target_endian = "big") {
        true => {
            let mut schunk = OpenOptions::new().typesize(4).open(Target::memory()).unwrap();
            let error = schunk.fill(Special::Nan, 10, 10).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
            &[Special::Zeros, Special::Uninit][..]
        }
        false => &[Special::Zeros, Special::Nan, Special::Uninit],
    };
    for place in PLACES {
        for &special in specials {
            for (rest, dictionary) in [(0, false), (1, true), (10, false)] {
                let (folder, path) = folder();
                let params = CParams::new().codec(Codec::Zstd).level(9).dictionary(dictionary);
                let options = OpenOptions::new().cparams(&params).typesize(4);
                let mut schunk = place.make(&path, &options);
                schunk.fill(special, 600 * ITEMS + rest, ITEMS as usize).unwrap();
                let schunk = place.reopened(schunk, &path);
                let what = format!("{place:?}, {special:?}, {rest}, {dictionary}");
                assert_eq!(schunk.len(), 600 * ITEMS + rest, "{what}");
                assert_eq!(schunk.nchunks(), 600 + usize::from(rest > 0), "{what}");
                assert_eq!(schunk.cbytes(), 0, "{what}");
                let stored: u64 = listing(folder.path()).iter().map(|(_, len)| len).sum();
                assert!(stored < 2000 && schunk.frame_len().unwrap() < 2000, "{what}: {stored}");
                let last = schunk.nchunks() - 1;
                for index in [0, 300, last] {
                    let chunk = schunk.decompress_chunk::<f32>(index).unwrap();
                    let len = if index == 600 { rest } else { ITEMS };
                    assert_eq!(chunk.len() as u64, len, "{what}");
                    let right = match special {
                        Special::Nan => chunk.iter().all(|item| item.is_nan()),
                        _ => chunk.iter().all(|item| item.to_bits() == 0),
                    };
                    assert!(right, "{what}: chunk {index}");
                    let stored = schunk.chunk(index).unwrap();
                    assert_eq!((stored.special(), stored.cbytes()), (Some(special), 32), "{what}");
                }
            }
        }
    }
}

#[test]
fn threads_change_between_the_chunks() {
    let data: Vec<Vec<i32>> = (0..12).map(|seed| (seed..seed + 200_000).collect()).collect();
    for place in PLACES {
        let (_folder, path) = folder();
        let mut schunk = filled(place, &path, &CParams::new(), &[]);
        for (count, chunk) in (1..).zip(&data) {
            let threads = Threads::new(count % 4 + 1);
            schunk.set_cparams(CParams::new().threads(threads)).unwrap();
            schunk.set_dparams(DParams::new().threads(Threads::new(5 - threads.count())));
            schunk.append(chunk).unwrap();
            assert!(schunk.decompress_chunk::<i32>(count - 1).unwrap() == *chunk, "{place:?}");
        }
        assert_keeps(place, schunk, &path, &data, "with any number of threads");
    }
}

#[test]
fn chunks_of_any_lengths() {
    let lists = [&["alpha", "bravo bravo", "charlie-charlie-charlie"][..], &["one", "two", "six"]];
    for place in PLACES {
        for (list, variable) in lists.into_iter().zip([true, false]) {
            let (_folder, path) = folder();
            let what = format!("{place:?}, {list:?}");
            let mut schunk = place.make(&path, &OpenOptions::new());
            for text in list {
                schunk.append(text.as_bytes()).unwrap();
            }
            let check = |schunk: &SChunk, texts: &[&str]| {
                let found: blosc2::Result<Vec<Vec<u8>>> = schunk.iter_chunks::<u8>().collect();
                assert_eq!(found.unwrap(), texts.iter().map(|t| t.as_bytes()).collect::<Vec<_>>());
                assert_eq!(schunk.read::<u8>(..).unwrap(), texts.concat().as_bytes(), "{what}");
                assert_eq!(schunk.info().has_variable_chunks, variable, "{what}");
                assert_eq!(schunk.chunksize(), if variable { 0 } else { 3 }, "{what}");
                // The fields of the header: the version, and the flag of variable-length chunks.
                let bytes = schunk.to_cframe().unwrap();
                let expected = if variable { 3 } else { 2 };
                assert_eq!(
                    (bytes[25] & 0x0f, bytes[25] & 0x40 != 0),
                    (expected, variable),
                    "{what}"
                );
            };
            check(&schunk, list);
            let mut texts = list.to_vec();
            if variable {
                for (index, text) in [(1, "bravo bravo bravo bravo"), (2, "tiny")] {
                    schunk.replace(index, text.as_bytes()).unwrap();
                    texts[index] = text;
                }
                check(&schunk, &texts);
            }
            check(&place.reopened(schunk, &path), &texts);
        }
    }
}

#[test]
fn metalayers_follow_the_chunks() {
    let texts: [&[u8]; 4] = [&[b'a'; 56], &[b'b'; 77], &[b'c'; 48], b""];
    for place in PLACES {
        for count in [0, 1, 10] {
            let (_folder, path) = folder();
            let options = OpenOptions::new().typesize(4).meta("one", b"first").meta("two", b"12");
            let mut schunk = place.make(&path, &options);
            let mut model = Vec::new();
            for text in texts {
                schunk.vlmeta_mut().set("text", text).unwrap();
                schunk.vlmeta_mut().set("other", b"stays").unwrap();
                schunk.meta_mut().set("two", &[text.len() as u8; 2]).unwrap();
                for _ in 0..count {
                    model.push(numbers(model.len()));
                    schunk.append(&model[model.len() - 1]).unwrap();
                }
                schunk = assert_keeps(place, schunk, &path, &model, "with metalayers");
                let get = |name| schunk.vlmeta().get(name).unwrap().unwrap();
                assert_eq!((get("text"), get("other")), (text.to_vec(), b"stays".to_vec()));
                let get = |name| schunk.meta().get(name).unwrap().unwrap();
                assert_eq!(
                    (get("one"), get("two")),
                    (b"first".to_vec(), vec![text.len() as u8; 2])
                );
                // The length of a fixed-length metalayer cannot change.
                let longer = schunk.meta_mut().set("two", b"123");
                assert_eq!(kind(longer), ErrorKind::InvalidArgument, "{place:?}");
            }
            assert!(schunk.vlmeta_mut().remove("text").unwrap());
            let schunk = assert_keeps(place, schunk, &path, &model, "with one less");
            assert_eq!(schunk.vlmeta().names(), ["other"], "{place:?}");
            assert_eq!(schunk.meta().names(), ["one", "two"], "{place:?}");
        }
    }
}

#[test]
fn contents_of_metalayers_are_compressed_as_asked() {
    let text: Vec<u8> = (0..3000u32).flat_map(|number| (number / 7).to_le_bytes()).collect();
    let fast = CParams::new().codec(Codec::Lz4).level(1).filters(&[]).typesize(2).blocksize(4096);
    let copied = CParams::new().level(0);
    let delta = CParams::new().filters(&[Filter::Delta, Filter::Shuffle]).typesize(4);
    let asked = [None, Some(&fast), Some(&copied), Some(&delta)];
    for place in PLACES {
        let (_folder, path) = folder();
        let mut schunk = filled(place, &path, &CParams::new(), &model(2));
        let set = |schunk: &mut SChunk, name: &str, content: &[u8], params: Option<&CParams>| {
            match params {
                Some(params) => schunk.vlmeta_mut().with_cparams(params).set(name, content),
                None => schunk.vlmeta_mut().set(name, content),
            }
        };
        let names = ["as Python", "fast", "copied", "delta"];
        for (name, params) in names.into_iter().zip(asked) {
            // Over another one, and a new one.
            set(&mut schunk, "text", &text, params).unwrap();
            set(&mut schunk, name, &text, params).unwrap();
            set(&mut schunk, "empty", b"", params).unwrap();
            let frame = Frame::open(schunk.to_cframe().unwrap(), &Limits::default()).unwrap();
            for name in ["text", name] {
                let chunk = frame.vlmetalayer_chunk(name).unwrap();
                let header = Header::parse(chunk).unwrap();
                let default = CParams::new();
                let expected = params.unwrap_or(&default);
                let typesize = expected.typesize.unwrap_or(1);
                assert_eq!(usize::from(header.typesize), typesize, "{place:?}, {name}");
                assert_eq!(header.is_stored(), expected.level == 0, "{place:?}, {name}");
                if let Some(blocksize) = expected.blocksize {
                    assert_eq!(header.blocksize as usize, blocksize, "{place:?}, {name}");
                }
                if expected.level > 0 {
                    assert!(chunk.len() < text.len() / 2, "{place:?}, {name}: {}", chunk.len());
                    // The codes of the codecs in the chunk format.
                    let codec = if expected.codec == Codec::Lz4 { 1 } else { 4 };
                    assert_eq!(chunk[2] >> 5, codec, "{place:?}, {name}");
                }
            }
        }
        // Other metalayers are written with their own parameters.
        schunk.vlmeta_mut().set("text", b"short").unwrap();
        let refused = schunk.meta_mut().with_cparams(&fast).set("fixed", b"content");
        assert_eq!(kind(refused), ErrorKind::InvalidArgument, "{place:?}");
        for wrong in [CParams::new().level(10), CParams::new().blosc1(true)] {
            let refused = schunk.vlmeta_mut().with_cparams(wrong).set("text", b"lost");
            assert_eq!(kind(refused), ErrorKind::InvalidArgument, "{place:?}");
        }
        let schunk = assert_keeps(place, schunk, &path, &model(2), "with metalayers");
        let get = |name: &str| schunk.vlmeta().get(name).unwrap().unwrap();
        assert!(names.iter().all(|name| get(name) == text), "{place:?}");
        assert_eq!((get("text"), get("empty")), (b"short".to_vec(), vec![]), "{place:?}");
        assert!(schunk.meta().is_empty(), "{place:?}");
    }
}

#[test]
fn ranges_are_written_across_chunks() {
    let mut rng = Rng(11);
    for place in PLACES {
        for last in [CHUNK, 10] {
            let (_folder, path) = folder();
            let mut chunks = model(5);
            chunks[4].truncate(last);
            let len = 4 * CHUNK + last;
            let params = CParams::new().filters(&[Filter::Delta, Filter::Shuffle]);
            let mut schunk = filled(place, &path, &params, &chunks);
            let mut all = chunks.concat();
            let mut ranges = vec![0..len, 0..1, len - 1..len, CHUNK..2 * CHUNK, 0..0, len..len];
            ranges.extend([CHUNK - 1..CHUNK + 1, 10..4 * CHUNK + 1, 3 * CHUNK + 5..len]);
            for _ in 0..10 {
                let start = rng.below(len as u64) as usize;
                ranges.push(start..start + rng.below((len - start) as u64 + 1) as usize);
            }
            for range in ranges {
                let new: Vec<i32> = range.clone().map(|_| rng.next() as i32 >> 16).collect();
                schunk.write(range.start as u64, &new).unwrap();
                all[range].copy_from_slice(&new);
                assert!(schunk.read::<i32>(..).unwrap() == all, "{place:?}");
            }
            for start in [1 + len as u64, u64::MAX] {
                let outside = schunk.write(start, &[1i32]);
                assert_eq!(kind(outside), ErrorKind::OutOfBounds, "{place:?}");
            }
            let model: Vec<Vec<i32>> = all.chunks(CHUNK).map(<[_]>::to_vec).collect();
            assert_keeps(place, schunk, &path, &model, "written to");
        }
    }
}

#[test]
fn items_written_past_the_end_are_appended() {
    let mut rng = Rng(12);
    for place in PLACES {
        for (nchunks, last) in [(1, CHUNK), (3, CHUNK), (3, 10), (3, CHUNK - 1)] {
            let (_folder, path) = folder();
            let mut chunks = model(nchunks);
            chunks[nchunks - 1].truncate(last);
            let mut all = chunks.concat();
            let mut schunk = filled(place, &path, &CParams::new(), &chunks);
            for (before_end, count) in
                [(0, 1), (3, 4), (0, CHUNK), (2 * CHUNK, 4 * CHUNK), (1, CHUNK), (5, 2 * CHUNK + 5)]
            {
                let start = all.len().saturating_sub(before_end);
                let new: Vec<i32> = (0..count).map(|_| rng.next() as i32 >> 16).collect();
                schunk.write(start as u64, &new).unwrap();
                all.truncate(start);
                all.extend(&new);
                assert!(schunk.read::<i32>(..).unwrap() == all, "{place:?}");
            }
            let model: Vec<Vec<i32>> = all.chunks(CHUNK).map(<[_]>::to_vec).collect();
            assert_keeps(place, schunk, &path, &model, "written past the end");
        }
    }
}

#[test]
fn items_past_the_end_need_a_chunk_size() {
    let mut empty = SChunk::in_memory::<i32>(&CParams::new()).unwrap();
    assert_eq!(kind(empty.write(0, &[1i32])), ErrorKind::InvalidArgument);
    empty.write::<i32>(0, &[]).unwrap();
    let options = OpenOptions::new().typesize(4).chunksize(16);
    let mut sized = options.open(Target::memory()).unwrap();
    sized.write(0, &(0..9).collect::<Vec<i32>>()).unwrap();
    assert_eq!((sized.nchunks(), sized.len()), (3, 9));
    let mut unequal = SChunk::in_memory::<i32>(&CParams::new()).unwrap();
    for len in [3, 7, 2] {
        unequal.append(&vec![5i32; len]).unwrap();
    }
    assert_eq!(kind(unequal.write(11, &[1i32, 2])), ErrorKind::InvalidArgument);
    assert_eq!(unequal.read::<i32>(..).unwrap(), [5; 12]);
    let array = blosc2::NDArray::from_slice(&[1i32, 2, 3], [3]).unwrap();
    let mut inner = array.into_schunk();
    assert_eq!(kind(inner.write(3, &[4i32])), ErrorKind::InvalidArgument);
}

#[test]
fn what_is_out_of_range_changes_nothing() {
    for place in PLACES {
        let (_folder, path) = folder();
        let model = model(2);
        let mut schunk = filled(place, &path, &CParams::new(), &model);
        let chunk = schunk.chunk(0).unwrap();
        let out = ErrorKind::OutOfBounds;
        // C's indices are signed; these correspond to -1.
        for index in [2, 3, usize::MAX, usize::MAX - 1, usize::MAX / 2] {
            assert_eq!(kind(schunk.decompress_chunk::<i32>(index)), out, "{place:?}");
            assert_eq!(
                kind(schunk.decompress_chunk_into(index, &mut numbers(0))),
                out,
                "{place:?}"
            );
            assert_eq!(kind(schunk.chunk(index)), out, "{place:?}");
            assert_eq!(kind(schunk.chunk_info(index)), out, "{place:?}");
            assert_eq!(kind(schunk.block(index, 0)), out, "{place:?}");
            assert_eq!(kind(schunk.replace(index, &numbers(1))), out, "{place:?}");
            assert_eq!(kind(schunk.replace(index, &chunk)), out, "{place:?}");
            assert_eq!(kind(schunk.remove(index)), out, "{place:?}");
            if index > 2 {
                assert_eq!(kind(schunk.insert(index, &numbers(1))), out, "{place:?}");
                assert_eq!(kind(schunk.insert(index, &chunk)), out, "{place:?}");
            }
        }
        assert_eq!(kind(schunk.block(0, usize::MAX)), out, "{place:?}");
        assert_keeps(place, schunk, &path, &model, "asked for what is not there");
    }
}

#[test]
fn chunks_of_blosc1_stay_outside() {
    // C reads a byte of its data as a flag.
    let mut decoy = vec![5, 1, 2, 1];
    for field in [24u32, 24, 40] {
        decoy.extend(field.to_le_bytes());
    }
    decoy.resize(40, 0);
    decoy[30] = 1;
    let empty: Vec<u8> = [5, 1, 2, 1]
        .into_iter()
        .chain([0u32, 1, 16].into_iter().flat_map(u32::to_le_bytes))
        .collect();
    for bytes in [decoy, empty] {
        let chunk = Chunk::new(bytes).unwrap();
        assert!(!chunk.has_variable_blocks() && chunk.is_blosc1());
        for place in PLACES {
            let (_folder, path) = folder();
            let mut schunk = place.make(&path, &OpenOptions::new());
            schunk.append(b"some bytes").unwrap();
            let refused = ErrorKind::Unsupported;
            assert_eq!(kind(schunk.append(&chunk)), refused, "{place:?}");
            assert_eq!(kind(schunk.insert(0, &chunk)), refused, "{place:?}");
            assert_eq!(kind(schunk.replace(0, &chunk)), refused, "{place:?}");
            let schunk = place.reopened(schunk, &path);
            assert_eq!(schunk.read::<u8>(..).unwrap(), b"some bytes", "{place:?}");
            assert!(!schunk.info().has_variable_blocks, "{place:?}");
        }
    }
}

#[test]
fn five_thousand_files_of_chunks() {
    let (_folder, path) = folder();
    let mut schunk = OpenOptions::new().typesize(4).open(Target::memory()).unwrap();
    for number in 0..4990i32 {
        schunk.append(&[number, 1, 2]).unwrap();
    }
    SaveOptions::new().save(&schunk, Target::from(&path).directory(true)).unwrap();
    let mut schunk = SChunk::open_rw(&path).unwrap();
    for number in 4990..5000i32 {
        schunk.append(&[number, 1, 2]).unwrap();
    }
    drop(schunk);
    assert_eq!(fs::read_dir(&path).unwrap().count(), 5001);
    let schunk = SChunk::open(&path).unwrap();
    assert_eq!(schunk.nchunks(), 5000);
    for (number, chunk) in (0..).zip(schunk.iter_chunks::<i32>()) {
        assert_eq!(chunk.unwrap(), [number, 1, 2]);
    }
}

#[test]
fn names_of_chunk_files() {
    // Also with a slash at the end.
    for end in ["frame", "frame/"] {
        let (folder, _) = folder();
        let path = folder.path().join(end);
        let model = model(11);
        let schunk = filled(Place::Directory, &path, &CParams::new(), &model);
        assert_keeps(Place::Directory, schunk, &path, &model, end);
        let mut names: Vec<String> = fs::read_dir(&path)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        let mut expected: Vec<String> = (0..11).map(|id| format!("{id:08X}.chunk")).collect();
        expected.push("chunks.b2frame".to_owned());
        assert_eq!(names, expected);
    }
}
