//! Live rows of a table: deleted rows keep their positions until the table is compacted.

#[cfg(feature = "c")]
mod change;

use std::collections::VecDeque;
use std::ops::Range;

use crate::blosc2::dtype::Kind;
use crate::blosc2::super_chunk::Revision;
use crate::blosc2::{
    Advice, Element, ErrorKind, NDArray, RawItems, Result, SChunk, Selection, Special,
};

use super::part::{Budget, check_array, row_bytes, row_items, special_of};
use super::rows::Ascending;
use super::{OPEN, READ};
use crate::tag::error;

/// Maximum rows of a unit, the part of the mask that is counted and read at once.
const UNIT: u64 = 1 << 24;
/// Maximum number of units, if the mask has fewer stored bytes.
const MAX_UNITS: u64 = 1 << 20;
/// Maximum bytes of other rows between two wanted ones that are read too, to avoid decompressing a block twice.
pub(super) const GAP: usize = 8192;
/// Bytes of rows that are read at once, if not all of them were requested.
pub(super) const AT_ONCE: usize = 1 << 24;

#[derive(Debug)]
pub(super) struct LiveRows {
    /// The mask of live rows, one item per row.
    marks: NDArray,
    /// Rows of a unit; see [`unit_of`].
    unit: u64,
    /// The number of live rows before each unit of the mask, and in total.
    before: Vec<u64>,
    /// The revision of the mask when the rows were counted first.
    seen: Revision,
}

/// A contiguous range of rows, including dead ones, at the same position in all columns.
#[derive(Debug)]
pub(super) struct Span {
    pub(super) rows: Range<u64>,
    /// The mask of wanted rows in the range, which are live; `None` if all rows are wanted.
    keep: Option<Vec<bool>>,
}

impl LiveRows {
    pub(super) fn new(marks: NDArray) -> Result<Self> {
        check_array(&marks, "|b1", |dtype| dtype.kind() == Some(Kind::Bool))?;
        let (rows, chunk) = (marks.shape()[0], marks.chunk_shape()[0]);
        let unit = unit_of(rows, chunk, marks.schunk().cbytes());
        let unit = unit.map_err(|what| {
            let detail = format!("its mask of valid rows has {what}");
            error(marks.schunk(), ErrorKind::TooLarge, OPEN, detail)
        })?;
        let seen = marks.schunk().revision()?;
        let mut this = Self { marks, unit, before: vec![0], seen };
        this.count(0)?;
        Ok(this)
    }

    /// Whether no other handle has changed the mask since it was opened. Must not be called after own changes.
    pub(super) fn is_current(&self) -> Result<bool> {
        Ok(self.marks.schunk().revision()? == self.seen)
    }

    /// Counts the live rows again, from a unit on.
    fn count(&mut self, first: usize) -> Result<()> {
        self.before.truncate(first + 1);
        let schunk = self.marks.schunk();
        let mut budget = Budget::of_all(schunk, schunk.cbytes());
        let mut live = self.len();
        for unit in first.. {
            let rows = self.rows(unit);
            if rows.is_empty() {
                return Ok(());
            }
            live += count(&self.marks, rows, &mut budget)?;
            self.before.push(live);
        }
        Ok(())
    }

    pub(super) fn len(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The ranges of live rows of the units, without empty ranges.
    pub(super) fn chunks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let ranges = self.before.windows(2).map(|rows| rows[0]..rows[1]);
        ranges.filter(|rows| !rows.is_empty())
    }

    pub(super) fn budget(&self) -> Budget {
        let schunk = self.marks.schunk();
        Budget::of(schunk, schunk.cbytes())
    }

    /// The numbers of live rows before ascending places. Each unit of the mask is read at most once.
    pub(super) fn before(&self, places: impl Iterator<Item = u64>) -> Result<Vec<u64>> {
        let mut counts = Vec::with_capacity(places.size_hint().0);
        // The unit that was read last, its marks, the next one to be counted, and the live rows before it.
        let mut held: Option<(usize, Vec<bool>, usize, u64)> = None;
        for place in places {
            let unit = usize::try_from(place / self.unit).unwrap_or(usize::MAX);
            let (Some(&before), true) = (self.before.get(unit), place < self.capacity()) else {
                counts.push(self.len());
                continue;
            };
            let rows = self.rows(unit);
            let inside = (place - rows.start) as usize;
            if inside == 0 || self.before.get(unit + 1) == Some(&before) {
                counts.push(before);
            } else if self.whole(unit).is_some() {
                counts.push(before + inside as u64);
            } else {
                let (unit_of, marks, next, count) = match held.take_if(|held| held.0 == unit) {
                    Some(held) => held,
                    None => (unit, self.marks.read::<Vec<bool>>([rows])?, 0, before),
                };
                let live = marks[next..inside].iter().filter(|mark| **mark).count() as u64;
                counts.push(count + live);
                held = Some((unit_of, marks, inside, count + live));
            }
        }
        Ok(counts)
    }

