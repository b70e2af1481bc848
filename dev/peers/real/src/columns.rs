//! Parquet by the crate `parquet`: one column for each column of a table, or for each field of records.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader,
    ParquetRecordBatchReaderBuilder, RowSelection,
};
use parquet::arrow::arrow_writer::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::metadata::PageIndexPolicy;
use parquet::file::properties::WriterProperties;

use crate::library::{Items, Library, Reader};
use crate::set::{Part, Set};

#[derive(Debug, Clone, Copy)]
pub struct Parquet {
    /// `None` is Snappy.
    level: Option<i32>,
    /// Encodings for numbers without a dictionary, instead of the default.
    is_split: bool,
}

impl Parquet {
    pub fn all() -> [Self; 5] {
        let new = |level, is_split| Self { level, is_split };
        [
            new(None, false),
            new(Some(1), false),
            new(Some(9), false),
            new(Some(1), true),
            new(Some(9), true),
        ]
    }
}

/// A column of the file: its type, the place of its first item, and the distance between items, in bytes.
struct Column {
    name: String,
    dtype: String,
    start: usize,
    step: usize,
}

fn columns(set: &Set) -> Vec<Column> {
    if !set.fields.is_empty() {
        let field = |(name, dtype, start): &(String, String, usize)| Column {
            name: name.clone(),
            dtype: dtype.clone(),
            start: *start,
            step: set.itemsize,
        };
        return set.fields.iter().map(field).collect();
    }
    let (count, rows) = if set.is_table { (set.shape[0], rows(set)) } else { (1, 0) };
    let column = |index: usize| Column {
        name: format!("c{index}"),
        dtype: set.dtype.clone(),
        start: index * rows * set.itemsize,
        step: set.itemsize,
    };
    (0..count as usize).map(column).collect()
}

fn rows(set: &Set) -> usize {
    *set.shape.last().expect("an axis") as usize
}

fn kind(dtype: &str) -> (DataType, usize) {
    match &dtype[1..] {
        "f2" => (DataType::Float16, 2),
        "f4" => (DataType::Float32, 4),
        "f8" => (DataType::Float64, 8),
        "u1" => (DataType::UInt8, 1),
        "i2" => (DataType::Int16, 2),
        "u2" => (DataType::UInt16, 2),
        "i4" => (DataType::Int32, 4),
        text => {
            let len = text[1..].parse().expect("the length of a text");
            (DataType::FixedSizeBinary(len), len as usize)
        }
    }
}

fn batch(set: &Set) -> RecordBatch {
    let (mut fields, mut arrays) = (Vec::new(), Vec::<ArrayRef>::new());
    for Column { name, dtype, start, step } in columns(set) {
        let (kind, size) = kind(&dtype);
        let items = &set.items[start..];
        let bytes: Vec<u8> = match step == size {
            true => items[..rows(set) * size].to_vec(),
            false => items
                .chunks(step)
                .flat_map(|record| &record[..size.min(record.len())])
                .copied()
                .collect(),
        };
        let bytes = bytes[..rows(set) * size].to_vec();
        let data = ArrayData::builder(kind.clone()).len(rows(set)).add_buffer(Buffer::from(bytes));
        // Moves items that are not aligned.
        arrays.push(make_array(data.align_buffers(true).build().expect("a column")));
        fields.push(Field::new(name, kind, false));
    }
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).expect("columns")
}

/// The bytes of batches, as the set has them.
pub fn bytes(batches: &[RecordBatch], set: &Set) -> Vec<u8> {
    let mut all = vec![0; set.items.len()];
    for (index, Column { dtype, start, step, .. }) in columns(set).into_iter().enumerate() {
        let size = kind(&dtype).1;
        let mut at = start;
        for batch in batches {
            for item in column(batch, index, size).chunks(size) {
                all[at..at + size].copy_from_slice(item);
                at += step;
            }
        }
    }
    all
}

/// The bytes of a column.
fn column(batch: &RecordBatch, index: usize, size: usize) -> Vec<u8> {
    let data = batch.column(index).to_data();
    let start = data.offset() * size;
    data.buffers()[0][start..start + data.len() * size].to_vec()
}

