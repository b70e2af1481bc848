//! The gaps of a contiguous frame: bytes between the header and the index that no chunk uses.
//!
//! The index states where chunks start, and the header of each chunk states its length. Therefore
//! the gaps follow from the frame, but finding them takes a read for each chunk. An outline that
//! was read from a source finds the gaps before a change that makes a gap, if a sample shows that
//! there are enough of them ([`Outline::survey`]).

use std::mem;
use std::ops::Range;

use super::header::Layout;
use super::offset::Offset;
use super::offsets::PER_BLOCK;
use super::outline::Outline;
use super::space::{Ranges, SAMPLE, SMALL};
use crate::chunk::{self, EXTENDED_HEADER_LEN};
use crate::{Error, ReadAt};

/// All gaps are searched if more than this number of positions of a sample are in gaps.
const FEW: usize = SAMPLE / 8;
/// The number of headers of chunks that are read at once.
const HEADS: usize = 512;
/// The number of lengths that consecutive changes give to a frame, see [`Outline::seal`].
const LENGTHS: u64 = 1024;

/// A chunk that [`Outline::relocate`] moves.
///
/// ```
/// use blosc2_format::chunk::{Encoder, Params};
/// use blosc2_format::frame::{Layout, Move, Outline, Sizes};
///
/// let chunk = Encoder::new(Params::default())?.encode(&[7; 800])?;
/// let (len, mut outline) = (chunk.len() as u64, Outline::new(Params::default(), Layout::Contiguous));
/// outline.insert(0, &chunk)?;
/// outline.insert(1, &chunk)?;
/// outline.remove(0, Sizes { nbytes: 800, cbytes: chunk.len() as u32 })?;
/// let moves = outline.relocate(0, u64::MAX, true)?;
/// assert_eq!(moves, [Move { from: len, to: 0, len }]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The position of the chunk, in bytes after the end of the header.
    pub from: u64,
    /// The new position.
    pub to: u64,
    /// The stored size of the chunk, in bytes.
    pub len: u64,
}

impl Outline {
    /// Finds the gaps of a contiguous frame, so that changes use them. Call this method before a
    /// change that makes a gap of about `bytes` bytes. Without it, the gaps of a frame that was
    /// read are not used.
    ///
    /// The method reads nothing if the gaps are known already or do not matter. Otherwise it reads
    /// the headers of some chunks, and of all chunks if some of these are followed by gaps. The gaps
    /// stay unknown if chunks overlap, or if the header of a chunk is invalid. `source` must be the
    /// source that the outline was [read](Self::read) from.
    ///
    /// # Errors
    /// - [`Error::Io`]: reading from `source` fails;
    /// - [`Error::Format`]: a part of the index is invalid;
    /// - [`Error::Argument`]: the index is not [loaded](Self::load).
    pub fn survey<R: ReadAt + ?Sized>(&mut self, source: &R, bytes: u64) -> Result<(), Error> {
        if self.header.layout != Layout::Contiguous || !self.space.is_due(bytes) {
            return Ok(());
        }
        self.offsets.decode(0)?;
        let is_large = self.offsets.len() > SAMPLE as u64;
        (self.space.vacated, self.space.accepted) = (bytes, self.space.stored_end / 8);
        if is_large && self.sample(source)? <= FEW {
            return Ok(());
        }
        self.space.is_costly = self.find_gaps(source)? && is_large;
        Ok(())
    }

    /// Finds all gaps of a contiguous frame, see [`survey`](Self::survey). Returns whether they are
    /// known; they are not if the outline has unstored changes, chunks overlap, or the header of a
    /// chunk is invalid.
    ///
    /// # Errors
    /// Fails with the errors of [`survey`](Self::survey).
    pub fn find_gaps<R: ReadAt + ?Sized>(&mut self, source: &R) -> Result<bool, Error> {
        if self.space.is_known() || self.header.layout != Layout::Contiguous {
            return Ok(true);
        }
        if self.space.is_changed {
            return Ok(false);
        }
        self.offsets.decode(0)?;
        let stored_end = self.space.stored_end;
        // Chunks after this end are new.
        let places: Vec<u64> =
            self.offsets.by_place().map(|(place, _)| place).filter(|&at| at < stored_end).collect();
        let (mut free, mut end) = (Ranges::default(), 0);
        for places in places.chunks(HEADS) {
            for (&place, len) in places.iter().zip(self.lens(source, places)?) {
                let Some(len) = len.filter(|_| place >= end) else {
                    self.space.accepted = u64::MAX;
                    return Ok(false);
                };
                free.add(end, place);
                end = place + len;
            }
        }
        free.add(end, stored_end);
        self.space.is_padded = end < stored_end;
        self.space.free = Some(free);
        Ok(true)
    }

