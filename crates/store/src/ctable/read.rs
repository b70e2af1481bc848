//! Reading columns, for each kind of storage.

use std::ops::Range;
use std::sync::OnceLock;

use crate::blosc2::dtype::Kind;
use crate::blosc2::super_chunk::Revision;
use crate::blosc2::{ArrayValue, Dtype, Error, ErrorKind, NDArray, Result, SChunk, Value};

#[cfg(feature = "arrow")]
use super::CTable;
use super::cells::{Cells, Encoded, Texts};
use super::column::{Column, Content, Nulls, Stored};
use super::live::{AT_ONCE, GAP, LiveRows, Span, check_rows};
use super::part::{Budget, Parts, array_in, check_array, leaf, row_bytes, unlike};
use super::rows::Ascending;
use super::scalar::{as_item, same, scalar};
use super::{OPEN, READ};
use crate::tag::{error, weight, what};
use crate::{BatchArray, ItemKind, ObjectArray};

/// Live rows that are decoded at once.
const WINDOW: u64 = 1 << 16;
/// Bytes of memory of the values of a part of a column.
const PART: u64 = 16 << 20;

/// The key of the mask of rows that are not null.
fn marks_key(column: &Column) -> String {
    format!("{}.notnull", column.key)
}

impl Stored {
    pub(super) fn open(parts: &Parts, column: &Column) -> Result<Self> {
        let key = &column.key;
        let leaf = |key: &str, ending| leaf(parts, key, ending).and_then(|it| column.prepare(it));
        let array = |key: &str| leaf(key, "b2nd").and_then(array_in);
        let marks = match column.nulls {
            Nulls::Mask => {
                parts.get(&marks_key(column), "b2nd")?.map(NDArray::from_schunk).transpose()?
            }
            _ => None,
        };
        if let Some(marks) = &marks {
            check_array(marks, "|b1", |dtype| dtype.kind() == Some(Kind::Bool))?;
        }
        let content = match column.kind() {
            ItemKind::Dictionary { .. } => {
                let mut codes = array(key)?;
                codes.set_dparams(codes.info().dparams.convert_byte_order(true));
                check_array(&codes, "i4", |dtype| is(dtype, Kind::Int, 4))?;
                let texts = BatchArray::from_schunk(leaf(&format!("{key}_dict"), "b2b")?)?;
                Content::Codes { codes, texts, decoded: OnceLock::new() }
            }
            ItemKind::Utf8 => {
                let mut offsets = array(key)?;
                offsets.set_dparams(offsets.info().dparams.convert_byte_order(true));
                check_array(&offsets, "i8", |dtype| is(dtype, Kind::Int, 8))?;
                let bytes = array(&format!("{key}.utf8"))?;
                check_array(&bytes, "|u1", |dtype| is(dtype, Kind::UInt, 1))?;
                Content::Texts { offsets, bytes }
            }
            kind if kind.has_batches() => {
                let schunk = leaf(key, "b2b")?;
                match schunk.meta().contains("vlarray") {
                    true => Content::Cells(ObjectArray::from_schunk(schunk)?),
                    false => Content::Batches(BatchArray::from_schunk(schunk)?),
                }
            }
            _ => {
                let array = array(key)?;
                check_items(&array, column)?;
                Content::Items(array)
            }
        };
        // Opened before: a later change alters the revision.
        let seen = revision(&content)?;
        let stored = Self { content, marks, seen };
        #[cfg(feature = "c")]
        if let Some(threads) = parts.threads {
            let mut stored = stored;
            stored.set_threads(threads)?;
            return Ok(stored);
        }
        Ok(stored)
    }

    /// Whether no other handle has changed strings, codes or batches since they were opened. Items have no state besides
    /// their array.
    pub(super) fn is_current(&self) -> Result<bool> {
        Ok(revision(&self.content)? == self.seen)
    }

