//! The lengths that Arrow and Parquet files state. Their readers allocate them before they read, and memory that the
//! system does not have ends the process, so that they are checked before.

use std::fs::File;
use std::path::Path;

use anyhow::{Result, anyhow, bail, ensure};
use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_ipc::{Block, Message, root_as_footer, root_as_message};
use arrow_schema::DataType;
use blosc2_format::ReadAt;
use parquet::basic::Type;
use parquet::column::page::Page;
use parquet::file::reader::{FileReader, SerializedFileReader};

/// Maximum bytes of a batch of an Arrow file after decompression.
const MOST: u64 = 4 << 30;
/// Bytes of a batch that is read or stored at once, if a row has fewer.
const BATCH: u64 = 256 << 20;
/// Maximum bytes of a value of a Parquet file.
const MAX_VALUE: u64 = 1 << 30;

/// Fails if an Arrow file states lengths that are not in the file, or too large for memory.
pub(crate) fn check_file(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let size = file.size()?;
    let Some(end) = size.checked_sub(10) else { return Ok(()) };
    let len = file.read_vec_at(end, 4)?;
    let len = u64::from(u32::from_le_bytes(len[..].try_into()?));
    ensure!(len <= end, "its footer has {len} bytes, and the file only {size}");
    let footer = file.read_vec_at(end - len, len)?;
    let footer = root_as_footer(&footer).map_err(|error| anyhow!("its footer: {error}"))?;
    let blocks = footer.dictionaries().into_iter().chain(footer.recordBatches());
    blocks.flat_map(|blocks| blocks.iter()).try_for_each(|block| check_block(&file, size, block))
}

fn check_block(file: &File, size: u64, block: &Block) -> Result<()> {
    let (at, len) = (block.offset(), i64::from(block.metaDataLength()));
    let numbers = [at, len, block.bodyLength()].map(u64::try_from);
    let [Ok(at), Ok(len), Ok(body)] = numbers else { bail!("a block has a negative length") };
    let left = size.saturating_sub(at);
    ensure!(len <= left, "the metadata of a block have {len} bytes, and {left} are left");
    let start = file.read_vec_at(at, len)?;
    let skipped = if start.starts_with(&[0xff; 4]) { 8 } else { 4 };
    let message = root_as_message(start.get(skipped..).unwrap_or_default());
    let message = message.map_err(|error| anyhow!("a block is damaged: {error}"))?;
    check_body(file, size, at + len, body, &message)
}

/// Fails if an Arrow stream states lengths that are not in the file, or too large for memory.
pub(crate) fn check_stream(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    let (mut at, size) = (0, file.size()?);
    let number = |at: u64| -> Result<u32> {
        Ok(u32::from_le_bytes(file.read_vec_at(at, 4)?[..].try_into()?))
    };
    while size.saturating_sub(at) >= 8 {
        let mut len = number(at)?;
        at += 4;
        if len == u32::MAX {
            len = number(at)?;
            at += 4;
        }
        if len == 0 {
            return Ok(());
        }
        let left = size - at;
        ensure!(u64::from(len) <= left, "a message has {len} bytes, and {left} are left");
        let start = file.read_vec_at(at, len.into())?;
        let message = root_as_message(&start);
        let message = message.map_err(|error| anyhow!("a message is damaged: {error}"))?;
        at += u64::from(len);
        let body = u64::try_from(message.bodyLength())
            .map_err(|_| anyhow!("a message has a negative length"))?;
        check_body(&file, size, at, body, &message)?;
        at += body;
    }
    Ok(())
}

