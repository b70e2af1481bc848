//! Chunks: less than 2 GiB of data each, in blocks that are filtered and compressed.
//!
//! [`Header`] contains the header fields of a chunk. [`Chunk`] contains the positions of the blocks
//! and other parts. [`Encoder`] compresses data to chunks. [`Decoder`] decompresses chunks.
//!
//! ```
//! use blosc2_format::Limits;
//! use blosc2_format::chunk::{Chunk, Decoder, Encoder, Params};
//!
//! let data: Vec<u8> = (0..30_000u32).flat_map(u32::to_le_bytes).collect();
//! let params = Params { typesize: 4, blocksize: Some(40_000), ..Params::default() };
//! let bytes = Encoder::new(params)?.encode(&data)?;
//!
//! let chunk = Chunk::new(&bytes, &Limits::default())?;
//! assert_eq!((chunk.header().nbytes, chunk.nblocks()), (120_000, 3));
//! let mut block = vec![0; chunk.block_size(1)];
//! Decoder::default().decode_block(&chunk, 1, &mut block)?;
//! assert_eq!(block, data[40_000..80_000]);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

mod check;
mod decode;
mod encode;
mod header;
mod layout;
mod lazy;
mod params;
mod part;
mod plan;
pub(crate) mod rules;
mod special;
mod streams;
#[cfg(test)]
mod tests;

pub use crate::codec::codec_name;
pub(crate) use check::{check, check_after};
pub use decode::Decoder;
pub use encode::Encoder;
pub(crate) use encode::{Block, Form};
pub(crate) use header::TypicalHeader;
pub use header::{
    EXTENDED_HEADER_LEN, Header, MAX_BLOCKSIZE, MAX_FILTERS, MAX_VERSION, MIN_HEADER_LEN, Special,
};
pub use layout::Chunk;
pub use lazy::Lazy;
pub use params::{Params, SplitMode};
pub use part::{PartialBlock, PartialChunk, PartialDecoder};
pub(crate) use plan::Plan;
pub(crate) use rules::{First, RULES};
pub(crate) use special::repeated;
pub use special::special;
pub use streams::{Stream, each_stream};
