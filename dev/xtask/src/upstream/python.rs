//! The test suite of python-blosc2, and the comparison of every file and cframe that it makes.
//!
//! The suite runs on Python's own library, with a plugin that copies what the tests make (`dev/peers/upstream/record.py`).
//! Then Python reads the copies in a new process (`read.py`), and a program of `dev/peers` compares what it reads with what
//! this project reads.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::python::{BLOSC2, OBJECT_STORE, UPSTREAM, Venv};
use crate::{peers, run, vendor};

const VERSION: &str = "4.14.1";
const SHA256: &str = "b5adb408854260acf64aca5c351ab1307bcb7c71d112e3049d8541c1e2f9b222";

/// Tests that are not run, with the reason.
const LEFT_OUT: [(&str, &str); 1] = [(
    "tests/ctable/test_remote_ctable.py::test_parallel_metadata_benchmark",
    "it reads a file that the source distribution does not contain",
)];

/// The file with the outcomes of the tests, in the format of JUnit.
const RESULTS: &str = "results.xml";

/// The suite's own choice of tests leaves these out.
const DESELECTED: &str =
    "The suite itself deselects its tests that are marked `network`, `heavy` or `tui`.";

/// Runs the suite, compares what it made, and returns the report. `again`: only compares what it made last time.
pub(super) fn suite(again: bool) -> Result<String> {
    ensure!(cfg!(unix), "this part is for Unix only: the plugin identifies files by their paths");
    let requirements = [&[BLOSC2][..], &OBJECT_STORE, &UPSTREAM].concat();
    let venv = Venv::with_all(&requirements)?;
    let folder = run::root().join("target").join("upstream").join("python");
    let copies = folder.join("copies");
    if !again {
        run::empty(&folder)?;
        let archive = vendor::source_distribution("blosc2", VERSION, SHA256, &[])?;
        let source = folder.join("source");
        vendor::extract(&archive, &format!("blosc2-{VERSION}"), &source)?;
        run_tests(&venv, &folder, &source, &copies)?;
    }
    let tests = outcomes(&folder)?;
    println!("upstream: reading the copies with Python");
    let expected = folder.join("expected.jsonl");
    let script = scripts().join("read.py");
    let read = Command::new(&venv.python)
        .arg("-I")
        .arg(script)
        .arg(&copies)
        .current_dir(&folder)
        .stdout(File::create(&expected)?)
        .stderr(File::create(folder.join("read.log"))?)
        .status()?;
    ensure!(read.success(), "read.py failed ({read}): see target/upstream/python/read.log");

    run::run(&mut peers::command(&["build", "--bin", "upstream", "--features", "upstream"]))?;
    let compared = run::read_from(
        peers::command(&["run", "--quiet", "--bin", "upstream", "--features", "upstream", "--"])
            .arg(&copies),
        Stdio::from(File::open(&expected)?),
    )?;
    report(&tests, &serde_json::from_str(&compared)?)
}

fn scripts() -> std::path::PathBuf {
    run::root().join("dev/peers/upstream")
}

/// Runs the tests. Failed tests are counted in the results.
fn run_tests(venv: &Venv, folder: &Path, source: &Path, copies: &Path) -> Result<()> {
    let status = Command::new(&venv.python)
        .args(["-m", "pytest", "-q", "-p", "record", "-p", "no:cacheprovider", "tests"])
        .args(LEFT_OUT.iter().flat_map(|(test, _)| ["--deselect", test]))
        .arg(format!("--basetemp={}", folder.join("tmp").display()))
        .arg(format!("--junitxml={}", folder.join(RESULTS).display()))
        .current_dir(source)
        .env("PYTHONPATH", scripts())
        .env("RECORD_TO", copies)
        .status()?;
    ensure!(matches!(status.code(), Some(0 | 1)), "pytest failed ({status})");
    Ok(())
}

/// The number of tests with each outcome.
fn outcomes(folder: &Path) -> Result<BTreeMap<&'static str, usize>> {
    let text = fs::read_to_string(folder.join(RESULTS)).context("pytest wrote no results")?;
    let number = |name: &str| -> Result<usize> {
        let (_, rest) = text
            .split_once(&format!(" {name}=\""))
            .with_context(|| format!("the results of pytest have no `{name}`"))?;
        Ok(rest.split('"').next().unwrap_or_default().parse()?)
    };
    ["tests", "skipped", "failures", "errors"]
        .into_iter()
        .map(|name| Ok((name, number(name)?)))
        .collect()
}

/// The report. Fails if a test failed, or if there are differences.
fn report(tests: &BTreeMap<&str, usize>, compared: &Value) -> Result<String> {
    let list = compared["differences"].as_array().context("no differences")?;
    if !list.is_empty() {
        let list: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
        bail!(
            "{} differences; the copies are in target/upstream/python:\n{}",
            list.len(),
            list.join("\n")
        );
    }
    let failed = tests["failures"] + tests["errors"];
    ensure!(failed == 0, "{failed} tests of Python failed: see target/upstream/python/{RESULTS}");
    let passed = tests["tests"] - tests["skipped"];
    let mut text = format!(
        "Tests: {passed} passed, {} skipped or failed as expected, 0 failed unexpectedly.\n{DESELECTED}\n\n",
        tests["skipped"],
    );
    for (test, reason) in LEFT_OUT {
        let _ = writeln!(text, "- not run: `{test}`: {reason}");
    }
    text.push('\n');
    text += "| compared | by | outcome | number |\n|---|---|---|--:|\n";
    let counts = compared["counts"].as_object().context("no counts")?;
    for (what, number) in counts {
        let columns: Vec<&str> = what.splitn(3, ", ").collect();
        let _ = writeln!(text, "| {} | {number} |", columns.join(" | "));
    }
    Ok(text)
}
