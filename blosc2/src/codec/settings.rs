//! Parameters of compression and decompression.

use std::thread;

use blosc2_format::chunk::SplitMode;

use crate::closures::{self, BoxError, ChunkBlock, ChunkFilter};
use crate::codec::installed;
#[cfg(feature = "dynamic-plugins")]
use crate::codec::plugins::PluginParams;
use crate::{Codec, Filter};

/// The number of threads that work on one chunk, or on the chunks of an array.
///
/// The default is 1, so that a program that calls this crate on several threads does not oversubscribe the processor.
/// With more than one thread, blocks are stored in the order in which their compression finishes. Therefore the bytes
/// of a chunk can differ between runs; the decompressed data is always the same.
///
/// A fork does not copy threads. If a process was forked after C-Blosc2 had started threads, the use of more than one
/// thread for a single chunk fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// With an installed C-Blosc2 library (feature `system`), the compression or decompression of a single chunk always
/// uses one thread.
///
/// C and Python: `nthreads`.
///
/// ```
/// use blosc2::{CParams, Threads};
///
/// let params = CParams::new().threads(Threads::auto());
/// assert!((1..=256).contains(&params.threads.count()));
/// assert_eq!(CParams::new().threads(4).threads, Threads::new(4));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "nthreads")]
pub struct Threads(i16);

impl Threads {
    /// One thread: the caller's thread.
    pub const ONE: Self = Self(1);

    /// Returns `count` threads. The number is clamped to the range 1 to 256.
    pub fn new(count: usize) -> Self {
        Self(count.clamp(1, 256) as i16)
    }

    /// Returns the number of threads that the system makes available to this process, at most 256. If this number is
    /// unknown, returns 1.
    pub fn auto() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// Returns the number of threads.
    pub fn count(self) -> usize {
        usize::from(self.0.unsigned_abs())
    }

    /// Returns the number of threads that a caller of this crate may use: [`count`](Self::count), but 1 inside a
    /// user-defined codec or filter and inside other closures of this crate. The other threads may be waiting for the
    /// closure. [`for_each`](Self::for_each) uses this number.
    ///
    /// ```
    /// use blosc2::Threads;
    ///
    /// assert_eq!(Threads::new(4).available(), 4);
    /// ```
    pub fn available(self) -> usize {
        closures::threads(self.0).unsigned_abs().into()
    }

    /// The number of threads that is passed to C.
    pub(crate) fn for_c(self) -> i16 {
        if installed::BREAKS_THREADS { 1 } else { self.0 }
    }
}

/// Calls [`Threads::new`].
impl From<usize> for Threads {
    fn from(count: usize) -> Self {
        Self::new(count)
    }
}

impl Default for Threads {
    fn default() -> Self {
        Self::ONE
    }
}

