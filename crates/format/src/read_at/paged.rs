//! A source with a cache of small reads.

use std::fmt;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};

use super::ReadAt;
use crate::lru::Lru;

/// The size of a page, in bytes.
const PAGE: u64 = 8 << 10;
/// Reads of at least this number of bytes bypass the cache.
const LARGE: u64 = 2 * PAGE;
/// The maximum number of bytes in the cache.
const CACHE: u64 = 16 << 20;

/// A source that reads pages of 8 KiB and keeps up to 16 MiB of them, for sources where each read is slow: headers and
/// indexes are read in small parts. Reads of 16 KiB and more bypass the cache.
///
/// ```
/// use blosc2_format::ReadAt;
/// use blosc2_format::read_at::Paged;
///
/// let paged = Paged::new(vec![7; 20_000])?;
/// assert_eq!(paged.read_vec_at(19_990, 10)?, [7; 10]);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct Paged<R> {
    source: R,
    size: u64,
    pages: Mutex<Lru<u64, Arc<[u8]>>>,
}

impl<R: ReadAt> Paged<R> {
    /// Creates a cache of `source`, whose size must not change.
    ///
    /// # Errors
    /// The errors of the source.
    pub fn new(source: R) -> io::Result<Self> {
        let size = source.size()?;
        Ok(Self { source, size, pages: Mutex::new(Lru::new(CACHE)) })
    }

    fn page(&self, number: u64) -> io::Result<Arc<[u8]>> {
        let pages = || self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(page) = pages().get(&number) {
            return Ok(page);
        }
        let start = number * PAGE;
        // At most `PAGE`.
        let mut page = vec![0; (self.size - start).min(PAGE) as usize];
        self.source.read_exact_at(start, &mut page)?;
        let page: Arc<[u8]> = page.into();
        pages().insert(number, Arc::clone(&page), page.len() as u64);
        Ok(page)
    }
}

impl<R: ReadAt> ReadAt for Paged<R> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let len = buffer.len() as u64;
        if offset.checked_add(len).is_none_or(|end| end > self.size) {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if len >= LARGE {
            return self.source.read_exact_at(offset, buffer);
        }
        let (mut at, mut rest) = (offset, buffer);
        while !rest.is_empty() {
            let page = self.page(at / PAGE)?;
            let from = (at % PAGE) as usize;
            let count = rest.len().min(page.len() - from);
            let (part, after) = rest.split_at_mut(count);
            part.copy_from_slice(&page[from..from + count]);
            at += count as u64;
            rest = after;
        }
        Ok(())
    }
}

impl<R> fmt::Debug for Paged<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Paged").field("size", &self.size).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_the_source_has() {
        let bytes: Vec<u8> = (0..50_000u32).map(|at| (at * 7 / 3) as u8).collect();
        let paged = Paged::new(bytes.clone()).unwrap();
        for (offset, len) in
            [(0, 0), (0, 10), (8190, 4), (8191, 9000), (100, 40_000), (49_990, 10), (50_000, 0)]
        {
            assert_eq!(
                paged.read_vec_at(offset, len).unwrap(),
                bytes[offset as usize..][..len as usize]
            );
        }
        for (offset, len) in [(49_990, 11), (50_001, 0), (u64::MAX, 1), (0, 50_001)] {
            let mut buffer = vec![0; len];
            assert!(paged.read_exact_at(offset, &mut buffer).is_err(), "{len} at {offset}");
        }
    }
}
