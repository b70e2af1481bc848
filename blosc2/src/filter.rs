//! The transformations that run before compression.

use std::fmt;
use std::str::FromStr;

use blosc2_sys as sys;

use crate::closures::UserFilter;
use crate::init::init;
use crate::{Error, ErrorKind, Result, closures, installed};

/// A filter with its parameter, by its code in the formats.
///
/// Filters do not touch data that is stored as it is: at level 0, of less than 32 bytes, or where
/// compression gains nothing. Then the lossy ones lose nothing either.
///
/// Filters without a name here are kept as [`Filter::Other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Filter {
    /// Groups the first bytes of all items, then the second ones, and so on.
    Shuffle,
    /// The same for groups of this many bytes (1 to 255) instead of the typesize.
    ShuffleBytes(u8),
    /// Groups bits instead of bytes.
    Bitshuffle,
    /// Exclusive or with the block's first items, or with the first block. Has to be the first filter.
    Delta,
    /// Clears bits of the mantissa of `f32` or `f64` items: keeps so many when positive, clears so
    /// many when negative. Lossy.
    TruncPrec(i8),
    /// Clears low bits of integers of 1, 2, 4 or 8 bytes: keeps so many when positive, clears so many
    /// when negative. Lossy.
    IntTrunc(i8),
    /// Differences of neighbouring bytes in each byte stream; after a shuffle. The parameter is the
    /// number of streams, 0 the typesize.
    ByteDelta(u8),
    /// Groups the cells of an array, of this side; for arrays only.
    NdCell(u8),
    /// Replaces the cells of an array of floats by their mean, of this side; lossy, for arrays only.
    NdMean(u8),
    /// Any other code, with its parameter.
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

/// The names of those that are always there.
const NAMES: [&str; 8] =
    ["shuffle", "bitshuffle", "delta", "trunc_prec", "int_trunc", "bytedelta", "ndcell", "ndmean"];

impl Filter {
    /// The filter of a code and its parameter; `None` for code 0, an empty slot.
    pub fn from_code(code: u8, meta: u8) -> Option<Self> {
        Some(match (code, meta) {
            (0, _) => return None,
            (SHUFFLE, 0) => Self::Shuffle,
            (SHUFFLE, bytes) => Self::ShuffleBytes(bytes),
            (BITSHUFFLE, 0) => Self::Bitshuffle,
            (DELTA, 0) => Self::Delta,
            (TRUNC_PREC, bits) => Self::TruncPrec(bits as i8),
            (INT_TRUNC, bits) => Self::IntTrunc(bits as i8),
            (BYTEDELTA, streams) => Self::ByteDelta(streams),
            (NDCELL, side) => Self::NdCell(side),
            (NDMEAN, side) => Self::NdMean(side),
            (code, meta) => Self::Other { code, meta },
        })
    }

    /// The filters of the slots of a header, empty ones left out.
    pub(crate) fn of_slots(codes: &[u8], metas: &[u8]) -> impl Iterator<Item = Self> + Clone {
        let slots = codes.iter().zip(metas);
        slots.filter_map(|(&code, &meta)| Self::from_code(code, meta))
    }

    /// Makes a filter of one's own available under a code, 160 to 255, until the program ends.
    ///
    /// Chunks keep the code, and whoever reads them has to register the same filter. The filter that
    /// this gives has the parameter 0; for another one write `Filter::Other { code, meta }`. C's
    /// `blosc2_register_filter`, Python's `register_filter`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: another code, or a name that is empty, a number, or has a colon;
    /// - [`ErrorKind::AlreadyExists`]: the code or the name is taken.
    ///
    /// ```
    /// use blosc2::user_defined::{BoxError, FilterBlock};
    /// use blosc2::{CParams, Filter};
    ///
    /// /// The differences of neighbouring items.
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

    /// The code in the formats.
    pub fn code(self) -> u8 {
        self.code_and_meta().0
    }

