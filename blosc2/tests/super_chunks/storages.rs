//! Super-chunks: created, filled, closed, reopened, filled further; and refused operations.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use blosc2::{
    CParams, Codec, DParams, ErrorKind, Filter, NDArray, OpenOptions, SChunk, SaveOptions, Target,
    Threads,
};

use crate::common::{KINDS, Kind, Rng, assert_same, codecs, data, kind, listing, lossless};

fn numbers(chunk: usize, len: usize) -> Vec<i32> {
    (0..len as i32).map(|item| item * 3 + chunk as i32 * 1_000_000).collect()
}

fn all(schunk: &SChunk) -> Vec<Vec<i32>> {
    schunk.iter_chunks().collect::<blosc2::Result<_>>().unwrap()
}

#[test]
fn chunks_are_appended_over_several_openings() {
    let folder = tempfile::tempdir().unwrap();
    for codec in codecs() {
        for filters in [&[][..], &[Filter::Shuffle], &[Filter::Delta, Filter::Shuffle]] {
            let path = folder.path().join(format!("{codec}{}.b2frame", filters.len()));
            let params = CParams::new().codec(codec).filters(filters).level(6);
            let mut expected = Vec::new();
            let mut schunk = SChunk::create::<i32>(&path, &params).unwrap();
            assert_eq!((schunk.nchunks(), schunk.nbytes(), schunk.chunksize()), (0, 0, 0));
            assert_eq!(schunk.path(), Some(&*path));
            assert_eq!(all(&schunk), expected);
            for _ in 0..3 {
                let chunk = numbers(expected.len(), 1000);
                schunk.append(&chunk).unwrap();
                assert_eq!(schunk.nchunks(), expected.len() + 1);
                expected.push(chunk);
                assert_eq!(all(&schunk), expected);
            }
            drop(schunk);

            for _ in 0..2 {
                let mut schunk = SChunk::open_rw(&path).unwrap();
                assert_eq!(all(&schunk), expected);
                let found = schunk.info().cparams;
                assert_eq!((found.codec, found.level), (codec, 6));
                assert_eq!(found.filters, filters);
                let chunk = numbers(expected.len(), 1000);
                schunk.append(&chunk).unwrap();
                assert_eq!(schunk.nchunks(), expected.len() + 1);
                expected.push(chunk);
            }
            let mut schunk = SChunk::open_rw(&path).unwrap();
            let short = numbers(expected.len(), 7);
            schunk.append(&short).unwrap();
            expected.push(short);
            drop(schunk);

            let schunk = SChunk::open(&path).unwrap();
            assert_eq!((schunk.nchunks(), schunk.typesize(), schunk.chunksize()), (6, 4, 4000));
            assert_eq!(schunk.nbytes(), 5 * 4000 + 7 * 4);
            assert!(schunk.cbytes() < fs::metadata(&path).unwrap().len());
            assert_eq!(all(&schunk), expected);
            assert_eq!(schunk.iter_chunks::<i32>().len(), 6);
            for (index, chunk) in expected.iter().enumerate() {
                let mut buffer = vec![-1; chunk.len()];
                schunk.decompress_chunk_into(index, &mut buffer).unwrap();
                assert_eq!(&buffer, chunk);
            }
            let saved = path.with_extension("saved");
            schunk.save(&saved).unwrap();
            assert_eq!(all(&SChunk::open(&saved).unwrap()), expected);
            let copied = path.with_extension("copied");
            SaveOptions::new()
                .cparams(CParams::new().codec(Codec::Lz4))
                .save(&schunk, &copied)
                .unwrap();
            assert_eq!(all(&SChunk::open(&copied).unwrap()), expected);
        }
    }
}

