//! The identity of a file, which does not depend on its path.

use std::fs::File;
use std::io;
use std::path::Path;

/// The identity of an opened file or directory.
///
/// A path may refer to another file at any time. The identity of an opened file does not change, and no other file gets
/// this identity while the file is open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

impl FileId {
    /// Returns the identity of the file that was opened at `path`. On systems other than Unix, the canonical path is
    /// the identity.
    pub(crate) fn of_opened(opened: &File, path: &Path) -> io::Result<Self> {
        match Self::of_file(opened)? {
            Some(id) => Ok(id),
            None => Self::of_path(path),
        }
    }

    /// Returns the identity of an opened file, on systems that provide one.
    #[cfg(unix)]
    pub(crate) fn of_file(opened: &File) -> io::Result<Option<Self>> {
        use std::os::unix::fs::MetadataExt;
        let metadata = opened.metadata()?;
        Ok(Some(Self { device_and_inode: (metadata.dev(), metadata.ino()) }))
    }

    #[cfg(not(unix))]
    pub(crate) fn of_file(_opened: &File) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Returns the current identity of the file at `path`, or of the target of a link.
    #[cfg(unix)]
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        use std::os::unix::fs::MetadataExt;
        let metadata = path.metadata()?;
        Ok(Self { device_and_inode: (metadata.dev(), metadata.ino()) })
    }

    #[cfg(not(unix))]
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.canonicalize()? })
    }
}

/// Returns the number of names (hard links) of an opened file, on systems that report it.
pub(crate) fn links(opened: &File) -> io::Result<Option<u64>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(Some(opened.metadata()?.nlink()))
    }
    #[cfg(not(unix))]
    {
        let _ = opened;
        Ok(None)
    }
}
