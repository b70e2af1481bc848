//! Threads that help with parallel work, and are kept for the next work.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicPtr, Ordering};
// Not the locks of parking_lot: they share one table of waiting threads. A child after a fork has a copy of the table,
// which lists threads that the child does not have, and may be locked. Idle threads wait here while the program forks.
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;
use std::{iter, mem, ptr, thread};

/// A thread that has no work for this long ends.
const IDLE: Duration = Duration::from_secs(10);

/// Calls `own` on this thread and, at the same time, `help` on up to `helpers` other threads, and returns when all these
/// calls have returned. If one of them panics, this call panics with its payload.
///
/// `own` must be able to do all of the work alone: threads that have not started when it returns do not start any more.
/// So this function cannot deadlock because all threads are in use.
///
/// All arrays share the threads of this module. Jobs of a rayon pool would not do: a closure of the user that waits in
/// rayon lets its thread start another job, which may wait for the work of the closure.
pub(crate) fn together<R>(helpers: usize, help: &(dyn Fn() + Sync), own: impl FnOnce() -> R) -> R {
    if helpers == 0 {
        return own();
    }
    let help: *const (dyn Fn() + Sync + '_) = help;
    // SAFETY: only the lifetime changes. The pointer is dereferenced only by `Call::help`, while the call counts it as
    // running. `Open` closes the call and waits until none is running, before this function returns or unwinds.
    let help: *const (dyn Fn() + Sync + 'static) = unsafe { mem::transmute(help) };
    let state = CallState { is_open: true, running: 0, panic: None };
    let call = Arc::new(Call { work: help, state: Mutex::new(state), ended: Condvar::new() });
    let queue = Queue::of_this_process();
    let mut open = Open { call: Some(Arc::clone(&call)), queue };
    queue.push(call, helpers);
    let result = own();
    let payload = open.close();
    if let Some(payload) = payload {
        panic::resume_unwind(payload);
    }
    result
}

/// Locks what no code leaves inconsistent if it panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Work with which other threads may help.
struct Call {
    /// Borrowed while the call is open or a helper is running; not accessed otherwise.
    work: *const (dyn Fn() + Sync),
    state: Mutex<CallState>,
    /// Notified when a helper has ended.
    ended: Condvar,
}

// SAFETY: the work is `Sync`, and is dereferenced only in `help`, while it is borrowed; see `together`.
unsafe impl Send for Call {}
// SAFETY: see above.
unsafe impl Sync for Call {}

struct CallState {
    /// Whether helpers may start.
    is_open: bool,
    /// The number of helpers that have started and not ended.
    running: usize,
    /// The payload of the first panic of a helper.
    panic: Option<Box<dyn Any + Send>>,
}

impl Call {
    /// Helps, if the call is still open.
    fn help(&self) {
        {
            let mut state = lock(&self.state);
            if !state.is_open {
                return;
            }
            state.running += 1;
        }
        // SAFETY: the call was open when this counted itself as running, so the work is borrowed until it no longer
        // does; see `together`.
        let result = panic::catch_unwind(AssertUnwindSafe(|| unsafe { (*self.work)() }));
        let mut state = lock(&self.state);
        state.running -= 1;
        if let Err(payload) = result {
            match &state.panic {
                None => state.panic = Some(payload),
                // Its drop may panic, and the call returns another one.
                Some(_) => mem::forget(payload),
            }
        }
        self.ended.notify_all();
    }
}

/// Closes a call when it is dropped, and waits for the helpers that have started.
struct Open {
    /// `Some` until it is closed.
    call: Option<Arc<Call>>,
    queue: &'static Queue,
}

impl Open {
    /// Closes the call, and returns the payload of a helper that has panicked.
    fn close(&mut self) -> Option<Box<dyn Any + Send>> {
        let call = self.call.take()?;
        let mut state = lock(&call.state);
        state.is_open = false;
        while state.running > 0 {
            state = call.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let payload = state.panic.take();
        drop(state);
        self.queue.remove(&call);
        payload
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // During a panic, that of a helper is not reported. The drop of its payload may panic too.
        mem::forget(self.close());
    }
}

/// The calls that wait for helpers, and the threads that wait for calls.
struct Queue {
    state: Mutex<Waiting>,
    /// Notified when there is a call to help with.
    changed: Condvar,
}

struct Waiting {
    /// A call is listed once for each helper that it waits for.
    calls: VecDeque<Arc<Call>>,
    /// The number of threads, and how many of them have no work.
    threads: usize,
    idle: usize,
}

/// The queue of this process; null before the first use, and in a child after a fork, which has no threads and may
/// find the old queue locked.
static QUEUE: AtomicPtr<Queue> = AtomicPtr::new(ptr::null_mut());

/// Called in the child after a fork. The old queue is leaked.
#[cfg(unix)]
pub(crate) fn forget_threads() {
    QUEUE.store(ptr::null_mut(), Ordering::Release);
}

impl Queue {
    fn of_this_process() -> &'static Self {
        let found = QUEUE.load(Ordering::Acquire);
        // SAFETY: the pointer is null or comes from `Box::leak` below.
        if let Some(queue) = unsafe { found.as_ref() } {
            return queue;
        }
        let waiting = Waiting { calls: VecDeque::new(), threads: 0, idle: 0 };
        let new: &'static Self =
            Box::leak(Box::new(Self { state: Mutex::new(waiting), changed: Condvar::new() }));
        let exchanged = QUEUE.compare_exchange(
            ptr::null_mut(),
            ptr::from_ref(new).cast_mut(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        match exchanged {
            Ok(_) => new,
            // SAFETY: as above. Another thread was faster; `new` stays unused.
            Err(other) => unsafe { &*other },
        }
    }

    /// Adds a call, and starts missing threads; fewer if the system cannot create more.
    fn push(&'static self, call: Arc<Call>, helpers: usize) {
        static CORES: OnceLock<usize> = OnceLock::new();
        // The system call takes longer than a small read.
        let cores = CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from));
        // All calls together have at most as many helpers as one asks for or as there are other cores.
        let most = helpers.max(cores - 1);
        let mut waiting = lock(&self.state);
        waiting.calls.extend(iter::repeat_n(call, helpers));
        for _ in 0..helpers.min(waiting.idle) {
            self.changed.notify_one();
        }
        let missing = waiting.calls.len().saturating_sub(waiting.idle);
        for _ in 0..missing.min(most.saturating_sub(waiting.threads)) {
            let name = String::from("blosc2-helper");
            if thread::Builder::new().name(name).spawn(|| self.serve()).is_err() {
                break;
            }
            waiting.threads += 1;
        }
    }

    fn remove(&self, call: &Arc<Call>) {
        lock(&self.state).calls.retain(|other| !Arc::ptr_eq(other, call));
    }

    /// Helps with calls until there are none for some time.
    fn serve(&self) {
        let mut waiting = lock(&self.state);
        loop {
            if let Some(call) = waiting.calls.pop_front() {
                drop(waiting);
                call.help();
                waiting = lock(&self.state);
                continue;
            }
            waiting.idle += 1;
            let waited = self.changed.wait_timeout(waiting, IDLE);
            let (again, result) = waited.unwrap_or_else(PoisonError::into_inner);
            waiting = again;
            waiting.idle -= 1;
            if result.timed_out() && waiting.calls.is_empty() {
                waiting.threads -= 1;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::catch_unwind;
    use std::sync::Barrier;
    use std::sync::atomic::AtomicUsize;

    use super::*;

    /// Adds up the numbers below `count` with helpers, and returns the sum.
    fn sum(helpers: usize, count: usize) -> usize {
        let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            loop {
                match next.fetch_add(1, Ordering::Relaxed) {
                    number if number < count => sum.fetch_add(number, Ordering::Relaxed),
                    _ => break,
                };
            }
        };
        together(helpers, &work, work);
        sum.into_inner()
    }

    #[test]
    fn all_threads_do_a_part_of_the_work() {
        for helpers in [0, 1, 3] {
            let (all, started) = (Barrier::new(helpers + 1), AtomicUsize::new(0));
            let work = || {
                started.fetch_add(1, Ordering::Relaxed);
                // Only if all of them run at the same time.
                all.wait();
            };
            together(helpers, &work, work);
            assert_eq!(started.into_inner(), helpers + 1);
        }
    }

    #[test]
    fn many_calls_at_the_same_time_share_the_threads() {
        thread::scope(|scope| {
            for helpers in 0..8 {
                scope.spawn(move || {
                    for count in 0..300 {
                        assert_eq!(sum(helpers, count), count * count.saturating_sub(1) / 2);
                    }
                });
            }
        });
    }

    /// A call inside the work of another one, when all helpers are in use.
    #[test]
    fn calls_that_get_no_helpers_do_not_wait() {
        let work = || assert_eq!(sum(2, 100), 4950);
        together(2, &work, || {
            let nested = || assert_eq!(sum(4, 100), 4950);
            together(3, &nested, nested);
        });
    }

    #[test]
    fn panics_are_propagated() {
        let text = |result: thread::Result<()>| *result.unwrap_err().downcast::<&str>().unwrap();
        for helpers in [1, 4] {
            let own = catch_unwind(|| together(helpers, &|| (), || panic!("own")));
            assert_eq!(text(own), "own");
            let started = Barrier::new(2);
            let first = AtomicUsize::new(0);
            let help = || {
                if first.fetch_add(1, Ordering::Relaxed) == 0 {
                    started.wait();
                    panic!("help");
                }
            };
            let helper = catch_unwind(AssertUnwindSafe(|| {
                together(helpers, &help, || {
                    started.wait();
                })
            }));
            assert_eq!(text(helper), "help");
        }
        assert_eq!(sum(4, 10), 45, "the threads still work");
    }

    /// A closure may wait in rayon, which runs other jobs on its thread meanwhile.
    #[test]
    fn work_may_use_rayon() {
        use rayon::prelude::*;
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let sums: Vec<usize> = pool.install(|| {
            let sum_in_rayon = |count: usize| {
                let (next, sum) = (AtomicUsize::new(0), AtomicUsize::new(0));
                let work = || {
                    while next.fetch_add(1, Ordering::Relaxed) < 20 {
                        let part: usize = (0..count).into_par_iter().map(|_| 1).sum();
                        sum.fetch_add(part, Ordering::Relaxed);
                    }
                };
                together(3, &work, work);
                sum.into_inner()
            };
            (0..200).into_par_iter().map(sum_in_rayon).collect()
        });
        assert!(sums.iter().enumerate().all(|(count, sum)| *sum == 20 * count));
    }
}
