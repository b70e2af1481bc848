//! Frames in files: what is looked at before C opens one, and how a new one appears.

use std::ffi::CString;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use blosc2_format::chunk::{self, Special};
use blosc2_format::frame::{self, Header, Layout};
use blosc2_sys as sys;

use crate::claim::Claim;
use crate::{Error, ErrorKind, Filter, Result, filter};

/// Name of the file in a directory that holds the header and the index.
const INDEX_FILE: &str = "chunks.b2frame";

/// A frame in the file system.
#[derive(Debug)]
pub(crate) struct FrameFile {
    /// As it was given.
    pub(crate) path: PathBuf,
    /// Where it is, wherever the program goes.
    pub(crate) absolute: PathBuf,
    pub(crate) header: Header,
    pub(crate) writable: bool,
    pub(crate) claim: Claim,
}

impl FrameFile {
    /// Sees that there is a frame at `path` whose header and trailer fit its file.
    pub(crate) fn check(path: &Path, writable: bool) -> Result<Self> {
        let doing = "open a frame";
        let io = |error| Error::from_io(doing, path, error);
        let invalid = |detail: &str| Error::new(ErrorKind::InvalidData, doing, detail).at(path);
        let metadata = fs::metadata(path).map_err(io)?;
        let directory = metadata.is_dir();
        if !directory && !metadata.is_file() {
            return Err(invalid("it is neither a file nor a directory"));
        }
        let claim = Claim::new(path, &metadata, writable)?;
        let reading = claim.reading();
        let file_path = index_file(path, directory);
        if directory && !file_path.is_file() {
            let detail = format!("the directory is not a frame: it has no {INDEX_FILE}");
            return Err(invalid(&detail));
        }
        let mut file = File::open(&file_path).map_err(io)?;
        let len = file.metadata().map_err(io)?.len();
        if len == 0 {
            return Err(invalid("the file is empty"));
        }
        let mut head = Vec::with_capacity(frame::MIN_HEADER_LEN);
        file.by_ref().take(frame::MIN_HEADER_LEN as u64).read_to_end(&mut head).map_err(io)?;
        let format = |error| Error::from_format(doing, error).at(path);
        let header = Header::parse(&head).map_err(format)?;
        let layout = if directory { Layout::Directory } else { Layout::Contiguous };
        if header.layout != layout {
            let detail =
                format!("expected a frame of layout {layout:?}, found {:?}", header.layout);
            return Err(invalid(&detail));
        }
        header.check_file_len(len).map_err(format)?;

        let mut tail = [0; frame::MIN_TRAILER_LEN];
        file.seek(SeekFrom::Start(header.frame_len - tail.len() as u64)).map_err(io)?;
        file.read_exact(&mut tail).map_err(io)?;
        frame::check_trailer(&header, &tail).map_err(format)?;
        check_index(&header, &mut file).map_err(|error| error.at(path))?;
        if directory {
            check_chunk_files(path)?;
        }
        drop(reading);
        let (path, absolute) = (path.to_owned(), std::path::absolute(path).map_err(io)?);
        Ok(Self { path, absolute, header, writable, claim })
    }

    /// Takes down what appending a chunk writes over: the header, and what follows the chunks.
    pub(crate) fn save(&self) -> Result<Saved> {
        let doing = "read a frame before it is changed";
        let io = |error| Error::from_io(doing, &self.path, error);
        let directory = self.header.layout == Layout::Directory;
        let path = index_file(&self.absolute, directory);
        let mut file = File::open(&path).map_err(io)?;
        if !self.claim.is_for(&self.absolute) {
            let detail = "there is another file of that name now";
            return Err(Error::new(ErrorKind::InvalidData, doing, detail).at(&self.path));
        }
        let mut head = Vec::new();
        file.by_ref().take(u64::from(self.header.header_len)).read_to_end(&mut head).map_err(io)?;
        let format = |error| Error::from_format(doing, error).at(&self.path);
        let header = Header::parse(&head).map_err(format)?;
        let tail_at = end_of_chunks(&header).min(header.frame_len);
        let mut tail = Vec::new();
        file.seek(SeekFrom::Start(tail_at)).map_err(io)?;
        file.take(header.frame_len - tail_at).read_to_end(&mut tail).map_err(io)?;
        Ok(Saved { path, head, tail_at, tail })
    }

    /// A filter that the header names and that this build does not have.
    pub(crate) fn unknown_filter(&self) -> Option<Filter> {
        let filters = self.header.filters.iter().zip(&self.header.filters_meta);
        let mut filters = filters.filter_map(|(&code, &meta)| Filter::from_code(code, meta));
        filters.find(|filter| !filter::is_available(filter.code()))
    }
}

/// The file with the header and the index of a frame.
fn index_file(path: &Path, directory: bool) -> PathBuf {
    if directory { path.join(INDEX_FILE) } else { path.to_owned() }
}

/// Where the index starts in that file: after the header, and the chunks if they are there.
fn end_of_chunks(header: &Header) -> u64 {
    let chunks = if header.layout == Layout::Directory { 0 } else { header.cbytes };
    u64::from(header.header_len).saturating_add(chunks)
}

/// What a frame's file holds besides its chunks.
pub(crate) struct Saved {
    path: PathBuf,
    head: Vec<u8>,
    tail_at: u64,
    tail: Vec<u8>,
}

