//! What a super-chunk is like, in one place.

use std::fmt;

use super::SChunk;
use crate::CParams;

/// What a super-chunk is like: as data, and by `Display` as text. Made by [`SChunk::info`]. Python's `schunk.info`.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SChunkInfo {
    /// Bytes of an item.
    pub typesize: usize,
    /// Bytes of a chunk when decompressed; 0 if chunks have different sizes, or there are none.
    pub chunksize: usize,
    /// Bytes of a block; `None` if each chunk has its own.
    pub blocksize: Option<usize>,
    /// Bytes of all chunks when decompressed.
    pub nbytes: u64,
    /// Bytes of all chunks when compressed.
    pub cbytes: u64,
    /// The bytes of the data for each byte of the compressed chunks; 0 if there are none.
    pub cratio: f64,
    /// Number of chunks.
    pub nchunks: usize,
    /// How new chunks are compressed.
    pub cparams: CParams,
}

impl SChunk {
    /// What the super-chunk is like.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<f64>(&CParams::default())?;
    /// schunk.append(&[0.5f64; 600])?;
    /// let info = schunk.info();
    /// assert_eq!((info.nchunks, info.chunksize), (1, 4800));
    /// assert!(info.to_string().starts_with("typesize  8\n"));
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    pub fn info(&self) -> SChunkInfo {
        SChunkInfo {
            typesize: self.typesize(),
            chunksize: self.chunksize(),
            blocksize: self.blocksize(),
            nbytes: self.nbytes(),
            cbytes: self.cbytes(),
            cratio: self.cratio(),
            nchunks: self.nchunks(),
            cparams: self.cparams(),
        }
    }
}

impl fmt::Display for SChunkInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "typesize  {}", self.typesize)?;
        match self.chunksize {
            0 if self.nchunks > 0 => writeln!(f, "chunksize variable")?,
            size => writeln!(f, "chunksize {size}")?,
        }
        match self.blocksize {
            Some(size) => writeln!(f, "blocksize {size}")?,
            None => writeln!(f, "blocksize each chunk's own")?,
        }
        write_storage(f, (self.nbytes, self.cbytes, self.cratio), self.nchunks, &self.cparams)
    }
}

/// Writes the lines that arrays and super-chunks share.
pub(crate) fn write_storage(
    f: &mut fmt::Formatter<'_>,
    (nbytes, cbytes, cratio): (u64, u64, f64),
    nchunks: usize,
    cparams: &CParams,
) -> fmt::Result {
    let filters: Vec<String> = cparams.filters.iter().map(ToString::to_string).collect();
    writeln!(f, "nbytes  {nbytes}")?;
    writeln!(f, "cbytes  {cbytes}")?;
    writeln!(f, "cratio  {cratio:.2}")?;
    writeln!(f, "nchunks {nchunks}")?;
    writeln!(f, "codec   {}, level {}", cparams.codec, cparams.level)?;
    write!(f, "filters {}", if filters.is_empty() { "none".into() } else { filters.join(", ") })
}