/// Parameters of compression. C: `blosc2_cparams`. Python: `CParams`.
///
/// The values are checked when they are used, not when they are set. The defaults are:
/// - the codec Zstandard at level 5; without the feature `zstd`, set another codec;
/// - the filter shuffle;
/// - automatic splitting and automatic block size;
/// - the size of the item type as the typesize (Python's `CParams`: 8);
/// - one thread (Python's `CParams`: several threads).
///
/// ```
/// use blosc2::{CParams, Codec, Filter};
///
/// let params = CParams::new().codec(Codec::Lz4).level(9).filters(&[Filter::Bitshuffle]);
/// let chunk = blosc2::compress(&[1.5f32; 1000], &params)?;
/// assert_eq!(blosc2::decompress::<f32>(&chunk)?, [1.5; 1000]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias("blosc2_cparams", "cparams_dflts"))]
pub struct CParams {
    /// The codec.
    pub codec: Codec,
    /// The parameter of the codec; 0 for codecs without a parameter. See [`Codec`] for its meaning. C: `compcode_meta`.
    /// Python: `codec_meta`.
    pub codec_meta: u8,
    /// The compression level, 0 (no compression) to 9. C and Python: `clevel`.
    pub level: u8,
    /// The size of an item in bytes, 1 to [`MAX_TYPESIZE`](crate::limits::MAX_TYPESIZE). `None` means the size of the
    /// type of the compressed items.
    pub typesize: Option<usize>,
    /// The size of a block in bytes, at least the typesize. The size is rounded down to a multiple of the typesize.
    /// `None` means an automatic size. Arrays have a block shape instead.
    pub blocksize: Option<usize>,
    /// The rule for splitting blocks into streams.
    pub split: SplitMode,
    /// The filters, at most 6, in the order in which they are applied.
    pub filters: Vec<Filter>,
    /// Whether each chunk contains a dictionary that is trained on the data of the chunk. Only for Zstandard, LZ4 and
    /// LZ4HC. C and Python: `use_dict`.
    pub dictionary: bool,
    /// The number of threads that work on one chunk, or on the chunks of an array; 1 by default.
    pub threads: Threads,
    /// Whether chunks have the 16-byte header of Blosc1, so that Blosc1 can read them.
    pub blosc1: bool,
    /// The tuner, which chooses the parameters of each chunk. `None` means no tuner.
    pub tuner: Option<Tuner>,
    pub(crate) prefilter: Option<ChunkFilter>,
    /// The parameters of the codec's plugin (feature `dynamic-plugins`); see [`Codec::plugin_params`].
    #[cfg(feature = "dynamic-plugins")]
    pub plugin_params: Option<PluginParams>,
}

impl Default for CParams {
    fn default() -> Self {
        Self {
            codec: Codec::Zstd,
            codec_meta: 0,
            level: 5,
            typesize: None,
            blocksize: None,
            split: SplitMode::Auto,
            filters: vec![Filter::Shuffle],
            dictionary: false,
            threads: Threads::ONE,
            blosc1: false,
            tuner: None,
            prefilter: None,
            #[cfg(feature = "dynamic-plugins")]
            plugin_params: None,
        }
    }
}

impl CParams {
    /// Returns the default parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the codec. Default: [`Codec::Zstd`].
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Sets the parameter of the codec; see [`Codec`] for its meaning. Default: 0.
    pub fn codec_meta(mut self, meta: u8) -> Self {
        self.codec_meta = meta;
        self
    }

    /// Sets the compression level, 0 (no compression) to 9. Higher levels usually compress better and take longer.
    /// Default: 5.
    #[doc(alias = "clevel")]
    pub fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Sets the size of an item in bytes. Default: the size of the type of the compressed items.
    pub fn typesize(mut self, typesize: usize) -> Self {
        self.typesize = Some(typesize);
        self
    }

    /// Sets the size of a block in bytes. Default: an automatic size. Arrays have a block shape instead.
    pub fn blocksize(mut self, blocksize: usize) -> Self {
        self.blocksize = Some(blocksize);
        self
    }

    /// Sets the rule for splitting blocks into streams. Default: [`SplitMode::Auto`].
    pub fn split(mut self, split: SplitMode) -> Self {
        self.split = split;
        self
    }

