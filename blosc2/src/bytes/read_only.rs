//! Read-only storages.

use std::io;

use blosc2_format::ReadAt;

use super::{Storage, read_only};

/// Converts any source that implements [`ReadAt`] to a read-only [`Storage`]. Writes fail.
///
/// ```
/// use blosc2::storage::{ReadOnly, Storage};
///
/// let mut storage = ReadOnly::new(b"some bytes".to_vec());
/// let error = storage.write_all_at(0, b"S").unwrap_err();
/// assert_eq!(error.to_string(), "cannot write: the storage is read-only");
/// ```
#[derive(Debug, Clone, Default)]
pub struct ReadOnly<R>(R);

impl<R> ReadOnly<R> {
    /// Creates a read-only storage from `source`.
    pub fn new(source: R) -> Self {
        Self(source)
    }

    /// Returns the wrapped source.
    pub fn into_inner(self) -> R {
        self.0
    }
}

impl<R: ReadAt> ReadAt for ReadOnly<R> {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(offset, buffer)
    }

    fn read_vec_at(&self, offset: u64, len: u64) -> io::Result<Vec<u8>> {
        self.0.read_vec_at(offset, len)
    }

    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        self.0.read_ranges_at(ranges)
    }

    fn request_cost(&self) -> u64 {
        self.0.request_cost()
    }
}

impl<R: ReadAt + Send + Sync> Storage for ReadOnly<R> {
    fn write_all_at(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
        Err(read_only("write"))
    }

    fn set_size(&mut self, _: u64) -> io::Result<()> {
        Err(read_only("set the length"))
    }
}
