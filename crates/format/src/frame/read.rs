//! The reader of a frame: metalayers when it is opened, chunks on demand.

use std::io::{self, ErrorKind};

use super::metalayer::Metalayer;
use super::offset::Offset;
use super::outline::Outline;
use super::{Header, Layout};
use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN};
use crate::directory::{self, Folder};
use crate::{Error, FormatError, Limit, Limits, ReadAt, b2nd};

/// A frame that is open for reading: contiguous, or in a directory. C: `blosc2_schunk_open`.
///
/// ```
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Frame, Writer};
/// use blosc2_format::Limits;
///
/// let mut writer = Writer::new(std::io::Cursor::new(Vec::new()), Params::default(), &[])?;
/// writer.push(&[7; 4000])?;
/// let bytes = writer.finish()?.into_inner();
///
/// let mut frame = Frame::open(bytes, &Limits::default())?;
/// let mut data = Vec::new();
/// for index in 0..frame.nchunks() {
///     frame.decode_chunk(index, &mut data)?;
///     println!("chunk {index} has {} bytes", data.len());
/// }
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Frame<R> {
    source: R,
    /// The directory, if the chunks are separate files.
    folder: Option<Box<dyn Folder<File = R>>>,
    /// The version of the index file when it was read, if the directory has versions.
    version: Option<String>,
    outline: Outline,
    /// The stored header.
    header: Header,
    limits: Limits,
    decoder: Decoder,
    /// A buffer for the stored bytes of a chunk, which is reused for the next chunk.
    stored: Vec<u8>,
}

impl<R: ReadAt> Frame<R> {
    /// Opens the frame at the start of `source`. Bytes after the end of the frame are ignored.
    ///
    /// Reads the header, the trailer and the index, but no chunk.
    ///
    /// A long index is processed in parts:
    ///
    /// - If the index has more than 2,048 entries and is stored in the form that C-Blosc2 writes,
    ///   each part is decoded and checked when it is needed.
    /// - If the stored size of such an index also exceeds 64 KiB, each part is read when it is
    ///   needed.
    /// - Any other index is read and decoded completely when the frame is opened.
    ///
    /// # Errors
    /// - [`Error::Format`]: the header, the index or the trailer violates a rule; the first
    ///   violation is returned;
    /// - [`Error::Limit`]: the header, the index or the trailer exceeds `limits`;
    /// - [`Error::Unsupported`]: decoding the index needs a codec or a filter that is not
    ///   supported;
    /// - [`Error::Io`]: reading from `source` fails.
    pub fn open(source: R, limits: &Limits) -> Result<Self, Error> {
        let outline = Outline::read(&source, Layout::Contiguous, limits)?;
        outline.verify_metadata()?;
        Ok(Self::new(source, None, None, outline, limits))
    }

    /// Opens the frame in a directory.
    ///
    /// If the directory has [versions](Folder::version), reads of chunks fail after another writer
    /// has changed the frame: the files may contain other chunks.
    ///
    /// # Errors
    /// - [`Error::Io`]: the index file is missing, or reading it or its version fails;
    /// - [`Error::Format`]: the index file violates a rule; the first violation is returned;
    /// - [`Error::Limit`]: the index file exceeds `limits`;
    /// - [`Error::Unsupported`]: decoding the index needs a codec or a filter that is not
    ///   supported.
    pub fn open_directory<F>(folder: F, limits: &Limits) -> Result<Self, Error>
    where
        F: Folder<File = R> + 'static,
    {
        // If the index changes after this, reads of chunks fail.
        let version = folder.version(directory::INDEX)?;
        let source = folder.open(directory::INDEX)?;
        let outline = Outline::read(&source, Layout::Directory, limits)?;
        outline.verify_metadata()?;
        Ok(Self::new(source, Some(Box::new(folder)), version, outline, limits))
    }

