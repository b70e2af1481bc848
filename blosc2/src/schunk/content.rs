//! The content as a stream: `Read`, `BufRead`, `Seek` and `Write`.

use std::io::{self, BufRead, Read, Seek, SeekFrom, Write};

use super::{Access, SChunk};
use crate::memory::Target;
use crate::params::MAX_CHUNK_LEN;
use crate::{Error, ErrorKind, Result};

const WRITE: &str = "write the content of a super-chunk";

impl SChunk {
    /// The decompressed content, to be read as a stream.
    ///
    /// ```
    /// use std::io::{BufRead, Write};
    /// use blosc2::{CParams, SChunk};
    ///
    /// let mut schunk = SChunk::in_memory::<u8>(&CParams::default())?;
    /// let mut writer = schunk.writer(1 << 20)?;
    /// writer.write_all(b"one line\nand another\n")?;
    /// writer.finish()?;
    /// let lines: Vec<String> = schunk.reader().lines().collect::<Result<_, _>>()?;
    /// assert_eq!(lines, ["one line", "and another"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reader(&self) -> SChunkReader<'_> {
        SChunkReader { schunk: self, at: 0, piece: Vec::new(), start: 0 }
    }

    /// Appends what is written to it, chunk by chunk of `chunksize` bytes, or of those that the chunks
    /// have already.
    ///
    /// A last chunk that is shorter is filled up first. Chunks that others append meanwhile, to a file that is
    /// locked, come before what is not written yet.
    ///
    /// # Errors
    /// - [`ErrorKind::ReadOnly`]: opened for reading; or a shorter last chunk would have to be replaced,
    ///   and it was opened for appending;
    /// - [`ErrorKind::InvalidArgument`]: a chunk size of 0, above [`MAX_CHUNK_LEN`] or of no whole items; chunks
    ///   of different sizes or those of an array;
    /// - [`ErrorKind::Unsupported`]: a shorter last chunk, and a prefilter or a postfilter, which would be run on
    ///   its data once more.
    pub fn writer(&mut self, chunksize: usize) -> Result<SChunkWriter<'_>> {
        self.check_change(WRITE, Access::Append)?;
        // What others have changed.
        drop(self.reading()?);
        let (chunksize, last) = self.check_writable(chunksize)?;
        let invalid = |detail| self.error(ErrorKind::InvalidArgument, WRITE, detail);
        if !(1..=MAX_CHUNK_LEN).contains(&chunksize) {
            return Err(invalid(format!(
                "a chunk has 1 to {MAX_CHUNK_LEN} bytes, got {chunksize}"
            )));
        }
        if self.chunksize() == 0 && !chunksize.is_multiple_of(self.typesize) {
            let typesize = self.typesize;
            return Err(invalid(format!("chunks of {chunksize} bytes cut items of {typesize}")));
        }
        if last < chunksize && self.nchunks() > 0 {
            self.check_rewrite()?;
        }
        Ok(SChunkWriter { schunk: self, chunksize, rest: Vec::new(), is_cut: false })
    }

    /// The size of chunks, which is that of those that are there, and of the last one.
    fn check_writable(&self, chunksize: usize) -> Result<(usize, usize)> {
        self.check_no_array(WRITE)?;
        if self.has_variable_chunks() || self.has_variable_blocks() {
            let detail = "its chunks or blocks have different sizes";
            return Err(self.error(ErrorKind::InvalidArgument, WRITE, detail));
        }
        let chunksize = match self.chunksize() {
            0 => chunksize,
            size => size,
        };
        let before = chunksize as u64 * self.nchunks().saturating_sub(1) as u64;
        // At most the size of a chunk.
        Ok((chunksize, self.nbytes().saturating_sub(before) as usize))
    }

    /// Sees that the last chunk may be replaced by a longer one.
    fn check_rewrite(&self) -> Result<()> {
        self.check_change(WRITE, Access::Write)?;
        self.check_unfiltered(WRITE)
    }
}

/// Reads the content of a [`SChunk`]. Made by [`SChunk::reader`].
///
/// At most a MiB is decompressed ahead.
#[derive(Debug)]
pub struct SChunkReader<'a> {
    schunk: &'a SChunk,
    at: u64,
    /// Decompressed bytes, and where they start.
    piece: Vec<u8>,
    start: u64,
}

