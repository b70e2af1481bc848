#![doc = include_str!("../README.md")]
//!
//! # Where things are
//! | to | use |
//! |---|---|
//! | compress one buffer | [`compress`], [`decompress`]; many: [`Compressor`], [`Decompressor`], one for each thread |
//! | look into a compressed chunk | [`Chunk`], [`ChunkRef`] |
//! | choose how data is compressed | [`CParams`], [`Codec`], [`Filter`], [`DParams`] |
//! | store arrays | [`NDArray`], [`NDArrayBuilder`]; rows one by one: [`Appender`]; parts: [`Selection`], [`NDArrayView`], [`mod@array`] |
//! | store many chunks, in memory or in a file | [`SChunk`], [`OpenOptions`], [`SaveOptions`]; metalayers and the rest: [`super_chunk`] |
//! | stream data of any length | [`FrameWriter`], [`FrameReader`], by the traits of `std::io` |
//! | give items a type | [`Element`], [`elements`], [`Dtype`] |
//! | write values to metalayers, as Python does | `Value` (feature `msgpack`) |
//! | keep frames elsewhere | [`storage`]: custom storage backends, mapped files |
//! | open untrusted input, repair damaged files | [`Check`], [`Limits`], [`repair`] |
//! | run own code in the pipeline | [`user_defined`], [`Codec::register`], [`Filter::register`], [`Tuner::register`] |
//! | see what the C library has | [`library`] |
//! | shuffle and bitshuffle alone | [`raw`] |
//!
//! The names of C-Blosc2 and Python are found by the search of this documentation. Containers of Python's
//! (`TreeStore`, `CTable` and others) are in the crate `blosc2-store`, the formats in pure Rust in `blosc2-format`.

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

/// What comes with [`NDArray`]: its builder's options, parts of it, and the traits of shapes and items.
pub mod array {
    pub use blosc2_format::b2nd::Geometry;

    pub use crate::ndarray::{
        Arithmetic, ArrayBlock, ArrayChunk, ArrayInfo, AxisIndex, CacheSizes, NDArrayBytes,
        NDArrayBytesMut, NDArrayField, NDArrayFieldMut, Number, PerAxis, Rows,
    };
}

/// What the C library in use is, and what it has.
pub mod library {
    pub use crate::closures::Library;
    pub use crate::error::error_text;
    pub use crate::info::{c_version, codecs, instruction_set};
}

/// Rolling back what a stopped writer left, and rebuilding damaged frames.
pub mod repair {
    pub use crate::schunk::{Rebuilt, Repaired, repair, repair_to};
}

/// Where frames are kept: the traits of custom storage backends, and what implements them.
pub mod storage {
    pub use blosc2_format::ReadAt;
    pub use blosc2_format::directory::{Folder, FolderMut};

    pub use crate::bytes::{MappedFile, ReadOnly, Seekable, Storage};
}

/// What comes with [`SChunk`]: its metalayers, its content as items and as a stream, and what its chunks are like.
pub mod super_chunk {
    pub use crate::schunk::{
        ChunkInfo, Chunks, FileFormat, Items, LazyChunk, Metalayers, MetalayersMut, SChunkInfo,
        SChunkReader, SChunkWriter,
    };
}

/// User-defined codecs, filters and tuners, and what prefilters and postfilters receive.
pub mod user_defined {
    pub use crate::closures::{
        BoxError, ChunkBlock, CodecInfo, FilterBlock, TunerInput, TunerOutcome, UserCodec,
        UserFilter, UserTuner,
    };
    #[cfg(feature = "dynamic-plugins")]
    pub use crate::plugins::PluginParams;
}

pub use blocks::Blocks;
pub use blosc2_format::{Dtype, Limits, dtype};
pub use check::Check;
pub use chunk::{Chunk, ChunkBytes, ChunkRef, Special};
pub use codec::Codec;
pub use compressor::{Compressor, compress, compress_bound};
pub use decompressor::{Decompressor, decompress};
#[cfg(feature = "derive")]
pub use derive::Element;
pub use element::Element;
pub use error::{Error, ErrorKind, Result};
pub use filter::Filter;
pub use ndarray::{Appender, AxisSelection, NDArray, NDArrayBuilder, NDArrayView, Selection};
pub use schunk::{OpenOptions, SChunk, SaveOptions};
pub use settings::{CParams, DParams, SplitMode, Threads, Tuner};
pub use stream::{FrameReader, FrameWriter};
#[cfg(feature = "msgpack")]
pub use value::{ArrayValue, Value};
