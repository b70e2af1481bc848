//! The item types of reductions, their result types, and the states from which results are computed.

use std::ops::{Add, BitAnd, BitOr, BitXor};

use super::lanes::{Accumulator, Groups, LANES};
use super::product::{Product, multiply_repeatedly};
use super::sum::{Distance, Moments, Sum};
use crate::Element;

/// An item type that reductions accept: `bool`, integers of up to 64 bits, `f32`, `f64`, `f16` (feature `half`) and
/// complex numbers (feature `num-complex`). This trait is sealed.
///
/// The result types are the same as in NumPy:
///
/// | items | [`Sum`](Self::Sum) | [`Mean`](Self::Mean) | [`Variance`](Self::Variance) |
/// |---|---|---|---|
/// | `bool`, `i8` to `i64` | `i64` | `f64` | `f64` |
/// | `u8` to `u64` | `u64` | `f64` | `f64` |
/// | `f16`, `f32`, `f64` | the item type | the item type | the item type |
/// | `Complex<f32>` | `Complex<f32>` | `Complex<f32>` | `f32` |
/// | `Complex<f64>` | `Complex<f64>` | `Complex<f64>` | `f64` |
///
/// ```
/// use blosc2::compute::Numeric;
/// use blosc2::{NDArray, Result};
///
/// fn total<T: Numeric>(array: &NDArray) -> Result<T::Sum> {
///     array.lazy::<T>().sum()
/// }
///
/// let array = NDArray::from_slice(&[200u8, 100], 2)?;
/// assert_eq!(total::<u8>(&array)?, 300u64);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Numeric: Element + Default + PartialEq + Reducible {
    /// The type of sums and products.
    type Sum: Element;
    /// The type of means.
    type Mean: Element;
    /// The type of variances and standard deviations.
    type Variance: Element;
}

/// An item type that [`describe`](super::LazyExpr::describe), [`select_in`](super::LazyExpr::select_in) and the methods
/// that [sort](crate::NDArrayBuilder::sort) accept: every [`Numeric`] type except complex numbers. This trait is sealed.
///
/// ```
/// use blosc2::compute::Real;
/// use blosc2::{NDArray, Result};
///
/// fn spread<T: Real>(array: &NDArray) -> Result<f64> {
///     Ok(array.lazy::<T>().describe(&[])?.std)
/// }
///
/// let array = NDArray::from_slice(&[1.0f32, 3.0], 2)?;
/// assert_eq!(spread::<f32>(&array)?, 1.0);
/// # Ok::<(), blosc2::Error>(())
/// ```
pub trait Real: Numeric + ToF64 {}

/// How the items of a [`Numeric`] type are combined. Other crates cannot name this trait, so that they cannot implement
/// [`Numeric`].
pub trait Reducible: Element + Default + PartialEq {
    type Total: Accumulator<Self>;
    type Moments: Accumulator<Self>;
    type Factors: Accumulator<Self>;
    /// An integer that has the size of an item, so that loops over both are vectorized.
    type Mask: Mask;
    const LEAST: Self;
    const GREATEST: Self;
    /// NaN, for types with NaN.
    const NAN: Self;
    fn sum(total: &Self::Total) -> <Self as Numeric>::Sum
    where
        Self: Numeric;
    fn mean(total: &Self::Total, count: u64) -> <Self as Numeric>::Mean
    where
        Self: Numeric;
    fn variance(moments: &Self::Moments, ddof: u64) -> f64;
    fn to_variance(variance: f64) -> <Self as Numeric>::Variance
    where
        Self: Numeric;
    fn product(factors: &Self::Factors) -> <Self as Numeric>::Sum
    where
        Self: Numeric;
    fn widen(self) -> <Self as Numeric>::Sum
    where
        Self: Numeric;
    fn plus(sum: <Self as Numeric>::Sum, item: Self) -> <Self as Numeric>::Sum
    where
        Self: Numeric;
    fn times(product: <Self as Numeric>::Sum, item: Self) -> <Self as Numeric>::Sum
    where
        Self: Numeric;
    fn subtract(self, other: Self) -> Self;
    #[inline(always)]
    fn is_nonzero(self) -> bool {
        self != Self::default()
    }
    fn is_nan(self) -> bool {
        false
    }
    /// Whether the item is less than another item. Zeros of both signs are equal. `false` for NaN.
    fn is_less(self, other: Self) -> bool;
    /// [`is_less`](Self::is_less), but zeros of both signs may differ.
    fn precedes(self, other: Self) -> bool {
        self.is_less(other)
    }
    /// Whether the item has the sign of negative numbers, for types with two zeros.
    fn has_sign(self) -> bool {
        false
    }
    /// Sets the sign if this number is zero.
    fn with_sign_of_zero(self, _: bool) -> Self {
        self
    }
}

