//! Exact sums of floating-point numbers. A sum is a fixed-point number that holds every bit of its items, and is
//! rounded once at the end. Therefore the result does not depend on the order of the items, the chunks or the threads.
//!
//! For long runs of items, a faster method is used: a plain sum of `f64` is exact if all bits of the items and of their
//! sum lie within 53 bits. The functions for runs compute such sums for pieces of [`PIECE`] items, in loops over lanes
//! that the compiler vectorizes.

/// The exact sum of floating-point numbers: `WORDS` digits of 32 bits, the least significant first. The lowest bit of
/// the sum has the weight 2^`LOW`. Each digit is an `i64`: it may be negative or exceed 32 bits until carries are
/// propagated.
///
/// Every item has to be a multiple of 2^`LOW`. The sum of 2^63 items of the largest magnitude fits.
#[derive(Clone, Debug)]
pub struct Exact<const WORDS: usize, const LOW: i32> {
    digits: [i64; WORDS],
    /// The number of additions since carries were propagated last.
    pending: u32,
    /// The sum of all added NaN and infinities; 0 if none was added.
    special: f64,
}

/// Sums of `f32` and `f16`.
pub(super) type Sum32 = Exact<12, -149>;
/// Sums of squares of `f32` and `f16`.
pub(super) type Squares32 = Exact<20, -298>;
/// Sums of `f64`.
pub(super) type Sum64 = Exact<68, -1074>;
/// Sums of squares of `f64`.
pub(super) type Squares64 = Exact<134, -2148>;
/// Sums of squares of integers of at most 64 bits.
pub(super) type SquaresInt = Exact<7, 0>;

/// The maximum number of additions before carries are propagated. Each addition changes a digit by less than 2^32, so
/// that digits do not overflow.
const MAX_PENDING: u32 = 1 << 30;

impl<const WORDS: usize, const LOW: i32> Default for Exact<WORDS, LOW> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const WORDS: usize, const LOW: i32> Exact<WORDS, LOW> {
    pub(super) const fn new() -> Self {
        Self { digits: [0; WORDS], pending: 0, special: 0.0 }
    }

    /// Adds `value`, a multiple of 2^`LOW`.
    #[inline]
    pub(super) fn add(&mut self, value: f64) {
        if !value.is_finite() {
            self.special += value;
            return;
        }
        let (mantissa, position) = Self::place(value);
        self.add_at(value.is_sign_negative(), mantissa, position);
    }

    /// Adds `count` times `value`, a multiple of 2^`LOW`.
    pub(super) fn add_repeated(&mut self, value: f64, count: u64) {
        if count == 0 {
            return;
        }
        if !value.is_finite() {
            self.special += value;
            return;
        }
        let (mantissa, position) = Self::place(value);
        let product = u128::from(mantissa) * u128::from(count);
        self.add_wide(value.is_sign_negative(), product, position);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        // Digits of `other` may be almost 2^62. The digits of `self` have to be small, so that their sum does not
        // overflow.
        self.carry();
        for (digit, added) in self.digits.iter_mut().zip(&other.digits) {
            *digit += added;
        }
        self.carry();
        self.special += other.special;
    }

    /// The sum, rounded to the nearest `f64`.
    pub(super) fn to_f64(&self) -> f64 {
        f64::from_bits(self.quotient(1, F64))
    }

    /// The sum, rounded to the nearest `f32`.
    pub(super) fn to_f32(&self) -> f32 {
        f32::from_bits(self.quotient(1, F32) as u32)
    }

    /// The bits of the sum, rounded to the nearest `f16`.
    #[cfg(any(feature = "half", test))]
    pub(super) fn to_f16_bits(&self) -> u16 {
        self.quotient(1, F16) as u16
    }

    /// The sum divided by `count`, rounded once, to the nearest `f64`. NaN if `count` is 0.
    pub(super) fn mean_f64(&self, count: u64) -> f64 {
        f64::from_bits(self.quotient(count, F64))
    }

    /// The sum divided by `count`, rounded once, to the nearest `f32`. NaN if `count` is 0.
    pub(super) fn mean_f32(&self, count: u64) -> f32 {
        f32::from_bits(self.quotient(count, F32) as u32)
    }

