//! The fuzz target of responses as an ordinary test; `tests/fuzz` has the others.

use std::path::Path;

use blosc2_fuzzing::{inputs, remote};

/// The number of mutants. Each needs several requests.
const MUTANTS: usize = 500;

#[test]
fn responses_with_faults() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (name, bytes) in inputs("remote", &root, MUTANTS).unwrap() {
        // The name is printed if it panics.
        print!("{name}");
        remote(&bytes);
        println!(": good");
    }
}