    /// Number of rows that the mask has room for.
    pub(super) fn capacity(&self) -> u64 {
        self.marks.shape()[0]
    }

    pub(super) fn marks(&self) -> &NDArray {
        &self.marks
    }

    /// The place after the last live row.
    pub(super) fn end(&self) -> Result<u64> {
        let units = self.before.windows(2);
        let Some(last) = units.into_iter().rposition(|two| two[0] < two[1]) else { return Ok(0) };
        let rows = self.rows(last);
        if self.whole(last).is_some() {
            return Ok(rows.end);
        }
        let marks = self.marks.read::<Vec<bool>>([rows.clone()])?;
        let last = marks.iter().rposition(|mark| *mark);
        Ok(rows.start + last.map_or(0, |last| last as u64 + 1))
    }

    /// The spans of live rows, in order, for reading them from an array; without an array, for rows of a few bytes. Each
    /// unit of the mask is read at most once. Spans with other rows have at most [`AT_ONCE`] bytes.
    pub(super) fn spans<'a>(
        &'a self,
        rows: impl Into<Ascending<'a>>,
        array: Option<&NDArray>,
    ) -> Spans<'a> {
        let row = array.map_or(size_of::<u64>(), row_bytes).max(1);
        // Other rows in the blocks of two wanted rows are decompressed in any case.
        let block = array.map_or(0, |array| usize::try_from(array.block_shape()[0]).unwrap_or(0));
        let gap = block.max(1 + GAP / row);
        Spans {
            live: self,
            rows: rows.into(),
            most: u64::MAX,
            gap,
            at_once: (AT_ONCE / row).max(1),
            ready: VecDeque::new(),
        }
    }

    fn rows(&self, unit: usize) -> Range<u64> {
        let len = self.marks.shape()[0];
        let start = (unit as u64).saturating_mul(self.unit).min(len);
        start..start.saturating_add(self.unit).min(len)
    }

    /// The index of the first live row of the unit, if it has no dead rows.
    fn whole(&self, unit: usize) -> Option<u64> {
        let [before, after] = self.before.get(unit..unit + 2)?.try_into().ok()?;
        let rows = self.rows(unit);
        (after - before == rows.end - rows.start).then_some(before)
    }
}

/// The rows of a unit of a mask with chunks of this length, stored in `stored` bytes: a chunk, or a part of a large chunk.
/// The error describes a mask that readers refuse.
pub(super) fn unit_of(rows: u64, chunk: u64, stored: u64) -> Result<u64, String> {
    let unit = chunk.clamp(1, UNIT);
    // A few stored bytes can represent very many chunks.
    match rows.div_ceil(unit) <= MAX_UNITS.max(stored) {
        true => Ok(unit),
        false => Err(format!("{rows} rows in chunks of {chunk} rows, in {stored} bytes")),
    }
}

/// Counts the live rows of a range in one chunk, or in two if chunks are larger than units.
fn count(marks: &NDArray, rows: Range<u64>, budget: &mut Budget) -> Result<u64> {
    let len = rows.end - rows.start;
    match special_of(marks, &rows)? {
        Some(Special::Zeros | Special::Uninit) => return Ok(0),
        Some(Special::Value) => return Ok(if marks.item([rows.start])? { len } else { 0 }),
        _ => {}
    }
    budget.take(len).map_err(|_| {
        let detail = format!(
            "counting the rows of its mask of valid rows takes too much memory: {}",
            Advice::RaiseMaxRead
        );
        error(marks.schunk(), ErrorKind::TooLarge, OPEN, detail)
    })?;
    let marks = marks.read::<Vec<bool>>([rows])?;
    Ok(marks.into_iter().filter(|&mark| mark).count() as u64)
}

/// An iterator over spans of live rows. Created by [`LiveRows::spans`].
#[derive(Debug)]
pub(super) struct Spans<'a> {
    live: &'a LiveRows,
    rows: Ascending<'a>,
    most: u64,
    /// Maximum distance between two wanted rows in a span.
    gap: usize,
    /// Maximum number of rows of a span with other rows.
    at_once: usize,
    ready: VecDeque<Span>,
}

impl Iterator for Spans<'_> {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ready.is_empty()
            && let Some(first) = self.rows.first()
            && let Err(error) = self.more(first)
        {
            self.rows = Ascending::At(&[]);
            return Some(Err(error));
        }
        self.ready.pop_front().map(Ok)
    }
}

