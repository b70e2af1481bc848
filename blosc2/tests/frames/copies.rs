//! Super-chunks as a whole: copied, saved, in one buffer, inside larger files.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use blosc2::storage::MappedFile;
use blosc2::{
    CParams, Check, Codec, ErrorKind, Filter, NDArray, OpenOptions, SChunk, SaveOptions, Special,
    SplitMode, Target,
};

use super::{
    CHUNK, PLACES, Place, assert_holds, assert_keeps, filled, folder, kind, model, numbers,
};

/// With one metalayer of each kind.
fn with_metalayers(place: Place, path: &Path, model: &[Vec<i32>]) -> SChunk {
    let params = CParams::new().level(9).split(SplitMode::Never);
    let options = OpenOptions::new().cparams(&params).typesize(4).meta("fixed", b"12345678");
    let mut schunk = place.make(path, &options);
    schunk.vlmeta_mut().set("variable", b"123456789").unwrap();
    for chunk in model {
        schunk.append(chunk).unwrap();
    }
    schunk
}

#[test]
fn copies_go_from_every_storage_to_every_other() {
    let other = CParams::new().level(2).blocksize(1000).split(SplitMode::Always);
    for place in PLACES {
        // The last chunk may be short.
        for (count, last) in [(0, 0), (1, CHUNK), (1, 3), (10, CHUNK), (10, 7)] {
            let (folder, path) = folder();
            let mut model = model(count);
            if let Some(chunk) = model.last_mut() {
                chunk.truncate(last);
            }
            let schunk = with_metalayers(place, &path, &model);
            let at = |name: &str| folder.path().join(name);
            schunk.save(at("saved")).unwrap();
            SaveOptions::new()
                .save(&schunk, Target::from(at("directory")).directory(true))
                .unwrap();
            fs::write(at("replaced"), b"something else").unwrap();
            SaveOptions::new().replace(true).save(&schunk, at("replaced")).unwrap();
            SaveOptions::new().cparams(&other).save(&schunk, at("copied")).unwrap();
            let copies = [
                ("saved", SChunk::open(at("saved")), 9),
                ("directory", SChunk::open(at("directory")), 9),
                ("replaced", SChunk::open(at("replaced")), 9),
                ("bytes", schunk.to_cframe().and_then(SChunk::open), 9),
                ("clone", schunk.try_clone(), 9),
                ("copied", SChunk::open(at("copied")), 2),
                ("recompressed", schunk.recompress(&other), 2),
            ];
            for (name, copy, level) in copies {
                let what = format!("{place:?} to {name}, {count} chunks");
                let copy = copy.unwrap();
                assert_holds(&copy, &model, &what);
                assert_eq!(copy.meta().get("fixed").unwrap().unwrap(), b"12345678", "{what}");
                assert_eq!(copy.vlmeta().get("variable").unwrap().unwrap(), b"123456789", "{what}");
                assert_eq!(copy.info().cparams.level, level, "{what}");
                if level == 2 && count > 1 {
                    assert_eq!(copy.chunk_info(0).unwrap().blocksize, Some(1000), "{what}");
                }
                let bytes = copy.to_cframe().unwrap();
                let checked = OpenOptions::new().check(Check::Content).open(bytes);
                assert_holds(&checked.unwrap(), &model, &what);
            }
            // An existing file is not replaced.
            let before = fs::read(at("saved")).unwrap();
            assert_eq!(kind(schunk.save(at("saved"))), ErrorKind::AlreadyExists, "{place:?}");
            assert_eq!(
                kind(SaveOptions::new().cparams(&other).save(&schunk, at("saved"))),
                ErrorKind::AlreadyExists
            );
            assert!(fs::read(at("saved")).unwrap() == before);
            assert_keeps(place, schunk, &path, &model, "copied from");
        }
    }
}

