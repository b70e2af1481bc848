//! The types of values: of the columns of tables and of the items of lists, as in Python's schemas.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::ops::RangeInclusive;

use crate::blosc2::dtype::Kind;
use crate::blosc2::{CParams, Dtype, Element, Error, ErrorKind, Value};

use crate::tag::{Fault, what};

/// Maximum nesting depth of lists and structures that are written.
const MAX_DEPTH: usize = 32;
/// Default `max_length` of columns.
const MAX_LENGTH: u64 = 32;
/// The `max_length` of items of lists and of fields that have none.
const NO_LIMIT: u64 = u64::MAX;
/// Default `batch_rows`.
pub(crate) const BATCH_ROWS: u64 = 2048;
/// `items_per_block` of columns. Python computes it from the first batch, which can have few rows.
pub(crate) const BLOCK_ROWS: u64 = 256;

/// The type of the values of a column, or of the items of a list: the kind, whether values can be null, and options
/// such as bounds. Python: `SchemaSpec`.
///
/// Create a type from an [`ItemKind`]. The options then have the defaults of Python.
///
/// ```
/// use blosc2_store::{ItemKind, ItemType};
///
/// let celsius = ItemType::from(ItemKind::Float64).nullable().with("ge", -273.15).with("default", 0.0);
/// assert_eq!(celsius.get("ge"), Some(&(-273.15).into()));
///
/// let name = ItemKind::String { max_length: 100 };
/// let count = ItemType::from(ItemKind::UInt16).with("le", 1000).nullable();
/// let fields = vec![("name".to_owned(), name.into()), ("count".to_owned(), count)];
/// let item = ItemType::from(ItemKind::Struct(fields));
/// assert!(!item.is_nullable());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ItemType {
    kind: ItemKind,
    /// The options, each once: in the order in which they were read, or in which Python writes them. The parameters of
    /// the kind are not among them.
    options: Vec<(String, Value)>,
    /// The compression parameters of a new column.
    pub(crate) cparams: Option<Box<CParams>>,
}

/// The kind of an [`ItemType`]. The names of the kinds are the same as in Python's schemas.
///
/// ```
/// use blosc2_store::ItemKind;
///
/// assert_eq!(ItemKind::Int64.to_string(), "int64");
/// assert_eq!(ItemKind::String { max_length: 8 }.to_string(), "string[8]");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ItemKind {
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
    /// Boolean: `bool`. If a column stores nulls as a value instead of a mask, its items are `u8`: 0, 1, and 255 for
    /// null.
    Bool,
    /// Timestamp: `i64`, the time since 1970-01-01 in the unit `unit`.
    Timestamp {
        /// The unit.
        unit: TimeUnit,
        /// The name of the time zone, which is for display only.
        timezone: Option<String>,
    },
    /// String of at most `max_length` characters. Columns store strings of fixed length: each character takes four
    /// bytes.
    String {
        /// Maximum number of characters. `u64::MAX`: no limit, only for items of lists and fields of structures.
        max_length: u64,
    },
    /// Byte string of at most `max_length` bytes. Columns store byte strings of fixed length.
    Bytes {
        /// Maximum number of bytes. `u64::MAX`: no limit, only for items of lists and fields of structures.
        max_length: u64,
    },
    /// Variable-length strings. A column stores them as an array of offsets and an array of all bytes. Python: `utf8`.
    Utf8,
    /// Variable-length strings. A column stores them in batches, as in a [`BatchArray`](crate::BatchArray). Python:
    /// `vlstring`.
    VlString,
    /// Variable-length bytes. A column stores them in batches. Python: `vlbytes`.
    VlBytes,
    /// Dictionary-encoded strings: each row of a column is an `i32` code, an index into a list of the distinct strings.
    Dictionary {
        /// Whether the order of the distinct strings is meaningful.
        ordered: bool,
    },
    /// Variable-length lists. All items have this type: `ItemKind::List(ItemKind::Int8.into())`.
    List(Box<ItemType>),
    /// Structures: maps with these fields, in this order.
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
    /// A kind of this name that is unknown to this crate. Items of lists can be read, but not written.
    Other(String),
}

/// The unit of an [`ItemKind::Timestamp`].
///
/// ```
/// use blosc2_store::{ItemKind, TimeUnit};
///
/// let kind = ItemKind::Timestamp { unit: TimeUnit::Milliseconds, timezone: None };
/// assert_eq!(kind.to_string(), "timestamp[ms]");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TimeUnit {
    /// Seconds: `s`.
    Seconds,
    /// Milliseconds: `ms`.
    Milliseconds,
    /// Microseconds: `us`.
    Microseconds,
    /// Nanoseconds: `ns`.
    Nanoseconds,
}

/// A kind without parameters: its name, and the dtype of its items in an array.
type Plain = (&'static str, ItemKind, Option<(Kind, u64)>);

/// All kinds without parameters.
static PLAIN: [Plain; 17] = [
    ("int8", ItemKind::Int8, Some((Kind::Int, 1))),
    ("int16", ItemKind::Int16, Some((Kind::Int, 2))),
    ("int32", ItemKind::Int32, Some((Kind::Int, 4))),
    ("int64", ItemKind::Int64, Some((Kind::Int, 8))),
    ("uint8", ItemKind::UInt8, Some((Kind::UInt, 1))),
    ("uint16", ItemKind::UInt16, Some((Kind::UInt, 2))),
    ("uint32", ItemKind::UInt32, Some((Kind::UInt, 4))),
    ("uint64", ItemKind::UInt64, Some((Kind::UInt, 8))),
    ("float32", ItemKind::Float32, Some((Kind::Float, 4))),
    ("float64", ItemKind::Float64, Some((Kind::Float, 8))),
    ("complex64", ItemKind::Complex64, Some((Kind::Complex, 8))),
    ("complex128", ItemKind::Complex128, Some((Kind::Complex, 16))),
    ("bool", ItemKind::Bool, Some((Kind::Bool, 1))),
    ("utf8", ItemKind::Utf8, None),
    ("vlstring", ItemKind::VlString, None),
    ("vlbytes", ItemKind::VlBytes, None),
    ("object", ItemKind::Object, None),
];

/// The order in which Python writes the entries of a type. Other entries come last.
const ORDER: &str = "kind item fields index_type value_type ordered item_shape dtype_str ge gt le lt min_length \
    max_length pattern unit timezone bool_widened_to_uint8 nullable null_value null_storage null_code storage \
    serializer batch_rows items_per_block";

/// The entry with the name of a field.
const NAME: &str = "name";
/// The option with the default of a column.
const DEFAULT: &str = "default";

/// The position of an entry in this order.
fn place(name: &str) -> usize {
    ORDER.split(' ').position(|known| known == name).unwrap_or(usize::MAX)
}

impl TimeUnit {
    pub(crate) const ALL: [Self; 4] =
        [Self::Seconds, Self::Milliseconds, Self::Microseconds, Self::Nanoseconds];

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        ["s", "ms", "us", "ns"][self as usize]
    }

    pub(crate) fn nanoseconds(self) -> i128 {
        [1_000_000_000, 1_000_000, 1_000, 1][self as usize]
    }
}

