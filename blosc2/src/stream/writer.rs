//! A writer of a contiguous frame.

use std::borrow::Borrow;
use std::fmt;
use std::io::{self, Seek, Write};

use blosc2_format::frame::Writer;

use crate::closures::ChunkPlace;
use crate::encoder::Encoder;
use crate::params::{MAX_CHUNK_LEN, Purpose};
use crate::schunk::check_readable;
use crate::{CParams, Error, ErrorKind, Result};

const DOING: &str = "write a frame";

/// A writer that compresses data, chunk by chunk, to a contiguous frame. It implements `Write`.
///
/// A contiguous frame is one file or stream with a header, compressed chunks, an index and a trailer.
/// [`FrameReader`](crate::FrameReader), [`SChunk::open`](crate::SChunk::open) and Python's `blosc2.open` read the
/// frame. The frame starts at the current position of the destination.
///
/// The writer writes each chunk when it is full. It needs memory for one or two chunks, and about 8 bytes for each
/// chunk that it has written (the index).
///
/// **[`finish`](Self::finish) must be called.** Dropping the writer or calling `flush` does not complete the frame.
/// Without `finish` the destination contains no valid frame, and readers return an error.
///
/// If the writer cannot compress or write a chunk, all further calls fail, because the data of that chunk is missing.
///
/// If the data ends with an incomplete item, the last chunk is compressed without the tuner and without the filters
/// that need complete items (delta, trunc_prec and int_trunc).
///
/// ```
/// use std::io::{Cursor, Read, Write};
/// use blosc2::{CParams, FrameReader, FrameWriter};
///
/// let params = CParams::new().typesize(8);
/// let mut writer = FrameWriter::new(Cursor::new(Vec::new()), 1 << 20, &params)?;
/// for number in 0..100_000u64 {
///     writer.write_all(&number.to_le_bytes())?;
/// }
/// let frame = writer.finish()?.into_inner();
/// assert!(frame.len() < 100_000);
///
/// let mut data = Vec::new();
/// FrameReader::new(Cursor::new(frame))?.read_to_end(&mut data)?;
/// assert_eq!(data[8 * 99_999..], 99_999u64.to_le_bytes());
/// # Ok::<(), std::io::Error>(())
/// ```
#[must_use = "there is no frame until `finish` is called"]
pub struct FrameWriter<W> {
    frame: Writer<W>,
    params: CParams,
    encoder: Encoder,
    chunksize: usize,
    /// Buffered data, shorter than a chunk.
    rest: Vec<u8>,
    /// The chunk that was compressed last. The next chunk reuses the memory.
    chunk: Vec<u8>,
    failed: bool,
}

