//! New files: they appear under their names when they are complete, and existing ones are kept unless `--force`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blosc2::storage::temporary_prefix;

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
            Err(_) => {
                self.folder(self.path)?;
                Ok(())
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

    /// The directory of the file at `real`. Fails if it does not exist.
    fn folder<'b>(&self, real: &'b Path) -> Result<&'b Path> {
        let folder = folder_of(real);
        if !folder.is_dir() {
            let path = self.path.display();
            bail!("cannot create a file ({path}): there is no directory {}", folder.display());
        }
        Ok(folder)
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

    /// Creates the file from the bytes that `write` writes. They go to stdout directly.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
        self.check()?;
        if self.is_stdout() {
            let mut out = BufWriter::new(io::stdout().lock());
            write(&mut out)?;
            return Ok(out.flush()?);
        }
        self.write_file(|out| write(out))
    }

    /// Creates the file from what `write` writes, not only at its end.
    pub(crate) fn write_seekable(
        &self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>,
    ) -> Result<()> {
        if !self.is_stdout() {
            self.check()?;
            return self.write_file(write);
        }
        self.create(|path, _| Output { path, replace: false }.write_file(write))
    }

    fn write_file(
        &self,
        write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>,
    ) -> Result<()> {
        let path = self.path.display();
        let failed = |error: io::Error| anyhow!("cannot create a file ({path}): {error}");
        let real = self.target().map_err(failed)?;
        let folder = self.folder(&real)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(temporary_prefix());
        interrupt::register(folder);
        // Permissions as the umask sets them for any new file.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut file = builder.tempfile_in(folder).map_err(failed)?;
        {
            let mut buffered = BufWriter::new(file.as_file_mut());
            // An I/O error of this file must not be taken for a closed stdout.
            write(&mut buffered).map_err(|error| match error.downcast::<io::Error>() {
                Ok(error) => failed(error),
                Err(error) => error,
            })?;
            buffered.flush().map_err(failed)?;
        }
        if let Ok(metadata) = fs::metadata(&real) {
            // A private file stays private.
            file.as_file().set_permissions(metadata.permissions()).map_err(failed)?;
        }
        file.as_file().sync_all().map_err(failed)?;
        match self.replace {
            true => file.persist(&real).map_err(|error| failed(error.error))?,
            false => file.persist_noclobber(&real).map_err(|error| failed(error.error))?,
        };
        Ok(())
    }
}

/// The directory of a new file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}
