//! The model of a frame without its chunks: header, metalayers, index and trailer.

use std::sync::Arc;

use super::Layout;
use super::checksums::{self, Checksums};
use super::field::MIN_HEADER_LEN;
use super::files::Files;
use super::header::{self, ChunkSize, Header, TRAILER_END_LEN};
use super::metalayer::Metalayer;
use super::offset::Offset;
use super::offsets::{IndexPatch, Offsets};
use super::space::Space;
use super::{rules, section};
use crate::chunk::{self, Params, Special, TypicalHeader};
use crate::{Error, FormatError, Limits, ReadAt, limits};

/// The names of the variable-length metalayers in which Python describes the search indexes of an
/// array (`NDArray.create_index`), and the results of earlier queries.
///
/// They describe the items of one file, and contain the paths of the files of the indexes. A change
/// of the items outdates them, and a copy must not have them: Python would return wrong rows.
/// [`Outline::emptied`] omits them. Other methods of this crate do not change them.
///
/// In the crate `blosc2`:
///
/// - Each change of items marks all indexes as stale, in the same commit. Queries of Python then do
///   not use them, and `rebuild_index` of Python builds them again. Results of earlier queries are
///   removed. A change never fails because of this metadata: if its content has another form, is
///   longer than 16 MiB, or was compressed with a codec or filter that is not available or not part
///   of C-Blosc2, it is removed. Python then reads all items.
/// - Copies and repaired files do not have these metalayers. The index files of the original remain
///   where they are.
///
/// A process of Python that has already read the indexes does not read them again after a change by
/// another process: open the array in a new process.
pub const SEARCH_INDEXES: [&str; 2] = ["blosc2_indexes", "_blosc2_query_cache"];

/// A frame without the bytes of its chunks: header, metalayers, index and trailer.
///
/// An outline that was read from a source decodes the index in parts, when they are needed.
///
/// To change a frame:
///
/// 1. [Load](Self::load) the outline.
/// 2. Apply the changes, and store the bytes that each change returns.
/// 3. Write the [`header`](Self::header), the [`index`](Self::index) and the
///    [`trailer`](Self::trailer).
///
/// For the same chunks in the same positions, these three parts are identical to the parts that
/// C-Blosc2 3.3.2 writes.
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
/// let index = outline.index()?;
/// let end = [&index[..], &outline.trailer(index.len())?].concat();
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
    /// The header as read, with all later changes.
    pub(super) header: Header,
    pub(super) metalayers: Vec<Metalayer>,
    pub(super) vlmetalayers: Vec<Metalayer>,
    pub(crate) offsets: Offsets,
    pub(super) files: Files,
    pub(super) space: Space,
    /// The number of unused bytes between the chunks and the index. Until [`seal`](Self::seal), those of
    /// the stored frame.
    pub(super) spare: u64,
    pub(super) checksums: Option<Checksums>,
    /// Whether the header still has the size that was read. Such a header can end with a gap.
    pub(super) is_header_stored: bool,
    /// The maximum number of chunks that readers allow.
    pub(super) max_chunks: u64,
    pub(super) chunk_header: TypicalHeader,
}

impl Outline {
    /// Creates the outline of a frame without chunks, with `params` in the header.
    pub fn new(params: Params, layout: Layout) -> Self {
        Self {
            header: Header::new(&params, layout),
            metalayers: Vec::new(),
            vlmetalayers: Vec::new(),
            offsets: Offsets::default(),
            files: Files::default(),
            space: Space::new(),
            spare: 0,
            checksums: None,
            is_header_stored: false,
            max_chunks: Limits::default().chunks,
            chunk_header: TypicalHeader::default(),
        }
    }

    /// Reads the index chunk into memory, if it is not [loaded](Self::is_loaded) yet. Call this
    /// method before the first change. `source` must be the source that the outline was
    /// [read](Self::read) from. The entries are checked later, when they are decoded.
    ///
    /// # Errors
    /// [`Error::Io`]: reading from `source` fails.
    pub fn load<R: ReadAt + ?Sized>(&mut self, source: &R) -> Result<(), Error> {
        self.offsets.load(source)
    }

    /// Returns whether the complete index is in memory. This is the case for a new outline, after
    /// [`load`](Self::load), and for an index that was read completely (see
    /// [`Frame::open`](super::Frame::open)).
    pub fn is_loaded(&self) -> bool {
        self.offsets.is_loaded()
    }

