//! Tree stores: arrays in a directory or a zip file. Python: `TreeStore`, `DictStore`.

#[cfg(feature = "c")]
mod change;
mod in_place;
mod place;
mod table;
#[cfg(feature = "c")]
mod table_change;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blosc2::storage::{Folder as ReadFolder, ReadAt};
use crate::blosc2::{Error, ErrorKind, Limits, OpenOptions, Result, SChunk, Target, Value};

use crate::archive::Archive;
use crate::ctable::{CTable, Leaves, all_values};
use crate::embed_store::{EmbedStore, Entry};
use crate::folder::{Access, EntryKind, Folder, open_regular};
use crate::key::{self, ATTRIBUTES, ENDINGS, INDEX, META};
use crate::limits::{options, options_of};
use in_place::InPlace;
use place::{Files, Place};

/// The end of the name of a file that makes its directory a sparse frame.
const SPARSE_INDEX: &str = "/chunks.b2frame";
/// The metalayer with the registry of tables and other objects.
const REGISTRY: &str = "_object_registry";

/// Maximum number of groups of a store.
const MAX_GROUPS: usize = 1 << 20;
/// Maximum bytes of embedded frames that are searched for descriptions of tables when a store is opened, in total and for
/// each stored byte of all embedded frames.
const MAX_METAS: u64 = 64 << 20;
const MAX_METAS_RATIO: u64 = 256;

const OPEN: &str = "open a store";
const MAKE: &str = "make a store";
const READ: &str = "read from a store";
const CHANGE: &str = "change a store";

