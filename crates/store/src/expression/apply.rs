//! The operations on items, with the results of NumPy.

use half::f16;

use super::items::{Items, Type};

/// An operation with one operand.
#[derive(Debug, Clone, Copy)]
pub(super) enum Unary {
    Negative,
    Invert,
    Abs,
    Floor,
    Ceil,
    Trunc,
    Round,
    Sign,
    Square,
    LogicalNot,
    IsNan,
    IsInf,
    IsFinite,
    SignBit,
    Sqrt,
    Reciprocal,
    Real(fn(f64) -> f64, fn(f32) -> f32),
}

/// An operation with two operands of the same type.
#[derive(Debug, Clone, Copy)]
pub(super) enum Binary {
    Add,
    Subtract,
    Multiply,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Minimum,
    Maximum,
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
    Compare(Comparison),
    NextAfter,
    Real(fn(f64, f64) -> f64, fn(f32, f32) -> f32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Equal,
    NotEqual,
}

impl Comparison {
    pub(super) fn of<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Self::Less => left < right,
            Self::LessEqual => left <= right,
            Self::Greater => left > right,
            Self::GreaterEqual => left >= right,
            Self::Equal => left == right,
            Self::NotEqual => left != right,
        }
    }
}

fn map<T: Copy, U>(items: &[T], of: impl Fn(T) -> U) -> Vec<U> {
    items.iter().map(|item| of(*item)).collect()
}

/// Combines items. One of the operands can have a single item, for all items of the other one.
fn zip<T: Copy, U>(left: &[T], right: &[T], of: impl Fn(T, T) -> U) -> Vec<U> {
    match (left, right) {
        (left, [right]) => map(left, |left| of(left, *right)),
        ([left], right) => map(right, |right| of(*left, right)),
        _ => left.iter().zip(right).map(|(left, right)| of(*left, *right)).collect(),
    }
}

/// Applies a macro to the items, in the arms of the integers and of the floats. An f16 is computed as f32.
macro_rules! by_class {
    ($items:expr, $bool:ident => $of_bool:expr, $integer:ident => $of_integer:expr, $float:ident => $of_float:expr) => {
        match $items {
            Items::Bool($bool) => $of_bool,
            Items::I8($integer) => Items::I8($of_integer),
            Items::I16($integer) => Items::I16($of_integer),
            Items::I32($integer) => Items::I32($of_integer),
            Items::I64($integer) => Items::I64($of_integer),
            Items::U8($integer) => Items::U8($of_integer),
            Items::U16($integer) => Items::U16($of_integer),
            Items::U32($integer) => Items::U32($of_integer),
            Items::U64($integer) => Items::U64($of_integer),
            Items::F16(halves) => {
                let $float = &map(halves, f32::from)[..];
                Items::F16(map(&$of_float, f16::from_f32))
            }
            Items::F32($float) => Items::F32($of_float),
            Items::F64($float) => Items::F64($of_float),
        }
    };
}

/// Numbers with the operations that differ between signed integers, unsigned integers and floats.
trait Signs: Copy {
    fn negative(self) -> Self;
    fn magnitude(self) -> Self;
    fn sign(self) -> Self;
}

macro_rules! signs {
    ($($type:ty, $magnitude:ident, $sign:expr;)*) => {
        $(impl Signs for $type {
            fn negative(self) -> Self {
                self.wrapping_neg()
            }

            fn magnitude(self) -> Self {
                $magnitude!(self)
            }

            fn sign(self) -> Self {
                $sign(self)
            }
        })*
    };
}
macro_rules! wrapping_abs {
    ($item:expr) => {
        $item.wrapping_abs()
    };
}
macro_rules! same {
    ($item:expr) => {
        $item
    };
}
signs! {
    i8, wrapping_abs, i8::signum;
    i16, wrapping_abs, i16::signum;
    i32, wrapping_abs, i32::signum;
    i64, wrapping_abs, i64::signum;
    u8, same, |item| u8::from(item > 0);
    u16, same, |item| u16::from(item > 0);
    u32, same, |item| u32::from(item > 0);
    u64, same, |item| u64::from(item > 0);
}

