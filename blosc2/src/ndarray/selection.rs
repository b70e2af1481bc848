//! Selections: for each axis of an array an index, a slice, a list of indices, or a mask.

use std::iter::{Rev, StepBy};
use std::ops::{
    Bound, Range, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

use smallvec::{SmallVec, smallvec};

/// A short list, such as a list with one entry for each axis. Up to four entries need no allocation.
pub(super) type AxisVec<T> = SmallVec<[T; 4]>;

/// The selection on one axis.
///
/// Integers, ranges, lists of integers and lists of `bool` can be converted to an `AxisSelection`; see [`Selection`].
///
/// ```
/// use blosc2::{AxisSelection, NDArray};
///
/// let array = NDArray::from_slice(&[0u8, 1, 2, 3, 4, 5], [2, 3])?;
/// let columns = AxisSelection::from([true, false, true]);
/// assert_eq!(columns, AxisSelection::Mask(vec![true, false, true]));
/// assert_eq!(array.read::<Vec<u8>>((1, columns))?, [3, 5]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AxisSelection {
    /// One index. A negative index counts from the end of the axis. The result does not have this axis.
    Index(i64),
    /// Every `step`-th index of the range `start..end`. With a negative step, the selection starts at the last index of
    /// the range and continues backwards, as in the crate `ndarray`.
    ///
    /// Negative bounds count from the end of the axis. For `0..10`, step 3 selects 0, 3, 6, 9; step -3 selects 9, 6, 3,
    /// 0; step -4 selects 9, 5, 1.
    Slice {
        /// The first index of the range.
        start: i64,
        /// The end of the range, exclusive; `None` for the end of the axis.
        end: Option<i64>,
        /// The distance between selected indices; not 0.
        step: i64,
    },
    /// Python's `slice(start, stop, step)`: bounds outside the axis are clamped to the ends of the axis.
    Clamped {
        /// The first index. `None` means the first index of the axis, or the last index of the axis if the step is
        /// negative.
        start: Option<i64>,
        /// The bound at which the slice stops, exclusive. With `None`, the slice extends to the end of the axis, or to
        /// the start of the axis if the step is negative.
        stop: Option<i64>,
        /// The distance between selected indices; not 0.
        step: i64,
    },
    /// `count` indices: `start`, `start + step`, `start + 2 * step` and so on. A range with `step_by` or `rev` converts
    /// to this variant. Each negative index counts from the end of the axis.
    Steps {
        /// The first index.
        start: i64,
        /// The distance from one index to the next; not 0.
        step: i64,
        /// The number of indices.
        count: u64,
    },
    /// A list of indices, in any order and with possible repetitions. Negative indices count from the end of the axis.
    Indices(Vec<i64>),
    /// A boolean mask with one value for each index of the axis. The indices whose value is `true` are selected.
    Mask(Vec<bool>),
    /// Adds an axis of size 1 to the result. This entry does not correspond to an axis of the array. NumPy: `newaxis`.
    NewAxis,
}

impl AxisSelection {
    /// The selection of all indices of an axis.
    pub const ALL: Self = Self::Slice { start: 0, end: None, step: 1 };

