//! Ranges of bytes.

/// A range of bytes, from the start of the frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Span {
    pub(crate) at: u64,
    pub(crate) len: u64,
}

impl Span {
    pub(crate) fn end(self) -> u64 {
        self.at.saturating_add(self.len)
    }
}