impl fmt::Display for TimeUnit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Writes the kind in Python's schemas, with its parameters: `int64`, `timestamp[us]`, `list[utf8]`, `struct[x, y]`,
/// `ndarray[2, 3] of <f4`.
impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timestamp { unit, timezone: None } => write!(f, "timestamp[{unit}]"),
            Self::Timestamp { unit, timezone: Some(zone) } => {
                write!(f, "timestamp[{unit}, {zone}]")
            }
            Self::String { max_length } | Self::Bytes { max_length } if *max_length != NO_LIMIT => {
                write!(f, "{}[{max_length}]", self.name())
            }
            Self::List(item) => write!(f, "list[{}]", item.kind.name()),
            Self::Struct(fields) => {
                let fields: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
                write!(f, "struct[{}]", fields.join(", "))
            }
            Self::NDArray { shape, dtype } => write!(f, "ndarray{shape:?} of {dtype}"),
            kind => f.write_str(kind.name()),
        }
    }
}

impl ItemKind {
    /// Returns the name of the kind in Python, without parameters.
    pub fn name(&self) -> &str {
        match self {
            Self::Timestamp { .. } => "timestamp",
            Self::String { .. } => "string",
            Self::Bytes { .. } => "bytes",
            Self::Dictionary { .. } => "dictionary",
            Self::List(_) => "list",
            Self::Struct(_) => "struct",
            Self::NDArray { .. } => "ndarray",
            Self::Computed(_) => "computed",
            Self::Other(name) => name,
            plain => PLAIN.iter().find(|(_, kind, _)| kind == plain).map_or("", |(name, ..)| name),
        }
    }

    /// The kind and the size of its values as items of an array; `None` if they have no fixed size.
    fn scalar(&self) -> Option<(Kind, u64)> {
        match self {
            Self::Timestamp { .. } => Some((Kind::Int, 8)),
            Self::String { max_length } => Some((Kind::Unicode, max_length.checked_mul(4)?)),
            Self::Bytes { max_length } => Some((Kind::Bytes, *max_length)),
            plain => PLAIN.iter().find(|(_, kind, _)| kind == plain)?.2,
        }
    }

    /// The dtype of its values as items of an array; `None` if they have no fixed size, or one that is too large.
    pub(crate) fn dtype(&self) -> Option<Dtype> {
        if let Self::NDArray { dtype, .. } = self {
            return Some(dtype.clone());
        }
        let (kind, size) = self.scalar()?;
        Dtype::scalar(kind, usize::try_from(size).ok()?).ok()
    }

