//! The header of a chunk.

use std::ops::Range;
use std::sync::OnceLock;

use super::rules::{self, Findings, First};
use crate::FormatError;
use crate::error::bytes;

/// The size of the header of Blosc1 chunks, in bytes.
pub const MIN_HEADER_LEN: usize = 16;
/// The size of the extended header of Blosc2 chunks, in bytes.
pub const EXTENDED_HEADER_LEN: usize = 32;
/// The highest known version of the chunk format.
pub const MAX_VERSION: u8 = 6;
/// The maximum size of a block, in bytes.
pub const MAX_BLOCKSIZE: u32 = 536_866_816;
/// The number of slots in a filter pipeline: the maximum number of filters.
pub const MAX_FILTERS: usize = 6;

/// The two flags that mark an extended header if both are set.
const EXTENDED: u8 = 0b101;
/// The place of the compressed size.
const CBYTES: Range<usize> = 12..16;
const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNC_PREC: u8 = 4;

/// The kind of a special (constant) chunk, which contains at most one value instead of its items.
///
/// ```
/// use blosc2_format::chunk::{Header, Params, Special, special};
///
/// let bytes = special(&Params::default(), Special::Zeros, 4000, &[])?;
/// assert_eq!(bytes.len(), 32);
/// assert_eq!(Header::parse(&bytes)?.special, Some(Special::Zeros));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// All bytes are zero.
    Zeros,
    /// All items are NaN: `f32` with a typesize of 4, `f64` with a typesize of 8, in little-endian
    /// byte order.
    Nan,
    /// All items have the same value, which is stored once, after the header.
    Value,
    /// Uninitialized: no item has been written. The items are decoded to zeros.
    Uninit,
}

/// The header fields of a chunk as stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawHeader {
    pub(crate) version: u8,
    pub(crate) codec_version: u8,
    pub(crate) flags: u8,
    pub(crate) typesize: u8,
    pub(crate) nbytes: i32,
    pub(crate) blocksize: i32,
    pub(crate) cbytes: i32,
    pub(crate) extension: Option<Extension>,
}

/// The second half of an extended header.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Extension {
    pub(crate) filters: [u8; MAX_FILTERS],
    pub(crate) user_codec: u8,
    pub(crate) codec_meta: u8,
    pub(crate) filters_meta: [u8; MAX_FILTERS],
    /// Byte 30.
    pub(crate) flags2: u8,
    /// Byte 31.
    pub(crate) flags: u8,
}

impl RawHeader {
    pub(crate) fn read(chunk: &[u8]) -> Result<Self, FormatError> {
        let head = bytes::<MIN_HEADER_LEN>(chunk, 0, rules::HEADER.what)?;
        let mut raw = Self {
            version: head[0],
            codec_version: head[1],
            flags: head[2],
            typesize: head[3],
            nbytes: i32::from_le_bytes([head[4], head[5], head[6], head[7]]),
            blocksize: i32::from_le_bytes([head[8], head[9], head[10], head[11]]),
            cbytes: i32::from_le_bytes([head[12], head[13], head[14], head[15]]),
            extension: None,
        };
        if raw.flags & EXTENDED == EXTENDED {
            let head = bytes::<EXTENDED_HEADER_LEN>(chunk, 0, rules::EXTENDED_HEADER.what)?;
            raw.extension = Some(Extension {
                filters: [head[16], head[17], head[18], head[19], head[20], head[21]],
                user_codec: head[22],
                codec_meta: head[23],
                filters_meta: [head[24], head[25], head[26], head[27], head[28], head[29]],
                flags2: head[30],
                flags: head[31],
            });
        }
        Ok(raw)
    }

    fn len(&self) -> i32 {
        if self.extension.is_some() { EXTENDED_HEADER_LEN as i32 } else { MIN_HEADER_LEN as i32 }
    }

