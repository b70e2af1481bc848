//! LZ4 blocks, the format of the codecs LZ4 and LZ4HC.
//!
//! A block is a list of sequences: a byte with two lengths, literals, and a match of at least four
//! bytes. The last sequence consists of literals only.

use super::{Fault, common, repeat};

/// The length of the shortest match.
const MIN_MATCH: usize = 4;
/// The number of bytes at the end of the data that are always literals.
const LAST_LITERALS: usize = 5;
/// The minimum distance of the start of a match from the end of the data.
const MATCH_LIMIT: usize = 12;

/// Decompresses a block, which must fill `out` exactly. Matches can refer to bytes of `dictionary`.
/// Stops when `needed` bytes are decompressed.
pub(super) fn decompress(
    block: &[u8],
    dictionary: &[u8],
    needed: usize,
    out: &mut [u8],
) -> Result<(), Fault> {
    let needed = super::early(needed, out);
    let short = |at| Fault::new(at, "another byte", "the end of the stream");
    if out.is_empty() && block != [0] {
        return Err(Fault::new(0, "a single byte 0, because there is no data", "something else"));
    }
    let (mut read, mut at) = (0, 0);
    loop {
        let start = read;
        let token;
        let distance;
        // Most sequences have few literals, so that all bytes before the match fit into two words.
        let near = block.get(read..).and_then(|rest| rest.first_chunk::<17>());
        let near = near.filter(|near| near[0] < 0xf0 && out.len() - at >= 32);
        if let Some(near) = near {
            token = near[0];
            let literals = usize::from(token >> 4);
            out[at..at + 16].copy_from_slice(&near[1..]);
            at += literals;
            distance = usize::from(u16::from_le_bytes([near[literals + 1], near[literals + 2]]));
            read += literals + 3;
        } else {
            token = *block.get(read).ok_or_else(|| short(read))?;
            read += 1;
            let mut literals = usize::from(token >> 4);
            if literals == 15 {
                literals = long(block, &mut read, out.len()).ok_or_else(|| too_long(start))?;
            }
            if literals > block.len() - read {
                return Err(Fault::new(
                    read,
                    format_args!("{literals} literals"),
                    block.len() - read,
                ));
            }
            if literals > out.len() - at {
                return Err(too_long(start));
            }
            out[at..at + literals].copy_from_slice(&block[read..read + literals]);
            read += literals;
            at += literals;
            if read == block.len() {
                break;
            }
            if at >= needed {
                return Ok(());
            }
            // The format requires this from encoders, and the C decoder checks it.
            if out.len() - at < MATCH_LIMIT {
                return Err(Fault::new(start, "literals to the end of the data", "a match"));
            }
            let Some(&[low, high]) = block.get(read..read + 2) else {
                return Err(short(block.len()));
            };
            distance = usize::from(u16::from_le_bytes([low, high]));
            read += 2;
        }

        let mut len = usize::from(token & 15);
        if len == 15 {
            len = long(block, &mut read, out.len()).ok_or_else(|| too_long(start))?;
        }
        len += MIN_MATCH;
        if len + LAST_LITERALS > out.len() - at {
            return Err(too_long(start));
        }
        if distance == 0 || distance > at + dictionary.len() {
            return Err(Fault::new(
                start,
                format_args!("a distance from 1 to {}", at + dictionary.len()),
                distance,
            ));
        }
        if distance > at {
            // The match starts in the dictionary, and can continue in the data.
            let from = dictionary.len() - (distance - at);
            let part = len.min(distance - at);
            out[at..at + part].copy_from_slice(&dictionary[from..from + part]);
            at += part;
            len -= part;
            if len > 0 {
                repeat(out, at, distance, len);
            }
        } else {
            repeat(out, at, distance, len);
        }
        at += len;
        if at >= needed {
            return Ok(());
        }
    }
    if at < out.len() {
        return Err(Fault::new(read, format_args!("{} bytes of data", out.len()), at));
    }
    Ok(())
}

/// Reads a length that continues after the token: adds bytes up to and including the first byte
/// that differs from 255. Returns `None` if the block ends before this byte, or if the length
/// exceeds `max` before this byte.
#[inline]
fn long(block: &[u8], read: &mut usize, max: usize) -> Option<usize> {
    let mut len = 15;
    loop {
        let more = *block.get(*read)?;
        *read += 1;
        len += usize::from(more);
        if more != 255 {
            return Some(len);
        }
        if len > max {
            return None;
        }
    }
}

#[cold]
fn too_long(at: usize) -> Fault {
    Fault::new(at, "a sequence that fits in the data", "a longer one")
}

/// The maximum distance.
const MAX_DISTANCE: usize = 65535;
/// For data of up to this length, positions have 16 bits, and the distance of every match is valid.
const SHORT_DATA: usize = (64 << 10) + MATCH_LIMIT - 1;
/// The maximum size of the data of a block.
const MAX_DATA: usize = 0x7e00_0000;
/// The step between searched positions increases by one after each `2^SKIP` positions without a
/// match.
const SKIP: u32 = 6;

