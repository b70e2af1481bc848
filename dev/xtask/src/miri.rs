//! `cargo xtask miri`: the unit tests of blosc2-format under Miri, an interpreter that detects undefined behavior.
//!
//! The crate has no `unsafe` code; Miri checks its dependencies, the crates of the codecs.

use anyhow::Result;

use crate::run;

/// Runs the unit tests under Miri, the random ones with few cases: it is some hundred times slower.
pub(crate) fn miri() -> Result<()> {
    run::need_nightly(&["miri", "--version"], &["--component", "miri,rust-src"])?;
    run::run(
        run::nightly()
            .current_dir(run::root())
            .args(["miri", "test", "-p", "blosc2-format", "--lib"])
            .env("CARGO_TARGET_DIR", run::root().join("target").join("miri"))
            .env("MIRIFLAGS", "-Zmiri-disable-isolation")
            .env("PROPTEST_CASES", "2"),
    )
}
