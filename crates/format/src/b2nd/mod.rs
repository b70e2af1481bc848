//! N-dimensional arrays: the metalayer `b2nd`, and the layout of the items in chunks and blocks.
//!
//! A metalayer is a named piece of metadata in the header of a frame. The content of the metalayer
//! `b2nd` is an array of the format msgpack with seven elements: version, number of dimensions,
//! shape, chunk shape, block shape, dtype format and dtype.
//!
//! A chunk contains its blocks one after the other. Each block contains its items in C order.
//! Chunks and blocks at the edges of the array are padded to full size.
//!
//! ```
//! use blosc2_format::Limits;
//! use blosc2_format::b2nd::{Geometry, Meta};
//!
//! let meta = Meta {
//!     shape: vec![3, 5],
//!     chunks: vec![2, 4],
//!     blocks: vec![2, 2],
//!     dtype: Some("|u1".into()),
//!     dtype_format: 0,
//! };
//! assert_eq!(Meta::parse(&meta.to_bytes()?)?, meta);
//!
//! let array: Vec<u8> = (0..15).collect();
//! let geometry = Geometry::new(&meta, 1, &Limits::default())?;
//! assert_eq!((geometry.nchunks(), geometry.chunk_len()), (4, 8));
//! let mut chunk = [0; 8];
//! geometry.cut(0, &array, &mut chunk)?;
//! assert_eq!(chunk, [0, 1, 5, 6, 2, 3, 7, 8]);
//! # Ok::<(), blosc2_format::Error>(())
//! ```

mod check;
mod geometry;
mod meta;
mod raw;
mod rules;

pub(crate) use check::{Frame, check, check_chunk, read};
pub use geometry::{Axis, Geometry};
pub use meta::{Meta, NAME, OLD_NAME};
pub(crate) use rules::RULES;

pub use crate::limits::MAX_NDIM;
