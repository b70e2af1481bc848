//! `cargo xtask demo`, and the examples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{run, vendor};

/// How the examples are built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    /// For users: only the library, with the profile `demo`.
    Demo,
    /// As part of the workspace. The tests have built most of it.
    Dev,
}

/// Builds the demo, and runs it: it reads the test files of the C library, and compresses an array.
pub(crate) fn demo() -> Result<()> {
    vendor::vendor(false)?;
    let folder = run::root().join("target").join("demo-files");
    run::empty(&folder)?;
    let program = build_examples(&["demo"], Build::Demo)?.remove(0);
    run::run(&mut demo_in(&program, &folder))
}

fn demo_in(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg(run::root().join("c-blosc2")).arg(folder.join("temperatures.b2nd"));
    command
}

/// Builds all examples as part of the workspace, and runs each in an empty folder.
pub(crate) fn examples() -> Result<()> {
    vendor::vendor(false)?;
    let mut names = Vec::new();
    for folder in ["examples", "crates/store/examples"] {
        for entry in fs::read_dir(run::root().join(folder))? {
            let path = entry?.path();
            if path.extension().is_some_and(|end| end == "rs") {
                names.push(path.file_stem().unwrap_or_default().display().to_string());
            }
        }
    }
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let folder = run::root().join("target").join("examples");
    for (name, program) in names.iter().zip(build_examples(&names, Build::Dev)?) {
        run::empty(&folder)?;
        let mut command = match *name {
            "demo" => demo_in(&program, &folder),
            _ => Command::new(program),
        };
        println!("example {name}:");
        run::run(command.current_dir(&folder)).with_context(|| format!("the example {name}"))?;
    }
    Ok(())
}

/// Builds examples, and returns where their programs are.
pub(crate) fn build_examples(names: &[&str], build: Build) -> Result<Vec<PathBuf>> {
    let choice: &[&str] = match build {
        Build::Demo => &["--profile", "demo", "--package", "cblosc2"],
        Build::Dev => &[],
    };
    let mut command = run::cargo(["build", "--message-format=json-render-diagnostics"]);
    command.args(choice).args(names.iter().flat_map(|name| ["--example", name]));
    let messages = run::read_stdout(&mut command)?;
    let program = |name: &&str| {
        run::executable(&messages, name).with_context(|| format!("cargo built no {name}"))
    };
    names.iter().map(program).collect()
}
