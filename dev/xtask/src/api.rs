//! `cargo xtask api`: the public API of the published libraries, one item per line.
//!
//! The listings are committed, so that reviews show changes of the API. The program in `dev/xtask/public-api` creates
//! them from rustdoc's JSON, in the form of `cargo public-api -sss`. They omit blanket, auto-trait and derived
//! implementations.
//!
//! Rustdoc's JSON is an unstable feature, and its format changes every few releases of Rust.

use std::collections::HashSet;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{integrations, run, unstable, vendor};

/// The folders of the libraries, and their names.
const CRATES: [(&str, &str); 4] = [
    ("blosc2", "blosc2"),
    ("crates/format", "blosc2_format"),
    ("crates/object-store", "blosc2_object_store"),
    ("crates/store", "blosc2_store"),
];

/// The packages of the libraries. The root package enables all features of `blosc2` in pure Rust.
const PACKAGES: [&str; 5] =
    ["cblosc2", "blosc2-format", "blosc2-object-store", "blosc2-store", "blosc2-workspace"];

/// The toolchain that created the committed listings. Another one may print some paths of the standard library
/// differently.
const TOOLCHAIN: &str = "1.95";

/// The first line of each listing: what it leaves out.
const HEAD: &str = "# Left out: derived, blanket and auto-trait implementations; and what is in a `pub use` of another \
                    crate, which the listing of that crate has.\n";

/// Writes the listings. With `check`, fails if the committed ones are stale.
pub(crate) fn api(check: bool) -> Result<()> {
    if !cfg!(target_os = "linux") {
        // Some items exist on some platforms only.
        bail!("the listings of the API are made on Linux: run `cargo xtask api` there");
    }
    let release = release()?;
    if check && !is_release(&release, TOOLCHAIN) {
        // The listings and the JSON format depend on the release.
        println!(
            "api: the public API is NOT CHECKED: its listings are made with Rust {TOOLCHAIN}, and \
             this is Rust {release}; `cargo +{TOOLCHAIN} xtask api --check` checks it"
        );
        return Ok(());
    }
    vendor::vendor(false)?;
    let documentation = describe()?;
    let mut stale = String::new();
    for (folder, name) in CRATES {
        let fresh = listing(&documentation.join(format!("{name}.json")))
            .with_context(|| format!("the API of {name} cannot be listed"))?;
        let path = run::root().join(folder).join("api.txt");
        let old = fs::read_to_string(&path).unwrap_or_default();
        if old == fresh {
            println!("api: {folder}/api.txt is up to date, {} lines", fresh.lines().count());
        } else if check {
            write!(stale, "\n{folder}/api.txt:\n{}", differences(&old, &fresh))?;
        } else {
            fs::write(&path, &fresh)
                .with_context(|| format!("{} cannot be written", path.display()))?;
            println!("api: {folder}/api.txt is written:\n{}", differences(&old, &fresh));
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    bail!(
        "the public API is not as listed: if that is meant, run `cargo xtask api` and commit the \
         files\n{stale}"
    )
}

/// Lets rustdoc describe the libraries in JSON, and returns the folder with the files.
///
/// The features are those of the step "object storage, Arrow" of CI, which compiles the same dependencies.
fn describe() -> Result<PathBuf> {
    let mut command = run::cargo(["doc", "--lib", "--no-deps", "--no-default-features"]);
    command
        .args(["--features", integrations::QUICK_FEATURES])
        .args(PACKAGES.iter().flat_map(|package| ["-p", package]))
        // Errors in the documentation are ignored here.
        .env("RUSTDOCFLAGS", "-Z unstable-options --output-format json --cap-lints allow")
        // That variable would have precedence.
        .env_remove("CARGO_ENCODED_RUSTDOCFLAGS");
    run::run(unstable::rustdoc(&mut command)?)
        .context("rustdoc did not describe the crates in JSON")?;
    let metadata = run::read(&mut run::cargo(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let target = metadata["target_directory"].as_str().context("cargo names no target folder")?;
    Ok(Path::new(target).join("doc"))
}

/// The public API of a crate, from its description. The separate program `xtask-public-api` creates it, so that other
/// tasks do not have to compile its dependencies.
fn listing(description: &Path) -> Result<String> {
    let api = run::read(
        run::cargo(["run", "--quiet", "--package", "xtask-public-api", "--"]).arg(description),
    )?;
    Ok(format!("{HEAD}{api}"))
}

/// The lines that only one of two listings has. Each line is a whole item, and the lines are sorted.
fn differences(old: &str, new: &str) -> String {
    let mut text = String::new();
    for (sign, lines, others) in [('-', old, new), ('+', new, old)] {
        let others: HashSet<&str> = others.lines().collect();
        for line in lines.lines().filter(|line| !others.contains(line)) {
            text.extend([sign, ' ']);
            text.push_str(line);
            text.push('\n');
        }
    }
    if text.is_empty() && old != new {
        text.push_str("the same lines in another order, or not as often\n");
    }
    text
}

/// The release of Rust in use, as `1.95.0`.
fn release() -> Result<String> {
    let rustdoc = env::var_os("RUSTDOC").unwrap_or_else(|| "rustdoc".into());
    let text = run::read(Command::new(rustdoc).arg("-vV"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("release: "));
    line.map(str::to_owned).context("rustdoc does not say its version")
}

/// Whether a release, as `1.95.0`, is one of a toolchain, as `1.95` or the same.
fn is_release(release: &str, toolchain: &str) -> bool {
    release.strip_prefix(toolchain).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::{differences, is_release};

    #[test]
    fn differences_are_whole_lines() {
        let old = "pub fn c::a()\npub fn c::b()\npub mod c\n";
        let new = "pub fn c::a()\npub fn c::b(u8)\npub mod c\npub mod c::d\n";
        assert_eq!(differences(old, old), "");
        assert_eq!(differences(old, new), "- pub fn c::b()\n+ pub fn c::b(u8)\n+ pub mod c::d\n");
        assert_eq!(differences("", "pub mod c\n"), "+ pub mod c\n");
        assert!(differences("a\nb\n", "b\na\n").contains("another order"));
        assert!(differences("a\na\n", "a\n").contains("not as often"));
    }

    #[test]
    fn toolchain_has_releases() {
        assert!(is_release("1.95.0", "1.95"));
        assert!(is_release("1.95.0", "1.95.0"));
        assert!(!is_release("1.950.0", "1.95"));
        assert!(!is_release("1.96.0", "1.95"));
    }
}