    /// Returns the kind of numbers or booleans with this dtype, in any byte order; `None` if there is none, as for floats
    /// of 16 bits.
    ///
    /// ```
    /// use blosc2_store::ItemKind;
    /// use blosc2_store::blosc2::Dtype;
    ///
    /// assert_eq!(ItemKind::of_dtype(&Dtype::parse(">f4").unwrap()), Some(ItemKind::Float32));
    /// ```
    pub fn of_dtype(dtype: &Dtype) -> Option<Self> {
        let scalar = Some((dtype.kind()?, dtype.size() as u64));
        PLAIN.iter().find(|(.., known)| *known == scalar).map(|(_, kind, _)| kind.clone())
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self, Self::String { .. } | Self::Utf8 | Self::VlString | Self::Dictionary { .. })
    }

    /// Whether a column stores values in batches, or one per chunk.
    pub(crate) fn has_batches(&self) -> bool {
        use ItemKind::*;
        matches!(self, VlString | VlBytes | List(_) | Struct(_) | Object)
    }

    /// Whether the values of a column have a fixed size.
    pub(crate) fn has_items(&self) -> bool {
        use ItemKind::*;
        !self.has_batches() && !matches!(self, Utf8 | Dictionary { .. } | Computed(_) | Other(_))
    }

    /// Whether types of this kind have an option; `None` if that is not known.
    fn has_option(&self, name: &str) -> Option<bool> {
        use ItemKind::*;
        Some(match (self, name) {
            (Computed(_) | Other(_), _) => return None,
            (_, "nullable") => true,
            (Dictionary { .. }, "index_type" | "value_type" | "null_code") => true,
            (List(_), "storage") | (NDArray { .. }, "bool_widened_to_uint8") => true,
            (String { .. }, "pattern") | (String { .. } | Bytes { .. }, "min_length") => true,
            (Timestamp { .. }, "ge" | "gt" | "le" | "lt") => false,
            (_, "ge" | "gt" | "le" | "lt") => {
                matches!(self.scalar(), Some((Kind::Int | Kind::UInt | Kind::Float, _)))
            }
            (_, "null_value" | "null_storage") => self.has_items() || *self == Utf8,
            (Struct(_), _) => false,
            (_, "serializer" | "batch_rows" | "items_per_block") => self.has_batches(),
            _ => false,
        })
    }

    fn parameters(&self) -> Vec<(&'static str, Value)> {
        match self {
            Self::Timestamp { unit, timezone } => {
                let zone = timezone.iter().map(|zone| ("timezone", zone.as_str().into()));
                [("unit", unit.name().into())].into_iter().chain(zone).collect()
            }
            Self::String { max_length } | Self::Bytes { max_length } if *max_length != NO_LIMIT => {
                vec![("max_length", (*max_length).into())]
            }
            Self::Dictionary { ordered } => vec![("ordered", (*ordered).into())],
            Self::List(item) => vec![("item", item.metadata())],
            Self::Struct(fields) => {
                let fields = fields.iter().map(|(name, field)| field.named(name)).collect();
                vec![("fields", Value::List(fields))]
            }
            Self::NDArray { shape, dtype } => {
                let shape = shape.iter().copied().collect();
                vec![("item_shape", shape), ("dtype_str", dtype.to_string().into())]
            }
            _ => Vec::new(),
        }
    }

    fn parameter_names(&self) -> &'static [&'static str] {
        match self {
            Self::Timestamp { .. } => &["unit", "timezone"],
            Self::String { .. } | Self::Bytes { .. } => &["max_length"],
            Self::Dictionary { .. } => &["ordered"],
            Self::List(_) => &["item"],
            Self::Struct(_) => &["fields"],
            Self::NDArray { .. } => &["item_shape", "dtype_str"],
            _ => &[],
        }
    }

    /// The kind of this name, whose parameters are taken from the entries of its type, with the `max_length` if there is
    /// none. A kind with an invalid parameter is [`Other`](Self::Other), with all entries, except for lists and
    /// structures. The error describes the fault.
    fn parse(
        name: String,
        entries: &mut Vec<(String, Value)>,
        max_length: u64,
    ) -> Result<Self, String> {
        Ok(match &*name {
            "list" => {
                let item = take(entries, "item").ok_or("a type without an item type")?;
                Self::List(Box::new(ItemType::from_metadata(item)?))
            }
            "struct" => {
                let Some(Value::List(fields) | Value::Tuple(fields)) = take(entries, "fields")
                else {
                    return Err("a type without fields".to_owned());
                };
                let fields = fields.into_iter().map(ItemType::field).collect::<Result<_, _>>()?;
                Self::Struct(unique(fields))
            }
            _ => {
                let Some(kind) = Self::without_types(&name, entries, max_length) else {
                    return Ok(Self::Other(name));
                };
                entries.retain(|(name, _)| !kind.parameter_names().contains(&&**name));
                kind
            }
        })
    }

    /// The kind of this name, if it contains no other types. `None` if the kind is unknown, or a parameter is invalid.
    fn without_types(name: &str, entries: &[(String, Value)], max_length: u64) -> Option<Self> {
        let value = |name: &str| {
            let found = entries.iter().find(|(known, _)| known == name);
            found.map(|(_, value)| value).filter(|value| **value != Value::None)
        };
        let max_length = || value("max_length").map_or(Some(max_length), Value::as_u64);
        Some(match name {
            "string" => Self::String { max_length: max_length()? },
            "bytes" => Self::Bytes { max_length: max_length()? },
            "timestamp" => {
                let unit = match value("unit") {
                    None => TimeUnit::Microseconds,
                    Some(unit) => TimeUnit::of_name(unit.as_str()?)?,
                };
                let timezone = match value("timezone") {
                    None => None,
                    Some(zone) => Some(zone.as_str()?.to_owned()),
                };
                Self::Timestamp { unit, timezone }
            }
            "dictionary" => {
                Self::Dictionary { ordered: value("ordered") == Some(&Value::Bool(true)) }
            }
            "ndarray" => {
                let shape = value("item_shape")?.clone().into_type().ok()?;
                Self::NDArray { shape, dtype: Dtype::parse(value("dtype_str")?.as_str()?).ok()? }
            }
            _ => PLAIN.iter().find(|(known, ..)| *known == name)?.1.clone(),
        })
    }
}

impl From<ItemKind> for ItemType {
    fn from(kind: ItemKind) -> Self {
        let batches = || {
            let rows = ("batch_rows", BATCH_ROWS.into());
            [("nullable", false.into()), ("serializer", "msgpack".into()), rows]
        };
        let options = match &kind {
            ItemKind::VlString | ItemKind::VlBytes | ItemKind::Object => batches().to_vec(),
            ItemKind::List(_) => {
                batches().into_iter().chain([("storage", "batch".into())]).collect()
            }
            ItemKind::Struct(_) => vec![("nullable", false.into())],
            ItemKind::Dictionary { .. } => {
                let text = [("kind", "vlstring".into())].into_iter().chain(batches());
                vec![
                    ("index_type", Value::from([("kind", "int32".into())])),
                    ("value_type", text.collect()),
                    ("nullable", false.into()),
                    ("null_code", (-1).into()),
                ]
            }
            _ => Vec::new(),
        };
        let options = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let mut this = Self { kind, options, cparams: None };
        this.sort();
        this
    }
}

impl From<ItemKind> for Box<ItemType> {
    fn from(kind: ItemKind) -> Self {
        Box::new(kind.into())
    }
}

impl ItemType {
    /// Returns the kind.
    pub fn kind(&self) -> &ItemKind {
        &self.kind
    }

    /// Allows null values (`None`). In a table, the kind and the options of the column determine how null is stored:
    /// - columns with the option `null_value` store this value;
    /// - `Dictionary` columns store a code;
    /// - columns that are stored in batches (`VlString`, `VlBytes`, `List`, `Struct` and `Object`) store `None`. A
    ///   batch is a chunk of up to `batch_rows` rows;
    /// - other columns have a separate mask of nulls.
    pub fn nullable(self) -> Self {
        // These kinds have no spare value that can represent null.
        let masked = matches!(self.kind, ItemKind::Complex64 | ItemKind::Complex128)
            && self.get("null_value").is_none();
        let nullable = self.with("nullable", true);
        if masked { nullable.with("null_storage", "mask") } else { nullable }
    }

    /// Returns whether values can be null (`None`).
    pub fn is_nullable(&self) -> bool {
        let has = |name| self.given(name).is_some();
        self.get("nullable") == Some(&Value::Bool(true)) || has("null_value") || has("null_storage")
    }

