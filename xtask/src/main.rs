//! The development tasks of the workspace, as `cargo xtask <command>`.
//!
//! Each command does its own setup, so that it works in a fresh clone. Nothing here is part of the crates: the commands
//! call cargo, git, pip and valgrind in the right order.

mod api;
mod bindings;
mod ci;
mod demo;
mod hazards;
mod imports;
mod miri;
mod package;
mod peers;
mod python;
mod run;
mod runner;
mod sanitize;
mod steps;
mod test;
mod vendor;
mod words;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "The chores of the workspace")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Fill c-blosc2/ with the pinned sources of the C library
    Vendor {
        /// Replace what the folder holds
        #[arg(long)]
        force: bool,
    },
    /// List the public API of the published libraries
    Api {
        /// Change nothing: fail when the committed listings are stale
        #[arg(long)]
        check: bool,
    },
    /// Generate the raw bindings of blosc2-sys again
    Bindings {
        /// Change nothing: fail when the committed bindings are stale
        #[arg(long)]
        check: bool,
    },
    /// Run every test: the workspace in several settings, the `system` feature, and valgrind
    Test {
        /// Between edits: the default build, without Python, with few repeats of random data
        #[arg(long, conflicts_with_all = ["long", "large", "args"])]
        quick: bool,
        /// With ten times the repeats of random data
        #[arg(long, conflicts_with_all = ["large", "args"])]
        long: bool,
        /// Only the test of the largest buffers, which needs 7 GiB of memory
        #[arg(long, conflicts_with = "args")]
        large: bool,
        /// Arguments of `cargo test`; with them, nothing else is run
        #[arg(last = true)]
        args: Vec<String>,
    },
    /// Build the demo and run it: real files, and a comparison of codecs
    Demo,
    /// Run the benches of blosc2
    Bench {
        /// One file of benches/, or a part of the names of the measurements to run
        name: Option<String>,
    },
    /// Show every known fault of C-Blosc2: as it is, with our patches, and through the safe API
    Hazards,
    /// Run the tests under the address sanitizer, and the concurrency tests under the thread one
    Sanitize {
        /// With ten times the repeats of random data
        #[arg(long)]
        long: bool,
    },
    /// Run the tests of blosc2-format under Miri; needs a nightly toolchain that has it
    Miri,
    /// Check that no files of a crate import each other in a cycle
    Imports,
    /// Check that docs, messages and comments use the project's vocabulary
    Words,
    /// Check that the crates can be published, and run a program that depends on their packages
    Package,
    /// Read the chunks of other implementations of Blosc, and let them read ours
    Peers,
    /// Everything that has to hold before a change lands
    Ci,
}

fn main() -> ExitCode {
    // Before the arguments are parsed: here they are those of rustdoc.
    if let Some(done) = api::stand_in() {
        return finish(done);
    }
    finish(match Cli::parse().command {
        Task::Vendor { force } => vendor::vendor(force),
        Task::Api { check } => api::api(check),
        Task::Bindings { check } => bindings::bindings(check),
        Task::Test { args, .. } if !args.is_empty() => test::cargo_test(&args),
        Task::Test { large: true, .. } => test::largest(),
        Task::Test { quick: true, .. } => test::test(test::Extent::Quick),
        Task::Test { long: true, .. } => test::test(test::Extent::Long),
        Task::Test { .. } => test::test(test::Extent::Normal),
        Task::Demo => demo::demo(),
        Task::Bench { name } => demo::bench(name.as_deref()),
        Task::Hazards => hazards::hazards(),
        Task::Sanitize { long } => sanitize::sanitize(long),
        Task::Miri => miri::miri(),
        Task::Imports => imports::imports(),
        Task::Words => words::words(),
        Task::Package => package::package(),
        Task::Peers => peers::peers(),
        Task::Ci => ci::ci(),
    })
}

fn finish(done: Result<()>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
