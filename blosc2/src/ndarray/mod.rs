//! N-dimensional arrays: a super-chunk with shapes.

mod appender;
mod boxes;
mod builder;
mod bytes;
mod cache;
mod chunks;
mod copy;
#[cfg(feature = "ndarray")]
mod external;
mod field;
mod gather;
mod index;
mod info;
mod parallel;
mod partition;
mod plan;
mod points;
mod region;
mod rows;
mod scatter;
mod selection;
mod shape;

mod view;
mod write;

use std::borrow::Borrow;
use std::ops::{Deref, DerefMut};
use std::path::Path;

use blosc2_format::Limits;
use blosc2_format::b2nd::{Geometry, Meta};
use blosc2_format::directory::FolderMut;
use parking_lot::Mutex;

use crate::bytes::Storage;
use crate::gate::Version;
use crate::schunk::{Access, Reading};
use crate::schunk::{Metalayers, MetalayersMut};
use crate::{
    CParams, DParams, Dtype, Element, Error, ErrorKind, OpenOptions, Result, SChunk, SaveOptions,
    Threads,
};

pub use appender::Appender;
pub use builder::NDArrayBuilder;
pub use bytes::{NDArrayBytes, NDArrayBytesMut};
pub use chunks::{ArrayBlock, ArrayChunk};
pub use copy::{Arithmetic, Number};
pub use field::{NDArrayField, NDArrayFieldMut};
pub use index::PerAxis;
pub use info::ArrayInfo;
pub use partition::CacheSizes;
pub use rows::Rows;
pub use selection::{AxisIndex, AxisSelection, Selection};
pub use view::NDArrayView;

use cache::Cache;
use gather::Readers;
use scatter::Writers;

const OPEN: &str = "open an array";

/// NumPy's notation of dtypes. C's `DTYPE_NUMPY_FORMAT`.
const NUMPY_FORMAT: u8 = 0;

/// An n-dimensional array of items, compressed chunk by chunk. C's `b2nd_array_t`, Python's
/// `NDArray`.
///
/// The array is cut into chunks and the chunks into blocks; reading decompresses only the
/// blocks that it touches, each once. Reading takes `&self` and may happen on many threads at once; one read can
/// use several threads by itself ([`DParams::threads`]). Changing takes `&mut self`, and is all done when it returns or,
/// where it fails, not at all.
///
/// ```
/// use blosc2::NDArray;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.b2nd");
/// let squares: Vec<i64> = (0..100).map(|i| i * i).collect();
/// NDArray::builder().file(&path).from_slice(&squares, &[10, 10])?;
///
/// let mut array = NDArray::open_rw(&path)?;
/// assert_eq!(array.shape(), [10, 10]);
/// assert_eq!(array.read::<i64>(&[9..10, 8..10])?, [9604, 9801]);
/// array.write(&[0..1, 0..3], &[-1i64, -2, -3])?;
/// array.append(0, &[7i64; 20])?; // two rows
/// assert_eq!(array.item::<i64>(&[11, 9])?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[doc(alias = "b2nd_array_t")]
pub struct NDArray {
    schunk: SChunk,
    geometry: Geometry,
    dtype: Option<Notation>,
    /// Whether items in the byte order that is not native are converted.
    convert: bool,
    readers: Readers,
    writers: Writers,
    /// The version of the frame that the geometry is of.
    version: Version,
}

