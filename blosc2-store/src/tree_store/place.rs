//! Places: the files of a store, read in place or unpacked.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use blosc2::{Error, ErrorKind, Result};
use tempfile::TempDir;

use crate::archive::{Archive, TEMPORARY, folder_of, sync_all, sync_folder};

#[derive(Debug, Clone)]
pub(super) enum Place {
    /// Read in place.
    Archive(Arc<Archive>),
    Folder {
        folder: PathBuf,
        writable: bool,
    },
    /// A zip file that is being created or changed: its files are in a temporary folder.
    Unpacked {
        folder: Arc<TempDir>,
        target: PathBuf,
        replaced: Option<Stamp>,
    },
}

impl Place {
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::Archive(_) => None,
            Self::Folder { folder, .. } => Some(folder),
            Self::Unpacked { folder, .. } => Some(folder.path()),
        }
    }

    pub(super) fn is_writable(&self) -> bool {
        matches!(self, Self::Unpacked { .. } | Self::Folder { writable: true, .. })
    }

    /// The same place for reading: a folder becomes read-only.
    pub(super) fn for_reading(&self) -> Self {
        match self.clone() {
            Self::Folder { folder, .. } => Self::Folder { folder, writable: false },
            place => place,
        }
    }
}

/// Identifies the state of a file: it differs if the file was replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    file: Option<u64>,
}

impl Stamp {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        #[cfg(unix)]
        let file = Some(std::os::unix::fs::MetadataExt::ino(&metadata));
        #[cfg(not(unix))]
        let file = None;
        Ok(Self { len: metadata.len(), modified: metadata.modified().ok(), file })
    }
}

/// A temporary folder in the same folder as `path`.
pub(super) fn folder_beside(path: &Path) -> Result<TempDir> {
    let folder = tempfile::Builder::new().prefix(TEMPORARY).tempdir_in(folder_of(path));
    folder.map_err(|error| Error::of_io("create a folder", error).at(path))
}

/// Creates a folder at `path`, which `fill` fills in the folder `beside` it. It appears when it is complete and on disk.
pub(super) fn put_folder(
    beside: &TempDir,
    path: &Path,
    doing: &'static str,
    fill: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let failed = |error| Error::of_io(doing, error).at(path);
    // Unlike a temporary folder, it has the permissions of any new folder.
    let new = beside.path().join("new");
    fs::create_dir(&new).map_err(failed)?;
    fill(&new)?;
    sync_all(&new).map_err(failed)?;
    // It replaces nothing but an empty folder.
    fs::rename(&new, path).map_err(|error| match error.kind() {
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::NotADirectory => {
            Error::new(ErrorKind::AlreadyExists, doing, "it already exists").at(path)
        }
        _ => failed(error),
    })?;
    sync_folder(folder_of(path)).map_err(failed)
}
