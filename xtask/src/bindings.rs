//! `cargo xtask bindings`: the raw bindings of `blosc2-sys`, made by bindgen from the C headers.
//!
//! The committed file spares users libclang. The build script makes the bindings when the feature
//! `bindgen` is on; this command asks it to, with a pinned libclang so that everybody gets the same
//! bytes, and copies or compares the result.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::python::{LIBCLANG, Venv};
use crate::{run, vendor};

/// Generates the bindings again. With `check`, fails if the committed ones are stale.
pub(crate) fn bindings(check: bool) -> Result<()> {
    if !cfg!(target_os = "linux") {
        // C's enums and longs differ from platform to platform, and with them the bytes.
        bail!("the committed bindings are made on Linux: run `cargo xtask bindings` there");
    }
    vendor::vendor(false)?;
    let fresh = generate()?;
    let committed = run::root().join("blosc2-sys").join("src").join("bindings.rs");
    let old = fs::read_to_string(&committed).unwrap_or_default();
    if old == fresh {
        println!("bindings: blosc2-sys/src/bindings.rs is up to date");
    } else if check {
        let line = old.lines().zip(fresh.lines()).take_while(|(old, new)| old == new).count();
        bail!(
            "blosc2-sys/src/bindings.rs is stale from line {} on (`{}`, now `{}`): run `cargo \
             xtask bindings` and commit the file",
            line + 1,
            old.lines().nth(line).unwrap_or("<end of file>"),
            fresh.lines().nth(line).unwrap_or("<end of file>"),
        );
    } else {
        fs::write(&committed, fresh)
            .with_context(|| format!("{} cannot be written", committed.display()))?;
        println!("bindings: blosc2-sys/src/bindings.rs is written");
    }
    Ok(())
}

/// Lets the build script of `blosc2-sys` make the bindings.
fn generate() -> Result<String> {
    let venv = Venv::with(LIBCLANG)?;
    let messages = run::read_stdout(
        // The codecs are no part of the declarations.
        run::cargo(["build", "-p", "blosc2-sys", "--no-default-features", "--features", "bindgen"])
            .arg("--message-format=json")
            .env("LIBCLANG_PATH", venv.libclang()?)
            .env("BINDGEN_EXTRA_CLANG_ARGS", clang_args())
            .env("BLOSC2_SYS_BINDINGS_ONLY", "1")
            .env_remove("BLOSC2_SYS_SOURCE_DIR")
            .env_remove("BLOSC2_SYS_USE_PKG_CONFIG"),
    )
    .context("the bindings cannot be made")?;
    let made = out_dir(&messages)
        .context("cargo did not say where the build script of blosc2-sys writes")?
        .join("bindings.rs");
    fs::read_to_string(&made)
        .with_context(|| format!("the build script did not write {}", made.display()))
}

/// The OUT_DIR of `blosc2-sys`, from cargo's messages.
fn out_dir(messages: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["reason"] == "build-script-executed")
        .find(|message| {
            let id = message["package_id"].as_str().unwrap_or_default();
            // The name is left out where the folder has it.
            id.contains("/blosc2-sys#") || id.contains("#blosc2-sys@")
        })
        .and_then(|message| message["out_dir"].as_str().map(PathBuf::from))
}

/// The package of libclang has no headers of its own (`stddef.h` and the like), so it gets the C
/// compiler's.
fn clang_args() -> String {
    let mut args = env::var("BINDGEN_EXTRA_CLANG_ARGS").unwrap_or_default();
    let include = ["gcc", "cc", "clang"].into_iter().find_map(|compiler| {
        let answer = run::read(Command::new(compiler).arg("-print-file-name=include")).ok()?;
        let folder = Path::new(answer.trim());
        folder.join("stddef.h").is_file().then(|| folder.display().to_string())
    });
    if let Some(folder) = include {
        args = format!("{args} -I{folder}").trim().to_owned();
    }
    args
}

#[cfg(test)]
mod tests {
    use super::out_dir;
    use std::path::Path;

    #[test]
    fn out_dir_is_that_of_the_right_package() {
        let messages = r#"{"reason":"build-script-executed","package_id":"registry+x#zstd-sys@2.0.1","out_dir":"/a"}
not json
{"reason":"build-script-executed","package_id":"path+file:///w/blosc2-sys#0.1.0+3.3.2","out_dir":"/b"}"#;
        assert_eq!(out_dir(messages).as_deref(), Some(Path::new("/b")));
        let messages = messages.replace("/w/blosc2-sys#0.1.0", "/w/sys#blosc2-sys@0.1.0");
        assert_eq!(out_dir(&messages).as_deref(), Some(Path::new("/b")));
        assert_eq!(out_dir(""), None);
    }
}
