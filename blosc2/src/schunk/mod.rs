//! Super-chunks: sequences of compressed chunks with metadata, in memory, in files or in custom storage backends.

mod change;
mod checksums;
mod coder;
mod copy;
mod fetch;
pub(super) mod files;
mod frame;
mod info;
mod items;
mod limits;
mod metalayers;
#[cfg(feature = "msgpack")]
mod msgpack;
mod options;
mod read;
mod reader_writer;
mod repair;
mod search_indexes;
mod source;
mod store;
mod target;
pub(super) mod verdict;

use std::borrow::Borrow;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;

use blosc2_format::Limits;
use blosc2_format::b2nd::{NAME, OLD_NAME};
use blosc2_format::frame::{ChunkSize, Metalayer, Outline};

use crate::chunk::encoder::Encoder;
use crate::chunk::init::init;
use crate::codec::params::Resolved;
use crate::error::AnyError;
use crate::gate::{Calling, Gate, Version};
use crate::item::element::{Element, is_byte};
use crate::support::memory::reserve;
use crate::{CParams, DParams, Doing, Error, ErrorKind, Reason, Result, Threads};

use coder::Coder;
use frame::{Frame, StateRef};
use limits::MaxRead;
pub use limits::default_max_read;
use store::State;

pub(crate) use fetch::{Fetched, NOTHING_FETCHED, Wanted, Window, fetch_ahead};
pub use files::{create_file, temporary_prefix};
pub use frame::Revision;
pub(crate) use frame::{Access, Reading};
pub(crate) use store::Store;
pub(crate) use target::Created;

pub use copy::SaveOptions;
pub use info::SChunkInfo;
pub(crate) use info::write_storage;
pub use metalayers::{Metalayers, MetalayersMut};
pub use options::OpenOptions;
pub use read::ChunkInfo;
pub use reader_writer::{SChunkReader, SChunkWriter};
pub use repair::{Rebuilt, Repaired, repair, repair_to};
pub use source::{ChunkSource, VariableBlocks};
pub use target::Target;

