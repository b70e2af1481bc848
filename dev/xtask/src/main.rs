//! The development tasks of the workspace, as `cargo xtask <command>`.
//!
//! Each command does its own setup, so that it works in a fresh clone. Nothing here is part of the crates: the commands
//! call cargo, git, pip and valgrind in the right order.

mod api;
mod bench;
mod bindings;
mod ci;
mod conformance;
mod demo;
mod deny;
mod fuzz;
mod hazards;
mod imports;
mod integrations;
mod libclang;
mod links;
mod miri;
mod package;
mod peers;
mod platforms;
mod python;
mod readme;
mod run;
mod runner;
mod sanitize;
mod steps;
mod test;
mod unstable;
mod upstream;
mod vendor;
mod web;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Development tasks")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Fill c-blosc2/ with the pinned sources of the C library
    Vendor {
        /// Fill the folder again, even if its content differs; a git checkout is never changed
        #[arg(long)]
        force: bool,
    },
    /// Write the lists of the public API (api.txt) of the published libraries
    Api {
        /// Change nothing; fail if the committed lists are not up to date
        #[arg(long)]
        check: bool,
    },
    /// Generate the raw bindings of blosc2-sys again
    Bindings {
        /// Change nothing; fail if the committed bindings are not up to date
        #[arg(long)]
        check: bool,
    },
    /// Run all tests of the default build, and one example under valgrind
    Test {
        /// Run only the tests that are sufficient for most edits: the default build, without Python, with few repeats
        /// of tests with random data
        #[arg(long, conflicts_with_all = ["long", "large", "args"])]
        quick: bool,
        /// Repeat tests with random data thirty times as often; also run tests with C-Blosc2's environment variables,
        /// and with the feature `system`
        #[arg(long, conflicts_with_all = ["large", "args"])]
        long: bool,
        /// Run only the tests of the largest buffers and arrays, which need 7 GiB of memory, and disk space
        #[arg(long, conflicts_with = "args")]
        large: bool,
        /// Run only `cargo test`, with these arguments, after the setup
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Build the demo and run it: it reads real files and compares codecs
    Demo,
    /// Compare this crate with other libraries; docs/reports/BENCHMARKS.md describes the method
    Bench {
        /// Run this bench instead: `real` (real data, docs/reports/REAL.md), or a file of dev/bench without `.rs`
        name: Option<String>,
        /// Measure only the workloads whose names contain this
        #[arg(long, conflicts_with = "name")]
        only: Option<String>,
        /// Check in some seconds that the comparison works: small arrays, each workload once, only this crate and C
        #[arg(long, conflicts_with_all = ["only", "publish"])]
        quick: bool,
        /// Write the tables and plots to docs/reports, and without a name also to README.md
        #[arg(long, conflicts_with = "only")]
        publish: bool,
    },
    /// Let C, Rust and Python write and read the same objects, and write the outcome to docs/reports
    Conformance {
        /// Change nothing; fail if CONFORMANCE.md is not up to date
        #[arg(long)]
        check: bool,
        /// Run only the rows whose names contain this, and write nothing
        #[arg(long)]
        only: Option<String>,
    },
    /// Test every known fault of C-Blosc2: in the original sources, with our patches, and through the safe API
    Hazards,
    /// Run most tests that reach C under the address sanitizer, and concurrency tests under the thread sanitizer
    Sanitize {
        /// Repeat tests with random data thirty times as often, and run more tests
        #[arg(long)]
        long: bool,
    },
    /// Run the fuzz targets under libFuzzer and the address sanitizer; needs a nightly toolchain and clang
    Fuzz(fuzz::Fuzz),
    /// Run the unit tests of blosc2-format under Miri; needs rustup
    Miri,
    /// Check that no files of a crate import each other in a cycle
    Imports,
    /// Check that docs, messages and comments use the project's vocabulary
    Words,
    /// Check that the links of the documents lead to files and sections of this repository
    Links,
    /// Run the lines of the README that add the crate, and its first program, in an empty package
    Readme,
    /// Check that the crates can be published, and run a program that depends on their packages
    Package {
        /// Also compile each package, as `cargo publish` does; takes some minutes
        #[arg(long)]
        verify: bool,
    },
    /// Check the licenses, sources and versions of all dependencies, and look for security advisories
    Deny {
        /// Without the security advisories, whose database is fetched from GitHub
        #[arg(long)]
        no_advisories: bool,
    },
    /// Test that other implementations of Blosc read our chunks, and that we read theirs
    Peers,
    /// Build and test the crates for object storage, Zarr, HDF5 and pcodec
    Integrations {
        /// Test only this part
        only: Option<integrations::Part>,
    },
    /// Run the test suites of C-Blosc2 and python-blosc2 against this project, and write docs/reports/UPSTREAM.md
    Upstream {
        /// Run only this suite
        only: Option<upstream::Part>,
        /// Do not run the tests of Python, but compare the files that they made last time
        #[arg(long, requires = "only")]
        again: bool,
    },
    /// Run the tests on other processors, under emulation, and on Windows, under Wine; needs root, and takes hours
    Platforms {
        /// Run them only on this platform
        name: Option<platforms::Platform>,
    },
    /// Build the viewer in the browser to target/web, and test it in Chromium
    Web {
        /// Only build it
        #[arg(long, conflicts_with = "only")]
        build: bool,
        /// Run only the tests whose names match this
        #[arg(long)]
        only: Option<String>,
    },
    /// Run all checks that a change has to pass
    Ci,
}

