//! Reading a frame: metalayers at once, chunks one by one.

use std::io::ErrorKind;

use super::offset::Offset;
use super::outline::{Metalayer, Outline};
use super::{Header, Layout};
use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN};
use crate::directory::{self, Folder};
use crate::{Error, FormatError, Limits, ReadAt};

/// A frame that is being read: a contiguous one, or a directory.
///
/// ```no_run
/// use blosc2_format::{Limits, frame::Frame};
///
/// let mut frame = Frame::open(std::fs::File::open("data.b2frame")?, &Limits::default())?;
/// let mut data = Vec::new();
/// for number in 0..frame.nchunks() {
///     frame.decode_chunk(number, &mut data)?;
///     println!("chunk {number} has {} bytes", data.len());
/// }
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Frame<R> {
    source: R,
    /// Where the chunks are, where they are files of their own.
    folder: Option<Box<dyn Folder<File = R>>>,
    outline: Outline,
    limits: Limits,
    decoder: Decoder,
    /// The chunk that was decoded last, as it is stored: its memory serves the next one.
    stored: Vec<u8>,
}

impl<R: ReadAt> Frame<R> {
    /// Opens the frame at the start of `source`; what follows its end is left out.
    ///
    /// Reads the header, the index and the trailer, and no chunk.
    ///
    /// # Errors
    /// - one of the three breaks a rule of the format: the first that does;
    /// - [`Error::Limit`] where they take more than `limits` allow;
    /// - [`Error::Io`] where `source` fails.
    pub fn open(source: R, limits: &Limits) -> Result<Self, Error> {
        let outline = Outline::read(&source, Layout::Contiguous, limits)?;
        Ok(Self::new(source, None, outline, limits))
    }

    /// Opens the frame that is kept as a directory.
    ///
    /// # Errors
    /// As [`open`](Self::open), about the index file; [`Error::Io`] also where there is none.
    pub fn open_directory<F>(folder: F, limits: &Limits) -> Result<Self, Error>
    where
        F: Folder<File = R> + 'static,
    {
        let source = folder.open(directory::INDEX)?;
        let outline = Outline::read(&source, Layout::Directory, limits)?;
        Ok(Self::new(source, Some(Box::new(folder)), outline, limits))
    }

    fn new(
        source: R,
        folder: Option<Box<dyn Folder<File = R>>>,
        outline: Outline,
        limits: &Limits,
    ) -> Self {
        let decoder = Decoder::default();
        Self { source, folder, outline, limits: *limits, decoder, stored: Vec::new() }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The fields of its header.
    pub fn header(&self) -> &Header {
        self.outline.fields()
    }

    /// The metalayers in its header, in order.
    pub fn metalayers(&self) -> &[Metalayer] {
        self.outline.metalayers()
    }

    /// The content of a metalayer in its header; `None` where there is none of this name.
    pub fn metalayer(&self, name: &str) -> Option<&[u8]> {
        let metalayer =
            self.outline.metalayers().iter().find(|metalayer| metalayer.name == name)?;
        Some(&metalayer.content)
    }

    /// The names of the variable-length metalayers in its trailer, in order.
    pub fn vlmetalayers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.outline.vlmetalayers().iter().map(|each| each.name.as_str())
    }

    /// The chunk that holds the content of a variable-length metalayer; `None` where there is none
    /// of this name.
    pub fn vlmetalayer_chunk(&self, name: &str) -> Option<&[u8]> {
        let found = self.outline.vlmetalayers().iter().find(|each| each.name == name)?;
        Some(&found.content)
    }

    /// The content of a variable-length metalayer; `None` where there is none of this name.
    ///
    /// # Errors
    /// - the chunk that holds it is wrong or cannot be decoded;
    /// - [`Error::Limit`] where it has more than [`Limits::metadata`] leaves besides the index;
    /// - [`Error::Io`].
    pub fn vlmetalayer(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(bytes) = self.vlmetalayer_chunk(name) else { return Ok(None) };
        let mut content = Vec::new();
        let chunk = Chunk::new(bytes, &self.limits)?;
        // The content, and a block that goes through the codec and the filters.
        let block = (0..chunk.nblocks()).map(|block| chunk.block_size(block)).max();
        let held = u64::from(chunk.header().nbytes) + 2 * block.unwrap_or(0) as u64;
        let max = self.outline.metadata_left(&self.limits, self.source.size()?);
        Limits::allow("bytes to hold for a metalayer (see `Limits::metadata`)", held, max)?;
        Decoder::default().decode_vec(&chunk, &mut content)?;
        Ok(Some(content))
    }

    /// How many chunks there are.
    pub fn nchunks(&self) -> u64 {
        self.outline.nchunks()
    }

    /// Where the data of a chunk is.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is no such chunk; [`Error::Format`] where its part of a long index is broken;
    /// [`Error::Io`].
    pub fn offset(&self, number: u64) -> Result<Offset, Error> {
        self.outline.offset(number, &self.source)?.ok_or_else(|| {
            Error::Argument(format!("there is no chunk {number}, only {}", self.nchunks()))
        })
    }

    /// A chunk as it is stored, or one that is equal where the index says that all of its data is
    /// the same.
    ///
    /// # Errors
    /// There is no such chunk, or it is not where the index says; [`Error::Limit`] and
    /// [`Error::Io`].
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>, Error> {
        let mut chunk = Vec::new();
        self.chunk_into(number, &mut chunk)?;
        Ok(chunk)
    }

    /// The same, which replaces what is in `chunk`, and uses its memory.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk); `chunk` holds anything then.
    pub fn chunk_into(&self, number: u64, chunk: &mut Vec<u8>) -> Result<(), Error> {
        match self.offset(number)? {
            Offset::Special(special) => *chunk = self.outline.special_chunk(number, special)?,
            Offset::At(place) => self.at(number, place, |source, header, at| {
                // There are as many bytes: `at` has compared.
                let len =
                    Limits::allow("bytes of a chunk", header.cbytes.into(), self.limits.memory)?;
                chunk.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
                Ok(source.read_exact_at(at, chunk)?)
            })?,
        }
        Ok(())
    }

    /// The number of bytes that a chunk has when decoded.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        let offset = self.offset(number)?;
        if let Some(nbytes) = self.outline.nbytes_of(number) {
            return Ok(nbytes.into());
        }
        match offset {
            Offset::At(place) => self.at(number, place, |_, header, _| Ok(header.nbytes.into())),
            Offset::Special(_) => Err(self.outline.unknown_size(number)),
        }
    }

    /// Decodes a chunk into `data`, whose length becomes that of the chunk.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and what is wrong inside the chunk.
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

    /// What it is read from; the index file of a directory.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.source
    }

    /// Gives back what it is read from; the index file of a directory.
    pub fn into_inner(self) -> R {
        self.source
    }

    /// Finds a chunk at its place: its header, and where it is in a source.
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
            let header = read(&self.source, at, self.outline.room().saturating_sub(place))?;
            return then(&self.source, header, at);
        };
        let name = directory::chunk_name(place);
        let file = folder.open(&name).map_err(|error| match error.kind() {
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
