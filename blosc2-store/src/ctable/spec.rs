//! Schemas of tables to be created, and the parts that store their columns.

use std::borrow::Borrow;
use std::collections::HashSet;

use blosc2::Special;
use blosc2::dtype::Kind;
use blosc2::{
    CParams, Dtype, Element, Error, ErrorKind, NDArray, OpenOptions, Result, SChunk, Value,
};

use super::column::{Column, ColumnKind, Nulls};
use super::encode::row_size;
use super::json;
use super::schema::named_column;
use crate::{BatchArray, ItemKind, ItemType, ListArray, key};

pub(super) const MAKE: &str = "create a table";

/// The default number of rows for which chunks are sized, as in Python.
const EXPECTED_ROWS: u64 = 1 << 20;
/// Rows in a batch of a column that has no such option, as in Python.
pub(super) const BATCH_ROWS: u64 = 2048;
/// Rows in a block of a batch. Python computes them from the first batch, which can have few rows.
const BLOCK_ROWS: u64 = 256;
/// Wider strings get chunks of their own size, as in Python.
const MAX_SHARED_TEXT: usize = 128;

/// The names and types of the columns of a new table.
///
/// ```
/// use blosc2_store::{CTable, ColumnKind, ColumnSpec, Schema};
///
/// let name = ColumnSpec::from(ColumnKind::String { max_length: 20 }).nullable();
/// let schema = Schema::new().column("id", ColumnKind::UInt64).column("name", name);
/// let table = CTable::in_memory(&schema)?;
/// assert_eq!(table.columns()[1].kind().to_string(), "string[20]");
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    columns: Vec<(String, ColumnSpec)>,
    expected_rows: u64,
}

impl Default for Schema {
    fn default() -> Self {
        Self { columns: Vec::new(), expected_rows: EXPECTED_ROWS }
    }
}

impl Schema {
    /// Creates a schema without columns.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column. A name must be unique, must not be empty, and must not start with `_`. A dot separates the levels
    /// of a nested name, such as `outer.inner`. Write `\` before a dot, slash or backslash that does not separate
    /// levels.
    pub fn column(mut self, name: impl Into<String>, column: impl Into<ColumnSpec>) -> Self {
        self.columns.push((name.into(), column.into()));
        self
    }

    /// Sets the expected number of rows, which determines the size of chunks. Default: 2<sup>20</sup>. The table can
    /// have more rows. Python: `expected_size`.
    pub fn expected_rows(mut self, rows: u64) -> Self {
        self.expected_rows = rows;
        self
    }

    /// Returns the columns, in order.
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &ColumnSpec)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    pub(super) fn capacity(&self) -> u64 {
        self.expected_rows.max(1)
    }

    /// The columns of a table below a root, with their compression parameters.
    pub(super) fn compile(&self, root: &str) -> Result<Vec<(Column, Option<CParams>)>> {
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, MAKE, detail);
        if self.columns.is_empty() {
            return Err(invalid("a table has at least one column".to_owned()));
        }
        let compile = |(name, spec): &(String, ColumnSpec)| {
            Ok((spec.compile(root, name).map_err(invalid)?, spec.cparams.clone()))
        };
        let columns: Vec<_> = self.columns.iter().map(compile).collect::<Result<_>>()?;
        check_names(columns.iter().map(|(column, _)| column)).map_err(invalid)?;
        Ok(columns)
    }
}

/// Checks that no two columns have the same name, or files that Python cannot distinguish.
pub(super) fn check_names<'a>(
    columns: impl Iterator<Item = &'a Column> + Clone,
) -> Result<(), String> {
    let mut keys = HashSet::new();
    for column in columns.clone() {
        if !keys.insert(column.key.as_str()) {
            return Err(format!("two columns have the name `{}`", column.name));
        }
    }
    let words = columns.filter(|column| matches!(column.kind, ColumnKind::Dictionary { .. }));
    for column in words {
        if keys.contains(format!("{}_dict", column.key).as_str()) {
            let name = &column.name;
            return Err(format!(
                "Python stores the strings of the dictionary column `{name}` under the name `{name}_dict`, which another column has"
            ));
        }
    }
    Ok(())
}

