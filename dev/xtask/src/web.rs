//! `cargo xtask web`: builds the viewer in the browser (`crates/web`), and tests it in Chromium.
//!
//! The result is `target/web`, a folder of static files. The module is compiled twice, because some browsers have no SIMD
//! instructions of WebAssembly; the page chooses.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::python::{BLOSC2, Venv};
use crate::run;
use crate::steps::Steps;
use crate::vendor;

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";
/// A compressed module must stay below this, in bytes.
const MAX_MODULE: usize = 3 << 19;
/// The names of the modules, and the flags of the compiler.
const MODULES: [(&str, &str); 2] =
    [("blosc2_web", ""), ("blosc2_web_simd", "-C target-feature=+simd128")];

/// Builds the page, and with `test` runs the tests whose names match `only`.
pub(crate) fn web(test: bool, only: Option<&str>) -> Result<()> {
    let mut steps = Steps::new("web");
    steps.step("sources", || vendor::vendor(false))?;
    let page = run::root().join("target/web");
    steps.step("page", || build(&page))?;
    if test {
        steps.step("tests of the page", || tests(&page, only))?;
        if only.is_none() {
            steps.step("command with the feature `web`", || command(&page))?;
        }
    }
    steps.finish();
    println!("page: {}", page.display());
    Ok(())
}

/// Puts the modules and the files of the page into `page`.
pub(crate) fn build(page: &Path) -> Result<()> {
    let target = run::root().join("target");
    add_target()?;
    let bindgen = bindgen(&target.join("web-tools"))?;
    run::empty(page)?;
    for (name, flags) in MODULES {
        let folder = target.join("web-build").join(name);
        let mut cargo =
            run::cargo(["build", "-p", "blosc2-web", "--profile", "web", "--target", TARGET]);
        // These flags replace those of the environment, which are for this machine.
        run::run(
            cargo
                .env("CARGO_TARGET_DIR", &folder)
                .env("RUSTFLAGS", flags)
                .env_remove("CARGO_ENCODED_RUSTFLAGS"),
        )?;
        let mut command = Command::new(&bindgen);
        command.args([
            "--target",
            "web",
            "--no-typescript",
            "--remove-name-section",
            "--remove-producers-section",
        ]);
        command.arg("--out-dir").arg(page).args(["--out-name", name]);
        run::run(command.arg(folder.join(TARGET).join("web/blosc2_web.wasm")))?;
        let bytes = fs::read(page.join(format!("{name}_bg.wasm")))?;
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bytes)?;
        let size = encoder.finish()?.len();
        println!("{name}: {} bytes, {size} after compression", bytes.len());
        ensure!(
            size <= MAX_MODULE,
            "the module {name} has {size} bytes after compression, at most {MAX_MODULE}"
        );
    }
    for file in fs::read_dir(run::root().join("crates/web/page"))? {
        let file = file?;
        fs::copy(file.path(), page.join(file.file_name()))?;
    }
    Ok(())
}

/// Installs the standard library for WebAssembly, where rustup manages the compiler.
pub(crate) fn add_target() -> Result<()> {
    if run::has("rustup") {
        run::run(Command::new("rustup").args(["target", "add", TARGET]).current_dir(run::root()))?;
    }
    Ok(())
}

/// The command `wasm-bindgen` of the version of the library, which is installed into `folder` if it is missing.
fn bindgen(folder: &Path) -> Result<PathBuf> {
    let lock = fs::read_to_string(run::root().join("Cargo.lock"))?;
    let (_, entry) =
        lock.split_once("name = \"wasm-bindgen\"\n").context("Cargo.lock has no wasm-bindgen")?;
    let version = entry.split('"').nth(1).context("wasm-bindgen has a version")?;
    let command = folder.join("bin").join(format!("wasm-bindgen{}", std::env::consts::EXE_SUFFIX));
    let is_current = || {
        run::read(Command::new(&command).arg("--version"))
            .is_ok_and(|text| text.trim().ends_with(version))
    };
    if !is_current() {
        let version = format!("={version}");
        let install = ["install", "wasm-bindgen-cli", "--version", &version, "--root"];
        run::run(run::cargo(install).arg(folder))?;
        ensure!(is_current(), "{} does not have the version {version}", command.display());
    }
    Ok(command)
}

/// Runs the tests in `crates/web/tests/browser`.
fn tests(page: &Path, only: Option<&str>) -> Result<()> {
    let folder = run::root().join("crates/web/tests/browser");
    run::need("node", "nodejs")?;
    run::need("npm", "npm")?;
    chromium()?;
    run::run(Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder))?;
    run::empty(&files())?;
    let venv = Venv::with(BLOSC2)?;
    for script in ["files.py", "arrays.py"] {
        run::run(Command::new(&venv.python).arg(folder.join(script)).arg(files()))?;
    }
    let mut node = node(page)?;
    if let Some(only) = only {
        node.arg(format!("--test-name-pattern={only}"));
    }
    let names = ["viewer", "arrays", "recovery", "slow", "hostile", "large"];
    run::run(node.args(names.map(|name| format!("{name}.test.js"))))
}

/// The files that the tests open.
fn files() -> PathBuf {
    run::root().join("target/web-files")
}

/// Node with the variables of the tests, to which their names are added.
fn node(page: &Path) -> Result<Command> {
    let mut node = Command::new("node");
    // The tests of two files would share the processors with two browsers.
    node.args(["--test", "--test-reporter=spec", "--test-concurrency=1"])
        .current_dir(run::root().join("crates/web/tests/browser"))
        .env("WEB_PAGE", page)
        .env("WEB_FILES", files())
        .env("CHROMIUM", chromium()?);
    Ok(node)
}

/// Checks and tests the command with the feature `web`, into which the page is compiled.
fn command(page: &Path) -> Result<()> {
    const COMMAND: [&str; 4] = ["-p", "blosc2-cli", "--features", "web"];
    let mut clippy = run::cargo(["clippy", "--all-targets"]);
    run::run(clippy.args(COMMAND).args(["--", "-D", "warnings"]))?;
    run::run(run::cargo(["test", "--test", "web", "--bins"]).args(COMMAND))?;
    // The tests have built it.
    let built = run::root().join("target/debug/blosc2");
    run::run(node(page)?.arg("command.test.js").env("BLOSC2_COMMAND", built))
}

/// The browser, which is installed if it is missing and this is allowed.
fn chromium() -> Result<&'static str> {
    const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];
    let found = || NAMES.into_iter().find(|name| run::has(name));
    if let Some(name) = found() {
        return Ok(name);
    }
    run::apt_install("chromium");
    match found() {
        Some(name) => Ok(name),
        None => bail!(
            "Chromium is missing: install it (on Debian: apt-get install chromium) and run again"
        ),
    }
}