/// The conversions to `f64` for [`Real`] types.
pub trait ToF64: Reducible {
    fn to_f64(self) -> f64;
    fn mean_f64(total: &Self::Total, count: u64) -> f64;
}

/// An unsigned integer.
pub trait Mask: Copy + Default + Send + Sync + From<bool> + Into<u64> + Integer {}

/// The operators of [`Mask`].
pub trait Integer:
    Add<Output = Self> + BitAnd<Output = Self> + BitOr<Output = Self> + Sized
{
}

impl<T: Add<Output = T> + BitAnd<Output = T> + BitOr<Output = T>> Integer for T {}

impl<T: Copy + Default + Send + Sync + From<bool> + Into<u64> + Integer> Mask for T {}

/// The sum of integers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Integers(i128);

impl Integers {
    /// Returns the mean, rounded once.
    fn mean(self, count: u64) -> f64 {
        if count == 0 {
            return f64::NAN;
        }
        // The quotient has at least 64 bits. Its last bit is set if the division has a remainder, so that the
        // conversion to `f64` rounds correctly.
        let (size, count) = (self.0.unsigned_abs(), u128::from(count));
        let shift = size.leading_zeros();
        let shifted = size.checked_shl(shift).unwrap_or(0);
        let quotient = (shifted / count) | u128::from(!shifted.is_multiple_of(count));
        let mean = quotient as f64 * 2f64.powi(-(shift as i32));
        if self.0 < 0 { -mean } else { mean }
    }
}

/// The product of integers. Overflow wraps.
#[derive(Debug, Clone)]
pub struct WrappingProduct(u64);

impl Default for WrappingProduct {
    fn default() -> Self {
        Self(1)
    }
}

/// Arguments of `integers`: the item type, the type of sums, the type that holds the sum of a lane, the mask, the
/// extreme items, their difference, and its conversion to `f64`.
macro_rules! integers {
    ($($type:ident $sum:ident $lane:ident $mask:ident $least:expr, $greatest:expr, $subtract:path, $minus:expr;)*) => {$(
        impl Accumulator<$type> for Integers {
            fn lanes(groups: Groups<'_, $type>) -> [Self; LANES] {
                let mut sums = [0; LANES];
                for group in groups.iter() {
                    for lane in 0..LANES {
                        sums[lane] += group[lane] as $lane;
                    }
                }
                sums.map(|sum: $lane| Self(sum.into()))
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                let sum = (item as i128).wrapping_mul(count.into());
                self.0 = self.0.wrapping_add(sum);
            }

            fn merge(&mut self, other: &Self) {
                self.0 = self.0.wrapping_add(other.0);
            }
        }

        impl Accumulator<$type> for WrappingProduct {
            fn lanes(groups: Groups<'_, $type>) -> [Self; LANES] {
                let mut products = [1u64; LANES];
                for group in groups.iter() {
                    for lane in 0..LANES {
                        products[lane] = products[lane].wrapping_mul(group[lane] as u64);
                    }
                }
                products.map(Self)
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                let multiply = |to: &mut u64, by: &u64| *to = to.wrapping_mul(*by);
                multiply_repeatedly(&mut self.0, item as u64, count, multiply);
            }

            fn merge(&mut self, other: &Self) {
                self.0 = self.0.wrapping_mul(other.0);
            }
        }

        impl Distance for $type {
            #[inline(always)]
            fn minus(self, other: Self) -> f64 {
                let minus: fn($type, $type) -> f64 = $minus;
                minus(self, other)
            }
        }

        impl Real for $type {}

        impl ToF64 for $type {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                self.minus(Self::default())
            }

            fn mean_f64(total: &Integers, count: u64) -> f64 {
                total.mean(count)
            }
        }

        impl Numeric for $type {
            type Sum = $sum;
            type Mean = f64;
            type Variance = f64;
        }

        impl Reducible for $type {
            type Total = Integers;
            type Moments = Moments<$type>;
            type Factors = WrappingProduct;
            type Mask = $mask;
            const LEAST: $type = $least;
            const GREATEST: $type = $greatest;
            const NAN: $type = $least;

            fn sum(total: &Integers) -> $sum {
                total.0 as $sum
            }

            fn mean(total: &Integers, count: u64) -> f64 {
                total.mean(count)
            }

            fn variance(moments: &Moments<$type>, ddof: u64) -> f64 {
                moments.variance(ddof)
            }

            fn to_variance(variance: f64) -> f64 {
                variance
            }

            fn product(factors: &WrappingProduct) -> $sum {
                factors.0 as $sum
            }

            fn widen(self) -> $sum {
                self as $sum
            }

            fn plus(sum: $sum, item: Self) -> $sum {
                sum.wrapping_add(item as $sum)
            }

            fn times(product: $sum, item: Self) -> $sum {
                product.wrapping_mul(item as $sum)
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                $subtract(self, other)
            }

            #[inline(always)]
            fn is_less(self, other: Self) -> bool {
                self < other
            }
        }
    )*};
    // The types whose extreme items have these names.
    ($($type:ident $sum:ident $lane:ident $mask:ident, $minus:expr;)*) => {
        integers! { $($type $sum $lane $mask $type::MIN, $type::MAX, $type::wrapping_sub, $minus;)* }
    };
}

