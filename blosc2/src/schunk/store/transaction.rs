//! The changes of a transaction, before the commit.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::{Arc, Weak};

use blosc2_format::frame::{Layout, Outline, Stores};

/// The changes of a transaction. They stay in memory until the commit, for two reasons: in a contiguous frame, the
/// first new chunks overwrite the old index; in a directory, another program could use the same file numbers.
#[derive(Debug)]
pub(in crate::schunk) struct Transaction {
    before: Outline,
    is_changed: bool,
    /// The new chunks. For a contiguous frame, all bytes that the changes would write to the chunks without the
    /// transaction.
    staged: Staged,
    /// The places of chunks that the commit removes.
    freed: Vec<u64>,
    /// Exists until the call that started the transaction returns.
    call: Weak<()>,
}

impl Transaction {
    pub(in crate::schunk) fn new(outline: &Outline, call: &Arc<()>) -> Self {
        Self {
            before: outline.clone(),
            is_changed: false,
            staged: Staged::default(),
            freed: Vec::new(),
            call: Arc::downgrade(call),
        }
    }

    /// Adds a change that led to `outline`.
    pub(super) fn add(&mut self, outline: &Outline, stores: Stores<'_>, freed: &[u64]) {
        self.is_changed = true;
        let stores = stores.into_iter().map(|(place, bytes)| {
            let mut bytes = bytes.into_owned();
            // It may have been allocated for the maximum compressed size.
            bytes.shrink_to_fit();
            (place, bytes)
        });
        match outline.layout() {
            Layout::Contiguous => {
                stores.for_each(|(place, bytes)| self.staged.write(place, bytes));
                self.staged.truncate(outline.chunks_end());
            }
            Layout::Directory => {
                // Removed chunks of this transaction are never stored. The change may use their numbers again.
                let freed = freed.iter().filter(|place| self.staged.0.remove(place).is_none());
                self.freed.extend(freed);
                self.staged.0.extend(stores);
            }
        }
    }

    /// Returns the new chunk at a place; `None` if there is no new chunk.
    pub(in crate::schunk) fn chunk(&self, place: u64) -> Option<&[u8]> {
        self.staged.0.get(&place).map(Vec::as_slice)
    }

    /// Returns the new chunks, and the places of the removed ones.
    pub(super) fn into_stores(self) -> (Stores<'static>, Vec<u64>) {
        let stores = self.staged.0.into_iter().map(|(place, bytes)| (place, bytes.into()));
        (stores.collect(), self.freed)
    }

    /// Returns the outline before the transaction, which describes the stored frame.
    pub(super) fn outline(&self) -> &Outline {
        &self.before
    }

    /// Returns the outline before the transaction.
    pub(super) fn into_outline(self) -> Outline {
        self.before
    }

    pub(in crate::schunk) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns whether `call` started the transaction.
    pub(in crate::schunk) fn is_of(&self, call: &Arc<()>) -> bool {
        ptr::eq(self.call.as_ptr(), Arc::as_ptr(call))
    }

    /// Returns whether the call that started the transaction has returned. This happens if the closure moves the
    /// super-chunk elsewhere.
    pub(in crate::schunk) fn is_over(&self) -> bool {
        self.call.strong_count() == 0
    }
}

/// Runs of bytes, by their places. For a contiguous frame, the runs do not overlap.
#[derive(Debug, Default)]
struct Staged(BTreeMap<u64, Vec<u8>>);

impl Staged {
    /// Writes bytes. They replace earlier bytes at the same places.
    fn write(&mut self, at: u64, bytes: Vec<u8>) {
        let end = at + bytes.len() as u64;
        self.split(at);
        self.split(end);
        while let Some((&covered, _)) = self.0.range(at..end).next() {
            self.0.remove(&covered);
        }
        self.0.insert(at, bytes);
    }

    /// Discards all bytes from `end` on.
    fn truncate(&mut self, end: u64) {
        self.split(end);
        self.0.split_off(&end);
    }

    /// Splits the run that contains the bytes before and after `at`.
    fn split(&mut self, at: u64) {
        let before = self.0.range_mut(..at).next_back();
        let Some((&start, bytes)) = before else { return };
        // A run is in memory, so that its length fits in a `usize`.
        if let Some(len) = usize::try_from(at - start).ok().filter(|&len| len < bytes.len()) {
            let rest = bytes.split_off(len);
            self.0.insert(at, rest);
        }
    }
}

#[cfg(test)]
mod tests {
    use blosc2_testing::Rng;

    use super::Staged;

    #[test]
    fn runs_hold_what_was_written_last() {
        for seed in 0..200 {
            let (mut rng, mut staged) = (Rng(seed), Staged::default());
            let mut model: Vec<Option<u8>> = vec![None; 60];
            for number in 1..30u8 {
                if rng.below(8) == 0 {
                    let end = rng.index(60);
                    staged.truncate(end as u64);
                    model[end..].fill(None);
                    continue;
                }
                let at = rng.index(50);
                let len = 1 + rng.index(10);
                staged.write(at as u64, vec![number; len]);
                model[at..at + len].fill(Some(number));
                assert_eq!(staged.0.get(&(at as u64)), Some(&vec![number; len]), "seed {seed}");
                let mut found = vec![None; 60];
                for (at, run) in &staged.0 {
                    for (place, byte) in found[*at as usize..].iter_mut().zip(run) {
                        assert_eq!(place.replace(*byte), None, "seed {seed}: runs overlap");
                    }
                }
                assert_eq!(found, model, "seed {seed}");
            }
        }
    }
}
