//! Tables as record batches.

use std::borrow::Borrow;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use crate::blosc2::{Element, Error, ErrorKind, Result};
use arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, LargeStringArray, RecordBatch, RecordBatchOptions,
    RecordBatchReader, StringArray,
};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, Field, Schema, SchemaRef};

use super::items::array_of;
use super::types::column_field;
use super::values::array_from;
use crate::ctable::cells::{Cells, Encoded};
use crate::tag::Fault;
use crate::{CTable, ItemKind};

const READ: &str = "read a table as record batches";
/// Rows of a batch, as in Python.
const BATCH_ROWS: usize = 1 << 16;

/// Options for reading a table as record batches: the columns, the rows, and the number of rows in each batch.
///
/// ```
/// use blosc2_store::arrow::ReadOptions;
/// # use blosc2_store::{CTable, ItemKind, Data, Schema};
/// # let schema = Schema::new().column("id", ItemKind::Int64).column("name", ItemKind::Utf8);
/// # let mut table = CTable::in_memory(&schema)?;
/// # let names = Data::texts(["a", "b", "c"].map(Some));
/// # table.append([("id", Data::items(&[1i64, 2, 3])), ("name", names)])?;
///
/// let batches = ReadOptions::new().columns(["name"]).rows(1..3).batch_rows(1000).read(&table)?;
/// for batch in batches {
///     let batch = batch?;
///     assert_eq!((batch.num_columns(), batch.num_rows()), (1, 2));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct ReadOptions {
    columns: Option<Vec<String>>,
    rows: Option<Vec<Range<u64>>>,
    batch_rows: usize,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { columns: None, rows: None, batch_rows: BATCH_ROWS }
    }
}

impl ReadOptions {
    /// Creates options for all columns and all rows, in batches of 65,536 rows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Selects columns by their [names](crate::Column::name). The record batches contain the columns in the order of `names`.
    pub fn columns<N: Into<String>>(self, names: impl IntoIterator<Item = N>) -> Self {
        Self { columns: Some(names.into_iter().map(Into::into).collect()), ..self }
    }

    /// Selects a range of the valid rows; deleted rows are not counted.
    pub fn rows(self, rows: Range<u64>) -> Self {
        self.row_ranges([rows])
    }

    /// Selects several ranges of the valid rows, which are read in this order. A batch contains rows of one range.
    pub fn row_ranges(self, ranges: impl IntoIterator<Item = Range<u64>>) -> Self {
        Self { rows: Some(ranges.into_iter().collect()), ..self }
    }

    /// Sets the number of rows of each batch. The last batch can have fewer rows. 0 means 1.
    pub fn batch_rows(self, rows: usize) -> Self {
        Self { batch_rows: rows.max(1), ..self }
    }

    /// Opens the selected columns of a table. `table` is a `CTable`, `&CTable` or `Arc<CTable>`.
    ///
    /// # Errors
    /// - [`ErrorKind::NotFound`]: a selected column does not exist;
    /// - [`ErrorKind::OutOfBounds`]: a range extends beyond the number of rows;
    /// - [`ErrorKind::Unsupported`]: a selected column has no Arrow type, is computed, or is [stale](crate::Column::is_stale);
    /// - [`ErrorKind::InvalidData`]: a column is missing or damaged;
    /// - [`ErrorKind::Io`]: the file cannot be read.
    pub fn read<T: Borrow<CTable>>(&self, table: T) -> Result<RecordBatches<T>> {
        let of = table.borrow();
        let all = || of.columns().iter().map(|column| column.name().to_owned()).collect();
        let names: Vec<String> = self.columns.clone().unwrap_or_else(all);
        let fields = names.iter().map(|name| field(of, name)).collect::<Result<Vec<Field>>>()?;
        let nrows = of.nrows();
        let mut ranges = self.rows.clone().unwrap_or_else(|| std::iter::once(0..nrows).collect());
        if let Some(rows) = ranges.iter().find(|rows| rows.start > rows.end || rows.end > nrows) {
            let detail = format!("there are {nrows} rows, asked for {rows:?}");
            return Err(Error::new(ErrorKind::OutOfBounds, READ, detail));
        }
        ranges.retain(|rows| !rows.is_empty());
        let dictionaries = vec![None; fields.len()];
        let schema = Arc::new(Schema::new(fields));
        let batch_rows = self.batch_rows as u64;
        Ok(RecordBatches { table, schema, ranges: ranges.into(), batch_rows, dictionaries })
    }
}

