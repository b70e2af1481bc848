//! The item types of reductions, their result types, and the states from which results are computed.

use super::exact::{Squares32, SquaresInt, Sum32, Sum64, variance, variance_of_integers};
use super::narrow::{Float, Narrow, NarrowSquares64, add_items};
use super::product::Product;
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
pub trait Numeric: Element + sealed::Sealed {
    /// The type of sums and products.
    type Sum: Element;
    /// The type of means.
    type Mean: Element;
    /// The type of variances and standard deviations.
    type Variance: Element;

    #[doc(hidden)]
    type Total: Accumulator<Self>;
    #[doc(hidden)]
    type Moments: Accumulator<Self>;
    #[doc(hidden)]
    type Factors: Accumulator<Self>;
    /// The order of items. Negative zero is less than zero. The position of NaN in the order is not specified.
    #[doc(hidden)]
    type Key: Ord + Copy + Send + Sync;
    #[doc(hidden)]
    fn sum(total: &Self::Total) -> Self::Sum;
    #[doc(hidden)]
    fn mean(total: &Self::Total, count: u64) -> Self::Mean;
    #[doc(hidden)]
    fn variance(moments: &Self::Moments, count: u64, ddof: u64) -> f64;
    #[doc(hidden)]
    fn to_variance(variance: f64) -> Self::Variance;
    #[doc(hidden)]
    fn product(factors: &Self::Factors) -> Self::Sum;
    #[doc(hidden)]
    fn is_nonzero(self) -> bool;
    #[doc(hidden)]
    fn is_nan(self) -> bool;
    #[doc(hidden)]
    fn key(self) -> Self::Key;
    /// The key for comparing items for equality. Zeros of both signs have the same key.
    #[doc(hidden)]
    fn equal_key(self) -> Self::Key;
    #[doc(hidden)]
    fn from_key(key: Self::Key) -> Self;
}

/// An item type that [`describe`](super::LazyExpr::describe) accepts: every [`Numeric`] type except complex numbers.
/// This trait is sealed.
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
pub trait Real: Numeric {
    #[doc(hidden)]
    fn to_f64(self) -> f64;
    #[doc(hidden)]
    fn mean_f64(total: &Self::Total, count: u64) -> f64;
}

mod sealed {
    pub trait Sealed {}
}

/// The intermediate state of a result, for which some items are combined.
pub trait Accumulator<T: Copy>: Default + Clone + Send {
    fn add(&mut self, items: &[T]);

    /// Adds the items of rows. Each item is added to the accumulator whose index is the index of the item in the row.
    fn add_rows(to: &mut [Self], rows: &[T]) {
        each_in_rows(to, rows, |to, item| to.add(&[item]));
    }

    fn add_repeated(&mut self, item: T, count: u64);

    fn merge(&mut self, other: &Self);

    /// Whether further items do not change the result.
    fn is_done(&self) -> bool {
        false
    }
}

/// Calls `add` for each item of the rows, with the accumulator whose index is the index of the item in the row.
#[inline]
pub(super) fn each_in_rows<A, T: Copy>(to: &mut [A], rows: &[T], add: impl Fn(&mut A, T)) {
    for row in rows.chunks_exact(to.len()) {
        to.iter_mut().zip(row).for_each(|(to, item)| add(to, *item));
    }
}

/// The number of items that are converted at once.
const PIECE: usize = 256;
/// Fewer items than this are converted one by one.
#[cfg(feature = "num-complex")]
const SHORT: usize = 32;

/// The sum of integers.
#[derive(Debug, Clone, Default)]
pub struct Integers(i128);

/// The sum of integers, and the sum of their squares.
#[derive(Debug, Clone, Default)]
pub struct IntegerMoments(Integers, SquaresInt);

/// The product of integers. Overflow wraps.
#[derive(Debug, Clone)]
pub struct WrappingProduct(u64);

impl Default for WrappingProduct {
    fn default() -> Self {
        Self(1)
    }
}

