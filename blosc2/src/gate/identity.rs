//! Which file it is, whatever its name.

use std::fs::File;
use std::io;
use std::path::Path;

/// The identity of an opened file or directory.
///
/// A name may lead to another file from one moment to the next, an opened file stays what it is. No other file gets
/// its identity while it is open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    #[cfg(unix)]
    device_and_inode: (u64, u64),
    #[cfg(not(unix))]
    path: std::path::PathBuf,
}

impl FileId {
    /// The identity of what was opened at `path`. Where the system tells no identity of an opened file, that of its
    /// path without links stands for it.
    pub(crate) fn of_opened(opened: &File, path: &Path) -> io::Result<Self> {
        match Self::of_file(opened)? {
            Some(id) => Ok(id),
            None => Self::of_path(path),
        }
    }

    /// The identity of an opened file, where the system tells one.
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

    /// The identity of what is at `path` now, links followed.
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

/// How many names an opened file has, where the system tells.
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
