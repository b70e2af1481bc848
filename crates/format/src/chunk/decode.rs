//! Decompression of chunks.

use super::layout::Chunk;
use super::rules::First;
use super::special;
use super::streams::Stream;
use crate::codec::{self, Decompressor};
use crate::filter::Pipeline;
use crate::{Error, FormatError, Limit, Limits};

const DELTA: u8 = 3;

/// Decodes chunks, and reuses its buffers for the next chunk.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::{Chunk, Decoder, Special, special};
///
/// let params = blosc2_format::chunk::Params { typesize: 4, ..Default::default() };
/// let bytes = special(&params, Special::Value, 12, &7u32.to_le_bytes())?;
/// let chunk = Chunk::new(&bytes, &Limits::default())?;
/// let mut data = vec![0; chunk.header().nbytes as usize];
/// Decoder::default().decode(&chunk, &mut data)?;
/// assert_eq!(data, [7, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Decoder {
    codec: Decompressor,
    block: Vec<u8>,
    scratch: Vec<u8>,
}

impl Decoder {
    /// Decodes a chunk into `out`. The length of `out` must be the decoded size of the chunk. C:
    /// `blosc2_decompress_ctx`. Python: `blosc2.decompress2`.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the length of `out` differs from the size of the data;
    /// - [`Error::Format`]: a stream violates a rule, or does not decode to the expected length;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported, or the chunk contains no
    ///   data: it is [lazy](super::Header::lazy) or [instrumented](super::Header::instrumented).
    pub fn decode(&mut self, chunk: &Chunk<'_>, out: &mut [u8]) -> Result<(), Error> {
        expect_len("the data", out, chunk.header().nbytes as usize)?;
        if chunk.header().special.is_some() {
            special::fill(chunk, out);
            return Ok(());
        }
        let first = chunk.block_size(0).min(out.len());
        let (reference, mut rest) = out.split_at_mut(first);
        // Fails for a lazy chunk, even if it has no blocks.
        if chunk.nblocks() > 0 || chunk.is_lazy() {
            self.block(chunk, 0, None, reference)?;
        }
        let reference = needs_reference(chunk).then_some(&*reference);
        for block in 1..chunk.nblocks() {
            let len = chunk.block_size(block).min(rest.len());
            let (out, after) = rest.split_at_mut(len);
            self.block(chunk, block, reference, out)?;
            rest = after;
        }
        Ok(())
    }

    /// Decodes a chunk into `data`, and sets the length of `data` to the decoded size of the chunk.
    /// On an error the length is 0.
    ///
    /// If the streams cannot decode to that length, the method fails before it allocates memory.
    pub(crate) fn decode_vec(
        &mut self,
        chunk: &Chunk<'_>,
        data: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let outcome = self.decode_plausible(chunk, data);
        if outcome.is_err() {
            data.clear();
        }
        outcome
    }

    fn decode_plausible(&mut self, chunk: &Chunk<'_>, data: &mut Vec<u8>) -> Result<(), Error> {
        let nbytes = chunk.header().nbytes;
        Limits::allow(Limit::Memory, "bytes of a chunk", nbytes.into(), chunk.memory())?;
        let mut first = First::default();
        for block in 0..chunk.nblocks() {
            chunk.walk(block, &mut first, |_| ());
        }
        first.or(())?;
        // The existing content is not cleared, because all of it is overwritten.
        data.resize(nbytes as usize, 0);
        self.decode(chunk, data)
    }

    /// Decodes the block at index `block` into `out`. The length of `out` must be the decoded size
    /// of the block.
    ///
    /// If the filters include delta, the first call for a `Chunk` also decodes its first block,
    /// because delta needs this block as a reference.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no block at this index, or the length of `out` differs from
    ///   the size of the block;
    /// - [`Error::Format`]: a stream violates a rule, or does not decode to the expected length;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported, or the chunk contains no
    ///   data: it is [lazy](super::Header::lazy) or [instrumented](super::Header::instrumented).
    pub fn decode_block(
        &mut self,
        chunk: &Chunk<'_>,
        block: usize,
        out: &mut [u8],
    ) -> Result<(), Error> {
        if block >= chunk.nblocks() {
            let nblocks = chunk.nblocks();
            return Err(Error::Argument(format!(
                "no block at index {block}: the chunk has {nblocks} blocks"
            )));
        }
        if !chunk.is_lazy() {
            expect_len("the block", out, chunk.block_size(block))?;
        }
        if chunk.header().special.is_some() {
            special::fill(chunk, out);
            return Ok(());
        }
        if block == 0 || !needs_reference(chunk) {
            return self.block(chunk, block, None, out);
        }
        let reference = match chunk.reference().get() {
            Some(reference) => reference,
            None => {
                let mut first = vec![0; chunk.block_size(0)];
                self.block(chunk, 0, None, &mut first)?;
                chunk.reference().get_or_init(|| first)
            }
        };
        self.block(chunk, block, Some(reference), out)
    }