#[test]
fn memory_and_file_hold_the_same() {
    let folder = tempfile::tempdir().unwrap();
    for seed in 0..120 {
        let mut rng = Rng(seed);
        let typesize = *rng.pick(&[1usize, 2, 4, 8, 12, 255, 300]);
        let mut filters = Vec::new();
        for position in 0..rng.below(4) {
            filters.push(lossless(typesize, position == 0, &mut rng));
        }
        let mut params = CParams::new()
            .codec(*rng.pick(&codecs()))
            .level(rng.below(10) as u8)
            .typesize(typesize)
            .filters(&filters)
            .threads(Threads::new(1 + rng.below(2) as usize));
        if rng.below(3) == 0 {
            params = params.blocksize(typesize * (1 + rng.below(200) as usize));
        }
        let len = typesize * (1 + rng.below(900) as usize);
        let short = typesize * (1 + rng.below((len / typesize) as u64) as usize);
        let mut lengths = vec![len; rng.below(5) as usize];
        lengths.push(short);
        let chunks: Vec<Vec<u8>> =
            lengths.iter().map(|&len| data(*rng.pick(&KINDS), len, rng.next())).collect();
        let what = format!("seed {seed}: {params:?}, {lengths:?}");

        let path = folder.path().join(format!("{seed}.b2frame"));
        let mut file = SChunk::create::<u8>(&path, &params).unwrap();
        let mut memory = SChunk::in_memory::<u8>(&params).unwrap();
        for chunk in &chunks {
            let before = chunk.clone();
            file.append(&chunk[..]).unwrap_or_else(|error| panic!("{what}: {error}"));
            memory.append(&chunk[..]).unwrap();
            assert!(*chunk == before, "{what}: the source was written to");
        }
        let saved = folder.path().join(format!("{seed}.saved"));
        memory.save(&saved).unwrap();
        assert_eq!((memory.path(), memory.info().contiguous), (None, None));
        let mut saved = SChunk::open(&saved).unwrap();
        saved.set_dparams(DParams::new().threads(Threads::new(2)));
        for schunk in [&file, &memory, &saved, &SChunk::open(&path).unwrap()] {
            assert_eq!(schunk.nchunks(), chunks.len(), "{what}");
            assert_eq!(schunk.typesize(), typesize, "{what}");
            for (index, chunk) in chunks.iter().enumerate() {
                let found = schunk.decompress_chunk::<u8>(index);
                let found = found.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_same(&found, chunk, &what);
            }
        }
    }
}

#[test]
fn a_short_last_chunk_may_end_inside_an_item() {
    let lengths = || (1..40).chain(500..520).chain([2001, 3999, 4790, 4799]);
    for codec in codecs() {
        for (blocksize, short) in [None, Some(64), Some(4096)]
            .into_iter()
            .flat_map(|size| lengths().map(move |s| (size, s)))
        {
            let mut params = CParams::new().codec(codec);
            params.blocksize = blocksize;
            let mut schunk = SChunk::in_memory::<i64>(&params).unwrap();
            schunk.append(&[1i64; 600]).unwrap();
            let bytes = data(Kind::Ramp, short, 1);
            let what = format!("{codec}, {short} bytes in blocks of {blocksize:?}");
            schunk.append(&bytes[..]).unwrap_or_else(|error| panic!("{what}: {error}"));
            let found =
                schunk.decompress_chunk::<u8>(1).unwrap_or_else(|error| panic!("{what}: {error}"));
            assert_eq!(found, bytes, "{what}");
            if short % 8 != 0 {
                let error = schunk.decompress_chunk::<i64>(1).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::TypeMismatch, "{what}");
            }
        }
    }
}

#[test]
fn a_dictionary_for_each_chunk_does_no_harm() {
    for codec in [Codec::Zstd, Codec::Lz4, Codec::Lz4Hc] {
        let params = CParams::new().codec(codec).dictionary(true).blocksize(2048);
        let mut schunk = SChunk::in_memory::<u32>(&params).unwrap();
        let chunks: Vec<Vec<u8>> = KINDS
            .into_iter()
            .chain(KINDS)
            .enumerate()
            .map(|(index, kind)| data(kind, 80_000, index as u64))
            .collect();
        for chunk in &chunks {
            schunk.append(&chunk[..]).unwrap();
        }
        for (index, chunk) in chunks.iter().enumerate() {
            let kind = KINDS[index % KINDS.len()];
            let found = schunk.decompress_chunk::<u8>(index);
            let found = found.unwrap_or_else(|error| panic!("{codec}, {kind:?}: {error}"));
            assert_same(&found, chunk, &format!("{codec}, {kind:?}"));
        }
    }
}