    /// Sets the filters, at most 6, in the order in which they are applied. Default: [`Filter::Shuffle`]. An empty
    /// slice means no filters.
    pub fn filters(mut self, filters: &[Filter]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    /// Sets whether each chunk contains a dictionary that is trained on the data of the chunk. Only for Zstandard, LZ4
    /// and LZ4HC. Off by default.
    #[doc(alias = "use_dict")]
    pub fn dictionary(mut self, dictionary: bool) -> Self {
        self.dictionary = dictionary;
        self
    }

    /// Sets the number of threads that work on one chunk, or on the chunks of an array. Default: 1. `threads` is a
    /// number, or a [`Threads`] value such as the result of [`Threads::auto`]. Numbers are clamped to the range 1 to
    /// 256.
    #[doc(alias = "nthreads")]
    pub fn threads(mut self, threads: impl Into<Threads>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Sets whether chunks have the 16-byte header of Blosc1, so that Blosc1 can read them. Off by default. This option
    /// is for single chunks, as in Zarr and HDF5; super-chunks and arrays do not accept it.
    ///
    /// Blosc1 supports only these parameters; compression with other parameters fails with
    /// [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument):
    /// - the codecs BloscLZ, LZ4, LZ4HC, zlib and Zstandard, without a codec parameter and without a dictionary;
    /// - typesizes up to 255;
    /// - no filter, or one filter: shuffle or bitshuffle.
    ///
    /// With the feature `system`, compression to chunks of Blosc1 always fails with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// ```
    /// # if blosc2::library::instruction_set().is_none() {
    /// #     return Ok::<(), blosc2::Error>(()); // An installed library cannot do it.
    /// # }
    /// use blosc2::{CParams, ChunkRef, Codec, Filter};
    ///
    /// let params = CParams::new().codec(Codec::Lz4).filters(&[Filter::Bitshuffle]).blosc1(true);
    /// let bytes = blosc2::compress(&[1.0f32; 1000], &params)?;
    /// let chunk = ChunkRef::new(&bytes)?;
    /// assert!(chunk.is_blosc1() && chunk.format_version() == 2);
    /// assert_eq!(chunk.decompress::<f32>()?, [1.0; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn blosc1(mut self, blosc1: bool) -> Self {
        self.blosc1 = blosc1;
        self
    }

    /// Sets the tuner, which chooses the parameters of each chunk. Default: no tuner.
    pub fn tuner(mut self, tuner: Tuner) -> Self {
        self.tuner = Some(tuner);
        self
    }

    /// Sets the prefilter: a closure that transforms each block before the filters and the codec. The output of the
    /// closure is compressed instead of the input.
    ///
    /// - Threads: with more than one [thread](Self::threads), the closure usually runs on the threads of the
    ///   compressor, on several blocks at the same time. A compressor with a prefilter does not share its threads with
    ///   other compressors, so create the compressor once and reuse it. The closure runs on the caller's thread:
    ///   - for variable-length blocks;
    ///   - if one of the filters is [`Filter::Delta`](crate::Filter::Delta);
    ///   - always, with an installed C-Blosc2 library (feature `system`).
    /// - Calls: the closure is called at least once for each block, and several times if a block is compressed several
    ///   times. It is also called for data that is then stored uncompressed.
    /// - Block size: [`blocksize`](Self::blocksize) sets the size of the blocks; by default, the size is automatic. The program
    ///   has to set the block size if one of the filters is [`Filter::Delta`](crate::Filter::Delta), or if an installed
    ///   C-Blosc2 library is used (feature `system`).
    /// - Nested use: the closure can call functions of this crate; these calls use one thread.
    /// - Failure: if the closure fails or panics, the call that compresses returns an error of
    ///   [`ErrorKind::Callback`](crate::ErrorKind::Callback). The compressor remains usable.
    ///
    /// In a super-chunk or an array, the argument of the closure contains the index of the chunk, and the byte offset of
    /// the block in the data of the super-chunk. [`ChunkBlock`](crate::user_defined::ChunkBlock) shows how the closure
    /// computes the indices of the items of an array. Special chunks, such as those of
    /// [`zeros`](crate::NDArrayBuilder::zeros), [`full`](crate::NDArrayBuilder::full) and
    /// [`fill`](crate::SChunk::fill), are stored without it. While a prefilter is set, each change must cover complete
    /// chunks; another change fails with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). The prefilter is no
    /// parameter of the stored data: summaries and copies do not have it.
    ///
    /// C: `blosc2_cparams.prefilter`. Python: `SChunk.prefilter`.
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
    /// let params = CParams::default().blocksize(1024).prefilter(square);
    /// let mut compressor = Compressor::new(&params)?;
    /// let chunk = compressor.compress(&[7u32; 1000])?;
    /// assert_eq!(chunk.decompress::<u32>()?, [49; 1000]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn prefilter<E: Into<BoxError>>(
        mut self,
        prefilter: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.prefilter = Some(ChunkFilter::prefilter(prefilter));
        self
    }

