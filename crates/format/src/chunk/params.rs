//! Compression parameters.

use super::MAX_FILTERS;

/// The rule that determines whether a block is split into streams, which are compressed
/// separately. The number of streams is the typesize. After the filter shuffle, the first stream
/// contains the first bytes of all items, the second stream contains the second bytes, and so on.
///
/// The numbers of the variants are those of the constants `BLOSC_ALWAYS_SPLIT`,
/// `BLOSC_NEVER_SPLIT`, `BLOSC_AUTO_SPLIT` and `BLOSC_FORWARD_COMPAT_SPLIT` in C. Python:
/// `blosc2.SplitMode`.
///
/// ```
/// use blosc2_format::chunk::{Encoder, Header, Params, SplitMode};
///
/// let params = Params { split: SplitMode::Never, ..Params::default() };
/// let bytes = Encoder::new(params)?.encode(&[7; 4000])?;
/// assert!(!Header::parse(&bytes)?.split);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SplitMode {
    /// Always split, if the sizes of items and blocks allow it. For experiments.
    Always = 1,
    /// Never split. For experiments.
    Never,
    /// Split depending on the codec, the level, the filters and the sizes of items and blocks. The
    /// default of the crate `blosc2` and of Python.
    Auto,
    /// The default of C-Blosc2, whose documentation recommends it for forward compatibility.
    /// C-Blosc2 3.3.2 treats `ForwardCompat` like `Auto`.
    ForwardCompat,
}

/// The compression parameters of a chunk. The defaults are those of the C library: BloscLZ, level
/// 5, items of 8 bytes, shuffle. C: `blosc2_cparams`. Python: `blosc2.CParams`.
///
/// ```
/// use blosc2_format::chunk::{Encoder, Header, Params};
///
/// let params = Params { codec: 1, level: 9, typesize: 4, ..Params::default() };
/// let bytes = Encoder::new(params)?.encode(&[7; 4000])?;
/// assert_eq!(Header::parse(&bytes)?.typesize, 4);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The code of the codec: 0 BloscLZ, 1 LZ4, 4 zlib, 5 Zstandard. Default: 0.
    /// [`Encoder`](super::Encoder) does not support LZ4HC (2).
    pub codec: u8,
    /// The parameter of the codec. Default: 0.
    pub codec_meta: u8,
    /// The compression level (`clevel` in C and Python), from 0 (stored) to 9. Default: 5.
    pub level: u8,
    /// The size of an item, in bytes. Default: 8.
    pub typesize: u32,
    /// The size of a block, in bytes; `None` or 0 selects the automatic block size of the C
    /// library. Default: `None`.
    ///
    /// A block size above the size of the data is reduced to the size of the data. A block size
    /// above `typesize` is rounded down to a multiple of `typesize`.
    pub blocksize: Option<u32>,
    /// The codes of the filters, in the order in which they are applied: 1 shuffle, 2 bitshuffle, 3
    /// delta, 4 truncated precision, 34 the first version of bytedelta, 35 bytedelta, 36 int_trunc.
    /// 0 is an empty slot. Default: shuffle in the last slot.
    pub filters: [u8; MAX_FILTERS],
    /// The parameters of the filters, one for each slot. Default: zeros.
    pub filters_meta: [u8; MAX_FILTERS],
    /// The rule for splitting blocks into streams. Default: [`SplitMode::ForwardCompat`].
    pub split: SplitMode,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            codec: 0,
            codec_meta: 0,
            level: 5,
            typesize: 8,
            blocksize: None,
            filters: [0, 0, 0, 0, 0, 1],
            filters_meta: [0; MAX_FILTERS],
            split: SplitMode::ForwardCompat,
        }
    }
}
