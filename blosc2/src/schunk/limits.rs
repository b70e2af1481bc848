//! Memory limits of reads of untrusted input.

use blosc2_format::chunk;

use super::SChunk;
use crate::{Error, Result};

/// The number of bytes that a read may allocate for a file of any size.
const PLAUSIBLE: u64 = 1 << 30;
/// The number of bytes of working memory that decompression may always allocate, in addition to the result.
const SCRATCH: u64 = 64 << 20;
/// The number of bytes that a read may allocate for each stored byte of a large file.
const PLAUSIBLE_RATIO: u64 = 256;

/// The limit of the memory that one read may allocate. The sizes in a super-chunk may come from untrusted input.
#[derive(Debug, Clone, Copy)]
pub(super) enum MaxRead {
    Any,
    /// A limit that valid data rarely exceeds; see [`OpenOptions::max_read`].
    Plausible,
    Bytes(u64),
}

impl SChunk {
    /// Sets the maximum memory in bytes for the result of one read.
    pub(crate) fn set_max_read(&mut self, bytes: u64) {
        self.max_read = MaxRead::Bytes(bytes);
    }

    /// Checks that one read may allocate `nbytes` bytes.
    pub(crate) fn allow(&self, doing: &str, nbytes: u64) -> Result<()> {
        let max = self.allowed(nbytes);
        if nbytes <= max {
            return Ok(());
        }
        Err(self.at(Error::over_max_read(doing, nbytes, max)))
    }

    /// Returns the maximum number of bytes that one read may allocate, if it needs `nbytes` bytes.
    pub(crate) fn allowed(&self, nbytes: u64) -> u64 {
        match self.max_read {
            MaxRead::Any => u64::MAX,
            MaxRead::Plausible if nbytes <= PLAUSIBLE => PLAUSIBLE,
            MaxRead::Plausible => {
                let stored = self.look().store.stored_bytes();
                stored.saturating_mul(PLAUSIBLE_RATIO).max(PLAUSIBLE)
            }
            MaxRead::Bytes(max) => max,
        }
    }

    /// Checks that decompression may allocate `nbytes` bytes of working memory, in addition to the result.
    pub(crate) fn allow_scratch(&self, doing: &str, nbytes: u64) -> Result<()> {
        if nbytes <= SCRATCH { Ok(()) } else { self.allow(doing, nbytes) }
    }

    /// Checks the memory for the content of a metalayer. If the caller has set a limit for reads, that limit applies.
    /// Otherwise the limit is [`Limits::metadata`](blosc2_format::Limits::metadata), also for the sum with the `before`
    /// bytes that an iterator has returned, because a program may read all metalayers without knowing them.
    pub(crate) fn allow_metadata(
        &self,
        doing: &str,
        header: &chunk::Header,
        before: u64,
    ) -> Result<()> {
        if !matches!(self.max_read, MaxRead::Plausible) {
            return self.allow(doing, header.nbytes.into());
        }
        let held = header.decoding_memory().saturating_add(before);
        let max = self.metadata_allowed(held);
        if held <= max {
            return Ok(());
        }
        Err(self.at(Error::over_max_read(doing, held, max)))
    }

    /// Returns the maximum number of bytes for the content of a metalayer and its values, if they need `held` bytes.
    pub(crate) fn metadata_allowed(&self, held: u64) -> u64 {
        match self.max_read {
            MaxRead::Any => u64::MAX,
            MaxRead::Bytes(max) => max,
            MaxRead::Plausible => {
                let state = self.look();
                let max = |stored| state.limits.decoded_metadata(stored);
                // Counting the stored bytes of a directory takes time, and is not always necessary.
                if held <= max(0) { max(0) } else { max(state.store.stored_bytes()) }
            }
        }
    }
}
