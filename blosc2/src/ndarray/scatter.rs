//! Writing regions: each chunk that they touch is compressed once.

use std::ops::Range;
use std::sync::Arc;

use blosc2_format::b2nd::Geometry;
use parking_lot::Mutex;

use super::gather::{ItemPart, Scratch};
use super::plan::{BlockPlan, ChunkPlan, Items, Plan, block_ranges, c_order, chunk_ranges};
use super::region::Region;
use super::{Change, NDArray, Pooled, Reused, parallel};
use crate::closures::{self, ChunkPlace};
use crate::encoder::Encoder;
use crate::gate::Gate;
use crate::memory::{Target, resize};
use crate::{Error, ErrorKind, Result, SChunk, Threads};

pub(super) const WRITE: &str = "write to an array";

/// Memory with the items of a region; threads read it side by side.
#[derive(Debug, Clone, Copy)]
pub(super) struct Source {
    start: *const u8,
    /// The part of each item that there is; `None` for all of it.
    part: Option<ItemPart>,
}

// SAFETY: it is only read; see `Source::new`.
unsafe impl Send for Source {}
// SAFETY: as above.
unsafe impl Sync for Source {}

impl Source {
    /// Memory whose first item is at `start`.
    ///
    /// # Safety
    /// Until the last copy of this is gone, nobody writes to the memory. For every item of the region that it is
    /// used for, at the place that the strides give it from `start`, there are as many initialised bytes as an item
    /// has.
    pub(super) unsafe fn new(start: *const u8) -> Self {
        Self { start, part: None }
    }

    /// The same with a part of each item: at the place of an item are as many bytes as the part has.
    ///
    /// # Safety
    /// As for [`new`](Self::new), with the part in place of the item.
    pub(super) unsafe fn of_part(start: *const u8, part: ItemPart) -> Self {
        Self { start, part: Some(part) }
    }

    /// Bytes at a place.
    ///
    /// # Safety
    /// They are those of items of the region, in one piece, and are not used for longer than the memory may be.
    unsafe fn bytes<'a>(self, at: isize, len: usize) -> &'a [u8] {
        // SAFETY: the caller's promise and that of `new`.
        unsafe { std::slice::from_raw_parts(self.start.offset(at), len) }
    }

    /// Gets what a block is to hold from its places.
    ///
    /// # Safety
    /// The block is one of the plan whose items this is memory of.
    unsafe fn get(self, block: &BlockPlan<'_>, bytes: &mut [u8]) {
        if let Some(ItemPart { offset, len: part, typesize }) = self.part {
            block.each_piece(|to, from, len| {
                // Items are one piece where they are as far from each other in memory as in the block.
                for at in (0..len).step_by(typesize) {
                    // SAFETY: the caller's promise; `from + at` is the place of an item, which has a part.
                    let from = unsafe { self.bytes(from + at as isize, part) };
                    bytes[to + at + offset..][..part].copy_from_slice(from);
                }
            });
            return;
        }
        block.each_piece(|to, from, len| {
            let to = &mut bytes[to..to + len];
            // SAFETY: the caller's promise: the pieces of a block are places of its items.
            let from = unsafe { self.bytes(from, len) };
            match len {
                // Single items, without a call.
                1 => to[0] = from[0],
                4 => to.first_chunk_mut::<4>().zip(from.first_chunk()).into_iter().for_each(set),
                8 => to.first_chunk_mut::<8>().zip(from.first_chunk()).into_iter().for_each(set),
                _ => to.copy_from_slice(from),
            }
        });
    }
}

fn set<const N: usize>((to, from): (&mut [u8; N], &[u8; N])) {
    *to = *from;
}

/// What a thread compresses with.
#[derive(Debug)]
pub(super) struct Writer {
    encoder: Encoder,
    threads: Threads,
    scratch: Scratch,
}

impl Reused for Writer {
    fn trim(&mut self) {
        self.scratch.trim();
    }
}

/// How an array is written.
#[derive(Debug, Default)]
pub(super) struct Writers(Mutex<Vec<Writer>>);

/// The data of a chunk before it is compressed.
pub(super) enum Data<'a> {
    /// In the scratch of the one that compresses it.
    Scratch,
    Elsewhere(&'a [u8]),
    /// The whole chunk, which is stored as it is.
    Compressed(Vec<u8>),
}

impl Writers {
    /// Gives up what is kept for the next write.
    pub(super) fn clear(&mut self) {
        self.0.get_mut().clear();
    }

    /// Sees that so many chunks of an array can be compressed.
    pub(super) fn team<'a>(
        &'a self,
        schunk: &SChunk,
        geometry: &'a Geometry,
        count: usize,
    ) -> Result<Team<'a>> {
        let threads = closures::threads(schunk.encoding_threads().for_any()).unsigned_abs().into();
        // A single chunk gets them all.
        let inner = if count == 1 { Threads::new(threads) } else { Threads::ONE };
        let mut pool = self.0.lock();
        let there = pool.iter().filter(|writer| writer.threads == inner).count();
        for _ in there..threads.min(count).max(1) {
            let encoder = schunk.array_encoder(geometry.block_len(), inner)?;
            pool.push(Writer { encoder, threads: inner, scratch: Scratch::default() });
        }
        let closures = pool.last().is_some_and(|writer| writer.encoder.runs_closures());
        drop(pool);
        let gates = schunk.gate().into_iter().collect();
        Ok(Team { writers: self, geometry, count, threads, inner, closures, gates })
    }
}