    /// Whether another handle has added the mask of rows that are not null since the column was opened.
    pub(super) fn lacks_marks(&self, parts: &Parts, column: &Column) -> bool {
        column.nulls == Nulls::Mask
            && self.marks.is_none()
            && parts.exists(&marks_key(column), "b2nd")
    }

    /// The array of fixed-size items; `None` if the column has none.
    pub(super) fn items(&self) -> Option<&NDArray> {
        match &self.content {
            Content::Items(array) | Content::Codes { codes: array, .. } => Some(array),
            _ => None,
        }
    }

    /// Its super-chunks, with the ends of their keys and the extensions of their files.
    pub(super) fn parts(&self) -> Vec<(&'static str, &'static str, &SChunk)> {
        let mut parts = match &self.content {
            Content::Items(array) => vec![("", "b2nd", array.schunk())],
            Content::Codes { codes, texts, .. } => {
                vec![("_dict", "b2b", texts.schunk()), ("", "b2nd", codes.schunk())]
            }
            Content::Texts { offsets, bytes } => {
                vec![(".utf8", "b2nd", bytes.schunk()), ("", "b2nd", offsets.schunk())]
            }
            Content::Batches(array) => vec![("", "b2b", array.schunk())],
            Content::Cells(array) => vec![("", "b2b", array.schunk())],
        };
        parts.extend(self.marks.iter().map(|marks| (".notnull", "b2nd", marks.schunk())));
        parts
    }

    /// The bytes of its content, without the padding of chunks, and the stored bytes.
    pub(super) fn sizes(&self) -> [u64; 2] {
        let nbytes = match &self.content {
            Content::Items(array) => nbytes_of(array),
            Content::Codes { codes, texts, .. } => nbytes_of(codes) + texts.schunk().nbytes(),
            Content::Texts { offsets, bytes } => nbytes_of(offsets) + nbytes_of(bytes),
            Content::Batches(array) => array.schunk().nbytes(),
            Content::Cells(array) => array.schunk().nbytes(),
        };
        let cbytes = self.parts().iter().map(|(.., schunk)| schunk.cbytes()).sum();
        [nbytes + self.marks.as_ref().map_or(0, nbytes_of), cbytes]
    }

    /// The array with a place for each row; `None` if there is none.
    fn axis(&self) -> Option<&NDArray> {
        match &self.content {
            Content::Texts { offsets, .. } => Some(offsets),
            _ => self.items(),
        }
    }

