//! Conversion of cells to the form in which a column stores them, with all checks.

use std::borrow::Cow;
use std::collections::HashMap;

use crate::blosc2::dtype::Kind;
use crate::blosc2::limits::default_max_read;
use crate::blosc2::{Dtype, Element, Error, ErrorKind, Result, Value};

use super::WRITE;
use super::cells::{Cells, Encoded, Texts};
use super::column::{Column, Nulls};
use super::data::Data;
use super::scalar::{push_scalar, scalar};
use crate::ItemKind;
use crate::item_type::row_size;
use crate::tag::{Fault, allowed_len, mismatch, reserve_rows, weight, what};

fn invalid(detail: impl Into<String>) -> Fault {
    (ErrorKind::InvalidArgument, detail.into())
}

/// Converts the cells of a column. Strings of a dictionary become codes: indices into these words and those that are added.
/// Without words, they stay strings, which get their codes when they are encoded again.
pub(super) fn encode<'a>(
    column: &Column,
    data: Data<'a>,
    words: Option<&[String]>,
) -> Result<Encoded<'a>> {
    encoded(column, data, words).map_err(|fault| failed(column, fault))
}

/// The default of a column for `rows` rows: its option `default`, or null. The error states that it has none, or that the
/// rows take too much memory, compared with the `given` bytes of the other columns.
pub(super) fn default_of(column: &Column, rows: usize, given: u64) -> Result<Data<'static>> {
    let value = match column.spec.get("default") {
        Some(value) if *value != Value::None || column.nullable => value.clone(),
        _ if column.nullable => Value::None,
        _ => {
            let detail = format!(
                "there are no data for the column `{}`, which has no default",
                column.name()
            );
            return Err(Error::new(ErrorKind::InvalidArgument, WRITE, detail));
        }
    };
    allowed_len(rows, usize::try_from(weight(&value)).ok(), given)
        .map_err(|fault| failed(column, fault))?;
    Ok(Data::values(vec![value; rows]))
}

pub(super) fn failed(column: &Column, (kind, detail): Fault) -> Error {
    Error::new(kind, WRITE, format!("the column `{}`: {detail}", column.name()))
}

fn encoded<'a>(
    column: &Column,
    data: Data<'a>,
    words: Option<&[String]>,
) -> Result<Encoded<'a>, Fault> {
    let rows = data.rows(column)?;
    let Data { cells, nulls } = data;
    if nulls.as_ref().is_some_and(|nulls| nulls.len() != rows) {
        let marks = nulls.map_or(0, |nulls| nulls.len());
        return Err(invalid(format!("{marks} marks of null rows for {rows} rows")));
    }
    let mut nulls = nulls.map_or_else(|| vec![false; rows], Cow::into_owned);
    for (row, null) in nulls.iter_mut().enumerate() {
        *null |= match &cells {
            Cells::Values(values) => values[row] == Value::None,
            Cells::Codes { codes, .. } => codes[row] < 0,
            _ => break,
        };
    }
    if !column.nullable
        && let Some(row) = nulls.iter().position(|null| *null)
    {
        return Err(invalid(format!("row {row} is null, but the column is not nullable")));
    }
    // Also if all rows are null.
    match &cells {
        Cells::Items { dtype, .. } if column.kind().is_text() && column.items().is_none() => {
            return Err(mismatch(format!("items of {dtype}, expected strings")));
        }
        Cells::Texts(_) | Cells::Codes { .. }
            if !column.kind().is_text() && column.items().is_some() =>
        {
            return Err(mismatch(format!("strings, expected `{}`", column.kind().name())));
        }
        _ => {}
    }
    let is_later = matches!((column.kind(), words), (ItemKind::Dictionary { .. }, None));
    let cells = match (column.kind(), words) {
        (ItemKind::Utf8, _) | (ItemKind::Dictionary { .. }, None) => {
            Cells::Texts(stored_texts(column, cells, &nulls)?)
        }
        (ItemKind::Dictionary { .. }, Some(words)) => {
            codes(column, texts(column, &cells, &nulls), words)?
        }
        (ItemKind::VlString, _) => {
            let texts = texts(column, &cells, &nulls);
            let values = texts.map(|text| Ok(text?.map_or(Value::None, Value::from)));
            Cells::Values(values.collect::<Result<_, Fault>>()?)
        }
        (kind, _) if kind.has_batches() => Cells::Values(values(column, &cells, &nulls)?),
        _ => items(column, cells, &nulls)?,
    };
    let masked = (column.nulls == Nulls::Mask || is_later) && nulls.contains(&true);
    Ok(Encoded { rows, cells, nulls: masked.then_some(nulls) })
}

