//! The directory of a store: its files by their names, without following a link.
//!
//! On Unix, the parts of a name are opened one after the other, each relative to the one before it. So nobody can
//! replace a part by a link between the check of the name and its use. Other systems check each part first.

#[cfg(unix)]
mod by_descriptor;
#[cfg(not(unix))]
mod by_path;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{File, Metadata};
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::blosc2::storage;

#[cfg(unix)]
use by_descriptor as system;
#[cfg(not(unix))]
use by_path as system;

use crate::key::MAX_PARTS;

pub(crate) use system::open_regular;

/// A directory, by an open descriptor where the system has one. Names are relative paths in it.
#[derive(Debug)]
pub(super) struct Folder {
    path: PathBuf,
    root: system::Root,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EntryKind {
    File,
    Folder,
    /// A symbolic link, a pipe, a device or a socket. It is never opened.
    Other,
}

/// A file in a directory or its subdirectories.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) name: PathBuf,
    pub(super) len: u64,
}

impl Found {
    /// The name with `/` as the separator; `None` if it is not UTF-8.
    pub(super) fn text(&self) -> Option<String> {
        Some(self.name.to_str()?.replace(std::path::MAIN_SEPARATOR, "/"))
    }
}

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Change,
    /// Creates it for reading and changing; it must not exist.
    Create,
    /// Like `Change`, but creates it if it does not exist.
    OpenOrCreate,
}

