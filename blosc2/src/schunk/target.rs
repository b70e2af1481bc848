//! The places of frames: paths, bytes in memory, custom storage backends and custom directories.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use blosc2_format::directory::{self, Disk, FolderMut, INDEX};
use blosc2_format::{Options, ReadAt, Report};

use super::store::{Contiguous, Directory, Files, Memory, Store};
use super::{SChunk, files};
use crate::bytes::{Guarded, Safety, Shared, Storage};
use crate::error::AnyError;
use crate::gate::{Claim, FileId, Gate, links};
use crate::{Error, ErrorKind, Reason, Result};

const FIND: &str = "find a frame";

/// The place of a frame (the stored form of a super-chunk). The methods that open, create and save super-chunks and
/// arrays take any type that converts to a `Target`.
///
/// | place | target |
/// |---|---|
/// | a file or a directory | its path: any reference to a type that implements `AsRef<Path>`, such as `&str` or `&Path`, or a `PathBuf`, `String` or `OsString` |
/// | a new directory with one file for each chunk (a sparse frame) | its path with [`directory(true)`](Self::directory) |
/// | a part of a file | the path with an [`offset`](Self::offset) |
/// | bytes in memory: one buffer, with the content of a file | `Vec<u8>`, [`Target::bytes`] |
/// | memory, with a separate allocation for each chunk | [`Target::memory`] |
/// | a custom storage backend | [`Target::storage`] |
/// | a custom directory | [`Target::folder`] |
///
/// An existing frame in a `Vec<u8>` is opened without a copy. To create a frame in one buffer, pass an empty vector.
/// [`SChunk::into_cframe`] returns the vector. [`OpenOptions::with_borrowed`](crate::OpenOptions::with_borrowed) opens a
/// frame in borrowed memory.
///
/// ```
/// use blosc2::{CParams, SChunk, Target};
///
/// # let folder = tempfile::tempdir()?;
/// let mut schunk = SChunk::create::<u64>(Vec::new(), CParams::default())?;
/// schunk.append(&[1u64, 2, 3])?;
/// schunk.save(folder.path().join("file.b2frame"))?;
/// schunk.save(Target::from(folder.path().join("directory.b2frame")).directory(true))?;
/// assert_eq!(SChunk::open(schunk.into_cframe()?)?.len(), 3);
/// assert_eq!(SChunk::open(folder.path().join("directory.b2frame"))?.len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias("urlpath", "cframe", "contiguous", "blosc2_stdio_mmap", "blosc2_io"))]
pub struct Target {
    pub(super) place: Place,
    pub(super) offset: u64,
    directory: bool,
}

#[derive(Debug)]
pub(super) enum Place {
    Memory,
    Path(PathBuf),
    Bytes(Vec<u8>),
    Storage {
        storage: Box<dyn Storage>,
        /// Whether only the handle of this target can access the bytes.
        is_owned: bool,
        /// The path of the file, for messages.
        path: Option<PathBuf>,
    },
    Folder(Box<dyn Sparse>),
}

/// The files of a sparse frame.
pub(super) trait Sparse: std::fmt::Debug + Send + Sync {
    fn has_frame(&self) -> Result<bool>;

    /// Checks the frame; see [`directory::check`].
    fn check(&self, options: &Options) -> Result<Report, blosc2_format::Error>;

    fn into_store(self: Box<Self>, safety: Safety) -> Box<dyn Store>;
}

impl<F: Files> Sparse for F {
    fn has_frame(&self) -> Result<bool> {
        match self.open(INDEX) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(Error::of_io(FIND, error)),
        }
    }

    fn check(&self, options: &Options) -> Result<Report, blosc2_format::Error> {
        directory::check(self, options)
    }

    fn into_store(self: Box<Self>, safety: Safety) -> Box<dyn Store> {
        Box::new(Directory::new(*self, safety))
    }
}

impl Target {
    fn new(place: Place) -> Self {
        Self { place, offset: 0, directory: false }
    }

