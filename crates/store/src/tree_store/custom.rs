//! Stores in custom directories, such as the objects under a prefix.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
#[cfg(feature = "c")]
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "c")]
use crate::archive;
use crate::archive::{Source, Window};
use crate::blosc2::storage::{Folder, ReadOnly};
use crate::blosc2::{Error, OpenOptions, Result, SChunk, Target};
use crate::embed_store::EmbedStore;
use crate::key::{self, INDEX};

use super::OPEN;

/// Opens a file by its name.
type Opener = dyn Fn(&str) -> io::Result<Source> + Send + Sync;

/// A custom directory, with the names of its files when it was opened.
pub(super) struct Custom {
    open: Box<Opener>,
    names: BTreeSet<String>,
}

impl Custom {
    pub(super) fn new<F>(folder: F) -> io::Result<Self>
    where
        F: Folder<File: Send + Sync + 'static> + 'static,
    {
        let all: BTreeSet<String> = folder.names()?.into_iter().collect();
        // Programs mark directories by objects, whose names lose their slash: they are not files.
        let is_folder = |name: &str| {
            let inside = format!("{name}/");
            all.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside))
        };
        let is_content = |name: &&String| {
            !name.is_empty() && !key::is_internal(name) && !is_folder(name.as_str())
        };
        let names = all.iter().filter(is_content).cloned().collect();
        let open = move |name: &str| folder.open(name).map(|file| Arc::new(file) as Source);
        Ok(Self { open: Box::new(open), names })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(super) fn file(&self, name: &str) -> io::Result<Window> {
        Window::whole((self.open)(name)?)
    }

    pub(super) fn frame(&self, name: &str, options: &OpenOptions) -> Result<SChunk> {
        let file = self.file(name).map_err(|error| Error::of_io(OPEN, error))?;
        options.open(Target::storage(ReadOnly::new(file)))
    }

    /// Writes all files to a directory.
    #[cfg(feature = "c")]
    pub(super) fn unpack(&self, folder: &Path, options: &OpenOptions) -> Result<()> {
        let open = |name: &str| self.file(name).map_err(|error| Error::of_io(OPEN, error).at(name));
        archive::unpack(self.names(), open, folder, options)
    }

    /// The embedded store. Other programs write frames to a directory without one.
    pub(super) fn index(&self, options: &OpenOptions) -> Result<EmbedStore> {
        match self.has(INDEX) {
            true => self.frame(INDEX, options).and_then(EmbedStore::from_schunk),
            false => EmbedStore::without_entries(options),
        }
    }
}

impl fmt::Debug for Custom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Custom").field("files", &self.names.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use blosc2_format::directory::{FolderMut, Memory};

    use super::*;

    #[test]
    fn names_of_directories_and_internal_files_are_not_files() {
        let mut folder = Memory::default();
        let names = ["first", "first-a", "first.b2nd", "first/b/c.b2nd", "first/b", "second", ""];
        let internal = [key::LOCK, "embed.b2e.b2work/a", INDEX, "embed.b2e.b2work/a.b2nd"];
        for name in names.iter().chain(&internal) {
            folder.put(name, b"", false).unwrap();
        }
        let custom = Custom::new(folder).unwrap();
        let expected =
            [INDEX, "embed.b2e.b2work/a.b2nd", "first-a", "first.b2nd", "first/b/c.b2nd", "second"];
        assert_eq!(custom.names().collect::<Vec<_>>(), expected);
    }
}
