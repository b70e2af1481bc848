//! Everything of a frame but its chunks, to be changed and written anew.

use std::borrow::Cow;
use std::mem;

use super::header::{Layout, MIN_HEADER_LEN};
use super::index::{INDEX_BLOCKSIZE, OFFSET_LEN, Offset, Offsets};
use super::parts::{Metalayer, TRAILER_END_LEN};
use super::{read, section};
use crate::chunk::{self, Chunk, EXTENDED_HEADER_LEN, Encoder, Params, Special, SplitMode};
use crate::{Error, Limits, ReadAt};

/// How the C library compresses the offsets.
const INDEX: Params = Params {
    codec: 0,
    codec_meta: 0,
    level: 5,
    typesize: OFFSET_LEN as u32,
    blocksize: Some(INDEX_BLOCKSIZE),
    filters: [0, 0, 0, 0, 0, 1],
    filters_meta: [0; chunk::MAX_FILTERS],
    split: SplitMode::Never,
};
/// The most chunks whose offsets fit into one chunk.
const MAX_CHUNKS: u64 = (i32::MAX as u64 - EXTENDED_HEADER_LEN as u64) / OFFSET_LEN;

/// What a change makes to be stored: bytes, and the place that the index gives them, which is a
/// number of bytes after the header or, in a directory, that of a file.
pub type Stores<'a> = Vec<(u64, Cow<'a, [u8]>)>;

/// What of a chunk has to be stored, or else what the index says of it.
type Admitted<'a> = (Option<Cow<'a, [u8]>>, Option<Special>);

/// A frame without the bytes of its chunks: header, metalayers, index and trailer.
///
/// Whoever keeps the chunks tells it of each change, stores what it gives back, and then writes
/// [`header`](Self::header), [`index`](Self::index) and [`trailer`](Self::trailer), which are those of
/// C-Blosc2 3.3.2 for the same chunks in the same places.
///
/// ```
/// use blosc2_format::chunk::{self, Params};
/// use blosc2_format::frame::{Frame, Layout, Outline};
/// use blosc2_format::Limits;
///
/// let params = Params { typesize: 4, ..Params::default() };
/// let mut outline = Outline::new(params, Layout::Contiguous);
/// let chunk = chunk::Encoder::new(params)?.encode(&[1, 2, 3, 4].repeat(100))?;
/// let stores = outline.insert(0, &chunk)?;
///
/// let end = [outline.index()?, outline.trailer()].concat();
/// let header_len = outline.header(0).len() as u64;
/// let mut frame = outline.header(header_len + outline.cbytes() + end.len() as u64);
/// for (_, bytes) in stores {
///     frame.extend_from_slice(&bytes);
/// }
/// frame.extend(end);
/// assert_eq!(Frame::open(frame, &Limits::default())?.chunk(0)?, chunk);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Outline {
    params: Params,
    layout: Layout,
    dictionary: bool,
    metalayers: Vec<Metalayer>,
    vlmetalayers: Vec<Metalayer>,
    offsets: Offsets,
    nbytes: u64,
    cbytes: u64,
    files: Files,
    chunksize: Option<u32>,
    variable_blocks: bool,
    /// Bytes of the header where it was read; it may have a gap at its end.
    stored_header: Option<u64>,
}

/// The numbers of the files of a directory, of which new ones get the lowest that are free.
///
/// The library takes them for positions in a frame, and opens none where one is too large for its chunks.
#[derive(Debug, Clone, Default)]
struct Files {
    /// Above all numbers that there are.
    next: u64,
    /// Free numbers below, the lowest one last.
    free: Vec<u64>,
    /// Whether there may be others.
    holes: bool,
}

