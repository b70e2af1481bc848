//! Bytes that will be written to a frame.

use std::collections::BTreeMap;

/// Runs of bytes by their positions, disjoint.
#[derive(Debug, Default)]
pub(super) struct Staged(BTreeMap<u64, Vec<u8>>);

impl Staged {
    /// Returns the run that starts at `at`.
    pub(super) fn get(&self, at: u64) -> Option<&[u8]> {
        self.0.get(&at).map(Vec::as_slice)
    }

    /// Writes bytes over the others.
    pub(super) fn write(&mut self, at: u64, mut bytes: Vec<u8>) {
        let end = at + bytes.len() as u64;
        self.split(at);
        self.split(end);
        while let Some((&covered, _)) = self.0.range(at..end).next() {
            self.0.remove(&covered);
        }
        // It may have been allocated for the maximum compressed size.
        bytes.shrink_to_fit();
        self.0.insert(at, bytes);
    }

    /// Discards all bytes from `end` on.
    pub(super) fn truncate(&mut self, end: u64) {
        self.split(end);
        self.0.split_off(&end);
    }

    /// Returns the runs, ordered by position.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, &[u8])> {
        self.0.iter().map(|(&at, bytes)| (at, &bytes[..]))
    }

    /// Splits the run that contains the bytes before and after `at`.
    fn split(&mut self, at: u64) {
        let before = self.0.range_mut(..at).next_back();
        let Some((&start, bytes)) = before else { return };
        // A run is shorter than memory.
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
                assert_eq!(staged.get(at as u64), Some(&vec![number; len][..]), "seed {seed}");
                let mut found = vec![None; 60];
                for (at, run) in staged.iter() {
                    for (place, byte) in found[at as usize..].iter_mut().zip(run) {
                        assert_eq!(place.replace(*byte), None, "seed {seed}: runs overlap");
                    }
                }
                assert_eq!(found, model, "seed {seed}");
            }
        }
    }
}
