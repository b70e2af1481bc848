//! Chunks to buffers.
//!
//! ```
//! use blosc2::{CParams, ChunkRef, DParams, Decompressor};
//!
//! let bytes = blosc2::compress(&[3u8; 10_000], &CParams::new().blocksize(1000))?;
//! let chunk = ChunkRef::new(&bytes)?;
//!
//! let mut decompressor = Decompressor::new(DParams::default())?;
//! let mut all = [0u8; 10_000];
//! decompressor.decompress_into(&chunk, &mut all)?;
//! let some: Vec<u8> = decompressor.items(&chunk, 500..700)?;
//! assert_eq!(some, all[500..700]);
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::borrow::Borrow;
use std::collections::TryReserveError;
use std::mem::MaybeUninit;
use std::ops::{Bound, Range, RangeBounds};
use std::sync::Arc;

use crate::blocks::{Blocks, Cut};
use crate::chunk::{ChunkBytes, layout};
use crate::closures::ChunkFilter;
use crate::closures::{BoxError, ChunkBlock};
use crate::decoder::Decoder;
use crate::element::{Element, make_valid, with_bytes_mut};
use crate::memory::Target;
use crate::{Chunk, ChunkRef, DParams, Error, ErrorKind, Result};

const DOING: &str = "decompress a chunk";

/// Decompresses a chunk to items.
///
/// A chunk does not say what its items are, so any type goes whose size divides the data. Chunks of
/// Blosc1 are read too. C's `blosc2_decompress_ctx`, Python's `decompress2`. To decompress parts, see
/// [`Chunk`]; to decompress many chunks, [`Decompressor`].
///
/// # Errors
/// - [`ErrorKind::InvalidData`]: not a chunk, cut short, or broken;
/// - [`ErrorKind::Unsupported`]: made with a codec or filter that this build does not have;
/// - [`ErrorKind::TypeMismatch`]: the data is no whole number of items.
///
/// ```
/// use blosc2::ErrorKind;
///
/// let error = blosc2::decompress::<u8>(b"no chunk at all, just some text").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::InvalidData);
/// ```
#[doc(alias("blosc2_decompress", "decompress2", "unpack"))]
pub fn decompress<T: Element>(chunk: &[u8]) -> Result<Vec<T>> {
    ChunkRef::to_decompress(chunk)?.decompress()
}

/// Decompresses any number of chunks with the same parameters. C's context for decompression.
///
/// It keeps its memory from one chunk to the next. It can be sent to another thread, and works on one
/// chunk at a time; on how many threads is up to [`DParams::threads`].
///
/// To decompress many chunks at the same time, use a clone for each thread. A clone has the same parameters, shares the
/// postfilter, and has memory of its own. Cloning cannot fail: C allocates the memory when the clone decompresses for the
/// first time, and that call returns the error. With rayon:
/// ```
/// # #[cfg(feature = "rayon")] {
/// use blosc2::{CParams, Compressor, DParams, Decompressor};
/// use rayon::prelude::*;
///
/// let chunk = Compressor::new(CParams::default())?.compress(&[1.5f32; 10_000])?;
/// let chunks = vec![chunk; 8];
/// let decompressor = Decompressor::new(DParams::default())?;
/// let buffers: Vec<Vec<f32>> = chunks
///     .par_iter()
///     .map_with(decompressor, |decompressor, chunk| decompressor.decompress(chunk))
///     .collect::<blosc2::Result<_>>()?;
/// assert_eq!(buffers[7], [1.5; 10_000]);
/// # }
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
#[doc(alias("blosc2_create_dctx", "blosc2_context"))]
pub struct Decompressor {
    params: DParams,
    decoder: Decoder,
}

impl Decompressor {
    /// A decompressor with these parameters.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`] where the C library in use cannot be used as it is set up.
    pub fn new(params: impl Borrow<DParams>) -> Result<Self> {
        let params = params.borrow();
        Ok(Self { params: params.clone(), decoder: Decoder::new(params)? })
    }

