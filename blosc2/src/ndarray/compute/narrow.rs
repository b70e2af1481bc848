//! Exact sums that need little memory: the sum of a few `f64` numbers, while these numbers can hold all bits of the
//! sum.

use super::exact::{Exact, Squares32, Squares64, Summand, add_run};

/// The minimum number of items for which a fixed-point sum is faster.
const LONG: usize = 256;

/// An exact sum of floating-point numbers. It is the sum of `parts`, from the largest to the smallest number, and of
/// the fixed-point number `wide`. The fixed-point number is allocated only when the parts cannot hold all bits. A
/// reduction over axes has one such sum for each result, so memory matters.
#[derive(Debug, Clone)]
pub struct Narrow<E, const PARTS: usize = 2> {
    parts: [f64; PARTS],
    wide: Option<Box<E>>,
}

/// The sum of squares of `f64`. Squares have more bits, so three numbers are used.
pub(super) type NarrowSquares64 = Narrow<Squares64, 3>;

impl<E, const PARTS: usize> Default for Narrow<E, PARTS> {
    fn default() -> Self {
        Self { parts: [0.0; PARTS], wide: None }
    }
}

/// A fixed-point sum.
pub trait Wide: Default + Clone {
    fn add(&mut self, value: f64);
    fn add_repeated(&mut self, value: f64, count: u64);
    fn merge(&mut self, other: &Self);
}

impl<const WORDS: usize, const LOW: i32> Wide for Exact<WORDS, LOW> {
    fn add(&mut self, value: f64) {
        self.add(value);
    }

    fn add_repeated(&mut self, value: f64, count: u64) {
        self.add_repeated(value, count);
    }

    fn merge(&mut self, other: &Self) {
        self.merge(other);
    }
}

impl<E: Wide, const PARTS: usize> Narrow<E, PARTS> {
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        let (mut parts, mut rest) = (self.parts, value);
        for part in &mut parts[..PARTS - 1] {
            (*part, rest) = add(*part, rest);
        }
        let last = &mut parts[PARTS - 1];
        let (before, sum) = (*last, *last + rest);
        *last = sum;
        // One of the two differences is always exact. Therefore both conditions are true only if the sum is exact. With
        // NaN or infinity, the conditions are false.
        if sum - before == rest && sum - rest == before {
            self.parts = parts;
        } else {
            self.wide().add(value);
        }
    }

    /// Adds a value `count` times.
    pub(super) fn add_repeated(&mut self, value: f64, count: u64) {
        let times = count as f64;
        if times as u64 != count || count == u64::MAX || !self.add_product(value, times) {
            self.wide().add_repeated(value, count);
        }
    }

    /// Adds the product of two numbers. Returns `false`, and adds nothing, if the error of the product is not exact.
    #[must_use]
    pub(super) fn add_product(&mut self, one: f64, other: f64) -> bool {
        let product = one * other;
        // The error of the product is exact if it does not underflow, and if the halves of the numbers do not overflow.
        let is_safe = |value: f64| value.abs() < LARGE;
        if product == 0.0 && (one == 0.0 || other == 0.0) {
            return true;
        }
        if !is_safe(one) || !is_safe(other) || product.abs() < SMALL {
            return false;
        }
        self.add(product);
        self.add(product_error(one, other, product));
        true
    }

    pub(super) fn merge(&mut self, other: &Self) {
        if let Some(wide) = &other.wide {
            self.wide().merge(wide);
        }
        other.parts.iter().for_each(|part| self.add(*part));
    }

    /// Returns the fixed-point number, for adding values. Allocates it if it does not exist.
    #[cold]
    #[inline(never)]
    pub(super) fn wide(&mut self) -> &mut E {
        self.wide.get_or_insert_default()
    }

    /// Returns the complete sum.
    pub(super) fn total(&self) -> E {
        let mut total = self.wide.as_deref().cloned().unwrap_or_default();
        self.parts.iter().for_each(|part| total.add(*part));
        total
    }
}

/// For numbers below this limit, products and the calculations of [`product_error`] do not overflow.
const LARGE: f64 = f64::from_bits((1023 + 500) << 52);
/// For products of at least this magnitude, the error is exact.
const SMALL: f64 = f64::from_bits((1023 - 900) << 52);

/// Returns the sum of two numbers, and its error.
#[inline(always)]
fn add(one: f64, other: f64) -> (f64, f64) {
    let sum = one + other;
    let second = sum - one;
    (sum, (one - (sum - second)) + (other - second))
}