/// Checks the bytes after a message, from `at` on.
fn check_body(file: &File, size: u64, at: u64, len: u64, message: &Message<'_>) -> Result<()> {
    let left = size.saturating_sub(at);
    ensure!(len <= left, "a message has {len} bytes of items, and {left} are left in the file");
    let batch = match message.header_as_dictionary_batch() {
        Some(dictionary) => dictionary.data(),
        None => message.header_as_record_batch(),
    };
    let mut total = len;
    let is_compressed = batch.is_some_and(|batch| batch.compression().is_some());
    for buffer in batch.and_then(|batch| batch.buffers()).into_iter().flatten() {
        let (Ok(start), Ok(stored)) =
            (u64::try_from(buffer.offset()), u64::try_from(buffer.length()))
        else {
            bail!("a buffer has a negative length");
        };
        let is_inside = start.checked_add(stored).is_some_and(|end| end <= len);
        ensure!(is_inside, "a buffer has {stored} bytes at {start} of a message with {len}");
        if !is_compressed || stored == 0 {
            continue;
        }
        ensure!(stored >= 8, "a compressed buffer has {stored} bytes, expected at least 8");
        let prefix = file.read_vec_at(at + start, 8)?;
        // -1 is a buffer without compression.
        let plain = i64::from_le_bytes(prefix[..].try_into()?);
        total = total.saturating_add(u64::try_from(plain).unwrap_or(0));
    }
    ensure!(total <= MOST, "a batch has {total} bytes, expected at most {MOST}");
    Ok(())
}

/// The rows of the batches of a Parquet file, at most `most`: fewer if values are long. A dictionary repeats a long value
/// in any number of rows.
pub(crate) fn parquet_rows(path: &Path, most: usize) -> Result<usize> {
    let reader = SerializedFileReader::new(File::open(path)?)?;
    let mut widest = 0u64;
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        let rows = u64::try_from(group.metadata().num_rows())?.max(1);
        let mut row = 0u64;
        for (at, column) in group.metadata().columns().iter().enumerate() {
            let width = match column.column_type() {
                Type::BYTE_ARRAY => {
                    let all = u64::try_from(column.uncompressed_size())?;
                    let page = group.get_column_page_reader(at)?.get_next_page()?;
                    longest(page).max(all / u64::try_from(column.num_values())?.max(1))
                }
                Type::FIXED_LEN_BYTE_ARRAY => u64::try_from(column.column_descr().type_length())?,
                _ => 8,
            };
            let name = column.column_path();
            ensure!(
                width <= MAX_VALUE,
                "the column `{name}` has a value of {width} bytes, expected at most {MAX_VALUE}"
            );
            let items = u64::try_from(column.num_values())?.div_ceil(rows);
            row = row.saturating_add(width.saturating_mul(items));
        }
        widest = widest.max(row);
    }
    Ok(rows_of(widest, most))
}

fn rows_of(row: u64, most: usize) -> usize {
    usize::try_from(BATCH / row.max(1)).map_or(most, |rows| rows.clamp(1, most))
}

/// The length of the longest value of a dictionary; 0 for other pages.
fn longest(page: Option<Page>) -> u64 {
    let Some(Page::DictionaryPage { buf, .. }) = page else { return 0 };
    let (mut left, mut longest) = (&buf[..], 0);
    while let Some((len, rest)) = left.split_first_chunk() {
        let len = u32::from_le_bytes(*len);
        // The reader reports a value that is cut.
        let Some(rest) = rest.get(len as usize..) else { break };
        (left, longest) = (rest, longest.max(len));
    }
    longest.into()
}

/// The rows of a batch that are converted and stored at once, at most all: a dictionary or a view can repeat a long value.
pub(crate) fn stored_rows(batch: &RecordBatch) -> usize {
    let row = batch.columns().iter().map(|column| widest(column)).fold(0, u64::saturating_add);
    rows_of(row, batch.num_rows().max(1))
}

