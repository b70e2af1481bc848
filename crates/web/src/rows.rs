//! Rows of text: tables, and arrays of values, of batches and of lists.

use std::ops::Range;

use blosc2_format::dtype::{Kind, ScalarDecoder};
use blosc2_format::{Dtype, npy};
use blosc2_store::blosc2::{Error, ErrorKind, Result, Value};
use blosc2_store::{BatchArray, CTable, Column, ItemKind, ListArray, Object, ObjectArray};
use serde_json::json;

use crate::date;
use crate::item::{self, Number};
use crate::printable;
use crate::stats::Statistics;

/// The maximum number of characters of a cell.
const MAX_TEXT: usize = 1000;
/// The number of rows that are read at once from a column, and from all columns.
const ROWS: [u64; 2] = [1 << 18, 1 << 11];
/// The maximum number of bytes of an exported file.
const MAX_FILE: usize = 512 << 20;

/// What is shown as rows of text.
#[derive(Debug)]
pub enum Rows {
    /// A table.
    Table(Box<CTable>),
    /// An array of values, each in a chunk.
    Objects(ObjectArray),
    /// An array of values in batches. The rows are the values.
    Batches(BatchArray),
    /// An array of lists.
    Lists(ListArray),
}

impl Rows {
    /// Returns the rows of a container; the container itself if it has none.
    #[expect(clippy::result_large_err, reason = "the container is used instead")]
    pub fn of(object: Object) -> std::result::Result<Self, Object> {
        match object {
            Object::CTable(table) => Ok(Self::Table(Box::new(table))),
            Object::ObjectArray(array) => Ok(Self::Objects(array)),
            Object::BatchArray(array) => Ok(Self::Batches(array)),
            Object::ListArray(array) => Ok(Self::Lists(array)),
            other => Err(other),
        }
    }

    /// Returns the type of the container.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Table(_) => "ctable",
            Self::Objects(_) => "objectarray",
            Self::Batches(_) => "batcharray",
            Self::Lists(_) => "listarray",
        }
    }

    /// Returns the number of rows.
    ///
    /// # Errors
    /// The lengths of the batches cannot be read.
    pub fn count(&self) -> Result<u64> {
        match self {
            Self::Table(table) => Ok(table.nrows()),
            Self::Objects(array) => Ok(array.len() as u64),
            Self::Batches(array) => array.nitems(),
            Self::Lists(array) => Ok(array.len()),
        }
    }

    /// Returns the table, if the rows are those of one.
    pub fn table(&self) -> Option<&CTable> {
        match self {
            Self::Table(table) => Some(table),
            _ => None,
        }
    }

    /// Returns the columns: their names, types, whether they have statistics (`number`), and whether they can be saved as
    /// an array (`items`).
    pub fn columns(&self) -> serde_json::Value {
        let Some(table) = self.table() else {
            return json!([{ "name": "value", "kind": "any", "number": false, "items": false }]);
        };
        let each = |column: &Column| {
            json!({
                "name": printable(column.name()),
                "kind": printable(&column.kind().to_string()),
                "nullable": column.is_nullable(),
                "number": is_number(column.kind()),
                "items": has_items(column.kind()),
            })
        };
        table.columns().iter().map(each).collect()
    }

    /// Returns the texts of rows: a list for each row.
    pub fn cells(&self, rows: Range<u64>) -> Vec<Vec<String>> {
        let texts = |row: u64| -> Result<Value> {
            match self {
                Self::Table(_) => Ok(Value::None),
                Self::Objects(array) => array.get(row as usize),
                Self::Batches(array) => array.item(row),
                Self::Lists(array) => Ok(array.get(row)?.map_or(Value::None, Value::List)),
            }
        };
        let Some(table) = self.table() else {
            let text =
                |row| texts(row).map_or_else(|error| printable(&error.to_string()), notation);
            return rows.map(|row| vec![text(row)]).collect();
        };
        let mut all = vec![Vec::new(); (rows.end - rows.start) as usize];
        for column in table.columns() {
            // A column that cannot be read does not hide the others.
            let values = table.evaluated_values(column.name(), rows.clone());
            let kind = match column.kind() {
                // The values have the kind of its dtype.
                ItemKind::Computed(_) => {
                    let dtype = table.evaluate(column.name(), 0..0).map(|(dtype, _)| dtype);
                    dtype.ok().and_then(|dtype| ItemKind::of_dtype(&dtype))
                }
                _ => None,
            };
            let kind = kind.as_ref().unwrap_or(column.kind());
            for (k, row) in all.iter_mut().enumerate() {
                row.push(match &values {
                    Ok(values) => values.get(k).map_or_else(String::new, |value| text(kind, value)),
                    Err(error) => printable(&error.to_string()),
                });
            }
        }
        all
    }
}

