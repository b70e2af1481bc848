//! Runs the command `blosc2`, and checks its output, its files and its exit status.

mod basics;
mod bench;
mod check_stores;
mod checksums;
mod common;
mod diff;
mod formats;
mod limits;
mod messages;
mod meta;
mod others;
mod outputs;
mod python;
mod repair;
mod stats;
mod storages;
mod stores;
mod streams;
mod terminal;
mod text;
mod typed;
mod view;
