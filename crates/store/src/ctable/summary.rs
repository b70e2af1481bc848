//! Summaries of columns: the smallest and the largest item of each part of a column. Python: SUMMARY indexes.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use blosc2::dtype::{Field, Kind};
use blosc2::elements::bytes_of;
use blosc2::{Dtype, Element, ErrorKind, NDArray, RawItems, Result, SChunk, Special, Value};

use super::WRITE;
use super::column::{Column, Nulls, Stored};
use super::live::{AT_ONCE, LiveRows};
use super::part::{Budget, Parts, row_bytes};
use super::scalar::{as_item, same, scalar};
use crate::ItemKind;
use crate::tag::error;

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
/// The maximum bytes of a summary that is larger than the column itself. It bounds the memory that a column of a few stored
/// bytes takes, and describes 10^9 rows in blocks of default size.
const MAX_BYTES: u64 = 1 << 20;

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

/// The content of a record.
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
fn order(one: &Value, other: &Value) -> Option<Ordering> {
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
    use std::any::TypeId;
    // Other types can have an order of their own.
    let ordered = [
        TypeId::of::<bool>(),
        TypeId::of::<u8>(),
        TypeId::of::<u16>(),
        TypeId::of::<u32>(),
        TypeId::of::<u64>(),
        TypeId::of::<i8>(),
        TypeId::of::<i16>(),
        TypeId::of::<i32>(),
        TypeId::of::<i64>(),
        TypeId::of::<f32>(),
        TypeId::of::<f64>(),
    ];
    let dtype = T::dtype();
    if !ordered.contains(&TypeId::of::<T>()) || array.dtype() != Some(&dtype) {
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
    /// The dtype of the column.
    dtype: Dtype,
    /// The number of rows of the column, including dead rows.
    rows: u64,
    /// The number of rows of a segment.
    step: u64,
    bytes: Vec<u8>,
}

impl Records {
    /// The size of a record.
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

/// The dtype of records.
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

/// Checks that the summary of a column is not much larger than the column.
fn check_bytes(array: &NDArray, bytes: u64) -> Result<()> {
    let most = MAX_BYTES.max(array.schunk().cbytes());
    if bytes <= most {
        return Ok(());
    }
    let detail = format!("a summary of {bytes} bytes, at most {most} are written for this column");
    Err(error(array.schunk(), ErrorKind::TooLarge, WRITE, detail))
}

/// The item of all rows in a range, if the range lies in a special chunk.
fn repeated(array: &NDArray, rows: &Range<u64>) -> Result<Option<Vec<u8>>> {
    let len = array.chunk_shape()[0].max(1);
    let (first, last) = (rows.start / len, (rows.end - 1) / len);
    let chunk = if first == last { array.chunk(first as usize) } else { None };
    match chunk.map(|chunk| chunk.info()).transpose()?.and_then(|info| info.special) {
        Some(Special::Zeros | Special::Nan | Special::Value) => {
            let first = rows.start..rows.start + 1;
            Ok(Some(array.read::<RawItems>([first])?.0))
        }
        _ => Ok(None),
    }
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
    let Some(catalog) = meta.vlmeta().value(INDEXES)? else { return Ok(None) };
    let Some(entry) = catalog.get(column.name()) else { return Ok(None) };
    let epoch = meta.vlmeta().value(EPOCH)?.map_or(Some(0), |epoch| epoch.as_u64());
    let Some((level, step)) = current_level(parts, entry, column, array, epoch) else {
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

/// The finest level of an index that describes the present state of a column.
fn current_level(
    parts: &Parts,
    entry: &Value,
    column: &Column,
    array: &NDArray,
    epoch: Option<u64>,
) -> Option<(&'static str, u64)> {
    let number = |entry: &Value, name: &str| entry.get(name).and_then(Value::as_u64);
    let is_shape = |name: &str, shape: &[u64]| {
        let found = entry.get(name).and_then(Value::as_list);
        found.is_some_and(|found| {
            found.iter().map(Value::as_u64).eq(shape.iter().map(|len| Some(*len)))
        })
    };
    let text =
        |entry: &Value, name: &str| entry.get(name).and_then(Value::as_str).map(str::to_owned);
    let dtype = text(entry, "dtype").and_then(|dtype| Dtype::parse(&dtype).ok());
    let target = entry.get("target").and_then(|target| text(target, "source"));
    let is_current = text(entry, "kind").as_deref() == Some(KIND)
        && number(entry, "version") == Some(VERSION)
        && entry.get("stale") == Some(&Value::Bool(false))
        && epoch.is_some()
        && number(entry, "built_value_epoch") == epoch
        && target.as_deref() == Some("field")
        && entry.get("field") == Some(&Value::None)
        && dtype.as_ref() == array.dtype()
        && is_shape("shape", array.shape())
        && is_shape("chunks", array.chunk_shape())
        && is_shape("blocks", array.block_shape());
    if !is_current {
        return None;
    }
    let rows = array.shape()[0];
    levels(array).into_iter().find(|(level, step)| {
        let Some(found) = entry.get("levels").and_then(|levels| levels.get(level)) else {
            return false;
        };
        *step > 0
            && number(found, "segment_len") == Some(*step)
            && number(found, "nsegments") == Some(rows.div_ceil(*step))
            && text(found, "path") == Some(path_of(parts, column.name(), level))
    })
}

/// The summary of a column while the table is changed.
#[derive(Debug)]
pub(super) struct Kept {
    level: &'static str,
    records: Records,
    /// Whether the record of a segment describes its present items.
    current: Vec<bool>,
    /// Whether the stored index has these records.
    stored: bool,
}

impl Kept {
    /// A summary without records.
    pub(super) fn new(column: &Column, array: &NDArray) -> Option<Self> {
        let dtype = summarized(column, array).filter(|dtype| dtype.is_native())?.clone();
        let [(level, step), _] = levels(array);
        let records = Records { dtype, rows: 0, step: step.max(1), bytes: Vec::new() };
        Some(Self { level, records, current: Vec::new(), stored: false })
    }

    /// The summary of the stored index, if the index describes the present items.
    pub(super) fn read(
        parts: &Parts,
        meta: &SChunk,
        column: &Column,
        array: &NDArray,
    ) -> Option<Self> {
        let (level, records) = read_records(parts, meta, column, array).ok().flatten()?;
        check_bytes(array, records.bytes.len() as u64).ok()?;
        let current = vec![true; records.len()];
        let is_native = records.dtype.is_native();
        is_native.then_some(Self { level, records, current, stored: true })
    }

    /// Changes the number of rows to that of the column, or to a larger one that the column will have. Fails if the
    /// summary would be too large.
    pub(super) fn resize(&mut self, array: &NDArray, rows: u64) -> Result<()> {
        let (old, step) = (self.records.rows, self.records.step);
        if rows == old {
            return Ok(());
        }
        let len = rows.div_ceil(step);
        check_bytes(array, len.saturating_mul(self.records.size() as u64))?;
        let (boundary, len) = (old.min(rows), len as usize);
        self.records.rows = rows;
        self.records.bytes.resize(len * self.records.size(), 0);
        self.current.resize(len, false);
        self.stored = false;
        // The segment that ended or ends there has other rows now.
        if !boundary.is_multiple_of(step) {
            self.forget([boundary]);
        }
        Ok(())
    }

    /// Notes that the items at some places change.
    pub(super) fn forget(&mut self, places: impl IntoIterator<Item = u64>) {
        for place in places {
            if let Some(current) = self.current.get_mut((place / self.records.step) as usize) {
                *current = false;
            }
        }
    }

    /// Notes that all items in a range of places change.
    pub(super) fn forget_range(&mut self, places: Range<u64>) {
        let step = usize::try_from(self.records.step).unwrap_or(usize::MAX);
        self.forget(places.clone().step_by(step).chain(places.end.checked_sub(1)));
    }

    /// Summarizes the segments that consist only of new rows from place `at` on.
    pub(super) fn add(&mut self, column: &Column, at: u64, bytes: &[u8], nulls: Option<&[bool]>) {
        let (size, step) = (self.records.dtype.size().max(1), self.records.step);
        let end = at + (bytes.len() / size) as u64;
        let mut start = at.next_multiple_of(step);
        while start + step <= end {
            let rows = (start - at) as usize..(start - at + step) as usize;
            let nulls = nulls.map(|nulls| &nulls[rows.clone()]);
            let bytes = &bytes[rows.start * size..rows.end * size];
            self.summarize((start / step) as usize, column, bytes, nulls);
            start += step;
        }
    }

    /// Summarizes the items of a segment.
    fn summarize(&mut self, at: usize, column: &Column, bytes: &[u8], nulls: Option<&[bool]>) {
        let record = record_of(column, &self.records.dtype, bytes, nulls);
        self.put(at, &record);
    }

    fn put(&mut self, at: usize, record: &[u8]) {
        let size = self.records.size();
        if let Some(place) = self.records.bytes.get_mut(at * size..(at + 1) * size) {
            self.stored &= place == record;
            place.copy_from_slice(record);
            self.current[at] = true;
        }
    }

    /// Reads the items of the segments whose record is not current.
    fn complete(&mut self, column: &Column, stored: &Stored, array: &NDArray) -> Result<()> {
        let row = row_bytes(array).max(1);
        let at_once = (AT_ONCE / row).max(1) as u64;
        // A few stored bytes can represent very many items.
        let mut budget = Budget::of_all(array.schunk(), array.schunk().cbytes());
        let mut at = 0;
        while let Some(first) = self.current[at..].iter().position(|is| !is).map(|skip| at + skip) {
            at = first + 1;
            if let Some(record) = self.repeated_record(first, column, stored, array)? {
                self.put(first, &record);
                continue;
            }
            let start = self.records.places(first).start;
            while at < self.current.len()
                && !self.current[at]
                && self.records.places(at).end - start <= at_once
            {
                at += 1;
            }
            let rows = start..self.records.places(at - 1).end;
            budget.take((rows.end - rows.start) * row as u64)?;
            let bytes = array.read::<RawItems>([rows.clone()])?.0;
            let nulls = stored.marks.as_ref().map(|marks| marks.read::<Vec<bool>>([rows]));
            let nulls = nulls.transpose()?.map(|marks| marks.iter().map(|mark| !mark).collect());
            let nulls: Option<Vec<bool>> = nulls;
            for segment in first..at {
                let places = self.records.places(segment);
                let part = (places.start - start) as usize..(places.end - start) as usize;
                let nulls = nulls.as_ref().map(|nulls| &nulls[part.clone()]);
                self.summarize(segment, column, &bytes[part.start * row..part.end * row], nulls);
            }
        }
        Ok(())
    }

    /// The record of a segment whose rows are all equal, without decompressing them.
    fn repeated_record(
        &self,
        at: usize,
        column: &Column,
        stored: &Stored,
        array: &NDArray,
    ) -> Result<Option<Vec<u8>>> {
        let rows = self.records.places(at);
        let Some(item) = repeated(array, &rows)? else { return Ok(None) };
        let mark = match &stored.marks {
            Some(marks) => match repeated(marks, &rows)? {
                Some(mark) => Some([mark == [0]]),
                None => return Ok(None),
            },
            None => None,
        };
        Ok(Some(record_of(column, &self.records.dtype, &item, mark.as_ref().map(|mark| &mark[..]))))
    }

    /// Stores the index of a column, if it is not stored. Returns its new entry in the catalog; `None` if the old one is
    /// right.
    pub(super) fn store(
        &mut self,
        parts: &mut Parts,
        column: &Column,
        stored: &Stored,
        old: Option<&Value>,
        epoch: u64,
    ) -> Result<Option<Value>> {
        let key = key_of(column.name(), self.level);
        let kind = old.map(|old| old.get("kind").and_then(Value::as_str));
        let is_other = kind.is_some_and(|kind| kind != Some(KIND));
        // Python puts a name with a backslash into the name of a directory, which it does not find in a zip file.
        let is_key = crate::key::check(&format!("{}{key}", parts.root)).is_ok();
        let (Some(array), false, true) = (stored.items(), is_other, is_key) else {
            return Ok(None);
        };
        self.resize(array, array.shape()[0])?;
        self.complete(column, stored, array)?;
        if self.stored
            && let Some(old) = old
            && current_level(parts, old, column, array, Some(epoch)).is_some()
        {
            return Ok(None);
        }
        let Some(dtype) = record_dtype(&self.records.dtype) else { return Ok(None) };
        if !self.stored {
            let builder = NDArray::builder().dtype(&dtype.to_string(), dtype.size());
            let member =
                builder.from_slice(RawItems(&self.records.bytes), [self.records.len() as u64])?;
            parts.put(&key, "b2nd", member.schunk())?;
            self.stored = true;
        }
        Ok(Some(self.entry(parts, column, array, epoch)))
    }

    /// The entry of the catalog, with all fields that Python writes.
    fn entry(&self, parts: &Parts, column: &Column, array: &NDArray, epoch: u64) -> Value {
        let dtype = Value::from(self.records.dtype.to_string());
        let field = |name: &str, dtype: &Value| Value::Tuple(vec![name.into(), dtype.clone()]);
        let fields =
            vec![field("min", &dtype), field("max", &dtype), field("flags", &"|u1".into())];
        let lengths =
            |lengths: &[u64]| Value::Tuple(lengths.iter().map(|len| (*len).into()).collect());
        let level = Value::from([
            ("segment_len", self.records.step.into()),
            ("nsegments", (self.records.len() as u64).into()),
            ("path", path_of(parts, column.name(), self.level).into()),
            ("dtype", Value::List(fields)),
        ]);
        let null_aware = matches!(column.nulls, Nulls::Mask | Nulls::Sentinel(_));
        Value::from([
            ("name", "__self__".into()),
            ("token", column.name().into()),
            ("target", Value::from([("source", "field".into()), ("field", Value::None)])),
            ("field", Value::None),
            ("kind", KIND.into()),
            ("version", VERSION.into()),
            ("optlevel", 5.into()),
            ("persistent", true.into()),
            ("ooc", true.into()),
            ("stale", false.into()),
            ("dtype", dtype),
            ("shape", lengths(array.shape())),
            ("chunks", lengths(array.chunk_shape())),
            ("blocks", lengths(array.block_shape())),
            ("levels", Value::from([(self.level, level)])),
            ("bucket", Value::None),
            ("partial", Value::None),
            ("full", Value::None),
            ("opsi", Value::None),
            ("cparams", Value::None),
            ("null_aware", null_aware.into()),
            ("built_value_epoch", epoch.into()),
        ])
    }
}

/// The record of items. Null rows do not count.
fn record_of(column: &Column, dtype: &Dtype, bytes: &[u8], nulls: Option<&[bool]>) -> Vec<u8> {
    let found;
    let nulls = match &column.nulls {
        Nulls::Sentinel(null) => {
            let null = as_item(null, dtype);
            let is_null = |item: &[u8]| scalar(dtype, item).is_ok_and(|item| same(&item, &null));
            found = bytes.chunks_exact(dtype.size().max(1)).map(is_null).collect::<Vec<_>>();
            Some(&found[..])
        }
        _ => nulls,
    };
    macro_rules! fold {
        ($type:ty) => {
            fold(bytes, nulls, <$type>::from_ne_bytes, <$type>::to_ne_bytes)
        };
    }
    match (dtype.kind(), dtype.size()) {
        (Some(Kind::Int), 1) => fold!(i8),
        (Some(Kind::Int), 2) => fold!(i16),
        (Some(Kind::Int), 4) => fold!(i32),
        (Some(Kind::Int), _) => fold!(i64),
        (Some(Kind::Float), 4) => fold!(f32),
        (Some(Kind::Float), _) => fold!(f64),
        (_, 1) => fold!(u8),
        (_, 2) => fold!(u16),
        (_, 4) => fold!(u32),
        _ => fold!(u64),
    }
}

fn fold<T: Copy + PartialOrd, const N: usize>(
    bytes: &[u8],
    nulls: Option<&[bool]>,
    read: fn([u8; N]) -> T,
    write: fn(T) -> [u8; N],
) -> Vec<u8> {
    let (mut bounds, mut has_nan) = (None, false);
    let items = bytes.as_chunks::<N>().0;
    for (row, &item) in items.iter().enumerate() {
        if nulls.is_some_and(|nulls| nulls[row]) {
            continue;
        }
        let item = read(item);
        bounds = match bounds {
            _ if item.partial_cmp(&item).is_none() => {
                has_nan = true;
                bounds
            }
            None => Some((item, item)),
            Some((least, _)) if item < least => bounds.map(|(_, greatest)| (item, greatest)),
            Some((least, greatest)) => Some((least, if item > greatest { item } else { greatest })),
        };
    }
    let has_nan = if has_nan { HAS_NAN } else { 0 };
    let (least, greatest, flags) = match bounds {
        Some((least, greatest)) => (write(least), write(greatest), has_nan),
        None if has_nan != 0 => ([0; N], [0; N], ALL_NAN | HAS_NAN),
        None => ([0; N], [0; N], ALL_NULL | ALL_NAN),
    };
    [&least[..], &greatest, &[flags]].concat()
}
