//! Writing of regions: each chunk with written items is compressed once.

use std::ops::Range;
use std::sync::Arc;

use blosc2_format::b2nd::Geometry;
use parking_lot::Mutex;

use super::boxes::BoxReader;
use super::gather::{Scratch, WORTHWHILE};
use super::places::{ItemPart, Source};
use super::plan::{ChunkPlan, Items, Plan};
use super::ranges::{extent, part_of};
use super::region::Region;
use super::{Change, NDArray, Pooled, parallel};
use crate::chunk::encoder::Encoder;
use crate::closures::ChunkPlace;
use crate::gate::Gate;
use crate::schunk::Reading;
use crate::support::memory::{Target, resize};
use crate::{Doing, Error, ErrorKind, Result, SChunk, Threads};

pub(super) const WRITE: &str = "write to an array";

#[derive(Debug)]
pub(super) struct ChunkWriter {
    encoder: Encoder,
    threads: Threads,
    scratch: Scratch,
}

/// The writers of an array. They are reused for the next write.
#[derive(Debug, Default)]
pub(super) struct ChunkWriters(Mutex<Vec<ChunkWriter>>);

/// Writes the items in these ranges of an array, in C order.
///
/// The functions that create arrays take closures as trait objects, so that these functions are compiled only once. A
/// closure is called once for a chunk or a block, so that the cost of the call does not matter.
type FillBox<'a> = dyn Fn(&[Range<u64>], &mut [u8]) -> Result<()> + Sync + 'a;

/// The data of a chunk before it is compressed.
pub(crate) enum Data<'a> {
    /// The data is in the scratch of the writer that compresses the chunk.
    Scratch,
    Elsewhere(&'a [u8]),
    /// The compressed chunk, which is stored unchanged.
    Compressed(Vec<u8>),
}

impl ChunkWriters {
    pub(super) fn clear(&mut self) {
        self.0.get_mut().clear();
    }

    pub(super) fn team<'a>(
        &'a self,
        schunk: &SChunk,
        geometry: &'a Geometry,
        count: usize,
    ) -> Result<Team<'a>> {
        let threads = schunk.encoding_threads().available();
        // A single chunk uses all threads.
        let inner = if count == 1 { Threads::new(threads) } else { Threads::ONE };
        let mut pool = self.0.lock();
        let there = pool.iter().filter(|writer| writer.threads == inner).count();
        for _ in there..threads.min(count).max(1) {
            let encoder = schunk.array_encoder(geometry.block_len(), inner)?;
            pool.push(ChunkWriter { encoder, threads: inner, scratch: Scratch::default() });
        }
        let closures = pool.last().is_some_and(|writer| writer.encoder.runs_closures());
        drop(pool);
        let gates = schunk.gate().into_iter().collect();
        let spare = Mutex::default();
        Ok(Team { writers: self, geometry, count, threads, inner, closures, gates, spare })
    }
}

pub(crate) struct Team<'a> {
    writers: &'a ChunkWriters,
    pub(crate) geometry: &'a Geometry,
    count: usize,
    threads: usize,
    inner: Threads,
    /// Whether compression calls user closures.
    closures: bool,
    /// The files that are read or changed during the compression.
    gates: Vec<Arc<Gate>>,
    spare: Mutex<Vec<Vec<u8>>>,
}

