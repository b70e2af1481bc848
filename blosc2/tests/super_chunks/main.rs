//! Super-chunks: created, changed and read in every storage, against plain models.

#[path = "../../../tests/common/mod.rs"]
mod common;

mod metalayer_values;
mod rules;
mod sequences;
mod storages;
mod streams;
