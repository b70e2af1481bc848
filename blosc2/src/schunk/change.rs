//! Changes of the chunks: add, replace, remove, reorder.

use std::borrow::Cow;

use blosc2_format::b2nd::{Geometry, NAME};
use blosc2_format::chunk::Header;
use blosc2_format::frame::{Layout, Sizes, Slot, Stores};

use super::sharing::version;
use super::store::State;
use super::{Access, SChunk, array_layer, array_meta};
use crate::chunk::ChunkBytes;
use crate::closures::ChunkPlace;
use crate::element::{Element, bytes_of};
use crate::encoder::Encoder;
use crate::gate::Pass;
use crate::params::MAX_CHUNK_LEN;
use crate::{Chunk, ChunkRef, Error, ErrorKind, Result, Special};

const APPEND: &str = "append a chunk";
const INSERT: &str = "insert a chunk";
const UPDATE: &str = "update a chunk";

impl SChunk {
    /// Compresses items and appends them as one chunk; gives the number of chunks.
    ///
    /// Chunks are best of one size. A longer one, and any after a shorter one, makes it a super-chunk of
    /// chunks of different sizes, in which finding an item takes a look at each chunk once. C's
    /// `blosc2_schunk_append_buffer`, Python's `append_data`.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: opened for reading;
    /// - [`ErrorKind::TypeMismatch`]: `T` is neither `u8` nor of the typesize;
    /// - [`ErrorKind::InvalidArgument`]: no items; or the chunks are those of an array, whose shape would
    ///   not fit any more; or they have blocks of different lengths, and this one has not; or something else
    ///   follows the frame in its file, such as another frame, which would be lost;
    /// - [`ErrorKind::TooLarge`]: more than [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes;
    /// - [`ErrorKind::Unsupported`]: this build cannot compress as the file says;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    #[doc(alias("append_data", "blosc2_schunk_append_buffer"))]
    pub fn append<T: Element>(&mut self, items: &[T]) -> Result<usize> {
        self.check_item::<T>(APPEND)?;
        self.check_change(APPEND, Access::Append)?;
        self.check_no_array(APPEND)?;
        self.append_bytes(&bytes_of(items))
    }

    /// Appends a chunk that is compressed already.
    ///
    /// Its items have to be of the super-chunk's typesize, whatever its codec and filters. A chunk of one
    /// value takes no room, unless chunks have different sizes. C's `blosc2_schunk_append_chunk`.
    ///
    /// # Errors
    /// As for [`append`](Self::append), and [`ErrorKind::Unsupported`] for a chunk of Blosc1.
    #[doc(alias = "blosc2_schunk_append_chunk")]
    pub fn append_chunk(&mut self, chunk: &Chunk<impl ChunkBytes>) -> Result<usize> {
        self.check_change(APPEND, Access::Append)?;
        self.check_chunk(APPEND, chunk)?;
        self.push(APPEND, None, chunk.as_bytes())
    }

    /// Compresses each of `blocks` to a block of its own, and appends them as one chunk.
    ///
    /// Either all chunks of a super-chunk are made so or none. Reading one block decompresses no more than that
    /// block, whatever its length: for strings and documents. (From a file, the compressed chunk is read whole.)
    /// Python's vl-blocks.
    ///
    /// # Errors
    /// As for [`append`](Self::append); [`ErrorKind::InvalidArgument`] also for no block and for an empty one.
    pub fn append_blocks(&mut self, blocks: &[&[u8]]) -> Result<usize> {
        self.check_change(APPEND, Access::Append)?;
        self.check_no_array(APPEND)?;
        let chunk = self.compressed_blocks(None, blocks)?;
        self.push(APPEND, None, chunk)
    }

