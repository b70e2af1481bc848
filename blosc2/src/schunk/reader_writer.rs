//! The data of a super-chunk as a stream: `Read`, `BufRead`, `Seek` and `Write`.

use std::borrow::{Borrow, BorrowMut};
use std::fmt;
use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use super::{Access, SChunk};
use crate::codec::params::MAX_CHUNK_LEN;
use crate::support::memory::Target;
use crate::{Doing, Error, ErrorKind, Result};

const WRITE: &str = "write the content of a super-chunk";
const TAKEN: &str = "only `finish` takes the super-chunk";

/// A stream of the decompressed data of a [`SChunk`]. It implements `Read`, `BufRead` and `Seek`.
///
/// The super-chunk can be borrowed, owned or shared: `S` is `&SChunk`, `SChunk` or `Arc<SChunk>`. The reader buffers up
/// to 1 MiB of decompressed data. The data of an array is in the order of its chunks and includes their padding.
///
/// ```
/// use std::io::{Cursor, Read, Seek, SeekFrom};
///
/// use blosc2::storage::{ReadOnly, Seekable};
/// use blosc2::{CParams, OpenOptions, SChunk, SChunkReader, Target};
///
/// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
/// schunk.append(b"some bytes")?;
/// let mut reader = SChunkReader::new(&schunk);
/// reader.seek(SeekFrom::Start(5))?;
/// let mut text = String::new();
/// reader.read_to_string(&mut text)?;
/// assert_eq!(text, "bytes");
///
/// // A frame in a value that implements `Read` and `Seek`.
/// let source = Cursor::new(schunk.to_cframe()?);
/// let schunk = OpenOptions::new().open(Target::storage(ReadOnly::new(Seekable::new(source))))?;
/// text.clear();
/// SChunkReader::new(schunk).read_to_string(&mut text)?;
/// assert_eq!(text, "some bytes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SChunkReader<S> {
    schunk: S,
    at: u64,
    /// Decompressed bytes, which start at the offset `start` of the data.
    piece: Vec<u8>,
    start: u64,
}

impl<S: Borrow<SChunk>> SChunkReader<S> {
    /// Creates a reader at the start of the data.
    pub fn new(schunk: S) -> Self {
        Self { schunk, at: 0, piece: Vec::new(), start: 0 }
    }

    /// Returns the super-chunk.
    pub fn get_ref(&self) -> &SChunk {
        self.schunk.borrow()
    }

    /// Returns the owned or borrowed super-chunk.
    pub fn into_inner(self) -> S {
        self.schunk
    }
}

impl<S: Borrow<SChunk>> Read for SChunkReader<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.get_ref().nbytes().saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let ahead = self.start..self.start + self.piece.len() as u64;
        if len > 1 << 20 && !ahead.contains(&self.at) {
            // Reads into the buffer without a copy.
            self.get_ref().read_to(self.at, Target::of(&mut buffer[..len]))?;
            self.at += len as u64;
            return Ok(len);
        }
        let there = self.fill_buf()?;
        let len = there.len().min(buffer.len());
        buffer[..len].copy_from_slice(&there[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl<S: Borrow<SChunk>> BufRead for SChunkReader<S> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let end = self.start + self.piece.len() as u64;
        if !(self.start..end).contains(&self.at) {
            let range = self.get_ref().piece(self.at)?;
            // At most 1 MiB.
            let len = (range.end - range.start) as usize;
            self.piece.clear();
            self.piece.resize(len, 0);
            self.start = self.at;
            let target = Target::of(&mut self.piece);
            if let Err(error) = self.schunk.borrow().read_to(range.start, target) {
                self.piece.clear();
                return Err(error.into());
            }
        }
        Ok(&self.piece[(self.at - self.start) as usize..])
    }

    fn consume(&mut self, len: usize) {
        let end = self.start + self.piece.len() as u64;
        self.at = self.at.saturating_add(len as u64).min(end.max(self.at));
    }
}

impl<S: Borrow<SChunk>> Seek for SChunkReader<S> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.get_ref().nbytes().checked_add_signed(by),
        };
        let before = "the position is before the start";
        self.at = target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, before))?;
        Ok(self.at)
    }
}

impl<S: Borrow<SChunk>> fmt::Debug for SChunkReader<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("SChunkReader");
        fields.field("schunk", self.get_ref()).field("at", &self.at).finish_non_exhaustive()
    }
}

