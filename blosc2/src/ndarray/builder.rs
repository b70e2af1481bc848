//! The builder that creates arrays.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2_format::b2nd::{Geometry, MAX_NDIM, Meta, NAME, OLD_NAME};
use blosc2_format::chunk::MAX_BLOCKSIZE;
use blosc2_format::frame::ChunkSize;
use parking_lot::Mutex;

use super::boxes::{BoxReader, Readings, Sources};
use super::gather::Scratch;
use super::index::{PerAxis, sizes};
use super::partition::{CacheSizes, partition};
use super::places::{ItemPart, Source};
use super::plan::Plan;
use super::ranges::{Ranges, each_part, grown, len_of_box, whole};
use super::region::Region;
use super::scatter::{ChunkWriters, Data, Team};
use super::shape::{meta_of, stored_shape, stored_sizes};
use super::transfer::{Given, ItemSource, RawItems};
use super::view::{ItemType, NDArrayView};
use super::{NDArray, NUMPY_FORMAT, cut};
use crate::closures::BoxError;
use crate::codec::params::{Purpose, Resolved};
use crate::dtype::{Kind, MAX_TEXT_LEN};
use crate::item::element::{Element, bytes_of};
use crate::schunk::{Created, Store};
use crate::support::memory::reserve;
use crate::support::progress::Progress;
use crate::{
    CParams, Codec, Doing, Dtype, Error, ErrorKind, Filter, OpenOptions, Reason, Result, SChunk,
    Special, Target, Threads,
};

pub(super) const MAKE: &str = "create an array";

/// A builder of arrays: sets the properties of a new array, such as its chunk shape and its storage, and creates the
/// array. [`NDArray::builder`] returns a builder. C: `b2nd_create_ctx`.
///
/// By default, the array is created in memory. To create it elsewhere, set a [`target`](Self::target). A file or
/// directory appears at its path only when it is complete. The returned array can be read and changed. The [crate
/// documentation](crate#terms) defines terms such as chunk, frame and metalayer.
///
/// ```
/// use blosc2::{CParams, Codec, NDArray};
///
/// let array = NDArray::builder()
///     .chunk_shape(&[5, 10])
///     .block_shape(&[5, 5])
///     .cparams(CParams::new().codec(Codec::Lz4))
///     .from_slice(&[1.0f64; 100], &[10, 10])?;
/// assert_eq!(array.schunk().nchunks(), 2);
///
/// let table = NDArray::builder().from_fn(&[9, 9], |[row, column]| (row + 1) * (column + 1))?;
/// assert_eq!(table.item::<u64>(&[6, 7])?, 56);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Errors of creation
/// The methods that create an array fail with these errors. Methods with another array as source also fail with the
/// [errors of reads](NDArray#errors-of-reads). The section `# Errors` of a method contains only additional errors.
/// - [`ErrorKind::InvalidArgument`]:
///   - the number of items does not match the shape;
///   - the shape has more than 16 axes or a negative size;
///   - the chunk or block shape has a different number of dimensions than the shape, or a size of 0 on an axis with
///     items;
///   - a block is larger than a chunk;
///   - a parameter is out of range;
///   - the codec or a filter does not support the number of dimensions or the typesize;
///   - there are more than 15 fixed-length metalayers or more than 16 variable-length metalayers;
///   - two fixed-length metalayers have the same name, or a name is invalid or reserved (`b2nd`, `caterva`);
///   - [`OpenOptions::replace`] is set, and the target is a path that is not a regular file, or a custom directory that
///     contains a frame;
/// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter; or the dtype contains pointers to
///   Python objects;
/// - [`ErrorKind::TooLarge`]: a chunk exceeds [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes, a block exceeds
///   536,866,816 bytes, the array exceeds what the format can store, or it has more chunks than the
///   [limits](OpenOptions::limits) allow;
/// - [`ErrorKind::AlreadyExists`]:
///   - [`OpenOptions::replace`] is not set, and the target exists or contains data;
///   - a clone of the builder has already used the custom storage backend or directory;
/// - [`ErrorKind::NotFound`]: the parent directory of the path does not exist;
/// - [`ErrorKind::Busy`]:
///   - [`OpenOptions::replace`] is set, and another handle of this program has the existing file open for writing;
///   - the custom storage backend is a file that another handle of this program has open;
/// - [`ErrorKind::OutOfMemory`]: memory for the array cannot be allocated;
/// - [`ErrorKind::Callback`]: a user-defined codec, filter or tuner failed or panicked; or a custom storage backend
///   panicked;
/// - [`ErrorKind::Io`]: the file or storage cannot be written.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder does nothing until it creates an array"]
pub struct NDArrayBuilder {
    chunk_shape: Option<Vec<u64>>,
    block_shape: Option<Vec<u64>>,
    caches: CacheSizes,
    options: OpenOptions,
    /// The target, until an array is created there; `None` for memory.
    target: Option<Arc<Mutex<Option<Target>>>>,
    /// The text of the dtype, and the size of an item.
    dtype: Option<(String, usize)>,
    dtype_format: u8,
    progress: Progress,
    max_memory: Option<usize>,
}

pub(crate) type Put<'p, T> = dyn FnMut(&[T]) -> Result<()> + 'p;

type Write<'a> = dyn FnOnce(&mut NewArray<'_>) -> Result<()> + 'a;

type ChunkData<'a, 'd> = dyn Fn(&Team<'_>, &mut Scratch, usize) -> Result<Data<'d>> + Sync + 'a;

/// Writes the items in these ranges of the new array, in C order.
type FillFrom<'a> = dyn Fn(&[BoxReader<'_>], &[Range<u64>], &mut [u8]) -> Result<()> + Sync + 'a;

/// The memory for temporary items in bytes, if none is set.
const MAX_MEMORY: usize = 64 << 20;

/// The number of items that are taken from an iterator at once.
const PART: u64 = 4096;

pub(crate) struct NewArray<'a> {
    schunk: &'a mut SChunk,
    pub(crate) geometry: &'a Geometry,
    /// The sources, which do not change during the creation.
    readings: &'a Readings<'a>,
    progress: &'a Progress,
    writers: ChunkWriters,
    /// The memory for temporary items in bytes, and the number of threads.
    memory: usize,
    threads: usize,
    /// The number of complete chunks, and the end of the chunks of the slab.
    done: u64,
    end: u64,
}

