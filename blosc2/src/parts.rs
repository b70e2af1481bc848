//! Decompression of parts of blocks: the streams of a block are decompressed only as far as necessary.
//!
//! `blosc2-format` locates the streams, undoes the filters, and decompresses BloscLZ. The other codecs are those of C.

use std::ops::Range;

use blosc2_format::chunk::{PartialBlock, PartialChunk, PartialDecoder};
use blosc2_sys::codecs;

use crate::{ChunkRef, installed};

/// A part of a block is decompressed alone if its items and pieces cost at most this fraction of the block.
///
/// `cargo xtask bench parts` measures this: for a quarter of a block of 256 KiB (`f32`), the time of C divided by that of
/// the part is 1.04 to 3.4, depending on codec, filters and split. For half a block it is 0.6 to 1.5.
const FRACTION: usize = 4;
/// The cost of a piece, as a number of bytes.
const PIECE: usize = 32;
/// The maximum size in bytes of a block whose memory is kept for the next block.
const KEPT: usize = 64 << 20;

/// Decompresses parts of blocks, one block at a time.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    decoder: PartialDecoder,
    #[cfg(feature = "zstd")]
    zstd: zstd::Context,
    /// The number of decompressed parts.
    #[cfg(test)]
    pub(crate) count: usize,
}

impl Parts {
    /// Returns the chunk if parts of its blocks can be decompressed.
    pub(crate) fn chunk<'c>(chunk: &'c ChunkRef<'_>) -> Option<PartialChunk<'c>> {
        if installed::IN_USE {
            return None;
        }
        PartialChunk::new(chunk.header(), chunk.as_bytes())
    }

    /// Returns whether decompressing these parts of a block of `len` bytes takes less time than decompressing the block.
    pub(crate) fn pay(len: usize, bytes: usize, pieces: usize) -> bool {
        bytes.saturating_add(pieces.saturating_mul(PIECE)) <= len / FRACTION
    }

    /// Decompresses a part of a block. Returns `None` if this is not possible; then the decompression of the whole
    /// block finds the reason.
    pub(crate) fn block(
        &mut self,
        chunk: &PartialChunk<'_>,
        block: usize,
        part: Range<usize>,
    ) -> Option<PartialBlock<'_>> {
        #[cfg(test)]
        {
            self.count += 1;
        }
        let codec = |stream: &[u8], needed: usize, out: &mut [u8]| match chunk.codec_format() {
            1 => Some(lz4(stream, needed, out)),
            #[cfg(feature = "zstd")]
            4 if !zstd::is_early(needed, out.len()) => Some(self.zstd.decompress(stream, out)),
            _ => None,
        };
        self.decoder.decode_with(chunk, block, part, codec).ok()
    }

    /// Frees the memory of a large block.
    pub(crate) fn trim(&mut self, len: usize) {
        if len > KEPT {
            self.release();
        }
    }

    /// Frees the memory of the last block.
    pub(crate) fn release(&mut self) {
        self.decoder = PartialDecoder::default();
    }
}

/// Decompresses the first `needed` bytes of an LZ4 stream. Returns whether this was possible.
fn lz4(stream: &[u8], needed: usize, out: &mut [u8]) -> bool {
    let out = &mut out[..needed];
    // LZ4 accepts matches at the distance 0, which keep what was in the memory: the data of another chunk.
    out.fill(0);
    let (Ok(stream_len), Ok(len)) = (stream.len().try_into(), out.len().try_into()) else {
        return false;
    };
    let (from, to) = (stream.as_ptr().cast(), out.as_mut_ptr().cast());
    // SAFETY: the lengths are those of the slices. LZ4 checks that all bytes that it reads are inside the stream or the
    // written output, and stops at the end of the output (lz4.c, LZ4_decompress_generic with partial_decode).
    let written = unsafe { codecs::LZ4_decompress_safe_partial(from, to, stream_len, len, len) };
    written == len
}

#[cfg(feature = "zstd")]
mod zstd {
    use std::ptr::NonNull;

    use blosc2_sys::codecs;

    /// Returns whether the decoder of `blosc2-format`, which stops after the needed bytes, takes less time than the
    /// decoder of C, which decompresses the whole stream.
    pub(super) fn is_early(needed: usize, len: usize) -> bool {
        needed <= len / 2
    }

    /// A context of Zstandard, created on first use.
    #[derive(Debug, Default)]
    pub(super) struct Context(Option<NonNull<codecs::ZSTD_DCtx>>);