fn is_number(kind: &ItemKind) -> bool {
    use ItemKind::*;
    matches!(
        kind,
        Int8 | Int16
            | Int32
            | Int64
            | UInt8
            | UInt16
            | UInt32
            | UInt64
            | Float32
            | Float64
            | Complex64
            | Complex128
            | Bool
            | Timestamp { .. }
    )
}

fn has_items(kind: &ItemKind) -> bool {
    let others = |kind: &ItemKind| {
        matches!(kind, ItemKind::String { .. } | ItemKind::Bytes { .. } | ItemKind::NDArray { .. })
    };
    is_number(kind) || others(kind)
}

/// The text of a value in the notation of Python, shortened.
fn notation(value: impl std::borrow::Borrow<Value>) -> String {
    let text = value.borrow().to_string();
    match text.char_indices().nth(MAX_TEXT) {
        Some((end, _)) => printable(&format!("{}...", &text[..end])),
        None => printable(&text),
    }
}

/// The text of a time; `None` for other values.
fn time(kind: &ItemKind, value: &Value) -> Option<String> {
    match (kind, value) {
        (ItemKind::Timestamp { unit, .. }, Value::Int(time)) => {
            i64::try_from(*time).ok().map(|time| date::date(time, Some((1, &unit.to_string()))))
        }
        _ => None,
    }
}

/// The text of a number of 32 bits with a fraction, as in arrays; `None` for other values.
fn float32(kind: &ItemKind, value: &Value) -> Option<String> {
    let (ItemKind::Float32, Value::Float(number)) = (kind, value) else { return None };
    let dtype = Dtype::scalar(Kind::Float, 4).ok()?;
    Some(item::text(&dtype, &(*number as f32).to_le_bytes()))
}

/// The text of a value of a column.
fn text(kind: &ItemKind, value: &Value) -> String {
    time(kind, value).or_else(|| float32(kind, value)).unwrap_or_else(|| notation(value))
}

/// The text of a value in a CSV file. Null is an empty field, and strings have no quotes of Python.
fn field(kind: &ItemKind, value: &Value) -> String {
    match value {
        Value::None => String::new(),
        Value::Str(text) => text.clone(),
        _ => {
            time(kind, value).or_else(|| float32(kind, value)).unwrap_or_else(|| value.to_string())
        }
    }
}

/// The dtype of the items of a column for NumPy, where times are dates.
fn dtype_of(kind: &ItemKind, stored: Dtype) -> Result<Dtype> {
    let ItemKind::Timestamp { unit, .. } = kind else { return Ok(stored) };
    let order = if stored.to_string().starts_with('>') { '>' } else { '<' };
    Dtype::parse(&format!("{order}M8[{unit}]")).map_err(invalid)
}

fn invalid(error: impl ToString) -> Error {
    Error::new(ErrorKind::InvalidData, "read a column", error.to_string())
}

fn column<'a>(table: &'a CTable, name: &str) -> Result<&'a Column> {
    let find = |column: &&Column| printable(column.name()) == name;
    table.columns().iter().find(find).ok_or_else(|| {
        let detail = format!("the table has no column `{name}`");
        Error::new(ErrorKind::NotFound, "read a column", detail)
    })
}

