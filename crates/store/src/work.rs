//! Who may change a store, and where its temporary files are.
//!
//! If a program dies, the operating system releases its locks, and the next handle that takes the lock removes the
//! temporary files.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind as IoKind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::blosc2::storage::{ReadAt, Storage, is_in_use};
use crate::blosc2::{Error, ErrorKind, Result};
use same_file::Handle;

use crate::folder::{Access, Folder};
use crate::key;

const CLAIM: &str = "open a store for changing";

/// The lock of a store in a directory: that of its frame `embed.b2e`. Handles of Python with `locking=True` take it for
/// each access.
#[derive(Debug)]
pub(crate) struct Claim {
    lock: File,
}

impl Claim {
    /// Takes the lock, or fails at once.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: another handle or program has the lock;
    /// - [`ErrorKind::Unsupported`]: the lock file is a link or has several names, or the file system has no locks;
    /// - [`ErrorKind::Io`]: it cannot be opened or locked.
    pub(crate) fn take(folder: &Folder) -> Result<Self> {
        let path = folder.path().join(key::LOCK);
        let lock =
            folder.file(key::LOCK, Access::OpenOrCreate).map_err(|error| failed(error, &path))?;
        if has_other_names(&lock) {
            let detail = "the lock file has several names (hard links)";
            return Err(Error::new(ErrorKind::Unsupported, CLAIM, detail).at(&path));
        }
        // A lock file that was replaced meanwhile does not exclude the others.
        if !lock_at_once(&lock).map_err(|error| failed(error, &path))? || !is_at(&lock, &path) {
            return Err(busy().at(folder.path()));
        }
        Ok(Self { lock })
    }

    /// Increments the counter by which handles that lock the frame recognise that the store has changed.
    pub(crate) fn count(&mut self) -> io::Result<()> {
        const COUNTER: u64 = 8;
        let mut bytes = [0; 8];
        let found = match self.lock.read_exact_at(COUNTER, &mut bytes) {
            Ok(()) => u64::from_ne_bytes(bytes),
            Err(error) if error.kind() == IoKind::UnexpectedEof => 0,
            Err(error) => return Err(error),
        };
        self.lock.write_all_at(COUNTER, &found.wrapping_add(1).to_ne_bytes())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // A child process that another thread is starting can have a copy of the descriptor.
        let _ = self.lock.unlock();
    }
}

/// Whether a file has other names (hard links), on systems that report it: a change would change them too.
pub(crate) fn has_other_names(file: &File) -> bool {
    #[cfg(unix)]
    let has =
        file.metadata().is_ok_and(|metadata| std::os::unix::fs::MetadataExt::nlink(&metadata) > 1);
    #[cfg(not(unix))]
    let has = {
        let _ = file;
        false
    };
    has
}

/// A private directory for temporary files next to a store, `NAME.b2work`. While it exists, its lock keeps others from
/// using it. It is removed when this value is dropped, or by the next [`Work`] if the program dies.
#[derive(Debug)]
pub(crate) struct Work {
    path: PathBuf,
    /// Taken before the directory is removed.
    lock: Option<File>,
    /// The number of temporary names.
    names: AtomicU64,
}

/// The name of the lock in the directory.
const LOCK: &str = "lock";

impl Work {
    /// Creates the directory next to `target`, which need not exist.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: another handle or program uses the directory, because it changes or creates the same
    ///   store;
    /// - [`ErrorKind::InvalidArgument`]: `target` has no file name;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be created, or is left over and cannot be removed.
    pub(crate) fn beside(target: &Path) -> Result<Self> {
        let Some(path) = path_beside(target) else {
            let detail = "the path has no file name";
            return Err(Error::new(ErrorKind::InvalidArgument, CLAIM, detail).at(target));
        };
        Self::at(path).map_err(|error| error.at(target))
    }

    /// Removes what a program that died has left next to `target`. Nothing happens if the directory is in use.
    pub(crate) fn clean_beside(target: &Path) {
        if let Some(path) = path_beside(target).filter(|path| path.symlink_metadata().is_ok()) {
            drop(Self::at(path));
        }
    }

    /// Creates the directory inside a store, if the directory above the store cannot contain it.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the directory contains files of keys;
    /// - the errors of [`beside`](Self::beside).
    pub(crate) fn inside(store: &Folder) -> Result<Self> {
        let path = store.path().join(key::WORK);
        if has_entries(store).map_err(|error| failed(error, &path))? {
            let detail = "the folder for temporary files contains entries of the store";
            return Err(Error::new(ErrorKind::AlreadyExists, CLAIM, detail).at(path));
        }
        Self::at(path)
    }

    /// Removes what a program that died has left inside a store, but no file that can be that of a key.
    pub(crate) fn clean_inside(store: &Folder) {
        let path = store.path().join(key::WORK);
        if path.symlink_metadata().is_ok() && has_entries(store).is_ok_and(|has| !has) {
            drop(Self::at(path));
        }
    }

