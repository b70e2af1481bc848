//! Opening super-chunks: sources, targets and limits.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use blosc2_format::ReadAt;
use blosc2_format::directory::{self, Disk, Folder};
use blosc2_format::frame::Frame;

use super::schunk::OPEN;
use super::source::{ReadOnly, Source};
use super::{Error, Limits, Result, SChunk};

/// The compression parameters of a new super-chunk. This build creates none.
#[derive(Debug, Clone, PartialEq)]
pub enum CParams {}

fn shared(source: impl ReadAt + Send + Sync + 'static) -> Source {
    ReadOnly::new(Arc::new(source))
}

type Opener = dyn FnOnce(&Limits) -> Result<Frame<Source>, blosc2_format::Error> + Send;

fn frame_in(source: impl ReadAt + Send + Sync + 'static) -> Box<Opener> {
    Box::new(move |limits| Frame::open(shared(source), limits))
}

fn frame_of<F: Folder<File: Send + Sync + 'static> + 'static>(folder: F) -> Box<Opener> {
    Box::new(move |limits| Frame::open_directory(Shared(folder), limits))
}

/// What a super-chunk is opened from: a path, a frame in memory, a source of bytes or a directory.
pub struct Target {
    /// `None` for a path.
    open: Option<Box<Opener>>,
    path: Option<PathBuf>,
}

impl std::fmt::Debug for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Target").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Target {
    /// A frame in a source of bytes.
    pub fn storage(source: impl ReadAt + Send + Sync + 'static) -> Self {
        Self { open: Some(frame_in(source)), path: None }
    }

    /// A frame in an open file, with the path for errors.
    pub fn file(file: File, path: impl AsRef<Path>) -> Self {
        Self { open: Some(frame_in(file)), path: Some(path.as_ref().to_owned()) }
    }

    /// A sparse frame in a directory.
    pub fn folder<F: Folder<File: Send + Sync + 'static> + 'static>(folder: F) -> Self {
        Self { open: Some(frame_of(folder)), path: None }
    }
}

impl From<Vec<u8>> for Target {
    fn from(frame: Vec<u8>) -> Self {
        Self::storage(frame)
    }
}

macro_rules! from_paths {
    ($($type:ty),*) => {
        $(impl From<$type> for Target {
            fn from(path: $type) -> Self {
                Self { open: None, path: Some(PathBuf::from(path)) }
            }
        })*
    };
}

from_paths!(&str, String, &Path, &PathBuf, PathBuf);

/// A directory whose files have one type.
#[derive(Debug)]
struct Shared<F>(F);

impl<F: Folder<File: Send + Sync + 'static>> Folder for Shared<F> {
    type File = Source;

    fn open(&self, name: &str) -> io::Result<Source> {
        Ok(shared(self.0.open(name)?))
    }

    fn names(&self) -> io::Result<Vec<String>> {
        self.0.names()
    }

    fn version(&self, name: &str) -> io::Result<Option<String>> {
        self.0.version(name)
    }

    fn request_cost(&self) -> u64 {
        self.0.request_cost()
    }
}

/// Options for opening a super-chunk for reading.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    limits: Limits,
    max_read: Option<u64>,
}

impl OpenOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits for untrusted input.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets the maximum memory of the result of a read, in bytes. Default: [`default_max_read`].
    pub fn max_read(mut self, max: u64) -> Self {
        self.max_read = Some(max);
        self
    }

    /// Opens a super-chunk.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(&self, target: impl Into<Target>) -> Result<SChunk> {
        let Target { open, path } = target.into();
        let at = |error: Error| match &path {
            Some(path) => error.at(path),
            None => error,
        };
        let open = open.map_or_else(|| at_path(path.as_deref().unwrap_or(Path::new(""))), Ok)?;
        let frame = open(&self.limits).map_err(|error| Error::from_frame(OPEN, error));
        let opened =
            frame.and_then(|frame| SChunk::new(frame, self.limits, self.max_read, path.clone()));
        opened.map_err(at)
    }
}

fn at_path(path: &Path) -> Result<Box<Opener>> {
    let io = |error| Error::of_io(OPEN, error).at(path);
    if path.join(directory::INDEX).exists() {
        return Ok(frame_of(Disk(path.to_owned())));
    }
    // Opening a pipe would block.
    if !std::fs::metadata(path).map_err(io)?.is_file() {
        let error = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
        return Err(io(error));
    }
    Ok(frame_in(File::open(path).map_err(io)?))
}

impl SChunk {
    /// Opens a super-chunk.
    ///
    /// # Errors
    /// Fails with the errors of [opening a container](crate#opening-a-container).
    pub fn open(target: impl Into<super::Target>) -> Result<Self> {
        OpenOptions::new().open(target)
    }
}
