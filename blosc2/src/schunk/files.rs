//! Creation of files and directories under a temporary name; they are renamed when they are complete.

use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{io, process};

use blosc2_format::directory::{Disk, FolderMut, rename_directory, replace_file};

use crate::gate::{Claim, FileId, Gate};
use crate::{Error, ErrorKind, Result};

const DOING: &str = "create a file";

/// Creates a file or a directory at `path`, which appears there when it is complete.
///
/// `write` creates it at the temporary path that it receives. The result is synced to disk, and then renamed to `path` in
/// one step. If `write` fails, if the program dies or after a power failure, `path` contains either what it contained
/// before, or the complete result. When this function has returned, the result is on disk.
///
/// With `replace`, a new file replaces an existing file, and gets its permissions before it appears. If `path` is a
/// symbolic link, its target is replaced. Programs that have opened the old file continue to use it. If the old file is a
/// frame with a lock file, this function waits until no other program has locked the frame. A directory is never
/// replaced.
///
/// The temporary path is in a new directory in `folder`, or next to `path` if `folder` is `None`. On Unix, only the owner
/// can enter this directory. It remains if the program dies; its name starts with [`temporary_prefix`]. `folder` must be
/// on the same file system as `path`. If `write` creates a directory, the files directly in it are synced; `write` must
/// sync the files in its subdirectories.
///
/// ```
/// use blosc2::storage::create_file;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("notes.txt");
/// create_file(&path, false, None, |temporary| Ok(std::fs::write(temporary, "complete")?))?;
/// assert_eq!(std::fs::read_to_string(&path)?, "complete");
/// assert!(create_file(&path, false, None, |_| Ok(())).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// - [`ErrorKind::AlreadyExists`]: a file or directory already exists at `path`, and `replace` is not set;
/// - [`ErrorKind::InvalidArgument`]: `path` has no file name; or `replace` is set, and `path` exists and is not a regular
///   file;
/// - [`ErrorKind::Busy`]: this program has the existing file open for writing, or another thread is replacing the file; or
///   another program has locked the frame, and may be waiting for a closure of this program;
/// - [`ErrorKind::NotFound`]: the parent directory or `folder` does not exist, or `write` has created nothing;
/// - [`ErrorKind::Io`]: the result cannot be written, synced or renamed;
/// - the error that `write` returned.
pub fn create_file(
    path: &Path,
    replace: bool,
    folder: Option<&Path>,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    if !replace {
        return put(path, folder, write, Existing::Kept);
    }
    // The target of a link is replaced, not the link.
    let real = target(path).map_err(|error| Error::of_io(DOING, error).at(path))?;
    put(&real, folder, write, Existing::Replaced).map_err(|error| error.at(path))
}

/// Returns the path to which a symbolic link leads, even if nothing exists at that path. Returns any other path in its
/// canonical form, or unchanged if nothing exists at the path.
fn target(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    loop {
        match fs::canonicalize(&path) {
            // A link to a path that does not exist. Links in a cycle are another error.
            Err(error) if error.kind() == io::ErrorKind::NotFound && path.is_symlink() => {
                path = parent(&path).join(fs::read_link(&path)?);
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(path),
            found => return found,
        }
    }
}

/// Returns the prefix of the names of all temporary directories in which this process creates new files.
///
/// This crate writes a new file or directory in a temporary directory next to its path, and renames it when it is
/// complete. If a signal ends the process before the rename, the temporary directory remains. A signal handler can
/// remove the temporary directories of this process. These directories are next to the new files, and their names start
/// with this prefix. The prefix contains the process id and a random number.
///
/// ```
/// use blosc2::storage::temporary_prefix;
///
/// assert!(temporary_prefix().starts_with(&format!(".blosc2-{}-", std::process::id())));
/// ```
pub fn temporary_prefix() -> &'static str {
    static PREFIX: LazyLock<String> = LazyLock::new(|| {
        // Process ids repeat in containers that share a directory. The keys of a `RandomState` are random.
        let random = RandomState::new().build_hasher().finish() as u32;
        format!(".blosc2-{}-{random:08x}-", process::id())
    });
    &PREFIX
}

/// Creates a directory for a temporary file, which only the owner can enter.
fn temporary_in(folder: &Path) -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(temporary_prefix()).tempdir_in(folder)
}

/// The action for an existing file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Kept,
    Replaced,
    /// Replaced. The caller has already claimed the file.
    ReplacedByOwner,
}