    /// Compresses items and puts them as one chunk in front of the chunk `index`; gives the number of
    /// chunks. C's `blosc2_schunk_insert_chunk`, Python's `insert_data`.
    ///
    /// # Errors
    /// As for [`append`](Self::append); [`ErrorKind::OutOfBounds`] where `index` is above the number of chunks.
    #[doc(alias = "insert_data")]
    pub fn insert<T: Element>(&mut self, index: usize, items: &[T]) -> Result<usize> {
        self.check_item::<T>(INSERT)?;
        self.check_change(INSERT, Access::Write)?;
        self.check_no_array(INSERT)?;
        let chunk = self.compressed_bytes(INSERT, Some(index), &bytes_of(items))?;
        self.push(INSERT, Some(index), chunk)
    }

    /// Puts a chunk that is compressed already in front of the chunk `index`.
    ///
    /// # Errors
    /// As for [`append_chunk`](Self::append_chunk) and [`insert`](Self::insert).
    #[doc(alias = "blosc2_schunk_insert_chunk")]
    pub fn insert_chunk(&mut self, index: usize, chunk: &Chunk<impl ChunkBytes>) -> Result<usize> {
        self.check_change(INSERT, Access::Write)?;
        self.check_chunk(INSERT, chunk)?;
        self.push(INSERT, Some(index), chunk.as_bytes())
    }

    /// Compresses each of `blocks` to a block of its own, and puts them as one chunk in front of the chunk
    /// `index`.
    ///
    /// # Errors
    /// As for [`append_blocks`](Self::append_blocks) and [`insert`](Self::insert).
    pub fn insert_blocks(&mut self, index: usize, blocks: &[&[u8]]) -> Result<usize> {
        self.check_change(INSERT, Access::Write)?;
        self.check_no_array(INSERT)?;
        let chunk = self.compressed_blocks(Some(index), blocks)?;
        self.push(INSERT, Some(index), chunk)
    }

    /// Compresses items and replaces the chunk `index` by them.
    ///
    /// In a contiguous frame the new chunk goes where the old one was if there is room, otherwise to the
    /// end; the gap stays until the frame is [saved](Self::save) elsewhere. Other programs that read the
    /// same file without locking may see the chunk half-written. C's `blosc2_schunk_update_chunk`,
    /// Python's `update_data`.
    ///
    /// # Errors
    /// As for [`append`](Self::append); [`ErrorKind::OutOfBounds`] where there is no such chunk.
    #[doc(alias = "update_data")]
    pub fn update<T: Element>(&mut self, index: usize, items: &[T]) -> Result<()> {
        self.check_item::<T>(UPDATE)?;
        self.check_change(UPDATE, Access::Write)?;
        self.check_same_size(index, size_of_val(items))?;
        let chunk = self.compressed_bytes(UPDATE, Some(index), &bytes_of(items))?;
        self.put(&[(index, &chunk)])
    }

    /// Compresses each of `blocks` to a block of its own, and replaces the chunk `index` by them.
    ///
    /// # Errors
    /// As for [`append_blocks`](Self::append_blocks) and [`update`](Self::update).
    pub fn update_blocks(&mut self, index: usize, blocks: &[&[u8]]) -> Result<()> {
        self.check_change(UPDATE, Access::Write)?;
        self.check_no_array(UPDATE)?;
        let chunk = self.compressed_blocks(Some(index), blocks)?;
        self.put(&[(index, &chunk)])
    }

    /// Replaces the chunk `index` by one that is compressed already.
    ///
    /// # Errors
    /// As for [`append_chunk`](Self::append_chunk) and [`update`](Self::update).
    #[doc(alias = "blosc2_schunk_update_chunk")]
    pub fn update_chunk(&mut self, index: usize, chunk: &Chunk<impl ChunkBytes>) -> Result<()> {
        self.check_change(UPDATE, Access::Write)?;
        self.check_storable(UPDATE, chunk)?;
        self.check_same_size(index, chunk.nbytes())?;
        let blocksize = self.blocksize().filter(|_| self.is_array() && chunk.special().is_none());
        if blocksize.is_some() && chunk.blocksize() != blocksize {
            let found = chunk.blocksize();
            let detail =
                format!("blocks of {found:?} bytes, those of the array have {blocksize:?}");
            return Err(self.error(ErrorKind::InvalidArgument, UPDATE, detail));
        }
        self.put(&[(index, chunk.as_bytes())])
    }

