//! Changes of tree stores.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::blosc2::{
    Error, ErrorKind, NDArray, NDArrayBuilder, OpenOptions, Result, SChunk, Target, Value,
};
use serde::Serialize;

use super::place::Place;
use super::place::writer::{FolderWriter, Stamp, path_of_new, put_folder};
use super::*;
use crate::archive;
use crate::folder::{Access, EntryKind, Folder};
use crate::key::{self, ENDINGS, META};
use crate::limits::copy_or_new;
use crate::object::Object;
use crate::search_indexes;
use crate::work::{Claim, Work};

const COPY: &str = "copy a store";

/// Opens the embedded store of a store in a directory for changing.
pub(super) fn open_embed(
    place: &Place,
    folder: &Folder,
    options: &OpenOptions,
) -> Result<EmbedStore> {
    unlink_copies(place, INDEX)?;
    let path = folder.path().join(INDEX);
    let file = folder.file(INDEX, Access::Change).map_err(failed(OPEN, &path))?;
    // The store is locked, so that a writer that has not finished is not alive. Entries in files are durable too.
    let options = options.clone().write(true).recover(true).durable(place.is_durable());
    options.open(Target::file(file, &path)).and_then(EmbedStore::from_schunk)
}

impl TreeStore {
    /// Opens a directory or a zip file for reading and changing.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: another handle or program has the store open for changing; see [several
    ///   writers](Self#several-writers);
    /// - [`ErrorKind::Unsupported`]: a member of the zip file is compressed or encrypted; the lock file of the
    ///   directory is a link or has several names; or the file system does not support locks;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_rw_with_limits(path, Limits::default(), None)
    }

    /// Opens a directory or a zip file for reading and changing, with the limits of
    /// [`open_with_limits`](Self::open_with_limits).
    ///
    /// # Errors
    /// Fails with the errors of [`open_rw`](Self::open_rw).
    pub fn open_rw_with_limits(
        path: impl AsRef<Path>,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self> {
        let (path, options) = (path.as_ref(), options(limits, max_read));
        let io = |error| Error::of_io(OPEN, error).at(path);
        // If the path is a link, its target is changed.
        let target = fs::canonicalize(path).map_err(io)?;
        if target.is_dir() {
            return Self::in_folder_for_changes(path, &target, &options, Claim::count);
        }
        let work = Work::beside(&target)?;
        // From here on no other handle changes it.
        let replaced = Some(Stamp::of(&target).map_err(io)?);
        let file = open_regular(&target).map_err(io)?;
        let files = InPlace::of_zip(Arc::new(file)).map_err(|error| error.at(path))?;
        let folder = Self::unpacked(&work).map_err(io)?;
        files.unpack(folder.path(), &options).map_err(|error| error.at(path))?;
        let place = Place::Unpacked { folder, work: Arc::new(work), target, replaced };
        Self::in_folder(path, place, &options)
    }

    /// The directory for the files of a zip file that is changed.
    fn unpacked(work: &Work) -> io::Result<Arc<Folder>> {
        let path = work.path().join("store");
        fs::create_dir(&path)?;
        Folder::open(&path).map(Arc::new)
    }

    fn in_folder_for_changes(
        path: &Path,
        target: &Path,
        options: &OpenOptions,
        claimed: impl FnOnce(&mut Claim) -> io::Result<()>,
    ) -> Result<Self> {
        let io = |error| Error::of_io(OPEN, error).at(path);
        let folder = Arc::new(Folder::open(target).map_err(io)?);
        Self::check_index(&folder, path, true)?;
        let mut claim = Claim::take(&folder).map_err(|error| error.at(path))?;
        claimed(&mut claim).map_err(io)?;
        let writer = Some(Arc::new(FolderWriter::new(&folder, claim)));
        Self::in_folder(path, Place::Folder { folder, writer }, options)
    }

    /// Creates an empty store: a zip file if the name ends in `.b2z`, otherwise a directory.
    ///
    /// The zip file does not exist until [`finish`](Self::finish) writes it.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the path exists; the existing file or directory is not changed;
    /// - [`ErrorKind::Busy`]: another handle or program is creating the same store, or opened the store for changing
    ///   before this call returned;
    /// - [`ErrorKind::Unsupported`]: the file system does not support locks;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the store cannot be created.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let target = path_of_new(path, MAKE)?;
        if path.extension().is_some_and(|ending| ending == "b2z") {
            let work = Work::beside(&target)?;
            let io = |error| Error::of_io(MAKE, error).at(path);
            let folder = Self::unpacked(&work).map_err(io)?;
            let embed = EmbedStore::create_as("b2tree", &folder.path().join(INDEX))?;
            let place = Place::Unpacked { folder, work: Arc::new(work), target, replaced: None };
            let mut store = Self::new(path, place, Vec::new(), embed)?;
            store.changed = true;
            return Ok(store);
        }
        put_folder(&target, MAKE, |new| {
            EmbedStore::create_as("b2tree", &new.join(INDEX))?;
            // If this fails, on a full disk for example, there is no store. Opening it then writes nothing.
            Claim::take(&Folder::open(new).map_err(failed(MAKE, new))?).map(drop)
        })?;
        Self::in_folder_for_changes(path, &target, &OpenOptions::new(), |_| Ok(()))
    }

    /// Checks that the store can be opened when it has a new key.
    fn check_groups(&mut self, key: &str) -> Result<()> {
        // The groups above a group exist.
        let new = key::above(key).take_while(|above| !self.has_below(above)).count();
        self.groups = self.groups.saturating_add(new);
        match self.groups <= MAX_GROUPS {
            true => Ok(()),
            // Groups that were removed are still in the number.
            false => self.count_groups(Some(key)),
        }
    }
}

