//! Truncated precision: the lowest bits of floating-point numbers are set to zero.

use crate::Error;

/// Clears the lowest bits of the mantissas of 4-byte or 8-byte numbers in little-endian byte order.
/// The bytes after the last whole number are not changed.
///
/// If `bits` is positive, the filter preserves the highest `bits` bits of the mantissa. If `bits`
/// is negative, it clears the lowest `-bits` bits. At least one bit must remain, so that NaN stays
/// NaN.
pub(super) fn forward(src: &[u8], dest: &mut [u8], typesize: usize, bits: i8) -> Result<(), Error> {
    let mantissa = match typesize {
        4 => 23,
        8 => 52,
        _ => return Err(Error::Argument(format!("trunc_prec of items of {typesize} bytes"))),
    };
    let cleared = if bits >= 0 { mantissa - i32::from(bits) } else { -i32::from(bits) };
    if !(0..mantissa).contains(&cleared) {
        return Err(Error::Argument(format!(
            "trunc_prec with meta {bits}: items of {typesize} bytes take 1 to {mantissa}, or -1 to \
             -{}",
            mantissa - 1
        )));
    }
    super::int_trunc::clear(src, dest, typesize, cleared as u32);
    Ok(())
}
