//! Reading single blocks of a file, with a cache of decoded blocks.
//!
//! A block of a frame is read without the rest of its chunk: the header with the table of block starts, then the bytes of
//! the block. They are decoded as a small chunk that contains only this block. Chunks that do not allow this (delta,
//! dictionaries, variable-length blocks, checksums) and files of other kinds are read one whole chunk at a time.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use blosc2_format::chunk::{Chunk, Decoder, EXTENDED_HEADER_LEN, Header};
use blosc2_format::file::{File, Kind};
use blosc2_format::frame::{Layout, Offset, Outline};
use blosc2_format::{Error, Limits, ReadAt};

use crate::lru::Lru;
use crate::source::Source;

/// The maximum number of bytes of memory for one part of a file.
const MEMORY: u64 = 512 << 20;

/// Returns the limits for all files, which keep the memory of the page bounded.
pub fn limits() -> Limits {
    Limits { memory: MEMORY, metadata: Some(MEMORY), ..Limits::default() }
}

/// The maximum number of bytes of decoded blocks in memory.
const CACHE: u64 = 128 << 20;
/// The maximum number of bytes of tables of block starts in memory.
const HEADS: u64 = 16 << 20;
/// The code of the filter delta, which needs the first block to decode the others.
const DELTA: u8 = 3;

/// The blocks of a file.
pub struct Blocks {
    reader: Reader,
    /// The number of bytes of a full block; the last block of a chunk can be shorter.
    block_len: usize,
    cache: Lru<(u64, u64), Arc<[u8]>>,
    heads: Lru<u64, Arc<Head>>,
    /// The chunk that was decoded last as a whole.
    whole: Option<(u64, Vec<u8>)>,
    decoder: Decoder,
}

enum Reader {
    Frame { source: Source, outline: Box<Outline> },
    Other(Box<File<'static>>),
}

/// The start of a chunk of a frame.
#[derive(Debug)]
struct Head {
    header: Header,
    /// The header as stored.
    bytes: Vec<u8>,
    /// The position of the chunk in the source.
    at: u64,
    /// The table of block starts.
    starts: Vec<u32>,
    /// The sorted starts, and the end of the chunk: a block ends where the next one starts.
    ends: BTreeSet<u32>,
}

impl Blocks {
    /// Opens the file in `source` for reading blocks of `block_len` bytes.
    ///
    /// # Errors
    /// Fails with the errors of [`File::from_reader`].
    pub fn open(source: Source, file: File<'static>, block_len: usize) -> Result<Self, Error> {
        let reader = match file.info().kind {
            Kind::Frame => {
                let outline = Outline::read(&source, Layout::Contiguous, &limits())?;
                Reader::Frame { source, outline: Box::new(outline) }
            }
            _ => Reader::Other(Box::new(file)),
        };
        Ok(Self {
            reader,
            block_len: block_len.max(1),
            cache: Lru::new(CACHE),
            heads: Lru::new(HEADS),
            whole: None,
            decoder: Decoder::default(),
        })
    }

    /// Returns the decoded block at index `block` of the chunk at index `chunk`. It is empty if the chunk ends before
    /// this block.
    ///
    /// # Errors
    /// Fails with the errors of [`File::decode_chunk`].
    pub fn block(&mut self, chunk: u64, block: u64) -> Result<Arc<[u8]>, Error> {
        if let Some(block) = self.cached(chunk, block) {
            return Ok(block);
        }
        let data: Arc<[u8]> = match self.single(chunk, block)? {
            Some(data) => data.into(),
            None => self.part_of_whole(chunk, block)?.into(),
        };
        self.cache.insert((chunk, block), Arc::clone(&data), data.len() as u64 + 64);
        Ok(data)
    }

    /// Returns a block if it is in the cache.
    pub fn cached(&mut self, chunk: u64, block: u64) -> Option<Arc<[u8]>> {
        self.cache.get(&(chunk, block))
    }

