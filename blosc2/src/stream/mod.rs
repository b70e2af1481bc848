//! Streams: reading and writing the data of a contiguous frame with the traits of `std::io`.
//!
//! Files with the extension `.b2frame` are contiguous frames. C-Blosc2, Python's `blosc2.open` and
//! [`SChunk::open`](crate::SChunk::open) read the frames that a [`FrameWriter`] writes, and a [`FrameReader`] reads the
//! frames that they write.

mod reader;
mod writer;

pub use reader::FrameReader;
pub use writer::FrameWriter;