    /// The end of the first part of a range of rows. The values of the part take at most [`PART`] bytes of memory, unless
    /// those of one row, or of one block of a batch, take more. A part ends at the end of a block of a batch, or at
    /// `rows.end`, so that no block is decoded for two parts.
    pub(super) fn part_end(
        &self,
        column: &Column,
        live: &LiveRows,
        rows: Range<u64>,
    ) -> Result<u64> {
        let mut left = PART.min(self.budget().left());
        let most_of = |size: u64| left / size.saturating_add(Value::MEMORY);
        let longest = match &self.content {
            Content::Items(array) => Some(row_bytes(array) as u64),
            Content::Codes { .. } => {
                let words = self.words()?.unwrap_or_default();
                Some(words.iter().map(String::len).max().unwrap_or(0) as u64)
            }
            _ => None,
        };
        if let Some(size) = longest
            && (matches!(self.content, Content::Items(_)) || most_of(size) >= rows.end - rows.start)
        {
            return Ok(rows.end.min(rows.start.saturating_add(most_of(size).max(1))));
        }
        // Nested values take more memory than their bytes.
        let kind = column.kind();
        let is_flat = kind.is_text() || matches!(kind, ItemKind::VlBytes);
        let per_byte = if is_flat { 1 } else { Value::MEMORY };
        let words = self.words()?.unwrap_or_default();
        let most = left / per_byte;
        // The places whose values are read together, and are already counted.
        let (mut unit, mut end) = (0..0, rows.start);
        let axis = match &self.content {
            Content::Texts { offsets, .. } => Some(offsets),
            _ => self.items(),
        };
        for span in live.spans(rows.clone(), axis).of(WINDOW) {
            let span = span?;
            let lengths: Vec<u64> = match &self.content {
                Content::Codes { codes, .. } => {
                    let word = |code: i32| words.get(usize::try_from(code).ok()?);
                    let codes = span.read::<i32>(codes)?.into_iter();
                    codes.map(|code| word(code).map_or(0, |word| word.len() as u64)).collect()
                }
                Content::Texts { offsets, .. } => {
                    span.check_inside(offsets.schunk(), offsets.shape()[0].saturating_sub(1))?;
                    let places = span.rows.start..span.rows.end + 1;
                    let ends = offsets.read::<Vec<i64>>([places])?;
                    let length = |ends: &[i64]| ends[1].saturating_sub(ends[0]).max(0) as u64;
                    span.keep(ends.windows(2).map(length).collect(), 1)
                }
                _ => Vec::new(),
            };
            for (row, place) in span.numbers().enumerate() {
                if !unit.contains(&place) {
                    let found = match &self.content {
                        Content::Batches(array) => array.unit_of(place, most).ok(),
                        Content::Cells(array) => {
                            let chunk = usize::try_from(place).unwrap_or(usize::MAX);
                            let chunk = array.schunk().chunk_info(chunk).ok();
                            chunk.map(|chunk| (place..place + 1, chunk.nbytes as u64))
                        }
                        _ => Some((place..place + 1, lengths[row])),
                    };
                    // The read reports that a row is missing.
                    let Some((places, nbytes)) = found else { return Ok(rows.end) };
                    let values = Value::MEMORY.saturating_mul(places.end - places.start);
                    let memory = nbytes.saturating_mul(per_byte).saturating_add(values);
                    left = match left.checked_sub(memory) {
                        Some(left) => left,
                        None if end > rows.start => return Ok(end),
                        None => 0,
                    };
                    unit = places;
                }
                end += 1;
            }
        }
        Ok(end)
    }

    /// The distinct strings of a dictionary, in the order of their codes.
    pub(super) fn words(&self) -> Result<Option<&[String]>> {
        let Content::Codes { texts, decoded, .. } = &self.content else { return Ok(None) };
        words_of(texts, decoded).map(Some)
    }

    pub(super) fn budget(&self) -> Budget {
        let parts = self.parts();
        // The parts of a table have the same limits.
        Budget::of(parts[0].2, parts.iter().map(|(.., schunk)| schunk.cbytes()).sum())
    }

    /// Reads all live rows, to find out whether they can be read.
    pub(super) fn check_content(&self, column: &Column, live: &LiveRows) -> Result<()> {
        let (budget, mut held) = (self.budget(), None);
        for span in live.spans(0..live.len(), self.items()).of(WINDOW) {
            let span = span?;
            match self.items() {
                Some(array) => drop(span.read_bytes(array, row_bytes(array))?),
                None => drop(self.span_values(column, &span, &mut held, &budget)?),
            }
        }
        if let Some(marks) = &self.marks {
            for span in live.spans(0..live.len(), Some(marks)).of(WINDOW) {
                span?.read::<bool>(marks)?;
            }
        }
        Ok(())
    }

