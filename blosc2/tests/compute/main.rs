//! Reductions, elementwise operations and selections of arrays, against NumPy and the crate `ndarray`.

#[path = "../../../tests/common/mod.rs"]
mod common;

mod bounds;
mod closures;
mod cumulative;
mod elementwise;
mod numpy;
mod reductions;
mod samples;
