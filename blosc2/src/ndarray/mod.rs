//! N-dimensional arrays: super-chunks with a shape, a chunk shape, a block shape and a dtype.

mod appender;
pub(crate) mod boxes;
pub(crate) mod builder;
mod cache;
mod chunks;
mod copy;
#[cfg(feature = "ndarray")]
mod external;
mod field;
pub(crate) mod gather;
pub(crate) mod index;
mod info;
pub(crate) mod npy;
pub(crate) mod parallel;
mod partition;
pub(crate) mod places;
mod plan;
mod points;
pub(crate) mod ranges;
mod read;
pub(crate) mod region;
mod reshape;
mod rows;
mod scatter;
mod selection;
mod shape;
mod take_along;
mod transfer;
pub(crate) mod view;
mod write;

use std::borrow::Borrow;
use std::panic::{self, AssertUnwindSafe};

use blosc2_format::Limits;
use blosc2_format::b2nd::{Geometry, Meta};
use parking_lot::Mutex;

use crate::gate::Version;
use crate::schunk::{Access, Reading};
use crate::schunk::{Metalayers, MetalayersMut};
use crate::{
    Advice, CParams, DParams, Doing, Dtype, Error, ErrorKind, OpenOptions, Reason, Result, SChunk,
    Target,
};

pub use appender::Appender;
pub use builder::NDArrayBuilder;
pub use chunks::ArrayChunk;
pub use copy::{Arithmetic, Number};
pub use index::{IndexedShape, PerAxis};
pub use info::ArrayInfo;
pub use partition::CacheSizes;
pub(crate) use region::Positions;
pub use selection::{AxisIndex, AxisSelection, Selection};
pub use transfer::{FromItems, ItemBuffer, ItemSource, RawItems};
pub use view::NDArrayView;

use gather::Readers;
use scatter::ChunkWriters;

const OPEN: &str = "open an array";

/// The dtype format of NumPy's notation. C: `DTYPE_NUMPY_FORMAT`.
const NUMPY_FORMAT: u8 = 0;

