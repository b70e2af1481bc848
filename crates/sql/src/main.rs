//! The command `blosc2-sql`: SQL over the tables and arrays of Python blosc2.
//!
//! - `main`: arguments and exit status;
//! - `session`, `sources`: the session of DataFusion, the tables of the files;
//! - `query`, `batches`: the statements, their execution, and the rows of results;
//! - `output`, `format`: new files, and the formats of results;
//! - `message`: errors of DataFusion in one line; `interrupt`, `progress`: Ctrl-C, and a sign of life.

mod batches;
mod format;
mod interrupt;
mod message;
mod output;
mod progress;
mod query;
mod session;
mod sources;

use std::fmt;
use std::io::{self, ErrorKind, Read, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use anyhow::{Context, Result};
use blosc2_store::without_secrets;
use clap::error::ErrorKind as ClapKind;
use clap::{CommandFactory, Parser};
use clap_complete::Shell;

use crate::format::{Format, Rows, Text};
use crate::output::Output;

const BAD: Style = AnsiColor::Red.on_default().bold();

/// Run SQL over the tables and arrays of Python blosc2
#[derive(Debug, Parser)]
#[command(
    name = "blosc2-sql",
    version,
    term_width = 80,
    arg_required_else_help = true,
    override_usage = "blosc2-sql [OPTIONS] [[NAME=]FILE]... QUERY",
    after_help = "FILE is a table or a store of arrays (.b2z), an array (.b2nd), a CSV, TSV, JSON, Parquet or Arrow file, a \
        directory, a pattern such as 'data/*.b2z', or a URL. Its table has the name of the file. A table in a store has \
        the name of its key: SELECT * FROM \"group/table\".\n\
        Times are written as 2024-01-31T12:00:00. In CSV, lists are JSON. In JSON, NaN and infinities are null.\n\n\
        Exit status: 0 on success, 1 on failure (such as a wrong query or damaged data), 2 for wrong usage, 130 after \
        Ctrl-C.\n\nExamples:\n  blosc2-sql trips.b2z 'SELECT city, sum(km) FROM trips GROUP BY city'\n  \
        blosc2-sql t=trips.b2z cities.csv 'SELECT * FROM t JOIN cities USING (city)'"
)]
struct Args {
    /// Files, and at the end the query: SQL statements separated by `;`, or `-` for stdin. NAME= sets the name of a table
    #[arg(value_name = "FILE")]
    arguments: Vec<String>,
    /// Read the query from a file; `-` is stdin
    #[arg(long, value_name = "SQL")]
    file: Option<PathBuf>,
    /// Print the names of the tables instead of running a query
    #[arg(long, conflicts_with_all = ["file", "explain", "output"])]
    tables: bool,
    /// Print the plan of the last query instead of running it
    #[arg(long)]
    explain: bool,
    /// Write the result of the last query to a new file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Format of the result; the default is that of the output's extension, or text
    #[arg(long, value_enum, value_name = "FORMAT")]
    format: Option<Format>,
    /// Most rows of text, or `all`. The default is 40, and all in files
    #[arg(long, value_name = "N")]
    rows: Option<Rows>,
    /// Null values in text (default: NULL) and CSV (default: nothing)
    #[arg(long, value_name = "TEXT")]
    null: Option<String>,
    /// Names of the axes of arrays, such as `time,lat,lon`
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    dims: Option<Vec<String>>,
    /// Run the queries on the cluster with this scheduler, as `blosc2-cluster` starts it. The executors open the files
    #[cfg(feature = "cluster")]
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "memory", value_parser = scheduler)]
    cluster: Option<String>,
    /// Number of threads, or of parts of a scan with --cluster; the default is the number of processors
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    /// Memory, such as 2GiB, above which sorting and grouping use temporary files
    #[arg(long, value_name = "SIZE", value_parser = size)]
    memory: Option<usize>,
    /// Print the completions of a shell
    #[arg(long, value_name = "SHELL", exclusive = true)]
    completions: Option<Shell>,
    /// Print the manual page
    #[arg(long, exclusive = true)]
    man: bool,
}

/// Parses a number of bytes, such as `1000`, `64MiB` or `2GiB`.
fn size(text: &str) -> Result<usize, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("", 0)];
    let parsed = units.iter().find_map(|(unit, shift)| {
        text.strip_suffix(unit)?.trim_end().parse::<usize>().ok()?.checked_mul(1 << shift)
    });
    parsed
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "expected a number of bytes, which can end with KiB, MiB or GiB".to_owned())
}

/// Parses the address of a scheduler.
#[cfg(feature = "cluster")]
fn scheduler(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').filter(|(host, _)| !host.is_empty() && !host.contains('/'));
    match port.is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
        true => Ok(text.to_owned()),
        false => Err("expected HOST:PORT, such as 127.0.0.1:50050".to_owned()),
    }
}

