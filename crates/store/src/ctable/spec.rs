//! Schemas of tables to be created, and the parts that store their columns.

use std::collections::HashSet;

use crate::blosc2::Special;
use crate::blosc2::dtype::Kind;
use crate::blosc2::{Error, ErrorKind, NDArray, OpenOptions, Result, SChunk, Value};

use super::column::Column;
use super::json;
use crate::item_type::{BATCH_ROWS, BLOCK_ROWS};
use crate::{BatchArray, ItemKind, ItemType, ListArray, key};

pub(super) const MAKE: &str = "create a table";

/// The default number of rows for which chunks are sized, as in Python.
const EXPECTED_ROWS: u64 = 1 << 20;
/// Wider strings get chunks of their own size, as in Python.
const MAX_SHARED_TEXT: usize = 128;

/// The names and types of the columns of a new table.
///
/// ```
/// use blosc2_store::{CTable, ItemKind, ItemType, Schema};
///
/// let name = ItemType::from(ItemKind::String { max_length: 20 }).nullable();
/// let schema = Schema::new().column("id", ItemKind::UInt64).column("name", name);
/// let table = CTable::in_memory(&schema)?;
/// assert_eq!(table.columns()[1].kind().to_string(), "string[20]");
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    columns: Vec<(String, ItemType)>,
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
    pub fn column(mut self, name: impl Into<String>, column: impl Into<ItemType>) -> Self {
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
    pub fn columns(&self) -> impl ExactSizeIterator<Item = (&str, &ItemType)> {
        self.columns.iter().map(|(name, column)| (name.as_str(), column))
    }

    pub(super) fn capacity(&self) -> u64 {
        self.expected_rows.max(1)
    }

    /// The columns of a table below a root.
    pub(super) fn compile(&self, root: &str) -> Result<Vec<Column>> {
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, MAKE, detail);
        if self.columns.is_empty() {
            return Err(invalid("a table has at least one column".to_owned()));
        }
        let columns = self.columns.iter().map(|(name, spec)| new_column(root, name, spec));
        let columns: Vec<Column> = columns.collect::<Result<_, _>>().map_err(invalid)?;
        check_names(columns.iter()).map_err(invalid)?;
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
    let words = columns.filter(|column| matches!(column.kind(), ItemKind::Dictionary { .. }));
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

/// The column with this name and type. The error describes why it cannot be created.
pub(super) fn new_column(root: &str, name: &str, spec: &ItemType) -> Result<Column, String> {
    let created = spec.for_column();
    let created = created.map_err(|fault| format!("the column `{name}` has {fault}"))?;
    let entry = created.named(name);
    let mut column = Column::new(name.to_owned(), created, entry);
    column.cparams.clone_from(&spec.cparams);
    if name.is_empty() || name.starts_with('_') {
        return Err(format!(
            "the column name `{name}`, expected a name that is not empty and does not start with `_`"
        ));
    }
    key::check(&format!("{root}{}", column.key))?;
    json::write(&column.entry, &mut String::new()).map_err(|value| {
        format!("the column `{name}` has the option {value}, which JSON cannot represent")
    })?;
    Ok(column)
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
        Ok(Self { chunk: array.chunk_shape()[0], block: array.block_shape()[0] })
    }

    /// The grid of an existing mask.
    pub(super) fn like(marks: &NDArray) -> Self {
        Self { chunk: marks.chunk_shape()[0], block: marks.block_shape()[0] }
    }

    /// A mask of rows, all with the same mark.
    pub(super) fn marks(self, rows: u64, mark: bool) -> Result<SChunk> {
        let builder = NDArray::builder().chunk_shape([self.chunk]).block_shape([self.block]);
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
pub(super) fn parts(column: &Column, grid: Grid, rows: u64) -> Result<Vec<Part>> {
    let key = column.key.clone();
    let cparams = column.cparams.as_deref();
    let builder =
        || cparams.map_or_else(NDArray::builder, |params| NDArray::builder().cparams(params));
    let shared = || builder().chunk_shape([grid.chunk]).block_shape([grid.block]);
    Ok(match column.kind() {
        ItemKind::Utf8 => {
            let offsets = builder().chunk_shape([1 << 17]).zeros::<i64>([1])?;
            let bytes = builder().chunk_shape([1 << 21]).zeros::<u8>([1])?;
            vec![
                (format!("{key}.utf8"), "b2nd", bytes.into_schunk()),
                (key, "b2nd", offsets.into_schunk()),
            ]
        }
        ItemKind::Dictionary { .. } => {
            let texts = batches(column)?;
            let codes = shared().zeros::<i32>([rows])?;
            vec![(format!("{key}_dict"), "b2b", texts), (key, "b2nd", codes.into_schunk())]
        }
        kind if kind.has_batches() => vec![(key, "b2b", batches(column)?)],
        kind => {
            let unknown = || {
                let detail = format!("a column of {kind} cannot be created");
                Error::new(ErrorKind::Unsupported, MAKE, detail)
            };
            let (dtype, shape) = column.items().ok_or_else(unknown)?;
            let shape: Vec<u64> = [rows].into_iter().chain(shape.iter().copied()).collect();
            let is_text = matches!(dtype.kind(), Some(Kind::Unicode | Kind::Bytes));
            let make = |builder: crate::blosc2::NDArrayBuilder| {
                builder.dtype(&dtype.to_string(), dtype.size()).special(Special::Zeros, &shape[..])
            };
            let own = make(builder())?;
            let shares = shape.len() == 1
                && match is_text {
                    true => dtype.size() <= MAX_SHARED_TEXT,
                    false => grid.chunk <= own.chunk_shape()[0].saturating_mul(4),
                };
            let array = if shares { make(shared())? } else { own };
            vec![(key, "b2nd", array.into_schunk())]
        }
    })
}

/// An empty array of the rows of a column in batches, or of the strings of a dictionary.
fn batches(column: &Column) -> Result<SChunk> {
    let per_block = column.length("items_per_block").unwrap_or(BLOCK_ROWS);
    let cparams = column.cparams.as_deref();
    let options =
        cparams.map_or_else(OpenOptions::new, |params| OpenOptions::new().cparams(params));
    let mut schunk = options.create_new(true).open(Vec::new())?;
    let py_type = match column.kind() {
        ItemKind::List(_) => {
            return ListArray::new_in(schunk, column.spec.without_default())?.into_schunk();
        }
        ItemKind::VlString | ItemKind::Dictionary { .. } => "str",
        ItemKind::VlBytes => "bytes",
        ItemKind::Struct(_) => "struct",
        _ => "object",
    };
    // The strings of a dictionary are not null.
    let nullable = column.nullable && column.kind().has_batches();
    let rows = column.length("batch_rows").unwrap_or(BATCH_ROWS);
    let role = Value::from([
        ("version", 1.into()),
        ("py_type", py_type.into()),
        ("nullable", nullable.into()),
        ("batch_rows", rows.into()),
    ]);
    schunk.meta_mut().set_value("ctable_varlen_scalar", &role)?;
    BatchArray::new_in(schunk, Some(per_block)).map(BatchArray::into_schunk)
}
