//! A storage for types that implement the traits of `std::io`.

use std::io::{self, Read, Seek, SeekFrom, Write};

use blosc2_format::ReadAt;
use parking_lot::Mutex;

use super::Storage;
use crate::{Error, ErrorKind};

/// Zeros are written in pieces of this size.
const ZEROS: [u8; 4096] = [0; 4096];

/// Converts any type that implements `Read + Write + Seek` to a [`Storage`]. For reading only, `Read + Seek` is
/// sufficient: wrap the `Seekable` in [`ReadOnly`](crate::storage::ReadOnly).
///
/// The inner value has only one position, so that reads of several threads run one after the other.
/// [`sync`](Storage::sync) calls `flush`.
///
/// `Write` and `Seek` have no method that sets the length. The consequences are:
/// - If a frame becomes shorter, unused bytes remain after the frame.
/// - If the program dies in the middle of a change, the change cannot be rolled back.
/// - [Replacing](crate::OpenOptions::replace) existing content fails with [`ErrorKind::Unsupported`].
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
    /// Creates a storage that contains all bytes of `inner`. The current position of `inner` is ignored.
    pub fn new(inner: T) -> Self {
        Self(Mutex::new(inner))
    }

    /// Returns the inner value. Its position is unspecified.
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
        // If a write is after the end, the bytes in between depend on the type. Therefore they are written here.
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

/// Appends zeros until the length is `len`, if it is shorter.
fn extend(inner: &mut (impl Write + Seek), len: u64) -> io::Result<()> {
    let mut at = inner.seek(SeekFrom::End(0))?;
    while at < len {
        let count = usize::try_from(len - at).map_or(ZEROS.len(), |left| left.min(ZEROS.len()));
        inner.write_all(&ZEROS[..count])?;
        at += count as u64;
    }
    Ok(())
}