    fn at(path: PathBuf) -> Result<Self> {
        const TRIES: usize = 100;
        let mut fault = None;
        for _ in 0..TRIES {
            match Self::try_at(&path) {
                Ok(work) => return Ok(work),
                // Another one has just removed the directory or the lock.
                Err(error) if is_passing(&error) => fault = Some(error),
                Err(error) if error.kind() == IoKind::WouldBlock => return Err(busy()),
                Err(error) => return Err(failed(error, &path)),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Err(fault.map_or_else(busy, |error| failed(error, &path)))
    }

    fn try_at(path: &Path) -> io::Result<Self> {
        let is_new = match private().create(path) {
            Ok(()) => true,
            Err(error) if error.kind() == IoKind::AlreadyExists => false,
            Err(error) => return Err(error),
        };
        if !path.symlink_metadata()?.is_dir() {
            let detail = "a file or link has the name of the folder for temporary files";
            return Err(io::Error::new(IoKind::NotADirectory, detail));
        }
        let folder = Folder::open(path)?;
        // A program that died may have left an empty directory. Anything else without a lock is not ours.
        if !is_new && !folder.has_file(LOCK) && fs::read_dir(path)?.next().is_some() {
            let detail = "a folder that is not for temporary files has the name of such a folder";
            return Err(io::Error::new(IoKind::AlreadyExists, detail));
        }
        let lock = folder.file(LOCK, Access::OpenOrCreate);
        let lock = lock.inspect_err(|_| {
            if is_new {
                let _ = fs::remove_dir(path);
            }
        })?;
        if !lock_at_once(&lock)? {
            return Err(IoKind::WouldBlock.into());
        }
        // Another one may have removed the directory before the lock was taken.
        if !is_at(&lock, &path.join(LOCK)) {
            return Err(IoKind::NotFound.into());
        }
        let mut work = Self { path: path.to_owned(), lock: Some(lock), names: AtomicU64::new(0) };
        if is_new {
            return Ok(work);
        }
        // What is left over is not used, because it may have the permissions and the owner of somebody else.
        work.clear()?;
        Err(IoKind::NotFound.into())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn folder(&self) -> io::Result<Folder> {
        Folder::open(&self.path)
    }

    /// A new name in the directory: tables and their store share it, and can be changed by several threads.
    pub(crate) fn new_name(&self) -> String {
        format!("new{}", self.names.fetch_add(1, Ordering::Relaxed))
    }

    /// Removes the directory: the lock last, while it is held.
    fn clear(&mut self) -> io::Result<()> {
        let Some(lock) = self.lock.take() else { return Ok(()) };
        for entry in fs::read_dir(&self.path)? {
            let entry = entry?;
            if entry.file_name() == LOCK {
                continue;
            }
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
        fs::remove_file(self.path.join(LOCK))?;
        // A child process that another thread is starting can have a copy of the descriptor.
        let _ = lock.unlock();
        drop(lock);
        match fs::remove_dir(&self.path) {
            // Another one already uses the directory, or has removed it.
            Err(error) if !matches!(error.kind(), IoKind::DirectoryNotEmpty | IoKind::NotFound) => {
                Err(error)
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        // The next one removes what could not be removed.
        let _ = self.clear();
    }
}

/// Whether the directory for temporary files inside a store contains files that can be those of keys.
fn has_entries(store: &Folder) -> io::Result<bool> {
    let folder = match store.folder(key::WORK) {
        Err(error) if error.kind() == IoKind::NotFound => return Ok(false),
        folder => folder?,
    };
    let is_internal = |name: String| key::is_internal(&format!("{}/{name}", key::WORK));
    Ok(!folder.files()?.iter().all(|file| file.text().is_some_and(is_internal)))
}

/// The path of the directory next to a store.
fn path_beside(target: &Path) -> Option<PathBuf> {
    let mut name = OsString::from(target.file_name()?);
    name.push(".b2work");
    Some(target.with_file_name(name))
}

/// Creates directories that only this user can open.
fn private() -> DirBuilder {
    #[cfg(unix)]
    {
        let mut builder = DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder
    }
    #[cfg(not(unix))]
    DirBuilder::new()
}

/// Whether an error can be the effect of another one that creates or removes the directory at this moment.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.kind(), IoKind::NotFound | IoKind::AlreadyExists) || is_in_use(error)
}

/// Whether `file` still has this path.
fn is_at(file: &File, path: &Path) -> bool {
    let opened = file.try_clone().and_then(Handle::from_file);
    opened.is_ok_and(|opened| Handle::from_path(path).is_ok_and(|found| found == opened))
}

/// Takes an exclusive lock, or returns `false` if somebody else has it.
fn lock_at_once(file: &File) -> io::Result<bool> {
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) if error.kind() == IoKind::Interrupted => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

fn failed(error: io::Error, path: &Path) -> Error {
    if error.kind() == IoKind::Unsupported {
        return Error::new(ErrorKind::Unsupported, CLAIM, error).at(path);
    }
    Error::of_io(CLAIM, error).at(path)
}

fn busy() -> Error {
    let detail = "another handle or another program has it open for changing: only one can change a store at a time";
    Error::new(ErrorKind::Busy, CLAIM, detail)
}
