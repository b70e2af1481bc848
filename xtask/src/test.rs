//! `cargo xtask test`: all set-up, then every test.
//!
//! The rounds: the workspace as it is built by default; what needs Python; the largest buffers; the
//! workspace with variables set by which upstream overrides parameters; loading plugins; `blosc2` on an
//! installed libblosc2 (the feature `system`; the wheel's library plays that part); and the first example
//! under valgrind.
//!
//! All but one of them choose `--workspace`, and then what to run: with a choice of packages, features
//! would differ, and nearly everything would be compiled once more.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::python::{BLOSC2, Venv};
use crate::{programs, run, vendor};

/// Runs every test. With `args`, only `cargo test` with these arguments; with `large`, only the tests
/// that need much memory, whether it seems to be there or not.
pub(crate) fn test(args: &[String], large: bool) -> Result<()> {
    vendor::vendor(false)?;
    let venv = Venv::with(BLOSC2)?;
    if !args.is_empty() {
        return run::run(with_python(run::cargo(["test"]).args(args), &venv)?);
    }
    if large {
        return run::run(&mut largest_buffers());
    }
    programs::test(with_python(&mut run::cargo(["test", "--workspace"]), &venv)?, &[])?;
    run::run(&mut run::cargo(["test", "--workspace", "--doc"]))?;
    python(&venv)?;
    large_if_there_is_room()?;
    environment(&venv)?;
    plugins()?;
    system(&venv)?;
    valgrind()?;
    println!("test: everything passed");
    Ok(())
}

/// What the tests of the largest buffers need, in bytes: three buffers of 2 GiB, and some room.
const LARGE: u64 = 7 << 30;

fn large_if_there_is_room() -> Result<()> {
    match available_memory() {
        Some(there) if there >= LARGE => run::run(&mut largest_buffers()),
        there => {
            let there = there.map_or("it is not known how many".to_owned(), |bytes| {
                format!("{:.1}", bytes as f64 / f64::from(1 << 30))
            });
            println!(
                "test: the largest buffers are LEFT OUT: they need {} GiB of memory, and {there} \
                 are free; `cargo xtask test --large` tests them all the same",
                LARGE >> 30
            );
            Ok(())
        }
    }
}

fn largest_buffers() -> Command {
    run::cargo(["test", "--workspace", "--test", "large", "--", "--ignored"])
}

/// Bytes of memory that programs can still get, where Linux tells.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok().map(|kib: u64| kib << 10)
}

/// Arguments that choose among the test programs of the workspace, by name.
pub(crate) fn of_workspace(wanted: impl Fn(&str) -> bool) -> Result<Vec<String>> {
    let mut args = Vec::new();
    for entry in fs::read_dir(run::root().join("tests"))? {
        let path = entry?.path();
        let is_program = path.extension().is_some_and(|extension| extension == "rs")
            || path.join("main.rs").is_file();
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned());
        if let Some(name) = name.filter(|name| is_program && wanted(name)) {
            args.push(format!("--test={name}"));
        }
    }
    args.sort();
    Ok(args)
}

/// The tests that need Python, which is here, and are ignored elsewhere.
fn python(venv: &Venv) -> Result<()> {
    let mut command = run::cargo(["test", "--workspace"]);
    let others = ["array_shapes", "crashes", "format", "lock_processes", "model", "unfinished"];
    command.args(of_workspace(|name| name.starts_with("python") || others.contains(&name))?);
    programs::test(with_python(&mut command, venv)?, &["--ignored"])
}

/// Tells the tests where Python is, and where the library of its wheel.
fn with_python<'a>(command: &'a mut Command, venv: &Venv) -> Result<&'a mut Command> {
    Ok(command.env("BLOSC2_TEST_PYTHON", &venv.python).env("BLOSC2_TEST_SYSTEM_LIB", venv.lib()?))
}

/// Variables by which upstream overrides what a program asks for.
const VARIABLES: [(&str, &str); 4] = [
    ("BLOSC_TYPESIZE", "3"),
    ("BLOSC_CLEVEL", "0"),
    ("BLOSC_COMPRESSOR", "zlib"),
    ("BLOSC_NTHREADS", "64"),
];

/// Runs the tests where the environment says something else than they do, but for those that would show
/// nothing new: of the formats in Rust, which ask C for the same things once more; of the declarations;
/// of calls in C, which do listen to them; of broken chunks, none of which compresses. Of the long random
/// ones, a part has to do.
fn environment(venv: &Venv) -> Result<()> {
    let mut command = run::cargo(["test", "--workspace", "--lib", "--bins", "--test", "cli"]);
    // C's variables are about chunks; what is around them has had its round.
    let others = [
        "abi",
        "array_behaviour",
        "array_shapes",
        "broken_chunks",
        "crashes",
        "frames",
        "hazards",
        "hostile_frames",
        "large",
        "lock_processes",
        "model",
        "unfinished",
    ];
    command.args(of_workspace(|name| !name.starts_with("format") && !others.contains(&name))?);
    command.envs(VARIABLES).env("BLOSC2_TEST_CASES", "500");
    programs::test(with_python(&mut command, venv)?, &[])
        .context("the tests fail when variables of C-Blosc2 are set")
}

/// Tests that a plugin is loaded when a program asks, and only then.
fn plugins() -> Result<()> {
    let test = ["test", "--workspace", "--test", "process", "--features", "dynamic-plugins"];
    run::run(&mut run::cargo(test))
}

/// Tests `blosc2` on the library of the wheel, found by pkg-config.
fn system(venv: &Venv) -> Result<()> {
    run::need("pkg-config", "pkg-config")?;
    let search = if cfg!(windows) {
        "PATH"
    } else if cfg!(target_os = "macos") {
        "DYLD_FALLBACK_LIBRARY_PATH"
    } else {
        "LD_LIBRARY_PATH"
    };
    let mut command =
        run::cargo(["test", "-p", "blosc2", "--no-default-features", "--features", "system"]);
    // The other features keep what is built apart from the other rounds.
    command
        .env("PKG_CONFIG_PATH", run::prepend("PKG_CONFIG_PATH", &venv.pkg_config()?)?)
        .env(search, run::prepend(search, &venv.lib()?)?);
    // An installed library listens to them, which `blosc2` refuses.
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    run::run(with_python(&mut command, venv)?)
}

/// Runs the first example under valgrind: no invalid access, no lost memory.
fn valgrind() -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("test: valgrind is not run here, only on Linux");
        return Ok(());
    }
    run::need("valgrind", "valgrind")?;
    let messages = run::read_stdout(&mut run::cargo([
        "build",
        "--workspace",
        "--example",
        "quickstart",
        "--message-format=json",
    ]))?;
    let program = run::executable(&messages, "quickstart").context("cargo built no quickstart")?;
    let folder = run::root().join("target").join("valgrind");
    empty(&folder)?;
    run::run(
        Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=1", "--leak-check=full"])
            .arg("--errors-for-leak-kinds=definite")
            .arg(program)
            .current_dir(folder),
    )
    .context("valgrind found something, or the example failed")?;
    println!("test: valgrind has nothing to say about quickstart");
    Ok(())
}

/// Makes a folder to run a program in, without what an earlier run left there.
pub(crate) fn empty(folder: &PathBuf) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}
