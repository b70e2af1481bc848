//! A cache of a bounded size: the least recently used entries are removed.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A cache of values, each with a size in bytes.
#[derive(Debug)]
pub(crate) struct Lru<K, V> {
    entries: HashMap<K, Entry<V>>,
    /// The keys by the time of their last use.
    uses: BTreeMap<u64, K>,
    clock: u64,
    size: u64,
    max: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    size: u64,
    used: u64,
}

impl<K: Hash + Eq + Copy, V: Clone> Lru<K, V> {
    /// Creates a cache of at most `max` bytes.
    pub(crate) fn new(max: u64) -> Self {
        Self { entries: HashMap::new(), uses: BTreeMap::new(), clock: 0, size: 0, max }
    }

    pub(crate) fn get(&mut self, key: &K) -> Option<V> {
        let entry = self.entries.get_mut(key)?;
        self.uses.remove(&entry.used);
        self.clock += 1;
        entry.used = self.clock;
        self.uses.insert(self.clock, *key);
        Some(entry.value.clone())
    }

    /// Adds a value. A value that is larger than the cache is then its only one.
    pub(crate) fn insert(&mut self, key: K, value: V, size: u64) {
        self.remove(&key);
        while self.size + size > self.max {
            let Some((_, oldest)) = self.uses.pop_first() else { break };
            if let Some(entry) = self.entries.remove(&oldest) {
                self.size -= entry.size;
            }
        }
        self.clock += 1;
        self.uses.insert(self.clock, key);
        self.entries.insert(key, Entry { value, size, used: self.clock });
        self.size += size;
    }

    /// Removes all values.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
        self.uses.clear();
        self.size = 0;
    }

    fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.used);
            self.size -= entry.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_entry_is_dropped() {
        let mut cache = Lru::new(10);
        cache.insert(1, 'a', 4);
        cache.insert(2, 'b', 4);
        assert_eq!(cache.get(&1), Some('a'));
        cache.insert(3, 'c', 4);
        assert_eq!((cache.get(&1), cache.get(&2), cache.get(&3)), (Some('a'), None, Some('c')));
        cache.insert(3, 'd', 6);
        assert_eq!((cache.get(&1), cache.get(&3), cache.size), (Some('a'), Some('d'), 10));
        cache.insert(4, 'e', 11);
        assert_eq!((cache.get(&1), cache.get(&4), cache.size), (None, Some('e'), 11));
        cache.insert(5, 'f', 1);
        assert_eq!((cache.get(&4), cache.get(&5), cache.size), (None, Some('f'), 1));
    }
}