#[test]
fn more_chunks_than_the_index_starts_with_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.b2frame");
    let params = CParams::new().codec(Codec::Lz4).level(1);
    let mut file = SChunk::create::<i32>(&path, &params).unwrap();
    let mut memory = SChunk::in_memory::<i32>(&params).unwrap();
    for index in 0..1300 {
        let chunk = numbers(index, 3);
        file.append(&chunk).unwrap();
        memory.append(&chunk).unwrap();
    }
    drop(file);
    let mut file = SChunk::open_rw(&path).unwrap();
    file.append(&numbers(1300, 3)).unwrap();
    memory.append(&numbers(1300, 3)).unwrap();
    let saved = folder.path().join("saved.b2frame");
    memory.save(&saved).unwrap();
    let saved = SChunk::open(&saved).unwrap();
    for schunk in [&file, &memory, &saved] {
        assert_eq!(schunk.nchunks(), 1301);
        for (index, chunk) in schunk.iter_chunks::<i32>().enumerate() {
            assert_eq!(chunk.unwrap(), numbers(index, 3), "chunk {index}");
        }
    }
}

#[test]
fn what_does_not_fit_is_not_appended() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.b2frame");
    let memory = SChunk::in_memory::<i32>(&CParams::new()).unwrap();
    let file = SChunk::create::<i32>(&path, &CParams::new()).unwrap();
    for mut schunk in [memory, file] {
        assert_eq!(kind(schunk.append(&[0i32; 0])), ErrorKind::InvalidArgument);
        schunk.append(&numbers(0, 10)).unwrap();
        assert_eq!(kind(schunk.append(&[0i32; 0])), ErrorKind::InvalidArgument);
        assert_eq!(kind(schunk.append(&[1i16; 10])), ErrorKind::TypeMismatch);
        assert_eq!(kind(schunk.append(&[1i64; 2])), ErrorKind::TypeMismatch);
        assert_eq!(schunk.nchunks(), 1);
        schunk.append(&numbers(1, 10)).unwrap();
        schunk.append(&numbers(2, 4)).unwrap();
        assert_eq!(all(&schunk), [numbers(0, 10), numbers(1, 10), numbers(2, 4)]);
        assert!(!schunk.info().has_variable_chunks);
        // Of the size of an item, any type is taken; bytes always.
        assert_eq!(schunk.decompress_chunk::<f32>(0).unwrap().len(), 10);
        assert_eq!(schunk.decompress_chunk::<u8>(0).unwrap().len(), 40);
        assert_eq!(kind(schunk.decompress_chunk::<u16>(0)), ErrorKind::TypeMismatch);
        assert_eq!(kind(schunk.decompress_chunk::<i8>(0)), ErrorKind::TypeMismatch);
        assert_eq!(kind(schunk.decompress_chunk::<i32>(3)), ErrorKind::OutOfBounds);
        assert_eq!(kind(schunk.decompress_chunk::<i32>(usize::MAX)), ErrorKind::OutOfBounds);
        assert_eq!(
            kind(schunk.decompress_chunk_into(0, &mut [0i32; 9])),
            ErrorKind::InvalidArgument
        );
        assert_eq!(kind(schunk.decompress_chunk_into(0, &mut [0i16; 20])), ErrorKind::TypeMismatch);
        assert_eq!(kind(schunk.decompress_chunk_into(7, &mut [0i32; 10])), ErrorKind::OutOfBounds);
        assert_eq!(
            kind(schunk.decompress_chunk_into::<i32>(0, &mut [])),
            ErrorKind::InvalidArgument
        );

        // Behind a shorter one, and longer than the others: the sizes vary from then on.
        schunk.append(&numbers(3, 11)).unwrap();
        assert!(schunk.info().has_variable_chunks);
        assert_eq!(schunk.chunksize(), 0);
        assert_eq!(all(&schunk), [numbers(0, 10), numbers(1, 10), numbers(2, 4), numbers(3, 11)]);
        let items = schunk.read::<i32>(8..26).unwrap();
        let whole = all(&schunk).concat();
        assert_eq!(items, whole[8..26]);
    }
}

