//! How data is compressed and decompressed.
//!
//! ```
//! use blosc2::{CParams, Codec, Filter};
//!
//! let params = CParams::new().codec(Codec::Lz4).level(9).filters(&[Filter::Bitshuffle]);
//! let chunk = blosc2::compress(&[1.5f32; 1000], &params)?;
//! assert_eq!(blosc2::decompress::<f32>(&chunk)?, [1.5; 1000]);
//! # Ok::<(), blosc2::Error>(())
//! ```

use std::thread;

use blosc2_format::chunk as format;
use blosc2_sys as sys;

#[cfg(feature = "dynamic-plugins")]
use crate::plugins::PluginParams;
use crate::{Codec, Filter, installed};

/// Whether the bytes of an item go to streams of their own when a block is compressed.
///
/// C's `BLOSC_*_SPLIT`, Python's `SplitMode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SplitMode {
    /// Always. For experiments.
    Always,
    /// Never. For experiments.
    Never,
    /// As fits the codec and the filters. Python's default, and ours.
    Auto,
    /// As old versions of the library did. C's default.
    ForwardCompat,
}

impl SplitMode {
    pub(crate) fn from_code(code: u8) -> Self {
        match i32::from(code) {
            sys::BLOSC_ALWAYS_SPLIT => Self::Always,
            sys::BLOSC_NEVER_SPLIT => Self::Never,
            sys::BLOSC_AUTO_SPLIT => Self::Auto,
            _ => Self::ForwardCompat,
        }
    }

    pub(crate) fn from_format(split: format::SplitMode) -> Self {
        match split {
            format::SplitMode::Always => Self::Always,
            format::SplitMode::Never => Self::Never,
            format::SplitMode::Auto => Self::Auto,
            format::SplitMode::ForwardCompat => Self::ForwardCompat,
        }
    }

    pub(crate) fn to_format(self) -> format::SplitMode {
        match self {
            Self::Always => format::SplitMode::Always,
            Self::Never => format::SplitMode::Never,
            Self::Auto => format::SplitMode::Auto,
            Self::ForwardCompat => format::SplitMode::ForwardCompat,
        }
    }

    pub(crate) fn code(self) -> i32 {
        match self {
            Self::Always => sys::BLOSC_ALWAYS_SPLIT,
            Self::Never => sys::BLOSC_NEVER_SPLIT,
            Self::Auto => sys::BLOSC_AUTO_SPLIT,
            Self::ForwardCompat => sys::BLOSC_FORWARD_COMPAT_SPLIT,
        }
    }
}

/// How many threads work on one chunk, or on the chunks of an array.
///
/// One by default, which composes with threads of the program's own. Where several work on one chunk, its blocks
/// are put in the order in which they are done, so that the bytes of the chunk may differ from run to run; its data
/// does not. More are refused for single chunks in a process that was forked after C-Blosc2 had started threads, since
/// those stay behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[doc(alias = "nthreads")]
pub struct Threads(i16);

impl Threads {
    /// One thread: the caller's.
    pub const ONE: Self = Self(1);

    /// So many threads; 0 counts as 1, and more than 256 as 256.
    pub fn new(count: usize) -> Self {
        Self(count.clamp(1, 256) as i16)
    }

    /// As many as the machine offers this process.
    pub fn auto() -> Self {
        Self::new(thread::available_parallelism().map_or(1, usize::from))
    }

    /// The number.
    pub fn count(self) -> usize {
        usize::from(self.0.unsigned_abs())
    }

    /// For threads of our own.
    pub(crate) fn for_any(self) -> i16 {
        self.0
    }

    /// What C is told.
    pub(crate) fn for_c(self) -> i16 {
        if installed::BREAKS_THREADS { 1 } else { self.0 }
    }
}

/// As [`Threads::new`].
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

