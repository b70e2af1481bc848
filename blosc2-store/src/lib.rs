#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod archive;
mod batch_array;
mod carrier;
mod ctable;
mod embed_store;
mod item_type;
mod key;
mod list_array;
mod object;
mod object_array;
mod tag;
mod tensor;
mod tree_store;

pub use batch_array::BatchArray;
pub use carrier::{Carrier, CarrierKind};
pub use ctable::{CTable, Column, ColumnKind, TimeUnit};
pub use embed_store::EmbedStore;
pub use item_type::{ItemKind, ItemType};
pub use list_array::ListArray;
pub use object::Object;
pub use object_array::ObjectArray;
pub use tensor::Tensor;
pub use tree_store::TreeStore;
