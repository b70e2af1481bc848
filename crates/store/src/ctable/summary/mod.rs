//! Summaries of columns: the smallest and the largest item of each part of a column. Python: SUMMARY indexes.

#[cfg(feature = "c")]
mod change;

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use crate::blosc2::dtype::{Field, Kind};
use crate::blosc2::elements::bytes_of;
use crate::blosc2::{Dtype, Element, ErrorKind, NDArray, RawItems, Result, SChunk, Value};

use super::column::Column;
use super::live::LiveRows;
use super::part::{Budget, Parts};
use super::scalar::scalar;
use crate::ItemKind;

#[cfg(feature = "c")]
pub(in crate::ctable) use change::Kept;

/// The metalayer with the indexes of columns.
pub(super) const INDEXES: &str = "index_catalog";
/// The metalayer with the number of changes of values.
pub(super) const EPOCH: &str = "value_epoch";
/// The kind of these indexes, and the version of their format.
const KIND: &str = "summary";
const VERSION: u64 = 1;

/// No item is a number: all items that are not null are NaN. The extremes are zeros.
const ALL_NAN: u8 = 1;
const HAS_NAN: u8 = 2;
/// All rows are null. Set together with [`ALL_NAN`].
const ALL_NULL: u8 = 4;

/// The smallest and the largest item of each segment of a column, without reading the column. Created by
/// [`CTable::summary`](super::CTable::summary). Python: an index of the kind `SUMMARY`.
///
/// A query engine skips the segments whose items cannot match a filter:
///
/// ```
/// use blosc2_store::{CTable, Data, ItemKind, Schema};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("steps.b2d");
/// let schema = Schema::new().column("time", ItemKind::Int64);
/// let mut table = CTable::create(&path, &schema)?;
/// table.append([("time", Data::items(&(0..50_000).collect::<Vec<i64>>()))])?;
/// table.finish()?;
///
/// let Some(summary) = table.summary("time")? else { panic!("the table has an index") };
/// let segment = summary.segments().next().expect("the column has rows");
/// assert_eq!(segment.rows(), 0..summary.segment_len().min(50_000));
/// let (least, greatest) = segment.bounds().expect("the segment has numbers");
/// assert_eq!((least, greatest), (&0.into(), &(segment.rows().end - 1).into()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Summary {
    records: Records,
    /// The number of live rows before each segment, and in total.
    before: Vec<u64>,
}

/// A part of a column, with the bounds of its items. See [`Summary::segments`].
#[derive(Debug, Clone, PartialEq)]
pub struct SummarySegment {
    places: Range<u64>,
    rows: Range<u64>,
    extremes: Extremes,
}

#[derive(Debug, Clone, PartialEq)]
struct Extremes {
    bounds: Option<(Value, Value)>,
    has_nan: bool,
    is_null: bool,
}

impl Summary {
    /// Returns the segments, in order. Together they contain all rows.
    pub fn segments(&self) -> impl ExactSizeIterator<Item = SummarySegment> + '_ {
        (0..self.records.len()).map(|at| SummarySegment {
            places: self.records.places(at),
            rows: self.before[at]..self.before[at + 1],
            extremes: self.records.extremes(at),
        })
    }

    /// Returns the number of positions in a segment. The last segment can have fewer. Python: `segment_len`, the length
    /// of a block of the column.
    pub fn segment_len(&self) -> u64 {
        self.records.step
    }

    /// The ranges of live rows of the segments that `may_match` accepts, in order. Adjacent segments have one range.
    pub(super) fn rows_of(&self, may_match: impl Fn(&SummarySegment) -> bool) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for segment in self.segments() {
            if segment.rows.is_empty() || !may_match(&segment) {
                continue;
            }
            match ranges.last_mut().filter(|last| last.end == segment.rows.start) {
                Some(last) => last.end = segment.rows.end,
                None => ranges.push(segment.rows),
            }
        }
        ranges
    }
}

impl SummarySegment {
    /// Returns the indices of the valid rows of this segment, which [`CTable::read`](super::CTable::read) accepts. The
    /// range is empty if all rows of the segment are deleted.
    pub fn rows(&self) -> Range<u64> {
        self.rows.clone()
    }