impl Files {
    /// A number that is none of these.
    fn number(&mut self, used: impl Iterator<Item = u64>) -> u64 {
        if self.free.is_empty() && mem::take(&mut self.holes) {
            let used: Vec<u64> = used.collect();
            // There is one among so many.
            let mut is_used = vec![false; self.next.min(used.len() as u64 + 1) as usize];
            self.holes = self.next > is_used.len() as u64;
            for number in used {
                if let Some(is_used) = is_used.get_mut(number as usize) {
                    *is_used = true;
                }
            }
            let numbered = is_used.into_iter().enumerate().rev();
            self.free =
                numbered.filter(|(_, is_used)| !is_used).map(|(number, _)| number as u64).collect();
        }
        self.free.pop().unwrap_or_else(|| {
            self.next += 1;
            self.next - 1
        })
    }
}

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
    /// A frame without chunks, whose header says of the chunks what `params` say.
    pub fn new(params: Params, layout: Layout) -> Self {
        Self {
            params,
            layout,
            dictionary: false,
            metalayers: Vec::new(),
            vlmetalayers: Vec::new(),
            offsets: Offsets::Each(Vec::new()),
            nbytes: 0,
            cbytes: 0,
            files: Files::default(),
            chunksize: None,
            variable_blocks: false,
            stored_header: None,
        }
    }

    /// Reads that of the frame at the start of `source`: all but the chunks.
    ///
    /// # Errors
    /// As [`Frame::open`](super::Frame::open), and [`Error::Limit`] for the contents of the
    /// metalayers.
    pub fn read<R: ReadAt + ?Sized>(
        source: &R,
        layout: Layout,
        limits: &Limits,
    ) -> Result<Self, Error> {
        let parts = read::parts(source, layout, limits)?;
        let mut vlmetalayers = Vec::with_capacity(parts.vlmetalayers.len());
        for (name, span) in &parts.vlmetalayers {
            Limits::allow("bytes of a metalayer", span.len, limits.memory)?;
            let content = source.read_vec_at(span.at, span.len)?;
            vlmetalayers.push(Metalayer { name: name.clone(), content });
        }
        let header = &parts.header;
        let files = match header.layout {
            Layout::Contiguous => Files::default(),
            Layout::Directory => {
                let last = parts.offsets.iter().filter_map(Offset::place).max();
                Files { next: last.map_or(0, |last| last + 1), holes: true, ..Files::default() }
            }
        };
        Ok(Self {
            params: header.params(),
            layout,
            dictionary: header.dictionary,
            // A frame whose chunks were all deleted may still count their bytes.
            cbytes: if header.nbytes == 0 { 0 } else { header.cbytes },
            nbytes: header.nbytes,
            files,
            chunksize: header.chunksize,
            variable_blocks: header.variable_blocks,
            stored_header: Some(header.header_len.into()),
            offsets: match parts.offsets {
                // The library writes the index in this way for special values only.
                Offsets::Alike(offset @ Offset::At(_), count) => {
                    Offsets::Each(vec![offset; count as usize])
                }
                offsets => offsets,
            },
            metalayers: parts.metalayers,
            vlmetalayers,
        })
    }

    /// The same for a copy elsewhere: without the chunks, unless each is the same special value.
    pub fn emptied(&self, layout: Layout) -> Self {
        let mut new = Self::new(self.params, layout);
        new.dictionary = self.dictionary;
        new.metalayers.clone_from(&self.metalayers);
        new.vlmetalayers.clone_from(&self.vlmetalayers);
        match (&self.offsets, self.chunksize) {
            (Offsets::Alike(Offset::Special(special), _), Some(size)) if size > 0 => {
                new.offsets = Offsets::Alike(Offset::Special(*special), self.nchunks());
                (new.nbytes, new.chunksize) = (self.nbytes, Some(size));
            }
            _ => new.chunksize = self.chunksize,
        }
        new
    }

    /// How the header says that chunks are compressed.
    pub fn params(&self) -> &Params {
        &self.params
    }

    /// How the chunks are stored.
    pub fn layout(&self) -> Layout {
        self.layout
    }

    /// Whether the header says that chunks are compressed with dictionaries.
    pub fn dictionary(&self) -> bool {
        self.dictionary
    }

    /// Says whether chunks are compressed with dictionaries.
    pub fn set_dictionary(&mut self, dictionary: bool) {
        self.dictionary = dictionary;
    }

    /// The version of the frame format: 3 where chunks or blocks have different sizes, else 2.
    pub fn version(&self) -> u8 {
        if self.chunksize == Some(0) || self.variable_blocks { 3 } else { 2 }
    }

    /// How many chunks there are.
    pub fn nchunks(&self) -> u64 {
        self.offsets.len()
    }

    /// Bytes of all chunks when decoded.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Bytes from the end of the header to the end of the last chunk; in a directory, of all chunk files.
    pub fn cbytes(&self) -> u64 {
        self.cbytes
    }

    /// Bytes of each chunk but a shorter last one when decoded: `None` before the first one is there,
    /// 0 where they differ.
    pub fn chunksize(&self) -> Option<u32> {
        self.chunksize
    }

    /// Says what size chunks will have, of which there is none yet.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is one.
    pub fn set_chunksize(&mut self, size: u32) -> Result<(), Error> {
        if self.nchunks() > 0 {
            let count = self.nchunks();
            return Err(Error::Argument(format!("there are {count} chunks, whose size it is")));
        }
        self.chunksize = Some(size);
        Ok(())
    }

    /// Whether the blocks of each chunk have different sizes.
    pub fn variable_blocks(&self) -> bool {
        self.variable_blocks
    }

    /// Where the data of a chunk is; `None` where there is no such chunk.
    pub fn offset(&self, number: u64) -> Option<Offset> {
        self.offsets.get(number)
    }

    /// How many bytes a chunk has when decoded; `None` where that varies, so that only the chunk says it.
    pub fn nbytes_of(&self, number: u64) -> Option<u32> {
        let size = self.chunksize.filter(|&size| size > 0)?;
        let before = number.checked_mul(size.into())?;
        // At most the chunk size.
        Some(self.nbytes.saturating_sub(before).min(size.into()) as u32)
    }

    /// How many bytes [`Limits::metadata`] leaves for the content of one metalayer, in a frame that takes
    /// `stored` bytes: the index has its part already.
    pub fn metadata_left(&self, limits: &Limits, stored: u64) -> u64 {
        limits.metadata_of(stored).saturating_sub(self.offsets.held())
    }

    /// The chunk that a special offset stands for: nothing but a header.
    ///
    /// # Errors
    /// [`Error::Argument`] where chunks vary, so that its size is unknown, or where it is no whole number
    /// of items.
    pub fn special_chunk(&self, number: u64, special: Special) -> Result<Vec<u8>, Error> {
        let unknown = || {
            Error::Argument(format!("chunk {number} is {special:?}, of unknown size as sizes vary"))
        };
        let nbytes = self.nbytes_of(number).ok_or_else(unknown)?;
        let typesize = self.params.typesize;
        let params = Params {
            typesize,
            // A value must not lie across two blocks, which do not matter otherwise.
            blocksize: self.params.blocksize.filter(|size| size.is_multiple_of(typesize)),
            ..Params::default()
        };
        chunk::special(&params, special, nbytes as usize, &[])
    }

    /// The metalayers in the header.
    pub fn metalayers(&self) -> &[Metalayer] {
        &self.metalayers
    }

    /// Adds a metalayer to the header, whose length grows.
    ///
    /// # Errors
    /// [`Error::Argument`] for the 17th, for a name that is there already or has not 1 to 31 bytes, for
    /// 2 GiB of content, and in a contiguous frame with chunks, which would have to move.
    pub fn add_metalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.check_movable()?;
        section::check_new(name, content, pairs(&self.metalayers))?;
        self.metalayers.push(Metalayer { name: name.into(), content: content.into() });
        Ok(())
    }

    /// Replaces the content of a metalayer in the header by one of the same length.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is none of this name, or where the lengths differ.
    pub fn update_metalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let found = self.metalayers.iter_mut().find(|each| each.name == name);
        let found = found.ok_or_else(|| none_of(name))?;
        if found.content.len() != content.len() {
            let (old, new) = (found.content.len(), content.len());
            let what = format!("{new} bytes for the metalayer `{name}`, which has {old}");
            return Err(Error::Argument(what));
        }
        found.content = content.into();
        Ok(())
    }

    /// Removes a metalayer from the header.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is none of this name, and in a contiguous frame with chunks.
    pub fn remove_metalayer(&mut self, name: &str) -> Result<(), Error> {
        self.check_movable()?;
        let found = self.metalayers.iter().position(|each| each.name == name);
        self.metalayers.remove(found.ok_or_else(|| none_of(name))?);
        Ok(())
    }

    /// Whether the header can change its length.
    fn check_movable(&mut self) -> Result<(), Error> {
        if self.layout == Layout::Contiguous && self.nchunks() > 0 {
            let what = "metalayers of a fixed length are added and removed before the first chunk";
            return Err(Error::Argument(what.into()));
        }
        self.stored_header = None;
        Ok(())
    }

    /// The metalayers in the trailer; their contents are chunks.
    pub fn vlmetalayers(&self) -> &[Metalayer] {
        &self.vlmetalayers
    }

    /// Adds a metalayer to the trailer, or replaces the content of the one of this name.
    ///
    /// # Errors
    /// [`Error::Argument`] for the 17th, for a name that has not 1 to 31 bytes, and for 2 GiB of content;
    /// [`Error::Format`] where `chunk` is none.
    pub fn set_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        let header = chunk::Header::parse(chunk)?;
        if header.cbytes as usize != chunk.len() || header.lazy {
            let (found, len) = (chunk.len(), header.cbytes);
            return Err(Error::Argument(format!("{found} bytes for a chunk of {len}")));
        }
        match self.vlmetalayers.iter_mut().find(|each| each.name == name) {
            Some(found) => found.content = chunk.into(),
            None => {
                section::check_new(name, chunk, pairs(&self.vlmetalayers))?;
                self.vlmetalayers.push(Metalayer { name: name.into(), content: chunk.into() });
            }
        }
        Ok(())
    }

    /// Removes a metalayer from the trailer.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is none of this name.
    pub fn remove_vlmetalayer(&mut self, name: &str) -> Result<(), Error> {
        let found = self.vlmetalayers.iter().position(|each| each.name == name);
        self.vlmetalayers.remove(found.ok_or_else(|| none_of(name))?);
        Ok(())
    }

    /// Adds a chunk in front of that of this number, or behind the last one.
    ///
    /// Chunks may have different sizes; only the last one should be shorter than the others, so that
    /// readers can tell the chunk of an item without looking.
    ///
    /// # Errors
    /// [`Error::Format`] where `chunk` starts with no header of a chunk; [`Error::Argument`] where it is
    /// longer or shorter than that says, empty or lazy, where it has variable blocks and the others
    /// have not, or where there are as many chunks as a frame can have. Nothing has changed then.
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
        let chunksize = match self.chunksize {
            Some(size) if size > 0 && count > 0 => {
                if fixed(size) {
                    size
                } else {
                    0
                }
            }
            Some(size) if size == 0 || nbytes <= size => size,
            _ => nbytes,
        };
        let spelled = self.spell_out_all(chunksize, None)?;
        let (stored, special) = self.admit(&header, chunk, chunksize)?;
        self.check_files(spelled.len())?;
        // Nothing fails any more.
        self.variable_blocks = header.variable_blocks;
        self.chunksize = Some(chunksize);
        self.nbytes += u64::from(nbytes);
        let mut stores = Vec::new();
        let offset = self.place(stored, special, &mut stores);
        for (number, bytes) in spelled {
            self.offsets.each()[number] = self.place(Some(bytes.into()), None, &mut stores);
        }
        // Not above the number of chunks, which have fit into memory.
        self.offsets.each().insert(number as usize, offset);
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
        let old = self.offset(number).ok_or_else(|| no_chunk(number, count))?;
        let header = self.check_chunk(chunk, count == 1)?;
        let nbytes = header.nbytes;
        let chunksize = match self.chunksize {
            Some(0) => 0,
            Some(size) if nbytes == size || number == count - 1 && nbytes < size => size,
            _ if count == 1 => nbytes,
            _ => 0,
        };
        let spelled = self.spell_out_all(chunksize, Some(number))?;
        let (stored, special) = self.admit(&header, chunk, chunksize)?;
        self.check_files(spelled.len())?;
        self.variable_blocks = header.variable_blocks;
        self.chunksize = Some(chunksize);
        self.nbytes = self.nbytes.saturating_sub(was.nbytes.into()) + u64::from(nbytes);
        let room = if in_place && stored.is_some() { self.room_at(number, old) } else { None };
        let mut stores = Vec::new();
        let number = number as usize;
        let offset = match (room, old.place(), stored) {
            (Some(room), Some(place), Some(bytes)) if bytes.len() as u64 <= room => {
                let end = place + bytes.len() as u64;
                self.cbytes = if room == u64::MAX { end } else { self.cbytes.max(end) };
                stores.push((place, bytes));
                Offset::At(place)
            }
            (_, _, stored) => {
                self.vacate(number, old, was);
                self.place(stored, special, &mut stores)
            }
        };
        for (number, bytes) in spelled {
            self.offsets.each()[number] = self.place(Some(bytes.into()), None, &mut stores);
        }
        self.offsets.each()[number] = offset;
        self.files.holes = true;
        Ok(stores)
    }

    /// Removes a chunk whose sizes were `was`.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is no such chunk.
    pub fn remove(&mut self, number: u64, was: Sizes) -> Result<(), Error> {
        let count = self.nchunks();
        let old = self.offset(number).ok_or_else(|| no_chunk(number, count))?;
        self.vacate(number as usize, old, was);
        self.offsets.each().remove(number as usize);
        self.files.holes = true;
        self.nbytes = self.nbytes.saturating_sub(was.nbytes.into());
        if count == 1 {
            (self.nbytes, self.variable_blocks, self.chunksize) = (0, false, None);
        }
        Ok(())
    }

    /// Puts the chunks into another order: first the one whose number is `order[0]`, and so on.
    ///
    /// # Errors
    /// [`Error::Argument`] where `order` has not each number once.
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
        let chunksize = match self.chunksize {
            Some(size) if stays => size,
            _ => 0,
        };
        let spelled = self.spell_out_all(chunksize, None)?;
        self.check_files(spelled.len())?;
        self.chunksize = Some(chunksize);
        let mut stores = Vec::new();
        for (number, bytes) in spelled {
            self.offsets.each()[number] = self.place(Some(bytes.into()), None, &mut stores);
        }
        let old = mem::take(self.offsets.each());
        *self.offsets.each() = order.iter().map(|&number| old[number]).collect();
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
        if !chunksize.is_multiple_of(self.params.typesize) {
            let typesize = self.params.typesize;
            return wrong(format!("chunks of {chunksize} bytes: no whole items of {typesize}"));
        }
        if old_count > 0 && self.nbytes != old_count * u64::from(chunksize) {
            return wrong(format!("its chunks have not {chunksize} bytes each"));
        }
        let mut kept = room_for(old_count)?;
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
            admitted.push(self.admit(&header, bytes, chunksize)?);
        }
        self.check_files(admitted.len())?;
        let is_zeros = count > 0 && slots.iter().all(|slot| *slot == Slot::Zeros);
        let mut offsets: Vec<Offset> = if is_zeros { Vec::new() } else { room_for(count)? };

        // Nothing fails any more.
        let kept_places = slots.iter().filter_map(|slot| match slot {
            Slot::Kept(number) => self.offset(*number).and_then(Offset::place),
            _ => None,
        });
        let places = dropped.iter().filter_map(|&(number, _)| self.offset(number)?.place());
        match (self.layout, kept_places.max()) {
            (Layout::Directory, _) => {
                let sizes = dropped.iter().map(|(_, sizes)| u64::from(sizes.cbytes));
                self.cbytes = self.cbytes.saturating_sub(sizes.sum());
            }
            (Layout::Contiguous, None) => self.cbytes = 0,
            // What lies behind all that is kept is given free.
            (Layout::Contiguous, Some(last)) => {
                let behind = places.filter(|&place| place > last).min();
                self.cbytes = behind.unwrap_or(self.cbytes);
            }
        }
        let mut stores = Vec::new();
        let mut admitted = admitted.into_iter();
        for slot in slots.iter().filter(|_| !is_zeros) {
            offsets.extend(match slot {
                Slot::Kept(number) => self.offsets.get(*number),
                Slot::Zeros => Some(Offset::Special(Special::Zeros)),
                Slot::New(_) => admitted
                    .next()
                    .map(|(stored, special)| self.place(stored, special, &mut stores)),
            });
        }
        self.offsets = match is_zeros {
            true => Offsets::Alike(Offset::Special(Special::Zeros), count),
            false => Offsets::Each(offsets),
        };
        (self.nbytes, self.chunksize) = (count * u64::from(chunksize), Some(chunksize));
        self.files.holes = true;
        Ok(stores)
    }

    /// Makes all of an empty frame one value: `nbytes` bytes in chunks of `chunksize`. That takes no room.
    ///
    /// # Errors
    /// [`Error::Argument`] where there are chunks, where a size is no whole number of items, and for
    /// [`Special::Value`].
    pub fn fill(&mut self, special: Special, nbytes: u64, chunksize: u32) -> Result<(), Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let typesize = self.params.typesize;
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
            let blocksize = self.params.blocksize.unwrap_or(0);
            return wrong(format!("NaN of {typesize} bytes in blocks of {blocksize}"));
        }
        let count = nbytes.div_ceil(chunksize.into());
        if count > MAX_CHUNKS {
            return wrong(format!("{count} chunks: a frame has at most {MAX_CHUNKS}"));
        }
        // The parameters have to fit a chunk of that size, and give the size of its blocks.
        let sample = chunk::special(&self.params, special, chunksize as usize, &[])?;
        let sample = chunk::Header::parse(&sample)?;
        if count > 0 {
            self.offsets = Offsets::Alike(Offset::Special(special), count);
            (self.nbytes, self.chunksize) = (nbytes, Some(chunksize));
            self.params.blocksize = Some(sample.blocksize).filter(|&size| size > 0);
        }
        Ok(())
    }

    /// Reads the header of a chunk, which has to be all of `bytes`. `alone` where there is no other one.
    fn check_chunk(&self, bytes: &[u8], alone: bool) -> Result<chunk::Header, Error> {
        let wrong = |what: String| Err(Error::Argument(what));
        let header = chunk::Header::parse(bytes)?;
        // What a reader refuses before it looks at the blocks.
        Chunk::new(bytes, &Limits::default())?;
        if header.cbytes as usize != bytes.len() {
            let (found, len) = (bytes.len(), header.cbytes);
            return wrong(format!("{found} bytes, of which the chunk has {len}"));
        }
        if header.lazy || header.nbytes == 0 {
            let what = if header.lazy { "lazy" } else { "empty" };
            return wrong(format!("a frame has no {what} chunks"));
        }
        if header.special.is_none() && bytes.len() <= EXTENDED_HEADER_LEN {
            let len = bytes.len();
            return wrong(format!("a chunk of {len} bytes: over {EXTENDED_HEADER_LEN} in a frame"));
        }
        if !alone && self.variable_blocks != header.variable_blocks {
            return wrong("chunks with and without variable blocks in one frame".into());
        }
        let typesize = self.params.typesize;
        let width = header.cbytes.saturating_sub(header.header_len() as u32);
        if header.special == Some(Special::Value) && width < typesize {
            let what = format!("a repeated value of {width} bytes where items have {typesize}");
            return wrong(what);
        }
        Ok(header)
    }

    /// What of a chunk has to be stored, or what the index says of it, where chunks have this size.
    fn admit<'a>(
        &self,
        header: &chunk::Header,
        bytes: impl Into<Cow<'a, [u8]>>,
        chunksize: u32,
    ) -> Result<Admitted<'a>, Error> {
        let typesize = self.params.typesize;
        let special = header.special.filter(|&special| special != Special::Value);
        let whole_items = header.nbytes.is_multiple_of(typesize);
        Ok(match special {
            // The index cannot say how long such a chunk is, nor of what type.
            Some(Special::Nan) if u32::from(header.typesize) != typesize || self.cuts_items() => {
                (Some(self.spell_out_nan(header.typesize, header.nbytes)?.into()), None)
            }
            Some(special) if chunksize == 0 || !whole_items => {
                (Some(self.spell_out(special, header.nbytes)?.into()), None)
            }
            Some(special) => (None, Some(special)),
            None => (Some(bytes.into()), None),
        })
    }

    /// Whether an item has more than a block: the library cannot read NaN then.
    fn cuts_items(&self) -> bool {
        (1..self.params.typesize).contains(&self.params.blocksize.unwrap_or(0))
    }

    /// The chunks that stand for special offsets, all but that of one number, where sizes begin to vary:
    /// the index cannot say then how long they are.
    fn spell_out_all(
        &self,
        chunksize: u32,
        but: Option<u64>,
    ) -> Result<Vec<(usize, Vec<u8>)>, Error> {
        if chunksize != 0 || self.chunksize == Some(0) {
            return Ok(Vec::new());
        }
        let numbered = (0..).zip(self.offsets.iter());
        let special = numbered.filter_map(|(number, offset)| match offset {
            Offset::Special(special) if but != Some(number) => Some((number, special)),
            _ => None,
        });
        special
            .map(|(number, special)| {
                let nbytes = self.nbytes_of(number).unwrap_or(0);
                Ok((number as usize, self.spell_out(special, nbytes)?))
            })
            .collect()
    }

    /// Whether a directory can have so many files more, and another one.
    fn check_files(&self, more: usize) -> Result<(), Error> {
        if self.layout == Layout::Directory && self.files.next + more as u64 > u32::MAX.into() {
            return Err(Error::Argument("file numbers of a directory end at FFFFFFFF".into()));
        }
        Ok(())
    }

    /// Gives a chunk its place.
    fn place<'a>(
        &mut self,
        stored: Option<Cow<'a, [u8]>>,
        special: Option<Special>,
        stores: &mut Stores<'a>,
    ) -> Offset {
        let Some(bytes) = stored else { return Offset::Special(special.unwrap_or(Special::Zeros)) };
        let place = match self.layout {
            Layout::Contiguous => self.cbytes,
            Layout::Directory => {
                let stored = stores.iter().map(|(place, _)| *place);
                self.files.number(self.offsets.iter().filter_map(Offset::place).chain(stored))
            }
        };
        self.cbytes += bytes.len() as u64;
        stores.push((place, bytes));
        Offset::At(place)
    }

    /// How many bytes there are for a chunk where this one is, without end after the last one; `None`
    /// where that place is not its own.
    fn room_at(&self, number: u64, old: Offset) -> Option<u64> {
        let place = old.place().filter(|_| self.layout == Layout::Contiguous)?;
        let mut end = u64::MAX;
        for (other, offset) in (0..).zip(self.offsets.iter()) {
            match offset.place() {
                Some(same) if same == place && other != number => return None,
                Some(after) if after > place => end = end.min(after),
                _ => {}
            }
        }
        Some(if end == u64::MAX { end } else { end - place })
    }

    /// Takes account of a chunk that will no longer be there.
    fn vacate(&mut self, number: usize, old: Offset, was: Sizes) {
        let Some(place) = old.place() else { return };
        if self.layout == Layout::Directory {
            self.cbytes = self.cbytes.saturating_sub(was.cbytes.into());
            return;
        }
        // What lies behind all others is given free; other gaps stay until the frame is copied.
        let numbered = self.offsets.iter().enumerate();
        let others =
            numbered.filter(|&(each, _)| each != number).filter_map(|(_, offset)| offset.place());
        match others.max() {
            None => self.cbytes = 0,
            Some(max) if max < place => self.cbytes = place,
            Some(_) => {}
        }
    }

    /// A chunk of one value that the library also reads where no special offset can stand for it.
    fn spell_out(&self, special: Special, nbytes: u32) -> Result<Vec<u8>, Error> {
        let typesize = self.params.typesize as usize;
        if special == Special::Nan {
            return self.spell_out_nan(u8::try_from(typesize).unwrap_or(1), nbytes);
        }
        if (nbytes as usize).is_multiple_of(typesize) {
            return self.repeat(nbytes, &vec![0; typesize]);
        }
        // One block, whose only stream has length 0: it is all zeros.
        let mut bytes = vec![0; EXTENDED_HEADER_LEN];
        let typesize = u8::try_from(typesize).unwrap_or(1);
        bytes[..4].copy_from_slice(&[5, 1, 0b1_0101, typesize]);
        let len = EXTENDED_HEADER_LEN as u32;
        for (at, size) in [(4, nbytes), (8, nbytes), (12, len + 8)] {
            bytes[at..at + 4].copy_from_slice(&size.to_le_bytes());
        }
        bytes.extend((len + 4).to_le_bytes());
        bytes.extend([0; 4]);
        chunk::Header::parse(&bytes)?;
        Ok(bytes)
    }

    /// NaN of `width` bytes in a frame whose items may have another size.
    fn spell_out_nan(&self, width: u8, nbytes: u32) -> Result<Vec<u8>, Error> {
        let typesize = self.params.typesize as usize;
        let nan = match width {
            4 => f32::NAN.to_le_bytes().to_vec(),
            8 => f64::NAN.to_le_bytes().to_vec(),
            _ => return Err(Error::Argument(format!("NaN of {width} bytes: it has 4 or 8"))),
        };
        // Readers want a value of at least an item.
        let value = nan.repeat(typesize.div_ceil(nan.len()));
        if !value.len().is_multiple_of(typesize) || !(nbytes as usize).is_multiple_of(value.len()) {
            let what = format!("{nbytes} bytes of NaN of {width} bytes for items of {typesize}");
            return Err(Error::Argument(what));
        }
        self.repeat(nbytes, &value)
    }

    /// A chunk of a value over and over, in blocks of whole values.
    fn repeat(&self, nbytes: u32, value: &[u8]) -> Result<Vec<u8>, Error> {
        let width = value.len() as u32;
        let params = Params { typesize: width, ..self.params };
        let mut chunk = chunk::special(&params, Special::Value, nbytes as usize, value)?;
        if Chunk::new(&chunk, &Limits::default()).is_err() {
            let params = Params { blocksize: Some(width), ..params };
            chunk = chunk::special(&params, Special::Value, nbytes as usize, value)?;
        }
        chunk[3] = u8::try_from(self.params.typesize).unwrap_or(1);
        Ok(chunk)
    }

    /// Bytes of the header.
    pub fn header_len(&self) -> u64 {
        if let Some(len) = self.stored_header {
            return len;
        }
        let one =
            |metalayer: &Metalayer| 1 + metalayer.name.len() + 5 + 5 + metalayer.content.len();
        // Around the metalayers: array, size of the index, map and array, each with its length.
        let section = 10 + self.metalayers.iter().map(one).sum::<usize>();
        (MIN_HEADER_LEN + section) as u64
    }

    /// The header, with its metalayers, of a frame of this length.
    pub fn header(&self, frame_len: u64) -> Vec<u8> {
        let params = &self.params;
        let variable = self.chunksize == Some(0);
        let mut flags = 0x10 | self.version();
        flags |= u8::from(variable) << 6 | u8::from(self.variable_blocks) << 7;
        let split = match params.split {
            SplitMode::Always => 0,
            SplitMode::Never => 1,
            SplitMode::Auto => 2,
            SplitMode::ForwardCompat => 3,
        };
        let mut out = Vec::with_capacity(MIN_HEADER_LEN);
        out.extend(b"\x9e\xa8b2frame\0\xd2\0\0\0\0\xcf");
        out.extend(frame_len.to_be_bytes());
        out.extend([0xa4, flags, u8::from(self.layout == Layout::Directory)]);
        out.extend([params.codec.min(6) | params.level << 4, split]);
        for size in [self.nbytes, self.cbytes] {
            out.push(0xd3);
            out.extend(size.to_be_bytes());
        }
        let chunksize = self.chunksize.unwrap_or(u32::MAX);
        for size in [params.typesize, params.blocksize.unwrap_or(0), chunksize] {
            out.push(0xd2);
            out.extend(size.to_be_bytes());
        }
        let has_vlmetalayers = if self.vlmetalayers.is_empty() { 0xc2 } else { 0xc3 };
        out.extend([0xd1, 0, 1, 0xd1, 0, 1, has_vlmetalayers, 0xd8, 6]);
        out.extend(params.filters);
        out.extend([params.codec, params.codec_meta]);
        out.extend(params.filters_meta);
        // The last byte is not used.
        out.extend([u8::from(self.dictionary), 0]);
        let metalayers: Vec<_> = pairs(&self.metalayers).collect();
        section::write(&mut out, 0, &metalayers);
        if let Some(len) = self.stored_header.filter(|&len| len > out.len() as u64) {
            out.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
        }
        let len = out.len() as u32;
        out[0x0b..0x0f].copy_from_slice(&len.to_be_bytes());
        out
    }

    /// The index chunk; nothing without chunks.
    ///
    /// # Errors
    /// None are known.
    pub fn index(&self) -> Result<Vec<u8>, Error> {
        let len = self.nchunks() as usize * OFFSET_LEN as usize;
        match &self.offsets {
            _ if len == 0 => Ok(Vec::new()),
            Offsets::Alike(offset, _) => {
                chunk::special(&INDEX, Special::Value, len, &raw(*offset).to_le_bytes())
            }
            Offsets::Each(offsets) => {
                let offsets = offsets.iter().flat_map(|&offset| raw(offset).to_le_bytes());
                Encoder::new(INDEX)?.encode(&offsets.collect::<Vec<u8>>())
            }
        }
    }

    /// The trailer, with its metalayers.
    pub fn trailer(&self) -> Vec<u8> {
        let mut out = vec![0x94, 1];
        let metalayers: Vec<_> = pairs(&self.vlmetalayers).collect();
        section::write(&mut out, 1, &metalayers);
        let len = (out.len() + TRAILER_END_LEN) as u32;
        out.push(0xce);
        out.extend(len.to_be_bytes());
        // No fingerprint.
        out.extend([0xd8, 0]);
        out.extend([0; 16]);
        out
    }

    /// The length of the frame around its chunks, given those of header, index and trailer.
    pub fn frame_len(&self, others: usize) -> u64 {
        let chunks = if self.layout == Layout::Contiguous { self.cbytes } else { 0 };
        others as u64 + chunks
    }
}