impl NewArray<'_> {
    /// Stores all chunks, or those of a [slab](Self::by_slabs). Several threads compress them; `data` returns the data of
    /// each chunk.
    pub(crate) fn by_chunks(&mut self, data: &ChunkData<'_, '_>) -> Result<()> {
        let start = self.done as usize;
        // The index, of at most 2 GiB, limits the number of chunks.
        let count = self.end as usize - start;
        let data: &ChunkData<'_, '_> = &|team, scratch, number| data(team, scratch, start + number);
        self.pack(count, &|number| start + number, data, push)
    }

    /// Stores all chunks. `fill` writes the items of each chunk, in C order, into zeroed memory.
    pub(crate) fn by_boxes(
        &mut self,
        readers: Vec<BoxReader<'_>>,
        fill: &FillFrom<'_>,
    ) -> Result<()> {
        self.by_slabs(readers, |new, readers| {
            let is_held = readers.iter().any(BoxReader::is_held);
            let fill = |ranges: &[Range<u64>], bytes: &mut [u8]| fill(readers, ranges, bytes);
            new.by_chunks(&|team, scratch, number| team.by_boxes(scratch, number, is_held, &fill))
        })
    }

    /// Stores all chunks. `store` calls [`by_chunks`](Self::by_chunks), and reads the sources by the readers that it
    /// receives.
    ///
    /// If neighboring chunks need the same blocks, the chunks are stored in slabs: consecutive chunks, whose items of the
    /// sources are read together, and take up to the memory of the builder. `store` is called for each slab.
    pub(crate) fn by_slabs(
        &mut self,
        mut readers: Vec<BoxReader<'_>>,
        mut store: impl FnMut(&mut Self, &[BoxReader<'_>]) -> Result<()>,
    ) -> Result<()> {
        let (geometry, memory) = (self.geometry, self.memory);
        let (shape, chunk) = (geometry.shape(), geometry.chunk_shape());
        if geometry.nchunks() < 2 || readers.is_empty() {
            return store(self, &readers);
        }
        let first = |sides: &[u64]| -> Vec<Range<u64>> {
            shape.iter().zip(sides).map(|(&size, &side)| 0..size.min(side)).collect()
        };
        // The last axes first, so that the chunks of a slab are consecutive.
        let next = |sides: &[u64]| (0..shape.len()).rev().find(|&axis| sides[axis] < shape[axis]);
        let sides = grown(chunk, next, |sides| {
            let needed = readers.iter().map(|reader| reader.needed_len(&first(sides)));
            needed.fold(0, u64::saturating_add) <= memory as u64
        });
        // The number of blocks that are decompressed, if each box of these sides is read separately.
        let blocks = |sides: &[u64]| -> Result<u64> {
            let boxes = shape.iter().zip(sides).map(|(size, side)| size.div_ceil(*side));
            let needed = readers.iter().map(|reader| reader.needed_blocks(&first(sides)));
            let needed = needed.sum::<Result<u64>>()?;
            Ok(boxes.fold(needed, u64::saturating_mul))
        };
        if sides == chunk || blocks(chunk)? <= blocks(&sides)?.saturating_mul(2) {
            return store(self, &readers);
        }
        each_part(&whole(shape), &sides, &mut |ranges| {
            readers.iter_mut().try_for_each(|reader| reader.hold(self.threads, ranges))?;
            let chunks = ranges
                .iter()
                .zip(chunk)
                .map(|(range, side)| (range.end - range.start).div_ceil(*side));
            self.end = self.done + chunks.product::<u64>();
            store(self, &readers)
        })
    }

    /// Stores the items of a box of complete chunks in C order. The boxes can have any order; each chunk is stored once.
    pub(crate) fn put(&mut self, ranges: &[Range<u64>], bytes: &[u8]) -> Result<()> {
        if self.done == 0 {
            self.fill_special(Special::Zeros)?;
        }
        self.store_box(ranges, bytes, |schunk, number, mut chunk| {
            chunk.shrink_to_fit();
            schunk.put(vec![(number, chunk.into())])?;
            Ok(Vec::new())
        })
    }

    /// Stores the items. `produce` passes them to its argument in C order, in parts of any length. They are collected until
    /// they fill the chunks at one coordinate on the first axis.
    fn in_order<T: Element>(
        &mut self,
        produce: impl FnOnce(&mut Put<'_, T>) -> Result<()>,
    ) -> Result<()> {
        let (shape, chunk) = (self.geometry.shape(), self.geometry.chunk_shape());
        let (mut rows, mut slab) = (whole(shape), Vec::new());
        let move_to = |rows: &mut Ranges, start: u64| {
            if let Some(first) = rows.first_mut() {
                *first = start..shape[0].min(start + chunk[0]);
            }
        };
        move_to(&mut rows, 0);
        produce(&mut |mut items| {
            while !items.is_empty() {
                let count = len_of_box(&rows) as usize;
                let (part, rest) = items.split_at(items.len().min(count - slab.len()));
                reserve(&mut slab, part.len()).doing(MAKE)?;
                slab.extend_from_slice(part);
                items = rest;
                if slab.len() == count {
                    self.store_box(&rows, &bytes_of(&slab), push)?;
                    slab.clear();
                    let end = rows.first().map_or(0, |first| first.end);
                    move_to(&mut rows, end);
                }
            }
            Ok(())
        })
    }

    fn store_box(&mut self, ranges: &[Range<u64>], bytes: &[u8], store: StoreChunk) -> Result<()> {
        let (geometry, region) = (self.geometry, Region::of_box(ranges.iter().cloned()));
        let item = ItemPart::whole(geometry.typesize());
        self.store_all(&Source::new(Plan::of_region(geometry, &region), item, bytes), store)
    }

    fn store_all(&mut self, source: &Source<'_, '_>, store: StoreChunk) -> Result<()> {
        let numbers: Vec<usize> = source.plan().chunk_numbers().collect();
        let data: &ChunkData<'_, '_> =
            &|team, scratch, number| team.fill(source, number, scratch, |_| Ok(()));
        self.pack(numbers.len(), &|number| numbers[number], data, store)
    }

    /// Compresses `count` chunks, and stores them in order. `index` returns the index of each chunk in the array.
    fn pack(
        &mut self,
        count: usize,
        index: &(dyn Fn(usize) -> usize + Sync),
        data: &ChunkData<'_, '_>,
        store: StoreChunk,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let Self { schunk, geometry, readings, progress, writers, done, .. } = self;
        let team = writers.team(schunk, geometry, count)?.beside(readings.gates());
        let data = |scratch: &mut Scratch, number| data(&team, scratch, number);
        let mut number = 0;
        team.pack(index, data, |chunk| {
            let spare = store(schunk, index(number), chunk)?;
            (number, *done) = (number + 1, *done + 1);
            if progress.is_set() {
                // The closure may use the sources, which are being read.
                let arrays = readings.arrays().iter();
                let _calling: Vec<_> = arrays.map(|array| array.schunk.calling()).collect();
                progress.report(*done, geometry.nchunks()).doing(MAKE)?;
            }
            Ok(spare)
        })
    }

    fn fill_special(&mut self, special: Special) -> Result<()> {
        let items = self.geometry.chunk_len() / self.geometry.typesize();
        let all = items as u64 * self.geometry.nchunks();
        if all > 0 { self.schunk.fill(special, all, items) } else { Ok(()) }
    }

    /// If the view is the entire array, copies its variable-length metalayers.
    pub(crate) fn copy_vlmeta(&mut self, view: &NDArrayView<'_>) -> Result<()> {
        match view.is_array() {
            true => view.array.schunk.copy_vlmetalayers_to(self.schunk),
            false => Ok(()),
        }
    }
}

/// Stores a compressed chunk with this index, and returns its buffer if it can be reused.
type StoreChunk = fn(&mut SChunk, usize, Vec<u8>) -> Result<Vec<u8>>;

fn push(schunk: &mut SChunk, _: usize, chunk: Vec<u8>) -> Result<Vec<u8>> {
    schunk.push_made(chunk)
}

impl NDArrayBuilder {
    /// Sets the chunk shape in items. By default, the chunk shape is computed from the shape, the typesize, the [cache
    /// sizes](Self::cache_sizes) and the block shape, if one is set.
    ///
    /// If the array will grow, set the chunk shape, because the default depends on the shape at creation: an array that
    /// is created with one row gets chunks of one row. If an axis has size 0 at creation, the default chunks have up to
    /// 512 KiB; if one row is larger than 512 KiB, a default chunk contains one row or a part of a row.
    pub fn chunk_shape(mut self, shape: impl PerAxis) -> Self {
        self.chunk_shape = Some(side(&shape));
        self
    }

    /// Sets the block shape in items. By default, the block shape is computed from the typesize, the [cache
    /// sizes](Self::cache_sizes) and the chunk shape. If no chunk shape is set, the shape of the array is used instead.
    pub fn block_shape(mut self, shape: impl PerAxis) -> Self {
        self.block_shape = Some(side(&shape));
        self
    }

    /// Sets the CPU cache sizes from which automatic chunk and block shapes are computed.
    ///
    /// The default sizes are constants, so that a program creates the same file on every machine. Python uses the cache
    /// sizes of the current machine, which [`CacheSizes::detect`] returns.
    pub fn cache_sizes(mut self, caches: CacheSizes) -> Self {
        self.caches = caches;
        self
    }

    /// Sets the compression parameters, including the number of threads. The typesize and the block size in `params`
    /// are ignored: the dtype determines the typesize, and the block shape determines the block size.
    ///
    /// The default is [`CParams::default`], with these exceptions:
    /// - For Unicode text (such as `<U10`), the default filter is [`Filter::ShuffleBytes(4)`](Filter::ShuffleBytes), as
    ///   in Python. 4 bytes is the size of a character.
    /// - A [`copy`](Self::copy) of an entire array uses the parameters of the source by default.
    /// - [`concatenate`](Self::concatenate) uses the parameters of the first source by default, if this source is an
    ///   entire array.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.options = self.options.cparams(params).for_array();
        self
    }

    /// Sets the dtype of the new array, as text, and the size of an item in bytes. Only items that are not of a Rust
    /// type need it: the bytes of items ([`RawItems`](crate::RawItems)), [`special`](Self::special) items, and the items
    /// of [`from_chunk_fn`](Self::from_chunk_fn). The builder does not check that `typesize` is the size of the dtype.
    ///
    /// Items of a Rust type must have this dtype, if it is set. Copies of arrays ignore it.
    ///
    /// ```
    /// use blosc2::{NDArray, RawItems};
    ///
    /// let array = NDArray::builder().dtype(">u2", 2).from_slice(RawItems(&[0, 1, 0, 2]), 2)?;
    /// assert_eq!((array.dtype_str(), array.typesize()), (Some(">u2"), 2));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn dtype(mut self, text: impl fmt::Display, typesize: usize) -> Self {
        self.dtype = Some((text.to_string(), typesize));
        self
    }

    /// Sets the number (0 to 127) of the notation in which the text of the [`dtype`](Self::dtype) is stored. The
    /// default, 0, is NumPy's notation. C: `dtype_format`.
    ///
    /// [`copy`](Self::copy) and [`concatenate`](Self::concatenate) ignore this setting, and use the number of the first
    /// source.
    ///
    /// If the number is not 0, this crate does not parse the text: [`NDArray::dtype`] returns `None`, and items can be
    /// read only as bytes. Python does not open the array.
    ///
    /// ```
    /// use blosc2::{NDArray, RawItems};
    ///
    /// let builder = NDArray::builder().dtype_format(1).dtype("rgb24", 3);
    /// let array = builder.from_slice(RawItems(&[0; 6]), 2)?;
    /// assert_eq!((array.dtype_str(), array.info().dtype_format), (Some("rgb24"), 1));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// If the number is greater than 127, creation fails with [`ErrorKind::InvalidArgument`].
    pub fn dtype_format(mut self, format: u8) -> Self {
        self.dtype_format = format;
        self
    }

    /// Sets a closure that reports progress: it is called after each chunk of the new array, with the number of
    /// completed chunks and the total number of chunks.
    ///
    /// Only methods that create an array chunk by chunk call the closure:
    /// - [`copy`](Self::copy), [`cast`](Self::cast), [`map`](Self::map), and
    ///   [`concatenate`](Self::concatenate);
    /// - [`from_fn`](Self::from_fn), [`arange`](Self::arange), [`linspace`](Self::linspace) and
    ///   [`from_chunk_fn`](Self::from_chunk_fn);
    /// - [`reshape`](Self::reshape), [`broadcast_to`](Self::broadcast_to), [`diff`](Self::diff) and
    ///   [`take_along_axis`](Self::take_along_axis);
    /// - [`cumulative_sum`](Self::cumulative_sum), [`cumulative_prod`](Self::cumulative_prod), [`matmul`](Self::matmul)
    ///   and [`tensordot`](Self::tensordot), which complete the chunks in another order;
    /// - [`sort`](Self::sort), [`argsort`](Self::argsort), [`unique`](Self::unique) and
    ///   [`unique_counts`](Self::unique_counts), which read all items before the first chunk;
    /// - [`LazyExpr::create`](crate::compute::LazyExpr::create).
    ///
    /// The closure runs on the thread that called the method. If the closure returns an error, creation stops and fails
    /// with [`ErrorKind::Callback`], and no file is created or replaced.
    ///
    /// ```
    /// use blosc2::{ErrorKind, NDArray};
    ///
    /// let builder = NDArray::builder().chunk_shape(10).progress(|done, total| match done {
    ///     0..3 => Ok(println!("{done} of {total} chunks")),
    ///     _ => Err("stopped by the user"),
    /// });
    /// assert_eq!(builder.clone().arange(0, 30, 1).unwrap_err().kind(), ErrorKind::Callback);
    /// assert_eq!(builder.arange(0, 20, 1)?.len(), 20);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn progress<E: Into<BoxError>>(
        mut self,
        report: impl Fn(u64, u64) -> std::result::Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.progress = Progress::new(report);
        self
    }

    /// Sets the size in bytes of the items that an operation on arrays larger than memory holds at the same time. The
    /// default is 64 MiB. More memory makes the operation faster: data is read fewer times.
    ///
    /// These methods use this setting: [`sort`](Self::sort), [`argsort`](Self::argsort), [`unique`](Self::unique),
    /// [`unique_counts`](Self::unique_counts), [`matmul`](Self::matmul), [`tensordot`](Self::tensordot),
    /// [`take_along_axis`](Self::take_along_axis). These methods use it if neighboring chunks of the new array need the same
    /// blocks of a source, for example if the axes have another order: [`copy`](Self::copy), [`cast`](Self::cast),
    /// [`map`](Self::map), [`concatenate`](Self::concatenate), [`reshape`](Self::reshape),
    /// [`broadcast_to`](Self::broadcast_to), [`diff`](Self::diff) and
    /// [`LazyExpr::create`](crate::compute::LazyExpr::create).
    ///
    /// The setting does not include the memory for compression, which is a few chunks of the source and of the new array
    /// for each thread, and an array that is created in memory. With a very small setting, an operation needs more memory
    /// than that: at least one chunk of the new array, and for `reshape` up to 16 MiB for each thread.
    pub fn max_memory(mut self, bytes: usize) -> Self {
        self.max_memory = Some(bytes);
        self
    }

    /// Sets where the array is created. By default, the array is created in [memory](Target::memory). C: `urlpath`,
    /// `contiguous`. Python: `urlpath=path`.
    ///
    /// If the target is a custom storage backend or directory, and the builder is cloned, only one of the clones can create
    /// an array there.
    ///
    /// ```
    /// use blosc2::{NDArray, Target};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("numbers.b2nd");
    /// NDArray::builder().target(&path).zeros::<f32>([100, 100])?; // a file
    /// let directory = Target::from(folder.path().join("sparse.b2nd")).directory(true);
    /// NDArray::builder().target(directory).zeros::<f32>([100, 100])?;
    /// let array = NDArray::builder().target(Vec::new()).zeros::<f32>([100, 100])?;
    /// let bytes = array.into_schunk().into_cframe()?; // the bytes of a file
    /// assert_eq!(std::fs::read(&path)?, bytes);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[doc(alias("urlpath", "file", "directory", "storage", "folder", "contiguous"))]
    pub fn target(mut self, target: impl Into<Target>) -> Self {
        self.target = Some(Arc::new(Mutex::new(Some(target.into()))));
        self
    }

    /// Sets the options of the new array, and of the returned handle. A second call replaces the options of the first one,
    /// except the compression parameters.
    ///
    /// - [`replace`](OpenOptions::replace), [`checksums`](OpenOptions::checksums), [`meta`](OpenOptions::meta) and
    ///   [`vlmeta`](OpenOptions::vlmeta) apply to the creation.
    /// - [`locking`](OpenOptions::locking), [`durable`](OpenOptions::durable), [`dparams`](OpenOptions::dparams) and
    ///   [`max_read`](OpenOptions::max_read) apply to the returned handle.
    /// - [`limits`](OpenOptions::limits) apply to both. If the array has more chunks than the default of
    ///   [`Limits::chunks`](crate::Limits), a higher limit is needed to create the array, and later to open it. By default,
    ///   a copy of an array has the limits of the original.
    /// - [`cparams`](OpenOptions::cparams) replace the parameters that [`cparams`](Self::cparams) has set.
    /// - The array is always created and opened for reading and writing: `write`, `append`, `create` and `create_new` have
    ///   no effect. The dtype and the chunk shape determine the typesize and the chunk size.
    ///
    /// ```
    /// use blosc2::{NDArray, OpenOptions};
    ///
    /// let options = OpenOptions::new().checksums(true).vlmeta("author", b"me");
    /// let array = NDArray::builder().options(&options).zeros::<f32>([100, 100])?;
    /// assert!(array.schunk().info().has_checksums);
    /// assert_eq!(array.vlmeta().get("author")?.unwrap(), b"me");
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn options(mut self, options: impl Borrow<OpenOptions>) -> Self {
        let cparams = self.options.cparams.take();
        self.options = options.borrow().clone().for_array();
        self.options.cparams = self.options.cparams.or(cparams);
        self
    }

    /// Opens the array at the builder's [target](Self::target) for reading and writing. If the path does not exist, or a
    /// custom storage backend or directory contains no data, creates the array by calling `create`. Python: `mode="a"`.
    ///
    /// `create` receives this builder, and calls one of the methods that create an array. If another process creates
    /// the file at the same time, this method opens that file.
    ///
    /// The compression parameters apply to existing and new arrays, and so do these [options](Self::options):
    /// decompression parameters, `locking`, `durable`, `recover`, `limits` and `max_read`. Dtype, shapes and metalayers
    /// apply only to a new array. If another program may have created the array, check its dtype, shapes and metalayers.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("log.b2nd");
    /// for run in 1..=2 {
    ///     let builder = NDArray::builder().target(&path).chunk_shape((1000, 2));
    ///     let mut log = builder.open_or_create(|builder| builder.zeros::<f64>((0, 2)))?;
    ///     log.append(0, &[20.5, 21.0])?;
    ///     assert_eq!(log.shape(), [run, 2]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Besides the [errors of opening](NDArray#errors-of-opening) and the errors of `create`:
    /// - [`ErrorKind::InvalidArgument`]: [`OpenOptions::replace`] is set.
    #[doc(alias("require_dataset", "mode", "append"))]
    pub fn open_or_create(self, create: impl FnOnce(Self) -> Result<NDArray>) -> Result<NDArray> {
        let Some(slot) = self.target.clone() else { return create(self) };
        if self.options.replace {
            let detail = "the builder has `replace` set";
            return Err(Error::new(ErrorKind::InvalidArgument, "open or create an array", detail));
        }
        let options = self.options.clone().write(true);
        let open = || NDArray::from_schunk(options.open(taken(&slot)?)?);
        let exists = || slot.lock().as_ref().map_or(Ok(true), Target::exists);
        if exists()? {
            return open();
        }
        match create(self) {
            // Another process created it first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => match open() {
                // Another path exists, or a link without a target.
                Err(missing) if missing.kind() == ErrorKind::NotFound => Err(error),
                opened => opened,
            },
            made => made,
        }
    }

    /// Creates an array from items. Python: `asarray`. C: `b2nd_from_cbuffer`.
    ///
    /// The items are a slice in C order, or one of the other types that [`ItemSource`] lists. The bytes of items
    /// ([`RawItems`](crate::RawItems)) need a [`dtype`](Self::dtype). A view of the crate `ndarray` must have this
    /// shape; [`copy`](Self::copy) takes the shape from the view.
    pub fn from_slice<'s>(
        self,
        items: impl ItemSource<'s>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        self.create_of(items.into_items(), &sizes(&shape, "shape").doing(MAKE)?)
    }

    pub(super) fn create_of(mut self, items: Given<'_>, shape: &[u64]) -> Result<NDArray> {
        let (dtype, typesize) = self.dtype_of(&items)?;
        let order = self.order(shape, &dtype, typesize)?;
        #[cfg(feature = "ndarray")]
        if let Given::Strided(strided, _) = &items
            && strided.shape() == shape
        {
            return order.make_of(|plan| strided.source(plan, ItemPart::whole(typesize)));
        }
        if let Some(found) = items.shape()
            && found != shape
        {
            let detail = format!("the items have the shape {found:?}, the array {shape:?}");
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let bytes = items.into_bytes()?;
        // `order` has checked that the number of items can be computed.
        let expected = order.geometry.len().checked_mul(typesize as u64);
        if expected != Some(bytes.len() as u64) {
            let found = bytes.len();
            let detail = format!(
                "an array of shape {shape:?} with items of {typesize} bytes has {} bytes, got {found}",
                expected.map_or("too many".to_owned(), |len| len.to_string())
            );
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        order.make_of(|plan| Source::new(plan, ItemPart::whole(typesize), &bytes))
    }

    /// Returns the text of the dtype of a new array with items of a Rust type, and the size of an item.
    pub(crate) fn dtype_of_type(&self, item: ItemType) -> Result<(String, usize)> {
        let asked = (item.dtype)();
        let Some((text, size)) = &self.dtype else { return Ok((asked.to_string(), item.size)) };
        let differs = self.parsed(text).is_some_and(|dtype| !dtype.is_equivalent(&asked));
        if differs || *size != item.size {
            let expected = item.size;
            let detail = format!(
                "the builder sets the dtype {text} of {size} bytes, the items are {asked} of {expected} bytes"
            );
            return Err(Error::new(ErrorKind::TypeMismatch, MAKE, detail));
        }
        Ok((text.clone(), *size))
    }

    fn dtype_of_bytes(&self) -> Result<(String, usize)> {
        self.dtype.clone().ok_or_else(|| {
            let detail = "the items are bytes, and the builder sets no dtype";
            Error::new(ErrorKind::InvalidArgument, MAKE, detail)
        })
    }

    /// Returns the text of the dtype of a new array with these items, and the size of an item. The text of the dtype of
    /// a view keeps its notation.
    pub(super) fn dtype_of(&mut self, items: &Given<'_>) -> Result<(String, usize)> {
        if let Given::View(view) = items {
            let (text, format) = view.dtype_text();
            self.dtype_format = format;
            return Ok((text, view.part().len));
        }
        match items.item_type() {
            Some(item) => self.dtype_of_type(item),
            None => self.dtype_of_bytes(),
        }
    }

    /// Creates an array from the items of an iterator, in C order. Python: `fromiter`, which ignores items beyond the
    /// shape.
    ///
    /// Items are collected in memory until they fill a row of chunks: all chunks at the same coordinate on the first
    /// axis. Then these chunks are compressed and written.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the iterator returns fewer or more items than the shape has.
    #[doc(alias = "fromiter")]
    pub fn from_iter<T: Element>(
        self,
        items: impl IntoIterator<Item = T>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        let mut items = items.into_iter();
        let shape = &sizes(&shape, "shape").doing(MAKE)?[..];
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T>())?;
        let order = self.order(shape, &dtype, typesize)?;
        order.make(Box::new(|new| {
            let len = new.geometry.len();
            let wrong = |what: &str| {
                let detail = format!("the iterator has {what} than the {len} items of the shape");
                Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail))
            };
            let (mut left, mut part) = (len, Vec::new());
            new.in_order(|put| {
                while left > 0 {
                    part.clear();
                    part.extend(items.by_ref().take(left.min(PART) as usize));
                    if part.is_empty() {
                        return wrong("fewer");
                    }
                    left -= part.len() as u64;
                    put(&part)?;
                }
                if items.next().is_some() { wrong("more") } else { Ok(()) }
            })
        }))
    }

    /// Creates an array from sources, which it owns until the array is complete. `fill` receives the sources and stores
    /// the items.
    pub(crate) fn create_from<S: Sources>(
        self,
        shape: &[u64],
        (dtype, typesize): (&str, usize),
        sources: S,
        fill: impl FnOnce(&S, &mut NewArray<'_>) -> Result<()>,
    ) -> Result<NDArray> {
        let order = self.limited_as(sources.readings()).order(shape, dtype, typesize)?;
        let order = &order;
        let fill =
            move |store| order.fill(store, sources.readings(), Box::new(|new| fill(&sources, new)));
        order.builder.place(&order.cparams, Box::new(fill))
    }

    /// Creates a one-dimensional array of `len` items. `produce` passes the items to its last argument in order, in
    /// parts of any length.
    pub(crate) fn in_order<T: Element, S: Sources>(
        self,
        len: u64,
        sources: S,
        produce: impl FnOnce(&S, &mut Put<'_, T>) -> Result<()>,
    ) -> Result<NDArray> {
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T>())?;
        self.create_from(&[len], (&dtype, typesize), sources, |sources, new| {
            new.in_order(|put| produce(sources, put))
        })
    }

    /// Checks that an array of items of type `T` and of one dimension with at most `most` items can be created.
    pub(crate) fn check_order<T: Element>(&self, most: u64) -> Result<()> {
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T>())?;
        let order = |len: u64| self.clone().order(&[len], &dtype, typesize).map(drop);
        // An array of many items can have too many chunks, and an array of few items too large blocks.
        order(most).or_else(|error| order(most.min(1)).map_err(|_| error))
    }

    /// Creates an array of items of type `T` at the target; see [`place`](Self::place).
    pub(crate) fn place_of<T: Element, S: Sources>(
        &self,
        sources: S,
        fill: impl FnOnce(Box<dyn Store>, &S) -> Result<SChunk>,
    ) -> Result<NDArray> {
        let (dtype, _) = self.dtype_of_type(ItemType::of::<T>())?;
        self.place(&self.cparams_for(&dtype), Box::new(move |store| fill(store, &sources)))
    }

    /// Fills the store of a new one-dimensional array of `len` items; see [`in_order`](Self::in_order).
    pub(crate) fn fill_in_order<T: Element>(
        &self,
        store: Box<dyn Store>,
        readings: &Readings<'_>,
        len: u64,
        produce: impl FnOnce(&mut Put<'_, T>) -> Result<()>,
    ) -> Result<SChunk> {
        let (dtype, typesize) = self.dtype_of_type(ItemType::of::<T>())?;
        let order = self.clone().order(&[len], &dtype, typesize)?;
        order.fill(store, readings, Box::new(|new| new.in_order(produce)))
    }

    pub(crate) fn memory(&self) -> usize {
        self.max_memory.unwrap_or(MAX_MEMORY)
    }

    pub(crate) fn threads(&self) -> usize {
        let threads = self.options.cparams.as_ref().map_or(Threads::ONE, |params| params.threads);
        threads.available()
    }

    /// The directory for temporary files: that of the target, if the target is a path.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        let parent = self.path()?.parent()?.to_owned();
        Some(if parent.as_os_str().is_empty() { ".".into() } else { parent })
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        self.target.as_ref()?.lock().as_ref()?.path().map(Path::to_owned)
    }

    /// Creates an array of zeros. The items are stored as special chunks without data. C: `b2nd_zeros`. Python:
    /// `zeros`.
    #[doc(alias = "b2nd_zeros")]
    pub fn zeros<T: Element>(mut self, shape: impl PerAxis) -> Result<NDArray> {
        self.dtype = Some(self.dtype_of_type(ItemType::of::<T>())?);
        self.special(Special::Zeros, shape)
    }

    /// Creates an array of zeros, NaN or uninitialized items of any [`dtype`](Self::dtype). The items are stored as
    /// special chunks without data; uninitialized items read as zeros. C: `b2nd_zeros`, `b2nd_nans`, `b2nd_uninit`.
    /// Python: `zeros`, `nans`, `uninit`.
    ///
    /// [`Special::Nan`] needs a floating-point dtype of 4 or 8 bytes, in any byte order. In big-endian byte order, each
    /// chunk stores NaN once, as a repeated value.
    ///
    /// ```
    /// use blosc2::{NDArray, Special};
    ///
    /// let array = NDArray::builder().dtype("<f4", 4).special(Special::Nan, 3)?;
    /// assert!(array.item::<f32>(2)?.is_nan());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the builder sets no dtype; `special` is [`Special::Value`]; or `special` is
    ///   [`Special::Nan`], and the dtype is not a floating-point dtype of 4 or 8 bytes.
    #[doc(alias("b2nd_nans", "b2nd_uninit", "nans", "uninit", "empty"))]
    pub fn special(self, special: Special, shape: impl PerAxis) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape").doing(MAKE)?[..];
        let (dtype, typesize) = self.dtype_of_bytes()?;
        let dtype = &*dtype;
        match special {
            Special::Value => {
                let detail = "expected zeros, NaN or uninitialized items, got a value";
                return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
            }
            Special::Nan => {
                let float = self.parsed(dtype).filter(|dtype| {
                    dtype.kind() == Some(Kind::Float)
                        && [4, 8].contains(&typesize)
                        && dtype.size() == typesize
                });
                let Some(float) = float else {
                    let detail =
                        format!("NaN needs items of f4 or f8, got {dtype} of {typesize} bytes");
                    return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
                };
                // The items of a special chunk of NaN are little-endian.
                if float.is_native() == cfg!(target_endian = "big") {
                    return match typesize {
                        4 => self.full(RawItems(&f32::NAN.to_be_bytes()), shape),
                        _ => self.full(RawItems(&f64::NAN.to_be_bytes()), shape),
                    };
                }
            }
            Special::Zeros | Special::Uninit => {}
        }
        self.order(shape, dtype, typesize)?.make(Box::new(|new| new.fill_special(special)))
    }

    /// Creates an array in which all items are equal to `item`. Each chunk stores the item once. C: `b2nd_full`.
    /// Python: `full`.
    ///
    /// `item` is a value such as `0.5f32`, or the bytes of one item of any [`dtype`](Self::dtype):
    /// `full(RawItems(&bytes), shape)`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `item` is not one item.
    #[doc(alias = "b2nd_full")]
    pub fn full<'s>(mut self, item: impl ItemSource<'s>, shape: impl PerAxis) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape").doing(MAKE)?[..];
        let item = item.into_items();
        let (dtype, typesize) = self.dtype_of(&item)?;
        let item = &item.into_bytes()?[..];
        if item.len() != typesize {
            let found = item.len();
            let detail = format!("expected one item of {typesize} bytes, got {found} bytes");
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let dtype = &*dtype;
        let mut cparams = self.cparams_for(dtype);
        if cparams.codec.needs_array() || cparams.filters.iter().any(|each| each.needs_array()) {
            // A repeated value is not compressed. It does not need the codec and the filters.
            cparams = CParams::new();
        }
        self.order(shape, dtype, item.len())?.make(Box::new(|new| {
            let geometry = new.geometry;
            let count = geometry.chunk_len() / item.len();
            let blocksize = geometry.block_len().max(item.len());
            let params = cparams.clone().typesize(item.len()).blocksize(blocksize);
            let chunk = crate::Chunk::repeat(item, count, &params)?;
            (0..geometry.nchunks())
                .try_for_each(|_| new.schunk.push_made(chunk.as_bytes().to_vec()).map(drop))
        }))
    }

    /// Creates an array of any dtype by calling `fill` for each chunk. `fill` writes the bytes of the items of the
    /// chunk. If the array is created in a file or directory, only a few chunks are in memory at the same time.
    ///
    /// `fill` is called once for each chunk. `fill` receives the range of indices of the chunk on each axis, clipped to
    /// the shape, and a zeroed buffer for the items in these ranges, in C order. If `fill` panics, the panic propagates
    /// to the caller.
    ///
    /// [`CParams::threads`](crate::CParams::threads) sets the number of threads that call `fill`. By default, one
    /// thread calls `fill` for the chunks in C order. The array has the [`dtype`](Self::dtype) of the builder.
    ///
    /// ```
    /// use blosc2::{NDArray, RawItems};
    ///
    /// // Any source that returns a box of items, such as a detector or another format.
    /// let source = NDArray::builder().from_fn(&[30, 20], |[row, column]| (100 * row + column) as u16)?;
    /// let copy = NDArray::builder().chunk_shape((8, 8)).dtype("<u2", 2).from_chunk_fn((30, 20), |ranges, bytes| {
    ///     source.read_into(ranges, RawItems(bytes))
    /// })?;
    /// assert_eq!(copy.item::<u16>((29, 19))?, 2919);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::Callback`]: `fill` returned an error; [`Error::get_ref`](crate::Error::get_ref) returns it.
    pub fn from_chunk_fn<E: Into<BoxError>>(
        self,
        shape: impl PerAxis,
        fill: impl Fn(&[Range<u64>], &mut [u8]) -> std::result::Result<(), E> + Sync,
    ) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape").doing(MAKE)?[..];
        let (dtype, typesize) = self.dtype_of_bytes()?;
        self.create_from(shape, (&dtype, typesize), Readings::default(), |_, new| {
            new.by_boxes(Vec::new(), &|_, ranges, bytes| {
                fill(ranges, bytes).map_err(|error| {
                    let error = error.into();
                    let detail = format!("the closure that fills {ranges:?} failed: {error}");
                    Reason::from_closure(detail, Some(error)).doing(MAKE)
                })
            })
        })
    }

    /// Adds the metalayers of an array, except the metalayer of its shapes.
    pub(super) fn meta_from(mut self, source: &NDArray) -> Result<Self> {
        for layer in source.schunk.meta().iter() {
            let (name, content) = layer?;
            if !self.has_meta(&name) && ![NAME, OLD_NAME].contains(&name.as_str()) {
                self.options = self.options.meta(&name, content);
            }
        }
        Ok(self)
    }

    fn has_meta(&self, name: &str) -> bool {
        self.options.meta.iter().any(|(other, _)| other == name)
    }

    /// Uses the limits of the first source, if the builder sets none.
    pub(crate) fn limited_as(mut self, sources: &Readings<'_>) -> Self {
        let limits = &mut self.options.limits;
        *limits = limits.or_else(|| sources.arrays().first().map(|array| array.schunk.limits()));
        self
    }

    /// Uses the chunk and block shapes of an array, if the builder sets none of them.
    pub(crate) fn cut_as(mut self, source: &NDArray) -> Self {
        if self.chunk_shape.is_none() && self.block_shape.is_none() {
            self.chunk_shape = Some(source.chunk_shape().to_vec());
            self.block_shape = Some(source.block_shape().to_vec());
        }
        self
    }

    /// Uses the compression parameters of an array, if the builder sets none.
    pub(super) fn compressed_as(mut self, source: &NDArray) -> Self {
        self.options.cparams.get_or_insert_with(|| source.schunk.info().cparams);
        self.options = self.options.for_array();
        self
    }

    pub(super) fn has_cparams(&self) -> bool {
        self.options.cparams.is_some()
    }

    pub(super) fn order(self, shape: &[u64], dtype: &str, typesize: usize) -> Result<Order> {
        let error = |kind, detail: String| Err(Error::new(kind, MAKE, detail));
        let invalid = |detail| error(ErrorKind::InvalidArgument, detail);
        let too_large = |detail| error(ErrorKind::TooLarge, detail);
        let ndim = shape.len();
        if self.parsed(dtype).is_some_and(|dtype| dtype.has_pointers()) {
            let detail = format!("items `{dtype}` are pointers to Python objects, not data");
            return error(ErrorKind::Unsupported, detail);
        }
        if self.dtype_format > MAX_DTYPE_FORMAT {
            let found = self.dtype_format;
            return invalid(format!("a dtype format is at most {MAX_DTYPE_FORMAT}, got {found}"));
        }
        if let Some(name) = [NAME, OLD_NAME].into_iter().find(|name| self.has_meta(name)) {
            return invalid(format!(
                "the metalayer `{name}` is reserved for the shapes of the array"
            ));
        }
        let cparams = self.cparams_for(dtype);
        let mut params = cparams.resolve(typesize, Purpose::Array)?;
        if ndim > MAX_NDIM {
            return invalid(format!("an array has at most {MAX_NDIM} dimensions, got {ndim}"));
        }
        for (name, given) in [("chunk", &self.chunk_shape), ("block", &self.block_shape)] {
            let Some(given) = given else { continue };
            if given.iter().any(|&part| i32::try_from(part).is_err()) {
                return too_large(format!(
                    "a {name} shape of {given:?}: expected sizes below 2^31"
                ));
            }
            let is_zero = |(&part, &size): (&u64, &u64)| part == 0 && size > 0;
            if given.len() != ndim || given.iter().zip(shape).any(is_zero) {
                return invalid(format!(
                    "a {name} shape of {given:?} does not fit the shape {shape:?}"
                ));
            }
        }
        let (chunks, blocks) = partition(
            shape,
            typesize as u64,
            (self.chunk_shape.as_deref(), self.block_shape.as_deref()),
            &self.caches,
        );
        if chunks.iter().chain(&blocks).any(|&side| i32::try_from(side).is_err()) {
            return too_large(format!("a chunk shape of {chunks:?}: expected sizes below 2^31"));
        }
        for (axis, (&block, &chunk)) in blocks.iter().zip(&chunks).enumerate() {
            if block > chunk || block == 0 && chunk > 0 {
                let most = if block > 0 {
                    format!("at most {chunk}, as a chunk")
                } else {
                    "at least 1".into()
                };
                return invalid(format!(
                    "along axis {axis} a block has {block} items, expected {most}"
                ));
            }
        }
        check_plugins(&params, ndim, typesize)?;
        if dtype.len() > MAX_TEXT_LEN {
            let len = dtype.len();
            let detail =
                format!("a dtype of {len} bytes: readers accept at most {MAX_TEXT_LEN} bytes");
            return too_large(detail);
        }
        let meta = Meta {
            shape: stored_shape(shape).doing(MAKE)?,
            chunks: stored_sizes(&chunks),
            blocks: stored_sizes(&blocks),
            dtype: None,
            dtype_format: self.dtype_format,
        };
        // Readers with these limits, usually the default, open the array.
        let geometry = cut(&meta, typesize, self.options.limits.unwrap_or_default().chunks);
        let geometry = geometry.map_err(|error| Error::new(ErrorKind::TooLarge, MAKE, error))?;
        let block_len = u32::try_from(geometry.block_len()).unwrap_or(u32::MAX);
        if block_len > MAX_BLOCKSIZE {
            return too_large(format!("a block of shape {blocks:?} is too large"));
        }
        params.format.blocksize = Some(block_len).filter(|&len| len > 0);
        Ok(Order { geometry, params, cparams, dtype: dtype.to_owned(), builder: self })
    }

    fn parsed(&self, dtype: &str) -> Option<Dtype> {
        if self.dtype_format == NUMPY_FORMAT { Dtype::parse(dtype).ok() } else { None }
    }

    fn cparams_for(&self, dtype: &str) -> CParams {
        self.options.cparams.clone().unwrap_or_else(|| {
            let is_text = |dtype: Dtype| dtype.kind() == Some(Kind::Unicode);
            match self.parsed(dtype).is_some_and(is_text) {
                true => CParams::new().filters(&[Filter::ShuffleBytes(CHARACTER)]),
                false => CParams::new(),
            }
        })
    }
}