    /// Returns the positions of this segment in the stored column, including deleted rows. See
    /// [`CTable::array`](super::CTable::array).
    pub fn places(&self) -> Range<u64> {
        self.places.clone()
    }

    /// Returns bounds of the items that are neither null nor NaN: no item is smaller than the first value or larger than
    /// the second value. The items of deleted rows count, so that both bounds can be wider than the items of valid rows.
    /// The stored value of null rows can count, too. Timestamps are integers, and so are booleans in a column that
    /// represents null by a value.
    ///
    /// Returns `None` if all rows are null or NaN.
    pub fn bounds(&self) -> Option<(&Value, &Value)> {
        self.extremes.bounds.as_ref().map(|(least, greatest)| (least, greatest))
    }

    /// Returns whether NaN can be among the items. Neither bound describes NaN: in an order that places NaN above all
    /// numbers, such as that of Arrow, the segment has no known maximum.
    pub fn has_nan(&self) -> bool {
        self.extremes.has_nan
    }

    /// Returns whether all rows are known to be null.
    pub fn is_null(&self) -> bool {
        self.extremes.is_null
    }

    /// Whether a row, which is not null, can have an item in a range. The start and the end of the range are known.
    pub(super) fn may_meet(&self, (start, end): &(Bound<Value>, Bound<Value>)) -> bool {
        if matches!((start, end), (Bound::Unbounded, Bound::Unbounded)) {
            return !self.extremes.is_null;
        }
        // A range with a bound has no NaN.
        let Some((least, greatest)) = &self.extremes.bounds else { return false };
        // Values that are not ordered do not exclude anything.
        let after_start = match start {
            Bound::Included(start) => order(greatest, start).is_none_or(Ordering::is_ge),
            Bound::Excluded(start) => order(greatest, start).is_none_or(Ordering::is_gt),
            Bound::Unbounded => true,
        };
        let before_end = match end {
            Bound::Included(end) => order(least, end).is_none_or(Ordering::is_le),
            Bound::Excluded(end) => order(least, end).is_none_or(Ordering::is_lt),
            Bound::Unbounded => true,
        };
        after_start && before_end
    }
}

/// The order of two items of a column.
pub(super) fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Bool(one), Value::Bool(other)) => Some(one.cmp(other)),
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        (Value::Float(one), Value::Float(other)) => one.partial_cmp(other),
        _ => None,
    }
}

/// The bounds of a range as values; `None` if the order of `T` may differ from that of the column.
pub(super) fn bounds_of<T: Element>(
    range: &(Bound<T>, Bound<T>),
    array: &NDArray,
) -> Option<(Bound<Value>, Bound<Value>)> {
    macro_rules! is_any_of {
        ($($type:ty)*) => {
            [$(std::any::TypeId::of::<$type>()),*].contains(&std::any::TypeId::of::<T>())
        };
    }
    let dtype = T::dtype();
    // Other types can have an order of their own.
    let is_ordered = is_any_of!(bool u8 u16 u32 u64 i8 i16 i32 i64 f32 f64);
    if !is_ordered || array.dtype() != Some(&dtype) {
        return None;
    }
    let value = |bound: &Bound<T>| {
        let value = |item: &T| scalar(&dtype, &bytes_of(&[*item])).ok();
        Some(match bound {
            Bound::Included(item) => Bound::Included(value(item)?),
            Bound::Excluded(item) => Bound::Excluded(value(item)?),
            Bound::Unbounded => Bound::Unbounded,
        })
    };
    Some((value(&range.0)?, value(&range.1)?))
}

/// The records of the segments of a column: for each segment the smallest and the largest item, and flags.
#[derive(Debug, Clone)]
struct Records {
    dtype: Dtype,
    /// The number of rows of the column, including dead rows.
    rows: u64,
    /// The number of rows of a segment.
    step: u64,
    bytes: Vec<u8>,
}

impl Records {
    fn size(&self) -> usize {
        record_size(&self.dtype)
    }

    fn len(&self) -> usize {
        self.bytes.len() / self.size()
    }

    /// The rows of a segment, including dead rows.
    fn places(&self, at: usize) -> Range<u64> {
        let start = at as u64 * self.step;
        start..start.saturating_add(self.step).min(self.rows)
    }

