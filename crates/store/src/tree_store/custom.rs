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
use crate::key::INDEX;

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
        let names = folder.names()?.into_iter().collect();
        let open = move |name: &str| folder.open(name).map(|file| Arc::new(file) as Source);
        Ok(Self { open: Box::new(open), names })
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Opens a file.
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
