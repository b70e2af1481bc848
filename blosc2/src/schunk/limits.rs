//! What reading may take, whatever the frame says.

use blosc2_format::chunk;

use super::SChunk;
use crate::{ErrorKind, Result};

/// What a read may allocate of any file.
const PLAUSIBLE: u64 = 1 << 30;
/// What decompressing may always take besides its result.
const SCRATCH: u64 = 64 << 20;
/// What a read may allocate for each byte that is stored.
const PLAUSIBLE_RATIO: u64 = 256;

/// The most bytes that one read allocates at the word of the super-chunk.
#[derive(Debug, Clone, Copy)]
pub(super) enum MaxRead {
    Any,
    /// What honest data hardly needs; see [`OpenOptions::max_read`].
    Plausible,
    Bytes(u64),
}

impl SChunk {
    /// Sets the most bytes that one read may take.
    pub(crate) fn set_max_read(&mut self, bytes: u64) {
        self.max_read = MaxRead::Bytes(bytes);
    }

    /// Sees that one read may take so much memory.
    pub(crate) fn allow(&self, doing: &str, nbytes: u64) -> Result<()> {
        let max = self.allowed(nbytes);
        if nbytes <= max {
            return Ok(());
        }
        let detail = format!(
            "it takes {nbytes} bytes of memory, the limit is {max}: raise it with OpenOptions::max_read, or \
             read into memory of your own"
        );
        Err(self.error(ErrorKind::TooLarge, doing, detail))
    }

    /// The most bytes that one read may take, where it is to take so many.
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

    /// The same for what decompressing takes besides its result.
    pub(crate) fn allow_scratch(&self, doing: &str, nbytes: u64) -> Result<()> {
        if nbytes <= SCRATCH { Ok(()) } else { self.allow(doing, nbytes) }
    }

    /// The same for the content of a metalayer, which is listed without being asked for: what the limits of
    /// opening leave, unless the caller has set a limit for reads.
    pub(crate) fn allow_metadata(&self, doing: &str, header: &chunk::Header) -> Result<()> {
        let nbytes = u64::from(header.nbytes);
        if !matches!(self.max_read, MaxRead::Plausible) {
            return self.allow(doing, nbytes);
        }
        // A block goes through the codec and the filters.
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

    /// The most bytes that the content of a metalayer may take, and what is made of it, where it is to take so
    /// many.
    pub(crate) fn metadata_allowed(&self, held: u64) -> u64 {
        match self.max_read {
            MaxRead::Any => u64::MAX,
            MaxRead::Bytes(max) => max,
            MaxRead::Plausible => {
                let state = self.look();
                let left = |stored| state.outline.metadata_left(&state.limits, stored);
                // What is stored in a directory is only counted where that matters.
                if held <= left(0) { left(0) } else { left(state.store.stored_bytes()) }
            }
        }
    }
}