    /// Returns the parameters without the prefilter.
    pub(crate) fn without_closure(&self) -> Self {
        Self { prefilter: None, ..self.clone() }
    }

    /// Sets the parameters of the codec's plugin; see [`Codec::plugin_params`]. If the parameters are for another
    /// codec, compression fails with [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument).
    #[cfg(feature = "dynamic-plugins")]
    #[doc(alias = "codec_params")]
    pub fn plugin_params(mut self, params: PluginParams) -> Self {
        self.plugin_params = Some(params);
        self
    }
}

/// A tuner, identified by its id. A tuner chooses the compression parameters of each chunk; see
/// [`UserTuner`](crate::user_defined::UserTuner).
///
/// ```
/// use blosc2::{CParams, Compressor, ErrorKind, Tuner};
///
/// let params = CParams::new().tuner(Tuner::from_id(254));
/// let error = Compressor::new(&params).unwrap_err(); // No tuner has this id.
/// assert_eq!(error.kind(), ErrorKind::Unsupported);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuner(u8);

impl Tuner {
    /// Returns the tuner with this id. If no tuner is registered with this id, functions that receive the id in
    /// [`CParams::tuner`] fail with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
    pub fn from_id(id: u8) -> Self {
        Self(id)
    }

    /// Returns the id of the tuner.
    pub fn id(self) -> u8 {
        self.0
    }
}

/// Parameters of decompression. C: `blosc2_dparams`. Python: `DParams`.
///
/// ```
/// use blosc2::{CParams, DParams, Decompressor};
///
/// let bytes = blosc2::compress(&[2u16; 1000], CParams::default())?;
/// let mut decompressor = Decompressor::new(DParams::new().threads(2))?;
/// assert_eq!(decompressor.decompress::<u16>(&bytes)?, [2; 1000]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias("blosc2_dparams", "dparams_dflts"))]
pub struct DParams {
    /// The number of threads that work on one chunk, or on the chunks of an array; 1 by default.
    pub threads: Threads,
    /// The maximum size in bytes of the cache of decoded blocks of an array; 0, the default, means no cache.
    pub cache: usize,
    /// Whether the items of an array that are stored in non-native byte order are converted; `false` by default.
    pub convert_byte_order: bool,
    pub(crate) postfilter: Option<ChunkFilter>,
}

