#![doc = include_str!("../README.md")]
//!
//! # Where to start
//! - The [guide](guide): [quick start](guide::quick_start), [arrays](guide::arrays), [compute](guide::compute),
//!   [super-chunks](guide::super_chunks), [files and locking](guide::files), [threads](guide::threads),
//!   [performance](guide::performance), complete [examples](guide::examples).
//! - How do I ...? The [FAQ](guide::faq).
//! - How do I translate a call of [python-blosc2](guide::from_python), [C-Blosc2](guide::from_c) or [other
//!   crates](guide::from_rust)? The search of this documentation also finds the C and Python names.
//!
//! # Overview
//! The section [Terms](#terms) below defines the words of this table.
//!
//! | task | types |
//! |---|---|
//! | store arrays | [`NDArray`], [`NDArrayBuilder`]; to select items: [`Selection`], [`NDArrayView`]; to append rows: [`Appender`]; further types: module [`mod@array`] |
//! | compute with arrays: reductions, elementwise operations, selection of items that satisfy a condition | [`NDArray::lazy`], module [`compute`], [`guide::compute`] |
//! | store chunks and metadata | [`SChunk`], [`Target`], [`OpenOptions`], [`SaveOptions`]; metalayers and further types: module [`super_chunk`] |
//! | compress one buffer | [`compress`], [`decompress`], [`Chunk`] |
//! | compress many buffers | [`Compressor`], [`Decompressor`], one for each thread |
//! | set codec, filters, level and threads | [`CParams`], [`Codec`], [`Filter`], [`DParams`], [`Threads`] |
//! | stream data of any length | [`SChunkWriter`], [`SChunkReader`] |
//! | choose the item type | [`Element`], [`elements`], [`Dtype`] |
//! | read and write Python's metadata | `Value` (feature `msgpack`) |
//! | store frames in a custom backend or a memory-mapped file | [`storage`] |
//! | convert from or to `.npy` files | [`npy`] |
//! | open untrusted input | [`Check`], [`Limits`], [`guide::untrusted_input`] |
//! | repair damaged files | [`repair`] |
//! | define codecs, filters and tuners | [`user_defined`], [`guide::user_defined`] |
//! | query the version and the codecs of the C library | [`library`] |
//! | shuffle or bitshuffle a buffer without compression | [`raw`] |
//!
//! The crate `blosc2-store` provides Python's containers (`TreeStore`, `CTable` and others). The crate `blosc2-format`
//! implements the storage formats in pure Rust.
//!
//! # Terms
#![doc = include_str!("../guide/terms.md")]
//!
//! # Features
//! | feature | default | what it adds |
//! |---|---|---|
//! | `zstd` | yes | the Zstandard codec, Python's default |
//! | `zlib` | yes | the zlib codec |
//! | `derive` | no | `#[derive(Element)]` for structs |
//! | `msgpack` | no | reads and writes the MessagePack values that Python stores in metalayers and chunks: as the type `Value`, or as types that implement the traits of serde |
//! | `ndarray` | no | reads and writes arrays and views of the crate `ndarray`; accepts its `s![...]` as a selection |
//! | `half`, `num-complex` | no | `f16` and complex numbers as items |
//! | `dynamic-plugins` | no | codecs from plugins (shared libraries), which the program loads with `Codec::load_plugin` |
//! | `zlib-ng` | no | the zlib codec, implemented by zlib-ng; needs cmake |
//! | `zfp` | no | the ZFP codecs; needs cmake and libclang |
//! | `system` | no | links an installed C-Blosc2 3.3 instead of building one |
//! | `bindgen` | no | generates the C declarations at build time; needs libclang |
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bytes;
mod chunk;
mod closures;
mod codec;
pub mod compute;
mod error;
mod gate;
#[cfg(any(doc, doctest))]
pub mod guide;
mod item;
pub mod limits;
mod ndarray;
mod schunk;
mod support;

/// Types that methods of [`NDArray`] and [`NDArrayBuilder`] accept or return: what reads return and
/// writes copy from, chunks, blocks, rows, shapes, indices, number types and cache sizes.
///
/// A [`Geometry`](array::Geometry) contains the shape, chunk shape and block shape of an array. User-defined codecs and
/// filters, prefilters and postfilters receive the geometry of the array that contains the chunk.
pub mod array {
    pub use blosc2_format::b2nd::{Axis, Geometry};

