//! Compressed blocks: literals, and sequences. Each sequence copies literals to the output, and
//! repeats earlier output.

use super::bits::Bits;
use super::fse::Table;
use super::huffman::Codes;
use super::{Fault, broken};
use crate::codec::repeat;

/// The maximum size of a block, in bytes.
pub(super) const MAX_BLOCK: usize = 128 << 10;
/// The length of the shortest match.
const MIN_MATCH: u32 = 3;
/// The offsets at the start of a frame.
const FIRST_OFFSETS: [u32; 3] = [1, 4, 8];
/// Literals are copied in words of this size. A copy can read up to one word past the end of the
/// literals.
const WORD: usize = 16;

const LITERAL_CODES: usize = 36;
const MATCH_CODES: usize = 53;
const OFFSET_CODES: usize = 32;

/// Returns the meaning of a literal length code: the minimum length, and the number of added bits.
fn literal_len(code: usize) -> (u32, u8) {
    const LONG: [(u32, u8); LITERAL_CODES - 16] = [
        (16, 1),
        (18, 1),
        (20, 1),
        (22, 1),
        (24, 2),
        (28, 2),
        (32, 3),
        (40, 3),
        (48, 4),
        (64, 6),
        (128, 7),
        (256, 8),
        (512, 9),
        (1 << 10, 10),
        (1 << 11, 11),
        (1 << 12, 12),
        (1 << 13, 13),
        (1 << 14, 14),
        (1 << 15, 15),
        (1 << 16, 16),
    ];
    if code < 16 { (code as u32, 0) } else { LONG[code - 16] }
}

/// Returns the meaning of a match length code.
fn match_len(code: usize) -> (u32, u8) {
    const LONG: [(u32, u8); MATCH_CODES - 32] = [
        (32, 1),
        (34, 1),
        (36, 1),
        (38, 1),
        (40, 2),
        (44, 2),
        (48, 3),
        (56, 3),
        (64, 4),
        (80, 4),
        (96, 5),
        (128, 7),
        (256, 8),
        (512, 9),
        (1 << 10, 10),
        (1 << 11, 11),
        (1 << 12, 12),
        (1 << 13, 13),
        (1 << 14, 14),
        (1 << 15, 15),
        (1 << 16, 16),
    ];
    let (base, extra) = if code < 32 { (code as u32, 0) } else { LONG[code - 32] };
    (base + MIN_MATCH, extra)
}

/// Returns the meaning of an offset code.
fn offset(code: usize) -> (u32, u8) {
    (1 << code, code as u8)
}

/// The default frequencies of the symbols.
const LITERAL_COUNTS: [i16; 36] = [
    4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1,
    -1, -1, -1, -1,
];
const MATCH_COUNTS: [i16; 53] = [
    1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
    1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
];
const OFFSET_COUNTS: [i16; 29] =
    [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1];

/// One of the three tables of sequences.
struct BlockKind {
    codes: usize,
    max_log: u32,
    meaning: fn(usize) -> (u32, u8),
    usual: (&'static [i16], u32),
}

const LITERAL_LEN: BlockKind = BlockKind {
    codes: LITERAL_CODES,
    max_log: 9,
    meaning: literal_len,
    usual: (&LITERAL_COUNTS, 6),
};
const OFFSET: BlockKind =
    BlockKind { codes: OFFSET_CODES, max_log: 8, meaning: offset, usual: (&OFFSET_COUNTS, 5) };
const MATCH_LEN: BlockKind =
    BlockKind { codes: MATCH_CODES, max_log: 9, meaning: match_len, usual: (&MATCH_COUNTS, 6) };

impl BlockKind {
    fn read(&self, table: &mut Table, data: &mut &[u8]) -> Result<(), Fault> {
        let len = table.read(data, self.max_log, self.codes - 1, self.meaning)?;
        *data = &data[len..];
        Ok(())
    }

    /// Sets `table` in one of four modes, and consumes the required bytes of `data`.
    fn set(&self, table: &mut Table, mode: u8, data: &mut &[u8]) -> Result<(), Fault> {
        match mode & 3 {
            0 => table.set(self.usual.0, self.usual.1, self.meaning),
            1 => match data.split_first() {
                Some((&code, rest)) if usize::from(code) < self.codes => {
                    *data = rest;
                    table.set_single((self.meaning)(code.into()));
                    Ok(())
                }
                _ => Err(broken("a code of a sequence", "none")),
            },
            2 => self.read(table, data),
            _ if table.known => Ok(()),
            _ => Err(broken("a table of an earlier block", "none")),
        }
    }
}

/// The state that blocks inherit from the previous block or from a dictionary.
#[derive(Clone)]
pub(super) struct History {
    codes: Codes,
    literal_len: Table,
    offset: Table,
    match_len: Table,
    offsets: [u32; 3],
}

impl Default for History {
    fn default() -> Self {
        Self {
            codes: Codes::default(),
            literal_len: Table::default(),
            offset: Table::default(),
            match_len: Table::default(),
            offsets: FIRST_OFFSETS,
        }
    }
}

impl History {
    /// Clears the state.
    pub(super) fn clear(&mut self) {
        self.codes.known = false;
        self.literal_len.known = false;
        self.offset.known = false;
        self.match_len.known = false;
        self.offsets = FIRST_OFFSETS;
    }

