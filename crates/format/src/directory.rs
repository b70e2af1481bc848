//! Directories (sparse frames): an index file and one file per chunk.
//!
//! The index file `chunks.b2frame` is a frame without its chunks: it has a header, an index and a
//! trailer. The index contains the *file number* of each chunk. The name of a chunk file is its
//! file number in hexadecimal notation: the file `0000001A.chunk` contains the chunk with the file
//! number 26. If locking is enabled, the directory also contains the lock file `.b2lock`.
//!
//! ```
//! use blosc2_format::frame::{Frame, Writer};
//! use blosc2_format::{Limits, Options, chunk, directory};
//!
//! let files = directory::Memory::default();
//! let mut writer = Writer::new_directory(files, chunk::Params::default(), &[])?;
//! writer.push(&[1; 800])?;
//! writer.push(&[2; 800])?;
//! let files = writer.finish()?;
//! assert_eq!(files.0.len(), 3);
//! assert!(directory::check(&files, &Options::default())?.is_good());
//!
//! let mut frame = Frame::open_directory(files, &Limits::default())?;
//! let mut data = Vec::new();
//! frame.decode_chunk(1, &mut data)?;
//! assert_eq!(data, [2; 800]);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::frame::check::{ChunkChecker, check_vlmetalayers, limited, map};
use crate::frame::index::Depth;
use crate::frame::offset::NOWHERE;
use crate::frame::parts::Parts;
use crate::frame::{Layout, rules};
use crate::read_at::DEFAULT_REQUEST_COST;
use crate::report::{Checker, Options, Part, Report, Rule};
use crate::{Error, ReadAt};

/// The name of the index file.
pub const INDEX: &str = "chunks.b2frame";
/// The name of the lock file that C-Blosc2 creates when locking is enabled.
pub const LOCK: &str = ".b2lock";

const SECTION: &str = "Directory";
static NO_INDEX: Rule = Rule::error("directory.no_index", "index file", SECTION);
pub(crate) static MISSING: Rule = Rule::error("directory.missing", "chunk file", SECTION);
static LONGER: Rule = Rule::warning("directory.longer", "length of a chunk file", SECTION);
static UNUSED: Rule = Rule::warning("directory.unused", "chunk file", SECTION);
static EMPTIED: Rule = Rule::note("directory.emptied", "chunk file", SECTION);
static STRANGER: Rule = Rule::note("directory.stranger", "file", SECTION);
/// The rules of directories.
pub(crate) const RULES: &[&Rule] = &[&NO_INDEX, &MISSING, &LONGER, &UNUSED, &EMPTIED, &STRANGER];

/// Read access to the files of a directory (sparse frame), such as objects in an object store.
///
/// A *custom directory* is a custom storage backend for directories: a value of a user-defined type
/// that implements this trait. The implementation opens files by their names and decides where the
/// files are stored.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::directory::{Folder, INDEX, Memory};
/// use blosc2_format::frame::Writer;
///
/// let mut writer = Writer::new_directory(Memory::default(), Params::default(), &[])?;
/// writer.push(&[1; 800])?;
/// let files = writer.finish()?;
/// assert_eq!(files.names()?, ["00000000.chunk", INDEX]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
pub trait Folder: Debug + Send + Sync {
    /// The type of an open file.
    type File: ReadAt;

    /// Opens the file with this name.
    ///
    /// # Errors
    /// - [`io::ErrorKind::NotFound`]: there is no such file;
    /// - any other I/O error of the backend.
    fn open(&self, name: &str) -> io::Result<Self::File>;

    /// Returns the names of all files, in no specific order.
    ///
    /// # Errors
    /// The I/O errors of the backend.
    fn names(&self) -> io::Result<Vec<String>>;

    /// Returns the version of a file: a text that differs for each content that the file has had, such as an entity tag.
    /// The default implementation returns `None`: the backend does not know the version.
    ///
    /// A writer can store another chunk in the file of a removed chunk. To detect this, readers of frames, arrays and
    /// super-chunks compare the version of the index file with that of the index that they have read, after they have
    /// opened a chunk file. Without versions, they can return the items of another chunk if another program changes the
    /// frame.
    ///
    /// # Errors
    /// - [`io::ErrorKind::NotFound`]: there is no such file;
    /// - any other I/O error of the backend.
    fn version(&self, name: &str) -> io::Result<Option<String>> {
        let _ = name;
        Ok(None)
    }

