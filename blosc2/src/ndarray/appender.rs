//! The appender: many small appends, compressed chunk by chunk.

use std::borrow::{BorrowMut, Cow};
use std::ops::Range;
use std::{fmt, mem};

use super::NDArray;
use super::shape::{check_others, count_on};
use super::transfer::{Given, ItemSource};
use crate::support::memory::reserve;
use crate::{Doing, Result};

const DOING: &str = "append to an array";

/// Appends items at the end of an axis in many small parts, and compresses each chunk only once. An appender collects
/// items in memory, and writes them when they fill the chunks at the end of the axis.
///
/// Use one appender for all appends. [`NDArray::append`] recompresses the last chunk in each call, if the chunk is not
/// full. A new appender for each row is as slow as a call of [`NDArray::append`] for each row. If chunks have many
/// rows, one appender for all rows can be several hundred times as fast.
///
/// When you create an array that will grow, set its chunk shape; see
/// [`NDArrayBuilder::chunk_shape`](crate::NDArrayBuilder::chunk_shape).
///
/// Each flush recompresses the last chunk if the chunk is not full. If items are appended on axis 0 of an array in a
/// contiguous file, the recompressed chunk overwrites the old chunk, even if the new chunk is longer. Therefore
/// frequent flushes create no gaps (unused bytes) in the file.
///
/// Collected items are written in these cases:
/// - they fill chunks;
/// - [`flush`](Self::flush), [`sync`](Self::sync) or [`finish`](Self::finish) is called;
/// - the appender is dropped. Errors of this write are ignored.
///
/// If the process dies, collected items are lost. For the state of the file after a crash, see [crash
/// recovery](crate::OpenOptions#crash-recovery).
///
/// An appender of a `&mut NDArray` borrows the array. An appender of an `NDArray` owns the array, and can therefore be
/// a field of a struct.
///
/// The methods fail with the [errors of changes](NDArray#errors-of-changes).
///
/// ```
/// use blosc2::{Appender, NDArray};
///
/// struct Log {
///     rows: Appender,
/// }
///
/// let array = NDArray::builder().chunk_shape(&[1000, 3]).zeros::<f64>(&[0, 3])?;
/// let mut log = Log { rows: Appender::new(array, 0)? };
/// for time in 0..2500 {
///     log.rows.append(&[f64::from(time), 20.5, 1013.25])?; // one row
/// }
/// let array = log.rows.finish()?;
/// assert_eq!(array.shape(), [2500, 3]);
/// assert_eq!(array.item::<f64>(&[2499, 0])?, 2499.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub struct Appender<A: BorrowMut<NDArray> = NDArray> {
    /// `Some` until [`finish`](Self::finish) or [`into_inner`](Self::into_inner) returns it.
    array: Option<A>,
    axis: usize,
    /// The collected items, one index on the axis after the other. The items at one index are in C order.
    items: Vec<u8>,
    /// The number of collected indices on the axis, and (`room`) the number of indices that fill the last chunk.
    filled: u64,
    room: u64,
    /// The shape of the array for which the items were collected.
    shape: Vec<u64>,
}

impl<A: BorrowMut<NDArray>> Appender<A> {
    /// Creates an appender for an axis. `array` is a `&mut NDArray`, or an `NDArray`, which [`finish`](Self::finish)
    /// returns. After an error, an owned array is dropped.
    pub fn new(array: A, axis: usize) -> Result<Self> {
        let found: &NDArray = array.borrow();
        found.check_axis(axis).doing(DOING)?;
        found.schunk.check_change(crate::schunk::Access::Write).doing(DOING)?;
        let shape = found.shape().to_vec();
        Ok(Self { array: Some(array), axis, items: Vec::new(), filled: 0, room: 0, shape })
    }

    /// Returns the array. It does not contain the collected items yet.
    pub fn array(&self) -> &NDArray {
        match &self.array {
            Some(array) => array.borrow(),
            None => unreachable!("only `finish` takes it"),
        }
    }

    fn array_mut(&mut self) -> &mut NDArray {
        match &mut self.array {
            Some(array) => array.borrow_mut(),
            None => unreachable!("only `finish` takes it"),
        }
    }

    /// Writes the collected items, and returns the array.
    ///
    /// After an error, this method drops the collected items, and also the array if the appender owns it. To handle an
    /// error without this loss, call [`flush`](Self::flush) first: after an error of `flush`, the appender still
    /// contains the items, and [`into_inner`](Self::into_inner) returns the array without them.
    pub fn finish(mut self) -> Result<A> {
        let flushed = self.flush();
        // The drop does not write the items again.
        self.filled = 0;
        let array = self.array.take();
        flushed.map(|()| array.unwrap_or_else(|| unreachable!("it is taken here")))
    }

    /// Returns the array, and discards the collected items: they are not written.
    pub fn into_inner(mut self) -> A {
        self.filled = 0;
        self.array.take().unwrap_or_else(|| unreachable!("only `finish` and this take it"))
    }