    /// Reads the tables and the offsets of a dictionary, and returns the rest.
    pub(super) fn read<'a>(&mut self, mut data: &'a [u8]) -> Result<&'a [u8], Fault> {
        let len = self.codes.read(data)?;
        data = &data[len..];
        OFFSET.read(&mut self.offset, &mut data)?;
        MATCH_LEN.read(&mut self.match_len, &mut data)?;
        LITERAL_LEN.read(&mut self.literal_len, &mut data)?;
        let Some((bytes, content)) = data.split_first_chunk::<12>() else {
            return Err(broken("three offsets", "less"));
        };
        for (offset, bytes) in self.offsets.iter_mut().zip(bytes.chunks_exact(4)) {
            *offset = bytes.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte));
            if *offset == 0 || *offset as usize > content.len() {
                return Err(broken("offsets inside the dictionary", *offset));
            }
        }
        Ok(content)
    }

    /// Decodes the literals at the start of a block to `literals`, and returns the rest of the
    /// block. Literals after the first `needed` ones may be left undecoded.
    fn literals<'a>(
        &mut self,
        block: &'a [u8],
        max: usize,
        needed: usize,
        literals: &mut Vec<u8>,
    ) -> Result<&'a [u8], Fault> {
        let short = || broken("literals", "the end of the block");
        let first = *block.first().ok_or_else(short)?;
        let format = first >> 2 & 3;
        let header_len = match (first & 3, format) {
            (0 | 1, 0 | 2) => 1,
            (0 | 1, 1) => 2,
            (0 | 1, _) | (_, 0 | 1) => 3,
            (_, 2) => 4,
            _ => 5,
        };
        let header = block.get(..header_len).ok_or_else(short)?;
        let header = header.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte));
        let rest = &block[header_len..];
        let (len, packed_len) = match header_len {
            1 => ((header >> 3) as usize, 0),
            2 => ((header >> 4) as usize, 0),
            3 if first & 3 < 2 => ((header >> 4) as usize, 0),
            _ => {
                let bits = [10, 14, 18][header_len - 3];
                let mask = (1 << bits) - 1;
                ((header >> 4 & mask) as usize, (header >> (4 + bits) & mask) as usize)
            }
        };
        if len > max {
            return Err(broken(format_args!("{max} literals or less"), len));
        }
        literals.clear();
        if first & 3 == 0 {
            let (raw, rest) = rest.split_at_checked(len).ok_or_else(short)?;
            literals.extend_from_slice(raw);
            return Ok(rest);
        }
        if first & 3 == 1 {
            let (&byte, rest) = rest.split_first().ok_or_else(short)?;
            literals.resize(len, byte);
            return Ok(rest);
        }
        let (mut packed, rest) = rest.split_at_checked(packed_len).ok_or_else(short)?;
        if first & 3 == 2 {
            let len = self.codes.read(packed)?;
            packed = &packed[len..];
        }
        if !self.codes.known {
            return Err(broken("Huffman codes of an earlier block", "none"));
        }
        literals.resize(len, 0);
        if len == 0 {
            return Err(broken("literals", "none, compressed"));
        } else if format == 0 {
            self.codes.decode(packed, literals)?;
        } else {
            self.codes.decode_four(packed, needed, literals)?;
        }
        Ok(rest)
    }

    /// Decodes a block to `out` from `start` on, at most `max` bytes. Returns the end of the
    /// decoded bytes. Matches can refer to all earlier bytes of `out`, and to the bytes of
    /// `dictionary`, which precede `out`. Stops when `needed` bytes of `out` are decoded.
    pub(super) fn decode(
        &mut self,
        block: &[u8],
        dictionary: &[u8],
        out: &mut [u8],
        (start, needed): (usize, usize),
        max: usize,
        literals: &mut Vec<u8>,
    ) -> Result<usize, Fault> {
        let max = max.min(out.len() - start);
        let mut data = self.literals(block, max, needed.saturating_sub(start), literals)?;
        let short = || broken("sequences", "the end of the block");
        let count = match *data {
            [low @ 0..128, ref rest @ ..] => {
                data = rest;
                usize::from(low)
            }
            [high @ 128..=254, low, ref rest @ ..] => {
                data = rest;
                usize::from(high - 128) << 8 | usize::from(low)
            }
            [255, low, high, ref rest @ ..] => {
                data = rest;
                usize::from(u16::from_le_bytes([low, high])) + 0x7f00
            }
            _ => return Err(short()),
        };
        let end = start + max;
        let literals_len = literals.len();
        literals.resize(literals_len + WORD, 0);
        let mut at = start;
        let mut taken = 0;
        if count > 0 {
            let (&modes, rest) = data.split_first().ok_or_else(short)?;
            data = rest;
            if modes & 3 != 0 {
                return Err(broken("0 in the reserved bits of a sequence header", modes & 3));
            }
            LITERAL_LEN.set(&mut self.literal_len, modes >> 6, &mut data)?;
            OFFSET.set(&mut self.offset, modes >> 4, &mut data)?;
            MATCH_LEN.set(&mut self.match_len, modes >> 2, &mut data)?;
            let Self { literal_len: literal_lens, offset: offsets, match_len: match_lens, .. } =
                self;
            let mut bits = Bits::new(data)?;
            let mut literal_state = literal_lens.start(&mut bits);
            let mut offset_state = offsets.start(&mut bits);
            let mut match_state = match_lens.start(&mut bits);
            let recent = &mut self.offsets;
            for left in (0..count).rev() {
                bits.refill();
                let value = u64::from(offset_state.base) + bits.read(offset_state.extra.into());
                if offset_state.extra + match_state.extra + literal_state.extra > 56 {
                    bits.refill();
                }
                let match_len =
                    match_state.base as usize + bits.read(match_state.extra.into()) as usize;
                let literal_len =
                    literal_state.base as usize + bits.read(literal_state.extra.into()) as usize;
                let offset = next_offset(recent, value, literal_len == 0) as usize;
                if left > 0 {
                    bits.refill();
                    literal_state = literal_lens.next(literal_state, &mut bits);
                    match_state = match_lens.next(match_state, &mut bits);
                    offset_state = offsets.next(offset_state, &mut bits);
                }

                if literal_len > literals_len - taken || literal_len + match_len > end - at {
                    return Err(broken("a sequence that fits", "a longer one"));
                }
                if literal_len <= WORD && out.len() - at >= WORD {
                    out[at..at + WORD].copy_from_slice(&literals[taken..taken + WORD]);
                } else {
                    out[at..at + literal_len]
                        .copy_from_slice(&literals[taken..taken + literal_len]);
                }
                taken += literal_len;
                at += literal_len;
                let mut rest = match_len;
                if offset > at {
                    let back = offset - at;
                    if back > dictionary.len() {
                        return Err(broken(
                            format_args!("an offset up to {}", at + dictionary.len()),
                            offset,
                        ));
                    }
                    let from = dictionary.len() - back;
                    let part = match_len.min(back);
                    out[at..at + part].copy_from_slice(&dictionary[from..from + part]);
                    at += part;
                    rest -= part;
                }
                if offset == 0 {
                    return Err(broken("an offset over 0", 0));
                }
                if rest > 0 {
                    repeat(out, at, offset, rest);
                    at += rest;
                }
                if at >= needed {
                    return Ok(at);
                }
            }
            if bits.left != 0 {
                return Err(broken("bits for all sequences", format_args!("{} left", bits.left)));
            }
        } else if !data.is_empty() {
            return Err(broken("the end of the block", "more"));
        }
        let last = &literals[taken..literals_len];
        if last.len() > end - at {
            return Err(broken("literals that fit", "more"));
        }
        out[at..at + last.len()].copy_from_slice(last);
        Ok(at + last.len())
    }
}

/// Returns the offset that `value` represents: one of the `recent` offsets, or a new offset.
#[inline(always)]
fn next_offset(recent: &mut [u32; 3], value: u64, no_literals: bool) -> u32 {
    if value > 3 {
        let offset = (value - 3) as u32;
        *recent = [offset, recent[0], recent[1]];
        return offset;
    }
    match value as u32 + u32::from(no_literals) {
        1 => recent[0],
        2 => {
            recent.swap(0, 1);
            recent[0]
        }
        3 => {
            *recent = [recent[2], recent[0], recent[1]];
            recent[0]
        }
        _ => {
            *recent = [recent[0].wrapping_sub(1), recent[0], recent[1]];
            recent[0]
        }
    }
}
