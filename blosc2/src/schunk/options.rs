//! All the ways to open and to make a super-chunk.

use std::borrow::Borrow;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

use blosc2_format::directory::{self, Disk, Folder, FolderMut, INDEX};
use blosc2_format::frame::{self, ChunkSize};
use blosc2_format::read_at::AtOffset;
use blosc2_format::{Limits, Options, ReadAt, Report, Severity};

use super::limits::MaxRead;
use super::store::{Contiguous, Directory, Files, Memory, State, Store};
use super::verdict::verdict;
use super::{Access, SChunk, files};
use crate::bytes::token::Token;
use crate::bytes::{Guarded, ReadOnly, Safety, Shared, Storage, lend};
use crate::gate::{Claim, FileId, Gate, Pass, Version, has_lock, links};
use crate::memory::{Target, resize};
use crate::params::{MAX_CHUNK_LEN, Purpose};
use crate::{CParams, Check, DParams, Error, ErrorKind, Result};

const OPEN: &str = "open a frame";
const MAKE: &str = "make a super-chunk";

/// Options for opening and making super-chunks.
///
/// Without any, what is there is opened for reading.
///
/// # Access to a file by several handles
/// Which file it is, is decided by the opened file, whatever its name: a path, a link, or a
/// [`File`] as a storage.
/// - Within a program, one handle may change a file, or any number of handles that all use
///   [`locking`](Self::locking). Otherwise opening fails with [`ErrorKind::Busy`]. So do replacing a file and appending
///   a frame to it while a handle of the program may change it.
/// - Any number of handles may read it at the same time. Each read sees the whole of every change that came before it,
///   and nothing of one that is going on: reads and changes wait for each other. Reads do not wait for reads.
/// - Other programs take part with [`locking`](Self::locking) only.
/// - A handle stays with the file that it opened. When that is replaced or removed, changes fail with
///   [`ErrorKind::NotFound`]. Reads return the old content; with locking they fail too. A directory must not be
///   replaced while it is open.
/// - Closures of the user (codecs, filters, prefilters, postfilters, the function of a `map`,
///   [`locked`](SChunk::locked)) run while the file is read or changed. They may read what is being read. What would
///   have to wait for the closure itself fails with [`ErrorKind::Busy`] within a second. Other threads that wait for the
///   same file get this error too, where one call of a closure takes that long: one chunk of a codec or filter, 1024
///   items of a `map`, or what `locked` does between two calls of its handle. While a closure runs under a lock, this
///   program waits at most a second for the locks of others.
///
/// Without locking, a file that another program changes while it is opened or read may look broken. Errors that may come of
/// that say so, where there is the lock file of the other program.
///
/// Where the system does not tell which file was opened (not on Unix), paths without links stand for files, and a
/// [`File`] as a storage is not recognised.
///
/// # After the death of a writer
/// When a program dies (`kill -9`, a crash), all its changes that returned are there. The one that it was making is whole
/// or undone in a directory. A file may be left in the middle of it, with a mark and a journal of what was overwritten. Every
/// reader refuses such a file: this crate as [`ErrorKind::Unfinished`], C-Blosc2 as a broken one.
///
/// It is rolled back to the state before the change, or completed where only the mark was left to remove:
/// - by opening it for writing with [`locking`](Self::locking): whoever holds the lock knows that no other writer is
///   alive. A handle that was already open so does the same in its next change, read or [`refresh`](SChunk::refresh);
/// - by opening it for writing with [`recover`](Self::recover), where the caller knows that;
/// - by [`repair`](crate::repair::repair), or the command `blosc2 repair`, which also rebuilds damaged files.
///
/// This reads the journal, or all of the file where that is gone; a finished file costs nothing. Until then opening fails with
/// [`ErrorKind::Unfinished`], and so do [`refresh`](SChunk::refresh) and the reads of a reader with locking. That reader
/// stays usable, and works again once the file was recovered.
///
/// Where what was overwritten is lost, the error says so: after a failure of the machine, unless the writer was
/// [`durable`](Self::durable), and in a [`Storage`] that cannot set its length. Then [`repair`](crate::repair::repair) saves the
/// chunks that are whole.
///
/// ```
/// use blosc2::{CParams, Codec, OpenOptions};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("log.b2frame");
/// let params = CParams::new().codec(Codec::Lz4);
/// let options = OpenOptions::new().append(true).create(true).cparams(&params).typesize(8);
/// for run in 0..3u64 {
///     options.open(&path)?.append(&[run; 100])?;
/// }
/// assert_eq!(OpenOptions::new().open(&path)?.nchunks(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[doc(alias("blosc2_storage", "mode", "urlpath"))]
pub struct OpenOptions {
    write: bool,
    append: bool,
    create: bool,
    create_new: bool,
    replace: bool,
    locking: bool,
    durable: bool,
    recover: bool,
    directory: bool,
    check: Option<Check>,
    offset: u64,
    cparams: Option<CParams>,
    dparams: DParams,
    typesize: usize,
    chunksize: Option<usize>,
    meta: Vec<(String, Vec<u8>)>,
    max_read: Option<u64>,
    limits: Limits,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// To read what is there.
    pub fn new() -> Self {
        Self {
            write: false,
            append: false,
            create: false,
            create_new: false,
            replace: false,
            locking: false,
            durable: false,
            recover: false,
            directory: false,
            check: None,
            offset: 0,
            cparams: None,
            dparams: DParams::default(),
            typesize: 1,
            chunksize: None,
            meta: Vec::new(),
            max_read: None,
            limits: Limits::default(),
        }
    }