    pub use crate::ndarray::{
        Arithmetic, ArrayChunk, ArrayInfo, AxisIndex, CacheSizes, FromItems, IndexedShape,
        ItemBuffer, ItemSource, Number, PerAxis, from_python_object,
    };
}

/// Arrays from and to files in NumPy's `.npy` format.
pub mod npy {
    pub use crate::ndarray::npy::{read, write};
}

/// The C library in use: its version, codecs and instruction set.
pub mod library {
    pub use crate::chunk::info::{c_version, codecs, instruction_set};
    pub use crate::closures::Library;
    pub use crate::error::error_text;
}

/// Repair of files: rolls back or completes unfinished changes, and rebuilds damaged frames from their intact parts.
pub mod repair {
    pub use crate::schunk::{Rebuilt, Repaired, repair, repair_to};
}

/// Custom storage: the traits of storage backends, types that implement these traits, partial reads of single chunks,
/// and new files that appear when they are complete.
pub mod storage {
    /// Examples on this page may import from `blosc2_format`: the crate `blosc2` re-exports the same items. Errors are
    /// [`std::io::Error`].
    #[doc(inline)]
    pub use blosc2_format::ReadAt;
    /// Examples on this page may import from `blosc2_format`: the crate `blosc2` re-exports the same items.
    #[doc(inline)]
    pub use blosc2_format::directory::{Folder, FolderMut, file_version, is_in_use, replace_file};

    pub use crate::bytes::{MappedFile, ReadOnly, Seekable, Storage};
    pub use crate::chunk::partial::PartialRead;
    pub use crate::schunk::{create_file, temporary_prefix};
}

/// Types that methods of [`SChunk`] accept or return: metalayers and chunks.
pub mod super_chunk {
    pub use crate::schunk::{
        ChunkInfo, ChunkSource, Metalayers, MetalayersMut, Revision, SChunkInfo, VariableBlocks,
    };
    pub use blosc2_format::frame::SEARCH_INDEXES;
}

/// User-defined codecs, filters and tuners, and the blocks that filters, prefilters and postfilters receive.
pub mod user_defined {
    pub use crate::closures::{
        BoxError, ChunkBlock, CodecInfo, FilterBlock, TunerInput, TunerOutcome, UserCodec,
        UserFilter, UserTuner,
    };
    #[cfg(feature = "dynamic-plugins")]
    pub use crate::codec::plugins::PluginParams;
}

/// Examples on this page may import from `blosc2_format`: the crate `blosc2` re-exports the same items.
#[doc(inline)]
pub use blosc2_format::chunk::{Special, SplitMode};
/// Examples on this page may import from `blosc2_format`: the crate `blosc2` re-exports the same items.
/// [`Metalayers::value`](super_chunk::Metalayers::value) and
/// [`MetalayersMut::set_value`](super_chunk::MetalayersMut::set_value) read and write values. This item needs the
/// feature `msgpack`.
#[cfg(feature = "msgpack")]
#[doc(inline)]
pub use blosc2_format::value::{ArrayValue, Value};
/// Examples on this page may import from `blosc2_format`: the crate `blosc2` re-exports the same items.
#[doc(inline)]
pub use blosc2_format::{Dtype, Limits, dtype};
pub use chunk::blocks::Blocks;
pub use chunk::check::Check;
pub use chunk::compressor::{Compressor, compress, compress_bound};
pub use chunk::decompressor::{Decompressor, decompress};
pub use chunk::raw;
pub use chunk::suggest::{Aim, Measured};
pub use chunk::{Chunk, ChunkBytes, ChunkRef};
pub use codec::Codec;
pub use codec::filter::Filter;
pub use codec::settings::{CParams, DParams, Threads, Tuner};
pub use error::{Advice, Error, ErrorKind, Exceeded, Limit, Result};
use error::{Doing, Reason};
#[cfg(feature = "derive")]
pub use item::derive::Element;
pub use item::element::Element;
pub use item::elements;
pub use ndarray::{
    Appender, AxisSelection, NDArray, NDArrayBuilder, NDArrayView, RawItems, Selection,
};
pub use schunk::{OpenOptions, SChunk, SChunkReader, SChunkWriter, SaveOptions, Target};
