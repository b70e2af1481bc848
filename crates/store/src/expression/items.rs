//! Items of NumPy's number types, and the rules of its result types.

use blosc2_format::dtype::Kind;
use half::f16;

use crate::blosc2::Dtype;

/// The types of items, with the variant, the Rust type and the dtype. A macro calls another macro with the list.
macro_rules! with_types {
    ($($call:tt)*) => {
        $($call)* {
            Bool bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F16 f16, F32 f32, F64 f64,
        }
    };
}

macro_rules! define {
    ($($name:ident $rust:ty,)*) => {
        /// The type of items.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Type { $($name,)* }

        #[derive(Debug, Clone, PartialEq)]
        pub(super) enum Items { $($name(Vec<$rust>),)* }

        impl Items {
            pub(super) fn of_type(&self) -> Type {
                match self { $(Self::$name(_) => Type::$name,)* }
            }

            pub(super) fn len(&self) -> usize {
                match self { $(Self::$name(items) => items.len(),)* }
            }

            /// The items at these positions.
            pub(super) fn pick(&self, places: &[usize]) -> Self {
                match self {
                    $(Self::$name(items) => {
                        Self::$name(places.iter().map(|at| items[*at]).collect())
                    })*
                }
            }

            /// Converts to another type, as C does: integers wrap, floats are rounded to the nearest.
            pub(super) fn cast(self, to: Type) -> Self {
                if self.of_type() == to {
                    return self;
                }
                match self { $(Self::$name(items) => cast_all(&items, to),)* }
            }

            /// The items as integers. They are not floats.
            pub(super) fn integers(&self) -> Vec<i128> {
                match self {
                    $(Self::$name(items) => items.iter().map(|item| item.integer()).collect(),)*
                }
            }

            /// The items of `one` where the condition is true, else those of `other`. A part with a single item has it
            /// for all items.
            pub(super) fn select(condition: &[bool], one: &Self, other: &Self, len: usize) -> Self {
                let at = |len: usize, place: usize| if len == 1 { 0 } else { place };
                match (one, other) {
                    $((Self::$name(one), Self::$name(other)) => {
                        let item = |place| match condition[at(condition.len(), place)] {
                            true => one[at(one.len(), place)],
                            false => other[at(other.len(), place)],
                        };
                        Self::$name((0..len).map(item).collect())
                    })*
                    _ => unreachable!("the plan converts both parts to one type"),
                }
            }

            pub(super) fn from_bytes(of: Type, bytes: &[u8]) -> Self {
                match of {
                    $(Type::$name => Self::$name(
                        bytes.chunks_exact(size_of::<$rust>()).map(Number::of_bytes).collect(),
                    ),)*
                }
            }

            /// Writes the bytes of a range of items.
            pub(super) fn write(&self, range: std::ops::Range<usize>, to: &mut [u8]) {
                match self {
                    $(Self::$name(items) => {
                        let places = to.chunks_exact_mut(size_of::<$rust>());
                        for (item, place) in items[range].iter().zip(places) {
                            item.put_bytes(place);
                        }
                    })*
                }
            }
        }

        fn cast_all<T: Number>(items: &[T], to: Type) -> Items {
            match to {
                $(Type::$name => Items::$name(
                    items.iter().map(|item| <$rust as Number>::of_number(*item)).collect(),
                ),)*
            }
        }
    };
}
with_types!(define!);

/// A number that can be converted to all others.
pub(super) trait Number: Copy {
    fn of_bytes(bytes: &[u8]) -> Self;
    fn put_bytes(self, to: &mut [u8]);
    fn of_number<N: Number>(number: N) -> Self;
    /// The number as an integer, for types without fractions.
    fn integer(self) -> i128;
    fn float(self) -> f64;
    const IS_FLOAT: bool;
}

