//! Threads, processes and interrupted writers, and the process around the library.

#[path = "../common/mod.rs"]
mod common;

mod concurrency;
mod crashes;
mod file_locks;
mod process;
mod unfinished;
