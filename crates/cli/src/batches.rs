//! Tables and arrays from and to Parquet and Arrow files, and tables from CSV files, as record batches. A thread reads
//! while another one writes, so that a few batches are in memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::ops::Range;
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::thread;

use anyhow::{Result, anyhow, bail};
use arrow_array::{RecordBatch, RecordBatchReader};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{ArrowError, DataType, Field, Schema as ArrowSchema, SchemaRef, TimeUnit};
use blosc2::{CParams, Dtype, ErrorKind, NDArray};
use blosc2_format::npy::Header;
use blosc2_store::arrow::{
    ReadOptions, field, from_arrow, from_record_batch, to_arrow, to_record_batch,
};
use blosc2_store::{CTable, Schema};
use indicatif::ProgressBar;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

use crate::csv_reader::ROWS;
use crate::progress::Counted;
use crate::raw::RawItems;
use crate::{csv_reader, lengths};

/// Bytes of a row group of a Parquet file before compression, which the writer holds in memory.
const ROW_GROUP: usize = 256 << 20;
/// The name of the column of an array without fields.
const VALUE: &str = "value";

/// A format of record batches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    Parquet,
    /// An Arrow IPC file.
    Arrow,
    /// An Arrow IPC stream.
    Stream,
    Csv,
}

/// A reader of batches, which another thread can own.
type Reader = Box<dyn RecordBatchReader + Send>;

/// Opens a file, with the columns of these names, or all. Also returns the number of rows, if the file states it.
fn open(
    path: &Path,
    format: Format,
    names: &[String],
    bar: &ProgressBar,
) -> Result<(Reader, Option<u64>)> {
    let file = || File::open(path).map(|file| Counted::new(file, bar.clone()));
    let chosen = |schema: &ArrowSchema| -> Result<Option<Vec<usize>>> {
        let index = |name: &String| {
            let found = schema.fields().iter().position(|field| field.name() == name);
            found.ok_or_else(|| {
                let names: Vec<&str> =
                    schema.fields().iter().map(|it| it.name().as_str()).collect();
                anyhow!("there is no column `{name}`; there are `{}`", names.join("`, `"))
            })
        };
        let mut indices = names.iter().map(index).collect::<Result<Vec<_>>>()?;
        indices.sort_unstable();
        indices.dedup();
        Ok((!names.is_empty()).then_some(indices))
    };
    Ok(match format {
        Format::Parquet => {
            let mut builder = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
            let rows = u64::try_from(builder.metadata().file_metadata().num_rows())?;
            if let Some(columns) = chosen(builder.schema())? {
                let mask = ProjectionMask::roots(builder.parquet_schema(), columns);
                builder = builder.with_projection(mask);
            }
            let most = lengths::parquet_rows(path, ROWS)?;
            (Box::new(builder.with_batch_size(most).build()?), Some(rows))
        }
        Format::Arrow => {
            lengths::check_file(path)?;
            let all = FileReader::try_new_buffered(file()?, None)?;
            let reader: Reader = match chosen(&all.schema())? {
                None => Box::new(all),
                columns => Box::new(FileReader::try_new_buffered(file()?, columns)?),
            };
            (reader, None)
        }
        Format::Stream => {
            lengths::check_stream(path)?;
            let all = StreamReader::try_new_buffered(file()?, None)?;
            let reader: Reader = match chosen(&all.schema())? {
                None => Box::new(all),
                columns => Box::new(StreamReader::try_new_buffered(file()?, columns)?),
            };
            (reader, None)
        }
        Format::Csv => {
            let schema = Arc::new(csv_reader::infer(BufReader::new(File::open(path)?))?);
            let columns = chosen(&schema)?;
            let reader = csv_reader::reader(BufReader::new(file()?), schema, columns)?;
            (Box::new(reader), None)
        }
    })
}

/// The metadata of a field with the unit of timestamps in seconds, which Parquet does not have.
const UNIT: (&str, &str) = ("blosc2:unit", "s");

