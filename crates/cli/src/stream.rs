//! Streaming of selected items, piece by piece: only one piece is in memory.

use std::cell::Cell;
use std::io::Write;
use std::ops::Range;

use anyhow::{Result, anyhow, bail};
use blosc2::{ErrorKind, NDArray, RawItems, SChunk};
use blosc2_store::Tensor;
use indicatif::ProgressBar;

use crate::raw;
use crate::slice::Pick;

/// Bytes of a piece; larger only if a single chunk is larger.
const PIECE: u64 = 64 << 20;
/// Bytes of the first piece, if no chunk is larger. Each piece is twice as large as the one before, so that a reader
/// that needs only the first items does not wait for many.
const FIRST: u64 = 256 << 10;

/// Items in chunks that can be read as n-dimensional boxes.
pub(crate) trait Items {
    /// The shape.
    fn shape(&self) -> Vec<u64>;
    /// The chunk shape.
    fn chunks(&self) -> Vec<u64>;
    /// Bytes per item.
    fn typesize(&self) -> usize;
    /// The dtype as text; `None` if the file does not store one.
    fn dtype(&self) -> Option<String> {
        None
    }
    /// Whether the items have one axis because the file stores no shape.
    fn is_flat(&self) -> bool {
        false
    }
    /// Reads a box; returns its bytes in C order.
    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>>;
    /// Reads the bytes of a super-chunk or chunk that follow the last whole item.
    fn tail(&self) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }
}

impl Items for NDArray {
    fn shape(&self) -> Vec<u64> {
        self.shape().to_vec()
    }

    fn chunks(&self) -> Vec<u64> {
        self.chunk_shape().to_vec()
    }

    fn typesize(&self) -> usize {
        self.typesize()
    }

    fn dtype(&self) -> Option<String> {
        self.dtype_str().map(str::to_owned)
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        Ok(self.read::<RawItems>(ranges)?.0)
    }
}

/// The items of a super-chunk have one axis.
impl Items for SChunk {
    fn shape(&self) -> Vec<u64> {
        vec![self.len()]
    }

    fn chunks(&self) -> Vec<u64> {
        let chunksize = match self.chunksize() as u64 {
            // The chunks have variable lengths.
            0 => PIECE,
            size => size,
        };
        vec![(chunksize / self.typesize() as u64).max(1)]
    }

    fn typesize(&self) -> usize {
        self.typesize()
    }

    fn is_flat(&self) -> bool {
        true
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        Ok(self.read::<u8>(bytes_of(ranges, self.typesize())?)?)
    }

    fn tail(&self) -> Result<Vec<u8>> {
        let len = self.len().saturating_mul(self.typesize() as u64);
        Ok(self.read::<u8>(len..self.nbytes())?)
    }
}

/// A tensor stores its items one after another in C order, in the chunks of a super-chunk.
impl Items for Tensor {
    fn shape(&self) -> Vec<u64> {
        self.shape().to_vec()
    }

    fn chunks(&self) -> Vec<u64> {
        rows_of(self.shape(), self.schunk().chunksize() / self.dtype().size().max(1))
    }

    fn typesize(&self) -> usize {
        self.dtype().size()
    }

    fn dtype(&self) -> Option<String> {
        Some(self.dtype().to_string())
    }

    fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
        raw::read_flat(self.shape(), self.dtype().size(), ranges, &|bytes| {
            Ok(self.schunk().read::<u8>(bytes)?)
        })
    }
}

/// The shape of the largest part of an array in C order that is contiguous and has at most `len` items. Each side is at
/// least 1.
pub(crate) fn rows_of(shape: &[u64], len: usize) -> Vec<u64> {
    let mut left = len as u64;
    let side = |&side: &u64| {
        let taken = side.min(left).max(1);
        // Above an axis that is not complete, the part has one index.
        left = if taken < side { 1 } else { left / taken };
        taken
    };
    let mut sides: Vec<u64> = shape.iter().rev().map(side).collect();
    sides.reverse();
    sides
}

/// Converts a range of items of one axis to bytes.
pub(crate) fn bytes_of(ranges: &[Range<u64>], typesize: usize) -> Result<Range<u64>> {
    let [range] = ranges else { bail!("cannot slice: a super-chunk has one axis") };
    let size = typesize as u64;
    Ok(range.start.saturating_mul(size)..range.end.saturating_mul(size))
}

/// Writes the selected items, in the order of the picks.
pub(crate) fn write(
    items: &dyn Items,
    picks: &[Pick],
    out: &mut dyn Write,
    bar: &ProgressBar,
) -> Result<()> {
    let typesize = items.typesize() as u64;
    let chunk = items.chunks().into_iter().fold(typesize, u64::saturating_mul);
    let first = Cell::new(FIRST.max(chunk));
    Pieces { items, budget: Cell::new(PIECE.max(chunk)), next: first, bar }.write(picks, out)
}

