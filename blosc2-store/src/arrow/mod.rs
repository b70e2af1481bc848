//! Arrow.
mod arrays;
mod batches;
mod dtypes;
pub(crate) mod ipc;
mod items;
mod metadata;
mod read;
mod types;
pub(crate) mod values;

pub use arrays::{field, from_arrow, from_record_batch, to_arrow, to_record_batch};
pub use read::{ReadOptions, RecordBatches};
