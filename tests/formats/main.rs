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

/// The codecs whose streams are those of C, byte for byte. On 32-bit and on big-endian processors, C's LZ4 computes other
/// hashes and finds other matches; `blosc2-format` writes the same streams on all processors.
const IDENTICAL: &[u8] = match cfg!(all(target_pointer_width = "64", target_endian = "little")) {
    true => &[0, 1],
    false => &[0],
};