    /// Removes the chunk `index`; gives the number of chunks that are left. C's
    /// `blosc2_schunk_delete_chunk`, Python's `delete_chunk`.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: opened for reading or appending;
    /// - [`ErrorKind::OutOfBounds`]: there is no such chunk;
    /// - [`ErrorKind::InvalidArgument`]: the chunks are those of an array;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    #[doc(alias("delete_chunk", "blosc2_schunk_delete_chunk"))]
    pub fn delete(&mut self, index: usize) -> Result<usize> {
        let doing = "delete a chunk";
        self.check_change(doing, Access::Write)?;
        self.change(doing, |state, freed| {
            no_array(state, doing)?;
            let sizes = state.sizes(index, doing)?;
            freed.extend(state.offset(index, doing)?.place());
            let removed = state.outline.remove(index as u64, sizes);
            removed.map_err(|error| Error::from_frame(doing, error))?;
            Ok(Stores::new())
        })?;
        Ok(self.nchunks())
    }

    /// Puts the chunks into another order: first the one whose index is `order[0]`, and so on.
    ///
    /// C's `blosc2_schunk_reorder_offsets`, Python's `reorder_offsets`.
    ///
    /// # Errors
    /// As for [`delete`](Self::delete); [`ErrorKind::InvalidArgument`] where `order` has not each index once.
    #[doc(alias("reorder_offsets", "blosc2_schunk_reorder_offsets"))]
    pub fn reorder(&mut self, order: &[usize]) -> Result<()> {
        let doing = "reorder chunks";
        self.check_change(doing, Access::Write)?;
        self.change(doing, |state, _| {
            no_array(state, doing)?;
            state.outline.reorder(order).map_err(|error| Error::from_frame(doing, error))
        })
    }

    /// Makes an empty super-chunk one of `nitems` times the same: zeros, NaN or nothing, in chunks of
    /// `chunk_items`. It takes no room, however many there are.
    ///
    /// C's `blosc2_schunk_fill_special`, Python's `fill_special`. To repeat any other item, append
    /// [`Chunk::repeat`](crate::Chunk::repeat).
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: opened for reading;
    /// - [`ErrorKind::InvalidArgument`]: there are chunks; chunks of no items; NaN for items of neither 4 nor 8
    ///   bytes; [`Special::Value`]; more chunks than a frame can have;
    /// - [`ErrorKind::TooLarge`]: chunks of more than [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes;
    /// - [`ErrorKind::Io`]: the file cannot be written.
    #[doc(alias("fill_special", "blosc2_schunk_fill_special"))]
    pub fn fill(&mut self, special: Special, nitems: u64, chunk_items: usize) -> Result<()> {
        use blosc2_format::chunk::Special as Format;

        let doing = "fill a super-chunk";
        self.check_change(doing, Access::Append)?;
        let invalid = |detail: &str| self.error(ErrorKind::InvalidArgument, doing, detail);
        let special = match special {
            Special::Zeros => Format::Zeros,
            Special::Nan => Format::Nan,
            Special::Uninit => Format::Uninit,
            Special::Value => return Err(invalid("it takes zeros, NaN or nothing")),
        };
        let chunksize = chunk_items.checked_mul(self.typesize);
        let chunksize = chunksize.filter(|&size| size <= MAX_CHUNK_LEN).ok_or_else(|| {
            let detail = format!("a chunk has at most {MAX_CHUNK_LEN} bytes");
            self.error(ErrorKind::TooLarge, doing, detail)
        })?;
        let nbytes = nitems.checked_mul(self.typesize as u64);
        let nbytes = nbytes.filter(|&nbytes| i64::try_from(nbytes).is_ok());
        let nbytes = nbytes.ok_or_else(|| invalid("there are more than 2^63 bytes"))?;
        self.change(doing, |state, _| {
            if !state.unfinished {
                no_array(state, doing)?;
            }
            let (count, max) = (nbytes.div_ceil(chunksize.max(1) as u64), state.limits.chunks);
            if count > max {
                let detail = format!("{count} chunks, of which there may be {max}");
                return Err(Error::new(ErrorKind::TooLarge, doing, detail));
            }
            // At most 2 GiB.
            let filled = state.outline.fill(special, nbytes, chunksize as u32);
            filled.map_err(|error| Error::from_frame(doing, error))?;
            Ok(Stores::new())
        })
    }

