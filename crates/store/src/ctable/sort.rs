//! The order of the rows by a column, with Python's FULL indexes.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::ops::{Range, RangeBounds};

use crate::blosc2::dtype::{Kind, ScalarDecoder};
use crate::blosc2::{Dtype, Error, ErrorKind, NDArray, RawItems, Result, Value};

use super::column::Column;
use super::part::Budget;
use super::{CTable, READ, summary};
use crate::ItemKind;
use crate::ranges::range_of;

/// The kind of these indexes.
const KIND: &str = "full";
/// Positions that are read from an index at once.
const AT_ONCE: u64 = 1 << 16;
/// The reserved places that an index may have besides those of the column, or as many as the column has.
const RESERVED: u64 = 1 << 20;
/// Rows whose places are in memory at once.
const ROWS: u64 = 1 << 16;

/// The order in which [`CTable::argsort`] returns rows. In both orders, equal values keep their order, NaN follows all
/// numbers, and null rows follow NaN, as in Python's `sort_by` without an index. Python reverses the order of equal
/// strings if it sorts in descending order. Dictionaries are sorted by their strings, even if they are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SortOrder {
    /// The smallest value first.
    #[default]
    Ascending,
    /// The largest value first.
    Descending,
}

impl SortOrder {
    /// Compares the keys of two rows, and then the rows.
    fn compare<K: Ord>(self, one: &(K, u64), other: &(K, u64)) -> Ordering {
        let keys = one.0.cmp(&other.0);
        let keys = if self == Self::Descending { keys.reverse() } else { keys };
        keys.then(one.1.cmp(&other.1))
    }
}

