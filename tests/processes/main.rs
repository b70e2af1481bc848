//! Threads, processes and interrupted writers, and the process around the library.

#[path = "../common/mod.rs"]
mod common;

mod access;
mod concurrency;
mod crashes;
mod file_locks;
#[cfg(unix)]
mod many_handles;
mod process;
mod recovery;
mod unfinished;
