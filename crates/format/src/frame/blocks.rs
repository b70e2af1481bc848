//! The reader of single blocks: only the stored bytes of the needed blocks are read, and the blocks that were decoded
//! last stay in memory.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::Frame;
use crate::chunk::{self, Chunk, Decoder, Header};
use crate::lru::Lru;
use crate::{Error, Limit, Limits, ReadAt};

/// Shorter chunks are read with one request.
const SHORT: u32 = 256 << 10;
/// The default size of the cache of decoded blocks, in bytes.
const CACHE: u64 = 4 << 20;
/// The code of the filter delta, which needs the first block to decode the others.
const DELTA: u8 = 3;

/// A frame that is open for reading parts of chunks.
///
/// A block is read without the rest of its chunk: the header with the table of block starts, then the stored bytes of
/// the block. These chunks are read completely: short ones, those with a checksum that was not compared yet, and those
/// whose blocks depend on each other (delta, dictionaries) or have variable lengths.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{BlockReader, Frame, Writer};
///
/// let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), Params::default(), &[])?;
/// writer.push(&[7; 4000])?;
/// let frame = Frame::open(writer.finish()?.into_inner(), &Limits::default())?;
///
/// let mut reader = BlockReader::new(frame);
/// assert_eq!(reader.read(0, 1000..1003)?[..], [7; 3]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct BlockReader<R> {
    frame: Frame<R>,
    /// What was read of chunks.
    heads: Lru<u64, Arc<Head>>,
    blocks: Lru<(u64, usize), Arc<[u8]>>,
    decoder: Decoder,
}

/// What is in memory of the stored bytes of a chunk.
#[derive(Debug)]
struct Head {
    header: Header,
    /// All bytes, or the header and the table of block starts.
    bytes: Vec<u8>,
    /// The range of each block in the stored chunk, if only the head is in memory.
    places: Option<Vec<Range<u32>>>,
}

impl<R: ReadAt> BlockReader<R> {
    /// Wraps a frame. The cache of decoded blocks has 4 MiB.
    pub fn new(frame: Frame<R>) -> Self {
        let (heads, blocks) = (Lru::new(CACHE / 4), Lru::new(CACHE));
        Self { frame, heads, blocks, decoder: Decoder::default() }
    }

    /// Sets the maximum number of bytes of decoded blocks in memory, and drops the blocks that are in memory. A quarter
    /// of this number is the limit for stored bytes in memory. The last block and the last chunk stay in memory even if
    /// they are larger.
    pub fn set_cache(&mut self, nbytes: u64) {
        (self.heads, self.blocks) = (Lru::new(nbytes / 4), Lru::new(nbytes));
    }

    /// Returns the frame.
    pub fn frame(&self) -> &Frame<R> {
        &self.frame
    }

    /// Returns the frame. Chunks that are read through it are not cached.
    pub fn frame_mut(&mut self) -> &mut Frame<R> {
        &mut self.frame
    }

    /// Returns whether the bytes in `range` of the decoded chunk at index `number` are in memory.
    pub fn is_cached(&mut self, number: u64, range: &Range<usize>) -> bool {
        let Some(head) = self.heads.get(&number) else { return false };
        match head.header.special {
            Some(_) => true,
            None => {
                !head.header.variable_blocks
                    && head
                        .blocks_of(range)
                        .all(|block| self.blocks.get(&(number, block)).is_some())
            }
        }
    }

    /// Returns the bytes in `range` of the decoded chunk at index `number`.
    ///
    /// # Errors
    /// Fails with the errors of [`read_ranges`](Self::read_ranges).
    pub fn read(&mut self, number: u64, range: Range<usize>) -> Result<Arc<[u8]>, Error> {
        let mut found: Arc<[u8]> = Arc::default();
        self.read_ranges(number, &[range], |_, data| found = data.into())?;
        Ok(found)
    }

