//! The cells of a column: as a caller passes them, as they are written, and as they are read.

use std::borrow::Cow;
use std::mem;

use crate::blosc2::{Dtype, Error, ErrorKind, Result, Value};

use super::WRITE;
use crate::tag::{Doing, reserve_rows, weight};

/// The cells of a column: what a caller passes, what is written, and what is read.
#[derive(Debug, Clone)]
pub(crate) enum Cells<'a> {
    /// Items with a dtype.
    Items {
        dtype: Dtype,
        bytes: Cow<'a, [u8]>,
    },
    Texts(Texts<'a>),
    /// Codes of strings: `texts[n]` is the string of the code `first + n`. Cells that are written have only the strings
    /// that are added to the dictionary.
    Codes {
        codes: Cow<'a, [i32]>,
        first: usize,
        texts: Cow<'a, [String]>,
    },
    Values(Cow<'a, [Value]>),
}

/// Strings in the memory layout of Arrow: string `n` is `bytes[offsets[n]..offsets[n + 1]]`.
#[derive(Debug, Clone)]
pub(crate) struct Texts<'a> {
    pub(crate) offsets: Cow<'a, [i64]>,
    pub(crate) bytes: Cow<'a, [u8]>,
}

impl Default for Texts<'_> {
    fn default() -> Self {
        Self { offsets: vec![0].into(), bytes: Vec::new().into() }
    }
}

impl Cells<'_> {
    pub(super) fn nbytes(&self) -> u64 {
        match self {
            Self::Items { bytes, .. } => bytes.len() as u64,
            Self::Values(values) => values.iter().map(weight).sum(),
            Self::Texts(texts) => (size_of_val(&texts.offsets[..]) + texts.bytes.len()) as u64,
            Self::Codes { codes, texts, .. } => {
                let texts = texts.iter().map(|text| text.len() + size_of::<String>());
                (size_of_val(&codes[..]) + texts.sum::<usize>()) as u64
            }
        }
    }
}

/// Rows of a column in the form in which they are stored.
#[derive(Debug)]
pub(crate) struct Encoded<'a> {
    pub(super) rows: usize,
    pub(crate) cells: Cells<'a>,
    /// The mask of null rows, if there are null rows. For cells that are written, only if a mask marks them, or if the
    /// cells do not contain null codes yet.
    pub(crate) nulls: Option<Vec<bool>>,
}

impl<'a> Texts<'a> {
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    pub(super) fn get(&self, row: usize) -> &[u8] {
        &self.bytes[self.offsets[row] as usize..self.offsets[row + 1] as usize]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).map(|row| self.get(row))
    }

    pub(super) fn push(&mut self, text: &[u8]) {
        self.bytes.to_mut().extend_from_slice(text);
        self.offsets.to_mut().push(self.bytes.len() as i64);
    }

    /// Whether each string is UTF-8, and has at most `max` bytes. The caller has checked the offsets.
    pub(super) fn are_valid(&self, max: u64) -> bool {
        let (first, last) = (self.offsets[0] as usize, self.offsets[self.len()] as usize);
        let has_len = |ends: &[i64]| (ends[1] - ends[0]) as u64 <= max;
        std::str::from_utf8(&self.bytes[first..last]).is_ok_and(|text| {
            self.offsets.iter().all(|at| text.is_char_boundary(*at as usize - first))
        }) && self.offsets.windows(2).all(has_len)
    }

    /// The same strings, without the bytes before the first one and after the last one.
    pub(super) fn trimmed(mut self) -> Self {
        let (first, last) = (self.offsets[0], self.offsets[self.len()]);
        split(&mut self.bytes, last as usize);
        if first != 0 {
            self.bytes = split(&mut self.bytes, first as usize);
            self.offsets.to_mut().iter_mut().for_each(|at| *at -= first);
        }
        self
    }

    /// The same strings, in the same memory.
    pub(super) fn borrowed(&self) -> Texts<'_> {
        Texts { offsets: Cow::Borrowed(&self.offsets), bytes: Cow::Borrowed(&self.bytes) }
    }
}

impl<'a> Encoded<'a> {
    /// Whether both have the same form, so that they can be joined.
    pub(super) fn is_like(&self, other: &Self) -> bool {
        mem::discriminant(&self.cells) == mem::discriminant(&other.cells)
    }

    /// Reserves memory for rows of the same form.
    pub(super) fn reserve(&mut self, more: &Encoded<'_>) -> Result<()> {
        let reserved = match (&mut self.cells, &more.cells) {
            (Cells::Items { bytes, .. }, Cells::Items { bytes: new, .. }) => {
                bytes.to_mut().try_reserve(new.len())
            }
            (Cells::Texts(texts), Cells::Texts(new)) => {
                let offsets = texts.offsets.to_mut().try_reserve(more.rows);
                offsets.and_then(|()| texts.bytes.to_mut().try_reserve(new.bytes.len()))
            }
            (Cells::Codes { codes, .. }, _) => codes.to_mut().try_reserve(more.rows),
            (Cells::Values(values), _) => values.to_mut().try_reserve(more.rows),
            _ => Ok(()),
        };
        reserved.map_err(|error| {
            let detail = format!("collect {} bytes: {error}", more.nbytes());
            Error::new(ErrorKind::OutOfMemory, WRITE, detail)
        })
    }