#[test]
fn copies_keep_special_chunks() {
    let zeros = vec![0; CHUNK];
    let ones = vec![1; CHUNK];
    for place in PLACES {
        let (_folder, path) = folder();
        let model = [zeros.clone(), numbers(1), ones.clone(), zeros.clone()];
        let schunk = filled(place, &path, &CParams::new(), &model);
        let specials = [Some(Special::Zeros), None, None, Some(Special::Zeros)];
        let clone = schunk.try_clone().unwrap();
        let bytes = schunk.to_cframe().and_then(SChunk::open).unwrap();
        let recompressed = schunk.recompress(&CParams::new().codec(Codec::Lz4)).unwrap();
        for copy in [clone, bytes, recompressed, schunk] {
            assert_holds(&copy, &model, &format!("{place:?}"));
            for (index, special) in specials.into_iter().enumerate() {
                let info = copy.chunk_info(index).unwrap();
                assert_eq!(info.special, special, "{place:?}, chunk {index}");
                assert_eq!(info.cbytes == 0, special.is_some(), "{place:?}, chunk {index}");
                let chunk = copy.chunk(index).unwrap();
                assert_eq!(chunk.cbytes() == 32, special.is_some(), "{place:?}, chunk {index}");
            }
        }
    }
}

#[test]
fn conversions_there_and_back() {
    for count in [0, 1, 5, 10] {
        for place in PLACES {
            let (folder, path) = folder();
            let mut model = model(count);
            for chunk in model.iter_mut().skip(2) {
                chunk.fill(0);
            }
            let schunk = filled(place, &path, &CParams::new(), &model);
            let bytes = schunk.to_cframe().unwrap();
            let file = folder.path().join("file");
            SChunk::open(bytes.clone()).unwrap().save(&file).unwrap();
            assert!(fs::read(&file).unwrap() == bytes, "{place:?}");
            let from_file = SChunk::open(&file).unwrap();
            assert_holds(&from_file, &model, &format!("{place:?}"));
            assert!(from_file.into_cframe().unwrap() == bytes, "{place:?}");
            assert!(schunk.into_cframe().unwrap() == bytes, "{place:?}");
        }
    }
}

#[test]
fn a_frame_keeps_its_parameters() {
    for place in PLACES {
        for count in [0, 1, 10] {
            let (folder, path) = folder();
            let params = CParams::new()
                .codec(Codec::Lz4)
                .level(3)
                .blocksize(4096)
                .split(SplitMode::Always)
                .filters(&[Filter::TruncPrec(23), Filter::Bytedelta(4), Filter::Bitshuffle]);
            let mut schunk = filled(place, &path, &params, &[]);
            for number in 0..count {
                let items: Vec<f32> = numbers(number).into_iter().map(|item| item as f32).collect();
                schunk.append(&items).unwrap();
            }
            let file = folder.path().join("file");
            schunk.save(&file).unwrap();
            for again in [place.reopened(schunk, &path), SChunk::open(&file).unwrap()] {
                let what = format!("{place:?}, {count} chunks");
                let found = again.info().cparams;
                assert_eq!((found.codec, found.level), (Codec::Lz4, 3), "{what}");
                assert_eq!((found.typesize, found.blocksize), (Some(4), Some(4096)), "{what}");
                assert_eq!((again.typesize(), again.info().blocksize), (4, Some(4096)), "{what}");
                assert_eq!((found.filters, found.split), (params.filters.clone(), params.split));
                assert_eq!(again.len() as usize, count * CHUNK, "{what}");
            }
        }
    }
}

#[test]
fn offsets_say_where_chunks_are() {
    for place in PLACES {
        for count in [1, 10] {
            let (_folder, path) = folder();
            let mut schunk = filled(place, &path, &CParams::new(), &model(count));
            schunk.append(&vec![0; CHUNK]).unwrap();
            let schunk = place.reopened(schunk, &path);
            let offsets = schunk.offsets().unwrap();
            assert_eq!(offsets.len(), count + 1, "{place:?}");
            assert_eq!(offsets[count], None, "{place:?}: zeros are nowhere");
            let mut end = 0;
            for (index, offset) in offsets[..count].iter().enumerate() {
                let cbytes = schunk.chunk_info(index).unwrap().cbytes;
                assert_eq!(cbytes, schunk.chunk(index).unwrap().cbytes());
                if place.is_contiguous() {
                    // One behind the other.
                    assert_eq!(*offset, Some(end), "{place:?}");
                } else {
                    assert_eq!(*offset, Some(index as u64), "{place:?}");
                }
                end += cbytes as u64;
            }
            assert_eq!(schunk.cbytes(), end, "{place:?}");
        }
    }
}

