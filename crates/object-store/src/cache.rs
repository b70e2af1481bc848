//! The cache of the bytes of objects.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use lru::LruCache;

use crate::object::Version;

/// The size of a page in bytes. The last page of an object can be shorter.
pub(crate) const PAGE: u64 = 16 << 10;

/// The pages by object and number.
type Pages = LruCache<(Arc<Version>, u64), Bytes>;

/// The least recently used cache of pages of objects.
pub(crate) struct Cache {
    /// `None` without a cache.
    pages: Option<Mutex<Pages>>,
    /// The maximum number of pages.
    most: usize,
}

impl Cache {
    /// Creates a cache of at most `bytes` bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let most = bytes / PAGE as usize;
        // Its table grows with its content.
        let pages = (most > 0).then(|| Mutex::new(LruCache::unbounded()));
        Self { pages, most }
    }

    /// Whether reads of this number of pages go through the cache. Larger reads would displace most of its content.
    pub(crate) fn takes(&self, pages: u64) -> bool {
        pages <= self.most as u64 / 4
    }

    pub(crate) fn get(&self, version: &Arc<Version>, page: u64) -> Option<Bytes> {
        let mut pages = self.pages.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        pages.get(&(Arc::clone(version), page)).cloned()
    }

    pub(crate) fn put(&self, version: &Arc<Version>, page: u64, bytes: Bytes) {
        if let Some(pages) = &self.pages {
            let mut pages = pages.lock().unwrap_or_else(PoisonError::into_inner);
            pages.put((Arc::clone(version), page), bytes);
            if pages.len() > self.most {
                pages.pop_lru();
            }
        }
    }
}

impl std::fmt::Debug for Cache {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cache").field("pages", &self.most).finish()
    }
}
