//! Floating-point numbers as text, with the digits and the layout of NumPy.
//!
//! NumPy prints the shortest digits that identify a number among those of its type, at most `PRECISION` after the
//! decimal point. All numbers of an array have the same notation and the same width.

use half::f16;

/// Maximum digits after the decimal point in an array.
const PRECISION: usize = 8;

/// The type of a number, which determines its shortest digits. All values of these types are `f64` values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Half,
    Single,
    Double,
}

/// A function that passes each of several values to its argument.
pub(crate) type Each<'a, T> = dyn Fn(&mut dyn FnMut(T)) + 'a;

/// The digits of a number: `d.ddd` times 10 to the power of `exponent`.
struct Decimal {
    digits: String,
    exponent: i32,
}

impl Decimal {
    /// Parses the scientific notation of Rust, such as `1.25e-7`.
    fn parse(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let digits = mantissa.chars().filter(char::is_ascii_digit).collect();
        Self { digits, exponent: exponent.parse().unwrap_or(0) }
    }

    /// Removes trailing zeros, except the first digit.
    fn trim(mut self) -> Self {
        let len = self.digits.trim_end_matches('0').len().max(1);
        self.digits.truncate(len);
        self
    }

    /// The digits before and after the decimal point.
    fn positional(&self) -> (String, String) {
        let point = usize::try_from(self.exponent).map_or(0, |exponent| exponent + 1);
        match self.digits.split_at_checked(point) {
            Some(("", fraction)) => {
                let zeros = usize::try_from(-self.exponent).unwrap_or(1) - 1;
                ("0".to_owned(), format!("{}{fraction}", "0".repeat(zeros)))
            }
            Some((whole, fraction)) => (whole.to_owned(), fraction.to_owned()),
            None => (format!("{:0<point$}", self.digits), String::new()),
        }
    }

    /// The exponent with its sign and at least `digits` digits.
    fn exponent(&self, digits: usize) -> String {
        let sign = if self.exponent < 0 { '-' } else { '+' };
        format!("e{sign}{:0digits$}", self.exponent.unsigned_abs())
    }
}

impl Width {
    /// Whether a positive number is the one that `text` denotes.
    fn is(self, value: f64, text: &str) -> bool {
        let parsed = match self {
            // The conversion from `f64` to `f16` is not exact.
            Self::Half => text.parse().map(|parsed| f16::from_f32(parsed).to_f64()),
            Self::Single => text.parse::<f32>().map(f64::from),
            Self::Double => text.parse(),
        };
        parsed.is_ok_and(|parsed| parsed == value)
    }

    /// The shortest digits that identify a number, which must be finite and not negative.
    fn shortest(self, value: f64) -> Decimal {
        let text = match self {
            Self::Half => {
                // The closest text may denote another number, and the next one this number.
                let mut texts = (0..5).flat_map(|digits| {
                    [value, value.next_up()].map(|value| format!("{value:.digits$e}"))
                });
                texts.find(|text| self.is(value, text)).unwrap_or_else(|| format!("{value:e}"))
            }
            Self::Single => format!("{:e}", value as f32),
            Self::Double => format!("{value:e}"),
        };
        let shortest = Decimal::parse(&text);
        // Of two equally close texts of this length, NumPy selects the one with the even last digit.
        let closest = format!("{value:.*e}", shortest.digits.len() - 1);
        if self.is(value, &closest) { Decimal::parse(&closest) } else { shortest }
    }

    /// The digits before and after the decimal point, at most `PRECISION` after it.
    fn positional(self, value: f64) -> (String, String) {
        let (whole, fraction) = self.shortest(value).positional();
        if fraction.len() <= PRECISION {
            return (whole, fraction);
        }
        let text = format!("{value:.PRECISION$}");
        let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
        (whole.to_owned(), fraction.trim_end_matches('0').to_owned())
    }

    /// The shortest digits, at most `PRECISION` after the first one.
    fn scientific(self, value: f64) -> Decimal {
        let shortest = self.shortest(value);
        match shortest.digits.len() <= PRECISION + 1 {
            true => shortest,
            false => Decimal::parse(&format!("{value:.PRECISION$e}")).trim(),
        }
    }

    /// Exactly `fraction` digits after the first one: as in NumPy, more than the shortest are those of the exact value.
    fn scientific_of(self, value: f64, fraction: usize) -> Decimal {
        let shortest = self.shortest(value);
        match shortest.digits.len() == fraction + 1 {
            true => shortest,
            false => Decimal::parse(&format!("{value:.fraction$e}")),
        }
    }

    /// Whether NumPy uses the scientific notation for an array. The comparisons have the precision of the type.
    fn is_scientific(self, min: f64, max: f64) -> bool {
        match self {
            Self::Half => {
                let ratio = f16::from_f32(max as f32 / min as f32).to_f32();
                max >= 1e3 || min < f16::from_f64(1e-4).to_f64() || ratio > 1000.0
            }
            Self::Single => max >= 1e6 || (min as f32) < 1e-4 || max as f32 / min as f32 > 1000.0,
            Self::Double => max >= 1e8 || min < 1e-4 || max / min > 1000.0,
        }
    }

