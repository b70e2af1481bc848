//! Frames in custom directories: one file for each chunk, in a user-defined storage.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use blosc2::storage::{Folder, FolderMut, ReadAt};
use blosc2::{CParams, Check, ErrorKind, NDArray, OpenOptions, SChunk, SaveOptions, Target};
use blosc2_format::directory::{self, Disk, INDEX, Memory, chunk_name};
use blosc2_format::frame::Frame;
use blosc2_format::{Error, Limits, Options};

use super::common::Rng;
use super::{CHUNK, Place, assert_holds, filled, folder, kind, model, numbers};

/// A user-defined folder on the file system.
#[derive(Debug)]
pub(super) struct Folded(Disk);

impl Folded {
    pub(super) fn new(path: &Path) -> Self {
        Self(Disk(path.to_owned()))
    }
}

impl Folder for Folded {
    type File = fs::File;

    fn open(&self, name: &str) -> io::Result<fs::File> {
        self.0.open(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }
}

impl FolderMut for Folded {
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        self.0.put(name, content, durable)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}

/// Shared objects in memory, with a log of the operations.
#[derive(Debug, Clone, Default)]
struct Objects(Arc<Mutex<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    files: Memory,
    log: Vec<String>,
    /// The number of calls before one fails, and how it fails.
    fault: Option<(usize, Fault)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    Error,
    Panic,
    /// This and all after it.
    Death,
}

impl Objects {
    /// Also after a panic.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn call(&self, what: String) -> io::Result<MutexGuard<'_, Inner>> {
        let mut inner = self.inner();
        inner.log.push(what);
        match inner.fault {
            Some((0, Fault::Panic)) => {
                inner.fault = None;
                panic!("in the folder")
            }
            Some((0, fault)) => {
                if fault == Fault::Error {
                    inner.fault = None;
                }
                return Err(io::Error::other("out of reach"));
            }
            Some((calls, fault)) => inner.fault = Some((calls - 1, fault)),
            None => {}
        }
        Ok(inner)
    }

    fn files(&self) -> Memory {
        self.inner().files.clone()
    }

    /// The operations since the last call.
    fn log(&self) -> Vec<String> {
        std::mem::take(&mut self.inner().log)
    }

    fn fail(&self, fault: Option<(usize, Fault)>) {
        self.inner().fault = fault;
    }
}

impl Folder for Objects {
    type File = Vec<u8>;

    fn open(&self, name: &str) -> io::Result<Vec<u8>> {
        self.call(format!("open {name}"))?.files.open(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.call("names".to_owned())?.files.names()
    }
}

impl FolderMut for Objects {
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        let what = format!("put {name}{}", if durable { " durably" } else { "" });
        self.call(what)?.files.put(name, content, durable)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.call(format!("remove {name}"))?.files.remove(name)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.call("sync".to_owned()).map(drop)
    }
}

fn options() -> OpenOptions {
    OpenOptions::new().typesize(4).check(Check::Content)
}

fn assert_good(files: &Memory) {
    let report = directory::check(files, &Options { content: true, ..Options::default() });
    assert_eq!(report.unwrap().findings, []);
}

#[test]
fn files_are_put_replaced_and_removed() {
    let (_folder, path) = folder();
    let disk = Disk(path.join("folder"));
    fn check<F: FolderMut>(mut folder: F, durable: bool) {
        let read = |folder: &F| folder.open("a").and_then(|file| file.read_vec_at(0, 3));
        let none = |error: io::Error| assert_eq!(error.kind(), io::ErrorKind::NotFound);
        none(read(&folder).unwrap_err());
        none(folder.remove("a").unwrap_err());
        folder.put("a", b"one", durable).unwrap();
        // Not every Windows replaces a file that is open.
        let opened = cfg!(unix).then(|| folder.open("a").unwrap());
        folder.put("a", b"twofold", durable).unwrap();
        if let Some(opened) = opened {
            assert_eq!(opened.read_vec_at(0, opened.size().unwrap()).unwrap(), b"one");
        }
        assert_eq!(read(&folder).unwrap(), b"two");
        folder.put("b", b"", durable).unwrap();
        folder.sync().unwrap();
        let mut names = folder.names().unwrap();
        names.sort();
        assert_eq!(names, ["a", "b"]);
        folder.remove("a").unwrap();
        none(read(&folder).unwrap_err());
        assert_eq!(folder.names().unwrap(), ["b"]);
    }
    for durable in [false, true] {
        check(Memory::default(), durable);
        check(disk.clone(), durable);
        fs::remove_dir_all(&disk.0).unwrap();
    }
    fs::create_dir_all(disk.0.join("folder")).unwrap();
    assert_eq!(disk.open("folder").unwrap_err().kind(), io::ErrorKind::InvalidData);
}