impl NDArray {
    /// Opens an array in a file or a directory for reading. C's `b2nd_open`, Python's `blosc2.open`.
    ///
    /// [`open_with`](Self::open_with) has options, such as locking.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: it cannot be read;
    /// - [`ErrorKind::InvalidData`]: it is no frame, is a frame but no array, was cut short, or is
    ///   broken;
    /// - [`ErrorKind::Unfinished`]: its writer was stopped, or is writing it.
    #[doc(alias = "b2nd_open")]
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_schunk(SChunk::open(path)?)
    }

    /// Opens an array in a file or a directory for reading and changing.
    ///
    /// A program that dies in the middle of a change leaves a file that this does not open; see
    /// [`OpenOptions`](crate::OpenOptions#after-the-death-of-a-writer).
    ///
    /// # Errors
    /// As for [`open`](Self::open), and [`ErrorKind::Busy`] where this program has it open for changing already.
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_schunk(SChunk::open_rw(path)?)
    }

    /// Opens an array in a file or a directory as the options say: for reading unless they say otherwise.
    ///
    /// ```
    /// use blosc2::{NDArray, OpenOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shared.b2nd");
    /// NDArray::builder().file(&path).locking(true).zeros::<u64>(&[1])?;
    /// let mut array = NDArray::open_with(&path, &OpenOptions::new().write(true).locking(true))?;
    /// array.locked(|array| {
    ///     let count: u64 = array.item(&[0])?;
    ///     array.set(&[0], count + 1)
    /// })?;
    /// assert_eq!(array.item::<u64>(&[0])?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`OpenOptions::open`], and [`ErrorKind::InvalidData`] where it is no array. A new array is made by
    /// [`builder`](Self::builder): options that make a file are [`ErrorKind::InvalidArgument`].
    pub fn open_with(path: impl AsRef<Path>, options: &OpenOptions) -> Result<Self> {
        let path = path.as_ref();
        if options.makes() {
            let detail = "the options make a new super-chunk; NDArray::builder makes arrays";
            return Err(Error::new(ErrorKind::InvalidArgument, OPEN, detail).at(path));
        }
        Self::from_schunk(options.open(path)?)
    }

    /// Opens an array in a custom storage backend as the options say: for reading unless they say otherwise.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open_storage`], and [`ErrorKind::InvalidData`] if it is no array. A new array is made by
    /// [`NDArrayBuilder::storage`].
    #[doc(alias = "b2nd_open_udio")]
    pub fn open_storage(storage: impl Storage + 'static, options: &OpenOptions) -> Result<Self> {
        Self::from_schunk(options.open_storage(storage)?)
    }

    /// Opens an array in a custom folder, with a file for each chunk, as the options say: for reading unless they say
    /// otherwise.
    ///
    /// # Errors
    /// Those of [`OpenOptions::open_folder`], and [`ErrorKind::InvalidData`] if it is no array. A new array is created by
    /// [`NDArrayBuilder::folder`].
    pub fn open_folder<F>(folder: F, options: &OpenOptions) -> Result<Self>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        Self::from_schunk(options.open_folder(folder)?)
    }

    /// Takes an array in one buffer, as a file has it, without a copy; it can be changed. C's
    /// `b2nd_from_cframe`, Python's `ndarray_from_cframe`.
    ///
    /// [`OpenOptions::from_owner`] and [`OpenOptions::with_borrowed`] open memory that is shared or borrowed, for
    /// [`from_schunk`](Self::from_schunk).
    ///
    /// # Errors
    /// As for [`SChunk::from_cframe`], and [`ErrorKind::InvalidData`] where it is no array.
    #[doc(alias("from_bytes", "ndarray_from_cframe", "b2nd_from_cframe"))]
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        Self::from_schunk(OpenOptions::new().write(true).from_cframe(bytes)?)
    }

    /// Takes a super-chunk that holds an array. C's `b2nd_from_schunk`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: it has no metalayer `b2nd`, or one that does not fit its chunks;
    /// - [`ErrorKind::Unsupported`]: it holds a [Python object](SChunk::python_object), such as a lazy
    ///   expression of Python's, whose items would read as zeros; or its items are pointers to objects of Python's,
    ///   which mean nothing outside of the program that wrote them.
    #[doc(alias = "b2nd_from_schunk")]
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        if let Some(name) = schunk.python_object() {
            let what = match name {
                "proxy-source" => "the cache of a proxy, in which items not fetched yet are zeros",
                _ => "a computation or a reference of Python's, whose own items are all zeros",
            };
            let detail = format!(
                "its metalayer `{name}` says that it is {what}; \
                 NDArray::from_python_object takes the items all the same"
            );
            return Err(schunk.error(ErrorKind::Unsupported, OPEN, detail));
        }
        let array = Self::from_python_object(schunk)?;
        if let Some(dtype) = array.dtype().filter(|dtype| dtype.has_pointers()) {
            let detail =
                format!("its items `{dtype}` are pointers to objects of Python's, no data");
            return Err(array.schunk.error(ErrorKind::Unsupported, OPEN, detail));
        }
        Ok(array)
    }

    /// Takes a super-chunk that holds an array, also where its items are not the data that it stands for; see
    /// [`SChunk::python_object`].
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: it has no metalayer `b2nd`, or one that does not fit its chunks.
    pub fn from_python_object(mut schunk: SChunk) -> Result<Self> {
        let (geometry, dtype, version) = {
            let reading = schunk.reading()?;
            let (geometry, dtype) = parse(&reading, &schunk).map_err(|error| schunk.at(error))?;
            (geometry, dtype, reading.version())
        };
        let threads = schunk.dparams().threads;
        // The threads of this handle are its own.
        let dparams = schunk.dparams().clone().threads(Threads::ONE);
        schunk.set_dparams(dparams);
        Ok(Self {
            schunk,
            geometry,
            dtype,
            convert: false,
            readers: Readers::new(threads),
            writers: Writers::default(),
            version,
        })
    }

    /// Makes an array in memory of items in C order, with automatic chunks and blocks. Python's
    /// `asarray`.
    ///
    /// # Errors
    /// As for [`NDArrayBuilder::from_slice`].
    #[doc(alias("asarray", "b2nd_from_cbuffer"))]
    pub fn from_slice<T: Element>(items: &[T], shape: impl PerAxis) -> Result<Self> {
        Self::builder().from_slice(items, shape)
    }

    /// What an array is to be like, to make one.
    #[doc(alias = "b2nd_create_ctx")]
    pub fn builder() -> NDArrayBuilder {
        NDArrayBuilder::default()
    }

    /// Number of items along each dimension.
    pub fn shape(&self) -> &[u64] {
        self.geometry.shape()
    }

    /// Number of dimensions; 0 for a single item.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Items of a chunk along each dimension.
    #[doc(alias("chunk_shape", "chunkshape"))]
    pub fn chunks(&self) -> &[u64] {
        self.geometry.chunks()
    }

    /// Items of a block along each dimension.
    #[doc(alias("block_shape", "blockshape"))]
    pub fn blocks(&self) -> &[u64] {
        self.geometry.blocks()
    }

    /// The dtype of the items. `None` where the file names none, as old ones do, or one that is not understood or in
    /// another [format](Self::dtype_format) than NumPy's, of which [`dtype_str`](Self::dtype_str) returns the text.
    /// Python's `dtype`.
    ///
    /// It is not always true: two of C-Blosc2's own files say `|u1` of items of 4 bytes. The size of an item is
    /// [`typesize`](Self::typesize).
    pub fn dtype(&self) -> Option<&Dtype> {
        self.dtype.as_ref()?.dtype.as_ref()
    }

    /// The dtype as the file has it, in NumPy's notation, such as `<f4`; old files have none. NumPy's `dtype.str`.
    pub fn dtype_str(&self) -> Option<&str> {
        self.dtype.as_ref().map(|dtype| dtype.text.as_str())
    }

    /// The format of the text of the dtype: 0 for NumPy's notation, the only one that Python reads. Set by
    /// [`NDArrayBuilder::dtype_format`].
    pub fn dtype_format(&self) -> u8 {
        self.dtype.as_ref().map_or(NUMPY_FORMAT, |dtype| dtype.format)
    }

    /// Bytes of an item.
    #[doc(alias = "itemsize")]
    pub fn typesize(&self) -> usize {
        self.geometry.typesize()
    }

    /// Number of items.
    #[doc(alias("size", "nitems"))]
    pub fn len(&self) -> u64 {
        self.geometry.len()
    }

    /// Bytes of all items, without padding. Python's `nbytes`.
    pub fn nbytes(&self) -> u64 {
        // There are fewer than 2^28 chunks of fewer than 2^31 bytes.
        self.len() * self.typesize() as u64
    }

    /// Compressed bytes of all chunks. Python's `cbytes`.
    pub fn cbytes(&self) -> u64 {
        self.schunk.cbytes()
    }

    /// The compression ratio: uncompressed bytes of all chunks, with their padding, by compressed bytes. Python's `cratio`.
    ///
    /// 0 if there are no compressed bytes, as in an array of special chunks only.
    pub fn cratio(&self) -> f64 {
        self.schunk.cratio()
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> bool {
        self.geometry.is_empty()
    }

    /// The super-chunk that holds the array. It reads chunks on one thread.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Gives back the super-chunk that holds the array.
    pub fn into_schunk(mut self) -> SChunk {
        let dparams = self.schunk.dparams().clone().threads(self.readers.threads);
        self.schunk.set_dparams(dparams);
        self.schunk
    }

    /// Metalayers of a fixed length; the one named `b2nd` has the shapes.
    pub fn meta(&self) -> Metalayers<'_> {
        self.schunk.meta()
    }

    /// Metalayers of a fixed length, to be changed. That of the shapes is none of them: it follows the array.
    pub fn meta_mut(&mut self) -> MetalayersMut<'_> {
        self.schunk.meta_mut()
    }

    /// Metalayers of any length. Python's `vlmeta`.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        self.schunk.vlmeta()
    }

    /// Metalayers of any length, to be changed.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        self.schunk.vlmeta_mut()
    }

    /// How chunks are decompressed, the number of threads included.
    pub fn dparams(&self) -> DParams {
        self.schunk.dparams().clone().threads(self.readers.threads)
    }

    /// Sets how chunks are decompressed from now on: each read spreads chunks, or blocks of them, over the threads.
    pub fn set_dparams(&mut self, params: impl Borrow<DParams>) {
        let params = params.borrow();
        self.readers.threads = params.threads;
        self.schunk.set_dparams(params.clone().threads(Threads::ONE));
    }

    /// The parameters with which new chunks are compressed; see [`SChunk::cparams`]. The block size is that of the block
    /// shape.
    pub fn cparams(&self) -> CParams {
        self.schunk.cparams()
    }

    /// Sets how new chunks are compressed from now on; each write spreads its chunks over the threads.
    ///
    /// # Errors
    /// As for [`SChunk::set_cparams`].
    pub fn set_cparams(&mut self, params: impl Borrow<CParams>) -> Result<()> {
        self.writers.clear();
        self.schunk.set_cparams(params)
    }

    /// Changes the data of new chunks before they are compressed; see [`SChunk::set_prefilter`]. It sees whole chunks,
    /// padding too, block by block; parts of chunks cannot be written then. [`ChunkBlock`](crate::user_defined::ChunkBlock) shows how it
    /// learns the indices of the items.
    ///
    /// # Errors
    /// As for [`SChunk::set_prefilter`].
    pub fn set_prefilter<E: Into<crate::closures::BoxError>>(
        &mut self,
        prefilter: impl for<'b> Fn(&mut crate::closures::ChunkBlock<'b>) -> std::result::Result<(), E>
        + Send
        + Sync
        + 'static,
    ) -> Result<()> {
        self.writers.clear();
        self.schunk.set_prefilter(prefilter)
    }

    /// Removes the prefilter, if there is one.
    pub fn clear_prefilter(&mut self) {
        self.writers.clear();
        self.schunk.clear_prefilter();
    }

    /// Removes the postfilter, if there is one.
    pub fn clear_postfilter(&mut self) {
        if let Some(cache) = &mut self.readers.cache {
            cache.clear();
        }
        self.schunk.clear_postfilter();
    }

    /// Changes the data of chunks after they were decompressed, block by block; see [`SChunk::set_postfilter`].
    /// [`ChunkBlock`](crate::user_defined::ChunkBlock) shows how it learns the indices of the items.
    pub fn set_postfilter<E: Into<crate::closures::BoxError>>(
        &mut self,
        postfilter: impl for<'b> Fn(&mut crate::closures::ChunkBlock<'b>) -> std::result::Result<(), E>
        + Send
        + Sync
        + 'static,
    ) {
        if let Some(cache) = &mut self.readers.cache {
            cache.clear();
        }
        self.schunk.set_postfilter(postfilter);
    }

    /// Keeps up to so many bytes of decoded blocks, and of what keeping them takes, those that were used last, for the
    /// next reads.
    ///
    /// It pays where reads come back to the same blocks, as for neighbouring items one by one. With 0, and at first,
    /// none are kept. Changes are seen all the same.
    pub fn set_cache(&mut self, bytes: usize) {
        self.readers.cache = (bytes > 0).then(|| Cache::new(bytes));
    }

    /// Sets whether items in the byte order that is not native are converted when they are read and written. Off by
    /// default: such items are not items of a Rust type then, and can only be read as bytes.
    pub fn set_byte_order_conversion(&mut self, convert: bool) {
        self.convert = convert;
    }

    /// Keeps the lock of the file during several reads and changes, so that no other program or handle comes between
    /// them. The shape is that of the file when `work` starts.
    ///
    /// It is a lock, not a transaction: changes that `work` made before an error or a panic stay. What `work` does with
    /// another handle of the file fails with [`ErrorKind::Busy`].
    ///
    /// Without [`OpenOptions::locking`] it calls `work` only. C's `blosc2_schunk_lock`, Python's `holding_lock`; see
    /// [`open_with`](Self::open_with) for an example.
    ///
    /// # Errors
    /// Those of [`SChunk::locked`].
    #[doc(alias = "holding_lock")]
    pub fn locked<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        SChunk::kept_for(
            self,
            |array| &mut array.schunk,
            |array| {
                let gate = array.schunk.gate().filter(|gate| gate.is_locking());
                if gate.is_some() {
                    array.reload()?;
                }
                let _calling = gate.as_ref().map(|gate| gate.calling());
                work(array)
            },
        )
    }

    /// Writes all changes to the device. A change does not wait for that by itself; see [`OpenOptions::durable`].
    ///
    /// # Errors
    /// [`ErrorKind::Io`]: the operating system's own.
    pub fn sync(&mut self) -> Result<()> {
        self.schunk.sync()
    }

    /// Saves the array to a file or a directory, as the options say; see [`SChunk::save_with`].
    ///
    /// # Errors
    /// Those of [`SChunk::save_with`].
    pub fn save_with(&self, path: impl AsRef<Path>, options: &SaveOptions) -> Result<()> {
        self.schunk.save_with(path, options)
    }

    /// Saves the array to a custom storage backend as the options say; see [`SChunk::save_in`].
    ///
    /// # Errors
    /// Those of [`SChunk::save_in`].
    pub fn save_in(&self, storage: impl Storage + 'static, options: &SaveOptions) -> Result<()> {
        self.schunk.save_in(storage, options)
    }

    /// Saves the array to a custom folder as the options say; see [`SChunk::save_in_folder`].
    ///
    /// # Errors
    /// Those of [`SChunk::save_in_folder`].
    pub fn save_in_folder<F>(&self, folder: F, options: &SaveOptions) -> Result<()>
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        self.schunk.save_in_folder(folder, options)
    }

    /// Saves the array to a new contiguous file, chunks as they are. C's `b2nd_save`.
    ///
    /// The file appears when it is complete.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is something at `path`; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made.
    #[doc(alias = "b2nd_save")]
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        self.schunk.save(path)
    }

    /// The array in one buffer, as a file has it. C's `b2nd_to_cframe`, Python's `to_cframe`.
    ///
    /// # Errors
    /// As for [`SChunk::to_cframe`].
    #[doc(alias("to_bytes", "b2nd_to_cframe"))]
    pub fn to_cframe(&self) -> Result<Vec<u8>> {
        self.schunk.to_cframe()
    }

    /// Reads anew what others have changed, the shape too, and says whether there was anything. C's
    /// `b2nd_refresh`.
    ///
    /// Reading sees changed items by itself, as [`SChunk::refresh`] says, but keeps to the shape that this handle
    /// knows.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    #[doc(alias = "b2nd_refresh")]
    pub fn refresh(&mut self) -> Result<bool> {
        let changed = self.schunk.refresh()?;
        Ok(self.reload()? || changed)
    }

    /// Reads the shape as the frame has it now, and says whether it has changed.
    fn reload(&mut self) -> Result<bool> {
        let reading = self.schunk.reading()?;
        let now = parse(&reading, &self.schunk).map_err(|error| self.schunk.at(error))?;
        let version = reading.version();
        drop(reading);
        let reshaped = now != (self.geometry.clone(), self.dtype.clone());
        (self.geometry, self.dtype) = now;
        self.version = version;
        self.writers.clear();
        // Also where no change was found: a chunk that another program replaced by one of its length shows nowhere.
        if let Some(cache) = &mut self.readers.cache {
            cache.clear();
        }
        Ok(reshaped)
    }

    /// The shapes as they are now, where others have changed them since.
    fn geometry_now(&self, reading: &Reading<'_>) -> Result<Option<Geometry>> {
        if reading.version() == self.version {
            return Ok(None);
        }
        let (geometry, _) = parse(reading, &self.schunk)?;
        self.check_cut(&geometry)?;
        Ok((geometry != self.geometry).then_some(geometry))
    }

    /// Sees that others have changed no more than the shape.
    fn check_cut(&self, now: &Geometry) -> Result<()> {
        let cut = |geometry: &Geometry| {
            let (chunks, blocks) = (geometry.chunks().to_vec(), geometry.blocks().to_vec());
            (chunks, blocks, geometry.typesize())
        };
        if cut(now) == cut(&self.geometry) {
            return Ok(());
        }
        let detail = "it was made anew with other chunks: open it again";
        Err(Error::new(ErrorKind::InvalidData, OPEN, detail))
    }

    /// Changes the array by `work`, which is given the shapes as they are then; nobody else comes between.
    fn changing<R>(
        &mut self,
        doing: &str,
        work: impl FnOnce(Change<'_>) -> Result<R>,
    ) -> Result<R> {
        self.schunk.check_change(doing, Access::Write)?;
        let Self { schunk, geometry, readers, writers, version, .. } = self;
        let result = schunk.kept(|schunk| {
            let (now, seen) = {
                let reading = schunk.reading()?;
                (parse(&reading, schunk)?.0, reading.version())
            };
            if now.chunks() != geometry.chunks() || now.blocks() != geometry.blocks() {
                let detail = "it was made anew with other chunks: open it again";
                return Err(Error::new(ErrorKind::InvalidData, doing, detail));
            }
            (*geometry, *version) = (now, seen);
            let result = work(Change { schunk, geometry, readers, writers })?;
            // It is done, whether or not that can be read.
            if let Ok(reading) = schunk.reading() {
                *version = reading.version();
            }
            Ok(result)
        });
        // Old blocks may have been read for the new ones.
        if let Some(cache) = &mut self.readers.cache {
            cache.clear();
        }
        result.map_err(|error| self.schunk.at(error))
    }
}

