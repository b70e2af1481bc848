//! Data of any length through chunks, by the traits of `std::io`.
//!
//! The format is a contiguous frame, which is what `.b2frame` files hold: C-Blosc2, Python's
//! `blosc2.open` and [`SChunk::open`](crate::SChunk::open) read what a [`FrameWriter`] writes, and a
//! [`FrameReader`] reads what they write.

mod reader;
mod writer;

pub use reader::FrameReader;
pub use writer::FrameWriter;
