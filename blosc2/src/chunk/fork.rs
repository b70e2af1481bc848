//! Forked processes. A forked process does not have the threads of C; C would deadlock, because it would wait for these
//! threads.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{ErrorKind, Reason, Result};

/// Whether C may have started threads.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether this process was forked after C may have started threads.
static LOST: AtomicBool = AtomicBool::new(false);

/// Registers a handler for forks.
pub(super) fn watch() {
    #[cfg(unix)]
    {
        unsafe extern "C" fn in_child() {
            if STARTED.load(Ordering::Relaxed) {
                LOST.store(true, Ordering::Relaxed);
            }
            crate::support::helpers::forget_threads();
        }
        // SAFETY: the function may be called at any time, because it accesses only atomic variables. It exists until
        // the program exits, or until the library that contains it is unloaded, which also removes the handler. If
        // there is no memory for the handler, forks are not noticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// Returns whether C would wait for threads of the parent process.
pub(super) fn lost_threads() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Checks that C can use threads, and records that it may start them.
pub(super) fn check_threads() -> Result<(), Reason> {
    if lost_threads() {
        let detail = "this process was forked after C-Blosc2 had started threads; use one thread \
                      here, or start a new program";
        return Err(Reason::new(ErrorKind::Unsupported, detail));
    }
    STARTED.store(true, Ordering::Relaxed);
    Ok(())
}
