//! Which rows of a table are there: deleted ones keep their places until the table is compacted.

use std::collections::VecDeque;
use std::ops::Range;

use blosc2::dtype::Kind;
use blosc2::{Element, ErrorKind, NDArray, Result, Selection, Special};

use super::READ;
use super::part::{Budget, check_array, row_bytes};
use crate::tag::error;

/// So many rows of marks are read at once where they are counted.
const PIECE: usize = 1 << 24;
/// Bytes of dead rows between two live ones that are read along, rather than one block twice.
pub(super) const GAP: usize = 8192;
/// Bytes of rows that are read at once, where they are not all that was asked for.
pub(super) const AT_ONCE: usize = 1 << 24;

/// The live rows of a table.
#[derive(Debug)]
pub(super) struct LiveRows {
    /// A mark for each row: whether it is there.
    marks: NDArray,
    /// The live rows before each chunk of marks, and before the end.
    before: Vec<u64>,
}

/// Rows of the same place in all columns, one after the other, with the dead ones among them.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) rows: Range<u64>,
    /// Which of them are live; `None` if all are.
    keep: Option<Vec<bool>>,
}

impl LiveRows {
    pub(super) fn new(marks: NDArray) -> Result<Self> {
        check_array(&marks, "|b1", |dtype| dtype.kind() == Some(Kind::Bool))?;
        let mut before = vec![0];
        let mut live = 0;
        for chunk in marks.iter_chunks() {
            let rows = chunk.ranges()[0].clone();
            live += match chunk.info()?.special {
                Some(Special::Zeros | Special::Uninit) => 0,
                Some(Special::Value) if marks.item([rows.start])? => rows.end - rows.start,
                Some(Special::Value) => 0,
                _ => count(&marks, rows)?,
            };
            before.push(live);
        }
        Ok(Self { marks, before })
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// What may be allocated for what is read of the marks.
    pub(super) fn budget(&self) -> Budget {
        Budget::of(self.marks.schunk().cbytes())
    }

    /// Where live rows lie, in their order, for reading them from an array; without one, for rows of a few bytes.
    /// Where there are dead ones among them, of no more than [`AT_ONCE`] bytes.
    pub(super) fn spans(&self, rows: Range<u64>, array: Option<&NDArray>) -> Spans<'_> {
        let row = array.map_or(size_of::<u64>(), row_bytes).max(1);
        // Those of the blocks that two live ones lie in are decompressed in any case.
        let block = array.map_or(0, |array| usize::try_from(array.blocks()[0]).unwrap_or(0));
        let gap = block.max(1 + GAP / row);
        Spans {
            live: self,
            rows,
            most: u64::MAX,
            gap,
            at_once: (AT_ONCE / row).max(1),
            ready: VecDeque::new(),
        }
    }

    /// The rows of a chunk of marks.
    fn chunk(&self, chunk: usize) -> Range<u64> {
        let (size, len) = (self.marks.chunks()[0], self.marks.shape()[0]);
        let start = chunk as u64 * size;
        start..(start + size).min(len)
    }

    /// The number of the chunk's first live row, where it has no dead ones.
    fn whole(&self, chunk: usize) -> Option<u64> {
        let [before, after] = self.before.get(chunk..chunk + 2)?.try_into().ok()?;
        let rows = self.chunk(chunk);
        (after - before == rows.end - rows.start).then_some(before)
    }
}

fn count(marks: &NDArray, rows: Range<u64>) -> Result<u64> {
    let mut live = 0;
    for start in rows.clone().step_by(PIECE) {
        let piece = start..rows.end.min(start + PIECE as u64);
        let marks = marks.read::<bool>([piece])?;
        live += marks.into_iter().filter(|&mark| mark).count() as u64;
    }
    Ok(live)
}

/// Where live rows lie. Made by [`LiveRows::spans`].
#[derive(Debug)]
pub(super) struct Spans<'a> {
    live: &'a LiveRows,
    /// Those that are still to come, numbered among the live ones.
    rows: Range<u64>,
    most: u64,
    /// From one live row to the next one in a span.
    gap: usize,
    /// The rows of a span that has dead ones.
    at_once: usize,
    ready: VecDeque<Span>,
}

