//! Tree stores: arrays in a directory or a zip file. Python: `TreeStore`, `DictStore`.

mod change;
mod place;
mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2::storage::{ReadAt, ReadOnly};
use blosc2::{Error, ErrorKind, OpenOptions, Result, SChunk, Value};

use crate::archive::{self, Archive, files_of};
use crate::ctable::{CTable, Leaves, all_values};
use crate::embed_store::EmbedStore;
use crate::key;
use place::{Place, Stamp, folder_beside, put_folder};

/// The file with the embedded store of small entries, which every store has.
const INDEX: &str = "embed.b2e";
/// The file extensions of arrays, super-chunks and batch arrays.
const ENDINGS: [&str; 3] = ["b2nd", "b2f", "b2b"];
/// The end of the name of a file that makes its directory a sparse frame.
const SPARSE_INDEX: &str = "/chunks.b2frame";
/// The key below a group that holds its attributes.
const ATTRIBUTES: &str = "/__vlmeta__";
/// The metalayer with the registry of tables and other objects.
const REGISTRY: &str = "_object_registry";

const OPEN: &str = "open a store";
const MAKE: &str = "make a store";
const READ: &str = "read from a store";

/// Arrays and super-chunks in a tree of groups, as files in a directory (`.b2d`) or a zip file (`.b2z`). Python:
/// `TreeStore`, and `DictStore`, which has no groups.
///
/// Keys are paths such as `/group/array`. A key is valid if it starts with `/`, no part is empty, `.` or `..`, and it
/// has up to 4096 bytes and 256 parts. New keys must also not contain `\`, `:` or control characters.
///
/// Opening a zip file reads its list of members and the metadata of the store, but no arrays. The members are stored
/// without zip compression, so that each array is read in place. Opening an entry fails with
/// [`Unsupported`](blosc2::ErrorKind::Unsupported) if its member is compressed or encrypted.
///
/// ```
/// use blosc2::NDArray;
/// use blosc2_store::TreeStore;
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("runs.b2z");
/// let mut store = TreeStore::create(&path)?;
/// store.insert("/first/speed", NDArray::from_slice(&[1.5f32, 2.5], &[2])?.schunk())?;
/// let mut table = store.create_array("/first/table", |builder| builder.zeros::<u8>(&[100, 100]))?;
/// table.fill([3..4, 4..5], 7u8)?;
/// drop(table);
/// store.set_attribute("/first", "author", "me")?;
/// store.finish()?;
///
/// let store = TreeStore::open(&path)?;
/// assert!(store.keys().eq(["/first/speed", "/first/table"]));
/// assert_eq!(store.children("/")?, ["/first"]);
/// assert_eq!(store.array("/first/speed")?.read::<f32>(..)?, [1.5, 2.5]);
/// assert_eq!(store.attributes("/first")?, [("author".to_owned(), "me".into())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Only one program may change a store at a time. This crate does not lock stores, and ignores the locks that Python
/// uses with `locking=True`.
///
/// Readers must reopen the store to see changes. In a directory, each change is stored when its call returns. A zip
/// file that is opened for changing is unpacked to a temporary directory, and [`finish`](Self::finish) replaces the zip
/// file atomically; without `finish` it is not changed.
///
/// In a directory, an entry can also be a sparse frame: a directory with one file per chunk, as Python creates it for
/// the cache of a remote array. Replacing or removing such an entry fails.
///
/// Inside a store, symbolic links to files are followed for reading only: nothing is changed through them. Symbolic
/// links to directories, and files whose names are not valid keys, are ignored.
#[derive(Debug)]
pub struct TreeStore {
    /// The path as given; `None` for a source without a path.
    path: PathBuf,
    place: Place,
    /// The member or file of each key.
    leaves: BTreeMap<String, String>,
    pub(crate) embed: EmbedStore,
    /// The keys that only the embedded store holds.
    pub(crate) embedded: BTreeSet<String>,
    /// The keys of tables and other objects, with their descriptions.
    pub(crate) objects: BTreeMap<String, Value>,
    /// Files that were opened for changing.
    lent: BTreeSet<String>,
    changed: bool,
}