    /// Sets the maximum number of chunks of the frame. Changes that would add more chunks fail,
    /// because a reader with this [`Limits::chunks`] could not open the frame.
    ///
    /// Default: for a new outline, the default of [`Limits::chunks`]; for an outline that was read,
    /// the limit with which it was read.
    pub fn set_max_chunks(&mut self, max: u64) {
        self.max_chunks = max;
    }

    /// Returns whether the frame has [checksums](super::checksum).
    pub fn has_checksums(&self) -> bool {
        self.checksums.is_some()
    }

    /// Informs the outline that the caller has stored the changes. Later changes can then overwrite
    /// the bytes or the files of removed chunks.
    pub fn committed(&mut self) {
        self.files.committed();
        self.space.committed(self.chunks_end());
    }

    /// Returns the outline for a copy of the frame in the given layout. The copy has the same
    /// parameters and metalayers, except the [search indexes](SEARCH_INDEXES), and no chunks.
    /// Exception: if the index chunk is one repeated special value, as after [`fill`](Self::fill),
    /// the copy has the same chunks.
    pub fn emptied(&self, layout: Layout) -> Self {
        let mut new = Self::new(self.params(), layout);
        new.header.dictionary = self.header.dictionary;
        new.max_chunks = self.max_chunks;
        new.checksums = self.checksums.as_ref().map(|_| Checksums::default());
        new.metalayers.clone_from(&self.metalayers);
        new.vlmetalayers.clone_from(&self.vlmetalayers);
        new.vlmetalayers.retain(|layer| !SEARCH_INDEXES.contains(&&*layer.name));
        new.header.chunksize = self.header.chunksize;
        if let (Offsets::Alike(offset @ Offset::Special(_), _), ChunkSize::Fixed(_)) =
            (&self.offsets, self.header.chunksize)
        {
            new.offsets = Offsets::Alike(*offset, self.nchunks());
            if let Some(checksums) = &mut new.checksums {
                let sum = checksums::checksum(*offset, &[]);
                checksums.chunks = vec![sum.into(); self.nchunks() as usize];
            }
            new.header.nbytes = self.header.nbytes;
        }
        new
    }

    /// Returns the fields of the header as they were read. The outline must be unchanged.
    pub(super) fn stored_header(&self) -> Header {
        Header { cbytes: self.header.cbytes + self.spare, ..self.header.clone() }
    }

    /// Returns the fields of the header, with the changes since it was read. In a contiguous frame,
    /// `cbytes` is the end of the chunks.
    pub(crate) fn fields(&self) -> &Header {
        &self.header
    }

    /// Returns the compression parameters that the header states.
    pub fn params(&self) -> Params {
        self.header.params()
    }

    /// Returns the storage layout of the chunks.
    pub fn layout(&self) -> Layout {
        self.header.layout
    }

    /// Returns whether the header states that chunks are compressed with dictionaries.
    pub fn dictionary(&self) -> bool {
        self.header.dictionary
    }

    /// Sets whether the header states that chunks are compressed with dictionaries.
    pub fn set_dictionary(&mut self, dictionary: bool) {
        self.header.dictionary = dictionary;
    }

    /// Returns the version of the frame format: 3 if chunks have different sizes or variable-length
    /// blocks, otherwise 2.
    pub fn version(&self) -> u8 {
        if self.header.chunksize == ChunkSize::Variable || self.header.variable_blocks {
            3
        } else {
            2
        }
    }

    /// Returns the number of chunks.
    pub fn nchunks(&self) -> u64 {
        self.offsets.len()
    }

    /// Returns the total decoded size of all chunks, in bytes.
    pub fn nbytes(&self) -> u64 {
        self.header.nbytes
    }

    /// Returns the number of bytes between the header and the index: the stored chunks and gaps. In
    /// a directory, returns the total size of the stored chunks.
    pub fn cbytes(&self) -> u64 {
        if self.header.nbytes == 0 { 0 } else { self.header.cbytes + self.spare }
    }

    /// Returns the end of the last chunk of a contiguous frame, in bytes after the end of the header.
    pub fn chunks_end(&self) -> u64 {
        // A frame whose chunks were all deleted can still state their size.
        if self.header.nbytes == 0 { 0 } else { self.header.cbytes }
    }