/// An iterator over the record batches of a table. Created by [`ReadOptions::read`] and [`CTable::record_batches`].
///
/// It implements [`RecordBatchReader`], which adds the schema. If reading fails, the iterator returns an
/// [`ArrowError::ExternalError`] that contains the error of this crate. The iteration ends after an error.
///
/// ```
/// use arrow_array::RecordBatchReader;
/// # use blosc2_store::{CTable, ItemKind, Data, Schema};
/// # let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::Int64))?;
/// # table.append([("id", Data::items(&[1i64, 2, 3]))])?;
///
/// let batches = table.record_batches()?;
/// assert_eq!(batches.schema().field(0).name(), "id");
/// let rows: usize = batches.map(|batch| Ok(batch?.num_rows())).sum::<Result<_, arrow_schema::ArrowError>>()?;
/// assert_eq!(rows as u64, table.nrows());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RecordBatches<T> {
    table: T,
    schema: SchemaRef,
    /// The remaining rows, without empty ranges.
    ranges: VecDeque<Range<u64>>,
    batch_rows: u64,
    /// The distinct strings of dictionary columns, which all batches share.
    dictionaries: Vec<Option<ArrayRef>>,
}

impl CTable {
    /// Reads all rows of all columns as Arrow record batches of 65,536 rows. To select columns or rows, use
    /// [`ReadOptions`]. Python: `iter_arrow_batches`, `to_arrow`.
    ///
    /// # Errors
    /// Fails with the errors of [`ReadOptions::read`].
    pub fn record_batches(&self) -> Result<RecordBatches<&Self>> {
        ReadOptions::new().read(self)
    }
}

impl<T: Borrow<CTable>> RecordBatchReader for RecordBatches<T> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

impl<T: Borrow<CTable>> Iterator for RecordBatches<T> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let rows = self.ranges.pop_front()?;
        let end = rows.end.min(rows.start.saturating_add(self.batch_rows));
        let batch = self.batch(rows.start..end);
        match &batch {
            Ok(_) if end < rows.end => self.ranges.push_front(end..rows.end),
            Ok(_) => {}
            Err(_) => self.ranges.clear(),
        }
        Some(batch.map_err(|error| ArrowError::ExternalError(Box::new(error))))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.ranges.iter().map(|rows| (rows.end - rows.start).div_ceil(self.batch_rows));
        (0, usize::try_from(left.fold(0, u64::saturating_add)).ok())
    }
}

impl<T> RecordBatches<T> {
    /// Returns the index of the first row of the next batch, among the valid rows. Returns `None` at the end.
    pub fn next_row(&self) -> Option<u64> {
        self.ranges.front().map(|rows| rows.start)
    }

    /// Keeps the remaining rows that `ranges` contain, and skips the others. `ranges` are ranges of the valid rows, in
    /// ascending order and without overlap. This is for conditions that become known while the table is read.
    ///
    /// ```
    /// use blosc2_store::arrow::ReadOptions;
    /// # use blosc2_store::{CTable, ItemKind, Data, Schema};
    /// # let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::Int64))?;
    /// # table.append([("id", Data::items(&[1i64, 2, 3, 4, 5, 6]))])?;
    ///
    /// let mut batches = ReadOptions::new().batch_rows(2).read(&table)?;
    /// batches.next();
    /// batches.retain_rows([0..1, 5..6]);
    /// assert_eq!(batches.next_row(), Some(5));
    /// assert_eq!(batches.count(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn retain_rows(&mut self, ranges: impl IntoIterator<Item = Range<u64>>) {
        let kept: Vec<Range<u64>> = ranges.into_iter().filter(|rows| !rows.is_empty()).collect();
        let parts = self.ranges.iter().flat_map(|rows| {
            let first = kept.partition_point(|kept| kept.end <= rows.start);
            let inside = kept[first..].iter().take_while(|kept| kept.start < rows.end);
            inside.map(|kept| kept.start.max(rows.start)..kept.end.min(rows.end))
        });
        self.ranges = parts.collect();
    }
}

impl<T: Borrow<CTable>> RecordBatches<T> {
    fn batch(&mut self, rows: Range<u64>) -> Result<RecordBatch> {
        let schema = self.schema.clone();
        let len = (rows.end - rows.start) as usize;
        let columns = schema.fields().iter().zip(&mut self.dictionaries);
        let arrays = columns
            .map(|(field, dictionary)| array(self.table.borrow(), field, rows.clone(), dictionary));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let batch = RecordBatch::try_new_with_options(schema, arrays, &options);
        batch.map_err(|error| Error::new(ErrorKind::InvalidData, READ, error))
    }
}

