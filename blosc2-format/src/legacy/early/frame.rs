//! Reading an old frame.

use super::Layout;
use super::header::Header;
use super::parts::{Parts, structure};
use crate::chunk::{Decoder, MAX_FILTERS};
use crate::frame::Metalayer;
use crate::legacy::chunks::{Reader, chunk_header, nth};
use crate::report::{Checker, Report};
use crate::{Error, FormatError, Limits, ReadAt};

/// A frame in one of the old layouts, open for reading.
///
/// Opening reads and checks all but the chunks; a chunk is checked when it is read.
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
    /// The first error that [`check`](fn@super::check) would find outside the chunks, what goes over the limits,
    /// and the source's own.
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

    /// The layout.
    pub fn layout(&self) -> Layout {
        self.parts.header.layout
    }

    /// The fields of the fixed header, as they stand.
    pub fn header(&self) -> &Header {
        &self.parts.header
    }

    /// Bytes of an item.
    pub fn typesize(&self) -> u32 {
        self.parts.header.typesize.unsigned_abs()
    }

    /// Bytes of all chunks when decompressed.
    pub fn nbytes(&self) -> u64 {
        self.parts.header.nbytes.unsigned_abs()
    }

    /// Bytes of all chunks as they are stored.
    pub fn cbytes(&self) -> u64 {
        self.parts.data_len()
    }

    /// Bytes of a chunk when decompressed; 0 where they differ or there is none.
    pub fn chunksize(&self) -> u32 {
        self.parts.header.chunksize.unsigned_abs()
    }

    /// How many chunks there are.
    pub fn nchunks(&self) -> u64 {
        self.parts.offsets.len() as u64
    }

    /// The codec's code: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4 zlib, 5 Zstandard, 6 Lizard.
    pub fn codec(&self) -> u8 {
        self.parts.header.codec()
    }

    /// The compression level.
    pub fn level(&self) -> u8 {
        self.parts.header.level()
    }

    /// Codes of the filters, as chunks have them: the last slots are used, 0 is none.
    ///
    /// Those of the first chunk for [`Layout::Early`], whose header does not tell.
    pub fn filters(&self) -> [u8; MAX_FILTERS] {
        self.filters
    }

    /// Parameters of the filters.
    pub fn filters_meta(&self) -> [u8; MAX_FILTERS] {
        self.filters_meta
    }

    /// Names and contents of the metalayers.
    pub fn metalayers(&self) -> &[Metalayer] {
        &self.parts.metalayers
    }

    /// The user metadata as it is stored, a chunk; `None` where there is none.
    ///
    /// # Errors
    /// The source's own.
    pub fn usermeta_chunk(&self) -> Result<Option<Vec<u8>>, Error> {
        match self.parts.trailer.as_ref().map(|trailer| trailer.usermeta) {
            None | Some((_, 0)) => Ok(None),
            Some((at, len)) => Ok(Some(self.chunks.source.read_vec_at(at, len)?)),
        }
    }

    /// The user metadata; `None` where there is none.
    ///
    /// # Errors
    /// It does not decode, or is over the limits.
    pub fn usermeta(&mut self) -> Result<Option<Vec<u8>>, Error> {
        self.chunks.decoded(self.usermeta_chunk()?)
    }

    /// Chunk `number` as it is stored.
    ///
    /// # Errors
    /// There is no such chunk, it does not fit where it should be, or it is over the limits.
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>, Error> {
        self.chunks.read(self.chunk_at(number)?)
    }

    /// The number of bytes that chunk `number` has when decoded.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        Ok(self.chunks.header(self.chunk_at(number)?)?.nbytes.into())
    }

    fn chunk_at(&self, number: u64) -> Result<u64, Error> {
        Ok(self.parts.header_len + nth(&self.parts.offsets, number)?)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.chunks.limits
    }

    /// Decodes chunk `number` into `data`, whose length becomes that of the chunk.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and what is wrong inside the chunk.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        self.chunks.decode(&self.chunk(number)?, data)
    }
}

/// The filters that the header tells, in the slots of a chunk: the last ones.
pub(crate) fn pipeline(header: &Header) -> ([u8; MAX_FILTERS], [u8; MAX_FILTERS]) {
    let count = usize::from(header.nfilters).min(MAX_FILTERS);
    let (mut filters, mut metas) = ([0; MAX_FILTERS], [0; MAX_FILTERS]);
    filters[MAX_FILTERS - count..].copy_from_slice(&header.filters[..count]);
    metas[MAX_FILTERS - count..].copy_from_slice(&header.filters_meta[..count]);
    (filters, metas)
}