/// A super-chunk: a sequence of compressed chunks with metadata, in memory, in a file, in a directory or in a custom
/// storage backend. C: `blosc2_schunk`. Python: `SChunk`.
///
/// Usually all chunks have the same size, and only the last chunk may be shorter. A super-chunk may also have
/// variable-length chunks. In both cases [`read`](Self::read) reads items across chunk boundaries. The metadata
/// consists of named byte strings, the [metalayers](Metalayers).
///
/// Terms of this page:
/// - A *frame* is the stored form of a super-chunk: a header, the chunks, an index of the chunks, and a trailer. The
///   header and the trailer contain the metalayers. A *contiguous* frame is one file or one buffer. A *sparse* frame is
///   a directory with one file for each chunk.
/// - A *special chunk* contains one repeated value, zeros, NaN or uninitialized items; see [`Special`](crate::Special).
/// - A *handle* is an `SChunk` or an [`NDArray`](crate::NDArray) that has a file open.
///
/// Methods that read take `&self`. Several threads may call them at the same time: each thread uses its own
/// decompression context. Methods that change the super-chunk take `&mut self`. Each change is atomic: after a
/// successful call the file contains a complete frame, and a call that fails changes nothing. The only exception is
/// described under [errors of changes](#errors-of-changes). A [transaction](Self::transaction) makes several changes
/// atomic as a whole.
///
/// `SChunk::create`, `open` and similar functions use the default options. [`OpenOptions`] has all options.
///
/// ```
/// use blosc2::{CParams, SChunk};
///
/// let mut schunk = SChunk::in_memory::<i32>(&CParams::default())?;
/// schunk.append(&[1i32, 2, 3])?;
/// schunk.append(&[4i32, 5])?;
/// assert_eq!(schunk.read::<i32>(1..4)?, [2, 3, 4]);
/// schunk.vlmeta_mut().set("author", b"me")?;
///
/// let bytes = schunk.to_cframe()?; // the bytes of a file with this content
/// let copy = SChunk::open(bytes)?;
/// assert_eq!(copy.decompress_chunk::<i32>(1)?, [4, 5]);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Errors of reading
/// Each method that reads chunks may fail with
/// - [`ErrorKind::Io`]: the file or storage cannot be read;
/// - [`ErrorKind::InvalidData`]: the index or a chunk is invalid, or an earlier change failed and could not be rolled
///   back;
/// - [`ErrorKind::Unsupported`]: a chunk needs a codec or filter that this build does not have;
/// - [`ErrorKind::TooLarge`]: the result takes more memory than [`OpenOptions::max_read`] allows;
/// - [`ErrorKind::OutOfMemory`]: there is not enough memory;
/// - [`ErrorKind::Callback`]: a user-defined codec or filter, or a postfilter, fails or panics; or a custom storage
///   backend panics;
/// - [`ErrorKind::Busy`]: another access to the file is running a [user closure](OpenOptions#user-closures), so that
///   the read could deadlock; or another program changed the file without locking it;
/// - [`ErrorKind::NotFound`], only with [`OpenOptions::locking`]: the file was replaced, by a program that locked it;
/// - [`ErrorKind::Unfinished`], only with `locking`: a writer was stopped in the middle of a change.
///
/// To read a small part of a block, the methods decompress the block only as far as necessary. In a damaged chunk, an
/// error that the whole block would reveal may then not be detected, and the items may be wrong.
/// [Checksums](OpenOptions::checksums) are always compared for whole chunks.
///
/// # Errors of changes
/// Each method that changes the super-chunk may fail with
/// - [`ErrorKind::ReadOnly`]: the super-chunk was opened for reading; or it was opened for appending, and the method
///   sets a metalayer, or can change or remove existing data;
/// - [`ErrorKind::Io`]: the file or storage cannot be written;
/// - [`ErrorKind::NotFound`]: the file was replaced or removed after it was opened;
/// - [`ErrorKind::Busy`]: another access to the file is running a [user closure](OpenOptions#user-closures), so that
///   the change could deadlock; or a program or handle changed the file without locking it;
/// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change;
/// - [`ErrorKind::InvalidData`]: the index is invalid, or an earlier change failed and could not be rolled back;
/// - [`ErrorKind::InvalidArgument`], in these cases:
///   - other data, such as a second frame, follows the frame in the file and would be overwritten;
///   - the first chunk would be longer than the chunk size set by [`OpenOptions::chunksize`];
///   - the frame would have more chunks than the format allows (2^28 - 5);
///   - the data ends with an incomplete item, and a filter needs complete items (delta, trunc_prec, int_trunc);
///   - the filter is delta, and the chunk has variable-length blocks;
/// - [`ErrorKind::TooLarge`], in these cases:
///   - there would be more chunks than the [`limits`](OpenOptions::limits) allow;
///   - the default of [`max_read`](OpenOptions::max_read) would not allow to decompress a block: four times the block size
///     exceeds 1 GiB and 256 times the compressed size of the chunk;
///   - another handle has changed the frame, and the metadata of the frame now exceeds the limits;
/// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter that the header of the frame names; or
///   the file was opened with [`OpenOptions::locking`] and has several hard links;
/// - [`ErrorKind::OutOfMemory`]: there is not enough memory;
/// - [`ErrorKind::Callback`]: a user-defined codec, filter or tuner, or a prefilter, fails or panics; or a custom
///   storage backend panics.
///
/// After an error the super-chunk is unchanged. The only exception is a change that could not be rolled back; the error
/// message then says so.
#[doc(alias("blosc2_schunk", "b2frame", "cframe"))]
pub struct SChunk {
    frame: Frame,
    coder: Coder,
    typesize: usize,
    max_read: MaxRead,
}

impl SChunk {
    /// Creates an empty in-memory super-chunk for items of type `T`.
    ///
    /// The typesize is the size of `T`; a typesize in `params` takes precedence.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    #[doc(alias = "blosc2_schunk_new")]
    pub fn in_memory<T: Element>(params: impl Borrow<CParams>) -> Result<Self> {
        OpenOptions::new().cparams(params).typesize(size_of::<T>()).open(Target::memory())
    }