    /// Returns memory for a new super-chunk or array, in which each chunk has a separate allocation. Opening this target
    /// always creates a super-chunk. C: `contiguous` is `false`, and `urlpath` is `NULL`.
    ///
    /// ```
    /// use blosc2::{OpenOptions, Target};
    ///
    /// let schunk = OpenOptions::new().typesize(8).open(Target::memory())?;
    /// assert!(schunk.is_empty());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn memory() -> Self {
        Self::new(Place::Memory)
    }

    /// Returns the bytes of an existing contiguous frame in memory, for reading without a copy. `owner` may be any type
    /// that owns memory, such as `Arc<[u8]>`, `&'static [u8]`, `bytes::Bytes` or `memmap2::Mmap`. C:
    /// `blosc2_schunk_from_buffer` without a copy.
    ///
    /// The super-chunk owns `owner`, and drops it when the super-chunk is dropped. Changes fail with
    /// [`ErrorKind::ReadOnly`].
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use blosc2::{CParams, SChunk, Target};
    ///
    /// let mut schunk = SChunk::in_memory::<u32>(&CParams::default())?;
    /// schunk.append(&[1u32, 2, 3])?;
    /// let frame: Arc<[u8]> = schunk.to_cframe()?.into();
    /// let opened = SChunk::open(Target::bytes(frame.clone()))?;
    /// assert_eq!(opened.read::<u32>(1..)?, [2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "blosc2_schunk_from_buffer")]
    pub fn bytes(owner: impl AsRef<[u8]> + Send + Sync + 'static) -> Self {
        Self::owned(Guarded(Shared(owner)))
    }

    /// Returns a storage whose bytes only this target can access.
    pub(super) fn owned(storage: impl Storage + 'static) -> Self {
        Self::new(Place::Storage { storage: Box::new(storage), is_owned: true, path: None })
    }

    /// Returns a custom storage backend, which contains a contiguous frame. C: `blosc2_schunk_open_udio`.
    ///
    /// To read a frame from any source that implements [`ReadAt`](crate::storage::ReadAt), wrap the source in
    /// [`ReadOnly`](crate::storage::ReadOnly). A frame can be created in a storage that is empty; with `replace`, the
    /// content of the storage is discarded. A panic of the storage becomes an error of the kind
    /// [`ErrorKind::Callback`].
    ///
    /// ```
    /// use blosc2::{CParams, SChunk, Target};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// schunk.append(b"some bytes")?;
    /// let file = tempfile::tempfile()?;
    /// schunk.save(Target::storage(file.try_clone()?))?;
    /// assert_eq!(file.metadata()?.len(), schunk.to_cframe()?.len() as u64);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias = "blosc2_schunk_open_udio")]
    pub fn storage(storage: impl Storage + 'static) -> Self {
        let storage = Box::new(Guarded(storage));
        Self::new(Place::Storage { storage, is_owned: false, path: None })
    }

    /// Returns a file that the caller has opened at `path`, for example without following links. The path appears in
    /// error messages and is the [path](SChunk::path) of the super-chunk. It is not resolved again.
    ///
    /// A handle of this target takes no lock: if other handles can change the file, the caller must hold its lock.
    ///
    /// ```
    /// use std::fs::File;
    ///
    /// use blosc2::{SChunk, Target};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.b2frame");
    /// SChunk::in_memory::<u8>(&Default::default())?.save(&path)?;
    /// let schunk = SChunk::open(Target::file(File::open(&path)?, &path))?;
    /// assert_eq!(schunk.path(), Some(&*path));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn file(file: File, path: impl AsRef<Path>) -> Self {
        let path = Some(path.as_ref().to_owned());
        Self::new(Place::Storage { storage: Box::new(file), is_owned: false, path })
    }

    /// Returns a custom directory, which contains a sparse frame: an index file and one file for each chunk. C:
    /// `blosc2_schunk_open_udio` of a directory.
    ///
    /// A custom directory is a value whose type implements [`FolderMut`](crate::storage::FolderMut), for example for
    /// files in an object store. A frame can be created in it if it has no index file, `chunks.b2frame`. A frame in a
    /// custom directory cannot be replaced; remove its files first. A panic of the directory becomes an error of the
    /// kind [`ErrorKind::Callback`].
    ///
    /// This crate does not coordinate several handles of one custom directory. A change fails with [`ErrorKind::Busy`]
    /// if another handle has changed the frame since this handle last read the metadata. [`SChunk::refresh`] reads the
    /// changes of other handles.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::io;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use blosc2::storage::{Folder, FolderMut};
    /// use blosc2::{OpenOptions, SChunk, Target};
    ///
    /// /// Objects by their names.
    /// #[derive(Debug, Clone, Default)]
    /// struct Bucket(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);
    ///
    /// impl Folder for Bucket {
    ///     type File = Vec<u8>;
    ///
    ///     fn open(&self, name: &str) -> io::Result<Vec<u8>> {
    ///         let objects = self.0.lock().unwrap();
    ///         objects.get(name).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    ///     }
    ///
    ///     fn names(&self) -> io::Result<Vec<String>> {
    ///         Ok(self.0.lock().unwrap().keys().cloned().collect())
    ///     }
    /// }
    ///
    /// impl FolderMut for Bucket {
    ///     fn put(&mut self, name: &str, content: &[u8], _durable: bool) -> io::Result<()> {
    ///         self.0.lock().unwrap().insert(name.to_owned(), content.to_vec());
    ///         Ok(())
    ///     }
    ///
    ///     fn remove(&mut self, name: &str) -> io::Result<()> {
    ///         let removed = self.0.lock().unwrap().remove(name);
    ///         removed.map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    ///     }
    /// }
    ///
    /// let bucket = Bucket::default();
    /// let place = Target::folder(bucket.clone());
    /// let mut schunk = OpenOptions::new().create(true).typesize(8).open(place)?;
    /// schunk.append(&[1u64, 2, 3])?;
    /// assert_eq!(bucket.names()?, ["00000000.chunk", "chunks.b2frame"]);
    /// assert_eq!(SChunk::open(Target::folder(bucket))?.read::<u64>(1..)?, [2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias("blosc2_schunk_open_udio", "sparse"))]
    pub fn folder<F>(folder: F) -> Self
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        Self::new(Place::Folder(Box::new(Guarded(folder))))
    }

    /// Sets the byte offset at which an existing contiguous frame starts in the file, the bytes or the storage. Default:
    /// 0. A frame at another offset can be opened only for reading.
    /// [`SaveOptions::append`](crate::SaveOptions::append) writes such a frame. C: `blosc2_schunk_open_offset`.
    #[doc(alias = "blosc2_schunk_open_offset")]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// Sets whether a new frame at a path is a directory with one file for each chunk (a sparse frame) instead of a
    /// contiguous file. Off by default. C and Python: `contiguous=False`.
    ///
    /// An existing frame is opened with either setting. Existing directories are never replaced. Creating a frame in
    /// a target that is no path fails with [`ErrorKind::InvalidArgument`] if this is set.
    #[doc(alias("contiguous", "sparse"))]
    pub fn directory(mut self, directory: bool) -> Self {
        self.directory = directory;
        self
    }

    /// Returns whether there is a frame or other content. Memory and empty bytes contain nothing.
    pub(crate) fn exists(&self) -> Result<bool> {
        match &self.place {
            Place::Memory => Ok(false),
            Place::Path(path) => Ok(path.exists()),
            Place::Bytes(bytes) => Ok(!bytes.is_empty()),
            Place::Storage { storage, .. } => {
                storage.size().map(|size| size > 0).map_err(|error| Error::of_io(FIND, error))
            }
            Place::Folder(folder) => folder.has_frame(),
        }
    }

    /// Returns the path in the file system, if the target is a path.
    pub(crate) fn path(&self) -> Option<&Path> {
        match &self.place {
            Place::Path(path) => Some(path),
            _ => None,
        }
    }

    /// Returns the path that messages show.
    pub(super) fn shown_path(&self) -> Option<&Path> {
        match &self.place {
            Place::Path(path) | Place::Storage { path: Some(path), .. } => Some(path),
            _ => None,
        }
    }

    /// Returns whether the target is memory, which nothing but a handle keeps.
    pub(super) fn is_memory(&self) -> bool {
        match &self.place {
            Place::Memory | Place::Bytes(_) => true,
            Place::Storage { is_owned, .. } => *is_owned,
            Place::Path(_) | Place::Folder(_) => false,
        }
    }

    /// Returns a copy, unless the target has an exclusive owner.
    pub(crate) fn copied(&self) -> Option<Self> {
        let place = match &self.place {
            Place::Memory => Place::Memory,
            Place::Path(path) => Place::Path(path.clone()),
            Place::Bytes(bytes) => Place::Bytes(bytes.clone()),
            Place::Storage { .. } | Place::Folder(_) => return None,
        };
        Some(Self { place, ..*self })
    }

    /// Adds the path of the target to an error.
    pub(super) fn at<E: AnyError>(path: Option<&Path>, error: E) -> E {
        match path {
            Some(path) => error.map(|error| error.at(path)),
            None => error,
        }
    }

    /// Creates a frame, which `write` writes to the store that it receives. With `replace`, existing data is replaced.
    ///
    /// A file or a directory appears at its path when it is complete. In this case the result is its path, and the
    /// caller opens it. Otherwise the result is the super-chunk.
    pub(crate) fn create(
        self,
        replace: bool,
        safety: Safety,
        write: impl FnOnce(Box<dyn Store>) -> Result<SChunk>,
    ) -> Result<Created, Reason> {
        let shown = self.shown_path().map(Path::to_owned);
        let refused =
            |kind, detail: String| Err(Self::at(shown.as_deref(), Reason::new(kind, detail)));
        if self.offset > 0 {
            let detail = "a frame is created at the start of its target, not at an offset";
            return refused(ErrorKind::InvalidArgument, detail.to_owned());
        }
        if self.directory && !matches!(self.place, Place::Path(_)) {
            let detail = "a directory is created at a path, and the target is no path";
            return refused(ErrorKind::InvalidArgument, detail.to_owned());
        }
        if self.directory && replace && self.exists()? {
            let detail =
                "a directory replaces nothing: remove the existing file or directory first";
            return refused(ErrorKind::InvalidArgument, detail.to_owned());
        }
        let (store, gate, path): (Box<dyn Store>, _, _) = match self.place {
            Place::Path(path) => {
                files::create_file(&path, replace, None, |temporary| {
                    write(new_store(temporary, self.directory)?).map(drop)
                })?;
                return Ok(Created::At(path));
            }
            Place::Memory => (Box::<Memory>::default(), None, None),
            Place::Bytes(bytes) if !bytes.is_empty() && !replace => {
                let size = bytes.len();
                return refused(ErrorKind::AlreadyExists, format!("the vector has {size} bytes"));
            }
            Place::Bytes(_) => (Box::new(Contiguous::new(Vec::new(), Safety::Errors)), None, None),
            Place::Storage { mut storage, path, is_owned } => {
                let safety = if is_owned { Safety::Errors } else { safety };
                let at = |error| Self::at(path.as_deref(), error);
                let io = |error: io::Error| at(Reason::from(error));
                let gate = gate_of(&*storage, Claim::Make).map_err(|error| at(error.into()))?;
                let size = storage.size().map_err(io)?;
                if size > 0 && !replace {
                    let detail = format!("the storage is not empty: it has {size} bytes");
                    return refused(ErrorKind::AlreadyExists, detail).map_err(at);
                }
                if size > 0 {
                    storage.set_size(0).map_err(io)?;
                }
                (Box::new(Contiguous::new(storage, safety)), gate, path)
            }
            Place::Folder(folder) => {
                match (folder.has_frame()?, replace) {
                    (false, _) => {}
                    (true, false) => {
                        let detail = "the custom directory contains a frame";
                        return refused(ErrorKind::AlreadyExists, detail.to_owned());
                    }
                    (true, true) => {
                        let detail = "a frame in a custom directory cannot be replaced: remove its files first";
                        return refused(ErrorKind::InvalidArgument, detail.to_owned());
                    }
                }
                (folder.into_store(safety), None, None)
            }
        };
        let mut schunk = write(store).map_err(|error| Self::at(path.as_deref(), error))?;
        schunk.frame = schunk.frame.claim_created(gate);
        if let Some(path) = &path {
            schunk.frame.set_path(path);
        }
        Ok(Created::Frame(schunk))
    }
}

