//! Running tests: by nextest where it is installed, which shares the processors best, else by `cargo test`.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::run;

/// The variable that says how often tests with random data repeat, in percent of [`LONG`].
pub(crate) const REPEATS: &str = "BLOSC2_TEST_REPEATS";
/// `cargo xtask test --long`: all that was ever found to be worth running. Without the variable it is a tenth.
pub(crate) const LONG: &str = "100";
/// Between edits, and where the same tests run again in another setting.
pub(crate) const FEW: &str = "2";

/// Lets a command put temporary files into memory, where the system has a file system for that with room: many tests
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

/// A command that builds the tests that cargo's arguments choose, and runs those that the arguments of the test
/// programs choose. It goes on after a failure.
pub(crate) fn tests(choice: &[&str], args: &[&str]) -> Command {
    static NEXTEST: LazyLock<bool> = LazyLock::new(|| {
        let mut probe = run::cargo(["nextest", "--version"]);
        probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success())
    });
    let mut command = run::cargo(if *NEXTEST { &["nextest", "run"][..] } else { &["test"] });
    command.arg("--no-fail-fast").args(choice).arg("--").args(args);
    command
}
