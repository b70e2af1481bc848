//! Errors and their kinds.

use std::convert::Infallible;
use std::error::Error as StdError;
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use blosc2_format::frame::journal;
use blosc2_format::{Finding, Part};
use blosc2_sys as sys;

/// The operation in the errors of a decompression that does not know the index of its chunk.
pub(crate) const DECOMPRESS: &str = "decompress a chunk";

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an [`Error`].
///
/// ```
/// use blosc2::{ErrorKind, SChunk};
///
/// let found = match SChunk::open("missing.b2frame") {
///     Err(error) if error.kind() == ErrorKind::NotFound => None,
///     opened => Some(opened?),
/// };
/// assert!(found.is_none());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A parameter is invalid, or parameters contradict each other.
    InvalidArgument,
    /// An index or a range is outside the data.
    OutOfBounds,
    /// The requested item type differs from the stored item type; or the data cannot be viewed as items of the
    /// requested type or converted to this type.
    TypeMismatch,
    /// This build does not have the codec, the filter or the feature; or this crate does not support the operation for
    /// this kind of file, chunk or data.
    Unsupported,
    /// The bytes do not follow the format, do not decode to the size that they declare, or differ from their checksum;
    /// or an earlier change of the file failed and could not be rolled back.
    InvalidData,
    /// A frame is in the middle of a change: its writer was stopped, or is still writing. See
    /// [crash recovery](crate::OpenOptions#crash-recovery).
    Unfinished,
    /// The size exceeds a limit of the format, a default limit, or a limit that the program has set.
    TooLarge,
    /// The buffer of the caller is too small for the result.
    BufferTooSmall,
    /// The file, or the requested entry or column, does not exist; or the file was replaced or removed after it was
    /// opened.
    NotFound,
    /// The path already exists and is not overwritten; or the code, the id or the name of a user-defined codec,
    /// filter or tuner is already registered.
    AlreadyExists,
    /// The operation changes a file or storage that was opened only for reading; or the operation changes or removes
    /// existing data of a file or storage that was opened for appending.
    ReadOnly,
    /// Another handle or program prevents this access to the file, or the access could deadlock with a closure that
    /// the program has passed to this crate. See
    /// [access to a file](crate::OpenOptions#access-to-a-file-by-several-handles).
    Busy,
    /// The operating system, a custom storage backend, a reader or a writer returned an error.
    Io,
    /// There is not enough memory.
    OutOfMemory,
    /// Code of the program failed, panicked or violated its contract: a [user-defined](crate::user_defined) codec,
    /// filter or tuner, a prefilter, a postfilter or another closure. If the code returned an error, [`Error::get_ref`]
    /// returns this error. For a [custom storage](crate::storage) backend: the backend panicked or violated its
    /// contract.
    Callback,
    /// The C library failed for another reason; see [`Error::code`].
    Library,
}

/// The limit that an error of the kind [`ErrorKind::TooLarge`] is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`OpenOptions::max_read`](crate::OpenOptions::max_read), or its default.
    MaxRead,
    /// A field of [`Limits`](crate::Limits).
    Opening(blosc2_format::Limit),
}

/// An exceeded limit; see [`Error::exceeded`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exceeded {
    /// The limit.
    pub limit: Limit,
    /// The required amount, in bytes or in the unit of the field of [`Limits`](crate::Limits).
    pub amount: u64,
    /// The allowed amount.
    pub max: u64,
}

/// Advice in the message of an [`Error`]. `Display` writes the text of the advice, which names functions of this crate.
///
/// A program whose users do not call this crate, such as a command, can replace these texts by its own. Besides these
/// texts, only those of [`blosc2_format::Limit`] name functions or fields that a user could change.
///
/// ```
/// use blosc2::{Advice, ErrorKind, NDArray, OpenOptions};
///
/// let bytes = NDArray::builder().zeros::<u8>([1000])?.schunk().to_cframe()?;
/// let array = NDArray::from_schunk(OpenOptions::new().max_read(10).open(bytes)?)?;
/// let error = array.read::<Vec<u8>>(..).unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::TooLarge);
/// assert_eq!(error.exceeded().unwrap().max, 10);
/// let message = error.to_string().replace(&Advice::RaiseMaxRead.to_string(), "try `--max-memory`");
/// assert!(message.ends_with("the limit is 10: try `--max-memory`"), "{message}");
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Advice {
    /// A result takes more memory than [`OpenOptions::max_read`](crate::OpenOptions::max_read) allows.
    RaiseMaxRead,
    /// The writer of a frame was stopped: roll its change back.
    Recover,
    /// A change failed and could not be rolled back.
    RecoverFailed,
    /// The bytes that a stopped writer has overwritten are lost.
    Repair,
    /// The stored items of an array are not its content.
    OpenStoredItems,
    /// A damaged file has a lock file, but this program does not lock the file.
    Lock,
}

