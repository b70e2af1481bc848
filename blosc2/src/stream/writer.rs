//! A writer of a contiguous frame.

use std::borrow::Borrow;
use std::fmt;
use std::io::{self, Seek, Write};

use blosc2_format::frame::Writer;

use crate::closures::ChunkPlace;
use crate::encoder::Encoder;
use crate::params::{MAX_CHUNK_LEN, Purpose};
use crate::{CParams, Error, ErrorKind, Result};

const DOING: &str = "write a frame";

/// A writer that compresses data, chunk by chunk, to a contiguous frame.
///
/// [`FrameReader`](crate::FrameReader), [`SChunk::open`](crate::SChunk::open) and Python's `blosc2.open` read the
/// frame. The frame starts at the current position of the destination. Each chunk is written when it is full: the
/// writer keeps one or two chunks in memory, and about 8 bytes of the index for each chunk that it has written.
///
/// **[`finish`](Self::finish) must be called.** Without this call the destination contains no valid frame, and readers
/// return an error: neither dropping the writer nor `flush` completes the frame.
///
/// If a chunk cannot be compressed or written, all further calls fail, because the data of that chunk is missing.
///
/// If the length of the data is not a multiple of the typesize, the last chunk is compressed without a tuner and
/// without the filters that need whole items (delta, trunc_prec and int_trunc).
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
    /// Data that does not fill a chunk yet.
    rest: Vec<u8>,
    /// The chunk that was compressed last; the next one reuses its memory.
    chunk: Vec<u8>,
    failed: bool,
}

impl<W: Write + Seek> FrameWriter<W> {
    /// Starts a frame of chunks of `chunksize` bytes; the last one may be shorter.
    ///
    /// The typesize is 1, unless `params` sets one. A chunk size of 1 MiB suits most data: smaller chunks compress
    /// less, larger ones need more memory, and more time to read a small part of the data.
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
                "a chunk has to have 1 to {MAX_CHUNK_LEN} bytes, in items of {typesize}, got \
                 {chunksize}"
            );
            return Err(Error::new(ErrorKind::InvalidArgument, DOING, detail));
        }
        let failed = |error| Error::from_frame(DOING, error);
        let frame = Writer::new(out, resolved.format, &[]).map_err(failed)?;
        let (params, encoder) = (params.clone(), Encoder::new(resolved)?);
        let (rest, chunk) = (Vec::new(), Vec::new());
        Ok(Self { frame, params, encoder, chunksize, rest, chunk, failed: false })
    }

    /// Returns the destination. It contains the chunks written so far, but no valid frame yet.
    pub fn get_ref(&self) -> &W {
        self.frame.get_ref()
    }

    /// Writes the remaining data and completes the frame. Returns the destination, positioned after the frame.
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

    /// Removes the filters and the tuner that need whole items.
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
    /// Accepts at most as many bytes as the current chunk has room for.
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

    /// Writes nothing: each chunk is written when it is full, and the last one by [`finish`](FrameWriter::finish).
    fn flush(&mut self) -> io::Result<()> {
        Ok(self.check()?)
    }
}
