#![doc = include_str!("../README.md")]
//!
//! # Where things are
//! - [`compress`] and [`decompress`]: one buffer, one chunk;
//! - [`SChunk`]: many chunks, in memory or in a file;
//! - [`NDArray`]: an n-dimensional array;
//! - [`CParams`], [`Codec`], [`Filter`]: how data is compressed.

mod checked;
mod chunk;
mod claim;
mod codec;
mod context;
mod element;
mod environment;
mod error;
mod filter;
mod fork;
mod init;
mod metalayers;
mod ndarray;
mod params;
mod plugins;
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
