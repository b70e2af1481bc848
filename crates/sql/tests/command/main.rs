//! Runs the command `blosc2-sql`, and checks its output, its files and its exit status.

mod common;
mod messages;
mod queries;
#[cfg(feature = "remote")]
mod remote;
mod results;
