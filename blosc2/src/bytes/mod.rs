//! What a frame can be kept in: bytes that are read and written at positions.
//!
//! [`Storage`] is what a program implements for a place of its own. Files, `Vec<u8>` and what is in this folder have it
//! already. [`commit`] changes a frame there so
//! that the change is whole or not there, [`recover`] puts one in order whose writer was stopped.

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

/// Bytes at positions that a frame can be kept in.
///
/// Reading comes from [`ReadAt`], may happen on several threads at once, and sees at once what was written.
/// A type whose bytes are never written needs no implementation: [`ReadOnly`] makes a storage of it.
///
/// Storages are [`File`](std::fs::File), `Vec<u8>`, and all that has `Read + Write + Seek` in a [`Seekable`]. A file that was opened for appending is none: the system
/// writes at its end, wherever it is told to.
///
/// A change is safe against the death of the program at any write only where [`set_size`](Self::set_size)
/// works, and where writes reach the device in their order, or [`sync`](Self::sync) makes them.
///
/// C's `blosc2_io_cb`.
///
/// ```
/// use std::io;
///
/// use blosc2::storage::{ReadAt, Storage};
///
/// /// Bytes in memory, and how often they were written to.
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
    /// Writes all of `bytes` at `offset`. Where that is behind the end, zeros come in between.
    ///
    /// # Errors
    /// The storage's own; some of the bytes may have been written then.
    fn write_all_at(&mut self, offset: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the bytes down to the first `len`, or adds zeros up to there.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where the storage can do no such thing, with any `len`; otherwise its
    /// own.
    fn set_size(&mut self, len: u64) -> io::Result<()>;

    /// Returns when all that was written is on the device. Without an implementation it does nothing.
    ///
    /// # Errors
    /// The storage's own.
    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// All of the bytes, where they are memory that nothing changes while they are borrowed.
    ///
    /// Compressed chunks are handed to C from there, which would not survive a change of them in the
    /// meantime. So this is not for other crates: they cannot name the token.
    #[doc(hidden)]
    fn stable_bytes(&self, _: token::Token) -> Option<&[u8]> {
        None
    }

    /// The opened file that the bytes are in, where they are in one: all handles of a program agree on who may change
    /// it.
    #[doc(hidden)]
    fn file(&self, _: token::Token) -> Option<&std::fs::File> {
        None
    }

    /// The bytes themselves, of which nothing is left, where they are a vector.
    #[doc(hidden)]
    fn take_vec(&mut self, _: token::Token) -> Option<Vec<u8>> {
        None
    }
}

pub(crate) mod token {
    /// What only this crate can name.
    #[derive(Debug, Clone, Copy)]
    #[allow(missing_docs, reason = "it cannot be reached from outside")]
    pub struct Token;
}

impl fmt::Debug for dyn Storage + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Storage")
    }
}

/// The error of writing to what can only be read.
fn read_only(doing: &str) -> io::Error {
    let detail = "the storage can only be read";
    crate::Error::new(crate::ErrorKind::ReadOnly, doing, detail).into()
}