/// The Arrow type with which a column is stored: dates become timestamps, because tables have no dates.
fn stored_type(data_type: &DataType, is_seconds: bool) -> DataType {
    match data_type {
        DataType::Timestamp(TimeUnit::Millisecond, zone) if is_seconds => {
            DataType::Timestamp(TimeUnit::Second, zone.clone())
        }
        DataType::Date32 => DataType::Timestamp(TimeUnit::Second, None),
        DataType::Date64 => DataType::Timestamp(TimeUnit::Millisecond, None),
        DataType::Dictionary(_, values)
            if !matches!(**values, DataType::Utf8 | DataType::LargeUtf8) =>
        {
            stored_type(values, false)
        }
        other => other.clone(),
    }
}

/// The schema with which batches are stored.
fn stored_schema(schema: &ArrowSchema) -> ArrowSchema {
    let fields = schema.fields().iter().map(|field| {
        let is_seconds = field.metadata().get(UNIT.0).is_some_and(|unit| unit == UNIT.1);
        let data_type = stored_type(field.data_type(), is_seconds);
        match data_type == *field.data_type() {
            true => field.as_ref().clone(),
            false => Field::new(field.name(), data_type, field.is_nullable()),
        }
    });
    ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

/// The schema of batches in a Parquet file: other programs read timestamps in seconds as integers.
fn parquet_schema(schema: &ArrowSchema) -> ArrowSchema {
    let fields = schema.fields().iter().map(|field| match field.data_type() {
        DataType::Timestamp(TimeUnit::Second, zone) => {
            let data_type = DataType::Timestamp(TimeUnit::Millisecond, zone.clone());
            let metadata = [(UNIT.0.to_owned(), UNIT.1.to_owned())].into();
            Field::new(field.name(), data_type, field.is_nullable()).with_metadata(metadata)
        }
        _ => field.as_ref().clone(),
    });
    ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone())
}

fn converted(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
        true => Ok(Arc::clone(column)),
        // Values that do not fit are an error, not null.
        false => cast_with_options(
            column,
            field.data_type(),
            &CastOptions { safe: false, ..Default::default() },
        ),
    });
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

/// Opens the items of an array in a file: the column `value`, or structures with all columns as fields.
pub(crate) fn items(path: &Path, format: Format, names: &[String]) -> Result<(Dtype, RawItems)> {
    let open = || guarded(|| open(path, format, names, &ProgressBar::hidden()));
    let (reader, rows) = open()?;
    let schema = reader.schema();
    if let Some(field) = schema.fields().iter().find(|field| !has_size(field.data_type())) {
        let (name, data_type) = (field.name(), field.data_type());
        bail!(
            "the column `{name}` of the Arrow type {data_type} has values of different lengths, which an array does \
             not have; a table has them: choose another name for it, such as `.b2z`"
        );
    }
    let rows = match rows {
        Some(rows) => rows,
        None => {
            let mut rows = 0;
            piped(reader, |batch| {
                rows += batch?.num_rows() as u64;
                Ok(())
            })?;
            rows
        }
    };
    let empty = array_of(&RecordBatch::new_empty(schema))?;
    let dtype = empty.dtype().cloned().ok_or_else(|| anyhow!("its items have no dtype"))?;
    let shape = [&[rows][..], &empty.shape()[1..]].concat();
    let header = Header { dtype, shape, fortran_order: false };
    let (layout, dtype) = (header.layout(), header.dtype);
    let bytes = Bytes { reader: open()?.0, bytes: Vec::new(), at: 0 };
    Ok((dtype, RawItems::of_stream(Box::new(bytes), layout)?))
}

/// Whether all values of a type have the same size.
fn has_size(data_type: &DataType) -> bool {
    match data_type {
        DataType::Struct(fields) => fields.iter().all(|field| has_size(field.data_type())),
        DataType::FixedSizeList(item, _) => has_size(item.data_type()),
        DataType::FixedSizeBinary(_) | DataType::Boolean => true,
        other => other.is_primitive(),
    }
}

/// The array of a batch, in memory and without compression.
fn array_of(batch: &RecordBatch) -> Result<NDArray> {
    let builder = NDArray::builder().cparams(CParams::new().level(0));
    Ok(match batch.schema_ref().fields().iter().as_slice() {
        [field] if field.name() == VALUE => from_arrow(builder, field, batch.column(0))?,
        _ => from_record_batch(builder, batch)?,
    })
}

/// The bytes of the items of batches, in C order.
struct Bytes {
    reader: Reader,
    bytes: Vec<u8>,
    at: usize,
}

