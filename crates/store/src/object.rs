//! Objects: the container in a file, identified by its metadata.

use std::path::Path;

use crate::blosc2::storage::{Folder, ReadAt, ReadOnly};
use crate::blosc2::{Error, ErrorKind, Limits, NDArray, Result, SChunk, Target, Value};

use crate::carrier::Carrier;
use crate::ctable;
use crate::embed_store::Entry;
use crate::limits::options;
use crate::{BatchArray, CTable, EmbedStore, ListArray, ObjectArray, Tensor, TreeStore};

/// The array, store, table or other container in a file, a directory or an entry of a store. Python: `blosc2.open`.
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
#[allow(clippy::large_enum_variant, reason = "there is one for each opened container")]
pub enum Object {
    /// An n-dimensional array.
    NDArray(NDArray),
    /// A super-chunk.
    SChunk(SChunk),
    /// A tensor: the items of an array, in a super-chunk that stores the shape, but no chunk shape and no block shape.
    Tensor(Tensor),
    /// An array of values. Each value is one chunk.
    ObjectArray(ObjectArray),
    /// An array of values in batches. Each batch is one chunk.
    BatchArray(BatchArray),
    /// An array of lists.
    ListArray(ListArray),
    /// A store of arrays and super-chunks in one file.
    EmbedStore(EmbedStore),
    /// A store of arrays, super-chunks and tables in a directory or a zip file.
    TreeStore(TreeStore),
    /// A table with columns.
    CTable(CTable),
    /// A Python object that holds no data: a computation, or a reference to data elsewhere.
    Carrier(Carrier),
}

impl Object {
    /// Opens a file or a directory for reading. The content of the file determines the type of the container; the file
    /// name does not matter.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with_limits(path, Limits::default(), None)
    }

    /// Opens a file or a directory for reading, like [`open`](Self::open), with limits for untrusted input; see
    /// [`OpenOptions::limits`](blosc2::OpenOptions::limits) and
    /// [`OpenOptions::max_read`](blosc2::OpenOptions::max_read). With `None`, `max_read` has its default.
    ///
    /// The limits apply to the container and to everything in it: the entries of a store, the columns of a table, and
    /// the entries of stores and tables that are entries.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_with_limits(
        path: impl AsRef<Path>,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self> {
        let path = path.as_ref();
        if TreeStore::is_at(path)? {
            return TreeStore::open_with_limits(path, limits, max_read)?.into_object();
        }
        Self::from_schunk(options(limits, max_read).open(path)?)
    }

    /// Opens the container in a custom storage backend, such as object storage, for reading. The content determines the
    /// type of the container.
    ///
    /// A zip file is a store: its members are read in place, without unpacking the file.
    ///
    /// ```
    /// use blosc2::NDArray;
    /// use blosc2_store::Object;
    ///
    /// let bytes = NDArray::from_slice(&[1.5f32, 2.5], &[2])?.schunk().to_cframe()?;
    /// let Object::NDArray(array) = Object::open_source(bytes)? else { unreachable!() };
    /// assert_eq!(array.shape(), [2]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_source(source: impl ReadAt + Send + Sync + 'static) -> Result<Self> {
        Self::open_source_with_limits(source, Limits::default(), None)
    }

    /// Opens the container in a custom storage backend for reading, like [`open_source`](Self::open_source), with the
    /// limits of [`open_with_limits`](Self::open_with_limits).
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_source_with_limits(
        source: impl ReadAt + Send + Sync + 'static,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self> {
        if TreeStore::is_in(&source)? {
            let store = TreeStore::open_source_with_limits(source, limits, max_read)?;
            return store.into_object();
        }
        Self::from_schunk(options(limits, max_read).open(Target::storage(ReadOnly::new(source)))?)
    }

    /// Opens the store or table in a custom directory for reading; see [`TreeStore::open_folder`].
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_folder<F>(folder: F) -> Result<Self>
    where
        F: Folder<File: Send + Sync + 'static> + 'static,
    {
        TreeStore::open_folder(folder)?.into_object()
    }

    /// Opens the container in a super-chunk. The metalayers of the super-chunk identify the container. Everything in the
    /// container is opened with the [`limits`](blosc2::OpenOptions::limits),
    /// [`max_read`](blosc2::OpenOptions::max_read) and [threads](blosc2::DParams::threads) of the super-chunk.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
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
        if schunk.info().is_array {
            return NDArray::from_schunk(schunk).map(Self::NDArray);
        }
        if Tensor::is_in(&schunk) {
            return Tensor::from_schunk(schunk).map(Self::Tensor);
        }
        Ok(Self::SChunk(schunk))
    }

    /// Returns the name of the type of the container:
    /// - `ndarray`, `schunk`, `tensor`, `objectarray`, `batcharray`, `listarray`, `embedstore`, `treestore`,
    ///   `dictstore` or `ctable`;
    /// - for a [`Carrier`]: `lazyexpr`, `lazyudf`, `proxy`, `remotearray`, `remotestore`, `c2array` or `carrier`.
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

    /// Returns the super-chunk of the container. Returns `None` for a [`TreeStore`], a [`CTable`], and a carrier
    /// without a super-chunk. The super-chunk of a [`ListArray`] does not contain the buffered rows.
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

    /// Returns the array of an [`Object::NDArray`]. This method does not convert other containers, such as a
    /// [`Tensor`].
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the container is not an [`Object::NDArray`];
    /// - [`ErrorKind::Unsupported`]: the container is a carrier, which holds no data.
    pub fn into_ndarray(self) -> Result<NDArray> {
        let doing = "open an array";
        match self {
            Self::NDArray(array) => Ok(array),
            Self::Carrier(carrier) => Err(carrier.refused(doing)),
            other => {
                let detail = format!("it is a {}, not an array", other.kind());
                Err(Error::new(ErrorKind::TypeMismatch, doing, detail))
            }
        }
    }
}

