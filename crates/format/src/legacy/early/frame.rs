//! The reader of legacy frames.

use super::Layout;
use super::header::Header;
use super::parts::{Parts, structure};
use crate::chunk::{Decoder, MAX_FILTERS};
use crate::frame::Metalayer;
use crate::legacy::chunks::{Reader, chunk_header, nth};
use crate::report::{Checker, Report};
use crate::{Error, FormatError, Limits, ReadAt};

/// A legacy frame, open for reading.
///
/// Opening a frame reads and checks all parts except the chunks and the user metadata. A chunk, or
/// the user metadata, is checked when it is decoded.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::early::{Frame, Layout, Params, Writer, stored_chunk};
///
/// let mut writer = Writer::new(Params { layout: Layout::Early, typesize: 4, ..Params::default() })?;
/// writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
/// let frame = Frame::open(writer.finish()?, &Limits::default())?;
/// assert_eq!((frame.layout(), frame.nchunks()), (Layout::Early, 1));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Frame<R> {
    chunks: Reader<R>,
    parts: Parts,
    filters: [u8; MAX_FILTERS],
    filters_meta: [u8; MAX_FILTERS],
}

impl<R: ReadAt> Frame<R> {
    /// Opens the frame at the start of `source`.
    ///
    /// # Errors
    /// - [`Error::Format`]: the frame violates a rule; this is the first error that
    ///   [`check`](fn@super::check) finds outside of the chunks;
    /// - [`Error::Limit`]: the frame exceeds `limits`;
    /// - [`Error::Io`]: reading from `source` fails.
    pub fn open(source: R, limits: &Limits) -> Result<Self, Error> {
        let mut report = Report::new();
        let parts = structure(&source, limits, &mut Checker::new(&mut report))?;
        if let Some(error) = report.first_error() {
            return Err(FormatError::from(error).into());
        }
        let parts = parts.ok_or_else(|| Error::Argument("not an old frame".into()))?;
        let (filters, filters_meta) = pipeline(&parts.header);
        let end = (parts.index.0, "before the index");
        let chunks = Reader { source, limits: *limits, end, decoder: Decoder::default() };
        let mut frame = Self { chunks, parts, filters, filters_meta };
        if frame.layout() == Layout::Early && frame.nchunks() > 0 {
            let at = frame.chunk_at(0)?;
            if let Some(chunk) = chunk_header(&frame.chunks.source, at, end.0)? {
                (frame.filters, frame.filters_meta) = (chunk.filters, chunk.filters_meta);
            }
        }
        Ok(frame)
    }

    /// Returns the layout.
    pub fn layout(&self) -> Layout {
        self.parts.header.layout
    }

    /// Returns the fields of the fixed header, as stored.
    pub fn header(&self) -> &Header {
        &self.parts.header
    }

    /// Returns the size of an item, in bytes.
    pub fn typesize(&self) -> u32 {
        self.parts.header.typesize.unsigned_abs()
    }

    /// Returns the total decompressed size of all chunks, in bytes.
    pub fn nbytes(&self) -> u64 {
        self.parts.header.nbytes.unsigned_abs()
    }

    /// Returns the total stored size of all chunks, in bytes.
    pub fn cbytes(&self) -> u64 {
        self.parts.data_len()
    }

    /// Returns the decompressed size of a chunk, in bytes, as the header states it. The value is 0
    /// if there are no chunks or the sizes differ. If only the last chunk is shorter, the value
    /// depends on the [`WriteMode`](super::WriteMode): it is 0 or the size of the other chunks.
    pub fn chunksize(&self) -> u32 {
        self.parts.header.chunksize.unsigned_abs()
    }

    /// Returns the number of chunks.
    pub fn nchunks(&self) -> u64 {
        self.parts.offsets.len() as u64
    }

    /// Returns the code of the codec: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4 zlib, 5 Zstandard, 6
    /// Lizard.
    pub fn codec(&self) -> u8 {
        self.parts.header.codec()
    }

    /// Returns the compression level.
    pub fn level(&self) -> u8 {
        self.parts.header.level()
    }

    /// Returns the codes of the filters. As in the header of a chunk, the filters are in the last
    /// slots, and 0 is an empty slot. If the chunks have version 3, the sixth slot is always empty,
    /// and the filters are in the last slots before it.
    ///
    /// The header of [`Layout::Early`] does not state the filters reliably. For this layout, the
    /// method returns the filters of the first chunk, or zeros if there are no chunks.
    pub fn filters(&self) -> [u8; MAX_FILTERS] {
        self.filters
    }

    /// Returns the parameters of the filters.
    pub fn filters_meta(&self) -> [u8; MAX_FILTERS] {
        self.filters_meta
    }

    /// Returns the metalayers.
    pub fn metalayers(&self) -> &[Metalayer] {
        &self.parts.metalayers
    }

    /// Returns the [user metadata](Self::usermeta) as stored: as a chunk. Returns `None` if the
    /// frame has no user metadata.
    ///
    /// # Errors
    /// [`Error::Io`]: reading from the source fails.
    pub fn usermeta_chunk(&self) -> Result<Option<Vec<u8>>, Error> {
        match self.parts.trailer.as_ref().map(|trailer| trailer.usermeta) {
            None | Some((_, 0)) => Ok(None),
            Some((at, len)) => Ok(Some(self.chunks.source.read_vec_at(at, len)?)),
        }
    }

    /// Returns the user metadata: the bytes that a program stored in the trailer, for example with
    /// the C function `blosc2_update_usermeta`. Returns `None` if the frame has no user metadata.
    ///
    /// # Errors
    /// - [`Error::Format`]: the chunk with the metadata violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported;
    /// - [`Error::Limit`]: the metadata exceeds the limits;
    /// - [`Error::Io`]: reading from the source fails.
    pub fn usermeta(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.chunks.decoded(self.usermeta_chunk()?)
    }

    /// Returns the chunk at index `number` as stored.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Format`]: the chunk does not fit at its position;
    /// - [`Error::Limit`]: the chunk exceeds the limits;
    /// - [`Error::Io`]: reading from the source fails.
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>, Error> {
        self.chunks.read(self.chunk_at(number)?)
    }

    /// Returns the decoded size of the chunk at index `number`, in bytes.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk).
    pub fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        Ok(self.chunks.header(self.chunk_at(number)?)?.nbytes.into())
    }

    fn chunk_at(&self, number: u64) -> Result<u64, Error> {
        Ok(self.parts.header_len + nth(&self.parts.offsets, number)?)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.chunks.limits
    }

    /// Decodes the chunk at index `number` into `data`, and sets the length of `data` to the
    /// decoded size of the chunk.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk), and:
    /// - [`Error::Format`]: the content of the chunk violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        self.chunks.decode(&self.chunk(number)?, data)
    }
}

/// Returns the filters of the header in the slots of a chunk: the last ones.
pub(crate) fn pipeline(header: &Header) -> ([u8; MAX_FILTERS], [u8; MAX_FILTERS]) {
    let count = usize::from(header.nfilters).min(MAX_FILTERS);
    let (mut filters, mut metas) = ([0; MAX_FILTERS], [0; MAX_FILTERS]);
    filters[MAX_FILTERS - count..].copy_from_slice(&header.filters[..count]);
    metas[MAX_FILTERS - count..].copy_from_slice(&header.filters_meta[..count]);
    (filters, metas)
}