    /// Checks the rules that the meaning of the fields depends on. `header` contains this meaning.
    pub(crate) fn check(&self, header: &Header, findings: &mut impl Findings) {
        // A later version without new flags can be read, as in C.
        let new_flags = self.extension.is_some_and(|extension| extension.flags2 & !1 != 0);
        if self.version == 0 || (self.version > MAX_VERSION && new_flags) {
            findings.found(&rules::VERSION, 0, 1, "1 to 6", self.version);
        }
        if self.typesize == 0 {
            findings.found(&rules::TYPESIZE, 3, 1, "at least 1", 0);
        }
        if self.nbytes < 0 {
            findings.found(&rules::NBYTES, 4, 4, "at least 0", self.nbytes);
        }
        if self.blocksize < 1 {
            findings.found(&rules::BLOCKSIZE, 8, 4, "at least 1", self.blocksize);
        }
        if self.cbytes < self.len() {
            let expected = format_args!("at least {}", self.len());
            findings.found(&rules::CBYTES, 12, 4, expected, self.cbytes);
        }
        let special = self.extension.map_or(0, |extension| extension.flags >> 4 & 0b111);
        if special > 4 {
            findings.found(&rules::SPECIAL, 31, 1, "0 to 4", special);
        }
        if self.typesize > 0 && self.nbytes >= 0 && self.blocksize > 0 && self.cbytes >= self.len()
        {
            header.check(findings);
        }
    }

    /// Returns the meaning of the fields, if the fields violate no rule.
    pub(crate) fn header(&self) -> Header {
        let flags = self.flags;
        let mut header = Header {
            version: self.version,
            codec_version: self.codec_version,
            extended: self.extension.is_some(),
            memcpyed: flags & 0b10 != 0,
            split: flags & 0b1_0000 == 0,
            codec_format: flags >> 5,
            user_codec: 0,
            codec_meta: 0,
            typesize: self.typesize,
            nbytes: self.nbytes as u32,
            blocksize: self.blocksize as u32,
            cbytes: self.cbytes as u32,
            filters: [0; MAX_FILTERS],
            filters_meta: [0; MAX_FILTERS],
            variable_blocks: false,
            dictionary: false,
            big_endian: false,
            lazy: false,
            instrumented: false,
            special: None,
        };
        let Some(extension) = self.extension else {
            // Blosc1 has no pipeline. The flags state delta, and shuffle or bitshuffle after delta.
            if flags & 0b1 != 0 {
                header.filters[5] = SHUFFLE;
            } else if flags & 0b100 != 0 {
                header.filters[5] = BITSHUFFLE;
            }
            if flags & 0b1000 != 0 {
                header.filters[4] = DELTA;
            }
            return header;
        };
        header.filters = extension.filters;
        header.filters_meta = extension.filters_meta;
        if self.version == 3 {
            // The alpha versions did not initialize the last slot.
            header.filters[5] = 0;
            header.filters_meta[5] = 0;
        }
        header.user_codec = extension.user_codec;
        header.codec_meta = extension.codec_meta;
        header.variable_blocks = extension.flags2 & 1 != 0;
        header.dictionary = extension.flags & 0b1 != 0;
        header.big_endian = extension.flags & 0b10 != 0;
        header.lazy = extension.flags & 0b1000 != 0;
        header.instrumented = extension.flags & 0x80 != 0;
        header.special = match extension.flags >> 4 & 0b111 {
            1 => Some(Special::Zeros),
            2 => Some(Special::Nan),
            3 => Some(Special::Value),
            4 => Some(Special::Uninit),
            _ => None,
        };
        header
    }
}

