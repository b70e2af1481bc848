//! Changes of tree stores.

use std::fs;
use std::path::{Path, PathBuf};

use blosc2::{Error, ErrorKind, NDArray, NDArrayBuilder, OpenOptions, Result, SChunk, Value};
use serde::Serialize;

use super::place::{Place, Stamp, folder_beside, put_folder};
use super::{ATTRIBUTES, ENDINGS, INDEX, REGISTRY, TreeStore, attributes_key};
use crate::archive::{self, files_of, folder_of, sync_folder};
use crate::key;
use crate::object::Object;

pub(super) const CHANGE: &str = "change a store";
const COPY: &str = "copy a store";

impl TreeStore {
    /// Opens an entry for reading and changing.
    ///
    /// Drop the returned object before you replace or remove the entry, and for a zip file before
    /// [`finish`](Self::finish).
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry with this key;
    /// - [`ErrorKind::ReadOnly`]: the store was opened for reading;
    /// - [`ErrorKind::Busy`]: the entry is already open for changing;
    /// - [`ErrorKind::Unsupported`]: the entry is a reference, which this crate only reads; or it is a symbolic link,
    ///   which is not changed; or it is in the embedded store `embed.b2e`, where Python can store small
    ///   entries (use [`insert`](Self::insert) to replace such an entry);
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
        let path = self.real(&name)?;
        if path.is_symlink() {
            return Err(unsupported(format!("`{key}` is a symbolic link, which is not changed")));
        }
        let object = Object::from_schunk(SChunk::open_rw(path)?)?;
        self.lent.insert(name);
        self.changed = true;
        Ok(object)
    }

    /// Adds a super-chunk with all its metalayers, or replaces the entry with this key. For an array, pass its
    /// [`NDArray::schunk`]. Python: `store[key] = value`.
    ///
    /// # Errors
    /// If it fails, an existing entry is not changed.
    ///
    /// - [`ErrorKind::InvalidArgument`]: the key is not [valid](Self) or is reserved (`/embed`, or a last part
    ///   `__vlmeta__`); or it is the key of a table, of a part of a table or of a reference; or it is below a symbolic
    ///   link; or it is the key of a group or is below an entry, and the store is a `TreeStore` of Python. (In a
    ///   [`DictStore`](Self::is_dict), these keys are allowed.)
    /// - [`ErrorKind::Busy`]: the existing entry is open for changing;
    /// - [`ErrorKind::ReadOnly`]: the store was opened for reading;
    /// - [`ErrorKind::InvalidData`]: a chunk of `schunk` is damaged;
    /// - [`ErrorKind::Unsupported`]: `schunk` has a chunk in the Blosc1 format;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    pub fn insert(&mut self, key: &str, schunk: &SChunk) -> Result<()> {
        self.check_free(key)?;
        self.put_schunk(key, ending(schunk), schunk)
    }

    /// Creates an array under a key, or replaces the entry with this key, and opens the array for changing, as
    /// [`edit`](Self::edit) does.
    ///
    /// `make` receives a builder on which the path of the new file is set. It must create the array with this builder,
    /// for example with [`zeros`](NDArrayBuilder::zeros), and may fill it.
    ///
    /// # Errors
    /// If it fails, an existing entry is not changed.
    ///
    /// - [`ErrorKind::InvalidArgument`]: `make` did not create the array with the builder that it received;
    /// - the errors of [`insert`](Self::insert) for the key and the store;
    /// - the error that `make` returned.
    pub fn create_array(
        &mut self,
        key: &str,
        make: impl FnOnce(NDArrayBuilder) -> Result<NDArray>,
    ) -> Result<NDArray> {
        self.check_free(key)?;
        let name = self.put(key, "b2nd", |path| make(NDArray::builder().file(path)).map(drop))?;
        let array = NDArray::open_rw(self.real(&name)?)?;
        self.lent.insert(name);
        Ok(array)
    }

    pub(super) fn put_schunk(&mut self, key: &str, ending: &str, schunk: &SChunk) -> Result<()> {
        let put = self.put(key, ending, |path| {
            let file = fs::File::create_new(path).map_err(io(CHANGE, path))?;
            schunk.save_in(file, &blosc2::SaveOptions::new())
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
        let name = format!("{}.{ending}", key.trim_start_matches('/'));
        let path = self.real(&name)?;
        self.check_unused([key])?;
        let parent = folder_of(&path);
        fs::create_dir_all(parent).map_err(io(CHANGE, parent))?;
        let folder = folder_beside(&path)?;
        let new = folder.path().join("new");
        write(&new)?;
        if !new.is_file() {
            let detail = format!(
                "the array for `{key}` was created in another place: use the builder that was passed"
            );
            return Err(self.error(ErrorKind::InvalidArgument, CHANGE, detail));
        }
        if self.is_durable() {
            // The array may have been changed after it was created.
            fs::File::open(&new).and_then(|file| file.sync_all()).map_err(io(CHANGE, &new))?;
        }
        fs::rename(&new, &path).map_err(io(CHANGE, &path))?;
        self.changed = true;
        // Only then may the old file be removed.
        self.sync_names(&name)?;
        let old = self.leaves.get(key).cloned();
        let removed = self.remove_files(key, old.as_deref(), Some(&name)).inspect_err(|_| {
            if old.is_some_and(|old| old != name) && fs::remove_file(&path).is_ok() {
                let _ = self.sync_names(&name);
            }
        })?;
        self.leaves.insert(key.to_owned(), name.clone());
        if removed {
            self.sync_names(&name)?;
        }
        if self.embed.contains(key) {
            self.embed.remove(key)?;
        }
        self.embedded.remove(key);
        Ok(name)
    }

    /// Whether each change is on disk before the call returns. The files in the temporary folder of a zip file need not
    /// be.
    fn is_durable(&self) -> bool {
        matches!(self.place, Place::Folder { .. })
    }

    /// Syncs the names of a file and of the folders above it to disk.
    fn sync_names(&self, name: &str) -> Result<()> {
        let folder = self.folder_for_changes()?;
        if !self.is_durable() {
            return Ok(());
        }
        for above in Path::new(name).ancestors().skip(1) {
            let above = folder.join(above);
            sync_folder(&above).map_err(io(CHANGE, &above))?;
        }
        Ok(())
    }

    /// Removes the files of a key with any extension, except `kept`. Returns whether there were any.
    fn remove_files(&self, key: &str, name: Option<&str>, kept: Option<&str>) -> Result<bool> {
        let stem = key.trim_start_matches('/');
        let names = ENDINGS.iter().map(|ending| format!("{stem}.{ending}"));
        let mut any = false;
        for name in names.chain(name.map(str::to_owned)).filter(|name| Some(&**name) != kept) {
            let path = self.real(&name)?;
            match fs::remove_file(&path) {
                Ok(()) => any = true,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(io(CHANGE, &path)(error)),
            }
        }
        Ok(any)
    }

    /// The path of a file, after checking that no symbolic link is in it.
    pub(super) fn real(&self, name: &str) -> Result<PathBuf> {
        let folder = self.folder_for_changes()?;
        let path = folder.join(name);
        let above = path.ancestors().skip(1).take_while(|above| *above != folder);
        if let Some(link) = above.into_iter().find(|above| above.is_symlink()) {
            let detail = format!("`{}` is a symbolic link, which is not changed", link.display());
            return Err(self.error(ErrorKind::InvalidArgument, CHANGE, detail));
        }
        Ok(path)
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
        match SChunk::open_rw(self.real(name)?) {
            Err(error) if error.kind() == ErrorKind::Busy => Err(error),
            _ => Ok(()),
        }
    }

    /// Checks that an entry can have this key.
    pub(super) fn check_free(&self, key: &str) -> Result<()> {
        self.folder_for_changes()?;
        let invalid = |detail: String| Err(self.error(ErrorKind::InvalidArgument, CHANGE, detail));
        if let Err(detail) = key::check(key) {
            return invalid(detail);
        }
        if key == "/embed" || key.rsplit('/').next() == Some(&ATTRIBUTES[1..]) {
            return invalid(format!("the key `{key}` is reserved"));
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

    /// Removes an entry, a table with all its parts, or a group with everything below it. A
    /// [`DictStore`](Self::is_dict) has no groups that can be removed. Python: `del store[key]`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no entry or group with this key;
    /// - [`ErrorKind::Busy`]: an entry to be removed is open for changing;
    /// - [`ErrorKind::ReadOnly`]: the store was opened for reading;
    /// - [`ErrorKind::Io`]: a file cannot be removed.
    pub fn remove(&mut self, key: &str) -> Result<()> {
        let folder = self.folder_for_changes()?.to_owned();
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
            self.real(name)?;
        }
        self.changed = true;
        let mut objects = self.objects.clone();
        objects.retain(|each, _| !goes(each));
        if objects.len() < self.objects.len() {
            let listed = objects.iter();
            let listed = listed.map(|(key, is)| (Value::from(key.as_str()), is.clone()));
            let listed = Value::Map(listed.collect());
            self.embed.schunk_mut().vlmeta_mut().set_value(REGISTRY, &listed)?;
            self.objects = objects;
        }
        for key in gone {
            if let Some(name) = self.leaves.get(&key).cloned() {
                self.remove_files(&key, Some(&name), None)?;
                self.leaves.remove(&key);
                self.sync_names(&name)?;
                // Remove folders that are empty now.
                let above = Path::new(&name).ancestors().skip(1);
                for above in above.filter(|above| !above.as_os_str().is_empty()) {
                    if fs::remove_dir(folder.join(above)).is_err() {
                        break;
                    }
                }
            }
            if self.embed.contains(&key) {
                self.embed.remove(&key)?;
            }
            self.embedded.remove(&key);
        }
        Ok(())
    }

    /// Sets an attribute of a group; `/` is the root. The group is created if it does not exist.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: no group can have this key; or `name` is reserved, empty or longer than 31
    ///   bytes; or the group already has 16 other attributes;
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
        if group != "/" {
            // A group is neither an entry nor below one.
            key::check(group)
                .map_err(|what| self.error(ErrorKind::InvalidArgument, CHANGE, what))?;
            self.check_free(&format!("{group}/-"))?;
        }
        self.change_attributes(group, |schunk| schunk.vlmeta_mut().set_value(name, value))
    }

    /// Removes an attribute of a group. Returns whether it existed.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `name` is reserved;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn remove_attribute(&mut self, group: &str, name: &str) -> Result<bool> {
        self.folder_for_changes()?;
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
        let mut schunk = match self.leaf(&key)? {
            Some(schunk) => OpenOptions::new().write(true).from_cframe(schunk.to_cframe()?)?,
            // The chunk size that Python uses for a super-chunk without data.
            None => OpenOptions::new().chunksize(16 << 20).in_memory_frame()?,
        };
        let changed = change(&mut schunk)?;
        self.put_schunk(&key, "b2f", &schunk)?;
        Ok(changed)
    }

    /// Writes the changes of a zip file: creates the file or replaces it atomically, and syncs it to disk. The changes of
    /// a directory are already on disk, except those that were made through the objects of [`edit`](Self::edit) and
    /// [`create_array`](Self::create_array). The store can be changed and finished again.
    ///
    /// # Errors
    /// If it fails, the old zip file is not changed, and the changes are not lost: the call can be repeated.
    ///
    /// - [`ErrorKind::Io`]: the zip file cannot be written;
    /// - [`ErrorKind::Busy`]: an entry of the zip file is still open for changing; or another handle or program has
    ///   changed the zip file since it was opened;
    /// - [`ErrorKind::AlreadyExists`]: a file was created at the path of a new store after [`create`](Self::create).
    pub fn finish(&mut self) -> Result<()> {
        if matches!(self.place, Place::Unpacked { .. }) {
            if !self.changed {
                return Ok(());
            }
            // Later writes through these handles would be lost.
            self.lent.iter().try_for_each(|name| self.check_dropped(name))?;
        }
        match &mut self.place {
            Place::Unpacked { folder, target, replaced } => {
                let permissions = match replaced {
                    Some(stamp) if Stamp::of(target).is_ok_and(|now| now != *stamp) => {
                        let detail =
                            "another handle or program has changed the file since it was opened";
                        return Err(Error::new(ErrorKind::Busy, CHANGE, detail).at(target));
                    }
                    Some(_) => fs::metadata(&*target).ok().map(|metadata| metadata.permissions()),
                    None => None,
                };
                archive::pack(folder.path(), INDEX, target, permissions)?;
                *replaced = Some(Stamp::of(target).map_err(io(CHANGE, target))?);
            }
            Place::Archive(_) | Place::Folder { .. } => return Ok(()),
        }
        self.changed = false;
        Ok(())
    }

    /// Packs a copy of the store into a new zip file. Python: `to_b2z`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the path exists;
    /// - [`ErrorKind::Unsupported`]: the store is a zip file that is read in place, and a member is compressed or
    ///   encrypted;
    /// - [`ErrorKind::InvalidData`]: the store is a zip file that is read in place, and its members are invalid;
    /// - [`ErrorKind::Io`]: the zip file cannot be written.
    pub fn pack(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        match &self.place {
            Place::Archive(archive) => {
                let folder = folder_beside(path)?;
                archive.unpack(folder.path())?;
                archive::pack(folder.path(), INDEX, path, None)
            }
            place => archive::pack(place.folder().unwrap_or(&self.path), INDEX, path, None),
        }
    }

    /// Unpacks a copy of the store into a new directory, which appears when it is complete. Python: `to_b2d`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the path exists;
    /// - [`ErrorKind::Unsupported`]: the store is a zip file that is read in place, and a member is compressed or
    ///   encrypted;
    /// - [`ErrorKind::InvalidData`]: the store is a zip file that is read in place, and its members are invalid;
    /// - [`ErrorKind::Io`]: the directory cannot be written.
    pub fn unpack(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        if path.symlink_metadata().is_ok() {
            let detail = "it already exists";
            return Err(Error::new(ErrorKind::AlreadyExists, COPY, detail).at(path));
        }
        put_folder(&folder_beside(path)?, path, COPY, |copy| match &self.place {
            Place::Archive(archive) => archive.unpack(copy),
            place => {
                let folder = place.folder().unwrap_or(&self.path);
                for file in files_of(folder) {
                    let file = file.map_err(io(COPY, folder))?;
                    let target = copy.join(file.strip_prefix(folder).unwrap_or(&file));
                    fs::create_dir_all(folder_of(&target)).map_err(io(COPY, &target))?;
                    fs::copy(&file, &target).map_err(io(COPY, &target))?;
                }
                Ok(())
            }
        })
    }

    fn folder_for_changes(&self) -> Result<&Path> {
        match self.place.folder().filter(|_| self.place.is_writable()) {
            Some(folder) => Ok(folder),
            None => Err(self.error(ErrorKind::ReadOnly, CHANGE, "it was opened for reading")),
        }
    }
}

/// Converts an error of the operating system for a path.
fn io(doing: &'static str, path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::of_io(doing, error).at(path)
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