fn put(
    path: &Path,
    folder: Option<&Path>,
    write: impl FnOnce(&Path) -> Result<()>,
    existing: Existing,
) -> Result<()> {
    let io = |error| Error::of_io(DOING, error).at(path);
    let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, DOING, detail);
    let Some(name) = path.file_name() else {
        return Err(invalid(format!("`{}` has no file name", path.display())));
    };
    let taken = path.symlink_metadata();
    if existing == Existing::Kept && taken.is_ok() {
        let detail = "a file or directory with this name already exists";
        return Err(Error::new(ErrorKind::AlreadyExists, DOING, detail).at(path));
    }
    let mut permissions = None;
    if let Ok(metadata) = taken {
        if metadata.is_dir() {
            let detail = "a directory cannot be replaced: remove it first".to_owned();
            return Err(invalid(detail).at(path));
        }
        if !metadata.is_file() {
            // For example a device or a named pipe.
            return Err(invalid("what exists there is not a regular file".to_owned()).at(path));
        }
        permissions = Some(metadata.permissions());
    }
    let parent = parent(path);
    fs::metadata(parent).map_err(io)?;
    let claimed = || match existing {
        Existing::Replaced => gate_to_replace(path),
        Existing::Kept | Existing::ReplacedByOwner => Ok(None),
    };
    let mut gate = claimed()?;
    // The temporary file is in a new directory, so that its name is not in use.
    let folder = temporary_in(folder.unwrap_or(parent)).map_err(io)?;
    let temporary = folder.path().join(name);
    write(&temporary).map_err(|error| error.at(path))?;
    if temporary.is_dir() {
        Disk(temporary.clone()).sync().map_err(io)?;
        // Renaming a directory replaces only an empty directory. Therefore the path then contains either the complete
        // frame or no part of it.
        rename_directory(&temporary, path).map_err(|error| {
            use io::ErrorKind::{AlreadyExists, DirectoryNotEmpty, NotADirectory};
            let is_taken = matches!(error.kind(), DirectoryNotEmpty | NotADirectory);
            io(if is_taken { AlreadyExists.into() } else { error })
        })?;
        return sync_folder(parent).map_err(io);
    }
    // Windows syncs only files that are open for writing; on other systems, the file may be read-only.
    let file = File::options().read(true).write(cfg!(windows)).open(&temporary).map_err(io)?;
    if let Some(permissions) = permissions {
        // A private file stays private.
        file.set_permissions(permissions).map_err(io)?;
    }
    file.sync_all().map_err(io)?;
    drop(file);
    let mut file = tempfile::TempPath::try_from_path(&temporary).map_err(io)?;
    loop {
        if existing == Existing::ReplacedByOwner {
            replace_file(&file, path).map_err(io)?;
            break;
        }
        let is_there = |gate: &Gate| FileId::of_path(path).is_ok_and(|found| found == *gate.id());
        // Another program may have created a file there in the meantime.
        gate = match gate.take().filter(is_there) {
            Some(gate) => Some(gate),
            None => claimed()?,
        };
        if let Some(gate) = &gate {
            let _lock = gate.replace()?;
            if is_there(gate) {
                // On Windows, `persist` would fail while another handle has opened the old file.
                replace_file(&file, path).map_err(io)?;
                break;
            }
            continue;
        }
        match file.persist_noclobber(path) {
            Ok(()) => break,
            Err(error)
                if existing == Existing::Replaced
                    && error.error.kind() == io::ErrorKind::AlreadyExists =>
            {
                file = error.path;
            }
            Err(error) => return Err(io(error.error)),
        }
    }
    sync_folder(parent).map_err(io)
}

/// Claims the file at `path`, if it exists. No handle of this program can then change the file while it is replaced.
fn gate_to_replace(path: &Path) -> Result<Option<Gate>> {
    match Gate::of_path(path, Claim::Write) {
        Ok(gate) => gate.with_lock_if_there(path, false).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Replaces the file or directory at `path` with a new one, which `write` writes under a temporary name. The old file
/// or directory is renamed to `kept`, which must not exist.
///
/// The caller has claimed `path`. A file is replaced atomically. For a directory, nothing exists at `path` for a short
/// time. The files with the names in `carried` are copied or linked from the old directory to the new one.
pub(super) fn replace(
    path: &Path,
    kept: &Path,
    carried: &[&str],
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let io = |error| Error::of_io(DOING, error).at(path);
    if kept.symlink_metadata().is_ok() {
        let detail = "the replaced file would be renamed to this path, which already exists";
        return Err(Error::new(ErrorKind::AlreadyExists, DOING, detail).at(kept));
    }
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_dir() {
        let mut is_kept = false;
        let write = |temporary: &Path| {
            write(temporary)?;
            keep(path, kept).map_err(io)?;
            is_kept = true;
            Ok(())
        };
        // The caller has claimed it.
        let replaced = put(path, None, write, Existing::ReplacedByOwner);
        if replaced.is_err() && is_kept {
            // The original name still exists.
            let _ = fs::remove_file(kept);
        }
        return replaced;
    }
    let parent = parent(path);
    let folder = temporary_in(parent).map_err(io)?;
    let temporary = folder.path().join("new");
    write(&temporary)?;
    for name in carried {
        if path.join(name).exists() {
            keep(&path.join(name), &temporary.join(name)).map_err(io)?;
        }
    }
    Disk(temporary.clone()).sync().map_err(io)?;
    rename_directory(path, kept).map_err(io)?;
    if let Err(error) = rename_directory(&temporary, path) {
        let _ = fs::rename(kept, path);
        return Err(io(error));
    }
    sync_folder(parent).map_err(io)
}

/// Creates a second hard link to a file, or copies the file if hard links are not supported.
fn keep(path: &Path, kept: &Path) -> io::Result<()> {
    match fs::hard_link(path, kept) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let mut copy = File::create_new(kept)?;
            let copied = File::open(path).and_then(|mut file| io::copy(&mut file, &mut copy));
            let copied = copied.and_then(|_| copy.sync_all());
            if copied.is_err() {
                let _ = fs::remove_file(kept);
            }
            copied
        }
        linked => linked,
    }
}

/// Returns the parent directory of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Syncs the names in a directory to disk, on systems that support it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Returns an absolute path, which does not depend on the working directory.
pub(super) fn absolute(path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "use a path", "it is empty"));
    }
    std::path::absolute(path)
        .map_err(|error| Error::of_io("find the current directory", error).at(path))
}
