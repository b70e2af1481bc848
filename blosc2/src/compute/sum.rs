//! Sums, and sums of squared distances from the mean.

use std::array;

use super::lanes::{Accumulator, Groups, HALF, LANES};

/// A compensated sum: the rounded sum, and the sum of the rounding errors.
///
/// The error of each addition is known, because it is a floating-point number itself (Knuth's algorithm, like the one of
/// Neumaier). The sum is infinite or NaN if a sum of some of the items is.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sum {
    sum: f64,
    error: f64,
}

impl Sum {
    #[inline]
    fn new(sum: f64, error: f64) -> Self {
        // The error of an infinite sum is NaN.
        Self { sum, error: if error.is_finite() { error } else { 0.0 } }
    }

    #[inline]
    pub(super) fn plus(self, other: Self) -> Self {
        let (sum, error) = add(self.sum, other.sum);
        let Self { sum, error } = Self::new(sum, error + (self.error + other.error));
        // The error is again less than the last bit of the sum, so that its own rounding errors do not grow.
        let all = sum + error;
        Self::new(all, error - (all - sum))
    }

    pub(super) fn repeated(number: f64, count: u64) -> Self {
        // Both parts of the count are exact. The fused multiplication returns the error of the product.
        let part = |count: u64| {
            let product = number * count as f64;
            Self::new(product, number.mul_add(count as f64, -product))
        };
        match (count >> 32 << 32, count & 0xffff_ffff) {
            // Without the product of an infinity and 0.
            (0, low) => part(low),
            (high, 0) => part(high),
            (high, low) => part(high).plus(part(low)),
        }
    }

    #[inline]
    pub(super) fn total(self) -> f64 {
        self.sum + self.error
    }

    pub(super) fn mean(self, count: u64) -> f64 {
        self.total() / count as f64
    }
}

impl From<f64> for Sum {
    fn from(number: f64) -> Self {
        Self { sum: number, error: 0.0 }
    }
}

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

/// Returns the rounded sums of the lanes, and the sums of their rounding errors.
#[inline(never)]
fn sums(groups: Groups<'_, f64>) -> [[f64; LANES]; 2] {
    let mut all = [[0.0; LANES]; 2];
    for from in [0, HALF] {
        let (mut sums, mut errors) = ([0.0; HALF], [0.0; HALF]);
        for group in groups.part::<HALF>(from) {
            for lane in 0..HALF {
                let (sum, error) = add(sums[lane], group[lane]);
                sums[lane] = sum;
                errors[lane] += error;
            }
        }
        all[0][from..from + HALF].copy_from_slice(&sums);
        all[1][from..from + HALF].copy_from_slice(&errors);
    }
    all
}

impl Accumulator<f32> for Sum {
    fn lanes(groups: Groups<'_, f32>) -> [Self; LANES] {
        // An `f64` has 29 more bits than the items, and a lane has few items.
        let mut sums = [0.0; LANES];
        for group in groups.iter() {
            for lane in 0..LANES {
                sums[lane] += f64::from(group[lane]);
            }
        }
        sums.map(Self::from)
    }

    fn add_repeated(&mut self, item: f32, count: u64) {
        Accumulator::<f64>::add_repeated(self, item.into(), count);
    }

    fn merge(&mut self, other: &Self) {
        *self = self.plus(*other);
    }
}

impl Accumulator<f64> for Sum {
    fn lanes(groups: Groups<'_, f64>) -> [Self; LANES] {
        let [sums, errors] = sums(groups);
        array::from_fn(|lane| Self::new(sums[lane], errors[lane]))
    }

    fn add_repeated(&mut self, item: f64, count: u64) {
        let added = if count == 1 { item.into() } else { Self::repeated(item, count) };
        *self = self.plus(added);
    }

    fn merge(&mut self, other: &Self) {
        *self = self.plus(*other);
    }
}

/// An item that has a distance from other items.
pub trait Distance: Copy + Default + Send {
    /// Returns the difference, rounded once.
    fn minus(self, other: Self) -> f64;
}

/// The sum of the squared distances of items from their mean.
///
/// Distances are relative to one of the items, `shift`, so that the result does not lose precision if all items are far
/// from zero. Two such sums are combined by the formula of Chan, Golub and LeVeque.
#[derive(Debug, Clone)]
pub struct Moments<T> {
    count: u64,
    shift: T,
    /// The sum of the distances from `shift`.
    distances: Sum,
    /// The sum of the squared distances from the mean.
    squares: Sum,
}

impl<T: Distance> Default for Moments<T> {
    fn default() -> Self {
        Self::new(0, T::default(), 0.0, 0.0)
    }
}

