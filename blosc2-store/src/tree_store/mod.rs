//! Trees of arrays in a folder or a zip file: Python's `TreeStore` and `DictStore`.

mod change;
mod place;

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
use place::{Place, Stamp, folder_beside};

/// The file of small things, which every store has.
const INDEX: &str = "embed.b2e";
/// The endings of the files of arrays, super-chunks and batches.
const ENDINGS: [&str; 3] = ["b2nd", "b2f", "b2b"];
/// The key below a group that holds its attributes.
const ATTRIBUTES: &str = "/__vlmeta__";
/// The metalayer that says which keys are those of tables and the like.
const REGISTRY: &str = "_object_registry";

const OPEN: &str = "open a store";
const MAKE: &str = "make a store";
const READ: &str = "read from a store";

/// Arrays and super-chunks in a tree, as files of a folder (`.b2d`) or of a zip file (`.b2z`): Python's `TreeStore`,
/// and its flat kin `DictStore`.
///
/// Keys are paths such as `/group/array`. Of a zip file, opening reads the list of what is in it, and reading an
/// array no more than that array: all lies there as it is, uncompressed but for what Blosc2 does.
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
/// A store is changed by one program at a time; programs that read it open it anew to see that, also those that use
/// Python's locks. In a folder each change is there when its call returns. A zip file is unpacked to a folder beside it to
/// be changed, and [`finish`](Self::finish) puts a new one in its place, at once; without that it stays as it was.
///
/// Files that links lead to are read, and never changed. What is in a file and is no path of names is no key.
#[derive(Debug)]
pub struct TreeStore {
    /// As it was given; of a source without a name, none.
    path: PathBuf,
    place: Place,
    /// The member or file of each key.
    leaves: BTreeMap<String, String>,
    pub(crate) embed: EmbedStore,
    /// The keys that only the embedded store has.
    pub(crate) embedded: BTreeSet<String>,
    /// The keys of tables and the like, and what they are.
    pub(crate) objects: BTreeMap<String, Value>,
    /// Files that were opened for changing.
    lent: BTreeSet<String>,
    changed: bool,
}

