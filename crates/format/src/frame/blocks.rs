//! The reader of single blocks: only the stored bytes of the needed blocks are read, and the blocks that were decoded
//! last stay in memory.

use std::io::{self, ErrorKind};
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
/// Chunks with more blocks are read completely: their tables are as long as their data.
const MAX_BLOCKS: u32 = 1 << 20;
/// The index of the data of a chunk with variable-length blocks.
const WHOLE: usize = usize::MAX - 1;
/// The code of the filter delta, which needs the first block to decode the others.
const DELTA: u8 = 3;

/// A frame that is open for reading parts of chunks.
///
/// A block is read without the rest of its chunk: the header with the table of block starts, then the stored bytes of
/// the block. These chunks are read completely: short ones, those with a checksum that was not compared yet, those
/// whose blocks depend on each other (delta, dictionaries) or have variable lengths, and those with a table of block
/// starts that no library writes.
///
/// What is in memory is not read again: a change of the frame by another program is not seen then.
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
    headers: Lru<u64, Arc<Header>>,
    /// The stored bytes of chunks, or only their heads.
    stored: Lru<u64, Arc<Stored>>,
    /// Decoded blocks; a chunk with variable-length blocks has one entry with the index [`WHOLE`].
    blocks: Lru<(u64, usize), Arc<[u8]>>,
    decoder: Decoder,
}

/// What is in memory of the stored bytes of a chunk.
#[derive(Debug)]
struct Stored {
    header: Arc<Header>,
    /// All bytes, or the header and the table of block starts.
    bytes: Vec<u8>,
    /// The range of each block in the stored chunk, if only the head is in memory.
    places: Option<Vec<Range<u32>>>,
}

/// Stored bytes of blocks: ranges of the stored chunk, in ascending order, and their bytes.
type Fetched = Vec<(Range<u32>, Vec<u8>)>;

impl<R: ReadAt> BlockReader<R> {
    /// Wraps a frame. The cache of decoded blocks has 4 MiB.
    pub fn new(frame: Frame<R>) -> Self {
        let [headers, stored, blocks] = caches(CACHE);
        let (headers, stored, blocks) = (Lru::new(headers), Lru::new(stored), Lru::new(blocks));
        Self { frame, headers, stored, blocks, decoder: Decoder::default() }
    }

    /// Sets the maximum number of bytes of decoded blocks in memory, and removes the blocks that are in memory. Stored
    /// bytes may take a quarter of this number, and headers a sixteenth. A block or a chunk that is larger is the only one
    /// in memory.
    pub fn set_cache(&mut self, nbytes: u64) {
        let [headers, stored, blocks] = caches(nbytes);
        self.headers = Lru::new(headers);
        self.stored = Lru::new(stored);
        self.blocks = Lru::new(blocks);
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
        let Some(header) = self.headers.get(&number) else { return false };
        if range.end > header.nbytes as usize {
            return false;
        }
        match header.special {
            Some(_) => self.stored.get(&number).is_some(),
            None => blocks_of(&header, range).all(|block| self.cached(number, block).is_some()),
        }
    }

