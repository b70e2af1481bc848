//! Tables with columns. Python: `CTable`.

#[cfg(feature = "c")]
mod appender;
pub(super) mod cells;
#[cfg(feature = "c")]
mod change;
mod column;
mod condition;
#[cfg(feature = "c")]
mod data;
mod describe;
#[cfg(feature = "c")]
mod encode;
mod evaluate;
mod json;
mod live;
mod part;
mod read;
#[cfg(feature = "c")]
mod row;
mod rows;
pub(crate) mod scalar;
mod schema;
mod sort;
#[cfg(feature = "c")]
mod spec;
#[cfg(feature = "c")]
mod splice;
mod summary;
#[cfg(feature = "c")]
mod write;

use std::collections::HashMap;
use std::ops::{Range, RangeBounds};
use std::sync::{Mutex, PoisonError};

use crate::blosc2::super_chunk::Revision;
use crate::blosc2::{Dtype, Element, Error, ErrorKind, NDArray, Result, SChunk, Value};

#[cfg(feature = "c")]
pub use appender::TableAppender;
#[cfg(feature = "c")]
pub(crate) use change::new_parts;
pub use column::Column;
use column::Stored;
pub use condition::{Comparison, Condition};
#[cfg(feature = "c")]
pub use data::Data;
pub use describe::ColumnDescription;
use live::{LiveRows, Span};
use part::{Parts, array, leaf, row_bytes, row_items};
#[cfg(feature = "c")]
pub use row::{Cell, Row};
use rows::Ascending;
pub use rows::Rows;
pub use sort::SortOrder;
#[cfg(feature = "c")]
pub use spec::Schema;
#[cfg(feature = "c")]
use summary::Kept;
pub use summary::{Summary, SummarySegment};

use crate::ItemKind;
#[cfg(feature = "c")]
use crate::limits::options_of;
use crate::tag::{Doing, error, what};

pub(super) const OPEN: &str = "open a table";
const READ: &str = "read from a table";
const WRITE: &str = "write to a table";

/// Rows that are read at once when rows are searched.
const FIND_ROWS: usize = 1 << 20;
/// Rows of a part of a column.
const PART_ROWS: u64 = 1 << 16;

/// The source of the parts of a table.
pub(super) trait Leaves: LeavesMut + std::fmt::Debug + Send + Sync {
    /// The super-chunk with this key; `None` if there is none. If files differ only in their extension, the one with
    /// this extension.
    fn leaf(&self, key: &str, ending: &str) -> Result<Option<SChunk>>;

    /// Whether a part exists now, also if another handle has added it.
    fn exists(&self, _key: &str, _ending: &str) -> bool {
        false
    }

    /// Finds the super-chunks below a key that other handles have added.
    fn refresh(&mut self, _root: &str) -> Result<()> {
        Ok(())
    }
}

/// A source of the parts of a table that can also change them.
#[cfg(feature = "c")]
pub(super) trait LeavesMut {
    /// The same super-chunk, opened for changing. For a source in memory, a copy.
    fn leaf_for_changes(&self, key: &str, ending: &str) -> Result<Option<SChunk>>;

    /// Adds or replaces a super-chunk.
    fn put(&mut self, key: &str, ending: &str, schunk: &SChunk) -> Result<()>;

    /// Removes a super-chunk, if there is one. If files differ only in their extension, the one with this extension.
    fn discard(&mut self, key: &str, ending: &str) -> Result<()>;

    fn discard_below(&mut self, key: &str) -> Result<()>;

    /// Whether Python's indexes of columns can be stored beside the columns.
    fn has_indexes(&self) -> bool {
        true
    }

    /// Stores all changes.
    fn finish(&mut self) -> Result<()>;
}

#[cfg(not(feature = "c"))]
pub(super) trait LeavesMut {}

#[cfg(not(feature = "c"))]
impl<T> LeavesMut for T {}

/// A table with typed columns. Each column is stored separately. Python: `CTable`.
///
/// | storage | create | open for reading | open for changing |
/// |---|---|---|---|
/// | a directory or a zip file, in the format of a [`TreeStore`](crate::TreeStore) (`.b2d`, `.b2z`) | [`create`](Self::create) | [`open`](Self::open) | [`open_rw`](Self::open_rw) |
/// | an entry of a `TreeStore` | [`TreeStore::create_table`](crate::TreeStore::create_table) | [`TreeStore::get`](crate::TreeStore::get) | [`TreeStore::edit`](crate::TreeStore::edit) |
/// | memory | [`in_memory`](Self::in_memory) | | |
/// | a contiguous frame, in the format of an [`EmbedStore`](crate::EmbedStore) | [`to_cframe`](Self::to_cframe) | [`from_cframe`](Self::from_cframe) | [`from_cframe`](Self::from_cframe) |
///
/// The valid rows are the rows that are not deleted. As in Python, row indices count only valid rows.
///
/// Opening a table reads the schema and counts the rows. A column is opened when it is first read. Reading rows
/// decompresses only the blocks that contain these rows.
///
/// ```
/// use blosc2_store::{CTable, ItemKind, ItemType, Data, Schema};
///
/// let folder = tempfile::tempdir()?;
/// let path = folder.path().join("prices.b2d");
/// let price = ItemType::from(ItemKind::Float32).nullable();
/// let schema = Schema::new().column("id", ItemKind::Int64).column("price", price);
/// let mut table = CTable::create(&path, &schema)?;
/// let prices = Data::items(&[1.5f32, 2.5, 0.0, 4.5]).nulls(&[false, false, true, false][..]);
/// table.append([("id", Data::items(&[7i64, 8, 9, 10])), ("price", prices)])?;
/// table.delete_rows(1..2)?;
/// table.update("id", [2], Data::items(&[11i64]))?;
/// table.finish()?;
///
/// // Python: table = blosc2.CTable.open("prices.b2d")
/// let table = CTable::open(&path)?;
/// assert_eq!(table.nrows(), 3);
/// assert_eq!(table.columns()[1].kind(), &ItemKind::Float32);
/// assert_eq!(table.read::<i64>("id", ..)?, [7, 9, 11]);
/// assert_eq!(table.nulls("price", ..)?, [false, true, false]);
/// assert_eq!(table.values("price", 2..)?, [4.5.into()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CTable {
    parts: Parts,
    /// The stored columns, and then the computed ones.
    columns: Vec<Column>,
    /// The positions of the columns, by name.
    places: HashMap<String, usize>,
    live: LiveRows,
    /// A map of the entries of the schema except the version and the stored columns.
    others: Value,
    schema: Box<StoredSchema>,
    /// Whether there are changes that `finish` has not stored.
    changed: bool,
    /// The summaries of columns that `finish` stores.
    #[cfg(feature = "c")]
    summaries: Summaries,
}

