//! Finite state entropy: tables of states, each with a symbol and the transition to the next state.

use super::bits::Bits;
use super::{Fault, broken};

/// A state.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FseState {
    /// The meaning of the symbol of the state: the symbol itself, or the minimum of a range of
    /// values.
    pub(super) base: u32,
    /// The number of bits added to `base`.
    pub(super) extra: u8,
    /// The number of bits added to `next` for the following state.
    pub(super) bits: u8,
    pub(super) next: u16,
}

/// The maximum number of bits of the states of a table.
pub(super) const MAX_LOG: u32 = 9;

/// A table of `1 << log` states.
#[derive(Clone)]
pub(super) struct Table {
    log: u32,
    states: [FseState; 1 << MAX_LOG],
    /// Whether the table has been set since the start of the frame.
    pub(super) known: bool,
}

impl Default for Table {
    fn default() -> Self {
        Self { log: 0, states: [FseState::default(); 1 << MAX_LOG], known: false }
    }
}

impl Table {
    /// Sets the table of a single symbol.
    pub(super) fn set_single(&mut self, (base, extra): (u32, u8)) {
        self.log = 0;
        self.states[0] = FseState { base, extra, ..FseState::default() };
        self.known = true;
    }

    /// Sets the table from the frequencies of the symbols. The frequency `-1` means less than one.
    /// `meaning` returns the meaning of a symbol.
    pub(super) fn set(
        &mut self,
        counts: &[i16],
        log: u32,
        meaning: impl Fn(usize) -> (u32, u8),
    ) -> Result<(), Fault> {
        let size = 1_usize << log;
        let mut symbols = [0_u8; 1 << MAX_LOG];
        let mut seen = [0_u32; 256];
        // Rare symbols are at the end, with one state each.
        let mut high = size;
        for (symbol, &count) in counts.iter().enumerate() {
            seen[symbol] = count.unsigned_abs().into();
            if count == -1 {
                high -= 1;
                symbols[high] = symbol as u8;
            }
        }
        let mut at = 0;
        let step = (size >> 1) + (size >> 3) + 3;
        for (symbol, &count) in counts.iter().enumerate() {
            for _ in 0..count {
                symbols[at] = symbol as u8;
                at = (at + step) & (size - 1);
                while at >= high {
                    at = (at + step) & (size - 1);
                }
            }
        }
        if at != 0 {
            return Err(broken("counts that fill the table", "others"));
        }
        for (state, &symbol) in self.states.iter_mut().zip(&symbols[..size]) {
            let seen = &mut seen[usize::from(symbol)];
            let bits = log - seen.ilog2();
            let (base, extra) = meaning(symbol.into());
            let next = ((*seen << bits) as usize - size) as u16;
            *state = FseState { base, extra, bits: bits as u8, next };
            *seen += 1;
        }
        self.log = log;
        self.known = true;
        Ok(())
    }

    /// Reads the table at the start of `data`, and returns its length.
    pub(super) fn read(
        &mut self,
        data: &[u8],
        max_log: u32,
        max_symbol: usize,
        meaning: impl Fn(usize) -> (u32, u8),
    ) -> Result<usize, Fault> {
        let mut at = 0;
        let peek = |at: usize| {
            let mut word = [0; 4];
            let rest = data.get(at / 8..).unwrap_or_default();
            let len = rest.len().min(4);
            word[..len].copy_from_slice(&rest[..len]);
            u32::from_le_bytes(word) >> (at % 8)
        };
        let log = 5 + (peek(0) & 15);
        if log > max_log {
            return Err(broken(format_args!("a table of {max_log} bits or less"), log));
        }
        at += 4;
        let mut counts = [0_i16; 256];
        let mut symbol = 0;
        let mut left = 1_i32 << log;
        while left > 0 {
            if symbol > max_symbol {
                return Err(broken(format_args!("symbols up to {max_symbol}"), symbol));
            }
            // Values from 0 to `left + 1` use the minimum number of bits. The lower values use one
            // bit less.
            let most = left as u32 + 1;
            let bits = most.ilog2() + 1;
            let half = (1 << (bits - 1)) - 1;
            let short = (1 << bits) - 1 - most;
            let mut value = peek(at) & ((1 << bits) - 1);
            if value & half < short {
                value &= half;
                at += bits as usize - 1;
            } else {
                if value > half {
                    value -= short;
                }
                at += bits as usize;
            }
            let count = value as i16 - 1;
            counts[symbol] = count;
            symbol += 1;
            left -= i32::from(count.unsigned_abs());
            if count == 0 {
                loop {
                    let zeros = peek(at) as usize & 3;
                    at += 2;
                    symbol += zeros;
                    if zeros < 3 || symbol > max_symbol {
                        break;
                    }
                }
            }
        }
        let len = at.div_ceil(8);
        if left < 0 || symbol > max_symbol + 1 || len > data.len() {
            return Err(broken("counts that fill the table", "others"));
        }
        self.set(&counts[..symbol], log, meaning)?;
        Ok(len)
    }

    /// Returns the first state.
    pub(super) fn start(&self, bits: &mut Bits<'_>) -> FseState {
        bits.refill();
        self.states[bits.read(self.log) as usize & ((1 << MAX_LOG) - 1)]
    }

    /// Returns the state after `state`. The caller must have prepared the bits of the transition.
    #[inline(always)]
    pub(super) fn next(&self, state: FseState, bits: &mut Bits<'_>) -> FseState {
        let index = usize::from(state.next) + bits.read(state.bits.into()) as usize;
        self.states[index & ((1 << MAX_LOG) - 1)]
    }
}
