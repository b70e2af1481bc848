//! Read-only storages of memory with any owner.

use std::fmt;
use std::io;

use blosc2_format::ReadAt;

use super::{Storage, read_only};

/// The bytes of an owner of any type.
pub(crate) struct Shared<B>(pub(crate) B);

impl<B: AsRef<[u8]>> ReadAt for Shared<B> {
    fn size(&self) -> io::Result<u64> {
        self.0.as_ref().size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.as_ref().read_exact_at(offset, buffer)
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Storage for Shared<B> {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(read_only("write"))
    }

    fn set_size(&mut self, _: u64) -> io::Result<()> {
        Err(read_only("set the length"))
    }

    /// Each call may return other bytes. The bytes of one call are borrowed and do not change.
    fn as_bytes(&self) -> Option<&[u8]> {
        Some(self.0.as_ref())
    }
}

impl<B> fmt::Debug for Shared<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}
