//! A summary of a super-chunk.

use std::fmt;

use blosc2_format::Limits;

use crate::{CParams, DParams};

/// A summary of a super-chunk; `Display` writes it as text. Returned by [`SChunk::info`](crate::SChunk::info). Python: `SChunk.info`.
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
    /// Whether the chunks have different decompressed sizes (variable-length chunks).
    pub has_variable_chunks: bool,
    /// Whether the chunks have variable-length blocks; see
    /// [`VariableBlocks`](crate::super_chunk::VariableBlocks).
    pub has_variable_blocks: bool,
    /// Whether the frame has [checksums](crate::OpenOptions::checksums).
    pub has_checksums: bool,
    /// Whether the frame (the stored form of a super-chunk) is contiguous: `true` for one file or buffer, `false` for a
    /// sparse frame, a directory with one file for each chunk. `None` for an in-memory super-chunk that is not a frame.
    pub contiguous: Option<bool>,
    /// The version of the frame format; `None` for an in-memory super-chunk that is not a frame.
    pub format_version: Option<u8>,
    /// Whether the chunks belong to an array: the super-chunk has a metalayer `b2nd` (in older versions `caterva`) with the
    /// shape of the array. [`NDArray::from_schunk`](crate::NDArray::from_schunk) opens the array.
    pub is_array: bool,
    /// The kind of Python object that the super-chunk stores; `None` for plain data.
    ///
    /// Python also stores references, lazy expressions and proxies as super-chunks. Their chunks contain no data or
    /// only a part of the data. A metalayer marks such a super-chunk. This is the name of the metalayer:
    /// - `b2o`: a computation, or a reference to an array that is stored elsewhere;
    /// - `LazyArray`: a computation, written by an older version of Python's blosc2;
    /// - `proxy-source`: a proxy, which caches chunks of an array that is stored elsewhere.
    pub python_object: Option<&'static str>,
    /// Whether the super-chunk is open for writing; `false` if it was opened for reading or for appending.
    pub is_writable: bool,
    /// The compression parameters of new chunks, without a prefilter. C: `blosc2_schunk_get_cparams`. Python:
    /// `SChunk.cparams`.
    ///
    /// These are the parameters of [`SChunk::set_cparams`](crate::SChunk::set_cparams) or
    /// [`OpenOptions::cparams`](crate::OpenOptions::cparams), including the threads and the tuner. If none were set,
    /// they are the parameters in the header of the frame. The typesize is always the typesize of the super-chunk.
    ///
    /// A tuner starts from these parameters and chooses the parameters of each new chunk. Existing chunks may have been
    /// compressed with other parameters; [`SChunk::chunk_info`](crate::SChunk::chunk_info) returns them.
    pub cparams: CParams,
    /// The decompression parameters, without a postfilter. C: `blosc2_schunk_get_dparams`. Python: `SChunk.dparams`.
    pub dparams: DParams,
    /// The limits of the handle; see [`OpenOptions::limits`](crate::OpenOptions::limits).
    pub limits: Limits,
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
