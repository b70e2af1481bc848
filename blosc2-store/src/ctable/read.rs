//! Reading columns, for each kind of storage.

#[cfg(feature = "arrow")]
mod raw;

use std::sync::OnceLock;

use blosc2::dtype::{ByteOrder, Kind};
use blosc2::{ArrayValue, Dtype, Error, ErrorKind, NDArray, Result, SChunk, Value};
use half::f16;

use super::column::{Column, Content, Nulls, Stored};
use super::live::{AT_ONCE, GAP, LiveRows, Span, check_rows};
use super::part::{Budget, Parts, array, check_array, leaf, row_bytes, unlike};
use super::rows::Ascending;
use super::{OPEN, READ};
use crate::tag::{error, weight, what};
use crate::{BatchArray, ItemKind, ObjectArray};

/// Live rows that are decoded at once.
const WINDOW: u64 = 1 << 16;

/// The key of the mask of rows that are not null.
fn marks_key(column: &Column) -> String {
    format!("{}.notnull", column.key)
}

impl Stored {
    pub(super) fn open(parts: &Parts, column: &Column) -> Result<Self> {
        let key = &column.key;
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
                let mut codes = array(parts, key)?;
                codes.set_byte_order_conversion(true);
                check_array(&codes, "i4", |dtype| is(dtype, Kind::Int, 4))?;
                let texts = BatchArray::from_schunk(leaf(parts, &format!("{key}_dict"), "b2b")?)?;
                Content::Codes { codes, texts, decoded: OnceLock::new() }
            }
            ItemKind::Utf8 => {
                let mut offsets = array(parts, key)?;
                offsets.set_byte_order_conversion(true);
                check_array(&offsets, "i8", |dtype| is(dtype, Kind::Int, 8))?;
                let bytes = array(parts, &format!("{key}.utf8"))?;
                check_array(&bytes, "|u1", |dtype| is(dtype, Kind::UInt, 1))?;
                Content::Texts { offsets, bytes }
            }
            kind if kind.has_batches() => {
                let schunk = leaf(parts, key, "b2b")?;
                match schunk.meta().contains("vlarray") {
                    true => Content::Cells(ObjectArray::from_schunk(schunk)?),
                    false => Content::Batches(BatchArray::from_schunk(schunk)?),
                }
            }
            _ => {
                let array = array(parts, key)?;
                check_items(&array, column)?;
                Content::Items(array)
            }
        };
        // Opened before: a later change alters the revision.
        let seen = match &content {
            Content::Codes { texts, .. } => Some(texts.schunk().revision()?),
            Content::Texts { bytes, .. } => Some(bytes.schunk().revision()?),
            Content::Batches(array) => Some(array.schunk().revision()?),
            Content::Items(_) | Content::Cells(_) => None,
        };
        Ok(Self { content, marks, seen })
    }

    /// Whether no other handle has changed strings, codes or batches since they were opened. Items have no state besides
    /// their array.
    pub(super) fn is_current(&self) -> Result<bool> {
        let now = match &self.content {
            Content::Codes { texts, .. } => Some(texts.schunk().revision()?),
            Content::Texts { bytes, .. } => Some(bytes.schunk().revision()?),
            Content::Batches(array) => Some(array.schunk().revision()?),
            Content::Items(_) | Content::Cells(_) => None,
        };
        Ok(now == self.seen)
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

    /// The distinct strings of a dictionary, in the order of their codes.
    pub(super) fn words(&self) -> Result<Option<&[String]>> {
        let Content::Codes { texts, decoded, .. } = &self.content else { return Ok(None) };
        if decoded.get().is_none() {
            let texts = texts_of(texts)?;
            decoded.get_or_init(|| texts);
        }
        Ok(decoded.get().map(Vec::as_slice))
    }

    /// Its super-chunks.
    fn schunks(&self) -> Vec<&SChunk> {
        self.parts().into_iter().map(|(_, _, schunk)| schunk).collect()
    }

    /// The memory allowance for reading it.
    pub(super) fn budget(&self) -> Budget {
        let schunks = self.schunks();
        // The parts of a table have the same limits.
        Budget::of(schunks[0], schunks.iter().map(|schunk| schunk.cbytes()).sum())
    }

    /// Reads all live rows, to find out whether they can be read.
    pub(super) fn check_content(&self, column: &Column, live: &LiveRows) -> Result<()> {
        let (budget, mut held) = (self.budget(), None);
        for span in live.spans(0..live.len(), self.items()).of(WINDOW) {
            let span = span?;
            match self.items() {
                Some(array) => drop(span.read_bytes(array, row_bytes(array))?),
                None => drop(self.content.values(column, &span, &mut held, &budget)?),
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
        let mut values = self.content.values(column, span, held, budget)?;
        if let Some(marks) = &self.marks {
            for (value, mark) in values.iter_mut().zip(span.read::<bool>(marks)?) {
                if !mark {
                    *value = Value::None;
                }
            }
        }
        if let Nulls::Sentinel(sentinel) = &column.nulls {
            self.content.remove_nulls(column, &mut values, sentinel);
        }
        if *column.kind() == ItemKind::Bool {
            for value in &mut values {
                if let Value::Int(number) = value {
                    *value = Value::Bool(*number != 0);
                }
            }
        }
        Ok(values)
    }

    /// The mask of null rows.
    pub(super) fn nulls<'a>(
        &self,
        column: &Column,
        live: &'a LiveRows,
        rows: impl Into<Ascending<'a>>,
    ) -> Result<Vec<bool>> {
        let rows = rows.into();
        let mut nulls = Vec::new();
        let mut budget = self.budget();
        budget.take(rows.len())?;
        match (&column.nulls, &self.content, &self.marks) {
            (Nulls::Mask, _, Some(marks)) => {
                for span in live.spans(rows, Some(marks)).of(WINDOW) {
                    nulls.extend(span?.read::<bool>(marks)?.into_iter().map(|mark| !mark));
                }
            }
            (Nulls::Never | Nulls::Mask, ..) => {
                nulls.resize(rows.len() as usize, false);
            }
            (Nulls::Code(null), Content::Codes { codes, .. }, _) => {
                for span in live.spans(rows, Some(codes)).of(WINDOW) {
                    let codes = span?.read::<i32>(codes)?;
                    nulls.extend(codes.into_iter().map(|code| i64::from(code) == *null));
                }
            }
            _ => {
                let mut held = None;
                for span in live.spans(rows, self.items()).of(WINDOW) {
                    let values = self.span_values(column, &span?, &mut held, &budget)?;
                    nulls.extend(values.into_iter().map(|value| value == Value::None));
                }
            }
        }
        Ok(nulls)
    }
}

/// The rows of a batch that were decompressed last, and the index of the first.
type Held = Option<(u64, Vec<Value>)>;

impl Content {
    /// The values of the live rows of a span, including null values.
    fn values(
        &self,
        column: &Column,
        span: &Span,
        held: &mut Held,
        budget: &Budget,
    ) -> Result<Vec<Value>> {
        match self {
            Self::Items(array) => {
                let inner = &array.shape()[1..];
                let row = row_bytes(array);
                let bytes = span.read_bytes(array, row)?;
                let dtype = array.dtype().ok_or_else(|| no_dtype(array))?;
                let is_array = matches!(column.kind(), ItemKind::NDArray { .. });
                let values = bytes.chunks_exact(row).map(|row| match is_array {
                    true => ArrayValue::new(dtype.clone(), inner.to_vec(), row.to_vec())
                        .map(Value::Array),
                    false => scalar(dtype, row)
                        .map_err(|detail| failed(array.schunk(), ErrorKind::InvalidData, detail)),
                });
                values.collect()
            }
            Self::Codes { codes, texts, decoded } => {
                let numbers = span.read::<i32>(codes)?;
                let texts = match decoded.get() {
                    Some(texts) => texts,
                    None => {
                        let texts = texts_of(texts)?;
                        decoded.get_or_init(|| texts)
                    }
                };
                let null = match column.nulls {
                    Nulls::Code(null) => Some(null),
                    _ => None,
                };
                let found = numbers.into_iter().map(|code| {
                    if Some(i64::from(code)) == null {
                        return Ok(None);
                    }
                    let text = usize::try_from(code).ok().and_then(|code| texts.get(code));
                    text.map(Some).ok_or_else(|| {
                        let len = texts.len();
                        let detail =
                            format!("a row has the code {code}, but there are {len} strings");
                        failed(codes.schunk(), ErrorKind::InvalidData, detail)
                    })
                });
                let found: Vec<Option<&String>> = found.collect::<Result<_>>()?;
                // A few long strings can be repeated in many rows.
                budget.check(found.iter().flatten().map(|text| text.len() as u64).sum())?;
                let values = found.into_iter().map(|text| match text {
                    Some(text) => text.as_str().into(),
                    None => Value::None,
                });
                Ok(values.collect())
            }
            Self::Texts { offsets, bytes } => texts(offsets, bytes, span, budget),
            Self::Batches(array) => in_batches(array, span, held, budget),
            Self::Cells(array) => {
                check_rows(&span.rows, array.len() as u64)
                    .map_err(|detail| failed(array.schunk(), ErrorKind::InvalidData, detail))?;
                let mut taken = budget.clone();
                let cells = span.numbers().map(|row| {
                    let value = array.get(row as usize)?;
                    taken.take(weight(&value))?;
                    Ok(value)
                });
                cells.collect()
            }
        }
    }

    /// Replaces null values by `None`.
    fn remove_nulls(&self, column: &Column, values: &mut [Value], sentinel: &Value) {
        let dtype = match self {
            Self::Items(array) => array.dtype(),
            _ => None,
        };
        let sentinel = as_item(sentinel, dtype);
        for value in values {
            let is_null = match value {
                Value::Array(array) => {
                    let dtype = array.dtype();
                    let mut items = array.data().chunks_exact(dtype.size().max(1));
                    items.all(|item| scalar(dtype, item).is_ok_and(|item| same(&item, &sentinel)))
                }
                // NumPy's NaT is null, in addition to the null value.
                Value::Int(moment) if matches!(column.kind(), ItemKind::Timestamp { .. }) => {
                    *moment == i64::MIN.into() || same(value, &sentinel)
                }
                _ => same(value, &sentinel),
            };
            if is_null {
                *value = Value::None;
            }
        }
    }
}

/// The live rows of a span of an array of batches.
fn in_batches(
    array: &BatchArray,
    span: &Span,
    held: &mut Held,
    budget: &Budget,
) -> Result<Vec<Value>> {
    let invalid = |detail| failed(array.schunk(), ErrorKind::InvalidData, detail);
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

/// Strings, one after the other.
#[derive(Debug, Default)]
pub(super) struct Texts {
    /// The end of each string.
    pub(super) ends: Vec<usize>,
    pub(super) bytes: Vec<u8>,
}

/// The strings of the live rows of a span.
fn texts(offsets: &NDArray, bytes: &NDArray, span: &Span, budget: &Budget) -> Result<Vec<Value>> {
    let mut found = Texts::default();
    read_texts(offsets, bytes, span, budget, &mut found)?;
    let starts = [0].into_iter().chain(found.ends.iter().copied());
    let texts = starts.zip(&found.ends).map(|(start, &end)| {
        std::str::from_utf8(&found.bytes[start..end]).map(Value::from).map_err(|error| {
            let detail = format!("a string is not UTF-8: {error}");
            failed(offsets.schunk(), ErrorKind::InvalidData, detail)
        })
    });
    texts.collect()
}

/// Appends the strings of the live rows of a span, which may be invalid UTF-8.
pub(super) fn read_texts(
    offsets: &NDArray,
    bytes: &NDArray,
    span: &Span,
    budget: &Budget,
    texts: &mut Texts,
) -> Result<()> {
    let invalid = |detail| failed(offsets.schunk(), ErrorKind::InvalidData, detail);
    span.check_inside(offsets.schunk(), offsets.shape()[0].saturating_sub(1))?;
    let rows = &span.rows;
    let places = rows.start..rows.end + 1;
    let ends = offsets.read::<i64>([places])?;
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
        let bytes = bytes.read::<u8>([places])?;
        for ends in run {
            let text = (ends[0] - first) as usize..(ends[1] - first) as usize;
            texts.bytes.extend_from_slice(&bytes[text]);
            texts.ends.push(texts.bytes.len());
        }
    }
    Ok(())
}

/// The strings of a dictionary.
fn texts_of(array: &BatchArray) -> Result<Vec<String>> {
    let mut budget = Budget::of(array.schunk(), array.schunk().cbytes());
    let mut texts = Vec::new();
    for item in array.items() {
        let item = item?;
        budget.take(weight(&item))?;
        let Value::Str(text) = item else {
            let detail = format!("the dictionary contains {}, expected strings", what(&item));
            return Err(failed(array.schunk(), ErrorKind::InvalidData, detail));
        };
        texts.push(text);
    }
    Ok(texts)
}

/// Converts an item to a value.
pub(super) fn scalar(dtype: &Dtype, bytes: &[u8]) -> Result<Value, String> {
    let order = dtype.byte_order();
    let number = |bytes: &[u8]| {
        let shift = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
        match order {
            Some(ByteOrder::Big) => bytes.iter().fold(0, shift),
            _ => bytes.iter().rev().fold(0, shift),
        }
    };
    let float = |bytes: &[u8]| match bytes.len() {
        2 => f16::from_bits(number(bytes) as u16).to_f64(),
        4 => f32::from_bits(number(bytes) as u32).into(),
        _ => f64::from_bits(number(bytes)),
    };
    let unknown = || Err(format!("items of the dtype {dtype} have no corresponding value"));
    Ok(match (dtype.kind(), bytes.len()) {
        (Some(Kind::Bool), 1) => Value::Bool(bytes[0] != 0),
        (Some(Kind::UInt), 1..=8) => number(bytes).into(),
        (Some(Kind::Int), len @ 1..=8) => {
            // Sign extension from the highest bit of the item.
            let unused = 64 - 8 * len;
            ((number(bytes) << unused) as i64 >> unused).into()
        }
        (Some(Kind::Float), 2 | 4 | 8) => float(bytes).into(),
        (Some(Kind::Complex), 8 | 16) => {
            let (re, im) = bytes.split_at(bytes.len() / 2);
            Value::Complex { re: float(re), im: float(im) }
        }
        (Some(Kind::Unicode), _) => {
            let chars = bytes.chunks_exact(4).map(|char| {
                let code = number(char) as u32;
                char::from_u32(code)
                    .ok_or_else(|| format!("a string has the invalid character {code:#x}"))
            });
            let text: String = chars.collect::<Result<_, _>>()?;
            text.trim_end_matches('\0').into()
        }
        (Some(Kind::Bytes), _) => Value::Bytes(without_zeros(bytes).to_vec()),
        _ => return unknown(),
    })
}

/// Without trailing zeros: NumPy does not distinguish them from padding.
fn without_zeros(bytes: &[u8]) -> &[u8] {
    let len = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..len]
}

