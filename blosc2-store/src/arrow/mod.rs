//! Tables, arrays and batches as Arrow arrays and record batches, and back: the feature `arrow`.
//!
//! | from or to Arrow | functions |
//! |---|---|
//! | a table as record batches | [`CTable::record_batches`](crate::CTable::record_batches), [`ReadOptions`] |
//! | a table from record batches | [`Schema::try_from`](crate::Schema), [`CTable::append_record_batch`](crate::CTable::append_record_batch) |
//! | an array with items of any type as an Arrow array | [`to_arrow`], [`from_arrow`], [`field`] |
//! | an array of structures as a record batch | [`to_record_batch`], [`from_record_batch`] |
//! | batches that are serialized with Arrow | [`BatchArray::new_arrow_in`](crate::BatchArray::new_arrow_in), [`arrow_batch`](crate::BatchArray::arrow_batch), [`append_arrow`](crate::BatchArray::append_arrow), [`arrow_batches`](crate::BatchArray::arrow_batches) |
//!
//! The types are those of the crates `arrow-array` and `arrow-schema`, version 60, which the crate `arrow` re-exports.
//!
//! # Parquet and DataFusion
//! [`RecordBatches`] is an [`arrow_array::RecordBatchReader`], an iterator over record batches with a schema, which
//! most libraries for Arrow accept. With the crate `parquet`, a table becomes a file:
//!
//! ```ignore
//! let table = CTable::open("events.b2d")?;
//! let batches = table.record_batches()?;
//! let mut writer = ArrowWriter::try_new(File::create("events.parquet")?, batches.schema(), None)?;
//! for batch in batches {
//!     writer.write(&batch?)?;
//! }
//! writer.close()?;
//! ```
//! and a file becomes a table:
//!
//! ```ignore
//! let batches = ParquetRecordBatchReaderBuilder::try_new(File::open("events.parquet")?)?.build()?;
//! let mut table = CTable::create("events.b2d", &Schema::try_from(&*batches.schema())?)?;
//! for batch in batches {
//!     table.append_record_batch(&batch?)?;
//! }
//! table.finish()?;
//! ```
//! The crate `parquet-example` in the directory `integrations` of the repository is a program that does both, with a
//! test. DataFusion receives the batches of the columns that a query needs:
//!
//! ```ignore
//! let batches = ReadOptions::new().columns(["day", "price"]).read(&table)?.collect::<Result<Vec<_>, _>>()?;
//! let context = SessionContext::new();
//! context.register_batch("events", concat_batches(&batches[0].schema(), &batches)?)?;
//! context.sql("SELECT day, avg(price) FROM events GROUP BY day").await?.show().await?;
//! ```
//!
//! # Types
//! The types of exported tables are those of Python's `CTable.to_arrow`, except for columns of arrays, which get an
//! extension type, and of complex numbers, which Python does not export.
//!
//! | [kind of the column](crate::ColumnKind) | Arrow type | other Arrow types that are stored in such a column |
//! |---|---|---|
//! | `Int8` to `Int64`, `UInt8` to `UInt64`, `Float32`, `Float64` | the same | |
//! | `Bool` | `Boolean` | |
//! | `Timestamp` | `Timestamp` with its unit and time zone | |
//! | `Complex64`, `Complex128` | `FixedSizeList` of two `Float32` or `Float64`, with metadata | |
//! | `String`, `VlString` | `Utf8`, with metadata | `LargeUtf8`, `Utf8View`, `Dictionary` |
//! | `Utf8` | `LargeUtf8` | `Utf8` and `Utf8View` without metadata |
//! | `Bytes` | `LargeBinary`, with metadata | `Binary`, `BinaryView`, `FixedSizeBinary` |
//! | `VlBytes` | `LargeBinary` | `Binary`, `BinaryView`, `FixedSizeBinary` |
//! | `Dictionary` | `Dictionary` of `Int32` and `Utf8` | `Dictionary` of any integer and `LargeUtf8` |
//! | `List` | `List` | `LargeList` |
//! | `Struct` | `Struct` | |
//! | `NDArray` | `FixedSizeList` with the extension type `arrow.fixed_shape_tensor` | `FixedSizeList` with the metadata `blosc2:ndarray_shape` of Python, or without |
//! | `Object`, `Computed`, and unknown kinds | none: reading such a column is an error that names it; select other columns | |
//!
//! Null rows are null in Arrow, regardless of how the table represents them. Items of lists and fields of structures
//! are nullable in the exported types, as in Python. "With metadata": the field has the key `blosc2:kind` with the name
//! of the kind, such as `string[9]`, so that the same kind is created from the schema; without it, strings become
//! `Utf8` and bytes `VlBytes`.
//!
//! | dtype of an array | Arrow type |
//! |---|---|
//! | `b1`, `i1` to `i8`, `u1` to `u8`, `f2` to `f8`, in both byte orders | the same number type, or `Boolean` |
//! | `c8`, `c16` | `FixedSizeList` of two floats, with metadata |
//! | `M8[s]`, `M8[ms]`, `M8[us]`, `M8[ns]`; `m8` | `Timestamp` without time zone; `Duration` |
//! | `M8[D]` | `Date32` |
//! | `S`, `U` | `Binary`, `Utf8`, without trailing zeros |
//! | `V` | `FixedSizeBinary` |
//! | structures | `Struct` |
//! | sub-arrays, and the other axes of arrays with several axes | `FixedSizeList` with the extension type `arrow.fixed_shape_tensor` |
//!
//! # What is copied
//! When numbers, timestamps, arrays and the bytes of `Utf8` columns are read, the chunks are decompressed directly into
//! the buffers of the Arrow arrays, unless rows between the selected ones are deleted. Booleans are packed into bits,
//! and strings of a fixed length are converted. `VlString`, `VlBytes`, `List` and `Struct` columns are decoded value by
//! value. All batches of a reader share the strings of a `Dictionary` column.
//!
//! When numbers, timestamps, arrays and the bytes of strings are written, the buffers of the Arrow arrays are
//! compressed without a copy. Lists, structures and byte strings are converted value by value.
//!
//! # Untrusted input
//! The lengths in serialized Arrow data are compared with the number of bytes before it is decoded, and its content is
//! validated. Invalid data, such as offsets out of bounds or invalid UTF-8, is
//! [`ErrorKind::InvalidData`](blosc2::ErrorKind::InvalidData).

mod arrays;
mod batches;
mod dtypes;
pub(crate) mod ipc;
mod items;
mod metadata;
mod read;
mod types;
pub(crate) mod values;
mod write;

pub use arrays::{field, from_arrow, from_record_batch, to_arrow, to_record_batch};
pub use read::{ReadOptions, RecordBatches};