/// Splits all items into boxes of at most half of `PIECE`, or one item, and passes the ranges of each to `f`. The boxes
/// one after another are the items in C order. Two files can be in memory box by box.
pub(crate) fn boxes(
    items: &dyn Items,
    f: &mut dyn FnMut(&[Range<u64>]) -> Result<()>,
) -> Result<()> {
    let all = |count| Pick { start: 0, step: 1, count };
    let picks: Vec<Pick> = items.shape().into_iter().map(all).collect();
    let next = Cell::new(PIECE / 2);
    let pieces = Pieces { items, budget: Cell::new(PIECE / 2), next, bar: &ProgressBar::hidden() };
    pieces.each(&picks, &mut |picks| f(&picks.iter().map(Pick::span).collect::<Vec<_>>()))
}

/// Whether an error means that reading would take more memory than allowed.
fn is_too_large(error: &anyhow::Error) -> bool {
    error.downcast_ref::<blosc2::Error>().is_some_and(|error| error.kind() == ErrorKind::TooLarge)
}

struct Pieces<'a> {
    items: &'a dyn Items,
    /// The bytes of the largest piece.
    budget: Cell<u64>,
    /// The bytes of the next piece.
    next: Cell<u64>,
    bar: &'a ProgressBar,
}

impl Pieces<'_> {
    fn write(&self, picks: &[Pick], out: &mut dyn Write) -> Result<()> {
        self.each(picks, &mut |picks| self.write_box(picks, out))
    }

    /// Passes the positions of each piece to `f`, in C order.
    fn each(&self, picks: &[Pick], f: &mut dyn FnMut(&[Pick]) -> Result<()>) -> Result<()> {
        if picks.iter().any(|pick| pick.count == 0) {
            return Ok(());
        }
        self.each_along(0, &mut picks.to_vec(), f)
    }

    /// Passes the positions of each piece to `f`; the axes before `axis` have one position each.
    fn each_along(
        &self,
        axis: usize,
        picks: &mut [Pick],
        f: &mut dyn FnMut(&[Pick]) -> Result<()>,
    ) -> Result<()> {
        let Some(&all) = picks.get(axis) else {
            return f(picks);
        };
        let spans = picks[axis + 1..].iter().map(span_len);
        // Fields can have no bytes.
        let row = spans.fold(self.items.typesize() as u64, u64::saturating_mul).max(1);
        let mut done = 0;
        while done < all.count {
            let budget = self.next.get();
            if row > budget && axis + 1 < picks.len() {
                picks[axis] = all.part(done, 1);
                self.each_along(axis + 1, picks, f)?;
            } else {
                let left = all.part(done, all.count - done);
                let rows = (budget / row).max(1);
                picks[axis] = left.part(0, rows_of_piece(&left, rows, self.items.chunks()[axis]));
                match f(picks) {
                    // Small blocks take more memory than their items.
                    Err(error) if is_too_large(&error) && self.shrink() => continue,
                    result => result?,
                }
            }
            done += picks[axis].count;
        }
        picks[axis] = all;
        Ok(())
    }

    /// Halves the size of the pieces. Returns whether they still have at least one item.
    fn shrink(&self) -> bool {
        let half = self.next.get() / 2;
        self.next.set(half);
        self.budget.set(half);
        half >= self.items.typesize() as u64
    }

    /// Reads the box that covers the selected items, and writes them.
    fn write_box(&self, picks: &[Pick], out: &mut dyn Write) -> Result<()> {
        let ranges: Vec<Range<u64>> = picks.iter().map(Pick::span).collect();
        let bytes = self.items.read(&ranges)?;
        // After this axis the selected items are contiguous in the box, in output order.
        let dense = picks.iter().rposition(|pick| pick.step != 1).map_or(0, |axis| axis + 1);
        let mut strides = vec![self.items.typesize()];
        for pick in picks.iter().rev() {
            let len = usize::try_from(span_len(pick))?;
            strides.push(strides[strides.len() - 1] * len);
        }
        strides.reverse();
        let expected = strides[0];
        if bytes.len() != expected {
            return Err(anyhow!(
                "cannot read items: expected {expected} bytes, got {}",
                bytes.len()
            ));
        }
        self.next.set(self.next.get().saturating_mul(2).min(self.budget.get()));
        let written = write_picked(&bytes, &picks[..dense], &strides, out)?;
        self.bar.inc(written);
        Ok(())
    }
}

fn span_len(pick: &Pick) -> u64 {
    let span = pick.span();
    span.end - span.start
}

