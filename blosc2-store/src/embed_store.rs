//! Frames in the data of one super-chunk: Python's `EmbedStore`.

use std::io::Write;
use std::path::Path;

use blosc2::{Error, ErrorKind, OpenOptions, Result, SChunk, Value};

use crate::carrier::Carrier;
use crate::ctable::Leaves;
use crate::key;
use crate::tag::error;

/// The metalayer that says so, and those of the stores that have one for small things.
const NAMES: [&str; 3] = ["b2embed", "b2tree", "b2dict"];
/// The metalayer that says where each frame lies.
const MAP: &str = "estore_metadata";
/// Bytes of a chunk, Python's.
const CHUNKSIZE: usize = 8192;
const OPEN: &str = "open an embedded store";
const CHANGE: &str = "change an embedded store";

/// Arrays and super-chunks in one file, each a frame in its data: Python's `EmbedStore`, `.b2e`.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2_store::{EmbedStore, Object};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("both.b2e");
/// let mut store = EmbedStore::create(&path)?;
/// store.insert("/squares", NDArray::from_slice(&[0, 1, 4, 9], &[4])?.schunk())?;
/// let store = EmbedStore::open(&path)?;
/// assert_eq!(store.keys().collect::<Vec<_>>(), ["/squares"]);
/// let Object::NDArray(squares) = store.get("/squares")? else { panic!("it is an array") };
/// assert_eq!(squares.read::<i32>(2..4)?, [4, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct EmbedStore {
    schunk: SChunk,
    entries: Vec<(String, Entry)>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Frame {
        offset: u64,
        length: u64,
    },
    /// Data elsewhere.
    Reference(Value),
}