macro_rules! integers {
    ($($type:ty)*) => {
        $(impl Number for $type {
            const IS_FLOAT: bool = false;

            fn of_bytes(bytes: &[u8]) -> Self {
                // The caller cuts the bytes into items.
                Self::from_ne_bytes(bytes.try_into().expect("the bytes of one item"))
            }

            fn put_bytes(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }

            fn of_number<N: Number>(number: N) -> Self {
                match N::IS_FLOAT {
                    // Wide floats are truncated to 64 bits first, as in C.
                    true => number.float() as i64 as Self,
                    false => number.integer() as Self,
                }
            }

            fn integer(self) -> i128 {
                self.into()
            }

            fn float(self) -> f64 {
                self as f64
            }
        })*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

impl Number for bool {
    const IS_FLOAT: bool = false;

    fn of_bytes(bytes: &[u8]) -> Self {
        bytes[0] != 0
    }

    fn put_bytes(self, to: &mut [u8]) {
        to[0] = self.into();
    }

    fn of_number<N: Number>(number: N) -> Self {
        if N::IS_FLOAT { number.float() != 0.0 } else { number.integer() != 0 }
    }

    fn integer(self) -> i128 {
        self.into()
    }

    fn float(self) -> f64 {
        self.into()
    }
}

macro_rules! floats {
    ($($type:ty, $of:expr, $into:expr;)*) => {
        $(impl Number for $type {
            const IS_FLOAT: bool = true;

            fn of_bytes(bytes: &[u8]) -> Self {
                Self::from_ne_bytes(bytes.try_into().expect("the bytes of one item"))
            }

            fn put_bytes(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }

            fn of_number<N: Number>(number: N) -> Self {
                // An integer is rounded once.
                if N::IS_FLOAT { $of(number.float()) } else { $into(number.integer()) }
            }

            fn integer(self) -> i128 {
                unreachable!("a float is not converted to an integer of 128 bits")
            }

            fn float(self) -> f64 {
                self.into()
            }
        })*
    };
}
floats! {
    // Items of up to 16 bits are exact in f64. Larger ones are infinite in f16 in any case.
    f16, f16::from_f64, |integer: i128| f16::from_f64(integer as f64);
    f32, |float: f64| float as f32, |integer: i128| integer as f32;
    f64, |float: f64| float, |integer: i128| integer as f64;
}

impl Type {
    /// The type of a dtype in any byte order.
    pub(super) fn of(dtype: &Dtype) -> Option<Self> {
        Some(match (dtype.kind()?, dtype.size()) {
            (Kind::Bool, 1) => Self::Bool,
            (Kind::Int, 1) => Self::I8,
            (Kind::Int, 2) => Self::I16,
            (Kind::Int, 4) => Self::I32,
            (Kind::Int, 8) => Self::I64,
            (Kind::UInt, 1) => Self::U8,
            (Kind::UInt, 2) => Self::U16,
            (Kind::UInt, 4) => Self::U32,
            (Kind::UInt, 8) => Self::U64,
            (Kind::Float, 2) => Self::F16,
            (Kind::Float, 4) => Self::F32,
            (Kind::Float, 8) => Self::F64,
            _ => return None,
        })
    }

    pub(super) fn dtype(self) -> Dtype {
        let kind = match self {
            Self::Bool => Kind::Bool,
            _ if self.is_float() => Kind::Float,
            _ if self.is_signed() => Kind::Int,
            _ => Kind::UInt,
        };
        Dtype::scalar(kind, self.size()).expect("a dtype of NumPy")
    }

    pub(super) fn size(self) -> usize {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }

    pub(super) fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::F32 | Self::F64)
    }

    pub(super) fn is_signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    pub(super) fn is_integer(self) -> bool {
        !self.is_float() && self != Self::Bool
    }

    fn signed(size: usize) -> Option<Self> {
        Some(match size {
            1 => Self::I8,
            2 => Self::I16,
            4 => Self::I32,
            8 => Self::I64,
            _ => return None,
        })
    }

    /// The type in which a function such as `sin` computes.
    pub(super) fn to_float(self) -> Self {
        match (self.is_float(), self.size()) {
            (true, _) => self,
            (false, 1) => Self::F16,
            (false, 2) => Self::F32,
            _ => Self::F64,
        }
    }

    /// The type that holds the items of two types. NumPy: `result_type`.
    pub(super) fn promote(self, other: Self) -> Self {
        let (small, large) = match (self.rank(), other.rank()) {
            (one, two) if one <= two => (self, other),
            _ => (other, self),
        };
        match (small, large) {
            (Self::Bool, _) => large,
            (_, _) if large.is_float() && small.is_float() => large,
            (_, _) if large.is_float() => match small.to_float() {
                least if least.size() > large.size() => least,
                _ => large,
            },
            (_, _) if small.is_signed() == large.is_signed() => large,
            _ => {
                let (signed, unsigned) =
                    if small.is_signed() { (small, large) } else { (large, small) };
                match signed.size() > unsigned.size() {
                    true => signed,
                    false => Self::signed(2 * unsigned.size()).unwrap_or(Self::F64),
                }
            }
        }
    }

    /// Bool, integers and floats, each by their sizes.
    fn rank(self) -> (u8, usize) {
        let class = if self == Self::Bool { 0 } else { 1 + u8::from(self.is_float()) };
        (class, self.size())
    }

    /// Whether an integer is in the range of this integer type.
    pub(super) fn holds(self, integer: i128) -> bool {
        let bits = 8 * self.size() as u32;
        match self.is_signed() {
            true => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&integer),
            false => (0..1i128 << bits).contains(&integer),
        }
    }
}