impl Library for Parquet {
    fn name(&self) -> &'static str {
        "Parquet"
    }

    fn setting(&self) -> String {
        let codec = self.level.map_or("snappy".to_owned(), |level| format!("zstd {level}"));
        if self.is_split { format!("{codec} split or delta") } else { codec }
    }

    fn is_default(&self) -> bool {
        self.level == Some(1) && !self.is_split
    }

    fn write(&self, set: &Set, path: &Path) {
        let batch = batch(set);
        let codec = self.level.map_or(Compression::SNAPPY, |level| {
            Compression::ZSTD(ZstdLevel::try_new(level).expect("a level"))
        });
        let mut properties = WriterProperties::builder().set_compression(codec);
        if self.is_split {
            properties = properties.set_dictionary_enabled(false);
            for field in batch.schema().fields() {
                let encoding = match field.data_type() {
                    DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                        Encoding::BYTE_STREAM_SPLIT
                    }
                    DataType::FixedSizeBinary(_) => continue,
                    _ => Encoding::DELTA_BINARY_PACKED,
                };
                properties = properties.set_column_encoding(field.name().as_str().into(), encoding);
            }
        }
        let file = File::create(path).expect("a file");
        let mut writer =
            ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).expect("a writer");
        writer.write(&batch).expect("columns");
        writer.close().expect("a file");
    }

    fn open<'a>(&self, set: &'a Set, path: &Path, _: usize) -> Box<dyn Reader + 'a> {
        let file = File::open(path).expect("a file");
        let options = ArrowReaderOptions::new().with_page_index_policy(PageIndexPolicy::Required);
        let metadata = ArrowReaderMetadata::load(&file, options).expect("metadata");
        Box::new(Open { file, metadata, set })
    }

    fn has_threads(&self) -> bool {
        false
    }
}

struct Open<'a> {
    file: File,
    metadata: ArrowReaderMetadata,
    set: &'a Set,
}

impl Open<'_> {
    fn builder(&self) -> ParquetRecordBatchReaderBuilder<File> {
        let file = self.file.try_clone().expect("the file");
        ParquetRecordBatchReaderBuilder::new_with_metadata(file, self.metadata.clone())
    }
}

fn collect(reader: ParquetRecordBatchReader) -> Vec<RecordBatch> {
    reader.map(|batch| batch.expect("rows")).collect()
}

impl Reader for Open<'_> {
    fn all(&mut self) -> Items {
        let reader = self.builder().with_batch_size(1 << 16).build().expect("a reader");
        let batches = collect(reader);
        Items::Other(Box::new(move |set| bytes(&batches, set)))
    }

    fn part(&mut self, part: &Part) -> Option<Vec<u8>> {
        let rows = part.last().expect("an axis");
        let rows = rows.start as usize..rows.end as usize;
        let selection = RowSelection::from_consecutive_ranges(
            std::iter::once(rows.clone()),
            self::rows(self.set),
        );
        let builder = self.builder().with_row_selection(selection).with_batch_size(rows.len());
        let mask = match self.set.is_table {
            true => ProjectionMask::roots(builder.parquet_schema(), [part[0].start as usize]),
            false => ProjectionMask::all(),
        };
        let batches = collect(builder.with_projection(mask).build().expect("a reader"));
        let columns = columns(self.set);
        if self.set.fields.is_empty() {
            let size = self.set.itemsize;
            return Some(batches.iter().flat_map(|batch| column(batch, 0, size)).collect());
        }
        let mut bytes = vec![0; rows.len() * self.set.itemsize];
        for (index, Column { dtype, start, step, .. }) in columns.into_iter().enumerate() {
            let (size, mut at) = (kind(&dtype).1, start);
            for batch in &batches {
                for item in column(batch, index, size).chunks(size) {
                    bytes[at..at + size].copy_from_slice(item);
                    at += step;
                }
            }
        }
        Some(bytes)
    }
}
