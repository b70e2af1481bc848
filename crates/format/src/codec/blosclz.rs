//! BloscLZ, the codec of Blosc: literal runs and matches, derived from FastLZ.
//!
//! A stream is a sequence of instructions. A byte `n` below 32 is a literal run: the next `n + 1`
//! bytes of the stream are copied to the data. Any other byte is a match: its upper three bits
//! contain a length, and its lower five bits contain the upper part of a distance.

use super::{Fault, common, repeat};

/// Distances of at least this value are written with two more bytes.
const FAR: usize = 8191;

/// Decompresses a stream, which must fill `out` exactly. Stops when `needed` bytes are decompressed.
pub(super) fn decompress(stream: &[u8], needed: usize, out: &mut [u8]) -> Result<(), Fault> {
    let needed = super::early(needed, out);
    let short = |at| Fault::new(at, "another byte", "the end of the stream");
    let mut at = 0;
    // The first instruction is a literal run; its upper bits mark the codec.
    let mut instruction = *stream.first().ok_or_else(|| short(0))? & 31;
    let mut read = 1;
    loop {
        if instruction < 32 {
            let len = usize::from(instruction) + 1;
            if let (Some(literals), Some(room)) =
                (stream[read..].first_chunk::<32>(), out[at..].first_chunk_mut::<32>())
            {
                *room = *literals;
            } else {
                let literals = stream
                    .get(read..read + len)
                    .ok_or_else(|| Fault::new(read, len, stream.len() - read))?;
                out.get_mut(at..at + len)
                    .ok_or_else(|| too_long(read - 1))?
                    .copy_from_slice(literals);
            }
            read += len;
            at += len;
            if read >= stream.len() {
                break;
            }
            if at >= needed {
                return Ok(());
            }
        } else {
            let start = read - 1;
            let mut len = usize::from(instruction >> 5) + 2;
            let mut distance = usize::from(instruction & 31) << 8;
            if len == 9 {
                loop {
                    let more = *stream.get(read).ok_or_else(|| short(read))?;
                    read += 1;
                    len += usize::from(more);
                    if more != 255 {
                        break;
                    }
                    if len > out.len() {
                        return Err(too_long(start));
                    }
                }
            }
            let low = *stream.get(read).ok_or_else(|| short(read))?;
            read += 1;
            distance += usize::from(low) + 1;
            if distance == FAR + 1 {
                let far = stream.get(read..read + 2).ok_or_else(|| short(read))?;
                distance += usize::from(far[0]) << 8 | usize::from(far[1]);
                read += 2;
            }
            if distance > at {
                return Err(Fault::new(start, format_args!("a distance up to {at}"), distance));
            }
            if len > out.len() - at {
                return Err(too_long(start));
            }
            // Like C, the decoder stops at the end of the stream and ignores a match as the last
            // instruction.
            if read >= stream.len() {
                return Err(Fault::new(start, "literals at the end", "a match"));
            }
            repeat(out, at, distance, len);
            at += len;
            if at >= needed {
                return Ok(());
            }
        }
        instruction = stream[read];
        read += 1;
    }
    if at < out.len() {
        return Err(Fault::new(read, format_args!("{} bytes of data", out.len()), at));
    }
    Ok(())
}

#[cold]
fn too_long(at: usize) -> Fault {
    Fault::new(at, "an instruction that fits in the data", "a longer one")
}

/// The length of the longest literal run.
const MAX_RUN: usize = 32;
/// The limit of the distance of a match, exclusive.
const MAX_DISTANCE: usize = 65535 + FAR - 1;
/// The number of bytes at the end of the data in which no match starts.
const TAIL: usize = 12;
/// The number of bytes that the hash of a match covers.
const PREFIX: usize = 4;
/// A match ends this number of bytes before the end of the first differing byte.
const BACK: usize = 4;
const MIN_DATA: usize = 16;
const MIN_ROOM: usize = 66;

const MAX_HASH_BITS: u32 = 14;

