//! The order of the rows by a column, with Python's FULL indexes.

use std::ops::{Bound, Range, RangeBounds};

use crate::blosc2::dtype::{Kind, ScalarDecoder};
use crate::blosc2::{Dtype, Error, ErrorKind, NDArray, RawItems, Result, Value};

use super::column::Column;
use super::part::Budget;
use super::{CTable, READ, summary};
use crate::ItemKind;

/// The kind of these indexes.
const KIND: &str = "full";
/// Positions that are read from an index at once.
const AT_ONCE: u64 = 1 << 16;
/// The reserved places that an index may have besides those of the column, or as many as the column has.
const RESERVED: u64 = 1 << 20;
/// Rows whose values are in memory at once.
const ROWS: u64 = 1 << 16;

impl CTable {
    /// Returns the indices of the rows in ascending order of a column, from rank `ranks.start` to `ranks.end`: `..10`
    /// returns the rows with the ten smallest values. Equal values keep their order, NaN follows all numbers, and null
    /// rows follow NaN. Ranks after the last row are ignored. Python: `iter_sorted`, `sort_by`.
    ///
    /// If Python has created an index of the kind `FULL` for the column of numbers, booleans, timestamps or strings of
    /// a fixed length, and the table has not changed since then, the rows are read from the index up to `ranks.end`,
    /// and the nulls of the column. Whether the index is in order is not verified, because this requires reading the
    /// column. Otherwise, the column is read and sorted in memory, with 48 bytes for each row. A damaged index is
    /// ignored. This crate does not write such indexes.
    ///
    /// A reversed result is no descending order: NaN and null rows come first, and equal values are reversed too.
    ///
    /// ```
    /// use blosc2_store::{CTable, Data, ItemKind, Schema};
    ///
    /// let schema = Schema::new().column("price", ItemKind::Float64).column("id", ItemKind::Int64);
    /// let mut table = CTable::in_memory(&schema)?;
    /// table.append([("price", Data::items(&[9.5, 2.5, f64::NAN, 8.0])), ("id", Data::items(&[1i64, 2, 3, 4]))])?;
    /// assert_eq!(table.argsort("price", ..)?, [1, 3, 0, 2]);
    /// let cheapest = table.argsort("price", ..2)?;
    /// assert_eq!(table.read::<i64>("id", cheapest)?, [2, 4]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the column has other values than numbers, booleans, timestamps, strings and bytes;
    /// - [`ErrorKind::TooLarge`]: the sorted column takes more than 1 GiB of memory and more than 256 times the stored
    ///   bytes;
    /// - the errors of [`values`](Self::values) and [`evaluate`](Self::evaluate).
    pub fn argsort(&self, name: &str, ranks: impl RangeBounds<u64>) -> Result<Vec<u64>> {
        use ItemKind::*;
        let column = self.find_column(name)?;
        let kind = column.kind();
        if matches!(kind, Complex64 | Complex128 | List(_) | Struct(_) | Object | NDArray { .. }) {
            let detail = format!("the column `{name}` of {kind} has no order");
            return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
        }
        let end = match ranks.end_bound() {
            Bound::Included(end) => end.saturating_add(1),
            Bound::Excluded(end) => *end,
            Bound::Unbounded => u64::MAX,
        };
        let start = match ranks.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let (start, end) = (start.min(self.nrows()), end.min(self.nrows()));
        if start >= end {
            return Ok(Vec::new());
        }
        let found = match self.indexed(column, start..end) {
            // An index only saves time, so that its faults are no errors.
            Err(error) if error.kind() != ErrorKind::Io => None,
            found => found?,
        };
        match found {
            Some(rows) => Ok(rows),
            None => Ok(self.sorted(name)?.drain(start as usize..end as usize).collect()),
        }
    }

