//! Tables with columns: Python's `CTable`.

mod column;
mod live;
mod part;
mod read;
mod schema;

use std::ops::{Bound, Range, RangeBounds};

use blosc2::{Element, Error, ErrorKind, NDArray, Result, SChunk, Value};

use column::Stored;
pub use column::{Column, ColumnKind, TimeUnit};
use live::LiveRows;
use part::{array, leaf, row_bytes};

use crate::tag::{error, what};

pub(crate) const OPEN: &str = "open a table";
const READ: &str = "read from a table";

/// Where the parts of a table lie.
pub(crate) trait Leaves: std::fmt::Debug + Send + Sync {
    /// The super-chunk of this key, if there is one. Of files that differ in their endings alone, the one with this
    /// ending.
    fn leaf(&self, key: &str, ending: &str) -> Result<Option<SChunk>>;
}

/// A table with columns of all kinds, each stored by itself, for reading: Python's `CTable`.
///
/// A table is a [`TreeStore`](crate::TreeStore) (`.b2d`, `.b2z`), a part of one, or an
/// [`EmbedStore`](crate::EmbedStore) in a buffer.
///
/// Rows are counted as Python counts them: without those that were deleted. Opening reads the schema and counts the
/// rows; a column is opened when it is first read, and of what is stored no more is read than the rows need.
///
/// ```
/// use blosc2_store::{CTable, ColumnKind};
/// # use blosc2::{CParams, NDArray, SChunk};
/// # use blosc2_store::EmbedStore;
/// # let mut store = EmbedStore::in_memory()?;
/// # let mut meta = SChunk::in_memory::<u8>(&CParams::default())?;
/// # meta.vlmeta_mut().set_value("kind", "ctable")?;
/// # meta.vlmeta_mut().set_value("schema", r#"{"version": 1, "columns": [
/// #     {"name": "id", "kind": "int64"}, {"name": "price", "kind": "float32", "null_value": NaN}]}"#)?;
/// # store.insert("/_meta", &meta)?;
/// # store.insert("/_valid_rows", NDArray::from_slice(&[true, false, true, true], &[4])?.schunk())?;
/// # store.insert("/_cols/id", NDArray::from_slice(&[7i64, 8, 9, 10], &[4])?.schunk())?;
/// # let prices = NDArray::from_slice(&[1.5, 2.5, f32::NAN, 4.5], &[4])?;
/// # store.insert("/_cols/price", prices.schunk())?;
/// # let bytes = store.into_schunk().into_cframe()?;
///
/// // Python: bytes = table.to_cframe(), of four rows of which the second one was deleted
/// let table = CTable::from_cframe(bytes)?;
/// assert_eq!(table.nrows(), 3);
/// assert_eq!(table.columns()[1].kind(), &ColumnKind::Float32);
/// assert_eq!(table.read::<i64>("id", ..)?, [7, 9, 10]);
/// assert_eq!(table.nulls("price", ..)?, [false, true, false]);
/// assert_eq!(table.values("price", 2..)?, [4.5.into()]);
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug)]
pub struct CTable {
    leaves: Box<dyn Leaves>,
    root: String,
    columns: Vec<Column>,
    live: LiveRows,
}

impl CTable {
    /// Whether there is a table at a key: `""` for the store itself.
    pub(crate) fn is_in(leaves: &dyn Leaves, root: &str) -> Result<bool> {
        let Some(meta) = leaves.leaf(&format!("{root}/_meta"), "b2f")? else { return Ok(false) };
        Ok(match meta.vlmeta().value("kind")? {
            Some(Value::Str(kind)) => kind == "ctable",
            Some(Value::Bytes(kind)) => kind == b"ctable",
            _ => false,
        })
    }

    pub(crate) fn new(leaves: impl Leaves + 'static, root: &str) -> Result<Self> {
        let meta = leaf(&leaves, &format!("{root}/_meta"), "b2f")?;
        let schema = match meta.vlmeta().value("schema")? {
            Some(Value::Str(text)) => Some(text),
            Some(Value::Bytes(text)) => String::from_utf8(text).ok(),
            _ => None,
        };
        let columns = match &schema {
            Some(text) => schema::columns(text),
            None => Err((ErrorKind::InvalidData, "it has no schema".to_owned())),
        };
        let columns = columns.map_err(|(kind, detail)| error(&meta, kind, OPEN, detail))?;
        let live = LiveRows::new(array(&leaves, &format!("{root}/_valid_rows"))?)?;
        Ok(Self { leaves: Box::new(leaves), root: root.to_owned(), columns, live })
    }