#[test]
fn what_was_opened_for_reading_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.b2frame");
    SChunk::create::<i32>(&path, &CParams::new()).unwrap().append(&numbers(0, 10)).unwrap();
    let before = fs::read(&path).unwrap();
    let mut schunk = SChunk::open(&path).unwrap();
    let error = schunk.append(&numbers(1, 10)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ReadOnly);
    assert_eq!(error.path(), Some(&*path));
    assert!(error.to_string().contains("chunks.b2frame"), "{error}");
    let mut array_path = folder.path().join("array.b2nd");
    NDArray::builder().target(&array_path).from_slice(&[1i32, 2], [2]).unwrap();
    let mut schunk = NDArray::open(&array_path).unwrap().into_schunk();
    assert_eq!(kind(schunk.append(&[1i32, 2])), ErrorKind::ReadOnly);
    drop(schunk);
    array_path.pop();
    assert!(fs::read(&path).unwrap() == before);
}

#[test]
fn nothing_is_made_over_what_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("taken");
    fs::write(&path, "a text").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    let before = listing(folder.path());
    let memory = SChunk::in_memory::<u8>(&CParams::new()).unwrap();
    let array = NDArray::from_slice(&[1u8], [1]).unwrap();
    for taken in [path.clone(), folder.path().join("folder")] {
        for error in [
            SChunk::create::<i32>(&taken, &CParams::new()).unwrap_err(),
            memory.save(&taken).unwrap_err(),
            SaveOptions::new().cparams(CParams::new()).save(&memory, &taken).unwrap_err(),
            array.save(&taken).unwrap_err(),
            NDArray::builder().target(&taken).from_slice(&[1u8], [1]).unwrap_err(),
            NDArray::builder().target(&taken).copy(&array).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::AlreadyExists);
            assert_eq!(error.path(), Some(&*taken));
            assert!(error.to_string().contains(taken.to_str().unwrap()), "{error}");
        }
    }
    assert_eq!(listing(folder.path()), before);
    assert_eq!(fs::read_to_string(&path).unwrap(), "a text");
}

#[test]
fn nothing_is_left_behind_by_what_cannot_be_made() {
    let folder = tempfile::tempdir().unwrap();
    let nowhere = folder.path().join("no such folder").join("file");
    let here = folder.path().join("file");
    let memory = SChunk::in_memory::<u8>(&CParams::new()).unwrap();
    assert_eq!(kind(SChunk::create::<i32>(&nowhere, &CParams::new())), ErrorKind::NotFound);
    assert_eq!(kind(memory.save(&nowhere)), ErrorKind::NotFound);
    let bad = CParams::new().level(10);
    assert_eq!(kind(SChunk::create::<i32>(&here, &bad)), ErrorKind::InvalidArgument);
    assert_eq!(
        kind(SaveOptions::new().cparams(&bad).save(&memory, &here)),
        ErrorKind::InvalidArgument
    );
    let builder = NDArray::builder().target(&here).cparams(bad);
    assert_eq!(kind(builder.from_slice(&[1u8], [1])), ErrorKind::InvalidArgument);
    let builder = NDArray::builder().target(&here);
    assert_eq!(kind(builder.from_slice(&[1u8], [2])), ErrorKind::InvalidArgument);
    for path in ["", "/", ".."] {
        assert!(SChunk::create::<i32>(path, &CParams::new()).is_err(), "{path:?}");
        assert!(SChunk::open(path).is_err(), "{path:?}");
    }
    assert_eq!(listing(folder.path()), []);
}

