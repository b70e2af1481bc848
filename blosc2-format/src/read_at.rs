//! Bytes that can be read from any position.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::sync::Arc;

/// Bytes that can be read from any position, such as a file or a slice.
pub trait ReadAt {
    /// How many bytes there are.
    ///
    /// # Errors
    /// The source's own.
    fn size(&self) -> io::Result<u64>;

    /// Fills `buffer` with the bytes at `offset`.
    ///
    /// # Errors
    /// The source's own, and [`ErrorKind::UnexpectedEof`] where it ends before.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// The `len` bytes at `offset`; memory grows as they arrive, up to the size of the source.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at).
    fn read_vec_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        let end = offset.checked_add(len);
        if end.is_none_or(|end| self.size().is_ok_and(|size| end > size)) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        let len = usize::try_from(len).map_err(|_| io::Error::from(ErrorKind::OutOfMemory))?;
        let mut buffer = vec![0; len];
        self.read_exact_at(offset, &mut buffer)?;
        Ok(buffer)
    }

    /// Fills each buffer with the bytes at its offset.
    ///
    /// A source where each request takes long, such as one on another machine, should ask for all of them at once. By
    /// default they are read one after the other.
    ///
    /// # Errors
    /// As [`read_exact_at`](Self::read_exact_at); some of the buffers may have been filled then.
    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        ranges.iter_mut().try_for_each(|(offset, buffer)| self.read_exact_at(*offset, buffer))
    }
}

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

    /// Moves the file's own position, as the system has no other way.
    #[cfg(windows)]
    fn read_exact_at(&self, mut offset: u64, mut buffer: &mut [u8]) -> io::Result<()> {
        while !buffer.is_empty() {
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
}

/// The bytes of another source from a position on: a frame inside a larger file.
#[derive(Debug, Clone)]
pub struct Tail<R> {
    source: R,
    start: u64,
}

impl<R: ReadAt> Tail<R> {
    /// What `source` holds from `start` on; nothing where it ends before.
    pub fn new(source: R, start: u64) -> Self {
        Self { source, start }
    }
}

impl<R: ReadAt> ReadAt for Tail<R> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.source.size()?.saturating_sub(self.start))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let offset = self.start.checked_add(offset).ok_or(ErrorKind::UnexpectedEof)?;
        self.source.read_exact_at(offset, buffer)
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
        let part = Tail::new(&bytes, 2);
        assert_eq!(part.size().unwrap(), 3);
        assert_eq!(part.read_vec_at(0, 3).unwrap(), [3, 4, 5]);
        assert!(part.read_vec_at(0, 4).is_err());
        assert_eq!(Tail::new(&bytes, 9).size().unwrap(), 0);
    }
}
