//! Runs the command `blosc2-sql`, and checks its output, its files and its exit status.

mod common;
mod messages;
mod queries;
mod remote;
mod results;