/// The type of a new column: a [`ColumnKind`] and options. Create it by `ColumnSpec::from(kind)`.
///
/// ```
/// use blosc2_store::{ColumnKind, ColumnSpec};
///
/// let celsius = ColumnSpec::from(ColumnKind::Float64).nullable().with("ge", -273.15).with("default", 0.0);
/// assert_eq!(celsius.get("ge"), Some(&(-273.15).into()));
/// // A value instead of a mask represents null.
/// let count = ColumnSpec::from(ColumnKind::Int32).with("null_value", -1);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnSpec {
    kind: ColumnKind,
    /// The entry of the column in a schema, without its name.
    metadata: Vec<(Value, Value)>,
    cparams: Option<CParams>,
}

impl From<ColumnKind> for ColumnSpec {
    fn from(kind: ColumnKind) -> Self {
        let batches = || {
            vec![
                ("nullable", false.into()),
                ("serializer", "msgpack".into()),
                ("batch_rows", BATCH_ROWS.into()),
                ("items_per_block", BLOCK_ROWS.into()),
            ]
        };
        let options: Vec<(&str, Value)> = match &kind {
            ColumnKind::Timestamp { unit, timezone } => {
                let timezone = timezone.iter().map(|zone| ("timezone", zone.as_str().into()));
                [("unit", unit.to_string().into())].into_iter().chain(timezone).collect()
            }
            ColumnKind::String { max_length } | ColumnKind::Bytes { max_length } => {
                vec![("max_length", (*max_length).into())]
            }
            ColumnKind::VlString | ColumnKind::VlBytes | ColumnKind::Object => batches(),
            ColumnKind::Dictionary { ordered } => {
                let mut text = vec![("kind", "vlstring".into())];
                text.extend(batches().into_iter().filter(|(name, _)| *name != "items_per_block"));
                let text = text.into_iter();
                let text = text.map(|(name, value)| (name.into(), value)).collect();
                vec![
                    ("index_type", Value::from([("kind", "int32".into())])),
                    ("value_type", Value::Map(text)),
                    ("ordered", (*ordered).into()),
                    ("nullable", false.into()),
                    ("null_code", (-1).into()),
                ]
            }
            ColumnKind::List(item) => {
                let list = ItemType::from(ItemKind::List(Box::new(item.clone())));
                return Self::of_item(kind, list.with("items_per_block", BLOCK_ROWS));
            }
            ColumnKind::Struct(fields) => {
                let fields = ItemType::from(ItemKind::Struct(fields.clone()));
                return Self::of_item(kind, fields);
            }
            ColumnKind::NDArray { shape, dtype } => {
                let shape = shape.iter().map(|&len| Value::from(len)).collect();
                vec![("item_shape", Value::List(shape)), ("dtype_str", dtype.to_string().into())]
            }
            _ => Vec::new(),
        };
        let options = [("kind", kind.name().into())].into_iter().chain(options);
        let metadata = options.map(|(name, value)| (name.into(), value)).collect();
        Self { kind, metadata, cparams: None }
    }
}

impl ColumnSpec {
    fn of_item(kind: ColumnKind, item: ItemType) -> Self {
        let Value::Map(metadata) = item.metadata() else { unreachable!("the metadata is a map") };
        Self { kind, metadata, cparams: None }
    }

    /// Returns the type.
    pub fn kind(&self) -> &ColumnKind {
        &self.kind
    }

