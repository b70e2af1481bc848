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
    Real { f64: fn(f64) -> f64, f32: fn(f32) -> f32 },
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
    Real { f64: fn(f64, f64) -> f64, f32: fn(f32, f32) -> f32 },
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

/// Items of one type of numbers. The caller has converted them to a type that the operation accepts.
trait Numbers: Copy {
    fn unary(operation: Unary, items: &[Self]) -> Vec<Self>;
    fn binary(operation: Binary, left: &[Self], right: &[Self]) -> Result<Vec<Self>, String>;
}

const WRONG_TYPE: &str = "the type of its operands does not have the operation";

macro_rules! integers {
    ($($type:ident)*) => {
        $(#[allow(unused_comparisons, reason = "unsigned integers")]
        impl Numbers for $type {
            fn unary(operation: Unary, items: &[Self]) -> Vec<Self> {
                match operation {
                    Unary::Negative => map(items, Self::wrapping_neg),
                    Unary::Invert => map(items, |item| !item),
                    Unary::Abs => map(items, |item| if item < 0 { item.wrapping_neg() } else { item }),
                    Unary::Sign => map(items, |item| if item < 0 { !0 } else { Self::from(item > 0) }),
                    Unary::Square => map(items, |item| item.wrapping_mul(item)),
                    // Rounding does not change integers.
                    _ => items.to_vec(),
                }
            }

            fn binary(operation: Binary, left: &[Self], right: &[Self]) -> Result<Vec<Self>, String> {
                // The quotient, which is rounded down, and the remainder. Division by zero is zero.
                let divide = |one: Self, other: Self| {
                    if other == 0 {
                        return (0, 0);
                    }
                    let (quotient, rest) = (one.wrapping_div(other), one.wrapping_rem(other));
                    match rest != 0 && (rest < 0) != (other < 0) {
                        true => (quotient.wrapping_sub(1), rest.wrapping_add(other)),
                        false => (quotient, rest),
                    }
                };
                let power = |mut base: Self, mut exponent: Self| {
                    let mut result: Self = 1;
                    while exponent > 0 {
                        if exponent & 1 == 1 {
                            result = result.wrapping_mul(base);
                        }
                        base = base.wrapping_mul(base);
                        exponent >>= 1;
                    }
                    result
                };
                Ok(match operation {
                    Binary::Add => zip(left, right, Self::wrapping_add),
                    Binary::Subtract => zip(left, right, Self::wrapping_sub),
                    Binary::Multiply => zip(left, right, Self::wrapping_mul),
                    Binary::FloorDivide => zip(left, right, |one, other| divide(one, other).0),
                    Binary::Remainder => zip(left, right, |one, other| divide(one, other).1),
                    Binary::Power if right.iter().any(|exponent| *exponent < 0) => {
                        return Err("it raises an integer to a negative power".to_owned());
                    }
                    Binary::Power => zip(left, right, power),
                    Binary::Minimum => zip(left, right, Ord::min),
                    Binary::Maximum => zip(left, right, Ord::max),
                    Binary::And => zip(left, right, |one, other| one & other),
                    Binary::Or => zip(left, right, |one, other| one | other),
                    Binary::Xor => zip(left, right, |one, other| one ^ other),
                    // A shift by all bits, or by a negative number, shifts all bits out.
                    Binary::ShiftLeft => zip(left, right, |one, bits| {
                        u32::try_from(bits).ok().and_then(|bits| one.checked_shl(bits)).unwrap_or(0)
                    }),
                    Binary::ShiftRight => zip(left, right, |one, bits| {
                        let shifted = u32::try_from(bits).ok().and_then(|bits| one.checked_shr(bits));
                        shifted.unwrap_or((one >> (Self::BITS - 1)) >> 1)
                    }),
                    _ => return Err(WRONG_TYPE.to_owned()),
                })
            }
        })*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

macro_rules! floats {
    ($($type:ident)*) => {
        $(impl Numbers for $type {
            fn unary(operation: Unary, items: &[Self]) -> Vec<Self> {
                match operation {
                    Unary::Negative => map(items, |item| -item),
                    Unary::Abs => map(items, Self::abs),
                    // Zero for zero, NaN for NaN.
                    Unary::Sign => map(items, |item| {
                        if item == 0.0 || item.is_nan() { item.abs() } else { item.signum() }
                    }),
                    Unary::Square => map(items, |item| item * item),
                    Unary::Floor => map(items, Self::floor),
                    Unary::Ceil => map(items, Self::ceil),
                    Unary::Trunc => map(items, Self::trunc),
                    Unary::Round => map(items, Self::round_ties_even),
                    Unary::Sqrt => map(items, Self::sqrt),
                    Unary::Reciprocal => map(items, |item| 1.0 / item),
                    Unary::Real { $type: of, .. } => map(items, of),
                    _ => items.to_vec(),
                }
            }

            fn binary(operation: Binary, left: &[Self], right: &[Self]) -> Result<Vec<Self>, String> {
                let floor_divide = |one: Self, other: Self| {
                    if other == 0.0 {
                        return one / other;
                    }
                    let rest = one % other;
                    let mut quotient = (one - rest) / other;
                    if rest != 0.0 && (other < 0.0) != (rest < 0.0) {
                        quotient -= 1.0;
                    }
                    if quotient == 0.0 {
                        return Self::copysign(0.0, one / other);
                    }
                    let floor = quotient.floor();
                    if quotient - floor > 0.5 { floor + 1.0 } else { floor }
                };
                let remainder = |one: Self, other: Self| match one % other {
                    0.0 => Self::copysign(0.0, other),
                    rest if (other < 0.0) != (rest < 0.0) && !rest.is_nan() => rest + other,
                    rest => rest,
                };
                Ok(match operation {
                    Binary::Add => zip(left, right, |one, other| one + other),
                    Binary::Subtract => zip(left, right, |one, other| one - other),
                    Binary::Multiply => zip(left, right, |one, other| one * other),
                    Binary::Divide => zip(left, right, |one, other| one / other),
                    Binary::FloorDivide => zip(left, right, floor_divide),
                    Binary::Remainder => zip(left, right, remainder),
                    // NumPy multiplies, too.
                    Binary::Power => zip(left, right, |one, exponent| {
                        if exponent == 2.0 { one * one } else { one.powf(exponent) }
                    }),
                    Binary::Minimum => zip(left, right, |one, other| {
                        if one.is_nan() || one <= other { one } else { other }
                    }),
                    Binary::Maximum => zip(left, right, |one, other| {
                        if one.is_nan() || one >= other { one } else { other }
                    }),
                    Binary::NextAfter => zip(left, right, |one, to| match () {
                        () if one.is_nan() || to.is_nan() => one + to,
                        () if one == to => to,
                        () => if one < to { one.next_up() } else { one.next_down() },
                    }),
                    Binary::Real { $type: of, .. } => zip(left, right, of),
                    _ => return Err(WRONG_TYPE.to_owned()),
                })
            }
        })*
    };
}
floats!(f32 f64);

/// Applies an operation. The caller has converted the items to a type that the operation accepts.
pub(super) fn unary(operation: Unary, items: &Items) -> Items {
    macro_rules! each {
        ($($name:ident)*) => {
            match items {
                Items::Bool(items) if matches!(operation, Unary::Invert) => {
                    Items::Bool(map(items, |item| !item))
                }
                Items::Bool(_) => items.clone(),
                $(Items::$name(items) => Items::$name(Numbers::unary(operation, items)),)*
                Items::F16(items) => {
                    let items = Numbers::unary(operation, &map(items, f32::from));
                    Items::F16(map(&items, f16::from_f32))
                }
            }
        };
    }
    match operation {
        Unary::LogicalNot => unary(Unary::Invert, &items.clone().cast(Type::Bool)),
        Unary::IsNan => test(items, f64::is_nan),
        Unary::IsInf => test(items, f64::is_infinite),
        Unary::IsFinite => test(items, f64::is_finite),
        Unary::SignBit => test(items, f64::is_sign_negative),
        _ => each!(I8 I16 I32 I64 U8 U16 U32 U64 F32 F64),
    }
}

fn test(items: &Items, of: fn(f64) -> bool) -> Items {
    match items.clone().cast(Type::F64) {
        Items::F64(items) => Items::Bool(map(&items, of)),
        items => items,
    }
}

/// Applies an operation to two operands of the same type, which have equally many items; or one has a single item. The
/// caller has converted the items to a type that the operation accepts.
pub(super) fn binary(operation: Binary, left: &Items, right: &Items) -> Result<Items, String> {
    macro_rules! pairs {
        ($($name:ident)*) => {
            match (left, right) {
                $((Items::$name(left), Items::$name(right)) => match operation {
                    Binary::Compare(of) => Items::Bool(zip(left, right, |left, right| of.of(left, right))),
                    _ => Items::$name(Numbers::binary(operation, left, right)?),
                },)*
                (Items::Bool(left), Items::Bool(right)) => Items::Bool(zip(left, right, |left, right| {
                    match operation {
                        Binary::And | Binary::Multiply | Binary::Minimum => left & right,
                        Binary::Xor => left ^ right,
                        Binary::Compare(of) => of.of(left, right),
                        _ => left | right,
                    }
                })),
                (Items::F16(left), Items::F16(right)) if matches!(operation, Binary::NextAfter) => {
                    Items::F16(zip(left, right, next_after_f16))
                }
                (Items::F16(left), Items::F16(right)) => {
                    let (left, right) = (map(left, f32::from), map(right, f32::from));
                    match binary(operation, &Items::F32(left), &Items::F32(right))? {
                        Items::F32(items) => Items::F16(map(&items, f16::from_f32)),
                        items => items,
                    }
                }
                _ => return Err("its operands have different types".to_owned()),
            }
        };
    }
    Ok(pairs!(I8 I16 I32 I64 U8 U16 U32 U64 F32 F64))
}

/// The distance-1 neighbor of an item in the direction of another one. NumPy: `nextafter`.
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
