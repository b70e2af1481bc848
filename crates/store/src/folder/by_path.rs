//! Directories of systems without descriptors for them: by paths, whose parts are checked first.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::blosc2::storage::replace_file;

use super::{Access, EntryKind, irregular, is_gone, not_a_folder};

#[derive(Debug)]
pub(super) struct Root(PathBuf);

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        if path.metadata()?.is_dir() { Ok(Self(path)) } else { Err(not_a_folder(&path)) }
    }

    pub(super) fn folder(&self, name: &Path) -> io::Result<Self> {
        self.real(name).map(Self)
    }

    /// The path of a subdirectory. Fails if a part of it is a link.
    fn real(&self, name: &Path) -> io::Result<PathBuf> {
        let mut path = self.0.clone();
        for part in name {
            path.push(part);
            if !path.symlink_metadata()?.is_dir() {
                return Err(not_a_folder(Path::new(part)));
            }
        }
        Ok(path)
    }

    /// The path of an entry. Fails if a part before the last one is a link.
    fn entry(&self, name: &Path) -> io::Result<PathBuf> {
        let last = name.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.real(name.parent().unwrap_or(Path::new("")))?.join(last))
    }

    pub(super) fn file(&self, name: &Path, access: Access) -> io::Result<File> {
        let path = self.entry(name)?;
        let mut options = File::options();
        options.read(true).write(access != Access::Read);
        match access {
            Access::Create => return options.create_new(true).open(path),
            Access::OpenOrCreate => options.create(true).truncate(false),
            Access::Read | Access::Change => &mut options,
        };
        match kind_of(&path) {
            Ok((kind, _)) if kind != EntryKind::File => Err(irregular(name)),
            Err(error)
                if access != Access::OpenOrCreate || error.kind() != io::ErrorKind::NotFound =>
            {
                Err(error)
            }
            _ => options.open(path),
        }
    }

    pub(super) fn kind(&self, name: &Path) -> io::Result<(EntryKind, u64)> {
        kind_of(&self.entry(name)?)
    }

    pub(super) fn create_folder(&self, name: &Path) -> io::Result<()> {
        fs::create_dir(self.entry(name)?)
    }

    pub(super) fn rename(&self, name: &Path, to: &Self, target: &Path) -> io::Result<()> {
        replace_file(&self.entry(name)?, &to.entry(target)?)
    }

    pub(super) fn remove_file(&self, name: &Path) -> io::Result<()> {
        fs::remove_file(self.entry(name)?)
    }

    pub(super) fn remove_folder(&self, name: &Path) -> io::Result<()> {
        fs::remove_dir(self.entry(name)?)
    }

    pub(super) fn sync(&self, name: &Path) -> io::Result<()> {
        self.real(name).map(drop)
    }

    /// The entries of a subdirectory with their kinds and lengths.
    pub(super) fn entries(&self, name: &Path) -> io::Result<Vec<(OsString, EntryKind, u64)>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.real(name)?)? {
            let entry = entry?;
            match kind_of(&entry.path()) {
                Ok((kind, len)) => entries.push((entry.file_name(), kind, len)),
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(entries)
    }

    pub(super) fn is_beside(&self, _: &Self) -> bool {
        true
    }
}

fn kind_of(path: &Path) -> io::Result<(EntryKind, u64)> {
    let metadata = path.symlink_metadata()?;
    let kind = match metadata.file_type() {
        kind if kind.is_file() => EntryKind::File,
        kind if kind.is_dir() => EntryKind::Folder,
        _ => EntryKind::Other,
    };
    Ok((kind, metadata.len()))
}

/// Opens the regular file at a path for reading. Links in the path are followed, pipes and devices are refused.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    if path.metadata()?.is_file() { File::open(path) } else { Err(irregular(path)) }
}
