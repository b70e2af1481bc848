//! Super-chunks: chunks, data and metalayers.

use std::io::{self, Read};
use std::ops::{Range, RangeBounds};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use blosc2_format::b2nd;
use blosc2_format::frame::{BlockReader, Frame, Metalayer, Offset};

use super::element::items_of;
use super::source::Source;
use super::{Element, Error, ErrorKind, Limits, Result, Special, Value};
use crate::ranges::range_of;

/// The bytes that a read may allocate for a file of any size, and for each stored byte.
const PLAUSIBLE: u64 = 1 << 30;
const PLAUSIBLE_RATIO: u64 = 256;

/// Returns the default of [`OpenOptions::max_read`] for `stored` compressed bytes.
pub fn default_max_read(stored: u64) -> u64 {
    stored.saturating_mul(PLAUSIBLE_RATIO).max(PLAUSIBLE)
}

pub(super) const OPEN: &str = "open a frame";
const READ: &str = "read a chunk";
const META: &str = "read a metalayer";

/// The metalayers that mark Python objects.
const CARRIERS: [&str; 3] = ["LazyArray", "b2o", "proxy-source"];

/// A super-chunk that is open for reading: chunks of compressed data, and metalayers.
#[derive(Debug)]
pub struct SChunk {
    reader: Mutex<BlockReader<Source>>,
    info: SChunkInfo,
    meta: Vec<Metalayer>,
    vlmeta: Vec<String>,
    max_read: Option<u64>,
    /// The bytes of the frame.
    stored: u64,
    path: Option<PathBuf>,
}

/// A summary of a super-chunk.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SChunkInfo {
    /// The size of an item in bytes.
    pub typesize: usize,
    /// The decompressed size in bytes of every chunk except the last chunk, which may be shorter. 0 if it is not fixed.
    pub chunksize: usize,
    /// The block size in bytes; `None` if each chunk has its own block size.
    pub blocksize: Option<usize>,
    /// The decompressed size of all chunks in bytes.
    pub nbytes: u64,
    /// The compressed size of all chunks in bytes, including gaps.
    pub cbytes: u64,
    /// The number of chunks.
    pub nchunks: usize,
    /// Whether the chunks belong to an array.
    pub is_array: bool,
    /// The name of the metalayer that marks a Python object without data; `None` for plain data.
    pub python_object: Option<&'static str>,
    /// The code of the codec; see [`frame::Header::codec`](blosc2_format::frame::Header::codec).
    pub codec: u8,
    /// The compression level.
    pub level: u8,
    /// The codes of the filters.
    pub filters: [u8; 6],
    /// The limits of the handle.
    pub limits: Limits,
}

/// The state of a source, which does not change while it is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revision(());

/// The header of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkInfo {
    /// The decompressed size in bytes.
    pub nbytes: usize,
    /// The compressed size in bytes; 0 if only the index records the chunk.
    pub cbytes: usize,
    /// The value of a special (constant) chunk.
    pub special: Option<Special>,
}

/// The blocks of a chunk.
#[derive(Debug)]
pub struct Blocks {
    ends: Vec<usize>,
    bytes: Vec<u8>,
}

impl Blocks {
    /// Returns the bytes of all blocks.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns an iterator over the blocks.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> + '_ {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }
}

impl SChunk {
    pub(super) fn new(
        frame: Frame<Source>,
        limits: Limits,
        max_read: Option<u64>,
        path: Option<PathBuf>,
    ) -> Result<Self> {
        let header = frame.header();
        let meta = frame.metalayers().to_vec();
        let vlmeta: Vec<String> = frame.vlmetalayers().map(str::to_owned).collect();
        let has = |name: &str| meta.iter().any(|each| each.name == name);
        let is_marked = |name: &&str| has(name) || vlmeta.iter().any(|each| each == name);
        let nchunks = usize::try_from(frame.nchunks())
            .map_err(|error| Error::new(ErrorKind::TooLarge, OPEN, error))?;
        let info = SChunkInfo {
            typesize: header.typesize as usize,
            chunksize: header.chunksize.fixed().map_or(0, |size| size as usize),
            blocksize: Some(header.blocksize as usize).filter(|&size| size > 0),
            nbytes: header.nbytes,
            cbytes: header.cbytes,
            nchunks,
            is_array: has(b2nd::NAME) || has(b2nd::OLD_NAME),
            python_object: CARRIERS.into_iter().find(is_marked),
            codec: header.codec,
            level: header.level,
            filters: header.filters,
            limits,
        };
        let stored = header.frame_len.max(header.cbytes);
        let reader = BlockReader::new(frame).into();
        Ok(Self { reader, info, meta, vlmeta, max_read, stored, path })
    }

    pub(super) fn reader(&self) -> MutexGuard<'_, BlockReader<Source>> {
        // A panic leaves no partial change in it.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a summary. Reads no chunk.
    pub fn info(&self) -> &SChunkInfo {
        &self.info
    }

