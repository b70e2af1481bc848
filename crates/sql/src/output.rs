//! Where results go: stdout, or a new file, which appears when it is complete.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write, stdout};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use blosc2::ErrorKind;
use blosc2::storage::{create_file, temporary_prefix};

use crate::batches::Batches;
use crate::format::{self, Format, Text};
use crate::{UsageError, interrupt, sources};

/// The destination of results, and their format.
#[derive(Debug)]
pub(crate) struct Output {
    /// `None` is stdout.
    path: Option<PathBuf>,
    replace: bool,
    format: Format,
    text: Text,
}

impl Output {
    /// Without `format`, the format is that of the extension of the file.
    pub(crate) fn new(
        path: Option<&Path>,
        replace: bool,
        format: Option<Format>,
        mut text: Text,
    ) -> Result<Self> {
        let path = path.filter(|path| path.as_os_str() != "-").map(Path::to_owned);
        if let Some(url) =
            path.as_ref().and_then(|path| path.to_str()).filter(|path| sources::is_url(path))
        {
            let hint = "name a local file; `COPY (SELECT ...) TO '<URL>'` writes to a URL";
            return Err(UsageError(format!("cannot create a file ({url}): {hint}")).into());
        }
        let format = match (format, &path) {
            (Some(format), _) => format,
            (None, Some(path)) => Format::of(path)?,
            (None, None) => Format::Text,
        };
        if format.is_binary() && path.is_none() && stdout().is_terminal() {
            let detail = "this format is not for terminals: write it to a file with --output";
            return Err(UsageError(detail.to_owned()).into());
        }
        if path.is_some() && text.rows.is_none() {
            text.rows = Some(format::Rows::All);
        }
        Ok(Self { path, replace, format, text })
    }

    /// Whether the results are text for people, on stdout.
    pub(crate) fn is_text(&self) -> bool {
        self.format == Format::Text && self.path.is_none()
    }

    /// Whether nothing is written to a terminal before the last batch has been read.
    pub(crate) fn is_apart_from_terminal(&self) -> bool {
        self.format == Format::Text || self.path.is_some() || !stdout().is_terminal()
    }

    /// Writes a result.
    pub(crate) fn write(&self, batches: &mut Batches) -> Result<()> {
        self.format.check(&batches.schema())?;
        match &self.path {
            Some(path) => self.write_file(path, batches),
            None if self.format == Format::B2z => {
                let folder = std::env::temp_dir();
                interrupt::register(&folder);
                let failed = |error: io::Error| {
                    anyhow!("cannot create a temporary file in {}: {error}", folder.display())
                };
                let mut builder = tempfile::Builder::new();
                let folder = builder.prefix(temporary_prefix()).tempdir_in(&folder);
                let path = folder.as_ref().map(|folder| folder.path().join("stdout.b2z"));
                let path = path.map_err(|error| anyhow!("{error}"))?;
                format::write_table(&path, batches)?;
                let mut file = File::open(&path).map_err(failed)?;
                let mut out = stdout().lock();
                io::copy(&mut file, &mut out)?;
                Ok(out.flush()?)
            }
            None => Ok(self.write_stream(stdout(), batches)??),
        }
    }

    fn write_file(&self, path: &Path, batches: &mut Batches) -> Result<()> {
        let shown = path.display();
        let failed = |error: io::Error| anyhow!("cannot create a file ({shown}): {error}");
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if !folder.is_dir() {
            let folder = folder.display();
            bail!("cannot create a file ({shown}): there is no directory {folder}");
        }
        // A link is replaced in the directory of its target.
        let target = std::fs::canonicalize(path).ok();
        interrupt::register(target.as_deref().and_then(Path::parent).unwrap_or(folder));
        let mut fill = |temporary: &Path| {
            if self.format == Format::B2z {
                // The name decides how a table is stored.
                let table = temporary.with_file_name("table.b2z");
                format::write_table(&table, batches)?;
                return std::fs::rename(table, temporary).map_err(failed);
            }
            let file = File::create_new(temporary).map_err(failed)?;
            self.write_stream(file, batches)?.map_err(failed)
        };
        let mut fault = None;
        let created = create_file(path, self.replace, None, |temporary| {
            fill(temporary).map_err(|error| {
                let failed = blosc2::Error::new(ErrorKind::Callback, "create a file", &error);
                fault = Some(error);
                failed
            })
        });
        created.map_err(|error| match fault {
            Some(fault) => fault,
            None if error.kind() == ErrorKind::AlreadyExists => {
                anyhow!("cannot create a file ({shown}): it already exists; --force replaces it")
            }
            None => error.into(),
        })
    }

    /// Writes a result to a file or a pipe, whose errors are the inner result.
    fn write_stream(
        &self,
        out: impl Write + Send,
        batches: &mut Batches,
    ) -> Result<io::Result<()>> {
        let mut out = Out { inner: BufWriter::new(out), fault: None };
        let written = self.format.write(batches, &mut out, &self.text);
        let flushed = out.flush();
        match (out.fault, written) {
            (Some(fault), _) => Ok(Err(fault)),
            (None, Err(error)) => Err(error),
            (None, Ok(())) => Ok(flushed),
        }
    }
}

/// Keeps the first error: the writers of some formats return it as text.
struct Out<W: Write> {
    inner: BufWriter<W>,
    fault: Option<io::Error>,
}

impl<W: Write> Out<W> {
    fn keep<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        result.map_err(|error| {
            let copy = io::Error::new(error.kind(), error.to_string());
            self.fault.get_or_insert(error);
            copy
        })
    }
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.inner.write(bytes);
        self.keep(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.inner.flush();
        self.keep(result)
    }
}