    /// The values of rows; `None` for null rows.
    pub(super) fn values<'a>(
        &self,
        column: &Column,
        live: &'a LiveRows,
        rows: impl Into<Ascending<'a>>,
    ) -> Result<Vec<Value>> {
        let mut budget = self.budget();
        let mut held = None;
        let mut values = Vec::new();
        for span in live.spans(rows, self.items()).of(WINDOW) {
            let mut more = self.span_values(column, &span?, &mut held, &budget)?;
            budget.take(more.iter().map(weight).sum())?;
            values.append(&mut more);
        }
        Ok(values)
    }

    fn span_values(
        &self,
        column: &Column,
        span: &Span,
        held: &mut Held,
        budget: &Budget,
    ) -> Result<Vec<Value>> {
        let cells = self.cells(span, held, budget)?;
        let nulls = self.nulls_of(column, span, &cells)?;
        let nulls = nulls.unwrap_or_default();
        let rows = span.numbers().count();
        let invalid = |detail| failed(self.parts()[0].2, detail);
        match cells {
            Cells::Items { dtype, bytes } => {
                let size = self.items().map_or(0, row_bytes);
                let bytes = |row| &bytes[row * size..(row + 1) * size];
                match column.kind() {
                    ItemKind::NDArray { shape, .. } => values(rows, &nulls, |row| {
                        let data = bytes(row).to_vec();
                        Ok(ArrayValue::new(dtype.clone(), shape.clone(), data)?.into())
                    }),
                    ItemKind::Bool => {
                        values(rows, &nulls, |row| Ok(Value::Bool(bytes(row) != [0])))
                    }
                    _ => values(rows, &nulls, |row| scalar(&dtype, bytes(row)).map_err(invalid)),
                }
            }
            Cells::Texts(texts) => values(rows, &nulls, |row| {
                std::str::from_utf8(texts.get(row))
                    .map(Value::from)
                    .map_err(|error| invalid(format!("a string is not UTF-8: {error}")))
            }),
            Cells::Codes { codes, texts, .. } => {
                let mut budget = budget.clone();
                values(rows, &nulls, |row| {
                    let code = codes[row];
                    let text = usize::try_from(code).ok().and_then(|code| texts.get(code));
                    let text = text.ok_or_else(|| {
                        let len = texts.len();
                        invalid(format!("a row has the code {code}, but there are {len} strings"))
                    })?;
                    // A few long strings can be repeated in many rows.
                    budget.take(text.len() as u64)?;
                    Ok(text.as_str().into())
                })
            }
            Cells::Values(all) => {
                let mut all = all.into_owned();
                let found = all.iter_mut().zip(nulls).filter(|(_, null)| *null);
                found.for_each(|(value, _)| *value = Value::None);
                Ok(all)
            }
        }
    }

    /// The wanted rows of a span, in the form in which they are stored.
    fn cells(&self, span: &Span, held: &mut Held, budget: &Budget) -> Result<Cells<'_>> {
        Ok(match &self.content {
            Content::Items(array) => {
                let dtype = array.dtype().ok_or_else(|| no_dtype(array))?.clone();
                Cells::Items { dtype, bytes: span.read_bytes(array, row_bytes(array))?.into() }
            }
            Content::Codes { codes, texts, decoded } => Cells::Codes {
                codes: span.read(codes)?.into(),
                first: 0,
                texts: words_of(texts, decoded)?.into(),
            },
            Content::Texts { offsets, bytes } => {
                let mut texts = Texts::default();
                read_texts(offsets, bytes, span, budget, &mut texts)?;
                Cells::Texts(texts)
            }
            Content::Batches(array) => Cells::Values(in_batches(array, span, held, budget)?.into()),
            Content::Cells(array) => {
                check_rows(&span.rows, array.len() as u64)
                    .map_err(|detail| failed(array.schunk(), detail))?;
                let mut taken = budget.clone();
                let cells = span.numbers().map(|row| {
                    let value = array.get(row as usize)?;
                    taken.take(weight(&value))?;
                    Ok(value)
                });
                Cells::Values(cells.collect::<Result<_>>()?)
            }
        })
    }

    /// Rows in the form in which they are stored, all at once; with their nulls, if the column is given.
    pub(super) fn joined(
        &self,
        column: Option<&Column>,
        live: &LiveRows,
        rows: Range<u64>,
    ) -> Result<Encoded<'_>> {
        let (mut budget, mut held) = (self.budget(), None);
        let axis = self.axis();
        let fixed = axis.map_or(0, row_bytes) as u64;
        budget.take((rows.end - rows.start).saturating_mul(fixed))?;
        let mut all: Option<Encoded<'_>> = None;
        let none = rows.is_empty().then(|| Ok(Span::all(0..0)));
        for span in live.spans(rows, axis).chain(none) {
            let span = span?;
            let cells = self.cells(&span, &mut held, &budget)?;
            match &cells {
                Cells::Texts(texts) => budget.take(texts.bytes.len() as u64)?,
                Cells::Values(values) => budget.take(values.iter().map(weight).sum())?,
                _ => {}
            }
            let nulls = column.map(|column| self.nulls_of(column, &span, &cells)).transpose()?;
            let part = Encoded { rows: span.numbers().count(), cells, nulls: nulls.flatten() };
            match &mut all {
                Some(all) => all.push(part),
                None => all = Some(part),
            }
        }
        Ok(all.unwrap_or_else(|| unreachable!("there is a span, which can be empty")))
    }

    /// The mask of null rows of a span; `None` if no row is null.
    fn nulls_of(
        &self,
        column: &Column,
        span: &Span,
        cells: &Cells<'_>,
    ) -> Result<Option<Vec<bool>>> {
        Ok(match (&column.nulls, cells) {
            (Nulls::Mask, _) => self.unmarked(span)?,
            (Nulls::Code(null), Cells::Codes { codes, .. }) => {
                Some(codes.iter().map(|code| i64::from(*code) == *null).collect())
            }
            (Nulls::Sentinel(Value::Str(null)), Cells::Texts(texts)) => {
                Some(texts.iter().map(|text| text == null.as_bytes()).collect())
            }
            (Nulls::Sentinel(null), Cells::Items { dtype, bytes }) => {
                let null = as_item(null, dtype);
                let is_moment = matches!(column.kind(), ItemKind::Timestamp { .. });
                // NumPy's NaT is null, in addition to the null value.
                let is_nat = |item: &Value| is_moment && *item == Value::Int(i64::MIN.into());
                let is_null = |item: &[u8]| {
                    scalar(dtype, item).is_ok_and(|item| same(&item, &null) || is_nat(&item))
                };
                let rows = bytes.chunks_exact(self.items().map_or(1, row_bytes).max(1));
                Some(rows.map(|row| row.chunks_exact(dtype.size()).all(is_null)).collect())
            }
            (Nulls::Native, Cells::Values(values)) => {
                Some(values.iter().map(|value| *value == Value::None).collect())
            }
            _ => None,
        })
    }

    /// The null rows of a span, if a mask marks the others.
    fn unmarked(&self, span: &Span) -> Result<Option<Vec<bool>>> {
        let marks = self.marks.as_ref().map(|marks| span.read::<bool>(marks)).transpose()?;
        Ok(marks.map(|marks| marks.into_iter().map(|mark| !mark).collect()))
    }

    pub(super) fn nulls<'a>(
        &self,
        column: &Column,
        live: &'a LiveRows,
        rows: impl Into<Ascending<'a>>,
    ) -> Result<Vec<bool>> {
        let rows = rows.into();
        let (mut budget, mut held) = (self.budget(), None);
        budget.take(rows.len())?;
        if column.nulls == Nulls::Never || column.nulls == Nulls::Mask && self.marks.is_none() {
            return Ok(vec![false; rows.len() as usize]);
        }
        let mut nulls = Vec::new();
        for span in live.spans(rows, self.marks.as_ref().or(self.items())).of(WINDOW) {
            let span = span?;
            let found = match (&column.nulls, &self.content) {
                (Nulls::Mask, _) => self.unmarked(&span)?,
                (Nulls::Code(null), Content::Codes { codes, .. }) => {
                    let codes = span.read::<i32>(codes)?.into_iter();
                    Some(codes.map(|code| i64::from(code) == *null).collect())
                }
                _ => self.nulls_of(column, &span, &self.cells(&span, &mut held, &budget)?)?,
            };
            let len = nulls.len() + span.numbers().count();
            nulls.extend(found.unwrap_or_default());
            nulls.resize(len, false);
        }
        Ok(nulls)
    }
}