impl CTable {
    /// Returns the indices of the rows in the order of a column, from rank `ranks.start` to `ranks.end`: `..10` in
    /// ascending order returns the rows with the ten smallest values. [`SortOrder`] describes the places of equal
    /// values, NaN and nulls. Ranks after the last row are ignored. Python: `iter_sorted`, `sort_by`.
    ///
    /// If Python has created an index of the kind `FULL` for the column of numbers, booleans, timestamps or strings of
    /// a fixed length, and the table has not changed since then, rows in ascending order are read from the index up to
    /// `ranks.end`, and the nulls of the column. The positions that are read are verified: an index in which one of them
    /// occurs twice or does not exist is ignored, and so is an index that cannot be read. Positions after `ranks.end` are
    /// not read, and the order is not verified, because this requires reading the column. An index
    /// that lists rows in a wrong order therefore leads to a wrong order; with `..`, each row is returned once
    /// nevertheless. This crate does not write such indexes.
    ///
    /// Otherwise, the column is read and sorted in memory. A row takes up to 24 bytes, or 40 bytes and its string; the
    /// strings of a dictionary are numbers. Rows are in five groups: negative numbers, other numbers, strings and bytes,
    /// NaN, and nulls. At most twice the first `ranks.end` rows of each group are in memory, or 2<sup>17</sup> rows if
    /// these are more. Therefore `..1000` takes little memory for any number of rows. The values of a part of the column
    /// are also in memory, as for [`describe`](Self::describe).
    ///
    /// ```
    /// use blosc2_store::{CTable, Data, ItemKind, Schema, SortOrder};
    ///
    /// let schema = Schema::new().column("price", ItemKind::Float64).column("id", ItemKind::Int64);
    /// let mut table = CTable::in_memory(&schema)?;
    /// table.append([("price", Data::items(&[9.5, 2.5, f64::NAN, 8.0])), ("id", Data::items(&[1i64, 2, 3, 4]))])?;
    /// assert_eq!(table.argsort("price", SortOrder::Ascending, ..)?, [1, 3, 0, 2]);
    /// let dearest = table.argsort("price", SortOrder::Descending, ..2)?;
    /// assert_eq!(table.read::<i64>("id", dearest)?, [1, 4]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the column has other values than numbers, booleans, timestamps, strings and bytes;
    /// - [`ErrorKind::TooLarge`]: sorting takes more than 1 GiB of memory and more than 256 times the stored bytes of
    ///   the column, or of the mask of valid rows if the column is computed: ask for fewer ranks, or open the table with
    ///   another [limit](crate::Object::open_with_limits);
    /// - the errors of [`values`](Self::values) and [`evaluate`](Self::evaluate).
    pub fn argsort(
        &self,
        name: &str,
        order: SortOrder,
        ranks: impl RangeBounds<u64>,
    ) -> Result<Vec<u64>> {
        use ItemKind::*;
        let column = self.find_column(name)?;
        let kind = column.kind();
        if matches!(kind, Complex64 | Complex128 | List(_) | Struct(_) | Object | NDArray { .. }) {
            let detail = format!("the column `{name}` of {kind} has no order");
            return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
        }
        let Range { start, end } = range_of(&ranks, self.nrows());
        let (start, end) = (start.min(self.nrows()), end.min(self.nrows()));
        if start >= end {
            return Ok(Vec::new());
        }
        let found = match order {
            SortOrder::Ascending => self.indexed(column, start..end),
            // The order of equal values is not reversed.
            SortOrder::Descending => Ok(None),
        };
        match found {
            Ok(Some(rows)) => Ok(rows),
            Err(error) if error.kind() == ErrorKind::Io => Err(error),
            // An index only saves time, so that its faults are no errors.
            Ok(None) | Err(_) => self.sorted(column, order, start..end),
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
        // Each place takes a few bits, and each place that the index names takes one.
        let memory = places.saturating_add(indexed / 8);
        budget.take((ranks.end - ranks.start).saturating_mul(8).saturating_add(memory))?;
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

    /// The rows with some ranks, of a column that is sorted in memory.
    fn sorted(&self, column: &Column, order: SortOrder, ranks: Range<u64>) -> Result<Vec<u64>> {
        let name = column.name();
        let budget = match self.stored(name) {
            Ok((_, stored)) => stored.budget(),
            // It is computed.
            Err(_) => self.live.budget(),
        };
        let most = usize::try_from(ranks.end).unwrap_or(usize::MAX);
        let mut limit = Limit { name, order, most, taken: 0, max: budget.left() };
        // The numbers from i64::MIN to u64::MAX have 64 bits without their sign.
        let (mut negative, mut positive) = (Ranked::default(), Ranked::default());
        let mut texts = Ranked::default();
        let (mut nan, mut nulls) = (Ranked::default(), Ranked::default());
        let words = self.ordered_words(column)?;
        let read = |rows| self.evaluated_values(name, rows);
        self.in_parts(name, read, |rows, values| {
            for (row, value) in rows.zip(values) {
                let number = match value {
                    Value::Bool(value) => value.into(),
                    Value::Int(value) => value,
                    Value::Float(value) if value.is_nan() => {
                        nan.add((), row, &mut limit)?;
                        continue;
                    }
                    // The bits of a positive float are an integer with its order. The zeros are equal.
                    Value::Float(value) if value < 0.0 => -i128::from(value.abs().to_bits()),
                    Value::Float(value) => value.abs().to_bits().into(),
                    Value::Str(text) => match words.get(text.as_str()) {
                        Some(rank) => (*rank).into(),
                        None => {
                            texts.add(text.into_bytes(), row, &mut limit)?;
                            continue;
                        }
                    },
                    Value::Bytes(bytes) => {
                        texts.add(bytes, row, &mut limit)?;
                        continue;
                    }
                    Value::None => {
                        nulls.add((), row, &mut limit)?;
                        continue;
                    }
                    _ => {
                        let detail = format!("values of the column `{name}` have no order");
                        return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
                    }
                };
                let numbers = if number < 0 { &mut negative } else { &mut positive };
                numbers.add(number as u64, row, &mut limit)?;
            }
            Ok(())
        })?;
        let (first, second) = match order {
            SortOrder::Ascending => (negative, positive),
            SortOrder::Descending => (positive, negative),
        };
        let rows = first.into_rows(order).chain(second.into_rows(order));
        let rows = rows.chain(texts.into_rows(order));
        let rows = rows.chain(nan.into_rows(order)).chain(nulls.into_rows(order));
        Ok(rows.take(most).skip(ranks.start as usize).collect())
    }

    /// The strings of a dictionary, with their ranks in ascending order; none for another column.
    fn ordered_words(&self, column: &Column) -> Result<HashMap<&str, u32>> {
        if !matches!(column.kind(), ItemKind::Dictionary { .. }) {
            return Ok(HashMap::new());
        }
        let words = self.stored(column.name())?.1.words()?.unwrap_or_default();
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.sort_unstable();
        Ok(words.into_iter().zip(0..).collect())
    }
}

/// The first rows in the order of one kind of keys. Later rows are dropped.
struct Ranked<K>(Vec<(K, u64)>);

impl<K> Default for Ranked<K> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

struct Limit<'a> {
    name: &'a str,
    order: SortOrder,
    /// The number of rows that are wanted.
    most: usize,
    /// The memory of all rows that are kept, and of the result.
    taken: u64,
    max: u64,
}

trait Key: Ord {
    /// The memory that the key has allocated, in bytes.
    fn allocated(&self) -> usize {
        0
    }
}

impl Key for () {}
impl Key for u64 {}
impl Key for Vec<u8> {
    fn allocated(&self) -> usize {
        self.capacity()
    }
}

impl<K: Key> Ranked<K> {
    fn add(&mut self, key: K, row: u64, limit: &mut Limit<'_>) -> Result<()> {
        let memory = |key: &K| (size_of::<(K, u64)>() + size_of::<u64>() + key.allocated()) as u64;
        limit.taken = limit.taken.saturating_add(memory(&key));
        self.0.push((key, row));
        let len = self.0.len();
        let is_full = limit.taken > limit.max;
        // As many rows are removed as are kept, so that this takes time in proportion to the rows.
        if len / 2 >= limit.most.max(AT_ONCE as usize) || is_full && len > limit.most {
            self.0.select_nth_unstable_by(limit.most, |one, other| limit.order.compare(one, other));
            limit.taken -= self.0.drain(limit.most..).map(|(key, _)| memory(&key)).sum::<u64>();
        }
        // If rows are removed because the memory is full, half of it has to be free for the next rows.
        if limit.taken <= if is_full { limit.max / 2 } else { limit.max } {
            return Ok(());
        }
        let (name, max) = (limit.name, limit.max);
        let detail = format!(
            "sorting the column `{name}` takes more than the memory limit of {max} bytes: ask for fewer ranks, such as \
             `..1000`, or open the table with a higher `max_read`"
        );
        Err(Error::new(ErrorKind::TooLarge, "sort a table", detail))
    }

