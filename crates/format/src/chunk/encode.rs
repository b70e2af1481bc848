//! Compression of chunks.

use std::borrow::Cow;

use super::plan::Plan;
use super::{EXTENDED_HEADER_LEN, MIN_HEADER_LEN, Params};
use crate::Error;
use crate::codec::{BLOSCLZ, Compressor, LZ4, LZ4HC, ZLIB, ZSTD};
use crate::filter::Pipeline;

/// Shorter data is stored uncompressed.
const MIN_NBYTES: u32 = 32;
const STORED: u8 = 0b10;
const UNSPLIT: u8 = 0b1_0000;
const EXTENDED: u8 = 0b101;

/// Compresses chunks, and reuses its buffers for the next chunk.
///
/// With the codecs BloscLZ and LZ4, the chunks are identical to the chunks that the C library
/// writes with one thread. With zlib and Zstandard, the compressed bytes differ from those of the C
/// library.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::{Chunk, Encoder, Params};
///
/// let data: Vec<u8> = (0..1000u16).flat_map(u16::to_le_bytes).collect();
/// let mut encoder = Encoder::new(Params { typesize: 2, ..Params::default() })?;
/// let bytes = encoder.encode(&data)?;
/// assert!(bytes.len() < data.len());
/// assert_eq!(Chunk::new(&bytes, &Limits::default())?.decode()?, data);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Encoder {
    params: Params,
    form: Form,
    packer: Packer,
    block: Vec<u8>,
    scratch: Vec<u8>,
}

/// Writes streams.
#[derive(Debug)]
struct Packer {
    codec: Compressor,
    code: u8,
    level: u8,
    runs: bool,
}

/// A block of a chunk.
#[derive(Debug)]
pub(crate) enum Block<'a> {
    Data(Cow<'a, [u8]>),
    /// The streams and their sizes, as an encoder with the same parameters wrote them.
    Encoded(&'a [u8]),
}

/// The form of chunks, which depends on the version of the writer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) version: u8,
    /// Whether the header has 32 bytes.
    pub(crate) extended: bool,
    /// Whether streams of one repeated byte, and chunks of zeros, are written in their short forms.
    pub(crate) runs: bool,
}

impl Default for Form {
    /// The form of C-Blosc2 since 2.0.
    fn default() -> Self {
        Self { version: 5, extended: true, runs: true }
    }
}

/// The chunk being written, with memory for its maximum size.
struct Output {
    bytes: Vec<u8>,
    len: usize,
}

impl Output {
    fn new(len: usize, max: usize) -> Self {
        Self { bytes: vec![0; max], len }
    }

    /// Returns the unused part. If it is empty, the data is stored uncompressed.
    fn rest(&mut self) -> &mut [u8] {
        &mut self.bytes[self.len..]
    }

    /// Appends bytes, or returns `None` if there is no space for them.
    fn push(&mut self, bytes: &[u8]) -> Option<()> {
        self.rest().get_mut(..bytes.len())?.copy_from_slice(bytes);
        self.len += bytes.len();
        Some(())
    }

    fn set(&mut self, at: usize, value: usize) {
        if let Some(field) = self.bytes.get_mut(at..at + 4) {
            field.copy_from_slice(&(value as u32).to_le_bytes());
        }
    }

    /// Returns the chunk, with its size set in the header.
    fn finish(mut self) -> Vec<u8> {
        self.set(12, self.len);
        self.bytes.truncate(self.len);
        self.bytes.shrink_to_fit();
        self.bytes
    }
}

impl Encoder {
    /// Creates an encoder with these parameters. The methods that encode data check the filters,
    /// and whether this build can compress with the codec.
    ///
    /// # Errors
    /// - [`Error::Argument`]: a chunk cannot have the typesize, the level or the block size in
    ///   `params`;
    /// - [`Error::Unsupported`]: the codec is not BloscLZ, LZ4, LZ4HC, zlib or Zstandard.
    pub fn new(params: Params) -> Result<Self, Error> {
        Self::with_form(params, Form::default())
    }

    /// Creates an encoder that reproduces the form of another writer.
    pub(crate) fn with_form(params: Params, form: Form) -> Result<Self, Error> {
        Plan::new(&params, 0)?;
        if codec_format(params.codec).is_none() {
            return Err(Error::Unsupported(format!("compressing with codec {}", params.codec)));
        }
        let codec = Compressor::default();
        let packer = Packer { codec, code: params.codec, level: params.level, runs: form.runs };
        Ok(Self { params, form, packer, block: Vec::new(), scratch: Vec::new() })
    }