/// How data is compressed. C's `blosc2_cparams`, Python's `CParams`.
///
/// The default is what Python writes: Zstandard at level 5, shuffle, automatic split and block size,
/// the typesize of the data; but one thread. The values are checked when they are used: without the
/// feature `zstd`, a codec has to be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias("blosc2_cparams", "cparams_dflts"))]
pub struct CParams {
    /// The codec.
    pub codec: Codec,
    /// Parameter of the codec; 0 unless the codec asks for one.
    pub codec_meta: u8,
    /// Compression level, 0 (store) to 9.
    pub level: u8,
    /// Bytes of an item, 1 to [`MAX_TYPESIZE`](crate::limits::MAX_TYPESIZE); `None` for the size of the data's type.
    pub typesize: Option<usize>,
    /// Bytes of a block; `None` for automatic. Arrays have their own block shape instead.
    pub blocksize: Option<usize>,
    /// Whether items are split into streams.
    pub split: SplitMode,
    /// The filters, at most 6, in the order in which they are applied.
    pub filters: Vec<Filter>,
    /// Whether to train a dictionary for each chunk (Zstandard, LZ4 and LZ4HC).
    pub dictionary: bool,
    /// Threads for one chunk.
    pub threads: Threads,
    /// Whether chunks get the header of Blosc1, of 16 bytes, so that Blosc1 can read them.
    pub blosc1: bool,
    /// What chooses these parameters anew for each chunk.
    pub tuner: Option<Tuner>,
    /// Parameters for the plugin of the codec (feature `dynamic-plugins`).
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
            #[cfg(feature = "dynamic-plugins")]
            plugin_params: None,
        }
    }
}

impl CParams {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the codec.
    pub fn codec(mut self, codec: Codec) -> Self {
        self.codec = codec;
        self
    }

    /// Sets the parameter of the codec.
    pub fn codec_meta(mut self, meta: u8) -> Self {
        self.codec_meta = meta;
        self
    }

    /// Sets the compression level, 0 to 9.
    #[doc(alias = "clevel")]
    pub fn level(mut self, level: u8) -> Self {
        self.level = level;
        self
    }

    /// Sets the bytes of an item.
    pub fn typesize(mut self, typesize: usize) -> Self {
        self.typesize = Some(typesize);
        self
    }

    /// Sets the bytes of a block.
    pub fn blocksize(mut self, blocksize: usize) -> Self {
        self.blocksize = Some(blocksize);
        self
    }

    /// Sets the split mode.
    pub fn split(mut self, split: SplitMode) -> Self {
        self.split = split;
        self
    }

    /// Sets the filters, in the order in which they are applied.
    pub fn filters(mut self, filters: &[Filter]) -> Self {
        self.filters = filters.to_vec();
        self
    }

    /// Sets whether a dictionary is trained for each chunk.
    #[doc(alias = "use_dict")]
    pub fn dictionary(mut self, dictionary: bool) -> Self {
        self.dictionary = dictionary;
        self
    }

    /// Sets the threads for one chunk: a number, which [`Threads::new`] takes, or [`Threads::auto`].
    #[doc(alias = "nthreads")]
    pub fn threads(mut self, threads: impl Into<Threads>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Sets whether chunks get the header of Blosc1, so that Blosc1 can read them: bare chunks, as Zarr
    /// and HDF5 keep them.
    ///
    /// It knows typesizes to 255, one filter, which is shuffle or bitshuffle, and no dictionaries. With the
    /// feature `system` this is [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
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

    /// Sets the tuner, which chooses these parameters anew for each chunk.
    pub fn tuner(mut self, tuner: Tuner) -> Self {
        self.tuner = Some(tuner);
        self
    }

    /// Sets the parameters for the plugin of the codec; see [`Codec::plugin_params`]. They are refused for another codec.
    #[cfg(feature = "dynamic-plugins")]
    #[doc(alias = "codec_params")]
    pub fn plugin_params(mut self, params: PluginParams) -> Self {
        self.plugin_params = Some(params);
        self
    }
}

/// A tuner that was registered, by its id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tuner(u8);

impl Tuner {
    /// The tuner with an id; whether there is one is seen when it is used.
    pub fn from_id(id: u8) -> Self {
        Self(id)
    }

    /// The id.
    pub fn id(self) -> u8 {
        self.0
    }
}

/// How data is decompressed. C's `blosc2_dparams`, Python's `DParams`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[doc(alias("blosc2_dparams", "dparams_dflts"))]
pub struct DParams {
    /// Threads for one chunk; one by default.
    pub threads: Threads,
}

impl DParams {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the threads for one chunk: a number, which [`Threads::new`] takes, or [`Threads::auto`].
    #[doc(alias = "nthreads")]
    pub fn threads(mut self, threads: impl Into<Threads>) -> Self {
        self.threads = threads.into();
        self
    }

    pub(crate) fn to_c(&self) -> sys::blosc2_dparams {
        sys::blosc2_dparams { nthreads: self.threads.for_c(), ..sys::blosc2_dparams_defaults() }
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
