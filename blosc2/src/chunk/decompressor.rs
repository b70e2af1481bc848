//! Decompression: chunks to items.

use std::borrow::Borrow;
use std::mem::MaybeUninit;
use std::ops::{Bound, Range, RangeBounds};

use crate::chunk::blocks::{Blocks, Cut};
use crate::chunk::decoder::Decoder;
use crate::chunk::init::init;
use crate::chunk::{ChunkBytes, layout};
use crate::error::DECOMPRESS as DOING;
use crate::item::element::{Element, make_valid, prefer_huge_pages, with_bytes_mut};
use crate::support::memory::{Target, reserve};
use crate::support::reuse::{self, Reusable};
use crate::{Chunk, ChunkRef, DParams, Doing, Error, ErrorKind, Result};

/// Decompresses a chunk to items.
///
/// `T` can be any type whose size divides the number of decompressed bytes, because a chunk does not record the type of
/// its items. Chunks of Blosc1 can be decompressed too. To decompress a part of a chunk, use [`Chunk::items`]; to
/// decompress many chunks, use a [`Decompressor`].
///
/// C: `blosc2_decompress_ctx`. Python: `decompress2`.
///
/// # Errors
/// Fails with the errors of [decompressing](Decompressor#errors). Here, [`ErrorKind::InvalidData`] also means that the
/// bytes are not a chunk or are truncated.
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

/// Decompresses chunks, with the same parameters for each chunk. C: a `blosc2_context` for decompression.
///
/// A decompressor reuses its memory from one chunk to the next. It decompresses one chunk at a time, on
/// [`DParams::threads`] threads. It is `Send`.
///
/// ```
/// use blosc2::{CParams, ChunkRef, DParams, Decompressor};
///
/// let bytes = blosc2::compress(&[3u8; 10_000], &CParams::new().blocksize(1000))?;
/// let chunk = ChunkRef::new(&bytes)?;
///
/// let mut decompressor = Decompressor::new(DParams::default())?;
/// let mut all = [0u8; 10_000];
/// decompressor.decompress_into(&chunk, &mut all)?;
/// let some: Vec<u8> = decompressor.items(&chunk, 500..700)?;
/// assert_eq!(some, all[500..700]);
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Errors
/// The methods that decompress fail with:
/// - [`ErrorKind::InvalidData`]: the chunk is damaged;
/// - [`ErrorKind::Unsupported`], if:
///   - this build lacks the codec or a filter;
///   - the codec or a filter needs the shape of the array that contains the chunk;
///   - a filter needs the typesize of the super-chunk that contains the chunk;
///   - more than one thread is requested, and the process was forked after C-Blosc2 had started threads;
///   - an installed C-Blosc2 library (feature `system`) cannot decompress the chunk correctly;
/// - [`ErrorKind::TypeMismatch`]: the number of bytes is not a multiple of the size of `T`;
/// - [`ErrorKind::OutOfMemory`]: the memory for the data cannot be allocated;
/// - [`ErrorKind::Callback`]: the postfilter, or a [user-defined](crate::user_defined) codec or filter, failed or
///   panicked;
/// - [`ErrorKind::Library`]: the C library failed for another reason.
///
/// # Parallel decompression
/// To decompress many chunks at the same time, use one clone for each thread. A clone has the same parameters and the
/// same postfilter, but separate memory. Cloning cannot fail. A clone allocates its memory when it decompresses for the
/// first time; that call returns an error if the allocation fails. With the crate `rayon`, `map_with` creates the clones:
/// ```
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
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
#[doc(alias("blosc2_create_dctx", "blosc2_context"))]
pub struct Decompressor {
    params: DParams,
    decoder: Decoder,
}

/// Returns the chunk, or validates the structure of the bytes of one.
fn checked<'c>(chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>) -> Result<ChunkRef<'c>> {
    chunk.try_into().map_err(Into::into)
}

impl Decompressor {
    /// Creates a decompressor with these parameters.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`]: an installed C-Blosc2 library is used (feature `system`), and an environment
    ///   variable is set that would override parameters, such as `BLOSC_NTHREADS`.
    pub fn new(params: impl Borrow<DParams>) -> Result<Self> {
        let params = params.borrow();
        Ok(Self { params: params.clone(), decoder: Decoder::new(params)? })
    }

    /// Returns the parameters. C: `blosc2_ctx_get_dparams`.
    pub fn params(&self) -> &DParams {
        &self.params
    }

