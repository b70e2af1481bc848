//! Files that are a single chunk, decompressed by C-Blosc2.

use std::ops::Range;

use anyhow::Result;
use blosc2::storage::ReadAt;
use blosc2::{CParams, Chunk, Compressor};

use crate::file::Source;
use crate::output::Output;
use crate::params::Compression;
use crate::stream::{self, Items};

/// Reads a chunk; bytes after it are ignored.
fn open(source: Source<'_>) -> Result<Chunk> {
    let read = || {
        let bytes = source.bytes()?;
        bytes.read_vec_at(0, bytes.size()?)
    };
    let bytes = read().map_err(|error| source.unread(&error))?;
    Chunk::new(bytes).map_err(|error| source.unread(&error))
}

/// Copies a chunk to a new file, unchanged or recompressed.
pub(crate) fn copy(
    source: Source<'_>,
    output: Output<'_>,
    compression: &Compression,
) -> Result<()> {
    let mut chunk = open(source)?;
    if !compression.is_default() {
        let params = compression.apply(params(&chunk));
        chunk = compress(&chunk, &params).map_err(|error| source.unread(&error))?;
    }
    output.write(|file| Ok(file.write_all(chunk.as_bytes())?))
}

/// The compression parameters of a chunk, as far as its header states them.
fn params(chunk: &Chunk) -> CParams {
    let params = CParams::new()
        .codec(chunk.codec())
        .codec_meta(chunk.codec_meta())
        .typesize(chunk.typesize())
        .filters(&chunk.filters())
        .dictionary(chunk.has_dictionary())
        .blosc1(chunk.is_blosc1());
    // Data shorter than one item has a block size below the typesize, which is not a valid parameter.
    match chunk.blocksize().filter(|&size| size >= chunk.typesize()) {
        Some(size) => params.blocksize(size),
        None => params,
    }
}

/// Compresses the data of a chunk; variable-length blocks are preserved.
fn compress(chunk: &Chunk, params: &CParams) -> blosc2::Result<Chunk> {
    let mut compressor = Compressor::new(params)?;
    if !chunk.has_variable_blocks() {
        return compressor.compress(&chunk.decompress::<u8>()?);
    }
    let blocks = chunk.blocks()?;
    compressor.compress_blocks(&blocks.iter().collect::<Vec<_>>())
}

/// The items of a file that is a single chunk.
pub(crate) struct ChunkItems(Chunk);

impl ChunkItems {
    pub(crate) fn open(source: Source<'_>) -> Result<Self> {
        open(source).map(Self)
    }

    /// All bytes, including trailing bytes that are not a whole item.
    pub(crate) fn data(&self) -> Result<Vec<u8>> {
        Ok(self.0.decompress()?)
    }
}

impl Items for ChunkItems {
    fn shape(&self) -> Vec<u64> {
        vec![(self.0.nbytes() / self.0.typesize()) as u64]
    }

    fn chunks(&self) -> Vec<u64> {
        self.shape()
    }

    fn typesize(&self) -> usize {
        self.0.typesize()
    }

    fn is_flat(&self) -> bool {
        true
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        let bytes = stream::bytes_of(ranges, self.typesize())?;
        Ok(self.0.items::<u8>(usize::try_from(bytes.start)?..usize::try_from(bytes.end)?)?)
    }
}