macro_rules! integers {
    ($($type:ident $sum:ident;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Accumulator<$type> for Integers {
            fn add(&mut self, items: &[$type]) {
                if size_of::<$type>() == 8 {
                    self.0 += items.iter().map(|item| *item as i128).sum::<i128>();
                    return;
                }
                // The sum of a piece fits in an `i64`, and the compiler vectorizes the loop.
                for items in items.chunks(1 << 20) {
                    self.0 += i128::from(items.iter().map(|item| *item as i64).sum::<i64>());
                }
            }

            fn add_rows(to: &mut [Self], rows: &[$type]) {
                each_in_rows(to, rows, |to, item| to.0 += item as i128);
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                self.0 += item as i128 * i128::from(count);
            }

            fn merge(&mut self, other: &Self) {
                self.0 += other.0;
            }
        }

        impl Accumulator<$type> for IntegerMoments {
            fn add(&mut self, items: &[$type]) {
                Accumulator::<$type>::add(&mut self.0, items);
                // The sum of the squares of a piece fits if all magnitudes have at most 60 bits.
                for items in items.chunks(PIECE) {
                    let magnitudes = items.iter().map(|item| (*item as i128).unsigned_abs());
                    if magnitudes.clone().fold(0, |all, item| all | item) >> 60 == 0 {
                        self.1.add_integer(magnitudes.map(|item| item * item).sum());
                    } else {
                        magnitudes.for_each(|item| self.1.add_integer(item * item));
                    }
                }
            }

            fn add_rows(to: &mut [Self], rows: &[$type]) {
                each_in_rows(to, rows, |to, item| {
                    to.0.0 += item as i128;
                    let magnitude = (item as i128).unsigned_abs();
                    to.1.add_integer(magnitude * magnitude);
                });
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                self.0.add_repeated(item, count);
                let magnitude = (item as i128).unsigned_abs();
                self.1.add_integer_repeated(magnitude * magnitude, count);
            }

            fn merge(&mut self, other: &Self) {
                Accumulator::<$type>::merge(&mut self.0, &other.0);
                self.1.merge(&other.1);
            }
        }

        impl Accumulator<$type> for WrappingProduct {
            fn add(&mut self, items: &[$type]) {
                self.0 = items.iter().fold(self.0, |all, item| all.wrapping_mul(*item as u64));
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                self.0 = self.0.wrapping_mul(wrapping_pow(item as u64, count));
            }

            fn merge(&mut self, other: &Self) {
                self.0 = self.0.wrapping_mul(other.0);
            }
        }

        impl Real for $type {
            fn to_f64(self) -> f64 {
                self as i128 as f64
            }

            fn mean_f64(total: &Integers, count: u64) -> f64 {
                mean_of_integers(total.0, count)
            }
        }

        impl Numeric for $type {
            type Sum = $sum;
            type Mean = f64;
            type Variance = f64;
            type Total = Integers;
            type Moments = IntegerMoments;
            type Factors = WrappingProduct;
            type Key = $type;

            fn sum(total: &Integers) -> $sum {
                total.0 as $sum
            }

            fn mean(total: &Integers, count: u64) -> f64 {
                mean_of_integers(total.0, count)
            }

            fn variance(moments: &IntegerMoments, count: u64, ddof: u64) -> f64 {
                variance_of_integers(count, moments.0.0, &moments.1, ddof)
            }

            fn to_variance(variance: f64) -> f64 {
                variance
            }

            fn product(factors: &WrappingProduct) -> $sum {
                factors.0 as $sum
            }

            fn is_nonzero(self) -> bool {
                self != <$type>::default()
            }

            fn is_nan(self) -> bool {
                false
            }

            fn key(self) -> $type {
                self
            }

            fn equal_key(self) -> $type {
                self
            }

            fn from_key(key: $type) -> $type {
                key
            }
        }
    )*};
}

integers! {
    bool i64;
    i8 i64;
    i16 i64;
    i32 i64;
    i64 i64;
    u8 u64;
    u16 u64;
    u32 u64;
    u64 u64;
}

/// Returns `sum / count`, rounded once.
fn mean_of_integers(sum: i128, count: u64) -> f64 {
    if count == 0 {
        return f64::NAN;
    }
    // The quotient has at least 64 bits. Its last bit is set if the division has a remainder, so that the conversion to
    // `f64` rounds correctly.
    let (size, count) = (sum.unsigned_abs(), u128::from(count));
    let shift = size.leading_zeros();
    let shifted = size.checked_shl(shift).unwrap_or(0);
    let quotient = (shifted / count) | u128::from(!shifted.is_multiple_of(count));
    let mean = quotient as f64 * 2f64.powi(-(shift as i32));
    if sum < 0 { -mean } else { mean }
}