impl<W: Write + Seek> FrameWriter<W> {
    /// Starts a frame with chunks of `chunksize` bytes. The last chunk may be shorter.
    ///
    /// The typesize is 1; a typesize in `params` takes precedence. A chunk size of 1 MiB suits most data. Smaller
    /// chunks compress less. Larger chunks need more memory, and reading a small part of the data takes longer.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidArgument`]: `chunksize` is 0, greater than [`MAX_CHUNK_LEN`] or not a multiple of the
    ///   typesize; or a parameter is invalid;
    /// - [`ErrorKind::Unsupported`]: this build does not have the codec or a filter;
    /// - [`ErrorKind::Io`], or a more specific kind such as [`ErrorKind::OutOfMemory`]: the destination fails.
    pub fn new(out: W, chunksize: usize, params: impl Borrow<CParams>) -> Result<Self> {
        let params = params.borrow();
        let resolved = params.resolve(1, Purpose::Frame)?;
        let typesize = resolved.typesize();
        if !(1..=MAX_CHUNK_LEN).contains(&chunksize) || !chunksize.is_multiple_of(typesize) {
            let detail = format!(
                "the chunk size must be a multiple of the typesize ({typesize}) from 1 to \
                 {MAX_CHUNK_LEN} bytes, got {chunksize}"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        let failed = |error| Error::from_frame(DOING, error);
        let frame = Writer::new(out, resolved.format, &[]).map_err(failed)?;
        let (params, encoder) = (params.clone(), Encoder::new(resolved)?);
        let (rest, chunk) = (Vec::new(), Vec::new());
        Ok(Self { frame, params, encoder, chunksize, rest, chunk, failed: false })
    }

    /// Returns the destination. It contains the chunks that were written so far, but no valid frame.
    pub fn get_ref(&self) -> &W {
        self.frame.get_ref()
    }

    /// Writes the buffered data as the last chunk and completes the frame. Returns the destination; its position is the
    /// end of the frame.
    ///
    /// # Errors
    /// - [`ErrorKind::Io`]: an earlier write failed;
    /// - [`ErrorKind::Io`], or a more specific kind such as [`ErrorKind::OutOfMemory`]: the destination fails;
    /// - [`ErrorKind::InvalidArgument`]: the frame has more chunks than the format allows (2^28 - 5);
    /// - [`ErrorKind::Callback`]: a user-defined codec or filter, or a tuner, fails or panics.
    pub fn finish(mut self) -> Result<W> {
        self.check()?;
        if !self.rest.is_empty() {
            let rest = std::mem::take(&mut self.rest);
            if !rest.len().is_multiple_of(self.encoder.typesize()) {
                self.take_parts_of_items()?;
            }
            self.push(&rest)?;
        }
        self.frame.finish().map_err(|error| Error::from_frame(DOING, error))
    }

    /// Removes the filters that need complete items, and the tuner.
    fn take_parts_of_items(&mut self) -> Result<()> {
        let mut params = CParams { tuner: None, ..self.params.clone() };
        params.filters.retain(|filter| !filter.needs_whole_items());
        self.encoder = Encoder::new(params.resolve(1, Purpose::Frame)?)?;
        Ok(())
    }

    /// Fails if a chunk is missing.
    fn check(&self) -> Result<()> {
        if self.failed {
            let detail = "an earlier write failed, so that a part of the data is missing";
            return Err(Error::new(ErrorKind::Io, DOING, detail));
        }
        Ok(())
    }

    /// Appends a chunk.
    fn push(&mut self, data: &[u8]) -> Result<()> {
        self.failed = true;
        let index = usize::try_from(self.frame.nchunks()).ok();
        let place = ChunkPlace { index, ..ChunkPlace::default() };
        self.encoder.compress_to(data, place, &mut self.chunk)?;
        check_readable(DOING, &self.chunk, None)?;
        self.frame.push_chunk(&self.chunk).map_err(|error| Error::from_frame(DOING, error))?;
        self.failed = false;
        Ok(())
    }
}

impl<W> fmt::Debug for FrameWriter<W> {
    /// Writes the sizes, not the data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameWriter")
            .field("typesize", &self.encoder.typesize())
            .field("chunksize", &self.chunksize)
            .field("rest", &self.rest.len())
            .field("failed", &self.failed)
            .finish_non_exhaustive()
    }
}

impl<W: Write + Seek> Write for FrameWriter<W> {
    /// Accepts bytes until the current chunk is full; the returned number of bytes can be less than the length of
    /// `data`.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.check()?;
        let taken = &data[..data.len().min(self.chunksize - self.rest.len())];
        if taken.len() == self.chunksize {
            self.push(taken)?;
            return Ok(taken.len());
        }
        self.rest.try_reserve(taken.len())?;
        self.rest.extend_from_slice(taken);
        if self.rest.len() == self.chunksize {
            let mut full = std::mem::take(&mut self.rest);
            self.push(&full)?;
            full.clear();
            self.rest = full;
        }
        Ok(taken.len())
    }

    /// Writes nothing. Each chunk is written when it is full, and [`finish`](FrameWriter::finish) writes the last
    /// chunk.
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.check()?)
    }
}
