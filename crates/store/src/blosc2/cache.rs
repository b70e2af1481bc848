//! Reading blocks of chunks: the stored bytes of one chunk and the blocks that were decoded last stay in memory.

use std::collections::VecDeque;
use std::ops::Range;
use std::slice;

use blosc2_format::chunk::{self, Chunk, Decoder, Header, PartialChunk, PartialDecoder, Special};
use blosc2_format::frame::Frame;
use blosc2_format::{Error, Limits, ReadAt};

use super::source::Source;

/// Shorter chunks are read completely; of longer ones, only the blocks that are needed.
const WHOLE: u32 = 256 << 10;
/// Longer chunks do not stay in memory.
const MAX_CHUNK: usize = 16 << 20;
/// The most bytes and the most blocks that stay in memory. The last block stays even if it has more bytes.
const MAX_BYTES: usize = 4 << 20;
const MAX_BLOCKS: usize = 64;

/// The reader of the chunks of a frame.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) frame: Frame<Source>,
    limits: Limits,
    /// Whether parts of chunks can be read: chunks with checksums are read completely, to compare them.
    in_parts: bool,
    decoder: Decoder,
    partial: PartialDecoder,
    stored: Option<Stored>,
    recent: Recent,
}

/// A chunk in memory.
#[derive(Debug)]
struct Stored {
    number: u64,
    header: Header,
    bytes: Vec<u8>,
    /// Which blocks were read; `None` if all bytes were.
    read: Option<Vec<bool>>,
}

impl Reader {
    pub(super) fn new(frame: Frame<Source>, limits: Limits) -> Self {
        // The header of a chunk states a typesize above 255 as 1.
        let in_parts = frame.require_checksums().is_err() && frame.header().typesize <= 255;
        let (decoder, partial) = Default::default();
        Self { frame, limits, in_parts, decoder, partial, stored: None, recent: Recent::default() }
    }

    /// Calls `each` with ranges of the bytes of a decoded chunk, and their numbers. Decodes each block at most once.
    pub(super) fn ranges(
        &mut self,
        number: u64,
        ranges: &[Range<usize>],
        mut each: impl FnMut(usize, &[u8]),
    ) -> Result<(), Error> {
        self.load(number)?;
        let Some(Stored { header, .. }) = &self.stored else { unreachable!("it was loaded") };
        let (nbytes, len) = (header.nbytes as usize, header.block_len() as usize);
        if let Some(range) =
            ranges.iter().find(|range| range.start > range.end || range.end > nbytes)
        {
            let what = format!("bytes {range:?} of chunk {number}, which has {nbytes} bytes");
            return Err(Error::Argument(what));
        }
        if let Some(special) = header.special {
            self.special(special, ranges, each);
            return Ok(());
        }
        if header.variable_blocks {
            let data = self.whole(number)?;
            ranges.iter().enumerate().for_each(|(at, range)| each(at, &data[range.clone()]));
            return Ok(());
        }
        let blocks = |range: &Range<usize>| match range.is_empty() || len == 0 {
            true => 0..0,
            false => range.start / len..range.end.div_ceil(len),
        };
        let wanted = || ranges.iter().flat_map(blocks);
        // Decoding a block can drop another one.
        if !wanted().all(|block| self.recent.has(number, block)) {
            self.fetch(number, wanted().collect())?;
        }
        let Self { stored: Some(stored), limits, decoder, partial, recent, .. } = self else {
            unreachable!("it was loaded")
        };
        let mut decoding =
            Decoding::new(stored, limits, self.frame.header().typesize, decoder, partial);
        let mut joined = Vec::new();
        for (at, range) in ranges.iter().enumerate() {
            let blocks = blocks(range);
            if blocks.len() == 1 {
                let start = blocks.start * len;
                let data = recent
                    .block(number, blocks.start, |data| decoding.block(blocks.start, data))?;
                each(at, &data[range.start - start..range.end - start]);
                continue;
            }
            joined.clear();
            for block in blocks {
                let data = recent.block(number, block, |data| decoding.block(block, data))?;
                let start = block * len;
                joined.extend_from_slice(
                    &data
                        [range.start.max(start) - start..range.end.min(start + data.len()) - start],
                );
            }
            each(at, &joined);
        }
        self.forget_long();
        Ok(())
    }

    /// Returns the bytes of a chunk, decoded.
    pub(super) fn whole(&mut self, number: u64) -> Result<Vec<u8>, Error> {
        let mut data = Vec::new();
        self.frame.decode_chunk(number, &mut data)?;
        Ok(data)
    }

    /// Returns the blocks of a chunk, which can have different lengths: the ends of the blocks, and their bytes.
    pub(super) fn blocks(&mut self, number: u64) -> Result<(Vec<usize>, Vec<u8>), Error> {
        let data = self.whole(number)?;
        let bytes = self.frame.chunk(number)?;
        let chunk = Chunk::new(&bytes, &self.limits)?;
        let ends = (0..chunk.nblocks()).scan(0, |end, block| {
            *end += chunk.block_size(block);
            Some(*end)
        });
        Ok((ends.collect(), data))
    }