    /// Returns the decoded size of the chunks.
    pub fn chunksize(&self) -> ChunkSize {
        self.header.chunksize
    }

    /// Sets the chunk size of an empty frame.
    ///
    /// # Errors
    /// [`Error::Argument`]: the frame has chunks.
    pub fn set_chunksize(&mut self, size: ChunkSize) -> Result<(), Error> {
        if self.nchunks() > 0 {
            let count = self.nchunks();
            return Err(Error::Argument(format!(
                "the size of {count} existing chunks cannot change"
            )));
        }
        self.header.chunksize = size;
        Ok(())
    }

    /// Returns whether the chunks have variable-length blocks.
    pub fn variable_blocks(&self) -> bool {
        self.header.variable_blocks
    }

    /// Returns the location of the chunk at index `number`, or `None` if there is no chunk at this
    /// index.
    ///
    /// `source` must be the source that the outline was [read](Self::read) from. If the index is
    /// not [loaded](Self::load), the method reads the required part of the index from `source` when
    /// this part is first needed.
    ///
    /// # Errors
    /// - [`Error::Format`]: the required part of the index is invalid;
    /// - [`Error::Io`]: reading from `source` fails.
    pub fn offset<R: ReadAt + ?Sized>(
        &self,
        number: u64,
        source: &R,
    ) -> Result<Option<Offset>, Error> {
        self.offsets.get(number, source)
    }

    /// Returns the location of the chunk at index `number`. Returns `None` if there is no chunk at
    /// this index, or if this part of the index is not decoded yet.
    #[inline]
    pub fn decoded(&self, number: u64) -> Option<Offset> {
        self.offsets.decoded(number)
    }

    /// Returns whether `other` equals this outline. The caller must have just read `other` from
    /// `source`. If this outline has not decoded a part of the index, the method compares the
    /// position of this part in the index chunk. It does not always compare the content of this
    /// part.
    ///
    /// # Errors
    /// Fails with the errors of [`offset`](Self::offset) for `other`.
    pub fn is_same<R: ReadAt + ?Sized>(&self, other: &Self, source: &R) -> Result<bool, Error> {
        let is_same = self.header(0) == other.header(0)
            && self.vlmetalayers == other.vlmetalayers
            && self.checksums == other.checksums;
        Ok(is_same && self.offsets.is_same(&other.offsets, source)?)
    }

    /// Returns the decoded size of a chunk, in bytes, or `None` if the [chunk
    /// size](Self::chunksize) is not fixed. If chunk sizes vary, only the header of each chunk
    /// states its size.
    #[inline]
    pub fn nbytes_of(&self, number: u64) -> Option<u32> {
        let size = self.header.chunksize.fixed()?;
        let before = number.checked_mul(size.into())?;
        // The result is at most the chunk size.
        Some(self.header.nbytes.saturating_sub(before).min(size.into()) as u32)
    }

    /// Returns the chunk that an [`Offset::Special`] represents: a header without data.
    ///
    /// # Errors
    /// Fails with [`Error::Format`] if:
    ///
    /// - the size of the chunk is unknown, because the chunk sizes vary;
    /// - the size of the chunk is not a multiple of the typesize;
    /// - `special` is [`Special::Value`];
    /// - `special` is [`Special::Nan`], and the typesize is not 4 or 8.
    pub fn special_chunk(&self, number: u64, special: Special) -> Result<Vec<u8>, Error> {
        let nbytes = self.nbytes_of(number).ok_or_else(|| self.unknown_size(number))?;
        let typesize = self.header.typesize;
        let params = Params {
            typesize,
            // A value must not cross the boundary of two blocks. The block size has no other effect
            // here.
            blocksize: self.header.params().blocksize.filter(|size| size.is_multiple_of(typesize)),
            ..Params::default()
        };
        chunk::special(&params, special, nbytes as usize, &[]).map_err(|_| {
            let expected = format_args!("a multiple of the typesize {typesize}").to_string();
            FormatError::of(&rules::CHUNK_NBYTES, self.index_at(), expected, nbytes).into()
        })
    }

