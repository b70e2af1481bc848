//! Data of a column to be written.

use std::borrow::Cow;

use super::cells::{Cells, Texts};
use crate::blosc2::elements::bytes_of;
use crate::blosc2::{Dtype, Element, Value};

/// The cells of a column, for writing to a [`CTable`](super::CTable).
///
/// ```
/// use blosc2_store::{CTable, ItemKind, ItemType, Data, Schema};
///
/// let price = ItemType::from(ItemKind::Float32).nullable();
/// let schema = Schema::new().column("price", price).column("name", ItemKind::Utf8);
/// let mut table = CTable::in_memory(&schema)?;
/// let prices = Data::items(&[1.5f32, 0.0]).nulls(&[false, true]);
/// table.append([("price", prices), ("name", Data::texts([Some("tea"), Some("milk")]))])?;
/// assert_eq!(table.values("price", ..)?, [1.5.into(), blosc2::Value::None]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Data<'a> {
    pub(super) cells: Cells<'a>,
    pub(super) nulls: Option<Cow<'a, [bool]>>,
}

impl<'a> Data<'a> {
    fn new(cells: Cells<'a>) -> Self {
        Self { cells, nulls: None }
    }

    /// Creates cells for a column with fixed-size items. `T` must have the dtype of the column: numbers are not
    /// converted. For a column of arrays, pass the items of all rows in C order. For a column of timestamps, pass `i64`
    /// in the unit of the column.
    pub fn items<T: Element>(items: &'a [T]) -> Self {
        Self::bytes(T::dtype(), bytes_of(items))
    }

    /// Creates cells from the bytes of fixed-size items, in the byte order of `dtype`; see [`items`](Self::items).
    pub fn bytes(dtype: Dtype, bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(Cells::Items { dtype, bytes: bytes.into() })
    }

    /// Creates cells for a column of any kind. [`Value::None`] is null. Numbers must be in the range of the column.
    pub fn values(values: impl Into<Cow<'a, [Value]>>) -> Self {
        Self::new(Cells::Values(values.into()))
    }

    /// Creates cells for a string column of any kind, from strings in the memory layout of Arrow: the string of row `n`
    /// is `bytes[offsets[n]..offsets[n + 1]]`, in UTF-8.
    pub fn offsets(offsets: impl Into<Cow<'a, [i64]>>, bytes: impl Into<Cow<'a, [u8]>>) -> Self {
        Self::new(Cells::Texts(Texts { offsets: offsets.into(), bytes: bytes.into() }))
    }

    /// Creates cells for a string column of any kind, from dictionary-encoded strings. Each code is an index into
    /// `texts`; a negative code is null.
    pub fn codes(codes: impl Into<Cow<'a, [i32]>>, texts: impl Into<Cow<'a, [String]>>) -> Self {
        Self::new(Cells::Codes { codes: codes.into(), first: 0, texts: texts.into() })
    }

    /// Marks rows as null. `nulls` has one item per row, which is `true` for null. Cells that are already null in the
    /// data stay null.
    pub fn nulls(mut self, nulls: impl Into<Cow<'a, [bool]>>) -> Self {
        self.nulls = Some(nulls.into());
        self
    }
}

impl Data<'static> {
    /// Creates cells for a string column of any kind. `None` is null.
    pub fn texts<T: AsRef<str>>(texts: impl IntoIterator<Item = Option<T>>) -> Self {
        let (mut all, mut nulls) = (Texts::default(), Vec::new());
        for text in texts {
            nulls.push(text.is_none());
            all.push(text.as_ref().map_or("", AsRef::as_ref).as_bytes());
        }
        Self::new(Cells::Texts(all)).nulls(nulls)
    }
}