    /// Decompresses a whole chunk to items.
    ///
    /// This method and the other ones take a `&Chunk`, a [`ChunkRef`], or the bytes of a chunk as `&[u8]` or `&Vec<u8>`.
    /// Bytes are validated as by [`Chunk::new`] in each call.
    ///
    /// C: `blosc2_decompress_ctx`. Python: `decompress2`.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors).
    #[doc(alias = "blosc2_decompress_ctx")]
    pub fn decompress<'c, T: Element>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
    ) -> Result<Vec<T>> {
        let chunk = checked(chunk)?;
        to_items(chunk.nbytes(), |target| self.decoder.decompress(&chunk, target))
    }

    /// Decompresses a whole chunk to the start of `items`, and returns the number of items written. The remaining items
    /// are unchanged.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::BufferTooSmall`]: `items` has fewer items than the chunk.
    ///
    /// If decompression fails, the items at the start of `items` may have changed.
    pub fn decompress_into<'c, T: Element>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        items: &mut [T],
    ) -> Result<usize> {
        let chunk = checked(chunk)?;
        let count = whole_items::<T>(chunk.nbytes())?;
        let room = size_of_val(items);
        let items = items.get_mut(..count).ok_or_else(|| too_small(chunk.nbytes(), room))?;
        with_bytes_mut(items, |bytes| {
            self.decoder.decompress(&chunk, Target::of(bytes)).map(|_| count)
        })
    }

    /// Decompresses a whole chunk, appends the items to a vector, and returns their number. The items are decompressed
    /// directly to the memory of the vector, which is not zeroed first.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, DParams, Decompressor};
    ///
    /// let chunks = [[1.5f32; 3], [2.5; 3]].map(|part| blosc2::compress(&part, CParams::default()));
    /// let mut decompressor = Decompressor::new(DParams::default())?;
    /// let mut found: Vec<f32> = Vec::new();
    /// for chunk in chunks {
    ///     decompressor.decompress_append(&ChunkRef::new(&chunk?)?, &mut found)?;
    /// }
    /// assert_eq!(found, [1.5, 1.5, 1.5, 2.5, 2.5, 2.5]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors). After an error, the vector is unchanged.
    #[doc(alias = "decompress_to_vec")]
    pub fn decompress_append<'c, T: Element>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        items: &mut Vec<T>,
    ) -> Result<usize> {
        let chunk = checked(chunk)?;
        let count = whole_items::<T>(chunk.nbytes())?;
        reserve(items, count).doing(DOING)?;
        append_items(items, count, |target| self.decoder.decompress(&chunk, target))?;
        Ok(count)
    }

    /// Decompresses a whole chunk to the start of uninitialized memory, and returns the decompressed bytes. For a
    /// vector, use [`decompress_append`](Self::decompress_append).
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::BufferTooSmall`]: `target` is shorter than the data of the chunk.
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
    pub fn decompress_uninit<'c, 't>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        target: &'t mut [MaybeUninit<u8>],
    ) -> Result<&'t mut [u8]> {
        let chunk = checked(chunk)?;
        let (len, room) = (chunk.nbytes(), target.len());
        let target = target.get_mut(..len).ok_or_else(|| too_small(len, room))?;
        self.decoder.decompress(&chunk.borrowed(), Target::new(target))
    }

    /// Decompresses a range of items. Indices count items of type `T`, independent of the typesize of the chunk;
    /// with `u8` they count bytes.
    ///
    /// Only the blocks that contain these items are decompressed. With [`Filter::Delta`](crate::Filter::Delta), the
    /// first block is decompressed too. If the decompressor has a postfilter and the chunk has variable-length blocks,
    /// all blocks are decompressed. With an installed C-Blosc2 library (feature `system`), more blocks may be
    /// decompressed. A small part of a block is decompressed without the rest of the block, where codec and filters
    /// allow it. In a damaged chunk, an error that the whole block would reveal may then not be detected, and the items
    /// may be wrong.
    ///
    /// The blocks are decompressed on the caller's thread. There are three exceptions, in which all
    /// [threads](DParams::threads) can be used:
    /// - the range is the whole chunk;
    /// - all blocks are decompressed for a postfilter;
    /// - the size of the data is not a multiple of the typesize of the chunk, and the range contains bytes after the
    ///   last whole item.
    ///
    /// C: `blosc2_getitem_ctx`.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::OutOfBounds`]: the range exceeds the data, or its start is greater than its end;
    /// - [`ErrorKind::TypeMismatch`]: the range has no end, and the number of bytes in the chunk is not a multiple
    ///   of the size of `T`.
    #[doc(alias("blosc2_getitem_ctx", "getitem"))]
    pub fn items<'c, T: Element>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        range: impl RangeBounds<usize>,
    ) -> Result<Vec<T>> {
        let chunk = checked(chunk)?;
        let bytes = chunk_range::<T>(range, chunk.nbytes())?;
        to_items(bytes.len(), |target| self.decoder.range(&chunk, bytes.start, target))
    }

    /// Decompresses `items.len()` items to `items`, starting at index `start` of the chunk.
    ///
    /// C: `blosc2_getitem_ctx`.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::OutOfBounds`]: the range exceeds the data.
    pub fn items_into<'c, T: Element>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        start: usize,
        items: &mut [T],
    ) -> Result<()> {
        let chunk = checked(chunk)?;
        let stop = start.saturating_add(items.len());
        let bytes = chunk_range::<T>(start..stop, chunk.nbytes())?;
        with_bytes_mut(items, |target| {
            self.decoder.range(&chunk, bytes.start, Target::of(target)).map(|_| ())
        })
    }

    /// Decompresses the blocks whose flag in `wanted` is `true`. `wanted` has one flag for each block. `target` has the
    /// length of the decompressed data of the entire chunk. Each block is written to `target` at its offset in this
    /// data. The other bytes of `target` are unchanged.
    ///
    /// C: `blosc2_set_maskout`, whose mask has the opposite meaning: it is true for the blocks to skip.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::InvalidArgument`]: `wanted` does not have one flag for each block, or the length of `target`
    ///   differs from the length of the data.
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
    pub fn decompress_masked<'c>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        wanted: &[bool],
        target: &mut [u8],
    ) -> Result<()> {
        self.decoder.decompress_masked(&checked(chunk)?, wanted, target)
    }

    /// Decompresses one block to bytes. C: `blosc2_vldecompress_block_ctx`, for variable-length blocks.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::OutOfBounds`]: there is no block with this index.
    pub fn block<'c>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
        block: usize,
    ) -> Result<Vec<u8>> {
        let chunk = checked(chunk)?;
        let Some(len) = chunk.block_len(block)? else {
            let detail =
                format!("the chunk has {} blocks, asked for block {block}", chunk.nblocks());
            return Err(Error::new(ErrorKind::OutOfBounds, DOING, detail));
        };
        to_items(len, |target| self.decoder.block(&chunk, block, target))
    }

    /// Decompresses all blocks. C: `blosc2_vldecompress_ctx`, for variable-length blocks.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors).
    pub fn blocks<'c>(
        &mut self,
        chunk: impl TryInto<ChunkRef<'c>, Error: Into<Error>>,
    ) -> Result<Blocks> {
        let chunk = checked(chunk)?;
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

thread_local! {
    static DECOMPRESSOR: Reusable<Decompressor> = const { Reusable::new(None) };
}

/// Decompression with default parameters. To choose the parameters, use a [`Decompressor`].
impl<B: ChunkBytes> Chunk<B> {
    fn with_decompressor<R>(&self, work: impl FnOnce(&mut Decompressor) -> Result<R>) -> Result<R> {
        // With an installed library, `init` checks the environment before each call.
        init()?;
        let keep = self.nbytes() <= reuse::MOST;
        reuse::with(&DECOMPRESSOR, keep, |_| true, || Decompressor::new(DParams::default()), work)
    }

    /// Decompresses the whole chunk to items.
    ///
    /// `T` can be any type whose size divides the number of decompressed bytes: a chunk does not record the type of its
    /// items.
    ///
    /// C: `blosc2_decompress_ctx`. Python: `decompress2`.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors).
    pub fn decompress<T: Element>(&self) -> Result<Vec<T>> {
        self.with_decompressor(|decompressor| decompressor.decompress(self))
    }

    /// Decompresses the whole chunk to the start of `items`, and returns the number of items written. The remaining
    /// items are unchanged.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::BufferTooSmall`]: `items` has fewer items than the chunk.
    pub fn decompress_into<T: Element>(&self, items: &mut [T]) -> Result<usize> {
        self.with_decompressor(|decompressor| decompressor.decompress_into(self, items))
    }

    /// Decompresses the whole chunk to the start of uninitialized memory, and returns the decompressed bytes.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::BufferTooSmall`]: `target` is shorter than the data of the chunk.
    pub fn decompress_uninit<'t>(&self, target: &'t mut [MaybeUninit<u8>]) -> Result<&'t mut [u8]> {
        self.with_decompressor(|decompressor| decompressor.decompress_uninit(self, target))
    }

    /// Decompresses a range of items. Indices count items of type `T`, independent of the typesize of the chunk;
    /// with `u8` they count bytes.
    ///
    /// Only the blocks that contain these items are decompressed. With [`Filter::Delta`](crate::Filter::Delta), the
    /// first block is decompressed too. C: `blosc2_getitem_ctx`.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::OutOfBounds`]: the range exceeds the data, or its start is greater than its end;
    /// - [`ErrorKind::TypeMismatch`]: the range has no end, and the number of bytes in the chunk is not a multiple
    ///   of the size of `T`.
    pub fn items<T: Element>(&self, range: impl RangeBounds<usize>) -> Result<Vec<T>> {
        self.with_decompressor(|decompressor| decompressor.items(self, range))
    }

    /// Decompresses `items.len()` items to `items`, starting at index `start` of the chunk. C: `blosc2_getitem_ctx`.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::OutOfBounds`]: the range exceeds the data.
    pub fn items_into<T: Element>(&self, start: usize, items: &mut [T]) -> Result<()> {
        self.with_decompressor(|decompressor| decompressor.items_into(self, start, items))
    }

    /// Decompresses one block to bytes. C: `blosc2_vldecompress_block_ctx`, for variable-length blocks.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors), and with:
    /// - [`ErrorKind::OutOfBounds`]: there is no block with this index.
    pub fn block(&self, block: usize) -> Result<Vec<u8>> {
        self.with_decompressor(|decompressor| decompressor.block(self, block))
    }

    /// Decompresses all blocks. C: `blosc2_vldecompress_ctx`, for variable-length blocks.
    ///
    /// # Errors
    /// Fails with the errors of [decompressing](Decompressor#errors).
    pub fn blocks(&self) -> Result<Blocks> {
        self.with_decompressor(|decompressor| decompressor.blocks(self))
    }
}

