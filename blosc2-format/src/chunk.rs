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

const SHUFFLE: u8 = 1;
const BITSHUFFLE: u8 = 2;
const DELTA: u8 = 3;

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

/// The fields of a chunk's header.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// - a version of 0 or above 6;
    /// - sizes that no writer gives: negative, a block or a type of size zero, a compressed size
    ///   below the header's;
    /// - combinations that the format excludes: an unknown special value, a special value or stored
    ///   data with variable blocks, stored data whose two sizes disagree, a repeated value of a size
    ///   that does not divide the data.
    pub fn parse(chunk: &[u8]) -> Result<Self, FormatError> {
        let head = bytes::<MIN_HEADER_LEN>(chunk, 0, "chunk header")?;
        let version = head[0];
        if version == 0 || version > MAX_VERSION {
            return Err(FormatError::new("chunk version", 0, "1 to 6", version));
        }
        let flags = head[2];
        let typesize = head[3];
        if typesize == 0 {
            return Err(FormatError::new("typesize", 3, "at least 1", 0));
        }
        let nbytes = size(&head, 4, "decompressed size", 0)?;
        let blocksize = size(&head, 8, "block size", 1)?;
        let cbytes = size(&head, 12, "compressed size", MIN_HEADER_LEN as u32)?;

        let mut header = Self {
            version,
            codec_version: head[1],
            extended: flags & 0b101 == 0b101,
            memcpyed: flags & 0b10 != 0,
            split: flags & 0b1_0000 == 0,
            codec_format: flags >> 5,
            user_codec: 0,
            codec_meta: 0,
            typesize,
            nbytes,
            blocksize,
            cbytes,
            filters: [0; MAX_FILTERS],
            filters_meta: [0; MAX_FILTERS],
            variable_blocks: false,
            dictionary: false,
            big_endian: false,
            lazy: false,
            instrumented: false,
            special: None,
        };
        if header.extended {
            header.parse_extension(chunk)?;
        } else {
            header.filters_from_flags(flags);
        }
        header.check()?;
        Ok(header)
    }

    fn parse_extension(&mut self, chunk: &[u8]) -> Result<(), FormatError> {
        let head = bytes::<EXTENDED_HEADER_LEN>(chunk, 0, "extended chunk header")?;
        if (self.cbytes as usize) < EXTENDED_HEADER_LEN {
            return Err(FormatError::new("compressed size", 12, "at least 32", self.cbytes));
        }
        self.filters.copy_from_slice(&head[16..22]);
        self.user_codec = head[22];
        self.codec_meta = head[23];
        self.filters_meta.copy_from_slice(&head[24..30]);
        if self.version == 3 {
            // The alpha versions left the last slot unset.
            self.filters[5] = 0;
            self.filters_meta[5] = 0;
        }
        self.variable_blocks = head[30] & 1 != 0;
        let flags = head[31];
        self.dictionary = flags & 0b1 != 0;
        self.big_endian = flags & 0b10 != 0;
        self.lazy = flags & 0b1000 != 0;
        self.instrumented = flags & 0x80 != 0;
        self.special = match flags >> 4 & 0b111 {
            0 => None,
            1 => Some(Special::Zeros),
            2 => Some(Special::Nan),
            3 => Some(Special::Value),
            4 => Some(Special::Uninit),
            other => return Err(FormatError::new("special value", 31, "0 to 4", other)),
        };
        Ok(())
    }

    fn filters_from_flags(&mut self, flags: u8) {
        // Blosc1 has no pipeline: delta, then one of the shuffles, as the flags say.
        if flags & 0b1 != 0 {
            self.filters[5] = SHUFFLE;
        } else if flags & 0b100 != 0 {
            self.filters[5] = BITSHUFFLE;
        }
        if flags & 0b1000 != 0 {
            self.filters[4] = DELTA;
        }
    }

    fn check(&self) -> Result<(), FormatError> {
        if self.variable_blocks {
            if !self.is_compressed() {
                let expected = "no special value and no stored data with variable blocks";
                return Err(FormatError::new("chunk flags", 30, expected, "both"));
            }
            if self.nbytes == 0 {
                let expected = "at least 1 with variable blocks";
                return Err(FormatError::new("decompressed size", 4, expected, 0));
            }
            return Ok(());
        }
        if self.blocksize > MAX_BLOCKSIZE {
            let expected = format_args!("at most {MAX_BLOCKSIZE}");
            return Err(FormatError::new("block size", 8, expected, self.blocksize));
        }
        match self.special {
            None if self.memcpyed && self.cbytes != self.nbytes + self.header_len() as u32 => {
                let expected = self.nbytes + self.header_len() as u32;
                let expected = format_args!("{expected} for stored data");
                Err(FormatError::new("compressed size", 12, expected, self.cbytes))
            }
            Some(Special::Value) => {
                let width = self.cbytes - EXTENDED_HEADER_LEN as u32;
                if width == 0 || self.nbytes % width != 0 {
                    let expected = format_args!("a multiple of the repeated value's {width} bytes");
                    return Err(FormatError::new("decompressed size", 4, expected, self.nbytes));
                }
                Ok(())
            }
            Some(Special::Nan | Special::Uninit) if self.nbytes % u32::from(self.typesize) != 0 => {
                let expected = format_args!("a multiple of the typesize {}", self.typesize);
                Err(FormatError::new("decompressed size", 4, expected, self.nbytes))
            }
            _ => Ok(()),
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

fn size(
    head: &[u8; MIN_HEADER_LEN],
    offset: usize,
    what: &'static str,
    min: u32,
) -> Result<u32, FormatError> {
    let value = i32::from_le_bytes(bytes(head, offset, what)?);
    match u32::try_from(value) {
        Ok(size) if size >= min => Ok(size),
        _ => Err(FormatError::new(what, offset, format_args!("at least {min}"), value)),
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
        assert_eq!(broken(0, 7), 0);
        assert_eq!(broken(0, 0), 0);
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
