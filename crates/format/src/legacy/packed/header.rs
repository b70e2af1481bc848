//! The header of a packed super-chunk, of 96 bytes.

use super::rules;
use crate::FormatError;
use crate::error::too_short;
use crate::legacy::field;
use crate::report::{Checker, Part, Rule};

/// The size of the header, in bytes.
pub const HEADER_LEN: usize = 96;
/// The number of filters in the header.
pub(crate) const FILTERS: usize = 5;
pub(crate) const DELTA: u8 = 3;
const LAST_CODEC: u16 = 5;
/// The size of the header of 2.0.0-a5.
const ALPHA5_LEN: i64 = 120;

/// The ancillary chunks: chunks for metadata, and the reference of the delta filter.
///
/// ```
/// use blosc2_format::packed::Ancillary;
///
/// assert_eq!(Ancillary::Userdata.name(), "userdata");
/// assert_eq!(Ancillary::ALL.len(), 4);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ancillary {
    /// The reference of the delta filter.
    Filters,
    /// A chunk for the codec; no function of C-Blosc2 set this chunk.
    Codec,
    /// The metadata; no function of C-Blosc2 set this chunk.
    Metadata,
    /// The user data; no function of C-Blosc2 set this chunk.
    Userdata,
}

impl Ancillary {
    /// All ancillary chunks, in the order of the header and of the file.
    pub const ALL: [Self; 4] = [Self::Filters, Self::Codec, Self::Metadata, Self::Userdata];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Filters => "filters",
            Self::Codec => "codec",
            Self::Metadata => "metadata",
            Self::Userdata => "userdata",
        }
    }

    pub(crate) fn part(self) -> Part {
        Part::Ancillary(self.name())
    }

    /// Returns the offset of its position in the header.
    pub(crate) fn field_at(self) -> u64 {
        40 + 8 * self as u64
    }
}

/// The fields of the header as stored, without any check.
///
/// ```
/// use blosc2_format::packed::{HEADER_LEN, Header, Params, Writer};
///
/// let bytes = Writer::new(Params::default())?.finish();
/// let header = Header::parse(&bytes)?;
/// assert_eq!(header.nchunks, 0);
/// assert_eq!(header.to_bytes(), bytes[..HEADER_LEN]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Header {
    /// Always 0.
    pub version: u8,
    /// Always 0.
    pub flags: [u8; 3],
    /// The code of the codec for new chunks: 0 BloscLZ, 1 LZ4, 2 LZ4HC, 3 Snappy, 4 zlib, 5
    /// Zstandard.
    pub codec: u16,
    /// The compression level for new chunks.
    pub level: u16,
    /// The codes of five filters, with three bits for each code. The first code is in the lowest
    /// bits.
    pub filters: u16,
    /// Not used.
    pub filters_meta: u16,
    /// Always 0, because no version set it.
    pub chunksize: u32,
    /// The number of data chunks.
    pub nchunks: i64,
    /// The total decompressed size, in bytes: the size of this header, 8 bytes for each data chunk,
    /// and the decompressed size of all chunks.
    pub nbytes: i64,
    /// The size of the packed super-chunk, in bytes: the size of this header, 8 bytes for each data
    /// chunk, and the stored size of all chunks.
    pub cbytes: i64,
    /// The positions of the ancillary chunks, in the order of [`Ancillary::ALL`]. The position of a
    /// missing chunk is 0.
    pub ancillary: [i64; 4],
    /// The position of the table with the positions of the data chunks.
    pub index: i64,
    /// Uninitialized memory of the writer.
    pub reserved: [u8; 16],
}

