//! The split of data into blocks and streams, by the rules of the C library.

use super::{MAX_BLOCKSIZE, Params, SplitMode};
use crate::Error;
use crate::codec::{BLOSCLZ, LZ4, LZ4HC, ZLIB, ZSTD};

/// The maximum size of the data of a chunk, in bytes.
const MAX_NBYTES: usize = i32::MAX as usize - 32;
const SHUFFLE: u8 = 1;
/// The maximum number of streams of a block, and the minimum size of a stream, in the automatic
/// mode.
const MAX_STREAMS: u32 = 16;
const MIN_STREAM: u32 = 32;
const KIB: u64 = 1024;

/// The sizes for one chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Plan {
    pub(crate) nbytes: u32,
    pub(crate) blocksize: u32,
    /// As in the header: 1 if it is greater than 255.
    pub(crate) typesize: u8,
    /// Whether full blocks are split into streams.
    pub(crate) split: bool,
}

impl Plan {
    /// Computes the sizes for data of `nbytes` bytes.
    pub(crate) fn new(params: &Params, nbytes: usize) -> Result<Self, Error> {
        if params.typesize == 0 || params.typesize > MAX_BLOCKSIZE {
            let typesize = params.typesize;
            return Err(Error::Argument(format!(
                "typesize {typesize}: expected 1 to {MAX_BLOCKSIZE}"
            )));
        }
        if params.level > 9 {
            return Err(Error::Argument(format!("level {}: expected 0 to 9", params.level)));
        }
        if let Some(blocksize) = params.blocksize.filter(|&size| size > MAX_BLOCKSIZE) {
            let what = format!("block size {blocksize}: at most {MAX_BLOCKSIZE} bytes");
            return Err(Error::Argument(what));
        }
        if nbytes > MAX_NBYTES {
            let what = format!("{nbytes} bytes of data: a chunk has at most {MAX_NBYTES}");
            return Err(Error::Argument(what));
        }
        let nbytes = nbytes as u32;
        let blocksize = blocksize(params, nbytes);
        let typesize = u8::try_from(params.typesize).unwrap_or(1);
        let items = u32::from(typesize);
        let split = blocksize.is_multiple_of(items) && splits(params, items, blocksize);
        Ok(Self { nbytes, blocksize, typesize, split })
    }

    pub(crate) fn nblocks(&self) -> usize {
        self.nbytes.div_ceil(self.blocksize) as usize
    }
}

/// Returns the size of a block, in bytes.
fn blocksize(params: &Params, nbytes: u32) -> u32 {
    let typesize = params.typesize;
    if nbytes < typesize {
        return 1;
    }
    let blocksize = match params.blocksize {
        Some(size) if size > 0 => size,
        _ => automatic(params, nbytes),
    };
    let blocksize = blocksize.min(nbytes);
    if blocksize > typesize { blocksize / typesize * typesize } else { blocksize }
}

fn automatic(params: &Params, nbytes: u32) -> u32 {
    let level = params.level;
    if level > 0 && splits(params, params.typesize, nbytes) {
        let stream = match level {
            1..=3 => 32 * KIB,
            4..=6 => 64 * KIB,
            7 => 128 * KIB,
            8 => 256 * KIB,
            _ => 512 * KIB,
        };
        return (stream * u64::from(params.typesize)).clamp(32 * KIB, 4096 * KIB) as u32;
    }
    if u64::from(nbytes) < 32 * KIB {
        return nbytes;
    }
    // Codecs for high compression ratios use larger blocks.
    let strong = matches!(params.codec, LZ4HC | ZLIB | ZSTD);
    let base = if strong { 64 * KIB } else { 32 * KIB };
    let blocksize = match level {
        0 => base / 4,
        1 => base / 2,
        2 => base,
        3 => base * 2,
        4 | 5 => base * 4,
        9 if strong => base * 16,
        _ => base * 8,
    };
    blocksize as u32
}

/// Returns whether blocks of this size are split into streams.
fn splits(params: &Params, typesize: u32, blocksize: u32) -> bool {
    match params.split {
        SplitMode::Always => true,
        SplitMode::Never => false,
        SplitMode::Auto | SplitMode::ForwardCompat => {
            let fast = matches!(params.codec, BLOSCLZ | LZ4)
                || (params.codec == ZSTD && params.level <= 5);
            fast && params.filters.contains(&SHUFFLE)
                && typesize <= MAX_STREAMS
                && blocksize / typesize >= MIN_STREAM
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_sizes_are_those_of_the_c_library() {
        let plan = |params: Params, nbytes| {
            let plan = Plan::new(&params, nbytes).unwrap();
            (plan.blocksize, plan.split)
        };
        let lz4 = Params { codec: LZ4, typesize: 4, ..Params::default() };
        assert_eq!(plan(lz4, 1_000_000), (256 * 1024, true));
        assert_eq!(plan(lz4, 0), (1, false));
        assert_eq!(plan(lz4, 3), (1, false));
        assert_eq!(plan(lz4, 103), (100, false), "streams of 25 bytes are too short");
        assert_eq!(plan(Params { level: 9, ..lz4 }, 10_000_000), (2 << 20, true));
        assert_eq!(plan(Params { typesize: 17, ..lz4 }, 1_000_000), (131_070, false));
        assert_eq!(plan(Params { blocksize: Some(1001), ..lz4 }, 5000), (1000, true));
        let zlib = Params { codec: ZLIB, ..lz4 };
        assert_eq!(plan(zlib, 1_000_000), (256 * 1024, false));
        assert_eq!(plan(Params { level: 9, ..zlib }, 5_000_000), (1 << 20, false));
        let large = Params { typesize: 300, split: SplitMode::Always, ..lz4 };
        assert_eq!(plan(large, 1_000_000), (999_900, true));
        assert_eq!(Plan::new(&large, 600).unwrap().typesize, 1);
    }

    #[test]
    fn what_no_chunk_can_have_is_refused() {
        for params in [
            Params { typesize: 0, ..Params::default() },
            Params { typesize: MAX_BLOCKSIZE + 1, ..Params::default() },
            Params { level: 10, ..Params::default() },
            Params { blocksize: Some(MAX_BLOCKSIZE + 1), ..Params::default() },
        ] {
            assert!(matches!(Plan::new(&params, 100), Err(Error::Argument(_))), "{params:?}");
        }
        let error = Plan::new(&Params::default(), MAX_NBYTES + 1).unwrap_err();
        assert!(matches!(error, Error::Argument(_)));
    }
}
