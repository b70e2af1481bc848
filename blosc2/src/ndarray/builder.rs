//! Making arrays.

use std::borrow::Borrow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2_format::b2nd::{Geometry, Meta, NAME, OLD_NAME};
use blosc2_format::directory::FolderMut;
use blosc2_format::frame::ChunkSize;
use parking_lot::Mutex;
#[cfg(feature = "msgpack")]
use serde::Serialize;

use super::gather::Scratch;
use super::index::{PerAxis, sizes};
use super::partition::{CacheSizes, partition};
use super::plan::{Plan, c_order, chunk_ranges};
use super::region::Region;
use super::scatter::{Data, Source, Team, Writers};
use super::shape::meta_of;
use super::{NDArray, NUMPY_FORMAT, cut};
use crate::bytes::Storage;
use crate::dtype::Kind;
use crate::element::{Element, bytes_of};
use crate::gate::Gate;
use crate::params::{Purpose, Resolved};
#[cfg(feature = "msgpack")]
use crate::schunk::to_content;
use crate::schunk::{Memory, Store, files, new_store};
use crate::{
    CParams, Codec, DParams, Dtype, Error, ErrorKind, Filter, OpenOptions, Result, SChunk, Special,
};

pub(super) const MAKE: &str = "make an array";

/// What an array is to be like, and where. Made by [`NDArray::builder`].
///
/// It is in memory unless something else is said. A file or directory appears when it is complete; the array that is given
/// back can be changed.
///
/// ```
/// use blosc2::{CParams, Codec, NDArray};
///
/// let array = NDArray::builder()
///     .chunks(&[5, 10])
///     .blocks(&[5, 5])
///     .cparams(CParams::new().codec(Codec::Lz4))
///     .from_slice(&[1.0f64; 100], &[10, 10])?;
/// assert_eq!(array.schunk().nchunks(), 2);
///
/// let table = NDArray::builder().from_fn(&[9, 9], |[row, column]| (row + 1) * (column + 1))?;
/// assert_eq!(table.item::<u64>(&[6, 7])?, 56);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Clone, Default)]
#[must_use = "a builder makes nothing by itself"]
pub struct NDArrayBuilder {
    chunks: Option<Vec<u64>>,
    blocks: Option<Vec<u64>>,
    caches: CacheSizes,
    cparams: Option<CParams>,
    dparams: DParams,
    meta: Vec<(String, Vec<u8>)>,
    vlmeta: Vec<(String, Vec<u8>)>,
    place: Place,
    replace: bool,
    /// How the array in a new file is opened.
    options: OpenOptions,
    max_read: Option<u64>,
    dtype_format: u8,
}

/// The arrays that an array is made of, which are read meanwhile.
#[derive(Clone, Copy, Default)]
pub(super) struct Sources<'a> {
    pub(super) arrays: &'a [&'a NDArray],
    /// Whether the variable-length metalayers of the first one are copied.
    pub(super) vlmeta: bool,
}

/// Where an array is made.
#[derive(Clone, Default)]
enum Place {
    #[default]
    Memory,
    Buffer,
    File(PathBuf),
    Directory(PathBuf),
    /// A custom storage or folder, until an array is made there.
    Custom(Arc<Mutex<Option<MakeStore>>>),
}

/// Makes what an array is made in, which may replace what is there.
type MakeStore = Box<dyn FnOnce(bool) -> Result<(Box<dyn Store>, Option<Gate>)> + Send>;

impl NDArrayBuilder {
    /// Sets the chunk shape, in items; automatic otherwise.
    pub fn chunks(mut self, chunks: impl PerAxis) -> Self {
        self.chunks = Some(side(&chunks));
        self
    }

    /// Sets the block shape, in items; automatic otherwise.
    pub fn blocks(mut self, blocks: impl PerAxis) -> Self {
        self.blocks = Some(side(&blocks));
        self
    }

    /// Sets the sizes of the caches by which automatic shapes go. By default they are fixed, so that the same array
    /// makes the same file everywhere; Python takes those of the machine, as [`CacheSizes::detect`] does.
    pub fn cache_sizes(mut self, caches: CacheSizes) -> Self {
        self.caches = caches;
        self
    }

