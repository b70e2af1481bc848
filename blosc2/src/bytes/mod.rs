//! Storages: byte sequences with random access, which store frames.
//!
//! Programs implement [`Storage`] for a custom storage backend. Files, `Vec<u8>` and the types of this module implement
//! it. [`commit`] changes a frame in a storage atomically; [`recover`] restores a frame whose writer was stopped in the
//! middle of a change.

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

/// A storage backend: a byte sequence with random access that stores a contiguous frame. C: `blosc2_io_cb`.
///
/// The methods of [`ReadAt`] read the bytes. Reads may run on several threads at once. A read must return the bytes of
/// all completed writes. A read-only source needs no implementation of this trait: [`ReadOnly`] converts it to a
/// storage.
///
/// [`File`](std::fs::File) and `Vec<u8>` implement this trait. [`Seekable`] implements it for any `Read + Write + Seek`
/// type, [`MappedFile`] for a memory-mapped file. A file that was opened in append mode does not work: the operating
/// system ignores the offset of a write and writes at the end.
///
/// A storage with a high latency should implement [`ReadAt::request_cost`] and [`ReadAt::read_ranges_at`]. Reads then
/// request the parts of many chunks at once, and request the next ones while they decompress.
///
/// [Crash recovery](crate::OpenOptions#crash-recovery) has two requirements: [`set_size`](Self::set_size) is supported,
/// and the storage keeps the order of writes. With [`OpenOptions::durable`](crate::OpenOptions::durable), the order of
/// writes between two calls of [`sync`](Self::sync) does not matter.
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
    /// Writes all of `bytes` at `offset`. If `offset` is after the end, the gap is filled with zeros.
    ///
    /// # Errors
    /// The errors of the storage. After an error, some of the bytes may have been written.
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Truncates the bytes to `len`, or extends them to `len` with zeros.
    ///
    /// # Errors
    /// - [`io::ErrorKind::Unsupported`]: the storage cannot set its length, for any `len`;
    /// - other kinds: the errors of the storage.
    fn set_size(&mut self, len: u64) -> io::Result<()>;

    /// Syncs all written bytes to disk. The default implementation does nothing.
    ///
    /// # Errors
    /// The errors of the storage.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Returns all bytes, if they are memory that does not change while they are borrowed.
    ///
    /// C reads compressed chunks from this memory, and a change during that call would be undefined behavior. Other
    /// crates therefore cannot implement it: they cannot name the token.
    #[doc(hidden)]
    fn stable_bytes(&self, _: token::Token) -> Option<&[u8]> {
        None
    }

    /// Returns the opened file that contains the bytes, if there is one. All handles of a program use it to coordinate
    /// access.
    #[doc(hidden)]
    fn file(&self, _: token::Token) -> Option<&std::fs::File> {
        None
    }

    /// Takes the bytes out of the storage, if they are a vector.
    #[doc(hidden)]
    fn take_vec(&mut self, _: token::Token) -> Option<Vec<u8>> {
        None
    }
}

pub(crate) mod token {
    /// A parameter that only this crate can name.
    #[derive(Debug, Clone, Copy)]
    #[allow(missing_docs, reason = "it cannot be reached from outside")]
    pub struct Token;
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
