//! Filters: transformations of blocks before compression.

use std::fmt;
use std::str::FromStr;

use blosc2_sys as sys;

use crate::chunk::init::init;
use crate::closures::UserFilter;
use crate::codec::installed;
use crate::{Error, ErrorKind, Result, closures};

/// A filter and its parameter.
///
/// In C-Blosc2, each filter has a code, a number from 1 to 255. The variant [`Filter::Other`] is for the codes that
/// have no other variant, including the codes of [user-defined filters](Self::register). [`Display`](fmt::Display)
/// writes a filter as `name` or `name:parameter`. For a code without a name, it writes text such as `filter 99`.
/// [`FromStr`] parses names and their parameters, but no codes.
///
/// A chunk is stored uncompressed in three cases: the level is 0, the data has fewer than 32 bytes, or compression does
/// not make the data smaller. Such a chunk is stored without filters, so lossy filters do not change its data.
/// Variable-length blocks are always filtered.
///
/// C: `filters` and `filters_meta` of `blosc2_cparams`. Python: `Filter`.
///
/// ```
/// use blosc2::{CParams, ChunkRef, Filter};
///
/// let params = CParams::new().filters(&[Filter::Delta, Filter::Shuffle]);
/// let items: Vec<u32> = (0..10_000).collect();
/// let bytes = blosc2::compress(&items, &params)?;
/// assert_eq!(ChunkRef::new(&bytes)?.filters(), [Filter::Delta, Filter::Shuffle]);
/// assert_eq!("trunc_prec:10".parse::<Filter>()?, Filter::TruncPrec(10));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// Byte shuffle: groups the first bytes of all items, then the second bytes, and so on.
    Shuffle,
    /// Byte shuffle that uses this item size in bytes (1 to 255) instead of the typesize.
    ShuffleBytes(u8),
    /// Bit shuffle: groups the lowest bits of all items, then the second-lowest bits, and so on.
    Bitshuffle,
    /// Replaces each word by its exclusive or (XOR) with a reference word. Delta has to be the first filter.
    /// - Reference: in the first block of a chunk, and in variable-length blocks, the previous word. In all other
    ///   blocks, the word at the same offset in the first block.
    /// - Words: an item of 1, 2, 4 or 8 bytes is one word. Items of other sizes are divided into words of 8 bytes if
    ///   their size is a multiple of 8, and into words of 1 byte otherwise.
    Delta,
    /// Clears low bits of the mantissa of `f32` or `f64` items. A positive parameter is the number of bits to keep; a
    /// negative parameter is the number of bits to clear: -8 clears 8 bits. Lossy.
    TruncPrec(i8),
    /// Clears low bits of integers of 1, 2, 4 or 8 bytes. A positive parameter is the number of bits to keep; a
    /// negative parameter is the number of bits to clear: -8 clears 8 bits. Lossy.
    IntTrunc(i8),
    /// Divides each block into streams of equal length, and replaces each byte by its difference from the previous byte
    /// in the same stream. Use this filter after a shuffle, which creates one stream for each byte of an item. The
    /// parameter is the number of streams in a block; 0 means the typesize.
    Bytedelta(u8),
    /// Divides each block of an array into cells with equal sides, and groups the items of each cell. The parameter is
    /// the side length of a cell in items, 1 to 255. Only for arrays of 1 to 8 dimensions.
    Ndcell(u8),
    /// Divides each block of an array of floats into cells with equal sides, and replaces the items of each cell by
    /// their mean. The parameter is the side length of a cell in items, 1 to 127. Lossy, only for arrays of 1 to 8
    /// dimensions.
    Ndmean(u8),
    /// A filter whose code has no other variant. Also a filter whose code has another variant, if the parameter has no
    /// meaning for that variant.
    Other {
        /// The code.
        code: u8,
        /// The parameter.
        meta: u8,
    },
}

const SHUFFLE: u8 = sys::BLOSC_SHUFFLE as u8;
const BITSHUFFLE: u8 = sys::BLOSC_BITSHUFFLE as u8;
const DELTA: u8 = sys::BLOSC_DELTA as u8;
const TRUNC_PREC: u8 = sys::BLOSC_TRUNC_PREC as u8;
const NDCELL: u8 = sys::BLOSC_FILTER_NDCELL as u8;
const NDMEAN: u8 = sys::BLOSC_FILTER_NDMEAN as u8;
const BYTEDELTA_BUGGY: u8 = sys::BLOSC_FILTER_BYTEDELTA_BUGGY as u8;
const BYTEDELTA: u8 = sys::BLOSC_FILTER_BYTEDELTA as u8;
const INT_TRUNC: u8 = sys::BLOSC_FILTER_INT_TRUNC as u8;