/// Returns the difference between the exact product of two numbers and the rounded product: Dekker's algorithm.
#[inline(always)]
pub(super) fn product_error(one: f64, other: f64, product: f64) -> f64 {
    // Halves of 26 bits, whose products are exact.
    let halves = |number: f64| {
        let wide = number * 134_217_729.0;
        let high = wide - (wide - number);
        (high, number - high)
    };
    let ((a, b), (c, d)) = (halves(one), halves(other));
    b * d - (((product - a * c) - b * c) - a * d)
}

/// The floating-point numbers that are summed.
pub(super) trait Float: Summand<Sum: Wide, Squares: Wide> + Into<f64> {
    /// The sum of squares.
    type NarrowSquares;

    fn add_square(squares: &mut Self::NarrowSquares, item: Self);

    fn add_squares(squares: &mut Self::NarrowSquares, items: &[Self]);

    fn add_square_repeated(squares: &mut Self::NarrowSquares, item: Self, count: u64);
}

impl Float for f32 {
    type NarrowSquares = Narrow<Squares32>;

    #[inline]
    fn add_square(squares: &mut Narrow<Squares32>, item: f32) {
        // The square of an `f32` is exact in `f64`.
        squares.add(f64::from(item) * f64::from(item));
    }

    fn add_squares(squares: &mut Narrow<Squares32>, items: &[f32]) {
        match items.len() < LONG {
            true => items.iter().for_each(|item| Self::add_square(squares, *item)),
            false => Self::add_run_of_squares(squares.wide(), items),
        }
    }

    fn add_square_repeated(squares: &mut Narrow<Squares32>, item: f32, count: u64) {
        squares.add_repeated(f64::from(item) * f64::from(item), count);
    }
}

impl Float for f64 {
    type NarrowSquares = NarrowSquares64;

    #[inline]
    fn add_square(squares: &mut NarrowSquares64, item: f64) {
        if !squares.add_product(item, item) {
            squares.wide().add_square(item);
        }
    }

    fn add_squares(squares: &mut NarrowSquares64, items: &[f64]) {
        match items.len() < LONG {
            true => items.iter().for_each(|item| Self::add_square(squares, *item)),
            false => Self::add_run_of_squares(squares.wide(), items),
        }
    }

    fn add_square_repeated(squares: &mut NarrowSquares64, item: f64, count: u64) {
        squares.wide().add_square_repeated(item, count);
    }
}

/// Adds items.
pub(super) fn add_items<T: Float>(sum: &mut Narrow<T::Sum>, items: &[T]) {
    match items.len() < LONG {
        true => items.iter().for_each(|item| sum.add((*item).into())),
        false => add_run(sum.wide(), items),
    }
}

#[cfg(test)]
mod tests {
    use super::super::exact::Sum64;
    use super::*;

    #[test]
    fn sums_are_those_of_fixed_point_numbers() {
        let mut random = fastrand::Rng::with_seed(7);
        for round in 0..2000 {
            let spread = [0, 4, 40, 300, 1000][round % 5];
            let item = |random: &mut fastrand::Rng| {
                let scale = 2f64.powi(random.i32(-spread..=spread));
                match random.u8(..20) {
                    0 => 0.0,
                    1 => -0.0,
                    2 if round % 50 == 0 => f64::INFINITY,
                    3 if round % 70 == 0 => f64::NAN,
                    _ => (random.f64() - 0.5) * scale,
                }
            };
            let (mut sum, mut expected) = (Narrow::<Sum64>::default(), Sum64::default());
            let (mut squares, mut wide_squares) =
                (NarrowSquares64::default(), Squares64::default());
            for _ in 0..random.usize(..60) {
                let (value, count) = (item(&mut random), random.u64(..).leading_zeros().into());
                match random.u8(..3) {
                    0 => {
                        sum.add(value);
                        expected.add(value);
                    }
                    1 => {
                        sum.add_repeated(value, count);
                        expected.add_repeated(value, count);
                    }
                    _ => {
                        let mut other = Narrow::<Sum64>::default();
                        other.add(value);
                        other.add(1.0 / 3.0);
                        sum.merge(&other);
                        expected.add(value);
                        expected.add(1.0 / 3.0);
                    }
                }
                f64::add_square(&mut squares, value);
                wide_squares.add_square(value);
            }
            let bits = |value: f64| if value.is_nan() { None } else { Some(value.to_bits()) };
            assert_eq!(bits(sum.total().to_f64()), bits(expected.to_f64()));
            assert_eq!(bits(squares.total().to_f64()), bits(wide_squares.to_f64()));
        }
    }
}
