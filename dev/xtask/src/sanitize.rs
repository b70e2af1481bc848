//! `cargo xtask sanitize`: the tests under the address and the thread sanitizer, C code included.
//!
//! The C code is compiled by the system's compiler with the same sanitizer; both use the runtime library that Rust
//! links.

use std::fs;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::runner::{FEW, LONG, NORMAL, REPEATS, in_memory};
use crate::{run, unstable, vendor};

/// The duration of the concurrency tests in seconds: in the long run, and otherwise.
const SOAK: [&str; 2] = ["30", "3"];

/// Suppressions of the leak search: C leaks its buffers when an append cannot be written, and when calls of its array
/// layer fail. `tests/hazards` makes these calls, `blosc2` does not.
const LOST_BY_C: &str = "leak:frame_append_chunk\nleak:get_set_slice\nleak:b2nd_concatenate\n";

/// A sanitizer and its flags.
pub(crate) struct Sanitizer {
    name: &'static str,
    rust_flags: &'static str,
    options: &'static str,
}

/// Finds accesses out of bounds and after free, and leaks.
pub(crate) const ADDRESS: Sanitizer =
    Sanitizer { name: "address", rust_flags: "-Zsanitizer=address", options: "ASAN_OPTIONS" };

/// Finds unsynchronized accesses to the same memory from two threads.
const THREAD: Sanitizer =
    Sanitizer { name: "thread", rust_flags: "-Zsanitizer=thread", options: "TSAN_OPTIONS" };

impl Sanitizer {
    /// A cargo command that builds with this sanitizer. Cargo separates the output for the target by the flags; build
    /// scripts and macros are the same without.
    pub(crate) fn cargo(&self, args: &[&str], options: &str) -> Result<Command> {
        ensure!(cfg!(target_os = "linux"), "the sanitizers are run on Linux only");
        let target = run::host()?;
        let mut command = run::cargo(args);
        // gcc keeps constant local arrays in static memory and marks them as out of scope, for all threads, when
        // one thread leaves the scope (zstd_opt.c, ZSTD_rescaleFreqs): so scopes are not checked.
        // At -O3 gcc would take twice as long.
        let flags = format!(
            "-O1 -fsanitize={} -fno-sanitize-address-use-after-scope -fno-omit-frame-pointer -g1",
            self.name
        );
        command
            .env("CARGO_BUILD_TARGET", &target)
            .env("RUSTFLAGS", self.rust_flags)
            // That variable would have precedence.
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            // For the target only: build scripts run without them.
            .env(format!("CFLAGS_{}", target.replace('-', "_")), flags)
            .env(self.options, options)
            // Backtraces of intended panics would take a minute.
            .env("RUST_BACKTRACE", "0");
        unstable::rustc(&mut command, self.rust_flags)?;
        Ok(command)
    }
}

/// Runs the tests of chunks, of damaged files and of plugins under the address sanitizer, as a check of each change.
pub(crate) fn quick() -> Result<()> {
    address(QUICK_PROGRAMS, FEW, &[], &[&SLOW[..], &MANY_THREADS].concat())
        .and_then(|()| address(PLUGINS, FEW, &["process::"], &[]))
        .context(FOUND)
}

const FOUND: &str = "the address sanitizer found something, or a test failed";