impl Team<'_> {
    pub(super) fn beside(mut self, gates: impl Iterator<Item = Arc<Gate>>) -> Self {
        self.gates.extend(gates);
        self
    }

    /// Compresses the chunks, and passes them to `take` in order. `index` returns the index of each chunk in the array.
    /// The buffer of a compressed chunk has the maximum compressed size; `take` can return the buffer, so that it is
    /// reused for other chunks.
    pub(super) fn pack<'d>(
        &self,
        index: impl Fn(usize) -> usize + Sync,
        data: impl Fn(&mut Scratch, usize) -> Result<Data<'d>> + Sync,
        mut take: impl FnMut(Vec<u8>) -> Result<Vec<u8>>,
    ) -> Result<()> {
        let writer = || {
            let mut pool = self.writers.0.lock();
            let found = pool.iter().position(|writer| writer.threads == self.inner);
            let found = found.map(|index| pool.swap_remove(index));
            drop(pool);
            let none_free = || Error::new(ErrorKind::Library, WRITE, "all encoders are in use");
            let value = Some(found.ok_or_else(none_free)?);
            Ok(Pooled { pool: &self.writers.0, trim: |writer| writer.scratch.trim(), value })
        };
        let pack = |writer: &mut Pooled<'_, ChunkWriter>, number: usize| {
            let ChunkWriter { encoder, scratch, .. } = writer.get();
            let bytes = match data(scratch, number)? {
                Data::Scratch => &scratch.chunk[..],
                Data::Elsewhere(bytes) => bytes,
                Data::Compressed(chunk) => return Ok(chunk),
            };
            let mut chunk = self.spare.lock().pop().unwrap_or_default();
            let gates = self.gates.iter().filter(|_| self.closures);
            let calling: Vec<_> = gates.map(|gate| gate.calling()).collect();
            // Only closures use the index of the chunk.
            let place = match self.closures {
                true => {
                    let index = index(number);
                    let start = (index as u64).saturating_mul(self.geometry.chunk_len() as u64);
                    ChunkPlace {
                        index: Some(index),
                        start: Some(start),
                        array: Some(self.geometry),
                    }
                }
                false => ChunkPlace::default(),
            };
            encoder.compress_to(bytes, place, &mut chunk)?;
            drop(calling);
            Ok(chunk)
        };
        parallel::ordered(self.threads, self.count, writer, pack, |chunk| {
            let spare = take(chunk)?;
            if spare.capacity() > 0 {
                self.spare.lock().push(spare);
            }
            Ok(())
        })
    }

    /// Compresses the chunks, and returns them in order; see [`pack`](Self::pack).
    pub(super) fn pack_all<'d>(
        &self,
        index: impl Fn(usize) -> usize + Sync,
        data: impl Fn(&mut Scratch, usize) -> Result<Data<'d>> + Sync,
    ) -> Result<Vec<Vec<u8>>> {
        let mut chunks = Vec::with_capacity(self.count);
        self.pack(index, data, |mut chunk| {
            chunk.shrink_to_fit();
            chunks.push(chunk);
            Ok(Vec::new())
        })?;
        Ok(chunks)
    }

    /// Returns the data of a chunk of the plan of a source, with padding. `base` stores the old items in the scratch,
    /// and the planned items overwrite them. If the plan covers the entire chunk, `base` is not called.
    pub(super) fn fill<'d>(
        &self,
        source: &Source<'d, '_>,
        number: usize,
        scratch: &mut Scratch,
        base: impl FnOnce(&mut Scratch) -> Result<()>,
    ) -> Result<Data<'d>> {
        let plan = &source.plan().chunk(number);
        if let Some(bytes) = source.chunk(plan) {
            return Ok(Data::Elsewhere(bytes));
        }
        match (plan.covers && source.has_whole_items(), plan.has_padding()) {
            (true, true) => self.zeros(scratch)?,
            // All bytes are overwritten.
            (true, false) => resize(&mut scratch.chunk, self.geometry.chunk_len()).doing(WRITE)?,
            (false, _) => base(scratch)?,
        }
        source.get_all(plan, &mut scratch.chunk);
        Ok(Data::Scratch)
    }

    /// Decompresses a chunk of the array to the scratch. If it is the only chunk, several threads decompress its
    /// blocks.
    pub(super) fn decompress(
        &self,
        (schunk, reading): (&SChunk, &Reading<'_>),
        number: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let (len, total) = (self.geometry.block_len(), self.geometry.chunk_len());
        resize(&mut scratch.chunk, total).doing(WRITE)?;
        let threads = self.inner.count().min(total / WORTHWHILE);
        if threads <= 1 || !schunk.has_separate_blocks(reading, number, (total, len))? {
            let target = Target::of(&mut scratch.chunk);
            return schunk.with_chunk_in(reading, number, None, |chunk, decoder| {
                decoder.decompress(chunk, target).map(|_| ())
            });
        }
        let part = (total / len).div_ceil(threads) * len;
        parallel::each_item(
            threads,
            scratch.chunk.chunks_mut(part),
            || Ok(()),
            |(), index, target| {
                let start = index * part;
                let range = start..start + target.len();
                let needed = Some(std::slice::from_ref(&range));
                schunk.with_chunk_in(reading, number, needed, |chunk, decoder| {
                    let blocks = target.chunks_mut(len).zip((start..).step_by(len));
                    blocks.into_iter().try_for_each(|(block, start)| {
                        decoder.range(chunk, start, Target::of(block)).map(|_| ())
                    })
                })
            },
        )
    }

    fn zeros(&self, scratch: &mut Scratch) -> Result<()> {
        scratch.chunk.clear();
        resize(&mut scratch.chunk, self.geometry.chunk_len()).doing(WRITE)
    }

    /// Returns the data of a chunk, with zeros as padding. `fill` writes the items of these ranges of the array, in C
    /// order, into zeroed memory.
    pub(super) fn boxed<'d>(
        &self,
        scratch: &mut Scratch,
        ranges: &[Range<u64>],
        fill: &FillBox<'_>,
    ) -> Result<Data<'d>> {
        self.zeros(scratch)?;
        let Scratch { chunk, block: bytes } = scratch;
        self.with_source(ranges, bytes, fill, |source, plan| source.get_all(plan, chunk))?;
        Ok(Data::Scratch)
    }

    /// Returns the data of a chunk. Its items are those of readers, whose views are at these boxes of the array, and those
    /// that `fill` writes before. With `as_is`, a compressed chunk is used unchanged if possible.
    pub(super) fn placed<'d>(
        &self,
        scratch: &mut Scratch,
        number: usize,
        readers: &[(&BoxReader<'_>, &[Range<u64>])],
        as_is: bool,
        fill: &FillBox<'_>,
    ) -> Result<Data<'d>> {
        let ranges = self.geometry.chunk_box(number as u64);
        for (reader, at) in readers.iter().filter(|_| as_is) {
            let (part, place) = part_of(at, &ranges);
            if extent(&part) == place.1
                && let Some(chunk) =
                    reader.view.whole_chunk(reader.reading, &part, self.geometry)?
            {
                return Ok(Data::Compressed(chunk));
            }
        }
        let is_held = readers.iter().any(|(reader, _)| reader.is_held());
        self.by_boxes(scratch, number, is_held, &|ranges, bytes| {
            fill(ranges, bytes)?;
            readers.iter().try_for_each(|(reader, at)| match part_of(at, ranges) {
                (part, _) if part.iter().any(Range::is_empty) => Ok(()),
                (part, place) => reader.read(&part, Some(&place), bytes),
            })
        })
    }

    /// Returns the data of a chunk. `fill` writes the items of the chunk, or those of each block `separately`, in C order,
    /// into zeroed memory.
    pub(crate) fn by_boxes<'d>(
        &self,
        scratch: &mut Scratch,
        number: usize,
        separately: bool,
        fill: &FillBox<'_>,
    ) -> Result<Data<'d>> {
        match separately {
            true => self.by_blocks(scratch, number, fill),
            false => self.boxed(scratch, &self.geometry.chunk_box(number as u64), fill),
        }
    }

    /// Returns the data of a chunk. `fill` writes the items of each block, in C order, into zeroed memory. If there are
    /// fewer chunks than threads, several threads work on the blocks of a chunk.
    pub(crate) fn by_blocks<'d>(
        &self,
        scratch: &mut Scratch,
        number: usize,
        fill: &FillBox<'_>,
    ) -> Result<Data<'d>> {
        let geometry = self.geometry;
        self.zeros(scratch)?;
        let chunk = geometry.chunk_box(number as u64);
        parallel::each_item(
            self.threads / self.count,
            scratch.chunk.chunks_exact_mut(geometry.block_len()),
            || Ok(Vec::new()),
            |bytes, number, block| {
                let ranges = geometry.block_box(&chunk, number as u64);
                if ranges.iter().any(Range::is_empty) {
                    return Ok(());
                }
                let whole = ranges.iter().zip(geometry.block_shape());
                if whole.into_iter().all(|(range, side)| range.end - range.start == *side) {
                    return fill(&ranges, block);
                }
                self.with_source(&ranges, bytes, fill, |source, plan| {
                    source.get(&plan.block(0), block);
                })
            },
        )?;
        Ok(Data::Scratch)
    }

    /// Calls `work` with a source of the items that `fill` writes, and with their plan in the only chunk.
    fn with_source(
        &self,
        ranges: &[Range<u64>],
        bytes: &mut Vec<u8>,
        fill: &FillBox<'_>,
        work: impl FnOnce(&Source<'_, '_>, &ChunkPlan<'_>),
    ) -> Result<()> {
        let (region, typesize) = (Region::of_box(ranges.iter().cloned()), self.geometry.typesize());
        // The product fits: the items are in a chunk, and the size of chunks was checked.
        let len = region.shape().iter().product::<u64>() as usize * typesize;
        bytes.clear();
        resize(bytes, len).doing(WRITE)?;
        fill(ranges, bytes)?;
        let plan = Plan::of_region(self.geometry, &region);
        let source = Source::new(plan, ItemPart::whole(typesize), bytes);
        work(&source, &source.plan().chunk(0));
        Ok(())
    }
}

