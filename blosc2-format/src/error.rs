//! What is wrong with bytes that should follow one of the formats.

use crate::limits::Limits;
use crate::report::{Finding, Rule};

/// A rule of a format that the bytes break, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}: expected {expected}, found {found}")]
pub struct FormatError {
    /// The field or section, in the format's terms.
    pub what: &'static str,
    /// Its position, in bytes from the start of what was parsed.
    pub offset: u64,
    /// What the format asks for.
    pub expected: String,
    /// What is there.
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

    /// The same error where the bytes that were parsed start at `base`.
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

/// Why bytes could not be read, decoded or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The bytes break a rule of their format.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// They may well be right, but this crate does not know, or was not built with, what they need.
    #[error("not decodable here: {0}")]
    Unsupported(String),
    /// They ask for more than the caller's [`Limits`] allow.
    #[error("{what}: {amount}, over the limit of {max}")]
    Limit {
        /// What there is too much of.
        what: &'static str,
        /// How much there is.
        amount: u64,
        /// How much is allowed.
        max: u64,
    },
    /// What the caller asked for cannot be: a parameter, an index, the length of a buffer.
    #[error("{0}")]
    Argument(String),
    /// The bytes could not be fetched, or what was written could not be kept.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl Limits {
    /// `amount` where it is within the limit `max`, an error that names `what` otherwise.
    pub(crate) fn allow(what: &'static str, amount: u64, max: u64) -> Result<u64, Error> {
        if amount <= max {
            return Ok(amount);
        }
        Err(Error::Limit { what, amount, max })
    }
}

/// The `N` bytes at `offset`, or an error that says how many there are.
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