    fn part_of_whole(&mut self, chunk: u64, block: u64) -> Result<&[u8], Error> {
        if self.whole.as_ref().is_none_or(|(number, _)| *number != chunk) {
            let (_, mut data) = self.whole.take().unwrap_or_default();
            match &mut self.reader {
                Reader::Other(file) => file.decode_chunk(chunk, &mut data)?,
                Reader::Frame { source, outline } => {
                    let stored = stored(source, outline, chunk)?;
                    let typesize = usize::try_from(outline.params().typesize).unwrap_or(usize::MAX);
                    let chunk = Chunk::new(&stored, &limits())?.with_typesize(typesize);
                    let nbytes = chunk.header().nbytes as usize;
                    allow(nbytes as u64)?;
                    data.clear();
                    data.resize(nbytes, 0);
                    self.decoder.decode(&chunk, &mut data)?;
                }
            }
            self.whole = Some((chunk, data));
        }
        let (_, data) = self.whole.as_ref().expect("the chunk was decoded above");
        let start = usize::try_from(block).unwrap_or(usize::MAX).saturating_mul(self.block_len);
        let end = start.saturating_add(self.block_len).min(data.len());
        Ok(data.get(start.min(end)..end).unwrap_or_default())
    }

    /// Decodes a block without the rest of its chunk. Returns `None` if this is not possible.
    fn single(&mut self, chunk: u64, block: u64) -> Result<Option<Vec<u8>>, Error> {
        let Reader::Frame { source, outline } = &mut self.reader else { return Ok(None) };
        if outline.is_unverified(chunk)
            || self.whole.as_ref().is_some_and(|(number, _)| *number == chunk)
        {
            return Ok(None);
        }
        let head = match self.heads.get(&chunk) {
            Some(head) => head,
            None => {
                let Some(head) = Head::read(source, outline, chunk)? else { return Ok(None) };
                let head = Arc::new(head);
                self.heads.insert(chunk, Arc::clone(&head), 256 + 64 * head.starts.len() as u64);
                head
            }
        };
        let header = &head.header;
        let len = self.block_len as u64;
        let start = block.saturating_mul(len);
        let size = len.min(u64::from(header.nbytes).saturating_sub(start)) as usize;
        if size == 0 {
            return Ok(Some(Vec::new()));
        }
        if header.special.is_some() {
            // At most `Limits::memory`, and the chunk has only a header and a value.
            let stored = source.read_vec_at(head.at, header.cbytes.into())?;
            let chunk = Chunk::new(&stored, &limits())?;
            return match u64::from(header.block_len()) == len {
                true => self.decode(&chunk, block as usize, size).map(Some),
                false => Ok(None),
            };
        }
        if header.is_stored() {
            let at = head.at + header.header_len() as u64 + start;
            return Ok(Some(source.read_vec_at(at, size as u64)?));
        }
        let whole = header.variable_blocks || header.dictionary || header.filters.contains(&DELTA);
        if whole || u64::from(header.block_len()) != len {
            return Ok(None);
        }
        let Some((small, index)) = head.cut(source, block as usize, size)? else { return Ok(None) };
        let typesize = usize::try_from(outline.params().typesize).unwrap_or(usize::MAX);
        let chunk = Chunk::new(&small, &limits())?.with_typesize(typesize);
        self.decode(&chunk, index, size).map(Some)
    }

    fn decode(&mut self, chunk: &Chunk<'_>, block: usize, size: usize) -> Result<Vec<u8>, Error> {
        let mut data = vec![0; size];
        self.decoder.decode_block(chunk, block, &mut data)?;
        Ok(data)
    }

    /// Returns the location of the chunk at index `chunk`, if the file has an index: its position in the source, or a
    /// special value.
    ///
    /// # Errors
    /// Fails with the errors of [`Outline::offset`].
    pub fn offset(&self, chunk: u64) -> Result<Option<Offset>, Error> {
        let Reader::Frame { source, outline } = &self.reader else { return Ok(None) };
        let offset = outline.offset(chunk, source)?;
        Ok(offset.map(|offset| match offset {
            Offset::At(place) => Offset::At(outline.header_len().saturating_add(place)),
            special => special,
        }))
    }

    /// Returns the end of the chunks in the source, if the file has an index.
    pub fn chunks_end(&self) -> Option<u64> {
        let Reader::Frame { outline, .. } = &self.reader else { return None };
        Some(outline.header_len().saturating_add(outline.chunks_end()))
    }

    /// Returns whether the frame has checksums.
    pub fn has_checksums(&self) -> Option<bool> {
        let Reader::Frame { outline, .. } = &self.reader else { return None };
        Some(outline.has_checksums())
    }