/// The values of rows; `None` for null rows. `nulls` is empty if no row is null.
fn values(
    rows: usize,
    nulls: &[bool],
    mut value: impl FnMut(usize) -> Result<Value>,
) -> Result<Vec<Value>> {
    let mut values = Vec::with_capacity(rows);
    for row in 0..rows {
        let is_null = nulls.get(row).copied().unwrap_or(false);
        values.push(if is_null { Value::None } else { value(row)? });
    }
    Ok(values)
}

/// The bytes of the items of an array.
pub(super) fn nbytes_of(array: &NDArray) -> u64 {
    array.len().saturating_mul(array.typesize() as u64)
}

/// The revision of the part whose lengths or strings are kept in memory; `None` if there is none.
fn revision(content: &Content) -> Result<Option<Revision>> {
    let schunk = match content {
        Content::Codes { texts, .. } => texts.schunk(),
        Content::Texts { bytes, .. } => bytes.schunk(),
        Content::Batches(array) => array.schunk(),
        Content::Items(_) | Content::Cells(_) => return Ok(None),
    };
    schunk.revision().map(Some)
}

#[cfg(feature = "arrow")]
impl CTable {
    /// The stored dtype of a column with fixed-size items.
    pub(crate) fn stored_dtype(&self, name: &str) -> Result<Option<Dtype>> {
        let (_, stored) = self.stored(name)?;
        Ok(stored.items().and_then(NDArray::dtype).cloned())
    }

