//! Work on several threads.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

// The thread sanitizer understands these types, but not those of std.
use parking_lot::{Condvar, Mutex};

use crate::support::helpers;
use crate::{Error, Result, Threads};

/// The work of a thread, which owns its scratch.
type Work<'a, R> = Box<dyn FnMut(usize) -> Result<R> + 'a>;

/// Calls `work` for each number below `count`, on `threads` threads. Each thread has its own scratch. If several calls
/// fail, returns the error of the lowest number.
pub(crate) fn each<S>(
    threads: usize,
    count: usize,
    scratch: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, usize) -> Result<()> + Sync,
) -> Result<()> {
    let threads = threads.min(count);
    if threads <= 1 {
        return (0..count).try_for_each(of_thread(&scratch, &work));
    }
    each_on(threads, count, &|| Box::new(of_thread(&scratch, &work)))
}

/// Calls `work` for each item and its number. Each item is used by one thread; see [`each`].
pub(crate) fn each_item<S, T: Send>(
    threads: usize,
    items: impl IntoIterator<Item = T>,
    scratch: impl Fn() -> Result<S> + Sync,
    work: impl Fn(&mut S, usize, T) -> Result<()> + Sync,
) -> Result<()> {
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new(Some(item))).collect();
    each(threads, items.len(), scratch, |scratch, number| {
        let item = items[number].lock().take();
        // Each number occurs once.
        item.map_or(Ok(()), |item| work(scratch, number, item))
    })
}

impl Threads {
    /// Calls `work` for each item, on up to this number of threads: the calling thread, and threads of the pool that all
    /// arrays share. Inside a user-defined codec or filter and inside other closures that are passed to this crate, all
    /// calls are on the calling thread; see [`available`](Self::available).
    ///
    /// Use it for independent calls of this crate for different objects. The calls must not wait for each other, because
    /// the number of threads can be 1. All items are collected before the first call.
    ///
    /// ```
    /// use blosc2::{CParams, SChunk, Threads};
    ///
    /// let params = CParams::new();
    /// let mut schunks = [SChunk::in_memory::<u8>(&params)?, SChunk::in_memory::<u8>(&params)?];
    /// Threads::auto().for_each(&mut schunks, |schunk| schunk.append(&[1u8, 2, 3]))?;
    /// assert_eq!(schunks[1].nbytes(), 3);
    /// # Ok::<(), blosc2::Error>(())
    /// ```
    ///
    /// # Errors
    /// The error of the first item for which a call failed. After an error, each thread makes at most one further call.
    pub fn for_each<T: Send>(
        self,
        items: impl IntoIterator<Item = T>,
        work: impl Fn(T) -> Result<()> + Sync,
    ) -> Result<()> {
        each_item(self.available(), items, || Ok(()), |(), _, item| work(item))
    }
}

/// [`each`] on several threads. This function is compiled once for all kinds of work.
fn each_on<'a>(
    threads: usize,
    count: usize,
    work: &(dyn Fn() -> Work<'a, ()> + Sync),
) -> Result<()> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failed = Mutex::new(None::<(usize, Error)>);
    let run = || {
        let mut work = work();
        while !stop.load(Ordering::Relaxed) {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            if let Err(error) = work(number) {
                stop.store(true, Ordering::Relaxed);
                let mut failed = failed.lock();
                if failed.as_ref().is_none_or(|(other, _)| number < *other) {
                    *failed = Some((number, error));
                }
            }
        }
    };
    helpers::together(threads - 1, &run, run);
    failed.into_inner().map_or(Ok(()), |(_, error)| Err(error))
}