impl Spans<'_> {
    /// Limits every span to [`AT_ONCE`] bytes and to a number of live rows.
    pub(super) fn of(self, most: u64) -> Self {
        Self { most: most.min(self.at_once as u64), ..self }
    }

    /// Finds the next spans: those of one unit of the mask, or of several units without dead rows.
    fn more(&mut self, first: u64) -> Result<()> {
        let live = self.live;
        // The last unit that starts at or before the row; units without live rows start where the next one does.
        let unit = live.before.partition_point(|&before| before <= first) - 1;
        let (Some(before), Ascending::Range(rows)) = (live.whole(unit), &mut self.rows) else {
            return self.of_unit(unit);
        };
        let end = rows.end.min(first.saturating_add(self.most));
        let mut after = unit + 1;
        while live.before[after] < end && live.whole(after).is_some() {
            after += 1;
        }
        let count = end.min(live.before[after]) - first;
        let start = live.rows(unit).start + (first - before);
        rows.start += count;
        self.ready.push_back(Span { rows: start..start + count, keep: None });
        Ok(())
    }

    fn of_unit(&mut self, unit: usize) -> Result<()> {
        let live = self.live;
        let places = live.rows(unit);
        let [before, after] = [live.before[unit], live.before[unit + 1]];
        let wanted = self.rows.take_before(after);
        let count = wanted.len();
        let found = if let (Some(_), Ascending::At(rows)) = (live.whole(unit), &wanted) {
            self.group(places.start, rows.iter().map(|row| (row - before) as usize))
        } else {
            let marks = live.marks.read::<Vec<bool>>([places.clone()])?;
            let numbers = (0..marks.len()).filter(|&row| marks[row]);
            match wanted {
                Ascending::Range(rows) => {
                    let skip = (rows.start - before) as usize;
                    self.group(places.start, numbers.skip(skip).take(count as usize))
                }
                Ascending::At(rows) => {
                    let mut rows = rows.iter().peekable();
                    let numbers = (before..).zip(numbers);
                    let wanted = numbers.filter(|(row, _)| rows.next_if_eq(&row).is_some());
                    self.group(places.start, wanted.map(|(_, number)| number))
                }
            }
        };
        if found != count {
            let detail =
                "another handle or program changes the table during this read: call `refresh`";
            return Err(error(live.marks.schunk(), ErrorKind::Busy, READ, detail));
        }
        Ok(())
    }

    /// Adds the spans of rows at ascending places after `start`. Returns the number of rows.
    fn group(&mut self, start: u64, places: impl Iterator<Item = usize>) -> u64 {
        let mut places = places.peekable();
        let mut found = 0;
        while let Some(first) = places.next() {
            let (mut count, mut keep) = (1, vec![true]);
            while let Some(place) = places.next_if(|&place| {
                let len = place - first;
                count < self.most && len - keep.len() < self.gap && len < self.at_once
            }) {
                keep.resize(place - first, false);
                keep.push(true);
                count += 1;
            }
            found += count;
            let rows = start + first as u64..start + (first + keep.len()) as u64;
            let all = count == keep.len() as u64;
            self.ready.push_back(Span { rows, keep: (!all).then_some(keep) });
        }
        found
    }
}

impl Span {
    /// Rows that are all wanted, live or not.
    pub(super) fn all(rows: Range<u64>) -> Self {
        Self { rows, keep: None }
    }

    /// Reads the wanted rows of an array, whose first axis is that of all rows.
    pub(super) fn read<T: Element>(&self, array: &NDArray) -> Result<Vec<T>> {
        let items = array.read(self.selection(array)?)?;
        Ok(self.keep(items, row_items(array)))
    }

    /// Reads the bytes of the wanted rows, with rows of this length.
    pub(super) fn read_bytes(&self, array: &NDArray, row: usize) -> Result<Vec<u8>> {
        let bytes = array.read::<RawItems>(self.selection(array)?)?.0;
        Ok(self.keep(bytes, row))
    }

    /// Selects the wanted rows from all rows of a span, with a number of items each.
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
        self.check_inside(array.schunk(), array.shape()[0])?;
        Ok([self.rows.clone()].into())
    }

    /// Checks that a column has all rows.
    pub(super) fn check_inside(&self, schunk: &SChunk, len: u64) -> Result<()> {
        check_rows(&self.rows, len)
            .map_err(|detail| error(schunk, ErrorKind::InvalidData, READ, detail))
    }

    /// The places of the wanted rows.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let keeps = |row: &u64| match &self.keep {
            Some(keep) => keep[(*row - self.rows.start) as usize],
            None => true,
        };
        self.rows.clone().filter(keeps)
    }
}

/// Checks that a column of `len` rows contains these. The error describes the fault.
pub(super) fn check_rows(rows: &Range<u64>, len: u64) -> Result<(), String> {
    if rows.end <= len {
        return Ok(());
    }
    Err(format!("row {} is marked as valid, but the column has only {len} rows", rows.end - 1))
}
