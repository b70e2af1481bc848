//! Record batches as rows of tables.

use std::borrow::{BorrowMut, Cow};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};
use blosc2::limits::default_max_read;
use blosc2::{Error, ErrorKind, Result, Value};

use super::items::{Items, items_of, texts_of};
use super::types::column_kind;
use super::values::{as_type, values_of};
use crate::tag::Fault;
use crate::{CTable, Data, ItemKind, ItemType, Schema, TableAppender};

const MAKE: &str = "create a table from an Arrow schema";
const WRITE: &str = "append a record batch to a table";

#[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
impl TryFrom<&ArrowSchema> for Schema {
    type Error = Error;

    /// Converts an Arrow schema to the schema of a table with the same columns; see the
    /// [table of types](crate::arrow#types).
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`]: there is no kind of column for the type of a field, such as dates and decimals; or
    /// its metadata describe an invalid shape.
    fn try_from(schema: &ArrowSchema) -> Result<Self> {
        schema.fields().iter().try_fold(Self::new(), |made, field| {
            let name = field.name();
            let kind = column_kind(field).map_err(|detail| {
                let detail = format!("the field `{name}`: {detail}");
                Error::new(ErrorKind::Unsupported, MAKE, detail)
            })?;
            let spec = ItemType::from(kind);
            Ok(made.column(name, if field.is_nullable() { spec.nullable() } else { spec }))
        })
    }
}

impl CTable {
    /// Appends the rows of an Arrow record batch. The columns of the batch are matched with the columns of the table by
    /// name. If the batch does not have a column of the table, the new rows of this column get the default of the
    /// column, or null; see [`append`](Self::append).
    ///
    /// Numbers and the bytes of strings are compressed without a copy. Numbers are not converted to another type.
    /// String columns of every kind accept every Arrow type of strings and dictionary-encoded strings.
    ///
    /// Each call recompresses the last chunk of each column. For many batches, use
    /// [`append_record_batches`](Self::append_record_batches) or a [`TableAppender`].
    ///
    /// # Errors
    /// After an error, the table has the same rows as before.
    ///
    /// - [`ErrorKind::NotFound`]: the batch has a column that the table does not have;
    /// - [`ErrorKind::TypeMismatch`]: the Arrow type of a column does not match the kind of the column of the table;
    /// - the errors of [`append`](Self::append).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
    /// use blosc2_store::{CTable, Schema};
    ///
    /// let batch = RecordBatch::try_from_iter([
    ///     ("id", Arc::new(Int64Array::from(vec![1, 2])) as ArrayRef),
    ///     ("name", Arc::new(StringArray::from(vec![Some("a"), None]))),
    /// ])?;
    /// let mut table = CTable::in_memory(&Schema::try_from(&*batch.schema())?)?;
    /// table.append_record_batch(&batch)?;
    /// assert_eq!(table.texts("name", ..)?, [Some("a".to_owned()), None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
    pub fn append_record_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let cells = cells_of(self, batch)?;
        self.append(data_of(batch, &cells))
    }

    /// Appends the rows of Arrow record batches, of any size, with a [`TableAppender`]. Any
    /// [`arrow_array::RecordBatchReader`] can be passed, such as a reader of a Parquet file; see
    /// [`append_record_batch`](Self::append_record_batch). Python: `extend`.
    ///
    /// # Errors
    /// After an error, the table contains the rows of all batches before the first one that failed, except if these rows
    /// cannot be written.
    ///
    /// - The error of the reader: [`ErrorKind::Io`] or [`ErrorKind::InvalidData`];
    /// - the errors of [`append_record_batch`](Self::append_record_batch).
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use arrow_array::{ArrayRef, Int64Array, RecordBatch};
    /// use blosc2_store::{CTable, ItemKind, Schema};
    ///
    /// let mut table = CTable::in_memory(&Schema::new().column("id", ItemKind::Int64))?;
    /// let batch = |id| RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![id; 3])) as ArrayRef)]);
    /// table.append_record_batches((0..1000).map(batch))?;
    /// assert_eq!(table.nrows(), 3000);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
    pub fn append_record_batches(
        &mut self,
        batches: impl IntoIterator<Item = Result<RecordBatch, ArrowError>>,
    ) -> Result<()> {
        let mut rows = self.appender()?;
        for batch in batches {
            let batch = batch.map_err(of_reader);
            if let Err(error) = batch.and_then(|batch| rows.append_record_batch(&batch)) {
                rows.flush()?;
                return Err(error);
            }
        }
        rows.finish().map(drop)
    }
}

impl<T: BorrowMut<CTable>> TableAppender<T> {
    /// Appends the rows of an Arrow record batch, as [`CTable::append_record_batch`] does.
    ///
    /// # Errors
    /// After an error, no row of the batch is appended or collected.
    ///
    /// - [`ErrorKind::OutOfMemory`]: there is not enough memory for the collected rows;
    /// - the errors of [`CTable::append_record_batch`].
    #[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
    pub fn append_record_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let cells = cells_of(self.table(), batch)?;
        self.append(data_of(batch, &cells))
    }
}

/// The error of a reader of batches.
fn of_reader(error: ArrowError) -> Error {
    const READ: &str = "read a record batch";
    match error {
        ArrowError::IoError(_, error) => Error::of_io(READ, error),
        ArrowError::ExternalError(error) => match error.downcast::<Error>() {
            Ok(error) => *error,
            Err(error) => Error::new(ErrorKind::InvalidData, READ, error),
        },
        error => Error::new(ErrorKind::InvalidData, READ, error),
    }
}

/// The cells of each column of a batch.
fn cells_of<'a>(table: &CTable, batch: &'a RecordBatch) -> Result<Vec<Cells<'a>>> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(batch.columns());
    let cells = columns.map(|(field, array)| {
        let name = field.name();
        let column = table.column(name).ok_or_else(|| {
            Error::new(ErrorKind::NotFound, WRITE, format!("there is no column `{name}`"))
        })?;
        cells(column.kind(), field, array).map_err(|(kind, detail)| {
            Error::new(kind, WRITE, format!("the column `{name}`: {detail}"))
        })
    });
    cells.collect()
}

/// The names and the data of the columns of a batch.
fn data_of<'a>(batch: &RecordBatch, cells: &'a [Cells<'_>]) -> Vec<(String, Data<'a>)> {
    let schema = batch.schema();
    let columns = schema.fields().iter().zip(cells).zip(batch.columns());
    let data = columns.map(|((field, cells), array)| {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let data = match nulls {
            Some(nulls) => {
                cells.data().nulls(nulls.iter().map(|valid| !valid).collect::<Vec<bool>>())
            }
            None => cells.data(),
        };
        (field.name().clone(), data)
    });
    data.collect()
}

/// The cells of a column, in a form that [`Data`] borrows.
enum Cells<'a> {
    Items(Items),
    Values(Vec<Value>),
    Texts { offsets: Cow<'a, [i64]>, bytes: &'a [u8] },
    Codes { codes: Vec<i32>, texts: Vec<String> },
}

impl Cells<'_> {
    fn data(&self) -> Data<'_> {
        match self {
            Self::Items(items) => Data::bytes(items.dtype.clone(), &items.bytes[..]),
            Self::Values(values) => Data::values(&values[..]),
            Self::Texts { offsets, bytes } => Data::offsets(&offsets[..], *bytes),
            Self::Codes { codes, texts } => Data::codes(&codes[..], &texts[..]),
        }
    }
}

/// The cells of an array for a column of this kind. The error describes why there are none.
fn cells<'a>(kind: &ItemKind, field: &Field, array: &'a ArrayRef) -> Result<Cells<'a>, Fault> {
    match (kind, array.data_type()) {
        (
            ItemKind::String { .. }
            | ItemKind::Utf8
            | ItemKind::VlString
            | ItemKind::Dictionary { .. },
            data_type,
        ) => match data_type {
            DataType::Utf8 => {
                let texts = array.as_string::<i32>();
                let offsets = texts.offsets().iter().map(|&offset| offset.into()).collect();
                Ok(Cells::Texts { offsets, bytes: texts.values() })
            }
            DataType::LargeUtf8 => {
                let texts = array.as_string::<i64>();
                let offsets = Cow::Borrowed(&texts.offsets()[..]);
                Ok(Cells::Texts { offsets, bytes: texts.values() })
            }
            DataType::Dictionary(..) => codes(array),
            _ => {
                let texts = texts_of(array).ok_or_else(|| unlike(kind, data_type))?;
                let value = |text: Option<&str>| text.map_or(Value::None, Value::from);
                Ok(Cells::Values(texts.into_iter().map(value).collect()))
            }
        },
        (
            ItemKind::Bytes { .. }
            | ItemKind::VlBytes
            | ItemKind::List(_)
            | ItemKind::Struct(_)
            | ItemKind::Object,
            _,
        ) => {
            // As for reading: a few bytes can represent very many nulls, or be repeated.
            let given = array.get_array_memory_size() as u64;
            let mut left = default_max_read(given);
            values_of(field, array, &mut left).map(Cells::Values).map_err(|(kind, detail)| {
                match kind {
                    ErrorKind::TooLarge => (kind, detail),
                    _ => mismatch(detail),
                }
            })
        }
        (ItemKind::Timestamp { .. }, DataType::Timestamp(unit, _)) => {
            if column_kind(field).is_ok_and(|found| same_unit(kind, &found)) {
                let numbers =
                    as_type(array, DataType::Int64).map_err(|(_, detail)| mismatch(detail))?;
                let field = Field::new(field.name(), DataType::Int64, true);
                return items_of(&field, &numbers, true).map(Cells::Items);
            }
            Err(mismatch(format!("timestamps in the unit {unit}, expected {kind}")))
        }
        (ItemKind::Timestamp { .. }, data_type) => Err(unlike(kind, data_type)),
        _ => items_of(field, array, true).map(Cells::Items),
    }
}

fn mismatch(detail: String) -> Fault {
    (ErrorKind::TypeMismatch, detail)
}

fn unlike(kind: &ItemKind, data_type: &DataType) -> Fault {
    mismatch(format!("an array of the type {data_type} for a column of {kind}"))
}

/// Whether the units of timestamps are the same. Their time zones are for display only.
fn same_unit(one: &ItemKind, other: &ItemKind) -> bool {
    match (one, other) {
        (ItemKind::Timestamp { unit, .. }, ItemKind::Timestamp { unit: other, .. }) => {
            unit == other
        }
        _ => false,
    }
}

/// The codes and the strings of an array of dictionary-encoded strings. Null strings get the code -1.
fn codes<'a>(array: &ArrayRef) -> Result<Cells<'a>, Fault> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    let texts = texts_of(values).ok_or_else(|| {
        mismatch(format!("a dictionary of the type {}, expected strings", values.data_type()))
    })?;
    let keys = match texts.is_empty() {
        // Only nulls: there is nothing to which keys could be normalized.
        true => vec![0; array.len()],
        false => dictionary.normalized_keys(),
    };
    let codes = keys.into_iter().enumerate().map(|(row, key)| {
        if array.is_null(row) || texts.get(key).is_none_or(Option::is_none) {
            return Ok(-1);
        }
        i32::try_from(key)
            .map_err(|_| mismatch(format!("the dictionary has {} strings", texts.len())))
    });
    let codes = codes.collect::<Result<_, _>>()?;
    let texts = texts.into_iter().map(|text| text.unwrap_or_default().to_owned()).collect();
    Ok(Cells::Codes { codes, texts })
}
