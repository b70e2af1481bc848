//! `blosc2 completions` and `blosc2 man`: shell completions and manual pages.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::{Result, anyhow};
use clap_complete::Shell;

/// Print the completions of a shell.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  blosc2 completions bash > ~/.local/share/bash-completion/completions/blosc2\n  \
    blosc2 completions zsh > ~/.zfunc/_blosc2"
)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    shell: Shell,
}

/// Print the manual page of `blosc2`, or write the pages of all commands to a directory.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  blosc2 man | man -l -\n  blosc2 man --dir ~/.local/share/man/man1"
)]
pub(crate) struct ManArgs {
    /// Existing directory for the pages: `blosc2.1`, `blosc2-info.1` and so on. Existing pages are replaced.
    #[arg(long)]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &CompletionsArgs, mut command: clap::Command) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "blosc2", &mut text);
    Ok(io::stdout().write_all(&text)?)
}

pub(crate) fn man(args: &ManArgs, command: clap::Command) -> Result<()> {
    let Some(dir) = &args.dir else {
        let mut text = Vec::new();
        clap_mangen::Man::new(command).render(&mut text)?;
        return Ok(io::stdout().write_all(&text)?);
    };
    // An error in the directory must not be taken for an error of stdout.
    let failed =
        |error: io::Error| anyhow!("cannot write manual pages ({}): {error}", dir.display());
    fs::metadata(dir).map_err(failed)?;
    clap_mangen::generate_to(command, dir).map_err(failed)
}