/// An n-dimensional array of items of one dtype, stored as compressed chunks. C: `b2nd_array_t`. Python: `NDArray`.
///
/// The array is divided into chunks, which all have the same shape. Each chunk is divided into blocks, which all have
/// the same shape. Chunks and blocks that extend beyond the edge of the array or of the chunk are filled with *padding*,
/// which is not part of the items. A read decompresses only the blocks that contain selected items, and decompresses each of these
/// blocks once. The [crate documentation](crate#terms) defines the other terms, such as super-chunk, frame and
/// metalayer.
///
/// Reads take `&self`, and any number of threads can read the same array at the same time. A single read can also use
/// several threads; see [`DParams::threads`]. Changes take `&mut self` and are atomic: if a change fails, the array is
/// unchanged.
///
/// [`builder`](Self::builder) creates an array. [`open`](Self::open) opens an array for reading, and
/// [`open_rw`](Self::open_rw) opens an array for reading and writing.
///
/// ```
/// use blosc2::NDArray;
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("squares.b2nd");
/// let squares: Vec<i64> = (0..100).map(|i| i * i).collect();
/// NDArray::builder().target(&path).from_slice(&squares, &[10, 10])?;
///
/// let mut array = NDArray::open_rw(&path)?;
/// assert_eq!(array.shape(), [10, 10]);
/// assert_eq!(array.read::<Vec<i64>>(&[9..10, 8..10])?, [9604, 9801]);
/// array.write(&[0..1, 0..3], &[-1i64, -2, -3])?;
/// array.append(0, &[7i64; 20])?; // two rows
/// assert_eq!(array.item::<i64>(&[11, 9])?, 7);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Each method fails with the errors of one of the following lists. The section `# Errors` of a method contains only
/// additional errors. A method with the name of a method of [`SChunk`], such as [`save`](Self::save), fails with the
/// errors of that method.
///
/// # Errors of opening
/// The methods that open an array fail with the errors of [`OpenOptions::open`], and with:
/// - [`ErrorKind::InvalidData`]: the frame contains no array;
/// - [`ErrorKind::Unsupported`]: the frame contains a Python object that [`from_schunk`](Self::from_schunk) rejects,
///   such as a lazy expression.
///
/// # Errors of selections
/// - [`ErrorKind::OutOfBounds`]: an index, a point or a bound of the selection is outside the array or view;
/// - [`ErrorKind::InvalidArgument`]:
///   - the selection or a point has more axes than the array or view;
///   - a range ends before it starts, or a step is 0;
///   - a boolean mask does not have the length of its axis, or the number of items of the array or view;
///   - an index does not have one integer for each axis, or a point has another number of integers than the first
///     point;
/// - [`ErrorKind::Unsupported`]: on an axis that [`expand_dims`](NDArrayView::expand_dims) added to a view, the
///   selection does not contain exactly one index.
///
/// # Errors of reads
/// The methods that read items fail with the [errors of selections](#errors-of-selections), with the [errors of
/// reading](SChunk#errors-of-reading) of a super-chunk, and with:
/// - [`ErrorKind::InvalidArgument`]: the length or the shape of the caller's buffer is not that of the selected items;
/// - [`ErrorKind::TypeMismatch`]: the dtype or the byte order of `T` differs from the dtype of the array. If the array
///   stores no dtype, only the size of `T` is checked. Methods that read or write bytes do not check the dtype;
/// - [`ErrorKind::InvalidData`]: the file was replaced by an array with another chunk shape, block shape or typesize;
/// - [`ErrorKind::TooLarge`]: the result does not fit in the address space, or the temporary memory of the read exceeds
///   [`OpenOptions::max_read`].
///
/// After [`ErrorKind::Busy`], because another process has changed the file, call [`refresh`](Self::refresh), and repeat
/// the read.
///
/// # Errors of changes
/// The methods that change items or the shape fail with the [errors of reads](#errors-of-reads), because a change reads
/// the chunks that it covers partly, with the [errors of changes](SChunk#errors-of-changes) of a super-chunk, and with
/// the following errors. After an error the array is unchanged.
/// - [`ErrorKind::InvalidArgument`]:
///   - the number or the shape of the items does not match the selection or the axis;
///   - the axis does not exist, or a shape has a negative size or another number of dimensions than the array;
///   - an axis grows, but the chunk size on this axis is 0, as in empty arrays that Python created;
///   - items are appended or inserted on one axis, but another handle or process has changed the size of another axis;
/// - [`ErrorKind::Unsupported`]:
///   - a prefilter or a postfilter is set, and the change covers only a part of a chunk;
///   - the method changes the shape, and C-Blosc2 older than 2.7 wrote the metalayer `b2nd`, which stores the shapes
///     and the dtype;
/// - [`ErrorKind::TooLarge`]: the new shape exceeds what the format can store.
#[derive(Debug)]
#[doc(alias = "b2nd_array_t")]
pub struct NDArray {
    schunk: SChunk,
    geometry: Geometry,
    dtype: Option<Notation>,
    readers: Readers,
    writers: ChunkWriters,
    /// The version of the frame from which the geometry was read.
    version: Version,
}