    /// Rows of a column in the form in which they are stored, without a value for each of them.
    pub(crate) fn stored_rows(&self, name: &str, rows: Range<u64>) -> Result<Encoded<'_>> {
        let (column, stored) = self.stored(name)?;
        stored.joined(Some(column), &self.live, rows)
    }
}

/// The rows of a batch that were decompressed last, and the index of the first.
type Held = Option<(u64, Vec<Value>)>;

/// The live rows of a span of an array of batches.
fn in_batches(
    array: &BatchArray,
    span: &Span,
    held: &mut Held,
    budget: &Budget,
) -> Result<Vec<Value>> {
    let invalid = |detail| failed(array.schunk(), detail);
    check_rows(&span.rows, array.known_nitems()?).map_err(invalid)?;
    let mut budget = budget.clone();
    let mut values = Vec::new();
    for row in span.numbers() {
        // The index in the rows that were decompressed last.
        let at = |(first, items): &(u64, Vec<Value>)| {
            let at = usize::try_from(row.checked_sub(*first)?).ok()?;
            (at < items.len()).then_some(at)
        };
        let (at, items) = match held.take().and_then(|last| Some((at(&last)?, last))) {
            Some(found) => found,
            None => {
                let found = array.around(row)?;
                let missing = || invalid(format!("row {row} is missing in its batch"));
                (at(&found).ok_or_else(missing)?, found)
            }
        };
        let value = &held.insert(items).1[at];
        budget.take(weight(value))?;
        values.push(value.clone());
    }
    Ok(values)
}

