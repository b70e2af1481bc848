//! `cargo xtask fuzz`: the fuzz targets under libFuzzer, by default with the address sanitizer, C code included.
//!
//! The programs are built by the nightly compiler, and C by clang, so that both count covered branches and pass compared
//! values to libFuzzer. `cargo fuzz` knows the same folders, but would compile C without that.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{run, vendor};

/// The folders of the targets, and their names.
const TARGETS: [(&str, &[&str]); 2] = [
    ("crates/format/fuzz", &["check", "decode", "dtype"]),
    (
        "blosc2/fuzz",
        &[
            "change",
            "differential",
            "differential_chunk",
            "msgpack",
            "open_and_walk",
            "partial",
            "remote",
            "round_trip",
            "slices",
            "store_folder",
            "store_metadata",
            "store_zip",
        ],
    ),
];

/// What is run, and for how long.
#[derive(Debug, clap::Args)]
pub(crate) struct Fuzz {
    /// Run only this target
    target: Option<String>,
    /// Run each target for this time
    #[arg(long, value_name = "N", default_value_t = 60)]
    seconds: u64,
    /// Run each target for this number of inputs, without a time limit
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    runs: Option<u64>,
    /// Build without the address sanitizer, which is several times as fast
    #[arg(long)]
    no_sanitizer: bool,
    /// Use only the seeds of this origin: python, golden, hostile or upstream
    #[arg(long, value_name = "ORIGIN")]
    only: Option<String>,
}

impl Fuzz {
    /// Builds the targets, makes the seeds, and runs the targets one after the other.
    pub(crate) fn run(&self) -> Result<()> {
        ensure!(cfg!(target_os = "linux"), "fuzzing is run on Linux only");
        let known = || TARGETS.iter().flat_map(|(_, targets)| targets.iter().copied());
        if let Some(target) = &self.target
            && !known().any(|known| known == target)
        {
            bail!(
                "there is no target {target}; the targets are {}",
                known().collect::<Vec<_>>().join(", ")
            );
        }
        vendor::vendor(false)?;
        run::need("clang", "clang")?;
        run::need_nightly(&["--version"], &[])?;
        let mut rows = Vec::new();
        for (folder, targets) in TARGETS {
            let chosen = targets.iter().copied();
            let chosen: Vec<&str> = chosen
                .filter(|name| self.target.as_ref().is_none_or(|only| only == name))
                .collect();
            if chosen.is_empty() {
                continue;
            }
            self.build(folder, &chosen)?;
            for target in chosen {
                rows.push(self.fuzz(folder, target)?);
            }
        }
        println!("\n{:20} {:>12} {:>10} {:>10}", "target", "executions", "branches", "per second");
        for Row { target, executions, covered, per_second } in rows {
            println!("{target:20} {executions:>12} {covered:>10} {per_second:>10}");
        }
        Ok(())
    }

    /// The folder of what was built in this way.
    fn out(&self) -> PathBuf {
        fuzz_folder().join(if self.no_sanitizer { "plain" } else { "address" })
    }

    /// Builds targets. The flags are those of `cargo fuzz`, and of clang for libFuzzer, without `--cfg fuzzing`: with it,
    /// miniz_oxide ignores the checksums of zlib streams, which C-Blosc2 compares.
    fn build(&self, folder: &str, targets: &[&str]) -> Result<()> {
        let host = run::host()?;
        let mut rust = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
            -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
            -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1"
            .to_owned();
        let mut c = "-fsanitize=fuzzer-no-link -fno-omit-frame-pointer -g1".to_owned();
        if !self.no_sanitizer {
            rust += " -Zsanitizer=address";
            c += " -fsanitize=address";
        }
        let suffix = host.replace('-', "_");
        let mut command = run::nightly();
        command
            .args(["build", "--release", "--target", &host])
            .args(targets.iter().flat_map(|target| ["--bin", target]))
            .current_dir(run::root().join(folder))
            .env("CARGO_TARGET_DIR", self.out())
            .env("RUSTFLAGS", rust)
            .env(format!("CC_{suffix}"), "clang")
            .env(format!("CFLAGS_{suffix}"), c);
        run::run(&mut command)
    }

