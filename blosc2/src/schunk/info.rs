//! A summary of a super-chunk.

use std::fmt;

use crate::CParams;

/// A summary of a super-chunk; `Display` writes it as text. Returned by [`SChunk::info`](crate::SChunk::info). Python: `SChunk.info`.
///
/// ```
/// use blosc2::{CParams, SChunk};
///
/// let mut schunk = SChunk::in_memory::<f64>(&CParams::default())?;
/// schunk.append(&[0.5f64; 600])?;
/// println!("{}", schunk.info());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct SChunkInfo {
    /// The size of an item in bytes.
    pub typesize: usize,
    /// The decompressed size in bytes of every chunk except the last chunk, which may be shorter. 0 if the super-chunk
    /// has variable-length chunks, if all chunks were deleted, or if there is no chunk yet and no chunk size was set at
    /// creation.
    pub chunksize: usize,
    /// The block size in bytes; `None` if each chunk has its own block size.
    pub blocksize: Option<usize>,
    /// The decompressed size of all chunks in bytes.
    pub nbytes: u64,
    /// The compressed size of all chunks in bytes. In a contiguous frame (one file or buffer) the size includes gaps:
    /// the unused bytes of chunks that were replaced or deleted.
    pub cbytes: u64,
    /// The compression ratio: decompressed bytes divided by compressed bytes; 0 if there are no compressed bytes.
    pub cratio: f64,
    /// The number of chunks.
    pub nchunks: usize,
    /// The compression parameters of new chunks.
    pub cparams: CParams,
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
            None => writeln!(f, "blocksize per chunk")?,
        }
        write_storage(f, (self.nbytes, self.cbytes, self.cratio), self.nchunks, &self.cparams)
    }
}

/// Writes the lines that summaries of arrays and super-chunks have in common.
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
