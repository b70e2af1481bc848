//! The writer of a frame.

use std::io::{self, Seek, SeekFrom, Write};

use super::header::Layout;
use super::metalayer::Metalayer;
use super::outline::Outline;
use crate::Error;
use crate::chunk::{self, Encoder, Params, Special};
use crate::directory::{FolderMut, INDEX, chunk_name};

/// Writes a frame: contiguous, or in a directory.
///
/// For the same chunks, the header, the index and the files of a directory are identical to those
/// that C-Blosc2 3.3.2 writes. [`finish`](Self::finish) completes the frame. Before that call, the
/// destination contains no valid frame.
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
pub struct Writer<D> {
    out: D,
    /// Stores bytes of a chunk.
    store: fn(&mut D, place: u64, bytes: &[u8]) -> io::Result<()>,
    /// Stores the header, and the index with the trailer.
    complete: fn(&mut D, start: u64, header: &[u8], end: &[u8]) -> io::Result<()>,
    /// The position of the frame in a stream.
    start: u64,
    outline: Outline,
    /// The parameters of the next chunk.
    encoding: Params,
    /// `None` if the codec is not supported; chunks can come from elsewhere.
    encoder: Option<Encoder>,
}

impl<W: Write + Seek> Writer<W> {
    /// Creates the writer of a contiguous frame at the current position of `out`. `params` contains
    /// the compression parameters, which are also stored in the header. `metalayers` are the
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
        let (outline, encoder) = start(Layout::Contiguous, params, metalayers)?;
        let start = out.stream_position()?;
        out.write_all(&outline.header(0))?;
        Ok(Self {
            out,
            store: |out, _, bytes| out.write_all(bytes),
            complete: |out, start, header, end| {
                out.write_all(end)?;
                let end = out.stream_position()?;
                out.seek(SeekFrom::Start(start))?;
                out.write_all(header)?;
                out.seek(SeekFrom::Start(end))?;
                out.flush()
            },
            start,
            outline,
            encoding: params,
            encoder,
        })
    }
}