    fn cached(&mut self, number: u64, block: usize) -> Option<Arc<[u8]>> {
        self.blocks.get(&(number, block))
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
    /// - [`Error::Limit`]: a range, a block or the stored chunk is larger than [`Limits::memory`];
    /// - [`Error::Io`] with the kind [`ErrorKind::ResourceBusy`]: the chunk was changed while it was read;
    /// - the errors of [`Frame::decode_chunk`].
    pub fn read_ranges(
        &mut self,
        number: u64,
        ranges: &[Range<usize>],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        let mut header = self.header(number)?;
        self.check(number, &header, ranges)?;
        let is_missing = |reader: &mut Self, header: &Header| {
            let mut blocks = ranges.iter().flat_map(|range| blocks_of(header, range));
            header.special.is_some() || blocks.any(|block| reader.cached(number, block).is_none())
        };
        let mut stored = None;
        let mut fetched = Fetched::new();
        if is_missing(self, &header) {
            let read = self.stored(number)?;
            if read.header != header {
                header = Arc::clone(&read.header);
                self.check(number, &header, ranges)?;
            }
            let blocks = ranges.iter().flat_map(|range| blocks_of(&header, range));
            fetched = self.fetch(number, &read, blocks)?;
            stored = Some(read);
        }
        if let (Some(_), Some(stored)) = (header.special, &stored) {
            fill_ranges(stored, ranges, each);
            return Ok(());
        }
        let len = if header.variable_blocks { header.nbytes } else { header.block_len() } as usize;
        let mut joined = Vec::new();
        for (at, range) in ranges.iter().enumerate() {
            let blocks = blocks_of(&header, range);
            let is_one = blocks.len() == 1;
            joined.clear();
            for (place, block) in blocks.enumerate() {
                let start = if header.variable_blocks { 0 } else { block * len };
                let data = match self.cached(number, block) {
                    Some(data) => data,
                    // Other blocks of this call have removed it from the cache.
                    None => self.decode(number, &mut stored, block, &fetched)?,
                };
                let part = range.start.max(start) - start..range.end.min(start + len) - start;
                let part = data.get(part).ok_or_else(|| changed(number))?;
                if is_one {
                    each(at, part);
                    continue;
                }
                if place == 0 {
                    let memory = |_| Error::Argument(format!("{} bytes of memory", range.len()));
                    joined.try_reserve_exact(range.len()).map_err(memory)?;
                }
                joined.extend_from_slice(part);
            }
            if !is_one {
                each(at, &joined);
            }
        }
        Ok(())
    }

    fn check(&self, number: u64, header: &Header, ranges: &[Range<usize>]) -> Result<(), Error> {
        let nbytes = header.nbytes as usize;
        let memory = self.frame.limits().memory;
        for range in ranges {
            if range.start > range.end || range.end > nbytes {
                let what = format!("bytes {range:?} of chunk {number}, which has {nbytes} bytes");
                return Err(Error::Argument(what));
            }
            Limits::allow(Limit::Memory, "bytes of a range", range.len() as u64, memory)?;
        }
        Ok(())
    }

    /// Returns the number of blocks of the chunk at index `number`.
    ///
    /// # Errors
    /// Fails with the errors of [`Frame::chunk`].
    pub fn nblocks(&mut self, number: u64) -> Result<usize, Error> {
        Ok(self.header(number)?.nblocks() as usize)
    }

    /// Returns a decoded block of the chunk at index `number`. The blocks of a chunk can have variable lengths.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no block at this index;
    /// - the errors of [`read_ranges`](Self::read_ranges).
    pub fn block(&mut self, number: u64, block: usize) -> Result<Arc<[u8]>, Error> {
        let header = self.header(number)?;
        let nblocks = header.nblocks() as usize;
        if block >= nblocks {
            let what = format!("no block at index {block}: the chunk has {nblocks} blocks");
            return Err(Error::Argument(what));
        }
        if header.variable_blocks {
            let stored = self.stored(number)?;
            return decode_block(&mut self.decoder, &stored.chunk(&self.frame)?, block);
        }
        self.read(number, range_of(&header, block))
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

    fn header(&mut self, number: u64) -> Result<Arc<Header>, Error> {
        match self.headers.get(&number) {
            Some(header) => Ok(header),
            None => Ok(Arc::clone(&self.stored(number)?.header)),
        }
    }

    /// Reads a chunk, or its header and the table of block starts.
    fn stored(&mut self, number: u64) -> Result<Arc<Stored>, Error> {
        if let Some(stored) = self.stored.get(&number) {
            return Ok(stored);
        }
        let stored = match self.read_head(number)? {
            Some(stored) => stored,
            None => self.read_whole(number)?,
        };
        Ok(self.keep(number, stored))
    }

    fn keep(&mut self, number: u64, stored: Stored) -> Arc<Stored> {
        if self.headers.get(&number).is_some_and(|before| before != stored.header) {
            // Blocks of the chunk before its change.
            self.blocks.clear();
        }
        let stored = Arc::new(stored);
        let size = 256 + stored.bytes.len() + 8 * stored.places.as_ref().map_or(0, Vec::len);
        self.headers.insert(number, Arc::clone(&stored.header), 128);
        self.stored.insert(number, Arc::clone(&stored), size as u64);
        stored
    }

    fn read_whole(&self, number: u64) -> Result<Stored, Error> {
        let bytes = self.frame.chunk(number)?;
        // Checks the chunk.
        let header = Arc::new(parsed(&self.frame, &bytes)?.header().clone());
        Ok(Stored { header, bytes, places: None })
    }

    /// Returns `None` if the chunk must be read completely.
    fn read_head(&self, number: u64) -> Result<Option<Stored>, Error> {
        if self.frame.is_unverified(number) {
            return Ok(None);
        }
        let memory = self.frame.limits().memory;
        let head = self.frame.with_chunk(number, |source, header, at| {
            let table = if header.is_stored() { 0 } else { 4 * u64::from(header.nblocks()) };
            let end = header.header_len() as u64 + table;
            let complete = header.cbytes <= SHORT
                || header.special.is_some()
                || header.variable_blocks
                || header.dictionary
                || header.lazy
                || header.filters.contains(&DELTA)
                || !(header.is_stored() || header.is_compressed())
                || end > u64::from(header.cbytes)
                || header.nblocks() > MAX_BLOCKS;
            if complete {
                return Ok(None);
            }
            Limits::allow(Limit::Memory, "bytes of a chunk", header.nbytes.into(), memory)?;
            Limits::allow(Limit::Memory, "bytes of a chunk", header.cbytes.into(), memory)?;
            let bytes = source.read_vec_at(at, end)?;
            let places = places(&header, &bytes);
            let header = Arc::new(header);
            Ok(places.map(|places| Stored { header, bytes, places: Some(places) }))
        })?;
        Ok(head.flatten())
    }

    /// Reads the stored bytes of blocks that are not in memory.
    fn fetch(
        &mut self,
        number: u64,
        stored: &Stored,
        blocks: impl Iterator<Item = usize>,
    ) -> Result<Fetched, Error> {
        let Some(places) = &stored.places else { return Ok(Fetched::new()) };
        let missing = blocks.filter(|&block| self.blocks.get(&(number, block)).is_none());
        // A block outside the chunk is an error of the caller.
        let mut wanted: Vec<_> = missing.filter_map(|block| places.get(block).cloned()).collect();
        if wanted.is_empty() {
            return Ok(Fetched::new());
        }
        wanted.sort_unstable_by_key(|place| place.start);
        let fetched = self.frame.with_chunk(number, |source, header, at| {
            if header != *stored.header {
                return Err(changed(number));
            }
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
            let mut fetched: Fetched =
                ranges.into_iter().map(|range| (range.clone(), vec![0; range.len()])).collect();
            let mut requests: Vec<(u64, &mut [u8])> = fetched
                .iter_mut()
                .map(|(range, bytes)| (at + u64::from(range.start), &mut bytes[..]))
                .collect();
            source.read_ranges_at(&mut requests)?;
            Ok(fetched)
        })?;
        fetched.ok_or_else(|| changed(number))
    }

    /// Decodes a block, and adds it to the cache. `stored` is read if it is `None`.
    fn decode(
        &mut self,
        number: u64,
        stored: &mut Option<Arc<Stored>>,
        block: usize,
        fetched: &Fetched,
    ) -> Result<Arc<[u8]>, Error> {
        let read = match stored {
            Some(read) => Arc::clone(read),
            None => Arc::clone(stored.insert(self.stored(number)?)),
        };
        let data = match &read.places {
            None if block == WHOLE => {
                let mut data = Vec::new();
                self.decoder.decode_vec(&read.chunk(&self.frame)?, &mut data)?;
                data.into()
            }
            None => decode_block(&mut self.decoder, &read.chunk(&self.frame)?, block)?,
            Some(places) => {
                let place = places.get(block).ok_or_else(|| changed(number))?;
                let Some(bytes) = bytes_of(fetched, place) else {
                    let fetched = self.fetch(number, &read, std::iter::once(block))?;
                    bytes_of(&fetched, place).ok_or_else(|| changed(number))?;
                    return self.decode(number, stored, block, &fetched);
                };
                if read.header.is_stored() {
                    bytes.into()
                } else {
                    let (single, index) = read.single(block, bytes);
                    let single = parsed(&self.frame, &single)
                        .and_then(|chunk| decode_block(&mut self.decoder, &chunk, index));
                    match single {
                        Ok(data) => data,
                        // Streams can overlap the next block. The complete chunk has the right offsets in errors, too.
                        Err(_) => {
                            let whole = self.read_whole(number)?;
                            let whole = stored.insert(self.keep(number, whole));
                            decode_block(&mut self.decoder, &whole.chunk(&self.frame)?, block)?
                        }
                    }
                }
            }
        };
        self.blocks.insert((number, block), Arc::clone(&data), data.len() as u64 + 64);
        Ok(data)
    }
}

/// Returns the sizes of the caches of headers, of stored bytes and of blocks.
fn caches(blocks: u64) -> [u64; 3] {
    [blocks / 16, blocks / 4, blocks]
}

fn changed(number: u64) -> Error {
    let detail = format!("read chunk {number}: it was changed since its header was read");
    io::Error::new(ErrorKind::ResourceBusy, detail).into()
}

/// Returns the range of a block in the decoded chunk.
fn range_of(header: &Header, block: usize) -> Range<usize> {
    let (len, nbytes) = (header.block_len() as usize, header.nbytes as usize);
    block.saturating_mul(len).min(nbytes)..(block + 1).saturating_mul(len).min(nbytes)
}

/// Returns the blocks with bytes of a range of the decoded chunk.
fn blocks_of(header: &Header, range: &Range<usize>) -> Range<usize> {
    if header.variable_blocks {
        return WHOLE..WHOLE + 1;
    }
    match (header.block_len() as usize, range.is_empty()) {
        (0, _) | (_, true) => 0..0,
        (len, false) => range.start / len..range.end.div_ceil(len),
    }
}

/// Returns the bytes of a block.
fn bytes_of<'a>(fetched: &'a Fetched, place: &Range<u32>) -> Option<&'a [u8]> {
    let (range, bytes) =
        fetched.get(fetched.partition_point(|(range, _)| range.end < place.end))?;
    let from = place.start.checked_sub(range.start)? as usize;
    bytes.get(from..from + place.len())
}