    /// For reading and changing.
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// For reading and appending: nothing that is there can be changed or removed.
    pub fn append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }

    /// Makes one where there is none. For changing, unless it is for appending. Python's mode `a`.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Makes one, where there must be none.
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Makes one, in the place of a file that may be there. Python's mode `w`.
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Lets several programs use one file at once: each change and each read takes a lock. It has no meaning
    /// elsewhere than in files.
    ///
    /// It is that of C-Blosc2 3.2 and later, a file of the same name with `.b2lock` at its end (in a directory,
    /// `.b2lock`), which stays. All that use the file have to lock it. Any number of handles may change it
    /// then; each sees what the others did: a read returns what is there at that moment, and never a part of a
    /// change. The numbers that a handle tells, such as [`nchunks`](SChunk::nchunks), are those of its last
    /// read, change or [`refresh`](SChunk::refresh).
    ///
    /// Opening for writing first rolls back the change of a program that died in the middle of it; see
    /// [above](Self#after-the-death-of-a-writer).
    ///
    /// Symbolic links are followed: the locks of the link and of the file are both taken. A file with several hard links
    /// is refused as [`ErrorKind::Unsupported`]. Nor does locking go with network file systems.
    /// Python's `locking=True`; the variable `BLOSC_LOCKING` is not looked at.
    pub fn locking(mut self, locking: bool) -> Self {
        self.locking = locking;
        self
    }

    /// Waits at each step of a change until it is on the device.
    ///
    /// Without it, a change that has returned survives the death of the program; with it, that of the machine as well. It
    /// takes milliseconds a change. With and without it, a program that dies in the middle of a change leaves the file
    /// unfinished; see [above](Self#after-the-death-of-a-writer).
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Rolls back what a writer left that was stopped in the middle of a change, or completes it, before a file or storage
    /// is opened for writing; see [above](Self#after-the-death-of-a-writer).
    ///
    /// The caller asserts that no other program is changing it: that change would be destroyed. With
    /// [`locking`](Self::locking) this is known and done in any case. If the file is opened by its path, a lock file beside it
    /// is respected; handles of
    /// this program still claim the file ([`ErrorKind::Busy`]). A file that is finished is opened as it is.
    ///
    /// ```
    /// use blosc2::{CParams, ErrorKind, OpenOptions, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// schunk.append(&[1u8; 1000])?;
    /// let mut bytes = schunk.to_cframe()?;
    /// bytes[0x10] = 0x7f; // as if the writer was stopped before the last byte of a change
    /// assert_eq!(SChunk::from_cframe(bytes.clone()).unwrap_err().kind(), ErrorKind::Unfinished);
    /// let schunk = OpenOptions::new().write(true).recover(true).from_cframe(bytes)?;
    /// assert_eq!(schunk.decompress_chunk::<u8>(0)?, [1; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Makes a directory with a file for each chunk, where one is made.
    #[doc(alias("contiguous", "sparse"))]
    pub fn directory(mut self, directory: bool) -> Self {
        self.directory = directory;
        self
    }

    /// How much is checked when a frame is opened: [`Check::Header`] by default, [`Check::Structure`] in
    /// [`from_cframe`](Self::from_cframe).
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Opens the frame that starts at this byte of the file, for reading. See
    /// [`SChunk::append_to_file`].
    #[doc(alias = "blosc2_schunk_open_offset")]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// How chunks are compressed: what a new super-chunk says, and what is done in one that is opened,
    /// instead of what that says.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }

    /// How chunks are decompressed.
    pub fn dparams(mut self, params: impl Borrow<DParams>) -> Self {
        self.dparams = params.borrow().clone();
        self
    }

    /// Bytes of an item of a new super-chunk, unless its compression parameters say so. 1 by default.
    pub fn typesize(mut self, typesize: usize) -> Self {
        self.typesize = typesize;
        self
    }

    /// Bytes of every chunk but a shorter last one, to be said in a new super-chunk's header before there is any.
    ///
    /// Otherwise the first chunk says so. Python's `SChunk(chunksize=...)`.
    pub fn chunksize(mut self, bytes: usize) -> Self {
        self.chunksize = Some(bytes);
        self
    }

    /// Gives a new super-chunk a fixed metalayer; in files they can be added before the first chunk only.
    ///
    /// The bytes are stored as they are. Python takes the contents of metalayers for msgpack, and fails to read others;
    /// `meta_value`, with the feature `msgpack`, writes what it reads.
    pub fn meta(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.meta.push((name.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// The most bytes of memory that one read may take for its result. More is an error of
    /// [`ErrorKind::TooLarge`].
    ///
    /// A few bytes may rightly stand for gigabytes of zeros. Without this option, what was opened may take a
    /// GiB, or 256 bytes for each byte that is stored if that is more; what was made by this handle, any
    /// number. Reads into memory of the caller's are not limited, nor is walking over the chunks or items
    /// of a large super-chunk.
    pub fn max_read(mut self, bytes: u64) -> Self {
        self.max_read = Some(bytes);
        self
    }

    /// What opening may take, whatever the frame says: see [`Limits`](blosc2_format::Limits).
    ///
    /// By default it allocates at most 16 times the bytes that are stored and 64 MiB, and takes up to 2^24
    /// chunks.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Whether [`open`](Self::open) may make a file.
    pub(crate) fn makes(&self) -> bool {
        self.create || self.create_new || self.replace
    }

    /// Opens or makes a file or a directory.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read or made;
    /// - [`ErrorKind::AlreadyExists`]: there is one, and a new one was asked for; it is left alone;
    /// - [`ErrorKind::InvalidData`]: it is no frame, was cut short, or is broken;
    /// - [`ErrorKind::Unfinished`]: its writer was stopped, or is writing it; see
    ///   [above](Self#after-the-death-of-a-writer);
    /// - [`ErrorKind::Busy`]: another handle of this program stands in the way, see [above](Self);
    /// - [`ErrorKind::TooLarge`]: it needs more than the [`limits`](Self::limits) allow;
    /// - [`ErrorKind::InvalidArgument`]: options that contradict each other, or parameters out of range;
    /// - [`ErrorKind::Unsupported`]: a codec or filter that this build does not have, where one is made.
    #[doc(alias = "blosc2_schunk_open_udio")]
    pub fn open(&self, path: impl AsRef<Path>) -> Result<SChunk> {
        let path = path.as_ref();
        let makes = self.create_new || self.replace || self.create && !path.exists();
        self.check_recover().map_err(|error| error.at(path))?;
        if self.offset > 0 && (makes || self.access() != Access::Read) {
            let detail = "a frame inside a larger file can only be read";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail).at(path));
        }
        if makes {
            let made = files::create(path, self.replace, |temporary| self.make(temporary));
            match made {
                // Another program was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists && !self.create_new => {}
                made => made?,
            }
        }
        self.open_path(path)
    }

    /// Opens a frame in a storage of the program's own, or makes one there.
    ///
    /// With [`create`](Self::create) and the like the storage has to be empty. For reading only, a
    /// [`ReadOnly`] does, which takes all that can be read at positions.
    ///
    /// # Errors
    /// As for [`open`](Self::open); errors and panics of the storage are those of the call that met them.
    pub fn open_storage(&self, storage: impl Storage + 'static) -> Result<SChunk> {
        self.check_offset()?;
        self.check_recover()?;
        let storage = Guarded(storage);
        let size = storage.size().map_err(|error| Error::of_io(OPEN, error))?;
        let makes = self.create_new || self.replace || self.create && size == 0;
        if makes {
            let (store, gate) = Self::new_storage_in(storage, self.replace, self.safety())?;
            let mut schunk = self.new_in(store)?;
            schunk.enter(gate);
            return Ok(schunk);
        }
        let gate = gate_of(&storage, self.access().claim(false))?;
        let mut frame = self.frame(storage, self.safety());
        if self.recover {
            let mut pass = gate.as_ref().map(|gate| gate.change()).transpose()?;
            frame.recover(OPEN)?;
            pass.as_mut().map(Pass::changed);
        }
        let pass = gate.as_ref().map(|gate| gate.read()).transpose()?;
        let version = pass.as_ref().map(|pass| pass.version()).unwrap_or_default();
        let (mut schunk, report) = self.open_frame(frame, Check::Header)?;
        drop(pass);
        schunk.state.get_mut().version = version;
        schunk.gate = gate.map(Arc::new);
        self.check_content(&report, schunk)
    }

    /// Opens a frame in a custom folder, or makes one there: a sparse frame whose files are in an object store, for
    /// example. A directory of the file system is opened by its path.
    ///
    /// With [`create`](Self::create) or [`create_new`](Self::create_new) a frame is made where the folder has no index
    /// file. Several handles of one folder do not know of each other: a change fails with [`ErrorKind::Busy`] where another
    /// handle has changed the frame, and [`SChunk::refresh`] reads what others changed. C's `blosc2_schunk_open_udio` of a
    /// directory.
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use std::io;
    /// use std::sync::{Arc, Mutex};
    ///
    /// use blosc2::OpenOptions;
    /// use blosc2::storage::{Folder, FolderMut};
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
    /// let mut schunk = OpenOptions::new().create(true).typesize(8).open_folder(bucket.clone())?;
    /// schunk.append(&[1u64, 2, 3])?;
    /// assert_eq!(bucket.names()?, ["00000000.chunk", "chunks.b2frame"]);
    /// assert_eq!(OpenOptions::new().open_folder(bucket)?.items::<u64>(1..)?, [2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`open`](Self::open); errors and panics of the folder are those of the call that met them;
    /// [`ErrorKind::InvalidArgument`] where [`replace`](Self::replace) meets a frame: its files have to be removed first.
    #[doc(alias("blosc2_schunk_open_udio", "sparse"))]
    pub fn open_folder<F>(&self, folder: F) -> Result<SChunk>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        if self.offset > 0 {
            let detail = "a frame in a folder starts at the first byte of its index file";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail));
        }
        self.check_recover()?;
        let folder = Guarded(folder);
        let makes = self.create_new || self.replace || self.create && !has_frame(&folder)?;
        if makes {
            return self.new_in(Self::new_folder_in(folder, self.replace, self.safety())?);
        }
        let (schunk, report) = self.open_directory(folder)?;
        self.check_content(&report, schunk)
    }

    /// Takes a frame in memory, without a copy; [`SChunk::into_cframe`] gives it back.
    ///
    /// [`from_owner`](Self::from_owner) opens memory of other types, [`with_borrowed`](Self::with_borrowed) borrowed
    /// memory.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_cframe(&self, bytes: Vec<u8>) -> Result<SChunk> {
        self.open_memory(bytes)
    }

    /// Opens a frame in memory with any owner for reading, without a copy: `Arc<[u8]>`, `&'static [u8]`,
    /// `bytes::Bytes`, `memmap2::Mmap`.
    ///
    /// The super-chunk keeps the owner for as long as it lives. C's `blosc2_schunk_from_buffer` without a copy.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use blosc2::{CParams, OpenOptions, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u32>(&CParams::default())?;
    /// schunk.append(&[1u32, 2, 3])?;
    /// let frame: Arc<[u8]> = schunk.to_cframe()?.into();
    /// let opened = OpenOptions::new().from_owner(frame.clone())?;
    /// assert_eq!(opened.items::<u32>(1..)?, [2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`open`](Self::open). Changes fail with [`ErrorKind::ReadOnly`].
    #[doc(alias = "blosc2_schunk_from_buffer")]
    pub fn from_owner(&self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<SChunk> {
        self.open_memory(Guarded(Shared(bytes)))
    }

    /// Opens a frame in borrowed memory for reading, without a copy, for as long as `work` runs.
    ///
    /// After that the super-chunk, wherever it is then, cannot read from the memory any more: its reads fail with
    /// [`ErrorKind::Io`]. Each read copies the compressed bytes that it needs, as from a file;
    /// [`from_owner`](Self::from_owner) copies none. C's `blosc2_schunk_from_buffer` and `b2nd_from_cframe` without a
    /// copy.
    ///
    /// ```
    /// use blosc2::{NDArray, OpenOptions};
    ///
    /// let frame = NDArray::from_slice(&[1.5, 2.5, 3.5], &[3])?.to_cframe()?;
    /// let borrowed = &frame[..];
    /// let last: Vec<f64> = OpenOptions::new().with_borrowed(borrowed, |schunk| {
    ///     NDArray::from_schunk(schunk)?.read(2..)
    /// })?;
    /// assert_eq!(last, [3.5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`open`](Self::open), and those of `work`. Changes fail with [`ErrorKind::ReadOnly`].
    #[doc(alias("blosc2_schunk_from_buffer", "b2nd_from_cframe"))]
    pub fn with_borrowed<R>(
        &self,
        bytes: &[u8],
        work: impl FnOnce(SChunk) -> Result<R>,
    ) -> Result<R> {
        lend(bytes, |lent| work(self.open_memory(lent)?))
    }

    /// Makes one in memory, each chunk in memory of its own.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn in_memory(&self) -> Result<SChunk> {
        self.new_in(Box::<Memory>::default())
    }

    /// Makes one in memory that is a frame in one buffer, as a file would be.
    ///
    /// Appending is slower than [`in_memory`](Self::in_memory), [`SChunk::into_cframe`] takes no time. C's
    /// `contiguous` without a path.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[doc(alias = "contiguous")]
    pub fn in_memory_frame(&self) -> Result<SChunk> {
        self.new_in(Self::new_buffer())
    }

    /// What a frame in one new buffer is made in.
    pub(crate) fn new_buffer() -> Box<dyn Store> {
        Box::new(Contiguous::new(Vec::new(), Safety::Errors))
    }

    /// What a frame in a storage, which is empty or may be emptied, is made in, and its access to the file that the
    /// storage may be.
    pub(crate) fn new_storage(
        storage: impl Storage + 'static,
        replace: bool,
    ) -> Result<(Box<dyn Store>, Option<Gate>)> {
        Self::new_storage_in(Guarded(storage), replace, Safety::Death)
    }

    fn new_storage_in(
        mut storage: Guarded<impl Storage + 'static>,
        replace: bool,
        safety: Safety,
    ) -> Result<(Box<dyn Store>, Option<Gate>)> {
        let gate = gate_of(&storage, Claim::Make)?;
        let size = storage.size().map_err(|error| Error::of_io(MAKE, error))?;
        if size > 0 && !replace {
            let detail = format!("the storage has {size} bytes");
            return Err(Error::new(ErrorKind::AlreadyExists, MAKE, detail));
        }
        let cut = if size > 0 { storage.set_size(0) } else { Ok(()) };
        cut.map_err(|error| Error::of_io(MAKE, error))?;
        Ok((Box::new(Contiguous::new(storage, safety)), gate))
    }

    /// What a frame in a folder, which has none, is made in.
    pub(crate) fn new_folder<F>(folder: F, replace: bool) -> Result<Box<dyn Store>>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        Self::new_folder_in(Guarded(folder), replace, Safety::Death)
    }

    fn new_folder_in(files: impl Files, replace: bool, safety: Safety) -> Result<Box<dyn Store>> {
        if has_frame(&files)? {
            let (kind, detail) = match replace {
                true => (ErrorKind::InvalidArgument, "a frame in a folder is not replaced"),
                false => (ErrorKind::AlreadyExists, "there is a frame in the folder"),
            };
            return Err(Error::new(kind, MAKE, detail));
        }
        Ok(Box::new(Directory::new(files, safety)))
    }

    /// Sees that nothing is to be changed inside something larger.
    fn check_offset(&self) -> Result<()> {
        if self.offset > 0 && self.access() != Access::Read {
            let detail = "a frame inside a larger one can only be read";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail));
        }
        Ok(())
    }

    /// Checks that what is to be recovered is opened for writing.
    fn check_recover(&self) -> Result<()> {
        if self.recover && self.access() == Access::Read {
            let detail = "`recover` is for frames that are opened for writing";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail));
        }
        Ok(())
    }

    fn access(&self) -> Access {
        match (self.append, self.write || self.create || self.create_new || self.replace) {
            (true, _) => Access::Append,
            (false, true) => Access::Write,
            (false, false) => Access::Read,
        }
    }

    fn safety(&self) -> Safety {
        if self.durable { Safety::PowerLoss } else { Safety::Death }
    }

    /// An empty frame, complete.
    fn new_in(&self, store: Box<dyn Store>) -> Result<SChunk> {
        let params = self.cparams.clone().unwrap_or_default();
        let resolved = params.resolve(self.typesize, Purpose::Frame)?;
        if let Some(size) = self.chunksize
            && (!(1..=MAX_CHUNK_LEN).contains(&size) || !size.is_multiple_of(self.typesize))
        {
            let typesize = self.typesize;
            let detail = format!("chunks of {size} bytes, of items of {typesize}");
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let chunksize =
            self.chunksize.map_or(ChunkSize::Unknown, |size| ChunkSize::new(size as u32));
        let mut schunk = SChunk::with_params(resolved, store, &self.meta, chunksize)?;
        schunk.set_dparams(self.dparams.clone());
        schunk.encoding = Some(params);
        schunk.max_read = self.max_read.map_or(MaxRead::Any, MaxRead::Bytes);
        schunk.finish()?;
        if self.append {
            schunk.access = Access::Append;
        }
        Ok(schunk)
    }

    fn make(&self, path: &Path) -> Result<()> {
        let store = new_store(path, self.directory)?;
        self.new_in(store).map(drop)
    }

    fn open_path(&self, path: &Path) -> Result<SChunk> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            if let Some(schunk) = self.try_open_path(path)? {
                return Ok(schunk);
            }
        }
        let detail = "it is replaced by others again and again";
        Err(Error::new(ErrorKind::Busy, OPEN, detail).at(path))
    }

    /// Nothing where the file was replaced while it was opened.
    fn try_open_path(&self, path: &Path) -> Result<Option<SChunk>> {
        let io = |error| Error::from_io(OPEN, path, error);
        let at = |error: Error| match self.locking {
            true => error.at(path),
            false => error.not_locked(|| has_lock(path, path.is_dir())).at(path),
        };
        let invalid = |detail: &str| Error::new(ErrorKind::InvalidData, OPEN, detail).at(path);
        let absolute = files::absolute(path)?;
        let metadata = fs::metadata(path).map_err(io)?;
        let directory = metadata.is_dir();
        // A pipe would block.
        if !directory && !metadata.is_file() {
            return Err(invalid("it is neither a file nor a directory"));
        }
        if directory && !absolute.join(INDEX).is_file() {
            let detail = format!("the directory is no frame: it has no {}", INDEX);
            return Err(invalid(&detail));
        }
        let (file, folder) = match directory {
            true => (None, open_folder(path)),
            false => {
                let options =
                    File::options().read(true).write(self.access() != Access::Read).clone();
                (Some(options.open(path).map_err(io)?), None)
            }
        };
        if file.as_ref().is_some_and(|file| file.metadata().is_ok_and(|found| found.len() == 0)) {
            return Err(invalid("the file is empty"));
        }
        let id = match file.as_ref().or(folder.as_ref()) {
            Some(opened) => FileId::of_opened(opened, path),
            None => FileId::of_path(path),
        };
        let gate = Gate::new(id.map_err(io)?, self.access().claim(self.locking)).map_err(at)?;
        let has_name = match &file {
            Some(file) => links(file).map_err(io)? != Some(0),
            None => true,
        };
        let gate = gate.keeping(folder).named(has_name);
        let gate = if self.locking { gate.with_lock(&absolute, directory)? } else { gate };
        let pass = gate.read().map_err(at)?;
        // From here on nobody in this program replaces it.
        if FileId::of_path(path).map_err(io)? != *gate.id() {
            return Ok(None);
        }
        let version = pass.version();
        let opened = match file {
            None => self.open_directory(Disk(absolute.clone())),
            Some(file) => self.open_frame(self.frame(file, self.safety()), Check::Header),
        };
        drop(pass);
        if let Err(error) = &opened
            && error.kind() == ErrorKind::Unfinished
            && !directory
            && (self.recover || self.locking && self.access() != Access::Read)
        {
            let locked =
                if self.locking { gate } else { gate.with_lock_if_there(&absolute, false)? };
            return self.recover_file(path, &locked).map(|()| None).map_err(at);
        }
        let (mut schunk, report) = opened.map_err(at)?;
        schunk.state.get_mut().version = version;
        schunk.path = Some(path.to_owned());
        schunk.gate = Some(Arc::new(gate));
        if self.locking && self.access() != Access::Read {
            schunk.check_file()?;
        }
        self.check_content(&report, schunk).map(Some)
    }

    /// Rolls back what a writer left in a file when it was stopped; does nothing if another file took its place.
    fn recover_file(&self, path: &Path, gate: &Gate) -> Result<()> {
        let mut pass = gate.change()?;
        let io = |error| Error::of_io(OPEN, error);
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        if FileId::of_opened(&file, path).map_err(io)? != *gate.id() {
            return Ok(());
        }
        if gate.is_locking() && links(&file).map_err(io)?.is_some_and(|count| count > 1) {
            let detail = "the file has several names (hard links), and a writer that uses another one would not see its lock";
            return Err(Error::new(ErrorKind::Unsupported, OPEN, detail));
        }
        Contiguous::new(file, self.safety()).recover(OPEN)?;
        pass.changed();
        Ok(())
    }

    /// Opens a frame in memory, which nobody else changes.
    fn open_memory(&self, storage: impl Storage + 'static) -> Result<SChunk> {
        self.check_offset()?;
        self.check_recover()?;
        let mut frame = self.frame(storage, Safety::Errors);
        if self.recover {
            frame.recover(OPEN)?;
        }
        let (schunk, report) = self.open_frame(frame, Check::Structure)?;
        self.check_content(&report, schunk)
    }

    /// The frame in a storage, or inside it.
    fn frame(&self, storage: impl Storage + 'static, safety: Safety) -> Contiguous {
        match self.offset {
            0 => Contiguous::new(storage, safety),
            offset => Contiguous::new(ReadOnly::new(AtOffset::new(storage, offset)), safety),
        }
    }

    fn open_directory(&self, files: impl Files) -> Result<(SChunk, Report)> {
        let depth = self.check.unwrap_or(Check::Header);
        let report = self.report(depth, |options| directory::check(&files, options))?;
        let schunk = self.opened(Directory::new(files, self.safety()))?;
        Ok((schunk, report))
    }

    fn open_frame(&self, frame: Contiguous, default: Check) -> Result<(SChunk, Report)> {
        let depth = self.check.unwrap_or(default);
        let report = self.report(depth, |options| frame::check(frame.storage(), options))?;
        let schunk = self.opened(frame)?;
        Ok((schunk, report))
    }

    /// Checks the chunks of a frame that could not be decoded without C.
    fn check_content(&self, report: &Report, schunk: SChunk) -> Result<SChunk> {
        if self.check != Some(Check::Content) {
            return Ok(schunk);
        }
        let mut data = Vec::new();
        let verdict = verdict(report, |number| {
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            schunk.with_chunk(index, None, |chunk, decoder| {
                resize(&mut data, chunk.nbytes(), OPEN)?;
                decoder.decompress(chunk, Target::of(&mut data))
            })
        })?;
        match verdict.fault(OPEN).map_err(|error| schunk.at(error))? {
            None => Ok(schunk),
            Some(why) => Err(schunk.error(ErrorKind::InvalidData, OPEN, why)),
        }
    }

    /// What a check of this depth reports, which is nothing bad.
    fn report(
        &self,
        depth: Check,
        check: impl FnOnce(&Options) -> Result<Report, blosc2_format::Error>,
    ) -> Result<Report> {
        if depth == Check::Header {
            return Ok(Report::new());
        }
        let content = depth == Check::Content;
        let options = Options { content, limits: self.limits, ..Options::default() };
        let report = check(&options).map_err(|error| Error::from_frame(OPEN, error))?;
        let mut findings = report.findings.iter();
        match findings.find(|finding| finding.rule.severity == Severity::Error) {
            Some(error) => Err(Error::from_finding(OPEN, error)),
            None => Ok(report),
        }
    }

    fn opened(&self, mut store: impl Store + 'static) -> Result<SChunk> {
        let outline = store.read(&self.limits, None, OPEN)?;
        let outline =
            outline.ok_or_else(|| Error::new(ErrorKind::InvalidData, OPEN, "no frame"))?;
        let (version, limits) = (Version::default(), self.limits);
        let store = Box::new(store);
        let state = State { outline, store, version, unfinished: false, limits };
        let mut schunk = SChunk::new(state, self.access(), self.dparams.clone())?;
        schunk.max_read = self.max_read.map_or(MaxRead::Plausible, MaxRead::Bytes);
        if let (Some(params), true) = (&self.cparams, self.access() != Access::Read) {
            schunk.set_cparams(params)?;
        }
        Ok(schunk)
    }
}

