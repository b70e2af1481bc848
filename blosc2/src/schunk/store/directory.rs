//! A directory: an index file, and a file for each chunk.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::PathBuf;

use blosc2_format::directory::{INDEX, chunk_name};
use blosc2_format::frame::{Layout, Offset, Outline, Stores};
use blosc2_format::{Limits, ReadAt};

use super::{
    Around, Located, NOTHING, Opened, Source, Stamp, Stamped, Store, around_of, missing,
    read_outline,
};
use crate::bytes::Safety;
use crate::schunk::files;
use crate::{Error, Result};

/// The index file until it takes the place of the old one.
const NEW_INDEX: &str = "chunks.b2frame.new";

/// A directory, by its absolute path.
#[derive(Debug)]
pub(crate) struct Directory {
    path: PathBuf,
    safety: Safety,
    /// The index file, while parts of it may still be read.
    index: Option<Stamped>,
}

impl Directory {
    pub(crate) fn new(path: PathBuf, safety: Safety) -> Self {
        Self { path, safety, index: None }
    }

    fn is_durable(&self) -> bool {
        self.safety == Safety::PowerLoss
    }

    fn write(&self, name: &str, bytes: &[&[u8]], doing: &str) -> Result<()> {
        let path = self.path.join(name);
        let written = File::create(&path).and_then(|mut file| {
            bytes.iter().try_for_each(|bytes| file.write_all(bytes))?;
            if self.is_durable() { file.sync_all() } else { Ok(()) }
        });
        written.map_err(|error| Error::from_io(doing, &path, error))
    }
}

impl Store for Directory {
    fn layout(&self) -> Layout {
        Layout::Directory
    }

    fn is_contiguous(&self) -> Option<bool> {
        Some(false)
    }

    fn opened(&self) -> Opened<'_> {
        Opened::Directory(&self.path)
    }

    fn read(
        &mut self,
        limits: &Limits,
        typesize: Option<u32>,
        doing: &str,
    ) -> Result<Option<Outline>> {
        let path = self.path.join(INDEX);
        let mut index = Stamped::new(File::open(path).map_err(|error| Error::of_io(doing, error))?);
        index.stamp = Stamp::of(&*index.storage);
        let outline = read_outline(&*index.storage, self.layout(), limits, typesize, doing)?;
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

    fn chunk(&self, _: &Outline, place: u64) -> Result<Located<'_>> {
        let path = self.path.join(chunk_name(place));
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => missing("its file is not there").at(&path),
            _ => Error::from_io(super::READ, &path, error),
        };
        // A pipe would be waited for.
        let metadata = fs::metadata(&path).map_err(failed)?;
        if !metadata.is_file() {
            return Err(missing("it is in no file").at(&path));
        }
        let file = File::open(&path).map_err(failed)?;
        Ok(Located::Stored(Source::File(file), 0, metadata.len()))
    }

    fn commit(
        &mut self,
        outline: &mut Outline,
        stores: Stores<'_>,
        freed: &[u64],
        doing: &str,
    ) -> Result<()> {
        self.add(outline, stores, doing)?;
        self.finish(outline, doing)?;
        if freed.is_empty() {
            return Ok(());
        }
        // A broken index may name a file twice.
        let place = |number| outline.offset(number, self.source()).ok()?.and_then(Offset::place);
        let named: HashSet<u64> = (0..outline.nchunks()).filter_map(place).collect();
        for place in freed.iter().filter(|place| !named.contains(place)) {
            // What stays is not part of the frame any more.
            let _ = fs::remove_file(self.path.join(chunk_name(*place)));
        }
        Ok(())
    }

    fn add(&mut self, _: &Outline, stores: Stores<'_>, doing: &str) -> Result<()> {
        let mut stores = stores.iter();
        stores.try_for_each(|(place, bytes)| self.write(&chunk_name(*place), &[bytes], doing))
    }

    fn finish(&mut self, outline: &mut Outline, doing: &str) -> Result<()> {
        let failed = |error| Error::from_io(doing, &self.path, error);
        let Around { header, index, trailer } = around_of(outline, doing)?;
        // The old index stands until the new one takes its name.
        self.write(NEW_INDEX, &[&header, &index, &trailer], doing)?;
        let sync = || if self.is_durable() { files::sync_folder(&self.path) } else { Ok(()) };
        sync().map_err(failed)?;
        fs::rename(self.path.join(NEW_INDEX), self.path.join(INDEX)).map_err(failed)?;
        // The new index is there now, whether or not the device has its name yet.
        sync().map_err(failed)
    }

    fn frame_len(&self) -> io::Result<Option<u64>> {
        fs::metadata(self.path.join(INDEX)).map(|metadata| Some(metadata.len()))
    }

    fn stored_bytes(&self) -> u64 {
        let files = fs::read_dir(&self.path).into_iter().flatten().flatten();
        files.filter_map(|file| file.metadata().ok()).map(|metadata| metadata.len()).sum()
    }

    fn sync(&mut self) -> io::Result<()> {
        files::sync_directory(&self.path)
    }
}
