//! `blosc2-format` against the C library: the same bytes, findings and refusals.

#[path = "../common/mod.rs"]
mod common;

// These modules compare with C. On big-endian processors, C stores the offsets of chunks and the lengths of special chunks
// in native byte order, which is not valid.
#[cfg(target_endian = "little")]
mod arrays;
#[cfg(target_endian = "little")]
mod flips;
#[cfg(target_endian = "little")]
mod frames;
#[cfg(target_endian = "little")]
mod many_chunks;

#[cfg_attr(target_endian = "big", expect(dead_code))]
mod c;
mod chunks;
mod codecs;
mod content;
mod corpus;
mod filters;
#[cfg_attr(target_endian = "big", expect(dead_code))]
mod rust;
mod valid;
mod written;

use blosc2_format::chunk::Header;

/// The codecs whose streams are those of C, byte for byte. On 32-bit and on big-endian processors, C's LZ4 computes other
/// hashes and finds other matches; `blosc2-format` writes the same streams on all processors.
const IDENTICAL: &[u8] = match cfg!(all(target_pointer_width = "64", target_endian = "little")) {
    true => &[0, 1],
    false => &[0],
};

/// Asserts that a chunk is the one that C has written. On big-endian processors, C sets a flag for the byte order.
fn assert_chunk(found: &[u8], of_c: &[u8], what: &str) {
    let mut expected = of_c.to_vec();
    if cfg!(target_endian = "big") && Header::parse(of_c).unwrap().header_len() == 32 {
        expected[31] &= !2;
    }
    common::assert_same(found, &expected, what);
}
