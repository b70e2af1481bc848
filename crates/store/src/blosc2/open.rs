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

/// What a super-chunk is opened from: a path, a frame in memory, a source of bytes or a directory.
#[derive(Debug)]
pub struct Target {
    place: Place,
    path: Option<PathBuf>,
}

#[derive(Debug)]
enum Place {
    Path(PathBuf),
    Source(Source),
    Folder(Sources),
}

impl Target {
    /// A frame in a source of bytes.
    pub fn storage(source: impl ReadAt + Send + Sync + 'static) -> Self {
        Self { place: Place::Source(shared(source)), path: None }
    }

    /// A frame in an open file, with the path for errors.
    pub fn file(file: File, path: impl AsRef<Path>) -> Self {
        Self { place: Place::Source(shared(file)), path: Some(path.as_ref().to_owned()) }
    }

    /// A sparse frame in a directory.
    pub fn folder<F: Folder<File: Send + Sync + 'static> + 'static>(folder: F) -> Self {
        Self { place: Place::Folder(Sources::new(folder)), path: None }
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
                Self { place: Place::Path(PathBuf::from(path)), path: None }
            }
        })*
    };
}

from_paths!(&str, String, &Path, &PathBuf, PathBuf);

/// A directory whose files have one type.
#[derive(Debug)]
struct Sources(Box<dyn Folder<File = Source>>);

impl Sources {
    fn new<F: Folder<File: Send + Sync + 'static> + 'static>(folder: F) -> Self {
        Self(Box::new(Shared(folder)))
    }
}

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

impl Folder for Sources {
    type File = Source;

    fn open(&self, name: &str) -> io::Result<Source> {
        self.0.open(name)
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
        let Target { place, path } = target.into();
        let (place, path) = match place {
            Place::Path(path) => (self.at_path(&path)?, Some(path)),
            place => (place, path),
        };
        let frame = match place {
            Place::Source(source) => Frame::open(source, &self.limits),
            Place::Folder(folder) => Frame::open_directory(folder, &self.limits),
            Place::Path(_) => unreachable!("it was opened before"),
        };
        let opened = frame.map_err(|error| Error::from_frame(OPEN, error));
        let opened =
            opened.and_then(|frame| SChunk::new(frame, self.limits, self.max_read, path.clone()));
        opened.map_err(|error| match &path {
            Some(path) => error.at(path),
            None => error,
        })
    }

    fn at_path(&self, path: &Path) -> Result<Place> {
        let io = |error| Error::of_io(OPEN, error).at(path);
        if path.join(directory::INDEX).exists() {
            return Ok(Place::Folder(Sources::new(Disk(path.to_owned()))));
        }
        // Opening a pipe would block.
        if !std::fs::metadata(path).map_err(io)?.is_file() {
            let error = io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file");
            return Err(io(error));
        }
        Ok(Place::Source(shared(File::open(path).map_err(io)?)))
    }
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
