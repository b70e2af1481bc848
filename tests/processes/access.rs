//! Several handles of one program on one file: nothing is lost, and nothing waits forever.
//!
//! Tests that could hang run in their own processes, which are killed after a time limit.

#![allow(clippy::single_range_in_vec_init, reason = "a region has a range for each dimension")]

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, RwLock, Weak};
use std::time::{Duration, Instant};
use std::{env, thread};

use crate::common::{FOLDER, VARIABLES, own_process};
use blosc2::storage::{ReadAt, Storage};
use blosc2::user_defined::{BoxError, ChunkBlock, CodecInfo, UserCodec};
use blosc2::{
    CParams, Codec, ErrorKind, NDArray, OpenOptions, Result, SChunk, SaveOptions, Target,
};

/// The time limit of a test that could hang.
const LIMIT: Duration = Duration::from_secs(60);
/// The time limit of a call that has to fail.
const AT_ONCE: Duration = Duration::from_secs(2);

/// Runs `work` in its own process with a folder. Panics if that takes too long.
fn alone(test: &str, work: impl FnOnce(&Path)) {
    if let Some(folder) = own_process() {
        return work(&folder);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env::current_exe().unwrap());
    command.args([test, "--nocapture", "--test-threads=1"]).env(FOLDER, folder.path());
    // It inherits the standard error of this test, so that it never waits for a reader.
    command.stdout(Stdio::null()).stderr(Stdio::inherit());
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    let mut child = command.spawn().unwrap();
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > LIMIT {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{test} hangs");
        }
        thread::sleep(Duration::from_millis(20));
    };
    assert!(status.success(), "{test} fails");
}

fn params() -> CParams {
    CParams::new().codec(Codec::Lz4)
}

/// A file of chunks with these numbers.
fn make(path: &Path, numbers: &[u32]) -> SChunk {
    let mut schunk = SChunk::create::<u32>(path, &params()).unwrap();
    for &number in numbers {
        schunk.append(&[number; 100]).unwrap();
    }
    schunk
}

/// The numbers of all chunks.
fn numbers(path: &Path) -> Vec<u32> {
    let schunk = SChunk::open(path).unwrap();
    schunk.iter_chunks::<u32>().map(|chunk| chunk.unwrap()[0]).collect()
}

fn writing() -> OpenOptions {
    OpenOptions::new().write(true)
}

fn locking() -> OpenOptions {
    writing().locking(true)
}

/// The error of a call that must not take long.
fn refused<T>(work: impl FnOnce() -> Result<T>) -> ErrorKind {
    let start = Instant::now();
    let error = work().map(drop).unwrap_err();
    assert!(start.elapsed() < AT_ONCE, "{error} took {:?}", start.elapsed());
    error.kind()
}

