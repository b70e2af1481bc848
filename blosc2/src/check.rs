//! The depth of checks.

/// How much of a chunk or of a frame is checked before it is used.
///
/// The rest is checked when it is read, at every depth: invalid bytes cause an error or other data, never undefined
/// behavior. A deeper check finds faults earlier and takes longer.
///
/// ```
/// use blosc2::{CParams, Check, ChunkRef, SChunk, OpenOptions};
///
/// let chunk = blosc2::compress(&[7u32; 1000], &CParams::default())?;
/// assert!(ChunkRef::validated(&chunk, Check::Content).is_ok());
///
/// let mut schunk = SChunk::in_memory::<u32>(&CParams::default())?;
/// schunk.append(&[7u32; 1000])?;
/// let frame = schunk.to_cframe()?;
/// assert!(OpenOptions::new().check(Check::Content).from_cframe(frame).is_ok());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// Checks the header of a chunk: its fields are consistent with each other and with the number of bytes. Takes
    /// almost no time.
    ///
    /// Of a frame, checks what opening reads: header, metalayers, trailer, and the index of up to 2,048 chunks. A
    /// longer index is checked block by block when a chunk is read. Opening a file and reading one item takes as long
    /// as the calls of C with 100 chunks (16 µs), and less with more chunks. The default for files and storages.
    Header,
    /// Also checks that the block table and the dictionary are inside the chunk. The default for chunks.
    ///
    /// Of a frame, also checks the whole index, and each chunk in the same way: chunks are inside the frame and do not
    /// overlap, and their streams fill their blocks. Reads all bytes of the frame and decompresses nothing. The default
    /// for frames in memory ([`OpenOptions::from_cframe`](crate::OpenOptions::from_cframe)).
    Structure,
    /// Also decompresses all data, with the Rust implementation of the format if it has the codec. Takes longer than
    /// reading all data.
    ///
    /// Of a frame, chunks with other codecs are decompressed by C or by the user-defined codec. Data that this build
    /// cannot decompress is an error of the kind [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported); data that
    /// takes more than the [limits](crate::OpenOptions::limits) is an error of the kind
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).
    Content,
}
