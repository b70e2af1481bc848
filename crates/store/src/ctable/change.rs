//! Changes of tables.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::blosc2::{
    Dtype, Element, Error, ErrorKind, Limits, NDArray, OpenOptions, Result, SChunk, Threads, Value,
};
use serde::Serialize;

use super::cells::{Cells, Encoded, Texts};
use super::column::{Column, Content, Nulls, Stored};
use super::data::Data;
use super::encode::{default_of, encode, failed};
use super::evaluate::{MATERIALIZED, name_of, sources};
use super::live::unit_of;
use super::rows::{Picked, Rows};
use super::schema;
use super::spec::{Grid, MAKE, Part, Schema, check_names, new_column, parts};
use super::summary::{EPOCH, INDEXES, Kept};
use super::{CTable, Leaves, OPEN, WRITE, json};
use crate::item_type::row_size;
use crate::limits::copy_or_new;
use crate::tag::{Doing, Fault, error, reserve_rows};
use crate::{EmbedStore, ItemKind, ItemType, TreeStore};

/// Maximum rows by which the room for rows grows at once, as in Python.
const MAX_GROWTH: u64 = 1 << 20;
/// If the appended rows have fewer bytes, one column after the other is written.
const MIN_BYTES: u64 = 1 << 20;
/// The entry of a schema with the number of rows.
const NROWS: &str = "n_rows";
/// The entry of a schema with the columns that were computed from others.
/// Whether a table has summaries of its columns, and whether they were written once.
const SUMMARIES: &str = "create_summary_index";
const SUMMARIZED: &str = "summary_indexes_built";
/// The metalayer with the number of deletions. Indexes stay valid.
const VISIBILITY: &str = "visibility_epoch";

/// The parts of a new table, the ones that identify it last.
pub(crate) fn new_parts(schema: &Schema, root: &str) -> Result<Vec<Part>> {
    let columns = schema.compile(root)?;
    let grid = Grid::of(columns.iter(), schema.capacity())?;
    check_rows(schema.capacity(), grid.chunk)
        .map_err(|detail| Error::new(ErrorKind::TooLarge, MAKE, detail))?;
    let mut all = Vec::new();
    for column in &columns {
        // The options are complete only if they make a valid row.
        if let Some(default) = column.spec.get("default") {
            let no_null = *default == Value::None && !column.nullable;
            if !no_null {
                encode(column, default_of(column, 1, 0)?, Some(&[]))?;
            }
        }
        if let (Nulls::Sentinel(_), true) = (&column.nulls, column.kind().has_items()) {
            encode(column, Data::values(vec![Value::None]), Some(&[]))?;
        }
        all.extend(parts(column, grid, schema.capacity())?);
    }
    all.push(("/_valid_rows".to_owned(), "b2nd", grid.marks(schema.capacity(), false)?));
    let entries: Vec<Value> = columns.iter().map(|column| column.entry.clone()).collect();
    let others = Value::from([(SUMMARIES, true.into()), (SUMMARIZED, false.into())]);
    check_schema(entries.clone(), &others).doing(MAKE)?;
    all.push(("/_meta".to_owned(), "b2f", meta(&text_of(entries, &others))?));
    Ok(all)
}

/// The super-chunk that identifies a table.
fn meta(schema: &str) -> Result<SChunk> {
    let mut meta = copy_or_new(None)?;
    let mut vlmeta = meta.vlmeta_mut();
    vlmeta.set_value("kind", "ctable")?;
    vlmeta.set_value("version", &1)?;
    vlmeta.set_value("schema", schema)?;
    Ok(meta)
}

/// The JSON of a schema.
pub(super) fn text_of(columns: Vec<Value>, others: &Value) -> String {
    let masked = |entry: &&Value| entry.get("null_storage").and_then(Value::as_str) == Some("mask");
    let nested = others.get("metadata").and_then(|metadata| metadata.get("nested"));
    // The first version whose readers know everything that the table uses.
    let version = match columns.iter().find(masked) {
        Some(_) => 3,
        None if nested.is_some_and(|nested| *nested != Value::None) => 2,
        None => 1,
    };
    let columns = ("columns".into(), Value::List(columns));
    let mut schema = vec![("version".into(), version.into()), columns];
    if let Value::Map(others) = others {
        schema.extend(others.iter().cloned());
    }
    let mut text = String::new();
    // Only values that were read from JSON, or checked when a column was created.
    let _ = json::write(&Value::Map(schema), &mut text);
    text
}

/// Checks that readers can read the mask of valid rows, which can be stored in a few bytes. The error describes
/// the fault.
fn check_rows(rows: u64, chunk: u64) -> Result<(), String> {
    unit_of(rows, chunk, 0).map(drop).map_err(|_| {
        format!(
            "room for {rows} rows in chunks of {chunk} rows: readers accept at most 2^20 chunks; the expected number \
             of rows determines the size of a chunk when the table is created"
        )
    })
}

/// Checks that readers can read the schema, also when [`CTable::finish`] has added the number of rows.
fn check_schema(columns: Vec<Value>, others: &Value) -> Result<(), Fault> {
    let mut others = others.clone();
    set(&mut others, NROWS, u64::MAX.into());
    match schema::parse(&text_of(columns, &others)) {
        Ok(_) => Ok(()),
        Err((ErrorKind::TooLarge, detail)) => Err((ErrorKind::TooLarge, detail)),
        Err((_, detail)) => Err((ErrorKind::InvalidArgument, detail)),
    }
}

impl CTable {
    /// Opens the table in a contiguous frame in memory, for reading and changing. Python's `ctable_from_cframe` opens
    /// the table for reading only.
    ///
    /// To get a frame with the changes, call [`to_cframe`](Self::to_cframe).
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the container is not a table;
    /// - [`ErrorKind::InvalidData`]: the schema or the mask of valid rows is missing or invalid;
    /// - [`ErrorKind::Unsupported`]: the version of the schema is newer than this crate supports;
    /// - the errors of [opening a container](crate#opening-a-container).
    pub fn from_cframe(bytes: Vec<u8>) -> Result<Self> {
        let store = OpenOptions::new().write(true).open(bytes)?;
        let store = EmbedStore::from_schunk(store)?;
        match CTable::is_in(&store, "")? {
            true => CTable::for_changes(store, ""),
            false => Self::of(crate::Object::EmbedStore(store)),
        }
    }

    /// Creates an empty table: in a zip file if the name ends in `.b2z`, otherwise in a new directory. Python:
    /// `CTable(row_type, urlpath=path, mode="w")`.
    ///
    /// The zip file does not exist until [`finish`](Self::finish) writes it. Python expects that the name of a
    /// directory ends in `.b2d`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`], in one of these cases:
    ///   - the schema has no columns, two columns of the same name, or an invalid name;
    ///   - an option does not exist for the kind of its column, or has an invalid value;
    ///   - a column cannot store its default or null value;
    ///   - a row of a column takes more than 2<sup>63</sup> - 1 bytes;
    /// - [`ErrorKind::TooLarge`]: a default or null value takes more than 1 GiB; the expected number of rows is too large;
    ///   or the schema has more than 16 MiB as JSON, or takes more than 96 MiB of memory;
    /// - the errors of [creating a container](crate#creating-a-container).
    pub fn create(path: impl AsRef<Path>, schema: &Schema) -> Result<Self> {
        // First, so that nothing is created if the schema is invalid.
        let parts = new_parts(schema, "")?;
        Self::new_in(TreeStore::create(path)?, schema, &parts)
    }