impl NDArray {
    /// Opens an array for reading, from a file, a directory, the bytes of a frame, or another [`Target`]. C: `b2nd_open`,
    /// `b2nd_from_cframe`. Python: `blosc2.open`, `ndarray_from_cframe`.
    ///
    /// To open an array with options, such as locking, use [`open_with`](Self::open_with).
    #[doc(alias(
        "b2nd_open",
        "from_bytes",
        "from_cframe",
        "b2nd_from_cframe",
        "ndarray_from_cframe"
    ))]
    pub fn open(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open(target)?)
    }

    /// Opens an array for reading and writing, from a file, a directory, the bytes of a frame, or another [`Target`].
    /// Python: `blosc2.open(path, mode="a")`.
    ///
    /// If a process has died during a change of the file, this method fails with [`ErrorKind::Unfinished`]; see [crash
    /// recovery](crate::OpenOptions#crash-recovery).
    pub fn open_rw(target: impl Into<Target>) -> Result<Self> {
        Self::from_schunk(SChunk::open_rw(target)?)
    }

    /// Opens an array with options, from a file, a directory, the bytes of a frame, or another [`Target`]. By default the
    /// array is opened for reading.
    ///
    /// ```
    /// use blosc2::{NDArray, OpenOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("shared.b2nd");
    /// NDArray::builder().target(&path).options(OpenOptions::new().locking(true)).zeros::<u64>(&[1])?;
    /// let mut array = NDArray::open_with(&path, &OpenOptions::new().write(true).locking(true))?;
    /// array.locked(|array| {
    ///     let count: u64 = array.item(&[0])?;
    ///     array.write(&[0], count + 1)
    /// })?;
    /// assert_eq!(array.item::<u64>(&[0])?, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the options would create a super-chunk, because [`OpenOptions::create`],
    ///   [`create_new`](OpenOptions::create_new) or [`replace`](OpenOptions::replace) is set, or because the target is
    ///   [`Target::memory`]. To create an array, use [`builder`](Self::builder).
    pub fn open_with(target: impl Into<Target>, options: impl Borrow<OpenOptions>) -> Result<Self> {
        Self::from_schunk(options.borrow().open_existing(target.into())?)
    }

    /// Converts a super-chunk to the array that the super-chunk contains. C: `b2nd_from_schunk`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the super-chunk has no metalayer `b2nd` (which stores the shapes and the dtype),
    ///   or the metalayer does not match the chunks;
    /// - [`ErrorKind::Unsupported`]:
    ///   - the super-chunk contains a [Python object](crate::super_chunk::SChunkInfo::python_object), such as a lazy expression, and its stored
    ///     items would read as zeros;
    ///   - the items are pointers to Python objects, which are valid only in the process that wrote them.
    #[doc(alias = "b2nd_from_schunk")]
    pub fn from_schunk(schunk: SChunk) -> Result<Self> {
        if let Some(name) = schunk.python_object() {
            let what = match name {
                "proxy-source" => {
                    "the cache of a proxy, whose items are zeros until they are fetched"
                }
                _ => "a computation or a reference of Python, whose stored items are zeros",
            };
            let advice = Advice::OpenStoredItems;
            let detail = format!("its metalayer `{name}` marks {what}; {advice}");
            return Err(schunk.error(ErrorKind::Unsupported, detail).doing(OPEN));
        }
        let array = from_python_object(schunk)?;
        if let Some(dtype) = array.dtype().filter(|dtype| dtype.has_pointers()) {
            let detail = format!("its items `{dtype}` are pointers to Python objects, not data");
            return Err(array.schunk.error(ErrorKind::Unsupported, detail).doing(OPEN));
        }
        Ok(array)
    }

    /// Creates an in-memory array from items in C order, with automatic chunk and block shapes. Python: `asarray`.
    #[doc(alias("asarray", "b2nd_from_cbuffer"))]
    pub fn from_slice<'s>(items: impl ItemSource<'s>, shape: impl PerAxis) -> Result<Self> {
        Self::builder().from_slice(items, shape)
    }

    /// Returns a builder, which creates a new array in memory, in a file or in a directory.
    #[doc(alias = "b2nd_create_ctx")]
    pub fn builder() -> NDArrayBuilder {
        NDArrayBuilder::default()
    }

    /// Returns the number of items on each axis.
    pub fn shape(&self) -> &[u64] {
        self.geometry.shape()
    }

    /// Returns the number of dimensions; 0 for an array without axes, which has one item.
    pub fn ndim(&self) -> usize {
        self.shape().len()
    }

    /// Returns the chunk shape: the number of items of a chunk on each axis.
    #[doc(alias("chunks", "chunkshape"))]
    pub fn chunk_shape(&self) -> &[u64] {
        self.geometry.chunk_shape()
    }

    /// Returns the block shape: the number of items of a block on each axis.
    #[doc(alias("blocks", "blockshape"))]
    pub fn block_shape(&self) -> &[u64] {
        self.geometry.block_shape()
    }

    /// Returns the dtype of the items. Python: `dtype`.
    ///
    /// The result is `None` in these cases:
    /// - the file stores no dtype, as in files of Caterva, the predecessor of b2nd;
    /// - this crate cannot parse the dtype;
    /// - the stored text of the dtype is not in NumPy's notation; see [`ArrayInfo::dtype_format`](crate::array::ArrayInfo::dtype_format).
    ///
    /// [`dtype_str`](Self::dtype_str) returns the stored text of the dtype.
    ///
    /// A file can store a wrong dtype: two sample files of C-Blosc2 store `|u1` for items of 4 bytes.
    /// [`typesize`](Self::typesize) always returns the correct size of an item.
    pub fn dtype(&self) -> Option<&Dtype> {
        self.dtype.as_ref()?.dtype.as_ref()
    }

    /// Returns the stored text of the dtype, such as `<f4`; `None` if the file stores no dtype.
    ///
    /// A text can be in several notations, which have numbers.
    /// [`ArrayInfo::dtype_format`](crate::array::ArrayInfo::dtype_format) is the number; 0 is the notation of NumPy.
    pub fn dtype_str(&self) -> Option<&str> {
        self.dtype.as_ref().map(|dtype| dtype.text.as_str())
    }

    /// Returns the size of an item in bytes. NumPy: `itemsize`.
    #[doc(alias = "itemsize")]
    pub fn typesize(&self) -> usize {
        self.geometry.typesize()
    }

    /// Returns the number of items. NumPy: `size`.
    #[doc(alias("size", "nitems"))]
    pub fn len(&self) -> u64 {
        self.geometry.len()
    }

    /// Returns whether the array has no items.
    pub fn is_empty(&self) -> bool {
        self.geometry.is_empty()
    }

    /// Returns the super-chunk of the array. Reads through this reference use one thread.
    pub fn schunk(&self) -> &SChunk {
        &self.schunk
    }

    /// Converts the array to its super-chunk.
    pub fn into_schunk(mut self) -> SChunk {
        self.schunk.set_of_array(false);
        self.schunk
    }

    /// Returns the fixed-length metalayers. The metalayer `b2nd` stores the shapes and the dtype.
    pub fn meta(&self) -> Metalayers<'_> {
        self.schunk.meta()
    }

    /// Returns the fixed-length metalayers for changing their contents. The name `b2nd` is reserved: the methods of the
    /// array update the metalayer `b2nd`. To set it directly, call [`MetalayersMut::with_reserved`] first.
    pub fn meta_mut(&mut self) -> MetalayersMut<'_> {
        self.schunk.meta_mut()
    }

    /// Returns the variable-length metalayers. Python: `vlmeta`.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        self.schunk.vlmeta()
    }

    /// Returns the variable-length metalayers for changing them.
    pub fn vlmeta_mut(&mut self) -> MetalayersMut<'_> {
        self.schunk.vlmeta_mut()
    }

    /// Sets the decompression parameters of later reads, including the [cache](DParams::cache) of decoded blocks, the
    /// [conversion](DParams::convert_byte_order) of the byte order and the [postfilter](DParams::postfilter).
    /// [`DParams::threads`] is the maximum number of threads of one
    /// read: the read distributes its chunks, or the blocks of one chunk, among these threads.
    pub fn set_dparams(&mut self, params: impl Borrow<DParams>) {
        self.schunk.set_dparams(params);
        self.readers.set_params(self.schunk.dparams());
    }

    /// Sets the compression parameters of new chunks, including the [prefilter](CParams::prefilter).
    /// [`CParams::threads`] is the maximum number of threads of one
    /// write: the write distributes its chunks among these threads.
    pub fn set_cparams(&mut self, params: impl Borrow<CParams>) -> Result<()> {
        self.writers.clear();
        self.schunk.set_cparams(params)
    }

    /// Locks the file, calls `work`, and unlocks the file. No other process or handle accesses the file between the
    /// reads and changes of `work`. C: `blosc2_schunk_lock`. Python: `holding_lock`.
    ///
    /// The shape is re-read from the file before `work` starts. If `work` fails or panics, the changes that it has
    /// completed are not rolled back. [`transaction`](Self::transaction) locks the file too, and rolls back these
    /// changes. If `work` uses another handle of the same file, the call on that handle fails with [`ErrorKind::Busy`].
    ///
    /// Without [`OpenOptions::locking`], this method does not lock the file, and only calls `work`. For an example, see
    /// [`open_with`](Self::open_with).
    #[doc(alias = "holding_lock")]
    pub fn locked<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        SChunk::with_lock_for(
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

    /// Calls `work`, and stores all changes of `work` in one commit. After an error, a panic or a crash, none of these
    /// changes is stored. [`SChunk::transaction`] describes the cost in time and memory.
    ///
    /// If several writes of a transaction change the same chunk, each write recompresses the chunk. To append many
    /// rows, use an [`Appender`], which compresses each chunk once.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let mut array = NDArray::builder().zeros::<f32>([4, 6])?;
    /// array.transaction(|array| {
    ///     array.write((0..2, 0..3), &[1.0f32; 6])?;
    ///     array.resize([5, 6])?;
    ///     array.write(4, 2.0f32)
    /// })?;
    /// assert_eq!(array.shape(), [5, 6]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn transaction<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        let result = panic::catch_unwind(AssertUnwindSafe(|| {
            SChunk::transaction_for(
                self,
                |array| &mut array.schunk,
                |array| {
                    array.reload()?;
                    work(array)
                },
            )
        }));
        // Reads the shape after the commit or the rollback. An error is ignored: if the shape cannot be read, reads of
        // items fail too.
        let _ = self.reload();
        result.unwrap_or_else(|payload| panic::resume_unwind(payload))
    }

    /// Syncs all changes to disk. By default, the methods that change the array return before the change is synced to
    /// disk; see [`OpenOptions::durable`].
    pub fn sync(&mut self) -> Result<()> {
        self.schunk.sync()
    }

    /// Moves chunks of a contiguous frame so that there are no gaps (unused bytes of replaced or deleted chunks); see
    /// [`SChunk::compact`].
    pub fn compact(&mut self) -> Result<()> {
        self.schunk.compact()
    }

    /// Saves the array to a new file, or to another [target](Target) that does not exist. The compressed chunks are copied
    /// unchanged. C: `b2nd_save`. Python: `save`.
    ///
    /// A file appears at its path only when it is complete. [`SaveOptions`](crate::SaveOptions) has options for saving.
    #[doc(alias = "b2nd_save")]
    pub fn save(&self, target: impl Into<Target>) -> Result<()> {
        self.schunk.save(target)
    }

    /// Re-reads the shape and the metadata, and returns whether another handle or process has changed the array. C:
    /// `b2nd_refresh`.
    ///
    /// Without locking, this method does not detect some changes by other processes; see [`SChunk::refresh`].
    ///
    /// After a change by a handle of this program, reads return the new items even without a call of this method. With
    /// [locking](OpenOptions::locking), reads also return the new items after a change by another process that locks
    /// the file.
    ///
    /// The indices of a selection always refer to the shape that this handle has read last. The handle re-reads the
    /// shape in these methods:
    /// - `refresh`;
    /// - all methods that change the array, and [`transaction`](Self::transaction);
    /// - with locking, [`locked`](Self::locked).
    #[doc(alias = "b2nd_refresh")]
    pub fn refresh(&mut self) -> Result<bool> {
        let changed = self.schunk.refresh()?;
        Ok(self.reload()? || changed)
    }

    fn reload(&mut self) -> Result<bool> {
        let reading = self.schunk.reading()?;
        let now = parse(&reading, &self.schunk).map_err(|error| self.schunk.at(error))?;
        let version = reading.version();
        drop(reading);
        let reshaped = now != (self.geometry.clone(), self.dtype.clone());
        (self.geometry, self.dtype) = now;
        self.version = version;
        self.writers.clear();
        // The cache is cleared even if no change was found, because the replacement of a chunk by a chunk of the same
        // length may not be detectable.
        self.readers.clear_cache();
        Ok(reshaped)
    }

    /// Returns the current shapes if another handle has changed them since they were read.
    fn geometry_now(&self, reading: &Reading<'_>) -> Result<Option<Geometry>> {
        if reading.version() == self.version {
            return Ok(None);
        }
        let (geometry, _) = parse(reading, &self.schunk)?;
        check_cut(&self.geometry, &geometry).doing(OPEN)?;
        Ok((geometry != self.geometry).then_some(geometry))
    }

    /// Calls `work` to change the array. `work` receives the current shapes. No other handle changes the array until
    /// `work` returns.
    fn changing<R>(
        &mut self,
        work: impl FnOnce(Change<'_>) -> Result<R, Reason>,
    ) -> Result<R, Reason> {
        self.schunk.check_change(Access::Write)?;
        let Self { schunk, geometry, readers, writers, version, .. } = self;
        let result: Result<R, Reason> = schunk.with_lock(|schunk| {
            let (now, seen) = {
                let reading = schunk.reading()?;
                (parse(&reading, schunk)?.0, reading.version())
            };
            check_cut(geometry, &now)?;
            (*geometry, *version) = (now, seen);
            let result = work(Change { schunk, geometry, readers, writers });
            // An error of this read does not affect the result: the change has ended. A failed change may be stored
            // nevertheless.
            if let Ok(reading) = schunk.reading() {
                if result.is_err()
                    && let Ok((now, _)) = parse(&reading, schunk)
                {
                    *geometry = now;
                }
                *version = reading.version();
            }
            result
        });
        // The change may have read old blocks into the cache.
        self.readers.clear_cache();
        result.map_err(|error| self.schunk.at(error))
    }
}

