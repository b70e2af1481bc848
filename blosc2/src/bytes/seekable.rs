//! Storages of types with the traits of `std::io`.

use std::io::{self, Read, Seek, SeekFrom, Write};

use blosc2_format::ReadAt;
use parking_lot::Mutex;

use super::Storage;
use crate::{Error, ErrorKind};

/// Zeros are written in pieces of this size.
const ZEROS: [u8; 4096] = [0; 4096];

/// A [`Storage`] of any type that implements `Read + Write + Seek`. To open a frame for reading, `Read + Seek` is
/// sufficient: wrap the `Seekable` in [`ReadOnly`](crate::storage::ReadOnly).
///
/// Reads of several threads run one after the other, because the inner value has only one position.
/// [`sync`](Storage::sync) calls `flush`. The length cannot be set, because these traits have no method for it.
/// Therefore
/// - unused bytes remain after a frame that has become shorter;
/// - a change is not rolled back if the program dies in the middle of it;
/// - existing content cannot be [replaced](crate::OpenOptions::replace): this fails with [`ErrorKind::Unsupported`].
///
/// ```
/// use std::io::Cursor;
///
/// use blosc2::storage::{ReadAt, Seekable, Storage};
///
/// let mut storage = Seekable::new(Cursor::new(Vec::new()));
/// storage.write_all_at(3, b"abc")?;
/// assert_eq!(storage.read_vec_at(2, 3)?, b"\0ab");
/// assert_eq!(storage.into_inner().into_inner(), b"\0\0\0abc");
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct Seekable<T>(Mutex<T>);

impl<T> Seekable<T> {
    /// Creates a storage of all bytes of `inner`; the current position is ignored.
    pub fn new(inner: T) -> Self {
        Self(Mutex::new(inner))
    }

    /// Returns the inner value, with an unspecified position.
    pub fn into_inner(self) -> T {
        self.0.into_inner()
    }
}

impl<T: Read + Seek> ReadAt for Seekable<T> {
    fn size(&self) -> io::Result<u64> {
        self.0.lock().seek(SeekFrom::End(0))
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut inner = self.0.lock();
        seek(&mut *inner, offset)?;
        inner.read_exact(buffer)
    }
}

impl<T: Read + Write + Seek + Send> Storage for Seekable<T> {
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let inner = self.0.get_mut();
        // What a write after the end leaves in the gap depends on the type.
        extend(inner, offset)?;
        seek(inner, offset)?;
        inner.write_all(bytes)
    }

    fn set_size(&mut self, _: u64) -> io::Result<()> {
        let detail = "`Write` and `Seek` have no method for it";
        Err(Error::new(ErrorKind::Unsupported, "set the length of a storage", detail).into())
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.get_mut().flush()
    }
}

fn seek(inner: &mut impl Seek, offset: u64) -> io::Result<()> {
    let at = inner.seek(SeekFrom::Start(offset))?;
    if at == offset { Ok(()) } else { Err(io::Error::other(format!("{at} for position {offset}"))) }
}

/// Appends zeros up to `len`, if the end is before it.
fn extend(inner: &mut (impl Write + Seek), len: u64) -> io::Result<()> {
    let mut at = inner.seek(SeekFrom::End(0))?;
    while at < len {
        let count = usize::try_from(len - at).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        inner.write_all(&ZEROS[..count])?;
        at += count as u64;
    }
    Ok(())
}
