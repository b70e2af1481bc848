//! Changes of an outline: insert, replace, remove and reorder chunks.

use std::borrow::Cow;
use std::mem;

use super::checksums::Sum;
use super::header::{ChunkSize, Layout};
use super::offset::{OFFSET_LEN, Offset};
use super::offsets::{Neighbors, Offsets, room_for};
use super::outline::Outline;
use crate::chunk::{self, EXTENDED_HEADER_LEN, Special};
use crate::{Error, Limit, Limits};

/// The maximum number of chunks: all offsets must fit into one chunk.
const MAX_CHUNKS: u64 = (i32::MAX as u64 - EXTENDED_HEADER_LEN as u64) / OFFSET_LEN;

/// The result of a change: byte strings that the caller must store, each with its position. In a
/// contiguous frame, the position is the number of bytes after the end of the header. In a
/// directory, the position is the file number.
///
/// ```
/// use blosc2_format::chunk::{Encoder, Params};
/// use blosc2_format::frame::{Layout, Outline, Stores};
///
/// let chunk = Encoder::new(Params::default())?.encode(&[7; 800])?;
/// let mut outline = Outline::new(Params::default(), Layout::Contiguous);
/// let stores: Stores = outline.insert(0, &chunk)?;
/// assert_eq!(stores[0].0, 0, "directly after the header");
/// assert_eq!(stores[0].1[..], chunk[..]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
pub type Stores<'a> = Vec<(u64, Cow<'a, [u8]>)>;

/// A chunk of the new sequence in [`Outline::rearrange`].
///
/// ```
/// use blosc2_format::chunk::{Encoder, Params};
/// use blosc2_format::frame::{Layout, Outline, Slot};
///
/// let chunk = Encoder::new(Params::default())?.encode(&[7; 800])?;
/// let mut outline = Outline::new(Params::default(), Layout::Contiguous);
/// outline.insert(0, &chunk)?;
/// outline.rearrange(800, vec![Slot::Zeros, Slot::Kept(0)], &[])?;
/// assert_eq!(outline.nchunks(), 2);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot<'a> {
    /// An existing chunk, by its index.
    Kept(u64),
    /// A chunk of zeros. Only the index records this chunk.
    Zeros,
    /// A new compressed chunk.
    New(Cow<'a, [u8]>),
}

/// The sizes of a chunk that a change replaces or removes.
///
/// ```
/// use blosc2_format::chunk::{Encoder, Params};
/// use blosc2_format::frame::{Layout, Outline, Sizes};
///
/// let chunk = Encoder::new(Params::default())?.encode(&[7; 800])?;
/// let mut outline = Outline::new(Params::default(), Layout::Contiguous);
/// outline.insert(0, &chunk)?;
/// outline.remove(0, Sizes { nbytes: 800, cbytes: chunk.len() as u32 })?;
/// assert_eq!(outline.nchunks(), 0);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// The decoded size, in bytes.
    pub nbytes: u32,
    /// The stored size, in bytes; 0 for a special chunk that only the index records.
    pub cbytes: u32,
}