    /// How many rows there are. Python's `len(table)`.
    pub fn nrows(&self) -> u64 {
        self.live.len()
    }

    /// All columns in their order, those that are computed last.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The column of a [name](Column::name).
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name() == name)
    }

    /// The user's attributes of the table, in the order of the file. Python's `table.vlmeta`.
    ///
    /// # Errors
    /// As for [`Metalayers::value`](blosc2::super_chunk::Metalayers::value).
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        match self.leaves.leaf(&format!("{}/_vlmeta", self.root), "b2f")? {
            Some(schunk) => all_values(&schunk),
            None => Ok(Vec::new()),
        }
    }

    /// Where rows lie in the columns: as [`array`](Self::array) numbers them, with those that were deleted.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: there are not so many rows;
    /// - [`ErrorKind::TooLarge`]: more than a GiB of memory, and 256 bytes for each that is stored;
    /// - [`ErrorKind::InvalidData`]: the marks of live rows are broken.
    pub fn valid_rows(&self, rows: impl RangeBounds<u64>) -> Result<Vec<u64>> {
        let rows = self.rows(rows)?;
        self.live.budget().take((rows.end - rows.start).saturating_mul(8))?;
        let mut numbers = Vec::new();
        for span in self.live.spans(rows, None) {
            numbers.extend(span?.numbers());
        }
        Ok(numbers)
    }

    /// Opens the array that a column is stored in: of all rows, with those that were deleted, and maybe more.
    ///
    /// Of a dictionary it is that of the codes, of UTF-8 texts that of the places where they start and end.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such column;
    /// - [`ErrorKind::TypeMismatch`]: a column that is stored in batches, or computed;
    /// - [`ErrorKind::InvalidData`]: it is missing or broken.
    pub fn array(&self, name: &str) -> Result<NDArray> {
        let column = self.find(name)?;
        match column.kind() {
            ColumnKind::VlString
            | ColumnKind::VlBytes
            | ColumnKind::List(_)
            | ColumnKind::Struct(_)
            | ColumnKind::Object
            | ColumnKind::Computed(_) => Err(no_items(column)),
            _ => array(&*self.leaves, &format!("{}{}", self.root, column.key)),
        }
    }

    /// Reads rows of a column whose items have one size; of one of arrays, their items, one row after the other.
    ///
    /// Of a dictionary these are the codes, of timestamps the numbers. Rows that [have no value](Self::nulls)
    /// have any.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such column;
    /// - [`ErrorKind::OutOfBounds`]: there are not so many rows;
    /// - [`ErrorKind::TypeMismatch`]: `T` is not the type of its items, in this machine's byte order; a column
    ///   without items of one size;
    /// - [`ErrorKind::Unsupported`]: a column that is computed, [stale](Column::is_stale), or of a kind that is not
    ///   known;
    /// - [`ErrorKind::TooLarge`]: more than a GiB of memory, and 256 bytes for each that is stored;
    /// - [`ErrorKind::InvalidData`]: it is missing or broken, or has less rows than the table.
    pub fn read<T: Element>(&self, name: &str, rows: impl RangeBounds<u64>) -> Result<Vec<T>> {
        let rows = self.rows(rows)?;
        let (column, stored) = self.stored(name)?;
        let array = stored.items().ok_or_else(|| no_items(column))?;
        let nbytes = (rows.end - rows.start).saturating_mul(row_bytes(array) as u64);
        stored.budget().take(nbytes)?;
        let mut items = Vec::new();
        for span in self.live.spans(rows, Some(array)) {
            let part = span?.read::<T>(array)?;
            if items.is_empty() {
                items = part;
            } else {
                items.extend_from_slice(&part);
            }
        }
        Ok(items)
    }

    /// Which rows of a column have no value, however the column says so: by marks beside it, by a value or a code
    /// that stands for none, or by `None`.
    ///
    /// # Errors
    /// As for [`values`](Self::values).
    pub fn nulls(&self, name: &str, rows: impl RangeBounds<u64>) -> Result<Vec<bool>> {
        let rows = self.rows(rows)?;
        let (column, stored) = self.stored(name)?;
        stored.nulls(column, &self.live, rows)
    }

    /// Reads rows of a column of texts, of whatever kind; `None` for those that have no value.
    ///
    /// # Errors
    /// [`ErrorKind::TypeMismatch`]: a column of something else; as for [`values`](Self::values).
    pub fn texts(&self, name: &str, rows: impl RangeBounds<u64>) -> Result<Vec<Option<String>>> {
        let column = self.find(name)?;
        match column.kind() {
            ColumnKind::String { .. }
            | ColumnKind::Utf8
            | ColumnKind::VlString
            | ColumnKind::Dictionary { .. } => {}
            kind => {
                let detail = format!("the column `{name}` is one of {kind}, no texts");
                return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
            }
        }
        let texts = self.values(name, rows)?.into_iter().map(|value| match value {
            Value::None => Ok(None),
            Value::Str(text) => Ok(Some(text)),
            other => {
                let detail = format!("the column `{name}` of texts has {} in it", what(&other));
                Err(Error::new(ErrorKind::InvalidData, READ, detail))
            }
        });
        texts.collect()
    }

    /// Reads rows of any column; [`Value::None`] for those that have no value.
    ///
    /// They are what Python's `table[name][rows]` gives, but for moments, which are numbers here, and for what
    /// stands for no value, which Python gives as it is stored.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such column;
    /// - [`ErrorKind::OutOfBounds`]: there are not so many rows;
    /// - [`ErrorKind::Unsupported`]: a column that is computed, [stale](Column::is_stale), of a kind that is not
    ///   known, or in Arrow's format;
    /// - [`ErrorKind::TooLarge`]: more than a GiB of memory, and 256 bytes for each that is stored;
    /// - [`ErrorKind::InvalidData`]: it is missing or broken, or has less rows than the table.
    pub fn values(&self, name: &str, rows: impl RangeBounds<u64>) -> Result<Vec<Value>> {
        let rows = self.rows(rows)?;
        let (column, stored) = self.stored(name)?;
        stored.values(column, &self.live, rows)
    }

    fn find(&self, name: &str) -> Result<&Column> {
        self.column(name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, READ, format!("there is no column `{name}`"))
        })
    }

    /// A column that can be read, opened.
    fn stored(&self, name: &str) -> Result<(&Column, &Stored)> {
        let column = self.find(name)?;
        let refused = match column.kind() {
            ColumnKind::Computed(source) => Some(format!(
                "it is computed from `{}`, and nothing of a file is run",
                source.lines().next().unwrap_or_default()
            )),
            ColumnKind::Other(kind) => Some(format!("it is of the kind `{kind}`, not known here")),
            _ if column.is_stale() => Some(
                "it was computed from columns that have changed since; `array` opens it as it is"
                    .to_owned(),
            ),
            _ => None,
        };
        if let Some(why) = refused {
            let detail = format!("the column `{name}` holds no values: {why}");
            return Err(Error::new(ErrorKind::Unsupported, READ, detail));
        }
        if let Some(stored) = column.stored.get() {
            return Ok((column, stored));
        }
        let stored = Stored::open(&*self.leaves, &self.root, column)?;
        Ok((column, column.stored.get_or_init(|| stored)))
    }

    /// The rows that are asked for.
    fn rows(&self, rows: impl RangeBounds<u64>) -> Result<Range<u64>> {
        let nrows = self.nrows();
        let start = match rows.start_bound() {
            Bound::Included(&start) => start,
            Bound::Excluded(&start) => start.saturating_add(1),
            Bound::Unbounded => 0,
        };
        let end = match rows.end_bound() {
            Bound::Included(&end) => end.saturating_add(1),
            Bound::Excluded(&end) => end,
            Bound::Unbounded => nrows,
        };
        if start > end || end > nrows {
            let detail = format!("there are {nrows} rows, asked for {start}..{end}");
            return Err(Error::new(ErrorKind::OutOfBounds, READ, detail));
        }
        Ok(start..end)
    }
}

fn no_items(column: &Column) -> Error {
    let (name, kind) = (column.name(), column.kind());
    let detail = format!("the column `{name}` of {kind} has no items of one size; see `values`");
    Error::new(ErrorKind::TypeMismatch, READ, detail)
}

/// All metalayers of variable length, in the order of the file.
pub(crate) fn all_values(schunk: &SChunk) -> Result<Vec<(String, Value)>> {
    let vlmeta = schunk.vlmeta();
    let names = vlmeta.names().into_iter();
    let values = names.filter_map(|name| match vlmeta.value(&name) {
        Ok(value) => value.map(|value| Ok((name, value))),
        Err(error) => Some(Err(error)),
    });
    values.collect()
}