/// The file stores the format as a 7-bit msgpack integer.
const MAX_DTYPE_FORMAT: u8 = 127;

/// The size in bytes of a character of NumPy's Unicode text.
const CHARACTER: u8 = 4;

/// Returns a chunk or block shape. Negative sizes become `u64::MAX`, which is rejected later as too large.
fn side(shape: &impl PerAxis) -> Vec<u64> {
    (0..shape.ndim()).map(|axis| u64::try_from(shape.along(axis)).unwrap_or(u64::MAX)).collect()
}

pub(super) struct Order {
    geometry: Geometry,
    params: Resolved,
    /// The parameters of the super-chunk. The geometry determines the sizes.
    cparams: CParams,
    dtype: String,
    builder: NDArrayBuilder,
}

impl Order {
    /// Creates the array from all its items. `source` returns the source that owns their plan.
    fn make_of<'m>(self, source: impl for<'p> Fn(Plan<'p>) -> Source<'m, 'p>) -> Result<NDArray> {
        self.make(Box::new(|new| {
            let (geometry, region) = (new.geometry, Region::whole(new.geometry.shape()));
            new.store_all(&source(Plan::of_region(geometry, &region)), push)
        }))
    }

    /// Creates the array from items in memory, without reports of the progress. `write` stores the chunks.
    fn make(mut self, write: Box<Write<'_>>) -> Result<NDArray> {
        self.builder.progress = Progress::default();
        let none = Readings::default();
        self.builder.place(&self.cparams, Box::new(|store| self.fill(store, &none, write)))
    }

