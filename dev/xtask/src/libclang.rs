//! The set-up of libclang, with which bindgen reads C headers. Every command whose build scripts run bindgen uses it.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use crate::python::{LIBCLANG, Venv};
use crate::run;

/// Installs libclang, and sets the environment variables with which bindgen finds libclang and the headers of the C
/// compiler.
pub(crate) fn set(command: &mut Command) -> Result<()> {
    let venv = Venv::with(LIBCLANG)?;
    command.env("LIBCLANG_PATH", venv.libclang()?).env("BINDGEN_EXTRA_CLANG_ARGS", arguments());
    Ok(())
}

/// The package of libclang has no headers such as `stddef.h`, so libclang uses those of the C compiler. The vector types
/// of these headers are unknown to libclang.
fn arguments() -> String {
    let mut args = env::var("BINDGEN_EXTRA_CLANG_ARGS").unwrap_or_default();
    let include = ["gcc", "cc", "clang"].into_iter().find_map(|compiler| {
        let answer = run::read(Command::new(compiler).arg("-print-file-name=include")).ok()?;
        let folder = Path::new(answer.trim());
        folder.join("stddef.h").is_file().then(|| folder.display().to_string())
    });
    if let Some(folder) = include {
        args += &format!(" -I{folder}");
    }
    args += " -U__SSE2__ -U__AVX2__ -U__AVX512F__ -U__AVX512BW__";
    args.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// Without the headers, bindgen fails in a fresh clone on a machine that has no clang.
    #[test]
    fn every_command_finds_the_headers() {
        let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
        let mut callers = Vec::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
                let text = fs::read_to_string(&path).unwrap();
                if name == "libclang" {
                    continue;
                }
                assert!(!text.contains("LIBCLANG_PATH"), "{name} sets up libclang");
                if text.contains("libclang::set(") {
                    callers.push(name);
                }
            }
        }
        callers.sort();
        assert_eq!(callers, ["bench", "bindings", "c", "peers"]);
    }
}