    /// Compresses `data` to a chunk. The chunk is at most 32 bytes longer than the data. C:
    /// `blosc2_compress_ctx`. Python: `blosc2.compress2`.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the data is longer than 2 GiB - 33 bytes, or the filters do not
    ///   support it;
    /// - [`Error::Unsupported`]: a filter is not supported; or data must be compressed, and this
    ///   build cannot compress with the codec (LZ4HC, or a codec whose Cargo feature is disabled).
    pub fn encode(&mut self, data: &[u8]) -> Result<Vec<u8>, Error> {
        let plan = Plan::new(&self.params, data.len())?;
        let stored = self.params.level == 0 || plan.nbytes < MIN_NBYTES;
        let first = data.get(..plan.blocksize as usize).unwrap_or(data);
        let blocks = data.chunks(plan.blocksize as usize).map(|data| Block::Data(data.into()));
        if !stored && let Some(chunk) = self.compress(&plan, first, blocks)? {
            return Ok(chunk);
        }
        // A chunk of incompressible data has the flags of the attempt to compress it.
        let table = self.header_len() + 4 * plan.nblocks();
        let attempted = !stored && table <= data.len() + self.header_len();
        let flags = STORED | if attempted { self.flags(&plan) } else { self.extended_flags() };
        let mut chunk = vec![0; self.header_len()];
        header(&mut chunk, &self.params, &plan, self.form, flags);
        chunk.extend_from_slice(data);
        let cbytes = chunk.len() as u32;
        chunk[12..16].copy_from_slice(&cbytes.to_le_bytes());
        Ok(chunk)
    }

    /// Compresses variable-length blocks to one chunk. Each block can be decoded independently. C:
    /// `blosc2_vlcompress_ctx`.
    ///
    /// # Errors
    /// - [`Error::Argument`]: `blocks` is empty, a block is empty, the blocks are too long for a
    ///   chunk, or the filters do not support the data;
    /// - [`Error::Unsupported`]: a filter is not supported; or data must be compressed, and this
    ///   build cannot compress with the codec (LZ4HC, or a codec whose Cargo feature is disabled).
    pub fn encode_blocks(&mut self, blocks: &[&[u8]]) -> Result<Vec<u8>, Error> {
        if blocks.is_empty() || blocks.iter().any(|block| block.is_empty()) {
            let what =
                "a chunk of variable-length blocks needs at least one block and no empty block";
            return Err(Error::Argument(what.into()));
        }
        let nbytes = blocks.iter().fold(0usize, |sum, block| sum.saturating_add(block.len()));
        let plan = Plan { split: false, ..Plan::new(&self.params, nbytes)? };
        let max = EXTENDED_HEADER_LEN + 8 * blocks.len() + nbytes;
        if i32::try_from(max).is_err() {
            return Err(Error::Argument(format!(
                "{} blocks of {nbytes} bytes in total: a chunk has less than 2 GiB",
                blocks.len()
            )));
        }
        let start = EXTENDED_HEADER_LEN + 4 * blocks.len();
        let mut out = Output::new(start, max);
        let form = Form { version: 6, ..Form::default() };
        header(&mut out.bytes, &self.params, &plan, form, self.flags(&plan));
        out.set(8, blocks.len());
        out.bytes[30] = 1;
        let pipeline = self.pipeline(&plan)?;
        for (number, block) in blocks.iter().enumerate() {
            out.set(EXTENDED_HEADER_LEN + 4 * number, out.len);
            let source = pipeline.forward(block, &mut self.block, &mut self.scratch, None)?;
            // The output has space for all blocks uncompressed, so `push` does not fail.
            out.push(&(block.len() as u32).to_le_bytes());
            self.packer.stream(source, &mut out)?;
        }
        Ok(out.finish())
    }