#[test]
fn a_frame_is_appended_to_a_file_and_read_there() {
    for place in PLACES {
        let (folder, path) = folder();
        let model = model(10);
        let schunk = with_metalayers(place, &path, &model);
        for before in [0, 1, 31, 87, 5000] {
            let file = folder.path().join(format!("larger{before}"));
            fs::write(&file, vec![b'x'; before]).unwrap();
            let what = format!("{place:?} behind {before} bytes");
            let first = SaveOptions::new().append(&schunk, &file).unwrap();
            let second = SaveOptions::new().append(&schunk, &file).unwrap();
            let frame = schunk.to_cframe().unwrap();
            assert_eq!((first, second), (before as u64, first + frame.len() as u64), "{what}");
            let bytes = fs::read(&file).unwrap();
            assert!(bytes == [&vec![b'x'; before][..], &frame, &frame].concat(), "{what}");
            for offset in [first, second] {
                let at = |target: Target| target.offset(offset);
                // SAFETY: nobody else knows the file, and nothing writes to it meanwhile.
                let mapped = unsafe { MappedFile::open(&file) }.unwrap();
                for opened in [
                    SChunk::open(at(Target::from(&file))).unwrap(),
                    SChunk::open(at(Target::from(bytes.clone()))).unwrap(),
                    SChunk::open(at(Target::storage(mapped))).unwrap(),
                ] {
                    assert_holds(&opened, &model, &what);
                    assert_eq!(opened.vlmeta().names(), ["variable"], "{what}");
                }
                if offset > 0 {
                    let changed = SChunk::open_rw(at(Target::from(&file)));
                    assert_eq!(kind(changed), ErrorKind::InvalidArgument, "{what}");
                }
            }
            let len = bytes.len() as u64;
            for offset in [first + 1, len - 1, len, len + 1, u64::MAX] {
                let none = OpenOptions::new().open(Target::from(&file).offset(offset));
                assert_eq!(kind(none), ErrorKind::InvalidData, "{what}, opened at {offset}");
            }
        }
        let nowhere = folder.path().join("nowhere");
        assert_eq!(
            kind(SaveOptions::new().append(&schunk, &nowhere)),
            ErrorKind::NotFound,
            "{place:?}"
        );
        assert!(!nowhere.exists());
    }
}

/// A user-defined owner of bytes.
struct Owner {
    bytes: Vec<u8>,
    /// The number of live owners.
    alive: Arc<AtomicUsize>,
    /// The number of calls after which it panics.
    calls: AtomicUsize,
}

impl Owner {
    fn new(bytes: &[u8], alive: &Arc<AtomicUsize>, calls: usize) -> Self {
        alive.fetch_add(1, Ordering::SeqCst);
        let calls = AtomicUsize::new(calls);
        Self { bytes: bytes.to_vec(), alive: alive.clone(), calls }
    }
}

