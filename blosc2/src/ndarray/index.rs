//! One integer for each axis: indices of items, and shapes.

use super::selection::{AxisIndex, ToI128, each_tuple};
use crate::{ErrorKind, Reason, Result};

/// A sequence with one integer for each axis: a shape, or the index of an item.
///
/// These types implement this trait:
/// - arrays, slices, vectors and tuples of integers of up to 64 bits;
/// - a single integer (one axis);
/// - `()` (no axes).
///
/// In an index, negative integers count from the end of the axis. This trait is sealed.
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&(0..20i32).collect::<Vec<_>>(), (4, 5))?;
/// assert_eq!(array.item::<i32>([1, 2])?, 7);
/// assert_eq!(array.item::<i32>((-1, 0))?, 15);
/// let stored: Vec<usize> = vec![0, 4];
/// assert_eq!(array.item::<i32>(&stored)?, 4);
///
/// let line = NDArray::from_slice(b"abc", 3)?;
/// assert_eq!(line.item::<u8>(-1)?, b'c');
/// let scalar = NDArray::from_slice(&[0.5], ())?;
/// assert_eq!(scalar.item::<f64>(())?, 0.5);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait PerAxis: Integers {}

/// A shape that determines how a function receives the index of an item.
///
/// | shape | index |
/// |---|---|
/// | `[u64; N]`, `&[u64; N]` | `[u64; N]` |
/// | `&[u64]`, `&Vec<u64>` | `&[u64]` |
///
/// This trait is sealed.
pub trait IndexedShape: PerAxis {
    /// The index that the function receives.
    type Index<'i>;

    /// Converts an index with one integer for each axis.
    fn index(index: &[u64]) -> Self::Index<'_>;
}

macro_rules! indexed {
    ($([$($generics:tt)*] $type:ty, $index:ty, $convert:expr;)*) => {$(
        impl<$($generics)*> IndexedShape for $type {
            type Index<'i> = $index;

            fn index(index: &[u64]) -> Self::Index<'_> {
                $convert(index)
            }
        }
    )*};
}
indexed! {
    [const N: usize] [u64; N], [u64; N], |index: &[u64]| std::array::from_fn(|axis| index[axis]);
    [const N: usize] &[u64; N], [u64; N], |index: &[u64]| std::array::from_fn(|axis| index[axis]);
    [] &[u64], &'i [u64], std::convert::identity;
    [] &Vec<u64>, &'i [u64], std::convert::identity;
}

/// The integers of a [`PerAxis`]. Other crates cannot name this trait, so that they cannot implement [`PerAxis`]: an index
/// must not change between its check and its use.
pub trait Integers {
    /// The number of integers, if the type determines it.
    const NDIM: Option<usize>;

    fn ndim(&self) -> usize;

    /// Returns the integer for an axis; `axis` is less than `ndim`.
    fn along(&self, axis: usize) -> i128;
}

/// Returns the integers of a shape; fails if one of them is negative. `what` is the name of the shape in the error
/// message.
pub(super) fn sizes(shape: &impl PerAxis, what: &str) -> Result<Vec<u64>, Reason> {
    let size = |axis| {
        let size = shape.along(axis);
        u64::try_from(size).map_err(|_| {
            let detail = format!("axis {axis} of the {what}: {size}, expected at least 0");
            Reason::new(ErrorKind::InvalidArgument, detail)
        })
    };
    (0..shape.ndim()).map(size).collect()
}

/// Returns the position of an index. A negative index counts from the end of the axis. If the index is outside the
/// axis, the result is at least `size`.
pub(super) fn place(at: i128, size: u64) -> u64 {
    let place = if at < 0 { at + i128::from(size) } else { at };
    u64::try_from(place).unwrap_or(u64::MAX)
}

/// Returns the position of an index on an axis of this number and size; fails if it is outside.
pub(super) fn position_of(at: i128, (axis, size): (usize, u64)) -> Result<u64, Reason> {
    match place(at, size) {
        place if place < size => Ok(place),
        _ => {
            let detail = format!("axis {axis} has {size} items, asked for index {at}");
            Err(Reason::new(ErrorKind::OutOfBounds, detail))
        }
    }
}

/// Implementations for slices and for types that are used as slices.
macro_rules! list {
    ($([$($generics:tt)*] $type:ty, $ndim:expr;)*) => {$(
        impl<$($generics)*> PerAxis for $type {}
        impl<$($generics)*> Integers for $type {
            const NDIM: Option<usize> = $ndim;

            fn ndim(&self) -> usize {
                self.len()
            }

            fn along(&self, axis: usize) -> i128 {
                self[axis].to_i128()
            }
        }
    )*};
}
list! {
    [I: AxisIndex] [I], None;
    [I: AxisIndex, const N: usize] [I; N], Some(N);
    [I: AxisIndex] Vec<I>, None;
}

impl<P: PerAxis + ?Sized> PerAxis for &P {}
impl<P: PerAxis + ?Sized> Integers for &P {
    const NDIM: Option<usize> = P::NDIM;

    fn ndim(&self) -> usize {
        (**self).ndim()
    }

    fn along(&self, axis: usize) -> i128 {
        (**self).along(axis)
    }
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl PerAxis for $type {}
        impl Integers for $type {
            const NDIM: Option<usize> = Some(1);

            fn ndim(&self) -> usize {
                1
            }

            fn along(&self, _: usize) -> i128 {
                self.to_i128()
            }
        }
    )*};
}
integer!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! tuple {
    ($($type:ident)*) => {
        impl<$($type: AxisIndex),*> PerAxis for ($($type,)*) {}
        impl<$($type: AxisIndex),*> Integers for ($($type,)*) {
            const NDIM: Option<usize> = Some(<[&str]>::len(&[$(stringify!($type)),*]));

            fn ndim(&self) -> usize {
                <[&str]>::len(&[$(stringify!($type)),*])
            }

            #[allow(non_snake_case)]
            fn along(&self, axis: usize) -> i128 {
                let ($($type,)*) = *self;
                let integers: &[i128] = &[$($type.to_i128()),*];
                integers[axis]
            }
        }
    };
}
tuple!();
each_tuple!(tuple);