    fn into_rows(mut self, order: SortOrder) -> impl Iterator<Item = u64> {
        self.0.sort_unstable_by(|one, other| order.compare(one, other));
        self.0.into_iter().map(|(_, row)| row)
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
        let taken = vec![0; indexed.div_ceil(64) as usize];
        Ok(Self { len, indexed, whole, live, before, taken })
    }

    /// The row at a place, or `None` in it if the place is dead or reserved. `None` if there is no such place, or if it was
    /// taken before: an index with repeated places is read up to the first of them.
    fn take(&mut self, place: u64) -> Option<Option<u64>> {
        let (word, bit) = ((place / 64) as usize, 1 << (place % 64));
        if place >= self.indexed || self.taken[word] & bit != 0 {
            return None;
        }
        self.taken[word] |= bit;
        if place >= self.len {
            return Some(None);
        }
        if let Some(rows) = self.whole {
            return Some((place < rows).then_some(place));
        }
        let row = || self.before[word] + u64::from((self.live[word] & (bit - 1)).count_ones());
        Some((self.live[word] & bit != 0).then(row))
    }
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;
    use crate::{Data, Schema};

    #[test]
    fn each_place_of_an_index_is_taken_once() {
        let schema = Schema::new().column("n", ItemKind::Int64).expected_rows(10);
        let mut table = CTable::in_memory(&schema).unwrap();
        table.append([("n", Data::items(&[1i64, 2, 3, 4]))]).unwrap();
        for deleted in [false, true] {
            if deleted {
                table.delete_rows([1]).unwrap();
            }
            let mut places = Places::new(&table, 10, 70).unwrap();
            let last = if deleted { 2 } else { 3 };
            assert_eq!(places.take(3), Some(Some(last)));
            assert_eq!(places.take(1), Some((!deleted).then_some(1)));
            // Dead, and reserved.
            for place in [4, 9, 10, 64, 69] {
                assert_eq!(places.take(place), Some(None), "{place}");
            }
            for place in [3, 1, 4, 9, 10, 64, 69, 70, 127, 128, u64::MAX] {
                assert_eq!(places.take(place), None, "{place}");
            }
        }
    }
}
