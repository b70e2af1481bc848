//! Streams: reading and writing the data of a contiguous frame (one file with chunks and metadata) with the traits of
//! `std::io`.
//!
//! Files with the extension `.b2frame` are contiguous frames. C-Blosc2, Python's `blosc2.open` and
//! [`SChunk::open`](crate::SChunk::open) read the frames of a [`FrameWriter`]. A [`FrameReader`] reads the frames of
//! C-Blosc2, Python and [`SChunk`](crate::SChunk).

mod reader;
mod writer;

pub use reader::FrameReader;
pub use writer::FrameWriter;