    /// The text of a number that is not in an array. `whole` follows a number without a fraction.
    fn alone(self, value: f64, whole: &str) -> String {
        let sign = if value.is_sign_negative() && !value.is_nan() { "-" } else { "" };
        let size = value.abs();
        let limit = match self {
            Self::Half => 1e3,
            Self::Single => 1e6,
            Self::Double => 1e16,
        };
        if !value.is_finite() {
            return format!("{sign}{}", if value.is_nan() { "nan" } else { "inf" });
        }
        let shortest = self.shortest(size).trim();
        if size == 0.0 || (1e-4..limit).contains(&size) {
            return match shortest.positional() {
                (digits, fraction) if fraction.is_empty() => format!("{sign}{digits}{whole}"),
                (digits, fraction) => format!("{sign}{digits}.{fraction}"),
            };
        }
        let (first, rest) = shortest.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{sign}{first}{point}{rest}{}", shortest.exponent(2))
    }
}

/// The text of a number that is not in an array. NumPy: `str(numpy.float64(value))`.
pub(crate) fn scalar(width: Width, value: f64) -> String {
    width.alone(value, ".0")
}

/// The text of a complex number that is not in an array. NumPy: `str(numpy.complex128(value))`.
pub(crate) fn complex_scalar(width: Width, real: f64, imaginary: f64) -> String {
    let part = width.alone(imaginary, "");
    if real == 0.0 && real.is_sign_positive() {
        return format!("{part}j");
    }
    let sign = if part.starts_with('-') { "" } else { "+" };
    format!("({}{sign}{part}j)", width.alone(real, ""))
}

/// The layout of the numbers of an array.
#[derive(Debug)]
pub(crate) struct FloatFormat {
    width: Width,
    /// Whether positive numbers have a sign.
    plus: bool,
    notation: Notation,
    /// Characters before the decimal point, including the sign.
    left: usize,
    /// Characters after the decimal point.
    right: usize,
}

#[derive(Debug, Clone, Copy)]
enum Notation {
    Positional,
    /// Digits after the decimal point, and digits of the exponent.
    Scientific(usize, usize),
}

impl FloatFormat {
    /// Computes the layout of the numbers that `each` passes to its argument.
    pub(crate) fn new(width: Width, plus: bool, each: &Each<'_, f64>) -> Self {
        let (mut min, mut max, mut any) = (f64::INFINITY, 0.0_f64, false);
        let (mut infinite, mut negative_infinity) = (false, false);
        each(&mut |value| {
            any |= value.is_finite();
            infinite |= !value.is_finite();
            negative_infinity |= value == f64::NEG_INFINITY;
            if value.is_finite() && value != 0.0 {
                (min, max) = (min.min(value.abs()), max.max(value.abs()));
            }
        });
        let (mut left, mut right) = (0, 0);
        let mut notation = Notation::Positional;
        if any && max > 0.0 && width.is_scientific(min, max) {
            let (mut fraction, mut exponent) = (0, 0);
            each(&mut |value| {
                if value.is_finite() {
                    let decimal = width.scientific(value.abs());
                    fraction = fraction.max(decimal.digits.len() - 1);
                    exponent = exponent.max(decimal.exponent(2).len() - 2);
                    left = left.max(1 + sign(value, plus).len());
                }
            });
            notation = Notation::Scientific(fraction, exponent);
            right = fraction + 2 + exponent;
        } else if any {
            each(&mut |value| {
                if value.is_finite() {
                    let (whole, fraction) = width.positional(value.abs());
                    left = left.max(whole.len() + sign(value, plus).len());
                    right = right.max(fraction.len());
                }
            });
        }
        if infinite {
            let longest = 3 + usize::from(plus || negative_infinity);
            left = left.max(longest.saturating_sub(right + 1));
        }
        Self { width, plus, notation, left, right }
    }

    /// Returns the text of a number, padded with spaces.
    pub(crate) fn format(&self, value: f64) -> String {
        let (left, right) = (self.left, self.right);
        if !value.is_finite() {
            let text = match value.is_nan() {
                true => format!("{}nan", if self.plus { "+" } else { "" }),
                false => format!("{}inf", sign(value, self.plus)),
            };
            return format!("{text:>0$}", left + right + 1);
        }
        let sign = sign(value, self.plus);
        match self.notation {
            Notation::Positional => {
                let (whole, fraction) = self.width.positional(value.abs());
                format!("{:>left$}.{fraction:<right$}", format!("{sign}{whole}"))
            }
            Notation::Scientific(fraction, exponent) => {
                let decimal = self.width.scientific_of(value.abs(), fraction);
                let (first, rest) = decimal.digits.split_at(1);
                let exponent = decimal.exponent(exponent);
                format!("{:>left$}.{rest}{exponent}", format!("{sign}{first}"))
            }
        }
    }
}

fn sign(value: f64, plus: bool) -> &'static str {
    match value.is_sign_negative() {
        true => "-",
        false if plus => "+",
        false => "",
    }
}
