//! Memory-mapped files.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use blosc2_format::ReadAt;
use memmap2::{Mmap, MmapMut, MmapOptions};

use super::{Storage, read_only, types};
use crate::{Error, Result};

/// A [`Storage`] of a memory-mapped file: the operating system reads the pages of the file on access, and chunks are
/// decompressed directly from these pages, without a copy. C: `blosc2_stdio_mmap`. Python: `mmap_mode`.
///
/// A mapped file is efficient in two cases: the chunks are small and the file is in the page cache; or a program makes
/// many random reads in a large file. When the length of the file changes, the mapping is resized; on Linux this needs
/// no new mapping. Therefore the C option `initial_mapping_size` has no equivalent.
///
/// ```
/// use blosc2::storage::MappedFile;
/// use blosc2::{CParams, NDArray, OpenOptions, SChunk, Target};
///
/// # let folder = tempfile::tempdir()?;
/// # let (frame_path, array_path) = (folder.path().join("chunks.b2frame"), folder.path().join("array.b2nd"));
/// // SAFETY: here and below, no other program or handle uses these files.
/// let map = unsafe { MappedFile::create(&frame_path)? };
/// let mut schunk = OpenOptions::new().replace(true).typesize(8).open(Target::storage(map))?;
/// schunk.append(&[1u64, 2, 3])?;
/// drop(schunk);
/// // SAFETY: as above.
/// let map = unsafe { MappedFile::open(&frame_path)? };
/// assert_eq!(OpenOptions::new().open(Target::storage(map))?.read::<u64>(1..)?, [2, 3]);
///
/// // SAFETY: as above.
/// let map = unsafe { MappedFile::create(&array_path)? };
/// let array = NDArray::builder().target(Target::storage(map)).from_slice(&[1.5, 2.5, 3.5], &[3])?;
/// assert_eq!(array.read::<Vec<f64>>(1..)?, [2.5, 3.5]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias("mmap", "mmap_mode", "blosc2_stdio_mmap"))]
pub struct MappedFile(Mode);

enum Mode {
    Read(Mmap),
    /// The map is `None` if mapping has failed after the length was set.
    Write {
        file: File,
        map: Option<MmapMut>,
    },
    Private(MmapMut),
    /// A private map whose length has changed.
    Copied(Vec<u8>),
}

impl MappedFile {
    /// Maps a file for reading. Python: `mmap_mode="r"`.
    ///
    /// # Errors
    /// - [`NotFound`](crate::ErrorKind::NotFound): the file does not exist;
    /// - [`Io`](crate::ErrorKind::Io): the file cannot be opened or mapped.
    ///
    /// # Safety
    /// While this value exists, no other program and no other handle of this program may change or truncate the file.
    /// This also applies to other paths and links of the file. The reasons are:
    /// - A change modifies memory behind shared references, which is undefined behavior.
    /// - After a truncation, reading a page past the end of the file kills the program with a signal (SIGBUS).
    ///
    /// The function is `unsafe` because only the caller can control all access to the file. Locks are not sufficient:
    /// they affect only programs that use them.
    pub unsafe fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let map = || {
            let file = File::open(path)?;
            // SAFETY: the caller promises that the file stays as it is while it is mapped.
            unsafe { Mmap::map(&file) }
        };
        Ok(Self(Mode::Read(map().map_err(|error| not_mapped(path, error))?)))
    }

    /// Maps a file for reading and writing. Writes change the file. Python: `mmap_mode="r+"`.
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open).
    ///
    /// # Safety
    /// The conditions of [`open`](Self::open) apply. This value itself may change the file.
    pub unsafe fn open_rw(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller promises the same.
        unsafe { Self::map_rw(path.as_ref(), false) }
    }

    /// Maps a file for reading and writing. Creates an empty file if the file does not exist.
    ///
    /// If the file has content, the options with which the storage is opened determine the result:
    /// - [`OpenOptions::replace`]: the content is discarded (Python: `mmap_mode="w+"`);
    /// - [`OpenOptions::create`]: the existing frame is opened;
    /// - [`OpenOptions::create_new`]: opening fails;
    /// - [`NDArrayBuilder::target`]: creating the array fails, or discards the content if [`OpenOptions::replace`]
    ///   is set.
    ///
    /// [`OpenOptions::replace`]: crate::OpenOptions::replace
    /// [`OpenOptions::create`]: crate::OpenOptions::create
    /// [`OpenOptions::create_new`]: crate::OpenOptions::create_new
    /// [`NDArrayBuilder::target`]: crate::NDArrayBuilder::target
    /// [`OpenOptions::replace`]: crate::OpenOptions::replace
    ///
    /// # Errors
    /// - [`NotFound`](crate::ErrorKind::NotFound): the parent directory does not exist;
    /// - [`Io`](crate::ErrorKind::Io): the file cannot be created, opened or mapped.
    ///
    /// # Safety
    /// The conditions of [`open_rw`](Self::open_rw) apply.
    pub unsafe fn create(path: impl AsRef<Path>) -> Result<Self> {
        // SAFETY: the caller promises the same.
        unsafe { Self::map_rw(path.as_ref(), true) }
    }

    /// Maps a file for reading and writing. Writes stay in memory and do not change the file. Python: `mmap_mode="c"`.
    ///
    /// The first change of the length copies the complete content to memory.
    ///
    /// # Errors
    /// Fails with the errors of [`open`](Self::open).
    ///
    /// # Safety
    /// The conditions of [`open`](Self::open) apply.
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
    /// The conditions of [`open_rw`](Self::open_rw) apply.
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
            // SAFETY: the creator of this value promised that only it changes the file.
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

    fn file(&self) -> Option<&File> {
        match &self.0 {
            Mode::Write { file, .. } => Some(file),
            // Writes to these do not reach a file.
            Mode::Read(_) | Mode::Private(_) | Mode::Copied(_) => None,
        }
    }

    fn as_bytes(&self) -> Option<&[u8]> {
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
/// Nothing else changes the file.
unsafe fn resize(file: &File, map: &mut Option<MmapMut>, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let (Some(map), Ok(len)) = (map.as_mut(), usize::try_from(len))
        && len > 0
        && !map.is_empty()
    {
        // SAFETY: the caller promises the same.
        return unsafe { remap(file, map, len) };
    }
    // The file is unmapped first: some systems cannot truncate a file if a map would extend past its end.
    *map = None;
    let resized = file.set_len(len);
    // SAFETY: the caller promises that nothing else changes the file while it is mapped.
    *map = Some(unsafe { MmapMut::map_mut(file)? });
    resized
}

/// Sets the length of a file and of its map, for lengths above 0. Pages that are in memory stay mapped. The map never
/// extends past the end of the file.
///
/// # Safety
/// Nothing else changes the file.
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
    Error::of_io("map a file", error).at(path)
}

fn lost() -> io::Error {
    io::Error::other("the file could not be mapped again after a change of its length")
}