/// Computes a value for each number below `count`, on `threads` threads. Calls `take` with the values in order, on this
/// thread. At most `2 * threads` values are computed ahead of `take`.
pub(crate) fn ordered<S, R: Send>(
    threads: usize,
    count: usize,
    scratch: impl Fn() -> Result<S> + Sync,
    make: impl Fn(&mut S, usize) -> Result<R> + Sync,
    mut take: impl FnMut(R) -> Result<()>,
) -> Result<()> {
    let threads = threads.min(count);
    if threads <= 1 {
        let mut make = of_thread(&scratch, &make);
        return (0..count).try_for_each(|number| take(make(number)?));
    }
    ordered_on(threads, count, &|| Box::new(of_thread(&scratch, &make)), &mut take)
}

/// [`ordered`] on several threads. This function is compiled once for each type of values.
fn ordered_on<'a, R: Send>(
    threads: usize,
    count: usize,
    make: &(dyn Fn() -> Work<'a, R> + Sync),
    take: &mut dyn FnMut(R) -> Result<()>,
) -> Result<()> {
    let state = QueueState { next: 0, taken: 0, made: BTreeMap::new(), is_broken: false };
    let ahead = 2 * threads;
    let queue = Queue { count, ahead, state: Mutex::new(state), changed: Condvar::new() };
    let help = || {
        let _stop = Stop(&queue);
        let mut make = make();
        while let Step::Make(number) = queue.step(None) {
            queue.put(number, make(number));
        }
    };
    helpers::together(threads - 1, &help, || {
        let _stop = Stop(&queue);
        let mut make = make();
        for wanted in 0..count {
            let made = loop {
                match queue.step(Some(wanted)) {
                    Step::Take(made) => break made?,
                    Step::Make(number) if number == wanted => break make(number)?,
                    Step::Make(number) => queue.put(number, make(number)),
                    // A helper has panicked; `together` propagates the panic.
                    Step::Stop => return Ok(()),
                }
            };
            take(made)?;
            queue.state.lock().taken = wanted + 1;
            queue.changed.notify_all();
        }
        Ok(())
    })
}

/// Returns the work of a thread with its own scratch, which is created on first use.
fn of_thread<'a, S: 'a, R>(
    scratch: &'a impl Fn() -> Result<S>,
    work: &'a impl Fn(&mut S, usize) -> Result<R>,
) -> impl FnMut(usize) -> Result<R> + 'a {
    let mut own = None;
    move |number| match &mut own {
        Some(own) => work(own, number),
        none => work(none.insert(scratch()?), number),
    }
}

struct Queue<R> {
    count: usize,
    ahead: usize,
    state: Mutex<QueueState<R>>,
    changed: Condvar,
}

struct QueueState<R> {
    next: usize,
    /// The number of values that were taken.
    taken: usize,
    made: BTreeMap<usize, Result<R>>,
    /// Whether a thread has ended before all values were computed.
    is_broken: bool,
}

enum Step<R> {
    /// The wanted value.
    Take(Result<R>),
    /// The number of a value that the thread computes itself.
    Make(usize),
    Stop,
}

impl<R> Queue<R> {
    /// Returns the next step of the thread that takes the value `wanted` next, or of another thread, which ends when the
    /// computation of all values has started. Waits if no value can be taken or computed now.
    fn step(&self, wanted: Option<usize>) -> Step<R> {
        let mut state = self.state.lock();
        loop {
            if let Some(made) = wanted.and_then(|wanted| state.made.remove(&wanted)) {
                return Step::Take(made);
            }
            let number = state.next;
            if state.is_broken || wanted.is_none() && number >= self.count {
                return Step::Stop;
            }
            if number < self.count && number < state.taken + self.ahead {
                state.next += 1;
                return Step::Make(number);
            }
            self.changed.wait(&mut state);
        }
    }

    fn put(&self, number: usize, made: Result<R>) {
        self.state.lock().made.insert(number, made);
        self.changed.notify_all();
    }
}

/// Stops the other threads if a thread ends before all values are computed. A thread can also end by a panic.
struct Stop<'a, R>(&'a Queue<R>);

impl<R> Drop for Stop<'_, R> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.is_broken |= thread::panicking() || state.next < self.0.count;
        self.0.changed.notify_all();
    }
}
