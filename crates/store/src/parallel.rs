//! Work on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::blosc2::{Result, Threads};

/// Calls `work` for each item, on up to `threads` threads. If several calls fail, returns the error of the first item.
pub(crate) fn each_on<T: Send>(
    threads: Threads,
    items: Vec<T>,
    work: impl Fn(T) -> Result<()> + Sync,
) -> Result<()> {
    let threads = threads.count().min(items.len());
    if threads < 2 {
        return items.into_iter().try_for_each(work);
    }
    let next = AtomicUsize::new(0);
    let items: Vec<_> = items.into_iter().map(|item| Mutex::new((Some(item), Ok(())))).collect();
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            let mut item = item.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(taken) = item.0.take() {
                item.1 = work(taken);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without another thread, this one does all of the work.
            let _ = thread::Builder::new().spawn_scoped(scope, run);
        }
        run();
    });
    let results =
        items.into_iter().map(|item| item.into_inner().unwrap_or_else(PoisonError::into_inner).1);
    results.collect()
}