    /// Returns the selection of every `step`-th index of a range; see [`Slice`](Self::Slice). With a negative step, the
    /// selection starts at the last index of the range. Negative bounds count from the end of the axis.
    ///
    /// ```
    /// use blosc2::{AxisSelection, NDArray};
    ///
    /// let array = NDArray::from_slice(&[0u8, 1, 2, 3, 4, 5], &[6])?;
    /// assert_eq!(array.read::<Vec<u8>>(AxisSelection::strided(1.., 2))?, [1, 3, 5]);
    /// assert_eq!(array.read::<Vec<u8>>(AxisSelection::strided(.., -1))?, [5, 4, 3, 2, 1, 0]);
    /// assert_eq!(array.read::<Vec<u8>>((0..5).step_by(2))?, [0, 2, 4]); // a positive step
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn strided(range: impl RangeBounds<i64>, step: i64) -> Self {
        let start = match range.start_bound() {
            Bound::Included(start) => *start,
            Bound::Excluded(start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        if range.start_bound() == Bound::Excluded(&-1) {
            // The range starts after the last index of the axis.
            return Self::Slice { start: 0, end: Some(0), step };
        }
        let end = match range.end_bound() {
            // The index after -1 is the end of the axis.
            Bound::Included(end) => Some(end.saturating_add(1)).filter(|&end| end != 0),
            Bound::Excluded(end) => Some(*end),
            Bound::Unbounded => None,
        };
        Self::Slice { start, end, step }
    }

    /// Returns Python's `slice(start, stop, step)`: bounds outside the axis are clamped to the ends of the axis. `None`
    /// is a missing bound; see [`Clamped`](Self::Clamped).
    ///
    /// ```
    /// use blosc2::{AxisSelection, NDArray};
    ///
    /// let array = NDArray::from_slice(&[0u8, 1, 2, 3, 4, 5], &[6])?;
    /// assert_eq!(array.read::<Vec<u8>>(AxisSelection::clamped(-2, None, 1))?, [4, 5]); // array[-2:]
    /// assert_eq!(array.read::<Vec<u8>>(AxisSelection::clamped(-9, None, 1))?.len(), 6); // array[-9:]
    /// assert_eq!(array.read::<Vec<u8>>(AxisSelection::clamped(4, 0, -2))?, [4, 2]); // array[4:0:-2]
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[doc(alias = "slice")]
    pub fn clamped(start: impl Into<Option<i64>>, stop: impl Into<Option<i64>>, step: i64) -> Self {
        Self::Clamped { start: start.into(), stop: stop.into(), step }
    }

    /// Returns the selection of the values that an iterator over a range with a step yields.
    fn of_steps<I: AxisIndex>(mut steps: impl Iterator<Item = I>) -> Self {
        // The size hint of a range is exact if there are at most `usize::MAX` indices. No axis has more.
        let count = match steps.size_hint() {
            (count, Some(most)) if count == most => count as u64,
            _ => u64::MAX,
        };
        let start = steps.next().map_or(0, ToI128::to_i64);
        let step = steps.next().map_or(1, |second| second.to_i64().saturating_sub(start));
        // Indices above `i64::MAX`, which are outside of every axis, have the same value here.
        let step = if step == 0 { 1 } else { step };
        Self::Steps { start, step, count }
    }
}

/// An integer type that can be used as an index on an axis, or as a bound of a range of indices.
///
/// The integer types of up to 64 bits implement this trait. This trait is sealed.
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&[1u8, 2, 3], 3)?;
/// let (first, end): (u16, usize) = (1, 2);
/// assert_eq!(array.read::<Vec<u8>>(first)?, [2]);
/// assert_eq!(array.read::<Vec<u8>>(..end)?, [1, 2]);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait AxisIndex: Copy + ToI128 {}

/// The conversions of an [`AxisIndex`]. Other crates cannot name this trait, so that they cannot implement [`AxisIndex`].
pub trait ToI128: Copy {
    fn to_i128(self) -> i128;

