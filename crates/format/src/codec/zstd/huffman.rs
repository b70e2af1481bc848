//! Huffman codes of literals.

use super::bits::Bits;
use super::fse::Table;
use super::{Fault, broken};

/// The maximum number of bits of a code.
const MAX_BITS: u32 = 11;
/// The number of symbols that can be decoded with the prepared bits.
const AT_ONCE: usize = 5;

/// The symbol and the length of its code, for all values of the next `log` bits.
#[derive(Clone)]
pub(super) struct Codes {
    log: u32,
    symbols: [(u8, u8); 1 << MAX_BITS],
    /// Whether the codes have been set since the start of the frame.
    pub(super) known: bool,
}

impl Default for Codes {
    fn default() -> Self {
        Self { log: 1, symbols: [(0, 0); 1 << MAX_BITS], known: false }
    }
}

impl Codes {
    /// Reads the codes at the start of `data`, and returns their length.
    pub(super) fn read(&mut self, data: &[u8]) -> Result<usize, Fault> {
        let short = || broken("a description of the codes", "less");
        let kind = usize::from(*data.first().ok_or_else(short)?);
        let mut weights = [0_u8; 256];
        let (count, len) = if kind >= 128 {
            let count = kind - 127;
            let packed = data.get(1..1 + count.div_ceil(2)).ok_or_else(short)?;
            for (pair, byte) in weights.chunks_mut(2).zip(packed) {
                pair[0] = byte >> 4;
                pair[1] = byte & 15;
            }
            (count, 1 + packed.len())
        } else {
            let packed = data.get(1..1 + kind).ok_or_else(short)?;
            (unpack(packed, &mut weights)?, 1 + kind)
        };
        self.set(&mut weights, count)?;
        Ok(len)
    }

    /// Sets the codes from the weights of all symbols except the last symbol. The other weights
    /// determine the weight of the last symbol.
    fn set(&mut self, weights: &mut [u8; 256], count: usize) -> Result<(), Fault> {
        let bad = || broken("weights that make a whole set of codes", "others");
        if weights[..count].iter().any(|&weight| u32::from(weight) > MAX_BITS) {
            return Err(bad());
        }
        let sum: u32 = weights[..count].iter().map(|&weight| (1 << weight) >> 1).sum();
        if sum == 0 {
            return Err(bad());
        }
        let log = sum.ilog2() + 1;
        let rest = (1 << log) - sum;
        if log > MAX_BITS || !rest.is_power_of_two() {
            return Err(bad());
        }
        weights[count] = rest.ilog2() as u8 + 1;
        // The number of symbols with each weight, and the start of their codes.
        let mut starts = [0; MAX_BITS as usize + 2];
        for &weight in &weights[..=count] {
            starts[usize::from(weight)] += 1;
        }
        if starts[1] < 2 {
            return Err(bad());
        }
        let mut at = 0;
        starts[0] = 0;
        for (weight, start) in starts.iter_mut().enumerate().skip(1) {
            let len = *start << (weight - 1);
            *start = at;
            at += len;
        }
        for (symbol, &weight) in weights[..=count].iter().enumerate().filter(|(_, w)| **w > 0) {
            let start = &mut starts[usize::from(weight)];
            let len = 1 << (weight - 1);
            self.symbols[*start..*start + len].fill((symbol as u8, log as u8 + 1 - weight));
            *start += len;
        }
        self.log = log;
        self.known = true;
        Ok(())
    }

    #[inline(always)]
    fn symbol(&self, bits: &mut Bits<'_>) -> u8 {
        let (symbol, len) = self.symbols[bits.peek(self.log) as usize & ((1 << MAX_BITS) - 1)];
        bits.skip(len.into());
        symbol
    }

    fn rest(&self, bits: &mut Bits<'_>, out: &mut [u8]) -> Result<(), Fault> {
        for part in out.chunks_mut(AT_ONCE) {
            bits.refill();
            for byte in part {
                *byte = self.symbol(bits);
            }
        }
        if bits.left != 0 {
            return Err(broken("codes for all literals", format_args!("{} bits left", bits.left)));
        }
        Ok(())
    }

    /// Decodes one stream.
    pub(super) fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<(), Fault> {
        self.rest(&mut Bits::new(data)?, out)
    }