    /// Returns the cost of a request; see [`ReadAt::request_cost`].
    ///
    /// If the cost is higher than the default, the readers of arrays and super-chunks open and read
    /// several files at the same time.
    fn request_cost(&self) -> u64 {
        DEFAULT_REQUEST_COST
    }
}

/// Write access to the files of a directory (sparse frame), such as objects in an object store.
///
/// A *custom directory* is a custom storage backend for directories: a value of a user-defined type
/// that implements this trait. The implementation opens, writes and removes files by their names
/// and decides where the files are stored.
///
/// A change of a frame writes the new chunk files first and the index file last. The change is
/// atomic under two conditions: replacing a file is atomic, and files become visible in the order
/// in which they are written.
///
/// ```
/// use blosc2_format::directory::{Folder, FolderMut, Memory};
///
/// let mut folder = Memory::default();
/// folder.put("00000000.chunk", b"old", false)?;
/// folder.put("00000000.chunk", b"new", true)?;
/// assert_eq!(folder.open("00000000.chunk")?, b"new");
/// folder.remove("00000000.chunk")?;
/// assert!(folder.names()?.is_empty());
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait FolderMut: Folder {
    /// Creates the file with this name, or replaces it atomically: a concurrent reader finds either
    /// the old content or the new content.
    ///
    /// If `durable` is set, the file and its directory entry are synced to disk before the function
    /// returns.
    ///
    /// # Errors
    /// The I/O errors of the backend. After an error the old file is unchanged. Exception: if only
    /// syncing the directory entry failed, the new file has already replaced the old file.
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()>;

    /// Removes the file with this name.
    ///
    /// # Errors
    /// - [`io::ErrorKind::NotFound`]: there is no such file;
    /// - any other I/O error of the backend.
    fn remove(&mut self, name: &str) -> io::Result<()>;

    /// Syncs all written files to disk. The default implementation does nothing.
    ///
    /// # Errors
    /// The I/O errors of the backend.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A directory in the file system, at a path.
///
/// ```
/// use blosc2_format::directory::{Disk, Folder, FolderMut};
///
/// let path = std::env::temp_dir().join(format!("blosc2-format-disk-{}", std::process::id()));
/// let mut folder = Disk(path.clone());
/// folder.put("00000000.chunk", b"content", false)?;
/// assert_eq!(folder.names()?, ["00000000.chunk"]);
/// # std::fs::remove_dir_all(path)?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Disk(pub PathBuf);

impl Folder for Disk {
    type File = File;

    /// Fails with [`ErrorKind::InvalidData`] if the entry is not a regular file: opening a pipe
    /// would block.
    fn open(&self, name: &str) -> io::Result<File> {
        let path = self.0.join(name);
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::new(ErrorKind::InvalidData, "not a regular file"));
        }
        File::open(path)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let name =
            |entry: io::Result<fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
        fs::read_dir(&self.0)?.map(name).collect()
    }

    fn version(&self, name: &str) -> io::Result<Option<String>> {
        fs::metadata(self.0.join(name)).map(|metadata| Some(file_version(&metadata)))
    }
}

/// Returns the [version](Folder::version) of a file in the file system: its identity, its length and the time of its
/// last modification.
///
/// A change that keeps all of them is not detected: one within the resolution of the times of the file system, usually
/// some milliseconds, that overwrites the file in place. A change of the permissions or links of the file keeps its
/// version, because its content is the same.
pub fn file_version(metadata: &fs::Metadata) -> String {
    #[cfg(unix)]
    let identity = {
        use std::os::unix::fs::MetadataExt;
        // Not `ctime`, which also changes with the permissions and links.
        (metadata.dev(), metadata.ino())
    };
    #[cfg(not(unix))]
    let identity = metadata.created().ok();
    format!("{:?}", (metadata.len(), metadata.modified().ok(), identity))
}

