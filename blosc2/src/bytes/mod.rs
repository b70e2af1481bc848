//! Storage backends: byte sequences with random access that store frames.
//!
//! Programs implement [`Storage`] for a custom storage backend. Files, `Vec<u8>` and the types of this module implement
//! `Storage`. [`commit`] changes a frame in a storage atomically. [`recover`] restores a frame whose writer was stopped
//! in the middle of a change.

mod commit;
mod guarded;
mod lent;
mod mapped;
mod read_only;
mod recover;
mod seekable;
mod shared;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use commit::{Change, Safety, commit};
pub(crate) use guarded::Guarded;
pub(crate) use lent::lend;
pub use mapped::MappedFile;
pub use read_only::ReadOnly;
pub(crate) use recover::{Recovery, WithoutMark, recover};
pub use seekable::Seekable;
pub(crate) use shared::Shared;

use std::fmt;
use std::io;

use blosc2_format::ReadAt;

/// A storage backend: a byte sequence with random access that stores a contiguous frame (the stored form of a
/// super-chunk). C: `blosc2_io_cb`.
///
/// The methods of [`ReadAt`] read the bytes. Several threads may call them at the same time. A read must return the
/// result of all completed writes. For a source that is only read, implement [`ReadAt`] and wrap the source in
/// [`ReadOnly`].
///
/// These types implement `Storage`:
/// - [`File`](std::fs::File), but not a file that was opened in append mode: the operating system then ignores the
///   offset of a write, and writes at the end;
/// - `Vec<u8>`;
/// - [`Seekable`], for any type that implements `Read + Write + Seek`;
/// - [`MappedFile`], for a memory-mapped file.
///
/// A storage with a high latency should implement [`ReadAt::request_cost`] and [`ReadAt::read_ranges_at`]. A read then
/// requests the parts of many chunks at once. While it decompresses them, it requests the parts of the next chunks.
///
/// [Crash recovery](crate::OpenOptions#crash-recovery) has two requirements: the storage supports
/// [`set_size`](Self::set_size), and it stores writes in the order of the calls. With
/// [`OpenOptions::durable`](crate::OpenOptions::durable), the storage may reorder writes between two calls of
/// [`sync`](Self::sync).
///
/// ```
/// use std::io;
///
/// use blosc2::storage::{ReadAt, Storage};
///
/// /// Bytes in memory that count the writes.
/// #[derive(Default)]
/// struct Counted {
///     bytes: Vec<u8>,
///     writes: usize,
/// }
///
/// impl ReadAt for Counted {
///     fn size(&self) -> io::Result<u64> {
///         self.bytes.size()
///     }
///
///     fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
///         self.bytes.read_exact_at(offset, buffer)
///     }
/// }
///
/// impl Storage for Counted {
///     fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()> {
///         self.writes += 1;
///         self.bytes.write_all_at(offset, bytes)
///     }
///
///     fn set_size(&mut self, len: u64) -> io::Result<()> {
///         self.bytes.set_size(len)
///     }
/// }
///
/// let mut counted = Counted::default();
/// counted.write_all_at(2, b"ab")?;
/// assert_eq!((&counted.bytes[..], counted.writes), (&b"\0\0ab"[..], 1));
/// # Ok::<(), io::Error>(())
/// ```
pub trait Storage: ReadAt + Send + Sync {
    /// Writes all of `bytes` at `offset`. If `offset` is after the end, the bytes between the end and `offset` become
    /// zeros.
    ///
    /// # Errors
    /// The errors of the storage. After an error, some of the bytes may have been written.
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Sets the length of the storage to `len` bytes: truncates it, or extends it with zeros.
    ///
    /// # Errors
    /// - [`io::ErrorKind::Unsupported`]: the storage can never set its length;
    /// - other kinds: the errors of the storage.
    fn set_size(&mut self, len: u64) -> io::Result<()>;

    /// Syncs all written bytes to disk. The default implementation does nothing.
    ///
    /// # Errors
    /// The errors of the storage.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns all bytes, if they are in memory. Chunks are then decompressed from this memory, without a copy of the
    /// compressed bytes. The default implementation returns `None`.
    ///
    /// ```
    /// use blosc2::storage::Storage;
    ///
    /// assert_eq!(vec![1, 2].as_bytes(), Some(&[1, 2][..]));
    /// ```
    fn as_bytes(&self) -> Option<&[u8]> {
        None
    }

    /// Returns the opened file that contains the bytes, if there is one. The default implementation returns `None`.
    ///
    /// The handles of a program [coordinate their access](crate::OpenOptions#access-to-a-file-by-several-handles) if they have the same file. The
    /// time of the last modification of the file shows whether other programs have changed the frame.
    fn file(&self) -> Option<&std::fs::File> {
        None
    }

    /// Moves the bytes out of the storage, if they are in a vector. [`SChunk::into_cframe`](crate::SChunk::into_cframe)
    /// then needs no copy. The default implementation returns `None`.
    fn take_vec(&mut self) -> Option<Vec<u8>> {
        None
    }
}

impl fmt::Debug for dyn Storage + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage")
    }
}

/// Creates the error of a write to a read-only storage.
fn read_only(doing: &str) -> io::Error {
    let detail = "the storage is read-only";
    crate::Error::new(crate::ErrorKind::ReadOnly, doing, detail).into()
}