impl Data<'_> {
    fn rows(&self, column: &Column) -> Result<usize, Fault> {
        Ok(match &self.cells {
            Cells::Items { dtype, bytes } => {
                let shape = column.items().map_or(&[][..], |(_, shape)| shape);
                let row = row_size(dtype, shape).filter(|row| *row > 0);
                match row.filter(|row| bytes.len().is_multiple_of(*row)) {
                    Some(row) => bytes.len() / row,
                    None => {
                        let (len, kind) = (bytes.len(), column.kind());
                        return Err(invalid(format!("{len} bytes are not whole rows of {kind}")));
                    }
                }
            }
            Cells::Values(values) => values.len(),
            Cells::Texts(Texts { offsets, bytes }) => {
                let (first, last) = (offsets.first().copied(), offsets.last().copied());
                let inside = first.is_some_and(|first| first >= 0)
                    && last.is_some_and(|last| last as u64 <= bytes.len() as u64);
                if !inside || !offsets.is_sorted() {
                    let len = bytes.len();
                    return Err(invalid(format!(
                        "the offsets are not in ascending order in {len} bytes"
                    )));
                }
                offsets.len() - 1
            }
            Cells::Codes { codes, .. } => codes.len(),
        })
    }
}

fn text<'a>(cells: &'a Cells<'_>, row: usize) -> Result<&'a str, Fault> {
    let expected = |found: &str| mismatch(format!("{found}, expected strings"));
    match cells {
        Cells::Values(values) => values[row].as_str().ok_or_else(|| expected(&what(&values[row]))),
        Cells::Texts(texts) => std::str::from_utf8(texts.get(row))
            .map_err(|error| invalid(format!("the string of row {row} is not UTF-8: {error}"))),
        Cells::Codes { codes, texts, .. } => {
            let (code, len) = (codes[row], texts.len());
            let outside = || format!("row {row} has the code {code}, but there are {len} strings");
            texts.get(code as usize).map(String::as_str).ok_or_else(|| invalid(outside()))
        }
        Cells::Items { dtype, .. } => Err(expected(&format!("items of {dtype}"))),
    }
}

/// The strings of a string column; `None` for null rows.
fn texts<'a>(
    column: &Column,
    cells: &'a Cells<'_>,
    nulls: &[bool],
) -> impl Iterator<Item = Result<Option<&'a str>, Fault>> {
    let has_limits = has_limits(column);
    nulls.iter().enumerate().map(move |(row, null)| {
        if *null {
            return Ok(None);
        }
        let text = text(cells, row)?;
        if has_limits {
            stored(column, row, text.into())?;
        }
        Ok(Some(text))
    })
}

/// The strings of a string column as they are stored. Null rows get the null value, or are empty.
fn stored_texts<'a>(column: &Column, cells: Cells<'a>, nulls: &[bool]) -> Result<Texts<'a>, Fault> {
    let max = default_max_read(0);
    let cells = match cells {
        Cells::Texts(texts)
            if !has_limits(column) && !nulls.contains(&true) && texts.are_valid(max) =>
        {
            return Ok(texts.trimmed());
        }
        cells => cells,
    };
    let (mut offsets, mut bytes) = (Vec::with_capacity(nulls.len() + 1), Vec::new());
    offsets.push(0);
    let fill = match &column.nulls {
        Nulls::Sentinel(Value::Str(text)) => text,
        _ => "",
    };
    for text in texts(column, &cells, nulls) {
        let text = text?.unwrap_or(fill);
        check_text(text.len() as u64, max)?;
        bytes.extend_from_slice(text.as_bytes());
        offsets.push(bytes.len() as i64);
    }
    Ok(Texts { offsets: offsets.into(), bytes: bytes.into() })
}

/// Converts the value of a row, which is not null, to its stored form.
fn stored(column: &Column, row: usize, value: Value) -> Result<Value, Fault> {
    let stored = column.spec.stored(value);
    stored.map_err(|(kind, fault)| (kind, format!("row {row} is {fault}")))
}

/// Checks that readers with default limits can read a string of this length, however well it is compressed: `max` is the
/// limit of such readers.
fn check_text(len: u64, max: u64) -> Result<(), Fault> {
    if len <= max {
        return Ok(());
    }
    Err((ErrorKind::TooLarge, format!("a string has {len} bytes, expected at most {max}")))
}

fn has_limits(column: &Column) -> bool {
    let names = ["ge", "gt", "le", "lt", "min_length"];
    let is_text = matches!(column.kind(), ItemKind::String { .. } | ItemKind::Bytes { .. });
    is_text || names.iter().any(|name| column.spec.given(name).is_some())
}