impl DParams {
    /// Returns the default parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the number of threads that work on one chunk, or on the chunks of an array. Default: 1. `threads` is a
    /// number, or a [`Threads`] value such as the result of [`Threads::auto`]. Numbers are clamped to the range 1 to
    /// 256.
    #[doc(alias = "nthreads")]
    pub fn threads(mut self, threads: impl Into<Threads>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Sets the maximum size in bytes of the cache of decoded blocks of an array. When the cache is full, the least
    /// recently used blocks are dropped. The default is 0: no cache. Chunks and super-chunks ignore this parameter.
    ///
    /// The cache speeds up repeated reads from the same blocks, such as reads of neighboring items in separate calls.
    /// The size includes an overhead of 128 bytes for each block.
    ///
    /// These events empty the cache:
    /// - a call of [`set_dparams`](crate::NDArray::set_dparams);
    /// - a change by a handle of this program;
    /// - with [locking](crate::OpenOptions::locking), a change by another process that locks the file;
    /// - a call of [`refresh`](crate::NDArray::refresh).
    ///
    /// After a change by a process that does not lock the file, reads can return outdated items until
    /// [`refresh`](crate::NDArray::refresh) is called.
    ///
    /// ```
    /// use blosc2::{DParams, NDArray, OpenOptions};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.b2nd");
    /// NDArray::builder().target(&path).from_fn([100, 100], |[row, column]| row * column)?;
    /// let params = DParams::new().cache(16 << 20).threads(2);
    /// let array = NDArray::open_with(&path, OpenOptions::new().dparams(params))?;
    /// assert_eq!((array.item::<u64>([3, 5])?, array.item::<u64>([3, 6])?), (15, 18)); // one block
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cache(mut self, bytes: usize) -> Self {
        self.cache = bytes;
        self
    }

    /// Sets whether reads and writes of an array convert items that are stored in non-native byte order. Off by default.
    /// Chunks and super-chunks ignore this parameter.
    ///
    /// Without conversion, items in non-native byte order can be read and written only as
    /// [`RawItems`](crate::RawItems). [`NDArrayBuilder::cast`](crate::NDArrayBuilder::cast) creates a copy in native byte
    /// order.
    pub fn convert_byte_order(mut self, convert: bool) -> Self {
        self.convert_byte_order = convert;
        self
    }

    /// Sets the postfilter: a closure that transforms each block after it is decompressed. The caller receives the
    /// output of the closure.
    ///
    /// - Calls: the closure runs for every kind of chunk, including special chunks. A partial read runs the closure
    ///   only on the blocks that the read needs.
    /// - Threads: with more than one [thread](Self::threads), the closure usually runs on the threads of the
    ///   decompressor, on several blocks at the same time. A decompressor with a postfilter does not share its threads
    ///   with other decompressors, so create the decompressor once and reuse it. The closure runs on the caller's
    ///   thread:
    ///   - for special chunks and for chunks stored uncompressed;
    ///   - for variable-length blocks;
    ///   - for single blocks and ranges of items, with the exceptions that [`Decompressor::items`](crate::Decompressor::items) lists;
    ///   - always, with an installed C-Blosc2 library (feature `system`).
    /// - Nested use: the closure can call functions of this crate; these calls use one thread.
    /// - Failure: if the closure fails or panics, the call that decompresses returns an error of
    ///   [`ErrorKind::Callback`](crate::ErrorKind::Callback). The decompressor remains usable.
    ///
    /// In a super-chunk or an array, the argument of the closure contains the index of the chunk, and the byte offset of
    /// the block in the data of the super-chunk. [`ChunkBlock`](crate::user_defined::ChunkBlock) shows how the closure
    /// computes the indices of the items of an array. With variable-length chunks, the first read reads the
    /// headers of all chunks. While a postfilter is set, each change must cover complete chunks; another change fails
    /// with [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported). Summaries and copies do not have the postfilter.
    ///
    /// C: `blosc2_dparams.postfilter`. Python: `SChunk.postfilter`.
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
    /// let mut decompressor = Decompressor::new(DParams::new().postfilter(celsius))?;
    /// let chunk = ChunkRef::new(&bytes)?;
    /// assert_eq!(decompressor.items::<f32>(&chunk, 5..7)?, [27.0; 2]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn postfilter<E: Into<BoxError>>(
        mut self,
        postfilter: impl Fn(&mut ChunkBlock<'_>) -> Result<(), E> + Send + Sync + 'static,
    ) -> Self {
        self.postfilter = Some(ChunkFilter::postfilter(postfilter));
        self
    }

    /// Returns the parameters without the postfilter.
    pub(crate) fn without_closure(&self) -> Self {
        Self { postfilter: None, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_counted_from_one() {
        assert_eq!(Threads::new(0), Threads::ONE);
        assert_eq!(Threads::new(100_000).count(), 256);
        assert_eq!(CParams::new().threads(4), CParams::new().threads(Threads::new(4)));
        assert_eq!(DParams::new().threads(0).threads, Threads::ONE);
        assert!(Threads::auto().count() >= 1);
    }
}