    /// Returns a block of a chunk; `Err` with the number of blocks if there is no such block.
    pub(super) fn block(
        &mut self,
        number: u64,
        block: usize,
    ) -> Result<Result<Vec<u8>, usize>, Error> {
        self.load(number)?;
        let is_whole = self.stored.as_ref().is_some_and(|stored| stored.read.is_none());
        if !is_whole {
            let Some(Stored { header, .. }) = &self.stored else { unreachable!("it was loaded") };
            let count = header.nblocks() as usize;
            if block >= count {
                return Ok(Err(count));
            }
            let start = block * header.block_len() as usize;
            let end = (header.nbytes as usize).min(start + header.block_len() as usize);
            let mut found = Vec::new();
            let range = start..end;
            self.ranges(number, slice::from_ref(&range), |_, data| found.extend_from_slice(data))?;
            return Ok(Ok(found));
        }
        let Some(Stored { bytes, .. }) = &self.stored else { unreachable!("it was loaded") };
        let typesize = self.frame.header().typesize as usize;
        let chunk = Chunk::new(bytes, &self.limits)?.with_typesize(typesize);
        if block >= chunk.nblocks() {
            return Ok(Err(chunk.nblocks()));
        }
        let mut data = vec![0; chunk.block_size(block)];
        self.decoder.decode_block(&chunk, block, &mut data)?;
        self.forget_long();
        Ok(Ok(data))
    }

    /// Reads a chunk, or its header and the table of its blocks.
    fn load(&mut self, number: u64) -> Result<(), Error> {
        if self.stored.as_ref().is_some_and(|stored| stored.number == number) {
            return Ok(());
        }
        let mut bytes = self.stored.take().map(|stored| stored.bytes).unwrap_or_default();
        if self.in_parts {
            let limit = self.limits.memory;
            let part = self.frame.with_chunk(number, |source, header, at| {
                let special = header.special.is_some();
                if header.cbytes <= WHOLE || special || u64::from(header.cbytes) > limit {
                    return Ok(None);
                }
                let count = header.nblocks() as usize;
                let table = if header.is_stored() { 0 } else { 4 * count };
                let end = header.header_len() + table;
                if header.variable_blocks || end > header.cbytes as usize {
                    return Ok(None);
                }
                bytes.clear();
                bytes.resize(header.cbytes as usize, 0);
                source.read_exact_at(at, &mut bytes[..end])?;
                let has_parts = header.is_stored() || PartialChunk::new(&header, &bytes).is_some();
                Ok(has_parts.then(|| (header, vec![false; count])))
            })?;
            if let Some((header, read)) = part.flatten() {
                self.stored = Some(Stored { number, header, bytes, read: Some(read) });
                return Ok(());
            }
        }
        self.frame.chunk_into(number, &mut bytes)?;
        let header = Header::parse(&bytes)?;
        self.stored = Some(Stored { number, header, bytes, read: None });
        Ok(())
    }

    /// Reads the bytes of blocks that were not read yet.
    fn fetch(&mut self, number: u64, mut blocks: Vec<usize>) -> Result<(), Error> {
        let Some(Stored { header, bytes, read: Some(read), .. }) = &mut self.stored else {
            return Ok(());
        };
        blocks.retain(|&block| !std::mem::replace(&mut read[block], true));
        if blocks.is_empty() {
            return Ok(());
        }
        let mut places = places(header, bytes, &blocks);
        places.sort_unstable_by_key(|place| place.start);
        let outcome = self.frame.with_chunk(number, |source, _, at| {
            let gap = usize::try_from(source.request_cost()).unwrap_or(usize::MAX);
            let mut ranges: Vec<Range<usize>> = Vec::new();
            for place in places {
                match ranges.last_mut() {
                    Some(last) if place.start <= last.end.saturating_add(gap) => {
                        last.end = last.end.max(place.end);
                    }
                    _ => ranges.push(place),
                }
            }
            let (mut rest, mut done, mut wanted) = (&mut bytes[..], 0, Vec::new());
            for range in ranges {
                let (_, after) = rest.split_at_mut(range.start - done);
                let (part, after) = after.split_at_mut(range.len());
                wanted.push((at + range.start as u64, part));
                (rest, done) = (after, range.end);
            }
            Ok(source.read_ranges_at(&mut wanted)?)
        });
        if outcome.is_err() {
            self.stored = None;
        }
        outcome.map(drop)
    }

