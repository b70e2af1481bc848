//! Checksums of chunks, header and metalayers.

use blosc2_format::chunk::Header;
use blosc2_format::frame::{Offset, checksum};

use super::store::{State, Verify};
use crate::item::element::zeroed;
use crate::{Doing, Result};

const SET: &str = "set checksums";

impl State {
    /// Returns whether the chunk must still be compared with its checksum. The comparison needs the whole chunk.
    pub(super) fn is_unverified(&self, index: usize) -> bool {
        self.verify != Verify::Never && self.outline.is_unverified(index as u64)
    }

    /// Compares a chunk with its checksum, if this handle has not compared it yet. `stored` is the whole chunk.
    pub(super) fn verify(&self, index: usize, header: &Header, stored: &[u8]) -> Result<()> {
        if !self.is_unverified(index) {
            return Ok(());
        }
        let doing = "verify the checksum of a chunk";
        let stored = stored.get(..header.cbytes as usize).unwrap_or(stored);
        let verified = self.outline.verify(index as u64, self.offset(index).doing(doing)?, stored);
        verified.doing(doing)
    }

    /// Computes the checksums of all chunks.
    pub(super) fn checksums(&self) -> Result<Vec<u32>> {
        let mut sums = zeroed(self.nchunks()).doing(SET)?;
        let mut buffer = Vec::new();
        for (index, sum) in sums.iter_mut().enumerate() {
            let offset = self.offset(index).doing(SET)?;
            if let Offset::Special(_) = offset {
                *sum = checksum(offset, &[]);
                continue;
            }
            let (located, header) = self.locate(index)?;
            *sum = match located.in_memory(&header) {
                Some(bytes) => checksum(offset, bytes),
                None => {
                    located.fetch(&header, None, 0, &mut buffer)?;
                    checksum(offset, &buffer[..header.cbytes as usize])
                }
            };
        }
        Ok(sums)
    }
}