    /// Calls `each` with the index and the bytes of each of `ranges`, which are ranges of the bytes of the decoded chunk
    /// at index `number`, in this order. The stored bytes of all blocks that are not in memory are read with one call of
    /// [`ReadAt::read_ranges_at`].
    ///
    /// # Errors
    /// - [`Error::Argument`]: a range is not inside the chunk;
    /// - [`Error::Limit`]: the chunk is larger than [`Limits::memory`];
    /// - the errors of [`Frame::decode_chunk`].
    pub fn read_ranges(
        &mut self,
        number: u64,
        ranges: &[Range<usize>],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        let head = self.head(number)?;
        let nbytes = head.header.nbytes as usize;
        let is_outside = |range: &&Range<usize>| range.start > range.end || range.end > nbytes;
        if let Some(range) = ranges.iter().find(is_outside) {
            let what = format!("bytes {range:?} of chunk {number}, which has {nbytes} bytes");
            return Err(Error::Argument(what));
        }
        if head.header.special.is_some() {
            fill_ranges(&head, ranges, each);
            return Ok(());
        }
        if head.header.variable_blocks {
            let mut data = Vec::new();
            self.decoder.decode_vec(&head.chunk(&self.frame)?, &mut data)?;
            ranges.iter().enumerate().for_each(|(at, range)| each(at, &data[range.clone()]));
            return Ok(());
        }
        let wanted = || ranges.iter().flat_map(|range| head.blocks_of(range));
        // Other blocks can drop these from the cache before they are used.
        let stored = self.fetch(number, &head, wanted())?;
        let chunk = match head.places {
            None => Some(head.chunk(&self.frame)?),
            Some(_) => None,
        };
        let len = head.header.block_len() as usize;
        let mut joined = Vec::new();
        for (at, range) in ranges.iter().enumerate() {
            let blocks = head.blocks_of(range);
            joined.clear();
            let is_one = blocks.len() == 1;
            for block in blocks {
                let data = match self.blocks.get(&(number, block)) {
                    Some(data) => data,
                    None => self.decode(number, &head, chunk.as_ref(), block, &stored)?,
                };
                let start = block * len;
                let part =
                    range.start.max(start) - start..range.end.min(start + data.len()) - start;
                match is_one {
                    true => each(at, &data[part]),
                    false => joined.extend_from_slice(&data[part]),
                }
            }
            if !is_one {
                each(at, &joined);
            }
        }
        Ok(())
    }

    /// Returns the number of blocks of the chunk at index `number`.
    ///
    /// # Errors
    /// Fails with the errors of [`Frame::chunk`].
    pub fn nblocks(&mut self, number: u64) -> Result<usize, Error> {
        Ok(self.head(number)?.header.nblocks() as usize)
    }

    /// Returns a decoded block of the chunk at index `number`. The blocks of a chunk can have variable lengths.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no block at this index;
    /// - the errors of [`read_ranges`](Self::read_ranges).
    pub fn block(&mut self, number: u64, block: usize) -> Result<Arc<[u8]>, Error> {
        let head = self.head(number)?;
        if head.places.is_none() {
            let chunk = head.chunk(&self.frame)?;
            return decode_block(&mut self.decoder, &chunk, block);
        }
        let nblocks = head.header.nblocks() as usize;
        if block >= nblocks {
            let what = format!("no block at index {block}: the chunk has {nblocks} blocks");
            return Err(Error::Argument(what));
        }
        self.read(number, head.range(block))
    }

    /// Returns the ends of the decoded blocks of the chunk at index `number`, and the bytes of all blocks. The blocks of
    /// a chunk can have variable lengths.
    ///
    /// # Errors
    /// Fails with the errors of [`Frame::decode_chunk`].
    pub fn decode_blocks(&mut self, number: u64) -> Result<(Vec<usize>, Vec<u8>), Error> {
        let stored = self.frame.chunk(number)?;
        let chunk = parsed(&self.frame, &stored)?;
        let mut data = Vec::new();
        self.decoder.decode_vec(&chunk, &mut data)?;
        let ends = (0..chunk.nblocks()).scan(0, |end, block| {
            *end += chunk.block_size(block);
            Some(*end)
        });
        Ok((ends.collect(), data))
    }

    /// Reads a chunk, or its header and the table of block starts.
    fn head(&mut self, number: u64) -> Result<Arc<Head>, Error> {
        if let Some(head) = self.heads.get(&number) {
            return Ok(head);
        }
        let head = Arc::new(match self.read_head(number)? {
            Some(head) => head,
            None => {
                let bytes = self.frame.chunk(number)?;
                let header = Header::parse(&bytes)?;
                // Blocks of this chunk are decoded from its complete bytes, which are checked here.
                Chunk::new(&bytes, self.frame.limits())?;
                Head { header, bytes, places: None }
            }
        });
        let size = 256 + head.bytes.len() + 8 * head.places.as_ref().map_or(0, Vec::len);
        self.heads.insert(number, Arc::clone(&head), size as u64);
        Ok(head)
    }

