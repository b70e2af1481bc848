//! The cache of decoded blocks.

use lru::LruCache;
use parking_lot::Mutex;

use crate::gate::Version;

/// The cache of decoded blocks of one version of an array. It drops the least recently used blocks.
#[derive(Debug)]
pub(super) struct Cache {
    state: Mutex<CacheState>,
    /// The maximum size in bytes.
    most: usize,
}

#[derive(Debug)]
struct CacheState {
    version: Version,
    blocks: LruCache<(usize, usize), Box<[u8]>>,
    bytes: usize,
}

/// The overhead of a block in bytes.
const OVERHEAD: usize = 128;

impl Cache {
    pub(super) fn new(most: usize) -> Self {
        let state =
            CacheState { version: Version::default(), blocks: LruCache::unbounded(), bytes: 0 };
        Self { state: Mutex::new(state), most }
    }

    /// Returns the cached blocks of a version, and drops the blocks of other versions.
    pub(super) fn of(&self, version: Version) -> Blocks<'_> {
        let mut state = self.state.lock();
        if state.version != version {
            state.version = version;
            state.clear();
        }
        Blocks { cache: self, version }
    }

    pub(super) fn clear(&mut self) {
        self.state.get_mut().clear();
    }
}

impl CacheState {
    fn clear(&mut self) {
        self.blocks.clear();
        self.bytes = 0;
    }
}

#[derive(Clone, Copy)]
pub(super) struct Blocks<'a> {
    cache: &'a Cache,
    version: Version,
}

impl Blocks<'_> {
    /// Calls `work` with a cached block, and returns whether the block is in the cache.
    pub(super) fn with(&self, chunk: usize, block: usize, work: impl FnOnce(&[u8])) -> bool {
        let mut state = self.cache.state.lock();
        let same = state.version == self.version;
        let found = state.blocks.get(&(chunk, block)).filter(|_| same);
        found.map(|bytes| work(bytes)).is_some()
    }

    pub(super) fn has(&self, chunk: usize, block: usize) -> bool {
        let state = self.cache.state.lock();
        state.version == self.version && state.blocks.contains(&(chunk, block))
    }

    pub(super) fn keep(&self, chunk: usize, block: usize, bytes: &[u8]) {
        let size = bytes.len().saturating_add(OVERHEAD);
        let mut state = self.cache.state.lock();
        if state.version != self.version || size > self.cache.most {
            return;
        }
        if state.blocks.put((chunk, block), bytes.into()).is_none() {
            state.bytes += size;
        }
        // All blocks have the same size.
        while state.bytes > self.cache.most && state.blocks.pop_lru().is_some() {
            state.bytes -= size;
        }
    }
}