    /// Compresses the blocks of `nbytes` bytes of data to the same chunk as
    /// [`encode`](Self::encode). Returns `None` if the chunk is not shorter than the data. The
    /// parameters must not include the filter delta.
    pub(crate) fn encode_with<'a>(
        &mut self,
        nbytes: usize,
        blocks: impl Iterator<Item = Block<'a>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let plan = Plan::new(&self.params, nbytes)?;
        self.compress(&plan, &[], blocks)
    }

    /// Returns `None` if the chunk is not shorter than the data. `first` is the first block, for
    /// the filter delta.
    fn compress<'a>(
        &mut self,
        plan: &Plan,
        first: &[u8],
        blocks: impl Iterator<Item = Block<'a>>,
    ) -> Result<Option<Vec<u8>>, Error> {
        let head = self.header_len();
        let start = head + 4 * plan.nblocks();
        let max = plan.nbytes as usize + head;
        if start > max {
            return Ok(None);
        }
        let mut out = Output::new(start, max);
        header(&mut out.bytes, &self.params, plan, self.form, self.flags(plan));
        let pipeline = self.pipeline(plan)?;
        let mut zeros = self.form.runs && self.form.extended;
        for (number, block) in blocks.enumerate() {
            out.set(head + 4 * number, out.len);
            let block = match block {
                Block::Data(block) => block,
                Block::Encoded(streams) => {
                    zeros &= streams.iter().all(|&byte| byte == 0);
                    if out.push(streams).is_none() {
                        return Ok(None);
                    }
                    continue;
                }
            };
            let reference = (number > 0).then_some(first);
            let source = pipeline.forward(&block, &mut self.block, &mut self.scratch, reference)?;
            let full = block.len() == plan.blocksize as usize;
            let streams = if plan.split && full { usize::from(plan.typesize) } else { 1 };
            for stream in source.chunks_exact(source.len() / streams) {
                zeros &= stream.iter().all(|&byte| byte == 0);
                if self.packer.stream_with_size(stream, &mut out)?.is_none() {
                    return Ok(None);
                }
            }
        }
        if zeros {
            // All streams are runs of zeros. A special chunk of zeros needs only the header.
            out.len = head;
            out.bytes[31] |= 1 << 4;
        }
        Ok(Some(out.finish()))
    }

    fn pipeline(&self, plan: &Plan) -> Result<Pipeline, Error> {
        let Params { filters, filters_meta, typesize, .. } = &self.params;
        let inner = plan.typesize.into();
        Pipeline::new(filters, filters_meta, inner, *typesize as usize, self.form.version)
    }

    fn header_len(&self) -> usize {
        if self.form.extended { EXTENDED_HEADER_LEN } else { MIN_HEADER_LEN }
    }

    fn extended_flags(&self) -> u8 {
        if self.form.extended { EXTENDED } else { 0 }
    }

    /// Returns the flags of a chunk with streams.
    fn flags(&self, plan: &Plan) -> u8 {
        let mut flags = self.extended_flags();
        for filter in self.params.filters {
            flags |= match filter {
                1 => 0b1,
                2 => 0b100,
                3 => 0b1000,
                _ => 0,
            };
        }
        if !plan.split {
            flags |= UNSPLIT;
        }
        flags | codec_format(self.params.codec).unwrap_or(0) << 5
    }
}

impl Packer {
    /// Appends a stream and its size, or returns `None` if there is no space.
    fn stream_with_size(&mut self, data: &[u8], out: &mut Output) -> Result<Option<()>, Error> {
        let at = out.len;
        let run = data.first().filter(|&first| data.iter().all(|byte| byte == first));
        if let Some(&byte) = run.filter(|_| self.runs) {
            let size = -i32::from(byte);
            let added = out.push(&size.to_le_bytes());
            return Ok(match byte {
                0 => added,
                _ => added.and_then(|()| out.push(&[1])),
            });
        }
        // The size alone may still fit, but no stream can follow it.
        if out.rest().len() <= 4 {
            return Ok(None);
        }
        out.len += 4;
        let size = self.stream(data, out)?;
        if let Some(size) = size {
            out.set(at, size);
        }
        Ok(size.map(|_| ()))
    }

    /// Appends a stream, compressed or stored, and returns its size; `None` if there is no space.
    fn stream(&mut self, data: &[u8], out: &mut Output) -> Result<Option<usize>, Error> {
        if self.level > 0 {
            let most = data.len().min(out.rest().len());
            let target = &mut out.rest()[..most];
            let size = self.codec.compress(self.code, self.level, data, target)?;
            if let Some(size) = size.filter(|&size| size > 0 && size < data.len()) {
                out.len += size;
                return Ok(Some(size));
            }
        }
        Ok(out.push(data).map(|()| data.len()))
    }
}

/// Writes the header without the compressed size.
pub(super) fn header(chunk: &mut [u8], params: &Params, plan: &Plan, form: Form, flags: u8) {
    chunk[..4].copy_from_slice(&[form.version, 1, flags, plan.typesize]);
    chunk[4..8].copy_from_slice(&plan.nbytes.to_le_bytes());
    chunk[8..12].copy_from_slice(&plan.blocksize.to_le_bytes());
    if form.extended {
        chunk[16..22].copy_from_slice(&params.filters);
        chunk[22] = params.codec;
        chunk[23] = params.codec_meta;
        chunk[24..30].copy_from_slice(&params.filters_meta);
    }
}

fn codec_format(codec: u8) -> Option<u8> {
    match codec {
        BLOSCLZ => Some(0),
        LZ4 | LZ4HC => Some(1),
        ZLIB => Some(3),
        ZSTD => Some(4),
        _ => None,
    }
}
