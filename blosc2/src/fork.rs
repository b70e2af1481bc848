//! Forked processes: C's threads do not come along, and C would wait for them for ever.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Error, ErrorKind, Result};

/// Whether C may have started threads.
static STARTED: AtomicBool = AtomicBool::new(false);
/// Whether this process was forked from one in which it had.
static LOST: AtomicBool = AtomicBool::new(false);

/// Asks the system to tell about forks.
pub(crate) fn watch() {
    #[cfg(unix)]
    {
        unsafe extern "C" fn in_child() {
            if STARTED.load(Ordering::Relaxed) {
                LOST.store(true, Ordering::Relaxed);
            }
        }
        // SAFETY: the function may be called at any time: it touches two atomic variables only. It
        // lasts as long as the program does, unless this code is in a library that is unloaded,
        // which removes the handlers that it has set. Where there is no memory for it, forks go
        // unnoticed.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// Whether C would wait for threads that stayed behind in another process.
pub(crate) fn lost_threads() -> bool {
    LOST.load(Ordering::Relaxed)
}

/// Says that C is about to use threads, where it can.
pub(crate) fn check_threads(doing: &str) -> Result<()> {
    if lost_threads() {
        let detail = "this process was forked after C-Blosc2 had started threads; use one thread \
                      here, or start a new program";
        return Err(Error::new(ErrorKind::Unsupported, doing, detail));
    }
    STARTED.store(true, Ordering::Relaxed);
    Ok(())
}