    /// Returns the index. Values above `i64::MAX` become `i64::MAX`, which is outside every axis.
    fn to_i64(self) -> i64 {
        i64::try_from(self.to_i128()).unwrap_or(i64::MAX)
    }
}

macro_rules! index {
    ($($type:ty)*) => {$(
        impl AxisIndex for $type {}
        impl ToI128 for $type {
            fn to_i128(self) -> i128 {
                self as i128
            }
        }

        impl From<$type> for AxisSelection {
            fn from(index: $type) -> Self {
                Self::Index(index.to_i64())
            }
        }

        impl From<$type> for Selection {
            fn from(index: $type) -> Self {
                Self::of_axes(smallvec![index.into()])
            }
        }
    )*};
}
index!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

/// Conversions of ranges: the same result as [`AxisSelection::strided`] with step 1.
macro_rules! range {
    ($($type:ident)*) => {$(
        impl<I: AxisIndex> From<$type<I>> for AxisSelection {
            fn from(range: $type<I>) -> Self {
                let start = range.start_bound().map(|&at| at.to_i64());
                let end = range.end_bound().map(|&at| at.to_i64());
                Self::strided((start, end), 1)
            }
        }
    )*};
}
range!(Range RangeFrom RangeTo RangeInclusive RangeToInclusive);

impl From<RangeFull> for AxisSelection {
    fn from(_: RangeFull) -> Self {
        Self::ALL
    }
}

/// Conversions of ranges with `step_by` and `rev`, in any order.
macro_rules! steps {
    ($($type:ty;)*) => {$(
        impl<I: AxisIndex> From<$type> for AxisSelection
        where
            $type: Iterator<Item = I>,
        {
            fn from(steps: $type) -> Self {
                Self::of_steps(steps)
            }
        }
    )*};
}
steps! {
    StepBy<Range<I>>; StepBy<RangeInclusive<I>>;
    Rev<Range<I>>; Rev<RangeInclusive<I>>;
    StepBy<Rev<Range<I>>>; StepBy<Rev<RangeInclusive<I>>>;
    Rev<StepBy<Range<I>>>; Rev<StepBy<RangeInclusive<I>>>;
}

/// Conversions of lists of indices and of masks.
macro_rules! lists {
    ($([$($generics:tt)*] $type:ty, $from:ident $each:expr;)*) => {$(
        impl<$($generics)*> From<$type> for AxisSelection {
            fn from(list: $type) -> Self {
                Self::$from(list.iter().copied().map($each).collect())
            }
        }
    )*};
}
lists! {
    [I: AxisIndex] Vec<I>, Indices I::to_i64;
    [I: AxisIndex] &Vec<I>, Indices I::to_i64;
    [I: AxisIndex] &[I], Indices I::to_i64;
    [I: AxisIndex, const N: usize] [I; N], Indices I::to_i64;
    [I: AxisIndex, const N: usize] &[I; N], Indices I::to_i64;
    [] Vec<bool>, Mask bool::from;
    [] &[bool], Mask bool::from;
    [const N: usize] [bool; N], Mask bool::from;
}

impl From<&Self> for AxisSelection {
    fn from(selection: &Self) -> Self {
        selection.clone()
    }
}

/// A selection of items of an array: one [`AxisSelection`] for each axis. If a selection has fewer entries than the
/// array has axes, all indices of the remaining axes are selected.
///
/// | Rust | selection on an axis | Python |
/// |---|---|---|
/// | `3`, `-1` | one index; the axis is removed | `3`, `-1` |
/// | `1..3`, `1..`, `..3`, `1..=2`, `..=2`, `..` | a slice | `1:3`, `1:`, `:3`, `:` |
/// | `-3..`, `..-1`, `-3..-1` | a slice with bounds that count from the end | `-3:`, `:-1`, `-3:-1` |
/// | `(1..9).step_by(2)`, `(1..9).rev()`, [`AxisSelection::strided(.., -1)`](AxisSelection::strided) | a strided slice | `1:9:2`, `8:0:-1`, `::-1` |
/// | [`AxisSelection::clamped(-3, None, 1)`](AxisSelection::clamped) | a slice whose bounds are clamped to the axis | `-3:` |
/// | `[3, 1, 7]`, a `Vec` or a slice of indices | these indices, in this order | `[3, 1, 7]` |
/// | `[true, false, true]`, a `Vec` or a slice of `bool` | the indices whose value is `true` | a mask |
/// | [`AxisSelection::NewAxis`] | a new axis of size 1 | `None` |
///
/// `1..-1` selects the same indices as `1:-1` in Python, but the Clippy lint `reversed_empty_ranges` rejects this
/// literal.
///
/// A range with `step_by` or `rev` is an iterator, and selects the indices that it yields: `(1..-1).step_by(2)` yields
/// no index, and `(-1..2).rev()` yields 1, 0 and -1 (the last index of the axis). The yielded indices must be inside
/// the axis. For a strided slice whose bounds have different signs, or a strided slice without a bound, use
/// [`AxisSelection::strided`].
///
/// These values can be used as selections:
/// - A tuple with one value for each axis. Each value has a form from the first column of the table. The values can have
///   different types.
/// - An array, a slice or a `Vec` with one value for each axis. All values have the same type.
/// - A single range, integer or [`AxisSelection`]. It selects on the first axis.
/// - With the feature `ndarray`, the result of `s![...]` is a selection too.
///
/// For example, in a two-dimensional array, `[0..2, 1..4]` selects a slice on both axes, and `[1, 2]` selects one item.
/// The tuple `([1, 2],)` selects a list of indices on the first axis.
///
/// Lists and masks on several axes select all combinations of their indices: orthogonal indexing, as with Python's
/// `oindex` and NumPy's `ix_`.
///
/// These selections are created by name:
/// - [`Selection::points`]: single items, by their indices;
/// - [`Selection::mask`]: the items for which a boolean mask is `true`;
/// - [`Selection::field`]: one field of the selected structures.
///
/// Bounds and indices outside the axis are an error. To clamp the bounds of a slice to the axis, as NumPy does, use
/// [`AxisSelection::clamped`].
///
/// ```
/// use blosc2::{AxisSelection, NDArray, Selection};
///
/// let array = NDArray::from_slice(&(0..20i32).collect::<Vec<_>>(), &[4, 5])?;
/// assert_eq!(array.read::<Vec<i32>>([1..3, 0..2])?, [5, 6, 10, 11]);
/// assert_eq!(array.read::<Vec<i32>>((1..3, -2..))?, [8, 9, 13, 14]);
/// assert_eq!(array.read::<Vec<i32>>(1)?, [5, 6, 7, 8, 9]); // the second row
/// assert_eq!(array.read::<Vec<i32>>((.., 4))?, [4, 9, 14, 19]); // the last column
/// assert_eq!(array.read::<Vec<i32>>(([3, 0], [4, 1]))?, [19, 16, 4, 1]); // columns 4 and 1 of rows 3 and 0
/// assert_eq!(array.read::<Vec<i32>>(([true, false, false, true], (0..5).step_by(2)))?, [0, 2, 4, 15, 17, 19]);
/// assert_eq!(array.read::<Vec<i32>>((-1, AxisSelection::strided(.., -1)))?, [19, 18, 17, 16, 15]);
///
/// let stored = Selection::from((1, ..3)); // a stored selection can be used several times
/// assert_eq!(array.read::<Vec<i32>>(&stored)?, [5, 6, 7]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selection {
    pub(super) items: SelectedItems,
    /// The names of a field of the items, and of fields inside it.
    pub(super) fields: Vec<String>,
}