#[test]
fn unusual_names_are_names() {
    let folder = tempfile::tempdir().unwrap();
    let long = "n".repeat(250);
    let mut names = vec!["with space", "ünïcödé", "-dash", "%20", "no_suffix", &*long];
    if cfg!(unix) {
        // Windows permits neither of these characters.
        names.extend(["file:", "a\nb"]);
    }
    for name in &names {
        let path = folder.path().join(name);
        let mut schunk = SChunk::create::<i32>(&path, &CParams::new())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        schunk.append(&[1i32, 2, 3]).unwrap();
        drop(schunk);
        assert_eq!(all(&SChunk::open(&path).unwrap()), [[1, 2, 3]], "{name}");
    }
    assert_eq!(listing(folder.path()).len(), names.len());
    assert_eq!(kind(SChunk::open(folder.path().join("a\0b"))), ErrorKind::Io);
}

#[test]
fn an_array_can_be_taken_for_its_super_chunk_and_back() {
    let items: Vec<f32> = (0..1000).map(|item| item as f32).collect();
    let array = NDArray::builder().chunk_shape([300]).block_shape([100]).from_slice(&items, [1000]);
    let schunk = array.unwrap().into_schunk();
    assert_eq!((schunk.nchunks(), schunk.chunksize()), (4, 1200));
    assert_eq!(schunk.meta().names(), ["b2nd"]);
    assert_eq!(schunk.decompress_chunk::<f32>(1).unwrap(), items[300..600]);
    let array = NDArray::from_schunk(schunk).unwrap();
    assert_eq!(array.read::<Vec<f32>>(..).unwrap(), items);
    let plain = SChunk::in_memory::<u8>(&CParams::new()).unwrap();
    assert_eq!(kind(NDArray::from_schunk(plain)), ErrorKind::InvalidData);
}

#[test]
fn an_empty_super_chunk_survives_being_saved() {
    let folder = tempfile::tempdir().unwrap();
    let (saved, copied) = (folder.path().join("saved"), folder.path().join("copied"));
    let empty = SChunk::in_memory::<i32>(&CParams::new().codec(Codec::Lz4)).unwrap();
    empty.save(&saved).unwrap();
    SaveOptions::new().cparams(CParams::new()).save(&empty, &copied).unwrap();
    for path in [&saved, &copied] {
        let mut schunk = SChunk::open_rw(path).unwrap();
        assert_eq!((schunk.nchunks(), schunk.typesize()), (0, 4));
        assert_eq!(kind(schunk.decompress_chunk::<i32>(0)), ErrorKind::OutOfBounds);
        schunk.append(&[5i32, 6]).unwrap();
        assert_eq!(all(&SChunk::open(path).unwrap()), [[5, 6]]);
    }
}