/// Converts a super-chunk to an array, even if [`NDArray::from_schunk`] rejects the super-chunk. Use this
/// function for a super-chunk that is marked as a [Python object](crate::super_chunk::SChunkInfo::python_object), such as a lazy expression,
/// or whose items are pointers to Python objects.
///
/// The stored items of a Python object are not its data: they can be zeros. Stored pointers are valid only in the
/// process that wrote them.
///
/// # Errors
/// - [`ErrorKind::InvalidData`]: the super-chunk has no metalayer `b2nd` (which stores the shapes and the dtype),
///   or the metalayer does not match the chunks.
pub fn from_python_object(mut schunk: SChunk) -> Result<NDArray> {
    let (geometry, dtype, version) = {
        let reading = schunk.reading()?;
        let (geometry, dtype) = parse(&reading, &schunk).map_err(|error| schunk.at(error))?;
        (geometry, dtype, reading.version())
    };
    schunk.set_of_array(true);
    let readers = Readers::new(schunk.dparams());
    Ok(NDArray { schunk, geometry, dtype, readers, writers: ChunkWriters::default(), version })
}

impl AsRef<SChunk> for NDArray {
    fn as_ref(&self) -> &SChunk {
        &self.schunk
    }
}

/// The dtype as the file stores it.
#[derive(Debug, Clone, PartialEq)]
struct Notation {
    text: String,
    format: u8,
    /// The parsed dtype; `None` if the text cannot be parsed.
    dtype: Option<Dtype>,
}

