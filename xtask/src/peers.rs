//! `cargo xtask peers`: other implementations of Blosc, and ours, read what the other writes.

use anyhow::Result;

use crate::{run, vendor};

/// Runs the tests of `peers/`, which is a package of its own.
pub(crate) fn peers() -> Result<()> {
    vendor::vendor(false)?;
    let folder = run::root().join("peers");
    // With the target directory of the workspace, which has most of what it needs.
    run::run(
        run::cargo(["test"])
            .current_dir(folder)
            .env("CARGO_TARGET_DIR", run::root().join("target")),
    )
}