    /// Runs a target. Fails with the path of the input if there is a finding.
    fn fuzz(&self, folder: &str, target: &str) -> Result<Row> {
        let root = run::root();
        let name = match &self.only {
            Some(only) => format!("{target}-{only}"),
            None => target.to_owned(),
        };
        let seeds = fuzz_folder().join("seeds").join(&name);
        run::empty(&seeds)?;
        let mut example = run::cargo([
            "run",
            "--quiet",
            "-p",
            "blosc2-fuzzing",
            "--no-default-features",
            "--example",
            "seeds",
            "--",
            target,
        ]);
        example.args([&root, &root.join("c-blosc2"), &seeds]).args(&self.only);
        run::run(&mut example)?;
        // What earlier runs found to be worth keeping.
        let corpus = fuzz_folder().join("corpus").join(&name);
        let artifacts = fuzz_folder().join("findings").join(target);
        for folder in [&corpus, &artifacts] {
            fs::create_dir_all(folder)
                .with_context(|| format!("{} cannot be made", folder.display()))?;
        }
        let program = self.out().join(run::host()?).join("release").join(target);
        let mut command = Command::new(program);
        command.args([&corpus, &seeds]);
        let findings = root.join(folder).join("findings").join(target);
        if findings.is_dir() {
            command.arg(findings);
        }
        command
            .arg(match self.runs {
                Some(runs) => format!("-runs={runs}"),
                None => format!("-max_total_time={}", self.seconds),
            })
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            // An input that takes longer than 2 seconds is a finding; the sanitizer takes several times as long.
            .arg(if self.no_sanitizer { "-timeout=2" } else { "-timeout=10" })
            .args(["-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=20000"])
            .args(["-print_final_stats=1", "-verbosity=1"])
            .env("ASAN_OPTIONS", "detect_leaks=1:allocator_may_return_null=1:quarantine_size_mb=64")
            // Expected errors are not reported with their stacks.
            .env("RUST_BACKTRACE", "0");
        let log = fuzz_folder().join(format!("{name}.log"));
        watch(&mut command, target, &log).with_context(|| {
            format!("{target} has a finding: see {} and {}", log.display(), artifacts.display())
        })
    }
}

/// The result of a run.
struct Row {
    target: String,
    executions: u64,
    covered: u64,
    per_second: u64,
}

/// Runs a program of libFuzzer, and writes what it prints to the terminal and to a file.
fn watch(command: &mut Command, target: &str, log: &Path) -> Result<Row> {
    let mut row = Row { target: target.to_owned(), executions: 0, covered: 0, per_second: 0 };
    let mut file =
        File::create(log).with_context(|| format!("{} cannot be written", log.display()))?;
    let mut child = command.stderr(Stdio::piped()).spawn().context("the target does not start")?;
    let output = child.stderr.take().context("the target has no output")?;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("the output of the target cannot be read")?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        writeln!(file, "{line}").context("the log cannot be written")?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let after = |name: &str| {
            let at = words.iter().position(|word| *word == name)?;
            words.get(at + 1)?.parse().ok()
        };
        row.covered = after("cov:").unwrap_or(row.covered);
        row.executions = after("stat::number_of_executed_units:").unwrap_or(row.executions);
        row.per_second = after("stat::average_exec_per_sec:").unwrap_or(row.per_second);
    }
    let status = child.wait().context("the target cannot be waited for")?;
    ensure!(status.success(), "libFuzzer ends with {status}");
    Ok(row)
}

/// The folder of everything that fuzzing makes.
fn fuzz_folder() -> PathBuf {
    run::root().join("target").join("fuzz")
}
