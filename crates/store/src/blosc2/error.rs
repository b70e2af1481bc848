//! Errors and their kinds.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use blosc2_format::frame::journal;
use blosc2_format::value::{ValueError, ValueErrorKind};

/// The result type of the readers.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A parameter is invalid, or parameters contradict each other.
    InvalidArgument,
    /// An index or a range is outside the data.
    OutOfBounds,
    /// The requested item type differs from the stored item type.
    TypeMismatch,
    /// This build does not have the codec, the filter or the feature.
    Unsupported,
    /// The bytes do not follow the format, do not decode to the size that they declare, or differ from their checksum.
    InvalidData,
    /// A frame is in the middle of a change: its writer was stopped, or is still writing.
    Unfinished,
    /// The size exceeds a limit of the format, a default limit, or a limit that the program has set.
    TooLarge,
    /// The file, or the requested entry or column, does not exist.
    NotFound,
    /// Another handle or program has changed the file since it was opened.
    Busy,
    /// The source of the bytes returned an error.
    Io,
    /// There is not enough memory.
    OutOfMemory,
}

/// Advice in the message of an [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// A result takes more memory than [`OpenOptions::max_read`](super::OpenOptions::max_read) allows.
    RaiseMaxRead,
    /// The writer of a frame was stopped.
    Recover,
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RaiseMaxRead => "raise the memory limit of reads",
            Self::Recover => {
                "unless a program is still writing it, roll the change back with the command `blosc2 repair`"
            }
        })
    }
}

/// The error type of the readers. The message states the failed operation, the path if there is one, and a detail, such
/// as the expected and the found values. The message includes that of the cause.
pub struct Error(Box<Repr>);

struct Repr {
    kind: ErrorKind,
    doing: String,
    path: Option<PathBuf>,
    detail: String,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error. The message is "cannot `doing`: `detail`".
    pub fn new(kind: ErrorKind, doing: impl Into<String>, detail: impl ToString) -> Self {
        let (doing, detail) = (doing.into(), detail.to_string());
        Self(Box::new(Repr { kind, doing, path: None, detail, source: None }))
    }

    /// Creates an error from an error of a source of bytes.
    pub fn of_io(doing: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            // An error of this crate, from a source.
            _ => match source.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
                Some(inner) => inner.kind(),
                None => ErrorKind::Io,
            },
        };
        Self::new(kind, doing, &source).because(source)
    }

    /// Creates an error from an error of reading a frame.
    pub(super) fn from_frame(doing: impl Into<String>, source: blosc2_format::Error) -> Self {
        use blosc2_format::Error as Format;
        let kind = match source {
            Format::Io(source) => return Self::of_io(doing, source),
            Format::Format(source) if journal::is_unfinished(&source) => {
                let detail = format!("{source}; {}", Advice::Recover);
                return Self::new(ErrorKind::Unfinished, doing, detail).because(source);
            }
            Format::Format(_) => ErrorKind::InvalidData,
            Format::Unsupported(_) => ErrorKind::Unsupported,
            Format::Limit { .. } => ErrorKind::TooLarge,
            _ => ErrorKind::InvalidArgument,
        };
        Self::new(kind, doing, &source).because(source)
    }

    /// Creates the error of a read whose result needs `amount` bytes, and may have `max` bytes.
    pub(super) fn over_max_read(doing: impl Into<String>, amount: u64, max: u64) -> Self {
        let advice = Advice::RaiseMaxRead;
        let detail = format!("it takes {amount} bytes of memory, the limit is {max}: {advice}");
        Self::new(ErrorKind::TooLarge, doing, detail)
    }

    fn because(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.0.source = Some(Box::new(source));
        self
    }

    /// Sets the path of the file that the error is about. A path that is already set is not replaced.
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().to_owned());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the path of the file that the error is about, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the cause, if there is one: an error of the source of bytes, or of the format.
    pub fn get_ref(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }
}

/// Writes the kind and the message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.0.doing)?;
        if let Some(path) = &self.0.path {
            write!(f, " ({})", path.display())?;
        }
        write!(f, ": {}", self.0.detail)
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        // The message includes the message of the cause.
        self.0.source.as_deref().and_then(StdError::source)
    }
}

impl From<ValueError> for Error {
    fn from(error: ValueError) -> Self {
        let kind = match error.kind {
            ValueErrorKind::TooLarge => {
                let advice = Advice::RaiseMaxRead;
                let detail = format!("{} for the limit of reads: {advice}", error.detail);
                return Self::new(ErrorKind::TooLarge, error.doing, detail);
            }
            ValueErrorKind::InvalidArgument => ErrorKind::InvalidArgument,
            ValueErrorKind::TypeMismatch => ErrorKind::TypeMismatch,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error.doing, error.detail)
    }
}

/// Wraps the error; converting it back returns the original error.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::InvalidArgument | ErrorKind::OutOfBounds | ErrorKind::TypeMismatch => {
                io::ErrorKind::InvalidInput
            }
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::InvalidData | ErrorKind::Unfinished => io::ErrorKind::InvalidData,
            ErrorKind::TooLarge => io::ErrorKind::FileTooLarge,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::Busy => io::ErrorKind::ResourceBusy,
            ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
            ErrorKind::Io => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) => Self::of_io("read", error),
        }
    }
}
