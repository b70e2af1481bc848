//! Files that are mapped into memory.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use blosc2_format::ReadAt;
use memmap2::{Mmap, MmapMut, MmapOptions};

use super::token::Token;
use super::{Storage, read_only, types};
use crate::{Error, Result};

/// A [`Storage`] of a file that is mapped into memory: the system reads its pages when they are touched,
/// and compressed chunks are decompressed from where they are, without a copy.
///
/// It pays where chunks are small and the file is in the system's cache, or where many places of a large
/// file are read. A file that grows is mapped anew at each change of its length.
///
/// C's `blosc2_stdio_mmap`; the modes are Python's `mmap_mode`.
///
/// ```
/// use blosc2::{MappedFile, ReadAt};
///
/// let file = tempfile::NamedTempFile::new()?;
/// std::fs::write(&file, b"some bytes")?;
/// // SAFETY: nobody else knows this file.
/// let mapped = unsafe { MappedFile::open(file.path())? };
/// assert_eq!(mapped.read_vec_at(5, 5)?, b"bytes");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MappedFile(Mode);

enum Mode {
    Read(Mmap),
    /// No map is what is left where mapping has failed after the length was set.
    Write {
        file: File,
        map: Option<MmapMut>,
    },
    Private(MmapMut),
    /// A private map that has changed its length.
    Copied(Vec<u8>),
}

impl MappedFile {
    /// Maps a file for reading. Python's `mmap_mode="r"`.
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound), and [`Io`](crate::ErrorKind::Io) for what cannot be mapped.
    ///
    /// # Safety
    /// As long as this value lives, nobody changes the file or makes it shorter: no other program, and
    /// not this one by another handle, also not by another name of the file. Memory under references
    /// would change, which is undefined behaviour, and the system ends programs that read a page which the
    /// file has no longer (SIGBUS). Only whoever controls all that have access to the file can promise it,
    /// for which reason this is `unsafe`; locks do not help, as they bind those only that ask for them.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let map = || {
            let file = File::open(path)?;
            // SAFETY: the caller promises that the file stays as it is while it is mapped.
            unsafe { Mmap::map(&file) }
        };
        Ok(Self(Mode::Read(map().map_err(|error| not_mapped(path, error))?)))
    }

    /// Maps a file for reading and writing; what is written is in the file. Python's `mmap_mode="r+"`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`open`](Self::open), but that this value changes the file.
    pub unsafe fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let map = || {
            let file = File::options().read(true).write(true).open(path)?;
            // SAFETY: the caller promises that only this value changes the file while it is mapped.
            let map = unsafe { MmapMut::map_mut(&file)? };
            Ok(Mode::Write { file, map: Some(map) })
        };
        map().map(Self).map_err(|error| not_mapped(path, error))
    }

    /// Maps a file for reading and writing; what is written stays in memory, and the file as it is. Where
    /// the length changes, all of it is copied into memory. Python's `mmap_mode="c"`.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    ///
    /// # Safety
    /// As [`open`](Self::open).
    pub unsafe fn copy_on_write(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let map = || {
            let file = File::open(path)?;
            // SAFETY: the caller promises that the file stays as it is while it is mapped.
            unsafe { MmapOptions::new().map_copy(&file) }
        };
        Ok(Self(Mode::Private(map().map_err(|error| not_mapped(path, error))?)))
    }

    fn bytes(&self) -> io::Result<&[u8]> {
        match &self.0 {
            Mode::Read(map) => Ok(map),
            Mode::Write { map, .. } => map.as_deref().ok_or_else(lost),
            Mode::Private(map) => Ok(map),
            Mode::Copied(bytes) => Ok(bytes),
        }
    }
}

impl ReadAt for MappedFile {
    fn size(&self) -> io::Result<u64> {
        self.bytes()?.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.bytes()?.read_exact_at(offset, buffer)
    }
}

impl Storage for MappedFile {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let too_large = || io::Error::from(io::ErrorKind::FileTooLarge);
        let end = offset.checked_add(bytes.len() as u64).ok_or_else(too_large)?;
        if end > self.size()? {
            self.set_size(end)?;
        }
        let target = match &mut self.0 {
            Mode::Read(_) => return Err(read_only("write to a mapped file")),
            Mode::Write { map, .. } => map.as_deref_mut().ok_or_else(lost)?,
            Mode::Private(map) => map,
            Mode::Copied(copy) => copy,
        };
        let start = usize::try_from(offset).map_err(|_| too_large())?;
        target[start..start + bytes.len()].copy_from_slice(bytes);
        Ok(())
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        match &mut self.0 {
            Mode::Read(_) => return Err(read_only("set the length of a mapped file")),
            Mode::Write { map, .. } if map.as_ref().is_some_and(|map| map.len() as u64 == len) => {}
            Mode::Write { file, map } => {
                // No map may reach behind the end of the file, and some systems refuse to cut it then.
                *map = None;
                let resized = file.set_len(len);
                // SAFETY: whoever made this value promised that only it changes the file.
                *map = Some(unsafe { MmapMut::map_mut(&*file)? });
                resized?;
            }
            Mode::Private(map) if map.len() as u64 == len => {}
            Mode::Private(map) => {
                let mut copy = Vec::new();
                types::resize(&mut copy, map.len())?;
                copy.copy_from_slice(map);
                copy.set_size(len)?;
                self.0 = Mode::Copied(copy);
            }
            Mode::Copied(copy) => copy.set_size(len)?,
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        match &self.0 {
            Mode::Write { file, map } => {
                map.as_ref().ok_or_else(lost)?.flush()?;
                file.sync_data()
            }
            _ => Ok(()),
        }
    }

    fn file(&self, _: Token) -> Option<&File> {
        match &self.0 {
            Mode::Write { file, .. } => Some(file),
            // Nothing of these reaches a file.
            Mode::Read(_) | Mode::Private(_) | Mode::Copied(_) => None,
        }
    }

    fn stable_bytes(&self, _: Token) -> Option<&[u8]> {
        self.bytes().ok()
    }
}

impl fmt::Debug for MappedFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mode = match &self.0 {
            Mode::Read(_) => "r",
            Mode::Write { .. } => "r+",
            Mode::Private(_) | Mode::Copied(_) => "c",
        };
        f.debug_struct("MappedFile").field("mode", &mode).field("size", &self.size().ok()).finish()
    }
}

fn not_mapped(path: &Path, error: io::Error) -> Error {
    Error::from_io("map a file", path, error)
}

fn lost() -> io::Error {
    io::Error::other("the file could not be mapped again after a change of its length")
}
