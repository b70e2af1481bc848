//! Super-chunks: any number of chunks, with metadata, in memory, in a file or elsewhere.
//!
//! ```
//! use blosc2::{CParams, SChunk};
//!
//! let mut schunk = SChunk::in_memory::<i32>(&CParams::default())?;
//! schunk.append(&[1i32, 2, 3])?;
//! schunk.append(&[4i32, 5])?;
//! assert_eq!(schunk.items::<i32>(1..4)?, [2, 3, 4]);
//! schunk.vlmeta_mut().set("author", b"me")?;
//!
//! let bytes = schunk.to_cframe()?; // what a file would hold
//! let again = SChunk::from_cframe(bytes)?;
//! assert_eq!(again.decompress_chunk::<i32>(1)?, [4, 5]);
//! # Ok::<(), blosc2::Error>(())
//! ```

mod change;
mod content;
mod encoding;
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
mod sharing;
mod store;
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
use crate::params::Resolved;
use crate::{CParams, DParams, Error, ErrorKind, Result};

use limits::MaxRead;
use store::State;

#[cfg(feature = "msgpack")]
pub(crate) use msgpack::to_content;
pub(crate) use options::new_store;
pub(crate) use sharing::Reading;
pub(crate) use store::{Memory, Store};

pub use content::{SChunkReader, SChunkWriter};
pub use info::SChunkInfo;
pub(crate) use info::write_storage;
pub use items::Items;
pub use metalayers::{Metalayers, MetalayersMut};
pub use options::OpenOptions;
pub use read::{ChunkInfo, Chunks, LazyChunk};
pub use repair::{Rebuilt, Repaired, repair, repair_to};
pub use whole::SaveOptions;

/// A sequence of compressed chunks, with metalayers. C's `blosc2_schunk`, Python's `SChunk`.
///
/// Most super-chunks have chunks of the same number of bytes, but for a shorter last one; others have
/// chunks of any sizes. Items may be read across chunks in either case.
///
/// Reading takes `&self` and may happen on many threads at once; each has a context of its own for the
/// decompression. Changing takes `&mut self`. Each change is complete when it returns: what is in a file
/// is a frame again. A change that fails leaves everything as it was.
///
/// [`OpenOptions`] has all the ways to make and to open one; the functions here are the usual ones.
#[doc(alias("blosc2_schunk", "b2frame", "cframe"))]
pub struct SChunk {
    /// Its access to the file that it is in. Dropped first: while the file is open, no other one has its identity.
    gate: Option<Arc<Gate>>,
    state: RwLock<State>,
    typesize: usize,
    /// Made when it is needed first.
    encoder: Option<Mutex<Encoder>>,
    /// How new chunks are compressed, where that is not what the header says.
    encoding: Option<CParams>,
    workers: Mutex<Vec<Worker>>,
    dparams: DParams,
    prefilter: Option<Arc<ChunkFilter>>,
    postfilter: Option<Arc<ChunkFilter>>,
    shape: Mutex<Option<Arc<ArrayShape>>>,
    access: Access,
    /// The file or directory that it was opened from, as it was given.
    path: Option<PathBuf>,
    max_read: MaxRead,
    /// Where chunks start, in bytes of their data, where they have different sizes.
    starts: RwLock<Option<Arc<Vec<u64>>>>,
    /// Set by a failure that left what is stored in an unknown state.
    broken: bool,
}

/// What may be done with a super-chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Append,
    Write,
}

impl Access {
    /// What it claims of a file.
    fn claim(self, locking: bool) -> Claim {
        match (self, locking) {
            (Self::Read, _) => Claim::Read,
            (_, false) => Claim::Write,
            (_, true) => Claim::WriteLocked,
        }
    }
}

/// What a thread reads chunks with.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) decoder: Decoder,
    /// The compressed chunk.
    buffer: Vec<u8>,
}

/// How a file stores its chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileFormat {
    /// Version of the frame format.
    pub version: u8,
    /// Whether all is in one file, rather than in a directory.
    pub contiguous: bool,
}