    fn extremes(&self, at: usize) -> Extremes {
        let record = &self.bytes[at * self.size()..(at + 1) * self.size()];
        let (least, rest) = record.split_at(self.dtype.size());
        let (greatest, flags) = rest.split_at(self.dtype.size());
        let flags = flags[0];
        let bounds = match (scalar(&self.dtype, least), scalar(&self.dtype, greatest)) {
            (Ok(least), Ok(greatest)) if flags & ALL_NAN == 0 => Some((least, greatest)),
            _ => None,
        };
        let is_null = flags & ALL_NULL != 0;
        // A reader of the flag of NaN alone must not take the zeros of such a segment as its extremes.
        let has_nan = flags & HAS_NAN != 0 || flags & ALL_NAN != 0 && !is_null;
        Extremes { bounds, has_nan, is_null }
    }

    /// Whether each record can be that of a segment.
    fn are_valid(&self) -> bool {
        (0..self.len()).all(|at| {
            let flags = self.bytes[(at + 1) * self.size() - 1];
            let known = flags & !(ALL_NAN | HAS_NAN | ALL_NULL) == 0;
            let nulls = flags & ALL_NULL == 0 || flags & ALL_NAN != 0;
            let ordered = match self.extremes(at).bounds {
                Some((least, greatest)) => order(&least, &greatest).is_some_and(Ordering::is_le),
                None => true,
            };
            known && nulls && ordered
        })
    }
}

fn record_size(dtype: &Dtype) -> usize {
    2 * dtype.size() + 1
}

fn record_dtype(dtype: &Dtype) -> Option<Dtype> {
    let size = dtype.size();
    let fields = [
        Field::new("min", 0, dtype.clone()),
        Field::new("max", size, dtype.clone()),
        Field::new("flags", 2 * size, u8::dtype()),
    ];
    Dtype::structure(record_size(dtype), fields).ok()
}

/// The dtype of the items of a column that can have a summary: numbers, booleans and timestamps.
fn summarized<'a>(column: &Column, array: &'a NDArray) -> Option<&'a Dtype> {
    let is_plain = !matches!(column.kind(), ItemKind::NDArray { .. } | ItemKind::Dictionary { .. });
    let is_number = |dtype: &&Dtype| {
        let is_known = match dtype.kind() {
            Some(Kind::Bool | Kind::Int | Kind::UInt) => true,
            Some(Kind::Float) => matches!(dtype.size(), 4 | 8),
            _ => false,
        };
        is_known && dtype.size() == array.typesize()
    };
    array
        .dtype()
        .filter(|_| is_plain && column.kind().has_items() && array.ndim() == 1)
        .filter(is_number)
}

