//! Tables with columns. Python: `CTable`.

mod column;
mod json;
mod live;
mod part;
mod read;
mod schema;

use std::collections::HashMap;
use std::ops::{Bound, Range, RangeBounds};

use blosc2::{Element, Error, ErrorKind, NDArray, Result, SChunk, Value};

use column::Stored;
pub use column::{Column, ColumnKind, TimeUnit};
use live::LiveRows;
use part::{array, leaf, row_bytes};

use crate::tag::{error, what};

pub(crate) const OPEN: &str = "open a table";
const READ: &str = "read from a table";

/// The source of the parts of a table.
pub(crate) trait Leaves: std::fmt::Debug + Send + Sync {
    /// The super-chunk with this key; `None` if there is none. If files differ only in their extension, the one with
    /// this extension.
    fn leaf(&self, key: &str, ending: &str) -> Result<Option<SChunk>>;
}

/// A read-only table with typed columns, each stored separately. Python: `CTable`.
///
/// A table is stored as a [`TreeStore`](crate::TreeStore) (`.b2d`, `.b2z`), as an entry of one, or in memory as an
/// [`EmbedStore`](crate::EmbedStore). [`open`](Self::open), [`TreeStore::get`](crate::TreeStore::get) and
/// [`from_cframe`](Self::from_cframe) open it.
///
/// Row indices count the valid rows only, as in Python: deleted rows are skipped. Opening a table reads the schema and
/// counts the rows. A column is opened when it is first read, and only the blocks that the rows need are read.
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
/// // Python: bytes = table.to_cframe(), with four rows, the second one deleted
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
    /// The positions of the columns, by name.
    places: HashMap<String, usize>,
    live: LiveRows,
}

