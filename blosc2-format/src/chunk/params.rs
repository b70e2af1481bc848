//! How chunks are compressed.

use super::MAX_FILTERS;

/// When a block is cut into one stream for each byte of the items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SplitMode {
    /// Whenever it can be.
    Always,
    /// Never.
    Never,
    /// As the codec and the level make it worth.
    Auto,
    /// As Blosc1 would. The default of the C library, where it is the same as `Auto` by now.
    #[default]
    ForwardCompat,
}

/// How chunks are compressed. The defaults are the C library's: BloscLZ, level 5, items of 8 bytes,
/// shuffled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Params {
    /// The codec's code: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 4 zlib, 5 Zstandard.
    pub codec: u8,
    /// A parameter for the codec.
    pub codec_meta: u8,
    /// From 0, which stores, to 9.
    pub level: u8,
    /// Bytes of an item.
    pub typesize: u32,
    /// Bytes of a block; `None` chooses as the C library does.
    pub blocksize: Option<u32>,
    /// Codes of the filters; 0 is none.
    pub filters: [u8; MAX_FILTERS],
    /// Parameters of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// When blocks are split.
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
            split: SplitMode::default(),
        }
    }
}
