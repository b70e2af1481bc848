//! Changes of chunks: append, insert, replace, remove, reorder, fill; and transactions of several changes.

use std::borrow::Cow;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use blosc2_format::b2nd::{Geometry, NAME};
use blosc2_format::chunk::Header;
use blosc2_format::frame::{Layout, Outline, Sizes, Slot, Stores};

use super::limits::check_readable;
use super::source::{ChunkSource, Source};
use super::store::{State, Transaction};
use super::{Access, SChunk, array_layer, array_meta, search_indexes};
use crate::chunk::encoder::Encoder;
use crate::closures::ChunkPlace;
use crate::codec::params::MAX_CHUNK_LEN;
use crate::{AxisSelection, ChunkRef, Doing, ErrorKind, Reason, Result, Special};

const APPEND: &str = "append a chunk";
const INSERT: &str = "insert a chunk";
const REPLACE: &str = "replace a chunk";
const TRANSACTION: &str = "change a frame in a transaction";
/// The maximum number of chunks that are replaced one by one. Each replacement walks through the blocks of the index, which
/// contain 2,048 chunks each.
const MAX_REPLACED: usize = 1000;

impl SChunk {
    /// Appends one chunk: items, a compressed chunk or variable-length blocks; see [`ChunkSource`]. C:
    /// `blosc2_schunk_append_buffer`, `blosc2_schunk_append_chunk`. Python: `SChunk.append_data`.
    ///
    /// Reading is fastest if all chunks have the same size; only the last chunk may be shorter. The super-chunk gets
    /// variable-length chunks if a chunk is longer than the [chunk size](Self::chunksize), or is appended after a
    /// shorter chunk. With variable-length chunks, each handle reads the headers of all chunks at its first access to
    /// items.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u16>(CParams::default())?;
    /// schunk.append(&[1u16, 2, 3])?;
    /// schunk.append(&schunk.chunk(0)?)?;
    /// assert_eq!(schunk.read::<u16>(..)?, [1, 2, 3, 1, 2, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), the [errors of the source](ChunkSource#errors), and
    /// with
    /// - [`ErrorKind::InvalidArgument`]: the chunks belong to an array, whose shape determines the number of chunks.
    #[doc(alias(
        "append_data",
        "append_chunk",
        "blosc2_schunk_append_buffer",
        "blosc2_schunk_append_chunk"
    ))]
    pub fn append(&mut self, source: impl ChunkSource) -> Result<()> {
        self.add(Access::Append, None, source).doing(APPEND)
    }

    /// Inserts one chunk before the chunk at `index`: items, a compressed chunk or variable-length blocks; see
    /// [`ChunkSource`]. C: `blosc2_schunk_insert_chunk`. Python: `SChunk.insert_data`, `SChunk.insert_chunk`.
    ///
    /// # Errors
    /// Fails with the errors of [`append`](Self::append), and with
    /// - [`ErrorKind::OutOfBounds`]: `index` is greater than the number of chunks.
    #[doc(alias("insert_data", "insert_chunk", "blosc2_schunk_insert_chunk"))]
    pub fn insert(&mut self, index: usize, source: impl ChunkSource) -> Result<()> {
        self.add(Access::Write, Some(index), source).doing(INSERT)
    }

    fn add(
        &mut self,
        needed: Access,
        index: Option<usize>,
        source: impl ChunkSource,
    ) -> Result<(), Reason> {
        let source = source.source(self)?;
        self.check_change(needed)?;
        self.check_no_array()?;
        let chunk = self.compressed(index, source)?;
        self.push(index, chunk)
    }

    /// Replaces the chunk at `index` with items, a compressed chunk or variable-length blocks; see [`ChunkSource`]. C:
    /// `blosc2_schunk_update_chunk`. Python: `SChunk.update_data`, `SChunk.update_chunk`.
    ///
    /// In a contiguous frame, the new chunk overwrites the old chunk if it fits, and otherwise is stored in a gap or at
    /// the end. The unused bytes of the old chunk become a gap, which later changes use. [`compact`](Self::compact)
    /// closes all gaps. A program that reads the file without locking may read a partly written chunk.
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), the [errors of the source](ChunkSource#errors), and
    /// with
    /// - [`ErrorKind::OutOfBounds`]: `index` is not less than the number of chunks;
    /// - [`ErrorKind::InvalidArgument`]: the chunks belong to an array, and the new chunk has another chunk size,
    ///   variable-length blocks, or (if it is not [special](Special)) another block size.
    #[doc(alias("update", "update_data", "update_chunk", "blosc2_schunk_update_chunk"))]
    pub fn replace(&mut self, index: usize, source: impl ChunkSource) -> Result<()> {
        let source = source.source(self).doing(REPLACE)?;
        self.check_change(Access::Write).doing(REPLACE)?;
        if self.is_array() {
            self.check_like_others(index, &source).doing(REPLACE)?;
        }
        let chunk = self.compressed(Some(index), source).doing(REPLACE)?;
        self.put(vec![(index, chunk)])
    }

    /// Removes chunks: one index, a range, or a list of indices; see [`AxisSelection`]. An index that occurs several times
    /// in a list counts once. C: `blosc2_schunk_delete_chunk`.
    /// Python: `SChunk.delete_chunk`.
    ///
    /// The index is written once. Removing the last chunks is faster than removing other chunks.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// for start in 0..6u8 {
    ///     schunk.append(&[start; 100])?;
    /// }
    /// schunk.remove(3..)?;
    /// schunk.remove(0)?;
    /// assert_eq!((schunk.nchunks(), schunk.nbytes()), (2, 200));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), and with
    /// - [`ErrorKind::OutOfBounds`]: an index is not less than the number of chunks;
    /// - [`ErrorKind::InvalidArgument`]: the chunks belong to an array, or the selection is invalid.
    #[doc(alias("delete", "truncate", "delete_chunk", "blosc2_schunk_delete_chunk"))]
    pub fn remove(&mut self, chunks: impl Into<AxisSelection>) -> Result<()> {
        let doing = "remove chunks";
        let chunks = chunks.into();
        self.check_change(Access::Write).doing(doing)?;
        self.change_if(|state, freed| {
            no_array(state)?;
            let nchunks = state.nchunks();
            let removed = chunks.resolve(nchunks as u64).map_err(|(kind, what)| {
                Reason::new(kind, format!("there are {nchunks} chunks, {what}"))
            })?;
            let mut removed: Vec<u64> =
                removed.into_sorted().into_iter().map(|(at, _)| at).collect();
            removed.dedup();
            let (Some(&first), count) = (removed.first(), removed.len()) else { return Ok(None) };
            let is_tail = count > 1 && count as u64 == nchunks as u64 - first;
            state.load()?;
            let mut sizes = Vec::with_capacity(count);
            for &index in &removed {
                freed.extend(state.offset(index as usize)?.place());
                sizes.push(match (state.outline.layout(), state.outline.nbytes_of(index)) {
                    // The end of a contiguous frame is removed without the stored sizes.
                    (Layout::Contiguous, Some(nbytes)) if is_tail => Sizes { nbytes, cbytes: 0 },
                    _ => state.sizes(index as usize)?,
                });
            }
            state.survey(if count == 1 { sizes[0].cbytes.into() } else { u64::MAX })?;
            let done = match count {
                // This changes only the blocks of the index from the chunk on.
                1 => state.outline.remove(first, sizes[0]),
                _ => state.outline.remove_all(&removed, &sizes),
            };
            done?;
            Ok(Some(Stores::new()))
        })
        .doing(doing)
    }

    /// Reorders the chunks: the new chunk `i` is the old chunk `order[i]`. C: `blosc2_schunk_reorder_offsets`. Python:
    /// `SChunk.reorder_offsets`.
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`]: `order` does not contain each index exactly once; or the chunks belong to an
    ///   array.
    #[doc(alias("reorder_offsets", "blosc2_schunk_reorder_offsets"))]
    pub fn reorder(&mut self, order: &[usize]) -> Result<()> {
        let doing = "reorder chunks";
        self.check_change(Access::Write).doing(doing)?;
        self.change(|state, _| {
            no_array(state)?;
            state.outline.reorder(order).map_err(Reason::from)
        })
        .doing(doing)
    }

    /// Fills an empty super-chunk with `nitems` zeros, NaN or uninitialized items, in [special chunks](Special) of
    /// `chunk_items` items. Only the index records these chunks. C: `blosc2_schunk_fill_special`. Python:
    /// `SChunk.fill_special`.
    ///
    /// For another repeated value, append chunks created by [`Chunk::repeat`](crate::Chunk::repeat).
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`], in these cases:
    ///   - the super-chunk has chunks or contains an array;
    ///   - `chunk_items` is 0;
    ///   - `special` is [`Special::Value`];
    ///   - `special` is [`Special::Nan`], and the typesize is not 4 or 8;
    ///   - the items have more than 2^63 - 1 bytes;
    /// - [`ErrorKind::TooLarge`]: a chunk would have more than [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes,
    ///   or there would be more chunks than [`Limits::chunks`](crate::Limits) allows;
    /// - [`ErrorKind::Unsupported`]: `special` is [`Special::Nan`] on a big-endian platform, because the items of such
    ///   chunks are little-endian. Append chunks created by [`Chunk::nans`](crate::Chunk::nans) instead.
    #[doc(alias("fill_special", "blosc2_schunk_fill_special"))]
    pub fn fill(&mut self, special: Special, nitems: u64, chunk_items: usize) -> Result<()> {
        let doing = "fill a super-chunk";
        self.check_change(Access::Append).doing(doing)?;
        let invalid = |detail: &str| self.error(ErrorKind::InvalidArgument, detail).doing(doing);
        if special == Special::Value {
            return Err(invalid("expected zeros, NaN or uninitialized items"));
        }
        let chunksize = chunk_items.checked_mul(self.typesize);
        let chunksize = chunksize.filter(|&size| size <= MAX_CHUNK_LEN).ok_or_else(|| {
            let detail = format!("a chunk has at most {MAX_CHUNK_LEN} bytes");
            self.error(ErrorKind::TooLarge, detail).doing(doing)
        })?;
        let nbytes = nitems.checked_mul(self.typesize as u64);
        let nbytes = nbytes.filter(|&nbytes| i64::try_from(nbytes).is_ok());
        let nbytes = nbytes.ok_or_else(|| invalid("there are more than 2^63 - 1 bytes"))?;
        self.change( |state, _| {
            if !state.unfinished {
                no_array(state)?;
                if special == Special::Nan && cfg!(target_endian = "big") {
                    let detail = "the items of special chunks of NaN are little-endian; append chunks created by Chunk::nans";
                    return Err(Reason::new(ErrorKind::Unsupported, detail));
                }
            }
            // At most 2 GiB.
            state.outline.fill(special, nbytes, chunksize as u32)?;
            Ok(Stores::new())
        })
        .doing(doing)
    }

    /// Moves chunks of a contiguous frame so that there are no gaps (unused bytes of replaced or deleted chunks), and
    /// the file becomes shorter. Up to 1 KiB can remain. Has no effect on other storages, which have no gaps.
    ///
    /// Changes use the gaps of a frame for new chunks, and move chunks if the gaps take more than half of the size of the
    /// chunks and more than 32 KiB. Therefore this method is rarely necessary. It moves about 4 MiB at a time, each in
    /// one atomic change, and writes these bytes twice (once to a journal). Other handles can continue to read the frame.
    ///
    /// ```
    /// use blosc2::SChunk;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("numbers.b2frame");
    /// let mut schunk = SChunk::create::<u8>(&path, &blosc2::CParams::new().level(0))?;
    /// for start in 0..10u8 {
    ///     schunk.append(&[start; 1000])?;
    /// }
    /// schunk.remove(0)?;
    /// assert!(schunk.frame_len()? > 10_000);
    /// schunk.compact()?;
    /// assert!(schunk.frame_len()? < 10_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of changes](Self#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`]: a transaction is in progress;
    /// - [`ErrorKind::InvalidData`]: chunks overlap, or the header of a chunk is invalid.
    ///
    /// After an error, a part of the chunks may have been moved.
    pub fn compact(&mut self) -> Result<()> {
        let doing = "compact a frame";
        self.check_change(Access::Write).doing(doing)?;
        self.frame
            .changing(|state, broken| {
                if state.transaction.is_some() {
                    let detail = "a transaction is in progress";
                    return Err(Reason::new(ErrorKind::InvalidArgument, detail));
                }
                state.compact().inspect_err(|_| *broken = state.reload().is_err())
            })
            .doing(doing)
    }

    /// Compresses bytes and appends them as one chunk. Used for arrays while they are created.
    pub(super) fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let chunk = self.compressed_bytes(None, bytes).doing(APPEND)?;
        self.push(None, chunk).doing(APPEND)
    }

    /// Appends a chunk that was compressed for this super-chunk. Returns the memory of the chunk, or an empty vector if
    /// the super-chunk stores the chunk in this memory. Used for arrays while they are created.
    pub(crate) fn push_made(&mut self, chunk: Vec<u8>) -> Result<Vec<u8>> {
        if self.last_state().store.is_contiguous().is_none() {
            return self.push(None, chunk).doing(APPEND).map(|_| Vec::new());
        }
        self.push(None, &chunk).doing(APPEND)?;
        Ok(chunk)
    }

    /// Inserts a valid chunk before the chunk `before`, or appends it if `before` is `None`.
    pub(super) fn push<'a>(
        &mut self,
        before: Option<usize>,
        chunk: impl Into<Cow<'a, [u8]>>,
    ) -> Result<(), Reason> {
        let chunk = chunk.into();
        let max_read = self.max_read();
        self.change_if(|state, _| {
            let nbytes = check_readable(&state.outline, &chunk, max_read)?;
            // The chunks of an array are added only while the array is created.
            if !state.unfinished {
                no_array(state)?;
            }
            let nchunks = state.nchunks();
            let index = before.unwrap_or(nchunks);
            if index > nchunks {
                let detail = format!("there are {nchunks} chunks, got the index {index}");
                return Err(Reason::new(ErrorKind::OutOfBounds, detail));
            }
            match index == nchunks && state.outline.appends_alone(nbytes) {
                true => state.load_last()?,
                false => state.load()?,
            }
            let stores = state.outline.insert(index as u64, chunk);
            stores.map(Some).map_err(Reason::from)
        })
    }

    /// Replaces all of these chunks, or none after an error.
    pub(crate) fn put(&mut self, chunks: Vec<(usize, Cow<'_, [u8]>)>) -> Result<()> {
        self.put_or_append(chunks, None).doing(REPLACE)
    }

    /// Replaces all of these chunks, or none after an error. If `end` is set, chunks whose index is at least `end` are
    /// appended.
    pub(super) fn put_or_append(
        &mut self,
        chunks: Vec<(usize, Cow<'_, [u8]>)>,
        end: Option<usize>,
    ) -> Result<(), Reason> {
        let max_read = self.max_read();
        self.change(|state, freed| {
            for (_, chunk) in &chunks {
                check_readable(&state.outline, chunk, max_read)?;
            }
            let is_new = |index: usize| end.is_some_and(|end| index >= end);
            let mut sizes = Vec::with_capacity(chunks.len());
            for &(index, _) in chunks.iter().filter(|(index, _)| !is_new(*index)) {
                sizes.push(state.sizes(index)?);
            }
            if !sizes.is_empty() {
                state.survey(sizes.iter().map(|sizes| u64::from(sizes.cbytes)).sum())?;
            }
            let mut sizes = sizes.into_iter();
            let before = (chunks.len() > 1).then(|| state.outline.clone());
            let mut all = Stores::new();
            let replaced = chunks.into_iter().try_for_each(|(index, chunk)| {
                if is_new(index) {
                    let stores = state.outline.insert(index as u64, chunk);
                    all.extend(stores?);
                    return Ok(());
                }
                let sizes = sizes.next().unwrap_or_default();
                let old = state.offset(index)?.place();
                let stores = state.outline.replace(index as u64, sizes, chunk, true);
                all.extend(stores?);
                if state.offset(index)?.place() != old {
                    freed.extend(old);
                }
                Ok(())
            });
            match (replaced, before) {
                (Ok(()), _) => Ok(all),
                (Err(error), Some(before)) => {
                    state.outline = before;
                    Err(error)
                }
                (Err(error), None) => Err(error),
            }
        })
    }

    /// Replaces the chunks of an array from the index `first` on with `slots` in one change, and sets the content of its
    /// metalayer. `first` is at most the number of chunks. If new chunks are only appended, or replace the last chunks,
    /// the cost does not depend on the number of the other chunks, except for the size of the index.
    pub(crate) fn rearrange(
        &mut self,
        meta: &[u8],
        chunksize: usize,
        first: usize,
        mut slots: Vec<Slot<'_>>,
    ) -> Result<(), Reason> {
        let max_read = self.max_read();
        self.change_if(|state, freed| {
            for slot in &slots {
                if let Slot::New(chunk) = slot {
                    check_readable(&state.outline, chunk, max_read)?;
                }
            }
            let nchunks = state.nchunks();
            let is_tail = nchunks > 0
                && state.outline.nbytes() == nchunks as u64 * chunksize as u64
                && (nchunks.saturating_sub(MAX_REPLACED)..=nchunks).contains(&first)
                && first + slots.len() >= nchunks
                && slots.iter().all(|slot| matches!(slot, Slot::New(_)));
            match is_tail && first == nchunks {
                true => state.load_last()?,
                false => state.load()?,
            }
            let mut dropped = Vec::new();
            if is_tail {
                dropped.extend(first..nchunks);
            } else {
                slots.splice(..0, (0..first as u64).map(Slot::Kept));
                let mut is_dropped = vec![true; nchunks];
                for slot in &slots {
                    if let Slot::Kept(number) = slot
                        && let Some(is_dropped) = is_dropped.get_mut(*number as usize)
                    {
                        *is_dropped = false;
                    }
                }
                dropped.extend((0..nchunks).filter(|&number| is_dropped[number]));
            }
            let sizes = |number: usize| -> Result<(u64, Sizes), Reason> {
                // Moving all chunks of a contiguous frame does not need the sizes.
                let sizes = match state.outline.layout() {
                    Layout::Contiguous if !is_tail => Sizes::default(),
                    _ => state.sizes(number)?,
                };
                Ok((number as u64, sizes))
            };
            let sizes =
                dropped.iter().map(|&number| sizes(number)).collect::<Result<Vec<_>, _>>()?;
            for &number in &dropped {
                freed.extend(state.offset(number)?.place());
            }
            match is_tail {
                true if dropped.is_empty() => {}
                true => {
                    let cbytes = sizes.iter().map(|(_, sizes)| u64::from(sizes.cbytes)).sum();
                    state.survey(cbytes)?;
                }
                false => state.survey(u64::MAX)?,
            }
            // Appending one chunk changes all or nothing. A copy of a long index would take longer.
            let is_single = is_tail && dropped.is_empty() && slots.len() == 1;
            let before = (!is_single).then(|| state.outline.clone());
            let outline = &mut state.outline;
            let layer = array_layer(outline.metalayers()).cloned();
            let (name, old_meta) =
                layer.map_or((NAME.to_owned(), Vec::new()), |layer| (layer.name, layer.content));
            outline.update_metalayer(&name, meta)?;
            let stores = match is_tail {
                true => replace_last(outline, first, slots, &sizes),
                // A chunk size that fits the frame is below 2^31.
                false => outline.rearrange(chunksize as u32, slots, &sizes),
            };
            let stores = stores.inspect_err(|_| match before {
                Some(before) => *outline = before,
                None => {
                    let restored = outline.update_metalayer(&name, &old_meta);
                    debug_assert!(restored.is_ok(), "the content had this length");
                }
            })?;
            Ok(Some(stores))
        })?;
        self.forget();
        Ok(())
    }

    /// Changes the items by a change of the outline with `work`, and stores the result. Marks Python's search indexes
    /// as stale in the same commit. After an error nothing has changed.
    pub(super) fn change<'a>(
        &mut self,
        work: impl FnOnce(&mut State, &mut Vec<u64>) -> Result<Stores<'a>, Reason>,
    ) -> Result<(), Reason> {
        self.change_if(|state, freed| {
            state.load()?;
            work(state, freed).map(Some)
        })
    }

    /// Like [`change`](Self::change), for `work` that reads the needed part of the index, and returns `None` if there is
    /// nothing to change.
    fn change_if<'a>(
        &mut self,
        work: impl FnOnce(&mut State, &mut Vec<u64>) -> Result<Option<Stores<'a>>, Reason>,
    ) -> Result<(), Reason> {
        self.frame.change_and_store(|state, freed| {
            let stores = work(state, freed)?;
            if stores.is_some() {
                search_indexes::outdate(&mut state.outline, &mut state.outdated);
            }
            Ok(stores)
        })
    }

    /// Changes the outline with `work`, which does not change items, and stores the result. After an error nothing has
    /// changed.
    pub(super) fn change_metadata<'a>(
        &mut self,
        work: impl FnOnce(&mut State, &mut Vec<u64>) -> Result<Stores<'a>, Reason>,
    ) -> Result<(), Reason> {
        self.frame.change_and_store(|state, freed| {
            state.load_last()?;
            work(state, freed).map(Some)
        })
    }

    /// Returns the chunk with this content for the position `index`, or for the end if `index` is `None`.
    fn compressed<'s>(
        &mut self,
        index: Option<usize>,
        source: Source<'s>,
    ) -> Result<Cow<'s, [u8]>, Reason> {
        Ok(match source {
            Source::Items(bytes) => self.compressed_bytes(index, &bytes)?.into(),
            Source::Blocks(blocks) => self.compressed_blocks(index, blocks)?.into(),
            Source::Chunk(chunk) => {
                self.check_storable(&chunk)?;
                chunk.into_bytes().into()
            }
        })
    }

    /// Compresses bytes to a chunk for the position `index`, or for the end if `index` is `None`.
    pub(super) fn compressed_bytes(
        &mut self,
        index: Option<usize>,
        bytes: &[u8],
    ) -> Result<Vec<u8>, Reason> {
        if bytes.is_empty() {
            return Err(self.error(ErrorKind::InvalidArgument, "the chunk is empty"));
        }
        let mut chunk = Vec::new();
        self.encode(index, |encoder, place| encoder.compress_to(bytes, place, &mut chunk))?;
        Ok(chunk)
    }

    /// Compresses variable-length blocks to a chunk for the position `index`, or for the end if `index` is `None`.
    pub(super) fn compressed_blocks(
        &mut self,
        index: Option<usize>,
        blocks: &[&[u8]],
    ) -> Result<Vec<u8>> {
        let mut chunk = Vec::new();
        self.encode(index, |encoder, place| encoder.compress_blocks(blocks, place, &mut chunk))?;
        Ok(chunk)
    }

    fn encode<R>(
        &mut self,
        index: Option<usize>,
        work: impl FnOnce(&mut Encoder, ChunkPlace<'_>) -> Result<R>,
    ) -> Result<R> {
        let gate = self.gate();
        let closures = self.coder.encoder(&self.frame)?.runs_closures();
        let (mut place, mut shape) = (ChunkPlace::default(), None);
        if closures {
            let reading = self.reading()?;
            let index = index.unwrap_or(reading.state.nchunks());
            place.index = Some(index);
            if self.coder.has_prefilter() {
                place.start = Some(self.start_of(&reading, index)?);
            }
            shape = Some(self.coder.shape(&self.frame)?);
        }
        place.array = shape.as_ref().and_then(|shape| shape.geometry());
        // Without closures the work cannot deadlock.
        let calling = gate.as_ref().filter(|gate| gate.is_held() && closures);
        let calling = calling.map(|gate| gate.calling());
        let result = work(self.coder.encoder(&self.frame)?, place);
        drop(calling);
        result.map_err(|error| self.at(error))
    }

    /// Checks that chunks may be added and removed.
    pub(super) fn check_no_array(&self) -> Result<(), Reason> {
        no_array(&self.last_state()).map_err(|error| self.at(error))
    }

    /// Checks that no prefilter or postfilter prevents rewriting a part of a chunk.
    pub(crate) fn check_unfiltered(&self) -> Result<(), Reason> {
        if !self.is_filtered() {
            return Ok(());
        }
        let detail = "with a prefilter or a postfilter only whole chunks can be replaced";
        Err(self.error(ErrorKind::Unsupported, detail))
    }

    /// Checks that a chunk can be stored in this super-chunk.
    fn check_storable(&self, chunk: &ChunkRef<'_>) -> Result<(), Reason> {
        let header: &Header = chunk.header();
        if !header.extended {
            let detail = "it is a Blosc1 chunk, with a header of 16 bytes";
            return Err(self.error(ErrorKind::Unsupported, detail));
        }
        if chunk.typesize() != self.chunk_typesize() {
            let (found, typesize) = (chunk.typesize(), self.chunk_typesize());
            let detail = format!("the typesize in its header is {found}, expected {typesize}");
            return Err(self.error(ErrorKind::TypeMismatch, detail));
        }
        Ok(())
    }

    /// Returns the typesize in the headers of chunks, which is one byte.
    fn chunk_typesize(&self) -> usize {
        if self.typesize > 255 { 1 } else { self.typesize }
    }

    /// Returns whether a chunk of an array has the chunk size and block size of the array. Chunks in files may have
    /// other sizes.
    pub(crate) fn is_regular(&self, chunk: &ChunkRef<'_>, geometry: &Geometry) -> bool {
        let is_cut = chunk.special().is_some() || chunk.blocksize() == Some(geometry.block_len());
        chunk.header().extended
            && chunk.typesize() == self.chunk_typesize()
            && chunk.nbytes() == geometry.chunk_len()
            && is_cut
    }

    /// Checks that a new chunk of an array has the chunk size and the block size of the other chunks.
    fn check_like_others(&self, index: usize, source: &Source<'_>) -> Result<(), Reason> {
        let invalid = |detail| Err(self.error(ErrorKind::InvalidArgument, detail));
        let (len, chunk) = match source {
            Source::Items(bytes) => (bytes.len(), None),
            Source::Chunk(chunk) => (chunk.nbytes(), Some(chunk)),
            Source::Blocks(_) => return self.check_no_array(),
        };
        let (chunksize, blocksize) = (self.chunksize(), self.blocksize());
        if len != chunksize {
            return invalid(format!("chunk {index} of an array has {chunksize} bytes, got {len}"));
        }
        if let (Some(chunk), Some(expected)) = (chunk, blocksize)
            && chunk.special().is_none()
            && chunk.blocksize() != blocksize
        {
            let found = chunk.blocksize().map_or_else(
                || "the chunk has variable-length blocks".to_owned(),
                |found| format!("the blocks of the chunk have {found} bytes"),
            );
            return invalid(format!("the array has blocks of {expected} bytes, but {found}"));
        }
        Ok(())
    }

    /// Completes the frame of the stored chunks.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.frame.state_mut().finish().doing("write a frame")
    }

    /// Calls `work` and stores all changes of `work` in one commit. After an error, a panic or a crash, none of the
    /// changes is stored.
    ///
    /// A transaction writes the index of the frame once. Outside of a transaction, each change that inserts, removes or
    /// moves a chunk writes the complete index. Only appended chunks usually leave most of a long index in a file as it
    /// is.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("numbers.b2frame");
    /// let mut schunk = SChunk::create::<u32>(&path, &CParams::default())?;
    /// schunk.transaction(|schunk| {
    ///     for start in 0..100 {
    ///         schunk.append(&[start, start + 1, start + 2])?;
    ///     }
    ///     schunk.remove(0)?;
    ///     schunk.vlmeta_mut().set("complete", b"yes")
    /// })?;
    /// assert_eq!(schunk.nchunks(), 99);
    ///
    /// let failed = schunk.transaction(|schunk| {
    ///     schunk.remove(0)?;
    ///     schunk.remove(1000)
    /// });
    /// assert!(failed.is_err());
    /// assert_eq!(schunk.nchunks(), 99);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// Within `work`, all methods of the super-chunk are available, and reads return the new content. Other handles and
    /// programs read the old content until the commit. With [`OpenOptions::locking`](crate::OpenOptions::locking), the
    /// transaction holds the lock of the file until it ends; see [`locked`](Self::locked).
    ///
    /// A change that fails within `work` is not part of the transaction. If `work` handles this error and returns `Ok`,
    /// the other changes are stored. A rollback does not affect the parameters of the handle, for example the
    /// parameters of [`set_cparams`](Self::set_cparams).
    ///
    /// The new compressed chunks stay in memory until the commit. A commit to a contiguous file may copy the chunks,
    /// and then needs twice this memory. Therefore split large amounts of data into several transactions, for example
    /// of 64 MiB.
    ///
    /// # Errors
    /// Fails with the errors of `work`, the [errors of changes](Self#errors-of-changes), the errors of
    /// [`locked`](Self::locked), and with
    /// - [`ErrorKind::InvalidArgument`]: `work` started another transaction of this super-chunk, or replaced this
    ///   super-chunk with another one, for example with [`std::mem::replace`].
    pub fn transaction<R>(&mut self, work: impl FnOnce(&mut Self) -> Result<R>) -> Result<R> {
        Self::transaction_for(self, |schunk| schunk, work)
    }

    /// Like [`transaction`](Self::transaction), for the owner of a super-chunk.
    pub(crate) fn transaction_for<O, R>(
        owner: &mut O,
        schunk: impl Fn(&mut O) -> &mut Self,
        work: impl FnOnce(&mut O) -> Result<R>,
    ) -> Result<R> {
        schunk(owner).check_change(Access::Append).doing(TRANSACTION)?;
        Self::with_lock_for(owner, &schunk, |owner| {
            let own = schunk(owner);
            if own.last_state().transaction.is_some() {
                let detail = "another transaction of this handle is in progress";
                return Err(own.error(ErrorKind::InvalidArgument, detail).doing(TRANSACTION));
            }
            let call = Arc::new(());
            own.frame
                .changing(|state, _| {
                    state.transaction = Some(Transaction::new(&state.outline, &call));
                    Ok(())
                })
                .doing(TRANSACTION)?;
            let gate = own.gate().filter(|gate| gate.is_locking());
            let calling = gate.as_ref().map(|gate| gate.calling());
            let result = panic::catch_unwind(AssertUnwindSafe(|| work(owner)));
            drop(calling);
            let own = schunk(owner);
            let result = result.map(|result| {
                let value = result?;
                own.commit_transaction(&call)?;
                Ok(value)
            });
            if !matches!(result, Ok(Ok(_))) {
                own.roll_back(&call);
            }
            result.unwrap_or_else(|payload| panic::resume_unwind(payload))
        })
    }

    /// Whether a transaction of this handle is in progress.
    pub(crate) fn is_in_transaction(&self) -> bool {
        self.last_state().transaction.is_some()
    }

    fn commit_transaction(&mut self, call: &Arc<()>) -> Result<()> {
        let is_changed = match &self.last_state().transaction {
            Some(transaction) if transaction.is_of(call) => Some(transaction.is_changed()),
            _ => None,
        };
        match is_changed {
            None => {
                let detail = "the closure has replaced the super-chunk with another one";
                Err(self.error(ErrorKind::InvalidArgument, detail).doing(TRANSACTION))
            }
            Some(false) => {
                self.roll_back(call);
                Ok(())
            }
            Some(true) => self
                .frame
                .changing(|state, broken| {
                    let committed = state.commit_transaction();
                    committed.inspect_err(|_| *broken = state.reload().is_err())?;
                    *broken = !state.reclaim();
                    Ok(())
                })
                .doing(TRANSACTION),
        }
    }

    /// Discards the changes of the transaction, if the transaction is in progress and `call` started it.
    fn roll_back(&mut self, call: &Arc<()>) {
        self.frame.roll_back(call);
        self.forget();
    }
}

/// Replaces the last chunks, which have the sizes `old`, and appends further ones. `first` is the index of the first new
/// chunk.
fn replace_last<'a>(
    outline: &mut Outline,
    first: usize,
    slots: Vec<Slot<'a>>,
    old: &[(u64, Sizes)],
) -> Result<Stores<'a>, blosc2_format::Error> {
    let mut old = old.iter();
    let mut all = Stores::new();
    for (number, slot) in (first as u64..).zip(slots) {
        let Slot::New(chunk) = slot else { continue };
        all.extend(match old.next() {
            Some((_, sizes)) => outline.replace(number, *sizes, chunk, false)?,
            None => outline.insert(number, chunk)?,
        });
    }
    Ok(all)
}

/// Checks that the chunks do not belong to an array.
fn no_array(state: &State) -> Result<(), Reason> {
    if array_meta(state.outline.metalayers()).is_none() {
        return Ok(());
    }
    let detail = "its chunks belong to an array, whose shape determines their number";
    Err(Reason::new(ErrorKind::InvalidArgument, detail))
}