    /// The bits of the sum divided by `count`, rounded once, to the nearest `f16`. NaN if `count` is 0.
    #[cfg(any(feature = "half", test))]
    pub(super) fn mean_f16_bits(&self, count: u64) -> u16 {
        self.quotient(count, F16) as u16
    }

    /// The bits of the sum divided by `count`.
    fn quotient(&self, count: u64, format: Format) -> u64 {
        if self.special.is_nan() || count == 0 {
            return format.nan();
        }
        let (negative, magnitude) = if self.special == 0.0 {
            let (negative, limbs) = self.magnitude();
            let mut leading = Leading::new(&limbs, LOW);
            leading.divide(count);
            (negative, leading.round(format))
        } else {
            (self.special < 0.0, format.infinity())
        };
        magnitude | u64::from(negative) << format.sign_bit()
    }

    /// The magnitude of a finite value as an integer, and the position of the lowest bit of that integer.
    fn place(value: f64) -> (u64, u32) {
        let (mantissa, exponent) = decompose(value);
        let position = exponent - LOW;
        if position >= 0 {
            return (mantissa, position as u32);
        }
        // The item had a narrower type, so the bits of the f64 below 2^LOW are zero.
        let excess = position.unsigned_abs();
        let shifted = mantissa.checked_shr(excess).unwrap_or(0);
        debug_assert_eq!(
            shifted.checked_shl(excess).unwrap_or(0),
            mantissa,
            "{value:e} has bits below 2^{LOW}"
        );
        (shifted, 0)
    }

    /// Adds or subtracts `magnitude`, whose lowest bit is bit `position` of the sum.
    #[inline]
    fn add_at(&mut self, negative: bool, magnitude: u64, position: u32) {
        if self.pending == MAX_PENDING {
            self.carry();
        }
        self.pending += 1;
        let word = (position / 32) as usize;
        let shifted = u128::from(magnitude) << (position % 32);
        // Zero, or -1 to negate: !x + 1 == -x.
        let sign = -i64::from(negative);
        let digits = &mut self.digits[word..word + 3];
        for (index, digit) in digits.iter_mut().enumerate() {
            let part = i64::from((shifted >> (32 * index)) as u32);
            *digit += (part ^ sign) - sign;
        }
    }

    fn add_wide(&mut self, negative: bool, magnitude: u128, position: u32) {
        self.add_at(negative, magnitude as u64, position);
        self.add_at(negative, (magnitude >> 64) as u64, position + 64);
    }

    /// Adds `magnitude * count`, whose lowest bit is bit `position` of the sum.
    fn add_multiple(&mut self, magnitude: u128, count: u64, position: u32) {
        let count = u128::from(count);
        self.add_wide(false, (magnitude & u128::from(u64::MAX)) * count, position);
        self.add_wide(false, (magnitude >> 64) * count, position + 64);
    }

    /// Propagates carries, so that all digits except the last are in the range 0..2^32. The last digit has the sign of
    /// the sum.
    fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..WORDS - 1] {
            let total = *digit + carry;
            *digit = total & 0xffff_ffff;
            carry = total >> 32;
        }
        self.digits[WORDS - 1] += carry;
        self.pending = 0;
    }

    /// Whether the sum of the finite items is negative, and its magnitude.
    fn magnitude(&self) -> (bool, Limbs) {
        const { assert!(WORDS.div_ceil(2) <= LIMBS) };
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.digits[WORDS - 1] < 0;
        if negative {
            for digit in &mut sum.digits {
                *digit = -*digit;
            }
            sum.carry();
        }
        debug_assert!(sum.digits[WORDS - 1] >> 32 == 0, "the sum is too large");
        let mut limbs = [0; LIMBS];
        for (limb, digits) in limbs.iter_mut().zip(sum.digits.chunks(2)) {
            *limb = digits[0] as u64 | digits.get(1).map_or(0, |&high| (high as u64) << 32);
        }
        (negative, limbs)
    }
}

impl Squares64 {
    /// Adds the exact square of `value`. The square cannot overflow or underflow.
    #[inline]
    pub(super) fn add_square(&mut self, value: f64) {
        if !value.is_finite() {
            self.special += value * value;
            return;
        }
        let (mantissa, exponent) = decompose(value);
        let square = u128::from(mantissa).pow(2);
        self.add_wide(false, square, (2 * exponent + 2148) as u32);
    }

