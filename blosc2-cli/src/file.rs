//! Opening files, whatever they hold, and making new ones.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blosc2::{ErrorKind, NDArray, OpenOptions, SChunk};
use blosc2_format::file::{self, Kind};
use blosc2_format::read_at::Tail;

use crate::rust;

/// Metalayers that make a super-chunk an array: today's name and that of Caterva.
const ARRAY_METALAYERS: [&str; 2] = ["b2nd", "caterva"];

/// Where in a file to look.
#[derive(Debug, Clone, Copy, clap::Args)]
pub(crate) struct Place {
    /// Byte of the file at which the frame starts, where it lies inside a larger one.
    #[arg(long, value_name = "BYTE", default_value_t = 0, global = true)]
    offset: u64,
}

impl Place {
    pub(crate) fn of<'a>(&self, path: &'a Path) -> Source<'a> {
        Source { path, offset: self.offset }
    }
}

/// A file or a directory, or what starts inside a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source<'a> {
    pub(crate) path: &'a Path,
    pub(crate) offset: u64,
}

impl Source<'_> {
    /// The bytes of the file.
    pub(crate) fn bytes(&self) -> io::Result<Tail<File>> {
        Ok(Tail::new(File::open(self.path)?, self.offset))
    }

    /// What it is; `None` for none of the formats.
    pub(crate) fn kind(&self) -> io::Result<Option<Kind>> {
        if self.path.is_dir() {
            if self.offset > 0 {
                return Err(io::Error::other("it is a directory, and --offset is for files"));
            }
            return file::recognise_path(self.path);
        }
        file::recognise(&self.bytes()?)
    }

    /// Opens it as a super-chunk.
    pub(crate) fn open(&self) -> Result<SChunk> {
        self.open_with(OpenOptions::new())
    }

    /// Opens it as a super-chunk to be changed.
    pub(crate) fn open_rw(&self) -> Result<SChunk> {
        self.open_with(OpenOptions::new().write(true))
    }

    /// The same with other options.
    pub(crate) fn open_with(&self, options: OpenOptions) -> Result<SChunk> {
        let kind = self.kind().map_err(|error| self.unread(&error))?;
        if let Some(kind) = kind.filter(|&kind| rust::is_needed(kind)) {
            bail!(
                "cannot open ({}): this is {}, which C-Blosc2 does not open; `copy` makes a \
                 frame of it",
                self.path.display(),
                rust::with_article(kind)
            );
        }
        options.offset(self.offset).open(self.path).map_err(|error| match kind {
            // There is nothing to mend in what is no frame.
            None if error.kind() == ErrorKind::InvalidData => anyhow!("{error}"),
            _ => error.into(),
        })
    }

    pub(crate) fn unread(&self, error: &dyn std::fmt::Display) -> anyhow::Error {
        anyhow!("cannot read ({}): {error}", self.path.display())
    }
}

/// What is in a file.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Content {
    /// An n-dimensional array.
    Array(NDArray),
    /// A plain super-chunk.
    SChunk(SChunk),
}

impl Content {
    /// Opens a file or a directory.
    pub(crate) fn open(source: Source<'_>) -> Result<Self> {
        let schunk = source.open()?;
        if ARRAY_METALAYERS.iter().any(|array| schunk.meta().contains(array)) {
            return Ok(Self::Array(NDArray::from_schunk(schunk)?));
        }
        Ok(Self::SChunk(schunk))
    }

    /// Opens a file whose items are data.
    pub(crate) fn open_data(source: Source<'_>) -> Result<Self> {
        let content = Self::open(source)?;
        match content.note() {
            Some(note) => bail!("cannot read items ({}): this is {note}", source.path.display()),
            None => Ok(content),
        }
    }

    pub(crate) fn schunk(&self) -> &SChunk {
        match self {
            Self::Array(array) => array.schunk(),
            Self::SChunk(schunk) => schunk,
        }
    }

    /// What the file stands for, when its items are not its data.
    pub(crate) fn note(&self) -> Option<&'static str> {
        self.schunk().carries().map(told)
    }

    /// Bytes of all items, without the padding of an array's chunks.
    pub(crate) fn nbytes(&self) -> u64 {
        match self {
            Self::Array(array) => array.len().saturating_mul(array.typesize() as u64),
            Self::SChunk(schunk) => schunk.nbytes(),
        }
    }
}

/// What a metalayer of such a name says of a file.
fn told(carrier: &str) -> &'static str {
    match carrier {
        "b2o" => {
            "a reference to a Python object, such as a lazy expression; its items hold no data"
        }
        "LazyArray" => "a lazy expression of Python; its items hold no data",
        "proxy-source" => "the cache of a proxy; items not fetched yet hold no data",
        _ => "something else than its items",
    }
}

/// Says no when there is something at `path` already.
pub(crate) fn refuse_existing(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        bail!("cannot make a file ({}): there is something of that name already", path.display());
    }
    Ok(())
}

/// Makes a file that `write` fills under a temporary name beside it. It gets its own name when it
/// is complete.
pub(crate) fn create(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<&mut File>) -> Result<()>,
) -> Result<()> {
    refuse_existing(path)?;
    let failed =
        |error: std::io::Error| anyhow!("cannot make a file ({}): {error}", path.display());
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.is_dir() {
        bail!("cannot make a file ({}): there is no folder {}", path.display(), folder.display());
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".blosc2-");
    // Readable for whom the umask lets read, as any new file.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(failed)?;
    {
        let mut buffered = BufWriter::new(file.as_file_mut());
        // An error of writing here must not pass for a closed pipe of stdout.
        write(&mut buffered).map_err(|error| match error.downcast::<std::io::Error>() {
            Ok(error) => failed(error),
            Err(error) => error,
        })?;
        buffered.flush().map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist_noclobber(path).map_err(|error| failed(error.error))?;
    Ok(())
}
