//! Columns of a table, as its schema describes them.

use std::fmt;
use std::sync::OnceLock;

use blosc2::super_chunk::Revision;
use blosc2::{Dtype, NDArray, Value};

use crate::{BatchArray, ItemType, ObjectArray};

/// The type of a column. The names of the types are the same as in Python's schemas.
///
/// ```
/// use blosc2_store::ColumnKind;
///
/// assert_eq!(ColumnKind::Int64.to_string(), "int64");
/// assert_eq!(ColumnKind::String { max_length: 8 }.to_string(), "string[8]");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ColumnKind {
    /// 8-bit signed integer: `i8`.
    Int8,
    /// 16-bit signed integer: `i16`.
    Int16,
    /// 32-bit signed integer: `i32`.
    Int32,
    /// 64-bit signed integer: `i64`.
    Int64,
    /// 8-bit unsigned integer: `u8`.
    UInt8,
    /// 16-bit unsigned integer: `u16`.
    UInt16,
    /// 32-bit unsigned integer: `u32`.
    UInt32,
    /// 64-bit unsigned integer: `u64`.
    UInt64,
    /// 32-bit float: `f32`.
    Float32,
    /// 64-bit float: `f64`.
    Float64,
    /// Complex number of two `f32`.
    Complex64,
    /// Complex number of two `f64`.
    Complex128,
    /// Boolean: `bool`. If nulls are stored as a value instead of a mask, the items are `u8`: 0, 1, and 255 for null.
    Bool,
    /// Timestamp: `i64`, the time since 1970-01-01 in the unit `unit`.
    Timestamp {
        /// The unit.
        unit: TimeUnit,
        /// The name of the time zone, which is for display only.
        timezone: Option<String>,
    },
    /// Fixed-length string of at most `max_length` characters. Each character takes four bytes.
    String {
        /// Maximum number of characters.
        max_length: u64,
    },
    /// Fixed-length byte string of at most `max_length` bytes.
    Bytes {
        /// Maximum number of bytes.
        max_length: u64,
    },
    /// Variable-length strings, stored as an array of offsets and an array of all bytes. Python: `utf8`.
    Utf8,
    /// Variable-length strings, stored in batches, as in a [`BatchArray`](crate::BatchArray). Python: `vlstring`.
    VlString,
    /// Variable-length bytes, stored in batches. Python: `vlbytes`.
    VlBytes,
    /// Dictionary-encoded strings: each row is an `i32` code, an index into a list of the distinct strings.
    Dictionary {
        /// Whether the order of the distinct strings is meaningful.
        ordered: bool,
    },
    /// Variable-length lists. All items have this type.
    List(ItemType),
    /// Structures with these fields.
    Struct(Vec<(String, ItemType)>),
    /// Values of any type.
    Object,
    /// Arrays. The arrays of all rows have the same shape.
    NDArray {
        /// The shape of the array in each row.
        shape: Vec<u64>,
        /// The type of the items.
        dtype: Dtype,
    },
    /// A column that is not stored: Python computes it from this expression or source code.
    Computed(String),
    /// A kind of this name that is unknown to this crate.
    Other(String),
}

/// The unit of a [`ColumnKind::Timestamp`].
///
/// ```
/// use blosc2_store::{ColumnKind, TimeUnit};
///
/// let kind = ColumnKind::Timestamp { unit: TimeUnit::Millisecond, timezone: None };
/// assert_eq!(kind.to_string(), "timestamp[ms]");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds: `s`.
    Second,
    /// Milliseconds: `ms`.
    Millisecond,
    /// Microseconds: `us`.
    Microsecond,
    /// Nanoseconds: `ns`.
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

/// Writes the kind in Python's schemas, with its parameters: `int64`, `timestamp[us]`, `list[utf8]`, `struct[x, y]`,
/// `ndarray[2, 3] of <f4`.
impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Timestamp { unit, timezone: None } => return write!(f, "timestamp[{unit}]"),
            Self::Timestamp { unit, timezone: Some(timezone) } => {
                return write!(f, "timestamp[{unit}, {timezone}]");
            }
            Self::String { max_length } => return write!(f, "string[{max_length}]"),
            Self::Bytes { max_length } => return write!(f, "bytes[{max_length}]"),
            Self::List(item) => return write!(f, "list[{}]", item.kind().name()),
            Self::Struct(fields) => {
                let fields: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                return write!(f, "struct[{}]", fields.join(", "));
            }
            Self::NDArray { shape, dtype } => return write!(f, "ndarray{shape:?} of {dtype}"),
            kind => kind.name(),
        };
        f.write_str(name)
    }
}

/// A column of a [`CTable`](super::CTable).
///
/// ```
/// use blosc2_store::{CTable, ColumnKind, ColumnSpec, Schema};
///
/// let price = ColumnSpec::from(ColumnKind::Float32).nullable();
/// let table = CTable::in_memory(&Schema::new().column("price", price))?;
/// let column = table.column("price").expect("a column of the schema");
/// assert_eq!(column.kind(), &ColumnKind::Float32);
/// assert!(column.is_nullable() && !column.is_stale());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct Column {
    pub(super) name: String,
    pub(super) kind: ColumnKind,
    pub(super) nullable: bool,
    pub(super) metadata: Value,
    pub(super) nulls: Nulls,
    /// The key of its data, below the table.
    pub(super) key: String,
    /// Whether the columns that it was computed from have changed since.
    pub(super) stale: bool,
    /// Its storage, once it is opened.
    pub(super) stored: OnceLock<Box<Stored>>,
}

/// How a column represents null rows.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Nulls {
    /// The column is not nullable.
    Never,
    /// By a separate mask.
    Mask,
    /// By a null value.
    Sentinel(Value),
    /// By a null code, which is not an index into the list of strings.
    Code(i64),
    /// By `None`.
    Native,
}

impl Column {
    /// Returns the name. The name of a nested column consists of the names of all levels, separated by dots:
    /// `outer.inner`. A dot, slash or backslash inside the name of a level is escaped with a backslash.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the type.
    pub fn kind(&self) -> &ColumnKind {
        &self.kind
    }

    /// Returns whether rows can be null.
    pub fn is_nullable(&self) -> bool {
        self.nullable
    }

    /// Returns whether the column is stale. A stale column was computed by Python from other columns, which have
    /// changed since then. Reading a stale column fails, but [`CTable::array`](super::CTable::array) opens its stored
    /// values.
    pub fn is_stale(&self) -> bool {
        self.stale
    }

    /// Returns the entry of the column in the schema. The entry contains the kind, the bounds, the default value, the
    /// representation of nulls, and the size of batches.
    pub fn metadata(&self) -> &Value {
        &self.metadata
    }
}

/// The storage of a column.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) content: Content,
    /// The mask of the rows that are not null; without it the content itself represents nulls.
    pub(super) marks: Option<NDArray>,
    /// The revision of the part whose lengths or strings are kept in memory, when it was opened.
    pub(super) seen: Option<Revision>,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one for each column")]
pub(super) enum Content {
    /// Fixed-size items of one shape.
    Items(NDArray),
    /// Codes, and the list of strings, which is read when it is needed.
    Codes { codes: NDArray, texts: BatchArray, decoded: OnceLock<Vec<String>> },
    /// Offsets, and the bytes of the strings, one after the other.
    Texts { offsets: NDArray, bytes: NDArray },
    /// Values in batches.
    Batches(BatchArray),
    /// Values, one per chunk.
    Cells(ObjectArray),
}