/// Number of positions in a piece of at most `rows` rows, which ends at a chunk boundary if it
/// reaches one.
fn rows_of_piece(pick: &Pick, rows: u64, chunk: u64) -> u64 {
    let (at, step, chunk) = (pick.start, pick.step.unsigned_abs(), chunk.max(1));
    // Each position is in a different chunk: one position per piece avoids reading the chunks between.
    let rows = if step >= chunk { 1 } else { rows };
    let count = if pick.step > 0 {
        let end = at.saturating_add(rows);
        let chunk_end = end - end % chunk;
        let end = if chunk_end > at { chunk_end } else { end };
        (end - at).div_ceil(step)
    } else {
        let low = (at + 1).saturating_sub(rows);
        let chunk_start = low.next_multiple_of(chunk);
        let low = if chunk_start <= at { chunk_start } else { low };
        (at + 1 - low).div_ceil(step)
    };
    count.min(pick.count)
}

/// Writes the selected parts of a box; `strides`, in bytes, start one axis before the first pick.
/// Returns the number of bytes written.
fn write_picked(
    bytes: &[u8],
    picks: &[Pick],
    strides: &[usize],
    out: &mut dyn Write,
) -> Result<u64> {
    let Some((pick, inner)) = picks.split_first() else {
        out.write_all(bytes)?;
        return Ok(bytes.len() as u64);
    };
    let (first, stride) = (pick.span().start, strides[1]);
    let mut written = 0;
    for k in 0..pick.count {
        let at = (pick.position(k) - first) as usize * stride;
        written += write_picked(&bytes[at..at + stride], inner, &strides[1..], out)?;
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::slice::Slices;

    /// Two-byte items whose values are their positions; records what was read.
    struct Counting {
        shape: Vec<u64>,
        chunks: Vec<u64>,
        reads: RefCell<Vec<Vec<Range<u64>>>>,
    }

    impl Items for Counting {
        fn shape(&self) -> Vec<u64> {
            self.shape.clone()
        }

        fn chunks(&self) -> Vec<u64> {
            self.chunks.clone()
        }

        fn typesize(&self) -> usize {
            2
        }

        fn read(&self, ranges: &[Range<u64>]) -> Result<Vec<u8>> {
            self.reads.borrow_mut().push(ranges.to_vec());
            let all: Vec<Vec<u64>> = ranges.iter().map(|range| range.clone().collect()).collect();
            Ok(expected(&self.shape, &all))
        }
    }

    fn expected(shape: &[u64], positions: &[Vec<u64>]) -> Vec<u8> {
        let mut numbers = vec![0];
        for (size, along) in shape.iter().zip(positions) {
            let next = numbers.iter().flat_map(|base| along.iter().map(move |at| base * size + at));
            numbers = next.collect();
        }
        numbers.iter().flat_map(|&number| (number as u16).to_le_bytes()).collect()
    }

    #[test]
    fn any_budget_gives_the_same_bytes() {
        for text in [":", "::2", "::-1,1:5,::-3", "3,::2", ":,:,::-1", "8:1:-3,2:2", "::5,::4,::3"]
        {
            for budget in [2, 10, 70, 300, 1 << 20] {
                let items = Counting {
                    shape: vec![11, 7, 6],
                    chunks: vec![4, 3, 5],
                    reads: RefCell::default(),
                };
                let picks = text.parse::<Slices>().unwrap().resolve(&items.shape).unwrap();
                let mut out = Vec::new();
                let bar = ProgressBar::hidden();
                Pieces {
                    items: &items,
                    budget: Cell::new(budget),
                    next: Cell::new(budget.min(8)),
                    bar: &bar,
                }
                .write(&picks, &mut out)
                .unwrap();
                let positions: Vec<Vec<u64>> = picks
                    .iter()
                    .map(|pick| (0..pick.count).map(|k| pick.position(k)).collect())
                    .collect();
                assert_eq!(out, expected(&items.shape, &positions), "{text} {budget}");
                for ranges in items.reads.borrow().iter() {
                    let len: u64 = ranges.iter().map(|range| range.end - range.start).product();
                    assert!(len * 2 <= budget, "{text} {budget} {ranges:?}");
                }
            }
        }
    }

    #[test]
    fn pieces_end_where_chunks_end() {
        let items = Counting { shape: vec![10], chunks: vec![4], reads: RefCell::default() };
        let bar = ProgressBar::hidden();
        let pieces =
            Pieces { items: &items, budget: Cell::new(10), next: Cell::new(10), bar: &bar };
        for (text, ranges) in [("1:", [1..4, 4..8, 8..10]), ("::-1", [8..10, 4..8, 0..4])] {
            let picks = text.parse::<Slices>().unwrap().resolve(&[10]).unwrap();
            pieces.write(&picks, &mut Vec::new()).unwrap();
            let found: Vec<_> = items.reads.borrow_mut().drain(..).flatten().collect();
            assert_eq!(found, ranges, "{text}");
        }
    }
}