    /// The parameter in the formats; signed ones as two's complement.
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
            Self::ByteDelta(streams) => (BYTEDELTA, streams),
            Self::NdCell(side) => (NDCELL, side),
            Self::NdMean(side) => (NDMEAN, side),
            Self::Other { code, meta } => (code, meta),
        }
    }

    /// Whether this build, or the program, has it.
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

    /// Whether it needs the shape of an array, so that it works in an array only.
    pub(crate) fn needs_array(self) -> bool {
        matches!(self.code(), NDCELL | NDMEAN)
    }

    /// Whether it leaves the bytes after the last whole item as they were in scratch memory, so
    /// that only whole items may be given to it (delta.c, trunc-prec.c, int_trunc.c).
    pub(crate) fn needs_whole_items(self) -> bool {
        matches!(self.code(), DELTA | TRUNC_PREC | INT_TRUNC | NDCELL | NDMEAN)
    }

    /// What stands against compressing items of this size with it, if anything does.
    pub(crate) fn objection(self, typesize: usize) -> Option<String> {
        if self.code() == BYTEDELTA_BUGGY {
            return Some(format!("{self} is a broken bytedelta, kept to read old files"));
        }
        if !is_available(self.code()) {
            return Some(format!("{self} is not in this build"));
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
                    .then(|| format!("{self} keeps {kept} bits of a mantissa of {mantissa}"))
            }
            Self::IntTrunc(bits) => {
                if !matches!(typesize, 1 | 2 | 4 | 8) {
                    let message = "needs a typesize of 1, 2, 4 or 8, got";
                    return Some(format!("{self} {message} {typesize}"));
                }
                let width = typesize as i32 * 8;
                let kept = if bits >= 0 { i32::from(bits) } else { width + i32::from(bits) };
                (kept < 1 || kept > width)
                    .then(|| format!("{self} keeps {kept} bits of an integer of {width}"))
            }
            Self::ByteDelta(0) if typesize > 255 => {
                Some(format!("{self} needs a typesize of at most 255, got {typesize}"))
            }
            _ => None,
        }
    }
}

/// Whether this build can undo the filter of this code.
pub(crate) fn is_available(code: u8) -> bool {
    matches!(
        code,
        SHUFFLE
            | BITSHUFFLE
            | DELTA
            | TRUNC_PREC
            | NDCELL
            | BYTEDELTA_BUGGY
            | BYTEDELTA
            | INT_TRUNC
    ) || (code == NDMEAN && !installed::MISPLACES_NDMEAN)
        || closures::is_filter(code)
}

/// Whether a filter leaves the end of a block of `len` bytes unwritten when it is undone: the first
/// bytedelta did so when its streams do not divide the block (bytedelta.c).
pub(crate) fn leaves_rest_unwritten(code: u8, meta: u8, typesize: u32, len: u32) -> bool {
    let streams = if meta == 0 { typesize } else { meta.into() };
    code == BYTEDELTA_BUGGY && !len.is_multiple_of(streams)
}

/// Whether it is bytedelta, of today or the first one.
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
            Self::ByteDelta(0) => f.write_str("bytedelta"),
            Self::ByteDelta(streams) => write!(f, "bytedelta:{streams}"),
            Self::NdCell(side) => write!(f, "ndcell:{side}"),
            Self::NdMean(side) => write!(f, "ndmean:{side}"),
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

    /// Reads what [`Display`](fmt::Display) writes: `shuffle`, `bytedelta:4`, `trunc_prec:-8`.
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
            Some(meta) => meta.parse::<u8>().map_err(|_| invalid("a number from 0 to 255")),
            None => default.ok_or_else(|| invalid("a parameter, as in `ndcell:4`")),
        };
        let signed = || match meta {
            Some(meta) => meta.parse::<i8>().map_err(|_| invalid("a number from -128 to 127")),
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
            "bytedelta" => Ok(Self::ByteDelta(unsigned(Some(0))?)),
            "ndcell" => Ok(Self::NdCell(unsigned(None)?)),
            "ndmean" => Ok(Self::NdMean(unsigned(None)?)),
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
