//! Buffers to chunks.
//!
//! ```
//! use blosc2::{CParams, Codec, Compressor};
//!
//! let mut compressor = Compressor::new(CParams::new().codec(Codec::Lz4).level(3))?;
//! for part in [[1.0f64; 500], [2.0; 500]] {
//!     let chunk = compressor.compress(&part)?;
//!     assert!(chunk.cbytes() < 500);
//! }
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::borrow::Borrow;
use std::mem::MaybeUninit;
use std::sync::Arc;

use crate::closures::{BoxError, ChunkBlock};
use crate::closures::{ChunkFilter, ChunkPlace};
use crate::element::{Element, bytes_of};
use crate::encoder::{Encoder, OVERHEAD};
use crate::memory::Target;
use crate::params::Purpose;
use crate::{CParams, Chunk, Error, ErrorKind, Result};

/// Compresses items to one chunk.
///
/// The chunk's typesize is that of `T` unless `params` has one. C's `blosc2_compress_ctx`, Python's
/// `compress2`. To compress many buffers, use a [`Compressor`].
///
/// # Errors
/// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): a parameter out of range;
/// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): a codec or filter that this build does not
///   have;
/// - [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge): more than
///   [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes.
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
    Compressor::new(params)?.compress(items).map(Chunk::into_bytes)
}

/// The most bytes that a chunk of `nbytes` bytes of data takes, whatever the data and the parameters; but
/// not one of blocks of variable length.
///
/// That is 32 more: what gains nothing is stored as it is.
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

/// Compresses any number of buffers with the same parameters. C's context for compression.
///
/// It keeps its memory from one buffer to the next. It can be sent to another thread, and compresses one buffer at a
/// time; [`CParams::threads`] says on how many threads.
///
/// To compress many buffers at the same time, use a clone for each thread. A clone has the same parameters, shares the
/// prefilter, and has memory and a tuner of its own. Cloning cannot fail: C allocates the memory when the clone compresses
/// for the first time, and that call returns the error. With rayon:
/// ```
/// # #[cfg(feature = "rayon")] {
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
/// # }
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
#[doc(alias("blosc2_create_cctx", "blosc2_context"))]
pub struct Compressor {
    params: CParams,
    encoder: Option<Encoder>,
    prefilter: Option<Arc<ChunkFilter>>,
}

impl Clone for Compressor {
    fn clone(&self) -> Self {
        // The encoder is made when it is first needed, from the parameters as they were given.
        Self { params: self.params.clone(), encoder: None, prefilter: self.prefilter.clone() }
    }
}

