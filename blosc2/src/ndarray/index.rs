//! The index of one item.

use super::selection::AxisIndex;

/// The index of one item: an integer for each axis; negative ones count from the end of the axis.
///
/// Implemented for arrays, slices, vectors and tuples of the integer types of up to 64 bits, and for an integer alone,
/// which is the index of an item of a one-dimensional array.
///
/// ```
/// use blosc2::NDArray;
///
/// let array = NDArray::from_slice(&(0..20i32).collect::<Vec<_>>(), &[4, 5])?;
/// assert_eq!(array.item::<i32>([1, 2])?, 7);
/// assert_eq!(array.item::<i32>((-1, 0))?, 15);
/// let stored: Vec<usize> = vec![0, 4];
/// assert_eq!(array.item::<i32>(&stored)?, 4);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait ItemIndex: sealed::Sealed {
    /// The number of integers.
    #[doc(hidden)]
    fn ndim(&self) -> usize;

    /// The integer for an axis, which is below `ndim`.
    #[doc(hidden)]
    fn along(&self, axis: usize) -> i64;
}

mod sealed {
    /// Keeps what an index is from changing between its check and its use.
    pub trait Sealed {}
}

impl<I: AxisIndex> sealed::Sealed for [I] {}
impl<I: AxisIndex> ItemIndex for [I] {
    fn ndim(&self) -> usize {
        self.len()
    }

    fn along(&self, axis: usize) -> i64 {
        self[axis].to_i64()
    }
}

/// What is used as the slice that it contains.
macro_rules! list {
    ($([$($generics:tt)*] $type:ty;)*) => {$(
        impl<$($generics)*> sealed::Sealed for $type {}
        impl<$($generics)*> ItemIndex for $type {
            fn ndim(&self) -> usize {
                self.len()
            }

            fn along(&self, axis: usize) -> i64 {
                self[axis].to_i64()
            }
        }
    )*};
}
list! { [I: AxisIndex, const N: usize] [I; N]; [I: AxisIndex] Vec<I>; }

impl<P: ItemIndex + ?Sized> sealed::Sealed for &P {}
impl<P: ItemIndex + ?Sized> ItemIndex for &P {
    fn ndim(&self) -> usize {
        (**self).ndim()
    }

    fn along(&self, axis: usize) -> i64 {
        (**self).along(axis)
    }
}

macro_rules! integer {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}
        impl ItemIndex for $type {
            fn ndim(&self) -> usize {
                1
            }

            fn along(&self, _: usize) -> i64 {
                self.to_i64()
            }
        }
    )*};
}
integer!(i8 i16 i32 i64 isize u8 u16 u32 u64 usize);

macro_rules! tuple {
    ($($type:ident)*) => {
        impl<$($type: AxisIndex),*> sealed::Sealed for ($($type,)*) {}
        impl<$($type: AxisIndex),*> ItemIndex for ($($type,)*) {
            fn ndim(&self) -> usize {
                [$(stringify!($type)),*].len()
            }

            #[allow(non_snake_case)]
            fn along(&self, axis: usize) -> i64 {
                let ($($type,)*) = *self;
                [$($type.to_i64()),*][axis]
            }
        }
    };
}
tuple!(A);
tuple!(A B);
tuple!(A B C);
tuple!(A B C D);
tuple!(A B C D E);
tuple!(A B C D E F);
tuple!(A B C D E F G);
tuple!(A B C D E F G H);
