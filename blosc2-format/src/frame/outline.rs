//! Everything of a frame but its chunks: header, metalayers, index and trailer.

use std::sync::Arc;

use super::Layout;
use super::field::MIN_HEADER_LEN;
use super::files::Files;
use super::header::{self, ChunkSize, Header, TRAILER_END_LEN};
use super::offset::Offset;
use super::offsets::Offsets;
use super::{rules, section};
use crate::chunk::{self, Params, Special};
use crate::{Error, FormatError, Limits, ReadAt};

/// A metalayer: a name, and what an application keeps under it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metalayer {
    /// Its name, of up to 31 bytes.
    pub name: String,
    /// Its content.
    pub content: Vec<u8>,
}

/// A frame without the bytes of its chunks: header, metalayers, index and trailer.
///
/// One that is read decodes a part of the index when a chunk of it is asked for.
///
/// Whoever keeps the chunks [loads](Self::load) it, tells it of each change, stores what it gives back, and then writes
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
/// let end = [&outline.index()?[..], &outline.trailer()].concat();
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
    /// As it was read, but for what has changed since.
    pub(super) header: Header,
    pub(super) metalayers: Vec<Metalayer>,
    pub(super) vlmetalayers: Vec<Metalayer>,
    pub(crate) offsets: Offsets,
    pub(super) files: Files,
    /// Whether the header has the length that it was read with; it may have a gap at its end.
    pub(super) is_header_stored: bool,
}

impl Outline {
    /// A frame without chunks, whose header says of the chunks what `params` say.
    pub fn new(params: Params, layout: Layout) -> Self {
        Self {
            header: Header::new(&params, layout),
            metalayers: Vec::new(),
            vlmetalayers: Vec::new(),
            offsets: Offsets::default(),
            files: Files::default(),
            is_header_stored: false,
        }
    }

    /// Reads the rest of the index from the source that it was [read](Self::read) from, before the first change.
    ///
    /// # Errors
    /// Those of `source`.
    pub fn load<R: ReadAt + ?Sized>(&mut self, source: &R) -> Result<(), Error> {
        self.offsets.load(source)
    }

    /// Whether all of the index is in memory: it is new, [loaded](Self::load), or was read with up to 64 KiB.
    pub fn is_loaded(&self) -> bool {
        self.offsets.is_loaded()
    }

    /// Says that what the changes made was stored: files of a directory that lost their chunks may be written again.
    pub fn committed(&mut self) {
        self.files.committed();
    }

    /// The same for a copy elsewhere: without the chunks, unless each is the same special value.
    pub fn emptied(&self, layout: Layout) -> Self {
        let mut new = Self::new(self.params(), layout);
        new.header.dictionary = self.header.dictionary;
        new.metalayers.clone_from(&self.metalayers);
        new.vlmetalayers.clone_from(&self.vlmetalayers);
        new.header.chunksize = self.header.chunksize;
        if let (Offsets::Alike(offset @ Offset::Special(_), _), ChunkSize::Fixed(_)) =
            (&self.offsets, self.header.chunksize)
        {
            new.offsets = Offsets::Alike(*offset, self.nchunks());
            new.header.nbytes = self.header.nbytes;
        }
        new
    }

    /// The fields of the header, as it was read but for what has changed since.
    pub(crate) fn fields(&self) -> &Header {
        &self.header
    }

    /// How the header says that chunks are compressed.
    pub fn params(&self) -> Params {
        self.header.params()
    }

    /// How the chunks are stored.
    pub fn layout(&self) -> Layout {
        self.header.layout
    }

    /// Whether the header says that chunks are compressed with dictionaries.
    pub fn dictionary(&self) -> bool {
        self.header.dictionary
    }

    /// Says whether chunks are compressed with dictionaries.
    pub fn set_dictionary(&mut self, dictionary: bool) {
        self.header.dictionary = dictionary;
    }

    /// The version of the frame format: 3 where chunks or blocks have different sizes, else 2.
    pub fn version(&self) -> u8 {
        if self.header.chunksize == ChunkSize::Variable || self.header.variable_blocks {
            3
        } else {
            2
        }
    }

    /// How many chunks there are.
    pub fn nchunks(&self) -> u64 {
        self.offsets.len()
    }