    /// Runs a closure on each block after it is decompressed, which makes of it what the caller gets.
    ///
    /// It is run whatever kind of chunk it is, for parts too, and only on the blocks that are needed: on the
    /// threads of the decompressor, at once; on the caller's where the chunk is stored, special or of blocks of
    /// variable length. A decompressor with a closure starts threads of its own, so that it is worth keeping.
    /// The closure may use this crate itself; inside it that works on one thread. Where it fails or panics, decompressing gives an error of [`ErrorKind::Callback`], and may be
    /// tried again. C's `postfilter`, Python's `postfilter`.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, ChunkBlock};
    /// use blosc2::{CParams, ChunkRef, DParams, Decompressor};
    ///
    /// let celsius = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
    ///     let kelvin = block.input_as::<f32>()?;
    ///     for (to, from) in block.output_as::<f32>()?.iter_mut().zip(kelvin) {
    ///         *to = from - 273.0;
    ///     }
    ///     Ok(())
    /// };
    /// let bytes = blosc2::compress(&[300f32; 1000], &CParams::default())?;
    /// let mut decompressor = Decompressor::new(DParams::default())?.with_postfilter(celsius);
    /// let chunk = ChunkRef::new(&bytes)?;
    /// assert_eq!(decompressor.items::<f32>(&chunk, 5..7)?, [27.0; 2]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn with_postfilter<E: Into<BoxError>>(
        mut self,
        postfilter: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.decoder.set_postfilter(Arc::new(ChunkFilter::postfilter(postfilter)));
        self
    }

    /// The parameters.
    pub fn params(&self) -> &DParams {
        &self.params
    }

    /// Decompresses all of a chunk to items.
    ///
    /// # Errors
    /// As [`Chunk::decompress`].
    #[doc(alias = "blosc2_decompress_ctx")]
    pub fn decompress<T: Element>(&mut self, chunk: &Chunk<impl ChunkBytes>) -> Result<Vec<T>> {
        let chunk = chunk.borrowed();
        to_items(chunk.nbytes(), |target| self.decoder.decompress(&chunk, target))
    }

    /// Decompresses all of a chunk to the start of `items`, and returns the number of items written. Items after them
    /// are left as they are.
    ///
    /// # Errors
    /// Those of [`Chunk::decompress`], and [`ErrorKind::BufferTooSmall`] where there are fewer items than in the chunk.
    /// Where decompression fails, items at the start may have changed.
    pub fn decompress_into<T: Element>(
        &mut self,
        chunk: &Chunk<impl ChunkBytes>,
        items: &mut [T],
    ) -> Result<usize> {
        let chunk = chunk.borrowed();
        let count = whole_items::<T>(chunk.nbytes())?;
        let room = size_of_val(items);
        let items = items.get_mut(..count).ok_or_else(|| too_small(chunk.nbytes(), room))?;
        with_bytes_mut(items, |bytes| self.decoder.decompress(&chunk, Target::of(bytes)))?;
        Ok(count)
    }

    /// Decompresses all of a chunk to items at the end of a vector, and returns the number of items. Their memory is neither
    /// zeroed before nor copied.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, DParams, Decompressor};
    ///
    /// let chunks = [[1.5f32; 3], [2.5; 3]].map(|part| blosc2::compress(&part, CParams::default()));
    /// let mut decompressor = Decompressor::new(DParams::default())?;
    /// let mut found: Vec<f32> = Vec::new();
    /// for chunk in chunks {
    ///     decompressor.decompress_to_vec(&ChunkRef::new(&chunk?)?, &mut found)?;
    /// }
    /// assert_eq!(found, [1.5, 1.5, 1.5, 2.5, 2.5, 2.5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Chunk::decompress`]. The vector is then as it was.
    pub fn decompress_to_vec<T: Element>(
        &mut self,
        chunk: &Chunk<impl ChunkBytes>,
        items: &mut Vec<T>,
    ) -> Result<usize> {
        let chunk = chunk.borrowed();
        let count = whole_items::<T>(chunk.nbytes())?;
        items.try_reserve(count).map_err(|error| no_memory(chunk.nbytes(), error))?;
        append_items(items, count, |target| self.decoder.decompress(&chunk, target))?;
        Ok(count)
    }

    /// Decompresses all of a chunk to the start of memory that need not be initialized, and returns the data there.
    /// [`decompress_to_vec`](Self::decompress_to_vec) does it for a vector.
    ///
    /// # Errors
    /// Those of [`decompress_into`](Self::decompress_into).
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, DParams, Decompressor};
    ///
    /// let bytes = blosc2::compress(b"some bytes", &CParams::default())?;
    /// let mut target = Vec::with_capacity(10);
    /// let mut decompressor = Decompressor::new(DParams::default())?;
    /// let chunk = ChunkRef::new(&bytes)?;
    /// let found = decompressor.decompress_uninit(&chunk, target.spare_capacity_mut())?;
    /// assert_eq!(found, b"some bytes");
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn decompress_uninit<'t>(
        &mut self,
        chunk: &Chunk<impl ChunkBytes>,
        target: &'t mut [MaybeUninit<u8>],
    ) -> Result<&'t mut [u8]> {
        let (len, room) = (chunk.nbytes(), target.len());
        let target = target.get_mut(..len).ok_or_else(|| too_small(len, room))?;
        self.decoder.decompress(&chunk.borrowed(), Target::new(target))?;
        // SAFETY: decompression has initialised all of it.
        Ok(unsafe { std::slice::from_raw_parts_mut(target.as_mut_ptr().cast(), target.len()) })
    }

    /// Decompresses a range of items; with `u8`, of bytes. C's `blosc2_getitem_ctx`.
    ///
    /// Only the blocks that hold them are decompressed, on one thread unless that is all of them. Items are
    /// counted by the size of `T`, whatever the chunk's typesize.
    ///
    /// # Errors
    /// - As [`Chunk::decompress`];
    /// - [`ErrorKind::OutOfBounds`]: the range reaches outside the data;
    /// - [`ErrorKind::TypeMismatch`]: it has no end, and the data is no whole number of items.
    #[doc(alias("blosc2_getitem_ctx", "getitem"))]
    pub fn items<T: Element>(
        &mut self,
        chunk: &Chunk<impl ChunkBytes>,
        range: impl RangeBounds<usize>,
    ) -> Result<Vec<T>> {
        let chunk = chunk.borrowed();
        let bytes = chunk_range::<T>(range, chunk.nbytes())?;
        to_items(bytes.len(), |target| self.decoder.range(&chunk, bytes.start, target))
    }

    /// Decompresses as many items as the caller's slice has, from number `start` on.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn items_into<T: Element>(
        &mut self,
        chunk: &Chunk<impl ChunkBytes>,
        start: usize,
        items: &mut [T],
    ) -> Result<()> {
        let chunk = chunk.borrowed();
        let stop = start.saturating_add(items.len());
        let bytes = chunk_range::<T>(start..stop, chunk.nbytes())?;
        with_bytes_mut(items, |target| self.decoder.range(&chunk, bytes.start, Target::of(target)))
    }

    /// Decompresses the blocks for which `wanted` is true to their places in `target`, which is as long as
    /// the whole data; other bytes stay as they are. C's `blosc2_set_maskout`, the other way round.
    ///
    /// # Errors
    /// As [`Chunk::decompress`], and [`ErrorKind::InvalidArgument`] where there are not as many flags as
    /// blocks, or not as many bytes as in the data.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, DParams, Decompressor};
    ///
    /// let bytes = blosc2::compress(&[7u8; 3000], &CParams::new().blocksize(1000))?;
    /// let mut target = [0; 3000];
    /// let mut decompressor = Decompressor::new(DParams::default())?;
    /// decompressor.decompress_masked(&ChunkRef::new(&bytes)?, &[false, true, false], &mut target)?;
    /// assert_eq!((target[999], target[1000], target[1999], target[2000]), (0, 7, 7, 0));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "blosc2_set_maskout")]
    pub fn decompress_masked(
        &mut self,
        chunk: &Chunk<impl ChunkBytes>,
        wanted: &[bool],
        target: &mut [u8],
    ) -> Result<()> {
        self.decoder.decompress_masked(&chunk.borrowed(), wanted, target)
    }

    /// Decompresses one block. C's `blosc2_vldecompress_block_ctx` for blocks of variable length.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn block(&mut self, chunk: &Chunk<impl ChunkBytes>, block: usize) -> Result<Vec<u8>> {
        let chunk = chunk.borrowed();
        let Some(len) = chunk.block_len(block)? else {
            let detail = format!("it has {} blocks, asked for block {block}", chunk.nblocks());
            return Err(Error::new(ErrorKind::OutOfBounds, DOING, detail));
        };
        to_items(len, |target| self.decoder.block(&chunk, block, target))
    }

    /// Decompresses all blocks. C's `blosc2_vldecompress_ctx`.
    ///
    /// # Errors
    /// As [`Chunk::decompress`].
    pub fn blocks(&mut self, chunk: &Chunk<impl ChunkBytes>) -> Result<Blocks> {
        let chunk = chunk.borrowed();
        let cut = match chunk.blocksize() {
            Some(len) => Cut::Every(len),
            None => {
                let layout = layout(chunk.as_bytes())?;
                let mut end = 0;
                let ends = (0..chunk.nblocks()).map(|block| {
                    end += layout.block_size(block);
                    end
                });
                Cut::At(ends.collect())
            }
        };
        Ok(Blocks::new(self.decompress(&chunk)?, cut))
    }
}