impl Advice {
    /// All advice.
    pub const ALL: [Self; 6] = [
        Self::RaiseMaxRead,
        Self::Recover,
        Self::RecoverFailed,
        Self::Repair,
        Self::OpenStoredItems,
        Self::Lock,
    ];
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::RaiseMaxRead => {
                "raise it with `OpenOptions::max_read`, or read into a buffer that you provide"
            }
            Self::Recover => {
                "unless a program is still writing it, roll the change back: open it for writing with \
                 `OpenOptions::locking` or `OpenOptions::recover`, or call `blosc2::repair::repair` (the command \
                 `blosc2 repair`)"
            }
            Self::Repair => {
                "`blosc2::repair::repair` (the command `blosc2 repair`) saves the intact chunks"
            }
            Self::OpenStoredItems => "`array::from_python_object` opens the stored items",
            Self::RecoverFailed => "open it with `OpenOptions::recover`, or repair the file",
            Self::Lock => {
                "another program may be changing it: open it with `OpenOptions::locking`"
            }
        })
    }
}

/// The error type of this crate. The message states the failed operation, the path if there is one, and a detail, such
/// as the expected and the found values.
///
/// `Display` writes the message as one line. `Debug` writes the kind and the message; a `main` function that returns a
/// [`Result`] prints this form.
///
/// The message includes the message of the cause; [`get_ref`](Self::get_ref) returns the cause.
/// [`source`](StdError::source) skips the cause, and returns the source of the cause. Therefore an error report prints
/// no message twice.
///
/// ```
/// use blosc2::{ErrorKind, SChunk};
///
/// let error = SChunk::open("missing.b2frame").unwrap_err();
/// assert_eq!(error.kind(), ErrorKind::NotFound);
/// assert!(error.to_string().starts_with("cannot open a frame (missing.b2frame): "), "{error}");
/// assert!(format!("{error:?}").starts_with("NotFound: cannot open"), "{error:?}");
/// assert!(error.get_ref().unwrap().is::<std::io::Error>());
/// ```
pub struct Error(Box<Repr>);

struct Repr {
    kind: ErrorKind,
    doing: String,
    path: Option<PathBuf>,
    detail: String,
    code: Option<i32>,
    exceeded: Option<Exceeded>,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

impl Error {
    /// Creates an error, for crates that build on this crate. The message is "cannot `doing`: `detail`". `doing` names
    /// the operation; `detail` states what was expected and what was found.
    ///
    /// ```
    /// use blosc2::{Error, ErrorKind};
    ///
    /// let error = Error::new(ErrorKind::InvalidData, "open a group", "there is no `zarr.json`");
    /// assert_eq!(error.at("data.zarr").to_string(), "cannot open a group (data.zarr): there is no `zarr.json`");
    /// ```
    pub fn new(kind: ErrorKind, doing: impl Into<String>, detail: impl ToString) -> Self {
        Self(Box::new(Repr {
            kind,
            doing: doing.into(),
            path: None,
            detail: detail.to_string(),
            code: None,
            exceeded: None,
            source: None,
        }))
    }

    /// Creates an error from an I/O error, for crates that build on this crate. The I/O error comes from the operating
    /// system, or from an implementation of `Read`, `Write` or [`Storage`](crate::storage::Storage). `doing` names the
    /// operation, as in [`new`](Self::new).
    pub fn of_io(doing: impl Into<String>, source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::NotFound => ErrorKind::NotFound,
            io::ErrorKind::AlreadyExists => ErrorKind::AlreadyExists,
            io::ErrorKind::OutOfMemory => ErrorKind::OutOfMemory,
            // An error of this crate, from a storage.
            _ => match source.get_ref().and_then(|inner| inner.downcast_ref::<Self>()) {
                Some(inner) => inner.kind(),
                None => ErrorKind::Io,
            },
        };
        let mut error = Self::new(kind, doing, &source);
        error.0.source = Some(Box::new(source));
        error
    }

