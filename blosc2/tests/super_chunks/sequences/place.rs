//! The storages of super-chunks.

use std::fmt;
use std::fs;
use std::io::{self, Cursor, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use blosc2::storage::{MappedFile, ReadAt, Seekable, Storage};
use blosc2::{CParams, OpenOptions, SChunk, SaveOptions, Target};

use super::stored::Stored;
use crate::common::Rng;

/// The storage of a super-chunk, and how to reopen it.
#[derive(Clone)]
pub(crate) enum Place {
    Memory,
    Buffer,
    File(PathBuf),
    Directory(PathBuf),
    User(UserStorage),
    Seekable(SharedCursor),
    Mapped(PathBuf),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Memory => "in memory",
            Self::Buffer => "in a buffer",
            Self::File(_) => "in a file",
            Self::Directory(_) => "in a directory",
            Self::User(_) => "in a storage of the user's",
            Self::Seekable(_) => "in a stream",
            Self::Mapped(_) => "in a mapped file",
        })
    }
}

impl Place {
    /// Makes an empty super-chunk.
    pub(crate) fn make(options: &OpenOptions, folder: &Path, rng: &mut Rng) -> (Self, SChunk) {
        let path = folder.join("frame");
        let new = options.clone().create_new(true);
        match rng.below(8) {
            0 => (Self::Memory, options.open(Target::memory()).unwrap()),
            1 => (Self::Buffer, new.open(Vec::new()).unwrap()),
            2 => {
                let empty = new.open(Vec::new()).unwrap().into_cframe().unwrap();
                (Self::Buffer, options.clone().write(true).open(empty).unwrap())
            }
            3 => (Self::File(path.clone()), new.open(path).unwrap()),
            4 => (
                Self::Directory(path.clone()),
                new.open(Target::from(path).directory(true)).unwrap(),
            ),
            5 => {
                let storage = UserStorage::default();
                (Self::User(storage.clone()), new.open(Target::storage(storage)).unwrap())
            }
            6 => {
                let cursor = SharedCursor::default();
                let schunk = new.open(Target::storage(Seekable::new(cursor.clone()))).unwrap();
                (Self::Seekable(cursor), schunk)
            }
            _ => {
                // SAFETY: as in `open`.
                let mapped = unsafe { MappedFile::create(&path) };
                let schunk = new.open(Target::storage(mapped.unwrap())).unwrap();
                (Self::Mapped(path), schunk)
            }
        }
    }

    /// Whether the frame is contiguous, with the metalayers before the chunks.
    pub(crate) fn is_contiguous(&self) -> bool {
        !matches!(self, Self::Memory | Self::Directory(_))
    }

    /// Opens what is there; of memory there is nothing without the super-chunk.
    fn open(&self, options: &OpenOptions, writes: bool) -> SChunk {
        match self {
            Self::Memory | Self::Buffer => panic!("memory is where the super-chunk is"),
            Self::File(path) | Self::Directory(path) => options.open(path),
            Self::User(storage) => options.open(Target::storage(storage.clone())),
            Self::Seekable(cursor) => options.open(Target::storage(Seekable::new(cursor.clone()))),
            Self::Mapped(path) => {
                // SAFETY: the file is in a folder of this sequence alone, which does not touch it while it
                // is mapped.
                let mapped = unsafe {
                    if writes { MappedFile::open_rw(path) } else { MappedFile::open(path) }
                };
                options.open(Target::storage(mapped.unwrap()))
            }
        }
        .unwrap_or_else(|error| panic!("reopen: {error}"))
    }

    /// Reopens the super-chunk.
    pub(crate) fn reopen(&self, schunk: SChunk, options: &OpenOptions, writes: bool) -> SChunk {
        match self {
            Self::Memory => schunk.try_clone().unwrap(),
            Self::Buffer => options.open(schunk.into_cframe().unwrap()).unwrap(),
            _ => {
                drop(schunk);
                self.open(options, writes)
            }
        }
    }