/// A stream that appends data to a [`SChunk`], in chunks of one size. It implements `Write`.
///
/// The super-chunk can be borrowed or owned: `S` is `&mut SChunk` or `SChunk`. The writer stores each chunk when it is
/// complete. [`finish`](Self::finish) and `flush` also store the last, shorter chunk. Dropping the writer stores this
/// chunk too, but ignores errors.
///
/// If the last chunk of the super-chunk is shorter than the chunk size, the writer first fills this chunk. With
/// [locking](crate::OpenOptions::locking), other handles may append chunks while the writer exists. The writer then
/// stores its buffered data after these chunks.
///
/// ```
/// use std::io::Write;
///
/// use blosc2::{CParams, SChunk, SChunkWriter};
///
/// let schunk = SChunk::in_memory::<u8>(&CParams::default())?;
/// let mut writer = SChunkWriter::new(schunk, 1000)?;
/// for number in 0..1000 {
///     writeln!(writer, "line {number}")?;
/// }
/// let schunk = writer.finish()?;
/// assert_eq!((schunk.nbytes(), schunk.nchunks()), (8890, 9));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct SChunkWriter<S: BorrowMut<SChunk>> {
    /// `None` only after [`finish`](Self::finish).
    schunk: Option<S>,
    chunksize: usize,
    /// Buffered data, which is in no chunk yet.
    rest: Vec<u8>,
    /// Whether the last chunk was written before it was full.
    is_cut: bool,
}

impl<S: BorrowMut<SChunk>> SChunkWriter<S> {
    /// Creates a writer that appends chunks of `chunksize` bytes. If the super-chunk already has a chunk size, the writer
    /// ignores `chunksize` and uses that size. A chunk size of 1 MiB suits most data.
    ///
    /// # Errors
    /// Fails with the [errors of reading](SChunk#errors-of-reading), and with
    /// - [`ErrorKind::ReadOnly`]: the super-chunk was opened for reading; or it was opened for appending, and the last
    ///   chunk is shorter than the chunk size;
    /// - [`ErrorKind::InvalidArgument`]: the super-chunk has no chunk size, and `chunksize` is 0, greater than
    ///   [`MAX_CHUNK_LEN`](crate::limits::MAX_CHUNK_LEN) or not a multiple of the typesize; or the super-chunk has
    ///   variable-length chunks or blocks, or belongs to an array;
    /// - [`ErrorKind::Unsupported`]: the last chunk is shorter than the chunk size, and a prefilter or postfilter is
    ///   set (it would run a second time on the data of that chunk).
    pub fn new(owner: S, chunksize: usize) -> Result<Self> {
        let schunk = owner.borrow();
        schunk.check_change(Access::Append).doing(WRITE)?;
        // Reads the changes of other handles.
        drop(schunk.reading()?);
        let (chunksize, last) = check_writable(schunk, chunksize)?;
        let invalid = |detail| schunk.error(ErrorKind::InvalidArgument, detail).doing(WRITE);
        if !(1..=MAX_CHUNK_LEN).contains(&chunksize) {
            return Err(invalid(format!(
                "a chunk has 1 to {MAX_CHUNK_LEN} bytes, got {chunksize}"
            )));
        }
        if schunk.chunksize() == 0 && !chunksize.is_multiple_of(schunk.typesize) {
            let typesize = schunk.typesize;
            return Err(invalid(format!(
                "a chunk size is a multiple of the typesize {typesize}, got {chunksize}"
            )));
        }
        if last < chunksize && schunk.nchunks() > 0 {
            check_rewrite(schunk)?;
        }
        Ok(Self { schunk: Some(owner), chunksize, rest: Vec::new(), is_cut: false })
    }

    /// Stores the remaining buffered data. Returns the owned or borrowed super-chunk.
    ///
    /// After an error, an owned super-chunk is dropped. To handle an error without this loss, call
    /// [`flush`](std::io::Write::flush) first, or write to a `&mut SChunk`.
    ///
    /// # Errors
    /// Fails with the [errors of reading](SChunk#errors-of-reading), with the [errors of
    /// changes](SChunk#errors-of-changes), and with
    /// - [`ErrorKind::InvalidArgument`]: another handle has changed the chunk size, or has stored variable-length
    ///   chunks.
    pub fn finish(mut self) -> Result<S> {
        let stored = self.store(true);
        // Without the super-chunk, the destructor does not write the data whose write has failed.
        let schunk = self.schunk.take().expect(TAKEN);
        stored.map(|()| schunk)
    }

