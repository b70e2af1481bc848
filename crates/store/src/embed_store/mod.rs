//! Embedded stores: frames in the data of one super-chunk. Python: `EmbedStore`.

#[cfg(feature = "c")]
mod change;

use std::collections::HashMap;
use std::io::Cursor;
use std::ops::Range;

use crate::blosc2::{Error, ErrorKind, OpenOptions, Result, SChunk, Target, Value};

use blosc2_format::chunk::Params;
use blosc2_format::frame::{Metalayer, Writer};

use crate::carrier::Carrier;
use crate::ctable::Leaves;
use crate::limits::options_of;
use crate::tag::{error, shortened};

/// The metalayers that mark an embedded store: its own, and those of the stores that contain one.
const NAMES: [&str; 3] = ["b2embed", "b2tree", "b2dict"];
/// The metalayer with the offset and length of each frame.
const MAP: &str = "estore_metadata";
/// Bytes of a chunk, as in Python.
const CHUNKSIZE: usize = 8192;
const OPEN: &str = "open an embedded store";
const READ: &str = "read an entry";
const CHANGE: &str = "change an embedded store";

/// A store of arrays and super-chunks in one file (`.b2e`). The file is a super-chunk; its data are the frames of all
/// entries. Python: `EmbedStore`.
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
/// let Object::NDArray(squares) = store.get("/squares")? else { panic!("not an array") };
/// assert_eq!(squares.read::<Vec<i32>>(2..4)?, [4, 9]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Several writers
/// Any number of handles, threads and programs can change one file at the same time if all of them lock the file.
/// [`open_rw`](Self::open_rw) and [`create`](Self::create) lock it; Python locks it with `locking=True`. A store that
/// is opened by [`from_schunk`](Self::from_schunk) locks its file if the super-chunk was opened with
/// [`locking`](blosc2::OpenOptions::locking).
///
/// Each change locks the file `FILE.b2lock` (the full file name and `.b2lock`), and first reads the changes by other
/// handles. This lock file is never removed.
///
/// [`keys`](Self::keys) and [`get`](Self::get) return the entries that existed when this handle was opened or made its
/// last change. To see later changes by other handles, reopen the store.
///
/// If a program dies during a change, the file may be [unfinished](blosc2::OpenOptions#crash-recovery). `open_rw` then
/// recovers the file.
#[derive(Debug)]
pub struct EmbedStore {
    schunk: SChunk,
    entries: Vec<(String, Entry)>,
    /// The index of each key in `entries`.
    places: HashMap<String, usize>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    Frame {
        offset: u64,
        length: u64,
    },
    /// A reference to data elsewhere.
    Reference(Value),
}