    /// Sets how chunks are compressed, and on how many threads. Typesize and block size come from items and block
    /// shape.
    ///
    /// Where this is not called they are those of [`CParams::default`], but that text of four-byte characters (`<U10`)
    /// is shuffled by characters, as in Python: with [`Filter::ShuffleBytes`] of 4; and [copies](Self::copy) of whole
    /// arrays have the parameters of their source.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }

    /// Sets how the array that is given back is read.
    pub fn dparams(mut self, params: impl Borrow<DParams>) -> Self {
        self.dparams = params.borrow().clone();
        self
    }

    /// Sets the format of the text of the dtype; 0 by default, which is NumPy's notation. C's `dtype_format`.
    ///
    /// It is for methods that take this text, such as [`from_bytes`](Self::from_bytes); the others write NumPy's notation.
    /// A text in another format is stored and not interpreted: [`NDArray::dtype`] is `None`, items are read as bytes, and
    /// Python refuses the array. Copies have the format of their source.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let builder = NDArray::builder().dtype_format(1);
    /// let array = builder.from_bytes(&[0; 6], &[2], "rgb24", 3)?;
    /// assert_eq!((array.dtype_str(), array.dtype_format()), (Some("rgb24"), 1));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// A format over 127, which the file cannot hold, is [`ErrorKind::InvalidArgument`] when the array is made.
    pub fn dtype_format(mut self, format: u8) -> Self {
        self.dtype_format = format;
        self
    }

