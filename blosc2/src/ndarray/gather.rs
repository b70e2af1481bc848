//! Reading of regions: each chunk is fetched once, and each needed block is decompressed once.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;

use blosc2_format::b2nd::Geometry;
use blosc2_format::chunk::Special;

use parking_lot::Mutex;

use super::cache::{Blocks, Cache};
use super::places::{ItemPart, Places};
use super::plan::{BlockPlan, ChunkPlan, Plan};
use super::selection::Few;
use super::{Pooled, Reused, parallel};
use crate::closures;
use crate::decoder::{Decoder, nan};
use crate::memory::{Target, resize};
use crate::schunk::{Fetched, Reading, Wanted};
use crate::{ChunkRef, Error, ErrorKind, Result, SChunk, Threads};

pub(super) const READ: &str = "read from an array";

/// Blocks of fewer bytes are decompressed together, in one call of C.
const SINGLE_BLOCK: usize = 8 << 10;
/// The minimum number of decompressed bytes for each thread. With less work, fewer threads are used.
pub(super) const WORTHWHILE: usize = 256 << 10;
/// If there are fewer chunks for each thread, several threads read parts of the same chunk.
const CHUNKS_PER_THREAD: usize = 4;

/// Memory to which a read writes items. Each item has its own place, and several threads write at the same time.
///
/// A sink cannot be copied, so that only one read at a time uses it.
#[derive(Debug)]
pub(super) struct Sink<'a> {
    /// The place of the first item. All of `places` are writable bytes that nothing else uses during `'a`.
    start: *mut u8,
    pub(super) places: &'a Places,
    /// Whether all bytes of the memory are zero.
    zeros: bool,
    memory: PhantomData<&'a mut [u8]>,
}

// SAFETY: a sink is a mutable borrow of bytes, which can be sent to other threads. All access is by `unsafe` methods,
// whose callers guarantee that threads write to different places.
unsafe impl Send for Sink<'_> {}
// SAFETY: the same reason as for `Send`.
unsafe impl Sync for Sink<'_> {}

impl<'a> Sink<'a> {
    /// Creates a sink that stores items at `places` of `memory`. Panics if `memory` does not contain all places, or if
    /// places may overlap.
    pub(super) fn new(memory: &'a mut [u8], places: &'a Places, zeros: bool) -> Self {
        assert!(places.distinct, "{places:?} may overlap");
        let first = places.first_in(memory.len());
        let start = memory.as_mut_ptr().wrapping_add(first);
        Self { start, places, zeros, memory: PhantomData }
    }

    /// Creates a sink whose first item is at `start`, for arrays of the crate `ndarray`.
    ///
    /// # Safety
    /// During `'a`, the memory at these places is writable, and nothing else uses it. The places do not overlap.
    #[cfg(feature = "ndarray")]
    pub(super) unsafe fn strided(start: *mut u8, places: &'a Places) -> Self {
        Self { start, places, zeros: false, memory: PhantomData }
    }

    /// Copies bytes to a place.
    ///
    /// # Safety
    /// The bytes are inside the places of items that no other thread accesses.
    #[inline]
    unsafe fn write(&self, at: isize, bytes: &[u8]) {
        self.places.debug_check(at, bytes.len());
        // SAFETY: guaranteed by the caller, and by the field `start`. `bytes` does not overlap the place, because this
        // memory is borrowed by the sink only.
        unsafe {
            let to = self.start.offset(at);
            match bytes.len() {
                // Single items, without a call.
                1 => to.write(bytes[0]),
                2 => to.cast::<[u8; 2]>().write_unaligned([bytes[0], bytes[1]]),
                4 => to.cast::<[u8; 4]>().write_unaligned(*bytes.as_ptr().cast()),
                8 => to.cast::<[u8; 8]>().write_unaligned(*bytes.as_ptr().cast()),
                len => to.copy_from_nonoverlapping(bytes.as_ptr(), len),
            }
        }
    }