/// The header of a chunk.
///
/// Numbers are in little-endian byte order. Chunks of Blosc1, and Blosc2 chunks in the
/// Blosc1-compatible mode, have a header of 16 bytes. Other Blosc2 chunks have an extended header
/// of 32 bytes. In an extended header, the flags for shuffle and bitshuffle are both set.
///
/// ```
/// use blosc2_format::chunk::{Header, Special};
///
/// // 24 zero bytes of a 4-byte type, as Blosc2 stores them: only a header.
/// let mut chunk = [0u8; 32];
/// chunk[0] = 5; // format version
/// chunk[2] = 0b101; // extended header
/// chunk[3] = 4; // typesize
/// chunk[4] = 24; // bytes when decompressed
/// chunk[8] = 24; // block size
/// chunk[12] = 32; // bytes when compressed
/// chunk[31] = 1 << 4; // all zeros
/// let header = Header::parse(&chunk)?;
/// assert_eq!((header.nbytes, header.typesize, header.special), (24, 4, Some(Special::Zeros)));
/// # Ok::<(), blosc2_format::FormatError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// The version of the chunk format: 1 or 2 for Blosc1 and the first alphas of Blosc2, 3 to 6
    /// for later versions of Blosc2.
    pub version: u8,
    /// The version of the codec's stream format.
    pub codec_version: u8,
    /// Whether the header has 32 bytes.
    pub extended: bool,
    /// Whether the flag for uncompressed data is set. Special chunks can have this flag too: use
    /// [`is_stored`](Self::is_stored) to detect stored data.
    pub memcpyed: bool,
    /// Whether each block is split into `typesize` streams, which are compressed separately.
    /// Otherwise a block is one stream.
    pub split: bool,
    /// The stream format of the codec: 0 BloscLZ, 1 LZ4 and LZ4HC, 2 Snappy, 3 zlib, 4 Zstandard.
    /// The format 5 is Lizard if `version` is below 5, and unused otherwise. The format 6 means
    /// that `user_codec` contains the code of the codec.
    pub codec_format: u8,
    /// The code of the codec if `codec_format` is 6.
    pub user_codec: u8,
    /// The parameter of the codec.
    pub codec_meta: u8,
    /// The size of an item, in bytes; 1 if it is greater than 255.
    pub typesize: u8,
    /// The decompressed size of the data, in bytes.
    pub nbytes: u32,
    /// The size of a block, in bytes, as stored; the number of blocks if `variable_blocks` is set.
    pub blocksize: u32,
    /// The size of the chunk, in bytes, including the header.
    pub cbytes: u32,
    /// The codes of the filters, in the order in which they were applied (see
    /// [`Params::filters`](super::Params::filters)); 0 is an empty slot.
    pub filters: [u8; MAX_FILTERS],
    /// The parameters of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Whether the chunk has variable-length blocks.
    pub variable_blocks: bool,
    /// Whether the chunk contains a dictionary, which follows the [block starts](super::Chunk).
    pub dictionary: bool,
    /// Whether the items are in big-endian byte order.
    pub big_endian: bool,
    /// Whether the chunk is lazy: it exists in memory only, and its blocks are in a file.
    pub lazy: bool,
    /// Whether the streams contain measurements of the codec instead of data.
    pub instrumented: bool,
    /// The value of a special (constant) chunk, which stores no blocks. `None` for other chunks.
    pub special: Option<Special>,
}

impl Header {
    /// Parses the header at the start of `chunk`. C: `blosc2_cbuffer_sizes` and
    /// `blosc1_cbuffer_metainfo`.
    ///
    /// The bytes after the header can be missing. To detect a truncated chunk, compare `cbytes`
    /// with the length of `chunk`.
    ///
    /// # Errors
    /// - `chunk` has fewer than 16 bytes, or fewer than 32 bytes and an extended header;
    /// - the version is 0, or above 6 with unknown flags;
    /// - a size is negative;
    /// - the block size or the typesize is 0, or the block size exceeds [`MAX_BLOCKSIZE`];
    /// - the compressed size is smaller than the header;
    /// - the special value is unknown;
    /// - a chunk with variable-length blocks is special, stored uncompressed, or empty;
    /// - the data is stored uncompressed, and `cbytes` is not the size of the header plus `nbytes`;
    /// - the chunk is NaN or uninitialized, and `nbytes` is not a multiple of the typesize;
    /// - the chunk is a repeated value, and the value is empty or `nbytes` is not a multiple of its
    ///   size.
    pub fn parse(chunk: &[u8]) -> Result<Self, FormatError> {
        let raw = RawHeader::read(chunk)?;
        let header = raw.header();
        let mut first = First::default();
        raw.check(&header, &mut first);
        first.or(header)
    }

