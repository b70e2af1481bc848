//! `blosc2 cat`: writes items to stdout.

use std::io::{self, BufRead, BufWriter, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use blosc2::{SChunk, SChunkReader};
use blosc2_format::file::Kind;
use clap::ValueEnum;

use crate::UsageError;
use crate::chunk::ChunkItems;
use crate::evaluate;
use crate::file::{Content, Node};
use crate::foreign::with_article;
use crate::npy::NpyItems;
use crate::progress;
use crate::rows::{self, Notation};
use crate::rust::{self, RustItems};
use crate::slice::{Pick, Slices};
use crate::stream::{self, Items};
use crate::text;

/// Write the bytes of the items to stdout, in C order and in the stored byte order. With --text, print the values. For
/// a table, print the rows.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  blosc2 cat a.b2nd --slice 0:10,::2 | od -t f4
  \
    blosc2 cat runs.b2z --columns id,price --where 'price < 9.5' --json")]
pub(crate) struct Args {
    /// File of any format, npy file, directory (sparse frame) or store (with --key); `-` is stdin.
    file: PathBuf,
    #[command(flatten)]
    node: Node,
    /// Library that decompresses [default: `c` for frames of the current format, else `rust`].
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Selected items or rows: an index, `start:stop:step` or `...` for each axis, as in Python. Bounds outside an axis
    /// are clamped [default: all].
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
    /// Compute a Python expression, of files beside it.
    #[arg(long, conflicts_with_all = ["engine", "columns", "condition", "csv", "json"])]
    evaluate: bool,
    #[command(flatten)]
    selection: rows::Selection,
    /// Print the rows of a table as CSV.
    #[arg(long)]
    csv: bool,
    /// Print the rows of a table as JSON.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    #[command(flatten)]
    text: text::Options,
}

/// The decompressor: C-Blosc2, or the crate `blosc2-format`, in pure Rust.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    // Documentation here would become a list in the help.
    C,
    Rust,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let source = args.node.of(&args.file)?;
    if args.evaluate {
        let items = evaluate::open(source)?;
        let mut out = BufWriter::new(io::stdout().lock());
        write_items(args, &items, &mut out)?;
        return Ok(out.flush()?);
    }
    if let Some(items) = NpyItems::open(source)? {
        if args.engine.is_some() {
            return Err(UsageError("--engine cannot be combined with an npy file".into()).into());
        }
        let mut out = BufWriter::new(io::stdout().lock());
        write_items(args, &items, &mut out)?;
        return Ok(out.flush()?);
    }
    if let Some(table) = rows::table(source) {
        if args.engine == Some(Engine::Rust) {
            return Err(UsageError("--engine rust cannot be combined with a table".into()).into());
        }
        let columns = args.selection.columns(&table, &args.file)?;
        let slices = args.slice.clone().unwrap_or_default();
        let rows = args.selection.rows(&table, &slices, &args.file)?;
        let notation = match (args.csv, args.json) {
            (true, _) => Notation::Csv,
            (_, true) => Notation::Json,
            _ => Notation::Text,
        };
        let mut out = BufWriter::new(io::stdout().lock());
        let bar = progress::rows_beside_stdout(rows.len());
        rows::write(&table, &columns, &rows, notation, &bar, &mut out).map_err(|error| {
            // An error of stdout is reported as such.
            match error.is::<io::Error>() || error.is::<blosc2::Error>() {
                true => error,
                false => anyhow!("cannot print ({}): {error}", args.file.display()),
            }
        })?;
        return Ok(out.flush()?);
    }
    if args.csv || args.json || !args.selection.is_default() {
        let path = args.file.display();
        let options = "--columns, --where, --csv and --json require a table";
        return Err(UsageError(format!("{options}, and this is none ({path})")).into());
    }
    let kind = rust::needed(source);
    // Reads items, not the bytes of whole chunks.
    let by_item = args.slice.is_some() || args.text.text;
    let engine = args.engine.unwrap_or(if kind.is_some() { Engine::Rust } else { Engine::C });
    let mut out = BufWriter::new(io::stdout().lock());
    match (engine, kind) {
        (Engine::Rust, _) if source.key.is_some() => {
            return Err(UsageError("--engine rust cannot be combined with --key".into()).into());
        }
        (Engine::Rust, _) => {
            let items = RustItems::new(source, rust::open_data(source)?)?;
            match by_item || items.is_array() {
                true => write_items(args, &items, &mut out)?,
                false => items.write_chunks(&mut out)?,
            }
        }
        (Engine::C, Some(Kind::Chunk)) => {
            let items = ChunkItems::open(source)?;
            match by_item {
                true => write_items(args, &items, &mut out)?,
                false => out.write_all(&items.data()?)?,
            }
        }
        (Engine::C, Some(kind)) => bail!(
            "cannot read ({}): this is {}, a legacy format that C-Blosc2 does not open; `--engine rust` \
             reads it",
            args.file.display(),
            with_article(kind)
        ),
        (Engine::C, None) => match Content::open_data(source)? {
            Content::Array(array) => write_items(args, &array, &mut out)?,
            content if !by_item => write_all(content.schunk(), &mut out)?,
            content => write_items(args, content.items(), &mut out)?,
        },
    }
    Ok(out.flush()?)
}

/// Writes the selected items: all of them without `--slice`.
fn write_items(args: &Args, items: &dyn Items, out: &mut dyn Write) -> Result<()> {
    let slices = args.slice.clone().unwrap_or_default();
    if args.text.text {
        return text::print(&args.text, &slices, items, &args.file, out);
    }
    let picks = slices.resolve_in(&args.file, &items.shape())?;
    let bytes = picks.iter().map(Pick::count).fold(items.typesize() as u64, u64::saturating_mul);
    stream::write(items, &picks, out, &progress::bar_beside_stdout(bytes))
}

/// Writes all bytes of a super-chunk, including trailing bytes that are not a whole item.
fn write_all(schunk: &SChunk, out: &mut dyn Write) -> Result<()> {
    let bar = progress::bar_beside_stdout(schunk.nbytes());
    let mut reader = SChunkReader::new(schunk);
    loop {
        // An error of the reader must not be reported as an error of stdout.
        let piece = reader.fill_buf().map_err(blosc2::Error::from)?;
        if piece.is_empty() {
            return Ok(());
        }
        out.write_all(piece)?;
        let len = piece.len();
        bar.inc(len as u64);
        reader.consume(len);
    }
}