    /// Allows null. The kind and the options of the column determine how null is stored:
    /// - columns with the option `null_value` store this value;
    /// - `Dictionary` columns store a code;
    /// - columns that are stored in batches (`VlString`, `VlBytes`, `List`, `Struct` and `Object`) store `None`. A
    ///   batch is a chunk of up to `batch_rows` rows;
    /// - other columns have a separate mask of nulls.
    pub fn nullable(self) -> Self {
        let has_mask = self.has_mask() && self.get("null_value").is_none();
        let this = self.set("nullable", true.into());
        if has_mask { this.set("null_storage", "mask".into()) } else { this }
    }

    /// Sets an option. Options have the same names as in Python's schemas. This method does not check the option.
    /// Creating a table or adding a column checks it.
    ///
    /// | option | columns | value |
    /// |---|---|---|
    /// | `ge`, `gt`, `le`, `lt` | numbers | the bound of the values: ≥, >, ≤ or < |
    /// | `min_length` | strings and bytes | minimum length |
    /// | `null_value` | fixed-size kinds and `Utf8` | the value that represents null; must be 255 for `Bool` |
    /// | `default` | all | the value of the column in rows that are appended without this column |
    /// | `storage` | `List` | `batch` (default): several rows per chunk; `vl`: one row per chunk |
    /// | `batch_rows` | columns in batches (see [`nullable`](Self::nullable)), except `Struct` | rows per batch; default 2048 |
    /// | `items_per_block` | columns in batches, except `Struct` | rows per block of a batch; default 256 |
    pub fn with(self, name: &str, value: impl Into<Value>) -> Self {
        let this = self.set(name, value.into());
        if name != "null_value" {
            return this;
        }
        let mut this = this.set("nullable", true.into());
        this.metadata.retain(|(key, _)| key.as_str() != Some("null_storage"));
        this
    }

    fn set(mut self, name: &str, value: Value) -> Self {
        match self.metadata.iter_mut().find(|(key, _)| key.as_str() == Some(name)) {
            Some((_, old)) => *old = value,
            None => self.metadata.push((name.into(), value)),
        }
        self
    }

