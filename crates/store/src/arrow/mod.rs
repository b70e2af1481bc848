//! Conversion of tables, arrays and batches to and from Arrow arrays and record batches. This module needs the feature
//! `arrow`.
//!
//! | conversion | functions |
//! |---|---|
//! | a table to record batches | [`CTable::record_batches`](crate::CTable::record_batches), [`ReadOptions`] |
//! | record batches to a table | [`Schema::try_from`](crate::Schema), [`CTable::append_record_batches`](crate::CTable::append_record_batches), [`TableAppender`](crate::TableAppender), [`CTable::append_record_batch`](crate::CTable::append_record_batch) |
//! | an array with items of any type to or from an Arrow array | [`to_arrow`], [`from_arrow`], [`field`] |
//! | an array of structures to or from a record batch | [`to_record_batch`], [`from_record_batch`] |
//! | a batch that is serialized with Arrow to or from an Arrow array | [`BatchArray::new_arrow_in`](crate::BatchArray::new_arrow_in), [`arrow_batch`](crate::BatchArray::arrow_batch), [`append_arrow`](crate::BatchArray::append_arrow), [`arrow_batches`](crate::BatchArray::arrow_batches) |
//!
//! The Arrow types in this module are defined by the crates `arrow-array` and `arrow-schema`, version 59, the
//! version of DataFusion 55. The crate `arrow` re-exports them.
//!
//! # Parquet and DataFusion
//! [`RecordBatches`] implements [`arrow_array::RecordBatchReader`]: it is an iterator over record batches with a
//! schema. Most libraries for Arrow accept this trait. The crate `parquet` writes a table to a file:
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
//! The crate `parquet` also reads the file, to create a table:
//!
//! ```ignore
//! let batches = ParquetRecordBatchReaderBuilder::try_new(File::open("events.parquet")?)?.build()?;
//! let mut table = CTable::create("events.b2d", &Schema::try_from(&*batches.schema())?)?;
//! table.append_record_batches(batches)?;
//! table.finish()?;
//! ```
//! The batches can have any size: [`append_record_batches`](crate::CTable::append_record_batches) collects their rows, and
//! compresses each chunk once. To change batches before they are appended, use a
//! [`TableAppender`](crate::TableAppender) in a loop.
//!
//! The crate `parquet-example` in the directory `crates` of the repository is a complete program for both
//! conversions.
//!
//! The crate `blosc2-datafusion` runs SQL over tables in files. For a query over another table, read the columns that
//! the query uses:
//!
//! ```ignore
//! let batches = ReadOptions::new().columns(["day", "price"]).read(&table)?.collect::<Result<Vec<_>, _>>()?;
//! let context = SessionContext::new();
//! context.register_batch("events", concat_batches(&batches[0].schema(), &batches)?)?;
//! context.sql("SELECT day, avg(price) FROM events GROUP BY day").await?.show().await?;
//! ```
//!
//! # Types
//! Exported tables have the same types as those exported by Python's `CTable.to_arrow`, with two exceptions: columns of
//! arrays get an extension type; and columns of complex numbers, which Python does not export, are exported.
//!
//! | [kind of the column](crate::ItemKind) | Arrow type | other Arrow types for which `Schema::try_from` creates this kind |
//! |---|---|---|
//! | `Int8` to `Int64`, `UInt8` to `UInt64`, `Float32`, `Float64` | the type of the same name | |
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
//! | `Object`, `Computed`, and unknown kinds | none: reading such a column fails with an error that contains its name; select other columns | |
//!
//! Null rows are null in Arrow for every representation of nulls in the table. Items of lists and fields of structures
//! are nullable in the exported types, as in Python.
//!
//! "With metadata" means: the Arrow field has the metadata key `blosc2:kind` with the name of the kind, such as
//! `string[9]`. From such a field, [`Schema::try_from`](crate::Schema) creates a column of the same kind. Without this
//! key, strings become `Utf8` columns, and bytes become `VlBytes` columns.
//!
//! | dtype of an array | Arrow type |
//! |---|---|
//! | `b1` | `Boolean` |
//! | `i1` to `i8`, `u1` to `u8`, `f2` to `f8`, in both byte orders | the number type of the same kind and size |
//! | `c8`, `c16` | `FixedSizeList` of two floats, with metadata |
//! | `M8[s]`, `M8[ms]`, `M8[us]`, `M8[ns]` | `Timestamp` without time zone |
//! | `m8[s]`, `m8[ms]`, `m8[us]`, `m8[ns]` | `Duration` |
//! | `M8[D]` | `Date32` |
//! | `S`, `U` | `Binary`, `Utf8`, without trailing zeros |
//! | `V` | `FixedSizeBinary` |
//! | structures | `Struct` |
//! | sub-arrays, and all axes of an array after the first axis | `FixedSizeList` with the extension type `arrow.fixed_shape_tensor` |
//!
//! # What is copied
//! Reading a table:
//! - Numbers, timestamps, arrays and the bytes of `Utf8` columns are decompressed directly into the buffers of the
//!   Arrow arrays. If there are deleted rows in the selected range, the data are copied once.
//! - Booleans are packed into bits, and fixed-length strings are converted.
//! - `VlString`, `VlBytes`, `List` and `Struct` columns are decoded value by value.
//! - All batches of a reader share the strings of a `Dictionary` column.
//!
//! Writing a table:
//! - Numbers, timestamps, arrays and the bytes of strings are compressed from the buffers of the Arrow arrays, without
//!   a copy.
//! - Lists, structures and byte strings are converted value by value.
//!
//! # Untrusted input
//! Serialized Arrow data can be untrusted. Before decoding, the lengths in the data are compared with the number of
//! available bytes. The content is validated: invalid data, such as offsets out of bounds or invalid UTF-8, leads to
//! [`ErrorKind::InvalidData`](blosc2::ErrorKind::InvalidData).

mod arrays;
mod batches;
mod dtypes;
pub(super) mod ipc;
mod items;
mod metadata;
mod read;
mod types;
pub(super) mod values;
mod write;

pub use arrays::{
    field, from_arrow, from_record_batch, item_field, items_to_arrow, to_arrow, to_record_batch,
};
pub use read::{ReadOptions, RecordBatches};