    /// Parses the header of a chunk as [`Header::parse`](chunk::Header::parse) does. Costs less for a
    /// chunk with the parameters and the decoded size of an earlier chunk.
    ///
    /// # Errors
    /// Fails with the errors of [`Header::parse`](chunk::Header::parse).
    pub fn parse_chunk_header(&self, chunk: &[u8]) -> Result<chunk::Header, FormatError> {
        self.chunk_header.parse(chunk)
    }

    /// Returns the header of an earlier chunk, and the compressed size of the complete chunk at index
    /// `number`, if [`chunk_header`](Self::chunk_header) accepts the chunk and its header differs only
    /// in this size. Costs a comparison, and no copy of a header.
    #[inline]
    pub fn known_chunk_header(&self, number: u64, chunk: &[u8]) -> Option<(&chunk::Header, u32)> {
        self.chunk_header.find(chunk).filter(|(header, cbytes)| {
            *cbytes as usize <= chunk.len()
                && !header.lazy
                && self.nbytes_of(number).is_none_or(|nbytes| nbytes == header.nbytes)
        })
    }

    /// Parses the header of the chunk at index `number`. `head` must start with this header. The
    /// chunk can occupy up to `room` bytes. `at` is the position of the chunk, for error messages.
    ///
    /// # Errors
    /// Fails with [`Error::Format`] if:
    ///
    /// - `head` does not start with the header of a chunk;
    /// - the chunk is lazy, or longer than `room`;
    /// - the decoded size of the chunk differs from the size that the frame states.
    pub fn chunk_header(
        &self,
        number: u64,
        head: &[u8],
        at: u64,
        room: u64,
    ) -> Result<chunk::Header, Error> {
        let header = self.parse_chunk_header(head).map_err(|error| error.moved(at))?;
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
        let expected = "a stored chunk, as sizes vary and a special offset states no size";
        let found = format_args!("a special offset for chunk {number}").to_string();
        FormatError::of(&rules::CHUNK_UNKNOWN, self.index_at(), expected, found).into()
    }

    /// Returns the position of the index, from the start of the frame.
    fn index_at(&self) -> u64 {
        u64::from(self.header.header_len) + self.chunks_area()
    }

    /// Returns the number of bytes that chunks occupy after the header.
    pub(crate) fn chunks_area(&self) -> u64 {
        match self.header.layout {
            Layout::Contiguous => self.cbytes(),
            Layout::Directory => 0,
        }
    }

    /// Returns the metalayers of the header.
    pub fn metalayers(&self) -> &[Metalayer] {
        &self.metalayers
    }

