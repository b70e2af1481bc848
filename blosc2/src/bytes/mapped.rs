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
/// file are read. A change of the file's length resizes the map, on Linux without mapping the file again. So there is no
/// size of the map to choose, as C's `initial_mapping_size` is.
///
/// C's `blosc2_stdio_mmap`; the modes are Python's `mmap_mode`.
///
/// ```
/// use blosc2::storage::MappedFile;
/// use blosc2::{CParams, NDArray, OpenOptions, SChunk};
///
/// # let folder = tempfile::tempdir()?;
/// # let (chunks, array) = (folder.path().join("chunks.b2frame"), folder.path().join("array.b2nd"));
/// // SAFETY: here and below, nobody else knows these files.
/// let map = unsafe { MappedFile::create(&chunks)? };
/// let mut schunk = OpenOptions::new().replace(true).typesize(8).open_storage(map)?;
/// schunk.append(&[1u64, 2, 3])?;
/// drop(schunk);
/// // SAFETY: as above.
/// let map = unsafe { MappedFile::open(&chunks)? };
/// assert_eq!(OpenOptions::new().open_storage(map)?.items::<u64>(1..)?, [2, 3]);
///
/// // SAFETY: as above.
/// let map = unsafe { MappedFile::create(&array)? };
/// let array = NDArray::builder().storage(map).from_slice(&[1.5, 2.5, 3.5], &[3])?;
/// assert_eq!(array.read::<f64>(1..)?, [2.5, 3.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("mmap", "mmap_mode", "blosc2_stdio_mmap"))]
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
        // SAFETY: the caller promises the same.
        unsafe { Self::map_rw(path.as_ref(), false) }
    }

    /// Maps a file for reading and writing, and makes an empty one where there is none.
    ///
    /// Whoever opens it decides what becomes of a file that is there: [`OpenOptions::replace`] empties it, Python's
    /// `mmap_mode="w+"`; [`OpenOptions::create`] opens the frame in it; [`OpenOptions::create_new`] refuses it.
    /// [`NDArrayBuilder::storage`] refuses it unless [`NDArrayBuilder::replace`] is set.
    ///
    /// [`OpenOptions::replace`]: crate::OpenOptions::replace
    /// [`OpenOptions::create`]: crate::OpenOptions::create
    /// [`OpenOptions::create_new`]: crate::OpenOptions::create_new
    /// [`NDArrayBuilder::storage`]: crate::NDArrayBuilder::storage
    /// [`NDArrayBuilder::replace`]: crate::NDArrayBuilder::replace
    ///
    /// # Errors
    /// [`NotFound`](crate::ErrorKind::NotFound): there is no such folder; [`Io`](crate::ErrorKind::Io): the file cannot be
    /// made or mapped.
    ///
    /// # Safety
    /// As [`open_rw`](Self::open_rw).
    pub unsafe fn create(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller promises the same.
        unsafe { Self::map_rw(path.as_ref(), true) }
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

    /// # Safety
    /// As [`open_rw`](Self::open_rw).
    unsafe fn map_rw(path: &Path, create: bool) -> Result<Self> {
        let map = || {
            let mut options = File::options();
            let file = options.read(true).write(true).create(create).truncate(false).open(path)?;
            // SAFETY: the caller promises that only this value changes the file while it is mapped.
            let map = unsafe { MmapMut::map_mut(&file)? };
            Ok(Mode::Write { file, map: Some(map) })
        };
        map().map(Self).map_err(|error| not_mapped(path, error))
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
            // SAFETY: whoever made this value promised that only it changes the file.
            Mode::Write { file, map } => unsafe { resize(file, map, len)? },
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

/// Sets the length of a file and of its map.
///
/// # Safety
/// Nobody else changes the file.
unsafe fn resize(file: &File, map: &mut Option<MmapMut>, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let (Some(map), Ok(len)) = (map.as_mut(), usize::try_from(len))
        && len > 0
        && !map.is_empty()
    {
        // SAFETY: the caller promises the same.
        return unsafe { remap(file, map, len) };
    }
    // No map may reach behind the end of the file, and some systems refuse to cut it then.
    *map = None;
    let resized = file.set_len(len);
    // SAFETY: the caller promises that nobody else changes the file while it is mapped.
    *map = Some(unsafe { MmapMut::map_mut(file)? });
    resized
}

/// The same for lengths above 0, with the pages that are in memory already. The map never reaches behind the end of the
/// file.
///
/// # Safety
/// Nobody else changes the file.
#[cfg(target_os = "linux")]
unsafe fn remap(file: &File, map: &mut MmapMut, len: usize) -> io::Result<()> {
    let old = map.len();
    let options = memmap2::RemapOptions::new().may_move(true);
    if len >= old {
        file.set_len(len as u64)?;
        // SAFETY: the file has this length, and the caller promises that it keeps it.
        let grown = unsafe { map.remap(len, options) };
        return grown.inspect_err(|_| drop(file.set_len(old as u64)));
    }
    // SAFETY: the file is longer.
    unsafe { map.remap(len, options)? };
    // SAFETY: the file has kept its length.
    file.set_len(len as u64).inspect_err(|_| drop(unsafe { map.remap(old, options) }))
}

fn not_mapped(path: &Path, error: io::Error) -> Error {
    Error::from_io("map a file", path, error)
}

fn lost() -> io::Error {
    io::Error::other("the file could not be mapped again after a change of its length")
}