/// The mathematical sign: zero for zero, NaN for NaN.
macro_rules! float_sign {
    ($item:expr) => {
        if $item == 0.0 || $item.is_nan() { $item.abs() } else { $item.signum() }
    };
}

/// Applies an operation. The caller has converted the items to a type that the operation accepts.
pub(super) fn unary(operation: Unary, items: &Items) -> Items {
    use Unary::*;
    match operation {
        LogicalNot => match items.clone().cast(Type::Bool) {
            Items::Bool(items) => Items::Bool(map(&items, |item| !item)),
            items => items,
        },
        IsNan | IsInf | IsFinite | SignBit => of_floats(operation, items),
        Invert => by_class!(items,
            bools => Items::Bool(map(bools, |item| !item)),
            integers => map(integers, |item| !item),
            floats => map(floats, |item| item)),
        Negative => by_class!(items,
            bools => Items::Bool(bools.clone()),
            integers => map(integers, Signs::negative),
            floats => map(floats, |item| -item)),
        Abs => by_class!(items,
            bools => Items::Bool(bools.clone()),
            integers => map(integers, Signs::magnitude),
            floats => map(floats, |item| item.abs())),
        Sign => by_class!(items,
            bools => Items::Bool(bools.clone()),
            integers => map(integers, Signs::sign),
            floats => map(floats, |item| float_sign!(item))),
        Square => by_class!(items,
            bools => Items::Bool(bools.clone()),
            integers => map(integers, |item| item.wrapping_mul(item)),
            floats => map(floats, |item| item * item)),
        // Integers are unchanged.
        Floor => rounded(items, f32::floor, f64::floor),
        Ceil => rounded(items, f32::ceil, f64::ceil),
        Trunc => rounded(items, f32::trunc, f64::trunc),
        Round => rounded(items, f32::round_ties_even, f64::round_ties_even),
        Sqrt => rounded(items, f32::sqrt, f64::sqrt),
        Reciprocal => rounded(items, |item| 1.0 / item, |item| 1.0 / item),
        Real(of_f64, of_f32) => rounded(items, of_f32, of_f64),
    }
}

fn rounded(items: &Items, of_f32: impl Fn(f32) -> f32, of_f64: impl Fn(f64) -> f64) -> Items {
    match items {
        Items::F16(items) => Items::F16(map(items, |item| f16::from_f32(of_f32(item.into())))),
        Items::F32(items) => Items::F32(map(items, of_f32)),
        Items::F64(items) => Items::F64(map(items, of_f64)),
        items => items.clone(),
    }
}

fn of_floats(operation: Unary, items: &Items) -> Items {
    let of = |item: f64| match operation {
        Unary::IsNan => item.is_nan(),
        Unary::IsInf => item.is_infinite(),
        Unary::IsFinite => item.is_finite(),
        _ => item.is_sign_negative(),
    };
    match items.clone().cast(Type::F64) {
        Items::F64(items) => Items::Bool(map(&items, of)),
        items => items,
    }
}

/// The operations of integers and floats with two operands.
trait Arithmetic: Copy {
    const IS_INTEGER: bool;

    fn add(self, other: Self) -> Self;
    fn subtract(self, other: Self) -> Self;
    fn multiply(self, other: Self) -> Self;
    fn divide(self, other: Self) -> Self;
    fn floor_divide(self, other: Self) -> Self;
    fn remainder(self, other: Self) -> Self;
    fn power(self, exponent: Self) -> Self;
    fn minimum(self, other: Self) -> Self;
    fn maximum(self, other: Self) -> Self;
    fn is_negative(self) -> bool;
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn shift_left(self, bits: Self) -> Self;
    fn shift_right(self, bits: Self) -> Self;
}