#[test]
fn files_of_all_parameters_can_be_opened_to_append() {
    let folder = tempfile::tempdir().unwrap();
    let open = |name: &str, params: CParams, bytes: &[u8]| {
        let path = folder.path().join(name);
        let mut schunk = SChunk::create::<u8>(&path, &params).unwrap();
        schunk.append(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        drop(schunk);
        let mut schunk = SChunk::open_rw(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        schunk.append(bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_same(&schunk.decompress_chunk::<u8>(1).unwrap(), bytes, name);
        let found = schunk.info().cparams;
        assert_eq!(found.typesize, params.typesize.or(Some(1)), "{name}");
        assert_eq!(found.dictionary, params.dictionary, "{name}");
        assert_eq!(found.split, params.split, "{name}");
        assert_eq!(found.blocksize, params.blocksize, "{name}");
    };
    let bytes = data(Kind::Ramp, 8400, 1);
    open("default", CParams::new(), &bytes);
    open("smaller than an item", CParams::new().typesize(300), &bytes[..100]);
    open("large items", CParams::new().typesize(70_000), &bytes);
    open("blocks", CParams::new().typesize(4).blocksize(400), &bytes);
    open("one block", CParams::new().typesize(4).blocksize(1 << 20), &bytes);
    open("dictionary", CParams::new().typesize(4).dictionary(true), &bytes);
    open("level 0", CParams::new().level(0), &bytes);
    for split in [blosc2::SplitMode::Always, blosc2::SplitMode::ForwardCompat] {
        open(&format!("{split:?}"), CParams::new().typesize(4).split(split), &bytes);
    }
    let six = [Filter::Bitshuffle, Filter::Shuffle].repeat(3);
    open("six filters", CParams::new().typesize(2).filters(&six), &bytes);
    open("bytedelta", CParams::new().typesize(4).filters(&[Filter::Bytedelta(0)]), &bytes);
}

/// The open files of this process, where that can be seen.
fn open_files() -> Option<usize> {
    Some(fs::read_dir(Path::new("/proc/self/fd")).ok()?.count())
}

#[test]
fn files_are_closed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("chunks.b2frame");
    SChunk::create::<i32>(&path, &CParams::new()).unwrap().append(&numbers(0, 10)).unwrap();
    let work = || {
        let schunk = SChunk::open(&path).unwrap();
        assert_eq!(schunk.decompress_chunk::<i32>(0).unwrap(), numbers(0, 10));
        let _ = NDArray::open(&path).unwrap_err();
        drop(SChunk::open_rw(&path).unwrap());
    };
    work();
    let before = open_files();
    for _ in 0..200 {
        work();
    }
    if let (Some(before), Some(after)) = (before, open_files()) {
        // Other tests run beside this one.
        assert!(after < before + 50, "{before} open files, then {after}");
    }
}

#[test]
fn nothing_is_appended_to_an_array() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("array.b2nd");
    blosc2::NDArray::builder().target(&path).from_slice(&[1i32; 100], [10, 10]).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = SChunk::open_rw(&path).unwrap().append(&[1i32; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("array.b2nd"), "{error}");
    assert!(std::fs::read(&path).unwrap() == before);
}

#[test]
fn a_file_has_one_writer_and_readers_that_see_what_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.b2frame");
    let mut writer = SChunk::create::<i32>(&path, &CParams::new().codec(Codec::Lz4)).unwrap();
    let error = SChunk::open_rw(&path).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");

    writer.append(&[0i32; 1000]).unwrap();
    let reader = SChunk::open(&path).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for value in 1..200 {
                writer.append(&[value; 1000]).unwrap();
            }
        });
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..200 {
                    let last = SChunk::open(&path).unwrap().nchunks() - 1;
                    assert_eq!(reader.decompress_chunk::<i32>(0).unwrap(), [0; 1000]);
                    if last < reader.nchunks() {
                        assert_eq!(
                            reader.decompress_chunk::<i32>(last).unwrap(),
                            vec![last as i32; 1000]
                        );
                    }
                }
            });
        }
    });
    drop((writer, reader));
    let again = SChunk::open_rw(&path).unwrap();
    assert_eq!(again.nchunks(), 200);
    assert_eq!(again.decompress_chunk::<i32>(199).unwrap(), [199; 1000]);
}