/// The null value, as it is read from an item.
fn as_item(sentinel: &Value, dtype: Option<&Dtype>) -> Value {
    let float = |number: f64| match dtype.map(Dtype::size) {
        Some(2) => f16::from_f64(number).to_f64(),
        Some(4) => (number as f32).into(),
        _ => number,
    };
    match (sentinel, dtype.and_then(Dtype::kind)) {
        (Value::Bool(value), _) => Value::Int((*value).into()),
        (Value::Float(number), Some(Kind::Float)) => float(*number).into(),
        (Value::Int(number), Some(Kind::Float)) => float(*number as f64).into(),
        (Value::Str(text), Some(Kind::Unicode)) => text.trim_end_matches('\0').into(),
        (Value::Bytes(bytes), Some(Kind::Bytes)) => without_zeros(bytes).to_vec().into(),
        (sentinel, _) => sentinel.clone(),
    }
}

/// Whether an item is the null value; all NaNs are equal here.
fn same(item: &Value, sentinel: &Value) -> bool {
    match (item, sentinel) {
        (Value::Float(item), Value::Float(sentinel)) if sentinel.is_nan() => item.is_nan(),
        (Value::Int(item), Value::Float(sentinel)) => *item as f64 == *sentinel,
        (Value::Bool(item), sentinel) => *sentinel == Value::Int((*item).into()),
        (item, sentinel) => item == sentinel,
    }
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

fn failed(schunk: &SChunk, kind: ErrorKind, detail: String) -> Error {
    error(schunk, kind, READ, detail)
}
