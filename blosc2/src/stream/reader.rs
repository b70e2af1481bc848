//! A reader of the data of a contiguous frame.

use std::borrow::Borrow;
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom};
use std::ops::Range;

use blosc2_format::chunk::Header;
use blosc2_format::frame::Frame;
use blosc2_format::{Limits, ReadAt};
use parking_lot::Mutex;

use crate::memory::resize;
use crate::{Chunk, DParams, Decompressor, Error, ErrorKind, Result, filter};

const DOING: &str = "read a frame";
/// The offset of the parameters of the filters in the header of a chunk.
const METAS_AT: usize = 24;
/// The number of bytes of an uncompressed chunk that are read at once for small buffers.
const PIECE: u64 = 1 << 16;

/// A reader that decompresses the data of a contiguous frame, chunk by chunk. It implements `Read`, `BufRead` and
/// `Seek`.
///
/// A contiguous frame is one file or stream with a header, compressed chunks, an index and a trailer. The reader
/// accepts frames of C-Blosc2 2.0 and later, of Python and of [`FrameWriter`](crate::FrameWriter). The chunks may have
/// one size or different sizes (variable-length chunks). The reader is safe for untrusted input: invalid bytes cause an
/// error.
///
/// Memory: the reader stores the index of the frame, one compressed chunk, and the decompressed data of this chunk. If
/// the buffer of a read is at least as long as the chunk, the chunk is decompressed directly into this buffer.
/// For [special chunks](crate::Special) and for chunks that are stored uncompressed, a buffer of 64 KiB replaces the
/// decompressed data of the entire chunk. In untrusted input, even a short frame may contain chunks with a decompressed
/// size of up to [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) bytes. Call [`chunksize`](Self::chunksize) to check
/// the size before reading.
///
/// The reader returns the concatenated data of the chunks. For an array, this data is in the order of the chunks and
/// includes the padding of the chunks; use [`NDArray`](crate::NDArray) to read the items. If the codec (zfp) or a
/// filter (ndcell, ndmean) of a chunk needs the shape of the array, the read fails with [`ErrorKind::Unsupported`].
///
/// ```
/// use std::io::{Cursor, Read, Seek, SeekFrom, Write};
/// use blosc2::{CParams, FrameReader, FrameWriter};
///
/// let mut writer = FrameWriter::new(Cursor::new(Vec::new()), 1000, &CParams::default())?;
/// writer.write_all(&[7; 12_345])?;
/// let frame = writer.finish()?.into_inner();
///
/// let mut reader = FrameReader::new(Cursor::new(frame))?;
/// assert_eq!(reader.nbytes(), 12_345);
/// reader.seek(SeekFrom::End(-2))?;
/// let mut last = Vec::new();
/// reader.read_to_end(&mut last)?;
/// assert_eq!(last, [7, 7]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct FrameReader<R> {
    frame: Frame<Tail<R>>,
    decompressor: Decompressor,
    /// The offset of the next byte in the data.
    position: u64,
    /// The chunk that was read last; `None` before the first read, at the end of the data, and after an error.
    stored: Option<Stored>,
    /// The bytes that were decompressed last. `range` is their range in the data.
    data: Vec<u8>,
    range: Range<u64>,
    /// For variable-length chunks: the known ends of the first chunks in the data.
    ends: Vec<u64>,
}

impl<R: Read + Seek> FrameReader<R> {
    /// Opens the frame that starts at the position of `reader`. Other data may follow the frame.
    ///
    /// This function reads the header, the index and the trailer of the frame. Chunks are decompressed on one thread.
    /// [`with_params`](Self::with_params) sets another number of threads.
    ///
    /// # Errors
    /// - [`ErrorKind::InvalidData`]: the stream contains no frame, or a truncated or invalid frame; or it contains the
    ///   index file of a sparse frame (a directory);
    /// - [`ErrorKind::Unfinished`]: the writer of the frame was stopped in the middle of a change;
    /// - [`ErrorKind::TooLarge`]: the metadata of the frame takes more memory than the default
    ///   [`Limits`](crate::Limits) allow;
    /// - [`ErrorKind::Unsupported`]: an installed C-Blosc2 library is used (feature `system`), and an environment
    ///   variable is set that would override parameters, such as `BLOSC_NTHREADS`;
    /// - [`ErrorKind::Io`], or a more specific kind such as [`ErrorKind::OutOfMemory`]: the reader fails.
    pub fn new(reader: R) -> Result<Self> {
        Self::with_params(reader, DParams::default())
    }

    /// Opens the frame that starts at the position of `reader`, with decompression parameters.
    ///
    /// # Errors
    /// Fails with the errors of [`new`](Self::new).
    pub fn with_params(reader: R, params: impl Borrow<DParams>) -> Result<Self> {
        let source = Tail::new(reader).map_err(|error| Error::of_io(DOING, error))?;
        let frame = Frame::open(source, &Limits::default())
            .map_err(|error| Error::from_frame(DOING, error))?;
        let decompressor = Decompressor::new(params)?;
        let (data, ends) = (Vec::new(), Vec::new());
        Ok(Self { frame, decompressor, position: 0, stored: None, data, range: 0..0, ends })
    }