    /// Adds a metalayer of a fixed length.
    ///
    /// The bytes are stored as they are. Python takes the contents of metalayers for msgpack, and fails to read others;
    /// `meta_value`, with the feature `msgpack`, writes what it reads.
    pub fn meta(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.meta.push((name.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// Adds a metalayer of a fixed length with a value, written as
    /// [`MetalayersMut::set_value`](crate::super_chunk::MetalayersMut::set_value) does. Python's `meta={name: value}`. Needs the
    /// feature `msgpack`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::builder()
    ///     .meta_value("units", "kelvin")?
    ///     .vlmeta_value("tags", &["raw", "2024"])?
    ///     .from_slice(&[273.0f32; 6], &[2, 3])?;
    /// // Python: array.schunk.meta["units"], array.schunk.vlmeta["tags"]
    /// assert_eq!(array.meta().get_value::<String>("units")?.unwrap(), "kelvin");
    /// assert_eq!(array.vlmeta().get_value::<Vec<String>>("tags")?.unwrap(), ["raw", "2024"]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::InvalidArgument`]: what [`Value::to_msgpack`](crate::Value::to_msgpack) refuses.
    #[cfg(feature = "msgpack")]
    pub fn meta_value<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Result<Self> {
        Ok(self.meta(name, to_content(name, value)?))
    }

    /// Adds a metalayer of variable length, or replaces the content of the one of this name.
    ///
    /// The bytes are stored as they are, compressed; as for [`meta`](Self::meta), Python takes them for msgpack.
    pub fn vlmeta(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
        self.vlmeta.push((name.to_owned(), content.as_ref().to_vec()));
        self
    }

    /// Adds a metalayer of variable length with a value; see [`meta_value`](Self::meta_value). Needs the feature
    /// `msgpack`.
    ///
    /// # Errors
    /// As for [`meta_value`](Self::meta_value).
    #[cfg(feature = "msgpack")]
    pub fn vlmeta_value<T: Serialize + ?Sized>(self, name: &str, value: &T) -> Result<Self> {
        Ok(self.vlmeta(name, to_content(name, value)?))
    }

    /// Makes the array in a new contiguous file.
    pub fn file(mut self, path: impl AsRef<Path>) -> Self {
        self.place = Place::File(path.as_ref().to_owned());
        self
    }

    /// Makes the array in a new directory, with a file for each chunk. Python's `contiguous=False`.
    pub fn directory(mut self, path: impl AsRef<Path>) -> Self {
        self.place = Place::Directory(path.as_ref().to_owned());
        self
    }

    /// Makes the array in memory as one contiguous frame, which [`SChunk::into_cframe`] returns without a copy. C's and
    /// Python's `contiguous=True` without a path.
    pub fn in_memory_frame(mut self) -> Self {
        self.place = Place::Buffer;
        self
    }

    /// Makes the array in a storage of the program's own, which has to be empty. Of a builder and its clones one can make
    /// an array there.
    pub fn storage(self, storage: impl Storage + 'static) -> Self {
        self.custom(Box::new(|replace| OpenOptions::new_storage(storage, replace)))
    }

    /// Makes the array in a custom folder, which has no index file yet, with a file for each chunk. Of a builder and its
    /// clones one can make an array there.
    pub fn folder<F>(self, folder: F) -> Self
    where
        F: FolderMut<File: Send + Sync + 'static> + 'static,
    {
        self.custom(Box::new(|replace| Ok((OpenOptions::new_folder(folder, replace)?, None))))
    }

    fn custom(mut self, make: MakeStore) -> Self {
        self.place = Place::Custom(Arc::new(Mutex::new(Some(make))));
        self
    }

    /// Sets whether a file may be replaced; otherwise what is at the path is left alone. At any moment there is
    /// the old one or the new one.
    pub fn replace(mut self, replace: bool) -> Self {
        self.replace = replace;
        self
    }

    /// Opens the array in its new file or directory with locks, so that several programs may change it at once; see
    /// [`OpenOptions::locking`]. Off by default. It has no effect in memory.
    pub fn locking(mut self, locking: bool) -> Self {
        self.options = self.options.locking(locking);
        self
    }

    /// Writes each later change of the array in its new file or directory to the device before it returns; see
    /// [`OpenOptions::durable`]. Off by default. The new file itself is written to the device in any case. It has no effect in memory.
    pub fn durable(mut self, durable: bool) -> Self {
        self.options = self.options.durable(durable);
        self
    }

    /// Rolls back or completes what a writer left that was stopped in the middle of a change, before
    /// [`open_or_create`](Self::open_or_create) opens its file; see [`OpenOptions::recover`]. Off by default;
    /// [`locking`](Self::locking) includes it.
    pub fn recover(mut self, recover: bool) -> Self {
        self.options = self.options.recover(recover);
        self
    }

    /// Sets the most bytes of memory that one read of the array may take for its result; see [`OpenOptions::max_read`].
    pub fn max_read(mut self, bytes: u64) -> Self {
        self.max_read = Some(bytes);
        self
    }

    /// Opens the array in the builder's file or directory for reading and writing, or makes it with `create` if there is
    /// none. Python's mode `a`.
    ///
    /// `create` gets this builder and calls one of the methods that make an array. Compression and decompression
    /// parameters, [`locking`](Self::locking), [`durable`](Self::durable), [`recover`](Self::recover) and
    /// [`max_read`](Self::max_read) apply in both cases, shapes and metalayers to a new array only. If another program
    /// makes the file at the same moment, that one is opened. An array in memory is always made.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("log.b2nd");
    /// for run in 1..=3 {
    ///     let builder = NDArray::builder().file(&path).locking(true);
    ///     let mut log = builder.open_or_create(|new| new.zeros::<f64>([0, 2]))?;
    ///     log.append(0, &[20.5, 21.0])?;
    ///     assert_eq!(log.shape(), [run, 2]);
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: there is something else than an array;
    /// - [`ErrorKind::Unfinished`]: its last change was not completed, without `locking` and `recover`;
    /// - [`ErrorKind::Busy`]: another handle of this program has it open for writing;
    /// - [`ErrorKind::InvalidArgument`]: with [`replace`](Self::replace), or in a custom storage or folder;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be read or made;
    /// - those of `create`.
    #[doc(alias("require_dataset", "mode", "append"))]
    pub fn open_or_create(self, create: impl FnOnce(Self) -> Result<NDArray>) -> Result<NDArray> {
        const DOING: &str = "open or make an array";
        let invalid = |detail: &str| Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        let path = match &self.place {
            Place::Memory | Place::Buffer => return create(self),
            Place::Custom(_) => {
                return invalid(
                    "the builder has a custom storage or folder: NDArray::open_storage opens one",
                );
            }
            Place::File(_) | Place::Directory(_) if self.replace => {
                return invalid("the builder replaces what is there");
            }
            Place::File(path) | Place::Directory(path) => path.clone(),
        };
        let mut options = self.options.clone().write(true).dparams(&self.dparams);
        if let Some(params) = &self.cparams {
            options = options.cparams(params);
        }
        if let Some(bytes) = self.max_read {
            options = options.max_read(bytes);
        }
        let open = || NDArray::open_with(&path, &options);
        match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            opened => return opened,
        }
        match create(self) {
            // Another program was faster.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => open(),
            made => made,
        }
    }

    /// Makes an array of items in C order.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: as many items as the shape does not say; more than 16
    ///   dimensions; chunk and block shapes that do not fit; parameters out of range;
    /// - [`ErrorKind::Unsupported`]: a codec or filter that this build does not have;
    /// - [`ErrorKind::TooLarge`]: a chunk over [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes;
    /// - [`ErrorKind::AlreadyExists`]: there is something at the path; it is left alone;
    /// - [`ErrorKind::NotFound`], [`ErrorKind::Io`]: the file cannot be made.
    pub fn from_slice<T: Element>(self, items: &[T], shape: impl PerAxis) -> Result<NDArray> {
        self.from_bytes(&bytes_of(items), shape, &T::dtype().to_string(), size_of::<T>())
    }

    /// Makes an array of items of any dtype, given as bytes in C order.
    ///
    /// `dtype` is NumPy's notation of the items, which have `typesize` bytes; it is not checked.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    pub fn from_bytes(
        self,
        bytes: &[u8],
        shape: impl PerAxis,
        dtype: &str,
        typesize: usize,
    ) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape", MAKE)?[..];
        let order = self.order(shape, dtype, typesize)?;
        // The order has counted the items.
        let expected = order.geometry.len().checked_mul(typesize as u64);
        if expected != Some(bytes.len() as u64) {
            let found = bytes.len();
            let detail = format!(
                "an array of shape {shape:?} with items of {typesize} bytes has {} bytes, got {found}",
                expected.map_or("too many".to_owned(), |len| len.to_string())
            );
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let strides = c_order(shape, typesize);
        // SAFETY: the bytes are borrowed, and as many as the items in C order have.
        unsafe { order.make_of(Source::new(bytes.as_ptr()), &strides) }
    }

    /// Makes an array of the items of an iterator, in C order.
    ///
    /// Items of a row of chunks are in memory at once. Python's `fromiter`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice), also where the iterator ends early or goes on.
    #[doc(alias = "fromiter")]
    pub fn from_iter<T: Element>(
        self,
        items: impl IntoIterator<Item = T>,
        shape: impl PerAxis,
    ) -> Result<NDArray> {
        let mut items = items.into_iter();
        let shape = &sizes(&shape, "shape", MAKE)?[..];
        let order = self.order(shape, &T::dtype().to_string(), size_of::<T>())?;
        order.make(|schunk, geometry| {
            let wrong = |what: &str| {
                let detail = format!("the iterator {what} the {} items", geometry.len());
                Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail))
            };
            let rows = shape.first().copied().unwrap_or(1);
            let step = geometry.chunks().first().copied().unwrap_or(1).max(1);
            // Of an array without items there is nothing to go through.
            let rows = if geometry.is_empty() { 0 } else { rows };
            let row = shape.iter().skip(1).fold(1u64, |all, &size| all.saturating_mul(size));
            let writers = Writers::default();
            let mut slab: Vec<T> = Vec::new();
            for start in (0..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)) {
                let end = rows.min(start + step);
                let count = usize::try_from((end - start) * row).unwrap_or(usize::MAX);
                slab.clear();
                slab.try_reserve(count)
                    .map_err(|error| Error::new(ErrorKind::OutOfMemory, MAKE, error))?;
                slab.extend(items.by_ref().take(count));
                if slab.len() < count {
                    return wrong("ends before");
                }
                let mut ranges: Vec<Range<u64>> = shape.iter().map(|&size| 0..size).collect();
                if let Some(first) = ranges.first_mut() {
                    *first = start..end;
                }
                let region = Region::of_box(ranges);
                let bytes = bytes_of(&slab);
                let strides = c_order(&region.shape(), size_of::<T>());
                let plan = Plan::new(geometry, &region, &strides);
                // SAFETY: the bytes are those of the items of the region in C order.
                unsafe { pack(schunk, &writers, &plan, Source::new(bytes.as_ptr())) }?;
            }
            if items.next().is_some() { wrong("goes on after") } else { Ok(()) }
        })
    }

    /// Makes an array whose items are all zero, which takes no room. Python's `zeros`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    #[doc(alias = "b2nd_zeros")]
    pub fn zeros<T: Element>(self, shape: impl PerAxis) -> Result<NDArray> {
        self.special(Special::Zeros, shape, &T::dtype().to_string(), size_of::<T>())
    }

    /// Makes an array of which nothing is written yet, which takes no room; it is read as zeros. Python's `uninit`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    #[doc(alias("b2nd_uninit", "empty"))]
    pub fn uninit<T: Element>(self, shape: impl PerAxis) -> Result<NDArray> {
        self.special(Special::Uninit, shape, &T::dtype().to_string(), size_of::<T>())
    }

    /// Makes an array of not-a-number, which takes no room; `T` is `f32` or `f64`. Python's `nans`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice), and [`ErrorKind::InvalidArgument`] for other items.
    #[doc(alias = "b2nd_nans")]
    pub fn nans<T: Element>(self, shape: impl PerAxis) -> Result<NDArray> {
        self.special(Special::Nan, shape, &T::dtype().to_string(), size_of::<T>())
    }

    /// Makes an array of zeros, NaN or uninitialized items of a dtype, which takes no room.
    ///
    /// NaN needs a floating-point dtype of 4 or 8 bytes, in any byte order; in the byte order of another machine each
    /// chunk stores the value once.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice), and [`ErrorKind::InvalidArgument`] for [`Special::Value`], and for NaN
    /// of another dtype.
    pub fn special(
        self,
        special: Special,
        shape: impl PerAxis,
        dtype: &str,
        typesize: usize,
    ) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape", MAKE)?[..];
        match special {
            Special::Value => {
                let detail = "it takes zeros, NaN or nothing";
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
                        format!("NaN takes f4 or f8 items, got {dtype} of {typesize} bytes");
                    return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
                };
                // Special chunks of NaN hold the one of the machine that reads them.
                if !float.is_native() {
                    let mut item = match typesize {
                        4 => f32::NAN.to_ne_bytes().to_vec(),
                        _ => f64::NAN.to_ne_bytes().to_vec(),
                    };
                    item.reverse();
                    return self.full_bytes(&item, shape, dtype);
                }
            }
            Special::Zeros | Special::Uninit => {}
        }
        self.order(shape, dtype, typesize)?.make(|schunk, geometry| {
            let items = geometry.chunk_len() / typesize;
            let all = items as u64 * geometry.nchunks();
            if all > 0 { schunk.fill(special, all, items) } else { Ok(()) }
        })
    }

    /// Makes an array of the same item everywhere, which is stored once for each chunk. Python's `full`.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    #[doc(alias = "b2nd_full")]
    pub fn full<T: Element>(self, item: T, shape: impl PerAxis) -> Result<NDArray> {
        let items = [item];
        self.full_bytes(&bytes_of(&items), shape, &T::dtype().to_string())
    }

    /// Makes an array of the same item of any dtype everywhere, given as bytes.
    ///
    /// # Errors
    /// As for [`from_slice`](Self::from_slice).
    pub fn full_bytes(self, item: &[u8], shape: impl PerAxis, dtype: &str) -> Result<NDArray> {
        let shape = &sizes(&shape, "shape", MAKE)?[..];
        let mut cparams = self.cparams_for(dtype);
        if cparams.codec.needs_array() || cparams.filters.iter().any(|each| each.needs_array()) {
            // A value that is not compressed needs neither.
            cparams = CParams::new();
        }
        self.order(shape, dtype, item.len())?.make(|schunk, geometry| {
            let count = geometry.chunk_len() / item.len();
            let params =
                cparams.typesize(item.len()).blocksize(geometry.block_len().max(item.len()));
            let chunk = crate::Chunk::repeat(item, count, &params)?;
            (0..geometry.nchunks()).try_for_each(|_| schunk.push_made(chunk.as_bytes()))
        })
    }

    /// Makes an array, of which `data` gives that of each chunk; on several threads.
    pub(super) fn by_chunks<'d>(
        self,
        shape: &[u64],
        (dtype, typesize): (&str, usize),
        sources: Sources<'_>,
        data: impl Fn(&Team<'_>, &mut Scratch, usize) -> Result<Data<'d>> + Sync,
    ) -> Result<NDArray> {
        self.order(shape, dtype, typesize)?.make(|schunk, geometry| {
            // There are no more than an index of 2 GiB has places for.
            let (writers, count) = (Writers::default(), geometry.nchunks() as usize);
            if count > 0 {
                let gates = sources.arrays.iter().filter_map(|array| array.schunk.gate());
                let team = writers.team(schunk, geometry, count)?.beside(gates);
                let data = |scratch: &mut Scratch, number| data(&team, scratch, number);
                team.pack(|number| number, data, |chunk| schunk.push_made(&chunk))?;
            }
            match sources.arrays.first() {
                Some(source) if sources.vlmeta => source.schunk.copy_vlmetalayers_to(schunk),
                _ => Ok(()),
            }
        })
    }

    /// Makes an array, of which `fill` gives the items of each chunk, in C order and from zeros.
    pub(super) fn by_boxes(
        self,
        shape: &[u64],
        dtype: (&str, usize),
        sources: Sources<'_>,
        fill: impl Fn(&[Range<u64>], &mut [u8]) -> Result<()> + Sync,
    ) -> Result<NDArray> {
        self.by_chunks(shape, dtype, sources, |team, scratch, number| {
            team.boxed(scratch, &chunk_ranges(team.geometry, number), &fill)
        })
    }

    /// Adds the metalayers of an array, but for that of its shapes.
    pub(super) fn meta_from(mut self, source: &NDArray) -> Result<Self> {
        for layer in source.schunk.meta().iter() {
            let (name, content) = layer?;
            let given = self.meta.iter().any(|(other, _)| *other == name);
            if !given && ![NAME, OLD_NAME].contains(&name.as_str()) {
                self.meta.push((name, content));
            }
        }
        Ok(self)
    }

    /// Takes the chunk and block shapes of an array, unless there are some.
    pub(super) fn cut_as(mut self, source: &NDArray) -> Self {
        if self.chunks.is_none() && self.blocks.is_none() {
            self.chunks = Some(source.chunks().to_vec());
            self.blocks = Some(source.blocks().to_vec());
        }
        self
    }

    /// Takes the compression parameters of an array, unless there are some.
    pub(super) fn compressed_as(mut self, source: &NDArray) -> Self {
        self.cparams.get_or_insert_with(|| source.cparams());
        self
    }

    /// Whether compression parameters are set.
    pub(super) fn has_cparams(&self) -> bool {
        self.cparams.is_some()
    }

    pub(super) fn order(self, shape: &[u64], dtype: &str, typesize: usize) -> Result<Order> {
        if self.parsed(dtype).is_some_and(|dtype| dtype.has_pointers()) {
            let detail = format!("items `{dtype}` are pointers to objects of Python's, no data");
            return Err(Error::new(ErrorKind::Unsupported, MAKE, detail));
        }
        if self.dtype_format > MAX_DTYPE_FORMAT {
            let found = self.dtype_format;
            let detail = format!("a dtype format is at most {MAX_DTYPE_FORMAT}, got {found}");
            return Err(Error::new(ErrorKind::InvalidArgument, MAKE, detail));
        }
        let cparams = CParams { typesize: None, blocksize: None, ..self.cparams_for(dtype) };
        let mut params = cparams.resolve(typesize, Purpose::Array)?;
        let error = |kind, detail: String| Error::new(kind, MAKE, detail);
        if shape.len() > blosc2_format::b2nd::MAX_NDIM {
            let (max, found) = (blosc2_format::b2nd::MAX_NDIM, shape.len());
            let detail = format!("an array has at most {max} dimensions, got {found}");
            return Err(error(ErrorKind::InvalidArgument, detail));
        }
        for (name, given) in [("chunk", &self.chunks), ("block", &self.blocks)] {
            let found = given.as_ref().map_or(shape.len(), Vec::len);
            let zero =
                given.iter().flatten().zip(shape).any(|(&part, &size)| part == 0 && size > 0);
            let given = given.as_deref().unwrap_or_default();
            if given.iter().any(|&part| i32::try_from(part).is_err()) {
                let detail = format!("a {name} of {given:?} items: a side has fewer than 2^31");
                return Err(error(ErrorKind::TooLarge, detail));
            }
            if found != shape.len() || zero {
                let detail =
                    format!("a {name} shape of {given:?} does not fit the shape {shape:?}");
                return Err(error(ErrorKind::InvalidArgument, detail));
            }
        }
        let (chunks, blocks) = partition(
            shape,
            typesize as u64,
            (self.chunks.as_deref(), self.blocks.as_deref()),
            &self.caches,
        );
        if chunks.iter().chain(&blocks).any(|&side| i32::try_from(side).is_err()) {
            let detail = format!("chunks of {chunks:?} items: a side has fewer than 2^31");
            return Err(error(ErrorKind::TooLarge, detail));
        }
        if let Some(axis) = (0..shape.len()).find(|&axis| blocks[axis] > chunks[axis]) {
            let (block, chunk) = (blocks[axis], chunks[axis]);
            let detail = format!("along axis {axis} a block has {block} items, a chunk {chunk}");
            return Err(error(ErrorKind::InvalidArgument, detail));
        }
        if let Some(axis) = (0..shape.len()).find(|&axis| blocks[axis] == 0 && chunks[axis] > 0) {
            let detail = format!("along axis {axis} a block has no items");
            return Err(error(ErrorKind::InvalidArgument, detail));
        }
        check_plugins(&params, shape.len(), typesize)?;
        let too_large = |detail: String| error(ErrorKind::TooLarge, detail);
        let mut meta = Meta {
            shape: Vec::with_capacity(shape.len()),
            chunks: stored_sizes(&chunks),
            blocks: stored_sizes(&blocks),
            dtype: None,
            dtype_format: self.dtype_format,
        };
        for &size in shape {
            meta.shape.push(i64::try_from(size).map_err(|_| {
                too_large(format!("{size} items along a dimension, at most 2^63 - 1"))
            })?);
        }
        let geometry = cut(&meta, typesize).map_err(|error| too_large(error.to_string()))?;
        params.c.blocksize = i32::try_from(geometry.block_len())
            .ok()
            .filter(|&len| len.unsigned_abs() <= blosc2_format::chunk::MAX_BLOCKSIZE)
            .ok_or_else(|| too_large(format!("a block of shape {blocks:?} is too large")))?;
        Ok(Order { geometry, params, cparams, dtype: dtype.to_owned(), builder: self })
    }

    /// What the text of a dtype says, where it is understood.
    fn parsed(&self, dtype: &str) -> Option<Dtype> {
        if self.dtype_format == NUMPY_FORMAT { Dtype::parse(dtype).ok() } else { None }
    }

    /// How items of this dtype are compressed.
    fn cparams_for(&self, dtype: &str) -> CParams {
        self.cparams.clone().unwrap_or_else(|| {
            let is_text = |dtype: Dtype| dtype.kind() == Some(Kind::Unicode);
            match self.parsed(dtype).is_some_and(is_text) {
                true => CParams::new().filters(&[Filter::ShuffleBytes(CHARACTER)]),
                false => CParams::new(),
            }
        })
    }
}

