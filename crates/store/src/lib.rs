#![doc = include_str!("../README.md")]
//!
//! # Errors
//! The documentation of each method refers to one of the following lists, and lists additional errors of the method.
//!
//! ## Opening a container
//! - [`NotFound`](blosc2::ErrorKind::NotFound), [`Io`](blosc2::ErrorKind::Io): the file cannot be read;
//! - [`InvalidData`](blosc2::ErrorKind::InvalidData): the file is not a frame or zip file; the file is truncated or
//!   damaged; or a metalayer of the container is missing or invalid;
//! - [`Unfinished`](blosc2::ErrorKind::Unfinished): the program that writes the file was interrupted, or is still
//!   writing;
//! - [`Busy`](blosc2::ErrorKind::Busy): this program already has the file open for changing; see
//!   [access to a file](blosc2::OpenOptions#access-to-a-file-by-several-handles) and, for stores, [several
//!   writers](TreeStore#several-writers);
//! - [`TooLarge`](blosc2::ErrorKind::TooLarge): opening needs more memory than the limits of
//!   [`OpenOptions`](blosc2::OpenOptions) allow;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported), in one of these cases:
//!   - the format version of the container is newer than this crate supports;
//!   - the values are serialized with Arrow, and this build does not have the feature `arrow`;
//!   - the values are serialized in a format that is not msgpack or Arrow;
//!   - the items are Python objects.
//!
//! ## Creating a container
//! - [`AlreadyExists`](blosc2::ErrorKind::AlreadyExists): the path exists; the existing file is not changed;
//! - [`NotFound`](blosc2::ErrorKind::NotFound), [`Io`](blosc2::ErrorKind::Io): the file cannot be created;
//! - [`InvalidArgument`](blosc2::ErrorKind::InvalidArgument): a compression parameter is out of range;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): this build does not have the codec or a filter.
//!
//! For a container in memory, only `InvalidArgument` and `Unsupported` occur.
//!
//! ## Reading values
//! - [`InvalidData`](blosc2::ErrorKind::InvalidData): a chunk is damaged; the content of a chunk is not msgpack; or a
//!   value is nested deeper than 128 levels;
//! - [`TooLarge`](blosc2::ErrorKind::TooLarge): the result needs more memory than
//!   [`OpenOptions::max_read`](blosc2::OpenOptions::max_read) allows;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): this build does not have the codec or a filter;
//! - [`Io`](blosc2::ErrorKind::Io): the file cannot be read.
//!
//! ## Changing a container
//! - [`ReadOnly`](blosc2::ErrorKind::ReadOnly): the container was opened for reading;
//! - [`InvalidArgument`](blosc2::ErrorKind::InvalidArgument): Python would read a different value from msgpack, or
//!   would fail to read it, see [`Value::to_msgpack`](blosc2::Value::to_msgpack); or the file contains other data after
//!   the frame;
//! - [`TooLarge`](blosc2::ErrorKind::TooLarge): a chunk would have more than 2<sup>31</sup> - 33 bytes; or the default
//!   limits would not allow to read a value, a batch, or an entry of an embedded store: reading it would need more than
//!   1 GiB of memory, and more than 256 times its stored bytes. Each [value](blosc2::Value::count) counts as 64 bytes;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): this build does not have the codec or a filter;
//! - [`NotFound`](blosc2::ErrorKind::NotFound): the file was replaced or removed after it was opened;
//! - [`Busy`](blosc2::ErrorKind::Busy): another handle of this program is using the file; see
//!   [access to a file](blosc2::OpenOptions#access-to-a-file-by-several-handles);
//! - [`Io`](blosc2::ErrorKind::Io): the file cannot be written.
//!
//! # What changes survive
//! The guide of `blosc2` (page `files`, section "What changes survive") has a
//! table of the events that a change of a super-chunk survives: the death of the program, a power failure, a full disk.
//! The guide's table has the columns *default*, *sync* and *durable*. Below, the name of a column means that the change
//! survives the events in the same column of the guide's table. *default*: the program dies; a disk is full; a read or
//! write fails. *durable*: these events, and a power failure.
//!
//! | container | change | events that the change survives |
//! |---|---|---|
//! | [`ObjectArray`], [`BatchArray`], [`ListArray`] | each call is one change of its super-chunk; `ListArray` buffers rows until `flush` | the same events as a super-chunk with the same [options](blosc2::OpenOptions): *default*, or *durable* for `BatchArray::from_schunk(OpenOptions::new().write(true).durable(true).open(path)?)` |
//! | [`CTable`] in a directory | `append`, `delete_rows`, `add_column`, `rename_column`, `drop_column` | *default*. Each call takes effect in one atomic step: the first step of `drop_column`, the last step of the other calls. `finish` syncs all changes to disk. If the program dies, unused data can remain in the files; the next change removes the remains of an interrupted `append`. If the program dies while it is writing to a file, Python rejects this file, and reads fail with `Unfinished`. Calls of `open_rw` and `finish` repair the file |
//! | [`TableAppender`] | each write of collected rows, which is one `append` of the table | as `append`. If the program dies, collected rows are lost, and the table has all rows that were written before |
//! | [`CTable`] in a directory | `update` | *default*, separately for each stored part of the column (values, list of distinct strings, mask of nulls). The strings of a `Utf8` column can be damaged if the program dies |
//! | [`CTable`] in a directory | `compact` | a read error only, because all rows are read before the first column is changed. After the death of the program or a write error, possibly only some columns are compacted: the rows of different columns then no longer match |
//! | [`CTable`] in a zip file | all changes until `finish` | *durable*; before `finish`, the zip file does not change |
//! | [`EmbedStore`] | `insert` and `remove` of an entry | the same events as a super-chunk with the same options; `open_rw` and `create` set the option `locking` |
//! | [`TreeStore`] in a directory | `create`, and calls that change one entry: `insert`, `create_array`, `remove`, `set_attribute`, `remove_attribute` | *durable*. A group is removed entry by entry |
//! | [`TreeStore`] in a directory | changes of an entry through the object that `edit` or `create_array` returns | *default*; after a call of `sync` on the super-chunk of the object: *sync* |
//! | [`TreeStore`] in a zip file | all changes until `finish` | *durable*; before `finish`, the zip file does not change |
//! | [`TreeStore`] | `pack`, `unpack` | *durable* |
//!
//! # Changes by other handles
//! A handle for reading can become outdated, because another handle or program changes the file.
//!
//! | container | reads after such a change |
//! |---|---|
//! | [`CTable`] in a directory, [`BatchArray`], [`ListArray`] in batches | new items while the columns and the numbers of rows and items are the same; otherwise an error of the kind [`Busy`](blosc2::ErrorKind::Busy), until `refresh` is called |
//! | [`ObjectArray`], [`ListArray`] with the option `storage` set to `vl` | the new values; counts are those that the handle has read last, until `refresh` is called |
//! | [`EmbedStore`] | the entries that the handle has read last, until `refresh` is called |
//! | [`TreeStore`] in a directory | the entries that existed when the store was opened, with their new content; an entry that was removed is an error. Open the store again |
//! | [`TreeStore`] and [`CTable`] in a zip file | the file that was opened, also if another file has replaced it |
//! | [`Tensor`], [`Carrier`] | the shape, the dtype and the description that were read when the file was opened, and the new items. Open the file again |
//!
//! Changes by handles of the same program, and by programs that lock a file that this handle also locks, are always
//! detected. Other changes are detected by the length, the modification time and the header of the file. Another program
//! must not write at the same time as this handle reads, unless both lock the file. Tables are checked at the start of a
//! read: no other handle must compact a table meanwhile.
#![forbid(unsafe_code)]
// Helpers of changes are without use in builds that only read.
#![cfg_attr(not(feature = "c"), allow(dead_code))]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod archive;
#[cfg(feature = "arrow")]
pub mod arrow;
mod batch_array;
#[cfg(not(feature = "c"))]
pub mod blosc2;
mod carrier;
pub mod check;
mod ctable;
mod embed_store;
mod expression;
mod folder;
mod item_type;
mod key;
mod limits;
mod list_array;
mod members;
mod object;
mod object_array;
mod operands;
mod ranges;
#[cfg(feature = "c")]
mod search_indexes;
mod secrets;
mod tag;
mod tensor;
mod tree_store;
#[cfg(feature = "c")]
mod work;

pub use batch_array::BatchArray;
/// The crate `blosc2`, which defines types of this API, such as `CParams` and `Error`.
#[cfg(feature = "c")]
pub use blosc2;
#[cfg(feature = "derive")]
pub use blosc2_derive::Row;
pub use carrier::{Carrier, CarrierKind};
pub use ctable::{
    CTable, Column, ColumnDescription, Comparison, Condition, Rows, SortOrder, Summary,
    SummarySegment,
};
#[cfg(feature = "c")]
pub use ctable::{Cell, Data, Row, Schema, TableAppender};
pub use embed_store::EmbedStore;
pub use expression::Expression;
pub use item_type::{ItemKind, ItemType, TimeUnit};
pub use list_array::ListArray;
pub use members::{Member, Members};
pub use object::Object;
pub use object_array::ObjectArray;
pub use secrets::without_secrets;
pub use tensor::Tensor;
pub use tree_store::TreeStore;