fn codes<'a>(
    column: &Column,
    texts: impl Iterator<Item = Result<Option<&'a str>, Fault>>,
    words: &'a [String],
) -> Result<Cells<'static>, Fault> {
    let null = match column.nulls {
        Nulls::Code(null) => {
            i32::try_from(null).map_err(|_| invalid("its null code is not an i32"))?
        }
        _ => -1,
    };
    let mut known: HashMap<&str, usize> = HashMap::new();
    for (code, word) in words.iter().enumerate() {
        known.entry(word).or_insert(code);
    }
    let mut added = Vec::new();
    let codes = texts.map(|text| {
        let Some(text) = text? else { return Ok(null) };
        let next = words.len() + added.len();
        let code = *known.entry(text).or_insert_with(|| {
            added.push(text.to_owned());
            next
        });
        let code = i32::try_from(code).map_err(|_| invalid("more than 2^31 different strings"))?;
        match code == null {
            true => Err(invalid(format!("the code {code} of a string is its null code"))),
            false => Ok(code),
        }
    });
    let codes = codes.collect::<Result<_, _>>()?;
    Ok(Cells::Codes { codes, first: words.len(), texts: added.into() })
}

fn values(
    column: &Column,
    cells: &Cells<'_>,
    nulls: &[bool],
) -> Result<Cow<'static, [Value]>, Fault> {
    let Cells::Values(values) = cells else {
        let kind = column.kind();
        return Err(mismatch(format!("it takes values of {kind}, passed by `Data::values`")));
    };
    let values = values.iter().zip(nulls).enumerate().map(|(row, (value, null))| match null {
        true => Ok(Value::None),
        false => stored(column, row, value.clone()),
    });
    values.collect()
}

/// The items of a column of fixed-size rows.
fn items<'a>(column: &Column, cells: Cells<'a>, nulls: &[bool]) -> Result<Cells<'a>, Fault> {
    let no_items =
        || (ErrorKind::Unsupported, format!("a column of {} cannot be written", column.kind()));
    let (dtype, shape) = column.items().ok_or_else(no_items)?;
    let row = row_size(&dtype, shape);
    let given = cells.nbytes();
    let fill = match nulls.contains(&true) {
        true => null_row(column, &dtype, row, given)?,
        false => Vec::new(),
    };
    let mut bytes = match cells {
        Cells::Items { dtype: given, bytes } => {
            let is_bool = *column.kind() == ItemKind::Bool && given == bool::dtype();
            if given != dtype && !is_bool {
                return Err(mismatch(format!("items of {given}, expected {dtype}")));
            }
            if has_limits(column) {
                let items = bytes.chunks_exact(dtype.size()).zip(nulls).enumerate();
                for (row, (item, _)) in items.filter(|(_, (_, null))| !**null) {
                    stored(column, row, scalar(&dtype, item).map_err(mismatch)?)?;
                }
            }
            bytes
        }
        cells => {
            let mut bytes = reserve_rows(nulls.len(), row, given)?;
            for (number, null) in nulls.iter().enumerate() {
                if *null {
                    bytes.extend_from_slice(&fill);
                    continue;
                }
                let value = match &cells {
                    Cells::Values(values) => values[number].clone(),
                    cells => text(cells, number)?.into(),
                };
                match stored(column, number, value)? {
                    Value::Array(array) => bytes.extend_from_slice(array.data()),
                    value => push_scalar(&dtype, &value, &mut bytes)
                        .map_err(|fault| invalid(format!("row {number} is {fault}")))?,
                }
            }
            Cow::Owned(bytes)
        }
    };
    if !fill.is_empty() {
        for (place, null) in bytes.to_mut().chunks_exact_mut(fill.len()).zip(nulls) {
            if *null {
                place.copy_from_slice(&fill);
            }
        }
    }
    Ok(Cells::Items { dtype, bytes })
}

/// The bytes of a null row of `row` bytes, which is made of `given` bytes.
fn null_row(
    column: &Column,
    dtype: &Dtype,
    row: Option<usize>,
    given: u64,
) -> Result<Vec<u8>, Fault> {
    let mut bytes = reserve_rows(1, row, given)?;
    let len = row.unwrap_or(0);
    let value = match (&column.nulls, dtype.kind()) {
        (Nulls::Sentinel(value), _) => value.clone(),
        (Nulls::Mask, Some(Kind::Float)) => f64::NAN.into(),
        (Nulls::Mask, _) if matches!(column.kind(), ItemKind::Timestamp { .. }) => i64::MIN.into(),
        _ => {
            bytes.resize(len, 0);
            return Ok(bytes);
        }
    };
    push_scalar(dtype, &value, &mut bytes)
        .map_err(|fault| invalid(format!("its null value is {fault}")))?;
    while !bytes.is_empty() && bytes.len() < len {
        bytes.extend_from_within(..bytes.len().min(len - bytes.len()));
    }
    Ok(bytes)
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;

    #[test]
    fn strings_that_readers_refuse_are_not_written() {
        let max = default_max_read(0);
        assert_eq!(check_text(1 << 30, max), Ok(()));
        assert_eq!(check_text((1 << 30) + 1, max).unwrap_err().0, ErrorKind::TooLarge);
    }
}
