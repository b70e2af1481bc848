//! Selections of rows.

use std::ops::{Range, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive};

use crate::blosc2::{ErrorKind, Result};
use crate::tag::Fault;

/// A selection of rows: a range, a list of indices or a boolean mask. Indices are `u64`, and count from the start;
/// `table.nrows().saturating_sub(10)..` selects the last ten rows. Deleted rows are not counted. Methods with an
/// argument `impl Into<Rows>` accept these types:
///
/// | type | selected rows |
/// |---|---|
/// | a range, such as `..`, `2..5` or `..=7` | the rows in the range |
/// | `Vec<u64>`, `&[u64]`, `[u64; N]` | the rows with these indices, in this order; an index can occur more than once |
/// | `Vec<bool>`, `&[bool]` | a mask with one item for each valid row of the table; `true` selects the row |
///
/// ```
/// use blosc2_store::{CTable, ItemKind, Data, Schema};
///
/// let mut table = CTable::in_memory(&Schema::new().column("n", ItemKind::Int32))?;
/// table.append([("n", Data::items(&[5, 6, 7, 8]))])?;
/// assert_eq!(table.read::<i32>("n", 1..3)?, [6, 7]);
/// assert_eq!(table.read::<i32>("n", [3, 0])?, [8, 5]);
/// assert_eq!(table.read::<i32>("n", vec![true, false, false, true])?, [5, 8]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Rows(Selected);

#[derive(Debug, Clone)]
enum Selected {
    Range(u64, Option<u64>),
    At(Vec<u64>),
    Mask(Vec<bool>),
}

macro_rules! from_ranges {
    ($($range:ty, $rows:ident => $start:expr, $end:expr;)*) => {
        $(impl From<$range> for Rows {
            fn from($rows: $range) -> Self {
                Self(Selected::Range($start, $end))
            }
        })*
    };
}

from_ranges! {
    RangeFull, _rows => 0, None;
    Range<u64>, rows => rows.start, Some(rows.end);
    RangeFrom<u64>, rows => rows.start, None;
    RangeTo<u64>, rows => 0, Some(rows.end);
    RangeInclusive<u64>, rows => *rows.start(), Some(rows.end().saturating_add(1));
    RangeToInclusive<u64>, rows => 0, Some(rows.end.saturating_add(1));
}

impl From<Vec<u64>> for Rows {
    fn from(rows: Vec<u64>) -> Self {
        Self(Selected::At(rows))
    }
}

impl From<&[u64]> for Rows {
    fn from(rows: &[u64]) -> Self {
        rows.to_vec().into()
    }
}

impl<const N: usize> From<[u64; N]> for Rows {
    fn from(rows: [u64; N]) -> Self {
        rows.to_vec().into()
    }
}

impl From<Vec<bool>> for Rows {
    fn from(mask: Vec<bool>) -> Self {
        Self(Selected::Mask(mask))
    }
}

impl From<&[bool]> for Rows {
    fn from(mask: &[bool]) -> Self {
        mask.to_vec().into()
    }
}

#[derive(Debug, Clone)]
pub(super) enum Picked {
    Range(Range<u64>),
    At(Vec<u64>),
}

impl Rows {
    /// Checks the selection for a table of `nrows` rows.
    pub(super) fn resolve(self, nrows: u64) -> Result<Picked, Fault> {
        let outside = |asked: String| {
            Err((ErrorKind::OutOfBounds, format!("there are {nrows} rows, asked for {asked}")))
        };
        match self.0 {
            Selected::Range(start, end) => {
                let end = end.unwrap_or(nrows);
                match start <= end && end <= nrows {
                    true => Ok(Picked::Range(start..end)),
                    false => outside(format!("{start}..{end}")),
                }
            }
            Selected::At(rows) => match rows.iter().find(|&&row| row >= nrows) {
                Some(row) => outside(row.to_string()),
                None => Ok(Picked::At(rows)),
            },
            Selected::Mask(mask) if mask.len() as u64 != nrows => {
                outside(format!("a mask of {}", mask.len()))
            }
            Selected::Mask(mask) => {
                let rows = (0..).zip(mask).filter(|(_, is)| *is).map(|(row, _)| row);
                Ok(Picked::At(rows.collect()))
            }
        }
    }
}

impl Picked {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end - rows.start,
            Self::At(rows) => rows.len() as u64,
        }
    }

    /// Reads the rows, of a number of items each, with a function that reads rows in ascending order.
    pub(super) fn read<T: Clone>(
        &self,
        per_row: usize,
        read: impl FnOnce(Ascending<'_>) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let rows = match self {
            Self::Range(rows) => return read(rows.clone().into()),
            Self::At(rows) => rows,
        };
        if rows.is_sorted_by(|one, next| one < next) {
            return read(Ascending::At(rows));
        }
        let mut ascending = rows.clone();
        ascending.sort_unstable();
        ascending.dedup();
        let items = read(Ascending::At(&ascending))?;
        let ordered = rows.iter().flat_map(|row| {
            let at = ascending.partition_point(|each| each < row) * per_row;
            &items[at..at + per_row]
        });
        Ok(ordered.cloned().collect())
    }
}

/// Different rows in ascending order, as indices among the live rows.
#[derive(Debug, Clone)]
pub(super) enum Ascending<'a> {
    Range(Range<u64>),
    At(&'a [u64]),
}

impl From<Range<u64>> for Ascending<'_> {
    fn from(rows: Range<u64>) -> Self {
        Self::Range(rows)
    }
}

impl Ascending<'_> {
    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Range(rows) => rows.end.saturating_sub(rows.start),
            Self::At(rows) => rows.len() as u64,
        }
    }

    pub(super) fn first(&self) -> Option<u64> {
        match self {
            Self::Range(rows) => (!rows.is_empty()).then_some(rows.start),
            Self::At(rows) => rows.first().copied(),
        }
    }

    /// Removes the rows before `end`, and returns them.
    pub(super) fn take_before(&mut self, end: u64) -> Self {
        match self {
            Self::Range(rows) => {
                let taken = rows.start..rows.end.min(end).max(rows.start);
                rows.start = taken.end;
                Self::Range(taken)
            }
            Self::At(rows) => {
                let (taken, rest) = rows.split_at(rows.partition_point(|row| *row < end));
                *rows = rest;
                Self::At(taken)
            }
        }
    }
}
