//! Streams of bits that are read backwards.

use super::{Fault, broken};

/// Reads bits from the last to the first. Reading past the first bit returns zeros and makes `left`
/// negative.
pub(super) struct Bits<'a> {
    data: &'a [u8],
    /// The number of unread bits; negative after reading too many.
    pub(super) left: isize,
    /// The next bits, from the highest.
    word: u64,
}

impl<'a> Bits<'a> {
    /// Creates the reader. The highest set bit marks the end of the stream and is not part of the
    /// stream.
    pub(super) fn new(data: &'a [u8]) -> Result<Self, Fault> {
        match data.last() {
            None | Some(0) => Err(broken("a set bit that ends the bits", "none")),
            Some(last) => {
                let left = data.len() as isize * 8 - 1 - last.leading_zeros() as isize;
                let mut bits = Self { data, left, word: 0 };
                bits.refill();
                Ok(bits)
            }
        }
    }

    /// Prepares the next 57 bits for reading.
    #[inline(always)]
    pub(super) fn refill(&mut self) {
        if self.left >= 64 {
            let end = (self.left as usize).div_ceil(8);
            let bytes = self.data.get(end - 8..end).and_then(|bytes| bytes.first_chunk());
            self.word = bytes.map_or(0, |word| u64::from_le_bytes(*word));
            self.word <<= end * 8 - self.left as usize;
        } else {
            self.refill_last();
        }
    }

    fn refill_last(&mut self) {
        let mut word = [0; 8];
        let len = self.data.len().min(8);
        word[..len].copy_from_slice(&self.data[..len]);
        self.word = match self.left {
            ..=0 => 0,
            left => u64::from_le_bytes(word) << (64 - left),
        };
    }

    /// Returns the next `count` bits, 1 to 56 of the prepared ones.
    #[inline(always)]
    pub(super) fn peek(&self, count: u32) -> u64 {
        self.word >> (64 - count)
    }

    #[inline(always)]
    pub(super) fn skip(&mut self, count: u32) {
        self.word <<= count;
        self.left -= count as isize;
    }

    /// Reads up to 56 of the prepared bits.
    #[inline(always)]
    pub(super) fn read(&mut self, count: u32) -> u64 {
        let value = (self.word >> 1) >> (63 - count);
        self.skip(count);
        value
    }
}