#[test]
fn frames_are_made_and_opened_in_folders() {
    let objects = Objects::default();
    let nothing = OpenOptions::new().open(Target::folder(objects.clone()));
    assert_eq!(kind(nothing), ErrorKind::NotFound);
    let mut schunk = options().create_new(true).open(Target::folder(objects.clone())).unwrap();
    assert_eq!(objects.files().names().unwrap(), [INDEX]);
    for (index, chunk) in model(5).iter().enumerate() {
        schunk.append(chunk).unwrap();
        assert_eq!(schunk.nchunks(), index + 1);
    }
    let mut names: Vec<String> = (0..5).map(chunk_name).collect();
    names.push(INDEX.to_owned());
    assert_eq!(objects.files().names().unwrap(), names);
    assert_good(&objects.files());
    assert_holds(&schunk, &model(5), "made");
    assert_eq!((schunk.path(), schunk.info().contiguous), (None, Some(false)));
    drop(schunk);

    assert_eq!(
        kind(SChunk::open(Target::folder(objects.clone()).offset(1))),
        ErrorKind::InvalidArgument
    );
    // An existing frame is kept, unless it is opened.
    let before = objects.files();
    for (options, expected) in [
        (options().create_new(true), ErrorKind::AlreadyExists),
        (options().replace(true), ErrorKind::InvalidArgument),
    ] {
        assert_eq!(kind(options.open(Target::folder(objects.clone()))), expected);
    }
    let array = NDArray::builder().target(Target::folder(objects.clone())).from_slice(&[1u8], [1]);
    assert_eq!(kind(array), ErrorKind::AlreadyExists);
    assert!(objects.files() == before);
    let mut reader = options().open(Target::folder(objects.clone())).unwrap();
    assert_eq!(kind(reader.append(&numbers(5))), ErrorKind::ReadOnly);
    let mut writer = options().create(true).open(Target::folder(objects.clone())).unwrap();

    // A read opens only its chunk. A change writes the chunk, then the index, and then removes the old chunk.
    objects.log();
    assert!(reader.decompress_chunk::<i32>(3).unwrap() == numbers(3));
    assert_eq!(objects.log(), ["open 00000003.chunk"]);
    writer.replace(2, &numbers(9)).unwrap();
    let steps = ["put 00000005.chunk", "put chunks.b2frame", "remove 00000002.chunk"];
    let found: Vec<String> =
        objects.log().into_iter().filter(|step| !step.starts_with("open")).collect();
    assert_eq!(found, steps);
    writer.sync().unwrap();
    assert_eq!(objects.log(), ["sync"]);
    assert!(reader.refresh().unwrap());
    assert!(reader.decompress_chunk::<i32>(2).unwrap() == numbers(9));
    let durable = options().write(true).durable(true).open(Target::folder(objects.clone()));
    durable.unwrap().append(&numbers(5)).unwrap();
    let log = objects.log();
    // The number of the chunk that was removed.
    assert!(log.contains(&"put 00000002.chunk durably".to_owned()), "{log:?}");
    assert!(log.contains(&"put chunks.b2frame durably".to_owned()), "{log:?}");
    // A stale handle changes nothing.
    let before = objects.files();
    assert_eq!(kind(writer.append(&numbers(7))), ErrorKind::Busy);
    assert!(objects.files() == before);
    writer.append(&numbers(7)).unwrap();
    assert_eq!(writer.nchunks(), 7);
    // Also if it becomes stale during a transaction.
    let mut before = Memory::default();
    let stale = writer.transaction(|writer| {
        writer.append(&numbers(8))?;
        let mut other = options().write(true).open(Target::folder(objects.clone()))?;
        other.append(&numbers(9))?;
        assert_eq!(other.nchunks(), 8);
        before = objects.files();
        writer.append(&numbers(8))
    });
    assert_eq!(kind(stale), ErrorKind::Busy);
    assert!(objects.files() == before);
    assert!(writer.decompress_chunk::<i32>(7).unwrap() == numbers(9));
    // Chunks that the transaction replaces are not stored.
    objects.log();
    let done = writer.transaction(|writer| {
        writer.append(&numbers(8))?;
        writer.replace(8, &numbers(9))
    });
    done.unwrap();
    let log = objects.log();
    assert_eq!(log.iter().filter(|step| step.starts_with("put")).count(), 2, "{log:?}");
    assert!(!log.iter().any(|step| step.starts_with("remove")), "{log:?}");
    assert_good(&objects.files());
}

