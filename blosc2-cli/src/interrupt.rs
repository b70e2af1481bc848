//! Ctrl-C: a command that creates files removes what is unfinished before it ends.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::{fmt, fs, process};

/// The exit status after Ctrl-C, as of a shell: 128 and the number of the signal.
pub(crate) const STATUS: u8 = 130;

/// Whether the user has pressed Ctrl-C.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// The number of files that are being created.
static UNFINISHED: AtomicUsize = AtomicUsize::new(0);
/// Temporary files that no scope removes when the process exits.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// The error of a command that Ctrl-C has stopped.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// A scope in which a file is created: Ctrl-C makes [`check`] fail, so that the scope can remove the file.
#[derive(Debug)]
pub(crate) struct Unfinished(());

impl Unfinished {
    pub(crate) fn new() -> Self {
        UNFINISHED.fetch_add(1, Ordering::SeqCst);
        Self(())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        UNFINISHED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Handles Ctrl-C and the signals that end a process. A second one ends the process at once.
pub(crate) fn handle() {
    // Without a handler the process ends as by default.
    let _ = ctrlc::set_handler(|| {
        if STOPPED.swap(true, Ordering::SeqCst) || UNFINISHED.load(Ordering::SeqCst) == 0 {
            remove_temporary();
            process::exit(STATUS.into());
        }
    });
}

/// Fails if the user has pressed Ctrl-C.
pub(crate) fn check() -> Result<(), Interrupted> {
    if is_stopped() { Err(Interrupted) } else { Ok(()) }
}

pub(crate) fn is_stopped() -> bool {
    STOPPED.load(Ordering::SeqCst)
}

/// Registers a temporary file for [`remove_temporary`].
pub(crate) fn register(path: PathBuf) {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).push(path);
}

/// Removes the registered files. Called before the process exits.
pub(crate) fn remove_temporary() {
    for path in TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // The process ends, and has nowhere to report an error.
        let _ = fs::remove_file(path);
    }
}