fn wrapping_pow(mut base: u64, mut exponent: u64) -> u64 {
    let mut power: u64 = 1;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    power
}

/// The sum of squares of `f32`.
type NarrowSquares32 = Narrow<Squares32>;

/// The sum of floating-point numbers, and the sum of their squares.
#[derive(Debug, Clone, Default)]
pub struct FloatMoments<S, Q>(Narrow<S>, Q);

macro_rules! floats {
    ($($type:ident $bits:ident $int:ident $sum:ident $squares:ident;)*) => {$(
        impl sealed::Sealed for $type {}

        impl Accumulator<$type> for Narrow<$sum> {
            fn add(&mut self, items: &[$type]) {
                add_items(self, items);
            }

            fn add_rows(to: &mut [Self], rows: &[$type]) {
                each_in_rows(to, rows, |to, item| to.add(f64::from(item)));
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                self.add_repeated(f64::from(item), count);
            }

            fn merge(&mut self, other: &Self) {
                self.merge(other);
            }
        }

        impl Accumulator<$type> for FloatMoments<$sum, $squares> {
            fn add(&mut self, items: &[$type]) {
                add_items(&mut self.0, items);
                <$type>::add_squares(&mut self.1, items);
            }

            fn add_rows(to: &mut [Self], rows: &[$type]) {
                each_in_rows(to, rows, |to, item| {
                    to.0.add(f64::from(item));
                    <$type>::add_square(&mut to.1, item);
                });
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                self.0.add_repeated(f64::from(item), count);
                <$type>::add_square_repeated(&mut self.1, item, count);
            }

            fn merge(&mut self, other: &Self) {
                self.0.merge(&other.0);
                self.1.merge(&other.1);
            }
        }

        impl Accumulator<$type> for Product {
            fn add(&mut self, items: &[$type]) {
                self.multiply_all(items.iter().map(|item| f64::from(*item)));
            }

            fn add_rows(to: &mut [Self], rows: &[$type]) {
                each_in_rows(to, rows, |to, item| to.multiply(f64::from(item)));
            }

            fn add_repeated(&mut self, item: $type, count: u64) {
                self.multiply_repeatedly(f64::from(item), count);
            }

            fn merge(&mut self, other: &Self) {
                Product::merge(self, other);
            }
        }

        impl Key for $type {
            type Of = $int;

            fn key(self) -> $int {
                let bits = self.to_bits();
                // Negative numbers have the reverse order of their bits.
                let sign = (bits as $int >> ($int::BITS - 1)) as $bits;
                (bits ^ sign >> 1) as $int
            }

            fn from_key(key: $int) -> Self {
                let sign = (key >> ($int::BITS - 1)) as $bits;
                Self::from_bits(key as $bits ^ sign >> 1)
            }
        }
    )*};
}

/// The order of floating-point numbers.
trait Key {
    type Of: Ord + Copy + Send + Sync;

    fn key(self) -> Self::Of;
    fn from_key(key: Self::Of) -> Self;
}

floats! {
    f32 u32 i32 Sum32 NarrowSquares32;
    f64 u64 i64 Sum64 NarrowSquares64;
}