    /// The rows with some ranks, from the index of a column; `None` if the column has no index that describes its present
    /// items.
    fn indexed(&self, column: &Column, ranks: Range<u64>) -> Result<Option<Vec<u64>>> {
        let is_stored = !matches!(column.kind(), ItemKind::Computed(_)) && !column.is_stale();
        if !is_stored || !column.kind().has_items() {
            return Ok(None);
        }
        let (_, stored) = self.stored(column.name())?;
        let Some(array) = stored.items() else { return Ok(None) };
        let is_known = match array.dtype().and_then(Dtype::kind) {
            Some(Kind::Bool | Kind::Int | Kind::UInt | Kind::Float) => true,
            Some(_) => matches!(column.kind(), ItemKind::String { .. }),
            None => false,
        };
        if !is_known || matches!(column.kind(), ItemKind::Dictionary { .. }) {
            return Ok(None);
        }
        let meta = &self.schema.meta;
        let Some(entry) = summary::current_entry(meta, KIND, column, array)? else {
            return Ok(None);
        };
        let has_runs = entry.get(KIND).and_then(|full| full.get("runs")).and_then(Value::as_list);
        if has_runs.is_none_or(|runs| !runs.is_empty()) {
            return Ok(None);
        }
        let key = format!("/_indexes/{}/{KIND}.positions", column.name());
        let Some(positions) = self.parts.get_for_reading(&key, "b2nd")? else { return Ok(None) };
        let positions = NDArray::from_schunk(positions)?;
        let places = array.shape()[0];
        // Python reserves places for rows that it expects, and indexes them too.
        let indexed = entry.get("shape").and_then(Value::as_list).and_then(|shape| shape.first());
        let indexed = indexed.and_then(Value::as_u64).unwrap_or(0);
        if indexed < places || indexed - places > places.max(RESERVED) {
            return Ok(None);
        }
        let is_int = positions
            .dtype()
            .is_some_and(|dtype| matches!(dtype.kind(), Some(Kind::Int | Kind::UInt)));
        if !is_int || positions.shape() != [indexed] {
            return Ok(None);
        }
        let schunk = positions.schunk();
        let mut budget = Budget::of(schunk, schunk.cbytes());
        budget.take((ranks.end - ranks.start).saturating_mul(8).saturating_add(places))?;
        let nulls = match column.is_nullable() {
            true => self.nulls(column.name(), ..)?,
            false => Vec::new(),
        };
        self.at_ranks(&positions, Places::new(self, places, indexed)?, &nulls, ranks)
    }

    /// The rows with some ranks; `None` if the positions are not those of the rows.
    fn at_ranks(
        &self,
        positions: &NDArray,
        mut places: Places,
        nulls: &[bool],
        ranks: Range<u64>,
    ) -> Result<Option<Vec<u64>>> {
        let len = positions.shape()[0];
        let Some(dtype) = positions.dtype() else { return Ok(None) };
        let decoder = ScalarDecoder::new(dtype);
        let (mut rows, mut rank) = (Vec::new(), 0);
        let mut ordered_nulls = Vec::new();
        'all: for start in (0..len).step_by(AT_ONCE as usize) {
            let part = positions.read::<RawItems>(start..len.min(start + AT_ONCE))?.0;
            for place in part.chunks_exact(dtype.size()) {
                let Ok(place) = u64::try_from(decoder.int(place)) else { return Ok(None) };
                let Some(row) = places.take(place) else { return Ok(None) };
                let Some(row) = row else { continue };
                if nulls.get(row as usize).copied().unwrap_or(false) {
                    ordered_nulls.push(row);
                    continue;
                }
                if ranks.contains(&rank) {
                    rows.push(row);
                }
                rank += 1;
                if rank == ranks.end {
                    break 'all;
                }
            }
        }
        // The stored items of null rows have any order.
        ordered_nulls.sort_unstable();
        for row in ordered_nulls {
            if ranks.contains(&rank) {
                rows.push(row);
            }
            rank += 1;
        }
        Ok((rows.len() as u64 == ranks.end - ranks.start).then_some(rows))
    }

    /// All rows in the order of a column, which is sorted in memory.
    fn sorted(&self, name: &str) -> Result<Vec<u64>> {
        let mut budget = self.live.budget();
        budget.take(self.nrows().saturating_mul(size_of::<(Key, u64)>() as u64))?;
        let mut keys = Vec::with_capacity(self.nrows() as usize);
        for start in (0..self.nrows()).step_by(ROWS as usize) {
            let rows = start..self.nrows().min(start + ROWS);
            for (row, value) in rows.clone().zip(self.any_values(name, rows)?) {
                let Some(key) = Key::of(value) else {
                    let detail = format!("values of the column `{name}` have no order");
                    return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
                };
                if let Key::Bytes(bytes) = &key {
                    budget.take(bytes.len() as u64)?;
                }
                keys.push((key, row));
            }
        }
        keys.sort_unstable();
        Ok(keys.into_iter().map(|(_, row)| row).collect())
    }
}

