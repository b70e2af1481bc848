//! Files, values and dtypes between Python and Rust, in both directions.

#[path = "../common/mod.rs"]
mod common;

mod arrays;
mod checksums;
mod defaults;
mod dtypes;
mod files;
mod gaps;
mod kept_files;
mod metadata;
mod search_indexes;
mod turns;
mod values;
