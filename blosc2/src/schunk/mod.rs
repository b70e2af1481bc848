//! Super-chunks: sequences of compressed chunks with metadata, in memory, in files or in custom storage backends.

mod change;
mod checksums;
mod content;
mod encoding;
mod fetch;
pub(crate) mod files;
mod info;
mod items;
mod limits;
mod metalayers;
#[cfg(feature = "msgpack")]
mod msgpack;
mod options;
mod read;
mod repair;
mod search_indexes;
mod sharing;
mod store;
mod transaction;
#[cfg(feature = "msgpack")]
mod values;
pub(crate) mod verdict;
mod whole;

use std::borrow::Borrow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2_format::Limits;
use blosc2_format::b2nd::{NAME, OLD_NAME};
use blosc2_format::frame::{ChunkSize, Metalayer, Outline};
use parking_lot::{Mutex, RwLock};

use crate::array_shape::ArrayShape;
use crate::closures::ChunkFilter;
use crate::decoder::Decoder;
use crate::element::{Element, is_byte};
use crate::encoder::Encoder;
use crate::gate::{Claim, Gate, Version, has_lock};
use crate::init::init;
use crate::memory::reserve;
use crate::params::Resolved;
use crate::{CParams, DParams, Error, ErrorKind, Result};

use limits::MaxRead;
pub(crate) use limits::check_readable;
pub use limits::default_max_read;
use store::State;

pub(crate) use fetch::{Fetched, Wanted, Window, fetch_ahead};
pub use files::{create_file, temporary_prefix};
#[cfg(feature = "msgpack")]
pub(crate) use msgpack::to_content;
pub(crate) use options::new_store;
pub(crate) use sharing::Reading;
pub use sharing::Revision;
pub(crate) use store::{Memory, Store};

pub use content::{SChunkReader, SChunkWriter};
pub use info::SChunkInfo;
pub(crate) use info::write_storage;
pub use items::Items;
pub(crate) use metalayers::Content;
pub use metalayers::{Metalayers, MetalayersMut};
pub use options::OpenOptions;
pub use read::{ChunkInfo, Chunks, LazyChunk};
pub use repair::{Rebuilt, Repaired, repair, repair_to};
pub use whole::SaveOptions;

/// A super-chunk: a sequence of compressed chunks with metadata, in memory, in a file, in a directory or in a custom
/// storage backend. C: `blosc2_schunk`. Python: `SChunk`.
///
/// Usually all chunks have the same size, and only the last chunk may be shorter. A super-chunk may also have
/// variable-length chunks. In both cases [`items`](Self::items) reads items across chunk boundaries. The metadata
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
/// assert_eq!(schunk.items::<i32>(1..4)?, [2, 3, 4]);
/// schunk.vlmeta_mut().set("author", b"me")?;
///
/// let bytes = schunk.to_cframe()?; // the bytes of a file with this content
/// let copy = SChunk::from_cframe(bytes)?;
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
    /// The claim of the file of the super-chunk. Dropped before the other fields: no other file can get the identity of
    /// the file while the file is open.
    gate: Option<Arc<Gate>>,
    state: RwLock<State>,
    typesize: usize,
    /// Created when it is first needed.
    encoder: Option<Mutex<Encoder>>,
    /// The compression parameters of new chunks, if they differ from the parameters in the header.
    encoding: Option<CParams>,
    /// In boxes, because a worker is taken and returned for each read.
    #[allow(clippy::vec_box)]
    workers: Mutex<Vec<Box<Worker>>>,
    dparams: DParams,
    prefilter: Option<Arc<ChunkFilter>>,
    postfilter: Option<Arc<ChunkFilter>>,
    shape: Mutex<Option<Arc<ArrayShape>>>,
    access: Access,
    /// The path of the file or directory, as it was passed when it was opened.
    path: Option<PathBuf>,
    max_read: MaxRead,
    /// The byte offsets of the chunks in the decompressed data, for variable-length chunks.
    starts: RwLock<Option<Arc<Vec<u64>>>>,
    /// Set after a failed change that could not be rolled back: the state of the stored data is unknown.
    broken: bool,
}

/// The changes that a handle allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Append,
    Write,
}

impl Access {
    /// The claim of a file that this access needs.
    fn claim(self, locking: bool) -> Claim {
        match (self, locking) {
            (Self::Read, _) => Claim::Read,
            (_, false) => Claim::Write,
            (_, true) => Claim::WriteLocked,
        }
    }
}

/// The decoder and the buffer with which one thread reads chunks.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) decoder: Decoder,
    /// The compressed chunk.
    buffer: Vec<u8>,
}

