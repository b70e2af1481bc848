//! Options for opening and creating super-chunks.

use std::borrow::Borrow;
use std::fs::{self, File};
use std::path::Path;

use blosc2_format::directory::{Disk, INDEX};
use blosc2_format::frame::{self, ChunkSize};
use blosc2_format::read_at::AtOffset;
use blosc2_format::{Limits, Options, Report, Severity};

use super::limits::MaxRead;
use super::metalayers::Content;
use super::store::{Contiguous, State, Store, Verify};
use super::target::{Created, Place, Sparse, Target, gate_of};
use super::verdict::verdict;
use super::{Access, SChunk, files};
use crate::bytes::{ReadOnly, Safety, Storage, lend};
use crate::codec::params::{MAX_CHUNK_LEN, Purpose};
use crate::gate::{FileId, Gate, Pass, Version, has_lock, links};
use crate::support::memory::{self, resize};
use crate::{CParams, Check, DParams, Doing, Error, ErrorKind, Reason, Result};

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
/// paths and links to one file count as the same file, and so does a [`File`] that is a
/// [storage](Target::storage), or that a custom storage [returns](Storage::file). On Windows, this crate identifies directories, and files on volumes without file
/// indices, by their canonical path. A [`File`] on such a volume is not recognized.
///
/// - Within a program, a file may have one handle that is open for writing, or any number of such handles if all of
///   them use [`locking`](Self::locking). Opening any other handle for writing fails with [`ErrorKind::Busy`]. While a
///   handle of the program is open for writing, replacing the file and appending a second frame to the file
///   ([`SaveOptions::append`](crate::SaveOptions::append)) also fail with `Busy`.
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
    pub(crate) replace: bool,
    locking: bool,
    durable: bool,
    recover: bool,
    check: Option<Check>,
    pub(crate) cparams: Option<CParams>,
    pub(crate) dparams: DParams,
    typesize: usize,
    chunksize: Option<usize>,
    pub(crate) meta: Vec<(String, Vec<u8>)>,
    pub(super) vlmeta: Vec<(String, Content)>,
    pub(crate) max_read: Option<u64>,
    pub(crate) limits: Option<Limits>,
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
            check: None,
            cparams: None,
            dparams: DParams::default(),
            typesize: 1,
            chunksize: None,
            meta: Vec::new(),
            vlmeta: Vec::new(),
            max_read: None,
            limits: None,
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
    /// assert_eq!(SChunk::open(bytes.clone()).unwrap_err().kind(), ErrorKind::Unfinished);
    /// let schunk = OpenOptions::new().write(true).recover(true).open(bytes)?;
    /// assert_eq!(schunk.decompress_chunk::<u8>(0)?, [1; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn recover(mut self, recover: bool) -> Self {
        self.recover = recover;
        self
    }

    /// Sets how much is checked when a frame is opened. The default is [`Check::Structure`] for frames in memory
    /// (`Vec<u8>`, [`Target::bytes`] and [`with_borrowed`](Self::with_borrowed)), and [`Check::Header`] for all other
    /// frames.
    pub fn check(mut self, check: Check) -> Self {
        self.check = Some(check);
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

    /// Adds a variable-length metalayer to a new super-chunk. The content is compressed; for its encoding, see
    /// [`meta`](Self::meta). The metalayers of an existing super-chunk are set by [`SChunk::vlmeta_mut`]. C:
    /// `blosc2_vlmeta_add`.
    pub fn vlmeta(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let bytes = content.as_ref().to_vec();
        self.vlmeta.push((name.to_owned(), Content { bytes, memory: 0 }));
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
        self.limits = Some(limits);
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
    /// let mut schunk = OpenOptions::new().checksums(true).create_new(true).open(Vec::new())?;
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
    /// let frame = OpenOptions::new().create_new(true).open(Vec::new())?.into_cframe()?;
    /// assert_eq!(options.open(frame).unwrap_err().kind(), ErrorKind::InvalidData);
    ///
    /// let frame = OpenOptions::new().checksums(true).create_new(true).open(Vec::new())?.into_cframe()?;
    /// assert!(options.open(frame).is_ok());
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

    /// Opens an existing frame; fails if the options would create a super-chunk.
    pub(crate) fn open_existing(&self, target: Target) -> Result<SChunk> {
        let creates = self.create || self.create_new || self.replace;
        if creates || matches!(target.place, Place::Memory) {
            let detail = match creates {
                true => "the options create a super-chunk; NDArray::builder creates arrays",
                false => "the target is memory, which contains no frame",
            };
            let error = Error::new(ErrorKind::InvalidArgument, OPEN, detail);
            return Err(Target::at(target.shown_path(), error));
        }
        self.open_target(target)
    }

    /// Opens or creates a frame. C: `blosc2_schunk_open`, `blosc2_schunk_new`. Python: `blosc2.open`, `SChunk(urlpath=...)`.
    ///
    /// [`Target`] describes the places of frames. These options determine when a new frame is created:
    /// - [`create_new`](Self::create_new): always; it is an error if the target exists, or contains data;
    /// - [`create`](Self::create): if the path does not exist, or the bytes, the storage or the custom directory contains
    ///   no data;
    /// - [`replace`](Self::replace): always; existing data is replaced.
    ///
    /// In [memory](Target::memory), a new frame is created with any options.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the target cannot be read or created;
    /// - [`ErrorKind::AlreadyExists`]: the target exists or contains data, and [`create_new`](Self::create_new) is set
    ///   without [`replace`](Self::replace); this function does not change it;
    /// - [`ErrorKind::InvalidData`]: the target is not a frame, is truncated or is invalid;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change, or is writing the file now; see
    ///   [crash recovery](Self#crash-recovery);
    /// - [`ErrorKind::Busy`], in these cases:
    ///   - another handle of this program excludes the new handle; see [access to a
    ///     file](Self#access-to-a-file-by-several-handles);
    ///   - another access to the file is running a [user closure](Self#user-closures), so that this call could
    ///     deadlock;
    ///   - other programs replace the file repeatedly;
    ///   - a frame is created in an opened [`File`], and another handle of this program has the file open for reading
    ///     or writing;
    /// - [`ErrorKind::TooLarge`]: opening would exceed the [`limits`](Self::limits);
    /// - [`ErrorKind::InvalidArgument`], in these cases:
    ///   - options contradict each other, or a parameter is invalid;
    ///   - [`replace`](Self::replace) is set, and the target is a directory or a custom directory that exists;
    ///   - the target has an [`offset`](Target::offset), and it is a directory or is opened for writing;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter of the compression parameters; or a
    ///   file with several hard links is opened for writing with [`locking`](Self::locking);
    /// - [`ErrorKind::Callback`]: a custom storage backend or directory panics;
    /// - [`ErrorKind::OutOfMemory`]: there is not enough memory.
    #[doc(alias("blosc2_schunk_open_udio", "blosc2_schunk_from_buffer", "schunk_from_cframe"))]
    pub fn open(&self, target: impl Into<Target>) -> Result<SChunk> {
        self.open_target(target.into())
    }

    fn open_target(&self, target: Target) -> Result<SChunk> {
        let path = target.path().map(Path::to_owned);
        let shown = target.shown_path().map(Path::to_owned);
        let invalid = |detail| {
            let error = Error::new(ErrorKind::InvalidArgument, OPEN, detail);
            Err(Target::at(shown.as_deref(), error))
        };
        if self.recover && self.access() == Access::Read {
            return invalid("`recover` requires opening for writing");
        }
        let makes = self.create_new
            || self.replace
            || matches!(target.place, Place::Memory)
            || self.create && !target.exists()?;
        if target.offset > 0 && (makes || self.access() != Access::Read) {
            return invalid("a frame inside a larger file can only be read");
        }
        if makes {
            let made =
                target.create(self.replace, self.safety(), |store| self.new_in(store)).doing(MAKE);
            return match (made, path) {
                (Ok(Created::Frame(schunk)), _) => Ok(schunk),
                (Ok(Created::At(path)), _) => self.open_path(&path, 0),
                // Another program created it first.
                (Err(error), Some(path))
                    if error.kind() == ErrorKind::AlreadyExists
                        && !(self.create_new || self.replace) =>
                {
                    self.open_path(&path, 0)
                }
                (Err(error), _) => Err(error),
            };
        }
        match target.place {
            Place::Path(path) => self.open_path(&path, target.offset),
            Place::Bytes(bytes) => self.open_in(Box::new(bytes), true, target.offset),
            Place::Storage { storage, is_owned, path } => {
                let opened = self.open_in(storage, is_owned, target.offset);
                let mut schunk = opened.map_err(|error| Target::at(path.as_deref(), error))?;
                if let Some(path) = &path {
                    schunk.frame.set_path(path);
                }
                Ok(schunk)
            }
            Place::Folder(_) if target.offset > 0 => {
                invalid("a frame in a custom directory starts at the first byte of its index file")
            }
            Place::Folder(folder) => {
                let (schunk, report) = self.open_directory(folder)?;
                self.check_content(&report, schunk)
            }
            Place::Memory => unreachable!("memory is created"),
        }
    }

    /// Opens the frame in a storage. Only this handle can access an owned storage.
    fn open_in(&self, storage: Box<dyn Storage>, is_owned: bool, offset: u64) -> Result<SChunk> {
        let gate = gate_of(&*storage, self.access().claim(false))?;
        let (safety, depth) = match is_owned {
            true => (Safety::Errors, Check::Structure),
            false => (self.safety(), Check::Header),
        };
        let mut frame = at_offset(storage, offset, safety);
        if self.recover {
            let mut pass = gate.as_ref().map(|gate| gate.change()).transpose()?;
            frame.recover().doing(OPEN)?;
            pass.as_mut().map(Pass::changed);
        }
        let pass = gate.as_ref().map(|gate| gate.read()).transpose()?;
        let version = pass.as_ref().map(|pass| pass.version()).unwrap_or_default();
        let (mut schunk, report) = self.open_frame(frame, depth)?;
        drop(pass);
        schunk.frame = schunk.frame.claim_opened(gate, version);
        self.check_content(&report, schunk)
    }

    /// Opens a contiguous frame in borrowed memory for reading, without a copy of the frame, and passes the super-chunk
    /// to `work`. C: `blosc2_schunk_from_buffer` and `b2nd_from_cframe` without a copy.
    ///
    /// The super-chunk is usable only while `work` runs. If `work` moves the super-chunk elsewhere, its reads fail with
    /// [`ErrorKind::Io`] after `work` has returned. Each read copies the compressed bytes of the blocks that it needs.
    /// With [`Target::bytes`], reads copy nothing.
    ///
    /// ```
    /// use blosc2::{NDArray, OpenOptions};
    ///
    /// let frame = NDArray::from_slice(&[1.5, 2.5, 3.5], &[3])?.schunk().to_cframe()?;
    /// let borrowed = &frame[..];
    /// let last: Vec<f64> = OpenOptions::new().with_borrowed(borrowed, |schunk| {
    ///     NDArray::from_schunk(schunk)?.read(2..)
    /// })?;
    /// assert_eq!(last, [3.5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open) and of `work`. Changes fail with [`ErrorKind::ReadOnly`].
    #[doc(alias("blosc2_schunk_from_buffer", "b2nd_from_cframe"))]
    pub fn with_borrowed<R>(
        &self,
        bytes: &[u8],
        work: impl FnOnce(SChunk) -> Result<R>,
    ) -> Result<R> {
        lend(bytes, |lent| work(self.open_target(Target::owned(lent))?))
    }

    fn access(&self) -> Access {
        match (self.append, self.write || self.create || self.create_new || self.replace) {
            (true, _) => Access::Append,
            (false, true) => Access::Write,
            (false, false) => Access::Read,
        }
    }

    fn all_limits(&self) -> Limits {
        self.limits.unwrap_or_default()
    }

    /// Returns the options for opening and creating an array. The items and the block shape determine the typesize and
    /// the block size.
    pub(crate) fn for_array(self) -> Self {
        let cparams =
            self.cparams.map(|params| CParams { typesize: None, blocksize: None, ..params });
        Self { write: true, append: false, create: false, create_new: false, cparams, ..self }
    }

    pub(crate) fn safety(&self) -> Safety {
        if self.durable { Safety::PowerLoss } else { Safety::Death }
    }

    /// Creates an empty, complete frame.
    fn new_in(&self, store: Box<dyn Store>) -> Result<SChunk> {
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
        let mut schunk =
            SChunk::with_params(resolved, store, &self.meta, chunksize, self.all_limits())?;
        self.start_checksums(&mut schunk)?;
        schunk.frame.state_mut().verify = self.verification();
        schunk.set_dparams(self.dparams.clone());
        schunk.coder.set_encoding(params);
        schunk.max_read = self.max_read.map_or(MaxRead::Any, MaxRead::Bytes);
        self.set_vlmeta(&mut schunk)?;
        schunk.finish()?;
        if self.append {
            schunk.frame.set_access(Access::Append);
        }
        Ok(schunk)
    }

    /// Sets the variable-length metalayers of a frame that is being created.
    pub(crate) fn set_vlmeta(&self, schunk: &mut SChunk) -> Result<()> {
        let mut layers = schunk.vlmeta_mut();
        self.vlmeta.iter().try_for_each(|(name, content)| layers.set_content(name, content))
    }

    /// Adds checksums to a frame that is being created, if the option is set.
    pub(crate) fn start_checksums(&self, schunk: &mut SChunk) -> Result<()> {
        if !self.checksums && self.require_checksums {
            let detail =
                "the options require checksums, but do not set `checksums` for a new frame";
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        if !self.checksums {
            return Ok(());
        }
        let started = schunk.frame.state_mut().outline.set_checksums(Some(Vec::new()));
        started.doing(MAKE)
    }

    fn open_path(&self, path: &Path, offset: u64) -> Result<SChunk> {
        const TRIES: usize = 100;
        for _ in 0..TRIES {
            if let Some(schunk) = self.try_open_path(path, offset)? {
                return Ok(schunk);
            }
        }
        let detail = "other programs replace it repeatedly while it is opened";
        Err(Error::new(ErrorKind::Busy, OPEN, detail).at(path))
    }

    /// Returns `None` if the file was replaced while it was opened.
    fn try_open_path(&self, path: &Path, offset: u64) -> Result<Option<SChunk>> {
        let io = |error| Error::of_io(OPEN, error).at(path);
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
        if directory && offset > 0 {
            let detail = "a directory has no frame at an offset";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail).at(path));
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
            None => self.open_directory(Box::new(Disk(absolute.clone()))),
            Some(file) => {
                let frame = at_offset(file, offset, self.safety());
                self.open_frame(frame, Check::Header)
            }
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
        schunk.frame = schunk.frame.claim_opened(Some(gate), version);
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
        Contiguous::new(file, self.safety()).recover().doing(OPEN)?;
        pass.changed();
        Ok(())
    }

    fn open_directory(&self, files: Box<dyn Sparse>) -> Result<(SChunk, Report)> {
        let depth = self.check.unwrap_or(Check::Header);
        let report = self.report(depth, |options| files.check(options))?;
        let schunk = self.opened(files.into_store(self.safety()))?;
        Ok((schunk, report))
    }

    fn open_frame(&self, frame: Contiguous, default: Check) -> Result<(SChunk, Report)> {
        let depth = self.check.unwrap_or(default);
        let report = self.report(depth, |options| frame::check(frame.storage(), options))?;
        let schunk = self.opened(Box::new(frame))?;
        Ok((schunk, report))
    }

    /// Decompresses with C the chunks that the Rust implementation cannot decompress.
    fn check_content(&self, report: &Report, schunk: SChunk) -> Result<SChunk> {
        if self.check != Some(Check::Content) {
            return Ok(schunk);
        }
        let mut schunk = schunk;
        // The postfilter is not part of the content.
        schunk.set_dparams(self.dparams.without_closure());
        let mut data = Vec::new();
        let verdict = verdict(report, |number| {
            let index = usize::try_from(number).unwrap_or(usize::MAX);
            schunk.with_chunk(index, None, |chunk, decoder| {
                resize(&mut data, chunk.nbytes()).doing(OPEN)?;
                decoder.decompress(chunk, memory::Target::of(&mut data)).map(|_| ())
            })
        })?;
        match verdict.fault().doing(OPEN).map_err(|error| schunk.at(error))? {
            None => {
                schunk.set_dparams(&self.dparams);
                Ok(schunk)
            }
            Some(why) => Err(schunk.error(ErrorKind::InvalidData, why).doing(OPEN)),
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
        let options = Options { content, limits: self.all_limits(), ..Options::default() };
        let mut report = check(&options).doing(OPEN)?;
        // By default, a chunk that differs from its checksum is an error when it is read.
        let ignored = match (self.verification(), self.check) {
            (Verify::Never, _) => "frame.checksums",
            (_, None) => "frame.checksums.chunk",
            (_, Some(_)) => "-",
        };
        report.findings.retain(|finding| !finding.rule.id.starts_with(ignored));
        let mut findings = report.findings.iter();
        match findings.find(|finding| finding.rule.severity == Severity::Error) {
            Some(error) => Err(Reason::from_finding(error).doing(OPEN)),
            None => Ok(report),
        }
    }

    fn opened(&self, mut store: Box<dyn Store>) -> Result<SChunk> {
        let outline = store.read(&self.all_limits(), None, self.verification()).doing(OPEN)?;
        let outline =
            outline.ok_or_else(|| Error::new(ErrorKind::InvalidData, OPEN, "no frame"))?;
        let (version, limits) = (Version::default(), self.all_limits());
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

/// Opens a directory, on systems that can open directories. While the directory is open, its identity does not change.
fn open_folder(path: &Path) -> Option<File> {
    File::open(path).ok()
}

/// Returns the frame at an offset in a storage.
fn at_offset(storage: impl Storage + 'static, offset: u64, safety: Safety) -> Contiguous {
    match offset {
        0 => Contiguous::new(storage, safety),
        offset => Contiguous::new(ReadOnly::new(AtOffset::new(storage, offset)), safety),
    }
}