    /// Returns the number of positions of a sample of [`SAMPLE`] positions that are in gaps.
    fn sample<R: ReadAt + ?Sized>(&self, source: &R) -> Result<usize, Error> {
        let end = self.space.stored_end;
        // SplitMix64. The seed changes with each change of the frame.
        let mut state = end ^ self.header.nbytes.rotate_left(32) ^ self.offsets.len() << 48;
        let mut random = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
            mixed ^ mixed >> 31
        };
        let mut at: Vec<u64> = (0..SAMPLE).map(|_| random() % end).collect();
        at.sort_unstable();
        let mut before = [None; SAMPLE];
        for place in self.offsets.places() {
            if let Some(last) = before.get_mut(at.partition_point(|&at| at < place)) {
                *last = (*last).max(Some(place));
            }
        }
        for number in 1..SAMPLE {
            before[number] = before[number].max(before[number - 1]);
        }
        let places: Vec<u64> = before.iter().flatten().copied().collect();
        let lens = self.lens(source, &places)?;
        let ends = places.iter().zip(lens).map(|(place, len)| place + len.unwrap_or(end));
        let ends = before.iter().filter(|place| place.is_none()).map(|_| 0).chain(ends);
        Ok(at.iter().zip(ends).filter(|(at, end)| *at >= end).count())
    }

    /// Returns the stored sizes of the chunks at these positions; `None` for invalid headers.
    fn lens<R: ReadAt + ?Sized>(
        &self,
        source: &R,
        places: &[u64],
    ) -> Result<Vec<Option<u64>>, Error> {
        let mut heads = vec![[0; EXTENDED_HEADER_LEN]; places.len()];
        let base = self.header_len();
        let heads_at = places.iter().zip(&mut heads);
        let mut ranges: Vec<(u64, &mut [u8])> =
            heads_at.map(|(place, head)| (base + place, &mut head[..])).collect();
        source.read_ranges_at(&mut ranges)?;
        let len = |(place, head): (&u64, &[u8; EXTENDED_HEADER_LEN])| {
            let len = u64::from(chunk::Header::parse(head).ok()?.cbytes);
            Some(len).filter(|len| place + len <= self.space.stored_end)
        };
        Ok(places.iter().zip(&heads).map(len).collect())
    }

    /// Returns the number of bytes that [`relocate`](Self::relocate) should leave in gaps, or `None`
    /// if the gaps are acceptable or not known.
    pub fn acceptable_gaps(&mut self) -> Option<u64> {
        let wasted = self.space.wasted(self.header.cbytes)?;
        let used = self.header.cbytes.saturating_sub(wasted);
        // If finding the gaps took long, the next search should be a long time off.
        let part = if mem::take(&mut self.space.is_costly) { 16 } else { 2 };
        (wasted > SMALL.max(used / part)).then_some((SMALL / 2).max(used / 16))
    }

    /// Moves chunks of a contiguous frame, until at most `goal` bytes are in gaps, or about `max`
    /// bytes are moved, at least one chunk. Returns the moves. There are none if the goal is
    /// reached, or if the gaps are [not known](Self::survey).
    ///
    /// The caller reads the bytes of all moved chunks, and then stores them at their new positions.
    /// The new position of a chunk can overlap old positions.
    ///
    /// If `in_order` is `true`, the chunks keep their order in the frame. Otherwise the last chunks
    /// move to gaps, which moves fewer bytes.
    ///
    /// # Errors
    /// - [`Error::Format`]: a part of the index is invalid;
    /// - [`Error::Argument`]: a part of the index is not [loaded](Self::load).
    pub fn relocate(&mut self, goal: u64, max: u64, in_order: bool) -> Result<Vec<Move>, Error> {
        let mut moves = Vec::new();
        if self.wasted() <= goal {
            return Ok(moves);
        }
        self.offsets.decode(0)?;
        let mut chunks: Vec<(u64, u64)> = self.offsets.by_place().collect();
        self.header.cbytes = self.space.trim(self.header.cbytes);
        // The number of moved bytes, and the highest new position.
        let (mut moved, mut top) = (0, 0);
        while !in_order && moved < max && self.wasted() > goal {
            let Some(&(from, number)) = chunks.last().filter(|&&(from, _)| from >= top) else {
                break;
            };
            let len = self.end_of(from, None) - from;
            let free = self.space.free.as_ref();
            let Some(to) = free.and_then(|free| free.fitting(len)).filter(|&to| to < from) else {
                break;
            };
            chunks.pop();
            self.space.take(to, to + len);
            self.space.release(from, from + len);
            self.header.cbytes = self.space.trim(self.header.cbytes);
            self.offsets.set(number, Offset::At(to));
            moves.push(Move { from, to, len });
            (moved, top) = (moved + len, top.max(to));
        }
        if !moves.is_empty() {
            return Ok(moves);
        }
        // The chunks after the first gap move to its start.
        let first = self.space.free.as_ref().and_then(|free| free.ends.keys().next().copied());
        let Some(first) = first else { return Ok(moves) };
        let rest = chunks.partition_point(|&(place, _)| place < first);
        let (mut to, mut end) = (first, first);
        for (at, &(from, number)) in chunks.iter().enumerate().skip(rest) {
            if moved >= max {
                break;
            }
            end = self.end_of(from, chunks.get(at + 1).map(|&(place, _)| place));
            let len = end - from;
            self.offsets.set(number, Offset::At(to));
            moves.push(Move { from, to, len });
            moved += len;
            to += len;
        }
        self.space.is_reused |= !moves.is_empty();
        if let Some(free) = &mut self.space.free {
            free.remove(first, end);
        }
        self.space.pending.remove(first, end);
        self.space.pending.add(to, end);
        self.header.cbytes = self.space.trim(self.header.cbytes);
        Ok(moves)
    }

    /// Ends a change of a contiguous frame that other programs may be reading. Call this method
    /// before the change is stored. Returns a range that must be overwritten with zeros, in bytes
    /// after the end of the header.
    ///
    /// A reader with an old index must notice that the bytes of a chunk were overwritten by another
    /// chunk. Therefore the index then moves, so that the header of the frame differs from the
    /// headers of the last 1,023 states. Space for the index, of up to 1,023 bytes, remains as a gap.
    ///
    /// If `reserve` is `true`, and appended chunks are short in comparison with a long index, unused bytes
    /// remain between the chunks and the index: one byte for each chunk, and at most the size of the
    /// index. Later calls keep the index at its place until these bytes are used. A change that stores
    /// another chunk for an existing one moves the index, because the header of the frame must differ.
    pub fn seal(&mut self, reserve: bool) -> Range<u64> {
        let (stored_end, end) = (self.space.stored_end, self.header.cbytes);
        let old = stored_end + mem::take(&mut self.spare);
        // Without the gap of an earlier call, the length could be that of a recent state.
        let is_shorter = self.space.is_padded && end < stored_end;
        let is_needed = self.space.is_reused || is_shorter;
        if self.header.nbytes == 0 {
            return old..old;
        }
        if !is_needed || !self.space.is_known() {
            let count = self.offsets.len();
            let is_kept = end == stored_end || !self.space.is_changed;
            if !reserve || !is_kept || count <= PER_BLOCK as u64 {
                return old..old;
            }
            let most = count.min(self.offsets.stored_len());
            if (stored_end..=old).contains(&end) {
                self.spare = old - end;
            } else if end > old && (end - stored_end) * 8 <= most {
                self.spare = most;
                return end..end + most;
            }
            return old..old;
        }
        let end = self.space.trim(end);
        self.header.cbytes = end + (old + 1).wrapping_sub(end) % LENGTHS;
        if let Some(free) = &mut self.space.free {
            free.add(end, self.header.cbytes);
        }
        end..self.header.cbytes
    }

    /// Returns the gaps of the stored frame that the changes since then use. If these changes are
    /// not stored completely, the bytes of these gaps need not be restored.
    pub fn reused(&self) -> &[(u64, u64)] {
        &self.space.taken
    }

    /// Returns the unused bytes between the chunks and the index of the stored frame, until
    /// [`seal`](Self::seal) is called.
    pub fn spare(&self) -> Range<u64> {
        self.space.stored_end..self.space.stored_end + self.spare
    }

    /// Releases the [unused bytes](Self::spare) before the index, which then moves to the end of the
    /// chunks. Returns whether there were such bytes.
    pub fn release_spare(&mut self) -> bool {
        mem::take(&mut self.spare) > 0
    }

    /// Returns the number of bytes in the gaps between chunks, as far as they are known.
    fn wasted(&self) -> u64 {
        self.space.wasted(self.header.cbytes).unwrap_or(0)
    }

    /// Returns the end of the chunk at `place`. `next` is the position of the next chunk. The gaps
    /// must be known.
    pub(super) fn end_of(&self, place: u64, next: Option<u64>) -> u64 {
        let ends = next.into_iter().chain(self.space.after(place));
        ends.fold(self.header.cbytes, u64::min)
    }

    /// Releases the bytes of a chunk.
    pub(super) fn release(&mut self, start: u64, end: u64) {
        self.space.release(start, end);
        self.header.cbytes = self.space.trim(self.header.cbytes);
    }

    /// Replaces the bytes of the chunk at `place` by a chunk of `len` bytes. `next` is the position
    /// of the next chunk.
    pub(super) fn overwrite(&mut self, place: u64, next: Option<u64>, len: u64) {
        let end = place + len;
        if !self.space.is_known() {
            self.header.cbytes = next.map_or(end, |_| self.header.cbytes.max(end));
            return;
        }
        let old_end = self.end_of(place, next);
        self.header.cbytes = self.header.cbytes.max(end);
        if old_end < end {
            self.space.take(old_end, end);
        } else {
            self.release(end, old_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use blosc2_testing::Rng;

    use super::*;
    use crate::chunk::{Encoder, Params, Special, special};
    use crate::frame::Sizes;

    /// A chunk of `len` random bytes.
    fn chunk(len: usize, seed: u64) -> Vec<u8> {
        let params = Params { level: 0, ..Params::default() };
        Encoder::new(params).unwrap().encode(&Rng(seed).bytes(len)).unwrap()
    }

    /// Returns the outline of a stored frame of four chunks, and the sizes of a chunk.
    fn four_chunks() -> (Outline, Sizes) {
        let mut outline = Outline::new(Params::default(), Layout::Contiguous);
        let sizes = Sizes { nbytes: 800, cbytes: 832 };
        for number in 0..4 {
            outline.insert(number, chunk(800, number)).unwrap();
        }
        outline.committed();
        (outline, sizes)
    }

    /// A reader compares the header of the frame to notice that a gap was used.
    #[test]
    fn a_frame_that_uses_a_gap_has_another_length_than_before() {
        let (mut outline, sizes) = four_chunks();
        let mut seen = std::collections::HashSet::new();
        for number in 0..2500 {
            // The bytes of one chunk become a gap, which the next change uses for another one.
            let zeros = special(&Params::default(), Special::Zeros, 800, &[]).unwrap();
            outline.replace(number % 3, sizes, zeros, true).unwrap();
            outline.seal(false);
            outline.committed();
            let (old, next) = (outline.cbytes(), (number + 1) % 3);
            let was = if outline.decoded(next).unwrap().place().is_some() { 832 } else { 0 };
            let was = Sizes { cbytes: was, ..sizes };
            outline.replace(next, was, chunk(800, number), false).unwrap();
            let moved = outline.seal(false);
            assert_eq!(moved.end, outline.cbytes());
            outline.committed();
            assert_eq!(outline.cbytes() % LENGTHS, (old + 1) % LENGTHS);
            assert!(outline.cbytes() < 4 * 832 + LENGTHS);
            // Each of the two changes takes one of the lengths.
            if (3..LENGTHS / 2).contains(&number) {
                assert!(seen.insert(outline.cbytes()), "change {number}");
            }
        }
    }

    /// Returns the outline of a stored frame of four chunks, whose second chunk was replaced by zeros, and
    /// the sizes of a chunk. A change has then stored the third chunk in the gap.
    fn with_used_gap() -> (Outline, Sizes) {
        let (mut outline, sizes) = four_chunks();
        let zeros = special(&Params::default(), Special::Zeros, 800, &[]).unwrap();
        outline.replace(1, sizes, zeros, true).unwrap();
        outline.seal(false);
        outline.committed();
        outline.replace(2, sizes, chunk(800, 9), false).unwrap();
        assert_eq!(outline.reused(), [(832, 1664)]);
        (outline, sizes)
    }

    #[test]
    fn gaps_that_the_stored_frame_needs_are_used_after_the_commit() {
        let (mut outline, sizes) = four_chunks();
        outline.remove(1, sizes).unwrap();
        let insert =
            |outline: &mut Outline, seed| outline.insert(3, chunk(800, seed)).unwrap()[0].0;
        assert_eq!(insert(&mut outline, 5), 4 * 832);
        assert_eq!(outline.reused(), []);
        outline.committed();
        assert_eq!(insert(&mut outline, 6), 832);
        // A gap that this change has used, and vacates, can be used again at once.
        assert_eq!(outline.reused(), [(832, 2 * 832)]);
        outline.remove(3, sizes).unwrap();
        assert_eq!(insert(&mut outline, 7), 832);
    }

    #[test]
    fn a_frame_that_becomes_shorter_has_no_recent_length() {
        let (mut outline, _) = with_used_gap();
        let long = Sizes { nbytes: 1600, cbytes: 1632 };
        let before = outline.space.stored_end;
        outline.seal(false);
        outline.committed();
        let mut seen = std::collections::HashSet::from([before, outline.cbytes()]);
        for number in 0..100 {
            // Too long for the gaps.
            outline.insert(4, chunk(1600, number)).unwrap();
            outline.seal(false);
            outline.committed();
            outline.remove(4, long).unwrap();
            outline.seal(false);
            outline.committed();
            assert!(seen.insert(outline.cbytes()), "change {number}");
        }
    }

    /// The gaps that a change has used are elsewhere in the source if the header becomes longer.
    #[test]
    fn a_longer_header_moves_the_gaps() {
        let (mut outline, sizes) = with_used_gap();
        outline.remove_all(&[0, 1, 2, 3], &[Sizes { cbytes: 0, ..sizes }; 4]).unwrap();
        outline.add_metalayer("a", &[0; 100]).unwrap();
        outline.insert(0, chunk(800, 5)).unwrap();
        assert_eq!(outline.reused(), []);
    }

    #[test]
    fn ranges_are_sets_of_bytes() {
        for seed in 0..200 {
            let (mut rng, mut ranges) = (Rng(seed), Ranges::default());
            let mut model = [false; 80];
            for _ in 0..40 {
                let start = rng.index(70);
                let end = start + rng.index(10);
                let is_added = rng.below(2) == 0;
                model[start..end].fill(is_added);
                match is_added {
                    true => ranges.add(start as u64, end as u64),
                    false => ranges.remove(start as u64, end as u64),
                }
                let mut found = [false; 80];
                let mut last = None;
                for (&start, &end) in &ranges.ends {
                    assert!(start < end && last.is_none_or(|last| last < start), "seed {seed}");
                    found[start as usize..end as usize].fill(true);
                    last = Some(end);
                }
                assert_eq!(found, model, "seed {seed}");
                let count = model.iter().filter(|is_in| **is_in).count();
                assert_eq!(ranges.total, count as u64, "seed {seed}");
                for len in 1..20 {
                    let fits = ranges.ends.iter().map(|(&start, &end)| (end - start, start));
                    let shortest = fits.filter(|fit| fit.0 >= len).min().map(|fit| fit.1);
                    assert_eq!(ranges.fitting(len), shortest, "seed {seed}");
                }
            }
        }
    }
}