#[cfg_attr(windows, ignore = "not every Windows replaces a file that is open")]
#[test]
fn one_writer_has_a_file_however_it_is_opened_and_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    drop(make(&path, &[]));
    let (writers, appended, replaced) =
        (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let empty = SChunk::in_memory::<u32>(&params()).unwrap();
    let busy = |error: blosc2::Error| assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
    // Until all had their turns.
    let goes_on =
        || appended.load(Ordering::Relaxed) < 300 || replaced.load(Ordering::Relaxed) < 50;
    thread::scope(|scope| {
        for number in 0..3 {
            let (path, writers, appended, goes_on) = (&path, &writers, &appended, &goes_on);
            scope.spawn(move || {
                while goes_on() {
                    match SChunk::open_rw(path) {
                        Ok(mut schunk) => {
                            assert_eq!(writers.fetch_add(1, Ordering::SeqCst), 0, "two writers");
                            let before = schunk.nchunks();
                            schunk.append(&[number; 100]).unwrap();
                            assert_eq!(SChunk::open(path).unwrap().nchunks(), before + 1);
                            appended.fetch_add(1, Ordering::Relaxed);
                            writers.fetch_sub(1, Ordering::SeqCst);
                        }
                        Err(error) => busy(error),
                    }
                }
            });
        }
        scope.spawn(|| {
            while goes_on() {
                match SaveOptions::new().replace(true).save(&empty, &path) {
                    Ok(()) => drop(replaced.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => busy(error),
                }
            }
        });
    });
    numbers(&path);
}

#[test]
fn a_file_that_is_written_to_is_neither_replaced_nor_appended_to() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a.b2frame"), folder.path().join("link"));
    let mut schunk = make(&path, &[1, 2]);
    fs::hard_link(&path, &link).unwrap();
    let other = SChunk::in_memory::<u32>(&params()).unwrap();
    for path in [&path, &link] {
        let array = || {
            NDArray::builder()
                .target(path)
                .options(OpenOptions::new().replace(true))
                .from_slice(&[1u8], [1])
        };
        assert_eq!(
            refused(|| SaveOptions::new().replace(true).save(&other, path)),
            ErrorKind::Busy
        );
        assert_eq!(refused(|| OpenOptions::new().replace(true).open(path)), ErrorKind::Busy);
        assert_eq!(refused(array), ErrorKind::Busy);
        assert_eq!(refused(|| SaveOptions::new().append(&other, path)), ErrorKind::Busy);
        assert_eq!(refused(|| blosc2::repair::repair(path)), ErrorKind::Busy);
    }
    schunk.append(&[3u32; 100]).unwrap();
    drop(schunk);
    assert_eq!(numbers(&path), [1, 2, 3]);

    let reader = SChunk::open(&path).unwrap();
    assert_eq!(refused(|| SaveOptions::new().append(&reader, &path)), ErrorKind::InvalidArgument);
    // A reader does not prevent this, and keeps the old file. Not every Windows replaces a file that is open.
    if cfg!(unix) {
        SaveOptions::new().replace(true).save(&other, &path).unwrap();
        assert_eq!((reader.nchunks(), numbers(&path)), (3, vec![]));
    }
}

#[test]
fn a_link_is_followed_where_a_file_is_replaced() {
    #[cfg(unix)]
    {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a.b2frame"), folder.path().join("link"));
        drop(make(&path, &[1]));
        std::os::unix::fs::symlink(&path, &link).unwrap();
        SaveOptions::new()
            .replace(true)
            .save(&SChunk::in_memory::<u32>(&params()).unwrap(), &link)
            .unwrap();
        assert!(link.is_symlink());
        assert!(numbers(&path).is_empty());
    }
}

#[cfg(unix)]
#[test]
fn a_change_of_a_file_that_was_replaced_or_removed_is_an_error() {
    for locking in [false, true] {
        for directory in [false, true] {
            let folder = tempfile::tempdir().unwrap();
            let (path, other) = (folder.path().join("a"), folder.path().join("b"));
            for path in [&path, &other] {
                let options = OpenOptions::new().create_new(true).typesize(4);
                drop(options.open(Target::from(path).directory(directory)).unwrap());
            }
            let mut schunk = writing().locking(locking).open(&path).unwrap();
            schunk.append(&[1u32; 100]).unwrap();
            // As another program would do it.
            let moved = folder.path().join("moved");
            fs::rename(&path, &moved).unwrap();
            fs::rename(&other, &path).unwrap();
            if !directory {
                // The file has another name, so that nothing is lost.
                schunk.append(&[2u32; 100]).unwrap();
                assert_eq!(numbers(&moved), [1, 2]);
                fs::remove_file(&moved).unwrap();
            }
            let error = schunk.append(&[3u32; 100]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            assert!(numbers(&path).is_empty());
        }
    }
}

#[cfg(unix)]
#[test]
fn a_locked_file_has_one_name_or_symbolic_links_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["a.b2frame", "link", "hard"].map(|name| folder.path().join(name));
    drop(make(&names[0], &[]));
    std::os::unix::fs::symlink(&names[0], &names[1]).unwrap();
    let (mut one, mut two) =
        (locking().open(&names[0]).unwrap(), locking().open(&names[1]).unwrap());
    for number in 0..3 {
        one.append(&[number; 100]).unwrap();
        two.append(&[number; 100]).unwrap();
    }
    assert_eq!(numbers(&names[1]), [0, 0, 1, 1, 2, 2]);
    fs::hard_link(&names[0], &names[2]).unwrap();
    assert_eq!(refused(|| one.append(&[3u32; 100])), ErrorKind::Unsupported);
    assert_eq!(refused(|| locking().open(&names[2])), ErrorKind::Unsupported);
}