macro_rules! float_numbers {
    ($($type:ty, $variance:ty, $total:ty, $moments:ty, $factors:ty, $key:ty;
        $sum:expr, $mean:expr, $mean_f64:expr, $to_variance:expr, $product:expr;)*) => {$(
        impl Numeric for $type {
            type Sum = $type;
            type Mean = $type;
            type Variance = $variance;
            type Total = $total;
            type Moments = $moments;
            type Factors = $factors;
            type Key = $key;

            fn sum(total: &$total) -> $type {
                $sum(&total.total())
            }

            fn mean(total: &$total, count: u64) -> $type {
                $mean(&total.total(), count)
            }

            fn variance(moments: &$moments, count: u64, ddof: u64) -> f64 {
                variance(count, &[(&moments.0.total(), &moments.1.total())], ddof)
            }

            fn to_variance(variance: f64) -> $variance {
                $to_variance(variance)
            }

            fn product(factors: &$factors) -> $type {
                $product(factors)
            }

            fn is_nonzero(self) -> bool {
                f64::from(self) != 0.0
            }

            fn is_nan(self) -> bool {
                <$type>::is_nan(self)
            }

            fn key(self) -> $key {
                Key::key(self)
            }

            fn equal_key(self) -> $key {
                if self.is_nonzero() { Key::key(self) } else { 0 }
            }

            fn from_key(key: $key) -> $type {
                Key::from_key(key)
            }
        }

        impl Real for $type {
            fn to_f64(self) -> f64 {
                f64::from(self)
            }

            fn mean_f64(total: &$total, count: u64) -> f64 {
                $mean_f64(&total.total(), count)
            }
        }
    )*};
}

float_numbers! {
    f32, f32, Narrow<Sum32>, FloatMoments<Sum32, NarrowSquares32>, Product, i32;
    Sum32::to_f32, Sum32::mean_f32, Sum32::mean_f64, |variance| variance as f32, |product: &Product| product.to_f64() as f32;
    f64, f64, Narrow<Sum64>, FloatMoments<Sum64, NarrowSquares64>, Product, i64;
    Sum64::to_f64, Sum64::mean_f64, Sum64::mean_f64, |variance| variance, Product::to_f64;
}

/// Half-precision numbers. They are summed as `f32`.
#[cfg(feature = "half")]
mod half_precision {
    use half::f16;

    use super::*;

    impl sealed::Sealed for f16 {}

    /// Calls `add` with the items as `f32`.
    fn in_pieces(items: &[f16], mut add: impl FnMut(&[f32])) {
        let mut wide = [0.0; PIECE];
        for items in items.chunks(PIECE) {
            wide.iter_mut().zip(items).for_each(|(to, item)| *to = item.to_f32());
            add(&wide[..items.len()]);
        }
    }

    macro_rules! as_f32 {
        ($($accumulator:ty)*) => {$(
            impl Accumulator<f16> for $accumulator {
                fn add(&mut self, items: &[f16]) {
                    in_pieces(items, |items| Accumulator::<f32>::add(self, items));
                }

                fn add_rows(to: &mut [Self], rows: &[f16]) {
                    let rows: Vec<f32> = rows.iter().map(|item| item.to_f32()).collect();
                    <Self as Accumulator<f32>>::add_rows(to, &rows);
                }

                fn add_repeated(&mut self, item: f16, count: u64) {
                    Accumulator::<f32>::add_repeated(self, item.to_f32(), count);
                }

                fn merge(&mut self, other: &Self) {
                    Accumulator::<f32>::merge(self, other);
                }
            }
        )*};
    }

    as_f32! { Narrow<Sum32> FloatMoments<Sum32, NarrowSquares32> Product }

    impl Key for f16 {
        type Of = i16;

        fn key(self) -> i16 {
            let bits = self.to_bits();
            (bits ^ ((bits as i16 >> 15) as u16 >> 1)) as i16
        }

        fn from_key(key: i16) -> Self {
            Self::from_bits(key as u16 ^ ((key >> 15) as u16 >> 1))
        }
    }

