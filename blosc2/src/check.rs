//! How much is checked.

/// How much of a chunk or of a frame is checked before it is used.
///
/// Whatever is chosen, the rest is checked when it is read: broken bytes cause an error or other data, never undefined
/// behaviour. A deeper check finds faults earlier, and takes longer.
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
    /// Of a chunk the header: its fields agree with each other, and with the number of bytes. Takes no time.
    ///
    /// Of a frame what opening has to read: header, metalayers, trailer, and the index of up to 2,048 chunks. A longer
    /// index is checked block by block, when a chunk is read. Opening a file and reading one item takes as long as C's
    /// calls with 100 chunks (16 us), and less with more. The default for files and storages.
    Header,
    /// Of a chunk also the table of blocks and the dictionary: they are inside the chunk. The default for chunks.
    ///
    /// Of a frame also the whole index, and each chunk likewise: it is in its place, and none is in another's; its streams
    /// fill its blocks. Reads all bytes of the frame, and decompresses none. The default for frames in memory
    /// ([`OpenOptions::from_cframe`](crate::OpenOptions::from_cframe)).
    Structure,
    /// Also the data: all of it is decompressed, by the Rust implementation of the format where that has the codec.
    /// Takes longer than reading all.
    ///
    /// Of a frame, chunks with other codecs are decompressed by C or by the user-defined codec. What cannot be
    /// decompressed here is an error of [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported); what takes more than
    /// the [limits](crate::OpenOptions::limits) is one of [`ErrorKind::TooLarge`](crate::ErrorKind::TooLarge).
    Content,
}
