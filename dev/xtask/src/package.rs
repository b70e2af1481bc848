//! `cargo xtask package`: the packages to publish are complete, small, and work for dependent crates.
//!
//! Two parts can fail. The C sources are not in this repository and reach the package of `cblosc2-sys` through a link.
//! And the workspace unifies the features of its members, which hides a missing feature of one of them.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use serde_json::Value;

use crate::{bindings, integrations, run, vendor, web};

/// The crate that carries the C sources.
const SYS: &str = "cblosc2-sys";
/// A package must stay below this, in bytes.
const LIMIT: u64 = 2 << 20;

/// A crate that is published.
struct Published {
    name: String,
    version: String,
}

/// Checks the packages of all published crates, and runs a program that depends on them. With `verify`, also compiles
/// each package, as `cargo publish` does.
pub(crate) fn package(verify: bool) -> Result<()> {
    vendor::vendor(false)?;
    // The command has the page of `view --web`, whose build takes minutes.
    if verify {
        web::build(&run::root().join("target/web"))?;
    }
    let (root, place) = (run::root(), run::root().join("target").join("package-check"));
    run::empty(&place)?;
    let crates = metadata(&root)?;
    ensure!(crates.iter().any(|published| published.name == SYS), "{SYS} is not to be published");
    pack(&root, &crates, &[], verify, &place)?;

    if verify {
        integrations::need_hdf5()?;
    }
    // For these, the packages above take the place of the published ones.
    for workspace in ["dev/integrations", "crates/datafusion"] {
        let folder = root.join(workspace);
        let integrations = metadata(&folder)?;
        ensure!(!integrations.is_empty(), "no crate of {workspace} is to be published");
        let lock = fs::read(folder.join("Cargo.lock"))?;
        let packed = pack(&folder, &integrations, &patches(&crates, &place), verify, &place);
        // Cargo has written the places of the packages to it.
        fs::write(folder.join("Cargo.lock"), lock)?;
        packed?;
    }
    consume(&crates, &place)
}

/// Packs crates of the workspace in `folder`, checks the packages, and unpacks them to `place`.
fn pack(
    folder: &Path,
    crates: &[Published],
    patches: &[String],
    verify: bool,
    place: &Path,
) -> Result<()> {
    let target = run::root().join("target");
    let cargo = |args: &[&str]| {
        let mut command = run::cargo(args);
        command.current_dir(folder).env("CARGO_TARGET_DIR", &target);
        command
    };
    for Published { name, .. } in crates {
        let list = run::read(&mut cargo(&["package", "--list", "--allow-dirty", "-p", name]))?;
        let files: Vec<&str> = list.lines().collect();
        let mut checked = check_list(name, &files);
        if verify && name == "blosc2-cli" {
            checked = checked.and_then(|()| check_page(&files));
        }
        checked.with_context(|| format!("the package of {name} is wrong"))?;
        println!("package: {name} has {} files", files.len());
    }

    // Not `--workspace`, which includes the unpublished ones. One command for all, so that cargo accepts
    // dependencies between them before they are published.
    let mut command = cargo(&["package", "--quiet", "--allow-dirty"]);
    for published in crates {
        command.args(["-p", &published.name]);
    }
    for patch in patches {
        command.args(["--config", &format!("patch.crates-io.{patch}")]);
    }
    if !verify {
        command.arg("--no-verify");
    }
    run::run(&mut command)?;

    for Published { name, version } in crates {
        let archive = target.join("package").join(format!("{name}-{version}.crate"));
        let size = fs::metadata(&archive)
            .with_context(|| format!("{} is missing", archive.display()))?
            .len();
        ensure!(size < LIMIT, "{name} has {size} bytes, {LIMIT} are too many");
        println!("package: {name} has {size} bytes");
        let mut files = tar::Archive::new(GzDecoder::new(File::open(&archive)?));
        // Cargo writes the same time for all files, and would not notice that they have changed since the last build.
        files.set_preserve_mtime(false);
        files.unpack(place).with_context(|| format!("{} cannot be unpacked", archive.display()))?;
    }
    Ok(())
}

