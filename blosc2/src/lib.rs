#![doc = include_str!("../README.md")]
//!
//! # Where things are
//! - [`compress`] and [`decompress`]: one buffer, one chunk;
//! - [`SChunk`]: many chunks, in memory or in a file;
//! - [`NDArray`]: an n-dimensional array;
//! - [`CParams`], [`Codec`], [`Filter`]: how data is compressed.

mod chunk;
mod codec;
mod context;
mod element;
mod error;
mod filter;
mod init;
mod metalayers;
mod ndarray;
mod params;
mod schunk;
mod storage;

pub use chunk::{compress, decompress};
pub use codec::Codec;
pub use element::Element;
pub use error::{Error, ErrorKind, Result};
pub use filter::Filter;
pub use init::c_version;
pub use metalayers::Metalayers;
pub use ndarray::{NDArray, NDArrayBuilder};
pub use params::{CParams, DParams, MAX_CHUNK_LEN, MAX_TYPESIZE, SplitMode, Threads};
pub use schunk::{Chunks, FileFormat, SChunk};
