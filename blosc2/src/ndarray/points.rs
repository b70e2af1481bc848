//! Single items: by lists of indices, and by masks.

use super::NDArray;
use super::gather::{READ, Sink};
use super::plan::{Indices, Items};
use super::scatter::{Source, WRITE};
use crate::dtype::SwapPlan;
use crate::element::{Element, make_items, with_bytes_mut, zeroed};
use crate::{ErrorKind, Result};

impl NDArray {
    /// Reads single items by their indices, in any order, also several times the same.
    ///
    /// Each block is decompressed once, whatever the order. C's `b2nd_get_sparse_cbuffer`, NumPy's
    /// `array[rows, columns]`.
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&(0..100i32).collect::<Vec<_>>(), &[10, 10])?;
    /// assert_eq!(array.read_points::<i32>(&[[9, 9], [0, 3], [9, 9]])?, [99, 3, 99]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// As for [`read`](Self::read); [`ErrorKind::InvalidArgument`] where an index has not as many numbers as the array
    /// has dimensions.
    #[doc(alias("b2nd_get_sparse_cbuffer", "take"))]
    pub fn read_points<T: Element>(&self, points: &[impl AsRef<[u64]>]) -> Result<Vec<T>> {
        self.check_points(points, READ)?;
        self.read_indices(&List(points))
    }

    /// Reads single items of any dtype as they are stored.
    ///
    /// # Errors
    /// As for [`read_points`](Self::read_points), the dtype apart.
    pub fn read_points_bytes(&self, points: &[impl AsRef<[u64]>]) -> Result<Vec<u8>> {
        self.check_points(points, READ)?;
        self.read_indices_bytes(&List(points))
    }

    /// Reads single items into the caller's, of which there have to be as many.
    ///
    /// # Errors
    /// As for [`read_points`](Self::read_points), and [`ErrorKind::InvalidArgument`] where the numbers differ.
    pub fn read_points_into<T: Element>(
        &self,
        points: &[impl AsRef<[u64]>],
        items: &mut [T],
    ) -> Result<()> {
        self.check_points(points, READ)?;
        self.check_count(points.len(), items.len(), READ)?;
        let swapped = self.check_dtype::<T>(READ)?;
        with_bytes_mut(items, |bytes| self.indices_to(&List(points), bytes, false, swapped))
    }

    /// Reads the items where the mask is true, in C order; it has one for each item of the array. NumPy's
    /// `array[mask]`.
    ///
    /// # Errors
    /// As for [`read`](Self::read); [`ErrorKind::InvalidArgument`] where the mask has another length.
    pub fn read_mask<T: Element>(&self, mask: &[bool]) -> Result<Vec<T>> {
        self.read_indices(&self.chosen(mask, READ)?)
    }

    /// Reads the items of any dtype where the mask is true, as they are stored.
    ///
    /// # Errors
    /// As for [`read_mask`](Self::read_mask), the dtype apart.
    pub fn read_mask_bytes(&self, mask: &[bool]) -> Result<Vec<u8>> {
        self.read_indices_bytes(&self.chosen(mask, READ)?)
    }

    /// Writes single items by their indices; of an item that is named several times, the last one stays.
    ///
    /// # Errors
    /// As for [`write`](Self::write) and [`read_points`](Self::read_points).
    pub fn write_points<T: Element>(
        &mut self,
        points: &[impl AsRef<[u64]>],
        items: &[T],
    ) -> Result<()> {
        self.check_points(points, WRITE)?;
        self.write_indices(&List(points), items)
    }

    /// Writes single items of any dtype, given as bytes as they are stored.
    ///
    /// # Errors
    /// As for [`write_points`](Self::write_points), the dtype apart.
    pub fn write_points_bytes(&mut self, points: &[impl AsRef<[u64]>], bytes: &[u8]) -> Result<()> {
        self.check_points(points, WRITE)?;
        self.write_indices_bytes(&List(points), bytes)
    }

    /// Writes items where the mask is true, in C order. NumPy's `array[mask] = items`.
    ///
    /// # Errors
    /// As for [`write`](Self::write); [`ErrorKind::InvalidArgument`] where the mask has another length than the
    /// array, or is true for another number of items.
    pub fn write_mask<T: Element>(&mut self, mask: &[bool], items: &[T]) -> Result<()> {
        let chosen = self.chosen(mask, WRITE)?;
        self.write_indices(&chosen, items)
    }

    /// Writes items of any dtype where the mask is true, given as bytes as they are stored.
    ///
    /// # Errors
    /// As for [`write_mask`](Self::write_mask), the dtype apart.
    pub fn write_mask_bytes(&mut self, mask: &[bool], bytes: &[u8]) -> Result<()> {
        let chosen = self.chosen(mask, WRITE)?;
        self.write_indices_bytes(&chosen, bytes)
    }

    fn read_indices_bytes(&self, points: &impl Indices) -> Result<Vec<u8>> {
        let len = points.count().saturating_mul(self.typesize());
        self.schunk.allow(READ, len as u64)?;
        let mut bytes = zeroed(len, READ)?;
        self.indices_to(points, &mut bytes, true, None)?;
        Ok(bytes)
    }

    fn read_indices<T: Element>(&self, points: &impl Indices) -> Result<Vec<T>> {
        let swapped = self.check_dtype::<T>(READ)?;
        self.schunk.allow(READ, points.count() as u64 * self.typesize() as u64)?;
        make_items(points.count(), READ, |bytes| self.indices_to(points, bytes, true, swapped))
    }

    fn indices_to(
        &self,
        points: &impl Indices,
        bytes: &mut [u8],
        zeros: bool,
        swapped: Option<SwapPlan>,
    ) -> Result<()> {
        // SAFETY: the bytes are borrowed, and as many as the items have, one behind the other.
        let sink = unsafe { Sink::new(bytes.as_mut_ptr(), zeros) };
        // SAFETY: as above.
        unsafe { self.gather(Items::Points(points), sink) }?;
        if let Some(swapped) = swapped {
            swapped.apply(bytes);
        }
        Ok(())
    }

    fn write_indices<T: Element>(&mut self, points: &impl Indices, items: &[T]) -> Result<()> {
        let bytes = self.stored_bytes(items, WRITE)?;
        self.write_indices_bytes(points, &bytes)
    }

    fn write_indices_bytes(&mut self, points: &impl Indices, bytes: &[u8]) -> Result<()> {
        let size = self.typesize();
        if points.count().checked_mul(size) != Some(bytes.len()) {
            let (expected, found) = (points.count(), bytes.len());
            let detail = format!("{expected} items of {size} bytes are named, got {found} bytes");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, WRITE, detail));
        }
        // SAFETY: the bytes are borrowed, and as many as the items have, one behind the other.
        unsafe { self.scatter(Items::Points(points), Source::new(bytes.as_ptr())) }
    }

    fn check_points(&self, points: &[impl AsRef<[u64]>], doing: &str) -> Result<()> {
        points.iter().try_for_each(|point| self.check_index(point.as_ref(), doing))
    }

    fn check_count(&self, expected: usize, found: usize, doing: &str) -> Result<()> {
        if expected == found {
            return Ok(());
        }
        let detail = format!("{expected} items are named, got {found}");
        Err(self.schunk.error(ErrorKind::InvalidArgument, doing, detail))
    }

    /// The items where a mask is true.
    fn chosen(&self, mask: &[bool], doing: &str) -> Result<Chosen> {
        if mask.len() as u64 != self.len() {
            let (expected, found) = (self.len(), mask.len());
            let detail = format!("the array has {expected} items, the mask {found}");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, doing, detail));
        }
        let chosen = mask.iter().enumerate().filter(|&(_, &chosen)| chosen);
        Ok(Chosen {
            shape: self.shape().to_vec(),
            numbers: chosen.map(|(number, _)| number as u64).collect(),
        })
    }
}

/// Indices of the caller's, which were looked at.
struct List<'a, P>(&'a [P]);

impl<P: AsRef<[u64]>> Indices for List<'_, P> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn index(&self, number: usize, index: &mut [u64]) {
        // An `AsRef` may give something else each time.
        for (to, from) in index.iter_mut().zip(self.0[number].as_ref()) {
            *to = *from;
        }
    }
}

/// Items by their numbers in C order.
struct Chosen {
    shape: Vec<u64>,
    numbers: Vec<u64>,
}

impl Indices for Chosen {
    fn count(&self) -> usize {
        self.numbers.len()
    }

    fn index(&self, number: usize, index: &mut [u64]) {
        let mut number = self.numbers[number];
        for (at, &size) in index.iter_mut().zip(&self.shape).rev() {
            *at = number % size;
            number /= size;
        }
    }
}
