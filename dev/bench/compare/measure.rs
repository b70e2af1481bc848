//! Rounds: all libraries run a workload one after the other, again and again.

use std::time::{Duration, Instant};

use crate::protocol::{Peer, Task};
use crate::workloads::{Group, Results, Workload};

/// Each workload is measured in at least this number of rounds,
const LEAST_ROUNDS: usize = 5;
/// and in at most this number.
const MOST_ROUNDS: usize = 31;
/// No further round starts after this time, if there are enough.
const TIME: Duration = Duration::from_millis(400);
/// The rounds of workloads that take longest, and of the libraries that are not main libraries.
const FEW_ROUNDS: usize = 3;
/// A workload takes longest if its first round takes more than this time,
const LONG: Duration = Duration::from_secs(1);
/// or if it reads or writes more bytes than this.
const LARGE: u64 = 512 << 20;
/// A library that is not a main library is measured in one round if a run takes more seconds than this.
const SLOW: f64 = 0.5;

/// A library, with its name in the report.
pub(crate) struct Library {
    pub(crate) name: &'static str,
    pub(crate) peer: Box<dyn Peer>,
    /// Whether it is measured in all rounds.
    pub(crate) is_main: bool,
    /// The only workloads that it is measured with, if not all.
    pub(crate) only: Option<Group>,
}

impl Library {
    pub(crate) fn new(name: &'static str, only: Option<Group>, peer: impl Peer + 'static) -> Self {
        let is_main = ["ours", "c", "memcpy", "read", "python", "numpy"].contains(&name);
        Self { name, peer: Box::new(peer), is_main, only }
    }
}

/// The measurements of a workload with a codec and a number of threads.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) workload: Workload,
    pub(crate) codec: &'static str,
    pub(crate) threads: usize,
    /// The names of the libraries, with the seconds of a call in each round.
    pub(crate) seconds: Vec<(&'static str, Vec<f64>)>,
}

/// How many rounds are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Full,
    /// One, without a warm-up: the results are compared, the times mean nothing.
    Once,
}

/// Measures a workload. The first library is this crate.
pub(crate) fn measure(
    workload: &Workload,
    codec: &'static str,
    threads: usize,
    libraries: &mut [Library],
    extent: Extent,
) -> Measured {
    let (key, size) = (workload.key.to_owned(), workload.size);
    // Hashes of the whole array take long: one number of threads is enough, except in the check of the comparison.
    let check = extent == Extent::Once || threads == workload.threads[0];
    let mut task = Task { key, size, codec: codec.to_owned(), threads, check };
    let mut seconds: Vec<(&str, Vec<f64>)> = Vec::new();
    // The warm-up: it also makes what the workload needs, and compares the results.
    let mut expected = None;
    let mut able: Vec<usize> = Vec::new();
    for (index, library) in libraries.iter_mut().enumerate() {
        if library.only.is_some_and(|only| only != workload.group) {
            continue;
        }
        let Some(outcome) = library.peer.run(&task) else { continue };
        if !outcome.result.is_empty() {
            let expected = expected.get_or_insert_with(|| outcome.result.clone());
            compare(workload, &task, library.name, expected, &outcome.result);
        }
        able.push(index);
        seconds.push((library.name, vec![outcome.seconds / workload.calls as f64]));
    }
    if extent == Extent::Full {
        seconds.iter_mut().for_each(|(_, seconds)| seconds.clear());
        task.check = false;
        rounds(workload, &task, libraries, &able, &mut seconds);
    }
    Measured { workload: workload.clone(), codec, threads, seconds }
}

fn rounds(
    workload: &Workload,
    task: &Task,
    libraries: &mut [Library],
    able: &[usize],
    seconds: &mut [(&str, Vec<f64>)],
) {
    let start = Instant::now();
    let mut least = if workload.bytes > LARGE { FEW_ROUNDS } else { LEAST_ROUNDS };
    for round in 0..MOST_ROUNDS {
        if round == 1 && start.elapsed() > LONG {
            least = FEW_ROUNDS;
        }
        if round >= least && start.elapsed() > TIME {
            break;
        }
        // The order rotates.
        for turn in 0..able.len() {
            let which = (round + turn) % able.len();
            let library = &mut libraries[able[which]];
            let seconds = &mut seconds[which].1;
            let is_slow = |seconds: &f64| seconds * workload.calls as f64 > SLOW;
            if library.is_main || round < FEW_ROUNDS && !seconds.first().is_some_and(is_slow) {
                let outcome = library.peer.run(task).expect("the library has this operation");
                seconds.push(outcome.seconds / workload.calls as f64);
            }
        }
    }
}

/// Compares the result of a library with that of this crate.
fn compare(workload: &Workload, task: &Task, name: &str, expected: &str, result: &str) {
    // A sum of 8192 rounded `f32` has an error of at most 8192 * 2^-24 of the sum. NumPy adds no more items than this
    // one after the other. A variance has the error of two sums.
    let error = match workload.results {
        Results::Equal => 0.0,
        Results::Rounded => 2.0 * 8192.0 / 16_777_216.0,
    };
    let numbers = expected.parse::<f64>().ok().zip(result.parse::<f64>().ok());
    let is_equal = expected == result
        || numbers
            .is_some_and(|(expected, result)| (expected - result).abs() <= expected.abs() * error);
    assert!(is_equal, "`{task}`: {name} returns {result}, this crate {expected}");
}

/// The median of some values, and their lower and upper quartiles.
pub(crate) fn quartiles(values: &[f64]) -> [f64; 3] {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    // Between two values, the nearest rank above.
    [last / 4, values.len() / 2, last - last / 4].map(|index| values[index])
}

impl Measured {
    pub(crate) fn seconds_of(&self, name: &str) -> Option<&[f64]> {
        let found = self.seconds.iter().find(|(other, _)| *other == name)?;
        Some(&found.1)
    }

    /// The median of the seconds of a library.
    pub(crate) fn median(&self, name: &str) -> Option<f64> {
        Some(quartiles(self.seconds_of(name)?)[1])
    }

    /// The median over the rounds: the time of a library divided by ours.
    pub(crate) fn ratio(&self, name: &str) -> Option<f64> {
        let ours = self.seconds_of("ours")?;
        let both = self.seconds_of(name)?.iter().zip(ours);
        let ratios: Vec<f64> = both.map(|(other, ours)| other / ours).collect();
        Some(quartiles(&ratios)[1])
    }

    /// The required ratios, each with the ratio that was measured.
    pub(crate) fn required(&self) -> Vec<(&'static str, f64, f64)> {
        let required = self.workload.required(self.codec, self.threads).into_iter();
        required.filter_map(|(name, least)| Some((name, least, self.ratio(name)?))).collect()
    }
}
