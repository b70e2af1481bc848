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

    /// Returns pages. Those that are not in memory are read with one call.
    fn pages(&self, numbers: impl Iterator<Item = u64>) -> io::Result<Vec<Arc<[u8]>>> {
        let pages = || self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found: Vec<(u64, Option<Arc<[u8]>>)> = Vec::new();
        for number in numbers {
            let page = pages().get(&number);
            found.push((number, page));
        }
        let missing = found.iter().filter(|(_, page)| page.is_none()).map(|(number, _)| *number);
        // Each is at most `PAGE`.
        let empty = |number: u64| vec![0; (self.size - number * PAGE).min(PAGE) as usize];
        let mut read: Vec<(u64, Vec<u8>)> = missing.map(|each| (each, empty(each))).collect();
        let mut ranges: Vec<(u64, &mut [u8])> =
            read.iter_mut().map(|(number, page)| (*number * PAGE, &mut page[..])).collect();
        match &mut ranges[..] {
            [] => {}
            [(offset, page)] => self.source.read_exact_at(*offset, page)?,
            ranges => self.source.read_ranges_at(ranges)?,
        }
        let mut read = read.into_iter();
        let page = |(number, page): (u64, Option<Arc<[u8]>>)| {
            page.or_else(|| {
                let (_, page) = read.next()?;
                let page: Arc<[u8]> = page.into();
                pages().insert(number, Arc::clone(&page), page.len() as u64);
                Some(page)
            })
        };
        Ok(found.into_iter().filter_map(page).collect())
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
        for page in self.pages(offset / PAGE..(offset + len).div_ceil(PAGE))? {
            let from = (at % PAGE) as usize;
            let count = rest.len().min(page.len() - from);
            let (part, after) = rest.split_at_mut(count);
            part.copy_from_slice(&page[from..from + count]);
            at += count as u64;
            rest = after;
        }
        Ok(())
    }

    /// Reads short ranges from pages, and the others with one call.
    fn read_ranges_at(&self, ranges: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        let mut large: Vec<(u64, &mut [u8])> = Vec::new();
        for (offset, buffer) in ranges {
            let len = buffer.len() as u64;
            if len >= LARGE && offset.checked_add(len).is_some_and(|end| end <= self.size) {
                large.push((*offset, buffer));
            } else {
                self.read_exact_at(*offset, buffer)?;
            }
        }
        if large.is_empty() { Ok(()) } else { self.source.read_ranges_at(&mut large) }
    }

    fn request_cost(&self) -> u64 {
        self.source.request_cost()
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