    /// Creates the super-chunk in a store. `write` stores the chunks.
    fn fill(
        &self,
        store: Box<dyn Store>,
        readings: &Readings<'_>,
        write: Box<Write<'_>>,
    ) -> Result<SChunk> {
        let Self { geometry, params, cparams, dtype, builder } = self;
        let options = &builder.options;
        let limits = options.limits.unwrap_or_default();
        let (dtype, dtype_format) = (Some(dtype.clone()), builder.dtype_format);
        let own = Meta { dtype, dtype_format, ..meta_of(geometry) }.to_bytes().doing(MAKE)?;
        let metalayers: Vec<_> =
            [(NAME.to_owned(), own)].into_iter().chain(options.meta.clone()).collect();
        let chunksize = ChunkSize::new(geometry.chunk_len() as u32);
        let mut schunk =
            SChunk::with_params(params.clone(), store, &metalayers, chunksize, limits)?;
        options.start_checksums(&mut schunk)?;
        schunk.set_cparams(cparams)?;
        write(&mut NewArray {
            schunk: &mut schunk,
            geometry,
            readings,
            progress: &builder.progress,
            writers: ChunkWriters::default(),
            memory: builder.memory(),
            threads: builder.threads(),
            done: 0,
            end: geometry.nchunks(),
        })?;
        options.set_vlmeta(&mut schunk)?;
        schunk.finish()?;
        Ok(schunk)
    }
}

