//! Running the test programs that cargo builds, several at once.
//!
//! `cargo test` starts one when the one before has ended; many of them cannot keep two processors busy.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::run;

/// A program of tests.
struct Program {
    /// Where its source is, in the workspace.
    name: String,
    path: PathBuf,
    /// Where cargo would start it: the folder of its package.
    folder: PathBuf,
}

/// Does what a `cargo test` does, without tests in documentation: builds the programs, and runs all of them
/// with these arguments, also after one has failed. What a program says is shown when it fails.
pub(crate) fn test(cargo: &mut Command, args: &[&str]) -> Result<()> {
    cargo.args(["--no-run", "--message-format=json-render-diagnostics"]);
    let programs = programs(&run::read_stdout(cargo)?);
    ensure!(!programs.is_empty(), "cargo built no tests");
    let variables: Vec<_> = cargo.get_envs().collect();
    let passed = in_parallel(&programs, |program| {
        let mut command = Command::new(&program.path);
        command.args(args).current_dir(&program.folder).stdin(Stdio::null());
        for (name, value) in &variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.env("CARGO_MANIFEST_DIR", &program.folder);
        let output = command
            .output()
            .with_context(|| format!("{} cannot be started", program.path.display()))?;
        let (name, said) = (&program.name, String::from_utf8_lossy(&output.stdout));
        // Without it, a test has ended the program.
        let result = said.lines().find(|line| line.starts_with("test result: "));
        if let (true, Some(result)) = (output.status.success(), result) {
            println!("{name}: {result}");
            return Ok(true);
        }
        let errors = String::from_utf8_lossy(&output.stderr);
        println!("{said}{errors}{name}: FAILED ({})", output.status);
        Ok(false)
    })?;
    let failed = programs.iter().zip(passed).filter(|(_, passed)| !passed);
    let failed: Vec<&str> = failed.map(|(program, _)| program.name.as_str()).collect();
    if !failed.is_empty() {
        bail!("tests fail in {}", failed.join(", "));
    }
    Ok(())
}

/// The programs that cargo's messages tell of.
fn programs(messages: &str) -> Vec<Program> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["profile"]["test"] == true)
        .filter_map(|message| {
            let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
            let source = Path::new(message["target"]["src_path"].as_str()?);
            Some(Program {
                name: source.strip_prefix(run::root()).unwrap_or(source).display().to_string(),
                path: message["executable"].as_str()?.into(),
                folder: folder.to_owned(),
            })
        })
        .collect()
}

/// Does the same for all, on as many threads as there are processors; keeps their order.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    all: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(each) = all.get(at) else { break };
                    let result = work(each);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((at, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::programs;

    #[test]
    fn programs_are_those_of_tests() {
        let messages = r#"{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/tests/x.rs"},"profile":{"test":true},"executable":"/t/x"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/src/main.rs"},"profile":{"test":false},"executable":"/t/command"}
{"reason":"compiler-artifact","manifest_path":"/w/a/Cargo.toml","target":{"src_path":"/w/a/src/lib.rs"},"profile":{"test":true},"executable":null}
not json"#;
        let found = programs(messages);
        let [program] = &found[..] else { panic!("{} programs", found.len()) };
        assert_eq!((&*program.name, program.path.to_str()), ("/w/a/tests/x.rs", Some("/t/x")));
        assert_eq!(program.folder.to_str(), Some("/w/a"));
    }
}