    /// Adds the part that the error is about to the detail of the message.
    pub(crate) fn in_part(self, part: impl fmt::Display) -> Self {
        let detail = format!("{part}: {}", self.0.detail);
        self.with_detail(detail)
    }

    pub(crate) fn with_doing(mut self, doing: String) -> Self {
        self.0.doing = doing;
        self
    }

    /// Adds the index of the chunk to the error of a decompression, which does not know this index.
    pub(crate) fn in_chunk(self, index: usize) -> Self {
        match self.0.doing == DECOMPRESS {
            true => self.with_doing(format!("decompress chunk {index}")),
            false => self,
        }
    }

    fn with_detail(mut self, detail: String) -> Self {
        self.0.detail = detail;
        self
    }

    /// If another program locks the file, but this program does not, adds to the message that the other program may
    /// cause the fault.
    pub(crate) fn not_locked(self, is_locked: impl FnOnce() -> bool) -> Self {
        let is_cut = |source: &io::Error| source.kind() == io::ErrorKind::UnexpectedEof;
        let source = self.0.source.as_ref().and_then(|source| source.downcast_ref());
        let may_be = matches!(self.0.kind, ErrorKind::InvalidData | ErrorKind::Unfinished)
            || source.is_some_and(is_cut);
        let advice = Advice::Lock.to_string();
        if !may_be || self.0.detail.ends_with(&advice) || !is_locked() {
            return self;
        }
        let detail = format!("{}; {advice}", self.0.detail);
        self.with_detail(detail)
    }

    /// Sets the path of the file or directory that the error is about. A path that is already set is not replaced.
    pub fn at(mut self, path: impl AsRef<Path>) -> Self {
        self.0.path.get_or_insert_with(|| path.as_ref().to_owned());
        self
    }

    /// Returns the kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Returns the path of the file or directory that the error is about, if there is one.
    pub fn path(&self) -> Option<&Path> {
        self.0.path.as_deref()
    }

    /// Returns the cause, if there is one: an error of the operating system, of the format, or of user code. The
    /// message of this error includes the message of the cause.
    pub fn get_ref(&self) -> Option<&(dyn StdError + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// Returns the limit that was exceeded, if one of the limits that a program can set was exceeded. The
    /// [kind](Self::kind) of the error is then [`ErrorKind::TooLarge`].
    pub fn exceeded(&self) -> Option<Exceeded> {
        self.0.exceeded
    }

    /// Returns the error code of C-Blosc2, if the C library reported the error.
    /// [`error_text`](crate::library::error_text) returns its text.
    pub fn code(&self) -> Option<i32> {
        self.0.code
    }
}

/// An error without its operation: what was expected and what was found. Private functions return it; the public
/// function states the operation once, with [`Doing::doing`].
#[derive(Debug)]
pub struct Reason(Error);

impl Reason {
    pub(crate) fn new(kind: ErrorKind, detail: impl ToString) -> Self {
        Self(Error::new(kind, "", detail))
    }

    /// Creates the reason of an error code of C.
    pub(crate) fn from_code(code: i32) -> Self {
        let detail = format!("C-Blosc2 failed with \"{}\" (code {code})", error_text(code));
        let mut reason = Self::new(kind_of_code(code), detail);
        reason.0.0.code = Some(code);
        reason
    }

    /// Creates the reason of the failure of a closure. `detail` states the closure and its error or panic message.
    pub(crate) fn from_closure(
        detail: String,
        source: Option<Box<dyn StdError + Send + Sync>>,
    ) -> Self {
        let mut reason = Self::new(ErrorKind::Callback, detail);
        reason.0.0.source = source;
        reason
    }