    /// Checks the rules about combinations of fields.
    fn check(&self, findings: &mut impl Findings) {
        if self.variable_blocks {
            if !self.is_compressed() {
                let expected = "no special value and no stored data with variable-length blocks";
                findings.found(&rules::VL_FLAGS, 30, 1, expected, "both");
            }
            if self.nbytes == 0 {
                let expected = "at least 1 with variable-length blocks";
                findings.found(&rules::VL_EMPTY, 4, 4, expected, 0);
            }
            return;
        }
        if self.blocksize > MAX_BLOCKSIZE {
            let expected = format_args!("at most {MAX_BLOCKSIZE}");
            findings.found(&rules::BLOCKSIZE, 8, 4, expected, self.blocksize);
        }
        let stored = self.nbytes + self.header_len() as u32;
        match self.special {
            None if self.memcpyed && self.cbytes != stored => {
                let expected = format_args!("{stored} for stored data");
                findings.found(&rules::STORED_CBYTES, 12, 4, expected, self.cbytes);
            }
            Some(Special::Value) => {
                let width = self.cbytes - EXTENDED_HEADER_LEN as u32;
                if width == 0 || !self.nbytes.is_multiple_of(width) {
                    let expected = format_args!("a multiple of the repeated value's {width} bytes");
                    findings.found(&rules::VALUE_WIDTH, 4, 4, expected, self.nbytes);
                }
            }
            Some(Special::Nan | Special::Uninit)
                if !self.nbytes.is_multiple_of(u32::from(self.typesize)) =>
            {
                let expected = format_args!("a multiple of the typesize {}", self.typesize);
                findings.found(&rules::SPECIAL_ITEMS, 4, 4, expected, self.nbytes);
            }
            _ => {}
        }
    }

    /// Returns whether the data is stored uncompressed.
    pub fn is_stored(&self) -> bool {
        self.memcpyed && self.special.is_none()
    }

    /// Returns whether the writer processed the data with the filters and the codec. Returns
    /// `false` for uncompressed data and for special chunks.
    #[inline]
    pub fn is_compressed(&self) -> bool {
        !self.memcpyed && self.special.is_none()
    }

    /// Returns the size of this header, in bytes: 16 or 32.
    #[inline]
    pub fn header_len(&self) -> usize {
        if self.extended { EXTENDED_HEADER_LEN } else { MIN_HEADER_LEN }
    }

    /// Returns the code of the codec. If `codec_format` is 6, this is `user_codec`, otherwise the
    /// code that corresponds to `codec_format`. Two formats are ambiguous:
    ///
    /// - LZ4 and LZ4HC have the same format; the method returns 1, the code of LZ4.
    /// - For the format 5, Lizard, the method returns 5, although 5 is the code of Zstandard.
    pub fn codec(&self) -> u8 {
        match self.codec_format {
            6 if self.extended => self.user_codec,
            format => codec_of_format(format),
        }
    }

    /// Returns the number of blocks.
    #[inline]
    pub fn nblocks(&self) -> u32 {
        if self.variable_blocks {
            self.blocksize
        } else {
            self.nbytes.div_ceil(self.block_len().max(1))
        }
    }

    /// Returns the size of a block, in bytes: the smaller of `blocksize` and `nbytes`. The last
    /// block can be shorter. If `variable_blocks` is set, the result has no meaning.
    #[inline]
    pub fn block_len(&self) -> u32 {
        self.blocksize.min(self.nbytes)
    }

