#![doc = include_str!("../README.md")]
//!
//! # Where things are
//! - [`compress`] and [`decompress`]: one buffer, one chunk;
//! - [`Chunk`], [`Compressor`], [`Decompressor`]: all that can be done with chunks, and their parts;
//! - [`SChunk`]: many chunks, in memory or in a file;
//! - [`Storage`], [`FolderMut`]: where those can be kept, also a place of your own;
//! - [`NDArray`]: an n-dimensional array;
//! - [`FrameWriter`] and [`FrameReader`]: data of any length, by the traits of `std::io`;
//! - [`CParams`], [`Codec`], [`Filter`]: how data is compressed;
//! - [`Codec::register`], [`Filter::register`], [`Tuner::register`], [`Compressor::with_prefilter`],
//!   [`Decompressor::with_postfilter`]: code of your own inside the pipeline;
//! - [`raw`]: shuffle and bitshuffle alone;
//! - [`c_version`], [`codecs`], [`instruction_set`]: what the C library in use is and has.

mod array_shape;
mod blocks;
mod bytes;
mod check;
mod chunk;
mod closures;
mod codec;
mod compressor;
mod context;
mod decodable;
mod decoder;
mod decompressor;
#[cfg(feature = "derive")]
mod derive;
mod element;
pub mod elements;
mod encoder;
mod environment;
mod error;
mod filter;
mod fork;
mod gate;
mod info;
mod init;
mod installed;
pub mod limits;
mod memory;
mod ndarray;
mod params;
mod partial;
mod plugins;
pub mod raw;
mod schunk;
mod settings;
mod special;
mod stream;
#[cfg(feature = "msgpack")]
mod value;

pub use blocks::Blocks;
pub use blosc2_format::b2nd::Geometry;
pub use blosc2_format::directory::{Folder, FolderMut};
pub use blosc2_format::{Dtype, Limits, ReadAt, dtype};
pub use bytes::{MappedFile, ReadOnly, Seekable, Storage};
pub use check::Check;
pub use chunk::{Chunk, ChunkBytes, ChunkRef, Special};
pub use closures::{
    BoxError, ChunkBlock, CodecInfo, FilterBlock, Library, TunerInput, TunerOutcome, UserCodec,
    UserFilter, UserTuner,
};
pub use codec::Codec;
pub use compressor::{Compressor, compress, compress_bound};
pub use decompressor::{Decompressor, decompress};
#[cfg(feature = "derive")]
pub use derive::Element;
pub use element::{Element, ElementField, ElementLayout};
pub use error::{Error, ErrorKind, Result, error_text};
pub use filter::Filter;
pub use info::{c_version, codecs, instruction_set};
pub use ndarray::{
    Appender, Arithmetic, ArrayBlock, ArrayChunk, ArrayInfo, AxisIndex, AxisSelection, CacheSizes,
    NDArray, NDArrayBuilder, NDArrayBytes, NDArrayBytesMut, NDArrayField, NDArrayFieldMut,
    NDArrayView, Number, PerAxis, Rows, Selection,
};
#[cfg(feature = "dynamic-plugins")]
pub use plugins::PluginParams;
pub use schunk::{
    ChunkInfo, Chunks, FileFormat, Items, LazyChunk, Metalayers, MetalayersMut, OpenOptions,
    Rebuilt, Repaired, SChunk, SChunkInfo, SChunkReader, SChunkWriter, SaveOptions, repair,
    repair_to,
};
pub use settings::{CParams, DParams, SplitMode, Threads, Tuner};
pub use stream::{FrameReader, FrameWriter};
#[cfg(feature = "msgpack")]
pub use value::{ArrayValue, Value};
