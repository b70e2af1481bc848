//! What a call costs: the time of its thread, and the most memory that it held.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// An allocator that counts the bytes that each thread holds; a test makes it the global one.
#[derive(Debug)]
pub(crate) struct Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
}

impl Counting {
    fn count(&self, more: usize, less: usize) {
        let held = HELD.get().wrapping_add(more).wrapping_sub(less);
        HELD.set(held);
        // What another thread had allocated makes it negative.
        if held as isize > PEAK.get() as isize {
            PEAK.set(held);
        }
    }
}

// SAFETY: the system's allocator does all of it; the counters of the thread need no memory.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: as the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count(size, layout.size());
        // SAFETY: as the caller's.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.count(0, layout.size());
        // SAFETY: as the caller's.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The time that this thread has run: unlike the clock's, it does not depend on what else runs.
#[cfg(unix)]
fn own_time() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut now) };
    assert_eq!(code, 0);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

#[cfg(not(unix))]
fn own_time() -> Duration {
    static START: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

/// What a measured call gave, how long it ran, and the most memory that it held.
pub(crate) fn measure<T>(call: impl FnOnce() -> T) -> (std::thread::Result<T>, Duration, usize) {
    let (start, held) = (own_time(), HELD.get());
    PEAK.set(held);
    let result = catch_unwind(AssertUnwindSafe(call));
    (result, own_time() - start, PEAK.get().wrapping_sub(held))
}