    /// Adds `count` times the square of `value`.
    pub(super) fn add_square_repeated(&mut self, value: f64, count: u64) {
        if count == 0 {
            return;
        }
        if !value.is_finite() {
            self.special += value * value;
            return;
        }
        let (mantissa, exponent) = decompose(value);
        let square = u128::from(mantissa).pow(2);
        self.add_multiple(square, count, (2 * exponent + 2148) as u32);
    }
}

impl SquaresInt {
    /// Adds the square of an integer, or a sum of several squares.
    #[inline]
    pub(super) fn add_integer(&mut self, square: u128) {
        self.add_wide(false, square, 0);
    }

    /// Adds `count` times the square of an integer.
    pub(super) fn add_integer_repeated(&mut self, square: u128, count: u64) {
        self.add_multiple(square, count, 0);
    }
}

/// The integer `mantissa` and the `exponent` with |value| = mantissa * 2^exponent.
#[inline]
fn decompose(value: f64) -> (u64, i32) {
    let bits = value.to_bits();
    let fraction = bits & ((1 << 52) - 1);
    match (bits >> 52) as i32 & 0x7ff {
        0 => (fraction, -1074),
        biased => (fraction | 1 << 52, biased - 1075),
    }
}

/// A binary floating-point format of IEEE 754.
#[derive(Clone, Copy)]
struct Format {
    /// The bits of a mantissa, with the leading one.
    precision: u32,
    exponent_bits: u32,
}

const F64: Format = Format { precision: 53, exponent_bits: 11 };
const F32: Format = Format { precision: 24, exponent_bits: 8 };
#[cfg(any(feature = "half", test))]
const F16: Format = Format { precision: 11, exponent_bits: 5 };

impl Format {
    fn infinity(self) -> u64 {
        ((1 << self.exponent_bits) - 1) << (self.precision - 1)
    }

    fn nan(self) -> u64 {
        self.infinity() | 1 << (self.precision - 2)
    }

    fn sign_bit(self) -> u32 {
        self.precision - 1 + self.exponent_bits
    }

    /// The smallest positive number is 2 to this power.
    fn lowest_exponent(self) -> i32 {
        3 - (1 << (self.exponent_bits - 1)) - self.precision as i32
    }
}

/// The number of 64-bit limbs of the longest integer in this module, `count * squares`. The least significant limb is
/// the first one.
const LIMBS: usize = 72;
type Limbs = [u64; LIMBS];

/// Returns the low limb of `a * b + c + d`, and the carry. They cannot overflow.
fn multiply_add(a: u64, b: u64, c: u64, d: u64) -> (u64, u64) {
    let wide = u128::from(a) * u128::from(b) + u128::from(c) + u128::from(d);
    (wide as u64, (wide >> 64) as u64)
}

/// The range of the limbs from the first to the last that is not zero.
fn significant(limbs: &[u64]) -> std::ops::Range<usize> {
    let end = limbs.iter().rposition(|&limb| limb != 0).map_or(0, |last| last + 1);
    let start = limbs.iter().position(|&limb| limb != 0).unwrap_or(0);
    start..end
}

/// Adds `numbers * factor` to `total`, starting at the limb `at`.
fn add_product(total: &mut [u64], at: usize, numbers: &[u64], factor: u64) {
    let mut carry = 0;
    for (limb, &number) in total[at..].iter_mut().zip(numbers) {
        (*limb, carry) = multiply_add(number, factor, *limb, carry);
    }
    for limb in &mut total[at + numbers.len()..] {
        if carry == 0 {
            break;
        }
        (*limb, carry) = multiply_add(1, carry, *limb, 0);
    }
}

/// Adds `count * squares - sum * sum`, which is never negative, to `total`.
fn add_spread(total: &mut Limbs, count: u64, sum: &[u64], squares: &[u64]) {
    let range = significant(squares);
    add_product(total, range.start, &squares[range], count);
    let mut square = [0; LIMBS];
    let range = significant(sum);
    for index in range.clone() {
        add_product(&mut square, index + range.start, &sum[range.clone()], sum[index]);
    }
    let mut borrow = false;
    for (limb, &subtracted) in total.iter_mut().zip(&square) {
        let (difference, first) = limb.overflowing_sub(subtracted);
        let (difference, second) = difference.overflowing_sub(u64::from(borrow));
        *limb = difference;
        borrow = first | second;
    }
    debug_assert!(!borrow, "these are not the squares of the items of the sum");
}

