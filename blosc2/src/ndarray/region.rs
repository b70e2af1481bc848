//! Regions: the selected positions on each axis of an array.

use std::ops::Range;

use smallvec::smallvec;

use super::selection::{AxisSelection, AxisVec};
use crate::{ErrorKind, Reason, Result};

/// Positions on an axis of an array. All of them are inside the axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Positions {
    /// `count` positions starting at `start` with the distance `step`, which may be negative.
    Slice {
        start: u64,
        step: i64,
        count: u64,
    },
    List(List),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct List {
    pub(super) positions: Vec<u64>,
    /// The positions in ascending order, each with its index in the list. Equal positions stay in the order of the list,
    /// so that the last of them is written last.
    pub(super) sorted: Vec<(u64, u64)>,
}

impl Positions {
    pub(super) fn range(range: Range<u64>) -> Self {
        Self::Slice { start: range.start, step: 1, count: range.end - range.start }
    }

    pub(super) fn list(positions: Vec<u64>) -> Self {
        let mut sorted: Vec<(u64, u64)> = positions.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        Self::List(List { positions, sorted })
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::Slice { count, .. } => *count,
            Self::List(list) => list.positions.len() as u64,
        }
    }

    /// Returns the distance between consecutive positions; 1 for a list.
    pub(super) fn step(&self) -> i64 {
        match self {
            Self::Slice { step, .. } => *step,
            Self::List(_) => 1,
        }
    }

    pub(crate) fn get(&self, index: u64) -> u64 {
        match self {
            Self::Slice { start, step, .. } => {
                start.wrapping_add_signed(step.wrapping_mul(index as i64))
            }
            Self::List(list) => list.positions[index as usize],
        }
    }

    /// Returns the range of the positions if they are consecutive and ascending.
    pub(crate) fn as_range(&self) -> Option<Range<u64>> {
        match *self {
            Self::Slice { start, step: 1, count } => Some(start..start + count),
            _ => None,
        }
    }

    /// Returns the positions in ascending order, each with its index.
    pub(crate) fn into_sorted(self) -> Vec<(u64, u64)> {
        match self {
            Self::List(list) => list.sorted,
            Self::Slice { step, count, .. } => {
                let at = |index: u64| (self.get(index), index);
                let indices = 0..count;
                if step > 0 { indices.map(at).collect() } else { indices.rev().map(at).collect() }
            }
        }
    }

    /// Returns the indices of the positions of a slice that are in a range.
    pub(super) fn within(&self, range: &Range<u64>) -> Range<u64> {
        let Self::Slice { start, step, count } = *self else { unreachable!("it is for slices") };
        // The number of positions before a distance from the start.
        let before = |distance: Option<u64>| match (distance, step.unsigned_abs()) {
            (None, _) => 0,
            (Some(distance), 1) => distance.min(count),
            (Some(distance), by) => distance.div_ceil(by).min(count),
        };
        match step > 0 {
            true => before(range.start.checked_sub(start))..before(range.end.checked_sub(start)),
            false => {
                let from = |end: u64| before((start + 1).checked_sub(end));
                from(range.end)..from(range.start)
            }
        }
    }

    pub(super) fn bounds(&self) -> Option<(u64, u64)> {
        match self {
            Self::Slice { count: 0, .. } => None,
            Self::Slice { start, count, .. } => {
                let last = self.get(count - 1);
                Some(((*start).min(last), (*start).max(last)))
            }
            Self::List(List { sorted, .. }) => Some((sorted.first()?.0, sorted.last()?.0)),
        }
    }

    pub(super) fn check_inside(&self, size: u64) -> Result<(), String> {
        match self.bounds().filter(|&(_, highest)| highest >= size) {
            Some((_, highest)) => Err(format!("asked for index {highest} of {size} items")),
            None => Ok(()),
        }
    }

    fn select(&self, inner: &Self) -> Self {
        match (self, inner) {
            (Self::Slice { step, .. }, Self::Slice { start, step: by, count }) => {
                let step = if *count > 1 { step * by } else { 1 };
                let start = if *count > 0 { self.get(*start) } else { 0 };
                Self::Slice { start, step, count: *count }
            }
            _ => Self::list((0..inner.len()).map(|index| self.get(inner.get(index))).collect()),
        }
    }
}

impl AxisSelection {
    pub(super) fn positions(&self, axis: usize, size: u64) -> Result<Positions, Reason> {
        self.resolve(size).map_err(|(kind, what)| {
            Reason::new(kind, format!("axis {axis} has {size} items, {what}"))
        })
    }