impl AsRef<[u8]> for Owner {
    fn as_ref(&self) -> &[u8] {
        let left = |calls: usize| calls.checked_sub(1);
        let calls = self.calls.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
        calls.expect("the owner panics");
        &self.bytes
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

#[test]
fn frames_are_opened_in_memory_of_any_owner() {
    let (_folder, path) = folder();
    let model = model(5);
    let schunk = with_metalayers(Place::Buffer, &path, &model);
    let bytes = schunk.into_cframe().unwrap();
    let shared: Arc<[u8]> = bytes.clone().into();
    let leaked: &'static [u8] = bytes.clone().leak();
    let alive = Arc::default();
    let endless = Owner::new(&bytes, &alive, usize::MAX);
    let options = OpenOptions::new();
    let inside = [&b"something before"[..], &bytes].concat();
    for opened in [
        options.open(Target::bytes(shared.clone())),
        options.open(Target::bytes(leaked)),
        options.open(Target::bytes(bytes.clone().into_boxed_slice())),
        options.open(Target::bytes(std::borrow::Cow::Owned(bytes.clone()))),
        options.open(Target::bytes(endless)),
        options.clone().check(Check::Content).open(Target::bytes(shared.clone())),
        options.clone().open(Target::bytes(inside.clone()).offset(16)),
    ] {
        let opened = opened.unwrap();
        assert_holds(&opened, &model, "of another owner");
        assert_eq!(opened.vlmeta().names(), ["variable"]);
        assert!(opened.into_cframe().unwrap() == bytes);
    }
    assert_eq!(alive.load(Ordering::SeqCst), 0);
    let mut opened = options.clone().write(true).open(Target::bytes(shared.clone())).unwrap();
    assert_eq!(kind(opened.append(&numbers(5))), ErrorKind::ReadOnly);
    assert_eq!(kind(opened.vlmeta_mut().set("variable", b"")), ErrorKind::ReadOnly);
    assert_holds(&opened, &model, "refused");
    drop(opened);
    assert_eq!(Arc::strong_count(&shared), 1);

    // Panics at any call are errors, and the owner is dropped with the handle.
    let mut opened = 0;
    for calls in 0..60 {
        let owner = Owner::new(&bytes, &alive, calls);
        match options.open(Target::bytes(owner)) {
            Ok(schunk) => {
                opened += 1;
                let read = (0..60).find_map(|_| schunk.decompress_chunk::<i32>(4).err());
                assert_eq!(read.unwrap().kind(), ErrorKind::Callback, "{calls} calls");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Callback, "{calls} calls: {error}"),
        }
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{calls} calls");
    }
    assert!(opened > 0);
    assert_eq!(kind(options.open(Target::bytes(b"no frame"))), ErrorKind::InvalidData);
    assert_eq!(kind(options.open(Target::bytes(Vec::new()))), ErrorKind::InvalidData);
}

#[test]
fn borrowed_frames_are_read_until_the_borrow_ends() {
    let (_folder, path) = folder();
    let model = model(5);
    let bytes = with_metalayers(Place::Buffer, &path, &model).into_cframe().unwrap();
    let options = OpenOptions::new();
    let borrowed = |options: &OpenOptions, bytes: &[u8]| {
        options.with_borrowed(bytes, |schunk| {
            assert_holds(&schunk, &model, "borrowed");
            assert_eq!(schunk.vlmeta().names(), ["variable"]);
            schunk.into_cframe()
        })
    };
    assert!(borrowed(&options, &bytes).unwrap() == bytes);
    assert!(borrowed(&options.clone().check(Check::Content), &bytes).unwrap() == bytes);
    assert_eq!(kind(borrowed(&options, &bytes[..bytes.len() - 1])), ErrorKind::InvalidData);
    let refused = options.clone().write(true).with_borrowed(&bytes, |mut schunk| {
        assert_eq!(kind(schunk.remove(0)), ErrorKind::ReadOnly);
        assert_holds(&schunk, &model, "refused");
        schunk.try_clone()
    });
    assert_holds(&refused.unwrap(), &model, "a copy of its own");

    // After `work` ends in any way, the memory is not read, whatever still holds the super-chunk.
    let is_over = |schunk: &SChunk| {
        let error = schunk.decompress_chunk::<i32>(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Io);
        assert!(error.to_string().ends_with("the borrow of the bytes has ended"));
        assert_eq!(schunk.nchunks(), 5);
    };
    let mut memory = bytes.clone();
    let kept = options.with_borrowed(&memory, Ok).unwrap();
    memory.fill(0xff);
    drop(memory);
    is_over(&kept);
    let (sender, receiver) = mpsc::channel();
    let memory = bytes.clone();
    let panicked = thread::spawn(move || {
        OpenOptions::new().with_borrowed(&memory, |schunk| -> blosc2::Result<()> {
            sender.send(schunk).unwrap();
            panic!("in the closure")
        })
    });
    let panicked = panicked.join();
    assert!(panicked.is_err());
    is_over(&receiver.recv().unwrap());
    let failed = options.with_borrowed::<()>(&bytes, |schunk| {
        std::mem::forget(schunk);
        Err(blosc2::Error::from(std::io::Error::other("of the closure")))
    });
    assert!(failed.unwrap_err().to_string().contains("of the closure"));

    // A thread that continues to read gets the data or an error.
    let reader = {
        let memory = bytes.clone();
        options.with_borrowed(&memory, |schunk| {
            let (sender, receiver) = mpsc::channel();
            let first = model[0].clone();
            let reader = thread::spawn(move || {
                sender.send(()).unwrap();
                let read = |count: &usize| match schunk.decompress_chunk::<i32>(0) {
                    Ok(items) => {
                        assert!(items == first, "after {count} reads");
                        None
                    }
                    Err(error) => Some(error.kind()),
                };
                (0..).find_map(|count| read(&count))
            });
            receiver.recv().unwrap();
            Ok(reader)
        })
    };
    assert_eq!(reader.unwrap().join().unwrap(), Some(ErrorKind::Io));
}

#[test]
fn lengths_of_frames_are_those_of_what_is_saved() {
    for place in PLACES {
        for count in [0, 1, 7] {
            let (_folder, path) = folder();
            let schunk = with_metalayers(place, &path, &model(count));
            let what = format!("{place:?}, {count} chunks");
            let expected = match place {
                Place::Directory | Place::Folder => {
                    fs::metadata(path.join("chunks.b2frame")).unwrap().len()
                }
                _ => schunk.to_cframe().unwrap().len() as u64,
            };
            assert_eq!(schunk.frame_len().unwrap(), expected, "{what}");
        }
    }
    // Special chunks, chunks of various lengths, and the metalayer of an array.
    let mut schunk = OpenOptions::new().typesize(4).open(Target::memory()).unwrap();
    schunk.fill(Special::Zeros, 1_000_000, 1000).unwrap();
    assert_eq!(schunk.frame_len().unwrap(), schunk.to_cframe().unwrap().len() as u64);
    let mut schunk = OpenOptions::new().typesize(4).open(Target::memory()).unwrap();
    for len in [10, 1, 1000] {
        schunk.append(&vec![len; len as usize]).unwrap();
    }
    assert_eq!(schunk.frame_len().unwrap(), schunk.to_cframe().unwrap().len() as u64);
    let array = NDArray::from_slice(&numbers(1), [CHUNK as u64]).unwrap();
    let len = array.schunk().frame_len().unwrap();
    assert_eq!(len, array.schunk().to_cframe().unwrap().len() as u64);
}

#[test]
fn a_mapped_file_is_made_replaced_or_refused() {
    let (folder, path) = folder();
    // SAFETY: here and below, nobody else changes the files while they are mapped.
    let create = |path: &Path| unsafe { MappedFile::create(path) };
    let options = OpenOptions::new().typesize(4);
    let mut schunk =
        options.clone().create_new(true).open(Target::storage(create(&path).unwrap())).unwrap();
    schunk.append(&numbers(0)).unwrap();
    drop(schunk);
    let before = fs::read(&path).unwrap();
    assert_holds(&SChunk::open(&path).unwrap(), &model(1), "made");

    // An existing file is kept.
    let refused = options.clone().create_new(true).open(Target::storage(create(&path).unwrap()));
    assert_eq!(kind(refused), ErrorKind::AlreadyExists);
    let array =
        NDArray::builder().target(Target::storage(create(&path).unwrap())).from_slice(&[1u8], [1]);
    assert_eq!(kind(array), ErrorKind::AlreadyExists);
    let writer = SChunk::open_rw(&path).unwrap();
    let refused = options.clone().replace(true).open(Target::storage(create(&path).unwrap()));
    assert_eq!(kind(refused), ErrorKind::Busy);
    drop(writer);
    assert!(fs::read(&path).unwrap() == before);

    // An existing file is opened, or replaced.
    let opened =
        options.clone().create(true).open(Target::storage(create(&path).unwrap())).unwrap();
    assert_holds(&opened, &model(1), "opened");
    drop(opened);
    let mut schunk =
        options.clone().replace(true).open(Target::storage(create(&path).unwrap())).unwrap();
    assert_holds(&schunk, &[], "replaced");
    for (index, chunk) in model(5).iter().enumerate() {
        schunk.append(chunk).unwrap();
        assert_eq!(schunk.nchunks(), index + 1);
    }
    // Longer and shorter, also than a page.
    for left in (0..5).rev() {
        schunk.remove(left).unwrap();
        assert_holds(&schunk, &model(left), "shorter");
    }
    schunk.append(&numbers(0)).unwrap();
    drop(schunk);
    assert_holds(&SChunk::open(&path).unwrap(), &model(1), "changed");

    let builder = || NDArray::builder().chunk_shape([100]).block_shape([20]);
    let items: Vec<i32> = (0..1050).collect();
    let mapped = builder()
        .options(OpenOptions::new().replace(true))
        .target(Target::storage(create(&path).unwrap()));
    let mut array = mapped.from_slice(&items, [1050]).unwrap();
    array.append(0, &[7i32, 8]).unwrap();
    drop(array);
    let items = [items, vec![7, 8]].concat();
    assert_eq!(NDArray::open(&path).unwrap().read::<Vec<i32>>(..).unwrap(), items);

    let nowhere = folder.path().join("none").join("frame");
    assert_eq!(kind(create(&nowhere)), ErrorKind::NotFound);
    assert_eq!(kind(create(folder.path())), ErrorKind::Io);
    let file = folder.path().join("no frame");
    fs::write(&file, b"text").unwrap();
    let opened = options.create(true).open(Target::storage(create(&file).unwrap()));
    assert_eq!(kind(opened), ErrorKind::InvalidData);
    assert_eq!(fs::read(&file).unwrap(), b"text");
}

#[test]
fn a_private_map_keeps_its_changes() {
    let (_folder, path) = folder();
    let mut model = model(3);
    drop(filled(Place::Mapped, &path, &CParams::new(), &model));
    let before = fs::read(&path).unwrap();
    // SAFETY: here and below, nobody else knows the file, and nothing else writes to it meanwhile.
    let read = unsafe { MappedFile::open(&path) }.unwrap();
    let mut read = OpenOptions::new().open(Target::storage(read)).unwrap();
    assert_holds(&read, &model, "mapped for reading");
    assert_eq!(kind(read.append(&numbers(0))), ErrorKind::ReadOnly);
    drop(read);
    // SAFETY: as above.
    let private = unsafe { MappedFile::copy_on_write(&path) }.unwrap();
    let mut private = OpenOptions::new().write(true).open(Target::storage(private)).unwrap();
    model.push(numbers(3));
    private.append(&model[3]).unwrap();
    model[1].fill(7);
    private.replace(1, &model[1]).unwrap();
    assert_holds(&private, &model, "changed in private");
    drop(private);
    assert!(fs::read(&path).unwrap() == before);
}

/// python-blosc2 #611: `ndarray_from_cframe(copy=True)` aborted if a special chunk was before another one.
#[test]
fn arrays_from_frames_with_special_chunks_before_others_own_their_chunks() {
    let items: Vec<f32> = (0..14).map(|n| if n < 7 { 0.0 } else { 1.0 }).collect();
    let array = NDArray::builder().chunk_shape(7).block_shape(3).from_slice(&items, 14).unwrap();
    let frame = array.schunk().to_cframe().unwrap();
    let mut copy = NDArray::open_rw(frame.clone()).unwrap();
    assert_eq!(copy.schunk().chunk_info(0).unwrap().special, Some(Special::Zeros));
    assert_eq!(copy.read::<Vec<f32>>(..).unwrap(), items);
    copy.write(0..7, &[2.0f32; 7]).unwrap();
    drop(array);
    assert_eq!(copy.read::<Vec<f32>>(..).unwrap()[..8], [2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0]);
    assert_eq!(NDArray::open(frame).unwrap().read::<Vec<f32>>(..).unwrap(), items);
}
