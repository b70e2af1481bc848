//! Reading of regions: each chunk is fetched once, and each needed block is decompressed once.

use std::ops::Range;

use blosc2_format::b2nd::Geometry;
use blosc2_format::chunk::Special;

use parking_lot::Mutex;

use super::cache::{Blocks, Cache};
use super::places::Sink;
use super::plan::ChunkPlan;
use super::selection::AxisVec;
use super::{Pooled, parallel};
use crate::chunk::decoder::{Decoder, nan};
use crate::schunk::{Fetched, Reading, Wanted};
use crate::support::memory::{Target, resize};
use crate::{ChunkRef, DParams, Doing, Error, ErrorKind, Result, SChunk, Threads};

pub(crate) const READ: &str = "read from an array";

/// Blocks of fewer bytes are decompressed together, in one call of C.
const SINGLE_BLOCK: usize = 8 << 10;
/// The minimum number of decompressed bytes for each thread. With less work, fewer threads are used.
pub(super) const WORTHWHILE: usize = 256 << 10;
/// If there are fewer chunks for each thread, several threads read parts of the same chunk.
const CHUNKS_PER_THREAD: usize = 4;

/// The memory and decoder of one thread.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) chunk: Vec<u8>,
    pub(super) block: Vec<u8>,
}

/// The maximum size in bytes of a buffer that is reused for later reads. Larger buffers are freed. Most chunks are
/// smaller.
const KEPT: usize = 64 << 20;

impl Scratch {
    pub(super) fn trim(&mut self) {
        for memory in [&mut self.chunk, &mut self.block] {
            if memory.capacity() > KEPT {
                *memory = Vec::new();
            }
        }
    }
}

/// The size of the plan of a block in bytes. It counts as temporary memory, because a file may have blocks of one item.
const PLANNED: u64 = 64;

#[derive(Debug)]
pub(super) struct Readers {
    pub(super) cache: Option<Cache>,
    scratches: Mutex<Vec<Scratch>>,
}

impl Readers {
    pub(super) fn new(params: &DParams) -> Self {
        let mut readers = Self { cache: None, scratches: Mutex::default() };
        readers.set_params(params);
        readers
    }

    pub(super) fn set_params(&mut self, params: &DParams) {
        self.cache = (params.cache > 0).then(|| Cache::new(params.cache));
    }

    pub(super) fn clear_cache(&mut self) {
        if let Some(cache) = &mut self.cache {
            cache.clear();
        }
    }

