//! Sources of bytes.

use std::io;
use std::sync::Arc;

use blosc2_format::ReadAt;

/// A source of bytes that is only read.
#[derive(Clone)]
pub struct ReadOnly<R>(R);

impl<R> std::fmt::Debug for ReadOnly<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadOnly")
    }
}

impl<R> ReadOnly<R> {
    /// Wraps a source.
    pub fn new(source: R) -> Self {
        Self(source)
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

pub(super) type Source = ReadOnly<Arc<dyn ReadAt + Send + Sync>>;
