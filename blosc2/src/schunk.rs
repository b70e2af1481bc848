//! Super-chunks: any number of chunks in memory or in a file.
//!
//! ```
//! use blosc2::{CParams, SChunk};
//!
//! let mut schunk = SChunk::in_memory::<i32>(&CParams::default())?;
//! schunk.append(&[1i32, 2, 3])?;
//! schunk.append(&[4i32, 5])?;
//! let all: Vec<i32> = schunk.chunks().collect::<blosc2::Result<Vec<_>>>()?.concat();
//! assert_eq!(all, [1, 2, 3, 4, 5]);
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::ops::Deref;
use std::path::Path;
use std::ptr::{self, NonNull};

use blosc2_format::b2nd::{NAME, OLD_NAME};
use blosc2_format::chunk::{Header, MAX_FILTERS, Special};
use blosc2_sys as sys;
use parking_lot::{Mutex, MutexGuard};

use crate::decoder::Decoder;
use crate::decompressor::to_items;
use crate::element::{Element, as_bytes, as_bytes_mut};
use crate::encoder::Encoder;
use crate::init::init;
use crate::memory::Target;
use crate::params::{Purpose, Resolved};
use crate::storage::{self, FrameFile};
use crate::{CParams, ChunkRef, Codec, DParams, Error, ErrorKind, Filter, Result, SplitMode};

/// A sequence of compressed chunks, with metalayers. C's `blosc2_schunk`, Python's `SChunk`.
///
/// All chunks hold the same number of bytes, but for a shorter last one. Reading takes `&self` and
/// may happen on many threads at once: a lock is held while a chunk's bytes are found, and they are
/// decompressed outside it.
#[derive(Debug)]
pub struct SChunk {
    // The contexts look at the super-chunk, so they are dropped before it; the file is given free after.
    compressor: Option<Mutex<Encoder>>,
    /// Where chunks are compressed to before they are appended.
    buffer: Vec<u8>,
    decompressors: Mutex<Vec<Decoder>>,
    dparams: DParams,
    typesize: usize,
    raw: Mutex<Raw>,
    file: Option<FrameFile>,
}

/// The owned C structure.
#[derive(Debug)]
pub(crate) struct Raw(NonNull<sys::blosc2_schunk>);

// SAFETY: C keeps nothing of a super-chunk in thread-local storage. All calls on it are made under
// the lock of `SChunk::raw` or through `&mut SChunk`.
unsafe impl Send for Raw {}

impl Raw {
    pub(crate) fn as_ptr(&self) -> *mut sys::blosc2_schunk {
        self.0.as_ptr()
    }

    /// The fields that C keeps in the structure.
    pub(crate) fn fields(&self) -> &sys::blosc2_schunk {
        // SAFETY: the pointer is of a live super-chunk, and whoever holds this reference keeps
        // others from changing it.
        unsafe { self.0.as_ref() }
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: the pointer came from blosc2_schunk_new or blosc2_schunk_open and is freed once.
        unsafe { sys::blosc2_schunk_free(self.as_ptr()) };
    }
}

impl SChunk {
    /// Makes an empty super-chunk in memory, for items of type `T`.
    ///
    /// The typesize is that of `T` unless `params` has one.
    ///
    /// # Errors
    /// A parameter out of range, or a codec or filter that this build does not have.
    pub fn in_memory<T: Element>(params: &CParams) -> Result<Self> {
        Self::new(&params.resolve(size_of::<T>(), Purpose::Frame)?, None)
    }

    /// Makes an empty super-chunk in a new contiguous file, for items of type `T`.
    ///
    /// The file is complete after each change. C's `blosc2_schunk_new` with a path.
    ///
    /// # Errors
    /// - As for [`in_memory`](Self::in_memory);
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made.
    pub fn create<T: Element>(path: impl AsRef<Path>, params: &CParams) -> Result<Self> {
        let path = path.as_ref();
        let resolved = params.resolve(size_of::<T>(), Purpose::Frame)?;
        storage::create(path, |temporary| Self::new(&resolved, Some(temporary)).map(drop))?;
        let mut schunk = Self::open_rw(path)?;
        schunk.set_compression(resolved)?;
        Ok(schunk)
    }