integers! {
    bool i64 i16 u8 false, true, BitXor::bitxor, |one, other| f64::from(i8::from(one) - i8::from(other));
}

// The difference of integers of 32 bits is exact in `f64`. That of integers of 64 bits is exact in 64 bits and a sign.
integers! {
    i8 i64 i16 u8, |one, other| f64::from(i32::from(one) - i32::from(other));
    i16 i64 i32 u16, |one, other| f64::from(i32::from(one) - i32::from(other));
    i32 i64 i64 u32, |one, other| f64::from(one) - f64::from(other);
    i64 i64 i128 u64, |one, other| signed(one.abs_diff(other) as f64, one < other);
    u8 u64 i16 u8, |one, other| f64::from(i32::from(one) - i32::from(other));
    u16 u64 i32 u16, |one, other| f64::from(i32::from(one) - i32::from(other));
    u32 u64 i64 u32, |one, other| f64::from(one) - f64::from(other);
    u64 u64 i128 u64, |one, other| signed(one.abs_diff(other) as f64, one < other);
}

fn signed(number: f64, negative: bool) -> f64 {
    if negative { -number } else { number }
}

macro_rules! products {
    ($($type:ident)*) => {$(
        impl Accumulator<$type> for Product {
            fn lanes(groups: Groups<'_, $type>) -> [Self; LANES] {
                let mut lanes: [Self; LANES] = Default::default();
                for group in groups.iter() {
                    for lane in 0..LANES {
                        lanes[lane].multiply_quickly(f64::from(group[lane]));
                    }
                }
                lanes.iter_mut().for_each(Self::normalize);
                lanes
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                multiply_repeatedly(self, Self::of(f64::from(item)), count, Self::multiply_wide);
            }

            fn merge(&mut self, other: &Self) {
                self.multiply_wide(other);
            }
        }
    )*};
}

products! { f32 f64 }

impl Distance for f32 {
    #[inline(always)]
    fn minus(self, other: Self) -> f64 {
        f64::from(self) - f64::from(other)
    }
}

impl Distance for f64 {
    #[inline(always)]
    fn minus(self, other: Self) -> f64 {
        self - other
    }
}