/// Decompression with default parameters; see [`Decompressor`].
impl<B: ChunkBytes> Chunk<B> {
    /// Decompresses all of it to items.
    ///
    /// A chunk does not say what its items are, so any type goes whose size divides the data. C's
    /// `blosc2_decompress_ctx`, Python's `decompress2`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: it is broken;
    /// - [`ErrorKind::Unsupported`]: a codec or filter that this build does not have;
    /// - [`ErrorKind::TypeMismatch`]: the data is no whole number of items;
    /// - [`ErrorKind::OutOfMemory`].
    pub fn decompress<T: Element>(&self) -> Result<Vec<T>> {
        Decompressor::new(DParams::default())?.decompress(self)
    }

    /// Decompresses all of it to the start of `items`, and returns the number of items written. Items after them are left
    /// as they are.
    ///
    /// # Errors
    /// Those of [`decompress`](Self::decompress), and [`ErrorKind::BufferTooSmall`] where there are fewer items.
    pub fn decompress_into<T: Element>(&self, items: &mut [T]) -> Result<usize> {
        Decompressor::new(DParams::default())?.decompress_into(self, items)
    }

    /// Decompresses all of it to the start of memory that need not be initialized, and returns the data there.
    ///
    /// # Errors
    /// Those of [`decompress_into`](Self::decompress_into).
    pub fn decompress_uninit<'t>(&self, target: &'t mut [MaybeUninit<u8>]) -> Result<&'t mut [u8]> {
        Decompressor::new(DParams::default())?.decompress_uninit(self, target)
    }

    /// Decompresses a range of items; with `u8`, of bytes. C's `blosc2_getitem_ctx`.
    ///
    /// Only the blocks that hold them are decompressed.
    ///
    /// # Errors
    /// - As [`decompress`](Self::decompress);
    /// - [`ErrorKind::OutOfBounds`]: the range reaches outside the data;
    /// - [`ErrorKind::TypeMismatch`]: it has no end, and the data is no whole number of items.
    pub fn items<T: Element>(&self, range: impl RangeBounds<usize>) -> Result<Vec<T>> {
        Decompressor::new(DParams::default())?.items(self, range)
    }

    /// Decompresses as many items as the caller's slice has, from number `start` on.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn items_into<T: Element>(&self, start: usize, items: &mut [T]) -> Result<()> {
        Decompressor::new(DParams::default())?.items_into(self, start, items)
    }

    /// Decompresses one block. C's `blosc2_vldecompress_block_ctx` for blocks of variable length.
    ///
    /// # Errors
    /// As [`items`](Self::items).
    pub fn block(&self, block: usize) -> Result<Vec<u8>> {
        Decompressor::new(DParams::default())?.block(self, block)
    }

    /// Decompresses all blocks. C's `blosc2_vldecompress_ctx`.
    ///
    /// # Errors
    /// As [`decompress`](Self::decompress).
    pub fn blocks(&self) -> Result<Blocks> {
        Decompressor::new(DParams::default())?.blocks(self)
    }
}