impl Saved {
    /// Puts it back, after a change that has failed.
    pub(crate) fn restore(&self) -> Result<()> {
        use std::io::Write;

        let io = |error| Error::from_io("put a frame back", &self.path, error);
        let mut file = File::options().write(true).open(&self.path).map_err(io)?;
        file.seek(SeekFrom::Start(self.tail_at)).map_err(io)?;
        file.write_all(&self.tail).map_err(io)?;
        file.set_len(self.tail_at + self.tail.len() as u64).map_err(io)?;
        file.rewind().and_then(|()| file.write_all(&self.head)).map_err(io)
    }
}

/// Sees that the files of a directory are files: C would wait for ever for a pipe.
fn check_chunk_files(path: &Path) -> Result<()> {
    let io = |error| Error::from_io("open a frame", path, error);
    for entry in fs::read_dir(path).map_err(io)? {
        let file = entry.map_err(io)?.path();
        if file.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir()) {
            let detail = format!("`{}` in it is no file", file.display());
            return Err(Error::new(ErrorKind::InvalidData, "open a frame", detail).at(path));
        }
    }
    Ok(())
}

/// Checks the header of the index, the chunk of the other chunks' positions, which C takes as it is.
fn check_index(header: &Header, file: &mut File) -> Result<()> {
    let doing = "open a frame";
    let invalid = |detail: String| Error::new(ErrorKind::InvalidData, doing, detail);
    if header.nbytes == 0 {
        return Ok(()); // Without chunks there is no index.
    }
    let at = end_of_chunks(header);
    if at > header.frame_len {
        return Err(invalid(format!("its index starts at byte {at}, behind its end")));
    }
    let mut start = Vec::with_capacity(chunk::EXTENDED_HEADER_LEN);
    let io = |error| Error::new(ErrorKind::Io, doing, error);
    file.seek(SeekFrom::Start(at)).map_err(io)?;
    let header_len = chunk::EXTENDED_HEADER_LEN as u64;
    file.by_ref().take(header_len).read_to_end(&mut start).map_err(io)?;
    let index = chunk::Header::parse(&start).map_err(|error| Error::from_format(doing, error))?;
    let nchunks =
        header.chunksize.filter(|&size| size > 0).map(|size| header.nbytes.div_ceil(size.into()));
    let positions = u64::from(index.nbytes) / 8;
    let sound = index.typesize == 8
        && index.nbytes % 8 == 0
        && nchunks.is_none_or(|nchunks| nchunks == positions)
        && !index.lazy
        && !index.variable_blocks
        && !index.instrumented
        && !matches!(index.special, Some(Special::Nan | Special::Uninit))
        && index.filters.iter().all(|&code| code == 0 || code == Filter::Shuffle.code())
        && at.saturating_add(index.cbytes.into()) <= header.frame_len;
    if !sound {
        return Err(invalid(format!("its index, at byte {at}, is broken")));
    }
    if !sys::HARDENED && nchunks.is_none() {
        // For a chunk without data, an installed library divides by the chunk size, which is 0.
        file.seek(SeekFrom::Start(at)).map_err(io)?;
        let mut bytes = Vec::new();
        file.take(index.cbytes.into()).read_to_end(&mut bytes).map_err(io)?;
        if crate::decompress::<i64>(&bytes)?.iter().any(|&position| position < 0) {
            let detail = "an installed C-Blosc2 cannot read chunks without data among chunks of \
                          different lengths";
            return Err(Error::new(ErrorKind::Unsupported, doing, detail));
        }
    }
    Ok(())
}

/// Makes a file at `path` that `write` fills under a temporary name beside it. It gets its own name
/// when it is complete; what is at `path` already is left alone.
pub(crate) fn create(path: &Path, write: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let doing = "make a file";
    let io = |error| Error::from_io(doing, path, error);
    let Some(name) = path.file_name() else {
        let detail = format!("`{}` names no file", path.display());
        return Err(Error::new(ErrorKind::InvalidArgument, doing, detail));
    };
    if path.symlink_metadata().is_ok() {
        let detail = "there is something of that name already";
        return Err(Error::new(ErrorKind::AlreadyExists, doing, detail).at(path));
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::metadata(parent).map_err(io)?;
    // A folder of its own, so that C finds no file of the temporary name.
    let folder = tempfile::Builder::new().prefix(".blosc2-").tempdir_in(parent).map_err(io)?;
    let temporary = folder.path().join(name);
    write(&temporary).map_err(|error| error.at(path))?;
    File::open(&temporary).and_then(|file| file.sync_all()).map_err(io)?;
    tempfile::TempPath::try_from_path(&temporary)
        .map_err(io)?
        .persist_noclobber(path)
        .map_err(|error| io(error.error))
}

/// A path in the form that C takes: absolute.
pub(crate) fn c_path(path: &Path) -> Result<CString> {
    let doing = "use a path";
    let invalid = |detail: &str| {
        let detail = format!("`{}` {detail}", path.display());
        Error::new(ErrorKind::InvalidArgument, doing, detail)
    };
    if path.as_os_str().is_empty() {
        return Err(invalid("is empty"));
    }
    // The folder of the program may change, and C takes `file:///` off the start of a path.
    let path = std::path::absolute(path)
        .map_err(|error| Error::from_io("find the folder of the program", path, error))?;
    #[cfg(unix)]
    let bytes = std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str());
    #[cfg(not(unix))]
    let bytes = path.to_str().ok_or_else(|| invalid("is not Unicode"))?.as_bytes();
    CString::new(bytes).map_err(|_| invalid("holds a NUL character"))
}
