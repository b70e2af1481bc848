//! Iteration over the rows of an array.

use std::iter::FusedIterator;
use std::vec;

use super::NDArray;
use super::places::len_of;
use crate::Result;
use crate::item::element::Element;

impl NDArray {
    /// Returns an iterator over the rows. A row is the items at one index of the first axis, in C order.
    ///
    /// The iterator reads all rows of the same chunks together and holds them in memory, so that each block is
    /// decompressed once. If a read fails, the iterator returns one of the [errors of reads](NDArray#errors-of-reads)
    /// instead of the row, and ends. An array without axes has one row of one item.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&(0..12i32).collect::<Vec<_>>(), &[4, 3])?;
    /// let sums: Vec<i32> =
    ///     array.rows::<i32>().map(|row| Ok(row?.iter().sum())).collect::<blosc2::Result<_>>()?;
    /// assert_eq!(sums, [3, 12, 21, 30]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn rows<T: Element>(&self) -> impl FusedIterator<Item = Result<Vec<T>>> {
        let items = len_of(self.shape().get(1..).unwrap_or_default(), 1);
        let left = self.shape().first().copied().unwrap_or(1);
        Rows { array: self, next: 0, left, row: items, read: Vec::new().into_iter() }
    }
}

struct Rows<'a, T> {
    array: &'a NDArray,
    /// The first row that is not read.
    next: u64,
    /// The number of rows that are not returned.
    left: u64,
    row: u64,
    /// Items that are read and not returned.
    read: vec::IntoIter<T>,
}

impl<T: Element> Rows<'_, T> {
    fn read_chunk(&mut self) -> Result<()> {
        let items: Vec<T> = match self.array.shape().first() {
            None => self.array.read(..)?,
            Some(&size) => {
                let side = self.array.chunk_shape()[0].max(1);
                // Up to the end of a row of chunks.
                let end = size.min((self.next / side + 1) * side);
                let items = self.array.read(self.next..end)?;
                self.next = end;
                items
            }
        };
        self.read = items.into_iter();
        Ok(())
    }
}

impl<T: Element> Iterator for Rows<'_, T> {
    type Item = Result<Vec<T>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        self.left -= 1;
        if self.row == 0 {
            return Some(Ok(Vec::new()));
        }
        if self.read.len() == 0
            && let Err(error) = self.read_chunk()
        {
            self.left = 0;
            return Some(Err(error));
        }
        // The rows were read together, so their items fit in memory.
        Some(Ok(self.read.by_ref().take(self.row as usize).collect()))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = usize::try_from(self.left);
        (left.unwrap_or(usize::MAX), left.ok())
    }
}

impl<T: Element> FusedIterator for Rows<'_, T> {}
