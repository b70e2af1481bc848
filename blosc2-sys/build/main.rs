//! Builds C-Blosc2 with `cc` alone, or finds an installed one.
//!
//! Nothing here touches the network: the sources lie in `c-blosc2` (see `source_dir`).

#[cfg(feature = "bindgen")]
mod bindings;
mod compile;
mod harden;
mod symbols;

use std::env;
use std::path::{Path, PathBuf};

/// The release whose headers the committed bindings describe.
const VERSION: &str = "3.3.2";

fn main() {
    for name in [
        "BLOSC2_SYS_HEADERS_ONLY",
        "BLOSC2_SYS_SOURCE_DIR",
        "BLOSC2_SYS_TESTING",
        "BLOSC2_SYS_UNHARDENED",
        "BLOSC2_SYS_USE_PKG_CONFIG",
        "DOCS_RS",
    ] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rustc-check-cfg=cfg(blosc2_hardened, blosc2_system)");

    if env::var_os("DOCS_RS").is_some() {
        return;
    }
    let include = if cfg!(feature = "system") || env::var_os("BLOSC2_SYS_USE_PKG_CONFIG").is_some()
    {
        println!("cargo::rustc-cfg=blosc2_system");
        link_installed()
    } else {
        build_from_source()
    };
    println!("cargo::metadata=include={}", include.display());

    #[cfg(feature = "bindgen")]
    bindings::generate(&include, &out_dir().join("bindings.rs"));
}

fn build_from_source() -> PathBuf {
    let source = source_dir();
    println!("cargo::rerun-if-changed={}", source.display());

    let copy = sources_copy();
    let hardened = env::var_os("BLOSC2_SYS_UNHARDENED").is_none();
    harden::copy_sources(&source, &copy, hardened);
    symbols::rename();
    if hardened {
        println!("cargo::rustc-cfg=blosc2_hardened");
    }
    // Commands that link nothing set this variable: clippy in `cargo xtask ci`, and `cargo xtask bindings`.
    if env::var_os("BLOSC2_SYS_HEADERS_ONLY").is_none() {
        compile::compile(&copy, hardened);
    }

    println!("cargo::metadata=root={}", out_dir().display());
    println!("cargo::metadata=version={VERSION}");
    copy.join("include")
}

/// Where the C sources are: the place that the user names, the packaged copy (in a checkout a
/// symlink to the submodule), or the submodule itself where symlinks are not checked out as such.
fn source_dir() -> PathBuf {
    let manifest = PathBuf::from(var("CARGO_MANIFEST_DIR"));
    let named = env::var_os("BLOSC2_SYS_SOURCE_DIR").map(PathBuf::from);
    let candidates = match named {
        Some(dir) => vec![dir],
        None => vec![manifest.join("c-blosc2"), manifest.join("../c-blosc2")],
    };
    for dir in &candidates {
        if dir.join("include/blosc2.h").is_file() {
            check_version(dir);
            return dir.clone();
        }
    }
    fail(&format!(
        "the C-Blosc2 sources are missing (looked in {}).\n\
         Get them with `git submodule update --init`, or, where the git host cannot be reached, \
         with `cargo xtask vendor`.",
        candidates.iter().map(|dir| dir.display().to_string()).collect::<Vec<_>>().join(", ")
    ))
}

/// Refuses headers of another release: the bindings would not describe them.
fn check_version(source: &Path) {
    let header = source.join("include/blosc2.h");
    let text = std::fs::read_to_string(&header)
        .unwrap_or_else(|error| fail(&format!("cannot read {}: {error}", header.display())));
    let wanted = format!("\"{VERSION}\"");
    let found = text
        .lines()
        .find_map(|line| line.strip_prefix("#define BLOSC2_VERSION_STRING"))
        .unwrap_or("nothing");
    if !found.contains(&wanted) {
        fail(&format!(
            "{} is of another release: expected version {wanted}, found {}",
            source.display(),
            found.trim()
        ));
    }
}

#[cfg(feature = "system")]
fn link_installed() -> PathBuf {
    let library = pkg_config::Config::new()
        .range_version("3.3.0".."3.4.0")
        .probe("blosc2")
        .unwrap_or_else(|error| fail(&format!("no installed C-Blosc2 of version 3.3: {error}")));
    println!("cargo::metadata=version={}", library.version);
    library.include_paths.into_iter().find(|dir| dir.join("blosc2.h").is_file()).unwrap_or_else(
        || PathBuf::from("/usr/include"), // where pkg-config leaves the path out
    )
}

#[cfg(not(feature = "system"))]
fn link_installed() -> PathBuf {
    fail("BLOSC2_SYS_USE_PKG_CONFIG needs the feature `system` of cblosc2-sys");
}

/// The copy of the C sources, with the patches.
fn sources_copy() -> PathBuf {
    out_dir().join("c-blosc2")
}

fn out_dir() -> PathBuf {
    PathBuf::from(var("OUT_DIR"))
}

/// A variable that Cargo sets for build scripts.
fn var(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| fail(&format!("{name}: {error}")))
}

/// Stops the build with one message.
fn fail(message: &str) -> ! {
    eprintln!("\nblosc2-sys: {message}\n");
    std::process::exit(1);
}
