//! `cargo xtask hazards`: tests every known fault of C-Blosc2, and prints a table of the outcomes.
//!
//! Each row is a fault that `tests/hazards` reproduces. It runs in separate processes: as C calls on the original
//! sources, where it has to fail; as the same calls on the patched sources; and through the safe API on both, since an
//! installed library has no patches. With the original sources, the API may refuse the call as unsupported. All runs
//! use the address sanitizer, so that no access outside the bounds is missed by chance.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use std::{fmt, fs};

use anyhow::{Context, Result, bail, ensure};

use crate::runner::{in_memory, processors};
use crate::sanitize::{ADDRESS, SELECTION};
use crate::{run, vendor};

/// A test that takes longer than this hangs.
const LIMIT: Duration = Duration::from_secs(15);

/// The limit for tests that have to fail: several of them hang. One waits 5 seconds for another process.
const LIMIT_OF_FAULTS: Duration = Duration::from_secs(8);

/// The number of tries: a race between threads does not occur every time.
const TRIES: usize = 10;

/// How a test ended.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Outcome {
    Passed,
    Failed(String),
    /// No patch corrects the fault: the C test is ignored.
    NotPatched,
    /// There is no test: the safe API does not have the call yet.
    NotWrapped,
    /// The safe API refuses the call as unsupported by an installed library.
    Refused,
    /// The quick run leaves out the original sources.
    NotRun,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("right"),
            Self::Failed(how) => f.write_str(how),
            Self::NotPatched => f.write_str("guarded in Rust"),
            Self::NotWrapped => f.write_str("not wrapped yet"),
            Self::Refused => f.write_str("refused"),
            Self::NotRun => f.write_str("-"),
        }
    }
}

/// Runs every row, and prints the table.
pub(crate) fn hazards() -> Result<()> {
    vendor::vendor(false)?;
    let upstream = keep(&build(true)?)?;
    rows(Some(&upstream))
}

/// Runs every row on the patched sources only, as a check of each change. What the original sources do changes with
/// C-Blosc2 only, and takes several minutes.
pub(crate) fn quick() -> Result<()> {
    rows(None)
}

fn rows(upstream: Option<&Path>) -> Result<()> {
    let ours = build(false)?;
    let tests = list(&ours, &[])?;
    let ignored = list(&ours, &["--ignored"])?;
    let rows: Vec<&String> = tests.iter().filter(|test| test.contains("::upstream::")).collect();
    ensure!(!rows.is_empty(), "only {} rows are there", rows.len());
    for test in tests.iter().filter(|test| test.contains("::safe::")) {
        let row = test.replace("::safe::", "::upstream::");
        ensure!(tests.contains(&row), "{test} has no C test: {row} is missing");
    }

    let mut bad = Vec::new();
    print_row(
        "fault",
        ["upstream", "with the patches", "through blosc2", "on an installed library"],
    );
    let outcomes = in_parallel(&rows, |row| {
        let left = upstream.map_or(Ok(Outcome::NotRun), |upstream| fail_once(upstream, row))?;
        let patched = match ignored.contains(*row) {
            true => Outcome::NotPatched,
            false => run_test(&ours, row, LIMIT)?,
        };
        let safe = row.replace("::upstream::", "::safe::");
        let (right, installed) = match tests.contains(&safe) {
            true => {
                let on = |program| run_test(program, &safe, LIMIT);
                (on(&ours)?, upstream.map_or(Ok(Outcome::NotRun), on)?)
            }
            false => (Outcome::NotWrapped, Outcome::NotWrapped),
        };
        Ok([left, patched, right, installed])
    })?;
    for (row, outcomes) in rows.into_iter().zip(outcomes) {
        let name = row.replace("::upstream", "");
        print_row(&name, outcomes.each_ref().map(Outcome::to_string));
        let [left, patched, right, installed] = &outcomes;
        let failed = |outcome: &Outcome| matches!(outcome, Outcome::Failed(_));
        let refused = *right == Outcome::Refused;
        let harmless = upstream.is_some() && !failed(left);
        if harmless || failed(patched) || failed(right) || failed(installed) || refused {
            bad.push(name);
        }
    }
    if !bad.is_empty() {
        bail!("wrong outcomes: {}", bad.join(", "));
    }
    match upstream {
        Some(_) => println!("hazards: all fail upstream, and none here"),
        None => println!("hazards: none fails here"),
    }
    traced()
}