impl EmbedStore {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Opens the store in a contiguous frame in memory.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        Self::from_schunk(SChunk::open(bytes)?)
    }

    /// A store without entries, for reading. Options: those for the frames beside it.
    pub(crate) fn without_entries(options: &OpenOptions) -> Result<Self> {
        let version = Value::from([("version", 1.into())]).to_msgpack()?;
        let metalayers = [Metalayer { name: NAMES[0].to_owned(), content: version }];
        let frame = Writer::new(Cursor::new(Vec::new()), Params::default(), &metalayers);
        match frame.and_then(Writer::finish) {
            Ok(frame) => options.open(frame.into_inner()).and_then(Self::from_schunk),
            Err(fault) => Err(Error::new(ErrorKind::InvalidData, OPEN, fault)),
        }
    }

    /// Opens the store in a super-chunk. Its entries are opened with the [`limits`](blosc2::OpenOptions::limits),
    /// [`max_read`](blosc2::OpenOptions::max_read) and [threads](blosc2::DParams::threads) of the super-chunk.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: the metalayer of an embedded store is missing, or its map of entries is invalid.
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        if !Self::is_in(&schunk) {
            let detail = "it is a super-chunk, not a store";
            return Err(error(&schunk, ErrorKind::InvalidData, OPEN, detail));
        }
        let entries = read_map(&schunk, OPEN)?;
        let places = places(&entries);
        Ok(Self { schunk, entries, places })
    }

    /// Returns whether the metalayers of a super-chunk identify it as an embedded store.
    pub fn is_in(schunk: &SChunk) -> bool {
        NAMES.iter().any(|name| schunk.meta().contains(name))
    }

    /// Returns the keys of all entries, in stored order.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &str> {
        self.entries.iter().map(|(key, _)| key.as_str())
    }

    /// Returns an iterator over the key of each entry and the byte range of its frame in the data of the
    /// [super-chunk](Self::schunk), in stored order. The range is `None` for a reference to data elsewhere.
    ///
    /// In an undamaged store the ranges do not overlap.
    ///
    /// ```
    /// use blosc2::SChunk;
    /// use blosc2_store::EmbedStore;
    ///
    /// let mut store = EmbedStore::in_memory()?;
    /// store.insert("/a", &SChunk::in_memory::<u8>(&Default::default())?)?;
    /// let (key, range) = store.frame_ranges().next().unwrap();
    /// assert_eq!(key, "/a");
    /// let frame = store.schunk().read::<u8>(range.unwrap())?;
    /// assert_eq!(&frame[2..9], b"b2frame");
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn frame_ranges(&self) -> impl ExactSizeIterator<Item = (&str, Option<Range<u64>>)> {
        self.entries.iter().map(|(key, entry)| match entry {
            Entry::Frame { offset, length } => (key.as_str(), Some(*offset..*offset + *length)),
            Entry::Reference(_) => (key.as_str(), None),
        })
    }

    /// Returns whether there is an entry with this key.
    pub fn contains(&self, key: &str) -> bool {
        self.entry(key).is_some()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether the store has no entries.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Returns an in-memory copy of the super-chunk of an entry.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - [`ErrorKind::Unsupported`]: the entry is a reference to data elsewhere;
    /// - [`ErrorKind::InvalidData`]: the frame of the entry is damaged;
    /// - the errors of [reading values](crate#reading-values).
    pub fn frame(&self, key: &str) -> Result<SChunk> {
        match self.entry(key) {
            Some(Entry::Frame { offset, length }) => {
                let bytes = self.schunk.read::<u8>(*offset..*offset + *length)?;
                let options = options_of(&self.schunk);
                #[cfg(feature = "c")]
                let options = options.write(true);
                options.open(bytes)
            }
            Some(Entry::Reference(reference)) => {
                let carrier = Carrier::of_reference(reference.clone());
                Err(error(&self.schunk, ErrorKind::Unsupported, READ, format!("it is {carrier}")))
            }
            None => Err(self.missing(key)),
        }
    }

    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        self.places.get(key).map(|&place| &self.entries[place].1)
    }

    pub(crate) fn missing(&self, key: &str) -> Error {
        let rooted = format!("/{key}");
        let hint =
            if self.contains(&rooted) { format!("; the key is `{rooted}`") } else { String::new() };
        let detail = format!("there is no key `{key}`{hint}");
        error(&self.schunk, ErrorKind::NotFound, READ, detail)
    }

    /// Returns the super-chunk that holds all entries.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Converts the store into the super-chunk that holds all entries.
    pub fn into_schunk(self) -> SChunk {
        self.schunk
    }
}

/// The index of each key; of the first one, if a damaged map contains a key more than once.
fn places(entries: &[(String, Entry)]) -> HashMap<String, usize> {
    entries.iter().enumerate().rev().map(|(place, (key, _))| (key.clone(), place)).collect()
}

/// Reads the map of entries; it is empty in a store that is being created.
fn read_map(schunk: &SChunk, doing: &str) -> Result<Vec<(String, Entry)>> {
    let Some(map) = schunk.vlmeta().value(MAP)? else { return Ok(Vec::new()) };
    let entries = entries(&map, schunk.nbytes());
    entries.map_err(|detail| error(schunk, ErrorKind::InvalidData, doing, detail))
}

/// Parses the map of entries, in data of `nbytes` bytes. The error describes the fault.
fn entries(map: &Value, nbytes: u64) -> Result<Vec<(String, Entry)>, String> {
    let unlike = || format!("its metalayer `{MAP}` is not a map of entries");
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
                "its entry `{}` has {length} bytes at offset {offset}, beyond its {nbytes} bytes of data",
                shortened(key)
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
