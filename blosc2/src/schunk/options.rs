//! Options for opening and creating super-chunks.

use std::borrow::Borrow;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use blosc2_format::directory::{self, Disk, Folder, FolderMut, INDEX};
use blosc2_format::frame::{self, ChunkSize};
use blosc2_format::read_at::AtOffset;
use blosc2_format::{Limits, Options, ReadAt, Report, Severity};

use super::limits::MaxRead;
use super::store::{Contiguous, Directory, Files, Memory, State, Store, Verify};
use super::verdict::verdict;
use super::{Access, SChunk, files};
use crate::bytes::{Guarded, ReadOnly, Safety, Shared, Storage, lend};
use crate::gate::{Claim, FileId, Gate, Pass, Version, has_lock, links};
use crate::memory::{Target, resize};
use crate::params::{MAX_CHUNK_LEN, Purpose};
use crate::{CParams, Check, DParams, Error, ErrorKind, Result};

const OPEN: &str = "open a frame";
const MAKE: &str = "create a super-chunk";

/// Options for opening and creating super-chunks. C: `blosc2_storage`. Python: the parameters `mode`, `contiguous`,
/// `mmap_mode`, `locking` and others of `SChunk` and `blosc2.open`.
///
/// By default, an existing file or directory is opened for reading.
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
///
/// # Access to a file by several handles
/// A *handle* is an [`SChunk`] or an [`NDArray`](crate::NDArray) that has a file open. This crate identifies a
/// file by its device and inode, and on Windows by the serial number of the volume and the file index. Therefore all
/// paths and links to one file count as the same file, and so does a [`File`] that is passed to
/// [`open_storage`](Self::open_storage), or that a custom storage [returns](Storage::file). On Windows, this crate identifies directories, and files on volumes without file
/// indices, by their canonical path. A [`File`] on such a volume is not recognized.
///
/// - Within a program, a file may have one handle that is open for writing, or any number of such handles if all of
///   them use [`locking`](Self::locking). Opening any other handle for writing fails with [`ErrorKind::Busy`]. While a
///   handle of the program is open for writing, replacing the file and appending a second frame to the file
///   ([`SChunk::append_to_file`]) also fail with `Busy`.
/// - Any number of handles may read a file at the same time. A read returns the result of all completed changes, and no
///   part of a change in progress. Within a program, a change blocks all other accesses, and a read blocks changes.
///   Reads do not block each other.
/// - Accesses by several programs are coordinated only if all programs use [`locking`](Self::locking). Without locking,
///   a file may appear invalid if another program changes the file while this program opens or reads it. If a lock file
///   exists next to the file, the error message names this possible cause. A read of a chunk that the other program has
///   moved or removed fails with `Busy` until [`refresh`](SChunk::refresh) is called, because its old bytes may contain
///   another chunk.
/// - A handle always refers to the file that it opened. If that file is replaced or removed, changes fail with
///   [`ErrorKind::NotFound`], and reads return the old content. There is one exception: if the handle uses locking, and
///   the program that replaced the file locked it, reads fail with `NotFound` too. Do not replace a directory while it
///   is open.
///
/// ## User closures
/// A *user closure* is one of these:
/// - a user-defined codec, filter or tuner;
/// - a prefilter or postfilter;
/// - a closure of an [expression](crate::compute);
/// - the closure that is passed to [`locked`](SChunk::locked) or [`transaction`](SChunk::transaction).
///
/// User closures run during a read or a change of the file. These rules apply:
/// - A closure that runs during a read may read the same file.
/// - A call in a closure cannot wait for the access that runs this closure: that would be a deadlock. Such a call fails
///   with [`ErrorKind::Busy`] within a second.
/// - Calls of other threads that wait for the same file fail with `Busy` if the closure makes no progress for about 0.7
///   seconds. A codec or filter makes progress with each chunk. A closure of an expression makes progress with every
///   4,096 items. The closure of `locked` or `transaction` makes progress with each call on its handle.
/// - With locking, two programs could deadlock: each holds a lock, and a closure in each program waits for the lock of
///   the other program. Therefore waiting is limited. While this program runs a closure and holds the lock of a
///   file, its other accesses wait at most about 0.7 seconds for the lock of another program, and then fail with `Busy`.
///
/// # Crash recovery
/// If a program dies (`kill -9`, a crash), each change whose method call has returned is stored. A change in progress
/// at that moment has one of these results:
/// - In a directory, the change is complete or has no effect.
/// - A contiguous file may be *unfinished*: its header contains a mark, and a journal (a copy of the overwritten bytes)
///   follows the frame. Opening an unfinished file fails with [`ErrorKind::Unfinished`]; C-Blosc2 reports an invalid
///   frame.
///
/// Recovery rolls an unfinished file back to the state before the change. If only the removal of the mark is missing,
/// recovery removes the mark, and the change is complete. There are three ways to recover a file:
/// - Open the file for writing with [`locking`](Self::locking). The lock ensures that no other program is writing. A
///   handle that is already open for writing with locking recovers the file in its next change, read or
///   [`refresh`](SChunk::refresh).
/// - Open the file for writing with [`recover`](Self::recover). The caller must ensure that no other program is
///   writing.
/// - Call [`repair`](crate::repair::repair), or use the command `blosc2 repair`. Both also rebuild damaged files.
///
/// Recovery reads the journal, or the complete file if there is no journal. Opening a file that is not marked takes no
/// extra time.
///
/// Before the recovery, opening the file and [`refresh`](SChunk::refresh) fail with [`ErrorKind::Unfinished`]. Reads
/// with a handle that is open for reading with locking fail with the same error. After the recovery, that handle can
/// read again.
///
/// Recovery is impossible if the overwritten bytes are lost. They can be lost after a power failure if the writer was
/// not [`durable`](Self::durable), and in a [`Storage`] that cannot set its length. The error message then states that
/// the file cannot be recovered. [`repair`](crate::repair::repair) can still save the intact chunks.
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
    checksums: bool,
    verify: bool,
    require_checksums: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        Self::new()
    }
}

