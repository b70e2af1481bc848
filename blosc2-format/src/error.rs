//! What is wrong with bytes that should follow one of the formats.

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
