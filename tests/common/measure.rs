//! What a call costs: the time of its thread, and the memory that it allocates; and fresh memory that holds a
//! byte of the test's choice.
//!
//! Every test program has the allocator of this file. Its counters belong to a thread, so tests that run side
//! by side do not disturb each other.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// The system's allocator, which also counts the bytes that each thread holds.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static PEAK: Cell<usize> = const { Cell::new(0) };
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static FILL: Cell<Option<u8>> = const { Cell::new(None) };
}

impl Counting {
    fn count(&self, more: usize, less: usize) {
        LARGEST.set(LARGEST.get().max(more));
        let held = HELD.get().wrapping_add(more).wrapping_sub(less);
        HELD.set(held);
        // What another thread had allocated makes it negative.
        if held as isize > PEAK.get() as isize {
            PEAK.set(held);
        }
    }
}

// SAFETY: the system's allocator does all of it; the counters of the thread need no memory, and fresh memory may
// be written to.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: as the caller's.
        let start = unsafe { System.alloc(layout) };
        if let (Some(fill), false) = (FILL.get(), start.is_null()) {
            // SAFETY: `layout.size()` bytes were just allocated, and nobody else uses them yet.
            unsafe { start.write_bytes(fill, layout.size()) };
        }
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: as the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count(size, layout.size());
        // SAFETY: as the caller's.
        let start = unsafe { System.realloc(at, layout, size) };
        if let (Some(fill), false, Some(more)) =
            (FILL.get(), start.is_null(), size.checked_sub(layout.size()))
        {
            // SAFETY: `size` bytes are allocated, and the last `more` of them are new.
            unsafe { start.add(layout.size()).write_bytes(fill, more) };
        }
        start
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

/// What a call gave, and the length of the largest allocation that it made.
pub(crate) fn largest_allocation<T>(call: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    (call(), LARGEST.get())
}

/// Makes a call during which memory that this thread allocates holds a byte, unless it was asked for zeroed: bytes
/// that nobody wrote can be told by it.
pub(crate) fn with_fresh_memory<T>(fill: u8, call: impl FnOnce() -> T) -> T {
    FILL.set(Some(fill));
    let result = call();
    FILL.set(None);
    result
}