macro_rules! integers {
    ($($type:ident)*) => {
        $(impl Arithmetic for $type {
            const IS_INTEGER: bool = true;

            fn add(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn subtract(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }

            fn multiply(self, other: Self) -> Self {
                self.wrapping_mul(other)
            }

            fn divide(self, other: Self) -> Self {
                self.floor_divide(other)
            }

            // Division by zero is zero.
            fn floor_divide(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let quotient = self.wrapping_div(other);
                let rest = self.wrapping_rem(other);
                match rest != 0 && Arithmetic::is_negative(rest) != Arithmetic::is_negative(other) {
                    true => quotient.wrapping_sub(1),
                    false => quotient,
                }
            }

            fn remainder(self, other: Self) -> Self {
                if other == 0 {
                    return 0;
                }
                let rest = self.wrapping_rem(other);
                match rest != 0 && Arithmetic::is_negative(rest) != Arithmetic::is_negative(other) {
                    true => rest.wrapping_add(other),
                    false => rest,
                }
            }

            // The caller has checked that the exponent is not negative.
            fn power(self, exponent: Self) -> Self {
                let (mut result, mut base, mut rest): (Self, _, _) = (1, self, exponent);
                while rest > 0 {
                    if rest & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    rest >>= 1;
                }
                result
            }

            fn minimum(self, other: Self) -> Self {
                self.min(other)
            }

            fn maximum(self, other: Self) -> Self {
                self.max(other)
            }

            #[allow(unused_comparisons, reason = "unsigned integers")]
            fn is_negative(self) -> bool {
                self < 0
            }

            fn and(self, other: Self) -> Self {
                self & other
            }

            fn or(self, other: Self) -> Self {
                self | other
            }

            fn xor(self, other: Self) -> Self {
                self ^ other
            }

            // A shift by all bits, or by a negative number, shifts all bits out.
            fn shift_left(self, bits: Self) -> Self {
                u32::try_from(bits).ok().and_then(|bits| self.checked_shl(bits)).unwrap_or(0)
            }

            fn shift_right(self, bits: Self) -> Self {
                let shifted = u32::try_from(bits).ok().and_then(|bits| self.checked_shr(bits));
                shifted.unwrap_or_else(|| self.checked_shr(Self::BITS - 1).unwrap_or(0) >> 1)
            }
        })*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ident)*) => {
        $(impl Arithmetic for $type {
            const IS_INTEGER: bool = false;

            fn add(self, other: Self) -> Self {
                self + other
            }

            fn subtract(self, other: Self) -> Self {
                self - other
            }

            fn multiply(self, other: Self) -> Self {
                self * other
            }

            fn divide(self, other: Self) -> Self {
                self / other
            }

            fn floor_divide(self, other: Self) -> Self {
                if other == 0.0 {
                    return self / other;
                }
                let rest = self % other;
                let mut quotient = (self - rest) / other;
                if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                    quotient -= 1.0;
                }
                if quotient == 0.0 {
                    return Self::copysign(0.0, self / other);
                }
                let floor = quotient.floor();
                if quotient - floor > 0.5 { floor + 1.0 } else { floor }
            }

            fn remainder(self, other: Self) -> Self {
                let rest = self % other;
                if rest == 0.0 {
                    rest.copysign(other)
                } else if (other < 0.0) != (rest < 0.0) && !rest.is_nan() {
                    rest + other
                } else {
                    rest
                }
            }

            fn power(self, exponent: Self) -> Self {
                // NumPy multiplies, too.
                if exponent == 2.0 { self * self } else { self.powf(exponent) }
            }

            fn minimum(self, other: Self) -> Self {
                if self.is_nan() || self <= other { self } else { other }
            }

            fn maximum(self, other: Self) -> Self {
                if self.is_nan() || self >= other { self } else { other }
            }

            fn is_negative(self) -> bool {
                self < 0.0
            }

            fn and(self, _: Self) -> Self {
                self
            }

            fn or(self, _: Self) -> Self {
                self
            }

            fn xor(self, _: Self) -> Self {
                self
            }

            fn shift_left(self, _: Self) -> Self {
                self
            }

            fn shift_right(self, _: Self) -> Self {
                self
            }
        })*
    };
}
floats!(f32 f64);

