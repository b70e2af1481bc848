//! Files of any kind: detection, one reader and one check for all formats.
//!
//! ```
//! use blosc2_format::chunk::{Encoder, Params};
//! use blosc2_format::file::{File, Kind};
//! use blosc2_format::{Limits, Options, file};
//!
//! let bytes = Encoder::new(Params { typesize: 4, ..Params::default() })?.encode(&[7; 4000])?;
//!
//! let mut file = File::from_reader(&bytes, &Limits::default())?;
//! assert_eq!((file.info().kind, file.info().nchunks), (Kind::Chunk, 1));
//! let mut data = Vec::new();
//! file.decode_chunk(0, &mut data)?;
//! assert_eq!(data, [7; 4000]);
//!
//! let (kind, report) = file::check(&bytes, &Options { content: true, ..Options::default() })?;
//! assert!(kind == Some(Kind::Chunk) && report.is_good());
//! # Ok::<(), blosc2_format::Error>(())
//! ```

mod check;
mod kind;
mod read;
mod sources;

pub use check::{check, check_path};
pub use kind::{Kind, recognise, recognise_path};
pub use read::File;
pub use sources::{Info, Place};

pub(crate) use check::RULES;
