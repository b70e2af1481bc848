//! Files and directories that appear when they are complete.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use blosc2_format::directory::{Disk, FolderMut};

use crate::gate::{Claim, FileId, Gate};
use crate::{Error, ErrorKind, Result};

const DOING: &str = "make a file";

/// Makes a file or a directory at `path` that `write` makes under a temporary name beside it. It gets its own
/// name when it is complete and on the device. With `replace` it takes the place of a file; otherwise what is at
/// `path` is left alone.
pub(crate) fn create(
    path: &Path,
    replace: bool,
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    if !replace {
        return put(path, write, Existing::Kept);
    }
    // What a link leads to is replaced, not the link.
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    put(&real, write, Existing::Replaced).map_err(|error| error.at(path))
}

/// What becomes of a file of the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Existing {
    Kept,
    Replaced,
    /// The same, by one who has claimed it.
    ReplacedByOwner,
}

fn put(path: &Path, write: impl FnOnce(&Path) -> Result<()>, existing: Existing) -> Result<()> {
    let io = |error| Error::from_io(DOING, path, error);
    let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, DOING, detail);
    let Some(name) = path.file_name() else {
        return Err(invalid(format!("`{}` names no file", path.display())));
    };
    let taken = path.symlink_metadata();
    if existing == Existing::Kept && taken.is_ok() {
        let detail = "there is something of that name already";
        return Err(Error::new(ErrorKind::AlreadyExists, DOING, detail).at(path));
    }
    if taken.is_ok_and(|metadata| metadata.is_dir()) {
        return Err(invalid("a directory is not replaced: remove it first".to_owned()).at(path));
    }
    let parent = parent(path);
    fs::metadata(parent).map_err(io)?;
    let claimed = || match existing {
        Existing::Replaced => gate_to_replace(path),
        Existing::Kept | Existing::ReplacedByOwner => Ok(None),
    };
    let mut gate = claimed()?;
    // A folder of its own, so that nothing of the temporary name is there.
    let folder = tempfile::Builder::new().prefix(".blosc2-").tempdir_in(parent).map_err(io)?;
    let temporary = folder.path().join(name);
    write(&temporary).map_err(|error| error.at(path))?;
    if temporary.is_dir() {
        Disk(temporary.clone()).sync().map_err(io)?;
        // An empty directory keeps the name, and gives it away to none but a rename.
        fs::create_dir(path).map_err(io)?;
        return fs::rename(&temporary, path).map_err(io);
    }
    File::open(&temporary).and_then(|file| file.sync_all()).map_err(io)?;
    let mut file = tempfile::TempPath::try_from_path(&temporary).map_err(io)?;
    loop {
        if existing == Existing::ReplacedByOwner {
            file.persist(path).map_err(|error| io(error.error))?;
            break;
        }
        let is_there = |gate: &Gate| FileId::of_path(path).is_ok_and(|found| found == *gate.id());
        // Somebody may have put another file there in the meantime.
        gate = match gate.take().filter(is_there) {
            Some(gate) => Some(gate),
            None => claimed()?,
        };
        if let Some(gate) = &gate {
            let _lock = gate.replace()?;
            if is_there(gate) {
                file.persist(path).map_err(|error| io(error.error))?;
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

/// Claims the file at `path`, if there is one, so that no handle of this program changes it while it is replaced.
fn gate_to_replace(path: &Path) -> Result<Option<Gate>> {
    match Gate::of_path(path, Claim::Write) {
        Ok(gate) => gate.with_lock_if_there(path, false).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Puts what `write` makes under a temporary name in the place of the file or directory at `path`, which gets the
/// name `kept`. There must be nothing of that name.
///
/// The caller has claimed what is at `path`. For a file there is the old one or the new one at any moment; a directory
/// has no name for a moment in between.
/// What is in `path` under the names `carried` is in both then.
pub(crate) fn replace(
    path: &Path,
    kept: &Path,
    carried: &[&str],
    write: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let io = |error| Error::from_io(DOING, path, error);
    if kept.symlink_metadata().is_ok() {
        let detail = "what is replaced would be kept under this name, which is taken";
        return Err(Error::new(ErrorKind::AlreadyExists, DOING, detail).at(kept));
    }
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_dir() {
        let mut is_kept = false;
        let write = |temporary: &Path| {
            write(temporary)?;
            fs::set_permissions(temporary, metadata.permissions()).map_err(io)?;
            keep(path, kept).map_err(io)?;
            is_kept = true;
            Ok(())
        };
        // The caller has claimed it.
        let replaced = put(path, write, Existing::ReplacedByOwner);
        if replaced.is_err() && is_kept {
            // The other name is there as before.
            let _ = fs::remove_file(kept);
        }
        return replaced;
    }
    let parent = parent(path);
    let folder = tempfile::Builder::new().prefix(".blosc2-").tempdir_in(parent).map_err(io)?;
    let temporary = folder.path().join("new");
    write(&temporary)?;
    for name in carried {
        if path.join(name).exists() {
            keep(&path.join(name), &temporary.join(name)).map_err(io)?;
        }
    }
    Disk(temporary.clone()).sync().map_err(io)?;
    fs::rename(path, kept).map_err(io)?;
    if let Err(error) = fs::rename(&temporary, path) {
        let _ = fs::rename(kept, path);
        return Err(io(error));
    }
    sync_folder(parent).map_err(io)
}

/// Gives a file another name, or copies it where it can have only one.
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

/// The folder of a path.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Sees that the names in a folder are on the device, where the system can do that.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// A path that holds wherever the program goes.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    if path.as_os_str().is_empty() {
        return Err(Error::new(ErrorKind::InvalidArgument, "use a path", "it is empty"));
    }
    std::path::absolute(path)
        .map_err(|error| Error::from_io("find the folder of the program", path, error))
}
