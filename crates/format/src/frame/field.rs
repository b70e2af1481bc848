//! The fields of the header of a frame: their positions and their msgpack markers.

use crate::report::{Checker, Rule};

/// The size of the fixed part of the header, in bytes.
pub const MIN_HEADER_LEN: usize = 87;

/// A range of bytes of the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) at: usize,
    pub(crate) len: usize,
}

const fn field(at: usize, len: usize) -> Field {
    Field { at, len }
}

pub(crate) const HEADER_LEN: Field = field(0x0b, 4);
pub(crate) const FRAME_LEN: Field = field(0x10, 8);
/// The version, the size of offsets, variable-size chunks, variable-length blocks.
pub(crate) const FLAGS: Field = field(0x19, 1);
pub(crate) const LAYOUT: Field = field(0x1a, 1);
/// The codec and the compression level.
pub(crate) const CODEC: Field = field(0x1b, 1);
pub(crate) const SPLIT: Field = field(0x1c, 1);
pub(crate) const NBYTES: Field = field(0x1e, 8);
pub(crate) const CBYTES: Field = field(0x27, 8);
pub(crate) const TYPESIZE: Field = field(0x30, 4);
pub(crate) const BLOCKSIZE: Field = field(0x35, 4);
pub(crate) const CHUNKSIZE: Field = field(0x3a, 4);
/// The numbers of threads for compression and decompression.
pub(crate) const THREADS: [Field; 2] = [field(0x3f, 2), field(0x42, 2)];
pub(crate) const HAS_VLMETA: Field = field(0x44, 1);
pub(crate) const FILTER_SLOTS: Field = field(0x46, 1);
pub(crate) const FILTERS: Field = field(0x47, 6);
pub(crate) const USER_CODEC: Field = field(0x4d, 1);
pub(crate) const CODEC_META: Field = field(0x4e, 1);
pub(crate) const FILTERS_META: Field = field(0x4f, 6);
/// Whether the chunks use dictionaries.
pub(crate) const MORE_FLAGS: Field = field(0x55, 1);
pub(crate) const RESERVED: Field = field(0x56, 1);
/// The number of metalayers, with its marker.
pub(crate) const METALAYERS: Field = field(0x5b, 3);

/// The markers that have fixed values, and the name of the format.
pub(crate) const MARKERS: [(usize, u8); 13] = [
    (0x00, 0x9e),
    (0x0a, 0xd2),
    (0x0f, 0xcf),
    (0x18, 0xa4),
    (0x1d, 0xd3),
    (0x26, 0xd3),
    (0x2f, 0xd2),
    (0x34, 0xd2),
    (0x39, 0xd2),
    (0x3e, 0xd1),
    (0x41, 0xd1),
    (0x45, 0xd8),
    (FILTER_SLOTS.at, 6),
];
pub(crate) const NAME: Field = field(1, 9);
pub(crate) const NAME_BYTES: &[u8; NAME.len] = b"\xa8b2frame\0";
/// The value of [`HAS_VLMETA`], which is itself a marker.
pub(crate) const NO: u8 = 0xc2;
pub(crate) const YES: u8 = 0xc3;

impl Field {
    /// Returns its bytes; `N` is its length.
    pub(crate) fn bytes<const N: usize>(self, head: &[u8; MIN_HEADER_LEN]) -> [u8; N] {
        debug_assert_eq!(N, self.len, "the field at {:#x}", self.at);
        std::array::from_fn(|byte| head[self.at + byte])
    }

    /// Returns its only byte.
    pub(crate) fn byte(self, head: &[u8; MIN_HEADER_LEN]) -> u8 {
        head[self.at]
    }

    /// Writes its bytes.
    pub(crate) fn put(self, head: &mut [u8], bytes: &[u8]) {
        head[self.at..self.at + self.len].copy_from_slice(bytes);
    }

    /// Reports to `checker` that the field violates a rule.
    pub(crate) fn found(
        self,
        checker: &mut Checker<'_>,
        rule: &'static Rule,
        expected: impl ToString,
        found: impl ToString,
    ) {
        checker.found(rule, self.at as u64, self.len as u64, expected, found);
    }
}