    /// Returns `None` if the chunk must be read completely, also because its table of block starts is invalid.
    fn read_head(&self, number: u64) -> Result<Option<Head>, Error> {
        if self.frame.is_unverified(number) {
            return Ok(None);
        }
        let memory = self.frame.limits().memory;
        let head = self.frame.with_chunk(number, |source, header, at| {
            let complete = header.cbytes <= SHORT
                || header.special.is_some()
                || header.variable_blocks
                || header.dictionary
                || header.lazy
                || header.filters.contains(&DELTA)
                || !(header.is_stored() || header.is_compressed());
            let table = if header.is_stored() { 0 } else { 4 * u64::from(header.nblocks()) };
            let end = header.header_len() as u64 + table;
            if complete || end > header.cbytes.into() {
                return Ok(None);
            }
            Limits::allow(Limit::Memory, "bytes of a chunk", header.nbytes.into(), memory)?;
            let bytes = source.read_vec_at(at, end)?;
            Ok(places(&header, &bytes).map(|places| Head { header, bytes, places: Some(places) }))
        })?;
        Ok(head.flatten())
    }

    /// Reads the stored bytes of blocks that are not in memory. Returns the bytes of each block.
    fn fetch(
        &mut self,
        number: u64,
        head: &Head,
        blocks: impl Iterator<Item = usize>,
    ) -> Result<BTreeMap<usize, Vec<u8>>, Error> {
        let mut stored = BTreeMap::new();
        let Some(places) = &head.places else { return Ok(stored) };
        for block in blocks {
            if self.blocks.get(&(number, block)).is_none() {
                stored.insert(block, Vec::new());
            }
        }
        if stored.is_empty() {
            return Ok(stored);
        }
        let mut wanted: Vec<_> = stored.keys().map(|&block| places[block].clone()).collect();
        wanted.sort_unstable_by_key(|place| place.start);
        self.frame.with_chunk(number, |source, _, at| {
            let gap = u32::try_from(source.request_cost()).unwrap_or(u32::MAX);
            let mut ranges: Vec<Range<u32>> = Vec::new();
            for place in wanted {
                match ranges.last_mut() {
                    Some(last) if place.start <= last.end.saturating_add(gap) => {
                        last.end = last.end.max(place.end);
                    }
                    _ => ranges.push(place),
                }
            }
            let mut buffers: Vec<Vec<u8>> =
                ranges.iter().map(|range| vec![0; range.len()]).collect();
            let mut requests: Vec<(u64, &mut [u8])> = ranges
                .iter()
                .zip(&mut buffers)
                .map(|(range, buffer)| (at + u64::from(range.start), &mut buffer[..]))
                .collect();
            source.read_ranges_at(&mut requests)?;
            for (block, bytes) in &mut stored {
                let place = &places[*block];
                let index = ranges.partition_point(|range| range.end < place.end);
                let from = (place.start - ranges[index].start) as usize;
                bytes.extend_from_slice(&buffers[index][from..from + place.len()]);
            }
            Ok(())
        })?;
        Ok(stored)
    }

    /// Decodes a block, and adds it to the cache.
    fn decode(
        &mut self,
        number: u64,
        head: &Head,
        chunk: Option<&Chunk<'_>>,
        block: usize,
        stored: &BTreeMap<usize, Vec<u8>>,
    ) -> Result<Arc<[u8]>, Error> {
        let data: Arc<[u8]> = match (chunk, stored.get(&block)) {
            (Some(chunk), _) => decode_block(&mut self.decoder, chunk, block)?,
            (None, Some(bytes)) if head.header.is_stored() => bytes[..].into(),
            (None, Some(bytes)) => {
                let (small, index) = head.single(block, bytes);
                decode_block(&mut self.decoder, &parsed(&self.frame, &small)?, index)?
            }
            // It was in the cache before other blocks of this call were decoded.
            (None, None) => {
                let again = self.fetch(number, head, std::iter::once(block))?;
                return self.decode(number, head, chunk, block, &again);
            }
        };
        self.blocks.insert((number, block), Arc::clone(&data), data.len() as u64 + 64);
        Ok(data)
    }
}

