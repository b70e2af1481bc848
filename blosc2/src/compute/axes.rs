//! The axes of a reduction. This part is independent of the types of the items and the results, so that it is compiled
//! only once.

use std::ops::Range;

use super::context::DOING;
use super::space::{Pieces, Space};
use crate::ndarray::index::PerAxis;
use crate::ndarray::ranges::{extent, sides_of};
use crate::{Error, ErrorKind, Result};

/// The size in bytes that tiles grow to, so that each accumulator is used for several items of a tile.
const TILE: u64 = 1 << 20;

/// Type parameter of [`LazyExpr`](super::LazyExpr): reductions combine the items over some axes. See
/// [`LazyExpr::axes`](super::LazyExpr::axes).
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1, 2, 3, 4], (2, 2))?;
/// let sums = array.lazy::<i32>().axes(0).sum()?; // of a `LazyExpr<_, Axes>`
/// assert_eq!((sums.shape(), sums.items()), (&[2][..], &[4, 6][..]));
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axes {
    axes: Vec<i128>,
    pub(super) keepdims: bool,
}

impl Axes {
    pub(super) fn new(axes: &impl PerAxis) -> Self {
        Self { axes: (0..axes.ndim()).map(|at| axes.along(at)).collect(), keepdims: false }
    }

    /// Returns the axes of an expression with `ndim` axes, in ascending order.
    pub(super) fn resolve(&self, ndim: usize) -> Result<Vec<usize>> {
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, DOING, detail);
        let mut axes = Vec::with_capacity(self.axes.len());
        for &axis in &self.axes {
            let place = if axis < 0 { axis + ndim as i128 } else { axis };
            let place = usize::try_from(place).ok().filter(|&place| place < ndim);
            let place = place.ok_or_else(|| {
                invalid(format!("the items have {ndim} axes, asked for axis {axis}"))
            })?;
            if axes.contains(&place) {
                return Err(invalid(format!("axis {place} occurs twice in {:?}", self.axes)));
            }
            axes.push(place);
        }
        axes.sort_unstable();
        Ok(axes)
    }
}

/// The axes of the reduction of a source, and the boxes of items and results that threads process.
pub(super) struct AxisPlan {
    space: Space,
    /// The axes that are reduced, and all other axes.
    reduced: Vec<usize>,
    kept: Vec<usize>,
    /// Whether the results have the reduced axes, with size 1.
    keepdims: bool,
    /// For each axis, the distance between the positions of neighboring items on this axis.
    steps: Vec<u64>,
    /// The maximum number of results that a thread computes at the same time.
    most: u64,
}

impl AxisPlan {
    pub(super) fn new(mut space: Space, reduced: Vec<usize>, keepdims: bool, most: u64) -> Self {
        let shape = space.shape().to_vec();
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !reduced.contains(axis)).collect();
        space.limit(&kept, most);
        if !kept.is_empty() {
            // The accumulators and the items of a tile may not fit in the cache together. With larger tiles, each
            // accumulator is used for several items.
            space.grow(&reduced, TILE);
        }
        let (mut steps, mut step) = (vec![0; shape.len()], 1u64);
        for &axis in reduced.iter().rev() {
            steps[axis] = step;
            step = step.saturating_mul(shape[axis]);
        }
        Self { space, reduced, kept, keepdims, steps, most }
    }

    pub(super) fn result_shape(&self) -> Vec<u64> {
        if !self.keepdims {
            return self.kept_shape();
        }
        let mut shape = self.space.shape().to_vec();
        self.reduced.iter().for_each(|&axis| shape[axis] = 1);
        shape
    }

    /// Returns the ranges of the kept axes, from those of all axes of the results.
    pub(super) fn kept_ranges(&self, ranges: &[Range<u64>]) -> Vec<Range<u64>> {
        match self.keepdims {
            true => self.kept.iter().map(|&axis| ranges[axis].clone()).collect(),
            false => ranges.to_vec(),
        }
    }

    pub(super) fn kept_shape(&self) -> Vec<u64> {
        self.kept.iter().map(|&axis| self.space.shape()[axis]).collect()
    }

    /// Returns the number of items that are combined to one result.
    pub(super) fn count(&self) -> u64 {
        let sizes = self.reduced.iter().map(|&axis| self.space.shape()[axis]);
        sizes.fold(1, |all, size| all.saturating_mul(size))
    }

    /// Returns the boxes of results that threads compute.
    pub(super) fn tiles(&self) -> Pieces<'_> {
        self.space.tiles(&self.kept)
    }

    pub(super) fn spans(&self) -> Pieces<'_> {
        self.space.pieces(&self.reduced).spans()
    }

    /// Returns the sides of the parts of a box of results, so that the accumulators of each part need little memory.
    pub(super) fn sides_of(&self, ranges: &[Range<u64>]) -> Vec<u64> {
        sides_of(&extent(ranges), self.most)
    }

    pub(super) fn ranges(&self, kept: &[Range<u64>], reduced: &[Range<u64>]) -> Vec<Range<u64>> {
        let mut ranges = vec![0..0; self.space.shape().len()];
        for (axes, from) in [(&self.kept, kept), (&self.reduced, reduced)] {
            axes.iter().zip(from).for_each(|(&axis, range)| ranges[axis] = range.clone());
        }
        ranges
    }

    /// Returns the position of the first item of a box among the items that are combined to its result.
    pub(super) fn position(&self, ranges: &[Range<u64>]) -> u64 {
        ranges.iter().zip(&self.steps).map(|(range, step)| range.start * step).sum()
    }

    /// Returns the axes of a tile. Neighboring axes that can be processed as one axis are joined. With `positions`, the
    /// positions of the items on this axis are evenly spaced.
    pub(super) fn groups(&self, ranges: &[Range<u64>], positions: bool) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        for (axis, range) in ranges.iter().enumerate() {
            let len = (range.end - range.start) as usize;
            if len == 1 {
                continue;
            }
            let (is_kept, step) = (self.kept.contains(&axis), self.steps[axis]);
            match groups.last_mut() {
                Some(last)
                    if last.is_kept == is_kept
                        && (is_kept || !positions || last.step == step * len as u64) =>
                {
                    *last = Group { len: last.len * len, step, ..*last };
                }
                _ => groups.push(Group { len, is_kept, step }),
            }
        }
        groups
    }
}

/// Some neighboring axes of a tile, which are all kept or all reduced.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub(super) len: usize,
    pub(super) is_kept: bool,
    /// The distance between the positions of neighboring items.
    pub(super) step: u64,
}
