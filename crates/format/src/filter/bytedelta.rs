//! Bytedelta: each byte is replaced by its difference from the previous byte.
//!
//! The filter is designed to follow shuffle. The block is split into one stream for each byte of
//! the items, all of equal length. In each stream, the first byte is replaced by its difference
//! from 0. The bytes after the last stream are not changed.
//!
//! The first version of the filter (code 34) has a fault if it was compiled with vector
//! instructions: the first byte after the last complete 16 bytes of a stream is replaced by its
//! difference from 0.

use std::ops::Range;

const VECTOR: usize = 16;

pub(super) fn forward(src: &[u8], dest: &mut [u8], streams: usize, restart: bool) {
    dest.copy_from_slice(src);
    let Some(len) = stream_len(src.len(), streams) else { return };
    for (to, from) in dest.chunks_exact_mut(len).zip(src.chunks_exact(len)).take(streams) {
        for (byte, last) in to[1..].iter_mut().zip(from) {
            *byte = byte.wrapping_sub(*last);
        }
        let tail = len - len % VECTOR;
        if restart && tail < len {
            to[tail] = from[tail];
        }
    }
}

pub(super) fn backward(data: &mut [u8], streams: usize, restart: bool) {
    let Some(len) = stream_len(data.len(), streams) else { return };
    for stream in data.chunks_exact_mut(len).take(streams) {
        let (vectors, tail) = stream.split_at_mut(len - len % VECTOR);
        let sum = accumulate(vectors, 0);
        accumulate(tail, if restart { 0 } else { sum });
    }
}

/// Undoes the filter for the bytes `part` of a stream. The bytes before `part` are not changed.
pub(super) fn backward_part(stream: &mut [u8], part: Range<usize>, restart: bool) {
    let restart = if restart { stream.len() - stream.len() % VECTOR } else { 0 };
    let from = if part.start >= restart { restart } else { 0 };
    let (before, rest) = stream.split_at_mut(part.start);
    let sum = before[from..].iter().fold(0, |sum: u8, byte| sum.wrapping_add(*byte));
    // The sum starts again if `restart` is inside the part.
    let again = restart.clamp(part.start, part.end) - part.start;
    let (first, second) = rest[..part.len()].split_at_mut(again);
    let sum = accumulate(first, sum);
    accumulate(second, if part.start < restart { 0 } else { sum });
}

fn accumulate(bytes: &mut [u8], mut sum: u8) -> u8 {
    for byte in bytes {
        sum = sum.wrapping_add(*byte);
        *byte = sum;
    }
    sum
}

/// Returns the length of a stream, if it is not 0.
fn stream_len(len: usize, streams: usize) -> Option<usize> {
    len.checked_div(streams).filter(|len| *len > 0)
}
