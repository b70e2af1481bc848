//! The fuzz targets as ordinary tests: the inputs of earlier findings, each seed, and a fixed number of mutants. Nothing
//! panics, and time and memory are limited. `cargo xtask fuzz` runs the same functions under libFuzzer.

#[path = "../common/mod.rs"]
mod common;

use std::time::Duration;

use blosc2_fuzzing::inputs;

use common::measure::measure;
use common::repeats;

/// The number of mutants in a long run; see `repeats`.
const MUTANTS: usize = 50_000;
/// The maximum CPU time of an input.
const MOST_TIME: Duration = Duration::from_secs(2);
/// The maximum memory of an input in Rust, in bytes.
const MOST_MEMORY: usize = 128 << 20;

#[track_caller]
fn run(target: &str, body: fn(&[u8])) {
    let root = blosc2_testing::root();
    let mut wrong = Vec::new();
    for (name, bytes) in inputs(target, root, repeats(MUTANTS)).unwrap() {
        let (outcome, time, memory) = measure(|| body(&bytes));
        if outcome.is_err() {
            wrong.push(format!("{name}: a panic"));
        } else if time > MOST_TIME || memory > MOST_MEMORY {
            wrong.push(format!("{name}: {time:?} and {memory} bytes"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

macro_rules! targets {
    ($($target:ident)*) => {
        $(#[test]
        fn $target() {
            run(stringify!($target), blosc2_fuzzing::$target);
        })*
    };
}

targets!(
    change check decode differential differential_chunk dtype msgpack open_and_walk partial round_trip
    slices store_folder store_metadata store_zip
);
