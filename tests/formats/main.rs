//! `blosc2-format` against the C library: the same bytes, findings and refusals.

#[path = "../common/mod.rs"]
mod common;

mod arrays;
mod c;
mod chunks;
mod codecs;
mod content;
mod corpus;
mod filters;
mod flips;
mod frames;
mod many_chunks;
mod rust;
mod written;
