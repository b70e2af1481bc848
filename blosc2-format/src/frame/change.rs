//! Changes of an outline: chunks are added, replaced, removed and put into another order.

use std::borrow::Cow;
use std::mem;

use super::header::{ChunkSize, Layout};
use super::offset::{OFFSET_LEN, Offset};
use super::offsets::{Neighbors, Offsets, room_for};
use super::outline::Outline;
use crate::Error;
use crate::chunk::{self, EXTENDED_HEADER_LEN, Special};

/// The most chunks whose offsets fit into one chunk.
const MAX_CHUNKS: u64 = (i32::MAX as u64 - EXTENDED_HEADER_LEN as u64) / OFFSET_LEN;

/// What a change makes to be stored: bytes, and the place that the index gives them, which is a
/// number of bytes after the header or, in a directory, that of a file.
pub type Stores<'a> = Vec<(u64, Cow<'a, [u8]>)>;

/// What a chunk is after [`Outline::rearrange`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot<'a> {
    /// The one that has had this number.
    Kept(u64),
    /// One of zeros, which takes no room.
    Zeros,
    /// A new one.
    New(&'a [u8]),
}

/// Sizes of a chunk that is to be replaced or removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Bytes when decoded.
    pub nbytes: u32,
    /// Bytes where it is stored; 0 where the index says all of it.
    pub cbytes: u32,
}