fn failed(name: &str, (kind, detail): Fault) -> Error {
    Error::new(kind, READ, format!("the column `{name}`: {detail}"))
}

/// The Arrow field of a column, which is opened.
fn field(table: &CTable, name: &str) -> Result<Field> {
    let column = table.find_column(name)?;
    let stored = match column.kind() {
        // They are refused by `column_field`.
        ItemKind::Object | ItemKind::Computed(_) | ItemKind::Other(_) => None,
        _ => table.stored_dtype(name)?,
    };
    column_field(column, stored.as_ref()).map_err(|detail| {
        let detail = format!("{detail}; select other columns with `ReadOptions::columns`");
        failed(name, (ErrorKind::Unsupported, detail))
    })
}

/// The bits of the rows that are not null.
fn valid_bits(nulls: &[bool]) -> BooleanBuffer {
    let byte = |nulls: &[bool]| {
        nulls.iter().enumerate().fold(0, |byte, (bit, null)| byte | u8::from(!null) << bit)
    };
    // Eight rows are one byte, for which the compiler emits vector instructions.
    let (whole, rest) = nulls.as_chunks::<8>();
    let mut bits: Vec<u8> = whole.iter().map(|nulls| byte(nulls)).collect();
    bits.extend((!rest.is_empty()).then(|| byte(rest)));
    BooleanBuffer::new(bits.into(), 0, nulls.len())
}

fn array(
    table: &CTable,
    field: &Field,
    rows: Range<u64>,
    dictionary: &mut Option<ArrayRef>,
) -> Result<ArrayRef> {
    let name = field.name();
    let column = table.find_column(name)?;
    let invalid = |detail: String| failed(name, (ErrorKind::InvalidData, detail));
    let len = (rows.end - rows.start) as usize;
    let Encoded { cells, nulls, .. } = table.stored_rows(name, rows)?;
    let nulls = nulls.filter(|nulls| nulls.contains(&true));
    let nulls = nulls.map(|nulls| NullBuffer::new(valid_bits(&nulls)));
    let array = match cells {
        Cells::Texts(texts) => {
            let offsets = OffsetBuffer::new(ScalarBuffer::from(texts.offsets.into_owned()));
            let bytes = Buffer::from_vec(texts.bytes.into_owned());
            let texts = LargeStringArray::try_new(offsets, bytes, nulls);
            return Ok(Arc::new(texts.map_err(|error| invalid(error.to_string()))?));
        }
        Cells::Codes { codes, texts, .. } => {
            let mut codes = codes.into_owned();
            if let Some(nulls) = &nulls {
                let codes = codes.iter_mut().zip(nulls);
                codes.filter(|(_, valid)| !valid).for_each(|(code, _)| *code = 0);
            }
            let texts = match dictionary {
                Some(texts) => texts.clone(),
                None => {
                    let nbytes = texts.iter().map(String::len).fold(0, usize::saturating_add);
                    if i32::try_from(nbytes).is_err() {
                        let detail =
                            format!("its strings have {nbytes} bytes, expected less than 2^31");
                        return Err(failed(name, (ErrorKind::Unsupported, detail)));
                    }
                    dictionary.insert(Arc::new(StringArray::from_iter_values(&*texts))).clone()
                }
            };
            let array = DictionaryArray::try_new(Int32Array::new(codes.into(), nulls), texts);
            return Ok(Arc::new(array.map_err(|error| invalid(error.to_string()))?));
        }
        Cells::Values(values) => array_from(field, &values.iter().collect::<Vec<_>>()),
        Cells::Items { dtype, bytes } => {
            let mut bytes = bytes.into_owned();
            if !dtype.is_native() {
                let plan = dtype.swap_plan().map_err(|error| invalid(error.to_string()))?;
                plan.apply(&mut bytes);
            }
            let (dtype, shape) = match column.kind() {
                // Stored as bytes if null is a value.
                ItemKind::Bool => (bool::dtype(), &[][..]),
                ItemKind::NDArray { shape, .. } => (dtype.to_native(), &shape[..]),
                _ => (dtype.to_native(), &[][..]),
            };
            array_of(field, &dtype, shape, len, bytes, nulls)
        }
    };
    array.map_err(|fault| failed(name, fault))
}
