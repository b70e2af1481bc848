//! Unstable features of the stable compiler, for the steps that need them.
//!
//! The compiler supports them only if `RUSTC_BOOTSTRAP` is set. If it were set for cargo, the build scripts would see it
//! too: some depend on it, so nearly everything would be compiled again, both with and without it. Cargo therefore
//! starts this program instead, which starts the compiler and sets the variable for it alone.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use anyhow::{Context, Result};

/// The variable with the path of the real rustdoc, if cargo starts this program in its place.
const REAL_RUSTDOC: &str = "BLOSC2_XTASK_RUSTDOC";
/// The variable with the argument that enables unstable features, if cargo starts this program with rustc and its
/// arguments.
const FLAG: &str = "BLOSC2_XTASK_FLAG";

/// The path of this program, read at its start: cargo may replace the file later.
static THIS: OnceLock<Option<PathBuf>> = OnceLock::new();

fn this() -> Result<&'static Path> {
    let this = THIS.get_or_init(|| env::current_exe().ok());
    this.as_deref().context("the path of this program is unknown")
}

/// Lets rustdoc use unstable features, when cargo starts it.
pub(crate) fn rustdoc(command: &mut Command) -> Result<&mut Command> {
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    Ok(command.env("RUSTDOC", this()?).env(REAL_RUSTDOC, rustdoc))
}

/// Lets rustc use unstable features, when cargo starts it with the argument `flag`. Replaces another wrapper of rustc.
pub(crate) fn rustc<'a>(command: &'a mut Command, flag: &str) -> Result<&'a mut Command> {
    Ok(command.env("RUSTC_WRAPPER", this()?).env(FLAG, flag))
}

/// Runs the compiler, if cargo has started this program in its place; otherwise returns `None`.
pub(crate) fn stand_in() -> Option<Result<ExitCode>> {
    let _ = this();
    let mut args = env::args_os().skip(1);
    if let Some(rustdoc) = env::var_os(REAL_RUSTDOC) {
        return Some(run(&rustdoc, args.collect(), true));
    }
    let flag = env::var_os(FLAG)?;
    let rustc = args.next().filter(|path| Path::new(path).file_stem() == Some("rustc".as_ref()))?;
    let args: Vec<_> = args.collect();
    let unstable = args.contains(&flag);
    Some(run(&rustc, args, unstable))
}

/// Runs a program with its output and its exit status unchanged, because cargo reads them.
fn run(program: &OsString, args: Vec<OsString>, unstable: bool) -> Result<ExitCode> {
    let mut command = Command::new(program);
    command.args(args).env_remove(REAL_RUSTDOC).env_remove(FLAG);
    if unstable {
        command.env("RUSTC_BOOTSTRAP", "1");
    }
    let failed = || format!("{} cannot be started", program.display());
    // The program takes the place of this one, so that a signal which ends it is visible too.
    #[cfg(unix)]
    {
        let error = std::os::unix::process::CommandExt::exec(&mut command);
        Err(error).with_context(failed)
    }
    #[cfg(not(unix))]
    {
        let status = command.status().with_context(failed)?;
        Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