    /// Returns the value of an option. Returns `None` if the option is not set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let mut pairs = self.metadata.iter();
        pairs.find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
    }

    /// Sets the compression parameters of the column. The default parameters are the defaults of Python.
    pub fn cparams(mut self, params: impl Borrow<CParams>) -> Self {
        self.cparams = Some(params.borrow().clone());
        self
    }

    pub(super) fn params(&self) -> Option<&CParams> {
        self.cparams.as_ref()
    }

    /// Whether nulls can be stored in a mask.
    fn has_mask(&self) -> bool {
        self.kind == ColumnKind::Utf8 || self.kind.has_items()
    }

    /// The column with this name. The error describes why it cannot be created.
    pub(super) fn compile(&self, root: &str, name: &str) -> Result<Column, String> {
        self.check().map_err(|fault| format!("the column `{name}` has {fault}"))?;
        let mut entry = vec![("name".into(), name.into())];
        entry.extend(self.metadata.clone());
        // Bools have no spare value.
        let widened =
            matches!(&self.kind, ColumnKind::NDArray { dtype, .. } if *dtype == bool::dtype());
        if widened && self.get("null_value").is_some() {
            let bytes = u8::dtype().to_string();
            for (key, value) in &mut entry {
                if key.as_str() == Some("dtype_str") {
                    *value = bytes.as_str().into();
                }
            }
            entry.push(("bool_widened_to_uint8".into(), true.into()));
        }
        let column = named_column(Value::Map(entry), false).ok_or("no kind")?;
        if name.is_empty() || name.starts_with('_') {
            return Err(format!(
                "the column name `{name}`, expected a name that is not empty and does not start with `_`"
            ));
        }
        key::check(&format!("{root}{}", column.key))?;
        if let Value::Map(_) = &column.metadata {
            json::write(&column.metadata, &mut String::new()).map_err(|value| {
                format!("the column `{name}` has the option {value}, which JSON cannot represent")
            })?;
        }
        Ok(column)
    }

    fn check(&self) -> Result<(), String> {
        const NULLS: [&str; 3] = ["nullable", "null_value", "null_storage"];
        let options: &[&str] = match &self.kind {
            ColumnKind::Computed(_) | ColumnKind::Other(_) => {
                return Err(format!("the type {}, which cannot be created", self.kind));
            }
            ColumnKind::Object => &["nullable", "serializer", "batch_rows", "items_per_block"],
            ColumnKind::Dictionary { .. } => {
                &["index_type", "value_type", "ordered", "nullable", "null_code"]
            }
            ColumnKind::NDArray { shape, dtype } => {
                if shape.is_empty() || shape.contains(&0) {
                    return Err(format!("arrays of the shape {shape:?}, expected items in each"));
                }
                if row_size(dtype, shape).is_none_or(|row| isize::try_from(row).is_err()) {
                    return Err(format!(
                        "arrays of the shape {shape:?} and the dtype {dtype}, which take more than 2^63 - 1 bytes each"
                    ));
                }
                if dtype.kind().is_none() {
                    return Err(format!("arrays of {dtype}, expected numbers or strings"));
                }
                &["item_shape", "dtype_str", NULLS[0], NULLS[1], NULLS[2]]
            }
            ColumnKind::String { max_length: 0 } | ColumnKind::Bytes { max_length: 0 } => {
                return Err("the maximum length 0, expected at least 1".to_owned());
            }
            _ => {
                let pairs = self.metadata.iter();
                let pairs = pairs.filter(|(key, _)| key.as_str() != Some("default"));
                return ItemType::from_metadata(Value::Map(pairs.cloned().collect()))?.check();
            }
        };
        let known = |name: &str| matches!(name, "kind" | "default") || options.contains(&name);
        let mut names = self.metadata.iter().filter_map(|(key, _)| key.as_str());
        match names.find(|name| !known(name)) {
            Some(name) => {
                Err(format!("the option `{name}`, which the type {} does not have", self.kind))
            }
            None => Ok(()),
        }
    }
}

impl ColumnKind {
    /// Whether rows have a fixed size.
    pub(super) fn has_items(&self) -> bool {
        use ColumnKind::*;
        !matches!(
            self,
            Utf8 | VlString
                | VlBytes
                | Dictionary { .. }
                | List(_)
                | Struct(_)
                | Object
                | Computed(_)
                | Other(_)
        )
    }

    /// Whether rows are stored in batches, or one per chunk.
    pub(super) fn has_batches(&self) -> bool {
        use ColumnKind::*;
        matches!(self, VlString | VlBytes | List(_) | Struct(_) | Object)
    }

    /// The name in schemas.
    pub(super) fn name(&self) -> &str {
        match self {
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
            Self::Timestamp { .. } => "timestamp",
            Self::String { .. } => "string",
            Self::Bytes { .. } => "bytes",
            Self::Utf8 => "utf8",
            Self::VlString => "vlstring",
            Self::VlBytes => "vlbytes",
            Self::Dictionary { .. } => "dictionary",
            Self::List(_) => "list",
            Self::Struct(_) => "struct",
            Self::Object => "object",
            Self::NDArray { .. } => "ndarray",
            Self::Computed(_) => "computed",
            Self::Other(name) => name,
        }
    }
}

