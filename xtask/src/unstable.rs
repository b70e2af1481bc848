//! Unstable features of the stable compiler, for the steps that need them.
//!
//! The compiler supports them only if `RUSTC_BOOTSTRAP` is set. If it were set for cargo, the build scripts would see it
//! too: some depend on it, so nearly everything would be compiled again, both with and without it. Cargo therefore
//! starts this program instead, which starts the compiler and sets the variable for it alone.

use std::env;
use std::ffi::OsString;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result};

/// The path of the real rustdoc, if cargo starts this program instead of it.
const RUSTDOC: &str = "BLOSC2_XTASK_RUSTDOC";
/// The argument that enables unstable features, if cargo starts this program with rustc and its arguments.
const FLAG: &str = "BLOSC2_XTASK_FLAG";

/// Lets rustdoc use unstable features, when cargo starts it.
pub(crate) fn rustdoc(command: &mut Command) -> Result<&mut Command> {
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    Ok(command.env("RUSTDOC", this()?).env(RUSTDOC, rustdoc))
}

/// Lets rustc use unstable features, when cargo starts it with the argument `flag`.
pub(crate) fn rustc<'a>(command: &'a mut Command, flag: &str) -> Result<&'a mut Command> {
    Ok(command.env("RUSTC_WRAPPER", this()?).env(FLAG, flag))
}

fn this() -> Result<OsString> {
    Ok(env::current_exe().context("this program has no path")?.into())
}

/// Runs the compiler, if cargo has started this program for it; otherwise returns `None`.
pub(crate) fn stand_in() -> Option<Result<ExitCode>> {
    let mut args = env::args_os().skip(1);
    if let Some(rustdoc) = env::var_os(RUSTDOC) {
        return Some(run(&rustdoc, args.collect(), true));
    }
    let flag = env::var_os(FLAG)?;
    let rustc = args.next()?;
    let args: Vec<_> = args.collect();
    let unstable = args.contains(&flag);
    Some(run(&rustc, args, unstable))
}

/// Runs a program with its output unchanged, because cargo reads it.
fn run(program: &OsString, args: Vec<OsString>, unstable: bool) -> Result<ExitCode> {
    let mut command = Command::new(program);
    command.args(args).env_remove(RUSTDOC).env_remove(FLAG);
    if unstable {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    let status =
        command.status().with_context(|| format!("{} cannot be started", program.display()))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
