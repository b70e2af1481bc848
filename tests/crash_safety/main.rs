//! Crash safety: every call that changes files is the last one before the program dies or the power fails, or fails
//! itself, during each operation of super-chunks, arrays and stores.
//!
//! [`calls`] records the calls of one run of an operation. [`model`] builds all states of the files that a crash can
//! leave. The tests here open each of them, and assert the promises that the guide makes for each durability level
//! (`blosc2/guide/files.md`). [`tables`] does the same for appends to tables, whose files change one after the other.
//!
//! Only for 64-bit Linux: a program can define the functions of the C library there, and a system call takes an offset
//! as one argument. The code under test makes the same calls on all systems.

#![cfg(all(target_os = "linux", target_pointer_width = "64"))]

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod model;
mod operations;
mod promises;
mod tables;