/// The bytes of a range of items in a chunk of `nbytes` bytes.
pub(crate) fn chunk_range<T: Element>(
    range: impl RangeBounds<usize>,
    nbytes: usize,
) -> Result<Range<usize>> {
    let wide = |bound: Bound<&usize>| bound.map(|&place| place as u64);
    let range = (wide(range.start_bound()), wide(range.end_bound()));
    let bytes = byte_range::<T>(range, nbytes as u64, DOING)?;
    // Inside the chunk.
    Ok(bytes.start as usize..bytes.end as usize)
}

/// The bytes of a range of items in so many bytes.
pub(crate) fn byte_range<T: Element>(
    range: impl RangeBounds<u64>,
    nbytes: u64,
    doing: &str,
) -> Result<Range<u64>> {
    let size = size_of::<T>() as u64;
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let stop = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&stop) => Some(stop),
        Bound::Unbounded if nbytes.is_multiple_of(size) => Some(nbytes / size),
        Bound::Unbounded => {
            let detail =
                format!("{nbytes} bytes are no whole number of {} ({size} bytes)", T::dtype());
            return Err(Error::new(ErrorKind::TypeMismatch, doing, detail));
        }
    };
    let bytes = |items: Option<u64>| items.and_then(|items| items.checked_mul(size));
    match (bytes(start), bytes(stop)) {
        (Some(from), Some(to)) if from <= to && to <= nbytes => Ok(from..to),
        _ => {
            let asked = match (start, stop) {
                (Some(start), Some(stop)) => format!("items {start} to {stop}"),
                _ => "a range".to_owned(),
            };
            let detail = format!("it holds {nbytes} bytes, asked for {asked} of {size} bytes");
            Err(Error::new(ErrorKind::OutOfBounds, doing, detail))
        }
    }
}