    /// Returns the header of the chunk at index `chunk` and its position in the source. `None` for files without an
    /// index, and for special values that only the index states.
    ///
    /// # Errors
    /// Fails with the errors of [`File::chunk_nbytes`].
    pub fn chunk_header(&self, chunk: u64) -> Result<Option<(u64, Header)>, Error> {
        let Reader::Frame { source, outline } = &self.reader else { return Ok(None) };
        let Some(Offset::At(place)) = outline.offset(chunk, source)? else { return Ok(None) };
        let (at, _, header) = header(source, outline, chunk, place)?;
        Ok(Some((at, header)))
    }
}

/// Checks that the bytes of a chunk fit into memory.
fn allow(amount: u64) -> Result<(), Error> {
    if amount <= MEMORY {
        return Ok(());
    }
    let limit = Some(blosc2_format::Limit::Memory);
    Err(Error::Limit { limit, what: "bytes of a chunk", amount, max: MEMORY })
}

/// Reads a chunk as stored, and checks it against its checksum.
fn stored(source: &Source, outline: &Outline, number: u64) -> Result<Vec<u8>, Error> {
    let offset = outline.offset(number, source)?.ok_or_else(|| no_chunk(number))?;
    let bytes = match offset {
        Offset::Special(special) => outline.special_chunk(number, special)?,
        Offset::At(place) => {
            let (at, _, header) = header(source, outline, number, place)?;
            allow(header.cbytes.into())?;
            source.read_vec_at(at, header.cbytes.into())?
        }
    };
    outline.verify(number, offset, &bytes)?;
    Ok(bytes)
}

fn no_chunk(number: u64) -> Error {
    Error::Argument(format!("no chunk at index {number}"))
}

/// Returns the position of a chunk, the start of its bytes, and its header.
fn header(
    source: &Source,
    outline: &Outline,
    number: u64,
    place: u64,
) -> Result<(u64, Vec<u8>, Header), Error> {
    let at = outline.header_len().saturating_add(place);
    let room = outline.chunks_end().saturating_sub(place);
    let head = source.read_vec_at(at, room.min(EXTENDED_HEADER_LEN as u64))?;
    let header = outline.chunk_header(number, &head, at, room)?;
    Ok((at, head, header))
}

impl Head {
    /// Reads the start of a chunk. Returns `None` if its blocks cannot be read separately.
    fn read(source: &Source, outline: &Outline, number: u64) -> Result<Option<Self>, Error> {
        let offset = outline.offset(number, source)?.ok_or_else(|| no_chunk(number))?;
        let Offset::At(place) = offset else { return Ok(None) };
        let (at, mut bytes, header) = header(source, outline, number, place)?;
        bytes.truncate(header.header_len());
        let mut head = Self { bytes, at, starts: Vec::new(), ends: BTreeSet::new(), header };
        if head.header.is_compressed() && head.header.special.is_none() {
            let table = 4 * u64::from(head.header.nblocks());
            let from = head.header.header_len() as u64;
            if from + table > u64::from(head.header.cbytes) {
                // Decoding the whole chunk reports the error.
                return Ok(None);
            }
            let table = source.read_vec_at(at + from, table)?;
            let start = |bytes: &[u8]| bytes.first_chunk().copied().map(u32::from_le_bytes);
            head.starts = table.chunks_exact(4).filter_map(start).collect();
            head.ends = head.starts.iter().copied().chain([head.header.cbytes]).collect();
        }
        Ok(Some(head))
    }

    /// Returns a chunk that contains only one block, and the index of the block in it. Returns `None` if the table of
    /// block starts is invalid: decoding the whole chunk reports the error.
    fn cut(
        &self,
        source: &Source,
        block: usize,
        size: usize,
    ) -> Result<Option<(Vec<u8>, usize)>, Error> {
        let Some(&start) = self.starts.get(block) else { return Ok(None) };
        let Some(&end) = self.ends.range(start.saturating_add(1)..).next() else { return Ok(None) };
        let table = self.bytes.len() + 4 * self.starts.len();
        if (start as usize) < table || end > self.header.cbytes {
            return Ok(None);
        }
        let data = source.read_vec_at(self.at + u64::from(start), (end - start).into())?;
        // A shorter last block is the second block of its chunk, so that its streams are not split.
        let block_len = self.header.block_len() as usize;
        let (count, nbytes) = if size < block_len { (2, block_len + size) } else { (1, size) };
        let first = self.bytes.len() + 4 * count;
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        let mut small = self.bytes.clone();
        small[4..8].copy_from_slice(&number(nbytes));
        small[8..12].copy_from_slice(&number(block_len));
        small[12..16].copy_from_slice(&number(first + data.len()));
        for _ in 0..count {
            small.extend(number(first));
        }
        small.extend(data);
        Ok(Some((small, count - 1)))
    }
}

impl fmt::Debug for Blocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocks").field("block_len", &self.block_len).finish_non_exhaustive()
    }
}