impl<T: Distance> Moments<T> {
    /// Creates the state of `count` items from the sums of their distances from `shift` and of the squares of these
    /// distances. If `shift` is one of the items, the squares are at most `count + 1` times the result. Therefore the
    /// difference loses few bits.
    #[inline]
    fn new(count: usize, shift: T, distances: f64, squares: f64) -> Self {
        let squares = squares - distances * distances / count.max(1) as f64;
        // If squares underflow, the difference may be negative. NaN remains.
        let squares = if squares < 0.0 { 0.0 } else { squares };
        Self { count: count as u64, shift, distances: distances.into(), squares: squares.into() }
    }

    pub(super) fn variance(&self, ddof: u64) -> f64 {
        self.squares.total() / self.count.saturating_sub(ddof) as f64
    }

    /// Returns the sum of the variances of the parts of as many complex numbers.
    #[cfg(feature = "num-complex")]
    pub(super) fn variance_with(&self, other: &Self, ddof: u64) -> f64 {
        self.squares.plus(other.squares).total() / self.count.saturating_sub(ddof) as f64
    }
}

/// Returns the sums of the distances from `shift`, and of their squares.
#[inline(never)]
fn distances<T: Distance>(groups: Groups<'_, T>, shift: &[T; LANES]) -> [[f64; LANES]; 2] {
    let mut all = [[0.0; LANES]; 2];
    for from in [0, HALF] {
        let (mut distances, mut squares) = ([0.0; HALF], [0.0; HALF]);
        for group in groups.part::<HALF>(from) {
            for lane in 0..HALF {
                let distance = group[lane].minus(shift[from + lane]);
                distances[lane] += distance;
                squares[lane] += distance * distance;
            }
        }
        all[0][from..from + HALF].copy_from_slice(&distances);
        all[1][from..from + HALF].copy_from_slice(&squares);
    }
    all
}

impl<T: Distance> Accumulator<T> for Moments<T> {
    fn lanes(groups: Groups<'_, T>) -> [Self; LANES] {
        let shift = groups.first();
        let [distances, squares] = distances(groups, shift);
        array::from_fn(|at| Self::new(groups.count, shift[at], distances[at], squares[at]))
    }

    fn add_groups(&mut self, groups: Groups<'_, T>) {
        let shift = groups.first()[0];
        let [distances, squares] =
            distances(groups, &[shift; LANES]).map(|lanes| lanes.into_iter().sum());
        self.merge(&Self::new(groups.count * LANES, shift, distances, squares));
    }

    fn add_repeated(&mut self, item: T, count: u64) {
        // 0, or NaN for NaN and infinities.
        let distance = item.minus(item);
        self.merge(&Self { count, ..Self::new(1, item, distance, distance) });
    }