impl Outline {
    /// Inserts a chunk before the chunk at index `number`, or appends the chunk if `number` is the
    /// number of chunks. Returns the bytes that the caller must store.
    ///
    /// Chunks can have different sizes. If all chunks have the same size, readers can compute the
    /// index of the chunk that contains an item. A shorter last chunk is allowed in this case.
    ///
    /// # Errors
    /// On an error the outline is unchanged.
    /// - [`Error::Format`]: the header, the block starts or the lengths of `chunk` violate a rule,
    ///   or a part of the index is invalid;
    /// - [`Error::Argument`], if
    ///   - `number` is greater than the number of chunks;
    ///   - the length of `chunk` differs from the size in its header;
    ///   - `chunk` is empty or lazy;
    ///   - `chunk` has at most 32 bytes and is not special;
    ///   - `chunk` repeats a value that is shorter than an item;
    ///   - `chunk` contains NaN that do not fit the items of the frame;
    ///   - some chunks would have variable-length blocks, and others not;
    ///   - `chunk` is the first chunk, and is longer than the chunk size in the header of the
    ///     frame;
    ///   - the frame already has the maximum number of chunks of the format;
    ///   - a part of the index is not [loaded](Self::load);
    /// - [`Error::Limit`]: the frame would have more chunks than its readers
    ///   [allow](Self::set_max_chunks).
    pub fn insert<'a>(
        &mut self,
        number: u64,
        chunk: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Stores<'a>, Error> {
        let chunk = chunk.into();
        let count = self.nchunks();
        if number > count {
            let what = format!("chunk index {number}: there are only {count} chunks");
            return Err(Error::Argument(what));
        }
        self.check_count(count + 1)?;
        let header = self.check_chunk(&chunk, count == 0)?;
        let nbytes = header.nbytes;
        let fixed = |size: u32| match number == count {
            true => self.nbytes_of(count - 1) == Some(size) && nbytes <= size,
            false => nbytes == size,
        };
        let chunksize = match self.header.chunksize {
            ChunkSize::Fixed(size) if count > 0 && !fixed(size) => ChunkSize::Variable,
            ChunkSize::Fixed(size) if count == 0 && nbytes > size => {
                let what =
                    format!("the first chunk has {nbytes} bytes, over the chunk size of {size}");
                return Err(Error::Argument(what));
            }
            ChunkSize::Unknown => ChunkSize::Fixed(nbytes),
            chunksize => chunksize,
        };
        let from = if number < count { number } else { count.saturating_sub(1) };
        let spelled = self.spell_out_all(chunksize, None)?;
        let (stored, special) = self.admit(&header, chunk, chunksize)?;
        self.decode(from, spelled.len() + 1)?;
        // The following steps cannot fail.
        self.header.variable_blocks = header.variable_blocks;
        self.header.chunksize = chunksize;
        if count == 0 {
            // The header of an empty frame can state any total size of the stored chunks.
            self.header.cbytes = 0;
            self.space.clear();
        }
        self.header.nbytes += u64::from(nbytes);
        let mut stores = Vec::new();
        let entry = self.place(stored, special, &mut stores);
        self.place_all(spelled, &mut stores);
        self.insert_entry(number, entry);
        Ok(stores)
    }

    /// Replaces the chunk at index `number`. `was` contains the sizes of the replaced chunk.
    /// Returns the bytes that the caller must store.
    ///
    /// In a contiguous frame, the new chunk is stored in a gap, or after all other chunks.
    /// Exception: if `in_place` is `true` and the space before the next chunk is sufficient, the new
    /// chunk is stored at the position of the old chunk. If the gaps are not
    /// [known](Self::survey), this space is that of the old chunk. In a directory `in_place` has no
    /// effect: the new chunk is always stored in another file.
    ///
    /// # Errors
    /// On an error the outline is unchanged.
    /// - [`Error::Format`]: the header, the block starts or the lengths of `chunk` violate a rule,
    ///   or a part of the index is invalid;
    /// - [`Error::Argument`]: there is no chunk at this index, `chunk` is invalid (see
    ///   [`insert`](Self::insert)), or a part of the index is not [loaded](Self::load).
    pub fn replace<'a>(
        &mut self,
        number: u64,
        was: Sizes,
        chunk: impl Into<Cow<'a, [u8]>>,
        in_place: bool,
    ) -> Result<Stores<'a>, Error> {
        let chunk = chunk.into();
        let count = self.nchunks();
        self.decode(0, 1)?;
        let old = self.offsets.decoded(number).ok_or_else(|| no_chunk(number, count))?;
        let header = self.check_chunk(&chunk, count == 1)?;
        let nbytes = header.nbytes;
        let chunksize = match self.header.chunksize {
            ChunkSize::Fixed(size) if nbytes == size || number == count - 1 && nbytes < size => {
                ChunkSize::Fixed(size)
            }
            ChunkSize::Fixed(_) | ChunkSize::Unknown if count == 1 => ChunkSize::Fixed(nbytes),
            _ => ChunkSize::Variable,
        };
        let spelled = self.spell_out_all(chunksize, Some(number))?;
        let (stored, special) = self.admit(&header, chunk, chunksize)?;
        self.decode(0, spelled.len() + 1)?;
        self.space.change();
        self.header.variable_blocks = header.variable_blocks;
        self.header.chunksize = chunksize;
        self.header.nbytes =
            self.header.nbytes.saturating_sub(was.nbytes.into()) + u64::from(nbytes);
        let around = self.around(old);
        let mut stores = Vec::new();
        let fits = |place: u64, next: Option<u64>, len: usize| {
            let room = next.map_or(u64::MAX, |next| next - place);
            let is_known = self.space.is_known() || next.is_none();
            len as u64 <= if is_known { room } else { room.min(was.cbytes.into()) }
        };
        let entry = match (old, around, stored) {
            (Offset::At(place), Some(Neighbors { is_shared: false, next, .. }), Some(bytes))
                if in_place && fits(place, next, bytes.len()) =>
            {
                self.overwrite(place, next, bytes.len() as u64);
                let sum = self.sum_of(old, &bytes);
                stores.push((place, bytes));
                (old, sum)
            }
            (_, _, stored) => {
                self.vacate(old, around, was);
                self.place(stored, special, &mut stores)
            }
        };
        self.place_all(spelled, &mut stores);
        self.set_entry(number, entry);
        Ok(stores)
    }

    /// Removes the chunk at index `number`. `was` contains the sizes of this chunk.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index, or a part of the index is not
    ///   [loaded](Self::load);
    /// - [`Error::Format`]: a part of the index is invalid.
    pub fn remove(&mut self, number: u64, was: Sizes) -> Result<(), Error> {
        let count = self.nchunks();
        self.decode(0, 0)?;
        let old = self.offsets.decoded(number).ok_or_else(|| no_chunk(number, count))?;
        self.space.change();
        self.vacate(old, self.around(old), was);
        self.remove_entry(number);
        self.header.nbytes = self.header.nbytes.saturating_sub(was.nbytes.into());
        if count == 1 {
            self.no_chunks();
        }
        Ok(())
    }

    /// Removes the chunks at the indices `numbers`, which are distinct and ascending. `was` contains the sizes of these
    /// chunks. The time does not depend on the number of removed chunks.
    ///
    /// # Errors
    /// On an error the outline is unchanged.
    /// - [`Error::Argument`]: an index does not exist or is not above the one before it, `was` does not have one item
    ///   for each index, or a part of the index is not [loaded](Self::load);
    /// - [`Error::Format`]: a part of the index is invalid.
    pub fn remove_all(&mut self, numbers: &[u64], was: &[Sizes]) -> Result<(), Error> {
        let count = self.nchunks();
        let is_ascending = numbers.is_sorted_by(|one, next| one < next);
        if !is_ascending
            || numbers.last().is_some_and(|&last| last >= count)
            || numbers.len() != was.len()
        {
            let (chunks, sizes) = (numbers.len(), was.len());
            let what = format!(
                "{sizes} sizes for the removal of {chunks} of {count} chunks, which have to be in ascending order"
            );
            return Err(Error::Argument(what));
        }
        let Some(&first) = numbers.first() else { return Ok(()) };
        self.decode(0, 0)?;
        self.space.change();
        let left = count - numbers.len() as u64;
        let is_removed = |number: &u64| numbers.binary_search(number).is_ok();
        let (mut order, removed): (Vec<u64>, Vec<u64>) =
            (first..count).partition(|number| !is_removed(number));
        let kept = (0..first).chain(order.iter().copied());
        let mut places: Vec<u64> =
            kept.filter_map(|number| self.offsets.decoded(number)?.place()).collect();
        places.sort_unstable();
        self.vacate_all(numbers.iter().copied().zip(was.iter().copied()), &places);
        if !order.is_empty() {
            order.extend(removed);
            let order = (0..first).chain(order).map(|number| number as usize);
            self.reorder_entries(&order.collect::<Vec<_>>());
        }
        self.truncate_entries(left);
        let nbytes = was.iter().map(|sizes| u64::from(sizes.nbytes)).sum();
        self.header.nbytes = self.header.nbytes.saturating_sub(nbytes);
        if left == 0 {
            self.no_chunks();
        }
        Ok(())
    }

    /// Reorders the chunks: the chunk at index `order[i]` moves to index `i`. Returns the bytes
    /// that the caller must store.
    ///
    /// # Errors
    /// - [`Error::Argument`]: `order` is not a permutation of the indices, or a part of the index
    ///   is not [loaded](Self::load);
    /// - [`Error::Format`]: a part of the index is invalid.
    pub fn reorder(&mut self, order: &[usize]) -> Result<Stores<'static>, Error> {
        let count = self.nchunks();
        let mut seen = vec![false; order.len()];
        let once =
            |&number: &usize| seen.get_mut(number).is_some_and(|seen| !mem::replace(seen, true));
        if order.len() as u64 != count || !order.iter().all(once) {
            let what = format!(
                "an order of {} indices for {count} chunks: expected each index once",
                order.len()
            );
            return Err(Error::Argument(what));
        }
        let Some(&last) = order.last() else { return Ok(Vec::new()) };
        let stays = self.nbytes_of(last as u64) == self.nbytes_of(count - 1);
        let chunksize = if stays { self.header.chunksize } else { ChunkSize::Variable };
        let spelled = self.spell_out_all(chunksize, None)?;
        self.decode(0, spelled.len())?;
        self.header.chunksize = chunksize;
        let mut stores = Vec::new();
        self.place_all(spelled, &mut stores);
        self.reorder_entries(order);
        Ok(stores)
    }

    /// Replaces the sequence of chunks by `slots`. Each slot is a chunk with a decoded size of
    /// `chunksize` bytes. Returns the bytes that the caller must store.
    ///
    /// Each existing chunk must occur exactly once: in `slots` as [`Slot::Kept`], or in `dropped`
    /// with its sizes.
    ///
    /// # Errors
    /// On an error the outline is unchanged.
    /// - [`Error::Format`]: the header, the block starts or the lengths of a new chunk violate a
    ///   rule, or a part of the index is invalid;
    /// - [`Error::Argument`], if
    ///   - the size of a chunk differs from `chunksize`;
    ///   - `chunksize` is not a multiple of the typesize;
    ///   - an existing chunk does not occur exactly once in `slots` and `dropped` together;
    ///   - `slots` has more chunks than a frame can have;
    ///   - a new chunk is invalid (see [`insert`](Self::insert));
    ///   - a part of the index is not [loaded](Self::load);
    /// - [`Error::Limit`]: `slots` has more chunks than the readers of the frame
    ///   [allow](Self::set_max_chunks).
    pub fn rearrange<'a>(
        &mut self,
        chunksize: u32,
        mut slots: Vec<Slot<'a>>,
        dropped: &[(u64, Sizes)],
    ) -> Result<Stores<'a>, Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let (old_count, count) = (self.nchunks(), slots.len() as u64);
        self.check_count(count)?;
        if !chunksize.is_multiple_of(self.header.typesize) {
            let typesize = self.header.typesize;
            return wrong(format!(
                "chunks of {chunksize} bytes: not a multiple of the typesize {typesize}"
            ));
        }
        if old_count > 0 && self.header.nbytes != old_count * u64::from(chunksize) {
            return wrong(format!("the existing chunks do not have {chunksize} bytes each"));
        }
        let mut kept = room_for(old_count as usize)?;
        kept.resize(old_count as usize, false);
        let numbers = slots.iter().filter_map(|slot| match slot {
            Slot::Kept(number) => Some(*number),
            _ => None,
        });
        for number in numbers.chain(dropped.iter().map(|(number, _)| *number)) {
            let seen = kept.get_mut(number as usize).ok_or_else(|| no_chunk(number, old_count))?;
            if mem::replace(seen, true) {
                return wrong(format!("chunk {number} is kept or dropped twice"));
            }
        }
        if kept.contains(&false) {
            return wrong("each existing chunk has to be either kept or dropped".into());
        }
        let mut admitted = Vec::new();
        for slot in &mut slots {
            let Slot::New(bytes) = slot else { continue };
            let header = self.check_chunk(bytes, old_count == 0)?;
            if header.nbytes != chunksize || header.variable_blocks {
                let found = header.nbytes;
                return wrong(format!("a chunk of {found} bytes, expected {chunksize}"));
            }
            let bytes = mem::take(bytes);
            admitted.push(self.admit(&header, bytes, ChunkSize::new(chunksize))?);
        }
        self.decode(0, admitted.len())?;
        let mut sums = room_for(if self.has_checksums() { slots.len() } else { 0 })?;
        let is_zeros = count > 0 && slots.iter().all(|slot| *slot == Slot::Zeros);

        // The following steps cannot fail.
        self.space.change();
        let kept_places = slots.iter().filter_map(|slot| match slot {
            Slot::Kept(number) => self.offsets.decoded(*number).and_then(Offset::place),
            _ => None,
        });
        let mut kept_places: Vec<u64> = kept_places.collect();
        kept_places.sort_unstable();
        self.vacate_all(dropped.iter().copied(), &kept_places);
        let mut stores = Vec::new();
        let mut admitted = admitted.into_iter();
        let zeros = Offset::Special(Special::Zeros);
        let mut offsets = Offsets::default();
        for slot in &slots {
            let entry = match slot {
                Slot::Kept(number) => {
                    let sum = self.kept_sum(*number);
                    self.offsets.decoded(*number).map(|offset| (offset, sum))
                }
                Slot::Zeros => Some((zeros, self.sum_of(zeros, &[]))),
                Slot::New(_) => admitted
                    .next()
                    .map(|(stored, special)| self.place(stored, special, &mut stores)),
            };
            if let Some((offset, sum)) = entry {
                offsets.push(offset);
                sums.push(sum);
            }
        }
        if is_zeros {
            offsets = Offsets::Alike(zeros, count);
        }
        self.set_entries(offsets, sums);
        (self.header.nbytes, self.header.chunksize) =
            (count * u64::from(chunksize), ChunkSize::new(chunksize));
        Ok(stores)
    }

    /// Fills an empty frame with `nbytes` bytes of one special value, in chunks of `chunksize`
    /// bytes. Only the index records these chunks. C: `blosc2_schunk_fill_special`. Python:
    /// `SChunk.fill_special`.
    ///
    /// # Errors
    /// - [`Error::Limit`]: the frame would have more chunks than its readers
    ///   [allow](Self::set_max_chunks);
    /// - [`Error::Argument`], if
    ///   - the frame has chunks;
    ///   - `nbytes` or `chunksize` is not a multiple of the typesize;
    ///   - `chunksize` is 0 or too large for a chunk;
    ///   - the frame would have more chunks than a frame can have;
    ///   - `special` is [`Special::Value`];
    ///   - `special` is [`Special::Nan`], and the typesize is not 4 or 8, or is greater than the
    ///     block size.
    pub fn fill(&mut self, special: Special, nbytes: u64, chunksize: u32) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let typesize = self.header.typesize;
        if self.nchunks() > 0 || special == Special::Value {
            return wrong("only zeros, NaN or uninitialized data can fill an empty frame".into());
        }
        let whole = chunksize.is_multiple_of(typesize) && nbytes.is_multiple_of(typesize.into());
        if chunksize < typesize || !whole {
            let what = format!(
                "{nbytes} bytes in chunks of {chunksize}: not multiples of the typesize {typesize}"
            );
            return wrong(what);
        }
        if special == Special::Nan && ![4, 8].contains(&typesize) {
            return wrong(format!("NaN of {typesize} bytes: expected 4 or 8"));
        }
        if special == Special::Nan && self.cuts_items() {
            let blocksize = self.header.blocksize;
            return wrong(format!("NaN of {typesize} bytes do not fit in blocks of {blocksize}"));
        }
        let count = nbytes.div_ceil(chunksize.into());
        self.check_count(count)?;
        // Checks that the parameters are valid for a chunk of this size, and determines its block
        // size.
        let sample = chunk::special(&self.params(), special, chunksize as usize, &[])?;
        let sample = chunk::Header::parse(&sample)?;
        if count > 0 {
            let offset = Offset::Special(special);
            let mut sums = Vec::new();
            if self.has_checksums() {
                sums = room_for(count as usize)?;
                sums.resize(count as usize, self.sum_of(offset, &[]));
            }
            self.set_entries(Offsets::Alike(offset, count), sums);
            self.space.clear();
            self.header.cbytes = 0;
            (self.header.nbytes, self.header.chunksize) = (nbytes, ChunkSize::Fixed(chunksize));
            self.header.blocksize = sample.blocksize;
        }
        Ok(())
    }

    /// Checks that the frame may have `count` chunks.
    fn check_count(&self, count: u64) -> Result<(), Error> {
        if count > MAX_CHUNKS {
            let what = format!("{count} chunks: a frame has at most {MAX_CHUNKS}");
            return Err(Error::Argument(what));
        }
        Limits::allow(Limit::Chunks, "chunks", count, self.max_chunks).map(drop)
    }

    /// Returns stored chunks for all special offsets except that of chunk `number`. These chunks
    /// are needed when sizes begin to vary, because the index cannot express the length of each
    /// chunk.
    fn spell_out_all(
        &self,
        chunksize: ChunkSize,
        but: Option<u64>,
    ) -> Result<Vec<(u64, Vec<u8>)>, Error> {
        if chunksize != ChunkSize::Variable || self.header.chunksize == ChunkSize::Variable {
            return Ok(Vec::new());
        }
        self.offsets.decode(0)?;
        let special =
            (0..self.nchunks()).filter_map(|number| match self.offsets.decoded(number)? {
                Offset::Special(special) if but != Some(number) => Some((number, special)),
                _ => None,
            });
        special
            .map(|(number, special)| {
                let nbytes = self.nbytes_of(number).unwrap_or(0);
                Ok((number, self.spell_out(special, nbytes)?))
            })
            .collect()
    }

    /// Decodes the offsets that a change needs: the offsets from chunk `from` on, or all offsets to
    /// find names for `count` new files.
    fn decode(&mut self, from: u64, count: usize) -> Result<(), Error> {
        if self.header.layout == Layout::Contiguous {
            return self.offsets.decode(from);
        }
        self.offsets.decode(0)?;
        self.files.find(&self.offsets, count)
    }

    /// Assigns a position to a chunk, and returns it with the checksum.
    fn place<'a>(
        &mut self,
        stored: Option<Cow<'a, [u8]>>,
        special: Option<Special>,
        stores: &mut Stores<'a>,
    ) -> (Offset, Sum) {
        let Some(bytes) = stored else {
            let offset = Offset::Special(special.unwrap_or(Special::Zeros));
            return (offset, self.sum_of(offset, &[]));
        };
        let len = bytes.len() as u64;
        let place = match self.header.layout {
            Layout::Contiguous => {
                let place = self.space.place(len, self.header.cbytes);
                self.header.cbytes = self.header.cbytes.max(place + len);
                place
            }
            Layout::Directory => {
                self.header.cbytes += len;
                self.files.number()
            }
        };
        let sum = self.sum_of(Offset::At(place), &bytes);
        stores.push((place, bytes));
        (Offset::At(place), sum)
    }

    /// Assigns positions to the chunks that were special offsets.
    fn place_all<'a>(&mut self, chunks: Vec<(u64, Vec<u8>)>, stores: &mut Stores<'a>) {
        for (number, bytes) in chunks {
            let entry = self.place(Some(bytes.into()), None, stores);
            self.set_entry(number, entry);
        }
    }

    /// Returns the neighbors of a chunk in a contiguous frame.
    fn around(&self, offset: Offset) -> Option<Neighbors> {
        let place = offset.place().filter(|_| self.header.layout == Layout::Contiguous)?;
        Some(self.offsets.neighbors(place))
    }

    /// Releases the position of a chunk that is replaced or removed.
    fn vacate(&mut self, old: Offset, around: Option<Neighbors>, was: Sizes) {
        let Some(place) = old.place() else { return };
        let Some(Neighbors { is_shared, next, last }) = around else {
            self.files.vacate(place);
            self.header.cbytes = self.header.cbytes.saturating_sub(was.cbytes.into());
            return;
        };
        if self.space.is_known() {
            if !is_shared {
                self.release(place, self.end_of(place, next));
            }
            return;
        }
        // Only space after all other chunks is released.
        match last {
            None => self.header.cbytes = 0,
            Some(last) if last < place => self.header.cbytes = place,
            Some(_) => {}
        }
    }

    /// Releases the positions of the chunks `dropped`, except `kept`, the sorted positions of the remaining chunks.
    fn vacate_all(&mut self, dropped: impl Iterator<Item = (u64, Sizes)>, kept: &[u64]) {
        let place = |offsets: &Offsets, number| offsets.decoded(number).and_then(Offset::place);
        match (self.header.layout, kept.last().copied()) {
            (Layout::Directory, _) => {
                for (number, sizes) in dropped {
                    let Some(place) = place(&self.offsets, number) else { continue };
                    self.files.vacate(place);
                    self.header.cbytes = self.header.cbytes.saturating_sub(sizes.cbytes.into());
                }
            }
            (Layout::Contiguous, None) => {
                self.header.cbytes = 0;
                self.space.clear();
            }
            (Layout::Contiguous, Some(_)) if self.space.is_known() => {
                let mut all: Vec<u64> = self.offsets.places().collect();
                all.sort_unstable();
                let next = |place| all.get(all.partition_point(|&other| other <= place)).copied();
                let places = dropped.filter_map(|(number, _)| place(&self.offsets, number));
                // Chunks may share a position.
                let mut places: Vec<u64> =
                    places.filter(|place| kept.binary_search(place).is_err()).collect();
                places.sort_unstable();
                places.dedup();
                let gaps = places.into_iter().map(|at| (at, self.end_of(at, next(at))));
                let gaps: Vec<_> = gaps.collect();
                gaps.into_iter().for_each(|(start, end)| self.release(start, end));
            }
            (Layout::Contiguous, Some(last)) => {
                let places = dropped.filter_map(|(number, _)| place(&self.offsets, number));
                let behind = places.filter(|&place| place > last).min();
                self.header.cbytes = behind.unwrap_or(self.header.cbytes);
            }
        }
    }

    /// Resets the fields that the chunks determined.
    fn no_chunks(&mut self) {
        (self.header.nbytes, self.header.variable_blocks, self.header.chunksize) =
            (0, false, ChunkSize::Unknown);
        self.space.clear();
    }
}

fn no_chunk(number: u64, count: u64) -> Error {
    Error::Argument(format!("no chunk at index {number}: there are {count} chunks"))
}