    /// Returns the place for `len` bytes.
    ///
    /// # Safety
    /// The `len` bytes are inside contiguous places of items. Nothing else accesses these places while the target
    /// exists.
    unsafe fn target(&self, at: isize, len: usize) -> Target<'a> {
        self.places.debug_check(at, len);
        // SAFETY: guaranteed by the caller, and by the field `start`; `MaybeUninit` bytes can have any value.
        Target::new(unsafe { std::slice::from_raw_parts_mut(self.start.offset(at).cast(), len) })
    }

    /// Copies the items of a block to their places.
    ///
    /// # Safety
    /// The block belongs to a plan for the places of the sink. No other thread accesses the places of the items of this
    /// block.
    unsafe fn put(&self, block: &BlockPlan<'_>, bytes: &[u8]) {
        let ItemPart { offset, len: part, typesize } = self.places.part;
        if self.places.part.is_whole() {
            return block.each_piece(|from, to, len| {
                // SAFETY: the caller's guarantee; the pieces of a block are places of its items.
                unsafe { self.write(to, &bytes[from..from + len]) }
            });
        }
        block.each_piece(|from, to, len| {
            // Consecutive items of a piece have the same distance in memory as in the block.
            for at in (0..len).step_by(typesize) {
                let item = from + at + offset;
                // SAFETY: the same reason; `to + at` is the place of an item, which has the size of the part.
                unsafe { self.write(to + at as isize, &bytes[item..item + part]) }
            }
        });
    }

    /// Copies one item to all places of a block.
    ///
    /// # Safety
    /// The same conditions as for [`put`](Self::put).
    unsafe fn fill(&self, block: &BlockPlan<'_>, item: &[u8]) {
        let ItemPart { offset, len: part, typesize } = self.places.part;
        if self.places.part.is_whole() {
            return block.each_piece(|_, to, len| {
                // SAFETY: as in `put`.
                unsafe { self.target(to, len) }.repeat(item, 0);
            });
        }
        block.each_piece(|_, to, len| {
            for at in (0..len).step_by(typesize) {
                // SAFETY: as in `put`.
                unsafe { self.write(to + at as isize, &item[offset..offset + part]) }
            }
        });
    }
}

/// The memory and decoder of one thread.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) chunk: Vec<u8>,
    pub(super) block: Vec<u8>,
}

/// The maximum size in bytes of a buffer that is reused for later reads. Larger buffers are freed. Most chunks are
/// smaller.
const KEPT: usize = 64 << 20;

impl Reused for Scratch {
    fn trim(&mut self) {
        for memory in [&mut self.chunk, &mut self.block] {
            if memory.capacity() > KEPT {
                *memory = Vec::new();
            }
        }
    }
}

/// The size of the plan of a block in bytes. It counts as temporary memory, because a file may have blocks of one item.
const PLANNED: u64 = 64;

/// The state and settings of reads of an array.
#[derive(Debug)]
pub(super) struct Readers {
    pub(super) threads: Threads,
    pub(super) cache: Option<Cache>,
    scratches: Mutex<Vec<Scratch>>,
}

impl Readers {
    pub(super) fn new(threads: Threads) -> Self {
        Self { threads, cache: None, scratches: Mutex::default() }
    }

