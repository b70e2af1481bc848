//! Who may change a store, and where its temporary files are.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use super::Place;
use crate::blosc2::storage::create_file;
use crate::blosc2::{Error, ErrorKind, Result};
use crate::folder::{Access, Folder};
use crate::work::{Claim, Work, has_other_names};

/// The only handle that may change a store in a directory.
#[derive(Debug)]
pub(in crate::tree_store) struct FolderWriter {
    /// Created by the first change that needs it. Removed before the claim ends.
    work: Mutex<Option<Arc<Work>>>,
    _claim: Claim,
}

impl FolderWriter {
    pub(in crate::tree_store) fn new(folder: &Folder, claim: Claim) -> Self {
        Work::clean_beside(folder.path());
        Work::clean_inside(folder);
        Self { work: Mutex::new(None), _claim: claim }
    }

    fn work(&self, folder: &Folder) -> Result<Arc<Work>> {
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(work) = &*work {
            return Ok(Arc::clone(work));
        }
        // Python lists any frame in the store as an entry, also one that a program left when it died.
        let beside = Work::beside(folder.path()).ok();
        let beside = beside.filter(|work| work.folder().is_ok_and(|work| work.is_beside(folder)));
        let made = match beside {
            Some(made) => made,
            None => Work::inside(folder)?,
        };
        Ok(Arc::clone(work.insert(Arc::new(made))))
    }
}

impl Place {
    pub(in crate::tree_store) fn is_writable(&self) -> bool {
        matches!(self, Self::Unpacked { .. } | Self::Folder { writer: Some(_), .. })
    }

    /// Whether each change is on disk before the call returns. The files in the temporary directory of a zip file need
    /// not be.
    pub(in crate::tree_store) fn is_durable(&self) -> bool {
        matches!(self, Self::Folder { .. })
    }

    /// The directory for temporary files; `None` if the store was opened for reading.
    pub(in crate::tree_store) fn work(&self) -> Result<Option<Arc<Work>>> {
        match self {
            Self::Unpacked { work, .. } => Ok(Some(Arc::clone(work))),
            Self::Folder { folder, writer: Some(writer) } => writer.work(folder).map(Some),
            Self::ReadOnly(_) | Self::Folder { writer: None, .. } => Ok(None),
        }
    }

    /// The directory for a copy of a file that has other names (hard links); `None` if it has none.
    pub(in crate::tree_store) fn work_for(&self, name: &str) -> Result<Option<Arc<Work>>> {
        let file = self.folder().map(|folder| folder.file(name, Access::Read));
        match file {
            Some(Ok(file)) if has_other_names(&file) => self.work(),
            // An error is that of the caller, who opens the file.
            _ => Ok(None),
        }
    }
}

/// Identifies the state of a file: it differs if the file was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::tree_store) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    file: Option<u64>,
}

impl Stamp {
    pub(in crate::tree_store) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        let file = Some(std::os::unix::fs::MetadataExt::ino(&metadata));
        #[cfg(not(unix))]
        let file = None;
        Ok(Self { len: metadata.len(), modified: metadata.modified().ok(), file })
    }
}

/// The path of a store that does not exist yet, which stays the same if the current directory changes.
pub(in crate::tree_store) fn path_of_new(path: &Path, doing: &'static str) -> Result<PathBuf> {
    let failed = |error| Error::of_io(doing, error).at(path);
    if path.symlink_metadata().is_ok() {
        let detail = "it already exists";
        return Err(Error::new(ErrorKind::AlreadyExists, doing, detail).at(path));
    }
    let Some(name) = path.file_name() else {
        let detail = "the path has no file name";
        return Err(Error::new(ErrorKind::InvalidArgument, doing, detail).at(path));
    };
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Ok(fs::canonicalize(parent.unwrap_or(Path::new("."))).map_err(failed)?.join(name))
}

/// Creates a directory at `path`, which `fill` fills. It appears when it is complete and on disk.
pub(in crate::tree_store) fn put_folder(
    path: &Path,
    doing: &'static str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let work = Work::beside(path)?;
    create_file(path, false, Some(work.path()), |new| {
        let failed = |error| Error::of_io(doing, error).at(path);
        fs::create_dir(new).map_err(failed)?;
        fill(new)?;
        Folder::open(new).and_then(|new| new.sync_all()).map_err(failed)
    })
}