/// A store of arrays, super-chunks and tables in a directory (`.b2d`) or a zip file (`.b2z`). Each entry has a key,
/// which is a path of group names and a last name: `/group/array`. Each array or super-chunk is a separate file of the
/// directory, or a separate member of the zip file. Small entries are an exception: Python can store them together in
/// the file `embed.b2e`.
///
/// Python has two classes for these files: `TreeStore`, and `DictStore`, which has no groups.
/// [`is_dict`](Self::is_dict) distinguishes them.
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
/// table.write([3..4, 4..5], 7u8)?;
/// drop(table);
/// store.set_attribute("/first", "author", "me")?;
/// store.finish()?;
///
/// let store = TreeStore::open(&path)?;
/// assert!(store.keys().eq(["/first/speed", "/first/table"]));
/// assert_eq!(store.children("/")?, ["/first"]);
/// assert_eq!(store.array("/first/speed")?.read::<Vec<f32>>(..)?, [1.5, 2.5]);
/// assert_eq!(store.attributes("/first")?, [("author".to_owned(), "me".into())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// Opening a zip file reads its list of members and the metadata of the store, but no arrays. Stores in a zip file use
/// no zip compression, so that each array is read in place. If a member is compressed or encrypted by zip, opening its
/// entry fails with [`Unsupported`](blosc2::ErrorKind::Unsupported).
///
/// # Changes
/// In a directory, each change is stored when its call returns. A zip file that is opened for changing is unpacked to a
/// temporary directory. [`finish`](Self::finish) then replaces the zip file atomically. Without `finish`, the zip file
/// does not change. Readers must reopen the store to see changes.
///
/// # Keys
/// A key is a path of parts: each part follows a `/`. Keys have up to 4096 bytes and up to 256 parts. A part must not
/// be empty, `.` or `..`, and must not contain a NUL character. Additional rules apply to new keys:
/// - a new key must not contain `\`, `:` or control characters;
/// - the last part of a new key must not consist only of dots.
///
/// These keys are reserved:
/// - keys whose last part is `__vlmeta__`;
/// - keys below `/embed.b2e`, `/embed.b2e.b2lock` and `/embed.b2e.b2work`;
/// - in a `TreeStore` (not in a `DictStore`), all keys below `/_meta`;
/// - in a `TreeStore`, the key `/_meta`. Exception: [`insert`](Self::insert) accepts this key for a super-chunk that
///   contains the schema of a table.
///
/// # Several writers
/// A handle that is open for changing locks the store. While it exists, opening a second handle for changing fails at
/// once with [`Busy`](blosc2::ErrorKind::Busy), in all threads and programs that use this crate. The lock is released
/// when the handle is dropped or its program ends. Readers need no lock.
///
/// - A table that was opened for changing also locks the store until the table is dropped.
/// - Other objects that [`edit`](Self::edit) and [`create_array`](Self::create_array) return do not lock the store.
///   Drop these objects before the store.
/// - While a directory is open for changing, do not open its file `embed.b2e` with
///   [`OpenOptions::locking`](blosc2::OpenOptions::locking) in the same program: that call blocks until the store is
///   dropped.
///
/// Directories and zip files have different locks:
///
/// - The lock of a directory is its file `embed.b2e.b2lock`, which is never removed. Python with `locking=True` locks
///   the same file for each access: Python waits until this store is dropped, and then reads the changes. If Python is
///   accessing the store, opening it for changing fails with `Busy`. Python without `locking` ignores the lock.
/// - The lock of a zip file is the directory `NAME.b2work` next to the zip file, where `NAME` is the file name. Python
///   ignores this lock. [`finish`](Self::finish) fails with `Busy` if another program has replaced the zip file since
///   it was opened. If the replacement happens after this check, `finish` overwrites the other program's file.
///
/// Locks do not work on some network file systems. If the file system does not support locks, opening for changing
/// fails.
///
/// # Temporary files
/// Temporary files are in the directory `NAME.b2work` next to the store, where `NAME` is the file name of the store. If
/// this directory cannot be created, the temporary files of a store in a directory are in its subdirectory
/// `embed.b2e.b2work`.
///
/// If a program is killed, the directory for temporary files remains. It is not part of the store. However,
/// if a complete frame is left in `embed.b2e.b2work`, Python lists the frame as an entry. The next handle that opens the store for changing removes the
/// directory.
///
/// # Permissions
/// New stores have the default permissions of new files and directories. If a zip file or the file of an entry is
/// replaced, the new file has the permissions of the old file. These permissions are set before the new file appears. Until
/// then, the new file is in the directory for temporary files. On Unix, only the owner can enter this directory.
///
/// # Links and special files
/// In a store in a directory, symbolic links, pipes and devices are ignored. They are not listed, read, copied or
/// changed, and nothing is written through a link. If `embed.b2e` is a link, pipe or device, opening the store fails.
/// If a link has the file name of a new entry, the new file replaces the link. The path of the store may be a link.
///
/// A file that has several names (hard links) is copied before it is changed, so that the files with the other names do
/// not change. This crate detects hard links on Unix only.
///
/// On Unix, files are opened, moved and removed relative to open directories: if another program replaces a directory
/// by a link during a call, the call does not follow the link. On other systems, this crate checks for links before
/// each call.
///
/// # Sparse frames
///
/// In a directory, an entry can also be a sparse frame: a directory with one file per chunk. Python creates sparse
/// frames for the cache of a remote array. This crate can only read them. Files whose names are not valid keys are
/// ignored.
#[derive(Debug)]
pub struct TreeStore {
    /// The path as given; `None` for a source without a path.
    path: PathBuf,
    /// The member or file of each key.
    leaves: BTreeMap<String, String>,
    pub(super) embed: EmbedStore,
    /// The keys that only the embedded store holds.
    pub(super) embedded: BTreeSet<String>,
    /// The keys of tables and other objects, with their descriptions.
    pub(super) objects: BTreeMap<String, Value>,
    /// At least the number of groups, including those of internal keys.
    groups: usize,
    /// Files that were opened for changing.
    lent: BTreeSet<String>,
    changed: bool,
    /// Dropped last: it may remove the files.
    place: Place,
}

