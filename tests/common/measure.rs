//! The cost of a call: the time of its thread, and the memory that this thread or all threads allocate. Also fresh memory that is filled
//! with a chosen byte.
//!
//! Every test program uses the allocator of this file. Its counters are thread-local, so concurrent tests do not
//! affect each other, except those of [`peak_of_all_threads`].

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The system's allocator, which also counts the bytes that each thread holds.
struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that all threads hold, and the most that they held.
static ALL_HELD: AtomicUsize = AtomicUsize::new(0);
static ALL_PEAK: AtomicUsize = AtomicUsize::new(0);

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
        // Freeing memory that another thread allocated makes it negative.
        if held as isize > PEAK.get() as isize {
            PEAK.set(held);
        }
        let all = ALL_HELD.fetch_add(more.wrapping_sub(less), Relaxed);
        ALL_PEAK.fetch_max(all.wrapping_add(more).wrapping_sub(less), Relaxed);
    }
}

// SAFETY: the system's allocator does all of it; the counters of the thread need no memory, and fresh memory may
// be written to.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: the caller gives the same guarantees.
        let start = unsafe { System.alloc(layout) };
        if let (Some(fill), false) = (FILL.get(), start.is_null()) {
            // SAFETY: `layout.size()` bytes were just allocated, and nobody else uses them yet.
            unsafe { start.write_bytes(fill, layout.size()) };
        }
        start
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        self.count(layout.size(), 0);
        // SAFETY: the caller gives the same guarantees.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        self.count(size, layout.size());
        // SAFETY: the caller gives the same guarantees.
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
        // SAFETY: the caller gives the same guarantees.
        unsafe { System.dealloc(at, layout) }
    }
}

/// The CPU time of this thread, which does not depend on other programs.
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

/// Returns the result of a call, its CPU time, and the most memory that it held. The time is 0 for the platforms of
/// `cargo xtask platforms`: an emulated processor is many times slower.
pub(crate) fn measure<T>(call: impl FnOnce() -> T) -> (std::thread::Result<T>, Duration, usize) {
    let (start, held) = (own_time(), HELD.get());
    PEAK.set(held);
    let result = catch_unwind(AssertUnwindSafe(call));
    let (time, peak) = (own_time() - start, PEAK.get().wrapping_sub(held));
    let is_emulated = std::env::var_os("BLOSC2_TEST_PLATFORM").is_some();
    (result, if is_emulated { Duration::ZERO } else { time }, peak)
}

/// Returns the result of a call, and the most memory that all threads of the program held in addition to what they held
/// before. No other test may run at the same time.
pub(crate) fn peak_of_all_threads<T>(call: impl FnOnce() -> T) -> (T, usize) {
    let held = ALL_HELD.load(Relaxed);
    ALL_PEAK.store(held, Relaxed);
    (call(), ALL_PEAK.load(Relaxed) - held)
}

/// Returns the result of a call, and the length of the largest allocation that it made.
pub(crate) fn largest_allocation<T>(call: impl FnOnce() -> T) -> (T, usize) {
    LARGEST.set(0);
    (call(), LARGEST.get())
}

/// Makes a call during which the memory that this thread allocates is filled with `fill`, except for zeroed
/// allocations. Uninitialized bytes can be recognized by it.
pub(crate) fn with_fresh_memory<T>(fill: u8, call: impl FnOnce() -> T) -> T {
    FILL.set(Some(fill));
    let result = call();
    FILL.set(None);
    result
}