    pub(crate) fn resolve(&self, size: u64) -> Result<Positions, (ErrorKind, String)> {
        let outside = |what: String| (ErrorKind::OutOfBounds, what);
        // Sizes are below 2^63.
        let from_end = |at: i64| if at < 0 { at.saturating_add_unsigned(size) } else { at };
        let position = |at: i64| {
            let inside = u64::try_from(from_end(at)).ok().filter(|&place| place < size);
            inside.ok_or_else(|| outside(format!("asked for index {at}")))
        };
        match self {
            Self::Index(at) => position(*at).map(|start| Positions::range(start..start + 1)),
            Self::Slice { start, end, step } => {
                let asked = || {
                    let range = match end {
                        Some(end) => format!("asked for {start}..{end}"),
                        None => format!("asked for {start}.."),
                    };
                    if *step == 1 { range } else { format!("{range} with step {step}") }
                };
                let place = |at: i64| u64::try_from(from_end(at)).ok().filter(|&at| at <= size);
                let first = place(*start).ok_or_else(|| outside(asked()))?;
                let last = end.map_or(Some(size), place).ok_or_else(|| outside(asked()))?;
                let invalid =
                    |why: &str| (ErrorKind::InvalidArgument, format!("{}: {why}", asked()));
                if *step == 0 {
                    return Err(invalid("expected a step other than 0"));
                }
                if first > last {
                    return Err(invalid("the range ends before it starts"));
                }
                let count = (last - first).div_ceil(step.unsigned_abs());
                let start = if *step > 0 { first } else { last.saturating_sub(1) };
                Ok(Positions::Slice { start, step: if count > 1 { *step } else { 1 }, count })
            }
            Self::Clamped { step: 0, .. } | Self::Steps { step: 0, .. } => {
                Err((ErrorKind::InvalidArgument, "expected a step other than 0".to_owned()))
            }
            Self::Clamped { start, stop, step } => {
                // The bounds of a slice; a negative step can stop before the first item.
                let (all, forwards) = (i128::from(size), *step > 0);
                let (low, high) = if forwards { (0, all) } else { (-1, (all - 1).max(-1)) };
                let place =
                    |at: i64| (i128::from(at) + if at < 0 { all } else { 0 }).clamp(low, high);
                let (first, last) = if forwards { (low, high) } else { (high, low) };
                let (start, stop) = (start.map_or(first, place), stop.map_or(last, place));
                let distance = if forwards { stop - start } else { start - stop };
                // `start` and `stop` are between -1 and the size.
                let count = (distance.max(0) as u64).div_ceil(step.unsigned_abs());
                let step = if count > 1 { *step } else { 1 };
                Ok(Positions::Slice { start: start.max(0) as u64, step, count })
            }
            Self::Steps { count: 0, .. } => Ok(Positions::range(0..0)),
            Self::Steps { start, step, count } => {
                let nth = |n: u64| i128::from(*start) + i128::from(*step) * i128::from(n);
                let end = nth(count - 1);
                let inside = |at: i128| (-i128::from(size)..i128::from(size)).contains(&at);
                if !inside(i128::from(*start)) || !inside(end) {
                    let asked = format!("asked for {count} indices from {start} to {end}");
                    return Err(outside(asked));
                }
                let place = |at: i128| from_end(at as i64) as u64; // inside, and so not truncated
                if (*start < 0) == (end < 0) {
                    let step = if *count > 1 { *step } else { 1 };
                    return Ok(Positions::Slice { start: place(nth(0)), step, count: *count });
                }
                // All indices are inside the axis, but only some of them count from the end. There are at most twice as
                // many indices as items on the axis.
                let mut list = Vec::new();
                let reserved = usize::try_from(*count).map(|count| list.try_reserve_exact(count));
                if !matches!(reserved, Ok(Ok(()))) {
                    return Err((ErrorKind::OutOfMemory, format!("asked for {count} indices")));
                }
                list.extend((0..*count).map(|n| place(nth(n))));
                Ok(Positions::list(list))
            }
            Self::Indices(list) => {
                list.iter().map(|&at| position(at)).collect::<Result<_, _>>().map(Positions::list)
            }
            Self::Mask(mask) => {
                if mask.len() as u64 != size {
                    let what = format!("asked for a mask of {} values", mask.len());
                    return Err((ErrorKind::InvalidArgument, what));
                }
                let chosen = (0..).zip(mask).filter(|(_, chosen)| **chosen);
                Ok(Positions::list(chosen.map(|(at, _)| at).collect()))
            }
            Self::NewAxis => Err((ErrorKind::InvalidArgument, "asked for a new axis".to_owned())),
        }
    }
}

