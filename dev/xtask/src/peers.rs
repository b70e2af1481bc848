//! `cargo xtask peers`: other implementations of Blosc and this one read each other's chunks.

use std::env;
use std::process::Command;

use anyhow::{Context, Result};

use crate::python::{CMAKE, Venv};
use crate::{libclang, run, vendor};

/// Runs the tests of `dev/peers` and the program `dev/peers/neighbours`, which are separate packages.
pub(crate) fn peers() -> Result<()> {
    vendor::vendor(false)?;
    run::run(&mut command(&["test"]))?;
    let venv = Venv::with(CMAKE)?;
    let programs = venv.python.parent().context("the Python of the environment has a folder")?;
    let mut neighbours = run::cargo(["run"]);
    neighbours
        .current_dir(run::root().join("dev/peers/neighbours"))
        .env("CARGO_TARGET_DIR", run::root().join("target").join("neighbours"))
        .env("PATH", run::prepend("PATH", programs)?);
    libclang::set(&mut neighbours)?;
    run::run(&mut neighbours).context("this crate and other builds of Blosc fail in one program")
}

/// A command of cargo for `dev/peers`.
pub(crate) fn command(args: &[&str]) -> Command {
    let folder = run::root().join("dev/peers");
    let mut command = run::cargo(args);
    // With the target directory of the workspace, which has most of its dependencies. The crates of this workspace are
    // not members there: with the variable for the debug information of members they would be compiled again.
    command.current_dir(folder).env("CARGO_TARGET_DIR", run::root().join("target"));
    if let Ok(debug) = env::var("CARGO_PROFILE_DEV_DEBUG") {
        for name in ["cblosc2", "blosc2-format", "blosc2-testing"] {
            command.arg("--config").arg(format!("profile.dev.package.{name}.debug={debug:?}"));
        }
    }
    command
}
