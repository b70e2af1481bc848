//! Whatever a file of Python's holds.

use std::path::Path;

use blosc2::{Error, ErrorKind, NDArray, Result, SChunk, Value};

use crate::carrier::Carrier;
use crate::ctable;
use crate::embed_store::Entry;
use crate::{BatchArray, CTable, EmbedStore, ListArray, ObjectArray, Tensor, TreeStore};

/// What a file, a directory or an entry of a store holds. Python's `blosc2.open`.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2_store::Object;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.b2nd");
/// NDArray::from_slice(&[1u8, 2, 3], &[3])?.save(&path)?;
/// match Object::open(&path)? {
///     Object::NDArray(array) => assert_eq!(array.shape(), [3]),
///     other => panic!("a {}", other.kind()),
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Object {
    /// An n-dimensional array.
    NDArray(NDArray),
    /// A super-chunk.
    SChunk(SChunk),
    /// A super-chunk with the shape of a tensor.
    Tensor(Tensor),
    /// Values, one a chunk.
    ObjectArray(ObjectArray),
    /// Values, some in each chunk.
    BatchArray(BatchArray),
    /// Lists of values.
    ListArray(ListArray),
    /// Frames in one super-chunk.
    EmbedStore(EmbedStore),
    /// A tree of files.
    TreeStore(TreeStore),
    /// A table with columns.
    CTable(CTable),
    /// A computation, or data elsewhere.
    Carrier(Carrier),
}

impl Object {
    /// Opens a file or a directory for reading.
    ///
    /// What it is its content says, not its name.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot
    ///   be read;
    /// - [`ErrorKind::InvalidData`]: it is nothing of these, was cut short or is
    ///   broken;
    /// - [`ErrorKind::Unsupported`]: items that are objects of Python's, or
    ///   serialised by Arrow.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if TreeStore::is_at(path)? {
            return TreeStore::open(path)?.into_object();
        }
        Self::from_schunk(SChunk::open(path)?)
    }

    /// Takes a super-chunk, for what its metalayers say it is.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        let schunk = match Carrier::of(schunk)? {
            Ok(carrier) => return Ok(Self::Carrier(carrier)),
            Err(schunk) => schunk,
        };
        let has = |name| schunk.meta().contains(name);
        if has("listarray") {
            return ListArray::from_schunk(schunk).map(Self::ListArray);
        }
        if has("vlarray") {
            return ObjectArray::from_schunk(schunk).map(Self::ObjectArray);
        }
        if has("batcharray") {
            return BatchArray::from_schunk(schunk).map(Self::BatchArray);
        }
        if EmbedStore::is_in(&schunk) {
            return EmbedStore::from_schunk(schunk)?.into_object();
        }
        if has("b2nd") || has("caterva") {
            return NDArray::from_schunk(schunk).map(Self::NDArray);
        }
        if Tensor::is_in(&schunk) {
            return Tensor::from_schunk(schunk).map(Self::Tensor);
        }
        Ok(Self::SChunk(schunk))
    }

    /// What it is, in one word: `ndarray`, `schunk`, `tensor`, `objectarray`, `batcharray`, `listarray`,
    /// `embedstore`, `treestore`, `dictstore`, `ctable`, or for a carrier `lazyexpr`, `lazyudf`, `proxy`,
    /// `remotearray`,
    /// `remotestore`, `c2array` or `carrier`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NDArray(_) => "ndarray",
            Self::SChunk(_) => "schunk",
            Self::Tensor(_) => "tensor",
            Self::ObjectArray(_) => "objectarray",
            Self::BatchArray(_) => "batcharray",
            Self::ListArray(_) => "listarray",
            Self::EmbedStore(_) => "embedstore",
            Self::TreeStore(store) if store.is_dict() => "dictstore",
            Self::TreeStore(_) => "treestore",
            Self::CTable(_) => "ctable",
            Self::Carrier(carrier) => carrier.kind().name(),
        }
    }

    /// The super-chunk that it is in, with its metalayers, but for rows of a list that are not flushed; `None` for trees,
    /// tables and references.
    pub fn schunk(&self) -> Option<&SChunk> {
        match self {
            Self::NDArray(array) => Some(array.schunk()),
            Self::SChunk(schunk) => Some(schunk),
            Self::Tensor(tensor) => Some(tensor.schunk()),
            Self::ObjectArray(array) => Some(array.schunk()),
            Self::BatchArray(array) => Some(array.schunk()),
            Self::ListArray(array) => Some(array.stored()),
            Self::EmbedStore(store) => Some(store.schunk()),
            Self::TreeStore(_) | Self::CTable(_) => None,
            Self::Carrier(carrier) => carrier.schunk(),
        }
    }

    /// The array.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: it is something else;
    /// [`ErrorKind::Unsupported`]: a carrier, which only stands for data.
    pub fn into_ndarray(self) -> Result<NDArray> {
        let doing = "open an array";
        match self {
            Self::NDArray(array) => Ok(array),
            Self::Carrier(carrier) => Err(carrier.refused(doing)),
            other => {
                let detail = format!("it is no array but a {}", other.kind());
                Err(Error::new(ErrorKind::TypeMismatch, doing, detail))
            }
        }
    }
}

