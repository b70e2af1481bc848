//! The reader of packed super-chunks.

use super::check::{Parts, structure};
use super::header::{Ancillary, Header};
use super::{StoredDelta, rules};
use crate::chunk::{self, Decoder, MAX_FILTERS};
use crate::legacy::chunks::{Reader, nth};
use crate::report::{Checker, Report};
use crate::{Error, FormatError, Limits, ReadAt};

/// A packed super-chunk, open for reading.
///
/// Opening a packed super-chunk reads its header, the table of positions, and the header of every
/// chunk. The content of a chunk is checked when the chunk is decoded.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::packed::{Packed, Params, Writer, stored_chunk};
///
/// let mut writer = Writer::new(Params::default())?;
/// writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
/// let packed = Packed::open(writer.finish(), &Limits::default())?;
/// assert_eq!((packed.nchunks(), packed.nbytes()), (1, 400));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Packed<R> {
    chunks: Reader<R>,
    parts: Parts,
    stored_delta: StoredDelta,
    /// The reference of delta, once it is needed.
    reference: Option<Vec<u8>>,
    typesize: u8,
    nbytes: u64,
    cbytes: u64,
}

impl<R: ReadAt> Packed<R> {
    /// Opens the packed super-chunk at the start of `source`.
    ///
    /// # Errors
    /// - [`Error::Format`]: the super-chunk violates a rule; this is the first error that
    ///   [`check`](fn@super::check) finds outside of the chunks;
    /// - [`Error::Limit`]: the super-chunk exceeds `limits`;
    /// - [`Error::Io`]: reading from `source` fails.
    pub fn open(source: R, limits: &Limits) -> Result<Self, Error> {
        let mut report = Report::new();
        let parts = structure(&source, limits, &mut Checker::new(&mut report))?;
        if let Some(error) = report.first_error() {
            return Err(FormatError::from(error).into());
        }
        let parts = parts.ok_or_else(|| Error::Argument("not a packed super-chunk".into()))?;
        let stored_delta = parts.stored_delta();
        let (end, decoder) = ((parts.end, "in the file"), Decoder::default());
        let mut packed = Self {
            chunks: Reader { source, limits: *limits, end, decoder },
            parts,
            stored_delta,
            reference: None,
            typesize: 1,
            nbytes: 0,
            cbytes: 0,
        };
        for (number, &at) in packed.parts.chunks.iter().enumerate() {
            let chunk = packed.chunks.header(at)?;
            packed.cbytes += u64::from(chunk.cbytes);
            packed.nbytes += u64::from(chunk.nbytes);
            if number == 0 {
                packed.typesize = chunk.typesize;
            }
        }
        Ok(packed)
    }

    /// Sets whether the reader treats the content of uncompressed chunks as data or as differences,
    /// if the filter is delta.
    #[must_use]
    pub fn with_stored_delta(mut self, reading: StoredDelta) -> Self {
        self.stored_delta = reading;
        self
    }

    /// Returns whether the reader treats the content of uncompressed chunks as data or as
    /// differences, if the filter is delta. [`with_stored_delta`](Self::with_stored_delta) sets
    /// this value. The default is [`StoredDelta::Present`] if the table of positions [precedes the
    /// data](Self::index_is_first), otherwise [`StoredDelta::Absent`].
    pub fn stored_delta(&self) -> StoredDelta {
        self.stored_delta
    }

    /// Returns the fields of the header, as stored.
    pub fn header(&self) -> &Header {
        &self.parts.header
    }

    /// Returns the size of an item, in bytes, as the first chunk states it. Returns 1 if there are
    /// no chunks.
    pub fn typesize(&self) -> u32 {
        self.typesize.into()
    }

    /// Returns the decompressed size of the data, in bytes. The field [`Header::nbytes`] is larger,
    /// because it includes other parts.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Returns the stored size of the data chunks, in bytes. The field [`Header::cbytes`] is
    /// larger, because it includes other parts.
    pub fn cbytes(&self) -> u64 {
        self.cbytes
    }

    /// Returns the number of data chunks.
    pub fn nchunks(&self) -> u64 {
        self.parts.chunks.len() as u64
    }

