//! The entries of the index: positions and special values.

use crate::chunk::Special;

/// The size of an index entry, in bytes.
pub(crate) const OFFSET_LEN: u64 = 8;
/// The position of a chunk whose offset violates a rule.
pub(crate) const NOWHERE: u64 = i64::MAX as u64;

/// The highest byte of the entries that represent special values.
const SPECIAL: [(u8, Special); 3] =
    [(0x81, Special::Zeros), (0x82, Special::Nan), (0x84, Special::Uninit)];

/// The location of the data of a chunk, as the index of a frame states it.
///
/// ```
/// use blosc2_format::chunk::Special;
/// use blosc2_format::frame::Offset;
///
/// assert_eq!(Offset::At(64).place(), Some(64));
/// assert_eq!(Offset::Special(Special::Zeros).place(), None);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offset {
    /// The position in bytes, from the end of the header. In a directory, the file number.
    At(u64),
    /// The chunk is special (constant), and only the index records its value.
    Special(Special),
}

impl Offset {
    /// Returns the position of the data, or `None` for special chunks.
    pub fn place(self) -> Option<u64> {
        match self {
            Self::At(place) => Some(place),
            Self::Special(_) => None,
        }
    }

    /// Returns the meaning of an entry of the index, or `None` if it violates a rule.
    #[inline]
    pub(crate) fn of(number: i64) -> Option<Self> {
        match u64::try_from(number) {
            Ok(place) => Some(Self::At(place)),
            Err(_) if number << 8 == 0 => special(number).map(Self::Special),
            Err(_) => None,
        }
    }

    /// Returns the entry of the index.
    pub(crate) fn number(self) -> i64 {
        let special = match self {
            // Positions were computed here, or checked when they were read.
            Self::At(place) => return place as i64,
            // An index cannot express repeated values; uninitialized data can have any value.
            Self::Special(Special::Value) => Special::Uninit,
            Self::Special(special) => special,
        };
        let code = SPECIAL.iter().find(|(_, each)| *each == special).map_or(0, |(code, _)| *code);
        i64::from_be_bytes([code, 0, 0, 0, 0, 0, 0, 0])
    }
}

/// Returns the special value that the highest byte of a negative entry represents.
pub(super) fn special(number: i64) -> Option<Special> {
    let code = number.to_be_bytes()[0];
    SPECIAL.iter().find(|(each, _)| *each == code).map(|(_, special)| *special)
}
