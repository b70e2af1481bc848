//! The reading side of `blosc2` in pure Rust, on top of `blosc2-format`, for builds without the feature `c`.
//!
//! The types have the names and the methods of those in `blosc2` that the readers of this crate use, so that the same
//! readers serve both. Sources are not expected to change while they are open.

mod element;
mod error;
mod ndarray;
mod open;
mod schunk;
mod source;

/// Items of fixed-size types.
pub mod elements {
    pub use super::element::bytes_of;
}

/// Limits of reads.
pub mod limits {
    pub use super::schunk::default_max_read;
}

/// Sources of bytes.
pub mod storage {
    pub use blosc2_format::ReadAt;
    pub use blosc2_format::directory::{Folder, FolderMut, file_version, replace_file};

    pub use super::source::ReadOnly;
}

/// Types that methods of [`SChunk`] return.
pub mod super_chunk {
    pub use super::schunk::{Blocks, ChunkInfo, Metalayers, Revision, SChunkInfo};
}

pub use blosc2_format::chunk::Special;
pub use blosc2_format::value::{ArrayValue, Value};
pub use blosc2_format::{Dtype, Limits, dtype};
pub use element::Element;
pub use error::{Advice, Error, ErrorKind, Result};
pub use ndarray::{ArrayChunk, ArrayInfo, DParams, FromItems, NDArray, RawItems, Selection};
pub use open::{CParams, OpenOptions, Target};
pub use schunk::{SChunk, SChunkReader};