impl FolderMut for Disk {
    /// Creates the directory if it does not exist.
    fn put(&mut self, name: &str, content: &[u8], durable: bool) -> io::Result<()> {
        let path = self.0.join(name);
        let write = |mut file: File| {
            file.write_all(content)?;
            if durable { file.sync_all() } else { Ok(()) }
        };
        let made = File::create_new(&path).or_else(|error| {
            if error.kind() != ErrorKind::NotFound {
                return Err(error);
            }
            fs::create_dir_all(&self.0)?;
            File::create_new(&path)
        });
        match made {
            // No index refers to the file yet.
            Ok(file) => write(file).inspect_err(|_| drop(fs::remove_file(&path)))?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let new = self.0.join(format!("{name}.new"));
                let replaced = File::create(&new).and_then(write);
                let replaced = replaced.and_then(|()| replace_file(&new, &path));
                replaced.inspect_err(|_| drop(fs::remove_file(&new)))?;
            }
            Err(error) => return Err(error),
        }
        // Only some systems can sync a directory.
        if durable && cfg!(unix) { File::open(&self.0)?.sync_all() } else { Ok(()) }
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        fs::remove_file(self.0.join(name))
    }

    fn sync(&mut self) -> io::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            let path = entry?.path();
            if path.is_file() {
                // Windows syncs only files that are open for writing; on other systems, a file may be read-only.
                File::options().read(true).write(cfg!(windows)).open(path)?.sync_all()?;
            }
        }
        if cfg!(unix) { File::open(&self.0)?.sync_all() } else { Ok(()) }
    }
}

