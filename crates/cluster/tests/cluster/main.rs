//! A scheduler and two executors as processes on the loopback interface, with files on an S3 server.

#[path = "../../../datafusion/tests/common/mod.rs"]
mod common;
#[path = "../../../datafusion/tests/common/duckdb.rs"]
mod duckdb;
mod processes;
mod proxy;
mod queries;

use std::ffi::OsString;

/// A Python with the packages of the tests.
fn python() -> OsString {
    std::env::var_os("BLOSC2_TEST_PYTHON").expect(
        "BLOSC2_TEST_PYTHON is the path of a Python with blosc2 and moto; `cargo xtask integrations datafusion` sets it",
    )
}
