//! `cargo xtask demo`, and the examples.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{run, vendor};

/// Builds the demo with only the library, and runs it: it reads the test files of the C library, and compresses an array.
pub(crate) fn demo() -> Result<()> {
    vendor::vendor(false)?;
    let folder = run::root().join("target").join("demo-files");
    run::empty(&folder)?;
    let choice = ["--package", "blosc2-demo", "--profile", "demo"];
    let program = build(&choice, &["demo"])?.remove(0);
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
    for (name, program) in names.iter().zip(build_examples(&names)?) {
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

/// Builds examples as part of the workspace, and returns where their programs are. The tests have built most of it.
pub(crate) fn build_examples(names: &[&str]) -> Result<Vec<PathBuf>> {
    let choice: Vec<&str> = names.iter().flat_map(|name| ["--example", name]).collect();
    build(&choice, names)
}

/// Builds what `choice` selects, the arguments of cargo, and returns the paths of these programs.
fn build(choice: &[&str], names: &[&str]) -> Result<Vec<PathBuf>> {
    let mut command = run::cargo(["build", "--message-format=json-render-diagnostics"]);
    let messages = run::read_stdout(command.args(choice))?;
    let program = |name: &&str| {
        run::executable(&messages, name).with_context(|| format!("cargo built no {name}"))
    };
    names.iter().map(program).collect()
}