/// Applies an operation to two operands of the same type, which have equally many items; or one has a single item. The
/// caller has converted the items to a type that the operation accepts.
pub(super) fn binary(operation: Binary, left: &Items, right: &Items) -> Result<Items, String> {
    macro_rules! pairs {
        ($($name:ident)*) => {
            match (left, right) {
                $((Items::$name(left), Items::$name(right)) => match operation {
                    Binary::Compare(of) => Items::Bool(zip(left, right, |left, right| of.of(left, right))),
                    _ => Items::$name(numbers(operation, left, right)?),
                },)*
                (Items::Bool(left), Items::Bool(right)) => Items::Bool(zip(left, right, |left, right| {
                    match operation {
                        Binary::And | Binary::Multiply | Binary::Minimum => left & right,
                        Binary::Xor => left ^ right,
                        Binary::Compare(of) => of.of(left, right),
                        _ => left | right,
                    }
                })),
                (Items::F16(left), Items::F16(right)) => {
                    let (left, right) = (map(left, f32::from), map(right, f32::from));
                    match operation {
                        Binary::Compare(of) => {
                            Items::Bool(zip(&left, &right, |left, right| of.of(left, right)))
                        }
                        Binary::Real(_, of) => Items::F16(map(&zip(&left, &right, of), f16::from_f32)),
                        _ => Items::F16(map(&numbers(operation, &left, &right)?, f16::from_f32)),
                    }
                }
                _ => return Err("its operands have different types".to_owned()),
            }
        };
    }
    Ok(match (operation, left, right) {
        (Binary::Real(_, of), Items::F32(left), Items::F32(right)) => {
            Items::F32(zip(left, right, of))
        }
        (Binary::Real(of, _), Items::F64(left), Items::F64(right)) => {
            Items::F64(zip(left, right, of))
        }
        (Binary::NextAfter, Items::F16(left), Items::F16(right)) => {
            Items::F16(zip(left, right, next_after_f16))
        }
        (Binary::NextAfter, Items::F32(left), Items::F32(right)) => {
            Items::F32(zip(left, right, next_after_f32))
        }
        (Binary::NextAfter, Items::F64(left), Items::F64(right)) => {
            Items::F64(zip(left, right, next_after_f64))
        }
        _ => pairs!(I8 I16 I32 I64 U8 U16 U32 U64 F32 F64),
    })
}

fn numbers<T: Arithmetic>(operation: Binary, left: &[T], right: &[T]) -> Result<Vec<T>, String> {
    let of = match operation {
        Binary::Add => T::add,
        Binary::Subtract => T::subtract,
        Binary::Multiply => T::multiply,
        Binary::Divide => T::divide,
        Binary::FloorDivide => T::floor_divide,
        Binary::Remainder => T::remainder,
        Binary::Power => {
            if T::IS_INTEGER && right.iter().any(|exponent| exponent.is_negative()) {
                return Err("it raises an integer to a negative power".to_owned());
            }
            T::power
        }
        Binary::Minimum => T::minimum,
        Binary::Maximum => T::maximum,
        Binary::And => T::and,
        Binary::Or => T::or,
        Binary::Xor => T::xor,
        Binary::ShiftLeft => T::shift_left,
        Binary::ShiftRight => T::shift_right,
        Binary::Compare(_) | Binary::Real(..) | Binary::NextAfter => {
            return Err("its operands are not floats".to_owned());
        }
    };
    Ok(zip(left, right, of))
}

/// The distance-1 neighbor of an item in the direction of another one. NumPy: `nextafter`.
macro_rules! next_after {
    ($name:ident $type:ident) => {
        fn $name(item: $type, to: $type) -> $type {
            if item.is_nan() || to.is_nan() {
                return item + to;
            }
            if item == to {
                return to;
            }
            if item < to { item.next_up() } else { item.next_down() }
        }
    };
}
next_after!(next_after_f32 f32);
next_after!(next_after_f64 f64);

fn next_after_f16(item: f16, to: f16) -> f16 {
    if item.is_nan() || to.is_nan() {
        return item + to;
    }
    if item == to {
        return to;
    }
    // The bits of positive numbers are in the order of the numbers, and negative ones differ by the sign.
    let (zero, bits) = (f16::ZERO, item.to_bits());
    f16::from_bits(match item < to {
        up if item == zero => u16::from(!up) << 15 | 1,
        up if up == (item > zero) => bits + 1,
        _ => bits - 1,
    })
}

/// Compares integers that have no common type of NumPy.
pub(super) fn compare(comparison: Comparison, left: &[i128], right: &[i128]) -> Vec<bool> {
    zip(left, right, |left, right| comparison.of(left, right))
}