/// Maps all items, on one thread per processor, and keeps their order.
pub(crate) fn in_parallel<T: Sync, R: Send>(
    all: &[T],
    work: impl Fn(&T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let threads = processors();
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

fn print_row(name: &str, [left, patched, right, installed]: [impl fmt::Display; 4]) {
    println!("{name:<64} {left:<52} {patched:<17} {right:<16} {installed}");
}

/// Traces the test of all codecs and filters: it may start itself but no other program, and may not open a plugin
/// library.
fn traced() -> Result<()> {
    const TEST: &str = "codecs_and_filters_of_any_number_start_no_program_and_load_no_library";
    run::need("strace", "strace")?;
    // The program of the other tests: the sanitizer would add nothing to the trace.
    let args = ["test", "--no-run", "--message-format=json", "--test", "processes"];
    let program = run::executable(&run::read_stdout(&mut run::cargo(args))?, "processes")
        .context("cargo built no tests")?;
    let record = run::root().join("target").join("hazards-trace.txt");
    run::run(
        Command::new("strace")
            .args(["-f", "-qq", "-s", "200", "-e", "trace=execve,execveat,open,openat", "-o"])
            .arg(&record)
            .arg(&program)
            .arg(TEST),
    )?;
    let text = fs::read_to_string(&record)
        .with_context(|| format!("{} cannot be read", record.display()))?;
    let own = format!("execve(\"{}\"", program.display());
    let starts: Vec<&str> = text.lines().filter(|line| line.contains(" execve")).collect();
    ensure!(starts.len() == 2, "{} programs were started, expected 2", starts.len());
    for line in text.lines() {
        let starts_other = line.contains(" execve") && !line.contains(&own);
        if starts_other || line.contains("libblosc2_") {
            bail!("a chunk or a frame made this happen: {line}");
        }
    }
    println!("hazards: no codec or filter of a chunk or frame starts a program or loads a library");
    Ok(())
}

/// Builds the tests of the faults and returns the path of their program. The next build may replace the program.
fn build(unhardened: bool) -> Result<PathBuf> {
    let args: Vec<&str> = ["test", "--no-run", "--message-format=json", "--test", "hazards"]
        .into_iter()
        .chain(SELECTION)
        .collect();
    let mut command = ADDRESS.cargo(&args, "")?;
    if unhardened {
        command.env("BLOSC2_SYS_UNHARDENED", "1");
    }
    run::executable(&run::read_stdout(&mut command)?, "hazards").context("cargo built no tests")
}

/// Copies a program to another folder, so that both builds can share one folder and most of their output.
fn keep(program: &Path) -> Result<PathBuf> {
    let copy = run::root().join("target").join("hazards-unhardened");
    // An earlier version of this command had a folder of that name.
    let name = program.file_name().context("the program has no name")?;
    fs::create_dir_all(&copy)?;
    let copy = copy.join(name);
    fs::copy(program, &copy).with_context(|| format!("{} cannot be copied", program.display()))?;
    Ok(copy)
}

/// The names of the tests.
fn list(program: &Path, args: &[&str]) -> Result<BTreeSet<String>> {
    let text = run::read(Command::new(program).arg("--list").args(args))?;
    Ok(text.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect())
}

/// Runs a test that has to fail until it does.
fn fail_once(program: &Path, test: &str) -> Result<Outcome> {
    for _ in 1..TRIES {
        match run_test(program, test, LIMIT_OF_FAULTS)? {
            Outcome::Passed => {}
            failed => return Ok(failed),
        }
    }
    run_test(program, test, LIMIT_OF_FAULTS)
}

/// Runs one test in its own process.
fn run_test(program: &Path, test: &str, limit: Duration) -> Result<Outcome> {
    let mut command = Command::new(program);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = in_memory(&mut command)
        .args(["--exact", test, "--include-ignored", "--nocapture", "--test-threads=1"])
        // Some faults also leak memory, but the leak is not the fault under test.
        .env("ASAN_OPTIONS", "detect_leaks=0")
        .env("RUST_BACKTRACE", "0")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", program.display()))?;
    let mut stderr = child.stderr.take().context("no standard error")?;
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stderr.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let status = wait(&mut child, limit)?;
    let text = reader.join().unwrap_or_default();
    Ok(match status {
        Some(status) if status.success() => Outcome::Passed,
        Some(_)
            if ["value: Unsupported: ", "is not in this build"]
                .iter()
                .any(|w| text.contains(w)) =>
        {
            Outcome::Refused
        }
        Some(status) => Outcome::Failed(reason(&text).unwrap_or_else(|| status.to_string())),
        None => Outcome::Failed("hangs".to_owned()),
    })
}

/// Waits for a process to end. After `limit`, kills it and returns `None`.
pub(crate) fn wait(child: &mut Child, limit: Duration) -> Result<Option<std::process::ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() > limit {
            // Including the processes that it has started, which share its standard error.
            let group = format!("-{}", child.id());
            Command::new("kill").args(["-KILL", "--", &group]).status()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(20));
    }
}

/// The reason of a failed test: the sanitizer's finding, or the message of the panic.
fn reason(text: &str) -> Option<String> {
    let report = text.lines().find_map(|line| line.strip_prefix("SUMMARY: AddressSanitizer: "));
    if let Some(report) = report {
        return report.split(' ').next().map(|kind| format!("asan: {kind}"));
    }
    text.lines().skip_while(|line| !line.contains("panicked at")).nth(1).map(str::to_owned)
}