/// Compresses chunks of an array.
pub(super) struct Team<'a> {
    writers: &'a Writers,
    pub(super) geometry: &'a Geometry,
    count: usize,
    threads: usize,
    inner: Threads,
    /// Whether compressing calls closures of the user.
    closures: bool,
    /// The files that are read or changed meanwhile.
    gates: Vec<Arc<Gate>>,
}

impl Team<'_> {
    /// Says that files are read meanwhile.
    pub(super) fn beside(mut self, gates: impl Iterator<Item = Arc<Gate>>) -> Self {
        self.gates.extend(gates);
        self
    }

    /// Compresses the chunks, and lets `take` have them in order; `index` says where in the array each one goes.
    pub(super) fn pack<'d>(
        &self,
        index: impl Fn(usize) -> usize + Sync,
        data: impl Fn(&mut Scratch, usize) -> Result<Data<'d>> + Sync,
        take: impl FnMut(Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let writer = || {
            let mut pool = self.writers.0.lock();
            let found = pool.iter().position(|writer| writer.threads == self.inner);
            let found = found.map(|index| pool.swap_remove(index));
            drop(pool);
            let nobody = || Error::new(ErrorKind::Library, WRITE, "all encoders are at work");
            Ok(Pooled::new(&self.writers.0, found.ok_or_else(nobody)?))
        };
        let pack = |writer: &mut Pooled<'_, Writer>, number: usize| {
            let Writer { encoder, scratch, .. } = &mut **writer;
            let bytes = match data(scratch, number)? {
                Data::Scratch => &scratch.chunk[..],
                Data::Elsewhere(bytes) => bytes,
                Data::Compressed(chunk) => return Ok(chunk),
            };
            let mut chunk = Vec::new();
            let gates = self.gates.iter().filter(|_| self.closures);
            let calling: Vec<_> = gates.map(|gate| gate.calling()).collect();
            // Nobody asks for it otherwise.
            let place = match self.closures {
                true => self.place(index(number)),
                false => ChunkPlace::default(),
            };
            encoder.compress_to(bytes, place, &mut chunk)?;
            drop(calling);
            // It was made for the longest chunk that could have come out.
            chunk.shrink_to_fit();
            Ok(chunk)
        };
        parallel::ordered(self.threads, self.count, writer, pack, take)
    }

    fn place(&self, index: usize) -> ChunkPlace<'_> {
        let start = (index as u64).saturating_mul(self.geometry.chunk_len() as u64);
        ChunkPlace { index: Some(index), start: Some(start), array: Some(self.geometry) }
    }

    /// The data of a chunk: what `base` makes of zeros, and over it what is planned. Where that is all of the chunk,
    /// there is no base.
    ///
    /// # Safety
    /// The source is memory for the items of the plan, and outlives what is given.
    pub(super) unsafe fn fill<'d>(
        &self,
        plan: &ChunkPlan<'_>,
        source: Source,
        scratch: &mut Scratch,
        base: impl FnOnce(&mut Scratch) -> Result<()>,
    ) -> Result<Data<'d>> {
        let (len, total) = (self.geometry.block_len(), self.geometry.chunk_len());
        let whole_items = source.part.is_none();
        if let Some(place) = plan.in_one_piece().filter(|_| whole_items) {
            // SAFETY: the blocks are all of the chunk, and lie there one behind the other.
            return Ok(Data::Elsewhere(unsafe { source.bytes(place, total) }));
        }
        scratch.chunk.clear();
        resize(&mut scratch.chunk, total, WRITE)?;
        if !(plan.covers && whole_items) {
            base(scratch)?;
        }
        for block in (0..plan.nblocks()).map(|index| plan.block(index)) {
            // SAFETY: the caller's promise.
            unsafe { source.get(&block, &mut scratch.chunk[block.number * len..][..len]) };
        }
        Ok(Data::Scratch)
    }

    /// The data of a chunk whose items `fill` gives, those of a box of the array in C order, from zeros.
    pub(super) fn boxed<'d>(
        &self,
        scratch: &mut Scratch,
        ranges: &[Range<u64>],
        fill: impl FnOnce(&[Range<u64>], &mut [u8]) -> Result<()>,
    ) -> Result<Data<'d>> {
        scratch.chunk.clear();
        resize(&mut scratch.chunk, self.geometry.chunk_len(), WRITE)?;
        self.put_box(scratch, ranges, fill)?;
        Ok(Data::Scratch)
    }

    /// The data of a chunk whose items `fill` gives block by block, those of a box of the array in C order, from
    /// zeros; on the threads that are left over where there are few chunks.
    pub(super) fn by_blocks<'d>(
        &self,
        scratch: &mut Scratch,
        number: usize,
        fill: impl Fn(&[Range<u64>], &mut [u8]) -> Result<()> + Sync,
    ) -> Result<Data<'d>> {
        let geometry = self.geometry;
        scratch.chunk.clear();
        resize(&mut scratch.chunk, geometry.chunk_len(), WRITE)?;
        let chunk = chunk_ranges(geometry, number);
        let blocks = scratch.chunk.chunks_exact_mut(geometry.block_len()).map(Mutex::new);
        let blocks: Vec<Mutex<&mut [u8]>> = blocks.collect();
        let threads = self.threads / self.count;
        parallel::each(
            threads,
            blocks.len(),
            || Ok(Vec::new()),
            |bytes, number| {
                let ranges = block_ranges(geometry, &chunk, number);
                let mut block = blocks[number].lock();
                if ranges.iter().any(Range::is_empty) {
                    return Ok(());
                }
                let region = Region::of_box(ranges.iter().cloned());
                let extent = region.shape();
                if extent == geometry.blocks() {
                    return fill(&ranges, &mut block);
                }
                // They are in a block, whose bytes were counted.
                let len = extent.iter().product::<u64>() as usize * geometry.typesize();
                bytes.clear();
                resize(bytes, len, WRITE)?;
                fill(&ranges, bytes)?;
                let strides = c_order(&extent, geometry.typesize());
                Plan::new(geometry, &region, &strides).chunk(0).block(0).each_piece(
                    |at, from, len| {
                        // The plan was made for items in C order, whose places are above 0.
                        let from = from.unsigned_abs();
                        block[at..at + len].copy_from_slice(&bytes[from..from + len]);
                    },
                );
                Ok(())
            },
        )?;
        drop(blocks);
        Ok(Data::Scratch)
    }

    /// Puts the items that `fill` gives to their places in the chunk of the scratch.
    pub(super) fn put_box(
        &self,
        scratch: &mut Scratch,
        ranges: &[Range<u64>],
        fill: impl FnOnce(&[Range<u64>], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let region = Region::of_box(ranges.iter().cloned());
        let extent = region.shape();
        // They are in a chunk, whose bytes were counted.
        let len = extent.iter().product::<u64>() as usize * self.geometry.typesize();
        scratch.block.clear();
        resize(&mut scratch.block, len, WRITE)?;
        fill(ranges, &mut scratch.block)?;
        let strides = c_order(&extent, self.geometry.typesize());
        let plan = Plan::new(self.geometry, &region, &strides);
        let plan = plan.chunk(0);
        for block in (0..plan.nblocks()).map(|index| plan.block(index)) {
            let to = &mut scratch.chunk[block.number * block.len..][..block.len];
            block.each_piece(|at, from, len| {
                // The plan was made for items in C order, whose places are above 0.
                let from = from.unsigned_abs();
                to[at..at + len].copy_from_slice(&scratch.block[from..from + len]);
            });
        }
        Ok(())
    }
}