#[test]
fn a_file_as_a_storage_is_claimed_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    drop(make(&path, &[1]));
    let file = || File::options().read(true).write(true).open(&path).unwrap();
    let mut first = writing().open(Target::storage(file())).unwrap();
    for second in
        [writing().open(Target::storage(file())), writing().open(&path), locking().open(&path)]
    {
        assert_eq!(second.map(drop).unwrap_err().kind(), ErrorKind::Busy);
    }
    let replacing = OpenOptions::new().replace(true).open(Target::storage(file()));
    assert_eq!(replacing.map(drop).unwrap_err().kind(), ErrorKind::Busy);
    // Readers see what it changes.
    let by_path = SChunk::open(&path).unwrap();
    let by_file = OpenOptions::new().open(Target::storage(File::open(&path).unwrap())).unwrap();
    first.append(&[2u32; 100]).unwrap();
    for reader in [&by_path, &by_file] {
        assert_eq!(reader.decompress_chunk::<u32>(1).unwrap(), [2; 100]);
    }
    drop(first);
    let mut second = writing().open(&path).unwrap();
    second.append(&[3u32; 100]).unwrap();
    assert_eq!(by_file.decompress_chunk::<u32>(2).unwrap(), [3; 100]);
    let saved = SaveOptions::new().save(&by_path, Target::storage(file()));
    assert_eq!(saved.unwrap_err().kind(), ErrorKind::Busy);
}

/// A custom storage that calls another storage.
struct Wrapped<S>(S);

impl<S: Storage> ReadAt for Wrapped<S> {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }
}

impl<S: Storage> Storage for Wrapped<S> {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(offset, bytes)
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.0.set_size(size)
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        self.0.as_bytes()
    }

    fn file(&self) -> Option<&File> {
        self.0.file()
    }

    fn take_vec(&mut self) -> Option<Vec<u8>> {
        self.0.take_vec()
    }
}

#[test]
fn a_custom_storage_can_name_its_file_and_its_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.b2frame");
    drop(make(&path, &[1]));
    let file = || Wrapped(File::options().read(true).write(true).open(&path).unwrap());
    let first = writing().open(Target::storage(file())).unwrap();
    for second in [writing().open(Target::storage(file())), writing().open(&path)] {
        assert_eq!(second.map(drop).unwrap_err().kind(), ErrorKind::Busy);
    }
    drop(first);

    let bytes = fs::read(&path).unwrap();
    let mut schunk = writing().open(Target::storage(Wrapped(bytes))).unwrap();
    schunk.append(&[2u32; 100]).unwrap();
    assert_eq!(schunk.decompress_chunk::<u32>(1).unwrap(), [2; 100]);
    let schunk = SChunk::open(schunk.into_cframe().unwrap()).unwrap();
    assert_eq!(schunk.decompress_chunk::<u32>(1).unwrap(), [2; 100]);
}

/// Bytes that several handles share.
#[derive(Debug, Clone, Default)]
struct Shared(Arc<RwLock<Vec<u8>>>);

impl ReadAt for Shared {
    fn size(&self) -> io::Result<u64> {
        self.0.read().unwrap().size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read().unwrap().read_exact_at(offset, buffer)
    }
}

impl Storage for Shared {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write().unwrap().write_all_at(offset, bytes)
    }

    fn set_size(&mut self, size: u64) -> io::Result<()> {
        self.0.write().unwrap().set_size(size)
    }
}