/// The names of the built-in filters.
const NAMES: [&str; 8] =
    ["shuffle", "bitshuffle", "delta", "trunc_prec", "int_trunc", "bytedelta", "ndcell", "ndmean"];

impl Filter {
    /// Returns the filter with this code and this parameter; `None` for code 0, which means "no filter" in a header.
    pub fn from_code(code: u8, meta: u8) -> Option<Self> {
        Some(match (code, meta) {
            (0, _) => return None,
            (SHUFFLE, 0) => Self::Shuffle,
            (SHUFFLE, bytes) => Self::ShuffleBytes(bytes),
            (BITSHUFFLE, 0) => Self::Bitshuffle,
            (DELTA, 0) => Self::Delta,
            (TRUNC_PREC, bits) => Self::TruncPrec(bits as i8),
            (INT_TRUNC, bits) => Self::IntTrunc(bits as i8),
            (BYTEDELTA, streams) => Self::Bytedelta(streams),
            (NDCELL, side) => Self::Ndcell(side),
            (NDMEAN, side) => Self::Ndmean(side),
            (code, meta) => Self::Other { code, meta },
        })
    }

    /// The filters in the slots of a header, without the empty slots.
    pub(crate) fn of_slots(codes: &[u8], metas: &[u8]) -> impl Iterator<Item = Self> + Clone {
        let slots = codes.iter().zip(metas);
        slots.filter_map(|(&code, &meta)| Self::from_code(code, meta))
    }