impl EmbedStore {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// As for [`SChunk::open`] and [`from_schunk`](Self::from_schunk).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_schunk(SChunk::open(path)?)
    }

    /// Opens a file for reading and changing.
    ///
    /// # Errors
    /// As for [`SChunk::open_rw`] and [`from_schunk`](Self::from_schunk).
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_schunk(SChunk::open_rw(path)?)
    }

    /// Makes an empty one in a new file.
    ///
    /// # Errors
    /// As for [`SChunk::create`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        Self::create_as("b2embed", path.as_ref())
    }

    /// The same for a store whose small things it is to hold.
    pub(crate) fn create_as(name: &str, path: &Path) -> Result<Self> {
        Self::empty(Self::options(name)?.create_new(true).open(path)?)
    }

    /// Makes an empty one in memory.
    ///
    /// # Errors
    /// As for [`SChunk::in_memory`].
    pub fn in_memory() -> Result<Self> {
        Self::empty(Self::options("b2embed")?.in_memory()?)
    }

    fn options(name: &str) -> Result<OpenOptions> {
        let version = Value::from([("version", 1.into())]).to_msgpack()?;
        Ok(OpenOptions::new().chunksize(CHUNKSIZE).meta(name, &version))
    }

    fn empty(schunk: SChunk) -> Result<Self> {
        let mut store = Self { schunk, entries: Vec::new() };
        store.write_map()?;
        Ok(store)
    }

    /// Takes one in a buffer.
    ///
    /// # Errors
    /// As for [`SChunk::from_cframe`] and [`from_schunk`](Self::from_schunk).
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        Self::from_schunk(SChunk::from_cframe(bytes)?)
    }

    /// Takes a super-chunk that holds one.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it has no metalayer that says so, or a list of entries that does not fit.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let entries = match schunk.vlmeta().value(MAP)? {
            _ if !Self::is_in(&schunk) => Err("it is a super-chunk, no store".to_owned()),
            None => Ok(Vec::new()),
            Some(map) => entries(&map, schunk.nbytes()),
        };
        let entries =
            entries.map_err(|detail| error(&schunk, ErrorKind::InvalidData, OPEN, detail))?;
        Ok(Self { schunk, entries })
    }

    /// Whether a super-chunk holds one.
    pub(crate) fn is_in(schunk: &SChunk) -> bool {
        NAMES.iter().any(|name| schunk.meta().contains(name))
    }

    /// The keys of all entries, in the order of the file.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Whether there is an entry of this key.
    pub fn contains(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// How many entries there are.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The super-chunk of an entry, whatever it holds.
    ///
    /// # Errors
    /// As for [`get`](Self::get); [`ErrorKind::Unsupported`] for references to data elsewhere.
    pub fn frame(&self, key: &str) -> Result<SChunk> {
        let doing = "read an entry";
        match self.entry(key) {
            Some(Entry::Frame { offset, length }) => {
                let bytes = self.schunk.items::<u8>(*offset..*offset + *length)?;
                OpenOptions::new().write(true).from_cframe(bytes)
            }
            Some(Entry::Reference(reference)) => {
                let carrier = Carrier::of_reference(reference.clone());
                Err(error(&self.schunk, ErrorKind::Unsupported, doing, format!("it is {carrier}")))
            }
            None => Err(self.missing(doing, key)),
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|(name, _)| name == key).map(|(_, entry)| entry)
    }

    pub(crate) fn missing(&self, doing: &str, key: &str) -> Error {
        error(&self.schunk, ErrorKind::NotFound, doing, format!("no key `{key}`"))
    }

    /// Adds a super-chunk, or replaces the entry of this key; of an array, [`NDArray::schunk`] is its super-chunk.
    ///
    /// The bytes of what is replaced stay in the file.
    ///
    /// [`NDArray::schunk`]: blosc2::NDArray::schunk
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a key that does not start with `/`, or with empty or special parts;
    /// - [`ErrorKind::ReadOnly`]: opened for reading;
    /// - as for [`SChunk::to_cframe`] and [`SChunk::append`].
    pub fn insert(&mut self, key: &str, schunk: &SChunk) -> Result<()> {
        let invalid = |what| error(&self.schunk, ErrorKind::InvalidArgument, CHANGE, what);
        key::check(key).map_err(invalid)?;
        let frame = schunk.to_cframe()?;
        let (offset, length) = (self.schunk.nbytes(), frame.len() as u64);
        let mut writer = self.schunk.writer(CHUNKSIZE)?;
        writer.write_all(&frame)?;
        writer.finish()?;
        self.entries.retain(|(name, _)| name != key);
        self.entries.push((key.to_owned(), Entry::Frame { offset, length }));
        self.write_map()
    }

    /// Removes an entry; its bytes stay in the file.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such entry;
    /// - [`ErrorKind::ReadOnly`]: opened for reading.
    pub fn remove(&mut self, key: &str) -> Result<()> {
        if !self.contains(key) {
            return Err(self.missing(CHANGE, key));
        }
        self.entries.retain(|(name, _)| name != key);
        self.write_map()
    }

    fn write_map(&mut self) -> Result<()> {
        let map = self.entries.iter().map(|(key, entry)| {
            let entry = match entry {
                Entry::Frame { offset, length } => {
                    Value::from([("offset", (*offset).into()), ("length", (*length).into())])
                }
                Entry::Reference(reference) => reference.clone(),
            };
            (Value::from(key.as_str()), entry)
        });
        let map = Value::Map(map.collect());
        let end = self.schunk.nbytes().into();
        let content = Value::from([("embed_map", map), ("current_offset", end)]);
        self.schunk.vlmeta_mut().set_value(MAP, &content)
    }

    /// The super-chunk that holds all.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    pub(crate) fn schunk_mut(&mut self) -> &mut SChunk {
        &mut self.schunk
    }

    /// The super-chunk that holds all.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }
}

/// The entries of a map, in data of so many bytes. The error is what is wrong.
fn entries(map: &Value, nbytes: u64) -> Result<Vec<(String, Entry)>, String> {
    let unlike = || format!("its metalayer `{MAP}` is no map of entries");
    let Some(Value::Map(pairs)) = map.get("embed_map") else { return Err(unlike()) };
    let entries = pairs.iter().map(|(key, place)| {
        let key = key.as_str().ok_or_else(unlike)?;
        if place.get("urlbase").is_some() || place.get("path").is_some() {
            return Ok((key.to_owned(), Entry::Reference(place.clone())));
        }
        let number = |name| place.get(name).and_then(Value::as_u64).ok_or_else(unlike);
        let (offset, length) = (number("offset")?, number("length")?);
        if offset.checked_add(length).is_none_or(|end| end > nbytes) {
            return Err(format!(
                "its entry `{key}` has {length} bytes at {offset}, beyond the end of its {nbytes}"
            ));
        }
        Ok((key.to_owned(), Entry::Frame { offset, length }))
    });
    entries.collect()
}

impl Leaves for EmbedStore {
    fn leaf(&self, key: &str, _ending: &str) -> Result<Option<SChunk>> {
        match self.entry(key) {
            Some(Entry::Frame { .. }) => self.frame(key).map(Some),
            _ => Ok(None),
        }
    }
}