/// The values of a column, which have one type, in ascending order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Int(i128),
    /// The bits of a float, so that integers have its order.
    Float(i64),
    /// Strings have the order of their UTF-8.
    Bytes(Vec<u8>),
    NaN,
    Null,
}

impl Key {
    /// `None` if the value has no order.
    fn of(value: Value) -> Option<Self> {
        Some(match value {
            Value::Bool(value) => Self::Int(value.into()),
            Value::Int(value) => Self::Int(value),
            Value::Float(value) if value.is_nan() => Self::NaN,
            Value::Float(value) => {
                // The zeros are equal.
                let bits = (value + 0.0).to_bits() as i64;
                Self::Float(if bits < 0 { bits ^ i64::MAX } else { bits })
            }
            Value::Str(text) => Self::Bytes(text.into_bytes()),
            Value::Bytes(bytes) => Self::Bytes(bytes),
            Value::None => Self::Null,
            _ => return None,
        })
    }
}

/// The places of a column, which include deleted rows: the row at each live one, and which of them an index has named.
struct Places {
    len: u64,
    /// The number of places that the index names. Those from `len` on are reserved.
    indexed: u64,
    /// The rows are those before the first dead place.
    whole: Option<u64>,
    live: Vec<u64>,
    /// The number of live places before each word of `live`.
    before: Vec<u64>,
    taken: Vec<u64>,
}

impl Places {
    fn new(table: &CTable, len: u64, indexed: u64) -> Result<Self> {
        let words = len.div_ceil(64) as usize;
        let (mut live, mut before, mut count) = (Vec::<u64>::new(), Vec::new(), 0);
        let nrows = table.nrows();
        let whole = (table.live.end()? == nrows).then_some(nrows);
        if whole.is_none() {
            live.resize(words, 0);
            for start in (0..nrows).step_by(ROWS as usize) {
                let rows = start..nrows.min(start + ROWS);
                for place in table.places(rows.into())?.into_iter().filter(|place| *place < len) {
                    live[place as usize / 64] |= 1 << (place % 64);
                }
            }
            for word in &live {
                before.push(count);
                count += u64::from(word.count_ones());
            }
        }
        Ok(Self { len, indexed, whole, live, before, taken: vec![0; words] })
    }

    /// The row at a place, or `None` in it if the place is dead or reserved. `None` if there is no such place, or if it was
    /// taken before.
    fn take(&mut self, place: u64) -> Option<Option<u64>> {
        if place >= self.len {
            return (place < self.indexed).then_some(None);
        }
        let (word, bit) = (place as usize / 64, 1 << (place % 64));
        if self.taken[word] & bit != 0 {
            return None;
        }
        self.taken[word] |= bit;
        if let Some(rows) = self.whole {
            return Some((place < rows).then_some(place));
        }
        let row = || self.before[word] + u64::from((self.live[word] & (bit - 1)).count_ones());
        Some((self.live[word] & bit != 0).then(row))
    }
}