    fn new(
        source: R,
        folder: Option<Box<dyn Folder<File = R>>>,
        version: Option<String>,
        outline: Outline,
        limits: &Limits,
    ) -> Self {
        let decoder = Decoder::default();
        let (header, limits, stored) = (outline.stored_header(), *limits, Vec::new());
        Self { source, folder, version, outline, header, limits, decoder, stored }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Checks that the frame has [checksums](super::checksum) of its current state. Without them, a
    /// changed byte can decode to other data without an error.
    ///
    /// ```
    /// use blosc2_format::Limits;
    /// use blosc2_format::chunk::Params;
    /// use blosc2_format::frame::{Frame, Writer};
    ///
    /// let out = std::io::Cursor::new(Vec::new());
    /// let bytes = Writer::new(out, Params::default(), &[])?.finish()?.into_inner();
    /// let frame = Frame::open(bytes, &Limits::default())?;
    /// assert!(frame.require_checksums().is_err());
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Format`]: the frame has no checksums, or a program that writes no checksums has
    /// changed the frame.
    pub fn require_checksums(&self) -> Result<(), Error> {
        self.outline.require_checksums()
    }

    /// Returns the header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the metalayers of the header, in order.
    pub fn metalayers(&self) -> &[Metalayer] {
        self.outline.metalayers()
    }

    /// Returns the content of a metalayer of the header, or `None` if there is none with this name.
    /// C: `blosc2_meta_get`. Python: `SChunk.meta`.
    pub fn metalayer(&self, name: &str) -> Option<&[u8]> {
        let metalayer =
            self.outline.metalayers().iter().find(|metalayer| metalayer.name == name)?;
        Some(&metalayer.content)
    }

    /// Returns the names of the variable-length metalayers of the trailer, in order.
    pub fn vlmetalayers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.outline.vlmetalayers().iter().map(|each| each.name.as_str())
    }

    /// Returns the chunk with the content of a variable-length metalayer, or `None` if there is
    /// none with this name.
    pub fn vlmetalayer_chunk(&self, name: &str) -> Option<&[u8]> {
        let found = self.outline.vlmetalayers().iter().find(|each| each.name == name)?;
        Some(&found.content)
    }

    /// Returns the content of a variable-length metalayer, or `None` if there is none with this
    /// name. C: `blosc2_vlmeta_get`. Python: `SChunk.vlmeta`.
    ///
    /// # Errors
    /// - [`Error::Format`]: the chunk with the content violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported;
    /// - [`Error::Limit`]: the content is larger than [`Limits::memory`];
    /// - [`Error::Limit`]: the content and the buffers for decoding need more memory than
    ///   [`Limits::metadata`] allows;
    /// - [`Error::Io`]: the source cannot determine its size.
    pub fn vlmetalayer(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(bytes) = self.vlmetalayer_chunk(name) else { return Ok(None) };
        let mut content = Vec::new();
        let chunk = Chunk::new(bytes, &self.limits)?;
        let held = chunk.header().decoding_memory();
        let max = self.limits.decoded_metadata(self.source.size()?);
        Limits::allow(Limit::Metadata, "bytes in memory for a metalayer", held, max)?;
        Decoder::default().decode_vec(&chunk, &mut content)?;
        Ok(Some(content))
    }

    /// Returns the number of chunks.
    pub fn nchunks(&self) -> u64 {
        self.outline.nchunks()
    }

    pub(crate) fn has_checksums(&self) -> bool {
        self.outline.has_checksums()
    }

    /// Returns the end of the header, if the chunks are in the same file.
    pub(crate) fn header_end(&self) -> Option<u64> {
        self.folder.is_none().then(|| self.outline.header_len())
    }

    /// Returns the end of the chunks in the source, if the chunks are in the same file.
    pub(crate) fn chunks_end(&self) -> Option<u64> {
        Some(self.header_end()?.saturating_add(self.outline.chunks_end()))
    }

    /// Returns whether the chunk at index `number` must still be compared with its checksum.
    pub(super) fn is_unverified(&self, number: u64) -> bool {
        self.outline.is_unverified(number)
    }

    /// Returns the location of the chunk at index `number`.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Format`]: the part of the index that contains this chunk is invalid;
    /// - [`Error::Io`]: reading fails.
    pub fn offset(&self, number: u64) -> Result<Offset, Error> {
        self.outline.offset(number, &self.source)?.ok_or_else(|| {
            Error::Argument(format!(
                "no chunk at index {number}: there are {} chunks",
                self.nchunks()
            ))
        })
    }

    /// Returns the chunk at index `number` as stored. For a chunk whose location is
    /// [`Offset::Special`], it returns an equivalent special chunk. C: `blosc2_schunk_get_chunk`.
    /// Python: `SChunk.get_chunk`.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Format`], if
    ///   - the index or the header of the chunk violates a rule;
    ///   - there is no chunk at the position that the index states, or the file of the chunk is
    ///     missing;
    ///   - the chunk differs from its [checksum](super::checksum);
    /// - [`Error::Limit`]: the chunk exceeds the limits;
    /// - [`Error::Io`] with the kind [`ErrorKind::ResourceBusy`]: another writer has changed the
    ///   directory since it was opened;
    /// - [`Error::Io`]: reading fails.
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>, Error> {
        let mut chunk = Vec::new();
        self.chunk_into(number, &mut chunk)?;
        Ok(chunk)
    }

    /// Replaces the content of `chunk` by the chunk at index `number`, in the form that the method
    /// [`chunk`](Self::chunk) returns. The memory of `chunk` is reused, except for a chunk whose
    /// location is [`Offset::Special`]. On an error the content of `chunk` is unspecified.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk).
    pub fn chunk_into(&self, number: u64, chunk: &mut Vec<u8>) -> Result<(), Error> {
        let offset = self.offset(number)?;
        match offset {
            Offset::Special(special) => *chunk = self.outline.special_chunk(number, special)?,
            Offset::At(place) => self.at(number, place, |source, header, at| {
                // `at` has checked that there are enough bytes.
                let len = Limits::allow(
                    Limit::Memory,
                    "bytes of a chunk",
                    header.cbytes.into(),
                    self.limits.memory,
                )?;
                chunk.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
                Ok(source.read_exact_at(at, chunk)?)
            })?,
        }
        self.outline.verify(number, offset, chunk)
    }

