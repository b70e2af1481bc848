//! Which items: Python's slices.

use std::ops::Range;
use std::str::FromStr;

use anyhow::{Result, bail};

/// One slice for each dimension, the last ones may be missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slices(Vec<Slice>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slice {
    /// One item.
    Index(i64),
    /// `start:stop:step`
    Range { start: Option<i64>, stop: Option<i64>, step: i64 },
}

impl FromStr for Slices {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        text.split(',').map(|part| part.trim().parse()).collect::<Result<_, _>>().map(Self)
    }
}

impl FromStr for Slice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let invalid = || format!("expected `start:stop:step` or a number, got `{text}`");
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
    /// The positions along each dimension of an array of this shape.
    pub(crate) fn resolve(&self, shape: &[u64]) -> Result<Vec<Pick>> {
        let (given, ndim) = (self.0.len(), shape.len());
        if given > ndim {
            bail!("cannot slice: there are {ndim} dimensions, got {given} slices");
        }
        let resolve = |(axis, &size): (usize, &u64)| match self.0.get(axis) {
            Some(slice) => slice.resolve(size, axis),
            None => Ok(Pick { start: 0, step: 1, count: size }),
        };
        shape.iter().enumerate().map(resolve).collect()
    }
}

impl Slice {
    fn resolve(self, size: u64, axis: usize) -> Result<Pick> {
        // A number counts from the end when it is negative, and is at most `limit`.
        let inside = |number: i64, limit: u64| {
            let found = i128::from(number) + if number < 0 { i128::from(size) } else { 0 };
            match u64::try_from(found) {
                Ok(found) if found <= limit => Ok(found),
                _ => bail!("cannot slice: axis {axis} has {size} items, asked for {number}"),
            }
        };
        let inside =
            |number: Option<i64>, limit| number.map(|each| inside(each, limit)).transpose();
        match self {
            Self::Index(_) if size == 0 => bail!("cannot slice: axis {axis} has no items"),
            Self::Index(index) => {
                let start = inside(Some(index), size - 1)?.unwrap_or(0);
                Ok(Pick { start, step: 1, count: 1 })
            }
            Self::Range { start, stop, step } if step > 0 => {
                let start = inside(start, size)?.unwrap_or(0);
                let stop = inside(stop, size)?.unwrap_or(size);
                let count = stop.saturating_sub(start).div_ceil(step.unsigned_abs());
                Ok(Pick { start, step, count })
            }
            Self::Range { start, stop, step } => {
                let start = inside(start, size.saturating_sub(1))?;
                let stop = inside(stop, size)?;
                // Down to the one after `stop`, or to the first.
                let start = start.unwrap_or(size.saturating_sub(1));
                let lowest = stop.map_or(0, |stop| stop.saturating_add(1));
                let items = if size == 0 { 0 } else { (start + 1).saturating_sub(lowest) };
                Ok(Pick { start, step, count: items.div_ceil(step.unsigned_abs()) })
            }
        }
    }
}

/// Positions along one dimension: so many, from `start` on, `step` apart.
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

    /// The position number `k`, for `k` below `count`.
    pub(crate) fn position(&self, k: u64) -> u64 {
        let distance = k * self.step.unsigned_abs();
        if self.step > 0 { self.start + distance } else { self.start - distance }
    }

    /// The range that the positions lie in; there has to be one.
    pub(crate) fn span(&self) -> Range<u64> {
        let last = self.position(self.count - 1);
        self.start.min(last)..self.start.max(last) + 1
    }

    /// The positions from number `k` on.
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
    fn what_reaches_outside_is_refused() {
        for text in ["5", "-6", "0:6", "6:", ":-6", "-6:", "5::-1", ":-6:-1", "9223372036854775807"]
        {
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