    /// Bytes of all chunks when decoded.
    pub fn nbytes(&self) -> u64 {
        self.header.nbytes
    }

    /// Bytes from the end of the header to the end of the last chunk; in a directory, of all chunk files.
    pub fn cbytes(&self) -> u64 {
        // A frame whose chunks were all deleted may still count their bytes.
        if self.header.nbytes == 0 { 0 } else { self.header.cbytes }
    }

    /// Bytes of each chunk when decoded.
    pub fn chunksize(&self) -> ChunkSize {
        self.header.chunksize
    }

    /// Sets the size of chunks, before there is one.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is one.
    pub fn set_chunksize(&mut self, size: ChunkSize) -> Result<(), Error> {
        if self.nchunks() > 0 {
            let count = self.nchunks();
            return Err(Error::Argument(format!("there are {count} chunks, whose size it is")));
        }
        self.header.chunksize = size;
        Ok(())
    }

    /// Whether the blocks of each chunk have different sizes.
    pub fn variable_blocks(&self) -> bool {
        self.header.variable_blocks
    }

    /// Where the data of a chunk is; `None` where there is no such chunk.
    ///
    /// # Errors
    /// [`Error::Format`] where that part of the index is broken; those of `source`, which the outline was
    /// [read](Self::read) from. Each part of the index is read from it once, and none after [`load`](Self::load).
    pub fn offset<R: ReadAt + ?Sized>(
        &self,
        number: u64,
        source: &R,
    ) -> Result<Option<Offset>, Error> {
        self.offsets.get(number, source)
    }

    /// The same, where that part of the index was decoded before.
    pub fn decoded(&self, number: u64) -> Option<Offset> {
        self.offsets.decoded(number)
    }

    /// Whether another outline, just read from `source`, is the same as this one, as far as this one was looked at.
    ///
    /// # Errors
    /// As [`offset`](Self::offset), about the other one.
    pub fn is_same<R: ReadAt + ?Sized>(&self, other: &Self, source: &R) -> Result<bool, Error> {
        let is_same = self.header(0) == other.header(0) && self.vlmetalayers == other.vlmetalayers;
        Ok(is_same && self.offsets.is_same(&other.offsets, source)?)
    }

    /// How many bytes a chunk has when decoded; `None` where that varies, so that only the chunk says it.
    pub fn nbytes_of(&self, number: u64) -> Option<u32> {
        let size = self.header.chunksize.fixed()?;
        let before = number.checked_mul(size.into())?;
        // At most the chunk size.
        Some(self.header.nbytes.saturating_sub(before).min(size.into()) as u32)
    }

    /// How many bytes [`Limits::metadata`] leaves for the content of one metalayer, in a frame that takes
    /// `stored` bytes: the index has its part already.
    pub fn metadata_left(&self, limits: &Limits, stored: u64) -> u64 {
        limits.metadata_of(stored).saturating_sub(self.offsets.held())
    }

    /// The chunk that a special offset stands for: nothing but a header.
    ///
    /// # Errors
    /// [`Error::Format`] where chunks vary, so that its size is unknown, or where it is no whole number
    /// of items.
    pub fn special_chunk(&self, number: u64, special: Special) -> Result<Vec<u8>, Error> {
        let nbytes = self.nbytes_of(number).ok_or_else(|| self.unknown_size(number))?;
        let typesize = self.header.typesize;
        let params = Params {
            typesize,
            // A value must not lie across two blocks, which do not matter otherwise.
            blocksize: self.header.params().blocksize.filter(|size| size.is_multiple_of(typesize)),
            ..Params::default()
        };
        chunk::special(&params, special, nbytes as usize, &[]).map_err(|_| {
            let expected = format_args!("a multiple of the typesize {typesize}").to_string();
            FormatError::of(&rules::CHUNK_NBYTES, self.index_at(), expected, nbytes).into()
        })
    }

