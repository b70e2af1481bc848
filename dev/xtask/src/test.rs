//! `cargo xtask test`: all setup, then every test of the default build.
//!
//! The rounds: the default build of the workspace, with Python; documentation; and the first example under valgrind.
//! `--long` and `cargo xtask ci` add [`other_configurations`].
//!
//! The rounds on the default build select tests of the default members of the workspace: a selection of packages would
//! have other features, and nearly everything would be compiled again.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, anyhow};

use crate::demo::build_examples;
use crate::python::{BLOSC2, Venv};
use crate::runner::{FEW, LONG, REPEATS, in_memory, tests};
use crate::steps::Steps;
use crate::{run, vendor};

/// The extent of the tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// The tests for most edits: the default build, without Python, with few repeats of tests with random data.
    Quick,
    Normal,
    /// With all repeats of tests with random data, and [`other_configurations`].
    Long,
}

/// All tests of the default build, without those in documentation.
const WORKSPACE: [&str; 1] = ["--tests"];
/// The tests for most edits: without the comparisons of the formats with C, the command, and processes.
const QUICK: &str = "--lib --bins --test arrays --test chunks --test compute --test containers \
    --test frames --test golden --test hostile_input --test super_chunks";

/// The tests of C's faults on the patched sources. They have a separate round: some are for `cargo xtask hazards`.
const FAULTS: &str = "upstream::";
/// The test that needs much memory.
const LARGEST: &str = "the_largest_buffer_goes_there_and_back";
/// The test of the command on arrays of 6 GiB, which needs much time and disk space.
const LARGE_FILES: &str = "arrays_larger_than_memory_go_through";
/// The test of the memory that expressions of arrays of 4 GiB take.
const LARGE_ARRAYS: &str = "expressions_of_4_gib_take_little_memory";

/// Runs the tests, and prints how long each step took.
pub(crate) fn test(extent: Extent) -> Result<()> {
    if extent != Extent::Quick {
        run::use_fast_build();
    }
    let mut steps = Steps::new("test");
    run_steps(&mut steps, extent)?;
    if extent == Extent::Long {
        other_configurations(&mut steps, extent)?;
    }
    steps.finish();
    Ok(())
}

/// The steps of the default build, also as a part of another command.
pub(crate) fn run_steps(steps: &mut Steps, extent: Extent) -> Result<()> {
    steps.step("sources", || vendor::vendor(false))?;
    if extent == Extent::Quick {
        let choice: Vec<&str> = QUICK.split_whitespace().collect();
        steps.step("compile", || compile(&choice))?;
        return steps.step("tests", || run::run(in_memory(tests(&choice, &[]).env(REPEATS, FEW))));
    }
    // Installing Python's packages uses the network more than the processors.
    let venv = steps.step("compile, and get Python", || {
        thread::scope(|scope| {
            let venv = scope.spawn(|| Venv::with(BLOSC2));
            compile(&WORKSPACE)?;
            venv.join().map_err(|_| anyhow!("getting Python panicked"))?
        })
    })?;
    steps.step("tests", || all(&venv, extent))?;
    steps.step("documentation's examples", || run::run(&mut run::cargo(["test", "--doc"])))?;
    steps.step("valgrind", valgrind)
}

/// Tests with environment variables by which C-Blosc2 overrides parameters, and of `blosc2` on an installed libblosc2
/// (the feature `system`, with the library of the Python wheel). The long run also tests `blosc2` without the optional
/// codecs.
pub(crate) fn other_configurations(steps: &mut Steps, extent: Extent) -> Result<()> {
    let venv = Venv::with(BLOSC2)?;
    steps.step("with C's variables", || environment(&venv, extent))?;
    steps.step("installed library", || system(&venv, &venv.lib()?))?;
    if extent == Extent::Long {
        let choice = ["test", "-p", "cblosc2", "--lib", "--no-default-features"];
        steps.step("no codecs", || run::run(&mut run::cargo(choice)))?;
    }
    Ok(())
}

/// Runs `cargo test` with these arguments, and with the environment that the tests need.
pub(crate) fn cargo_test(args: &[String]) -> Result<()> {
    vendor::vendor(false)?;
    let venv = Venv::with(BLOSC2)?;
    run::run(with_python(run::cargo(["test"]).args(args), &venv)?)
}

/// Runs the tests that need much memory, disk space or time, without checking whether they are available.
pub(crate) fn largest() -> Result<()> {
    vendor::vendor(false)?;
    run::run(&mut largest_buffers())?;
    run::run(&mut tests(&["--test", "cli"], &["--ignored", LARGE_FILES]))?;
    // Without optimization it takes several minutes.
    let choice = ["--release", "--test", "compute_memory"];
    run::run(&mut tests(&choice, &["--ignored", LARGE_ARRAYS]))
}

/// Builds the tests that the steps after it run.
fn compile(choice: &[&str]) -> Result<()> {
    run::run(run::cargo(["test", "--no-run", "--quiet"]).args(choice))
}

/// Runs all tests of the default build, including those that need Python.
fn all(venv: &Venv, extent: Extent) -> Result<()> {
    let mut args = vec!["--include-ignored"];
    args.extend([FAULTS, LARGE_FILES, LARGE_ARRAYS].iter().flat_map(|name| ["--skip", name]));
    if !has_room_for_the_largest() {
        args.extend(["--skip", LARGEST]);
    }
    let mut command = tests(&WORKSPACE, &args);
    // The long run uses the disk, as real files do.
    match extent {
        Extent::Long => command.env(REPEATS, LONG).env("NEXTEST_PROFILE", "long"),
        _ => in_memory(&mut command),
    };
    run::run(with_python(&mut command, venv)?)?;
    run::run(&mut tests(&["--test", "hazards"], &[FAULTS]))
}

