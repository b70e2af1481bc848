//! The command `blosc2`: inspects, reads, checks, recompresses and converts Blosc2 files.
//!
//! - `main`: arguments and exit status; `params`: the options that several commands share;
//! - `info`, `ls`, `cat`, `check`, `checksums`, `repair`, `copy`, `diff`, `meta`, `convert`: commands; they share
//!   `file`, `rust`, `chunk` and `progress`;
//! - `manual`: shell completions and manual pages;
//! - `stdin`, `raw`, `output`, `interrupt`, `style`: input from pipes, new files, Ctrl-C, colors;
//! - `remote`: files and directories at URLs, and messages without the secrets of URLs;
//! - `limits`: the options for limits, and messages that name options instead of functions of the libraries;
//! - `foreign`: files of other formats, and the messages about them;
//! - `stats`: the statistics of `info`;
//! - `table`, `json`: aligned tables and sizes with a unit; JSON as text;
//! - `map`, `svg`: the layout of a file, as text and as a drawing;
//! - `slice`, `stream`: which items of a file are selected, and reading them piece by piece;
//! - `text`, `values`, `float`, `date`: items as text, as NumPy prints them;
//! - `formats`: the formats of `import` and `export`; `npy`, `csv`: reading of npy files, writing of CSV files;
//!   `batches`, `csv_reader`: Parquet, Arrow and CSV files as record batches; `lengths`: checks of them; `rows`: rows of tables; `extension`: the
//!   formats of output files; `typed`: items read as another type, and fields;
//! - `view`, `bench`: statistics and pictures of the items, and the choice of compression parameters; they share
//!   `data`, `scale` and `picture`; `numbers`, `grid`, `figure` and `terminal` belong to `view`, `sample`, `measure`
//!   and `chart` to `bench`; `web` is `view --web`.

#[cfg(feature = "arrow")]
mod batches;
mod bench;
mod cat;
mod chart;
mod check;
mod checksums;
mod chunk;
mod convert;
mod copy;
mod csv;
#[cfg(feature = "arrow")]
mod csv_reader;
mod data;
mod date;
mod diff;
mod evaluate;
mod extension;
mod figure;
mod file;
mod float;
mod foreign;
mod formats;
mod grid;
mod info;
mod interrupt;
mod json;
#[cfg(feature = "arrow")]
mod lengths;
mod limits;
mod ls;
mod manual;
mod map;
mod measure;
mod meta;
mod npy;
mod numbers;
mod output;
mod params;
mod picture;
mod progress;
mod raw;
mod remote;
mod repair;
mod rows;
mod rust;
mod sample;
mod scale;
mod slice;
mod stats;
mod stdin;
mod stream;
mod style;
mod svg;
mod table;
mod terminal;
mod text;
mod typed;
mod values;
mod view;
mod web;
#[cfg(feature = "zarr")]
mod zarr;

use std::fmt;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use blosc2_format::file::{Kind, recognise_path};
use blosc2_store::without_secrets;
use clap::builder::{PathBufValueParser, TypedValueParser, ValueParser};
use clap::error::{ContextKind, ErrorKind as ClapKind};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::style::styled;

/// Inspect, read, check, recompress and convert Blosc2 files.
#[derive(Debug, Parser)]
#[command(
    name = "blosc2",
    version,
    term_width = 80,
    after_help = "Exit status: 0 on success, 1 on failure (such as damaged or rejected data), 2 for wrong \
        usage, 130 after Ctrl-C.\n\nExamples:\n  blosc2 info data.b2nd\n  blosc2 copy data.b2nd small.b2nd --codec zstd --level 9"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Info(info::Args),
    Ls(ls::Args),
    Cat(cat::Args),
    Check(check::Args),
    Checksums(checksums::Args),
    Copy(copy::Args),
    Diff(diff::Args),
    Meta(meta::Args),
    Repair(repair::Args),
    Import(convert::ImportArgs),
    Export(convert::ExportArgs),
    View(view::Args),
    Bench(bench::Args),
    Completions(manual::CompletionsArgs),
    Man(manual::ManArgs),
}

/// Arguments that are not valid for the given file.
#[derive(Debug)]
struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

fn main() -> ExitCode {
    let matches = hiding_secrets(Cli::command()).try_get_matches();
    let cli = match matches.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    interrupt::handle();
    let result = match cli.command {
        Command::Info(args) => info::run(&args),
        Command::Ls(args) => ls::run(&args),
        Command::Cat(args) => cat::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Checksums(args) => checksums::run(&args),
        Command::Copy(args) => copy::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Meta(args) => meta::run(&args),
        Command::Repair(args) => repair::run(&args),
        Command::Import(args) => convert::import(&args),
        Command::Export(args) => convert::export(&args),
        Command::View(args) => view::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Completions(args) => manual::completions(&args, Cli::command()),
        Command::Man(args) => manual::man(&args, Cli::command()),
    };
    interrupt::wait_if_stopped();
    remote::warn_of_cache();
    let status = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    };
    interrupt::remove_temporary();
    status
}

/// Hides the secrets of URLs in all arguments that are paths.
fn hiding_secrets(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let parser = argument.get_value_parser().type_id();
        match parser == ValueParser::path_buf().type_id() {
            true => {
                // It refuses an empty path.
                let parser = PathBufValueParser::new();
                argument.value_parser(parser.try_map(remote::hide))
            }
            false => argument,
        }
    });
    command.mut_subcommands(hiding_secrets)
}