impl Stored {
    /// Returns the chunk, whose bytes are completely in memory.
    fn chunk<R: ReadAt>(&self, frame: &Frame<R>) -> Result<Chunk<'_>, Error> {
        parsed(frame, &self.bytes)
    }

    /// Returns a chunk that contains only one block, and the index of the block in it. `stored` contains the stored bytes
    /// of the block.
    fn single(&self, block: usize, stored: &[u8]) -> (Vec<u8>, usize) {
        let head = self.header.header_len();
        let (len, size) = (self.header.block_len() as usize, range_of(&self.header, block).len());
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
/// contains the header and the table of block starts. Returns `None` if a start is invalid, or a block is longer than
/// any that a library writes.
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
    // The streams of a block are at most as long as its data, and each has a length of four bytes.
    let most = u64::from(len) + 4 * u64::from(header.typesize) + 64;
    let (table, _) = bytes[header.header_len()..].as_chunks();
    let starts: Vec<u32> = table.iter().map(|&start| u32::from_le_bytes(start)).collect();
    let mut sorted: Vec<u32> = starts.iter().copied().chain([end]).collect();
    sorted.sort_unstable();
    let place = |&start: &u32| {
        let next = *sorted.get(sorted.partition_point(|&each| each <= start))?;
        let is_valid = start as usize >= bytes.len() && next <= end;
        (is_valid && u64::from(next - start) <= most).then_some(start..next)
    };
    starts.iter().map(place).collect()
}

/// Calls `each` with ranges of a special chunk.
fn fill_ranges(stored: &Stored, ranges: &[Range<usize>], mut each: impl FnMut(usize, &[u8])) {
    let value = chunk::repeated(&stored.header, &stored.bytes);
    let mut data = Vec::new();
    for (at, range) in ranges.iter().enumerate() {
        data.clear();
        match value {
            [byte] => data.resize(range.len(), *byte),
            _ => {
                let bytes = value.iter().cycle().skip(range.start % value.len());
                data.extend(bytes.take(range.len()));
            }
        }
        each(at, &data);
    }
}

#[cfg(test)]
#[path = "blocks_tests.rs"]
mod tests;
