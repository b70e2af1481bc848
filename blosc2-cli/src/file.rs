//! Opening files, whatever they hold, and making new ones.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Result, anyhow, bail};
use blosc2::{NDArray, SChunk};

use crate::rust;

/// Metalayers that make a super-chunk an array: today's name and that of Caterva.
const ARRAY_METALAYERS: [&str; 2] = ["b2nd", "caterva"];

/// Metalayers of files that look like data but stand for something else.
const CARRIERS: [(&str, &str); 3] = [
    ("b2o", "a reference to a Python object, such as a lazy expression; its items hold no data"),
    ("LazyArray", "a lazy expression of Python; its items hold no data"),
    ("proxy-source", "the cache of a proxy; items not fetched yet hold no data"),
];

/// What is in a file.
#[derive(Debug)]
pub(crate) enum Content {
    /// An n-dimensional array.
    Array(NDArray),
    /// A plain super-chunk.
    SChunk(SChunk),
}

impl Content {
    /// Opens a file or a directory.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if let Some(kind) = rust::needed(path) {
            bail!(
                "cannot open ({}): this is {}, which C-Blosc2 does not open; `copy` makes a \
                 frame of it",
                path.display(),
                rust::with_article(kind)
            );
        }
        let schunk = SChunk::open(path)?;
        let names = schunk.meta().names();
        if ARRAY_METALAYERS.iter().any(|array| names.iter().any(|name| name == array)) {
            return Ok(Self::Array(NDArray::from_schunk(schunk)?));
        }
        Ok(Self::SChunk(schunk))
    }

    /// Opens a file whose items are data.
    pub(crate) fn open_data(path: &Path) -> Result<Self> {
        let content = Self::open(path)?;
        match content.note() {
            Some(note) => bail!("cannot read items ({}): this is {note}", path.display()),
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
        carrier(&self.schunk().meta().names())
    }

    /// Bytes of all items, without the padding of an array's chunks.
    pub(crate) fn nbytes(&self) -> u64 {
        match self {
            Self::Array(array) => array.len().saturating_mul(array.typesize() as u64),
            Self::SChunk(schunk) => schunk.nbytes(),
        }
    }
}

/// What a file with these metalayers stands for, when its items are not its data.
pub(crate) fn carrier(names: &[String]) -> Option<&'static str> {
    let carrier = CARRIERS.iter().find(|(name, _)| names.iter().any(|each| each == name));
    carrier.map(|(_, note)| *note)
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
