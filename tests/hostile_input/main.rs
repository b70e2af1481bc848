//! Damaged and malicious input, and wrong arguments: refused with an error, never a crash.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod chunks;
mod frames;
mod malformed;
mod sizes;