/// Runs the tests under both sanitizers. With `long`, uses all repeats of random data.
pub(crate) fn sanitize(long: bool) -> Result<()> {
    vendor::vendor(false)?;
    let start = Instant::now();
    let programs = [PROGRAMS, if long { MORE_PROGRAMS } else { "" }].join(" ");
    address(&programs, if long { LONG } else { NORMAL }, &[], &[]).context(FOUND)?;
    println!("sanitize: address is good, {:.0} s", start.elapsed().as_secs_f64());
    let start = Instant::now();
    thread(long).context("the thread sanitizer found something, or a test failed")?;
    println!("sanitize: thread is good, {:.0} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// The packages whose tests are run, with the feature for plugins, whose tests then need no separate build. Another
/// selection would have other features, and everything would be built again.
pub(crate) const SELECTION: [&str; 8] = [
    "-p",
    "cblosc2",
    "-p",
    "blosc2-store",
    "-p",
    "blosc2-workspace",
    "--features",
    "blosc2-workspace/dynamic-plugins",
];

/// The programs of a quick run, which leaves out [`SLOW`] and [`MANY_THREADS`].
const QUICK_PROGRAMS: &str = "--test chunks --test hostile_input";
/// The program with the tests of plugins.
const PLUGINS: &str = "--test processes";
/// The programs of [`SELECTION`] that reach C or `unsafe` code: chunks, super-chunks, arrays, real files and damaged
/// ones.
const PROGRAMS: &str = "--test arrays --test chunks --test compute --test frames --test hostile_input \
    --test processes --test super_chunks";
/// The additional tests of the long run: unit tests, and containers, which are safe code only.
const MORE_PROGRAMS: &str = "--lib --test containers";

/// Parts of [`PROGRAMS`] that call C as the others do, or not at all: metadata, files, limits and processes are
/// handled in safe Rust.
const OTHERS: [&str; 11] = [
    "behaviour::",
    "changes::",
    "copies::",
    "crashes::",
    "file_locks::",
    "handles::",
    "keeps_the_limits",
    "reductions_of_many_blocks",
    "sequences::",
    "unfinished::",
    "within_the_limit",
];

/// Tests of [`QUICK_PROGRAMS`] that process much data. Others call the same code with less data.
const SLOW: [&str; 5] = [
    "bitshuffle_takes_items_that_are_no_multiple_of_eight",
    "delta_and_filters_in_any_number",
    "every_codec_at_every_level",
    "sizes_of_upstreams_tests",
    "the_filters_of_blosc2_format_give_the_same",
];

/// Runs the tests of `programs` whose names contain one of `names` (all if there are none), without those of [`OTHERS`],
/// those of `skipped`, and ignored ones, which need Python or much memory.
fn address(programs: &str, repeats: &str, names: &[&str], skipped: &[&str]) -> Result<()> {
    let suppressions = suppressions("sanitize-address", LOST_BY_C)?;
    // Tests request more memory than is available, and expect an error.
    // Some tests start ten thousand threads, and an alternate signal stack for each takes a tenth of the time.
    let options = "detect_leaks=1 allocator_may_return_null=1 use_sigaltstack=0";
    let mut args: Vec<&str> = ["test", "--no-fail-fast"].to_vec();
    args.extend(SELECTION);
    args.extend(programs.split_whitespace());
    args.extend(["--", "--quiet"]);
    args.extend(names);
    args.extend(OTHERS.iter().chain(skipped).flat_map(|part| ["--skip", part]));
    let mut command = ADDRESS.cargo(&args, options)?;
    command.env("LSAN_OPTIONS", format!("print_suppressions=0 {suppressions}"));
    run::run(in_memory(command.env(REPEATS, repeats)))
}

/// Tests of user-defined codecs and filters that start threads for each case, which takes up to half a minute each
/// under a sanitizer.
const MANY_THREADS: [&str; 4] = [
    "user_defined_codecs_compress",
    "user_defined_filters_are_applied",
    "nested_calls_work",
    "postfilters_make_what_is_read",
];

/// Runs the concurrency tests, long enough for rare interleavings, the tests of user-defined codecs and filters, which C
/// calls on its threads, those of expressions, which several threads evaluate, and those of the threads of arrays. A
/// test that uses rayon is excluded: the sanitizer does not support the fences by which rayon orders accesses.
///
/// std is compiled too: otherwise the sanitizer would not see how its locks and channels order accesses.
fn thread(long: bool) -> Result<()> {
    let source = ["component", "add", "rust-src"];
    run::read(Command::new("rustup").args(source)).context("the source of std is missing")?;
    // The formats in Rust are compiled twice as fast without optimisation, and these tests hardly use them.
    let args = "-Zbuild-std --config profile.dev.package.blosc2-format.opt-level=0 test \
        -p cblosc2 -p blosc2-workspace --lib --test processes --test chunks --test compute -- --test-threads=1 \
        concurrency:: user_defined:: elementwise:: reductions_of_integers helpers:: --skip work_may_use_rayon";
    let mut args: Vec<&str> = args.split_whitespace().collect();
    if !long {
        args.extend(MANY_THREADS.iter().flat_map(|name| ["--skip", name]));
    }
    let mut command = THREAD.cargo(&args, "halt_on_error=1 second_deadlock_stack=1")?;
    // For cargo: `-Zbuild-std` is unstable.
    command.env("RUSTC_BOOTSTRAP", "1");
    run::run(command.env("BLOSC2_TEST_SECONDS", SOAK[usize::from(!long)]))
}

/// Writes a file of suppressions, and returns the option with its path.
fn suppressions(folder: &str, text: &str) -> Result<String> {
    let folder = run::root().join("target").join(folder);
    let path = folder.join("suppressions");
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(&path, text))
        .with_context(|| format!("{} cannot be written", path.display()))?;
    Ok(format!("suppressions={}", path.display()))
}