/// The available memory, in bytes, with which the test of the largest buffers runs beside the others: 6 GiB for its three
/// buffers, and the rest for the tests that run at the same time and their files in memory.
const LARGE: u64 = 12 << 30;

/// Whether there is enough memory for the test of the largest buffers. If not, prints that it is left out.
fn has_room_for_the_largest() -> bool {
    let there = available_memory();
    let has_room = there.is_some_and(|bytes| bytes >= LARGE);
    if !has_room {
        let there = there.map_or("an unknown number".to_owned(), |bytes| {
            format!("{:.1}", bytes as f64 / f64::from(1 << 30))
        });
        println!(
            "test: the largest buffers are LEFT OUT: {there} GiB of memory are available, and {} are \
             needed beside other tests; `cargo xtask test --large` still tests them",
            LARGE >> 30
        );
    }
    has_room
}

fn largest_buffers() -> Command {
    tests(&["--test", "chunks"], &["--ignored", LARGEST])
}

/// The available memory in bytes, on Linux.
fn available_memory() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix(" kB")?.parse().ok().map(|kib: u64| kib << 10)
}

/// Passes the paths of Python and of the library of its wheel to the tests, and limits the threads of NumPy.
pub(crate) fn with_python<'a>(command: &'a mut Command, venv: &Venv) -> Result<&'a mut Command> {
    command.env("BLOSC2_TEST_PYTHON", &venv.python).env("BLOSC2_TEST_SYSTEM_LIB", venv.lib()?);
    // NumPy starts threads that wait actively, which takes half of the time of `import blosc2`.
    Ok(command.env("OPENBLAS_NUM_THREADS", "1"))
}

/// Variables with which upstream overrides the parameters of a program.
const VARIABLES: [(&str, &str); 4] = [
    ("BLOSC_TYPESIZE", "3"),
    ("BLOSC_CLEVEL", "0"),
    ("BLOSC_COMPRESSOR", "zlib"),
    ("BLOSC_NTHREADS", "64"),
];

/// Runs the tests of compression and decompression of chunks and super-chunks with these variables set. The long run
/// adds the tests that call C in the same way.
fn environment(venv: &Venv, extent: Extent) -> Result<()> {
    const PROGRAMS: &str = "--test chunks --test processes --test super_chunks";
    const MORE_PROGRAMS: &str = "--lib --bins --test cli --test python --test arrays --test containers \
        --test frames --test hostile_input";
    // Tests of the formats in Rust, of calls in C, and of metadata and files, which do not depend on the variables. The
    // filter matches parts of names, so these module names are not part of any other name.
    const OTHERS: [&str; 14] = [
        "behaviour::",
        "changes::",
        "copies::",
        "crashes::",
        "dead_rows_are_not_held",
        "file_locks::",
        "formats::",
        "frames::",
        "handles::",
        "raw_filters::",
        "reading::",
        "sequences::",
        "shapes::",
        "unfinished::",
    ];
    let mut programs: Vec<&str> = PROGRAMS.split_whitespace().collect();
    if extent == Extent::Long {
        programs.extend(MORE_PROGRAMS.split_whitespace());
    }
    let args: Vec<&str> = OTHERS.iter().flat_map(|part| ["--skip", part]).collect();
    let mut command = tests(&programs, &args);
    command.envs(VARIABLES).env(REPEATS, FEW);
    run::run(with_python(in_memory(&mut command), venv)?)
        .context("the tests fail when variables of C-Blosc2 are set")
}

/// Tests `blosc2` on the library of a wheel, in the folder `lib`. The build finds it by pkg-config.
pub(crate) fn system(venv: &Venv, lib: &Path) -> Result<()> {
    run::need("pkg-config", "pkg-config")?;
    let search = if cfg!(windows) {
        "PATH"
    } else if cfg!(target_os = "macos") {
        "DYLD_FALLBACK_LIBRARY_PATH"
    } else {
        "LD_LIBRARY_PATH"
    };
    // The features of the workspace, except those for the codecs of the C library: so `blosc2` and `blosc2-sys` are the
    // only crates that are compiled again.
    let choice =
        ["test", "-p", "cblosc2", "-p", "blosc2-workspace", "--lib", "--no-default-features"];
    let mut command = run::cargo(choice);
    command.args(["--features", "blosc2-workspace/system,blosc2-format/default"]);
    command
        .env("PKG_CONFIG_PATH", run::prepend("PKG_CONFIG_PATH", &lib.join("pkgconfig"))?)
        .env(search, run::prepend(search, lib)?);
    // An installed library reads these variables; `blosc2` then returns an error.
    for (name, _) in VARIABLES {
        command.env_remove(name);
    }
    run::run(with_python(&mut command, venv)?)
}

/// Runs the first example under valgrind: no invalid access, no lost memory.
fn valgrind() -> Result<()> {
    if !cfg!(target_os = "linux") {
        println!("test: valgrind is not run here, only on Linux");
        return Ok(());
    }
    run::need("valgrind", "valgrind")?;
    let program = build_examples(&["quickstart"])?.remove(0);
    let folder = run::root().join("target").join("valgrind");
    run::empty(&folder)?;
    run::run(
        Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=1", "--leak-check=full"])
            .arg("--errors-for-leak-kinds=definite")
            .arg(program)
            .current_dir(folder),
    )
    .context("valgrind found something, or the example failed")?;
    println!("test: valgrind found nothing in quickstart");
    Ok(())
}