/// `spread / (count * max(count - ddof, 0))`, rounded once. The lowest bit of `spread` has the weight 2^`low`.
fn divide_spread(spread: &Limbs, low: i32, count: u64, ddof: u64) -> f64 {
    let freedom = count.saturating_sub(ddof);
    if freedom == 0 {
        let zero = count == 0 || spread.iter().all(|&limb| limb == 0);
        return if zero { f64::NAN } else { f64::INFINITY };
    }
    let mut leading = Leading::new(spread, low);
    leading.divide(count);
    leading.divide(freedom);
    f64::from_bits(leading.round(F64))
}

/// The variance of `count` items, rounded once: the sum over `parts` of `(count * squares - sum^2)`, divided by
/// `count * max(count - ddof, 0)`. Each of `parts` has a sum, and the sum of squares of the same items. Real numbers
/// have one part. Complex numbers have two parts, one of the real numbers and one of the imaginary numbers.
///
/// The result is NaN if an item is NaN or infinite. If `ddof >= count`, the result is NaN if all items are equal, and
/// otherwise infinity.
pub(super) fn variance<
    const S: usize,
    const Q: usize,
    const SUM_LOW: i32,
    const SQUARES_LOW: i32,
>(
    count: u64,
    parts: &[(&Exact<S, SUM_LOW>, &Exact<Q, SQUARES_LOW>)],
    ddof: u64,
) -> f64 {
    const { assert!(SQUARES_LOW == 2 * SUM_LOW && Q.div_ceil(2) < LIMBS && S < LIMBS) };
    let mut spread = [0; LIMBS];
    for (sum, squares) in parts {
        if sum.special != 0.0 || squares.special != 0.0 {
            return f64::NAN;
        }
        add_spread(&mut spread, count, &sum.magnitude().1, &squares.magnitude().1);
    }
    divide_spread(&spread, SQUARES_LOW, count, ddof)
}

/// The variance of `count` integers, by the rules of [`variance`].
pub(super) fn variance_of_integers(count: u64, sum: i128, squares: &SquaresInt, ddof: u64) -> f64 {
    let sum = sum.unsigned_abs();
    let mut spread = [0; LIMBS];
    add_spread(&mut spread, count, &[sum as u64, (sum >> 64) as u64], &squares.magnitude().1);
    divide_spread(&spread, 0, count, ddof)
}

/// The leading 192 bits of a number. They are enough to divide the number twice by 64-bit integers, and to round the
/// quotient correctly.
struct Leading {
    /// The most significant first.
    limbs: [u64; 3],
    /// The weight of the lowest bit is 2 to this power.
    exponent: i32,
    /// Whether the number is greater than `limbs`, by less than the weight of the lowest bit.
    inexact: bool,
}

impl Leading {
    fn new(limbs: &[u64], low: i32) -> Self {
        let length = significant(limbs).end;
        let mut leading = [0; 4];
        for (to, from) in leading.iter_mut().zip(limbs[..length].iter().rev()) {
            *to = *from;
        }
        let shift = leading[0].leading_zeros() % 64;
        let lower = &limbs[..length.saturating_sub(4)];
        Self {
            limbs: [0, 1, 2].map(|index| shift_left(leading[index], leading[index + 1], shift)),
            exponent: low + 64 * (length as i32 - 3) - shift as i32,
            inexact: leading[3] << shift != 0 || lower.iter().any(|&limb| limb != 0),
        }
    }

    /// Divides by `divisor`, which must not be 0, and rounds down to an integer.
    fn divide(&mut self, divisor: u64) {
        let divisor = u128::from(divisor);
        let mut remainder = 0;
        for limb in &mut self.limbs {
            let dividend = remainder << 64 | u128::from(*limb);
            *limb = (dividend / divisor) as u64;
            remainder = dividend % divisor;
        }
        self.inexact |= remainder != 0;
    }