impl NDArray {
    /// Writes items, all of them or none.
    ///
    /// # Safety
    /// The source is memory for the items.
    pub(super) unsafe fn scatter(&mut self, items: Items<'_>, source: Source) -> Result<()> {
        self.changing(WRITE, |change| {
            let Change { schunk, geometry, writers, .. } = change;
            let plan = items.plan(geometry, WRITE)?;
            // One by one, since a plan may take more than its chunk.
            let touched = (0..plan.nchunks()).map(|number| {
                let chunk = plan.chunk(number);
                (chunk.number, chunk.covers && source.part.is_none())
            });
            let touched: Vec<(usize, bool)> = touched.collect();
            if touched.is_empty() {
                return Ok(());
            }
            if !touched.iter().all(|(_, covers)| *covers) {
                schunk.check_unfiltered(WRITE)?;
            }
            let mut chunks = Vec::with_capacity(touched.len());
            {
                let reading = schunk.reading()?;
                let team = writers.team(schunk, geometry, touched.len())?;
                let data = |scratch: &mut Scratch, number: usize| {
                    let plan = &plan.chunk(number);
                    let base = |scratch: &mut Scratch| {
                        let target = Target::of(&mut scratch.chunk);
                        schunk.with_chunk_in(&reading, plan.number, None, |chunk, decoder| {
                            decoder.decompress(chunk, target)
                        })
                    };
                    // SAFETY: the caller's promise; all is packed before this returns.
                    unsafe { team.fill(plan, source, scratch, base) }
                };
                let index = |number: usize| touched[number].0;
                team.pack(index, data, |chunk| {
                    chunks.push(chunk);
                    Ok(())
                })?;
            }
            let numbered = touched.iter().zip(&chunks);
            let numbered: Vec<_> =
                numbered.map(|((number, _), chunk)| (*number, &chunk[..])).collect();
            schunk.put(&numbered)
        })
    }
}
