//! The writer of a contiguous frame.

use std::io::{Seek, SeekFrom, Write};

use super::build::Builder;
use super::header::Layout;
use super::metalayer::Metalayer;
use crate::Error;
use crate::chunk::{Params, Special};

/// Writes a contiguous frame.
///
/// For the same chunks, the header and the index are identical to the parts that C-Blosc2 3.3.2
/// writes. [`finish`](Self::finish) completes the frame. Before that call, the destination contains
/// no valid frame.
///
/// ```
/// use std::io::Cursor;
/// use blosc2_format::chunk::Params;
/// use blosc2_format::frame::{Frame, Writer};
/// use blosc2_format::Limits;
///
/// let params = Params { typesize: 4, ..Params::default() };
/// let mut writer = Writer::new(Cursor::new(Vec::new()), params, &[])?;
/// writer.push(&[7; 4000])?;
/// writer.push(&[8; 4000])?;
/// writer.add_vlmetalayer("author", b"me")?;
/// let bytes = writer.finish()?.into_inner();
///
/// let mut frame = Frame::open(bytes, &Limits::default())?;
/// let mut data = Vec::new();
/// frame.decode_chunk(1, &mut data)?;
/// assert_eq!(data, [8; 4000]);
/// # Ok::<(), blosc2_format::Error>(())
/// ```
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    /// The position of the frame in the destination.
    start: u64,
    builder: Builder,
}

impl<W: Write + Seek> Writer<W> {
    /// Creates the writer of a frame at the current position of `out`. `params` contains the
    /// compression parameters, which are also stored in the header. `metalayers` are the
    /// fixed-length metalayers of the header.
    ///
    /// # Errors
    /// - [`Error::Argument`], if
    ///   - `params` contains a value that a chunk cannot have;
    ///   - there are more than 16 metalayers, or two metalayers have the same name;
    ///   - the contents of all metalayers have 2 GiB - 4 KiB or more in total;
    ///   - a name is not 1 to 31 bytes long, or contains a NUL byte;
    /// - [`Error::Io`]: an operation of `out` fails.
    pub fn new(mut out: W, params: Params, metalayers: &[Metalayer]) -> Result<Self, Error> {
        let builder = Builder::new(params, Layout::Contiguous, metalayers)?;
        let start = out.stream_position()?;
        out.write_all(&builder.outline.header(0))?;
        Ok(Self { out, start, builder })
    }

    /// Enables [checksums](super::checksum) of the chunks, the header and the metalayers.
    /// [`finish`](Self::finish) writes them, and readers of this crate compare them. By default a
    /// frame has no checksums.
    ///
    /// # Errors
    /// [`Error::Argument`]: the frame already has chunks, or 16 variable-length metalayers.
    pub fn write_checksums(&mut self) -> Result<(), Error> {
        self.builder.outline.set_checksums(Some(Vec::new()))
    }

    /// Sets the maximum number of chunks, as [`Outline::set_max_chunks`](super::Outline::set_max_chunks)
    /// does. The default is that of [`Limits::chunks`](crate::Limits::chunks).
    pub fn set_max_chunks(&mut self, max: u64) {
        self.builder.outline.set_max_chunks(max);
    }

    /// Compresses `data` and appends it as a chunk. C: `blosc2_schunk_append_buffer`. Python:
    /// `SChunk.append_data`.
    ///
    /// Chunks can have different sizes. If all chunks have the same size, readers can compute the
    /// index of the chunk that contains an item. A shorter last chunk is allowed in this case.
    ///
    /// As in the C library, a chunk that is shorter than a block reduces the block size of all
    /// later chunks.
    ///
    /// # Errors
    /// - [`Error::Argument`], if
    ///   - `data` is empty or longer than a chunk can be, or the filters do not support it;
    ///   - the frame contains chunks with variable-length blocks;
    ///   - the frame already has the maximum number of chunks;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported;
    /// - [`Error::Io`]: the destination fails.
    pub fn push(&mut self, data: &[u8]) -> Result<(), Error> {
        let chunk = self.builder.encode(data)?;
        self.push_chunk(&chunk)
    }

