//! Running other programs, with the command on the terminal and clear errors.
//!
//! Also the facts about this machine that several commands need.

use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// The root of the workspace: two folders above this crate.
///
/// Cargo passes the path of the crate when it runs it, so this also works for a copied tree with a shared target
/// directory.
pub(crate) fn root() -> PathBuf {
    let here =
        env::var_os("CARGO_MANIFEST_DIR").unwrap_or_else(|| env!("CARGO_MANIFEST_DIR").into());
    let here = PathBuf::from(here);
    here.ancestors().nth(2).map(Path::to_path_buf).unwrap_or(here)
}

/// Variables with which a complete compilation takes a quarter less time: it writes no data for incremental compilation,
/// and no debug information. Panics state their locations without it.
pub(crate) const FAST_BUILD: [(&str, &str); 2] =
    [("CARGO_INCREMENTAL", "0"), ("CARGO_PROFILE_DEV_DEBUG", "none")];

/// Whether [`use_fast_build`] was called.
static IS_FAST: AtomicBool = AtomicBool::new(false);

/// Sets [`FAST_BUILD`] for all commands of cargo that follow. Variables that are already set have precedence.
pub(crate) fn use_fast_build() {
    IS_FAST.store(true, Ordering::Relaxed);
}

/// The cargo that runs this program, in the root of the workspace.
pub(crate) fn cargo<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(args);
    if IS_FAST.load(Ordering::Relaxed) {
        command.envs(FAST_BUILD.into_iter().filter(|(name, _)| env::var_os(name).is_none()));
    }
    command
}

/// Prints the command and runs it. Its output goes directly to the terminal.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    echo(command);
    let status =
        command.status().with_context(|| format!("`{}` cannot be started", name(command)))?;
    if !status.success() {
        bail!("`{}` failed ({status})", show(command));
    }
    Ok(())
}

/// Runs the command quietly and returns what it printed; its output is shown only when it fails.
pub(crate) fn read(command: &mut Command) -> Result<String> {
    read_from(command, Stdio::null())
}

/// Like [`read`], with this standard input.
pub(crate) fn read_from(command: &mut Command, input: Stdio) -> Result<String> {
    let output = command
        .stdin(input)
        .output()
        .with_context(|| format!("`{}` cannot be started", name(command)))?;
    finish(command, output)
}

/// Like [`read`], with the errors and progress of the command on the terminal.
pub(crate) fn read_stdout(command: &mut Command) -> Result<String> {
    echo(command);
    let output = command
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("`{}` cannot be started", name(command)))?;
    finish(command, output)
}

fn finish(command: &Command, output: Output) -> Result<String> {
    if !output.status.success() {
        eprint!("{}", String::from_utf8_lossy(&output.stderr));
        bail!("`{}` failed ({})", show(command), output.status);
    }
    String::from_utf8(output.stdout)
        .with_context(|| format!("`{}` printed something that is not UTF-8", name(command)))
}

/// The path of an example or a test, from cargo's messages in JSON.
pub(crate) fn executable(messages: &str, target: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == target)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from))
}

/// The target that the compiler builds for by default.
pub(crate) fn host() -> Result<String> {
    let text =
        read(Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("host: "));
    line.map(str::to_owned).context("rustc does not say what it builds for")
}

/// The command as a user would type it.
fn show(command: &Command) -> String {
    let mut line = name(command);
    for arg in command.get_args() {
        line = format!("{line} {}", arg.to_string_lossy());
    }
    line
}

/// Prints the command, after its environment variables.
fn echo(command: &Command) {
    for (key, value) in command.get_envs() {
        if let Some(value) = value {
            println!("$ export {}={}", key.to_string_lossy(), value.to_string_lossy());
        }
    }
    println!("$ {}", show(command));
}

fn name(command: &Command) -> String {
    let program = Path::new(command.get_program());
    program.file_name().unwrap_or(program.as_os_str()).to_string_lossy().into_owned()
}

/// Puts `first` before the paths that the environment variable `key` already lists.
pub(crate) fn prepend(key: &str, first: &Path) -> Result<OsString> {
    let old = env::var_os(key).unwrap_or_default();
    let rest = env::split_paths(&old).filter(|path| !path.as_os_str().is_empty());
    env::join_paths(std::iter::once(first.to_path_buf()).chain(rest))
        .with_context(|| format!("{} cannot be put into {key}", first.display()))
}

/// Whether a program of this name can be started.
pub(crate) fn has(program: &str) -> bool {
    Command::new(program)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Ensures that a program exists: installs its Debian package if it is missing and this is allowed.
pub(crate) fn need(program: &str, package: &str) -> Result<()> {
    ensure(program, package, || has(program))
}

/// Ensures that something exists: installs its Debian package if it is missing and this is allowed.
pub(crate) fn ensure(name: &str, package: &str, exists: impl Fn() -> bool) -> Result<()> {
    if exists() || (apt_install(package) && exists()) {
        return Ok(());
    }
    bail!("{name} is missing: install it (on Debian: apt-get install {package}) and run again")
}

/// The cargo of the nightly toolchain.
pub(crate) fn nightly() -> Command {
    let mut command = Command::new("cargo");
    // The cargo that runs this program has set these for its own toolchain.
    command.arg("+nightly").env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC");
    command
}

/// Ensures that the nightly toolchain runs cargo with the arguments `probe`. Otherwise installs the toolchain with
/// `options` of rustup.
pub(crate) fn need_nightly(probe: &[&str], options: &[&str]) -> Result<()> {
    if read(nightly().args(probe)).is_ok() {
        return Ok(());
    }
    let install = ["toolchain", "install", "nightly", "--profile", "minimal"];
    run(Command::new("rustup").args(install).args(options))
        .context("the nightly toolchain is missing, or a component of it")
}

/// Installs a Debian package, as root only. Returns whether that succeeded.
pub(crate) fn apt_install(package: &str) -> bool {
    let is_root =
        cfg!(unix) && read(Command::new("id").arg("-u")).is_ok_and(|answer| answer.trim() == "0");
    if !is_root || !has("apt-get") {
        return false;
    }
    println!("setup: apt-get install {package}");
    let apt = |args: &[&str]| {
        read(Command::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(args)).is_ok()
    };
    let install = ["install", "-y", "--no-install-recommends", package];
    apt(&install) || (apt(&["update"]) && apt(&install))
}

/// Creates an empty folder to run a program in. Removes the files of an earlier run.
pub(crate) fn empty(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}
