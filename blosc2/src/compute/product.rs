//! The product of floating-point numbers.

use super::sum::product_error;

/// The product of floating-point numbers, with 106 bits and an unbounded exponent. Intermediate results cannot overflow
/// or underflow.
#[derive(Debug, Clone)]
pub struct Product {
    /// The product is `(high + low) * 2^exponent`, with 1 <= |high| < 2.
    high: f64,
    low: f64,
    exponent: i128,
    has_zero: bool,
    has_infinity: bool,
    has_nan: bool,
}

impl Default for Product {
    fn default() -> Self {
        Self::of(1.0)
    }
}

impl Product {
    /// Multiplies by an item without normalizing. After `n` multiplications, `high` is below 2^(`n` + 1).
    #[inline(always)]
    pub(super) fn multiply_quickly(&mut self, item: f64) {
        let biased = item.to_bits() >> 52 & 0x7ff;
        if biased == 0 || biased == 0x7ff {
            self.normalize();
            return self.multiply_wide(&Self::of(item));
        }
        let item = f64::from_bits(item.to_bits() & !(0x7ff << 52) | 1023 << 52);
        let product = self.high * item;
        let error = product_error(self.high, item, product) + self.low * item;
        self.high = product + error;
        self.low = error - (self.high - product);
        self.exponent += i128::from(biased) - 1023;
    }

    pub(super) fn normalize(&mut self) {
        let (high, exponent) = split(self.high);
        self.low *= power_of_two(-exponent);
        self.high = high;
        self.exponent += exponent;
    }

    pub(super) fn of(item: f64) -> Self {
        let sign = 1f64.copysign(item);
        let has_value = item != 0.0 && item.is_finite();
        let (high, exponent) = if has_value { split(item) } else { (sign, 0) };
        Self {
            high,
            low: 0.0,
            exponent,
            has_zero: item == 0.0,
            has_infinity: item.is_infinite(),
            has_nan: item.is_nan(),
        }
    }

    pub(super) fn multiply_wide(&mut self, other: &Self) {
        let product = self.high * other.high;
        let error = product_error(self.high, other.high, product)
            + (self.high * other.low + self.low * other.high);
        self.high = product + error;
        self.low = error - (self.high - product);
        self.exponent += other.exponent;
        self.normalize();
        self.has_zero |= other.has_zero;
        self.has_infinity |= other.has_infinity;
        self.has_nan |= other.has_nan;
    }

    /// Returns the product, rounded to the nearest number.
    pub(super) fn to_f64(&self) -> f64 {
        let sign = 1f64.copysign(self.high);
        match *self {
            Self { has_nan: true, .. } | Self { has_zero: true, has_infinity: true, .. } => {
                f64::NAN
            }
            Self { has_zero: true, .. } => 0.0 * sign,
            Self { has_infinity: true, .. } => f64::INFINITY * sign,
            Self { exponent, .. } if exponent > 1023 => f64::INFINITY * sign,
            Self { exponent, .. } if exponent < -1100 => 0.0 * sign,
            Self { high, low, exponent, .. } if exponent < -1022 => {
                // Rounds to the nearest subnormal number. If two numbers are equally near to `high`, `low` decides.
                let (scale, rest) = (power_of_two(-1000), power_of_two(exponent + 1000));
                let product = high * scale * rest;
                let error = high - product / rest / scale;
                let is_between = error.abs() == power_of_two(-1075 - exponent);
                let is_next = is_between && low != 0.0 && error.signum() == low.signum();
                if is_next { product + low.signum() * f64::from_bits(1) } else { product }
            }
            Self { high, low, exponent, .. } => {
                let half = exponent / 2;
                (high + low) * power_of_two(half) * power_of_two(exponent - half)
            }
        }
    }
}

/// Multiplies `product` by `count` equal factors. `count` is at least 1.
pub(super) fn multiply_repeatedly<T: Clone>(
    product: &mut T,
    mut factor: T,
    mut count: u64,
    multiply: impl Fn(&mut T, &T),
) {
    while count > 1 {
        if count & 1 == 1 {
            multiply(product, &factor);
        }
        let other = factor.clone();
        multiply(&mut factor, &other);
        count >>= 1;
    }
    multiply(product, &factor);
}

/// Returns a finite number other than 0 as `high * 2^exponent`, with 1 <= |high| < 2.
fn split(number: f64) -> (f64, i128) {
    let biased = |number: f64| (number.to_bits() >> 52 & 0x7ff) as i128;
    let (number, scale) =
        if biased(number) == 0 { (number * power_of_two(64), 64) } else { (number, 0) };
    let exponent = biased(number) - 1023;
    let bits = number.to_bits() & !(0x7ff << 52) | 1023 << 52;
    (f64::from_bits(bits), exponent - scale)
}

/// Returns 2^`exponent`, for exponents of normal numbers.
fn power_of_two(exponent: i128) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}