    /// Reads the items of a plan. The plan and the sink must have the same places.
    pub(super) fn gather(
        &self,
        (schunk, reading, fetched): (&SChunk, &Reading<'_>, &Fetched),
        plan: &Plan<'_>,
        sink: Sink<'_>,
        threads: Threads,
    ) -> Result<()> {
        assert!(ptr::eq(plan.places, sink.places), "the plan is for other places");
        let geometry = plan.geometry();
        let nchunks = plan.nchunks();
        schunk.allow_scratch(READ, plan.most_blocks().saturating_mul(PLANNED))?;
        let mut threads: usize = closures::threads(threads.for_any()).unsigned_abs().into();
        if threads > 1 && nchunks < CHUNKS_PER_THREAD {
            let blocks: usize = plan.all_chunks().map(|chunk| chunk.nblocks()).sum();
            let worthwhile = blocks.saturating_mul(geometry.block_len()) / WORTHWHILE;
            threads = threads.min(blocks).min(worthwhile);
        }
        let cache = self.cache.as_ref().map(|cache| cache.of(reading.version()));
        let scratch = || {
            let scratch = self.scratches.lock().pop().unwrap_or_default();
            Ok(Pooled::new(&self.scratches, scratch))
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
                // SAFETY: the plan is for the places of the sink. Each block of each chunk of the plan is in one part,
                // which one thread reads; the places of different blocks do not overlap, because the places of the sink
                // do not overlap.
                unsafe { gathering.chunk(&chunk, blocks, scratch) }
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
        let mut ranges: Few<Range<usize>> = Few::new();
        plan.blocks().for_each(|block| add_block(&mut ranges, &block));
        Some(Wanted { index: plan.number, ranges: Some(ranges.into_vec()) })
    }
}

/// Adds a block to ranges of a chunk. Blocks are added in ascending order.
fn add_block(ranges: &mut Few<Range<usize>>, block: &BlockPlan<'_>) {
    let start = block.number * block.len;
    match ranges.last_mut().filter(|range| range.end == start) {
        Some(range) => range.end += block.len,
        None => ranges.push(start..start + block.len),
    }
}

/// A read.
struct Gathering<'a> {
    schunk: &'a SChunk,
    reading: &'a Reading<'a>,
    /// Parts of chunks that were read before; they include the blocks of the plan in these chunks.
    fetched: &'a Fetched,
    geometry: &'a Geometry,
    sink: &'a Sink<'a>,
    cache: Option<Blocks<'a>>,
}

impl Gathering<'_> {
    /// Reads some of the blocks of a chunk.
    ///
    /// # Safety
    /// The chunk belongs to a plan for the places of the sink. No other thread accesses the places of the items of
    /// these blocks.
    unsafe fn chunk(
        &self,
        plan: &ChunkPlan<'_>,
        blocks: Range<usize>,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let mut needed: Few<usize> = Few::new();
        let mut ranges: Few<Range<usize>> = Few::new();
        for index in blocks {
            let block = plan.block(index);
            // SAFETY: the guarantee of the caller of this function.
            let put = |bytes: &[u8]| unsafe { self.sink.put(&block, bytes) };
            let kept = |cache: &Blocks<'_>| cache.with(plan.number, block.number, put);
            if self.cache.as_ref().is_some_and(kept) {
                continue;
            }
            needed.push(index);
            add_block(&mut ranges, &block);
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
                blocks().for_each(|block| unsafe { sink.fill(&block, &item) });
            }
            return Ok(());
        }
        let whole_items = sink.places.part.is_whole();
        if self.cache.is_none()
            && whole_items
            && needed.len() == plan.nblocks()
            && let Some(place) = plan.in_one_piece()
        {
            // SAFETY: the guarantee of the caller of this function; all blocks of the chunk are needed, and they are
            // consecutive in this memory.
            let target = unsafe { sink.target(place, self.geometry.chunk_len()) };
            return decoder.decompress(chunk, target).map(|_| ());
        }
        // Chunks that other programs wrote may have blocks of another size.
        let header = chunk.header();
        let same = !header.variable_blocks && header.block_len() as usize == len;
        // For each call, C prepares the reference of the delta filter and the dictionary again.
        let prepared = chunk.uses_delta() || header.dictionary;
        let alone = needed.len() == 1 || len >= SINGLE_BLOCK && !prepared;
        // Codecs for arrays may take parts of blocks for cells.
        if same && alone && !chunk.needs_shape() {
            for block in blocks() {
                let start = block.number * len;
                if let (Some(place), None, true) = (block.in_one_piece(), &self.cache, whole_items)
                {
                    // SAFETY: the guarantee of the caller of this function; the place of the block is contiguous.
                    decoder.range(chunk, start, unsafe { sink.target(place, len) })?;
                    continue;
                }
                resize(&mut scratch.block, len, READ)?;
                if self.cache.is_none() {
                    let pieces = |each: &mut dyn FnMut(Range<usize>)| {
                        block.each_piece(|from, _, len| each(from..from + len));
                    };
                    decoder.pieces(chunk, start, pieces, &mut scratch.block)?;
                } else {
                    decoder.range(chunk, start, Target::of(&mut scratch.block))?;
                }
                // SAFETY: the guarantee of the caller of this function.
                unsafe { self.put(plan.number, &block, &scratch.block) };
            }
            return Ok(());
        }
        self.schunk.allow_scratch(READ, chunk.nbytes() as u64)?;
        resize(&mut scratch.chunk, chunk.nbytes(), READ)?;
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
            unsafe { self.put(plan.number, &block, bytes) };
        }
        Ok(())
    }

    /// Copies the items of a block to their places, and adds the block to the cache.
    ///
    /// # Safety
    /// The same conditions as for [`chunk`](Self::chunk).
    unsafe fn put(&self, chunk: usize, block: &BlockPlan<'_>, bytes: &[u8]) {
        // SAFETY: the guarantee of the caller of this function.
        unsafe { self.sink.put(block, bytes) };
        if let Some(cache) = &self.cache {
            cache.keep(chunk, block.number, bytes);
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