impl TreeStore {
    /// Opens an entry for reading and changing.
    ///
    /// Drop the returned object before you replace the entry, remove the entry or drop the store. For a zip file, also
    /// drop it before you call [`finish`](Self::finish).
    ///
    /// If the file of the entry has several names (hard links), this method first copies the file, so that the files
    /// with the other names do not change.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - [`ErrorKind::ReadOnly`]: the store was opened for reading;
    /// - [`ErrorKind::Busy`]: the entry is already open for changing;
    /// - [`ErrorKind::Unsupported`], in one of these cases:
    ///   - the entry is a reference to a remote array (see [`Carrier`](crate::Carrier));
    ///   - the entry is a [sparse frame](Self#sparse-frames), which this crate only reads;
    ///   - the entry is in the embedded store `embed.b2e`, in which Python can store small entries. To replace such an
    ///     entry, use [`insert`](Self::insert);
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn edit(&mut self, key: &str) -> Result<Object> {
        let unsupported = |detail: String| self.error(ErrorKind::Unsupported, CHANGE, detail);
        self.folder_for_changes()?;
        if let Some(object) = self.objects.get(key) {
            if object.get("kind").and_then(Value::as_str) == Some("ctable") {
                return self.edit_table(key).map(Object::CTable);
            }
            return Err(unsupported(format!("`{key}` is a reference, which can only be read")));
        }
        let Some(name) = self.leaves.get(key).cloned() else {
            if self.embedded.contains(key) {
                let detail = format!("`{key}` is in the embedded store; replace it with `insert`");
                return Err(unsupported(detail));
            }
            return Err(self.missing(key));
        };
        self.check_dropped(&name)?;
        unlink_copies(&self.place, &name)?;
        let object = Object::from_schunk(self.lend(&name)?)?;
        self.lent.insert(name);
        self.changed = true;
        Ok(object)
    }

    /// Opens a file for changing.
    pub(super) fn lend(&self, name: &str) -> Result<SChunk> {
        let folder = self.folder_for_changes()?;
        let path = folder.path().join(name);
        let file = folder.file(name, Access::Change).map_err(failed(CHANGE, &path))?;
        // The store is locked, so that a writer that has not finished is not alive.
        self.options().write(true).recover(true).open(Target::file(file, &path))
    }