/// The summaries of columns while the table is changed, by name.
#[cfg(feature = "c")]
#[derive(Debug, Default)]
struct Summaries {
    /// Whether the stored ones were read, before they become stale.
    loaded: bool,
    kept: HashMap<String, Kept>,
}

/// The super-chunk with the schema of a table.
#[derive(Debug)]
struct StoredSchema {
    meta: SChunk,
    /// The revision whose columns a handle for reading knows.
    revision: Mutex<Revision>,
}

impl StoredSchema {
    fn read(&self) -> Result<schema::Manifest> {
        let schema = match self.meta.vlmeta().value("schema")? {
            Some(Value::Str(text)) => Some(text),
            Some(Value::Bytes(text)) => String::from_utf8(text).ok(),
            _ => None,
        };
        let manifest = match &schema {
            Some(text) => schema::parse(text),
            None => Err((ErrorKind::InvalidData, "it has no schema".to_owned())),
        };
        manifest.map_err(|(kind, detail)| error(&self.meta, kind, OPEN, detail))
    }

    /// Whether the schema still has these columns. Its other entries can have changed.
    fn is_current(&self, columns: &[Column]) -> Result<bool> {
        let now = self.meta.revision()?;
        let mut revision = self.revision.lock().unwrap_or_else(PoisonError::into_inner);
        if *revision == now {
            return Ok(true);
        }
        let found = self.read()?.columns;
        // As texts: NaN, which can represent null, is not equal to itself.
        let described = |column: &Column| (column.entry.to_string(), column.stale);
        let is_same = found.iter().map(described).eq(columns.iter().map(described));
        if is_same {
            *revision = now;
        }
        Ok(is_same)
    }
}

impl CTable {
    /// Returns whether there is a table at a key; `""` is the store itself.
    pub(super) fn is_in(leaves: &dyn Leaves, root: &str) -> Result<bool> {
        let key = format!("{root}/_meta");
        let meta = leaves.leaf(&key, "b2f");
        #[cfg(feature = "c")]
        let meta = meta.or_else(|error| match error.kind() {
            // A store that is open for changing rolls back the change of a writer that has died.
            ErrorKind::Unfinished => leaves.leaf_for_changes(&key, "b2f").map_err(|_| error),
            _ => Err(error),
        });
        let Some(meta) = meta? else { return Ok(false) };
        Ok(match meta.vlmeta().value("kind")? {
            Some(Value::Str(kind)) => kind == "ctable",
            Some(Value::Bytes(kind)) => kind == b"ctable",
            _ => false,
        })
    }

    pub(super) fn new(leaves: impl Leaves + 'static, root: &str) -> Result<Self> {
        Self::with_parts(leaves, root, false)
    }

    fn with_parts(leaves: impl Leaves + 'static, root: &str, writable: bool) -> Result<Self> {
        let parts = Parts {
            leaves: Box::new(leaves),
            root: root.to_owned(),
            writable,
            #[cfg(feature = "c")]
            threads: None,
        };
        let (schema, manifest, live) = Self::read_state(&parts)?;
        let schema::Manifest { columns, others } = manifest;
        let places = places_of(&columns);
        Ok(Self {
            parts,
            columns,
            places,
            live,
            others,
            schema,
            changed: false,
            #[cfg(feature = "c")]
            summaries: Summaries::default(),
        })
    }

    /// Reads the schema and the mask of live rows.
    fn read_state(parts: &Parts) -> Result<(Box<StoredSchema>, schema::Manifest, LiveRows)> {
        let meta = leaf(parts, "/_meta", "b2f")?;
        let revision = meta.revision()?.into();
        let schema = Box::new(StoredSchema { meta, revision });
        let manifest = schema.read()?;
        Ok((schema, manifest, LiveRows::new(array(parts, "/_valid_rows")?)?))
    }

    /// Re-reads the schema and the valid rows of a table in a directory, so that the changes of other handles and
    /// programs are visible. Columns are opened again when they are next read. If the table is open for changing, this
    /// method does nothing, because no other handle of this crate can change it.
    ///
    /// A handle for reading counts the rows when the table is opened. If another handle or program appends or deletes
    /// rows, compacts the table, or adds, removes or renames columns, all methods that read rows or cells fail with
    /// [`ErrorKind::Busy`] until `refresh` is called. [`nrows`](Self::nrows) and [`columns`](Self::columns) return what
    /// the handle has read last. If only items of a column were updated, reads return the new items; if a column got its
    /// first null row, or strings, lists or other values of variable length were updated, reads of the column fail with
    /// `Busy`. Changes by another program are detected by the length, the modification time and the header of a file.
    ///
    /// These checks are made at the start of a read. Therefore another program must not be writing during a read or
    /// `refresh`, and another handle of this program must not [compact](Self::compact) the table meanwhile.
    ///
    /// A handle of a table in a zip file reads the file that it has opened, also after another file has replaced it.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container). After an error, the handle is
    /// unchanged.
    pub fn refresh(&mut self) -> Result<()> {
        if self.parts.writable {
            return Ok(());
        }
        self.parts.leaves.refresh(&self.parts.root)?;
        let (schema, schema::Manifest { columns, others }, live) = Self::read_state(&self.parts)?;
        self.places = places_of(&columns);
        (self.schema, self.columns, self.others, self.live) = (schema, columns, others, live);
        Ok(())
    }

    /// Checks that no other handle has changed what this handle for reading has counted.
    fn check_current(&self, stored: Option<(&Column, &Stored)>) -> Result<()> {
        // No other handle changes a table that is open for changing.
        if self.parts.writable {
            return Ok(());
        }
        let same_columns = self.schema.is_current(&self.columns)?;
        let same_column = match stored {
            Some((column, stored)) => {
                stored.is_current()? && !stored.lacks_marks(&self.parts, column)
            }
            None => true,
        };
        if same_columns && same_column && self.live.is_current()? {
            return Ok(());
        }
        let detail = "another handle or program has changed the table since this handle read it: call `refresh`";
        Err(error(self.live.marks().schunk(), ErrorKind::Busy, READ, detail))
    }