    /// Returns the maximum memory for decoding the whole chunk, in bytes: its data, and two blocks,
    /// which the codec and the filters use.
    pub fn decoding_memory(&self) -> u64 {
        let block = if self.variable_blocks { self.nbytes } else { self.block_len() };
        u64::from(self.nbytes) + 2 * u64::from(block)
    }

    /// Returns whether C-Blosc2 3.3.2 without patches undoes the filter delta correctly in this
    /// filter pipeline. Returns `true` for a pipeline without delta.
    ///
    /// C-Blosc2 mixes up its buffers and can decode wrong data in two cases:
    ///
    /// - the pipeline contains delta more than once;
    /// - at least three filters precede delta, and at least one filter follows it (truncated
    ///   precision does not count).
    ///
    /// This crate decodes such chunks correctly.
    pub fn is_delta_undone(&self) -> bool {
        let filters = &self.filters;
        let mut places = filters.iter().enumerate().filter(|(_, filter)| **filter == DELTA);
        let (Some((place, _)), None) = (places.next(), places.next()) else {
            return !filters.contains(&DELTA);
        };
        // Undoing truncated precision does nothing, so it needs no buffer.
        let undone = |filter: &&u8| !matches!(**filter, 0 | DELTA | TRUNC_PREC);
        let before = filters[..place].iter().filter(undone).count();
        let after = filters[place..].iter().filter(undone).count();
        before < 3 || after == 0
    }
}

/// A parsed header of a frame, for the next ones: chunks of a frame usually differ only in their compressed sizes.
#[derive(Debug, Clone, Default)]
pub(crate) struct TypicalHeader(OnceLock<([u8; EXTENDED_HEADER_LEN], Header)>);

impl TypicalHeader {
    /// Parses a header as [`Header::parse`] does. Costs a comparison if only the compressed size is new.
    pub(crate) fn parse(&self, chunk: &[u8]) -> Result<Header, FormatError> {
        if let Some((header, cbytes)) = self.find(chunk) {
            return Ok(Header { cbytes, ..header.clone() });
        }
        let header = Header::parse(chunk)?;
        // No other rule about the compressed size holds for these chunks.
        if let (Some(head), true) = (chunk.first_chunk(), header.extended && header.is_compressed())
        {
            let _ = self.0.set((*head, header.clone()));
        }
        Ok(header)
    }

    /// Returns the known header and the compressed size of a chunk, if the header of the chunk
    /// differs only in this size.
    #[inline]
    pub(crate) fn find(&self, chunk: &[u8]) -> Option<(&Header, u32)> {
        let head = chunk.first_chunk::<EXTENDED_HEADER_LEN>()?;
        let (known, header) = self.0.get()?;
        let cbytes = u32::from_le_bytes([head[12], head[13], head[14], head[15]]);
        let is_equal = head[..CBYTES.start] == known[..CBYTES.start]
            && head[CBYTES.end..] == known[CBYTES.end..]
            && (EXTENDED_HEADER_LEN as u32..=i32::MAX as u32).contains(&cbytes);
        is_equal.then_some((header, cbytes))
    }
}

