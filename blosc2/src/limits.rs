//! The limits of the formats and of C-Blosc2.
//!
//! A program can also limit the memory that is allocated for untrusted input: with [`Limits`](crate::Limits) and
//! [`OpenOptions::max_read`](crate::OpenOptions::max_read).

pub use blosc2_format::b2nd::MAX_NDIM;
pub use blosc2_format::chunk::MAX_FILTERS;
pub use blosc2_format::frame::{MAX_METALAYERS, MAX_NAME_LEN, MAX_VLMETALAYERS};

pub use crate::closures::USER_CODES;
pub use crate::codec::params::{MAX_CHUNK_LEN, MAX_TYPESIZE};
pub use crate::schunk::default_max_read;