    /// Compresses variable-length blocks and appends them as one chunk. Either all chunks of a
    /// frame have variable-length blocks or none. C: `blosc2_vlcompress_ctx` and
    /// `blosc2_schunk_append_chunk`.
    ///
    /// # Errors
    /// - [`Error::Argument`], if
    ///   - `blocks` is empty, or a block is empty;
    ///   - the blocks are longer than a chunk can be, or the filters do not support them;
    ///   - the frame contains chunks without variable-length blocks;
    ///   - the frame already has the maximum number of chunks;
    /// - [`Error::Unsupported`]: a codec or a filter is not supported;
    /// - [`Error::Io`]: the destination fails.
    pub fn push_blocks(&mut self, blocks: &[&[u8]]) -> Result<(), Error> {
        let chunk = self.builder.encode_blocks(blocks)?;
        self.push_chunk(&chunk)
    }

    /// Appends a compressed chunk. C: `blosc2_schunk_append_chunk`.
    ///
    /// # Errors
    /// - [`Error::Format`]: the header, the block starts or the lengths of `chunk` violate a rule;
    /// - [`Error::Argument`]: `chunk` is invalid or there are too many chunks, as described at
    ///   [`Outline::insert`](super::Outline::insert);
    /// - [`Error::Io`]: the destination fails.
    pub fn push_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        for (_, bytes) in self.builder.add(chunk)? {
            self.out.write_all(&bytes)?;
        }
        Ok(())
    }

    /// Fills an empty frame with `nbytes` bytes of one special value, in chunks of `chunksize`
    /// bytes. Only the index records these chunks. C: `blosc2_schunk_fill_special`. Python:
    /// `SChunk.fill_special`.
    ///
    /// # Errors
    /// Fails with [`Error::Argument`] if:
    ///
    /// - the frame has chunks;
    /// - `nbytes` or `chunksize` is not a multiple of the typesize;
    /// - `chunksize` is 0 or too large for a chunk;
    /// - the frame would have more chunks than a frame can have;
    /// - `special` is [`Special::Value`];
    /// - `special` is [`Special::Nan`], and the typesize is not 4 or 8, or is greater than the
    ///   block size.
    pub fn fill(&mut self, special: Special, nbytes: u64, chunksize: u32) -> Result<(), Error> {
        self.builder.outline.fill(special, nbytes, chunksize)
    }

    /// Compresses `content` and adds it as a variable-length metalayer of the trailer. C:
    /// `blosc2_vlmeta_add`. Python: `SChunk.vlmeta`.
    ///
    /// # Errors
    /// Fails with [`Error::Argument`] if:
    ///
    /// - the trailer already has 16 metalayers, or a metalayer with this name;
    /// - the name is not 1 to 31 bytes long, or contains a NUL byte;
    /// - `content` is longer than a chunk can be;
    /// - the compressed contents of all metalayers have 2 GiB - 4 KiB or more in total.
    pub fn add_vlmetalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        self.builder.add_vlmetalayer(name, content)
    }

    /// Adds a variable-length metalayer whose content is already compressed to a chunk.
    ///
    /// # Errors
    /// - [`Error::Format`]: `chunk` does not start with the header of a chunk;
    /// - [`Error::Argument`], if
    ///   - the length of `chunk` differs from the size in its header, or `chunk` is lazy;
    ///   - the trailer already has 16 metalayers, or a metalayer with this name;
    ///   - the name is not 1 to 31 bytes long, or contains a NUL byte;
    ///   - the compressed contents of all metalayers have 2 GiB - 4 KiB or more in total.
    pub fn add_vlmetalayer_chunk(&mut self, name: &str, chunk: &[u8]) -> Result<(), Error> {
        self.builder.add_vlmetalayer_chunk(name, chunk)
    }

    /// Returns the number of chunks.
    pub fn nchunks(&self) -> u64 {
        self.builder.outline.nchunks()
    }

    /// Returns a reference to the destination.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Writes the index, the trailer and the header. Returns the destination, whose position is the
    /// end of the frame.
    ///
    /// # Errors
    /// [`Error::Io`]: the destination fails.
    pub fn finish(mut self) -> Result<W, Error> {
        let outline = &mut self.builder.outline;
        let index = outline.index()?;
        let trailer = outline.trailer(index.len())?;
        self.out.write_all(&index)?;
        self.out.write_all(&trailer)?;
        let len = outline.frame_len(index.len() + trailer.len());
        self.out.seek(SeekFrom::Start(self.start))?;
        self.out.write_all(&outline.header(len))?;
        self.out.seek(SeekFrom::Start(self.start + len))?;
        self.out.flush()?;
        Ok(self.out)
    }
}
