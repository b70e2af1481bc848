//! `blosc2 repair`: repairs a frame that is damaged, or whose writer was interrupted.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use blosc2::repair::{repair, repair_to};

/// Repair a frame that is damaged, or whose writer was interrupted.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A good frame is not changed. An interrupted change is rolled back, or completed if \
    only its last step is missing. Otherwise the file is replaced by a new frame with \
    all intact chunks, and the damaged file is kept as FILE.damaged.\n\nExamples:\n  blosc2 repair a.b2nd\n  blosc2 repair a.b2nd --output repaired.b2nd"
)]
pub(crate) struct Args {
    /// File, or directory with a sparse frame.
    file: PathBuf,
    /// Do not change FILE; write the repaired frame to this new file or directory.
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