impl TreeStore {
    /// Opens a folder or a zip file for reading.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read;
    /// - [`ErrorKind::InvalidData`]: it is no store, was cut short or is broken.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let place = Place::Folder { folder: path.to_owned(), writable: false };
            return Self::in_folder(path, place);
        }
        let file = fs::File::open(path).map_err(|error| Error::of_io(OPEN, error).at(path))?;
        Self::in_archive(Arc::new(file), path).map_err(|error| error.at(path))
    }

    /// Whether a path is that of a store: a folder with a file `embed.b2e`, or a zip file.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read.
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

    /// Opens a zip file that is not a file of this machine, for reading.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_source(source: impl ReadAt + Send + Sync + 'static) -> Result<Self> {
        Self::in_archive(Arc::new(source), Path::new(""))
    }

    /// Opens a folder or a zip file for reading and changing.
    ///
    /// # Errors
    /// As for [`open`](Self::open); [`ErrorKind::Busy`] where this program has it open for changing already;
    /// [`ErrorKind::Unsupported`] where the file of small things, `embed.b2e`, is a link.
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.is_dir() {
            let place = Place::Folder { folder: path.to_owned(), writable: true };
            return Self::in_folder(path, place);
        }
        let io = |error| Error::of_io(OPEN, error).at(path);
        // What a link leads to is what is changed.
        let target = fs::canonicalize(path).map_err(io)?;
        let replaced = Some(Stamp::of(&target).map_err(io)?);
        let file = fs::File::open(&target).map_err(io)?;
        let archive = Archive::open(Arc::new(file)).map_err(|error| error.at(path))?;
        let folder = Arc::new(folder_beside(&target)?);
        archive.unpack(folder.path()).map_err(|error| error.at(path))?;
        Self::in_folder(path, Place::Unpacked { folder, target, replaced })
    }

    /// Makes an empty one: a zip file where the name ends in `.b2z`, otherwise a folder.
    ///
    /// The zip file appears with [`finish`](Self::finish).
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be made.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        if path.symlink_metadata().is_ok() {
            let detail = "there is something of that name already";
            return Err(Error::new(ErrorKind::AlreadyExists, MAKE, detail).at(path));
        }
        let place = match path.extension().is_some_and(|ending| ending == "b2z") {
            true => {
                let (folder, target) = (Arc::new(folder_beside(path)?), path.to_owned());
                Place::Unpacked { folder, target, replaced: None }
            }
            false => {
                fs::create_dir(path).map_err(|error| Error::of_io(MAKE, error).at(path))?;
                Place::Folder { folder: path.to_owned(), writable: true }
            }
        };
        let index = place.folder().unwrap_or(path).join(INDEX);
        let embed = EmbedStore::create_as("b2tree", &index)?;
        let mut store = Self::new(path, place, Vec::new(), embed)?;
        store.changed = true;
        Ok(store)
    }

    fn in_archive(source: archive::Source, path: &Path) -> Result<Self> {
        let archive = Archive::open(source)?;
        if !archive.has(INDEX) {
            let detail = format!("it is a zip file without a member `{INDEX}`, no store");
            return Err(Error::new(ErrorKind::InvalidData, OPEN, detail));
        }
        let embed = EmbedStore::from_schunk(open_member(&archive, INDEX)?)?;
        let names = archive.names().map(str::to_owned).collect();
        Self::new(path, Place::Archive(Arc::new(archive)), names, embed)
    }

    fn in_folder(path: &Path, place: Place) -> Result<Self> {
        let folder = place.folder().unwrap_or(path);
        let index = folder.join(INDEX);
        if !index.is_file() {
            let detail = format!("the folder has no file `{INDEX}`, it is no store");
            return Err(Error::new(ErrorKind::InvalidData, OPEN, detail).at(path));
        }
        let embed = match place.is_writable() {
            true if index.is_symlink() => {
                let detail = format!("its `{INDEX}` is a link, which may lead elsewhere");
                return Err(Error::new(ErrorKind::Unsupported, OPEN, detail).at(path));
            }
            true => EmbedStore::open_rw(&index),
            false => EmbedStore::open(&index),
        };
        let mut names = Vec::new();
        for file in files_of(folder) {
            let file = file.map_err(|error| Error::of_io(OPEN, error).at(path))?;
            // Names that are no text have no key.
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
        // Where a key has two files, after a change that was not finished, it is that of the last ending.
        for name in names.into_iter().filter(|name| name != INDEX) {
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

    /// Whether a file that is not named like one is a frame.
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

    /// The keys of tables and the like: those that are listed, and those of older stores, which are not.
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
            // What is broken is no table, and the store is one all the same.
            if !objects.contains_key(root) && CTable::is_in(self, root).unwrap_or(false) {
                objects.insert(root.to_owned(), Value::from([("kind", "ctable".into())]));
            }
        }
        Ok(objects)
    }

    /// The keys of all files and embedded entries, also those that are shown as no key of their own.
    fn all_keys(&self) -> impl Iterator<Item = &str> {
        self.leaves.keys().chain(&self.embedded).map(String::as_str)
    }

    /// The file or folder.
    pub fn path(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Whether it is a `DictStore`, which has keys but no groups.
    pub fn is_dict(&self) -> bool {
        self.embed.schunk().meta().contains("b2dict")
    }

    /// Whether it is read from a zip file in place.
    pub fn is_archive(&self) -> bool {
        matches!(self.place, Place::Archive(_))
    }

    /// The keys of all arrays, super-chunks, tables and so on, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        let keys = self.all_keys().filter(|key| !self.is_hidden(key));
        let keys: BTreeSet<&str> = keys.chain(self.objects.keys().map(String::as_str)).collect();
        keys.into_iter()
    }

    /// Whether a key is that of attributes, or of a part of a table.
    fn is_hidden(&self, key: &str) -> bool {
        key.ends_with(ATTRIBUTES) || self.object_above(key).is_some()
    }

    /// The table or the like that a key is below.
    fn object_above(&self, key: &str) -> Option<&str> {
        let above = key::above(key);
        above.filter_map(|above| self.objects.get_key_value(above)).map(|(key, _)| &**key).next()
    }

    /// The keys of all groups, in order: what other keys are below, or has attributes. The root is not among them.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let mut groups = BTreeSet::new();
        let attributes = self.all_keys().filter_map(|key| key.strip_suffix(ATTRIBUTES));
        let attributes = attributes.filter(|group| self.object_above(group).is_none());
        for start in attributes.chain(self.keys().map(key::parent)) {
            for group in std::iter::once(start).chain(key::above(start)) {
                // Where a group is known, so are those above.
                if group.is_empty() || group == "/" || !groups.insert(group) {
                    break;
                }
            }
        }
        groups.into_iter()
    }

    /// Whether there is such a group. The root is none of them.
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

    /// The keys right below a group, in order; of the groups in it, too. `/` is the root.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: there is no such group.
    pub fn children(&self, group: &str) -> Result<Vec<&str>> {
        if group != "/" && !self.is_group(group) {
            return Err(self.error(ErrorKind::NotFound, READ, format!("no group `{group}`")));
        }
        let children = self.keys().chain(self.groups()).filter(|key| key::parent(key) == group);
        Ok(children.collect::<BTreeSet<&str>>().into_iter().collect())
    }

    /// How many keys there are.
    pub fn len(&self) -> usize {
        self.keys().count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys().next().is_none()
    }

    /// Whether there is an array or the like of this key.
    pub fn contains(&self, key: &str) -> bool {
        self.objects.contains_key(key)
            || (self.leaves.contains_key(key) || self.embedded.contains(key))
                && !self.is_hidden(key)
    }

    /// Opens the super-chunk of a key for reading, whatever it holds.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such key;
    /// - [`ErrorKind::TypeMismatch`]: a table;
    /// - as for [`SChunk::open`].
    pub fn schunk(&self, key: &str) -> Result<SChunk> {
        if self.objects.contains_key(key) {
            let detail = format!("`{key}` is a table or the like, not one super-chunk");
            return Err(self.error(ErrorKind::TypeMismatch, READ, detail));
        }
        self.leaf(key)?.ok_or_else(|| self.missing(key))
    }

    /// The attributes of a group, in the order of the file; `/` is the root. Python's `vlmeta` of a subtree.
    ///
    /// Those of an array are its own metalayers.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: there is no such group; as for [`Metalayers::value`](blosc2::super_chunk::Metalayers::value).
    pub fn attributes(&self, group: &str) -> Result<Vec<(String, Value)>> {
        if group != "/" && !self.is_group(group) {
            return Err(self.error(ErrorKind::NotFound, READ, format!("no group `{group}`")));
        }
        match self.leaf(&attributes_key(group))? {
            Some(schunk) => all_values(&schunk),
            None => Ok(Vec::new()),
        }
    }

    /// The same for a table, which reads its parts from it.
    pub(crate) fn for_table(&self) -> Result<Self> {
        let place = self.place.for_reading();
        let embed = match &place {
            Place::Archive(archive) => EmbedStore::from_schunk(open_member(archive, INDEX)?)?,
            place => EmbedStore::open(place.folder().unwrap_or(&self.path).join(INDEX))?,
        };
        Ok(Self {
            path: self.path.clone(),
            place,
            leaves: self.leaves.clone(),
            embed,
            embedded: self.embedded.clone(),
            objects: BTreeMap::new(),
            lent: BTreeSet::new(),
            changed: false,
        })
    }

    /// The super-chunk of a key, whatever it holds; `None` where there is no such key.
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
        self.error(ErrorKind::NotFound, READ, format!("no key `{key}`"))
    }

    fn error(&self, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
        let error = Error::new(kind, doing, detail);
        match self.path() {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

impl Leaves for TreeStore {
    fn leaf(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        let other = format!("{}.{ending}", key.trim_start_matches('/'));
        match self.leaves.get(key) {
            // Its key is that of another file, of the ending that comes last.
            Some(name) if *name != other && self.has_file(&other) => self.file(&other).map(Some),
            _ => self.leaf(key),
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