/// Returns the code of the codec of a format. LZ4 and LZ4HC share a format; the result is LZ4.
fn codec_of_format(format: u8) -> u8 {
    match format {
        0 => 0, // BloscLZ
        1 => 1, // LZ4
        2 => 3, // Snappy
        3 => 4, // zlib
        4 => 5, // Zstandard
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A valid extended header: 1000 bytes of typesize 4 in blocks of 256, shuffle, LZ4.
    fn sample() -> [u8; 32] {
        let mut head = [0; 32];
        head[..4].copy_from_slice(&[5, 1, 0b0010_0101, 4]);
        head[4..8].copy_from_slice(&1000u32.to_le_bytes());
        head[8..12].copy_from_slice(&256u32.to_le_bytes());
        head[12..16].copy_from_slice(&500u32.to_le_bytes());
        head[21] = 1;
        head
    }

    #[test]
    fn fields_are_where_the_format_says() {
        let header = Header::parse(&sample()).unwrap();
        assert!(header.extended && header.split && !header.memcpyed);
        assert_eq!((header.nbytes, header.blocksize, header.cbytes), (1000, 256, 500));
        assert_eq!(header.filters, [0, 0, 0, 0, 0, 1]);
        assert_eq!((header.codec(), header.nblocks(), header.header_len()), (1, 4, 32));
    }

    #[test]
    fn blosc1_flags_become_filters() {
        let mut head = sample();
        head[2] = 0b1000_1001; // delta and shuffle, Zstandard, split
        let header = Header::parse(&head[..16]).unwrap();
        assert!(!header.extended);
        assert_eq!(header.filters, [0, 0, 0, 0, 3, 1]);
        assert_eq!((header.codec(), header.header_len()), (5, 16));
        head[2] = 0b0000_0100;
        assert_eq!(Header::parse(&head[..16]).unwrap().filters[5], 2);
    }

    #[test]
    fn each_rule_names_its_byte() {
        let broken = |at: usize, value: u8| {
            let mut head = sample();
            head[at] = value;
            Header::parse(&head).unwrap_err().offset
        };
        assert_eq!(broken(0, 0), 0);
        let mut later = sample();
        later[0] = 7;
        assert_eq!(Header::parse(&later).unwrap().version, 7);
        later[30] = 2;
        assert_eq!(Header::parse(&later).unwrap_err().offset, 0);
        assert_eq!(broken(3, 0), 3);
        assert_eq!(broken(7, 0x80), 4);
        assert_eq!(broken(11, 0x80), 8);
        assert_eq!(broken(11, 0x7f), 8);
        assert_eq!(broken(15, 0x80), 12);
        assert_eq!(broken(31, 5 << 4), 31);
        assert_eq!(broken(2, 0b111), 12, "stored data of another size");
        let mut head = sample();
        head[8..12].fill(0);
        assert_eq!(Header::parse(&head).unwrap_err().offset, 8);
        assert_eq!(Header::parse(&sample()[..31]).unwrap_err().found, "31");
        assert_eq!(Header::parse(&[]).unwrap_err().found, "0");
    }

    #[test]
    fn special_values_have_their_own_rules() {
        let mut head = sample();
        head[31] = 3 << 4;
        head[12..16].copy_from_slice(&40u32.to_le_bytes());
        assert_eq!(Header::parse(&head).unwrap().special, Some(Special::Value));
        head[12..16].copy_from_slice(&39u32.to_le_bytes());
        assert!(Header::parse(&head).is_err(), "7 does not divide 1000");
        head[31] = 4 << 4;
        assert_eq!(Header::parse(&head).unwrap().special, Some(Special::Uninit));
        head[3] = 3;
        assert!(Header::parse(&head).is_err(), "3 does not divide 1000");
        head[30] = 1;
        assert!(Header::parse(&head).is_err(), "special with variable blocks");
    }

    proptest::proptest! {
        #[test]
        fn a_typical_header_changes_no_result(
            change in proptest::option::of((0_usize..32, proptest::prelude::any::<u8>())),
            len in 0_usize..40,
            special in proptest::prelude::any::<bool>(),
        ) {
            let mut first = sample();
            if special {
                first[31] = 1 << 4;
            }
            let typical = TypicalHeader::default();
            typical.parse(&first).unwrap();
            let mut chunk = [&first[..], &[0; 8]].concat();
            if let Some((at, value)) = change {
                chunk[at] = value;
            }
            proptest::prop_assert_eq!(typical.parse(&chunk[..len]), Header::parse(&chunk[..len]));
        }

        #[test]
        fn no_bytes_make_it_panic(chunk in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
            if let Ok(header) = Header::parse(&chunk) {
                header.nblocks();
                header.codec();
            }
        }
    }
}