    /// Adds rows of the same form, with the same strings if they are codes.
    pub(super) fn push(&mut self, new: Encoded<'_>) {
        if self.nulls.is_some() || new.nulls.is_some() {
            let nulls = self.nulls.get_or_insert_default();
            nulls.resize(self.rows, false);
            nulls.extend(new.nulls.unwrap_or_default());
            nulls.resize(self.rows + new.rows, false);
        }
        self.rows += new.rows;
        match (&mut self.cells, new.cells) {
            (Cells::Items { bytes, .. }, Cells::Items { bytes: new, .. }) => {
                bytes.to_mut().extend_from_slice(&new);
            }
            (Cells::Texts(texts), Cells::Texts(new)) => {
                let shift = texts.bytes.len() as i64;
                let ends = new.offsets[1..].iter().map(|end| end + shift);
                texts.offsets.to_mut().extend(ends);
                texts.bytes.to_mut().extend_from_slice(&new.bytes);
            }
            (Cells::Codes { codes, .. }, Cells::Codes { codes: new, .. }) => {
                codes.to_mut().extend_from_slice(&new);
            }
            (Cells::Values(values), Cells::Values(new)) => {
                values.to_mut().append(&mut new.into_owned());
            }
            _ => unreachable!("the forms are the same"),
        }
    }

    /// Removes all rows, and keeps their memory. Returns the number of its bytes.
    pub(super) fn clear(&mut self) -> u64 {
        (self.rows, self.nulls) = (0, None);
        let nbytes = match &mut self.cells {
            Cells::Items { bytes, .. } => truncate(bytes, 0),
            Cells::Texts(texts) => truncate(&mut texts.offsets, 1) + truncate(&mut texts.bytes, 0),
            Cells::Codes { codes, .. } => truncate(codes, 0),
            Cells::Values(values) => truncate(values, 0),
        };
        nbytes as u64
    }

    /// Removes the rows from `at` on, and returns them.
    pub(super) fn split_off(&mut self, at: usize) -> Self {
        let cells = match &mut self.cells {
            Cells::Items { dtype, bytes } => {
                let row = bytes.len().checked_div(self.rows).unwrap_or(0);
                Cells::Items { dtype: dtype.clone(), bytes: split(bytes, row * at) }
            }
            Cells::Texts(texts) => {
                let start = texts.offsets[at];
                let offsets = texts.offsets[at..].iter().map(|offset| offset - start).collect();
                split(&mut texts.offsets, at + 1);
                Cells::Texts(Texts { offsets, bytes: split(&mut texts.bytes, start as usize) })
            }
            Cells::Codes { codes, first, texts } => {
                Cells::Codes { codes: split(codes, at), first: *first, texts: texts.clone() }
            }
            Cells::Values(values) => Cells::Values(split(values, at)),
        };
        let nulls = self.nulls.as_mut().map(|nulls| nulls.split_off(at));
        let rows = mem::replace(&mut self.rows, at) - at;
        Self { rows, cells, nulls }
    }

    /// Some of the rows. A row can be picked several times.
    pub(super) fn pick(&self, rows: &[usize]) -> Result<Self> {
        let cells = match &self.cells {
            Cells::Items { dtype, bytes } => {
                let size = bytes.len().checked_div(self.rows).unwrap_or(0);
                // The caller has checked the memory.
                let mut picked = reserve_rows(rows.len(), Some(size), u64::MAX).doing(WRITE)?;
                for row in rows {
                    picked.extend_from_slice(&bytes[row * size..(row + 1) * size]);
                }
                Cells::Items { dtype: dtype.clone(), bytes: picked.into() }
            }
            Cells::Texts(texts) => {
                let mut picked = Texts::default();
                rows.iter().for_each(|row| picked.push(texts.get(*row)));
                Cells::Texts(picked)
            }
            Cells::Codes { codes, first, texts } => Cells::Codes {
                codes: rows.iter().map(|row| codes[*row]).collect(),
                first: *first,
                texts: texts.clone(),
            },
            Cells::Values(values) => {
                Cells::Values(rows.iter().map(|row| values[*row].clone()).collect())
            }
        };
        let nulls = self.nulls.as_ref();
        let nulls = nulls.map(|nulls| rows.iter().map(|row| nulls[*row]).collect());
        Ok(Self { rows: rows.len(), cells, nulls })
    }

    pub(super) fn into_owned(self) -> Encoded<'static> {
        let cells = match self.cells {
            Cells::Items { dtype, bytes } => Cells::Items { dtype, bytes: own(bytes) },
            Cells::Texts(Texts { offsets, bytes }) => {
                Cells::Texts(Texts { offsets: own(offsets), bytes: own(bytes) })
            }
            Cells::Codes { codes, first, texts } => {
                Cells::Codes { codes: own(codes), first, texts: own(texts) }
            }
            Cells::Values(values) => Cells::Values(own(values)),
        };
        Encoded { rows: self.rows, cells, nulls: self.nulls }
    }

    /// The memory that the rows take, in bytes.
    pub(super) fn nbytes(&self) -> u64 {
        self.cells.nbytes() + self.rows as u64
    }
}

/// Removes the items from `at` on. Returns the bytes of the memory that the others own.
fn truncate<T: Clone>(items: &mut Cow<'_, [T]>, at: usize) -> usize {
    let items = items.to_mut();
    items.truncate(at);
    items.capacity() * size_of::<T>()
}

/// Removes the items from `at` on, and returns them, without a copy of borrowed ones, and of all items.
fn split<'a, T: Clone>(items: &mut Cow<'a, [T]>, at: usize) -> Cow<'a, [T]> {
    match items {
        Cow::Borrowed(all) => {
            let (head, tail) = all.split_at(at);
            *all = head;
            tail.into()
        }
        Cow::Owned(all) if at == 0 => mem::take(all).into(),
        Cow::Owned(all) => all.split_off(at).into(),
    }
}

fn own<T: Clone>(items: Cow<'_, [T]>) -> Cow<'static, [T]> {
    Cow::Owned(items.into_owned())
}