/// Writes the error to stderr and returns the exit status.
fn fail(error: &anyhow::Error) -> ExitCode {
    if error.is::<diff::Different>() {
        return ExitCode::from(1);
    }
    // All other errors are converted by the commands, which add the path of the file.
    if let Some(error) = error.downcast_ref::<io::Error>() {
        if error.kind() == ErrorKind::BrokenPipe {
            // The reader of stdout has closed the pipe.
            return ExitCode::SUCCESS;
        }
        complain(&format!("cannot write to stdout: {error}"));
        return ExitCode::from(1);
    }
    complain(&match error.downcast_ref().filter(|error| is_damaged_frame(error)) {
        Some(error) => format!(
            "{error}; `blosc2 check` lists all faults, `blosc2 repair` recovers the intact chunks"
        ),
        None => error.to_string(),
    });
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// Whether the error is about a damaged frame, which `repair` takes.
fn is_damaged_frame(error: &blosc2::Error) -> bool {
    let is_frame = |path| matches!(recognise_path(path), Ok(Some(Kind::Frame | Kind::Directory)));
    error.kind() == blosc2::ErrorKind::InvalidData && error.path().is_some_and(is_frame)
}

/// Prints help as clap formats it, and errors in the arguments in one line.
fn usage(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion);
    if asked || error.kind() == ClapKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed stdout is not an error of this program.
        let _ = error.print();
        if error.kind() == ClapKind::DisplayVersion {
            let _ = write!(io::stdout(), "{}", build());
        }
        return ExitCode::from(if asked { 0 } else { 2 });
    }
    let text = match secret_value(error) {
        Some(text) => text,
        None => remote::hide_arguments(error.to_string()),
    };
    let lines = text.lines().map(str::trim);
    // An unknown option is more likely than a value that looks like an option.
    let is_wanted = |line: &&str| !line.is_empty() && !line.starts_with("tip: to pass");
    let wanted = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(is_wanted);
    let mut line = wanted.collect::<Vec<_>>().join(" ");
    if error.kind() == ClapKind::UnknownArgument && !line.contains("tip: ") {
        let usage = text.lines().find_map(|line| line.trim().strip_prefix("Usage: "));
        let words = usage.unwrap_or("blosc2").split(' ');
        let command: Vec<_> = words.take_while(|word| !word.starts_with(['[', '<', '-'])).collect();
        line += &format!("; `{} --help` lists the options", command.join(" "));
    }
    complain(line.strip_prefix("error: ").unwrap_or(&line));
    ExitCode::from(2)
}

/// The message about an invalid value in an argument that contains secrets. The error of its parser can contain a part of
/// them.
fn secret_value(error: &clap::Error) -> Option<String> {
    let text = |kind| error.get(kind).map(ToString::to_string);
    let value = text(ContextKind::InvalidValue).filter(|value| value.contains(':'))?;
    // The value can be a part of a list.
    let arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let shown = arguments.filter(|argument| argument.contains(&value)).find_map(|argument| {
        let shown = without_secrets(&argument);
        (shown != argument).then_some(shown)
    })?;
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let source = std::error::Error::source(error).filter(|source| source.is::<remote::NoUrl>());
    let hint = source.map_or(String::new(), |source| format!(": {source}"));
    Some(format!("invalid value in '{shown}' for '{argument}'{hint}"))
}

/// The version of C-Blosc2, its instruction set, and the codecs with their libraries.
fn build() -> String {
    let kernels =
        blosc2::library::instruction_set().map(|name| format!(" ({name})")).unwrap_or_default();
    let mut text = format!("C-Blosc2 {}{kernels}\n", blosc2::library::c_version());
    for codec in blosc2::library::codecs() {
        text += &match codec.library() {
            Some(library) => format!("  {codec}: {} {}\n", library.name, library.version),
            None => format!("  {codec}\n"),
        };
    }
    text
}

/// Writes one line to stderr; control characters in the text become spaces.
fn complain(text: &str) {
    let line: String = remote::hide_arguments(limits::named(text))
        .chars()
        .map(|each| if each.is_control() { ' ' } else { each })
        .collect();
    // If stderr is closed, there is nowhere to report the error.
    let _ = writeln!(anstream::stderr(), "{} {line}", styled(style::BAD, "blosc2:"));
}

/// Replaces control characters, which could move the cursor of the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|each| if each.is_control() { '\u{fffd}' } else { each }).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The arguments of a command and of its subcommands that are paths.
    fn paths(command: &clap::Command, name: &str) -> BTreeSet<String> {
        let is_path = |argument: &&clap::Arg| {
            argument.get_value_parser().type_id() == ValueParser::path_buf().type_id()
        };
        let own = command.get_arguments().filter(is_path).map(|argument| {
            let value = argument.get_value_names().and_then(|names| names.first());
            match argument.get_long() {
                Some(long) => format!("{name} --{long}"),
                None => format!("{name} {}", value.expect("a positional argument has a name")),
            }
        });
        let own: Vec<String> = own.collect();
        let below = command.get_subcommands().flat_map(|each| {
            let name = format!("{name} {}", each.get_name());
            paths(each, name.trim_start())
        });
        own.into_iter().chain(below).collect()
    }

    /// `tests/remote/commands.rs` runs the commands of the table.
    #[test]
    fn the_table_of_urls_is_complete() {
        let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md"));
        let readme = readme.unwrap();
        let section = readme.split("\n## URLs\n").nth(1).unwrap();
        let rows = section.split("\n## ").next().unwrap().lines();
        let rows = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next());
        let rows: Vec<String> = rows.map(str::to_owned).collect();
        assert_eq!(rows.len(), rows.iter().collect::<BTreeSet<_>>().len(), "a row is twice");
        assert_eq!(BTreeSet::from_iter(rows), paths(&Cli::command(), ""));
    }
}