    fn block(
        &mut self,
        chunk: &Chunk<'_>,
        block: usize,
        reference: Option<&[u8]>,
        out: &mut [u8],
    ) -> Result<(), Error> {
        let header = chunk.header();
        if chunk.is_lazy() {
            return Err(Error::Unsupported(LAZY.into()));
        }
        if header.is_stored() {
            let start = header.header_len() + block * header.block_len() as usize;
            let stored = chunk.bytes().get(start..).and_then(|rest| rest.get(..out.len()));
            out.copy_from_slice(stored.ok_or_else(|| {
                FormatError::new("stored data", start, out.len(), "the end of the chunk")
            })?);
            return Ok(());
        }
        let pipeline = pipeline(chunk)?;
        if !pipeline.moves() {
            self.streams(chunk, block, out)?;
            return pipeline.backward(&mut [], &mut self.scratch, out, reference);
        }
        let mut data = std::mem::take(&mut self.block);
        if data.len() < out.len() {
            data.resize(out.len(), 0);
        }
        let outcome = self
            .streams(chunk, block, &mut data[..out.len()])
            .and_then(|()| pipeline.backward(&mut data, &mut self.scratch, out, reference));
        self.block = data;
        outcome
    }

    /// Decompresses the streams of a block.
    fn streams(
        &mut self,
        chunk: &Chunk<'_>,
        block: usize,
        mut out: &mut [u8],
    ) -> Result<(), Error> {
        let streams = chunk.streams(block);
        let len = out.len() / streams;
        let mut first = First::default();
        let mut outcome = Ok(());
        chunk.walk(block, &mut first, |stream| {
            let (part, rest) = std::mem::take(&mut out).split_at_mut(len);
            out = rest;
            match stream {
                Stream::Run(byte) => part.fill(byte),
                Stream::Stored(data) => part.copy_from_slice(data),
                Stream::Compressed(data) if outcome.is_ok() => {
                    outcome = codec_of(chunk).and_then(|codec| {
                        self.codec.decompress(codec, data, chunk.dictionary(), part)
                    });
                }
                Stream::Compressed(_) => {}
            }
        });
        first.or(())?;
        outcome
    }
}

impl Chunk<'_> {
    /// Decodes the complete chunk with new buffers. To reuse the buffers for several chunks, or to
    /// decode a single block, use a [`Decoder`].
    ///
    /// If the streams cannot decode to the size of the data, the method fails before it allocates
    /// memory.
    ///
    /// # Errors
    /// - [`Error::Limit`]: the data has more than [`Limits::memory`] bytes;
    /// - [`Error::Format`]: a stream violates a rule, or does not decode to the expected length;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported, or the chunk contains no
    ///   data: it is [lazy](super::Header::lazy) or [instrumented](super::Header::instrumented).
    pub fn decode(&self) -> Result<Vec<u8>, Error> {
        let mut data = Vec::new();
        Decoder::default().decode_vec(self, &mut data)?;
        Ok(data)
    }
}

/// Returns the pipeline that undoes the filters of a chunk with streams.
///
/// # Errors
/// [`Error::Unsupported`]: a filter is not supported, independent of the data.
pub(super) fn pipeline(chunk: &Chunk<'_>) -> Result<Pipeline, Error> {
    let header = chunk.header();
    if header.instrumented {
        return Err(Error::Unsupported(
            "measurements of an instrumented codec instead of data".into(),
        ));
    }
    let (filters, metas) = (&header.filters, &header.filters_meta);
    let typesize = header.typesize.into();
    Pipeline::new(filters, metas, typesize, chunk.typesize(), header.version)
}

/// What is found instead of the data of a lazy chunk.
pub(super) const LAZY: &str = "a lazy chunk: its blocks are in the file that it was opened from";

/// Returns the code of the codec of the streams.
pub(super) fn codec_of(chunk: &Chunk<'_>) -> Result<u8, Error> {
    match chunk.header().codec_format {
        0 => Ok(codec::BLOSCLZ),
        1 => Ok(codec::LZ4),
        3 => Ok(codec::ZLIB),
        4 => Ok(codec::ZSTD),
        2 => Err(Error::Unsupported("Snappy".into())),
        5 => Err(Error::Unsupported("Lizard".into())),
        6 => Err(Error::Unsupported(codec::name(chunk.header().user_codec))),
        other => Err(Error::Unsupported(format!("codec format {other}"))),
    }
}

/// Returns whether the first block is needed to decode all other blocks. Variable-length blocks are
/// independent.
fn needs_reference(chunk: &Chunk<'_>) -> bool {
    let header = chunk.header();
    header.is_compressed() && header.filters.contains(&DELTA) && !header.variable_blocks
}

fn expect_len(what: &str, out: &[u8], len: usize) -> Result<(), Error> {
    if out.len() == len {
        return Ok(());
    }
    Err(Error::Argument(format!("a buffer of {} bytes for {what} of {len} bytes", out.len())))
}
