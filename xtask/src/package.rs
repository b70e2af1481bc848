//! `cargo xtask package`: the packages to publish are complete, small, and work for dependent crates.
//!
//! Two parts can fail. The C sources are not in this repository and reach the package of `cblosc2-sys` through a link.
//! And the workspace unifies the features of its members, which hides a missing feature of one of them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::{bindings, run, vendor};

/// The crate that carries the C sources.
const SYS: &str = "cblosc2-sys";
/// A package must stay below this, in bytes.
const LIMIT: u64 = 2 << 20;

/// A crate of the workspace that is published.
struct Published {
    name: String,
    version: String,
}

/// Checks the packages of all published crates, and runs a program that depends on them.
pub(crate) fn package() -> Result<()> {
    vendor::vendor(false)?;
    let (crates, target) = metadata()?;
    for published in &crates {
        let list = run::read(&mut run::cargo([
            "package",
            "--list",
            "--allow-dirty",
            "-p",
            &published.name,
        ]))?;
        let files: Vec<&str> = list.lines().collect();
        check_list(&published.name, &files)
            .with_context(|| format!("the package of {} is wrong", published.name))?;
        println!("package: {} has {} files", published.name, files.len());
    }

    // Not `--workspace`, which includes the unpublished ones. One command for all, so that cargo accepts
    // dependencies between them before they are published.
    let mut command = run::cargo(["package", "--quiet", "--allow-dirty", "--no-verify"]);
    for published in &crates {
        command.args(["-p", &published.name]);
    }
    run::run(&mut command)?;

    let place = run::root().join("target").join("package-check");
    run::empty(&place)?;
    for Published { name, version } in &crates {
        let archive = target.join("package").join(format!("{name}-{version}.crate"));
        let size = fs::metadata(&archive)
            .with_context(|| format!("{} is missing", archive.display()))?
            .len();
        ensure!(size < LIMIT, "{name} has {size} bytes, {LIMIT} are too many");
        println!("package: {name} has {size} bytes");
        let mut files = tar::Archive::new(GzDecoder::new(File::open(&archive)?));
        // Cargo writes the same time for all files, and would not notice that they have changed since the last build.
        files.set_preserve_mtime(false);
        files
            .unpack(&place)
            .with_context(|| format!("{} cannot be unpacked", archive.display()))?;
    }
    consume(&crates, &place)
}

/// Builds and runs a copy of the program in `consumer/` on the unpacked packages, with its default features (the default
/// codecs and all features for other crates) and without features.
fn consume(crates: &[Published], place: &Path) -> Result<()> {
    let (root, folder) = (run::root(), place.join("consumer"));
    fs::create_dir_all(folder.join("src"))?;
    for file in ["Cargo.toml", "src/main.rs"] {
        fs::copy(root.join("consumer").join(file), folder.join(file))
            .with_context(|| format!("consumer/{file} cannot be copied"))?;
    }
    // With the versions and profiles of the workspace, so that its compiled dependencies are reused.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let profiles = manifest.find("[profile.").map_or("", |start| &manifest[start..]);
    let mut file = OpenOptions::new().append(true).open(folder.join("Cargo.toml"))?;
    writeln!(file, "\n[patch.crates-io]")?;
    for Published { name, version } in crates {
        writeln!(file, "{name} = {{ path = {:?} }}", place.join(format!("{name}-{version}")))?;
    }
    // Without the profiles of the crates of this workspace: the program does too little to gain from their optimization.
    let is_ours = |line: &&str| line.starts_with("blosc2-") || line.starts_with("cblosc2");
    let profiles = profiles.lines().filter(|line| !is_ours(line));
    writeln!(file, "\n{}", profiles.collect::<Vec<_>>().join("\n"))?;
    let cargo = |args: &[&str]| {
        let mut command = run::cargo(args);
        command.current_dir(&folder).env("CARGO_TARGET_DIR", root.join("target"));
        command.env_remove("BLOSC2_SYS_SOURCE_DIR");
        command
    };
    for args in [&["run", "--quiet"][..], &["run", "--quiet", "--no-default-features"]] {
        run::run(&mut cargo(args)).context("a program that depends on the crates fails")?;
    }
    if cfg!(target_os = "linux") {
        let messages = run::read(&mut cargo(&["build", "--message-format=json"]))?;
        let out = bindings::out_dir(&messages).context("cargo built no libcblosc2.a")?;
        check_symbols(&out.join("libcblosc2.a"))?;
    }
    println!("package: a program runs on the packages, with default features and with none");
    Ok(())
}