/// The items of a [`Selection`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SelectedItems {
    Axes(AxisVec<AxisSelection>),
    Points(PointList),
    Mask(Vec<bool>),
}

impl Default for SelectedItems {
    fn default() -> Self {
        Self::Axes(AxisVec::new())
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PointList {
    /// The integers of all points, one point after the other.
    pub(super) integers: Vec<i64>,
    /// The number of points, and the number of integers of each, if it is known.
    pub(super) len: usize,
    pub(super) ndim: Option<usize>,
    /// The index of a point with another number of integers, and this number.
    pub(super) different: Option<(usize, usize)>,
}

impl Selection {
    /// Returns the selection of all items, for an array of any number of dimensions.
    pub fn all() -> Self {
        Self::default()
    }

    /// Returns the selection of one field of the selected structures. NumPy and Python: `array["name"]`. A second call
    /// selects a field inside this field.
    ///
    /// A read copies only the bytes of the field. A write leaves the other fields unchanged.
    /// [`NDArray::field`](crate::NDArray::field) returns a view of a field.
    ///
    /// ```
    /// # #[cfg(feature = "derive")] {
    /// use blosc2::{Element, NDArray, Selection};
    ///
    /// #[derive(Clone, Copy, Element)]
    /// #[repr(C)]
    /// struct Point {
    ///     x: f32,
    ///     y: f32,
    /// }
    ///
    /// let mut array = NDArray::from_slice(&[Point { x: 1.0, y: 2.0 }; 3], 3)?;
    /// array.write(Selection::all().field("y"), 0.0f32)?;
    /// array.write(Selection::from(1..).field("x"), &[5.0f32, 6.0])?;
    /// assert_eq!(array.field("x")?.read::<Vec<f32>>(..)?, [1.0, 5.0, 6.0]);
    /// # }
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn field(mut self, name: &str) -> Self {
        self.fields.push(name.to_owned());
        self
    }

    fn of_axes(axes: AxisVec<AxisSelection>) -> Self {
        Self { items: SelectedItems::Axes(axes), fields: Vec::new() }
    }
}

impl<A: Into<AxisSelection>> FromIterator<A> for Selection {
    fn from_iter<I: IntoIterator<Item = A>>(axes: I) -> Self {
        Self::of_axes(axes.into_iter().map(Into::into).collect())
    }
}

/// Conversions of lists with one selection for each axis.
macro_rules! axes {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<A: Into<AxisSelection> + Clone, $($generics)*> From<$type> for Selection {
            fn from(axes: $type) -> Self {
                axes.iter().cloned().collect()
            }
        }
    )*};
}
axes! { [] Vec<A>; [] &Vec<A>; [] &[A]; [const N: usize] [A; N]; [const N: usize] &[A; N]; }

