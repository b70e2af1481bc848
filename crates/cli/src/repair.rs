//! `blosc2 repair`: repairs a frame that is damaged, or whose writer was interrupted.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, bail};
use blosc2::repair::{Repaired, repair, repair_to};
use serde_json::{Value, json};

use crate::output::folder_of;
use crate::{UsageError, foreign, interrupt, json, printable, remote, stdin};

/// Repair a frame that is damaged, or whose writer was interrupted.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "A valid frame is not changed. An interrupted change is rolled back, or completed if \
    only its last step is missing. If the frame is damaged, a new frame with all \
    intact chunks replaces FILE, and the damaged file is renamed to FILE.damaged. If FILE is a URL, --output is \
    required.\n\nExamples:\n  blosc2 repair a.b2nd\n  blosc2 repair a.b2nd --output repaired.b2nd"
)]
pub(crate) struct Args {
    /// File, or directory with a sparse frame.
    file: PathBuf,
    /// Do not change FILE; write the repaired frame to this new file or directory.
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    url: remote::UrlOptions,
    /// Print one JSON object instead of a line.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if stdin::is_named(&args.file) {
        return Err(UsageError("stdin cannot be changed; name a file".to_owned()).into());
    }
    if args.output.as_deref().is_some_and(stdin::is_named) {
        let message = "--output names a file or directory, not stdout".to_owned();
        return Err(UsageError(message).into());
    }
    args.output.as_deref().map_or(Ok(()), remote::check_local)?;
    // Repairing reads all of it.
    let file = match remote::is_url(&args.file) {
        true if args.output.is_none() => {
            bail!(
                "{}; --output names a new file for the repaired frame",
                remote::unchangeable(&args.file)
            )
        }
        true => match remote::open(&args.file, &args.url)? {
            remote::Opened::Object(object) => &stdin::copy_of(&args.file, &object)?,
            remote::Opened::Folder(_) | remote::Opened::Store(_) => bail!(
                "cannot repair ({}): a directory at a URL is not repaired; copy its files to a local directory first",
                args.file.display()
            ),
        },
        false => &args.file,
    };
    interrupt::register(folder_of(args.output.as_ref().unwrap_or(&args.file)));
    let repaired = match &args.output {
        None => {
            // An archive or a text may contain a frame, but is not one.
            foreign::check_repairable(file)?;
            repair(file)
        }
        Some(output) => repair_to(file, output),
    };
    let repaired = repaired.map_err(|error| foreign::unrepaired(file, &error))?;
    let path = args.file.display().to_string();
    match args.json {
        true => writeln!(io::stdout(), "{}", json::pretty(&to_json(&path, &repaired))?)?,
        false => match (&args.output, &repaired) {
            (Some(output), Repaired::Sound) => {
                let line = format!("{path}: good: copied to {}", output.display());
                writeln!(io::stdout(), "{}", printable(&line))?;
            }
            // The names of metalayers come from the file.
            _ => writeln!(io::stdout(), "{}", printable(&format!("{path}: {repaired}")))?,
        },
    }
    Ok(())
}

fn to_json(path: &str, repaired: &Repaired) -> Value {
    let outcome = match repaired {
        Repaired::Sound => "sound",
        Repaired::RolledBack => "rolled-back",
        Repaired::Completed => "completed",
        Repaired::Rebuilt(_) => "rebuilt",
        // The enum is non-exhaustive.
        _ => "other",
    };
    let rebuilt = match repaired {
        Repaired::Rebuilt(rebuilt) => Some(rebuilt),
        _ => None,
    };
    json!({
        "path": path,
        "outcome": outcome,
        "nchunks": rebuilt.map(|rebuilt| rebuilt.nchunks),
        "lost_chunks": rebuilt.map(|rebuilt| &rebuilt.lost),
        "meta": rebuilt.map(|rebuilt| &rebuilt.meta),
        "vlmeta": rebuilt.map(|rebuilt| &rebuilt.vlmeta),
    })
}
