//! Decoding of parts of blocks.

use std::ops::Range;

use super::decode::{codec_of, pipeline};
use super::rules::First;
use super::streams::Stream;
use super::{Chunk, Header};
use crate::codec::{BLOSCLZ, Decompressor, LZ4, ZSTD, rule};
use crate::filter::Order;
use crate::{Error, FormatError};

/// A chunk that allows the decoding of parts of blocks, without the rest of the block.
///
/// ```
/// use blosc2_format::chunk::{Encoder, Header, Params, PartialChunk, PartialDecoder};
///
/// let data: Vec<u8> = (0..30_000u32).flat_map(u32::to_le_bytes).collect();
/// let params = Params { typesize: 4, blocksize: Some(40_000), ..Params::default() };
/// let bytes = Encoder::new(params)?.encode(&data)?;
///
/// let header = Header::parse(&bytes)?;
/// let chunk = PartialChunk::new(&header, &bytes).expect("no filter needs whole blocks");
/// let mut decoder = PartialDecoder::default();
/// let block = decoder.decode(&chunk, 1, 1000..2000)?;
/// let mut items = [0; 8];
/// block.copy(1500, &mut items);
/// assert_eq!(items, data[41_500..41_508]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct PartialChunk<'a> {
    chunk: Chunk<'a>,
    codec: u8,
    order: Order,
}

impl<'a> PartialChunk<'a> {
    /// Returns `None` if the codec, a filter or the kind of the chunk requires that whole blocks are
    /// decoded: zlib, user-defined codecs and filters, delta, several filters that move bytes,
    /// dictionaries, variable-length blocks, chunks without streams, and chunks of Blosc1.
    ///
    /// `header` must be the header of `bytes`. The block starts are checked when a block is decoded.
    pub fn new(header: &Header, bytes: &'a [u8]) -> Option<Self> {
        let whole = header.variable_blocks || header.dictionary || header.lazy;
        if whole || !header.is_compressed() || header.version < 3 {
            return None;
        }
        let chunk = Chunk::without_checks(header, bytes)?;
        let codec = codec_of(&chunk).ok().filter(|codec| [BLOSCLZ, LZ4, ZSTD].contains(codec))?;
        let order = pipeline(&chunk).ok()?.order()?;
        Some(Self { chunk, codec, order })
    }

    /// Returns the format of the streams; see [`Header::codec_format`].
    pub fn codec_format(&self) -> u8 {
        self.chunk.header().codec_format
    }

    /// Returns the number of bytes of an item if shuffle is the only filter that must be undone, 1 if no
    /// filter must be undone, and `None` otherwise.
    pub fn shuffle_width(&self) -> Option<usize> {
        self.order.shuffle_width()
    }
}

/// Decodes parts of blocks, and reuses its buffers for the next block.
#[derive(Debug, Default)]
pub struct PartialDecoder {
    codec: Decompressor,
    block: Vec<u8>,
}

impl PartialDecoder {
    /// Decodes the range `part` of the block at index `block`. Each stream is decoded only as far as
    /// necessary: damage after these bytes is not detected.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no block at this index, `part` is not inside the block, or there
    ///   is not enough memory for the block;
    /// - [`Error::Format`]: a stream violates a rule;
    /// - [`Error::Unsupported`]: the streams have an early format of Zstandard.
    pub fn decode(
        &mut self,
        chunk: &PartialChunk<'_>,
        block: usize,
        part: Range<usize>,
    ) -> Result<PartialBlock<'_>, Error> {
        self.decode_with(chunk, block, part, |_, _, _| None)
    }

    /// Like [`decode`](Self::decode), with a codec of the caller.
    ///
    /// `codec` receives a stream, the number of needed bytes, and the memory for the whole stream. It
    /// decompresses at least the needed bytes to the start of the memory, and returns whether that
    /// was possible; other bytes of the memory can change. If it returns `None`, the codec of this
    /// crate decompresses the stream.
    ///
    /// # Errors
    /// The errors of [`decode`](Self::decode).
    pub fn decode_with(
        &mut self,
        chunk: &PartialChunk<'_>,
        block: usize,
        part: Range<usize>,
        mut codec: impl FnMut(&[u8], usize, &mut [u8]) -> Option<bool>,
    ) -> Result<PartialBlock<'_>, Error> {
        let code = chunk.codec;
        let own = &mut self.codec;
        let mut decompress =
            |stream: &[u8], needed: usize, out: &mut [u8]| match codec(stream, needed, out) {
                None => own.decompress_prefix(code, stream, None, needed, out),
                Some(true) => Ok(()),
                Some(false) => {
                    let expected = format_args!("{needed} bytes of data");
                    Err(FormatError::of(rule(code), 0, expected, "less").into())
                }
            };
        let PartialChunk { chunk, order, .. } = chunk;
        let len = chunk.block_size(block);
        if part.start > part.end || part.end > len {
            let what = format!("bytes {part:?} of block {block}, which has {len} bytes");
            return Err(Error::Argument(what));
        }
        let start = chunk.start(block);
        if start < chunk.data() as i64 {
            let at = chunk.header().header_len() + 4 * block;
            let expected = format_args!("at least {}", chunk.data());
            return Err(FormatError::new("block start", at, expected, start).into());
        }
        let streams = chunk.streams(block);
        if !len.is_multiple_of(streams) {
            let expected = format_args!("a multiple of {streams} streams");
            return Err(FormatError::new("block size", 8, expected, len).into());
        }
        if self.block.len() < len {
            let more = len - self.block.len();
            if self.block.try_reserve(more).is_err() {
                return Err(Error::Argument(format!("{len} bytes of memory for block {block}")));
            }
            self.block.resize(len, 0);
        }
        let data = &mut self.block[..len];
        let needed = order.needed(len, part.clone());
        let mut first = First::default();
        let mut outcome = Ok(());
        let mut at = 0;
        chunk.walk(block, &mut first, |stream| {
            let range = at..at + len / streams;
            at = range.end;
            match stream {
                Stream::Run(byte) => needed.each(&range, |range| data[range].fill(byte)),
                Stream::Stored(stored) => needed.each(&range, |part| {
                    let from = part.start - range.start..part.end - range.start;
                    data[part].copy_from_slice(&stored[from]);
                }),
                Stream::Compressed(stream) if outcome.is_ok() => {
                    let count = needed.end(&range) - range.start;
                    if count > 0 {
                        outcome = decompress(stream, count, &mut data[range]);
                    }
                }
                Stream::Compressed(_) => {}
            }
        });
        first.or(())?;
        outcome?;
        if at < len {
            return Err(FormatError::new("streams of a block", start as usize, len, at).into());
        }
        order.prepare(data, part.clone());
        Ok(PartialBlock { block: data, order: *order, part })
    }
}

/// The decoded part of a block.
#[derive(Debug)]
pub struct PartialBlock<'a> {
    /// The block before shuffle is undone.
    block: &'a [u8],
    order: Order,
    part: Range<usize>,
}

impl PartialBlock<'_> {
    /// Copies the bytes from the offset `start` of the block on to `out`.
    ///
    /// # Panics
    /// If the bytes are not inside the decoded part.
    pub fn copy(&self, start: usize, out: &mut [u8]) {
        let inside = start >= self.part.start
            && self.part.end.checked_sub(start).is_some_and(|left| out.len() <= left);
        assert!(inside, "{} bytes at {start}, decoded are {:?}", out.len(), self.part);
        self.order.copy(self.block, start, out);
    }
}
