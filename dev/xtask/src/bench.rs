//! `cargo xtask bench`: the comparison with other libraries, and the other benches.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::python::{BENCH, BLOSC2, Venv};
use crate::{libclang, run, vendor};

mod real;

/// The lines around the generated part of a document.
const BEGIN: &str = "<!-- written by cargo xtask bench --publish -->";
const END: &str = "<!-- end -->";

/// The files that are copied to `docs/reports/benchmarks`.
const PUBLISHED: [&str; 6] =
    ["report.json", "machine.json", "throughput.svg", "threads.svg", "sizes.svg", "codecs.svg"];

/// Runs the comparison on real data, or a file of `dev/bench`.
pub(crate) fn named(name: &str, is_quick: bool, publish: bool) -> Result<()> {
    vendor::vendor(false)?;
    if name == "real" {
        return if is_quick { real::quick() } else { real::real(publish) };
    }
    ensure!(!is_quick && !publish, "`bench {name}` has no --quick and no --publish");
    let venv = Venv::with(BLOSC2)?;
    let mut command = run::cargo(["bench", "-p", "blosc2-workspace", "--bench", name]);
    command.env("BLOSC2_TEST_PYTHON", &venv.python).env("BLOSC2_TEST_SYSTEM_LIB", venv.lib()?);
    run::run(&mut command)
}

/// Checks that the comparison works, with the build of the tests.
pub(crate) fn quick() -> Result<()> {
    vendor::vendor(false)?;
    let mut command = run::cargo(["test", "-p", "blosc2-workspace", "--bench", "compare"]);
    // Only this crate and C.
    command.env_remove("BLOSC2_TEST_PYTHON").env_remove("BLOSC2_BENCH_PEERS");
    run::run(command.args(["--", "--quick"]))
}

/// Compares this crate with all libraries, and makes the plots.
pub(crate) fn compare(only: Option<&str>, publish: bool) -> Result<()> {
    vendor::vendor(false)?;
    let venv = Venv::with(BLOSC2)?;
    for requirement in BENCH {
        Venv::with(requirement)?;
    }
    let peers = peers(&venv)?;
    let mut command = run::cargo(["bench", "-p", "blosc2-workspace", "--bench", "compare"]);
    command.env("BLOSC2_TEST_PYTHON", &venv.python).env("BLOSC2_BENCH_PEERS", peers);
    if let Some(only) = only {
        command.args(["--", "--only", only]);
    }
    run::run(&mut command)?;
    let folder = run::root().join("target").join("bench");
    let script = run::root().join("dev/bench/compare/plots.py");
    run::run(Command::new(&venv.python).arg("-I").arg(script).arg(&folder))?;
    if publish { self::publish(&folder) } else { Ok(()) }
}

/// Builds the programs of `dev/peers/bench`, and returns their folder. A program that cannot be built is not measured.
fn peers(venv: &Venv) -> Result<PathBuf> {
    let target = run::root().join("target").join("bench-peers");
    let programs = venv.python.parent().context("the Python of the environment has a folder")?;
    let mut command = run::cargo(["build", "--release", "--keep-going"]);
    command
        .current_dir(run::root().join("dev/peers/bench"))
        .env("CARGO_TARGET_DIR", &target)
        .env("PATH", run::prepend("PATH", programs)?);
    libclang::set(&mut command)?;
    if let Err(error) = run::run(&mut command) {
        eprintln!("bench: some libraries are not measured: {error:#}");
    }
    Ok(target.join("release"))
}

/// Copies the report to `docs/reports/benchmarks`, and its tables to the documents.
fn publish(folder: &Path) -> Result<()> {
    let target = run::root().join("docs/reports/benchmarks");
    run::empty(&target)?;
    for name in PUBLISHED {
        fs::copy(folder.join(name), target.join(name))
            .with_context(|| format!("{name} cannot be copied to {}", target.display()))?;
    }
    for (part, document) in
        [("tables.md", "docs/reports/BENCHMARKS.md"), ("readme.md", "README.md")]
    {
        insert(&folder.join(part), document)?;
    }
    Ok(())
}

/// Replaces the generated part of a document by a file.
fn insert(part: &Path, document: &str) -> Result<()> {
    let part = fs::read_to_string(part)?;
    let path = run::root().join(document);
    let text = fs::read_to_string(&path)?;
    let text = replaced(&text, &part).with_context(|| {
        format!("{document} needs the lines `{BEGIN}` and `{END}` around its generated part")
    })?;
    fs::write(&path, text).with_context(|| format!("{document} cannot be written"))?;
    println!("bench: {document} is up to date");
    Ok(())
}

/// The document with another generated part.
fn replaced(text: &str, part: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n{END}{after}", part.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, replaced};

    #[test]
    fn only_the_generated_part_is_replaced() {
        let text = |part: &str| format!("before\n{BEGIN}\n{part}\n{END}\nafter\n");
        assert_eq!(replaced(&text("old\nlines"), "new\n"), Some(text("new")));
        assert_eq!(replaced("no markers", "new"), None);
        assert_eq!(replaced(BEGIN, "new"), None);
    }
}