impl Column {
    /// The dtype and the shape of the fixed-size items of a row; `None` if it has none.
    pub(super) fn items(&self) -> Option<(Dtype, &[u64])> {
        let native = |kind, size: u64| {
            let size = usize::try_from(size).ok()?;
            Dtype::scalar(kind, size).ok()
        };
        let dtype = match &self.kind {
            ColumnKind::Int8 => i8::dtype(),
            ColumnKind::Int16 => i16::dtype(),
            ColumnKind::Int32 => i32::dtype(),
            ColumnKind::Int64 | ColumnKind::Timestamp { .. } => i64::dtype(),
            ColumnKind::UInt8 => u8::dtype(),
            ColumnKind::UInt16 => u16::dtype(),
            ColumnKind::UInt32 => u32::dtype(),
            ColumnKind::UInt64 => u64::dtype(),
            ColumnKind::Float32 => f32::dtype(),
            ColumnKind::Float64 => f64::dtype(),
            ColumnKind::Complex64 => native(Kind::Complex, 8)?,
            ColumnKind::Complex128 => native(Kind::Complex, 16)?,
            ColumnKind::Bool if matches!(self.nulls, Nulls::Sentinel(_)) => u8::dtype(),
            ColumnKind::Bool => bool::dtype(),
            ColumnKind::String { max_length } => native(Kind::Unicode, max_length.checked_mul(4)?)?,
            ColumnKind::Bytes { max_length } => native(Kind::Bytes, *max_length)?,
            ColumnKind::NDArray { shape, dtype } => return Some((dtype.clone(), shape)),
            _ => return None,
        };
        Some((dtype, &[]))
    }

    /// The type of its values, for checking them; `None` for kinds that are checked otherwise.
    pub(super) fn item_type(&self) -> Option<ItemType> {
        match &self.kind {
            ColumnKind::NDArray { .. } | ColumnKind::Dictionary { .. } | ColumnKind::Object => None,
            _ => ItemType::from_metadata(self.metadata.clone()).ok(),
        }
    }

    pub(super) fn length_of(&self, option: &str) -> Option<u64> {
        self.metadata.get(option).and_then(Value::as_u64)
    }
}

/// The chunks and blocks of columns: those of one row size for all columns of similar row sizes, as in Python. Python
/// computes expressions faster on columns with the same chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grid {
    pub(super) chunk: u64,
    block: u64,
}

impl Grid {
    pub(super) fn of<'a>(columns: impl Iterator<Item = &'a Column>, rows: u64) -> Result<Self> {
        let (mut numbers, mut texts) = (Vec::new(), Vec::new());
        for (dtype, shape) in columns.filter_map(Column::items) {
            match dtype.kind() {
                _ if !shape.is_empty() => {}
                Some(Kind::Unicode | Kind::Bytes) => texts.push(dtype.size()),
                _ => numbers.push(dtype.size()),
            }
        }
        let mut sizes = if numbers.is_empty() { texts } else { numbers };
        sizes.sort_unstable();
        let median = match sizes.len() {
            0 => 1.0,
            len => (sizes[(len - 1) / 2] + sizes[len / 2]) as f64 / 2.0,
        };
        let builder = NDArray::builder();
        let array = match median {
            ..=1.5 => builder.zeros::<u8>([rows]),
            ..=3.0 => builder.zeros::<u16>([rows]),
            ..=6.0 => builder.zeros::<u32>([rows]),
            ..=12.0 => builder.zeros::<u64>([rows]),
            _ => builder.zeros::<[u64; 2]>([rows]),
        }?;
        Ok(Self { chunk: array.chunks()[0], block: array.blocks()[0] })
    }

    /// The grid of an existing mask.
    pub(super) fn like(marks: &NDArray) -> Self {
        Self { chunk: marks.chunks()[0], block: marks.blocks()[0] }
    }

    /// A mask of rows, all with the same mark.
    pub(super) fn marks(self, rows: u64, mark: bool) -> Result<SChunk> {
        let builder = NDArray::builder().chunks([self.chunk]).blocks([self.block]);
        let marks = match mark {
            true => builder.full(true, [rows]),
            false => builder.zeros::<bool>([rows]),
        };
        marks.map(NDArray::into_schunk)
    }
}