impl Iterator for Spans<'_> {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && !self.rows.is_empty()
            && let Err(error) = self.more()
        {
            self.rows = 0..0;
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Spans<'_> {
    /// The same with no more than [`AT_ONCE`] bytes in any span, and so many live rows.
    pub(super) fn of(self, most: u64) -> Self {
        Self { most: most.min(self.at_once as u64), ..self }
    }

    /// Finds the next ones: those of one chunk of marks, or of several that have no dead rows.
    fn more(&mut self) -> Result<()> {
        let live = self.live;
        // The last chunk that starts there or before; empty ones start where the next one does.
        let first = live.before.partition_point(|&before| before <= self.rows.start) - 1;
        let Some(before) = live.whole(first) else { return self.of_chunk(first) };
        let end = self.rows.end.min(self.rows.start.saturating_add(self.most));
        let mut after = first + 1;
        while live.before[after] < end && live.whole(after).is_some() {
            after += 1;
        }
        let count = end.min(live.before[after]) - self.rows.start;
        let start = live.chunk(first).start + (self.rows.start - before);
        self.rows.start += count;
        self.ready.push_back(Span { rows: start..start + count, keep: None });
        Ok(())
    }

    fn of_chunk(&mut self, chunk: usize) -> Result<()> {
        let live = self.live;
        let rows = live.chunk(chunk);
        let marks = live.marks.read::<bool>([rows.clone()])?;
        let [before, after] = [live.before[chunk], live.before[chunk + 1]];
        let skip = self.rows.start - before;
        let take = self.rows.end.min(after) - self.rows.start;
        let numbers = (0..marks.len()).filter(|&row| marks[row]);
        let mut numbers = numbers.skip(skip as usize).take(take as usize).peekable();
        let mut found = 0;
        while let Some(first) = numbers.next() {
            let (mut last, mut count) = (first, 1);
            while let Some(row) = numbers.next_if(|&row| {
                count < self.most && row - last <= self.gap && row - first < self.at_once
            }) {
                (last, count) = (row, count + 1);
            }
            found += count;
            let all = count == (last - first + 1) as u64;
            self.ready.push_back(Span {
                rows: rows.start + first as u64..rows.start + last as u64 + 1,
                keep: (!all).then(|| marks[first..=last].to_vec()),
            });
        }
        if found != take {
            let detail = "the marks of live rows have changed since it was opened";
            return Err(error(live.marks.schunk(), ErrorKind::InvalidData, READ, detail));
        }
        self.rows.start += take;
        Ok(())
    }
}

impl Span {
    /// Reads the live rows of an array that has all rows along its first dimension.
    pub(super) fn read<T: Element>(&self, array: &NDArray) -> Result<Vec<T>> {
        let items = array.read(self.selection(array)?)?;
        let per_row: u64 = array.shape()[1..].iter().product();
        Ok(self.keep(items, per_row as usize))
    }

    /// The same for the bytes of rows of this length.
    pub(super) fn read_bytes(&self, array: &NDArray, row: usize) -> Result<Vec<u8>> {
        let bytes = array.bytes().read(self.selection(array)?)?;
        Ok(self.keep(bytes, row))
    }

    /// The live ones of all rows, of so many items each.
    pub(super) fn keep<T>(&self, mut items: Vec<T>, per_row: usize) -> Vec<T> {
        if let Some(keep) = &self.keep {
            let mut number = 0;
            items.retain(|_| {
                let keeps = keep.get(number / per_row).copied().unwrap_or(false);
                number += 1;
                keeps
            });
        }
        items
    }

    fn selection(&self, array: &NDArray) -> Result<Selection> {
        self.check_inside(array, array.shape()[0])?;
        Ok([self.rows.clone()].into())
    }

    /// Sees that a column has all the rows.
    pub(super) fn check_inside(&self, array: &NDArray, len: u64) -> Result<()> {
        check_rows(&self.rows, len)
            .map_err(|detail| error(array.schunk(), ErrorKind::InvalidData, READ, detail))
    }

    /// The numbers of the live rows.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let keeps = |row: &u64| match &self.keep {
            Some(keep) => keep[(*row - self.rows.start) as usize],
            None => true,
        };
        self.rows.clone().filter(keeps)
    }
}

/// Sees that a column of so many rows has these. The error is what is wrong.
pub(super) fn check_rows(rows: &Range<u64>, len: u64) -> Result<(), String> {
    if rows.end <= len {
        return Ok(());
    }
    Err(format!("row {} is marked as live, but the column has only {len} rows", rows.end - 1))
}
