//! The header of a compressed chunk.
//!
//! Blosc1 and the small form of Blosc2 have 16 bytes, little endian; Blosc2's own form has 32 and is
//! told by the two shuffle flags being set together.
//!
//! ```
//! use blosc2_format::chunk::{Header, Special};
//!
//! // 24 zero bytes of a 4-byte type, as Blosc2 stores them: nothing but a header.
//! let mut chunk = [0u8; 32];
//! chunk[0] = 5; // format version
//! chunk[2] = 0b101; // extended header
//! chunk[3] = 4; // typesize
//! chunk[4] = 24; // bytes when decompressed
//! chunk[8] = 24; // block size
//! chunk[12] = 32; // bytes when compressed
//! chunk[31] = 1 << 4; // all zeros
//! let header = Header::parse(&chunk)?;
//! assert_eq!((header.nbytes, header.typesize, header.special), (24, 4, Some(Special::Zeros)));
//! # Ok::<(), blosc2_format::FormatError>(())
//! ```

use super::rules::{self, Findings, First};
use crate::FormatError;
use crate::error::bytes;

/// Length of the header that Blosc1 writes, in bytes.
pub const MIN_HEADER_LEN: usize = 16;
/// Length of the header that Blosc2 writes, in bytes.
pub const EXTENDED_HEADER_LEN: usize = 32;
/// The highest chunk version that is known.
pub const MAX_VERSION: u8 = 6;
/// Largest block, in bytes.
pub const MAX_BLOCKSIZE: u32 = 536_866_816;
/// Number of slots in a filter pipeline.
pub const MAX_FILTERS: usize = 6;

/// The flags that, both set, announce the extended header.
const EXTENDED: u8 = 0b101;
const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;
const TRUNC_PREC: u8 = 4;

/// What a chunk without data repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Special {
    /// Zeros.
    Zeros,
    /// NaN, of 4 or 8 bytes.
    Nan,
    /// One value, which follows the header.
    Value,
    /// Nothing was written; it reads as zeros.
    Uninit,
}

/// The fields of a chunk's header as they are stored.
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

    /// The rules without which the fields mean nothing. `header` is what they mean.
    pub(crate) fn check(&self, header: &Header, findings: &mut impl Findings) {
        // A later version that sets no new flag can be read, as C does.
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

    /// What the fields mean, where they break no rule.
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
            // Blosc1 has no pipeline: delta, then one of the shuffles, as the flags say.
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
            // The alpha versions left the last slot unset.
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

/// The fields of a chunk's header.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Header {
    /// Version of the chunk format: 2 for Blosc1, 3 to 6 for Blosc2.
    pub version: u8,
    /// Version of the codec's format.
    pub codec_version: u8,
    /// Whether the header has 32 bytes.
    pub extended: bool,
    /// Whether the data is stored as it is.
    pub memcpyed: bool,
    /// Whether a block is cut into one stream for each byte of the type.
    pub split: bool,
    /// The codec's format: 0 BloscLZ, 1 LZ4, 2 Snappy, 3 zlib, 4 Zstandard, 6 see `user_codec`.
    pub codec_format: u8,
    /// The codec's code; it decides where `codec_format` is 6.
    pub user_codec: u8,
    /// Parameter of the codec.
    pub codec_meta: u8,
    /// Size of an item in bytes; 1 where it is over 255.
    pub typesize: u8,
    /// Bytes when decompressed.
    pub nbytes: u32,
    /// Bytes of a block, as stored; the number of blocks where `variable_blocks` is set.
    pub blocksize: u32,
    /// Bytes of the chunk, this header counted in.
    pub cbytes: u32,
    /// Codes of the filters; 0 is none.
    pub filters: [u8; MAX_FILTERS],
    /// Parameters of the filters.
    pub filters_meta: [u8; MAX_FILTERS],
    /// Whether blocks have different lengths.
    pub variable_blocks: bool,
    /// Whether a dictionary follows the block starts.
    pub dictionary: bool,
    /// Whether the writer had big-endian items.
    pub big_endian: bool,
    /// Whether the blocks are elsewhere (only ever in memory).
    pub lazy: bool,
    /// Whether the data is measurements of the codec rather than data.
    pub instrumented: bool,
    /// What is repeated when there is no data.
    pub special: Option<Special>,
}