    /// Adds a super-chunk with all its metalayers, or replaces the entry with this key. For an array, pass its
    /// [`NDArray::schunk`]. Python: `store[key] = value`.
    ///
    /// # Errors
    /// After an error, an existing entry is unchanged.
    ///
    /// - [`ErrorKind::InvalidArgument`], in one of these cases:
    ///   - the key is invalid or [reserved](Self#keys);
    ///   - the key is the key of a table or of a reference to a remote array, or is below such a key;
    ///   - the key is below a symbolic link;
    ///   - the key is the key of a group, or is below the key of an entry (a [`DictStore`](Self::is_dict) allows such
    ///     keys);
    /// - [`ErrorKind::TooLarge`]: the store would have more than 2<sup>20</sup> groups;
    /// - [`ErrorKind::Busy`]: the existing entry is open for changing;
    /// - [`ErrorKind::ReadOnly`]: the store was opened for reading;
    /// - [`ErrorKind::InvalidData`]: a chunk of `schunk` is damaged;
    /// - [`ErrorKind::Unsupported`]: `schunk` has a chunk in the Blosc1 format;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    pub fn insert(&mut self, key: &str, schunk: &SChunk) -> Result<()> {
        self.check_free(key)?;
        self.check_meta(key, Some(schunk))?;
        self.put_schunk(key, ending(schunk), schunk)
    }

    /// Creates an array under a key, or replaces the entry with this key. Returns the array, open for changing as by
    /// [`edit`](Self::edit).
    ///
    /// `make` receives a builder that contains the path of the new file. `make` must create the array with this
    /// builder, for example with [`zeros`](NDArrayBuilder::zeros), and may fill the array. The returned array has the
    /// parameters of this array, such as the number of threads, but no prefilter and no postfilter.
    ///
    /// # Errors
    /// After an error, an existing entry is unchanged.
    ///
    /// - [`ErrorKind::InvalidArgument`]: `make` did not create the array with the builder;
    /// - the errors of [`insert`](Self::insert) for the key and the store;
    /// - the error that `make` returned.
    pub fn create_array(
        &mut self,
        key: &str,
        make: impl FnOnce(NDArrayBuilder) -> Result<NDArray>,
    ) -> Result<NDArray> {
        self.check_free(key)?;
        self.check_meta(key, None)?;
        let mut made = None;
        let name = self.put(key, "b2nd", |path| {
            let array = make(NDArray::builder().target(path))?;
            // `make` could return another array.
            made = Some(array.info()).filter(|_| array.schunk().path() == Some(path));
            Ok(())
        })?;
        let mut array = NDArray::from_schunk(self.lend(&name)?)?;
        self.lent.insert(name);
        if let Some(info) = made {
            array.set_dparams(info.dparams);
            array.set_cparams(info.cparams)?;
        }
        Ok(array)
    }

    pub(super) fn put_schunk(&mut self, key: &str, ending: &str, schunk: &SChunk) -> Result<()> {
        let put = self.put(key, ending, |path| {
            let file = File::create_new(path).map_err(failed(CHANGE, path))?;
            crate::blosc2::SaveOptions::new().save(&schunk, Target::storage(file))
        });
        put.map(drop)
    }

    /// Replaces the file of a key by a file that `write` creates under a temporary name. Returns the name of the file.
    fn put(
        &mut self,
        key: &str,
        ending: &str,
        write: impl FnOnce(&Path) -> Result<()>,
    ) -> Result<String> {
        let name = key::to_name(key, ending);
        self.check_unused([key])?;
        self.check_groups(key)?;
        let (folder, work) = self.changing()?;
        let path = folder.path().join(&name);
        let io = failed(CHANGE, &path);
        let temporary = Temporary::new(&work);
        write(&temporary.path())?;
        let written = work.folder().map_err(&io)?;
        if !written.has_file(&temporary.name) {
            let detail = format!(
                "the array for `{key}` was created in another place: use the builder that was passed"
            );
            return Err(self.error(ErrorKind::InvalidArgument, CHANGE, detail));
        }
        let old = self.leaves.get(key).cloned();
        let file = written.file(&temporary.name, Access::Change).map_err(&io)?;
        if let Some(replaced) = old.as_ref().and_then(|old| folder.metadata(old)) {
            // A private file stays private.
            file.set_permissions(replaced.permissions()).map_err(&io)?;
        }
        if self.place.is_durable() {
            // The array may have been changed after it was created.
            file.sync_all().map_err(&io)?;
        }
        drop(file);
        folder.create_folders(Path::new(&name).parent().unwrap_or(Path::new(""))).map_err(&io)?;
        folder.put(&written, &temporary.name, &name).map_err(&io)?;
        self.changed = true;
        // Only then may the old file be removed.
        self.sync_names(&name)?;
        let removed = self.remove_files(key, old.as_deref(), Some(&name)).inspect_err(|_| {
            if old.is_some_and(|old| old != name) && folder.remove_file(&name).is_ok() {
                let _ = self.sync_names(&name);
            }
        })?;
        self.leaves.insert(key.to_owned(), name.clone());
        if removed {
            self.sync_names(&name)?;
        }
        self.embed.remove_all(|each| each == key)?;
        self.embedded.remove(key);
        Ok(name)
    }

    /// Syncs the names of a file and of the directories above it to disk.
    fn sync_names(&self, name: &str) -> Result<()> {
        let folder = self.folder_for_changes()?;
        if !self.place.is_durable() {
            return Ok(());
        }
        for above in Path::new(name).ancestors().skip(1) {
            folder.sync(above).map_err(failed(CHANGE, &folder.path().join(above)))?;
        }
        Ok(())
    }

    /// Removes the files of a key with any extension, except `kept`. Returns whether there were any.
    fn remove_files(&self, key: &str, name: Option<&str>, kept: Option<&str>) -> Result<bool> {
        let folder = self.folder_for_changes()?;
        let names = ENDINGS.iter().map(|ending| key::to_name(key, ending));
        let is_of_key = |name: &String| key::of_name(name).is_some_and(|(found, _)| found == key);
        let others = names.filter(|other| is_of_key(other) && Some(&**other) != name);
        let mut any = false;
        for other in name.map(str::to_owned).into_iter().chain(others) {
            let path = folder.path().join(&other);
            let failed = failed(CHANGE, &path);
            // The name of a group can look like that of a file of the key.
            let is_group = || Ok(folder.kind(&other)? == Some(EntryKind::Folder));
            if Some(&*other) == kept || Some(&*other) != name && is_group().map_err(&failed)? {
                continue;
            }
            match folder.remove_file(&other) {
                Ok(()) => any = true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(failed(error)),
            }
        }
        Ok(any)
    }

    /// Checks that no handle for changing is open for these keys.
    fn check_unused<'a>(&self, keys: impl IntoIterator<Item = &'a str>) -> Result<()> {
        for name in keys.into_iter().filter_map(|key| self.leaves.get(key)) {
            self.check_dropped(name)?;
        }
        Ok(())
    }

    fn check_dropped(&self, name: &str) -> Result<()> {
        if !self.lent.contains(name) {
            return Ok(());
        }
        match self.lend(name) {
            Err(error) if error.kind() == ErrorKind::Busy => Err(error),
            _ => Ok(()),
        }
    }

    /// Checks that an entry can have this key.
    pub(super) fn check_free(&self, key: &str) -> Result<()> {
        self.folder_for_changes()?;
        let invalid = |detail: String| Err(self.error(ErrorKind::InvalidArgument, CHANGE, detail));
        if let Err(detail) = key::check_file(key) {
            return invalid(detail);
        }
        if !self.is_dict() && key::is_below(key, META) {
            return invalid(format!(
                "the key `{key}` is reserved: Python opens a store with keys below `{META}` as a table"
            ));
        }
        let object = self.objects.get_key_value(key).map(|(key, _)| key.as_str());
        if let Some(object) = object.or_else(|| self.object_above(key)) {
            return invalid(format!("`{object}` is a table or another object; `remove` it first"));
        }
        if self.is_dict() {
            return Ok(());
        }
        if self.is_group(key) {
            return invalid(format!("`{key}` is a group; `remove` it first"));
        }
        if let Some(above) = key::above(key).find(|above| self.contains(above)) {
            return invalid(format!("`{above}` is not a group, so no key can be below it"));
        }
        Ok(())
    }

    /// Checks that a key that makes the store a table is that of the description of a table.
    fn check_meta(&self, key: &str, schunk: Option<&SChunk>) -> Result<()> {
        if key != META || self.is_dict() {
            return Ok(());
        }
        let is_meta = |schunk: &SChunk| -> Result<bool> {
            let vlmeta = schunk.vlmeta();
            let kind = vlmeta.value("kind")?.is_some_and(|kind| kind.as_str() == Some("ctable"));
            let version = vlmeta.value("version")?.and_then(|version| version.as_u64());
            Ok(kind && version.is_some() && !schunk.info().is_array)
        };
        if schunk.is_some_and(|schunk| is_meta(schunk).unwrap_or(false)) {
            return Ok(());
        }
        let detail = format!(
            "the key `{key}` is reserved: Python opens a store with it as a table, and this is not the description of one"
        );
        Err(self.error(ErrorKind::InvalidArgument, CHANGE, detail))
    }

    /// Removes an entry, a table with all its parts, or a group with all its entries and groups. In a
    /// [`DictStore`](Self::is_dict), only entries can be removed. Python: `del store[key]`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry or group with this key;
    /// - [`ErrorKind::Busy`]: an entry to be removed is open for changing;
    /// - [`ErrorKind::Unsupported`]: an entry to be removed is a sparse frame;
    /// - [`ErrorKind::ReadOnly`]: the store was opened for reading;
    /// - [`ErrorKind::Io`]: a file cannot be removed.
    pub fn remove(&mut self, key: &str) -> Result<()> {
        let folder = Arc::clone(self.folder_for_changes()?);
        let is_object = self.objects.contains_key(key);
        if is_object {
            self.find_parts(key)?;
        }
        if !self.contains(key) && (self.is_dict() || !self.is_group(key)) {
            return Err(self.missing(key));
        }
        let with_below = is_object || !self.is_dict();
        let goes = |each: &str| each == key || with_below && key::is_below(each, key);
        let gone: Vec<String> =
            self.all_keys().filter(|each| goes(each)).map(str::to_owned).collect();
        self.check_unused(gone.iter().map(String::as_str))?;
        for name in gone.iter().filter_map(|key| self.leaves.get(key)) {
            // A sparse frame is not removed.
            let path = folder.path().join(name);
            if folder.kind(name).map_err(failed(CHANGE, &path))? == Some(EntryKind::Folder) {
                let detail = "it is a directory (sparse frame), which is not removed";
                return Err(Error::new(ErrorKind::Unsupported, CHANGE, detail).at(path));
            }
        }
        self.changed = true;
        let mut objects = self.objects.clone();
        objects.retain(|each, _| !goes(each));
        if objects.len() < self.objects.len() {
            self.register(objects)?;
        }
        // First, so that no embedded entry appears that a file with its key has replaced.
        self.embed.remove_all(goes)?;
        self.embedded.retain(|key| !goes(key));
        for key in gone {
            let Some(name) = self.leaves.get(&key).cloned() else { continue };
            self.remove_files(&key, Some(&name), None)?;
            self.leaves.remove(&key);
            self.sync_names(&name)?;
            // Remove directories that are empty now.
            let above = Path::new(&name).ancestors().skip(1);
            for above in above.filter(|above| !above.as_os_str().is_empty()) {
                if folder.remove_folder(above).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Stores the registry of tables and other objects.
    pub(super) fn register(&mut self, objects: BTreeMap<String, Value>) -> Result<()> {
        let listed = objects.iter().map(|(key, is)| (Value::from(key.as_str()), is.clone()));
        let listed = Value::Map(listed.collect());
        self.embed.schunk_mut().vlmeta_mut().set_value(REGISTRY, &listed)?;
        self.objects = objects;
        Ok(())
    }

    /// Sets an attribute of a group; `/` is the root. The group is created if it does not exist.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the key `group` is invalid for a group; `name` is
    ///   [reserved](blosc2::super_chunk::MetalayersMut::with_reserved), empty or longer than 31 bytes; or the group
    ///   already has 16 other attributes;
    /// - [`ErrorKind::Unsupported`]: the store is a `DictStore`, which has no groups;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn set_attribute<T: Serialize + ?Sized>(
        &mut self,
        group: &str,
        name: &str,
        value: &T,
    ) -> Result<()> {
        if self.is_dict() {
            let detail = "it is a DictStore, which has no groups with attributes";
            return Err(self.error(ErrorKind::Unsupported, CHANGE, detail));
        }
        self.check_group(group)?;
        self.change_attributes(group, |schunk| schunk.vlmeta_mut().set_value(name, value))
    }

    /// Checks that a group can have this key: it is neither an entry nor below one.
    fn check_group(&self, group: &str) -> Result<()> {
        if group == "/" {
            return Ok(());
        }
        key::check_file(group)
            .map_err(|what| self.error(ErrorKind::InvalidArgument, CHANGE, what))?;
        self.check_free(&format!("{group}/-"))
    }

    /// Removes an attribute of a group; `/` is the root. Returns whether the attribute existed.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the key `group` is invalid for a group; or `name` is
    ///   [reserved](blosc2::super_chunk::MetalayersMut::with_reserved);
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn remove_attribute(&mut self, group: &str, name: &str) -> Result<bool> {
        self.folder_for_changes()?;
        self.check_group(group)?;
        match self.leaf(&attributes_key(group))? {
            Some(_) => self.change_attributes(group, |schunk| schunk.vlmeta_mut().remove(name)),
            None => Ok(false),
        }
    }

    fn change_attributes<R>(
        &mut self,
        group: &str,
        change: impl FnOnce(&mut SChunk) -> Result<R>,
    ) -> Result<R> {
        self.folder_for_changes()?;
        let key = attributes_key(group);
        let mut schunk = copy_or_new(self.leaf(&key)?.as_ref())?;
        let changed = change(&mut schunk)?;
        self.put_schunk(&key, "b2f", &schunk)?;
        Ok(changed)
    }

    /// Writes all changes of a store in a zip file: creates the zip file or replaces it atomically, and syncs it to
    /// disk. Afterwards, the store can be changed and finished again.
    ///
    /// For a store in a directory, this method does nothing, because each change of the store is already synced to
    /// disk. Changes through an object of [`edit`](Self::edit) or [`create_array`](Self::create_array) are not synced:
    /// call `sync` on the super-chunk of the object.
    ///
    /// # Errors
    /// After an error, the old zip file is unchanged. No change is lost: call this method again.
    ///
    /// - [`ErrorKind::Io`]: the zip file cannot be written;
    /// - [`ErrorKind::Busy`]: an entry of the zip file is still open for changing; or another program, such as Python,
    ///   has changed the zip file since this store was opened;
    /// - [`ErrorKind::AlreadyExists`]: the store is new, and a file was created at its path after the call of
    ///   [`create`](Self::create).
    pub fn finish(&mut self) -> Result<()> {
        if !matches!(self.place, Place::Unpacked { .. }) || !self.changed {
            return Ok(());
        }
        // Later writes through these handles would be lost.
        self.lent.iter().try_for_each(|name| self.check_dropped(name))?;
        let options = self.options();
        if let Place::Unpacked { folder, work, target, replaced } = &mut self.place {
            // Other handles of this crate are excluded by the directory for temporary files, Python's are not.
            let check = || match &*replaced {
                Some(stamp) if Stamp::of(target).ok().as_ref() != Some(stamp) => {
                    let detail =
                        "another program has changed or removed the file since it was opened";
                    Err(Error::new(ErrorKind::Busy, CHANGE, detail).at(&*target))
                }
                _ => Ok(()),
            };
            archive::pack(folder, work, target, replaced.is_some(), &options, check)?;
            *replaced = Some(Stamp::of(target).map_err(failed(CHANGE, target))?);
        }
        self.changed = false;
        Ok(())
    }

    /// Packs a copy of the store into a new zip file. Symbolic links in the store and Python's search indexes of arrays
    /// are not copied. Python: `to_b2z`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the path exists;
    /// - [`ErrorKind::Busy`]: another handle or program is creating the same file; or a file of the store became
    ///   shorter during the call;
    /// - [`ErrorKind::Unsupported`]: the store is an [archive](Self::is_archive), and a member is compressed or
    ///   encrypted; or the store is a directory, and a file name is not UTF-8;
    /// - [`ErrorKind::InvalidData`]: the store is an archive, and a member is invalid;
    /// - [`ErrorKind::TooLarge`]: an array exceeds the limits with which the store was opened, so that it cannot be
    ///   searched for indexes; or the list of the members would have more than 256 MiB;
    /// - [`ErrorKind::Io`]: the zip file cannot be written.
    pub fn pack(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let target = path_of_new(path, COPY)?;
        let work = Work::beside(&target)?;
        let folder = match self.place.files() {
            Files::InPlace(files) => {
                let folder = Self::unpacked(&work).map_err(failed(COPY, path))?;
                files.unpack(folder.path(), &self.options())?;
                folder
            }
            Files::Folder(folder) => Arc::clone(folder),
        };
        archive::pack(&folder, &work, &target, false, &self.options(), || Ok(()))
    }

    /// Copies or unpacks the store into a new directory. Symbolic links in the store and Python's search indexes of
    /// arrays are not copied. The new directory appears when it is complete. If the store is a directory, the copies
    /// have the permissions of the original files. Python: `to_b2d`.
    ///
    /// # Errors
    /// Fails with the errors of [`pack`](Self::pack), except those about the names of files and the list of the members.
    pub fn unpack(&self, path: impl AsRef<Path>) -> Result<()> {
        put_folder(&path_of_new(path.as_ref(), COPY)?, COPY, |copy| match self.place.files() {
            Files::InPlace(files) => files.unpack(copy, &self.options()),
            Files::Folder(folder) => {
                let copy = Folder::open(copy).map_err(failed(COPY, copy))?;
                copy_files(folder, &copy, &self.options())
            }
        })
    }

    pub(super) fn folder_for_changes(&self) -> Result<&Arc<Folder>> {
        match self.place.folder().filter(|_| self.place.is_writable()) {
            Some(folder) => Ok(folder),
            None => Err(self.error(ErrorKind::ReadOnly, CHANGE, "it was opened for reading")),
        }
    }

    /// The directories of the store and of temporary files.
    fn changing(&self) -> Result<(Arc<Folder>, Arc<Work>)> {
        let folder = Arc::clone(self.folder_for_changes()?);
        let work = self.place.work()?;
        Ok((folder, work.expect("the store is opened for changing")))
    }
}

/// A name in the directory for temporary files, and whatever has this name in the end is removed.
struct Temporary<'a> {
    work: &'a Work,
    name: String,
}

