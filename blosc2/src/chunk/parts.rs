//! Decompression of parts of blocks and of small chunks.
//!
//! The streams of a block are decompressed only as far as necessary. A small chunk is decompressed without a context of C:
//! preparing a context takes longer than decompressing 4 KiB.
//!
//! `blosc2-format` locates the streams, undoes the filters of parts, and decompresses parts of BloscLZ streams. The rest
//! is C: the codecs, and shuffle for whole blocks.

use std::mem;
use std::ops::Range;

use blosc2_format::chunk::{PartialBlock, PartialChunk, PartialDecoder, Stream, each_stream};
use blosc2_sys::{self as sys, codecs};

use crate::ChunkRef;
use crate::codec::installed;
use crate::support::memory::Target;

/// A part of a block is decompressed alone if its items and pieces cost at most this fraction of the block.
///
/// `cargo xtask bench parts` measures this: for a quarter of a block of 256 KiB (`f32`), the time of C divided by that of
/// the part is 1.04 to 3.4, depending on codec, filters and split. For half a block it is 0.6 to 1.5.
const FRACTION: usize = 4;
/// The cost of a piece, as a number of bytes.
const PIECE: usize = 32;
/// The maximum size in bytes of a block whose memory is kept for the next block.
const KEPT: usize = 64 << 20;

/// The maximum size in bytes of the data of a small chunk.
pub(super) const SMALL: usize = 64 << 10;

/// The size of a cache line in bytes, on most processors.
const CACHE_LINE: usize = 64;

/// Decompresses parts of blocks, one block at a time, and small chunks.
#[derive(Debug, Default)]
pub(super) struct Parts {
    decoder: PartialDecoder,
    /// A block of a small chunk, before shuffle is undone.
    block: Vec<u8>,
    #[cfg(feature = "zstd")]
    zstd: zstd::Context,
    /// The number of decompressed parts.
    #[cfg(test)]
    pub(super) count: usize,
}

impl Parts {
    /// Returns the chunk if parts of its blocks can be decompressed.
    pub(super) fn chunk<'c>(chunk: &'c ChunkRef<'_>) -> Option<PartialChunk<'c>> {
        if installed::IN_USE {
            return None;
        }
        PartialChunk::new(chunk.header(), chunk.as_bytes())
    }

    /// Returns whether decompressing these parts of a block of `len` bytes takes less time than decompressing the block.
    pub(super) fn pay(len: usize, bytes: usize, pieces: usize) -> bool {
        bytes.saturating_add(pieces.saturating_mul(PIECE)) <= len / FRACTION
    }