/// A dtype as a file has it.
#[derive(Debug, Clone, PartialEq)]
struct Notation {
    text: String,
    /// The notation that the text is in.
    format: u8,
    /// What it says, where it is understood.
    dtype: Option<Dtype>,
}

/// An array that nobody else changes.
struct Change<'a> {
    schunk: &'a mut SChunk,
    /// Its shapes as they are now, to be changed with it.
    geometry: &'a mut Geometry,
    readers: &'a Readers,
    writers: &'a Writers,
}

/// The shapes and the dtype that the metalayer says, checked against the chunks.
fn parse(reading: &Reading<'_>, schunk: &SChunk) -> Result<(Geometry, Option<Notation>)> {
    let invalid = |detail: String| Error::new(ErrorKind::InvalidData, OPEN, detail);
    let Some(meta) = reading.array_meta() else {
        return Err(invalid("it is a super-chunk without the shapes of an array".to_owned()));
    };
    let meta = Meta::parse(meta).map_err(|error| Error::from_format(OPEN, error))?;
    let geometry = cut(&meta, schunk.typesize()).map_err(|error| invalid(error.to_string()))?;
    let (nchunks, chunksize) = (reading.nchunks(), reading.chunksize());
    if nchunks != geometry.nchunks() {
        let expected = geometry.nchunks();
        return Err(invalid(format!("its shape has {expected} chunks, the frame has {nchunks}")));
    }
    if nchunks > 0 && chunksize != geometry.chunk_len() {
        let expected = geometry.chunk_len();
        let detail =
            format!("a chunk of its shape has {expected} bytes, one of the frame {chunksize}");
        return Err(invalid(detail));
    }
    let format = meta.dtype_format;
    let dtype = meta.dtype.map(|text| {
        let dtype = if format == NUMPY_FORMAT { Dtype::parse(&text).ok() } else { None };
        Notation { text, format, dtype }
    });
    Ok((geometry, dtype))
}

