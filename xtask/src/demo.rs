//! `cargo xtask demo` and `cargo xtask bench`: see it work, and see how fast.

use std::process::Command;

use anyhow::{Context, Result};

use crate::python::{BLOSC2, Venv};
use crate::{run, test, vendor};

/// Builds the examples with a profile, and runs the main ones; the demo compresses the sources of the C
/// library.
pub(crate) fn demo(profile: &str) -> Result<()> {
    vendor::vendor(false)?;
    let root = run::root();
    let folder = root.join("target").join("demo");
    test::empty(&folder)?;
    let build = ["build", "--workspace", "--examples", profile, "--message-format=json"];
    let messages = run::read_stdout(&mut run::cargo(build))?;
    for (example, argument) in [("demo", Some(root.join("c-blosc2"))), ("quickstart", None)] {
        let program = run::executable(&messages, example).context("an example was not built")?;
        run::run(Command::new(program).args(argument).current_dir(&folder))?;
    }
    Ok(())
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
