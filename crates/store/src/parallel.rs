//! Work on several threads.

use std::panic;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::blosc2::Result;

/// Calls `work` for each item, on up to `threads` threads. After an error, no further call starts. If several calls fail,
/// returns the error of the first of these items.
pub(crate) fn each_on<T: Send>(
    threads: usize,
    items: Vec<T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let threads = threads.min(items.len());
    if threads < 2 {
        return items.into_iter().try_for_each(work);
    }
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), Ok(())))).collect();
    let run = || {
        while !stop.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(taken) = item.0.take() {
                item.1 = work(taken);
                stop.fetch_or(item.1.is_err(), Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        // If no thread can be started, this one does all of the work.
        let start = |_| thread::Builder::new().spawn_scoped(scope, run).ok();
        let helpers: Vec<_> = (1..threads).filter_map(start).collect();
        run();
        for helper in helpers {
            if let Err(payload) = helper.join() {
                panic::resume_unwind(payload);
            }
        }
    });
    let results =
        items.into_iter().map(|item| item.into_inner().unwrap_or_else(PoisonError::into_inner).1);
    results.collect()
}