    /// Returns the number of valid rows that this handle has read last; see [`refresh`](Self::refresh). Python:
    /// `len(table)`.
    pub fn nrows(&self) -> u64 {
        self.live.len()
    }

    /// Returns the number of bytes of all stored columns before compression, and of the mask of valid rows. Columns that
    /// cannot be read do not count, and unused rows at the end of their arrays do.
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values), except of single columns.
    pub fn nbytes(&self) -> Result<u64> {
        self.sizes().map(|[nbytes, _]| nbytes)
    }

    /// Returns the number of stored bytes of what [`nbytes`](Self::nbytes) counts.
    ///
    /// # Errors
    /// Fails with the errors of [`nbytes`](Self::nbytes).
    pub fn cbytes(&self) -> Result<u64> {
        self.sizes().map(|[_, cbytes]| cbytes)
    }

    fn sizes(&self) -> Result<[u64; 2]> {
        self.check_current(None)?;
        let marks = self.live.marks();
        let mut sizes = [read::nbytes_of(marks), marks.schunk().cbytes()];
        let stored = self.columns.iter().filter_map(|column| self.stored(&column.name).ok());
        for (_, stored) in stored {
            for (sum, size) in sizes.iter_mut().zip(stored.sizes()) {
                *sum = sum.saturating_add(size);
            }
        }
        Ok(sizes)
    }

    /// Returns the ranges of the valid rows that are stored together, in ascending order. Each range contains the valid
    /// rows of one chunk of the mask of valid rows, or of a part of a large chunk; together, they contain all rows that
    /// [`nrows`](Self::nrows) counts. A chunk without valid rows has no range.
    ///
    /// Columns with fixed-size items usually have the same chunks as the mask. Therefore threads that read different
    /// ranges decompress different chunks.
    ///
    /// ```
    /// # use blosc2_store::{CTable, Data, ItemKind, Schema};
    /// # let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::Int64))?;
    /// # table.append([("id", Data::items(&[1i64, 2, 3]))])?;
    /// let rows: u64 = table.row_chunks().map(|rows| rows.end - rows.start).sum();
    /// assert_eq!(rows, table.nrows());
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn row_chunks(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.live.chunks()
    }

    /// Returns all columns: first the stored columns in the order of the schema, then the computed columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// Returns the column with this [name](Column::name), or `None` if there is no such column.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.places.get(name).map(|&at| &self.columns[at])
    }

    /// Returns the user attributes of the table, in stored order. Python: `table.vlmeta`.
    ///
    /// # Errors
    /// Fails with the errors of [reading values](crate#reading-values).
    pub fn attributes(&self) -> Result<Vec<(String, Value)>> {
        match self.parts.get("/_vlmeta", "b2f")? {
            Some(schunk) => all_values(&schunk),
            None => Ok(Vec::new()),
        }
    }

    /// Returns the positions of selected valid rows in the stored columns. The positions are indices into the result of
    /// [`array`](Self::array), which also contains deleted rows.
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: a row does not exist, or the length of a mask is not the number of rows of the
    ///   table;
    /// - [`ErrorKind::TooLarge`]: the result takes more than 1 GiB of memory and more than 256 times the stored bytes;
    /// - [`ErrorKind::InvalidData`]: the mask of valid rows is damaged;
    /// - [`ErrorKind::Busy`]: another handle or program has changed the table; call [`refresh`](Self::refresh);
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn valid_rows(&self, rows: impl Into<Rows>) -> Result<Vec<u64>> {
        self.check_current(None)?;
        let rows = rows.into().resolve(self.nrows()).doing(READ)?;
        self.live.budget().take(rows.len().saturating_mul(8))?;
        rows.read(1, |rows| self.places(rows))
    }

    /// The places of rows in the stored columns.
    fn places(&self, rows: Ascending<'_>) -> Result<Vec<u64>> {
        let mut places = Vec::new();
        for span in self.live.spans(rows, None) {
            places.extend(span?.numbers());
        }
        Ok(places)
    }

    /// Opens the array that stores a column. The array contains all rows, including deleted rows, and possibly unused
    /// rows at the end.
    ///
    /// For a `Dictionary` column, the array contains the codes: indices into the list of the distinct strings. For a
    /// `Utf8` column, the array contains the offsets of the strings. If the table is open for changing, the array is an
    /// in-memory copy. The array has the stored byte order; see
    /// [`DParams::convert_byte_order`](blosc2::DParams::convert_byte_order).
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: the table has no column with this name;
    /// - [`ErrorKind::TypeMismatch`]: the column is computed, or has a kind that is not stored as an array (`VlString`,
    ///   `VlBytes`, `List`, `Struct`, `Object`);
    /// - [`ErrorKind::InvalidData`]: the array is missing or damaged;
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn array(&self, name: &str) -> Result<NDArray> {
        let column = self.find_column(name)?;
        match column.kind() {
            ItemKind::Computed(_) => Err(no_items(column)),
            kind if kind.has_batches() => Err(no_items(column)),
            #[cfg(feature = "c")]
            _ if self.parts.writable => {
                let (_, stored) = self.stored(name)?;
                let items = stored.parts().into_iter().find(|(end, ..)| end.is_empty());
                let frame = items.map(|(.., schunk)| schunk.to_cframe());
                let frame = frame.unwrap_or_else(|| Err(no_items(column)))?;
                NDArray::from_schunk(options_of(self.live.marks().schunk()).open(frame)?)
            }
            _ => array(&self.parts, &column.key),
        }
    }

    /// Reads rows of a column with fixed-size items. The result depends on the kind of the column:
    /// - arrays: the items of all selected rows, in C order;
    /// - `Dictionary`: the codes;
    /// - `Timestamp`: integers, in the unit of the column.
    ///
    /// For [null rows](Self::nulls), the returned items are unspecified.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the items have no fixed size; or their dtype differs from `T::dtype()`, for
    ///   example in its byte order. The codes of a `Dictionary` column are converted to the native byte order;
    /// - the errors of [`values`](Self::values).
    pub fn read<T: Element>(&self, name: &str, rows: impl Into<Rows>) -> Result<Vec<T>> {
        let (column, stored) = self.stored(name)?;
        let array = stored.items().ok_or_else(|| no_items(column))?;
        self.read_rows(stored, array, rows.into(), row_items(array), |span| span.read(array))
    }

    /// Reads rows of a column with fixed-size items like [`read`](Self::read), as bytes. Also returns the dtype of the
    /// items, in the stored byte order.
    ///
    /// ```
    /// use blosc2_store::{CTable, Data, ItemKind, Schema};
    ///
    /// let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::UInt8))?;
    /// table.append([("id", Data::items(&[1u8, 2, 3]))])?;
    /// let (dtype, bytes) = table.read_bytes("id", 1..)?;
    /// assert_eq!((dtype.to_string(), bytes), ("|u1".to_owned(), vec![2, 3]));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the items have no fixed size, or are codes or offsets of strings;
    /// - the errors of [`values`](Self::values).
    pub fn read_bytes(&self, name: &str, rows: impl Into<Rows>) -> Result<(Dtype, Vec<u8>)> {
        let (column, stored) = self.stored(name)?;
        let is_plain = !matches!(column.kind(), ItemKind::Dictionary { .. } | ItemKind::Utf8);
        let array = stored.items().filter(|_| is_plain).ok_or_else(|| no_items(column))?;
        let dtype = array.dtype().cloned().ok_or_else(|| no_items(column))?;
        let row = row_bytes(array);
        let bytes =
            self.read_rows(stored, array, rows.into(), row, |span| span.read_bytes(array, row))?;
        Ok((dtype, bytes))
    }

    /// Reads the selected rows of an array span by span, `per_row` items of each row.
    fn read_rows<T: Clone>(
        &self,
        stored: &Stored,
        array: &NDArray,
        rows: Rows,
        per_row: usize,
        read: impl Fn(Span) -> Result<Vec<T>>,
    ) -> Result<Vec<T>> {
        let rows = rows.resolve(self.nrows()).doing(READ)?;
        stored.budget().take(rows.len().saturating_mul(row_bytes(array) as u64))?;
        rows.read(per_row, |rows| {
            let mut items = Vec::new();
            for span in self.live.spans(rows, Some(array)) {
                let part = read(span?)?;
                if items.is_empty() {
                    items = part;
                } else {
                    items.extend_from_slice(&part);
                }
            }
            Ok(items)
        })
    }

    /// Returns the indices of the rows for which `predicate` returns `true`. `predicate` receives the item of the
    /// column; it is not called for null rows. Up to 2<sup>20</sup> rows are in memory at the same time.
    ///
    /// ```
    /// use blosc2_store::{CTable, ItemKind, ItemType, Data, Schema};
    ///
    /// let price = ItemType::from(ItemKind::Float32).nullable();
    /// let mut table = CTable::in_memory(&Schema::new().column("price", price))?;
    /// table.append([("price", Data::items(&[9.5f32, 0.0, 2.5, 8.0]).nulls(&[false, true, false, false][..]))])?;
    /// let cheap = table.find("price", |price: &f32| *price < 9.0)?;
    /// assert_eq!(cheap, [2, 3]);
    /// assert_eq!(table.read::<f32>("price", cheap)?, [2.5, 8.0]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the column is a column of arrays;
    /// - the errors of [`read`](Self::read).
    pub fn find<T: Element>(&self, name: &str, predicate: impl Fn(&T) -> bool) -> Result<Vec<u64>> {
        self.check_single(name)?;
        let (column, stored) = self.stored(name)?;
        // Items of another type are an error.
        let is_same = stored.items().and_then(NDArray::dtype) == Some(&T::dtype());
        let summary = if column.is_nullable() && is_same { self.summary(name)? } else { None };
        let rows = self.rows_of(summary, |segment| !segment.is_null());
        self.find_among(name, rows, predicate)
    }

    /// Returns the indices of the rows whose item is in a range, such as `10..20` or `2.5..`. Null rows are in no range. NaN
    /// is in no range except `..`. Python: `where`.
    ///
    /// The [summary](Self::summary) of the column, if there is one, determines the blocks of the column that can contain
    /// such items; other blocks are not read. Otherwise all rows are read, as by [`find`](Self::find).
    ///
    /// ```
    /// use blosc2_store::{CTable, ItemKind, Data, Schema};
    ///
    /// let mut table = CTable::in_memory(&Schema::new().column("price", ItemKind::Float32))?;
    /// table.append([("price", Data::items(&[9.5f32, 2.5, f32::NAN, 8.0]))])?;
    /// assert_eq!(table.find_in("price", 2.5f32..9.0)?, [1, 3]);
    /// assert_eq!(table.find_in("price", 8.0f32..)?, [0, 3]);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the errors of [`find`](Self::find).
    pub fn find_in<T: Element + PartialOrd>(
        &self,
        name: &str,
        range: impl RangeBounds<T>,
    ) -> Result<Vec<u64>> {
        self.check_single(name)?;
        let (_, stored) = self.stored(name)?;
        let range = (range.start_bound().cloned(), range.end_bound().cloned());
        let bounds = stored.items().and_then(|array| summary::bounds_of(&range, array));
        let rows = match &bounds {
            Some(bounds) => self.rows_of(self.summary(name)?, |segment| segment.may_meet(bounds)),
            None => self.rows_of(None, |_| true),
        };
        self.find_among(name, rows, |item| range.contains(item))
    }

    /// Checks that a column has one item for each row.
    fn check_single(&self, name: &str) -> Result<()> {
        match self.find_column(name)?.kind() {
            ItemKind::NDArray { .. } => {
                let detail = format!("the column `{name}` has arrays, not single items");
                Err(Error::new(ErrorKind::TypeMismatch, READ, detail))
            }
            _ => Ok(()),
        }
    }

    /// The rows of the segments that `may_match` accepts; without a summary, all rows.
    fn rows_of(
        &self,
        summary: Option<Summary>,
        may_match: impl Fn(&SummarySegment) -> bool,
    ) -> Vec<Range<u64>> {
        match summary {
            Some(summary) => summary.rows_of(may_match),
            None => std::iter::once(0..self.nrows()).collect(),
        }
    }

    /// The rows in some ranges for which `predicate` returns `true`.
    fn find_among<T: Element>(
        &self,
        name: &str,
        ranges: Vec<Range<u64>>,
        predicate: impl Fn(&T) -> bool,
    ) -> Result<Vec<u64>> {
        let column = self.find_column(name)?;
        let mut found = Vec::new();
        for range in ranges {
            for start in range.clone().step_by(FIND_ROWS) {
                let rows = start..range.end.min(start + FIND_ROWS as u64);
                let items = self.read::<T>(name, rows.clone())?;
                let nulls = match column.is_nullable() {
                    true => self.nulls(name, rows.clone())?,
                    false => vec![false; items.len()],
                };
                let rows = rows.zip(items.iter().zip(nulls));
                let rows = rows.filter(|(_, (item, null))| !null && predicate(item));
                found.extend(rows.map(|(row, _)| row));
            }
        }
        Ok(found)
    }

    /// Returns the summary of a column: the bounds of its items, segment by segment. Returns `None` if there is none that
    /// describes the present items.
    ///
    /// Python and [`finish`](Self::finish) write a summary for each column of numbers, booleans and timestamps. A change of
    /// items makes the summaries stale until `finish` is called. A summary is used only if it is not stale, and if the shape,
    /// the chunks, the blocks and the dtype of the column, and the number of changes of the table are those for which it
    /// was made. A damaged summary is ignored. The bounds themselves are not verified, because this requires reading the
    /// column; Python does not verify them either.
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values).
    pub fn summary(&self, name: &str) -> Result<Option<Summary>> {
        let (column, stored) = self.stored(name)?;
        match stored.items() {
            Some(array) => summary::read(&self.parts, &self.schema.meta, column, array, &self.live),
            None => Ok(None),
        }
    }

    /// Returns a mask of the selected rows: `true` for null rows of the column. It does not matter how the column
    /// represents null: by a separate mask, a null value, a null code, or `None`.
    ///
    /// # Errors
    /// Fails with the errors of [`values`](Self::values).
    pub fn nulls(&self, name: &str, rows: impl Into<Rows>) -> Result<Vec<bool>> {
        let rows = rows.into().resolve(self.nrows()).doing(READ)?;
        let (column, stored) = self.stored(name)?;
        rows.read(1, |rows| stored.nulls(column, &self.live, rows))
    }

    /// Reads rows of a string column of any kind. The string of a null row is `None`.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the column does not hold strings;
    /// - the errors of [`values`](Self::values).
    pub fn texts(&self, name: &str, rows: impl Into<Rows>) -> Result<Vec<Option<String>>> {
        let kind = self.find_column(name)?.kind();
        if !kind.is_text() {
            let detail = format!("the column `{name}` is of type {kind}, not of strings");
            return Err(Error::new(ErrorKind::TypeMismatch, READ, detail));
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

    /// Reads rows of any column. The value of a null row is [`Value::None`].
    ///
    /// Python's `table[name][rows]` returns the same values, with two exceptions. Timestamps are integers in Rust. For
    /// null rows, Python can return a masked item or the stored null value.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: the table has no column with this name;
    /// - [`ErrorKind::OutOfBounds`]: a row does not exist, or the length of a mask is not the number of rows of the
    ///   table;
    /// - [`ErrorKind::Unsupported`], in one of these cases:
    ///   - the column is computed, is [stale](Column::is_stale), or has an unknown kind;
    ///   - the column is serialized with Arrow, and this build does not have the feature `arrow`;
    /// - [`ErrorKind::TooLarge`]: the result takes more than 1 GiB of memory and more than 256 times the stored bytes;
    /// - [`ErrorKind::InvalidData`]: the column is missing or damaged, or has fewer rows than the table;
    /// - [`ErrorKind::Busy`]: another handle or program has changed the table; call [`refresh`](Self::refresh);
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn values(&self, name: &str, rows: impl Into<Rows>) -> Result<Vec<Value>> {
        let rows = rows.into().resolve(self.nrows()).doing(READ)?;
        let (column, stored) = self.stored(name)?;
        rows.read(1, |rows| stored.values(column, &self.live, rows))
    }

    /// Passes all rows of a column to `work`, in parts whose values take little memory. `read` reads a part.
    fn in_parts<T>(
        &self,
        name: &str,
        read: impl Fn(Range<u64>) -> Result<T>,
        mut work: impl FnMut(Range<u64>, T) -> Result<()>,
    ) -> Result<()> {
        // A column that is computed, or cannot be read, has no storage.
        let stored = self.stored(name).ok();
        let (mut start, mut most) = (0, PART_ROWS);
        while start < self.nrows() {
            let mut rows = start..self.nrows().min(start + most);
            let end = match stored {
                Some((column, stored)) => stored.part_end(column, &self.live, rows.clone()),
                None => Ok(rows.end),
            };
            let part = end.and_then(|end| {
                rows.end = end;
                read(rows.clone())
            });
            match part {
                // The part is over the limit of reads: half of it is tried.
                Err(error) if error.kind() == ErrorKind::TooLarge && rows.end > start + 1 => {
                    most = (rows.end - start) / 2;
                }
                part => {
                    work(rows.clone(), part?)?;
                    start = rows.end;
                    // Slowly, because a part that is too large is read for nothing.
                    most = PART_ROWS.min(most + most.div_ceil(8));
                }
            }
        }
        Ok(())
    }

    pub(super) fn find_column(&self, name: &str) -> Result<&Column> {
        self.column(name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, READ, format!("there is no column `{name}`"))
        })
    }

    /// Opens a column for reading.
    fn stored(&self, name: &str) -> Result<(&Column, &Stored)> {
        let column = self.find_column(name)?;
        let refused = match column.kind() {
            ItemKind::Computed(source) => Some(format!(
                "it is computed from `{}`, and code in a file is not run",
                source.lines().next().unwrap_or_default()
            )),
            ItemKind::Other(kind) => Some(format!("it is of the unknown kind `{kind}`")),
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
        let stored = match column.stored.get() {
            Some(stored) => stored,
            None => {
                // Before files that another handle has removed are missing.
                self.check_current(None)?;
                let stored = Box::new(Stored::open(&self.parts, column)?);
                column.stored.get_or_init(|| stored)
            }
        };
        self.check_current(Some((column, stored)))?;
        Ok((column, stored))
    }
}

