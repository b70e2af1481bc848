//! Contiguous frames, and the index files of directories, in the versions 2 and 3 of the frame
//! format. C-Blosc2 writes these versions since 2.0.0-rc.1.
//!
//! A frame stores a sequence of chunks and named metadata (metalayers). A contiguous frame consists
//! of:
//!
//! - the header, with the fixed-length metalayers;
//! - the chunks;
//! - the index: a chunk that contains the offsets of the other chunks as little-endian numbers;
//! - the trailer, with the variable-length metalayers.
//!
//! The index file of a [directory](crate::directory) has the same layout without the chunks. In the
//! header and in the trailer, numbers are big-endian, and a type byte (msgpack marker) precedes
//! each number.
//!
//! ```
//! use blosc2_format::frame::{Header, MIN_HEADER_LEN};
//!
//! assert!(Header::parse(b"some text, which is no frame").is_err());
//! assert_eq!(MIN_HEADER_LEN, 87);
//! ```

mod blocks;
mod change;
pub(crate) mod check;
mod checksums;
pub(crate) mod field;
mod files;
mod gaps;
mod header;
pub(crate) mod index;
mod index_entry;
mod integrity;
pub mod journal;
mod metalayer;
pub(crate) mod offset;
mod offsets;
pub(crate) mod outline;
pub(crate) mod parts;
mod read;
pub(crate) mod rules;
mod salvage;
mod section;
mod space;
mod span;
mod suspect;
#[cfg(test)]
mod tests;
mod write;

pub use blocks::BlockReader;
pub use change::{Sizes, Slot, Stores};
pub use check::check;
pub(crate) use check::check_into;
pub use checksums::checksum;
pub use field::MIN_HEADER_LEN;
pub use gaps::Move;
pub use header::{
    ChunkSize, Header, Layout, MAX_VERSION, MIN_TRAILER_LEN, MIN_VERSION, check_trailer,
};
pub use metalayer::Metalayer;
pub use offset::Offset;
pub use offsets::IndexPatch;
pub use outline::{Outline, SEARCH_INDEXES};
pub use read::Frame;
pub use salvage::{IntactChunk, Order, Piece, Salvaged, salvage, salvage_directory};
pub use section::{MAX_METALAYERS, MAX_NAME_LEN, MAX_VLMETALAYERS};
pub use write::Writer;