    /// Writes the buffered data that fills chunks, or all buffered data. Removes the written data from the buffer, even
    /// after an error.
    fn store(&mut self, all: bool) -> Result<()> {
        let Self { schunk, chunksize, rest, is_cut } = self;
        let (schunk, size) = (schunk.as_mut().expect(TAKEN).borrow_mut(), *chunksize);
        // The lock is held, so that no other handle changes the last chunk.
        schunk.with_lock(|schunk| {
            drop(schunk.reading()?);
            while !rest.is_empty() {
                let (found, last) = match (schunk.nchunks(), *is_cut) {
                    // This writer has written the only chunk before it was full. It may still grow to the chunk size.
                    (1, true) => (size, schunk.nbytes() as usize),
                    _ => check_writable(schunk, size)?,
                };
                if found != size {
                    let detail = format!("the chunk size was {size} bytes, now it is {found}");
                    return Err(schunk.error(ErrorKind::InvalidArgument, detail).doing(WRITE));
                }
                let short = schunk.nchunks() > 0 && last < size;
                let room = if short { size - last } else { size };
                if rest.len() < room && !all {
                    break;
                }
                let count = room.min(rest.len());
                if short {
                    check_rewrite(schunk)?;
                    let index = schunk.nchunks() - 1;
                    let mut data = schunk.decompress_chunk::<u8>(index)?;
                    data.extend_from_slice(&rest[..count]);
                    let chunk = schunk.compressed_bytes(Some(index), &data).doing(WRITE)?;
                    schunk.put(vec![(index, chunk.into())])?;
                } else {
                    schunk.append_bytes(&rest[..count])?;
                }
                *is_cut = count < room;
                rest.drain(..count);
            }
            Ok(())
        })
    }
}

impl<S: BorrowMut<SChunk>> Write for SChunkWriter<S> {
    /// Accepts bytes until the buffer contains one chunk; the returned number of bytes can be less than the length of
    /// `data`.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.is_cut && !data.is_empty() {
            check_rewrite(self.schunk.as_ref().expect(TAKEN).borrow())?;
        }
        let taken = &data[..data.len().min(self.chunksize.saturating_sub(self.rest.len()))];
        self.rest.try_reserve(taken.len())?;
        self.rest.extend_from_slice(taken);
        if self.rest.len() < self.chunksize {
            return Ok(taken.len());
        }
        match self.store(false) {
            Ok(()) => Ok(taken.len()),
            Err(error) => {
                // Bytes of this call that are in no chunk count as not written.
                let left = self.rest.len().min(taken.len());
                self.rest.truncate(self.rest.len() - left);
                if left < taken.len() { Ok(taken.len() - left) } else { Err(error.into()) }
            }
        }
    }

    /// Stores the buffered data as a shorter chunk. Later writes first fill this chunk.
    ///
    /// Later writes fail if the super-chunk was opened for appending, or has a prefilter or postfilter: the shorter
    /// chunk then cannot be replaced.
    fn flush(&mut self) -> io::Result<()> {
        self.store(true).map_err(Error::into)
    }
}

impl<S: BorrowMut<SChunk>> Drop for SChunkWriter<S> {
    fn drop(&mut self) {
        if self.schunk.is_some() {
            let _ = self.store(true);
        }
    }
}

impl<S: BorrowMut<SChunk>> fmt::Debug for SChunkWriter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut fields = f.debug_struct("SChunkWriter");
        fields.field("schunk", &self.schunk.as_ref().map(Borrow::borrow));
        fields.field("chunksize", &self.chunksize).field("rest", &self.rest.len());
        fields.finish_non_exhaustive()
    }
}

/// Returns the chunk size of the existing chunks, or `chunksize` if they have none, and the size of the last chunk.
fn check_writable(schunk: &SChunk, chunksize: usize) -> Result<(usize, usize)> {
    schunk.check_no_array().doing(WRITE)?;
    if schunk.has_variable_chunks() || schunk.has_variable_blocks() {
        let detail = "its chunks or blocks have different sizes";
        return Err(schunk.error(ErrorKind::InvalidArgument, detail).doing(WRITE));
    }
    let chunksize = match schunk.chunksize() {
        0 => chunksize,
        size => size,
    };
    let before = chunksize as u64 * schunk.nchunks().saturating_sub(1) as u64;
    // At most a chunk size.
    Ok((chunksize, schunk.nbytes().saturating_sub(before) as usize))
}

/// Checks that the last chunk may be replaced by a longer one.
fn check_rewrite(schunk: &SChunk) -> Result<()> {
    schunk.check_change(Access::Write).doing(WRITE)?;
    schunk.check_unfiltered().doing(WRITE)
}