impl NDArrayBuilder {
    /// Creates an array with these parameters at the target. `fill` creates the super-chunk in the store that it receives.
    /// `fill` owns the sources, so that they are dropped before the target is replaced, which can be one of them.
    fn place(
        &self,
        cparams: &CParams,
        fill: Box<dyn FnOnce(Box<dyn Store>) -> Result<SChunk> + '_>,
    ) -> Result<NDArray> {
        let Self { options, target, .. } = self;
        let target = target.as_ref().map_or_else(|| Ok(Target::memory()), |slot| taken(slot))?;
        let mut schunk = match target.create(options.replace, options.safety(), fill).doing(MAKE)? {
            Created::Frame(schunk) => schunk,
            Created::At(path) => options.clone().write(true).replace(false).open(path)?,
        };
        if let Some(bytes) = options.max_read {
            schunk.set_max_read(bytes);
        }
        let mut array = NDArray::from_schunk(schunk)?;
        array.set_cparams(cparams)?;
        array.set_dparams(&options.dparams);
        Ok(array)
    }
}

/// Returns the target of a builder, whose clones share it.
fn taken(slot: &Mutex<Option<Target>>) -> Result<Target> {
    let mut slot = slot.lock();
    let target = slot.as_ref().and_then(Target::copied).or_else(|| slot.take());
    target.ok_or_else(|| {
        let detail = "a clone of this builder has used the custom storage or folder";
        Error::new(ErrorKind::AlreadyExists, MAKE, detail)
    })
}

