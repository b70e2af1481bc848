//! The offsets of all chunks, decoded block by block on demand.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::offset::{NOWHERE, OFFSET_LEN, Offset};
use super::rules;
use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN, Encoder, First, Params, SplitMode};
use crate::{Error, FormatError, Limits, ReadAt};

/// The block size of the index in the C library, in bytes.
pub(crate) const BLOCKSIZE: u32 = 16 * 1024;
/// The number of offsets per block.
pub(super) const PER_BLOCK: usize = BLOCKSIZE as usize / OFFSET_LEN as usize;
/// Marks the statement of an index chunk about the end of the chunks, between the block starts and the
/// first block: the mark, the CRC-32C of the end, and the end (little-endian). The bytes from this end to
/// the index are unused, see [`Outline::seal`](super::Outline::seal). Other programs ignore the statement,
/// and encode the complete index when they change the frame.
const SPARE: [u8; 4] = *b"b2sp";
/// The number of bytes of the statement.
pub(crate) const SPARE_LEN: usize = 16;
/// The number of bytes in memory per chunk, for its index entry and for the sorted list of a check.
pub(crate) const HELD_LEN: u64 = 24;

/// The parameters that the C library compresses the offsets with.
const PARAMS: Params = Params {
    codec: 0,
    codec_meta: 0,
    level: 5,
    typesize: OFFSET_LEN as u32,
    blocksize: Some(BLOCKSIZE),
    filters: [0, 0, 0, 0, 0, 1],
    filters_meta: [0; chunk::MAX_FILTERS],
    split: SplitMode::Never,
};

/// The offsets of the chunks.
#[derive(Debug, Clone)]
pub(crate) enum Offsets {
    Each(Blocks),
    /// The same offset for all chunks, which takes constant memory.
    Alike(Offset, u64),
}

/// Offsets in blocks of 2,048. Clones share their unchanged blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blocks {
    count: usize,
    blocks: Vec<Block>,
    /// The source of the blocks that are not decoded or not changed.
    stored: Stored,
    /// Whether entries have changed since the index chunk was read or written.
    changed: bool,
    /// The end of the chunks in the index chunk that was read or written last.
    spare: Option<u64>,
    scratch: Scratch,
}

/// A reusable encoder of index chunks. Reuse saves the time for clearing its memory, which exceeds
/// the time for encoding a short index. Clones of the offsets have no encoder.
#[derive(Debug, Default)]
struct Scratch(Option<Box<Encoder>>);

impl Clone for Scratch {
    fn clone(&self) -> Self {
        Self(None)
    }
}

/// A block that is decoded on demand.
#[derive(Debug, Clone)]
struct Block {
    numbers: OnceLock<Arc<Vec<i64>>>,
    /// The lowest and the highest position; `None` without a stored chunk.
    bounds: OnceLock<Option<(u64, u64)>>,
    /// The bytes of the block in the index chunk; empty if the block has changed.
    bytes: Range<u32>,
}

/// The index chunk.
#[derive(Debug, Clone, Default)]
enum Stored {
    #[default]
    None,
    InSource(Place),
    InMemory(Arc<[u8]>, Place),
}

/// An index chunk within a source.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) at: u64,
    pub(crate) header: [u8; EXTENDED_HEADER_LEN],
    /// The highest position that a chunk can have; `None` if no chunk is stored.
    pub(crate) max: Option<u64>,
}

/// The bytes in which an index chunk differs from the stored index chunk. Returned by
/// [`Outline::index_patch`](super::Outline::index_patch).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexPatch {
    /// The size of the index chunk, in bytes.
    pub len: usize,
    /// The bytes, with their offsets in the index chunk, in ascending order.
    pub writes: Vec<(u32, Vec<u8>)>,
}

/// The neighbors of a position in a frame.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Neighbors {
    /// Whether several offsets refer to the position.
    pub(crate) is_shared: bool,
    /// The next higher position.
    pub(crate) next: Option<u64>,
    /// The highest other position.
    pub(crate) last: Option<u64>,
}

impl Default for Offsets {
    fn default() -> Self {
        Self::Each(Blocks::default())
    }
}

