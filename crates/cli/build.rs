//! Embeds the page of `view --web`, with the feature `web`.
//!
//! The page is HTML, CSS, scripts and WebAssembly, which `cargo xtask web` builds. The package has it as files.

use std::path::{Path, PathBuf};
use std::{env, fs, process};

/// The start of the line of `index.html` that has the content security policy.
const POLICY: &str = r#"<meta http-equiv="Content-Security-Policy" content=""#;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=BLOSC2_WEB_PAGE");
    if env::var_os("CARGO_FEATURE_WEB").is_some() {
        embed(&folder());
    }
}

/// Where the page is: the place that the user names, the packaged copy (in a checkout a symlink to `target/web`), or
/// `target/web` itself where symlinks are not checked out as such.
fn folder() -> PathBuf {
    let manifest = PathBuf::from(var("CARGO_MANIFEST_DIR"));
    let named = env::var_os("BLOSC2_WEB_PAGE").map(PathBuf::from);
    let candidates = match named {
        Some(folder) => vec![folder],
        None => vec![manifest.join("page"), manifest.join("../../target/web")],
    };
    let found = candidates.iter().find(|folder| folder.join("index.html").is_file());
    found.cloned().unwrap_or_else(|| {
        let places: Vec<_> = candidates.iter().map(|folder| folder.display().to_string()).collect();
        fail(&format!(
            "the feature `web` needs the page of the viewer, which is missing (looked for index.html in {}).\n\
             Build it with `cargo xtask web`, or set BLOSC2_WEB_PAGE to its folder.",
            places.join(", ")
        ))
    })
}

/// Writes a file of Rust with the files of the page and its content security policy.
fn embed(folder: &Path) {
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let entries = entries.unwrap_or_else(|error| fail(&format!("{}: {error}", folder.display())));
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.sort();
    let mut text = String::from("pub(crate) const FILES: &[(&str, &[u8])] = &[\n");
    for file in files {
        let path = fs::canonicalize(&file)
            .unwrap_or_else(|error| fail(&format!("{}: {error}", file.display())));
        let name = file.file_name().unwrap_or_default();
        text += &format!("({name:?}, include_bytes!({path:?})),\n");
    }
    let index = folder.join("index.html");
    let html = fs::read_to_string(&index)
        .unwrap_or_else(|error| fail(&format!("{}: {error}", index.display())));
    let policy = html.split_once(POLICY).and_then(|(_, rest)| rest.split_once('"'));
    let Some((policy, _)) = policy else {
        fail(&format!("{} has no content security policy ({POLICY}...)", index.display()))
    };
    text += &format!("];\npub(crate) const POLICY: &str = {policy:?};\n");
    let target = PathBuf::from(var("OUT_DIR")).join("page.rs");
    fs::write(&target, text)
        .unwrap_or_else(|error| fail(&format!("{}: {error}", target.display())));
}

fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo does not set {name}")))
}

fn fail(message: &str) -> ! {
    eprintln!("\nblosc2-cli: {message}\n");
    process::exit(1)
}