/// Compresses `data` with this acceleration, which is at least 1. The output is identical to that
/// of LZ4 1.10.0 on 64-bit machines for an output buffer of the size of `out`. Returns `None` if
/// the output does not fit into `out`.
///
/// `table` is reused for the next block.
pub(super) fn compress(
    acceleration: u8,
    data: &[u8],
    out: &mut [u8],
    table: &mut Vec<u32>,
) -> Option<usize> {
    if data.len() > MAX_DATA {
        return None;
    }
    let mut out = BlockOutput { out, at: 0 };
    let mut anchor = 0;
    if data.len() > MATCH_LIMIT {
        let short = data.len() < SHORT_DATA;
        table.clear();
        table.resize(if short { 1 << 13 } else { 1 << 12 }, 0);
        let mut matcher = Matcher { data, table, short };
        // The last position where a match can start, and the exclusive end of matches.
        let (last, end) = (data.len() - MATCH_LIMIT, data.len() - LAST_LITERALS);
        matcher.remember(matcher.hash(0), 0);
        let mut at = 1;
        while let Some((mut from, mut start)) = matcher.search(at, last, acceleration) {
            while start > anchor && from > 0 && data[start - 1] == data[from - 1] {
                start -= 1;
                from -= 1;
            }
            let mut token = out.literals(&data[anchor..start])?;
            loop {
                let more = common(&data[from + MIN_MATCH..], &data[start + MIN_MATCH..end]);
                out.matched(token, start - from, more)?;
                anchor = start + MIN_MATCH + more;
                if anchor > last {
                    return out.last(&data[anchor..]);
                }
                matcher.remember(matcher.hash(anchor - 2), anchor - 2);
                // Often the next match follows directly.
                let Some(next) = matcher.check(matcher.hash(anchor), anchor) else { break };
                (from, start) = (next, anchor);
                token = out.token()?;
            }
            at = anchor + 1;
        }
    }
    out.last(&data[anchor..])
}

/// Finds matches: records the last position of each hash.
struct Matcher<'a> {
    data: &'a [u8],
    table: &'a mut [u32],
    short: bool,
}

impl Matcher<'_> {
    fn word(&self, at: usize) -> u32 {
        self.data
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |w| u32::from_le_bytes(*w))
    }

    /// Returns the hash of four bytes in short data, of five in long data.
    fn hash(&self, at: usize) -> usize {
        if self.short {
            return (self.word(at).wrapping_mul(2_654_435_761) >> 19) as usize;
        }
        let bytes = self.data.get(at..).and_then(|rest| rest.first_chunk());
        let word = bytes.map_or(0, |word| u64::from_le_bytes(*word));
        ((word << 24).wrapping_mul(889_523_592_379) >> 52) as usize
    }

    fn remember(&mut self, hash: usize, at: usize) -> usize {
        std::mem::replace(&mut self.table[hash], at as u32) as usize
    }

    /// Records `at` as the last position of its four bytes. Returns the previous position of these
    /// bytes, if its distance is valid.
    fn check(&mut self, hash: usize, at: usize) -> Option<usize> {
        let from = self.remember(hash, at);
        (at - from <= MAX_DISTANCE && self.word(from) == self.word(at)).then_some(from)
    }

    /// Returns the first match from `at` on: its source and its start. The step grows with the
    /// number of positions without a match.
    fn search(&mut self, at: usize, last: usize, acceleration: u8) -> Option<(usize, usize)> {
        let mut tried = u32::from(acceleration) << SKIP;
        let mut step = 1;
        let mut here = at;
        let mut hash = self.hash(here);
        loop {
            let next = here + step;
            step = (tried >> SKIP) as usize;
            tried += 1;
            if next > last + 1 {
                return None;
            }
            let next_hash = self.hash(next);
            if let Some(from) = self.check(hash, here) {
                return Some((from, here));
            }
            (here, hash) = (next, next_hash);
        }
    }
}

/// Writes sequences. A method returns `None` if there is no space for the sequence, or for the
/// minimum number of bytes that must follow.
struct BlockOutput<'a> {
    out: &'a mut [u8],
    at: usize,
}

impl BlockOutput<'_> {
    fn check_space(&self, len: usize) -> Option<()> {
        (self.at + len <= self.out.len()).then_some(())
    }

    /// Writes an empty token and returns its position.
    fn token(&mut self) -> Option<usize> {
        *self.out.get_mut(self.at)? = 0;
        self.at += 1;
        Some(self.at - 1)
    }

    /// Writes the rest of a length of at least 15.
    fn rest(&mut self, len: usize) -> Option<()> {
        let mut rest = len - 15;
        while rest >= 255 {
            *self.out.get_mut(self.at)? = 255;
            self.at += 1;
            rest -= 255;
        }
        *self.out.get_mut(self.at)? = rest as u8;
        self.at += 1;
        Some(())
    }

    fn run(&mut self, token: usize, literals: &[u8]) -> Option<()> {
        self.out[token] = (literals.len().min(15) as u8) << 4;
        if literals.len() >= 15 {
            self.rest(literals.len())?;
        }
        self.out.get_mut(self.at..self.at + literals.len())?.copy_from_slice(literals);
        self.at += literals.len();
        Some(())
    }

    /// Writes the token and the literals of a sequence, and returns the position of the token.
    fn literals(&mut self, literals: &[u8]) -> Option<usize> {
        let token = self.token()?;
        self.check_space(literals.len() + literals.len() / 255 + 3 + LAST_LITERALS)?;
        self.run(token, literals)?;
        Some(token)
    }

    /// Writes the match of the sequence that starts at `token`. The match is `more` bytes longer
    /// than the shortest possible match.
    fn matched(&mut self, token: usize, distance: usize, more: usize) -> Option<()> {
        self.out.get_mut(self.at..self.at + 2)?.copy_from_slice(&(distance as u16).to_le_bytes());
        self.at += 2;
        self.check_space(1 + LAST_LITERALS + (more + 240) / 255)?;
        self.out[token] |= more.min(15) as u8;
        if more >= 15 {
            self.rest(more)?;
        }
        Some(())
    }

    /// Writes the last sequence and returns the length of the block.
    fn last(mut self, literals: &[u8]) -> Option<usize> {
        self.check_space(literals.len() + 1 + (literals.len() + 240) / 255)?;
        let token = self.token()?;
        self.run(token, literals)?;
        Some(self.at)
    }
}
