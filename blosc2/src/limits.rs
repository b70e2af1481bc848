//! The limits of the formats and of C-Blosc2.
//!
//! What untrusted input may make a program allocate is another matter: see [`Limits`](crate::Limits) and
//! [`OpenOptions::max_read`](crate::OpenOptions::max_read).

use std::ops::RangeInclusive;

pub use blosc2_format::b2nd::MAX_NDIM;
pub use blosc2_format::chunk::MAX_FILTERS;
pub use blosc2_format::frame::{MAX_METALAYERS, MAX_NAME_LEN, MAX_VLMETALAYERS};

pub use crate::params::{MAX_CHUNK_LEN, MAX_TYPESIZE};

/// The codes of user-defined codecs, filters and tuners. C's `BLOSC2_USER_REGISTERED_*_START` and `_STOP`.
pub const USER_CODES: RangeInclusive<u8> = 160..=255;
