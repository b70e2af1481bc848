//! The identity of a file, which does not depend on its path.

use std::fs::File;
use std::io;
use std::path::Path;

/// The identity of an opened file or directory.
///
/// A path may refer to another file at any time. The identity of an opened file does not change, and no other file gets
/// this identity while the file is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct FileId {
    /// The device; on Windows the serial number of the volume.
    volume: u64,
    /// The number of the file on this volume: the inode; on Windows the file index.
    number: u64,
}

impl FileId {
    /// Returns the identity of an opened file or directory.
    #[cfg(unix)]
    pub(crate) fn of_file(opened: &File) -> io::Result<Self> {
        opened.metadata().map(|metadata| Self::of_metadata(&metadata))
    }

    /// Returns the current identity of the file at `path`, or of the target of a link.
    #[cfg(unix)]
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::of_metadata(&metadata))
    }

    #[cfg(unix)]
    fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self { volume: metadata.dev(), number: metadata.ino() }
    }

    #[cfg(windows)]
    pub(crate) fn of_file(opened: &File) -> io::Result<Self> {
        let found = winapi_util::file::information(opened)?;
        Ok(Self { volume: found.volume_serial_number(), number: found.file_index() })
    }

    #[cfg(windows)]
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        Self::of_file(winapi_util::Handle::from_path_any(path)?.as_file())
    }
}

/// Returns the number of names (hard links) of an opened file.
pub(crate) fn links(opened: &File) -> io::Result<u64> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Ok(opened.metadata()?.nlink())
    }
    #[cfg(windows)]
    Ok(winapi_util::file::information(opened)?.number_of_links())
}