impl Read for SChunkReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.schunk.nbytes().saturating_sub(self.at);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let ahead = self.start..self.start + self.piece.len() as u64;
        if len > 1 << 20 && !ahead.contains(&self.at) {
            // Without a copy.
            self.schunk.read_to(self.at, Target::of(&mut buffer[..len]))?;
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

impl BufRead for SChunkReader<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let end = self.start + self.piece.len() as u64;
        if !(self.start..end).contains(&self.at) {
            let range = self.schunk.piece(self.at)?;
            // At most a MiB.
            let len = (range.end - range.start) as usize;
            self.piece.clear();
            self.piece.resize(len, 0);
            self.start = self.at;
            if let Err(error) = self.schunk.read_to(range.start, Target::of(&mut self.piece)) {
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

impl Seek for SChunkReader<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let target = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
            SeekFrom::End(by) => self.schunk.nbytes().checked_add_signed(by),
        };
        let before = "the place is before the start";
        self.at = target.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, before))?;
        Ok(self.at)
    }
}

/// Appends to the content of a [`SChunk`]. Made by [`SChunk::writer`].
///
/// [`finish`](Self::finish) or `flush` write what fills no chunk; dropping it does so too, but cannot tell an
/// error.
#[derive(Debug)]
pub struct SChunkWriter<'a> {
    schunk: &'a mut SChunk,
    chunksize: usize,
    /// What is in no chunk yet.
    rest: Vec<u8>,
    /// Whether the last chunk was written before it was full.
    is_cut: bool,
}

impl SChunkWriter<'_> {
    /// Writes what is left.
    ///
    /// # Errors
    /// As for [`SChunk::append`].
    pub fn finish(mut self) -> Result<()> {
        self.store(true)
    }

    /// Writes what fills chunks, or `all` of it. What was written is in the rest no more, also after an error.
    fn store(&mut self, all: bool) -> Result<()> {
        let Self { schunk, chunksize, rest, is_cut } = self;
        let size = *chunksize;
        // Nobody changes the last chunk meanwhile.
        schunk.kept(|schunk| {
            drop(schunk.reading()?);
            while !rest.is_empty() {
                let (found, last) = match (schunk.nchunks(), *is_cut) {
                    // The only chunk, which may still become as long as all will be.
                    (1, true) => (size, schunk.nbytes() as usize),
                    _ => schunk.check_writable(size)?,
                };
                if found != size {
                    let detail = format!("chunks had {size} bytes, now they have {found}");
                    return Err(schunk.error(ErrorKind::InvalidArgument, WRITE, detail));
                }
                let short = schunk.nchunks() > 0 && last < size;
                let room = if short { size - last } else { size };
                if rest.len() < room && !all {
                    break;
                }
                let count = room.min(rest.len());
                if short {
                    schunk.check_rewrite()?;
                    let index = schunk.nchunks() - 1;
                    let mut data = schunk.decompress_chunk::<u8>(index)?;
                    data.extend_from_slice(&rest[..count]);
                    let chunk = schunk.compressed_bytes(WRITE, Some(index), &data)?;
                    schunk.put(&[(index, &chunk)])?;
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

impl Write for SChunkWriter<'_> {
    /// Takes at most what fills a chunk.
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if self.is_cut && !data.is_empty() {
            self.schunk.check_rewrite()?;
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
                // What of this call is in no chunk was not taken.
                let left = self.rest.len().min(taken.len());
                self.rest.truncate(self.rest.len() - left);
                if left < taken.len() { Ok(taken.len() - left) } else { Err(error.into()) }
            }
        }
    }

    /// Writes what is left as a shorter chunk, which is filled up by what comes later.
    ///
    /// Opened for appending, that cannot be, and nothing can be written after it.
    fn flush(&mut self) -> io::Result<()> {
        self.store(true).map_err(Error::into)
    }
}

impl Drop for SChunkWriter<'_> {
    fn drop(&mut self) {
        let _ = self.store(true);
    }
}