/// An array that no other handle changes at the same time.
struct Change<'a> {
    schunk: &'a mut SChunk,
    /// The current shapes of the array, which the change updates.
    geometry: &'a mut Geometry,
    readers: &'a Readers,
    writers: &'a ChunkWriters,
}

fn parse(reading: &Reading<'_>, schunk: &SChunk) -> Result<(Geometry, Option<Notation>)> {
    let invalid = |detail: String| Error::new(ErrorKind::InvalidData, OPEN, detail);
    let Some(meta) = reading.array_meta() else {
        return Err(invalid("it is a super-chunk without the metalayer of an array".to_owned()));
    };
    let meta = Meta::parse(meta).doing(OPEN)?;
    // The number of chunks is that of the frame, which was opened with its limits.
    let geometry = cut(&meta, schunk.typesize(), u64::MAX);
    let geometry = geometry.map_err(|error| invalid(error.to_string()))?;
    let (nchunks, chunksize) = (reading.nchunks(), reading.chunksize());
    if nchunks != geometry.nchunks() {
        let expected = geometry.nchunks();
        return Err(invalid(format!("its shape has {expected} chunks, the frame has {nchunks}")));
    }
    if nchunks > 0 && chunksize != geometry.chunk_len() {
        let expected = geometry.chunk_len();
        let detail =
            format!("its chunk shape has {expected} bytes, a chunk of the frame {chunksize}");
        return Err(invalid(detail));
    }
    let format = meta.dtype_format;
    let dtype = meta.dtype.map(|text| {
        let dtype = if format == NUMPY_FORMAT { Dtype::parse(&text).ok() } else { None };
        Notation { text, format, dtype }
    });
    Ok((geometry, dtype))
}