#[test]
fn arrays_and_copies_are_made_in_folders() {
    let (_folder, path) = folder();
    let items: Vec<i32> = (0..600).collect();
    let objects = Objects::default();
    let builder = NDArray::builder()
        .chunk_shape([7, 10])
        .block_shape([7, 5])
        .target(Target::folder(objects.clone()));
    let mut array = builder.clone().from_slice(&items, [20, 30]).unwrap();
    let again = builder.from_slice(&items, [20, 30]);
    assert_eq!(kind(again), ErrorKind::AlreadyExists);
    array.resize([10, 30]).unwrap();
    drop(array);
    assert_good(&objects.files());
    let opened = options().open(Target::folder(objects.clone())).unwrap();
    let array = NDArray::from_schunk(opened).unwrap();
    assert_eq!(array.read::<Vec<i32>>(..).unwrap(), items[..300]);

    let schunk = filled(Place::Memory, &path, &CParams::new(), &model(3));
    let copied = Objects::default();
    SaveOptions::new().save(&schunk, Target::folder(copied.clone())).unwrap();
    assert_holds(&options().open(Target::folder(copied.clone())).unwrap(), &model(3), "saved");
    // As a directory of the file system has them.
    SaveOptions::new().save(&schunk, Target::from(&path).directory(true)).unwrap();
    for (name, content) in copied.files().0 {
        assert!(fs::read(path.join(&name)).unwrap() == content, "{name}");
    }
    assert_holds(&SChunk::open(&path).unwrap(), &model(3), "in the file system");
    for (options, expected) in [
        (SaveOptions::new(), ErrorKind::AlreadyExists),
        (SaveOptions::new().replace(true), ErrorKind::InvalidArgument),
    ] {
        assert_eq!(kind(options.save(&schunk, Target::folder(copied.clone()))), expected);
    }
    let smaller = SaveOptions::new().cparams(CParams::new().level(9));
    let recompressed = Objects::default();
    smaller.save(&schunk, Target::folder(recompressed.clone())).unwrap();
    let opened = options().open(Target::folder(recompressed)).unwrap();
    assert_eq!(opened.info().cparams.level, 9);
    assert_holds(&opened, &model(3), "recompressed");
}

