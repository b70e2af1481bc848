//! Creating and changing embedded stores.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use super::*;
use crate::blosc2::{ErrorKind, OpenOptions, Result, SChunk, SChunkWriter, Target, Value};
use crate::ctable::Leaves;
use crate::ctable::LeavesMut;
use crate::key;
use crate::limits::check_readable;
use crate::tag::error;

impl EmbedStore {
    /// Opens a file for reading and changing, with [locking](OpenOptions::locking): see [several
    /// writers](Self#several-writers). If a program died during a change, this method first rolls the change back or
    /// completes it.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: this program already has a handle without locking that is open for changing the file;
    /// - [`ErrorKind::Unsupported`]: the file has several names (hard links);
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn open_rw(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(OpenOptions::new().write(true).locking(true).open(target)?)
    }

    /// Creates an empty store in a new file, and opens the store like [`open_rw`](Self::open_rw).
    ///
    /// # Errors
    /// Fails with the errors of [creating a container](crate#creating-a-container).
    pub fn create(target: impl Into<Target>) -> Result<Self> {
        Self::empty(Self::options("b2embed")?.create_new(true).locking(true).open(target)?)
    }

    /// Creates the embedded store of a `TreeStore` or `DictStore`.
    pub(crate) fn create_as(name: &str, path: &Path) -> Result<Self> {
        Self::empty(Self::options(name)?.create_new(true).open(path)?)
    }

    /// Creates an empty store in memory.
    ///
    /// # Errors
    /// Fails with the errors of [creating a container](crate#creating-a-container).
    pub fn in_memory() -> Result<Self> {
        Self::empty(Self::options("b2embed")?.open(Target::memory())?)
    }

    fn options(name: &str) -> Result<OpenOptions> {
        let version = Value::from([("version", 1.into())]).to_msgpack()?;
        Ok(OpenOptions::new().chunksize(CHUNKSIZE).meta(name, &version))
    }

    fn empty(schunk: SChunk) -> Result<Self> {
        let mut store = Self { schunk, entries: Vec::new(), places: HashMap::new() };
        store.change(|_, _| Ok(()))?;
        Ok(store)
    }

    /// Adds a super-chunk, or replaces the entry with this key. For an array, pass its [`NDArray::schunk`]. Python:
    /// `store[key] = value`.
    ///
    /// Replacing an entry does not make the file smaller: the bytes of the old entry stay in the file.
    ///
    /// [`NDArray::schunk`]: blosc2::NDArray::schunk
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the key is not [valid](crate::TreeStore#keys);
    /// - [`ErrorKind::InvalidData`]: a chunk of `schunk` is damaged;
    /// - [`ErrorKind::Unsupported`]: `schunk` has a chunk in the Blosc1 format;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn insert(&mut self, key: &str, schunk: &SChunk) -> Result<()> {
        let invalid = |what| error(&self.schunk, ErrorKind::InvalidArgument, CHANGE, what);
        key::check(key).map_err(invalid)?;
        let frame = schunk.to_cframe()?;
        self.change(|schunk, entries| {
            let (offset, length) = (schunk.nbytes(), frame.len() as u64);
            let mut writer = SChunkWriter::new(&mut *schunk, CHUNKSIZE)?;
            writer.write_all(&frame)?;
            writer.finish()?;
            // The bytes of an entry stay in the file, also when it is removed.
            check_readable(schunk, CHANGE, length, schunk.cbytes())?;
            entries.retain(|(each, _)| each != key);
            entries.push((key.to_owned(), Entry::Frame { offset, length }));
            Ok(())
        })
    }

    /// Removes an entry. The file does not become smaller: the bytes of the entry stay in the file.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn remove(&mut self, key: &str) -> Result<()> {
        self.change(|schunk, entries| {
            let count = entries.len();
            entries.retain(|(each, _)| each != key);
            if entries.len() < count {
                return Ok(());
            }
            let detail = format!("there is no key `{key}`");
            Err(error(schunk, ErrorKind::NotFound, CHANGE, detail))
        })
    }

    /// Removes the entries with such keys by one change, if there are any.
    pub(crate) fn remove_all(&mut self, goes: impl Fn(&str) -> bool) -> Result<()> {
        if !self.entries.iter().any(|(key, _)| goes(key)) {
            return Ok(());
        }
        self.change(|_, entries| {
            entries.retain(|(key, _)| !goes(key));
            Ok(())
        })
    }

    /// Changes the entries, in the file first, while no other handle changes it. Data and map are one change of the file:
    /// Python 4.14.1 corrupts its memory if it adds an entry to a file with data after the last entry of the map.
    fn change<R>(
        &mut self,
        change: impl FnOnce(&mut SChunk, &mut Vec<(String, Entry)>) -> Result<R>,
    ) -> Result<R> {
        let (result, changed) = self.schunk.transaction(|schunk| {
            // Other handles may have changed it.
            let mut changed = read_map(schunk, CHANGE)?;
            let result = change(schunk, &mut changed)?;
            write_map(schunk, &changed)?;
            Ok((result, changed))
        })?;
        self.places = places(&changed);
        self.entries = changed;
        Ok(result)
    }

    /// Re-reads the list of entries, so that the changes of other handles and programs are visible; see
    /// [`SChunk::refresh`]. Until this call, [`keys`](Self::keys), [`contains`](Self::contains) and
    /// [`frame`](Self::frame) use the entries that this handle has read last. All methods that change the store also
    /// re-read the entries.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container). After an error, the entries are
    /// unchanged.
    pub fn refresh(&mut self) -> Result<()> {
        self.schunk.refresh()?;
        let entries = read_map(&self.schunk, OPEN)?;
        (self.places, self.entries) = (places(&entries), entries);
        Ok(())
    }

    pub(crate) fn schunk_mut(&mut self) -> &mut SChunk {
        &mut self.schunk
    }
}

fn write_map(schunk: &mut SChunk, entries: &[(String, Entry)]) -> Result<()> {
    let map = entries.iter().map(|(key, entry)| {
        let entry = match entry {
            Entry::Frame { offset, length } => {
                Value::from([("offset", (*offset).into()), ("length", (*length).into())])
            }
            Entry::Reference(reference) => reference.clone(),
        };
        (Value::from(key.as_str()), entry)
    });
    let map = Value::Map(map.collect());
    let content = [("embed_map", map), ("current_offset", schunk.nbytes().into())];
    schunk.vlmeta_mut().set_value(MAP, &Value::from(content))
}

impl LeavesMut for EmbedStore {
    fn leaf_for_changes(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        self.leaf(key, ending)
    }

    fn put(&mut self, key: &str, _ending: &str, schunk: &SChunk) -> Result<()> {
        self.insert(key, schunk)
    }

    fn discard(&mut self, key: &str, _ending: &str) -> Result<()> {
        self.remove_all(|each| each == key)
    }

    fn discard_below(&mut self, key: &str) -> Result<()> {
        self.remove_all(|each| key::is_below(each, key))
    }

    fn has_indexes(&self) -> bool {
        false
    }

    fn finish(&mut self) -> Result<()> {
        Ok(())
    }
}
