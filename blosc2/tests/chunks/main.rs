//! Chunks: compressed and decompressed, whole and in part, with every codec, filter and parameter.

#[path = "../../../tests/common/mod.rs"]
mod common;

mod buffers;
mod contexts;
mod dictionaries;
mod large;
mod parts;
mod places;
mod plugins;
mod raw_filters;
mod round_trips;
mod special;
mod user_defined;
mod variable_blocks;