impl Folder {
    /// Opens a directory. Links in `path` are followed: only its content is untrusted.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), root: system::Root::open(path)? })
    }

    pub(super) fn folder(&self, name: impl AsRef<Path>) -> io::Result<Self> {
        let name = plain(name.as_ref())?;
        Ok(Self { path: self.path.join(name), root: self.root.folder(name)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens a regular file.
    ///
    /// # Errors
    /// - `NotADirectory`: a part of the name before the last one is a link or a file;
    /// - `Unsupported`: the last part is a link, a directory or another entry that is not a regular file.
    pub(super) fn file(&self, name: impl AsRef<Path>, access: Access) -> io::Result<File> {
        let name = plain(name.as_ref())?;
        let file = self.root.file(name, access)?;
        if !file.metadata()?.is_file() {
            return Err(irregular(name));
        }
        Ok(file)
    }

    /// The kind of an entry; `None` if there is none.
    pub(super) fn kind(&self, name: impl AsRef<Path>) -> io::Result<Option<EntryKind>> {
        match self.root.kind(plain(name.as_ref())?) {
            Err(error) if is_gone(&error) => Ok(None),
            found => found.map(|(kind, _)| Some(kind)),
        }
    }

    pub(super) fn has_file(&self, name: impl AsRef<Path>) -> bool {
        matches!(self.kind(name), Ok(Some(EntryKind::File)))
    }

    /// Creates the directories of a relative path that do not exist.
    pub(super) fn create_folders(&self, name: impl AsRef<Path>) -> io::Result<()> {
        let name = name.as_ref();
        if name.as_os_str().is_empty() {
            return Ok(());
        }
        let name = plain(name)?;
        let above = name.ancestors().filter(|above| !above.as_os_str().is_empty());
        for above in above.collect::<Vec<_>>().into_iter().rev() {
            match self.root.create_folder(above) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if self.kind(above)? != Some(EntryKind::Folder) {
                        return Err(not_a_folder(above));
                    }
                }
                made => made?,
            }
        }
        Ok(())
    }

    /// Moves a file of another directory to a name, and replaces what has this name, unless it is a directory.
    pub(super) fn put(&self, from: &Self, file: &str, name: impl AsRef<Path>) -> io::Result<()> {
        from.root.rename(plain(Path::new(file))?, &self.root, plain(name.as_ref())?)
    }

    pub(super) fn remove_file(&self, name: impl AsRef<Path>) -> io::Result<()> {
        self.root.remove_file(plain(name.as_ref())?)
    }

    pub(super) fn remove_folder(&self, name: impl AsRef<Path>) -> io::Result<()> {
        self.root.remove_folder(plain(name.as_ref())?)
    }

    /// Syncs the names in a subdirectory to disk, on systems that support it; `""` is the directory itself.
    pub(super) fn sync(&self, name: impl AsRef<Path>) -> io::Result<()> {
        self.root.sync(name.as_ref())
    }

    /// All regular files in the directory and its subdirectories, sorted by name. Links and other entries are ignored.
    pub(super) fn files(&self) -> io::Result<Vec<Found>> {
        let mut files = Vec::new();
        self.walk(|name, kind, len| {
            if kind == EntryKind::File {
                files.push(Found { name: name.to_owned(), len });
            }
            Ok(())
        })?;
        files.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(files)
    }

    /// Whether a file in the directory or its subdirectories satisfies a condition, among the first `most` entries,
    /// level by level. Subdirectories that cannot be read are skipped.
    pub(super) fn any_file(
        &self,
        most: usize,
        is_wanted: impl Fn(&Path) -> bool,
    ) -> io::Result<bool> {
        let (mut left, mut folders) = (most, VecDeque::from([PathBuf::new()]));
        while left > 0
            && let Some(folder) = folders.pop_front()
        {
            let entries = match self.root.entries(&folder) {
                Err(_) if !folder.as_os_str().is_empty() => continue,
                entries => entries?,
            };
            for (name, kind, _) in entries.into_iter().take(left) {
                left -= 1;
                let name = folder.join(name);
                match kind {
                    EntryKind::File if is_wanted(&name) => return Ok(true),
                    EntryKind::Folder => folders.push_back(name),
                    _ => {}
                }
            }
        }
        Ok(false)
    }

    pub(super) fn sync_all(&self) -> io::Result<()> {
        self.walk(|name, kind, _| match kind {
            // Windows syncs only files that are open for writing.
            EntryKind::File => {
                let access = if cfg!(windows) { Access::Change } else { Access::Read };
                self.file(name, access)?.sync_all()
            }
            EntryKind::Folder => self.sync(name),
            EntryKind::Other => Ok(()),
        })?;
        self.sync("")
    }

    /// Calls `visit` for each entry with its name, kind and length. Entries that are removed meanwhile are ignored.
    fn walk(
        &self,
        mut visit: impl FnMut(&Path, EntryKind, u64) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut left = vec![(PathBuf::new(), 0)];
        while let Some((folder, depth)) = left.pop() {
            if depth > MAX_PARTS {
                let detail = format!("it has directories nested more than {MAX_PARTS} levels deep");
                return Err(io::Error::new(io::ErrorKind::InvalidData, detail));
            }
            let entries = match self.root.entries(&folder) {
                Err(error) if depth > 0 && is_gone(&error) => continue,
                entries => entries?,
            };
            for (name, kind, len) in entries {
                let name = folder.join(name);
                visit(&name, kind, len)?;
                if kind == EntryKind::Folder {
                    left.push((name, depth + 1));
                }
            }
        }
        Ok(())
    }

    /// The metadata of a file, for its permissions and its number of links; `None` if there is no regular file.
    pub(super) fn metadata(&self, name: impl AsRef<Path>) -> Option<Metadata> {
        self.file(name, Access::Read).and_then(|file| file.metadata()).ok()
    }

    /// Whether both directories are on one file system, so that files can be moved between them.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        self.root.is_beside(&other.root)
    }
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// A relative path without special parts.
fn plain(name: &Path) -> io::Result<&Path> {
    let mut parts = name.components();
    let is_plain = !name.as_os_str().is_empty();
    if is_plain && parts.all(|part| matches!(part, Component::Normal(_))) {
        return Ok(name);
    }
    let detail = format!("`{}` is not a name in a directory", name.display());
    Err(io::Error::new(io::ErrorKind::InvalidInput, detail))
}

fn irregular(name: &Path) -> io::Error {
    let detail = format!("`{}` is not a regular file; links are not followed", name.display());
    io::Error::new(io::ErrorKind::Unsupported, detail)
}

fn not_a_folder(name: &Path) -> io::Error {
    let detail = format!("`{}` is not a directory; links are not followed", name.display());
    io::Error::new(io::ErrorKind::NotADirectory, detail)
}

/// The files of a sparse frame, which are only read.
impl storage::Folder for Folder {
    type File = File;

    fn open(&self, name: &str) -> io::Result<File> {
        self.file(name, Access::Read)
    }

    fn names(&self) -> io::Result<Vec<String>> {
        let entries = self.root.entries(Path::new(""))?;
        let text = |(name, ..): (OsString, EntryKind, u64)| name.to_string_lossy().into_owned();
        Ok(entries.into_iter().map(text).collect())
    }

    fn version(&self, name: &str) -> io::Result<Option<String>> {
        let metadata = self.file(name, Access::Read)?.metadata()?;
        Ok(Some(storage::file_version(&metadata)))
    }
}

impl storage::FolderMut for Folder {
    fn put(&mut self, _: &str, _: &[u8], _: bool) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }

    fn remove(&mut self, _: &str) -> io::Result<()> {
        Err(io::ErrorKind::ReadOnlyFilesystem.into())
    }
}
