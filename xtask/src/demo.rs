//! `cargo xtask demo` and `cargo xtask bench`: see it work, and see how fast.

use anyhow::Result;

use crate::python::{BLOSC2, Venv};
use crate::{run, test, vendor};

/// Builds the examples, and runs the main ones; the demo compresses the sources of the C library.
pub(crate) fn demo() -> Result<()> {
    vendor::vendor(false)?;
    let root = run::root();
    let folder = root.join("target").join("demo");
    test::empty(&folder)?;
    let manifest = root.join("Cargo.toml");
    let cargo = |verb: &str| {
        let mut command = run::cargo([verb, "--release", "-p", "blosc2-workspace"]);
        command.arg("--manifest-path").arg(&manifest).current_dir(&folder);
        command
    };
    run::run(cargo("build").arg("--examples"))?;
    run::run(cargo("run").args(["--example", "demo", "--"]).arg(root.join("c-blosc2")))?;
    run::run(cargo("run").args(["--example", "quickstart"]))
}

/// Runs the benches of `blosc2`: all, those of one file, or those whose name contains `name`.
pub(crate) fn bench(name: Option<&str>) -> Result<()> {
    vendor::vendor(false)?;
    let venv = Venv::with(BLOSC2)?;
    let mut command = run::cargo(["bench", "-p", "blosc2"]);
    command.env("BLOSC2_TEST_PYTHON", &venv.python).env("BLOSC2_TEST_SYSTEM_LIB", venv.lib()?);
    if let Some(name) = name {
        let file = run::root().join("blosc2").join("benches").join(format!("{name}.rs"));
        command.args([if file.exists() { "--bench" } else { "--" }, name]);
    }
    run::run(&mut command)
}
