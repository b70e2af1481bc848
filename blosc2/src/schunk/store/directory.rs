//! A directory with an index file and one file for each chunk (a sparse frame).

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use blosc2_format::directory::{Disk, FolderMut, INDEX, chunk_name};
use blosc2_format::frame::{Layout, Offset, Outline, Stores};
use blosc2_format::{Limits, ReadAt};
use parking_lot::Mutex;

use super::{
    Located, NOTHING, Opened, Source, Stamp, Stamped, Store, Verify, metadata_of, missing,
    outdated, read_outline,
};
use crate::bytes::{Guarded, ReadOnly, Safety, Storage};
use crate::{Error, ErrorKind, Reason, Result};

/// The files of a directory, in the file system or in a custom directory.
pub(in crate::schunk) trait Files:
    FolderMut<File: Send + Sync + 'static> + 'static
{
    /// The absolute path of the directory, if it is in the file system.
    fn path(&self) -> Option<&Path>;

    /// Converts an open file to a storage, which detects changes by other programs if possible.
    fn storage(file: Self::File) -> Box<dyn Storage>;
}

impl Files for Disk {
    fn path(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn storage(file: Self::File) -> Box<dyn Storage> {
        Box::new(file)
    }
}

impl<F: FolderMut<File: Send + Sync + 'static> + 'static> Files for Guarded<F> {
    fn path(&self) -> Option<&Path> {
        None
    }

    fn storage(file: Self::File) -> Box<dyn Storage> {
        Box::new(ReadOnly::new(file))
    }
}

/// The largest index file of a custom directory that is hashed, in bytes. A custom directory can state any size.
const MAX_INDEX: u64 = 8 << 30;

/// Hashes the first `len` bytes in parts, so that little memory is necessary.
fn hash(source: &(impl ReadAt + ?Sized), len: u64) -> io::Result<u64> {
    const PART: u64 = 8 << 20;
    let (mut hasher, mut at) = (DefaultHasher::new(), 0);
    while at < len {
        let part = PART.min(len - at);
        hasher.write(&source.read_vec_at(at, part)?);
        at += part;
    }
    Ok(hasher.finish())
}

/// The error of a read after a change whose version could not be requested.
fn unversioned() -> Error {
    let detail = "the version of the index file could not be read after the last change: call `refresh` to read it again";
    Error::new(ErrorKind::Busy, super::READ, detail)
}

#[derive(Debug)]
pub(in crate::schunk) struct Directory<F> {
    files: F,
    safety: Safety,
    /// The index file, if parts of it were not read yet.
    index: Option<Stamped>,
    /// The fingerprint of the index file that was last read or written.
    known: Option<u64>,
    /// The version of the index file that was last read or written; `Some(None)` if the directory has no versions.
    /// `None` if the request after a write has failed: reads of chunks fail until the index is read again.
    version: Option<Option<String>>,
    /// The start of the last check of the version that has succeeded.
    checked: Mutex<Option<Instant>>,
}

impl<F: Files> Directory<F> {
    pub(in crate::schunk) fn new(files: F, safety: Safety) -> Self {
        Self {
            files,
            safety,
            index: None,
            known: None,
            version: Some(None),
            checked: Mutex::default(),
        }
    }

    fn put(&mut self, name: &str, content: &[u8]) -> Result<(), Reason> {
        let put = self.files.put(name, content, self.safety == Safety::PowerLoss);
        put.map_err(|error| self.failed(name, error))
    }

    fn failed(&self, name: &str, error: io::Error) -> Reason {
        Reason::from(error).at(&self.path_of(name))
    }

    fn path_of(&self, name: &str) -> PathBuf {
        self.files.path().map_or_else(|| name.into(), |path| path.join(name))
    }

    /// Checks that the frame is unchanged since the last read or write of this handle. It changes only if claims and
    /// locks do not protect it.
    fn check_same_frame(&self) -> Result<(), Reason> {
        let failed = |error| self.failed(INDEX, error);
        if self.known.is_none() {
            return Ok(());
        }
        let index = self.files.open(INDEX).map_err(failed)?;
        let now = self.fingerprint(&index).map_err(failed)?;
        if now == self.known { Ok(()) } else { Err(super::changed()) }
    }

    /// Checks that the chunk files that are open contain the chunks of the index that was read. A writer that reuses the
    /// number of a removed chunk has stored another index before.
    fn check_version(&self) -> io::Result<()> {
        let Some(version) = &self.version else { return Err(unversioned().into()) };
        if version.is_none() {
            return Ok(());
        }
        let called = Instant::now();
        let mut checked = self.checked.lock();
        if checked.is_some_and(|start| start > called) {
            // Another thread has checked it for this call, too.
            return Ok(());
        }
        let start = Instant::now();
        if self.files.version(INDEX)? != *version {
            return Err(outdated().doing(super::READ).into());
        }
        *checked = Some(start);
        Ok(())
    }

    /// Records the version of the index file.
    fn record_version(&mut self) -> io::Result<()> {
        self.version = None;
        *self.checked.get_mut() = None;
        self.version = Some(self.files.version(INDEX)?);
        Ok(())
    }