impl EmbedStore {
    /// Opens an in-memory copy of an entry. Changes to the copy do not change the store.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn get(&self, key: &str) -> Result<Object> {
        match self.entry(key) {
            Some(Entry::Reference(reference)) => {
                Ok(Object::Carrier(Carrier::of_reference(reference.clone())))
            }
            Some(_) => self.frame(key).and_then(Object::from_schunk),
            None => Err(self.missing(key)),
        }
    }

    /// Returns the store as an object: a table if the store holds one.
    pub(crate) fn into_object(self) -> Result<Object> {
        if CTable::is_in(&self, "")? {
            return CTable::new(self, "").map(Object::CTable);
        }
        Ok(Object::EmbedStore(self))
    }
}

impl TreeStore {
    /// Opens an entry for reading. Python: `store[key]`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn get(&self, key: &str) -> Result<Object> {
        if let Some(object) = self.objects.get(key) {
            return match object.get("kind").and_then(Value::as_str) {
                Some("ctable") => CTable::new(self.for_table(key)?, key).map(Object::CTable),
                _ => Ok(Object::Carrier(Carrier::of_reference(object.clone()))),
            };
        }
        if self.embedded.contains(key) {
            return self.embed.get(key);
        }
        let schunk = self.leaf(key)?.ok_or_else(|| self.missing(key))?;
        Object::from_schunk(schunk)
    }

    /// Opens an array of the store for reading.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - [`ErrorKind::TypeMismatch`]: the entry is not an array;
    /// - [`ErrorKind::Unsupported`]: the entry is a [`Carrier`], which holds no data;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn array(&self, key: &str) -> Result<NDArray> {
        self.get(key)?.into_ndarray()
    }

    /// Returns the store as an object, as [`Object::open`] does: a table if the store holds one.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn into_object(self) -> Result<Object> {
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
    /// Opens the table in a file or a directory for reading.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the container is not a table;
    /// - [`ErrorKind::InvalidData`]: the schema or the mask of valid rows is missing or invalid;
    /// - [`ErrorKind::Unsupported`]: the version of the schema is newer than this crate supports;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::of(Object::open(path)?).map_err(|error| error.at(path))
    }

    pub(crate) fn of(object: Object) -> Result<Self> {
        match object {
            Object::CTable(table) => Ok(table),
            other => {
                let detail = format!("it is a {}, not a table", other.kind());
                Err(Error::new(ErrorKind::TypeMismatch, ctable::OPEN, detail))
            }
        }
    }
}