impl From<&Self> for Selection {
    fn from(selection: &Self) -> Self {
        selection.clone()
    }
}

impl From<AxisSelection> for Selection {
    fn from(first: AxisSelection) -> Self {
        Self::of_axes(smallvec![first])
    }
}

impl From<()> for Selection {
    fn from((): ()) -> Self {
        Self::all()
    }
}

impl From<RangeFull> for Selection {
    fn from(_: RangeFull) -> Self {
        Self::all()
    }
}

/// Conversions of a selection on the first axis.
macro_rules! first {
    ($($type:ty)*) => {$(
        impl<I> From<$type> for Selection
        where
            $type: Into<AxisSelection>,
        {
            fn from(first: $type) -> Self {
                Self::of_axes(smallvec![first.into()])
            }
        }
    )*};
}
first!(Range<I> RangeFrom<I> RangeTo<I> RangeInclusive<I> RangeToInclusive<I>);
first!(StepBy<Range<I>> StepBy<RangeInclusive<I>> Rev<Range<I>> Rev<RangeInclusive<I>>);
first!(StepBy<Rev<Range<I>>> StepBy<Rev<RangeInclusive<I>>> Rev<StepBy<Range<I>>> Rev<StepBy<RangeInclusive<I>>>);

/// Calls a macro with the type parameters of tuples of each supported length, one parameter for each axis.
macro_rules! each_tuple {
    ($tuple:ident) => {
        $tuple!(A);
        $tuple!(A B);
        $tuple!(A B C);
        $tuple!(A B C D);
        $tuple!(A B C D E);
        $tuple!(A B C D E F);
        $tuple!(A B C D E F G);
        $tuple!(A B C D E F G H);
        $tuple!(A B C D E F G H I);
        $tuple!(A B C D E F G H I J);
        $tuple!(A B C D E F G H I J K);
        $tuple!(A B C D E F G H I J K L);
        $tuple!(A B C D E F G H I J K L M);
        $tuple!(A B C D E F G H I J K L M N);
        $tuple!(A B C D E F G H I J K L M N O);
        $tuple!(A B C D E F G H I J K L M N O P);
    };
}
pub(super) use each_tuple;

macro_rules! tuple {
    ($($type:ident)*) => {
        impl<$($type: Into<AxisSelection>),*> From<($($type,)*)> for Selection {
            #[allow(non_snake_case)]
            fn from(($($type,)*): ($($type,)*)) -> Self {
                Self::of_axes(smallvec![$($type.into()),*])
            }
        }
    };
}
each_tuple!(tuple);
