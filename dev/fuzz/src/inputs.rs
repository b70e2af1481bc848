//! The inputs of ordinary tests of a target.

use std::path::Path;
use std::{fs, io};

use blosc2_testing::Rng;
use blosc2_testing::mutants::{mutant, mutate};

use crate::folder;
use crate::seeds::{Seed, seeds};

/// Returns the files of earlier findings, the seeds, and a number of mutants of the seeds, which are the same in each run.
///
/// `root` is the root of the repository.
///
/// # Errors
/// Fails if a file cannot be read.
pub fn inputs(
    target: &str,
    root: &Path,
    mutants: usize,
) -> io::Result<impl Iterator<Item = Seed> + use<>> {
    let mut whole = seeds(target, root, &root.join("c-blosc2"))?;
    let seeds = whole.clone();
    for of in ["crates/format", "blosc2"] {
        let findings = root.join(of).join("fuzz/findings").join(target);
        if findings.is_dir() {
            for (name, path) in folder::files(&findings)? {
                whole.push((format!("finding {name}"), fs::read(path)?));
            }
        }
    }
    let mutants = (0..mutants).map(move |number| {
        let mut rng = Rng(number as u64);
        let (name, seed) = rng.pick(&seeds);
        let mut bytes = seed.clone();
        if rng.below(3) > 0 && !bytes.is_empty() {
            mutate(&mut bytes, &mut rng);
        } else {
            bytes = mutant(&bytes, &mut rng);
        }
        (format!("mutant {number} of {name}"), bytes)
    });
    Ok(whole.into_iter().chain(mutants))
}