impl Offsets {
    /// Creates the offsets of a decoded index chunk, which states the end `spare` of the chunks.
    pub(crate) fn of_entries(numbers: &[i64], spare: Option<u64>) -> Self {
        let mut blocks = Blocks { spare, ..Blocks::default() };
        blocks.extend(numbers);
        Self::Each(blocks)
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Each(blocks) => blocks.count as u64,
            Self::Alike(_, count) => *count,
        }
    }

    /// Returns the number of bytes that the offsets can occupy, including the memory that a check
    /// needs to iterate over them.
    pub(crate) fn held(&self) -> u64 {
        match self {
            Self::Each(blocks) => HELD_LEN * blocks.count as u64,
            Self::Alike(..) => 0,
        }
    }

    /// Returns the offset of a chunk, or `None` if there is no chunk at this index. Reads the
    /// offset from `source` if necessary.
    pub(crate) fn get<R: ReadAt + ?Sized>(
        &self,
        number: u64,
        source: &R,
    ) -> Result<Option<Offset>, Error> {
        match self {
            Self::Alike(offset, count) => Ok((number < *count).then_some(*offset)),
            Self::Each(blocks) => {
                let number = usize::try_from(number).ok().filter(|&number| number < blocks.count);
                let Some(number) = number else { return Ok(None) };
                let numbers = blocks.numbers(number / PER_BLOCK, source)?;
                Ok(numbers.get(number % PER_BLOCK).copied().and_then(Offset::of))
            }
        }
    }

    /// Returns the offset if it is already decoded.
    #[inline]
    pub(crate) fn decoded(&self, number: u64) -> Option<Offset> {
        match self {
            Self::Alike(offset, count) => (number < *count).then_some(*offset),
            Self::Each(blocks) => {
                let number = usize::try_from(number).ok()?;
                let block = blocks.blocks.get(number / PER_BLOCK)?.numbers.get()?;
                Offset::of(*block.get(number % PER_BLOCK)?)
            }
        }
    }

    /// Reads the index chunk, so that `source` is not needed any more.
    pub(crate) fn load<R: ReadAt + ?Sized>(&mut self, source: &R) -> Result<(), Error> {
        let Self::Each(blocks) = self else { return Ok(()) };
        let Stored::InSource(place) = blocks.stored else { return Ok(()) };
        let len = u32_at(&place.header, 12);
        blocks.stored = Stored::InMemory(source.read_vec_at(place.at, len.into())?.into(), place);
        Ok(())
    }

    /// Decodes the offsets from chunk `from` on, for the functions below.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the index is not [loaded](Self::load);
    /// - [`Error::Format`]: the index is invalid.
    pub(crate) fn decode(&self, from: u64) -> Result<(), Error> {
        let Self::Each(blocks) = self else { return Ok(()) };
        let first = from / PER_BLOCK as u64;
        (first as usize..blocks.blocks.len()).try_for_each(|block| blocks.loaded(block).map(drop))
    }

    /// Returns the entries of the index, or a single entry if all entries are equal.
    fn numbers(&self) -> impl Iterator<Item = i64> {
        let (alike, blocks) = match self {
            Self::Alike(offset, count) => ((*count > 0).then_some(offset.number()), &[][..]),
            Self::Each(blocks) => (None, &blocks.blocks[..]),
        };
        alike.into_iter().chain(blocks.iter().flat_map(Block::decoded).copied())
    }

    /// Returns whether the whole index is in memory.
    pub(crate) fn is_loaded(&self) -> bool {
        !matches!(self, Self::Each(Blocks { stored: Stored::InSource(_), .. }))
    }

    /// Returns the positions of all stored chunks.
    pub(crate) fn places(&self) -> impl Iterator<Item = u64> {
        self.numbers().filter_map(|number| u64::try_from(number).ok())
    }

    /// Returns the stored chunks as positions and indices, ordered by position.
    pub(crate) fn by_place(&self) -> impl ExactSizeIterator<Item = (u64, u64)> {
        let place = |number: u32| self.decoded(number.into()).and_then(Offset::place);
        // An index is smaller than 2 GiB, which limits the number of chunks.
        let count = match self {
            Self::Each(blocks) => u32::try_from(blocks.count).unwrap_or(u32::MAX),
            // The check of the index reports if all chunks have the same position.
            Self::Alike(_, count) => u32::from(*count > 0),
        };
        let mut numbers: Vec<u32> = (0..count).filter(|&number| place(number).is_some()).collect();
        numbers.sort_unstable_by_key(|&number| (place(number), number));
        numbers.into_iter().map(move |number| (place(number).unwrap_or(NOWHERE), number.into()))
    }

    /// Returns the neighbors of a position. The offsets must be decoded.
    pub(crate) fn neighbors(&self, place: u64) -> Neighbors {
        let mut found = Neighbors::default();
        let (mut same, mut before) = (0, None);
        let mut look = |other: u64, count: usize| match other.cmp(&place) {
            Ordering::Less => before = before.max(Some(other)),
            Ordering::Equal => same += count,
            Ordering::Greater => {
                found.next = Some(found.next.map_or(other, |next| next.min(other)));
                found.last = found.last.max(Some(other));
            }
        };
        match self {
            Self::Alike(offset, count) => {
                offset.place().into_iter().for_each(|other| look(other, *count as usize));
            }
            Self::Each(blocks) => {
                for block in &blocks.blocks {
                    let Some((low, high)) = block.bounds() else { continue };
                    if low <= place && place <= high {
                        places(block.decoded()).for_each(|other| look(other, 1));
                    } else {
                        look(low, 1);
                        look(high, 1);
                    }
                }
            }
        }
        found.is_shared = same > 1;
        found.next = found.next.filter(|&next| next < NOWHERE);
        found.last = found.last.or(if found.is_shared { Some(place) } else { before });
        found
    }

    /// Changes the offset of an existing chunk.
    pub(crate) fn set(&mut self, number: u64, offset: Offset) {
        if self.decoded(number) == Some(offset) {
            return;
        }
        let number = number as usize;
        let block = self.blocks().change(number / PER_BLOCK);
        block[number % PER_BLOCK] = offset.number();
    }

    /// Appends an offset.
    pub(crate) fn push(&mut self, offset: Offset) {
        self.insert(self.len(), offset);
    }

    /// Inserts an offset before the offset of the chunk at index `number`, or appends it.
    pub(crate) fn insert(&mut self, number: u64, offset: Offset) {
        let blocks = self.blocks();
        let (first, mut at) = (number as usize / PER_BLOCK, number as usize % PER_BLOCK);
        let mut number = offset.number();
        blocks.count += 1;
        blocks.changed = true;
        for block in first..blocks.blocks.len() {
            let numbers = blocks.change(block);
            numbers.insert(at, number);
            if numbers.len() <= PER_BLOCK {
                return;
            }
            // The last entry moves to the next block.
            number = numbers.pop().unwrap_or_default();
            at = 0;
        }
        blocks.blocks.push(Block::new(vec![number]));
    }

    /// Removes the offset of an existing chunk.
    pub(crate) fn remove(&mut self, number: u64) {
        let blocks = self.blocks();
        let (first, at) = (number as usize / PER_BLOCK, number as usize % PER_BLOCK);
        blocks.count -= 1;
        blocks.change(first).remove(at);
        for block in first + 1..blocks.blocks.len() {
            let moved = blocks.change(block).remove(0);
            blocks.change(block - 1).push(moved);
        }
        blocks.blocks.truncate(blocks.count.div_ceil(PER_BLOCK));
    }

    /// Removes the offsets of existing chunks from index `count` on.
    pub(crate) fn truncate(&mut self, count: u64) {
        let blocks = match self {
            _ if count == 0 => return *self = Self::default(),
            Self::Alike(_, old) => return *old = count,
            Self::Each(blocks) => blocks,
        };
        blocks.count = count as usize;
        blocks.changed = true;
        blocks.blocks.truncate(blocks.count.div_ceil(PER_BLOCK));
        let rest = blocks.count % PER_BLOCK;
        if rest > 0 {
            blocks.change(blocks.count / PER_BLOCK).truncate(rest);
        }
    }

    /// Reorders the offsets by a permutation of the indices.
    pub(crate) fn reorder(&mut self, order: &[usize]) {
        let mut new = Self::default();
        let offsets = order.iter().filter_map(|&number| self.decoded(number as u64));
        offsets.for_each(|offset| new.push(offset));
        *self = new;
    }

    /// Returns whether another frame in `source` has the same offsets. Compares only those offsets
    /// that are decoded.
    pub(crate) fn is_same<R: ReadAt + ?Sized>(
        &self,
        other: &Self,
        source: &R,
    ) -> Result<bool, Error> {
        match (self, other) {
            (Self::Alike(offset, count), Self::Alike(other, others)) => {
                Ok((offset, count) == (other, others))
            }
            (Self::Each(blocks), Self::Each(others)) if blocks.count == others.count => {
                if let (false, Stored::InMemory(chunk, _), Stored::InMemory(other, _)) =
                    (blocks.changed, &blocks.stored, &others.stored)
                {
                    return Ok(chunk == other);
                }
                for (number, block) in blocks.blocks.iter().enumerate() {
                    let Some(numbers) = block.numbers.get() else {
                        if block.bytes != others.blocks[number].bytes {
                            return Ok(false);
                        }
                        continue;
                    };
                    if numbers[..] != *others.numbers(number, source)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Returns the index chunk; empty if there are no chunks. Blocks that did not change since the
    /// last read or write are reused. `spare` is the end of the chunks, if unused bytes follow it.
    pub(crate) fn encode(&mut self, spare: Option<u64>) -> Result<Arc<[u8]>, Error> {
        let len = self.len() as usize * OFFSET_LEN as usize;
        match self {
            _ if len == 0 => Ok(Arc::default()),
            // The C library writes this form of the index for special values only.
            Self::Alike(offset @ Offset::Special(_), _) => {
                let value = offset.number().to_le_bytes();
                Ok(chunk::special(&PARAMS, chunk::Special::Value, len, &value)?.into())
            }
            _ => self.blocks().encode(len, spare),
        }
    }

    /// Returns the changes of the index chunk that is stored at the position `at` of the source.
    /// Later reads expect that they are stored. Returns `None` if the whole index chunk has to be
    /// [encoded](Self::encode). The cost depends only on the number of changed blocks.
    pub(crate) fn patch(
        &mut self,
        at: u64,
        spare: Option<u64>,
    ) -> Result<Option<IndexPatch>, Error> {
        match self {
            Self::Alike(..) => Ok(None),
            Self::Each(blocks) => blocks.patch(at, spare),
        }
    }

    /// Returns the size of the index chunk that was read or written last, in bytes; 0 if it is not known.
    pub(crate) fn stored_len(&self) -> u64 {
        match self {
            Self::Each(Blocks {
                stored: Stored::InSource(place) | Stored::InMemory(_, place),
                ..
            }) => u32_at(&place.header, 12).into(),
            _ => 0,
        }
    }

    /// Returns the end of the chunks that the stored index chunk states, see [`SPARE`].
    pub(crate) fn spare(&self) -> Option<u64> {
        match self {
            Self::Alike(..) => None,
            Self::Each(blocks) => blocks.spare,
        }
    }

    /// Returns the individual offsets, for a change.
    fn blocks(&mut self) -> &mut Blocks {
        if let Self::Alike(offset, count) = *self {
            *self = Self::Each(Blocks::repeated(offset, count as usize));
        }
        match self {
            Self::Each(blocks) => blocks,
            Self::Alike(..) => unreachable!("they were made single"),
        }
    }
}

impl Blocks {
    /// Creates the offsets from the blocks of an index chunk at these byte ranges. `chunk` is the
    /// index chunk, if it is in memory.
    pub(crate) fn stored(
        count: usize,
        place: Place,
        chunk: Option<Arc<[u8]>>,
        blocks: Vec<Range<u32>>,
        spare: Option<u64>,
    ) -> Self {
        let block = |bytes| Block { numbers: OnceLock::new(), bounds: OnceLock::new(), bytes };
        let blocks = blocks.into_iter().map(block).collect();
        let stored = match chunk {
            Some(chunk) => Stored::InMemory(chunk, place),
            None => Stored::InSource(place),
        };
        Self { count, blocks, stored, spare, ..Self::default() }
    }

    /// Creates equal offsets; full blocks share their memory.
    fn repeated(offset: Offset, count: usize) -> Self {
        let full = Block::new(vec![offset.number(); PER_BLOCK.min(count)]);
        let mut blocks = Self::default();
        blocks.blocks = vec![full; count / PER_BLOCK];
        blocks.count = blocks.blocks.len() * PER_BLOCK;
        blocks.extend(&vec![offset.number(); count % PER_BLOCK]);
        blocks
    }

    /// Appends blocks after the last block, which must be full.
    fn extend(&mut self, numbers: &[i64]) {
        self.blocks.extend(numbers.chunks(PER_BLOCK).map(|block| Block::new(block.to_vec())));
        self.count += numbers.len();
        self.changed = true;
    }

    /// Returns the entries of a block, and decodes it if necessary.
    fn numbers<R: ReadAt + ?Sized>(&self, block: usize, source: &R) -> Result<&[i64], Error> {
        let Block { numbers, bytes, .. } = &self.blocks[block];
        if let Some(numbers) = numbers.get() {
            return Ok(numbers);
        }
        let (bytes, place) = match &self.stored {
            Stored::InSource(place) => (Cow::from(place.read(block, bytes, source)?), place),
            Stored::InMemory(chunk, place) => {
                (Cow::from(&chunk[bytes.start as usize..bytes.end as usize]), place)
            }
            Stored::None => unreachable!("what is nowhere else is decoded"),
        };
        let count = PER_BLOCK.min(self.count - block * PER_BLOCK);
        let decoded = place.decode(&bytes, count)?;
        Ok(numbers.get_or_init(|| Arc::new(decoded)))
    }

    /// Returns the entries of a block that is decoded, or whose index is [loaded](Offsets::load).
    fn loaded(&self, block: usize) -> Result<&[i64], Error> {
        if let Some(numbers) = self.blocks[block].numbers.get() {
            return Ok(numbers);
        }
        self.check_loaded()?;
        self.numbers(block, &[][..])
    }

    fn check_loaded(&self) -> Result<(), Error> {
        match self.stored {
            Stored::InSource(_) => {
                Err(Error::Argument("the index has to be loaded before it is changed".into()))
            }
            _ => Ok(()),
        }
    }

    /// Returns the entries of a decoded block for a change.
    fn change(&mut self, block: usize) -> &mut Vec<i64> {
        self.changed = true;
        let block = &mut self.blocks[block];
        (block.bytes, block.bounds) = (0..0, OnceLock::new());
        match block.numbers.get_mut() {
            Some(numbers) => Arc::make_mut(numbers),
            None => unreachable!("it was decoded for the change"),
        }
    }

    /// Returns the index chunk, of `len` bytes when decoded.
    fn encode(&mut self, len: usize, spare: Option<u64>) -> Result<Arc<[u8]>, Error> {
        self.check_loaded()?;
        let is_same = !self.changed && self.spare == spare;
        let (old, place): (&[u8], _) = match &self.stored {
            Stored::InMemory(chunk, _) if is_same => return Ok(Arc::clone(chunk)),
            Stored::InMemory(chunk, place) => (chunk, Some(*place)),
            _ => (&[], None),
        };
        let mut encoder = match self.scratch.0.take() {
            Some(encoder) => encoder,
            None => Encoder::new(PARAMS)?.into(),
        };
        let blocks = self.blocks.iter().map(|Block { numbers, bytes, .. }| match numbers.get() {
            Some(numbers) if bytes.is_empty() => chunk::Block::Data(bytes_of(numbers).into()),
            _ => chunk::Block::Encoded(&old[bytes.start as usize..bytes.end as usize]),
        });
        let encoded = match self.blocks.len() {
            1 => None,
            _ => encoder.encode_with(len, blocks)?,
        };
        self.spare = None;
        let chunk: Arc<[u8]> = match encoded {
            Some(mut chunk) => {
                self.spare = spare.filter(|&end| insert_spare(&mut chunk, self.blocks.len(), end));
                chunk.into()
            }
            // The index is short, or incompressible.
            None => {
                let mut data = room_for(len)?;
                for block in 0..self.blocks.len() {
                    data.extend(bytes_of(self.loaded(block)?));
                }
                encoder.encode(&data)?.into()
            }
        };
        let header = chunk::Header::parse(&chunk)?;
        let table = chunk.get(EXTENDED_HEADER_LEN..).unwrap_or_default();
        match ranges(&header, table) {
            Some(ranges) => {
                for (block, bytes) in self.blocks.iter_mut().zip(ranges) {
                    block.bytes = bytes;
                }
            }
            None => self.blocks.iter_mut().for_each(|block| block.bytes = 0..0),
        }
        let place = place.unwrap_or(Place { at: 0, header: [0; EXTENDED_HEADER_LEN], max: None });
        let place = Place { header: array(&chunk), ..place };
        self.stored = Stored::InMemory(Arc::clone(&chunk), place);
        (self.changed, self.scratch) = (false, Scratch(Some(encoder)));
        Ok(chunk)
    }

    /// See [`Offsets::patch`]. Changes of the last blocks keep the positions of the other blocks.
    fn patch(&mut self, at: u64, spare: Option<u64>) -> Result<Option<IndexPatch>, Error> {
        let (Stored::InSource(place) | Stored::InMemory(_, place)) = &self.stored else {
            return Ok(None);
        };
        if !self.changed && self.spare == spare {
            let len = u32_at(&place.header, 12) as usize;
            return Ok(Some(IndexPatch { len, writes: Vec::new() }));
        }
        let table = EXTENDED_HEADER_LEN + 4 * self.blocks.len();
        let stored = u32_at(&place.header, 4).div_ceil(BLOCKSIZE) as usize;
        let kept = self.blocks.iter().take_while(|block| !block.bytes.is_empty()).count();
        let first = self.blocks.first().map_or(0, |block| block.bytes.start);
        let has_space = spare.is_none() || first as usize >= table + SPARE_LEN;
        let changed = &self.blocks[kept..];
        if kept == 0 || self.blocks.len() != stored || !has_space {
            return Ok(None);
        }
        if changed.iter().any(|block| !block.bytes.is_empty() || block.numbers.get().is_none()) {
            return Ok(None);
        }
        let mut place = Place { at, ..*place };
        let (mut writes, start) = (Vec::new(), self.blocks[kept - 1].bytes.end);
        let mut end = start;
        if !changed.is_empty() {
            let mut encoder = match self.scratch.0.take() {
                Some(encoder) => encoder,
                None => Encoder::new(PARAMS)?.into(),
            };
            // An empty first block replaces all unchanged ones.
            let data = changed.iter().map(|block| bytes_of(block.decoded()).into());
            let blocks =
                [chunk::Block::Encoded(&[])].into_iter().chain(data.map(chunk::Block::Data));
            let entries: usize = changed.iter().map(|block| block.decoded().len()).sum();
            let len = BLOCKSIZE as usize + entries * OFFSET_LEN as usize;
            let encoded = encoder.encode_with(len, blocks)?;
            self.scratch = Scratch(Some(encoder));
            let count = 1 + self.blocks.len() - kept;
            let Some(encoded) = encoded else { return Ok(None) };
            let streams = EXTENDED_HEADER_LEN + 4 * count;
            if encoded.len() <= streams {
                return Ok(None);
            }
            let nbytes = (self.count * OFFSET_LEN as usize) as u32;
            end = start + (encoded.len() - streams) as u32;
            if end > nbytes {
                return Ok(None);
            }
            let mut starts: Vec<u32> = (1..count)
                .map(|block| {
                    u32_at(&encoded, EXTENDED_HEADER_LEN + 4 * block) - streams as u32 + start
                })
                .collect();
            place.header[4..8].copy_from_slice(&nbytes.to_le_bytes());
            place.header[12..16].copy_from_slice(&end.to_le_bytes());
            writes.push((0, place.header.to_vec()));
            if count > 2 {
                let table = starts.iter().flat_map(|start| start.to_le_bytes()).collect();
                writes.push(((EXTENDED_HEADER_LEN + 4 * kept) as u32, table));
            }
            writes.push((start, encoded[streams..].to_vec()));
            starts.push(end);
            for (block, range) in self.blocks[kept..].iter_mut().zip(starts.windows(2)) {
                block.bytes = range[0]..range[1];
            }
            // The index chunk in memory does not contain these blocks.
            self.stored = Stored::InSource(place);
        }
        if spare != self.spare {
            writes.extend(spare.map(|end| (table as u32, spare_bytes(end).to_vec())));
            writes.sort_unstable_by_key(|(at, _)| *at);
            self.spare = spare;
        }
        self.changed = false;
        Ok(Some(IndexPatch { len: end as usize, writes }))
    }
}

impl Block {
    /// Returns the lowest and the highest position of a decoded block; `None` without a stored chunk.
    fn bounds(&self) -> Option<(u64, u64)> {
        *self.bounds.get_or_init(|| {
            let low = places(self.decoded()).min()?;
            Some((low, places(self.decoded()).max()?))
        })
    }

    /// Returns the entries, empty if the block is not decoded.
    fn decoded(&self) -> &[i64] {
        self.numbers.get().map_or(&[], |numbers| numbers)
    }

    fn new(numbers: Vec<i64>) -> Self {
        Self { numbers: Arc::new(numbers).into(), bounds: OnceLock::new(), bytes: 0..0 }
    }
}

impl Place {
    /// Reads a block, whose position has not changed since the index was found.
    fn read<R: ReadAt + ?Sized>(
        &self,
        block: usize,
        bytes: &Range<u32>,
        source: &R,
    ) -> Result<Vec<u8>, Error> {
        let (mut header, mut start) = ([0; EXTENDED_HEADER_LEN], [0; 4]);
        let at = |offset: u64| self.at.saturating_add(offset);
        let mut block_bytes = vec![0; bytes.len()];
        source.read_ranges_at(&mut [
            (at(0), &mut header),
            (at((EXTENDED_HEADER_LEN + 4 * block) as u64), &mut start),
            (at(bytes.start.into()), &mut block_bytes),
        ])?;
        if header == self.header && u32::from_le_bytes(start) == bytes.start {
            return Ok(block_bytes);
        }
        let expected = format!("block {block} at byte {}, as when it was opened", bytes.start);
        Err(FormatError::of(&rules::INDEX_CHUNK, self.at, expected, "another index").into())
    }

    /// Decodes a block of `count` offsets as a chunk with a single block.
    fn decode(&self, block: &[u8], count: usize) -> Result<Vec<i64>, Error> {
        let (start, nbytes) = (EXTENDED_HEADER_LEN as u32 + 4, count as u32 * OFFSET_LEN as u32);
        let mut bytes = self.header.to_vec();
        for (at, size) in [(4, nbytes), (8, nbytes), (12, start + block.len() as u32)] {
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
        }
        bytes.extend(start.to_le_bytes());
        bytes.extend(block);
        let moved = |error| match error {
            Error::Format(error) => error.moved(self.at).into(),
            error => error,
        };
        let chunk = Chunk::new(&bytes, &Limits::default()).map_err(moved)?;
        let end = chunk.walk(0, &mut First::default(), |_| ());
        if end.is_some_and(|end| end != bytes.len()) {
            let found = format!("{} bytes more", bytes.len() - end.unwrap_or(0));
            return Err(FormatError::of(
                &rules::INDEX_CHUNK,
                self.at,
                "one stream in a block",
                found,
            )
            .into());
        }
        let mut data = vec![0; nbytes as usize];
        Decoder::default().decode(&chunk, &mut data).map_err(moved)?;
        let numbers: Vec<i64> =
            data.as_chunks().0.iter().map(|number| i64::from_le_bytes(*number)).collect();
        let is_right = |number: &&i64| match Offset::of(**number) {
            Some(Offset::At(place)) => self.max.is_some_and(|max| place <= max),
            special => special.is_some(),
        };
        match numbers.iter().find(|number| !is_right(number)) {
            Some(wrong) => {
                let expected = format!("a special offset, or at most {}", self.max.unwrap_or(0));
                Err(FormatError::of(&rules::OFFSET, self.at, expected, format!("{wrong:#x}"))
                    .into())
            }
            None => Ok(numbers),
        }
    }
}

/// Returns the byte ranges of the blocks in an index chunk. Returns `None` if the chunk has one
/// block, or if the C library does not write index chunks of this form.
///
/// `table` starts with the block starts.
pub(crate) fn ranges(header: &chunk::Header, table: &[u8]) -> Option<Vec<Range<u32>>> {
    let flags = header.memcpyed
        || header.split
        || header.variable_blocks
        || header.dictionary
        || header.big_endian
        || header.lazy
        || header.instrumented;
    let params = header.extended
        && header.version == 5
        && header.special.is_none()
        && [header.codec_format, header.user_codec, header.codec_meta] == [0; 3]
        && u32::from(header.typesize) == PARAMS.typesize
        && (header.filters, header.filters_meta) == (PARAMS.filters, PARAMS.filters_meta);
    if flags || !params || header.blocksize != BLOCKSIZE || header.nbytes <= BLOCKSIZE {
        return None;
    }
    let table = table.get(..4 * header.nblocks() as usize)?;
    let starts = table.as_chunks().0.iter().map(|start| u32::from_le_bytes(*start));
    let ends = starts.clone().skip(1).chain([header.cbytes]);
    let ranges: Vec<_> = starts.zip(ends).map(|(start, end)| start..end).collect();
    let data = (EXTENDED_HEADER_LEN + table.len()) as u32;
    // A block is never longer than its data and its size field.
    let is_right = |range: &Range<u32>| {
        let len = range.end.checked_sub(range.start);
        range.start >= data && len.is_some_and(|len| (4..=BLOCKSIZE + 4).contains(&len))
    };
    ranges.iter().all(is_right).then_some(ranges)
}

/// Returns the bytes that state the end of the chunks.
fn spare_bytes(end: u64) -> [u8; SPARE_LEN] {
    let mut bytes = [0; SPARE_LEN];
    bytes[..4].copy_from_slice(&SPARE);
    bytes[8..].copy_from_slice(&end.to_le_bytes());
    let crc = crc32c::crc32c(&bytes[8..]);
    bytes[4..8].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// Returns the end of the chunks that an index chunk states, at most `max`. `table` starts with the
/// block starts.
pub(crate) fn spare_of(header: &chunk::Header, table: &[u8], max: u64) -> Option<u64> {
    let first = ranges(header, table)?.first()?.start as usize;
    let at = 4 * header.nblocks() as usize;
    let stated = table.get(at..at + SPARE_LEN)?;
    let end = u64::from_le_bytes(*stated.last_chunk()?);
    let is_stated = first >= EXTENDED_HEADER_LEN + at + SPARE_LEN && stated == spare_bytes(end);
    (is_stated && end <= max).then_some(end)
}

/// Returns the number of bytes in which `chunk` states the end of the chunks. Returns 0 if it is not an
/// index chunk with this statement.
pub(super) fn marked_len(chunk: &[u8]) -> usize {
    let header = chunk::Header::parse(chunk).ok();
    let spare = header.zip(chunk.get(EXTENDED_HEADER_LEN..));
    spare.and_then(|(header, table)| spare_of(&header, table, u64::MAX)).map_or(0, |_| SPARE_LEN)
}

/// Inserts the end of the chunks into an index chunk with this number of blocks. Returns whether this
/// was possible.
fn insert_spare(chunk: &mut Vec<u8>, blocks: usize, end: u64) -> bool {
    let table = EXTENDED_HEADER_LEN + 4 * blocks;
    let len = chunk.len() + SPARE_LEN;
    if blocks < 2 || chunk.len() <= table || len > u32_at(chunk, 4) as usize {
        return false;
    }
    for at in (EXTENDED_HEADER_LEN..table).step_by(4) {
        let start = u32_at(chunk, at) + SPARE_LEN as u32;
        chunk[at..at + 4].copy_from_slice(&start.to_le_bytes());
    }
    chunk[12..16].copy_from_slice(&(len as u32).to_le_bytes());
    chunk.splice(table..table, spare_bytes(end));
    true
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..)
        .and_then(|bytes| bytes.first_chunk())
        .map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the positions among entries of the index.
fn places(numbers: &[i64]) -> impl Iterator<Item = u64> {
    numbers.iter().filter_map(|&number| u64::try_from(number).ok())
}

fn bytes_of(numbers: &[i64]) -> Vec<u8> {
    let mut bytes = vec![0; numbers.len() * OFFSET_LEN as usize];
    for (bytes, number) in bytes.as_chunks_mut().0.iter_mut().zip(numbers) {
        *bytes = number.to_le_bytes();
    }
    bytes
}

fn array(chunk: &[u8]) -> [u8; EXTENDED_HEADER_LEN] {
    chunk.first_chunk().copied().unwrap_or([0; EXTENDED_HEADER_LEN])
}

/// Allocates a vector for `count` entries. Returns an error if the allocation fails: a few bytes of
/// a file can encode millions of chunks.
pub(super) fn room_for<T>(count: usize) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    match all.try_reserve_exact(count) {
        Ok(()) => Ok(all),
        Err(_) => Err(std::io::Error::from(std::io::ErrorKind::OutOfMemory).into()),
    }
}

#[cfg(test)]
#[path = "offsets_tests.rs"]
mod tests;