/// The settings of a level, from 1 to 9.
struct Level {
    /// The number of bits of the hash.
    hash_bits: u32,
    /// The divisor of the length of the data that determines the part to try first: the last
    /// `length / tried` bytes.
    tried: usize,
    /// The compression ratio that the tried part needs. With a lower ratio, the data is not
    /// compressed.
    worth: f64,
    /// Whether two positions are recorded after a match.
    dense: bool,
}

impl Level {
    fn new(level: u8) -> Self {
        let (hash_bits, tried, worth) = match level {
            0..=1 => (12, 8, 2.0),
            2 => (13, 4, 1.5),
            3 => (14, 4, 1.2),
            4..=6 => (14, 2, 1.2),
            7 => (14, 1, 1.15),
            8 => (14, 1, 1.1),
            _ => (14, 1, 1.0),
        };
        Self { hash_bits, tried, worth, dense: level >= 9 }
    }
}

/// The table of positions, reused for the next stream.
///
/// The `base` of a stream is added to its positions. Therefore the positions of earlier streams
/// need not be cleared.
#[derive(Default)]
pub(super) struct Table {
    positions: Vec<u32>,
    next_base: u32,
}

impl Table {
    /// Returns the base of a stream of `len` bytes.
    fn base(&mut self, len: usize) -> u32 {
        let end =
            u32::try_from(len).ok().and_then(|len| self.next_base.checked_add(len)?.checked_add(1));
        let (base, end) = match end.filter(|_| !self.positions.is_empty()) {
            Some(end) => (self.next_base, end),
            None => {
                self.positions.clear();
                self.positions.resize(1 << MAX_HASH_BITS, 0);
                (1, (len as u32).saturating_add(2))
            }
        };
        self.next_base = end;
        base
    }
}

/// Finds matches: records the last position of each hash.
struct Matcher<'a> {
    data: &'a [u8],
    /// The exclusive end of a match.
    bound: usize,
    positions: &'a mut [u32],
    base: u32,
    shift: u32,
}

/// A match. The length and the distance have the values that are written: the length minus two, the
/// distance minus one.
struct Match {
    len: usize,
    distance: usize,
}

impl<'a> Matcher<'a> {
    fn new(data: &'a [u8], len: usize, table: &'a mut Table, hash_bits: u32) -> Self {
        let base = table.base(data.len());
        let positions = &mut table.positions[..1 << hash_bits];
        Self { data, bound: len.saturating_sub(1), positions, base, shift: 32 - hash_bits }
    }

    fn word(&self, at: usize) -> u32 {
        self.data
            .get(at..)
            .and_then(|rest| rest.first_chunk())
            .map_or(0, |w| u32::from_le_bytes(*w))
    }

    /// Records `at` as the last position of `word`, and returns the previous one, or 0.
    fn remember(&mut self, word: u32, at: usize) -> usize {
        let hash = (word.wrapping_mul(2_654_435_761) >> self.shift) as usize;
        let before = std::mem::replace(&mut self.positions[hash], at as u32 + self.base);
        before.saturating_sub(self.base) as usize
    }

    /// Returns the match at `at`, if at least `PREFIX` bytes match.
    fn find(&mut self, at: usize) -> Option<Match> {
        let word = self.word(at);
        let from = self.remember(word, at);
        let distance = at - from;
        if distance == 0 || distance >= MAX_DISTANCE || self.word(from) != word {
            return None;
        }
        let common = common(&self.data[from + PREFIX..], &self.data[at + PREFIX..self.bound]);
        let end = (at + PREFIX + common + 1).min(self.bound);
        Some(Match { len: end - BACK - at, distance: distance - 1 })
    }

    /// Records the positions after a match that ends at `at`, and returns where to continue.
    fn skip(&mut self, at: usize, dense: bool) -> usize {
        let word = self.word(at);
        self.remember(word, at);
        if dense {
            self.remember(word >> 8, at + 1);
        }
        at + 2
    }
}

