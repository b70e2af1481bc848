//! Arrays: created, changed, selected from and resized, against plain models and the C library.

#[path = "../../../tests/common/mod.rs"]
mod common;

mod behaviour;
mod constructors;
mod elements;
mod fields;
mod npy;
mod plain_model;
mod search_indexes;
mod selections;
mod shapes;
mod transactions;
mod whole_chunks;