impl Compressor {
    /// A compressor with these parameters.
    ///
    /// # Errors
    /// - [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported): a codec or filter that this build does
    ///   not have;
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): a parameter out of range. Where
    ///   the typesize is left to the data, what depends on it is seen when there is some.
    pub fn new(params: impl Borrow<CParams>) -> Result<Self> {
        let params = params.borrow();
        let encoder = match params.typesize {
            Some(typesize) => Some(Encoder::new(params.resolve(typesize, Purpose::Chunk)?)?),
            None => {
                params.check_values()?;
                None
            }
        };
        Ok(Self { params: params.clone(), encoder, prefilter: None })
    }

    /// Runs a closure on each block before it is compressed, which makes of it what goes to the filters.
    ///
    /// It is run on the threads of the compressor, at once, more than once for a block where that has to be
    /// compressed again, and also where data is stored. How long blocks are says [`CParams::blocksize`], or
    /// else the library; with delta, and with an installed library, it has to be said, and the closure is run
    /// on the caller's thread. A compressor with a closure starts threads of its own, so that it is worth
    /// keeping. The closure may use this crate itself; inside it that works on one thread. Where it fails
    /// or panics, compressing gives an error of [`ErrorKind::Callback`](crate::ErrorKind::Callback), and may
    /// be tried again. C's `prefilter`, Python's `prefilter`.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, ChunkBlock};
    /// use blosc2::{CParams, Compressor};
    ///
    /// let square = |block: &mut ChunkBlock<'_>| -> Result<(), BoxError> {
    ///     let input = block.input_as::<u32>()?;
    ///     for (to, from) in block.output_as::<u32>()?.iter_mut().zip(input) {
    ///         *to = from * from;
    ///     }
    ///     Ok(())
    /// };
    /// let params = CParams::default().blocksize(1024);
    /// let mut compressor = Compressor::new(&params)?.with_prefilter(square);
    /// let chunk = compressor.compress(&[7u32; 1000])?;
    /// assert_eq!(chunk.decompress::<u32>()?, [49; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn with_prefilter<E: Into<BoxError>>(
        mut self,
        prefilter: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.prefilter = Some(Arc::new(ChunkFilter::prefilter(prefilter)));
        self.encoder = None;
        self
    }

    /// The parameters: those that it was made with, or those that a tuner has chosen for the last chunk. C's
    /// `blosc2_ctx_get_cparams`.
    ///
    /// What was left to the library, such as an automatic block size, the chunk says: see [`Chunk`].
    #[doc(alias = "blosc2_ctx_get_cparams")]
    pub fn params(&self) -> &CParams {
        let tuned = self.encoder.as_ref().and_then(Encoder::tuned_params);
        tuned.unwrap_or(&self.params)
    }

    /// Compresses items to a chunk.
    ///
    /// # Errors
    /// As [`compress`].
    #[doc(alias = "blosc2_compress_ctx")]
    pub fn compress<T: Element>(&mut self, items: &[T]) -> Result<Chunk> {
        let mut bytes = Vec::new();
        let header = self.encoder_for::<T>()?.compress_to(
            &bytes_of(items),
            ChunkPlace::default(),
            &mut bytes,
        )?;
        bytes.shrink_to_fit();
        Ok(Chunk::trusted(bytes, header))
    }

    /// Compresses items to the start of a buffer, and gives the length of the chunk.
    ///
    /// [`compress_bound`] says how long the buffer has to be for any data. The rest of it may hold
    /// anything afterwards.
    ///
    /// # Errors
    /// As [`compress`], and [`ErrorKind::BufferTooSmall`](crate::ErrorKind::BufferTooSmall) where the chunk
    /// does not fit, or only just: some codecs need a little more room while they work.
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
        let header = encoder.compress_uninit(&bytes_of(items), Target::of(target))?;
        Ok(header.cbytes as usize)
    }

    /// Compresses items to a chunk at the end of a vector of bytes, and returns the length of the chunk.
    ///
    /// # Errors
    /// Those of [`compress`]. The vector is then as it was.
    ///
    /// ```
    /// use blosc2::{CParams, ChunkRef, Compressor};
    ///
    /// let mut compressor = Compressor::new(CParams::default())?;
    /// let mut file = b"my header".to_vec();
    /// let len = compressor.compress_to_vec(&[1u32; 500], &mut file)?;
    /// assert_eq!(file.len(), 9 + len);
    /// assert_eq!(ChunkRef::new(&file[9..])?.decompress::<u32>()?, [1; 500]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn compress_to_vec<T: Element>(
        &mut self,
        items: &[T],
        bytes: &mut Vec<u8>,
    ) -> Result<usize> {
        let room = compress_bound(size_of_val(items));
        bytes.try_reserve(room).map_err(|error| {
            let detail = format!("{room} bytes: {error}");
            Error::new(ErrorKind::OutOfMemory, "compress", detail)
        })?;
        let len = self.compress_uninit(items, bytes.spare_capacity_mut())?.len();
        // SAFETY: `compress_uninit` has initialised the chunk, which is at the start of the spare capacity.
        unsafe { bytes.set_len(bytes.len() + len) };
        Ok(len)
    }

    /// Compresses items to the start of memory that need not be initialised, and gives the chunk.
    ///
    /// # Errors
    /// As [`compress_into`](Self::compress_into).
    pub fn compress_uninit<'t, T: Element>(
        &mut self,
        items: &[T],
        target: &'t mut [MaybeUninit<u8>],
    ) -> Result<&'t mut [u8]> {
        let header =
            self.encoder_for::<T>()?.compress_uninit(&bytes_of(items), Target::new(target))?;
        let chunk = &mut target[..header.cbytes as usize];
        // SAFETY: the encoder has initialised as many bytes as the header says.
        Ok(unsafe { std::slice::from_raw_parts_mut(chunk.as_mut_ptr().cast(), chunk.len()) })
    }

    /// Compresses several buffers to one chunk, each to a block of its own length.
    ///
    /// [`Chunk::blocks`] gives them back, [`Chunk::block`] one of them. C's `blosc2_vlcompress_ctx`.
    ///
    /// # Errors
    /// As [`compress`], and [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument) for no buffers
    /// or an empty one, with delta, and for chunks of Blosc1.
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
        let header =
            self.encoder_for::<T>()?.compress_blocks(&blocks, ChunkPlace::default(), &mut bytes)?;
        bytes.shrink_to_fit();
        Ok(Chunk::trusted(bytes, header))
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
            None => {
                let mut encoder = Encoder::new(resolved)?;
                if let Some(prefilter) = &self.prefilter {
                    encoder.set_prefilter(prefilter.clone());
                }
                encoder
            }
        };
        Ok(self.encoder.insert(encoder))
    }
}