/// A part of a table: its key below the table, the extension of its file, and its content.
pub(super) type Part = (String, &'static str, SChunk);

/// The parts of a column without data, with room for `rows` rows if they have a fixed size.
pub(super) fn parts(
    column: &Column,
    cparams: Option<&CParams>,
    grid: Grid,
    rows: u64,
) -> Result<Vec<Part>> {
    let key = column.key.clone();
    let builder =
        || cparams.map_or_else(NDArray::builder, |params| NDArray::builder().cparams(params));
    let shared = || builder().chunks([grid.chunk]).blocks([grid.block]);
    Ok(match &column.kind {
        ColumnKind::Utf8 => {
            let offsets = builder().chunks([1 << 17]).zeros::<i64>([1])?;
            let bytes = builder().chunks([1 << 21]).zeros::<u8>([1])?;
            vec![
                (format!("{key}.utf8"), "b2nd", bytes.into_schunk()),
                (key, "b2nd", offsets.into_schunk()),
            ]
        }
        ColumnKind::Dictionary { .. } => {
            let texts = batches(column, cparams)?;
            let codes = shared().zeros::<i32>([rows])?;
            vec![(format!("{key}_dict"), "b2b", texts), (key, "b2nd", codes.into_schunk())]
        }
        kind if kind.has_batches() => vec![(key, "b2b", batches(column, cparams)?)],
        kind => {
            let unknown = || {
                let detail = format!("a column of {kind} cannot be created");
                Error::new(ErrorKind::Unsupported, MAKE, detail)
            };
            let (dtype, shape) = column.items().ok_or_else(unknown)?;
            let shape: Vec<u64> = [rows].into_iter().chain(shape.iter().copied()).collect();
            let is_text = matches!(dtype.kind(), Some(Kind::Unicode | Kind::Bytes));
            let make = |builder: blosc2::NDArrayBuilder| {
                builder.special(Special::Zeros, &shape[..], &dtype.to_string(), dtype.size())
            };
            let own = make(builder())?;
            let shares = shape.len() == 1
                && match is_text {
                    true => dtype.size() <= MAX_SHARED_TEXT,
                    false => grid.chunk <= own.chunks()[0].saturating_mul(4),
                };
            let array = if shares { make(shared())? } else { own };
            vec![(key, "b2nd", array.into_schunk())]
        }
    })
}

/// An empty array of the rows of a column in batches, or of the strings of a dictionary.
fn batches(column: &Column, cparams: Option<&CParams>) -> Result<SChunk> {
    let per_block = column.length_of("items_per_block").unwrap_or(BLOCK_ROWS);
    let options =
        cparams.map_or_else(OpenOptions::new, |params| OpenOptions::new().cparams(params));
    let mut schunk = options.in_memory_frame()?;
    let (py_type, nullable, rows) = match &column.kind {
        ColumnKind::List(_) => {
            let list = column.metadata.clone();
            let Value::Map(mut pairs) = list else { unreachable!("a column has a map") };
            pairs.retain(|(key, _)| !matches!(key.as_str(), Some("name" | "default")));
            let list = ItemType::from_metadata(Value::Map(pairs));
            let list = list.map_err(|what| Error::new(ErrorKind::InvalidArgument, MAKE, what))?;
            return ListArray::new_in(schunk, list)?.into_schunk();
        }
        ColumnKind::Dictionary { .. } => ("str", false, BATCH_ROWS),
        kind => {
            let py_type = match kind {
                ColumnKind::VlString => "str",
                ColumnKind::VlBytes => "bytes",
                ColumnKind::Struct(_) => "struct",
                _ => "object",
            };
            (py_type, column.nullable, column.length_of("batch_rows").unwrap_or(BATCH_ROWS))
        }
    };
    let role = Value::from([
        ("version", 1.into()),
        ("py_type", py_type.into()),
        ("nullable", nullable.into()),
        ("batch_rows", rows.into()),
    ]);
    schunk.meta_mut().set_value("ctable_varlen_scalar", &role)?;
    BatchArray::new_in(schunk, Some(per_block)).map(BatchArray::into_schunk)
}
