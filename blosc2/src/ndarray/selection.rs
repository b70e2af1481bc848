//! What to read or write: for each dimension an item, a slice, or a list of items.

use std::ops::{Range, RangeFull};

/// What is selected along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Along {
    /// One item, below 0 from the end; the dimension goes.
    At(i64),
    /// Every `step`th item of a range; from its end backwards with a step below 0, as `ndarray` does it.
    ///
    /// Ends below 0 count from the end of the dimension; no `end` is that end itself. Of `0..10`, step 3 gives 0,
    /// 3, 6, 9; step -3 gives 9, 6, 3, 0; step -4 gives 9, 5, 1.
    Slice {
        /// The first item of the range.
        start: i64,
        /// The item after the last one of the range.
        end: Option<i64>,
        /// How far apart; not 0.
        step: i64,
    },
    /// Items by their numbers, in any order, also several times the same.
    List(Vec<u64>),
    /// A new dimension of one item.
    New,
}

impl Along {
    /// All items.
    pub const ALL: Self = Self::Slice { start: 0, end: None, step: 1 };
}

impl From<Range<u64>> for Along {
    fn from(range: Range<u64>) -> Self {
        // What is over 2^63 is outside of all dimensions.
        let end = |at: u64| i64::try_from(at).unwrap_or(i64::MAX);
        Self::Slice { start: end(range.start), end: Some(end(range.end)), step: 1 }
    }
}

impl From<RangeFull> for Along {
    fn from(_: RangeFull) -> Self {
        Self::ALL
    }
}

impl From<Vec<u64>> for Along {
    fn from(list: Vec<u64>) -> Self {
        Self::List(list)
    }
}

impl From<&[u64]> for Along {
    fn from(list: &[u64]) -> Self {
        Self::List(list.to_vec())
    }
}

impl From<i64> for Along {
    fn from(at: i64) -> Self {
        Self::At(at)
    }
}

/// Which items of an array: one [`Along`] for each dimension; of the last ones that are missing, all items.
///
/// Most often it is made from ranges where a selection is asked for; with the feature `ndarray` also from `s![...]`.
/// Ranges and lists together select their product, as NumPy's `ix_` and Python's `oindex` do.
///
/// ```
/// use blosc2::{Along, NDArray, Selection};
///
/// let array = NDArray::from_slice(&(0..20i32).collect::<Vec<_>>(), &[4, 5])?;
/// assert_eq!(array.read::<i32>(&[1..3, 0..2])?, [5, 6, 10, 11]);
/// assert_eq!(array.read::<i32>(1..2)?, [5, 6, 7, 8, 9]); // the second row
/// // A row, backwards.
/// let last = Selection::from([Along::At(-1), Along::Slice { start: 0, end: None, step: -1 }]);
/// assert_eq!(array.read::<i32>(&last)?, [19, 18, 17, 16, 15]);
/// // Rows 3 and 0, of each the columns 4 and 1.
/// assert_eq!(array.read::<i32>([vec![3, 0].into(), Along::List(vec![4, 1])])?, [19, 16, 4, 1]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection(Vec<Along>);

impl Selection {
    /// All items of any array.
    pub fn all() -> Self {
        Self::default()
    }

    /// What is selected along each dimension.
    pub fn along(&self) -> &[Along] {
        &self.0
    }
}

impl<A: Into<Along>> FromIterator<A> for Selection {
    fn from_iter<I: IntoIterator<Item = A>>(along: I) -> Self {
        Self(along.into_iter().map(Into::into).collect())
    }
}

impl<A: Into<Along>> From<Vec<A>> for Selection {
    fn from(along: Vec<A>) -> Self {
        along.into_iter().collect()
    }
}

impl<A: Into<Along>, const N: usize> From<[A; N]> for Selection {
    fn from(along: [A; N]) -> Self {
        along.into_iter().collect()
    }
}

impl<A: Into<Along> + Clone, const N: usize> From<&[A; N]> for Selection {
    fn from(along: &[A; N]) -> Self {
        along.iter().cloned().collect()
    }
}

impl<A: Into<Along> + Clone> From<&[A]> for Selection {
    fn from(along: &[A]) -> Self {
        along.iter().cloned().collect()
    }
}

impl<A: Into<Along> + Clone> From<&Vec<A>> for Selection {
    fn from(along: &Vec<A>) -> Self {
        along.iter().cloned().collect()
    }
}

impl From<&Self> for Selection {
    fn from(selection: &Self) -> Self {
        selection.clone()
    }
}

/// Along the first dimension.
impl From<Range<u64>> for Selection {
    fn from(range: Range<u64>) -> Self {
        Self(vec![range.into()])
    }
}

impl From<RangeFull> for Selection {
    fn from(_: RangeFull) -> Self {
        Self::all()
    }
}