    /// Creates the reason from the first fault that a check has found. The message is the same as in an error of a
    /// read.
    pub(crate) fn from_finding(finding: &Finding) -> Self {
        let reason = Self::from(blosc2_format::FormatError::from(finding.clone()));
        match &finding.part {
            part @ (Part::Chunk(_) | Part::Metalayer(_) | Part::VlMetalayer(_)) => {
                Self(reason.0.in_part(part))
            }
            _ => reason,
        }
    }

    /// Creates the reason of a read whose result needs `amount` bytes, and may have `max` bytes.
    pub(crate) fn over_max_read(amount: u64, max: u64) -> Self {
        let advice = Advice::RaiseMaxRead;
        let detail = format!("it takes {amount} bytes of memory, the limit is {max}: {advice}");
        let mut reason = Self::new(ErrorKind::TooLarge, detail);
        reason.0.0.exceeded = Some(Exceeded { limit: Limit::MaxRead, amount, max });
        reason
    }

    pub(crate) fn kind(&self) -> ErrorKind {
        self.0.kind()
    }

    pub(crate) fn with_detail(self, detail: String) -> Self {
        Self(self.0.with_detail(detail))
    }

    /// Sets the path; see [`Error::at`].
    pub(crate) fn at(self, path: &Path) -> Self {
        Self(self.0.at(path))
    }

    /// States the operation, unless the error comes from an operation that has stated its own.
    pub(crate) fn doing(mut self, doing: impl Into<String>) -> Error {
        if self.0.0.doing.is_empty() {
            self.0.0.doing = doing.into();
        }
        self.0
    }
}

/// An error that has its operation keeps it.
impl From<Error> for Reason {
    fn from(error: Error) -> Self {
        Self(error)
    }
}

impl From<io::Error> for Reason {
    fn from(error: io::Error) -> Self {
        Self(Error::of_io("", error))
    }
}

impl From<blosc2_format::FormatError> for Reason {
    fn from(source: blosc2_format::FormatError) -> Self {
        let mut reason = match journal::is_unfinished(&source) {
            true => Self::new(ErrorKind::Unfinished, format_args!("{source}; {}", Advice::Recover)),
            false => Self::new(ErrorKind::InvalidData, &source),
        };
        reason.0.0.source = Some(Box::new(source));
        reason
    }
}

/// For an error of reading or writing a frame.
impl From<blosc2_format::Error> for Reason {
    fn from(source: blosc2_format::Error) -> Self {
        use blosc2_format::Error as Format;
        let kind = match source {
            Format::Format(source) => return source.into(),
            Format::Io(source) => return source.into(),
            Format::Unsupported(_) => ErrorKind::Unsupported,
            Format::Limit { .. } => ErrorKind::TooLarge,
            Format::Argument(_) => ErrorKind::InvalidArgument,
            _ => ErrorKind::Library,
        };
        let mut reason = Self::new(kind, &source);
        if let Format::Limit { limit: Some(limit), amount, max, .. } = source {
            reason.0.0.exceeded = Some(Exceeded { limit: Limit::Opening(limit), amount, max });
        }
        reason.0.0.source = Some(Box::new(source));
        reason
    }
}

/// States the operation of a result.
pub(crate) trait Doing<T> {
    fn doing(self, doing: impl Into<String>) -> Result<T>;
}

impl<T, E: Into<Reason>> Doing<T> for Result<T, E> {
    #[inline]
    fn doing(self, doing: impl Into<String>) -> Result<T> {
        self.map_err(|error| error.into().doing(doing))
    }
}

/// An [`Error`] or a [`Reason`].
pub(crate) trait AnyError {
    fn map(self, change: impl FnOnce(Error) -> Error) -> Self;
}

impl AnyError for Error {
    fn map(self, change: impl FnOnce(Self) -> Self) -> Self {
        change(self)
    }
}

impl AnyError for Reason {
    fn map(self, change: impl FnOnce(Error) -> Error) -> Self {
        Self(change(self.0))
    }
}

/// Writes the kind and the message.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.0.kind)
    }
}

