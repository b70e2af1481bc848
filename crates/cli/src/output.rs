//! New files: they appear under their names when they are complete, and existing ones are kept unless `--force`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blosc2::ErrorKind;
use blosc2::storage::{create_file, temporary_prefix};

use crate::{interrupt, remote, stdin};

/// The option that replaces existing files.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Force {
    /// Replace an existing file. A directory is never replaced.
    #[arg(long)]
    pub(crate) force: bool,
}

impl Force {
    pub(crate) fn output<'a>(&self, path: &'a Path) -> Output<'a> {
        Output { path, replace: self.force }
    }

    /// As `output`, checked before work that takes long.
    pub(crate) fn output_apart<'a>(&self, path: &'a Path, input: &Path) -> Result<Output<'a>> {
        let output = self.output(path);
        output.check_apart(input)?;
        output.check()?;
        Ok(output)
    }
}

/// A file to create, or stdout.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Output<'a> {
    pub(crate) path: &'a Path,
    /// Whether an existing file is replaced.
    pub(crate) replace: bool,
}

impl Output<'_> {
    pub(crate) fn is_stdout(&self) -> bool {
        stdin::is_named(self.path)
    }

    /// Fails if there is a file that is not to be replaced, or a directory, or if the directory of the file is missing.
    pub(crate) fn check(&self) -> Result<()> {
        remote::check_local(self.path)?;
        let path = self.path.display();
        match self.path.symlink_metadata() {
            _ if self.is_stdout() => Ok(()),
            Err(_) if folder_of(self.path).is_dir() => Ok(()),
            Err(_) => {
                let folder = folder_of(self.path).display();
                bail!("cannot create a file ({path}): there is no directory {folder}")
            }
            Ok(_) if self.replace && self.path.is_dir() => {
                bail!(
                    "cannot create a file ({path}): it is a directory, which --force does not replace; remove it first"
                )
            }
            // The target of a link is replaced.
            Ok(found) if !found.is_dir() && self.path.metadata().is_ok_and(|it| !it.is_file()) => {
                bail!(
                    "cannot create a file ({path}): what exists there is not a regular file; `-` is stdout"
                )
            }
            Ok(_) if self.replace => Ok(()),
            Ok(metadata) => {
                let hint = if metadata.is_dir() { "" } else { "; --force replaces it" };
                bail!("cannot create a file ({path}): it already exists{hint}")
            }
        }
    }

    /// Fails if the file would replace an input of the command, or be created inside an input directory.
    pub(crate) fn check_apart(&self, input: &Path) -> Result<()> {
        if self.is_stdout() || stdin::is_named(input) {
            return Ok(());
        }
        let real = fs::canonicalize(self.path).or_else(|_| {
            let parent = self.path.parent().filter(|parent| !parent.as_os_str().is_empty());
            let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
            Ok::<_, io::Error>(parent.join(self.path.file_name().unwrap_or_default()))
        });
        match (real, fs::canonicalize(input)) {
            (Ok(output), Ok(input)) if output.starts_with(&input) => {
                let what =
                    if output == input { "it is the input" } else { "it is inside the input" };
                bail!("cannot create a file ({}): {what}", self.path.display())
            }
            _ => Ok(()),
        }
    }

    /// The path that is replaced: of a link its target, even if nothing exists there.
    fn target(&self) -> io::Result<PathBuf> {
        let mut path = self.path.to_owned();
        while self.replace
            && let Ok(link) = fs::read_link(&path)
        {
            path = match fs::canonicalize(&path) {
                // Links in a cycle are another error.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    folder_of(&path).join(link)
                }
                found => found?,
            };
        }
        Ok(path)
    }

    /// Creates the file through `make`, which writes it at the given path, replaces an existing file if the second
    /// argument is `true`, and leaves no part of it if it fails. For stdout, `make` writes a temporary file, which is
    /// then copied.
    pub(crate) fn create(&self, make: impl FnOnce(&Path, bool) -> Result<()>) -> Result<()> {
        self.check()?;
        if !self.is_stdout() {
            // The temporary file is beside the target; `make` reports an error of the path.
            let real = self.target();
            interrupt::register(folder_of(real.as_deref().unwrap_or(self.path)));
            return make(self.path, self.replace);
        }
        let folder = std::env::temp_dir();
        interrupt::register(&folder);
        let failed = |error: io::Error| {
            anyhow!("cannot create a temporary file in {}: {error}", folder.display())
        };
        let mut builder = tempfile::Builder::new();
        let folder = builder.prefix(temporary_prefix()).tempdir_in(&folder).map_err(failed)?;
        let path = folder.path().join("stdout");
        make(&path, false)?;
        let mut file = File::open(&path).map_err(failed)?;
        let mut out = io::stdout().lock();
        io::copy(&mut file, &mut out)?;
        Ok(out.flush()?)
    }

    /// Creates a directory through `make`, which creates it at the given path. It gets its name when it is complete; a
    /// file that it replaces remains until then. Of a link, the target is replaced.
    #[cfg(any(feature = "arrow", feature = "zarr"))]
    pub(crate) fn create_folder(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.check()?;
        let shown = self.path.display();
        let failed = |error: io::Error| anyhow!("cannot create a directory ({shown}): {error}");
        let target = self.target().map_err(failed)?;
        let above = folder_of(&target);
        interrupt::register(above);
        let folder = tempfile::Builder::new().prefix(temporary_prefix()).tempdir_in(above);
        let folder = folder.map_err(|error| {
            anyhow!("cannot create a temporary directory in {}: {error}", above.display())
        })?;
        let (path, old) = (folder.path().join("new"), folder.path().join("old"));
        make(&path)?;
        self.check()?;
        if !target.is_file() {
            return fs::rename(&path, &target).map_err(failed);
        }
        fs::rename(&target, &old).map_err(failed)?;
        fs::rename(&path, &target).map_err(|error| match fs::rename(&old, &target) {
            Ok(()) => failed(error),
            Err(kept) => {
                // Not removed with the temporary directory, as it may be the only copy.
                let folder = folder.keep();
                anyhow!(
                    "cannot create a directory ({shown}): {error}; the file that it replaces is in {}: {kept}",
                    folder.display()
                )
            }
        })
    }

    /// Creates the file from the bytes that `write` writes. They go to stdout directly.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.check()?;
        if self.is_stdout() {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            return Ok(out.flush()?);
        }
        self.write_seekable(|out| write(out))
    }

    /// As `write`, with a writer that can be sent to another thread.
    #[cfg(feature = "arrow")]
    pub(crate) fn write_sent(
        &self,
        write: impl FnOnce(&mut (dyn Write + Send)) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        if self.is_stdout() {
            let mut out = BufWriter::new(io::stdout());
            write(&mut out)?;
            return Ok(out.flush()?);
        }
        self.write_seekable(|out| write(out))
    }

    /// Creates the file from what `write` writes, not only at its end.
    pub(crate) fn write_seekable(
        &self,
        write: impl FnOnce(&mut BufWriter<File>) -> Result<()>,
    ) -> Result<()> {
        let path = self.path.display();
        let failed = |error: io::Error| anyhow!("cannot create a file ({path}): {error}");
        self.create_complete(|temporary: &Path| {
            let file = File::options().read(true).write(true).create_new(true).open(temporary);
            let mut out = BufWriter::new(file.map_err(failed)?);
            // An I/O error of this file must not be taken for a closed stdout.
            write(&mut out).map_err(|error| match error.downcast::<io::Error>() {
                Ok(error) => failed(error),
                Err(error) => error,
            })?;
            out.flush().map_err(failed)
        })
    }

    /// Creates the file through `make`, which creates it at the given path, in a temporary directory. It gets its name when
    /// it is complete.
    pub(crate) fn create_complete(&self, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
        self.create(|path, replace| {
            let mut fault = None;
            let created = create_file(path, replace, None, |temporary| {
                make(temporary).map_err(|error| {
                    let failed = blosc2::Error::new(ErrorKind::Callback, "create a file", &error);
                    fault = Some(error);
                    failed
                })
            });
            created.map_err(|error| fault.unwrap_or_else(|| error.into()))
        })
    }
}

/// The directory of a new file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
