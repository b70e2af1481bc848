//! Standard input, named pipes and whole objects of URLs as files: frames and stores are read in any order, so the input
//! is copied to a temporary file.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Result, anyhow};
use blosc2::storage::{ReadAt, temporary_prefix};

use crate::{interrupt, progress};

/// The name of stdin and stdout as arguments. A file of this name is `./-`.
pub(crate) const NAME: &str = "-";

/// The copies of stdin, named pipes and URLs: the name of each, and the path of its copy.
static COPIES: Mutex<Vec<(PathBuf, PathBuf)>> = Mutex::new(Vec::new());

pub(crate) fn is_named(path: &Path) -> bool {
    path.as_os_str() == NAME
}

/// Whether a path is stdin or a named pipe, which are read once, from the beginning to the end.
pub(crate) fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    if std::fs::metadata(path)
        .is_ok_and(|found| std::os::unix::fs::FileTypeExt::is_fifo(&found.file_type()))
    {
        return true;
    }
    is_named(path)
}

/// Returns the path of a file with all bytes of stdin or of a pipe. It is removed when the command ends.
pub(crate) fn file(name: &Path) -> Result<PathBuf> {
    copy(name, |to| match is_named(name) {
        true => io::copy(&mut io::stdin().lock(), to).map(drop),
        false => File::open(name).and_then(|mut pipe| io::copy(&mut pipe, to)).map(drop),
    })
}

/// Returns the path of a file with all bytes of an opened URL. It is removed when the command ends.
pub(crate) fn copy_of(url: &Path, object: &dyn ReadAt) -> Result<PathBuf> {
    const PART: u64 = 32 << 20;
    copy(url, |to| {
        let size = object.size()?;
        let bar = progress::bar(size);
        for start in (0..size).step_by(PART as usize) {
            let bytes = object.read_vec_at(start, PART.min(size - start))?;
            to.write_all(&bytes)?;
            bar.inc(bytes.len() as u64);
        }
        Ok(())
    })
}

/// Returns the path of a temporary file that `write` writes once for each name.
fn copy(name: &Path, write: impl FnOnce(&mut File) -> io::Result<()>) -> Result<PathBuf> {
    // Not locked while it reads: a signal handler writes messages.
    let copies = || COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, copy)) = copies().iter().find(|(pipe, _)| pipe == name) {
        return Ok(copy.clone());
    }
    let failed =
        |error: io::Error| anyhow!("cannot copy ({}) to a temporary file: {error}", name.display());
    let folder = std::env::temp_dir();
    interrupt::register(&folder);
    let created = tempfile::Builder::new().prefix(temporary_prefix()).tempfile_in(&folder);
    let mut file = created.map_err(|error| {
        anyhow!("cannot create a temporary file for it in {}: {error}", folder.display())
    })?;
    write(file.as_file_mut()).map_err(failed)?;
    // `interrupt` removes it, also when the process exits without dropping it.
    let (_, copy) = file.keep().map_err(|error| failed(error.error))?;
    copies().push((name.to_owned(), copy.clone()));
    Ok(copy)
}

/// Opens a file, or stdin, for reading from its beginning to its end.
pub(crate) fn open(path: &Path) -> io::Result<Box<dyn Read + Send>> {
    Ok(match is_named(path) {
        true => Box::new(BufReader::new(io::stdin())),
        false => Box::new(BufReader::new(File::open(path)?)),
    })
}

/// Replaces the paths of the copies in a message.
pub(crate) fn named(message: String) -> String {
    let copies = COPIES.lock().unwrap_or_else(PoisonError::into_inner);
    copies.iter().fold(message, |message, (name, copy)| {
        message.replace(&*copy.to_string_lossy(), &name.to_string_lossy())
    })
}