/// For conversions that cannot fail, such as that of a `&Chunk` to a [`ChunkRef`](crate::ChunkRef).
impl From<Infallible> for Error {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// For the conversions of a [`Value`](crate::Value).
#[cfg(feature = "msgpack")]
impl From<blosc2_format::value::ValueError> for Error {
    fn from(error: blosc2_format::value::ValueError) -> Self {
        use blosc2_format::value::ValueErrorKind;
        let kind = match error.kind {
            ValueErrorKind::TooLarge => {
                let detail =
                    format!("{} for the limit of reads: {}", error.detail, Advice::RaiseMaxRead);
                return Self::new(ErrorKind::TooLarge, error.doing, detail);
            }
            ValueErrorKind::InvalidArgument => ErrorKind::InvalidArgument,
            ValueErrorKind::TypeMismatch => ErrorKind::TypeMismatch,
            _ => ErrorKind::InvalidData,
        };
        Self::new(kind, error.doing, error.detail)
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

/// Wraps the error in an [`io::Error`] with the matching kind, for `std::io` traits. Converting it back to [`Error`]
/// returns the original error.
impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        let source = error.0.source.as_ref().and_then(|source| source.downcast_ref::<Self>());
        let kind = match error.kind() {
            ErrorKind::Io => source.map_or(io::ErrorKind::Other, Self::kind),
            ErrorKind::InvalidArgument
            | ErrorKind::OutOfBounds
            | ErrorKind::TypeMismatch
            | ErrorKind::BufferTooSmall => io::ErrorKind::InvalidInput,
            ErrorKind::Unsupported => io::ErrorKind::Unsupported,
            ErrorKind::InvalidData | ErrorKind::Unfinished => io::ErrorKind::InvalidData,
            ErrorKind::TooLarge => io::ErrorKind::FileTooLarge,
            ErrorKind::NotFound => io::ErrorKind::NotFound,
            ErrorKind::AlreadyExists => io::ErrorKind::AlreadyExists,
            ErrorKind::ReadOnly => io::ErrorKind::PermissionDenied,
            ErrorKind::Busy => io::ErrorKind::ResourceBusy,
            ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
            ErrorKind::Callback | ErrorKind::Library => io::ErrorKind::Other,
        };
        Self::new(kind, error)
    }
}

/// Converts an [`io::Error`], for example an error that the `std::io` traits of [`SChunkReader`](crate::SChunkReader) and
/// [`SChunkWriter`](crate::SChunkWriter) return. If the [`io::Error`] wraps an error of this crate, returns the wrapped
/// error unchanged.
impl From<io::Error> for Error {
    fn from(error: io::Error) -> Self {
        match error.downcast::<Self>() {
            Ok(error) => error,
            Err(error) => Self::of_io("read or write", error),
        }
    }
}

/// Returns the text of an error code of C-Blosc2, for example of a code that [`Error::code`] returned. C:
/// `blosc2_error_string`.
///
/// For an unknown code, returns `Unknown error`.
///
/// ```
/// assert_eq!(blosc2::library::error_text(-5), "Not enough space to read");
/// assert_eq!(blosc2::library::error_text(-12345), "Unknown error");
/// ```
pub fn error_text(code: i32) -> &'static str {
    // SAFETY: the function accepts any code and returns a constant string that ends in a NUL byte (blosc2.c,
    // blosc2_error_string).
    let text = unsafe { CStr::from_ptr(sys::blosc2_error_string(code)) };
    text.to_str().unwrap_or("unknown")
}

