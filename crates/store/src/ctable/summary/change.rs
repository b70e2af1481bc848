//! Keeping the summaries of a table that is changed.

use std::ops::Range;

use super::super::WRITE;
use super::super::column::{Column, Nulls, Stored};
use super::super::live::AT_ONCE;
use super::super::part::{Budget, Parts, row_bytes, special_of};
use super::super::scalar::{as_item, same, scalar};
use super::*;
use crate::blosc2::dtype::Kind;
use crate::blosc2::{Dtype, ErrorKind, NDArray, RawItems, Result, SChunk, Special, Value};
use crate::tag::error;

/// The maximum bytes of a summary that is larger than the column itself. It bounds the memory that a column of a few stored
/// bytes takes, and describes 10^9 rows in blocks of default size.
const MAX_BYTES: u64 = 1 << 20;

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
    match special_of(array, rows)? {
        Some(Special::Zeros | Special::Nan | Special::Value) => {
            let first = rows.start..rows.start + 1;
            Ok(Some(array.read::<RawItems>([first])?.0))
        }
        _ => Ok(None),
    }
}

/// The summary of a column while the table is changed.
#[derive(Debug)]
pub(in crate::ctable) struct Kept {
    level: &'static str,
    records: Records,
    /// Whether the record of a segment describes its present items.
    current: Vec<bool>,
    /// Whether the stored index has these records.
    stored: bool,
}

impl Kept {
    /// A summary without records.
    pub(in crate::ctable) fn new(column: &Column, array: &NDArray) -> Option<Self> {
        let dtype = summarized(column, array).filter(|dtype| dtype.is_native())?.clone();
        let [(level, step), _] = levels(array);
        let records = Records { dtype, rows: 0, step: step.max(1), bytes: Vec::new() };
        Some(Self { level, records, current: Vec::new(), stored: false })
    }

    /// The summary of the stored index, if the index describes the present items.
    pub(in crate::ctable) fn read(
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
    pub(in crate::ctable) fn resize(&mut self, array: &NDArray, rows: u64) -> Result<()> {
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
    pub(in crate::ctable) fn forget(&mut self, places: impl IntoIterator<Item = u64>) {
        for place in places {
            if let Some(current) = self.current.get_mut((place / self.records.step) as usize) {
                *current = false;
            }
        }
    }

    /// Notes that all items in a range of places change.
    pub(in crate::ctable) fn forget_range(&mut self, places: Range<u64>) {
        let step = usize::try_from(self.records.step).unwrap_or(usize::MAX);
        self.forget(places.clone().step_by(step).chain(places.end.checked_sub(1)));
    }

    /// Summarizes the segments that consist only of new rows from place `at` on.
    pub(in crate::ctable) fn add(
        &mut self,
        column: &Column,
        at: u64,
        bytes: &[u8],
        nulls: Option<&[bool]>,
    ) {
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
    pub(in crate::ctable) fn store(
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
            && is_current(old, KIND, array, Some(epoch))
            && current_level(parts, old, column, array).is_some()
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
