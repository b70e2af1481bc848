//! `cargo xtask demo` and `cargo xtask bench`: see it work, and see how fast.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::python::{BLOSC2, Venv};
use crate::{run, vendor};

/// How the examples are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// For a person: optimised, and nothing besides.
    Release,
    /// As part of the workspace, where the tests have built nearly all of it.
    Dev,
}

/// Builds the main examples, and runs them; the demo compresses the sources of the C library.
pub(crate) fn demo(build: Build) -> Result<()> {
    vendor::vendor(false)?;
    let root = run::root();
    let folder = root.join("target").join("demo");
    run::empty(&folder)?;
    let programs = examples(&["demo", "quickstart"], build)?;
    for (program, argument) in programs.iter().zip([Some(root.join("c-blosc2")), None]) {
        run::run(Command::new(program).args(argument).current_dir(&folder))?;
    }
    Ok(())
}

/// Builds examples, and returns where their programs are.
pub(crate) fn examples(names: &[&str], build: Build) -> Result<Vec<PathBuf>> {
    let choice: &[&str] = match build {
        Build::Release => &["--release", "--package", "blosc2-examples"],
        Build::Dev => &["--workspace"],
    };
    let mut command = run::cargo(["build", "--message-format=json-render-diagnostics"]);
    command.args(choice).args(names.iter().flat_map(|name| ["--example", name]));
    let messages = run::read_stdout(&mut command)?;
    let program = |name: &&str| {
        run::executable(&messages, name).with_context(|| format!("cargo built no {name}"))
    };
    names.iter().map(program).collect()
}

/// Runs the benches of the libraries: all, those of one file, or those whose name contains `name`.
pub(crate) fn bench(name: Option<&str>) -> Result<()> {
    vendor::vendor(false)?;
    let venv = Venv::with(BLOSC2)?;
    let mut command = run::cargo(["bench", "-p", "blosc2", "-p", "blosc2-store"]);
    command.env("BLOSC2_TEST_PYTHON", &venv.python).env("BLOSC2_TEST_SYSTEM_LIB", venv.lib()?);
    if let Some(name) = name {
        let of = |folder| run::root().join(folder).join("benches").join(format!("{name}.rs"));
        let is_file = ["blosc2", "blosc2-store"].into_iter().any(|folder| of(folder).exists());
        command.args([if is_file { "--bench" } else { "--" }, name]);
    }
    run::run(&mut command)
}
