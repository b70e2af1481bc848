//! Parts of a table: opening them, and limits on the memory for reading them.

use std::ops::Range;

use crate::blosc2::limits::default_max_read;
use crate::blosc2::{Dtype, Error, ErrorKind, NDArray, Result, SChunk, Special};

use super::{Leaves, OPEN, READ};
use crate::limits::max_read_of;
use crate::tag::error;

/// The parts of a table: super-chunks with keys.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) leaves: Box<dyn Leaves>,
    /// The key of the table.
    pub(super) root: String,
    pub(super) writable: bool,
    /// The number of threads, if it was set.
    #[cfg(feature = "c")]
    pub(super) threads: Option<crate::blosc2::Threads>,
}

impl Parts {
    pub(super) fn key(&self, key: &str) -> String {
        format!("{}{key}", self.root)
    }

    /// Opens the part with this key; `None` if there is none.
    pub(super) fn get(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        let key = self.key(key);
        #[cfg(feature = "c")]
        if self.writable {
            return self.leaves.leaf_for_changes(&key, ending);
        }
        self.leaves.leaf(&key, ending)
    }

    /// Opens the part with this key for reading, also if the table is open for changing.
    pub(super) fn get_for_reading(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        self.leaves.leaf(&self.key(key), ending)
    }

    /// Whether a part exists now, also if another handle has added it.
    pub(super) fn exists(&self, key: &str, ending: &str) -> bool {
        self.leaves.exists(&self.key(key), ending)
    }
}

pub(super) fn leaf(parts: &Parts, key: &str, ending: &str) -> Result<SChunk> {
    parts.get(key, ending)?.ok_or_else(|| {
        Error::new(ErrorKind::InvalidData, OPEN, format!("there is no `{}`", parts.key(key)))
    })
}

/// The array of a required key, which must have an axis of rows.
pub(super) fn array(parts: &Parts, key: &str) -> Result<NDArray> {
    array_in(leaf(parts, key, "b2nd")?)
}

pub(super) fn array_in(schunk: SChunk) -> Result<NDArray> {
    let array = NDArray::from_schunk(schunk)?;
    if array.ndim() == 0 {
        let detail = "an array without axes, expected an axis of rows";
        return Err(error(array.schunk(), ErrorKind::InvalidData, OPEN, detail));
    }
    Ok(array)
}

/// Checks that a part of a column has one axis and the expected dtype.
pub(super) fn check_array(
    array: &NDArray,
    expected: &str,
    fits: impl Fn(&Dtype) -> bool,
) -> Result<()> {
    // The typesize of an invalid file can differ from the size of its dtype.
    let is_valid = |dtype: &Dtype| dtype.size() == array.typesize() && fits(dtype);
    if array.ndim() == 1 && array.dtype().is_some_and(is_valid) {
        return Ok(());
    }
    Err(unlike(array, &format!("{expected} and one dimension")))
}

pub(super) fn unlike(array: &NDArray, expected: &str) -> Error {
    let dtype = array.dtype_str().unwrap_or("unknown items");
    let detail = format!("an array of {dtype} and shape {:?}, expected {expected}", array.shape());
    error(array.schunk(), ErrorKind::InvalidData, OPEN, detail)
}

pub(super) fn row_bytes(array: &NDArray) -> usize {
    array.typesize().saturating_mul(row_items(array))
}

/// Items of a row of an array. An array without rows can have a shape whose product overflows.
pub(super) fn row_items(array: &NDArray) -> usize {
    let items = array.shape()[1..].iter().fold(1u64, |items, &len| items.saturating_mul(len));
    usize::try_from(items).unwrap_or(usize::MAX)
}

/// The special value of the chunk that contains all rows of a range; `None` if there is no such chunk or value.
pub(super) fn special_of(array: &NDArray, rows: &Range<u64>) -> Result<Option<Special>> {
    let len = array.chunk_shape()[0].max(1);
    let (first, last) = (rows.start / len, (rows.end - 1) / len);
    let chunk = if first == last { array.chunk(first as usize) } else { None };
    Ok(chunk.map(|chunk| chunk.info()).transpose()?.and_then(|info| info.special))
}

/// The memory allowance for results: a few stored bytes can decompress to very many.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// As for one read of a super-chunk with the same limits, in which `stored` bytes are stored.
    pub(super) fn of(schunk: &SChunk, stored: u64) -> Self {
        Self { left: max_read_of(schunk, stored) }
    }

    /// For reading all of a part in pieces: a lower limit of one read does not lower the sum.
    pub(super) fn of_all(schunk: &SChunk, stored: u64) -> Self {
        Self { left: max_read_of(schunk, stored).max(default_max_read(stored)) }
    }

    pub(super) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn take(&mut self, nbytes: u64) -> Result<()> {
        self.check(nbytes)?;
        self.left -= nbytes;
        Ok(())
    }

    pub(super) fn check(&self, nbytes: u64) -> Result<()> {
        if nbytes <= self.left {
            return Ok(());
        }
        let detail = format!(
            "{nbytes} more bytes exceed the memory limit by {}: read fewer rows at a time",
            nbytes - self.left
        );
        Err(Error::new(ErrorKind::TooLarge, READ, detail))
    }
}