    // SAFETY: a context has no connection to the thread that created it. All use requires `&mut`.
    unsafe impl Send for Context {}

    impl Context {
        /// Decompresses a stream, which has to fill `out`. Returns whether this was possible.
        pub(super) fn decompress(&mut self, stream: &[u8], out: &mut [u8]) -> bool {
            if self.0.is_none() {
                // SAFETY: the function has no conditions. It returns null if there is not enough memory.
                self.0 = NonNull::new(unsafe { codecs::ZSTD_createDCtx() });
            }
            let Some(context) = self.0 else { return false };
            let (from, to) = (stream.as_ptr().cast(), out.as_mut_ptr().cast());
            // SAFETY: the context exists until it is dropped, and the lengths are those of the slices. Zstandard checks
            // that all bytes that it reads and writes are inside of them (zstd.h, ZSTD_decompressDCtx).
            let written = unsafe {
                codecs::ZSTD_decompressDCtx(context.as_ptr(), to, out.len(), from, stream.len())
            };
            // An error is a larger number.
            written == out.len()
        }
    }

    impl Drop for Context {
        fn drop(&mut self) {
            if let Some(context) = self.0 {
                // SAFETY: the context comes from `ZSTD_createDCtx`, and is freed once.
                unsafe { codecs::ZSTD_freeDCtx(context.as_ptr()) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::decoder::Decoder;
    use crate::memory::Target;
    use crate::{CParams, ChunkRef, Codec, DParams, Filter, SplitMode, compress, installed};

    /// Decompresses 8 items in the middle of a chunk. Returns the number of parts that were decompressed alone.
    fn parts(params: &CParams, items: &[u32]) -> usize {
        let bytes = compress(items, params).unwrap();
        let chunk = ChunkRef::new(&bytes).unwrap();
        assert!(!chunk.is_stored(), "{params:?}");
        let mut decoder = Decoder::new(&DParams::new()).unwrap();
        let at = items.len() / 2 + 5;
        let mut found = [0; 32];
        decoder.range(&chunk, 4 * at, Target::of(&mut found)).unwrap();
        let expected = items[at..at + 8].iter().flat_map(|item| item.to_ne_bytes());
        assert!(found.into_iter().eq(expected), "{params:?}");
        decoder.part_count()
    }

    #[test]
    fn parts_are_decompressed_alone_where_the_pipeline_allows_it() {
        let items: Vec<u32> = (0..50_000).map(|at| (at * 3) ^ (at % 11)).collect();
        let params = CParams::new().typesize(4).blocksize(64 << 10);
        let alone = usize::from(!installed::IN_USE);
        for codec in [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zstd, Codec::Zlib] {
            if !codec.is_available() {
                continue;
            }
            for split in [SplitMode::Auto, SplitMode::Always, SplitMode::Never] {
                let params = params.clone().codec(codec).split(split);
                let with = |filters: &[Filter]| parts(&params.clone().filters(filters), &items);
                let expected = if codec == Codec::Zlib { 0 } else { alone };
                assert_eq!(with(&[Filter::Shuffle]), expected, "{codec}, {split:?}");
                assert_eq!(with(&[Filter::Bitshuffle]), expected, "{codec}, {split:?}");
                let delta = Filter::ByteDelta(4);
                assert_eq!(with(&[Filter::Shuffle, delta]), expected, "{codec}, {split:?}");
                assert_eq!(with(&[Filter::Delta, Filter::Shuffle]), 0, "{codec}, {split:?}");
            }
        }
        if Codec::Zstd.is_available() {
            assert_eq!(parts(&CParams::new().typesize(4), &items), alone, "the default");
        }
        let params = params.codec(Codec::Lz4);
        // Zstandard builds dictionaries, and an installed library cannot build those of LZ4.
        if !installed::IN_USE && Codec::Zstd.is_available() {
            assert_eq!(parts(&params.clone().dictionary(true), &items), 0, "a dictionary");
        }
    }

    #[test]
    fn large_parts_and_many_pieces_are_not_decompressed_alone() {
        let len = 1 << 16;
        assert!(super::Parts::pay(len, len / super::FRACTION - super::PIECE, 1));
        assert!(!super::Parts::pay(len, len / super::FRACTION, 1));
        assert!(!super::Parts::pay(len, 4 * len, len));
        assert!(!super::Parts::pay(len, usize::MAX, usize::MAX));
    }
}
