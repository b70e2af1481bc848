//! Reading a frame: metalayers at once, chunks one by one.

use std::io::ErrorKind;

use super::index::Offset;
use super::parts::{Metalayer, Parts, Span};
use super::{Header, Layout, rules};
use crate::chunk::{self, Chunk, Decoder, EXTENDED_HEADER_LEN, Params, Special};
use crate::directory::{self, Folder};
use crate::report::{Checker, Report};
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
    parts: Parts,
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
        let parts = parts(&source, Layout::Contiguous, limits)?;
        Ok(Self::new(source, None, parts, limits))
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
        let parts = parts(&source, Layout::Directory, limits)?;
        Ok(Self::new(source, Some(Box::new(folder)), parts, limits))
    }

    fn new(
        source: R,
        folder: Option<Box<dyn Folder<File = R>>>,
        parts: Parts,
        limits: &Limits,
    ) -> Self {
        let decoder = Decoder::default();
        Self { source, folder, parts, limits: *limits, decoder, stored: Vec::new() }
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The fields of its header.
    pub fn header(&self) -> &Header {
        &self.parts.header
    }

    /// The metalayers in its header, in order.
    pub fn metalayers(&self) -> &[Metalayer] {
        &self.parts.metalayers
    }

    /// The content of a metalayer in its header; `None` where there is none of this name.
    pub fn metalayer(&self, name: &str) -> Option<&[u8]> {
        let metalayer = self.parts.metalayers.iter().find(|metalayer| metalayer.name == name)?;
        Some(&metalayer.content)
    }

    /// The names of the variable-length metalayers in its trailer, in order.
    pub fn vlmetalayers(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parts.vlmetalayers.iter().map(|(name, _)| name.as_str())
    }

    /// The chunk that holds the content of a variable-length metalayer; `None` where there is none
    /// of this name.
    ///
    /// # Errors
    /// [`Error::Limit`] and [`Error::Io`].
    pub fn vlmetalayer_chunk(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let found = self.parts.vlmetalayers.iter().find(|(each, _)| each == name);
        let Some((_, Span { at, len })) = found else { return Ok(None) };
        Limits::allow("bytes of a metalayer", *len, self.limits.memory)?;
        Ok(Some(self.source.read_vec_at(*at, *len)?))
    }

    /// The content of a variable-length metalayer; `None` where there is none of this name.
    ///
    /// # Errors
    /// - the chunk that holds it is wrong or cannot be decoded;
    /// - [`Error::Limit`] where it has more than [`Limits::metadata`] leaves besides the index;
    /// - [`Error::Io`].
    pub fn vlmetalayer(&mut self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        let Some(bytes) = self.vlmetalayer_chunk(name)? else { return Ok(None) };
        let mut content = Vec::new();
        let chunk = Chunk::new(&bytes, &self.limits)?;
        // The content, and a block that goes through the codec and the filters.
        let block = (0..chunk.nblocks()).map(|block| chunk.block_size(block)).max();
        let held = u64::from(chunk.header().nbytes) + 2 * block.unwrap_or(0) as u64;
        let metadata = self.limits.metadata_of(self.source.size()?);
        let max = metadata.saturating_sub(self.parts.held());
        Limits::allow("bytes to hold for a metalayer (see `Limits::metadata`)", held, max)?;
        self.decoder.decode_vec(&chunk, &mut content)?;
        Ok(Some(content))
    }

    /// How many chunks there are.
    pub fn nchunks(&self) -> u64 {
        self.parts.offsets.len()
    }

    /// Where the data of a chunk is.
    ///
    /// # Errors
    /// [`Error::Argument`] where there is no such chunk.
    pub fn offset(&self, number: u64) -> Result<Offset, Error> {
        self.parts.offsets.get(number).ok_or_else(|| {
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
            Offset::Special(special) => *chunk = self.parts.special_chunk(number, special)?,
            Offset::At(offset) => self.at(offset, |source, header, span| {
                // There are as many bytes: `at` has compared.
                let len = Limits::allow("bytes of a chunk", span.len, self.limits.memory)?;
                self.parts.check_nbytes(number, &header, span.at)?;
                chunk.resize(usize::try_from(len).unwrap_or(usize::MAX), 0);
                Ok(source.read_exact_at(span.at, chunk)?)
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
        if let Some(nbytes) = self.parts.nbytes_of(number) {
            return Ok(nbytes);
        }
        match offset {
            Offset::At(offset) => self.at(offset, |_, header, _| Ok(header.nbytes.into())),
            Offset::Special(_) => Err(self.parts.unknown_size(number)),
        }
    }

    /// Decodes a chunk into `data`, whose length becomes that of the chunk.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and what is wrong inside the chunk.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        let mut stored = std::mem::take(&mut self.stored);
        let outcome = self.chunk_into(number, &mut stored).and_then(|()| {
            let typesize = usize::try_from(self.parts.header.typesize).unwrap_or(usize::MAX);
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

    /// Finds the chunk at an offset of the index: its header and where it is.
    fn at<T>(
        &self,
        offset: u64,
        then: impl FnOnce(&R, chunk::Header, Span) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Some(folder) = &self.folder else {
            let at = u64::from(self.parts.header.header_len).saturating_add(offset);
            let room = self.parts.room().saturating_sub(offset);
            let (header, span) = locate(&self.source, Span { at, len: room })?;
            return then(&self.source, header, span);
        };
        let name = directory::chunk_name(offset);
        let file = folder.open(&name).map_err(|error| match error.kind() {
            ErrorKind::NotFound => {
                FormatError::of(&directory::MISSING, 0, format_args!("{name}"), "no such file")
                    .into()
            }
            _ => Error::Io(error),
        })?;
        let (header, span) = locate(&file, Span { at: 0, len: file.size()? })?;
        then(&file, header, span)
    }
}

/// All but the chunks of the frame at the start of `source`; the first error where it has one.
pub(super) fn parts<R: ReadAt + ?Sized>(
    source: &R,
    layout: Layout,
    limits: &Limits,
) -> Result<Parts, Error> {
    let mut report = Report::brief();
    let parts = Parts::find(source, layout, limits, &mut Checker::new(&mut report))?;
    match (report.first_error(), parts) {
        (None, Some(parts)) => Ok(parts),
        (Some(finding), _) => Err(FormatError::from(finding).into()),
        (None, None) => Err(FormatError::of(&rules::SHORT, 0, "a frame", "none").into()),
    }
}

/// The chunk at the start of `room`: its header and where it is.
fn locate<R: ReadAt>(source: &R, room: Span) -> Result<(chunk::Header, Span), Error> {
    let Span { at, len: room } = room;
    let head = source.read_vec_at(at, room.min(EXTENDED_HEADER_LEN as u64))?;
    let header = chunk::Header::parse(&head).map_err(|error| error.moved(at))?;
    let len = u64::from(header.cbytes);
    if len > room {
        let expected = format_args!("at most {room}, where it has to end").to_string();
        return Err(FormatError::of(&rules::CHUNK_PLACE, at + 12, expected, len).into());
    }
    if header.lazy {
        let expected = "no mark of a lazy chunk, which only exists in memory";
        return Err(FormatError::of(&rules::CHUNK_LAZY, at + 31, expected, "the mark").into());
    }
    Ok((header, Span { at, len }))
}

impl Parts {
    /// How many bytes a chunk must have when decoded; `None` where that varies.
    pub(crate) fn nbytes_of(&self, number: u64) -> Option<u64> {
        let chunksize = u64::from(self.header.chunksize.filter(|&size| size > 0)?);
        let before = number.checked_mul(chunksize)?;
        Some(self.header.nbytes.saturating_sub(before).min(chunksize))
    }

    pub(crate) fn check_nbytes(
        &self,
        number: u64,
        header: &chunk::Header,
        at: u64,
    ) -> Result<(), Error> {
        match self.nbytes_of(number) {
            Some(nbytes) if nbytes != u64::from(header.nbytes) => {
                let rule = &rules::CHUNK_NBYTES;
                Err(FormatError::of(rule, at + 4, nbytes, header.nbytes).into())
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn unknown_size(&self, number: u64) -> Error {
        let at = self.index.map_or(0, |index| index.at);
        let expected = "a chunk, as sizes vary and a special offset has none";
        let found = format_args!("a special offset for chunk {number}").to_string();
        FormatError::of(&rules::CHUNK_UNKNOWN, at, expected, found).into()
    }

    /// The chunk that a special offset stands for: nothing but a header.
    pub(crate) fn special_chunk(&self, number: u64, special: Special) -> Result<Vec<u8>, Error> {
        let nbytes = self.nbytes_of(number).ok_or_else(|| self.unknown_size(number))?;
        let params = Params {
            typesize: self.header.typesize,
            // A value must not lie across two blocks, which do not matter otherwise.
            blocksize: Some(self.header.blocksize)
                .filter(|&size| size > 0 && size.is_multiple_of(self.header.typesize)),
            ..Params::default()
        };
        let len = usize::try_from(nbytes).unwrap_or(usize::MAX);
        chunk::special(&params, special, len, &[]).map_err(|_| {
            let at = self.index.map_or(0, |index| index.at);
            let typesize = self.header.typesize;
            let expected = format_args!("a multiple of the typesize {typesize}").to_string();
            FormatError::of(&rules::CHUNK_NBYTES, at, expected, nbytes).into()
        })
    }
}