impl Head {
    /// Returns the chunk, whose bytes are completely in memory.
    fn chunk<R: ReadAt>(&self, frame: &Frame<R>) -> Result<Chunk<'_>, Error> {
        parsed(frame, &self.bytes)
    }

    /// Returns the range of a block in the decoded chunk.
    fn range(&self, block: usize) -> Range<usize> {
        let (len, nbytes) = (self.header.block_len() as usize, self.header.nbytes as usize);
        (block * len).min(nbytes)..((block + 1) * len).min(nbytes)
    }

    /// Returns the blocks with bytes of a range of the decoded chunk.
    fn blocks_of(&self, range: &Range<usize>) -> Range<usize> {
        match (self.header.block_len() as usize, range.is_empty()) {
            (0, _) | (_, true) => 0..0,
            (len, false) => range.start / len..range.end.div_ceil(len),
        }
    }

    /// Returns a chunk that contains only one block, and the index of the block in it. `stored` contains the stored bytes
    /// of the block.
    fn single(&self, block: usize, stored: &[u8]) -> (Vec<u8>, usize) {
        let head = self.header.header_len();
        let (len, size) = (self.header.block_len() as usize, self.range(block).len());
        // A shorter last block is the second block of its chunk, so that its streams are not split.
        let (count, nbytes) = if size < len { (2, len + size) } else { (1, size) };
        let first = head + 4 * count;
        let number = |value: usize| u32::try_from(value).unwrap_or(u32::MAX).to_le_bytes();
        let mut chunk = Vec::with_capacity(first + stored.len());
        chunk.extend_from_slice(&self.bytes[..head]);
        chunk[4..8].copy_from_slice(&number(nbytes));
        chunk[8..12].copy_from_slice(&number(len));
        chunk[12..16].copy_from_slice(&number(first + stored.len()));
        (0..count).for_each(|_| chunk.extend(number(first)));
        chunk.extend_from_slice(stored);
        (chunk, count - 1)
    }
}

/// Parses the stored bytes of a chunk of a frame. The header of a chunk states a typesize above 255 as 1.
fn parsed<'a, R: ReadAt>(frame: &Frame<R>, bytes: &'a [u8]) -> Result<Chunk<'a>, Error> {
    let typesize = usize::try_from(frame.header().typesize).unwrap_or(usize::MAX);
    Ok(Chunk::new(bytes, frame.limits())?.with_typesize(typesize))
}

fn decode_block(
    decoder: &mut Decoder,
    chunk: &Chunk<'_>,
    block: usize,
) -> Result<Arc<[u8]>, Error> {
    let mut data = vec![0; chunk.block_size(block)];
    decoder.decode_block(chunk, block, &mut data)?;
    Ok(data.into())
}

/// Returns the ranges of the stored bytes of all blocks: a block ends where the next one in the chunk starts. `bytes`
/// contains the header and the table of block starts. Returns `None` if a start is invalid.
fn places(header: &Header, bytes: &[u8]) -> Option<Vec<Range<u32>>> {
    let (len, end) = (header.block_len(), header.cbytes);
    if header.is_stored() {
        let head = header.header_len() as u32;
        let place = |block: u32| {
            let start = head.checked_add(block * len)?;
            let size = len.min(header.nbytes - block * len);
            start.checked_add(size).filter(|&stop| stop <= end).map(|stop| start..stop)
        };
        return (0..header.nblocks()).map(place).collect();
    }
    let (table, _) = bytes[header.header_len()..].as_chunks();
    let starts: Vec<u32> = table.iter().map(|&start| u32::from_le_bytes(start)).collect();
    let mut sorted: Vec<u32> = starts.iter().copied().chain([end]).collect();
    sorted.sort_unstable();
    let place = |&start: &u32| {
        let next = *sorted.get(sorted.partition_point(|&each| each <= start))?;
        (start as usize >= bytes.len() && next <= end).then_some(start..next)
    };
    starts.iter().map(place).collect()
}

/// Calls `each` with ranges of a special chunk.
fn fill_ranges(head: &Head, ranges: &[Range<usize>], mut each: impl FnMut(usize, &[u8])) {
    let value = chunk::repeated(&head.header, &head.bytes);
    let mut data = Vec::new();
    for (at, range) in ranges.iter().enumerate() {
        data.clear();
        data.extend(value.iter().cycle().skip(range.start % value.len()).take(range.len()));
        each(at, &data);
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