/// The items of a view: the positions on each axis of the array, and the axis of the array for each axis of the view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) positions: AxisVec<Positions>,
    /// The axis of the array; `None` for a new axis of one item.
    pub(crate) dims: AxisVec<Option<usize>>,
}

impl Region {
    pub(super) fn whole(shape: &[u64]) -> Self {
        Self {
            positions: shape.iter().map(|&size| Positions::range(0..size)).collect(),
            dims: (0..shape.len()).map(Some).collect(),
        }
    }

    pub(super) fn of_box(ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        let positions: AxisVec<Positions> = ranges.into_iter().map(Positions::range).collect();
        Self { dims: (0..positions.len()).map(Some).collect(), positions }
    }

    pub(super) fn is_box(&self) -> bool {
        let is_range =
            |positions: &Positions| matches!(positions, Positions::Slice { step: 1, .. });
        self.dims.iter().copied().eq((0..self.positions.len()).map(Some))
            && self.positions.iter().all(is_range)
    }

    /// Checks that the region is inside an array whose shape another handle may have changed.
    pub(super) fn check_inside(&self, shape: &[u64]) -> Result<(), Reason> {
        for (axis, (positions, &size)) in self.positions.iter().zip(shape).enumerate() {
            positions.check_inside(size).map_err(|what| {
                let detail = format!("another handle or process has shrunk axis {axis}: {what}");
                Reason::new(ErrorKind::OutOfBounds, detail)
            })?;
        }
        Ok(())
    }

    pub(super) fn shape(&self) -> AxisVec<u64> {
        let size = |dim: &Option<usize>| dim.map_or(1, |axis| self.positions[axis].len());
        self.dims.iter().map(size).collect()
    }

    /// Returns the region of a box of this one: a range of indices for each axis. Panics if the box is not inside.
    pub(super) fn part(&self, ranges: &[Range<u64>]) -> Self {
        assert_eq!(ranges.len(), self.dims.len(), "a range for each axis");
        let along = |(axis, positions): (usize, &Positions)| {
            let dim = self.dims.iter().position(|dim| *dim == Some(axis));
            let Some(range) = dim.map(|dim| &ranges[dim]) else { return positions.clone() };
            let is_inside = range.start <= range.end && range.end <= positions.len();
            assert!(is_inside, "{range:?} of {positions:?}");
            positions.select(&Positions::range(range.clone()))
        };
        let added = self.dims.iter().zip(ranges).filter(|(dim, _)| dim.is_none());
        added.for_each(|(_, range)| assert_eq!(*range, 0..1, "the index of an added axis"));
        Self {
            positions: self.positions.iter().enumerate().map(along).collect(),
            dims: self.dims.clone(),
        }
    }

    pub(super) fn select(&self, axes: &[AxisSelection]) -> Result<Self, Reason> {
        // Positions can be long lists. Only the positions of axes without a selection are cloned.
        let mut positions: AxisVec<Option<Positions>> = smallvec![None; self.positions.len()];
        let mut new_dims = AxisVec::new();
        let mut dims = self.dims.iter();
        let ndim = self.dims.len();
        let given = axes.iter().filter(|axis| **axis != AxisSelection::NewAxis).count();
        if given > ndim {
            let mut detail = format!("the shape has {ndim} axes, got selections for {given}");
            let indices = axes.iter().map(|axis| match axis {
                AxisSelection::Index(at) => Some(*at),
                _ => None,
            });
            if let Some(indices) = indices.collect::<Option<Vec<_>>>() {
                detail += &format!(" (a list of indices along the first axis is `({indices:?},)`)");
            }
            return Err(Reason::new(ErrorKind::InvalidArgument, detail));
        }
        let mut number = 0;
        for selected in axes {
            if *selected == AxisSelection::NewAxis {
                new_dims.push(None);
                continue;
            }
            let Some(dim) = dims.next() else { break };
            let size = dim.map_or(1, |axis| self.positions[axis].len());
            let inner = selected.positions(number, size)?;
            number += 1;
            let single = matches!(selected, AxisSelection::Index(_));
            match *dim {
                Some(axis) => {
                    positions[axis] = Some(self.positions[axis].select(&inner));
                    if !single {
                        new_dims.push(Some(axis));
                    }
                }
                // This axis has one item, and the array does not have this axis.
                None if single => {}
                None if inner.len() == 1 => new_dims.push(None),
                None => {
                    let detail = "expected one item along an added axis";
                    return Err(Reason::new(ErrorKind::Unsupported, detail));
                }
            }
        }
        new_dims.extend(dims.copied());
        let positions = positions.into_iter().zip(&self.positions);
        let positions = positions.map(|(new, old)| new.unwrap_or_else(|| old.clone())).collect();
        Ok(Self { positions, dims: new_dims })
    }
}