/// The lines that let cargo use the unpacked packages.
fn patches(crates: &[Published], place: &Path) -> Vec<String> {
    let line = |Published { name, version }: &Published| {
        format!("{name}.path = {:?}", place.join(format!("{name}-{version}")))
    };
    crates.iter().map(line).collect()
}

/// Builds and runs a copy of the program in `dev/consumer` on the unpacked packages, with its default features (the default
/// codecs and all features for other crates) and without features.
fn consume(crates: &[Published], place: &Path) -> Result<()> {
    let (root, folder) = (run::root(), place.join("consumer"));
    fs::create_dir_all(folder.join("src"))?;
    for file in ["Cargo.toml", "src/main.rs"] {
        fs::copy(root.join("dev/consumer").join(file), folder.join(file))
            .with_context(|| format!("dev/consumer/{file} cannot be copied"))?;
    }
    // With the versions and profiles of the workspace, so that its compiled dependencies are reused.
    fs::copy(root.join("Cargo.lock"), folder.join("Cargo.lock"))?;
    let manifest = fs::read_to_string(root.join("Cargo.toml"))?;
    let profiles = manifest.find("[profile.").map_or("", |start| &manifest[start..]);
    let mut file = OpenOptions::new().append(true).open(folder.join("Cargo.toml"))?;
    writeln!(file, "\n[patch.crates-io]")?;
    writeln!(file, "{}", patches(crates, place).join("\n"))?;
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

/// The published crates of the workspace in `folder`.
fn metadata(folder: &Path) -> Result<Vec<Published>> {
    let mut command = run::cargo(["metadata", "--no-deps", "--format-version", "1"]);
    let text = run::read(command.current_dir(folder))?;
    let all: Value = serde_json::from_str(&text).context("cargo metadata is not JSON")?;
    let packages = all["packages"].as_array().context("cargo names no packages")?;
    // `publish = false` is an empty list of registries.
    let mut crates = Vec::new();
    for package in packages.iter().filter(|package| package["publish"].is_null()) {
        let name = package["name"].as_str().context("a package has no name")?;
        for key in ["description", "documentation", "license", "readme", "rust_version"] {
            ensure!(package[key].is_string(), "the manifest of {name} does not state `{key}`");
        }
        for key in ["categories", "keywords"] {
            let count = package[key].as_array().map_or(0, Vec::len);
            ensure!((1..=5).contains(&count), "{name} has {count} {key}, expected 1 to 5");
        }
        let version = package["version"].as_str().context("a package has no version")?;
        crates.push(Published { name: name.to_owned(), version: version.to_owned() });
    }
    Ok(crates)
}

/// Checks that the package of the command has the page of the viewer.
fn check_page(files: &[&str]) -> Result<()> {
    for file in ["page/index.html", "page/worker.js", "page/blosc2_web_bg.wasm"] {
        ensure!(files.contains(&file), "{file} is not in it");
    }
    Ok(())
}

/// Checks the list of files of a package.
fn check_list(name: &str, files: &[&str]) -> Result<()> {
    let is_test = |file: &&str| {
        let last = file.rsplit('/').next().unwrap_or(file);
        last.starts_with("test_") && last.ends_with(".c")
    };
    for file in ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
        ensure!(files.contains(&file), "{file} is not in it");
    }
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
    use super::{check_list, check_page};

    #[test]
    fn lists_are_checked() {
        let common = ["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md", "src/lib.rs"];
        assert!(check_list("cblosc2", &common).is_ok());
        assert!(check_list("cblosc2", &common[1..]).is_err());
        assert!(check_list("cblosc2", &[&common[..], &["x/.git/config"]].concat()).is_err());
        assert!(check_list("cblosc2-sys", &common).is_err());
        assert!(check_page(&common).is_err());
        let many: Vec<_> = (0..70).map(|i| format!("c-blosc2/plugins/{i}.c")).collect();
        let mut files: Vec<&str> = many.iter().map(String::as_str).chain(common).collect();
        files.extend(["c-blosc2/blosc/blosc2.c", "c-blosc2/include/blosc2.h", "src/bindings.rs"]);
        assert!(check_list("cblosc2-sys", &files).is_ok());
        files.push("c-blosc2/plugins/codecs/test_ndlz.c");
        assert!(check_list("cblosc2-sys", &files).is_err());
    }
}