impl TreeStore {
    /// Opens a directory or a zip file for reading.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let place = Place::Folder { folder: path.to_owned(), writable: false };
            return Self::in_folder(path, place);
        }
        let file = fs::File::open(path).map_err(|error| Error::of_io(OPEN, error).at(path))?;
        Self::in_archive(Arc::new(file), path).map_err(|error| error.at(path))
    }

    /// Returns whether a path can be a store: a directory with a file `embed.b2e`, or any zip file.
    ///
    /// [`open`](Self::open) fails if the zip file is not a store.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the path cannot be read.
    pub fn is_at(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        if path.is_dir() {
            return Ok(path.join(INDEX).is_file());
        }
        let io = |error: std::io::Error| Error::of_io(OPEN, error).at(path);
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Ok(false);
        }
        Archive::is_in(&fs::File::open(path).map_err(io)?).map_err(io)
    }

    /// Returns whether a source can be a store: whether it is a zip file.
    ///
    /// [`open_source`](Self::open_source) fails if the zip file is not a store.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: reading from the source fails.
    pub fn is_in(source: &(impl ReadAt + ?Sized)) -> Result<bool> {
        Archive::is_in(source).map_err(|error| Error::of_io(OPEN, error))
    }

    /// Opens a zip file in a custom storage backend, such as object storage, for reading.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_source(source: impl ReadAt + Send + Sync + 'static) -> Result<Self> {
        Self::in_archive(Arc::new(source), Path::new(""))
    }

    /// Opens a directory or a zip file for reading and changing.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: it is a directory that this program already has open for changing (for a zip file,
    ///   [`finish`](Self::finish) fails instead);
    /// - [`ErrorKind::Unsupported`]: its file `embed.b2e` is a symbolic link, or a member of the zip file is compressed
    ///   or encrypted;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let place = Place::Folder { folder: path.to_owned(), writable: true };
            return Self::in_folder(path, place);
        }
        let io = |error| Error::of_io(OPEN, error).at(path);
        // If the path is a link, its target is changed.
        let target = fs::canonicalize(path).map_err(io)?;
        let replaced = Some(Stamp::of(&target).map_err(io)?);
        let file = fs::File::open(&target).map_err(io)?;
        let archive = Archive::open(Arc::new(file)).map_err(|error| error.at(path))?;
        let folder = Arc::new(folder_beside(&target)?);
        archive.unpack(folder.path()).map_err(|error| error.at(path))?;
        Self::in_folder(path, Place::Unpacked { folder, target, replaced })
    }

    /// Creates an empty store: a zip file if the name ends in `.b2z`, otherwise a directory.
    ///
    /// A zip file is written by [`finish`](Self::finish).
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the path exists; it is not changed;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the store cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.symlink_metadata().is_ok() {
            let detail = "it already exists";
            return Err(Error::new(ErrorKind::AlreadyExists, MAKE, detail).at(path));
        }
        let folder = folder_beside(path)?;
        if path.extension().is_some_and(|ending| ending == "b2z") {
            let embed = EmbedStore::create_as("b2tree", &folder.path().join(INDEX))?;
            let (folder, target) = (Arc::new(folder), path.to_owned());
            let place = Place::Unpacked { folder, target, replaced: None };
            let mut store = Self::new(path, place, Vec::new(), embed)?;
            store.changed = true;
            return Ok(store);
        }
        put_folder(&folder, path, MAKE, |new| {
            EmbedStore::create_as("b2tree", &new.join(INDEX)).map(drop)
        })?;
        Self::in_folder(path, Place::Folder { folder: path.to_owned(), writable: true })
    }

    fn in_archive(source: archive::Source, path: &Path) -> Result<Self> {
        let archive = Archive::open(source)?;
        if !archive.has(INDEX) {
            let detail = format!("it is a zip file without a member `{INDEX}`, not a store");
            return Err(Error::new(ErrorKind::InvalidData, OPEN, detail));
        }
        let embed = open_member(&archive, INDEX).and_then(EmbedStore::from_schunk);
        let embed = embed.map_err(|error| error.at(path.join(INDEX)))?;
        let names = archive.names().map(str::to_owned).collect();
        Self::new(path, Place::Archive(Arc::new(archive)), names, embed)
    }

    fn in_folder(path: &Path, place: Place) -> Result<Self> {
        let folder = place.folder().unwrap_or(path);
        let index = folder.join(INDEX);
        if !index.is_file() {
            let detail = format!("the directory has no file `{INDEX}`, it is not a store");
            return Err(Error::new(ErrorKind::InvalidData, OPEN, detail).at(path));
        }
        let embed = match place.is_writable() {
            true if index.is_symlink() => {
                let detail = format!("its `{INDEX}` is a symbolic link, which is not changed");
                return Err(Error::new(ErrorKind::Unsupported, OPEN, detail).at(path));
            }
            // Entries in files are durable too. A temporary folder is packed in the end.
            true => {
                let options = OpenOptions::new().write(true);
                let options = options.durable(matches!(place, Place::Folder { .. }));
                options.open(&index).and_then(EmbedStore::from_schunk)
            }
            false => EmbedStore::open(&index),
        };
        let mut names = Vec::new();
        for file in files_of(folder) {
            let file = file.map_err(|error| Error::of_io(OPEN, error).at(path))?;
            // Names that are not UTF-8 have no key.
            if let Some(name) = file.strip_prefix(folder).unwrap_or(&file).to_str() {
                names.push(name.replace(std::path::MAIN_SEPARATOR, "/"));
            }
        }
        Self::new(path, place, names, embed?)
    }

    fn new(path: &Path, place: Place, names: Vec<String>, embed: EmbedStore) -> Result<Self> {
        let mut store = Self {
            path: path.to_owned(),
            place,
            leaves: BTreeMap::new(),
            embed,
            embedded: BTreeSet::new(),
            objects: BTreeMap::new(),
            lent: BTreeSet::new(),
            changed: false,
        };
        // If a key has two files, after an interrupted change, the file with the last extension counts.
        for name in names.into_iter().filter(|name| name != INDEX) {
            // A sparse frame is a directory in place of a file. In a zip file it cannot be opened.
            let name = match name.strip_suffix(SPARSE_INDEX) {
                Some(folder) if store.place.folder().is_some() => folder.to_owned(),
                _ => name,
            };
            let (stem, ending) = name.rsplit_once('.').unwrap_or((&name, ""));
            let key = format!("/{stem}");
            let is_leaf = || ENDINGS.contains(&ending) || store.is_frame(&name);
            if key::is_path(&key) && !name.ends_with('/') && is_leaf() {
                store.leaves.insert(key, name);
            }
        }
        let embedded = store.embed.keys().filter(|key| !store.leaves.contains_key(*key));
        store.embedded = embedded.filter(|key| key::is_path(key)).map(str::to_owned).collect();
        store.objects = store.find_objects()?;
        Ok(store)
    }

    /// Whether a file without the extension of a frame is one.
    fn is_frame(&self, name: &str) -> bool {
        let mut start = [0; 10];
        let read = match &self.place {
            Place::Archive(archive) => {
                let member = archive.member(name).map_err(std::io::Error::from);
                member.and_then(|member| member.read_exact_at(0, &mut start))
            }
            place => fs::File::open(place.folder().unwrap_or(&self.path).join(name))
                .and_then(|file| file.read_exact_at(0, &mut start)),
        };
        read.is_ok() && start[2..] == *b"b2frame\0"
    }

    /// The keys of tables and other objects: those in the registry, and those of older stores without a registry.
    fn find_objects(&self) -> Result<BTreeMap<String, Value>> {
        let mut objects = BTreeMap::new();
        if let Some(Value::Map(listed)) = self.embed.schunk().vlmeta().value(REGISTRY)? {
            let listed = listed.into_iter();
            let listed = listed.filter_map(|(key, is)| Some((key.as_str()?.to_owned(), is)));
            objects.extend(listed.filter(|(key, _)| key::is_path(key)));
        }
        for key in self.all_keys() {
            let Some(root) = key.strip_suffix("/_meta").filter(|root| !root.is_empty()) else {
                continue;
            };
            // Damaged entries are not tables, and do not make the store invalid.
            if !objects.contains_key(root) && CTable::is_in(self, root).unwrap_or(false) {
                objects.insert(root.to_owned(), Value::from([("kind", "ctable".into())]));
            }
        }
        Ok(objects)
    }

    /// The keys of all files and embedded entries, including internal ones.
    fn all_keys(&self) -> impl Iterator<Item = &str> {
        self.leaves.keys().chain(&self.embedded).map(String::as_str)
    }

    /// Returns the path of the file or directory; `None` for a store opened by [`open_source`](Self::open_source).
    pub fn path(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns whether it is a `DictStore`, which has keys but no groups.
    pub fn is_dict(&self) -> bool {
        self.embed.schunk().meta().contains("b2dict")
    }

    /// Returns whether it is a zip file that is read in place; `false` for a zip file that is opened for changing.
    pub fn is_archive(&self) -> bool {
        matches!(self.place, Place::Archive(_))
    }

    /// Returns the keys of all entries (arrays, super-chunks, tables, ...), sorted.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let keys = self.all_keys().filter(|key| !self.is_hidden(key));
        let keys: BTreeSet<&str> = keys.chain(self.objects.keys().map(String::as_str)).collect();
        keys.into_iter()
    }

    /// Whether a key is internal: that of attributes, or of a part of a table.
    fn is_hidden(&self, key: &str) -> bool {
        key.ends_with(ATTRIBUTES) || self.object_above(key).is_some()
    }

    /// The table or other object that a key is part of.
    fn object_above(&self, key: &str) -> Option<&str> {
        let above = key::above(key);
        above.filter_map(|above| self.objects.get_key_value(above)).map(|(key, _)| &**key).next()
    }

    /// Returns the keys of all groups, sorted, without the root. A group has keys below it, attributes, or both. For a
    /// `DictStore`, every path above a key is returned.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let mut groups = BTreeSet::new();
        let attributes = self.all_keys().filter_map(|key| key.strip_suffix(ATTRIBUTES));
        let attributes = attributes.filter(|group| self.object_above(group).is_none());
        for start in attributes.chain(self.keys().map(key::parent)) {
            for group in std::iter::once(start).chain(key::above(start)) {
                // If a group is in the set, the groups above it are too.
                if group.is_empty() || group == "/" || !groups.insert(group) {
                    break;
                }
            }
        }
        groups.into_iter()
    }

    /// Whether there is a group with this key, other than the root.
    fn is_group(&self, key: &str) -> bool {
        let is_part = self.objects.contains_key(key) || self.object_above(key).is_some();
        if is_part || !key::is_path(key) {
            return false;
        }
        let below = format!("{key}/");
        let any = |first: Option<&String>| first.is_some_and(|key| key.starts_with(&below));
        any(self.leaves.range(below.clone()..).map(|(key, _)| key).next())
            || any(self.objects.range(below.clone()..).map(|(key, _)| key).next())
            || any(self.embedded.range(below.clone()..).next())
    }

    /// Returns the keys of the entries and groups directly below a group, sorted. `/` is the root.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: there is no group with this key.
    pub fn children(&self, group: &str) -> Result<Vec<&str>> {
        if group != "/" && !self.is_group(group) {
            return Err(self.error(
                ErrorKind::NotFound,
                READ,
                format!("there is no group `{group}`"),
            ));
        }
        let children = self.keys().chain(self.groups()).filter(|key| key::parent(key) == group);
        Ok(children.collect::<BTreeSet<&str>>().into_iter().collect())
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys().count()
    }

    /// Returns whether the store has no keys.
    pub fn is_empty(&self) -> bool {
        self.keys().next().is_none()
    }

    /// Returns whether there is an entry with this key. Groups are not entries.
    pub fn contains(&self, key: &str) -> bool {
        self.objects.contains_key(key)
            || (self.leaves.contains_key(key) || self.embedded.contains(key))
                && !self.is_hidden(key)
    }

    /// Opens the super-chunk of an entry for reading, without interpreting its metalayers.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - [`ErrorKind::TypeMismatch`]: the entry is a table or another object without a single super-chunk;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn schunk(&self, key: &str) -> Result<SChunk> {
        if self.objects.contains_key(key) {
            let detail = format!("`{key}` is a table or another object, not a single super-chunk");
            return Err(self.error(ErrorKind::TypeMismatch, READ, detail));
        }
        self.leaf(key)?.ok_or_else(|| self.missing(key))
    }

    /// Returns the attributes of a group, in stored order. `/` is the root. Python: `vlmeta` of a subtree.
    ///
    /// The attributes of an array are the variable-length metalayers of its super-chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no group with this key;
    /// - the errors of [reading values](crate#reading-values).
    pub fn attributes(&self, group: &str) -> Result<Vec<(String, Value)>> {
        if group != "/" && !self.is_group(group) {
            return Err(self.error(
                ErrorKind::NotFound,
                READ,
                format!("there is no group `{group}`"),
            ));
        }
        match self.leaf(&attributes_key(group))? {
            Some(schunk) => all_values(&schunk),
            None => Ok(Vec::new()),
        }
    }

    /// The super-chunk of a key; `None` if there is no such key.
    pub(crate) fn leaf(&self, key: &str) -> Result<Option<SChunk>> {
        match self.leaves.get(key) {
            Some(name) => self.file(name).map(Some),
            None => Leaves::leaf(&self.embed, key, ""),
        }
    }

    /// The super-chunk in a file or member.
    fn file(&self, name: &str) -> Result<SChunk> {
        match &self.place {
            Place::Archive(archive) => {
                open_member(archive, name).map_err(|error| error.at(self.path.join(name)))
            }
            place => SChunk::open(place.folder().unwrap_or(&self.path).join(name)),
        }
    }

    fn has_file(&self, name: &str) -> bool {
        match &self.place {
            Place::Archive(archive) => archive.has(name),
            place => place.folder().unwrap_or(&self.path).join(name).is_file(),
        }
    }

    pub(crate) fn missing(&self, key: &str) -> Error {
        self.error(ErrorKind::NotFound, READ, format!("there is no key `{key}`"))
    }

    fn error(&self, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
        let error = Error::new(kind, doing, detail);
        match self.path() {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

fn open_member(archive: &Archive, name: &str) -> Result<SChunk> {
    OpenOptions::new().open_storage(ReadOnly::new(archive.member(name)?))
}

/// The key of the attributes of a group.
fn attributes_key(group: &str) -> String {
    format!("{}{ATTRIBUTES}", group.trim_end_matches('/'))
}
