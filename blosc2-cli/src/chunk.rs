//! Files that are one chunk, by C-Blosc2.

use std::borrow::Cow;
use std::fmt::Display;
use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, anyhow};
use blosc2::{CParams, Chunk, Compressor};

use crate::file;
use crate::params::Compression;
use crate::stream::Chunks;

/// Reads a chunk.
fn open(path: &Path) -> Result<Chunk> {
    let bytes = fs::read(path).map_err(|error| unread(path, &error))?;
    Chunk::new(bytes).map_err(|error| unread(path, &error))
}

fn unread(path: &Path, error: &dyn Display) -> anyhow::Error {
    anyhow!("cannot read ({}): {error}", path.display())
}

/// Writes the chunk in a file to another one, as it is or compressed anew.
pub(crate) fn copy(path: &Path, out: &Path, compression: &Compression) -> Result<()> {
    file::refuse_existing(out)?;
    let mut chunk = open(path)?;
    if !compression.is_default() {
        let params = compression.apply(params(&chunk));
        chunk = compress(&chunk, &params).map_err(|error| unread(path, &error))?;
    }
    file::create(out, |file| Ok(file.write_all(chunk.as_bytes())?))
}

/// How a chunk is compressed, as far as it says.
fn params(chunk: &Chunk) -> CParams {
    let params = CParams::new()
        .codec(chunk.codec())
        .codec_meta(chunk.codec_meta())
        .typesize(chunk.typesize())
        .filters(&chunk.filters())
        .dictionary(chunk.has_dictionary())
        .blosc1(chunk.is_blosc1());
    // Data that is shorter than an item is a block by itself.
    match chunk.blocksize().filter(|&size| size >= chunk.typesize()) {
        Some(size) => params.blocksize(size),
        None => params,
    }
}

/// Compresses the data of a chunk, in the same blocks where they have lengths of their own.
fn compress(chunk: &Chunk, params: &CParams) -> blosc2::Result<Chunk> {
    let mut compressor = Compressor::new(params)?;
    if !chunk.has_variable_blocks() {
        return compressor.compress(&chunk.decompress::<u8>()?);
    }
    let blocks = chunk.blocks()?;
    compressor.compress_blocks(&blocks.iter().collect::<Vec<_>>())
}

/// The data of a file that is one chunk.
pub(crate) struct Data {
    typesize: usize,
    data: Vec<u8>,
}

impl Data {
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let chunk = open(path)?;
        let data = chunk.decompress().map_err(|error| unread(path, &error))?;
        Ok(Self { typesize: chunk.typesize(), data })
    }
}

impl Chunks for Data {
    fn typesize(&self) -> usize {
        self.typesize
    }

    fn nbytes(&self) -> u64 {
        self.data.len() as u64
    }

    fn nchunks(&self) -> usize {
        1
    }

    fn chunksize(&self) -> usize {
        self.data.len()
    }

    fn chunk(&self, _index: usize) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&self.data))
    }
}
