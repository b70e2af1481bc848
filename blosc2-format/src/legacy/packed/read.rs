//! Reading a packed super-chunk.

use super::check::{Parts, structure};
use super::header::{Ancillary, Header};
use super::{StoredDelta, rules};
use crate::chunk::{self, Decoder, MAX_FILTERS};
use crate::legacy::chunks::{Reader, nth};
use crate::report::{Checker, Report};
use crate::{Error, FormatError, Limits, ReadAt};

/// A packed super-chunk, open for reading.
///
/// Opening reads the header, the positions, and the header of every chunk; a chunk is checked when
/// it is read.
#[derive(Debug)]
pub struct Packed<R> {
    chunks: Reader<R>,
    parts: Parts,
    stored_delta: StoredDelta,
    /// What delta refers to, once it is needed.
    reference: Option<Vec<u8>>,
    typesize: u8,
    nbytes: u64,
    cbytes: u64,
}

impl<R: ReadAt> Packed<R> {
    /// Opens the packed super-chunk at the start of `source`.
    ///
    /// # Errors
    /// The first error that [`check`](fn@super::check) would find outside the chunks, what goes over
    /// the limits, and the source's own.
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

    /// With another reading of the chunks that are stored as they are, for delta.
    #[must_use]
    pub fn with_stored_delta(mut self, reading: StoredDelta) -> Self {
        self.stored_delta = reading;
        self
    }

    /// How chunks that are stored as they are get read where there is delta; the likelier way
    /// unless another one was [asked for](Self::with_stored_delta).
    pub fn stored_delta(&self) -> StoredDelta {
        self.stored_delta
    }

    /// The fields of the header, as they stand.
    pub fn header(&self) -> &Header {
        &self.parts.header
    }

    /// Bytes of an item, as the first chunk has it; 1 without chunks.
    pub fn typesize(&self) -> u32 {
        self.typesize.into()
    }

    /// Bytes of the data when decompressed. The header's own sum has more in it.
    pub fn nbytes(&self) -> u64 {
        self.nbytes
    }

    /// Bytes of the data chunks as they are stored. The header's own sum has more in it.
    pub fn cbytes(&self) -> u64 {
        self.cbytes
    }

    /// How many data chunks there are.
    pub fn nchunks(&self) -> u64 {
        self.parts.chunks.len() as u64
    }

    /// Whether the block of positions comes before the data, as the first writers had it.
    pub fn index_is_first(&self) -> bool {
        self.parts.index_is_first()
    }

    /// The codec's code: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4 zlib, 5 Zstandard.
    pub fn codec(&self) -> u8 {
        self.parts.header.codec as u8
    }

    /// The compression level.
    pub fn level(&self) -> u8 {
        self.parts.header.level as u8
    }

    /// Codes of the filters that apply, in the last slots as chunks have them; 0 is none.
    pub fn filters(&self) -> [u8; MAX_FILTERS] {
        let codes = self.header().filter_codes();
        let mut filters = [0; MAX_FILTERS];
        match (self.header().has_delta(), codes) {
            (true, [delta, other, ..]) => filters[4..].copy_from_slice(&[delta, other]),
            (false, [only, ..]) => filters[5] = only,
        }
        filters
    }

    /// An ancillary chunk as it is stored; `None` where there is none.
    ///
    /// # Errors
    /// It does not fit where it should be, or is over the limits.
    pub fn ancillary_chunk(&self, kind: Ancillary) -> Result<Option<Vec<u8>>, Error> {
        match u64::try_from(self.parts.header.ancillary[kind as usize]) {
            Ok(0) | Err(_) => Ok(None),
            Ok(at) => self.chunks.read(at).map(Some),
        }
    }

    /// What an ancillary chunk holds; `None` where there is none.
    ///
    /// # Errors
    /// As [`ancillary_chunk`](Self::ancillary_chunk), and it does not decode.
    pub fn ancillary(&mut self, kind: Ancillary) -> Result<Option<Vec<u8>>, Error> {
        self.chunks.decoded(self.ancillary_chunk(kind)?)
    }

    /// Data chunk `number` as it is stored.
    ///
    /// # Errors
    /// There is no such chunk, it does not fit where it should be, or it is over the limits.
    pub fn chunk(&self, number: u64) -> Result<Vec<u8>, Error> {
        self.chunks.read(nth(&self.parts.chunks, number)?)
    }

    /// The number of bytes that chunk `number` has when decoded.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk).
    pub fn chunk_nbytes(&self, number: u64) -> Result<u64, Error> {
        Ok(self.chunks.header(nth(&self.parts.chunks, number)?)?.nbytes.into())
    }

    /// Decodes chunk `number` into `data`, whose length becomes that of the chunk, and adds the
    /// reference where there is delta.
    ///
    /// # Errors
    /// As [`chunk`](Self::chunk), and what is wrong inside the chunk or the reference.
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