fn main() -> ExitCode {
    // If cargo starts this program in place of the compiler, the arguments are those of the compiler.
    if let Some(done) = unstable::stand_in() {
        return finish(done);
    }
    let done = match Cli::parse().command {
        Task::Vendor { force } => vendor::vendor(force),
        Task::Api { check } => api::api(check),
        Task::Bindings { check } => bindings::bindings(check),
        Task::Test { args, .. } if !args.is_empty() => test::cargo_test(&args),
        Task::Test { large: true, .. } => test::largest(),
        Task::Test { quick: true, .. } => test::test(test::Extent::Quick),
        Task::Test { long: true, .. } => test::test(test::Extent::Long),
        Task::Test { .. } => test::test(test::Extent::Normal),
        Task::Demo => demo::demo(),
        Task::Bench { name: Some(name), quick, publish, .. } => bench::named(&name, quick, publish),
        Task::Bench { quick: true, .. } => bench::quick(),
        Task::Bench { only, publish, .. } => bench::compare(only.as_deref(), publish),
        Task::Conformance { check, only } => conformance::conformance(check, only.as_deref()),
        Task::Hazards => hazards::hazards(),
        Task::Sanitize { long } => sanitize::sanitize(long),
        Task::Fuzz(options) => options.run(),
        Task::Miri => miri::miri(),
        Task::Imports => imports::imports(),
        Task::Words => words::words(),
        Task::Links => links::links(),
        Task::Readme => readme::readme(),
        Task::Package { verify } => package::package(verify),
        Task::Deny { no_advisories } => deny::deny(no_advisories),
        Task::Peers => peers::peers(),
        Task::Integrations { only } => integrations::integrations(only),
        Task::Upstream { only, again } => upstream::upstream(only, again),
        Task::Platforms { name } => platforms::platforms(name),
        Task::Web { build, only } => web::web(!build, only.as_deref()),
        Task::Ci => ci::ci(),
    };
    finish(done.map(|()| ExitCode::SUCCESS))
}

fn finish(done: Result<ExitCode>) -> ExitCode {
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::{fs, iter};

    /// The commands that compile no C code.
    const WITHOUT_C: [&str; 5] = ["deny", "imports", "links", "miri", "words"];

    /// In a fresh clone, the C sources are missing.
    #[test]
    fn every_command_fetches_the_sources() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let text = fs::read_to_string(folder.join("main.rs")).unwrap();
        let (_, commands) = text.split_once("match Cli::parse().command {").unwrap();
        let (commands, _) = commands.split_once("};").unwrap();
        let mut count = 0;
        for line in commands.lines().filter(|line| line.contains("=>")) {
            let (_, call) = line.split_once("=> ").unwrap();
            // The method of an option has its module in the pattern.
            let module = match call.split_once("::") {
                Some((module, _)) => module,
                None => "fuzz",
            };
            let function = call.rsplit("::").next().unwrap().split('(').next().unwrap();
            let function = function.trim_start_matches("options.");
            // `test::test` does its steps there.
            let name = if call.contains("Extent") { "run_steps" } else { function };
            let text = fs::read_to_string(folder.join(format!("{module}.rs"))).unwrap();
            let body = text.split_once(&format!("pub(crate) fn {name}(")).map(|(_, rest)| rest);
            let body = body.unwrap_or_else(|| panic!("{module}.rs has no function {name}"));
            let body: String =
                iter::once(body).flat_map(str::lines).take_while(|line| *line != "}").collect();
            // `ci` has a table of its steps.
            let body = if module == "ci" { &text } else { &body };
            let fetches = module == "vendor" || body.contains("vendor::vendor(");
            assert_eq!(fetches, !WITHOUT_C.contains(&module), "{line}");
            count += 1;
        }
        assert!(count > 20, "{count}");
    }
}