impl Offsets {
    fn iter(&self) -> impl Iterator<Item = Offset> {
        (0..self.len()).filter_map(|number| self.get(number))
    }

    /// The offsets one by one, to be changed.
    fn each(&mut self) -> &mut Vec<Offset> {
        if let Self::Alike(offset, count) = *self {
            *self = Self::Each(vec![offset; count as usize]);
        }
        match self {
            Self::Each(offsets) => offsets,
            Self::Alike(..) => unreachable!("they were made single"),
        }
    }
}

fn pairs(metalayers: &[Metalayer]) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
    metalayers.iter().map(|metalayer| (metalayer.name.as_str(), metalayer.content.as_slice()))
}

fn none_of(name: &str) -> Error {
    Error::Argument(format!("there is no metalayer `{}`", name.escape_debug()))
}

/// A vector with room for so many: a few bytes may stand for millions of chunks.
fn room_for<T>(count: u64) -> Result<Vec<T>, Error> {
    let mut all = Vec::new();
    let room = usize::try_from(count).ok().map(|count| all.try_reserve_exact(count));
    match room {
        Some(Ok(())) => Ok(all),
        _ => Err(std::io::Error::from(std::io::ErrorKind::OutOfMemory).into()),
    }
}

fn no_chunk(number: u64, count: u64) -> Error {
    Error::Argument(format!("there is no chunk {number}, only {count}"))
}

/// An offset as the index has it.
fn raw(offset: Offset) -> i64 {
    let kind: u8 = match offset {
        // Places were computed here or checked when they were read.
        Offset::At(place) => return place as i64,
        Offset::Special(Special::Zeros) => 0x81,
        Offset::Special(Special::Nan) => 0x82,
        Offset::Special(Special::Value | Special::Uninit) => 0x84,
    };
    i64::from_be_bytes([kind, 0, 0, 0, 0, 0, 0, 0])
}
