//! Decoded blocks that are kept.

use lru::LruCache;
use parking_lot::Mutex;

use crate::gate::Version;

/// The blocks that were used last, of one version of an array.
#[derive(Debug)]
pub(super) struct Cache {
    state: Mutex<State>,
    /// The most bytes that are kept.
    most: usize,
}

#[derive(Debug)]
struct State {
    version: Version,
    blocks: LruCache<(usize, usize), Box<[u8]>>,
    /// Bytes of all of them.
    bytes: usize,
}

/// What a block takes beside its bytes.
const OVERHEAD: usize = 128;

impl Cache {
    /// For so many bytes.
    pub(super) fn new(most: usize) -> Self {
        let state = State { version: Version::default(), blocks: LruCache::unbounded(), bytes: 0 };
        Self { state: Mutex::new(state), most }
    }

    /// The blocks of a version; those of others are given up.
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

impl State {
    fn clear(&mut self) {
        self.blocks.clear();
        self.bytes = 0;
    }
}

/// The blocks of one version of the array.
pub(super) struct Blocks<'a> {
    cache: &'a Cache,
    version: Version,
}

impl Blocks<'_> {
    /// Lets `work` have a block that is kept, and says whether there is one.
    pub(super) fn with(&self, chunk: usize, block: usize, work: impl FnOnce(&[u8])) -> bool {
        let mut state = self.cache.state.lock();
        let same = state.version == self.version;
        let found = state.blocks.get(&(chunk, block)).filter(|_| same);
        found.map(|bytes| work(bytes)).is_some()
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
        // All blocks are of the same size.
        while state.bytes > self.cache.most && state.blocks.pop_lru().is_some() {
            state.bytes -= size;
        }
    }
}
