//! The depth of checks.

/// How much of a chunk or of a frame is checked before it is used.
///
/// At every depth, the remaining parts are checked when they are read: invalid bytes cause an error or wrong data,
/// never undefined behavior. A deeper check finds faults earlier and takes longer. Each depth includes the previous
/// one.
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
    /// For a frame, checks what opening reads: the header, the metalayers, the trailer, and an index of up to 2,048
    /// chunks. A longer index is checked block by block when chunks are read. Opening a file of 100 chunks and reading
    /// one item takes about as long as in C (16 µs); with more chunks it takes less time than in C. This is the default
    /// for files, directories and custom storage backends.
    Header,
    /// Also checks that the table of the offsets of the blocks, and the dictionary, are inside the chunk. This is the
    /// default for chunks.
    ///
    /// For a frame, also checks the whole index and each chunk: the chunks are inside the frame and do not overlap, and
    /// the compressed streams of each block are complete. Reads all bytes of the frame, but decompresses no chunk. This
    /// is the default for frames in memory ([`OpenOptions::from_cframe`](crate::OpenOptions::from_cframe)).
    Structure,
    /// Also decompresses all data, with the Rust implementation of the format (the crate `blosc2-format`). This takes
    /// longer than reading all data. For a single chunk, the check fails with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if that implementation lacks the codec or a filter.
    ///
    /// For a frame, chunks with a codec that it lacks are decompressed by C or by the user-defined codec. The check
    /// fails with `ErrorKind::Unsupported` if this build cannot decompress the data, and with
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if the data exceeds the
    /// [limits](crate::OpenOptions::limits).
    Content,
}
