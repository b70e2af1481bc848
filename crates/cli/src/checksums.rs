//! `blosc2 checksums`: adds checksums to a frame, computes them again, verifies them, or removes them.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use blosc2::OpenOptions;

use crate::file::Place;
use crate::{UsageError, printable, progress, remote, stdin};

/// Add checksums to a file, compute them again, verify them, or remove them.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "With checksums (CRC-32C), reading a chunk with a changed byte fails, and `check` reports \
    the chunk. Each change by this program updates the checksums; other programs, such as Python, ignore checksums. The command computes \
    checksums of the current content: it accepts changes by other programs.\n\nExamples:\n  blosc2 checksums a.b2nd\n  blosc2 checksums a.b2nd --verify"
)]
pub(crate) struct Args {
    /// File, or directory with a sparse frame.
    file: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Remove the checksums.
    #[arg(long)]
    remove: bool,
    /// Only compare all chunks and the metadata with their checksums.
    #[arg(long, conflicts_with = "remove")]
    verify: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if args.verify {
        return verify(args);
    }
    if stdin::is_named(&args.file) {
        return Err(UsageError("stdin cannot be changed; name a file".to_owned()).into());
    }
    if remote::is_url(&args.file) {
        bail!("{}; --verify verifies the checksums", remote::unchangeable(&args.file));
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

/// Compares all chunks and the metadata with their checksums.
fn verify(args: &Args) -> Result<()> {
    let source = args.place.of(&args.file)?;
    // It compares the metadata.
    let schunk =
        source.open_with(source.limits.apply(OpenOptions::new().require_checksums(true)))?;
    let bar = progress::bar(schunk.nbytes());
    for index in 0..schunk.nchunks() {
        // Reading a chunk compares it with its checksum.
        let chunk = schunk.chunk(index).map_err(|error| error.at(&args.file))?;
        bar.inc(chunk.nbytes() as u64);
    }
    let path = args.file.display();
    let line = format!("{path}: the checksums are correct; number of chunks: {}", schunk.nchunks());
    Ok(writeln!(io::stdout(), "{}", printable(&line))?)
}