    /// Registers a user-defined filter with a code from 160 to 255 and a name, until the process exits.
    ///
    /// Returns the filter with the parameter 0. For another parameter, use `Filter::Other { code, meta }`. Chunks store
    /// the code and the parameter, not the name. To read the chunks, a program has to register the same filter with the
    /// same code.
    ///
    /// C: `blosc2_register_filter`. Python: `register_filter`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: the code is not from 160 to 255; or the name is empty, is a number from 0 to
    ///   255, or contains a colon;
    /// - [`ErrorKind::AlreadyExists`]: the code or the name is registered already, or a filter of C-Blosc2 has the
    ///   name.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, FilterBlock};
    /// use blosc2::{CParams, Filter};
    ///
    /// /// The differences of neighboring items.
    /// fn forward(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
    ///     let (input, mut last) = (block.input_as::<u32>()?, 0);
    ///     for (to, &from) in block.output_as::<u32>()?.iter_mut().zip(input) {
    ///         *to = from.wrapping_sub(last);
    ///         last = from;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// fn backward(block: &mut FilterBlock<'_>) -> Result<(), BoxError> {
    ///     let (input, mut last) = (block.input_as::<u32>()?, 0u32);
    ///     for (to, &from) in block.output_as::<u32>()?.iter_mut().zip(input) {
    ///         last = last.wrapping_add(from);
    ///         *to = last;
    ///     }
    ///     Ok(())
    /// }
    ///
    /// let differences = Filter::register(200, "differences", (forward, backward))?;
    /// let data: Vec<u32> = (0..10_000).map(|i| i * 7).collect();
    /// let params = CParams::new().filters(&[differences, Filter::Shuffle]);
    /// let chunk = blosc2::compress(&data, &params)?;
    /// assert!(chunk.len() < 200);
    /// assert_eq!(blosc2::decompress::<u32>(&chunk)?, data);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn register(code: u8, name: &str, filter: impl UserFilter) -> Result<Self> {
        init()?;
        let built_in = NAMES.iter().any(|other| other.eq_ignore_ascii_case(name));
        closures::register_filter(code, name, filter, built_in)?;
        Ok(Self::Other { code, meta: 0 })
    }

    /// Returns the code of the filter.
    pub fn code(self) -> u8 {
        self.code_and_meta().0
    }

    /// Returns the parameter of the filter, as a byte: signed parameters are in two's complement.
    pub fn meta(self) -> u8 {
        self.code_and_meta().1
    }

    fn code_and_meta(self) -> (u8, u8) {
        match self {
            Self::Shuffle => (SHUFFLE, 0),
            Self::ShuffleBytes(bytes) => (SHUFFLE, bytes),
            Self::Bitshuffle => (BITSHUFFLE, 0),
            Self::Delta => (DELTA, 0),
            Self::TruncPrec(bits) => (TRUNC_PREC, bits as u8),
            Self::IntTrunc(bits) => (INT_TRUNC, bits as u8),
            Self::Bytedelta(streams) => (BYTEDELTA, streams),
            Self::Ndcell(side) => (NDCELL, side),
            Self::Ndmean(side) => (NDMEAN, side),
            Self::Other { code, meta } => (code, meta),
        }
    }

    /// Returns whether this program can run the filter: the filter was compiled in or registered.
    ///
    /// ```
    /// use blosc2::Filter;
    ///
    /// assert!(Filter::Bitshuffle.is_available());
    /// assert!(!Filter::Other { code: 99, meta: 0 }.is_available());
    /// ```
    pub fn is_available(self) -> bool {
        init().is_ok() && is_available(self.code())
    }

    /// Whether the filter needs the shape of an array. Such a filter works in arrays only.
    pub(crate) fn needs_array(self) -> bool {
        matches!(self.code(), NDCELL | NDMEAN)
    }

    /// Whether the filter does not write the bytes after the last whole item, so that its output contains old scratch
    /// memory there (delta.c, trunc-prec.c, int_trunc.c). Such a filter may receive only whole items.
    pub(crate) fn needs_whole_items(self) -> bool {
        matches!(self.code(), DELTA | TRUNC_PREC | INT_TRUNC | NDCELL | NDMEAN)
    }

    /// Returns the reason why a filter is not available.
    pub(crate) fn unavailable(self) -> String {
        match closures::is_user_code(self.code()) {
            true => format!("{self} is not registered in this program"),
            false => format!("{self} is not in this build"),
        }
    }

    /// Returns the reason why items of this size cannot be compressed with the filter; `None` if they can be.
    pub(super) fn objection(self, typesize: usize) -> Option<String> {
        if self.code() == BYTEDELTA_BUGGY {
            return Some(format!(
                "{self} is a faulty version of bytedelta, supported for decompression only"
            ));
        }
        if !is_available(self.code()) {
            return Some(self.unavailable());
        }
        match self {
            Self::TruncPrec(bits) => {
                let mantissa = match typesize {
                    4 => 23,
                    8 => 52,
                    _ => return Some(format!("{self} needs a typesize of 4 or 8, got {typesize}")),
                };
                let kept = if bits >= 0 { i32::from(bits) } else { mantissa + i32::from(bits) };
                (kept < 1 || kept > mantissa)
                    .then(|| format!("{self} keeps {kept} bits of a mantissa of {mantissa} bits"))
            }
            Self::IntTrunc(bits) => {
                if !matches!(typesize, 1 | 2 | 4 | 8) {
                    let message = "needs a typesize of 1, 2, 4 or 8, got";
                    return Some(format!("{self} {message} {typesize}"));
                }
                let width = typesize as i32 * 8;
                let kept = if bits >= 0 { i32::from(bits) } else { width + i32::from(bits) };
                (kept < 1 || kept > width)
                    .then(|| format!("{self} keeps {kept} bits of an integer of {width} bits"))
            }
            Self::Bytedelta(0) if typesize > 255 => {
                Some(format!("{self} needs a typesize of at most 255, got {typesize}"))
            }
            _ => None,
        }
    }
}

/// Whether this program can undo the filter with this code.
pub(crate) fn is_available(code: u8) -> bool {
    matches!(code, SHUFFLE | BITSHUFFLE | DELTA | TRUNC_PREC | NDCELL | BYTEDELTA | INT_TRUNC)
        || (code == NDMEAN && !installed::MISPLACES_NDMEAN)
        || (code == BYTEDELTA_BUGGY && !installed::MISREADS_FIRST_BYTEDELTA)
        || closures::is_filter(code)
}

/// Whether this is the code of the first version of bytedelta.
pub(crate) fn is_first_bytedelta(code: u8) -> bool {
    code == BYTEDELTA_BUGGY
}

