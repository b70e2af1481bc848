//! What the programs of the comparison exchange: tasks, and the time and the result of each.
//!
//! A child process prints the hash of its data. Then it reads one task per line from stdin, and prints the seconds and
//! the result, or an empty line if its library has no such operation.

use std::fmt::{self, Display, Formatter};
use std::hint::black_box;
use std::time::{Duration, Instant};

use crate::data::{Hash, hash};

/// One run of a workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Task {
    /// The workload.
    pub(crate) key: String,
    /// The uncompressed bytes of workloads that exist in several sizes.
    pub(crate) size: usize,
    /// The name of the codec in Python and C, in lower case.
    pub(crate) codec: String,
    pub(crate) threads: usize,
    /// Whether the result is wanted. It is not part of the time.
    pub(crate) check: bool,
}

/// What a run of a workload took, and what it returned.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) seconds: f64,
    /// A number, or the hash of the items. Empty if it was not wanted or if the program does not return it.
    pub(crate) result: String,
}

/// A library that does the workloads.
pub(crate) trait Peer {
    /// Runs a workload, unless the library has no such operation.
    fn run(&mut self, task: &Task) -> Option<Outcome>;
}

/// Measures one call. What it returns is freed later, and this is not measured.
pub(crate) fn once<R>(
    task: &Task,
    call: impl FnOnce() -> R,
    result: impl FnOnce(&R) -> String,
) -> Option<Outcome> {
    let start = Instant::now();
    let returned = black_box(call());
    let seconds = start.elapsed().as_secs_f64();
    let result = if task.check { result(&returned) } else { String::new() };
    Some(Outcome { seconds, result })
}

/// Measures one call that returns items.
pub(crate) fn read<R: AsRef<[f32]>>(task: &Task, call: impl FnOnce() -> R) -> Option<Outcome> {
    once(task, call, |items| hash(items.as_ref()))
}

/// Measures one call that writes items to existing memory.
pub(crate) fn read_into(
    task: &Task,
    target: &mut [f32],
    call: impl FnOnce(&mut [f32]),
) -> Option<Outcome> {
    let mut outcome = once(task, || call(black_box(target)), |()| String::new())?;
    if task.check {
        outcome.result = hash(target);
    }
    Some(outcome)
}

/// The results of this number of calls are compared.
const CHECKED: usize = 20;
/// After this time, a loop of calls stops.
const LONG_ENOUGH: Duration = Duration::from_millis(250);

/// Measures a loop of calls that return items. The time is that of all calls, also if the loop stops early: some
/// libraries decompress a whole chunk in each call.
pub(crate) fn read_each<T, R: AsRef<[f32]>>(
    task: &Task,
    arguments: &[T],
    mut call: impl FnMut(&T) -> R,
) -> Option<Outcome> {
    let mut hash = Hash::default();
    if task.check {
        let checked = &arguments[..CHECKED.min(arguments.len())];
        checked.iter().for_each(|argument| hash.add(call(argument).as_ref()));
    }
    let start = Instant::now();
    let mut done = 0;
    while done < arguments.len() && start.elapsed() < LONG_ENOUGH {
        black_box(call(&arguments[done]));
        done += 1;
    }
    let seconds = start.elapsed().as_secs_f64() * arguments.len() as f64 / done as f64;
    let result = if task.check { hash.finish() } else { String::new() };
    Some(Outcome { seconds, result })
}

impl Display for Task {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { key, size, codec, threads, check } = self;
        write!(f, "{key} {size} {codec} {threads} {}", u8::from(*check))
    }
}

impl Task {
    /// The task in this line.
    #[allow(dead_code, reason = "the programs of dev/peers/bench use it")]
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            key: words.next()?.to_owned(),
            size: words.next()?.parse().ok()?,
            codec: words.next()?.to_owned(),
            threads: words.next()?.parse().ok()?,
            check: words.next()? == "1",
        })
    }
}

impl Display for Outcome {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.seconds, self.result)
    }
}

impl Outcome {
    /// The outcome in this line.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        let seconds = words.next()?.parse().ok()?;
        Some(Self { seconds, result: words.next().unwrap_or_default().to_owned() })
    }
}