impl TreeStore {
    /// Opens a directory or a zip file for reading. Directories and zip files of frames (`.b2nd`, `.b2f`, `.b2b`)
    /// without the index `embed.b2e`, as xarray-blosc2 writes them, can be read, too.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with_limits(path, Limits::default(), None)
    }

    /// Opens a directory or a zip file for reading, with limits for untrusted input; see [`OpenOptions::limits`] and
    /// [`OpenOptions::max_read`]. With `None`, `max_read` has its default.
    ///
    /// The limits apply to the metadata of the store and to all its entries: arrays, super-chunks, tables with their
    /// columns, and entries of embedded stores.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_with_limits(
        path: impl AsRef<Path>,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let io = |error| Error::of_io(OPEN, error).at(path);
        if path.is_dir() {
            return Self::in_opened(Folder::open(path).map_err(io)?, limits, max_read);
        }
        let (file, options) = (open_regular(path).map_err(io)?, options(limits, max_read));
        let files = InPlace::of_zip(Arc::new(file));
        files
            .and_then(|files| Self::in_place(files, path, &options))
            .map_err(|error| error.at(path))
    }

    /// Opens the store in a directory that was opened, for reading.
    pub(crate) fn in_opened(folder: Folder, limits: Limits, max_read: Option<u64>) -> Result<Self> {
        let path = folder.path().to_owned();
        Self::in_folder(&path, Place::reading(Arc::new(folder)), &options(limits, max_read))
    }

    /// Returns whether a path is a directory with a file `embed.b2e` or with frames (`.b2nd`, `.b2f`, `.b2b`), or a
    /// zip file. Only such paths can be stores. Bytes before a zip file are skipped, as Python does. A directory with a
    /// file `chunks.b2frame` is a sparse frame, not a store.
    ///
    /// The search for frames visits at most 100,000 entries of the directory and its subdirectories. The content of the
    /// zip file is not checked: [`open`](Self::open) fails if it is not a store.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the path cannot be read.
    pub fn is_at(path: impl AsRef<Path>) -> Result<bool> {
        let path = path.as_ref();
        let io = |error: io::Error| Error::of_io(OPEN, error).at(path);
        if path.is_dir() {
            let folder = Folder::open(path).map_err(io)?;
            return match folder.kind(INDEX).map_err(io)? {
                Some(kind) => Ok(kind == EntryKind::File),
                None => has_frames(&folder).map_err(io),
            };
        }
        if !fs::metadata(path).map_err(io)?.is_file() {
            return Ok(false);
        }
        Archive::is_in(&open_regular(path).map_err(io)?).map_err(io)
    }

    /// Returns whether a source is a zip file, possibly after other bytes. Only zip files can be stores.
    ///
    /// The content of the zip file is not checked: [`open_source`](Self::open_source) fails if it is not a store.
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
        Self::open_source_with_limits(source, Limits::default(), None)
    }

    /// Opens a zip file in a custom storage backend for reading, with the limits of
    /// [`open_with_limits`](Self::open_with_limits).
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_source_with_limits(
        source: impl ReadAt + Send + Sync + 'static,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self> {
        let files = InPlace::of_zip(Arc::new(source))?;
        Self::in_place(files, Path::new(""), &options(limits, max_read))
    }

    /// Opens a store in a custom directory, such as the objects under a prefix, for reading.
    ///
    /// `folder` returns the files of the store with their paths in the store: [`Folder::names`](ReadFolder::names)
    /// returns all of them, such as `first/speed.b2nd`, with `/` as the separator. It is called once. Names of
    /// directories (the empty name, and `first` in this example) are skipped, and the lock and the temporary files of a
    /// writer, too. Only files with the extensions `.b2nd`, `.b2f` and `.b2b` are entries; sparse frames in the store
    /// are not. If a file is replaced while the store is open, its entry is the new one when it is opened.
    ///
    /// ```
    /// use blosc2::NDArray;
    /// use blosc2::storage::FolderMut;
    /// use blosc2_format::directory::Memory;
    /// use blosc2_store::TreeStore;
    ///
    /// let mut folder = Memory::default();
    /// let array = NDArray::from_slice(&[1.5f32, 2.5], &[2])?;
    /// folder.put("first/speed.b2nd", &array.schunk().to_cframe()?, false)?;
    /// let store = TreeStore::open_folder(folder)?;
    /// assert_eq!(store.array("/first/speed")?.read::<Vec<f32>>(..)?, [1.5, 2.5]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_folder<F>(folder: F) -> Result<Self>
    where
        F: ReadFolder<File: Send + Sync + 'static> + 'static,
    {
        Self::open_folder_with_limits(folder, Limits::default(), None)
    }

    /// Opens a store in a custom directory for reading, with the limits of
    /// [`open_with_limits`](Self::open_with_limits).
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open_folder_with_limits<F>(
        folder: F,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self>
    where
        F: ReadFolder<File: Send + Sync + 'static> + 'static,
    {
        Self::in_place(InPlace::of_folder(folder)?, Path::new(""), &options(limits, max_read))
    }

    fn in_place(files: InPlace, path: &Path, options: &OpenOptions) -> Result<Self> {
        if !files.has(INDEX) && !files.names().any(has_frame_ending) {
            let what = if files.is_zip() { "zip file" } else { "directory" };
            let detail = format!("the {what} has neither a file `{INDEX}` nor frames");
            return Err(Error::new(ErrorKind::InvalidData, OPEN, detail));
        }
        let embed = files.index(options).map_err(|error| error.at(path.join(INDEX)))?;
        let names = files.names().map(str::to_owned).collect();
        Self::new(path, Place::ReadOnly(Arc::new(files)), names, embed)
    }

    /// Checks that a directory is a store. Stores without an index can only be read.
    fn check_index(folder: &Folder, path: &Path, is_changed: bool) -> Result<()> {
        let detail = match folder.kind(INDEX) {
            Ok(Some(EntryKind::File)) => return Ok(()),
            Ok(None) if is_changed => {
                format!("it has no file `{INDEX}`; stores without it can only be read")
            }
            Ok(None) => match has_frames(folder) {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    format!(
                        "the directory has neither a file `{INDEX}` nor frames, it is not a store"
                    )
                }
                Err(error) => return Err(Error::of_io(OPEN, error).at(path)),
            },
            Ok(Some(_)) => format!("its `{INDEX}` is not a regular file; links are not followed"),
            Err(error) => return Err(Error::of_io(OPEN, error).at(path)),
        };
        Err(Error::new(ErrorKind::InvalidData, OPEN, detail).at(path))
    }

    fn in_folder(path: &Path, place: Place, options: &OpenOptions) -> Result<Self> {
        let folder = Arc::clone(place.folder().expect("an archive is not a folder"));
        let opened = || open_embed(&folder, options);
        #[cfg(not(feature = "c"))]
        let is_changed = false;
        #[cfg(feature = "c")]
        let (is_changed, opened) = (place.is_writable(), || match place.is_writable() {
            true => change::open_embed(&place, &folder, options),
            false => opened(),
        });
        Self::check_index(&folder, path, is_changed)?;
        let embed = opened()?;
        let files = folder.files().map_err(|error| Error::of_io(OPEN, error).at(path))?;
        // Names that are not UTF-8 have no key.
        Self::new(path, place, files.iter().filter_map(|file| file.text()).collect(), embed)
    }

    fn new(path: &Path, place: Place, names: Vec<String>, embed: EmbedStore) -> Result<Self> {
        let mut store = Self {
            path: path.to_owned(),
            leaves: BTreeMap::new(),
            embed,
            embedded: BTreeSet::new(),
            objects: BTreeMap::new(),
            groups: 0,
            lent: BTreeSet::new(),
            changed: false,
            place,
        };
        // If a key has two files, after an interrupted change, the file with the last extension counts.
        for name in names {
            // A sparse frame is a directory in place of a file. In a zip file it cannot be opened.
            let name = match name.strip_suffix(SPARSE_INDEX) {
                Some(folder) if store.place.folder().is_some() => folder.to_owned(),
                _ => name,
            };
            if let Some((key, ending)) = key::of_name(&name)
                && (ENDINGS.contains(&ending) || store.is_frame(&name))
            {
                store.leaves.insert(key, name);
            }
        }
        let embedded = store.embed.keys().filter(|key| !store.leaves.contains_key(*key));
        store.embedded = embedded.filter(|key| key::is_path(key)).map(str::to_owned).collect();
        store.objects = store.find_objects()?;
        store.count_groups(None)?;
        Ok(store)
    }

    /// Whether a file without the extension of a frame is one.
    fn is_frame(&self, name: &str) -> bool {
        let mut start = [0; 10];
        let mut read = |file: &dyn ReadAt| file.read_exact_at(0, &mut start).is_ok();
        let is_read = match self.place.files() {
            // In a custom directory, each file takes a request.
            Files::InPlace(files) => files.is_zip() && files.file(name).is_ok_and(|it| read(&it)),
            Files::Folder(folder) => folder.file(name, Access::Read).is_ok_and(|it| read(&it)),
        };
        is_read && start[2..] == *b"b2frame\0"
    }

    /// Counts the groups of all keys and of a new one. Their number is limited, because a short list of deep keys has very
    /// many.
    fn count_groups(&mut self, new: Option<&str>) -> Result<()> {
        let objects = self.objects.keys().map(String::as_str);
        let mut keys: Vec<&str> = self.all_keys().chain(objects).chain(new).collect();
        keys.sort_unstable();
        let count = key::groups(keys).take(MAX_GROUPS + 1).count();
        self.groups = count;
        if count <= MAX_GROUPS {
            return Ok(());
        }
        let detail = format!("more than {MAX_GROUPS} groups");
        let doing = if new.is_some() { CHANGE } else { OPEN };
        Err(self.error(ErrorKind::TooLarge, doing, detail))
    }

    /// The keys of tables and other objects: those in the registry, and those of older stores without a registry.
    fn find_objects(&self) -> Result<BTreeMap<String, Value>> {
        let mut objects = BTreeMap::new();
        if let Some(Value::Map(listed)) = self.embed.schunk().vlmeta().value(REGISTRY)? {
            let listed = listed.into_iter();
            let listed = listed.filter_map(|(key, is)| Some((key.as_str()?.to_owned(), is)));
            objects.extend(listed.filter(|(key, _)| key::is_path(key)));
        }
        let cbytes = self.embed.schunk().cbytes();
        let most = cbytes.saturating_mul(MAX_METAS_RATIO).max(MAX_METAS);
        let mut left = most;
        for key in self.all_keys() {
            let Some(root) = key.strip_suffix(META).filter(|root| !root.is_empty()) else {
                continue;
            };
            if objects.contains_key(root) {
                continue;
            }
            // Frames in the embedded store are copied, and a damaged map can contain one frame any number of times.
            if let (None, Some(Entry::Frame { length, .. })) =
                (self.leaves.get(key), self.embed.entry(key))
            {
                left = left.checked_sub(*length).ok_or_else(|| {
                    let detail = format!(
                        "the embedded entries with keys that end in `{META}` have more than {most} bytes"
                    );
                    self.error(ErrorKind::TooLarge, OPEN, detail)
                })?;
            }
            // Damaged entries are not tables, and do not make the store invalid.
            if CTable::is_in(self, root).unwrap_or(false) {
                objects.insert(root.to_owned(), Value::from([("kind", "ctable".into())]));
            }
        }
        Ok(objects)
    }

    /// The keys of all files and embedded entries, including internal ones.
    fn all_keys(&self) -> impl Iterator<Item = &str> {
        self.leaves.keys().chain(&self.embedded).map(String::as_str)
    }

    /// Returns the path of the file or directory. Returns `None` for a store that was opened by
    /// [`open_source`](Self::open_source).
    pub fn path(&self) -> Option<&Path> {
        Some(self.path.as_path()).filter(|path| !path.as_os_str().is_empty())
    }

    /// Returns the embedded store of the file `embed.b2e`, in which Python can store small entries.
    pub fn embedded_store(&self) -> &EmbedStore {
        &self.embed
    }

    /// Returns whether the store is a `DictStore`, which has keys but no groups.
    pub fn is_dict(&self) -> bool {
        self.embed.schunk().meta().contains("b2dict")
    }

    /// Returns whether the store is an archive: a zip file that is open for reading, and is read in place. Returns
    /// `false` for a zip file that is open for changing, because it is unpacked.
    pub fn is_archive(&self) -> bool {
        matches!(self.place.files(), Files::InPlace(files) if files.is_zip())
    }

    /// Returns the sorted keys of all entries: arrays, super-chunks, tables and other objects.
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

    /// Returns the sorted keys of all groups, without the root. A group contains entries or other groups, or has
    /// attributes. For a `DictStore`, returns every path above a key.
    pub fn groups(&self) -> impl Iterator<Item = &str> {
        let attributes = self.all_keys().filter(|key| key.ends_with(ATTRIBUTES));
        let attributes = attributes.filter(|key| self.object_above(key).is_none());
        let mut keys: Vec<&str> = self.keys().chain(attributes).collect();
        keys.sort_unstable();
        let mut groups: Vec<&str> = key::groups(keys).collect();
        groups.sort_unstable();
        groups.into_iter()
    }

    /// Whether there is a group with this key, other than the root.
    fn is_group(&self, key: &str) -> bool {
        let is_part = self.objects.contains_key(key) || self.object_above(key).is_some();
        !is_part && key::is_path(key) && self.has_below(key)
    }

    /// Whether a key is below this one, which has no slash at its end.
    fn has_below(&self, key: &str) -> bool {
        let below = format!("{key}/");
        let any = |first: Option<&String>| first.is_some_and(|key| key.starts_with(&below));
        any(self.leaves.range(below.clone()..).map(|(key, _)| key).next())
            || any(self.objects.range(below.clone()..).map(|(key, _)| key).next())
            || any(self.embedded.range(below.clone()..).next())
    }

    /// Returns the sorted keys of the entries and groups directly below a group. `/` is the root.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`]: there is no group with this key.
    pub fn children(&self, group: &str) -> Result<Vec<&str>> {
        self.find_group(group)?;
        let start = if group == "/" { "/".to_owned() } else { format!("{group}/") };
        let mut children = BTreeSet::new();
        let mut next = start.clone();
        while let Some(key) = self.key_from(&next).filter(|key| key.starts_with(&start)) {
            let child = match key[start.len()..].find('/') {
                // All keys below the child are skipped.
                Some(len) => {
                    let child = &key[..start.len() + len];
                    next = format!("{child}0");
                    child
                }
                None => {
                    next = format!("{key}\0");
                    key
                }
            };
            if self.contains(child) || self.is_group(child) {
                children.insert(child);
            }
        }
        Ok(children.into_iter().collect())
    }

    /// The first key at or after this one, including internal keys.
    fn key_from(&self, key: &str) -> Option<&str> {
        let from = (Bound::Included(key), Bound::Unbounded);
        let leaf = self.leaves.range::<str, _>(from).next().map(|(key, _)| key);
        let object = self.objects.range::<str, _>(from).next().map(|(key, _)| key);
        let embedded = self.embedded.range::<str, _>(from).next();
        [leaf, object, embedded].into_iter().flatten().min().map(String::as_str)
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.keys().count()
    }

    /// Returns whether the store has no entries.
    pub fn is_empty(&self) -> bool {
        self.keys().next().is_none()
    }

    /// Returns whether there is an entry with this key. Groups are not entries.
    pub fn contains(&self, key: &str) -> bool {
        self.objects.contains_key(key)
            || (self.leaves.contains_key(key) || self.embedded.contains(key))
                && !self.is_hidden(key)
    }

    /// Opens the super-chunk of an entry for reading. This method does not interpret the metalayers: it also returns
    /// the super-chunk of an array.
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

    fn find_group(&self, group: &str) -> Result<()> {
        if group == "/" || self.is_group(group) {
            return Ok(());
        }
        Err(self.error(ErrorKind::NotFound, READ, format!("there is no group `{group}`")))
    }

    /// Returns the attributes of a group, in stored order. `/` is the root. Python: `vlmeta` of a subtree.
    ///
    /// Arrays have attributes, too: the [variable-length metalayers](SChunk::vlmeta) of their super-chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no group with this key;
    /// - the errors of [reading values](crate#reading-values).
    pub fn attributes(&self, group: &str) -> Result<Vec<(String, Value)>> {
        self.find_group(group)?;
        match self.leaf(&attributes_key(group))? {
            Some(schunk) => all_values(&schunk),
            None => Ok(Vec::new()),
        }
    }

    /// The super-chunk of a key; `None` if there is no such key.
    pub(super) fn leaf(&self, key: &str) -> Result<Option<SChunk>> {
        match self.leaves.get(key) {
            Some(name) => self.file(name).map(Some),
            None => Leaves::leaf(&self.embed, key, ""),
        }
    }

    fn file(&self, name: &str) -> Result<SChunk> {
        let options = self.options();
        match self.place.files() {
            Files::InPlace(files) => {
                files.frame(name, &options).map_err(|error| error.at(self.path.join(name)))
            }
            Files::Folder(folder) => {
                let path = folder.path().join(name);
                let io = failed(READ, &path);
                if folder.kind(name).map_err(&io)? == Some(EntryKind::Folder) {
                    let sparse = folder.folder(name).map_err(&io)?;
                    return options.open(Target::folder(sparse)).map_err(|error| error.at(&path));
                }
                let file = folder.file(name, Access::Read).map_err(io)?;
                options.open(Target::file(file, &path))
            }
        }
    }

    /// The options for opening entries, with the limits with which the store was opened.
    fn options(&self) -> OpenOptions {
        options_of(self.embed.schunk())
    }

    fn has_file(&self, name: &str) -> bool {
        match self.place.files() {
            Files::InPlace(files) => files.has(name),
            Files::Folder(folder) => folder.has_file(name),
        }
    }

    pub(super) fn missing(&self, key: &str) -> Error {
        let rooted = format!("/{key}");
        let is_there = self.contains(&rooted) || self.is_group(&rooted);
        let hint = if is_there { format!("; the key is `{rooted}`") } else { String::new() };
        self.error(ErrorKind::NotFound, READ, format!("there is no key `{key}`{hint}"))
    }

    fn error(&self, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
        let error = Error::new(kind, doing, detail);
        match self.path() {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

fn has_frame_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

/// Whether a directory without an index is a store: it contains frames, and is not a sparse frame itself.
fn has_frames(folder: &Folder) -> io::Result<bool> {
    /// A directory with other content can be large.
    const MOST: usize = 100_000;
    if folder.has_file(&SPARSE_INDEX[1..]) {
        return Ok(false);
    }
    folder.any_file(MOST, |name| {
        name.to_str().is_some_and(|name| has_frame_ending(name) || name.ends_with(SPARSE_INDEX))
    })
}

/// Opens the embedded store of a store in a directory. Other programs write frames to a directory without one.
fn open_embed(folder: &Folder, options: &OpenOptions) -> Result<EmbedStore> {
    if matches!(folder.kind(INDEX), Ok(None)) {
        return EmbedStore::without_entries(options);
    }
    let path = folder.path().join(INDEX);
    let file = folder.file(INDEX, Access::Read).map_err(failed(OPEN, &path))?;
    options.open(Target::file(file, &path)).and_then(EmbedStore::from_schunk)
}

/// Converts an error of the operating system for a path.
fn failed(doing: &'static str, path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| match error.kind() {
        io::ErrorKind::NotADirectory => {
            Error::new(ErrorKind::InvalidArgument, doing, error).at(path)
        }
        io::ErrorKind::Unsupported => Error::new(ErrorKind::Unsupported, doing, error).at(path),
        _ => Error::of_io(doing, error).at(path),
    }
}

fn attributes_key(group: &str) -> String {
    format!("{}{ATTRIBUTES}", group.trim_end_matches('/'))
}