    /// Creates an empty table in memory. Python: `CTable(row_type)`.
    ///
    /// # Errors
    /// Fails with the errors of [`create`](Self::create).
    pub fn in_memory(schema: &Schema) -> Result<Self> {
        Self::new_in(EmbedStore::in_memory()?, schema, &new_parts(schema, "")?)
    }

    fn new_in(mut store: impl Leaves + 'static, schema: &Schema, parts: &[Part]) -> Result<Self> {
        for (key, ending, schunk) in parts {
            store.put(key, ending, schunk)?;
        }
        Self::for_changes(store, "").map(|table| table.with_params_of(schema))
    }

    /// Opens the table in a directory or a zip file for reading and changing. Python: `CTable.open(path, mode="a")`.
    ///
    /// # Errors
    /// - [`ErrorKind::TypeMismatch`]: the directory or zip file is not a table. To open a table in a tree store, use
    ///   [`TreeStore::edit`](crate::TreeStore::edit);
    /// - [`ErrorKind::Unsupported`]: the columns are references to arrays elsewhere;
    /// - the errors of [`open`](Self::open) and of [`TreeStore::open_rw`](crate::TreeStore::open_rw).
    pub fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_rw_with_limits(path, Limits::default(), None)
    }

    /// Opens the table in a directory or a zip file for reading and changing, with the limits of
    /// [`TreeStore::open_with_limits`].
    ///
    /// # Errors
    /// Fails with the errors of [`open_rw`](Self::open_rw).
    pub fn open_rw_with_limits(
        path: impl AsRef<Path>,
        limits: Limits,
        max_read: Option<u64>,
    ) -> Result<Self> {
        let path = path.as_ref();
        let store = TreeStore::open_rw_with_limits(path, limits, max_read)?;
        if !Self::is_in(&store, "")? {
            return Err(Error::new(ErrorKind::TypeMismatch, OPEN, "it is not a table").at(path));
        }
        Self::for_changes(store, "")
    }

    pub(crate) fn for_changes(leaves: impl Leaves + 'static, root: &str) -> Result<Self> {
        let table = Self::with_parts(leaves, root, true)?;
        if table.others.get("source_bindings_version").is_some() {
            let detail = "its columns are references to arrays elsewhere, which are not changed";
            return Err(Error::new(ErrorKind::Unsupported, OPEN, detail));
        }
        Ok(table)
    }

    /// Keeps the compression parameters of a new table, for which its columns are opened again.
    pub(crate) fn with_params_of(mut self, schema: &Schema) -> Self {
        for (column, (_, given)) in self.columns.iter_mut().zip(schema.columns()) {
            column.cparams.clone_from(&given.cparams);
        }
        self
    }

    /// Returns whether the table can be changed. This is the case if the table was created, was opened for changing, or
    /// was opened from a contiguous frame in memory.
    pub fn is_writable(&self) -> bool {
        self.parts.writable
    }

    /// Sets the number of threads that compress and decompress the columns, those that are already open and others. Default:
    /// 1, except that a new table compresses a column with the number of threads of its
    /// [parameters](ItemType::cparams). Files do not store the number. `threads` is a number or a [`Threads`] value; see
    /// [`CParams::threads`](blosc2::CParams::threads).
    ///
    /// Appended rows of at least 1 MiB are written to several columns at the same time. With several threads, the order of
    /// the blocks in a chunk can differ from one run to the next.
    ///
    /// ```
    /// use blosc2::Threads;
    /// use blosc2_store::{CTable, Data, ItemKind, Schema};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("numbers.b2d");
    /// # CTable::create(&path, &Schema::new().column("n", ItemKind::Int64))?.finish()?;
    /// let mut table = CTable::open_rw(&path)?;
    /// table.set_threads(Threads::auto())?;
    /// table.append([("n", Data::items(&(0..100_000).collect::<Vec<i64>>()))])?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: this build does not have the codec or a filter of a column. The number may then be set
    /// for some columns only.
    pub fn set_threads(&mut self, threads: impl Into<Threads>) -> Result<()> {
        let threads = threads.into();
        self.parts.threads = Some(threads);
        let opened = self.columns.iter_mut().filter_map(|column| column.stored.get_mut());
        for stored in opened {
            stored.set_threads(threads)?;
        }
        Ok(())
    }

    /// Returns the table as a contiguous frame, with all rows, including deleted rows. Python: `to_cframe`.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: the table was opened for reading;
    /// - the errors of [`finish`](Self::finish) and of [opening a container](crate#opening-a-container).
    pub fn to_cframe(&mut self) -> Result<Vec<u8>> {
        self.finish()?;
        let mut store = EmbedStore::in_memory()?;
        store.insert("/_meta", &meta(&self.schema_text())?)?;
        store.insert("/_valid_rows", self.live.marks().schunk())?;
        if let Some(attributes) = self.parts.get("/_vlmeta", "b2f")? {
            store.insert("/_vlmeta", &attributes)?;
        }
        for index in 0..self.stored_len() {
            self.open_column(index)?;
            let column = &self.columns[index];
            for (end, _, schunk) in column.stored.get().into_iter().flat_map(|it| it.parts()) {
                store.insert(&format!("{}{end}", column.key), schunk)?;
            }
        }
        store.into_schunk().into_cframe()
    }

    /// Appends rows. `columns` contains the name of each column and its new cells as [`Data`]. Python: `extend`.
    ///
    /// A column without data gets its default value, or null. If Python has computed a stored column from other
    /// columns, this column becomes [stale](Column::is_stale): its new cells are zeros, empty, or null.
    ///
    /// The new rows become valid in one atomic step, after all columns were written. If the call fails or the program
    /// dies before this step, the table has the same rows as before.
    ///
    /// If the program died, the next change by this crate removes the remains of the call. Python does not remove the
    /// remains: if the table has columns in batches (`VlString`, `VlBytes`, `List`, `Struct` and `Object`), call
    /// [`open_rw`](Self::open_rw) and [`finish`](Self::finish) before you append with Python.
    ///
    /// Each call recompresses the last chunk of each column. For many appends, use a
    /// [`TableAppender`](crate::TableAppender), which compresses each chunk only once. Like [`update`](Self::update), a
    /// call marks all search indexes of the table as out of date. [`finish`](Self::finish) writes the
    /// [summaries](Self::summary) again.
    ///
    /// ```
    /// use blosc2_store::{CTable, ItemKind, ItemType, Data, Schema};
    ///
    /// let count = ItemType::from(ItemKind::Int32).with("ge", 0).with("default", 1);
    /// let schema = Schema::new().column("name", ItemKind::Utf8).column("count", count);
    /// let mut table = CTable::in_memory(&schema)?;
    /// table.append([("count", Data::items(&[3, 5])), ("name", Data::texts([Some("tea"), Some("rice")]))])?;
    /// table.append([("name", Data::texts([Some("salt")]))])?;
    /// assert_eq!(table.read::<i32>("count", ..)?, [3, 5, 1]);
    /// assert!(table.append([("name", Data::texts([Some("salt")])), ("count", Data::items(&[-1]))]).is_err());
    /// assert_eq!(table.nrows(), 3);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`], in one of these cases:
    ///   - the columns have different numbers of rows, or a column occurs twice;
    ///   - there are no data for a column that has no default and is not nullable;
    ///   - a value violates an option of its column (`ge`, `gt`, `le`, `lt`, `min_length`), is too long, or is out of
    ///     range;
    ///   - a cell is null, but its column is not nullable;
    /// - [`ErrorKind::TooLarge`], in one of these cases:
    ///   - the cells of a column, including null rows and defaults, take more than 1 GiB of memory and more than 256 times
    ///     the memory of the given cells;
    ///   - the default limits would not allow to read the cells: a string of a `Utf8` column would have more than 1 GiB;
    ///     or a cell of a column in batches, or all strings of a dictionary, would need more than 1 GiB of memory and more
    ///     than 256 times the stored bytes;
    ///   - the rows would have more than 2<sup>20</sup> chunks, because the [expected number of
    ///     rows](Schema::expected_rows) was far too small;
    /// - [`ErrorKind::NotFound`]: the table has no stored column with this name;
    /// - [`ErrorKind::TypeMismatch`]: the dtype of items or the type of values does not match the column;
    /// - [`ErrorKind::Unsupported`]: a column has an unknown kind, or is serialized with Arrow;
    /// - [`ErrorKind::InvalidData`]: a column is missing or damaged;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn append<'a, N: AsRef<str>>(
        &mut self,
        columns: impl IntoIterator<Item = (N, Data<'a>)>,
    ) -> Result<()> {
        match self.new_rows(columns, false)? {
            Some((rows, stale)) => self.append_encoded(&rows.iter().collect::<Vec<_>>(), &stale),
            None => Ok(()),
        }
    }

    /// Checks and converts the cells of new rows, for all stored columns. If the rows are stored `later`, strings of
    /// dictionaries have no codes yet. Returns the rows and the names of the columns that become stale; `None` if there
    /// are no rows.
    pub(super) fn new_rows<'a, N: AsRef<str>>(
        &self,
        columns: impl IntoIterator<Item = (N, Data<'a>)>,
        later: bool,
    ) -> Result<Option<(Vec<Encoded<'a>>, Vec<String>)>> {
        self.check_writable()?;
        let invalid = |detail: String| Err(Error::new(ErrorKind::InvalidArgument, WRITE, detail));
        let mut given: HashMap<usize, Data<'a>> = HashMap::new();
        for (name, data) in columns {
            let index = self.stored_index(name.as_ref())?;
            if given.insert(index, data).is_some() {
                return invalid(format!("the column `{}` is given twice", name.as_ref()));
            }
        }
        let mut encoded: Vec<Option<Encoded<'a>>> = Vec::new();
        let mut rows = None;
        for index in 0..self.stored_len() {
            let Some(data) = given.remove(&index) else {
                encoded.push(None);
                continue;
            };
            let ready = self.encode(index, data, later)?;
            let (first, expected) = *rows.get_or_insert((index, ready.rows));
            if ready.rows != expected {
                let [first, name] = [first, index].map(|index| self.columns[index].name());
                let found = ready.rows;
                return invalid(format!(
                    "the column `{name}` has {found} rows, but `{first}` has {expected}"
                ));
            }
            encoded.push(Some(ready));
        }
        let Some((_, rows)) = rows.filter(|(_, rows)| *rows > 0) else { return Ok(None) };
        let given = encoded.iter().flatten().map(Encoded::nbytes).sum();
        let mut stale = Vec::new();
        let mut ready = Vec::new();
        for (index, encoded) in encoded.into_iter().enumerate() {
            ready.push(match encoded {
                Some(encoded) => encoded,
                None if self.is_materialized(self.columns[index].name()) => {
                    stale.push(self.columns[index].name().to_owned());
                    self.filler(index, rows, given)?
                }
                None => {
                    self.encode(index, default_of(&self.columns[index], rows, given)?, later)?
                }
            });
        }
        Ok(Some((ready, stale)))
    }

    /// Appends rows of [`new_rows`](Self::new_rows) that were to be stored later.
    pub(super) fn append_collected(
        &mut self,
        rows: &[Encoded<'_>],
        stale: &[String],
    ) -> Result<()> {
        let coded = rows.iter().enumerate().map(|(index, rows)| {
            let is_dictionary = matches!(self.columns[index].kind(), ItemKind::Dictionary { .. });
            let (true, Cells::Texts(texts)) = (is_dictionary, &rows.cells) else {
                return Ok(None);
            };
            let nulls = rows.nulls.as_deref().map(Cow::Borrowed);
            self.encode(index, Data { cells: Cells::Texts(texts.borrowed()), nulls }, false)
                .map(Some)
        });
        let coded = coded.collect::<Result<Vec<_>>>()?;
        let rows = rows.iter().zip(&coded).map(|(rows, coded)| coded.as_ref().unwrap_or(rows));
        self.append_encoded(&rows.collect::<Vec<_>>(), stale)
    }

    /// Whether a string in `rows` more rows can get the code that stands for null in its column.
    pub(super) fn may_meet_null_code(&self, rows: u64) -> Result<bool> {
        for column in &self.columns[..self.stored_len()] {
            let (Nulls::Code(null), Some(stored)) = (&column.nulls, column.stored.get()) else {
                continue;
            };
            let known = stored.words()?.map_or(0, |words| words.len() as u64);
            if u64::try_from(*null).is_ok_and(|null| null < known + rows)
                || i32::try_from(*null).is_err()
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The number of rows after the last one that fill the chunk in which the row `min` rows later is.
    pub(super) fn rows_to_full_chunk(&self, min: u64) -> Result<u64> {
        let end = self.live.end()?;
        let chunk = self.live.marks().chunk_shape()[0].max(1);
        let goal = end.saturating_add(min).checked_next_multiple_of(chunk);
        Ok(goal.unwrap_or(u64::MAX) - end)
    }

    fn append_encoded(&mut self, rows: &[&Encoded<'_>], stale: &[String]) -> Result<()> {
        let start = self.live.end()?;
        let count = rows.first().map_or(0, |first| first.rows) as u64;
        for index in 0..rows.len() {
            self.stored_mut(index)?.check_rows(start)?;
        }
        let capacity = self.capacity_for(start + count)?;
        self.begin(EPOCH, stale)?;
        self.summaries.kept.retain(|name, kept| {
            let column = self.columns.iter().find(|column| column.name() == name);
            let array =
                column.and_then(|column| column.stored.get()).and_then(|stored| stored.items());
            // A summary that grows too large is not kept, and stays stale.
            let fits = array.is_none_or(|array| kept.resize(array, capacity).is_ok());
            kept.forget_range(start..start + count);
            fits
        });
        let written = self.append_cells(rows, start, capacity);
        if let Err(error) = written {
            for index in 0..rows.len() {
                // Remains do not matter to readers.
                let _ = self.stored_mut(index).and_then(|stored| stored.truncate(start));
            }
            return Err(error);
        }
        // Last: rows that the mask has exist in each column.
        self.live.add(start..start + count, capacity)
    }

    /// Writes the cells of rows that the mask does not have yet. The columns are open.
    fn append_cells(&mut self, rows: &[&Encoded<'_>], start: u64, capacity: u64) -> Result<()> {
        let is_in_place = |encoded: &Encoded<'_>| {
            matches!(encoded.cells, Cells::Items { .. } | Cells::Codes { .. })
        };
        let all_in_place = rows.iter().all(|encoded| is_in_place(encoded));
        for in_place in [true, false] {
            if !in_place && !all_in_place && self.live.len() == self.live.capacity() {
                // If all rows of the mask are live, Python reads complete columns. So that it does not read strings of
                // rows that are not live yet, the mask gets dead rows, for which the other columns have room.
                self.live.resize(capacity)?;
            }
            for (index, encoded) in rows.iter().enumerate() {
                if is_in_place(encoded) == in_place && encoded.nulls.is_some() {
                    self.add_mask(index)?;
                }
            }
            let columns = self.columns.iter_mut().zip(rows);
            let columns = columns.filter(|(_, encoded)| is_in_place(encoded) == in_place);
            let columns: Vec<_> = columns.collect();
            let mut threads = self.parts.threads.unwrap_or_default();
            let nbytes = |(_, encoded): &(_, &&Encoded<'_>)| encoded.nbytes();
            if threads.count() > 1 && columns.iter().map(nbytes).sum::<u64>() < MIN_BYTES {
                threads = Threads::ONE;
            }
            threads.for_each(columns, |(column, encoded)| {
                let batch_rows = column.batch_rows();
                let stored = column.stored.get_mut().expect("the caller has opened all columns");
                stored.append(start, encoded, batch_rows, capacity)
            })?;
        }
        for (column, encoded) in self.columns.iter().zip(rows) {
            if let (Some(kept), Cells::Items { bytes, .. }) =
                (self.summaries.kept.get_mut(column.name()), &encoded.cells)
            {
                kept.add(column, start, bytes, encoded.nulls.as_deref());
            }
        }
        Ok(())
    }

    /// Replaces the cells of a column in the selected rows. If a row index occurs more than once, its last cell is
    /// stored. Python: `table[name][rows] = data`.
    ///
    /// As in Python, the call marks all search indexes of the table (created by `create_index` in Python) as out of
    /// date. [`finish`](Self::finish) writes the [summaries](Self::summary) again. Columns that Python has computed from
    /// the changed column become [stale](Column::is_stale).
    ///
    /// Each chunk or batch with a changed cell is recompressed, and stays in memory until the call ends. In a `Utf8`
    /// column, all strings after the first changed string are rewritten. If the program dies during the call, the
    /// strings of a `Utf8` column of a table in a directory can be damaged.
    ///
    /// # Errors
    /// If `data` is invalid, nothing is changed.
    ///
    /// - [`ErrorKind::OutOfBounds`]: a row does not exist; or the length of a mask is not the number of rows of the
    ///   table;
    /// - [`ErrorKind::InvalidArgument`]: the number of cells in `data` is not the number of selected rows;
    /// - the errors of [`append`](Self::append) for the cells of one column.
    pub fn update(&mut self, name: &str, rows: impl Into<Rows>, data: Data<'_>) -> Result<()> {
        self.check_writable()?;
        let index = self.stored_index(name)?;
        let picked = rows.into().resolve(self.nrows()).doing(WRITE)?;
        let mut encoded = self.encode(index, data, false)?;
        if encoded.rows as u64 != picked.len() {
            let (found, expected) = (encoded.rows, picked.len());
            let detail = format!("there are data for {found} rows, expected {expected}");
            return Err(Error::new(ErrorKind::InvalidArgument, WRITE, detail));
        }
        if let Picked::At(rows) = &picked
            && !rows.is_sorted_by(|one, next| one < next)
        {
            let mut order: Vec<usize> = (0..rows.len()).collect();
            order.sort_by_key(|&at| rows[at]);
            let last = |place: &usize| {
                order.get(place + 1).map(|&next| rows[next]) != Some(rows[order[*place]])
            };
            let order: Vec<usize> = (0..order.len()).filter(last).map(|at| order[at]).collect();
            encoded = encoded.pick(&order)?;
            let rows = order.iter().map(|&at| rows[at]).collect();
            return self.replace(index, &Picked::At(rows), &encoded);
        }
        self.replace(index, &picked, &encoded)
    }

    fn replace(&mut self, index: usize, rows: &Picked, encoded: &Encoded<'_>) -> Result<()> {
        let places = self.places_of(rows)?;
        self.stored_mut(index)?.check_rows(places.last().map_or(0, |last| last + 1))?;
        let stale = self.computed_from(self.columns[index].name());
        self.begin(EPOCH, &stale)?;
        if let Some(kept) = self.summaries.kept.get_mut(self.columns[index].name()) {
            kept.forget(places.iter().copied());
        }
        if encoded.nulls.is_some() {
            self.add_mask(index)?;
        }
        self.stored_mut(index)?.replace(&places, encoded)
    }

    /// Deletes rows. Returns the number of deleted rows. Python: `delete`.
    ///
    /// The rows are marked as deleted in one atomic step. Their cells stay in the columns until you call
    /// [`compact`](Self::compact).
    ///
    /// # Errors
    /// - [`ErrorKind::OutOfBounds`]: a row does not exist; or the length of a mask is not the number of rows of the
    ///   table;
    /// - [`ErrorKind::TooLarge`]: the default limits would not allow to count the rows when the table is opened: chunks
    ///   with more than 2<sup>30</sup> rows, and more rows than 256 times the stored bytes of the mask of valid rows, would
    ///   have deleted rows. [`compact`](Self::compact) removes deleted rows;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn delete_rows(&mut self, rows: impl Into<Rows>) -> Result<u64> {
        self.check_writable()?;
        let mut picked = rows.into().resolve(self.nrows()).doing(WRITE)?;
        if let Picked::At(rows) = &mut picked {
            rows.sort_unstable();
            rows.dedup();
        }
        if picked.len() == 0 {
            return Ok(0);
        }
        let places = self.places_of(&picked)?;
        let before = self.live.end()?;
        for index in 0..self.stored_len() {
            self.stored_mut(index)?.check_rows(before)?;
        }
        self.begin(VISIBILITY, &[])?;
        self.live.remove(&places)?;
        let end = self.live.end()?;
        if end < before {
            // Python appends to columns in batches at their end, and to others after the last valid row.
            for index in 0..self.stored_len() {
                // The rows are deleted already. What remains of them is removed by the next change.
                let _ = self.stored_mut(index)?.truncate(end);
            }
        }
        Ok(places.len() as u64)
    }

    /// Removes the deleted rows from the columns: moves the valid rows to the front of each column, and frees the space
    /// after them. Python's `compact` does not free the space. Like [`update`](Self::update), the call marks all search
    /// indexes of the table as out of date.
    ///
    /// This method is not atomic for a table in a directory. All rows are read before the first column is changed. If
    /// the program dies after that, or a file cannot be written, only some columns may be compacted, so that the rows
    /// of different columns no longer match. To avoid this, append the rows to a new table, or use a zip file.
    ///
    /// Each column is read twice. The memory that this method needs depends on the storage of a column:
    /// - fixed-size items are moved in parts of about 16 MiB;
    /// - lists with the option `storage` set to `vl` are moved without decompression, because each row is a chunk;
    /// - all valid cells of any other column are in memory at the same time.
    ///
    /// # Errors
    /// - [`ErrorKind::TooLarge`]: the valid cells of a column that are in memory at the same time take more than 1 GiB and
    ///   more than 256 times the stored bytes;
    /// - the errors of [`values`](Self::values) and of [changing a container](crate#changing-a-container).
    pub fn compact(&mut self) -> Result<()> {
        self.check_writable()?;
        let end = self.live.end()?;
        if end != self.nrows() {
            // A column that cannot be read is an error before any column is changed.
            for index in 0..self.stored_len() {
                self.stored_mut(index)?.check_rows(end)?;
                let column = &self.columns[index];
                if let Some(stored) = column.stored.get() {
                    stored.check_content(column, &self.live)?;
                }
            }
            self.begin(EPOCH, &[])?;
            for index in 0..self.stored_len() {
                self.summarize_again(index);
            }
            for index in 0..self.stored_len() {
                let batch_rows = self.columns[index].batch_rows();
                if let Some(stored) = self.columns[index].stored.get_mut() {
                    stored.compact(&self.live, batch_rows)?;
                }
            }
            self.live.compact()?;
        }
        self.trim()
    }

    /// Adds a column after the other stored columns. `data` contains the cells of the valid rows. Without `data`, the
    /// cells get the default of the column, or null. Python: `add_column`.
    ///
    /// # Errors
    /// - [`ErrorKind::AlreadyExists`]: there is a column with this name;
    /// - [`ErrorKind::InvalidArgument`]: the name or an option is invalid; or the number of cells in `data` is not the
    ///   number of valid rows;
    /// - the errors of [`append`](Self::append) for the cells of one column.
    pub fn add_column(
        &mut self,
        name: &str,
        column: impl Into<ItemType>,
        data: Option<Data<'_>>,
    ) -> Result<()> {
        self.check_writable()?;
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, WRITE, detail);
        let column = new_column(&self.parts.root, name, &column.into()).map_err(invalid)?;
        self.check_new(name)?;
        let columns = self.columns[..self.stored_len()].iter().chain([&column]);
        check_names(columns.clone()).map_err(invalid)?;
        self.check_schema(columns)?;
        let live = self.nrows();
        let rows = usize::try_from(live).unwrap_or(usize::MAX);
        let words = Some(&[][..]);
        let encoded = match data {
            Some(data) => encode(&column, data, words)?,
            None if rows == 0 => encode(&column, Data::values(Vec::new()), words)?,
            None => {
                let one = encode(&column, default_of(&column, 1, 0)?, words)?;
                self.check_memory(live, one.nbytes() + size_of::<usize>() as u64)?;
                one.pick(&vec![0; rows])?
            }
        };
        if encoded.rows != rows {
            let found = encoded.rows;
            return Err(invalid(format!("there are data for {found} rows, expected {rows}")));
        }
        let capacity = self.live.capacity();
        let grid = Grid::like(self.live.marks());
        for (key, ending, schunk) in parts(&column, grid, capacity)? {
            self.parts.put(&key, ending, &schunk)?;
        }
        if column.nulls == Nulls::Mask {
            // Left by a column of this name, or never there.
            self.parts.remove(&format!("{}.notnull", column.key), "b2nd")?;
        }
        let place = self.stored_len();
        self.columns.insert(place, column);
        let filled = self.fill_column(place, &encoded);
        if let Err(error) = filled.and_then(|()| self.write_schema()) {
            self.columns.remove(place);
            return Err(error);
        }
        self.number_columns();
        self.summarize_again(place);
        Ok(())
    }

    /// Checks the memory for cells of a new column: a few stored bytes can represent very many rows.
    fn check_memory(&self, rows: u64, per_row: u64) -> Result<()> {
        self.live.budget().check(rows.saturating_mul(per_row)).map_err(|_| {
            let detail =
                format!("{per_row} bytes of memory for each of {rows} rows of a new column");
            Error::new(ErrorKind::TooLarge, WRITE, detail)
        })
    }

    /// Writes the cells of the live rows of a new column.
    fn fill_column(&mut self, index: usize, encoded: &Encoded<'_>) -> Result<()> {
        let places = self.places_of(&Picked::Range(0..self.nrows()))?;
        let (end, capacity) = (self.live.end()?, self.live.capacity());
        if encoded.nulls.is_some() {
            self.add_mask(index)?;
        }
        let batch_rows = self.columns[index].batch_rows();
        let whole = places.len() as u64 == end;
        let filler = match self.columns[index].kind().has_items() || whole {
            true => None,
            false => {
                self.check_memory(end, size_of::<Value>() as u64)?;
                Some(self.filler(index, end as usize, end)?)
            }
        };
        let stored = self.stored_mut(index)?;
        match filler {
            Some(filler) => {
                stored.append(0, &filler, batch_rows, capacity)?;
                stored.replace(&places, encoded)
            }
            None if whole => stored.append(0, encoded, batch_rows, capacity),
            None => stored.replace(&places, encoded),
        }
    }

    /// Renames a column. Python: `rename_column`.
    ///
    /// If the column has a search index, the index is removed. Python's `create_index` can create an index for the new
    /// name. [`finish`](Self::finish) writes the [summary](Self::summary) of the column again.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: the table has no stored column with this name;
    /// - [`ErrorKind::AlreadyExists`]: there is a column with the new name;
    /// - [`ErrorKind::InvalidArgument`]: the new name is invalid; or other columns are computed from this column;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn rename_column(&mut self, name: &str, new_name: &str) -> Result<()> {
        self.check_writable()?;
        let index = self.stored_index(name)?;
        self.check_free_of_others(name)?;
        let invalid = |detail: String| Error::new(ErrorKind::InvalidArgument, WRITE, detail);
        // The name is checked as that of any column.
        new_column(&self.parts.root, new_name, &ItemKind::Int8.into()).map_err(invalid)?;
        self.check_new(new_name)?;
        self.open_column(index)?;
        let old = &self.columns[index];
        let mut entry = old.entry.clone();
        set(&mut entry, "name", new_name.into());
        let mut renamed = Column::new(new_name.to_owned(), old.spec.clone(), entry);
        renamed.stale = old.stale;
        renamed.cparams.clone_from(&old.cparams);
        let others = self.columns[..self.stored_len()].iter().enumerate();
        let others = others.filter(|(at, _)| *at != index).map(|(_, column)| column);
        let columns = others.chain([&renamed]);
        check_names(columns.clone()).map_err(invalid)?;
        self.check_schema(columns)?;
        for (end, ending, schunk) in old.stored.get().into_iter().flat_map(|it| it.parts()) {
            self.parts.put(&format!("{}{end}", renamed.key), ending, schunk)?;
        }
        self.exchange(index, Some(renamed))?;
        self.summarize_again(index);
        Ok(())
    }

    /// Removes a column. Python: `drop_column`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: the table has no stored column with this name;
    /// - [`ErrorKind::InvalidArgument`]: the table has only this column; or other columns are computed from this
    ///   column;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn drop_column(&mut self, name: &str) -> Result<()> {
        self.check_writable()?;
        let index = self.stored_index(name)?;
        if self.stored_len() == 1 {
            let detail = format!("`{name}` is the only column, and a table has at least one");
            return Err(Error::new(ErrorKind::InvalidArgument, WRITE, detail));
        }
        self.check_free_of_others(name)?;
        self.open_column(index)?;
        self.exchange(index, None)
    }

    /// Stores the schema with a column under a new name, or without it, and then removes the parts of the old column. If
    /// the schema is not stored, nothing changes.
    fn exchange(&mut self, index: usize, renamed: Option<Column>) -> Result<()> {
        let new_name = renamed.as_ref().map(|column| column.name.clone());
        let is_replaced = renamed.is_some();
        let mut old = self.columns.remove(index);
        if let Some(renamed) = renamed {
            self.columns.insert(index, renamed);
        }
        let others = self.others.clone();
        if let Some(entries) = materialized(&mut self.others) {
            entries.retain_mut(|entry| {
                if name_of(entry) != Some(&old.name) {
                    return true;
                }
                if let Some(name) = &new_name {
                    set(entry, "name", name.as_str().into());
                }
                is_replaced
            });
        }
        if let Err(error) = self.remove_index(&old.name).and_then(|()| self.write_schema()) {
            if is_replaced {
                self.columns.remove(index);
            }
            self.columns.insert(index, old);
            self.others = others;
            return Err(error);
        }
        self.number_columns();
        self.summaries.kept.remove(&old.name);
        let stored = old.stored.take();
        let parts = stored.iter().flat_map(|stored| stored.parts());
        let files: Vec<_> = parts.map(|(end, ending, _)| (end, ending)).collect();
        // Open files are not removed.
        drop(stored);
        files
            .iter()
            .try_for_each(|(end, ending)| self.parts.remove(&format!("{}{end}", old.key), ending))
    }

    /// Sets a user attribute of the table. Python: `table.vlmeta[name] = value`.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `name` is reserved, empty or longer than 31 bytes; or the table already has 16
    ///   other attributes;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn set_attribute<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<()> {
        self.change_attributes(|schunk| schunk.vlmeta_mut().set_value(name, value))
    }

    /// Removes a user attribute of the table. Returns whether the attribute existed.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `name` is reserved;
    /// - the errors of [changing a container](crate#changing-a-container).
    pub fn remove_attribute(&mut self, name: &str) -> Result<bool> {
        self.change_attributes(|schunk| schunk.vlmeta_mut().remove(name))
    }

    fn change_attributes<R>(&mut self, change: impl FnOnce(&mut SChunk) -> Result<R>) -> Result<R> {
        self.check_writable()?;
        // A copy, so that a failed change leaves the file as it was.
        let mut schunk = copy_or_new(self.parts.get("/_vlmeta", "b2f")?.as_ref())?;
        let changed = change(&mut schunk)?;
        self.changed = true;
        self.parts.put("/_vlmeta", "b2f", &schunk)?;
        Ok(changed)
    }

    /// Frees unused space after the last row, stores the number of rows, syncs the table to disk, and writes a zip
    /// file. Afterwards, the table can be changed and finished again. Python: `close`.
    ///
    /// - A table in a directory: each change is already stored when its call returns. Without `finish`, the files are
    ///   larger, and Python must count the rows when it opens the table.
    /// - A table in a zip file: only `finish` writes the zip file.
    /// - A table in a tree store in a zip file: drop the table, and then call
    ///   [`TreeStore::finish`](crate::TreeStore::finish), which writes the zip file.
    ///
    /// If the table was changed, `finish` also writes the [summaries](Self::summary) of its columns, as Python does:
    /// - for new columns, for all columns after [`compact`](Self::compact), and once for a table that never had summaries:
    ///   `finish` reads these columns, except the blocks that were appended by this handle;
    /// - for columns whose summaries described the items before the first change: `finish` reads the changed blocks that
    ///   were not appended as a whole.
    ///
    /// A summary that was already stale when this handle made its first change stays stale until
    /// [`rebuild_summary`](Self::rebuild_summary) or `compact` is called. No summary is written for a table in memory, a
    /// table without rows, a table that Python created with `create_summary_index=False`, a column with an index of
    /// another kind, a damaged column, a column whose name contains a backslash, and a column whose summary would be
    /// larger than 1 MiB and larger than the compressed column.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: the table was opened for reading;
    /// - the errors of [changing a container](crate#changing-a-container) and of
    ///   [`TreeStore::finish`](crate::TreeStore::finish).
    pub fn finish(&mut self) -> Result<()> {
        self.check_writable()?;
        self.load_summaries();
        self.trim()?;
        // First, so that no index describes items that are not on disk.
        for column in &mut self.columns {
            column.stored.get_mut().map_or(Ok(()), |stored| stored.sync())?;
        }
        self.live.sync()?;
        let catalog = if self.changed { self.store_summaries()? } else { None };
        let old = self.others.clone();
        let mut rewritten = false;
        if catalog.is_some() {
            rewritten |= set(&mut self.others, SUMMARIZED, true.into());
        }
        let nrows = self.nrows();
        rewritten |= set(&mut self.others, NROWS, nrows.into());
        let text = rewritten.then(|| self.schema_text());
        if text.is_some() || catalog.is_some() {
            self.changed = true;
            let written = self.schema.meta.transaction(|meta| {
                if let Some(catalog) = &catalog {
                    meta.vlmeta_mut().set_value(INDEXES, catalog)?;
                }
                match &text {
                    Some(text) => meta.vlmeta_mut().set_value("schema", text),
                    None => Ok(()),
                }
            });
            if let Err(error) = written {
                self.others = old;
                return Err(error);
            }
        }
        self.schema.meta.sync()?;
        if self.changed && self.parts.root.is_empty() {
            self.parts.leaves.finish()?;
        }
        self.changed = false;
        Ok(())
    }

    /// Marks the [summary](Self::summary) of a column to be rebuilt by [`finish`](Self::finish), even if the stored one is
    /// stale. `finish` reads the column. Python: `rebuild_index`.
    ///
    /// A summary stays stale if a program changed the table and did not call `finish`, and if Python appended rows to the
    /// table.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: the table was opened for reading;
    /// - [`ErrorKind::NotFound`]: the table has no stored column with this name;
    /// - [`ErrorKind::Unsupported`]: the column can have no summary, see [`finish`](Self::finish).
    pub fn rebuild_summary(&mut self, name: &str) -> Result<()> {
        self.check_writable()?;
        let index = self.stored_index(name)?;
        self.load_summaries();
        if !self.summarize_again(index) {
            let detail = format!("the column `{name}` can have no summary");
            return Err(Error::new(ErrorKind::Unsupported, WRITE, detail));
        }
        self.changed = true;
        Ok(())
    }

    /// Whether the table stores summaries of its columns.
    fn has_summaries(&self) -> bool {
        self.parts.leaves.has_indexes() && self.others.get(SUMMARIES) != Some(&Value::Bool(false))
    }

    /// Reads the stored summaries before a change makes them stale. As in Python, a table gets its summaries once, and
    /// stale ones stay stale: they would require reading the columns.
    fn load_summaries(&mut self) {
        if self.summaries.loaded || !self.has_summaries() {
            return;
        }
        self.summaries.loaded = true;
        let is_first = self.others.get(SUMMARIZED) != Some(&Value::Bool(true));
        let catalog = self.schema.meta.vlmeta().value(INDEXES).ok().flatten();
        for index in 0..self.stored_len() {
            // A damaged column does not prevent changes of others.
            let opened = self.open_column(index);
            let column = &self.columns[index];
            let stored = column.stored.get().filter(|_| opened.is_ok());
            let Some(array) = stored.and_then(|stored| stored.items()) else { continue };
            let has_index = catalog.as_ref().is_some_and(|all| all.get(column.name()).is_some());
            let kept = Kept::read(&self.parts, &self.schema.meta, column, array)
                .or_else(|| Kept::new(column, array).filter(|_| is_first && !has_index));
            if let Some(kept) = kept {
                self.summaries.kept.entry(column.name().to_owned()).or_insert(kept);
            }
        }
    }

    /// Lets `finish` summarize all items of a column. Returns whether the column can have a summary.
    fn summarize_again(&mut self, index: usize) -> bool {
        // A column that cannot be opened gets none.
        let _ = self.open_column(index);
        let column = &self.columns[index];
        let array = column.stored.get().and_then(|stored| stored.items());
        let kept = array.and_then(|array| Kept::new(column, array));
        match kept.filter(|_| self.has_summaries()) {
            Some(kept) => {
                self.summaries.kept.insert(column.name().to_owned(), kept);
                true
            }
            None => false,
        }
    }

    /// Stores the summaries of the present items. Returns the new catalog of indexes; `None` if the old one is right.
    fn store_summaries(&mut self) -> Result<Option<Value>> {
        // The arrays of a table without rows have unused rows only.
        if self.live.end()? == 0 || self.summaries.kept.is_empty() {
            return Ok(None);
        }
        let vlmeta = self.schema.meta.vlmeta();
        let epoch = vlmeta.value(EPOCH)?.and_then(|epoch| epoch.as_u64()).unwrap_or(0);
        let mut catalog = vlmeta.value(INDEXES)?.filter(|all| matches!(all, Value::Map(_)));
        let mut catalog = catalog.take().unwrap_or(Value::Map(Vec::new()));
        let mut changed = false;
        for column in &self.columns {
            let (Some(kept), Some(stored), false) =
                (self.summaries.kept.get_mut(column.name()), column.stored.get(), column.stale)
            else {
                continue;
            };
            let old = catalog.get(column.name());
            match kept.store(&mut self.parts, column, stored, old, epoch) {
                Ok(Some(entry)) => changed |= set(&mut catalog, column.name(), entry),
                Ok(None) => {}
                Err(error) if error.kind() == ErrorKind::Io => return Err(error),
                // A damaged column does not prevent changes of others. Its index stays stale.
                Err(_) => {
                    self.summaries.kept.remove(column.name());
                }
            }
        }
        Ok(changed.then_some(catalog))
    }

    /// Frees the room after the last live row, and remains of calls during which a program died.
    fn trim(&mut self) -> Result<()> {
        // A part without rows keeps its room, as in Python.
        let end = self.live.end()?;
        let capacity = if end == 0 { self.live.capacity() } else { end };
        let resized = capacity != self.live.capacity();
        self.changed |= resized;
        // The mask first: columns may have more rows than the mask.
        self.live.resize(capacity)?;
        for index in 0..self.stored_len() {
            if matches!(self.columns[index].kind(), ItemKind::Other(_)) {
                continue;
            }
            let was_open = self.columns[index].stored.get().is_some();
            let stored = match self.stored_mut(index) {
                Ok(stored) => stored,
                // A damaged column does not prevent changes of others.
                Err(_) if !was_open && !resized => continue,
                Err(error) => return Err(error),
            };
            match stored.check_rows(end) {
                Ok(()) => {}
                Err(_) if !resized => continue,
                Err(error) => return Err(error),
            }
            stored.truncate(end)?;
            stored.resize(capacity)?;
        }
        Ok(())
    }

    /// The number of rows for which a table of `rows` rows has room.
    fn capacity_for(&self, rows: u64) -> Result<u64> {
        let mut capacity = self.live.capacity();
        while capacity < rows {
            capacity += capacity.clamp(1, MAX_GROWTH);
        }
        check_rows(capacity, self.live.marks().chunk_shape()[0])
            .map_err(|detail| Error::new(ErrorKind::TooLarge, WRITE, detail))?;
        Ok(capacity)
    }

    /// Creates the mask of a column if it has none: all rows are valid.
    fn add_mask(&mut self, index: usize) -> Result<()> {
        if self.stored_mut(index)?.marks.is_some() {
            return Ok(());
        }
        let capacity = self.live.capacity();
        let grid = match &self.stored_mut(index)?.content {
            Content::Items(array) => Grid::like(array),
            _ => Grid::like(self.live.marks()),
        };
        let key = format!("{}.notnull", self.columns[index].key);
        self.parts.put(&key, "b2nd", &grid.marks(capacity, true)?)?;
        let marks = self.parts.get(&key, "b2nd")?.map(NDArray::from_schunk).transpose()?;
        self.stored_mut(index)?.marks = marks;
        Ok(())
    }

    /// Marks in the file what a change makes invalid: the stored number of rows, indexes, and computed columns. `epoch` is
    /// the metalayer that counts such changes.
    fn begin(&mut self, epoch: &str, stale: &[String]) -> Result<()> {
        self.load_summaries();
        self.changed = true;
        let others = self.others.clone();
        let mut rewritten = remove(&mut self.others, NROWS);
        for entry in materialized(&mut self.others).into_iter().flatten() {
            if stale.iter().any(|stale| name_of(entry) == Some(stale)) {
                rewritten |= set(entry, "stale", true.into());
            }
        }
        let text = rewritten.then(|| self.schema_text());
        let noted = self.schema.meta.transaction(|meta| {
            let mut indexes = meta.vlmeta().value(INDEXES)?;
            let mut marked = false;
            if let (EPOCH, Some(Value::Map(entries))) = (epoch, &mut indexes) {
                for (_, entry) in entries {
                    marked |= set(entry, "stale", true.into());
                }
            }
            let has_indexes = matches!(&indexes, Some(Value::Map(entries)) if !entries.is_empty());
            if let (true, Some(indexes)) = (marked, &indexes) {
                meta.vlmeta_mut().set_value(INDEXES, indexes)?;
            }
            if let Some(text) = &text {
                meta.vlmeta_mut().set_value("schema", text)?;
            }
            // Python compares it with the one at which an index was built.
            if has_indexes {
                let old = meta.vlmeta().value(epoch)?.and_then(|epoch| epoch.as_u64());
                meta.vlmeta_mut().set_value(epoch, &old.unwrap_or(0).wrapping_add(1))?;
            }
            Ok(marked)
        });
        let marked = noted.inspect_err(|_| self.others = others)?;
        for column in &mut self.columns {
            column.stale |= stale.contains(&column.name);
        }
        // Before the items change on disk.
        if marked { self.schema.meta.sync() } else { Ok(()) }
    }

    fn schema_text(&self) -> String {
        let entries = self.columns[..self.stored_len()].iter().map(|column| column.entry.clone());
        text_of(entries.collect(), &self.others)
    }

    /// Checks that readers can read the schema of these columns.
    fn check_schema<'a>(&self, columns: impl Iterator<Item = &'a Column>) -> Result<()> {
        let entries = columns.map(|column| column.entry.clone());
        check_schema(entries.collect(), &self.others).doing(WRITE)
    }

    fn write_schema(&mut self) -> Result<()> {
        self.changed = true;
        let text = self.schema_text();
        self.schema.meta.vlmeta_mut().set_value("schema", &text)
    }

    fn remove_index(&mut self, name: &str) -> Result<()> {
        let meta = &mut self.schema.meta;
        let mut indexes = meta.vlmeta().value(INDEXES)?.unwrap_or(Value::None);
        if remove(&mut indexes, name) {
            meta.vlmeta_mut().set_value(INDEXES, &indexes)?;
            let key = format!("/_indexes/{name}");
            self.parts.remove(&key, "b2nd")?;
            self.parts.remove_below(&key)?;
        }
        Ok(())
    }

    fn is_materialized(&self, name: &str) -> bool {
        let entries = self.others.get(MATERIALIZED).and_then(Value::as_list).unwrap_or_default();
        entries.iter().any(|entry| name_of(entry) == Some(name))
    }

    /// The names of all columns that are computed from a column, also indirectly.
    fn computed_from(&self, name: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        let mut next = vec![name.to_owned()];
        while let Some(source) = next.pop() {
            for entry in self.computations().filter(|entry| depends(entry, &source)) {
                if let Some(name) = name_of(entry)
                    && found.insert(name.to_owned())
                {
                    next.push(name.to_owned());
                }
            }
        }
        found.into_iter().collect()
    }

    fn check_free_of_others(&self, name: &str) -> Result<()> {
        let mut entries = self.computations().filter(|entry| depends(entry, name));
        let Some(other) = entries.next().and_then(name_of) else { return Ok(()) };
        let detail = format!("the column `{other}` is computed from `{name}`");
        Err(Error::new(ErrorKind::InvalidArgument, WRITE, detail))
    }

    fn check_new(&self, name: &str) -> Result<()> {
        if self.column(name).is_none() {
            return Ok(());
        }
        let detail = format!("there is already a column `{name}`");
        Err(Error::new(ErrorKind::AlreadyExists, WRITE, detail))
    }

    pub(super) fn check_writable(&self) -> Result<()> {
        if self.is_writable() {
            return Ok(());
        }
        let detail = "the table was opened for reading; `open_rw` opens it for changing";
        Err(Error::new(ErrorKind::ReadOnly, WRITE, detail))
    }

    /// Number of stored columns, which are the first ones.
    fn stored_len(&self) -> usize {
        let is_computed = |column: &Column| matches!(column.kind(), ItemKind::Computed(_));
        self.columns.iter().position(is_computed).unwrap_or(self.columns.len())
    }

    fn stored_index(&self, name: &str) -> Result<usize> {
        let found = self.places.get(name).copied().filter(|at| *at < self.stored_len());
        found.ok_or_else(|| {
            let detail = format!("there is no stored column `{name}`");
            Error::new(ErrorKind::NotFound, WRITE, detail)
        })
    }

    fn open_column(&self, index: usize) -> Result<()> {
        let column = &self.columns[index];
        if let ItemKind::Other(kind) = column.kind() {
            let detail = format!("the column `{}` is of the unknown kind `{kind}`", column.name());
            return Err(Error::new(ErrorKind::Unsupported, WRITE, detail));
        }
        if column.stored.get().is_none() {
            let stored = Box::new(Stored::open(&self.parts, column)?);
            column.stored.get_or_init(|| stored);
        }
        Ok(())
    }

    fn stored_mut(&mut self, index: usize) -> Result<&mut Stored> {
        self.open_column(index)?;
        Ok(self.columns[index].stored.get_mut().expect("the column was opened"))
    }

    /// Converts cells, which may be stored `later`.
    fn encode<'a>(&self, index: usize, data: Data<'a>, later: bool) -> Result<Encoded<'a>> {
        self.open_column(index)?;
        let column = &self.columns[index];
        let stored = column.stored.get();
        if let (Some((dtype, _)), Some(array)) = (column.items(), stored.and_then(|it| it.items()))
        {
            // Reading also accepts other byte orders, and texts of other lengths.
            let is_same = |found: &Dtype| found.is_native() == dtype.is_native();
            if array.typesize() != dtype.size() || !array.dtype().is_some_and(is_same) {
                let found = array.dtype_str().unwrap_or("unknown items");
                let detail = format!(
                    "the column `{}` has items of {found}, which are not changed; expected {dtype}",
                    column.name()
                );
                return Err(error(array.schunk(), ErrorKind::Unsupported, WRITE, detail));
            }
        }
        let words = match stored.filter(|_| !later) {
            Some(stored) => Some(stored.words()?.unwrap_or_default()),
            None => None,
        };
        encode(column, data, words)
    }

    /// Cells for places that are not read, beside `given` bytes of other cells.
    fn filler(&self, index: usize, rows: usize, given: u64) -> Result<Encoded<'static>> {
        let column = &self.columns[index];
        let values = |value: Value| Cells::Values(vec![value; rows].into());
        let cells = match column.kind() {
            ItemKind::Utf8 => {
                Cells::Texts(Texts { offsets: vec![0; rows + 1].into(), ..Texts::default() })
            }
            ItemKind::Dictionary { .. } => {
                Cells::Codes { codes: vec![-1; rows].into(), first: 0, texts: Vec::new().into() }
            }
            ItemKind::VlString if !column.nullable => values("".into()),
            ItemKind::VlBytes if !column.nullable => values(Value::Bytes(Vec::new())),
            ItemKind::List(_) if !column.nullable => values(Value::List(Vec::new())),
            kind if kind.has_batches() => values(Value::None),
            _ => {
                let (dtype, shape) = column.items().unwrap_or((u8::dtype(), &[0]));
                let row = row_size(&dtype, shape);
                let mut bytes =
                    reserve_rows(rows, row, given).map_err(|fault| failed(column, fault))?;
                bytes.resize(rows * row.unwrap_or(0), 0);
                Cells::Items { dtype, bytes: bytes.into() }
            }
        };
        Ok(Encoded { rows, cells, nulls: None })
    }

    /// The places of rows in the columns, in the order of the rows.
    fn places_of(&self, rows: &Picked) -> Result<Vec<u64>> {
        rows.read(1, |rows| self.places(rows))
    }

    fn number_columns(&mut self) {
        self.places = super::places_of(&self.columns);
    }
}

fn depends(entry: &Value, name: &str) -> bool {
    sources(entry).any(|source| source == name)
}

/// The entries of the columns that are computed from others, and stored.
fn materialized(others: &mut Value) -> Option<&mut Vec<Value>> {
    let Value::Map(pairs) = others else { return None };
    match pairs.iter_mut().rfind(|(key, _)| key.as_str() == Some(MATERIALIZED)) {
        Some((_, Value::List(entries))) => Some(entries),
        _ => None,
    }
}

/// Removes an entry of a map. Returns whether there was one.
fn remove(map: &mut Value, name: &str) -> bool {
    let Value::Map(pairs) = map else { return false };
    let before = pairs.len();
    pairs.retain(|(key, _)| key.as_str() != Some(name));
    pairs.len() < before
}

/// Sets an entry of a map. Returns whether it had another value.
fn set(map: &mut Value, name: &str, value: Value) -> bool {
    let Value::Map(pairs) = map else { return false };
    match pairs.iter_mut().rfind(|(key, _)| key.as_str() == Some(name)) {
        Some((_, old)) if *old == value => false,
        Some((_, old)) => {
            *old = value;
            true
        }
        None => {
            pairs.push((name.into(), value));
            true
        }
    }
}