    /// Reads the header of a chunk at the start of `head`, where `room` bytes may belong to the chunk. `at` is where
    /// it starts, for errors.
    ///
    /// # Errors
    /// [`Error::Format`] where it is no header, or that of a chunk that is longer than its room, of another size than
    /// the frame says, or lazy.
    pub fn chunk_header(
        &self,
        number: u64,
        head: &[u8],
        at: u64,
        room: u64,
    ) -> Result<chunk::Header, Error> {
        let header = chunk::Header::parse(head).map_err(|error| error.moved(at))?;
        let wrong = |rule, offset, expected: String, found: &dyn ToString| {
            Err(FormatError::of(rule, at + offset, expected, found.to_string()).into())
        };
        if u64::from(header.cbytes) > room {
            let expected = format!("at most {room}, where it has to end");
            return wrong(&rules::CHUNK_PLACE, 12, expected, &header.cbytes);
        }
        if header.lazy {
            let expected = "no mark of a lazy chunk, which only exists in memory".into();
            return wrong(&rules::CHUNK_LAZY, 31, expected, &"the mark");
        }
        match self.nbytes_of(number) {
            Some(nbytes) if nbytes != header.nbytes => {
                wrong(&rules::CHUNK_NBYTES, 4, nbytes.to_string(), &header.nbytes)
            }
            _ => Ok(header),
        }
    }

    pub(super) fn unknown_size(&self, number: u64) -> Error {
        let expected = "a chunk, as sizes vary and a special offset has none";
        let found = format_args!("a special offset for chunk {number}").to_string();
        FormatError::of(&rules::CHUNK_UNKNOWN, self.index_at(), expected, found).into()
    }

    /// Where the index is, from the start of the frame.
    fn index_at(&self) -> u64 {
        u64::from(self.header.header_len) + self.room()
    }

    /// How many bytes after the header chunks take.
    pub(crate) fn room(&self) -> u64 {
        match self.header.layout {
            Layout::Contiguous => self.cbytes(),
            Layout::Directory => 0,
        }
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
        if self.header.layout == Layout::Contiguous && self.nchunks() > 0 {
            let what = "fixed-length metalayers of a contiguous frame are added and removed before its first \
                        chunk: give them when it is created (`meta`), or use variable-length ones (`vlmeta`)";
            return Err(Error::Argument(what.into()));
        }
        self.is_header_stored = false;
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

    /// Bytes of the header.
    pub fn header_len(&self) -> u64 {
        if self.is_header_stored {
            return self.header.header_len.into();
        }
        let one =
            |metalayer: &Metalayer| 1 + metalayer.name.len() + 5 + 5 + metalayer.content.len();
        // Around the metalayers: array, size of the index, map and array, each with its length.
        let section = 10 + self.metalayers.iter().map(one).sum::<usize>();
        (MIN_HEADER_LEN + section) as u64
    }

    /// The header, with its metalayers, of a frame of this length.
    pub fn header(&self, frame_len: u64) -> Vec<u8> {
        let mut header = self.header.clone();
        header.version = self.version();
        header.variable_chunks = header.chunksize == ChunkSize::Variable;
        header.has_vlmeta = !self.vlmetalayers.is_empty();
        (header.frame_len, header.cbytes) = (frame_len, self.cbytes());
        let mut out = header.to_bytes().to_vec();
        let metalayers: Vec<_> = pairs(&self.metalayers).collect();
        section::write(&mut out, 0, &metalayers);
        if self.is_header_stored && self.header_len() > out.len() as u64 {
            out.resize(usize::try_from(self.header_len()).unwrap_or(usize::MAX), 0);
        }
        header::set_len(&mut out);
        out
    }

    /// The index chunk; nothing without chunks. Blocks that have not changed since the index was read or written last
    /// are not encoded again.
    ///
    /// # Errors
    /// [`Error::Argument`] where the index was not [loaded](Self::load).
    pub fn index(&mut self) -> Result<Arc<[u8]>, Error> {
        self.offsets.encode()
    }

    /// Whether [`index`](Self::index) returns another chunk than the one that was read, or returned last.
    pub fn is_index_changed(&self) -> bool {
        self.offsets.is_changed()
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

    /// The length of the frame, given that of index and trailer.
    pub fn frame_len(&self, end: usize) -> u64 {
        self.header_len() + self.room() + end as u64
    }
}

fn pairs(metalayers: &[Metalayer]) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
    metalayers.iter().map(|metalayer| (metalayer.name.as_str(), metalayer.content.as_slice()))
}

fn none_of(name: &str) -> Error {
    Error::Argument(format!("there is no metalayer `{}`", name.escape_debug()))
}