    /// Returns the bits of the nearest number of this format. If two numbers are equally near, the one with the even
    /// mantissa.
    fn round(&self, format: Format) -> u64 {
        let Some(first) = self.limbs.iter().position(|&limb| limb != 0) else { return 0 };
        let shift = self.limbs[first].leading_zeros();
        let next = |index| self.limbs.get(index).copied().unwrap_or(0);
        let leading = shift_left(self.limbs[first], next(first + 1), shift);
        let rest = next(first + 1) << shift != 0 || next(first + 2) != 0 || self.inexact;
        // One bit below the leading 64 bits is set if any lower bit is set.
        let wide = u128::from(leading) << 1 | u128::from(rest);
        let exponent = self.exponent + 64 * (2 - first as i32) - shift as i32 - 1;

        let lowest = format.lowest_exponent();
        let unit = (exponent + 65 - format.precision as i32).max(lowest);
        let dropped = (unit - exponent).min(127);
        let half = 1 << (dropped - 1);
        let (kept, rest) = (wide >> dropped, wide & (2 * half - 1));
        let up = rest > half || rest == half && kept & 1 == 1;
        // The leading one of a normal number, and a carry out of the mantissa, both increase the exponent by 1.
        let biased = ((unit - lowest) as u64).min(1 << format.exponent_bits);
        ((biased << (format.precision - 1)) + kept as u64 + u64::from(up)).min(format.infinity())
    }
}

/// Returns the upper 64 bits of the number of the limbs `high` and `low`, shifted left by less than 64 bits.
fn shift_left(high: u64, low: u64, shift: u32) -> u64 {
    ((u128::from(high) << 64 | u128::from(low)) << shift >> 64) as u64
}

/// Items that can be summed in runs.
pub(super) trait Summand: Copy {
    type Sum;
    type Squares;

    /// Adds `items`. [`add_run`] is faster.
    fn add_each(sum: &mut Self::Sum, items: &[Self]);

    /// Adds the squares of `items`.
    fn add_run_of_squares(squares: &mut Self::Squares, items: &[Self]);
}

/// Adds `items`, with the widest vectors of this processor.
pub(super) fn add_run<T: Summand>(sum: &mut T::Sum, items: &[T]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions for which the function is compiled.
        return unsafe { add_run_avx2(sum, items) };
    }
    T::add_each(sum, items);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn add_run_avx2<T: Summand>(sum: &mut T::Sum, items: &[T]) {
    T::add_each(sum, items);
}

/// The number of items that are summed at once.
const PIECE: usize = 1024;

/// The number of separate lanes, which vectorized code adds at the same time.
const LANES: usize = 16;

/// Calls `step` with groups of `N` items. The last group is filled up with `filler`.
#[inline(always)]
fn in_lanes<T: Copy, const N: usize>(items: &[T], filler: T, mut step: impl FnMut(&[T; N])) {
    let (chunks, tail) = items.as_chunks();
    for chunk in chunks {
        step(chunk);
    }
    if !tail.is_empty() {
        let mut last = [filler; N];
        last[..tail.len()].copy_from_slice(tail);
        step(&last);
    }
}

/// The minimum number of items for which the loops over lanes are faster than single additions.
const SHORT: usize = 16;

/// Returns the largest magnitude. NaN is ignored.
#[inline(always)]
fn largest<T: Copy + Default, const N: usize>(
    items: &[T],
    keep_larger: impl Fn(&mut T, T) + Copy,
) -> T {
    let mut lanes = [T::default(); N];
    in_lanes(items, T::default(), |chunk: &[T; N]| {
        for (lane, &item) in lanes.iter_mut().zip(chunk) {
            keep_larger(lane, item);
        }
    });
    let mut largest = T::default();
    for lane in lanes {
        keep_larger(&mut largest, lane);
    }
    largest
}

#[inline(always)]
fn keep_larger_f32(largest: &mut f32, item: f32) {
    *largest = if item.abs() > *largest { item.abs() } else { *largest };
}

#[inline(always)]
fn keep_larger_f64(largest: &mut f64, item: f64) {
    *largest = if item.abs() > *largest { item.abs() } else { *largest };
}

