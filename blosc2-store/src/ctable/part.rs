//! The parts of a table: opened, and what may be read of them.

use blosc2::{Dtype, Error, ErrorKind, NDArray, Result, SChunk};

use super::{Leaves, OPEN, READ};
use crate::tag::error;

/// The super-chunk of a key, which has to be there.
pub(super) fn leaf(leaves: &dyn Leaves, key: &str, ending: &str) -> Result<SChunk> {
    let missing = || Error::new(ErrorKind::InvalidData, OPEN, format!("there is no `{key}`"));
    leaves.leaf(key, ending)?.ok_or_else(missing)
}

/// The array of a key, which has to be there and to have a dimension of rows.
pub(super) fn array(leaves: &dyn Leaves, key: &str) -> Result<NDArray> {
    let array = NDArray::from_schunk(leaf(leaves, key, "b2nd")?)?;
    if array.ndim() == 0 {
        let detail = "an array of no dimension, expected one of rows";
        return Err(error(array.schunk(), ErrorKind::InvalidData, OPEN, detail));
    }
    Ok(array)
}

/// Sees that a part of a column is of one dimension and the type that it has to be.
pub(super) fn check_array(
    array: &NDArray,
    expected: &str,
    fits: impl Fn(&Dtype) -> bool,
) -> Result<()> {
    if array.ndim() == 1 && array.dtype().is_some_and(fits) {
        return Ok(());
    }
    Err(unlike(array, &format!("{expected} and one dimension")))
}

pub(super) fn unlike(array: &NDArray, expected: &str) -> Error {
    let dtype = array.dtype_str().unwrap_or("unknown items");
    let detail = format!("an array of {dtype} and shape {:?}, expected {expected}", array.shape());
    error(array.schunk(), ErrorKind::InvalidData, OPEN, detail)
}

/// Bytes of a row of an array.
pub(super) fn row_bytes(array: &NDArray) -> usize {
    array.typesize().saturating_mul(array.shape()[1..].iter().product::<u64>() as usize)
}

/// What results may allocate, at the word of a file that may stand for far more than it holds.
#[derive(Debug, Clone)]
pub(super) struct Budget {
    left: u64,
}

impl Budget {
    /// As for arrays: a GiB, or 256 bytes for each byte that is stored.
    pub(super) fn of(stored: u64) -> Self {
        Self { left: stored.saturating_mul(256).max(1 << 30) }
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
            "{nbytes} bytes more than were read go over the limit by {}: read fewer rows at a time",
            nbytes - self.left
        );
        Err(Error::new(ErrorKind::TooLarge, READ, detail))
    }
}