fn has_frame(folder: &impl Folder) -> Result<bool> {
    match folder.open(INDEX) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Error::of_io(OPEN, error)),
    }
}

/// An opened directory, which keeps its identity, where the system opens directories.
fn open_folder(path: &Path) -> Option<File> {
    File::open(path).ok()
}

/// The access to the file that a storage is, if it is one.
fn gate_of(storage: &impl Storage, claim: Claim) -> Result<Option<Gate>> {
    let Some(file) = storage.file(Token) else { return Ok(None) };
    let id = FileId::of_file(file).map_err(|error| Error::of_io(OPEN, error))?;
    let has_name = links(file).map_err(|error| Error::of_io(OPEN, error))? != Some(0);
    id.map(|id| Gate::new(id, claim).map(|gate| gate.named(has_name))).transpose()
}

/// What a new file or directory is written to; there is nothing of that name.
pub(crate) fn new_store(path: &Path, directory: bool) -> Result<Box<dyn Store>> {
    let io = |error| Error::from_io(MAKE, path, error);
    if directory {
        fs::create_dir(path).map_err(io)?;
        return Ok(Box::new(Directory::new(Disk(files::absolute(path)?), Safety::Errors)));
    }
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(io)?;
    Ok(Box::new(Contiguous::new(file, Safety::Errors)))
}
