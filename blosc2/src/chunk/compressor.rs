//! Compression: items to chunks.

use std::borrow::Borrow;
use std::mem::MaybeUninit;

#[cfg(doc)]
use crate::ErrorKind;
use crate::chunk::encoder::{COMPRESS, Encoder, OVERHEAD};
use crate::chunk::init::init;
use crate::closures::ChunkPlace;
use crate::codec::params::Purpose;
use crate::item::element::{Element, bytes_of};
use crate::support::memory::{Target, reserve};
use crate::support::reuse::{self, Reusable};
use crate::{CParams, Chunk, Doing, Result, Threads};

/// Compresses items to one chunk and returns its bytes.
///
/// The typesize of the chunk is the size of `T`, or the typesize that `params` sets. To compress many buffers, use a
/// [`Compressor`], which reuses its memory.
///
/// C: `blosc2_compress_ctx`. Python: `compress2`.
///
/// # Errors
/// Fails with the errors of [compressing](Compressor#errors).
///
/// ```
/// use blosc2::CParams;
///
/// let data: Vec<i32> = (0..10_000).collect();
/// let chunk = blosc2::compress(&data, CParams::default())?;
/// assert!(chunk.len() < 4_000);
/// assert_eq!(blosc2::decompress::<i32>(&chunk)?, data);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[doc(alias("blosc2_compress", "compress2", "pack"))]
pub fn compress<T: Element>(items: &[T], params: impl Borrow<CParams>) -> Result<Vec<u8>> {
    // With an installed library, `init` checks the environment before each call.
    init()?;
    let params = params.borrow();
    let is_small = size_of_val(items) <= reuse::MOST;
    let keep = is_small && params.tuner.is_none() && params.threads == Threads::ONE;
    reuse::with(
        &COMPRESSOR,
        keep,
        |compressor| compressor.params == *params,
        || Compressor::new(params),
        |compressor| compressor.compress(items).map(Chunk::into_bytes),
    )
}

thread_local! {
    static COMPRESSOR: Reusable<Compressor> = const { Reusable::new(None) };
}

/// Returns the maximum size, in bytes, of a chunk with `nbytes` bytes of data. The maximum holds for any data and any
/// parameters, except for chunks of variable-length blocks.
///
/// The result is `nbytes` + 32: data that cannot be compressed is stored unchanged after a header of 32 bytes. C:
/// `BLOSC2_MAX_OVERHEAD`.
///
/// ```
/// use blosc2::{CParams, compress_bound};
///
/// let chunk = blosc2::compress(b"nothing to gain here", CParams::default())?;
/// assert_eq!(chunk.len(), compress_bound(20));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[doc(alias = "BLOSC2_MAX_OVERHEAD")]
pub const fn compress_bound(nbytes: usize) -> usize {
    nbytes.saturating_add(OVERHEAD)
}

/// Compresses buffers to chunks, with the same parameters for each buffer. C: a `blosc2_context` for compression.
///
/// A compressor reuses its memory from one buffer to the next. It compresses one buffer at a time, on
/// [`CParams::threads`] threads. It is `Send`.
///
/// ```
/// use blosc2::{CParams, Codec, Compressor};
///
/// let mut compressor = Compressor::new(CParams::new().codec(Codec::Lz4).level(3))?;
/// for part in [[1.0f64; 500], [2.0; 500]] {
///     let chunk = compressor.compress(&part)?;
///     assert!(chunk.cbytes() < 500);
/// }
/// # Ok::<(), blosc2::Error>(())
/// ```
///
/// # Errors
/// The methods that compress fail with:
/// - [`ErrorKind::InvalidArgument`], if:
///   - a parameter is out of range or contradicts another parameter;
///   - the codec or a filter works only in arrays;
///   - a filter needs whole items, and the length of the data is not a multiple of the typesize;
/// - [`ErrorKind::Unsupported`], if:
///   - this build lacks the codec or a filter;
///   - more than one thread is requested, and the process was forked after C-Blosc2 had started threads;
///   - an installed C-Blosc2 library (feature `system`) cannot compress correctly with these parameters;
/// - [`ErrorKind::TooLarge`]: the data has more than [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes;
/// - [`ErrorKind::OutOfMemory`]: the memory for the chunk cannot be allocated;
/// - [`ErrorKind::Callback`]: the prefilter, or a [user-defined](crate::user_defined) codec, filter or tuner, failed or
///   panicked;
/// - [`ErrorKind::Library`]: the C library failed for another reason.
///
/// # Parallel compression
/// To compress many buffers at the same time, use one clone for each thread. A clone has the same parameters and the
/// same prefilter, but separate memory and a separate tuner. Cloning cannot fail. A clone allocates its memory when it
/// compresses for the first time; that call returns an error if the allocation fails. With the crate `rayon`, `map_with` creates
/// the clones:
/// ```
/// use blosc2::{CParams, Compressor};
/// use rayon::prelude::*;
///
/// let buffers: Vec<Vec<f32>> = (0..8).map(|seed| vec![seed as f32; 10_000]).collect();
/// let compressor = Compressor::new(CParams::default())?;
/// let chunks: Vec<_> = buffers
///     .par_iter()
///     .map_with(compressor, |compressor, buffer| compressor.compress(buffer))
///     .collect::<blosc2::Result<_>>()?;
/// assert_eq!(chunks[7].decompress::<f32>()?, buffers[7]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
#[doc(alias("blosc2_create_cctx", "blosc2_context"))]
pub struct Compressor {
    params: CParams,
    encoder: Option<Encoder>,
}