    /// Checks that the frame has [checksums](crate::OpenOptions::checksums) of its current state. Without checksums,
    /// damaged data can be read without an error.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`]: the frame has no checksums, or a program that does not support checksums has changed
    /// the frame.
    pub fn require_checksums(&self) -> Result<()> {
        self.frame.require_checksums().map_err(|error| Error::from_frame(DOING, error))
    }

    /// Returns the decompressed size of the data in bytes.
    pub fn nbytes(&self) -> u64 {
        self.frame.header().nbytes
    }

    /// Returns the typesize in the header of the frame: the size of an item in bytes.
    pub fn typesize(&self) -> usize {
        usize::try_from(self.frame.header().typesize).unwrap_or(usize::MAX)
    }

    /// Returns the chunk size in the header of the frame: the decompressed size of a chunk in bytes. The last chunk may
    /// be shorter. Returns `None` for variable-length chunks, and if there are no chunks and the header contains no
    /// chunk size.
    ///
    /// ```
    /// use std::io::{Cursor, Write};
    /// use blosc2::{CParams, FrameReader, FrameWriter};
    ///
    /// let mut writer = FrameWriter::new(Cursor::new(Vec::new()), 1000, &CParams::default())?;
    /// writer.write_all(&[7; 12_345])?;
    /// let reader = FrameReader::new(Cursor::new(writer.finish()?.into_inner()))?;
    /// assert_eq!(reader.chunksize(), Some(1000));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn chunksize(&self) -> Option<usize> {
        chunksize(&self.frame).map(|size| usize::try_from(size).unwrap_or(usize::MAX))
    }

    /// Returns the underlying reader. The caller may change its position: each read sets the position again.
    pub fn get_mut(&mut self) -> &mut R {
        self.frame.get_mut().reader.get_mut()
    }

    /// Returns the underlying reader. Its position is unspecified.
    pub fn into_inner(self) -> R {
        self.frame.into_inner().reader.into_inner()
    }

    /// Returns the decompressed bytes from the position on. The result is empty at the end of the data.
    fn rest(&mut self) -> Result<&[u8]> {
        if !self.range.contains(&self.position) {
            self.load()?;
            let Some(stored) = &self.stored else { return Ok(&[]) };
            let piece = stored.piece(self.position);
            // The data is empty if this fails.
            self.range = 0..0;
            resize(&mut self.data, len(&piece), DOING)?;
            stored.decompress(&mut self.decompressor, piece.start, &mut self.data)?;
            self.range = piece;
        }
        let from = len(&(self.range.start..self.position));
        Ok(self.data.get(from..).unwrap_or_default())
    }

    /// Decompresses the data from the position on directly into `buffer`. Returns the number of bytes. Returns 0 if the
    /// buffer is too small, or if the data is already decompressed.
    fn read_directly(&mut self, buffer: &mut [u8]) -> Result<usize> {
        if self.range.contains(&self.position) {
            return Ok(0);
        }
        self.load()?;
        let Some(stored) = &self.stored else { return Ok(0) };
        let piece = stored.piece(self.position);
        if piece.start != self.position || buffer.len() < len(&piece) {
            return Ok(0);
        }
        let count = buffer.len().min(len(&(self.position..stored.range.end)));
        stored.decompress(&mut self.decompressor, self.position, &mut buffer[..count])?;
        Ok(count)
    }

    /// Returns the index and the range of the chunk that contains the position. The position is inside the data.
    fn find(&mut self) -> Result<(u64, Range<u64>)> {
        let nbytes = self.nbytes();
        if let Some(size) = chunksize(&self.frame) {
            let number = self.position / size;
            let start = number * size;
            return Ok((number, start..start.saturating_add(size).min(nbytes)));
        }
        let mut end = self.ends.last().copied().unwrap_or(0);
        while end <= self.position {
            let number = self.ends.len() as u64;
            let wrong = |found: String| {
                let detail = format!("its chunks have {found} bytes, expected {nbytes} in all");
                Error::new(ErrorKind::InvalidData, DOING, detail)
            };
            if number >= self.frame.nchunks() {
                return Err(wrong(end.to_string()));
            }
            let len = self.frame.chunk_nbytes(number);
            end = end.saturating_add(len.map_err(|error| Error::from_frame(DOING, error))?);
            if end > nbytes {
                return Err(wrong(format!("at least {end}")));
            }
            self.ends.push(end);
        }
        let number = self.ends.partition_point(|&end| end <= self.position);
        let start = if number == 0 { 0 } else { self.ends[number - 1] };
        Ok((number as u64, start..self.ends[number]))
    }

    /// Reads the chunk that contains the position to `stored`, if it is not there already. At the end of the data,
    /// `stored` becomes `None`.
    fn load(&mut self) -> Result<()> {
        let is_it = |stored: &Stored| stored.range.contains(&self.position);
        if self.stored.as_ref().is_some_and(is_it) {
            return Ok(());
        }
        // Reuses the memory of the last chunk.
        let mut bytes = self.stored.take().map(|old| old.chunk.into_bytes()).unwrap_or_default();
        if self.position >= self.nbytes() {
            return Ok(());
        }
        let (number, range) = self.find()?;
        let doing = format!("read chunk {number} of a frame");
        let failed = |error| Error::from_frame(&doing, error);
        self.frame.chunk_into(number, &mut bytes).map_err(failed)?;
        name_streams(&mut bytes, self.frame.header().typesize);
        let chunk = Chunk::new(bytes)?;
        if chunk.needs_shape() {
            let detail = "it needs the shape of its array; open it as an array";
            return Err(Error::new(ErrorKind::Unsupported, doing, detail));
        }
        if chunk.nbytes() != len(&range) {
            let detail = format!("it has {} bytes, expected {}", chunk.nbytes(), len(&range));
            return Err(Error::new(ErrorKind::InvalidData, doing, detail));
        }
        self.stored = Some(Stored { chunk, range });
        Ok(())
    }
}

