//! Selections of single items: points (lists of indices) and boolean masks.

use super::NDArray;
use super::gather::READ;
use super::index::{Integers, PerAxis, place};
use super::places::len_of;
use super::plan::{Items, Points};
use super::region::Region;
use super::scatter::WRITE;
use super::view::NDArrayView;
use crate::element::Element;
use crate::{ErrorKind, Result};

impl NDArray {
    /// Reads the items at a list of points (coordinates), in any order and with possible repetitions. C:
    /// `b2nd_get_sparse_cbuffer`, with flat indices. NumPy: `array[rows, columns]`.
    ///
    /// Each point is the index of one item: one integer for each axis. Negative integers count from the end of the
    /// axis.
    ///
    /// If a point has fewer integers than the array has axes, the point selects all items on the remaining axes. For
    /// example, `n` points of two integers in an array of the shape `[a, b, c]` select `n * c` items. To combine points
    /// with slices of other axes, see [`NDArrayView::read_points`].
    ///
    /// Each block is decompressed once, regardless of the order of the points. The call needs 32 bytes of temporary
    /// memory for each item. To read entire rows, a list of indices needs less memory: `array.read(([3, 0, 7],))`; see
    /// [`Selection`](crate::Selection).
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&(0..100i32).collect::<Vec<_>>(), &[10, 10])?;
    /// assert_eq!(array.read_points::<i32>(&[[9, 9], [0, 3], [-1, -1]])?, [99, 3, 99]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias("b2nd_get_sparse_cbuffer", "take"))]
    pub fn read_points<T: Element>(&self, points: &[impl PerAxis]) -> Result<Vec<T>> {
        self.view().read_points(points)
    }

    /// Reads the items at a list of points into a buffer of the caller; see [`read_points`](Self::read_points). The
    /// length of the buffer must be the number of items that the points select. After an error, the buffer may be
    /// partly written.
    pub fn read_points_into<T: Element>(
        &self,
        points: &[impl PerAxis],
        items: &mut [T],
    ) -> Result<()> {
        let region = Region::whole(self.shape());
        let points = self.points(points, &region, READ)?;
        self.view().read_items_into(Items::Points(&points), items)
    }

    /// Reads the items for which a boolean mask is `true`, in C order. The mask has one value for each item of the
    /// array, in C order. NumPy: `array[mask]`.
    pub fn read_mask<T: Element>(&self, mask: &[bool]) -> Result<Vec<T>> {
        self.view().read_mask(mask)
    }

    /// Writes items to a list of points (coordinates). If several points select the same item, the last value is
    /// stored. NumPy: `array[rows, columns] = items`.
    ///
    /// If a point has fewer integers than the array has axes, the point selects all items on the remaining axes; see
    /// [`read_points`](Self::read_points).
    pub fn write_points<T: Element>(&mut self, points: &[impl PerAxis], items: &[T]) -> Result<()> {
        let bytes = self.stored_bytes(items, WRITE)?;
        self.bytes_mut().write_points(points, &bytes)
    }

    /// Replaces the items for which a boolean mask is `true`, in C order. The mask has one value for each item of the
    /// array, in C order. NumPy: `array[mask] = items`.
    pub fn write_mask<T: Element>(&mut self, mask: &[bool], items: &[T]) -> Result<()> {
        let bytes = self.stored_bytes(items, WRITE)?;
        self.bytes_mut().write_mask(mask, &bytes)
    }

    /// Returns the items of a region that points select.
    pub(super) fn points<'a>(
        &self,
        points: &[impl PerAxis],
        region: &'a Region,
        doing: &str,
    ) -> Result<Points<'a>> {
        let error = |kind, detail| Err(self.schunk.error(kind, doing, detail));
        let shape = region.shape();
        let ndim = points.first().map_or(shape.len(), Integers::ndim);
        if ndim > shape.len() {
            let detail =
                format!("the shape has {} axes, got points of {ndim} integers", shape.len());
            return error(ErrorKind::InvalidArgument, detail);
        }
        let items =
            |shape: &[u64]| shape.iter().try_fold(1, |all: u64, &size| all.checked_mul(size));
        let each = items(&shape[ndim..]).and_then(|each| usize::try_from(each).ok());
        let count = each.and_then(|each| each.checked_mul(points.len()));
        // A view that repeats positions may have more items than can be numbered.
        let (Some(each), Some(count), Some(_)) = (each, count, items(&shape)) else {
            let detail = format!("{} points of {:?} items each", points.len(), &shape[ndim..]);
            return error(ErrorKind::TooLarge, detail);
        };
        let mut numbers = Vec::with_capacity(points.len());
        for (number, point) in points.iter().enumerate() {
            if point.ndim() != ndim {
                let found = point.ndim();
                let detail = format!("point 0 has {ndim} integers, point {number} has {found}");
                return error(ErrorKind::InvalidArgument, detail);
            }
            let mut all = 0;
            for (axis, &size) in shape.iter().enumerate().take(ndim) {
                let at = point.along(axis);
                let place = place(at, size);
                if place >= size {
                    let detail = format!(
                        "axis {axis} has {size} items, asked for index {at} (point {number})"
                    );
                    return error(ErrorKind::OutOfBounds, detail);
                }
                all = all * size + place;
            }
            numbers.push(all);
        }
        Ok(Points { region, numbers, each, count })
    }

    /// Returns the items of a region for which a mask is `true`.
    pub(super) fn chosen<'a>(
        &self,
        mask: &[bool],
        region: &'a Region,
        doing: &str,
    ) -> Result<Points<'a>> {
        let shape = region.shape();
        let len = len_of(&shape, 1);
        if mask.len() as u64 != len {
            let found = mask.len();
            let detail = format!("the shape {shape:?} has {len} items, the mask {found}");
            return Err(self.schunk.error(ErrorKind::InvalidArgument, doing, detail));
        }
        let chosen = mask.iter().enumerate().filter(|&(_, &chosen)| chosen);
        let numbers: Vec<u64> = chosen.map(|(number, _)| number as u64).collect();
        Ok(Points { region, count: numbers.len(), numbers, each: 1 })
    }
}

impl NDArrayView<'_> {
    /// Reads the items of the view at a list of points; see [`NDArray::read_points`].
    ///
    /// The integers of a point are indices on the first axes of the view. To combine points with slices of other axes,
    /// slice the view, and move the axes of the points to the front with [`permute`](Self::permute). The example reads
    /// the items of NumPy's `array[rows, 1:3, columns]`, in the same order:
    ///
    /// ```
    /// use blosc2::NDArray;
    ///
    /// let array = NDArray::from_slice(&(0..60i32).collect::<Vec<_>>(), &[3, 4, 5])?;
    /// let view = array.view().slice((.., 1..3, ..))?.permute(&[0, 2, 1])?;
    /// // Points: row 0 and column 4, row 2 and column 1. Each selects two items on the sliced axis.
    /// assert_eq!(view.read_points::<i32>(&[(0, 4), (2, 1)])?, [9, 14, 46, 51]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn read_points<T: Element>(&self, points: &[impl PerAxis]) -> Result<Vec<T>> {
        self.read_items(Items::Points(&self.array.points(points, &self.region, READ)?))
    }

    /// Reads the items of the view for which a boolean mask is `true`; see [`NDArray::read_mask`].
    pub fn read_mask<T: Element>(&self, mask: &[bool]) -> Result<Vec<T>> {
        self.read_items(Items::Points(&self.array.chosen(mask, &self.region, READ)?))
    }
}
