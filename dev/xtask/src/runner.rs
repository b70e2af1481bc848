//! Running tests: with nextest if it is installed, which uses the processors best, otherwise with `cargo test`.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;
use std::thread;

use crate::run;

/// The variable for the number of repeats of tests with random data, in percent of [`LONG`].
pub(crate) const REPEATS: &str = "BLOSC2_TEST_REPEATS";
/// `cargo xtask test --long`: the full number of repeats. Without the variable it is [`NORMAL`].
pub(crate) const LONG: &str = "100";
/// The number of repeats without the variable.
pub(crate) const NORMAL: &str = "3";
/// Between edits, and when the same tests run again in another configuration: with C's variables, under a sanitizer, or
/// on another platform.
pub(crate) const FEW: &str = "1";

/// Lets a command create temporary files in memory, if the system has such a file system with enough space: many tests
/// write small files, which takes a quarter of their time on a disk. `cargo xtask test --long` uses the disk.
pub(crate) fn in_memory(command: &mut Command) -> &mut Command {
    const MEMORY: &str = "/dev/shm";
    const ROOM: u64 = 4 << 30;
    static FREE: LazyLock<Option<u64>> = LazyLock::new(|| {
        let text = run::read(Command::new("df").args(["-Pk", MEMORY])).ok()?;
        let kib: u64 = text.lines().nth(1)?.split_whitespace().nth(3)?.parse().ok()?;
        Some(kib << 10)
    });
    match *FREE {
        Some(free) if Path::new(MEMORY).is_dir() && free >= ROOM => command.env("TMPDIR", MEMORY),
        _ => command,
    }
}

/// A command that builds the tests selected by `choice`, the arguments of cargo, and runs those selected by `args`, the
/// arguments of the test programs. It continues after a failure.
pub(crate) fn tests(choice: &[&str], args: &[&str]) -> Command {
    static NEXTEST: LazyLock<bool> = LazyLock::new(|| {
        let mut probe = run::cargo(["nextest", "--version"]);
        probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    });
    let mut command = run::cargo(if *NEXTEST { &["nextest", "run"][..] } else { &["test"] });
    if *NEXTEST && env::var_os("NEXTEST_TEST_THREADS").is_none() {
        command.arg("--test-threads").arg((processors() + WAITING).to_string());
    }
    command.arg("--no-fail-fast").args(choice).arg("--").args(args);
    command
}

/// The number of tests that run in addition to one per processor: some tests wait, for example for another process.
const WAITING: usize = 2;

/// The number of processors that this program may use.
pub(crate) fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}