#[test]
fn handles_on_one_custom_storage_see_changes_after_refresh_and_undo_none() {
    let shared = Shared::default();
    let mut one = writing().create(true).typesize(4).open(Target::storage(shared.clone())).unwrap();
    let mut two = writing().open(Target::storage(shared.clone())).unwrap();
    for number in 0..5 {
        one.append(&[number; 100]).unwrap();
        // It was not informed of the last change; now it is.
        assert_eq!(two.append(&[9u32; 100]).unwrap_err().kind(), ErrorKind::Busy);
        assert_eq!(two.decompress_chunk::<u32>(2 * number as usize).unwrap(), [number; 100]);
        two.append(&[number; 100]).unwrap();
        assert!(one.refresh().unwrap());
    }
    let all = OpenOptions::new().open(Target::storage(shared)).unwrap();
    let found: Vec<u32> = all.iter_chunks::<u32>().map(|chunk| chunk.unwrap()[0]).collect();
    assert_eq!(found, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
}

fn array(path: &Path) -> NDArray {
    let items: Vec<u32> = (0..1000).collect();
    NDArray::builder()
        .target(path)
        .chunk_shape([100])
        .block_shape([50])
        .from_slice(&items, [1000])
        .unwrap()
}

fn masked(block: &mut ChunkBlock<'_>) {
    let input = block.input().to_vec();
    block.output().copy_from_slice(&input);
}

#[test]
fn a_closure_that_changes_what_is_read_gets_an_error() {
    alone("a_closure_that_changes_what_is_read_gets_an_error", |folder| {
        let path = folder.join("a.b2nd");
        drop(array(&path));
        let reader = NDArray::open(&path).unwrap();
        let writer = Mutex::new(NDArray::open_rw(&path).unwrap());
        let write = || writer.lock().unwrap().write(&[0..1], &[7u32]);
        let tried = AtomicBool::new(false);
        let copy = NDArray::builder().map(&reader, |item: u32| {
            if item == 500 && !tried.swap(true, Ordering::Relaxed) {
                assert_eq!(refused(write), ErrorKind::Busy);
            }
            item
        });
        assert_eq!(copy.unwrap().read::<Vec<u32>>(..).unwrap().len(), 1000);
        assert!(tried.into_inner());

        let (writer, tried) = (Arc::new(writer), Arc::new(AtomicUsize::new(0)));
        let mut reader = NDArray::open(&path).unwrap();
        let (inner, count) = (Arc::clone(&writer), Arc::clone(&tried));
        reader.set_dparams(reader.info().dparams.postfilter(
            move |block| -> Result<(), BoxError> {
                masked(block);
                if count.fetch_add(1, Ordering::Relaxed) == 0 {
                    assert_eq!(
                        refused(|| inner.lock().unwrap().write(&[0..1], &[7u32])),
                        ErrorKind::Busy
                    );
                }
                Ok(())
            },
        ));
        assert_eq!(reader.read::<Vec<u32>>(..).unwrap()[999], 999);
        assert!(tried.load(Ordering::Relaxed) > 0);
        // Outside of closures it can be done.
        writer.lock().unwrap().write(&[0..1], &[7u32]).unwrap();
        assert_eq!(reader.item::<u32>(&[0]).unwrap(), 7);
    });
}

#[test]
fn closures_may_read_what_is_read_as_often_as_they_like() {
    alone("closures_may_read_what_is_read_as_often_as_they_like", |folder| {
        let path = folder.join("a.b2frame");
        drop(make(&path, &[1, 2]));
        let handle: Arc<OnceLock<Weak<SChunk>>> = Arc::default();
        let (inner, is_first) = (Arc::clone(&handle), AtomicBool::new(true));
        let mut outer = OpenOptions::new().locking(true).open(&path).unwrap();
        outer.set_dparams(outer.info().dparams.postfilter(move |block| -> Result<(), BoxError> {
            masked(block);
            if is_first.swap(false, Ordering::Relaxed) {
                let handle = inner.get().and_then(Weak::upgrade).ok_or("it is gone")?;
                for _ in 0..200 {
                    assert_eq!(handle.decompress_chunk::<u32>(0)?, [1; 100]);
                }
            }
            Ok(())
        }));
        let outer = Arc::new(outer);
        handle.set(Arc::downgrade(&outer)).unwrap();
        assert_eq!(outer.decompress_chunk::<u32>(1).unwrap(), [2; 100]);
    });
}

#[test]
fn a_closure_that_reads_what_is_changed_gets_an_error() {
    alone("a_closure_that_reads_what_is_changed_gets_an_error", |folder| {
        let path = folder.join("a.b2nd");
        drop(array(&path));
        let open = || NDArray::from_schunk(locking().open(&path).unwrap()).unwrap();
        let (mut writer, reader) = (open(), open());
        let kinds = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&kinds);
        writer
            .set_cparams(writer.info().cparams.prefilter(
                move |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
                    masked(block);
                    if seen.lock().unwrap().is_empty() {
                        seen.lock().unwrap().push(refused(|| reader.read::<Vec<u32>>(..)));
                    }
                    Ok(())
                },
            ))
            .unwrap();
        writer.write(&[0..100], &[5u32; 100]).unwrap();
        assert_eq!(*kinds.lock().unwrap(), [ErrorKind::Busy]);
        // The same in a closure that has the lock for several calls.
        let mut schunk = locking().open(&path).unwrap();
        let other = OpenOptions::new().locking(true).open(&path).unwrap();
        schunk
            .locked(|schunk| {
                assert_eq!(refused(|| other.decompress_chunk::<u32>(0)), ErrorKind::Busy);
                assert_eq!(schunk.decompress_chunk::<u32>(0)?, [5; 100]);
                Ok(())
            })
            .unwrap();
        assert_eq!(other.decompress_chunk::<u32>(0).unwrap(), [5; 100]);
    });
}

