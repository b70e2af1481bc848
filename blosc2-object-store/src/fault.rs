//! Why requests fail.

use std::error::Error as StdError;
use std::fmt;
use std::io;

use blosc2::{Error, ErrorKind};

const READ: &str = "read an object";

/// A failure that this crate describes itself. The crate `object_store` passes it on as the source of its errors.
#[derive(Debug)]
#[cfg_attr(
    not(any(feature = "aws", feature = "azure", feature = "gcp", feature = "http")),
    allow(dead_code, reason = "only the client for servers creates it")
)]
pub(crate) enum Fault {
    /// The object has no bytes, so that no range of it can be requested. With its ETag.
    Empty(Option<String>),
    /// Any other failure: what has failed, at which host.
    Other(String),
}

impl Fault {
    /// Finds the failure in the sources of an error.
    pub(crate) fn of(error: &object_store::Error) -> Option<&Self> {
        sources(error).find_map(|source| source.downcast_ref())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty(_) => "the object is empty",
            Self::Other(detail) => detail,
        })
    }
}

impl StdError for Fault {}

/// Returns an error and its sources, from the outermost to the cause.
fn sources<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns the text of the innermost source of an error.
pub(crate) fn cause(error: &(dyn StdError + 'static)) -> String {
    sources(error).last().map(ToString::to_string).unwrap_or_default()
}

/// Converts the error of a request. Its text is one line that contains the cause.
pub(crate) fn failed(error: object_store::Error) -> io::Error {
    use object_store::Error as E;
    let kind = match &error {
        E::NotFound { .. } => io::ErrorKind::NotFound,
        E::AlreadyExists { .. } => io::ErrorKind::AlreadyExists,
        E::PermissionDenied { .. } | E::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        E::Precondition { path, .. } => {
            let detail =
                format!("the object `{path}` has changed since it was opened: open it again");
            return Error::new(ErrorKind::Busy, READ, detail).into();
        }
        _ => io::ErrorKind::Other,
    };
    if let Some(fault) = Fault::of(&error) {
        return io::Error::new(kind, fault.to_string());
    }
    let (mut text, cause) = (error.to_string(), cause(&error));
    if !text.contains(&cause) {
        text = format!("{text}: {cause}");
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    io::Error::new(kind, words.join(" ").trim_end_matches(':').to_owned())
}

/// Whether an error can be that of an empty object, which has no first byte. The stores report it in different ways.
pub(crate) fn may_be_empty(error: &object_store::Error) -> bool {
    let object_store::Error::Generic { .. } = error else { return false };
    sources(error).skip(1).any(|source| {
        let text = source.to_string();
        text.contains("416") || text.contains("0 bytes long")
    })
}