impl Header {
    /// Parses the fields at the start of `bytes`.
    ///
    /// # Errors
    /// Fails if there are fewer than 96 bytes.
    pub fn parse(bytes: &[u8]) -> Result<Self, FormatError> {
        let Some(head) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(too_short(bytes, 0, HEADER_LEN, "packed header"));
        };
        let i64_at = |at: usize| i64::from_le_bytes(field(head, at));
        let u16_at = |at: usize| u16::from_le_bytes(field(head, at));
        Ok(Self {
            version: head[0],
            flags: field(head, 1),
            codec: u16_at(4),
            level: u16_at(6),
            filters: u16_at(8),
            filters_meta: u16_at(10),
            chunksize: u32::from_le_bytes(field(head, 12)),
            nchunks: i64_at(16),
            nbytes: i64_at(24),
            cbytes: i64_at(32),
            ancillary: [40, 48, 56, 64].map(i64_at),
            index: i64_at(72),
            reserved: field(head, 80),
        })
    }

    /// Returns the bytes of the header.
    pub fn to_bytes(&self) -> [u8; HEADER_LEN] {
        let mut head = [0; HEADER_LEN];
        let mut put = |at: usize, bytes: &[u8]| head[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &[self.version]);
        put(1, &self.flags);
        put(4, &self.codec.to_le_bytes());
        put(6, &self.level.to_le_bytes());
        put(8, &self.filters.to_le_bytes());
        put(10, &self.filters_meta.to_le_bytes());
        put(12, &self.chunksize.to_le_bytes());
        put(16, &self.nchunks.to_le_bytes());
        put(24, &self.nbytes.to_le_bytes());
        put(32, &self.cbytes.to_le_bytes());
        for (at, position) in [40, 48, 56, 64].into_iter().zip(self.ancillary) {
            put(at, &position.to_le_bytes());
        }
        put(72, &self.index.to_le_bytes());
        put(80, &self.reserved);
        head
    }

    /// Returns the codes of the filters in all five slots: 1 shuffle, 2 bitshuffle, 3 delta.
    pub fn filter_codes(&self) -> [u8; FILTERS] {
        std::array::from_fn(|slot| (self.filters >> (3 * slot) & 7) as u8)
    }

    /// Returns whether the chunks contain the difference between their data and a reference.
    pub fn has_delta(&self) -> bool {
        self.filter_codes()[0] == DELTA
    }

    /// Returns the number of filters that apply: one, or two if the first is delta.
    pub(crate) fn filters_in_use(&self) -> usize {
        if self.has_delta() { 2 } else { 1 }
    }

    /// Returns whether the header is that of 2.0.0-a5: one byte each for codec and level, the
    /// typesize at byte 8, and no chunk before byte 120.
    pub(crate) fn is_alpha5(&self) -> bool {
        let [codec, level] = self.codec.to_le_bytes();
        let bytes = u16::from(codec) <= LAST_CODEC + 1 && (1..=9).contains(&level);
        let positions = self.ancillary.iter().filter(|&&position| position != 0);
        bytes && self.level == 0 && positions.chain([&self.index]).all(|&at| at >= ALPHA5_LEN)
    }

    /// Checks the rules that involve the header only.
    pub(crate) fn check(&self, checker: &mut Checker<'_>) {
        let mut rule =
            |broken: bool, rule: &'static Rule, at, len, expected: &str, found: String| {
                if broken {
                    checker.found(rule, at, len, expected, found);
                }
            };
        let (codec, level) = (self.codec, self.level);
        rule(self.version != 0, &rules::VERSION, 0, 1, "0", self.version.to_string());
        rule(self.flags != [0; 3], &rules::FLAGS, 1, 3, "zeros", format!("{:?}", self.flags));
        rule(codec > LAST_CODEC, &rules::CODEC, 4, 2, "0 to 5", codec.to_string());
        rule(level > 9, &rules::LEVEL, 6, 2, "0 to 9", level.to_string());
        let filters = self.filter_codes();
        let (used, unused) = filters.split_at(self.filters_in_use());
        let wrong = used.iter().any(|&code| code > DELTA) || self.filters >> 15 != 0;
        rule(wrong, &rules::FILTERS, 8, 2, "five codes of 0 to 3", format!("{filters:?}"));
        let extra = unused.iter().any(|&code| code != 0);
        rule(extra, &rules::UNUSED_FILTERS, 8, 2, "zeros", format!("{unused:?}"));
        let meta = self.filters_meta;
        rule(meta != 0, &rules::FILTERS_META, 10, 2, "0", meta.to_string());
        let chunksize = self.chunksize;
        rule(
            chunksize != 0,
            &rules::CHUNKSIZE,
            12,
            4,
            "0, as no version set it",
            chunksize.to_string(),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packed::{Kind, recognise};
    use crate::report::Report;

    #[test]
    fn fields_survive_writing_and_reading() {
        let header = Header {
            codec: 4,
            level: 9,
            filters: 0o20013,
            filters_meta: 7,
            nchunks: 3,
            nbytes: 1 << 40,
            cbytes: 1 << 39,
            ancillary: [96, 0, 200, 0],
            index: 300,
            reserved: *b"whatever is here",
            ..Header::default()
        };
        assert_eq!(Header::parse(&header.to_bytes()).unwrap(), header);
        assert_eq!(header.filter_codes(), [3, 1, 0, 0, 2]);
        assert!(header.has_delta());
        assert_eq!(Header::parse(&[0; 95]).unwrap_err().found, "95");
    }

    #[test]
    fn an_empty_one_is_recognised() {
        let header = Header { nbytes: 96, cbytes: 96, index: 96, level: 5, ..Header::default() };
        assert_eq!(recognise(&header.to_bytes(), 96), Some(Kind::Packed));
        let mut report = Report::new();
        header.check(&mut Checker::new(&mut report));
        assert_eq!(report.findings, []);
        assert_eq!(recognise(&header.to_bytes()[..95], 95), None);
        assert_eq!(recognise(&[0; 200], 200), None);
        let alpha5 = Header { codec: 0x0501, level: 0, index: 120, cbytes: 120, ..header };
        assert_eq!(recognise(&alpha5.to_bytes(), 120), Some(Kind::Alpha5));
    }
}
