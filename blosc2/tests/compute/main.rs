//! Reductions, elementwise operations and selections of arrays, against NumPy and the crate `ndarray`.

#[path = "../../../tests/common/mod.rs"]
mod common;

mod along_axes;
mod bounds;
mod cases;
mod closures;
mod costs;
mod creation;
mod cumulative;
mod elementwise;
mod numpy;
mod products;
mod reductions;
mod samples;
mod shapes;
mod sorting;
mod statistics;