/// A file has it as a msgpack integer of seven bits.
const MAX_DTYPE_FORMAT: u8 = 127;

/// Bytes of a character of NumPy's text.
const CHARACTER: u8 = 4;

/// A chunk or block shape; what is below 0 is refused as what is too large.
fn side(shape: &impl PerAxis) -> Vec<u64> {
    (0..shape.ndim()).map(|axis| u64::try_from(shape.along(axis)).unwrap_or(u64::MAX)).collect()
}

fn stored_sizes(shape: &[u64]) -> Vec<i32> {
    // Checked to fit before.
    shape.iter().map(|&size| size as i32).collect()
}

/// A checked order for an array.
pub(super) struct Order {
    geometry: Geometry,
    params: Resolved,
    /// The parameters of the super-chunk, which knows the sizes.
    cparams: CParams,
    dtype: String,
    builder: NDArrayBuilder,
}

impl Order {
    /// Makes the array of items in memory.
    ///
    /// # Safety
    /// The source is memory for all items of the array with these strides.
    pub(super) unsafe fn make_of(self, source: Source, strides: &[isize]) -> Result<NDArray> {
        self.make(|schunk, geometry| {
            let region = Region::whole(geometry.shape());
            let plan = Plan::new(geometry, &region, strides);
            // SAFETY: the caller's promise.
            unsafe { pack(schunk, &Writers::default(), &plan, source) }
        })
    }