/// The shapes of an array, with as many chunks as a frame can have.
fn cut(meta: &Meta, typesize: usize) -> std::result::Result<Geometry, blosc2_format::Error> {
    let typesize = u32::try_from(typesize).unwrap_or(u32::MAX);
    Geometry::new(meta, typesize, &Limits { chunks: MAX_CHUNKS, ..Limits::default() })
}

/// The most chunks whose places an index can hold.
const MAX_CHUNKS: u64 = (i32::MAX as u64 - 32) / 8;

/// What is kept for the next read or write.
trait Reused {
    /// Gives up memory that is only rarely needed.
    fn trim(&mut self);
}

/// Something that goes back to others of its kind when it is not used any more.
#[derive(Debug)]
struct Pooled<'a, T: Reused> {
    pool: &'a Mutex<Vec<T>>,
    /// There until it goes back.
    value: Option<T>,
}

impl<'a, T: Reused> Pooled<'a, T> {
    fn new(pool: &'a Mutex<Vec<T>>, value: T) -> Self {
        Self { pool, value: Some(value) }
    }
}

impl<T: Reused> Deref for Pooled<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match &self.value {
            Some(value) => value,
            None => unreachable!("it has not gone back yet"),
        }
    }
}

impl<T: Reused> DerefMut for Pooled<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("it has not gone back yet"),
        }
    }
}

impl<T: Reused> Drop for Pooled<'_, T> {
    fn drop(&mut self) {
        if let Some(mut value) = self.value.take() {
            value.trim();
            self.pool.lock().push(value);
        }
    }
}
