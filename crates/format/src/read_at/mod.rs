//! Sources of bytes with random access.

mod paged;

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

pub use paged::Paged;

/// A source of bytes with random access, such as a file, a slice or a custom storage backend.
///
/// ```
/// use blosc2_format::ReadAt;
///
/// let source = b"0123456789".as_slice();
/// assert_eq!(source.size()?, 10);
/// assert_eq!(source.read_vec_at(3, 4)?, b"3456");
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait ReadAt {
    /// Returns the size of the source, in bytes.
    ///
    /// # Errors
    /// The errors of the source.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// - [`ErrorKind::UnexpectedEof`]: the source ends before `offset + buffer.len()`;
    /// - the errors of the source.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Returns the `len` bytes at `offset`. The default implementation compares the range with the
    /// size of the source before it allocates memory. It reads a long range in parts, because a
    /// source can state a size that it does not have.
    ///
    /// # Errors
    /// Fails with the errors of [`size`](Self::size) and [`read_exact_at`](Self::read_exact_at),
    /// and with [`ErrorKind::OutOfMemory`].
    fn read_vec_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let size = self.size()?;
        if offset.checked_add(len).is_none_or(|end| end > size) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        let mut buffer = vec![0; len.min(PART)];
        self.read_exact_at(offset, &mut buffer)?;
        while buffer.len() < len {
            let done = buffer.len();
            let part = (len - done).min(done);
            buffer.try_reserve_exact(part).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
            buffer.resize(done + part, 0);
            self.read_exact_at(offset + done as u64, &mut buffer[done..])?;
        }
        Ok(buffer)
    }

    /// Fills each buffer with the bytes at its offset.
    ///
    /// The default implementation calls [`read_exact_at`](Self::read_exact_at) for each range. A source with a high
    /// latency, such as an object store, should request all ranges at the same time.
    ///
    /// # Errors
    /// Fails with the errors of [`read_exact_at`](Self::read_exact_at). Some of the buffers may
    /// already be filled.
    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        ranges.iter_mut().try_for_each(|(offset, buffer)| self.read_exact_at(*offset, buffer))
    }

    /// Returns the cost of one request, in bytes: the number of bytes that the source can transfer
    /// during the latency of a request. The default implementation returns
    /// [`DEFAULT_REQUEST_COST`], which suits files and memory.
    ///
    /// To save requests, readers also read gaps of up to this number of bytes between required
    /// ranges. If the cost is higher than the default, the readers of arrays and super-chunks
    /// request the ranges of many chunks with each call of
    /// [`read_ranges_at`](Self::read_ranges_at). They also read the next chunks while they
    /// decompress the previous ones.
    fn request_cost(&self) -> u64 {
        DEFAULT_REQUEST_COST
    }
}

/// The bytes that [`ReadAt::read_vec_at`] allocates before it has read some of them.
const PART: usize = 64 << 20;

/// The default of [`ReadAt::request_cost`], in bytes.
pub const DEFAULT_REQUEST_COST: u64 = 4096;

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let from = usize::try_from(offset).ok();
        let from = from.and_then(|offset| self.get(offset..)?.get(..buffer.len()));
        buffer.copy_from_slice(from.ok_or(ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.as_slice().read_exact_at(offset, buffer)
    }
}

macro_rules! through_pointers {
    ($($pointer:ty),*) => {
        $(impl<T: ReadAt + ?Sized> ReadAt for $pointer {
            fn size(&self) -> io::Result<u64> {
                (**self).size()
            }

            fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
                (**self).read_exact_at(offset, buffer)
            }

            fn read_vec_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
                (**self).read_vec_at(offset, len)
            }

            fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
                (**self).read_ranges_at(ranges)
            }

            fn request_cost(&self) -> u64 {
                (**self).request_cost()
            }
        })*
    };
}

through_pointers!(&T, Box<T>, Arc<T>);

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    #[cfg(unix)]
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::read_exact_at(self, buffer, offset)
    }

    /// Moves the cursor of the file, because Windows has no positioned read without this effect.
    #[cfg(windows)]
    fn read_exact_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
            // Windows would read from the cursor at the offset 2^64 - 2.
            if i64::try_from(offset).is_err() {
                return Err(ErrorKind::InvalidInput.into());
            }
            match std::os::windows::fs::FileExt::seek_read(self, buffer, offset) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    buffer = &mut buffer[read..];
                    offset += read as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Fails: without positioned reads, threads that share the file would move each other's cursor.
    #[cfg(not(any(unix, windows)))]
    fn read_exact_at(&self, _: u64, _: &mut [u8]) -> io::Result<()> {
        Err(ErrorKind::Unsupported.into())
    }
}

/// A source that starts at an offset of another source, such as a frame inside a larger file.
///
/// ```
/// use blosc2_format::ReadAt;
/// use blosc2_format::read_at::AtOffset;
///
/// let source = AtOffset::new(b"prefix frame".to_vec(), 7);
/// assert_eq!(source.read_vec_at(0, source.size()?)?, b"frame");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct AtOffset<R> {
    source: R,
    start: u64,
}

impl<R: ReadAt> AtOffset<R> {
    /// Returns a source that contains the bytes of `source` from byte `start` on. The returned
    /// source is empty if `source` ends before `start`.
    pub fn new(source: R, start: u64) -> Self {
        Self { source, start }
    }
}

