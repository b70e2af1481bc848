#![doc = include_str!("../README.md")]
//!
//! # Where things are
//! - [`compress`] and [`decompress`]: one buffer, one chunk;
//! - [`Chunk`], [`Compressor`], [`Decompressor`]: all that can be done with chunks, and their parts;
//! - [`SChunk`]: many chunks, in memory or in a file;
//! - [`NDArray`]: an n-dimensional array;
//! - [`FrameWriter`] and [`FrameReader`]: data of any length, by the traits of `std::io`;
//! - [`CParams`], [`Codec`], [`Filter`]: how data is compressed;
//! - [`Codec::register`], [`Filter::register`], [`Tuner::register`], [`Compressor::with_prefilter`],
//!   [`Decompressor::with_postfilter`]: code of your own inside the pipeline;
//! - [`raw`]: shuffle and bitshuffle alone;
//! - [`c_version`], [`codecs`], [`instruction_set`]: what the C library in use is and has.

mod blocks;
mod chunk;
mod claim;
mod closures;
mod codec;
mod compressor;
mod context;
mod decodable;
mod decoder;
mod decompressor;
mod element;
mod encoder;
mod environment;
mod error;
mod filter;
mod fork;
mod info;
mod init;
mod memory;
mod metalayers;
mod ndarray;
mod params;
mod plugins;
pub mod raw;
mod schunk;
mod special;
mod storage;
mod stream;

pub use blocks::Blocks;
pub use chunk::{Chunk, ChunkBytes, ChunkRef, Special, Validation};
pub use closures::{
    BoxError, ChunkBlock, CodecInfo, FilterBlock, Tune, Tuner, TunerInput, TunerOutcome, UserCodec,
    UserFilter,
};
pub use codec::Codec;
pub use compressor::{Compressor, compress, compress_bound};
pub use decompressor::{Decompressor, decompress};
pub use element::Element;
pub use error::{Error, ErrorKind, Result, error_text};
pub use filter::Filter;
pub use info::{Library, c_version, codecs, instruction_set};
pub use metalayers::Metalayers;
pub use ndarray::{NDArray, NDArrayBuilder};
pub use params::{CParams, DParams, MAX_CHUNK_LEN, MAX_TYPESIZE, SplitMode, Threads};
pub use schunk::{Chunks, FileFormat, SChunk};
pub use stream::{FrameReader, FrameWriter};
