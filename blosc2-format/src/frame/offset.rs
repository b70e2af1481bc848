//! Where a chunk is, as the index says it.

use crate::chunk::Special;

/// Bytes of an offset in the index.
pub(crate) const OFFSET_LEN: u64 = 8;
/// The place of a chunk whose offset breaks a rule.
pub(crate) const NOWHERE: u64 = i64::MAX as u64;

/// The highest bytes of the offsets that stand for special values.
const SPECIAL: [(u8, Special); 3] =
    [(0x81, Special::Zeros), (0x82, Special::Nan), (0x84, Special::Uninit)];

/// Where the data of a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Offset {
    /// At this many bytes after the end of the header; in a directory, in the file of this number.
    At(u64),
    /// Nowhere: all of it is the same.
    Special(Special),
}

impl Offset {
    /// Where the chunk is, where it is anywhere.
    pub fn place(self) -> Option<u64> {
        match self {
            Self::At(place) => Some(place),
            Self::Special(_) => None,
        }
    }

    /// What a number of the index means; `None` where it breaks a rule.
    pub(crate) fn of(number: i64) -> Option<Self> {
        match u64::try_from(number) {
            Ok(place) => Some(Self::At(place)),
            Err(_) if number << 8 == 0 => special(number).map(Self::Special),
            Err(_) => None,
        }
    }

    /// The number in the index.
    pub(crate) fn number(self) -> i64 {
        let special = match self {
            // Places were computed here or checked when they were read.
            Self::At(place) => return place as i64,
            // An index has no repeated values; what is uninitialized may hold anything.
            Self::Special(Special::Value) => Special::Uninit,
            Self::Special(special) => special,
        };
        let code = SPECIAL.iter().find(|(_, each)| *each == special).map_or(0, |(code, _)| *code);
        i64::from_be_bytes([code, 0, 0, 0, 0, 0, 0, 0])
    }
}

/// What the highest byte of a negative number of the index stands for.
pub(super) fn special(number: i64) -> Option<Special> {
    let code = number.to_be_bytes()[0];
    SPECIAL.iter().find(|(each, _)| *each == code).map(|(_, special)| *special)
}