    /// Calls `each` with ranges of a chunk of one repeated value.
    fn special(
        &self,
        special: Special,
        ranges: &[Range<usize>],
        mut each: impl FnMut(usize, &[u8]),
    ) {
        let Some(Stored { header, bytes, .. }) = &self.stored else {
            unreachable!("it was loaded")
        };
        let value: &[u8] = match special {
            Special::Zeros | Special::Uninit => &[0],
            Special::Nan if header.typesize == 4 => &f32::NAN.to_le_bytes(),
            Special::Nan => &f64::NAN.to_le_bytes(),
            Special::Value => bytes.get(chunk::EXTENDED_HEADER_LEN..).unwrap_or(&[]),
        };
        let value = if value.is_empty() { &[0] } else { value };
        let mut data = Vec::new();
        for (at, range) in ranges.iter().enumerate() {
            data.clear();
            data.extend(value.iter().cycle().skip(range.start % value.len()).take(range.len()));
            each(at, &data);
        }
    }

    fn forget_long(&mut self) {
        self.stored.take_if(|stored| stored.bytes.len() > MAX_CHUNK);
    }
}

/// The ranges of the stored bytes of blocks. Invalid block starts have no bytes here; decoding reports them.
fn places(header: &Header, bytes: &[u8], blocks: &[usize]) -> Vec<Range<usize>> {
    let (head, end) = (header.header_len(), bytes.len());
    if header.is_stored() {
        let len = header.block_len() as usize;
        let place =
            |&block: &usize| (head + block * len).min(end)..(head + (block + 1) * len).min(end);
        return blocks.iter().map(place).collect();
    }
    let table = &bytes[head..head + 4 * header.nblocks() as usize];
    let starts: Vec<usize> = table
        .as_chunks()
        .0
        .iter()
        .map(|&start| {
            usize::try_from(i32::from_le_bytes(start)).map_or(end, |start| start.min(end))
        })
        .collect();
    let mut sorted = starts.clone();
    sorted.sort_unstable();
    let place = |&block: &usize| {
        let start = starts[block];
        start..sorted.get(sorted.partition_point(|&each| each <= start)).copied().unwrap_or(end)
    };
    blocks.iter().map(place).collect()
}

/// The decoding of blocks of one chunk.
struct Decoding<'a> {
    stored: &'a Stored,
    limits: &'a Limits,
    typesize: usize,
    /// Parsed when it is needed.
    chunk: Option<Chunk<'a>>,
    part: Option<PartialChunk<'a>>,
    decoder: &'a mut Decoder,
    partial: &'a mut PartialDecoder,
}

impl<'a> Decoding<'a> {
    fn new(
        stored: &'a Stored,
        limits: &'a Limits,
        typesize: u32,
        decoder: &'a mut Decoder,
        partial: &'a mut PartialDecoder,
    ) -> Self {
        let typesize = typesize as usize;
        Self { stored, limits, typesize, chunk: None, part: None, decoder, partial }
    }

    fn block(&mut self, block: usize, data: &mut Vec<u8>) -> Result<(), Error> {
        let Stored { header, bytes, read, .. } = self.stored;
        let len = header.block_len() as usize;
        data.resize((header.nbytes as usize - block * len).min(len), 0);
        if read.is_some() && !header.is_stored() {
            if self.part.is_none() {
                self.part = PartialChunk::new(header, bytes);
            }
            let Some(part) = &self.part else { unreachable!("it was parsed when it was loaded") };
            self.partial.decode(part, block, 0..data.len())?.copy(0, data);
            return Ok(());
        }
        let chunk = match &self.chunk {
            Some(chunk) => chunk,
            None => self.chunk.insert(Chunk::new(bytes, self.limits)?.with_typesize(self.typesize)),
        };
        self.decoder.decode_block(chunk, block, data)
    }
}

/// The blocks that were decoded last, the newest first.
#[derive(Debug, Default)]
struct Recent {
    blocks: VecDeque<(u64, usize, Vec<u8>)>,
    nbytes: usize,
}

impl Recent {
    fn at(&self, number: u64, block: usize) -> Option<usize> {
        self.blocks.iter().position(|each| (each.0, each.1) == (number, block))
    }

    fn has(&self, number: u64, block: usize) -> bool {
        self.at(number, block).is_some()
    }

    /// Returns a block, which `decode` decodes if it is not in memory.
    fn block(
        &mut self,
        number: u64,
        block: usize,
        decode: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>,
    ) -> Result<&[u8], Error> {
        let found = match self.at(number, block).and_then(|at| self.blocks.remove(at)) {
            Some(found) => found,
            None => {
                let mut data = Vec::new();
                decode(&mut data)?;
                self.nbytes += data.len();
                (number, block, data)
            }
        };
        self.blocks.push_front(found);
        while self.blocks.len() > 1 && (self.nbytes > MAX_BYTES || self.blocks.len() > MAX_BLOCKS) {
            self.nbytes -= self.blocks.pop_back().map_or(0, |each| each.2.len());
        }
        Ok(&self.blocks[0].2)
    }
}