/// The bytes of the longest value of a column.
fn widest(column: &dyn Array) -> u64 {
    fn of<O: Copy + TryInto<u64>>(offsets: &[O]) -> u64 {
        let at = |offset: &O| (*offset).try_into().unwrap_or(0);
        offsets.windows(2).map(|pair| at(&pair[1]).saturating_sub(at(&pair[0]))).max().unwrap_or(0)
    }
    // The lower half of a view is its length.
    let views =
        |views: &[u128]| u64::from(views.iter().map(|view| *view as u32).max().unwrap_or(0));
    match column.data_type() {
        DataType::Utf8 => of::<i32>(column.as_string::<i32>().offsets()),
        DataType::LargeUtf8 => of::<i64>(column.as_string::<i64>().offsets()),
        DataType::Binary => of::<i32>(column.as_binary::<i32>().offsets()),
        DataType::LargeBinary => of::<i64>(column.as_binary::<i64>().offsets()),
        DataType::Utf8View => views(column.as_string_view().views()),
        DataType::BinaryView => views(column.as_binary_view().views()),
        DataType::FixedSizeBinary(size) => u64::try_from(*size).unwrap_or(0),
        DataType::Dictionary(..) => widest(column.as_any_dictionary().values()),
        DataType::Struct(_) => {
            let columns = column.as_struct().columns().iter();
            columns.map(|column| widest(column)).fold(0, u64::saturating_add)
        }
        other => other.primitive_width().unwrap_or(8) as u64,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, DictionaryArray, Int32Array, Int64Array, LargeStringArray, StringViewArray,
    };
    use arrow_ipc::CompressionType;
    use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
    use parquet::arrow::ArrowWriter;

    use super::*;

    fn repeated(rows: usize, len: usize) -> DictionaryArray<Int32Type> {
        let values = Arc::new(LargeStringArray::from(vec!["x".repeat(len)]));
        DictionaryArray::new(Int32Array::from(vec![0; rows]), values)
    }

    fn batch(column: ArrayRef) -> RecordBatch {
        RecordBatch::try_from_iter([("a", column)]).unwrap()
    }

    #[test]
    fn long_values_are_in_small_batches() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.parquet");
        for (len, expected) in [(1_000_000, 268), (1000, 65_536)] {
            let batch = batch(Arc::new(repeated(300, len)));
            let file = File::create(&path).unwrap();
            let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
            writer.write(&batch).unwrap();
            writer.close().unwrap();
            assert_eq!(parquet_rows(&path, 65_536).unwrap(), expected);
        }
        assert_eq!(stored_rows(&batch(Arc::new(repeated(1000, 1_000_000)))), 268);
        let views = StringViewArray::from(vec!["x".repeat(1_000_000); 300]);
        assert_eq!(stored_rows(&batch(Arc::new(views))), 268);
        assert_eq!(stored_rows(&batch(Arc::new(Int64Array::from(vec![1; 1000])))), 1000);
    }

    /// Copies of bytes with another number in place of one.
    fn patched(bytes: &[u8], number: i64, by: i64) -> Vec<Vec<u8>> {
        let at = bytes.windows(8).enumerate().filter(|(_, it)| **it == number.to_le_bytes());
        let copies = at.map(|(at, _)| {
            let mut copy = bytes.to_vec();
            copy[at..at + 8].copy_from_slice(&by.to_le_bytes());
            copy
        });
        copies.collect()
    }

    #[test]
    fn lengths_outside_a_file_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let batch = batch(Arc::new(Int64Array::from((0..1000).collect::<Vec<_>>())));
        for codec in [None, Some(CompressionType::ZSTD), Some(CompressionType::LZ4_FRAME)] {
            let options = || IpcWriteOptions::default().try_with_compression(codec).unwrap();
            let (mut stream, mut file) = (Vec::new(), Vec::new());
            let mut writer =
                StreamWriter::try_new_with_options(&mut stream, &batch.schema(), options())
                    .unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            drop(writer);
            let mut writer =
                FileWriter::try_new_with_options(&mut file, &batch.schema(), options()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            drop(writer);
            for (bytes, check) in
                [(stream, check_stream as fn(&Path) -> Result<()>), (file, check_file)]
            {
                std::fs::write(&path, &bytes).unwrap();
                check(&path).unwrap();
                for by in [1 << 36, 1 << 45, 1 << 62, i64::MAX] {
                    let copies = patched(&bytes, 8000, by);
                    assert!(!copies.is_empty());
                    let refused = copies.iter().filter(|copy| {
                        std::fs::write(&path, copy).unwrap();
                        check(&path).is_err()
                    });
                    // The number is also an item, or states the length twice.
                    assert!(refused.count() > 0, "{codec:?} {by}");
                }
                // Whatever is cut is an error or the end, not a panic.
                for end in 0..bytes.len().min(700) {
                    std::fs::write(&path, &bytes[..end]).unwrap();
                    let _ = check(&path);
                }
            }
        }
    }
}