/// Checks the requirements of array codecs and filters, because C's error does not name the requirement.
fn check_plugins(params: &Resolved, ndim: usize, typesize: usize) -> Result<()> {
    let floats = matches!(typesize, 4 | 8);
    let codec = Codec::from_code(params.format.codec);
    let needs = |what: &str, asks: &str| {
        let detail =
            format!("{what} needs {asks}, got {ndim} dimensions, items of {typesize} bytes");
        Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail))
    };
    match codec {
        Codec::Ndlz if ndim != 2 => return needs("ndlz", "2 dimensions"),
        Codec::ZfpAccuracy | Codec::ZfpPrecision | Codec::ZfpRate
            if !(1..=4).contains(&ndim) || !floats =>
        {
            return needs(&codec.to_string(), "1 to 4 dimensions of floats of 4 or 8 bytes");
        }
        _ => {}
    }
    for filter in &params.filters {
        match filter {
            Filter::Ndcell(side) | Filter::Ndmean(side)
                if *side == 0 || !(1..=8).contains(&ndim) =>
            {
                return needs(&filter.to_string(), "a side above 0 and 1 to 8 dimensions");
            }
            Filter::Ndmean(_) if !floats => {
                return needs(&filter.to_string(), "floats of 4 or 8 bytes");
            }
            _ => {}
        }
    }
    Ok(())
}