impl<R: Read + Seek> fmt::Debug for FrameReader<R> {
    /// Writes the sizes, not the data.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrameReader")
            .field("nbytes", &self.nbytes())
            .field("typesize", &self.typesize())
            .field("chunksize", &self.chunksize())
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

/// A compressed chunk, and its range in the data.
struct Stored {
    chunk: Chunk,
    range: Range<u64>,
}

impl Stored {
    /// Returns the range to decompress for the byte at `position`, which is inside the chunk: the whole chunk, or a
    /// part that can be decompressed alone.
    fn piece(&self, position: u64) -> Range<u64> {
        if self.chunk.header().is_compressed() {
            return self.range.clone();
        }
        position..self.range.end.min(position.saturating_add(PIECE))
    }

    /// Decompresses the data from `start` on into `target`. The chunk contains enough data.
    fn decompress(
        &self,
        decompressor: &mut Decompressor,
        start: u64,
        target: &mut [u8],
    ) -> Result<()> {
        decompressor.items_into(&self.chunk, len(&(self.range.start..start)), target)
    }
}

impl<R: Read + Seek> Read for FrameReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let mut count = self.read_directly(buffer)?;
        if count == 0 {
            let rest = self.rest()?;
            count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
        }
        self.consume(count);
        Ok(count)
    }
}

impl<R: Read + Seek> BufRead for FrameReader<R> {
    /// Returns bytes from the position on, at most up to the end of the current chunk. Returns an empty slice at the
    /// end of the data.
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        Ok(self.rest()?)
    }

    fn consume(&mut self, amount: usize) {
        self.position = self.position.saturating_add(amount as u64);
    }
}

impl<R: Read + Seek> Seek for FrameReader<R> {
    /// Sets the position in the data. If the position is after the end of the data, reads return 0 bytes.
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let (from, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::End(by) => (self.nbytes(), by),
            SeekFrom::Current(by) => (self.position, by),
        };
        self.position = from.checked_add_signed(by).ok_or_else(|| {
            let detail = format!("there is no position {by} bytes from {from}");
            Error::new(ErrorKind::InvalidArgument, "seek in a frame", detail)
        })?;
        Ok(self.position)
    }
}

/// Returns the chunk size; `None` for variable-length chunks or if the size is unknown.
fn chunksize<R: ReadAt>(frame: &Frame<R>) -> Option<u64> {
    frame.header().chunksize.fixed().map(u64::from)
}

/// Returns the length of a range.
fn len(range: &Range<u64>) -> usize {
    usize::try_from(range.end - range.start).unwrap_or(usize::MAX)
}

/// Writes the number of streams of the filter bytedelta into a chunk. If a chunk contains 0, the number is the typesize
/// of the super-chunk, which C does not know here.
fn name_streams(chunk: &mut [u8], typesize: u32) {
    let (Ok(header), Ok(typesize)) = (Header::parse(chunk), u8::try_from(typesize)) else { return };
    if !header.extended {
        return;
    }
    for (slot, code) in header.filters.into_iter().enumerate() {
        let meta = &mut chunk[METAS_AT + slot];
        if *meta == 0 && filter::is_bytedelta(code) {
            *meta = typesize;
        }
    }
}

/// The bytes of a stream from its initial position on, with random access.
#[derive(Debug)]
struct Tail<R> {
    reader: Mutex<R>,
    start: u64,
    len: u64,
}

impl<R: Seek> Tail<R> {
    fn new(mut reader: R) -> io::Result<Self> {
        let start = reader.stream_position()?;
        let len = reader.seek(SeekFrom::End(0))?.saturating_sub(start);
        Ok(Self { reader: Mutex::new(reader), start, len })
    }
}

impl<R: Read + Seek> ReadAt for Tail<R> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let place = self.start.checked_add(offset).ok_or(io::ErrorKind::UnexpectedEof)?;
        let mut reader = self.reader.lock();
        reader.seek(SeekFrom::Start(place))?;
        reader.read_exact(buffer)
    }
}