    /// Returns the header of the chunk at index `number`. For a chunk whose location is
    /// [`Offset::Special`], it returns the header of an equivalent special chunk.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk). The checksum of the chunk is not compared.
    pub fn chunk_header(&self, number: u64) -> Result<chunk::Header, Error> {
        match self.offset(number)? {
            Offset::At(place) => self.at(number, place, |_, header, _| Ok(header)),
            Offset::Special(special) => {
                Ok(chunk::Header::parse(&self.outline.special_chunk(number, special)?)?)
            }
        }
    }

    /// Finds the chunk at index `number`, and calls `read` with the source that contains the chunk, its
    /// header, and its offset in the source, for reading a part of the chunk. Returns `None`, without a
    /// call, if the location of the chunk is [`Offset::Special`]: such a chunk is not stored.
    ///
    /// The chunk is completely inside the source. Its checksum is not compared.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk), and with those of `read`.
    pub fn with_chunk<T>(
        &self,
        number: u64,
        read: impl FnOnce(&R, chunk::Header, u64) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match self.offset(number)? {
            Offset::At(place) => self.at(number, place, read).map(Some),
            Offset::Special(_) => Ok(None),
        }
    }

    /// Returns the shapes, the dtype and the layout of the array in the frame, or `None` if the frame
    /// contains no array.
    ///
    /// # Errors
    /// - [`Error::Format`]: the metalayer of the array violates a rule, or does not match the frame;
    /// - [`Error::Limit`]: the array exceeds the limits.
    pub fn array(&self) -> Result<Option<(b2nd::Meta, b2nd::Geometry)>, Error> {
        let content = self.metalayer(b2nd::NAME).or_else(|| self.metalayer(b2nd::OLD_NAME));
        let Some(content) = content else { return Ok(None) };
        let frame = b2nd::Frame {
            typesize: self.header.typesize,
            chunksize: self.header.chunksize.fixed(),
            blocksize: None,
            nchunks: Some(self.nchunks()),
        };
        b2nd::read(content, &frame, &self.limits).map(Some)
    }

    /// Returns the decoded size of the chunk at index `number`, in bytes.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk).
    pub fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        let offset = self.offset(number)?;
        if let Some(nbytes) = self.outline.nbytes_of(number) {
            return Ok(nbytes.into());
        }
        if self.outline.is_unverified(number) {
            // Reads the complete chunk, because its header may be damaged.
            self.chunk(number)?;
        }
        match offset {
            Offset::At(place) => self.at(number, place, |_, header, _| Ok(header.nbytes.into())),
            Offset::Special(_) => Err(self.outline.unknown_size(number)),
        }
    }

    /// Decodes the chunk at index `number` into `data`, and sets the length of `data` to the
    /// decoded size of the chunk. C: `blosc2_schunk_decompress_chunk`. Python:
    /// `SChunk.decompress_chunk`.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk), and:
    /// - [`Error::Format`]: the content of the chunk violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        let mut stored = std::mem::take(&mut self.stored);
        let outcome = self.chunk_into(number, &mut stored).and_then(|()| {
            let typesize = usize::try_from(self.header().typesize).unwrap_or(usize::MAX);
            let chunk = Chunk::new(&stored, &self.limits)?.with_typesize(typesize);
            self.decoder.decode_vec(&chunk, data)
        });
        self.stored = stored;
        outcome
    }

    /// Returns a mutable reference to the source. For a directory, the source is the index file.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Returns the source. For a directory, the source is the index file.
    pub fn into_inner(self) -> R {
        self.source
    }

    /// Finds a chunk at its position, and calls `then` with its source, its header and its offset.
    fn at<T>(
        &self,
        number: u64,
        place: u64,
        then: impl FnOnce(&R, chunk::Header, u64) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let read = |source: &R, at: u64, room: u64| {
            let head = source.read_vec_at(at, room.min(EXTENDED_HEADER_LEN as u64))?;
            self.outline.chunk_header(number, &head, at, room)
        };
        let Some(folder) = &self.folder else {
            let at = self.outline.header_len().saturating_add(place);
            let header = read(&self.source, at, self.outline.chunks_end().saturating_sub(place))?;
            return then(&self.source, header, at);
        };
        let name = directory::chunk_name(place);
        let opened = folder.open(&name);
        // A writer that reuses the number of a removed chunk has stored another index before.
        if self.version.is_some() && folder.version(directory::INDEX)? != self.version {
            let detail = format!(
                "read chunk {number} from `{name}`: another writer has changed the directory since \
                 it was opened: open it again"
            );
            return Err(io::Error::new(ErrorKind::ResourceBusy, detail).into());
        }
        let file = opened.map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                FormatError::of(&directory::MISSING, 0, format_args!("{name}"), "no such file")
                    .into()
            }
            _ => Error::Io(error),
        })?;
        let header = read(&file, 0, file.size()?)?;
        then(&file, header, 0)
    }
}