    fn merge(&mut self, other: &Self) {
        if self.count == 0 || other.count == 0 {
            if self.count == 0 {
                *self = other.clone();
            }
            return;
        }
        let (count, other_count) = (self.count as f64, other.count as f64);
        let apart = other.shift.minus(self.shift);
        let distance =
            apart + other.distances.total() / other_count - self.distances.total() / count;
        let between = distance * distance * (count * other_count / (count + other_count));
        self.squares = self.squares.plus(other.squares).plus(between.into());
        self.distances = self.distances.plus((apart * other_count).into()).plus(other.distances);
        self.count += other.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compute::lanes::{BLOCK, GROUPS};

    /// The unit of exact sums is 2^-60.
    const UNIT: f64 = 1.0 / (1u64 << 60) as f64;

    /// Returns a multiple of 2^-60 below 2^30. Most items have different magnitudes, and some are equal except for their
    /// sign.
    fn item(random: &mut fastrand::Rng, bits: i32) -> f64 {
        let digits = random.i64(-(1 << bits)..1 << bits);
        digits as f64 * 2f64.powi(random.i32(-60..30 - bits))
    }

    fn exact(items: &[f64]) -> i128 {
        items.iter().map(|item| (item / UNIT) as i128).sum()
    }

    /// The sum of the magnitudes.
    fn size(items: &[f64]) -> f64 {
        items.iter().map(|item| item.abs()).sum()
    }

    fn items(random: &mut fastrand::Rng, bits: i32) -> Vec<f64> {
        let count = *random.choice(&[0, 1, 15, 16, 17, 300, BLOCK - 1, BLOCK, 5000]).unwrap();
        let mut items: Vec<f64> = (0..count).map(|_| item(random, bits)).collect();
        if random.bool() {
            // Almost all digits cancel out.
            let half = count / 2;
            (0..half).for_each(|at| items[at + half] = -items[at]);
            random.shuffle(&mut items);
        }
        items
    }

    /// Adds items: all, or as the columns of rows.
    fn add_all<T: Copy, A: Accumulator<T>>(items: &[T]) -> [A; 2] {
        let (mut all, mut of_columns) = (A::default(), A::default());
        all.add(items);
        let width = 19.min(items.len());
        if width > 0 {
            let mut columns = vec![A::default(); width];
            let (rows, rest) = items.split_at(items.len() / width * width);
            A::add_rows(&mut columns, rows);
            columns.iter().for_each(|column| of_columns.merge(column));
            rest.iter().for_each(|item| of_columns.add_repeated(*item, 1));
        }
        [all, of_columns]
    }

    /// Checks the errors that the documentation of `LazyExpr` states.
    #[test]
    fn errors_of_sums_are_small() {
        let mut random = fastrand::Rng::with_seed(3);
        for _ in 0..500 {
            let all = items(&mut random, 52);
            let wanted = exact(&all);
            for sum in add_all::<f64, Sum>(&all) {
                let error = (wanted - (sum.sum / UNIT) as i128) as f64 * UNIT - sum.error;
                assert!(error.abs() <= size(&all) * 2f64.powi(-64), "{error:e}");
                assert_eq!(sum.total(), sum.sum);
            }
            let all = items(&mut random, 23);
            let wanted = exact(&all);
            let narrow: Vec<f32> = all.iter().map(|item| *item as f32).collect();
            for sum in add_all::<f32, Sum>(&narrow) {
                let error = (wanted - (sum.total() / UNIT) as i128) as f64 * UNIT;
                assert!(error.abs() <= size(&all) * 2f64.powi(-46), "{error:e}");
            }
            let (one, count) = (item(&mut random, 40), random.u64(..1 << 36));
            let sum = Sum::repeated(one, count);
            assert_eq!(
                (sum.sum / UNIT) as i128 + (sum.error / UNIT) as i128,
                exact(&[one]) * i128::from(count)
            );
        }
    }

    #[test]
    fn sums_that_overflow_are_not_finite() {
        let add = |items: &[f64]| {
            let [all, columns] = add_all::<f64, Sum>(items).map(Sum::total);
            assert!(all == columns || all.is_nan() && columns.is_nan());
            all
        };
        let (inf, max) = (f64::INFINITY, f64::MAX);
        assert_eq!(add(&[inf]), inf);
        assert_eq!(add(&[1.0, inf, 2.0]), inf);
        assert_eq!(add(&[-inf; 40]), -inf);
        assert!(add(&[inf, -inf]).is_nan() && add(&[f64::NAN, inf]).is_nan());
        assert_eq!(add(&[max, max]), inf);
        assert_eq!(add(&[max, -max]), 0.0);
        assert_eq!(Sum::repeated(max, 3).total(), inf);
    }

    /// The variance of integers, which `i128` holds exactly. `start` is far from zero.
    #[test]
    fn errors_of_variances_are_small() {
        let mut random = fastrand::Rng::with_seed(4);
        for round in 0..300 {
            let count = random.usize(1..4 * BLOCK);
            let spread = 1i64 << random.u32(1..30);
            let mut distances: Vec<i64> = (0..count).map(|_| random.i64(0..spread)).collect();
            if round % 3 == 0 {
                // The first item of each block is an outlier.
                distances.iter_mut().step_by(BLOCK).for_each(|first| *first += 1 << 32);
            }
            let start = [0, 1 << 52, -1 << 51][round % 3];
            let sum: i128 = distances.iter().map(|item| i128::from(*item)).sum();
            let squares: i128 = distances.iter().map(|item| i128::from(*item).pow(2)).sum();
            let exact = (count as i128 * squares - sum * sum) as f64 / (count as f64).powi(2);
            let ints: Vec<i64> = distances.iter().map(|item| item + start).collect();
            let floats: Vec<f64> = ints.iter().map(|item| *item as f64).collect();
            let check = |found: f64| {
                let error = (found - exact).abs();
                assert!(error <= exact * 2f64.powi(-36), "{found:e} {exact:e}");
            };
            add_all::<i64, Moments<i64>>(&ints).iter().for_each(|found| check(found.variance(0)));
            add_all::<f64, Moments<f64>>(&floats).iter().for_each(|found| check(found.variance(0)));
        }
        let mut equal = Moments::default();
        (0..GROUPS as u64).for_each(|count| equal.add_repeated(0.1f64, count + 1));
        assert_eq!(equal.variance(0), 0.0);
    }
}
