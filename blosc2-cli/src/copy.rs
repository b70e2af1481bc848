//! `blosc2 copy`: a file compressed anew.

use std::path::PathBuf;

use anyhow::Result;
use blosc2::DParams;

use crate::UsageError;
use crate::file::Content;
use crate::params::{Compression, Cut};
use crate::progress;

/// Copy a file with other compression, chunks or blocks.
///
/// What is not given stays as it is in IN. When nothing is given, the compressed chunks are taken
/// over as they are. OUT is one contiguous file, and must not exist yet.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or directory of chunks.
    r#in: PathBuf,
    /// File to make.
    out: PathBuf,
    #[command(flatten)]
    compression: Compression,
    #[command(flatten)]
    cut: Cut,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    let content = Content::open(&args.r#in)?;
    let _spinner = progress::spinner(content.nbytes(), "copying");
    let verbatim = args.compression.is_default() && args.cut.is_default();
    let params = args.compression.apply(content.schunk().cparams());
    let dparams = DParams::new().threads(args.compression.threads());
    match content {
        Content::SChunk(_) if !args.cut.is_default() => {
            let path = args.r#in.display();
            return Err(UsageError(format!(
                "--chunks and --blocks are for arrays, and {path} is a plain super-chunk"
            ))
            .into());
        }
        Content::SChunk(schunk) if verbatim => schunk.save(&args.out)?,
        Content::Array(array) if verbatim => array.save(&args.out)?,
        Content::SChunk(mut schunk) => {
            schunk.set_dparams(dparams);
            schunk.copy(&args.out, &params)?;
        }
        Content::Array(mut array) => {
            array.set_dparams(dparams);
            args.cut.builder().cparams(params).file(&args.out).copy(&array)?;
        }
    }
    Ok(())
}