impl CTable {
    /// Returns whether there is a table at a key; `""` is the store itself.
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
        let manifest = match &schema {
            Some(text) => schema::parse(text),
            None => Err((ErrorKind::InvalidData, "it has no schema".to_owned())),
        };
        let manifest = manifest.map_err(|(kind, detail)| error(&meta, kind, OPEN, detail))?;
        let live = LiveRows::new(array(&leaves, &format!("{root}/_valid_rows"))?)?;
        let columns = manifest.columns;
        let places = columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at));
        let places = places.collect();
        Ok(Self { leaves: Box::new(leaves), root: root.to_owned(), columns, places, live })
    }

    /// Returns the number of valid rows. Python: `len(table)`.
    pub fn nrows(&self) -> u64 {
        self.live.len()
    }

    /// Returns all columns in the order of the schema, computed columns last.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the column with this [name](Column::name); `None` if there is none.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.places.get(name).map(|&at| &self.columns[at])
    }

    /// Returns the user attributes of the table, in stored order. Python: `table.vlmeta`.
    ///
    /// # Errors
    /// Fails with the errors of [reading values](crate#reading-values).
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        match self.leaves.leaf(&format!("{}/_vlmeta", self.root), "b2f")? {
            Some(schunk) => all_values(&schunk),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the positions of a range of valid rows in the stored columns. They are indices into
    /// [`array`](Self::array), which also contains the deleted rows.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: the range extends beyond the number of rows;
    /// - [`ErrorKind::TooLarge`]: the result takes more than 1 GiB of memory and more than 256 times the stored bytes;
    /// - [`ErrorKind::InvalidData`]: the mask of valid rows is damaged;
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn valid_rows(&self, rows: impl RangeBounds<u64>) -> Result<Vec<u64>> {
        let rows = self.rows(rows)?;
        self.live.budget().take((rows.end - rows.start).saturating_mul(8))?;
        let mut numbers = Vec::new();
        for span in self.live.spans(rows, None) {
            numbers.extend(span?.numbers());
        }
        Ok(numbers)
    }

    /// Opens the array that stores a column: all rows, including deleted ones, and possibly unused rows at the end.
    ///
    /// For a dictionary column it is the array of codes, for a column of UTF-8 strings the array of offsets.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such column;
    /// - [`ErrorKind::TypeMismatch`]: the column is not stored as an array (`VlString`, `VlBytes`, `List`, `Struct`,
    ///   `Object`), or is computed;
    /// - [`ErrorKind::InvalidData`]: the array is missing or damaged;
    /// - [`ErrorKind::Io`]: the file cannot be read.
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

    /// Reads rows of a column with fixed-size items. For a column of arrays it returns their items in C order, row by
    /// row.
    ///
    /// For a dictionary column it returns the codes, for a column of timestamps the integers. For
    /// [null rows](Self::nulls) the value is unspecified.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such column;
    /// - [`ErrorKind::OutOfBounds`]: the range extends beyond the number of rows;
    /// - [`ErrorKind::TypeMismatch`]: the dtype of the items differs from `T::dtype()`, for example in its byte order;
    ///   or the items have no fixed size;
    /// - [`ErrorKind::Unsupported`]: the column is computed, [stale](Column::is_stale), or of an unknown kind;
    /// - [`ErrorKind::TooLarge`]: the result takes more than 1 GiB of memory and more than 256 times the stored bytes;
    /// - [`ErrorKind::InvalidData`]: the column is missing or damaged, or has fewer rows than the table;
    /// - [`ErrorKind::Io`]: the file cannot be read.
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

    /// Returns a mask of the null rows of a column, however the column represents null: by a separate mask, by a null
    /// value or a null code, or by `None`.
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values).
    pub fn nulls(&self, name: &str, rows: impl RangeBounds<u64>) -> Result<Vec<bool>> {
        let rows = self.rows(rows)?;
        let (column, stored) = self.stored(name)?;
        stored.nulls(column, &self.live, rows)
    }

    /// Reads rows of a string column of any kind; `None` for null rows.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the column does not hold strings;
    /// - the errors of [`values`](Self::values).
    pub fn texts(&self, name: &str, rows: impl RangeBounds<u64>) -> Result<Vec<Option<String>>> {
        let column = self.find(name)?;
        match column.kind() {
            ColumnKind::String { .. }
            | ColumnKind::Utf8
            | ColumnKind::VlString
            | ColumnKind::Dictionary { .. } => {}
            kind => {
                let detail = format!("the column `{name}` is of type {kind}, not of strings");
                return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
            }
        }
        let texts = self.values(name, rows)?.into_iter().map(|value| match value {
            Value::None => Ok(None),
            Value::Str(text) => Ok(Some(text)),
            other => {
                let detail = format!("the column `{name}` of strings contains {}", what(&other));
                Err(Error::new(ErrorKind::InvalidData, READ, detail))
            }
        });
        texts.collect()
    }

    /// Reads rows of any column; [`Value::None`] for null rows.
    ///
    /// The values are those of Python's `table[name][rows]`, with two exceptions: timestamps are integers here, and for
    /// null rows Python can return a masked item or the stored null value.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: there is no such column;
    /// - [`ErrorKind::OutOfBounds`]: the range extends beyond the number of rows;
    /// - [`ErrorKind::Unsupported`]: the column is computed, [stale](Column::is_stale), of an unknown kind, or
    ///   serialized with Arrow;
    /// - [`ErrorKind::TooLarge`]: the result takes more than 1 GiB of memory and more than 256 times the stored bytes;
    /// - [`ErrorKind::InvalidData`]: the column is missing or damaged, or has fewer rows than the table;
    /// - [`ErrorKind::Io`]: the file cannot be read.
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

    /// Opens a column for reading.
    fn stored(&self, name: &str) -> Result<(&Column, &Stored)> {
        let column = self.find(name)?;
        let refused = match column.kind() {
            ColumnKind::Computed(source) => Some(format!(
                "it is computed from `{}`, and code in a file is not run",
                source.lines().next().unwrap_or_default()
            )),
            ColumnKind::Other(kind) => Some(format!("it is of the unknown kind `{kind}`")),
            _ if column.is_stale() => Some(
                "it was computed from columns that have changed since; `array` opens the stored values"
                    .to_owned(),
            ),
            _ => None,
        };
        if let Some(why) = refused {
            let detail = format!("the column `{name}` cannot be read: {why}");
            return Err(Error::new(ErrorKind::Unsupported, READ, detail));
        }
        if let Some(stored) = column.stored.get() {
            return Ok((column, stored));
        }
        let stored = Box::new(Stored::open(&*self.leaves, &self.root, column)?);
        Ok((column, column.stored.get_or_init(|| stored)))
    }

    /// Resolves and checks a range of rows.
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
    let detail =
        format!("the column `{name}` of type {kind} has no fixed-size items; use `values`");
    Error::new(ErrorKind::TypeMismatch, READ, detail)
}

/// The values of all variable-length metalayers, in the order of the file.
pub(crate) fn all_values(schunk: &SChunk) -> Result<Vec<(String, Value)>> {
    let vlmeta = schunk.vlmeta();
    let names = vlmeta.names().into_iter();
    let values = names.filter_map(|name| match vlmeta.value(&name) {
        Ok(value) => value.map(|value| Ok((name, value))),
        Err(error) => Some(Err(error)),
    });
    values.collect()
}