impl NDArray {
    /// Writes items. `source` returns the source that owns their plan. The write is atomic.
    pub(super) fn scatter<'m>(
        &mut self,
        items: Items<'_>,
        source: impl for<'p> FnOnce(Plan<'p>) -> Source<'m, 'p>,
    ) -> Result<()> {
        self.changing(|change| {
            let Change { schunk, geometry, writers, .. } = change;
            let source = source(Plan::new(geometry, items)?);
            // The plans of chunks are not kept, because such a plan can be larger than its chunk.
            let whole_items = source.has_whole_items();
            let chunks = source.plan().chunks();
            let touched = chunks.map(|chunk| (chunk.number, chunk.covers && whole_items));
            let touched: Vec<(usize, bool)> = touched.collect();
            if touched.is_empty() {
                return Ok(());
            }
            if !touched.iter().all(|(_, covers)| *covers) {
                schunk.check_unfiltered()?;
            }
            let chunks = {
                let reading = schunk.reading()?;
                let team = writers.team(schunk, geometry, touched.len())?;
                let data = |scratch: &mut Scratch, number: usize| {
                    let base = |scratch: &mut Scratch| {
                        team.decompress((&*schunk, &reading), touched[number].0, scratch)
                    };
                    team.fill(&source, number, scratch, base)
                };
                team.pack_all(|number| touched[number].0, data)?
            };
            let numbered = touched.iter().zip(chunks);
            Ok(schunk
                .put(numbered.map(|((number, _), chunk)| (*number, chunk.into())).collect())?)
        })
        .doing(WRITE)
    }
}
