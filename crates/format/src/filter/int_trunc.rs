//! Truncated integers: the lowest bits are set to zero.

use crate::Error;

/// Clears the lowest bits of integers of 1, 2, 4 or 8 bytes in little-endian byte order. The bytes
/// after the last whole item are not changed.
///
/// If `bits` is positive, the filter preserves the highest `bits` bits. If `bits` is negative, it
/// clears the lowest `-bits` bits. At least one bit must remain.
pub(super) fn forward(src: &[u8], dest: &mut [u8], typesize: usize, bits: i8) -> Result<(), Error> {
    if !matches!(typesize, 1 | 2 | 4 | 8) {
        return Err(Error::Argument(format!("int_trunc of items of {typesize} bytes")));
    }
    let all = 8 * typesize as i32;
    let cleared = if bits >= 0 { all - i32::from(bits) } else { -i32::from(bits) };
    if !(0..all).contains(&cleared) {
        return Err(Error::Argument(format!(
            "int_trunc with meta {bits}: items of {typesize} bytes take 1 to {all}, or -1 to -{}",
            all - 1
        )));
    }
    clear(src, dest, typesize, cleared as u32);
    Ok(())
}

/// Copies `src` to `dest`, and clears the lowest `bits` bits of each complete item. `bits` is less
/// than the number of bits of an item.
pub(super) fn clear(src: &[u8], dest: &mut [u8], typesize: usize, bits: u32) {
    // Eight bytes of mask contain whole items of all supported sizes.
    let mut mask = [0; 8];
    for (index, byte) in mask.iter_mut().enumerate() {
        let below = 8 * (index % typesize) as u32;
        *byte = (0xff_u32 << bits.saturating_sub(below).min(8)) as u8;
    }
    let whole = src.len() - src.len() % typesize;
    dest[whole..].copy_from_slice(&src[whole..]);
    for (to, from) in dest[..whole].chunks_mut(8).zip(src[..whole].chunks(8)) {
        for ((to, from), mask) in to.iter_mut().zip(from).zip(mask) {
            *to = from & mask;
        }
    }
}