    pub(super) fn gather(
        &self,
        (schunk, reading, fetched): (&SChunk, &Reading<'_>, &Fetched),
        sink: Sink<'_, '_>,
        threads: Threads,
    ) -> Result<()> {
        let plan = sink.plan();
        let geometry = plan.geometry();
        let nchunks = plan.nchunks();
        schunk.allow_scratch(plan.most_blocks().saturating_mul(PLANNED)).doing(READ)?;
        let mut threads = threads.available();
        if threads > 1 && nchunks < CHUNKS_PER_THREAD {
            let blocks = plan.nblocks() as usize;
            let worthwhile = blocks.saturating_mul(geometry.block_len()) / WORTHWHILE;
            threads = threads.min(blocks).min(worthwhile);
        }
        let cache = self.cache.as_ref().map(|cache| cache.of(reading.version()));
        let scratch = || {
            let value = Some(self.scratches.lock().pop().unwrap_or_default());
            Ok(Pooled { pool: &self.scratches, trim: Scratch::trim, value })
        };
        let gather = |numbers: Range<usize>, fetched: &Fetched| {
            // The parts are small, so that at the end no thread waits long for another thread.
            let parts = match threads {
                0 | 1 => 1,
                _ => (CHUNKS_PER_THREAD * threads).div_ceil(numbers.len().max(1)),
            };
            let gathering = Gathering { schunk, reading, fetched, geometry, sink: &sink, cache };
            parallel::each(threads, numbers.len() * parts, scratch, |scratch, number| {
                let chunk = plan.chunk(numbers.start + number / parts);
                let (part, nblocks) = (number % parts, chunk.nblocks());
                let blocks = nblocks * part / parts..nblocks * (part + 1) / parts;
                // SAFETY: each block of each chunk of the plan is in one part, which one thread reads. Different items
                // have different places, because the sink belongs to this read.
                unsafe { gathering.chunk(&chunk, blocks, scratch.get()) }
            })
        };
        if !fetched.is_empty() {
            return gather(0..nchunks, fetched);
        }
        let needed = |number| self.wanted(reading, &plan.chunk(number));
        schunk.fetch_ahead(reading, nchunks, needed, gather)
    }

    /// Returns the blocks of a chunk that its plan needs; `None` if all of them are in the cache.
    pub(super) fn wanted(&self, reading: &Reading<'_>, plan: &ChunkPlan<'_>) -> Option<Wanted> {
        let cache = self.cache.as_ref().map(|cache| cache.of(reading.version()));
        if cache
            .is_some_and(|cache| plan.blocks().all(|block| cache.has(plan.number, block.number)))
        {
            return None;
        }
        // Blocks in the cache are included, because they may be dropped before they are read.
        let mut ranges: AxisVec<Range<usize>> = AxisVec::new();
        let len = plan.geometry.block_len();
        plan.blocks().for_each(|block| add_block(&mut ranges, block.number, len));
        Some(Wanted { index: plan.number, ranges: Some(ranges.into_vec()) })
    }
}

/// Adds a block of `len` bytes to ranges of a chunk. Blocks are added in ascending order.
fn add_block(ranges: &mut AxisVec<Range<usize>>, number: usize, len: usize) {
    let start = number * len;
    match ranges.last_mut().filter(|range| range.end == start) {
        Some(range) => range.end += len,
        None => ranges.push(start..start + len),
    }
}

struct Gathering<'a> {
    schunk: &'a SChunk,
    reading: &'a Reading<'a>,
    /// Parts of chunks that were read before; they include the blocks of the plan in these chunks.
    fetched: &'a Fetched,
    geometry: &'a Geometry,
    sink: &'a Sink<'a, 'a>,
    cache: Option<Blocks<'a>>,
}