/// Renames a file over another one.
///
/// Windows may refuse this while another program, such as a reader or a virus scanner, has one of the files open. Most
/// programs close the file soon. Therefore the rename is retried for at most 0.5 s, which is less than the time that
/// other threads wait for a change.
///
/// # Errors
/// The errors of [`fs::rename`]. After an error, both files are unchanged.
pub fn replace_file(new: &Path, replaced: &Path) -> io::Result<()> {
    let start = Instant::now();
    loop {
        let renamed = fs::rename(new, replaced);
        if !renamed.as_ref().is_err_and(is_in_use) || start.elapsed() > Duration::from_millis(500) {
            return renamed;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

/// Renames a directory. An empty directory at the new path is replaced, and nothing else.
///
/// # Errors
/// [`ErrorKind::DirectoryNotEmpty`], [`ErrorKind::NotADirectory`]: the new path exists.
pub fn rename_directory(old: &Path, new: &Path) -> io::Result<()> {
    // On Windows, a directory may replace a file.
    if cfg!(windows) && new.symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        return Err(ErrorKind::NotADirectory.into());
    }
    fs::rename(old, new).map_err(|error| match error.kind() {
        // The error of Windows for a directory that exists.
        ErrorKind::PermissionDenied if cfg!(windows) && new.is_dir() => {
            ErrorKind::DirectoryNotEmpty.into()
        }
        _ => error,
    })
}

/// Returns whether an error can mean that another program has the file open. Only Windows has such errors.
pub fn is_in_use(error: &io::Error) -> bool {
    const SHARING_VIOLATION: i32 = 32;
    let is_shared = error.raw_os_error() == Some(SHARING_VIOLATION);
    cfg!(windows) && (is_shared || error.kind() == ErrorKind::PermissionDenied)
}

/// An in-memory directory: a map from file names to contents.
///
/// ```
/// use blosc2_format::directory::{Folder, FolderMut, Memory};
///
/// let mut folder = Memory::default();
/// folder.put("00000000.chunk", b"content", false)?;
/// assert_eq!(folder.0["00000000.chunk"], b"content");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory(pub BTreeMap<String, Vec<u8>>);

impl Folder for Memory {
    type File = Vec<u8>;

    fn open(&self, name: &str) -> io::Result<Vec<u8>> {
        self.0.get(name).cloned().ok_or_else(|| ErrorKind::NotFound.into())
    }

    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }
}

impl FolderMut for Memory {
    fn put(&mut self, name: &str, content: &[u8], _: bool) -> io::Result<()> {
        self.0.insert(name.into(), content.into());
        Ok(())
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.0.remove(name).map(drop).ok_or_else(|| ErrorKind::NotFound.into())
    }
}

/// Returns the name of the chunk file with the file number `number`: eight upper-case hexadecimal
/// digits and `.chunk`.
pub fn chunk_name(number: u64) -> String {
    format!("{number:08X}.chunk")
}

/// Returns the file number of a chunk file, or `None` for other names.
pub(crate) fn chunk_number(name: &str) -> Option<u64> {
    let number = u64::from_str_radix(name.strip_suffix(".chunk")?, 16).ok()?;
    (chunk_name(number) == name).then_some(number)
}

/// Checks a directory: its index file, its chunk files, and other files in it.
///
/// # Errors
/// [`Error::Io`]: listing the files or reading one fails.
pub fn check<F: Folder>(folder: &F, options: &Options) -> Result<Report, Error> {
    let mut report = Report::new();
    check_into(folder, options, &mut Checker::new(&mut report))?;
    Ok(report)
}

pub(crate) fn check_into<F: Folder>(
    folder: &F,
    options: &Options,
    checker: &mut Checker<'_>,
) -> Result<(), Error> {
    let mut names: BTreeSet<String> = folder.names()?.into_iter().collect();
    let index = match folder.open(INDEX) {
        Ok(index) => index,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            checker.in_file(INDEX, Part::Whole).found(&NO_INDEX, 0, 0, INDEX, "no such file");
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    names.remove(INDEX);
    names.remove(LOCK);
    let mut in_index = checker.in_file(INDEX, Part::Whole);
    let found =
        Parts::find(&index, Layout::Directory, &options.limits, Depth::Whole, &mut in_index);
    let Some(parts) = limited(found, &mut in_index)?.flatten() else { return Ok(()) };
    let mut chunks = ChunkChecker::new(&parts, options, &mut in_index);
    check_vlmetalayers(&parts, options, &mut in_index);
    if options.map {
        map(&parts, &mut in_index);
    }
    let mut last = None;
    for (place, number) in parts.outline.offsets.by_place() {
        if place == NOWHERE {
            // The check of the index has already reported it.
            chunks.incomplete = true;
            continue;
        }
        let name = chunk_name(place);
        let mut in_file = checker.in_file(&name, Part::Chunk(number));
        if last.replace(place) == Some(place) {
            let expected = "a separate file";
            in_file.found(&rules::CHUNK_OVERLAP, 0, 0, expected, "the file of another chunk");
            chunks.incomplete = true;
            continue;
        }
        names.remove(&name);
        let file = match folder.open(&name) {
            Ok(file) => file,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                let expected = format_args!("{name}").to_string();
                in_file.found(&MISSING, 0, 0, expected, "no such file");
                chunks.incomplete = true;
                continue;
            }
            Err(error) => return Err(error.into()),
        };
        let size = file.size()?;
        let Some(len) = chunks.check(number, &file, 0, size, &mut in_file)? else { continue };
        if len < size {
            in_file.found(&LONGER, len, size - len, len, size);
        }
        if options.map {
            in_file.region(Part::Chunk(number), 0, len);
        }
    }
    chunks.finish(&mut checker.in_file(INDEX, Part::Whole));
    for name in names {
        check_unused(folder, &name, &mut checker.in_file(&name, Part::Whole))?;
    }
    Ok(())
}

/// Checks a file that the index does not refer to.
fn check_unused<F: Folder>(folder: &F, name: &str, checker: &mut Checker<'_>) -> Result<(), Error> {
    if chunk_number(name).is_none() {
        checker.found(&STRANGER, 0, 0, "index, chunks and lock", "another file");
        return Ok(());
    }
    match folder.open(name)?.size()? {
        // The file of a chunk that a special offset has replaced.
        0 => checker.found(&EMPTIED, 0, 0, "only chunks of the index", "an empty file"),
        size => checker.found(&UNUSED, 0, size, "only chunks of the index", "another chunk"),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::{Params, Special};
    use crate::frame::{Frame, Metalayer, Writer};
    use crate::{Limits, chunk};

    /// Two chunks with data and one of zeros between them.
    fn sample() -> Memory {
        let layer = Metalayer { name: "one".into(), content: b"first".to_vec() };
        let mut writer =
            Writer::new_directory(Memory::default(), Params::default(), &[layer]).unwrap();
        for byte in [1, 0, 2] {
            writer.push(&[byte; 800]).unwrap();
        }
        writer.add_vlmetalayer("two", b"second").unwrap();
        writer.finish().unwrap()
    }

    fn found(files: &Memory) -> Vec<(&'static str, String)> {
        let report = check(files, &Options { content: true, ..Options::default() }).unwrap();
        let name = |finding: &crate::Finding| finding.file.as_deref().unwrap().to_owned();
        report.findings.iter().map(|finding| (finding.rule.id, name(finding))).collect()
    }

    /// The findings in this file after `change`.
    #[track_caller]
    fn assert_found(id: &'static str, file: &str, change: impl FnOnce(&mut Memory)) {
        let mut files = sample();
        change(&mut files);
        assert_eq!(found(&files), [(id, file.to_owned())]);
    }

    #[test]
    fn what_is_written_is_right_and_read() {
        let files = sample();
        let names: Vec<_> = files.names().unwrap();
        assert_eq!(names, ["00000000.chunk", "00000001.chunk", INDEX]);
        assert_eq!(found(&files), []);
        let mut frame = Frame::open_directory(files.clone(), &Limits::default()).unwrap();
        assert_eq!(frame.metalayer("one"), Some(&b"first"[..]));
        assert_eq!(frame.vlmetalayer("two").unwrap().unwrap(), b"second");
        assert!(frame.chunk(2).unwrap() == files.0["00000001.chunk"]);
        let mut data = Vec::new();
        for (number, byte) in [(0, 1), (1, 0), (2, 2)] {
            frame.decode_chunk(number, &mut data).unwrap();
            assert_eq!(data, [byte; 800]);
        }
        // A reader of one layout rejects the other layout.
        let index = files.0[INDEX].clone();
        assert!(matches!(Frame::open(index, &Limits::default()), Err(Error::Format(_))));
        let mut files = Memory::default();
        let mut writer =
            Writer::new(std::io::Cursor::new(Vec::new()), Params::default(), &[]).unwrap();
        writer.push(&[1; 800]).unwrap();
        files.0.insert(INDEX.into(), writer.finish().unwrap().into_inner());
        assert_eq!(found(&files), [("frame.type", INDEX.to_owned())]);
        assert!(Frame::open_directory(files, &Limits::default()).is_err());
    }

    #[test]
    fn each_rule_names_its_file() {
        let chunk = "00000001.chunk";
        assert_found("directory.no_index", INDEX, |files| drop(files.0.remove(INDEX)));
        assert_found("directory.missing", chunk, |files| drop(files.0.remove(chunk)));
        assert_found("directory.longer", chunk, |files| {
            files.0.get_mut(chunk).unwrap().push(0);
        });
        assert_found("frame.chunk.place", chunk, |files| {
            files.0.get_mut(chunk).unwrap().pop();
        });
        assert_found("directory.unused", "0000001A.chunk", |files| {
            files.0.insert("0000001A.chunk".into(), vec![1]);
        });
        assert_found("directory.emptied", "00000002.chunk", |files| {
            files.0.insert("00000002.chunk".into(), vec![]);
        });
        for stranger in ["notes", "0000001a.chunk", "1A.chunk", "000000000.chunk", "+0000001.chunk"]
        {
            assert_found("directory.stranger", stranger, |files| {
                files.0.insert(stranger.into(), vec![1]);
            });
        }
        let mut locked = sample();
        locked.0.insert(LOCK.into(), vec![0; 16]);
        assert_eq!(found(&locked), []);
        // Not the sizes that the header sums up.
        assert_found("frame.cbytes_sum", INDEX, |files| files.0.get_mut(INDEX).unwrap()[0x2e] ^= 1);
    }

    #[test]
    fn a_missing_chunk_is_an_error_of_the_format() {
        let mut files = sample();
        files.0.remove("00000001.chunk");
        let mut frame = Frame::open_directory(files, &Limits::default()).unwrap();
        let mut data = Vec::new();
        frame.decode_chunk(0, &mut data).unwrap();
        let error = frame.decode_chunk(2, &mut data).unwrap_err();
        assert!(matches!(&error, Error::Format(error) if error.what == MISSING.what), "{error}");
        assert!(matches!(
            Frame::open_directory(Memory::default(), &Limits::default()),
            Err(Error::Io(error)) if error.kind() == ErrorKind::NotFound
        ));
    }

    #[test]
    fn a_frame_that_is_there_is_not_written_over() {
        let error = Writer::new_directory(sample(), Params::default(), &[]).unwrap_err();
        assert!(matches!(error, Error::Io(error) if error.kind() == ErrorKind::AlreadyExists));
    }

    #[test]
    fn chunks_of_one_value_are_files_where_sizes_vary() {
        let mut writer = Writer::new_directory(Memory::default(), Params::default(), &[]).unwrap();
        let lengths = [80, 160, 80];
        for len in lengths {
            writer.push(&vec![0; len]).unwrap();
        }
        let files = writer.finish().unwrap();
        assert_eq!(files.0.len(), 4);
        assert_eq!(found(&files), []);
        let frame = Frame::open_directory(files, &Limits::default()).unwrap();
        for (number, len) in (0..).zip(lengths) {
            assert_eq!(frame.chunk_nbytes(number).unwrap(), len as u64);
            let chunk = chunk::Header::parse(&frame.chunk(number).unwrap()).unwrap();
            assert_eq!(chunk.special, Some(Special::Value));
        }
    }
}
