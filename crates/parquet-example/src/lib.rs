//! Converts tables of Python blosc2 to Parquet files, and back.

use std::fs::File;
use std::path::Path;

use anyhow::Result;
use arrow_array::RecordBatchReader;
use blosc2_store::{CTable, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;

/// Writes all columns of a table to a new Parquet file.
pub fn table_to_parquet(table: &Path, file: &Path) -> Result<()> {
    let table = CTable::open(table)?;
    let batches = table.record_batches()?;
    let compression = Compression::ZSTD(ZstdLevel::try_new(5)?);
    let properties = WriterProperties::builder().set_compression(compression).build();
    let file = File::create_new(file)?;
    let mut writer = ArrowWriter::try_new(file, batches.schema(), Some(properties))?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.close()?;
    Ok(())
}

/// Writes all columns of a Parquet file to a new table.
pub fn parquet_to_table(file: &Path, table: &Path) -> Result<()> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(File::open(file)?)?;
    let rows = u64::try_from(builder.metadata().file_metadata().num_rows())?;
    let batches = builder.build()?;
    let schema = Schema::try_from(&*batches.schema())?.expected_rows(rows);
    let mut table = CTable::create(table, &schema)?;
    table.append_record_batches(batches)?;
    table.finish()?;
    Ok(())
}
