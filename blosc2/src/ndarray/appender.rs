//! Many small appends.

use std::fmt;

use super::NDArray;
use super::shape::check_others;
use crate::element::Element;
use crate::{Error, ErrorKind, Result};

const DOING: &str = "append to an array";

/// Collects items that are appended along a dimension, and writes them when they fill chunks.
///
/// [`NDArray::append`] compresses the last chunk anew each time; this does it once for each chunk. What is collected is
/// written by [`flush`](Self::flush), or when the appender is dropped, where an error is lost. Made by
/// [`NDArray::appender`].
///
/// ```
/// use blosc2::NDArray;
///
/// let mut array = NDArray::builder().chunks(&[1000]).zeros::<f64>(&[0])?;
/// let mut appender = array.appender(0)?;
/// for i in 0..250 {
///     appender.append(&[f64::from(i); 10])?;
/// }
/// appender.flush()?;
/// assert_eq!(appender.array().shape(), [2500]);
/// drop(appender);
/// assert_eq!(array.item::<f64>(&[2499])?, 249.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub struct Appender<'a> {
    array: &'a mut NDArray,
    axis: usize,
    /// Items as they came: of each piece in C order.
    items: Vec<u8>,
    /// How many positions each piece has.
    pieces: Vec<usize>,
    /// How many positions there are, and how many there may be.
    filled: u64,
    room: u64,
    /// The shape that they are for.
    shape: Vec<u64>,
}

impl NDArray {
    /// Makes an [`Appender`] along a dimension.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: opened for reading or appending;
    /// - [`ErrorKind::InvalidArgument`]: no such dimension.
    pub fn appender(&mut self, axis: usize) -> Result<Appender<'_>> {
        self.check_axis(axis, DOING)?;
        self.schunk.check_change(DOING, crate::schunk::Access::Write)?;
        let shape = self.shape().to_vec();
        Ok(Appender {
            array: self,
            axis,
            items: Vec::new(),
            pieces: Vec::new(),
            filled: 0,
            room: 0,
            shape,
        })
    }
}

impl Appender<'_> {
    /// The array, without what is collected.
    pub fn array(&self) -> &NDArray {
        self.array
    }

    /// How many positions along the dimension are collected and not written yet.
    pub fn pending(&self) -> u64 {
        self.filled
    }

    /// Appends items: so many as make the array longer by a whole number.
    ///
    /// # Errors
    /// As for [`NDArray::append`]. Where a write failed, the items before it stay collected.
    pub fn append<T: Element>(&mut self, items: &[T]) -> Result<()> {
        let bytes = self.array.stored_bytes(items, DOING)?;
        self.append_bytes(&bytes)
    }

    /// Appends items of any dtype, given as bytes as they are stored.
    ///
    /// # Errors
    /// As for [`append`](Self::append), the dtype apart.
    pub fn append_bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let axis = self.axis;
        if self.filled == 0 {
            self.shape = self.array.shape().to_vec();
        }
        let (outer, inner) = self.run();
        let slab = outer.saturating_mul(inner);
        let count = bytes.len().checked_div(slab).unwrap_or(0);
        if count.checked_mul(slab) != Some(bytes.len()) {
            let (shape, found) = (&self.shape, bytes.len());
            let detail = format!(
                "along dimension {axis} of {shape:?} one more takes {slab} bytes, got {found}"
            );
            return Err(self.array.schunk.error(ErrorKind::InvalidArgument, DOING, detail));
        }
        if self.filled > 0 && self.filled >= self.room {
            // What could not be written before.
            self.flush()?;
        }
        let mut done = 0;
        while done < count {
            if self.filled == 0 {
                let (side, size) = (self.array.chunks()[axis], self.array.shape()[axis]);
                // Up to the end of a chunk.
                self.room = if side == 0 { 1 } else { side - size % side };
                let room = usize::try_from(self.room).unwrap_or(usize::MAX);
                let side = usize::try_from(side).unwrap_or(usize::MAX).max(1);
                // What fills chunks by itself need not be collected.
                if done == 0 && count >= room && (count - room).is_multiple_of(side) {
                    return self.array.append_bytes(axis, bytes);
                }
            }
            let room = usize::try_from(self.room - self.filled).unwrap_or(usize::MAX);
            let part = (count - done).min(room);
            let more = part * slab;
            self.items
                .try_reserve(more)
                .map_err(|error| Error::new(ErrorKind::OutOfMemory, DOING, error))?;
            for place in 0..outer {
                let from = (place * count + done) * inner;
                self.items.extend_from_slice(&bytes[from..from + part * inner]);
            }
            self.pieces.push(part);
            self.filled += part as u64;
            done += part;
            if self.filled == self.room {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes what is collected.
    ///
    /// # Errors
    /// As for [`NDArray::append`]; all stays collected then, and can be written once more.
    pub fn flush(&mut self) -> Result<()> {
        if self.filled == 0 {
            return Ok(());
        }
        check_others(&self.shape, self.array.shape(), self.axis, DOING)
            .map_err(|error| self.array.schunk.at(error))?;
        let (outer, inner) = self.run();
        if outer == 1 || self.pieces.len() == 1 {
            self.array.append_bytes(self.axis, &self.items)?;
        } else {
            // Of each piece the items of a place along the earlier dimensions, then those of the next one.
            let mut items = Vec::new();
            items
                .try_reserve_exact(self.items.len())
                .map_err(|error| Error::new(ErrorKind::OutOfMemory, DOING, error))?;
            for place in 0..outer {
                let mut start = 0;
                for piece in &self.pieces {
                    let len = piece * inner;
                    items.extend_from_slice(&self.items[start + place * len..][..len]);
                    start += outer * len;
                }
            }
            self.array.append_bytes(self.axis, &items)?;
        }
        self.items.clear();
        self.pieces.clear();
        self.filled = 0;
        Ok(())
    }

    /// How many runs of bytes one position along the dimension has, and how long each is.
    fn run(&self) -> (usize, usize) {
        let product = |sizes: &[u64], start: usize| {
            sizes.iter().fold(start, |all, &size| {
                all.saturating_mul(usize::try_from(size).unwrap_or(usize::MAX))
            })
        };
        let (shape, axis) = (&self.shape, self.axis);
        (product(&shape[..axis], 1), product(&shape[axis + 1..], self.array.typesize()))
    }
}

impl Drop for Appender<'_> {
    fn drop(&mut self) {
        // `flush` gives the error to those who ask for it.
        let _ = self.flush();
    }
}

impl fmt::Debug for Appender<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Appender")
            .field("array", &self.array)
            .field("axis", &self.axis)
            .field("pending", &self.filled)
            .finish_non_exhaustive()
    }
}