/// Statistics of a column of numbers, which are computed part by part.
#[derive(Debug)]
pub struct ColumnStatistics {
    name: String,
    rows: u64,
    next: u64,
    nulls: u64,
    statistics: Statistics,
    /// The least and the greatest integer with their rows: large integers differ by less than numbers of 64 bits with a
    /// fraction.
    exact: Option<[(i128, u64); 2]>,
}

impl ColumnStatistics {
    /// Starts with the first row.
    ///
    /// # Errors
    /// There is no such column, or its values are not numbers.
    pub fn new(table: &CTable, name: &str) -> Result<Self> {
        let column = column(table, name)?;
        if !is_number(column.kind()) {
            let detail = format!("the column `{name}` of type {} has no numbers", column.kind());
            return Err(Error::new(ErrorKind::TypeMismatch, "compute statistics", detail));
        }
        let statistics = Statistics::default();
        let name = column.name().to_owned();
        Ok(Self { name, rows: table.nrows(), next: 0, nulls: 0, statistics, exact: None })
    }

    /// Reads the next rows. Returns whether there are more.
    ///
    /// # Errors
    /// The rows cannot be read.
    pub fn step(&mut self, table: &CTable) -> Result<bool> {
        let start = self.next;
        let end = (start + ROWS[0]).min(self.rows);
        // What cannot be read is left out.
        self.next = end;
        let kind = column(table, &printable(&self.name))?.kind();
        let (stored, bytes) = table.read_bytes(&self.name, start..end)?;
        let number = Number { name: String::new(), dtype: dtype_of(kind, stored)?, offset: 0 };
        let mut values = Vec::new();
        let size = number.dtype.size();
        number.decode(&bytes, 0, size, (end - start) as usize, &mut values);
        let nulls = table.nulls(&self.name, start..end)?;
        let mut at = 0;
        for run in nulls.chunk_by(|one, next| one == next) {
            match run.first() {
                Some(true) => self.nulls += run.len() as u64,
                _ => {
                    self.statistics.add(&values[at..at + run.len()], start + at as u64);
                    self.add_exact(
                        &number.dtype,
                        &bytes[at * size..],
                        run.len(),
                        start + at as u64,
                    );
                }
            }
            at += run.len();
        }
        Ok(self.next < self.rows)
    }

    /// Adds items that are integers or times; others have no exact extremes.
    fn add_exact(&mut self, dtype: &Dtype, bytes: &[u8], count: usize, at: u64) {
        let decoder = ScalarDecoder::new(dtype);
        let is_time = dtype.kind() == Some(Kind::DateTime);
        if !is_time && !matches!(dtype.kind(), Some(Kind::Int | Kind::UInt)) {
            return;
        }
        for (item, at) in bytes.chunks_exact(dtype.size()).take(count).zip(at..) {
            let value = if is_time { decoder.time(item).into() } else { decoder.int(item) };
            // Not a time.
            if is_time && value == i64::MIN.into() {
                continue;
            }
            let [least, greatest] = self.exact.get_or_insert([(value, at); 2]);
            if value < least.0 {
                *least = (value, at);
            }
            if value > greatest.0 {
                *greatest = (value, at);
            }
        }
    }

    /// Returns the part that was read, from 0 to 1.
    pub fn progress(&self) -> f64 {
        if self.rows == 0 { 1.0 } else { self.next as f64 / self.rows as f64 }
    }

    /// Returns the statistics of what was read, with the texts of the least and the greatest value.
    pub fn to_json(&self, table: &CTable) -> serde_json::Value {
        let mut facts = self.statistics.to_json(self.next >= self.rows, &|at| vec![at]);
        facts["nulls"] = self.nulls.into();
        facts["rows"] = self.next.into();
        for (k, (of, key)) in [("minAt", "minText"), ("maxAt", "maxText")].into_iter().enumerate() {
            if let Some(exact) = self.exact {
                facts[of] = json!([exact[k].1]);
            }
            let Some(at) = facts[of][0].as_u64() else { continue };
            let kind = column(table, &printable(&self.name)).map(Column::kind);
            let value =
                table.values(&self.name, at..at + 1).ok().and_then(|all| all.into_iter().next());
            if let (Ok(kind), Some(value)) = (kind, value) {
                facts[key] = text(kind, &value).into();
            }
        }
        facts
    }
}

