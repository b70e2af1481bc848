//! Storages of borrowed memory, valid until the borrow ends.

use std::io;
use std::sync::Arc;

use blosc2_format::ReadAt;
use parking_lot::RwLock;

use super::ReadOnly;

/// Borrowed bytes. Reads fail after [`lend`] has returned.
#[derive(Debug, Clone)]
pub(crate) struct Lent(Arc<RwLock<Option<&'static [u8]>>>);

/// Calls `work` with a storage of borrowed bytes.
pub(crate) fn lend<R>(bytes: &[u8], work: impl FnOnce(ReadOnly<Lent>) -> R) -> R {
    // SAFETY: the reference is not used after the borrow of `bytes` ends. The only copy is in the `RwLock`, which is
    // private to this module. `Revoked` removes it before this function returns or unwinds, even if a `Lent` still
    // exists. Only `Lent::with` reads the reference. It holds the lock while it uses the reference, and `Revoked` waits
    // for the lock.
    let bytes: &'static [u8] = unsafe { std::mem::transmute::<&[u8], &'static [u8]>(bytes) };
    let lent = Lent(Arc::new(RwLock::new(Some(bytes))));
    let _revoked = Revoked(&lent);
    work(ReadOnly::new(lent.clone()))
}

/// Removes the bytes when it is dropped.
struct Revoked<'a>(&'a Lent);

impl Drop for Revoked<'_> {
    fn drop(&mut self) {
        *self.0.0.write() = None;
    }
}

impl Lent {
    /// Calls `read` with the bytes. `read` must not call user code or store the reference.
    fn with<R>(&self, read: impl FnOnce(&[u8]) -> io::Result<R>) -> io::Result<R> {
        let kept = self.0.read();
        match *kept {
            Some(bytes) => read(bytes),
            None => Err(io::Error::other("the borrow of the bytes has ended")),
        }
    }
}

impl ReadAt for Lent {
    fn size(&self) -> io::Result<u64> {
        self.with(|bytes| bytes.size())
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.with(|bytes| bytes.read_exact_at(offset, buffer))
    }
}
