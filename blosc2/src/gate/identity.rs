//! The identity of a file, which does not depend on its path.

use std::fs::File;
use std::io;
use std::path::Path;

/// The identity of an opened file or directory.
///
/// A path may refer to another file at any time. The identity of an opened file does not change, and no other file gets
/// this identity while the file is open.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FileId {
    /// Unix: the device and the inode. Windows: the serial number of the volume and the file index.
    Number { volume: u64, file: u64 },
    /// The canonical path. Windows: directories, and files on volumes that do not number their files.
    #[cfg(windows)]
    Path(std::path::PathBuf),
}

#[cfg(unix)]
impl FileId {
    /// Returns the identity of the file that was opened at `path`.
    pub(crate) fn of_opened(opened: &File, _path: &Path) -> io::Result<Self> {
        opened.metadata().map(|metadata| Self::of_metadata(&metadata))
    }

    /// Returns the identity of an opened file, on systems and volumes that number their files.
    pub(crate) fn of_file(opened: &File) -> io::Result<Option<Self>> {
        opened.metadata().map(|metadata| Some(Self::of_metadata(&metadata)))
    }

    /// Returns the current identity of the file at `path`, or of the target of a link.
    pub(crate) fn of_path(path: &Path) -> io::Result<Self> {
        path.metadata().map(|metadata| Self::of_metadata(&metadata))
    }

    fn of_metadata(metadata: &std::fs::Metadata) -> Self {
        use std::os::unix::fs::MetadataExt;
        Self::Number { volume: metadata.dev(), file: metadata.ino() }
    }
}

#[cfg(windows)]
impl FileId {
    pub(super) fn of_opened(opened: &File, path: &Path) -> io::Result<Self> {
        match Self::of_file(opened)? {
            Some(id) => Ok(id),
            None => path.canonicalize().map(Self::Path),
        }
    }

    pub(super) fn of_file(opened: &File) -> io::Result<Option<Self>> {
        let found = winapi_util::file::information(opened)?;
        let (volume, file) = (found.volume_serial_number(), found.file_index());
        // Both values mean that the volume does not number its files.
        Ok((file != 0 && file != u64::MAX).then_some(Self::Number { volume, file }))
    }

    pub(super) fn of_path(path: &Path) -> io::Result<Self> {
        use std::os::windows::fs::OpenOptionsExt;
        if path.metadata()?.is_dir() {
            return path.canonicalize().map(Self::Path);
        }
        // To identify a file, no access to its content is needed.
        Self::of_opened(&File::options().access_mode(0).open(path)?, path)
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
