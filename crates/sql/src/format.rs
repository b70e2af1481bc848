//! The formats of results.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use blosc2::ErrorKind;
use blosc2_store::CTable;
use clap::ValueEnum;
use datafusion::arrow::array::{Array, ArrayRef, RecordBatch, StringBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::arrow::ipc::MetadataVersion;
use datafusion::arrow::ipc::writer::{FileWriter, IpcWriteOptions};
use datafusion::arrow::json::writer::{
    EncoderOptions, JsonArray, JsonFormat, LineDelimited, WriterBuilder, make_encoder,
};
use datafusion::arrow::util::display::FormatOptions;
use datafusion::arrow::util::pretty::pretty_format_batches_with_options;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::{Compression, ZstdLevel};
use datafusion::parquet::file::properties::WriterProperties;

use crate::UsageError;
use crate::batches::Batches;

/// The format of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Csv,
    Json,
    Ndjson,
    Parquet,
    Arrow,
    B2z,
}

/// The options of text and CSV.
#[derive(Debug)]
pub(crate) struct Text {
    pub(crate) rows: Option<Rows>,
    pub(crate) null: Option<String>,
}

/// A number of rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rows {
    Most(usize),
    All,
}

impl Rows {
    const DEFAULT: Self = Self::Most(40);
}

impl FromStr for Rows {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "all" => Ok(Self::All),
            text => {
                text.parse().map(Self::Most).map_err(|_| "expected a number or `all`".to_owned())
            }
        }
    }
}

impl Format {
    /// The format of the extension of a file.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let Some(extension) = path.extension() else { return Ok(Self::Text) };
        Ok(match extension.to_string_lossy().to_ascii_lowercase().as_str() {
            "txt" => Self::Text,
            "csv" => Self::Csv,
            "json" => Self::Json,
            "ndjson" | "jsonl" => Self::Ndjson,
            "parquet" => Self::Parquet,
            "arrow" => Self::Arrow,
            "b2z" => Self::B2z,
            other => {
                let path = path.display();
                let expected = "expected `.txt`, `.csv`, `.json`, `.ndjson`, `.jsonl`, `.parquet`, `.arrow` or `.b2z`";
                return Err(UsageError(format!(
                    "cannot write `.{other}` files ({path}): {expected}; --format sets the format"
                ))
                .into());
            }
        })
    }

    pub(crate) fn is_binary(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow | Self::B2z)
    }

    /// Fails if the columns have names that the format cannot express.
    pub(crate) fn check(self, schema: &Schema) -> Result<()> {
        if matches!(self, Self::Text | Self::Csv) {
            return Ok(());
        }
        let mut names = HashSet::new();
        match schema.fields().iter().find(|field| !names.insert(field.name())) {
            Some(field) => {
                bail!("two columns are named `{}`: rename one of them with AS", field.name())
            }
            None => Ok(()),
        }
    }

    /// Writes the rows in any format except `B2z`.
    pub(crate) fn write(
        self,
        batches: &mut Batches,
        out: &mut (dyn Write + Send),
        text: &Text,
    ) -> Result<()> {
        match self {
            Self::Text => write_text(batches, out, text),
            Self::Csv => {
                let null = text.null.clone().unwrap_or_default();
                let mut writer = csv::WriterBuilder::new().with_null(null).build(out);
                // The line of names, also without rows.
                writer.write(&flat(&RecordBatch::new_empty(batches.schema()))?)?;
                while let Some(batch) = batches.next()? {
                    writer.write(&flat(&batch)?)?;
                }
                Ok(())
            }
            Self::Json => {
                write_json::<JsonArray>(batches, out)?;
                Ok(writeln!(out)?)
            }
            Self::Ndjson => write_json::<LineDelimited>(batches, out),
            Self::Parquet => {
                let properties = WriterProperties::builder()
                    .set_compression(Compression::ZSTD(ZstdLevel::default()))
                    .build();
                let mut writer = ArrowWriter::try_new(out, batches.schema(), Some(properties))?;
                while let Some(batch) = batches.next()? {
                    writer.write(&batch)?;
                }
                writer.close()?;
                Ok(())
            }
            Self::Arrow => {
                let empty = plain(&RecordBatch::new_empty(batches.schema()))?;
                // DataFusion reads only files with this alignment from object stores.
                let options = IpcWriteOptions::try_new(8, false, MetadataVersion::V5)?;
                let schema = empty.schema_ref();
                let mut writer = FileWriter::try_new_with_options(out, schema, options)?;
                while let Some(batch) = batches.next()? {
                    writer.write(&plain(&batch)?)?;
                }
                Ok(writer.finish()?)
            }
            Self::B2z => bail!("a table is no stream of bytes"),
        }
    }
}