    /// What is left there.
    pub(crate) fn stored(&self, schunk: SChunk, folder: &Path, rng: &mut Rng) -> Stored {
        match self {
            Self::Memory if rng.below(2) == 0 => {
                let path = folder.join("left");
                SaveOptions::new().save(&schunk, Target::from(&path).directory(true)).unwrap();
                Stored::Path(path)
            }
            Self::Memory | Self::Buffer => Stored::Bytes(schunk.into_cframe().unwrap()),
            Self::File(path) | Self::Directory(path) | Self::Mapped(path) => {
                drop(schunk);
                Stored::Path(path.clone())
            }
            Self::User(storage) => {
                drop(schunk);
                Stored::Bytes(storage.0.lock().unwrap().bytes.clone())
            }
            Self::Seekable(cursor) => {
                drop(schunk);
                let mut bytes = cursor.0.lock().unwrap().get_ref().clone();
                // Its length cannot be set: bytes may follow the frame.
                let len = u64::from_be_bytes(bytes[0x10..0x18].try_into().unwrap());
                bytes.truncate(len as usize);
                Stored::Bytes(bytes)
            }
        }
    }
}

/// A custom storage backend: bytes that outlive the super-chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct UserStorage(Arc<Mutex<Bytes>>);

#[derive(Debug, Default)]
struct Bytes {
    bytes: Vec<u8>,
    /// How many writes succeed before one fails.
    fails_after: Option<usize>,
}

impl UserStorage {
    /// Lets a write fail after `writes` writes; `None` lets none fail. Returns whether a failure was still pending.
    pub(crate) fn fail_after(&self, writes: Option<usize>) -> bool {
        std::mem::replace(&mut self.0.lock().unwrap().fails_after, writes).is_some()
    }
}

impl ReadAt for UserStorage {
    fn size(&self) -> io::Result<u64> {
        self.0.lock().unwrap().bytes.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.lock().unwrap().bytes.read_exact_at(offset, buffer)
    }
}

impl Storage for UserStorage {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut inner = self.0.lock().unwrap();
        match inner.fails_after {
            None => inner.bytes.write_all_at(offset, bytes),
            Some(0) => {
                inner.fails_after = None;
                // Torn.
                inner.bytes.write_all_at(offset, &bytes[..bytes.len() / 2])?;
                Err(io::Error::other("no more room"))
            }
            Some(left) => {
                inner.fails_after = Some(left - 1);
                inner.bytes.write_all_at(offset, bytes)
            }
        }
    }

    fn set_size(&mut self, len: u64) -> io::Result<()> {
        self.0.lock().unwrap().bytes.set_size(len)
    }
}

/// A user-defined stream that outlives the super-chunk.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedCursor(Arc<Mutex<Cursor<Vec<u8>>>>);

impl Read for SharedCursor {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap().read(buffer)
    }
}

impl Write for SharedCursor {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for SharedCursor {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.0.lock().unwrap().seek(to)
    }
}

/// Copies a super-chunk in a way that has its own path, and opens the copy for changing, if it is not in
/// memory already.
#[derive(Debug, Clone)]
pub(crate) enum Copied {
    Save,
    SaveReplacing,
    SaveDirectory,
    AppendToFile,
    Copy(Box<CParams>),
    Recompress(Box<CParams>),
    TryClone,
    ToBytes,
}

impl Copied {
    pub(crate) fn make(
        &self,
        schunk: &SChunk,
        path: &Path,
        options: &OpenOptions,
    ) -> blosc2::Result<(Place, SChunk)> {
        let writes = options.clone().write(true);
        let mut place = Place::File(path.to_owned());
        match self {
            Self::Save => schunk.save(path)?,
            Self::SaveReplacing => {
                fs::write(path, "an old file").unwrap();
                SaveOptions::new().replace(true).save(&schunk, path)?;
            }
            Self::SaveDirectory => {
                SaveOptions::new().save(&schunk, Target::from(path).directory(true))?;
                place = Place::Directory(path.to_owned());
            }
            Self::AppendToFile => {
                fs::write(path, "what is in front").unwrap();
                let at = SaveOptions::new().append(&schunk, path)?;
                assert_eq!(at, 16);
                // It can be read only; what goes on is its bytes.
                let inside = OpenOptions::new().open(Target::from(path).offset(at))?;
                let bytes = inside.to_cframe()?;
                assert!(fs::read(path).unwrap()[16..] == bytes, "as `to_bytes` gives it");
                return Ok((Place::Buffer, writes.open(bytes)?));
            }
            Self::Copy(params) => SaveOptions::new().cparams(&**params).save(&schunk, path)?,
            Self::Recompress(params) => return Ok((Place::Memory, schunk.recompress(&**params)?)),
            Self::TryClone => return Ok((Place::Memory, schunk.try_clone()?)),
            Self::ToBytes => {
                return Ok((Place::Buffer, writes.open(schunk.to_cframe()?)?));
            }
        }
        let copy = writes.open(path)?;
        Ok((place, copy))
    }
}