// Sums of f32 in f64. Let B be the power of two above the largest magnitude. Items of at least B * 2^-20 are multiples
// of B * 2^-43. The sum of 1024 of these items is below B * 2^10, so that every partial sum has at most 53 bits. The
// loop skips smaller items. A further pass with a smaller B adds them.

/// Returns `B * 2^-20`, or 0 if this is not a normal number. With a bound of 0, the sums are exact too.
#[inline(always)]
fn lower_bound(largest: f32) -> f32 {
    let exponent = largest.to_bits() >> 23;
    f32::from_bits(exponent.saturating_sub(19) << 23)
}

/// Adds `item` to `sum` if its magnitude is at least `bound`, or if it is NaN. Otherwise, its bits are added to
/// `skipped`.
#[inline(always)]
fn add_bounded(sum: &mut f64, skipped: &mut u32, bound: f32, item: f32) {
    let below = item.abs() < bound;
    *sum += f64::from(if below { 0.0 } else { item });
    *skipped |= if below { item.to_bits() } else { 0 };
}

/// Adds up to [`PIECE`] items, except items below a bound. Returns this bound if nonzero items were skipped.
#[inline(always)]
fn add_largest(sum: &mut Sum32, items: &[f32]) -> Option<f32> {
    let mut extremes = [(0.0, f32::INFINITY); LANES];
    in_lanes(items, items[0], |chunk: &[f32; LANES]| {
        for ((largest, smallest), &item) in extremes.iter_mut().zip(chunk) {
            keep_larger_f32(largest, item);
            *smallest = if item.abs() < *smallest { item.abs() } else { *smallest };
        }
    });
    let largest = extremes.iter().fold(0.0, |all: f32, lane| all.max(lane.0));
    let smallest = extremes.iter().fold(f32::INFINITY, |all, lane| all.min(lane.1));
    let bound = lower_bound(largest);
    let mut sums = [0.0; LANES];
    let mut skipped = [0; LANES];
    if smallest >= bound {
        in_lanes(items, 0.0, |chunk: &[f32; LANES]| {
            for (sum, &item) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(item);
            }
        });
    } else {
        in_lanes(items, 0.0, |chunk: &[f32; LANES]| {
            for lane in 0..LANES {
                add_bounded(&mut sums[lane], &mut skipped[lane], bound, chunk[lane]);
            }
        });
    }
    let total: f64 = sums.iter().sum();
    if !total.is_finite() {
        add_singly(sum, items);
        return None;
    }
    sum.add(total);
    any_but_sign(&skipped).then_some(bound)
}

/// Returns whether a bit other than the sign bit is set in `bits`: zeros of both signs do not count.
#[inline(always)]
fn any_but_sign(bits: &[u32]) -> bool {
    bits.iter().fold(0, |all, bits| all | bits) << 1 != 0
}

#[cold]
#[inline(never)]
fn add_singly(sum: &mut Sum32, items: &[f32]) {
    for &item in items {
        sum.add(f64::from(item));
    }
}

/// Adds the items of a piece that are below `bound`.
#[cold]
#[inline(never)]
fn add_smaller(sum: &mut Sum32, items: &[f32], mut bound: f32) {
    let mut smaller = [0.0; PIECE];
    let smaller = &mut smaller[..items.len()];
    smaller.copy_from_slice(items);
    loop {
        for item in smaller.iter_mut() {
            *item = if item.abs() < bound { *item } else { 0.0 };
        }
        match add_largest(sum, smaller) {
            Some(next) => bound = next,
            None => return,
        }
    }
}

// Sums of f64 and of squares of f32, in f64. A lane starts at 1.5 * 2^k, where 2^k is so large that the lane remains
// within 2^k..2^(k+1). Every addition to the lane rounds to a multiple of 2^(k-52). The rounding error is exact in f64,
// and is added to a second lane. The second lane starts at a value so low that almost always nothing remains. Let B be
// the power of two above the largest magnitude; then k is log2(B) + 9. A lane has at most 128 items, which change it by
// less than 2^(k-2). The sum of 1024 items is at most 2^(k+1), 53 bits above the lowest bit. The errors are at most
// B * 2^-44; for the second lane, this value is used instead of B.