    float_numbers! {
        f16, f16, Narrow<Sum32>, FloatMoments<Sum32, NarrowSquares32>, Product, i16;
        |sum: &Sum32| f16::from_bits(sum.to_f16_bits()),
        |sum: &Sum32, count| f16::from_bits(sum.mean_f16_bits(count)),
        Sum32::mean_f64,
        to_f16,
        |product: &Product| to_f16(product.to_f64());
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
    use num_complex::Complex;

    use super::*;

    /// The sums of the real and of the imaginary parts.
    #[derive(Debug, Clone, Default)]
    pub struct Parts<A>(A, A);

    /// The product of complex numbers.
    #[derive(Debug, Clone)]
    pub struct ComplexProduct(Complex<f64>);

    impl Default for ComplexProduct {
        fn default() -> Self {
            Self(Complex::new(1.0, 0.0))
        }
    }

    macro_rules! complex {
        ($($part:ident $key:ident $sum:ident $squares:ident $to:ident $mean:ident $to_variance:expr;)*) => {$(
            impl sealed::Sealed for Complex<$part> {}

            impl<A: Accumulator<$part>> Accumulator<Complex<$part>> for Parts<A> {
                fn add(&mut self, items: &[Complex<$part>]) {
                    if items.len() < SHORT {
                        return Self::add_rows(std::slice::from_mut(self), items);
                    }
                    let (mut re, mut im) = ([0.0; PIECE], [0.0; PIECE]);
                    for items in items.chunks(PIECE) {
                        for ((re, im), item) in re.iter_mut().zip(&mut im).zip(items) {
                            (*re, *im) = (item.re, item.im);
                        }
                        self.0.add(&re[..items.len()]);
                        self.1.add(&im[..items.len()]);
                    }
                }

                fn add_rows(to: &mut [Self], rows: &[Complex<$part>]) {
                    each_in_rows(to, rows, |to, item| {
                        to.0.add(&[item.re]);
                        to.1.add(&[item.im]);
                    });
                }

                fn add_repeated(&mut self, item: Complex<$part>, count: u64) {
                    self.0.add_repeated(item.re, count);
                    self.1.add_repeated(item.im, count);
                }

                fn merge(&mut self, other: &Self) {
                    self.0.merge(&other.0);
                    self.1.merge(&other.1);
                }
            }

            impl Accumulator<Complex<$part>> for ComplexProduct {
                fn add(&mut self, items: &[Complex<$part>]) {
                    for item in items {
                        self.0 *= Complex::new(f64::from(item.re), f64::from(item.im));
                    }
                }

                fn add_repeated(&mut self, item: Complex<$part>, count: u64) {
                    let item = Complex::new(f64::from(item.re), f64::from(item.im));
                    let (mut base, mut left) = (item, count);
                    while left > 0 {
                        if left & 1 == 1 {
                            self.0 *= base;
                        }
                        base *= base;
                        left >>= 1;
                    }
                }

                fn merge(&mut self, other: &Self) {
                    self.0 *= other.0;
                }
            }

            impl Numeric for Complex<$part> {
                type Sum = Self;
                type Mean = Self;
                type Variance = $part;
                type Total = Parts<Narrow<$sum>>;
                type Moments = Parts<FloatMoments<$sum, $squares>>;
                type Factors = ComplexProduct;
                // Equal numbers are ordered by the signs of their zeros.
                type Key = ($key, $key, $key, $key);

                fn sum(total: &Self::Total) -> Self {
                    Complex::new(total.0.total().$to(), total.1.total().$to())
                }

                fn mean(total: &Self::Total, count: u64) -> Self {
                    Complex::new(total.0.total().$mean(count), total.1.total().$mean(count))
                }

                fn variance(moments: &Self::Moments, count: u64, ddof: u64) -> f64 {
                    let Parts(re, im) = moments;
                    let (re, re_squares) = (re.0.total(), re.1.total());
                    let (im, im_squares) = (im.0.total(), im.1.total());
                    variance(count, &[(&re, &re_squares), (&im, &im_squares)], ddof)
                }

                fn to_variance(variance: f64) -> $part {
                    $to_variance(variance)
                }

                fn product(factors: &ComplexProduct) -> Self {
                    Complex::new(factors.0.re as $part, factors.0.im as $part)
                }

                fn is_nonzero(self) -> bool {
                    self.re != 0.0 || self.im != 0.0
                }

                fn is_nan(self) -> bool {
                    self.re.is_nan() || self.im.is_nan()
                }

                fn key(self) -> Self::Key {
                    let (re, im, ..) = self.equal_key();
                    (re, im, Key::key(self.re), Key::key(self.im))
                }

                fn equal_key(self) -> Self::Key {
                    let (re, im) = (self.re.equal_key(), self.im.equal_key());
                    (re, im, re, im)
                }

                fn from_key((_, _, re, im): Self::Key) -> Self {
                    Complex::new(Key::from_key(re), Key::from_key(im))
                }
            }
        )*};
    }

    complex! {
        f32 i32 Sum32 NarrowSquares32 to_f32 mean_f32 |variance| variance as f32;
        f64 i64 Sum64 NarrowSquares64 to_f64 mean_f64 |variance| variance;
    }
}
