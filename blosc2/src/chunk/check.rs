//! The depth of checks.

/// The depth to which a chunk or a frame is checked before its use.
///
/// Each depth includes the previous depth. A deeper check finds faults earlier and takes longer. Bytes that are not
/// checked in advance are checked when they are read. At every depth, invalid bytes can cause an error or wrong data,
/// but never undefined behavior.
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
/// assert!(OpenOptions::new().check(Check::Content).open(frame).is_ok());
/// # Ok::<(), blosc2::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Check {
    /// For a chunk, checks the header: its fields are consistent with each other and with the number of bytes. Takes
    /// almost no time.
    ///
    /// For a frame, checks the parts that are read when the frame is opened: the header, the metalayers, the trailer,
    /// and an index of up to 2,048 chunks. A longer index is checked in parts of 2,048 chunks, each part when a read
    /// first needs it. Opening a file of 100 chunks and reading one item takes about as long as in C (16 µs). For files
    /// of more chunks, C takes longer than this crate.
    ///
    /// This is the default for files, directories and custom storage backends.
    Header,
    /// For a chunk, also checks that the table of block offsets and the dictionary are inside the chunk. This is the
    /// default for chunks.
    ///
    /// For a frame, also checks the entire index and each chunk: the chunks are inside the frame and do not overlap,
    /// and the compressed data of each block is complete. This check reads all bytes of the frame, but decompresses no
    /// chunk. This is the default for frames in memory (`Vec<u8>` and [`Target::bytes`](crate::Target::bytes)).
    Structure,
    /// Also decompresses all data, with the Rust implementation of the format (the crate `blosc2-format`). This takes
    /// longer than a read of all data with C. For a single chunk, the check fails with
    /// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported) if the Rust implementation lacks the codec or a
    /// filter.
    ///
    /// For a frame, C or a user-defined codec decompresses the chunks whose codec the Rust implementation lacks. The
    /// check fails with `ErrorKind::Unsupported` if this build cannot decompress the data, and with
    /// [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge) if the data exceeds the
    /// [limits](crate::OpenOptions::limits).
    Content,
}