    /// Returns whether the table of positions precedes the data, as the first versions wrote it.
    pub fn index_is_first(&self) -> bool {
        self.parts.index_is_first()
    }

    /// Returns the code of the codec: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4 zlib, 5 Zstandard.
    pub fn codec(&self) -> u8 {
        self.parts.header.codec as u8
    }

    /// Returns the compression level.
    pub fn level(&self) -> u8 {
        self.parts.header.level as u8
    }

    /// Returns the codes of the filters that are applied. As in the header of a chunk, the filters
    /// are in the last slots, and 0 is an empty slot.
    pub fn filters(&self) -> [u8; MAX_FILTERS] {
        let codes = self.header().filter_codes();
        let mut filters = [0; MAX_FILTERS];
        match (self.header().has_delta(), codes) {
            (true, [delta, other, ..]) => filters[4..].copy_from_slice(&[delta, other]),
            (false, [only, ..]) => filters[5] = only,
        }
        filters
    }

    /// Returns an ancillary chunk as stored, or `None` if the super-chunk has no such chunk.
    ///
    /// # Errors
    /// - [`Error::Format`]: the chunk does not fit at its position;
    /// - [`Error::Limit`]: the chunk exceeds the limits;
    /// - [`Error::Io`]: reading from the source fails.
    pub fn ancillary_chunk(&self, kind: Ancillary) -> Result<Option<Vec<u8>>, Error> {
        match u64::try_from(self.parts.header.ancillary[kind as usize]) {
            Ok(0) | Err(_) => Ok(None),
            Ok(at) => self.chunks.read(at).map(Some),
        }
    }

    /// Returns the decoded content of an ancillary chunk, or `None` if the super-chunk has no such
    /// chunk.
    ///
    /// # Errors
    /// Fails with the errors of [`ancillary_chunk`](Self::ancillary_chunk), and:
    /// - [`Error::Format`]: the content of the chunk violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn ancillary(&mut self, kind: Ancillary) -> Result<Option<Vec<u8>>, Error> {
        self.chunks.decoded(self.ancillary_chunk(kind)?)
    }

    /// Returns the data chunk at index `number` as stored.
    ///
    /// # Errors
    /// - [`Error::Argument`]: there is no chunk at this index;
    /// - [`Error::Format`]: the chunk does not fit at its position;
    /// - [`Error::Limit`]: the chunk exceeds the limits;
    /// - [`Error::Io`]: reading from the source fails.
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>, Error> {
        self.chunks.read(nth(&self.parts.chunks, number)?)
    }

    /// Returns the decoded size of the chunk at index `number`, in bytes.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk).
    pub fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        Ok(self.chunks.header(nth(&self.parts.chunks, number)?)?.nbytes.into())
    }

    /// Decodes the chunk at index `number` into `data`, and sets the length of `data` to the
    /// decoded size of the chunk. If the filter is delta, adds the reference.
    ///
    /// # Errors
    /// Fails with the errors of [`chunk`](Self::chunk), and:
    /// - [`Error::Format`]: the content of the chunk or of the reference violates a rule;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported.
    pub fn decode_chunk(&mut self, number: u64, data: &mut Vec<u8>) -> Result<(), Error> {
        let bytes = self.chunk(number)?;
        self.chunks.decode(&bytes, data)?;
        let is_stored = chunk::Header::parse(&bytes)?.is_stored();
        let is_difference = !is_stored || self.stored_delta == StoredDelta::Present;
        if !self.header().has_delta() || !is_difference {
            return Ok(());
        }
        let reference = match self.reference.take() {
            Some(reference) => reference,
            None => self.ancillary(Ancillary::Filters)?.ok_or_else(no_reference)?,
        };
        for (byte, reference) in data.iter_mut().zip(&reference) {
            *byte = byte.wrapping_add(*reference);
        }
        self.reference = Some(reference);
        Ok(())
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.chunks.limits
    }
}

fn no_reference() -> Error {
    let expected = "a filters chunk, which delta refers to";
    FormatError::of(&rules::REFERENCE, 40, expected, "none").into()
}
