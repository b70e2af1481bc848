//! Streams: reading and writing the data of a contiguous frame (one file with chunks and metadata) with the traits of
//! `std::io`.
//!
//! Files with the extension `.b2frame` are contiguous frames. [`FrameWriter`] and [`FrameReader`] are compatible with
//! C-Blosc2, with Python's `blosc2.open` and with [`SChunk::open`](crate::SChunk::open): each of them reads the frames
//! of the others.

mod reader;
mod writer;

pub use reader::FrameReader;
pub use writer::FrameWriter;
