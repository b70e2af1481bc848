//! The rules of the metalayer.

use crate::report::Rule;

const SECTION: &str = "b2nd";

pub(crate) const LENGTH: Rule = Rule::error("b2nd.length", "content of the metalayer", SECTION);
pub(crate) const ARRAY: Rule = Rule::warning("b2nd.array", "marker of the array", SECTION);
pub(crate) const VERSION: Rule = Rule::warning("b2nd.version", "version", SECTION);
pub(crate) const NDIM: Rule = Rule::error("b2nd.ndim", "number of dimensions", SECTION);
pub(crate) const SHAPE_MARKER: Rule =
    Rule::warning("b2nd.shape_marker", "marker of a shape", SECTION);
pub(crate) const SIXTEEN: Rule =
    Rule::note("b2nd.sixteen_dimensions", "marker of a shape", SECTION);
pub(crate) const NUMBER_MARKER: Rule =
    Rule::warning("b2nd.number_marker", "marker of a number", SECTION);
pub(crate) const SHAPE: Rule = Rule::error("b2nd.shape", "shape", SECTION);
pub(crate) const CHUNK_SHAPE: Rule = Rule::error("b2nd.chunk_shape", "chunk shape", SECTION);
pub(crate) const BLOCK_SHAPE: Rule = Rule::error("b2nd.block_shape", "block shape", SECTION);
pub(crate) const BLOCK_OVER_CHUNK: Rule =
    Rule::note("b2nd.block_over_chunk", "block shape", SECTION);
pub(crate) const DTYPE_FORMAT: Rule = Rule::warning("b2nd.dtype_format", "dtype format", SECTION);
pub(crate) const DTYPE_MARKER: Rule =
    Rule::error("b2nd.dtype_marker", "marker of the dtype", SECTION);
pub(crate) const DTYPE: Rule = Rule::error("b2nd.dtype", "dtype", SECTION);
pub(crate) const TRAILING: Rule =
    Rule::warning("b2nd.trailing", "content of the metalayer", SECTION);
pub(crate) const ITEMS: Rule = Rule::error("b2nd.items", "number of items", SECTION);
pub(crate) const CHUNK_LEN: Rule = Rule::error("b2nd.chunk_len", "bytes of a chunk", SECTION);
pub(crate) const NCHUNKS: Rule = Rule::error("b2nd.nchunks", "number of chunks", SECTION);
pub(crate) const CHUNKSIZE: Rule = Rule::error("b2nd.chunksize", "bytes of a chunk", SECTION);
pub(crate) const BLOCKSIZE: Rule = Rule::warning("b2nd.blocksize", "bytes of a block", SECTION);
pub(crate) const CHUNK_BLOCKS: Rule =
    Rule::error("b2nd.chunk_blocks", "blocks of a chunk", SECTION);
pub(crate) const ITEMSIZE: Rule = Rule::warning("b2nd.itemsize", "bytes of an item", SECTION);
pub(crate) const DTYPE_UNKNOWN: Rule = Rule::note("b2nd.dtype_unknown", "dtype", SECTION);
pub(crate) const LIMIT: Rule = Rule::warning("b2nd.limit", "unchecked content", SECTION);

pub(crate) const RULES: &[&Rule] = &[
    &LENGTH,
    &ARRAY,
    &VERSION,
    &NDIM,
    &SHAPE_MARKER,
    &SIXTEEN,
    &NUMBER_MARKER,
    &SHAPE,
    &CHUNK_SHAPE,
    &BLOCK_SHAPE,
    &BLOCK_OVER_CHUNK,
    &DTYPE_FORMAT,
    &DTYPE_MARKER,
    &DTYPE,
    &TRAILING,
    &ITEMS,
    &CHUNK_LEN,
    &NCHUNKS,
    &CHUNKSIZE,
    &BLOCKSIZE,
    &CHUNK_BLOCKS,
    &ITEMSIZE,
    &DTYPE_UNKNOWN,
    &LIMIT,
];