    /// Returns the limit of [`OpenOptions::max_read`](super::OpenOptions::max_read), if it was set.
    pub fn max_read(&self) -> Option<u64> {
        self.max_read
    }

    /// Returns the path with which the super-chunk was opened.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the number of chunks.
    pub fn nchunks(&self) -> usize {
        self.info.nchunks
    }

    /// Returns the decompressed size of all chunks in bytes.
    pub fn nbytes(&self) -> u64 {
        self.info.nbytes
    }

    /// Returns the compressed size of all chunks in bytes.
    pub fn cbytes(&self) -> u64 {
        self.info.cbytes
    }

    /// Returns the size of an item in bytes.
    pub fn typesize(&self) -> usize {
        self.info.typesize
    }

    /// Returns the state of the source.
    ///
    /// # Errors
    /// None in this build.
    pub fn revision(&self) -> Result<Revision> {
        Ok(Revision(()))
    }

    /// Returns the fixed-length metalayers.
    pub fn meta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: false }
    }

    /// Returns the variable-length metalayers.
    pub fn vlmeta(&self) -> Metalayers<'_> {
        Metalayers { schunk: self, variable: true }
    }

    /// Returns the header of a chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: there is no chunk at this index;
    /// - the errors of [reading values](crate#reading-values).
    pub fn chunk_info(&self, index: usize) -> Result<ChunkInfo> {
        self.check_chunk(index)?;
        let number = index as u64;
        let reader = self.reader();
        let header = reader.frame().chunk_header(number);
        let header = header.and_then(|header| Ok((reader.frame().offset(number)?, header)));
        let (offset, header) = header.map_err(|error| self.failed(READ, error))?;
        let cbytes = if matches!(offset, Offset::Special(_)) { 0 } else { header.cbytes as usize };
        Ok(ChunkInfo { nbytes: header.nbytes as usize, cbytes, special: header.special })
    }

    /// Decompresses a chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: there is no chunk at this index;
    /// - the errors of [reading values](crate#reading-values).
    pub fn decompress_chunk<T: Element>(&self, index: usize) -> Result<Vec<T>> {
        self.allow_chunk(index)?;
        let mut data = Vec::new();
        let read = self.reader().frame_mut().decode_chunk(index as u64, &mut data);
        read.map_err(|error| self.in_chunk(index, error))?;
        Ok(items_of(&data))
    }

    /// Decompresses the blocks of a chunk, which can have different lengths.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: there is no chunk at this index;
    /// - the errors of [reading values](crate#reading-values).
    pub fn blocks(&self, index: usize) -> Result<Blocks> {
        self.allow_chunk(index)?;
        let blocks = self.reader().decode_blocks(index as u64);
        let (ends, bytes) = blocks.map_err(|error| self.in_chunk(index, error))?;
        Ok(Blocks { ends, bytes })
    }

    /// Decompresses a block of a chunk.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: there is no chunk or no block at this index;
    /// - the errors of [reading values](crate#reading-values).
    pub fn block(&self, index: usize, block: usize) -> Result<Vec<u8>> {
        self.allow_chunk(index)?;
        let mut reader = self.reader();
        let failed = |error| self.in_chunk(index, error);
        let count = reader.nblocks(index as u64).map_err(failed)?;
        if block >= count {
            let detail = format!("chunk {index} has {count} blocks, got the index {block}");
            return Err(self.error(ErrorKind::OutOfBounds, "read a block", detail));
        }
        Ok(reader.block(index as u64, block).map_err(failed)?.to_vec())
    }

    /// Reads a range of the data, in items of the type `T`: bytes if it is `u8`.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: the range is outside the data;
    /// - [`ErrorKind::TypeMismatch`]: the size of `T` is not the typesize, and `T` is not `u8`;
    /// - the errors of [reading values](crate#reading-values).
    pub fn read<T: Element>(&self, range: impl RangeBounds<u64>) -> Result<Vec<T>> {
        const DOING: &str = "read from a super-chunk";
        let size = size_of::<T>() as u64;
        if size != 1 && size != self.typesize() as u64 {
            let detail = format!("items of {} bytes, expected {size}", self.typesize());
            return Err(self.error(ErrorKind::TypeMismatch, DOING, detail));
        }
        let items = self.nbytes() / size;
        let Range { start, end } = range_of(&range, items);
        if start > end || end > items {
            let detail = format!("there are {items} items, asked for {start}..{end}");
            return Err(self.error(ErrorKind::OutOfBounds, DOING, detail));
        }
        self.allow(DOING, (end - start) * size)?;
        Ok(items_of(&self.bytes(start * size..end * size)?))
    }

    /// The bytes of a range of the data, which is inside the data.
    fn bytes(&self, range: Range<u64>) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let fixed = self.info.chunksize as u64;
        let (mut index, mut start) = match range.start.checked_div(fixed) {
            Some(index) => (index as usize, index * fixed),
            None => (0, 0),
        };
        while start < range.end {
            let len = match fixed {
                0 => self.chunk_info(index)?.nbytes as u64,
                // The last chunk can be shorter.
                fixed => fixed.min(self.nbytes() - start),
            };
            let end = start + len;
            if end > range.start {
                let inside = range.start.max(start) - start..range.end.min(end) - start;
                let inside = inside.start as usize..inside.end as usize;
                let read = self.reader().read_ranges(index as u64, &[inside], |_, data| {
                    bytes.extend_from_slice(data);
                });
                read.map_err(|error| self.in_chunk(index, error))?;
            }
            (index, start) = (index + 1, end);
        }
        Ok(bytes)
    }

    fn check_chunk(&self, index: usize) -> Result<()> {
        if index < self.nchunks() {
            return Ok(());
        }
        let detail = format!("there are {} chunks, got the index {index}", self.nchunks());
        Err(self.error(ErrorKind::OutOfBounds, READ, detail))
    }

    fn allow_chunk(&self, index: usize) -> Result<()> {
        let info = self.chunk_info(index)?;
        self.allow(READ, info.nbytes as u64)
    }

    /// Checks that a read may allocate this memory.
    pub(super) fn allow(&self, doing: &str, nbytes: u64) -> Result<()> {
        let max = self.max_read.unwrap_or_else(|| default_max_read(self.stored));
        match nbytes <= max {
            true => Ok(()),
            false => Err(self.at(Error::over_max_read(doing, nbytes, max))),
        }
    }

    /// The maximum memory of the values of a metalayer.
    fn metadata_allowed(&self) -> u64 {
        self.max_read.unwrap_or_else(|| self.info.limits.decoded_metadata(self.stored))
    }

    pub(super) fn error(&self, kind: ErrorKind, doing: &str, detail: impl ToString) -> Error {
        self.at(Error::new(kind, doing, detail))
    }

    pub(super) fn failed(&self, doing: impl Into<String>, error: blosc2_format::Error) -> Error {
        self.at(Error::from_frame(doing, error))
    }

    pub(super) fn in_chunk(&self, index: usize, error: blosc2_format::Error) -> Error {
        self.failed(format!("decompress chunk {index}"), error)
    }

    fn at(&self, error: Error) -> Error {
        match &self.path {
            Some(path) => error.at(path),
            None => error,
        }
    }
}

