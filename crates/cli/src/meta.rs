//! `blosc2 meta`: lists, reads and changes the metalayers of a file.

use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use blosc2::super_chunk::MetalayersMut;
use blosc2::{ErrorKind, OpenOptions, SChunk, Value};
use clap::Subcommand;
use serde::Serialize;

use crate::file::{Node, Source};
use crate::{UsageError, json, printable, stdin};

/// Maximum characters of a value in the list.
const SHORT: usize = 60;
/// Maximum bytes of a value that `get` reads: the limit of any chunk.
const MOST: u64 = 1 << 31;

/// List the metalayers of a file, or get, set or delete one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "`get`, `set` and `del` use a variable-length metalayer (Python: `vlmeta`), or with \
    --fixed a fixed-length metalayer (Python: `meta`). Values are JSON on the command line, and msgpack in the file.\n\nExamples:\n  blosc2 meta a.b2nd\n  blosc2 meta a.b2nd set author '\"Ada\"'"
)]
pub(crate) struct Args {
    /// File, directory (sparse frame) or store (with --key); `-` is stdin.
    file: PathBuf,
    #[command(flatten)]
    node: Node,
    /// Print one JSON array, with an object for each metalayer, instead of lines.
    #[arg(long)]
    json: bool,
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the value of a metalayer.
    #[command(
        after_help = "Examples:\n  blosc2 meta a.b2nd get author\n  blosc2 meta a.b2nd get b2nd --fixed --raw"
    )]
    Get {
        /// Name of the metalayer.
        name: String,
        /// Print the raw bytes, not JSON.
        #[arg(long)]
        raw: bool,
        /// Read a fixed-length metalayer (Python: `meta`).
        #[arg(long)]
        fixed: bool,
    },
    /// Add a metalayer, or replace its value.
    #[command(after_help = "Examples:\n  blosc2 meta a.b2nd set tags '[\"a\", 2.5]'\n  \
        blosc2 meta a.b2nd set config --raw - < config.bin")]
    Set {
        /// Name of the metalayer, 1 to 31 bytes.
        name: String,
        /// Value as JSON; `-` reads it from stdin.
        #[arg(allow_hyphen_values = true)]
        value: String,
        /// Store the bytes of VALUE unchanged.
        #[arg(long)]
        raw: bool,
        /// Set a fixed-length metalayer. Its length cannot change. In a contiguous file, it can be added only while
        /// the file has no chunks.
        #[arg(long)]
        fixed: bool,
        /// Allow reserved names, which identify the kind of the file.
        #[arg(long)]
        force: bool,
    },
    /// Remove a metalayer.
    #[command(
        after_help = "Examples:\n  blosc2 meta a.b2nd del author\n  blosc2 meta a.b2frame del old --fixed"
    )]
    Del {
        /// Name of the metalayer.
        name: String,
        /// Remove a fixed-length metalayer. In a contiguous file, this is possible only while the file has no chunks.
        #[arg(long)]
        fixed: bool,
        /// Allow reserved names, which identify the kind of the file.
        #[arg(long)]
        force: bool,
    },
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let changes = matches!(args.action, Some(Action::Set { .. } | Action::Del { .. }));
    if changes && stdin::is_named(&args.file) {
        return Err(UsageError("stdin cannot be changed; name a file".to_owned()).into());
    }
    let source = args.node.of(&args.file)?;
    if changes && source.key.is_some() {
        let message = "--key selects an entry to read: metalayers in a store cannot be changed";
        return Err(UsageError(message.to_owned()).into());
    }
    let action = match &args.action {
        None => return list(source, args.json),
        Some(_) if args.json => {
            return Err(
                UsageError("--json applies to the list of metalayers only".to_owned()).into()
            );
        }
        Some(action) => action,
    };
    match action {
        Action::Get { name, raw, fixed } => {
            let schunk =
                source.open_with(source.limits.apply(OpenOptions::new().max_read(MOST)))?;
            let layers = if *fixed { schunk.meta() } else { schunk.vlmeta() };
            let bytes = layers.get(name)?.ok_or_else(|| missing(source, &schunk, name, *fixed))?;
            let mut out = BufWriter::new(io::stdout().lock());
            if *raw {
                out.write_all(&bytes)?;
            } else {
                let value = layers.value(name);
                let value = value.map_err(|error| anyhow!("{error}; --raw prints its bytes"))?;
                let value = value.unwrap_or(Value::None);
                let text = json::compact(&value).map_err(|error| {
                    let path = source.path.display();
                    anyhow!("cannot show a metalayer ({path}): {error}; --raw prints its bytes")
                })?;
                writeln!(out, "{text}")?;
            }
            Ok(out.flush()?)
        }
        Action::Set { name, value, raw, fixed, force } => {
            let bytes = match value.as_str() {
                "-" => value_of_stdin()?,
                value => value.as_bytes().to_vec(),
            };
            // Parsed before the file is opened.
            let value = if *raw { None } else { Some(parse(&bytes)?) };
            let mut schunk = open_to_change(source, name, *force)?;
            let mut layers = layers(&mut schunk, *fixed);
            match value {
                Some(value) => layers.set_value(name, &value)?,
                None => layers.set(name, &bytes)?,
            }
            Ok(())
        }
        Action::Del { name, fixed, force } => {
            let mut schunk = open_to_change(source, name, *force)?;
            if !layers(&mut schunk, *fixed).remove(name)? {
                return Err(missing(source, &schunk, name, *fixed));
            }
            Ok(())
        }
    }
}

