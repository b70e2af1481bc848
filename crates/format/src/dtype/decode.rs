//! The decoder of scalar items.

use super::{ByteOrder, Dtype, Kind};

/// Decodes the items of a scalar dtype from their bytes, in the byte order of the dtype.
///
/// [`Dtype::kind`] and [`Dtype::size`] determine which method applies.
///
/// ```
/// use blosc2_format::dtype::{Dtype, ScalarDecoder};
///
/// let decoder = |dtype: &str| Dtype::parse(dtype).map(|dtype| ScalarDecoder::new(&dtype));
/// assert_eq!(decoder(">i2")?.int(&[0xFF, 0xFE]), -2);
/// assert_eq!(decoder("<u2")?.int(&[0xFF, 0xFE]), 0xFEFF);
/// assert_eq!(decoder("<f2")?.float(&[0, 0xBC]), -1.0);
/// assert_eq!(decoder("<c8")?.complex(&[0, 0, 0x80, 0x3F, 0, 0, 0, 0x40]), (1.0, 2.0));
/// assert!(decoder("<U2")?.chars(&[b'a', 0, 0, 0, 0, 0, 0, 0]).eq([97]));
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ScalarDecoder {
    order: ByteOrder,
    signed: bool,
}

impl ScalarDecoder {
    /// Creates the decoder of the items of `dtype`.
    pub fn new(dtype: &Dtype) -> Self {
        Self {
            order: dtype.byte_order().unwrap_or(ByteOrder::NATIVE),
            signed: !matches!(dtype.kind(), Some(Kind::Bool | Kind::UInt)),
        }
    }

    /// Returns up to 8 bytes as an unsigned number.
    fn bits(self, bytes: &[u8]) -> u64 {
        let add = |bits: u64, &byte: &u8| bits << 8 | u64::from(byte);
        match self.order {
            ByteOrder::Big => bytes.iter().fold(0, add),
            ByteOrder::Little => bytes.iter().rev().fold(0, add),
        }
    }

    /// Decodes a `bool` or an integer of 1 to 8 bytes.
    pub fn int(self, item: &[u8]) -> i128 {
        let bits = self.bits(item);
        // The sign is the highest bit of the item.
        let unused = 64u32.saturating_sub(8 * item.len() as u32).min(63);
        match self.signed {
            true => ((bits << unused) as i64 >> unused).into(),
            false => bits.into(),
        }
    }

    /// Decodes the number of units of a date or a duration; `i64::MIN` is NaT.
    pub fn time(self, item: &[u8]) -> i64 {
        self.bits(item) as i64
    }

    /// Decodes a floating-point number of 2, 4 or 8 bytes.
    pub fn float(self, item: &[u8]) -> f64 {
        let bits = self.bits(item);
        match item.len() {
            2 => half(bits),
            4 => f32::from_bits(bits as u32).into(),
            _ => f64::from_bits(bits),
        }
    }

    /// Decodes the real and the imaginary part of a complex number of 8 or 16 bytes.
    pub fn complex(self, item: &[u8]) -> (f64, f64) {
        let (re, im) = item.split_at(item.len() / 2);
        (self.float(re), self.float(im))
    }

    /// Decodes the code points of a string, without the zeros at its end: NumPy does not
    /// distinguish them from padding. Damaged data can contain numbers that are not code points.
    pub fn chars(self, item: &[u8]) -> impl Iterator<Item = u32> {
        let is_used = |char: &[u8]| char != [0; 4];
        let len = item.chunks_exact(4).rposition(is_used).map_or(0, |last| last + 1);
        item.chunks_exact(4).take(len).map(move |char| self.bits(char) as u32)
    }
}

/// Converts a half-precision number, with the bits of NaN.
fn half(bits: u64) -> f64 {
    let (sign, exponent, fraction) = (bits >> 15 << 63, bits >> 10 & 31, bits & 1023);
    let size = match exponent {
        0 => (fraction as f64 / f64::from(1 << 24)).to_bits(),
        31 => 0x7FF << 52 | fraction << 42,
        _ => (exponent + 1023 - 15) << 52 | fraction << 42,
    };
    f64::from_bits(sign | size)
}