    /// Returns the fingerprint of an index file; `None` if it has no header. In a custom directory, which no claim
    /// protects, it is a hash of the whole file. Otherwise it is a hash of the start of the file, which contains all
    /// sizes.
    fn fingerprint(&self, index: &(impl ReadAt + ?Sized)) -> io::Result<Option<u64>> {
        let size = index.size()?;
        if size < Stamp::LEN as u64 {
            return Ok(None);
        }
        let len = if self.files.path().is_some() { Stamp::LEN as u64 } else { size };
        if len > MAX_INDEX {
            let detail =
                format!("expected an index file of at most {MAX_INDEX} bytes, found {len} bytes");
            return Err(Error::new(ErrorKind::InvalidData, super::READ, detail).into());
        }
        hash(index, len).map(Some)
    }
}

impl<F: Files> Store for Directory<F> {
    fn layout(&self) -> Layout {
        Layout::Directory
    }

    fn is_contiguous(&self) -> Option<bool> {
        Some(false)
    }

    fn opened(&self) -> Opened<'_> {
        self.files.path().map_or(Opened::Nothing, Opened::Directory)
    }

    fn read(
        &mut self,
        limits: &Limits,
        typesize: Option<u32>,
        verify: Verify,
    ) -> Result<Option<Outline>, Reason> {
        // If the file changes after this, reads of chunks fail until it is read again.
        self.record_version()?;
        let index = self.files.open(INDEX)?;
        let mut index = Stamped::new(F::storage(index));
        index.stamp = Stamp::of(&*index.storage)?;
        let outline = read_outline(&*index.storage, self.layout(), limits, typesize, verify)?;
        let known = self.fingerprint(&*index.storage);
        self.known = known?;
        self.index = (!outline.is_loaded()).then_some(index);
        Ok(Some(outline))
    }

    fn source(&self) -> &dyn ReadAt {
        match &self.index {
            Some(index) => index,
            None => &NOTHING,
        }
    }

    fn release(&mut self) {
        self.index = None;
    }

    fn chunk(&self, _: &Outline, place: u64) -> Result<Located<'_>, Reason> {
        let name = chunk_name(place);
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => missing("its file does not exist").at(&self.path_of(&name)),
            io::ErrorKind::InvalidData => missing(&error.to_string()).at(&self.path_of(&name)),
            _ => self.failed(&name, error),
        };
        let opened = self.files.open(&name);
        self.check_version().map_err(|error| self.failed(INDEX, error))?;
        let file = opened.map_err(failed)?;
        let size = file.size().map_err(failed)?;
        Ok(Located::Stored(Source::File(Box::new(file)), 0, size))
    }

    fn request_cost(&self) -> u64 {
        self.files.request_cost()
    }

    fn commit(
        &mut self,
        outline: &mut Outline,
        stores: Stores<'_>,
        freed: &[u64],
    ) -> Result<(), Reason> {
        self.check_same_frame()?;
        self.add(outline, stores)?;
        self.finish(outline)?;
        if freed.is_empty() {
            return Ok(());
        }
        // An invalid index may contain a file number twice. Such a file must not be removed.
        let place = |number| outline.offset(number, self.source()).ok()?.and_then(Offset::place);
        let named: HashSet<u64> = (0..outline.nchunks()).filter_map(place).collect();
        for place in freed.iter().filter(|place| !named.contains(place)) {
            // If a file cannot be removed, the frame is valid without it.
            let _ = self.files.remove(&chunk_name(*place));
        }
        Ok(())
    }

    fn add(&mut self, _: &Outline, stores: Stores<'_>) -> Result<(), Reason> {
        let mut stores = stores.iter();
        stores.try_for_each(|(place, bytes)| self.put(&chunk_name(*place), bytes))
    }

    fn finish(&mut self, outline: &mut Outline) -> Result<(), Reason> {
        let new = metadata_of(outline)?;
        // The old index is valid until the new index replaces it.
        let parts = [&new.header[..]].into_iter().chain(new.end(0).map(|(_, bytes)| bytes));
        let bytes = parts.collect::<Vec<_>>().concat();
        let known = self.fingerprint(&bytes[..])?;
        if let Err(error) = self.put(INDEX, &bytes) {
            let index = self.files.open(INDEX).and_then(|index| self.fingerprint(&index));
            if known != self.known && index.is_ok_and(|index| index == known) {
                // The new index is in place, and only the sync of its name has failed. A failed sync must not be
                // repeated, but the write can be repeated.
                self.put(INDEX, &bytes)?;
            } else {
                return Err(error);
            }
        }
        self.known = known;
        // The change is already stored. After a failure, reads fail until the frame is read again.
        let _ = self.record_version();
        Ok(())
    }

    fn frame_len(&self) -> io::Result<Option<u64>> {
        self.files.open(INDEX)?.size().map(Some)
    }

    fn stored_bytes(&self) -> u64 {
        let size = |name: &String| self.files.open(name)?.size();
        let names = self.files.names().unwrap_or_default();
        // A custom directory can state any sizes.
        names.iter().filter_map(|name| size(name).ok()).fold(0, u64::saturating_add)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.files.sync()
    }
}