/// The layout and the format version of a frame (the stored form of a super-chunk). Returned by
/// [`SChunk::file_format`].
///
/// ```
/// use blosc2::{CParams, SChunk};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("numbers.b2frame");
/// let schunk = SChunk::create::<u64>(&path, &CParams::default())?;
/// assert!(schunk.file_format().unwrap().contiguous);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFormat {
    /// The version of the frame format.
    pub version: u8,
    /// `true` for a contiguous frame (one file or buffer), `false` for a sparse frame (a directory with one file for
    /// each chunk).
    pub contiguous: bool,
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
        OpenOptions::new().cparams(params).typesize(size_of::<T>()).in_memory()
    }

    /// Creates an empty super-chunk in a new contiguous file for items of type `T`.
    ///
    /// The typesize is the size of `T`; a typesize in `params` takes precedence. The file contains a complete frame
    /// after each change. C: `blosc2_schunk_new` with a path. Python: `SChunk(urlpath=...)`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: a file or directory already exists at `path`; this function does not change it;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be created;
    /// - [`ErrorKind::InvalidArgument`]: a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter.
    pub fn create<T: Element>(
        path: impl AsRef<Path>,
        params: impl Borrow<CParams>,
    ) -> Result<Self> {
        OpenOptions::new().create_new(true).cparams(params).typesize(size_of::<T>()).open(path)
    }

    /// Opens a file or a directory for reading.
    ///
    /// This function checks the header, the metalayers and the trailer of the frame. Each chunk is checked when it is
    /// read. [`OpenOptions::check`] selects a deeper [check](crate::Check). Python: `blosc2.open(urlpath, mode="r")`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be read;
    /// - [`ErrorKind::InvalidData`]: the file is not a frame, is truncated or is invalid;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change, or is writing the file now;
    /// - [`ErrorKind::TooLarge`]: opening would exceed the default [`limits`](OpenOptions::limits);
    /// - [`ErrorKind::Busy`]: other programs replace the file repeatedly; or a change of the file is running a [user
    ///   closure](OpenOptions#user-closures), so that this call could deadlock.
    #[doc(alias = "blosc2_schunk_open")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a file or a directory for reading and writing.
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
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().write(true).open(path)
    }

    /// Opens an in-memory contiguous frame, without a copy of the bytes.
    ///
    /// This function checks the complete structure of the frame ([`Check::Structure`](crate::Check::Structure)) and
    /// decompresses no chunk. The super-chunk is read-only.
    ///
    /// [`OpenOptions::from_cframe`] opens the frame with other options, for example for writing.
    /// [`OpenOptions::from_owner`] opens shared memory, [`OpenOptions::with_borrowed`] borrowed memory. C:
    /// `blosc2_schunk_from_buffer`. Python: `schunk_from_cframe`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the bytes are not a frame, are truncated or are invalid;
    /// - [`ErrorKind::Unfinished`]: a writer was stopped in the middle of a change;
    /// - [`ErrorKind::TooLarge`]: opening would exceed the default [`limits`](OpenOptions::limits).
    #[doc(alias("from_bytes", "schunk_from_cframe", "blosc2_schunk_from_buffer"))]
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        OpenOptions::new().from_cframe(bytes)
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
        Ok(Self {
            state: RwLock::new(state),
            typesize,
            encoder: None,
            encoding: None,
            workers: Mutex::default(),
            dparams,
            prefilter: None,
            postfilter: None,
            shape: Mutex::new(None),
            access,
            path: None,
            gate: None,
            max_read: MaxRead::Any,
            starts: RwLock::new(None),
            broken: false,
        })
    }

    /// Creates a super-chunk with checked parameters, these metalayers and this chunk size.
    pub(crate) fn with_params(
        params: Resolved,
        store: Box<dyn Store>,
        metalayers: &[(String, Vec<u8>)],
        chunksize: ChunkSize,
        limits: Limits,
    ) -> Result<Self> {
        let doing = "create a super-chunk";
        let failed = |error| Error::from_frame(doing, error);
        let mut outline = Outline::new(params.format, store.layout());
        outline.set_dictionary(params.dictionary);
        for (name, content) in metalayers {
            outline.add_metalayer(name, content).map_err(failed)?;
        }
        outline.set_chunksize(chunksize).map_err(failed)?;
        outline.set_max_chunks(limits.chunks);
        let state = State::new(outline, store, Version::default(), true, limits);
        let mut schunk = Self::new(state, Access::Write, DParams::default())?;
        schunk.encoder = Some(Mutex::new(Encoder::with_shape(params, Some(schunk.shape()?))?));
        Ok(schunk)
    }

    /// Returns the size of an item in bytes. C and Python: `typesize`.
    pub fn typesize(&self) -> usize {
        self.typesize
    }

    /// Returns the number of chunks. C and Python: `nchunks`.
    pub fn nchunks(&self) -> usize {
        self.look().nchunks()
    }

    /// Returns the chunk size: the decompressed size in bytes of every chunk except the last chunk, which may be
    /// shorter. C and Python: `chunksize`.
    ///
    /// Returns 0 if no chunk size is known:
    /// - the super-chunk has variable-length chunks;
    /// - all chunks were deleted;
    /// - there is no chunk yet, and [`OpenOptions::chunksize`] was not set at creation.
    pub fn chunksize(&self) -> usize {
        self.look().outline.chunksize().fixed().unwrap_or(0) as usize
    }

    /// Returns the block size in bytes from the header of the frame; `None` if each chunk has its own block size. C and
    /// Python: `blocksize`.
    pub fn blocksize(&self) -> Option<usize> {
        self.look().outline.params().blocksize.map(|size| size as usize)
    }

    /// Returns whether the super-chunk has variable-length chunks: chunks of different decompressed sizes.
    pub fn has_variable_chunks(&self) -> bool {
        self.look().outline.chunksize() == ChunkSize::Variable
    }

    /// Returns whether the chunks have variable-length blocks; see [`append_blocks`](Self::append_blocks).
    pub fn has_variable_blocks(&self) -> bool {
        self.look().outline.variable_blocks()
    }

    /// Returns the decompressed size of all chunks in bytes. C and Python: `nbytes`.
    pub fn nbytes(&self) -> u64 {
        self.look().outline.nbytes()
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
        self.look().outline.cbytes()
    }

    /// Returns the compression ratio: decompressed bytes divided by compressed bytes. Python: `cratio`.
    ///
    /// Returns 0 if there are no compressed bytes: there are no chunks, or all chunks are special chunks that are
    /// recorded only in the index (zeros, NaN, uninitialized).
    pub fn cratio(&self) -> f64 {
        match self.cbytes() {
            0 => 0.0,
            cbytes => self.nbytes() as f64 / cbytes as f64,
        }
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
        self.allow(doing, (count as u64).saturating_mul(size_of::<Option<u64>>() as u64))?;
        let mut places = Vec::new();
        reserve(&mut places, count, doing)?;
        for index in 0..count {
            places.push(state.offset(index, doing).map_err(|error| self.at(error))?.place());
        }
        Ok(places)
    }

    /// Returns the path with which the super-chunk was opened or created; `None` if the super-chunk is in memory or in
    /// a custom storage backend.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the layout and the format version of the frame, or `None` for an in-memory super-chunk that is not a
    /// frame.
    pub fn file_format(&self) -> Option<FileFormat> {
        let state = self.look();
        let contiguous = state.store.is_contiguous()?;
        Some(FileFormat { version: state.outline.version(), contiguous })
    }

    /// Returns whether the super-chunk is open for writing. Returns `false` if it was opened for reading or for
    /// appending.
    pub fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// Returns which kind of Python object the super-chunk stores; `None` for plain data.
    ///
    /// Python also stores references, lazy expressions and proxies as super-chunks. Their chunks contain no data or
    /// only a part of the data. A metalayer marks such a super-chunk. This method returns the name of the metalayer:
    /// - `b2o`: a computation, or a reference to an array that is stored elsewhere;
    /// - `LazyArray`: a computation, written by an older version of Python's blosc2;
    /// - `proxy-source`: a proxy, which caches chunks of an array that is stored elsewhere.
    pub fn python_object(&self) -> Option<&'static str> {
        let state = self.look();
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
        let synced = self.state.get_mut().store.sync();
        synced.map_err(|error| self.at(Error::of_io("sync a frame", error)))
    }

    /// Returns whether the chunks belong to an array.
    ///
    /// The super-chunk of an array has a metalayer `b2nd` with the shape of the array. Older versions named this
    /// metalayer `caterva`. [`NDArray::from_schunk`](crate::NDArray::from_schunk) opens the array.
    pub fn is_array(&self) -> bool {
        array_meta(self.look().outline.metalayers()).is_some()
    }

    fn check_item<T: Element>(&self, doing: &str) -> Result<()> {
        let size = size_of::<T>();
        if size == self.typesize || is_byte::<T>() {
            return Ok(());
        }
        let detail = format!("items have {} bytes, {} has {size}", self.typesize, T::dtype());
        Err(self.error(ErrorKind::TypeMismatch, doing, detail))
    }

    pub(crate) fn error(&self, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
        self.at(Error::new(kind, doing, detail))
    }

    pub(crate) fn at(&self, error: Error) -> Error {
        let Some(path) = self.path() else { return error };
        match &self.gate {
            Some(gate) if gate.is_locking() => error.at(path),
            _ => error.not_locked(|| has_lock(path, path.is_dir())).at(path),
        }
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

/// Returns the metalayer with the shape of an array.
fn array_layer(metalayers: &[Metalayer]) -> Option<&Metalayer> {
    [NAME, OLD_NAME].into_iter().find_map(|name| metalayers.iter().find(|each| each.name == name))
}