impl Read for Bytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.bytes.len() {
            let Some(batch) = guarded(|| Ok(self.reader.next())).map_err(io::Error::other)? else {
                return Ok(0);
            };
            let array = array_of(&batch.map_err(io::Error::other)?).map_err(io::Error::other)?;
            self.bytes = array.read::<blosc2::RawItems>(..).map_err(io::Error::other)?.0;
            self.at = 0;
        }
        let len = buffer.len().min(self.bytes.len() - self.at);
        buffer[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
        self.at += len;
        Ok(len)
    }
}

/// Creates a table at a path from a file.
pub(crate) fn to_table(
    from: &Path,
    format: Format,
    names: &[String],
    path: &Path,
    compression: &crate::params::Compression,
) -> Result<()> {
    let size = from.metadata()?.len();
    let bar = crate::progress::bar(size);
    let (reader, rows) = guarded(|| open(from, format, names, &bar))?;
    let stored = Arc::new(stored_schema(&reader.schema()));
    let mut schema = Schema::try_from(&*stored)
        .map_err(|error| anyhow!("{error}; --columns selects other columns"))?;
    if !compression.is_default() {
        let params = compression.apply(CParams::new());
        let columns = schema.columns().map(|(name, column)| (name.to_owned(), column.clone()));
        let columns = columns.collect::<Vec<_>>().into_iter();
        schema = columns.fold(Schema::new(), |schema, (name, column)| {
            schema.column(name, column.cparams(&params))
        });
    }
    if let Some(rows) = rows {
        schema = schema.expected_rows(rows);
    }
    let mut table = CTable::create(path, &schema)?;
    table.set_threads(compression.threads())?;
    let mut appender = table.into_appender()?;
    let mut done = 0u64;
    piped(reader, |batch| {
        let batch = batch?;
        let step = lengths::stored_rows(&batch);
        for start in (0..batch.num_rows()).step_by(step) {
            let part = batch.slice(start, step.min(batch.num_rows() - start));
            appender.append_record_batch(&converted(part, &stored)?)?;
        }
        done += batch.num_rows() as u64;
        if let Some(rows) = rows {
            bar.set_position((size as f64 * done as f64 / rows.max(1) as f64) as u64);
        }
        Ok(())
    })?;
    appender.finish()?.finish()?;
    Ok(())
}

/// Writes rows of columns of a table to a file.
pub(crate) fn from_table(
    table: &CTable,
    names: &[&str],
    ranges: Vec<Range<u64>>,
    format: Format,
    out: &mut (dyn Write + Send),
    bar: &ProgressBar,
) -> Result<()> {
    let options = ReadOptions::new().columns(names.iter().copied());
    let batches = options.clone().row_ranges(ranges.clone()).read(table)?;
    let schema = batches.schema();
    // Rows of a batch: fewer if they would take too much memory.
    let mut most = ROWS;
    let mut batches = batches;
    let batches = std::iter::from_fn(move || {
        loop {
            let next = batches.next_row()?;
            match batches.next()? {
                Err(ArrowError::ExternalError(error)) if most > 1 && is_too_large(&*error) => {
                    most /= 2;
                    let left = ranges.iter().filter(|range| range.end > next);
                    let left = left.map(|range| range.start.max(next)..range.end);
                    match options.clone().row_ranges(left).batch_rows(most).read(table) {
                        Ok(smaller) => batches = smaller,
                        Err(error) => return Some(Err(ArrowError::ExternalError(error.into()))),
                    }
                }
                batch => return Some(batch),
            }
        }
    });
    write(schema, batches, format, out, bar)
}