    /// Appends bytes as a chunk, whatever the chunks are of.
    pub(crate) fn append_bytes(&mut self, bytes: &[u8]) -> Result<usize> {
        let chunk = self.compressed_bytes(APPEND, None, bytes)?;
        self.push(APPEND, None, chunk)
    }

    /// Appends a chunk that was compressed for this one, whatever the chunks are of.
    pub(crate) fn push_made<'a>(&mut self, chunk: impl Into<Cow<'a, [u8]>>) -> Result<()> {
        self.push(APPEND, None, chunk).map(drop)
    }

    /// Adds a chunk of our own making, or one that was looked at, in front of another one or behind the last.
    pub(super) fn push<'a>(
        &mut self,
        doing: &str,
        before: Option<usize>,
        chunk: impl Into<Cow<'a, [u8]>>,
    ) -> Result<usize> {
        self.change(doing, |state, _| {
            // The chunks of an array are put by those who make one.
            if !state.unfinished {
                no_array(state, doing)?;
            }
            let nchunks = state.nchunks();
            let index = before.unwrap_or(nchunks);
            if index > nchunks {
                let detail = format!("there are {nchunks} chunks, asked for a place at {index}");
                return Err(Error::new(ErrorKind::OutOfBounds, doing, detail));
            }
            let stores = state.outline.insert(index as u64, chunk);
            stores.map_err(|error| Error::from_frame(doing, error))
        })?;
        Ok(self.nchunks())
    }

    /// Replaces chunks, all of them or none.
    pub(crate) fn put(&mut self, chunks: &[(usize, &[u8])]) -> Result<()> {
        self.put_or_append(chunks, None)
    }

    /// Replaces chunks, and appends those whose index is at least `end`, if it is given; all of them or none.
    pub(super) fn put_or_append(
        &mut self,
        chunks: &[(usize, &[u8])],
        end: Option<usize>,
    ) -> Result<()> {
        self.change(UPDATE, |state, freed| {
            let before = (chunks.len() > 1).then(|| state.outline.clone());
            let mut all = Stores::new();
            let replaced = chunks.iter().try_for_each(|&(index, chunk)| {
                if end.is_some_and(|end| index >= end) {
                    let stores = state.outline.insert(index as u64, chunk);
                    all.extend(stores.map_err(|error| Error::from_frame(UPDATE, error))?);
                    return Ok(());
                }
                let sizes = state.sizes(index, UPDATE)?;
                let old = state.offset(index, UPDATE)?.place();
                let stores = state.outline.replace(index as u64, sizes, chunk, true);
                all.extend(stores.map_err(|error| Error::from_frame(UPDATE, error))?);
                if state.offset(index, UPDATE)?.place() != old {
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

    /// Makes the chunks these, all at once, of an array whose metalayer has this content then.
    pub(crate) fn rearrange(
        &mut self,
        doing: &str,
        meta: &[u8],
        chunksize: usize,
        slots: &[Slot<'_>],
    ) -> Result<()> {
        let failed = |error| Error::from_frame(doing, error);
        self.change(doing, |state, freed| {
            let mut dropped = vec![true; state.nchunks()];
            for slot in slots {
                if let Slot::Kept(number) = slot
                    && let Some(dropped) = dropped.get_mut(*number as usize)
                {
                    *dropped = false;
                }
            }
            let dropped = (0..dropped.len()).filter(|&number| dropped[number]);
            let dropped: Vec<(u64, Sizes)> = dropped
                .map(|number| {
                    freed.extend(state.offset(number, doing)?.place());
                    // Of a frame in one piece they do not matter.
                    let sizes = match state.outline.layout() {
                        Layout::Contiguous => Sizes::default(),
                        Layout::Directory => state.sizes(number, doing)?,
                    };
                    Ok((number as u64, sizes))
                })
                .collect::<Result<_>>()?;
            let mut outline = state.outline.clone();
            let layer = array_layer(outline.metalayers());
            let name = layer.map_or(NAME.to_owned(), |layer| layer.name.clone());
            outline.update_metalayer(&name, meta).map_err(failed)?;
            // What fits the frame was checked to fit 2^31.
            let stores = outline.rearrange(chunksize as u32, slots, &dropped).map_err(failed)?;
            state.outline = outline;
            Ok(stores)
        })?;
        self.forget();
        Ok(())
    }

    /// Changes the outline by `work` and stores what comes of it; when that fails, all is as before.
    pub(super) fn change<'a>(
        &mut self,
        doing: &str,
        work: impl FnOnce(&mut State, &mut Vec<u64>) -> Result<Stores<'a>>,
    ) -> Result<()> {
        if self.broken {
            let detail = "an earlier change failed and could not be rolled back";
            return Err(self.error(ErrorKind::InvalidData, doing, detail));
        }
        let gate = self.gate.clone();
        let pass = gate.as_ref().map(|gate| gate.change()).transpose();
        let mut pass = pass.map_err(|error| self.at(error))?;
        self.check_file()?;
        let Self { state, path, broken, starts, .. } = self;
        let path = path.as_deref();
        let at = |error: Error| match path {
            Some(path) => error.at(path),
            None => error,
        };
        let state = state.get_mut();
        let now = version(pass.as_ref());
        if state.version != now {
            let is_alone = gate.as_ref().is_some_and(|gate| gate.is_locking());
            state.reload_or_recover(is_alone, doing).map_err(at)?;
            state.version = now;
        }
        state.load(doing).map_err(at)?;
        *starts.get_mut() = None;
        let mut freed = Vec::new();
        // Where that fails, nothing has changed.
        let stores = work(state, &mut freed).map_err(at)?;
        if let Err(error) = state.commit(doing, stores, &freed) {
            *broken = state.unfinished || state.reload(doing).is_err();
            return Err(at(error));
        }
        state.version = pass.as_mut().map(Pass::changed).unwrap_or_default();
        Ok(())
    }

    /// Compresses bytes to a chunk that goes to the place `index`, or behind the last one.
    pub(super) fn compressed_bytes(
        &mut self,
        doing: &str,
        index: Option<usize>,
        bytes: &[u8],
    ) -> Result<Vec<u8>> {
        if bytes.is_empty() {
            return Err(self.error(ErrorKind::InvalidArgument, doing, "it has no bytes"));
        }
        let mut chunk = Vec::new();
        self.encode(index, |encoder, place| encoder.compress_to(bytes, place, &mut chunk))?;
        Ok(chunk)
    }

    /// Compresses blocks of any lengths to a chunk, likewise.
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
        let gate = self.gate.clone();
        let closures = self.encoder()?.runs_closures();
        let (mut place, mut shape) = (ChunkPlace::default(), None);
        if closures {
            let reading = self.reading()?;
            let index = index.unwrap_or(reading.state.nchunks());
            place.index = Some(index);
            if self.prefilter.is_some() {
                place.start = Some(self.start_of(&reading, index)?);
            }
            shape = Some(self.shape()?);
        }
        place.array = shape.as_ref().and_then(|shape| shape.geometry());
        // Otherwise nobody waits for this.
        let calling = gate.as_ref().filter(|gate| gate.is_kept() && closures);
        let calling = calling.map(|gate| gate.calling());
        let result = work(self.encoder()?, place);
        drop(calling);
        result.map_err(|error| self.at(error))
    }

    pub(crate) fn check_change(&self, doing: &str, needed: Access) -> Result<()> {
        match (self.access, needed) {
            (Access::Read, _) => {
                Err(self.error(ErrorKind::ReadOnly, doing, "it was opened for reading"))
            }
            (Access::Append, Access::Write) => {
                Err(self.error(ErrorKind::ReadOnly, doing, "it was opened for appending"))
            }
            _ => Ok(()),
        }
    }

    /// Sees that chunks may be added and removed.
    pub(super) fn check_no_array(&self, doing: &str) -> Result<()> {
        no_array(&self.look(), doing).map_err(|error| self.at(error))
    }

    /// Sees that a part of a chunk can be read and written again.
    pub(crate) fn check_unfiltered(&self, doing: &str) -> Result<()> {
        if !self.is_filtered() {
            return Ok(());
        }
        let detail = "with a prefilter or a postfilter, chunks are replaced whole";
        Err(self.error(ErrorKind::Unsupported, doing, detail))
    }

    fn check_chunk(&self, doing: &str, chunk: &Chunk<impl ChunkBytes>) -> Result<()> {
        self.check_no_array(doing)?;
        self.check_storable(doing, chunk)
    }

    /// Sees that a chunk can be one of these.
    fn check_storable(&self, doing: &str, chunk: &Chunk<impl ChunkBytes>) -> Result<()> {
        let header: &Header = chunk.header();
        if !header.extended {
            let detail = "it is a chunk of Blosc1, with a header of 16 bytes";
            return Err(self.error(ErrorKind::Unsupported, doing, detail));
        }
        if chunk.typesize() != self.chunk_typesize() {
            let (found, typesize) = (chunk.typesize(), self.typesize);
            let detail = format!("its items have {found} bytes, expected {typesize}");
            return Err(self.error(ErrorKind::TypeMismatch, doing, detail));
        }
        Ok(())
    }

    /// The typesize in the header of a chunk, which has one byte.
    fn chunk_typesize(&self) -> usize {
        if self.typesize > 255 { 1 } else { self.typesize }
    }

    /// Whether a chunk of an array has the sizes that the array says. Those of a file may have others.
    pub(crate) fn is_regular(&self, chunk: &ChunkRef<'_>, geometry: &Geometry) -> bool {
        let is_cut = chunk.special().is_some() || chunk.blocksize() == Some(geometry.block_len());
        chunk.header().extended
            && chunk.typesize() == self.chunk_typesize()
            && chunk.nbytes() == geometry.chunk_len()
            && is_cut
    }

    /// Sees that a chunk of an array keeps its size.
    fn check_same_size(&self, index: usize, len: usize) -> Result<()> {
        if !self.is_array() || len == self.chunksize() {
            return Ok(());
        }
        let chunksize = self.chunksize();
        let detail = format!("chunk {index} of an array has {chunksize} bytes, got {len}");
        Err(self.error(ErrorKind::InvalidArgument, UPDATE, detail))
    }

    /// Makes a frame of what was stored so far.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.state.get_mut().finish("write a frame")
    }
}

/// Sees that the chunks are not those of an array.
fn no_array(state: &State, doing: &str) -> Result<()> {
    if array_meta(state.outline.metalayers()).is_none() {
        return Ok(());
    }
    let detail = "its chunks are those of an array, whose shape says how many there are";
    Err(Error::new(ErrorKind::InvalidArgument, doing, detail))
}