impl Gathering<'_> {
    /// Reads some of the blocks of a chunk.
    ///
    /// # Safety
    /// No other thread accesses the places of the items of these blocks.
    unsafe fn chunk(
        &self,
        plan: &ChunkPlan<'_>,
        blocks: Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut needed: AxisVec<usize> = AxisVec::new();
        let mut ranges: AxisVec<Range<usize>> = AxisVec::new();
        for index in blocks {
            let block = plan.block(index);
            // SAFETY: the guarantee of the caller of this function.
            let put = |bytes: &[u8]| unsafe { self.sink.block(&block) }.put(bytes);
            let kept = |cache: &Blocks<'_>| cache.with(plan.number, block.number, put);
            if self.cache.as_ref().is_some_and(kept) {
                continue;
            }
            needed.push(index);
            add_block(&mut ranges, block.number, self.geometry.block_len());
        }
        if needed.is_empty() {
            return Ok(());
        }
        let Self { schunk, reading, fetched, .. } = self;
        let ranges = Some(&ranges[..]);
        schunk.with_chunk_or_fetched(reading, plan.number, ranges, fetched, |chunk, decoder| {
            let (expected, found) = (self.geometry.chunk_len(), chunk.nbytes());
            if found != expected {
                let number = plan.number;
                let detail = format!("chunk {number} has {found} bytes, expected {expected}");
                return Err(Error::new(ErrorKind::InvalidData, READ, detail));
            }
            // SAFETY: the guarantee of the caller of this function.
            unsafe { self.decode(plan, chunk, decoder, &needed, scratch) }
        })
    }

    /// Decompresses blocks of a chunk, and copies their items to their places.
    ///
    /// # Safety
    /// The same conditions as for [`chunk`](Self::chunk).
    unsafe fn decode(
        &self,
        plan: &ChunkPlan<'_>,
        chunk: &ChunkRef<'_>,
        decoder: &mut Decoder,
        needed: &[usize],
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (sink, len) = (self.sink, self.geometry.block_len());
        let blocks = || needed.iter().map(|&index| plan.block(index));
        if let Some(item) = repeated_item(chunk, self.geometry.typesize(), decoder) {
            if !sink.zeros || item.iter().any(|&byte| byte != 0) {
                // SAFETY: the guarantee of the caller of this function.
                blocks().for_each(|block| unsafe { sink.block(&block) }.fill(&item));
            }
            return Ok(());
        }
        if self.cache.is_none()
            && needed.len() == plan.nblocks()
            // SAFETY: the guarantee of the caller of this function: all blocks of the chunk are needed.
            && let Some(target) = unsafe { sink.chunk(plan) }
        {
            return decoder.decompress(chunk, target).map(|_| ());
        }
        // Chunks that other programs wrote may have blocks of another size.
        let header = chunk.header();
        let same = !header.variable_blocks && header.block_len() as usize == len;
        // For each call, C prepares the reference of the delta filter and the dictionary again.
        let prepared = chunk.uses_delta() || header.dictionary;
        // A chunk of any size can be read block by block.
        let too_large = || self.schunk.allow_scratch(chunk.nbytes() as u64).doing(READ).is_err();
        let alone = needed.len() == 1 || len >= SINGLE_BLOCK && !prepared || too_large();
        // Codecs for arrays may take parts of blocks for cells.
        if same && alone && !chunk.needs_shape() {
            for block in blocks() {
                let start = block.number * len;
                // SAFETY: the guarantee of the caller of this function.
                let mut place = unsafe { sink.block(&block) };
                if let (Some(target), None) = (place.target(), &self.cache) {
                    decoder.range(chunk, start, target)?;
                    continue;
                }
                resize(&mut scratch.block, len).doing(READ)?;
                if self.cache.is_none() {
                    let pieces = |visit: &mut dyn FnMut(Range<usize>)| place.each_range(visit);
                    decoder.pieces(chunk, start, pieces, &mut scratch.block)?;
                } else {
                    decoder.range(chunk, start, Target::of(&mut scratch.block))?;
                }
                place.put(&scratch.block);
                self.keep(plan.number, block.number, &scratch.block);
            }
            return Ok(());
        }
        self.schunk.allow_scratch(chunk.nbytes() as u64).doing(READ)?;
        resize(&mut scratch.chunk, chunk.nbytes()).doing(READ)?;
        if header.variable_blocks {
            decoder.decompress(chunk, Target::of(&mut scratch.chunk))?;
        } else {
            // The storage may have returned only the needed blocks of the chunk. `own` is the block size of the chunk,
            // `len` that of the array.
            let own = header.block_len() as usize;
            let mut wanted = vec![false; chunk.nblocks()];
            for block in blocks() {
                let start = block.number * len;
                wanted[start / own..(start + len).div_ceil(own)].fill(true);
            }
            decoder.decompress_masked(chunk, &wanted, &mut scratch.chunk)?;
        }
        for block in blocks() {
            let bytes = &scratch.chunk[block.number * len..][..len];
            // SAFETY: the guarantee of the caller of this function.
            unsafe { sink.block(&block) }.put(bytes);
            self.keep(plan.number, block.number, bytes);
        }
        Ok(())
    }

    fn keep(&self, chunk: usize, block: usize, bytes: &[u8]) {
        if let Some(cache) = &self.cache {
            cache.keep(chunk, block, bytes);
        }
    }
}

/// Returns the item that all items of a chunk repeat, if the chunk stores only this item.
pub(super) fn repeated_item(
    chunk: &ChunkRef<'_>,
    typesize: usize,
    decoder: &Decoder,
) -> Option<Vec<u8>> {
    if decoder.has_postfilter() {
        return None;
    }
    let header = chunk.header();
    match header.special? {
        Special::Zeros | Special::Uninit => Some(vec![0; typesize]),
        Special::Value => {
            let value = chunk.body();
            (value.len() == typesize).then(|| value.to_vec())
        }
        Special::Nan => {
            let item = nan(header).ok().filter(|item| item.len() == typesize);
            item.map(<[u8]>::to_vec)
        }
    }
}