impl SChunk {
    /// Makes an empty super-chunk in memory, for items of type `T`.
    ///
    /// The typesize is that of `T` unless `params` has one.
    ///
    /// # Errors
    /// A parameter out of range, or a codec or filter that this build does not have.
    #[doc(alias = "blosc2_schunk_new")]
    pub fn in_memory<T: Element>(params: impl Borrow<CParams>) -> Result<Self> {
        OpenOptions::new().cparams(params).typesize(size_of::<T>()).in_memory()
    }

    /// Makes an empty super-chunk in a new contiguous file, for items of type `T`.
    ///
    /// The file is complete after each change. C's `blosc2_schunk_new` with a path.
    ///
    /// # Errors
    /// - As for [`in_memory`](Self::in_memory);
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made.
    pub fn create<T: Element>(
        path: impl AsRef<Path>,
        params: impl Borrow<CParams>,
    ) -> Result<Self> {
        OpenOptions::new().create_new(true).cparams(params).typesize(size_of::<T>()).open(path)
    }

    /// Opens a file or a directory for reading.
    ///
    /// What is around the chunks is checked now, each chunk when it is read first; see [`Check`](crate::Check).
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read;
    /// - [`ErrorKind::InvalidData`]: it is no frame, was cut short, or is broken;
    /// - [`ErrorKind::Unfinished`]: its writer was stopped, or is writing it.
    #[doc(alias = "blosc2_schunk_open")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().open(path)
    }

    /// Opens a file or a directory for reading and changing.
    ///
    /// New chunks are compressed as the file says. Only one handle of a program may write to a file,
    /// unless they lock it ([`OpenOptions::locking`]). Others may read it meanwhile, and see each
    /// change. A program that dies in the middle of a change leaves a file that this does not open; see
    /// [`OpenOptions`](OpenOptions#after-the-death-of-a-writer).
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] where there is such a handle; as for [`open`](Self::open).
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        OpenOptions::new().write(true).open(path)
    }

    /// Takes a frame in memory, without a copy.
    ///
    /// All of its structure is checked: header, metalayers, index, trailer, and the headers of all
    /// chunks. To choose another check, or to change the frame, see [`OpenOptions::from_cframe`]; for memory that is shared
    /// or borrowed, [`OpenOptions::from_owner`] and [`OpenOptions::with_borrowed`]. C's `blosc2_schunk_from_buffer`,
    /// Python's `schunk_from_cframe`.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it is no frame, was cut short, or is broken.
    #[doc(alias("from_bytes", "schunk_from_cframe", "blosc2_schunk_from_buffer"))]
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        OpenOptions::new().from_cframe(bytes)
    }

    /// A super-chunk of this outline and store, which nobody else knows yet.
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

    /// A new super-chunk for parameters that were checked, with these metalayers, and chunks of this
    /// size.
    pub(crate) fn with_params(
        params: Resolved,
        store: Box<dyn Store>,
        metalayers: &[(String, Vec<u8>)],
        chunksize: ChunkSize,
    ) -> Result<Self> {
        let doing = "make a super-chunk";
        let failed = |error| Error::from_frame(doing, error);
        let mut outline = Outline::new(params.to_format(), store.layout());
        outline.set_dictionary(params.c.use_dict != 0);
        for (name, content) in metalayers {
            outline.add_metalayer(name, content).map_err(failed)?;
        }
        outline.set_chunksize(chunksize).map_err(failed)?;
        let (version, limits) = (Version::default(), Limits::default());
        let state = State { outline, store, version, unfinished: true, limits };
        let mut schunk = Self::new(state, Access::Write, DParams::default())?;
        schunk.encoder = Some(Mutex::new(Encoder::with_shape(params, Some(schunk.shape()?))?));
        Ok(schunk)
    }

    /// Bytes of an item.
    pub fn typesize(&self) -> usize {
        self.typesize
    }

    /// Number of chunks.
    pub fn nchunks(&self) -> usize {
        self.look().nchunks()
    }

    /// Bytes of every chunk but a shorter last one; 0 when there is none yet, or where they differ.
    pub fn chunksize(&self) -> usize {
        self.look().outline.chunksize().fixed().unwrap_or(0) as usize
    }

    /// Bytes of a block, as the header says; `None` where each chunk has what fits it.
    pub fn blocksize(&self) -> Option<usize> {
        self.look().outline.params().blocksize.map(|size| size as usize)
    }

    /// Whether chunks have different sizes.
    pub fn has_variable_chunks(&self) -> bool {
        self.look().outline.chunksize() == ChunkSize::Variable
    }

    /// Whether the blocks of each chunk have different sizes; see [`append_blocks`](Self::append_blocks).
    pub fn has_variable_blocks(&self) -> bool {
        self.look().outline.variable_blocks()
    }

    /// Bytes of all chunks when decompressed.
    pub fn nbytes(&self) -> u64 {
        self.look().outline.nbytes()
    }

    /// Number of items in all chunks; the last bytes that are no whole item are left out.
    #[doc(alias = "nitems")]
    pub fn len(&self) -> u64 {
        self.nbytes() / self.typesize as u64
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.nbytes() == 0
    }

    /// Bytes of all chunks when compressed; in a contiguous frame with the gaps that changes left.
    pub fn cbytes(&self) -> u64 {
        self.look().outline.cbytes()
    }

    /// How many bytes one byte of the compressed chunks stands for. Python's `cratio`.
    ///
    /// 0 where there is no compressed byte: for no chunks, and for special values only.
    pub fn cratio(&self) -> f64 {
        match self.cbytes() {
            0 => 0.0,
            cbytes => self.nbytes() as f64 / cbytes as f64,
        }
    }

    /// Where each chunk is: the bytes between the header and the chunk, or the number of its file. `None`
    /// for special values, of which nothing is stored. C's `blosc2_frame_get_offsets`.
    ///
    /// # Errors
    /// As for [`decompress_chunk`](Self::decompress_chunk), about the index.
    pub fn offsets(&self) -> Result<Vec<Option<u64>>> {
        let reading = self.reading()?;
        let state = &reading.state;
        let offsets = (0..state.nchunks()).map(|index| state.offset(index, "read the index"));
        offsets.map(|offset| Ok(offset.map_err(|error| self.at(error))?.place())).collect()
    }

    /// The file or directory, if it is in one.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The layout of the file and the version of its format; `None` in memory of its own.
    pub fn file_format(&self) -> Option<FileFormat> {
        let state = self.look();
        let contiguous = state.store.is_contiguous()?;
        Some(FileFormat { version: state.outline.version(), contiguous })
    }

    /// Whether it was made or opened for changing; not for reading or appending only.
    pub fn is_writable(&self) -> bool {
        self.access == Access::Write
    }

    /// The kind of Python object that the super-chunk stores; `None` for plain data.
    ///
    /// Python stores references, lazy expressions and proxies in super-chunks whose chunks hold no data, or only a
    /// part of it. It marks them by a metalayer, whose name is returned: `LazyArray` (a computation), `b2o` (an object
    /// of another kind), or `proxy-source` (a cache of another source).
    pub fn python_object(&self) -> Option<&'static str> {
        let state = self.look();
        let fixed = state.outline.metalayers().iter();
        let names: Vec<&str> =
            fixed.chain(state.outline.vlmetalayers()).map(|each| each.name.as_str()).collect();
        CARRIERS.into_iter().find(|carrier| names.contains(carrier))
    }

    /// Sees that all changes are on the device. A change does not wait for that by itself.
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the system's own.
    pub fn sync(&mut self) -> Result<()> {
        let synced = self.state.get_mut().store.sync();
        synced.map_err(|error| self.at(Error::of_io("sync a frame", error)))
    }

    /// Whether the chunks are those of an array.
    pub(crate) fn is_array(&self) -> bool {
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

/// Names of metalayers by which Python marks what is no plain data.
const CARRIERS: [&str; 3] = ["LazyArray", "b2o", "proxy-source"];

/// The content of the metalayer with the shape of an array.
fn array_meta(metalayers: &[Metalayer]) -> Option<&[u8]> {
    array_layer(metalayers).map(|layer| &layer.content[..])
}

/// The metalayer with the shape of an array.
fn array_layer(metalayers: &[Metalayer]) -> Option<&Metalayer> {
    [NAME, OLD_NAME].into_iter().find_map(|name| metalayers.iter().find(|each| each.name == name))
}