/// Writes the rows to a new table.
pub(crate) fn write_table(path: &Path, batches: &mut Batches) -> Result<()> {
    let failed = |error: blosc2::Error| {
        let hint = match error.kind() {
            ErrorKind::Unsupported => {
                "; CAST in the query converts a column, such as a date to TIMESTAMP"
            }
            _ => "",
        };
        anyhow!("cannot write a table: {error}{hint}")
    };
    let schema = blosc2_store::Schema::try_from(&*batches.schema()).map_err(failed)?;
    let table = CTable::create(path, &schema).map_err(failed)?;
    let mut rows = table.into_appender().map_err(failed)?;
    while let Some(batch) = batches.next()? {
        rows.append_record_batch(&batch).map_err(failed)?;
    }
    rows.finish().and_then(|mut table| table.finish()).map_err(failed)
}

fn write_text(batches: &mut Batches, out: &mut dyn Write, text: &Text) -> Result<()> {
    let limit = text.rows.unwrap_or(Rows::DEFAULT);
    let mut left = match limit {
        Rows::Most(rows) => rows,
        Rows::All => usize::MAX,
    };
    // The names of the columns, also without rows.
    let mut shown = vec![RecordBatch::new_empty(batches.schema())];
    let mut is_cut = false;
    while !is_cut && let Some(batch) = batches.next()? {
        is_cut = batch.num_rows() > left;
        let rows = batch.num_rows().min(left);
        shown.push(batch.slice(0, rows));
        left -= rows;
    }
    batches.end();
    let null = text.null.as_deref().unwrap_or("NULL");
    let options = FormatOptions::default().with_display_error(true).with_null(null);
    let table = pretty_format_batches_with_options(&shown, &options)?.to_string();
    // Control characters could move the cursor of a terminal.
    let hidden = |each: char| each.is_control() && each != '\n';
    writeln!(out, "{}", table.replace(hidden, "\u{fffd}"))?;
    if let (true, Rows::Most(rows)) = (is_cut, limit) {
        writeln!(out, "The first {rows} rows; `--rows N` or `--rows all` prints more.")?;
    }
    Ok(())
}

fn write_json<F: JsonFormat>(batches: &mut Batches, out: &mut dyn Write) -> Result<()> {
    let mut writer = WriterBuilder::new().with_explicit_nulls(true).build::<_, F>(out);
    while let Some(batch) = batches.next()? {
        writer.write(&batch)?;
    }
    Ok(writer.finish()?)
}

/// Converts lists and structures to JSON as text, for CSV.
fn flat(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    convert(batch, |field, array| {
        if !array.data_type().is_nested() {
            return Ok(Arc::clone(array));
        }
        let options = EncoderOptions::default().with_explicit_nulls(true);
        let mut encoder = make_encoder(field, array, &options)?;
        let (mut texts, mut bytes) = (StringBuilder::new(), Vec::new());
        for index in 0..array.len() {
            if encoder.is_null(index) {
                texts.append_null();
                continue;
            }
            bytes.clear();
            encoder.encode(index, &mut bytes);
            texts.append_value(String::from_utf8_lossy(&bytes));
        }
        Ok(Arc::new(texts.finish()))
    })
}

/// Converts dictionaries to their values: an Arrow file has one dictionary for each column, a result has one for each
/// batch.
fn plain(batch: &RecordBatch) -> Result<RecordBatch, ArrowError> {
    convert(batch, |_, array| match array.data_type() {
        DataType::Dictionary(_, values) => cast(array, values),
        _ => Ok(Arc::clone(array)),
    })
}

/// Converts the columns of a batch.
fn convert(
    batch: &RecordBatch,
    column: impl Fn(&Arc<Field>, &ArrayRef) -> Result<ArrayRef, ArrowError>,
) -> Result<RecordBatch, ArrowError> {
    let schema = batch.schema_ref();
    let pairs = schema.fields().iter().zip(batch.columns());
    let columns =
        pairs.map(|(field, array)| column(field, array)).collect::<Result<Vec<_>, _>>()?;
    let fields = schema.fields().iter().zip(&columns);
    let fields = fields.map(|(field, array)| {
        Field::new(field.name(), array.data_type().clone(), field.is_nullable())
    });
    let schema = Schema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
    let schema: SchemaRef = Arc::new(schema);
    let options =
        datafusion::arrow::array::RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema, columns, &options)
}
