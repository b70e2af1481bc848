//! `cargo xtask ci`: everything that has to hold before a change lands, the cheap checks first.

use std::thread;

use anyhow::{Result, anyhow, bail};

use crate::python::{LIBCLANG, Venv};
use crate::steps::Steps;
use crate::test::Extent;
use crate::{
    api, bindings, demo, hazards, imports, package, peers, run, sanitize, test, vendor, words,
};

type Step = (&'static str, fn() -> Result<()>);

const BEFORE: [Step; 11] = [
    ("sources", || vendor::vendor(false)),
    ("format", format),
    ("imports", imports::imports),
    ("words", words::words),
    ("clippy", clippy),
    ("docs", docs),
    ("public API", check_api),
    ("docs without C", docs_without_c),
    ("dependencies", dependencies),
    ("formats without C", formats_without_c),
    ("bindings", check_bindings),
];

// First what builds on what the tests have built. What comes later is built with other flags, or elsewhere.
const AFTER: [Step; 6] = [
    ("examples", demo::examples),
    ("package", package::package),
    ("peers", peers::peers),
    ("no codecs", no_codecs),
    ("hazards", || on_linux(hazards::hazards)),
    ("sanitize", || on_linux(|| sanitize::sanitize(false))),
];

/// Runs all steps, and stops at the first that fails.
pub(crate) fn ci() -> Result<()> {
    let mut steps = Steps::new("ci");
    for (name, step) in BEFORE {
        steps.step(name, step)?;
    }
    test::run_steps(&mut steps, Extent::Normal)?;
    for (name, step) in AFTER {
        steps.step(name, step)?;
    }
    steps.finish();
    Ok(())
}

fn format() -> Result<()> {
    let check = ["fmt", "--all", "--check"];
    run::run(&mut run::cargo(check))?;
    for folder in ["consumer", "peers"] {
        run::run(run::cargo(check).current_dir(run::root().join(folder)))?;
    }
    Ok(())
}

/// Gets what the bindings need at the same time.
fn clippy() -> Result<()> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    thread::scope(|scope| {
        let libclang = scope.spawn(|| on_linux(|| Venv::with(LIBCLANG).map(drop)));
        run::run(&mut run::cargo(clippy))?;
        libclang.join().map_err(|_| anyhow!("getting libclang panicked"))?
    })
}

fn docs() -> Result<()> {
    run::run(run::cargo(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Documentation is built where there is neither network nor C sources: the crate must not mind. The
/// features would only bring in codecs to compile.
fn docs_without_c() -> Result<()> {
    run::run(
        run::cargo(["doc", "-p", "blosc2-sys", "--no-deps", "--no-default-features"])
            .env("DOCS_RS", "1")
            .env("BLOSC2_SYS_SOURCE_DIR", run::root().join("target").join("no-sources")),
    )
}

/// A user of `blosc2` needs a C compiler, and nothing more; `blosc2-format` and its tests not even that.
fn dependencies() -> Result<()> {
    without("blosc2", "normal,build", &["cmake ", "bindgen ", "clang-sys "])?;
    without("blosc2-format", "normal,build,dev", &["cc ", "cmake ", "bindgen ", "clang-sys "])
}

/// Checks that a crate does not depend on others, by the starts of their lines in the tree of its dependencies
/// of these kinds.
fn without(crate_: &str, kinds: &str, others: &[&str]) -> Result<()> {
    let tree = ["tree", "-p", crate_, "-e", kinds, "--target", "all", "--prefix", "none"];
    let tree = run::read(&mut run::cargo(tree))?;
    if let Some(line) = tree.lines().find(|line| others.iter().any(|name| line.starts_with(name))) {
        bail!("{crate_} now needs {line}: see `cargo tree -p {crate_} -e {kinds}`");
    }
    println!("ci: {crate_} needs none of {}", others.join(", "));
    Ok(())
}

/// The formats in pure Rust build where there is no C compiler, and with no codec at all.
fn formats_without_c() -> Result<()> {
    let check = ["clippy", "-p", "blosc2-format", "--no-default-features", "--", "-D", "warnings"];
    run::run(run::cargo(check).env("CC", "there-is-no-c-compiler"))
}

/// Without the optional codecs, the library works with the others.
fn no_codecs() -> Result<()> {
    run::run(&mut run::cargo(["test", "-p", "blosc2", "--lib", "--no-default-features"]))
}

fn check_api() -> Result<()> {
    on_linux(|| api::api(true))
}

fn check_bindings() -> Result<()> {
    on_linux(|| bindings::bindings(true))
}

/// Runs what needs Linux, or says that it was not run.
fn on_linux(step: fn() -> Result<()>) -> Result<()> {
    if cfg!(target_os = "linux") {
        return step();
    }
    println!("ci: this step is run on Linux only");
    Ok(())
}
