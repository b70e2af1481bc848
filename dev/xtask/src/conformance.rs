//! `cargo xtask conformance`: the conformance matrix, and its report `docs/reports/CONFORMANCE.md`.

use anyhow::Result;

use crate::python::{BLOSC2, Venv};
use crate::runner::in_memory;
use crate::test::with_python;
use crate::{run, vendor};

/// Runs the matrix with the build of the tests, and writes the report. With `check`, fails if the committed report
/// differs. With `only`, runs the rows whose names contain it, and writes nothing.
pub(crate) fn conformance(check: bool, only: Option<&str>) -> Result<()> {
    vendor::vendor(false)?;
    let venv = Venv::with(BLOSC2)?;
    let mut command = run::cargo(["test", "--test", "conformance", "--"]);
    if check {
        command.arg("--check");
    }
    if let Some(only) = only {
        command.args(["--only", only]);
    }
    run::run(with_python(in_memory(&mut command), &venv)?)
}