impl<R: ReadAt> ReadAt for AtOffset<R> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.source.size()?.saturating_sub(self.start))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.source.read_exact_at(self.in_source(offset)?, buffer)
    }

    fn read_vec_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        self.source.read_vec_at(self.in_source(offset)?, len)
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let shifted =
            ranges.iter_mut().map(|(offset, buffer)| Ok((self.in_source(*offset)?, &mut **buffer)));
        self.source.read_ranges_at(&mut shifted.collect::<io::Result<Vec<_>>>()?)
    }

    fn request_cost(&self) -> u64 {
        self.source.request_cost()
    }
}

impl<R> AtOffset<R> {
    /// Converts an offset to one in the source.
    fn in_source(&self, offset: u64) -> io::Result<u64> {
        self.start.checked_add(offset).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}

/// A source whose first and last bytes are read in advance, because opening a frame reads many
/// small parts of both ends.
#[derive(Debug)]
pub(crate) struct Ends<'a, R: ?Sized> {
    source: &'a R,
    size: u64,
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl<'a, R: ReadAt + ?Sized> Ends<'a, R> {
    /// The number of bytes at each end, which covers most headers, and most indexes with trailers.
    const LEN: u64 = 4096;

    /// Reads both ends with one call.
    ///
    /// # Errors
    /// The errors of the source.
    pub(crate) fn of(source: &'a R) -> io::Result<Self> {
        let size = source.size()?;
        let tail = size.saturating_sub(Self::LEN).max(Self::LEN.min(size));
        // Both lengths are at most `LEN`.
        let mut ends = Self {
            source,
            size,
            head: vec![0; size.min(Self::LEN) as usize],
            tail: vec![0; (size - tail) as usize],
        };
        let mut ranges = [(0, &mut ends.head[..]), (tail, &mut ends.tail[..])];
        let count = if size > Self::LEN { 2 } else { 1 };
        source.read_ranges_at(&mut ranges[..count])?;
        Ok(ends)
    }
}

impl<R: ReadAt + ?Sized> ReadAt for Ends<'_, R> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let tail = self.size - self.tail.len() as u64;
        let (kept, from) =
            if offset >= tail { (&self.tail, offset - tail) } else { (&self.head, offset) };
        let part =
            usize::try_from(from).ok().and_then(|from| kept.get(from..)?.get(..buffer.len()));
        match part {
            Some(bytes) => {
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            None => self.source.read_exact_at(offset, buffer),
        }
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        self.source.read_ranges_at(ranges)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_is_there_and_nothing_else() {
        let bytes = vec![1u8, 2, 3, 4, 5];
        assert_eq!(bytes.read_vec_at(1, 3).unwrap(), [2, 3, 4]);
        assert_eq!(bytes.read_vec_at(5, 0).unwrap(), []);
        for (offset, len) in [(0, 6), (5, 1), (6, 0), (u64::MAX, 1), (1, u64::MAX)] {
            let error = bytes.read_vec_at(offset, len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::UnexpectedEof, "{len} at {offset}");
        }
        let part = AtOffset::new(&bytes, 2);
        assert_eq!(part.size().unwrap(), 3);
        assert_eq!(part.read_vec_at(0, 3).unwrap(), [3, 4, 5]);
        assert!(part.read_vec_at(0, 4).is_err());
        assert!(part.read_vec_at(u64::MAX, 1).is_err());
        let (mut first, mut last) = ([0; 1], [0; 2]);
        part.read_ranges_at(&mut [(0, &mut first), (1, &mut last)]).unwrap();
        assert_eq!((first, last), ([3], [4, 5]));
        assert!(part.read_ranges_at(&mut [(0, &mut first), (2, &mut last)]).is_err());
        assert_eq!(AtOffset::new(&bytes, 9).size().unwrap(), 0);
    }

    /// A source that states a size that it does not have.
    struct Stated;

    impl ReadAt for Stated {
        fn size(&self) -> io::Result<u64> {
            Ok(1 << 30)
        }

        fn read_exact_at(&self, _: u64, buffer: &mut [u8]) -> io::Result<()> {
            Err(io::Error::other(format!("{} bytes", buffer.len())))
        }
    }

    #[test]
    fn no_memory_is_allocated_for_bytes_that_a_source_does_not_have() {
        let error = Stated.read_vec_at(0, 1 << 30).unwrap_err();
        assert_eq!(error.to_string(), format!("{PART} bytes"));
    }

    #[test]
    fn ends_are_those_of_the_source() {
        for size in [0usize, 1, 4095, 4096, 4097, 8191, 8192, 8193, 20_000] {
            let bytes: Vec<u8> = (0..size).map(|at| (at / 7) as u8).collect();
            let ends = Ends::of(&bytes[..]).unwrap();
            assert_eq!(ends.size().unwrap(), size as u64);
            for start in [0, 1, 4000, 4095, 4096, 8000, 12_000, 19_999, 20_000] {
                for len in [0usize, 1, 96, 97, 5000, 20_000] {
                    let mut found = vec![0; len];
                    let read = ends.read_exact_at(start as u64, &mut found);
                    match bytes.get(start..).and_then(|rest| rest.get(..len)) {
                        Some(expected) => {
                            read.unwrap();
                            assert_eq!(found, expected, "{size}: {start}+{len}");
                        }
                        None => assert!(read.is_err(), "{size}: {start}+{len}"),
                    }
                }
            }
        }
    }
}