/// The positions of the columns, by name.
fn places_of(columns: &[Column]) -> HashMap<String, usize> {
    columns.iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect()
}

fn no_items(column: &Column) -> Error {
    let (name, kind) = (column.name(), column.kind());
    let detail =
        format!("the column `{name}` of type {kind} has no fixed-size items; use `values`");
    Error::new(ErrorKind::TypeMismatch, READ, detail)
}

/// The values of all variable-length metalayers, in the order of the file.
pub(super) fn all_values(schunk: &SChunk) -> Result<Vec<(String, Value)>> {
    let vlmeta = schunk.vlmeta();
    let names = vlmeta.names().into_iter();
    let values = names.filter_map(|name| match vlmeta.value(&name) {
        Ok(value) => value.map(|value| Ok((name, value))),
        Err(error) => Some(Err(error)),
    });
    values.collect()
}

#[cfg(all(test, feature = "c"))]
mod tests {
    use std::collections::HashMap;
    use std::io;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::sync::{Arc, Mutex};

    use crate::blosc2::storage::{ReadAt, Storage};
    use crate::blosc2::{CParams, Codec, OpenOptions, Target};
    use crate::{ItemType, TreeStore};

    use super::*;

    /// A table in memory that counts the requests for reading, and the written bytes.
    #[derive(Debug, Clone, Default)]
    struct Counting {
        files: HashMap<String, Arc<Mutex<Vec<u8>>>>,
        reads: Arc<AtomicU64>,
        written: Arc<AtomicU64>,
        /// Whether writes fail.
        fails: Arc<AtomicBool>,
    }

