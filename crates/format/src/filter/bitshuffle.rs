//! Bitshuffle: the lowest bits of all items, then their second bits, and so on.
//!
//! The items are processed in groups of eight. For `n` items, the row `8 * byte + bit` has `n / 8`
//! bytes. Each byte of the row contains this bit of eight items, with the first item in the lowest
//! bit. The items after the last group, and the bytes after the last item, are not moved.
//!
//! The implementation has three steps: it shuffles bytes, transposes each eight rows of eight bits,
//! and shuffles each stream of bytes as if the stream consisted of items of eight bytes. It
//! processes tiles that fit into the fastest cache.

use super::shuffle;

/// The number of bytes processed at a time; 8 items of any size fit.
const TILE: usize = 32 << 10;

pub(super) fn forward(src: &[u8], dest: &mut [u8], typesize: usize) {
    let eights = src.len() / typesize / 8;
    let whole = eights * 8 * typesize;
    dest[whole..].copy_from_slice(&src[whole..]);
    let (mut streams, mut rows, mut buffers) = ([0; TILE], [0; TILE], shuffle::buffers());
    let tile_eights = TILE / (8 * typesize);
    for (tile, src) in src[..whole].chunks(tile_eights * 8 * typesize).enumerate() {
        let len = src.len() / (8 * typesize);
        let (streams, rows) = (&mut streams[..src.len()], &mut rows[..8 * len]);
        shuffle::forward(src, streams, typesize, &mut buffers);
        transpose(streams);
        for (byte, stream) in streams.chunks_exact(8 * len).enumerate() {
            shuffle::forward(stream, rows, 8, &mut buffers);
            for (bit, row) in rows.chunks_exact(len).enumerate() {
                let at = (8 * byte + bit) * eights + tile * tile_eights;
                dest[at..at + len].copy_from_slice(row);
            }
        }
    }
}

pub(super) fn backward(src: &[u8], dest: &mut [u8], typesize: usize, version: u8) {
    let items = src.len() / typesize;
    // Blosc1 did not change blocks whose number of items is not a multiple of eight.
    let eights = if version == 2 && !items.is_multiple_of(8) { 0 } else { items / 8 };
    let whole = eights * 8 * typesize;
    dest[whole..].copy_from_slice(&src[whole..]);
    backward_part(src, eights, 0, &mut dest[..whole], typesize);
}

/// Undoes bitshuffle of the groups of eight items from the index `first` on that fill `dest`. `src`
/// has `eights` groups.
pub(super) fn backward_part(
    src: &[u8],
    eights: usize,
    first: usize,
    dest: &mut [u8],
    typesize: usize,
) {
    let (mut streams, mut rows, mut buffers) = ([0; TILE], [0; TILE], shuffle::buffers());
    let tile_eights = TILE / (8 * typesize);
    for (tile, dest) in dest.chunks_mut(tile_eights * 8 * typesize).enumerate() {
        let len = dest.len() / (8 * typesize);
        let (streams, rows) = (&mut streams[..dest.len()], &mut rows[..8 * len]);
        for (byte, stream) in streams.chunks_exact_mut(8 * len).enumerate() {
            for (bit, row) in rows.chunks_exact_mut(len).enumerate() {
                let at = (8 * byte + bit) * eights + first + tile * tile_eights;
                row.copy_from_slice(&src[at..at + len]);
            }
            shuffle::backward(rows, stream, 8, &mut buffers);
        }
        transpose(streams);
        shuffle::backward(streams, dest, typesize, &mut buffers);
    }
}

/// Returns one byte of each of the eight items of a group.
pub(super) fn bytes_of_eight(src: &[u8], eights: usize, group: usize, byte: usize) -> [u8; 8] {
    let mut rows = [0; 8];
    for (bit, row) in rows.iter_mut().enumerate() {
        *row = src[(8 * byte + bit) * eights + group];
    }
    transpose(&mut rows);
    rows
}

/// Transposes each eight rows of eight bits; the lowest bit comes first.
fn transpose(bytes: &mut [u8]) {
    for rows in bytes.chunks_exact_mut(8) {
        let mut bits = u64::from_le_bytes(rows.try_into().unwrap_or_default());
        for (shift, mask) in
            [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
        {
            let swapped = (bits ^ (bits >> shift)) & mask;
            bits ^= swapped ^ (swapped << shift);
        }
        rows.copy_from_slice(&bits.to_le_bytes());
    }
}