/// Arguments of `floats`: the item type, the mask, the states, the conversion of results, and the order.
macro_rules! floats {
    ($($type:ty, $mask:ident, $total:ty, $moments:ty, $factors:ty, $from_f64:expr, $precedes:expr;)*) => {$(
        impl Numeric for $type {
            type Sum = $type;
            type Mean = $type;
            type Variance = $type;
        }

        impl Reducible for $type {
            type Total = $total;
            type Moments = $moments;
            type Factors = $factors;
            type Mask = $mask;
            const LEAST: $type = <$type>::NEG_INFINITY;
            const GREATEST: $type = <$type>::INFINITY;
            const NAN: $type = <$type>::NAN;

            fn sum(total: &$total) -> $type {
                $from_f64(total.total())
            }

            fn mean(total: &$total, count: u64) -> $type {
                $from_f64(total.mean(count))
            }

            fn variance(moments: &$moments, ddof: u64) -> f64 {
                moments.variance(ddof)
            }

            fn to_variance(variance: f64) -> $type {
                $from_f64(variance)
            }

            fn product(factors: &$factors) -> $type {
                $from_f64(factors.to_f64())
            }

            fn widen(self) -> Self {
                self
            }

            fn plus(sum: $type, item: Self) -> $type {
                sum + item
            }

            fn times(product: $type, item: Self) -> $type {
                product * item
            }

            #[inline(always)]
            fn subtract(self, other: Self) -> Self {
                self - other
            }

            #[inline(always)]
            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }

            #[inline(always)]
            fn is_less(self, other: Self) -> bool {
                self < other
            }

            #[inline(always)]
            fn precedes(self, other: Self) -> bool {
                $precedes(self, other)
            }

            #[inline(always)]
            fn has_sign(self) -> bool {
                self.is_sign_negative()
            }

            fn with_sign_of_zero(self, negative: bool) -> Self {
                match self.is_nonzero() {
                    true => self,
                    false => if negative { -Self::default() } else { Self::default() },
                }
            }
        }

        impl Real for $type {}

        impl ToF64 for $type {
            #[inline(always)]
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn mean_f64(total: &$total, count: u64) -> f64 {
                total.mean(count)
            }
        }
    )*};
}

floats! {
    f32, u32, Sum, Moments<f32>, Product, |number| number as f32, |one, other| one < other;
    f64, u64, Sum, Moments<f64>, Product, |number| number, |one, other| one < other;
}

/// Half-precision numbers. They are combined as `f32`.
#[cfg(feature = "half")]
mod half_precision {
    use std::ops::Deref;

    use half::f16;
    use half::slice::HalfFloatSliceExt;

    use super::*;

    /// The state of the items as `f32`.
    #[derive(Debug, Clone, Default)]
    pub struct Wide<A>(A);

    impl<A> Deref for Wide<A> {
        type Target = A;

        fn deref(&self) -> &A {
            &self.0
        }
    }

    impl<A: Accumulator<f32>> Accumulator<f16> for Wide<A> {
        fn lanes(groups: Groups<'_, f16>) -> [Self; LANES] {
            let convert =
                |from: &[f16; LANES], to: &mut [f32; LANES]| from.convert_to_f32_slice(to);
            groups.convert(convert, A::lanes).map(Self)
        }

        fn add_groups(&mut self, groups: Groups<'_, f16>) {
            let convert =
                |from: &[f16; LANES], to: &mut [f32; LANES]| from.convert_to_f32_slice(to);
            groups.convert(convert, |groups| self.0.add_groups(groups));
        }

        fn add_repeated(&mut self, item: f16, count: u64) {
            self.0.add_repeated(item.to_f32(), count);
        }

        fn merge(&mut self, other: &Self) {
            self.0.merge(&other.0);
        }
    }

    /// An integer with the order of the numbers: the processor cannot compare the numbers.
    fn key(item: f16) -> i16 {
        let bits = item.to_bits();
        // Negative numbers have the reverse order of their bits.
        (bits ^ ((bits as i16 >> 15) as u16 >> 1)) as i16
    }

    floats! {
        f16, u16, Wide<Sum>, Wide<Moments<f32>>, Wide<Product>, to_f16, |one, other| key(one) < key(other);
    }

    /// Returns the nearest `f16`. `f16::from_f64` ignores the last 32 bits of the number.
    fn to_f16(number: f64) -> f16 {
        let near = number as f32;
        let (bits, wide) = (near.to_bits(), f64::from(near));
        if wide == number || bits & 1 == 1 || !near.is_finite() {
            return f16::from_f32(near);
        }
        // Rounds to odd: the last bit is set if `f32` cannot hold all bits of the number. Therefore the rounding to
        // `f32` has no effect on the rounding to `f16`.
        f16::from_f32(f32::from_bits(if wide.abs() < number.abs() { bits + 1 } else { bits - 1 }))
    }
}

/// Complex numbers: the real and the imaginary parts are combined separately, except in products.
#[cfg(feature = "num-complex")]
mod complex {
    use std::array;

    use num_complex::Complex;

    use super::*;

    /// The states of the real and of the imaginary parts.
    #[derive(Debug, Clone, Default)]
    pub struct Parts<A>(A, A);

