//! Implementations of [`Storage`] for files, vectors and boxes.

use std::fs::File;
use std::io::{self, ErrorKind};

use super::Storage;

impl Storage for File {
    #[cfg(unix)]
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    /// Changes the position of the file: Windows has no write at an offset that leaves the position unchanged.
    #[cfg(windows)]
    fn write_all_at(&mut self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            // Windows would append at the offset 2^64 - 1.
            if i64::try_from(offset).is_err() {
                return Err(ErrorKind::InvalidInput.into());
            }
            match std::os::windows::fs::FileExt::seek_write(self, bytes, offset) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => {
                    bytes = &bytes[written..];
                    offset += written as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }

    fn file(&self) -> Option<&File> {
        Some(self)
    }
}

impl Storage for Vec<u8> {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| ErrorKind::OutOfMemory)?;
        let end = start.checked_add(bytes.len()).ok_or(ErrorKind::OutOfMemory)?;
        if end > self.len() {
            resize(self, end)?;
        }
        self[start..end].copy_from_slice(bytes);
        Ok(())
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        resize(self, usize::try_from(len).map_err(|_| ErrorKind::OutOfMemory)?)
    }

    fn take_vec(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(self))
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

/// Resizes a vector; returns an error instead of aborting if there is not enough memory.
pub(super) fn resize(bytes: &mut Vec<u8>, len: usize) -> io::Result<()> {
    bytes.try_reserve(len.saturating_sub(bytes.len())).map_err(|_| ErrorKind::OutOfMemory)?;
    bytes.resize(len, 0);
    Ok(())
}

impl<S: Storage + ?Sized> Storage for Box<S> {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        (**self).write_all_at(offset, bytes)
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        (**self).set_size(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        (**self).sync()
    }

    fn file(&self) -> Option<&File> {
        (**self).file()
    }

    fn take_vec(&mut self) -> Option<Vec<u8>> {
        (**self).take_vec()
    }

    fn as_bytes(&self) -> Option<&[u8]> {
        (**self).as_bytes()
    }
}