    /// Decodes two streams of the same length in parallel.
    fn decode_two(
        &self,
        bits0: &mut Bits<'_>,
        bits1: &mut Bits<'_>,
        out0: &mut [u8],
        out1: &mut [u8],
    ) -> Result<(), Fault> {
        let whole = out0.len() / AT_ONCE * AT_ONCE;
        let (whole0, rest0) = out0.split_at_mut(whole);
        let (whole1, rest1) = out1.split_at_mut(whole);
        let parts = whole0.chunks_exact_mut(AT_ONCE).zip(whole1.chunks_exact_mut(AT_ONCE));
        for (part0, part1) in parts {
            bits0.refill();
            bits1.refill();
            for i in 0..AT_ONCE {
                part0[i] = self.symbol(bits0);
                part1[i] = self.symbol(bits1);
            }
        }
        self.rest(bits0, rest0)?;
        self.rest(bits1, rest1)
    }

    /// Decodes four streams, each a quarter of the literals. Skips the streams after the first
    /// `needed` literals.
    pub(super) fn decode_four(
        &self,
        data: &[u8],
        needed: usize,
        out: &mut [u8],
    ) -> Result<(), Fault> {
        let bad = || broken("four streams of literals", "others");
        let Some((&[a, b, c, d, e, f], data)) = data.split_first_chunk() else {
            return Err(bad());
        };
        let len = |low, high| usize::from(u16::from_le_bytes([low, high]));
        let (first, rest) = data.split_at_checked(len(a, b)).ok_or_else(bad)?;
        let (second, rest) = rest.split_at_checked(len(c, d)).ok_or_else(bad)?;
        let (third, fourth) = rest.split_at_checked(len(e, f)).ok_or_else(bad)?;
        let mut bits =
            (Bits::new(first)?, Bits::new(second)?, Bits::new(third)?, Bits::new(fourth)?);

        let quarter = out.len().div_ceil(4);
        let (out0, rest) = out.split_at_mut_checked(quarter).ok_or_else(bad)?;
        let (out1, rest) = rest.split_at_mut_checked(quarter).ok_or_else(bad)?;
        let (out2, out3) = rest.split_at_mut_checked(quarter).ok_or_else(bad)?;
        if needed <= quarter {
            return self.rest(&mut bits.0, out0);
        }
        if needed <= 2 * quarter {
            return self.decode_two(&mut bits.0, &mut bits.1, out0, out1);
        }
        // The streams are decoded in parallel, because they are independent of each other.
        let whole = out3.len() / AT_ONCE * AT_ONCE;
        let (whole0, rest0) = out0.split_at_mut(whole);
        let (whole1, rest1) = out1.split_at_mut(whole);
        let (whole2, rest2) = out2.split_at_mut(whole);
        let (whole3, rest3) = out3.split_at_mut(whole);
        for (((part0, part1), part2), part3) in whole0
            .chunks_exact_mut(AT_ONCE)
            .zip(whole1.chunks_exact_mut(AT_ONCE))
            .zip(whole2.chunks_exact_mut(AT_ONCE))
            .zip(whole3.chunks_exact_mut(AT_ONCE))
        {
            bits.0.refill();
            bits.1.refill();
            bits.2.refill();
            bits.3.refill();
            for i in 0..AT_ONCE {
                part0[i] = self.symbol(&mut bits.0);
                part1[i] = self.symbol(&mut bits.1);
                part2[i] = self.symbol(&mut bits.2);
                part3[i] = self.symbol(&mut bits.3);
            }
        }
        self.rest(&mut bits.0, rest0)?;
        self.rest(&mut bits.1, rest1)?;
        self.rest(&mut bits.2, rest2)?;
        self.rest(&mut bits.3, rest3)
    }
}

/// Decodes compressed weights, and returns their number.
fn unpack(packed: &[u8], weights: &mut [u8; 256]) -> Result<usize, Fault> {
    let mut table = Table::default();
    let len = table.read(packed, 6, MAX_BITS as usize + 1, |symbol| (symbol as u32, 0))?;
    let mut bits = Bits::new(&packed[len..])?;
    let mut state = table.start(&mut bits);
    let mut other = table.start(&mut bits);
    if bits.left < 0 {
        return Err(broken("two states", "fewer bits"));
    }
    let mut count = 0;
    // The two states alternate until there are no bits for the next state.
    while bits.left >= 0 {
        if count > 253 {
            return Err(broken("weights of 256 symbols or less", "more"));
        }
        weights[count] = state.base as u8;
        count += 1;
        bits.refill();
        state = table.next(state, &mut bits);
        std::mem::swap(&mut state, &mut other);
    }
    weights[count] = state.base as u8;
    Ok(count + 1)
}
