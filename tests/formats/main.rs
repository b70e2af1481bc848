//! `blosc2-format` against the C library and Python: the same bytes read from every kind of file, and
//! files that one writes read by the others.

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