#[test]
fn a_folder_that_fails_has_the_old_frame_or_the_new_one() {
    let changes: [fn(&mut SChunk) -> blosc2::Result<()>; 5] = [
        |schunk| schunk.append(&numbers(7)),
        |schunk| schunk.replace(1, &numbers(8)),
        |schunk| schunk.remove(0),
        |schunk| schunk.vlmeta_mut().set("name", b"content"),
        |schunk| {
            schunk.transaction(|schunk| {
                schunk.append(&numbers(7))?;
                schunk.replace(1, &numbers(8))?;
                schunk.replace(1, &numbers(9))?;
                schunk.remove(0)
            })
        },
    ];
    let content = |schunk: &SChunk| {
        let chunks: Vec<Vec<i32>> = schunk.iter_chunks().map(Result::unwrap).collect();
        (chunks, schunk.vlmeta().get("name").unwrap())
    };
    let start = Objects::default();
    let mut schunk = options().create(true).open(Target::folder(start.clone())).unwrap();
    for chunk in model(4) {
        schunk.append(&chunk).unwrap();
    }
    let before = content(&schunk);
    for (number, change) in changes.iter().enumerate() {
        for fault in [Fault::Error, Fault::Panic, Fault::Death] {
            let mut seen = [0, 0];
            for calls in 0.. {
                let what = format!("change {number}, {fault:?} after {calls} calls");
                let objects = Objects::default();
                objects.inner().files = start.files();
                let mut schunk =
                    options().write(true).open(Target::folder(objects.clone())).unwrap();
                objects.fail(Some((calls, fault)));
                let done = change(&mut schunk);
                let is_over = objects.inner().fault.is_some_and(|(left, _)| left > 0);
                objects.fail(None);
                if let Err(error) = &done {
                    let expected =
                        if fault == Fault::Panic { ErrorKind::Callback } else { ErrorKind::Io };
                    assert_eq!(error.kind(), expected, "{what}: {error}");
                }
                let opened = options().write(true).open(Target::folder(objects.clone()));
                let mut opened = opened.unwrap_or_else(|error| panic!("{what}: {error}"));
                let found = content(&opened);
                // A failed removal of the old chunk is harmless.
                assert_eq!(found == before, done.is_err(), "{what}");
                seen[usize::from(done.is_ok())] += 1;
                // The remaining files do not disturb the next change.
                change(&mut opened).unwrap();
                opened.append(&numbers(9)).unwrap();
                assert!(
                    opened.decompress_chunk::<i32>(opened.nchunks() - 1).unwrap() == numbers(9)
                );
                let report = directory::check(&objects.files(), &Options::default()).unwrap();
                assert!(report.is_good(), "{what}");
                // This handle also stays usable, unless it could not read the frame.
                if done.is_err() && fault == Fault::Error {
                    drop(opened);
                    schunk.refresh().unwrap();
                    schunk.append(&numbers(9)).unwrap();
                }
                if is_over {
                    break;
                }
            }
            assert!(seen[0] > 0 && seen[1] > 0, "change {number}, {fault:?}: {seen:?}");
        }
    }
}

#[test]
fn panics_and_errors_of_a_folder_are_those_of_the_call() {
    let objects = Objects::default();
    let mut schunk = options().create(true).open(Target::folder(objects.clone())).unwrap();
    schunk.append(&numbers(0)).unwrap();
    for (fault, expected) in [(Fault::Panic, ErrorKind::Callback), (Fault::Error, ErrorKind::Io)] {
        let fail = || objects.fail(Some((0, fault)));
        fail();
        assert_eq!(kind(schunk.decompress_chunk::<i32>(0)), expected);
        fail();
        assert_eq!(kind(schunk.frame_len()), expected);
        fail();
        assert_eq!(kind(schunk.sync()), expected);
        fail();
        assert_eq!(kind(schunk.refresh()), expected);
        for calls in 0..2 {
            objects.fail(Some((calls, fault)));
            assert_eq!(kind(options().open(Target::folder(objects.clone()))), expected, "{calls}");
        }
        objects.fail(None);
        assert_holds(&schunk, &model(1), "again");
    }
    let mut files = objects.files();
    files.remove(&chunk_name(0)).unwrap();
    objects.inner().files = files;
    let error = schunk.decompress_chunk::<i32>(0).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    assert!(error.to_string().contains("00000000.chunk"), "{error}");
}