#[test]
fn reads_of_handles_with_and_without_locking_do_not_wait_for_each_other() {
    alone("reads_of_handles_with_and_without_locking_do_not_wait_for_each_other", |folder| {
        let path = folder.join("a.b2nd");
        drop(array(&path));
        let open = || NDArray::from_schunk(locking().open(&path).unwrap()).unwrap();
        let (plain, locked, mut writer) = (NDArray::open(&path).unwrap(), open(), open());
        let end = Instant::now() + Duration::from_secs(2);
        thread::scope(|scope| {
            for turned in [false, true] {
                let (plain, locked) = (&plain, &locked);
                scope.spawn(move || {
                    while Instant::now() < end {
                        let both = if turned { [locked, plain] } else { [plain, locked] };
                        let joined = NDArray::builder().concatenate(both, 0).unwrap();
                        let items = joined.read::<Vec<u32>>(..).unwrap();
                        assert_eq!(items[..1000], items[1000..]);
                    }
                });
            }
            scope.spawn(|| {
                let mut number = 0u32;
                while Instant::now() < end {
                    writer.write(&[0..1000], &[number; 1000]).unwrap();
                    number += 1;
                }
            });
        });
    });
}

#[test]
fn a_codec_that_is_refused_may_register_another_when_it_is_dropped() {
    /// Registers another codec when it is dropped, the first one.
    struct Registers(bool);
    impl UserCodec for Registers {
        fn compress(
            &self,
            _: &[u8],
            _: &mut [u8],
            _: &CodecInfo,
        ) -> Result<Option<usize>, BoxError> {
            Ok(None)
        }
        fn decompress(&self, _: &[u8], _: &mut [u8], _: &CodecInfo) -> Result<(), BoxError> {
            Err("nothing is compressed".into())
        }
    }
    impl Drop for Registers {
        fn drop(&mut self) {
            if self.0 {
                Codec::register(231, "when-dropped", Registers(false)).unwrap();
            }
        }
    }
    alone("a_codec_that_is_refused_may_register_another_when_it_is_dropped", |_| {
        Codec::register(230, "first", Registers(false)).unwrap();
        let error = Codec::register(230, "second", Registers(true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
        assert_eq!("when-dropped".parse::<Codec>().unwrap().code(), 231);
    });
}
