//! `blosc2 repair`: a frame that is damaged, or whose writer was stopped.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use blosc2::repair::{repair, repair_to};

/// Put a frame in order whose writer was stopped, or that is damaged.
///
/// A good frame is left alone. A change that was stopped is rolled back. Otherwise the file is replaced by one of
/// all chunks that are whole, and the damaged one is kept beside it as FILE.damaged.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or directory of chunks.
    file: PathBuf,
    /// Leave FILE alone, and write a good frame to this new file or directory.
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let repaired = match &args.output {
        None => repair(&args.file)?,
        Some(output) => repair_to(&args.file, output)?,
    };
    writeln!(io::stdout(), "{}: {repaired}", args.file.display())?;
    Ok(())
}