impl EmbedStore {
    /// What an entry holds.
    ///
    /// It is a copy: changing it changes nothing in the store.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such entry;
    /// - as for [`Object::from_schunk`].
    pub fn get(&self, key: &str) -> Result<Object> {
        match self.entry(key) {
            Some(Entry::Reference(reference)) => {
                Ok(Object::Carrier(Carrier::of_reference(reference.clone())))
            }
            Some(_) => self.frame(key).and_then(Object::from_schunk),
            None => Err(self.missing("read an entry", key)),
        }
    }

    /// What it is: a table that was put into one buffer is one of these.
    pub(crate) fn into_object(self) -> Result<Object> {
        if CTable::is_in(&self, "")? {
            return CTable::new(self, "").map(Object::CTable);
        }
        Ok(Object::EmbedStore(self))
    }
}

impl TreeStore {
    /// Opens what a key holds, for reading.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such key;
    /// - as for [`Object::from_schunk`].
    pub fn get(&self, key: &str) -> Result<Object> {
        if let Some(object) = self.objects.get(key) {
            return match object.get("kind").and_then(Value::as_str) {
                Some("ctable") => CTable::new(self.for_table()?, key).map(Object::CTable),
                _ => Ok(Object::Carrier(Carrier::of_reference(object.clone()))),
            };
        }
        if self.embedded.contains(key) {
            return self.embed.get(key);
        }
        let schunk = self.leaf(key)?.ok_or_else(|| self.missing(key))?;
        Object::from_schunk(schunk)
    }

    /// Opens the array of a key, for reading.
    ///
    /// # Errors
    /// As for [`get`](Self::get) and [`Object::into_ndarray`].
    pub fn array(&self, key: &str) -> Result<NDArray> {
        self.get(key)?.into_ndarray()
    }

    /// What it is: the store of one table is that table.
    pub(crate) fn into_object(self) -> Result<Object> {
        if let Some(manifest) = self.embed.schunk().vlmeta().value("b2remote_manifest")? {
            return Ok(Object::Carrier(Carrier::of_remote_store(manifest)));
        }
        if CTable::is_in(&self, "")? {
            return CTable::new(self, "").map(Object::CTable);
        }
        Ok(Object::TreeStore(self))
    }
}

impl CTable {
    /// Opens the table of a file or a folder.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: it holds something else;
    /// - [`ErrorKind::InvalidData`]: its schema or its marks of live rows are missing or broken;
    /// - [`ErrorKind::Unsupported`]: its schema has a later version;
    /// - as for [`Object::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of(Object::open(path)?).map_err(|error| error.at(path))
    }

    /// Takes the table in a buffer. Python's `ctable_from_cframe`.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        Self::of(EmbedStore::from_cframe(bytes)?.into_object()?)
    }

    fn of(object: Object) -> Result<Self> {
        match object {
            Object::CTable(table) => Ok(table),
            other => {
                let detail = format!("it is no table but a {}", other.kind());
                Err(Error::new(ErrorKind::TypeMismatch, ctable::OPEN, detail))
            }
        }
    }
}
