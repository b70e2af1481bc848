//! Work on several threads.

use std::collections::BTreeMap;
use std::panic;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};

// Unlike std's, the thread sanitizer understands these.
use parking_lot::{Condvar, Mutex};

use crate::{Error, Result};

/// Calls `work` for each number below `count`, on `threads` threads, each with its own scratch. If several calls fail,
/// returns the error of the lowest number.
pub(super) fn each<S>(
    threads: usize,
    count: usize,
    scratch: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<()> {
    let threads = threads.min(count);
    if threads <= 1 {
        let mut own = None;
        return (0..count).try_for_each(|number| with(&mut own, &scratch, &work, number));
    }
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failed = Mutex::new(None::<(usize, Error)>);
    let run = || {
        let mut own = None;
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            if let Err(error) = with(&mut own, &scratch, &work, number) {
                stop.store(true, Ordering::Relaxed);
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|(other, _)| number < *other) {
                    *failed = Some((number, error));
                }
            }
        }
    };
    thread::scope(|scope| {
        let others = start(threads - 1, scope, &run);
        run();
        join(others);
    });
    failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
}

/// Computes a value for each number below `count`, on `threads` threads, and calls `take` with the values in order, on
/// this thread. Only a few more values than there are threads are computed ahead.
pub(super) fn ordered<S, R: Send>(
    threads: usize,
    count: usize,
    scratch: impl Fn() -> Result<S> + Sync,
    make: impl Fn(&mut S, usize) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let threads = threads.min(count);
    let alone = |take: &mut dyn FnMut(R) -> Result<()>| {
        let mut own = None;
        (0..count).try_for_each(|number| take(with(&mut own, &scratch, &make, number)?))
    };
    if threads <= 1 {
        return alone(&mut take);
    }
    let queue = Queue {
        count,
        ahead: 2 * threads,
        state: Mutex::new(State { next: 0, taken: 0, made: BTreeMap::new(), ends: 0 }),
        changed: Condvar::new(),
    };
    let run = || {
        let _end = End(&queue);
        let mut own = None;
        while let Some(number) = queue.number() {
            let made = with(&mut own, &scratch, &make, number);
            queue.state.lock().made.insert(number, made);
            queue.changed.notify_all();
        }
    };
    thread::scope(|scope| {
        let others = start(threads, scope, &run);
        if others.is_empty() {
            return alone(&mut take);
        }
        let taken = {
            // On every exit, the other threads stop.
            let _end = End(&queue);
            (0..count).try_for_each(|number| match queue.take(number, others.len()) {
                Some(made) => take(made?),
                // A thread has panicked; `join` propagates the panic.
                None => Ok(()),
            })
        };
        join(others);
        taken
    })
}

/// Calls `work` with a scratch that is created on first use.
fn with<S, R>(
    own: &mut Option<S>,
    scratch: impl Fn() -> Result<S>,
    work: impl Fn(&mut S, usize) -> Result<R>,
    number: usize,
) -> Result<R> {
    match own {
        Some(own) => work(own, number),
        None => work(own.insert(scratch()?), number),
    }
}

/// Starts threads; fewer if the system cannot create more.
fn start<'scope>(
    threads: usize,
    scope: &'scope Scope<'scope, '_>,
    run: &'scope (impl Fn() + Sync),
) -> Vec<ScopedJoinHandle<'scope, ()>> {
    let spawn = |_| thread::Builder::new().spawn_scoped(scope, run).ok();
    (0..threads).filter_map(spawn).collect()
}

/// Joins threads, and propagates a panic of one of them.
fn join(threads: Vec<ScopedJoinHandle<'_, ()>>) {
    for thread in threads {
        if let Err(payload) = thread.join() {
            panic::resume_unwind(payload);
        }
    }
}

/// The state that the threads of [`ordered`] share.
struct Queue<R> {
    count: usize,
    ahead: usize,
    state: Mutex<State<R>>,
    changed: Condvar,
}

struct State<R> {
    /// The number that is computed next.
    next: usize,
    /// The number of values that were taken.
    taken: usize,
    made: BTreeMap<usize, Result<R>>,
    /// The number of threads that have ended.
    ends: usize,
}

impl<R> Queue<R> {
    /// Waits until the next value may be computed, and returns its number.
    fn number(&self) -> Option<usize> {
        let mut state = self.state.lock();
        while state.next < self.count && state.next >= state.taken + self.ahead {
            self.changed.wait(&mut state);
        }
        let number = state.next;
        state.next = number.saturating_add(1);
        (number < self.count).then_some(number)
    }

    /// Waits for the value of a number; `None` if all threads have ended without it.
    fn take(&self, number: usize, threads: usize) -> Option<Result<R>> {
        let mut state = self.state.lock();
        loop {
            if let Some(made) = state.made.remove(&number) {
                state.taken = number + 1;
                self.changed.notify_all();
                return Some(made);
            }
            if state.ends == threads {
                return None;
            }
            self.changed.wait(&mut state);
        }
    }
}

/// Marks the end of a thread, also by a panic: the others compute no more values.
struct End<'a, R>(&'a Queue<R>);

impl<R> Drop for End<'_, R> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.ends += 1;
        state.next = usize::MAX;
        self.0.changed.notify_all();
    }
}
