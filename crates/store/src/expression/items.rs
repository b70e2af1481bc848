//! Items of NumPy's number types, and the rules of its result types.

use blosc2_format::dtype::Kind;
use half::f16;

use crate::blosc2::Dtype;
use crate::item_type::int_range;

/// Evaluates an expression for items of any type.
macro_rules! for_items {
    ($items:expr, $name:ident => $of:expr) => {
        match $items {
            Items::Bool($name) => $of,
            Items::I8($name) => $of,
            Items::I16($name) => $of,
            Items::I32($name) => $of,
            Items::I64($name) => $of,
            Items::U8($name) => $of,
            Items::U16($name) => $of,
            Items::U32($name) => $of,
            Items::U64($name) => $of,
            Items::F16($name) => $of,
            Items::F32($name) => $of,
            Items::F64($name) => $of,
        }
    };
}
pub(super) use for_items;

/// Defines the types of items, each by its name, its Rust type and the kind of its dtype.
macro_rules! define {
    ($($name:ident $rust:ty, $kind:ident;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Type { $($name,)* }

        impl Type {
            const ALL: [Self; 12] = [$(Self::$name,)*];

            fn kind(self) -> Kind {
                match self { $(Self::$name => Kind::$kind,)* }
            }

            pub(super) fn size(self) -> usize {
                match self { $(Self::$name => size_of::<$rust>(),)* }
            }
        }

        #[derive(Debug, Clone, PartialEq)]
        pub(super) enum Items { $($name(Vec<$rust>),)* }

        impl Items {
            fn of_type(&self) -> Type {
                match self { $(Self::$name(_) => Type::$name,)* }
            }

            pub(super) fn len(&self) -> usize {
                for_items!(self, items => items.len())
            }

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
                for_items!(self, items => cast_all(&items, to))
            }

            /// The items as integers. They are not floats.
            pub(super) fn integers(&self) -> Vec<i128> {
                for_items!(self, items => items.iter().map(|item| item.integer()).collect())
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
                let places = to.chunks_exact_mut(self.of_type().size());
                for_items!(self, items => {
                    items[range].iter().zip(places).for_each(|(item, place)| item.put_bytes(place));
                });
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
define! {
    Bool bool, Bool;
    I8 i8, Int;
    I16 i16, Int;
    I32 i32, Int;
    I64 i64, Int;
    U8 u8, UInt;
    U16 u16, UInt;
    U32 u32, UInt;
    U64 u64, UInt;
    F16 f16, Float;
    F32 f32, Float;
    F64 f64, Float;
}

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

macro_rules! number {
    ($type:ty, $is_float:literal, $of_float:expr, $of_integer:expr, $integer:expr, $float:expr) => {
        impl Number for $type {
            const IS_FLOAT: bool = $is_float;

            fn of_bytes(bytes: &[u8]) -> Self {
                // The caller cuts the bytes into items.
                Self::from_ne_bytes(bytes.try_into().expect("the bytes of one item"))
            }

            fn put_bytes(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_ne_bytes());
            }

            fn of_number<N: Number>(number: N) -> Self {
                match N::IS_FLOAT {
                    true => $of_float(number.float()),
                    false => $of_integer(number.integer()),
                }
            }

            fn integer(self) -> i128 {
                $integer(self)
            }

            fn float(self) -> f64 {
                $float(self)
            }
        }
    };
}

macro_rules! integers {
    ($($type:ty)*) => {
        // Wide floats are truncated to 64 bits first, as in C.
        $(number!(
            $type,
            false,
            |float: f64| float as i64 as $type,
            |integer: i128| integer as $type,
            i128::from,
            |integer: $type| integer as f64
        );)*
    };
}
integers!(i8 i16 i32 i64 u8 u16 u32 u64);

fn no_integer<T>(_: T) -> i128 {
    unreachable!("a float is not converted to an integer of 128 bits")
}

// Items of up to 16 bits are exact in f64. Larger ones are infinite in f16 in any case.
number!(f16, true, f16::from_f64, |integer| f16::from_f64(integer as f64), no_integer, f64::from);
number!(f32, true, |float| float as f32, |integer| integer as f32, no_integer, f64::from);
number!(f64, true, |float| float, |integer| integer as f64, no_integer, |float| float);

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

impl Type {
    /// The type of a dtype in any byte order.
    pub(super) fn of(dtype: &Dtype) -> Option<Self> {
        Self::of_kind(dtype.kind()?, dtype.size())
    }

    fn of_kind(kind: Kind, size: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.kind() == kind && of.size() == size)
    }

    pub(super) fn dtype(self) -> Dtype {
        Dtype::scalar(self.kind(), self.size()).expect("a dtype of NumPy")
    }

    pub(super) fn is_float(self) -> bool {
        self.kind() == Kind::Float
    }

    pub(super) fn is_signed(self) -> bool {
        self.kind() == Kind::Int
    }

    pub(super) fn is_integer(self) -> bool {
        matches!(self.kind(), Kind::Int | Kind::UInt)
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
                    false => Self::of_kind(Kind::Int, 2 * unsigned.size()).unwrap_or(Self::F64),
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
        int_range(self.kind(), self.size() as u64).contains(&integer)
    }
}
