//! The writer of packed super-chunks.

use super::header::{Ancillary, DELTA, FILTERS, HEADER_LEN, Header};
use crate::chunk::{self, Chunk, Encoder, Form};
use crate::legacy::chunks::{stored_sizes, whole_chunk};
use crate::{Error, Limits};

/// The location of the table with the positions of the data chunks.
///
/// ```
/// use blosc2_format::Limits;
/// use blosc2_format::packed::{IndexPlace, Packed, Params, Writer, stored_chunk};
///
/// let mut writer = Writer::new(Params { index: IndexPlace::BeforeData, ..Params::default() })?;
/// writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
/// assert!(Packed::open(writer.finish(), &Limits::default())?.index_is_first());
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum IndexPlace {
    /// Before the data. Development versions of C-Blosc2 from 17 to 20 December 2015 wrote the
    /// table there.
    BeforeData,
    /// At the end of the file.
    #[default]
    AtEnd,
}

/// The parameters of a packed super-chunk: the fields of its header.
///
/// The default is BloscLZ at level 5 with shuffle, for items of one byte, and the table of
/// positions at the end.
///
/// ```
/// use blosc2_format::packed::{Params, Writer};
///
/// assert!(Writer::new(Params { level: 9, typesize: 4, ..Params::default() }).is_ok());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// The code of the codec, from 0 to 5; see [`Packed::codec`](super::Packed::codec).
    pub codec: u8,
    /// The compression level, from 0 to 9.
    pub level: u8,
    /// The codes of the filters in order: 1 shuffle, 2 bitshuffle, 3 delta, 0 none. Only the first
    /// filter is applied. If the first filter is delta, the second filter is applied too.
    pub filters: [u8; FILTERS],
    /// The location of the table with the positions of the data chunks.
    pub index: IndexPlace,
    /// The size of an item of the compressed chunks, in bytes.
    pub typesize: u8,
    /// The last 16 bytes of the header, which readers ignore.
    pub reserved: [u8; 16],
}

impl Default for Params {
    fn default() -> Self {
        Self {
            codec: 0,
            level: 5,
            filters: [1, 0, 0, 0, 0],
            index: IndexPlace::AtEnd,
            typesize: 1,
            reserved: [0; 16],
        }
    }
}

/// Writes a packed super-chunk, chunk by chunk.
///
/// ```
/// use blosc2_format::packed::{HEADER_LEN, Params, Writer, stored_chunk};
///
/// let mut writer = Writer::new(Params::default())?;
/// writer.push_chunk(&stored_chunk(4, &[7; 400])?)?;
/// assert!(writer.finish().len() > HEADER_LEN + 400);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer {
    params: Params,
    header: Header,
    ancillary: [Vec<u8>; 4],
    data: Vec<u8>,
    offsets: Vec<usize>,
    /// The sizes of the chunks when decompressed, in bytes.
    nbytes: [u64; 4],
    data_nbytes: u64,
    encoder: Option<Encoder>,
    /// The reference of delta.
    reference: Option<Vec<u8>>,
}

impl Writer {
    /// Creates the writer of an empty super-chunk.
    ///
    /// # Errors
    /// [`Error::Argument`]: the header cannot represent a parameter.
    pub fn new(params: Params) -> Result<Self, Error> {
        let Params { codec, level, filters, reserved, .. } = params;
        if codec > 5 || level > 9 || filters.iter().any(|&code| code > 3) {
            let why = format!(
                "codec {codec} at level {level} with filters {filters:?}: expected at most 5, 9 and 3"
            );
            return Err(Error::Argument(why));
        }
        let filters = filters.iter().rev().fold(0, |all, &code| all << 3 | u16::from(code));
        let header = Header {
            codec: codec.into(),
            level: level.into(),
            filters,
            reserved,
            ..Header::default()
        };
        Ok(Self {
            params,
            header,
            ancillary: Default::default(),
            data: Vec::new(),
            offsets: Vec::new(),
            nbytes: [0; 4],
            data_nbytes: 0,
            encoder: None,
            reference: None,
        })
    }

    /// Sets an ancillary chunk. The filters chunk contains the reference of delta.
    ///
    /// # Errors
    /// - [`Error::Format`]: `chunk` does not start with a chunk, or its length differs from the
    ///   size in its header;
    /// - [`Error::Argument`]: `kind` is [`Ancillary::Filters`], and [`push`](Self::push) has
    ///   already used a reference.
    pub fn set_ancillary_chunk(&mut self, kind: Ancillary, chunk: &[u8]) -> Result<(), Error> {
        if kind == Ancillary::Filters && self.reference.is_some() {
            let why = "the reference of delta cannot change: earlier data uses another one";
            return Err(Error::Argument(why.to_owned()));
        }
        self.nbytes[kind as usize] = whole_chunk(chunk)?.nbytes.into();
        self.ancillary[kind as usize] = chunk.to_vec();
        Ok(())
    }

