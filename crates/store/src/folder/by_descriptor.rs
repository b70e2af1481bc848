//! Directories of Unix: by descriptors.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{self as unix, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Access, EntryKind, irregular, is_gone, not_a_folder};

#[derive(Debug)]
pub(super) struct Root(File);

/// Flags with which a directory is opened.
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let fd = unix::open(path, FOLDER, Mode::empty())?;
        Ok(Self(fd.into()))
    }

    pub(super) fn folder(&self, name: &Path) -> io::Result<Self> {
        self.walk(name).map(|fd| Self(fd.into()))
    }

    /// Opens a subdirectory part by part.
    fn walk(&self, name: &Path) -> io::Result<OwnedFd> {
        let mut fd = unix::openat(&self.0, c".", FOLDER, Mode::empty())?;
        for part in name {
            let next = unix::openat(&fd, part, FOLDER | OFlags::NOFOLLOW, Mode::empty());
            fd = next.map_err(|error| match error {
                Errno::LOOP | Errno::NOTDIR | Errno::MLINK => not_a_folder(Path::new(part)),
                error => error.into(),
            })?;
        }
        Ok(fd)
    }

    /// Opens the directory of an entry, and returns the last part of its name.
    fn split<'a>(&self, name: &'a Path) -> io::Result<(OwnedFd, &'a OsStr)> {
        let last = name.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok((self.walk(name.parent().unwrap_or(Path::new("")))?, last))
    }

    pub(super) fn file(&self, name: &Path, access: Access) -> io::Result<File> {
        let (folder, last) = self.split(name)?;
        let flags = match access {
            Access::Read => OFlags::RDONLY,
            Access::Change => OFlags::RDWR,
            Access::Create => OFlags::RDWR | OFlags::CREATE | OFlags::EXCL,
            Access::OpenOrCreate => OFlags::RDWR | OFlags::CREATE,
        };
        // Opening a device can have effects.
        if access != Access::Create {
            match kind_of(&folder, last) {
                Ok((kind, _)) if kind != EntryKind::File => return Err(irregular(name)),
                Err(error)
                    if access != Access::OpenOrCreate
                        || error.kind() != io::ErrorKind::NotFound =>
                {
                    return Err(error);
                }
                _ => {}
            }
        }
        // A pipe that has replaced the file does not block.
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = unix::openat(&folder, last, flags, Mode::from_raw_mode(0o666));
        let opened = opened.map_err(|error| match error {
            Errno::LOOP | Errno::MLINK | Errno::NXIO | Errno::ISDIR => irregular(name),
            error => error.into(),
        })?;
        Ok(opened.into())
    }

    pub(super) fn kind(&self, name: &Path) -> io::Result<(EntryKind, u64)> {
        let (folder, last) = self.split(name)?;
        kind_of(&folder, last)
    }

    pub(super) fn create_folder(&self, name: &Path) -> io::Result<()> {
        let (folder, last) = self.split(name)?;
        Ok(unix::mkdirat(&folder, last, Mode::from_raw_mode(0o777))?)
    }

    pub(super) fn rename(&self, name: &Path, to: &Self, target: &Path) -> io::Result<()> {
        let (old, name) = self.split(name)?;
        let (new, target) = to.split(target)?;
        Ok(unix::renameat(&old, name, &new, target)?)
    }

    pub(super) fn remove_file(&self, name: &Path) -> io::Result<()> {
        let (folder, last) = self.split(name)?;
        Ok(unix::unlinkat(&folder, last, AtFlags::empty())?)
    }

    pub(super) fn remove_folder(&self, name: &Path) -> io::Result<()> {
        let (folder, last) = self.split(name)?;
        Ok(unix::unlinkat(&folder, last, AtFlags::REMOVEDIR)?)
    }

    pub(super) fn sync(&self, name: &Path) -> io::Result<()> {
        File::from(self.walk(name)?).sync_all()
    }

    /// The entries of a subdirectory with their kinds and lengths.
    pub(super) fn entries(&self, name: &Path) -> io::Result<Vec<(OsString, EntryKind, u64)>> {
        let folder = self.walk(name)?;
        let mut entries = Vec::new();
        for entry in unix::Dir::read_from(&folder)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            match kind_of(&folder, name) {
                Ok((kind, len)) => entries.push((name.to_owned(), kind, len)),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let device = |root: &Self| root.0.metadata().map(|metadata| metadata.dev()).ok();
        device(self) == device(other)
    }
}

fn kind_of(folder: &OwnedFd, name: &OsStr) -> io::Result<(EntryKind, u64)> {
    let stat = unix::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Folder,
        _ => EntryKind::Other,
    };
    Ok((kind, u64::try_from(stat.st_size).unwrap_or(0)))
}

/// Opens the regular file at a path for reading. Links in the path are followed, pipes and devices are refused.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if !path.metadata()?.is_file() {
        return Err(irregular(path));
    }
    let flags = OFlags::NONBLOCK.bits();
    let file = File::options().read(true).custom_flags(flags.cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular(path)) }
}