fn too_small(expected: usize, found: usize) -> Error {
    let detail = format!("the data has {expected} bytes, the target {found}");
    Error::new(ErrorKind::BufferTooSmall, DOING, detail)
}

/// How many items so many bytes are.
fn whole_items<T: Element>(len: usize) -> Result<usize> {
    let size = size_of::<T>();
    if len.is_multiple_of(size) {
        return Ok(len / size);
    }
    let detail = format!("{len} bytes are no whole number of {} ({size} bytes)", T::dtype());
    Err(Error::new(ErrorKind::TypeMismatch, DOING, detail))
}

/// A vector of items filled with `len` bytes by `fill`, which initialises all of them on success.
pub(crate) fn to_items<T: Element>(
    len: usize,
    fill: impl FnOnce(Target<'_>) -> Result<()>,
) -> Result<Vec<T>> {
    let count = whole_items::<T>(len)?;
    let mut items: Vec<T> = Vec::new();
    items.try_reserve_exact(count).map_err(|error| no_memory(len, error))?;
    append_items(&mut items, count, fill)?;
    Ok(items)
}

fn no_memory(len: usize, error: TryReserveError) -> Error {
    Error::new(ErrorKind::OutOfMemory, DOING, format_args!("{len} bytes: {error}"))
}

/// Appends items, for which there is room, and whose bytes `fill` all initialises on success; otherwise there are none more.
fn append_items<T: Element>(
    items: &mut Vec<T>,
    count: usize,
    fill: impl FnOnce(Target<'_>) -> Result<()>,
) -> Result<()> {
    let len = count * size_of::<T>();
    let start = items.spare_capacity_mut()[..count].as_mut_ptr().cast();
    // SAFETY: the memory of `count` items, which may be uninitialised here too.
    fill(Target::new(unsafe { std::slice::from_raw_parts_mut(start, len) }))?;
    // SAFETY: the same memory, of which `fill` has initialised all bytes.
    make_valid::<T>(unsafe { std::slice::from_raw_parts_mut(start.cast(), len) });
    // SAFETY: there is room for the items, and they are valid now.
    unsafe { items.set_len(items.len() + count) };
    Ok(())
}
