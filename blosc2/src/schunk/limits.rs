//! Memory limits of reads of untrusted input.

use blosc2_format::chunk;

use super::SChunk;
use crate::{ErrorKind, Result};

/// The number of bytes that a read of any file may allocate.
const PLAUSIBLE: u64 = 1 << 30;
/// The number of bytes that decompression may always take, in addition to its result.
const SCRATCH: u64 = 64 << 20;
/// The number of bytes that a read may allocate for each stored byte.
const PLAUSIBLE_RATIO: u64 = 256;

/// The maximum number of bytes that one read may allocate for sizes that the super-chunk declares.
#[derive(Debug, Clone, Copy)]
pub(super) enum MaxRead {
    Any,
    /// A limit that valid data rarely exceeds; see [`OpenOptions::max_read`].
    Plausible,
    Bytes(u64),
}

impl SChunk {
    /// Sets the maximum number of bytes that one read may take.
    pub(crate) fn set_max_read(&mut self, bytes: u64) {
        self.max_read = MaxRead::Bytes(bytes);
    }

    /// Checks that one read may take `nbytes` bytes of memory.
    pub(crate) fn allow(&self, doing: &str, nbytes: u64) -> Result<()> {
        let max = self.allowed(nbytes);
        if nbytes <= max {
            return Ok(());
        }
        let detail = format!(
            "it takes {nbytes} bytes of memory, the limit is {max}: raise it with OpenOptions::max_read, or \
             read into a buffer that you provide"
        );
        Err(self.error(ErrorKind::TooLarge, doing, detail))
    }

    /// Returns the maximum number of bytes that one read may take, given that it needs `nbytes`.
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

    /// Checks the memory that decompression takes in addition to its result.
    pub(crate) fn allow_scratch(&self, doing: &str, nbytes: u64) -> Result<()> {
        if nbytes <= SCRATCH { Ok(()) } else { self.allow(doing, nbytes) }
    }

    /// Checks the memory of the content of a metalayer. Metalayers are listed without being requested, so that the
    /// limit is what the limits of opening leave, unless the caller has set a limit for reads.
    pub(crate) fn allow_metadata(&self, doing: &str, header: &chunk::Header) -> Result<()> {
        let nbytes = u64::from(header.nbytes);
        if !matches!(self.max_read, MaxRead::Plausible) {
            return self.allow(doing, nbytes);
        }
        // A block passes through the codec and the filters.
        let block = if header.variable_blocks { nbytes } else { header.block_len().into() };
        let held = nbytes + 2 * block;
        let max = self.metadata_allowed(held);
        if held <= max {
            return Ok(());
        }
        let detail = format!(
            "it takes {held} bytes of memory, the limit is {max}: raise it with OpenOptions::max_read"
        );
        Err(self.error(ErrorKind::TooLarge, doing, detail))
    }

    /// Returns the maximum number of bytes that the content of a metalayer and its values may take, given that they
    /// need `held`.
    pub(crate) fn metadata_allowed(&self, held: u64) -> u64 {
        match self.max_read {
            MaxRead::Any => u64::MAX,
            MaxRead::Bytes(max) => max,
            MaxRead::Plausible => {
                let state = self.look();
                let left = |stored| state.outline.metadata_left(&state.limits, stored);
                // The stored bytes of a directory are counted only if they matter.
                if held <= left(0) { left(0) } else { left(state.store.stored_bytes()) }
            }
        }
    }
}