    /// The product of complex numbers.
    #[derive(Debug, Clone, Copy)]
    pub struct ComplexProduct(Complex<f64>);

    impl Default for ComplexProduct {
        fn default() -> Self {
            Self(Complex::new(1.0, 0.0))
        }
    }

    impl<T: Copy + Default, A: Accumulator<T>> Accumulator<Complex<T>> for Parts<A> {
        fn lanes(groups: Groups<'_, Complex<T>>) -> [Self; LANES] {
            let re = groups.convert(|from, to| *to = from.map(|item| item.re), A::lanes);
            let im = groups.convert(|from, to| *to = from.map(|item| item.im), A::lanes);
            array::from_fn(|lane| Self(re[lane].clone(), im[lane].clone()))
        }

        fn add_groups(&mut self, groups: Groups<'_, Complex<T>>) {
            let Self(re, im) = self;
            groups
                .convert(|from, to| *to = from.map(|item| item.re), |groups| re.add_groups(groups));
            groups
                .convert(|from, to| *to = from.map(|item| item.im), |groups| im.add_groups(groups));
        }

        fn add_repeated(&mut self, item: Complex<T>, count: u64) {
            self.0.add_repeated(item.re, count);
            self.1.add_repeated(item.im, count);
        }

        fn merge(&mut self, other: &Self) {
            self.0.merge(&other.0);
            self.1.merge(&other.1);
        }
    }

    macro_rules! complex {
        ($($part:ident $mask:ident;)*) => {$(
            impl Accumulator<Complex<$part>> for ComplexProduct {
                fn lanes(groups: Groups<'_, Complex<$part>>) -> [Self; LANES] {
                    let mut lanes = [Self::default(); LANES];
                    for group in groups.iter() {
                        lanes.iter_mut().zip(group).for_each(|(lane, item)| lane.add_repeated(*item, 1));
                    }
                    lanes
                }

                fn add_repeated(&mut self, item: Complex<$part>, count: u64) {
                    let item = Complex::new(f64::from(item.re), f64::from(item.im));
                    multiply_repeatedly(&mut self.0, item, count, |to, by| *to *= by);
                }

                fn merge(&mut self, other: &Self) {
                    self.0 *= other.0;
                }
            }

            impl Numeric for Complex<$part> {
                type Sum = Self;
                type Mean = Self;
                type Variance = $part;
            }

            impl Reducible for Complex<$part> {
                type Total = Parts<Sum>;
                type Moments = Parts<Moments<$part>>;
                type Factors = ComplexProduct;
                type Mask = $mask;
                const LEAST: Self = Complex { re: $part::NEG_INFINITY, im: $part::NEG_INFINITY };
                const GREATEST: Self = Complex { re: $part::INFINITY, im: $part::INFINITY };
                const NAN: Self = Complex { re: $part::NAN, im: $part::NAN };

                fn sum(total: &Self::Total) -> Self {
                    Complex::new(total.0.total() as $part, total.1.total() as $part)
                }

                fn mean(total: &Self::Total, count: u64) -> Self {
                    Complex::new(total.0.mean(count) as $part, total.1.mean(count) as $part)
                }

                fn variance(moments: &Self::Moments, ddof: u64) -> f64 {
                    moments.0.variance_with(&moments.1, ddof)
                }

                fn to_variance(variance: f64) -> $part {
                    variance as $part
                }

                fn product(factors: &ComplexProduct) -> Self {
                    Complex::new(factors.0.re as $part, factors.0.im as $part)
                }

                fn widen(self) -> Self {
                    self
                }

                fn plus(sum: Self, item: Self) -> Self {
                    sum + item
                }

                fn times(product: Self, item: Self) -> Self {
                    product * item
                }

                fn subtract(self, other: Self) -> Self {
                    self - other
                }

                fn is_nan(self) -> bool {
                    self.re.is_nan() || self.im.is_nan()
                }

                fn is_less(self, other: Self) -> bool {
                    (self.re, self.im) < (other.re, other.im)
                }

                // Equal numbers are ordered by the signs of their zeros.
                fn precedes(self, other: Self) -> bool {
                    let order = |item: Self| {
                        let signs = [item.re, item.im].map(|part| !part.is_sign_negative());
                        (item.re, item.im, signs)
                    };
                    order(self) < order(other)
                }
            }
        )*};
    }

    complex! {
        f32 u64;
        f64 u64;
    }
}
