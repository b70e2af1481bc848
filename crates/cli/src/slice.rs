//! Slices of items: Python's syntax; bounds are clamped to the axis as in NumPy.

use std::iter::repeat_n;
use std::ops::Range;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Result, anyhow, bail};
use blosc2::{AxisSelection, Selection};

/// One slice per axis; missing axes, at the end or at `...`, are selected whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slices(Vec<Slice>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slice {
    /// One item.
    Index(i64),
    /// `start:stop:step`
    Range { start: Option<i64>, stop: Option<i64>, step: i64 },
    /// `...`: all axes that have no slice.
    Ellipsis,
}

const WHOLE: Slice = Slice::Range { start: None, stop: None, step: 1 };

impl FromStr for Slices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let slices = text.split(',').map(|part| part.trim().parse());
        let slices = slices.collect::<Result<Vec<_>, _>>()?;
        match slices.iter().filter(|slice| **slice == Slice::Ellipsis).count() {
            0 | 1 => Ok(Self(slices)),
            count => Err(format!("expected at most one `...`, got {count}")),
        }
    }
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "..." {
            return Ok(Self::Ellipsis);
        }
        let invalid = || format!("expected `start:stop:step`, an index or `...`, got `{text}`");
        let number = |part: &str| part.trim().parse::<i64>().map_err(|_| invalid());
        let optional = |part: Option<&str>| match part.map(str::trim) {
            None | Some("") => Ok(None),
            Some(part) => number(part).map(Some),
        };
        let mut parts = text.split(':');
        let (first, second, third) = (parts.next(), parts.next(), parts.next());
        if parts.next().is_some() {
            return Err(invalid());
        }
        match second {
            None => Ok(Self::Index(number(text)?)),
            Some(_) => match optional(third)?.unwrap_or(1) {
                0 => Err(format!("the step must not be 0, got `{text}`")),
                step => Ok(Self::Range { start: optional(first)?, stop: optional(second)?, step }),
            },
        }
    }
}

impl Slices {
    /// Returns the selected positions of each axis of an array of this shape.
    pub(crate) fn resolve(&self, shape: &[u64]) -> Result<Vec<Pick>> {
        let axes = self.of_axes(shape.len())?.into_iter().zip(shape).enumerate();
        axes.map(|(axis, (slice, &size))| slice.resolve(size, axis)).collect()
    }

    /// As [`resolve`](Self::resolve) for the items of a file, which the error names.
    pub(crate) fn resolve_in(&self, path: &Path, shape: &[u64]) -> Result<Vec<Pick>> {
        self.resolve(shape).map_err(|error| anyhow!("{error} (--slice of {})", path.display()))
    }

    /// Returns for each axis of an array whether it is an axis of the selection: an index removes its axis.
    pub(crate) fn kept(&self, ndim: usize) -> Result<Vec<bool>> {
        let slices = self.of_axes(ndim)?.into_iter();
        Ok(slices.map(|slice| !matches!(slice, Slice::Index(_))).collect())
    }

    /// Returns the selection of the library.
    pub(crate) fn selection(&self, ndim: usize) -> Result<Selection> {
        let axes = self.of_axes(ndim)?.into_iter().map(|slice| match slice {
            Slice::Index(at) => AxisSelection::Index(at),
            Slice::Range { start, stop, step } => AxisSelection::clamped(start, stop, step),
            Slice::Ellipsis => AxisSelection::ALL,
        });
        Ok(axes.collect())
    }

    /// Returns the slice of each axis.
    fn of_axes(&self, ndim: usize) -> Result<Vec<Slice>> {
        let ellipsis = self.0.iter().position(|slice| *slice == Slice::Ellipsis);
        let (before, after) = match ellipsis {
            Some(at) => (&self.0[..at], &self.0[at + 1..]),
            None => (&self.0[..], &[][..]),
        };
        let given = before.len() + after.len();
        let Some(missing) = ndim.checked_sub(given) else {
            bail!("cannot slice: the data has {ndim} dimensions, got {given} slices");
        };
        Ok(before.iter().chain(repeat_n(&WHOLE, missing)).chain(after).copied().collect())
    }
}

impl Slice {
    fn resolve(self, size: u64, axis: usize) -> Result<Pick> {
        let all = i128::from(size);
        let from_end = |at: i64| i128::from(at) + if at < 0 { all } else { 0 };
        let (start, stop, step) = match self {
            Self::Index(at) => {
                return match u64::try_from(from_end(at)) {
                    Ok(start) if start < size => Ok(Pick { start, step: 1, count: 1 }),
                    _ => bail!("cannot slice: axis {axis} has {size} items, asked for index {at}"),
                };
            }
            Self::Range { start, stop, step } => (start, stop, step),
            Self::Ellipsis => (None, None, 1),
        };
        // The bounds of start and stop: with a negative step, also one position before the first item.
        let (low, high) = if step > 0 { (0, all) } else { (-1, all - 1) };
        let place = |at: Option<i64>, default| {
            at.map_or(default, |at| from_end(at).clamp(low, high.max(low)))
        };
        let (first, last) = if step > 0 { (low, high) } else { (high, low) };
        let (start, stop) = (place(start, first), place(stop, last));
        let distance = if step > 0 { stop - start } else { start - stop };
        // Both are between -1 and the size.
        let count = (distance.max(0) as u64).div_ceil(step.unsigned_abs());
        Ok(Pick { start: start.max(0) as u64, step, count })
    }
}