    /// Sets an option. Options have the same names as the arguments in Python:
    ///
    /// | option | kinds | value |
    /// |---|---|---|
    /// | `ge`, `gt`, `le`, `lt` | integers and floats | the bound of the values: ≥, >, ≤ or < |
    /// | `min_length` | `String` and `Bytes` | minimum length |
    /// | `null_value` | columns of fixed-size kinds and `Utf8` | the value that represents null; must be 255 for `Bool` |
    /// | `default` | columns of all kinds | the value of the column in rows that are appended without this column |
    /// | `storage` | `List` | `batch` (default): several rows per chunk; `vl`: one row per chunk |
    /// | `batch_rows` | kinds in batches (see [`nullable`](Self::nullable)), except `Struct` | rows per batch; default 2048 |
    /// | `items_per_block` | kinds in batches, except `Struct` | rows per block of a batch; default 256 in columns |
    ///
    /// The parameters of the [`kind`](Self::kind), such as `max_length`, are not options. This method does not check the
    /// option. Creating an array or a table, and adding a column, check it.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        if name == "null_value" {
            self.options.retain(|(known, _)| known != "null_storage");
        }
        let value = value.into();
        match self.options.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.options.push((name.to_owned(), value)),
        }
        self.sort();
        self
    }

    fn sort(&mut self) {
        self.options.sort_by_key(|(name, _)| place(name));
    }

    /// Returns the value of an option. Returns `None` if the option is not set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.options.iter().find(|(option, _)| option == name).map(|(_, value)| value)
    }

    /// The value of an option, unless it is not set or `None`.
    pub(crate) fn given(&self, name: &str) -> Option<&Value> {
        self.get(name).filter(|value| **value != Value::None)
    }

    /// Sets the compression parameters of a column. The default parameters are the defaults of Python. The table that is
    /// created uses all of them until it is closed, except a [prefilter](CParams::prefilter), which columns do not have.
    /// Files do not store the number of threads and the tuner: a table that is opened again has no tuner, and
    /// compresses with one thread, or with those of `CTable::set_threads`.
    #[cfg(feature = "c")]
    pub fn cparams(mut self, params: impl std::borrow::Borrow<CParams>) -> Self {
        self.cparams = Some(Box::new(params.borrow().clone()));
        self
    }

    /// Returns a map with the kind, its parameters and all options, as Python writes it to a file.
    pub fn metadata(&self) -> Value {
        self.entries().collect()
    }

    /// The same map, with a name at the start: that of a field or of a column.
    pub(crate) fn named(&self, name: &str) -> Value {
        [(NAME, name.into())].into_iter().chain(self.entries()).collect()
    }

    fn entries(&self) -> impl Iterator<Item = (&str, Value)> {
        let mut entries = vec![("kind", self.kind.name().into())];
        entries.extend(self.kind.parameters());
        entries.extend(self.options.iter().map(|(name, value)| (name.as_str(), value.clone())));
        if !matches!(self.kind, ItemKind::Other(_)) {
            entries.sort_by_key(|(name, _)| place(name));
        }
        entries.into_iter()
    }

    /// Parses the type of the items of a list, or of a list, as Python writes it. The error describes the fault.
    pub(crate) fn from_metadata(metadata: Value) -> Result<Self, String> {
        Self::parse(entries_of(metadata)?, NO_LIMIT)
    }

    fn parse(mut entries: Vec<(String, Value)>, max_length: u64) -> Result<Self, String> {
        let Some(Value::Str(kind)) = take(&mut entries, "kind") else {
            return Err("a type without a kind".to_owned());
        };
        let kind = ItemKind::parse(kind, &mut entries, max_length)?;
        Ok(Self { kind, options: entries, cparams: None })
    }

    /// Parses a field of a structure.
    fn field(metadata: Value) -> Result<(String, Self), String> {
        let mut entries = entries_of(metadata)?;
        match take(&mut entries, NAME) {
            Some(Value::Str(name)) => Ok((name, Self::parse(entries, NO_LIMIT)?)),
            _ => Err("a field without a name".to_owned()),
        }
    }

    /// Parses the entry of a column in a schema; `None` without a name or a kind. The kind of a column that this crate
    /// cannot read is [`ItemKind::Other`], or [`ItemKind::Computed`].
    pub(crate) fn column(entry: &Value, computed: bool) -> Option<(String, Self)> {
        let mut options = entries_of(entry.clone()).ok()?;
        let Value::Str(name) = take(&mut options, NAME)? else { return None };
        if !computed && let Ok(column) = Self::parse(options.clone(), MAX_LENGTH) {
            return Some((name, column));
        }
        let kind = take(&mut options, "kind");
        let kind = match computed {
            true => {
                let source = ["expression", "dsl_source"].into_iter();
                let mut source = source.filter_map(|part| entry.get(part)?.as_str());
                ItemKind::Computed(source.next().unwrap_or_default().to_owned())
            }
            false => ItemKind::Other(kind?.as_str()?.to_owned()),
        };
        Some((name, Self { kind, options, cparams: None }))
    }

    /// Checks that Python accepts the type. The error describes the fault.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_to(MAX_DEPTH, false)
    }

    /// Checks a type with at most `depth` levels, which may have the properties that only a column has.
    fn check_to(&self, depth: usize, is_column: bool) -> Result<(), String> {
        let kind = self.kind.name();
        let known = |name: &str| match self.kind.has_option(name) {
            _ if is_column && name == DEFAULT => true,
            Some(has) => has,
            None => name != "kind",
        };
        if let Some((name, _)) = self.options.iter().find(|(name, _)| !known(name)) {
            return Err(match self.kind.parameter_names().contains(&&**name) {
                true => format!(
                    "the option `{name}`, which is a parameter of the kind `{kind}`: set it in the `ItemKind`"
                ),
                false => format!("the option `{name}`, which the type `{kind}` does not have"),
            });
        }
        if self.cparams.is_some() && !is_column {
            return Err("compression parameters, which only columns have".to_owned());
        }
        ["ge", "gt", "le", "lt"].iter().try_for_each(|name| self.number(name).map(drop))?;
        self.length("min_length")?;
        for name in ["batch_rows", "items_per_block"] {
            if self.length(name)? == Some(0) {
                return Err(format!("`{name}` 0, expected 1 or more"));
            }
        }
        let deeper = || format!("types nested deeper than {MAX_DEPTH} levels");
        let below = || depth.checked_sub(1).ok_or_else(deeper);
        match &self.kind {
            ItemKind::List(item) => item.check_to(below()?, false),
            ItemKind::Struct(fields) if fields.is_empty() => {
                Err("a structure without fields".to_owned())
            }
            ItemKind::Struct(fields) => {
                check_names(fields)?;
                let below = below()?;
                fields.iter().try_for_each(|(_, field)| field.check_to(below, false))
            }
            _ => Ok(()),
        }
    }

    /// Checks that a table can have a new column of this type. Returns the type with all options that Python writes.
    /// The error describes the fault.
    pub(crate) fn for_column(&self) -> Result<Self, String> {
        // First, since the copy of a type that is nested too deep does not fit on the stack.
        self.check_to(MAX_DEPTH, true)?;
        match &self.kind {
            ItemKind::Computed(_) | ItemKind::Other(_) => {
                return Err(format!("the type {}, which cannot be created", self.kind));
            }
            ItemKind::String { max_length } | ItemKind::Bytes { max_length }
                if [0, NO_LIMIT].contains(max_length) =>
            {
                return Err(match max_length {
                    0 => "the maximum length 0, expected at least 1".to_owned(),
                    _ => "no maximum length, which only items of lists and fields can have"
                        .to_owned(),
                });
            }
            ItemKind::NDArray { shape, .. } if shape.is_empty() || shape.contains(&0) => {
                return Err(format!("arrays of the shape {shape:?}, expected items in each"));
            }
            ItemKind::NDArray { shape, dtype } => {
                if row_size(dtype, shape).is_none_or(|row| isize::try_from(row).is_err()) {
                    return Err(format!(
                        "arrays of the shape {shape:?} and the dtype {dtype}, which take more than 2^63 - 1 bytes each"
                    ));
                }
                if dtype.kind().is_none() {
                    return Err(format!("arrays of {dtype}, expected numbers or strings"));
                }
            }
            _ => {}
        }
        let mut this = self.without_default();
        let has_sentinel = this.given("null_value").is_some();
        let has_mask = this.kind == ItemKind::Utf8 || this.kind.has_items();
        if has_sentinel {
            this = this.with_new("nullable", true);
        } else if has_mask && this.get("nullable") == Some(&Value::Bool(true)) {
            this = this.with_new("null_storage", "mask");
        }
        if this.kind.has_option("items_per_block") == Some(true) {
            this = this.with_new("items_per_block", BLOCK_ROWS);
        }
        // Bools have no spare value.
        if let ItemKind::NDArray { dtype, .. } = &mut this.kind
            && *dtype == bool::dtype()
            && has_sentinel
        {
            *dtype = u8::dtype();
            this = this.with("bool_widened_to_uint8", true);
        }
        Ok(match self.get(DEFAULT) {
            Some(default) => this.with(DEFAULT, default.clone()),
            None => this,
        })
    }

    /// The type without the properties that only a column can have.
    pub(crate) fn without_default(&self) -> Self {
        let mut this = Self { cparams: None, ..self.clone() };
        this.options.retain(|(name, _)| name != DEFAULT);
        this
    }

    /// Sets an option that is not set.
    fn with_new(self, name: &str, value: impl Into<Value>) -> Self {
        if self.given(name).is_some() { self } else { self.with(name, value) }
    }

    fn number(&self, name: &str) -> Result<Option<&Value>, String> {
        match self.given(name) {
            Some(other) if !matches!(other, Value::Int(_) | Value::Float(_)) => {
                Err(format!("`{name}` {}, expected a number", what(other)))
            }
            number => Ok(number),
        }
    }

    pub(crate) fn length(&self, name: &str) -> Result<Option<u64>, String> {
        let wrong = |value| format!("`{name}` {}, expected an integer of at least 0", what(value));
        self.given(name).map(|value| value.as_u64().ok_or_else(|| wrong(value))).transpose()
    }

    /// Converts a value in a list or a structure to its stored form. Columns of some kinds are stored differently.
    fn nested(&self, value: Value) -> Result<Value, Fault> {
        match self.kind {
            ItemKind::Dictionary { .. } | ItemKind::Object | ItemKind::NDArray { .. }
                if value != Value::None =>
            {
                let detail = format!("items of the type `{}` cannot be written", self.kind.name());
                Err((ErrorKind::Unsupported, detail))
            }
            _ => self.stored(value),
        }
    }

    /// Converts a value to its stored form. The error describes why it cannot be stored.
    pub(crate) fn stored(&self, value: Value) -> Result<Value, Fault> {
        let kind = || self.kind.name();
        if value == Value::None {
            let none = || format!("None, which its type `{}` does not allow", kind());
            let fault = || (ErrorKind::InvalidArgument, none());
            return self.is_nullable().then_some(value).ok_or_else(fault);
        }
        let other = |value: &Value| {
            Err((ErrorKind::TypeMismatch, format!("{}, expected `{}`", what(value), kind())))
        };
        let stored = match (&self.kind, value) {
            (ItemKind::List(item), Value::List(items)) => {
                let items = items.into_iter().map(|value| item.nested(value));
                return items.collect::<Result<_, _>>().map(Value::List);
            }
            (ItemKind::Struct(fields), Value::Map(pairs)) => {
                let fields = fields.iter().map(|(name, field)| {
                    let value = pairs.iter().find(|(key, _)| key.as_str() == Some(name));
                    let missing = || (ErrorKind::TypeMismatch, format!("a map without `{name}`"));
                    let (key, value) = value.cloned().ok_or_else(missing)?;
                    Ok((key, field.nested(value)?))
                });
                return fields.collect::<Result<_, _>>().map(Value::Map);
            }
            (ItemKind::Object, value) => {
                // Nothing is written if a value cannot be.
                let written = value.to_msgpack();
                let failed =
                    |error: Error| (error.kind(), format!("not a value to store: {error}"));
                return written.map(|_| value).map_err(|error| failed(error.into()));
            }
            (ItemKind::NDArray { shape, dtype }, Value::Array(array)) => {
                let (found, size) = (array.dtype(), array.shape());
                if found == dtype && size == shape {
                    return Ok(Value::Array(array));
                }
                let detail =
                    format!("an array of {found} and shape {size:?}, expected {}", self.kind);
                return Err((ErrorKind::TypeMismatch, detail));
            }
            (ItemKind::Computed(_) | ItemKind::Other(_), _) => {
                let detail = format!("items of the type `{}` cannot be written", kind());
                return Err((ErrorKind::Unsupported, detail));
            }
            (ItemKind::Float32, Value::Float(number)) => (number as f32).into(),
            (ItemKind::Float32, Value::Int(number)) => (number as f32).into(),
            (ItemKind::Float64, Value::Int(number)) => (number as f64).into(),
            (ItemKind::Complex64, Value::Complex { re, im }) => {
                Value::Complex { re: (re as f32).into(), im: (im as f32).into() }
            }
            (ItemKind::Bytes { .. } | ItemKind::VlBytes, Value::List(items)) => {
                // serde serializes a vector of bytes as a list of integers.
                let bytes = items.iter().map(|item| u8::try_from(item.as_u64()?).ok());
                match bytes.collect::<Option<_>>() {
                    Some(bytes) => Value::Bytes(bytes),
                    None => return other(&Value::List(items)),
                }
            }
            (_, value) => value,
        };
        let fits = match (self.kind.scalar(), &stored) {
            (Some((kind @ (Kind::Int | Kind::UInt), size)), Value::Int(number)) => {
                int_range(kind, size).contains(number)
            }
            (Some((Kind::Float, _)), Value::Float(_))
            | (Some((Kind::Complex, _)), Value::Complex { .. })
            | (Some((Kind::Bool, _)), Value::Bool(_))
            | (Some((Kind::Unicode, _)), Value::Str(_))
            | (Some((Kind::Bytes, _)), Value::Bytes(_)) => true,
            (_, Value::Str(_)) => self.kind.is_text(),
            (_, Value::Bytes(_)) => self.kind == ItemKind::VlBytes,
            _ => false,
        };
        if !fits {
            return other(&stored);
        }
        self.check_bounds(&stored).map_err(|detail| (ErrorKind::InvalidArgument, detail))?;
        Ok(stored)
    }

    fn check_bounds(&self, value: &Value) -> Result<(), String> {
        type Fails = fn(Ordering) -> bool;
        let bounds: [(&str, Fails); 4] = [
            ("ge", Ordering::is_lt),
            ("gt", Ordering::is_le),
            ("le", Ordering::is_gt),
            ("lt", Ordering::is_ge),
        ];
        for (name, fails) in bounds {
            if let Some(bound) = self.number(name)?
                && compare(value, bound).is_some_and(fails)
            {
                return Err(format!("{}, expected `{name}` {}", what(value), what(bound)));
            }
        }
        let len = match value {
            Value::Str(text) => text.chars().count() as u64,
            Value::Bytes(bytes) => bytes.len() as u64,
            _ => return Ok(()),
        };
        let min = self.length("min_length")?.unwrap_or(0);
        let max = match &self.kind {
            ItemKind::String { max_length } | ItemKind::Bytes { max_length } => *max_length,
            _ => u64::MAX,
        };
        if !(min..=max).contains(&len) {
            return Err(format!("{} of length {len}, expected {min} to {max}", what(value)));
        }
        Ok(())
    }
}