    /// Makes the array, whose chunks `write` appends.
    fn make(self, write: impl FnOnce(&mut SChunk, &Geometry) -> Result<()>) -> Result<NDArray> {
        let Self { geometry, params, cparams, dtype, builder } = self;
        let NDArrayBuilder { dparams, meta, vlmeta, place, replace, options, max_read, .. } =
            builder;
        let own =
            Meta { dtype: Some(dtype), dtype_format: builder.dtype_format, ..meta_of(&geometry) };
        let own = own.to_bytes();
        let own = own.map_err(|error| Error::from_format(MAKE, error))?;
        let metalayers: Vec<_> = [(NAME.to_owned(), own)].into_iter().chain(meta).collect();
        let chunksize = ChunkSize::new(geometry.chunk_len() as u32);
        let fill = |store: Box<dyn Store>| -> Result<SChunk> {
            let mut schunk = SChunk::with_params(params, store, &metalayers, chunksize)?;
            schunk.set_cparams(&cparams)?;
            write(&mut schunk, &geometry)?;
            for (name, content) in &vlmeta {
                schunk.vlmeta_mut().set(name, content)?;
            }
            schunk.finish()?;
            Ok(schunk)
        };
        let options = options.write(true);
        let mut schunk = match place {
            Place::Memory => fill(Box::<Memory>::default())?,
            Place::Buffer => fill(OpenOptions::new_buffer())?,
            Place::Custom(make) => {
                let detail = "a clone of this builder has made an array there";
                let taken = || Error::new(ErrorKind::AlreadyExists, MAKE, detail);
                let make = make.lock().take().ok_or_else(taken)?;
                let (store, gate) = make(replace)?;
                let mut schunk = fill(store)?;
                schunk.enter(gate);
                schunk
            }
            Place::File(path) => {
                files::create(&path, replace, |temporary| {
                    fill(new_store(temporary, false)?).map(drop)
                })?;
                options.open(path)?
            }
            Place::Directory(path) => {
                files::create(&path, false, |temporary| {
                    fill(new_store(temporary, true)?).map(drop)
                })?;
                options.open(path)?
            }
        };
        if let Some(bytes) = max_read {
            schunk.set_max_read(bytes);
        }
        let mut array = NDArray::from_schunk(schunk)?;
        array.set_cparams(&cparams)?;
        array.set_dparams(dparams);
        Ok(array)
    }
}