/// Read access to the metalayers of a super-chunk: named byte strings.
#[derive(Debug, Clone, Copy)]
pub struct Metalayers<'a> {
    schunk: &'a SChunk,
    variable: bool,
}

impl Metalayers<'_> {
    /// Returns the names, in stored order.
    pub fn names(&self) -> Vec<String> {
        match self.variable {
            true => self.schunk.vlmeta.clone(),
            false => self.schunk.meta.iter().map(|each| each.name.clone()).collect(),
        }
    }

    /// Returns whether there is a metalayer with this name.
    pub fn contains(&self, name: &str) -> bool {
        match self.variable {
            true => self.schunk.vlmeta.iter().any(|each| each == name),
            false => self.schunk.meta.iter().any(|each| each.name == name),
        }
    }

    /// Returns the content of the metalayer with this name, or `None` if there is none.
    ///
    /// # Errors
    /// Fails with the errors of [reading values](crate#reading-values).
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>> {
        if !self.variable {
            let found = self.schunk.meta.iter().find(|each| each.name == name);
            return Ok(found.map(|each| each.content.clone()));
        }
        let content = self.schunk.reader().frame().vlmetalayer(name);
        let content = content.map_err(|error| self.schunk.failed(META, error))?;
        if let (Some(content), Some(max)) = (&content, self.schunk.max_read)
            && content.len() as u64 > max
        {
            let len = content.len() as u64;
            return Err(self.schunk.at(Error::over_max_read(META, len, max)));
        }
        Ok(content)
    }

    /// Decodes the content of the metalayer with this name from msgpack. Returns `None` if there is none.
    ///
    /// # Errors
    /// Fails with the errors of [reading values](crate#reading-values).
    pub fn value(&self, name: &str) -> Result<Option<Value>> {
        let Some(content) = self.get(name)? else { return Ok(None) };
        let value = Value::from_msgpack_within(&content, self.schunk.metadata_allowed());
        value.map(Some).map_err(|error| {
            let error = Error::from(error);
            self.schunk.error(error.kind(), META, format!("metalayer `{name}`: {error}"))
        })
    }
}

/// Reads the data of a super-chunk from its start.
#[derive(Debug)]
pub struct SChunkReader<'a> {
    schunk: &'a SChunk,
    position: u64,
}

impl<'a> SChunkReader<'a> {
    /// Creates a reader at the start of the data.
    pub fn new(schunk: &'a SChunk) -> Self {
        Self { schunk, position: 0 }
    }
}

impl Read for SChunkReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.schunk.nbytes() - self.position;
        let len = left.min(buffer.len() as u64);
        let bytes = self.schunk.bytes(self.position..self.position + len)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }
}