/// The integers of this kind and size.
pub(crate) fn int_range(kind: Kind, size: u64) -> RangeInclusive<i128> {
    let bits = 8 * size as u32;
    match kind {
        Kind::Int => -(1 << (bits - 1))..=(1 << (bits - 1)) - 1,
        _ => 0..=(1 << bits) - 1,
    }
}

/// The bytes of a row of fixed-size items of this shape; `None` if the size overflows.
pub(crate) fn row_size(dtype: &Dtype, shape: &[u64]) -> Option<usize> {
    let row = shape.iter().try_fold(dtype.size() as u64, |size, len| size.checked_mul(*len));
    row.and_then(|row| usize::try_from(row).ok())
}

/// The entries of a type, each once. The error describes the fault.
fn entries_of(metadata: Value) -> Result<Vec<(String, Value)>, String> {
    let Value::Map(pairs) = metadata else { return Err("a type that is not a map".to_owned()) };
    let named = pairs.into_iter().map(|(name, value)| match name {
        Value::Str(name) => Ok((name, value)),
        name => Err(format!("an option whose name is {}", what(&name))),
    });
    named.collect::<Result<_, _>>().map(unique)
}

/// The last value of each name, at the place of the first one, as in Python.
fn unique<T>(pairs: Vec<(String, T)>) -> Vec<(String, T)> {
    let mut places = HashMap::with_capacity(pairs.len());
    let mut all: Vec<(String, T)> = Vec::with_capacity(pairs.len());
    for (name, value) in pairs {
        match places.get(&name) {
            Some(&place) => all[place] = (name, value),
            None => {
                places.insert(name.clone(), all.len());
                all.push((name, value));
            }
        }
    }
    all
}