impl Clone for Compressor {
    fn clone(&self) -> Self {
        // The encoder is created on first use, from the parameters as they were given.
        Self { params: self.params.clone(), encoder: None }
    }
}

impl Compressor {
    /// Creates a compressor with these parameters.
    ///
    /// Some checks depend on the typesize. If `params` sets no typesize, the first call that compresses makes these
    /// checks.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`], if:
    ///   - this build lacks the codec or a filter;
    ///   - no tuner is registered with the id of [`CParams::tuner`];
    ///   - an installed C-Blosc2 library (feature `system`) cannot compress correctly with these parameters;
    ///   - an installed C-Blosc2 library is used (feature `system`), and an environment variable is set that would
    ///     override parameters, such as `BLOSC_CLEVEL`;
    /// - [`ErrorKind::InvalidArgument`]: a parameter is out of range or contradicts another parameter.
    pub fn new(params: impl Borrow<CParams>) -> Result<Self> {
        let params = params.borrow();
        let encoder = match params.typesize {
            Some(typesize) => Some(Encoder::new(params.resolve(typesize, Purpose::Chunk)?)?),
            None => {
                params.check_values()?;
                None
            }
        };
        Ok(Self { params: params.clone(), encoder })
    }

    /// Returns the parameters that were passed to [`new`](Self::new). With a [tuner](CParams::tuner), returns the
    /// parameters that the tuner chose for the last chunk. C: `blosc2_ctx_get_cparams`.
    ///
    /// The result does not contain automatic values, such as an automatic block size; each [`Chunk`] contains these
    /// values.
    #[doc(alias = "blosc2_ctx_get_cparams")]
    pub fn params(&self) -> &CParams {
        let tuned = self.encoder.as_ref().and_then(Encoder::tuned_params);
        tuned.unwrap_or(&self.params)
    }

    /// Compresses items to a chunk.
    ///
    /// C: `blosc2_compress_ctx`. Python: `compress2`.
    ///
    /// # Errors
    /// Fails with the errors of [compressing](Compressor#errors).
    #[doc(alias = "blosc2_compress_ctx")]
    pub fn compress<T: Element>(&mut self, items: &[T]) -> Result<Chunk> {
        let mut bytes = Vec::new();
        let place = ChunkPlace::default();
        self.encoder_for::<T>()?.compress_to(&bytes_of(items), place, &mut bytes)?;
        Chunk::written(bytes, COMPRESS)
    }

