//! The files of stores that are only read: the members of a zip file, and the files of a custom directory.

use std::collections::BTreeSet;
use std::fmt;
#[cfg(feature = "c")]
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "c")]
use crate::archive;
use crate::archive::{Archive, Source, Window};
use crate::blosc2::storage::{Folder, ReadAt, ReadOnly};
use crate::blosc2::{Error, OpenOptions, Result, SChunk, Target};
use crate::embed_store::EmbedStore;
use crate::key::{self, INDEX};

use super::OPEN;

type Opener = dyn Fn(&str) -> Result<Window> + Send + Sync;

/// Files that are read in place, with their names when the store was opened.
pub(super) struct InPlace {
    open: Box<Opener>,
    names: BTreeSet<String>,
    /// The size of the zip file; `None` for a custom directory.
    zip_size: Option<u64>,
}

impl InPlace {
    pub(super) fn of_zip(source: Source) -> Result<Self> {
        let archive = Archive::open(Arc::clone(&source))?;
        let size = source.size().map_err(|error| Error::of_io(OPEN, error))?;
        let names = archive.names().map(str::to_owned).collect();
        let open = Box::new(move |name: &str| archive.member(name));
        Ok(Self { open, names, zip_size: Some(size) })
    }

    pub(super) fn of_folder<F>(folder: F) -> Result<Self>
    where
        F: Folder<File: Send + Sync + 'static> + 'static,
    {
        let names = folder.names().map_err(|error| Error::of_io(OPEN, error))?;
        let all: BTreeSet<String> = names.into_iter().collect();
        // Programs mark directories by objects, whose names lose their slash: they are not files.
        let is_folder = |name: &str| {
            let inside = format!("{name}/");
            all.range(inside.clone()..).next().is_some_and(|next| next.starts_with(&inside))
        };
        let is_content = |name: &&String| {
            !name.is_empty() && !key::is_internal(name) && !is_folder(name.as_str())
        };
        let names = all.iter().filter(is_content).cloned().collect();
        let open = move |name: &str| {
            let file = folder.open(name).and_then(|file| Window::whole(Arc::new(file)));
            file.map_err(|error| Error::of_io(OPEN, error).at(name))
        };
        Ok(Self { open: Box::new(open), names, zip_size: None })
    }

    pub(super) fn is_zip(&self) -> bool {
        self.zip_size.is_some()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    pub(super) fn file(&self, name: &str) -> Result<Window> {
        (self.open)(name)
    }

    pub(super) fn frame(&self, name: &str, options: &OpenOptions) -> Result<SChunk> {
        options.open(Target::storage(ReadOnly::new(self.file(name)?)))
    }

    #[cfg(feature = "c")]
    pub(super) fn unpack(&self, folder: &Path, options: &OpenOptions) -> Result<()> {
        archive::unpack(self.names(), &self.open, self.zip_size, folder, options)
    }

    /// The embedded store. Other programs, such as xarray-blosc2, write frames without one.
    pub(super) fn index(&self, options: &OpenOptions) -> Result<EmbedStore> {
        match self.has(INDEX) {
            true => self.frame(INDEX, options).and_then(EmbedStore::from_schunk),
            false => EmbedStore::without_entries(options),
        }
    }
}

impl fmt::Debug for InPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InPlace").field("files", &self.names.len()).finish_non_exhaustive()
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
        let files = InPlace::of_folder(folder).unwrap();
        let expected =
            [INDEX, "embed.b2e.b2work/a.b2nd", "first-a", "first.b2nd", "first/b/c.b2nd", "second"];
        assert_eq!(files.names().collect::<Vec<_>>(), expected);
    }
}