#[test]
fn saving_reports_progress_and_can_be_stopped() {
    let mut schunk = SChunk::in_memory::<u8>(&CParams::default()).unwrap();
    for number in 0..5u8 {
        schunk.append(&[number, 1, 2]).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    for directory in [false, true] {
        for params in [None, Some(CParams::new().level(1))] {
            let reports = Arc::new(Mutex::new(Vec::new()));
            let heard = Arc::clone(&reports);
            let mut options = SaveOptions::new();
            if let Some(params) = &params {
                options = options.cparams(params);
            }
            let stopping = options.clone().progress(|done, _| match done {
                2 => Err("stopped"),
                _ => Ok(()),
            });
            let target = || Target::from(&path).directory(directory);
            let error = stopping.save(&schunk, target()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
            let options = options.progress(move |done, total| {
                heard.lock().unwrap().push((done, total));
                Ok::<_, std::io::Error>(())
            });
            options.save(&schunk, target()).unwrap();
            assert_eq!(*reports.lock().unwrap(), [(1, 5), (2, 5), (3, 5), (4, 5), (5, 5)]);
            let saved = SChunk::open(&path).unwrap();
            assert_eq!(saved.read::<u8>(..).unwrap(), schunk.read::<u8>(..).unwrap());
            drop(saved);
            match directory {
                true => std::fs::remove_dir_all(&path).unwrap(),
                false => std::fs::remove_file(&path).unwrap(),
            }
        }
    }
}

#[test]
fn a_directory_replaces_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    SChunk::create::<u8>(&path, CParams::default()).unwrap().append(&[1u8; 10]).unwrap();
    let before = std::fs::read(&path).unwrap();
    let error =
        OpenOptions::new().replace(true).open(Target::from(&path).directory(true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    // Where there is nothing, the directory is created.
    let path = folder.path().join("new");
    OpenOptions::new().replace(true).open(Target::from(&path).directory(true)).unwrap();
    assert!(path.is_dir());
}

#[test]
#[cfg(unix)]
fn replacing_follows_links_and_keeps_permissions() {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

    let schunk = SChunk::in_memory::<u8>(CParams::default()).unwrap();
    let replace = SaveOptions::new().replace(true);
    type Make<'a> = &'a dyn Fn(&Path) -> blosc2::Result<()>;
    let ways: [Make<'_>; 3] = [
        &|path| replace.save(&schunk, path),
        &|path| OpenOptions::new().replace(true).open(path).map(drop),
        &|path| {
            NDArray::builder()
                .options(OpenOptions::new().replace(true))
                .target(path)
                .zeros::<u8>(3)
                .map(drop)
        },
    ];
    for make in ways {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        symlink("next", path("link")).unwrap();
        symlink(path("target"), path("next")).unwrap();
        make(&path("link")).unwrap();
        assert!(path("link").is_symlink() && path("next").is_symlink());
        assert!(path("target").symlink_metadata().unwrap().is_file());
        symlink("loop", path("loop")).unwrap();
        assert_eq!(make(&path("loop")).unwrap_err().kind(), ErrorKind::Io);

        let made = std::process::Command::new("mkfifo").arg(path("pipe")).status().unwrap();
        assert!(made.success());
        assert_eq!(make(&path("pipe")).unwrap_err().kind(), ErrorKind::InvalidArgument);
        assert!(fs::metadata(path("pipe")).unwrap().file_type().is_fifo());

        fs::write(path("private"), b"").unwrap();
        fs::set_permissions(path("private"), fs::Permissions::from_mode(0o600)).unwrap();
        make(&path("private")).unwrap();
        assert!(fs::metadata(path("private")).unwrap().len() > 0);
        assert_eq!(fs::metadata(path("private")).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6, "temporary files are left");
    }
}

/// A directory is never replaced, and replaces nothing. Messages name the path.
#[test]
fn a_directory_replaces_no_file_and_messages_name_the_path() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    std::fs::write(&path, "an old file").unwrap();
    let target = || Target::from(&path).directory(true);
    let error = OpenOptions::new().replace(true).open(target()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("a.b2frame"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"an old file");
    let opened = || Target::file(std::fs::File::open(&path).unwrap(), &path);
    for target in [opened().directory(true), opened().offset(3), Target::from(&path).offset(3)] {
        let error = OpenOptions::new().create_new(true).open(target).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
        assert!(error.to_string().contains("a.b2frame"), "{error}");
    }
    assert_eq!(SChunk::open(Target::memory()).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let checked = OpenOptions::new().require_checksums(true).checksums(true).open(Target::memory());
    assert!(checked.unwrap().info().has_checksums);
}

/// The progress closure of an append to a file may not wait for that file.
#[test]
fn a_progress_closure_does_not_deadlock_with_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("larger");
    let mut schunk = SChunk::in_memory::<u8>(CParams::default()).unwrap();
    schunk.append(&[1u8; 100]).unwrap();
    schunk.save(&path).unwrap();
    let file = path.clone();
    let options = SaveOptions::new().progress(move |_, _| match SChunk::open(&file) {
        Err(error) if error.kind() == ErrorKind::Busy => Ok(()),
        other => Err(format!("{other:?}")),
    });
    let offset = options.append(&schunk, &path).unwrap();
    let appended = SChunk::open(Target::from(&path).offset(offset)).unwrap();
    assert_eq!(appended.read::<u8>(..).unwrap(), [1; 100]);
}