/// The selected positions of one axis: `count` positions from `start`, `step` apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) start: u64,
    pub(crate) step: i64,
    pub(crate) count: u64,
}

impl Pick {
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The position at index `k`, which must be below `count`.
    pub(crate) fn position(&self, k: u64) -> u64 {
        let distance = k * self.step.unsigned_abs();
        if self.step > 0 { self.start + distance } else { self.start - distance }
    }

    /// The range that covers all positions; `count` must not be 0.
    pub(crate) fn span(&self) -> Range<u64> {
        let last = self.position(self.count - 1);
        self.start.min(last)..self.start.max(last) + 1
    }

    /// `count` positions from index `k` on.
    pub(crate) fn part(&self, k: u64, count: u64) -> Self {
        Self { start: self.position(k), step: self.step, count }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn positions(text: &str, size: u64) -> Result<Vec<u64>> {
        let picks = text.parse::<Slices>().map_err(anyhow::Error::msg)?.resolve(&[size])?;
        Ok((0..picks[0].count).map(|k| picks[0].position(k)).collect())
    }

    #[test]
    fn slices_are_pythons() {
        for (text, expected) in [
            (":", vec![0, 1, 2, 3, 4]),
            ("1:3", vec![1, 2]),
            ("3:", vec![3, 4]),
            (":-3", vec![0, 1]),
            ("-2:", vec![3, 4]),
            ("2", vec![2]),
            ("-1", vec![4]),
            ("::2", vec![0, 2, 4]),
            ("1::3", vec![1, 4]),
            ("::-1", vec![4, 3, 2, 1, 0]),
            ("::-3", vec![4, 1]),
            ("3:0:-2", vec![3, 1]),
            ("-1:-4:-1", vec![4, 3, 2]),
            ("3:1", vec![]),
            ("1:3:-1", vec![]),
            ("5:", vec![]),
            ("5:5", vec![]),
            ("::9223372036854775807", vec![0]),
            ("::-9223372036854775808", vec![4]),
        ] {
            assert_eq!(positions(text, 5).unwrap(), expected, "{text}");
        }
        for text in [":", "::-1", "0:0", "::2"] {
            assert!(positions(text, 0).unwrap().is_empty(), "{text}");
        }
    }

    #[test]
    fn slices_are_cut_off_at_the_ends() {
        for (text, expected) in [
            ("0:6", vec![0, 1, 2, 3, 4]),
            ("-6:2", vec![0, 1]),
            ("6:", vec![]),
            (":-6", vec![]),
            ("5::-1", vec![4, 3, 2, 1, 0]),
            (":-6:-2", vec![4, 2, 0]),
            ("-7::-1", vec![]),
            ("-9223372036854775808:9223372036854775807:2", vec![0, 2, 4]),
            ("9223372036854775807:-9223372036854775808:-2", vec![4, 2, 0]),
        ] {
            assert_eq!(positions(text, 5).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn an_ellipsis_is_for_the_axes_that_are_missing() {
        let starts = |text: &str| {
            let picks = text.parse::<Slices>().unwrap().resolve(&[9, 9, 9]);
            picks.map(|picks| picks.iter().map(|pick| (pick.start, pick.count)).collect::<Vec<_>>())
        };
        assert_eq!(starts("...,2").unwrap(), [(0, 9), (0, 9), (2, 1)]);
        assert_eq!(starts("1, ... , 2:4").unwrap(), [(1, 1), (0, 9), (2, 2)]);
        assert_eq!(starts("3,...").unwrap(), [(3, 1), (0, 9), (0, 9)]);
        assert_eq!(starts("...").unwrap(), [(0, 9); 3]);
        assert_eq!(starts("1,2,...,3").unwrap(), [(1, 1), (2, 1), (3, 1)]);
        assert!(starts("1,2,...,3,4").is_err());
        assert!("...,1,...".parse::<Slices>().is_err());
    }

    #[test]
    fn an_index_removes_its_axis() {
        let kept = |text: &str| text.parse::<Slices>().unwrap().kept(3).unwrap();
        assert_eq!(kept("1"), [false, true, true]);
        assert_eq!(kept("0:1,2"), [true, false, true]);
        assert_eq!(kept("...,-1"), [true, true, false]);
        assert!("1,2,3,4".parse::<Slices>().unwrap().kept(3).is_err());
    }

    #[test]
    fn indices_outside_are_refused() {
        for text in ["5", "-6", "9223372036854775807", "-9223372036854775808"] {
            assert!(positions(text, 5).is_err(), "{text}");
        }
        assert!(positions("0", 0).is_err());
        assert!("0,0".parse::<Slices>().unwrap().resolve(&[3]).is_err());
    }

    #[test]
    fn what_is_no_slice_is_refused() {
        for text in ["", "a", "1:b", "1:2:3:4", "::0", "1,,2", "1.5", "99999999999999999999"] {
            assert!(text.parse::<Slices>().is_err(), "{text}");
        }
    }
}