    /// Creates an empty super-chunk for items of type `T` in a new file, or in another [target](Target) that does not
    /// exist.
    ///
    /// The typesize is the size of `T`; a typesize in `params` takes precedence. The file contains a complete frame
    /// after each change. C: `blosc2_schunk_new` with a path. Python: `SChunk(urlpath=...)`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: the target exists or contains data; this function does not change it;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be created;
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn create<T: Element>(
        target: impl Into<Target>,
        params: impl Borrow<CParams>,
    ) -> Result<Self> {
        OpenOptions::new().create_new(true).cparams(params).typesize(size_of::<T>()).open(target)
    }

    /// Opens a file, a directory, the bytes of a frame, or another [target](Target) for reading.
    ///
    /// This function checks the header, the metalayers and the trailer of the frame. Of a frame in memory, it checks the
    /// complete structure ([`Check::Structure`](crate::Check::Structure)). Each chunk is checked when it is read.
    /// [`OpenOptions::check`] selects a deeper [check](crate::Check). C: `blosc2_schunk_open`,
    /// `blosc2_schunk_from_buffer`. Python: `blosc2.open(urlpath, mode="r")`, `schunk_from_cframe`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the target cannot be read;
    /// - [`ErrorKind::InvalidData`]: the target is not a frame, is truncated or is invalid;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change, or is writing the file now;
    /// - [`ErrorKind::TooLarge`]: opening would exceed the default [`limits`](OpenOptions::limits);
    /// - [`ErrorKind::Busy`]: other programs replace the file repeatedly; or a change of the file is running a [user
    ///   closure](OpenOptions#user-closures), so that this call could deadlock.
    #[doc(alias("blosc2_schunk_open", "from_bytes", "from_cframe", "blosc2_schunk_from_buffer"))]
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        OpenOptions::new().open_existing(target.into())
    }

    /// Opens a file, a directory, the bytes of a frame, or another [target](Target) for reading and writing.
    ///
    /// New chunks are compressed with the parameters in the header of the frame.
    ///
    /// Within a program, a file may have one handle that is open for writing, or several such handles if all of them
    /// use [`OpenOptions::locking`]. Other handles may read the file at the same time; their reads return the current
    /// content.
    ///
    /// If a program died in the middle of a change, this function fails with [`ErrorKind::Unfinished`]; see [crash
    /// recovery](OpenOptions#crash-recovery). Python: `blosc2.open(urlpath, mode="a")`.
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open), and with [`ErrorKind::Busy`] if this program already has the file
    /// open for writing.
    pub fn open_rw(target: impl Into<Target>) -> Result<Self> {
        OpenOptions::new().write(true).open_existing(target.into())
    }

    /// Returns a super-chunk with this outline and store, without the claim of a file.
    fn new(state: State, access: Access, dparams: DParams) -> Result<Self> {
        init()?;
        let typesize = state.outline.params().typesize;
        let typesize =
            usize::try_from(typesize).ok().filter(|&size| size > 0).ok_or_else(|| {
                let detail = "its typesize is 0";
                Error::new(ErrorKind::InvalidData, "open a frame", detail)
            })?;
        let (frame, coder) = (Frame::new(state, access), Coder::new(dparams));
        Ok(Self { frame, coder, typesize, max_read: MaxRead::Any })
    }

    /// Creates a super-chunk with checked parameters, these metalayers and this chunk size.
    pub(super) fn with_params(
        params: Resolved,
        store: Box<dyn Store>,
        metalayers: &[(String, Vec<u8>)],
        chunksize: ChunkSize,
        limits: Limits,
    ) -> Result<Self> {
        let doing = "create a super-chunk";
        let mut outline = Outline::new(params.format, store.layout());
        outline.set_dictionary(params.dictionary);
        for (name, content) in metalayers {
            outline.add_metalayer(name, content).doing(doing)?;
        }
        outline.set_chunksize(chunksize).doing(doing)?;
        outline.set_max_chunks(limits.chunks);
        let state = State::new(outline, store, Version::default(), true, limits);
        let mut schunk = Self::new(state, Access::Write, DParams::default())?;
        schunk.coder.start(&schunk.frame, params)?;
        Ok(schunk)
    }

    /// Returns the size of an item in bytes. C and Python: `typesize`.
    pub fn typesize(&self) -> usize {
        self.typesize
    }

    /// Returns the number of chunks. C and Python: `nchunks`.
    pub fn nchunks(&self) -> usize {
        self.last_state().nchunks()
    }

    /// Returns the chunk size: the decompressed size in bytes of every chunk except the last chunk, which may be
    /// shorter. C and Python: `chunksize`.
    ///
    /// Returns 0 if no chunk size is known:
    /// - the super-chunk has variable-length chunks;
    /// - all chunks were deleted;
    /// - there is no chunk yet, and [`OpenOptions::chunksize`] was not set at creation.
    pub fn chunksize(&self) -> usize {
        self.last_state().outline.chunksize().fixed().unwrap_or(0) as usize
    }

    /// Returns the block size in bytes from the header of the frame; `None` if each chunk has its own block size.
    fn blocksize(&self) -> Option<usize> {
        self.last_state().outline.params().blocksize.map(|size| size as usize)
    }

    fn has_variable_chunks(&self) -> bool {
        self.last_state().outline.chunksize() == ChunkSize::Variable
    }

    fn has_variable_blocks(&self) -> bool {
        self.last_state().outline.variable_blocks()
    }

    /// Returns the decompressed size of all chunks in bytes. C and Python: `nbytes`.
    pub fn nbytes(&self) -> u64 {
        self.last_state().outline.nbytes()
    }

    /// Returns the number of complete items in all chunks. Python: `len(schunk)`.
    #[doc(alias = "nitems")]
    pub fn len(&self) -> u64 {
        self.nbytes() / self.typesize as u64
    }

    /// Returns whether the super-chunk contains no data.
    pub fn is_empty(&self) -> bool {
        self.nbytes() == 0
    }

    /// Returns the compressed size of all chunks in bytes. C and Python: `cbytes`.
    ///
    /// In a contiguous frame the size includes gaps: the unused bytes of chunks that were replaced or deleted.
    pub fn cbytes(&self) -> u64 {
        self.last_state().outline.cbytes()
    }

    /// Returns the location of each chunk. C: `blosc2_frame_get_offsets`.
    ///
    /// The meaning of a location depends on the storage:
    /// - contiguous frame: the byte offset of the chunk from the end of the frame header;
    /// - directory: the number in the file name of the chunk;
    /// - in-memory super-chunk that is not a frame: an internal number.
    ///
    /// The location is `None` for a special chunk that is recorded only in the index.
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading).
    pub fn offsets(&self) -> Result<Vec<Option<u64>>> {
        let reading = self.reading()?;
        let (state, doing) = (&reading.state, "read the index");
        // A few bytes can declare very many chunks.
        let count = state.nchunks();
        self.allow((count as u64).saturating_mul(size_of::<Option<u64>>() as u64)).doing(doing)?;
        let mut places = Vec::new();
        reserve(&mut places, count).doing(doing)?;
        for index in 0..count {
            places.push(state.offset(index).doing(doing).map_err(|error| self.at(error))?.place());
        }
        Ok(places)
    }

    /// Returns the path with which the super-chunk was opened or created; `None` if the super-chunk is in memory or in
    /// a custom storage backend.
    pub fn path(&self) -> Option<&Path> {
        self.frame.path()
    }

    /// Returns a summary of the super-chunk: sizes, parameters, format and limits. Reads no chunk. Python: `SChunk.info`.
    #[doc(alias(
        "cratio",
        "cparams",
        "dparams",
        "blosc2_schunk_get_cparams",
        "blosc2_schunk_get_dparams"
    ))]
    pub fn info(&self) -> SChunkInfo {
        let (nbytes, cbytes) = (self.nbytes(), self.cbytes());
        let state = self.last_state();
        let contiguous = state.store.is_contiguous();
        SChunkInfo {
            typesize: self.typesize(),
            chunksize: self.chunksize(),
            blocksize: self.blocksize(),
            nbytes,
            cbytes,
            cratio: if cbytes == 0 { 0.0 } else { nbytes as f64 / cbytes as f64 },
            nchunks: self.nchunks(),
            has_variable_chunks: self.has_variable_chunks(),
            has_variable_blocks: self.has_variable_blocks(),
            has_checksums: state.outline.has_checksums(),
            contiguous,
            format_version: contiguous.map(|_| state.outline.version()),
            is_array: self.is_array(),
            python_object: self.python_object(),
            is_writable: self.frame.is_writable(),
            cparams: self.cparams().without_closure(),
            dparams: self.dparams().without_closure(),
            limits: state.limits,
        }
    }

    /// Returns the name of the metalayer that marks a Python object; see [`SChunkInfo::python_object`].
    pub(crate) fn python_object(&self) -> Option<&'static str> {
        let state = self.last_state();
        let fixed = state.outline.metalayers().iter();
        let names: Vec<&str> =
            fixed.chain(state.outline.vlmetalayers()).map(|each| each.name.as_str()).collect();
        CARRIERS.into_iter().find(|carrier| names.contains(carrier))
    }

    /// Syncs all changes to disk.
    ///
    /// Without this call, the operating system decides when changes reach the disk. With [`OpenOptions::durable`], each
    /// change is synced automatically.
    ///
    /// # Errors
    /// [`ErrorKind::Io`], or a more specific kind such as [`ErrorKind::OutOfMemory`]: the file cannot be synced.
    pub fn sync(&mut self) -> Result<()> {
        let synced = self.frame.state_mut().store.sync();
        synced.map_err(|error| self.at(Error::of_io("sync a frame", error)))
    }

    /// Returns whether the chunks belong to an array.
    fn is_array(&self) -> bool {
        array_meta(self.last_state().outline.metalayers()).is_some()
    }

    fn check_item<T: Element>(&self) -> Result<(), Reason> {
        let size = size_of::<T>();
        if size == self.typesize || is_byte::<T>() {
            return Ok(());
        }
        let detail = format!("items have {} bytes, {} has {size}", self.typesize, T::dtype());
        Err(self.error(ErrorKind::TypeMismatch, detail))
    }

    /// Returns the revision of a frame in a file, which every change by a handle of this program alters, and with
    /// [locking](crate::OpenOptions::locking) also every change by another program that locks the file. A program that
    /// derives data from a frame compares revisions to detect that these data are outdated.
    ///
    /// If the frame has changed, this method re-reads the metadata, as each read of a chunk does. The revision of a frame
    /// in memory, which only its own handle can change, is always the same.
    ///
    /// # Errors
    /// - [`ErrorKind::Busy`]: another program has changed the file without locking since this handle read it; call
    ///   [`refresh`](Self::refresh). The length, the modification time and the header of the file are compared;
    /// - the errors of [`refresh`](Self::refresh).
    pub fn revision(&self) -> Result<Revision> {
        self.frame.revision()
    }

    /// Re-reads the metadata, so that the changes of other handles and programs are visible. Returns whether the frame
    /// has changed. C: `blosc2_schunk_refresh`. Python: `SChunk.refresh`.
    ///
    /// Each read of a chunk refreshes the handle automatically after a change by another handle of this program. With
    /// [locking](crate::OpenOptions::locking), each read also refreshes the handle after a change by another program
    /// that locks the file. In both cases, `refresh` is needed only to update sizes, counts and metalayers.
    ///
    /// Without locking, `refresh` is needed to read the changes of another program. In a directory (sparse frame), reads
    /// of stored chunks fail with [`ErrorKind::Busy`] after such a change, because the other program may have stored
    /// other chunks under the names of removed chunks. The caller must ensure that the
    /// other program is not writing at the same time. In two cases `refresh` returns `false` although the frame has
    /// changed and reads return the new data:
    /// - a chunk was overwritten at its old offset, and the length of the frame has not changed;
    /// - the frame has more than about 100,000 chunks, the chunks were reordered, and the part of the index that this
    ///   handle has read is unchanged.
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open). After an error the handle is unchanged.
    pub fn refresh(&mut self) -> Result<bool> {
        let changed = self.frame.refresh()?;
        self.forget();
        Ok(changed)
    }

    /// Calls `work` and holds the lock of the file during the call. No other handle can read or change the file until
    /// `work` returns. C: `blosc2_schunk_lock`. Python: `holding_lock`.
    ///
    /// The handle must be open with [`OpenOptions::locking`](crate::OpenOptions::locking). Without this option, the
    /// method only calls `work` and holds no lock.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("counter.b2frame");
    /// use blosc2::OpenOptions;
    ///
    /// let options = OpenOptions::new().create(true).locking(true).typesize(8);
    /// let mut counter = options.open(path)?;
    /// counter.append(&[0u64])?;
    /// counter.locked(|counter| {
    ///     let [count] = counter.decompress_chunk::<u64>(0)?[..] else { unreachable!() };
    ///     counter.replace(0, &[count + 1])
    /// })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// If `work` fails or panics, the changes that it has completed are not rolled back.
    /// [`transaction`](Self::transaction) also holds the lock, and rolls these changes back.
    ///
    /// Within `work`, calls on another handle of the same file fail with [`ErrorKind::Busy`]. On other threads, reads
    /// and changes with other handles wait until `work` returns. They fail with `Busy` if `work` does not use its
    /// handle for about 0.7 seconds.
    ///
    /// # Errors
    /// Fails with the errors of `work`, and with
    /// - [`ErrorKind::Io`]: the file cannot be locked;
    /// - [`ErrorKind::Busy`]: another access to the file is running a [user closure](crate::OpenOptions#user-closures),
    ///   so that this call could deadlock;
    /// - [`ErrorKind::NotFound`]: the file was replaced or removed;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change.
    #[doc(alias("blosc2_schunk_lock", "holding_lock"))]
    pub fn locked<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        self.with_lock(|schunk| {
            let gate = schunk.gate().filter(|gate| gate.is_locking());
            let _calling = gate.as_ref().map(|gate| gate.calling());
            work(schunk)
        })
    }

    /// Like [`locked`](Self::locked), for work of this crate that does not wait for other threads.
    pub(super) fn with_lock<R, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<R, E>,
    ) -> Result<R, E> {
        Self::with_lock_for(self, |schunk| schunk, work)
    }

    /// Like [`with_lock`](Self::with_lock), for the owner of a super-chunk.
    pub(super) fn with_lock_for<O, R, E: From<Error>>(
        owner: &mut O,
        schunk: impl Fn(&mut O) -> &mut Self,
        work: impl FnOnce(&mut O) -> Result<R, E>,
    ) -> Result<R, E> {
        let own = schunk(owner);
        // A clone, because `work` may replace the super-chunk.
        let Some(gate) = own.gate().filter(|gate| gate.is_locking()) else {
            return work(owner);
        };
        let pass = gate.change().map_err(|error| own.at(error))?;
        if pass.is_part() {
            return work(owner);
        }
        let (kept, is_changed) = own.frame.hold(&pass)?;
        if is_changed {
            own.forget();
        }
        let result = panic::catch_unwind(AssertUnwindSafe(|| work(owner)));
        drop(kept);
        drop(pass);
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    /// Sets whether an array spreads its work over the threads, so that each chunk is decompressed by one.
    pub(crate) fn set_of_array(&mut self, is_of_array: bool) {
        self.coder.set_of_array(is_of_array);
    }

    pub(crate) fn dparams(&self) -> &DParams {
        self.coder.dparams()
    }

    /// Sets the decompression parameters for all subsequent reads, including the
    /// [postfilter](DParams::postfilter). Python: `SChunk.dparams = ...`, and the decorator `SChunk.postfilter`.
    ///
    /// To change one parameter, start from the current parameters: `schunk.info().dparams.threads(4)`. These have no
    /// postfilter.
    pub fn set_dparams(&mut self, params: impl Borrow<DParams>) {
        self.coder.set_dparams(params.borrow().clone());
    }

    /// Sets the compression parameters of new chunks, including the [prefilter](CParams::prefilter). The header of the
    /// frame does not change. Python: `SChunk.cparams = ...`, and the decorators `SChunk.prefilter` and `SChunk.filler`.
    ///
    /// To change one parameter, start from the current parameters: `schunk.info().cparams.level(9)`. These have no
    /// prefilter.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, ChunkBlock};
    /// use blosc2::{CParams, SChunk};
    ///
    /// /// Fills the super-chunk with the square roots of the indices of its items.
    /// fn roots(block: &mut ChunkBlock<'_>) -> Result<(), BoxError> {
    ///     let start = block.schunk_offset().ok_or("not of a super-chunk")? / 8;
    ///     for (item, number) in block.output_as::<f64>()?.iter_mut().zip(start..) {
    ///         *item = (number as f64).sqrt();
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let mut schunk = SChunk::in_memory::<f64>(CParams::new().blocksize(4000).prefilter(roots))?;
    /// for _ in 0..3 {
    ///     schunk.append(&[0.0f64; 1000])?;
    /// }
    /// schunk.set_cparams(schunk.info().cparams)?; // removes the prefilter
    /// assert_eq!(schunk.read::<f64>(2500..2501)?, [50.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid, changes the typesize, or changes the block size of an
    ///   array;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn set_cparams(&mut self, params: impl Borrow<CParams>) -> Result<()> {
        let params = params.borrow();
        if params.typesize.is_some_and(|asked| asked != self.typesize) {
            let (doing, size) = ("set the compression parameters", self.typesize);
            let detail = format!("items have {size} bytes");
            return Err(self.error(ErrorKind::InvalidArgument, detail).doing(doing));
        }
        self.coder.set_cparams(&self.frame, params)
    }

    pub(crate) fn cparams(&self) -> CParams {
        self.coder.cparams(&self.frame)
    }

    /// Returns whether a prefilter or a postfilter is set. The data of a chunk then differs from the compressed data.
    pub(super) fn is_filtered(&self) -> bool {
        self.coder.has_prefilter() || self.coder.has_postfilter()
    }

    /// Creates an encoder for an array with blocks of `blocksize` bytes and this number of threads.
    pub(super) fn array_encoder(&self, blocksize: usize, threads: Threads) -> Result<Encoder> {
        self.coder.new_encoder(&self.frame, Some((blocksize, threads)))
    }

    /// Returns the number of threads that compress.
    pub(super) fn encoding_threads(&self) -> Threads {
        self.coder.encoding_threads()
    }

    /// Returns the state that this handle has read last. May be called within a read.
    fn last_state(&self) -> StateRef<'_> {
        self.frame.last_state()
    }

    /// Returns the current state, which does not change until the result is dropped. Must not be called within another
    /// read.
    #[inline]
    pub(super) fn reading(&self) -> Result<Reading<'_>> {
        self.frame.reading()
    }

    /// Returns the claim of the file.
    pub(super) fn gate(&self) -> Option<Arc<Gate>> {
        self.frame.gate().cloned()
    }

    /// Marks that a user closure runs during a read or a change of the file, until the guard is dropped.
    pub(super) fn calling(&self) -> Option<Calling<'_>> {
        self.frame.calling()
    }

    pub(super) fn check_change(&self, needed: Access) -> Result<(), Reason> {
        self.frame.check_change(needed)
    }

    /// Drops all fields that were derived from the outline.
    fn forget(&mut self) {
        self.frame.forget();
        self.coder.forget();
    }

    pub(super) fn error(&self, kind: ErrorKind, detail: impl ToString) -> Reason {
        self.frame.error(kind, detail)
    }

    pub(super) fn at<E: AnyError>(&self, error: E) -> E {
        self.frame.at(error)
    }
}

impl fmt::Debug for SChunk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("SChunk");
        if let Some(path) = self.path() {
            fields.field("path", &path);
        }
        fields.field("typesize", &self.typesize).field("nchunks", &self.nchunks());
        fields.field("nbytes", &self.nbytes()).field("cbytes", &self.cbytes());
        fields.finish_non_exhaustive()
    }
}

/// The names of the metalayers with which Python marks super-chunks that store other objects.
const CARRIERS: [&str; 3] = ["LazyArray", "b2o", "proxy-source"];

/// Returns the content of the metalayer with the shape of an array.
fn array_meta(metalayers: &[Metalayer]) -> Option<&[u8]> {
    array_layer(metalayers).map(|layer| &layer.content[..])
}

fn array_layer(metalayers: &[Metalayer]) -> Option<&Metalayer> {
    [NAME, OLD_NAME].into_iter().find_map(|name| metalayers.iter().find(|each| each.name == name))
}