/// A file with rows of a table, which is written part by part.
#[derive(Debug)]
pub struct RowsExport {
    rows: Range<u64>,
    next: u64,
    /// The columns; one for `.npy`.
    columns: Vec<String>,
    is_npy: bool,
    file: Vec<u8>,
}

impl RowsExport {
    /// Starts a file with `rows`. With `name`, it is a `.npy` file of this column, otherwise a `.csv` file of all columns,
    /// except those that Python computes.
    ///
    /// # Errors
    /// There are no such rows, or no such column, or its values are not items of one size.
    pub fn new(table: &CTable, rows: Range<u64>, name: Option<&str>) -> Result<Self> {
        if rows.start > rows.end || rows.end > table.nrows() {
            let detail = format!("the rows {rows:?} of a table of {} rows", table.nrows());
            return Err(Error::new(ErrorKind::OutOfBounds, "save rows", detail));
        }
        let next = rows.start;
        if let Some(name) = name {
            let column = column(table, name)?;
            if !has_items(column.kind()) {
                let detail = format!(
                    "the column `{name}` of type {} has no items of one size; save it as .csv",
                    column.kind()
                );
                return Err(Error::new(ErrorKind::Unsupported, "save a column", detail));
            }
            let (stored, _) = table.read_bytes(column.name(), 0..0)?;
            let dtype = dtype_of(column.kind(), stored)?;
            let mut shape = vec![rows.end - rows.start];
            if let ItemKind::NDArray { shape: inner, .. } = column.kind() {
                shape.extend(inner);
            }
            let file = npy::Header::new(dtype, shape).to_bytes().map_err(invalid)?;
            let columns = vec![column.name().to_owned()];
            return Ok(Self { rows, next, columns, is_npy: true, file });
        }
        let stored = |column: &&Column| !matches!(column.kind(), ItemKind::Computed(_));
        let columns = table.columns().iter().filter(stored);
        let columns: Vec<_> = columns.map(|column| column.name().to_owned()).collect();
        let names: Vec<_> = columns.iter().map(|name| crate::data::quoted(name)).collect();
        let file = (names.join(",") + "\n").into_bytes();
        Ok(Self { rows, next, columns, is_npy: false, file })
    }

    /// Writes the next rows. Returns whether there are more.
    ///
    /// # Errors
    /// The rows cannot be read, or the file becomes too large for the page.
    pub fn step(&mut self, table: &CTable) -> Result<bool> {
        let end = self.rows.end.min(self.next + ROWS[usize::from(!self.is_npy)]);
        let rows = self.next..end;
        if self.is_npy {
            self.file.extend(table.read_bytes(&self.columns[0], rows)?.1);
        } else {
            let mut cells = Vec::new();
            for name in &self.columns {
                let kind = column(table, &printable(name))?.kind();
                cells.push((kind, table.values(name, rows.clone())?));
            }
            for row in 0..(end - self.next) as usize {
                let fields = cells.iter().map(|(kind, values)| {
                    let text = values.get(row).map_or_else(String::new, |value| field(kind, value));
                    crate::data::quoted(&text)
                });
                let line = fields.collect::<Vec<_>>().join(",");
                // Readers skip empty lines.
                self.file.extend(if line.is_empty() { "\"\"" } else { &line }.as_bytes());
                self.file.push(b'\n');
            }
        }
        if self.file.len() > MAX_FILE {
            let detail = format!("a file of more than {MAX_FILE} bytes: save fewer rows");
            return Err(Error::new(ErrorKind::TooLarge, "save rows", detail));
        }
        self.next = end;
        Ok(self.next < self.rows.end)
    }

    /// Returns the part that was written, from 0 to 1.
    pub fn progress(&self) -> f64 {
        let count = self.rows.end - self.rows.start;
        if count == 0 { 1.0 } else { (self.next - self.rows.start) as f64 / count as f64 }
    }

    /// Returns the file.
    pub fn into_file(self) -> Vec<u8> {
        self.file
    }
}