#[test]
fn a_change_that_leaves_all_sizes_is_noticed_by_other_handles() {
    let mut rng = Rng(7);
    let mut noise = || -> Vec<i32> { (0..CHUNK).map(|_| rng.next() as i32).collect() };
    let chunks: Vec<Vec<i32>> = (0..4).map(|_| noise()).collect();
    let changes: [fn(&mut SChunk, &[i32]); 2] = [
        |schunk, new| schunk.replace(0, new).unwrap(),
        |schunk, _| schunk.reorder(&[1, 0]).unwrap(),
    ];
    for change in changes {
        let objects = Objects::default();
        let mut one = options().create(true).open(Target::folder(objects.clone())).unwrap();
        one.append(&chunks[0]).unwrap();
        one.append(&chunks[1]).unwrap();
        let mut other = options().write(true).open(Target::folder(objects.clone())).unwrap();
        change(&mut one, &chunks[2]);
        let before = one.read::<i32>(..).unwrap();
        assert_eq!(kind(other.replace(1, &chunks[3])), ErrorKind::Busy);
        let opened = options().open(Target::folder(objects.clone())).unwrap();
        assert_eq!(opened.read::<i32>(..).unwrap(), before);
        other.refresh().unwrap();
        other.replace(1, &chunks[3]).unwrap();
        assert_eq!(other.decompress_chunk::<i32>(1).unwrap(), chunks[3]);
    }
}

/// A writer that knows nothing of the reader, like another program without locking, stores another chunk in the file of
/// a removed chunk.
#[test]
fn reused_files_are_not_taken_for_the_chunks_of_an_old_index() {
    let (_folder, path) = folder();
    for change in 0..4 {
        let path = path.with_file_name(format!("{change}"));
        drop(filled(Place::Directory, &path, &CParams::default(), &model(3)));
        let mut reader = SChunk::open(&path).unwrap();
        let mut frame = Frame::open_directory(Disk(path.clone()), &Limits::default()).unwrap();
        let mut writer = options().write(true).open(Target::folder(Folded::new(&path))).unwrap();
        match change {
            // The number of the removed chunk is the lowest free one.
            0 => {
                writer.replace(0, &numbers(50)).unwrap();
                writer.replace(1, &numbers(60)).unwrap();
            }
            1 => {
                writer.remove(0).unwrap();
                writer.append(&numbers(50)).unwrap();
            }
            2 => writer.remove(0).unwrap(),
            _ => writer.append(&numbers(50)).unwrap(),
        }
        for index in 0..3 {
            match reader.decompress_chunk::<i32>(index) {
                Ok(found) => {
                    assert_eq!(found, numbers(index), "chunk {index} after change {change}")
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Busy, "{error}");
                    assert!(error.to_string().contains("`refresh`"), "{error}");
                }
            }
        }
        // The reader of `blosc2-format`.
        let mut data = Vec::new();
        let mut opened = Frame::open_directory(Disk(path.clone()), &Limits::default()).unwrap();
        for index in 0..3 {
            match frame.decode_chunk(index, &mut data) {
                Err(Error::Io(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::ResourceBusy, "{error}");
                    assert!(error.to_string().contains("open it again"), "{error}");
                }
                other => panic!("chunk {index} after change {change}: {other:?}"),
            }
        }
        for index in 0..writer.nchunks() {
            opened.decode_chunk(index as u64, &mut data).unwrap();
            let expected = writer.decompress_chunk::<i32>(index).unwrap();
            assert_eq!(
                data,
                expected.iter().flat_map(|item| item.to_ne_bytes()).collect::<Vec<u8>>()
            );
        }
        assert!(reader.refresh().unwrap());
        for index in 0..writer.nchunks() {
            let expected = writer.decompress_chunk::<i32>(index).unwrap();
            assert_eq!(reader.decompress_chunk::<i32>(index).unwrap(), expected);
        }
    }
}

/// Shared objects with versions, whose requests can fail.
#[derive(Debug, Clone, Default)]
struct Versioned {
    objects: Objects,
    is_down: Arc<AtomicBool>,
}

