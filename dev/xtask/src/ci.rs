//! `cargo xtask ci`: all checks of a change, the cheap ones first.

use std::thread;

use anyhow::{Result, anyhow, bail};

use crate::python::{LIBCLANG, Venv};
use crate::steps::Steps;
use crate::test::Extent;
use crate::{
    api, bench, bindings, conformance, demo, hazards, imports, integrations, links, package,
    readme, run, sanitize, test, vendor, web, words,
};

type Step = (&'static str, fn() -> Result<()>);

const BEFORE: [Step; 13] = [
    ("sources", || vendor::vendor(false)),
    ("format", format),
    ("imports", imports::imports),
    ("words", words::words),
    ("links", links::links),
    ("clippy", clippy),
    ("docs", docs),
    ("public API", check_api),
    ("docs without C", docs_without_c),
    ("dependencies", dependencies),
    ("no features", without_features),
    ("WebAssembly", for_the_browser),
    ("bindings", check_bindings),
];

// First the steps that reuse the build of the tests. The later ones use other flags or other folders.
const AFTER: [Step; 8] = [
    ("conformance", || on_linux(check_conformance)),
    ("examples", demo::examples),
    ("real data", || on_linux(|| bench::named("real", true, false))),
    ("package", || package::package(false)),
    ("README", readme::readme),
    ("object storage, Arrow", integrations::quick),
    ("hazards", || on_linux(hazards::quick)),
    ("address sanitizer", || on_linux(sanitize::quick)),
];

/// Runs all steps and stops at the first failure.
pub(crate) fn ci() -> Result<()> {
    run::use_fast_build();
    let mut steps = Steps::new("ci");
    for (name, step) in BEFORE {
        steps.step(name, step)?;
    }
    test::run_steps(&mut steps, Extent::Normal)?;
    test::other_configurations(&mut steps, Extent::Normal)?;
    for (name, step) in AFTER {
        steps.step(name, step)?;
    }
    steps.finish();
    Ok(())
}

fn format() -> Result<()> {
    // Without `--all`, which downloads the dependencies of each workspace.
    let check = ["fmt", "--check"];
    run::run(&mut run::cargo(check))?;
    for folder in [
        "crates/datafusion",
        "crates/cluster",
        "crates/sql",
        "crates/format/fuzz",
        "blosc2/fuzz",
        "dev/consumer",
        "dev/integrations",
        "dev/peers",
        "dev/peers/bench",
        "dev/peers/neighbours",
        "dev/peers/real",
    ] {
        run::run(run::cargo(check).current_dir(run::root().join(folder)))?;
    }
    Ok(())
}

/// Runs clippy, and at the same time installs libclang for the bindings.
fn clippy() -> Result<()> {
    let clippy = ["clippy", "--all-targets", "--", "-D", "warnings"];
    // No default target, as it is no test of `cargo test`.
    let matrix = ["clippy", "--test", "conformance", "--", "-D", "warnings"];
    thread::scope(|scope| {
        let libclang = scope.spawn(|| on_linux(|| Venv::with(LIBCLANG).map(drop)));
        // Clippy has separate build scripts of the workspace's crates: without this variable, that of `blosc2-sys` would
        // compile the C library a second time. Clippy does not link it.
        for args in [&clippy[..], &matrix] {
            run::run(run::cargo(args).env("BLOSC2_SYS_HEADERS_ONLY", "1"))?;
        }
        libclang.join().map_err(|_| anyhow!("getting libclang panicked"))?
    })
}

fn docs() -> Result<()> {
    run::run(run::cargo(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// docs.rs builds the documentation without network and C sources, so this has to succeed. The features would only add
/// codecs to compile.
fn docs_without_c() -> Result<()> {
    run::run(
        run::cargo(["doc", "-p", "cblosc2-sys", "--no-deps", "--no-default-features"])
            .env("DOCS_RS", "1")
            .env("BLOSC2_SYS_SOURCE_DIR", run::root().join("target").join("no-sources")),
    )
}

/// A user of `blosc2` needs a C compiler and nothing else; `blosc2-format` and its tests do not even need that.
fn dependencies() -> Result<()> {
    without("cblosc2", "normal,build", &["cmake ", "bindgen ", "clang-sys "])?;
    without("blosc2-format", "normal,build,dev", &["cc ", "cmake ", "bindgen ", "clang-sys "])
}

/// Checks that the dependencies of these kinds do not include `others`, which are prefixes of lines in cargo's tree.
fn without(crate_: &str, kinds: &str, others: &[&str]) -> Result<()> {
    let tree = ["tree", "-p", crate_, "-e", kinds, "--target", "all", "--prefix", "none"];
    let tree = run::read(&mut run::cargo(tree))?;
    if let Some(line) = tree.lines().find(|line| others.iter().any(|name| line.starts_with(name))) {
        bail!("{crate_} now needs {line}: see `cargo tree -p {crate_} -e {kinds}`");
    }
    println!("ci: {crate_} needs none of {}", others.join(", "));
    Ok(())
}

/// Without any feature there are no warnings. The formats in pure Rust build without a C compiler.
fn without_features() -> Result<()> {
    let clippy = |package| {
        let check = ["clippy", "-p", package, "--no-default-features", "--", "-D", "warnings"];
        run::cargo(check)
    };
    run::run(clippy("blosc2-format").env("CC", "there-is-no-c-compiler"))?;
    run::run(&mut clippy("cblosc2"))
}

/// The viewer is built and tested by `cargo xtask web`, which takes minutes: here it is only checked.
fn for_the_browser() -> Result<()> {
    web::add_target()?;
    let check = ["clippy", "-p", "blosc2-web", "--target", web::TARGET, "--", "-D", "warnings"];
    run::run(&mut run::cargo(check))
}

fn check_api() -> Result<()> {
    on_linux(|| api::api(true))
}

fn check_conformance() -> Result<()> {
    conformance::conformance(true, None)
}

fn check_bindings() -> Result<()> {
    on_linux(|| bindings::bindings(true))
}

/// Runs a step on Linux; on other systems prints that it is skipped.
fn on_linux(step: fn() -> Result<()>) -> Result<()> {
    if cfg!(target_os = "linux") {
        return step();
    }
    println!("ci: this step is run on Linux only");
    Ok(())
}
