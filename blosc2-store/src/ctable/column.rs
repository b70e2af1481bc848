//! The columns of a table, as its schema describes them.

use std::fmt;
use std::sync::OnceLock;

use blosc2::{Dtype, NDArray, Value};

use crate::{BatchArray, ItemType, ObjectArray};

/// What a column holds. Named as in Python's schemas.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// Integers: `i8`.
    Int8,
    /// Integers: `i16`.
    Int16,
    /// Integers: `i32`.
    Int32,
    /// Integers: `i64`.
    Int64,
    /// Integers: `u8`.
    UInt8,
    /// Integers: `u16`.
    UInt16,
    /// Integers: `u32`.
    UInt32,
    /// Integers: `u64`.
    UInt64,
    /// Numbers: `f32`.
    Float32,
    /// Numbers: `f64`.
    Float64,
    /// Pairs of `f32`.
    Complex64,
    /// Pairs of `f64`.
    Complex128,
    /// `bool`; where a value of its own says that there is none, `u8`: 0, 1 and 255.
    Bool,
    /// Moments: `i64`, so many units since the start of 1970.
    Timestamp {
        /// The unit.
        unit: TimeUnit,
        /// The name of the time zone in which they are to be shown.
        timezone: Option<String>,
    },
    /// Texts of at most so many characters, of four bytes each.
    String {
        /// Characters.
        max_length: u64,
    },
    /// At most so many bytes.
    Bytes {
        /// Bytes.
        max_length: u64,
    },
    /// Texts of any length, one after the other. Python's `utf8`.
    Utf8,
    /// Texts of any length, in batches. Python's `vlstring`.
    VlString,
    /// Bytes of any number, in batches. Python's `vlbytes`.
    VlBytes,
    /// Texts of which there are few different ones: `i32`, their places in a list of them.
    Dictionary {
        /// Whether that list has an order that means something.
        ordered: bool,
    },
    /// Lists of any length, of such items.
    List(ItemType),
    /// Maps with these keys.
    Struct(Vec<(String, ItemType)>),
    /// Values of any kind.
    Object,
    /// Arrays, all of one shape.
    NDArray {
        /// Items along each dimension of the array of one row.
        shape: Vec<u64>,
        /// The type of the items.
        dtype: Dtype,
    },
    /// Nothing that is stored: Python computes it, from this expression or source code.
    Computed(String),
    /// A kind of this name, which this version does not know.
    Other(String),
}

/// What the numbers of a [`ColumnKind::Timestamp`] count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// `s`.
    Second,
    /// `ms`.
    Millisecond,
    /// `us`.
    Microsecond,
    /// `ns`.
    Nanosecond,
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Second => "s",
            Self::Millisecond => "ms",
            Self::Microsecond => "us",
            Self::Nanosecond => "ns",
        })
    }
}

/// As Python names it: `int64`, `timestamp[us]`, `list[utf8]`, `struct[x, y]`, `ndarray[2, 3] of <f4`.
impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Int8 => "int8",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::UInt8 => "uint8",
            Self::UInt16 => "uint16",
            Self::UInt32 => "uint32",
            Self::UInt64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Complex64 => "complex64",
            Self::Complex128 => "complex128",
            Self::Bool => "bool",
            Self::Timestamp { unit, timezone: None } => return write!(f, "timestamp[{unit}]"),
            Self::Timestamp { unit, timezone: Some(timezone) } => {
                return write!(f, "timestamp[{unit}, {timezone}]");
            }
            Self::String { max_length } => return write!(f, "string[{max_length}]"),
            Self::Bytes { max_length } => return write!(f, "bytes[{max_length}]"),
            Self::Utf8 => "utf8",
            Self::VlString => "vlstring",
            Self::VlBytes => "vlbytes",
            Self::Dictionary { .. } => "dictionary",
            Self::List(item) => return write!(f, "list[{}]", item.kind().name()),
            Self::Struct(fields) => {
                let fields: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                return write!(f, "struct[{}]", fields.join(", "));
            }
            Self::Object => "object",
            Self::NDArray { shape, dtype } => return write!(f, "ndarray{shape:?} of {dtype}"),
            Self::Computed(_) => "computed",
            Self::Other(name) => name,
        };
        f.write_str(name)
    }
}

/// A column of a [`CTable`](super::CTable).
#[derive(Debug)]
pub struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) nullable: bool,
    pub(super) metadata: Value,
    pub(super) nulls: Nulls,
    /// Where it lies, below the table.
    pub(super) key: String,
    /// Whether it was to be computed again from columns that have changed.
    pub(super) stale: bool,
    /// What it is stored in, once it was opened.
    pub(super) stored: OnceLock<Stored>,
}

/// How a column says that a row has no value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Nulls {
    /// It cannot.
    Never,
    /// By marks beside it.
    Mask,
    /// By a value that stands for none.
    Sentinel(Value),
    /// By a code that is no place in the list of texts.
    Code(i64),
    /// By `None`.
    Native,
}

impl Column {
    /// The name; of a column in a structure with those of all levels, as `outer.inner`. A dot or slash that is part
    /// of a name has a backslash before it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it holds.
    pub fn kind(&self) -> &ColumnKind {
        &self.kind
    }

    /// Whether rows may have no value.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Whether its values are older than those that they were computed from, so that they are not read.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// All that the schema says of it: limits, the default value, how nulls and batches are kept.
    pub fn metadata(&self) -> &Value {
        &self.metadata
    }
}

/// What a column is stored in.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) content: Content,
    /// Which rows have a value; without it, all of those of which the content does not say otherwise.
    pub(super) marks: Option<NDArray>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each column")]
pub(super) enum Content {
    /// Items of one size and shape.
    Items(NDArray),
    /// Places in a list of texts, which is read when it is needed.
    Codes { codes: NDArray, texts: BatchArray, decoded: OnceLock<Vec<String>> },
    /// Texts, one after the other, and where each starts and the last one ends.
    Texts { offsets: NDArray, bytes: NDArray },
    /// Values in batches.
    Batches(BatchArray),
    /// Values in chunks of their own.
    Cells(ObjectArray),
}
