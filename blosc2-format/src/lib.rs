#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

pub mod b2nd;
pub mod chunk;
mod error;
pub mod frame;

pub use error::FormatError;
