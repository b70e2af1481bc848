//! Record batches as rows of tables.

use std::borrow::BorrowMut;

use crate::blosc2::limits::default_max_read;
use crate::blosc2::{Element, Error, ErrorKind, Result};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema};

use super::dtypes::time_unit;
use super::items::{fixed_bytes, items_of, keys_of, texts_of};
use super::types::column_kind;
use super::values::values_of;
use crate::tag::{Fault, mismatch};
use crate::{CTable, Data, ItemKind, ItemType, Schema, TableAppender};

const MAKE: &str = "create a table from an Arrow schema";
const WRITE: &str = "append a record batch to a table";

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
    pub fn append_record_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(self, batch)?;
        self.append(columns)
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
    pub fn append_record_batch(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = columns(self.table(), batch)?;
        self.append(columns)
    }
}

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

/// The names and the data of the columns of a batch.
fn columns<'a>(table: &CTable, batch: &'a RecordBatch) -> Result<Vec<(&'a str, Data<'a>)>> {
    let columns = batch.schema_ref().fields().iter().zip(batch.columns());
    let columns = columns.map(|(field, array)| {
        let name = field.name();
        let data =
            data(table.find_column(name)?.kind(), field, array).map_err(|(kind, detail)| {
                Error::new(kind, WRITE, format!("the column `{name}`: {detail}"))
            })?;
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let data = match nulls {
            Some(nulls) => data.nulls(nulls.iter().map(|valid| !valid).collect::<Vec<bool>>()),
            None => data,
        };
        Ok((name.as_str(), data))
    });
    columns.collect()
}

/// The cells of an array for a column of this kind. The error describes why there are none.
fn data<'a>(kind: &ItemKind, field: &Field, array: &'a ArrayRef) -> Result<Data<'a>, Fault> {
    let data_type = array.data_type();
    match (kind, data_type) {
        (kind, DataType::Utf8) if kind.is_text() => {
            let texts = array.as_string::<i32>();
            let offsets: Vec<i64> = texts.offsets().iter().map(|&offset| offset.into()).collect();
            Ok(Data::offsets(offsets, texts.values().as_slice()))
        }
        (kind, DataType::LargeUtf8) if kind.is_text() => {
            let texts = array.as_string::<i64>();
            Ok(Data::offsets(&texts.offsets()[..], texts.values().as_slice()))
        }
        (kind, DataType::Dictionary(..)) if kind.is_text() => codes(array),
        (kind, _) if kind.is_text() => {
            Ok(Data::texts(texts_of(array).ok_or_else(|| unlike(kind, data_type))?))
        }
        (kind, _) if kind.has_batches() || matches!(kind, ItemKind::Bytes { .. }) => {
            // As for reading: a few bytes can represent very many nulls, or be repeated.
            let mut left = default_max_read(memory_of(array));
            let values = values_of(field, array, &mut left);
            values.map(Data::values).map_err(|(kind, detail)| match kind {
                ErrorKind::TooLarge => (kind, detail),
                _ => mismatch(detail),
            })
        }
        (ItemKind::Timestamp { unit: expected, .. }, DataType::Timestamp(unit, _)) => {
            // Time zones are for display only.
            if time_unit(*unit) != *expected {
                return Err(mismatch(format!("timestamps in the unit {unit}, expected {kind}")));
            }
            let numbers = fixed_bytes(array).ok_or_else(|| unlike(kind, data_type))?;
            Ok(Data::bytes(i64::dtype(), numbers))
        }
        (ItemKind::Timestamp { .. }, _) => Err(unlike(kind, data_type)),
        _ => items_of(field, array, true).map(|items| Data::bytes(items.dtype, items.bytes)),
    }
}

fn unlike(kind: &ItemKind, data_type: &DataType) -> Fault {
    mismatch(format!("an array of the type {data_type} for a column of {kind}"))
}

/// The memory of an array, with a byte for each boolean, which Arrow stores as a bit.
fn memory_of(array: &dyn Array) -> u64 {
    fn booleans(data: &ArrayData) -> usize {
        let own = if *data.data_type() == DataType::Boolean { data.len() } else { 0 };
        own + data.child_data().iter().map(booleans).sum::<usize>()
    }
    (array.get_array_memory_size() + booleans(&array.to_data())) as u64
}

/// The cells of an array of dictionary-encoded strings. Null strings get the code -1.
fn codes(array: &ArrayRef) -> Result<Data<'static>, Fault> {
    let dictionary = array.as_any_dictionary();
    let values = dictionary.values();
    let texts = texts_of(values).ok_or_else(|| {
        mismatch(format!("a dictionary of the type {}, expected strings", values.data_type()))
    })?;
    let codes = keys_of(array).map(|key| match key {
        Some(key) if texts[key].is_some() => i32::try_from(key)
            .map_err(|_| mismatch(format!("the dictionary has {} strings", texts.len()))),
        _ => Ok(-1),
    });
    let codes: Vec<i32> = codes.collect::<Result<_, _>>()?;
    let texts: Vec<String> =
        texts.into_iter().map(|text| text.unwrap_or_default().to_owned()).collect();
    Ok(Data::codes(codes, texts))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{BooleanArray, ListArray};
    use arrow_buffer::OffsetBuffer;

    use super::*;

    /// Otherwise, large lists would exceed the limit of the memory of their values.
    #[test]
    fn each_boolean_of_a_list_counts() {
        let items = Arc::new(BooleanArray::from(vec![true; 8000]));
        let field = Arc::new(Field::new("item", DataType::Boolean, false));
        let offsets = OffsetBuffer::from_lengths([3000, 5000]);
        let lists = ListArray::new(field, offsets, items.clone(), None);
        assert!(items.get_array_memory_size() < 4000);
        assert!(memory_of(&lists) >= 8000);
    }
}
