//! `blosc2 checksums`: adds checksums to a frame, computes them again, or removes them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Result;
use blosc2::OpenOptions;

use crate::file::Place;
use crate::{UsageError, printable, stdin};

/// Add checksums to a file, compute them again, or remove them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With checksums (CRC-32C), reading a chunk with a changed byte fails, and `check` reports \
    the chunk. Each change by this program updates the checksums; other programs, such as Python, ignore checksums. The command computes \
    checksums of the current content: it accepts changes by other programs.\n\nExamples:\n  blosc2 checksums a.b2nd\n  blosc2 checksums a.b2nd --remove"
)]
pub(crate) struct Args {
    /// File, or directory with a sparse frame.
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Remove the checksums.
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if stdin::is_named(&args.file) {
        return Err(UsageError("stdin cannot be changed; name a file".to_owned()).into());
    }
    let source = args.place.of(&args.file)?;
    let mut schunk =
        source.open_rw_with(source.limits.apply(OpenOptions::new().verify_checksums(false)))?;
    schunk.set_checksums(!args.remove)?;
    let what = match args.remove {
        true => "the checksums are removed".to_owned(),
        false => format!("the checksums are set; number of chunks: {}", schunk.nchunks()),
    };
    let line = format!("{}: {what}", args.file.display());
    Ok(writeln!(io::stdout(), "{}", printable(&line))?)
}