fn list(source: Source<'_>, as_json: bool) -> Result<()> {
    let schunk = source.open()?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut rows = Vec::new();
    for (kind, layers) in [("meta", schunk.meta()), ("vlmeta", schunk.vlmeta())] {
        for name in layers.names() {
            let bytes = match layers.get(&name) {
                // A few compressed bytes can decompress to very many.
                Err(error) if error.kind() == ErrorKind::TooLarge => None,
                bytes => bytes?,
            };
            let length = bytes.as_ref().map(Vec::len);
            if as_json {
                let value = bytes.and_then(|bytes| Value::from_msgpack(&bytes).ok());
                let value = value.filter(|value| check(value).is_ok());
                rows.push(Row { kind, name, length, value });
                continue;
            }
            let value = match &bytes {
                Some(bytes) => brief(bytes),
                None => "(too large to list; `get` reads it)".to_owned(),
            };
            let name = printable(&name);
            let length = length.map_or("-".to_owned(), |length| length.to_string());
            writeln!(out, "{kind:<6} {name:<31} {length:>8} {value}")?;
        }
    }
    if as_json {
        writeln!(out, "{}", json::pretty(&rows)?)?;
    }
    Ok(out.flush()?)
}

/// The start of the value of a metalayer, or of its bytes if the start is not msgpack. The rest is not converted.
pub(crate) fn brief(bytes: &[u8]) -> String {
    // A character has up to 4 bytes; one character more than `SHORT` shows that the value is longer.
    match Value::start_of_msgpack(bytes, 4 * (SHORT + 1)) {
        Ok(value) => shorten(&printable(&start(&value))),
        Err(_) => brief_bytes(bytes),
    }
}

/// The start of bytes.
pub(crate) fn brief_bytes(bytes: &[u8]) -> String {
    shorten(&format!("b\"{}\"", bytes[..bytes.len().min(SHORT)].escape_ascii()))
}

/// The first characters of a text.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHORT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A metalayer in the list.
#[derive(Debug, Serialize)]
struct Row {
    kind: &'static str,
    name: String,
    length: Option<usize>,
    value: Option<Value>,
}

/// The length and the value of a metalayer, as the JSON list has them.
pub(crate) fn content(bytes: &[u8]) -> serde_json::Value {
    let value = Value::from_msgpack(bytes).ok();
    let value = value.and_then(|value| serde_json::to_value(value).ok());
    serde_json::json!({ "length": bytes.len(), "value": value })
}

/// Checks that a value can be written as JSON, before any part of it is printed.
fn check(value: &Value) -> serde_json::Result<()> {
    serde_json::to_writer(io::sink(), value)
}

/// The start of a value as JSON, or as text if JSON cannot represent it.
fn start(value: &Value) -> String {
    struct Start(Vec<u8>);

    impl Write for Start {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            // A character has up to 4 bytes; one character more than `SHORT` shows that the value is longer.
            if self.0.len() > 4 * SHORT {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.0.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    let mut start = Start(Vec::new());
    if serde_json::to_writer(&mut start, value).is_err_and(|error| !error.is_io()) {
        start.0.clear();
        // It fails once enough is written.
        let _ = write!(start, "{value}");
    }
    String::from_utf8_lossy(&start.0).into_owned()
}

fn open_to_change(source: Source<'_>, name: &str, force: bool) -> Result<SChunk> {
    if !force && MetalayersMut::is_reserved(name) {
        bail!(
            "cannot change a metalayer ({}): `{}` is a reserved name, which identifies the kind \
             of the file; --force changes it",
            source.path.display(),
            name
        );
    }
    source.open_rw()
}

/// The metalayers for changing. Reserved names were checked by `open_to_change`.
fn layers(schunk: &mut SChunk, fixed: bool) -> MetalayersMut<'_> {
    if fixed { schunk.meta_mut().with_reserved() } else { schunk.vlmeta_mut().with_reserved() }
}

fn missing(source: Source<'_>, schunk: &SChunk, name: &str, fixed: bool) -> anyhow::Error {
    let (kind, hint) = match (fixed, schunk.meta().contains(name)) {
        (true, _) => ("fixed-length metalayer", ""),
        (false, true) => ("variable-length metalayer", ", but a fixed-length one: use --fixed"),
        (false, false) => ("variable-length metalayer", ""),
    };
    let path = source.path.display();
    anyhow!("cannot find a metalayer ({path}): there is no {kind} `{name}`{hint}")
}

fn value_of_stdin() -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = io::stdin().lock().read_to_end(&mut bytes);
    // An error of stdin must not be reported as one of stdout.
    read.map_err(|error| anyhow!("cannot read stdin: {error}"))?;
    Ok(bytes)
}

fn parse(text: &[u8]) -> Result<serde_json::Value> {
    let hint = "a string needs its own double quotes; --raw stores any bytes";
    let value = serde_json::from_slice(text);
    value.map_err(|error| UsageError(format!("VALUE is not JSON: {error}; {hint}")).into())
}
