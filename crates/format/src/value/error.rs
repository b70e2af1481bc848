//! The error of conversions of values.

/// The reason why a [`Value`](super::Value) cannot be decoded, encoded or converted. The message is "cannot `doing`:
/// `detail`".
///
/// ```
/// use blosc2_format::value::{Value, ValueErrorKind};
///
/// let error = Value::from_msgpack(&[]).unwrap_err();
/// assert_eq!(error.kind, ValueErrorKind::InvalidData);
/// assert_eq!(error.to_string(), "cannot read a value: it is not msgpack: it is truncated");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot {doing}: {detail}")]
pub struct ValueError {
    /// The kind of the error.
    pub kind: ValueErrorKind,
    /// The operation that failed.
    pub doing: &'static str,
    /// What the value or its bytes are, or would be.
    pub detail: String,
}

/// The kind of a [`ValueError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ValueErrorKind {
    /// The bytes or the description that were read are invalid.
    InvalidData,
    /// The value takes more memory than the caller allows.
    TooLarge,
    /// The value cannot be encoded, or the arguments do not form a value.
    InvalidArgument,
    /// The value does not have the structure of the requested type.
    TypeMismatch,
}

/// Why a value cannot be read or written. The text completes "it is ..." or "it would be ...".
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The bytes, or the bytes that would be written, are invalid.
    Wrong(String),
    /// It contains more values than the limit allows.
    TooMany,
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Wrong(what) => f.write_str(what),
            Self::TooMany => f.write_str("of too many values"),
        }
    }
}

impl Fault {
    pub(super) fn wrong(what: impl Into<String>) -> Self {
        Self::Wrong(what.into())
    }

    /// The error of bytes or of a description that were read.
    pub(super) fn of_read(self) -> ValueError {
        let kind = match self {
            Self::Wrong(_) => ValueErrorKind::InvalidData,
            Self::TooMany => ValueErrorKind::TooLarge,
        };
        ValueError { kind, doing: "read a value", detail: format!("it is {self}") }
    }

    /// The error of a value that would be created or written.
    pub(super) fn of_write(self, doing: &'static str) -> ValueError {
        let detail = format!("it would be {self}");
        ValueError { kind: ValueErrorKind::InvalidArgument, doing, detail }
    }

    /// The error of a value that is converted to a type.
    pub(super) fn of_type(self) -> ValueError {
        ValueError { kind: ValueErrorKind::TypeMismatch, ..self.of_read() }
    }
}
