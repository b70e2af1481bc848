//! Ctrl-C and termination: the process removes its temporary files, and ends at once.
//!
//! New files have temporary names until they are complete, and changes of existing files are atomic, so the process
//! can end at any time.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use std::{fs, process, thread};

use blosc2::storage::temporary_prefix;

/// The exit status after a signal: 128 and the number of SIGINT, as of a shell.
pub(crate) const STATUS: u8 = 130;

/// Whether the process ends because of a signal.
static STOPPED: AtomicBool = AtomicBool::new(false);
/// The directories in which temporary files are created.
static FOLDERS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Handles Ctrl-C and, on Unix, SIGTERM and SIGHUP. A signal that the parent process ignores stays ignored, as `nohup`
/// and shells expect.
pub(crate) fn handle() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        use signal_hook::iterator::Signals;

        let ignored = ignored();
        let handled = [SIGHUP, SIGINT, SIGTERM];
        let handled = handled.into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
        // Without a handler the process ends as by default.
        let Ok(mut signals) = Signals::new(handled) else { return };
        thread::spawn(move || {
            if signals.forever().next().is_some() {
                stop();
            }
        });
    }
    #[cfg(not(unix))]
    let _ = ctrlc::set_handler(stop);
}

/// The set of ignored signals, one bit each from 1 on; empty on systems without `/proc`.
#[cfg(unix)]
fn ignored() -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
}

fn stop() {
    STOPPED.store(true, Ordering::SeqCst);
    // The other threads may still create files in a directory that is being removed.
    for _ in 0..20 {
        if remove_temporary() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    crate::complain("interrupted");
    process::exit(STATUS.into());
}

/// Waits for the end of the process if a signal has stopped it: its other threads may fail because of the files that
/// are removed.
pub(crate) fn wait_if_stopped() {
    while STOPPED.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(100));
    }
}

/// Registers the directory of an output: temporary files there are removed if the process is stopped.
pub(crate) fn register(folder: &Path) {
    // The working directory does not change, but the path stays valid if it did.
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    let mut folders = FOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
    if !folders.contains(&folder) {
        folders.push(folder);
    }
}

/// Removes the temporary files of this process. Returns whether none is left.
pub(crate) fn remove_temporary() -> bool {
    let prefix = temporary_prefix();
    let mut is_clean = true;
    for folder in FOLDERS.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.flatten() {
            if !entry.file_name().to_string_lossy().starts_with(prefix) {
                continue;
            }
            let path = entry.path();
            let removed = match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => fs::remove_dir_all(path),
                false => fs::remove_file(path),
            };
            is_clean &= removed.is_ok();
        }
    }
    is_clean
}
