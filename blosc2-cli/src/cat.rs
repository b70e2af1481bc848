//! `blosc2 cat`: items to stdout.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blosc2::SChunk;
use clap::ValueEnum;

use crate::file::Content;
use crate::progress;
use crate::slice::{Pick, Slices};
use crate::stream::{self, ArrayItems, Items, SChunkItems};

/// Write the items' bytes to stdout, in C order, as they are stored.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or directory of chunks.
    file: PathBuf,
    /// What decompresses.
    #[arg(long, value_enum, default_value_t = Engine::C)]
    engine: Engine,
    /// Which items: `start:stop:step` for each dimension, as in Python, such as `0:10,::2` or
    /// `-1`. Numbers that reach outside are refused. A super-chunk has one dimension.
    #[arg(long, allow_hyphen_values = true)]
    slice: Option<Slices>,
}

/// What decompresses.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Engine {
    /// C-Blosc2.
    C,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let Engine::C = args.engine;
    let mut out = BufWriter::new(io::stdout().lock());
    let file = &args.file;
    match (Content::open_data(file)?, &args.slice) {
        (Content::SChunk(schunk), None) => write_chunks(&schunk, &mut out)?,
        (Content::SChunk(schunk), Some(slices)) => {
            write_items(file, &SChunkItems::new(&schunk)?, slices, &mut out)?;
        }
        (Content::Array(array), slices) => {
            let slices = slices.clone().unwrap_or_default();
            write_items(file, &ArrayItems(&array), &slices, &mut out)?;
        }
    }
    Ok(out.flush()?)
}

fn write_items(file: &Path, items: &dyn Items, slices: &Slices, out: &mut dyn Write) -> Result<()> {
    let picks = slices
        .resolve(items.shape())
        .map_err(|error| anyhow!("{error} (--slice of {})", file.display()))?;
    let bytes = picks.iter().map(Pick::count).fold(items.typesize() as u64, u64::saturating_mul);
    stream::write(items, &picks, out, &progress::bar_beside_stdout(bytes))
}

/// Writes all chunks of a super-chunk, which may have different lengths.
fn write_chunks(schunk: &SChunk, out: &mut dyn Write) -> Result<()> {
    let expected = schunk.nbytes();
    let bar = progress::bar_beside_stdout(expected);
    let mut found = 0;
    for chunk in schunk.chunks::<u8>() {
        let chunk = chunk?;
        out.write_all(&chunk)?;
        bar.inc(chunk.len() as u64);
        found += chunk.len() as u64;
    }
    if found != expected {
        bail!("cannot read all chunks: expected {expected} bytes in all, found {found}");
    }
    Ok(())
}