impl Folder for Versioned {
    type File = Vec<u8>;

    fn open(&self, name: &str) -> io::Result<Vec<u8>> {
        self.objects.open(name)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.objects.names()
    }

    fn version(&self, name: &str) -> io::Result<Option<String>> {
        if self.is_down.load(Ordering::Relaxed) {
            return Err(io::Error::other("out of reach"));
        }
        self.objects.files().open(name).map(|content| Some(format!("{content:?}")))
    }
}

impl FolderMut for Versioned {
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        self.objects.put(name, content, durable)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.objects.remove(name)
    }
}

#[test]
fn a_failed_request_of_a_version_does_not_end_the_detection_of_changes() {
    let folder = Versioned::default();
    let set_down = |is_down| folder.is_down.store(is_down, Ordering::Relaxed);
    let mut schunk = options().create(true).open(Target::folder(folder.clone())).unwrap();
    schunk.append(&numbers(0)).unwrap();
    let frame = Frame::open_directory(folder.clone(), &Limits::default()).unwrap();
    set_down(true);
    assert_eq!(kind(options().open(Target::folder(folder.clone()))), ErrorKind::Io);
    let opened = Frame::open_directory(folder.clone(), &Limits::default());
    assert!(matches!(opened, Err(Error::Io(_))));
    assert!(matches!(frame.chunk(0), Err(Error::Io(_))));
    assert_eq!(kind(schunk.decompress_chunk::<i32>(0)), ErrorKind::Io);
    // The change is stored, but the handle does not know which version it has.
    schunk.append(&numbers(1)).unwrap();
    assert_eq!(schunk.nchunks(), 2);
    set_down(false);
    assert_eq!(kind(schunk.decompress_chunk::<i32>(0)), ErrorKind::Busy);
    schunk.refresh().unwrap();
    assert_holds(&schunk, &model(2), "refreshed");
    // The detection is still on.
    let mut other = options().write(true).open(Target::folder(folder.clone())).unwrap();
    other.replace(0, &numbers(5)).unwrap();
    assert_eq!(kind(schunk.decompress_chunk::<i32>(0)), ErrorKind::Busy);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_of_the_index_are_no_change() {
    use std::os::unix::fs::PermissionsExt;
    let (_folder, path) = folder();
    drop(filled(Place::Directory, &path, &CParams::default(), &model(1)));
    let reader = SChunk::open(&path).unwrap();
    fs::set_permissions(path.join(INDEX), fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(path.join(INDEX), path.with_file_name("backup")).unwrap();
    assert_holds(&reader, &model(1), "with a link");
}

/// A file that states a size that no index has. Zeros follow its content.
#[derive(Debug)]
struct Endless(Vec<u8>);

impl ReadAt for Endless {
    fn size(&self) -> io::Result<u64> {
        Ok(1 << 50)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let content = usize::try_from(offset).ok().and_then(|start| self.0.get(start..));
        let content = content.unwrap_or_default();
        let len = content.len().min(buffer.len());
        buffer[..len].copy_from_slice(&content[..len]);
        buffer[len..].fill(0);
        Ok(())
    }
}

#[derive(Debug)]
struct EndlessFolder(Memory);

impl Folder for EndlessFolder {
    type File = Endless;

    fn open(&self, name: &str) -> io::Result<Endless> {
        self.0.open(name).map(Endless)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }
}

impl FolderMut for EndlessFolder {
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        self.0.put(name, content, durable)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.remove(name)
    }
}

#[test]
fn an_index_of_an_impossible_size_is_refused() {
    let objects = Objects::default();
    let mut schunk = options().create(true).open(Target::folder(objects.clone())).unwrap();
    schunk.append(&numbers(0)).unwrap();
    let opened = OpenOptions::new().open(Target::folder(EndlessFolder(objects.files())));
    let error = opened.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData, "{error}");
    assert!(error.to_string().contains("8589934592"), "{error}");
}
