//! Parts of a table: opening them, and limits on the memory for reading them.

use blosc2::limits::default_max_read;
use blosc2::{Dtype, Error, ErrorKind, NDArray, RawItems, Result, SChunk};

use super::{Leaves, OPEN, READ};
use crate::limits::max_read_of;
use crate::tag::error;

/// Bytes of rows that are read, changed and written at once.
const AT_ONCE: u64 = 1 << 24;

/// The parts of a table: super-chunks with keys.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) leaves: Box<dyn Leaves>,
    /// The key of the table.
    pub(super) root: String,
    pub(super) writable: bool,
}

impl Parts {
    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.root)
    }

    /// Opens the part with this key; `None` if there is none.
    pub(super) fn get(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        let key = self.key(key);
        match self.writable {
            true => self.leaves.leaf_for_changes(&key, ending),
            false => self.leaves.leaf(&key, ending),
        }
    }

    /// Opens the part with this key for reading, also if the table is open for changing.
    pub(super) fn get_for_reading(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
        self.leaves.leaf(&self.key(key), ending)
    }

    /// Whether a part exists now, also if another handle has added it.
    pub(super) fn exists(&self, key: &str, ending: &str) -> bool {
        self.leaves.exists(&self.key(key), ending)
    }

    /// Adds or replaces a part. The old one must not be open.
    pub(super) fn put(&mut self, key: &str, ending: &str, schunk: &SChunk) -> Result<()> {
        self.leaves.put(&self.key(key), ending, schunk)
    }

    /// Removes a part, if it exists. Parts below it stay: a column `a.b` is stored below the key of the column `a`.
    pub(super) fn remove(&mut self, key: &str, ending: &str) -> Result<()> {
        self.leaves.discard(&self.key(key), ending)
    }

    /// Removes all parts below a key.
    pub(super) fn remove_below(&mut self, key: &str) -> Result<()> {
        self.leaves.discard_below(&self.key(key))
    }
}

/// The super-chunk of a required key.
pub(super) fn leaf(parts: &Parts, key: &str, ending: &str) -> Result<SChunk> {
    parts.get(key, ending)?.ok_or_else(|| {
        Error::new(ErrorKind::InvalidData, OPEN, format!("there is no `{}`", parts.key(key)))
    })
}

/// The array of a required key, which must have an axis of rows.
pub(super) fn array(parts: &Parts, key: &str) -> Result<NDArray> {
    let array = NDArray::from_schunk(leaf(parts, key, "b2nd")?)?;
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

/// Bytes of a row of an array.
pub(super) fn row_bytes(array: &NDArray) -> usize {
    array.typesize().saturating_mul(row_items(array))
}

/// Items of a row of an array. An array without rows can have a shape whose product overflows.
pub(super) fn row_items(array: &NDArray) -> usize {
    let items = array.shape()[1..].iter().fold(1u64, |items, &len| items.saturating_mul(len));
    usize::try_from(items).unwrap_or(usize::MAX)
}

/// Changes the number of rows of an array to `rows`, and items in them with `work`, in one commit.
pub(super) fn with_rows(
    array: &mut NDArray,
    rows: u64,
    work: impl FnOnce(&mut NDArray) -> Result<()>,
) -> Result<()> {
    if array.shape()[0] == rows {
        return work(array);
    }
    array.transaction(|array| {
        let mut shape = array.shape().to_vec();
        shape[0] = rows;
        array.resize(&shape[..])?;
        work(array)
    })
}

/// Replaces rows of an array at ascending places.
pub(super) fn replace(array: &mut NDArray, places: &[u64], rows: &[u8]) -> Result<()> {
    let row = row_bytes(array);
    let chunk = array.chunk_shape()[0].max(1);
    let at_once = (AT_ONCE / row.max(1) as u64).max(1);
    let mut rest = places;
    let mut rows = rows;
    while let Some(&first) = rest.first() {
        // Rows of one chunk are written at once, since each write compresses the chunk.
        let end = (first - first % chunk).saturating_add(chunk).min(first.saturating_add(at_once));
        let count = rest.partition_point(|place| *place < end);
        let (these, after) = rest.split_at(count);
        let span = first..these[count - 1] + 1;
        let (new, more) = rows.split_at(count * row);
        if span.end - span.start == count as u64 {
            array.write([span], RawItems(new))?;
        } else {
            let mut bytes = array.read::<RawItems>([span.clone()])?.0;
            for (place, new) in these.iter().zip(new.chunks_exact(row)) {
                let start = (place - first) as usize * row;
                bytes[start..start + row].copy_from_slice(new);
            }
            array.write([span], RawItems(&bytes))?;
        }
        (rest, rows) = (after, more);
    }
    Ok(())
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