impl OpenOptions {
    /// Returns the default options, which open an existing frame for reading.
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
            checksums: false,
            verify: true,
            require_checksums: false,
        }
    }

    /// Sets whether the frame is opened for reading and writing. Off by default.
    pub fn write(mut self, write: bool) -> Self {
        self.write = write;
        self
    }

    /// Sets whether the frame is opened for reading and appending. The handle can then append chunks; it cannot change
    /// or remove existing data or set metalayers. Off by default.
    pub fn append(mut self, append: bool) -> Self {
        self.append = append;
        self
    }

    /// Sets whether a new frame is created if none exists. The new or existing frame is opened for reading and writing,
    /// or for appending if [`append`](Self::append) is set. Off by default. Python: `mode="a"`.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Sets whether a new frame is created. If the file or directory already exists, opening fails with
    /// [`ErrorKind::AlreadyExists`], or replaces the file if [`replace`](Self::replace) is set. Off by default.
    pub fn create_new(mut self, create_new: bool) -> Self {
        self.create_new = create_new;
        self
    }

    /// Sets whether a new frame is created that replaces an existing file. Off by default. The new file gets the
    /// permissions of the old file. If the path is a symbolic link, the target of the link is replaced. If the path is
    /// a directory, a device or a named pipe, opening fails with [`ErrorKind::InvalidArgument`]. Python: `mode="w"`.
    #[doc(alias = "overwrite")]
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Sets whether each change and each read locks the file, so that several programs can use the file at the same
    /// time. Off by default. Python: `locking=True`.
    ///
    /// All programs that use the frame must lock it. Any number of handles may then change the frame, and a read
    /// returns the current content, never a part of a change. Sizes and counts such as [`nchunks`](SChunk::nchunks) are
    /// not always current: each handle updates them in its reads, its changes and [`refresh`](SChunk::refresh).
    ///
    /// The lock is a lock on a separate file: `NAME.b2lock` next to a frame `NAME`, or `.b2lock` in a directory. This
    /// crate does not remove the lock file. The lock is compatible with C-Blosc2 3.2 and later.
    ///
    /// If a program died in the middle of a change, opening for writing first recovers the file; see
    /// [crash recovery](Self#crash-recovery).
    ///
    /// Details:
    /// - The option has no effect on super-chunks in memory, in custom storage backends and in [custom
    ///   directories](crate::storage::FolderMut).
    /// - For a symbolic link, both the lock file of the link and the lock file of its target are locked.
    /// - Opening a file with several hard links for writing fails with [`ErrorKind::Unsupported`].
    /// - Locks do not work on network file systems.
    /// - The environment variable `BLOSC_LOCKING` is ignored.
    pub fn locking(mut self, locking: bool) -> Self {
        self.locking = locking;
        self
    }

    /// Sets whether each step of a change is synced to disk before the next step. Off by default.
    ///
    /// Without this option, a completed change is safe if the program dies. With this option, a completed change is
    /// also safe after a power failure, and each change takes milliseconds longer. In both cases the file may be
    /// unfinished if the program dies in the middle of a change; see [crash recovery](Self#crash-recovery).
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// Sets whether opening for writing first recovers the frame if a writer was stopped in the middle of a change. Off
    /// by default. Recovery rolls the change back, or completes the change if only its last step is missing; see [crash
    /// recovery](Self#crash-recovery). A complete frame is opened unchanged.
    ///
    /// The caller must ensure that no other program is changing the frame: recovery would destroy that change. This
    /// option is not necessary with [`locking`](Self::locking): opening for writing then always recovers the frame, and
    /// the lock ensures that no other program is writing.
    ///
    /// If the file is opened by its path and a lock file exists, recovery acquires the lock. If another handle of this
    /// program has the file open for writing, opening fails with [`ErrorKind::Busy`].
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

    /// Sets whether [`open`](Self::open) creates a directory with one file for each chunk (a sparse frame) instead of a
    /// contiguous file. Off by default. C and Python: `contiguous=False`.
    #[doc(alias("contiguous", "sparse"))]
    pub fn directory(mut self, directory: bool) -> Self {
        self.directory = directory;
        self
    }

    /// Sets how much is checked when a frame is opened. The default is [`Check::Structure`] for frames in memory
    /// ([`from_cframe`](Self::from_cframe) and similar methods), and [`Check::Header`] for all other frames.
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
        self
    }

    /// Sets the byte offset in the file at which the frame starts. Default: 0. A frame at another offset can be opened
    /// only for reading. [`SChunk::append_to_file`] writes such a frame. C: `blosc2_schunk_open_offset`.
    #[doc(alias = "blosc2_schunk_open_offset")]
    pub fn offset(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// Sets the compression parameters of new chunks. Python: `cparams`.
    ///
    /// A new super-chunk stores the parameters in its header. For an existing super-chunk, the parameters take
    /// precedence over the parameters in its header, and the header does not change.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }

    /// Sets the decompression parameters. Default: [`DParams::default`]. Python: `dparams`.
    pub fn dparams(mut self, params: impl Borrow<DParams>) -> Self {
        self.dparams = params.borrow().clone();
        self
    }

    /// Sets the typesize of a new super-chunk: the size of an item in bytes. Default: 1. A typesize in the
    /// [`cparams`](Self::cparams) takes precedence. C and Python: `typesize`.
    pub fn typesize(mut self, typesize: usize) -> Self {
        self.typesize = typesize;
        self
    }

    /// Sets the chunk size of a new super-chunk: the decompressed size in bytes of every chunk except the last chunk,
    /// which may be shorter. Python: `SChunk(chunksize=...)`.
    ///
    /// By default the first chunk determines the chunk size. With this option, adding a first chunk that is longer than
    /// `bytes` fails with [`ErrorKind::InvalidArgument`].
    pub fn chunksize(mut self, bytes: usize) -> Self {
        self.chunksize = Some(bytes);
        self
    }

    /// Adds a fixed-length metalayer (a named byte string) to a new super-chunk. A contiguous frame accepts new
    /// fixed-length metalayers only before its first chunk. C: `blosc2_meta_add`. Python: `meta={name: value}`.
    ///
    /// The content is stored unchanged. Python decodes the content of a metalayer as msgpack, and fails if the content
    /// is not msgpack. The method `meta_value` (feature `msgpack`) writes msgpack.
    pub fn meta(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.meta.push((name.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// Sets the maximum memory in bytes for the result of one read. A read that needs more memory fails with
    /// [`ErrorKind::TooLarge`].
    ///
    /// The limit protects against untrusted input: a few stored bytes can represent gigabytes of zeros. The default
    /// limits are:
    /// - one read of chunks: 1 GiB or 256 times the stored bytes, whichever is more;
    /// - one read of a metalayer, or of all metalayers by an iterator: 1 GiB and 256 times the stored bytes, see
    ///   [`Limits::metadata`](blosc2_format::Limits::metadata).
    ///
    /// These default limits apply to opened super-chunks, and to new super-chunks in files and directories. There is no
    /// default limit for a new super-chunk in memory, in a custom storage backend or in a [custom
    /// directory](crate::storage::FolderMut).
    ///
    /// [`default_max_read`](crate::limits::default_max_read) returns the first limit. Writers of this project refuse data
    /// that these default limits would not allow to read.
    ///
    /// A buffer that the caller provides does not count. An iterator applies the limit to each of its reads. If
    /// decompression needs more than 64 MiB of working memory, the limit also applies to the working memory.
    pub fn max_read(mut self, bytes: u64) -> Self {
        self.max_read = Some(bytes);
        self
    }

    /// Sets the limits for opening untrusted input; see [`Limits`](blosc2_format::Limits).
    ///
    /// By default, opening a frame allocates at most 64 MiB plus 16 times the stored bytes. If opening exceeds a limit,
    /// [`Error::exceeded`] returns the limit.
    ///
    /// [`Limits::chunks`] also applies to changes: a handle does not add more chunks than it could open.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether a new frame has checksums (CRC-32C) of its chunks, its header and its metalayers. Off by default.
    ///
    /// The Blosc2 formats have no checksums: if a byte of a chunk is damaged, the chunk can decompress to wrong data
    /// without an error. With checksums, reading the chunk fails with [`ErrorKind::InvalidData`]. Each change of the
    /// super-chunk updates the checksums.
    ///
    /// The checksums are stored in the variable-length metalayer `blosc2.crc32c`. Other programs ignore this metalayer,
    /// and [`SChunk::vlmeta`] does not list it. The section *Frame: checksums* of `FORMATS.md` in the crate
    /// `blosc2-format` specifies its content.
    ///
    /// When the checksums are compared:
    /// - The header and the metalayers are compared when the frame is opened.
    /// - A chunk is compared when a handle first reads the data of the chunk. [`SChunk::chunk_info`] compares nothing.
    /// - After another handle has changed the frame, each chunk is compared again at its next read.
    ///
    /// Cost:
    /// - The first read of a chunk reads the complete compressed chunk from the storage, even if only a part of the
    ///   data is needed. If several threads read parts of the chunk at the same time, each thread may read the complete
    ///   chunk.
    /// - The checksums take 4 bytes for each chunk. Opening the frame reads all checksums, and each change writes all
    ///   checksums. This takes some milliseconds for 1,000,000 chunks. A [transaction](SChunk::transaction) writes the
    ///   checksums once.
    ///
    /// [`SChunk::save`], [`SChunk::to_cframe`], [`SChunk::try_clone`] and [`SChunk::recompress`] create copies with
    /// checksums if the original has checksums. For any other new super-chunk or array, this option decides.
    ///
    /// Python and other programs that do not support checksums can read and change the frame. They do not update the
    /// checksums:
    /// - If such a change alters the length of the frame or the number of chunks, the checksums are known to be outdated:
    ///   the metadata is not compared, opening succeeds, and only reads of the changed chunks fail.
    /// - If such a change alters the metadata, but not the length or the number of chunks, opening fails.
    /// - Opening a copy that Python has written can also fail, because Python copies the old checksums.
    ///
    /// To accept such changes, use the command `blosc2 checksums`, or open the frame with
    /// [`verify_checksums(false)`](Self::verify_checksums) and call [`SChunk::set_checksums`].
    ///
    /// This option has no effect on existing frames. [`SChunk::set_checksums`] adds checksums to an existing frame or
    /// removes them.
    ///
    /// ```
    /// use blosc2::OpenOptions;
    ///
    /// let mut schunk = OpenOptions::new().checksums(true).in_memory_frame()?;
    /// schunk.append(&[1u8; 1000])?;
    /// assert!(schunk.info().has_checksums);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn checksums(mut self, checksums: bool) -> Self {
        self.checksums = checksums;
        self
    }

    /// Sets whether the [checksums](Self::checksums) of an opened frame are compared with the content of the frame. On
    /// by default. The option has no effect on frames without checksums.
    pub fn verify_checksums(mut self, verify: bool) -> Self {
        self.verify = verify;
        self
    }

    /// Sets whether opening an existing frame requires [checksums](Self::checksums) of its current state. Off by
    /// default. If the option is set, opening fails with [`ErrorKind::InvalidData`] in these cases:
    ///
    /// - The frame has no checksums, or has lost them. Without checksums, damaged data can be read without an error.
    /// - The checksums are outdated, because a program that does not support checksums has changed the frame.
    ///
    /// The same applies when the handle re-reads the metadata after another handle has changed the frame. The option
    /// takes precedence over [`verify_checksums`](Self::verify_checksums). Creating a frame without checksums fails with
    /// [`ErrorKind::InvalidArgument`].
    ///
    /// ```
    /// use blosc2::{ErrorKind, OpenOptions};
    ///
    /// let options = OpenOptions::new().require_checksums(true);
    /// let frame = OpenOptions::new().in_memory_frame()?.into_cframe()?;
    /// assert_eq!(options.from_cframe(frame).unwrap_err().kind(), ErrorKind::InvalidData);
    ///
    /// let frame = OpenOptions::new().checksums(true).in_memory_frame()?.into_cframe()?;
    /// assert!(options.from_cframe(frame).is_ok());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn require_checksums(mut self, require: bool) -> Self {
        self.require_checksums = require;
        self
    }

    fn verification(&self) -> Verify {
        match (self.require_checksums, self.verify) {
            (true, _) => Verify::Required,
            (false, true) => Verify::IfAny,
            (false, false) => Verify::Never,
        }
    }

    /// Returns whether [`open`](Self::open) may create a file.
    pub(crate) fn makes(&self) -> bool {
        self.create || self.create_new || self.replace
    }

    /// Opens or creates a file or a directory. C: `blosc2_schunk_open`, `blosc2_schunk_new`. Python: `blosc2.open`,
    /// `SChunk(urlpath=...)`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be read or created;
    /// - [`ErrorKind::AlreadyExists`]: the file or directory exists, and [`create_new`](Self::create_new) is set; this
    ///   function does not change it;
    /// - [`ErrorKind::InvalidData`]: the file is not a frame, is truncated or is invalid;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change, or is writing the file now; see
    ///   [crash recovery](Self#crash-recovery);
    /// - [`ErrorKind::Busy`], in these cases:
    ///   - another handle of this program excludes the new handle; see [access to a
    ///     file](Self#access-to-a-file-by-several-handles);
    ///   - another access to the file is running a [user closure](Self#user-closures), so that this call could
    ///     deadlock;
    ///   - other programs replace the file repeatedly;
    /// - [`ErrorKind::TooLarge`]: opening would exceed the [`limits`](Self::limits);
    /// - [`ErrorKind::InvalidArgument`]: options contradict each other, or a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter of the compression parameters; or a
    ///   file with several hard links is opened for writing with [`locking`](Self::locking);
    /// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
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
            let made =
                files::create_file(path, self.replace, None, |temporary| self.make(temporary));
            match made {
                // Another program created it first.
                Err(error)
                    if error.kind() == ErrorKind::AlreadyExists
                        && !(self.create_new || self.replace) => {}
                made => made?,
            }
        }
        self.open_path(path)
    }

    /// Opens or creates a contiguous frame in a custom storage backend. C: `blosc2_schunk_open_udio`.
    ///
    /// The options determine when a new frame is created:
    /// - [`create_new`](Self::create_new): the storage must be empty;
    /// - [`create`](Self::create): a frame is created if the storage is empty;
    /// - [`replace`](Self::replace): the content of the storage is discarded.
    ///
    /// To read a frame from any source that implements [`ReadAt`](crate::storage::ReadAt), wrap the source in
    /// [`ReadOnly`].
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open), with the errors of the storage, and with
    /// - [`ErrorKind::Callback`]: the storage panics;
    /// - [`ErrorKind::Busy`]: the storage is a [`File`], a frame is created in it, and another handle of this program
    ///   has the file open for reading or writing.
    pub fn open_storage(&self, storage: impl Storage + 'static) -> Result<SChunk> {
        self.check_offset()?;
        self.check_recover()?;
        let storage = Guarded(storage);
        let size = storage.size().map_err(|error| Error::of_io(OPEN, error))?;
        let makes = self.create_new || self.replace || self.create && size == 0;
        if makes {
            let (store, gate) = Self::new_storage_in(storage, self.replace, self.safety())?;
            let mut schunk = self.new_in(store)?;
            schunk.claim_created(gate);
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
        schunk.frame.claim_opened(gate, version);
        self.check_content(&report, schunk)
    }

    /// Opens the contiguous frame in `file`, which the caller has opened at `path`, for example without following links.
    /// The path appears in error messages and is the [path](SChunk::path) of the super-chunk. It is not resolved again.
    ///
    /// This method takes no lock: if other handles can change the file, the caller must hold its lock.
    ///
    /// ```
    /// use std::fs::File;
    ///
    /// use blosc2::{OpenOptions, SChunk};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.b2frame");
    /// SChunk::in_memory::<u8>(&Default::default())?.save(&path)?;
    /// let schunk = OpenOptions::new().open_file(File::open(&path)?, &path)?;
    /// assert_eq!(schunk.path(), Some(&*path));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`open_storage`](Self::open_storage).
    pub fn open_file(&self, file: File, path: &Path) -> Result<SChunk> {
        let mut schunk = self.open_storage(file).map_err(|error| error.at(path))?;
        schunk.frame.set_path(path);
        Ok(schunk)
    }

    /// Opens or creates a sparse frame in a custom directory. C: `blosc2_schunk_open_udio` of a directory.
    ///
    /// A sparse frame has one file for each chunk. A custom directory is a value whose type implements
    /// [`FolderMut`](crate::storage::FolderMut), for example for files in an object store. To open a directory of the
    /// file system, pass its path to [`open`](Self::open).
    ///
    /// [`create`](Self::create), [`create_new`](Self::create_new) and [`replace`](Self::replace) create a frame if the
    /// directory has no index file, `chunks.b2frame`.
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
    /// assert_eq!(OpenOptions::new().open_folder(bucket)?.read::<u64>(1..)?, [2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open), with the errors of the directory, and with
    /// - [`ErrorKind::Callback`]: the directory panics;
    /// - [`ErrorKind::InvalidArgument`]: [`replace`](Self::replace) is set, and the directory contains a frame; remove
    ///   the files of the frame first.
    #[doc(alias("blosc2_schunk_open_udio", "sparse"))]
    pub fn open_folder<F>(&self, folder: F) -> Result<SChunk>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        if self.offset > 0 {
            let detail = "a frame in a custom folder starts at the first byte of its index file";
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

    /// Opens an in-memory contiguous frame, without a copy of the bytes. [`SChunk::into_cframe`] returns the bytes. C:
    /// `blosc2_schunk_from_buffer`. Python: `schunk_from_cframe`.
    ///
    /// For memory of other types, such as `Arc<[u8]>`, use [`from_owner`](Self::from_owner); for borrowed memory, use
    /// [`with_borrowed`](Self::with_borrowed).
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the bytes are not a frame, are truncated or are invalid;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change; see
    ///   [crash recovery](Self#crash-recovery);
    /// - [`ErrorKind::TooLarge`]: opening would exceed the [`limits`](Self::limits);
    /// - [`ErrorKind::InvalidArgument`]: options contradict each other, or a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter of the compression parameters.
    pub fn from_cframe(&self, bytes: Vec<u8>) -> Result<SChunk> {
        self.open_memory(bytes)
    }

    /// Opens an in-memory contiguous frame for reading, without a copy of the bytes. `bytes` may be any type that owns
    /// memory, such as `Arc<[u8]>`, `&'static [u8]`, `bytes::Bytes` or `memmap2::Mmap`. C: `blosc2_schunk_from_buffer`
    /// without a copy.
    ///
    /// The super-chunk owns `bytes` and drops it when the super-chunk is dropped.
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
    /// assert_eq!(opened.read::<u32>(1..)?, [2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`from_cframe`](Self::from_cframe). Changes fail with [`ErrorKind::ReadOnly`].
    #[doc(alias = "blosc2_schunk_from_buffer")]
    pub fn from_owner(&self, bytes: impl AsRef<[u8]> + Send + Sync + 'static) -> Result<SChunk> {
        self.open_memory(Guarded(Shared(bytes)))
    }

    /// Opens a contiguous frame in borrowed memory for reading, without a copy of the frame, and passes the super-chunk
    /// to `work`. C: `blosc2_schunk_from_buffer` and `b2nd_from_cframe` without a copy.
    ///
    /// The super-chunk is usable only while `work` runs. If `work` moves the super-chunk elsewhere, its reads fail with
    /// [`ErrorKind::Io`] after `work` has returned. Each read copies the compressed bytes of the blocks that it needs.
    /// With [`from_owner`](Self::from_owner), reads copy nothing.
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
    /// Fails with the errors of [`from_cframe`](Self::from_cframe) and of `work`. Changes fail with
    /// [`ErrorKind::ReadOnly`].
    #[doc(alias("blosc2_schunk_from_buffer", "b2nd_from_cframe"))]
    pub fn with_borrowed<R>(
        &self,
        bytes: &[u8],
        work: impl FnOnce(SChunk) -> Result<R>,
    ) -> Result<R> {
        lend(bytes, |lent| work(self.open_memory(lent)?))
    }

    /// Creates an in-memory super-chunk that stores each chunk in a separate allocation.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn in_memory(&self) -> Result<SChunk> {
        self.new_in(Box::<Memory>::default())
    }

    /// Creates an in-memory super-chunk that is a contiguous frame in one buffer, with the same bytes as a file. C:
    /// `contiguous` without `urlpath`.
    ///
    /// Appending is slower than with [`in_memory`](Self::in_memory). [`SChunk::into_cframe`] returns the buffer without
    /// a copy.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    #[doc(alias = "contiguous")]
    pub fn in_memory_frame(&self) -> Result<SChunk> {
        self.new_in(Self::new_buffer())
    }

    /// Returns the store of a new frame in one buffer.
    pub(crate) fn new_buffer() -> Box<dyn Store> {
        Box::new(Contiguous::new(Vec::new(), Safety::Errors))
    }

    /// Returns the store of a new frame in a storage, and the claim of the file if the storage is a file. With
    /// `replace`, the content of the storage is discarded; otherwise the storage must be empty.
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
            let detail = format!(
                "the storage is not empty: it has {size} bytes; open_storage opens its frame"
            );
            return Err(Error::new(ErrorKind::AlreadyExists, MAKE, detail));
        }
        let cut = if size > 0 { storage.set_size(0) } else { Ok(()) };
        cut.map_err(|error| Error::of_io(MAKE, error))?;
        Ok((Box::new(Contiguous::new(storage, safety)), gate))
    }

    /// Returns the store of a new frame in a directory that contains no frame.
    pub(crate) fn new_folder<F>(folder: F, replace: bool) -> Result<Box<dyn Store>>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        Self::new_folder_in(Guarded(folder), replace, Safety::Death)
    }

    fn new_folder_in(files: impl Files, replace: bool, safety: Safety) -> Result<Box<dyn Store>> {
        if has_frame(&files)? {
            let (kind, detail) = match replace {
                true => {
                    let detail =
                        "a frame in a custom folder cannot be replaced: remove its files first";
                    (ErrorKind::InvalidArgument, detail)
                }
                false => (ErrorKind::AlreadyExists, "the custom folder contains a frame"),
            };
            return Err(Error::new(kind, MAKE, detail));
        }
        Ok(Box::new(Directory::new(files, safety)))
    }

    /// Checks that a frame at an offset is not opened for writing.
    fn check_offset(&self) -> Result<()> {
        if self.offset > 0 && self.access() != Access::Read {
            let detail = "a frame inside a larger file can only be read";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail));
        }
        Ok(())
    }

    /// Checks that `recover` is set only for writing.
    fn check_recover(&self) -> Result<()> {
        if self.recover && self.access() == Access::Read {
            let detail = "`recover` requires opening for writing";
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

    /// Creates an empty, complete frame.
    fn new_in(&self, store: Box<dyn Store>) -> Result<SChunk> {
        if self.require_checksums && !self.checksums {
            let detail =
                "the options require checksums, but do not set `checksums` for a new frame";
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let params = self.cparams.clone().unwrap_or_default();
        let resolved = params.resolve(self.typesize, Purpose::Frame)?;
        let typesize = resolved.typesize();
        if let Some(size) = self.chunksize
            && (!(1..=MAX_CHUNK_LEN).contains(&size) || !size.is_multiple_of(typesize))
        {
            let detail = format!(
                "a chunk has 1 to {MAX_CHUNK_LEN} bytes, a multiple of the typesize {typesize}, got {size}"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let chunksize =
            self.chunksize.map_or(ChunkSize::Unknown, |size| ChunkSize::new(size as u32));
        let mut schunk = SChunk::with_params(resolved, store, &self.meta, chunksize, self.limits)?;
        self.start_checksums(&mut schunk)?;
        schunk.set_dparams(self.dparams.clone());
        schunk.coder.set_encoding(params);
        schunk.max_read = self.max_read.map_or(MaxRead::Any, MaxRead::Bytes);
        schunk.finish()?;
        if self.append {
            schunk.frame.set_access(Access::Append);
        }
        Ok(schunk)
    }

    /// Adds checksums to a frame that is being created, if the option is set.
    pub(crate) fn start_checksums(&self, schunk: &mut SChunk) -> Result<()> {
        if !self.checksums {
            return Ok(());
        }
        let started = schunk.frame.state_mut().outline.set_checksums(Some(Vec::new()));
        started.map_err(|error| Error::from_frame(MAKE, error))
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
        let detail = "other programs replace it repeatedly while it is opened";
        Err(Error::new(ErrorKind::Busy, OPEN, detail).at(path))
    }

    /// Returns `None` if the file was replaced while it was opened.
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
        // Opening a pipe would block.
        if !directory && !metadata.is_file() {
            return Err(invalid("it is neither a file nor a directory"));
        }
        if directory && !absolute.join(INDEX).is_file() {
            let detail = format!("the directory is not a frame: it has no file `{INDEX}`");
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
            Some(file) => links(file).map_err(io)? > 0,
            None => true,
        };
        let gate = gate.with_open_file(folder).named(has_name);
        let gate = if self.locking { gate.with_lock(&absolute, directory)? } else { gate };
        let pass = gate.read().map_err(at)?;
        // From here on no handle of this program replaces it.
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
            let locked = match self.locking {
                true => gate,
                false => gate.with_lock_if_there(&absolute, false)?,
            };
            return self.recover_file(path, &locked).map(|()| None).map_err(at);
        }
        let (mut schunk, report) = opened.map_err(at)?;
        schunk.frame.set_path(path);
        schunk.frame.claim_opened(Some(gate), version);
        if self.locking && self.access() != Access::Read {
            schunk.frame.check_file()?;
        }
        self.check_content(&report, schunk).map(Some)
    }

    /// Rolls back the change of a stopped writer in the file at `path`. Does nothing if another file is now at `path`.
    fn recover_file(&self, path: &Path, gate: &Gate) -> Result<()> {
        let mut pass = gate.change()?;
        let io = |error| Error::of_io(OPEN, error);
        let file = File::options().read(true).write(true).open(path).map_err(io)?;
        if FileId::of_opened(&file, path).map_err(io)? != *gate.id() {
            return Ok(());
        }
        if gate.is_locking() && links(&file).map_err(io)? > 1 {
            let detail = "the file has several names (hard links), and a writer that uses another name acquires another lock";
            return Err(Error::new(ErrorKind::Unsupported, OPEN, detail));
        }
        Contiguous::new(file, self.safety()).recover(OPEN)?;
        pass.changed();
        Ok(())
    }

    /// Opens an in-memory frame. No other handle can change the frame.
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

    /// Returns the frame in a storage, at the offset of the options.
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

    /// Decompresses with C the chunks that the Rust implementation cannot decompress.
    fn check_content(&self, report: &Report, schunk: SChunk) -> Result<SChunk> {
        if self.check != Some(Check::Content) {
            return Ok(schunk);
        }
        let mut data = Vec::new();
        let verdict = verdict(report, |number| {
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            schunk.with_chunk(index, None, |chunk, decoder| {
                resize(&mut data, chunk.nbytes(), OPEN)?;
                decoder.decompress(chunk, Target::of(&mut data)).map(|_| ())
            })
        })?;
        match verdict.fault(OPEN).map_err(|error| schunk.at(error))? {
            None => Ok(schunk),
            Some(why) => Err(schunk.error(ErrorKind::InvalidData, OPEN, why)),
        }
    }

    /// Checks a frame to this depth. Returns the report if it contains no error.
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
        let mut report = check(&options).map_err(|error| Error::from_frame(OPEN, error))?;
        // By default, a chunk that differs from its checksum is an error when it is read.
        let ignored = match (self.verification(), self.check) {
            (Verify::Never, _) => "frame.checksums",
            (_, None) => "frame.checksums.chunk",
            (_, Some(_)) => "-",
        };
        report.findings.retain(|finding| !finding.rule.id.starts_with(ignored));
        let mut findings = report.findings.iter();
        match findings.find(|finding| finding.rule.severity == Severity::Error) {
            Some(error) => Err(Error::from_finding(OPEN, error)),
            None => Ok(report),
        }
    }

    fn opened(&self, mut store: impl Store + 'static) -> Result<SChunk> {
        let outline = store.read(&self.limits, None, self.verification(), OPEN)?;
        let outline =
            outline.ok_or_else(|| Error::new(ErrorKind::InvalidData, OPEN, "no frame"))?;
        let (version, limits) = (Version::default(), self.limits);
        let store = Box::new(store);
        let mut state = State::new(outline, store, version, false, limits);
        state.verify = self.verification();
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

/// Opens a directory, on systems that can open directories. While the directory is open, its identity does not change.
fn open_folder(path: &Path) -> Option<File> {
    File::open(path).ok()
}

/// Claims the file of a storage, if the storage is a file.
fn gate_of(storage: &impl Storage, claim: Claim) -> Result<Option<Gate>> {
    let Some(file) = storage.file() else { return Ok(None) };
    let io = |error| Error::of_io(OPEN, error);
    let Some(id) = FileId::of_file(file).map_err(io)? else { return Ok(None) };
    let has_name = links(file).map_err(io)? > 0;
    Gate::new(id, claim).map(|gate| Some(gate.named(has_name)))
}

/// Returns the store of a new file or directory; nothing exists at the path.
pub(crate) fn new_store(path: &Path, directory: bool) -> Result<Box<dyn Store>> {
    let io = |error| Error::from_io(MAKE, path, error);
    if directory {
        fs::create_dir(path).map_err(io)?;
        return Ok(Box::new(Directory::new(Disk(files::absolute(path)?), Safety::Errors)));
    }
    let file = File::options().read(true).write(true).create_new(true).open(path).map_err(io)?;
    Ok(Box::new(Contiguous::new(file, Safety::Errors)))
}