/// Estimates the compression ratio of this part from its first bytes.
fn try_ratio(part: &[u8], table: &mut Table, hash_bits: u32) -> f64 {
    let len = part.len().min(1 << hash_bits);
    let mut matcher = Matcher::new(part, len, table, hash_bits);
    let mut at = 0;
    let mut written: usize = 5;
    let mut run: usize = 4;
    while at + TAIL < len {
        match matcher.find(at) {
            Some(found) if found.len >= PREFIX => {
                if run == 0 {
                    written -= 1;
                }
                run = 0;
                if found.len >= 7 {
                    written += (found.len - 7) / 255 + 1;
                }
                written += if found.distance < FAR { 2 } else { 4 };
                at = matcher.skip(at + found.len, false);
                written += 1;
            }
            _ => {
                at += 1;
                written += 1;
                run += 1;
                if run == MAX_RUN {
                    run = 0;
                    written += 1;
                }
            }
        }
    }
    at as f64 / written as f64
}

/// Compresses `data`. The output is identical to that of C-Blosc2 3.3.2 for an output buffer of the
/// size of `out`. Returns `None` if the output does not fit into `out`, or if the tried part of the
/// data does not compress enough.
///
/// `table` is reused for the next stream.
pub(super) fn compress(level: u8, data: &[u8], out: &mut [u8], table: &mut Table) -> Option<usize> {
    let level = Level::new(level);
    let part = &data[data.len() - data.len() / level.tried..];
    if try_ratio(part, table, level.hash_bits) < level.worth {
        return None;
    }
    if data.len() < MIN_DATA || out.len() < MIN_ROOM {
        return None;
    }
    let mut matcher = Matcher::new(data, data.len(), table, level.hash_bits);
    let mut out = BlockOutput { out, at: 0, run: 0 };
    let mut at = 0;
    out.open()?;
    while at < PREFIX {
        out.literal(data[at])?;
        at += 1;
    }
    while at + TAIL < data.len() {
        match matcher.find(at) {
            Some(found) if found.len >= PREFIX && (found.len > 5 || found.distance < FAR) => {
                out.matched(&found)?;
                at = matcher.skip(at + found.len, level.dense);
                out.open()?;
            }
            _ => {
                out.literal(data[at])?;
                at += 1;
            }
        }
    }
    for &byte in &data[at..] {
        out.literal(byte)?;
    }
    out.close();
    // The mark of BloscLZ, in unused bits of the first instruction.
    out.out[0] |= 32;
    Some(out.at)
}

/// Writes instructions, or returns `None` if there is no space.
///
/// A literal run is always open; its instruction is written when its length is known.
struct BlockOutput<'a> {
    out: &'a mut [u8],
    at: usize,
    run: usize,
}

impl BlockOutput<'_> {
    fn check_space(&self, len: usize) -> Option<()> {
        (self.at + len <= self.out.len()).then_some(())
    }

    fn push(&mut self, byte: u8) {
        self.out[self.at] = byte;
        self.at += 1;
    }

    fn open(&mut self) -> Option<()> {
        self.check_space(1)?;
        self.push(MAX_RUN as u8 - 1);
        self.run = 0;
        Some(())
    }

    fn literal(&mut self, byte: u8) -> Option<()> {
        // C-Blosc2 requires space for the next run even if this run continues.
        self.check_space(2)?;
        self.push(byte);
        self.run += 1;
        if self.run == MAX_RUN {
            self.push(MAX_RUN as u8 - 1);
            self.run = 0;
        }
        Some(())
    }

    fn close(&mut self) {
        if self.run == 0 {
            self.at -= 1;
        } else {
            self.out[self.at - self.run - 1] = self.run as u8 - 1;
        }
    }

    fn matched(&mut self, found: &Match) -> Option<()> {
        self.close();
        let far = found.distance >= FAR;
        let (high, rest) = if far {
            (31, found.distance - FAR)
        } else {
            ((found.distance >> 8) as u8, found.distance)
        };
        let tail = if far { 3 } else { 1 };
        if found.len < 7 {
            self.check_space(1 + tail)?;
            self.push((found.len as u8) << 5 | high);
        } else {
            self.check_space(1)?;
            self.push(7 << 5 | high);
            let mut more = found.len - 7;
            while more >= 255 {
                self.check_space(1)?;
                self.push(255);
                more -= 255;
            }
            self.check_space(1 + tail)?;
            self.push(more as u8);
        }
        if far {
            self.push(255);
            self.push((rest >> 8) as u8);
        }
        self.push(rest as u8);
        Some(())
    }
}