    /// Decompresses a part of a block. Returns `None` if this is not possible; then the decompression of the whole
    /// block finds the reason.
    pub(super) fn block(
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

    /// Decompresses a small chunk to `target`, which has the length of its data. The chunk has passed
    /// [`PartialChunk::new`], and `width` is its [shuffle width](PartialChunk::shuffle_width). Returns whether the
    /// streams were valid, and the target is filled.
    pub(super) fn small(
        &mut self,
        chunk: &ChunkRef<'_>,
        width: usize,
        target: &mut Target<'_>,
    ) -> bool {
        let header = chunk.header();
        let Some(bytes) = chunk.as_bytes().get(..header.cbytes as usize) else { return false };
        let (nbytes, most, to) = (target.len(), header.block_len() as usize, target.as_mut_ptr());
        if self.block.len() < most + CACHE_LINE {
            self.block.resize(most + CACHE_LINE, 0);
        }
        // Streams of aligned memory are written faster.
        let aligned = self.block.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
        let scratch = &mut self.block[aligned..][..most];
        // A loop: `step_by` divides, which takes 3 ns of 150.
        let (mut index, mut start) = (0, 0);
        while start < nbytes {
            let len = most.min(nbytes - start);
            let mut rest = &mut scratch[..len];
            let is_valid = each_stream(header, bytes, (index, len), |stream, size| {
                let (out, after) = mem::take(&mut rest).split_at_mut(size);
                rest = after;
                match stream {
                    Stream::Run(byte) => out.fill(byte),
                    Stream::Stored(stored) => out.copy_from_slice(stored),
                    Stream::Compressed(stream) => match header.codec_format {
                        0 => return blosclz(stream, out),
                        1 => return lz4(stream, size, out),
                        #[cfg(feature = "zstd")]
                        4 => return self.zstd.decompress(stream, out),
                        _ => return false,
                    },
                }
                true
            });
            // SAFETY: the target has the bytes from `start` to `start + len`.
            if !is_valid || !unsafe { unshuffle(width, &scratch[..len], to.add(start)) } {
                return false;
            }
            (index, start) = (index + 1, start + len);
        }
        true
    }

    /// Frees the memory of a large block.
    pub(crate) fn trim(&mut self, len: usize) {
        if len > KEPT {
            self.release();
        }
    }

    /// Frees the memory of the last block that was decompressed in part.
    pub(super) fn release(&mut self) {
        self.decoder = PartialDecoder::default();
    }
}

/// The bytes that mark the end of an incomplete LZ4 stream. Any bytes that are rare in data would do.
const MARK: [u8; 20] = *b"\xa9the end of an LZ4 \xe2";

/// Decompresses the first `needed` bytes of an LZ4 stream. Returns whether this was possible. The result does not depend
/// on the content of `out`, not even for an invalid stream.
fn lz4(stream: &[u8], needed: usize, out: &mut [u8]) -> bool {
    let is_part = needed < out.len();
    let out = &mut out[..needed];
    let decompress = |out: &mut [u8]| {
        let (Ok(stream_len), Ok(len)) = (stream.len().try_into(), out.len().try_into()) else {
            return false;
        };
        let (from, to) = (stream.as_ptr().cast(), out.as_mut_ptr().cast());
        // SAFETY: the lengths are those of the slices. LZ4 checks that all bytes that it reads are inside the stream or
        // the written output, and stops at the end of the output (lz4.c, LZ4_decompress_generic).
        let written = unsafe {
            match is_part {
                true => codecs::LZ4_decompress_safe_partial(from, to, stream_len, len, len),
                false => codecs::LZ4_decompress_safe(from, to, stream_len, len),
            }
        };
        written == len
    };
    if !is_part {
        return decompress(out);
    }
    // LZ4 accepts matches at the distance 0, and decompresses them to zeros. But if such a match ends among the last 12
    // bytes of a part, it keeps what was in the memory: the data of another chunk. Clearing the memory can take as long as
    // decompressing. Therefore the last bytes are marked: a match that keeps more than these bytes keeps the first eight
    // of them.
    let mark_at = needed.saturating_sub(MARK.len());
    out[mark_at..].copy_from_slice(&MARK[..needed - mark_at]);
    let is_valid = decompress(out);
    if is_valid && out[mark_at..].starts_with(&MARK[..8]) {
        out.fill(0);
        return decompress(out);
    }
    is_valid
}

/// Undoes shuffle for items of `width` bytes. Returns whether this was possible.
///
/// # Safety
/// - `to` has as many writable bytes as `block`.
unsafe fn unshuffle(width: usize, block: &[u8], to: *mut u8) -> bool {
    if width == 1 {
        // SAFETY: the caller's promise.
        unsafe { to.copy_from_nonoverlapping(block.as_ptr(), block.len()) };
        return true;
    }
    let (Ok(width), Ok(len)) = (width.try_into(), block.len().try_into()) else { return false };
    // SAFETY: the caller's promise. C writes as many bytes as it reads, and refuses other widths (shuffle.c,
    // blosc2_unshuffle).
    unsafe { sys::blosc2_unshuffle(width, len, block.as_ptr().cast(), to.cast()) == len }
}

/// Decompresses a BloscLZ stream. Returns whether this was possible.
fn blosclz(stream: &[u8], out: &mut [u8]) -> bool {
    let (Ok(stream_len), Ok(len)) = (stream.len().try_into(), out.len().try_into()) else {
        return false;
    };
    let (from, to) = (stream.as_ptr().cast(), out.as_mut_ptr().cast());
    // SAFETY: the lengths are those of the slices. BloscLZ checks that all bytes that it reads are inside the stream or
    // the written output, and stops at the end of the output (blosclz.c, blosclz_decompress).
    let written = unsafe { codecs::blosclz_decompress(from, stream_len, to, len) };
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
    use crate::chunk::decoder::Decoder;
    use crate::codec::installed;
    use crate::support::memory::Target;
    use crate::{CParams, ChunkRef, Codec, DParams, Filter, SplitMode, compress};

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
                let delta = Filter::Bytedelta(4);
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

    /// Blocks with a rest of an item, a shorter last block, and blocks that are not split.
    #[test]
    fn small_chunks_need_no_context() {
        let data: Vec<u8> =
            (0..10_007u32).flat_map(|at| [(at / 16) as u8, (at % 5) as u8]).collect();
        for codec in [Codec::BloscLz, Codec::Lz4, Codec::Lz4Hc, Codec::Zstd, Codec::Zlib] {
            if !codec.is_available() {
                continue;
            }
            for split in [SplitMode::Always, SplitMode::Never] {
                for typesize in [1, 2, 3, 4, 8, 17, 255] {
                    for filter in [None, Some(Filter::Shuffle), Some(Filter::Bitshuffle)] {
                        let params = CParams::new().codec(codec).split(split).typesize(typesize);
                        let params = params.filters(filter.as_slice()).blocksize(typesize * 1000);
                        for len in [typesize, 5000, data.len()] {
                            let bytes = compress(&data[..len], &params).unwrap();
                            let chunk = ChunkRef::new(&bytes).unwrap();
                            let mut decoder = Decoder::new(&DParams::new()).unwrap();
                            let mut found = vec![0; len];
                            decoder.decompress(&chunk, Target::of(&mut found)).unwrap();
                            assert!(found == data[..len], "{params:?}, {len} bytes");
                            let has_context = decoder.has_context();
                            let is_simple =
                                codec != Codec::Zlib && filter != Some(Filter::Bitshuffle);
                            let expected = !chunk.is_stored() && (installed::IN_USE || !is_simple);
                            assert_eq!(has_context, expected, "{params:?}, {len} bytes");
                        }
                    }
                }
            }
        }
    }

    /// The memory before contains other data, as after other chunks. Half of the matches have the distance 0.
    #[test]
    fn lz4_does_not_depend_on_the_memory() {
        let mut state = 1u32;
        let mut below = |end: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % end
        };
        let (mut valid, mut found_zeros) = (0, 0);
        for _ in 0..20_000 {
            let (mut stream, mut len) = (Vec::new(), 0);
            for _ in 0..1 + below(6) {
                let (literals, extra) = (below(15), below(3) * below(255));
                let offset = if below(2) == 0 { 0 } else { 1 + below(len + literals + 1) };
                stream.push((literals << 4) as u8 | if extra == 0 { below(15) as u8 } else { 15 });
                stream.extend((0..literals).map(|at| b'a' + at as u8));
                stream.extend((offset as u16).to_le_bytes());
                let matched = usize::from(stream[stream.len() - 3 - literals] & 15) + 4;
                len += literals + matched + extra;
                if extra > 0 {
                    stream.push(extra as u8);
                }
            }
            stream.push(5 << 4);
            stream.extend(b"12345");
            len += 5;
            let needed = 1 + below(len);
            let decompressed = |byte: u8| {
                let mut out = vec![byte; len];
                (super::lz4(&stream, needed, &mut out), out[..needed].to_vec())
            };
            let (is_valid, out) = decompressed(0);
            let other = decompressed(0xff);
            assert_eq!(
                (is_valid, is_valid.then_some(&out)),
                (other.0, is_valid.then_some(&other.1))
            );
            valid += usize::from(is_valid);
            found_zeros += usize::from(is_valid && out.contains(&0));
        }
        assert!(valid > 5000 && found_zeros > 1000, "{valid}, {found_zeros}");
    }

    #[test]
    fn an_empty_chunk_with_the_header_of_a_compressed_one_is_no_panic() {
        // Version 5, LZ4, an extended header, a typesize of 4, no data, blocks of 256 bytes, 32 bytes.
        let mut bytes = vec![5, 1, 0b0010_0101, 4, 0, 0, 0, 0, 0, 1, 0, 0, 32, 0, 0, 0];
        bytes.resize(32, 0);
        let mut decoder = Decoder::new(&DParams::new()).unwrap();
        let chunk = ChunkRef::to_decompress(&bytes).unwrap();
        assert!(decoder.decompress(&chunk, Target::of(&mut [])).unwrap().is_empty());
        assert_eq!(crate::decompress::<u8>(&bytes).map_err(|error| error.kind()), Ok(vec![]));
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
