//! Errors: a violated format rule, an exceeded limit, an unsupported feature, an invalid argument,
//! I/O.

use crate::limits::{Limit, Limits};
use crate::report::{Finding, Rule};

/// The violation of a format rule: the field, its position, the expected value and the found value.
///
/// ```
/// use blosc2_format::chunk::Header;
///
/// let error = Header::parse(b"no chunk").unwrap_err();
/// println!("{error}");
/// assert!(error.to_string().contains("expected"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}: expected {expected}, found {found}")]
pub struct FormatError {
    /// The name of the field or section, as in `FORMATS.md`.
    pub what: &'static str,
    /// The position in bytes, from the start of the parsed bytes.
    pub offset: u64,
    /// The content that the format requires.
    pub expected: String,
    /// The content that was found.
    pub found: String,
}

impl FormatError {
    pub(crate) fn new(
        what: &'static str,
        offset: usize,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self {
            what,
            offset: offset as u64,
            expected: expected.to_string(),
            found: found.to_string(),
        }
    }

    /// Returns the error with its offset moved by `base`, the position of the parsed bytes.
    pub(crate) fn moved(mut self, base: u64) -> Self {
        self.offset = self.offset.saturating_add(base);
        self
    }

    pub(crate) fn of(
        rule: &Rule,
        offset: u64,
        expected: impl ToString,
        found: impl ToString,
    ) -> Self {
        Self { what: rule.what, offset, expected: expected.to_string(), found: found.to_string() }
    }
}

impl From<Finding> for FormatError {
    fn from(finding: Finding) -> Self {
        Self {
            what: finding.rule.what,
            offset: finding.offset,
            expected: finding.expected,
            found: finding.found,
        }
    }
}

/// The reason why bytes cannot be read, decoded or written.
///
/// ```
/// use blosc2_format::chunk::Chunk;
/// use blosc2_format::{Error, Limits};
///
/// let result = Chunk::new(b"no chunk", &Limits::default());
/// assert!(matches!(result, Err(Error::Format(_))));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes violate a rule of their format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// The bytes need a feature that this crate does not support or that this build does not
    /// include. The bytes can be valid.
    #[error("not supported: {0}")]
    Unsupported(String),
    /// Reading the bytes exceeds the [`Limits`] of the caller.
    #[error("{what}: {amount}, over the limit of {max}{}", advice(*limit))]
    Limit {
        /// The exceeded limit; `None` if the limit is fixed.
        limit: Option<Limit>,
        /// The quantity that exceeds its limit.
        what: &'static str,
        /// The required amount.
        amount: u64,
        /// The allowed amount.
        max: u64,
    },
    /// An argument of the caller is invalid: a parameter, an index, or the length of a buffer.
    #[error("{0}")]
    Argument(String),
    /// Reading from the source or writing to the destination fails.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Limits {
    /// Returns `amount` if it is at most `max`, otherwise an error that names `what`.
    pub(crate) fn allow(
        limit: Limit,
        what: &'static str,
        amount: u64,
        max: u64,
    ) -> Result<u64, Error> {
        if amount <= max {
            return Ok(amount);
        }
        Err(Error::Limit { limit: Some(limit), what, amount, max })
    }
}

/// Returns the end of a message about a limit.
pub(crate) fn advice(limit: Option<Limit>) -> String {
    limit.map_or_else(String::new, |limit| format!(" {limit}"))
}

/// Returns the `N` bytes at `offset`, or an error that states how many bytes there are.
pub(crate) fn bytes<const N: usize>(
    data: &[u8],
    offset: usize,
    what: &'static str,
) -> Result<[u8; N], FormatError> {
    data.get(offset..)
        .and_then(|rest| rest.first_chunk::<N>())
        .copied()
        .ok_or_else(|| too_short(data, offset, N, what))
}

pub(crate) fn too_short(
    data: &[u8],
    offset: usize,
    wanted: usize,
    what: &'static str,
) -> FormatError {
    let left = data.len().saturating_sub(offset);
    FormatError::new(what, offset, format_args!("{wanted} bytes"), format_args!("{left}"))
}