    /// Compresses items to the start of a buffer, and returns the length of the chunk in bytes.
    ///
    /// A buffer of [`compress_bound`] bytes is long enough for any data. After the call, the bytes after the chunk
    /// are unspecified.
    ///
    /// # Errors
    /// Fails with the errors of [compressing](Compressor#errors), and with:
    /// - [`ErrorKind::BufferTooSmall`]: the chunk does not fit. This can happen even if the finished chunk would fit,
    ///   since some codecs need additional space during compression.
    ///
    /// ```
    /// use blosc2::{CParams, Compressor, compress_bound};
    ///
    /// let items = [5u16; 1000];
    /// let mut buffer = vec![0; compress_bound(size_of_val(&items))];
    /// let len = Compressor::new(CParams::default())?.compress_into(&items, &mut buffer)?;
    /// assert_eq!(blosc2::decompress::<u16>(&buffer[..len])?, items);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn compress_into<T: Element>(&mut self, items: &[T], target: &mut [u8]) -> Result<usize> {
        let encoder = self.encoder_for::<T>()?;
        Ok(encoder.compress_uninit(&bytes_of(items), Target::of(target))?.len())
    }

    /// Compresses items, appends the chunk to a vector of bytes, and returns the length of the chunk in bytes.
    ///
    /// # Errors
    /// Fails with the errors of [compressing](Compressor#errors). After an error, the vector is unchanged.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, Compressor};
    ///
    /// let mut compressor = Compressor::new(CParams::default())?;
    /// let mut file = b"my header".to_vec();
    /// let len = compressor.compress_append(&[1u32; 500], &mut file)?;
    /// assert_eq!(file.len(), 9 + len);
    /// assert_eq!(ChunkRef::new(&file[9..])?.decompress::<u32>()?, [1; 500]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "compress_to_vec")]
    pub fn compress_append<T: Element>(
        &mut self,
        items: &[T],
        bytes: &mut Vec<u8>,
    ) -> Result<usize> {
        reserve(bytes, compress_bound(size_of_val(items))).doing("compress")?;
        let len = self.compress_uninit(items, bytes.spare_capacity_mut())?.len();
        // SAFETY: `compress_uninit` has initialized the chunk, which is at the start of the spare capacity.
        unsafe { bytes.set_len(bytes.len() + len) };
        Ok(len)
    }

    /// Compresses items to the start of uninitialized memory, and returns the bytes of the chunk.
    ///
    /// A target of [`compress_bound`] bytes is long enough for any data.
    ///
    /// # Errors
    /// Fails with the errors of [compressing](Compressor#errors), and with:
    /// - [`ErrorKind::BufferTooSmall`]: the chunk does not fit. This can happen even if the finished chunk would fit,
    ///   since some codecs need additional space during compression.
    pub fn compress_uninit<'t, T: Element>(
        &mut self,
        items: &[T],
        target: &'t mut [MaybeUninit<u8>],
    ) -> Result<&'t mut [u8]> {
        self.encoder_for::<T>()?.compress_uninit(&bytes_of(items), Target::new(target))
    }

    /// Compresses several buffers to one chunk of variable-length blocks, one block for each buffer.
    ///
    /// [`Chunk::blocks`] decompresses all blocks, and [`Chunk::block`] decompresses one block. C:
    /// `blosc2_vlcompress_ctx`.
    ///
    /// # Errors
    /// Fails with the errors of [compressing](Compressor#errors), and with:
    /// - [`ErrorKind::InvalidArgument`]: there are no buffers, a buffer is empty, the filters include
    ///   [delta](crate::Filter::Delta), or the parameters request chunks of Blosc1;
    /// - [`ErrorKind::TooLarge`]: the chunk does not fit in 2^31 - 1 bytes.
    ///
    /// ```
    /// use blosc2::{CParams, Codec, Compressor};
    ///
    /// let mut compressor = Compressor::new(CParams::new().codec(Codec::Lz4))?;
    /// let chunk = compressor.compress_blocks(&[b"one".as_slice(), b"twenty", b"three"])?;
    /// assert_eq!(chunk.nblocks(), 3);
    /// assert_eq!(chunk.block(1)?, b"twenty");
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "blosc2_vlcompress_ctx")]
    pub fn compress_blocks<T: Element>(&mut self, blocks: &[&[T]]) -> Result<Chunk> {
        let blocks: Vec<_> = blocks.iter().map(|block| bytes_of(block)).collect();
        let blocks: Vec<&[u8]> = blocks.iter().map(|block| &**block).collect();
        let mut bytes = Vec::new();
        let place = ChunkPlace::default();
        self.encoder_for::<T>()?.compress_blocks(&blocks, place, &mut bytes)?;
        Chunk::written(bytes, COMPRESS)
    }

    fn encoder_for<T: Element>(&mut self) -> Result<&mut Encoder> {
        let typesize = self.params.typesize.unwrap_or(size_of::<T>());
        if let Some(encoder) = self.encoder.take_if(|encoder| encoder.typesize() == typesize) {
            return Ok(self.encoder.insert(encoder));
        }
        let resolved = self.params.resolve(typesize, Purpose::Chunk)?;
        let encoder = match self.encoder.take() {
            Some(mut encoder) => {
                encoder.set_params(resolved)?;
                encoder
            }
            None => Encoder::new(resolved)?,
        };
        Ok(self.encoder.insert(encoder))
    }
}
