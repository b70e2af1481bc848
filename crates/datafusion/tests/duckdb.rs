//! SQL over tables of Python, tables of this project and arrays, compared with DuckDB over the same rows.
//!
//! The variable `BLOSC2_TEST_SEED` sets another seed, and `BLOSC2_TEST_QUERIES` another number of queries:
//!
//! ```sh
//! BLOSC2_TEST_SEED=7 BLOSC2_TEST_QUERIES=5000 cargo test --test duckdb
//! ```

mod common;
#[path = "common/duckdb.rs"]
mod duckdb;

#[tokio::test(flavor = "multi_thread")]
async fn queries_return_the_same_as_duckdb() {
    let sessions = [("1 partition", common::context(1)), ("4 partitions", common::context(4))];
    duckdb::compare(&sessions, None).await;
}