/// A level of segments: its name, and the number of rows of a segment.
fn levels(array: &NDArray) -> [(&'static str, u64); 2] {
    [("block", array.block_shape()[0]), ("chunk", array.chunk_shape()[0])]
}

/// The key of an index below the table.
fn key_of(name: &str, level: &str) -> String {
    format!("/_indexes/{name}/{KIND}.{level}")
}

/// The name of the file of an index in its store.
fn path_of(parts: &Parts, name: &str, level: &str) -> String {
    crate::key::to_name(&format!("{}{}", parts.root, key_of(name, level)), "b2nd")
}

/// Reads the summary of a column. Returns `None` if the table has no index for it, or one that must not be used: a stale
/// index, one for another state of the column, or a damaged one. An index only saves time, so that its faults are no
/// errors.
pub(super) fn read(
    parts: &Parts,
    meta: &SChunk,
    column: &Column,
    array: &NDArray,
    live: &LiveRows,
) -> Result<Option<Summary>> {
    let found = read_records(parts, meta, column, array).and_then(|records| {
        let Some((_, records)) = records else { return Ok(None) };
        let starts = (0..records.len()).map(|at| records.places(at).start);
        let before = live.before(starts.chain([records.rows]))?;
        Ok(Some(Summary { records, before }))
    });
    match found {
        Err(error) if error.kind() != ErrorKind::Io => Ok(None),
        found => found,
    }
}

/// The records of the index of a column that describes its present items, and the level of their segments.
fn read_records(
    parts: &Parts,
    meta: &SChunk,
    column: &Column,
    array: &NDArray,
) -> Result<Option<(&'static str, Records)>> {
    let Some(dtype) = summarized(column, array) else { return Ok(None) };
    let Some(entry) = current_entry(meta, KIND, column, array)? else { return Ok(None) };
    let Some((level, step)) = current_level(parts, &entry, column, array) else {
        return Ok(None);
    };
    let rows = array.shape()[0];
    let Some(member) = parts.get_for_reading(&key_of(column.name(), level), "b2nd")? else {
        return Ok(None);
    };
    let member = NDArray::from_schunk(member)?;
    let is_index = member.shape() == [rows.div_ceil(step)]
        && member.typesize() == record_size(dtype)
        && member.dtype().cloned() == record_dtype(dtype);
    if !is_index {
        return Ok(None);
    }
    let schunk = member.schunk();
    // Besides each record, the number of live rows before it.
    let each = (record_size(dtype) + size_of::<u64>()) as u64;
    Budget::of(schunk, schunk.cbytes()).take(member.shape()[0].saturating_mul(each))?;
    let bytes = member.read::<RawItems>(..)?.0;
    let records = Records { dtype: dtype.clone(), rows, step, bytes };
    Ok(records.are_valid().then_some((level, records)))
}

/// The entry of an index of this kind that describes the present state of a column; `None` if there is none, or if the
/// index is stale.
pub(super) fn current_entry(
    meta: &SChunk,
    kind: &str,
    column: &Column,
    array: &NDArray,
) -> Result<Option<Value>> {
    let Some(catalog) = meta.vlmeta().value(INDEXES)? else { return Ok(None) };
    let Some(entry) = catalog.get(column.name()) else { return Ok(None) };
    let epoch = meta.vlmeta().value(EPOCH)?.map_or(Some(0), |epoch| epoch.as_u64());
    Ok(is_current(entry, kind, array, epoch).then(|| entry.clone()))
}

/// Whether the entry of an index of this kind describes the present state of a column. The kind determines how many
/// places it has.
fn is_current(entry: &Value, kind: &str, array: &NDArray, epoch: Option<u64>) -> bool {
    let dtype = text(entry, "dtype").and_then(|dtype| Dtype::parse(&dtype).ok());
    let target = entry.get("target").and_then(|target| text(target, "source"));
    text(entry, "kind").as_deref() == Some(kind)
        && number(entry, "version") == Some(VERSION)
        && entry.get("stale") == Some(&Value::Bool(false))
        && epoch.is_some()
        && number(entry, "built_value_epoch") == epoch
        && target.as_deref() == Some("field")
        && entry.get("field") == Some(&Value::None)
        && dtype.as_ref() == array.dtype()
        && is_shape(entry, "chunks", array.chunk_shape())
        && is_shape(entry, "blocks", array.block_shape())
}

fn is_shape(entry: &Value, name: &str, shape: &[u64]) -> bool {
    let found = entry.get(name).and_then(Value::as_list);
    found
        .is_some_and(|found| found.iter().map(Value::as_u64).eq(shape.iter().map(|len| Some(*len))))
}

fn number(entry: &Value, name: &str) -> Option<u64> {
    entry.get(name).and_then(Value::as_u64)
}

fn text(entry: &Value, name: &str) -> Option<String> {
    entry.get(name).and_then(Value::as_str).map(str::to_owned)
}

/// The finest level of a SUMMARY index of a column, if the index has the places of the column.
fn current_level(
    parts: &Parts,
    entry: &Value,
    column: &Column,
    array: &NDArray,
) -> Option<(&'static str, u64)> {
    let rows = array.shape()[0];
    let found = levels(array).into_iter().find(|(level, step)| {
        let Some(found) = entry.get("levels").and_then(|levels| levels.get(level)) else {
            return false;
        };
        *step > 0
            && number(found, "segment_len") == Some(*step)
            && number(found, "nsegments") == Some(rows.div_ceil(*step))
            && text(found, "path") == Some(path_of(parts, column.name(), level))
    });
    found.filter(|_| is_shape(entry, "shape", array.shape()))
}