    #[derive(Debug)]
    struct Counted(Arc<Mutex<Vec<u8>>>, Counting);

    impl ReadAt for Counted {
        fn size(&self) -> io::Result<u64> {
            self.0.lock().unwrap().size()
        }

        fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
            self.1.reads.fetch_add(1, Ordering::Relaxed);
            self.0.lock().unwrap().read_exact_at(offset, buffer)
        }
    }

    impl Storage for Counted {
        fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
            if self.1.fails.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.1.written.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            self.0.lock().unwrap().write_all_at(offset, bytes)
        }

        fn set_size(&mut self, size: u64) -> io::Result<()> {
            self.0.lock().unwrap().set_size(size)
        }
    }

    impl Leaves for Counting {
        fn leaf(&self, key: &str, _: &str) -> Result<Option<SChunk>> {
            let open = |file: &Arc<Mutex<Vec<u8>>>| {
                let counts = Self { files: HashMap::new(), ..self.clone() };
                let storage = Counted(Arc::clone(file), counts);
                OpenOptions::new().write(true).open(Target::storage(storage))
            };
            self.files.get(key).map(open).transpose()
        }
    }

    impl LeavesMut for Counting {
        fn leaf_for_changes(&self, key: &str, ending: &str) -> Result<Option<SChunk>> {
            self.leaf(key, ending)
        }

        fn put(&mut self, key: &str, _: &str, schunk: &SChunk) -> Result<()> {
            self.files.insert(key.to_owned(), Arc::new(Mutex::new(schunk.to_cframe()?)));
            Ok(())
        }

        fn discard(&mut self, key: &str, _: &str) -> Result<()> {
            self.files.remove(key);
            Ok(())
        }

        fn discard_below(&mut self, _: &str) -> Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> Result<()> {
            Ok(())
        }
    }

    fn counting(schema: &Schema) -> (CTable, Counting) {
        let mut leaves = Counting::default();
        for (key, ending, schunk) in new_parts(schema, "").unwrap() {
            leaves.put(&key, ending, &schunk).unwrap();
        }
        let counts = Counting { files: HashMap::new(), ..leaves.clone() };
        (CTable::for_changes(leaves, "").unwrap(), counts)
    }

    /// Parts are opened again after they are created, and files do not store these parameters.
    #[test]
    fn columns_keep_the_parameters_of_their_schema() {
        /// The parameters without those of each part.
        fn of(mut params: CParams) -> CParams {
            (params.typesize, params.blocksize) = (None, None);
            params
        }
        let params = CParams::new().codec(Codec::Lz4).level(3).threads(3);
        let params = params.prefilter(|_| Err("no"));
        let word = ItemType::from(ItemKind::Dictionary { ordered: false });
        let list = ItemType::from(ItemKind::List(ItemKind::Int64.into()));
        let types: [(&str, ItemType, Data<'static>); 6] = [
            ("n", ItemKind::Int64.into(), Data::items(&[1i64])),
            ("text", ItemKind::Utf8.into(), Data::texts([Some("a")])),
            ("word", word, Data::texts([Some("b")])),
            ("long", ItemKind::VlString.into(), Data::texts([Some("c")])),
            ("list", list.clone(), Data::values(vec![Value::List(vec![1.into()])])),
            ("cells", list.with("storage", "vl"), Data::values(vec![Value::List(vec![])])),
        ];
        let schema = types.iter().fold(Schema::new(), |schema, (name, kind, _)| {
            schema.column(*name, kind.clone().cparams(&params))
        });
        let expected = CParams::new().codec(Codec::Lz4).level(3).threads(3);
        let check = |table: &CTable, what: &str| {
            for column in table.columns() {
                let parts = column.stored.get().expect("it was opened").parts();
                let content = parts.iter().filter(|(end, ..)| *end != ".notnull");
                for (end, _, part) in content {
                    assert_eq!(of(part.info().cparams), expected, "{what}: {}{end}", column.name());
                }
                assert_eq!(column.spec().cparams, None);
            }
        };
        let folder = tempfile::tempdir().unwrap();
        let mut store = TreeStore::create(folder.path().join("store.b2d")).unwrap();
        let tables = [
            ("memory", CTable::in_memory(&schema)),
            ("directory", CTable::create(folder.path().join("a.b2d"), &schema)),
            ("zip file", CTable::create(folder.path().join("a.b2z"), &schema)),
            ("entry", store.create_table("/a", &schema)),
        ];
        for (what, table) in tables {
            let mut table = table.unwrap();
            let number = ItemType::from(ItemKind::Int8).nullable().cparams(&params);
            table.append(types.iter().map(|(name, _, data)| (*name, data.clone()))).unwrap();
            table.add_column("added", number, None).unwrap();
            table.rename_column("text", "renamed").unwrap();
            table.update("renamed", ..1, Data::texts([Some("d")])).unwrap();
            table.finish().unwrap();
            table.compact().unwrap();
            check(&table, what);
            assert_eq!(table.texts("renamed", ..).unwrap(), [Some("d".to_owned())]);
            assert_eq!(table.read::<i64>("n", ..).unwrap(), [1]);
        }
        let mut opened = CTable::open_rw(folder.path().join("a.b2d")).unwrap();
        opened.read::<i64>("n", ..).unwrap();
        let stored = |table: &CTable, name| {
            let parts = table.column(name).unwrap().stored.get().unwrap().parts();
            parts.iter().map(|(.., part)| part.info()).collect::<Vec<_>>()
        };
        assert_eq!(of(stored(&opened, "n").remove(0).cparams), expected.clone().threads(1));
        opened.set_threads(3).unwrap();
        let check = |table: &CTable| {
            for name in ["n", "renamed", "word", "long", "list", "cells"] {
                table.values(name, ..).unwrap();
                for info in stored(table, name) {
                    let threads = (info.cparams.threads, info.dparams.threads);
                    assert_eq!(threads, (3.into(), 3.into()), "{name}");
                }
            }
        };
        check(&opened);
        // The other parameters stay.
        assert_eq!(of(stored(&opened, "n").remove(0).cparams), expected);
        opened.rename_column("renamed", "again").unwrap();
        opened.append([("n", Data::items(&[2i64]))]).unwrap_err();
        opened.rename_column("again", "renamed").unwrap();
        check(&opened);
        drop(opened);
        let mut opened = CTable::open(folder.path().join("a.b2z")).unwrap();
        opened.set_threads(3).unwrap();
        check(&opened);
    }

    #[test]
    fn appenders_keep_their_rows_until_they_are_written() {
        let schema = Schema::new()
            .column("n", ItemKind::Int64)
            .column("word", ItemKind::Dictionary { ordered: false });
        let (table, counts) = counting(&schema);
        let mut rows = table.into_appender().unwrap();
        let append = |rows: &mut TableAppender, numbers: &[i64]| {
            let words = Data::texts(numbers.iter().map(|n| Some((n % 3).to_string())));
            rows.append([("n", Data::items(numbers)), ("word", words)])
        };
        append(&mut rows, &[1, 2]).unwrap();
        rows.flush().unwrap();
        append(&mut rows, &[3, 4]).unwrap();
        counts.fails.store(true, Ordering::Relaxed);
        assert_eq!(rows.flush().unwrap_err().kind(), ErrorKind::Io);
        let many: Vec<i64> = (0..1_100_000).collect();
        // A call that writes what was collected, and one that only writes its own rows.
        assert_eq!(append(&mut rows, &many).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!((rows.pending(), rows.table().nrows()), (2, 2));
        counts.fails.store(false, Ordering::Relaxed);
        rows.flush().unwrap();
        counts.fails.store(true, Ordering::Relaxed);
        assert_eq!(append(&mut rows, &many).unwrap_err().kind(), ErrorKind::Io);
        assert_eq!((rows.pending(), rows.table().nrows()), (0, 4));
        counts.fails.store(false, Ordering::Relaxed);
        append(&mut rows, &[5]).unwrap();
        let table = rows.finish().unwrap();
        assert_eq!(table.read::<i64>("n", ..).unwrap(), [1, 2, 3, 4, 5]);
        let words = ["1", "2", "0", "1", "2"].map(|word| Some(word.to_owned()));
        assert_eq!(table.texts("word", ..).unwrap(), words);
    }

    /// Each part would recompress the last chunks otherwise.
    #[test]
    fn appenders_write_each_chunk_once() {
        const ROWS: usize = 200_000;
        let number = |row: i64| row.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let all: Vec<i64> = (0..ROWS as i64).map(number).collect();
        let schema = Schema::new()
            .column("n", ItemKind::Int64)
            .column("text", ItemKind::Utf8)
            .column("word", ItemKind::Dictionary { ordered: false })
            .column("long", ItemKind::VlString);
        let written = |batch: usize| {
            let (table, counts) = counting(&schema);
            let mut rows = table.into_appender().unwrap();
            for part in all.chunks(batch) {
                let texts = || Data::texts(part.iter().map(|n| Some(format!("{:x}", n % 1000))));
                let cells = [
                    ("n", Data::items(part)),
                    ("text", texts()),
                    ("word", texts()),
                    ("long", texts()),
                ];
                rows.append(cells).unwrap();
            }
            let table = rows.finish().unwrap();
            assert_eq!(table.read::<i64>("n", ..).unwrap(), all);
            counts.written.load(Ordering::Relaxed)
        };
        let [small, odd, large] = [500, 1777, ROWS].map(written);
        assert!(small <= large + large / 2, "{small} bytes, {large} at once");
        assert!(odd <= large + large / 2, "{odd} bytes, {large} at once");
    }

    /// The other rows are read in parts of many rows.
    #[test]
    fn a_long_string_does_not_make_parts_small() {
        const ROWS: usize = 200_000;
        let schema = Schema::new()
            .column("word", ItemKind::Dictionary { ordered: false })
            .column("text", ItemKind::Utf8)
            .column("long", ItemKind::VlString);
        let reads = |long: Option<usize>| {
            let (mut table, counts) = counting(&schema);
            let long = long.map(|len| "y".repeat(len));
            let text = |row| match (&long, row) {
                (Some(long), 70_000) => long.clone(),
                _ => format!("{}", row % 100),
            };
            let texts = || Data::texts((0..ROWS).map(text).map(Some));
            table.append([("word", texts()), ("text", texts()), ("long", texts())]).unwrap();
            // A deleted row shifts the parts.
            table.delete_rows([5]).unwrap();
            ["word", "text", "long"].map(|name| {
                counts.reads.store(0, Ordering::Relaxed);
                let described = table.describe(name).unwrap();
                let read = counts.reads.load(Ordering::Relaxed);
                assert_eq!(described.distinct, Some(100 + u64::from(long.is_some())), "{name}");
                let rows = table.argsort(name, SortOrder::Descending, ..2).unwrap();
                let expected = if long.is_some() { [69_999, 98] } else { [98, 198] };
                assert_eq!(rows, expected, "{name}");
                read
            })
        };
        let (plain, with_long) = (reads(None), reads(Some(8 << 20)));
        for (plain, with_long) in plain.into_iter().zip(with_long) {
            assert!(with_long <= plain + plain / 2 + 20, "{with_long} reads, {plain} without it");
        }
    }

    /// A block of a batch that does not fit into a part is decoded once, and not for each row.
    #[test]
    fn a_long_block_is_one_part() {
        const ROWS: u64 = 600;
        let list = ItemType::from(ItemKind::List(ItemKind::Int64.into()));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.b2d");
        let mut table = CTable::create(&path, &Schema::new().column("list", list)).unwrap();
        let values = |row: u64| Value::List((0..250).map(|at| ((row * at) << 20).into()).collect());
        let lists = Data::values((0..ROWS).map(values).collect::<Vec<_>>());
        table.append([("list", lists)]).unwrap();
        table.finish().unwrap();
        drop(table);
        let limits = blosc2_format::Limits::default();
        let table = CTable::open_rw_with_limits(&path, limits, Some(1 << 20)).unwrap();
        let (column, stored) = table.stored("list").unwrap();
        let column::Content::Batches(array) = &stored.content else { panic!("{stored:?}") };
        let (mut end, mut parts) = (0, 0);
        while end < ROWS {
            let start = end;
            end = stored.part_end(column, &table.live, start..ROWS).unwrap();
            assert_eq!(array.unit_of(start, 0).unwrap().0, start..end);
            parts += 1;
        }
        assert!(parts < 10, "{parts} parts");
    }

    /// With a low limit of reads, columns are read in small parts.
    #[test]
    fn a_low_limit_makes_parts_small() {
        let schema = Schema::new()
            .column("word", ItemKind::Dictionary { ordered: false })
            .column("text", ItemKind::Utf8);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("table.b2d");
        let mut table = CTable::create(&path, &schema).unwrap();
        let texts = || Data::texts((0..100_000).map(|row| Some(format!("{}", row % 7))));
        table.append([("word", texts()), ("text", texts())]).unwrap();
        table.finish().unwrap();
        drop(table);
        let limits = blosc2_format::Limits::default();
        let table = CTable::open_rw_with_limits(&path, limits, Some(200_000)).unwrap();
        for name in ["word", "text"] {
            assert_eq!(table.describe(name).unwrap().distinct, Some(7), "{name}");
        }
    }

    #[test]
    fn the_description_of_an_empty_table_reads_no_dictionary() {
        let schema = Schema::new().column("word", ItemKind::Dictionary { ordered: false });
        let mut table = CTable::in_memory(&schema).unwrap();
        table.append([("word", Data::texts([Some("a"), Some("b")]))]).unwrap();
        table.delete_rows(..).unwrap();
        let table = CTable::from_cframe(table.to_cframe().unwrap()).unwrap();
        let is_read = || {
            let stored = table.column("word").unwrap().stored.get();
            stored.is_some_and(|stored| match &stored.content {
                column::Content::Codes { decoded, .. } => decoded.get().is_some(),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(table.describe("word").unwrap().distinct, Some(0));
        assert!(table.argsort("word", SortOrder::Ascending, ..).unwrap().is_empty());
        assert!(!is_read());
        assert_eq!(table.categories("word").unwrap(), ["a", "b"]);
        assert!(is_read());
    }

    /// Each unit of the mask and each block of a column is read once, and not for each row.
    #[test]
    fn scattered_rows_are_found_in_one_pass() {
        const ROWS: i64 = 100_000;
        let schema = Schema::new().column("n", ItemKind::Int64).expected_rows(ROWS as u64);
        let (mut table, counts) = counting(&schema);
        let taken = || counts.reads.swap(0, Ordering::Relaxed);
        // Numbers that hardly compress, so that blocks are read one by one.
        let number = |row: i64| row.wrapping_mul(0x2545_f491_4f6c_dd1d);
        let mut model: Vec<i64> = (0..ROWS).map(number).collect();
        table.append([("n", Data::items(&model))]).unwrap();
        table.delete_rows([0]).unwrap();
        model.remove(0);
        const MOST: u64 = 500;
        let scattered = |model: &[i64]| -> Vec<u64> {
            // Each block has some, and not in ascending order.
            (0..model.len() as u64).filter(|row| row % 97 == 5).rev().collect()
        };

        let rows = scattered(&model);
        assert!(rows.len() > 1000);
        taken();
        let items = table.read::<i64>("n", &rows[..]).unwrap();
        assert!(taken() < MOST, "by indices");
        assert!(items.iter().zip(&rows).all(|(item, row)| *item == model[*row as usize]));
        let values = table.values("n", &rows[..]).unwrap();
        assert!(taken() < MOST, "values");
        assert!(values.iter().zip(&items).all(|(value, item)| *value == (*item).into()));
        table.valid_rows(&rows[..]).unwrap();
        assert!(taken() < MOST, "places");
        table.nulls("n", &rows[..]).unwrap();
        assert!(taken() < MOST, "nulls");
        let mut again = rows.clone();
        again.extend([rows[3]; 2]);
        let items = table.read::<i64>("n", &again[..]).unwrap();
        assert!(items.iter().zip(&again).all(|(item, row)| *item == model[*row as usize]));

        let new: Vec<i64> = rows.iter().map(|row| *row as i64).collect();
        taken();
        table.update("n", &rows[..], Data::items(&new)).unwrap();
        assert!(taken() < MOST, "update");
        rows.iter().zip(new).for_each(|(row, new)| model[*row as usize] = new);

        assert_eq!(table.delete_rows(&rows[..]).unwrap(), rows.len() as u64);
        assert!(taken() < MOST, "deletion by indices");
        for row in &rows {
            model.remove(*row as usize);
        }
        assert_eq!(table.read::<i64>("n", ..).unwrap(), model);

        let mask: Vec<bool> = (0..model.len()).map(|row| row % 101 == 7).collect();
        taken();
        table.delete_rows(&mask[..]).unwrap();
        assert!(taken() < MOST, "deletion by mask");
        let mut mask = mask.iter();
        model.retain(|_| !mask.next().unwrap());
        assert_eq!(table.read::<i64>("n", ..).unwrap(), model);
    }
}