/// Writes rows of an array to a file: each field becomes a column. Other arrays have one column, `value`.
pub(crate) fn from_array(
    array: &NDArray,
    rows: Range<u64>,
    format: Format,
    out: &mut (dyn Write + Send),
    bar: &ProgressBar,
) -> Result<()> {
    let has_fields = array.ndim() == 1 && array.dtype().is_some_and(|it| it.fields().is_some());
    let schema = match has_fields {
        true => to_record_batch(array, 0..0)?.schema(),
        false => Arc::new(ArrowSchema::new(vec![field(VALUE, array)?])),
    };
    let row = array.shape()[1..]
        .iter()
        .fold(array.typesize() as u64, |size, &it| size.saturating_mul(it));
    let chunk = array.chunk_shape()[0].max(1);
    // Whole chunks of at most 64 MiB, or one.
    let len = ((64 << 20) / row.saturating_mul(chunk).max(1)).max(1).saturating_mul(chunk);
    let of = Arc::clone(&schema);
    let starts = (rows.start..rows.end).step_by(usize::try_from(len).unwrap_or(usize::MAX));
    let batches = starts.map(move |start| {
        let part = start..rows.end.min(start + len);
        let external = |error: blosc2::Error| ArrowError::ExternalError(error.into());
        match has_fields {
            true => to_record_batch(array, part).map_err(external),
            false => {
                let items = to_arrow(array, part).map_err(external)?;
                RecordBatch::try_new(Arc::clone(&of), vec![items])
            }
        }
    });
    write(schema, batches, format, out, bar)
}

fn is_too_large(error: &(dyn std::error::Error + 'static)) -> bool {
    error.downcast_ref::<blosc2::Error>().is_some_and(|it| it.kind() == ErrorKind::TooLarge)
}

fn write(
    schema: SchemaRef,
    batches: impl Iterator<Item = Result<RecordBatch, ArrowError>> + Send,
    format: Format,
    mut out: &mut (dyn Write + Send),
    bar: &ProgressBar,
) -> Result<()> {
    let counted = |batch: &RecordBatch| bar.inc(batch.num_rows() as u64);
    match format {
        Format::Parquet => {
            let schema = &Arc::new(parquet_schema(&schema));
            let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
            let properties = WriterProperties::builder()
                .set_compression(compression)
                .set_max_row_group_bytes(Some(ROW_GROUP))
                .build();
            let mut writer = ArrowWriter::try_new(&mut out, Arc::clone(schema), Some(properties))?;
            piped(batches, |batch| {
                let batch = converted(batch?, schema)?;
                writer.write(&batch)?;
                counted(&batch);
                Ok(())
            })?;
            writer.close()?;
        }
        Format::Arrow => {
            let mut writer = FileWriter::try_new(&mut out, &schema)?;
            piped(batches, |batch| {
                let batch = batch?;
                writer.write(&batch)?;
                counted(&batch);
                Ok(())
            })?;
            writer.finish()?;
        }
        Format::Stream => {
            let mut writer = StreamWriter::try_new(&mut out, &schema)?;
            piped(batches, |batch| {
                let batch = batch?;
                writer.write(&batch)?;
                counted(&batch);
                Ok(())
            })?;
            writer.finish()?;
        }
        Format::Csv => bail!("a CSV file is written from values, not from record batches"),
    }
    Ok(())
}

/// Passes the items of an iterator to a function, while another thread computes the next two.
fn piped<T: Send>(
    items: impl Iterator<Item = T> + Send,
    mut sink: impl FnMut(T) -> Result<()>,
) -> Result<()> {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(1);
        let reading = scope.spawn(move || {
            guarded(|| {
                for item in items {
                    if sender.send(item).is_err() {
                        // The sink has failed.
                        break;
                    }
                }
                Ok(())
            })
        });
        let mut result = Ok(());
        for item in receiver {
            result = sink(item);
            if result.is_err() {
                break;
            }
        }
        // It ends, because the receiver is dropped.
        let read = reading.join().unwrap_or_else(|_| Err(anyhow!("the reader failed")));
        result.and(read)
    })
}

/// Runs a reader of untrusted files of another library. If it panics, this is an error.
fn guarded<T>(read: impl FnOnce() -> Result<T>) -> Result<T> {
    silence();
    QUIET.with(|quiet| quiet.set(true));
    let result = panic::catch_unwind(AssertUnwindSafe(read));
    QUIET.with(|quiet| quiet.set(false));
    result.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no reason");
        Err(anyhow!("its reader found it damaged: {text}"))
    })
}

thread_local! {
    /// Whether a panic of the thread is converted to an error, and prints nothing.
    static QUIET: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

/// Installs a hook that prints nothing for panics that are converted to errors.
fn silence() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !QUIET.with(std::cell::Cell::get) {
                before(info);
            }
        }));
    });
}