impl Outline {
    /// Adds a chunk in front of that of this number, or behind the last one.
    ///
    /// Chunks may have different sizes; only the last one should be shorter than the others, so that
    /// readers can tell the chunk of an item without looking.
    ///
    /// # Errors
    /// [`Error::Format`] where `chunk` starts with no header of a chunk; [`Error::Argument`] where it is
    /// longer or shorter than that says, empty or lazy, where it has variable blocks and the others
    /// have not, where there are as many chunks as a frame can have, or where a part of the index was not
    /// [loaded](Self::load). Nothing has changed then.
    pub fn insert<'a>(
        &mut self,
        number: u64,
        chunk: impl Into<Cow<'a, [u8]>>,
    ) -> Result<Stores<'a>, Error> {
        let chunk = chunk.into();
        let count = self.nchunks();
        if number > count || count >= MAX_CHUNKS {
            let what = format!("chunk {number} among {count}; a frame has at most {MAX_CHUNKS}");
            return Err(Error::Argument(what));
        }
        let header = self.check_chunk(&chunk, count == 0)?;
        let nbytes = header.nbytes;
        let fixed = |size: u32| match number == count {
            true => self.nbytes_of(count - 1) == Some(size) && nbytes <= size,
            false => nbytes == size,
        };
        let chunksize = match self.header.chunksize {
            ChunkSize::Fixed(size) if count > 0 && !fixed(size) => ChunkSize::Variable,
            ChunkSize::Fixed(size) if count == 0 && nbytes > size => ChunkSize::Variable,
            ChunkSize::Unknown => ChunkSize::Fixed(nbytes),
            chunksize => chunksize,
        };
        let from = if number < count { number } else { count.saturating_sub(1) };
        let spelled = self.spell_out_all(chunksize, None)?;
        let (stored, special) = self.admit(&header, chunk, chunksize)?;
        self.decode(from, spelled.len() + 1)?;
        // Nothing fails any more.
        self.header.variable_blocks = header.variable_blocks;
        self.header.chunksize = chunksize;
        self.header.nbytes += u64::from(nbytes);
        let mut stores = Vec::new();
        let offset = self.place(stored, special, &mut stores);
        self.place_all(spelled, &mut stores);
        self.offsets.insert(number, offset);
        Ok(stores)
    }

    /// Replaces a chunk whose sizes were `was`.
    ///
    /// With `in_place` the new one goes to where the old one is, if it fits there.
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn replace<'a>(
        &mut self,
        number: u64,
        was: Sizes,
        chunk: &'a [u8],
        in_place: bool,
    ) -> Result<Stores<'a>, Error> {
        let count = self.nchunks();
        self.decode(0, 1)?;
        let old = self.offsets.decoded(number).ok_or_else(|| no_chunk(number, count))?;
        let header = self.check_chunk(chunk, count == 1)?;
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
        self.header.variable_blocks = header.variable_blocks;
        self.header.chunksize = chunksize;
        self.header.nbytes =
            self.header.nbytes.saturating_sub(was.nbytes.into()) + u64::from(nbytes);
        let around = self.around(old);
        let mut stores = Vec::new();
        let offset = match (old, around, stored) {
            (Offset::At(place), Some(Neighbors { is_shared: false, next, .. }), Some(bytes))
                if in_place && next.is_none_or(|next| bytes.len() as u64 <= next - place) =>
            {
                let end = place + bytes.len() as u64;
                self.header.cbytes = next.map_or(end, |_| self.header.cbytes.max(end));
                stores.push((place, bytes));
                old
            }
            (_, _, stored) => {
                self.vacate(old, around, was);
                self.place(stored, special, &mut stores)
            }
        };
        self.place_all(spelled, &mut stores);
        self.offsets.set(number, offset);
        Ok(stores)
    }

    /// Removes a chunk whose sizes were `was`.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is no such chunk, or where a part of the index was not [loaded](Self::load).
    pub fn remove(&mut self, number: u64, was: Sizes) -> Result<(), Error> {
        let count = self.nchunks();
        self.decode(0, 0)?;
        let old = self.offsets.decoded(number).ok_or_else(|| no_chunk(number, count))?;
        self.vacate(old, self.around(old), was);
        self.offsets.remove(number);
        self.header.nbytes = self.header.nbytes.saturating_sub(was.nbytes.into());
        if count == 1 {
            (self.header.nbytes, self.header.variable_blocks, self.header.chunksize) =
                (0, false, ChunkSize::Unknown);
        }
        Ok(())
    }

    /// Puts the chunks into another order: first the one whose number is `order[0]`, and so on.
    ///
    /// # Errors
    /// [`Error::Argument`] where `order` has not each number once, or where a part of the index was not
    /// [loaded](Self::load).
    pub fn reorder(&mut self, order: &[usize]) -> Result<Stores<'static>, Error> {
        let count = self.nchunks();
        let mut seen = vec![false; order.len()];
        let once =
            |&number: &usize| seen.get_mut(number).is_some_and(|seen| !mem::replace(seen, true));
        if order.len() as u64 != count || !order.iter().all(once) {
            let what = format!("an order of {} numbers for {count} chunks: each once", order.len());
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
        self.offsets.reorder(order);
        Ok(stores)
    }

    /// Makes the frame one of these chunks, each of `chunksize` bytes when decoded. Each old chunk is kept once or
    /// not at all: `dropped` are those that are not kept, with their sizes.
    ///
    /// # Errors
    /// [`Error::Argument`] where a chunk has another size, where one is kept twice, both kept and dropped or
    /// neither, or where there are more chunks than a frame can have; as [`insert`](Self::insert) for the new
    /// ones. Nothing has changed then.
    pub fn rearrange<'a>(
        &mut self,
        chunksize: u32,
        slots: &[Slot<'a>],
        dropped: &[(u64, Sizes)],
    ) -> Result<Stores<'a>, Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let (old_count, count) = (self.nchunks(), slots.len() as u64);
        if count > MAX_CHUNKS {
            return wrong(format!("{count} chunks: a frame has at most {MAX_CHUNKS}"));
        }
        if !chunksize.is_multiple_of(self.header.typesize) {
            let typesize = self.header.typesize;
            return wrong(format!("chunks of {chunksize} bytes: no whole items of {typesize}"));
        }
        if old_count > 0 && self.header.nbytes != old_count * u64::from(chunksize) {
            return wrong(format!("its chunks have not {chunksize} bytes each"));
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
            return wrong("of each chunk it has to be said whether it is kept".into());
        }
        let mut admitted = Vec::new();
        for slot in slots {
            let Slot::New(bytes) = *slot else { continue };
            let header = self.check_chunk(bytes, old_count == 0)?;
            if header.nbytes != chunksize || header.variable_blocks {
                let found = header.nbytes;
                return wrong(format!("a chunk of {found} bytes, expected {chunksize}"));
            }
            admitted.push(self.admit(&header, bytes, ChunkSize::new(chunksize))?);
        }
        self.decode(0, admitted.len())?;
        let is_zeros = count > 0 && slots.iter().all(|slot| *slot == Slot::Zeros);

        // Nothing fails any more.
        let kept_places = slots.iter().filter_map(|slot| match slot {
            Slot::Kept(number) => self.offsets.decoded(*number).and_then(Offset::place),
            _ => None,
        });
        let places =
            dropped.iter().filter_map(|&(number, _)| self.offsets.decoded(number)?.place());
        match (self.header.layout, kept_places.max()) {
            (Layout::Directory, _) => {
                places.for_each(|place| self.files.vacate(place));
                let sizes = dropped.iter().map(|(_, sizes)| u64::from(sizes.cbytes));
                self.header.cbytes = self.header.cbytes.saturating_sub(sizes.sum());
            }
            (Layout::Contiguous, None) => self.header.cbytes = 0,
            // What lies behind all that is kept is given free.
            (Layout::Contiguous, Some(last)) => {
                let behind = places.filter(|&place| place > last).min();
                self.header.cbytes = behind.unwrap_or(self.header.cbytes);
            }
        }
        let mut stores = Vec::new();
        let mut admitted = admitted.into_iter();
        let mut offsets = Offsets::Alike(Offset::Special(Special::Zeros), count);
        if !is_zeros {
            offsets = Offsets::default();
            for slot in slots {
                let offset = match slot {
                    Slot::Kept(number) => self.offsets.decoded(*number),
                    Slot::Zeros => Some(Offset::Special(Special::Zeros)),
                    Slot::New(_) => admitted
                        .next()
                        .map(|(stored, special)| self.place(stored, special, &mut stores)),
                };
                offset.into_iter().for_each(|offset| offsets.push(offset));
            }
        }
        self.offsets = offsets;
        (self.header.nbytes, self.header.chunksize) =
            (count * u64::from(chunksize), ChunkSize::new(chunksize));
        Ok(stores)
    }

    /// Makes all of an empty frame one value: `nbytes` bytes in chunks of `chunksize`. That takes no room.
    ///
    /// # Errors
    /// [`Error::Argument`] where there are chunks, where a size is no whole number of items, and for
    /// [`Special::Value`].
    pub fn fill(&mut self, special: Special, nbytes: u64, chunksize: u32) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let typesize = self.header.typesize;
        if self.nchunks() > 0 || special == Special::Value {
            return wrong("zeros, NaN or nothing can fill a frame without chunks".into());
        }
        let whole = chunksize.is_multiple_of(typesize) && nbytes.is_multiple_of(typesize.into());
        if chunksize < typesize || !whole {
            let what =
                format!("{nbytes} bytes in chunks of {chunksize}: no whole items of {typesize}");
            return wrong(what);
        }
        if special == Special::Nan && ![4, 8].contains(&typesize) {
            return wrong(format!("NaN of {typesize} bytes: it has 4 or 8"));
        }
        if special == Special::Nan && self.cuts_items() {
            let blocksize = self.header.blocksize;
            return wrong(format!("NaN of {typesize} bytes in blocks of {blocksize}"));
        }
        let count = nbytes.div_ceil(chunksize.into());
        if count > MAX_CHUNKS {
            return wrong(format!("{count} chunks: a frame has at most {MAX_CHUNKS}"));
        }
        // The parameters have to fit a chunk of that size, and give the size of its blocks.
        let sample = chunk::special(&self.params(), special, chunksize as usize, &[])?;
        let sample = chunk::Header::parse(&sample)?;
        if count > 0 {
            self.offsets = Offsets::Alike(Offset::Special(special), count);
            (self.header.nbytes, self.header.chunksize) = (nbytes, ChunkSize::Fixed(chunksize));
            self.header.blocksize = sample.blocksize;
        }
        Ok(())
    }

    /// The chunks that stand for special offsets, all but that of one number, where sizes begin to vary:
    /// the index cannot say then how long they are.
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

    /// Decodes the offsets that a change needs: those from chunk `from` on, and all for the names of `count` new files.
    fn decode(&mut self, from: u64, count: usize) -> Result<(), Error> {
        if self.header.layout == Layout::Contiguous {
            return self.offsets.decode(from);
        }
        self.offsets.decode(0)?;
        self.files.find(&self.offsets, count)
    }

    /// Gives a chunk its place.
    fn place<'a>(
        &mut self,
        stored: Option<Cow<'a, [u8]>>,
        special: Option<Special>,
        stores: &mut Stores<'a>,
    ) -> Offset {
        let Some(bytes) = stored else { return Offset::Special(special.unwrap_or(Special::Zeros)) };
        let place = match self.header.layout {
            Layout::Contiguous => self.header.cbytes,
            Layout::Directory => self.files.number(),
        };
        self.header.cbytes += bytes.len() as u64;
        stores.push((place, bytes));
        Offset::At(place)
    }

    /// Gives places to the chunks that stood in the index alone.
    fn place_all<'a>(&mut self, chunks: Vec<(u64, Vec<u8>)>, stores: &mut Stores<'a>) {
        for (number, bytes) in chunks {
            let offset = self.place(Some(bytes.into()), None, stores);
            self.offsets.set(number, offset);
        }
    }

    /// What is around a chunk in a contiguous frame.
    fn around(&self, offset: Offset) -> Option<Neighbors> {
        let place = offset.place().filter(|_| self.header.layout == Layout::Contiguous)?;
        Some(self.offsets.neighbors(place))
    }

    /// Takes account of a chunk that will no longer be there.
    fn vacate(&mut self, old: Offset, around: Option<Neighbors>, was: Sizes) {
        let Some(place) = old.place() else { return };
        let Some(Neighbors { last, .. }) = around else {
            self.files.vacate(place);
            self.header.cbytes = self.header.cbytes.saturating_sub(was.cbytes.into());
            return;
        };
        // What lies behind all others is given free; other gaps stay until the frame is copied.
        match last {
            None => self.header.cbytes = 0,
            Some(last) if last < place => self.header.cbytes = place,
            Some(_) => {}
        }
    }
}

fn no_chunk(number: u64, count: u64) -> Error {
    Error::Argument(format!("there is no chunk {number}, only {count}"))
}