    /// Compresses `data` and appends it as a chunk of version 3, the version of C-Blosc2 2.0.0-a3
    /// and 2.0.0-a4.
    ///
    /// If the filter is delta, the reference is the content of the filters chunk. If no filters
    /// chunk was set, the reference is the data of the first call of this method.
    ///
    /// An uncompressed chunk contains the difference ([`StoredDelta::Present`]) if the table of
    /// positions precedes the data, otherwise the data itself ([`StoredDelta::Absent`]). The reader
    /// uses the same rule.
    ///
    /// # Errors
    /// - [`Error::Argument`]: the data does not fit into a chunk, or the typesize is 0;
    /// - [`Error::Unsupported`]: the codec is not supported;
    /// - [`Error::Format`]: the filters chunk cannot be decoded.
    ///
    /// [`StoredDelta::Absent`]: super::StoredDelta::Absent
    /// [`StoredDelta::Present`]: super::StoredDelta::Present
    pub fn push(&mut self, data: &[u8]) -> Result<(), Error> {
        let encoder = match &mut self.encoder {
            Some(encoder) => encoder,
            none => none.insert(Encoder::with_form(chunk_params(&self.params), FORM)?),
        };
        if !self.header.has_delta() {
            let chunk = encoder.encode(data)?;
            return self.push_chunk(&chunk);
        }
        let reference = match (&mut self.reference, &self.ancillary[0]) {
            (Some(reference), _) => reference,
            (none, filters) if filters.is_empty() => {
                let filters = stored_chunk(1, data)?;
                self.nbytes[0] = data.len() as u64;
                self.ancillary[0] = filters;
                none.insert(data.to_vec())
            }
            (none, filters) => none.insert(Chunk::new(filters, &Limits::default())?.decode()?),
        };
        let mut differences = data.to_vec();
        for (byte, reference) in differences.iter_mut().zip(reference) {
            *byte = byte.wrapping_sub(*reference);
        }
        let mut chunk = encoder.encode(&differences)?;
        let keeps_data = self.params.index == IndexPlace::AtEnd;
        if keeps_data && chunk::Header::parse(&chunk)?.is_stored() {
            let header_len = chunk.len() - data.len();
            chunk.truncate(header_len);
            chunk.extend(data);
        }
        self.push_chunk(&chunk)
    }

    /// Appends a compressed data chunk. If the first filter is delta, readers add the reference to
    /// the data of the chunk. For an uncompressed chunk, see [`StoredDelta`](super::StoredDelta).
    ///
    /// # Errors
    /// [`Error::Format`]: `chunk` does not start with a chunk, or its length differs from the size
    /// in its header.
    pub fn push_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        self.data_nbytes += u64::from(whole_chunk(chunk)?.nbytes);
        self.offsets.push(self.data.len());
        self.data.extend(chunk);
        Ok(())
    }

    /// Returns the packed super-chunk.
    pub fn finish(mut self) -> Vec<u8> {
        let mut at = HEADER_LEN;
        for (position, chunk) in self.header.ancillary.iter_mut().zip(&self.ancillary) {
            if !chunk.is_empty() {
                *position = at as i64;
                at += chunk.len();
            }
        }
        let index_len = 8 * self.offsets.len();
        let (index, data) = match self.params.index {
            IndexPlace::BeforeData => (at, at + index_len),
            IndexPlace::AtEnd => (at + self.data.len(), at),
        };
        let len = at + self.data.len() + index_len;
        let own = (HEADER_LEN + index_len) as u64;
        self.header.index = index as i64;
        self.header.nchunks = self.offsets.len() as i64;
        self.header.nbytes = (own + self.nbytes.iter().sum::<u64>() + self.data_nbytes) as i64;
        self.header.cbytes = len as i64;
        let positions = self.offsets.iter().map(|offset| (data + offset) as i64);
        let positions: Vec<u8> = positions.flat_map(i64::to_le_bytes).collect();

        let mut packed = Vec::with_capacity(len);
        packed.extend(self.header.to_bytes());
        packed.extend(self.ancillary.concat());
        match self.params.index {
            IndexPlace::BeforeData => packed.extend([positions, self.data].concat()),
            IndexPlace::AtEnd => packed.extend([self.data, positions].concat()),
        }
        packed
    }
}

/// The form of chunks of version 3, with a header of 16 bytes.
const FORM: Form = Form { version: 3, extended: false, runs: false };

/// Returns the parameters of the data chunks, which do not include delta.
fn chunk_params(params: &Params) -> chunk::Params {
    let [first, second, ..] = params.filters;
    let mut filters = [0; chunk::MAX_FILTERS];
    filters[5] = if first == DELTA { second } else { first };
    let Params { codec, level, typesize, .. } = *params;
    let default = chunk::Params::default();
    chunk::Params { codec, level, typesize: typesize.into(), filters, ..default }
}

/// Returns an uncompressed chunk with `data`. C-Blosc2 2.0.0-a2 wrote such chunks at compression
/// level 0 with the filter shuffle.
///
/// # Errors
/// [`Error::Argument`]: `typesize` is 0, or the data is empty or longer than a chunk can be.
pub fn stored_chunk(typesize: u8, data: &[u8]) -> Result<Vec<u8>, Error> {
    let mut chunk = vec![2, 1, 0b11, typesize];
    chunk.extend(stored_sizes(typesize, data, chunk::MIN_HEADER_LEN)?);
    chunk.extend(data);
    Ok(chunk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::Packed;

    #[test]
    fn short_data_with_delta_is_read_wherever_the_positions_are() {
        for index in [IndexPlace::AtEnd, IndexPlace::BeforeData] {
            let params = Params { filters: [DELTA, 0, 0, 0, 0], index, ..Params::default() };
            let mut writer = Writer::new(params).unwrap();
            let chunks = [&b"0123456789"[..], b"9876543210"];
            for chunk in chunks {
                writer.push(chunk).unwrap();
            }
            let other = stored_chunk(1, b"another").unwrap();
            let error = writer.set_ancillary_chunk(Ancillary::Filters, &other).unwrap_err();
            assert!(matches!(error, Error::Argument(_)), "{error}");
            let bytes = writer.finish();
            let mut packed = Packed::open(&bytes, &Limits::default()).unwrap();
            let mut data = Vec::new();
            for (number, chunk) in (0..).zip(chunks) {
                packed.decode_chunk(number, &mut data).unwrap();
                assert_eq!(data, chunk, "{index:?}");
            }
        }
    }
}