impl<F: FolderMut> Writer<F> {
    /// Creates the writer of a frame in a directory. No file is written yet.
    /// [`finish`](Self::finish) writes the index file. `params` and `metalayers` are those of
    /// [`new`](Self::new).
    ///
    /// ```
    /// use blosc2_format::chunk::Params;
    /// use blosc2_format::directory::{INDEX, Memory};
    /// use blosc2_format::frame::Writer;
    ///
    /// let mut writer = Writer::new_directory(Memory::default(), Params::default(), &[])?;
    /// writer.push(&[1; 800])?;
    /// writer.push(&[2; 800])?;
    /// assert_eq!(writer.nchunks(), 2);
    /// assert!(writer.finish()?.0.contains_key(INDEX));
    /// # Ok::<(), blosc2_format::Error>(())
    /// ```
    ///
    /// # Errors
    /// - [`Error::Argument`]: as for [`new`](Self::new);
    /// - [`Error::Io`] with the kind [`AlreadyExists`](io::ErrorKind::AlreadyExists): the directory
    ///   already contains a frame;
    /// - [`Error::Io`]: an operation of `folder` fails.
    pub fn new_directory(
        folder: F,
        params: Params,
        metalayers: &[Metalayer],
    ) -> Result<Self, Error> {
        match folder.open(INDEX) {
            Ok(_) => return Err(io::Error::from(io::ErrorKind::AlreadyExists).into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        let (outline, encoder) = start(Layout::Directory, params, metalayers)?;
        Ok(Self {
            out: folder,
            store: |folder, number, bytes| folder.put(&chunk_name(number), bytes, false),
            complete: |folder, _, header, end| folder.put(INDEX, &[header, end].concat(), false),
            start: 0,
            outline,
            encoding: params,
            encoder,
        })
    }
}

/// Returns the outline of an empty frame, and the encoder of its chunks.
fn start(
    layout: Layout,
    params: Params,
    metalayers: &[Metalayer],
) -> Result<(Outline, Option<Encoder>), Error> {
    let encoder = match Encoder::new(params) {
        Err(Error::Unsupported(_)) => None,
        encoder => Some(encoder?),
    };
    let mut outline = Outline::new(params, layout);
    for metalayer in metalayers {
        outline.add_metalayer(&metalayer.name, &metalayer.content)?;
    }
    Ok((outline, encoder))
}

impl<D> Writer<D> {
    /// Enables [checksums](super::checksum) of the chunks, the header and the metalayers.
    /// [`finish`](Self::finish) writes them, and readers of this crate compare them. By default a
    /// frame has no checksums.
    ///
    /// # Errors
    /// [`Error::Argument`]: the frame already has chunks, or 16 variable-length metalayers.
    pub fn write_checksums(&mut self) -> Result<(), Error> {
        self.outline.set_checksums(Some(Vec::new()))
    }

    /// Sets the maximum number of chunks, as [`Outline::set_max_chunks`](super::Outline::set_max_chunks)
    /// does. The default is that of [`Limits::chunks`](crate::Limits::chunks).
    pub fn set_max_chunks(&mut self, max: u64) {
        self.outline.set_max_chunks(max);
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
        let chunk = self.encoder()?.encode(data)?;
        // Like the C library, it keeps the last block size for the following chunks.
        let blocksize = Some(chunk::Header::parse(&chunk)?.blocksize);
        if self.encoding.blocksize != blocksize {
            self.encoding.blocksize = blocksize;
            self.encoder = Some(Encoder::new(self.encoding)?);
        }
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
        let chunk = self.encoder()?.encode_blocks(blocks)?;
        self.push_chunk(&chunk)
    }

    fn encoder(&mut self) -> Result<&mut Encoder, Error> {
        let codec = self.encoding.codec;
        let what = || Error::Unsupported(format!("compressing with codec {codec}"));
        self.encoder.as_mut().ok_or_else(what)
    }

    /// Appends a compressed chunk. C: `blosc2_schunk_append_chunk`.
    ///
    /// # Errors
    /// - [`Error::Format`]: the header, the block starts or the lengths of `chunk` violate a rule;
    /// - [`Error::Argument`]: `chunk` is invalid or there are too many chunks, as described at
    ///   [`Outline::insert`](super::Outline::insert);
    /// - [`Error::Io`]: the destination fails.
    pub fn push_chunk(&mut self, chunk: &[u8]) -> Result<(), Error> {
        for (place, bytes) in self.outline.insert(self.outline.nchunks(), chunk)? {
            (self.store)(&mut self.out, place, &bytes)?;
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
        self.outline.fill(special, nbytes, chunksize)
    }

    /// Adds `content` as a variable-length metalayer of the trailer. It is compressed with the
    /// default parameters of the C library. C: `blosc2_vlmeta_add`. Python: `SChunk.vlmeta`.
    ///
    /// # Errors
    /// Fails with [`Error::Argument`] if:
    ///
    /// - the trailer already has 16 metalayers, or a metalayer with this name;
    /// - the name is not 1 to 31 bytes long, or contains a NUL byte;
    /// - `content` is longer than a chunk can be;
    /// - the compressed contents of all metalayers have 2 GiB - 4 KiB or more in total.
    pub fn add_vlmetalayer(&mut self, name: &str, content: &[u8]) -> Result<(), Error> {
        let chunk = Encoder::new(Params::default())?.encode(content)?;
        self.add_vlmetalayer_chunk(name, &chunk)
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
        if self.outline.vlmetalayers().iter().any(|each| each.name == name) {
            let name = name.escape_debug();
            return Err(Error::Argument(format!("there is already a metalayer `{name}`")));
        }
        self.outline.set_vlmetalayer_chunk(name, chunk)
    }

    /// Returns the number of chunks.
    pub fn nchunks(&self) -> u64 {
        self.outline.nchunks()
    }

    /// Returns a reference to the destination.
    pub fn get_ref(&self) -> &D {
        &self.out
    }

    /// Writes the index, the trailer and the header. Returns the destination; the position of a
    /// stream is the end of the frame.
    ///
    /// # Errors
    /// [`Error::Io`]: the destination fails.
    pub fn finish(mut self) -> Result<D, Error> {
        let index = self.outline.index()?;
        let end = [&index[..], &self.outline.trailer(index.len())?].concat();
        let header = self.outline.header(self.outline.frame_len(end.len()));
        (self.complete)(&mut self.out, self.start, &header, &end)?;
        Ok(self.out)
    }
}
