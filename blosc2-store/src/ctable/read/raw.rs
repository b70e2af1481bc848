//! Rows as they are stored, for Arrow: without a value for each of them.

use std::ops::Range;

use super::{
    Content, Dtype, Error, ErrorKind, ItemKind, NDArray, Nulls, READ, Result, Texts, Value,
    as_item, failed, no_dtype, read_texts, row_bytes, same, scalar, texts_of,
};
use crate::CTable;

/// Items of rows.
#[derive(Debug)]
pub(crate) struct RawItems {
    /// The dtype, in native byte order.
    pub(crate) dtype: Dtype,
    /// The shape of the array in each row.
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
    /// The mask of null rows; `None` if no row can be null.
    pub(crate) nulls: Option<Vec<bool>>,
}

/// UTF-8 strings of rows.
#[derive(Debug)]
pub(crate) struct RawTexts {
    /// The offset of each string in `bytes`, and the end of the last one.
    pub(crate) offsets: Vec<i64>,
    pub(crate) bytes: Vec<u8>,
    /// The mask of null rows; `None` if no row can be null.
    pub(crate) nulls: Option<Vec<bool>>,
}

impl CTable {
    /// The stored dtype of a column with fixed-size items.
    pub(crate) fn stored_dtype(&self, name: &str) -> Result<Option<Dtype>> {
        let (_, stored) = self.stored(name)?;
        Ok(stored.items().and_then(NDArray::dtype).cloned())
    }

    /// The items of a column with fixed-size items; for a column of dictionary-encoded strings, the codes.
    pub(crate) fn raw_items(&self, name: &str, rows: Range<u64>) -> Result<RawItems> {
        let (column, stored) = self.stored(name)?;
        let array = stored.items().ok_or_else(|| unlike(name))?;
        let dtype = array.dtype().ok_or_else(|| no_dtype(array))?;
        let row = row_bytes(array);
        stored.budget().take((rows.end - rows.start).saturating_mul(row as u64))?;
        let mut bytes = Vec::new();
        for span in self.live.spans(rows.clone(), Some(array)) {
            let mut part = span?.read_bytes(array, row)?;
            if bytes.is_empty() {
                bytes = part;
            } else {
                bytes.append(&mut part);
            }
        }
        let failed = |detail| failed(array.schunk(), ErrorKind::InvalidData, detail);
        if !dtype.is_native() {
            dtype.swap_plan().map_err(|error| failed(error.to_string()))?.apply(&mut bytes);
        }
        let dtype = dtype.to_native();
        let items = || bytes.chunks_exact(dtype.size().max(1));
        let nulls = match &column.nulls {
            Nulls::Never | Nulls::Native => None,
            Nulls::Mask => self.marked(name, rows)?,
            Nulls::Code(null) => {
                let code = |item: &[u8]| {
                    scalar(&dtype, item).map(|code| code == Value::Int((*null).into()))
                };
                Some(items().map(code).collect::<Result<_, _>>().map_err(failed)?)
            }
            Nulls::Sentinel(sentinel) => {
                let sentinel = as_item(sentinel, Some(&dtype));
                let is_moment = matches!(column.kind(), ItemKind::Timestamp { .. });
                // NumPy's NaT is null, in addition to the null value.
                let is_nat = |item: &Value| is_moment && *item == Value::Int(i64::MIN.into());
                let is_null = |item: &[u8]| {
                    scalar(&dtype, item).is_ok_and(|item| same(&item, &sentinel) || is_nat(&item))
                };
                let mut rows = bytes.chunks_exact(row.max(1));
                let all = |row: &[u8]| row.chunks_exact(dtype.size().max(1)).all(is_null);
                Some(rows.by_ref().map(all).collect())
            }
        };
        Ok(RawItems { shape: array.shape()[1..].to_vec(), dtype, bytes, nulls })
    }

    /// The strings of a column of UTF-8 strings, which may be invalid.
    pub(crate) fn raw_texts(&self, name: &str, rows: Range<u64>) -> Result<RawTexts> {
        let (column, stored) = self.stored(name)?;
        let Content::Texts { offsets, bytes } = &stored.content else { return Err(unlike(name)) };
        let budget = stored.budget();
        budget.check((rows.end - rows.start).saturating_mul(8))?;
        let mut texts = Texts::default();
        for span in self.live.spans(rows.clone(), Some(offsets)) {
            read_texts(offsets, bytes, &span?, &budget, &mut texts)?;
            budget.check(texts.bytes.len() as u64)?;
        }
        let ends = texts.ends.iter().map(|&end| end as i64);
        let offsets: Vec<i64> = [0].into_iter().chain(ends).collect();
        let nulls = match &column.nulls {
            Nulls::Mask => self.marked(name, rows)?,
            Nulls::Sentinel(Value::Str(sentinel)) => {
                let text = |ends: &[i64]| &texts.bytes[ends[0] as usize..ends[1] as usize];
                Some(offsets.windows(2).map(|ends| text(ends) == sentinel.as_bytes()).collect())
            }
            _ => None,
        };
        Ok(RawTexts { offsets, bytes: texts.bytes, nulls })
    }

    /// The distinct strings of a column of dictionary-encoded strings.
    pub(crate) fn dictionary(&self, name: &str) -> Result<&[String]> {
        let (_, stored) = self.stored(name)?;
        let Content::Codes { texts, decoded, .. } = &stored.content else {
            return Err(unlike(name));
        };
        if let Some(texts) = decoded.get() {
            return Ok(texts);
        }
        let texts = texts_of(texts)?;
        Ok(decoded.get_or_init(|| texts))
    }

    /// The mask of null rows of a column with a separate mask.
    fn marked(&self, name: &str, rows: Range<u64>) -> Result<Option<Vec<bool>>> {
        let (column, stored) = self.stored(name)?;
        if stored.marks.is_none() {
            return Ok(None);
        }
        stored.nulls(column, &self.live, rows).map(Some)
    }
}

fn unlike(name: &str) -> Error {
    let detail = format!("the column `{name}` is stored in another way");
    Error::new(ErrorKind::TypeMismatch, READ, detail)
}