impl Header {
    /// Reads the header at the start of `chunk`.
    ///
    /// The whole chunk need not be there: compare `cbytes` with what there is.
    ///
    /// # Errors
    /// - fewer than 16 bytes, or fewer than 32 where the extended header is announced;
    /// - a version of 0, or one above 6 with flags that are not known;
    /// - sizes that no writer gives: negative, a block or a type of size zero, a compressed size
    ///   below the header's;
    /// - combinations that the format excludes: an unknown special value, a special value or stored
    ///   data with variable blocks, stored data whose two sizes disagree, a repeated value of a size
    ///   that does not divide the data.
    pub fn parse(chunk: &[u8]) -> Result<Self, FormatError> {
        let raw = RawHeader::read(chunk)?;
        let header = raw.header();
        let mut first = First::default();
        raw.check(&header, &mut first);
        first.or(header)
    }

    /// The rules about fields that have to go together.
    fn check(&self, findings: &mut impl Findings) {
        if self.variable_blocks {
            if !self.is_compressed() {
                let expected = "no special value and no stored data with variable blocks";
                findings.found(&rules::VL_FLAGS, 30, 1, expected, "both");
            }
            if self.nbytes == 0 {
                let expected = "at least 1 with variable blocks";
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

    /// Whether the data is there byte by byte: neither compressed nor left out.
    pub fn is_stored(&self) -> bool {
        self.memcpyed && self.special.is_none()
    }

    /// Whether the data went through the filters and the codec: it is neither stored as it is nor
    /// left out for a special value.
    pub fn is_compressed(&self) -> bool {
        !self.memcpyed && self.special.is_none()
    }

    /// Length of this header in bytes: 16 or 32.
    pub fn header_len(&self) -> usize {
        if self.extended { EXTENDED_HEADER_LEN } else { MIN_HEADER_LEN }
    }

    /// The codec's code, whichever field holds it.
    pub fn codec(&self) -> u8 {
        match self.codec_format {
            6 if self.extended => self.user_codec,
            format => codec_of_format(format),
        }
    }

    /// Number of blocks; with `variable_blocks`, as stored.
    pub fn nblocks(&self) -> u32 {
        if self.variable_blocks {
            self.blocksize
        } else {
            self.nbytes.div_ceil(self.block_len().max(1))
        }
    }

    /// Bytes of every block but a shorter last one: the stored size, or the whole data where that
    /// is less. Meaningless with `variable_blocks`.
    pub fn block_len(&self) -> u32 {
        self.blocksize.min(self.nbytes)
    }

    /// Whether C-Blosc2 as released undoes delta where it stands among the filters, if it is one of
    /// them.
    ///
    /// It does not, and gives other data, where delta is there twice, or where three filters or more
    /// come before it and another one after it: its buffers get mixed up. Such chunks are decoded here.
    pub fn is_delta_undone(&self) -> bool {
        let filters = &self.filters;
        let mut places = filters.iter().enumerate().filter(|(_, filter)| **filter == DELTA);
        let (Some((place, _)), None) = (places.next(), places.next()) else {
            return !filters.contains(&DELTA);
        };
        // Truncated bits stay as they are.
        let undone = |filter: &&u8| !matches!(**filter, 0 | DELTA | TRUNC_PREC);
        let before = filters[..place].iter().filter(undone).count();
        let after = filters[place..].iter().filter(undone).count();
        before < 3 || after == 0
    }
}

/// The codec that a format stands for: LZ4HC writes LZ4's, so LZ4 is given for both.
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
        fn no_bytes_make_it_panic(chunk in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..40)) {
            if let Ok(header) = Header::parse(&chunk) {
                header.nblocks();
                header.codec();
            }
        }
    }
}