/// Wrong arguments.
#[derive(Debug)]
struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return usage(&error),
    };
    interrupt::handle();
    let result = run(args);
    interrupt::end_if_stopped();
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn run(mut args: Args) -> Result<()> {
    if let Some(shell) = args.completions {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut Args::command(), "blosc2-sql", &mut text);
        return Ok(io::stdout().write_all(&text)?);
    }
    if args.man {
        let mut text = Vec::new();
        clap_mangen::Man::new(Args::command()).render(&mut text)?;
        return Ok(io::stdout().write_all(&text)?);
    }
    let text = if args.tables { None } else { Some(query_text(&mut args)?) };
    let look = Text { rows: args.rows, null: args.null };
    let output = Output::new(args.output.as_deref(), args.force, args.format, look)?;
    let sources = sources::parse(&args.arguments)?;
    #[cfg(feature = "cluster")]
    let cluster = args.cluster.as_deref();
    #[cfg(not(feature = "cluster"))]
    let cluster = None;
    let session = session::Session::new(args.threads, args.memory, cluster)?;
    let tables = session.add(&sources, args.dims.as_deref())?;
    let Some(text) = text else { return sources::print(&tables) };
    query::run(&session, &text, &output, args.explain)
}

/// Returns the text of the query, and removes it from the arguments.
fn query_text(args: &mut Args) -> Result<String> {
    let text = match args.file.clone() {
        Some(path) => read_query(&path)?,
        None => match args.arguments.pop() {
            Some(text) if text == "-" => read_query("-".as_ref())?,
            Some(text) if sources::is_file(&text) => {
                let expected = "expected a query after the files; `-` reads it from stdin";
                return Err(UsageError(format!("{expected}, found the file {text}")).into());
            }
            Some(text) => text,
            None => return Err(UsageError("expected a query".to_owned()).into()),
        },
    };
    match text.trim().is_empty() {
        true => Err(UsageError("the query is empty".to_owned()).into()),
        false => Ok(text),
    }
}

fn read_query(path: &std::path::Path) -> Result<String> {
    let mut text = String::new();
    let read = match path.as_os_str() == "-" {
        true => io::stdin().read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    // An error that is not of the type of errors of stdout.
    let read = read.map_err(|error| error.to_string()).map_err(anyhow::Error::msg);
    read.with_context(|| format!("cannot read the query ({})", path.display()))?;
    Ok(text)
}

/// Writes the error to stderr and returns the exit status.
fn fail(error: &anyhow::Error) -> ExitCode {
    // All other errors have been converted.
    if let Some(error) = error.downcast_ref::<io::Error>() {
        if error.kind() == ErrorKind::BrokenPipe {
            // The reader of stdout has closed the pipe.
            return ExitCode::SUCCESS;
        }
        complain(&format!("cannot write to stdout: {error}"));
        return ExitCode::from(1);
    }
    complain(&format!("{error:#}"));
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// Prints help as clap formats it, and errors in the arguments in one line.
fn usage(error: &clap::Error) -> ExitCode {
    let asked = matches!(error.kind(), ClapKind::DisplayHelp | ClapKind::DisplayVersion);
    if asked || error.kind() == ClapKind::DisplayHelpOnMissingArgumentOrSubcommand {
        // A closed stdout is not an error of this program.
        let _ = error.print();
        if error.kind() == ClapKind::DisplayVersion {
            let versions = (datafusion::DATAFUSION_VERSION, blosc2::library::c_version());
            let _ = writeln!(io::stdout(), "DataFusion {}\nC-Blosc2 {}", versions.0, versions.1);
        }
        return ExitCode::from(if asked { 0 } else { 2 });
    }
    let text = error.to_string();
    let lines = text.lines().map(str::trim);
    let wanted = lines
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"))
        .filter(|line| !line.is_empty() && !line.starts_with("tip: to pass"));
    let mut line = wanted.collect::<Vec<_>>().join(" ");
    if error.kind() == ClapKind::UnknownArgument && !line.contains("tip: ") {
        line += "; `blosc2-sql --help` lists the options";
    }
    complain(line.strip_prefix("error: ").unwrap_or(&line));
    ExitCode::from(2)
}

/// Writes one line to stderr, without control characters and the secrets of URLs.
fn complain(text: &str) {
    let words = text.split(|each: char| each.is_whitespace() || each.is_control());
    let words = words.filter(|word| !word.is_empty()).map(without_secrets);
    let line = words.collect::<Vec<_>>().join(" ");
    // If stderr is closed, there is nowhere to report the error.
    let _ = writeln!(anstream::stderr(), "{BAD}blosc2-sql:{BAD:#} {line}");
}
