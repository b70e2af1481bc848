//! Changing the parts of a table.

use super::part::*;
use crate::blosc2::{NDArray, RawItems, Result, SChunk};

impl Parts {
    /// Adds or replaces a part. The old one must not be open.
    pub(super) fn put(&mut self, key: &str, ending: &str, schunk: &SChunk) -> Result<()> {
        self.leaves.put(&self.key(key), ending, schunk)
    }

    /// Removes a part, if it exists. Parts below it stay: a column `a.b` is stored below the key of the column `a`.
    pub(super) fn remove(&mut self, key: &str, ending: &str) -> Result<()> {
        self.leaves.discard(&self.key(key), ending)
    }

    pub(super) fn remove_below(&mut self, key: &str) -> Result<()> {
        self.leaves.discard_below(&self.key(key))
    }
}

/// Bytes of rows that are read, changed and written at once.
const AT_ONCE: u64 = 1 << 24;

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