/// Checks that the symbols of the C library have a prefix, so that a program can also link another Blosc.
fn check_symbols(library: &Path) -> Result<()> {
    run::need("nm", "binutils")?;
    let text = run::read(Command::new("nm").args(["-g", "--defined-only"]).arg(library))?;
    // A line has the address, the type and the name. The names of the members of the archive have no spaces.
    let names = text.lines().filter_map(|line| line.split(' ').nth(2));
    let (prefixed, other): (Vec<_>, Vec<_>) = names.partition(|name| {
        ["cblosc2_", "blosc2_sys_"].into_iter().any(|prefix| name.starts_with(prefix))
    });
    ensure!(other.is_empty(), "not in blosc2-sys/build/symbols.txt: {}", other.join(", "));
    ensure!(prefixed.len() > 300, "only {} symbols in {}", prefixed.len(), library.display());
    println!("package: {} symbols of C have a prefix", prefixed.len());
    Ok(())
}

/// The published crates, and the target folder of cargo.
fn metadata() -> Result<(Vec<Published>, PathBuf)> {
    let text = run::read(&mut run::cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let all: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let target = all["target_directory"].as_str().context("cargo names no target directory")?;
    let crates: Vec<_> = all["packages"]
        .as_array()
        .context("cargo names no packages")?
        .iter()
        // `publish = false` is an empty list of registries.
        .filter(|package| package["publish"].is_null())
        .filter_map(|package| {
            Some(Published {
                name: package["name"].as_str()?.to_owned(),
                version: package["version"].as_str()?.to_owned(),
            })
        })
        .collect();
    ensure!(crates.iter().any(|published| published.name == SYS), "{SYS} is not to be published");
    Ok((crates, target.into()))
}

/// Checks the list of files of a package.
fn check_list(name: &str, files: &[&str]) -> Result<()> {
    let is_test = |file: &&str| {
        let last = file.rsplit('/').next().unwrap_or(file);
        last.starts_with("test_") && last.ends_with(".c")
    };
    let of_git = |file: &&str| file.split('/').any(|part| part.starts_with(".git"));
    if let Some(file) = files.iter().find(|file| is_test(file) || of_git(file)) {
        bail!("{file} does not belong in it");
    }
    if name == SYS {
        let wanted = ["c-blosc2/blosc/", "c-blosc2/include/", "c-blosc2/plugins/"];
        for part in wanted {
            ensure!(files.iter().any(|file| file.starts_with(part)), "nothing of {part} is in it");
        }
        for file in ["c-blosc2/blosc/blosc2.c", "c-blosc2/include/blosc2.h", "src/bindings.rs"] {
            ensure!(files.contains(&file), "{file} is not in it");
        }
        let count =
            files.iter().filter(|file| wanted.iter().any(|part| file.starts_with(part))).count();
        ensure!(count > 60, "only {count} C files are in it, more than 60 are expected");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check_list;

    #[test]
    fn lists_are_checked() {
        assert!(check_list("cblosc2", &["src/lib.rs"]).is_ok());
        assert!(check_list("cblosc2", &["src/lib.rs", "x/.git/config"]).is_err());
        assert!(check_list("cblosc2-sys", &["src/lib.rs"]).is_err());
        let many: Vec<_> = (0..70).map(|i| format!("c-blosc2/plugins/{i}.c")).collect();
        let mut files: Vec<&str> = many.iter().map(String::as_str).collect();
        files.extend(["c-blosc2/blosc/blosc2.c", "c-blosc2/include/blosc2.h", "src/bindings.rs"]);
        assert!(check_list("cblosc2-sys", &files).is_ok());
        files.push("c-blosc2/plugins/codecs/test_ndlz.c");
        assert!(check_list("cblosc2-sys", &files).is_err());
    }
}