/// Converts a range of items to a range of bytes, in a chunk of `nbytes` bytes.
fn chunk_range<T: Element>(range: impl RangeBounds<usize>, nbytes: usize) -> Result<Range<usize>> {
    let size = size_of::<T>();
    let start = match range.start_bound() {
        Bound::Included(&start) => Some(start),
        Bound::Excluded(&before) => before.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let stop = match range.end_bound() {
        Bound::Included(&last) => last.checked_add(1),
        Bound::Excluded(&stop) => Some(stop),
        Bound::Unbounded => Some(whole_items::<T>(nbytes)?),
    };
    let bytes = |items: Option<usize>| items.and_then(|items| items.checked_mul(size));
    match (bytes(start), bytes(stop)) {
        (Some(from), Some(to)) if from <= to && to <= nbytes => Ok(from..to),
        _ => {
            let asked = match (start, stop) {
                (Some(start), Some(stop)) => format!("items {start} to {stop}"),
                _ => "a range".to_owned(),
            };
            let detail = format!("it holds {nbytes} bytes, asked for {asked} of {size} bytes");
            Err(Error::new(ErrorKind::OutOfBounds, DOING, detail))
        }
    }
}

fn too_small(expected: usize, found: usize) -> Error {
    let detail = format!("the data has {expected} bytes, the target has {found}");
    Error::new(ErrorKind::BufferTooSmall, DOING, detail)
}

/// Returns the number of items of type `T` in `len` bytes.
fn whole_items<T: Element>(len: usize) -> Result<usize> {
    let size = size_of::<T>();
    if len.is_multiple_of(size) {
        return Ok(len / size);
    }
    let detail =
        format!("{len} bytes are not a multiple of the size of {} ({size} bytes)", T::dtype());
    Err(Error::new(ErrorKind::TypeMismatch, DOING, detail))
}

/// Returns a vector of items of `len` bytes in total, which `fill` writes.
pub(crate) fn to_items<T: Element>(
    len: usize,
    fill: impl for<'t> FnOnce(Target<'t>) -> Result<&'t mut [u8]>,
) -> Result<Vec<T>> {
    let count = whole_items::<T>(len)?;
    let mut items: Vec<T> = Vec::new();
    reserve(&mut items, count).doing(DOING)?;
    prefer_huge_pages(items.as_mut_ptr().cast(), len);
    append_items(&mut items, count, fill)?;
    Ok(items)
}

/// Appends `count` items, whose bytes `fill` writes. The vector has the capacity for the items. If `fill` fails, the
/// vector is unchanged.
fn append_items<T: Element>(
    items: &mut Vec<T>,
    count: usize,
    fill: impl for<'t> FnOnce(Target<'t>) -> Result<&'t mut [u8]>,
) -> Result<()> {
    let len = count * size_of::<T>();
    let start = items.spare_capacity_mut()[..count].as_mut_ptr().cast();
    // SAFETY: the memory of `count` items, which may be uninitialized here too.
    let target = Target::new(unsafe { std::slice::from_raw_parts_mut(start, len) });
    make_valid::<T>(target.fill(fill)?);
    // SAFETY: there is room for the items, and they are valid now.
    unsafe { items.set_len(items.len() + count) };
    Ok(())
}