/// Whether this is the code of the current or the first version of bytedelta.
pub(crate) fn is_bytedelta(code: u8) -> bool {
    matches!(code, BYTEDELTA | BYTEDELTA_BUGGY)
}

pub(crate) fn is_delta(code: u8) -> bool {
    code == DELTA
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shuffle => f.write_str("shuffle"),
            Self::ShuffleBytes(bytes) => write!(f, "shuffle:{bytes}"),
            Self::Bitshuffle => f.write_str("bitshuffle"),
            Self::Delta => f.write_str("delta"),
            Self::TruncPrec(bits) => write!(f, "trunc_prec:{bits}"),
            Self::IntTrunc(bits) => write!(f, "int_trunc:{bits}"),
            Self::Bytedelta(0) => f.write_str("bytedelta"),
            Self::Bytedelta(streams) => write!(f, "bytedelta:{streams}"),
            Self::Ndcell(side) => write!(f, "ndcell:{side}"),
            Self::Ndmean(side) => write!(f, "ndmean:{side}"),
            Self::Other { code, meta } => {
                match closures::filter_name(code) {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "filter {code}")?,
                }
                if meta == 0 { Ok(()) } else { write!(f, ":{meta}") }
            }
        }
    }
}

impl FromStr for Filter {
    type Err = Error;

    /// Parses a name and its parameter, as [`Display`](fmt::Display) writes them: `shuffle`, `bytedelta:4`,
    /// `trunc_prec:-8`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: no filter has this name; the parameter is missing or out of range; or the
    ///   filter has no parameter.
    fn from_str(text: &str) -> Result<Self> {
        let (name, meta) = match text.split_once(':') {
            Some((name, meta)) => (name, Some(meta)),
            None => (text, None),
        };
        let invalid = |expected: &str| {
            let detail = format!("expected {expected}, got `{text}`");
            Error::new(ErrorKind::InvalidArgument, "choose a filter", detail)
        };
        let unsigned = |default: Option<u8>| match meta {
            Some(meta) => meta.parse::<u8>().map_err(|_| invalid("a parameter from 0 to 255")),
            None => default.ok_or_else(|| invalid("a parameter, as in `ndcell:4`")),
        };
        let signed = || match meta {
            Some(meta) => {
                meta.parse::<i8>().map_err(|_| invalid("a number of bits from -128 to 127"))
            }
            None => Err(invalid("a number of bits, as in `trunc_prec:10`")),
        };
        let plain = |filter| match meta {
            None => Ok(filter),
            Some(_) => Err(invalid("no parameter")),
        };
        match name.to_ascii_lowercase().as_str() {
            "shuffle" => Ok(match unsigned(Some(0))? {
                0 => Self::Shuffle,
                bytes => Self::ShuffleBytes(bytes),
            }),
            "bitshuffle" => plain(Self::Bitshuffle),
            "delta" => plain(Self::Delta),
            "trunc_prec" => Ok(Self::TruncPrec(signed()?)),
            "int_trunc" => Ok(Self::IntTrunc(signed()?)),
            "bytedelta" => Ok(Self::Bytedelta(unsigned(Some(0))?)),
            "ndcell" => Ok(Self::Ndcell(unsigned(None)?)),
            "ndmean" => Ok(Self::Ndmean(unsigned(None)?)),
            other => match closures::filter_named(other) {
                Some(code) => Ok(Self::Other { code, meta: unsigned(Some(0))? }),
                None => Err(invalid(&format!("one of {}", NAMES.join(", ")))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives() {
        for code in 1..=255 {
            for meta in [0, 1, 128, 255] {
                let filter = Filter::from_code(code, meta).unwrap();
                assert_eq!((filter.code(), filter.meta()), (code, meta));
            }
        }
        assert_eq!(Filter::from_code(0, 7), None);
    }

    #[test]
    fn names_are_read_back() {
        for name in [
            "shuffle",
            "shuffle:4",
            "bitshuffle",
            "delta",
            "trunc_prec:-8",
            "int_trunc:3",
            "bytedelta",
        ] {
            assert_eq!(name.parse::<Filter>().unwrap().to_string(), name);
        }
        for name in
            ["", "shufle", "shuffle:256", "delta:1", "trunc_prec", "trunc_prec:200", "ndcell"]
        {
            assert!(name.parse::<Filter>().is_err(), "{name}");
        }
    }
}