impl<'a> Temporary<'a> {
    fn new(work: &'a Work) -> Self {
        Self { work, name: work.new_name() }
    }

    fn path(&self) -> PathBuf {
        self.work.path().join(&self.name)
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        let path = self.path();
        if fs::remove_file(&path).is_err() {
            let _ = fs::remove_dir_all(&path);
        }
        let _ = fs::remove_file(self.work.path().join(format!("{}.b2lock", self.name)));
    }
}

/// Replaces a file that has other names (hard links) by a copy of its own, so that a change does not change what has
/// the other names.
pub(super) fn unlink_copies(place: &Place, name: &str) -> Result<()> {
    let Some((folder, work)) = place.folder().zip(place.work_for(name)?) else { return Ok(()) };
    let path = folder.path().join(name);
    let io = failed(CHANGE, &path);
    let temporary = Temporary::new(&work);
    let new = work.folder().map_err(&io)?;
    let file = folder.file(name, Access::Read).map_err(&io)?;
    copy_file(&file, &new, &temporary.name).map_err(&io)?;
    folder.put(&new, &temporary.name, name).map_err(&io)?;
    if place.is_durable() {
        folder.sync(Path::new(name).parent().unwrap_or(Path::new(""))).map_err(&io)?;
    }
    Ok(())
}