fn check_cut(known: &Geometry, now: &Geometry) -> Result<(), Reason> {
    let cut = |geometry: &Geometry| {
        (geometry.chunk_shape().to_vec(), geometry.block_shape().to_vec(), geometry.typesize())
    };
    if cut(now) == cut(known) {
        return Ok(());
    }
    let detail = "it was replaced by an array with another chunk shape, block shape or typesize: \
                  open it again";
    Err(Reason::new(ErrorKind::InvalidData, detail))
}

fn cut(
    meta: &Meta,
    typesize: usize,
    chunks: u64,
) -> std::result::Result<Geometry, blosc2_format::Error> {
    let typesize = u32::try_from(typesize).unwrap_or(u32::MAX);
    Geometry::new(meta, typesize, &Limits { chunks, ..Limits::default() })
}

/// Memory that is reused for the next read or write: it returns to its pool when it is dropped.
#[derive(Debug)]
struct Pooled<'a, T> {
    pool: &'a Mutex<Vec<T>>,
    /// Frees memory that is rarely needed.
    trim: fn(&mut T),
    /// `Some` until it is returned.
    value: Option<T>,
}

impl<T> Pooled<'_, T> {
    fn get(&mut self) -> &mut T {
        match &mut self.value {
            Some(value) => value,
            None => unreachable!("only `drop` takes it"),
        }
    }
}

impl<T> Drop for Pooled<'_, T> {
    fn drop(&mut self) {
        if let Some(mut value) = self.value.take() {
            (self.trim)(&mut value);
            self.pool.lock().push(value);
        }
    }
}