    /// Writes the collected items, and syncs all changes of the array to disk; see [`NDArray::sync`].
    pub fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.array_mut().sync()
    }

    /// Returns the number of indices on the axis (for axis 0, the number of rows) that are collected and not yet
    /// written.
    pub fn pending(&self) -> u64 {
        self.filled
    }

    /// Appends items; see [`NDArray::append`]. The length of a slice, in C order, must be a multiple of the number of
    /// items at one index of the axis (for axis 0, the number of items in a row). The items of another array are read.
    ///
    /// After an error, no item of `items` is appended or collected, and the call can be repeated.
    #[doc(alias("push", "extend"))]
    pub fn append<'s>(&mut self, items: impl ItemSource<'s>) -> Result<()> {
        let items = items.into_items();
        let view = self.array().view();
        items.check_shape((&view, view.array.shape()), Some(self.axis)).doing(DOING)?;
        let bytes = items.into_stored(&view).doing(DOING)?;
        self.append_bytes(&bytes)
    }

    fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let axis = self.axis;
        self.look_at_shape();
        let (outer, inner) = self.run();
        let slab = outer.saturating_mul(inner);
        let array = self.array();
        let count = count_on(axis, &self.shape, array.typesize(), bytes.len());
        let count = count.map_err(|error| array.schunk.at(error)).doing(DOING)? as usize;
        if count == 0 {
            return Ok(());
        }
        let side = self.array().chunk_shape()[axis].max(1);
        let filled = self.filled + count as u64;
        // One call writes all items that fill chunks, so that an error changes nothing.
        // If another handle has appended since then, more items can be collected than fit into the last chunk. In that
        // case, the collected items are written and all new items are collected.
        let rest = match filled.checked_sub(self.room) {
            Some(over) => usize::try_from(over % side).map_or(count, |rest| rest.min(count)),
            None => count,
        };
        let whole = count - rest;
        if whole > 0 && self.filled == 0 && (outer == 1 || rest == 0) {
            self.write(&bytes[..whole * slab])?;
        } else if filled >= self.room {
            let before = (self.items.len(), self.filled);
            let written = self.collect(bytes, 0..whole, count).and_then(|()| self.flush());
            if written.is_err() {
                self.items.truncate(before.0);
                self.filled = before.1;
                return written;
            }
        }
        self.collect(bytes, whole..count, count)
    }

    /// If no items are collected, reads the shape of the array, and the number of indices that fill its last chunk.
    fn look_at_shape(&mut self) {
        if self.filled == 0 {
            self.shape = self.array().shape().to_vec();
            let side = self.array().chunk_shape()[self.axis].max(1);
            self.room = side - self.shape[self.axis] % side;
        }
    }

    /// Collects the indices `range` of items at `count` indices, which are in C order.
    fn collect(&mut self, bytes: &[u8], range: Range<usize>, count: usize) -> Result<()> {
        if range.is_empty() {
            return Ok(());
        }
        self.look_at_shape();
        let (outer, inner) = self.run();
        reserve(&mut self.items, outer * range.len() * inner).doing(DOING)?;
        turn(bytes, (count, inner), range.clone(), &mut self.items);
        self.filled += range.len() as u64;
        Ok(())
    }

    /// Writes the collected items. After an error, the items stay collected, and the call can be repeated.
    pub fn flush(&mut self) -> Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        let (outer, inner) = self.run();
        let items = mem::take(&mut self.items);
        let mut ordered = Vec::new();
        let written = match outer {
            1 => self.write(&items),
            _ => reserve(&mut ordered, items.len()).doing(DOING).and_then(|()| {
                turn(&items, (outer, inner), 0..outer, &mut ordered);
                self.write(&ordered)
            }),
        };
        self.items = items;
        written?;
        self.items.clear();
        self.filled = 0;
        Ok(())
    }

    fn write(&mut self, items: &[u8]) -> Result<()> {
        let (array, axis) = (self.array(), self.axis);
        check_others(&self.shape, array.shape(), axis)
            .doing(DOING)
            .map_err(|error| array.schunk.at(error))?;
        self.array_mut().put_in(axis, None, Given::Raw(Cow::Borrowed(items))).doing(DOING)
    }

    /// Returns the number of contiguous runs of bytes at one index of the axis, and the length of each run.
    fn run(&self) -> (usize, usize) {
        let product = |sizes: &[u64], start: usize| {
            sizes.iter().fold(start, |all, &size| {
                all.saturating_mul(usize::try_from(size).unwrap_or(usize::MAX))
            })
        };
        let (shape, axis) = (&self.shape, self.axis);
        (product(&shape[..axis], 1), product(&shape[axis + 1..], self.array().typesize()))
    }
}

/// Appends some columns of a table to `to`, one after the other. `from` contains the rows of the table; a row has
/// `columns` cells of `cell` bytes.
fn turn(from: &[u8], (columns, cell): (usize, usize), chosen: Range<usize>, to: &mut Vec<u8>) {
    if from.len() == columns * cell {
        return to.extend_from_slice(&from[chosen.start * cell..chosen.end * cell]);
    }
    for column in chosen {
        let rows = from.chunks_exact(columns * cell);
        rows.for_each(|row| to.extend_from_slice(&row[column * cell..][..cell]));
    }
}

impl<A: BorrowMut<NDArray>> Drop for Appender<A> {
    fn drop(&mut self) {
        // An error is ignored here; callers that need it call `flush`.
        let _ = self.flush();
    }
}

impl<A: BorrowMut<NDArray>> fmt::Debug for Appender<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("array", self.array())
            .field("axis", &self.axis)
            .field("pending", &self.filled)
            .finish_non_exhaustive()
    }
}