/// Compresses what is planned, which is all of the next chunks, and appends it.
///
/// # Safety
/// The source is memory for the items of the plan.
unsafe fn pack(
    schunk: &mut SChunk,
    writers: &Writers,
    plan: &Plan<'_>,
    source: Source,
) -> Result<()> {
    let count = plan.nchunks();
    if count == 0 {
        return Ok(());
    }
    let team = writers.team(schunk, plan.geometry(), count)?;
    team.pack(
        |number| plan.chunk(number).number,
        |scratch, number| {
            // SAFETY: the caller's promise; all is packed before this returns.
            unsafe { team.fill(&plan.chunk(number), source, scratch, |_| Ok(())) }
        },
        |chunk| schunk.push_made(chunk),
    )
}

/// Checks what codecs and filters for arrays ask of them, since C says no more than that they failed.
fn check_plugins(params: &Resolved, ndim: usize, typesize: usize) -> Result<()> {
    let floats = matches!(typesize, 4 | 8);
    let codec = Codec::from_code(params.c.compcode);
    let needs = |what: &str, asks: &str| {
        let detail = format!("{what} needs {asks}, got {ndim} dimensions of {typesize} bytes");
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
            Filter::NdCell(side) | Filter::NdMean(side)
                if *side == 0 || !(1..=8).contains(&ndim) =>
            {
                return needs(&filter.to_string(), "a side above 0 and 1 to 8 dimensions");
            }
            Filter::NdMean(_) if !floats => {
                return needs(&filter.to_string(), "floats of 4 or 8 bytes");
            }
            _ => {}
        }
    }
    Ok(())
}

impl fmt::Debug for NDArrayBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NDArrayBuilder")
            .field("chunks", &self.chunks)
            .field("blocks", &self.blocks)
            .field("cparams", &self.cparams)
            .finish_non_exhaustive()
    }
}