/// Returns the start values of `upper` and `lower` lanes, for items up to `largest`; `None` if they would overflow.
///
/// For small items, the lower lanes have all bits down to the lowest bit of f64.
#[inline(always)]
fn origins(largest: f64) -> Option<(f64, f64)> {
    // B is 2^(exponent - 1022).
    let exponent = (largest.to_bits() >> 52).max(35);
    let origin = |exponent: u64| f64::from_bits(exponent << 52 | 1 << 51);
    (exponent <= 2035).then(|| (origin(exponent + 10), origin(exponent - 34)))
}

/// Adds `value` to the lanes `upper` and `lower`. Returns the remainder, which was not added.
#[inline(always)]
fn add_split(upper: &mut f64, lower: &mut f64, value: f64) -> f64 {
    let sum = *upper + value;
    let error = value - (sum - *upper);
    *upper = sum;
    let sum = *lower + error;
    let remainder = error - (sum - *lower);
    *lower = sum;
    remainder
}

/// Lanes for [`add_split`]. The sum of 1024 items over all lanes is exact.
struct Split {
    origins: (f64, f64),
    upper: [f64; SPLIT_LANES],
    lower: [f64; SPLIT_LANES],
    /// The bits of all remainders.
    remainders: [u64; SPLIT_LANES],
}

const SPLIT_LANES: usize = 8;

impl Split {
    #[inline(always)]
    fn new(origins: (f64, f64)) -> Self {
        Self {
            origins,
            upper: [origins.0; SPLIT_LANES],
            lower: [origins.1; SPLIT_LANES],
            remainders: [0; SPLIT_LANES],
        }
    }

    #[inline(always)]
    fn add(&mut self, lane: usize, value: f64) -> f64 {
        let remainder = add_split(&mut self.upper[lane], &mut self.lower[lane], value);
        self.remainders[lane] |= remainder.to_bits();
        remainder
    }

    /// The sums of the upper and of the lower lanes.
    fn sums(&self) -> (f64, f64) {
        let sum = |lanes: &[f64], origin| lanes.iter().map(|lane| lane - origin).sum();
        (sum(&self.upper, self.origins.0), sum(&self.lower, self.origins.1))
    }

    fn has_remainder(&self) -> bool {
        // The shift removes the sign bit, so that zeros of both signs do not count.
        self.remainders.iter().fold(0, |all, bits| all | bits) << 1 != 0
    }
}

/// Adds `value` of up to [`PIECE`] items; no value exceeds `largest`. Returns `false`, and adds nothing, if two lanes
/// do not suffice or an item is not finite.
#[inline(always)]
fn try_add_piece<T: Copy + Default, const WORDS: usize, const LOW: i32>(
    sum: &mut Exact<WORDS, LOW>,
    items: &[T],
    largest: f64,
    value: impl Fn(T) -> f64 + Copy,
) -> bool {
    let Some(origins) = origins(largest) else { return false };
    let mut split = Split::new(origins);
    in_lanes(items, T::default(), |chunk: &[T; SPLIT_LANES]| {
        for (lane, &item) in chunk.iter().enumerate() {
            split.add(lane, value(item));
        }
    });
    let (upper, lower) = split.sums();
    let exact = upper.is_finite() && !split.has_remainder();
    if exact {
        sum.add(upper);
        sum.add(lower);
    }
    exact
}

/// Adds `value` of up to [`PIECE`] items; no value exceeds `largest`.
#[inline(always)]
fn add_piece<T: Copy + Default, const WORDS: usize, const LOW: i32>(
    sum: &mut Exact<WORDS, LOW>,
    items: &[T],
    largest: f64,
    value: impl Fn(T) -> f64 + Copy,
) {
    if !try_add_piece(sum, items, largest, value) {
        let mut values = [0.0; PIECE];
        for (to, &item) in values.iter_mut().zip(items) {
            *to = value(item);
        }
        add_wide_piece(sum, &mut values[..items.len().next_multiple_of(SPLIT_LANES)]);
    }
}