fn kind_of_code(code: i32) -> ErrorKind {
    match code {
        sys::BLOSC2_ERROR_MEMORY_ALLOC => ErrorKind::OutOfMemory,
        sys::BLOSC2_ERROR_CODEC_SUPPORT | sys::BLOSC2_ERROR_VERSION_SUPPORT => {
            ErrorKind::Unsupported
        }
        sys::BLOSC2_ERROR_DATA
        | sys::BLOSC2_ERROR_STREAM
        | sys::BLOSC2_ERROR_READ_BUFFER
        | sys::BLOSC2_ERROR_INVALID_HEADER
        | sys::BLOSC2_ERROR_RUN_LENGTH
        | sys::BLOSC2_ERROR_CODEC_DICT
        | sys::BLOSC2_ERROR_FRAME_TYPE => ErrorKind::InvalidData,
        sys::BLOSC2_ERROR_FILE_READ
        | sys::BLOSC2_ERROR_FILE_WRITE
        | sys::BLOSC2_ERROR_FILE_OPEN
        | sys::BLOSC2_ERROR_FILE_TRUNCATE
        | sys::BLOSC2_ERROR_FILE_REMOVE
        | sys::BLOSC2_ERROR_PLUGIN_IO
        | sys::BLOSC2_ERROR_LOCK => ErrorKind::Io,
        sys::BLOSC2_ERROR_2GB_LIMIT | sys::BLOSC2_ERROR_MAX_BUFSIZE_EXCEEDED => ErrorKind::TooLarge,
        sys::BLOSC2_ERROR_CODEC_PARAM => ErrorKind::InvalidArgument,
        _ => ErrorKind::Library,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_say_what_to_what_and_why() {
        let error = Error::new(ErrorKind::InvalidData, "open the array", "no dtype");
        assert_eq!(error.to_string(), "cannot open the array: no dtype");
        let error = error.at(Path::new("a.b2nd")).at(Path::new("b.b2nd"));
        assert_eq!(error.to_string(), "cannot open the array (a.b2nd): no dtype");
        assert_eq!(error.path(), Some(Path::new("a.b2nd")));
    }

    #[test]
    fn the_operation_that_is_stated_first_stays() {
        let inner = Reason::new(ErrorKind::InvalidData, "no frame").doing("read a chunk");
        let outer: Result<()> = Err(Reason::from(inner)).doing("copy a frame");
        assert_eq!(outer.unwrap_err().to_string(), "cannot read a chunk: no frame");
    }

    #[test]
    fn errors_go_through_those_of_std_io() {
        let bad = Error::new(ErrorKind::InvalidData, "read", "no frame").at(Path::new("a"));
        let inside = io::Error::from(bad);
        assert_eq!(inside.kind(), io::ErrorKind::InvalidData);
        assert_eq!(inside.to_string(), "cannot read (a): no frame");
        let out = Error::from(inside);
        assert_eq!((out.kind(), out.path()), (ErrorKind::InvalidData, Some(Path::new("a"))));

        let full = Error::from(io::Error::from(io::ErrorKind::StorageFull));
        assert_eq!(full.kind(), ErrorKind::Io);
        assert!(full.to_string().starts_with("cannot read or write: "), "{full}");
        assert_eq!(io::Error::from(full).kind(), io::ErrorKind::StorageFull);
    }

    #[test]
    fn errors_of_decompression_name_the_chunk() {
        use crate::{CParams, Codec, SChunk};

        let mut schunk = SChunk::in_memory::<u32>(CParams::new().codec(Codec::Lz4)).unwrap();
        // The same bytes in both byte orders, so that the first stream is never a run.
        let items: Vec<u32> = (0..1000).map(|i| (i % 251) * 0x0101_0101).collect();
        for _ in 0..4 {
            schunk.append(&items).unwrap();
        }
        let mut frame = schunk.to_cframe().unwrap();
        let schunk = SChunk::open(frame.clone()).unwrap();
        let offset = schunk.offsets().unwrap()[2].unwrap() as usize;
        let header_len = u32::from_be_bytes(frame[11..15].try_into().unwrap()) as usize;
        // Opening checks the starts of the blocks and the lengths of the streams, but does not decode the streams.
        // Before the first stream are the header of the chunk, the start of its block, and the length of the stream.
        frame[header_len + offset + 32 + 4 + 4..][..20].fill(0xff);
        let schunk = SChunk::open(frame).unwrap();
        schunk.decompress_chunk::<u32>(1).unwrap();
        for error in [
            schunk.decompress_chunk::<u32>(2).unwrap_err(),
            // A few items would be decompressed without the rest of the block.
            schunk.read::<u32>(2100..2900).unwrap_err(),
        ] {
            assert_eq!(error.kind(), ErrorKind::InvalidData);
            assert!(error.to_string().starts_with("cannot decompress chunk 2: "), "{error}");
        }
    }

    #[test]
    fn codes_of_c_keep_their_number_and_text() {
        let error = Reason::from_code(sys::BLOSC2_ERROR_READ_BUFFER).doing("decompress");
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        assert_eq!(error.code(), Some(-5));
        assert!(error.to_string().contains("(code -5)"), "{error}");
        assert_eq!(Reason::from_code(-12345).kind(), ErrorKind::Library);
    }
}