/// Copies the content of a store in a directory, without the search indexes of arrays, into another directory.
fn copy_files(from: &Folder, to: &Folder, options: &OpenOptions) -> Result<()> {
    for file in from.files().map_err(failed(COPY, from.path()))? {
        if file.text().is_some_and(|name| key::is_internal(&name)) {
            continue;
        }
        let path = from.path().join(&file.name);
        let io = failed(COPY, &path);
        to.create_folders(file.name.parent().unwrap_or(Path::new(""))).map_err(&io)?;
        let source = from.file(&file.name, Access::Read).map_err(&io)?;
        let copy = copy_file(&source, to, &file.name).map_err(&io)?;
        let name = file.name.to_string_lossy();
        search_indexes::remove(&name, &copy, options).map_err(|error| error.at(&path))?;
        copy.sync_all().map_err(io)?;
    }
    Ok(())
}

/// Copies a file with its permissions into a directory that nobody else can read, and syncs it.
fn copy_file(mut source: &File, to: &Folder, name: impl AsRef<Path>) -> io::Result<File> {
    let mut target = to.file(name, Access::Create)?;
    target.set_permissions(source.metadata()?.permissions())?;
    io::copy(&mut source, &mut target)?;
    target.sync_all()?;
    Ok(target)
}

/// The file extension for a super-chunk, by its container.
fn ending(schunk: &SChunk) -> &'static str {
    let has = |name| schunk.meta().contains(name);
    match () {
        () if has("b2nd") => "b2nd",
        () if has("batcharray") => "b2b",
        () => "b2f",
    }
}