/// Appends the strings of the live rows of a span, which may be invalid UTF-8.
pub(super) fn read_texts(
    offsets: &NDArray,
    bytes: &NDArray,
    span: &Span,
    budget: &Budget,
    texts: &mut Texts<'_>,
) -> Result<()> {
    let invalid = |detail| failed(offsets.schunk(), detail);
    span.check_inside(offsets.schunk(), offsets.shape()[0].saturating_sub(1))?;
    let rows = &span.rows;
    let places = rows.start..rows.end + 1;
    let ends = offsets.read::<Vec<i64>>([places])?;
    let len = bytes.shape()[0];
    let in_order = ends.is_sorted() && ends.first().is_none_or(|&first| first >= 0);
    let (Some(&last), true) = (ends.last(), in_order) else {
        let detail =
            format!("the offsets of the strings of rows {rows:?} are not in ascending order");
        return Err(invalid(detail));
    };
    if last as u64 > len {
        let detail =
            format!("the strings of rows {rows:?} end at byte {last}, but there are {len} bytes");
        return Err(invalid(detail));
    }
    let live = span.keep(ends.windows(2).collect(), 1);
    budget.check(live.iter().map(|ends| (ends[1] - ends[0]) as u64).sum())?;
    let mut live = live.into_iter().peekable();
    while let Some(ends) = live.next() {
        let first = ends[0];
        let mut run = vec![ends];
        while let Some(ends) = live.next_if(|ends| {
            let gap = ends[0] - run[run.len() - 1][1];
            gap <= GAP as i64 && ends[1] - first <= AT_ONCE as i64
        }) {
            run.push(ends);
        }
        let places = first as u64..run[run.len() - 1][1] as u64;
        let bytes = bytes.read::<Vec<u8>>([places])?;
        for ends in run {
            let text = (ends[0] - first) as usize..(ends[1] - first) as usize;
            texts.push(&bytes[text]);
        }
    }
    Ok(())
}

/// The strings of a dictionary, which are decoded once.
fn words_of<'a>(array: &BatchArray, decoded: &'a OnceLock<Vec<String>>) -> Result<&'a [String]> {
    if let Some(words) = decoded.get() {
        return Ok(words);
    }
    let mut budget = Budget::of(array.schunk(), array.schunk().cbytes());
    let mut texts = Vec::new();
    for item in array.items() {
        let item = item?;
        budget.take(weight(&item))?;
        let Value::Str(text) = item else {
            let detail = format!("the dictionary contains {}, expected strings", what(&item));
            return Err(failed(array.schunk(), detail));
        };
        texts.push(text);
    }
    Ok(decoded.get_or_init(|| texts))
}

/// Whether a dtype, in any byte order, has this kind and size.
fn is(dtype: &Dtype, kind: Kind, size: usize) -> bool {
    dtype.kind() == Some(kind) && dtype.size() == size
}

/// Checks that an array has the dtype and shape of its column. Items can have another byte order than in new columns, and
/// strings another length.
fn check_items(array: &NDArray, column: &Column) -> Result<()> {
    let dtype = array.dtype().ok_or_else(|| no_dtype(array))?;
    let inner = &array.shape()[1..];
    let fits = match (column.kind(), column.items()) {
        // Structures have a short dtype name there, without their fields.
        (ItemKind::NDArray { shape, dtype: expected }, _) => {
            inner == shape && !shape.contains(&0) && dtype.size() == expected.size()
        }
        (ItemKind::Bool, _) => {
            inner.is_empty()
                && matches!(dtype.kind(), Some(Kind::Bool | Kind::UInt))
                && dtype.size() == 1
        }
        (kind, Some((expected, _))) => {
            let any_size = matches!(kind, ItemKind::String { .. } | ItemKind::Bytes { .. });
            let same_size = any_size || dtype.size() == expected.size();
            inner.is_empty() && dtype.kind() == expected.kind() && same_size
        }
        _ => false,
    };
    // The typesize of an invalid file can differ from the itemsize of the dtype.
    if fits && dtype.size() == array.typesize() {
        return Ok(());
    }
    Err(unlike(array, &format!("those of a column of {}", column.kind())))
}

fn no_dtype(array: &NDArray) -> Error {
    let detail = format!("the dtype {:?} is not known", array.dtype_str());
    error(array.schunk(), ErrorKind::InvalidData, OPEN, detail)
}

fn failed(schunk: &SChunk, detail: String) -> Error {
    error(schunk, ErrorKind::InvalidData, READ, detail)
}