fn take(entries: &mut Vec<(String, Value)>, name: &str) -> Option<Value> {
    let at = entries.iter().position(|(known, _)| known == name)?;
    Some(entries.remove(at).1)
}

/// Checks that the names of fields are unique. The error describes the fault.
fn check_names(fields: &[(String, ItemType)]) -> Result<(), String> {
    let mut names = BTreeSet::new();
    match fields.iter().find(|(name, _)| !names.insert(name.as_str())) {
        Some((name, _)) => Err(format!("two fields with the name {}", what(&name.as_str().into()))),
        None => Ok(()),
    }
}

/// Compares two numbers; `None` if one of the values is not a number, or is NaN.
fn compare(one: &Value, other: &Value) -> Option<Ordering> {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    };
    match (one, other) {
        (Value::Int(one), Value::Int(other)) => Some(one.cmp(other)),
        _ => number(one)?.partial_cmp(&number(other)?),
    }
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use super::*;

    /// The stored form of a value in a list of such items.
    fn stored(
        item: impl Into<ItemType>,
        value: impl Into<Value>,
    ) -> Result<Value, (ErrorKind, String)> {
        item.into().stored(value.into())
    }

    fn text(max_length: u64) -> ItemKind {
        ItemKind::String { max_length }
    }

    fn raw() -> ItemKind {
        ItemKind::Bytes { max_length: 32 }
    }

    /// The items of such types can be read.
    #[test]
    fn invalid_parameters_of_nested_types_are_kept() {
        let cases = [
            ("timestamp", "unit", Value::from("D")),
            ("timestamp", "timezone", 5.into()),
            ("string", "max_length", (-1).into()),
            ("bytes", "max_length", "long".into()),
            ("ndarray", "dtype_str", "nothing".into()),
        ];
        for (kind, option, value) in cases {
            let item = Value::from([("kind", kind.into()), (option, value)]);
            let list = Value::from([("kind", "list".into()), ("item", item.clone())]);
            let ItemKind::List(found) = ItemType::from_metadata(list).unwrap().kind else {
                panic!("{kind}")
            };
            assert_eq!(found.kind, ItemKind::Other(kind.to_owned()));
            assert_eq!(found.metadata(), item);
        }
    }

    #[test]
    fn items_are_of_their_type() {
        use ItemKind::*;

        let bytes = |bytes: &[u8]| Value::Bytes(bytes.to_vec());
        let complex = |re, im| Value::Complex { re, im };
        let time = || Timestamp { unit: TimeUnit::Microseconds, timezone: None };
        let long = "é".repeat(32);
        let kept: Vec<(ItemKind, Value)> = vec![
            (Int8, (-128).into()),
            (Int16, 32767.into()),
            (Int32, i32::MIN.into()),
            (Int64, i64::MAX.into()),
            (UInt8, 255.into()),
            (UInt16, 65535.into()),
            (UInt32, u32::MAX.into()),
            (UInt64, u64::MAX.into()),
            (Float32, 0.5.into()),
            (Float32, f64::INFINITY.into()),
            (Float64, 0.1.into()),
            (Complex64, complex(0.5, 1.0)),
            (Complex128, complex(0.1, 1.0)),
            (Bool, true.into()),
            (time(), i64::MIN.into()),
            (text(32), long.as_str().into()),
            (VlString, "x".repeat(1000).into()),
            (Utf8, "x".repeat(1000).into()),
            (raw(), bytes(&[7; 32])),
            (VlBytes, bytes(&[7; 1000])),
            (List(Int8.into()), Value::List(vec![1.into()])),
        ];
        for (kind, value) in kept {
            assert_eq!(stored(kind, value.clone()), Ok(value));
        }
        // The same results as in NumPy.
        let single = f64::from(0.1f32);
        assert_eq!(stored(Float32, 0.1), Ok(single.into()));
        assert_eq!(stored(Float32, 3), Ok(3.0.into()));
        assert_eq!(stored(Float64, 3), Ok(3.0.into()));
        assert_eq!(stored(Complex64, complex(0.1, 0.1)), Ok(complex(single, single)));
        assert_eq!(stored(raw(), Value::List(vec![1.into(), 255.into()])), Ok(bytes(&[1, 255])));
        let field = |name: &str| (name.to_owned(), ItemType::from(Int8));
        let pairs = Value::from([("c", 3.into()), ("b", 2.into()), ("a", 1.into())]);
        let fields = Struct(vec![field("a"), field("b")]);
        let fit = Value::from([("a", 1.into()), ("b", 2.into())]);
        assert_eq!(stored(fields.clone(), pairs), Ok(fit));

        let refused: Vec<(ItemKind, Value)> = vec![
            (Int8, 128.into()),
            (Int16, 32768.into()),
            (Int32, (1i64 << 31).into()),
            (Int64, (1u64 << 63).into()),
            (time(), (1u64 << 63).into()),
            (UInt8, 256.into()),
            (UInt16, (-1).into()),
            (UInt32, (1i64 << 32).into()),
            (UInt64, (-1).into()),
            (Int8, 1.0.into()),
            (Int8, true.into()),
            (Float64, "1".into()),
            (Complex64, 1.0.into()),
            (Bool, 1.into()),
            (text(32), bytes(b"a")),
            (raw(), "a".into()),
            (raw(), Value::List(vec![256.into()])),
            (List(Int8.into()), 1.into()),
            (List(Int8.into()), Value::List(vec!["a".into()])),
            (fields.clone(), 1.into()),
            (fields.clone(), Value::from([("a", 1.into())])),
            (fields, Value::from([("a", 1.into()), ("b", "2".into())])),
        ];
        for (kind, value) in refused {
            let (found, text) = stored(kind, value).unwrap_err();
            assert_eq!(found, ErrorKind::TypeMismatch, "{text}");
        }
        let other = stored(Other("ndarray".to_owned()), 1).unwrap_err();
        assert_eq!(other.0, ErrorKind::Unsupported);
    }

    #[test]
    fn items_are_within_their_bounds() {
        use ItemKind::*;

        let of = |kind: ItemKind, name, bound: Value| ItemType::from(kind).with(name, bound);
        let both = |item: ItemType, good: Value, bad: Value| {
            assert!(item.stored(good).is_ok());
            let (kind, text) = item.stored(bad).unwrap_err();
            assert_eq!(kind, ErrorKind::InvalidArgument, "{text}");
        };
        both(of(Int32, "ge", 3.into()), 3.into(), 2.into());
        both(of(Int32, "gt", 2.5.into()), 3.into(), 2.into());
        both(of(UInt64, "le", u64::MAX.into()).with("gt", 3), u64::MAX.into(), 3.into());
        both(of(UInt64, "lt", u64::MAX.into()), (u64::MAX - 1).into(), u64::MAX.into());
        both(of(Float64, "ge", 1.into()), 1.0.into(), 0.9.into());
        both(of(Float64, "ge", 1.into()), f64::NAN.into(), 0.9.into());
        both(of(Float32, "lt", 1.5.into()), 1.25.into(), 1.5.into());
        both(text(2).into(), "éé".into(), "aaa".into());
        both(of(text(32), "min_length", 2.into()), "éé".into(), "é".into());
        both(text(32).into(), "a".repeat(32).into(), "a".repeat(33).into());
        both(raw().into(), Value::Bytes(vec![0; 32]), Value::Bytes(vec![0; 33]));
        for kind in [Int8, Bool, Complex64, text(32), VlBytes, List(Int8.into())] {
            let item = ItemType::from(kind);
            assert!(!item.is_nullable());
            assert_eq!(item.stored(Value::None).unwrap_err().0, ErrorKind::InvalidArgument);
            assert_eq!(item.nullable().stored(Value::None), Ok(Value::None));
        }
        assert!(of(Int8, "null_value", 3.into()).is_nullable());
        assert!(of(Int8, "null_storage", "mask".into()).is_nullable());
    }

    #[test]
    fn types_are_written_as_they_were_read() {
        use ItemKind::*;

        let fields = vec![
            ("a".to_owned(), ItemType::from(Float32).with("le", 3).with("ge", 1.5)),
            ("b".to_owned(), ItemType::from(List(VlBytes.into())).nullable()),
        ];
        let item = ItemType::from(Struct(fields)).nullable();
        let metadata = item.metadata();
        assert_eq!(
            metadata.to_string(),
            "{'kind': 'struct', 'fields': [{'name': 'a', 'kind': 'float32', 'ge': 1.5, 'le': 3}, \
             {'name': 'b', 'kind': 'list', 'item': {'kind': 'vlbytes', 'nullable': False, 'serializer': \
             'msgpack', 'batch_rows': 2048}, 'nullable': True, 'storage': 'batch', 'serializer': 'msgpack', \
             'batch_rows': 2048}], 'nullable': True}"
        );
        assert_eq!(ItemType::from_metadata(metadata), Ok(item.clone()));
        assert_eq!(item.check(), Ok(()));

        // Options that a later Python adds are kept.
        let other = Value::from([("kind", "decimal".into()), ("ordered", true.into())]);
        let item = ItemType::from_metadata(other.clone()).unwrap();
        assert_eq!((item.kind(), item.metadata()), (&Other("decimal".to_owned()), other));
        assert_eq!(item.kind().name(), "decimal");
    }

    #[test]
    fn what_is_no_type_is_refused() {
        let kind = |name: &str| ("kind", Value::from(name));
        let bad = [
            Value::None,
            Value::Map(vec![]),
            Value::from([("kind", 5.into())]),
            Value::from([kind("list")]),
            Value::from([kind("list"), ("item", "int8".into())]),
            Value::from([kind("struct")]),
            Value::from([kind("struct"), ("fields", 5.into())]),
            Value::from([kind("struct"), ("fields", Value::List(vec![5.into()]))]),
            Value::from([
                kind("struct"),
                ("fields", Value::List(vec![Value::from([kind("int8")])])),
            ]),
        ];
        for metadata in bad {
            assert!(ItemType::from_metadata(metadata.clone()).is_err(), "{metadata}");
        }
        let nest = |levels| {
            (0..levels)
                .fold(ItemType::from(ItemKind::Int8), |item, _| ItemKind::List(item.into()).into())
        };
        assert_eq!(nest(MAX_DEPTH).check(), Ok(()));
        let of_maps = |levels| {
            (0..levels).fold(ItemType::from(ItemKind::Int8), |item, level| match level % 2 {
                0 => ItemKind::Struct(vec![("a".to_owned(), item)]).into(),
                _ => ItemKind::List(item.into()).into(),
            })
        };
        assert_eq!(of_maps(MAX_DEPTH).check(), Ok(()));
        let of = |kind: ItemKind| ItemType::from(kind);
        let field = || ("a".to_owned(), of(ItemKind::Bool));
        for item in [
            nest(MAX_DEPTH + 1),
            of_maps(MAX_DEPTH + 1),
            of(ItemKind::Int8).with("max_length", 3),
            of(text(32)).with("ge", 3),
            of(ItemKind::Int8).with("ge", "a"),
            of(text(32)).with("min_length", -3),
            of(ItemKind::Struct(vec![])),
            of(ItemKind::Struct(vec![field(), field()])),
            of(ItemKind::Int8).with("kind", "int16"),
            nest(1).with("item", 5),
            of(ItemKind::Other("new".to_owned())).with("kind", "int16"),
            of(ItemKind::Struct(vec![("a".to_owned(), of(ItemKind::Bool).with("unit", "s"))])),
            nest(1).with("batch_rows", 0),
        ] {
            assert!(item.check().is_err(), "{item:?}");
        }
    }

    #[test]
    fn types_with_many_options_are_written_and_read() {
        let item = ItemType::from(ItemKind::Other("new".to_owned()));
        let item = (0..100).fold(item, |item, number| item.with(&format!("option {number}"), 1));
        item.check().unwrap();
        assert_eq!(ItemType::from_metadata(item.metadata()), Ok(item));
    }

    /// As Python reads them.
    #[test]
    fn the_last_of_two_options_counts() {
        let int8 = ("kind", Value::from("int8"));
        let one = Value::from([("ge", 3.into()), int8.clone(), ("le", 9.into()), ("ge", 5.into())]);
        let item = ItemType::from_metadata(one).unwrap();
        assert_eq!(item.metadata().to_string(), "{'kind': 'int8', 'ge': 5, 'le': 9}");
        let field = |name: &str, ge: i32| {
            Value::from([
                ("name", "z".into()),
                int8.clone(),
                ("ge", ge.into()),
                ("name", name.into()),
            ])
        };
        let fields = Value::List(vec![field("a", 1), field("b", 2), field("a", 3)]);
        let item =
            ItemType::from_metadata(Value::from([("kind", "struct".into()), ("fields", fields)]));
        let field =
            |name: &str, ge| (name.to_owned(), ItemType::from(ItemKind::Int8).with("ge", ge));
        assert_eq!(item.unwrap().kind, ItemKind::Struct(vec![field("a", 3), field("b", 2)]));
    }

    #[test]
    fn items_without_a_maximum_length_have_no_limit() {
        for (kind, long) in
            [("string", Value::from("x".repeat(100))), ("bytes", Value::Bytes(vec![7; 100]))]
        {
            let metadata = Value::from([("kind", kind.into()), ("min_length", 1.into())]);
            let item = ItemType::from_metadata(metadata.clone()).unwrap();
            assert_eq!((item.metadata(), item.kind().to_string()), (metadata, kind.to_owned()));
            assert_eq!(item.stored(long.clone()), Ok(long));
            let fault = item.for_column().unwrap_err();
            assert!(fault.contains("no maximum length"), "{fault}");
            // Python reads a column with its default.
            let column = Value::from([("name", "a".into()), ("kind", kind.into())]);
            let (_, column) = ItemType::column(&column, false).unwrap();
            assert_eq!(column.kind().to_string(), format!("{kind}[32]"));
        }
    }

    #[test]
    fn nulls_need_no_kind_that_can_be_written() {
        for kind in [ItemKind::Object, ItemKind::Dictionary { ordered: false }] {
            let list = ItemType::from(ItemKind::List(Box::new(ItemType::from(kind).nullable())));
            let nulls = Value::List(vec![Value::None]);
            assert_eq!(list.stored(nulls.clone()), Ok(nulls));
            let fault = list.stored(Value::List(vec![1.into()])).unwrap_err();
            assert_eq!(fault.0, ErrorKind::Unsupported);
        }
        let list = ItemType::from(ItemKind::List(ItemKind::Object.into()));
        let fault = list.stored(Value::List(vec![Value::None])).unwrap_err();
        assert_eq!(fault.0, ErrorKind::InvalidArgument);
    }

    #[test]
    fn parameters_of_a_kind_are_no_options() {
        let fault = ItemType::from(text(32)).with("max_length", 5).check().unwrap_err();
        assert!(
            fault.ends_with("parameter of the kind `string`: set it in the `ItemKind`"),
            "{fault}"
        );
        // A copy of this type does not fit on the stack.
        let deep = (0..100_000)
            .fold(ItemType::from(ItemKind::Int8), |item, _| ItemKind::List(item.into()).into());
        assert!(deep.for_column().unwrap_err().contains("nested deeper"));
        std::mem::forget(deep);
    }
}
