#![doc = include_str!("../README.md")]
//!
//! # Errors
//! The methods of the containers refer to these lists, and add their own errors.
//!
//! ## Opening a container
//! - [`NotFound`](blosc2::ErrorKind::NotFound), [`Io`](blosc2::ErrorKind::Io): the file cannot be read;
//! - [`InvalidData`](blosc2::ErrorKind::InvalidData): it is neither a frame nor a zip file, is truncated or damaged, or
//!   the metalayers of the container are missing or invalid;
//! - [`Unfinished`](blosc2::ErrorKind::Unfinished): its writer was interrupted, or is still writing;
//! - [`Busy`](blosc2::ErrorKind::Busy): this program already has the file open for changing; see
//!   [access to a file](blosc2::OpenOptions#access-to-a-file-by-several-handles) and, for stores, [several
//!   writers](TreeStore#several-writers);
//! - [`TooLarge`](blosc2::ErrorKind::TooLarge): it needs more memory than the limits of
//!   [`OpenOptions`](blosc2::OpenOptions) allow;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): its format version is newer than this crate supports; its values
//!   are serialized with Arrow and this build does not have the feature `arrow`; its values are serialized neither with
//!   msgpack nor with Arrow; or its items are Python objects.
//!
//! ## Creating a container
//! - [`AlreadyExists`](blosc2::ErrorKind::AlreadyExists): the path exists; it is not changed;
//! - [`NotFound`](blosc2::ErrorKind::NotFound), [`Io`](blosc2::ErrorKind::Io): the file cannot be created;
//! - [`InvalidArgument`](blosc2::ErrorKind::InvalidArgument): a compression parameter is out of range;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): this build does not have the codec or a filter.
//!
//! For a container in memory, only `InvalidArgument` and `Unsupported` occur.
//!
//! ## Reading values
//! - [`InvalidData`](blosc2::ErrorKind::InvalidData): a chunk is damaged, its content is not msgpack, or a value is
//!   nested deeper than 128 levels;
//! - [`TooLarge`](blosc2::ErrorKind::TooLarge): the result needs more memory than
//!   [`OpenOptions::max_read`](blosc2::OpenOptions::max_read) allows;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): this build does not have the codec or a filter;
//! - [`Io`](blosc2::ErrorKind::Io): the file cannot be read.
//!
//! ## Changing a container
//! - [`ReadOnly`](blosc2::ErrorKind::ReadOnly): it was opened for reading;
//! - [`InvalidArgument`](blosc2::ErrorKind::InvalidArgument): a value has no msgpack representation that Python reads
//!   as the same value, see [`Value::to_msgpack`](blosc2::Value::to_msgpack); or other data follows the frame in its
//!   file;
//! - [`TooLarge`](blosc2::ErrorKind::TooLarge): a chunk would have more than 2<sup>31</sup> - 33 bytes;
//! - [`Unsupported`](blosc2::ErrorKind::Unsupported): this build does not have the codec or a filter;
//! - [`NotFound`](blosc2::ErrorKind::NotFound): the file was replaced or removed after it was opened;
//! - [`Busy`](blosc2::ErrorKind::Busy): another handle of this program is using the file; see
//!   [access to a file](blosc2::OpenOptions#access-to-a-file-by-several-handles);
//! - [`Io`](blosc2::ErrorKind::Io): the file cannot be written.
//!
//! # What changes survive
//! The [guide of `blosc2`](https://docs.rs/blosc2/latest/blosc2/guide/files/index.html#what-changes-survive) has a
//! table that states which events a change of a super-chunk survives: the death of the program, a power failure, a full
//! disk. Below, *as by default* and *as with `durable`* refer to the columns of that table. A change of a container
//! survives:
//!
//! | container | change | what it survives |
//! |---|---|---|
//! | [`ObjectArray`], [`BatchArray`], [`ListArray`] | each call is one change of its super-chunk; `ListArray` buffers rows until `flush` | as for a super-chunk with the same [options](blosc2::OpenOptions), for example `BatchArray::from_schunk(OpenOptions::new().write(true).durable(true).open(path)?)` |
//! | [`CTable`] in a directory | `append`, `delete_rows`, `add_column`, `rename_column`, `drop_column` | as by default. Each of these calls takes effect in one atomic step: its last step, or in `drop_column` its first step. `finish` syncs all changes to disk. If the program dies, unused data can remain in the files. The next change removes the data that an interrupted `append` left. If the program dies while it is writing to a file, Python rejects this file, and reads fail with `Unfinished`, until `open_rw` and `finish` are called |
//! | [`CTable`] in a directory | `update` | as by default, separately for each stored part of the column (values, list of distinct strings, mask of nulls). The strings of a `Utf8` column can be damaged if the program dies |
//! | [`CTable`] in a directory | `compact` | a read error: all rows are read before the first column is changed. Not the death of the program or a write error: some columns can then be compacted and others not, so that their rows no longer match |
//! | [`CTable`] in a zip file | all changes until `finish` | as with `durable`; before `finish`, the zip file does not change |
//! | [`EmbedStore`] | `insert` and `remove` of an entry | as for a super-chunk with the same options; `open_rw` and `create` set `locking` |
//! | [`TreeStore`] in a directory | `create`; for one entry each: `insert`, `create_array`, `remove`, `set_attribute`, `remove_attribute` | as with `durable`. A group is removed entry by entry |
//! | [`TreeStore`] in a directory | changes of an entry through the object that `edit` or `create_array` returns | as by default; after a call of `sync` on the super-chunk of the object, as the table of the guide states for `sync` |
//! | [`TreeStore`] in a zip file | all changes until `finish` | as with `durable`; before `finish`, the zip file does not change |
//! | [`TreeStore`] | `pack`, `unpack` | as with `durable` |
#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod archive;
#[cfg(feature = "arrow")]
#[cfg_attr(docsrs, doc(cfg(feature = "arrow")))]
pub mod arrow;
mod batch_array;
mod carrier;
mod ctable;
mod embed_store;
mod folder;
mod item_type;
mod key;
mod list_array;
mod members;
mod object;
mod object_array;
mod tag;
mod tensor;
mod tree_store;
mod work;

pub use batch_array::BatchArray;
#[cfg(feature = "derive")]
pub use blosc2_derive::Row;
pub use carrier::{Carrier, CarrierKind};
pub use ctable::{CTable, Cell, Column, ColumnKind, ColumnSpec, Data, Row, Rows, Schema, TimeUnit};
pub use embed_store::EmbedStore;
pub use item_type::{ItemKind, ItemType};
pub use list_array::ListArray;
pub use members::{Member, Members};
pub use object::Object;
pub use object_array::ObjectArray;
pub use tensor::Tensor;
pub use tree_store::TreeStore;
