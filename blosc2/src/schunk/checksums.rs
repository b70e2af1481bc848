//! Checksums of chunks, header and metalayers.

use blosc2_format::chunk::Header;
use blosc2_format::frame::{Offset, Stores, checksum};

use super::store::{State, Verify};
use super::{Access, SChunk};
use crate::element::zeroed;
use crate::{Error, Result};

const SET: &str = "set checksums";

impl SChunk {
    /// Returns whether the frame has [checksums](crate::OpenOptions::checksums).
    pub fn has_checksums(&self) -> bool {
        self.look().outline.has_checksums()
    }

    /// If `on` is `true`, computes and stores [checksums](crate::OpenOptions::checksums) of all chunks, the header and
    /// the metalayers. If `on` is `false`, removes the checksums.
    ///
    /// To compute the checksums, the method reads all compressed chunks, without decompression. It does not compare
    /// the chunks with existing checksums. Therefore the method accepts the changes of programs that do not support
    /// checksums, such as Python. If such a program has changed the metadata, the frame has to be opened with
    /// [`verify_checksums(false)`](crate::OpenOptions::verify_checksums).
    ///
    /// ```
    /// use blosc2::{CParams, OpenOptions, SChunk};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("a.b2frame");
    /// let mut schunk = SChunk::create::<u8>(&path, CParams::new().level(0))?;
    /// schunk.append(&[1u8; 1000])?;
    /// schunk.set_checksums(true)?;
    /// drop(schunk);
    ///
    /// let mut bytes = std::fs::read(&path)?;
    /// bytes[500] ^= 1; // in the data of the chunk
    /// let damaged = SChunk::from_cframe(bytes.clone())?;
    /// assert!(damaged.decompress_chunk::<u8>(0).is_err());
    ///
    /// let mut accepted = OpenOptions::new().write(true).from_cframe(bytes)?;
    /// accepted.set_checksums(true)?;
    /// assert_eq!(accepted.decompress_chunk::<u8>(0)?.len(), 1000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// Fails with the [errors of reading](Self#errors-of-reading) and the [errors of changes](Self#errors-of-changes),
    /// and with
    /// - [`ErrorKind::InvalidArgument`](crate::ErrorKind::InvalidArgument): there are already
    ///   [`MAX_METALAYERS`](crate::limits::MAX_METALAYERS) variable-length metalayers, and the checksums need one more.
    pub fn set_checksums(&mut self, on: bool) -> Result<()> {
        self.check_change(SET, Access::Write)?;
        self.change_metadata(SET, |state, _| {
            let sums = if on { Some(state.checksums()?) } else { None };
            let set = state.outline.set_checksums(sums);
            set.map_err(|error| Error::from_frame(SET, error))?;
            Ok(Stores::new())
        })
    }
}

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
        let verified = self.outline.verify(index as u64, self.offset(index, doing)?, stored);
        verified.map_err(|error| Error::from_frame(doing, error))
    }

    /// Computes the checksums of all chunks.
    fn checksums(&self) -> Result<Vec<u32>> {
        let mut sums = zeroed(self.nchunks(), SET)?;
        let mut buffer = Vec::new();
        for (index, sum) in sums.iter_mut().enumerate() {
            let offset = self.offset(index, SET)?;
            if let Offset::Special(_) = offset {
                *sum = checksum(offset, &[]);
                continue;
            }
            let (located, header) = self.locate(index)?;
            *sum = match located.in_memory(&header) {
                Some(bytes) => checksum(offset, bytes),
                None => {
                    located.fetch(&header, None, &mut buffer)?;
                    checksum(offset, &buffer[..header.cbytes as usize])
                }
            };
        }
        Ok(sums)
    }
}