#[expect(clippy::large_enum_variant, reason = "it is returned once for each frame")]
pub(crate) enum Created {
    /// A complete file or directory at this path.
    At(PathBuf),
    Frame(SChunk),
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Target {
    fn from(path: &P) -> Self {
        path.as_ref().to_owned().into()
    }
}

impl From<PathBuf> for Target {
    fn from(path: PathBuf) -> Self {
        Self::new(Place::Path(path))
    }
}

impl From<String> for Target {
    fn from(path: String) -> Self {
        PathBuf::from(path).into()
    }
}

impl From<OsString> for Target {
    fn from(path: OsString) -> Self {
        PathBuf::from(path).into()
    }
}

/// The bytes of a contiguous frame. An empty vector is a place for a new frame.
impl From<Vec<u8>> for Target {
    fn from(bytes: Vec<u8>) -> Self {
        Self::new(Place::Bytes(bytes))
    }
}

/// Claims the file of a storage, if the storage is a file.
pub(super) fn gate_of(storage: &dyn Storage, claim: Claim) -> Result<Option<Gate>> {
    let Some(file) = storage.file() else { return Ok(None) };
    let io = |error| Error::of_io("open a frame", error);
    let Some(id) = FileId::of_file(file).map_err(io)? else { return Ok(None) };
    let has_name = links(file).map_err(io)? > 0;
    Gate::new(id, claim).map(|gate| Some(gate.named(has_name)))
}

/// Returns the store of a new file or directory; nothing exists at the path.
pub(super) fn new_store(path: &Path, directory: bool) -> Result<Box<dyn Store>> {
    let io = |error| Error::of_io("create a super-chunk", error).at(path);
    if directory {
        fs::create_dir(path).map_err(io)?;
        return Ok(Box::new(Directory::new(Disk(files::absolute(path)?), Safety::Errors)));
    }
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(io)?;
    Ok(Box::new(Contiguous::new(file, Safety::Errors)))
}
