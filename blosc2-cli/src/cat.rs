//! `blosc2 cat`: items to stdout.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blosc2_format::file::Kind;
use clap::ValueEnum;

use crate::chunk;
use crate::file::Content;
use crate::progress;
use crate::rust::{self, RustItems, Shared};
use crate::slice::{Pick, Slices};
use crate::stream::{self, ArrayItems, Chunks, Items, SChunkItems};

/// Write the items' bytes to stdout, in C order, as they are stored.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or directory of chunks; a frame of any version, a packed super-chunk, or a single chunk.
    file: PathBuf,
    /// What decompresses: by default C-Blosc2 for what it opens, and Rust for what is older and for
    /// single chunks.
    #[arg(long, value_enum)]
    engine: Option<Engine>,
    /// Which items: `start:stop:step` for each dimension, as in Python, such as `0:10,::2` or
    /// `-1`. Numbers that reach outside are refused. A super-chunk has one dimension.
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
}

/// What decompresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// C-Blosc2.
    C,
    /// The crate `blosc2-format`, which has no C in it.
    Rust,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let file = &args.file;
    let kind = rust::needed(file);
    let engine = args.engine.unwrap_or(if kind.is_some() { Engine::Rust } else { Engine::C });
    let mut out = BufWriter::new(io::stdout().lock());
    match (engine, kind) {
        (Engine::Rust, _) => {
            let shared = Shared::new(file, rust::open_data(file)?);
            match RustItems::new(&shared) {
                Some(items) => write_array(args, &items, &mut out)?,
                None => write_schunk(args, &shared, &mut out)?,
            }
        }
        (Engine::C, Some(Kind::Chunk)) => write_schunk(args, &chunk::Data::open(file)?, &mut out)?,
        (Engine::C, Some(kind)) => bail!(
            "cannot read ({}): this is {}, older than what C-Blosc2 opens; `--engine rust` \
             reads it",
            file.display(),
            rust::with_article(kind)
        ),
        (Engine::C, None) => match Content::open_data(file)? {
            Content::SChunk(schunk) => write_schunk(args, &schunk, &mut out)?,
            Content::Array(array) => write_array(args, &ArrayItems(&array), &mut out)?,
        },
    }
    Ok(out.flush()?)
}

fn write_array(args: &Args, items: &dyn Items, out: &mut dyn Write) -> Result<()> {
    write_items(&args.file, items, &args.slice.clone().unwrap_or_default(), out)
}

fn write_schunk(args: &Args, schunk: &dyn Chunks, out: &mut dyn Write) -> Result<()> {
    match &args.slice {
        Some(slices) => write_items(&args.file, &SChunkItems::new(schunk)?, slices, out),
        None => write_chunks(schunk, out),
    }
}

fn write_items(file: &Path, items: &dyn Items, slices: &Slices, out: &mut dyn Write) -> Result<()> {
    let picks = slices
        .resolve(items.shape())
        .map_err(|error| anyhow!("{error} (--slice of {})", file.display()))?;
    let bytes = picks.iter().map(Pick::count).fold(items.typesize() as u64, u64::saturating_mul);
    stream::write(items, &picks, out, &progress::bar_beside_stdout(bytes))
}

/// Writes all chunks of a super-chunk, which may have different lengths.
fn write_chunks(schunk: &dyn Chunks, out: &mut dyn Write) -> Result<()> {
    let expected = schunk.nbytes();
    let bar = progress::bar_beside_stdout(expected);
    let mut found = 0;
    for index in 0..schunk.nchunks() {
        let chunk = schunk.chunk(index)?;
        out.write_all(&chunk)?;
        bar.inc(chunk.len() as u64);
        found += chunk.len() as u64;
    }
    if found != expected {
        bail!("cannot read all chunks: expected {expected} bytes in all, found {found}");
    }
    Ok(())
}
