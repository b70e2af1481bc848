//! Selections of single items: points (lists of indices) and boolean masks.

use super::index::{Integers, PerAxis, place};
use super::places::len_of;
use super::plan::Points;
use super::region::Region;
use super::selection::{PointList, SelectedItems, Selection};
use crate::{ErrorKind, Reason, Result};

impl Selection {
    /// Returns the selection of the items at a list of points (coordinates), in any order and with possible
    /// repetitions. C: `b2nd_get_sparse_cbuffer`, with flat indices. NumPy: `array[rows, columns]`.
    ///
    /// Each point is the index of one item: one integer for each axis. Negative integers count from the end of the
    /// axis. If a write selects the same item several times, the last value is stored.
    ///
    /// If a point has fewer integers than the array has axes, the point selects all items on the remaining axes. For
    /// example, `n` points of two integers in an array of the shape `[a, b, c]` select items of the shape `[n, c]`. To
    /// combine points with slices of other axes, slice a view, and move the axes of the points to the front with
    /// [`permute`](crate::NDArrayView::permute).
    ///
    /// Each block is decompressed once, regardless of the order of the points. A read needs 32 bytes of temporary
    /// memory for each item. To read entire rows, a list of indices needs less memory: `array.read(([3, 0, 7],))`.
    ///
    /// ```
    /// use blosc2::{NDArray, Selection};
    ///
    /// let mut array = NDArray::from_slice(&(0..60i32).collect::<Vec<_>>(), [3, 4, 5])?;
    /// let points = Selection::points(&[[2, 3, 4], [0, 0, 3], [-1, -1, -1]]);
    /// assert_eq!(array.read::<Vec<i32>>(&points)?, [59, 3, 59]);
    /// array.write(&points, &[-1, -2, -3])?;
    /// assert_eq!(array.item::<i32>([2, 3, 4])?, -3);
    ///
    /// // The items of NumPy's `array[rows, 1:3, columns]`: row 0 and column 4, row 2 and column 1.
    /// let view = array.view().slice((.., 1..3, ..))?.permute(&[0, 2, 1])?;
    /// assert_eq!(view.read::<Vec<i32>>(Selection::points(&[(0, 4), (2, 1)]))?, [9, 14, 46, 51]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias("b2nd_get_sparse_cbuffer", "take", "read_points"))]
    pub fn points<P: PerAxis>(points: &[P]) -> Self {
        // Without points, a list type may determine the number of axes that each point would have.
        let known = points.first().map(Integers::ndim).or(P::NDIM);
        let ndim = known.unwrap_or(0);
        let mut list =
            PointList { integers: Vec::new(), len: points.len(), ndim: known, different: None };
        list.integers.reserve_exact(points.len().saturating_mul(ndim));
        for (number, point) in points.iter().enumerate() {
            if point.ndim() != ndim {
                list.different = Some((number, point.ndim()));
                break;
            }
            // Values outside `i64` are outside of every axis.
            let integer = |axis| point.along(axis).clamp(i64::MIN.into(), i64::MAX.into()) as i64;
            list.integers.extend((0..ndim).map(integer));
        }
        Self { items: SelectedItems::Points(list), fields: Vec::new() }
    }

    /// Returns the selection of the items for which a boolean mask is `true`, in C order. The mask has one value for
    /// each item of the array or view, in C order; its shape is not checked. NumPy: `array[mask]`.
    ///
    /// The mask is copied. A read needs 32 bytes of temporary memory for each selected item.
    ///
    /// ```
    /// use blosc2::{NDArray, Selection};
    ///
    /// let array = NDArray::from_slice(&[1u8, 2, 3, 4], [2, 2])?;
    /// let mask = Selection::mask(&[true, false, false, true]);
    /// assert_eq!(array.read::<Vec<u8>>(mask)?, [1, 4]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "read_mask")]
    pub fn mask(mask: impl AsRef<[bool]>) -> Self {
        Self { items: SelectedItems::Mask(mask.as_ref().to_vec()), fields: Vec::new() }
    }
}

impl Points {
    pub(super) fn of_list(list: &PointList, region: &Region) -> Result<Self, Reason> {
        let error = |kind, detail| Err(Reason::new(kind, detail));
        let shape = region.shape();
        let (len, ndim) = (list.len, list.ndim.unwrap_or(shape.len()));
        if ndim > shape.len() {
            let detail =
                format!("the shape has {} axes, got points of {ndim} integers", shape.len());
            return error(ErrorKind::InvalidArgument, detail);
        }
        if let Some((number, found)) = list.different {
            let detail = format!("point 0 has {ndim} integers, point {number} has {found}");
            return error(ErrorKind::InvalidArgument, detail);
        }
        let items =
            |shape: &[u64]| shape.iter().try_fold(1, |all: u64, &size| all.checked_mul(size));
        let each = items(&shape[ndim..]).and_then(|each| usize::try_from(each).ok());
        let count = each.and_then(|each| each.checked_mul(len));
        // A view that repeats positions may have more items than can be numbered.
        let (Some(each), Some(count), Some(_)) = (each, count, items(&shape)) else {
            let detail = format!("{len} points of {:?} items each", &shape[ndim..]);
            return error(ErrorKind::TooLarge, detail);
        };
        let mut numbers = Vec::with_capacity(len);
        for number in 0..len {
            let mut all = 0;
            let point = &list.integers[number * ndim..][..ndim];
            for (axis, (&at, &size)) in point.iter().zip(&shape).enumerate() {
                let place = place(at.into(), size);
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
        Ok(Self { numbers, ndim, each, count })
    }

    pub(super) fn of_mask(mask: &[bool], region: &Region) -> Result<Self, Reason> {
        let shape = region.shape();
        let len = len_of(&shape, 1);
        if mask.len() as u64 != len {
            let found = mask.len();
            let detail = format!("the shape {shape:?} has {len} items, the mask {found}");
            return Err(Reason::new(ErrorKind::InvalidArgument, detail));
        }
        let chosen = mask.iter().enumerate().filter(|&(_, &chosen)| chosen);
        let numbers: Vec<u64> = chosen.map(|(number, _)| number as u64).collect();
        Ok(Self { count: numbers.len(), numbers, ndim: shape.len(), each: 1 })
    }
}