/// Adds values that differ much in magnitude, or that are not all finite. The number of values is a multiple of the
/// number of lanes.
#[cold]
#[inline(never)]
fn add_wide_piece<const WORDS: usize, const LOW: i32>(
    sum: &mut Exact<WORDS, LOW>,
    values: &mut [f64],
) {
    /// The maximum number of passes. After these, few values are left, or further passes would not help.
    const PASSES: usize = 3;
    for _ in 0..PASSES {
        let largest = largest::<_, SPLIT_LANES>(values, keep_larger_f64);
        let not_finite = values.iter().any(|value| !value.is_finite());
        let Some(origins) = origins(largest).filter(|_| !not_finite) else { break };
        let mut split = Split::new(origins);
        for chunk in values.as_chunks_mut::<SPLIT_LANES>().0 {
            for (lane, value) in chunk.iter_mut().enumerate() {
                *value = split.add(lane, *value);
            }
        }
        let (upper, lower) = split.sums();
        sum.add(upper);
        sum.add(lower);
        if !split.has_remainder() {
            return;
        }
    }
    for &value in values.iter().filter(|&&value| value != 0.0) {
        sum.add(value);
    }
}

fn square(item: f32) -> f64 {
    f64::from(item) * f64::from(item)
}

// Squares of f64: the sum of the rounded square and its error. Both are exact in f64 if they do not overflow or
// underflow.

/// For items up to 2^480, the square and the calculations of `square_error` are finite.
const LARGE: f64 = f64::from_bits((1023 + 480) << 52);

/// For items of at least 2^-480, the lowest bit of the square is in the range of f64.
const TINY: f64 = f64::from_bits((1023 - 480) << 52);

/// Returns whether there are nonzero items below [`TINY`].
#[inline(always)]
fn has_tiny(items: &[f64]) -> bool {
    let mut tiny = [0; LANES];
    in_lanes(items, 0.0, |chunk: &[f64; LANES]| {
        for (tiny, &item) in tiny.iter_mut().zip(chunk) {
            *tiny |= if item.abs() < TINY { item.to_bits() } else { 0 };
        }
    });
    tiny.iter().fold(0, |all, bits| all | bits) << 1 != 0
}

/// The exact difference between the square of `item` and `item * item`.
#[inline(always)]
fn square_error(item: f64) -> f64 {
    // Two halves of at most 26 bits: their products are exact.
    let scaled = item * ((1 << 27) + 1) as f64;
    let high = scaled - (scaled - item);
    let low = item - high;
    let square = item * item;
    (high * high - square) + 2.0 * high * low + low * low
}

impl Summand for f32 {
    type Sum = Sum32;
    type Squares = Squares32;

    #[inline(always)]
    fn add_each(sum: &mut Sum32, items: &[f32]) {
        if items.len() < SHORT {
            return items.iter().for_each(|&item| sum.add(f64::from(item)));
        }
        for piece in items.chunks(PIECE) {
            if let Some(bound) = add_largest(sum, piece) {
                add_smaller(sum, piece, bound);
            }
        }
    }

    fn add_run_of_squares(squares: &mut Squares32, items: &[f32]) {
        if items.len() < SHORT {
            return items.iter().for_each(|&item| squares.add(square(item)));
        }
        for piece in items.chunks(PIECE) {
            let largest = largest::<_, LANES>(piece, keep_larger_f32);
            add_piece(squares, piece, square(largest), square);
        }
    }
}

impl Summand for f64 {
    type Sum = Sum64;
    type Squares = Squares64;

    #[inline(always)]
    fn add_each(sum: &mut Sum64, items: &[f64]) {
        if items.len() < SHORT {
            return items.iter().for_each(|&item| sum.add(item));
        }
        for piece in items.chunks(PIECE) {
            let largest = largest::<_, LANES>(piece, keep_larger_f64);
            add_piece(sum, piece, largest, |item| item);
        }
    }

    fn add_run_of_squares(squares: &mut Squares64, items: &[f64]) {
        if items.len() < SHORT {
            return items.iter().for_each(|&item| squares.add_square(item));
        }
        for piece in items.chunks(PIECE) {
            let largest = largest::<_, LANES>(piece, keep_larger_f64);
            let square = |item| item * item;
            if largest <= LARGE
                && !has_tiny(piece)
                && try_add_piece(squares, piece, square(largest), square)
            {
                add_piece(squares, piece, square(largest) * 2f64.powi(-53), square_error);
            } else {
                piece.iter().for_each(|&item| squares.add_square(item));
            }
        }
    }
}

#[cfg(test)]
mod tests;