    /// Opens a file or a directory for reading.
    ///
    /// Other programs must not change it while it is open: C trusts what it has read once.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read;
    /// - [`ErrorKind::InvalidData`]: it is no frame, was cut short, or is broken.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_frame(path.as_ref(), false)
    }

    /// Opens a file or a directory for reading and appending.
    ///
    /// New chunks are compressed as the file says. Only one handle of a program may write to a file.
    /// Others may read it meanwhile; to be sure to see new chunks, they have to be opened after those
    /// were appended.
    ///
    /// # Errors
    /// [`ErrorKind::Busy`] where there is such a handle; as for [`open`](Self::open); and as for
    /// [`in_memory`](Self::in_memory) where this build cannot compress as the file says.
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        let mut schunk = Self::open_frame(path.as_ref(), true)?;
        let params =
            schunk.cparams().resolve(schunk.typesize, Purpose::Array).map_err(|error| {
                let kind = match error.kind() {
                    ErrorKind::InvalidArgument => ErrorKind::InvalidData,
                    kind => kind,
                };
                schunk.error(kind, "open a frame to append to it", error)
            })?;
        schunk.set_compression(params)?;
        Ok(schunk)
    }

    fn open_frame(path: &Path, writable: bool) -> Result<Self> {
        init()?;
        let file = FrameFile::check(path, writable)?;
        if let (false, Some(filter)) = (sys::HARDENED, file.unknown_filter()) {
            let detail = format!("an installed C-Blosc2 opens nothing with {filter}");
            return Err(Error::new(ErrorKind::Unsupported, "open a frame", detail).at(path));
        }
        let raw = open_in_c(&file)?;
        let schunk = Self::from_raw(raw, Some(file), "open a frame")?;
        let (found, expected) = (schunk.typesize, schunk.file_header().map(|head| head.typesize));
        if expected.is_some_and(|expected| expected as usize != found) {
            let detail = "it changed while it was opened";
            return Err(Error::new(ErrorKind::InvalidData, "open a frame", detail).at(path));
        }
        Ok(schunk)
    }

    /// A new super-chunk, in memory or in a contiguous file.
    pub(crate) fn new(params: &Resolved, path: Option<&Path>) -> Result<Self> {
        init()?;
        let c_path = path.map(storage::c_path).transpose()?;
        // C compresses nothing with these.
        let mut cparams = sys::blosc2_cparams { nthreads: 1, ..params.c };
        let mut dparams = sys::blosc2_dparams_defaults();
        let mut settings = sys::blosc2_storage {
            contiguous: path.is_some(),
            urlpath: c_path.as_ref().map_or(ptr::null_mut(), |path| path.as_ptr().cast_mut()),
            cparams: &mut cparams,
            dparams: &mut dparams,
            io: ptr::null_mut(),
        };
        // SAFETY: the settings and what they point to live through the call, and C copies them
        // (schunk.c, get_new_storage). The path is not empty and ends in a NUL byte.
        let raw = unsafe { sys::blosc2_schunk_new(&mut settings) };
        if let (true, Some(path)) = (raw.is_null(), path) {
            let detail = "C-Blosc2 could not write it";
            return Err(Error::new(ErrorKind::Io, "make a frame", detail).at(path));
        }
        let mut schunk = Self::from_raw(raw, None, "make a super-chunk")?;
        schunk.set_compression(params.clone())?;
        Ok(schunk)
    }

    fn from_raw(
        raw: *mut sys::blosc2_schunk,
        file: Option<FrameFile>,
        doing: &str,
    ) -> Result<Self> {
        let failed = |detail: &str| {
            let error = Error::new(ErrorKind::InvalidData, doing, detail);
            match &file {
                Some(file) => error.at(&file.path),
                None => error,
            }
        };
        let Some(raw) = NonNull::new(raw) else {
            return Err(failed("C-Blosc2 finds it broken"));
        };
        let raw = Raw(raw);
        let fields = raw.fields();
        let Some(typesize) = usize::try_from(fields.typesize).ok().filter(|&size| size > 0) else {
            return Err(failed("its typesize is not positive"));
        };
        if fields.nchunks < 0 || fields.nbytes < 0 {
            return Err(failed("its number of chunks or bytes is negative"));
        }
        Ok(Self {
            compressor: None,
            buffer: Vec::new(),
            decompressors: Mutex::default(),
            dparams: DParams::default(),
            typesize,
            file,
            raw: Mutex::new(raw),
        })
    }

    fn set_compression(&mut self, params: Resolved) -> Result<()> {
        let schunk = self.raw_mut().as_ptr();
        // SAFETY: the compressor is dropped before `raw`, being declared first. It is used through
        // `&mut self` only, so nothing else touches the metalayers meanwhile.
        let compressor = unsafe { Encoder::for_schunk(params, schunk)? };
        self.compressor = Some(Mutex::new(compressor));
        Ok(())
    }

    /// Sets how chunks are decompressed from now on.
    pub fn set_dparams(&mut self, params: DParams) {
        self.dparams = params;
        self.decompressors.get_mut().clear();
    }

    /// How the chunks are compressed, as the super-chunk says; a file does not keep the threads.
    pub fn cparams(&self) -> CParams {
        let raw = self.lock();
        let fields = raw.fields();
        let filters = (0..MAX_FILTERS)
            .filter_map(|slot| Filter::from_code(fields.filters[slot], fields.filters_meta[slot]));
        CParams {
            codec: Codec::from_code(fields.compcode),
            codec_meta: fields.compcode_meta,
            level: fields.clevel,
            typesize: Some(self.typesize),
            blocksize: usize::try_from(fields.blocksize).ok().filter(|&size| size > 0),
            split: SplitMode::from_code(fields.splitmode),
            filters: filters.collect(),
            dictionary: fields.use_dict != 0,
            ..CParams::default()
        }
    }

    /// Bytes of an item.
    pub fn typesize(&self) -> usize {
        self.typesize
    }

    /// Number of chunks.
    pub fn nchunks(&self) -> usize {
        // Never negative: checked when opened, and C only counts up.
        usize::try_from(self.lock().fields().nchunks).unwrap_or(0)
    }

    /// Bytes of every chunk but a shorter last one; 0 when there is none yet, or where they differ.
    pub fn chunksize(&self) -> usize {
        usize::try_from(self.lock().fields().chunksize).unwrap_or(0)
    }

    /// Bytes of all chunks when decompressed.
    pub fn nbytes(&self) -> u64 {
        u64::try_from(self.lock().fields().nbytes).unwrap_or(0)
    }

    /// Bytes of all chunks when compressed.
    pub fn cbytes(&self) -> u64 {
        u64::try_from(self.lock().fields().cbytes).unwrap_or(0)
    }

    /// The file or directory, if it is in one.
    pub fn path(&self) -> Option<&Path> {
        self.file.as_ref().map(|file| file.path.as_path())
    }

    /// The header of the file, as it was when opened.
    pub(crate) fn file_header(&self) -> Option<&blosc2_format::frame::Header> {
        self.file.as_ref().map(|file| &file.header)
    }

    /// The layout of the file and the version of its format; `None` in memory.
    pub fn file_format(&self) -> Option<FileFormat> {
        self.file_header().map(|header| FileFormat {
            version: header.version,
            contiguous: header.layout == blosc2_format::frame::Layout::Contiguous,
        })
    }

    /// Compresses items and appends them as one chunk; gives the number of chunks.
    ///
    /// C's `blosc2_schunk_append_buffer`, Python's `append_data`.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: opened for reading;
    /// - [`ErrorKind::TypeMismatch`]: `T` is neither `u8` nor of the typesize;
    /// - [`ErrorKind::InvalidArgument`]: no items, more than in the first chunk, or the last chunk is
    ///   a shorter one already; or the chunks are those of an array, whose shape would not fit any more;
    /// - [`ErrorKind::TooLarge`]: more than [`MAX_CHUNK_LEN`](crate::MAX_CHUNK_LEN) bytes;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    pub fn append<T: Element>(&mut self, items: &[T]) -> Result<usize> {
        let doing = "append a chunk";
        self.check_item::<T>(doing)?;
        if self.file.as_ref().is_some_and(|file| !file.writable) {
            return Err(self.error(ErrorKind::ReadOnly, doing, "it was opened for reading"));
        }
        if self.is_array()? {
            let detail = "its chunks are those of an array, whose shape says how many there are";
            return Err(self.error(ErrorKind::InvalidArgument, doing, detail));
        }
        self.append_bytes(as_bytes(items))
    }

    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) -> Result<usize> {
        let doing = "append a chunk";
        self.check_append(bytes.len())?;
        let Some(compressor) = &mut self.compressor else {
            return Err(self.error(ErrorKind::ReadOnly, doing, "it was opened for reading"));
        };
        let compressor = compressor.get_mut();
        let mut chunk = std::mem::take(&mut self.buffer);
        compressor.compress_to(bytes, &mut chunk)?;
        let nchunks = self.append_chunk(&chunk);
        self.buffer = chunk;
        nchunks
    }

    /// Appends a chunk of our own making.
    pub(crate) fn append_chunk(&mut self, chunk: &[u8]) -> Result<usize> {
        let chunk = ChunkRef::to_decompress(chunk)?;
        self.check_append(chunk.nbytes())?;
        self.push(chunk.header(), chunk.as_bytes())
    }

    /// Appends a chunk, of which this is the header.
    fn push(&mut self, header: &Header, chunk: &[u8]) -> Result<usize> {
        let doing = "append a chunk";
        if !header.extended {
            let detail = "it is a chunk of Blosc1, with a header of 16 bytes";
            return Err(self.error(ErrorKind::Unsupported, doing, detail));
        }
        if header.cbytes as usize != chunk.len() {
            return Err(self.error(ErrorKind::InvalidData, doing, "it is not whole"));
        }
        let raw = self.raw_mut().as_ptr();
        let writing = self.file.as_ref().map(|file| file.claim.writing());
        let before = self.file.as_ref().map(FrameFile::save).transpose()?;
        // SAFETY: the chunk is as long as its header says, and that header is an extended one, whose
        // last byte C reads; C copies the chunk and does not write to it (schunk.c,
        // schunk_append_chunk_unlocked with copy).
        let nchunks =
            unsafe { sys::blosc2_schunk_append_chunk(raw, chunk.as_ptr().cast_mut(), true) };
        if let Ok(nchunks) = usize::try_from(nchunks) {
            return Ok(nchunks);
        }
        let code = i32::try_from(nchunks).unwrap_or(sys::BLOSC2_ERROR_FAILURE);
        let Some(before) = before else {
            return Err(self.at(Error::from_code(doing, code)));
        };
        // C writes over the index before it knows that all can be written.
        let restored = before.restore();
        drop(writing);
        let detail = format!("C-Blosc2 could not write it (code {code})");
        let detail = match restored.and_then(|()| self.reopen()) {
            Ok(()) => detail,
            Err(error) => format!("{detail}, and it could not be put back: {error}"),
        };
        Err(self.error(ErrorKind::Io, doing, detail))
    }

    /// Opens the file anew, as it is now.
    fn reopen(&mut self) -> Result<()> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        // These look at the structure that is replaced.
        self.decompressors.get_mut().clear();
        let params = self.compressor.take().map(|each| each.into_inner().into_params());
        let Some(raw) = NonNull::new(open_in_c(file)?) else {
            return Err(self.error(ErrorKind::InvalidData, "open a frame", "it is broken"));
        };
        *self.raw_mut() = Raw(raw);
        params.map_or(Ok(()), |params| self.set_compression(params))
    }

    /// Whether a chunk of this length may follow.
    fn check_append(&self, len: usize) -> Result<()> {
        let doing = "append a chunk";
        let invalid = |detail: String| self.error(ErrorKind::InvalidArgument, doing, detail);
        if len == 0 {
            return Err(invalid("it has no bytes".to_owned()));
        }
        let (nchunks, nbytes, chunksize) = {
            let raw = self.lock();
            let fields = raw.fields();
            (fields.nchunks, fields.nbytes, i64::from(fields.chunksize))
        };
        if nchunks == 0 {
            return Ok(());
        }
        if chunksize <= 0 {
            let detail = "its chunks have different lengths, to which nothing can be appended yet";
            return Err(self.error(ErrorKind::Unsupported, doing, detail));
        }
        if len as u64 > chunksize as u64 {
            return Err(invalid(format!("chunks have {chunksize} bytes, got {len}")));
        }
        if nbytes != nchunks.saturating_mul(chunksize) {
            let detail = format!("the last chunk has fewer than {chunksize} bytes, so it is final");
            return Err(invalid(detail));
        }
        Ok(())
    }

    /// Decompresses one chunk to items.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: there is no such chunk;
    /// - [`ErrorKind::TypeMismatch`]: `T` is neither `u8` nor of the typesize;
    /// - [`ErrorKind::InvalidData`], [`ErrorKind::Unsupported`]: as for
    ///   [`decompress`](crate::decompress);
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn chunk<T: Element>(&self, index: usize) -> Result<Vec<T>> {
        self.check_item::<T>("read a chunk")?;
        let chunk = self.compressed(index)?;
        let chunk = ChunkRef::to_decompress(&chunk).map_err(|error| self.at(error))?;
        to_items(chunk.nbytes(), |target| {
            self.with_decompressor(&chunk, |each| each.decompress(&chunk, target))
        })
    }

    /// Decompresses one chunk into the caller's items, of which there have to be just as many.
    ///
    /// # Errors
    /// As for [`chunk`](Self::chunk), and [`ErrorKind::InvalidArgument`] where the lengths differ.
    pub fn chunk_into<T: Element>(&self, index: usize, items: &mut [T]) -> Result<()> {
        self.check_item::<T>("read a chunk")?;
        let chunk = self.compressed(index)?;
        let chunk = ChunkRef::to_decompress(&chunk).map_err(|error| self.at(error))?;
        let len = size_of_val(items);
        if chunk.nbytes() != len {
            let detail = format!("chunk {index} has {} bytes, the items {len}", chunk.nbytes());
            return Err(self.error(ErrorKind::InvalidArgument, "read a chunk", detail));
        }
        let target = Target::of(as_bytes_mut(items));
        self.with_decompressor(&chunk, |each| each.decompress(&chunk, target))
    }

    /// All chunks, decompressed one by one.
    pub fn chunks<T: Element>(&self) -> Chunks<'_, T> {
        Chunks { schunk: self, next: 0, end: self.nchunks(), item: std::marker::PhantomData }
    }

    /// Writes everything to a new contiguous file, chunks as they are.
    ///
    /// The file appears when it is complete. C's `blosc2_schunk_to_file`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made;
    /// - [`ErrorKind::Unsupported`]: a chunk without data among chunks of different lengths, which
    ///   the C library cannot read back.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let params = self.unchecked_params();
        storage::create(path.as_ref(), |temporary| {
            let mut target = Self::new(&params, Some(temporary))?;
            target.set_chunksize(self.chunksize());
            self.copy_metalayers_to(&mut target, &[])?;
            for index in 0..self.nchunks() {
                let chunk = self.compressed(index)?;
                self.check_len(index, &chunk)?;
                target.append_verbatim(&chunk)?;
            }
            self.copy_vlmetalayers_to(&mut target)
        })
    }

    /// Sees that a chunk is as long as the super-chunk says, which counts its chunks by that.
    fn check_len(&self, index: usize, chunk: &[u8]) -> Result<()> {
        let doing = "save a super-chunk";
        let header = Header::parse(chunk).map_err(|error| Error::from_format(doing, error))?;
        let (chunksize, nbytes) = (self.chunksize() as u64, self.nbytes());
        if chunksize == 0 || self.file_header().is_some_and(|header| header.variable_chunks) {
            return Ok(());
        }
        let expected = chunksize.min(nbytes.saturating_sub(chunksize.saturating_mul(index as u64)));
        let found = u64::from(header.nbytes);
        if found == expected {
            return Ok(());
        }
        let detail = format!("chunk {index} has {found} bytes, expected {expected}");
        Err(self.error(ErrorKind::InvalidData, doing, detail))
    }

    /// Writes everything to a new contiguous file, compressed anew.
    ///
    /// The block size of an array is kept, since its metalayer says so. To cut an array into other
    /// chunks and blocks, see [`NDArrayBuilder::copy`](crate::NDArrayBuilder::copy).
    ///
    /// # Errors
    /// As for [`save`](Self::save) and for reading chunks; [`ErrorKind::Unsupported`] where chunks or
    /// blocks have different lengths.
    pub fn copy(&self, path: impl AsRef<Path>, params: &CParams) -> Result<()> {
        let doing = "copy a super-chunk";
        let varies = |header: &blosc2_format::frame::Header| {
            header.variable_chunks || header.variable_blocks
        };
        if self.file_header().is_some_and(varies) {
            let detail =
                "its chunks or blocks have different lengths; it can only be saved as it is";
            return Err(self.error(ErrorKind::Unsupported, doing, detail));
        }
        let mut params = params.clone();
        let is_array = self.is_array()?;
        if is_array && params.typesize.is_some_and(|asked| asked != self.typesize) {
            let detail = format!("it holds an array, whose items have {} bytes", self.typesize);
            return Err(self.error(ErrorKind::InvalidArgument, doing, detail));
        }
        if let (true, Some(blocksize)) = (is_array, self.cparams().blocksize) {
            if params.blocksize.is_some_and(|asked| asked != blocksize) {
                let detail = format!("it holds an array, whose blocks have {blocksize} bytes");
                return Err(self.error(ErrorKind::InvalidArgument, doing, detail));
            }
            params.blocksize = Some(blocksize);
        }
        let params = params
            .resolve(self.typesize, if is_array { Purpose::Array } else { Purpose::Frame })?;
        storage::create(path.as_ref(), |temporary| {
            let mut target = Self::new(&params, Some(temporary))?;
            target.set_chunksize(self.chunksize());
            self.copy_metalayers_to(&mut target, &[])?;
            for index in 0..self.nchunks() {
                target.append_bytes(&self.chunk::<u8>(index)?)?;
            }
            self.copy_vlmetalayers_to(&mut target)
        })
    }

    fn is_array(&self) -> Result<bool> {
        Ok(self.meta().get(NAME)?.or(self.meta().get(OLD_NAME)?).is_some())
    }

    /// The parameters in C's form, whether or not this build could compress with them.
    fn unchecked_params(&self) -> Resolved {
        let raw = self.lock();
        let fields = raw.fields();
        let mut c = sys::blosc2_cparams_defaults();
        c.compcode = fields.compcode;
        c.compcode_meta = fields.compcode_meta;
        c.clevel = fields.clevel;
        c.use_dict = fields.use_dict.into();
        c.typesize = fields.typesize;
        c.blocksize = fields.blocksize;
        c.splitmode = fields.splitmode.into();
        c.filters = fields.filters;
        c.filters_meta = fields.filters_meta;
        Resolved { c, filters: Vec::new(), blosc1: false, tuning: None }
    }

    fn append_verbatim(&mut self, chunk: &[u8]) -> Result<()> {
        let doing = "append a chunk";
        let header = Header::parse(chunk).map_err(|error| Error::from_format(doing, error))?;
        if header.nbytes == 0 || header.lazy {
            return Err(self.error(ErrorKind::InvalidData, doing, "a chunk is empty or broken"));
        }
        let fixed = self.chunksize();
        let whole = {
            let raw = self.lock();
            let fields = raw.fields();
            fields.nbytes == fields.nchunks.saturating_mul(fixed as i64)
        };
        let varies = self.nchunks() > 0 && (!whole || header.nbytes as usize > fixed);
        if varies && matches!(header.special, Some(Special::Zeros | Special::Nan | Special::Uninit))
        {
            let detail = "a chunk without data among chunks of different lengths";
            return Err(self.error(ErrorKind::Unsupported, doing, detail));
        }
        self.push(&header, chunk).map(drop)
    }

    /// Says how long chunks will be, which a super-chunk without chunks cannot know.
    pub(crate) fn set_chunksize(&mut self, len: usize) {
        if let Some(len) = i32::try_from(len).ok().filter(|&len| len > 0) {
            // SAFETY: the super-chunk is alive, and `&mut self` excludes other users. C's own array
            // layer sets the field in the same way, before the first chunk (b2nd.c, array_new).
            unsafe { (*self.raw_mut().as_ptr()).chunksize = len };
        }
    }

    /// One chunk as it is stored.
    pub(crate) fn compressed(&self, index: usize) -> Result<CompressedChunk<'_>> {
        let doing = "read a chunk";
        let raw = self.lock();
        let _reading = self.file.as_ref().map(|file| file.claim.reading());
        let nchunks = raw.fields().nchunks;
        let Some(index) = i64::try_from(index).ok().filter(|&index| index < nchunks) else {
            let detail = format!("there are {nchunks} chunks, asked for chunk {index}");
            drop(raw);
            return Err(self.error(ErrorKind::OutOfBounds, doing, detail));
        };
        let (mut start, mut owned) = (ptr::null_mut(), false);
        // SAFETY: the super-chunk is alive and locked, the index in range, the results writable.
        let len =
            unsafe { sys::blosc2_schunk_get_chunk(raw.as_ptr(), index, &mut start, &mut owned) };
        drop(raw);
        let Some(start) = NonNull::new(start) else {
            return match len {
                0.. => Err(self.error(ErrorKind::InvalidData, doing, "it has no bytes")),
                code => Err(self.at(Error::from_code(format!("{doing} (number {index})"), code))),
            };
        };
        // Also where reading failed after C had made a copy, which is ours to free then.
        let mut chunk = CompressedChunk { start, len: 0, owned, schunk: std::marker::PhantomData };
        chunk.len = usize::try_from(len)
            .map_err(|_| self.at(Error::from_code(format!("{doing} (number {index})"), len)))?;
        Ok(chunk)
    }

    /// Runs `work` with a decompressor of the pool, to decompress this chunk.
    pub(crate) fn with_decompressor<R>(
        &self,
        chunk: &ChunkRef<'_>,
        work: impl FnOnce(&mut Decoder) -> Result<R>,
    ) -> Result<R> {
        let pooled = {
            let mut pool = self.decompressors.lock();
            pool.pop()
        };
        let mut decompressor = match pooled {
            Some(decompressor) => decompressor,
            None => {
                let schunk = self.lock().as_ptr();
                // SAFETY: the pool is dropped before `raw`, being declared first. Metalayers change
                // under the lock only, which is held where a decompressor looks at them (below).
                unsafe { Decoder::for_schunk(&self.dparams, schunk)? }
            }
        };
        // When a file has changed, reading its next chunk reads its metalayers anew, so they must not
        // be looked at meanwhile (frame.c, frame_refresh_if_stale).
        let metalayers = chunk.needs_shape().then(|| self.lock());
        let result = work(&mut decompressor).map_err(|error| self.at(error));
        drop(metalayers);
        self.decompressors.lock().push(decompressor);
        result
    }

    fn check_item<T: Element>(&self, doing: &str) -> Result<()> {
        let size = size_of::<T>();
        if size == self.typesize || T::DTYPE == u8::DTYPE {
            return Ok(());
        }
        let detail = format!("items have {} bytes, {} has {size}", self.typesize, T::DTYPE);
        Err(self.error(ErrorKind::TypeMismatch, doing, detail))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Raw> {
        self.raw.lock()
    }

    pub(crate) fn raw_mut(&mut self) -> &mut Raw {
        self.raw.get_mut()
    }

    pub(crate) fn error(&self, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
        self.at(Error::new(kind, doing, detail))
    }

    pub(crate) fn at(&self, error: Error) -> Error {
        match self.path() {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

/// Has C open a frame; null where it finds it broken.
fn open_in_c(file: &FrameFile) -> Result<*mut sys::blosc2_schunk> {
    let c_path = storage::c_path(&file.absolute)?;
    let _reading = file.claim.reading();
    // SAFETY: the path ends in a NUL byte. `FrameFile::check` has seen that there is a frame whose
    // header, index and trailer fit the file; what C has appended since keeps that so. No other
    // handle writes to it now.
    Ok(unsafe { sys::blosc2_schunk_open(c_path.as_ptr()) })
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

/// The bytes of a stored chunk: memory of the super-chunk's, or a copy that C made.
#[derive(Debug)]
pub(crate) struct CompressedChunk<'a> {
    start: NonNull<u8>,
    len: usize,
    owned: bool,
    schunk: std::marker::PhantomData<&'a SChunk>,
}

impl Deref for CompressedChunk<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: C gave `len` bytes at `start`. A copy lives until it is dropped here; memory of the
        // super-chunk's stays in place while it is not changed, for which `&mut` would be needed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for CompressedChunk<'_> {
    fn drop(&mut self) {
        if self.owned {
            // SAFETY: `needs_free` says that C allocated this with malloc for the caller.
            unsafe { libc::free(self.start.as_ptr().cast()) };
        }
    }
}

/// The chunks of a [`SChunk`], decompressed one by one. Made by [`SChunk::chunks`].
#[derive(Debug)]
pub struct Chunks<'a, T> {
    schunk: &'a SChunk,
    next: usize,
    end: usize,
    item: std::marker::PhantomData<T>,
}

impl<T: Element> Iterator for Chunks<'_, T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        (self.next < self.end).then(|| {
            self.next += 1;
            self.schunk.chunk(self.next - 1)
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.next, Some(self.end - self.next))
    }
}

impl<T: Element> ExactSizeIterator for Chunks<'_, T> {}