    /// Adds a metalayer to the header. The header becomes longer.
    ///
    /// # Errors
    /// Fails with [`Error::Argument`] if:
    ///
    /// - the header already has 16 metalayers, or a metalayer with this name;
    /// - the name is not 1 to 31 bytes long, or contains a NUL byte;
    /// - the contents of all metalayers have 2 GiB - 4 KiB or more in total;
    /// - the frame is contiguous and has chunks, which would have to move.
    pub fn add_metalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.check_movable()?;
        section::check_new(name, content, pairs(&self.metalayers))?;
        self.metalayers.push(Metalayer { name: name.into(), content: content.into() });
        Ok(())
    }

    /// Replaces the content of a metalayer of the header by content of the same length.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no metalayer with this name, or the lengths differ.
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
    /// [`Error::Argument`]: there is no metalayer with this name, or the frame is contiguous and
    /// has chunks.
    pub fn remove_metalayer(&mut self, name: &str) -> Result<(), Error> {
        self.check_movable()?;
        let found = self.metalayers.iter().position(|each| each.name == name);
        self.metalayers.remove(found.ok_or_else(|| none_of(name))?);
        Ok(())
    }

    /// Checks that the size of the header can change.
    fn check_movable(&mut self) -> Result<(), Error> {
        if self.header.layout == Layout::Contiguous && self.nchunks() > 0 {
            let what = "fixed-length metalayers of a contiguous frame are added and removed before its first \
                        chunk: give them when it is created (`meta`), or use variable-length ones (`vlmeta`)";
            return Err(Error::Argument(what.into()));
        }
        self.is_header_stored = false;
        self.space.shift();
        Ok(())
    }

    /// Returns the metalayers of the trailer, whose contents are chunks.
    pub fn vlmetalayers(&self) -> &[Metalayer] {
        &self.vlmetalayers
    }

    /// Adds a variable-length metalayer to the trailer, or replaces the content of the existing
    /// metalayer with this name. `chunk` is the compressed content.
    ///
    /// # Errors
    /// - [`Error::Format`]: `chunk` does not start with the header of a chunk;
    /// - [`Error::Limit`]: the content is so compressible that the default of
    ///   [`Limits::metadata`] would not allow to read it;
    /// - [`Error::Argument`], if
    ///   - the length of `chunk` differs from the size in its header, or `chunk` is lazy;
    ///   - the name or the content is that of [checksums](Self::set_checksums);
    ///   - the metalayer is new, and the trailer already has 16 metalayers;
    ///   - the metalayer is new, and the name is not 1 to 31 bytes long or contains a NUL byte;
    ///   - the compressed contents would have 2 GiB - 4 KiB or more in total.
    pub fn set_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        let header = chunk::Header::parse(chunk)?;
        if header.cbytes as usize != chunk.len() || header.lazy {
            let (found, len) = (chunk.len(), header.cbytes);
            return Err(Error::Argument(format!(
                "{found} bytes are not the whole chunk of {len} bytes"
            )));
        }
        if name == checksums::NAME || checksums::is_marked(chunk) {
            let what = format!(
                "the name `{}` and content that starts with it are reserved for checksums (`set_checksums`)",
                checksums::NAME
            );
            return Err(Error::Argument(what));
        }
        let others = || self.vlmetalayers.iter().filter(|each| each.name != name);
        let others_len = others().map(|each| each.content.len() as u64).sum::<u64>();
        section::check_total(others_len + chunk.len() as u64)?;
        // The sum is a limit of all readers, because other metalayers can be removed later.
        let total =
            others().map(|each| excess(&each.content)).fold(excess(chunk), u64::saturating_add);
        if excess(chunk) > 0 && total > limits::DECODED {
            let what = "bytes of metalayers beyond 256 times their compressed size";
            return Err(Error::Limit { limit: None, what, amount: total, max: limits::DECODED });
        }
        match self.vlmetalayers.iter_mut().find(|each| each.name == name) {
            Some(found) => found.content = chunk.into(),
            None => {
                if self.has_checksums() && self.vlmetalayers.len() + 1 >= section::MAX_METALAYERS {
                    let max = section::MAX_METALAYERS;
                    let what = format!(
                        "a frame has at most {max} metalayers of each kind, one of them the checksums"
                    );
                    return Err(Error::Argument(what));
                }
                section::check_new(name, chunk, pairs(&self.vlmetalayers))?;
                self.vlmetalayers.push(Metalayer { name: name.into(), content: chunk.into() });
            }
        }
        Ok(())
    }

    /// Removes a metalayer from the trailer.
    ///
    /// # Errors
    /// [`Error::Argument`]: there is no metalayer with this name.
    pub fn remove_vlmetalayer(&mut self, name: &str) -> Result<(), Error> {
        let found = self.vlmetalayers.iter().position(|each| each.name == name);
        self.vlmetalayers.remove(found.ok_or_else(|| none_of(name))?);
        Ok(())
    }

    /// Returns the size of the header, in bytes.
    pub fn header_len(&self) -> u64 {
        if self.is_header_stored {
            return self.header.header_len.into();
        }
        let one =
            |metalayer: &Metalayer| 1 + metalayer.name.len() + 5 + 5 + metalayer.content.len();
        // The section has 10 more bytes: the array, the size of the index, the map and the second
        // array.
        let section = 10 + self.metalayers.iter().map(one).sum::<usize>();
        (MIN_HEADER_LEN + section) as u64
    }

    /// Returns the header with its metalayers, for a frame of `frame_len` bytes.
    pub fn header(&self, frame_len: u64) -> Vec<u8> {
        let mut header = self.header.clone();
        header.version = self.version();
        header.variable_chunks = header.chunksize == ChunkSize::Variable;
        header.has_vlmeta = !self.vlmetalayers.is_empty() || self.has_checksums();
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

    /// Returns the index chunk, or no bytes if there are no chunks. Usually only those blocks of
    /// the index are encoded that have changed since the last read or write.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the index is not [loaded](Self::load);
    /// - [`Error::Format`]: a part of the index that was read is invalid;
    /// - [`Error::Io`]: there is not enough memory.
    pub fn index(&mut self) -> Result<Arc<[u8]>, Error> {
        let end = self.chunks_end();
        self.offsets.encode((self.spare > 0).then_some(end))
    }

    /// Returns the size of the index chunk, and the bytes in which it differs from the index chunk at
    /// the position `at` of the source, with their offsets. Returns `None` if the complete
    /// [`index`](Self::index) has to be written. The caller must then write these bytes.
    ///
    /// The cost does not depend on the number of chunks, and the index need not be
    /// [loaded](Self::load).
    ///
    /// # Errors
    /// [`Error::Io`]: there is not enough memory.
    pub fn index_patch(&mut self, at: u64) -> Result<Option<IndexPatch>, Error> {
        let is_stated = self.spare > 0 || self.offsets.spare().is_some();
        self.offsets.patch(at, is_stated.then_some(self.chunks_end()))
    }

    /// Returns whether appending a chunk of `nbytes` decoded bytes needs only the offset of the last
    /// chunk. Other changes need a [loaded](Self::load) index.
    pub fn appends_alone(&self, nbytes: u32) -> bool {
        let is_like_last =
            |size| self.nbytes_of(self.nchunks().saturating_sub(1)) == Some(size) && nbytes <= size;
        self.header.layout == Layout::Contiguous
            && match self.header.chunksize {
                ChunkSize::Fixed(size) => is_like_last(size),
                ChunkSize::Variable => true,
                ChunkSize::Unknown => false,
            }
    }

    /// Returns the trailer with its metalayers, for an index chunk of `index_len` bytes.
    ///
    /// # Errors
    /// - [`Error::Io`]: there is not enough memory for the [checksums](Self::set_checksums);
    /// - [`Error::Argument`]: the compressed contents of the variable-length metalayers and the
    ///   checksums have 2 GiB - 4 KiB or more in total.
    pub fn trailer(&self, index_len: usize) -> Result<Vec<u8>, Error> {
        let count = usize::try_from(self.nchunks()).unwrap_or(usize::MAX);
        let sums = self.checksums.as_ref().map(|checksums| checksums.to_content(count));
        let sums = sums.transpose()?;
        let layer = sums.as_ref().map(|content| (checksums::NAME, &content[..]));
        let mut out = vec![0x94, 1];
        let metalayers: Vec<_> = pairs(&self.vlmetalayers).chain(layer).collect();
        section::check_total(metalayers.iter().map(|(_, content)| content.len() as u64).sum())?;
        section::write(&mut out, 1, &metalayers);
        if sums.is_some() {
            let frame_len = self.frame_len(index_len + out.len() + TRAILER_END_LEN);
            let crc = checksums::of_metadata(&self.header(frame_len), pairs(&self.vlmetalayers));
            // After a change by another program, the checksums remain marked as outdated until they
            // are set again.
            let is_valid = self.checksums.as_ref().is_none_or(|sums| sums.fault().is_none());
            let known_len = if is_valid { frame_len } else { 0 };
            checksums::complete(&mut out, count, known_len, crc);
        }
        let len = (out.len() + TRAILER_END_LEN) as u32;
        out.push(0xce);
        out.extend(len.to_be_bytes());
        // No fingerprint.
        out.extend([0xd8, 0]);
        out.extend([0; 16]);
        Ok(out)
    }

    /// Returns the size of the frame, in bytes. `end` is the total size of the index and the
    /// trailer.
    pub fn frame_len(&self, end: usize) -> u64 {
        self.header_len() + self.chunks_area() + end as u64
    }
}

fn pairs(metalayers: &[Metalayer]) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
    metalayers.iter().map(pair)
}

pub(super) fn pair(metalayer: &Metalayer) -> (&str, &[u8]) {
    (&metalayer.name, &metalayer.content)
}

/// Returns the memory for decoding the content of a metalayer that exceeds what readers allow for its
/// stored bytes.
fn excess(chunk: &[u8]) -> u64 {
    let allowed = limits::DECODED_RATIO.saturating_mul(chunk.len() as u64);
    chunk::Header::parse(chunk).map_or(0, |header| header.decoding_memory().saturating_sub(allowed))
}

fn none_of(name: &str) -> Error {
    Error::Argument(format!("there is no metalayer `{}`", name.escape_debug()))
}
